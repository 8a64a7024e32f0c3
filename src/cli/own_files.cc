// Files of ours that a command must neither read nor change: tokens, keys, trails, policies.
//
// A policy says what a command may do with paths, and an option can name a path that the same policy makes
// writable. So each such file becomes a rule of its own, hidden or read-only, unless a rule holds it already.
// Three cases cannot be mended by a rule and are refused. A hidden file in a directory that the command
// writes to: it could put another one in its place. A file that a rule makes writable by name. And a symbolic
// link on the way that the command may point elsewhere, because then the rule would protect the wrong file.
//
// Paths are compared as the kernel knows them, after links were followed. Of a file that does not exist yet
// its directory counts.
#include "cli/own_files.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/paths.h"
#include "base/real_path.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "cli/load.h"
#include "policy/paths.h"

namespace belljar::cli {
namespace {

// The rules of files by the names that the kernel knows them by; a volume is written to where it comes from.
class Rules {
 public:
  explicit Rules(const LoadedPolicy& loaded) {
    for (FsEntry entry : loaded.effective.complete.entries) {
      if (entry.glob) continue;
      entry.path = real_path_or_given(entry.path);
      filesystem_.entries.push_back(std::move(entry));
    }
    for (const Volume& volume : loaded.effective.policy.filesystem.volumes) {
      if (volume.readonly) continue;
      filesystem_.entries.push_back(
          {.path = real_path_or_given(volume.source), .access = Access::kWrite, .origin = {"volume", "", 0}});
    }
  }
  const FsEntry* of(const std::string& path) const { return find_rule(filesystem_, path); }
  bool writable(const std::string& path) const {
    const FsEntry* rule = of(path);
    return rule != nullptr && rule->access == Access::kWrite;
  }

 private:
  Filesystem filesystem_;
};

// A link on the way that a command may point elsewhere; empty: there is none.
std::string loose_link(const std::string& path, const Rules& rules) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string part = path.substr(0, slash);
    struct stat status{};
    if (::lstat(part.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) {
      if (rules.writable(real_path_or_given(parent_of(part)))) return part;
    }
    if (slash == std::string::npos) return {};
  }
}

Result<void> protect(const OwnFile& file, const Rules& rules, LoadedPolicy& loaded) {
  const auto refuse = [&](std::string why) {
    return Error(Code::kInvalidArgument, format("cannot {} {}", file.doing, belljar::quoted(file.path)))
        .reason(std::move(why))
        .next(file.protection == Protection::kHidden
                  ? "put it in a directory of its own below ~/.local/state/belljar, which no sandbox sees"
                  : "put it where the command does not write");
  };
  const std::string full = policy::normal(file.path.starts_with('/') ? file.path : loaded.context.cwd + "/" + file.path);
  if (const std::string link = loose_link(full, rules); !link.empty())
    return refuse(format("the command may point the symbolic link {} elsewhere", belljar::quoted(link)));
  std::string real = real_path(full);
  if (real.empty()) {
    const std::string directory = real_path(parent_of(full));
    if (directory.empty())
      return Error(Code::kNotFound, format("cannot {} {}", file.doing, belljar::quoted(file.path)))
          .sys(errno, "realpath")
          .next("its directory must exist");
    real = policy::normal(directory + full.substr(full.rfind('/')));
  }
  const FsEntry* rule = rules.of(real);
  const bool writable = rule != nullptr && rule->access == Access::kWrite;
  if (file.protection == Protection::kHidden && (writable || rules.writable(parent_of(real))))
    return refuse("the command may write there");
  if (file.protection == Protection::kReadOnly && writable && rule->path == real)
    return refuse(format("a rule makes it writable ({})", to_string(rule->origin)));
  const bool kept = file.protection == Protection::kHidden ? rule != nullptr && rule->access == Access::kNone : !writable;
  if (kept) return {};
  const FsEntry entry{
      real, false, file.protection == Protection::kHidden ? Access::kNone : Access::kRead, {"flag " + file.option, "", 0}};
  loaded.effective.policy.filesystem.entries.push_back(entry);
  loaded.effective.complete.entries.push_back(entry);
  return {};
}

}  // namespace

Result<void> keep_own_files(const std::vector<OwnFile>& files, LoadedPolicy& loaded) {
  const Mode mode = loaded.effective.policy.mode;
  if (files.empty() || mode == Mode::kDangerFullAccess || mode == Mode::kExternalSandbox) return {};
  const Rules rules(loaded);
  for (const OwnFile& file : files) BELLJAR_CHECK(protect(file, rules, loaded));
  return {};
}

}  // namespace belljar::cli
