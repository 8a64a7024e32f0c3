// The first candidate that starts is kept until it is stopped. It is not given up for another one when it
// becomes unhealthy: it may run still, and a second sandbox on the same workspace would run beside it. A start
// that its caller ended tries no further candidate.
#include "session/chosen.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "policy/choice.h"
#include "session/ended.h"
#include "session/in_time.h"

namespace belljar::session {

ChosenSandbox::ChosenSandbox(std::vector<Candidate> candidates) : candidates_(std::move(candidates)) {
  const auto made = std::ranges::find_if(candidates_, [](const Candidate& one) { return one.sandbox.has_value(); });
  in_use_ = static_cast<std::size_t>(made - candidates_.begin());
}

Result<void> ChosenSandbox::start(const CallOptions& options) {
  const auto lock = BELLJAR_TRY(lock_in_time(mutex_, options, kNoStart));
  // What was chosen once is started again, and no other beside it: it may run still, whatever its health.
  if (chosen_) return use().start(options);
  std::vector<std::string> order;
  for (const Candidate& candidate : candidates_) order.push_back(candidate.backend);
  policy::Choice choice(std::move(order), Isolation::kNone);  // what is too weak was not made
  BELLJAR_CHECK(choice.first([&](const std::string&) -> Result<void> {
    const auto& made = candidates_[choice.tried().size()].sandbox;
    if (!made) return made.error();
    auto started = (*made)->start(options);
    if (!options.check(kNoStart)) choice.settle();
    return started;
  }));
  in_use_ = choice.tried().size();
  chosen_ = true;
  tried_ = choice.tried();
  return {};
}

Result<void> ChosenSandbox::stop(const CallOptions& options) {
  const auto lock = BELLJAR_TRY(lock_in_time(mutex_, options, "cannot stop the sandbox"));
  BELLJAR_CHECK(use().stop(options));
  chosen_ = false;
  return {};
}

Result<ExecResult> ChosenSandbox::exec(const Command& command, const ExecOptions& options) {
  ExecResult result = BELLJAR_TRY(use().exec(command, options));
  const std::lock_guard lock(mutex_);
  result.backend = use().backend();
  result.tried = tried_;
  return result;
}

}  // namespace belljar::session
