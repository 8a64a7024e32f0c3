// `belljar run --warm`: each run that may be served by a spare is the run that it would have been without one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/format.h"
#include "e2e/support_run.h"
#include "e2e/support_warm.h"
#include "support/eventually.h"
#include "support/leftovers.h"

namespace belljar::test {
namespace {

namespace fs = std::filesystem;

TEST_F(Warm, ASpareIsUsedOnceAndTheNextIsMade) {
  make_ready({"--", "true"}, options());
  std::set<std::string> used;
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE(eventually([&] { return spares().size() == 2; }));
    const std::set<std::string> before = spares();
    const Ran ran = again({"--", "sh", "-c", "echo out; echo err >&2; exit 7"}, options());
    EXPECT_EQ(ran.outcome.exit_code, 7) << ran.outcome;
    EXPECT_EQ(ran.outcome.out, "out\n");
    EXPECT_EQ(ran.outcome.err, "err\n");
    const std::set<std::string> after = spares();
    for (const std::string& pid : before) {
      if (after.contains(pid)) continue;
      EXPECT_TRUE(used.insert(pid).second) << "used twice: " << pid;
    }
  }
  EXPECT_EQ(used.size(), 3U);
}

// Of a cold run and a warm one.
TEST_F(Warm, ACommandFindsWhatItWouldHaveFound) {
  const std::string look =
      "env | sort; id; umask; ulimit -a; ulimit -Ha; pwd; nice; ls -l /proc/self/fd | awk '{print $9}'; readlink /proc/self/fd/0; "
      "grep -v -E "
      "'^(Vm|Rss|Pid|PPid|Tgid|NS|Threads|.*ctxt|Sig[QBP]|Hugetlb|Core|HugetlbPages|THP|x86|State|Name|FDSize|untag|Cpus_allowed|"
      "Mems)' "
      "/proc/self/status; ls -la / | awk '{print $1, $3, $4, $9}'; awk '{print $3, $5, $6, $9}' /proc/self/mountinfo | sed "
      "'s/0:[0-9]*/DEV/' | sort | sed 's/size=[0-9]*k//'; cat /proc/self/oom_score_adj; seen=$(ps -e -o args= 2>/dev/null); "
      "echo \"$seen\" | wc -l";
  const Outcome cold = belljar({"run", "-c", look}, options());
  ASSERT_EQ(cold.exit_code, 0) << cold;
  make_ready({"-c", "true"}, options());
  const Ran ran = again({"-c", look}, options());
  EXPECT_TRUE(ran.warm);
  EXPECT_EQ(ran.outcome.out, cold.out);
  EXPECT_EQ(ran.outcome.err, cold.err);
}

struct Change {
  const char* name;
  std::vector<std::string> options;
  std::function<void(const std::string& home, const std::string& workspace)> change;
  const char* command;  // succeeds before
  bool fails = true;    // after
};

class WarmChange : public Warm, public testing::WithParamInterface<Change> {
 protected:
  std::vector<std::string> with(const std::string& text) const {
    std::vector<std::string> args = GetParam().options;
    for (std::string& word : args) {
      if (word == "POLICY") word = home_ / "policy.toml";
      if (word == "HIDDEN") word = home_ / ".netrc-like";
    }
    args.insert(args.end(), {"-c", text});
    return args;
  }
};

// As a cold run finds it; the twin: nothing is changed, and the run is warm.
TEST_P(WarmChange, MeansAColdStart) {
  const Change& change = GetParam();
  home_.write("policy.toml", "allow_nested_userns = false\n");
  home_.write(".netrc-like", "secret");
  home_.give_to(::geteuid(), ::getegid());
  ::chmod(home_.path().c_str(), 0755);
  make_ready(with("true"), options());
  const Ran before = again(with(change.command), options());
  EXPECT_TRUE(before.warm);
  EXPECT_EQ(before.outcome.exit_code, 0) << before.outcome;
  ASSERT_TRUE(eventually([&] { return spares().size() == 2; }));
  change.change(home_.path(), workspace_.path());
  const Outcome after = belljar(
      [&] {
        std::vector<std::string> args = with(change.command);
        args.insert(args.begin(), {"run", "--warm"});
        return args;
      }(),
      options());
  std::vector<std::string> cold = with(change.command);
  cold.insert(cold.begin(), "run");
  const Outcome without = belljar(cold, options());
  EXPECT_EQ(after.exit_code, without.exit_code) << after << without;
  EXPECT_EQ(after.out, without.out);
  EXPECT_EQ(after.err, without.err);
  EXPECT_EQ(after.exit_code != 0, change.fails) << after;
}

void put(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << text;
}

const std::vector<Change> kChanges = {
    {"UserPolicy",
     {},
     [](const std::string& home, const std::string&) {
       put(home + "/.config/belljar/policy.toml", "filesystem.hide_paths = [\"" + home + "/.netrc-like\"]\n");
     },
     "cat \"$HOME/.netrc-like\" || test ! -e \"$HOME\""},
    {"PolicyFile",
     {"--policy", "POLICY"},
     [](const std::string& home, const std::string&) { put(home + "/policy.toml", "mode = \"read-only\"\n"); },
     "echo x > written"},
    {"ProjectPolicy",
     {},
     [](const std::string&, const std::string& workspace) { put(workspace + "/.belljar/policy.toml", "mode = \"read-only\"\n"); },
     "echo x > written"},
    {"ProtectedNameThatCame",
     {},
     [](const std::string&, const std::string& workspace) { fs::create_directories(workspace + "/.claude"); },
     "test ! -e .claude || echo x > .claude/settings.json"},
    {"SecretThatCame",
     {},
     [](const std::string& home, const std::string&) { put(home + "/.ssh/id", "key"); },
     "test ! -e \"$HOME/.ssh\" || ls \"$HOME/.ssh\" | grep -q id || exit 3",
     true},
    {"HiddenFileThatIsBack",  // with the same inode: what lay over it in the spare went with its name
     {"--hide", "HIDDEN", "--allow-nested-userns", "--accept", "filesystem.absent_readonly", "--accept", "protect.absent"},
     [](const std::string& home, const std::string&) {
       fs::create_hard_link(home + "/.netrc-like", home + "/another-name");
       fs::remove(home + "/.netrc-like");
       fs::rename(home + "/another-name", home + "/.netrc-like");
     },
     "! cat \"$HOME/.netrc-like\"",
     false},
    {"BrokenPolicy",
     {},
     [](const std::string& home, const std::string&) { put(home + "/.config/belljar/policy.toml", "mode =\n"); },
     "true"},
    {"OrdinaryFile", {}, [](const std::string&, const std::string& workspace) { put(workspace + "/new", "text"); }, "true", false},
};
INSTANTIATE_TEST_SUITE_P(Of, WarmChange, testing::ValuesIn(kChanges), [](const auto& one) { return one.param.name; });

TEST_F(Warm, AnotherEnvironmentDirectoryOrUmaskIsAnotherKind) {
  make_ready({"-c", "true"}, options());
  RunOptions other = options();
  other.env["BELLJAR_TEST_VARIABLE"] = "1";
  EXPECT_FALSE(again({"-c", "true"}, other).warm);
  stop();
  make_ready({"-c", "true"}, options());
  fs::create_directories(workspace_ / "below");
  other = options();
  other.cwd = workspace_ / "below";
  EXPECT_FALSE(again({"-c", "true", "--workspace", ".."}, other).warm);
  const ::mode_t before = ::umask(0077);
  EXPECT_FALSE(again({"-c", "true"}, options()).warm);
  ::umask(before);
  EXPECT_TRUE(again({"-c", "true"}, options()).warm) << "the twin";
}

// What the plan was made for is another place now, though nothing that it was made of has changed.
TEST_F(Warm, WhereALinkLeadsIsPartOfIt) {
  for (const char* name : {"one", "two"}) {
    fs::create_directories(home_ / (std::string(name) + "/.ssh"));
    fs::create_directories(workspace_ / name);
    if (is_root()) fs::permissions(workspace_ / name, fs::perms::all);
  }
  fs::create_symlink("one", home_ / "link");
  fs::create_symlink("one", workspace_ / "link");
  RunOptions linked = options();
  linked.env["HOME"] = home_ / "link";
  const std::vector<std::string> at_home = {"-c", "ls " + home_ / "two/.ssh" + " 2>&1"};
  const std::vector<std::string> in_link = {"--cwd", "link", "-c", "pwd -P"};
  for (const auto& [args, settings, link] :
       {std::tuple(at_home, linked, home_ / "link"), std::tuple(in_link, options(), workspace_ / "link")}) {
    std::vector<std::string> quiet = args;
    quiet.back() = "true";
    make_ready(quiet, settings);
    EXPECT_TRUE(again(args, settings).warm) << "the twin";
    ASSERT_TRUE(eventually([&] { return spares().size() == 2; }));
    fs::remove(link);
    fs::create_symlink("two", link);
    std::vector<std::string> cold = args;
    cold.insert(cold.begin(), "run");
    const Outcome after = again(args, settings).outcome, without = belljar(cold, settings);
    EXPECT_EQ(after.out, without.out);
    EXPECT_EQ(after.exit_code, without.exit_code);
    stop();
  }
}

TEST_F(Warm, SignalsReachTheCommandAndItsCodeComesBack) {
  make_ready({"-c", "true"}, options());
  Running running(command_line({"--warm", "-c", "trap 'echo told; exit 9' TERM; echo ready; while :; do sleep 0.05; done"}),
                  options());
  ASSERT_TRUE(running.wait_for_output("ready"));
  EXPECT_EQ(spares().size(), 1U);
  for (const int ignored : {SIGPIPE, SIGXFSZ, SIGTTIN, SIGTTOU}) running.send(ignored);  // by a cold run
  running.send(SIGTERM);
  const Outcome outcome = running.wait();
  EXPECT_EQ(outcome.exit_code, 9) << outcome;
  EXPECT_EQ(outcome.out, "ready\ntold\n");
}

TEST_F(Warm, AKilledClientTakesTheTreeWithIt) {
  make_ready({"-c", "true"}, options());
  Running running(command_line({"--warm", "-c", "(setsid sleep 4711 &); echo ready; sleep 4711"}), options());
  ASSERT_TRUE(running.wait_for_output("ready"));
  EXPECT_EQ(spares().size(), 1U);
  running.send(SIGKILL);
  EXPECT_EQ(running.wait().signal, SIGKILL);
  EXPECT_TRUE(eventually([] {
    for (const auto& [pid, words] : descendants()) {
      if (words.find("sleep 4711") != std::string::npos) return false;
    }
    return true;
  }));
}

TEST_F(Warm, StopAndContinueAreTheClients) {
  make_ready({"-c", "true"}, options());
  Running running(command_line({"--warm", "-c", "echo ready; exec sleep 1000"}), options());
  ASSERT_TRUE(running.wait_for_output("ready"));
  running.send(SIGTSTP);
  EXPECT_TRUE(eventually([&] { return state_of(running.pid()) == 'T'; }));
  running.send(SIGCONT);
  EXPECT_TRUE(eventually([&] { return state_of(running.pid()) != 'T'; }));
  running.send(SIGINT);
  EXPECT_EQ(running.wait().exit_code, 128 + SIGINT);
}

TEST_F(Warm, ResultsAreWhereTheyWouldHaveBeen) {
  make_ready({"--report", "report.json", "--json", "-c", "true"}, options());
  const Ran ran = again({"--report", "report.json", "--json", "-c", "echo text; exit 4"}, options());
  EXPECT_TRUE(ran.warm);
  EXPECT_EQ(ran.outcome.exit_code, 4);
  EXPECT_NE(ran.outcome.out.find(R"("stdout":"text\n")"), std::string::npos) << ran.outcome;
  EXPECT_TRUE(fs::exists(workspace_ / "report.json"));
  stop();
  make_ready({"--", "true"}, options());
  EXPECT_EQ(again({"--", "nosuchprogram"}, options()).outcome.exit_code, 127);
  ASSERT_TRUE(eventually([&] { return spares().size() == 2; }));
  EXPECT_EQ(again({"--", "sh", "-c", "kill -9 $$"}, options()).outcome.exit_code, 137);
  ASSERT_TRUE(eventually([&] { return spares().size() == 2; }));
  RunOptions fed = options();
  fed.stdin_is = Input::kPipe;
  fed.input = "from outside\n";
  const Ran read = again({"--", "cat"}, fed);
  EXPECT_TRUE(read.warm);
  EXPECT_EQ(read.outcome.out, "from outside\n");
}

TEST_F(Warm, LimitsHold) {
  make_ready({"--timeout", "300ms", "-c", "true"}, options());
  const Ran ran = again({"--timeout", "300ms", "-c", "sleep 1000"}, options());
  EXPECT_TRUE(ran.warm);
  EXPECT_EQ(ran.outcome.exit_code, 124) << ran.outcome;
}

// Neither the run nor who reads its output waits for a spare that does not answer, and nothing is run twice.
TEST_F(Warm, AStoppedSpareHoldsNobodyUp) {
  make_ready({"-c", "true"}, options());
  const std::set<std::string> stopped = spares();
  for (const std::string& pid : stopped) ::kill(std::stoi(pid), SIGSTOP);
  for (int run = 0; run < 5; ++run) {  // more than wait at one socket
    const Outcome outcome = belljar({"run", "--warm", "-c", "echo line >> lines; echo out"}, options());
    EXPECT_EQ(outcome.out, "out\n") << outcome;
    EXPECT_FALSE(outcome.output_held) << outcome;
  }
  const Outcome asked = warm_command({});
  EXPECT_NE(asked.err.find("2 of them did not answer"), std::string::npos) << asked;
  for (const std::string& pid : stopped) ::kill(std::stoi(pid), SIGCONT);
  EXPECT_TRUE(eventually([&] { return warm_command({}).err.find("did not answer") == std::string::npos; }));
  EXPECT_EQ(read_file(workspace_ / "lines"), "line\nline\nline\nline\nline\n");
}

TEST_F(Warm, KilledSparesAreReplaced) {
  make_ready({"-c", "true"}, options());
  for (const std::string& pid : spares()) {
    ::kill(std::stoi(pid), SIGKILL);
    EXPECT_TRUE(eventually([&] { return ::kill(std::stoi(pid), 0) != 0; }));
  }
  EXPECT_EQ(belljar({"run", "--warm", "-c", "true"}, options()).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return spares().size() == 2; }));
  EXPECT_TRUE(again({"-c", "true"}, options()).warm);
}

// What the run tells at its end goes to a pipe that nobody reads.
TEST_F(Warm, ASpareThatTellsGoesWithItsClient) {
  make_ready({"-c", "true"}, options());
  const std::set<std::string> before = spares();
  Running running(
      command_line({"--warm", "-c", "head -c 65536 /dev/zero >&2; touch /etc/refused 2>/dev/null; echo done >> ended; exit 1"}),
      options());
  ASSERT_TRUE(eventually([&] { return fs::exists(workspace_ / "ended"); }));
  const std::set<std::string> left = spares();
  // Several messages that come while it is stopped are one SIGIO.
  std::string used;
  for (const std::string& pid : before) {
    if (!left.contains(pid)) used = pid;
  }
  ASSERT_NE(used, "");
  ::kill(std::stoi(used), SIGSTOP);
  running.send(SIGWINCH);
  running.send(SIGCONT);
  EXPECT_TRUE(eventually(
      [&] { return read_file(format("/proc/{}/status", running.pid())).find("ShdPnd:\t0000000000000000") != std::string::npos; }));
  running.send(SIGKILL);
  ::kill(std::stoi(used), SIGCONT);
  EXPECT_TRUE(eventually([&] {
    return std::ranges::all_of(before,
                               [&](const std::string& pid) { return left.contains(pid) || ::kill(std::stoi(pid), 0) != 0; });
  }));
  EXPECT_EQ(running.wait().signal, SIGKILL);
}

// What is told before the command goes to a pipe that nobody reads, too.
TEST_F(Warm, ASpareThatWarnsGoesWithItsClient) {
  const auto words = [](const std::string& before, const std::string& text) {
    return std::vector<std::string>{"/bin/sh", "-c",
                                    before + "exec " + std::string(kBelljar) + " run --warm --net host -c '" + text + "'"};
  };
  for (const int signal : {SIGKILL, SIGTERM, SIGINT}) {
    stop();
    EXPECT_NE(run(words("", "true"), options()).err.find("warning"), std::string::npos);
    ASSERT_TRUE(eventually([&] { return spares().size() == 2; }));
    const std::set<std::string> before = spares();
    Running running(words("head -c 65536 /dev/zero >&2; ", "touch ran"), options());
    std::set<std::string> left;
    ASSERT_TRUE(eventually([&] { return (left = spares()).size() == 1; }));
    running.send(signal);
    EXPECT_TRUE(eventually([&] {
      return std::ranges::all_of(before,
                                 [&](const std::string& pid) { return left.contains(pid) || ::kill(std::stoi(pid), 0) != 0; });
    })) << signal;
    EXPECT_EQ(running.wait().signal, signal);
    EXPECT_FALSE(fs::exists(workspace_ / "ran"));
  }
}

// As a cold run dies of it, and not as one whose sandbox was killed.
TEST_F(Warm, WhoseReaderIsGoneDiesOfIt) {
  for (const char* mode : {"--", "--warm"}) {
    const bool warm = std::string_view(mode) == "--warm";
    if (warm) make_ready({"--json", "-c", "true"}, options());
    const std::size_t ready = spares().size();
    std::vector<std::string> args{"--json", "-c", "touch ready; while ! test -e go; do sleep 0.01; done"};
    if (warm) args.insert(args.begin(), "--warm");
    Running running(command_line(args), options());
    ASSERT_TRUE(eventually([&] { return fs::exists(workspace_ / "ready"); }));
    EXPECT_EQ(spares().size(), ready - (warm ? 1 : 0));
    running.close_output();
    std::ofstream(workspace_ / "go") << "";
    EXPECT_EQ(running.wait().signal, SIGPIPE) << mode;
    fs::remove(workspace_ / "ready");
    fs::remove(workspace_ / "go");
  }
}

TEST_F(Warm, ALimitThatTheProxyRaisesIsTheRunsAgainForItsSpares) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 512;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  make_ready({"--net", "proxy", "-c", "true"}, options());
  for (int run = 0; run < 3; ++run) {
    const Ran ran = again({"--net", "proxy", "-c", "ulimit -n"}, options());
    EXPECT_TRUE(ran.warm);
    EXPECT_EQ(ran.outcome.out, "512\n");
    EXPECT_TRUE(eventually([&] { return spares().size() == 2; }));
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(Warm, StopAndTheEndOfTheStateDirectoryEndThem) {
  make_ready({"-c", "true"}, options());
  const Outcome shown = warm_command({});
  EXPECT_NE(shown.out.find(workspace_.path()), std::string::npos) << shown;
  EXPECT_NE(shown.out.find("--warm -c"), std::string::npos) << shown;
  const Outcome stopped = warm_command({"--stop"});
  EXPECT_NE(stopped.err.find("ended 2"), std::string::npos) << stopped;
  EXPECT_TRUE(spares().empty());
  make_ready({"-c", "true"}, options());
  const std::set<std::string> pids = spares();
  fs::remove_all(state_ / "belljar");
  for (const std::string& pid : pids) EXPECT_TRUE(eventually([&] { return !is_running(std::stoi(pid)); })) << pid;
}

}  // namespace
}  // namespace belljar::test
