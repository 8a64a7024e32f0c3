// What a launcher on Windows has to do, as JSON: a restricted token for CreateProcessAsUserW, a job, entries of access-control
// lists, rules of the firewall.
//
// Sources: CreateRestrictedToken (winnt.h flags: DISABLE_MAX_PRIVILEGE 0x1, LUA_TOKEN 0x4, WRITE_RESTRICTED 0x8),
// JOBOBJECT_EXTENDED_ LIMIT_INFORMATION, Mandatory Integrity Control. With WRITE_RESTRICTED the restricting SIDs are asked for
// writes alone: what the user reads the command reads, and no entry can take that back. So rules that hide are a gap, not a deny
// entry that holds nothing.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/format.h"
#include "base/paths.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/compile.h"
#include "policy/compile_gaps.h"
#include "policy/defaults.h"
#include "policy/json.h"
#include "policy/paths.h"

namespace belljar::policy {
namespace {

std::string with_backslashes(std::string_view path) {
  std::string text(path);
  std::ranges::replace(text, '/', '\\');
  return text;
}

// By the variables that the launcher fills in, or `/c/...` as shells of Windows write a drive; nothing for a path that is none
// there.
std::optional<std::string> windows_path(std::string_view path, const MergeContext& context) {
  const auto below = [&](const std::string& root, std::string_view variable) -> std::optional<std::string> {
    if (root.empty() || root == "/" || !is_within(path, root)) return std::nullopt;
    return format("{}{}", variable, with_backslashes(path.substr(root.size())));
  };
  if (auto found = below(context.workspace, "%WORKSPACE%")) return found;
  if (auto found = below(context.home, "%USERPROFILE%")) return found;
  if (path.size() >= 2 && is_letter(path[1]) && (path.size() == 2 || path[2] == '/'))
    return format("{}:{}", static_cast<char>(std::toupper(static_cast<unsigned char>(path[1]))),
                  path.size() == 2 ? "\\" : with_backslashes(path.substr(2)));
  return std::nullopt;
}

std::string list(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += format("{}\n    {}", text.empty() ? "" : ",", item);
  return text.empty() ? "[]" : format("[{}\n  ]", text);
}

class Launch {
 public:
  Launch(const Effective& effective, const MergeContext& context)
      : complete_(with_volumes(effective)), policy_(effective.policy), context_(context) {}

  Result<Compiled> make() {
    if (policy_.mode == Mode::kExternalSandbox)
      return Error(Code::kInvalidArgument, "cannot compile mode external-sandbox").reason("it leaves the sandbox to somebody else");
    out_.gaps = common_gaps(policy_, "Windows", {"limits.memory", "limits.pids", "limits.cpus"});
    const bool restricted = policy_.mode != Mode::kDangerFullAccess;
    out_.text = format(
        "{{\n  \"version\": 1,\n  \"profile\": {},\n  \"token\": {},\n  \"acl\": {},\n  \"job\": {},\n  \"firewall\": {},\n  "
        "\"environment\": {}\n}}\n",
        json_text(policy_.profile), restricted ? token() : "null", restricted ? list(acl()) : "[]", job(),
        restricted ? list(firewall()) : "[]", environment());
    return finish(std::move(out_), policy_, "Windows");
  }

 private:
  static std::string token() {
    return "{\n    \"flags\": [\"DISABLE_MAX_PRIVILEGE\", \"LUA_TOKEN\", \"WRITE_RESTRICTED\"],\n"
           "    \"keep_privileges\": [\"SeChangeNotifyPrivilege\"],\n"
           "    \"restricting_sids\": [\"capability-of-this-run\", \"logon-session\", \"S-1-1-0\"],\n"
           "    \"default_dacl\": [\"capability-of-this-run\", \"logon-session\"],\n"
           "    \"integrity\": \"low\"\n  }";
  }

  void gap(std::string clause, std::string why) {
    if (std::ranges::find(out_.gaps, clause, &CompileGap::clause) == out_.gaps.end())
      out_.gaps.push_back({std::move(clause), std::move(why)});
  }

  // One for the capability SID of this run; the launcher takes them away at the end. A denial comes before every grant, so what is
  // written to inside something read-only cannot be had.
  std::vector<std::string> acl() {
    std::vector<std::string> entries;
    const auto add = [&](const std::string& path, std::string_view access) {
      entries.push_back(format("{{\"path\": {}, \"sid\": \"capability-of-this-run\", \"access\": \"{}\", \"inherit\": true}}",
                               json_text(path), access));
    };
    if (policy_.filesystem.tmp == Tmp::kPrivate)
      gap("filesystem.tmp", "there is no private one: %TEMP% is the user's, which can be read and not written to");
    std::vector<std::string> closed;
    for (const FsEntry& entry : in_order(complete_)) {
      if (entry.access == Access::kNone) {
        gap("filesystem.secrets", "a restricted token reads what its user reads: to hide files takes another account");
        continue;
      }
      const auto path = windows_path(entry.path, context_);
      if (!path) {
        if (entry.path != "/" && entry.origin.layer != "built-in")
          gap("filesystem.entries", format("{} is no path of Windows: write /c/... for a drive", entry.path));
        continue;
      }
      if (entry.access == Access::kRead) {
        const FsEntry* const above = find_rule(complete_, parent_of(entry.path));
        if (above != nullptr && above->access == Access::kWrite) add(*path, "deny-write"), closed.push_back(entry.path);
        continue;
      }
      if (std::ranges::any_of(closed, [&](const std::string& root) { return is_within(entry.path, root); })) {
        gap("filesystem.entries", format("{} cannot be opened inside what is read-only: a denial counts first", entry.path));
        continue;
      }
      add(*path, "write");
      protect(*path, add);
    }
    for (const FsEntry& entry : complete_.entries) {
      if (entry.glob) gap("filesystem.globs", "access-control lists know no patterns");
    }
    return entries;
  }

  // At the root alone: a list stands on a file, and there is none for names that appear later.
  void protect(const std::string& root, const auto& add) {
    if (policy_.filesystem.protect == Protect::kNone) return;
    for (const ProtectedName& each : protected_names()) {
      if (each.name.find('*') == std::string_view::npos && each.name != ".git")
        add(format("{}\\{}", root, with_backslashes(each.name)), "deny-write");
    }
    if (policy_.filesystem.protect == Protect::kAll) add(format("{}\\.git", root), "deny-write");
    else {
      for (const std::string_view name : git_control_names()) {
        if (name != "modules" && name != "worktrees") add(format("{}\\.git\\{}", root, with_backslashes(name)), "deny-write");
      }
    }
    if (!policy_.filesystem.allow_git_removal)
      gap("filesystem.allow_git_removal", "who may write to a directory may remove what is in it, a .git too");
    gap("filesystem.protect",
        "at the root of what is writable, for names that are there at the start; not for patterns, nor below");
  }

  std::string job() const {
    const Limits& limits = policy_.limits;
    std::string text =
        "{\n    \"limit_flags\": [\"JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE\", \"JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION\"],\n"
        "    \"ui_restrictions\": [\"DESKTOP\", \"DISPLAYSETTINGS\", \"EXITWINDOWS\", \"GLOBALATOMS\", \"HANDLES\", "
        "\"READCLIPBOARD\", \"SYSTEMPARAMETERS\", \"WRITECLIPBOARD\"]";
    if (limits.pids) text += format(",\n    \"active_processes\": {}", *limits.pids);
    if (limits.memory) text += format(",\n    \"job_memory_bytes\": {}", limits.memory->count);
    // CpuRate counts hundredths of a percent of all processors; how many there are is the launcher's to know.
    if (limits.cpus) text += format(",\n    \"cpus\": {}", *limits.cpus);
    return text + "\n  }";
  }

  // By the capability SID. Without an administrator there is nobody who sets them.
  std::vector<std::string> firewall() {
    const Network& network = policy_.network;
    if (network.mode == NetMode::kHost) return {};
    gap("network.mode",
        "rules of the firewall hold for an account: an administrator sets them once, and the command needs one of its own");
    if (!network.allow_all_unix_sockets)
      gap("network.unix_sockets", "the firewall sees no Unix sockets: those that the lists open can be connected to");
    if (!network.publish.empty()) gap("network.publish", "there is one loopback: allow_local_binding opens it, or nothing does");
    std::vector<std::string> rules;
    const auto allow = [&](std::uint64_t port) {
      rules.push_back(format("{{\"action\": \"allow\", \"direction\": \"out\", \"remote\": \"127.0.0.1:{}\"}}", port));
    };
    if (network.mode == NetMode::kProxy) allow(network.http_proxy_port.value_or(kProxyPort));
    if (network.socks_proxy_port) allow(*network.socks_proxy_port);
    for (const PortPair& port : network.host_ports) {
      if (port.host == port.inside) allow(port.host);
      else gap("network.host_ports", format("{}: there is one loopback", to_string(port)));
    }
    rules.emplace_back(R"({"action": "block", "direction": "out", "remote": "*"})");
    if (network.allow_local_binding != true) rules.emplace_back(R"({"action": "block", "direction": "in", "remote": "*"})");
    return rules;
  }

  std::string environment() const {
    const Environment& asked = policy_.environment;
    const auto names = [](const std::vector<std::string>& all) {
      std::string text;
      for (const std::string& name : all) text += format("{}{}", text.empty() ? "" : ", ", json_text(name));
      return format("[{}]", text);
    };
    std::string set;
    for (const auto& [name, value] : asked.set) {
      if (name != "TMPDIR") set += format("{}{}: {}", set.empty() ? "" : ", ", json_text(name), json_text(value));
    }
    const std::string_view inherit = asked.inherit == Inherit::kAll ? "all" : asked.inherit == Inherit::kCore ? "core" : "none";
    return format(
        "{{\n    \"inherit\": \"{}\",\n    \"include\": {},\n    \"exclude\": {},\n    \"pass\": {},\n    \"set\": {{{}}}\n  }}",
        inherit, names(asked.include), names(asked.exclude), names(asked.pass), set);
  }

  const Filesystem complete_;
  const Policy& policy_;
  const MergeContext& context_;
  Compiled out_;
};

}  // namespace

Result<Compiled> compile_windows(const Effective& effective, const MergeContext& context) {
  return Launch(effective, context).make();
}

}  // namespace belljar::policy
