// Several frozen layers as one, so that a chain never grows past what an overlay takes. No bytes are copied: files become further
// names of the same inodes, which is safe because nothing writes to a frozen layer.
#pragma once

#include <vector>

#include "belljar/result.h"
#include "txn/store.h"

namespace belljar::txn {

// `chain`: bottom first. The pool is locked. The new layer shows what an overlay of them would, removals and opaque directories
// included. Costs what the layers hold.
Result<LayerId> flatten(const Store& store, const std::vector<LayerId>& chain);

}  // namespace belljar::txn
