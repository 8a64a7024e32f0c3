// Why a call could not be done: a value, never an exception.
//
// An Error answers three questions a person has: what failed, why, and what to do next. Its code is one of Connect's
// (https://connectrpc.com/docs/protocol#error-codes), so that it crosses a wire unchanged. What a *command* did inside
// a sandbox (exit 1, killed, timed out) is never an Error: it is an ExecResult.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace belljar {

enum class Code {
  kCanceled,
  kUnknown,
  kInvalidArgument,
  kDeadlineExceeded,
  kNotFound,
  kAlreadyExists,
  kPermissionDenied,
  kResourceExhausted,
  kFailedPrecondition,
  kAborted,
  kOutOfRange,
  kUnimplemented,
  kInternal,
  kUnavailable,
  kDataLoss,
  kUnauthenticated,
};

// "invalid_argument" and so on, as Connect spells them.
std::string_view to_string(Code code) noexcept;

class [[nodiscard]] Error {
 public:
  // `what`: what we could not do, as a clause without a full stop: "cannot read policy `x.toml`".
  Error(Code code, std::string what) : code_(code), what_(std::move(what)) {}

  // Why it failed. Chains: Error(...).reason("...").next("...").
  Error&& reason(std::string text) && {
    reason_ = std::move(text);
    return std::move(*this);
  }
  // What the reader can do about it.
  Error&& next(std::string text) && {
    next_ = std::move(text);
    return std::move(*this);
  }
  // The system call that failed and its errno; the errno's text becomes part of the message.
  Error&& sys(int errnum, std::string call) && {
    errno_ = errnum;
    call_ = std::move(call);
    return std::move(*this);
  }
  // The source line with a caret below it, for errors in a text; shown between what and why.
  Error&& excerpt(std::string text) && {
    excerpt_ = std::move(text);
    return std::move(*this);
  }
  // Exit code for the command line where 125 is not the answer: 126 not executable, 127 not found.
  Error&& exit_code(int code) && {
    exit_code_ = code;
    return std::move(*this);
  }

  Code code() const noexcept { return code_; }
  const std::string& what() const noexcept { return what_; }
  const std::string& reason() const noexcept { return reason_; }
  const std::string& next() const noexcept { return next_; }
  const std::string& excerpt() const noexcept { return excerpt_; }
  int errnum() const noexcept { return errno_; }
  const std::string& call() const noexcept { return call_; }
  int exit_code() const noexcept { return exit_code_; }

  // One line: "cannot create a user namespace: Operation not permitted (clone3); reason; next: ...".
  std::string line() const;

 private:
  Code code_;
  std::string what_;
  std::string reason_;
  std::string next_;
  std::string call_;
  std::string excerpt_;
  int errno_ = 0;
  int exit_code_ = 125;
};

}  // namespace belljar
