#include "support/temp_dir.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/unique_fd.h"
#include "support/identity.h"

namespace belljar::test {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

std::string default_base() {
  const char* from_env = std::getenv("TMPDIR");
  return from_env != nullptr && *from_env != '\0' ? from_env : "/tmp";
}

// remove_all stops at a directory without owner permissions; tests make such on purpose.
void remove_tree(const fs::path& path) noexcept {
  std::error_code ignored;
  fs::remove_all(path, ignored);
  if (!fs::exists(path, ignored)) return;
  ::chmod(path.c_str(), 0700);
  for (auto it = fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied, ignored);
       it != fs::recursive_directory_iterator(); it.increment(ignored)) {
    if (it->is_directory(ignored) && !it->is_symlink(ignored)) ::chmod(it->path().c_str(), 0700);
  }
  fs::remove_all(path, ignored);
}

// Of the process; never emptied, since what is left in one is found when it is gone, too.
std::mutex made_mutex;
std::set<std::string>& made() {
  static std::set<std::string> names;  // guarded by made_mutex
  return names;
}

}  // namespace

bool is_temp_dir_of_ours(const std::string& name) {
  const std::lock_guard lock(made_mutex);
  return made().contains(name);
}

TempDir::TempDir(const std::string& base) {
  std::string pattern = fs::canonical(base.empty() ? default_base() : base).string() + "/belljar-test.XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) fail("mkdtemp " + pattern);
  ::chmod(pattern.c_str(), 0755);
  path_ = std::move(pattern);
  const std::lock_guard lock(made_mutex);
  made().insert(fs::path(path_).filename());
}

TempDir::TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TempDir::~TempDir() {
  if (path_.empty()) return;
  remove_tree(path_);
  // What stays is a leftover on somebody's machine: the test that made it so is at fault.
  if (exists(path_)) ADD_FAILURE() << "cannot remove the test's directory " << path_;
}

std::string TempDir::write(std::string_view name, std::string_view content, mode_t mode) const {
  const std::string target = *this / name;
  fs::create_directories(fs::path(target).parent_path());
  const UniqueFd file(::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!file.valid()) fail("open " + target);
  while (!content.empty()) {
    const ssize_t count = ::write(file.get(), content.data(), content.size());
    if (count < 0) fail("write " + target);
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  ::fchmod(file.get(), mode);  // whatever the umask
  return target;
}

std::string TempDir::make_dir(std::string_view name) const {
  std::string target = *this / name;
  fs::create_directories(target);
  return target;
}

void TempDir::give_to(uid_t uid, gid_t gid) const {
  if (::lchown(path_.c_str(), uid, gid) != 0) fail("chown " + path_);
  for (const auto& entry : fs::recursive_directory_iterator(path_)) {
    if (::lchown(entry.path().c_str(), uid, gid) != 0) fail("chown " + entry.path().string());
  }
}

bool on_overlay(const std::string& path) {
  struct statfs info{};
  return ::statfs(path.c_str(), &info) == 0 && info.f_type == OVERLAYFS_SUPER_MAGIC;
}

bool lent_by_root(const std::string& path) { return is_root() && !on_overlay(path); }

std::string layers_base(const std::string& base) { return on_overlay(base) ? "/dev/shm" : base; }

std::string read_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) fail("open " + path);
  std::string content;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0) fail("read " + path);
    if (count == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

bool exists(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0;
}

}  // namespace belljar::test
