// The steps of a commit, done and undone.
//
// Each step can be cut off at any system call and begun again, because what lies where tells how far it came.
// "nK" in the stage is the new thing of step K; after an exchange the old thing has that name. "oK" is where
// the old thing goes if it is removed, or cannot be exchanged. Is the noted inode at the name? Then the step
// was done. Is "oK" in the stage? Then the old one is away and the new one still to come.
//
// Replacing is RENAME_EXCHANGE, so that the name is never missing, and the old thing lands in the stage where
// only we can reach it. There it is compared with the identity that was planned: nobody else can change it
// any more. New names are made with RENAME_NOREPLACE. File systems without these flags (EINVAL, some network
// ones) get two plain renames; then the name is missing for a moment.
//
// What the layer has as it is to be (Op::layer) is renamed out of it, under its own path, and back.
//
// Undoing goes backwards and stops at nothing: each step that can be taken back is. A file that somebody
// wrote to after we had put it there stays, and is named in the error: it is the host's now.
//
// Directories that their owner made read-only are opened for the moment of one rename and closed again. Their
// modes are in the journal, in case that moment is cut off.
#include "txn/apply.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/unique_fd.h"
#include "txn/files.h"
#include "txn/walk.h"

namespace belljar::txn {
namespace {

std::string new_name(const Op& op) { return format("n{}", op.number); }
std::string old_name(const Op& op) { return format("o{}", op.number); }

Error changed(const Op& op, std::string reason) {
  return Error(Code::kAborted, format("cannot commit {}", quoted(op.path)))
      .reason(std::move(reason))
      .next("look at it with `belljar diff`, then commit again");
}

std::optional<Identity> identity_at(int dir, const std::string& name) {
  const auto status = find_status(dir, name);
  return status ? std::optional(identity_of(*status)) : std::nullopt;
}

// EINVAL: the file system knows no flags (some network ones). Then it is looked first, and a race in between is lost.
int rename_new(int from, const std::string& name, int to, const std::string& target) {
  if (::renameat2(from, name.c_str(), to, target.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (find_status(to, target)) return EEXIST;
  return ::renameat(from, name.c_str(), to, target.c_str()) == 0 ? 0 : errno;
}

using Tree = std::map<std::string, Identity>;

// The directory holds nothing that `tree` does not say.
Result<void> check_tree(int dir, const std::string& name, const Op& op, const Tree& tree, const std::string& inner = {}) {
  const UniqueFd folder(::openat(dir, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid()) return call_failed(errno, "openat", "look into", op.path);
  for (const std::string& one : BELLJAR_TRY(list_names(folder.get()))) {
    const std::string path = join_path(inner, one);
    const auto found = tree.find(path);
    const auto now = identity_at(folder.get(), one);
    if (found == tree.end() || now != found->second)
      return changed(op, format("{} in it was made or changed on the host meanwhile", quoted(path)));
    if (S_ISDIR(now->type)) BELLJAR_CHECK(check_tree(folder.get(), one, op, tree, path));
  }
  return {};
}

// What was taken away, before it is given up.
Result<void> check_old(int stage, const std::string& name, const Op& op) {
  const auto now = identity_at(stage, name);
  if (now != op.before) return changed(op, "it was changed on the host meanwhile");
  if (now && S_ISDIR(now->type)) return check_tree(stage, name, op, op.tree);
  return {};
}

constexpr mode_t kOpened = S_IWUSR | S_IXUSR;  // what changing a name in a directory takes

bool is_closed(const struct stat& status) noexcept {
  const uid_t user = ::geteuid();
  return user != 0 && status.st_uid == user && S_ISDIR(status.st_mode) && (status.st_mode & kOpened) != kOpened;
}

// Sets the mode of what was opened back; what has another one is as it was, or somebody's choice since.
void close_again(int dir, mode_t mode) noexcept {
  const auto status = find_status(dir, "");
  if (!status || (status->st_mode & 07777U) != (mode | kOpened)) return;
  if (::chmod(format("/proc/self/fd/{}", dir).c_str(), mode) < 0) return;  // nobody else can help
}

enum class Movable { kNo, kYes };

// To rename a directory into another one its `..` is written, which needs write permission to itself, rename(2): whoever is not
// root must open a read-only one for that moment. Nothing happens to what is not the thing that is meant, nor when it fails: the
// rename will say so.
void set_movable(int dir, const std::string& name, const Identity& meant, std::uint32_t mode, Movable movable) {
  if (meant.type != S_IFDIR || (mode & S_IWUSR) != 0 || ::geteuid() == 0) return;
  const UniqueFd place(::openat(dir, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const auto status = find_status(place.get(), "");
  if (!status || identity_of(*status) != meant) return;
  if (::chmod(format("/proc/self/fd/{}", place.get()).c_str(), movable == Movable::kYes ? mode | S_IWUSR : mode) < 0) return;
}

// Whoever is not root opens a read-only directory of its own for the moment in which a name in it changes, as `chmod u+w` would.
class OpenedDirectory {
 public:
  explicit OpenedDirectory(int dir) : dir_(dir) {
    if (::geteuid() == 0) return;
    const auto status = find_status(dir, "");
    if (!status || !is_closed(*status)) return;
    const mode_t mode = status->st_mode & 07777U;
    if (::chmod(format("/proc/self/fd/{}", dir).c_str(), mode | kOpened) == 0) mode_ = mode;
  }
  ~OpenedDirectory() {
    if (mode_) close_again(dir_, *mode_);
  }
  OpenedDirectory(const OpenedDirectory&) = delete;
  OpenedDirectory& operator=(const OpenedDirectory&) = delete;

 private:
  int dir_;
  std::optional<mode_t> mode_;
};

class Worker {
 public:
  explicit Worker(const Roots& roots) : workspace_(roots.workspace), stage_(roots.stage), layers_(roots.layers) {}

  Result<void> apply(const Op& op) {
    if (op.kind == Op::Kind::kMeta) return set_meta(op, op.mode, op.attributes);
    const Spot spot = BELLJAR_TRY(in_workspace_.find(workspace_, op.path));
    const OpenedDirectory opened(spot.dir);
    if (op.before) set_movable(spot.dir, spot.name, *op.before, op.old_mode, Movable::kYes);
    if (op.kind == Op::Kind::kRemove) return remove(op, spot);
    const Spot source = BELLJAR_TRY(source_of(op));
    set_movable(source.dir, source.name, op.staged, op.mode, Movable::kYes);
    BELLJAR_CHECK(put(op, spot, source));
    set_movable(spot.dir, spot.name, op.staged, op.mode, Movable::kNo);
    return {};
  }

  Result<void> undo(const Op& op) {
    if (op.kind == Op::Kind::kMeta) return set_meta(op, op.old_mode, op.old_attributes);
    const Spot spot = BELLJAR_TRY(in_workspace_.find(workspace_, op.path));
    const OpenedDirectory opened(spot.dir);
    if (op.kind == Op::Kind::kRemove) {
      BELLJAR_CHECK(unremove(op, spot));
    } else {
      const Spot source = BELLJAR_TRY(source_of(op));
      set_movable(spot.dir, spot.name, op.staged, op.mode, Movable::kYes);
      BELLJAR_CHECK(unput(op, spot, source));
      if (op.layer != 0) set_movable(source.dir, source.name, op.staged, op.mode, Movable::kNo);
    }
    if (op.before) set_movable(spot.dir, spot.name, *op.before, op.old_mode, Movable::kNo);
    return {};
  }

 private:
  // Where the new thing lies until it is put.
  Result<Spot> source_of(const Op& op) {
    if (op.layer == 0) return Spot{stage_, new_name(op)};
    return in_layers_.find(layers_, layer_path(op.layer, op.path));
  }

  Result<void> put(const Op& op, const Spot& spot, const Spot& source) {
    const int dir = spot.dir;
    const int error = op.before ? 0 : rename_new(source.dir, source.name, dir, spot.name);
    if (!op.before && error == 0) return {};
    const auto there = identity_at(dir, spot.name);
    if (there && there->ino == op.staged.ino && there->type == op.staged.type)
      return op.before ? check_replaced(op) : Result<void>();
    if (error == EEXIST) return changed(op, "it was made on the host meanwhile");
    if (error != 0) return call_failed(error, "renameat2", "commit", op.path);
    if (find_status(stage_, old_name(op))) return put_second(op, spot);
    if (::renameat2(stage_, new_name(op).c_str(), dir, spot.name.c_str(), RENAME_EXCHANGE) == 0)
      return check_old(stage_, new_name(op), op);
    if (errno == ENOENT) return changed(op, "it was removed on the host meanwhile");
    if (errno != EINVAL && errno != ENOSYS) return call_failed(errno, "renameat2", "commit", op.path);
    if (::renameat(dir, spot.name.c_str(), stage_, old_name(op).c_str()) < 0)
      return call_failed(errno, "renameat", "commit", op.path);
    BELLJAR_CHECK(check_old(stage_, old_name(op), op));
    return put_second(op, spot);
  }

  // Without an exchange: the old file is away, the new one is not there yet.
  Result<void> put_second(const Op& op, const Spot& spot) {
    const int error = rename_new(stage_, new_name(op), spot.dir, spot.name);
    if (error == EEXIST) return changed(op, "it was made on the host meanwhile");
    return error == 0 ? Result<void>() : call_failed(error, "renameat2", "commit", op.path);
  }

  Result<void> check_replaced(const Op& op) const {
    return check_old(stage_, find_status(stage_, old_name(op)) ? old_name(op) : new_name(op), op);
  }

  Result<void> remove(const Op& op, const Spot& spot) {
    if (find_status(stage_, old_name(op))) return check_old(stage_, old_name(op), op);
    if (::renameat(spot.dir, spot.name.c_str(), stage_, old_name(op).c_str()) < 0) {
      if (errno == ENOENT) return changed(op, "it was removed on the host meanwhile");
      return call_failed(errno, "renameat", "commit", op.path);
    }
    return check_old(stage_, old_name(op), op);
  }

  Result<void> unput(const Op& op, const Spot& spot, const Spot& source) {
    const int dir = spot.dir;
    const auto there = identity_at(dir, spot.name);
    const bool ours = there && there->ino == op.staged.ino && there->type == op.staged.type;
    const bool aside = find_status(stage_, old_name(op)).has_value();
    if (!ours && !aside) return {};  // not done, or somebody put another there
    if (ours && there != op.staged) return changed(op, "it was written to after the commit had put it there, and is left so");
    if (ours && S_ISDIR(there->type)) BELLJAR_CHECK(check_tree(dir, spot.name, op, op.staged_tree));
    if (ours && op.before && !aside) {
      if (::renameat2(stage_, new_name(op).c_str(), dir, spot.name.c_str(), RENAME_EXCHANGE) == 0) return {};
      return call_failed(errno, "renameat2", "undo", op.path);
    }
    if (ours) {
      if (const int error = rename_new(dir, spot.name, source.dir, source.name); error != 0)
        return call_failed(error, "renameat2", "undo", op.path);
    }
    if (!aside) return {};
    const int error = rename_new(stage_, old_name(op), dir, spot.name);
    return error == 0 ? Result<void>() : call_failed(error, "renameat2", "undo", op.path);
  }

  Result<void> unremove(const Op& op, const Spot& spot) {
    if (!find_status(stage_, old_name(op))) return {};
    const int error = rename_new(stage_, old_name(op), spot.dir, spot.name);
    if (error == EEXIST) return changed(op, "another of that name was made after the commit had removed it");
    return error == 0 ? Result<void>() : call_failed(error, "renameat2", "undo", op.path);
  }

  Result<void> set_meta(const Op& op, std::uint32_t mode, const std::map<std::string, std::string>& attributes) {
    const UniqueFd place(open_beneath(workspace_, op.path, O_PATH | O_NOFOLLOW));
    const auto status = find_status(place.get(), "");
    if (!status || identity_of(*status) != op.before) return changed(op, "it was changed on the host meanwhile");
    const std::string self = format("/proc/self/fd/{}", place.get());
    const mode_t now = status->st_mode & 07777U;
    if (op.attributes != op.old_attributes) {
      // The mode comes last: user.* takes write permission to the file, xattr(7), whatever the mode was and will be.
      constexpr mode_t kOpen = S_IRUSR | S_IWUSR;
      const bool shut = (now & kOpen) != kOpen && ::geteuid() != 0;
      if (shut && ::chmod(self.c_str(), now | kOpen) < 0) return call_failed(errno, "chmod", "commit", op.path);
      auto written = write_through(self, attributes, op.path);
      if (!written && shut) (void)::chmod(self.c_str(), now);  // as it was: nothing was done
      BELLJAR_CHECK(written);
    } else if (now == mode) {
      return {};
    }
    if (::chmod(self.c_str(), mode) < 0) return call_failed(errno, "chmod", "commit", op.path);
    return {};
  }

  static Result<void> write_through(const std::string& self, const std::map<std::string, std::string>& attributes,
                                    const std::string& path) {
    const UniqueFd file(::open(self.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!file.valid()) return call_failed(errno, "open", "commit", path);
    return write_attributes(file.get(), attributes, path);
  }

  int workspace_, stage_, layers_;
  LastFolder in_workspace_, in_layers_;
};

}  // namespace

Result<void> apply(const Roots& roots, const std::vector<Op>& ops) {
  Worker worker(roots);
  for (const Op& op : ops) BELLJAR_CHECK(worker.apply(op));
  return {};
}

std::map<std::string, std::uint32_t> closed_directories(int workspace, const std::vector<Op>& ops) {
  std::map<std::string, std::uint32_t> closed;
  std::optional<std::string> last;
  for (const Op& op : ops) {
    if (op.kind == Op::Kind::kMeta) continue;
    const std::string folder(parent_path(op.path));
    if (folder == last) continue;
    last = folder;
    const UniqueFd place(open_beneath(workspace, folder, O_PATH | O_DIRECTORY));
    const auto status = find_status(place.get(), "");
    if (status && is_closed(*status)) closed[folder] = status->st_mode & 07777U;
  }
  return closed;
}

void restore_modes(int workspace, const std::map<std::string, std::uint32_t>& modes) noexcept {
  for (const auto& [path, mode] : modes) {
    const UniqueFd place(open_beneath(workspace, path, O_PATH | O_DIRECTORY));
    close_again(place.get(), mode);
  }
}

Result<void> undo(const Roots& roots, const std::vector<Op>& ops) {
  Worker worker(roots);
  Result<void> first;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    if (auto undone = worker.undo(*op); !undone && first) first = std::move(undone);
  }
  return first;
}

}  // namespace belljar::txn
