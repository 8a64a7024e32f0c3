// The launcher alone, with plans written by hand: what a plan says is what happens.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/error.h"
#include "kernel/cgroup_host.h"
#include "kernel/seccomp.h"
#include "kernel/small_file.h"
#include "launch/early_setup.h"
#include "launch/instrumented.h"
#include "launch/launcher.h"
#include "launch/plan.h"
#include "support/eventually.h"
#include "support/held_start.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar::launch {
namespace {

struct Outcome {
  std::string out;
  int wait_status = -1;
  Event first;
};

Plan namespaces() {
  Plan plan;
  plan.clone_flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP;
  plan.identity = Identity::kSelfMapped;
  plan.inside_uid = 1234;
  plan.inside_gid = 1234;
  plan.outside_uid = getuid();
  plan.outside_gid = getgid();
  plan.loopback_up = true;
  plan.env = {"PATH=/usr/bin:/bin"};
  return plan;
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t size = 0; (size = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(size));
  return text;
}

Event wait_event(Sandbox& sandbox, Event::Kind kind) {
  for (;;) {
    if (auto event = sandbox.next_event()) {
      if (event->kind == kind || event->kind == Event::Kind::kGone || event->kind == Event::Kind::kExecFailed) return *event;
      continue;
    }
    pollfd ready{sandbox.control_fd(), POLLIN, 0};
    if (poll(&ready, 1, 60'000) <= 0) return Event{};
  }
}

Outcome run(const Plan& plan, std::vector<std::string> argv) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  ExecRequest request;
  request.argv = std::move(argv);
  request.stdio[1] = request.stdio[2] = writer.get();
  auto sandbox = start(plan, &request);
  Outcome outcome;
  if (!sandbox) {
    ADD_FAILURE() << sandbox.error().line();
    return outcome;
  }
  writer.reset();
  outcome.out = read_all(reader.get());
  const Event end = wait_event(*sandbox, Event::Kind::kExited);
  outcome.first = end;
  outcome.wait_status = end.exit.wait_status;
  return outcome;
}

std::size_t anonymous_kib(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("RssAnon:")) return std::strtoul(line.c_str() + 8, nullptr, 10);
  }
  return 0;
}

// Inside another sandbox of ours there is nothing to start.
class Launcher : public testing::Test {
 protected:
  void SetUp() override { BELLJAR_NEEDS(user_namespaces()); }
};

TEST_F(Launcher, RunsACommandInAPidNamespaceUnderItsOwnId) {
  const Outcome outcome = run(namespaces(), {"sh", "-c", "echo $$ $(id -u) $(id -g)"});
  EXPECT_EQ(outcome.out, "3 1234 1234\n");  // 1 is init, 2 was the helper that made the network
  EXPECT_EQ(outcome.wait_status, 0);
}

TEST_F(Launcher, ReportsTheExitStatus) { EXPECT_EQ(WEXITSTATUS(run(namespaces(), {"sh", "-c", "exit 7"}).wait_status), 7); }

TEST_F(Launcher, ReportsDeathBySignal) {
  EXPECT_EQ(WTERMSIG(run(namespaces(), {"sh", "-c", "kill -KILL $$"}).wait_status), SIGKILL);
}

// As an engine's `pause` does where the freezer is that of cgroup v1: there SIGKILL waits for the thaw.
TEST_F(Launcher, ASandboxThatSomebodyFrozeEndsWithoutHim) {
  const kernel::CgroupHost host = kernel::read_cgroup_host();
  const kernel::Hierarchy* const freezer = host.find_v1(kernel::Controller::kFreezer);
  if (freezer == nullptr) GTEST_SKIP() << "needs a cgroup of v1 with a freezer";
  const std::string above = freezer->own + "/frozen-" + std::to_string(getpid()), group = above + "/below";
  if (mkdir(above.c_str(), 0755) != 0) GTEST_SKIP() << "needs a cgroup we may make";
  ASSERT_EQ(mkdir(group.c_str(), 0755), 0);
  const auto write = [](const std::string& file, const std::string& text) {
    return kernel::write_small_file(AT_FDCWD, file.c_str(), text);
  };
  for (const std::string& frozen : {std::string(), group, above}) {
    auto sandbox = start(namespaces(), nullptr);
    ASSERT_TRUE(sandbox) << sandbox.error().line();
    ASSERT_EQ(write(group + "/cgroup.procs", std::to_string(sandbox->init_pid())), 0);
    if (!frozen.empty()) {
      ASSERT_EQ(write(frozen + "/freezer.state", "FROZEN"), 0);
    }
    const UniqueFd ended(static_cast<int>(syscall(SYS_pidfd_open, sandbox->init_pid(), 0)));
    *sandbox = Sandbox();
    pollfd gone{ended.get(), POLLIN, 0};
    EXPECT_EQ(poll(&gone, 1, 0), 1) << frozen;
  }
  for (const std::string& each : {group, above}) {
    test::eventually([&] { return rmdir(each.c_str()) == 0 || errno != EBUSY; });
  }
}

TEST_F(Launcher, AMissingProgramIsExecFailedWithEnoent) {
  const Outcome outcome = run(namespaces(), {"no-such-program-here"});
  EXPECT_EQ(outcome.first.kind, Event::Kind::kExecFailed);
  EXPECT_EQ(outcome.first.errnum, ENOENT);
}

// As a shell: what lies in a directory that may not be searched was never found.
TEST_F(Launcher, ADirectoryOfThePathThatCannotBeSearchedHoldsNothing) {
  const test::TempDir closed;
  const std::string program = closed.write("program", "", 0755);
  const std::string unfit = closed.write("open/unfit", "", 0644);
  Plan plan = namespaces();
  plan.env = {"PATH=" + closed.path() + ":" + closed.path() + "/open:/usr/bin:/bin"};
  EXPECT_EQ(run(plan, {"unfit"}).first.errnum, EACCES) << "found, and not executable";
  ASSERT_EQ(::chmod(closed.path().c_str(), 0), 0);
  EXPECT_EQ(run(plan, {"no-such-program-here"}).first.errnum, ENOENT);
  EXPECT_EQ(run(plan, {"program"}).first.errnum, ENOENT);
  EXPECT_EQ(run(plan, {program}).first.errnum, EACCES) << "named with its directory";
  EXPECT_EQ(run(plan, {"true"}).wait_status, 0);
  ASSERT_EQ(::chmod(closed.path().c_str(), 0755), 0);
}

// Under the filter of `belljar learn`, which notifies every look at a path, with nobody there to answer.
Plan observed(std::vector<sock_filter> filter = kernel::build_filter({.observe = true})) {
  Plan plan = namespaces();
  plan.seccomp = std::move(filter);
  plan.seccomp_listener = true;
  return plan;
}

TEST_F(Launcher, ADirectoryThatCannotBeSearchedAsksNobody) {
  const test::TempDir closed;
  const std::string program = closed.write("program", "", 0755);
  const std::string unfit = closed.write("open/unfit", "", 0644);
  Plan plan = observed();
  plan.env = {"PATH=" + closed.path() + ":" + closed.path() + "/open:/usr/bin:/bin"};
  const auto outcome_of = [&](std::vector<std::string> argv) {
    ExecRequest request;
    request.argv = std::move(argv);
    auto sandbox = start(plan, &request);
    return sandbox ? sandbox->next_event().value_or(Event{}) : Event{};
  };
  EXPECT_EQ(outcome_of({"unfit"}).errnum, EACCES) << "found, and not executable";
  ASSERT_EQ(::chmod(closed.path().c_str(), 0), 0);
  EXPECT_EQ(outcome_of({"no-such-program-here"}).errnum, ENOENT);
  EXPECT_EQ(outcome_of({program}).errnum, EACCES) << "named with its directory";
  EXPECT_EQ(outcome_of({"true"}).kind, Event::Kind::kStarted);

  auto staying = start(plan, nullptr, {.one_shot = false});
  ASSERT_TRUE(staying) << staying.error().line();
  ExecRequest request;
  request.env = plan.env;
  request.argv = {"no-such-program-here"};
  ASSERT_TRUE(staying->exec(request));
  EXPECT_EQ(wait_event(*staying, Event::Kind::kStarted).errnum, ENOENT);
  request.argv = {"true"};
  ASSERT_TRUE(staying->exec(request));
  EXPECT_EQ(wait_event(*staying, Event::Kind::kStarted).kind, Event::Kind::kStarted);
  ASSERT_EQ(::chmod(closed.path().c_str(), 0755), 0);
}

TEST_F(Launcher, AStartThatHangsEndsWhenItIsTo) {
  const UniqueFd stop(::eventfd(1, EFD_CLOEXEC));
  const std::vector<sock_filter> hangs = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  ExecRequest request;
  request.argv = {"true"};
  const auto hung = start(observed(hangs), &request, {.stop = {-1, stop.get()}});
  ASSERT_FALSE(hung);
  EXPECT_EQ(hung.error().code(), Code::kCanceled) << hung.error().line();
  // The twin: one that ends is let end.
  auto started = start(observed(), &request, {.stop = {-1, stop.get()}});
  ASSERT_TRUE(started) << started.error().line();
  EXPECT_EQ(started->next_event()->kind, Event::Kind::kStarted);
}

// A command that ends by the first of two signals: its end must not be lost over the second.
TEST_F(Launcher, WhatInitSaysLastIsHeardThoughItLeavesSignalsUnread) {
  ExecRequest request;
  request.argv = {"true"};
  for (int i = 0; i < 200; ++i) {
    auto sandbox = start(namespaces(), &request);
    ASSERT_TRUE(sandbox) << sandbox.error().line();
    std::optional<Event> event;
    while (!event || event->kind == Event::Kind::kStarted) {
      sandbox->signal(1, SIGCONT);
      pollfd ready{sandbox->control_fd(), POLLIN, 0};
      constexpr timespec kMoment{.tv_sec = 0, .tv_nsec = 20'000};  // init, too, has to come to its turn
      ppoll(&ready, 1, &kMoment, nullptr);
      event = sandbox->next_event();
    }
    ASSERT_EQ(event->kind, Event::Kind::kExited) << "of start " << i;
  }
}

TEST_F(Launcher, AStartWithoutACommandIsNotWaitedForOnceItIsToEnd) {
  const UniqueFd stop(::eventfd(0, EFD_CLOEXEC)), stopped(::eventfd(1, EFD_CLOEXEC));
  const std::vector<sock_filter> hangs = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendmsg, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const auto hung = start(observed(hangs), nullptr, {.one_shot = false, .stop = {stopped.get(), -1}});
  ASSERT_FALSE(hung);
  EXPECT_EQ(hung.error().code(), Code::kCanceled) << hung.error().line();
  auto staying = start(observed(), nullptr, {.one_shot = false, .stop = {stop.get(), -1}});
  EXPECT_TRUE(staying) << staying.error().line();
}

// A host program that ignores SIGCHLD has its children reaped by the kernel; ours are not its children.
TEST_F(Launcher, AHostThatIgnoresItsChildrenLearnsOfTheEnd) {
  auto* const before = ::signal(SIGCHLD, SIG_IGN);
  const Outcome outcome = run(namespaces(), {"sh", "-c", "grep SigIgn /proc/self/status; exit 3"});
  Plan bare;
  bare.subreaper = true;
  bare.drop_privileges = false;
  bare.env = {"PATH=/usr/bin:/bin"};
  const Outcome without = run(bare, {"sh", "-c", "(setsid sleep 1000 &) ; exit 4"});
  ::signal(SIGCHLD, before);
  EXPECT_EQ(WEXITSTATUS(outcome.wait_status), 3);
  EXPECT_EQ(outcome.out, "SigIgn:\t0000000000000000\n") << "the command knows nothing of it";
  EXPECT_EQ(WEXITSTATUS(without.wait_status), 4);
}

TEST_F(Launcher, DaemonsDieWithTheCommandAndDoNotHoldItsOutput) {
  const Outcome outcome = run(namespaces(), {"sh", "-c", "(setsid sh -c 'trap \"\" TERM; sleep 1000' &) ; echo done"});
  EXPECT_EQ(outcome.out, "done\n");
}

TEST_F(Launcher, TheCommandHoldsNoCapabilityAndNoDescriptorAboveTwo) {
  const Outcome outcome = run(namespaces(), {"sh", "-c", "grep -h CapEff /proc/self/status; ls /proc/self/fd"});
  EXPECT_EQ(outcome.out, "CapEff:\t0000000000000000\n0\n1\n2\n3\n");  // 3 is ls reading the directory
}

TEST_F(Launcher, ASessionServesFurtherCommands) {
  Plan plan = namespaces();
  auto sandbox = start(plan, nullptr);
  ASSERT_TRUE(sandbox) << sandbox.error().line();
  for (int i = 0; i < 3; ++i) {
    ExecRequest request;
    request.argv = {"sh", "-c", "exit " + std::to_string(i)};
    const auto id = sandbox->exec(request);
    ASSERT_TRUE(id) << id.error().line();
    const Event end = wait_event(*sandbox, Event::Kind::kExited);
    EXPECT_EQ(end.exec_id, *id);
    EXPECT_EQ(WEXITSTATUS(end.exit.wait_status), i);
  }
  ExecRequest large;
  large.argv = {"sh", "-c", "exit $#", "sh"};
  large.argv.insert(large.argv.end(), 9, std::string(20000, 'x'));  // more than one inline message holds
  ASSERT_TRUE(sandbox->exec(large));
  EXPECT_EQ(WEXITSTATUS(wait_event(*sandbox, Event::Kind::kExited).exit.wait_status), 9);
}

// As an image under a sanitizer it keeps everything: the sanitizer's own records lie there.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(Launcher, APid1ThatStaysKeepsNothingOfItsMaker) {
  constexpr std::size_t kLarge = std::size_t{64} << 20;
  const std::string large(kLarge, 's');
  const Plan plan = namespaces();
  ExecRequest sleeper;
  sleeper.argv = {"sleep", "1000"};
  auto passing = start(plan, &sleeper);
  ASSERT_TRUE(passing) << passing.error().line();
  EXPECT_GT(anonymous_kib(passing->init_pid()), kLarge / 1024) << "of one command it is a plain copy";

  auto staying = start(plan, nullptr);
  ASSERT_TRUE(staying) << staying.error().line();
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]), writer(ends[1]);
  ExecRequest request;  // answered once the memory is gone
  request.argv = {"sh", "-c", "env | grep ^PATH; ls no-such-thing 2>/dev/null || sleep 0.01; kill -TERM $$"};
  request.stdio[1] = writer.get();
  ASSERT_TRUE(staying->exec(request));
  writer.reset();
  EXPECT_EQ(read_all(reader.get()), "PATH=/usr/bin:/bin\n");
  EXPECT_EQ(WTERMSIG(wait_event(*staying, Event::Kind::kExited).exit.wait_status), SIGTERM);
  EXPECT_LT(anonymous_kib(staying->init_pid()), 1024U);
  EXPECT_GT(staying->ping(), 0U);
  EXPECT_EQ(wait_event(*staying, Event::Kind::kAlive).kind, Event::Kind::kAlive);
}

// The kernel joins mappings that look alike to one: here a thread's stack, its block at the upper end, and what lies on both sides.
TEST_F(Launcher, WhatIsJoinedToAStackIsNotKeptWithIt) {
  constexpr std::size_t kLarge = std::size_t{32} << 20, kStack = std::size_t{1} << 20;
  char* const memory = static_cast<char*>(
      mmap(nullptr, 2 * kLarge + kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  std::fill_n(memory, kLarge, 's');
  std::fill_n(memory + kLarge + kStack, kLarge, 's');
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, memory + kLarge, kStack);
  std::size_t kept = 0;
  const auto make = [](void* result) -> void* {  // all of it here: the sandbox ends with the thread that made it
    auto sandbox = start(namespaces(), nullptr);
    ExecRequest request;
    request.argv = {"true"};
    if (!sandbox || !sandbox->exec(request) || wait_event(*sandbox, Event::Kind::kExited).exit.wait_status != 0) return nullptr;
    *static_cast<std::size_t*>(result) = anonymous_kib(sandbox->init_pid());
    return nullptr;
  };
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, &attributes, make, &kept), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_GT(kept, 0U);
  EXPECT_LT(kept, 1024U);
  munmap(memory, 2 * kLarge + kStack);
}
#endif

TEST_F(Launcher, WithoutNamespacesTheSubreaperSweepsTheTree) {
  Plan plan;
  plan.subreaper = true;
  plan.drop_privileges = false;
  plan.env = {"PATH=/usr/bin:/bin"};
  const Outcome outcome = run(plan, {"sh", "-c", "(setsid sleep 1000 &) ; echo done"});
  EXPECT_EQ(outcome.out, "done\n");  // returns at once: the sleeper that held the pipe is gone
}

TEST_F(Launcher, AFailingStepNamesItselfAndItsOperation) {
  Plan plan = namespaces();
  plan.mounts.push_back({.kind = MountOpKind::kCapture, .slot = 0, .source = "/does/not/exist"});
  plan.slots = 1;
  ExecRequest request;
  request.argv = {"true"};
  const auto sandbox = start(plan, &request);
  ASSERT_FALSE(sandbox);
  EXPECT_EQ(sandbox.error().call(), "tree: copy `/does/not/exist`");
  EXPECT_EQ(sandbox.error().errnum(), ENOENT);
}

enum class Kind { kRoot, kUser };

// Root's own namespaces, with the command as an id that no account has; or a user's, in a user namespace.
Plan with_stage(Kind kind) {
  Plan plan = namespaces();
  if (kind == Kind::kRoot) {
    plan.clone_flags &= ~std::uint64_t{CLONE_NEWUSER};
    plan.identity = Identity::kRootMapped;
    plan.outside_uid = plan.outside_gid = 0x70000000U;
  }
  plan.mounts.push_back({.kind = MountOpKind::kSetAttr, .flags = kRecursive, .target = "/"});
  plan.mounts.push_back({.kind = MountOpKind::kStage, .target = "/tmp", .data = std::string("mode=0755", 10)});
  plan.mounts.push_back({.kind = MountOpKind::kAwait});
  plan.stage_names = {
      {.kind = MountOpKind::kSymlink, .source = "nowhere", .target = "absent"},
      {.kind = MountOpKind::kMkdir, .mode = 0755, .target = "names"},
      {.kind = MountOpKind::kLinkNames, .source = "../absent", .target = "names", .data = std::string("a\0b\0", 4)}};
  plan.stage_rest = {{.kind = MountOpKind::kMkdir, .mode = 01777, .target = "rest"},
                     {.kind = MountOpKind::kWriteFile, .mode = 0644, .target = "file", .data = "text"}};
  return plan;
}

EarlySetupOptions early_options(const Plan& plan) {
  return {.as_user = plan.identity == Identity::kSelfMapped,
          .network = true,
          .inside_uid = plan.inside_uid,
          .outside_uid = plan.outside_uid,
          .inside_gid = plan.inside_gid,
          .outside_gid = plan.outside_gid};
}

void begin_early(Plan& plan) {
  plan.early = EarlySetup::begin(early_options(plan));
  if (kInstrumented && plan.early == nullptr) return;  // a user's
  ASSERT_NE(plan.early, nullptr);
  plan.early->make_names(std::string("mode=0755", 10), plan.stage_names);
  plan.early->make_rest(plan.stage_rest);
}

constexpr const char* kLook =
    "id -u; readlink /proc/self/ns/user; readlink /proc/self/ns/net; readlink /proc/self/ns/ipc; readlink /proc/self/ns/uts; "
    "ls /tmp /tmp/names; stat -c %a /tmp/rest; cat /tmp/file; cat /sys/class/net/lo/operstate > /dev/null; umask";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') lines.emplace_back();
    else lines.back() += c;
  }
  return lines;
}

class Early : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    if (GetParam() == Kind::kRoot && geteuid() != 0) GTEST_SKIP() << "only as root";
  }
};
INSTANTIATE_TEST_SUITE_P(As, Early, testing::Values(Kind::kRoot, Kind::kUser),
                         [](const auto& kind) { return kind.param == Kind::kRoot ? "Root" : "User"; });

TEST_P(Early, MakesWhatTheChildWouldMake) {
  const Plan alone = with_stage(GetParam());
  Plan early = with_stage(GetParam());
  begin_early(early);
  const auto by_child = lines_of(run(alone, {"sh", "-c", kLook}).out);
  const auto beforehand = lines_of(run(early, {"sh", "-c", kLook}).out);
  ASSERT_GT(by_child.size(), 10U);
  ASSERT_EQ(beforehand.size(), by_child.size());
  EXPECT_EQ(beforehand[0], "1234");
  for (std::size_t i = 1; i <= 4; ++i) EXPECT_NE(beforehand[i], by_child[i]);  // namespaces of their own
  for (std::size_t i = 5; i < by_child.size(); ++i) EXPECT_EQ(beforehand[i], by_child[i]);
}

TEST_P(Early, ServesOneSandbox) {
  Plan plan = with_stage(GetParam());
  begin_early(plan);
  // It lives while the other is looked at: the kernel gives the number of a namespace that is gone to the next one.
  const auto living = start(plan, nullptr);
  ASSERT_TRUE(living) << living.error().line();
  const auto other = lines_of(run(plan, {"sh", "-c", kLook}).out);
  ASSERT_GT(other.size(), 4U);
  std::size_t line = 1;
  for (const std::string kind : {"user", "net", "ipc", "uts"}) {
    // An ordinary user may not look at those of a process that is not dumpable.
    std::error_code refused;
    const auto name = std::filesystem::read_symlink("/proc/" + std::to_string(living->init_pid()) + "/ns/" + kind, refused);
    EXPECT_TRUE(!refused || geteuid() != 0) << refused.message();
    EXPECT_NE(other[line++], name);
  }
}

TEST_P(Early, ANameThatCannotBeHiddenFailsTheStart) {
  for (const bool beforehand : {false, true}) {
    Plan plan = with_stage(GetParam());
    plan.stage_names.push_back({.kind = MountOpKind::kMkdir, .mode = 0755, .target = "no/such/parent"});
    if (beforehand) begin_early(plan);
    ExecRequest request;
    request.argv = {"true"};
    const auto sandbox = start(plan, &request);
    ASSERT_FALSE(sandbox) << beforehand;
    EXPECT_EQ(sandbox.error().errnum(), ENOENT);
  }
}

TEST_P(Early, IsGivenUpWithoutAPlan) {
  Plan plan = with_stage(GetParam());
  plan.early = EarlySetup::begin(early_options(plan));
  ASSERT_TRUE(kInstrumented || plan.early != nullptr);
  plan.early.reset();  // returns, and leaves nothing
  plan = with_stage(GetParam());
  begin_early(plan);
}

std::string children() {
  std::ifstream file("/proc/thread-self/children");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// A user's helper is this process's child, and what it made goes with it.
TEST_P(Early, LeavesNoProcessBehind) {
  const std::string before = children();
  Plan plan = with_stage(GetParam());
  begin_early(plan);
  EXPECT_EQ(run(plan, {"true"}).wait_status, 0);
  EXPECT_EQ(children(), before);
  plan = with_stage(GetParam());
  begin_early(plan);
  plan.early.reset();
  EXPECT_EQ(children(), before);
}

// Whoever kills this process ends the sandbox, also one that is not tied to it yet: nothing stays, and no command is started.
TEST_P(Early, AFrontThatDiesBeforeTheChildIsTiedToIt) {
  using namespace std::chrono_literals;
  for (const bool beforehand : {false, true}) {
    for (const bool killed : {false, true}) {  // the twin first
      int ends[2];
      ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
      const UniqueFd reader(ends[0]);
      UniqueFd writer(ends[1]);
      test::HeldStart front(
          [&] {
            Plan plan = with_stage(GetParam());
            // Not made yet when the child is: it waits for them.
            for (int i = 0; i < 20'000; ++i)
              plan.stage_names.push_back({.kind = MountOpKind::kMkdir, .mode = 0755, .target = "n" + std::to_string(i)});
            if (beforehand) begin_early(plan);
            ExecRequest request;
            request.argv = {"echo", "started"};
            request.stdio[1] = writer.get();
            auto sandbox = start(plan, &request);
            return sandbox && wait_event(*sandbox, Event::Kind::kExited).kind == Event::Kind::kExited ? 0 : 1;
          },
          test::HeldStart::At::kParentDeath);
      writer.reset();
      ASSERT_TRUE(front.await_sandbox()) << beforehand;
      if (killed) {
        front.send(SIGKILL);
        EXPECT_EQ(front.wait(), -SIGKILL);
      }
      ASSERT_TRUE(front.let_all_go_on(30s)) << beforehand << killed;
      EXPECT_EQ(read_all(reader.get()), killed ? "" : "started\n") << beforehand;
    }
  }
}

// What the plan says of the child alone holds there as well: its group, its end with its parent.
TEST_P(Early, TheChildIsOurs) {
  Plan plan = with_stage(GetParam());
  begin_early(plan);
  const auto sandbox = start(plan, nullptr);
  ASSERT_TRUE(sandbox) << sandbox.error().line();
  std::ifstream file("/proc/" + std::to_string(sandbox->init_pid()) + "/status");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("PPid:")) {
  }
  EXPECT_EQ(line, "PPid:\t" + std::to_string(getpid()));
}

class EarlyAsUser : public testing::Test {
 protected:
  void SetUp() override { BELLJAR_NEEDS(user_namespaces()); }
};

// Killed, or stopped so that it never answers: the child makes all of it itself.
TEST_F(EarlyAsUser, AWorkerThatOthersEndIsDoneWithout) {
  if (kInstrumented) GTEST_SKIP() << "a sanitizer has none";
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const std::string before = children();
    Plan plan = with_stage(Kind::kUser);
    begin_early(plan);
    const std::string with_worker = children();  // the youngest is the last
    ASSERT_TRUE(with_worker.starts_with(before)) << before << "; " << with_worker;
    const pid_t worker = static_cast<pid_t>(std::stol(with_worker.substr(before.size())));
    ASSERT_EQ(kill(worker, signal), 0);
    const auto lines = lines_of(run(plan, {"sh", "-c", kLook}).out);
    EXPECT_GT(lines.size(), 10U) << signal;
    EXPECT_EQ(children(), before) << signal;
  }
}

// One in the group of this process, which is not waited for and keeps its status.
TEST_F(EarlyAsUser, OtherChildrenAreLeftToThoseWhoseTheyAre) {
  const pid_t other = fork();
  if (other == 0) {
    pause();
    _exit(0);
  }
  Plan plan = with_stage(Kind::kUser);
  begin_early(plan);
  EXPECT_EQ(run(plan, {"true"}).wait_status, 0);
  EXPECT_EQ(kill(other, SIGKILL), 0);
  int status = 0;
  EXPECT_EQ(waitpid(other, &status, 0), other);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

// Where children go to another pid namespace, it is the first process there and none of ours.
TEST_F(EarlyAsUser, AWorkerInAnotherPidNamespaceIsNotUsed) {
  if (kInstrumented) GTEST_SKIP() << "a sanitizer has none";
  const pid_t apart = fork();
  if (apart == 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) _exit(2);
    EarlySetupOptions options{.as_user = true};
    options.inside_uid = options.outside_uid = geteuid();
    options.inside_gid = options.outside_gid = getegid();
    auto early = EarlySetup::begin(options);
    _exit(early == nullptr || !early->take().entered ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(apart, &status, 0), apart);
  EXPECT_EQ(status, 0);
}

// Ids that may not be mapped: nothing made beforehand is used, and the start says what it always says.
TEST_F(EarlyAsUser, WhatItCannotMakeTheChildSays) {
  Plan plan = with_stage(Kind::kUser);
  plan.outside_uid = geteuid() + 1;
  begin_early(plan);
  ExecRequest request;
  request.argv = {"true"};
  const auto sandbox = start(plan, &request);
  ASSERT_FALSE(sandbox);
  EXPECT_EQ(sandbox.error().call(), "id_map");
  EXPECT_EQ(sandbox.error().errnum(), EPERM);
}

}  // namespace
}  // namespace belljar::launch
