#include "txn/leftover.h"

#include <utility>

#include "txn/store.h"

namespace belljar::txn {

Result<std::vector<Leftover>> drop_empty(const Place& place, const std::function<bool(const std::string& name)>& is_meant) {
  std::vector<Leftover> found;
  for (const Info& info : BELLJAR_TRY(list(place))) {
    if (info.running || !is_meant(info.name)) continue;
    Place one = place;
    one.name = info.name;
    // Looked into with its lock held: nobody begins to work in it meanwhile.
    auto transaction = Transaction::open(one, Store::Open::kExisting, Access::kDrop);
    if (!transaction && transaction.error().code() == Code::kNotFound) continue;
    // A snapshot holds what it was taken of, whatever was rolled back or undone since.
    const bool bare = transaction && transaction->meta().snapshots.empty();
    const auto changes = bare ? diff(one) : Result<std::vector<Change>>(std::vector<Change>());
    const bool dropped = bare && changes && changes->empty() && transaction->end();
    found.push_back({info.name, dropped});
  }
  if (!found.empty()) (void)sweep(place);
  return found;
}

}  // namespace belljar::txn
