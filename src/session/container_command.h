// One command in a container while it runs: the records that its pid 1 and we exchange. Input, signals and the size of a terminal
// may come from other threads. A thread of its own holds the timeout while a callback keeps the waiter.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/container/channel.h"
#include "command/running_command.h"
#include "runtime/violations.h"
#include "session/networked_container.h"

namespace belljar::session {

// Processor time of the commands of one start that had a container of their own.
struct SpentTime {
  std::atomic<std::int64_t> ended_us{0};  // of those that ended, as wait4(2) has it
  std::atomic<std::int64_t> told_us{0};

  // Never less than before: a container's own count is more than what its command leaves when it ends.
  std::chrono::microseconds tell(std::chrono::microseconds now) noexcept {
    std::int64_t told = told_us.load();
    while (told < now.count() && !told_us.compare_exchange_weak(told, now.count())) {
    }
    return std::max(now, std::chrono::microseconds(told));
  }
};

// Options of a container's command beyond its request.
struct ContainerCommandOptions {
  std::shared_ptr<const runtime::Origins> origins;  // for violations; may be null
  bool last = false;                                // the container is this command's own, and goes with it
  std::shared_ptr<SpentTime> spent;                 // where its time goes when it ends; may be null
};

class ContainerCommand final : public command::RunningCommand {
 public:
  using ContainerPtr = std::shared_ptr<NetworkedContainer>;

  // Sends the command. Errors: kUnavailable, the container is gone; kResourceExhausted.
  static Result<std::shared_ptr<ContainerCommand>> start(ContainerPtr container, command::Request request,
                                                         ContainerCommandOptions options);
  ~ContainerCommand() override;

  int await_start() override;
  void give_back(ExecResult& unread) override { container_->give_back(unread); }
  void detach() noexcept override;
  Result<void> write(std::string_view bytes, std::chrono::milliseconds patience) override;
  Result<void> close_input() override;
  Result<void> resize(unsigned short rows, unsigned short columns) override;
  Result<void> signal(int number) override;

 private:
  using ReceivedRecord = backend::container::ReceivedRecord;

  ContainerCommand(ContainerPtr container, command::Request request, ContainerCommandOptions options);
  Result<void> send(char type, std::string_view payload);
  Result<void> send(char type, std::uint32_t number);
  Result<void> send_request();
  bool over() const override { return exited_ || failed_ || gone_; }
  void look() override;
  void wait(std::optional<Time> deadline) override;
  void advance_end(command::EndAction act) override;
  command::EndMode end_mode() const override { return command::EndMode::kInside; }
  Result<ExecResult> result() override;
  void arrive();
  void handle(const ReceivedRecord& arrived);
  void feed();
  std::uint32_t grace() const;
  void hold_timeout();
  void end_container();
  void close_waits();
  bool ended_in_time() const;
  void set_end(ExecResult& result);
  void set_limits(ExecResult& result) const;
  void close_stream();

  ContainerPtr container_;
  std::unique_ptr<LiveEgress::HostGrant> opened_;
  std::shared_ptr<backend::container::Channel> channel_;
  ContainerCommandOptions options_;
  std::uint32_t id_ = 0;
  std::shared_ptr<backend::container::Inbox> inbox_;

  // the waiter's
  std::deque<ReceivedRecord> waiting_;
  std::size_t fed_ = 0;
  bool closed_ = false, gone_ = false, started_ = false;
  std::uint64_t taken_ = 0;  // output that was taken and not yet told
  std::optional<Time> exited_;
  std::optional<Error> failed_;
  backend::container::ExitRecord ended_;
  bool ended_before_start_ = false;

  std::mutex input_mutex_;
  std::condition_variable input_moved_;
  std::size_t under_way_ = 0;               // of stdin; guarded by input_mutex_
  bool input_open_ = false, over_ = false;  // guarded by input_mutex_
  std::optional<Time> due_;                 // the timeout's end, once the command runs; guarded by input_mutex_
  std::atomic<bool> stopping_{false}, overdue_{false};
  std::thread clock_;
};

}  // namespace belljar::session
