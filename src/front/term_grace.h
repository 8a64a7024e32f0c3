// After a TERM that a front passes on to its command's group KILL follows, once the grace has passed or TERM comes again.
#pragma once

#include <chrono>
#include <optional>

namespace belljar::front {

// A value; one thread.
class TermGrace {
 public:
  using Clock = std::chrono::steady_clock;
  // `grace`: Limits::kill_grace.
  explicit TermGrace(std::chrono::milliseconds grace) noexcept : grace_(grace) {}

  // TERM came, or the terminal went away. Whether the command is to be killed at once.
  bool again(Clock::time_point now) noexcept {
    if (first_) return now - *first_ >= kSameWish;
    first_ = now;
    return false;
  }
  // Empty until told.
  std::optional<Clock::time_point> kill_at() const noexcept { return first_ ? std::optional(*first_ + grace_) : std::nullopt; }

 private:
  // timeout(1) sends each signal twice, to its child and to its group; a shell that ends its jobs does, too.
  static constexpr std::chrono::milliseconds kSameWish{500};

  std::chrono::milliseconds grace_;
  std::optional<Clock::time_point> first_;
};

}  // namespace belljar::front
