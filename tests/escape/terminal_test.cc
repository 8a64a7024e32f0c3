// Words put into the user's terminal (CVE-2017-5226 and its kin).
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "escape/support_attack.h"

namespace belljar::test {
namespace {

struct Terminal : Attack {};

TEST_F(Terminal, TypingIntoItIsRefused) {
  for (const char* act : {"tiocsti", "tiocsti_high", "tioclinux"}) {
    const Outcome own = run_in({"--pty", "--", probe(), act});
    EXPECT_EQ(own.out, "EPERM\r\n") << act << own;
    EXPECT_EQ(inside({act}), "EPERM") << act;
    EXPECT_NE(outside({act}), "EPERM") << act;
  }
}

TEST_F(Terminal, TheCommandHasOneOfItsOwn) {
  EXPECT_EQ(run_in({"--pty", "--", "sh", "-c", "test -t 0 && test -t 1 && tty"}).out.substr(0, 9), "/dev/pts/");
  EXPECT_EQ(run_in({"--no-pty", "--", "tty"}).exit_code, 1);
}

// TT-04.
TEST_F(Terminal, OtherTerminalsAreNotThere) {
  const UniqueFd other(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(other.valid());
  ASSERT_EQ(::grantpt(other.get()), 0);
  ASSERT_EQ(::unlockpt(other.get()), 0);
  const std::string name = ::ptsname(other.get());  // NOLINT(concurrency-mt-unsafe): one thread
  EXPECT_EQ(inside({"write", name}), "ENOENT");
  EXPECT_EQ(outside_as_ourselves({"write", name}), "ok");
}

}  // namespace
}  // namespace belljar::test
