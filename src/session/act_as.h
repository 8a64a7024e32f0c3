// The calling thread acts on files as the commands inside would.
#pragma once

#include <sys/types.h>

namespace belljar::session {

// Root only; -1: changes nothing. Effective and file-system ids of this thread alone, by raw calls (the C library's wrappers change
// all threads, nptl(7)); without effective uid 0 there are no effective capabilities (capabilities(7)). Real and saved ids stay, so
// processes of that user can neither signal nor trace us. Supplementary groups stay, too: files here belong to the lent ids, all
// others of the workspace to the overflow id. The destructor gives the ids back, or ends the program.
class ActAs {
 public:
  ActAs(uid_t uid, gid_t gid) noexcept;
  ~ActAs();
  ActAs(const ActAs&) = delete;
  ActAs& operator=(const ActAs&) = delete;

 private:
  bool changed_ = false;
  gid_t own_gid_ = 0;
};

}  // namespace belljar::session
