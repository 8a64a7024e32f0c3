// Snapshots, forks and rollbacks: which layers a transaction is made of. Each is a few renames, whatever the layers hold.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/remove_tree.h"
#include "belljar/txn.h"
#include "txn/base.h"
#include "txn/files.h"
#include "txn/flatten.h"
#include "txn/store.h"

namespace belljar::txn {
namespace {

// Room for one layer more: the frozen part becomes one layer. Snapshots keep the layers they were made of.
Result<void> make_room(Transaction& transaction) {
  if (transaction.meta().chain.size() + 1 < kMostLayers) return {};
  Meta meta = transaction.meta();
  const std::vector<LayerId> frozen(meta.chain.begin(), meta.chain.end() - 1);
  const LayerId flat = BELLJAR_TRY(flatten(transaction.store(), frozen));
  std::vector<LayerId>& parts = meta.flat[flat];
  for (const LayerId layer : frozen) {
    parts.push_back(layer);
    if (const auto older = meta.flat.find(layer); older != meta.flat.end())
      parts.insert(parts.end(), older->second.begin(), older->second.end());
  }
  meta.chain = {flat, meta.chain.back()};
  return transaction.save(std::move(meta));
}

Error no_snapshot(const Meta& meta, const std::string& name) {
  std::string next = meta.snapshots.empty() ? "`belljar snapshot NAME` makes one" : "choose one of these:";
  for (const Snapshot& one : meta.snapshots) next += " " + one.name;
  return Error(Code::kNotFound, format("cannot find the snapshot {}", quoted(name)))
      .reason("the transaction has none of that name")
      .next(std::move(next));
}

// A transaction whose state cannot be read has nothing left but to be dropped.
Result<void> drop_damaged(const Place& place) {
  const Store store = BELLJAR_TRY(Store::open(place, Store::Open::kExisting));
  const UniqueFd dir = BELLJAR_TRY(store.open_transaction(place.name));
  if (is_busy(dir.get())) return Error(Code::kFailedPrecondition, "cannot drop the transaction").reason("a command runs in it");
  return store.move_to_trash(store.txns_fd(), place.name);
}

}  // namespace

Result<void> check_snapshot(const Transaction& transaction, const std::string& to) {
  const Meta& meta = transaction.meta();
  if (to.empty() || std::ranges::find(meta.snapshots, to, &Snapshot::name) != meta.snapshots.end()) return {};
  return no_snapshot(meta, to);
}

Result<void> roll_back(Transaction& transaction, const std::string& to) {
  BELLJAR_CHECK(check_snapshot(transaction, to));
  Meta meta = transaction.meta();
  const auto found = std::ranges::find(meta.snapshots, to, &Snapshot::name);
  const UniqueFd pool = BELLJAR_TRY(transaction.store().lock_pool());
  meta.chain = to.empty() ? std::vector<LayerId>() : found->chain;
  meta.chain.push_back(BELLJAR_TRY(transaction.store().make_layer()));
  meta.snapshots.erase(to.empty() ? meta.snapshots.begin() : found + 1, meta.snapshots.end());
  meta.pending_since = 0;
  BELLJAR_CHECK(transaction.save(std::move(meta)));
  return transaction.store().drop_unused_layers();
}

Result<void> rollback(const Place& place, const std::string& to) {
  auto opened = Transaction::open(place, Store::Open::kExisting, to.empty() ? Access::kDrop : Access::kChange);
  if (!opened && opened.error().code() == Code::kDataLoss && to.empty()) return drop_damaged(place);
  Transaction transaction = BELLJAR_TRY(std::move(opened));
  return to.empty() ? transaction.end() : roll_back(transaction, to);
}

Result<void> check_new_snapshot(const Transaction& transaction, const std::string& name) {
  BELLJAR_CHECK(check_name(name, "snapshot"));
  if (std::ranges::find(transaction.meta().snapshots, name, &Snapshot::name) == transaction.meta().snapshots.end()) return {};
  return Error(Code::kAlreadyExists, format("cannot make the snapshot {}", quoted(name)))
      .reason("the transaction has one of that name")
      .next("choose another name");
}

Result<void> take_snapshot(Transaction& transaction, const std::string& name) {
  BELLJAR_CHECK(check_new_snapshot(transaction, name));
  BELLJAR_CHECK(observe(transaction));
  const UniqueFd pool = BELLJAR_TRY(transaction.store().lock_pool());
  const std::vector<LayerId> frozen = transaction.meta().chain;
  BELLJAR_CHECK(make_room(transaction));
  Meta meta = transaction.meta();
  meta.snapshots.push_back({name, frozen});
  meta.chain.push_back(BELLJAR_TRY(transaction.store().make_layer()));
  return transaction.save(std::move(meta));
}

Result<void> snapshot(const Place& place, const std::string& name) {
  BELLJAR_CHECK(check_name(name, "snapshot"));
  Transaction transaction = BELLJAR_TRY(Transaction::open(place, Store::Open::kExisting, Access::kChange));
  return take_snapshot(transaction, name);
}

Result<void> make_fork(const Place& place, const std::string& name) {
  BELLJAR_CHECK(check_name(name, "transaction"));
  Transaction transaction = BELLJAR_TRY(Transaction::open(place, Store::Open::kExisting, Access::kChange));
  const Store& store = transaction.store();
  if (find_status(store.txns_fd(), name))
    return Error(Code::kAlreadyExists, format("cannot make the transaction {}", quoted(name)))
        .reason("the workspace has one of that name")
        .next("choose another name, or roll that one back first");
  BELLJAR_CHECK(observe(transaction));
  const UniqueFd pool = BELLJAR_TRY(store.lock_pool());
  BELLJAR_CHECK(make_room(transaction));
  Meta meta = transaction.meta();
  Meta other = meta;
  // Both go on above what is frozen now.
  meta.chain.push_back(BELLJAR_TRY(store.make_layer()));
  BELLJAR_CHECK(transaction.save(std::move(meta)));
  other.chain.push_back(BELLJAR_TRY(store.make_layer()));
  const std::string temporary = format(".new-{}", ::getpid());
  (void)remove_tree(store.path() + "/" + temporary);
  if (::mkdirat(store.root(), temporary.c_str(), 0700) < 0) return call_failed(errno, "mkdirat", "make the transaction", name);
  const UniqueFd dir = BELLJAR_TRY(open_directory(store.path() + "/" + temporary));
  BELLJAR_CHECK(copy_bases(transaction.dir(), dir.get(), BELLJAR_TRY(load_bases(transaction))));
  BELLJAR_CHECK(write_whole(dir.get(), "meta", encode(other)));
  if (::renameat2(store.root(), temporary.c_str(), store.txns_fd(), name.c_str(), RENAME_NOREPLACE) < 0)
    return call_failed(errno, "renameat2", "make the transaction", name);
  return {};
}

Result<std::vector<Info>> list(const Place& place) {
  std::vector<Info> all;
  auto store = Store::open(place, Store::Open::kExisting);
  if (!store && store.error().code() == Code::kNotFound) return all;
  if (!store) return std::move(store).error();
  for (const std::string& name : store->names()) {
    const UniqueFd dir = BELLJAR_TRY(store->open_transaction(name));
    Info info{.name = name, .running = is_busy(dir.get()), .interrupted = find_status(dir.get(), "commit").has_value()};
    const auto bytes = read_replaced(dir.get(), "meta", 16U << 20);
    if (const auto meta = bytes ? decode_meta(*bytes) : Result<Meta>(bytes.error())) {
      for (const Snapshot& snapshot : meta->snapshots) info.snapshots.push_back(snapshot.name);
    }
    all.push_back(std::move(info));
  }
  return all;
}

Result<void> sweep(const Place& place) {
  auto store = Store::open(place, Store::Open::kExisting);
  if (!store) return store.error().code() == Code::kNotFound ? Result<void>() : Result<void>(std::move(store).error());
  return store->empty_trash();
}

}  // namespace belljar::txn
