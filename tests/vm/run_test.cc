// `belljar run` on Debian 12's own kernel: Landlock ABI 2, cgroup v2 with controllers, overlays in a user namespace of 6.1. Each
// script runs as root and as an ordinary user, and a twin shows that what is refused works where it is allowed.
#include "support/has.h"
#include "support_guest.h"

namespace belljar::vm {
namespace {

using test::has;

struct Run : Suite {
  static void SetUpTestSuite() { boot({.kernel = "6.1"}); }
};

#define VM_CASE_AS_BOTH(name, ...)                                                               \
  static void name##_both(const Outcome& outcome);                                               \
  VM_CASE(Run, name##AsRoot, {.as = As::kRoot, .script = __VA_ARGS__}) { name##_both(outcome); } \
  VM_CASE(Run, name##AsUser, {.as = As::kUser, .script = __VA_ARGS__}) { name##_both(outcome); } \
  static void name##_both(const Outcome& outcome)

VM_CASE_AS_BOTH(TrueStarts, "belljar run -- true") {
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.err, "") << outcome;
}

VM_CASE_AS_BOTH(OnlyTheWorkspaceIsWritten, R"(
  mkdir ~/beside
  belljar run -c 'echo in >inside; echo out >~/beside/file'; echo "refused $?"
  cat inside; ls ~/beside
  belljar run --write ~/beside -c 'echo out >~/beside/file'; echo "allowed $?"
  cat ~/beside/file; stat -c %u inside | sed "s/^$(id -u)$/mine/"
  rm -r ~/beside)") {
  EXPECT_EQ(outcome.out, "refused 2\nin\nallowed 0\nout\nmine\n") << outcome;
  EXPECT_TRUE(has(outcome.err, "Read-only file system")) << outcome;
}

// The masks are overlays made in a user namespace: for names that are there and names that are not.
VM_CASE_AS_BOTH(SecretsAnswerEacces, R"(
  mkdir ~/.ssh; echo secret >~/.ssh/id; cat ~/.ssh/id
  belljar run -c 'cat ~/.ssh/id; ls ~/.ssh; echo x >~/.ssh/new; cat ~/.aws/credentials; mkdir ~/.aws' 2>&1
  rm -r ~/.ssh; ls -d ~/.aws 2>&1)") {
  EXPECT_TRUE(outcome.out.starts_with("secret\n")) << outcome;
  EXPECT_FALSE(has(outcome.out.substr(1), "\nsecret")) << outcome;
  EXPECT_TRUE(has(outcome.out, ".ssh/id: Permission denied")) << outcome;
  EXPECT_TRUE(has(outcome.out, "open directory")) << outcome;
  EXPECT_TRUE(has(outcome.out, ".ssh/new: Permission denied")) << outcome;
  EXPECT_TRUE(has(outcome.out, ".aws/credentials: Permission denied")) << outcome;
}

VM_CASE_AS_BOTH(CacheWritesAreDiscarded, R"(
  mkdir -p ~/.cache; echo old >~/.cache/old
  belljar run -c 'cat ~/.cache/old; echo new >~/.cache/new && cat ~/.cache/new'
  ls ~/.cache; rm ~/.cache/old)") {
  EXPECT_EQ(outcome.out, "old\nnew\nold\n") << outcome;
}

// Calls that the broker performs do not pass Landlock, hence `partial`.
VM_CASE_AS_BOTH(TheReportNamesLandlockAbi2, "belljar run --json -- true; belljar doctor | grep -A1 -e overlayfs -e ' Landlock '") {
  EXPECT_TRUE(has(outcome.out, R"("mechanism":"Landlock, ABI 2","enforced":"partial")")) << outcome;
  EXPECT_TRUE(has(outcome.out, "masks and cache layers")) << outcome;
  EXPECT_TRUE(has(outcome.out, "truncate, TCP bind and scope rules")) << outcome;
  EXPECT_TRUE(has(outcome.out,
                  R"("clause":"protect.absent","asked":"control names that do not exist yet","mechanism":"broker: the call is )"
                  R"(performed outside, by name at any depth","enforced":"full")"))
      << outcome;
}

VM_CASE_AS_BOTH(MemoryIsHeldAndNamed, R"(
  belljar run --json --memory 64MiB -- python3 -c 'x = bytearray(200 << 20)'; echo "refused $?"
  belljar run --json --memory 512MiB -- python3 -c 'x = bytearray(200 << 20)'; echo "allowed $?")") {
  EXPECT_TRUE(has(outcome.out, R"("reason":"memory")")) << outcome;
  EXPECT_TRUE(has(outcome.out, R"("limits_hit":["memory"])")) << outcome;
  EXPECT_TRUE(has(outcome.out, R"("mechanism":"cgroup v2 memory.max","enforced":"full")")) << outcome;
  EXPECT_TRUE(has(outcome.out, "refused 137\n")) << outcome;
  EXPECT_TRUE(has(outcome.out, "allowed 0\n")) << outcome;
}

VM_CASE_AS_BOTH(PidsAreHeldAndNamed, R"(
  belljar run --json --pids 10 -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1 & done; wait'; echo "refused $?"
  belljar run --json --pids 40 -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.1 & done; wait'; echo "allowed $?")") {
  EXPECT_TRUE(has(outcome.out, R"("limits_hit":["pids"])")) << outcome;
  EXPECT_TRUE(has(outcome.out, R"("mechanism":"cgroup v2 pids.max","enforced":"full")")) << outcome;
  EXPECT_TRUE(has(outcome.out, "Cannot fork")) << outcome;
  EXPECT_TRUE(has(outcome.out, "allowed 0\n")) << outcome;
  EXPECT_TRUE(has(outcome.out, R"("limits_hit":[])")) << outcome;
}

VM_CASE_AS_BOTH(CpusAreACgroupQuota, R"(
  belljar run --json --cpus 0.5 -c 'echo ready >ready; while [ ! -e seen ]; do sleep 0.1; done' >result & front=$!
  while [ ! -e ready ]; do sleep 0.1; done
  find /sys/fs/cgroup -path '*/belljar.*/cpu.max' -exec cat {} +; touch seen; wait $front; cat result)") {
  EXPECT_TRUE(outcome.out.starts_with("50000 100000\n")) << outcome;
  EXPECT_TRUE(has(outcome.out, R"("mechanism":"cgroup v2 cpu.max","enforced":"full")")) << outcome;
}

VM_CASE_AS_BOTH(TheTreeIsBornInItsCgroup, "strace -o log -e trace=clone3 belljar run --memory 256MiB -- true; cat log") {
  EXPECT_TRUE(has(outcome.out, "CLONE_INTO_CGROUP")) << outcome;
}

// Alone in its group, belljar steps into a leaf to hand controllers down. The leaf must go too.
VM_CASE_AS_BOTH(ALoneProcessLeavesNoLeaf, "exec belljar run --json --memory 256MiB -- true") {
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(has(outcome.out, R"("mechanism":"cgroup v2 memory.max","enforced":"full")")) << outcome;
}

// That nothing is left is asserted for every case; here there is something that would stay.
VM_CASE_AS_BOTH(ATimeoutEndsDaemonsToo, R"(
  belljar run --json --timeout 2s -c 'setsid sh -c "trap : TERM; touch up; while :; do sleep 300; done" & sleep 300'
  echo "exit $?"; ls up; ps -eo comm | grep -c '^sleep')") {
  EXPECT_TRUE(has(outcome.out, R"("reason":"timeout")")) << outcome;
  EXPECT_TRUE(has(outcome.out, "exit 124\nup\n0\n")) << outcome;
}

VM_CASE_AS_BOTH(AKilledFrontTakesTheTreeAlong, R"(
  belljar run --memory 256MiB -c 'setsid sleep 300 & touch up; sleep 300' & front=$!
  while [ ! -e up ]; do sleep 0.1; done
  kill -KILL $front; wait $front; sleep 0.5; ps -eo args | grep -c '^sleep 300'
  belljar run --memory 256MiB -- true; true # sweeps the group that a killed process cannot remove)") {
  EXPECT_EQ(outcome.out, "0\n") << outcome;
}

// --- user namespaces refused ---------------------------------------------------------------------------------------------------

void judge_refusal(const Outcome& outcome, std::string_view setting) {
  EXPECT_TRUE(has(outcome.out, "run 125\n")) << outcome;
  EXPECT_TRUE(has(outcome.err, "belljar: cannot create a user namespace: ")) << outcome;
  EXPECT_TRUE(has(outcome.err, "\n  reason: ")) << outcome;
  EXPECT_TRUE(has(outcome.err, "\n  next:   ")) << outcome;
  EXPECT_TRUE(has(outcome.err, setting)) << outcome;
  EXPECT_TRUE(has(outcome.err, "--backend landlock")) << outcome;
  EXPECT_TRUE(has(outcome.out, "Why user namespaces are refused: ")) << outcome;
  EXPECT_TRUE(has(outcome.out, "sudo sysctl ")) << outcome;
  EXPECT_TRUE(has(outcome.out, "workspace-write (native backend): cannot start here")) << outcome;
  EXPECT_TRUE(has(outcome.out, "workspace-write (landlock backend)\n")) << outcome;
  EXPECT_TRUE(has(outcome.out, "doctor 125\n")) << outcome;
}

constexpr const char* kRefused = "belljar run -- true; echo \"run $?\"; belljar doctor; echo \"doctor $?\"";

VM_CASE(Run, UsernsCloneOffIsSaid, {.as = As::kUser, .script = kRefused, .sysctl = {{"kernel.unprivileged_userns_clone", "0"}}}) {
  judge_refusal(outcome, "unprivileged_userns_clone");
}

VM_CASE(Run, NoUserNamespacesLeftIsSaid, {.as = As::kUser, .script = kRefused, .sysctl = {{"user.max_user_namespaces", "0"}}}) {
  judge_refusal(outcome, "max_user_namespaces");
}

VM_CASE(Run, LandlockIsTheSecondTier,
        {.as = As::kUser,
         .script = R"(
  mkdir ~/.ssh; echo secret >~/.ssh/id
  belljar run --backend landlock -c 'echo in >inside; cat inside; cat ~/.ssh/id; touch ~/out'; echo "run $?"
  cat ~/.ssh/id; rm -r ~/.ssh; ls ~/out
  for clause in filesystem.tmp processes kill filesystem.secrets protect.nested; do
    belljar run --backend landlock --require $clause -- true; echo "$clause $?"
  done
  belljar run --backend landlock --require seccomp -- true; echo "seccomp $?")",
         .sysctl = {{"user.max_user_namespaces", "0"}}}) {
  EXPECT_EQ(outcome.out,
            "in\nrun 1\nsecret\nfilesystem.tmp 125\nprocesses 125\nkill 125\nfilesystem.secrets 0\nprotect.nested 0\nseccomp 0\n")
      << outcome;
  EXPECT_TRUE(has(outcome.err, ".ssh/id: Permission denied")) << outcome;
  EXPECT_TRUE(has(outcome.err, "'/home/agent/out': Read-only file system")) << outcome;
  for (const char* clause : {"filesystem.tmp", "processes", "kill"}) EXPECT_TRUE(has(outcome.err, clause)) << outcome;
}

VM_CASE(Run, WhatNothingHoldsIsRefusedUnlessAccepted,
        {.as = As::kUser,
         .script = R"(
  belljar run --backend landlock --cpus 0.5 -- true; echo "refused $?"
  belljar run --backend landlock --cpus 0.5 --accept limits.cpus -- true; echo "accepted $?")",
         .sysctl = {{"user.max_user_namespaces", "0"}},
         .cgroup = Cgroup::kSystem}) {
  EXPECT_EQ(outcome.out, "refused 125\naccepted 0\n") << outcome;
  EXPECT_TRUE(has(outcome.err, "limits.cpus cannot be enforced on this machine")) << outcome;
  EXPECT_TRUE(has(outcome.err, "warning: limits.cpus is none, as accepted")) << outcome;
}

// As the user nothing changes; as root it does, and `--undo` takes back what can be taken back.
VM_CASE(Run, SetupLetsBelljarMakeUserNamespaces,
        {.script = R"sh(
  as_user() { setpriv --reuid agent --regid agent --clear-groups -- env HOME=/tmp "$@"; }
  w=$(mktemp -d) && chown agent "$w" && cd "$w"
  as_user belljar run -c 'echo ran' 2>said; echo "before $?"; grep -q unprivileged_userns_clone said && rm said && echo named
  as_user belljar setup >/dev/null 2>user; echo "user $? $(grep -c 'sudo /' user)"; rm user
  belljar setup --dry-run >/dev/null; echo "dry $? $(ls /etc/sysctl.d/90-belljar-kernel.unprivileged_userns_clone.conf 2>/dev/null)"
  belljar setup >/dev/null; echo "setup $? $(tail -n 1 /etc/sysctl.d/90-belljar-kernel.unprivileged_userns_clone.conf)"
  as_user belljar run -c 'echo ran'; echo "after $?"
  belljar setup; echo "again $?"
  belljar setup --undo; echo "undo $? $(ls /etc/sysctl.d/90-belljar-kernel.unprivileged_userns_clone.conf 2>/dev/null)"
  echo kernel.sysrq=0 >/etc/sysctl.d/90-belljar-kernel.unprivileged_userns_clone.conf; sysctl -q kernel.unprivileged_userns_clone=0 2>/dev/null ||
    echo 0 >/proc/sys/kernel/unprivileged_userns_clone
  belljar setup >/dev/null; echo "foreign $? $(cat /etc/sysctl.d/90-belljar-kernel.unprivileged_userns_clone.conf)"; belljar setup --undo
  rm -r /etc/sysctl.d/90-belljar-kernel.unprivileged_userns_clone.conf "$w")sh",
         .sysctl = {{"kernel.unprivileged_userns_clone", "0"}}}) {
  EXPECT_EQ(outcome.out, R"(before 125
named
user 125 1
dry 0 
setup 0 kernel.unprivileged_userns_clone=1
ran
after 0
Nothing to set up: this machine lets its users make user namespaces.
again 0
Removing /etc/sysctl.d/90-belljar-kernel.unprivileged_userns_clone.conf.
What the kernel was told stays until the machine starts again.
undo 0 
foreign 125 kernel.sysrq=0
Nothing to undo.
)") << outcome;
}

// What Ubuntu's rule does to a program, by a profile (docs/design/vm.md).
VM_CASE(Run, AnAppArmorProfileIsNamedByDoctor,
        {.as = As::kUser,
         .script = kRefused,
         .before = R"(cat >/etc/belljar-profile <<'END'
abi <abi/3.0>,
profile belljar-without-capabilities /usr/local/bin/belljar flags=(attach_disconnected) {
  file,
  /** ix,
  network, signal, ptrace, unix, mount, remount, umount, pivot_root,
  deny capability,
}
END
apparmor_parser --replace /etc/belljar-profile)",
         .after = "apparmor_parser --remove /etc/belljar-profile"}) {
  EXPECT_TRUE(has(outcome.out, "run 125\n")) << outcome;
  EXPECT_TRUE(has(outcome.out, "doctor 125\n")) << outcome;
  EXPECT_TRUE(has(outcome.out, "belljar-without-capabilities")) << outcome;
}

}  // namespace
}  // namespace belljar::vm
