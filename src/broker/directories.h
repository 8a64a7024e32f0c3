// Who may give a directory a new path, or make a marker of a git directory, and who acts on names meanwhile: the calls of one
// sandbox among themselves, and those of every sandbox and commit that has directories in common with it.
#pragma once

#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "kernel/tree_lock.h"

namespace belljar::broker {

// For std::shared_lock and std::unique_lock. From any thread.
class Directories {
 public:
  // Once, before anybody holds it.
  void join(kernel::TreeLock others) { others_.emplace(std::move(others)); }
  // Once, when nothing inside acts any more: its file goes. From then on it is among ours alone. Whoever still holds them (a thread
  // that hangs in the kernel) takes it along.
  void leave() {
    const std::unique_lock lock(ours_, std::try_to_lock);
    if (lock) others_.reset();
  }

  // False: `stop` said so while another process held them, and nothing is held. See TreeLock.
  using Stop = kernel::TreeLock::Stop;
  bool lock(const Stop& stop) {
    ours_.lock();
    if (!others_ || others_->lock(stop)) return true;
    ours_.unlock();
    return false;
  }
  bool lock_shared(const Stop& stop) {
    ours_.lock_shared();
    if (!others_ || others_->lock_shared(stop)) return true;
    ours_.unlock_shared();
    return false;
  }
  // Waits for nobody.
  bool try_lock_shared() {
    if (!ours_.try_lock_shared()) return false;
    if (!others_ || others_->lock_shared([] { return true; })) return true;
    ours_.unlock_shared();
    return false;
  }

  void lock() { (void)lock(nullptr); }
  void unlock() {
    if (others_) others_->unlock();
    ours_.unlock();
  }
  void lock_shared() { (void)lock_shared(nullptr); }
  void unlock_shared() {
    if (others_) others_->unlock_shared();
    ours_.unlock_shared();
  }

 private:
  std::shared_mutex ours_;
  std::optional<kernel::TreeLock> others_;
};

}  // namespace belljar::broker
