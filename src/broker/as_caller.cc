#include "broker/as_caller.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace belljar::broker {

void leave_groups(gid_t gid) noexcept {
  if (::geteuid() != 0) return;
  if (::syscall(SYS_setgroups, 0, nullptr) != 0 || ::syscall(SYS_setresgid, -1, gid, -1) != 0) std::abort();
}

AsCaller::AsCaller(uid_t uid) noexcept {
  if (uid == static_cast<uid_t>(-1) || uid == 0 || ::geteuid() != 0) return;
  changed_ = true;
  ok_ = ::syscall(SYS_setresuid, -1, uid, -1) == 0;
}

AsCaller::~AsCaller() {
  // Back to what the thread's real and saved ids allow; if the kernel refuses, nothing below may be trusted.
  if (changed_ && ::syscall(SYS_setresuid, -1, 0, -1) != 0) std::abort();
}

}  // namespace belljar::broker
