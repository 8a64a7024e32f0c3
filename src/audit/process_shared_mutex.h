// A lock between a process and those forked from it.
#pragma once

#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <new>
#include <utility>

namespace belljar::audit {

// Lives in memory that forked processes share. flock(2) would not keep a child from its parent, since both have the same open
// file; record locks of fcntl(2) are lost when a process closes any descriptor of the file. Robust: a killed holder lets go.
class ProcessSharedMutex {
 public:
  class Guard {
   public:
    Guard() = default;
    explicit Guard(pthread_mutex_t* mutex) : mutex_(mutex) {}
    Guard(Guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    Guard& operator=(Guard&&) = delete;
    ~Guard() {
      if (mutex_ != nullptr) ::pthread_mutex_unlock(mutex_);
    }
    explicit operator bool() const noexcept { return mutex_ != nullptr; }

   private:
    pthread_mutex_t* mutex_ = nullptr;
  };

  ProcessSharedMutex() {
    void* const page = ::mmap(nullptr, sizeof(pthread_mutex_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) throw std::bad_alloc();
    mutex_ = static_cast<pthread_mutex_t*>(page);
    pthread_mutexattr_t how;
    ::pthread_mutexattr_init(&how);
    ::pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
    ::pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
    ::pthread_mutex_init(mutex_, &how);
    ::pthread_mutexattr_destroy(&how);
  }
  ProcessSharedMutex(const ProcessSharedMutex&) = delete;
  ProcessSharedMutex& operator=(const ProcessSharedMutex&) = delete;
  // Only this process's view of it: others may use it still.
  ~ProcessSharedMutex() { ::munmap(mutex_, sizeof(pthread_mutex_t)); }

  // Nothing when another has held it for so long. Waits by trying: a deadline of pthread_mutex_timedlock(3) is of the wall clock.
  Guard lock_within(std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (;;) {
      const int outcome = ::pthread_mutex_trylock(mutex_);
      if (outcome == EOWNERDEAD) ::pthread_mutex_consistent(mutex_);
      if (outcome == 0 || outcome == EOWNERDEAD) return Guard(mutex_);
      if (std::chrono::steady_clock::now() >= deadline) return Guard();
      ::poll(nullptr, 0, 1);
    }
  }

 private:
  pthread_mutex_t* mutex_ = nullptr;
};

}  // namespace belljar::audit
