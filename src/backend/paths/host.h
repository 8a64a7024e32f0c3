// What the host looks like where a plan is made: identities, existing paths, mounts, kernel features. Read once per start, passed
// as a value, so that the tree builder is a pure function of it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/paths.h"
#include "belljar/result.h"

namespace belljar::backend {

enum class PathKind { kAbsent, kDirectory, kFile, kSymlink, kOther };

struct PathFacts {
  PathKind kind = PathKind::kAbsent;
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t mode = 0;
  dev_t dev = 0;
};

// The kernel's answers, behind one small interface so that tests can give literal ones.
class Host {
 public:
  virtual ~Host() = default;
  virtual PathFacts facts(const std::string& path) const = 0;                        // of the path itself, links not followed
  virtual std::optional<std::string> canonical(const std::string& path) const = 0;   // realpath(3); nullopt when it does not exist
  virtual std::optional<std::string> link_text(const std::string& path) const = 0;   // readlink(2); nullopt: it is none
  virtual std::optional<std::string> read_small(const std::string& path) const = 0;  // first 256 KiB of a regular file
  virtual std::vector<std::string> names_in(const std::string& folder) const = 0;    // none where it cannot be listed
  virtual const std::vector<std::string>& mount_points() const = 0;                  // canonical, in mount order
  virtual bool open_to_command(const std::string& path) const = 0;  // its own mode lets the command read, write or enter it
  virtual uid_t uid() const = 0;
  virtual gid_t gid() const = 0;
  virtual int landlock_abi() const = 0;  // 0: none
};

class RealHost : public Host {
 public:
  RealHost();
  PathFacts facts(const std::string& path) const override;
  std::optional<std::string> canonical(const std::string& path) const override;
  std::optional<std::string> link_text(const std::string& path) const override;
  std::optional<std::string> read_small(const std::string& path) const override;
  std::vector<std::string> names_in(const std::string& folder) const override;
  const std::vector<std::string>& mount_points() const override;
  bool open_to_command(const std::string& path) const override;
  uid_t uid() const override { return uid_; }
  gid_t gid() const override { return gid_; }
  int landlock_abi() const override;
  // Lets go of what was read, 65 KiB after a start: the next question goes to the kernel again.
  void forget() const noexcept;

 private:
  uid_t uid_;
  gid_t gid_;
  // The names in a folder, sorted; they point into `text`. One listing answers for the dozens of names that may be secrets; a
  // folder that few names are asked of is not worth one.
  struct Listing {
    int asked = 0;
    bool listed = false, complete = false, absent = false;  // absent: there is no such folder
    std::string text;
    std::vector<std::string_view> names;
  };
  Listing& folder_of(std::string_view path) const;
  static void read_names(const std::string& folder, std::size_t most_bytes, Listing& listing);
  bool known_absent(std::string_view path) const;

  mutable std::optional<int> landlock_abi_;
  mutable std::optional<std::vector<std::string>> mount_points_;
  // Looked up by parts of a path, which need no string of their own.
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  template <class Value>
  using Known = std::unordered_map<std::string, Value, Hash, std::equal_to<>>;
  mutable Known<PathFacts> facts_;
  mutable Known<std::optional<std::string>> canonical_;
  mutable Known<Listing> listings_;
};

// Path arithmetic on canonical absolute paths.
bool is_under(std::string_view path, std::string_view folder) noexcept;  // equal counts; whole components
std::size_t depth_of(std::string_view path) noexcept;
// Of a name that is not there: where it would be made, links on the way followed.
std::string where_made(const Host& host, const std::string& path);

}  // namespace belljar::backend
