// The sandboxes of one user: a directory of mode 0700 with one entry for each, and how they are found, claimed and put away.
//
// An entry is a directory named after the sandbox's id: `about.json`, the keeper's `socket`, its event log, and `lock`, on which
// the keeper holds a record lock (fcntl(2)) as long as it lives: whoever asks the kernel for that lock learns whether the keeper
// lives, and its pid, whatever ended it. What has ended is moved to `ended/`, of which the last kMostEnded are kept.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/result.h"

namespace belljar::keeper {

inline constexpr std::size_t kMostEnded = 16;

// The facts about a sandbox that are known without asking its keeper. Times are milliseconds since 1970.
struct About {
  std::string id, name;  // name may be empty
  std::string workspace, policy, backend;
  std::int64_t created_ms = 0;
  std::optional<std::int64_t> expires_ms, idle_timeout_ms, ended_ms;
  std::string ended;  // why; empty while it runs
  // The limit of each stream of a command, and whether it kills: the front holds it, who has the streams.
  std::optional<std::int64_t> output_bytes;
  bool output_kills = false;
};

// Why a sandbox has ended that nobody could write down at the time.
inline constexpr const char* kKilled = "its keeper was killed";

enum class State { kRunning, kGone, kEnded };
std::string_view to_string(State state) noexcept;  // "running", "gone" (its keeper was killed), "ended"

struct Entry {
  About about;
  State state = State::kRunning;
  std::string path;
  pid_t keeper = -1;  // while it runs
};

// $XDG_RUNTIME_DIR/belljar, when that is ours; else /run/user/UID/belljar; else /run/belljar for root; else `sandboxes` in the
// state directory. Errors: kFailedPrecondition, there is none of them.
Result<std::string> sandboxes_path();

// Letters, digits, `.`, `_`, `-`, at most 64, beginning with a letter or digit. Errors: kInvalidArgument.
Result<void> check_name(std::string_view name);

// An entry of our own, for as long as this process lives.
struct Claim {
  About about;
  std::string path;
  UniqueFd directory;  // the entry
  UniqueFd lock;       // never to be closed before the end: any close of that file by this process gives the lock up, fcntl(2)
  UniqueFd listener;
  std::string key;  // what whoever connects says first
};

class Directory {
 public:
  // Makes it when it is not there. Errors: kPermissionDenied, it is not ours alone; what the file system says.
  static Result<Directory> open();

  // Makes an entry; `about.id` is chosen here. Errors: kAlreadyExists, a sandbox of that name lives; kInvalidArgument, the name.
  Result<Claim> claim(About about) const;
  // Running ones and gone ones, oldest first, then those that have ended.
  Result<std::vector<Entry>> list() const;
  // An entry of our own for a sandbox that never ran.
  void discard(const std::string& id) const;
  // By id or name; of those that have ended, the latest. Errors: kNotFound, with the nearest name; kInvalidArgument.
  Result<Entry> find(const std::string& text) const;
  // Moves a sandbox whose keeper ends (`own`) or was killed to `ended/`. Nothing happens when it is not there or runs.
  void retire(const std::string& id, const std::string& why, bool own) const;

 private:
  explicit Directory(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::vector<Entry> entries(bool ended) const;
  Entry look(const std::string& id, bool ended) const;
  void put_away(About about, const std::string& why) const;

  std::string path_;
  UniqueFd fd_;
};

// Errors: kUnavailable, nobody listens there.
Result<UniqueFd> connect_to(const Entry& entry);

}  // namespace belljar::keeper
