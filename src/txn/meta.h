// The state of one transaction, as a value and as bytes on disk (CBOR: names may be any bytes).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"

namespace belljar::txn {

using LayerId = std::uint64_t;  // the name of a directory in the pool; never used twice while it exists

struct Snapshot {
  std::string name;
  std::vector<LayerId> chain;  // bottom first; none of them is written to any more
  bool operator==(const Snapshot&) const = default;
};

struct Meta {
  std::string workspace;  // canonical path when it was used last
  std::int64_t birth_time =
      0;  // ns; when that directory was made, for inode numbers are used again. 0: the file system does not tell
  std::vector<LayerId> chain;  // bottom first; the last one takes the writes
  std::vector<Snapshot> snapshots;
  std::map<LayerId, std::vector<LayerId>> flat;  // what a flattened layer was made of
  // CLOCK_REALTIME_COARSE (the clock of ctime) in ns before the first run whose changes are not in the table of bases; 0: none.
  std::int64_t pending_since = 0;
  // `layer` is one of the chain, or in one of it.
  bool holds(LayerId layer) const;
  bool operator==(const Meta&) const = default;
};

std::string encode(const Meta& meta);
// Errors: kDataLoss, `bytes` are no Meta.
Result<Meta> decode_meta(std::string_view bytes);

}  // namespace belljar::txn
