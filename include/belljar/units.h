// Units live in types: a size is Bytes, a time is std::chrono. `512_MiB`, `30s`.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "belljar/result.h"

namespace belljar {

struct Bytes {
  std::uint64_t count = 0;
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
};

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return {n}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return {n << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return {n << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return {n << 30}; }
}  // namespace literals

// "512MiB", "1.5GiB", "200000" (bytes), "64k" (KiB), "2GB" (decimal). Errors: kInvalidArgument with the accepted forms.
Result<Bytes> parse_bytes(std::string_view text);
// "30s", "1.5m", "250ms", "2h", "30" (seconds). Errors: kInvalidArgument with the accepted forms.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);
// The shortest form that parse_* reads back to the same value: "512MiB", "30s".
std::string to_string(Bytes bytes);
std::string to_string(std::chrono::milliseconds duration);

}  // namespace belljar
