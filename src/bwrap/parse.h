// bubblewrap's command line (0.11) as a recipe for the launcher. Pure: descriptors are read by whom the caller names.
//
// Words are taken in order, as mounts are made in order. What cannot be done is refused by its name; nothing is passed over.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"
#include "launch/recipe.h"

namespace belljar::bwrap {

struct Surroundings {
  std::vector<std::string> environment;
  uid_t uid = 0;
  gid_t gid = 0;
  std::uint64_t capabilities = 0;  // that uid 0 has; not asked of others
  bool user_namespaces = true;     // can be had, as far as one can tell beforehand: for --unshare-user-try
  std::string cwd;
  std::string terminal;  // of stdout; empty: it is none
  // All that can be read from a descriptor, which is closed; the error's errnum() says why not.
  std::function<Result<std::string>(int)> read_fd;
};

struct Parsed {
  enum class Act { kRun, kHelp, kVersion, kUsage, kRefused };  // kUsage: there is no command
  Act act = Act::kRun;
  launch::Recipe recipe;              // kRun
  std::string refusal;                // kRefused: one line
  std::vector<std::string> warnings;  // one line each
  bool level_prefix = false;          // <3> before errors, <4> before warnings, sd-daemon(3)
};

Parsed parse_words(std::span<const std::string> words, const Surroundings& surroundings);

// All options with what they take and do. `name`: what the program was called.
std::string help_text(std::string_view name);

}  // namespace belljar::bwrap
