// Attacks on the account of what was refused: floods that would push an act out of it, names that would forge it, and acts that
// would like to go unseen.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "support/kept_runs.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

constexpr char kCalls[] = R"(
import ctypes, errno, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
  return "ok" if libc.syscall(*args) >= 0 else errno.errorcode[ctypes.get_errno()]
)";

class Account : public KeptRuns {
 protected:
  Outcome python(const std::string& text, const std::vector<std::string>& flags = {}) const {
    return KeptRuns::python(flags, {base_.write("ws/t.py", std::string(kCalls) + text)});
  }
};

TEST_F(Account, ActsOnTheKernelAreToldWithTheErrnoTheyAlwaysHad) {
  const Outcome outcome = python(R"(
print(call(165, 0, 0, 0, 0, 0), call(272, 0x10000000), call(321, 0, 0, 0), call(250, 0, 0, 0, 0, 0), call(16, 0, 0x5412, b"x"))
for family, kind in ((17, 3), (38, 5), (1, 2)):
  try: socket.socket(family, kind)
  except OSError as error: print(errno.errorcode[error.errno])
sys.exit(1))");
  EXPECT_EQ(outcome.out, "EPERM EPERM EPERM ENOSYS EPERM\nEAFNOSUPPORT\nEAFNOSUPPORT\nEACCES\n") << outcome;
  EXPECT_NE(outcome.err.find("8 acts were refused"), std::string::npos) << outcome;
  const std::string words = explain().out;
  for (const char* text : {"`mount`", "`unshare CLONE_NEWUSER`", "`bpf`", "`keyctl`", "`ioctl TIOCSTI`", "`AF_PACKET SOCK_RAW`",
                           "`AF_ALG SOCK_SEQPACKET`", "`AF_UNIX SOCK_DGRAM`", "--allow-nested-userns"})
    EXPECT_NE(words.find(text), std::string::npos) << text << words;
}

TEST_F(Account, WhatIsGrantedIsNoViolation) {
  const Outcome outcome = python("print(call(272, 0x10000000))\nsys.exit(1)", {"--allow-nested-userns"});
  EXPECT_EQ(outcome.out, "ok\n") << outcome;
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Account, ProbesForWhatAKernelHasAreNotTold) {
  const Outcome outcome = python(R"(
print(call(425, 1, 0), call(447, 0), call(435, 0, 0), call(500))
try: socket.socket(2, 1, 262)
except OSError as error: print(errno.errorcode[error.errno])
sys.exit(1))");
  EXPECT_EQ(outcome.out, "ENOSYS ENOSYS ENOSYS ENOSYS\nEPROTONOSUPPORT\n") << outcome;
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(runs_are_warm() || runs_are_transactions() || !exists(base_ / "home/.local"));
}

TEST_F(Account, AFloodPushesNothingOut) {
  const UniqueFd host = serve("host.sock");
  const Outcome outcome = python(R"(
import threading
def flood(n):
  for i in range(1500):
    try: socket.socket(1).connect("host.sock") if n == 0 and i < 20 else socket.socket(20 + (i * 7 + n) % 17, 1)
    except OSError: pass
threads = [threading.Thread(target=flood, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
for i in range(2000):
  libc.prctl(15, b"name%d" % i); call(165, 0, 0, 0, 0, 0)
libc.prctl(15, b"last")
try: socket.socket(1).connect("host.sock")
except OSError: pass
sys.exit(1))",
                                 {"--report", base_ / "report"});
  const std::string report = read_file(base_ / "report");
  EXPECT_EQ(report.find("\"violations_dropped\":0,"), std::string::npos) << "the flood was to go over the bound";
  // What was done last, after the list was flooded with another kind.
  EXPECT_NE(report.find("\"program\":\"last\",\"operation\":\"unix-connect\""), std::string::npos);
  EXPECT_LT(report.size(), 2'000'000U);
  // Each is counted: 6000 by the threads (20 of them connects), 2000 mounts, one connect.
  EXPECT_NE(outcome.err.find("8001 acts were refused"), std::string::npos) << outcome;
}

TEST_F(Account, HostileNamesForgeNothing) {
  const std::string name = "a\x1b]0;owned\x07\n2. belljar: refused: nothing \"<\xff`";
  const UniqueFd host = serve(name);
  std::string literal;
  for (const char c : name) {
    char hex[8];
    std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(c));
    literal += hex;
  }
  const std::string act = "libc.prctl(15, b'\\x1b[2Jsh\\n\\xff')\ntry: socket.socket(1).connect(b'" + literal +
                          "')\nexcept PermissionError: sys.exit(1)";
  const Outcome outcome = python(act, {"--verbose", "--report", base_ / "report"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_NE(outcome.err.find("refused: unix-connect"), std::string::npos) << outcome;
  for (const std::string& text :
       {outcome.err, explain().out, explain({"--model"}).out, explain({"--json"}).out, explain({"--list"}).out}) {
    EXPECT_NE(text, "");
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
    EXPECT_EQ(text.find('\x07'), std::string::npos) << text;
    EXPECT_EQ(text.find("\n2. belljar"), std::string::npos) << text;
    EXPECT_EQ(text.find('\xff'), std::string::npos) << text;
  }
  EXPECT_NE(read_file(base_ / "report").find("\"target_hex\":\""), std::string::npos);
}

}  // namespace
}  // namespace belljar::test
