#include "kernel/worktree.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/real_path.h"
#include "kernel/small_file.h"

namespace belljar::kernel {
namespace {

constexpr std::string_view kWorktrees = "/.git/worktrees/", kDotGit = "/.git";

// The path itself where no symbolic link leads there: one could be put in its place after the pointer was judged. Else empty.
std::string plain(const std::string& path) {
  std::string as_text = std::filesystem::path(path).lexically_normal().string();
  if (as_text.ends_with('/')) as_text.pop_back();  // "a/b/.." is "a/"
  return as_text == real_path(path) ? as_text : std::string();
}

// The path that a pointer of git's holds: its first line behind `key`, from `base` when it is relative.
std::string pointer_in(const std::string& file, std::string_view key, const std::string& base) {
  struct stat status{};
  if (::lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const auto text = read_small_file(AT_FDCWD, file);
  if (!text || !text->starts_with(key)) return {};
  const std::string path = text->substr(key.size(), text->find('\n', key.size()) - key.size());
  if (path.empty()) return {};
  return path.front() == '/' ? path : base + "/" + path;
}

bool is_there(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0;
}

bool same_owner(const std::string& one, const std::string& other) {
  struct stat a{}, b{};
  return ::stat(one.c_str(), &a) == 0 && ::stat(other.c_str(), &b) == 0 && a.st_uid == b.st_uid;
}

}  // namespace

bool is_git_directory(const std::string& path) {
  return is_there(path + "/HEAD") && is_there(path + "/objects") && is_there(path + "/refs");
}

std::string repository_of_worktree(const std::string& workspace) {
  const std::string entry = plain(pointer_in(workspace + "/.git", "gitdir: ", workspace));
  const std::size_t at = entry.rfind(kWorktrees);
  if (at == std::string::npos || entry.find('/', at + kWorktrees.size()) != std::string::npos) return {};
  std::string repository = entry.substr(0, at + kDotGit.size());
  if (plain(pointer_in(entry + "/commondir", "", entry)) != repository || !is_git_directory(repository)) return {};
  if (plain(pointer_in(entry + "/gitdir", "", entry)) != workspace + "/.git") return {};
  return same_owner(repository, workspace) ? repository : std::string();
}

}  // namespace belljar::kernel
