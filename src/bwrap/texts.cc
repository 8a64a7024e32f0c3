#include "bwrap/texts.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "launch/recipe.h"

namespace belljar::bwrap {
namespace {

using launch::Recipe;
using launch::RecipeFailure;
using launch::RecipeOp;
using FailedStep = RecipeFailure::FailedStep;

// Where a mount point lies while it is made, as callers know it.
std::string in_new_root(std::string_view dest) {
  while (dest.starts_with('/')) dest.remove_prefix(1);
  return "/newroot/" + escaped(dest);
}

std::string source_of(const RecipeOp& op) {
  if (op.fd >= 0) return format("/proc/self/fd/{}", op.fd);
  if (op.kind != RecipeOp::Kind::kOverlay) return escaped(op.source);
  std::string all;
  for (const std::string& layer : op.layers) all += (all.empty() ? "" : ", ") + escaped(layer);
  if (!op.source.empty()) all += ", " + escaped(op.source) + ", " + escaped(op.work);
  return all;
}

// Without the errno's text.
std::string of_op(const RecipeOp& op, const RecipeFailure& failure) {
  const std::string dest = escaped(op.dest);
  switch (failure.at) {
    case FailedStep::kSource:
      return format("Can't find source path {}", source_of(op));
    case FailedStep::kParents:
      return format("Can't mkdir parents for {}", dest);
    case FailedStep::kDirectory:
      return format("Can't mkdir {}", dest);
    case FailedStep::kFile:
      return format("Can't create file at {}", dest);
    case FailedStep::kBind:
      return format("Can't bind mount {} on {}: Unable to mount source on destination",
                    op.kind == RecipeOp::Kind::kBindData ? "data" : "/oldroot" + source_of(op), in_new_root(op.dest));
    case FailedStep::kBindRace:
      return format("Can't bind {}: another file has its name now", source_of(op));
    case FailedStep::kOverlay:
      return format("Can't make overlay mount on {} of {}", in_new_root(op.dest), source_of(op));
    case FailedStep::kProc:
      return format("Can't mount proc on {}", in_new_root(op.dest));
    case FailedStep::kProcCover:
      return format("Can't cover parts of {}", in_new_root(op.dest));
    case FailedStep::kDev:
      return format("Can't make devices at {}", in_new_root(op.dest));
    case FailedStep::kTmpfs:
      return format("Can't mount tmpfs on {}", in_new_root(op.dest));
    case FailedStep::kMqueue:
      return format("Can't mount mqueue on {}", in_new_root(op.dest));
    case FailedStep::kWrite:
      return format("Can't write data to file {}", dest);
    case FailedStep::kSymlink:
      return format("Can't make symlink at {}", dest);
    case FailedStep::kReadOnly:
      return format("Can't remount readonly on {}", in_new_root(op.dest));
    case FailedStep::kChmod:
      return format("Can't chmod {:#o} {}", op.perms, dest);
    case FailedStep::kHostname:
      return format("Can't set hostname to {}", escaped(op.source));
    default:
      return format("Can't show {}", dest);
  }
}

std::string refused_namespaces(const Recipe& recipe, int errnum) {
  if ((recipe.namespaces & CLONE_NEWUSER) != 0 && errnum == EPERM)
    return "No permissions to create a new namespace: this kernel, or what runs around us, refuses user namespaces to ordinary "
           "users; "
           "`belljar doctor` says which and what helps";
  if ((recipe.namespaces & CLONE_NEWUSER) != 0 && errnum == EINVAL)
    return "Creating new namespace failed: this kernel has no user namespaces";
  if (errnum == ENOSPC || errnum == EUSERS)
    return "Creating new namespace failed: the limit on namespaces is reached (/proc/sys/user/max_*_namespaces), or they are "
           "nested too deep";
  return format("Creating new namespace failed: {}", std::strerror(errnum));
}

// Of the steps that are no operation, without the errno's text.
std::string of_step(const Recipe& recipe, const RecipeFailure& failure) {
  switch (failure.at) {
    case FailedStep::kJoinUserns:
      return "Joining specified user namespace failed";
    case FailedStep::kJoinUserns2:
      return "Setting userns2 failed";
    case FailedStep::kJoinPidns:
      return "Setting pidns failed";
    case FailedStep::kLoopback:
      return "loopback: Failed RTM_NEWADDR";
    case FailedStep::kUidMap:
      return "setting up uid map";
    case FailedStep::kSetgroups:
      return "error writing to setgroups";
    case FailedStep::kGidMap:
      return "setting up gid map";
    case FailedStep::kSwitchIds:
      return format("unable to switch to uid {} and gid {}", recipe.uid, recipe.gid);
    case FailedStep::kPrivate:
      return "Failed to make / slave";
    case FailedStep::kRoot:
      return "Failed to mount tmpfs";
    case FailedStep::kPivot:
      return "pivot_root";
    case FailedStep::kDisableUserns:
      return "cannot disable user namespaces";
    case FailedStep::kCapabilities:
      return "capset failed";
    case FailedStep::kChdir:
      return format("Can't chdir to {}", escaped(recipe.chdir));
    case FailedStep::kSession:
      return "setsid";
    case FailedStep::kFork:
      return "Can't fork for pid 1";
    case FailedStep::kFilter:
      return "cannot install a seccomp filter";
    case FailedStep::kInfo:
      return "Write to info_fd";
    case FailedStep::kExec:
      return format("execvp {}", escaped(recipe.program));
    default:
      return "cannot set up the sandbox";
  }
}

bool shows_whole_host_for_writing(const RecipeOp& op) {
  return op.kind == RecipeOp::Kind::kBind && !op.read_only && op.source == "/" && op.dest == "/";
}

}  // namespace

std::string failure_text(const Recipe& recipe, const RecipeFailure& failure) {
  const std::string reason = std::strerror(failure.errnum);
  if (failure.at == FailedStep::kClone) return refused_namespaces(recipe, failure.errnum);
  if (failure.at == FailedStep::kUsernsNotDisabled) return "creation of new user namespaces was not disabled as requested";
  const auto index = static_cast<std::size_t>(failure.op);
  if (failure.at == FailedStep::kLockFile && failure.op >= 0 && index < recipe.lock_files.size())
    return format("Unable to lock file {}: {}", escaped(recipe.lock_files[index]), reason);
  if (failure.op < 0 || index >= recipe.ops.size()) return format("{}: {}", of_step(recipe, failure), reason);
  const RecipeOp& op = recipe.ops[index];
  if (failure.at == FailedStep::kSymlinkIsOther)
    return format("Can't make symlink at {}: existing destination is {}", escaped(op.dest), escaped(failure.detail));
  if (failure.at == FailedStep::kSymlinkIsNone)
    return format("Can't make symlink at {}: destination exists and is not a symlink", escaped(op.dest));
  if (failure.at == FailedStep::kReadOnly && failure.errnum == EINVAL)
    return format("Can't remount readonly on {}: it is no mount point", in_new_root(op.dest));
  if (failure.at == FailedStep::kOverlay && failure.errnum == ELOOP)
    return format("{}: the directories overlap", of_op(op, failure));
  return format("{}: {}", of_op(op, failure), reason);
}

std::vector<std::string> weaknesses(const Recipe& recipe) {
  std::vector<std::string> found;
  const auto without = [&](std::uint64_t flag) { return (recipe.namespaces & flag) == 0; };
  const bool all_capabilities = !recipe.set_capabilities && recipe.real_uid == 0;
  if (without(CLONE_NEWUSER) && recipe.userns < 0) found.emplace_back("no user namespace (--unshare-user): it is the host's root");
  if (all_capabilities || recipe.capabilities != 0) found.emplace_back("it has capabilities (--cap-drop ALL)");
  if (without(CLONE_NEWNET)) found.emplace_back("it has the host's network, abstract sockets included (--unshare-net)");
  if (without(CLONE_NEWPID) && recipe.pidns < 0)
    found.emplace_back("it sees the host's processes and may signal yours (--unshare-pid)");
  if (without(CLONE_NEWIPC)) found.emplace_back("it shares the host's System V and POSIX ipc (--unshare-ipc)");
  if (!recipe.new_session) found.emplace_back("it may push input into your terminal where the kernel lets it (--new-session)");
  if (!recipe.die_with_parent) found.emplace_back("it outlives a caller that is killed (--die-with-parent)");
  if (recipe.filters.empty()) found.emplace_back("no system call is refused (--seccomp)");
  if (!recipe.disable_userns) found.emplace_back("it can make user namespaces of its own (--disable-userns)");
  if (std::ranges::any_of(recipe.ops, shows_whole_host_for_writing))
    found.emplace_back("all of the host's files can be written (--ro-bind / /)");
  return found;
}

}  // namespace belljar::bwrap
