#include "guard/foreign.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "guard/importer.h"
#include "guard/permission.h"
#include "guard/permission_settings.h"
#include "policy/document.h"

namespace belljar::guard {

using policy::Member;
using policy::Node;

std::string_view to_string(Dialect dialect) noexcept {
  return dialect == Dialect::kSrt ? "srt settings" : dialect == Dialect::kCodex ? "Codex config.toml" : "SandboxSettings";
}

std::string_view to_string(Field::Treatment treatment) noexcept {
  constexpr std::string_view kNames[] = {"policy", "permission", "not needed", "refused", "other"};
  return kNames[static_cast<std::size_t>(treatment)];
}

std::string to_toml(const PermissionSettings& settings) {
  constexpr std::string_view kModes[] = {"default", "auto-edit", "plan", "yolo"};
  return format(
      "[permission]\nmode = \"{}\"\nsandbox = \"{}\"\nauto_allow_bash_if_sandboxed = {}\nallow_unsandboxed_commands = "
      "{}\nexcluded_commands = {}\nask_for_reads = {}\n",
      kModes[static_cast<std::size_t>(settings.mode)], settings.sandbox == SandboxState::kOff ? "off" : "on",
      settings.auto_allow_bash_if_sandboxed, settings.allow_unsandboxed_commands, toml_list(settings.excluded_commands),
      settings.ask_for_reads);
}

std::string to_policy_file(const Imported& imported) {
  if (!imported.has_permission) return imported.policy;
  const PermissionSettings& settings = imported.permission;
  return format("{}\n[permission]\nmode = \"{}\"\nauto_allow_bash_if_sandboxed = {}\nask_for_reads = {}\n", imported.policy,
                to_string(settings.mode), settings.auto_allow_bash_if_sandboxed, settings.ask_for_reads);
}

Result<Imported> import_settings(std::string_view text, std::string_view file, const std::vector<std::string>& without) {
  const policy::Source source{text, file};
  BELLJAR_CHECK(policy::check_text(source));
  if (file.ends_with(".toml")) {
    Importer importer(source, Dialect::kCodex);
    Node root = BELLJAR_TRY(policy::parse_toml_document(source));
    BELLJAR_CHECK(importer.apply_profile(root));
    BELLJAR_CHECK(importer.table(root, ""));
    return importer.finish(without);
  }
  const Node root = BELLJAR_TRY(policy::parse_json_document(source));
  if (root.kind != Node::Kind::kTable) return policy::error_at(source, root.at, "the settings are not a table");
  // A whole settings file: the rest of it concerns other things.
  const Node* sandbox = find_member(root, "sandbox");
  if (sandbox == nullptr && is_srt(root)) {
    Importer importer(source, Dialect::kSrt);
    BELLJAR_CHECK(importer.table(root, ""));
    return importer.finish(without);
  }
  if (sandbox == nullptr && find_member(root, "enabled") == nullptr)
    return Error(Code::kInvalidArgument, format("{} does not say whether there is a sandbox", quoted(file)))
        .reason(
            "Blade and Claude have none unless `enabled` is true; srt has one always, and its settings hold `network` and "
            "`filesystem.denyRead`")
        .next("write \"enabled\": true or false into it");
  Importer importer(source, Dialect::kSandboxSettings);
  if (sandbox != nullptr) {
    for (const Member& member : root.members) {
      if (member.key == "permissions") BELLJAR_CHECK(importer.rules_of_tools(member.value));
      else if (member.key == "permissionMode") BELLJAR_CHECK(importer.permission_mode(member, member.key));
      else if (member.key != "sandbox") importer.other(member.key);
    }
  }
  BELLJAR_CHECK(importer.table(sandbox != nullptr ? *sandbox : root, ""));
  return importer.finish(without);
}

}  // namespace belljar::guard
