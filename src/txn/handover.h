// New names that go from a layer to the workspace as they are, each by one rename with all that is below it.
#pragma once

#include <span>

#include "txn/files.h"
#include "txn/stage.h"
#include "txn/store.h"

namespace belljar::txn {

class Handover {
 public:
  // `layer`: of a transaction that ends with this commit, on the workspace's mount.
  Handover(const Store& store, LayerId layer) : store_(store), layer_(layer) {}

  // `tree`: a name that the host does not have, and all that is below it in the layers, as walk() lists it. False where the whole
  // is not just what the workspace is to have: another layer or a merge adds to it, a file in it has a name elsewhere, marks of
  // overlayfs cannot be taken away. Those that can are gone afterwards.
  bool fits(std::span<const PlannedChange> tree);

 private:
  bool can_leave(const Delta& top);
  bool take_marks(const Delta& delta);

  const Store& store_;
  LayerId layer_;
  LastFolder in_layer_;
};

}  // namespace belljar::txn
