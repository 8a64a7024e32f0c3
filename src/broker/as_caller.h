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

  // False when the kernel refused: act for nobody then.
  bool ok() const noexcept { return ok_; }

 private:
  bool changed_ = false;
  bool ok_ = true;
};

}  // namespace belljar::broker
