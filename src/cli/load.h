// Reads the policy files of this machine and merges them with the flags. The policy room itself makes no system calls.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "cli/policy_flags.h"
#include "policy/layer.h"
#include "policy/merge.h"

namespace belljar::cli {

struct LoadedPolicy {
  policy::Effective effective;
  policy::MergeContext context;
  std::vector<std::string> state_files;  // of an agent, which persist as its profile has them
  std::vector<std::string> state;        // directories of an agent that a start makes: make_agent_state()
};

// The built-in profile, /etc/belljar/policy.toml, $XDG_CONFIG_HOME/belljar/policy.toml, WORKSPACE/.belljar/policy.toml, the file of
// --policy, then the flags. Absent files are fine; one that cannot be read is an error. A file that lies inside the workspace,
// whichever it is, may only narrow. Errors: kInvalidArgument, kNotFound, kPermissionDenied; each with the file.
Result<LoadedPolicy> load_policy(const PolicyFlags& flags);
// The files that it reads or looks for, in that order.
std::vector<std::string> policy_files(const PolicyFlags& flags, const policy::MergeContext& context);
// The part of it that holds in every workspace: for checks before there is one.
Result<LoadedPolicy> load_without_workspace(const PolicyFlags& flags);

// The workspace as a canonical absolute path. "/" and $HOME must be named twice: everything the user owns would be writable.
Result<std::string> find_workspace(const std::vector<std::string>& given, const std::string& home);

// The absolute name by which the caller calls the workspace, which may lead through symbolic links; `real` where that is another
// directory by now. `given`: as of find_workspace; `pwd`: the caller's $PWD, for what is relative.
std::string name_of_workspace(const std::vector<std::string>& given, const std::string& pwd, const std::string& real);

// Where a command starts, as an absolute path. --cwd: a relative one is seen from the caller's directory, like any path on a
// command line. Without one: where the caller is, if that is inside the workspace, else "". Errors: kNotFound, it is below the
// workspace instead.
Result<std::string> find_start(const std::string& given, const policy::MergeContext& context);
backend::Workplace workplace_of(const policy::MergeContext& context, std::string cwd);

// For a policy that is looked at alone: the current directory is the workspace, or, where it cannot be one, a directory that is not
// there.
policy::MergeContext context_here();
// One layer on top of the profile that it names. Errors: as load_policy.
Result<policy::Effective> merge_alone(const policy::Layer& layer, const policy::MergeContext& context);
// WORKSPACE/.belljar/policy.toml of some workspace.
bool is_project_file(const std::string& path);

// Our environment for a command, without the variables that credentials of the proxy come from.
std::vector<std::string> caller_environment(const Network& network);

// A secret, taken out of the environment; overwritten where it stood, since /proc/PID/environ shows that memory.
std::string take_variable(const char* name);

// The whole text of a file, which errors call `what`: "the script". Never blocks: a FIFO, a device or more than 8 MiB is an error.
Result<std::string> read_text_file(const std::string& path, std::string_view what);
Result<std::string> read_policy_file(const std::string& path);
// A symbolic link whose target is missing, itself or a directory on the way: somebody meant a file to be there.
bool dangles(const std::string& path);

}  // namespace belljar::cli
