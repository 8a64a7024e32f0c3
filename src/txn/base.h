// What the host had under each name that a transaction changed, noted when the run that changed it ended: the third side of a
// three-way commit.
//
// Whether the host's file was touched between the start of the run and the note is told by its ctime, which only the kernel sets:
// older than the start (CLOCK_REALTIME_COARSE, the clock of ctime), or older than the copy in the layer, means that it is what the
// command saw. Anything else is kUnknown, and the commit treats the name as changed.
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
  enum class Was : std::uint8_t { kAbsent, kKnown, kUnknown };
  Was was = Was::kUnknown;
  LayerId layer = 0;       // that holds the change
  std::int64_t since = 0;  // ns; start of the run
  // With kKnown:
  std::uint32_t mode = 0;  // with the type
  std::uint64_t ino = 0, size = 0;
  std::int64_t mtime = 0, ctime = 0;  // ns
  std::map<std::string, std::string> attributes;
  std::string content;  // name of a copy in bases/; empty: none was kept (binary, or larger than kMostMergeable)
  bool operator==(const Base&) const = default;
};
using Bases = std::map<std::string, Base>;  // by path

constexpr std::uint64_t kMostMergeable = 1U << 20;

Base base_from(const struct stat& status);  // kKnown
std::int64_t nanoseconds(const timespec& time) noexcept;

Result<Bases> load_bases(int transaction_dir);
Result<void> save_bases(int transaction_dir, const Bases& bases);
// The copies in bases/ too.
Result<void> copy_bases(int from_dir, int to_dir, const Bases& bases);

// Notes what is not noted yet. Costs a stat for each name in the layers; new directories are not looked into.
Result<void> observe(Transaction& transaction);

enum class HostSide { kUnchanged, kChanged, kUnknown };
// What became of the host's side of a change since the command saw it.
HostSide judge_host(const Store& store, int transaction_dir, const Bases& bases, const Delta& delta);

}  // namespace belljar::txn
