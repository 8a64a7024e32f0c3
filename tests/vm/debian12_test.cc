// Debian 12's own kernel, 6.1: cgroup v2 with controllers, Landlock ABI 2, AppArmor, no rule on user namespaces.
#include "support_guest.h"

namespace belljar::vm {
namespace {

struct Debian12 : Suite {
  static void SetUpTestSuite() { boot({.kernel = "6.1"}); }
};

// --- the guest is what these tests take it for ---------------------------------------------------------------------------------

VM_CASE(Debian12, HasLandlockAbi2,
        {.as = As::kUser, .script = "python3 -c 'import ctypes; print(ctypes.CDLL(None).syscall(444, 0, 0, 1))'"}) {
  EXPECT_EQ(outcome.out, "2\n") << outcome;
}

VM_CASE(Debian12, HasAppArmor, {.script = "cat /sys/kernel/security/lsm /sys/module/apparmor/parameters/enabled"}) {
  EXPECT_NE(outcome.out.find("apparmor"), std::string::npos) << outcome;
  EXPECT_NE(outcome.out.find("Y\n"), std::string::npos) << outcome;
}

VM_CASE(Debian12, DelegatesCgroupsToTheUser,
        {.as = As::kUser,
         .script = "cd /sys/fs/cgroup$(sed s/^0:://g /proc/self/cgroup) && cat cgroup.controllers && mkdir x && rmdir x"}) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "cpu memory pids\n") << outcome;
}

VM_CASE(Debian12, DelegatesNothingOutsideASession,
        {.as = As::kUser, .script = "mkdir /sys/fs/cgroup$(sed s/^0:://g /proc/self/cgroup)/x", .cgroup = Cgroup::kSystem}) {
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
}

VM_CASE(Debian12, AUserMayMakeUserNamespaces, {.as = As::kUser, .script = "unshare --user --map-root-user id -u"}) {
  EXPECT_EQ(outcome.out, "0\n") << outcome;
}

VM_CASE(Debian12, ASysctlMayForbidUserNamespaces,
        {.as = As::kUser, .script = "unshare --user true", .sysctl = {{"kernel.unprivileged_userns_clone", "0"}}}) {
  EXPECT_NE(outcome.err.find("Operation not permitted"), std::string::npos) << outcome;
}

VM_CASE(Debian12, ASysctlMayLimitUserNamespacesToNone,
        {.as = As::kUser, .script = "unshare --user true", .sysctl = {{"user.max_user_namespaces", "0"}}}) {
  EXPECT_NE(outcome.err.find("No space left on device"), std::string::npos) << outcome;
}

// Ubuntu's rule is a patch of Ubuntu's kernel. What it does to a program, AppArmor does here by a profile: the namespace is made,
// and there are no capabilities in it.
VM_CASE(Debian12, AProfileMayTakeTheCapabilitiesInsideAUserNamespace,
        {.as = As::kUser,
         .script = "unshare --user --map-root-user true",
         .before = R"(cat >/etc/userns-profile <<'END'
abi <abi/3.0>,
profile userns-without-capabilities /usr/bin/unshare flags=(attach_disconnected) {
  file,
  /** ix,
  network, signal, ptrace, unix, mount, remount, umount, pivot_root,
  deny capability,
}
END
apparmor_parser --replace /etc/userns-profile)",
         .after = "apparmor_parser --remove /etc/userns-profile"}) {
  EXPECT_EQ(outcome.err, "unshare: write failed /proc/self/uid_map: Operation not permitted\n") << "Ubuntu 24.04's own words";
}

}  // namespace
}  // namespace belljar::vm
