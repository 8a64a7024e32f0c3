// The transactions of sandboxes that a model makes (`belljar mcp --txn`, sandbox_create): "default-s2-3f09ab". They end with their
// server where they hold nothing, and a server that is killed leaves them to whoever comes next.
#pragma once

#include <string>
#include <vector>

#include "belljar/result.h"
#include "belljar/txn.h"

namespace belljar::cli {

// A name that no transaction of the workspace has, of the form above with `place.name` in front: such a sandbox begins as the
// directory is.
Result<std::string> agents_transaction_name(const txn::Place& place, unsigned number);

struct LeftoverTransactions {
  std::vector<std::string> dropped, kept;  // names; what is kept holds work, or could not be looked into
};
// Of those that nobody uses, ends what holds nothing. Errors: as txn::list.
Result<LeftoverTransactions> drop_agents_empty(const txn::Place& place);
// The note to the user about one that is kept.
std::string kept_note(const std::string& name);

}  // namespace belljar::cli
