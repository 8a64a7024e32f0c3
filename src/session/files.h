// The file calls of a Sandbox, performed by the caller's own thread in the sandbox's own view: everything is relative to a
// descriptor of the workspace as seen from inside, with the permissions of the commands inside, and judged once more by the
// policy's rules on the path that the kernel says was reached.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/files.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::session {

struct FilesOptions {
  UniqueFd root;          // "/" inside
  std::string workspace;  // absolute and canonical inside
  uid_t uid = static_cast<uid_t>(-1);
  gid_t gid = static_cast<gid_t>(-1);  // whom to act as, when we are root; -1: ourselves
  std::optional<Filesystem> rules;     // unset: the mode has none
};

// A resource. Safe from any thread.
class Files {
 public:
  // Errors: kNotFound, kPermissionDenied: the workspace cannot be reached inside.
  static Result<Files> open(FilesOptions options);

  Result<std::string> read(const std::string& path, const ReadOptions& options) const;
  Result<void> write(const std::string& path, std::string_view bytes, const WriteOptions& options) const;
  Result<std::vector<FileInfo>> list(const std::string& path) const;
  Result<FileInfo> stat(const std::string& path) const;
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) const;
  Result<void> rename(const std::string& from, const std::string& to) const;
  Result<void> remove(const std::string& path, const RemoveOptions& options) const;
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) const;
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) const;

  const std::string& workspace() const noexcept { return options_.workspace; }
  // `cwd` of a command (empty: the workspace) as an absolute path inside.
  Result<std::string> find_cwd(const std::string& cwd) const;
  // A new terminal of the sandbox's devpts.
  Result<UniqueFd> open_terminal() const;

 private:
  struct Place {  // where a name lives, or will
    UniqueFd parent;
    std::string name;
    std::string full;  // canonical path inside
  };
  Files(FilesOptions options, UniqueFd workspace) : options_(std::move(options)), workspace_(std::move(workspace)) {}
  Result<std::string> relative(const std::string& path) const;
  Result<UniqueFd> open_beneath(const std::string& path, const std::string& relative, int flags, unsigned mode = 0) const;
  Result<Place> find_place(const std::string& path) const;
  Result<void> make_parents(const std::string& path, const std::string& relative, std::optional<unsigned> mode) const;
  Result<void> may(const std::string& path, const std::string& canonical, Access wanted) const;
  Result<UniqueFd> open_file(const std::string& path, int flags) const;
  Result<void> write_here(const std::string& path, const std::string& relative, std::string_view bytes,
                          const WriteOptions& options) const;
  Result<void> replace(const std::string& path, std::string_view bytes, const WriteOptions& options) const;

  FilesOptions options_;
  UniqueFd workspace_;
};

// One entry of a directory, by lstat(2). nullopt: it is gone again.
std::optional<FileInfo> describe(int directory, const std::string& name);

// The sentence for an errno of a file call; `path` as the caller wrote it.
Error file_error(int errnum, std::string_view doing, const std::string& path, std::string call);

}  // namespace belljar::session
