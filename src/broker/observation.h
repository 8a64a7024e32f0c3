// One use of a path, seen before the kernel performs it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace belljar::broker {

struct Observation {
  enum class Act : std::uint8_t {
    kQuery,  // asked about it: stat, access, readlink
    kRead,   // opened for reading; a directory: listed
    kExec,   // what the caller executes
    kWrite,  // content or mode of what is there: the name stays
    kMake,   // a name made, moved or removed: its directory changes
    kReach,  // connected to: `path` is host:port
  };
  Act act = Act::kQuery;
  std::string path;     // absolute, links resolved where they could be, in the caller's view
  bool exists = false;  // before the call
  bool directory = false;
  int tid = 0;  // of the caller, as we see it
};

// Called from any thread, while the caller waits.
using Observer = std::function<void(const Observation&)>;

}  // namespace belljar::broker
