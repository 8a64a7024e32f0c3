// What this machine can do, found by trying: each probe does the thing in a throw-away child and reports what the kernel said.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/paths/host.h"

namespace belljar::backend {

struct Probe {
  std::string name;  // "user namespaces"
  bool works = false;
  std::string detail;  // the kernel's answer, or what was found
  std::string loses;   // what a sandbox here goes without when it does not work; empty when it works
};

std::vector<Probe> probe_machine(const Host& host);
// The first of them alone.
Probe probe_user_namespaces(const Host& host);

// Settings that decide whether user namespaces may be made, as read from /proc/sys; empty: the file does not exist.
struct UsernsSettings {
  std::string unprivileged_userns_clone;  // Debian, hardened kernels
  std::string max_user_namespaces;
  std::string apparmor_restrict_unprivileged_userns;  // Ubuntu 23.10 and later
  std::string apparmor_profile{};                     // "NAME (enforce)" when one confines this program
};
UsernsSettings read_userns_settings();

// What `belljar setup` does as root: writes `text` to `file`, so that it stays, and then either the setting or the command.
struct Remedy {
  std::string file, text;
  std::string setting, value;        // a file below /proc/sys
  std::vector<std::string> command;  // empty where there is a setting
};

struct Advice {
  std::string cause;
  std::vector<std::string> steps;  // lines to do, in order; may hold a file's text
  std::optional<Remedy> remedy;
};
// Why user namespaces are refused and what to do about it. `program` is the path of belljar itself. A pure function.
Advice advise_userns(const UsernsSettings& settings, int errnum, std::string_view program);

}  // namespace belljar::backend
