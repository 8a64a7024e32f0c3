// What would permit a refused act, and what that would cost: for `belljar explain`. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "belljar/exec_result.h"

namespace belljar::policy {

// What the caller knows of the place; "" where it knows nothing.
struct PermitContext {
  std::string home;
  std::string runtime_dir;
  // Whether the machine's own modes let whoever starts the run do `operation` at the path that the grant names; empty: unknown.
  std::function<bool(const std::string& path, std::string_view operation)> modes_allow = {};
  // Whether a path is there on the host, which a grant needs; empty: unknown.
  std::function<bool(const std::string& path)> exists = {};
  std::string state_dir = {};  // default_state_dir()
};

// What `allowed` of a refused connect says under network.mode = "proxy", by which permit_for knows it again: the host's network
// would give up all control of where data goes, and TCP has a way.
inline constexpr char kTcpByProxy[] = "TCP, by the proxy; UDP does not leave";
inline constexpr char kHostsByProxy[] =
    "hosts of network.allowed_domains, by the proxy that HTTPS_PROXY and ALL_PROXY name; this address has no other way out";

// The narrowest grant that one setting can give. Both of its texts can be copied as they are: `flag` into a shell, `line` into a
// policy file (of the user or the system: a project file cannot widen).
struct Permit {
  std::string flag;  // "--write '/srv/data dir'"; empty when no flag does it
  std::string line;  // "filesystem.writable_roots = [\"/srv/data\"]"; empty when no policy does it
  std::string step;  // "change or remove line 3 of p.toml": what a person has to do, where no grant outweighs what refused it
  std::string note;  // what to know or to do instead; may be empty
  std::string risk;  // what the grant puts at risk; "none" when nothing
  bool operator==(const Permit&) const = default;
};
Permit permit_for(const Violation& violation, const PermitContext& context = {});

// Refused on purpose by an agent's own profile, which the agent works on with: nothing that its user should permit, and seldom why
// a run failed. A refusal by an entry that the user wrote is not.
bool is_intended(const Violation& violation);

// One word of a shell: as it is, in single quotes, or with $'...' where it holds what a terminal must not see.
std::string shell_word(std::string_view text);

}  // namespace belljar::policy
