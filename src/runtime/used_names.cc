#include "runtime/used_names.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "policy/ignore.h"
#include "policy/paths.h"
#include "policy/refusal.h"

namespace belljar::runtime {
namespace {

// When the link was used, and for the next time: never.
std::optional<std::chrono::system_clock::time_point> take_use(int links, const std::string& name) {
  struct stat status{};
  if (::fstatat(links, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || status.st_atim.tv_sec == 0) return std::nullopt;
  constexpr timespec kNever[2] = {{0, 0}, {0, UTIME_OMIT}};
  (void)::utimensat(links, name.c_str(), kNever, AT_SYMLINK_NOFOLLOW);
  return std::chrono::system_clock::time_point(std::chrono::seconds(status.st_atim.tv_sec) +
                                               std::chrono::microseconds(status.st_atim.tv_nsec / 1000));
}

bool is_told(const ExecResult& result, const std::string& path) {
  return std::ranges::any_of(result.violations, [&](const Violation& one) { return policy::is_within(one.target, path); });
}

}  // namespace

UsedNames UsedNames::of(const backend::Prepared& prepared, std::vector<UniqueFd>&& given) {
  UsedNames names;
  if (prepared.seen.empty() || given.size() <= prepared.scratch.size()) return names;
  names.links_ = std::move(given.back());
  names.paths_ = prepared.seen;
  return names;
}

void UsedNames::add_violations(ExecResult& result, const Policy& policy, const Filesystem* complete, const Origins* origins) const {
  std::uint64_t next = result.violations_dropped + result.violations_hidden;
  for (const Violation& violation : result.violations) next += violation.count;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const auto used = take_use(links_.get(), std::to_string(i));
    if (!used || is_told(result, paths_[i])) continue;
    Violation violation{.time = *used,
                        .operation = "read",
                        .target = paths_[i],
                        .rule = "filesystem.entries",
                        .origin = origin_of(origins, "filesystem.entries"),
                        .errnum = EACCES,
                        .allowed = std::string(policy::kHiddenByRule)};
    if (complete != nullptr) {
      if (auto found = policy::find_refusal(*complete, {}, policy::FileUse::kRead, paths_[i], EACCES)) {
        violation.rule = std::move(found->rule);
        violation.origin = std::move(found->origin);
        violation.allowed = std::move(found->allowed);
      }
    }
    violation.sequence = next++;
    if (policy::is_ignored(policy.ignore_violations, violation)) ++result.violations_hidden;
    else result.violations.push_back(std::move(violation));
  }
}

}  // namespace belljar::runtime
