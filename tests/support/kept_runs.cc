#include "support/kept_runs.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "support/identity.h"

namespace belljar::test {

void KeptRuns::SetUp() {
  BELLJAR_NEEDS(user_namespaces());
  BELLJAR_NEEDS(program("python3"));
  base_.make_dir("ws");
  base_.make_dir("home");
}

RunOptions KeptRuns::options() const {
  RunOptions options{.stdin_is = Input::kNull};
  options.cwd = base_ / "ws";
  options.env = {{"HOME", base_ / "home"}, {"XDG_STATE_HOME", base_ / "home/.local/state"}};
  return options;
}

Outcome KeptRuns::python(std::vector<std::string> flags, const std::vector<std::string>& args) const {
  flags.insert(flags.begin(), "run");
  flags.insert(flags.end(), {"--", "python3"});
  flags.insert(flags.end(), args.begin(), args.end());
  return belljar(flags, options());
}

Outcome KeptRuns::explain(std::vector<std::string> args) const {
  args.insert(args.begin(), "explain");
  return belljar(args, options());
}

UniqueFd KeptRuns::serve(const std::string& name) const {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (base_.path() + "/ws/" + name).copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(socket.get(), 64), 0);
  return socket;
}

}  // namespace belljar::test
