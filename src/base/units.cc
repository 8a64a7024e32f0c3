// Sizes and durations, in and out.
//
// One letter means powers of 1024 (`512M` is 512 MiB), as people write memory limits; `MB` with its B means
// 10^6. A bare number is bytes, or seconds. Upper bounds keep the values in 64 bits, as nanoseconds too: the
// largest duration added to now must not lie in the past.
#include "belljar/units.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kKi = 1024;
constexpr Unit kSizes[] = {{"", 1},
                           {"B", 1},
                           {"k", kKi},
                           {"K", kKi},
                           {"KiB", kKi},
                           {"M", kKi* kKi},
                           {"m", kKi* kKi},
                           {"MiB", kKi* kKi},
                           {"G", kKi* kKi* kKi},
                           {"g", kKi* kKi* kKi},
                           {"GiB", kKi* kKi* kKi},
                           {"TiB", kKi* kKi* kKi* kKi},
                           {"T", kKi* kKi* kKi* kKi},
                           {"kB", 1e3},
                           {"KB", 1e3},
                           {"MB", 1e6},
                           {"GB", 1e9},
                           {"TB", 1e12}};
constexpr Unit kTimes[] = {{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"min", 60e3}, {"h", 3600e3}, {"d", 86400e3}};

// A hundred years in milliseconds: in nanoseconds, as the clock counts, three hundred no longer fit into 64 bits.
constexpr double kLongest = 100.0 * 365 * 86400e3;

// The number times the factor of its unit, at most `most`; or why not.
Result<double> scaled(std::string_view text, std::span<const Unit> units, double most, std::string_view what,
                      std::string_view forms) {
  double number = 0;
  const auto [end, errc] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const auto bad = [&](std::string_view why) {
    return Error(Code::kInvalidArgument, format("{} is not a {}", quoted(text), what))
        .reason(std::string(why))
        .next(format("write it like {}", forms));
  };
  if (errc != std::errc() || end == text.data()) return bad("it does not start with a number");
  if (!std::isfinite(number)) return bad("it is not a finite number");
  if (number < 0) return bad("it must not be negative");
  for (const Unit& unit : units) {
    if (unit.name != suffix) continue;
    const double value = number * unit.factor;
    if (value > most) return bad("it is too large");
    return value;
  }
  return bad(format("unit {} is not known", quoted(suffix)));
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  const double value = BELLJAR_TRY(scaled(text, kSizes, 9.0e18, "size", "512MiB, 1.5GiB or 200000"));
  return Bytes{static_cast<std::uint64_t>(std::llround(value))};
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const double value = BELLJAR_TRY(scaled(text, kTimes, kLongest, "duration", "30s, 1.5m or 250ms"));
  return std::chrono::milliseconds(std::llround(value));
}

std::string to_string(Bytes bytes) {
  constexpr std::pair<std::string_view, std::uint64_t> kNames[] = {
      {"TiB", 1ULL << 40}, {"GiB", 1ULL << 30}, {"MiB", 1ULL << 20}, {"KiB", 1ULL << 10}};
  for (const auto& [name, factor] : kNames) {
    if (bytes.count >= factor && bytes.count % factor == 0) return format("{}{}", bytes.count / factor, name);
  }
  return format("{}", bytes.count);
}

std::string to_string(std::chrono::milliseconds duration) {
  const auto count = duration.count();
  if (count >= 3600000 && count % 3600000 == 0) return format("{}h", count / 3600000);
  if (count >= 60000 && count % 60000 == 0) return format("{}m", count / 60000);
  if (count % 1000 == 0) return format("{}s", count / 1000);
  return format("{}ms", count);
}

}  // namespace belljar
