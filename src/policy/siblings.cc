// Which workspaces of other sandboxes are hidden from this one.
//
// All are, except where hiding would break what was asked for: inside this workspace, around the home
// directory, and where a rule or a volume names a part of it. Sorted by name, a directory comes before all
// that lies in it, so one pass is enough to drop what a hidden directory covers anyway.
#include "policy/siblings.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "policy/paths.h"

namespace belljar::policy {
namespace {

// Why it stays; empty: it is hidden.
std::string_view why_visible(const std::string& other, const SiblingQuestion& question) {
  if (is_within(other, question.workspace)) return "it lies in this workspace";
  if (other == "/" || (!question.home.empty() && is_within(question.home, other))) return "the home directory lies in it";
  const auto names_it = [&](const std::string& path) { return is_within(path, other) && !is_within(path, question.workspace); };
  if (std::ranges::any_of(question.opened, names_it)) return "a rule names it, or a part of it";
  const auto shows_it = [&](const std::string& source) { return is_within(source, other) || is_within(other, source); };
  if (std::ranges::any_of(question.volumes, shows_it)) return "a volume shows it, or a part of it";
  return {};
}

}  // namespace

SiblingAnswer choose_siblings(SiblingQuestion question) {
  std::vector<std::string>& others = question.others;
  std::ranges::sort(others);
  const auto repeated = std::ranges::unique(others);
  others.erase(repeated.begin(), repeated.end());
  SiblingAnswer answer;
  for (const std::string& other : others) {
    if (other.empty() || other == question.workspace) continue;
    const std::string_view why = why_visible(other, question);
    if (!why.empty()) {
      answer.visible.push_back(format("{} ({})", quoted(other), why));
      continue;
    }
    // In order of names a directory comes before what it holds.
    const auto holds = [&](const std::string& path) { return is_within(other, path); };
    if (std::ranges::none_of(answer.hidden, holds)) answer.hidden.push_back(other);
  }
  return answer;
}

}  // namespace belljar::policy
