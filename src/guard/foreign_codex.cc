#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "belljar/result.h"
#include "guard/foreign.h"
#include "guard/importer.h"
#include "policy/document.h"

namespace belljar::guard {

using policy::Member;
using policy::Node;
using Treatment = Field::Treatment;

namespace {

constexpr std::string_view kCodexProxy =
    "its proxy is another: write network.mode = \"proxy\" and the hosts under network.allowed_domains in a policy";
constexpr std::string_view kWorkspaceWrite = "sandbox_workspace_write.";

constexpr FieldRule kCodex[] = {
    {"sandbox_mode", FieldHandling::kMode, "mode"},
    {"sandbox_workspace_write.writable_roots", FieldHandling::kPaths, "filesystem.writable_roots"},
    {"sandbox_workspace_write.network_access", FieldHandling::kNetwork, "network.mode"},
    {"sandbox_workspace_write.exclude_tmpdir_env_var", FieldHandling::kFlag, "filesystem.exclude_tmpdir_env_var"},
    {"sandbox_workspace_write.exclude_slash_tmp", FieldHandling::kFlag, "filesystem.exclude_slash_tmp"},
    {"shell_environment_policy.inherit", FieldHandling::kText, "environment.inherit"},
    {"shell_environment_policy.exclude", FieldHandling::kTexts, "environment.exclude"},
    {"shell_environment_policy.set", FieldHandling::kMap, "environment.set"},
    {"shell_environment_policy.include_only", FieldHandling::kRefused,
     "it filters what `inherit` gives; environment.include only adds. Say inherit = \"none\" and list the names under "
     "environment.pass"},
    {"shell_environment_policy.experimental_use_profile", FieldHandling::kOnlyFalse, "a login shell is asked for by `run --login`"},
    {"shell_environment_policy.ignore_default_excludes", FieldHandling::kOnlyFalse,
     "variables that look like secrets stay out; name the ones that are needed under environment.pass"},
    // The proxy of Codex' own is what narrows network_access: without it the import would open more than the file does.
    {"features.network_proxy", FieldHandling::kOnlyFalse, kCodexProxy},
    {"network", FieldHandling::kRefused, kCodexProxy},
    {"experimental_network", FieldHandling::kRefused, kCodexProxy},
    {"approval_policy", FieldHandling::kApproval, ""},
    {"profile", FieldHandling::kNotNeeded, "its sandbox_mode and approval_policy are taken for those of the file"},
    {"default_permissions", FieldHandling::kRefused, "permission profiles are written as policies of belljar"},
    {"permissions", FieldHandling::kRefused, "permission profiles are written as policies of belljar"},
};

}  // namespace

std::span<const FieldRule> field_rules_of_codex() noexcept { return kCodex; }

// A file without a mode means what Codex does where nobody trusts the project; and it reads that table in one mode only.
void Importer::settle_codex_mode() {
  if (result_.dialect != Dialect::kCodex) return;
  if (!lines_.contains("mode")) {
    note("sandbox_mode", Treatment::kPolicy,
         "mode = \"read-only\": it is absent, and so Codex has it for a project that nobody trusts");
    lines_["mode"] = "\"read-only\"";
  }
  if (lines_["mode"] == "\"workspace-write\"") return;
  for (Field& field : result_.fields) {
    const auto meaning = std::ranges::find(kCodex, field.name, &FieldRule::name);
    if (!field.name.starts_with(kWorkspaceWrite) || meaning == std::end(kCodex)) continue;
    lines_.erase(std::string(meaning->target));
    field.treatment = Treatment::kNotNeeded;
    field.detail = "counts only with sandbox_mode = \"workspace-write\"";
  }
}

// The profile that is chosen comes before the file's own words.
Result<void> Importer::apply_profile(Node& root) {
  const auto chosen = std::ranges::find(root.members, "profile", &Member::key);
  if (chosen == root.members.end()) return {};
  if (chosen->value.kind != Node::Kind::kText) return wrong(*chosen, "text");
  const std::string name = "profiles." + chosen->value.text;
  const Node* profiles = find_member(root, "profiles");
  const Node* profile = profiles != nullptr ? find_member(*profiles, chosen->value.text) : nullptr;
  if (profile == nullptr) {
    refuse("profile", format("there is no [{}]", escaped(name)));
    root.members.erase(chosen);
    return {};
  }
  for (const Member& member : std::vector<Member>(profile->members)) {
    if (member.key == "sandbox_mode" || member.key == "approval_policy") {
      std::erase_if(root.members, [&](const Member& own) { return own.key == member.key; });
      root.members.push_back(member);
    } else if (std::ranges::any_of(kCodex, [&](const FieldRule& known) {
                 return known.name == member.key || known.name.starts_with(member.key + ".");
               })) {
      refuse(name + "." + member.key, "is not taken from a profile; write it for the whole file");
    }
  }
  return {};
}

Result<void> Importer::approval(const Member& member, const std::string& name) {
  const std::string& text = member.value.text;
  if (text == "untrusted") result_.permission.ask_for_reads = false;
  else if (text == "on-request" || text == "on-failure") result_.permission.auto_allow_bash_if_sandboxed = true;
  else {
    refuse(name, "only untrusted, on-request and on-failure have a counterpart: asking can be widened here, not switched off");
    return {};
  }
  result_.has_permission = true;
  note(name, Treatment::kPermission, text == "untrusted" ? "ask_for_reads = false" : "auto_allow_bash_if_sandboxed = true");
  return {};
}

}  // namespace belljar::guard
