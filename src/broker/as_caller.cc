#include "broker/as_caller.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace belljar::broker {

void leave_groups(gid_t gid) noexcept {
  if (::geteuid() != 0) return;
  if (::syscall(SYS_setgroups, 0, nullptr) != 0 || ::syscall(SYS_setresgid, -1, gid, -1) != 0) std::abort();
}

AsCaller::AsCaller(uid_t uid) noexcept : uid_(uid) { enter(); }

AsCaller::~AsCaller() { leave(); }

void AsCaller::enter() noexcept {
  if (uid_ == static_cast<uid_t>(-1) || uid_ == 0 || ::geteuid() != 0) return;
  changed_ = true;
  ok_ = ::syscall(SYS_setresuid, -1, uid_, -1) == 0;
}

void AsCaller::leave() noexcept {
  // Back to what the thread's real and saved ids allow; if the kernel refuses, nothing below may be trusted.
  if (std::exchange(changed_, false) && ::syscall(SYS_setresuid, -1, 0, -1) != 0) std::abort();
}

AsCaller::Suspended::Suspended(AsCaller& permissions) noexcept : permissions_(permissions) { permissions_.leave(); }

AsCaller::Suspended::~Suspended() {
  permissions_.enter();
  if (!permissions_.ok()) std::abort();  // what follows would be done as root
}

}  // namespace belljar::broker
