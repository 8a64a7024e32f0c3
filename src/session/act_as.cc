// The raw system calls change one thread; the C library's functions change all threads of the process
// (nptl(7)). The group goes first on the way down and last on the way back, because to set the group needs the
// capability that goes with effective uid 0 (setresgid(2), capabilities(7)).
#include "session/act_as.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace belljar::session {

ActAs::ActAs(uid_t uid, gid_t gid) noexcept {
  if (uid == static_cast<uid_t>(-1) || uid == 0 || ::geteuid() != 0) return;
  own_gid_ = ::getegid();
  changed_ = true;
  // Half a change must not be acted on.
  if (::syscall(SYS_setresgid, -1, gid, -1) != 0 || ::syscall(SYS_setresuid, -1, uid, -1) != 0) std::abort();
}

ActAs::~ActAs() {
  if (!changed_) return;
  if (::syscall(SYS_setresuid, -1, 0, -1) != 0 || ::syscall(SYS_setresgid, -1, own_gid_, -1) != 0) std::abort();
}

}  // namespace belljar::session
