// Ends transactions that a killed program left behind without having changed anything.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "belljar/result.h"
#include "belljar/txn.h"

namespace belljar::txn {

struct Leftover {
  std::string name;
  bool dropped = false;  // it held nothing; else it is as it was
};

// Of the workspace's transactions those whose name `is_meant` takes and which nobody uses: each that changed nothing and has no
// snapshot is ended. `place.name` does not count. Errors: as list(); what cannot be looked at is kept.
Result<std::vector<Leftover>> drop_empty(const Place& place, const std::function<bool(const std::string& name)>& is_meant);

}  // namespace belljar::txn
