// Which rule covers an act on a name: git control names, agent and editor names, globs and, without mounts, plain paths.
//
// Safe from any thread. Only begin_run() changes anything or looks at the host (has_git); what else stands beside a name is
// asked through Surroundings. A path that no rule names costs well under a microsecond and asks nothing.
//
// The engine's part:
//   - kRefuse: fail with `errnum`, record a Violation with `rule`, `origin`, `allowed`.
//   - kJudge: the content that is to stand at the name decides, git_objection(git, path, ...). On an objection as kRefuse.
//   - kMakesGitDir: the act completes a git directory, the parent of the name. Take the lock for directory renames exclusively,
//     ask again; if it is still kMakesGitDir, judge every control file below that directory (name_in_git_dir(), without old
//     content), put fresh copies in their place, then perform the act. One objection refuses the act. A
//     directory that comes to be the marker is walked as after must_walk().
//   - a directory that gets a new path: if must_walk() says kAll, every name below is put to rule_for(kRenameFrom, old path) and
//     rule_for(kRenameTo, new path), what is no file and no directory to rule_for(kSymlink, new path), too; if kAgentNames, to
//     agent_rule() of the new path.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/policy.h"
#include "broker/git_names.h"

namespace belljar::broker {

enum class Act : std::uint8_t {
  kRead,
  kWrite,   // open for writing, existing or (with O_CREAT) not
  kCreate,  // open with O_CREAT of a name that is not there
  kMkdir,
  kMknod,  // FIFOs, sockets (bind), devices
  kSymlink,
  kHardLink,  // both names of link(2)
  kRenameFrom,
  kRenameTo,
  kUnlink,
  kRmdir,
  kChmod,
  kTruncate,
  kAttributes,  // owner, times, extended attributes
};

enum class Answer : std::uint8_t { kAllow, kRefuse, kJudge, kMakesGitDir };

struct Ruling {
  Answer answer = Answer::kAllow;
  int errnum = 0;
  GitName git = GitName::kNone;
  std::string_view rule;           // the policy key; static or owned by the FileRules
  const Origin* origin = nullptr;  // owned by the FileRules; null: whoever set the key `rule` (BrokerOptions::origin_of)
  std::string_view allowed;        // what is allowed instead, how to ask
};

// Which names below a directory must be judged when the directory gets a new path.
enum class WalkScope : std::uint8_t { kNone, kAgentNames, kAll };

// Answers what exists near the name that is judged. The engine implements it relative to the parent's descriptor.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  // Whether `name` exists in the directory `up` levels above the path's parent (0: the parent itself). Links are not followed;
  // what cannot be examined counts as existing.
  virtual bool exists(int up, std::string_view name) const = 0;
  // The same, but what was made at `when` or later does not count. Where that cannot be told it counts.
  virtual bool stood_before(int up, std::string_view name, const timespec& /*when*/) const { return exists(up, name); }
};

// The plain paths that these rules enforce where no mount does (second tier): everything that may be accessed. Absolute; links of
// what exists are resolved. The longest matching path wins; for equal paths hidden, then read-only, then writable.
struct EnforcedPaths {
  std::vector<std::string> writable, readonly, hidden;
  std::vector<std::string> readable;  // beside the writable; "/" for all
  std::vector<std::string> nodes;     // devices: opened for writing, and nothing else
};

struct FileRulesOptions {
  Filesystem filesystem;
  // Host directories that are writable inside, as the caller names them. Git and agent names are held below these.
  std::vector<std::string> roots;
  // The same as the host names them: a volume may be shown elsewhere. Empty: as `roots`.
  std::vector<std::string> host_roots;
  // Directories whose content the host keeps where nobody works in it (layers of caches): git names are held below these, too, for
  // git on the host can be led there, and no agent and editor names.
  std::vector<std::string> kept;
  // Directories whose content the host never sees (private tmp, caches): no git and no agent names below. The longer of a root, a
  // kept and an exempt directory wins.
  std::vector<std::string> exempt;
  Origin built_in{.layer = "built-in", .file = "", .line = 0};  // of what no entry says
  // GitContext::reaches.
  std::function<bool(std::string_view url)> reaches;
  // When the run began, by CLOCK_REALTIME: a work tree that was made later has no agent and editor names of its own yet. Not by the
  // coarse clock, which stamps inodes: what was made in the tick before the run must not be taken for younger (and stamps may be
  // finer, multigrain timestamps, Linux 6.13). What the command makes within its own first tick is taken for older, and held.
  timespec began{};
  // Of the roots, those whose `.git` is for git's own programs to remove if it was there when the run began. None in the layers of
  // a transaction, which can be taken back. `has_git` tells of one of them whether it is there now; unset: of none.
  std::vector<std::string> keep_git;
  std::function<bool(const std::string& root)> has_git;
  // The root is a git directory itself: that of the repository whose linked work tree the workspace is. Unset: none is.
  std::function<bool(const std::string& root)> is_git;
  // Entries without a wildcard count too: nobody else looks at what a transaction brings.
  bool hold_paths = false;
  // What stands there when the run begins is hidden or read-only, with a mount over it: the directories above keep their names, or
  // it would be elsewhere for the next run.
  std::vector<std::string> in_place;
  // Set where no mount enforces plain paths: then these rules are the lock for every call that is performed.
  std::optional<EnforcedPaths> held;
};

class FileRules {
 public:
  explicit FileRules(FileRulesOptions options);
  FileRules(FileRules&&) noexcept;
  FileRules& operator=(FileRules&&) noexcept;
  ~FileRules();

  // `path`: absolute, links of the parent resolved, in the caller's view; the last component as it will stand on disk. `is_dir`:
  // the object, or what is to be made, is a directory.
  Ruling rule_for(Act act, std::string_view path, bool is_dir, const Surroundings& around) const;
  // Beside rule_for(): the name is about to go away, by its removal or by getting another. Loss and not planting: a root's `.git`
  // (keep_git) and what is in it. What comes and goes with what git is doing (locks, what a merge or a rebase goes on with) is
  // free, and so is what was made in the run and is none of git's own.
  Ruling removal_rule(std::string_view path, const Surroundings& around) const;
  // In a sandbox that stays each command is a run, and what an earlier one made, or somebody outside meanwhile, is not its own: the
  // roots that have a `.git` now keep it, and `began` is the time for all that is asked from now on. Where commands overlap it is
  // the start of the oldest one. The first run begins with the rules. Any thread.
  void begin_run(const timespec& began) const;
  // `path` is the `.git` of a root, and emptying it would be its removal.
  bool keeps_git(std::string_view path) const noexcept;
  // rule_for() of a symbolic link with that text: the one that git itself makes to try whether it can is let through.
  Ruling link_rule(std::string_view path, std::string_view text, const Surroundings& around) const;
  // It lies in a root and not in an exempt directory.
  bool covers(std::string_view path) const noexcept;
  // Opens for reading are judged where they are intercepted.
  bool reads_matter() const noexcept;
  // ... and all of them must be: hidden patterns exist, or a hidden path below a writable one, which Landlock cannot carve out.
  bool every_read_matters() const noexcept;
  // These rules alone hold paths (FileRulesOptions::held): what has no name is judged by where it lies.
  bool holds_paths() const noexcept;
  // `protect` is all that they hold: no pattern, and nothing that is to stay in its place.
  bool only_protects() const noexcept;
  // Some rule can refuse: otherwise no file call needs to be intercepted.
  bool any() const noexcept;
  // A directory gets a new path: does what lies below have to be looked through, because a rule may cover it there that did not
  // cover it here? `around` is that of `new_path`.
  WalkScope must_walk(std::string_view old_path, std::string_view new_path, const Surroundings& around) const;
  // rule_for() with the agent and editor names alone.
  Ruling agent_rule(Act act, std::string_view path, const Surroundings& around) const;
  // Directories in which pointers of git may lead (GitContext::roots).
  const std::vector<std::string>& roots() const noexcept;
  const std::vector<std::string>& host_roots() const noexcept;
  bool reaches(std::string_view url) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace belljar::broker
