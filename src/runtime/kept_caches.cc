// A pool is called after the device and inode of its workspace, which make a short name of any
// path. Inode numbers are used again once a directory is gone, so the pool holds the workspace's
// path, too, and is emptied when that is another one.
//
// The lock and the removal meet at one point. Who removes a pool locks it, renames it out of the
// way and deletes it there. A process that had opened the lock's file before the rename would lock
// a file in a pool that is being deleted. So lock_pool() compares, after locking, what it holds
// with what the name leads to now, and begins again where they differ. A removal that was
// interrupted leaves a `gone-` directory, which the next sweep deletes.
//
// A lock that is held is asked for again for a few milliseconds: who lists pools holds each for a
// moment, and a run must not lose its caches because of that.
#include "runtime/kept_caches.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/format.h"
#include "base/remove_tree.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "kernel/disk_usage.h"
#include "txn/files.h"

namespace belljar::runtime {
namespace {

constexpr std::string_view kGone = "gone-";  // a pool that is being removed

std::string pools_of(const std::string& state_dir) { return state_dir + "/caches"; }

// Up to the first NUL; empty: there is no such file. nullopt: it cannot be read.
std::optional<std::string> read_path(const std::string& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return errno == ENOENT || errno == ENOTDIR ? std::optional<std::string>("") : std::nullopt;
  char text[PATH_MAX];
  const ssize_t size = ::read(fd.get(), text, sizeof text);
  if (size < 0) return std::nullopt;
  const std::string read(text, static_cast<std::size_t>(size));
  return read.substr(0, read.find('\0'));
}

// Invalid with errno: EWOULDBLOCK, a sandbox has it.
UniqueFd lock_pool(const std::string& pool) {
  const std::string name = pool + "/lock";
  for (;;) {
    UniqueFd lock(::open(name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!lock.valid()) return lock;
    int status = 0;
    do status = ::flock(lock.get(), LOCK_EX | LOCK_NB);
    while (status < 0 && errno == EINTR);
    if (status < 0) {
      const int error = errno;
      lock.reset();
      errno = error;
      return lock;
    }
    // Whoever removes the pool moves it away first: a lock that the name does not lead to any more locks nothing.
    struct stat held{};
    struct stat named{};
    if (::fstat(lock.get(), &held) == 0 && ::stat(name.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
        held.st_dev == named.st_dev)
      return lock;
  }
}

// Whoever lists pools or removes one has a lock for a moment.
UniqueFd lock_pool_patiently(const std::string& pool) {
  constexpr int kTries = 3;
  for (int i = 1;; ++i) {
    UniqueFd lock = lock_pool(pool);
    if (lock.valid() || errno != EWOULDBLOCK || i == kTries) return lock;
    ::usleep(2000);
  }
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), ::closedir);
  if (!stream) return names;
  while (const dirent* entry = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::ranges::sort(names);
  return names;
}

// An inode number is given again once its directory is gone: what another workspace left there is thrown away.
bool is_for(const std::string& pool, const std::string& workspace) {
  const std::string name = pool + "/workspace";
  const std::optional<std::string> was = read_path(name);
  if (!was) return false;
  if (*was == workspace) return true;
  for (const std::string& entry : names_in(pool)) {
    const std::string path = pool + "/" + entry;
    if (entry != "lock" && ::unlink(path.c_str()) < 0 && !remove_tree(path)) return false;
  }
  const UniqueFd file(::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  return file.valid() && write_all(file.get(), workspace);
}

backend::KeptCaches not_kept(std::string why) { return {"", std::move(why), nullptr}; }

}  // namespace

std::optional<backend::KeptCaches> keep_caches(const Policy& policy, const std::string& workspace, const std::string& state_dir) {
  if (policy.filesystem.caches != Caches::kWorkspace || policy.mode == Mode::kDangerFullAccess ||
      policy.mode == Mode::kExternalSandbox)
    return {};
  if (policy.limits.disk) return not_kept("limits.disk would not count them");
  if (state_dir.empty()) return not_kept("there is no state directory: set XDG_STATE_HOME or HOME");
  struct stat status{};
  if (::stat(workspace.c_str(), &status) < 0)
    return not_kept(format("the workspace: {}", std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
  const std::string pool = format("{}/{:x}-{}", pools_of(state_dir), status.st_dev, status.st_ino);
  if (const auto made = txn::make_directories(pool); !made) return not_kept(made.error().line());
  UniqueFd lock = lock_pool_patiently(pool);
  if (!lock.valid())
    return not_kept(errno == EWOULDBLOCK
                        ? "another sandbox of this workspace has them"
                        : format("{} cannot be locked: {}", pool, std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
  if (!is_for(pool, workspace)) return not_kept(format("{} cannot be written", pool));
  ::utimensat(AT_FDCWD, pool.c_str(), nullptr, 0);  // when it was last used
  return backend::KeptCaches{pool, "", std::make_shared<UniqueFd>(std::move(lock))};
}

Result<std::vector<KeptPoolInfo>> list_kept_caches(const std::string& state_dir) {
  std::vector<KeptPoolInfo> found;
  const std::string pools = pools_of(state_dir);
  if (::access(pools.c_str(), R_OK | X_OK) < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return found;
    return Error(Code::kPermissionDenied, format("cannot list the caches kept in {}", quoted(pools))).sys(errno, "access");
  }
  for (const std::string& name : names_in(pools)) {
    if (name.starts_with(kGone)) continue;
    KeptPoolInfo info;
    info.path = pools + "/" + name;
    struct stat status{};
    if (::stat(info.path.c_str(), &status) < 0 || !S_ISDIR(status.st_mode)) continue;
    info.last_used = std::chrono::system_clock::from_time_t(status.st_mtim.tv_sec);
    info.workspace = read_path(info.path + "/workspace").value_or("");
    info.present = !info.workspace.empty() && ::stat(info.workspace.c_str(), &status) == 0 &&
                   name == format("{:x}-{}", status.st_dev, status.st_ino);
    info.in_use = !lock_pool(info.path).valid() && errno == EWOULDBLOCK;
    for (const std::string& layer : names_in(info.path)) {
      if (std::string cache = read_path(info.path + "/" + layer + "/for").value_or(""); !cache.empty())
        info.caches.push_back(std::move(cache));
    }
    std::ranges::sort(info.caches);
    info.caches.erase(std::unique(info.caches.begin(), info.caches.end()), info.caches.end());
    if (const UniqueFd root(::open(info.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); root.valid()) {
      kernel::DiskScan scan(root.get());
      while (!scan.advance(std::chrono::seconds(1))) {
      }
      info.bytes = scan.result().used.count;
      info.at_least = scan.result().unseen > 0;
    }
    found.push_back(std::move(info));
  }
  std::ranges::sort(found, {}, &KeptPoolInfo::workspace);
  return found;
}

Result<void> remove_kept_caches(const KeptPoolInfo& pool) {
  const Error failed(Code::kFailedPrecondition, format("cannot remove the caches of {}", quoted(pool.workspace)));
  const UniqueFd lock = lock_pool(pool.path);
  if (!lock.valid()) {
    if (errno == ENOENT) return {};
    if (errno == EWOULDBLOCK)
      return Error(failed).reason("a sandbox uses them").next("end it first: `belljar ls` shows those that stay");
    return Error(failed).sys(errno, "flock");
  }
  // Out of the way first: whoever comes now makes a pool of their own.
  const std::string pools = pool.path.substr(0, pool.path.rfind('/'));
  const std::string gone = format("{}/{}{}-{}", pools, kGone, ::getpid(), pool.path.substr(pools.size() + 1));
  if (::rename(pool.path.c_str(), gone.c_str()) < 0 && errno != ENOENT) return Error(failed).sys(errno, "rename");
  return sweep_kept_caches(pools.substr(0, pools.rfind('/')));
}

Result<void> sweep_kept_caches(const std::string& state_dir) {
  Result<void> result;
  const std::string pools = pools_of(state_dir);
  for (const std::string& name : names_in(pools)) {
    if (!name.starts_with(kGone)) continue;
    if (auto removed = remove_tree(pools + "/" + name); !removed) result = std::move(removed);
  }
  return result;
}

}  // namespace belljar::runtime
