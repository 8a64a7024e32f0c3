#include "launch/clone_error.h"

#include <fcntl.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "kernel/landlock.h"
#include "kernel/small_file.h"

namespace belljar::launch {
namespace {

constexpr char kInAnother[] =
    "inside another Belljar, where Landlock is refused, too, start that one with --allow-nested-userns, this one with "
    "--enable-weaker-nested-sandbox";

// Not where an outer sandbox refuses that as well.
const char* or_landlock() noexcept { return kernel::landlock_abi() > 0 ? ", or choose --backend landlock" : ""; }

}  // namespace

Error clone_error(int error, bool user_namespace) {
  Error failure(error == EAGAIN ? Code::kResourceExhausted : Code::kFailedPrecondition,
                user_namespace ? "cannot create a user namespace" : "cannot create the sandbox's namespaces");
  std::string reason;
  std::string next = "see `belljar doctor`";
  if (error == EAGAIN) {
    reason = "no process is free: the limit on processes of this user or machine is reached";
    next = "end other processes or raise `ulimit -u`";
  } else if (error == EMFILE || error == ENFILE) {
    next = kMoreFiles;
  } else if (error == ENOSPC || error == EUSERS) {
    reason = "the limit on namespaces is reached (user.max_*_namespaces)";
    next = format("raise /proc/sys/user/max_user_namespaces{}; see `belljar doctor`", or_landlock());
  } else if (error == ENOSYS) {
    reason = "an outer sandbox (Belljar, Docker's default filter) refuses it, or the kernel is older than 5.3";
    next = format("run outside of the other sandbox{}; {}", or_landlock(), kInAnother);
  } else if (error == EPERM) {
    const auto allowed = kernel::read_small_file(AT_FDCWD, "/proc/sys/kernel/unprivileged_userns_clone");  // Debian's own
    const bool off = allowed && allowed->starts_with('0');
    reason = off ? "kernel.unprivileged_userns_clone is 0" : "this kernel or an outer container refuses user namespaces";
    next = off ? format("run `sudo sysctl kernel.unprivileged_userns_clone=1`{}; see `belljar doctor`", or_landlock())
               : format("see `belljar doctor` for the cause{}; {}", or_landlock(), kInAnother);
  }
  return std::move(failure).sys(error, "clone3").reason(std::move(reason)).next(std::move(next));
}

}  // namespace belljar::launch
