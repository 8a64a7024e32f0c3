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
  void join(kernel::TreeLock others) { others_ = std::move(others); }
  // Once, when nothing inside acts any more: its file goes. From then on it is among ours alone.
  void leave() {
    const std::scoped_lock lock(ours_);
    others_.reset();
  }

  void lock() {
    ours_.lock();
    if (others_) others_->lock();
  }
  void unlock() {
    if (others_) others_->unlock();
    ours_.unlock();
  }
  void lock_shared() {
    ours_.lock_shared();
    if (others_) others_->lock_shared();
  }
  void unlock_shared() {
    if (others_) others_->unlock_shared();
    ours_.unlock_shared();
  }

 private:
  std::shared_mutex ours_;
  std::optional<kernel::TreeLock> others_;
};

}  // namespace belljar::broker
