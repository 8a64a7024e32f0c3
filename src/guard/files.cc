// Which files a command shows, what a call writes into files, and what such a file does when it is run later.
//
// Both directions serve Turn. If a command shows a file, its output is the file's content and gets the file's
// name, so that a later quote can say where it came from. If a call writes a file, the text is kept; when an
// act runs that file, the text is read as code of that act, and its strings are traced like those of the
// command line.
//
// Here only what stands in the call itself is known: arguments of a tool, here-documents, words of echo and
// printf, lines that a patch adds. What other programs wrote is read from the disk (turn_files.cc). What is
// known only in part is noted as not decided, which leads to a question when the same call runs it. Of a
// Makefile the recipes are read, of package.json the scripts, of a shell script everything. Of other languages only string literals
// count as targets: the rest of a program is about its own subject, and tracing each word of it would find every text that talks
// about the same thing.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/paths.h"
#include "belljar/turn.h"
#include "guard/build_files.h"
#include "guard/call.h"
#include "guard/changes.h"
#include "guard/lexicon.h"
#include "guard/read_only.h"
#include "shell/script.h"
#include "shell/word_list.h"
#include "shell/wrappers.h"

namespace belljar::guard {

using shell::has_word;
using shell::is_shell;
using shell::lower;
using shell::Range;
using shell::Redirect;
using shell::Script;
using shell::ShellReader;
using shell::SimpleCommand;
using shell::Word;

namespace {

// They show files as they are, or parts of them. Of the second the first operand is what they look for or do.
constexpr std::string_view kShow =
    "cat tac head tail less more most bat batcat nl pr rev zcat zless zmore bzcat xzcat zstdcat column fold fmt expand cut paste "
    "sort uniq strings xxd od hexdump base64";
constexpr std::string_view kSearch = "grep egrep fgrep zgrep rg ag ack sed gsed awk gawk mawk nawk jq yq";
constexpr std::string_view kShowOfGit = "show diff log blame annotate grep cat-file whatchanged";

bool is_inside(const SimpleCommand& command, std::string_view wrapper) {
  return std::ranges::any_of(command.inside, [&](const std::string& each) { return each.starts_with(wrapper); });
}

// What echo and printf print. Of a format that takes words (`printf '%s\n' a b`) the words, a line each.
std::string printed_words(const SimpleCommand& command) {
  const bool format =
      command.argv.size() > 2 && program_name(command) == "printf" && command.argv[1].text.find('%') != std::string::npos;
  std::string text;
  for (std::size_t i = format ? 2 : 1; i < command.argv.size(); ++i) text += command.argv[i].text + (format ? "\n" : " ");
  for (const std::string_view escape : {"\\n", "\\t"}) {  // printf, echo -e
    for (std::size_t at = text.find(escape); at != std::string::npos; at = text.find(escape, at + 1))
      text.replace(at, 2, escape == "\\n" ? "\n" : "\t");
  }
  if (program_name(command) == "printf") {
    if (!format && text.ends_with(' ')) text.pop_back();
    return text;
  }
  return text + "\n";
}

// What a command prints, as far as it stands in the call; nullopt: nothing is known of it (a compiler's output).
std::optional<WrittenFile> printed_by(const Script& script, const SimpleCommand& command, int depth = 0) {
  constexpr int kDeepest = 4;
  WrittenFile result;
  const std::string_view name = program_name(command);
  if (has_word("echo printf", name)) {
    result.text = printed_words(command);
    result.decided = std::ranges::none_of(command.argv, [](const Word& word) { return !word.from.empty(); });
    return result;
  }
  const bool passes = has_word("cat tee", name);
  if (!passes && !has_word(kShow, name) && !has_word(kSearch, name) && name != "tr") return std::nullopt;
  const bool files = name != "tee" && command.argv.size() > 1;
  for (const Redirect& redirect : command.redirects) {
    if (redirect.op.starts_with("<<")) result.text += redirect.target.text + "\n";
    else if (redirect.op == "<") result.decided = false;
  }
  for (const Range& range : command.upstream) {
    for (std::size_t i = range.first; i < std::min(range.last, script.commands.size()) && depth < kDeepest; ++i) {
      const auto before = printed_by(script, script.commands[i], depth + 1);
      if (!before) continue;
      result.text += before->text;
      result.decided = result.decided && before->decided;
    }
  }
  result.decided = result.decided && (passes ? !files : false);
  return result;
}

bool goes_to_a_file(const Redirect& redirect) noexcept { return redirect.op.starts_with('>') && writes_a_file(redirect); }

}  // namespace

void add_patch(std::string_view patch, std::vector<WrittenFile>& writes) {
  std::string path;
  std::string text;
  const auto done = [&] {
    if (!path.empty() && !text.empty()) writes.push_back({.path = path, .text = text, .whole = false});
    text.clear();
  };
  while (!patch.empty()) {
    const std::string_view line = patch.substr(0, patch.find('\n'));
    patch.remove_prefix(std::min(line.size() + 1, patch.size()));
    const bool unified = line.starts_with("+++ ");
    if (unified || line.starts_with("*** Add File: ") || line.starts_with("*** Update File: ")) {
      done();
      std::string_view name = line.substr(unified ? 4 : line.find(": ") + 2);
      name = name.substr(0, name.find_first_of("\t\r"));
      if (name.starts_with("b/")) name.remove_prefix(2);
      path = name;
    } else if (line.starts_with('+')) {
      text.append(line.substr(1)).append(1, '\n');
    }
  }
  done();
}

namespace {

bool runs_shell(std::string_view program, std::string_view path, std::string_view text) {
  if (is_shell(program) || has_word("source .", program)) return true;  // whatever the first line says
  if (text.starts_with("#!")) {
    const std::string_view line = text.substr(0, text.find('\n'));
    return line.find("sh") != std::string_view::npos;
  }
  const std::string_view name = file_name(path);
  return name.find('.') == std::string_view::npos || name.ends_with(".sh") || name.ends_with(".bash");
}

}  // namespace

void note_shown(const SimpleCommand& command, Call& call) {
  const std::string_view name = program_name(command);
  const bool search = has_word(kSearch, name), show = has_word(kShow, name);
  for (const Redirect& redirect : command.redirects) {
    const bool reads = command.argv.empty() || search || show || has_word("read mapfile readarray", name);
    if (redirect.op == "<" && reads && redirect.target.text != "/dev/null") call.shows.push_back(redirect.target.text);
  }
  if (name == "git") {
    for (std::size_t i = 1; i < command.argv.size(); ++i) {
      if (has_word(kShowOfGit, command.argv[i].text)) return call.shows.push_back(to_line(command).substr(0, 200));
    }
  }
  if (!show && !search) return;
  const std::size_t before = call.shows.size();
  bool pattern = search;
  bool below = has_word("rg ag ack", name) && command.upstream.empty();
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const std::string& text = command.argv[i].text;
    if (has_word("-r -R -rn -nr -Rn -rl -rni -rin --recursive", text)) below = true;
    if (search && has_word("-e -f --regexp --file --expression", text)) pattern = false;
    if (text.starts_with('-') || text.empty()) continue;
    const bool number = command.argv[i - 1].text.starts_with('-') && text.find_first_not_of("0123456789,+") == std::string::npos;
    if (number) continue;  // head -n 40 x
    if (std::exchange(pattern, false)) continue;
    call.shows.push_back(text);
  }
  const bool given = is_inside(command, "xargs") || is_inside(command, "find");
  if (call.shows.size() == before && (below || given)) call.shows.push_back(to_line(command).substr(0, 200));
}

std::string name_of_shown(const Call& call) {
  constexpr std::size_t kLongest = 200;
  std::string name;
  for (const std::string& shown : call.shows) {
    if (is_secret_path(shown)) return shown;
    if (name.size() < kLongest) name += (name.empty() ? "" : " ") + shown;
  }
  return name;
}

namespace {
void note_moved(const SimpleCommand& command, Call& call) {
  if (!has_word("cp mv install ln rename rsync", program_name(command))) return;
  std::vector<std::string> operands;
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    if (!command.argv[i].text.starts_with('-')) operands.push_back(command.argv[i].text);
  }
  for (std::size_t i = 0; i + 1 < operands.size(); ++i) call.moves.emplace_back(operands[i], operands.back());
}
}  // namespace

void note_written(const Script& script, const SimpleCommand& command, Call& call) {
  note_moved(command, call);
  std::vector<std::string> places;
  for (const Redirect& redirect : command.redirects) {
    if (goes_to_a_file(redirect)) places.push_back(redirect.target.text);
  }
  if (program_name(command) == "tee") {
    for (std::size_t i = 1; i < command.argv.size(); ++i) {
      if (!command.argv[i].text.starts_with('-')) places.push_back(command.argv[i].text);
    }
  }
  const bool made = has_word("make gmake", program_name(command));
  if (made) places.emplace_back("-");  // make -f -
  if (places.empty()) return;
  std::optional<WrittenFile> content;
  if (made) {
    for (const Redirect& redirect : command.redirects) {
      if (redirect.op.starts_with("<<")) content = WrittenFile{.text = redirect.target.text};
    }
  } else {
    content = printed_by(script, command);
  }
  // A program's output: what it is shows when it has run.
  if (!content && !has_word("curl wget http https xh aria2c fetch", program_name(command)))
    content = WrittenFile{.text = {}, .decided = false};
  if (!content) return;
  const bool appends = std::ranges::any_of(command.redirects, [](const Redirect& redirect) { return redirect.op == ">>"; });
  content->whole = !appends;
  content->at_end = appends;
  for (std::string& place : places) {
    content->path = std::move(place);
    call.writes.push_back(*content);
  }
}

void note_change(const Script& script, const SimpleCommand& command, std::size_t first, Call& call) {
  const std::string_view name = program_name(command);
  if (name.empty()) return;
  Change change;
  for (const Redirect& redirect : command.redirects) {
    if (goes_to_a_file(redirect)) change.path = redirect.target.text;
  }
  const auto operands = [&] {
    std::vector<std::string_view> words;
    for (std::size_t i = 1; i < command.argv.size(); ++i) {
      if (!command.argv[i].text.starts_with('-')) words.push_back(command.argv[i].text);
    }
    return words;
  }();
  const bool edits = has_word("sed gsed perl ruby", name) && std::ranges::any_of(command.argv, [](const Word& word) {
                       return word.text.starts_with("-i") || word.text.starts_with("-pi") || word.text.starts_with("--in-place");
                     });
  if (edits && operands.size() >= 2) {
    change.path = operands.back();
    for (std::size_t i = 0; i + 1 < operands.size(); ++i) add_expression(operands[i], change);
  } else if (name == "tee" && !operands.empty()) {
    change.path = operands[0];
  } else if (has_word("npm pnpm yarn", name) && operands.size() > 2 && operands[0] == "pkg") {
    change.path = "package.json";
  } else if (name == "go" && operands.size() > 1 && operands[0] == "mod") {
    change.path = "go.mod";
  }
  if (!edits) {
    if (!change.path.empty()) {
      if (const auto content = printed_by(script, command)) change.added = content->text;
    }
    for (std::size_t i = 1; i < command.argv.size(); ++i) change.added += command.argv[i].text + "\n";
    if (change.path.empty()) change.added = to_line(command) + "\n" + change.added;
  }
  const bool shows = change.path.empty() && (has_word(kSearch, name) || has_word(kShow, name));
  const bool weakens = !shows && lowers_protection(change);
  const bool unknown = change.path.empty() && call.acts.size() == first + 1 && call.acts.back().kind == CallClass::kRunning;
  std::vector<Atom> brings = change.path.empty() && !unknown ? std::vector<Atom>() : brought_by(change);
  if (unknown) std::erase_if(brings, [](const Atom& atom) { return atom.kind == Atom::Kind::kName && !is_account(atom); });
  if (!weakens && brings.empty()) return;
  const auto writes = [](const Act& act) {
    return act.kind == CallClass::kWriting || act.kind == CallClass::kPersistence || act.kind == CallClass::kPrivilege;
  };
  auto act = std::find_if(call.acts.begin() + static_cast<std::ptrdiff_t>(first), call.acts.end(), writes);
  if (act == call.acts.end() && change.path.empty() && call.acts.size() > first) act = call.acts.end() - 1;
  if (act == call.acts.end()) {
    if (change.path.empty()) return;
    add_write(change.path, to_line(command), call);
    act = call.acts.end() - 1;
  }
  act->weakens = weakens;
  act->replaces = replaces_like(change);
  if (writes(*act) && act->kind != CallClass::kWriting) act->atoms.insert(act->atoms.end(), brings.begin(), brings.end());
  act->brings = std::move(brings);
}

void note_written(std::string_view path, std::string_view key, std::string_view text, Call& call) {
  if (has_word("patch diff", key)) return add_patch(text, call.writes);
  const bool whole = has_word("content contents filetext text body", key);
  if (!path.empty()) call.writes.push_back({.path = std::string(path), .text = std::string(text), .whole = whole});
}

void read_started(std::string_view code, ShellReader& reader, Call& call) {
  for (const std::string& command : commands_in(code)) {
    Call started;
    read_script(command, reader, started);
    if (!started.unread.empty()) continue;  // no command, then
    call.acts.insert(call.acts.end(), started.acts.begin(), started.acts.end());
  }
}

void read_file_code(const WrittenFile& file, const Act& run, ShellReader& reader, Call& call) {
  const std::string lowered = lower(file_name(file.path));
  const std::size_t before = call.acts.size();
  call.texts.push_back(file.text);
  const std::string_view program = run.words.empty() ? std::string_view() : file_name(run.words[0]);
  if (has_word("make gmake", program)) read_script(recipes_of(file.text, run.words), reader, call);
  else if (lowered == "package.json") read_script(scripts_of(file.text, run.words), reader, call);
  else if (lowered.starts_with("dockerfile") || lowered == "containerfile") read_script(steps_of(file.text, true), reader, call);
  else if (lowered == "justfile" || lowered == ".justfile") read_script(steps_of(file.text, false), reader, call);
  else if (runs_shell(program, file.path, file.text)) read_script(file.text, reader, call);
  else read_code(file.text, run.what, call, literals_of(file.text)), read_started(file.text, reader, call);
  for (std::size_t i = before; i < call.acts.size(); ++i) call.acts[i].of_file = true, call.acts[i].file = file.path;
  // What every script has says nothing of where it comes from.
  std::erase_if(call.acts, [](const Act& act) {
    constexpr std::string_view kPlain = "set shopt shift return exit true false : [ test wait local";
    return act.of_file && act.kind == CallClass::kRunning && !act.words.empty() && has_word(kPlain, act.words[0]);
  });
  for (const Atom& atom : find_atoms(std::string_view(file.text).substr(0, 64U << 10))) {
    if (atom.kind == Atom::Kind::kPath && is_secret_path(atom.text) && call.secrets.size() < 64) call.secrets.push_back(atom.text);
  }
}

}  // namespace belljar::guard
