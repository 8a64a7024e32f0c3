// Mount points of a recipe's tree, by descriptor: opened as the sandbox would, made where they are missing, shared where another
// sandbox's stub is there (recipe_stubs.h), and mounted on. Between clone3 and execve; -errno where a call returns an int.
#pragma once

#include <limits.h>
#include <sys/mount.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "launch/recipe.h"
#include "launch/recipe_child.h"

namespace belljar::launch {

inline constexpr std::uint64_t kQuiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

// A descriptor of the child: closed at the end of its block. UniqueFd's close would do, but this one never throws away errno.
class ScopedFd {
 public:
  explicit ScopedFd(int fd) noexcept : fd_(fd) {}
  ScopedFd(const ScopedFd&) = delete;
  ScopedFd& operator=(const ScopedFd&) = delete;
  ~ScopedFd() {
    const int error = errno;
    if (fd_ >= 0) ::close(fd_);
    errno = error;
  }
  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

int open_inside(int root, const char* path, std::uint64_t flags, mode_t mode = 0) noexcept;
// Of the last component alone, without slashes behind it.
int copy_name(const char* last, char (&name)[NAME_MAX + 1]) noexcept;
void note_own(RecipeContext& context, int place) noexcept;
// The directory that holds the mount point or file, made where it is missing. `last`: the rest of the path; empty for the root
// itself.
int open_parent(RecipeContext& context, const RecipeOp& op, const char*& last) noexcept;
int set_attributes(int tree, std::uint64_t set, unsigned recursive) noexcept;
bool is_root(int root, int place) noexcept;
// Takes `tree`: it is closed, or becomes the new root where it was put on top of that.
int attach(RecipeContext& context, int tree, int place) noexcept;
// A mount point for a directory (O_PATH).
int ensure_directory(RecipeContext& context, const RecipeOp& op, mode_t mode) noexcept;
// A mount point for anything else.
int ensure_file(RecipeContext& context, const RecipeOp& op) noexcept;

}  // namespace belljar::launch
