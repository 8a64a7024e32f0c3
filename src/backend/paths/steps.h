// The steps of plan_paths(), in the order in which it takes them (plan.cc): each reads the draft and adds to it what it is about,
// binds, masks and covers, and gaps to the report. The order matters, since each asks what is shown, writable or private so far.
// An error is the policy's, or this machine's: kInvalidArgument, kPermissionDenied or kNotFound.
#pragma once

#include "backend/paths/draft.h"
#include "belljar/result.h"

namespace belljar::backend {

// --- what can be written: writable.cc

void plan_private(ViewDraft& draft);
Result<void> plan_writable(ViewDraft& draft);

// --- what can be seen: readonly.cc, volumes.cc

// A volume is shown at a place in "/" that the host does not have: the root is one of the sandbox's own then, with all that the
// host's has.
bool needs_own_root(const ViewDraft& draft);
// Restricted root: only what is named can be seen.
Result<void> plan_readable(ViewDraft& draft);
Result<void> plan_volumes(ViewDraft& draft);
Result<void> plan_readonly(ViewDraft& draft);

// --- what stays read-only inside writable places: protected.cc

// Existing control names at each writable root, as whole directories. Git's are the broker's where there is one, since git itself
// has to write there; with protect = "all", or without a broker, `.git` is read-only as a whole. What is absent or deeper is the
// broker's alone.
void plan_protected(ViewDraft& draft);
// The ancestors of a read-only path become mount points of their own: rename answers EBUSY (PP-05). A pin is writable and lies
// over what is shown there, so pins are planned when all that is read-only is known, and the first ancestor that is read-only
// ends them.
void plan_pins(ViewDraft& draft);

// --- what nobody may see: hidden.cc, volumes.cc

Result<void> plan_hidden(ViewDraft& draft);
// Rules name paths as the host does: what a volume shows under another name they would not hold.
Result<void> check_volumes(const ViewDraft& draft);

// --- what is written to and dropped at the end: caches.cc

// filesystem.scratch. Without a layer such a directory is read-only, where it is or is made in a writable place too.
void plan_scratch(ViewDraft& draft);

// --- what lies over all of that: caches.cc, devices.cc, layers.cc

void plan_caches(ViewDraft& draft);
// A home below a private directory (/tmp/home) would vanish: it is shown, read-only. With a mask its overlay does that.
void show_home(ViewDraft& draft);
Result<void> plan_devices(ViewDraft& draft);
// The workspace of a transaction.
Result<void> plan_layers(ViewDraft& draft);

}  // namespace belljar::backend
