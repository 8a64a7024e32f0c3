// Lists the names that the layers of a transaction hold, each with what the host has under it now. Reads the
// layers and, of the workspace, only those names: the cost follows the change. In a layer (overlayfs.rst) a
// character device 0:0 is a name that was removed, an opaque directory shows nothing of what lies below it,
// and any other directory is merged.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "belljar/result.h"
#include "belljar/txn.h"
#include "txn/store.h"

namespace belljar::txn {

struct Delta {
  std::string path;                  // relative to the workspace; "" is the workspace itself
  LayerId layer = 0;                 // that holds `upper`; 0 when it is gone
  std::optional<struct stat> upper;  // as the transaction shows it
  std::optional<struct stat> lower;  // as the host has it now
  bool unread = false;               // a directory that we may not read, in the layer or on the host: its contents are missing
  // A directory that no other layer adds to, and every name in it is listed: it holds no whiteout.
  bool plain = false;
};

// Whether the walk goes into directories that are new as a whole.
enum class Descend { kEverywhere, kWhereTheHostHasOne };

// Parents before children, siblings by name. A name that is the same on both sides may be among them.
Result<std::vector<Delta>> walk(const Store& store, const std::vector<LayerId>& chain, Descend descend = Descend::kEverywhere);

// "LAYER/up/PATH" below the pool.
std::string layer_path(LayerId layer, const std::string& path);

FileKind kind_of(const std::optional<struct stat>& status) noexcept;
FileState state_of(const std::optional<struct stat>& status) noexcept;

}  // namespace belljar::txn
