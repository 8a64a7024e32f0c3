// The layers of a transaction as one tree, beside the host's.
//
// It repeats what overlayfs does when it merges directories, without a mount: the top-most layer that has a
// name decides. A whiteout (a character device 0:0) removes the name. A directory is merged with those of the
// same name in lower layers, down to the first that is opaque or no directory, and with the host's unless
// something on the way hid that.
//
// Where the host's directory is hidden, its names that no layer has are removed names, and they must be
// listed: no whiteout stands for them. Where it is not, only names in the layers are looked at, so the cost
// follows the change and not the workspace.
//
// A directory that its owner closed to itself hides what is in it; it is marked `unread` and the walk goes
// on. EACCES of the workspace itself ends the walk.
#include "txn/walk.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <map>
#include <utility>

#include "base/format.h"
#include "base/unique_fd.h"
#include "txn/files.h"

namespace belljar::txn {
namespace {

constexpr std::size_t kMostShown = 200;  // bytes of a path that is longer than any

bool is_whiteout(const struct stat& status) { return S_ISCHR(status.st_mode) && status.st_rdev == 0; }

// A directory as the layers show it.
struct MergedDirectory {
  std::string path;
  std::vector<LayerId> layers;  // that have it as a directory, top first, down to the first that hides the rest
  bool hides_host = false;      // the host's directory does not shine through
};

class Walker {
 public:
  Walker(const Store& store, Descend descend) : store_(store), descend_(descend) {}

  Result<std::vector<Delta>> run(const std::vector<LayerId>& chain) {
    MergedDirectory root{"", {chain.rbegin(), chain.rend()}, false};
    Delta top{.path = "", .layer = chain.back(), .upper = std::nullopt, .lower = find_status(store_.workspace(), "")};
    const UniqueFd up(open_beneath(store_.layers(), layer_path(chain.back(), ""), O_PATH | O_DIRECTORY));
    top.upper = find_status(up.get(), "");
    if (!top.upper) return call_failed(ENOENT, "openat2", "open the layer", layer_path(chain.back(), ""));
    deltas_.push_back(std::move(top));
    BELLJAR_CHECK(walk_directory(root));
    return std::move(deltas_);
  }

 private:
  struct TopEntry {
    std::size_t index;  // in MergedDirectory::layers
    struct stat status;
  };

  Result<UniqueFd> open_layer(LayerId layer, const std::string& path) const {
    UniqueFd fd(open_beneath(store_.layers(), layer_path(layer, path), O_RDONLY | O_DIRECTORY));
    if (!fd.valid()) return unreadable(path, errno);
    return fd;
  }

  static Result<std::vector<std::string>> names_in(const UniqueFd& directory, const std::string& path) {
    auto names = list_names(directory.get());
    if (!names) return unreadable(path, names.error().errnum() != 0 ? names.error().errnum() : EACCES);
    return names;
  }

  static Error unreadable(const std::string& path, int error) {
    if (error == ENAMETOOLONG)  // what is called by its whole path: nobody can say what lies below
      return std::move(call_failed(error, "openat2", "look into", path.substr(0, kMostShown) + "..."))
          .next("its path is longer than the kernel takes: move or remove it with `belljar run --txn`");
    return std::move(call_failed(error, "openat2", "look into", path))
        .next("a directory that its owner may not read hides what changed in it: `chmod u+rwx` it with `belljar run --txn`");
  }

  // A directory that its owner closed to itself hides what is in it, and nothing else. The workspace itself hides all.
  Result<void> unless_closed(Result<void> looked, const std::string& path) {
    if (looked || path.empty() || looked.error().errnum() != EACCES) return looked;
    const auto at = std::ranges::find(deltas_.rbegin(), deltas_.rend(), path, &Delta::path);
    if (at != deltas_.rend()) at->unread = true;
    return {};
  }

  // Its own delta is the last one.
  Result<void> walk_directory(const MergedDirectory& directory) {
    const std::size_t own = deltas_.size() - 1;
    std::vector<UniqueFd> fds;
    std::map<std::string, TopEntry> names;
    bool plain = directory.layers.size() == 1;
    for (std::size_t i = 0; i < directory.layers.size(); ++i) {
      fds.push_back(BELLJAR_TRY(open_layer(directory.layers[i], directory.path)));
      for (std::string& name : BELLJAR_TRY(names_in(fds.back(), directory.path))) {
        if (names.contains(name)) continue;
        const auto status = find_status(fds.back().get(), name);
        plain = plain && status && !is_whiteout(*status);
        if (status) names.emplace(std::move(name), TopEntry{i, *status});
      }
    }
    UniqueFd host(open_beneath(store_.workspace(), directory.path, O_RDONLY | O_DIRECTORY));
    if (!host.valid() && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) return unreadable(directory.path, errno);
    std::map<std::string, TopEntry> all = std::move(names);
    if (directory.hides_host && host.valid()) {
      for (std::string& name : BELLJAR_TRY(names_in(host, directory.path)))
        all.try_emplace(std::move(name), TopEntry{directory.layers.size(), {}});
    }
    deltas_[own].plain = plain;
    for (const auto& [name, top] : all) BELLJAR_CHECK(visit(directory, fds, host.get(), name, top));
    return {};
  }

  Result<void> visit(const MergedDirectory& directory, const std::vector<UniqueFd>& fds, int host, const std::string& name,
                     const TopEntry& top) {
    const std::string path = join_path(directory.path, name);
    const auto lower = find_status(host, name);
    if (top.index == directory.layers.size() || is_whiteout(top.status)) {
      return lower ? removed(path, *lower) : Result<void>();
    }
    deltas_.push_back({.path = path, .layer = directory.layers[top.index], .upper = top.status, .lower = lower});
    if (!S_ISDIR(top.status.st_mode))
      return lower && S_ISDIR(lower->st_mode) ? unless_closed(removed_below(path), path) : Result<void>();
    if (descend_ == Descend::kWhereTheHostHasOne && (!lower || !S_ISDIR(lower->st_mode))) return {};
    return unless_closed(walk_directory(child_of(directory, fds, name, top.index)), path);
  }

  MergedDirectory child_of(const MergedDirectory& directory, const std::vector<UniqueFd>& fds, const std::string& name,
                           std::size_t from) const {
    MergedDirectory child{join_path(directory.path, name), {}, directory.hides_host};
    for (std::size_t i = from; i < directory.layers.size(); ++i) {
      const auto status = find_status(fds[i].get(), name);
      if (!status) continue;
      if (!S_ISDIR(status->st_mode)) {
        child.hides_host = true;
        break;
      }
      child.layers.push_back(directory.layers[i]);
      const UniqueFd opened(::openat(fds[i].get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (opened.valid() && is_opaque(opened.get())) {
        child.hides_host = true;
        break;
      }
    }
    return child;
  }

  Result<void> removed(const std::string& path, const struct stat& lower) {
    deltas_.push_back({.path = path, .layer = 0, .upper = std::nullopt, .lower = lower});
    const bool directory = S_ISDIR(lower.st_mode) && descend_ == Descend::kEverywhere;
    return directory ? unless_closed(removed_below(path), path) : Result<void>();
  }

  Result<void> removed_below(const std::string& path) {
    if (descend_ != Descend::kEverywhere) return {};
    const UniqueFd host(open_beneath(store_.workspace(), path, O_RDONLY | O_DIRECTORY));
    if (!host.valid()) return unreadable(path, errno);
    for (const std::string& name : BELLJAR_TRY(names_in(host, path))) {
      if (const auto lower = find_status(host.get(), name)) BELLJAR_CHECK(removed(join_path(path, name), *lower));
    }
    return {};
  }

  const Store& store_;
  Descend descend_;
  std::vector<Delta> deltas_;
};

}  // namespace

Result<std::vector<Delta>> walk(const Store& store, const std::vector<LayerId>& chain, Descend descend) {
  return Walker(store, descend).run(chain);
}

std::string layer_path(LayerId layer, const std::string& path) {
  return path.empty() ? format("{}/up", layer) : format("{}/up/{}", layer, path);
}

FileKind kind_of(const std::optional<struct stat>& status) noexcept {
  if (!status) return FileKind::kNone;
  if (S_ISREG(status->st_mode)) return FileKind::kFile;
  if (S_ISDIR(status->st_mode)) return FileKind::kDirectory;
  return S_ISLNK(status->st_mode) ? FileKind::kSymlink : FileKind::kOther;
}

FileState state_of(const std::optional<struct stat>& status) noexcept {
  FileState state;
  state.kind = kind_of(status);
  if (!status) return state;
  if (state.kind != FileKind::kSymlink) state.mode = status->st_mode & 07777U;
  if (state.kind == FileKind::kFile) state.links = status->st_nlink;
  if (state.kind == FileKind::kFile || state.kind == FileKind::kSymlink) state.size = static_cast<std::uint64_t>(status->st_size);
  return state;
}

}  // namespace belljar::txn
