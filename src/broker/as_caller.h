// Permissions of the calling thread while it acts for a caller.
//
// Identity is per thread in the kernel; the C library's wrappers change all threads (nptl(7)), so these are raw calls. With another
// effective uid the thread has no effective capabilities (capabilities(7)): the kernel judges the socket's mode and records
// SO_PEERCRED as for the caller. Real and saved uid stay root, so processes of that user can neither signal nor trace the thread.
#pragma once

#include <sys/types.h>

namespace belljar::broker {

// Root only: drops supplementary groups of this thread and takes `gid` as its effective group, for good. Once per thread.
void leave_groups(gid_t gid) noexcept;

class AsCaller {
 public:
  // -1 or our own uid: changes nothing. Only on a thread that left its groups.
  explicit AsCaller(uid_t uid) noexcept;
  ~AsCaller();
  AsCaller(const AsCaller&) = delete;
  AsCaller& operator=(const AsCaller&) = delete;

  // Our own permissions again for a moment, for what needs ptrace access to the caller.
  class Suspended {
   public:
    explicit Suspended(AsCaller& permissions) noexcept;
    ~Suspended();
    Suspended(const Suspended&) = delete;
    Suspended& operator=(const Suspended&) = delete;

   private:
    AsCaller& permissions_;
  };

  // False when the kernel refused: act for nobody then.
  bool ok() const noexcept { return ok_; }

 private:
  void enter() noexcept;
  void leave() noexcept;

  uid_t uid_;
  bool changed_ = false;
  bool ok_ = true;
};

}  // namespace belljar::broker
