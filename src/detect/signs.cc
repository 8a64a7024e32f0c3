#include "detect/signs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

namespace belljar::detect {
namespace {

// In the order of signs.h.
constexpr std::string_view kRoleNames[] = {
    "drop",    "earlier", "orders", "send",    "secret", "reveal", "prompt",   "model",   "ai",        "hide",     "not",
    "person",  "act",     "target", "must",    "talk",   "reply",  "you",      "lead",    "off",       "guarding", "pay",
    "funds",   "tool",    "later",  "session", "read",   "this",   "language", "pretend", "limits",    "got",      "follow",
    "approve", "office",  "ask",    "store",   "md",     "self",   "need",     "void",    "transform", "image",    "swap",
    "haul",    "omit",    "notice", "stored",  "before", "policy", "rights",   "says",    "task",      "remember", "quiet",
    "now",     "when",    "invoke", "without", "to",     "handed", "led",      "memory",  "spare"};
static_assert(std::size(kRoleNames) == 64);

// Thousands of rows of words and weights name a role, and each start of a detector reads them all.
constexpr auto kRolesByName = [] {
  std::array<std::pair<std::string_view, unsigned>, std::size(kRoleNames)> sorted;
  for (unsigned bit = 0; bit < sorted.size(); ++bit) sorted[bit] = {kRoleNames[bit], bit};
  std::ranges::sort(sorted);
  return sorted;
}();

}  // namespace

std::string_view name_of_role(unsigned bit) noexcept { return kRoleNames[bit % 64]; }

std::string_view cut(std::string_view& text, char end) noexcept {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return head;
}

unsigned role_named(std::string_view name) noexcept {
  const auto* const found = std::ranges::lower_bound(kRolesByName, name, {}, &std::pair<std::string_view, unsigned>::first);
  return found != kRolesByName.end() && found->first == name ? found->second : 64;
}

}  // namespace belljar::detect
