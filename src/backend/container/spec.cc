// From a policy to what an engine is asked for.
//
// The native planner decides about paths (plan_paths), as for every backend; here its plan is translated. "/"
// is hidden from it first, since a container shows nothing of the host but what is bound, so the planner binds
// just what the policy names.
//
// Binds are sorted by depth, because a bind below another one must come later. A name is hidden by a closed
// directory or file over it (mode 000): an engine has no other way to take a name away, and a directory that
// holds the workspace cannot be covered at all, which is refused by name.
//
// The checks come before the plan and in this order: what no engine serves, places that the image or the engine
// needs, the user. An engine would refuse some of it, too, but later and in words of its own, and would leave
// directories of root's behind in the workspace.
//
// limits.pids is about commands, so pid 1, which is ours, comes on top.
#include "backend/container/spec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/container/filter.h"
#include "backend/container/report.h"
#include "backend/container/shown_dir.h"
#include "backend/native/network.h"
#include "backend/native/siblings.h"
#include "backend/paths/host.h"
#include "backend/paths/owner.h"
#include "backend/paths/plan.h"
#include "backend/paths/view.h"
#include "base/ascii.h"
#include "base/format.h"
#include "belljar/container.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/units.h"
#include "launch/plan.h"
#include "policy/defaults.h"
#include "policy/paths.h"

namespace belljar::backend::container {
namespace {

using launch::InnerSocket;

constexpr char kInsidePath[] = "/.belljar/inside";
constexpr std::uint64_t kMostProcesses = 4'194'304;  // PID_MAX_LIMIT, which pids.max takes at most

Error unserved(std::string_view what, std::string reason, std::string next) {
  return Error(Code::kUnimplemented, format("the container backend does not serve {}", what))
      .reason(std::move(reason))
      .next(std::move(next));
}

Result<void> check_network(const Network& network) {
  if (!network.allow_unix_sockets.empty() && !network.allow_all_unix_sockets)
    return unserved("network.allow_unix_sockets", "no broker connects for the command inside a container",
                    "drop the key: a socket in what is shared can be connected to, and a volume shares one");
  if (network.mode != NetMode::kHost && network.allow_local_binding == false)
    return unserved("network.allow_local_binding = false", "ports of its own loopback are open inside", "drop the key");
  return {};
}

// What a policy can ask and no part of an engine does. What the report can name as `none` is not here.
Result<void> check_served(const Policy& policy, const ContainerOptions& options) {
  if (policy.mode == Mode::kDangerFullAccess || policy.mode == Mode::kExternalSandbox)
    return unserved(format("mode = \"{}\"", to_string(policy.mode)), "a container always isolates",
                    "use workspace-write or read-only");
  BELLJAR_CHECK(check_network(policy.network));
  if (policy.network.mode != NetMode::kHost && options.network != ContainerOptions().network)
    return Error(Code::kInvalidArgument, format("the engine's network {} would not be used", quoted(options.network)))
        .reason(format("network.mode is \"{}\": the container has no network of the engine's", to_string(policy.network.mode)))
        .next("add `--net host` for what that network reaches, or leave --container-network out");
  if (policy.limits.cpu_request || policy.limits.memory_request)
    return unserved("limits.cpu_request and limits.memory_request", "the engine's shares are not used yet", "drop the keys");
  if (policy.limits.pids && *policy.limits.pids > kMostProcesses)
    return Error(Code::kInvalidArgument, format("limits.pids = {} cannot be enforced", *policy.limits.pids))
        .reason(format("a kernel has at most {} processes", kMostProcesses))
        .next("give fewer, or leave it out");
  const std::string& image = options.image;
  const bool plain =
      !image.empty() && image.size() < 512 && image.front() != '-' && image.front() != '/' &&
      std::ranges::all_of(
          image, [](char c) { return is_alnum(c) || std::string_view("._-/:@").find(c) != std::string_view::npos; }) &&
      image.find("..") == std::string::npos && image.find("//") == std::string::npos;
  if (!plain)
    return Error(Code::kInvalidArgument, format("{} is no name of an image", quoted(image)))
        .next("use [REGISTRY/]NAME[:TAG], letters, digits and ._-/:@");
  if (policy.allow_nested_userns)
    return unserved("allow_nested_userns", "the engine's seccomp profile refuses user namespaces", "drop the key");
  return {};
}

// Directories that an image or an engine needs as they are, and those of which even what is below belongs to somebody else.
bool is_taken(const std::string& path) {
  constexpr std::array<std::string_view, 14> kImages = {"/",     "/bin", "/etc", "/lib",     "/lib32",   "/lib64",    "/libx32",
                                                        "/sbin", "/tmp", "/usr", "/usr/bin", "/usr/lib", "/usr/sbin", "/var"};
  constexpr std::array<std::string_view, 4> kWhole = {"/.belljar", "/proc", "/sys", "/dev"};
  return std::ranges::find(kImages, path) != kImages.end() ||
         std::ranges::any_of(kWhole, [&](std::string_view whole) { return is_under(path, std::string(whole)); });
}

// Where things are shown inside: not over what must stay as it is, and not where the engine would have to make a directory of
// root's in the workspace first.
Result<void> check_places(const Host& host, const Policy& policy, const ContainerOptions& options, const std::string& workspace) {
  const std::string& at = options.workspace_at;
  if (!at.empty() && (at.front() != '/' || policy::normal(at) != at || is_taken(at)))
    return Error(Code::kInvalidArgument, format("cannot show the workspace at {}", quoted(at)))
        .reason(at.front() == '/' && is_taken(at) ? "the image, the engine or a private directory is there"
                                                  : "it is no plain absolute path")
        .next("name an absolute path such as /workspace");
  const std::string& shown = at.empty() ? workspace : at;
  const auto check = [&](const std::string& target, std::string_view what) -> Result<void> {
    if (is_taken(target) && target != "/tmp")
      return Error(Code::kInvalidArgument, format("cannot mount {} at {}", what, quoted(target)))
          .reason("the image or the engine needs it as it is")
          .next("name another directory");
    if (target == shown)
      return Error(Code::kInvalidArgument, format("cannot mount {} at {}", what, quoted(target)))
          .reason("the workspace is shown there, and what is written would be lost")
          .next("name a directory below it, or another");
    if (!is_under(target, shown) || host.facts(workspace + target.substr(shown.size())).kind == PathKind::kDirectory) return {};
    return Error(Code::kInvalidArgument, format("cannot mount {} at {}", what, quoted(target)))
        .reason("there is no such directory in the workspace, and the engine would leave one of root's behind")
        .next("make the directory first");
  };
  for (const auto& [path, text] : options.tmpfs) BELLJAR_CHECK(check(policy::normal(path), "a tmpfs"));
  for (const Volume& volume : policy.filesystem.volumes) BELLJAR_CHECK(check(policy::normal(volume.target), "a volume"));
  return {};
}

// As planned, links followed: a name elsewhere may lead there. A container has its own of what is the kernel's, and the host's are
// terminals, kernel logs and whole devices.
Result<void> check_shown(const std::vector<backend::Bind>& binds) {
  for (const backend::Bind& bind : binds) {
    if (!is_kernels(bind.source) && !is_kernels(bind.target) && !is_under(bind.target, "/.belljar")) continue;
    return Error(Code::kInvalidArgument, format("cannot show {} in a container", quoted(bind.source)))
        .reason("a container has a /dev, /proc and /sys of its own")
        .next("drop the rule; --device names single devices");
  }
  return {};
}

std::optional<unsigned> number_of(std::string_view text) {
  unsigned number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || end.ec != std::errc() || end.ptr != text.data() + text.size()) return {};
  return number;
}

Result<User> parse_user(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto uid = number_of(std::string_view(text).substr(0, colon));
  const auto gid = colon == std::string::npos ? uid : number_of(std::string_view(text).substr(colon + 1));
  if (!uid || !gid)
    return Error(Code::kInvalidArgument, format("cannot run as {} in a container", quoted(text)))
        .reason("names mean what the image says, which is not read before")
        .next("give numbers: UID or UID:GID");
  return User{*uid, *gid, *uid, *gid};
}

// The planner's view of a tree in which only what is named can be seen: of the host's tree the container shows nothing else.
Result<PathPlan> plan_shown(const Host& host, Policy policy, Workplace place) {
  std::erase_if(policy.filesystem.entries, [](const FsEntry& entry) { return !entry.glob && entry.path == "/"; });
  policy.filesystem.entries.push_back({.path = "/", .access = Access::kNone});
  place.overlays = place.listener = false;
  place.tmpdir.clear();
  place.runtime_dir.clear();
  return plan_paths(host, policy, place);
}

class Binder {
 public:
  Binder(const Workplace& place, const ContainerOptions& options)
      : workspace_(place.workspace), shown_at_(options.workspace_at.empty() ? place.workspace : options.workspace_at) {}

  // A path of the host as it is called inside.
  std::string inside(const std::string& path) const {
    return is_under(path, workspace_) ? shown_at_ + path.substr(workspace_.size()) : path;
  }
  void add(const std::string& source, const std::string& target, bool readonly) {
    const auto same = std::ranges::find(binds_, target, &Bind::target);
    if (same == binds_.end()) binds_.push_back({source, target, readonly});
    else *same = {source, target, readonly};
  }
  std::vector<Bind> take() {
    std::ranges::stable_sort(binds_, {}, [](const Bind& bind) { return depth_of(bind.target); });
    return std::move(binds_);
  }

 private:
  std::string workspace_, shown_at_;
  std::vector<Bind> binds_;
};

// The sockets of a network of ours, as far as no capability is needed for them.
std::vector<InnerSocket> sockets_of(const Network& network) {
  if (network.mode == NetMode::kHost) return {};
  std::vector<InnerSocket> sockets = inner_sockets(network);
  const std::vector<InnerSocket> all = sockets;
  // Without a redirect those that catch are there always, and give way to what was asked for by number.
  std::erase_if(sockets, [&](const InnerSocket& socket) {
    return socket.purpose == InnerSocket::Purpose::kDirect && std::ranges::any_of(all, [&](const InnerSocket& other) {
             return other.purpose != InnerSocket::Purpose::kDirect && other.kind == InnerSocket::Kind::kListener &&
                    other.port == socket.port;
           });
  });
  for (InnerSocket& socket : sockets) socket.transparent = socket.without_redirect = false;
  return sockets;
}

std::vector<Bind> binds_of(const PathPlan& paths, const Policy& policy, const Workplace& place, const ContainerOptions& options,
                           const InstalledFiles& installed) {
  Binder binder(place, options);
  for (const backend::Bind& bind : paths.view.binds)
    binder.add(bind.source, bind.source == bind.target ? binder.inside(bind.target) : bind.target, bind.readonly);
  for (const std::string& path : paths.view.hide_dirs) binder.add(installed.closed_dir, binder.inside(path), true);
  for (const std::string& path : paths.view.hide_files) binder.add(installed.closed_file, binder.inside(path), true);
  binder.add(installed.program, kInsidePath, true);
  if (policy.network.mode == NetMode::kProxy && policy.network.transparent)
    binder.add(installed.resolv_conf, "/etc/resolv.conf", true);
  return binder.take();
}

// Engines before API 1.44, and kernels before 5.12, make the top mount of a read-only bind read-only, and what is mounted below it
// stays writable. So such a bind comes without them, and each has a read-only bind of its own, unless what lies between says else.
// A rootless engine cannot leave out what is mounted below (mount_namespaces(7): such mounts are locked); the binds cover them.
void bind_mounts_below(const Host& host, const std::vector<std::pair<std::string, std::string>>& tmpfs, bool rootless,
                       std::vector<Bind>& binds) {
  const std::vector<Bind> planned = binds;
  const auto is_of = [&](const Bind& bind, const std::string& path) {
    const auto nearer = [&](const std::string& target) {
      return target.size() > bind.target.size() && is_under(target, bind.target) && is_under(path, target);
    };
    return std::ranges::none_of(planned, nearer, &Bind::target) &&
           std::ranges::none_of(tmpfs, [&](const auto& mount) { return nearer(policy::normal(mount.first)); });
  };
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const Bind& bind = planned[i];
    if (!bind.readonly) continue;
    const std::string real = host.canonical(bind.source).value_or(bind.source);
    for (const std::string& mount : host.mount_points()) {
      if (mount == real || !is_under(mount, real) || is_kernels(mount) || host.facts(mount).kind == PathKind::kAbsent) continue;
      const std::string inside = bind.target + mount.substr(real == "/" ? 0 : real.size());
      if (!is_of(bind, inside) || std::ranges::find(binds, inside, &Bind::target) != binds.end()) continue;
      binds.push_back({.source = mount, .target = inside, .below = true});
      binds[i].with_mounts = rootless;
    }
  }
  std::ranges::stable_sort(binds, {}, [](const Bind& bind) { return depth_of(bind.target); });
}

// Without a size of its own a tmpfs takes half of the machine's memory.
std::string sized(const std::string& options, Bytes size) {
  for (std::size_t at = 0; at < options.size(); at = std::min(options.find(',', at), options.size() - 1) + 1) {
    const std::string_view option = std::string_view(options).substr(at, options.find(',', at) - at);
    if (option.starts_with("size=") || option.starts_with("nr_blocks=")) return options;
  }
  return format("{}{}size={}", options, options.empty() ? "" : ",", size.count);
}

// /dev/shm is the engine's own, 64 MiB of it. Podman's service has a writable tmpfs at /run below a read-only root, as large as
// half of the machine's memory, unless it is asked for one: so it is asked for, of every engine alike. All are open to whoever the
// command is: Podman takes no owner for a tmpfs.
std::vector<std::pair<std::string, std::string>> tmpfs_of(const PathPlan& paths, const Policy& policy,
                                                          const ContainerOptions& options, const std::vector<Bind>& binds) {
  std::vector<std::pair<std::string, std::string>> mounts;
  for (const PrivateDir& dir : paths.view.private_dirs) {
    if (dir.target != "/dev/shm" && !dir.readonly)  // the image's own is as empty of this machine, and as read-only
      mounts.emplace_back(dir.target, private_tmpfs(policy.filesystem.tmp_size));
  }
  const bool taken = std::ranges::find(binds, "/run", &Bind::target) != binds.end() ||
                     std::ranges::any_of(options.tmpfs, [](const auto& mount) { return policy::normal(mount.first) == "/run"; });
  if (options.root == ContainerRoot::kReadOnly && !taken) mounts.emplace_back("/run", private_tmpfs(policy.filesystem.tmp_size));
  for (const auto& [path, text] : options.tmpfs) mounts.emplace_back(path, sized(text, policy.filesystem.tmp_size));
  return mounts;
}

std::vector<std::string> entrypoint_of(const Limits& limits) {
  std::vector<std::string> words = {kInsidePath};
  if (limits.open_files) words.insert(words.end(), {"--open-files", format("{}", *limits.open_files)});
  // A file is no larger than the disk limit either.
  const std::optional<Bytes> file = limits.file_size && limits.disk ? std::min(*limits.file_size, *limits.disk)
                                    : limits.file_size              ? limits.file_size
                                                                    : limits.disk;
  if (file) words.insert(words.end(), {"--file-size", format("{}", file->count)});
  return words;
}

// What a link leads to is covered, and only its name can be made anew: not as open as a name with nothing behind it.
void tell_links(const Host& host, std::vector<Gap>& gaps) {
  for (Gap& gap : gaps) {
    if (gap.clause == "filesystem.hidden_absent" && host.facts(gap.where).kind == PathKind::kSymlink) gap.clause = kHiddenLink;
  }
}

}  // namespace

std::string private_tmpfs(Bytes size) { return format("rw,exec,nosuid,nodev,size={},mode=1777", size.count); }

Result<User> choose_user(const Host& host, const Policy& policy, const ContainerOptions& options, const std::string& workspace,
                         bool rootless) {
  User user{host.uid(), host.gid(), host.uid(), host.gid()};
  if (!options.user.empty()) user = BELLJAR_TRY(parse_user(options.user));
  else if (rootless) return User{0, 0, host.uid(), host.gid()};  // the engine's own user, who is the caller
  else if (host.uid() == 0) {
    const auto theirs = place_of_owner(host, Workplace{.workspace = workspace});
    if (theirs) user = {theirs->owner->uid, theirs->owner->gid, theirs->owner->uid, theirs->owner->gid};
  }
  // Group root opens what is root's for its group: /etc/shadow of some, sockets, devices.
  if ((user.inside_uid != 0 && user.inside_gid != 0) || rootless || policy.allow_root_uid) return user;
  return Error(Code::kFailedPrecondition, format("the command would be {} 0 of this machine", user.inside_uid == 0 ? "uid" : "gid"))
      .reason(options.user.empty() ? "you are root, so is the owner of the workspace, and the engine maps no ids"
                                   : "--user says so, and the engine maps no ids")
      .next("give the workspace to an ordinary user, name one (--user UID:GID), use a rootless engine, or --allow-root-uid");
}

void fit_engine(Spec& spec, double processors, bool maps_ids) {
  if (spec.cpus && processors > 0) spec.cpus = std::min(*spec.cpus, processors);  // the engine refuses more than it has
  spec.host_ids = maps_ids;
}

void hold_volumes(Spec& spec, const std::vector<std::string>& volumes, Bytes size) {
  for (const std::string& path : volumes) {
    const std::string at = policy::normal(path);
    if (!spec.readonly_root) {
      spec.own_volumes.push_back(at);
      continue;
    }
    const bool mounted = std::ranges::find(spec.binds, at, &Bind::target) != spec.binds.end() ||
                         std::ranges::any_of(spec.tmpfs, [&](const auto& mount) { return policy::normal(mount.first) == at; });
    if (!mounted) spec.tmpfs.emplace_back(at, private_tmpfs(size));
  }
}

Result<void> check_passing(const Spec& spec, Isolation isolation, bool same_machine, const std::string& where) {
  if (spec.sockets.empty() || (isolation != Isolation::kVm && same_machine)) return {};
  return unserved("network.mode = \"proxy\", network.publish and network.host_ports here",
                  same_machine
                      ? "the container has a kernel of its own, whose sockets nobody outside can serve"
                      : format("the engine at {} is on another machine, and sockets stay on theirs", belljar::quoted(where)),
                  "use `none` or `host`, or an engine and a runtime of this machine's kernel");
}

Result<void> check_privileged_paths_hidden(const Host& host, const std::vector<Bind>& binds,
                                           const std::vector<std::string>& privileged_paths) {
  for (const std::string& named : privileged_paths) {
    const auto path = host.canonical(named);
    for (const Bind& bind : binds) {
      if (!path || !is_under(*path, bind.source)) continue;
      const std::string target = bind.target + path->substr(bind.source == "/" ? 0 : bind.source.size());
      const Bind* const shown = deepest_at(binds, target);
      if (shown == nullptr || shown->source + target.substr(shown->target.size()) != *path) continue;
      return Error(Code::kPermissionDenied, format("cannot show {} in a container", belljar::quoted(bind.source)))
          .reason(format("{} is there, and whoever opens it commands the container engine", belljar::quoted(*path)))
          .next("share other directories, or hide it: blocked_paths, --hide");
    }
  }
  return {};
}

Result<void> show_files(const std::vector<ShownFile>& files, const ShownDir& dir, Spec& spec) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string source = BELLJAR_TRY(dir.write(format("file-{}", i + 1), files[i].contents));
    for (const std::string& target : files[i].paths) {
      std::erase_if(spec.binds, [&](const Bind& bind) { return bind.target == target; });
      spec.binds.push_back({source, target, true});
    }
  }
  std::ranges::stable_sort(spec.binds, {}, [](const Bind& bind) { return depth_of(bind.target); });
  return {};
}

std::vector<std::string> container_environment(const Environment& environment, const std::vector<std::string>& caller) {
  constexpr std::array<std::string_view, 11> kOfThePlace = {"PATH",   "HOME",   "USER",     "LOGNAME",     "SHELL", "PWD",
                                                            "OLDPWD", "TMPDIR", "HOSTNAME", "DOCKER_HOST", "MAIL"};
  std::vector<std::string> variables = policy::build_environment(environment, caller);
  std::erase_if(variables, [&](const std::string& variable) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    const bool local = std::ranges::find(kOfThePlace, name) != kOfThePlace.end() || name.starts_with("XDG_");
    const bool meant =
        environment.set.contains(std::string(name)) || std::ranges::find(environment.pass, name) != environment.pass.end();
    return local && !meant;
  });
  return variables;
}

Result<ContainerPlan> plan_container(const Host& host, const Policy& policy, const Workplace& place,
                                     const ContainerOptions& options, const InstalledFiles& installed, bool rootless) {
  BELLJAR_CHECK(check_served(policy, options));
  BELLJAR_CHECK(check_places(host, policy, options, place.workspace));
  const User user = BELLJAR_TRY(choose_user(host, policy, options, place.workspace, rootless));
  if (!options.capabilities.empty() && user.inside_uid != 0)
    return unserved("--cap-add for a command that is not root", "the kernel drops what an exec of another user would inherit",
                    "drop it, or run as root on purpose: --user 0 --allow-root-uid");
  PathPlan paths = BELLJAR_TRY(plan_shown(host, policy, place));
  if (!paths.ways.empty()) {
    const auto shown =
        std::ranges::find_if(paths.writable, [&](const std::string& root) { return is_under(root, paths.ways.front()); });
    const std::string& inside = shown == paths.writable.end() ? place.workspace : *shown;
    const bool sibling =
        place.siblings && std::ranges::find(place.siblings->hidden, paths.ways.front()) != place.siblings->hidden.end();
    return Error(Code::kInvalidArgument, format("cannot hide {}", belljar::quoted(paths.ways.front())))
        .reason(format("{} lies inside it, and an engine shows no part of what it hides", belljar::quoted(inside)))
        .next(format("use another directory, or do not show what lies around it{}",
                     sibling ? "; another sandbox works there: `--siblings shown` lets it be seen" : ""));
  }
  tell_links(host, paths.gaps);
  BELLJAR_CHECK(check_shown(paths.view.binds));
  ContainerPlan planned;
  planned.uid = user.uid;
  planned.gid = user.gid;
  Spec& spec = planned.spec;
  spec.image = options.image;
  spec.entrypoint = entrypoint_of(policy.limits);
  spec.env = place.env;
  spec.user = format("{}:{}", user.inside_uid, user.inside_gid);
  spec.workdir = options.workspace_at.empty() ? place.workspace : options.workspace_at;
  spec.runtime = options.runtime;
  spec.network = policy.network.mode == NetMode::kHost ? options.network : "none";
  spec.sockets = sockets_of(policy.network);
  spec.state = installed.state;
  spec.readonly_root = options.root == ContainerRoot::kReadOnly;
  spec.binds = binds_of(paths, policy, place, options, installed);
  spec.tmpfs = tmpfs_of(paths, policy, options, spec.binds);
  spec.tmp_size = policy.filesystem.tmp_size.count;
  bind_mounts_below(host, spec.tmpfs, rootless, spec.binds);
  spec.capabilities = options.capabilities;
  spec.devices = paths.view.devices;
  spec.labels = options.labels;
  if (policy.limits.memory) spec.memory = policy.limits.memory->count;
  if (policy.limits.pids) spec.pids = std::min(*policy.limits.pids + 1, kMostProcesses);  // of the commands: pid 1 is ours
  spec.cpus = policy.limits.cpus;
  // On the host the file API meets the same names: what commands find read-only it does, too.
  for (const std::string& path : paths.readonly) planned.held.push_back(path);
  spec.filter = filter_of(policy, options);
  spec.filter_may_be_missing = std::ranges::find(policy.accept, "seccomp") != policy.accept.end();
  planned.report = report_container(policy, options, paths, user, rootless, spec);
  const auto closed = [&](const Bind& bind) { return bind.source == installed.closed_dir; };
  const bool covered = std::cmp_equal(std::ranges::count_if(spec.binds, closed), paths.view.hide_dirs.size());
  if (auto clause = siblings_clause(place, paths, covered, "not mounted; inside shared directories covered, mode 000"))
    planned.report.push_back(*std::move(clause));
  return planned;
}

}  // namespace belljar::backend::container
