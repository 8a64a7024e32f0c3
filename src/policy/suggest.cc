// The nearest right name for a wrong one: a key, an option, a profile.
//
// Words that another tool or the documents use come first, from a table: no distance leads from `full_access`
// to `danger-full-access`. Otherwise the edit distance decides, with a swap of neighbours as one mistake, and
// after both were brought to one spelling: dashes, case and camelCase do not count. A right last word in a
// wrong table is the commonest mistake, so it is tried before the distance.
#include <algorithm>
#include <numeric>

#include "base/ascii.h"
#include "policy/schema.h"

namespace belljar::policy {
namespace {

// allowLocalBinding, allow-local-binding and ALLOW_LOCAL_BINDING all read allow_local_binding.
std::string canonical(std::string_view name) {
  std::string result;
  while (name.starts_with('-')) name.remove_prefix(1);
  for (const char c : name) {
    if (is_upper(c) && !result.empty() && is_lower(result.back())) result += '_';
    result += c == '-' ? '_' : to_lower(c);
  }
  return result;
}

// Damerau-Levenshtein distance (optimal string alignment): a swap of neighbours is one mistake.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(last, std::exchange(row, std::vector<std::size_t>(b.size() + 1)));
  }
  return last[b.size()];
}

struct Synonym {
  std::string_view of, wrong, right;
};
constexpr std::string_view kFullAccess = "write `danger-full-access`: no sandbox holds the command then";
constexpr std::string_view kLimited =
    "write network.methods = \"limited\" (`--net-methods limited`), which lets GET, HEAD and OPTIONS pass, beside network.mode = "
    "\"proxy\"";
constexpr Synonym kSynonyms[] = {
    {"mode", "full_access", kFullAccess},
    {"network.mode", "limited", kLimited},
    {"network.mode", "full", "write `host`"},
    {"network.mode", "enabled", "write `host`"},
    {"network.mode", "restricted", "write `proxy`, and the hosts in network.allowed_domains"},
    {"network.mode", "isolated", "write `none`"},
    {"network.mode", "full_access", "write `host`"},
    {"network.mode", "proxy_only", "write `proxy`"},
    {"--", "full_access", "write `--policy danger-full-access`: no sandbox holds the command then"},
    {"--", "danger_full_access", "write `--policy danger-full-access`: no sandbox holds the command then"},
    {"--", "use_legacy_landlock", "write `--backend landlock`"},
    {"--", "read_only_access", "write `--read PATH` for what may be read alone, `--hide PATH` for what may not be read"},
    {"--", "mitm", "leave it out: TLS is looked into where `--net-methods limited`, --allow-request or --credential needs it"},
    {"--", "sandbox", "write `--policy read-only`, `workspace-write` or `danger-full-access`"},
    {"--", "sandbox_mode", "write `--policy read-only`, `workspace-write` or `danger-full-access`"},
};

constexpr std::size_t kLongestName = 80;  // what is longer is no slip of the finger, and the distance is quadratic

}  // namespace

std::string_view nearest(std::string_view wrong, std::span<const std::string_view> names) {
  if (wrong.size() > kLongestName) return {};
  const std::string left = canonical(wrong);
  std::string_view best;
  std::size_t least = std::max<std::size_t>(1, left.size() / 3) + 1;
  for (const std::string_view name : names) {
    const std::size_t d = distance(left, canonical(name));
    if (d < least) least = d, best = name;
  }
  return best;
}

std::string_view known_synonym(std::string_view of, std::string_view wrong) {
  if (wrong.size() > kLongestName) return {};
  const std::string word = canonical(wrong);
  const auto* found = std::ranges::find_if(kSynonyms, [&](const Synonym& one) { return one.of == of && one.wrong == word; });
  return found == std::end(kSynonyms) ? std::string_view() : found->right;
}

std::string nearest_key(std::string_view wrong) {
  std::vector<std::string_view> full, last;
  for (const Key& key : keys()) {
    full.push_back(key.name);
    last.push_back(key.name.substr(key.name.rfind('.') + 1));
  }
  for (const Alias& alias : aliases()) {
    if (alias.how != Alias::How::kRefused && alias.how != Alias::How::kMustBeTrue) full.push_back(alias.name);
  }
  // A right last word in the wrong table is the commonest mistake: `memory` at the top, `limits.env`.
  const std::string_view leaf = wrong.substr(wrong.rfind('.') + 1);
  for (std::size_t i = 0; i < last.size(); ++i) {
    if (last[i] == canonical(leaf)) return std::string(keys()[i].name);
  }
  if (const std::string_view near = nearest(wrong, full); !near.empty()) return std::string(near);
  const std::string_view near = nearest(leaf, last);
  for (std::size_t i = 0; !near.empty() && i < last.size(); ++i) {
    if (last[i] == near) return std::string(keys()[i].name);
  }
  return {};
}

}  // namespace belljar::policy
