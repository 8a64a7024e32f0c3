// Policy and command to result: prepare, limits, launch, supervise. The public face is include/belljar/run.h.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "belljar/command.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/txn.h"
#include "broker/observation.h"
#include "egress/intercept.h"
#include "front/signals.h"
#include "front/stdio.h"
#include "launch/launcher.h"
#include "runtime/interception.h"
#include "runtime/violations.h"

namespace belljar::runtime {

// A sandbox that is made before its command is known (`belljar run --warm`). One thread.
class Spare {
 public:
  virtual ~Spare() = default;
  // The sandbox is there. Waits until somebody is to have it, and writes the command and the streams (descriptors 0, 1, 2) where
  // the run has them; `env`: the command's, as it was planned. Errors: nobody is to have it; then it ends.
  virtual Result<front::RemoteEnd*> await_use(int sandbox_pidfd, std::vector<std::string>& env) = 0;
  // Everything is told that is told before; the command is started now.
  virtual void starting() = 0;
  // The command is being started, and its caller's signals are about to be read.
  virtual void begun() = 0;
};

struct RunSettings {
  front::StdioOptions stdio;
  front::Signals::Mode signals = front::Signals::Mode::kNone;
  int cancel_fd = -1;
  bool time_steps = false;
  const Origins* origins = nullptr;               // where the policy's values come from, for violations; may be null
  const Filesystem* complete = nullptr;           // policy::Effective::complete, likewise; both must outlive the RunOutcome
  std::optional<txn::Place> transaction;          // run in it; begun when there is none of that name
  broker::Observer observer;                      // `belljar learn`: see broker/observation.h
  bool* launched = nullptr;                       // set when there is a process: from here on nothing else may be tried
  std::function<void(int init_pid)> on_started;   // with a process tree to look at
  Spare* spare = nullptr;                         // make the sandbox, and begin the run when it says so; not in a transaction
  bool front_ends = false;                        // this process exits with the result: launch::Sandbox::let_go()
  egress::MakeInterceptor interceptor = nullptr;  // what looks into TLS; none: a policy that needs it is refused
  std::function<void(const EnforcementReport&)> on_ready;  // just before the start: what will hold, and how far
  std::function<void(const std::string&)> on_warning;      // what the policy grants that is more than it looks like
};

// One row of `--verbose`: what of the front's own time went where.
struct FrontTimes {
  std::chrono::nanoseconds prepare{0};  // plan, limits, streams, strings: all before clone3
  std::chrono::nanoseconds start{0};    // clone3 until execve was reported
  std::chrono::nanoseconds end{0};      // from the end of the command to the finished result
};

// The command's writes to one directory of filesystem.scratch: the upper layer of an overlay, as the kernel's overlayfs.rst has
// it.
struct ScratchLayer {
  std::string path;
  UniqueFd content;
};

struct RunOutcome {
  ExecResult result;
  std::vector<std::string> notes;      // about the streams, for people
  std::uint64_t output_dropped = 0;    // bytes of both streams beyond the cap, captured or relayed
  std::optional<Error> start_failure;  // when nothing ran (kStartFailed, or kCancelled before it began): why
  std::vector<launch::StepTime> steps;
  FrontTimes times;
  std::vector<ScratchLayer> scratch;
  // With RunSettings::front_ends. What takes time and nobody waits for: let go of it when everybody was told.
  std::vector<std::shared_ptr<void>> rest;
  UniqueFd leaving;  // likewise: wait for it with launch::await_end() when everything else is done
};

// Runs `command` as `policy` says, at `place`. `place.env` is made here, from `caller_env` and the policy. Errors: as belljar::run.
Result<RunOutcome> run(backend::Backend& backend, const Policy& policy, const Command& command, backend::Workplace place,
                       const std::vector<std::string>& caller_env, const RunSettings& settings);

// The second half, for a plan that is made already (tests write them by hand).
Result<RunOutcome> run_prepared(backend::Prepared prepared, const Policy& policy, const Command& command,
                                const std::string& workspace, const RunSettings& settings,
                                const Interception* interception = nullptr);

// `cwd` (empty: the workspace) as a canonical directory inside the canonical `workspace`; a relative one starts at the workspace.
Result<std::string> find_cwd(const std::string& workspace, const std::string& cwd);

// An Error of ours as a result, for those who want one object whatever happens.
ExecResult failed_start(const Error& error);

}  // namespace belljar::runtime
