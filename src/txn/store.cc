// The directory of a workspace's transactions, its locks, and how a transaction begins and ends.
//
// Everything that must be whole becomes visible by one rename: a new transaction is prepared as `.new-PID`,
// the end of one is a rename into the trash. So a killed process leaves either the old state or the new one,
// and what it left half made is removed by the next.
//
// Two locks, both flock(2), so that the kernel drops them with their holder. The pool's is short and waits. A
// transaction's is held for a whole run and does not wait: the second user is told. After it was taken, the
// name is looked up again, since the transaction may have been ended between open and lock. A holder that died
// may have left processes that are still on their way out: they are waited for (await_former).
#include "txn/store.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/ascii.h"
#include "base/format.h"
#include "base/random.h"
#include "base/real_path.h"
#include "base/remove_tree.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "kernel/process_tree.h"
#include "policy/paths.h"
#include "txn/files.h"

namespace belljar::txn {
namespace {

constexpr std::uint64_t kMostMeta = 16U << 20;
constexpr char kRunning[] = "running";

// 0: there is none, or one that has ended.
std::uint64_t start_of(pid_t pid) {
  const auto stat = kernel::read_process_stat(pid);
  return stat && stat->state != 'Z' && stat->state != 'X' ? stat->started_ticks : 0;
}

Result<Meta> load_meta(int transaction_dir) {
  const std::string bytes = BELLJAR_TRY(read_replaced(transaction_dir, "meta", kMostMeta));
  return decode_meta(bytes);
}

Result<UniqueFd> open_or_make(int dir, const char* name, Store::Open how) {
  if (how == Store::Open::kCreate && ::mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
    return call_failed(errno, "mkdirat", "make", name);
  UniqueFd fd(::openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return call_failed(errno, "openat", "open", name);
  return fd;
}

Result<UniqueFd> lock_file_in(int dir, int operation) {
  UniqueFd lock(::openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return call_failed(errno, "openat", "open", "lock");
  int status = 0;
  do status = ::flock(lock.get(), operation);
  while (status < 0 && errno == EINTR);
  if (status == 0) return lock;
  const int error = errno;
  return Error(Code::kFailedPrecondition, "cannot lock the transaction").sys(error, "flock");
}

Error not_found(const Place& place, const std::vector<std::string>& others) {
  std::string next = "`belljar run --txn -- PROGRAM` begins one";
  if (!others.empty()) {
    next = "name one of these with --txn-name:";
    for (const std::string& other : others) next += " " + other;
  }
  return Error(Code::kNotFound, format("cannot find the transaction {}", quoted(place.name)))
      .reason(format("the workspace {} has none of that name", quoted(place.workspace)))
      .next(std::move(next));
}

Result<void> check_apart(const Place& place) {
  if (place.state_dir.empty() || place.state_dir.front() != '/')
    return Error(Code::kInvalidArgument, "cannot keep a transaction")
        .reason("there is no state directory: neither $XDG_STATE_HOME nor $HOME is an absolute path")
        .next("set one of them");
  if (policy::is_within(place.state_dir, place.workspace) || policy::is_within(place.workspace, place.state_dir))
    return Error(Code::kInvalidArgument, format("cannot keep a transaction of {}", quoted(place.workspace)))
        .reason(format("its layers would lie inside of what they belong to: the state directory is {}", quoted(place.state_dir)))
        .next("set XDG_STATE_HOME to a directory outside of the workspace, or choose another workspace");
  return {};
}

// When the workspace was made; 0: nobody can tell. overlayfs tells it of the directory below, and of another once that was copied
// up.
std::int64_t workspace_birth_time(int fd) noexcept {
  struct statfs system{};
  return ::fstatfs(fd, &system) == 0 && system.f_type != OVERLAYFS_SUPER_MAGIC ? birth_time(fd) : 0;
}

bool is_on_tmpfs(const std::string& path) noexcept {
  struct statfs system{};
  return ::statfs(path.c_str(), &system) == 0 && system.f_type == TMPFS_MAGIC;
}

// Without them overlayfs mounts, and answers EIO where a directory is to take the place of the workspace's.
Error no_attributes(const Place& place) {
  return Error(Code::kFailedPrecondition, "cannot run in a transaction (--txn)")
      .sys(ENOTSUP, "fsetxattr")
      .reason(format("overlayfs needs user.* attributes, and {} lies on {}", quoted(place.state_dir),
                     is_on_tmpfs(place.state_dir)
                         ? "a tmpfs, which keeps none on this kernel (Linux 6.6 and later with CONFIG_TMPFS_XATTR do)"
                         : "a file system that keeps none"))
      .next(advise_state_dir(place.state_dir));
}

// The path that matters for what lies where; the last components may be missing still.
std::string canonical(const std::string& path) {
  if (std::string real = real_path(path); !real.empty()) return real;
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return path;
  return canonical(path.substr(0, slash)) + path.substr(slash);
}

}  // namespace

Result<void> check_name(const std::string& name, std::string_view what) {
  constexpr std::size_t kLongest = 64;
  const auto fits = [](char c) { return is_alnum(c) || c == '.' || c == '_' || c == '-'; };
  if (!name.empty() && name.size() <= kLongest && std::all_of(name.begin(), name.end(), fits) && name[0] != '.' && name[0] != '-')
    return {};
  return Error(Code::kInvalidArgument, format("cannot use {} as the name of a {}", quoted(name), what))
      .reason("a name has 1 to 64 letters, digits, `.`, `_` or `-`, and begins with a letter, a digit or `_`")
      .next("choose another name");
}

std::string advise_state_dir(const std::string& state_dir) {
  return format("set XDG_STATE_HOME to a directory on ext4, xfs{}", is_on_tmpfs(state_dir) ? " or btrfs" : ", btrfs or tmpfs");
}

Result<Store> Store::open(const Place& given, Open how) {
  Place place = given;
  place.state_dir = canonical(place.state_dir);
  BELLJAR_CHECK(check_apart(place));
  Store store;
  store.workspace_path_ = place.workspace;
  store.workspace_ = BELLJAR_TRY(open_directory(place.workspace));
  struct stat status{};
  if (::fstat(store.workspace_.get(), &status) < 0) return call_failed(errno, "fstat", "look at", place.workspace);
  store.path_ = format("{}/txn/{:x}-{}", place.state_dir, status.st_dev, status.st_ino);
  if (how == Open::kCreate) BELLJAR_CHECK(make_directories(store.path_));
  store.root_ = UniqueFd(::open(store.path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!store.root_.valid() && errno == ENOENT) return not_found(place, {});
  if (!store.root_.valid()) return call_failed(errno, "open", "open", store.path_);
  BELLJAR_CHECK(store.open_pool());
  store.txns_ = BELLJAR_TRY(open_or_make(store.root(), "txns", Open::kCreate));
  store.trash_ = BELLJAR_TRY(open_or_make(store.root(), "trash", Open::kCreate));
  return store;
}

// Whoever makes the link first has named the pool. Layers of an older Belljar lie in `layers` itself until they are gone.
Result<void> Store::open_pool() {
  const UniqueFd pools = BELLJAR_TRY(open_or_make(root(), "layers", Open::kCreate));
  std::string name = read_link(root(), "pool");
  if (name.empty() && BELLJAR_TRY(list_names(pools.get())).empty()) {
    constexpr std::size_t kBytes = 16;
    const std::string fresh = random_hex(kBytes);
    if (fresh.empty() || (::symlinkat(fresh.c_str(), root(), "pool") < 0 && errno != EEXIST))
      return call_failed(errno, "symlinkat", "name the pool of", path_);
    name = read_link(root(), "pool");
  }
  pool_ = name.empty() ? "layers" : "layers/" + name;
  layers_ = BELLJAR_TRY(open_or_make(root(), pool_.c_str(), Open::kCreate));
  return {};
}

std::vector<std::string> Store::names() const { return list_names(txns_.get()).value_or(std::vector<std::string>()); }

Result<UniqueFd> Store::open_transaction(const std::string& name) const {
  UniqueFd dir(::openat(txns_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!dir.valid()) return call_failed(errno, "openat", "open the transaction", name);
  return dir;
}

Result<UniqueFd> Store::lock_pool() const { return lock_file_in(root(), LOCK_EX); }

Result<LayerId> Store::make_layer() const {
  LayerId id = 1;
  for (const std::string& name : BELLJAR_TRY(list_names(layers())))
    id = std::max<LayerId>(id, std::strtoull(name.c_str(), nullptr, 10) + 1);
  const std::string name = format("{}", id);
  for (const std::string& path : {name, name + "/up", name + "/work"}) {
    if (::mkdirat(layers(), path.c_str(), 0700) < 0) return call_failed(errno, "mkdirat", "make the layer", path);
  }
  // The overlay shows the mode and owner of its upper layer's root.
  struct stat status{};
  const UniqueFd up(open_beneath(layers(), name + "/up", O_RDONLY | O_DIRECTORY));
  if (!up.valid() || ::fstat(workspace(), &status) < 0) return call_failed(errno, "open", "make the layer", name);
  // An ordinary user has the workspace's owner already, and gives its group where it is a member: what is made in a set-group-ID
  // directory belongs to that.
  const bool root = ::geteuid() == 0;
  if (::fchown(up.get(), root ? status.st_uid : static_cast<uid_t>(-1), status.st_gid) < 0 && root)
    return call_failed(errno, "fchown", "make the layer", name);
  BELLJAR_CHECK(write_attributes(up.get(), read_attributes(workspace()), name));  // while it may be written to
  if (::fchmod(up.get(), status.st_mode & 07777U) < 0) return call_failed(errno, "fchmod", "make the layer", name);
  return id;
}

Result<void> Store::drop_unused_layers() const {
  std::set<std::string> used;
  for (const std::string& name : names()) {
    const UniqueFd dir = BELLJAR_TRY(open_transaction(name));
    const Meta meta = BELLJAR_TRY(load_meta(dir.get()));
    for (const LayerId id : meta.chain) used.insert(format("{}", id));
    for (const Snapshot& snapshot : meta.snapshots) {
      for (const LayerId id : snapshot.chain) used.insert(format("{}", id));
    }
  }
  for (const std::string& name : BELLJAR_TRY(list_names(layers()))) {
    if (!used.contains(name)) BELLJAR_CHECK(move_to_trash(layers(), name));
  }
  return {};
}

Result<void> Store::move_to_trash(int folder, const std::string& name) const {
  constexpr std::size_t kBytes = 8;
  for (unsigned number = 0;; ++number) {
    const std::string to = format("{}-{}-{}-{}", name, random_hex(kBytes), ::getpid(), number);  // as secret as the pool
    if (::renameat2(folder, name.c_str(), trash_.get(), to.c_str(), RENAME_NOREPLACE) == 0) return {};
    if (errno == ENOENT) return {};
    if (errno != EEXIST) return call_failed(errno, "renameat2", "put away", name);
  }
}

Result<void> Store::empty_trash() const {
  Result<void> result;
  for (const std::string& name : BELLJAR_TRY(list_names(trash_.get()))) {
    auto removed = remove_tree(path_ + "/trash/" + name);
    if (!removed && removed.error().errnum() != ENOENT) result = std::move(removed);  // ENOENT: another empties it, too
  }
  return result;
}

bool is_busy(int transaction_dir) noexcept {
  const UniqueFd lock(::openat(transaction_dir, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

Result<Transaction> Transaction::open_at_all(const Place& place, Store::Open how, Access access) {
  BELLJAR_CHECK(check_name(place.name, "transaction"));
  Transaction transaction(BELLJAR_TRY(Store::open(place, how)), place.name);
  const Store& store = transaction.store_;
  transaction.dir_ = UniqueFd(::openat(store.txns_fd(), place.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!transaction.dir_.valid() && errno != ENOENT) return call_failed(errno, "openat", "open the transaction", place.name);
  if (!transaction.dir_.valid() && how == Store::Open::kExisting) return not_found(place, store.names());
  if (!transaction.dir_.valid()) {
    BELLJAR_CHECK(transaction.begin(place));
    transaction.is_new_ = true;
  }
  if (access != Access::kRead) {
    auto lock = lock_file_in(transaction.dir(), LOCK_EX | LOCK_NB);
    if (!lock)
      return Error(Code::kFailedPrecondition, format("cannot use the transaction {}", quoted(place.name)))
          .reason("a command runs in it, or another belljar works on it")
          .next("wait for its end, or use another transaction: --txn-name NAME");
    transaction.lock_ = *std::move(lock);
    // Ended by somebody between our open and our lock?
    const auto ours = find_status(transaction.dir(), "");
    const auto named = find_status(store.txns_fd(), place.name);
    if (!ours || !named || ours->st_ino != named->st_ino) return not_found(place, store.names());
    BELLJAR_CHECK(transaction.await_former());
  }
  transaction.meta_ = BELLJAR_TRY(load_meta(transaction.dir()));
  if (access == Access::kDrop) return transaction;
  BELLJAR_CHECK(transaction.check_workspace(place));
  if (transaction.meta_.workspace == place.workspace) return transaction;
  Meta moved = transaction.meta_;  // the very directory, under another name
  moved.workspace = place.workspace;
  if (access == Access::kChange) BELLJAR_CHECK(transaction.save(std::move(moved)));
  return transaction;
}

// The store is found by device and inode, and a directory that is made anew often gets the inode of the one that was removed. Where
// the file system does not tell when it was made, the path must do.
Transaction::Whose Transaction::whose(const Place& place) const {
  const std::int64_t now = workspace_birth_time(store_.workspace());
  if (meta_.birth_time != 0 && now != 0) return meta_.birth_time == now ? Whose::kOurs : Whose::kAnothers;
  return meta_.workspace == place.workspace ? Whose::kOurs : Whose::kUnknown;
}

Result<void> Transaction::check_workspace(const Place& place) const {
  const Whose found = whose(place);
  if (found == Whose::kOurs) return {};
  Error error(Code::kFailedPrecondition, format("cannot use the transaction {}", quoted(place.name)));
  if (found == Whose::kUnknown)
    return std::move(error)
        .reason(
            format("it was begun in {}, which may be another directory than {}", quoted(meta_.workspace), quoted(place.workspace)))
        .next("move the directory back; `belljar rollback` drops what it holds, --txn-name NAME takes another transaction");
  return std::move(error)
      .reason(format("it was begun in {}, and {} is another directory", quoted(meta_.workspace),
                     meta_.workspace == place.workspace ? "what is there now" : quoted(place.workspace)))
      .next("`belljar rollback` drops what it holds; --txn-name NAME takes another transaction");
}

// Made aside and renamed into place, so that a transaction that can be found is whole.
Result<void> Transaction::begin(const Place& place) {
  const UniqueFd pool = BELLJAR_TRY(store_.lock_pool());
  const std::string temporary = format(".new-{}", ::getpid());
  (void)remove_tree(store_.path() + "/" + temporary);
  if (::mkdirat(store_.root(), temporary.c_str(), 0700) < 0) return call_failed(errno, "mkdirat", "make the transaction", name_);
  dir_ = UniqueFd(::openat(store_.root(), temporary.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir_.valid()) return call_failed(errno, "openat", "make the transaction", name_);
  if (::fsetxattr(dir_.get(), "user.belljar", "", 0, 0) < 0 && errno == ENOTSUP) {
    (void)remove_tree(store_.path() + "/" + temporary);
    return no_attributes(place);
  }
  Meta meta;
  meta.workspace = place.workspace;
  meta.birth_time = workspace_birth_time(store_.workspace());
  meta.chain = {BELLJAR_TRY(store_.make_layer())};
  BELLJAR_CHECK(save(std::move(meta)));
  if (::renameat2(store_.root(), temporary.c_str(), store_.txns_fd(), name_.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno != EEXIST) return call_failed(errno, "renameat2", "make the transaction", name_);
  BELLJAR_CHECK(store_.move_to_trash(store_.root(), temporary));  // another began it at the same time
  dir_ = BELLJAR_TRY(store_.open_transaction(name_));
  return {};
}

Result<Transaction> Transaction::open(const Place& place, Store::Open how, Access access) {
  Transaction transaction = BELLJAR_TRY(open_at_all(place, how, access));
  // The stage of a commit that was cut off may hold what was in the workspace: it goes only where that is surely gone.
  const bool gone = access == Access::kDrop && transaction.whose(place) == Whose::kAnothers;
  if (access != Access::kRead && !gone && transaction.interrupted())
    return Error(Code::kFailedPrecondition, format("cannot use the transaction {}", quoted(place.name)))
        .reason("a commit of it was cut off half-way")
        .next("`belljar recover` finishes or undoes it");
  return transaction;
}

Result<Transaction> Transaction::open_interrupted(const Place& place) {
  return open_at_all(place, Store::Open::kExisting, Access::kChange);
}

Result<void> Transaction::save(Meta meta) {
  BELLJAR_CHECK(replace_whole(dir(), "meta", encode(meta)));
  meta_ = std::move(meta);
  return {};
}

bool Transaction::interrupted() const noexcept { return find_status(dir(), "commit").has_value(); }

Result<void> Transaction::end() {
  BELLJAR_CHECK(store_.move_to_trash(store_.txns_fd(), name_));
  const UniqueFd pool = BELLJAR_TRY(store_.lock_pool());
  return store_.drop_unused_layers();
}

void Transaction::note_running(pid_t first) const noexcept {
  const UniqueFd file(::openat(dir(), kRunning, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.valid()) (void)write_all(file.get(), format("{} {}\n", first, first == 0 ? 0 : start_of(first)));
}

void Transaction::note_ended() const noexcept { ::unlinkat(dir(), kRunning, 0); }

// The holder is gone: we have its lock. Its sandbox gets SIGKILL with it; the first process of a pid namespace is the last to go.
Result<void> Transaction::await_former() const {
  constexpr auto kPatience = std::chrono::seconds(10), kUnborn = std::chrono::seconds(1);
  constexpr std::chrono::milliseconds kLook(2);
  const auto noted = read_whole(dir(), kRunning, 64);
  if (!noted) return {};
  pid_t first = 0;
  std::uint64_t start = 0;
  if (std::sscanf(noted->c_str(), "%d %" SCNu64, &first, &start) != 2) first = 0;
  // Killed between that note and the next: nobody knows its number, but it dies with its maker.
  if (first == 0) std::this_thread::sleep_for(kUnborn);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (; first != 0 && start_of(first) == start; std::this_thread::sleep_for(kLook)) {
    if (std::chrono::steady_clock::now() > end)
      return Error(Code::kFailedPrecondition, format("cannot use the transaction {}", quoted(name_)))
          .reason(format("what ran in it has not ended yet (process {})", first))
          .next("wait for its end, or use another transaction: --txn-name NAME");
  }
  note_ended();
  return {};
}

bool Transaction::end_if_new() noexcept {
  if (is_new_) (void)end();
  return is_new_;
}

Result<Layers> begin_run(Transaction& transaction) {
  if (transaction.meta().pending_since == 0) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    Meta meta = transaction.meta();
    meta.pending_since = static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
    BELLJAR_CHECK(transaction.save(std::move(meta)));
  }
  const auto& chain = transaction.meta().chain;
  return Layers{transaction.store().pool_path(), {chain.rbegin() + 1, chain.rend()}, chain.back()};
}

}  // namespace belljar::txn
