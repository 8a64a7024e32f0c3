// Whether the policy lets a file call through the library do what it asks: nothing that a command inside could not do itself.
//
// Two kinds of rules. Plain ones, by path: mounts hold them for commands, find_rule() says them here. Live ones, which the broker
// holds for commands (broker/file_rules.h): patterns, names of agents and editors, git's control files by their content. They are
// asked here with the same FileRules, on the same kind of place (a directory's descriptor and a name), under the same lock: a
// directory that a command moves meanwhile would carry what was judged under its old name to a new one.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "broker/directories.h"
#include "broker/file_rules.h"

namespace belljar::session {

struct Rules {
  std::shared_ptr<const Filesystem> plain;           // null: the mode has none
  std::shared_ptr<const broker::FileRules> live;     // none: nothing is held beyond the plain ones
  std::shared_ptr<broker::Directories> directories;  // the broker's; none: no broker
  std::function<void()> begin;                       // FileRules::begin_run(), before each act; may be empty
};

// A directory's descriptor: one's own, or lent by somebody who outlives this.
class Parent {
 public:
  Parent() = default;
  Parent(UniqueFd own) : own_(std::move(own)), fd_(own_.get()) {}
  static Parent lent(int fd) {
    Parent parent;
    parent.fd_ = fd;
    return parent;
  }
  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }

 private:
  UniqueFd own_;
  int fd_ = -1;
};

// Where a name lives, or will. `parent` is the directory, `full` the canonical path inside.
struct Site {
  Parent parent;
  std::string name;
  std::string full;
  bool whole = false;  // all of a place that the policy opens by name, a single file: what it lies in is not open
};

class Judge {
 public:
  explicit Judge(Rules rules) : rules_(std::move(rules)) {}

  using Shared = std::shared_lock<broker::Directories>;
  using Owned = std::unique_lock<broker::Directories>;
  // Held from before a path is resolved until the call is done: shared, and alone by what may give a directory a new path.
  Shared share() const;
  Owned own() const;
  // Before a file or directory is made at `path`: alone where a component of it is a marker of a git directory (git_names.h), for
  // two of them made at once would each be judged as the first.
  struct MakeLock {
    Shared shared;
    Owned alone;
  };
  MakeLock lock_to_make(std::string_view path) const;

  // By the plain rules alone. `path` as the caller wrote it, for the error.
  Result<void> may(const std::string& path, const std::string& canonical, Access wanted) const;
  // A file or directory that is open, by where it stands.
  Result<void> may_read(const std::string& path, const std::string& canonical, bool is_dir) const;
  // kAllow, or kJudge: then the content decides, may_hold(). Errors: kPermissionDenied, by name, also for what can only be judged
  // while a command does it (a directory that becomes a git directory).
  Result<broker::Ruling> may_do(broker::Act act, const std::string& path, const Site& site, bool is_dir) const;
  Result<void> may_hold(const std::string& path, const Site& site, const broker::Ruling& ruling, std::string_view content) const;
  // A directory gets a new path: what lies below would have to be looked through.
  Result<void> may_move(const std::string& path, const Site& from, const Site& to) const;
  // Errors: kPermissionDenied, the sandbox has something mounted on the name. The kernel would take it off instead of refusing,
  // broker::is_mount_point().
  static Result<void> check_not_mounted(const std::string& path, const Site& site);
  // All that is below, before a tree is removed: `site` names a directory.
  Result<void> may_clear(const std::string& path, const Site& site) const;

 private:
  Rules rules_;
};

}  // namespace belljar::session
