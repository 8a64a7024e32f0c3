// A budget for what a command may say in the heads of requests while network.methods is "limited": without
// bodies, URLs and fields are what is left to carry data out. Pure.
//
// Only new text counts. A piece (a step of the path, a part of the query, a field with its value, all fields
// together) costs its bytes the first time that the host hears it. Said again it costs 2 bytes, which is what
// choosing among at most 65536 known pieces can carry. So the same `User-Agent` in a thousand requests costs
// next to nothing, and a package manager that fetches a thousand packages pays for their names. The bytes
// come back with time; a request waits until there are enough.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "egress/http.h"

namespace belljar::egress {

// A field in which npm tells its registry once more what it asks for (a hash of 100 bytes among it): in limited mode it is left
// out, so that it carries nothing and costs nothing.
bool repeats_request(const HttpField& field) noexcept;

class HeadBudget {
 public:
  using Clock = std::chrono::steady_clock;
  // `a_minute`: so many bytes come back in a minute, and so many are there at the start.
  explicit HeadBudget(std::uint64_t a_minute) : most_(static_cast<double>(a_minute)), left_(most_) {}
  static constexpr std::chrono::milliseconds kPatience{15'000};
  // Charges a request to `host` and returns how long it must wait. nullopt: longer than `patience`, and
  // nothing was charged.
  std::optional<std::chrono::milliseconds> take(std::string_view host, const HttpHead& head, Clock::time_point now,
                                                std::chrono::milliseconds patience = kPatience);

 private:
  std::size_t cost_of(std::string_view piece) const;
  std::size_t cost_of(std::string_view host, const HttpHead& head) const;
  void learn(std::string_view piece);
  void learn(std::string_view host, const HttpHead& head);

  double most_, left_;
  std::optional<Clock::time_point> at_;
  std::unordered_set<std::string> known_;
  std::size_t held_ = 0;  // bytes in known_
};

// One for each rule that opens hosts: names below a wildcard share one, or each would be a fresh budget.
using HeadBudgets = std::map<std::string, HeadBudget>;

}  // namespace belljar::egress
