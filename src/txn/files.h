// Files relative to a directory descriptor, as a transaction needs them. What lies in layers and workspace was written by commands
// that are not trusted: no symbolic link is followed, no path leaves the directory it starts at, no other file system is entered.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/result.h"

namespace belljar::txn {

// A failed call as an Error: "cannot WHAT `path`".
Error call_failed(int errnum, const char* call, std::string_view what, std::string_view path);

// "" and "." mean the directory itself. Errors are errnos, negative.
int open_beneath(int root, const std::string& path, int flags);
Result<UniqueFd> open_directory(const std::string& path);  // absolute; links in it are followed
Result<void> make_directories(const std::string& path);    // absolute, mode 0700 each; existing ones are left as they are

// The directory that holds the last component of `path`, and that component.
struct ParentAndName {
  UniqueFd parent;
  std::string name;
};
Result<ParentAndName> open_parent(int root, const std::string& path);
// The same for names that come one directory after the other, as walk() lists them: that of the last one stays open.
struct Spot {
  int dir;  // of the LastFolder, until it finds the next one
  std::string name;
};
class LastFolder {
 public:
  Result<Spot> find(int root, const std::string& path);

 private:
  UniqueFd fd_;
  std::string path_;
};
std::string_view parent_path(std::string_view path) noexcept;  // "" for "a"
std::string join_path(std::string_view folder, std::string_view name);
bool within(std::string_view path, std::string_view folder) noexcept;  // relative paths; everything is within ""

std::optional<struct stat> find_status(int dir, const std::string& name) noexcept;
// When the file was made, in ns; 0: the file system does not tell.
std::int64_t birth_time(int fd) noexcept;
Result<std::vector<std::string>> list_names(int dir);  // sorted

Result<std::string> read_whole(int dir, const std::string& path, std::uint64_t most);
// Written under another name and renamed over `name`; with `durable` it survives a power cut.
enum class Durable { kNo, kYes };
Result<void> write_whole(int dir, const std::string& name, std::string_view bytes, Durable durable = Durable::kNo);
// The same for a small file that is replaced often: ext4 writes a file out before it is renamed over another (auto_da_alloc), which
// takes milliseconds; here the old one is removed first, and a reader that finds none takes the new one where it was prepared.
Result<void> replace_whole(int dir, const std::string& name, std::string_view bytes);
Result<std::string> read_replaced(int dir, const std::string& name, std::uint64_t most);
Result<void> write_bytes(int fd, std::string_view bytes, std::string_view path);

// Extended attributes, those of overlayfs left out. Ordinary users see no trusted.*, and security.* is the system's.
std::map<std::string, std::string> read_attributes(int fd);
Result<void> write_attributes(int fd, const std::map<std::string, std::string>& wanted, std::string_view path);
// Through an O_PATH descriptor or of a symbolic link: of nothing.
bool is_opaque(int directory) noexcept;
Result<void> make_opaque(int directory);
// Whether overlayfs made `upper` as its copy of `lower`, and nobody has put another file in its place. What cannot be told is not.
bool is_copy_of(int upper, int lower) noexcept;
bool has_overlay_attributes(int fd);            // an O_PATH descriptor will do
void drop_overlay_attributes(int fd) noexcept;  // of what may be written to
// Takes them from what stands there, not through a link. False: some stay, or it is opaque.
bool take_overlay_attributes(int dir, const std::string& name, mode_t mode) noexcept;

// Bytes, holes kept, shared where the file system can. Neither owner nor mode.
Result<void> copy_bytes(int from, int to, std::string_view path);
// Anything but a directory, under a new name: content, owner (as far as we may), mode, attributes, times.
Result<void> copy_node(int from_dir, const std::string& from, int to_dir, const std::string& to);
// As far as we may: an ordinary user's files stay its own.
void give_owner(int fd, const struct stat& status) noexcept;
Result<bool> same_bytes(int one, int other);

std::string read_link(int dir, const std::string& name);

}  // namespace belljar::txn
