#include "support/world.h"

#include <unistd.h>

#include "support/as_user.h"
#include "support/built.h"
#include "support/identity.h"

namespace belljar::test {

std::string World::missing() {
  for (const char* name : {"unshare", "ip", "mount", "python3"}) {
    if (find_program(name).empty()) return std::string("needs ") + name;
  }
  return "";
}

Outcome World::run(const std::vector<std::string>& command) const {
  std::vector<std::string> argv{"unshare"};
  // root needs no user namespace for them, and must stay the root that Belljar's callers are.
  if (::geteuid() == 0) argv.insert(argv.end(), {"-mn"});
  else argv.insert(argv.end(), {"--map-current-user", "-Umn", "--keep-caps"});
  argv.insert(argv.end(), {"python3", std::string(kSourceDir) + "/tests/support/world.py", files.path(), "--"});
  argv.insert(argv.end(), command.begin(), command.end());
  RunOptions options{.stdin_is = Input::kNull, .cwd = workspace.path()};
  options.env["XDG_STATE_HOME"] = state_.path();
  return test::run(argv, options);
}

Outcome World::belljar(const std::vector<std::string>& args) const {
  std::vector<std::string> command{kBelljar};
  command.insert(command.end(), args.begin(), args.end());
  return run(command);
}

std::string World::asked() const { return read_file(files / "asked"); }

}  // namespace belljar::test
