#include "belljar/state_dir.h"

#include <unistd.h>

#include <string>

#include "base/environment.h"

namespace belljar {

std::string default_state_dir() {
  // "must be absolute; a relative path is to be ignored", XDG Base Directory Specification.
  if (const std::string xdg = own_variable("XDG_STATE_HOME"); xdg.starts_with('/')) return xdg + "/belljar";
  if (::geteuid() == 0) return "/var/lib/belljar";
  const std::string home = own_variable("HOME");
  return home.starts_with('/') ? home + "/.local/state/belljar" : std::string();
}

}  // namespace belljar
