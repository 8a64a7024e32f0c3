#include "backend/probe.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/paths/host.h"
#include "base/format.h"
#include "belljar/error.h"
#include "launch/idmap.h"
#include "launch/launcher.h"
#include "launch/plan.h"

namespace belljar::backend {
namespace {

constexpr std::string_view kCannot = "the native backend cannot start; --backend landlock is the second tier";

launch::Plan bare_plan(const Host& host, std::uint64_t flags) {
  launch::Plan plan;
  plan.clone_flags = flags;
  if (host.uid() != 0) plan.clone_flags |= CLONE_NEWUSER;
  if ((plan.clone_flags & CLONE_NEWUSER) != 0) {
    plan.identity = launch::Identity::kSelfMapped;
    plan.inside_uid = plan.outside_uid = host.uid();
    plan.inside_gid = plan.outside_gid = host.gid();
  }
  plan.subreaper = (plan.clone_flags & CLONE_NEWPID) == 0;
  plan.env = {"PATH=/usr/bin:/bin"};
  return plan;
}

// Starts nothing but pid 1, under `plan`: the steps are the probe.
Probe try_plan(std::string name, const launch::Plan& plan, std::string works, std::string loses) {
  const auto sandbox = launch::start(plan, nullptr);
  if (sandbox) return {std::move(name), true, std::move(works), ""};
  const Error& error = sandbox.error();
  return {std::move(name), false, format("{} ({})", std::strerror(error.errnum()), error.call()), std::move(loses)};
}

launch::MountOp make(launch::MountOpKind kind, std::string data = "") {
  return {.kind = kind, .slot = 0, .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .data = std::move(data)};
}

Probe try_mounts(const Host& host, std::string name, std::vector<launch::MountOp> ops, int slots, std::string works,
                 std::string loses) {
  launch::Plan plan = bare_plan(host, CLONE_NEWNS | CLONE_NEWPID);
  plan.mounts.push_back({.kind = launch::MountOpKind::kSetAttr, .flags = launch::kRecursive, .target = "/"});
  for (launch::MountOp& op : ops) plan.mounts.push_back(std::move(op));
  plan.slots = slots;
  return try_plan(std::move(name), plan, std::move(works), std::move(loses));
}

std::string option(std::string_view text) {
  std::string result(text);
  result.push_back('\0');
  return result;
}

Probe try_overlay(const Host& host) {
  std::vector<launch::MountOp> ops;
  ops.push_back(make(launch::MountOpKind::kTmpfs));
  ops.push_back({.kind = launch::MountOpKind::kAttach, .slot = 0, .target = "/tmp"});
  for (const char* folder : {"/tmp/mask", "/tmp/low"})
    ops.push_back({.kind = launch::MountOpKind::kMkdir, .mode = 0755, .target = folder});
  launch::MountOp overlay = make(launch::MountOpKind::kOverlay, option("lowerdir=/tmp/mask:/tmp/low"));
  overlay.slot = 1;
  ops.push_back(std::move(overlay));
  return try_mounts(host, "overlayfs", std::move(ops), 2, "masks and cache layers",
                    "hidden names and cache layers: the native backend cannot start");
}

Probe try_listener(const Host& host) {
  launch::Plan plan = bare_plan(host, CLONE_NEWPID);
  plan.seccomp = {{0x06, 0, 0, 0x7fff0000U}};  // return ALLOW
  plan.seccomp_listener = true;
  return try_plan("seccomp notification", plan, "AF_UNIX connects are judged one by one",
                  "AF_UNIX rules: use allow_all_unix_sockets or the landlock backend");
}

Probe probe_landlock(const Host& host) {
  const int abi = host.landlock_abi();
  Probe probe{"Landlock", abi > 0, abi > 0 ? format("ABI {}", abi) : "not enabled (lsm= on the kernel command line)", ""};
  if (abi == 0) probe.loses = "the second lock on paths; the landlock backend";
  else if (abi < 3) probe.loses = "truncate, TCP bind and scope rules (ABI 3, 4, 6)";
  else if (abi < 4) probe.loses = "TCP bind and scope rules (ABI 4, 6)";
  else if (abi < 6) probe.loses = "scopes for signals and abstract sockets (ABI 6); namespaces hold them";
  return probe;
}

Probe probe_idmap(const Host& host) {
  Probe probe{"idmapped mounts", false, "",
              "root cannot lend a workspace on this file system to an unprivileged id (see --allow-root-uid)"};
  char cwd[4096];
  if (::getcwd(cwd, sizeof cwd) == nullptr) return probe;
  const auto map = launch::make_idmap(0, 0, 65534, 65534);
  if (!map) {
    probe.detail = map.error().line();
    return probe;
  }
  const auto tree = launch::capture_idmapped(cwd, *map, 0, launch::Below::kAlone);
  probe.works = tree.has_value();
  probe.detail = tree ? format("tried on {}", escaped(cwd)) : std::strerror(tree.error().errnum());
  if (probe.works) probe.loses.clear();
  (void)host;
  return probe;
}

std::string read_setting(const char* path) {
  const RealHost host;
  std::string text = host.read_small(path).value_or("");
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

Probe probe_user_namespaces(const Host& host) {
  return try_plan("user namespaces", bare_plan(host, CLONE_NEWUSER), "", std::string(kCannot));
}

std::vector<Probe> probe_machine(const Host& host) {
  std::vector<Probe> probes{probe_user_namespaces(host)};
  const struct {
    const char* name;
    std::uint64_t flag;
  } kNamespaces[] = {{"mount namespaces", CLONE_NEWNS}, {"pid namespaces", CLONE_NEWPID}, {"network namespaces", CLONE_NEWNET},
                     {"ipc namespaces", CLONE_NEWIPC},  {"uts namespaces", CLONE_NEWUTS}, {"cgroup namespaces", CLONE_NEWCGROUP}};
  for (const auto& space : kNamespaces)
    probes.push_back(try_plan(space.name, bare_plan(host, space.flag), "", std::string(kCannot)));
  std::vector<launch::MountOp> proc;
  proc.push_back(make(launch::MountOpKind::kProc));
  proc.push_back({.kind = launch::MountOpKind::kAttach, .slot = 0, .target = "/proc"});
  probes.push_back(try_mounts(
      host, "fresh /proc", std::move(proc), 1, "",
      "other processes stay visible; an outer container covers parts of /proc: enable_weaker_nested_sandbox goes on without"));
  probes.push_back(try_overlay(host));
  probes.push_back(try_listener(host));
  probes.push_back(probe_landlock(host));
  if (host.uid() == 0) probes.push_back(probe_idmap(host));
  return probes;
}

UsernsSettings read_userns_settings() {
  // The second file belongs to whichever security module comes first, SELinux too; its labels have no mode behind them.
  std::string profile = read_setting("/proc/self/attr/apparmor/current");
  if (profile.empty()) profile = read_setting("/proc/self/attr/current");
  if (!profile.ends_with(" (enforce)")) profile.clear();
  return {read_setting("/proc/sys/kernel/unprivileged_userns_clone"), read_setting("/proc/sys/user/max_user_namespaces"),
          read_setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"), std::move(profile)};
}

namespace {

constexpr std::string_view kProfile = "/etc/apparmor.d/belljar";

Advice set(std::string_view name, std::string_view value, std::string_view was) {
  // A file for each: both may stand in the way.
  const std::string line = format("{}={}", name, value), file = format("/etc/sysctl.d/90-belljar-{}.conf", name);
  std::string path = "/proc/sys/" + std::string(name);
  std::ranges::replace(path.begin() + 10, path.end(), '.', '/');
  return {format("{} is {}", name, was),
          {"sudo belljar setup", "or by hand: sudo sysctl " + line, format("to keep it: echo {} | sudo tee {}", line, file)},
          Remedy{file, line + "\n", std::move(path), std::string(value), {}}};
}

// For the programs beside belljar, too, which it becomes (belljar-full).
std::string profile_for(std::string_view program) {
  return format(
      "abi <abi/4.0>,\ninclude <tunables/global>\nprofile belljar \"{}{{,-*}}\" flags=(unconfined) {{\n  userns,\n"
      "  include if exists <local/belljar>\n}}\n",
      program);
}

}  // namespace

Advice advise_userns(const UsernsSettings& settings, int errnum, std::string_view program) {
  if (settings.max_user_namespaces == "0") return set("user.max_user_namespaces", "15000", "0");
  if (settings.unprivileged_userns_clone == "0") return set("kernel.unprivileged_userns_clone", "1", "0");
  if (settings.apparmor_restrict_unprivileged_userns == "1") {
    const std::string file(kProfile), text = profile_for(program);
    Advice advice{"kernel.apparmor_restrict_unprivileged_userns is 1: AppArmor lets only named programs make user namespaces",
                  {"sudo belljar setup", format("or write this to {}:", file)},
                  Remedy{file, text, {}, {}, {"apparmor_parser", "-r", file}}};
    for (std::size_t from = 0, end = 0; (end = text.find('\n', from)) != std::string::npos; from = end + 1)
      advice.steps.push_back("  " + text.substr(from, end - from));
    advice.steps.push_back("then: sudo apparmor_parser -r " + file);
    return advice;
  }
  if (!settings.apparmor_profile.empty())
    return {format("the AppArmor profile {} confines this program", escaped(settings.apparmor_profile)),
            {"allow it user namespaces, capabilities and mounts inside them, or take belljar out of the profile",
             "or use --backend landlock"},
            {}};
  if (errnum == ENOSPC)
    return {"the limit on user namespaces is reached, or namespaces are nested too deep",
            {"end other sandboxes, or raise user.max_user_namespaces"},
            {}};
  return {"an outer container or its seccomp filter refuses user namespaces, or this process is in a chroot",
          {"in Docker: run the container with --security-opt seccomp=unconfined, or a profile that allows clone with CLONE_NEWUSER "
           "and the mount calls",
           "in another Belljar: start that one with --allow-nested-userns, this one with --enable-weaker-nested-sandbox",
           "or use --backend landlock"},
          {}};
}

}  // namespace belljar::backend
