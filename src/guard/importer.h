// How foreign.h reads: a table says what each field of a kind of settings means, one class reads them all.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "guard/foreign.h"
#include "guard/permission_settings.h"
#include "policy/document.h"

namespace belljar::guard {

// How a field of foreign settings is carried over.
enum class FieldHandling {
  kFlag,        // a boolean policy key
  kTexts,       // a list of text
  kPaths,       // a list of paths, `{path, literal}` allowed; a trailing `/**` is the directory itself
  kDomains,     // a list of domains; not empty: network.mode proxy
  kUpstream,    // a port of the host's loopback where another proxy listens; `target` is its scheme
  kText,        // a text
  kMap,         // a table of text
  kReadable,    // a list of paths that are readable again inside of hidden ones
  kEnabled,     // the sandbox itself
  kPermission,  // auto_allow_bash_if_sandboxed
  kRefused,     // by name; `detail` says why
  kOnlyFalse,   // false, absent or empty asks for nothing; anything else is refused
  kOnlyTrue,    // true is what happens anyway
  kNotNeeded,   // `detail` says why
  kMode,        // Codex' sandbox_mode
  kNetwork,     // true: the host's network
  kApproval,    // Codex' approval_policy
};

struct FieldRule {
  std::string_view name;
  FieldHandling how;
  std::string_view target;  // a policy key, or why not
};

// In the order of their documents: a row for each field that is known.
std::span<const FieldRule> field_rules_of_sandbox_settings() noexcept;
std::span<const FieldRule> field_rules_of_srt() noexcept;
std::span<const FieldRule> field_rules_of_codex() noexcept;
// Reasons that several tables give for a field that is refused or not needed.
inline constexpr std::string_view kUnknown = "is not a field that is known here";
inline constexpr std::string_view kMac = "concerns macOS, which this build does not serve";
inline constexpr std::string_view kOwn = "belljar starts no helper programs";
inline constexpr std::string_view kNoCredentials = "name credentials under network.credentials of a policy instead";
inline constexpr std::string_view kNoTls =
    "TLS is looked into where a rule or a credential needs it: network.allowed_requests, network.credentials";

const policy::Node* find_member(const policy::Node& table, std::string_view key) noexcept;
std::string toml_list(const std::vector<std::string>& texts);
bool is_srt(const policy::Node& root) noexcept;

// Reads one file of settings: fields by the table of their kind, and what a kind says besides.
class Importer {
 public:
  // `source` outlives it.
  Importer(policy::Source source, Dialect dialect) : source_(source) { result_.dialect = dialect; }

  // The fields of a table, which is called `prefix` ("": the whole).
  Result<void> table(const policy::Node& node, const std::string& prefix);
  // Of Codex (foreign_codex.cc): the profile that is chosen comes before the file's own words.
  Result<void> apply_profile(policy::Node& root);
  // Of Blade and Claude (foreign_sandbox_settings.cc), beside the table `sandbox`.
  Result<void> rules_of_tools(const policy::Node& permissions);
  Result<void> permission_mode(const policy::Member& member, const std::string& name);
  void other(const std::string& name) { note(name, Field::Treatment::kOther, "is no setting of a sandbox"); }
  // What the fields come to together. `without`: refused fields that the caller gives up.
  Result<Imported> finish(const std::vector<std::string>& without);

 private:
  Result<void> field(const FieldRule& meaning, const policy::Member& member, const std::string& name);
  Result<void> permission(const FieldRule& meaning, const policy::Member& member, const std::string& name);
  Result<void> approval(const policy::Member& member, const std::string& name);
  Result<void> domains(const FieldRule& meaning, const policy::Member& member, const std::string& name);
  Result<void> upstream(const FieldRule& meaning, const policy::Member& member, const std::string& name);
  Result<void> readable(const policy::Member& member, const std::string& name);
  void deny_rule(std::string_view rule);
  void add_paths(std::string_view key, const std::vector<std::string>& paths, const std::string& name);
  void refuse_holes();
  void settle_codex_mode();
  void settle_off();
  void settle_upstream();
  void settle_permission_mode(const std::vector<std::string>& without);
  Result<void> check_values() const;
  Result<std::vector<std::string>> texts(const policy::Member& member, bool paths) const;
  Result<bool> flag(const policy::Member& member) const;

  Error wrong(const policy::Member& member, std::string_view wanted) const {
    return policy::error_at(source_, member.value.at, format("`{}` is {}", escaped(member.key), policy::describe(member.value)))
        .reason(format("it must be {}", wanted));
  }
  void note(const std::string& name, Field::Treatment treatment, std::string detail) {
    result_.fields.push_back({name, treatment, std::move(detail)});
  }
  void say(std::string_view key, std::string value, const std::string& name) {
    note(name, Field::Treatment::kPolicy, format("{} = {}", key, value));
    lines_[std::string(key)] = std::move(value);
    places_[std::string(key)] = at_;
  }
  void refuse(const std::string& name, std::string_view why) { note(name, Field::Treatment::kRefused, std::string(why)); }
  std::string policy_text() const;

  policy::Source source_;
  Imported result_;
  std::map<std::string, std::string> lines_;        // policy key -> TOML value
  std::map<std::string, policy::Position> places_;  // of the fields they come from
  policy::Position at_;                             // of the field that is read
  std::map<std::string, std::vector<std::string>, std::less<>> paths_;
  std::map<std::string, std::optional<PermissionMode>> modes_;  // by the field that says it; nothing: it has no counterpart
  std::map<std::string, std::string> proxies_;                  // field -> URL
  bool is_on_ = false;                                          // `enabled`
  std::vector<std::string> holes_;                              // paths that are to be readable inside of hidden ones
};

}  // namespace belljar::guard
