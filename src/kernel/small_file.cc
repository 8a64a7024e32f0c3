#include "kernel/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/read_file.h"
#include "base/unique_fd.h"

namespace belljar::kernel {

std::optional<std::string> read_small_file(int dirfd, const char* name) {
  const UniqueFd fd{::openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  if (!fd.valid()) return std::nullopt;
  return read_at_most(fd.get(), std::size_t{1} << 20);
}

int write_small_file(int dirfd, const char* name, std::string_view text) noexcept {
  const UniqueFd fd{::openat(dirfd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)};
  if (!fd.valid()) return errno;
  ssize_t written = 0;
  do written = ::write(fd.get(), text.data(), text.size());
  while (written < 0 && errno == EINTR);
  if (written < 0) return errno;
  return static_cast<std::size_t>(written) == text.size() ? 0 : EIO;
}

std::optional<std::uint64_t> parse_number(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> find_key(std::string_view text, std::string_view key) noexcept {
  while (!text.empty()) {
    std::string_view line = next_field(text, '\n');
    if (next_field(line, ' ') == key) return parse_number(line);
  }
  return std::nullopt;
}

std::string_view next_field(std::string_view& text, char separator) noexcept {
  const std::size_t end = text.find(separator);
  const std::string_view field = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return field;
}

std::string unescape_octal(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '7'; };
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && digit(text[i + 1]) && digit(text[i + 2]) && digit(text[i + 3])) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace belljar::kernel
