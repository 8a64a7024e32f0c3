// What will stand in the workspace, made beforehand.
//
// Changes arrive parents first. A new directory is one step with all that it holds, so changes below it add
// to that step instead of making steps of their own; what a removed directory may hold is noted in the same
// way. Modes and times of new directories come last, in reverse order: filling a directory changes its times,
// and needs a mode that allows it.
//
// What is new and nothing but the last layer's is not staged at all: its step takes it from there (handover.h). Other files come in
// three ways, the cheapest first. A file of several names becomes a hard link to the host's own
// file where its bytes are still the host's, or to the name that was staged before it. A file of the layer
// that ends with this commit is handed over by a hard link, after overlayfs' attributes are removed.
// Everything else is copied.
#include "txn/stage.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/result.h"
#include "txn/base.h"
#include "txn/compare.h"
#include "txn/files.h"
#include "txn/walk.h"

namespace belljar::txn {

Identity identity_of(const struct stat& status) {
  Identity identity;
  identity.type = status.st_mode & S_IFMT;
  identity.ino = status.st_ino;
  if (S_ISDIR(status.st_mode)) return identity;
  identity.size = static_cast<std::uint64_t>(status.st_size);
  identity.mtime = nanoseconds(status.st_mtim);
  return identity;
}

Result<void> Stager::add(const PlannedChange& chosen) {
  const Delta& delta = chosen.delta;
  if (is_below_last(delta.path)) {
    Op& above = ops_.back();
    const std::string inner = delta.path.substr(above.path.size() + 1);
    if (delta.lower) above.tree.emplace(inner, identity_of(*delta.lower));
    if (!delta.upper) return {};
    const auto spot = BELLJAR_TRY(in_stage_.find(stage_, format("n{}/{}", above.number, inner)));
    above.staged_tree.emplace(inner, BELLJAR_TRY(make(chosen, spot.dir, spot.name)));
    return {};
  }
  if (!delta.upper) return remove(delta);
  const bool both_directories = delta.lower && S_ISDIR(delta.lower->st_mode) && S_ISDIR(delta.upper->st_mode);
  return both_directories || !chosen.content ? meta(chosen) : put(chosen);
}

bool Stager::is_below_last(const std::string& path) const {
  return !ops_.empty() && ops_.back().kind != Op::Kind::kMeta && ops_.back().path != path && within(path, ops_.back().path);
}

void Stager::add_as_is(std::span<const PlannedChange> tree, LayerId layer) {
  const Delta& top = tree.front().delta;
  Op op = next_op(Op::Kind::kPut, top);
  op.layer = layer;
  op.mode = top.upper->st_mode & 07777U;
  op.staged = identity_of(*top.upper);
  for (const PlannedChange& one : tree.subspan(1))
    op.staged_tree.emplace_hint(op.staged_tree.end(), one.delta.path.substr(top.path.size() + 1), identity_of(*one.delta.upper));
  ops_.push_back(std::move(op));
}

Result<void> Stager::put(const PlannedChange& chosen) {
  Op op = next_op(Op::Kind::kPut, chosen.delta);
  op.mode = chosen.merged ? chosen.merged->mode : chosen.delta.upper->st_mode & 07777U;
  op.staged = BELLJAR_TRY(make(chosen, stage_, format("n{}", op.number)));
  ops_.push_back(std::move(op));
  return {};
}

Op Stager::next_op(Op::Kind kind, const Delta& delta) const {
  Op op;
  op.kind = kind;
  op.path = delta.path;
  op.number = ops_.size();
  if (delta.lower) op.before = identity_of(*delta.lower), op.old_mode = delta.lower->st_mode & 07777U;
  return op;
}

Result<void> Stager::remove(const Delta& delta) {
  ops_.push_back(next_op(Op::Kind::kRemove, delta));
  return {};
}

Result<void> Stager::meta(const PlannedChange& chosen) {
  const Delta& delta = chosen.delta;
  Op op = next_op(Op::Kind::kMeta, delta);
  op.mode = delta.upper->st_mode & 07777U;
  const UniqueFd lower = open_lower(store_, delta.path);
  const UniqueFd upper = open_upper(store_, delta);
  if (lower.valid() && upper.valid()) {
    op.old_attributes = read_attributes(lower.get());
    op.attributes = read_attributes(upper.get());
  }
  if (chosen.merged) op.mode = chosen.merged->mode, op.attributes = chosen.merged->attributes;
  ops_.push_back(std::move(op));
  return {};
}

Result<Identity> Stager::make(const PlannedChange& chosen, int parent, const std::string& name) {
  const Delta& delta = chosen.delta;
  if (S_ISDIR(delta.upper->st_mode)) BELLJAR_CHECK(make_directory(delta, parent, name));
  else if (chosen.merged) BELLJAR_CHECK(make_merged(chosen, parent, name));
  else BELLJAR_CHECK(make_file(delta, parent, name));
  const auto status = find_status(parent, name);
  if (!status) return call_failed(ENOENT, "fstatat", "prepare", delta.path);
  return identity_of(*status);
}

Result<void> Stager::make_file(const Delta& delta, int parent, const std::string& name) {
  const auto source = BELLJAR_TRY(in_layers_.find(store_.layers(), layer_path(delta.layer, delta.path)));
  if (delta.upper->st_nlink > 1) {
    if (link_to_host(delta, parent, name)) return {};
    const auto [known, fresh] = linked_.try_emplace({delta.upper->st_dev, delta.upper->st_ino}, std::string());
    if (!fresh && ::linkat(stage_, known->second.c_str(), parent, name.c_str(), 0) == 0) return {};
    BELLJAR_CHECK(copy_node(source.dir, source.name, parent, name));
    known->second = staged_path(delta.path);
    return {};
  }
  if (BELLJAR_TRY(hand_over(delta, source.dir, source.name, parent, name))) return {};
  return copy_node(source.dir, source.name, parent, name);
}

void Stager::keep(const Delta& delta) {
  kept_.try_emplace({delta.upper->st_dev, delta.upper->st_ino}, HostFile{delta.path, delta.lower->st_ino});
}

// False: it is no such file, or may not be linked (a file of somebody else's, proc_sys_fs(5), protected_hardlinks).
bool Stager::link_to_host(const Delta& delta, int parent, const std::string& name) const {
  const auto found = kept_.find({delta.upper->st_dev, delta.upper->st_ino});
  if (found == kept_.end()) return false;
  const auto spot = open_parent(store_.workspace(), found->second.path);
  const auto now = spot ? find_status(spot->parent.get(), spot->name) : std::nullopt;
  if (!now || !S_ISREG(now->st_mode) || now->st_ino != found->second.ino) return false;
  return ::linkat(spot->parent.get(), spot->name.c_str(), parent, name.c_str(), 0) == 0;
}

// The layer's file itself, without what overlayfs noted on it. False: it has to be copied.
Result<bool> Stager::hand_over(const Delta& delta, int from, const std::string& source, int parent, const std::string& name) const {
  if (may_link_ != delta.layer || S_ISLNK(delta.upper->st_mode)) return false;
  const UniqueFd place(open_beneath(from, source, O_PATH | O_NOFOLLOW));
  const bool marked = !place.valid() || has_overlay_attributes(place.get());
  // What takes the marks away takes write permission; who has none there is not lent it.
  const mode_t mode = ::geteuid() == 0 ? S_IRWXU : delta.upper->st_mode & 07777U;
  if (marked && (mode & S_IWUSR) == 0) return false;
  if (::linkat(from, source.c_str(), parent, name.c_str(), 0) < 0) return false;
  if (!marked) return true;
  const UniqueFd file(open_beneath(parent, name, ((mode & S_IRUSR) != 0 ? O_RDONLY : O_WRONLY) | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) return call_failed(errno, "openat2", "prepare", delta.path);
  drop_overlay_attributes(file.get());
  return true;
}

Result<void> Stager::make_directory(const Delta& delta, int parent, const std::string& name) {
  if (::mkdirat(parent, name.c_str(), 0700) < 0) return call_failed(errno, "mkdirat", "prepare", delta.path);
  const UniqueFd made(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const UniqueFd source = open_upper(store_, delta);
  if (!made.valid() || !source.valid()) return call_failed(errno, "openat", "prepare", delta.path);
  give_owner(made.get(), *delta.upper);
  // Open to us until all that belongs into it is there.
  const mode_t mode = delta.upper->st_mode & 07777U;
  if (::fchmod(made.get(), mode | S_IRWXU) < 0) return call_failed(errno, "fchmod", "prepare", delta.path);
  to_finish_.push_back({staged_path(delta.path), mode, delta.upper->st_atim, delta.upper->st_mtim});
  return write_attributes(made.get(), read_attributes(source.get()), delta.path);
}

// Of its own number, or below that of what it lies in.
std::string Stager::staged_path(const std::string& path) const {
  if (!is_below_last(path)) return format("n{}", ops_.size());
  return format("n{}/{}", ops_.back().number, path.substr(ops_.back().path.size() + 1));
}

Result<std::vector<Op>> Stager::finish_all() {
  for (auto directory = to_finish_.rbegin(); directory != to_finish_.rend(); ++directory) BELLJAR_CHECK(finish(*directory));
  to_finish_.clear();
  return std::move(ops_);
}

// Its times are what the command saw, as those of files are: unpacked and copied trees keep them.
Result<void> Stager::finish(const Finish& directory) const {
  const UniqueFd place(open_beneath(stage_, directory.path, O_RDONLY | O_DIRECTORY));
  const timespec times[2] = {directory.accessed, directory.modified};
  if (!place.valid()) return call_failed(errno, "openat2", "prepare", directory.path);
  (void)::futimens(place.get(), times);
  if ((directory.mode & S_IRWXU) != S_IRWXU && ::fchmod(place.get(), directory.mode) < 0)
    return call_failed(errno, "fchmod", "prepare", directory.path);
  return {};
}

Result<void> Stager::make_merged(const PlannedChange& chosen, int parent, const std::string& name) {
  const Delta& delta = chosen.delta;
  const UniqueFd file(::openat(parent, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  const UniqueFd source = open_upper(store_, delta);
  if (!file.valid() || !source.valid()) return call_failed(errno, "openat", "prepare", delta.path);
  const Merged& merged = *chosen.merged;
  BELLJAR_CHECK(merged.text ? write_bytes(file.get(), *merged.text, delta.path) : copy_bytes(source.get(), file.get(), delta.path));
  give_owner(file.get(), *delta.lower);
  BELLJAR_CHECK(write_attributes(file.get(), merged.attributes, delta.path));
  if (::fchmod(file.get(), merged.mode) < 0) return call_failed(errno, "fchmod", "prepare", delta.path);
  return {};
}

}  // namespace belljar::txn
