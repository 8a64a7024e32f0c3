// What host and transaction last had in common under each name that a transaction changed: the third side of a three-way commit.
// First it is what the host had, noted when the run that changed it ended. Of a name that was committed in part it is what the
// layers show of it, for that is what the host was given; what the host has by then may be an edit of somebody's, and never becomes
// a base.
//
// Whether the host's file was touched between the start of the run and the note is told by its ctime, which only the kernel sets:
// older than the start (CLOCK_REALTIME_COARSE, the clock of ctime), or older than the copy that overlayfs made of it for the layer,
// means that it is what the command saw. Anything else is kUnknown, and the commit treats the name as changed.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "belljar/result.h"
#include "belljar/txn.h"
#include "txn/store.h"
#include "txn/walk.h"

namespace belljar::txn {

struct Base {
  enum class State : std::uint8_t { kAbsent, kKnown, kUnknown };
  State state = State::kUnknown;
  LayerId layer = 0;       // that holds the change
  std::int64_t since = 0;  // ns; start of the run
  // With kKnown:
  std::uint32_t mode = 0;             // with the type
  std::uint64_t ino = 0, size = 0;    // ino 0: not of a file of the host; `digest` tells
  std::int64_t mtime = 0, ctime = 0;  // ns
  std::map<std::string, std::string> attributes;
  std::string digest;   // SHA-256 of the bytes, or of a link's text; empty: not known
  std::string content;  // name of a copy in bases/; empty: none was kept (binary, or larger than kMostMergeable)
  bool operator==(const Base&) const = default;
};
using Bases = std::map<std::string, Base>;  // by path

constexpr std::uint64_t kMostMergeable = 1U << 20;

std::int64_t nanoseconds(const timespec& time) noexcept;

// Those whose layer the transaction still has.
Result<Bases> load_bases(const Transaction& transaction);
Result<void> save_bases(int transaction_dir, const Bases& bases);
// The copies in bases/ too.
Result<void> copy_bases(int from_dir, int to_dir, const Bases& bases);

// Notes what is not noted yet. Costs a stat for each name in the layers; new directories are not looked into.
Result<void> observe(Transaction& transaction);

// Before `paths` are committed and the rest is not: of the directories on the way that go with one above them nothing but the times
// tells so far that they are as the command saw them, and the commit will change those.
Result<void> note_ways(const Transaction& transaction, const std::vector<Delta>& deltas, const std::vector<std::string>& paths);

// `paths` were committed and the rest was not: what the layers show of them is their base now.
Result<void> renew_bases(const Transaction& transaction, const std::vector<std::string>& paths);

// Without the names of which the layers show just what the base has: the transaction has nothing to say about them, whatever the
// host has there by now.
std::vector<Delta> drop_settled(const Store& store, const Bases& bases, std::vector<Delta> deltas);

// walk() and drop_settled(), for who only looks: bases that cannot be read settle nothing.
Result<std::vector<Delta>> walk_unsettled(const Transaction& transaction);

enum class HostSide { kUnchanged, kChanged, kUnknown };
// What became of the host's side of a change since the command saw it.
HostSide judge_host(const Store& store, const Bases& bases, const Delta& delta);

// Whether the transaction's or the host's file has the bytes of the base. What cannot be told is different.
bool layer_has_content(const Store& store, const Base& base, const Delta& delta);
bool host_has_content(const Store& store, const Base& base, const Delta& delta);

}  // namespace belljar::txn
