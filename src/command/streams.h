// The way of a command's output: to its caller's callbacks as it arrives, and up to the cap into its result.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>

#include "command/capture.h"
#include "command/ending.h"
#include "command/request.h"

namespace belljar::command {

enum class Stream { kOut, kErr };

// Of the thread that waits for the command, but for mute().
class Streams {
 public:
  // `request` outlives it.
  explicit Streams(const Request& request) noexcept
      : request_(request), captures_{Capture(request.output_bytes), Capture(request.output_bytes)} {}

  // Why the command has to end by what has come, if it has: a callback threw, or that was too much.
  std::optional<Cause> take(Stream stream, std::string_view bytes);
  // Bytes beyond the cap that nobody wants: see counts().
  void skip(Stream stream, std::uint64_t bytes) noexcept { captures_[index(stream)].skip(bytes); }
  // Whether the rest of it needs only to be counted.
  bool counts(Stream stream) const noexcept { return captures_[index(stream)].over() && !callback(stream); }
  // Whether somebody wants each piece as soon as it is there.
  bool prompt() const noexcept {
    return request_.on_stdout || request_.on_stderr || request_.limits.output_action == OutputAction::kKill;
  }
  // From any thread: no callback any more.
  void mute() noexcept { muted_.store(true); }
  const std::exception_ptr& thrown() const noexcept { return thrown_; }  // by a callback
  // Once, after the end.
  void finish(ExecResult& result);

 private:
  static std::size_t index(Stream stream) noexcept { return stream == Stream::kOut ? 0 : 1; }
  const OutputCallback& callback(Stream stream) const noexcept {
    return stream == Stream::kOut ? request_.on_stdout : request_.on_stderr;
  }

  const Request& request_;
  Capture captures_[2];
  std::exception_ptr thrown_;
  std::atomic<bool> muted_{false};
};

}  // namespace belljar::command
