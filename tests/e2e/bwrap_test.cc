// The program called by the name `bwrap`: bubblewrap's command line, done by our launcher. Every refusal has a twin that works.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/built.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

using Words = std::vector<std::string>;

class Bwrap : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    ASSERT_EQ(::symlink(kBelljar, program_.c_str()), 0);
  }

  Outcome bwrap(Words words, RunOptions options = {.stdin_is = Input::kNull}) const {
    words.insert(words.begin(), program_);
    if (options.cwd.empty()) options.cwd = place_.path();
    return run(words, options);
  }
  // The whole host for reading, and what the test is about.
  Outcome on_host(Words words, RunOptions options = {.stdin_is = Input::kNull}) const {
    words.insert(words.begin(), {"--ro-bind", "/", "/"});
    return bwrap(std::move(words), std::move(options));
  }
  // A shell's text, for descriptors: `$B` is the program.
  Outcome shell(const std::string& text, std::map<std::string, std::string> env = {}) const {
    env["B"] = program_;
    return run({"sh", "-c", text}, {.stdin_is = Input::kNull, .cwd = place_.path(), .env = std::move(env)});
  }

  TempDir place_;
  std::string program_ = place_ / "bwrap";
};

TEST_F(Bwrap, SaysItsNameVersionAndOptions) {
  EXPECT_EQ(bwrap({"--version"}).out, "bubblewrap 0.11.0\n");
  const Outcome help = bwrap({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_TRUE(help.out.starts_with("usage: " + program_ + " [OPTIONS...]")) << help;
  EXPECT_NE(help.out.find("--perms"), std::string::npos);
  EXPECT_EQ(bwrap({"--ro-bind", "/", "/"}).exit_code, 1) << "no command";
  EXPECT_EQ(belljar({"bwrap", "--ro-bind", "/", "/", "echo", "same"}).out, "same\n");
}

TEST_F(Bwrap, ExitCodesAreTheCommands) {
  EXPECT_EQ(on_host({"true"}).exit_code, 0);
  EXPECT_EQ(on_host({"sh", "-c", "exit 42"}).exit_code, 42);
  EXPECT_EQ(on_host({"sh", "-c", "kill -TERM $$"}).exit_code, 143);
  EXPECT_EQ(on_host({"--unshare-pid", "--proc", "/proc", "sh", "-c", "exit 42"}).exit_code, 42);
  EXPECT_EQ(on_host({"--unshare-pid", "sh", "-c", "kill -KILL $$"}).exit_code, 137);
}

TEST_F(Bwrap, WhatCannotStartIsSaidAndIsOne) {
  for (const Words& before : {Words{}, Words{"--unshare-pid"}}) {
    Words words = before;
    words.emplace_back("no-such-program");
    const Outcome missing = on_host(words);
    EXPECT_EQ(missing.exit_code, 1);
    EXPECT_EQ(missing.err, "bwrap: execvp no-such-program: No such file or directory\n");
  }
  const Outcome source = bwrap({"--bind", "/no/such", "/x", "true"});
  EXPECT_EQ(source.exit_code, 1);
  EXPECT_EQ(source.err, "bwrap: Can't find source path /no/such: No such file or directory\n");
  EXPECT_EQ(bwrap({"--level-prefix", "--bogus"}).err, "<3>bwrap: Unknown option --bogus\n");
  EXPECT_EQ(on_host({"--exec-label", "x", "true"}).err, "bwrap: --exec-label: labeling not supported on this system\n");
  EXPECT_EQ(on_host({"--bind-try", "/no/such", "/x", "true"}).exit_code, 0) << "the twin";
}

TEST_F(Bwrap, ASourceThatIsNotThereLeavesNothingOnTheHost) {
  const Words before{"--bind", "/", "/", "--dir", place_ / "made", "--ro-bind", "/usr", place_ / "point"};
  Words refused = before;
  refused.insert(refused.end(), {"--bind", "/no/such", "/tmp", "true"});
  EXPECT_EQ(bwrap(refused).exit_code, 1);
  EXPECT_FALSE(exists(place_ / "made"));
  EXPECT_FALSE(exists(place_ / "point"));
  Words done = before;
  done.emplace_back("true");
  EXPECT_EQ(bwrap(done).exit_code, 0);
  EXPECT_TRUE(exists(place_ / "made")) << "the twin";
}

// What makes the network namespace meanwhile would hold the streams.
TEST_F(Bwrap, AStartThatFailsLeavesNoProcess) {
  for (int i = 0; i < 20; ++i) {
    const Outcome failed = on_host({"--unshare-net", "--bind", "/no/such", "/x", "true"},
                                   {.stdin_is = Input::kNull, .held_after = std::chrono::seconds(5)});
    ASSERT_EQ(failed.exit_code, 1);
    ASSERT_FALSE(failed.output_held);
  }
}

TEST_F(Bwrap, AReadOnlyBindIsReadOnlyAndABindIsNot) {
  const std::string file = place_.write("work/file", "old");
  const Words touch{"sh", "-c", "echo new > " + file};
  EXPECT_NE(on_host(touch).exit_code, 0);
  EXPECT_EQ(read_file(file), "old");
  Words words{"--bind", place_ / "work", place_ / "work"};
  words.insert(words.end(), touch.begin(), touch.end());
  EXPECT_EQ(on_host(words).exit_code, 0);
  EXPECT_EQ(read_file(file), "new\n");
  Words last{"--bind", place_ / "work", place_ / "work", "--ro-bind", place_ / "work", place_ / "work"};
  last.insert(last.end(), touch.begin(), touch.end());
  EXPECT_NE(on_host(last).exit_code, 0) << "the last of two holds";
}

TEST_F(Bwrap, DevicesWorkOnlyWhereTheyAreAskedFor) {
  EXPECT_NE(bwrap({"--bind", "/", "/", "sh", "-c", "echo x > /dev/null"}).exit_code, 0);
  EXPECT_EQ(bwrap({"--dev-bind", "/", "/", "sh", "-c", "echo x > /dev/null"}).exit_code, 0);
  const Outcome own = on_host({"--dev", "/dev", "sh", "-c", "echo x > /dev/null && head -c 3 /dev/zero | wc -c && ls /dev"});
  EXPECT_EQ(own.exit_code, 0) << own;
  EXPECT_NE(own.out.find("3\n"), std::string::npos);
  EXPECT_EQ(own.out.find("kmsg"), std::string::npos) << own;
}

// Mount points of the table, in its order.
Words mount_points(const std::string& table) {
  Words points;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string field;
    for (int i = 0; i < 5; ++i) fields >> field;
    points.push_back(field);
  }
  return points;
}

TEST_F(Bwrap, NothingOfTheHostIsMountedThatWasNotAskedFor) {
  const Words parts{"--ro-bind",     "/usr",   "/usr",   "--ro-bind-try", "/lib", "/lib",
                    "--ro-bind-try", "/lib64", "/lib64", "--ro-bind-try", "/bin", "/bin"};
  Words words = parts;
  words.insert(words.end(), {"--unshare-pid", "--proc", "/proc", "cat", "/proc/self/mountinfo"});
  const Outcome table = bwrap(words);
  ASSERT_EQ(table.exit_code, 0) << table;
  for (const std::string& point : mount_points(table.out))
    EXPECT_TRUE(point == "/" || point.starts_with("/usr") || point.starts_with("/lib") || point.starts_with("/bin") ||
                point.starts_with("/proc"))
        << point;
  // Whatever is shown at "/", there is one root, and nothing lies on it: "/.." would be that.
  for (const Words& root : {Words{}, Words{"--ro-bind", "/", "/"}, Words{"--bind", "/", "/", "--tmpfs", "/tmp"}}) {
    Words whole = root;
    if (root.empty()) whole = parts;
    whole.insert(whole.end(), {"--unshare-pid", "--proc", "/proc", "sh", "-c",
                               "cat /proc/self/mountinfo; stat -c %d:%i / /.. | uniq | wc -l >&2"});
    const Outcome outcome = bwrap(whole);
    ASSERT_EQ(outcome.exit_code, 0) << outcome;
    int roots = 0;
    for (const std::string& point : mount_points(outcome.out)) roots += point == "/" ? 1 : 0;
    EXPECT_EQ(roots, 1) << outcome;
    EXPECT_EQ(outcome.err, "1\n");
  }
}

TEST_F(Bwrap, ALinkOnTheWayLeadsNowhereOutside) {
  const std::string outside = place_.make_dir("outside"), work = place_.make_dir("work");
  ASSERT_EQ(::symlink(outside.c_str(), (work + "/link").c_str()), 0);
  ASSERT_EQ(::symlink("/proc/self/cwd", (work + "/magic").c_str()), 0);
  const Words base{"--ro-bind",     "/usr", "/usr", "--ro-bind-try", "/lib", "/lib", "--ro-bind-try", "/lib64", "/lib64",
                   "--ro-bind-try", "/bin", "/bin", "--bind",        work,   work};
  Words through = base;
  through.insert(through.end(), {"--dir", work + "/link/made", "true"});
  (void)bwrap(through);
  EXPECT_FALSE(exists(outside + "/made")) << "the link names a place that the recipe does not show";
  Words plain = base;
  plain.insert(plain.end(), {"--dir", work + "/plain/made", "true"});
  EXPECT_EQ(bwrap(plain).exit_code, 0);
  EXPECT_TRUE(exists(work + "/plain/made")) << "the twin";
  Words magic = base;
  magic.insert(magic.end(), {"--dir", work + "/magic/made", "true"});
  (void)bwrap(magic);
  EXPECT_FALSE(exists(place_ / "made"));
}

TEST_F(Bwrap, ContentComesFromDescriptors) {
  place_.write("data", "content");
  place_.write("more", std::string("--tmpfs\0/tmp\0--file\0004\0/tmp/file\0", 32));
  const Outcome args = shell("exec $B --ro-bind / / --args 3 cat /tmp/file 3<more 4<data");
  EXPECT_EQ(args.out, "content") << args;
  const std::string data = "exec $B --ro-bind / / --tmpfs /tmp --perms 0644 ";
  EXPECT_EQ(shell(data + "--bind-data 4 /tmp/f sh -c 'echo more >> /tmp/f && cat /tmp/f' 4<data").out, "contentmore\n");
  const Outcome refused = shell(data + "--ro-bind-data 4 /tmp/f sh -c 'cat /tmp/f; echo more >> /tmp/f' 4<data");
  EXPECT_EQ(refused.out, "content");
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_EQ(shell("exec $B --ro-bind / / --ro-bind-fd 4 /mnt cat /mnt/data 4<.").out, "content");
  EXPECT_EQ(shell("exec $B --ro-bind / / --ro-bind /proc/self/fd/4 /mnt cat /mnt/data 4<.").out, "content");
  EXPECT_EQ(shell("exec $B --ro-bind / / --ro-bind /dev/fd/4 /mnt cat /mnt/data 4<.").out, "content");
}

TEST_F(Bwrap, DescriptorsOfTheCallerAreHandedOnUnlessTheyAreUsed) {
  place_.write("data", "content");
  EXPECT_EQ(shell("exec $B --ro-bind / / sh -c 'cat <&5' 5<data").out, "content");
  const std::string used = "exec $B --ro-bind / / --unshare-pid --dev /dev --proc /proc --sync-fd 5 ";
  EXPECT_NE(shell(used + "sh -c 'true <&5' 5<data").exit_code, 0);
  EXPECT_EQ(shell(used + "--as-pid-1 sh -c 'true <&5' 5<data").exit_code, 0) << "there it is the command that holds it";
  const Outcome closed = shell("exec $B --ro-bind / / --sync-fd 77 true");
  EXPECT_EQ(closed.exit_code, 1);
  EXPECT_EQ(closed.err, "bwrap: Invalid fd: 77: Bad file descriptor\n");
}

TEST_F(Bwrap, TellsOfTheStartAndTheEnd) {
  const Outcome told = shell("$B --ro-bind / / --unshare-pid --info-fd 5 --json-status-fd 6 sh -c 'exit 3' 5>info 6>status");
  EXPECT_EQ(told.exit_code, 3);
  EXPECT_TRUE(read_file(place_ / "info").starts_with("{\n    \"child-pid\": ")) << read_file(place_ / "info");
  EXPECT_NE(read_file(place_ / "info").find("\"pid-namespace\": "), std::string::npos);
  EXPECT_NE(read_file(place_ / "status").find("{ \"exit-code\": 3 }\n"), std::string::npos) << read_file(place_ / "status");
  (void)shell("$B --ro-bind / / --json-status-fd 6 no-such-program 6>status");
  EXPECT_EQ(read_file(place_ / "status").find("exit-code"), std::string::npos);
}

TEST_F(Bwrap, WaitsUntilItIsLetGo) {
  const Outcome waited =
      shell("mkfifo go; $B --ro-bind / / --block-fd 5 test -e first 5<>go & sleep 0.2; echo > first; echo > go; wait $!");
  EXPECT_EQ(waited.exit_code, 0) << waited;  // the sleep only gives a wrong start the time to fail
}

TEST_F(Bwrap, TheCallerMapsTheIds) {
  const Outcome mapped = shell(
      "mkfifo info go; $B --ro-bind / / --unshare-user --info-fd 5 --userns-block-fd 6 id -u 5>info 6<>go & cat info > text; "
      "pid=$(sed -n 's/.*child-pid\": //p' text | tr -d ,); echo deny > /proc/$pid/setgroups; "
      "echo 7 $(id -u) 1 > /proc/$pid/uid_map; echo 8 $(id -g) 1 > /proc/$pid/gid_map; echo > go; wait $!");
  EXPECT_EQ(mapped.out, "7\n") << mapped;
}

TEST_F(Bwrap, AFrontThatIsKilledBeforeTheStartLeavesNothing) {
  Running front(
      {"sh", "-c", "mkfifo go; exec $B --ro-bind / / --unshare-user --unshare-pid --info-fd 1 --userns-block-fd 6 true 6<>go"},
      {.stdin_is = Input::kNull, .cwd = place_.path(), .env = {{"B", program_}}});
  ASSERT_TRUE(front.wait_for_output("child-pid"));
  ASSERT_EQ(::kill(front.pid(), SIGKILL), 0);
  EXPECT_FALSE(front.wait().output_held) << "its child holds the streams";
}

// Each takes a descriptor while the tree is built; the caller's soft limit is given back.
TEST_F(Bwrap, ManyBindsNeedNoHigherLimit) {
  std::string args;
  for (int i = 0; i < 300; ++i)
    for (const std::string& word : {std::string("--ro-bind"), std::string("/usr"), "/tmp/" + std::to_string(i)})
      args += word + '\0';
  place_.write("args", args);
  const Outcome many =
      shell("ulimit -Sn 64; exec $B --ro-bind / / --tmpfs /tmp --args 5 sh -c 'ls /tmp | wc -l; ulimit -Sn' 5<args");
  EXPECT_EQ(many.out, "300\n64\n") << many;
}

TEST_F(Bwrap, AFilterOfTheCallersHolds) {
  const auto deny = [](unsigned nr) {
    return std::vector<sock_filter>{{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, nr}, {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM}};
  };
  std::vector<sock_filter> filter{{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)}};
  for (const unsigned nr : {unsigned{SYS_mkdirat},
#ifdef SYS_mkdir
                            unsigned{SYS_mkdir}
#endif
       }) {
    for (const sock_filter& step : deny(nr)) filter.push_back(step);
  }
  filter.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW});
  place_.write("filter", std::string(reinterpret_cast<const char*>(filter.data()), filter.size() * sizeof(sock_filter)));
  const std::string base = "exec $B --ro-bind / / --tmpfs /tmp ", act = "mkdir /tmp/x 5<filter";
  for (const char* option : {"--seccomp 5 ", "--add-seccomp-fd 5 ", "--unshare-pid --seccomp 5 "})
    EXPECT_NE(shell(base + option + act).exit_code, 0) << option;
  EXPECT_EQ(shell(base + act).exit_code, 0) << "the twin";
}

TEST_F(Bwrap, UserNamespacesBelowCanBeForbidden) {
  const Words make{"unshare", "--user", "true"};
  const auto with = [&](Words words) {
    words.insert(words.begin(), {"--dev-bind", "/", "/", "--unshare-user"});
    words.insert(words.end(), make.begin(), make.end());
    return bwrap(words).exit_code;
  };
  EXPECT_EQ(with({}), 0);
  EXPECT_NE(with({"--disable-userns"}), 0);
  const Outcome asserted = bwrap({"--dev-bind", "/", "/", "--assert-userns-disabled", "true"});
  EXPECT_EQ(asserted.exit_code, 1);
  EXPECT_NE(asserted.err.find("was not disabled as requested"), std::string::npos) << asserted;
  EXPECT_EQ(bwrap({"--dev-bind", "/", "/", "--unshare-user", "--disable-userns", "--assert-userns-disabled", "true"}).exit_code, 0);
}

TEST_F(Bwrap, CapabilitiesAreThoseThatWereAskedFor) {
  const auto held = [&](Words words) {
    words.insert(words.begin(), {"--unshare-user"});
    words.insert(words.end(), {"sed", "-n", "s/^CapEff:\\t*0*//p; s/^NoNewPrivs:\\t/n/p", "/proc/self/status"});
    return on_host(words).out;
  };
  EXPECT_EQ(held({"--uid", "5", "--cap-drop", "ALL"}), "\nn1\n");
  EXPECT_EQ(held({"--uid", "5", "--cap-drop", "ALL", "--cap-add", "CAP_KILL"}), "20\nn1\n");
  EXPECT_EQ(held({"--uid", "0", "--cap-drop", "ALL"}), "\nn1\n") << "not even uid 0 gets them back at execve";
  if (!is_root()) {
    EXPECT_EQ(held({}), "\nn1\n");
  }
}

TEST_F(Bwrap, ModesAndSizes) {
  const Outcome modes =
      on_host({"--tmpfs", "/tmp",    "--perms", "1741",   "--dir", "/tmp/d", "--perms", "0700",   "--tmpfs", "/mnt",  "--dir",
               "/tmp/e",  "--chmod", "0711",    "/tmp/e", "stat",  "-c",     "%a",      "/tmp/d", "/mnt",    "/tmp/e"});
  EXPECT_EQ(modes.out, "1741\n700\n711\n") << modes;
  const Outcome parents =
      on_host({"--tmpfs", "/tmp", "--ro-bind", "/usr", "/tmp/a/b", "--dir", "/tmp/c/d", "stat", "-c", "%a", "/tmp/a", "/tmp/c"});
  EXPECT_EQ(parents.out, "700\n755\n") << parents;
  const Words fill{"sh", "-c", "head -c 200000 /dev/zero > /mnt/f"};
  Words small{"--dev", "/dev", "--size", "65536", "--tmpfs", "/mnt"},
      enough{"--dev", "/dev", "--size", "1048576", "--tmpfs", "/mnt"};
  small.insert(small.end(), fill.begin(), fill.end());
  enough.insert(enough.end(), fill.begin(), fill.end());
  EXPECT_NE(on_host(small).exit_code, 0);
  EXPECT_EQ(on_host(enough).exit_code, 0);
}

TEST_F(Bwrap, AMountIsMadeReadOnlyAfterItWasFilled) {
  const Words fill{"--tmpfs", "/mnt", "--dir", "/mnt/d"};
  Words open = fill, shut = fill;
  open.insert(open.end(), {"mkdir", "/mnt/e"});
  shut.insert(shut.end(), {"--remount-ro", "/mnt", "mkdir", "/mnt/e"});
  EXPECT_EQ(on_host(open).exit_code, 0);
  EXPECT_NE(on_host(shut).exit_code, 0);
  const Outcome none = on_host({"--tmpfs", "/mnt", "--dir", "/mnt/d", "--remount-ro", "/mnt/d", "true"});
  EXPECT_EQ(none.err, "bwrap: Can't remount readonly on /newroot/mnt/d: it is no mount point\n");
}

TEST_F(Bwrap, LayersAreLaidOverEachOther) {
  const TempDir layers(layers_base(""));
  layers.write("low/a", "low");
  layers.write("low/b", "low");
  layers.write("high/b", "high");
  layers.make_dir("upper");
  layers.make_dir("work");
  const Words both{"--overlay-src", layers / "low", "--overlay-src", layers / "high"};
  const auto with = [&](Words words, const std::string& text) {
    words.insert(words.begin(), both.begin(), both.end());
    words.insert(words.end(), {"sh", "-c", text});
    return on_host(words);
  };
  const Outcome dropped = with({"--tmp-overlay", "/mnt"}, "cat /mnt/a /mnt/b; echo new > /mnt/a; cat /mnt/a");
  EXPECT_EQ(dropped.out, "lowhighnew\n") << dropped;
  EXPECT_EQ(read_file(layers / "low/a"), "low");
  EXPECT_NE(with({"--ro-overlay", "/mnt"}, "echo new > /mnt/a").exit_code, 0);
  const Outcome kept = with({"--overlay", layers / "upper", layers / "work", "/mnt"}, "echo new > /mnt/a; cat /mnt/b");
  EXPECT_EQ(kept.out, "high") << kept;
  EXPECT_EQ(read_file(layers / "upper/a"), "new\n");
}

TEST_F(Bwrap, TheCommandIsPid1OrHasAReaper) {
  EXPECT_EQ(on_host({"--unshare-pid", "--as-pid-1", "sh", "-c", "echo $$"}).out, "1\n");
  EXPECT_NE(on_host({"--unshare-pid", "sh", "-c", "echo $$"}).out, "1\n");
}

TEST_F(Bwrap, Pid1HoldsNoSecretsOfTheCaller) {
  const Words look{"--unshare-pid",
                   "--proc",
                   "/proc",
                   "--clearenv",
                   "sh",
                   "-c",
                   "tr '\\0' ' ' < /proc/1/environ; tr '\\0' ' ' < /proc/1/cmdline; echo; env"};
  const Outcome outcome = on_host(look, {.stdin_is = Input::kNull, .env = {{"A_SECRET", "canary"}}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out.find("canary"), std::string::npos) << outcome;
  EXPECT_EQ(outcome.out.find("clearenv"), std::string::npos) << outcome;
  EXPECT_EQ(on_host({"sh", "-c", "echo $A_SECRET"}, {.stdin_is = Input::kNull, .env = {{"A_SECRET", "canary"}}}).out, "canary\n")
      << "the twin";
}

TEST_F(Bwrap, SessionsNamesAndDirectories) {
  const std::string session = "read -r pid name state parent group session rest < /proc/self/stat; test $session = $pid";
  EXPECT_NE(on_host({"sh", "-c", session}).exit_code, 0);
  EXPECT_EQ(on_host({"--new-session", "sh", "-c", session}).exit_code, 0);
  EXPECT_EQ(on_host({"--unshare-uts", "--hostname", "jar", "uname", "-n"}).out, "jar\n");
  EXPECT_EQ(on_host({"--unshare-user", "--uid", "7", "--gid", "8", "sh", "-c", "id -u; id -g"}).out, "7\n8\n");
  EXPECT_EQ(on_host({"--chdir", "/usr", "sh", "-c", "pwd; echo $PWD"}).out, "/usr\n/usr\n");
  EXPECT_EQ(on_host({"sh", "-c", "pwd"}).out, place_.path() + "\n") << "the caller's, where it is shown";
  EXPECT_EQ(on_host({"--setenv", "A", "b", "--unsetenv", "HOME", "sh", "-c", "echo $A$HOME"}).out, "b\n");
  EXPECT_EQ(on_host({"--argv0", "other", "sh", "-c", "echo $0"}).out, "other\n");
}

TEST_F(Bwrap, ANetworkOfItsOwnHasALoopbackAlone) {
  const Words names{"sh", "-c", "sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' '"};
  for (const Words& before : {Words{"--unshare-net"}, Words{"--unshare-net", "--unshare-pid"}}) {
    Words words = before;
    words.insert(words.end(), {"--proc", "/proc"});
    words.insert(words.end(), names.begin(), names.end());
    EXPECT_EQ(on_host(words).out, "lo\n");
  }
}

TEST_F(Bwrap, DiesWithItsParent) {
  const std::string start = program_ + " --ro-bind / / --die-with-parent ";
  for (const char* more : {"", "--unshare-pid --proc /proc "}) {
    Running caller({"sh", "-c", start + more + "sh -c 'echo up; exec sleep 1000'; true"}, {.stdin_is = Input::kNull});
    ASSERT_TRUE(caller.wait_for_output("up"));
    caller.send(SIGKILL);
    EXPECT_FALSE(caller.wait().output_held) << more;
  }
}

TEST_F(Bwrap, SaysWhereARecipeIsWeakerWhenItIsAsked) {
  const RunOptions asked{.stdin_is = Input::kNull, .env = {{"BELLJAR_VERBOSE", "1"}}};
  const Outcome told = on_host({"true"}, asked);
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_NE(told.err.find("it has the host's network"), std::string::npos) << told;
  EXPECT_EQ(on_host({"--unshare-net", "true"}, asked).err.find("it has the host's network"), std::string::npos);
  EXPECT_EQ(on_host({"true"}).err, "");
}

TEST_F(Bwrap, StartsItselfAgainInside) {
  const Outcome inner = bwrap({"--unshare-user", "--uid",  "0",      "--gid", "0",
                               "--cap-add",      "ALL",    "--bind", "/",     "/",
                               "--bind",         "/proc",  "/proc",  "--",    "/proc/self/exe",
                               "--unshare-all",  "--bind", "/",      "/",     "--bind",
                               "/proc",          "/proc",  "echo",   "inner"});
  EXPECT_EQ(inner.out, "inner\n") << inner;
}

// --- stubs: names to mount on that the host lacks (launch/recipe_stubs.h)

class BwrapStubs : public Bwrap {
 protected:
  // The workspace for writing, with names held that it lacks.
  Words held(Words more = {}) const {
    Words words{"--bind",
                work_,
                work_,
                "--ro-bind",
                "/dev/null",
                work_ + "/.rc",
                "--tmpfs",
                work_ + "/.agent",
                "--ro-bind",
                "/usr",
                work_ + "/.git/hooks/deep"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // All that is in it, a line each.
  std::string listing() const {
    return run({"sh", "-c", "find . -mindepth 1 | sort"}, {.stdin_is = Input::kNull, .cwd = work_}).out;
  }
  bool is_empty() const { return listing().empty(); }
  // A sandbox that has said `up` and waits for the end of its input.
  Running waiting(Words words, const std::string& name) const {
    Words all{program_, "--ro-bind", "/", "/"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"sh", "-c", "echo up; cat; echo x > " + work_ + "/" + name});
    return Running(all, {.cwd = work_});
  }

  std::string work_ = place_.make_dir("work");
};

const Words kOwnProcesses{"--unshare-user", "--unshare-pid"};

TEST_F(BwrapStubs, NothingIsLeftOnTheHost) {
  for (const Words& more : {Words{}, Words{"--unshare-user"}, kOwnProcesses, Words{"--unshare-user", "--unshare-pid", "--as-pid-1"},
                            Words{"--unshare-user", "--unshare-pid", "--die-with-parent"}}) {
    Words words = held(more);
    words.insert(words.end(),
                 {"sh", "-c", "find . -mindepth 1 | grep -v deep/ | sort; (echo x > .rc) 2>/dev/null || echo refused"});
    const Outcome outcome = on_host(words, {.stdin_is = Input::kNull, .cwd = work_});
    EXPECT_EQ(outcome.out, "./.agent\n./.git\n./.git/hooks\n./.git/hooks/deep\n./.rc\nrefused\n") << outcome;
    EXPECT_EQ(listing(), "");
  }
  Words asked{"--bind", work_, work_, "--dir", work_ + "/.agent", "--bind", place_.make_dir("other"), work_ + "/other", "true"};
  EXPECT_EQ(on_host(asked).exit_code, 0);
  EXPECT_EQ(listing(), "./.agent\n./other\n") << "what is asked for by itself, or for writing, stays";
}

TEST_F(BwrapStubs, NothingIsLeftWhereTheMountIsMadeReadOnlyAfterwards) {
  for (const Words& more : {Words{}, kOwnProcesses}) {
    Words words = held(more);
    words.insert(words.end(), {"--remount-ro", work_ + "/", "sh", "-c", "test -e .rc && ! touch y"});
    EXPECT_EQ(on_host(words, {.stdin_is = Input::kNull, .cwd = work_}).exit_code, 0);
    EXPECT_EQ(listing(), "");
  }
}

TEST_F(BwrapStubs, AStartThatFailsLeavesNothing) {
  for (const Words& more : {Words{}, kOwnProcesses}) {
    Words words = held(more);
    words.emplace_back("no-such-program");
    EXPECT_EQ(on_host(words).exit_code, 1);
    EXPECT_EQ(listing(), "");
  }
}

TEST_F(BwrapStubs, AFrontThatIsKilledLeavesNothing) {
  for (const Words& more : {Words{"--die-with-parent"}, Words{"--unshare-user", "--unshare-pid", "--die-with-parent"}}) {
    Running front = waiting(held(more), ".rc");
    ASSERT_TRUE(front.wait_for_output("up"));
    EXPECT_FALSE(is_empty());
    ASSERT_EQ(::kill(front.pid(), SIGKILL), 0);
    front.close_input();  // without a pid namespace, what the command had started lives on until then
    EXPECT_TRUE(eventually([&] { return is_empty(); })) << listing();
  }
}

TEST_F(BwrapStubs, WhatLivesOnInTheSandboxKeepsThem) {
  for (const Words& more : {Words{"--unshare-user"}, kOwnProcesses}) {
    const std::string go = place_ / "go";
    ASSERT_EQ(run({"mkfifo", go}).exit_code, 0);
    Words words = held(more);
    words.insert(words.end(), {"--dev", "/dev", "--bind", place_.path(), "/mnt", "sh", "-c",
                               "(read -r line < /mnt/go; (echo x > .rc) 2>/dev/null || echo refused > held) >/dev/null 2>&1 &"});
    ASSERT_EQ(on_host(words, {.stdin_is = Input::kNull, .cwd = work_}).exit_code, 0);
    EXPECT_TRUE(exists(work_ + "/.rc"));
    ASSERT_EQ(shell("echo > go").exit_code, 0);
    EXPECT_TRUE(eventually([&] { return listing() == "./held\n"; })) << listing();
    ASSERT_EQ(::unlink((work_ + "/held").c_str()), 0);
    ASSERT_EQ(::unlink(go.c_str()), 0);
  }
}

// The kernel takes a mount off whose name is removed elsewhere: the first to end must leave it.
TEST_F(BwrapStubs, TheLastOfSeveralSandboxesTakesThemAway) {
  Running first = waiting(held(kOwnProcesses), "y"), second = waiting(held(kOwnProcesses), ".rc");
  ASSERT_TRUE(first.wait_for_output("up"));
  ASSERT_TRUE(second.wait_for_output("up"));
  first.close_input();
  EXPECT_EQ(first.wait().exit_code, 0);
  EXPECT_TRUE(exists(work_ + "/.rc") && exists(work_ + "/.agent") && exists(work_ + "/.git/hooks/deep"));
  second.close_input();
  EXPECT_NE(second.wait().exit_code, 0) << "the name is held until its own end";
  EXPECT_EQ(listing(), "./y\n");
}

TEST_F(BwrapStubs, WhatTheUserPutsThereStays) {
  Running sandbox = waiting(held(kOwnProcesses), "y");
  ASSERT_TRUE(sandbox.wait_for_output("up"));
  place_.write("work/.rc", "mine");              // into the stub
  place_.write("work/.agent/settings", "mine");  // into the directory
  ASSERT_EQ(shell("echo mine > work/new && mv work/new work/.git/hooks/own").exit_code, 0);
  sandbox.close_input();
  EXPECT_EQ(sandbox.wait().exit_code, 0);
  EXPECT_EQ(listing(), "./.agent\n./.agent/settings\n./.git\n./.git/hooks\n./.git/hooks/own\n./.rc\n./y\n");
  EXPECT_EQ(read_file(work_ + "/.rc"), "mine");
  EXPECT_EQ(shell("stat -c %a work/.rc work/.agent work/.git").out, "644\n755\n755\n") << "the mark has gone";
}

TEST_F(BwrapStubs, AnEmptyFileOfTheUsersStays) {
  place_.write("work/.rc", "");
  Words words = held(kOwnProcesses);
  words.emplace_back("true");
  EXPECT_EQ(on_host(words).exit_code, 0);
  EXPECT_EQ(listing(), "./.rc\n");
  // Replaced, and touched.
  for (const char* act : {"rm work/.rc && : > work/.rc", "touch work/.rc"}) {
    ASSERT_EQ(::unlink((work_ + "/.rc").c_str()), 0);
    Running sandbox = waiting(held(kOwnProcesses), "y");
    ASSERT_TRUE(sandbox.wait_for_output("up"));
    ASSERT_EQ(shell(act).exit_code, 0);
    sandbox.close_input();
    (void)sandbox.wait();
    EXPECT_TRUE(exists(work_ + "/.rc")) << act;
  }
}

// Somebody who has it open will write, and finds it where it was.
TEST_F(BwrapStubs, AWriterThatHasNotWrittenYetKeepsTheFile) {
  Running sandbox = waiting(held(kOwnProcesses), "y");
  ASSERT_TRUE(sandbox.wait_for_output("up"));
  Running writer({"sh", "-c", "exec 3>>.rc; echo open; cat; echo mine >&3"}, {.cwd = work_});
  ASSERT_TRUE(writer.wait_for_output("open"));
  sandbox.close_input();
  (void)sandbox.wait();
  writer.close_input();
  EXPECT_EQ(writer.wait().exit_code, 0);
  EXPECT_EQ(read_file(work_ + "/.rc"), "mine\n");
}

// A keeper that was killed leaves its stubs to the next sandbox that mounts on them.
TEST_F(BwrapStubs, TheNextSandboxTakesAwayWhatAKilledKeeperLeft) {
  ASSERT_EQ(shell("umask 0; : > work/.rc; chmod 1644 work/.rc; mkdir work/.agent work/.other; chmod 1745 work/.agent").exit_code,
            0);
  Words words = held(kOwnProcesses);
  words.emplace_back("true");
  EXPECT_EQ(on_host(words).exit_code, 0);
  EXPECT_EQ(listing(), "./.other\n");
}

// From inside, a directory above a mount point can be marked as none of ours while another sandbox mounts on it.
TEST_F(BwrapStubs, ADirectoryWhoseMarkWasChangedIsLeftAlone) {
  Words words = held(kOwnProcesses);
  words.insert(words.end(), {"sh", "-c", "chmod 0755 .git; chmod 1745 .git"});
  EXPECT_EQ(on_host(words, {.stdin_is = Input::kNull, .cwd = work_}).exit_code, 0);
  EXPECT_EQ(listing(), "./.git\n");
}

TEST_F(BwrapStubs, NothingIsMadeInWhatIsShownForReading) {
  const std::string name = work_ + "/name";
  for (const Words& kind : {Words{"--tmpfs", name}, Words{"--ro-bind", "/dev/null", name}, Words{"--ro-bind", "/usr", name},
                            Words{"--proc", name}, Words{"--dev", name}, Words{"--tmpfs", name + "/below"}}) {
    for (const Words& shown :
         {Words{"--ro-bind", "/", "/"}, Words{"--bind", "/", "/", "--bind", work_, work_, "--remount-ro", work_},
          Words{"--bind", "/", "/", "--ro-bind", work_, work_}}) {
      Words words{program_};
      words.insert(words.end(), shown.begin(), shown.end());
      words.insert(words.end(), kind.begin(), kind.end());
      words.insert(words.end(), {"sh", "-c", "echo started"});
      const Outcome refused = run(words, {.stdin_is = Input::kNull, .cwd = work_});
      EXPECT_EQ(refused.exit_code, 1) << refused;
      EXPECT_TRUE(refused.err.ends_with(": Read-only file system\n")) << refused;
      EXPECT_EQ(listing(), "");
    }
    Words words{program_, "--ro-bind", "/", "/", "--bind", work_, work_};
    words.insert(words.end(), kind.begin(), kind.end());
    words.insert(words.end(), {"sh", "-c", "echo started"});
    EXPECT_EQ(run(words, {.stdin_is = Input::kNull, .cwd = work_}).out, "started\n") << kind[0];
    EXPECT_EQ(listing(), "");
  }
}

TEST_F(BwrapStubs, NothingOfItCanBeMadeWhereTheCallerCannot) {
  if (is_root()) return;
  const Outcome refused = on_host({"--bind", "/", "/", "--ro-bind", "/dev/null", "/stub", "true"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.err, "bwrap: Can't create file at /stub: Permission denied\n");
}

}  // namespace
}  // namespace belljar::test
