// apply_patch: all of a patch, or nothing of it.
//
// First everything is worked out in memory: each file as it would be after all of its diffs. Only when every hunk fits is anything
// written. Should a write then fail (disk full, a rule), what was written before is put back as it was.
//
// What is copied or renamed is the file before the change (git-diff(1): "All the file1 files in the output refer to files before
// the commit"), whatever the same diff makes of it. A file that is patched twice is patched on.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "tools/arguments.h"
#include "tools/patch.h"
#include "tools/text.h"
#include "tools/tool.h"

namespace belljar::tools {
namespace {

struct Side {
  std::string bytes;
  std::optional<unsigned> mode;  // unset: a new file gets what the umask gives
};

struct Target {
  std::optional<Side> before, after;
  std::optional<Side> base;  // as the commit in hand found it; `before` where there is but one
  std::size_t commit = 0;    // which one that is
  bool changed = false;      // by that commit
  std::size_t at = 0;        // the line of the patch that named it
  bool was_directory = false;
  std::uint64_t added = 0, removed = 0;
  bool patched = false;  // not only read, as what is copied from
  std::string renamed_from;
};

Error escapes(std::string_view path) {
  return Error(Code::kInvalidArgument, format("path escapes workspace: {}", escaped(path)))
      .reason("nothing of the patch was applied")
      .next("name files relative to the workspace, without `..`");
}

// Of the workspace, absolute; `other` may be empty.
struct Names {
  const std::string& workspace;
  const std::string& other;
};

// A name of the patch, relative to the workspace and normal. By its text alone: a patch that names what is outside is refused
// before anything is looked at. Links are the sandbox's to judge.
Result<std::string> inside(const Names& names, std::string_view name) {
  std::string_view rest = name;
  if (rest.find('\0') != std::string_view::npos) return escapes(name);
  if (rest.starts_with('/')) {
    const auto below = [&](const std::string& top) { return !top.empty() && rest.starts_with(top + "/"); };
    if (!below(names.workspace) && !below(names.other)) return escapes(name);
    rest.remove_prefix((below(names.workspace) ? names.workspace : names.other).size() + 1);
  }
  std::string path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (part == "..") return escapes(name);
    if (!part.empty() && part != ".") path += (path.empty() ? "" : "/") + std::string(part);
  }
  if (path.empty()) return escapes(name);
  return path;
}

Error refused(std::size_t at, std::string_view path, Code code, std::string why, std::string next) {
  return Error(code, format("cannot apply the patch: line {}, {}", at, belljar::quoted(path)))
      .reason(std::move(why) + "; nothing of the patch was applied")
      .next(std::move(next));
}

// git tells of a mode only whether the file is executable.
std::optional<unsigned> mode_of(const FilePatch& patch, const Side& old_side) {
  if (!patch.new_mode || (!patch.from && *patch.new_mode == 0644U)) return old_side.mode;
  return patch.new_mode;
}

// "a", "a/b" of "a/b/c".
std::vector<std::string> parents_of(const std::string& path) {
  std::vector<std::string> parents;
  for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1))
    parents.push_back(path.substr(0, end));
  return parents;
}

using Targets = std::map<std::string, Target>;

bool is_removed(const Target& target) noexcept { return target.before && !target.after; }

// A file turns into a directory, or a directory into a file: what stands there goes before anything is written.
bool is_in_the_way(const Targets& targets, const std::string& path) {
  const std::string below = path + "/";
  for (auto at = targets.lower_bound(below); at != targets.end() && at->first.starts_with(below); ++at) {
    if (at->second.after) return true;
  }
  return std::ranges::any_of(parents_of(path), [&](const std::string& parent) {
    const auto known = targets.find(parent);
    return known != targets.end() && known->second.was_directory && known->second.after;
  });
}

class Plan {
 public:
  Plan(const Call& call, Names names) : sandbox_(call.sandbox), call_(call.in_time), names_(names) {}

  Result<void> add(const FilePatch& patch) {
    const std::string from = patch.from ? BELLJAR_TRY(inside(names_, *patch.from)) : std::string();
    const std::string to = patch.to ? BELLJAR_TRY(inside(names_, *patch.to)) : std::string();
    Side old_side;
    if (patch.from) old_side = BELLJAR_TRY(patch.to && from != to ? moved(patch, from) : existing(patch, from));
    if (patch.to && from != to) BELLJAR_CHECK(check_free(patch, to));
    auto patched = apply_hunks(old_side.bytes, patch);
    if (!patched)
      return refused(patch.at, patch.from ? from : to, patched.error().code(),
                     patched.error().what() + ": " + patched.error().reason(), patched.error().next());
    if (!patch.to && !patched->text.empty())
      return refused(patch.at, from, Code::kFailedPrecondition, "the file would be deleted, but the patch does not hold all of it",
                     "use delete, or make the patch from the file as it is now");
    Target& target = targets_[patch.to ? to : from];
    if (patch.to) target.after = Side{std::move(patched->text), mode_of(patch, old_side)};
    else target.after.reset();
    target.patched = target.changed = true;
    target.added += patched->added, target.removed += patched->removed;
    if (patch.from && patch.to && from != to && !patch.copies) {
      targets_[from].after.reset();
      targets_[from].changed = true;
      target.renamed_from = from;
    }
    return {};
  }

  // Once all is added: no file is where a directory must be, and what turns into a file is a directory that the patch empties.
  Result<void> check_places() {
    for (const auto& [path, target] : targets_) {
      if (!target.after) continue;
      for (const std::string& parent : parents_of(path)) {
        const auto planned = targets_.find(parent);
        const auto known = parents_.find(parent);
        const bool is_file =
            planned != targets_.end() ? planned->second.after.has_value() : known != parents_.end() && known->second;
        if (is_file)
          return refused(target.at, path, Code::kFailedPrecondition, format("{} is a file", belljar::quoted(parent)),
                         "let the patch delete it, or name another directory");
      }
      if (target.was_directory) BELLJAR_CHECK(check_emptied(target.at, path));
    }
    return {};
  }

  const Targets& targets() const noexcept { return targets_; }
  // Directories that turn into files, with what they hold of directories; the innermost first.
  const std::vector<FileInfo>& emptied() const noexcept { return emptied_; }

 private:
  Result<Side> existing(const FilePatch& patch, const std::string& path) {
    const Target& target = *BELLJAR_TRY(load(patch, path));
    if (target.after) return *target.after;
    if (target.was_directory) return no_file(patch, path);
    return refused(patch.at, path, Code::kNotFound, "there is no such file", "a new file has `--- /dev/null`");
  }
  Result<Side> moved(const FilePatch& patch, const std::string& path) {
    const Target& target = *BELLJAR_TRY(load(patch, path));
    if (!target.base) return existing(patch, path);
    // As `git diff -B` has it, or two diffs of which the second was made after the first: they mean different files.
    if (!patch.copies && target.changed)
      return refused(patch.at, path, Code::kFailedPrecondition, "it is renamed, and the patch has changed it before",
                     "make the diff without -B, or apply one diff after the other");
    return *target.base;
  }
  Result<void> check_free(const FilePatch& patch, const std::string& path) {
    const Target& target = *BELLJAR_TRY(load(patch, path));
    if (!target.after) return {};
    return refused(patch.at, path, Code::kAlreadyExists, "the patch makes this file, and it is there already",
                   "patch it as it is, with `--- a/NAME`");
  }
  static Error no_file(const FilePatch& patch, const std::string& path) {
    return refused(patch.at, path, Code::kFailedPrecondition, "it is no ordinary file", "patch the file itself");
  }

  // Reads the file, once.
  Result<Target*> load(const FilePatch& patch, const std::string& path) {
    const auto known = targets_.find(path);
    Target& target = known != targets_.end() ? known->second : targets_[path] = BELLJAR_TRY(read(patch, path));
    if (target.commit != patch.commit) target.base = target.after, target.commit = patch.commit, target.changed = false;
    return &target;
  }
  Result<Target> read(const FilePatch& patch, const std::string& path) {
    Target target;
    target.at = patch.at, target.commit = patch.commit;
    if (BELLJAR_TRY(is_under_file(patch, path))) return target;
    auto info = sandbox_.stat(path, call_);
    if (!info && info.error().code() != Code::kNotFound) return std::move(info).error();
    if (!info) return target;
    target.was_directory = info->type == FileType::kDirectory;
    if (target.was_directory) return target;
    if (info->type != FileType::kFile) return no_file(patch, path);
    target.before = target.after = target.base = Side{BELLJAR_TRY(sandbox_.read_file(path, {.call = call_})), info->mode & 0777U};
    return target;
  }

  // One file under two names, by a linked directory, would lose one of its changes.
  Result<bool> is_under_file(const FilePatch& patch, const std::string& path) {
    for (const std::string& parent : parents_of(path)) {
      auto known = parents_.find(parent);
      if (known == parents_.end()) {
        const auto info = sandbox_.stat(parent, call_);
        if (!info) return false;
        if (info->type == FileType::kSymlink)
          return refused(patch.at, path, Code::kFailedPrecondition, format("{} is a symbolic link", belljar::quoted(parent)),
                         "name the file by where it lies");
        known = parents_.emplace(parent, info->type == FileType::kFile).first;
      }
      if (known->second) return true;
    }
    return false;
  }

  Result<void> check_emptied(std::size_t at, const std::string& directory) {
    for (const FileInfo& entry : BELLJAR_TRY(sandbox_.list(directory, call_))) {
      const std::string path = directory + "/" + entry.path;
      const auto planned = targets_.find(path);
      if (entry.type == FileType::kDirectory) BELLJAR_CHECK(check_emptied(at, path));
      else if (planned == targets_.end() || !is_removed(planned->second))
        return refused(at, directory, Code::kFailedPrecondition,
                       format("it is a directory, and {} stays in it", belljar::quoted(path)), "let the patch delete that as well");
    }
    emptied_.push_back(BELLJAR_TRY(sandbox_.stat(directory, call_)));
    return {};
  }

  Sandbox& sandbox_;
  const CallOptions& call_;
  const Names names_;
  Targets targets_;
  std::map<std::string, bool> parents_;  // which are files
  std::vector<FileInfo> emptied_;
};

// Writes what was planned, and takes it back when something fails.
class Writer {
 public:
  explicit Writer(const Call& call) : sandbox_(call.sandbox), call_(call.in_time) {}

  Result<void> write(const Plan& plan) {
    if (auto done = write_all(plan); !done) return undo(done.error());
    return {};
  }

 private:
  Result<void> write_all(const Plan& plan) {
    std::vector<const Targets::value_type*> last;  // a failed write should not cost a file
    for (const auto& planned : plan.targets()) {
      if (!is_removed(planned.second)) continue;
      if (!is_in_the_way(plan.targets(), planned.first)) last.push_back(&planned);
      else BELLJAR_CHECK(remove_one(planned.first, planned.second));
    }
    for (const FileInfo& directory : plan.emptied()) {
      BELLJAR_CHECK(sandbox_.remove(directory.path, {.call = call_}));
      undo_.emplace_back(directory.path, [this, directory] {
        return sandbox_.make_dir(directory.path, {.mode = directory.mode & 0777U, .parents = Parents::kMustExist});
      });
    }
    for (const auto& [path, target] : plan.targets()) BELLJAR_CHECK(write_one(path, target));
    for (const auto* planned : last) BELLJAR_CHECK(remove_one(planned->first, planned->second));
    return {};
  }

  Result<void> remove_one(const std::string& path, const Target& target) {
    BELLJAR_CHECK(sandbox_.remove(path, {.call = call_}));
    undo_.emplace_back(path, [this, path, &target] { return put_back(path, *target.before); });
    return {};
  }

  Result<void> write_one(const std::string& path, const Target& target) {
    if (!target.after) return {};
    if (target.before && target.before->bytes == target.after->bytes && target.before->mode == target.after->mode) return {};
    if (!target.before) note_missing_parents(path);
    WriteOptions options{.how = WriteMode::kAtomic, .call = call_};
    if (!target.before || target.before->mode != target.after->mode) options.mode = target.after->mode;
    BELLJAR_CHECK(sandbox_.write_file(path, target.after->bytes, options));
    undo_.emplace_back(path,
                       [this, path, &target] { return target.before ? put_back(path, *target.before) : sandbox_.remove(path); });
    return {};
  }

  Result<void> put_back(const std::string& path, const Side& side) {
    return sandbox_.write_file(path, side.bytes, {.how = WriteMode::kAtomic, .mode = side.mode});
  }

  void note_missing_parents(const std::string& path) {
    for (const std::string& parent : parents_of(path)) {
      const auto there = sandbox_.stat(parent, call_);
      if (there || there.error().code() != Code::kNotFound) continue;
      undo_.emplace_back(parent, [this, parent]() -> Result<void> {
        (void)sandbox_.remove(parent);  // one with a name in it stays
        return {};
      });
    }
  }

  Error undo(const Error& why) {
    std::string left;
    for (auto at = undo_.rbegin(); at != undo_.rend(); ++at) {
      if (!at->second()) left += (left.empty() ? "" : ", ") + belljar::quoted(at->first);
    }
    const std::string end = left.empty() ? "everything is as it was before" : "what was written could not be put back: " + left;
    return Error(why.code(), "cannot apply the patch: " + why.what())
        .reason(why.reason().empty() ? end : why.reason() + "; " + end)
        .next(why.next());
  }

  Sandbox& sandbox_;
  const CallOptions& call_;                                                  // of what is written, and not of what is put back
  std::vector<std::pair<std::string, std::function<Result<void>()>>> undo_;  // the last first
};

char letter_of(const Target& target) {
  return !target.renamed_from.empty() ? 'R' : !target.before ? 'A' : !target.after ? 'D' : 'M';
}

ToolAnswer answer_of(const Targets& targets) {
  std::set<std::string> gone;  // told with the name they have now
  for (const auto& [path, target] : targets) gone.insert(target.renamed_from);
  ToolAnswer answer;
  Json files = Json::array();
  for (const auto& [path, target] : targets) {
    if (!target.patched || (!target.before && !target.after) || (!target.after && gone.contains(path))) continue;
    const std::string name = target.renamed_from.empty() ? escaped(path) : escaped(target.renamed_from) + " -> " + escaped(path);
    answer.text += format("{} {} (+{} -{})\n", letter_of(target), name, target.added, target.removed);
    Json file{{"path", path}, {"change", std::string(1, letter_of(target))}, {"added", target.added}, {"removed", target.removed}};
    if (!target.renamed_from.empty()) file["from"] = target.renamed_from;
    files.push_back(std::move(file));
  }
  answer.structured = {{"files", std::move(files)}};
  return answer;
}

}  // namespace

std::vector<std::string> paths_of_patch(const Arguments& arguments) {
  const auto patches = parse_patch(arguments.text("patch"));
  std::set<std::string> paths;
  if (patches) {
    for (const FilePatch& patch : *patches) {
      if (patch.from) paths.insert(*patch.from);
      if (patch.to) paths.insert(*patch.to);
    }
  }
  return {paths.begin(), paths.end()};
}

Result<ToolAnswer> apply_patch(Call& call) {
  const std::vector<FilePatch> patches = BELLJAR_TRY(parse_patch(call.arguments.text("patch")));
  const Names names{call.sandbox.workspace(), call.options.workspace_name};
  for (const FilePatch& patch : patches) {
    if (patch.from) BELLJAR_CHECK(inside(names, *patch.from));
    if (patch.to) BELLJAR_CHECK(inside(names, *patch.to));
  }
  Plan plan(call, names);
  for (const FilePatch& patch : patches) BELLJAR_CHECK(plan.add(patch));
  BELLJAR_CHECK(plan.check_places());
  BELLJAR_CHECK(Writer(call).write(plan));
  ToolAnswer answer = answer_of(plan.targets());
  answer.text = shorten(answer.text, call.options.text_bytes, "");
  return answer;
}

}  // namespace belljar::tools
