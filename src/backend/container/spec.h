// From a policy to what the engine is asked for. A value: no I/O, except through `Host` while it is planned.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/container/shown_dir.h"
#include "backend/paths/host.h"
#include "belljar/container.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/units.h"
#include "launch/plan.h"

namespace belljar::backend::container {

struct Bind {
  std::string source, target;
  bool readonly = true;
  // With what is mounted below it, as writable as that is: the engine makes the top mount read-only and no other. Read-only binds
  // come without, and each mount below has a bind of its own.
  bool with_mounts = false;
  // One of those: an engine that does not know of it shows what lies under it.
  bool below = false;
  bool operator==(const Bind&) const = default;
};

// Everything of POST /containers/create.
struct Spec {
  std::string image;
  std::vector<std::string> entrypoint;
  std::vector<std::string> env;  // of the commands: over the line, since the engine keeps what it is told and shows it (inspect)
  std::string user, workdir, runtime, network;
  bool host_ids = false;  // of an engine that maps ids: not for this one
  bool readonly_root = true;
  std::vector<Bind> binds;                                 // shallow targets first
  std::vector<std::pair<std::string, std::string>> tmpfs;  // path, mount options
  std::uint64_t tmp_size = 0;                              // bytes of each of those that the caller gave no options for
  std::vector<std::string> capabilities, devices;
  std::map<std::string, std::string> labels;
  std::optional<std::uint64_t> memory, pids;
  std::optional<double> cpus;
  std::vector<sock_filter> filter;           // of every command, set by its pid 1; empty: none
  bool filter_may_be_missing = false;        // where pid 1 cannot, the engine's profile alone is accepted
  std::vector<launch::InnerSocket> sockets;  // made by its pid 1, served by us (socket_handover.h)
  std::string state;                         // as of InstalledFiles
  std::vector<std::string> own_volumes;      // of the image, which the engine makes anew: nothing of this machine is there
};

// Files of the host that every container needs: made by install_inside().
struct InstalledFiles {
  std::string program;                  // belljar-inside
  std::string closed_file, closed_dir;  // of mode 000, bound over what is hidden
  std::string resolv_conf;              // that names our resolver inside
  std::string state;                    // the directory that they are in, for what is made for single containers
};

struct ContainerPlan {
  Spec spec;
  EnforcementReport report;
  uid_t uid = 0;
  gid_t gid = 0;                  // of the host, who the commands are: files of the file API belong to them
  std::vector<std::string> held;  // paths of the host below the workspace that are read-only for commands
};

// The user of the commands, inside and on the host.
struct User {
  uid_t inside_uid = 0;
  gid_t inside_gid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};
// Errors: kInvalidArgument, a malformed `user`; kFailedPrecondition, it would be root.
Result<User> choose_user(const Host& host, const Policy& policy, const ContainerOptions& options, const std::string& workspace,
                         bool rootless);

// `place.env`: the command's variables. Errors: kInvalidArgument and kUnimplemented, a part of the policy that cannot be served, by
// name; kFailedPrecondition, as choose_user.
Result<ContainerPlan> plan_container(const Host& host, const Policy& policy, const Workplace& place,
                                     const ContainerOptions& options, const InstalledFiles& installed, bool rootless);

// Fits the spec to what the engine says of itself: more processors than it has become all of them.
void fit_engine(Spec& spec, double processors, bool maps_ids);

// Below a read-only root the image's own volumes would take what the engine's disk has: each is a private directory of that size.
void hold_volumes(Spec& spec, const std::vector<std::string>& volumes, Bytes size);

// Refuses sockets where they cannot be passed out: a runtime with another kernel, an engine of another machine. `where`: its
// address.
Result<void> check_passing(const Spec& spec, Isolation isolation, bool same_machine, const std::string& where);

// The mount options of a private directory of that size.
std::string private_tmpfs(Bytes size);

// A process that opens one of `privileged_paths` (an engine's socket, the key of one that is far) is as good as root here, so no
// bind may show it. Errors: kPermissionDenied, one does. `privileged_paths`: with every name that other mounts give them
// (names_of).
Result<void> check_privileged_paths_hidden(const Host& host, const std::vector<Bind>& binds,
                                           const std::vector<std::string>& privileged_paths);

// Files that the container shows at these paths, read-only, whatever its image has there; kept in `dir`.
Result<void> show_files(const std::vector<ShownFile>& files, const ShownDir& dir, Spec& spec);

// The variables of the command. Those that name places of the host (PATH, HOME ...) are the image's, unless the policy sets them or
// passes them by name.
std::vector<std::string> container_environment(const Environment& environment, const std::vector<std::string>& caller);

}  // namespace belljar::backend::container
