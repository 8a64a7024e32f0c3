// The effective policy in words: as TOML or JSON that reads back to the same policy, each value with its origin, and one path's
// answer.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/merge.h"

namespace belljar::policy {

// `policy show`. Reads back: parsed and merged again, the same policy comes out.
std::string to_toml_text(const Effective& effective);
std::string to_json_text(const Effective& effective);

// `policy explain`: a line for each value, "key = value  # origin"; rules of the file system most specific last. kCounted: one line
// for all secrets that are hidden by default.
enum class ShownSecrets { kCounted, kEach };
std::string explain_text(const Effective& effective, ShownSecrets secrets = ShownSecrets::kCounted);
std::string explain_json(const Effective& effective);

// Where an absolute path leads once its links are followed, as the backend that holds the rules takes it; the path itself where
// nothing stands. Unset: every path leads where it says.
using Resolve = std::function<std::string(const std::string&)>;

// `policy explain --path P`.
struct PathRule {
  FsEntry entry;
  std::string target;  // what it holds for: where its path leads; of a pattern the pattern
};
struct PathAnswer {
  std::string path;    // absolute and normal, as it was asked
  std::string target;  // where it leads: the rules are asked of that
  Access access = Access::kRead;
  PathRule rule;                 // the rule that decides
  std::string note;              // what else holds there: private temporary directory, cache layer, protected name; or empty
  bool kept_by_name = false;     // the note is about a protected name that is not written to, where the plan holds it
  std::vector<PathRule> others;  // less specific rules that cover the path too, most specific first
};
Result<PathAnswer> explain_path(const Effective& effective, const MergeContext& context, std::string_view path,
                                const Resolve& resolve = {});
std::string to_text(const PathAnswer& answer);
std::string to_json_text(const PathAnswer& answer);

// `policy explain --host H[:PORT]`: what is decided before the name is looked up. Addresses are judged again after that.
struct HostAnswer {
  std::string destination;  // canonical, with its port
  bool allowed = false;
  std::string reason;        // stable word: allowed, denied, not-listed, not-public, mode-none, mode-host
  std::string rule;          // as written; empty when none decided
  std::string origin;        // of the list it stands in, or of network.mode
  std::string text;          // one sentence
  std::string next;          // what would open it; empty when allowed
  bool intercepted = false;  // whether the proxy intercepts TLS to it
  std::string interception;  // why, or why not; empty when it is refused
};
Result<HostAnswer> explain_host(const Effective& effective, std::string_view host);
std::string to_text(const HostAnswer& answer);
std::string to_json_text(const HostAnswer& answer);

}  // namespace belljar::policy
