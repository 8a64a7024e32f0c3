// A directory for one test, removed at its end with everything below, whatever modes a test left on it; a test whose directory
// cannot be removed fails.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace belljar::test {

class TempDir {
 public:
  // Below `base`, or below $TMPDIR, or /tmp. Throws std::system_error.
  explicit TempDir(const std::string& base = {});
  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&&) = delete;
  ~TempDir();

  // Absolute and canonical.
  const std::string& path() const noexcept { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  // Makes the file with its parent directories; returns its path.
  std::string write(std::string_view name, std::string_view content, mode_t mode = 0644) const;
  std::string make_dir(std::string_view name) const;
  // Gives everything below to this user. Needs root.
  void give_to(uid_t uid, gid_t gid) const;

 private:
  std::string path_;
};

// Whether a TempDir of this process has, or had, this name (without what is above it).
bool is_temp_dir_of_ours(const std::string& name);

// Nothing on overlayfs can be an upper layer of overlayfs: a container's root, a fresh root that is an overlay itself.
bool on_overlay(const std::string& path);
// We are root, and lend `path` to the command (docs/design/identity.md). Otherwise the command has the id of the path's owner.
bool lent_by_root(const std::string& path);
// `base`, or /dev/shm where that is on overlayfs: for directories that hold layers.
std::string layers_base(const std::string& base);

// The whole content. Throws std::system_error when the file cannot be read.
std::string read_file(const std::string& path);
bool exists(const std::string& path);  // a dangling link exists

}  // namespace belljar::test
