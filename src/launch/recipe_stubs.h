// Stubs: names that a recipe mounts on and that are missing where it shows the host for writing.
//
// A mount lies on a name, so what is missing is made there, on the host, as an empty file or directory. bubblewrap leaves it for
// good. Here a small process, the keeper, makes it and takes it away again when the sandbox has ended. It waits beside the front,
// in a session of its own, with all signals blocked, so the stub goes whichever way the front ended; only SIGKILL to the keeper,
// too, leaves it, until the next sandbox that mounts on it has ended.
//
// Two facts of the kernel decide the rest:
// - Removing a name takes off what is mounted on it elsewhere, without a word. A stub may go only when no sandbox has a mount on
//   it. So each keeper holds a shared lock on it, flock(2), and who gets it for itself alone, the last, removes it. The kernel
//   gives the locks of a killed keeper back.
// - Whether a name that is there is somebody's stub must be plain from the first moment. So the mark is its mode, which is given by
//   the call that makes it, and which nobody uses for anything else. Where a file system or a default ACL gives another mode, or
//   there are no locks, nothing is marked, and the name stays as it would with bubblewrap.
//
// Nothing but an empty stub is removed. What was written, touched or replaced meanwhile is the user's, and only loses the mark.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>

#include "base/unique_fd.h"

namespace belljar::launch {

struct RecipeContext;

bool is_stub(const struct stat& facts) noexcept;

// --- the child's half, between clone3 and execve

constexpr int kNotHeld = 1;
// Has the keeper make the stub `name` in the directory `parent`, or share it where it is one already. It may be a mount point for
// `context` afterwards, which holds_stub() tells by its facts.
// 0: held. kNotHeld: it cannot be held, and will not be removed under us either. -EBUSY and other negative errno: neither is sure.
// `parent` is the keeper's, too, then.
int hold_stub(RecipeContext& context, int parent, const char* name, bool directory) noexcept;
bool holds_stub(const RecipeContext& context, const struct stat& facts) noexcept;

// --- the front's half

struct StubSandbox {
  // pidfd of the process with which the sandbox ends; -1: it ends with its mounts, of which the child's watch tells
  int pid_1 = -1;
  int users = -1;  // pidfd of a process in the user namespace in which the stubs are to be made; -1: ours will do
  bool switch_ids = false;
  uid_t uid = 0;
  gid_t gid = 0;
};

struct StubKeeper {
  UniqueFd process;  // a pidfd; invalid: there is none
  // A byte to it says that the sandbox has ended, though its pid 1 is still about to. Its end says that the stubs have gone; the
  // process itself takes longer, as the kernel waits for readers of its watches.
  UniqueFd word;
};

// A process that serves the child at the other end of `requests`. It ends by itself.
StubKeeper start_stub_keeper(int requests, const StubSandbox& sandbox);

}  // namespace belljar::launch
