// What an engine has mounted, against what it was asked for. An engine follows the path of a bind when it mounts it, as root, and
// who writes to a shared directory meanwhile (a command of another sandbox there) can put a link in the place of a name that was
// planned: the container would show what the link leads to. So pid 1 tells what it sees before any command runs. Values; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/container/spec.h"
#include "belljar/result.h"

namespace belljar::backend::container {

// A line of mountinfo, proc_pid_mountinfo(5). `root`: the path in its file system, which every mount namespace of a kernel calls
// alike.
struct Mount {
  std::string id, parent, device, root, point, type;
  bool readonly = false;
  std::optional<std::uint64_t> size;  // of a tmpfs, in bytes; none: half of the machine's memory, the kernel's default
  bool operator==(const Mount&) const = default;
};
std::vector<Mount> parse_mounts(std::string_view mountinfo);

// Of proc_pid_status(5). A kernel of the container's own may say less: what it does not say is not known.
struct InsideStatus {
  std::optional<std::uint64_t> pid, uid, gid, no_new_privs;
  std::optional<std::uint64_t> capabilities;  // held, or to be had
  std::optional<bool> own_terminals;          // devpts is an instance of its own
  bool operator==(const InsideStatus&) const = default;
};
InsideStatus parse_status(std::string_view text);
// No terminals inside are those of one of the mounts here. `here`, `inside` as below, of one kernel.
bool has_own_terminals(const std::vector<Mount>& here, const std::vector<Mount>& inside);

// Every bind shows what its path is on this machine, where it was asked for and read-only if it was: where each is inside, links of
// the image followed. `here`, `inside`: the mounts of this process, and of the container. Errors: kAborted, one does not, with its
// path.
Result<std::vector<std::string>> check_mounted(const std::vector<Bind>& binds, const std::vector<Mount>& here,
                                               const std::vector<Mount>& inside);

// Points inside of what nobody asked for and no engine has for every container: settings of its administrator. `asked`: as of
// check_mounted, and volumes of the image.
std::vector<std::string> find_unasked(const std::vector<std::string>& asked, const std::vector<Mount>& inside);

// Points inside where a tmpfs takes more than `spec` says: the engine's own of a read-only root (Podman makes some), or one whose
// size it left out. Of /dev the engine's own sizes count, 64 MiB each.
std::vector<std::string> find_larger(const Spec& spec, const std::vector<Mount>& inside);

// `path`, which has no links, and every other name of it here: another mount of its file system (mount --bind) shows the same file.
std::vector<std::string> names_of(const std::string& path, const std::vector<Mount>& here);

// No file system that a bind shows holds `path`, which has `links` hard links: which names the others are, nobody can tell. Errors:
// kFailedPrecondition.
Result<void> check_single_link(const std::string& path, std::uint64_t links, const std::vector<Bind>& binds,
                               const std::vector<Mount>& here);

}  // namespace belljar::backend::container
