#include "backend/native/kept.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/remove_tree.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend {
namespace {

Error failed(std::string_view call, const std::string& path) {
  const int error = errno;
  return Error(error == ENOSPC || error == EDQUOT ? Code::kResourceExhausted : Code::kInternal,
               "cannot keep the caches of the workspace")
      .sys(error, std::string(call))
      .reason(format("{} cannot be made or read", quoted(path)))
      .next("mend it, or set filesystem.caches = \"private\"");
}

// The path in `file`, or nothing: a layer that was not finished has none.
std::string path_in(const std::string& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  char text[PATH_MAX];
  const ssize_t size = fd.valid() ? ::read(fd.get(), text, sizeof text) : 0;
  return {text, static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

// The name is written last: what was cut short is made anew by the next.
Result<void> make_layer(const std::string& dir, const Cache& cache, uid_t uid, gid_t gid) {
  BELLJAR_CHECK(remove_tree(dir));
  const std::string up = dir + "/up";
  for (const std::string& path : {dir, up, dir + "/work"}) {
    if (::mkdir(path.c_str(), 0700) < 0) return failed("mkdir", path);
  }
  // The overlay shows the mode and owner of its upper layer's root.
  struct stat status{};
  const mode_t mode = cache.exists && ::stat(cache.path.c_str(), &status) == 0 ? (status.st_mode & 07777U) | S_IRWXU : 0755;
  if (::chmod(up.c_str(), mode) < 0) return failed("chmod", up);
  if (::geteuid() == 0 && ::chown(up.c_str(), uid, gid) < 0) return failed("chown", up);
  const std::string name = dir + "/path";
  const UniqueFd file(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid() || !write_all(file.get(), cache.path)) return failed("open", name);
  return {};
}

}  // namespace

Result<void> find_kept_layers(const std::string& pool, uid_t uid, gid_t gid, std::vector<Cache>& caches) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(pool.c_str()), ::closedir);
  if (!stream) return failed("opendir", pool);
  std::map<std::string, std::string> known;  // path -> N
  unsigned next = 1;
  while (const dirent* entry = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
    const std::string name = entry->d_name;
    if (name.find_first_not_of("0123456789") != std::string::npos || name.size() > 6) continue;
    next = std::max(next, static_cast<unsigned>(std::strtoul(name.c_str(), nullptr, 10)) + 1);
    if (std::string path = path_in(pool + "/" + name + "/path"); !path.empty()) known.emplace(std::move(path), name);
  }
  for (Cache& cache : caches) {
    if (const auto found = known.find(cache.path); found != known.end()) {
      cache.kept = found->second;
      continue;
    }
    cache.kept = format("{}", next++);
    BELLJAR_CHECK(make_layer(pool + "/" + cache.kept, cache, uid, gid));
  }
  return {};
}

}  // namespace belljar::backend
