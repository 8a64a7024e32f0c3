// The handle of a spawned command. Three objects share the work. RunningCommand is the command on
// its transport. Followed owns the thread that reads it to its end, whether anybody waits or not: a
// pipe that nobody reads would stop the command. Handle is what the caller has, and only forwards.
//
// Who keeps Followed alive decides how the command ends. The last handle cancels the command and
// then waits for the thread. A detached command is kept by its sandbox (DetachedCommands), so the
// handle may go; the thread takes the entry out at the command's end, because its pipes and
// eventfds stay open until then. Both clear() and leave() let the entries be destroyed after the
// lock is released: that destruction joins a thread, and the thread takes the same lock.
//
// A callback may destroy the last handle of its own command. Then ~Followed runs on the very thread
// that it would join, so it detaches the thread instead, and the thread goes on with the shared
// State. In a forked child there is no such thread at all, so ~Handle abandons the command there
// and does not join.
//
// A result that nobody fetched is given back (RunningCommand::give_back) with what it says of the
// sandbox. Either the thread or ~Followed is the last to know, so both check under the same mutex.
#include "command/process.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/owner.h"
#include "base/patience.h"
#include "base/thread.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/process.h"
#include "belljar/result.h"
#include "command/ending.h"
#include "command/running_command.h"

namespace belljar::command {

using std::chrono::milliseconds;

class Followed {
 public:
  // Where a callback destroys the last handle of its own command, the thread outlives this: so it shares what it uses.
  Followed(std::shared_ptr<RunningCommand> run, const std::weak_ptr<DetachedCommands>& home)
      : state_(std::make_shared<State>(std::move(run))), pid_(state_->run->await_start()) {
    thread_ = start_thread([state = state_, home] {
      state->follow();
      if (const auto kept = home.lock()) leave(*kept, *state->run);
    });
  }
  // Waits for the end, unless that is the thread itself.
  ~Followed() {
    if (thread_.get_id() == std::this_thread::get_id()) thread_.detach();
    else thread_.join();
    const std::lock_guard lock(state_->mutex);
    state_->left = true;
    state_->give_back();
  }
  Followed(const Followed&) = delete;
  Followed& operator=(const Followed&) = delete;

  int pid() const noexcept { return pid_; }
  RunningCommand& run() const noexcept { return *state_->run; }
  bool ended() const {
    const std::lock_guard lock(state_->mutex);
    return state_->over();
  }
  // As Process::wait; throws what a callback threw.
  Result<std::optional<ExecResult>> wait(std::optional<milliseconds> patience) {
    std::unique_lock lock(state_->mutex);
    const auto over = [&] { return state_->over(); };
    if (!patience) state_->changed.wait(lock, over);
    else if (!state_->changed.wait_for(lock, bounded(*patience), over)) return std::optional<ExecResult>();
    if (state_->thrown) std::rethrow_exception(state_->thrown);
    state_->told = true;
    if (!*state_->result) return state_->result->error();
    return std::optional(**state_->result);
  }

 private:
  // Of the thread and this, whichever lives longer.
  struct State {
    explicit State(std::shared_ptr<RunningCommand> given) : run(std::move(given)) {}
    std::shared_ptr<RunningCommand> run;
    std::mutex mutex;
    std::condition_variable changed;
    // guarded by mutex
    std::optional<Result<ExecResult>> result;
    std::exception_ptr thrown;
    bool told = false;  // somebody has had the result
    bool left = false;  // who could ask for it is gone
    bool over() const { return result || thrown; }

    void follow() {
      std::optional<Result<ExecResult>> read;
      std::exception_ptr caught;
      try {
        read = run->finish();
      } catch (...) {
        caught = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      result = std::move(read);
      thrown = caught;
      changed.notify_all();
      if (left) give_back();
    }

    // With mutex held.
    void give_back() {
      if (result && *result && !told) run->give_back(**result);
    }
  };

  // Takes the command of `run` out of there: its pipes and eventfds are open for as long as it lies in it.
  static void leave(DetachedCommands& home, const RunningCommand& run) {
    std::shared_ptr<Followed> left;  // destroyed without the lock
    const std::lock_guard lock(home.mutex);
    const auto found = std::ranges::find_if(home.commands, [&](const auto& command) { return &command->run() == &run; });
    if (found == home.commands.end()) return;
    left = std::move(*found);
    home.commands.erase(found);
  }

  std::shared_ptr<State> state_;
  int pid_;
  std::thread thread_;
};

namespace {

class Handle final : public Process {
 public:
  Handle(std::shared_ptr<Followed> command, const std::shared_ptr<DetachedCommands>& home)
      : command_(std::move(command)), home_(home), kept_(home != nullptr) {}
  ~Handle() override {
    if (!owner_.is_this()) abandon(command_);
    else if (!detached_.load()) command_->run().request_end(RunningCommand::EndRequest::kCancel);
  }

  int pid() const noexcept override { return command_->pid(); }
  Result<std::optional<ExecResult>> wait(std::optional<milliseconds> patience) override {
    BELLJAR_CHECK(owner_.check());
    return command_->wait(patience);
  }
  Result<void> signal(int number) override {
    BELLJAR_CHECK(owner_.check());
    if (number < 1 || number > SIGRTMAX) return Error(Code::kInvalidArgument, format("there is no signal {}", number));
    if (command_->ended()) return Error(Code::kFailedPrecondition, "cannot signal the command").reason("it has ended");
    return command_->run().signal(number);
  }
  Result<void> terminate() override { return end(RunningCommand::EndRequest::kTerminate, "cannot end the command"); }
  Result<void> kill() override { return end(RunningCommand::EndRequest::kKill, "cannot kill the command"); }
  Result<void> write_stdin(std::string_view bytes, milliseconds patience) override {
    BELLJAR_CHECK(owner_.check());
    const std::lock_guard lock(writing_);
    return command_->run().write(bytes, patience);
  }
  Result<void> close_stdin() override {
    BELLJAR_CHECK(owner_.check());
    return command_->run().close_input();
  }
  Result<void> resize(unsigned short rows, unsigned short columns) override {
    BELLJAR_CHECK(owner_.check());
    return command_->run().resize(rows, columns);
  }
  Result<void> detach() override {
    BELLJAR_CHECK(owner_.check());
    const auto home = home_.lock();
    if (kept_ && home == nullptr)
      return Error(Code::kFailedPrecondition, "cannot detach the command").reason("its sandbox is gone");
    if (detached_.exchange(true)) return {};
    command_->run().detach();
    if (!kept_) return {};
    const std::lock_guard lock(home->mutex);
    if (!command_->ended()) home->commands.push_back(command_);
    return {};
  }

 private:
  Result<void> end(RunningCommand::EndRequest request, const char* what) {
    BELLJAR_CHECK(owner_.check());
    if (command_->ended()) return Error(Code::kFailedPrecondition, what).reason("it has ended");
    command_->run().request_end(request);
    return {};
  }

  std::shared_ptr<Followed> command_;
  std::weak_ptr<DetachedCommands> home_;
  const bool kept_;
  std::mutex writing_;  // writes must not mix
  std::atomic<bool> detached_{false};
  const OwningProcess owner_;
};

class EndedProcess final : public Process {
 public:
  EndedProcess(ExecResult result, std::string why) : result_(std::move(result)), why_(std::move(why)) {}
  int pid() const noexcept override { return 0; }
  Result<std::optional<ExecResult>> wait(std::optional<milliseconds>) override { return std::optional(result_); }
  Result<void> signal(int) override { return ended(); }
  Result<void> terminate() override { return ended(); }
  Result<void> kill() override { return ended(); }
  Result<void> write_stdin(std::string_view, milliseconds) override { return ended(); }
  Result<void> close_stdin() override { return {}; }
  Result<void> resize(unsigned short, unsigned short) override { return ended(); }
  Result<void> detach() override { return {}; }

 private:
  Error ended() const { return Error(Code::kFailedPrecondition, "the command has ended").reason(why_); }
  const ExecResult result_;
  const std::string why_;
};

}  // namespace

void clear(DetachedCommands& home) {
  std::vector<std::shared_ptr<Followed>> commands;
  const std::lock_guard lock(home.mutex);
  commands.swap(home.commands);
}

Result<std::unique_ptr<Process>> follow(const std::shared_ptr<RunningCommand>& run, const std::shared_ptr<DetachedCommands>& home) {
  try {
    return std::make_unique<Handle>(std::make_shared<Followed>(run, home), home);
  } catch (const std::system_error& failed) {
    run->mute();
    run->request_end(RunningCommand::EndRequest::kCancel);
    if (auto unread = run->finish()) run->give_back(*unread);
    return no_thread(failed, "cannot follow a command");
  }
}

std::unique_ptr<Process> make_ended_process(ExecResult result, std::string why) {
  return std::make_unique<EndedProcess>(std::move(result), std::move(why));
}

std::unique_ptr<Process> make_cancelled_process() {
  return make_ended_process(cancelled_before_start(), "it was cancelled before its start");
}

}  // namespace belljar::command
