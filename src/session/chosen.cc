#include "session/chosen.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "policy/backends.h"
#include "session/ended.h"
#include "session/in_time.h"

namespace belljar::session {

ChosenSandbox::ChosenSandbox(std::vector<Candidate> candidates) : candidates_(std::move(candidates)) {
  const auto made = std::ranges::find_if(candidates_, [](const Candidate& one) { return one.sandbox != nullptr; });
  in_use_ = static_cast<std::size_t>(made - candidates_.begin());
}

Result<void> ChosenSandbox::start(const CallOptions& options) {
  const auto lock = BELLJAR_TRY(lock_in_time(mutex_, options, kNoStart));
  // What was chosen once is started again, and no other beside it: it may run still, whatever its health.
  if (chosen_) return use().start(options);
  std::vector<TriedBackend> tried;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    if (candidate.sandbox == nullptr) {
      tried.push_back({candidate.backend, candidate.why});
      continue;
    }
    Result<void> started = candidate.sandbox->start(options);
    if (started) {
      in_use_ = i;
      chosen_ = true;
      tried_ = std::move(tried);
      return {};
    }
    if (!policy::is_worth_another(started.error()) || !options.check(kNoStart)) return started;
    tried.push_back({candidate.backend, started.error().line()});
  }
  return policy::none_starts(tried);
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
