// Layers -> one policy. The order is fixed: built-in profile < system < user < project < --policy FILE < flags.
//
// - A single value: the highest layer that sets it wins.
// - A list grows by what each layer adds; an explicit empty list clears what lower layers said, since empty means none.
// - File-system rules are collected. The same path again replaces the rule of a lower layer; inside one layer none > write > read.
//   A rule inside a hidden directory is allowed: the most specific path wins (find_rule).
// - `mode = "read-only"` drops the write rules of lower layers: who asks for read-only means all of it.
// - a `network.mode` that is not proxy drops the `allowed_domains` of lower layers; denied ones stay, and are refused where nothing
//   holds them.
// - danger-full-access and external-sandbox drop file and network rules of lower layers. A rule that the same or a higher layer
//   sets contradicts the mode and is an error.
// - A layer from inside the workspace may only narrow (narrow.h).
// - Where the workspace is a linked work tree, its repository is written to as a `.git` in the workspace would be, unless some rule
//   speaks of it or of what is above it.
//
// `policy.filesystem.entries` of the result holds the layers' own rules; what the mode, the secrets and the temporary directories
// imply stays in their keys, for the backend to carry out. `complete` spells both out, so find_rule() on it alone judges a path.
// All paths are absolute and normal.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/agents.h"
#include "policy/layer.h"

namespace belljar::policy {

// The caller's directories: absolute paths, or empty where there is none.
struct MergeContext {
  std::string workspace;       // canonical
  std::string home;            // $HOME
  std::string tmpdir;          // $TMPDIR of the caller
  std::string cwd;             // of the caller: flags resolve relative paths against it; empty: the workspace
  std::string runtime_dir;     // $XDG_RUNTIME_DIR: sockets and keyrings below it are secrets
  std::string config_dir;      // $XDG_CONFIG_HOME/belljar: the user's policy stays read-only inside a writable ~/.config
  std::string state_dir;       // default_state_dir(): what Belljar keeps of earlier runs is hidden
  std::string repository;      // repository_of_worktree(workspace)
  std::string account_home;    // of the caller's account: $HOME may be empty or elsewhere, the keys lie there all the same
  std::vector<LogIn> log_ins;  // of agents, where the caller's variables move them: moved_log_ins()
};

struct Effective {
  Policy policy;
  // Only `entries` is set: "/", the workspace, default secrets, shared temporary directories, temp_dir, then the layers' own rules.
  Filesystem complete;
  // By key name ("limits.memory"), and for elements of lists by "environment.exclude[AWS_*]". A key that is missing has its
  // default.
  std::map<std::string, Origin> origins;
  std::vector<std::string> warnings;
};

// `layers` in ascending order. Errors: kInvalidArgument, a contradiction; kPermissionDenied, a project file that widens.
Result<Effective> merge(std::span<const Layer> layers, const MergeContext& context);

// What Belljar keeps (layers of transactions, refusals of earlier runs) is nobody's business inside: hides `state_dir` unless a
// rule speaks of that very path. merge() does it for MergeContext::state_dir; a start does it again for a policy that was not
// merged.
void hide_state(std::vector<FsEntry>& entries, const std::string& state_dir);
// Every default secret of the place: of $HOME and of the account's home.
std::vector<std::string> secret_paths(const MergeContext& context);
// The same for files that hold a credential (network.credentials), whatever else is said of them.
void hide_credentials(std::vector<FsEntry>& entries, const Network& network, const std::string& home);

// "project .belljar/policy.toml:3", for a key or element; "built-in" when nobody set it.
std::string origin_of(const Effective& effective, const std::string& name);

}  // namespace belljar::policy
