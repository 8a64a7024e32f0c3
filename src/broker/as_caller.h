// Permissions of the calling thread while it acts for a caller.
//
// Identity is per thread in the kernel; the C library's wrappers change all threads (nptl(7)), so these are raw calls. With another
// effective uid the thread has no effective capabilities (capabilities(7)): the kernel judges the socket's mode and records
// SO_PEERCRED as for the caller. Real and saved uid stay root, so processes of that user can neither signal nor trace the thread.
//
// A change costs 1.4 us (measured), two of them more than most of what a call asks for. So a thread that performs file calls keeps
// what it is from one call to the next: Identity::kReader, the user with CAP_SYS_PTRACE. It reads callers by number and acts on
// files as the user: CAP_SYS_PTRACE opens nothing there but what /proc shows of processes, and before anything on a /proc is
// looked at, the thread becomes Identity::kCaller (path_resolver.h).
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace belljar::broker {

enum class Identity : std::uint8_t {
  kOwn,     // ours
  kReader,  // the sandbox's user and CAP_SYS_PTRACE; kOwn where we do not have that capability to keep
  kCaller,  // the sandbox's user and nothing else
};

// Root only: drops supplementary groups of this thread and takes `gid` as its effective group, for good. Once per thread.
void leave_groups(gid_t gid) noexcept;

// Makes this thread what it says, until the next time. `uid`: the sandbox's user, always the same on one thread; -1 or our own uid:
// nothing changes. False when the kernel refused to make it the user: act for nobody then. Aborts where a thread could not become
// itself again. Only on a thread that left its groups.
bool become(Identity wanted, uid_t uid) noexcept;

// kCaller, or what is asked for, as long as it lives; then what the thread was before.
class AsCaller {
 public:
  explicit AsCaller(uid_t uid, Identity as = Identity::kCaller) noexcept;
  ~AsCaller();
  AsCaller(const AsCaller&) = delete;
  AsCaller& operator=(const AsCaller&) = delete;

  // From here on kCaller. Aborts when the kernel refuses.
  void narrow() noexcept;

  // Our own permissions again for a moment, for what needs more than ptrace access to the caller.
  class Suspended {
   public:
    explicit Suspended(AsCaller& permissions) noexcept;
    ~Suspended();
    Suspended(const Suspended&) = delete;
    Suspended& operator=(const Suspended&) = delete;

   private:
    AsCaller& permissions_;
    Identity before_;
  };

  // False when the kernel refused: act for nobody then.
  bool ok() const noexcept { return ok_; }

 private:
  uid_t uid_;
  Identity before_;
  bool ok_;
};

}  // namespace belljar::broker
