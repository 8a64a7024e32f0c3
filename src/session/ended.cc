#include "session/ended.h"

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string_view>

#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/process.h"
#include "belljar/result.h"

namespace belljar::session {
namespace {

class CancelledProcess final : public Process {
 public:
  int pid() const noexcept override { return 0; }
  Result<std::optional<ExecResult>> wait(std::optional<std::chrono::milliseconds>) override {
    return std::optional(cancelled_before_start());
  }
  Result<void> signal(int) override { return ended(); }
  Result<void> write_stdin(std::string_view, std::chrono::milliseconds) override { return ended(); }
  Result<void> close_stdin() override { return {}; }
  Result<void> resize(unsigned short, unsigned short) override { return ended(); }
  Result<void> detach() override { return {}; }

 private:
  static Error ended() {
    return Error(Code::kFailedPrecondition, "the command has ended").reason("it was cancelled before its start");
  }
};

}  // namespace

ExecResult cancelled_before_start() {
  ExecResult result;
  result.exit_code = 128 + SIGTERM;
  result.signal = SIGTERM;
  result.reason = Reason::kCancelled;
  result.message = "cancelled by the caller";
  return result;
}

std::unique_ptr<Process> make_cancelled_process() { return std::make_unique<CancelledProcess>(); }

Result<void> check_not_cancelled(const CancelToken& cancel) {
  if (!cancel.cancelled()) return {};
  return Error(Code::kCanceled, kNoStart).reason("it was cancelled").next("make another, with a token of its own");
}

Error start_error(const Error& error, const CallOptions& options) {
  if (error.code() != Code::kCanceled) return error;
  const Result<void> over = options.check(kNoStart);
  if (over) return error;
  return error.next().empty() ? over.error() : Error(over.error()).next(error.next());
}

Error not_healthy(const Error& why) {
  if (why.code() == Code::kCanceled || why.code() == Code::kDeadlineExceeded) return why;
  return Error(Code::kUnavailable, why.what()).reason(why.reason());
}

Error no_input(const char* reason) {
  return Error(Code::kFailedPrecondition, "cannot write to the command's stdin").reason(reason);
}

}  // namespace belljar::session
