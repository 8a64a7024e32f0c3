#include "kernel/disk_usage.h"

#include <dirent.h>  // IWYU pragma: keep (DT_DIR)
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::kernel {
namespace {

using Clock = std::chrono::steady_clock;

int open_beneath(int root, const char* path) noexcept {
  open_how how{};
  how.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  return static_cast<int>(::syscall(SYS_openat2, root, path, &how, sizeof how));
}

}  // namespace

DiskScan::DiskScan(int root) : root_(root), pending_{"."} {
  struct stat status{};
  if (::fstat(root, &status) == 0) device_ = status.st_dev;
}

bool DiskScan::advance(std::chrono::microseconds slice) {
  const auto begin = Clock::now();
  const auto until = begin + slice;
  bool done = false;
  do {
    if (directory_.valid()) read_some();
    else done = !open_next();
  } while (!done && Clock::now() < until);
  cost_ += std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
  return done;
}

bool DiskScan::open_next() {
  if (pending_.empty()) return false;
  current_ = std::move(pending_.back());
  pending_.pop_back();
  pending_bytes_ -= std::min(pending_bytes_, current_.size());
  directory_ = UniqueFd{open_beneath(root_, current_.c_str())};
  // EXDEV is a mount below, ENOENT a directory removed since: neither is ours to count. ENAMETOOLONG and EACCES hide what is there.
  if (!directory_.valid() && errno != ENOENT && errno != EXDEV && errno != ENOTDIR && errno != ELOOP) ++usage_.unseen;
  return true;
}

// One buffer of names. getdents64 rather than readdir: no allocation, and the bound on a slice holds in a huge directory.
void DiskScan::read_some() {
  alignas(8) char buffer[16384];
  const long got = ::syscall(SYS_getdents64, directory_.get(), buffer, sizeof buffer);
  if (got <= 0) {
    if (got < 0 && errno != ENOENT) ++usage_.unseen;
    directory_.reset();
    return;
  }
  // struct linux_dirent64, getdents(2): u64 ino, s64 off, u16 reclen, u8 type, name.
  for (long at = 0; at < got;) {
    std::uint16_t length = 0;
    std::memcpy(&length, buffer + at + 16, sizeof length);
    add(buffer + at + 19, static_cast<unsigned char>(buffer[at + 18]));
    at += length;
  }
}

void DiskScan::add(const char* name, unsigned char type) {
  const std::string_view view = name;
  if (view == "..") return;
  if (view == "." && current_ != ".") return;  // counted by the directory above
  struct stat status{};
  if (::fstatat(directory_.get(), name, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (status.st_dev != device_) return;
  ++usage_.files;
  if (S_ISREG(status.st_mode)) usage_.largest = std::max(usage_.largest, Bytes{static_cast<std::uint64_t>(status.st_size)});
  if (S_ISDIR(status.st_mode) || status.st_nlink < 2 || linked_.insert(status.st_ino).second)
    usage_.used.count += static_cast<std::uint64_t>(status.st_blocks) * 512;
  if (!S_ISDIR(status.st_mode) || view == "." || (type != DT_DIR && type != DT_UNKNOWN)) return;
  std::string path = current_ == "." ? std::string(view) : current_ + "/" + name;
  if (pending_bytes_ + path.size() > kMostPendingBytes) {
    ++usage_.unseen;
    return;
  }
  pending_bytes_ += path.size();
  pending_.push_back(std::move(path));
}

Result<Bytes> file_system_used(int fd) {
  struct statvfs status{};
  if (::fstatvfs(fd, &status) != 0) return Error(Code::kUnavailable, "cannot measure a file system").sys(errno, "fstatvfs");
  return Bytes{(status.f_blocks - status.f_bfree) * status.f_frsize};
}

}  // namespace belljar::kernel
