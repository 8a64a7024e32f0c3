// Checks for a policy that was written in code and so passed neither the parser nor merge().
//
// The same checks of paths, patterns and names apply as to a file. A relative path is an error: there is no
// directory that it would be relative to.
#include "policy/check_policy.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/layer.h"
#include "policy/paths.h"
#include "policy/schema.h"

namespace belljar::policy {
namespace {

using std::chrono::milliseconds;

Error at_key(std::string_view key, const Error& error) {
  return Error(error.code(), format("{}: {}", key, error.what())).reason(error.reason()).next(error.next());
}

Result<void> check_absolute(std::string_view key, const std::string& path) {
  if (const auto checked = check_path(path); !checked) return at_key(key, checked.error());
  if (path.starts_with('/') || (key == "filesystem.cache_dirs" && path.starts_with("~/"))) return {};
  return Error(Code::kInvalidArgument, format("{}: {} is not an absolute path", key, quoted(path)))
      .reason("a policy written in code names no directory that it would be relative to")
      .next("write the whole path, from /");
}

Result<void> check_entry(const FsEntry& entry) {
  constexpr std::string_view kKey = "filesystem.entries";
  if (!entry.glob) return check_absolute(kKey, entry.path);
  if (const auto checked = check_glob(entry.path); !checked) return at_key(kKey, checked.error());
  if (entry.path.starts_with('/') || entry.path.starts_with("**/")) return {};
  return Error(Code::kInvalidArgument, format("{}: the pattern {} is not absolute", kKey, quoted(entry.path)))
      .reason("a policy written in code names no directory that it would be relative to")
      .next("begin it with / and the directory it starts at, or with **/ for every directory");
}

Result<void> check_texts(const Key& key, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (key.type == Type::kPaths) {
      BELLJAR_CHECK(check_absolute(key.name, text));
    } else if (const auto checked = check_element(key, text); !checked) {
      return at_key(key.name, checked.error());
    }
  }
  return {};
}

Result<void> check_value(const Key& key, const Value& value) {
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) return check_texts(key, *texts);
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || text->empty()) return {};  // empty: not set
  if (key.type == Type::kPath) return check_absolute(key.name, *text);
  if (const auto checked = check_element(key, *text); !checked) return at_key(key.name, checked.error());
  return {};
}

Result<void> check_variables(const Environment& environment) {
  for (const auto& [name, text] : environment.set) {
    if (const auto checked = check_variable(name); !checked) return at_key("environment.set", checked.error());
    if (text.find('\0') != std::string::npos)
      return Error(Code::kInvalidArgument, format("environment.set: {} cannot have this value", quoted(name)))
          .reason("it holds a NUL byte");
  }
  return {};
}

// Of 0 every command would end as it begins. No limit is a time that is not set.
Result<void> check_times(const Limits& limits) {
  const std::pair<std::string_view, std::optional<milliseconds>> times[] = {
      {"limits.timeout", limits.timeout}, {"limits.max_timeout", limits.max_timeout}, {"limits.idle_timeout", limits.idle_timeout}};
  for (const auto& [key, time] : times) {
    if (time && *time <= milliseconds(0))
      return Error(Code::kInvalidArgument, format("`{}` is {}", key, belljar::to_string(*time)))
          .next("give a positive time, or leave it unset");
  }
  if (limits.kill_grace < milliseconds(0))
    return Error(Code::kInvalidArgument, format("`limits.kill_grace` is {}", belljar::to_string(limits.kill_grace)))
        .next("give 0 to kill at once, or a positive time");
  return {};
}

Result<void> check_amounts(const Limits& limits) {
  for (const auto& [key, amount] :
       {std::pair("limits.egress_bytes", limits.egress_bytes), {"limits.egress_rate", limits.egress_rate}}) {
    if (amount) BELLJAR_CHECK(check_amount(key, *amount));
  }
  return check_amount("limits.egress_heads", limits.egress_heads);
}

}  // namespace

Result<void> check_policy(const Policy& policy) {
  for (const FsEntry& entry : policy.filesystem.entries) BELLJAR_CHECK(check_entry(entry));
  for (const Volume& volume : policy.filesystem.volumes) {
    BELLJAR_CHECK(check_absolute("filesystem.volumes", volume.source));
    BELLJAR_CHECK(check_absolute("filesystem.volumes", volume.target));
  }
  for (const Key& key : keys()) {
    if (key.type != Type::kText && key.type != Type::kPath && key.type != Type::kTexts && key.type != Type::kPaths) continue;
    if (key.join == Join::kEntries) continue;  // their rules are among the entries
    if (const auto value = load(key, policy)) BELLJAR_CHECK(check_value(key, *value));
  }
  BELLJAR_CHECK(check_variables(policy.environment));
  BELLJAR_CHECK(check_amounts(policy.limits));
  return check_times(policy.limits);
}

}  // namespace belljar::policy
