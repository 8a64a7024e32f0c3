// The container backend with a real engine: what its containers hold, how they live and end, what is said when something is
// missing.
#include "belljar/container.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/events.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"
#include "support/as_user.h"
#include "support/engine.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/in_a_child.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class ContainerBackend : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(start_engine(engine_, kind()));
    work_ = std::make_unique<test::TempDir>();
    work_->give_to(test::user_uid(), test::user_gid());
    config_.backend = "container";
    config_.workspace = work_->path();
    config_.caller_env = {{"PATH", "/host/bin"}, {"HOME", "/host/home"}, {"LANG", "C.UTF-8"}};
    config_.container = {.engine = engine_->address(), .image = test::Engine::image(), .pull = PullPolicy::kNever};
  }
  void TearDown() override {
    if (engine_ != nullptr) {
      EXPECT_TRUE(engine_->containers().empty());
    }
  }

  virtual test::EngineKind kind() const { return test::EngineKind::kDocker; }
  std::shared_ptr<Sandbox> make() {
    auto sandbox = make_sandbox(config_);
    if (!sandbox) ADD_FAILURE() << sandbox.error().line();
    return sandbox ? *sandbox : nullptr;
  }
  std::shared_ptr<Sandbox> start() {
    auto sandbox = make();
    const auto started = sandbox->start();
    EXPECT_TRUE(started) << started.error().line();
    return sandbox;
  }
  Error refusal() {
    auto sandbox = make_sandbox(config_);
    if (!sandbox) return sandbox.error();
    const auto started = (*sandbox)->start();
    return started ? Error(Code::kUnknown, "it was started") : started.error();
  }
  static std::string out(Sandbox& sandbox, const std::string& text) {
    auto result = sandbox.exec(text);
    EXPECT_TRUE(result) << result.error().line();
    return result ? result->out.bytes + result->err.bytes : "";
  }
  static std::string clause(Sandbox& sandbox, const std::string& name) {
    for (const EnforcementClause& found : sandbox.enforcement()) {
      if (found.clause == name) return std::string(to_string(found.enforced));
    }
    return "absent";
  }

  std::unique_ptr<test::Engine> engine_;
  std::unique_ptr<test::TempDir> work_;
  SandboxConfig config_;
};

TEST_F(ContainerBackend, AForkedChildsCopyEndsNothing) {
  auto sandbox = start();
  ASSERT_TRUE(sandbox->write_file("here", "1"));
  auto process = sandbox->spawn(shell_command("read line; exit 7"), {.input = SpawnInput::kPipe}).value();
  auto left = sandbox->spawn(shell_command("sleep 100")).value();
  ASSERT_TRUE(left->detach());
  const int code = test::in_a_child([&] {
    using test::is_refused;
    if (!is_refused(sandbox->exec("true", {.timeout = 1s})) || !is_refused(sandbox->read_file("here"))) return 1;
    if (!is_refused(sandbox->stop()) || !is_refused(sandbox->start()) || !is_refused(sandbox->health())) return 2;
    if (!is_refused(process->wait(1s)) || !is_refused(process->signal(SIGKILL)) || !is_refused(process->close_stdin())) return 3;
    if (!sandbox->enforcement().empty()) return 4;
    process.reset();
    left.reset();
    sandbox.reset();
    return 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(engine_->containers().size(), 1U) << "the child ended it";
  EXPECT_EQ(out(*sandbox, "cat here"), "1");
  EXPECT_TRUE(process->write_stdin("x\n"));
  const auto ended = process->wait(60s);
  ASSERT_TRUE(ended && *ended);
  EXPECT_EQ((*ended)->exit_code, 7) << "the child ended it";
  EXPECT_TRUE(sandbox->stop()) << "the twin: the parent may";
}

// Mounts that are there before the engine is: it has a mount namespace of its own.
class Mounted {
 public:
  explicit Mounted(std::string at) : at_(std::move(at)) {
    fs::create_directories(at_);
    const std::string options = "mode=777,uid=" + std::to_string(test::user_uid());
    done_ = ::mount("tmpfs", at_.c_str(), "tmpfs", 0, options.c_str()) == 0;
  }
  ~Mounted() {
    if (done_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  bool done() const noexcept { return done_; }

 private:
  std::string at_;
  bool done_ = false;
};

class ContainerMounts : public ContainerBackend {
 protected:
  void SetUp() override {
    if (!test::is_root()) GTEST_SKIP() << "only as root";
    for (const std::string& at : {data_ / "sub", data_ / "closed/sub", volume_ / "sub", project_ / "mnt", project_ / ".git/mnt"}) {
      mounts_.push_back(std::make_unique<Mounted>(at));
      if (!mounts_.back()->done()) GTEST_SKIP() << "needs mount(2)";
    }
    project_.give_to(test::user_uid(), test::user_gid());
    ContainerBackend::SetUp();
    config_.workspace = project_.path();
  }
  static bool writes(Sandbox& sandbox, const std::string& path) {
    return out(sandbox, "echo x 2>/dev/null > " + path + " && echo written").find("written") != std::string::npos;
  }

  const test::TempDir data_, volume_, project_;
  std::vector<std::unique_ptr<Mounted>> mounts_;
};

TEST_F(ContainerMounts, WhatIsMountedBelowWhatIsReadOnlyIsReadOnlyToo) {
  config_.policy.filesystem.entries = {{.path = data_.path(), .access = Access::kRead},
                                       {.path = data_ / "closed", .access = Access::kNone}};
  config_.policy.filesystem.volumes = {{.source = volume_.path(), .target = "/data", .readonly = true}};
  const auto sandbox = start();
  EXPECT_FALSE(writes(*sandbox, data_ / "sub/f"));
  EXPECT_FALSE(writes(*sandbox, "/data/sub/f"));
  EXPECT_FALSE(writes(*sandbox, project_ / ".git/mnt/f"));
  EXPECT_NE(out(*sandbox, "ls " + (data_ / "closed/sub")).find("denied"), std::string::npos);
  EXPECT_EQ(out(*sandbox, "grep -c ' " + (data_ / "sub") + " tmpfs ro' /proc/mounts"), "1\n") << "it is there";
  EXPECT_TRUE(writes(*sandbox, project_ / "mnt/f")) << "the twin";
}

TEST_F(ContainerMounts, AReadOnlyWorkspaceIsSoBelowItsMounts) {
  config_.policy.mode = Mode::kReadOnly;
  const auto sandbox = start();
  EXPECT_FALSE(writes(*sandbox, project_ / "mnt/f"));
  EXPECT_FALSE(writes(*sandbox, project_ / "f"));
}

TEST_F(ContainerBackend, TheLimitOfProcessesIsTheCommands) {
  config_.policy.limits.pids = 1;
  const auto sandbox = start();
  EXPECT_EQ(out(*sandbox, "echo one"), "one\n");
  EXPECT_NE(out(*sandbox, "sleep 0 | sleep 0; echo two").find("fork"), std::string::npos);
}

// The engine follows a path when it mounts it: a link that a command put in a shared name's place since it was planned would show
// the next one whatever it leads to.
TEST_F(ContainerBackend, ALinkInAPlannedNamesPlaceIsNotFollowed) {
  const test::TempDir other;
  other.write("secret", "of somebody else\n");
  work_->write("data/file", "shared\n");
  work_->give_to(test::user_uid(), test::user_gid());
  config_.policy.filesystem.volumes = {{.source = *work_ / "data", .target = "/data", .readonly = true}};
  config_.container.mode = ContainerMode::kPerCommand;
  const auto sandbox = start();
  EXPECT_EQ(out(*sandbox, "cat /data/*; mv data old; ln -s " + other.path() + " data"), "shared\n");
  const auto led = sandbox->exec("cat /data/*");
  ASSERT_FALSE(led) << led->out.bytes;
  EXPECT_EQ(led.error().code(), Code::kAborted) << led.error().line();
  EXPECT_EQ(led.error().what(), "the container shows something else than `" + (*work_ / "data") + "`");
  fs::remove(*work_ / "data");
  fs::rename(*work_ / "old", *work_ / "data");
  EXPECT_EQ(out(*sandbox, "cat /data/*"), "shared\n") << "the twin";
}

// Whoever opens it is as good as root here, whatever it is called.
TEST_F(ContainerBackend, TheEnginesSocketIsShownUnderNoOtherName) {
  const test::TempDir other;
  other.make_dir("named");
  const std::string directory = fs::path(engine_->socket()).parent_path();
  const auto share = [&] {
    config_.policy.filesystem.volumes = {{.source = other / "named", .target = "/data", .readonly = true}};
  };
  share();
  EXPECT_EQ(out(*start(), "ls /data"), "") << "the twin";
  ASSERT_EQ(::mount(directory.c_str(), (other / "named").c_str(), nullptr, MS_BIND, nullptr), 0);
  const Error mounted = refusal();
  ::umount2((other / "named").c_str(), MNT_DETACH);
  EXPECT_EQ(mounted.code(), Code::kPermissionDenied) << mounted.line();
  EXPECT_NE(mounted.line().find("named/sock` is there"), std::string::npos) << mounted.line();
  fs::create_hard_link(engine_->socket(), other / "named/hard");
  const Error linked = refusal();
  EXPECT_EQ(linked.code(), Code::kFailedPrecondition) << linked.line();
  EXPECT_NE(linked.line().find("2 hard links"), std::string::npos) << linked.line();
  fs::remove(other / "named/hard");
  EXPECT_EQ(out(*start(), "ls /data"), "") << "as the message says";
}

class PodmanBackend : public ContainerBackend {
 protected:
  test::EngineKind kind() const override { return test::EngineKind::kPodman; }
};

// Its service makes a tmpfs at /run of its own, half as large as the machine's memory, where nobody asks for one.
TEST_F(PodmanBackend, EveryDirectoryInMemoryHasItsSize) {
  config_.policy.filesystem.tmp_size = Bytes{1U << 20};
  const auto sandbox = start();
  for (const char* at : {"/run", "/tmp", "/var/tmp"}) {
    const std::string told = out(*sandbox, std::string("head -c 3000000 /dev/zero > ") + at + "/f; wc -c < " + at + "/f");
    EXPECT_NE(told.find("1048576"), std::string::npos) << at << told;
  }
  for (const EnforcementClause& found : sandbox->enforcement()) {
    if (found.clause == "filesystem.tmp") {
      for (const char* at : {"/run", "/tmp", "/dev"}) EXPECT_EQ(found.detail.find(at), std::string::npos) << found.detail;
    }
  }
}

TEST_F(ContainerBackend, LimitsThatWouldMeanNoneAreRefusedByName) {
  const auto refused = [&](auto change) {
    config_.policy = {};
    change(config_.policy);
    return refusal().what();
  };
  EXPECT_EQ(refused([](Policy& policy) { policy.limits.memory = Bytes{0}; }), "limits.memory = 0 cannot be enforced");
  EXPECT_EQ(refused([](Policy& policy) { policy.limits.cpus = 0.001; }), "limits.cpus = 0.001 cannot be enforced");
  EXPECT_EQ(refused([](Policy& policy) { policy.filesystem.tmp_size = Bytes{0}; }), "filesystem.tmp_size is 0");
  config_.policy = {};
  config_.policy.limits.cpus = 64;  // more than there are: all
  EXPECT_EQ(out(*start(), "echo ran"), "ran\n");
}

// A caller that takes its time makes no timeout of a command that ended in time.
TEST_F(ContainerBackend, ASlowCallbackIsNoTimeout) {
  const auto sandbox = start();
  // Half a second, and more where a busy machine needs that for the command.
  ExecResult result;
  auto timeout = std::chrono::milliseconds(250);
  do {
    timeout *= 2;
    const auto ended = sandbox->exec(
        "echo one", {.timeout = timeout, .on_stdout = [&](std::string_view) { std::this_thread::sleep_for(3 * timeout); }});
    ASSERT_TRUE(ended) << ended.error().line();
    result = *ended;
  } while (result.reason == Reason::kTimeout && timeout < std::chrono::seconds(16));
  EXPECT_EQ(result.exit_code, 0) << result.message;
  EXPECT_EQ(result.out.bytes, "one\n");
}

TEST_F(ContainerBackend, HoldsWhatItReports) {
  fs::create_directories(*work_ / ".git/hooks");
  work_->write("hidden/key", "secret");
  work_->write(".env", "TOKEN=1");
  work_->give_to(test::user_uid(), test::user_gid());
  config_.policy.filesystem.entries = {{.path = *work_ / "hidden", .access = Access::kNone},
                                       {.path = *work_ / ".env", .access = Access::kNone}};
  const test::TempDir shared;
  shared.write("passwd", "shared\n");
  config_.policy.filesystem.volumes = {{.source = shared.path(), .target = "/data", .readonly = true}};
  config_.policy.filesystem.tmp_size = 1_MiB;
  const auto sandbox = start();
  EXPECT_EQ(out(*sandbox, "id -u"), std::to_string(test::user_uid()) + "\n");
  EXPECT_EQ(out(*sandbox, "echo $PATH $LANG; test ~ != /host/home && echo home"),
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin C.UTF-8\nhome\n");
  EXPECT_EQ(out(*sandbox, "grep -E 'Cap(Eff|Bnd)|NoNewPrivs' /proc/self/status | tr -d '\\t\\n'"),
            "CapEff:0000000000000000CapBnd:0000000000000000NoNewPrivs:1");
  EXPECT_NE(out(*sandbox, "touch /bin/x").find("Read-only"), std::string::npos);
  EXPECT_EQ(out(*sandbox, "touch /tmp/x && echo fine; head -c 3000000 /dev/zero 2>/dev/null >/tmp/x || echo full"), "fine\nfull\n");
  EXPECT_NE(out(*sandbox, "touch /data/x").find("Read-only"), std::string::npos);
  EXPECT_EQ(out(*sandbox, "test -s /data/passwd && echo seen"), "seen\n");
  // Existing control names, and what is hidden; moving what holds them away does not help.
  EXPECT_NE(out(*sandbox, "echo x >.git/hooks/pre-commit").find("Read-only"), std::string::npos);
  EXPECT_NE(out(*sandbox, "mv .git .git2").find("busy"), std::string::npos);
  EXPECT_EQ(sandbox->write_file(".git/hooks/pre-commit", "x").error().code(), Code::kPermissionDenied);
  EXPECT_NE(out(*sandbox, "cat hidden/key").find("denied"), std::string::npos);
  EXPECT_NE(out(*sandbox, "cat .env").find("denied"), std::string::npos);
  EXPECT_EQ(sandbox->read_file(".env").error().code(), Code::kPermissionDenied);
  EXPECT_EQ(out(*sandbox, "echo fine >new && cat new"), "fine\n");
  EXPECT_EQ(sandbox->read_file("new").value(), "fine\n");
  // Nothing of the network but loopback, nothing of the host's processes.
  EXPECT_EQ(out(*sandbox, "ls /sys/class/net"), "lo\n");
  EXPECT_EQ(out(*sandbox, "ls -d /proc/[0-9]* | wc -l | awk '{ print ($1 < 6) }'"), "1\n");
  EXPECT_EQ(clause(*sandbox, "protect.absent"), "none");
  config_.policy.require = {"protect.absent"};
  EXPECT_EQ(refusal().code(), Code::kFailedPrecondition);
}

TEST_F(ContainerBackend, ItsPid1IsOutOfReachOfTheCommands) {
  const auto sandbox = start();
  EXPECT_EQ(out(*sandbox, "for s in 9 15 1 2 17 19; do kill -$s 1; done; sleep 0.3; echo alive"), "alive\n");  // time to die of one
  EXPECT_EQ(out(*sandbox, "cat /proc/1/cmdline | tr '\\0' ' '"), "/.belljar/inside ");
  EXPECT_NE(out(*sandbox, "ls /proc/1/fd").find("denied"), std::string::npos);
  EXPECT_NE(out(*sandbox, "cat /proc/1/environ").find("denied"), std::string::npos);
  EXPECT_NE(out(*sandbox, "echo x >>/proc/1/mem").find("denied"), std::string::npos);
  EXPECT_NE(out(*sandbox, "cp /bin/busybox /.belljar/inside").find("Read-only"), std::string::npos);
  EXPECT_EQ(out(*sandbox, "cat /proc/self/environ | tr '\\0' '\\n' | grep -c LANG"), "1\n") << "one's own can be read";
  EXPECT_TRUE(sandbox->health());
}

TEST_F(ContainerBackend, LimitsAreNamedWhenTheyAreHit) {
  config_.policy.limits.memory = 32_MiB;
  config_.policy.limits.pids = 20;
  config_.policy.limits.open_files = 40;
  config_.policy.limits.file_size = 1_MiB;
  const auto sandbox = start();
  EXPECT_EQ(clause(*sandbox, "limits.memory"), "full");
  const ExecResult memory = sandbox->exec("exec head -c 200000000 /dev/zero | tail -c 200000000 >/dev/null; kill -9 $$").value();
  EXPECT_EQ(memory.reason, Reason::kMemory) << memory.message;
  EXPECT_EQ(out(*sandbox, "echo alive"), "alive\n");
  const ExecResult pids =
      sandbox->exec("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22; do sleep 60 & done; wait").value();
  EXPECT_EQ(pids.limits_hit, std::vector<std::string>{"pids"});
  ASSERT_EQ(pids.violations.size(), 1U);
  EXPECT_EQ(pids.violations[0].rule, "limits.pids");
  EXPECT_EQ(out(*sandbox, "ulimit -n; ulimit -f"), "40\n2048\n");
  EXPECT_NE(sandbox->exec("head -c 3000000 /dev/zero >big").value().exit_code, 0);
  EXPECT_EQ(sandbox->stat("big")->size, 1U << 20);
}

TEST_F(ContainerBackend, EachCommandMayHaveItsOwnContainer) {
  const auto fill = sandbox_config_from({{"SANDBOX_COMMANDS", "true"}, {"BELLJAR_IMAGE", test::Engine::image()}});
  ASSERT_TRUE(fill);
  EXPECT_EQ(fill->backend, "container");
  EXPECT_EQ(sandbox_config_from({{"SANDBOX_COMMANDS", "1"}})->backend, "native");
  config_.container = fill->container;
  config_.container.engine = engine_->address();
  const auto sandbox = start();
  EXPECT_EQ(out(*sandbox, "pwd; echo $$ >/tmp/x; echo kept >file; sleep 300 >/dev/null 2>&1 &"), "/workspace\n");
  EXPECT_EQ(out(*sandbox, "ls /tmp; cat /workspace/file; ls -d /proc/[0-9]* | wc -l | awk '{ print ($1 < 6) }'"), "kept\n1\n");
  EXPECT_TRUE(engine_->containers().empty()) << "removed with the command";
  EXPECT_EQ(sandbox->exec("exit 7")->exit_code, 7);
  EXPECT_EQ(sandbox->exec("sleep 300", {.timeout = 500ms})->reason, Reason::kTimeout);
  EXPECT_EQ(sandbox->read_file("/workspace/file").value(), "kept\n");
  EXPECT_EQ(sandbox->read_file(*work_ / "file").error().code(), Code::kInvalidArgument);
  auto process = sandbox->spawn(shell_command("sleep 300"));
  ASSERT_TRUE(process);
  EXPECT_TRUE(sandbox->stop());
  EXPECT_EQ((*process)->wait()->value().reason, Reason::kCancelled);
}

TEST_F(ContainerBackend, EndsWithTheFrontThatIsKilled) {
  const pid_t front = ::fork();
  if (front == 0) {
    const auto sandbox = make_sandbox(config_);
    if (!sandbox || !(*sandbox)->start()) ::_exit(1);
    (void)(*sandbox)->spawn(shell_command("trap '' TERM; touch started; while :; do sleep 1; done"));
    (void)(*sandbox)->exec("while ! test -e started; do sleep 0.1; done");
    (void)(*sandbox)->write_file("ready", "");
    for (;;) ::pause();
  }
  EXPECT_TRUE(test::eventually([&] { return test::exists(*work_ / "ready"); }));
  EXPECT_EQ(engine_->containers().size(), 1U);
  ::kill(front, SIGKILL);
  ::waitpid(front, nullptr, 0);
  EXPECT_TRUE(test::eventually([&] { return engine_->containers().empty(); }));
}

TEST_F(ContainerBackend, OrphansAreRemovedAtAStartAndNobodyElses) {
  const auto sandbox = start();
  const std::string mine =
      engine_->client({"inspect", "--format", "{{index .Config.Labels \"belljar.owner\"}}", engine_->containers().at(0)}).out;
  ASSERT_NE(mine.find('/'), std::string::npos);
  const std::string place = mine.substr(0, mine.rfind('/', mine.rfind('/') - 1));
  const auto create = [&](const std::string& label) { engine_->client({"create", "--label", label, test::Engine::image(), "sh"}); };
  create("belljar.owner=" + place + "/999999999/1");  // of a process that is gone
  create("belljar.owner=" + place + "/1/1");          // whose pid is another's by now
  create("belljar.owner=another-boot/pid:[1]/999999999/1");
  create("somebody=else");
  EXPECT_EQ(engine_->containers().size(), 5U);
  const auto other = start();
  EXPECT_EQ(engine_->containers().size(), 4U) << "two of them and the new one";
  EXPECT_TRUE(other->stop());
  EXPECT_EQ(out(*sandbox, "echo untouched"), "untouched\n");
  EXPECT_TRUE(sandbox->stop());
  for (const std::string& id : engine_->containers()) engine_->client({"rm", "--force", id});
}

TEST_F(ContainerBackend, AnEngineThatDiesEndsTheCommandWithOneReason) {
  const auto sandbox = start();
  std::atomic<bool> begun = false;
  auto process = sandbox->spawn(shell_command("echo begun; sleep 300"), {.on_stdout = [&](std::string_view) { begun = true; }});
  ASSERT_TRUE(process);
  ASSERT_TRUE(test::eventually([&] { return begun.load(); }));
  EXPECT_FALSE((*process)->wait(0ms)->has_value());
  engine_->stop(SIGKILL);
  const ExecResult result = (*process)->wait()->value();
  EXPECT_EQ(result.reason, Reason::kCancelled);
  EXPECT_EQ(result.out.bytes, "begun\n") << "what came before is kept";
  EXPECT_NE(result.message.find("the sandbox ended before the command did"), std::string::npos) << result.message;
  EXPECT_EQ(sandbox->health().error().code(), Code::kUnavailable);
  EXPECT_EQ(sandbox->exec("true").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(sandbox->start().error().code(), Code::kUnavailable) << "nobody listens";
  engine_->start();
  const auto again = sandbox->start();
  EXPECT_TRUE(again) << again.error().line();
  EXPECT_EQ(out(*sandbox, "echo again"), "again\n");
}

TEST_F(ContainerBackend, WhatIsMissingIsSaid) {
  config_.container.image = "no-such-image:1";
  EXPECT_EQ(refusal().code(), Code::kNotFound);
  EXPECT_EQ(refusal().reason(), "the engine has none, and the pull policy is `never`");
  config_.container.image = test::Engine::image();
  config_.container.runtime = "no-such-runtime";
  EXPECT_NE(refusal().reason().find("no-such-runtime"), std::string::npos) << refusal().line();
  config_.container.runtime = "runc";
  EXPECT_EQ(refusal().what(), "it was started");
  config_.container.network = "no-such-network";
  config_.policy.network.mode = NetMode::kHost;
  EXPECT_NE(refusal().reason().find("no-such-network"), std::string::npos) << refusal().line();
  config_.container.network = "host";  // and with it the abstract sockets of this machine
  EXPECT_EQ(refusal().what(), "network.unix_sockets cannot be enforced on this machine (own sockets only)");
  config_.policy.accept = {"network.unix_sockets"};
  EXPECT_EQ(refusal().what(), "it was started");
  config_.container.engine = "unix:///nonexistent/docker.sock";
  EXPECT_EQ(refusal().code(), Code::kUnavailable);
  ASSERT_EQ(::chown(work_->path().c_str(), 0, 0), 0);
  config_.container.engine = engine_->address();
  EXPECT_EQ(refusal().what(), "the command would be uid 0 of this machine");
}

TEST_F(ContainerBackend, SamplesBecomeEvents) {
  const auto bus = std::make_shared<EventBus>();
  const auto seen = bus->subscribe({.kinds = {EventKind::kResource}});
  const auto sandbox = with_events(start(), bus, {.sample_every = 50ms});
  ASSERT_TRUE(sandbox->stop());
  ASSERT_TRUE(sandbox->start());
  EXPECT_EQ(sandbox->exec("sleep 1")->exit_code, 0);
  const auto event = seen->next(60s);
  ASSERT_TRUE(event);
  EXPECT_GT(std::get<ResourceEvent>(event->body).processes, 0U);
  EXPECT_GT(std::get<ResourceEvent>(event->body).memory.count, 0U);
}

}  // namespace
}  // namespace belljar
