#include "policy/domains.h"

#include <algorithm>

namespace belljar::policy {
namespace {

struct Rule {
  bool self = true;    // covers the name itself
  bool below = false;  // covers its sub-domains
  std::string_view name;
  std::string_view port;  // empty: any
};

Rule split(std::string_view text) noexcept {
  Rule rule;
  if (text.starts_with("**.")) rule.below = true, text.remove_prefix(3);
  else if (text.starts_with("*.")) rule.below = true, rule.self = false, text.remove_prefix(2);
  if (const std::size_t colon = text.rfind(':'); colon != std::string_view::npos && !text.ends_with(']')) {
    rule.port = text.substr(colon + 1);
    text = text.substr(0, colon);
  }
  if (text.ends_with('.')) text.remove_suffix(1);
  rule.name = text;
  return rule;
}

bool same(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

// By whole labels: "evil-example.com" is not below "example.com".
bool is_below(std::string_view name, std::string_view zone) noexcept {
  return name.size() > zone.size() + 1 && name[name.size() - zone.size() - 1] == '.' &&
         same(name.substr(name.size() - zone.size()), zone);
}

}  // namespace

bool domain_covers(std::string_view have, std::string_view wanted) noexcept {
  const Rule outer = split(have), inner = split(wanted);
  if (!outer.port.empty() && outer.port != inner.port) return false;
  if (is_below(inner.name, outer.name)) return outer.below;
  if (!same(inner.name, outer.name)) return false;
  return (!inner.self || outer.self) && (!inner.below || outer.below);
}

}  // namespace belljar::policy
