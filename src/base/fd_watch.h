// A thread that waits for descriptors (signals, a channel) while its owner is busy, so that they can cancel the owner's work.
#pragma once

#include <poll.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "base/wake.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar {

class FdWatch {
 public:
  // Calls `ready` on a thread of its own when one of `fds` is, until it returns false or this is destroyed, which waits for the
  // call. The descriptors outlive it. Errors: kResourceExhausted.
  static Result<std::unique_ptr<FdWatch>> begin(std::vector<pollfd> fds, std::function<bool()> ready) {
    constexpr const char* kFailed = "cannot watch descriptors";
    auto watch = std::make_unique<FdWatch>();
    if (!watch->over_.valid())
      return Error(Code::kResourceExhausted, kFailed).sys(errno, "eventfd").next("raise the limit of open files (`ulimit -n`)");
    fds.push_back({watch->over_.get(), POLLIN, 0});
    watch->thread_ = BELLJAR_TRY(open_thread(
        [fds = std::move(fds), ready = std::move(ready)]() mutable {
          for (;;) {
            if (::poll(fds.data(), fds.size(), -1) < 0) continue;
            if (fds.back().revents != 0 || !ready()) return;
          }
        },
        kFailed));
    return watch;
  }
  FdWatch() = default;
  FdWatch(const FdWatch&) = delete;
  FdWatch& operator=(const FdWatch&) = delete;
  ~FdWatch() {
    over_.ring();
    if (thread_.joinable()) thread_.join();
  }

 private:
  Wake over_;
  std::thread thread_;
};

}  // namespace belljar
