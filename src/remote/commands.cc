// Commands of a sandbox, and helpers of ours that run beside them.
//
// A helper is an ordinary command with the purpose kHelper: bounded output, no grace, the C locale, since its
// complaints are read (complaint_of). end_commands() sets the flag first and then takes the list. A command
// that is added in between sees the flag in add() and ends itself, so none is missed whichever comes first.
#include "remote/commands.h"

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
#include "command/request.h"
#include "command/running_command.h"

namespace belljar::remote {

Result<HelperResult> Commands::help(std::vector<std::string> argv, std::string stdin_bytes, std::chrono::milliseconds patience,
                                    const CancelToken& cancel, std::uint64_t most) {
  const std::string what = format("cannot run {} inside", argv.at(0));
  command::Request request;
  request.purpose = command::Purpose::kHelper;
  request.command = {.argv = std::move(argv), .cwd = {}, .env = {{"LC_ALL", "C"}}};
  request.cwd = "/";
  request.timeout = patience;
  request.stdin_bytes = std::move(stdin_bytes);
  request.cancel = cancel;
  request.output_bytes = most;
  request.limits.kill_grace = std::chrono::milliseconds(0);
  const auto run = BELLJAR_TRY(start(std::move(request)));
  const ExecResult result = BELLJAR_TRY(run->finish());
  switch (result.reason) {
    case Reason::kExited:
      return HelperResult{result.exit_code, result.out.bytes, result.err.bytes, result.out.omitted == 0};
    case Reason::kTimeout:
      return Error(Code::kDeadlineExceeded, what).reason(result.message);
    case Reason::kStartFailed:
      return Error(Code::kFailedPrecondition, what)
          .reason(result.message)
          .next(format("use {} {} that has it", image_ == "image" ? "an" : "a", image_));
    default:
      return Error(ending() || !cancel.cancelled() ? Code::kUnavailable : Code::kCanceled, what).reason(result.message);
  }
}

void Commands::add(const std::shared_ptr<command::RunningCommand>& run) {
  const std::lock_guard lock(mutex_);
  std::erase_if(runs_, [](const auto& weak) { return weak.expired(); });
  runs_.push_back(run);
  if (ending_) run->request_end(command::RunningCommand::EndRequest::kCancel);  // it came too late for end_commands()
}

void Commands::end_commands() {
  ending_ = true;
  std::vector<std::weak_ptr<command::RunningCommand>> runs;
  {
    const std::lock_guard lock(mutex_);
    runs = runs_;
  }
  for (const auto& weak : runs) {
    if (const auto run = weak.lock()) run->request_end(command::RunningCommand::EndRequest::kCancel);
  }
}

}  // namespace belljar::remote
