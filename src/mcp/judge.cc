#include "mcp/judge.h"

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/tools.h"
#include "guard/permission.h"
#include "guard/permission_settings.h"
#include "guard/rules.h"
#include "mcp/client_sandboxes.h"

namespace belljar::mcp {
namespace {

struct Shared {
  Shared(guard::PermissionSettings settings, guard::RuleSet rules) : judge(std::move(settings), std::move(rules)) {}
  std::mutex mutex;
  guard::PermissionJudge judge;  // guarded by mutex: it owns a parser
};

guard::ToolKind kind_of(ToolKind kind) {
  return kind == ToolKind::kExecute ? guard::ToolKind::kExecute
         : kind == ToolKind::kWrite ? guard::ToolKind::kWrite
                                    : guard::ToolKind::kRead;
}

}  // namespace

guard::PermissionSettings default_permission() {
  return {.mode = guard::PermissionMode::kAutoEdit, .auto_allow_bash_if_sandboxed = true};
}

Result<Judge> make_judge(guard::PermissionSettings settings, guard::RuleSet rules) {
  const auto refused = [](std::string_view what) {
    return Error(Code::kUnimplemented, std::string(what))
        .reason("nothing that an agent calls runs outside of the sandbox")
        .next("take it out of [permission]");
  };
  if (settings.allow_unsandboxed_commands) return refused("cannot honour permission.allow_unsandboxed_commands");
  if (!settings.excluded_commands.empty()) return refused("cannot honour permission.excluded_commands");
  auto shared = std::make_shared<Shared>(std::move(settings), std::move(rules));
  return Judge([shared](const ToolRequest& request) {
    if (request.kind == ToolKind::kControl) return Opinion{};
    const std::lock_guard lock(shared->mutex);
    const guard::Permission permission =
        shared->judge.decide({.tool = request.tool,
                              .kind = kind_of(request.kind),
                              .command = request.command,
                              .input = request.arguments,
                              .standard_input = request.input,
                              .removed = request.removes ? request.paths : std::vector<std::string>()});
    const OpinionKind kind = permission.outcome == guard::Outcome::kRun   ? OpinionKind::kRun
                             : permission.outcome == guard::Outcome::kAsk ? OpinionKind::kAsk
                                                                          : OpinionKind::kRefuse;
    return Opinion{kind, permission.reason, kind == OpinionKind::kRefuse ? "do it another way, or ask the user" : ""};
  });
}

}  // namespace belljar::mcp
