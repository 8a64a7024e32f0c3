#include "remote/e2b/core.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "remote/e2b/run.h"
#include "remote/marked.h"

namespace belljar::remote::e2b {
namespace {

using namespace std::chrono_literals;

}  // namespace

Result<Helped> Core::help(std::vector<std::string> argv, std::string stdin_bytes, std::chrono::milliseconds patience,
                          const CancelToken& cancel, std::uint64_t most) {
  const std::string what = format("cannot run {} inside", argv.at(0));
  RunRequest request;
  request.command = {.argv = std::move(argv), .cwd = {}, .env = {{"LC_ALL", "C"}}};
  request.cwd = "/";
  request.timeout = patience;
  request.stdin_bytes = std::move(stdin_bytes);
  request.cancel = cancel;
  request.output_bytes = most;
  request.limits.kill_grace = 0ms;
  request.marked = false;
  const auto run = BELLJAR_TRY(Run::start(shared_from_this(), std::move(request)));
  const ExecResult result = BELLJAR_TRY(run->finish());
  switch (result.reason) {
    case Reason::kExited:
      return Helped{result.exit_code, result.out.bytes, result.err.bytes, result.out.omitted == 0};
    case Reason::kTimeout:
      return Error(Code::kDeadlineExceeded, what).reason(result.message);
    case Reason::kStartFailed:
      return Error(Code::kFailedPrecondition, what).reason(result.message).next("use a template that has it");
    default:
      return Error(ending() || !cancel.cancelled() ? Code::kUnavailable : Code::kCanceled, what).reason(result.message);
  }
}

bool Core::kill_marked(const std::string& mark, int signal, std::chrono::milliseconds patience, const CancelToken& cancel) {
  const auto helped = help({"/bin/sh", "-c", kEndMarked, "sh", mark, std::to_string(signal)}, {}, patience, cancel);
  return helped && helped->exit_code == 0;
}

void Core::add(const std::shared_ptr<Run>& run) {
  const std::lock_guard lock(mutex_);
  std::erase_if(runs_, [](const auto& weak) { return weak.expired(); });
  runs_.push_back(run);
  if (ending_) run->cancel();  // it came too late for end_commands()
}

void Core::end_commands() {
  ending_ = true;
  std::vector<std::weak_ptr<Run>> runs;
  {
    const std::lock_guard lock(mutex_);
    runs = runs_;
  }
  for (const auto& weak : runs) {
    if (const auto run = weak.lock()) run->cancel();
  }
}

}  // namespace belljar::remote::e2b
