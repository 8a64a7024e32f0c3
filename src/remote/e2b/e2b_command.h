// One command in a sandbox of the cloud: its stream of events, and the calls that feed and signal it. Input, signals and the size
// of a terminal may come from other threads.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "base/wake.h"
#include "remote/e2b/e2b_instance.h"
#include "remote/e2b/events.h"
#include "remote/frames.h"
#include "remote/remote_command.h"

namespace belljar::remote::e2b {

class E2bCommand final : public RemoteCommand {
 public:
  // Sends the command. Errors: kResourceExhausted; kInvalidArgument, words that are no UTF-8.
  static Result<std::shared_ptr<E2bCommand>> start(std::shared_ptr<E2bInstance> instance, command::Request request);
  ~E2bCommand() override;

  int await_start() override;
  Result<void> write(std::string_view bytes, std::chrono::milliseconds patience) override;
  Result<void> close_input() override;
  Result<void> resize(unsigned short rows, unsigned short columns) override;
  Result<void> signal(int number) override;

 private:
  E2bCommand(std::shared_ptr<E2bInstance> instance, command::Request request, std::chrono::milliseconds patience);
  const Commands& commands() const noexcept override { return *instance_; }
  std::string start_message() const;
  void wait(std::optional<Time> due) override;
  void take_bytes();
  void take_head();
  void handle(const Event& event);
  void handle_last(std::string_view json);
  void check_silence(Time now);
  void end_tree(int signal) override;
  bool can_be_told() const override { return started_; }
  void give_up() override {}  // check_silence(): what waits to be read may tell of it
  void close() override;
  bool ends_with_sandbox() const override { return instance_->ending() && !is_helper(); }
  void feed();
  Error explain(const Complaint& complaint);
  std::string selector() const;
  Result<void> send_input(std::string_view bytes, std::chrono::milliseconds patience, int cancel_fd);

  std::shared_ptr<E2bInstance> instance_;
  std::string mark_;
  Wake done_;      // readable: it is over
  UniqueFd past_;  // readable: it is over, and for long enough

  // the waiter's
  std::unique_ptr<http::Stream> stream_;
  FrameParser frames_;
  std::string body_;  // of a reply that is no stream
  bool begun_ = false, is_stream_ = false;
  Time heard_;
  bool kill_failed_ = false;  // nothing of the service took a KILL
  std::thread feeder_;
};

}  // namespace belljar::remote::e2b
