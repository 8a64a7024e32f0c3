// The life of one command, from its start to the last byte of its output: one poll loop, no threads, no sleeping.
//
// A command ends by its own exit; the wall or idle timeout, a cancel descriptor (TERM to everything inside, KILL after the grace);
// a limit (KILL); a second SIGINT (KILL). After the main command nothing inside lives on (launch/ sees to that), and what its pipes
// still hold is delivered: no more, so a descriptor that escaped cannot hold us.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "front/signals.h"
#include "front/stdio.h"
#include "front/terminal.h"
#include "launch/launcher.h"

namespace belljar::broker {
class Broker;
}

namespace belljar::runtime {

class LimitSet;

struct SuperviseOptions {
  front::Signals* signals = nullptr;
  front::RawTerminal* terminal = nullptr;
  LimitSet* limit_set = nullptr;
  broker::Broker* broker = nullptr;
  int cancel_fd = -1;       // readable or hung up: end the command
  bool front_ends = false;  // launch::Sandbox::let_go() instead of waiting for pid 1
};

struct Supervised {
  ExecResult result;  // without enforcement
  std::chrono::steady_clock::time_point ended;
  std::vector<std::string> notes;  // what the caller should be told beside the result: "stdout: No space left on device"
  // Set when the command could not be executed; the caller turns it into a sentence (start_failure.h).
  int exec_errno = 0;
  std::string failed_call;
  std::uint64_t output_dropped = 0;  // bytes of both streams beyond the cap, captured or relayed
  UniqueFd leaving;                  // with front_ends: pid 1 on its way out, for launch::await_end()
};

// `sandbox` was started one-shot with the command as its first. It is dead and reaped on return (with front_ends: dead but for
// pid 1 on its way out).
Supervised supervise(launch::Sandbox& sandbox, front::Stdio& stdio, const Limits& limits, const SuperviseOptions& options);

// The timeout in force: what was asked for, at most what the policy allows.
std::optional<std::chrono::milliseconds> effective_timeout(const Limits& limits) noexcept;

}  // namespace belljar::runtime
