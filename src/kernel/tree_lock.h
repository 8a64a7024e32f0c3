// A readers-writer lock between all processes of one user that change names below the same directories.
//
// Each directory has a file in the folder of locks, by its device and inode. Who opens a lock joins the file of each of its
// directories, and those of others that are alive and lie above or below: so any two whose directories overlap have one in common,
// the earlier one's.
//
// A reader counts itself in memory that the file shares (nanoseconds), a writer announces itself there and waits until the counted
// readers have left. An open file description lock of fcntl(2) shows that a holder lives; the kernel drops it whatever ended the
// process. So nobody waits for a killed reader, and the next reader clears the flag that a killed writer left. A stopped holder
// (SIGSTOP) is waited for. In a state directory that is not temporary the folder of locks stays with a few files of nobody, to be
// used again. Else the last holder of a file removes it, and the folder with the last file, and whoever made the folders above
// removes them on leaving if they are empty. The path in a file is its first holder's: of one directory with two names (a bind
// mount), what lies below the other name is not found by it.
//
//   TreeLock lock = BELLJAR_TRY(TreeLock::open(state + "/locks", {"/home/me/project"}));
//   { const std::shared_lock reader(lock); ... }      { const std::unique_lock writer(lock); ... }
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "belljar/result.h"

namespace belljar::kernel {

// The folder of locks in a state directory (default_state_dir()).
inline std::string tree_locks_in(const std::string& state_dir) { return state_dir + "/locks"; }

// Move-only. Any thread; a writer may not come while its own process is a reader by the same object, or the other way round: hold
// a std::shared_mutex first. A writer that waits lets no new reader in: a reader waits for no other one, and is one only once.
// Costs a descriptor and a page for each directory. A fork(2)ed child has no use of it.
class TreeLock {
 public:
  // `folder` is made when absent, mode 0700; nobody that is not trusted may write there. `trees`: absolute, without links; what is
  // not there is left out. Waits for nobody but others who open. Errors: of the file system; kResourceExhausted, more than 1000
  // hold one of them.
  static Result<TreeLock> open(const std::string& folder, const std::vector<std::string>& trees);
  TreeLock(TreeLock&&) noexcept;
  TreeLock& operator=(TreeLock&&) = delete;
  ~TreeLock();

  // Whether one that waits gives up. Asked when it first has to, and after each signal that this thread handles.
  using Stop = std::function<bool()>;
  // False: `stop` said so, and nothing is held.
  bool lock(const Stop& stop);
  bool lock_shared(const Stop& stop);
  void lock() { (void)lock(nullptr); }
  void lock_shared() { (void)lock_shared(nullptr); }
  void unlock();
  void unlock_shared();

 private:
  struct TreeFile;
  struct LockFolder;
  TreeLock(std::unique_ptr<LockFolder> folder, std::vector<std::unique_ptr<TreeFile>> files) noexcept;
  std::unique_ptr<LockFolder> folder_;
  std::vector<std::unique_ptr<TreeFile>> files_;  // by name: everybody takes them in that order
};

}  // namespace belljar::kernel
