#include "broker/as_caller.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace belljar::broker {

void leave_groups() noexcept {
  if (::geteuid() == 0) ::syscall(SYS_setgroups, 0, nullptr);
}

AsCaller::AsCaller(uid_t uid, gid_t gid) noexcept {
  if (::geteuid() != 0 || uid == static_cast<uid_t>(-1) || uid == 0) return;
  own_gid_ = ::getegid();
  changed_ = true;
  ok_ = ::syscall(SYS_setresgid, -1, gid, -1) == 0 && ::syscall(SYS_setresuid, -1, uid, -1) == 0;
}

AsCaller::~AsCaller() {
  if (!changed_) return;
  // Both go back to what the thread's real and saved ids allow; if the kernel refuses, nothing below may be trusted.
  if (::syscall(SYS_setresuid, -1, 0, -1) != 0 || ::syscall(SYS_setresgid, -1, own_gid_, -1) != 0) std::abort();
}

}  // namespace belljar::broker
