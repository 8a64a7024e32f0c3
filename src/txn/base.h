// Bases: what host and transaction last had in common under each name that a transaction changed, the third
// side of a three-way commit.
//
// At first it is what the host had, noted when the run that changed the name ended. After a part of the
// transaction was committed, it is what the layers show of those names, for the host was given that. What the
// host has by then may be somebody's edit and never becomes a base.
//
// ctime, which only the kernel sets, tells whether the host's file was touched between the start of the run
// and the note. If it is older than the start (CLOCK_REALTIME_COARSE, the clock of ctime), or older than the
// copy that overlayfs made of it for the layer, the file is what the command saw. Otherwise the base is
// kUnknown, and the commit treats the name as changed.
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

// Only bases whose layer the transaction still has.
Result<Bases> load_bases(const Transaction& transaction);
Result<void> save_bases(int transaction_dir, const Bases& bases);
// The copies in bases/ too.
Result<void> copy_bases(int from_dir, int to_dir, const Bases& bases);

// Notes the bases that are missing. Costs a stat for each name in the layers; new directories are not looked into.
Result<void> observe(Transaction& transaction);

// To be called before `paths` are committed and the rest is not. Directories on the way to them that only
// the base of a directory above covers are known to be unchanged by their times alone, which the commit will
// change: their bases are noted now.
Result<void> note_ways(const Transaction& transaction, const std::vector<Delta>& deltas, const std::vector<std::string>& paths);

// `paths` were committed and the rest was not: what the layers show of them is their base now.
Result<void> renew_bases(const Transaction& transaction, const std::vector<std::string>& paths);

// Of each: whether the layers show under its name just what the base has. The transaction says nothing about
// those, whatever the host has there by now.
std::vector<bool> find_settled(const Store& store, const Bases& bases, const std::vector<Delta>& deltas);

// All of a walk without what is settled, for callers that only read: bases that cannot be read settle nothing.
std::vector<Delta> drop_settled(const Transaction& transaction, std::vector<Delta> deltas);
// walk() and that.
Result<std::vector<Delta>> walk_unsettled(const Transaction& transaction);

enum class HostSide { kUnchanged, kChanged, kUnknown };
// What became of the host's side of a change since the command saw it.
HostSide judge_host(const Store& store, const Bases& bases, const Delta& delta);

// Whether the transaction's or the host's file has the bytes of the base. False where that cannot be told.
bool layer_has_content(const Store& store, const Base& base, const Delta& delta);
bool host_has_content(const Store& store, const Base& base, const Delta& delta);

}  // namespace belljar::txn
