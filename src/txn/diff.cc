#include <vector>

#include "belljar/result.h"
#include "belljar/txn.h"
#include "txn/base.h"
#include "txn/compare.h"
#include "txn/store.h"
#include "txn/walk.h"

namespace belljar::txn {

Result<std::vector<Change>> diff(const Place& place) {
  const Transaction transaction = BELLJAR_TRY(Transaction::open(place, Store::Open::kExisting, Access::kRead));
  const std::vector<Delta> deltas = BELLJAR_TRY(walk_unsettled(transaction));
  return find_renames(transaction.store(), deltas, compare_all(transaction.store(), deltas));
}

}  // namespace belljar::txn
