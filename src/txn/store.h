// Where transactions live:
//
//   STATE/txn/DEV-INO/            a workspace, by its device and inode
//     lock                        held while layers are made, shared out or thrown away
//     pool                        a link whose text is the name of the pool, and leads nowhere
//     layers/POOL/N/up, .../work  the pool: a layer is written to by one transaction at most, then frozen and shared
//     txns/NAME/meta              what it is made of (meta.h)
//     txns/NAME/lock              held while a command runs in it and by everything that changes it
//     txns/NAME/running           who runs in it (Transaction::note_running)
//     txns/NAME/base, bases/      what the host had (base.h)
//     txns/NAME/journal ...       a commit under way (journal.h)
//     trash/                      renamed away, to be removed
//
// All of it has mode 0700 and is hidden from commands. A step that matters is one rename.
//
// POOL cannot be guessed. Layers hold what no commit would take, a git directory with hooks say: a link that a command leaves in
// a workspace must not lead somebody's git there.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/result.h"
#include "belljar/txn.h"
#include "txn/meta.h"

namespace belljar::txn {

// Layers that one overlay may have; the chain is flattened before it grows longer.
constexpr std::size_t kMostLayers = 64;

Result<void> check_name(const std::string& name, std::string_view what);
// What to do where layers cannot lie in `state_dir`, for errors.
std::string advise_state_dir(const std::string& state_dir);

// The folder of one workspace. A resource; one thread.
class Store {
 public:
  enum class Open { kExisting, kCreate };
  // Errors: kNotFound, nothing was ever kept for this workspace (kExisting).
  static Result<Store> open(const Place& place, Open how);

  int root() const noexcept { return root_.get(); }
  int layers() const noexcept { return layers_.get(); }
  int txns_fd() const noexcept { return txns_.get(); }
  int workspace() const noexcept { return workspace_.get(); }
  const std::string& path() const noexcept { return path_; }
  std::string pool_path() const { return path_ + "/" + pool_; }  // of layers()
  const std::string& workspace_path() const noexcept { return workspace_path_; }

  std::vector<std::string> names() const;  // of transactions
  Result<UniqueFd> open_transaction(const std::string& name) const;
  // Held until the descriptor is closed. Short: waits.
  Result<UniqueFd> lock_pool() const;
  // An empty layer, its root as the workspace's. The pool is locked.
  Result<LayerId> make_layer() const;
  // Moves layers that no transaction refers to into the trash. The pool is locked.
  Result<void> drop_unused_layers() const;
  // `name` in `folder` out of the way; it is removed later.
  Result<void> move_to_trash(int folder, const std::string& name) const;
  Result<void> empty_trash() const;

 private:
  Result<void> open_pool();

  std::string path_, workspace_path_, pool_;
  UniqueFd root_, layers_, txns_, trash_, workspace_;
};

enum class Access { kRead, kChange, kDrop };  // kDrop: to end it, whichever directory it was of

// One transaction, its lock held with kChange and kDrop. A resource; one thread.
class Transaction {
 public:
  // Errors: kNotFound; kFailedPrecondition, somebody holds the lock, or (kChange) a commit was cut off, or the workspace is
  // another.
  static Result<Transaction> open(const Place& place, Store::Open how, Access access);
  // Also when a commit was cut off.
  static Result<Transaction> open_interrupted(const Place& place);

  const Store& store() const noexcept { return store_; }
  const Meta& meta() const noexcept { return meta_; }
  const std::string& name() const noexcept { return name_; }
  int dir() const noexcept { return dir_.get(); }
  Result<void> save(Meta meta);  // one rename; then meta() is that
  bool interrupted() const noexcept;
  // The whole transaction out of the way: one rename.
  Result<void> end();
  // The kernel drops the lock of a process that dies before it ends what that started, and what runs in a sandbox writes to the
  // layer that a commit reads. So the first process of the sandbox is noted (`first`, as this process sees it; 0: it is about to be
  // made), until all of it has ended: open() waits for the one that a dead holder noted.
  void note_running(pid_t first) const noexcept;
  void note_ended() const noexcept;
  // What was to run in it never did: one that this open() made goes again. What cannot be removed stays, empty. True: it was new.
  bool end_if_new() noexcept;

 private:
  Transaction(Store store, std::string name) : store_(std::move(store)), name_(std::move(name)) {}
  static Result<Transaction> open_at_all(const Place& place, Store::Open how, Access access);
  Result<void> begin(const Place& place);
  enum class Whose { kOurs, kAnothers, kUnknown };  // the directory that the place names
  Whose whose(const Place& place) const;
  Result<void> check_workspace(const Place& place) const;
  Result<void> await_former() const;

  Store store_;
  std::string name_;
  UniqueFd dir_, lock_;
  Meta meta_;
  bool is_new_ = false;
};

// Whether the transaction's lock is held at this moment.
bool is_busy(int transaction_dir) noexcept;

// The layers of an overlay mount, for a run.
struct Layers {
  std::string pool;            // directory of all layers
  std::vector<LayerId> lower;  // top first
  LayerId upper = 0;
};
// Notes the time, so that later changes can be told from earlier ones. Who starts a sandbox calls note_running(0) next.
Result<Layers> begin_run(Transaction& transaction);

// As snapshot() and rollback() of belljar/txn.h, for who holds the lock. No run is under way; begin_run() comes next. roll_back()
// to nothing leaves the transaction as if it had just begun.
Result<void> take_snapshot(Transaction& transaction, const std::string& name);
Result<void> roll_back(Transaction& transaction, const std::string& to);
// The refusals of both, beforehand.
Result<void> check_new_snapshot(const Transaction& transaction, const std::string& name);
Result<void> check_snapshot(const Transaction& transaction, const std::string& to);

}  // namespace belljar::txn
