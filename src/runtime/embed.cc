#include "runtime/embed.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/environment.h"
#include "base/format.h"
#include "base/real_path.h"
#include "kernel/account.h"
#include "kernel/worktree.h"
#include "policy/check_policy.h"
#include "policy/merge.h"
#include "policy/names.h"
#include "policy/paths.h"
#include "policy/profiles.h"
#include "policy/schema.h"

namespace belljar::runtime {
namespace {

std::string variable(const std::vector<std::string>& variables, std::string_view name) {
  for (const std::string& entry : variables) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') return entry.substr(name.size() + 1);
  }
  return {};
}

// A relative path means another place in every directory: as if the variable were not set, XDG Base Directory Specification.
std::string place_of(const std::vector<std::string>& variables, std::string_view name) {
  std::string path = variable(variables, name);
  return path.starts_with('/') ? path : std::string();
}

Result<std::string> find_workspace(const std::string& given, const std::string& home) {
  const std::string& named = given.empty() ? "." : given;
  const auto refused = [&](Code code) { return Error(code, format("cannot use workspace {}", quoted(named))); };
  std::string real = real_path(named);
  if (real.empty())
    return refused(errno == ENOENT ? Code::kNotFound : Code::kPermissionDenied)
        .sys(errno, "realpath")
        .next("name an existing directory in the options");
  struct stat status{};
  if (stat(real.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return refused(Code::kInvalidArgument).reason("it is not a directory");
  // By name they may be meant; as the directory that somebody happened to be in they are not.
  if (given.empty() && (real == "/" || real == home))
    return Error(Code::kInvalidArgument, format("the current directory {} would become writable as a whole", quoted(real)))
        .next("name the workspace in the options");
  return real;
}

// The name as it was given, when that is not the canonical one: paths below it mean the workspace, too.
std::string other_name(const std::string& given, const std::string& workspace) {
  if (given.empty()) return {};
  char here[PATH_MAX];
  if (!given.starts_with('/') && ::getcwd(here, sizeof here) == nullptr) return {};
  std::string name = policy::normal(given.starts_with('/') ? given : std::string(here) + "/" + given);
  // ".." behind a link: as text it is another directory.
  if (name == workspace || real_path(name) != workspace) return {};
  return name;
}

// What the built-in profile gives below the caller's own rules: the host read-only, the workspace, secrets, temporary directories.
Result<policy::Effective> base_of(const Policy& policy, const policy::MergeContext& context) {
  policy::Layer own;
  own.name = "library";
  const auto set = [&](std::string_view key, policy::Value value) {
    own.settings.push_back({policy::find_key(key), std::move(value), {}, {}});
  };
  set("filesystem.secrets", std::string(policy::name_of(policy.filesystem.secrets)));
  set("filesystem.tmp", std::string(policy::name_of(policy.filesystem.tmp)));
  set("filesystem.exclude_tmpdir_env_var", policy.filesystem.exclude_tmpdir_env_var);
  set("filesystem.allow_git_removal", policy.filesystem.allow_git_removal);
  set("filesystem.exclude_slash_tmp", policy.filesystem.exclude_slash_tmp);
  if (policy.filesystem.temp_dir) set("filesystem.temp_dir", *policy.filesystem.temp_dir);
  const std::array<policy::Layer, 2> layers = {
      BELLJAR_TRY(policy::profile_layer(policy.mode == Mode::kReadOnly ? "read-only" : "workspace-write")), std::move(own)};
  return policy::merge(layers, context);
}

// Rules are found by whole components, so a trailing slash or a ".." would make one that holds for nothing.
void make_normal(Filesystem& filesystem) {
  for (FsEntry& entry : filesystem.entries) {
    if (!entry.glob) entry.path = policy::normal(entry.path);
  }
  for (Volume& volume : filesystem.volumes) {
    volume.source = policy::normal(volume.source);
    volume.target = policy::normal(volume.target);
  }
}

// As for commands (RuleKind): a secret of the default list is none to who opens the very same path.
bool yields(const FsEntry& entry, const std::vector<FsEntry>& own) {
  return entry.kind == RuleKind::kDefaultSecret && std::ranges::any_of(own, [&](const FsEntry& other) {
           return !other.glob && other.path == entry.path && other.kind == RuleKind::kGiven;
         });
}

// A policy that was written in code has only its own rules. One that was merged holds a rule for "/" and is complete.
void complete(Policy& policy, Policy base) {
  std::vector<FsEntry>& entries = policy.filesystem.entries;
  if (std::ranges::any_of(entries, [](const FsEntry& entry) { return !entry.glob && entry.path == "/"; })) return;
  entries.insert(entries.begin(), base.filesystem.entries.begin(), base.filesystem.entries.end());
  if (policy.filesystem.cache_dirs.empty()) policy.filesystem.cache_dirs = std::move(base.filesystem.cache_dirs);
  if (policy.environment == Environment{}) policy.environment = std::move(base.environment);
}

}  // namespace

Result<Embedded> embed(const Policy& policy, const std::string& workspace, const std::map<std::string, std::string>& caller_env) {
  BELLJAR_CHECK(policy::check_policy(policy));
  Embedded embedded;
  embedded.caller_env = entries_or_own(caller_env);
  policy::MergeContext context;
  context.home = place_of(embedded.caller_env, "HOME");
  context.workspace = BELLJAR_TRY(find_workspace(workspace, context.home));
  context.repository = kernel::repository_of_worktree(context.workspace);
  context.tmpdir = place_of(embedded.caller_env, "TMPDIR");
  context.runtime_dir = place_of(embedded.caller_env, "XDG_RUNTIME_DIR");
  context.account_home = kernel::home_of_caller();
  embedded.policy = policy;
  make_normal(embedded.policy.filesystem);
  if (policy.mode != Mode::kDangerFullAccess && policy.mode != Mode::kExternalSandbox) {
    policy::Effective base = BELLJAR_TRY(base_of(policy, context));
    Filesystem rules = std::move(base.complete);
    const std::vector<FsEntry>& own = embedded.policy.filesystem.entries;
    std::erase_if(rules.entries, [&](const FsEntry& entry) { return yields(entry, own); });
    rules.entries.insert(rules.entries.end(), own.begin(), own.end());
    for (const Volume& volume : embedded.policy.filesystem.volumes)
      rules.entries.push_back({volume.target, false, volume.readonly ? Access::kRead : Access::kWrite, volume.origin});
    rules.entries.shrink_to_fit();  // kept as long as the sandbox, by each of thousands
    embedded.rules = std::make_shared<const Filesystem>(std::move(rules));
    complete(embedded.policy, std::move(base.policy));
  }
  embedded.named = other_name(workspace, context.workspace);
  embedded.place = {
      .workspace = context.workspace, .home = context.home, .tmpdir = context.tmpdir, .runtime_dir = context.runtime_dir};
  return embedded;
}

}  // namespace belljar::runtime
