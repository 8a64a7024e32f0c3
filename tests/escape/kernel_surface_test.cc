// Calls that ordinary programs do not need and exploits do (research: KS-01 to KS-09).
#include <sys/socket.h>

#include "escape/support_attack.h"
#include "support/identity.h"

namespace belljar::test {
namespace {

struct KernelSurface : Attack {
  // Refused inside; outside the kernel (or whoever runs the tests) allows it or gives a different answer.
  void expect_refused(const std::vector<std::string>& act, const std::string& answer) {
    EXPECT_EQ(inside(act), answer) << act[0];
    const std::string free = outside_as_ourselves(act);
    if (free == answer) unproved_ += act[0] + " ";
  }
  std::string unproved_;  // refused to this user anyway: the test as root has the twin
};

TEST_F(KernelSurface, CallsOfExploitsAreRefused) {
  expect_refused({"io_uring"}, "ENOSYS");
  expect_refused({"bpf"}, "EPERM");
  expect_refused({"perf"}, "EPERM");
  expect_refused({"userfaultfd"}, "EPERM");
  expect_refused({"keyctl"}, "ENOSYS");
  expect_refused({"add_key"}, "ENOSYS");
  expect_refused({"kmsg"}, "EPERM");
  expect_refused({"sethostname"}, "EPERM");
  if (is_root()) {
    EXPECT_EQ(unproved_, "");
  }
}

TEST_F(KernelSurface, SocketFamiliesAreFew) {
  for (const char* family :
       {"38" /* ALG, CVE-2026-31431 */, "40" /* VSOCK */, "33" /* RXRPC */, "31" /* BLUETOOTH */, "29" /* CAN */}) {
    EXPECT_NE(inside({"socket", family, "5"}), "ok") << family;
    EXPECT_NE(inside({"socket", family, "1"}), "ok") << family;
  }
  EXPECT_NE(inside({"socket", "17", "3"}), "ok");  // AF_PACKET
  EXPECT_NE(inside({"socket", "2", "3"}), "ok");   // raw
  if (is_root()) {
    EXPECT_EQ(outside_as_ourselves({"socket", "17", "3"}), "ok");
  }
  for (const char* protocol : {"6" /* XFRM */, "9" /* AUDIT */, "12" /* NETFILTER */, "15" /* UEVENT */, "16" /* GENERIC */}) {
    EXPECT_NE(inside({"netlink", protocol}), "ok") << protocol;
  }
  EXPECT_EQ(outside({"netlink", "16"}), "ok");
  EXPECT_EQ(inside({"netlink", "0"}), "ok");
  for (const char* family : {"1", "2", "10"}) EXPECT_EQ(inside({"socket", family, "1"}), "ok") << family;
}

#ifdef __x86_64__
// KS-05: the numbers of another ABI mean other calls.
TEST_F(KernelSurface, ForeignAbisAreKilled) {
  EXPECT_EQ(inside({"int80"}), "signal 31");
  EXPECT_EQ(inside({"x32"}), "signal 31");
  EXPECT_NE(outside({"int80"}), "signal 31");
  EXPECT_NE(outside({"x32"}), "signal 31");
}
#endif

}  // namespace
}  // namespace belljar::test
