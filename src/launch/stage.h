// The stage: a tmpfs of our own on which a tree is put together. Its operations (Plan::stage_rest, Plan::stage_names) name places
// below it, and only this file system is touched, so whoever may make a tmpfs can do them wherever it is attached: a thread of
// root's before the child exists (early_setup.h), or the child and a helper of its own.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "launch/plan.h"

namespace belljar::launch {

// A descriptor (O_PATH) of what the absolute `path` names, no link followed; -errno.
long open_place(const char* path) noexcept;

// A new file system, `options` as in MountOp::data. Returns a descriptor of its detached mount or -errno.
int make_filesystem(const char* type, const std::string& options, unsigned attributes) noexcept;

enum class MayBind { kNo, kYes };

// Calls the kernel without libc's errno; allocates nothing; the umask must be 0. kMkdir, kMkfile, kWriteFile, kSymlink, kLinkNames,
// kChown, kDevice; the last falls back to a bind mount where the stage is attached (kYes). Returns 0 or -errno; what exists is
// fine.
int run_stage_op(int stage, const MountOp& op, MayBind may_bind) noexcept;
int run_stage_ops(int stage, std::span<const MountOp> ops, MayBind may_bind) noexcept;

}  // namespace belljar::launch
