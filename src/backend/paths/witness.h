// A host that remembers what a plan asked of it, so that somebody can tell later whether it would be planned the same.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/paths/host.h"
#include "base/unique_fd.h"

namespace belljar::backend {

// Everything that was asked of it is answered for by changed(), and what other code read of the host: note_file(). One thread.
//
// Of each path the kernel's identity counts (device, inode, mode, owner), not its name alone: a file that another one has taken the
// place of is another one, since a mount in the sandbox was over the first.
class Witness final : public RealHost {
 public:
  Witness();
  PathFacts facts(const std::string& path) const override;
  std::optional<std::string> canonical(const std::string& path) const override;
  std::optional<std::string> link_text(const std::string& path) const override;
  std::optional<std::string> read_small(const std::string& path) const override;
  std::vector<std::string> names_in(const std::string& folder) const override;
  bool open_to_command(const std::string& path) const override;

  // A file that decides something by its contents, there or not; links are followed.
  void note_file(const std::string& path) const;

  // What was asked for so far and nobody can answer for; empty: there is nothing of that kind.
  const std::string& unanswered() const noexcept { return torn_; }
  // Empty: a plan would get the same answers now. Else the path that differs.
  std::string changed();

 private:
  struct Identity {
    bool there = false;
    dev_t device = 0;
    ino_t inode = 0;
    mode_t mode = 0;
    uid_t uid = 0;
    gid_t gid = 0;
    bool mounted = false;  // a directory that is a mount point: no directory above is told of what becomes of it
    bool operator==(const Identity&) const = default;
  };
  struct Contents {
    Identity identity;
    off_t size = 0;
    timespec modified{}, changed{};
    std::string text;  // of a small file: one that is mapped changes without a new time
    bool operator==(const Contents& other) const noexcept;
  };
  struct Folder {
    std::map<std::string, Identity, std::less<>> children;
    std::optional<std::vector<std::string>> listing;
    bool tells = true, dirty = false;
  };
  static Contents contents_of(const std::string& path, int flags);
  static Contents text_of(const std::string& path);
  bool is_open_now(const std::string& path) const;
  Folder& folder_at(const std::string& path) const;
  const Identity* note(const std::string& path) const;  // nullptr: of "/", or of what is no absolute path
  void take_events();
  static std::string changed_in(const std::string& path, const Folder& folder, bool all);

  mutable std::map<std::string, Folder, std::less<>> folders_;
  using NamedFolder = std::pair<const std::string, Folder>;
  mutable std::unordered_multimap<int, NamedFolder*> watched_;
  mutable std::map<std::string, Contents, std::less<>> files_;
  mutable std::map<std::string, bool, std::less<>> open_;          // open_to_command()
  mutable std::map<std::string, std::string, std::less<>> links_;  // real paths that lead through links; empty: nowhere
  mutable std::string torn_;                                       // what nobody can answer for any more
  UniqueFd events_, mounts_;
};

}  // namespace belljar::backend
