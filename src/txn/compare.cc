// What counts as a change, and which added file is a removed one under another name.
//
// Bytes, modes and attributes count; times do not, for a command can set them as it likes. Renames are found
// by size first and then by content, at most kMostCandidates files for each, those of the same last name
// first: the cost stays bounded if a command makes thousands of files of one size.
#include "txn/compare.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "txn/files.h"

namespace belljar::txn {
namespace {

constexpr int kQuietly = O_RDONLY | O_NONBLOCK | O_NOCTTY;
constexpr std::size_t kMostCandidates = 16;

std::string link_text(int root, const std::string& path) {
  const auto spot = open_parent(root, path);
  return spot ? read_link(spot->parent.get(), spot->name) : std::string();
}

bool content_differs(const Store& store, const Delta& delta, FileKind kind) {
  switch (kind) {
    case FileKind::kFile: {
      if (delta.upper->st_size != delta.lower->st_size) return true;
      const UniqueFd upper = open_upper(store, delta);
      const UniqueFd lower = open_lower(store, delta.path);
      return !upper.valid() || !lower.valid() || !same_bytes(upper.get(), lower.get()).value_or(false);
    }
    case FileKind::kSymlink:
      return link_text(store.layers(), layer_path(delta.layer, delta.path)) != link_text(store.workspace(), delta.path);
    case FileKind::kOther:
      return (delta.upper->st_mode & S_IFMT) != (delta.lower->st_mode & S_IFMT) || delta.upper->st_rdev != delta.lower->st_rdev;
    default:
      return false;
  }
}

bool attributes_differ(const Store& store, const Delta& delta, FileKind kind) {
  if (kind != FileKind::kFile && kind != FileKind::kDirectory) return false;
  const UniqueFd upper = open_upper(store, delta);
  const UniqueFd lower = open_lower(store, delta.path);
  return upper.valid() && lower.valid() && read_attributes(upper.get()) != read_attributes(lower.get());
}

std::string_view last_name(std::string_view path) {
  const std::string_view folder = parent_path(path);
  return path.substr(folder.empty() ? 0 : folder.size() + 1);
}

}  // namespace

UniqueFd open_upper(const Store& store, const Delta& delta) {
  return UniqueFd(open_beneath(store.layers(), layer_path(delta.layer, delta.path), kQuietly));
}

UniqueFd open_lower(const Store& store, const std::string& path) {
  return UniqueFd(open_beneath(store.workspace(), path, kQuietly));
}

std::optional<Change> compare(const Store& store, const Delta& delta) {
  Change change;
  change.path = delta.path;
  change.before = state_of(delta.lower);
  change.after = state_of(delta.upper);
  change.unread = delta.unread;
  if (!delta.lower && !delta.upper) return std::nullopt;
  if (!delta.lower || !delta.upper) {
    change.kind = delta.lower ? ChangeKind::kDeleted : ChangeKind::kAdded;
    change.content = true;
    return change;
  }
  change.content = change.before.kind != change.after.kind || content_differs(store, delta, change.after.kind);
  if (change.before.kind == change.after.kind) change.attributes = attributes_differ(store, delta, change.after.kind);
  if (!delta.unread && !change.content && !change.attributes && change.before.mode == change.after.mode) return std::nullopt;
  return change;
}

std::vector<Change> compare_all(const Store& store, const std::vector<Delta>& deltas) {
  std::vector<Change> changes;
  for (const Delta& delta : deltas) {
    if (auto change = compare(store, delta)) changes.push_back(*std::move(change));
  }
  return changes;
}

std::vector<Change> find_renames(const Store& store, const std::vector<Delta>& deltas, std::vector<Change> changes) {
  std::map<std::string_view, const Delta*> by_path;
  for (const Delta& delta : deltas) by_path[delta.path] = &delta;
  std::multimap<std::uint64_t, std::size_t> gone;  // size -> index
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const Change& change = changes[i];
    if (change.kind == ChangeKind::kDeleted && change.before.kind == FileKind::kFile && change.before.size > 0)
      gone.emplace(change.before.size, i);
  }
  std::vector<bool> taken(changes.size(), false);
  for (Change& change : changes) {
    if (change.kind != ChangeKind::kAdded || change.after.kind != FileKind::kFile) continue;
    std::vector<std::size_t> candidates;
    const auto [begin, end] = gone.equal_range(change.after.size);
    for (auto at = begin; at != end; ++at) {
      if (!taken[at->second]) candidates.push_back(at->second);
    }
    // One of the same last name first: most renames move a file elsewhere.
    std::stable_partition(candidates.begin(), candidates.end(),
                          [&](std::size_t i) { return last_name(changes[i].path) == last_name(change.path); });
    if (candidates.size() > kMostCandidates) candidates.resize(kMostCandidates);
    for (const std::size_t i : candidates) {
      const UniqueFd now = open_upper(store, *by_path[change.path]);
      const UniqueFd before = open_lower(store, changes[i].path);
      if (!now.valid() || !before.valid() || !same_bytes(now.get(), before.get()).value_or(false)) continue;
      taken[i] = true;
      change.kind = ChangeKind::kRenamed;
      change.from = changes[i].path;
      change.before = changes[i].before;
      change.content = false;
      break;
    }
  }
  std::vector<Change> kept;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (!taken[i]) kept.push_back(std::move(changes[i]));
  }
  return kept;
}

}  // namespace belljar::txn
