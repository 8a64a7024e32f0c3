// apply_patch: all of a patch, or nothing of it.
//
// First everything is worked out in memory: each file as it would be after all of its diffs. Only when every hunk fits is anything
// written. Should a write then fail (disk full, a rule), what was written before is put back as it was.
#include <algorithm>
#include <cstddef>
#include <cstdint>
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
  std::uint64_t added = 0, removed = 0;
  bool patched = false;  // not only read, as what is copied from
  std::string renamed_from;
};

Error escapes(std::string_view path) {
  return Error(Code::kInvalidArgument, format("path escapes workspace: {}", escaped(path)))
      .reason("nothing of the patch was applied")
      .next("name files relative to the workspace, without `..`");
}

// A name of the patch, relative to the workspace and normal. By its text alone: a patch that names what is outside is refused
// before anything is looked at. Links are the sandbox's to judge.
Result<std::string> inside(const std::string& workspace, std::string_view name) {
  std::string_view rest = name;
  if (rest.find('\0') != std::string_view::npos) return escapes(name);
  if (rest.starts_with('/')) {
    const std::string root = workspace + "/";
    if (!rest.starts_with(root)) return escapes(name);
    rest.remove_prefix(root.size());
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

Error refused(const FilePatch& patch, std::string_view path, Code code, std::string why, std::string next) {
  return Error(code, format("cannot apply the patch: line {}, {}", patch.at, belljar::quoted(path)))
      .reason(std::move(why) + "; nothing of the patch was applied")
      .next(std::move(next));
}

// git tells of a mode only whether the file is executable.
std::optional<unsigned> mode_of(const FilePatch& patch, const Side& old_side) {
  if (!patch.new_mode || (!patch.from && *patch.new_mode == 0644U)) return old_side.mode;
  return patch.new_mode;
}

class Plan {
 public:
  explicit Plan(Sandbox& sandbox) : sandbox_(sandbox) {}

  Result<void> add(const FilePatch& patch) {
    const std::string from = patch.from ? BELLJAR_TRY(inside(sandbox_.workspace(), *patch.from)) : std::string();
    const std::string to = patch.to ? BELLJAR_TRY(inside(sandbox_.workspace(), *patch.to)) : std::string();
    Side old_side;
    if (patch.from) old_side = BELLJAR_TRY(existing(patch, from));
    if (patch.to && from != to) BELLJAR_CHECK(check_free(patch, to));
    auto patched = apply_hunks(old_side.bytes, patch);
    if (!patched)
      return refused(patch, patch.from ? from : to, patched.error().code(),
                     patched.error().what() + ": " + patched.error().reason(), patched.error().next());
    if (!patch.to && !patched->text.empty())
      return refused(patch, from, Code::kFailedPrecondition, "the file would be deleted, but the patch does not hold all of it",
                     "use delete, or make the patch from the file as it is now");
    Target& target = targets_[patch.to ? to : from];
    if (patch.to) target.after = Side{std::move(patched->text), mode_of(patch, old_side)};
    else target.after.reset();
    target.patched = true;
    target.added += patched->added, target.removed += patched->removed;
    if (patch.from && patch.to && from != to && !patch.copies) {
      targets_[from].after.reset();
      target.renamed_from = from;
    }
    return {};
  }

  const std::map<std::string, Target>& targets() const noexcept { return targets_; }

 private:
  Result<Side> existing(const FilePatch& patch, const std::string& path) {
    const Target& target = *BELLJAR_TRY(load(patch, path));
    if (target.after) return *target.after;
    return refused(patch, path, Code::kNotFound, "there is no such file", "a new file has `--- /dev/null`");
  }
  Result<void> check_free(const FilePatch& patch, const std::string& path) {
    const Target& target = *BELLJAR_TRY(load(patch, path));
    if (!target.after) return {};
    return refused(patch, path, Code::kAlreadyExists, "the patch makes this file, and it is there already",
                   "patch it as it is, with `--- a/NAME`");
  }

  // Reads the file, once.
  Result<Target*> load(const FilePatch& patch, const std::string& path) {
    if (const auto known = targets_.find(path); known != targets_.end()) return &known->second;
    BELLJAR_CHECK(check_parents(patch, path));
    Target target;
    auto info = sandbox_.stat(path);
    if (!info && info.error().code() != Code::kNotFound) return std::move(info).error();
    if (info && info->type != FileType::kFile)
      return refused(patch, path, Code::kFailedPrecondition, "it is no ordinary file", "patch the file itself");
    if (info) target.before = target.after = Side{BELLJAR_TRY(sandbox_.read_file(path)), info->mode & 0777U};
    return &(targets_[path] = std::move(target));
  }

  // One file under two names, by a linked directory, would lose one of its changes.
  Result<void> check_parents(const FilePatch& patch, const std::string& path) {
    for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
      const std::string parent = path.substr(0, end);
      if (!checked_.insert(parent).second) continue;
      const auto info = sandbox_.stat(parent);
      if (info && info->type == FileType::kSymlink)
        return refused(patch, path, Code::kFailedPrecondition, format("{} is a symbolic link", belljar::quoted(parent)),
                       "name the file by where it lies");
      if (!info) return {};
    }
    return {};
  }

  Sandbox& sandbox_;
  std::map<std::string, Target> targets_;
  std::set<std::string> checked_;
};

// Writes what was planned, and takes it back when something fails.
class Writer {
 public:
  explicit Writer(Sandbox& sandbox) : sandbox_(sandbox) {}

  Result<void> write(const std::map<std::string, Target>& targets) {
    for (const auto& [path, target] : targets) {
      if (auto done = write_one(path, target); !done) return undo(std::move(done).error());
    }
    // Last: a failed write must not cost a file.
    for (const auto& [path, target] : targets) {
      if (!target.before || target.after) continue;
      if (auto done = sandbox_.remove(path); !done) return undo(std::move(done).error());
      done_.emplace_back(path, &target);
    }
    return {};
  }

 private:
  Result<void> write_one(const std::string& path, const Target& target) {
    if (!target.after) return {};
    if (target.before && target.before->bytes == target.after->bytes && target.before->mode == target.after->mode) return {};
    if (!target.before) note_missing_parents(path);
    WriteOptions options{.how = WriteMode::kAtomic};
    if (!target.before || target.before->mode != target.after->mode) options.mode = target.after->mode;
    BELLJAR_CHECK(sandbox_.write_file(path, target.after->bytes, options));
    done_.emplace_back(path, &target);
    return {};
  }

  void note_missing_parents(const std::string& path) {
    for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
      if (!sandbox_.stat(path.substr(0, end))) made_.insert(path.substr(0, end));
    }
  }

  Error undo(Error why) {
    std::string left;
    for (auto at = done_.rbegin(); at != done_.rend(); ++at) {
      const auto& before = at->second->before;
      const auto undone = before ? sandbox_.write_file(at->first, before->bytes, {.how = WriteMode::kAtomic, .mode = before->mode})
                                 : sandbox_.remove(at->first);
      if (!undone) left += (left.empty() ? "" : ", ") + belljar::quoted(at->first);
    }
    for (auto at = made_.rbegin(); at != made_.rend(); ++at) (void)sandbox_.remove(*at);  // one with a name in it stays
    const std::string end = left.empty() ? "everything is as it was before" : "what was written could not be put back: " + left;
    return Error(why.code(), "cannot apply the patch: " + why.what())
        .reason(why.reason().empty() ? end : why.reason() + "; " + end)
        .next(why.next());
  }

  Sandbox& sandbox_;
  std::vector<std::pair<std::string, const Target*>> done_;
  std::set<std::string> made_;  // sorted: a parent stands before what is in it
};

char letter_of(const Target& target) {
  return !target.renamed_from.empty() ? 'R' : !target.before ? 'A' : !target.after ? 'D' : 'M';
}

Answer answer_of(const std::map<std::string, Target>& targets) {
  std::set<std::string> gone;  // told with the name they have now
  for (const auto& [path, target] : targets) gone.insert(target.renamed_from);
  Answer answer;
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

Result<Answer> apply_patch(Call& call) {
  const std::vector<FilePatch> patches = BELLJAR_TRY(parse_patch(call.arguments.text("patch")));
  for (const FilePatch& patch : patches) {
    if (patch.from) BELLJAR_CHECK(inside(call.sandbox.workspace(), *patch.from));
    if (patch.to) BELLJAR_CHECK(inside(call.sandbox.workspace(), *patch.to));
  }
  Plan plan(call.sandbox);
  for (const FilePatch& patch : patches) BELLJAR_CHECK(plan.add(patch));
  BELLJAR_CHECK(Writer(call.sandbox).write(plan.targets()));
  Answer answer = answer_of(plan.targets());
  answer.text = shorten(answer.text, call.options.text_bytes, "");
  return answer;
}

}  // namespace belljar::tools
