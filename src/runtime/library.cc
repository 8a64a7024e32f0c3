// belljar::run: what an embedder calls. Puts together what the command line puts together from files and flags.
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/find.h"
#include "backend/native/host.h"
#include "base/format.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/run.h"
#include "belljar/txn.h"
#include "policy/layer.h"
#include "policy/merge.h"
#include "policy/names.h"
#include "policy/profiles.h"
#include "policy/schema.h"
#include "runtime/run.h"
#include "runtime/stdio.h"

namespace belljar {
namespace {

std::vector<std::string> environment_of(const RunOptions& options) {
  std::vector<std::string> variables;
  if (options.caller_env.empty()) {
    for (char** entry = environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);
  } else {
    for (const auto& [name, text] : options.caller_env) variables.push_back(name + "=" + text);
  }
  return variables;
}

std::string variable(const std::vector<std::string>& variables, std::string_view name) {
  for (const std::string& entry : variables) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') return entry.substr(name.size() + 1);
  }
  return {};
}

Result<std::string> find_workspace(const std::string& given, const std::string& home) {
  char real[PATH_MAX];
  const std::string& named = given.empty() ? "." : given;
  const auto refused = [&](Code code) { return Error(code, format("cannot use workspace {}", quoted(named))); };
  if (::realpath(named.c_str(), real) == nullptr)
    return refused(errno == ENOENT ? Code::kNotFound : Code::kPermissionDenied)
        .sys(errno, "realpath")
        .next("name an existing directory in RunOptions::workspace");
  struct stat status{};
  if (stat(real, &status) != 0 || !S_ISDIR(status.st_mode)) return refused(Code::kInvalidArgument).reason("it is not a directory");
  // By name they may be meant; as the directory that somebody happened to be in they are not.
  if (given.empty() && (std::string_view(real) == "/" || real == home))
    return Error(Code::kInvalidArgument, format("the current directory {} would become writable as a whole", quoted(real)))
        .next("name the workspace in RunOptions::workspace");
  return std::string(real);
}

// A policy that was written in code has only its own rules; the tree below them (the host read-only, the workspace, secrets) comes
// from the built-in profile, as for a policy file. One that was merged holds a rule for "/" and is complete.
Result<Policy> complete(Policy policy, const policy::MergeContext& context) {
  const bool has_root =
      std::ranges::any_of(policy.filesystem.entries, [](const FsEntry& entry) { return !entry.glob && entry.path == "/"; });
  if (has_root || policy.mode == Mode::kDangerFullAccess || policy.mode == Mode::kExternalSandbox) return policy;
  policy::Layer own;
  own.name = "library";
  const auto set = [&](std::string_view key, policy::Value value) {
    own.settings.push_back({policy::find_key(key), std::move(value), {}, {}});
  };
  set("filesystem.secrets", std::string(policy::name_of(policy.filesystem.secrets)));
  set("filesystem.tmp", std::string(policy::name_of(policy.filesystem.tmp)));
  set("filesystem.exclude_tmpdir_env_var", policy.filesystem.exclude_tmpdir_env_var);
  set("filesystem.exclude_slash_tmp", policy.filesystem.exclude_slash_tmp);
  if (policy.filesystem.temp_dir) set("filesystem.temp_dir", *policy.filesystem.temp_dir);
  const std::array<policy::Layer, 2> layers = {
      BELLJAR_TRY(policy::profile_layer(policy.mode == Mode::kReadOnly ? "read-only" : "workspace-write")), std::move(own)};
  Policy base = BELLJAR_TRY(policy::merge(layers, context)).policy;
  std::vector<FsEntry> entries = std::move(base.filesystem.entries);
  entries.insert(entries.end(), policy.filesystem.entries.begin(), policy.filesystem.entries.end());
  policy.filesystem.entries = std::move(entries);
  if (policy.filesystem.cache_dirs.empty()) policy.filesystem.cache_dirs = std::move(base.filesystem.cache_dirs);
  if (policy.environment == Environment{}) policy.environment = std::move(base.environment);
  return policy;
}

}  // namespace

Result<ExecResult> run(const Policy& given, const Command& command, const RunOptions& options) {
  const std::vector<std::string> caller_env = environment_of(options);
  policy::MergeContext context;
  context.home = variable(caller_env, "HOME");
  context.workspace = BELLJAR_TRY(find_workspace(options.workspace, context.home));
  context.tmpdir = variable(caller_env, "TMPDIR");
  context.runtime_dir = variable(caller_env, "XDG_RUNTIME_DIR");
  const Policy policy = BELLJAR_TRY(complete(given, context));
  runtime::Session session;
  session.cancel_fd = options.cancel_fd;
  if (!options.transaction.empty())
    session.transaction = txn::Place{context.workspace, options.state_dir.empty() ? txn::default_state_dir() : options.state_dir,
                                     options.transaction};
  session.stdio = {.input = options.input_fd < 0 ? runtime::Input::kNull : runtime::Input::kInherit,
                   .output = runtime::OutputTo::kCapture,
                   .pty = runtime::Pty::kNo,
                   .cap = options.output_bytes.count,
                   .host = {options.input_fd, -1, -1}};
  const backend::RealHost host;
  const auto backend = BELLJAR_TRY(backend::find_backend(policy.backend, host));
  runtime::Ran ran = BELLJAR_TRY(runtime::run(
      *backend, policy, command,
      {.workspace = context.workspace, .home = context.home, .tmpdir = context.tmpdir, .runtime_dir = context.runtime_dir},
      caller_env, session));
  return std::move(ran.result);
}

}  // namespace belljar
