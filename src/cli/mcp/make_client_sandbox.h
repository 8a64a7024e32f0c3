// From the command line to a sandbox of belljar mcp: policy, rules, permission.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/result.h"
#include "belljar/tools.h"
#include "cli/audited.h"
#include "cli/command_line.h"
#include "cli/mcp/defence_flags.h"
#include "cli/mcp/http_flags.h"
#include "cli/own_files.h"
#include "cli/policy_flags.h"
#include "guard/permission_settings.h"
#include "mcp/client_sandboxes.h"
#include "mcp/judge.h"

namespace belljar::cli {

struct McpFlags {
  PolicyFlags policy;
  std::vector<std::string> rules;                               // --rules
  std::string permission;                                       // --permission; empty: by the policy and the rules
  guard::PermissionSettings usual = mcp::default_permission();  // where nobody says anything
  std::string texts = "belljar";                                // --texts
  DefenceFlags defence;
  HttpFlags http;
  bool txn = false;
  std::string txn_name;  // not empty: txn
  AuditFlags audit;
  std::vector<OwnFile> own_files;  // of other options of the program
};

// --txn and --txn-name.
void add_txn_options(const OptionParser& command, McpFlags& flags);
bool has_transaction(const McpFlags& flags) noexcept;

// Reads the policy files and rules anew each time: they may depend on the workspace. `cancel`: of its start. Errors: as
// load_policy; kInvalidArgument.
Result<mcp::SandboxSetup> make_client_sandbox(const McpFlags& flags, const mcp::SandboxSpec& spec, const CancelToken& cancel = {});

// Before a workspace is known: what each make_client_sandbox() would refuse whatever it is. Errors: the same.
Result<void> check_flags(const McpFlags& flags);

// The words of --permission (`option`: as it is called) and --texts. Errors: kInvalidArgument.
Result<guard::PermissionMode> permission_mode_of(std::string_view option, const std::string& word);
Result<ToolTexts> texts_of(const std::string& word);

}  // namespace belljar::cli
