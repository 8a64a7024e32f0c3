#include "backend/native/kept_caches.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/paths/host.h"
#include "backend/paths/view.h"
#include "base/ascii.h"
#include "base/format.h"
#include "base/read_file.h"
#include "base/remove_tree.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend {
namespace {

constexpr std::string_view kEnd = "end\n";

Error failed(std::string_view call, const std::string& path) {
  const int error = errno;
  return Error(error == ENOSPC || error == EDQUOT ? Code::kResourceExhausted : Code::kInternal,
               "cannot keep the caches of the workspace")
      .sys(error, std::string(call))
      .reason(format("{} cannot be made or read", quoted(path)))
      .next("mend it, or set filesystem.caches = \"private\"");
}

// What the layer is for; empty when it was not finished. nullopt: it cannot be read.
std::optional<std::string> purpose_of(const std::string& layer) {
  const UniqueFd fd(::open((layer + "/for").c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return errno == ENOENT ? std::optional<std::string>("") : std::nullopt;
  auto text = read_at_most(fd.get(), SIZE_MAX);
  if (text && !text->ends_with(kEnd)) text->clear();
  return text;
}

std::string purpose(const Cache& cache, const View& view, uid_t uid, gid_t gid, bool judged) {
  std::vector<std::string> hidden;
  const auto add = [&](const std::string& path) {
    if (is_under(path, cache.path)) hidden.push_back(path);
  };
  for (const auto& [folder, mask] : view.masks) {
    for (const std::string& name : mask.hidden) add(folder + "/" + name);
  }
  for (const std::string& path : view.hide_dirs) add(path);
  for (const std::string& path : view.hide_files) add(path);
  std::ranges::sort(hidden);
  std::string text = cache.path + '\0' + format("{}:{}", uid, gid) + '\0';
  for (const std::string& path : hidden) text += path + '\0';
  if (judged) text += std::string("git names are judged") + '\0';
  return text + std::string(kEnd);
}

// `for` is written last: what was cut short is made anew by the next.
Result<void> make_layer(const std::string& dir, const Cache& cache, const std::string& what_for, uid_t uid, gid_t gid) {
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
  const std::string name = dir + "/for";
  const UniqueFd file(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid() || !write_all(file.get(), what_for)) return failed("open", name);
  return {};
}

}  // namespace

Result<void> find_kept_layers(const std::string& pool, uid_t uid, gid_t gid, bool judged, View& view) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(pool.c_str()), ::closedir);
  if (!stream) return failed("opendir", pool);
  std::map<std::string, std::string> known;  // what for -> N
  std::vector<std::string> unfinished;
  unsigned next = 1;
  while (const dirent* entry = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
    const std::string name = entry->d_name;
    if (!is_number(name) || name.size() > 6) continue;
    next = std::max(next, static_cast<unsigned>(std::strtoul(name.c_str(), nullptr, 10)) + 1);
    std::optional<std::string> what_for = purpose_of(pool + "/" + name);
    if (!what_for) return failed("open", pool + "/" + name);
    if (what_for->empty()) unfinished.push_back(name);
    else known.emplace(*std::move(what_for), name);
  }
  for (Cache& cache : view.caches) {
    if (cache.scratch) continue;
    const std::string what_for = purpose(cache, view, uid, gid, judged);
    if (const auto found = known.find(what_for); found != known.end()) {
      cache.kept = found->second;
      continue;
    }
    if (unfinished.empty()) unfinished.push_back(format("{}", next++));
    cache.kept = unfinished.back();
    unfinished.pop_back();
    BELLJAR_CHECK(make_layer(pool + "/" + cache.kept, cache, what_for, uid, gid));
  }
  return {};
}

}  // namespace belljar::backend
