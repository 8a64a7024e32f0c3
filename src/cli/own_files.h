// Files of ours that a command must not read or change: what opens doors, and what the next start obeys.
#pragma once

#include <string>
#include <vector>

#include "belljar/result.h"
#include "cli/load.h"

namespace belljar::cli {

// How a file of ours is protected from commands.
enum class Protection {
  kHidden,    // a secret, or what other runs did: out of sight, and nowhere that the command writes
  kReadOnly,  // what says what is allowed: where the command writes, it is read-only
};

struct OwnFile {
  std::string doing;   // "read the token": what cannot be done where it is refused
  std::string option;  // "--http-token-file"
  std::string path;    // need not exist
  Protection protection = Protection::kHidden;
};

// Adds what keeps them to the policy. Modes without file rules keep nothing. Errors: kInvalidArgument, the command may write there,
// or may point a link on the way elsewhere; kNotFound, its directory.
Result<void> keep_own_files(const std::vector<OwnFile>& files, LoadedPolicy& loaded);

}  // namespace belljar::cli
