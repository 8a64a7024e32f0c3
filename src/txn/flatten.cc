// A chain of frozen layers as one layer that shows the same.
//
// Files become hard links, so no bytes are copied, and whiteouts are linked as well: they still hide names of
// the host. A directory takes mode and attributes of the top-most layer. It becomes opaque where something
// between the layers hid what lies below, for the chain that said so is gone afterwards.
#include "txn/flatten.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/unique_fd.h"
#include "txn/files.h"
#include "txn/walk.h"

namespace belljar::txn {
namespace {

class Flattener {
 public:
  Flattener(const Store& store, LayerId into) : store_(store), into_(into) {}

  // `layers`: those that show the directory, top first; the first one's mode and attributes count.
  Result<void> directory(const std::string& path, const std::vector<LayerId>& layers) {
    const UniqueFd target(open_beneath(store_.layers(), layer_path(into_, path), O_RDONLY | O_DIRECTORY));
    if (!target.valid()) return call_failed(errno, "openat2", "flatten", path);
    std::map<std::string, std::vector<LayerId>> names;
    for (const LayerId layer : layers) {
      const UniqueFd source(open_beneath(store_.layers(), layer_path(layer, path), O_RDONLY | O_DIRECTORY));
      if (!source.valid()) return call_failed(errno, "openat2", "flatten", path);
      for (std::string& name : BELLJAR_TRY(list_names(source.get()))) names[std::move(name)].push_back(layer);
    }
    for (const auto& [name, holders] : names) BELLJAR_CHECK(entry(target.get(), path, name, holders));
    return {};
  }

 private:
  Result<void> entry(int target, const std::string& folder, const std::string& name, const std::vector<LayerId>& holders) {
    const std::string path = join_path(folder, name);
    std::vector<LayerId> shown;
    std::optional<struct stat> top;
    bool cut = false;
    for (const LayerId layer : holders) {
      const UniqueFd parent(open_beneath(store_.layers(), layer_path(layer, folder), O_RDONLY | O_DIRECTORY));
      const auto status = find_status(parent.get(), name);
      if (!status) return call_failed(ENOENT, "fstatat", "flatten", path);
      if (!S_ISDIR(status->st_mode)) {
        if (!shown.empty()) {
          cut = true;
          break;
        }
        if (::linkat(parent.get(), name.c_str(), target, name.c_str(), 0) < 0) return call_failed(errno, "linkat", "flatten", path);
        return {};
      }
      if (shown.empty()) BELLJAR_CHECK(copy_directory(parent.get(), target, name, *status));
      if (shown.empty()) top = status;
      shown.push_back(layer);
      const UniqueFd directory(::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (directory.valid() && is_opaque(directory.get())) {
        cut = true;
        break;
      }
    }
    if (cut) {
      const UniqueFd made(::openat(target, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!made.valid()) return call_failed(errno, "openat", "flatten", path);
      BELLJAR_CHECK(make_opaque(made.get()));
    }
    BELLJAR_CHECK(directory(path, shown));
    return top ? shut(target, name, *top) : Result<void>();
  }

  // Open to us until all that belongs into it is there.
  static Result<void> shut(int folder, const std::string& name, const struct stat& as) {
    if ((as.st_mode & S_IRWXU) == S_IRWXU) return {};
    const UniqueFd made(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (made.valid() && ::fchmod(made.get(), as.st_mode & 07777U) == 0) return {};
    return call_failed(errno, "fchmod", "flatten", name);
  }

  static Result<void> copy_directory(int from, int to, const std::string& name, const struct stat& status) {
    if (::mkdirat(to, name.c_str(), 0700) < 0) return call_failed(errno, "mkdirat", "flatten", name);
    const UniqueFd source(::openat(from, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const UniqueFd target(::openat(to, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!source.valid() || !target.valid()) return call_failed(errno, "openat", "flatten", name);
    give_owner(target.get(), status);
    if (::fchmod(target.get(), (status.st_mode & 07777U) | S_IRWXU) < 0) return call_failed(errno, "fchmod", "flatten", name);
    return write_attributes(target.get(), read_attributes(source.get()), name);
  }

  const Store& store_;
  LayerId into_;
};

}  // namespace

Result<LayerId> flatten(const Store& store, const std::vector<LayerId>& chain) {
  const LayerId into = BELLJAR_TRY(store.make_layer());
  BELLJAR_CHECK(Flattener(store, into).directory("", {chain.rbegin(), chain.rend()}));
  return into;
}

}  // namespace belljar::txn
