// How much the heads of requests have said that is new; head_budget.h has the price list.
//
// The budget is a token bucket, and a request may take it below zero: it then waits until the debt is paid. A
// request that would wait for longer than its patience takes nothing. Known pieces are bounded in number and
// in bytes; when they are too many all of them are forgotten, which makes the next ones dearer and never
// cheaper.
#include "egress/head_budget.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "egress/http.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kAgain = 2;            // of a known piece
constexpr std::size_t kMostPieces = 65536;   // which 2 bytes tell apart
constexpr std::size_t kMostHeld = 1U << 20;  // bytes; then all is forgotten, and costs anew
constexpr double kMillisecondsAMinute = 60'000;

// Each step of the path, each part of the query.
template <class Act>
void each_part(std::string_view target, Act act) {
  while (!target.empty()) {
    const std::size_t end = std::min(target.find_first_of("/?&", 1), target.size());
    act(target.substr(0, end));
    target.remove_prefix(end);
  }
}

std::string line_of(const HttpField& field) { return field.name + ": " + field.value; }

bool is_counted(const HttpField& field) { return !iequals(field.name, "Host") && !repeats_request(field); }

std::string all_fields(const HttpHead& head) {
  std::string all = "\r\n";  // no single field begins so
  for (const HttpField& field : head.fields) {
    if (is_counted(field)) all += line_of(field) + "\r\n";
  }
  return all;
}

}  // namespace

bool repeats_request(const HttpField& field) noexcept {
  return iequals(field.name, "pacote-pkg-id") || iequals(field.name, "pacote-integrity");
}

std::size_t HeadBudget::cost_of(std::string_view piece) const {
  return known_.contains(std::string(piece)) ? kAgain : piece.size() + kAgain;
}

std::size_t HeadBudget::cost_of(std::string_view host, const HttpHead& head) const {
  std::size_t cost = cost_of(head.method) + cost_of(host);
  each_part(head.target, [&](std::string_view part) { cost += cost_of(part); });
  if (known_.contains(all_fields(head))) return cost + kAgain;
  for (const HttpField& field : head.fields) {
    if (is_counted(field)) cost += cost_of(line_of(field));
  }
  return cost;
}

void HeadBudget::learn(std::string_view piece) {
  if (known_.size() >= kMostPieces || held_ + piece.size() > kMostHeld) known_.clear(), held_ = 0;
  if (known_.emplace(piece).second) held_ += piece.size();
}

void HeadBudget::learn(std::string_view host, const HttpHead& head) {
  learn(head.method), learn(host);
  each_part(head.target, [&](std::string_view part) { learn(part); });
  for (const HttpField& field : head.fields) {
    if (is_counted(field)) learn(line_of(field));
  }
  learn(all_fields(head));
}

std::optional<std::chrono::milliseconds> HeadBudget::take(std::string_view host, const HttpHead& head, Clock::time_point now,
                                                          std::chrono::milliseconds patience) {
  const double a_millisecond = most_ / kMillisecondsAMinute;
  if (at_) left_ += a_millisecond * std::chrono::duration<double, std::milli>(now - *at_).count();
  left_ = std::min(left_, most_);
  at_ = now;
  const auto cost = static_cast<double>(cost_of(host, head));
  const auto wait = std::chrono::milliseconds(static_cast<long>(std::max(cost - left_, 0.0) / a_millisecond));
  if (wait > patience) return std::nullopt;
  left_ -= cost;
  learn(host, head);
  return wait;
}

}  // namespace belljar::egress
