#include "broker/as_caller.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace belljar::broker {
namespace {

struct Capabilities {
  __user_cap_data_struct sets[2] = {};
};
constexpr unsigned kTrace = 1U << CAP_SYS_PTRACE;

// Of this thread. `permitted` is what it was born with: it stays, for the real and the saved uid do.
struct Thread {
  bool known = false;
  bool can_read = false;  // CAP_SYS_PTRACE is there to be kept
  Identity identity = Identity::kOwn;
  Capabilities born;
};
thread_local Thread current;

bool get_capabilities(Capabilities& out) noexcept {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  return ::syscall(SYS_capget, &header, out.sets) == 0;
}

// Effective: CAP_SYS_PTRACE or none. Permitted stays what it was.
bool set_effective(bool trace) noexcept {
  Capabilities wanted = current.born;
  wanted.sets[0].effective = trace ? kTrace : 0;
  wanted.sets[1].effective = 0;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  return ::syscall(SYS_capset, &header, wanted.sets) == 0;
}

// Back to what the thread's real and saved ids allow; if the kernel refuses, nothing below may be trusted.
void become_own() noexcept {
  if (current.identity != Identity::kOwn && ::syscall(SYS_setresuid, -1, 0, -1) != 0) std::abort();
  current.identity = Identity::kOwn;
}

// A uid other than root's takes all effective capabilities away.
bool become_user(uid_t uid) noexcept {
  if (current.identity != Identity::kOwn) return true;
  if (::syscall(SYS_setresuid, -1, uid, -1) != 0) return false;
  current.identity = Identity::kCaller;
  return true;
}

}  // namespace

void leave_groups(gid_t gid) noexcept {
  if (::geteuid() != 0) return;
  if (::syscall(SYS_setgroups, 0, nullptr) != 0 || ::syscall(SYS_setresgid, -1, gid, -1) != 0) std::abort();
}

bool become(Identity wanted, uid_t uid) noexcept {
  if (current.known && wanted == current.identity) return true;
  if (uid == static_cast<uid_t>(-1) || uid == 0 || ::getuid() != 0) return true;
  if (!current.known) {
    current.known = true;
    current.can_read = get_capabilities(current.born) && (current.born.sets[0].permitted & kTrace) != 0;
  }
  if (wanted == Identity::kReader && !current.can_read) wanted = Identity::kOwn;
  if (wanted == current.identity) return true;
  if (wanted == Identity::kOwn) return become_own(), true;
  if (!become_user(uid)) return false;
  if (wanted == current.identity) return true;
  if (!set_effective(wanted == Identity::kReader)) {
    if (wanted == Identity::kCaller) std::abort();  // what follows would be done with more than the user has
    current.can_read = false;
    become_own();
    return true;
  }
  current.identity = wanted;
  return true;
}

AsCaller::AsCaller(uid_t uid, Identity as) noexcept : uid_(uid), before_(current.identity), ok_(become(as, uid)) {
  // Where no reader can be made, whoever acts is the caller.
  if (ok_ && as == Identity::kReader && current.identity == Identity::kOwn) ok_ = become(Identity::kCaller, uid);
}

AsCaller::~AsCaller() {
  if (!become(before_, uid_)) std::abort();
}

void AsCaller::narrow() noexcept {
  if (!become(Identity::kCaller, uid_)) std::abort();
}

AsCaller::Suspended::Suspended(AsCaller& permissions) noexcept : permissions_(permissions), before_(current.identity) {
  become(Identity::kOwn, permissions_.uid_);
}

AsCaller::Suspended::~Suspended() {
  if (!become(before_, permissions_.uid_)) std::abort();  // what follows would be done as root
}

}  // namespace belljar::broker
