// Workspace transactions: a command writes into layers of its own, the host sees nothing until `commit`.
//
//   txn::Place place{.workspace = "/home/me/project", .state_dir = default_state_dir()};
//   ... `belljar run --txn -- make` ...
//   for (const txn::Change& change : *txn::diff(place)) ...
//   auto done = *txn::commit(place, {});          // or txn::rollback(place)
//
// A transaction belongs to a workspace and has a name. It begins with its first `run --txn` and ends with a commit of everything or
// a rollback. While a command runs in it, its calls that change anything answer kFailedPrecondition and name it; `diff` and `patch`
// show what there is at that moment. Cost follows the size of the change, never of the workspace. Calls are safe from any thread
// and any number of processes: state lives on disk, below `state_dir`, and is locked there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::txn {

struct Place {
  std::string workspace;  // absolute and canonical
  std::string state_dir;  // absolute; made with mode 0700 when absent. Must not lie in the workspace, nor the workspace in it
  std::string name = "default";
};

enum class FileKind { kNone, kFile, kDirectory, kSymlink, kOther };
enum class ChangeKind { kAdded, kModified, kDeleted, kRenamed };

// The file under a name, on one side of the change.
struct FileState {
  FileKind kind = FileKind::kNone;
  mode_t mode = 0;          // permission bits
  std::uint64_t size = 0;   // bytes; of a symbolic link: of its text
  std::uint64_t links = 1;  // names that a file has; not all of them need be changes, nor in the workspace
  bool operator==(const FileState&) const = default;
};

// One name that differs from the workspace as it is on the host now. Names that only the host changed are not among them.
struct Change {
  ChangeKind kind = ChangeKind::kModified;
  std::string path;  // relative to the workspace; bytes as they are on disk: quote them before you show them
  std::string from;  // kRenamed: the name it had
  FileState before, after;
  bool content = false;     // bytes (or a link's text) differ
  bool attributes = false;  // extended attributes differ
  bool unread = false;      // a directory that we may not read: its contents are not among the changes, and no commit takes it
  bool operator==(const Change&) const = default;
};

// All changes, sorted by path. Errors: kNotFound, there is no such transaction.
Result<std::vector<Change>> diff(const Place& place);

// The same as text that `git apply` takes, binary files included. What git cannot express (an empty directory, a mode other than
// 644 and 755, an extended attribute, a device) is left out and named in `left_out`, even where the rest is in `text`.
struct Patch {
  std::string text;
  std::vector<std::string> left_out;
};
Result<Patch> patch(const Place& place);

// The reason why a change may not be applied, or nothing. `path` relative to the workspace. Called once for each change of a
// commit.
using Judge = std::function<std::optional<std::string>(const Change& change)>;

struct CommitOptions {
  // Names or directories, relative to the workspace; empty: everything, which ends the transaction. A chosen part leaves the rest.
  std::vector<std::string> paths;
  // Whose `protect` and `entries` hold for what is committed. The default protects the built-in names and no others.
  Filesystem filesystem;
  // The workspace's own git directory stays, as in a run without a transaction (unless filesystem.allow_git_removal): for a commit
  // that nobody looked at before.
  bool keep_git = false;
  Judge judge;  // in addition to them; may be empty
};

struct Refused {
  std::string path;
  std::string reason;
};

// Either everything that was chosen is applied, or nothing is.
struct CommitResult {
  bool applied = false;
  std::vector<Change> changes;      // applied, or that would have been
  std::vector<std::string> merged;  // of these: text, mode or attributes that were changed on the host too, and merged
  std::vector<Refused> conflicts;   // changed on the host meanwhile
  std::vector<Refused> refused;     // by the rules or the judge
};

// Applies the transaction to the workspace. Errors: kNotFound; kFailedPrecondition, a command runs in it, or an earlier commit was
// cut off (recover first); kResourceExhausted, the disk is full, and the workspace is as before; kAborted, the host changed a file
// in the middle, and the workspace is as before.
Result<CommitResult> commit(const Place& place, const CommitOptions& options);

// Drops all changes, or those since the snapshot `to`. Takes less than a millisecond whatever their size; what was dropped is
// removed by sweep(). Errors: kNotFound, no such transaction or snapshot; kFailedPrecondition, a command runs in it.
Result<void> rollback(const Place& place, const std::string& to = {});

// Keeps the state of this moment under `snapshot`, to which rollback can return. Errors: kAlreadyExists; kNotFound, no such
// transaction; kFailedPrecondition, a command runs in it; kInvalidArgument, the name.
Result<void> snapshot(const Place& place, const std::string& snapshot);

// Makes a second transaction of the same workspace that goes on from this one's state. Errors: as snapshot.
Result<void> make_fork(const Place& place, const std::string& name);

struct Recovered {
  std::string name;       // of the transaction
  bool finished = false;  // the commit was completed; else it was undone
};
// Finishes or undoes what a killed process left behind, in all transactions of the workspace. `place.name` does not count.
Result<std::vector<Recovered>> recover(const Place& place);

struct Info {
  std::string name;
  std::vector<std::string> snapshots;  // oldest first
  bool running = false;                // a command runs in it
  bool interrupted = false;            // recover() has something to do
};
// The transactions of the workspace, by name.
Result<std::vector<Info>> list(const Place& place);

// Removes what rollback and commit left to remove. Errors are those of the removal; what remains is tried again next time.
Result<void> sweep(const Place& place);

}  // namespace belljar::txn
