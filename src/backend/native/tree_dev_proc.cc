#include <sched.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "backend/native/tree_draft.h"
#include "backend/native/tree_steps.h"
#include "backend/paths/host.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "launch/plan.h"
#include "policy/defaults.h"

namespace belljar::backend {
namespace {

using launch::MountOpKind;

struct Node {
  std::string_view name;
  unsigned major, minor;  // devices.txt of the kernel
};
constexpr Node kNodes[] = {{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};

// Where the outer sandbox refuses one of our own.
std::string_view without_proc(const TreeDraft& draft) {
  return draft.view.whole_root ? "the host's is seen, with other processes and their command lines" : "programs find none";
}

}  // namespace

void capture_devices(TreeDraft& draft) {
  if (!draft.view.minimal_dev) return;
  for (const std::string& device : draft.view.devices) {
    const int to = draft.capture(device, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, launch::kRecursive);
    draft.place(device, to, draft.host.facts(device).kind == PathKind::kDirectory);
  }
}

void make_dev(TreeDraft& draft) {
  if (!draft.view.minimal_dev) return;
  const std::string dev = draft.stage("dev");
  draft.mkdir(dev, 0755);
  draft.own["/dev"] = dev;
  for (const Node& node : kNodes) {
    draft.add_stage({.kind = MountOpKind::kDevice,
                     .device = draft.view.make_devices ? makedev(node.major, node.minor) : 0,
                     .source = join("/dev", node.name),
                     .target = join(dev, node.name)});
  }
  constexpr std::pair<std::string_view, std::string_view> kLinks[] = {{"/proc/self/fd", "fd"},       {"/proc/self/fd/0", "stdin"},
                                                                      {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"},
                                                                      {"/proc/kcore", "core"},       {"pts/ptmx", "ptmx"}};
  for (const auto& [to, name] : kLinks)
    draft.add_stage({.kind = MountOpKind::kSymlink, .source = std::string(to), .target = join(dev, name)});
  draft.mkdir(join(dev, policy::kHiddenPlace.substr(5)), 0);
  const int pts = draft.new_slot();
  std::string options("newinstance\0ptmxmode=0666\0mode=0620\0", 36);
  if (draft.view.chown_private) {
    options += format("uid={}", draft.view.owner_uid);
    options.push_back('\0');
    options += format("gid={}", draft.view.owner_gid);
    options.push_back('\0');
  }
  draft.add(
      {.kind = MountOpKind::kDevpts, .slot = pts, .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, .data = std::move(options)});
  draft.place("/dev/pts", pts);
  // For Landlock, which asks for a rule where mq_open(3) opens a queue: a mount is what can bear one. The queues are those of the
  // ipc namespace, with it or without.
  if ((draft.plan.clone_flags & CLONE_NEWIPC) == 0) return;
  const int queues = draft.new_slot();
  draft.add({.kind = MountOpKind::kMqueue, .flags = launch::kOptional, .slot = queues, .attr_set = kQuiet | MOUNT_ATTR_NOEXEC});
  draft.place("/dev/mqueue", queues, true, launch::kOptional);
}

void attach_dev(TreeDraft& draft) {
  if (!draft.view.minimal_dev) return;
  const int dev = draft.new_slot();
  draft.add({.kind = MountOpKind::kCapture,
             .flags = launch::kRecursive | launch::kOwnPlace,
             .slot = dev,
             .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
             .attr_clr = MOUNT_ATTR_NODEV,
             .source = draft.stage("dev")});
  draft.add({.kind = MountOpKind::kAttach, .slot = dev, .target = draft.at("/dev")});
}

void make_proc(TreeDraft& draft) {
  if (!draft.view.fresh_proc) return;
  draft.proc_slot = draft.new_slot();
  const std::uint32_t flags = draft.view.proc_optional ? static_cast<std::uint32_t>(launch::kOptional) : 0U;
  draft.add({.kind = MountOpKind::kProc,
             .flags = flags,
             .slot = draft.proc_slot,
             .attr_set = kQuiet | MOUNT_ATTR_NOEXEC,
             .target = "/proc",
             .clause = "processes",
             .without = without_proc(draft)});
}

void attach_proc(TreeDraft& draft) {
  if (!draft.view.fresh_proc) return;
  const std::uint32_t optional = draft.view.proc_optional ? static_cast<std::uint32_t>(launch::kOptional) : 0U;
  draft.add({.kind = MountOpKind::kAttach,
             .flags = optional,
             .slot = draft.proc_slot,
             .target = draft.at("/proc"),
             .clause = "processes",
             .without = without_proc(draft)});
  for (const std::string_view path : {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"}) {
    const std::string target = draft.at(path);
    constexpr std::string_view kClause = "filesystem.root", kWithout = "it is as writable as the kernel has it";
    const int to = draft.capture_own(target, MOUNT_ATTR_RDONLY | kQuiet | MOUNT_ATTR_NOEXEC, launch::kIfExists | optional);
    draft.plan.mounts.back().clause = kClause;
    draft.plan.mounts.back().without = kWithout;
    draft.add({.kind = MountOpKind::kAttach,
               .flags = launch::kOwnPlace | launch::kIfExists | optional,
               .slot = to,
               .target = target,
               .clause = kClause,
               .without = kWithout});
  }
}

}  // namespace belljar::backend
