// Reading and writing the one-line files of cgroupfs and procfs: one open, one read or write, no streams.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace belljar::kernel {

// The whole file (at most 1 MiB), or nullopt with errno set. `dirfd` may be AT_FDCWD. Links in the last component are not followed.
std::optional<std::string> read_small_file(int dirfd, const char* name);
inline std::optional<std::string> read_small_file(int dirfd, const std::string& name) {
  return read_small_file(dirfd, name.c_str());
}

// Writes `text` in one write(2), as cgroupfs wants it. 0 or an errno.
int write_small_file(int dirfd, const char* name, std::string_view text) noexcept;

// Decimal number at the start of `text`; nullopt when there is none ("max").
std::optional<std::uint64_t> parse_number(std::string_view text) noexcept;

// Value of the line `key value` in a flat keyed file (memory.events, cpu.stat). nullopt when the key is absent.
std::optional<std::uint64_t> find_key(std::string_view text, std::string_view key) noexcept;

// Cuts `text` up to the next `separator` off its front and returns it; the rest stays in `text`.
std::string_view next_field(std::string_view& text, char separator) noexcept;

// A path as mountinfo writes it: spaces, tabs, newlines and backslashes stand as \ooo, proc_pid_mountinfo(5).
std::string unescape_octal(std::string_view text);

}  // namespace belljar::kernel
