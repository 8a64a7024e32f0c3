#include "session/follower.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/patience.h"
#include "base/thread.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"

namespace belljar::session {

// Of the thread and the Follower, whichever lives longer.
struct Follower::State {
  explicit State(Work given) : work(std::move(given)) {}
  Work work;
  std::mutex mutex;
  std::condition_variable changed;
  // guarded by mutex
  std::optional<Result<ExecResult>> result;
  std::exception_ptr thrown;
  bool told = false;  // somebody has had the result
  bool left = false;  // the Follower is gone
  bool over() const { return result || thrown; }

  void follow() {
    std::optional<Result<ExecResult>> read;
    std::exception_ptr caught;
    try {
      read = work.read();
    } catch (...) {
      caught = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex);
      result = std::move(read);
      thrown = caught;
      changed.notify_all();
      if (left) give_back();
    }
    if (work.at_end) work.at_end();
  }

  // With mutex held.
  void give_back() {
    if (result && *result && !told && work.unread) work.unread(**result);
  }
};

Follower::Follower(Work work) : state_(std::make_shared<State>(std::move(work))) {
  thread_ = start_thread([state = state_] { state->follow(); });
}

Follower::~Follower() {
  if (thread_.get_id() == std::this_thread::get_id()) thread_.detach();
  else thread_.join();
  const std::lock_guard lock(state_->mutex);
  state_->left = true;
  state_->give_back();
}

Result<std::optional<ExecResult>> Follower::wait(std::optional<std::chrono::milliseconds> patience) {
  std::unique_lock lock(state_->mutex);
  const auto over = [&] { return state_->over(); };
  if (!patience) state_->changed.wait(lock, over);
  else if (!state_->changed.wait_for(lock, bounded(*patience), over)) return std::optional<ExecResult>();
  if (state_->thrown) std::rethrow_exception(state_->thrown);
  state_->told = true;
  if (!*state_->result) return state_->result->error();
  return std::optional(**state_->result);
}

bool Follower::ended() const {
  const std::lock_guard lock(state_->mutex);
  return state_->over();
}

}  // namespace belljar::session
