#include "detect/signs.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

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

}  // namespace

std::string_view name_of_role(unsigned bit) noexcept { return kRoleNames[bit % 64]; }

std::string_view cut(std::string_view& text, char end) noexcept {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return head;
}

unsigned role_named(std::string_view name) noexcept {
  return static_cast<unsigned>(std::ranges::find(kRoleNames, name) - std::begin(kRoleNames));
}

}  // namespace belljar::detect
