#include "belljar/state_dir.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace belljar {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): said in the header
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

std::string default_state_dir() {
  // "must be absolute; a relative path is to be ignored", XDG Base Directory Specification.
  if (const std::string xdg = variable("XDG_STATE_HOME"); xdg.starts_with('/')) return xdg + "/belljar";
  if (::geteuid() == 0) return "/var/lib/belljar";
  const std::string home = variable("HOME");
  return home.starts_with('/') ? home + "/.local/state/belljar" : std::string();
}

}  // namespace belljar
