// Calls that ordinary programs do not need and exploits do (research: KS-01 to KS-09).
#include <sys/socket.h>

#include <string>

#include "escape/support_attack.h"
#include "support/identity.h"

namespace belljar::test {
namespace {

struct KernelSurface : Attack {
  // Refused inside; outside the kernel (or whoever runs the tests) allows it or gives a different answer.
  void expect_refused(const std::vector<std::string>& act, const std::string& answer) {
    EXPECT_EQ(inside(act), answer) << act[0];
    if (outside_in_namespaces(act) == answer) unproved_ += act[0] + " ";
  }
  std::string unproved_;  // refused to this user anyway
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
  // These three ask for privilege over the host (or a sysctl that grants it to all): the test as root has the twin.
  for (const std::string_view host : {"bpf ", "perf ", "kmsg "}) {
    const auto at = unproved_.find(host);
    if (!is_root() && at != std::string::npos) unproved_.erase(at, host.size());
  }
  EXPECT_EQ(unproved_, "");
}

// btrfs and bcachefs make whole directories by ioctl, a snapshot with any content: no call on names is seen.
TEST_F(KernelSurface, SubvolumesAreNotMadeByIoctl) {
  EXPECT_EQ(inside({"subvolume"}), "EPERM");
  EXPECT_NE(outside({"subvolume"}), "EPERM");
}

// The keys of encrypted directories hang on the host's file system: taking the user's away would lock them for everybody.
TEST_F(KernelSurface, KeysOfFileSystemsAreOutOfReach) {
  EXPECT_EQ(inside({"file_system_key"}), "EPERM");
  EXPECT_NE(outside({"file_system_key"}), "EPERM");  // what the file system says: it has none, or no keys at all
}

TEST_F(KernelSurface, SocketFamiliesAreFew) {
  for (const char* family :
       {"38" /* ALG, CVE-2026-31431 */, "40" /* VSOCK */, "33" /* RXRPC */, "31" /* BLUETOOTH */, "29" /* CAN */}) {
    EXPECT_NE(inside({"socket", family, "5"}), "ok") << family;
    EXPECT_NE(inside({"socket", family, "1"}), "ok") << family;
  }
  EXPECT_NE(inside({"socket", "17", "3"}), "ok");  // AF_PACKET
  EXPECT_NE(inside({"socket", "2", "3"}), "ok");   // raw
  EXPECT_EQ(outside_in_namespaces({"socket", "17", "3"}), "ok");
  for (const char* protocol : {"6" /* XFRM */, "9" /* AUDIT */, "12" /* NETFILTER */, "15" /* UEVENT */, "16" /* GENERIC */}) {
    EXPECT_NE(inside({"netlink", protocol}), "ok") << protocol;
  }
  for (const char* protocol : {"15", "16"}) EXPECT_EQ(outside({"netlink", protocol}), "ok") << protocol;
  EXPECT_EQ(inside({"netlink", "0"}), "ok");
  for (const char* family : {"1", "2", "10"}) EXPECT_EQ(inside({"socket", family, "1"}), "ok") << family;
}

#ifdef __x86_64__
// KS-05: the numbers of another ABI mean other calls.
TEST_F(KernelSurface, ForeignAbisAreKilled) {
  // Where the kernel takes no 32-bit calls (ia32_emulation=0; guests of TDX and SEV) the instruction is a fault for everybody.
  const std::string without_us = outside({"int80"});
  EXPECT_EQ(inside({"int80"}), without_us == "signal 11" ? "signal 11" : "signal 31");
  EXPECT_NE(without_us, "signal 31");
  EXPECT_EQ(inside({"x32"}), "signal 31");
  EXPECT_NE(outside({"x32"}), "signal 31");
}
#endif

}  // namespace
}  // namespace belljar::test
