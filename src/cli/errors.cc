#include "cli/errors.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "base/format.h"
#include "belljar/error.h"

namespace belljar::cli {
namespace {

void write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // stderr is gone; there is nobody to tell
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::string error_text(const Error& error) {
  std::string text = "belljar: " + error.what();
  if (error.errnum() != 0) text += format(": {} ({})", std::strerror(error.errnum()), error.call());
  text += '\n';
  if (!error.excerpt().empty()) text += error.excerpt() + "\n";
  if (!error.reason().empty()) text += "  reason: " + error.reason() + "\n";
  if (!error.next().empty()) text += "  next:   " + error.next() + "\n";
  return text;
}

int print_error(const Error& error) {
  write_to_stderr(error_text(error));
  return error.exit_code();
}

int print_result(const std::string& text) {
  const bool fine = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return fine ? 0 : print_error(Error(Code::kUnavailable, "cannot write to stdout").sys(errno, "write"));
}

void print_note(std::string_view text) { write_to_stderr(format("belljar: {}\n", text)); }

}  // namespace belljar::cli
