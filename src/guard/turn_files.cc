// Content that goes through a file, and what a file does that is run.
//
// What was copied from a file with a secret counts as that secret under its new name (follow_copies). A file
// that an act runs is read as code of that act (follow_written): its text as the call itself writes it, else
// as it lies on the disk (TurnSettings::files), else as an earlier call wrote it, whether or not that was
// done. The disk knows what programs, archives, patches and copies made of it.
//
// Of the disk only files count that have changed since the session began; the project's own were there before
// anybody could tell the model to write them. Of a file that was changed only what is new counts: what its
// text had before is noted when a call first names it (note_originals), or when it is run unchanged. Files
// that it runs, imports or includes are followed from there, also through one that nobody changed.
//
// Where `cd` led is not known for sure, so a name is looked up from each place that the call names.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/paths.h"
#include "base/processor_time.h"
#include "belljar/turn.h"
#include "guard/build_files.h"
#include "guard/call.h"
#include "guard/daily.h"
#include "guard/lexicon.h"
#include "guard/turn_state.h"
#include "shell/system_paths.h"
#include "shell/word_list.h"
#include "shell/wrappers.h"

namespace belljar {

using guard::Act;
using guard::Atom;
using guard::Call;
using guard::WrittenFile;
using shell::has_word;

namespace {

constexpr std::size_t kMostLooks = 2048, kMostReads = 128, kMostBytes = 2U << 20, kMostOriginals = 128,
                      kMostOriginalText = 64U << 10;
constexpr std::size_t kMostActs = 4096;
constexpr int kDeepest = 4;
constexpr std::chrono::seconds kMostTime{1};  // of the processor

std::string plain(std::string_view path) { return path.empty() ? "." : shell::normal_path(path); }

std::string joined(std::string_view directory, std::string_view name) {
  if (name.starts_with('/') || directory.empty() || directory == ".") return plain(name);
  return plain(std::string(directory) + "/" + std::string(name));
}

std::string directory_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "." : std::string(path.substr(0, std::max<std::size_t>(slash, 1)));
}

// A compiled program, an image.
bool is_binary(std::string_view text) { return text.substr(0, 8192).find('\0') != std::string_view::npos; }

// What the files of a program's usual tools are called: of these the text before any change is noted at once.
constexpr std::array<const char*, 16> kUsual = {
    "Makefile", "makefile", "GNUmakefile", "package.json", "setup.py",    "conftest.py",    "justfile",          "Dockerfile",
    "build.rs", "tox.ini",  "noxfile.py",  "Rakefile",     "build.ninja", "CMakeLists.txt", "tests/conftest.py", "tasks.py"};

// Its words say which part of a file is run.
bool runs_targets(const Act& act) {
  return !act.words.empty() && has_word("make gmake npm pnpm yarn bun", file_name(act.words[0]));
}

// Not worth a look before it is changed: nothing runs it.
bool is_document(std::string_view path) {
  const std::string_view name = file_name(path);
  const std::size_t dot = name.rfind('.');
  return dot != std::string_view::npos && dot > 0 && name != "package.json" &&
         has_word("md txt rst html css svg png jpg gif pdf csv lock log json yaml yml xml ico woff2", name.substr(dot + 1));
}

void add_place(std::vector<std::string>& places, std::string place) {
  constexpr std::size_t kMost = 8;
  if (places.size() < kMost && std::ranges::find(places, place) == places.end()) places.push_back(std::move(place));
}

}  // namespace

// One look after the files of a call.
class Turn::State::FileTrail {
 public:
  FileTrail(Turn::State& state, Call& call) : state_(state), call_(call) { find_places(); }

  void note_originals();
  // What the call writes under other names: `cp a b`, and the lines of a patch that lies on the disk.
  void add_made();
  // It takes files out of this archive, which the session made or fetched; empty: out of none.
  std::string unpacked();
  bool is_there(const std::string& name) {
    return std::ranges::any_of(places_, [&](const std::string& place) { return read(joined(place, name)).has_value(); });
  }
  std::optional<WorkspaceFile> read(const std::string& path);
  // The texts that an act runs as files, from the disk, but for those that the call itself writes.
  void follow(const Act& act, const std::set<std::string>& known);
  const std::vector<std::string>& places() const { return places_; }

 private:
  bool is_spent() const { return looks_ >= kMostLooks || reads_ >= kMostReads || bytes_ >= kMostBytes || processor_time() > end_; }
  std::optional<WrittenFile> on_disk(const std::string& name);
  void find_places();
  std::vector<std::string> places_of(const Act& act) const;
  // A file that may be there, and what runs it.
  struct Lead {
    std::string path;
    std::shared_ptr<const Act> act;
    int depth = 0;
    bool by_changed = false;  // a file that was changed names it
  };
  struct From {
    std::shared_ptr<const Act> act;
    std::vector<std::string> places;
    int depth = 0;
    bool by_changed = false;
  };
  void lead_to(std::string path, const From& from);
  void lead_to_name(const std::string& name, const From& from);
  void lead_below(const std::string& directory, const From& from, bool tests);
  void lead_to_operands(const From& from);
  void look_at(const Lead& lead);
  void add_new(const std::string& path, const WorkspaceFile& file, Call found, const Act& act);

  Turn::State& state_;
  Call& call_;
  std::vector<std::string> places_;  // where its commands may be
  std::set<std::string> seen_;
  std::set<std::string> commands_;  // of files: where each may lead was noted
  std::deque<Lead> leads_;          // what is near comes first: there are bounds
  std::size_t looks_ = 0, reads_ = 0, bytes_ = 0;
  const std::chrono::nanoseconds end_ = processor_time() + kMostTime;
};

void Turn::State::FileTrail::find_places() {
  const auto inside = [&](std::string_view path) { return plain(guard::inside(path, state_.settings.workspace)); };
  const std::string begin = call_.cwd.empty() || call_.cwd == state_.settings.workspace ? "." : inside(call_.cwd);
  add_place(places_, begin);
  for (const Act& act : call_.acts) {
    if (!act.directory.empty()) add_place(places_, inside(act.directory));
    if (act.words.size() < 2 || !has_word("cd pushd", act.words[0])) continue;
    const std::string to = act.words[1] == state_.settings.workspace ? "." : inside(act.words[1]);
    for (const std::string& place : std::vector(places_)) add_place(places_, joined(place, to));
  }
  add_place(places_, ".");
}

// `make -C sub`, `npm --prefix sub`, `pip install ./sub`.
std::vector<std::string> Turn::State::FileTrail::places_of(const Act& act) const {
  std::vector<std::string> places = places_;
  const auto add = [&](std::string_view name) {
    for (const std::string& place : places_) add_place(places, joined(place, guard::inside(name, state_.settings.workspace)));
  };
  const bool installs = !act.words.empty() && has_word("pip pip3 npm pnpm yarn uv python python3 cargo", file_name(act.words[0]));
  for (std::size_t i = 1; i < act.words.size(); ++i) {
    const std::string_view word = act.words[i];
    if (has_word("-C --directory --prefix --cwd --dir --manifest-path -e", word) && i + 1 < act.words.size()) add(act.words[i + 1]);
    else if (word.starts_with("-C") && word.size() > 2) add(word.substr(2));
    else if (installs && word.find('/') != std::string_view::npos && word.find(':') == std::string_view::npos &&
             !word.starts_with('-'))
      add(word);
  }
  return places;
}

std::optional<WorkspaceFile> Turn::State::FileTrail::read(const std::string& path) {
  if (!state_.settings.files.read || is_spent()) return std::nullopt;
  ++looks_;
  auto file = state_.settings.files.read(path);
  if (!file) return file;
  ++reads_;
  bytes_ += file->text.size();
  const bool keep = !file->changed && file->whole && file->text.size() <= kMostOriginalText && !is_binary(file->text);
  if (keep && state_.originals.size() < kMostOriginals) state_.originals.try_emplace(path, file->text);
  return file;
}

// What the files have now that this call may change.
void Turn::State::FileTrail::note_originals() {
  constexpr std::size_t kMostNamed = 16;
  if (!state_.settings.files.read) return;
  std::set<std::string> names;
  if (!std::exchange(state_.noted_usual, true)) names.insert(kUsual.begin(), kUsual.end());
  const std::size_t most = names.size() + kMostNamed;
  const auto add = [&](std::string_view path) {
    if (names.size() >= most || path.empty() || path.size() > 300 || is_document(path)) return;
    for (const std::string& place : places_) names.insert(joined(place, guard::inside(path, state_.settings.workspace)));
  };
  for (const WrittenFile& file : call_.writes) add(file.path);
  for (const auto& [from, to] : call_.moves) add(to);
  for (const std::string& path : call_.shows) add(path);
  for (const Act& act : call_.acts) {
    for (const Atom& atom : act.atoms) {
      if (atom.kind == Atom::Kind::kPath) add(atom.text);
    }
  }
  for (const std::string& name : names) {
    // A command of ours would have to look there.
    if (name.starts_with('/') || state_.originals.contains(name)) continue;
    (void)read(name);
  }
  looks_ = reads_ = bytes_ = 0;
}

void Turn::State::FileTrail::follow(const Act& act, const std::set<std::string>& known) {
  const guard::RunFiles run = guard::files_run(act);
  const From from{std::make_shared<const Act>(act), places_of(act)};
  for (const std::string& file : run.files) lead_to_name(file, from);
  for (const std::string& place : from.places) {
    for (const std::string& below : run.below) lead_below(joined(place, below), from, false);
    if (!run.tests) continue;
    for (const char* below : {".", "tests", "test", "spec", "__tests__", "src"}) lead_below(joined(place, below), from, true);
  }
  if (run.tests) lead_to_operands(from);
  if (const std::string code = guard::inline_code(act); !code.empty()) {
    for (const std::string& file :
         guard::files_named_in(act.words[0].find("py") != std::string::npos ? "code.py" : "code.js", code))
      lead_to_name(file, from);
  }
  for (; !leads_.empty(); leads_.pop_front()) {
    const Lead lead = std::move(leads_.front());
    if (!known.contains(lead.path)) look_at(lead);
  }
}

void Turn::State::FileTrail::lead_to(std::string path, const From& from) {
  // The same file is another for another target.
  std::string key = path;
  if (runs_targets(*from.act)) {
    for (const std::string& word : from.act->words) key += '\0' + word;
  }
  if (from.depth <= kDeepest && seen_.insert(std::move(key)).second)
    leads_.push_back({std::move(path), from.act, from.depth, from.by_changed});
}

void Turn::State::FileTrail::lead_to_name(const std::string& name, const From& from) {
  const std::string_view path = guard::inside(name, state_.settings.workspace);
  if (path.empty() || path == "-" || path.size() > 300) return;
  const std::string_view program = from.act->words.empty() ? std::string_view() : file_name(from.act->words[0]);
  for (const std::string& place : from.places) {
    const std::string there = joined(place, path);
    lead_to(there, from);
    // `node server`, `python3 tool`
    const bool bare = file_name(there).find('.') == std::string_view::npos || there == ".";
    if (bare && has_word("node bun tsx", program)) {
      for (const char* more : {".js", "/index.js"}) lead_to(plain(there + more), from);
    } else if (bare && has_word("python python3", program)) {
      lead_to(plain(there + "/__main__.py"), from);
    }
    if (path.starts_with('/')) return;
  }
}

void Turn::State::FileTrail::lead_below(const std::string& directory, const From& from, bool tests) {
  if (!state_.settings.files.changed_in || !seen_.insert("in " + directory).second || ++looks_ > kMostLooks) return;
  for (const std::string& name : state_.settings.files.changed_in(directory)) {
    if (!tests || guard::is_test_code(name)) lead_to(joined(directory, name), from);
  }
}

// `pytest tests/test_x.py::one`, `jest web`
void Turn::State::FileTrail::lead_to_operands(const From& from) {
  for (std::size_t i = 1; i < from.act->words.size(); ++i) {
    const std::string_view word = from.act->words[i];
    if (word.starts_with('-') || word.find('=') != std::string_view::npos) continue;
    const std::string_view name = word.substr(0, word.find("::"));
    const bool file = file_name(name).find('.') != std::string_view::npos;
    if (file) lead_to_name(std::string(name), from);
    else if (name.find('/') != std::string_view::npos)
      for (const std::string& place : from.places) lead_below(joined(place, name), from, true);
  }
}

void Turn::State::FileTrail::look_at(const Lead& lead) {
  if (lead.by_changed && is_spent() && call_.undecided.empty()) call_.undecided = "it runs more files than are read";
  auto file = read(lead.path);
  if (!file) return;
  const Act& act = *lead.act;
  if (is_binary(file->text)) {
    const bool passed_over = !act.words.empty() && shell::is_shell(file_name(act.words[0]));  // a shell reads on behind it
    if (!passed_over || file->text.starts_with("\177ELF")) return;
    std::erase(file->text, '\0');
  }
  Call found;
  guard::read_file_code({.path = lead.path, .text = file->text}, act, state_.reader, found);
  From from{lead.act, {directory_of(lead.path)}, lead.depth + 1, file->changed};
  for (const std::string& place : places_of(act)) add_place(from.places, place);
  for (const std::string& name : guard::files_named_in(lead.path, file->text)) lead_to_name(name, from);
  for (const Act& each : found.acts) {
    if (each.words.empty() || !commands_.insert(from.places[0] + '\0' + each.what).second) continue;
    from.act = std::make_shared<const Act>(each);
    for (const std::string& name : guard::files_run(each).files) lead_to_name(name, from);
  }
  if (file->changed) add_new(lead.path, *file, std::move(found), act);
}

// Of a file that was changed what its text before did not do.
void Turn::State::FileTrail::add_new(const std::string& path, const WorkspaceFile& file, Call found, const Act& act) {
  const auto before = state_.originals.find(path);
  if (before != state_.originals.end() && before->second == file.text) return;
  Call old;
  if (before != state_.originals.end()) {
    // All of its targets: one that is new may need one that was there.
    Act any = act;
    if (runs_targets(act)) any.words = {act.words[0], has_word("make gmake", file_name(act.words[0])) ? "$all" : "run"};
    guard::read_file_code({.path = path, .text = before->second}, any, state_.reader, old);
  }
  if (!file.whole && !guard::is_product({Atom::Kind::kPath, path.substr(0, path.find('/'))}, state_.settings.workspace))
    call_.undecided = format("{} is longer than is read", quoted(path));
  for (Act& each : found.acts) {
    if (call_.acts.size() >= kMostActs) {
      if (call_.undecided.empty()) call_.undecided = "it does more than is judged";
      break;
    }
    const bool same = std::ranges::any_of(old.acts, [&](const Act& one) { return one == each; });
    if (same) continue;
    if (each.words.empty() || each.words == act.words) {  // a program: of its strings those that are new
      const auto was =
          std::ranges::find_if(old.acts, [&](const Act& one) { return one.kind == each.kind && one.what == each.what; });
      if (was != old.acts.end()) {
        std::erase_if(each.atoms, [&](const Atom& atom) { return std::ranges::find(was->atoms, atom) != was->atoms.end(); });
        if (each.atoms.empty()) continue;
      }
    }
    call_.acts.push_back(std::move(each));
  }
  for (const std::string& secret : found.secrets) {
    const bool known = std::ranges::find(old.secrets, secret) != old.secrets.end();
    if (!known && call_.secrets.size() < 64) call_.secrets.push_back(secret);
  }
  if (!found.unread.empty() && old.unread.empty() && call_.unread.empty()) call_.unread = found.unread;
  if (call_.undecided.empty()) call_.undecided = found.undecided;
  if (old.texts.empty()) call_.texts.push_back(file.text);
}

// A secret's content is a secret under every name. Whether an earlier call was made is not known here: it counts as if.
void Turn::State::follow_copies(Call& call) {
  constexpr std::size_t kMost = 1024;
  const auto inside = [&](std::string_view path) { return std::string(guard::inside(path, settings.workspace)); };
  if (!copies.empty()) {
    for (const std::string& text : call.texts) {
      for (const Atom& atom : guard::find_atoms(std::string_view(text).substr(0, 64U << 10))) {
        std::string_view path = atom.text;
        path.remove_prefix(std::min(path.find_last_of("=@") + 1, path.size()));
        if (copies.contains(inside(path)) && call.secrets.size() < 64) call.secrets.emplace_back(path);
      }
    }
  }
  for (const std::string& path : call.copies) {
    if (copies.size() < kMost) copies.insert(inside(path));
  }
}

std::optional<WrittenFile> Turn::State::FileTrail::on_disk(const std::string& name) {
  for (const std::string& place : places_) {
    const auto file = read(joined(place, name));
    if (file && file->changed && !is_binary(file->text))
      return WrittenFile{.path = name, .text = file->text, .decided = file->whole};
  }
  return std::nullopt;
}

void Turn::State::FileTrail::add_made() {
  for (const auto& [from, to] : call_.moves) {
    const std::string_view name = file_name(from);
    const auto known = std::ranges::find_if(state_.written, [&](const auto& file) { return file_name(file.path) == name; });
    auto copy = on_disk(from);
    if (!copy && known == state_.written.end()) continue;
    if (!copy) copy = *known;
    const bool into = to.ends_with('/') || file_name(to) == "." || file_name(to).find('.') == std::string_view::npos;
    copy->path = to;
    copy->whole = true;
    if (into) call_.writes.push_back({.path = to + "/" + std::string(name), .text = copy->text, .decided = copy->decided});
    call_.writes.push_back(*std::move(copy));
  }
  for (const Act& act : call_.acts) {
    if (act.words.size() < 2) continue;
    const bool patch = act.words[0] == "patch" || (act.words[0] == "git" && has_word("apply am", act.words[1]));
    for (std::size_t i = 1; patch && i < act.words.size(); ++i) {
      if (act.words[i].starts_with('-')) continue;
      if (const auto file = on_disk(act.words[i])) guard::add_patch(file->text, call_.writes);
    }
  }
}

std::string Turn::State::FileTrail::unpacked() {
  for (const Act& act : call_.acts) {
    if (act.words.empty() || !has_word("tar bsdtar unzip 7z 7za cpio", file_name(act.words[0]))) continue;
    for (std::size_t i = 1; i < act.words.size(); ++i) {
      if (act.words[i].starts_with("-c") || act.words[i].starts_with('c')) break;  // packs
      if (act.words[i].find('.') != std::string::npos && std::ranges::any_of(places_, [&](const std::string& place) {
            const auto file = read(joined(place, act.words[i]));
            return file && file->changed;
          }))
        return act.words[i];
    }
  }
  return {};
}

// A file that is read back as calls wrote it brings nothing new: where its strings came from, they are known from there.
bool Turn::State::is_own_text(const Entered& what) const {
  if (what.source != TextSource::kWorkspace || what.text.size() >= (64U << 10)) return false;
  const std::string name = plain(guard::inside(what.name, settings.workspace));
  const auto known = std::ranges::find_if(written, [&](const WrittenFile& file) {
    return file.whole && file.decided && plain(guard::inside(file.path, settings.workspace)) == name;
  });
  std::string_view text = what.text;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return known != written.end() && !text.empty() && known->text.find(text) != std::string::npos;
}

void Turn::State::follow_written(Call& call) {
  constexpr std::size_t kMostPaths = 8192, kMostTexts = 256, kLongest = 64U << 10;
  FileTrail trail(*this, call);
  trail.note_originals();
  trail.add_made();
  const auto inside = [&](std::string_view path) { return plain(guard::inside(path, settings.workspace)); };
  std::set<std::string> now;  // as this call leaves them
  for (WrittenFile& file : call.writes) {
    const auto known = std::ranges::find(written, file.path, &WrittenFile::path);
    if (!file.whole) {
      auto before = trail.read(inside(file.path));
      if (before && before->changed && !is_binary(before->text)) {
        file.text = before->text + (file.at_end ? "" : "\n") + file.text;
      } else if (known != written.end()) {
        file.text = known->text + (file.at_end ? "" : "\n") + file.text;
        file.decided = known->decided && file.decided;
      }
    }
    if (known != written.end()) written.erase(known);
    if (written.size() >= kMostPaths) written.erase(written.begin());
    if (written.size() >= kMostTexts) {
      WrittenFile& oldest = written[written.size() - kMostTexts];
      oldest.text.clear();
      oldest.decided = false;
    }
    if (const std::size_t size = file.text.size(); size >= kLongest) {
      file.text.erase(file.whole ? kLongest - 1 : 0, size - kLongest + 1);  // of edits the newest
      file.decided = false;
    }
    for (const std::string& place : trail.places()) now.insert(joined(place, inside(file.path)));
    written.push_back(std::move(file));
  }
  const std::string archive = trail.unpacked();
  std::set<std::string> read;
  for (std::size_t i = 0; i < call.acts.size(); ++i) {  // what a file runs is one of them then
    const Act act = call.acts[i];
    const guard::RunFiles run = guard::files_run(act);
    for (const WrittenFile& file : written) {
      if (!guard::is_run_by(run, file.path) || read.contains(file.path)) continue;
      const bool before = !now.contains(inside(file.path));
      if (before && trail.read(inside(file.path))) continue;  // the disk knows it better
      read.insert(file.path);
      const bool by_name =
          std::ranges::any_of(run.files, [&](const std::string& name) { return file_name(name) == file_name(file.path); });
      if (!file.decided && by_name) call.undecided = format("what stands in {} is not known in full", quoted(file.path));
      if (!file.text.empty()) guard::read_file_code(file, act, reader, call);
    }
    if (!archive.empty() && !run.files.empty() && call.undecided.empty() &&
        std::ranges::none_of(run.files, [&](const std::string& name) { return trail.is_there(name); }))
      call.undecided = format("it runs what it takes out of {}", quoted(archive));
    if (settings.files.read) trail.follow(act, now);
    if (const std::string code = guard::inline_code(act); !code.empty()) {
      const std::size_t before = call.acts.size();
      guard::read_started(code, reader, call);
      for (std::size_t j = before; j < call.acts.size(); ++j) call.acts[j].of_file = true;
    }
  }
}

}  // namespace belljar
