// Idmapped mounts: how root lends a directory to an unprivileged id. The directory's owner on disk appears inside as the sandbox's
// own id, and files made there belong to that owner on disk; no other file changes hands (mount_setattr(2), MOUNT_ATTR_IDMAP).
// Needs CAP_SYS_ADMIN over the file system, hence root.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"
#include "belljar/result.h"

namespace belljar::launch {

// Whether something on disk is shown as id 0 as well. overlayfs makes its own files (work directory, whiteouts) as root, which
// answers EOVERFLOW where no id on disk is shown as 0; and root has no power over directories of an owner that the mount does not
// show. With kMapped, root's files are shown as root's; when they are those that are lent, an id that no account has stands in.
enum class Zero { kUnmapped, kMapped };

// A user namespace that maps `disk` ids to `shown` ids, one of each. Makes and ends one short-lived process.
Result<UniqueFd> make_idmap(uid_t disk_uid, gid_t disk_gid, uid_t shown_uid, gid_t shown_gid, Zero zero = Zero::kUnmapped);

// The user namespace of a command: one id of each kind. Not valid: it could not be made. No heap, from any thread.
UniqueFd make_id_namespace(uid_t inside_uid, uid_t outside_uid, gid_t inside_gid, gid_t outside_gid) noexcept;

enum class Below { kRecursive, kAlone };

// A detached copy of what is mounted at `path` (canonical), idmapped. Errors: kFailedPrecondition naming the file system when it
// cannot idmap.
Result<UniqueFd> capture_idmapped(const std::string& path, const UniqueFd& idmap, std::uint64_t attributes, Below below);
bool is_refused_idmap(const Error& error) noexcept;  // that error

}  // namespace belljar::launch
