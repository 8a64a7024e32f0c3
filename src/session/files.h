// The file calls of a Sandbox, performed by the caller's own thread in the sandbox's own view: everything is relative to a
// descriptor of the workspace as seen from inside, or lies in another place that the policy opens by name (a root), with the
// permissions of the commands inside, and judged by the policy's rules on the path that the kernel says was reached (judge.h).
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "session/judge.h"

namespace belljar::session {

// Where a descriptor of ours stands, as seen inside.
std::string canonical_of(int fd);

// The places beyond the workspace that the policy opens by name, by their names inside. Not what Belljar gives by itself (the rest
// of the host to read, /tmp, caches), and not what a file in the workspace names: that may only narrow.
std::vector<std::string> roots_of(const Filesystem& filesystem);

struct FilesOptions {
  UniqueFd root;                   // "/" inside
  std::string workspace;           // absolute and canonical inside
  std::string named;               // another name of it, absolute: as text, a prefix of paths; empty: it has none
  std::vector<std::string> roots;  // further places that calls reach, absolute inside
  uid_t uid = static_cast<uid_t>(-1);
  gid_t gid = static_cast<gid_t>(-1);  // whom to act as, when we are root; -1: ourselves
  Rules rules;
};

// A resource. Safe from any thread. No FIFO, device or socket is waited for; what could take long (a large file, a directory of
// many names, a tree) looks between two parts whether the call is over, the rest when it begins.
class Files {
 public:
  // Errors: kNotFound, kPermissionDenied: the workspace cannot be reached inside.
  static Result<Files> open(FilesOptions options);

  Result<std::string> read(const std::string& path, const ReadOptions& options) const;
  Result<void> write(const std::string& path, std::string_view bytes, const WriteOptions& options) const;
  Result<std::vector<FileInfo>> list(const std::string& path, const CallOptions& options = {}) const;
  Result<FileInfo> stat(const std::string& path, const CallOptions& options = {}) const;
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) const;
  Result<void> rename(const std::string& from, const std::string& to, const CallOptions& options = {}) const;
  Result<void> remove(const std::string& path, const RemoveOptions& options) const;
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) const;
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) const;

  // A directory of the workspace, to hold (O_PATH).
  Result<UniqueFd> open_dir(const std::string& path) const;
  // Where a directory stands below the workspace, links resolved; "." for the workspace itself.
  Result<std::string> below(const std::string& path) const;
  // A pattern relative to the workspace. Errors: policy::glob_below.
  Result<std::string> glob_below(const std::string& pattern) const;
  struct WatchedDir {
    int watch = -1;                 // inotify's number
    std::vector<FileInfo> entries;  // what lay in it once it was watched
  };
  // Adds a directory, no link on the way to it, to an inotify instance (watch.cc).
  Result<WatchedDir> watch_dir(int inotify, const std::string& path) const;

  const std::string& workspace() const noexcept { return options_.workspace; }
  // `cwd` of a command (empty: the workspace) as an absolute path inside.
  Result<std::string> find_cwd(const std::string& cwd) const;
  // A new terminal of the sandbox's devpts.
  Result<UniqueFd> open_terminal() const;

 private:
  // A directory, or a file (then nothing lies below it), or what is not there yet.
  struct Root {
    std::string named, canonical;
    bool directory;
  };
  // Where a path leads inside, as text without a link: what is missing counts as what it is written as. `failed`: no command gets
  // there (a ".." behind what is missing or is no directory, too many links).
  struct ResolvedPath {
    std::string path;
    int failed = 0;
  };
  enum class Last { kFollow, kLeave };  // a link at the end

  Files(FilesOptions options, UniqueFd workspace, std::vector<Root> roots)
      : options_(std::move(options)),
        judge_(options_.rules),
        workspace_(std::move(workspace)),
        roots_(std::move(roots)),
        canonical_(canonical_of(workspace_.get())) {}
  // Below the workspace; or absolute, in a root.
  Result<std::string> relative(const std::string& path) const;
  const Root* root_of(std::string_view path) const;
  static void add_canonical(const std::vector<Root>& roots, std::shared_ptr<const Filesystem>& rules);
  bool is_inside(std::string_view path) const;
  ResolvedPath resolve_as_text(const std::string& path, Last last) const;
  // As open_at() beneath the workspace or a root, and through links and ".." that lead from one into the other. -1 and errno.
  int open_within(const std::string& relative, int flags, unsigned mode = 0) const;
  Result<UniqueFd> open_beneath(const std::string& path, const std::string& relative, int flags, unsigned mode = 0) const;
  // An open of `relative` failed since it leads outside, or would as text if what is missing were there.
  bool leads_out(int errnum, const std::string& relative) const;
  Result<Site> find_site(const std::string& path) const;
  // As find_site(), and through the links at its end. `info`: what stands there.
  Result<Site> find_target(const std::string& path, std::optional<FileInfo>& info) const;
  Result<void> make_parents(const std::string& path, const std::string& relative, std::optional<unsigned> mode) const;
  std::vector<std::string> missing_parents(const std::string& relative) const;
  Result<UniqueFd> open_file(const std::string& path, int flags) const;
  std::string full_path(const std::string& below) const;  // of what relative() gives
  // Where a pattern looks: "." or a root, and what is asked of paths below that.
  struct Search {
    std::string top, prefix, pattern;
  };
  Result<Search> search_of(const std::string& pattern) const;
  bool may_list(const std::string& below) const;
  Result<void> write_there(const std::string& path, std::string_view bytes, const WriteOptions& options) const;
  Result<bool> write_once(const std::string& path, std::string_view bytes, const WriteOptions& options) const;
  Result<void> write_judged(const std::string& path, const Site& site, const broker::Ruling& ruling, std::string_view bytes,
                            const WriteOptions& options) const;
  Result<void> rename_judged(const std::string& from, const std::string& to, const Site& source, const Site& target,
                             const broker::Ruling& ruling) const;
  Result<void> replace(const std::string& path, const Site& site, std::string_view bytes, const WriteOptions& options) const;

  FilesOptions options_;
  Judge judge_;
  UniqueFd workspace_;
  std::vector<Root> roots_;
  std::string canonical_;  // of it: what is mounted inside keeps its name
};

// Its size. Errors: EISDIR; kFailedPrecondition for FIFOs, devices and sockets.
Result<std::uint64_t> need_regular(int fd, const std::string& path, const char* doing);

// One entry of a directory, by lstat(2). nullopt: it is gone again.
std::optional<FileInfo> describe(int directory, const std::string& name);

// openat2(2), again while something on the way is being renamed. -1 and errno.
int open_at(int directory, const std::string& relative, int flags, unsigned mode, std::uint64_t resolve);

// The sentence for an errno of a file call; `path` as the caller wrote it.
Error file_error(int errnum, std::string_view doing, const std::string& path, std::string call);

}  // namespace belljar::session
