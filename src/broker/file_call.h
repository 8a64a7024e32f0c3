// One intercepted call on files while it is resolved, judged and performed. See file_calls.h for the order of things.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "broker/as_caller.h"
#include "broker/context.h"
#include "broker/file_rules.h"
#include "broker/path_resolver.h"
#include "broker/receivers.h"

namespace belljar::broker {

// What a call without a `dirfd` argument starts at.
inline constexpr auto kFromCwd = static_cast<std::uint64_t>(AT_FDCWD);

// Of a system call that returns 0 or -1: 0 or -errno.
inline int result_of(int status) { return status == 0 ? 0 : -errno; }

// Answers what is near a name by looking it up from the directory that holds it.
class DirSurroundings final : public Surroundings {
 public:
  explicit DirSurroundings(int dir) noexcept : dir_(dir) {}
  bool exists(int up, std::string_view name) const override;
  // By the birth time of the inode, statx(2).
  bool stood_before(int up, std::string_view name, const timespec& when) const override;

 private:
  int dir_;
};

// The directories shared, or nothing: the caller has gone or has a signal to see while another process held them.
std::shared_lock<Directories> share_directories(Context& context, Receivers::Slot& slot);

class FileCall {
 public:
  FileCall(Context& given, const Call& which, Receivers::Slot& its_slot)
      : context(given), call(which), slot(its_slot), caller(which.tid) {
    become(Identity::kReader, context.options.uid);
  }

  // Everything that is read from the caller by number comes first, then begin(). All are 0 or -errno.
  //
  // A path argument, and the directory it starts at where it is relative. `dirfd` is an int in a register, AT_FDCWD included.
  int read_path(std::uint64_t address, std::string& path);
  // Two of them: what is wrong with the first, and in `second_status` with the second.
  int read_paths(std::uint64_t first, std::string& path, std::uint64_t second, std::string& second_path, int& second_status);
  int open_start(std::uint64_t dirfd, std::string_view path, StartDir& start);
  // The caller's root; still waiting; from here on with its permissions (and until a path needs less, CAP_SYS_PTRACE:
  // path_resolver.h). -ESRCH: gone, nothing may be done.
  int begin();
  PathResolver& resolver() { return *resolver_; }
  AsCaller& permissions() { return *permissions_; }
  void end() { permissions_.reset(); }

  // Rules by name. Held from before a path is resolved until the call is done: a directory that changes its path would carry
  // what was judged under its old name to a new one.
  bool judged() const { return context.options.rules != nullptr && context.options.rules->any(); }
  // 0, or -kRestart: the caller has gone or has a signal to see while another process held them, and nothing may be done.
  int share_directories();
  int own_directories();
  void release_directories();
  // Alone before a marker of a git directory gets its name: two of them, made at once under shared locks, would each be judged as
  // the first. What was found of `entry`, and of `other`, has to be found again then. As own_directories().
  int own_for_marker(DirEntry& entry, DirEntry* other = nullptr);

  Ruling rule(Act act, DirEntry& entry, bool is_dir) const;
  // The same of a name that is about to go away (FileRules::removal_rule); git itself may.
  Ruling removal_rule(DirEntry& entry);
  Ruling rule_link(DirEntry& entry, std::string_view text) const;  // a symbolic link
  // Whether rules by name may ever apply to what lies there, whatever they say of it now.
  bool judges(DirEntry& entry) const;
  // The answer to any act on what has no known path (path_of() is empty).
  static Ruling unnamed();
  // Where rules alone hold paths: 0 or -errno for an object, or for "/NAME" below it.
  int judge_object(Act act, int object, std::string_view below = {});
  // Records a violation and returns -errnum.
  int refuse(Act act, std::string target, const Ruling& ruling, std::string_view because = {});
  // What the kernel said about an act: when a rule of the policy explains it, a violation, unless this call was told of already.
  // Returns what the caller is to get: EACCES for a hidden name, whatever its mask says. On `entry`; on what `object` is open on;
  // on a path that PathResolver::parent() (kStay) or object() could not resolve.
  int explain(Act act, DirEntry& entry, int status);
  int explain_object(Act act, int object, int status);
  int explain_way(Act act, int start, std::string_view path, PathResolver::Last last, int status);
  // Of a name that takes part and is not the one that the act is told under: only whether it is hidden.
  int explain_hidden(Act act, DirEntry& entry, int status);
  int explain_mode(Act act, const std::string& path, int status);
  bool told() const { return told_; }

  // This thread's umask is the caller's from here on.
  void adopt_umask();

  Context& context;
  const Call& call;
  Receivers::Slot& slot;
  Caller caller;

 private:
  // What the rules say (`ask`) of the entry, unless it has no path or is none of the command's business.
  template <class Ask>
  Ruling ask(DirEntry& entry, Ask ask) const;

  // By what the policy says of the errno `asked` at `path`, which is the answer then; `target` is told. Else `status`.
  int tell(Act act, const std::string& path, int asked, std::string target, int status);

  bool told_ = false;  // one act, one violation
  UniqueFd own_root_;
  std::optional<AsCaller> permissions_;
  std::optional<PathResolver> resolver_;
  std::shared_lock<Directories> shared_;
  std::unique_lock<Directories> exclusive_;
};

bool exists_at(int dir, const std::string& name);
// Something is mounted on the name, as `dir` sees it. The kernel's own answer to a rename or removal of a mount point is EBUSY only
// for mounts of the caller's namespace, and we are in another: it would take the mount off instead (fs/namei.c,
// is_local_mountpoint).
bool is_mount_point(int dir, const std::string& name);

}  // namespace belljar::broker
