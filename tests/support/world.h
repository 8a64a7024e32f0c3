// A small internet for `belljar run`: name server, web servers and more on addresses that are public and belong to nobody here, in
// network and mount namespaces of its own. What it serves stands in world.py.
#pragma once

#include <string>
#include <vector>

#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {

// Before a command: it connects by itself instead of following a proxy.
inline constexpr char kNoProxy[] =
    "unset HTTP_PROXY http_proxy HTTPS_PROXY https_proxy ALL_PROXY all_proxy JAVA_TOOL_OPTIONS NODE_USE_ENV_PROXY; ";

class World {
 public:
  // Why this machine cannot have one; empty: it can.
  static std::string missing();
  // `belljar ARGS` in a world that is new each time.
  Outcome belljar(const std::vector<std::string>& args) const;
  // The same for any command.
  Outcome run(const std::vector<std::string>& command) const;
  // Every name that the last command asked of the name server, one a line.
  std::string asked() const;
  std::string state() const { return state_.path(); }  // its XDG_STATE_HOME

  TempDir files;      // files/NAME is served; cert.pem and key.pem open the TLS port
  TempDir workspace;  // where commands run
 private:
  TempDir state_;
};

}  // namespace belljar::test
