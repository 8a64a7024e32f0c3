#include "runtime/support_plain.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

namespace belljar::test {

backend::Prepared plain() {
  backend::Prepared prepared;
  prepared.plan.env = {"PATH=/usr/local/bin:/usr/bin:/bin"};
  prepared.plan.subreaper = true;
  return prepared;
}

backend::Prepared with_pid_namespace() {
  backend::Prepared prepared;
  prepared.plan.env = {"PATH=/usr/local/bin:/usr/bin:/bin"};
  prepared.plan.clone_flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS;
  prepared.plan.identity = launch::Identity::kSelfMapped;
  prepared.plan.inside_uid = prepared.plan.outside_uid = getuid();
  prepared.plan.inside_gid = prepared.plan.outside_gid = getgid();
  prepared.pid_namespace = prepared.user_namespace = true;
  return prepared;
}

runtime::RunOutcome run_shell(const std::string& text, const Policy& policy, runtime::RunSettings session,
                              backend::Prepared (*prepared)()) {
  if (session.stdio.output == front::OutputTo::kInherit && session.stdio.host[1] == 1)
    session.stdio.output = front::OutputTo::kCapture;
  if (session.stdio.host[0] == 0) session.stdio.input = front::Input::kNull;
  auto ran = runtime::run_prepared(prepared(), policy, shell_command(text), "/tmp", session);
  if (!ran) {
    ADD_FAILURE() << ran.error().line();
    return {};
  }
  return *std::move(ran);
}

Terminal open_terminal() {
  Terminal terminal;
  terminal.master = UniqueFd(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  EXPECT_EQ(grantpt(terminal.master.get()), 0);
  EXPECT_EQ(unlockpt(terminal.master.get()), 0);
  char name[64];
  EXPECT_EQ(ptsname_r(terminal.master.get(), name, sizeof name), 0);
  terminal.slave = UniqueFd(open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  EXPECT_TRUE(terminal.slave.valid());
  return terminal;
}

PipePair open_pipe() {
  int fds[2];
  EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::string read_to_end(int fd) {
  std::string text;
  char buffer[65536];
  for (ssize_t size = 0; (size = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(size));
  return text;
}

}  // namespace belljar::test
