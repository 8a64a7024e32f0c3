// One command of a kept sandbox, from a front in another process.
//
// A command of a kept sandbox has two watchers here. This thread reads what the front says while
// the command runs: signals, a stream over its limit, the number of output bytes at last. The
// Waiter's thread waits for the command's end and sends the result. One thread cannot do both,
// since each wait is without an end. Channel allows one sender beside one receiver: after `started`
// this thread sends nothing more.
//
// The order at the end: the result goes to the front, the front delivers the rest of the output and
// then says how much there was, and only then the log gets its line, which has that number. When
// the front is gone instead, receive() fails, ~Waiter cancels the command, and the line is written
// with 0 bytes.
//
// The front holds the streams, so it alone can see that one is over its limit; the keeper only
// kills and explains. Each descriptor is checked again here although the front sends none but
// pipes: the peer is the same user, but what is handed in can be opened anew inside, with other
// rights (front/stdio.h).

#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/cancel.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/events.h"
#include "belljar/exec_result.h"
#include "belljar/process.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"
#include "front/pump.h"
#include "keeper/serve.h"
#include "runtime/json.h"
#include "runtime/violation_store.h"

namespace belljar::keeper {
namespace {

struct Call {
  Command command;
  SpawnOptions options;
  std::array<UniqueFd, 3> ends;
  std::string shown;  // the command as the log has it: without the caller's secrets
};

Result<std::array<UniqueFd, 3>> take_ends(const Json& streams, std::vector<UniqueFd> fds) {
  std::array<UniqueFd, 3> ends;
  std::size_t next = 0;
  for (std::size_t n = 0; n < ends.size(); ++n) {
    if (!streams.at(n).get<bool>()) continue;
    if (next == fds.size()) return Error(Code::kInvalidArgument, "a stream of the command was announced and not sent");
    if (!front::passes_through(front::fd_kind(fds[next].get())))
      return Error(Code::kInvalidArgument, "a stream of the command is no pipe")
          .reason("what is handed in can be opened anew inside, with other rights");
    ends[n] = std::move(fds[next++]);
  }
  return ends;
}

Result<Call> parse_call(Received request, const KeptSandbox& kept) {
  const Json& message = request.message;
  Call call;
  call.command.argv = message.at("argv").get<std::vector<std::string>>();
  call.command.env = message.at("env").get<std::map<std::string, std::string>>();
  call.command.cwd = message.at("cwd").get<std::string>();
  if (!call.command.cwd.empty() && !call.command.cwd.starts_with('/'))
    call.command.cwd = kept.sandbox->workspace() + "/" + call.command.cwd;
  call.shown = message.at("shown").get<std::string>();
  call.options.timeout = kept.limits.timeout;
  if (const Json& timeout = message.at("timeout_ms"); !timeout.is_null())
    call.options.timeout = std::chrono::milliseconds(timeout.get<std::int64_t>());
  if (const Json& size = message.at("terminal"); !size.is_null())
    call.options.terminal = TerminalSize{size.at(0).get<unsigned short>(), size.at(1).get<unsigned short>()};
  call.options.allowed_domains = message.at("allowed_domains").get<std::vector<std::string>>();
  call.options.cancel = BELLJAR_TRY(CancelToken::create());
  call.ends = BELLJAR_TRY(take_ends(message.at("streams"), std::move(request.fds)));
  return call;
}

// The sandbox's report speaks of commands that the library runs: one of a front has the policy's timeout or its own, else none.
void tell_timeout(EnforcementReport& report, std::optional<std::chrono::milliseconds> timeout, const Limits& limits) {
  if (limits.max_timeout) timeout = std::min(timeout.value_or(*limits.max_timeout), *limits.max_timeout);
  for (EnforcementClause& clause : report) {
    if (clause.clause != "limits.timeout") continue;
    clause.asked = timeout ? format("{} for this command", belljar::to_string(*timeout)) : "none for this command";
    if (!timeout) clause.mechanism = "none";
  }
}

// The front's answer, and what `belljar explain` keeps.
void tell_front(Channel& channel, const KeptSandbox& kept, const Call& call, ExecResult& result) {
  if (!result.violations.empty()) {
    const runtime::ViolationStore store(kept.state_dir);
    if (auto id = store.keep({call.command.argv[0], kept.sandbox->workspace(), result})) result.id = *std::move(id);
  }
  result.backend = kept.sandbox->backend();
  result.enforcement = kept.sandbox->enforcement();
  tell_timeout(result.enforcement, call.options.timeout, kept.limits);
  (void)channel.send({{"result", runtime::to_json(result, runtime::JsonStreams::kOmit)}});
}

void tell_log(const KeptSandbox& kept, const Call& call, const ExecResult& result, std::uint64_t output_bytes) {
  tell_seen(kept, result.violations, result.egress);
  const std::string error = result.reason == Reason::kStartFailed ? result.message : "";
  kept.log->publish({.body = ExecutionEvent{call.shown, result.duration, result.exit_code, result.reason, output_bytes, error}});
}

// Why the front had the command killed: the stream that it found over its limit, or that it had been told to end. Told by one
// thread and read by another.
class KilledByFront {
 public:
  void over_limit(std::string stream) {
    const std::lock_guard lock(mutex_);
    stream_ = std::move(stream);
  }
  void because(std::string why) {
    const std::lock_guard lock(mutex_);
    why_ = std::move(why);
  }
  // Why the command ended, where that was the limit.
  void explain(ExecResult& result, const Limits& limits) const {
    const std::lock_guard lock(mutex_);
    if (result.reason != Reason::kSignalled || result.signal != SIGKILL) return;
    if (stream_.empty()) {
      if (!why_.empty()) result.message = why_;
      return;
    }
    result.reason = Reason::kOutput;
    result.exit_code = 128 + SIGKILL;
    result.message = format("{} exceeded the limit of {} bytes", stream_, limits.output_bytes.value_or(Bytes{}).count);
    result.limits_hit.push_back("output");
  }

 private:
  mutable std::mutex mutex_;
  std::string stream_, why_;  // guarded by mutex_
};

// What the front says while the command runs, until it tells, after the result, how much output there was; 0 when it went away
// before. Returns when there is nothing more to hear.
std::uint64_t take_words(Channel& channel, Process& process, KilledByFront& killed) {
  for (;;) {
    const auto words = channel.receive(std::nullopt);
    if (!words || !*words) return 0;
    const Json& message = (*words)->message;
    if (message.contains("output_bytes")) return message["output_bytes"].get<std::uint64_t>();
    if (message.contains("over_limit")) killed.over_limit(message["over_limit"].get<std::string>());
    if (message.contains("kill")) killed.because(message["kill"].get<std::string>());
    if (message.contains("over_limit") || message.contains("kill")) (void)process.kill();  // it may have ended
    if (message.contains("terminate")) (void)process.terminate();
    if (const int number = message.value("signal", 0); number > 0) (void)process.signal(number);  // it may have ended
  }
}

// Waits for the command's end on a thread of its own, which is joined whatever happens.
class Waiter {
 public:
  template <class Work>
  Waiter(Work work, CancelToken cancel) : cancel_(std::move(cancel)), thread_(std::move(work)) {}
  ~Waiter() {
    cancel_.cancel();
    thread_.join();
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

 private:
  CancelToken cancel_;
  std::thread thread_;
};

}  // namespace

void serve_exec(Channel& channel, Received request, KeptSandbox& kept) {
  const auto refuse = [&](const Error& error) { (void)channel.send({{"error", to_message(error)}}); };
  auto call = parse_call(std::move(request), kept);
  if (!call) return refuse(call.error());
  auto handed = kept.sandbox->spawn_with_fds(call->command, call->options, std::move(call->ends));
  if (!handed) {
    kept.log->publish(
        {.body = ExecutionEvent{call->shown, {}, handed.error().exit_code(), Reason::kStartFailed, 0, handed.error().line()}});
    return refuse(handed.error());
  }
  const Json started = {{"started", handed->process->pid()}, {"kill_grace_ms", kept.limits.kill_grace.count()}};
  if (!(handed->master.valid() ? channel.send(started, {handed->master.get()}) : channel.send(started))) return;
  handed->master.reset();
  Process& process = *handed->process;
  std::optional<ExecResult> result;
  std::uint64_t output_bytes = 0;
  KilledByFront killed;
  {
    // A front that goes away ends its command, as the front of `run` does.
    const Waiter waiter(
        [&] {
          auto end = process.wait();
          if (!end) return refuse(end.error());
          result = **std::move(end);
          killed.explain(*result, kept.limits);
          tell_front(channel, kept, *call, *result);
        },
        call->options.cancel);
    output_bytes = take_words(channel, process, killed);
  }
  if (result) tell_log(kept, *call, *result, output_bytes);
}

}  // namespace belljar::keeper
