// `belljar run --warm`: who is not served by a spare and plays none, and what is never warm.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "e2e/support_run.h"
#include "e2e/support_warm.h"
#include "support/eventually.h"

namespace belljar::test {
namespace {

namespace fs = std::filesystem;

// python3 -c kUnderFilter CALL PROGRAM WORDS...: under a filter that refuses the call; "none": under none.
const std::string kUnderFilter =
    "import ctypes, os, struct, sys\n"
    "c = ctypes.CDLL(None)\n"
    "if sys.argv[1] != 'none':\n"
    " code = b''.join(struct.pack('HBBI', *one) for one in ((0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (6, 0, 0, 0x50001), "
    "(6, 0, 0, 0x7fff0000)))\n"  // SECCOMP_RET_ERRNO with EPERM for that call, SECCOMP_RET_ALLOW
    " text = ctypes.create_string_buffer(code)\n"
    " program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 4, ctypes.addressof(text)))\n"
    " c.prctl(38, 1, 0, 0, 0)\n"
    " if c.prctl(22, 2, program, 0, 0) != 0: sys.exit(99)\n"
    // The interpreter ignores signals, and has added to its environment.
    "import signal\n"
    "for one in (signal.SIGPIPE, signal.SIGXFSZ): signal.signal(one, signal.SIG_DFL)\n"
    "given = open('/proc/self/environ', 'rb').read().split(b'\\0')\n"
    "os.execve(sys.argv[2], sys.argv[2:], dict(one.split(b'=', 1) for one in given if one))\n";

// What limits.disk allows counts from what its run finds: a spare would have found something else.
TEST_F(Warm, ALimitOnTheDiskCountsFromTheStartOfItsRun) {
  const auto write_by_host = [&](const char* name) {
    std::ofstream(workspace_ / name) << "of the host";
    fs::resize_file(workspace_ / name, 0);
    ASSERT_EQ(::posix_fallocate(UniqueFd(::open((workspace_ / name).c_str(), O_WRONLY | O_CLOEXEC)).get(), 0, 30 << 20), 0);
  };
  const std::vector<std::string> limited{"--disk", "20MiB", "-c"};
  const auto run = [&](const std::string& text) {
    std::vector<std::string> args = limited;
    args.push_back(text);
    return again(args, options());
  };
  write_by_host("removed");
  EXPECT_EQ(run("true").outcome.exit_code, 0);
  // The twin; and one that the run above had started would be there by then, too.
  belljar({"run", "--warm", "-c", "true"}, options());
  ASSERT_TRUE(eventually([&] { return spares().size() >= 2; }));
  EXPECT_TRUE(again({"-c", "true"}, options()).warm);
  EXPECT_EQ(warm_command({"--json"}).out.find("--disk"), std::string::npos);
  fs::remove(workspace_ / "removed");
  const Ran over = run("head -c 30M /dev/zero > new");
  EXPECT_FALSE(over.warm);
  EXPECT_NE(over.outcome.exit_code, 0) << over.outcome;
  EXPECT_LE(fs::file_size(workspace_ / "new"), std::uintmax_t{20} << 20);
  fs::remove(workspace_ / "new");
  write_by_host("added");
  const Ran within = run("head -c 10M /dev/zero > new");
  EXPECT_FALSE(within.warm);
  EXPECT_EQ(within.outcome.exit_code, 0) << within.outcome;
}

TEST_F(Warm, NobodyInsideReachesTheSockets) {
  make_ready({"-c", "true"}, options());
  const std::string place = state_ / "belljar/warm";
  ASSERT_FALSE(fs::is_empty(place));
  const Ran ran = again({"-c", "ls " + place + "/*"}, options());
  EXPECT_TRUE(ran.warm);
  EXPECT_NE(ran.outcome.exit_code, 0) << ran.outcome;
}

TEST_F(Warm, NobodyInOtherNamespacesIsToldOrObeyed) {
  make_ready({"-c", "true"}, options());
  const std::set<std::string> before = spares();
  for (const char* what : {"--json", "--stop"}) {
    const Outcome asked = run({"/usr/bin/unshare", "--user", "--map-current-user", kBelljar, "warm", what}, options());
    EXPECT_EQ(asked.out, "") << asked;
  }
  EXPECT_EQ(spares(), before);
  EXPECT_NE(run({kBelljar, "warm", "--stop"}, options()).out, "") << "the twin";
}

TEST_F(Warm, WhatNobodyCanAnswerForMakesASpareOnce) {
  make_ready({"-c", "true"}, options());
  EXPECT_EQ(marks(), 0U) << "the twin";
  stop();
  home_.write("policy.toml", "# " + std::string(64U << 10, 'x') + "\n");
  home_.give_to(::geteuid(), ::getegid());
  ::chmod(home_.path().c_str(), 0755);
  EXPECT_EQ(belljar({"run", "--warm", "--policy", home_ / "policy.toml", "-c", "true"}, options()).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return marks() == 1; }));
  EXPECT_TRUE(spares().empty());
}

// A listener at a spare's place that is in other namespaces, as a command is, or under a filter that may be another one learns
// nothing of who comes. The twin: one of ours.
TEST_F(Warm, NobodyInASandboxPlaysTheSpare) {
  const std::string play =
      "import ctypes, os, socket, sys\n"
      "socket.setdefaulttimeout(20)\n"
      "def wait(listener):\n"
      " connection = listener.accept()[0]\n"
      " connection.settimeout(20)\n"
      " try: told = connection.recv(200000)\n"
      " except OSError: told = b''\n"
      " os.write(1, b'learned' if b'BELLJAR_SECRET=' in told else b'nothing')\n"
      "listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
      "if sys.argv[1] == 'inside' and ctypes.CDLL(None).unshare(0x10000000) != 0: sys.exit(99)\n"
      "os.unlink(sys.argv[2])\n"
      "listener.bind(sys.argv[2])\n"
      "listener.listen(2)\n"
      "os.write(1, b'there ')\n"
      "wait(listener)\n";
  struct Case {
    const char *who, *filter_of_fake, *filter_of_run, *learned;
  };
  const std::string fallocate = std::to_string(SYS_fallocate), setpriority = std::to_string(SYS_setpriority);
  for (const auto& [who, filter_of_fake, filter_of_run, learned] :
       {Case{"inside", "none", "none", "nothing"}, Case{"ours", fallocate.c_str(), setpriority.c_str(), "nothing"},
        Case{"ours", "none", "none", "learned"}}) {
    make_ready({"-c", "true"}, with_secret());
    std::vector<std::string> sockets;
    for (const auto& entry : fs::directory_iterator(state_ / "belljar/warm")) {
      if (!entry.path().filename().string().starts_with('.')) sockets.push_back(entry.path());
    }
    ASSERT_EQ(sockets.size(), 2U);
    for (const std::string& pid : spares()) {
      ::kill(std::stoi(pid), SIGKILL);
      EXPECT_TRUE(eventually([&] { return ::kill(std::stoi(pid), 0) != 0; }));
    }
    std::ranges::sort(sockets);
    const auto under = [](const char* filter, std::vector<std::string> words) {
      words.insert(words.begin(), {"/usr/bin/python3", "-c", kUnderFilter, filter});
      return words;
    };
    Running fake(under(filter_of_fake, {"/usr/bin/python3", "-c", play, who, sockets[0]}), options());
    ASSERT_TRUE(fake.wait_for_output("there"));
    const Outcome ran = run(under(filter_of_run, {kBelljar, "run", "--warm", "-c", "echo ran"}), with_secret());
    EXPECT_EQ(ran.out, "ran\n") << ran;
    const Outcome told = fake.wait();
    EXPECT_EQ(told.out, std::string("there ") + learned) << told << filter_of_run;
  }
}

// Who is confined may look like who is not: Landlock tells nobody. But the kernel does not let them look into the spare.
TEST_F(Warm, AConfinedCallerIsNotServed) {
  BELLJAR_NEEDS(landlock_abi_at_least(1));
  const std::string confine =
      "import ctypes, os, struct, sys\n"
      "c = ctypes.CDLL(None)\n"
      "if sys.argv[1] == 'confined':\n"
      " rules = c.syscall(444, ctypes.create_string_buffer(struct.pack('Q', 1 << 8)), 8, 0)\n"  // LANDLOCK_ACCESS_FS_MAKE_REG
      "c.prctl(38, 1, 0, 0, 0)\n"
      "if sys.argv[1] == 'confined' and c.syscall(446, rules, 0) != 0: sys.exit(99)\n"
      "os.execv(sys.argv[2], sys.argv[2:])\n";
  const auto as = [&](const std::string& how, const std::string& text) {
    return run({"/usr/bin/python3", "-c", confine, how, kBelljar, "run", "--warm", "-c", text}, options());
  };
  stop();
  ASSERT_EQ(as("free", "true").exit_code, 0);
  ASSERT_TRUE(eventually([&] { return spares().size() == 2; }));
  EXPECT_NE(as("confined", "echo x > made").exit_code, 0);
  EXPECT_FALSE(fs::exists(workspace_ / "made"));
  const std::set<std::string> before = spares();
  EXPECT_EQ(as("free", "echo x > made").exit_code, 0) << "the twin";
  EXPECT_NE(spares(), before) << "and it was warm";
  EXPECT_TRUE(fs::exists(workspace_ / "made"));
}

// The kernel tells how many filters there are, not which: two callers under one each may be under others.
TEST_F(Warm, ACallerUnderAFilterOfItsOwnIsNeitherServedNorMakesSpares) {
  const auto under = [&](long call, const std::string& text) {
    return run(
        {"/usr/bin/python3", "-c", kUnderFilter, call < 0 ? "none" : std::to_string(call), kBelljar, "run", "--warm", "-c", text},
        options());
  };
  const Outcome first = under(SYS_fallocate, "true");
  EXPECT_EQ(first.exit_code, 0) << first;
  EXPECT_EQ(under(-1, "true").exit_code, 0);
  ASSERT_TRUE(eventually([&] { return spares().size() == 2; })) << "the twin";
  const std::set<std::string> before = spares();
  EXPECT_EQ(under(SYS_fallocate, "! fallocate -l 10 made 2>/dev/null").exit_code, 0);
  EXPECT_EQ(under(SYS_setpriority, "fallocate -l 10 made").exit_code, 0);
  EXPECT_EQ(spares(), before);
  EXPECT_EQ(under(-1, "true").exit_code, 0);
  EXPECT_NE(spares(), before) << "the twin";
}

// What a spare would open by that name is its own.
TEST_F(Warm, APathOfTheCallersOwnProcessStartsCold) {
  const std::string here = "exec 9> out; exec " + std::string(kBelljar) + " run --warm --report /dev/fd/9 -c 'touch ran'";
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(run({"/bin/sh", "-c", here}, options()).exit_code, 0);
    EXPECT_TRUE(fs::remove(workspace_ / "ran"));
    EXPECT_GT(fs::file_size(workspace_ / "out"), 100U);
    EXPECT_TRUE(spares().empty());
  }
  // By a name that does not say so: of a descriptor that a spare has, and of one that it has not.
  home_.write("policy.toml", "mode = \"read-only\"\n");
  home_.give_to(::geteuid(), ::getegid());
  for (const char* fd : {"3", "9"}) {
    fs::remove(home_ / "link");
    fs::create_symlink(std::string("/dev/fd/") + fd, home_ / "link");
    for (int i = 0; i < 2; ++i) {
      const std::string text = format("exec {}< {}; exec {} run --warm --policy {} -c 'echo x > ran'", fd, home_ / "policy.toml",
                                      kBelljar, home_ / "link");
      EXPECT_NE(run({"/bin/sh", "-c", text}, options()).exit_code, 0);
      EXPECT_FALSE(fs::exists(workspace_ / "ran"));
      if (*fd == '3') {
        EXPECT_TRUE(eventually([&] { return marks() == 1; })) << "the spare of the run before has ended";
      }
    }
  }
}

TEST_F(Warm, WhatCannotBeWarmStartsCold) {
  make_ready({"-c", "true"}, options());
  stop();
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"--txn", "-c", "echo x > made"},
           {"--verbose", "-c", "true"},
           {"--policy", "danger-full-access", "-c", "true"},
           {"--net", "proxy", "--publish", format("{}:80", 20000 + ::getpid() % 10000), "-c", "true"}}) {
    std::vector<std::string> cold{"run"};
    cold.insert(cold.end(), args.begin(), args.end());
    const Ran ran = again(args, options());
    // No file system takes a transaction everywhere.
    EXPECT_EQ(ran.outcome.exit_code, args.front() == "--txn" ? belljar(cold, options()).exit_code : 0) << ran.outcome;
    EXPECT_TRUE(spares().empty()) << args.front();
  }
  EXPECT_FALSE(fs::exists(workspace_ / "made"));
  make_ready({"--net", "proxy", "-c", ": /proc/self/stat, a text and no path"}, options());
  EXPECT_TRUE(again({"--net", "proxy", "-c", "true"}, options()).warm) << "the twin of a proxy that publishes";
  RunOptions wrong = options();
  wrong.env["BELLJAR_WARM"] = "yes";
  const Outcome refused = belljar({"run", "-c", "true"}, wrong);
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_NE(refused.err.find("BELLJAR_WARM"), std::string::npos);
  wrong.env["BELLJAR_WARM"] = "1";
  EXPECT_EQ(belljar({"run", "-c", "true"}, wrong).exit_code, 0) << "the twin";
}

}  // namespace
}  // namespace belljar::test
