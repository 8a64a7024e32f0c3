// One connection to a container's pid 1, shared by all its commands.
//
// A thread of its own reads: the engine multiplexes stdout and stderr of pid 1 into frames, stdout carries
// our records, and each record goes to the inbox of its command. It never waits for a reader. That is safe
// since every command may have only a window of output under way, so an inbox is bounded by what its reader
// has granted.
//
// Writers share write_mutex_ and not the reader's: a record must go out in one piece, and a write that fails
// half way ends the channel, because nothing can follow half a record.
//
// Whatever ends the line ends it once (end), with the first cause. What pid 1 or the runtime printed to
// stderr (`noise`) is kept, since a runtime that cannot start the program says so there and nowhere else;
// after an error of the engine the line is read for a moment longer to hear it.
#include "backend/container/channel.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "backend/container/frames.h"
#include "backend/container/http.h"
#include "backend/container/records.h"
#include "base/format.h"
#include "base/thread.h"
#include "base/unique_fd.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend::container {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostNoise = 4096;
constexpr std::chrono::seconds kWritePatience{30};
constexpr int kLastWords = 200;       // ms, for the rest of what an engine says of an error
constexpr std::uint32_t kNobody = 0;  // records of no command: the hello and pings

Error gone(const std::string& because) {
  return Error(Code::kUnavailable, "the container is gone").reason(because).next("start() the sandbox again");
}

Result<void> check_hello(std::string_view payload) {
  const auto refused = [](std::string reason, std::string next) {
    return Error(Code::kFailedPrecondition, "cannot use the container").reason(std::move(reason)).next(std::move(next));
  };
  if (number_in(payload) != kProtocol) return refused("its pid 1 is of another version of Belljar", "start it again");
  const std::uint32_t pid = number_in(payload, 4);
  if (pid == 1) return {};
  return refused(format("our program is process {} there instead of pid 1: commands could stop it, and outlive it", pid),
                 "let the engine put no init of its own before it, and give containers a pid namespace (containers.conf: pidns)");
}

}  // namespace

void Inbox::put(ReceivedRecord arrived) {
  const std::lock_guard lock(mutex_);
  arrived_.push_back(std::move(arrived));
  if (arrived_.size() == 1) wake_.ring();
}

void Inbox::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  wake_.ring();
}

std::deque<ReceivedRecord> Inbox::take() {
  const std::lock_guard lock(mutex_);
  if (!closed_) wake_.take();
  return std::exchange(arrived_, {});
}

bool Inbox::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

Result<std::shared_ptr<Channel>> Channel::open(UpgradedStream attached) {
  Wake stop;
  if (!stop.valid()) return Error(Code::kResourceExhausted, "cannot follow the container").sys(errno, "eventfd");
  std::shared_ptr<Channel> channel(new Channel(*std::move(attached.stream), std::move(stop)));
  auto inbox = std::make_shared<Inbox>(Wake());
  channel->inboxes_.emplace(kNobody, std::move(inbox));
  channel->thread_ = start_thread([raw = channel.get(), early = std::move(attached.early)]() mutable { raw->follow(early); });
  return channel;
}

Channel::~Channel() {
  hang_up();
  if (thread_.joinable()) thread_.join();
}

void Channel::hang_up() {
  stop_.ring();
  ::shutdown(connection_.fd(), SHUT_RDWR);
}

void Channel::kill_at_end(UniqueFd process) {
  const std::lock_guard lock(mutex_);
  process_ = std::move(process);
  if (!alive_) kill_process();
}

void Channel::kill_process() {
  if (process_.valid()) ::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
  process_.reset();
}

// --- reading

void Channel::follow(const std::string& early) {
  if (!early.empty() && !take(early)) return;
  std::array<char, 64U << 10> buffer;
  for (;;) {
    std::array<pollfd, 2> set = {{{connection_.fd(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    const int ready = ::poll(set.data(), set.size(), failed_ ? kLastWords : -1);
    if (ready < 0) continue;
    if (set[1].revents != 0) return end("the sandbox was stopped");
    if (ready == 0) {
      end("the engine reports an error");
      ::shutdown(connection_.fd(), SHUT_RDWR);
      return;
    }
    const long got = connection_.read(buffer.data(), buffer.size(), Clock::now() + std::chrono::seconds(1));
    if (got == -ETIMEDOUT) continue;
    if (got == 0) {
      const auto whole = frames_.check_end();
      return end(whole ? "its pid 1 ended, or the engine closed the connection" : whole.error().reason());
    }
    if (got < 0) return end(format("the connection to the engine broke: {}", std::strerror(static_cast<int>(-got))));
    if (!take(std::string_view(buffer.data(), static_cast<std::size_t>(got)))) return;
  }
}

bool Channel::take(std::string_view bytes) {
  std::string because;
  const auto sink = [&](FrameStream stream, std::string_view part) {
    if (stream == FrameStream::kStdout) {
      const auto taken =
          records_.feed(part, [&](char type, std::uint32_t id, std::string_view payload) { dispatch(type, id, payload); });
      if (!taken && because.empty()) because = taken.error().reason();
      return;
    }
    failed_ = failed_ || stream == FrameStream::kSystemError;
    const std::lock_guard lock(mutex_);
    if (noise_.size() < kMostNoise) noise_ += part.substr(0, kMostNoise - noise_.size());
  };
  const auto taken = frames_.feed(bytes, sink);
  if (!taken) because = taken.error().reason();
  if (because.empty()) return true;
  end(because);
  ::shutdown(connection_.fd(), SHUT_RDWR);
  return false;
}

void Channel::dispatch(char type, std::uint32_t id, std::string_view payload) {
  std::shared_ptr<Inbox> inbox;
  {
    const std::lock_guard lock(mutex_);
    const auto found = inboxes_.find(id);
    if (found == inboxes_.end()) return;  // a command that nobody waits for any more
    inbox = found->second;
  }
  inbox->put({type, std::string(payload), Clock::now()});
}

void Channel::end(std::string because) {
  std::map<std::uint32_t, std::shared_ptr<Inbox>> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (!alive_) return;
    alive_ = false;
    because_ = std::move(because) + noise();
    waiting = inboxes_;
    kill_process();
  }
  for (const auto& [id, inbox] : waiting) inbox->close();
}

// --- what others ask

std::string Channel::noise() const { return noise_.empty() ? std::string() : format("; it said: {}", escaped(noise_)); }

Result<void> Channel::await_hello(std::chrono::milliseconds patience, const CancelToken& cancel) {
  const Clock::time_point deadline = Clock::now() + patience;
  const std::shared_ptr<Inbox> inbox = inboxes_.at(kNobody);  // set before the thread began, and never taken out
  for (;;) {
    for (const ReceivedRecord& arrived : inbox->take()) {
      if (arrived.type != 'h') continue;
      return check_hello(arrived.payload);
    }
    if (inbox->closed())
      return Error(Code::kFailedPrecondition, "the container ended before it began")
          .reason(ended_because())
          .next("look at the engine's log");
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      const std::lock_guard lock(mutex_);
      return Error(Code::kDeadlineExceeded, "the container does not begin")
          .reason(format("its pid 1 did not greet for {} s{}", patience.count() / 1000, noise()))
          .next("look at the engine's log");
    }
    if (cancel.cancelled()) return Error(Code::kCanceled, "the container did not begin").reason("cancelled by the caller");
    std::array<pollfd, 2> wait = {{{inbox->fd(), POLLIN, 0}, {cancel.fd(), POLLIN, 0}}};
    ::poll(wait.data(), wait.size(), static_cast<int>(left));
  }
}

Result<std::pair<std::uint32_t, std::shared_ptr<Inbox>>> Channel::add_command() {
  Wake wake;
  if (!wake.valid())
    return Error(Code::kResourceExhausted, "cannot start the command").sys(errno, "eventfd").next("close some descriptors");
  auto inbox = std::make_shared<Inbox>(std::move(wake));
  const std::lock_guard lock(mutex_);
  if (!alive_) return gone(because_);
  const std::uint32_t id = next_++;
  inboxes_.emplace(id, inbox);
  return std::pair(id, std::move(inbox));
}

void Channel::drop_command(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  inboxes_.erase(id);
}

Result<void> Channel::send(std::string_view records) {
  const std::lock_guard lock(write_mutex_);
  const Clock::time_point deadline = Clock::now() + kWritePatience;
  while (!records.empty()) {
    if (!alive()) return gone(ended_because());
    const long wrote = connection_.write(records.data(), records.size(), deadline);
    if (wrote <= 0) {  // half a record may be out: nothing can follow it
      end(format("the engine took no input: {}", std::strerror(static_cast<int>(-wrote))));
      ::shutdown(connection_.fd(), SHUT_RDWR);
      return gone(ended_because());
    }
    records.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

Result<ReceivedRecord> Channel::ask(char type, std::string_view payload, std::chrono::milliseconds patience, int cancel_fd) {
  auto [id, inbox] = BELLJAR_TRY(add_command());
  const auto sent = send(make_record(type, id, payload));
  std::array<pollfd, 2> wait = {{{inbox->fd(), POLLIN, 0}, {cancel_fd, POLLIN, 0}}};
  if (sent) ::poll(wait.data(), wait.size(), static_cast<int>(patience.count()));
  std::deque<ReceivedRecord> answers = inbox->take();
  drop_command(id);
  if (!answers.empty()) return std::move(answers.front());
  if (!alive()) return gone(ended_because());
  return Error(Code::kUnavailable, "the container does not answer").reason("its pid 1 did not in time");
}

Result<void> Channel::ping(std::chrono::milliseconds patience, int cancel_fd) {
  const auto answer = ask('P', {}, patience, cancel_fd);
  if (!answer) return answer.error();
  return {};
}

Result<std::string> Channel::mounts(std::chrono::milliseconds patience) {
  ReceivedRecord answer = BELLJAR_TRY(ask('M', {}, patience));
  return std::move(answer.payload);
}

Result<void> Channel::set_filter(std::span<const sock_filter> program, std::chrono::milliseconds patience) {
  const std::string bytes(reinterpret_cast<const char*>(program.data()), program.size_bytes());
  const ReceivedRecord answer = BELLJAR_TRY(ask('F', bytes, patience));
  const std::uint32_t failed = number_in(answer.payload);
  if (failed == 0 && answer.payload.size() >= 4) return {};
  return Error(Code::kFailedPrecondition, "cannot install the policy's system call filter in the container")
      .sys(static_cast<int>(failed), "seccomp")
      .next("use an engine and a runtime that let programs have filters, or go on without: `accept = [\"seccomp\"]`");
}

bool Channel::alive() const {
  const std::lock_guard lock(mutex_);
  return alive_;
}

std::string Channel::ended_because() const {
  const std::lock_guard lock(mutex_);
  return because_;
}

}  // namespace belljar::backend::container
