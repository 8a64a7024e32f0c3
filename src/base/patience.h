// How long callers may ask to wait. A century is for ever, and the largest duration added to now would lie in the past.
#pragma once

#include <algorithm>
#include <chrono>

namespace belljar {

inline constexpr std::chrono::milliseconds kForever = std::chrono::hours(24 * 365 * 100);

constexpr std::chrono::milliseconds bounded(std::chrono::milliseconds patience) noexcept {
  return std::clamp(patience, std::chrono::milliseconds(0), kForever);
}

}  // namespace belljar
