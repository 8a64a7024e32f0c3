// What becomes of the caller's descriptors: handed over, relayed, on a terminal of our own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "front/stdio.h"
#include "runtime/support_plain.h"
#include "support/temp_dir.h"

namespace belljar::runtime {
namespace {

using test::open_pipe;
using test::read_to_end;
using test::run_shell;

UniqueFd open_file(const std::string& path, int flags) { return UniqueFd(open(path.c_str(), flags | O_CLOEXEC, 0644)); }

ino_t inode(int fd) {
  struct stat status{};
  EXPECT_EQ(fstat(fd, &status), 0);
  return status.st_ino;
}

RunSettings session(int in, int out, int err) { return {.stdio = {.host = {in, out, err}}}; }

TEST(FdKind, TellsWhatMayBeHandedOver) {
  const test::TempDir dir;
  const auto pipe = open_pipe();
  const UniqueFd file = open_file(dir.write("f", ""), O_RDWR), null = open_file("/dev/null", O_RDWR),
                 zero = open_file("/dev/zero", O_RDWR);
  const test::Terminal terminal = test::open_terminal();
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  const UniqueFd one(sockets[0]), two(sockets[1]);
  EXPECT_EQ(front::fd_kind(pipe.read.get()), front::FdKind::kPipe);
  EXPECT_EQ(front::fd_kind(null.get()), front::FdKind::kNull);
  EXPECT_EQ(front::fd_kind(file.get()), front::FdKind::kRegular);
  EXPECT_EQ(front::fd_kind(zero.get()), front::FdKind::kOther);
  EXPECT_EQ(front::fd_kind(terminal.slave.get()), front::FdKind::kTerminal);
  EXPECT_EQ(front::fd_kind(one.get()), front::FdKind::kSocket);
  EXPECT_EQ(front::fd_kind(-1), front::FdKind::kClosed);
}

TEST(Stdio, PipesAndNullAreHandedOver) {
  const auto in = open_pipe(), out = open_pipe();
  const UniqueFd null = open_file("/dev/null", O_RDWR);
  auto stdio = front::Stdio::open({.host = {in.read.get(), out.write.get(), null.get()}});
  ASSERT_TRUE(stdio);
  EXPECT_EQ(stdio->command_fd(0), in.read.get());
  EXPECT_EQ(stdio->command_fd(1), out.write.get());
  EXPECT_EQ(stdio->command_fd(2), null.get());
}

TEST(Stdio, AFileIsNeverHandedOver) {
  const test::TempDir dir;
  const UniqueFd in = open_file(dir.write("in", "text"), O_RDWR), out = open_file(dir / "out", O_WRONLY | O_CREAT);
  auto stdio = front::Stdio::open({.host = {in.get(), out.get(), out.get()}});
  ASSERT_TRUE(stdio);
  for (int n = 0; n < 3; ++n) EXPECT_EQ(front::fd_kind(stdio->command_fd(n)), front::FdKind::kPipe) << n;
  EXPECT_EQ(inode(stdio->command_fd(1)), inode(stdio->command_fd(2)));  // one pipe keeps their order
}

// The attack behind the rule: a log opened for appending, re-opened through /proc/self/fd to overwrite it.
TEST(Stdio, ACommandCannotReopenAFileThatItWritesTo) {
  const test::TempDir dir;
  const std::string path = dir.write("log", "history\n");
  const UniqueFd log = open_file(path, O_WRONLY | O_APPEND), null = open_file("/dev/null", O_RDWR);
  const RunOutcome ran =
      run_shell("echo appended; (: > /proc/self/fd/1) 2>/dev/null; echo more", {}, session(null.get(), log.get(), null.get()));
  EXPECT_EQ(ran.result.exit_code, 0);
  EXPECT_EQ(test::read_file(path), "history\nappended\nmore\n");
}

TEST(Stdio, AFileGivesItsBytesAndKeepsWhatNobodyRead) {
  const test::TempDir dir;
  const UniqueFd in = open_file(dir.write("in", "first\nsecond\nthird\n"), O_RDONLY), null = open_file("/dev/null", O_RDWR);
  const auto out = open_pipe();
  EXPECT_EQ(run_shell("true", {}, session(in.get(), null.get(), null.get())).result.exit_code, 0);
  EXPECT_EQ(lseek(in.get(), 0, SEEK_CUR), 0);
  EXPECT_EQ(run_shell("head -c 6 >/dev/null", {}, session(in.get(), null.get(), null.get())).result.exit_code, 0);
  EXPECT_EQ(lseek(in.get(), 0, SEEK_CUR), 6);
  EXPECT_EQ(run_shell("cat", {}, session(in.get(), out.write.get(), null.get())).result.exit_code, 0);
  char buffer[64];
  EXPECT_EQ(read(out.read.get(), buffer, sizeof buffer), 13);
}

TEST(Stdio, OrderOfStdoutAndStderrInOneFileIsKept) {
  const test::TempDir dir;
  const std::string path = dir / "log";
  const UniqueFd log = open_file(path, O_WRONLY | O_CREAT), null = open_file("/dev/null", O_RDWR);
  run_shell("for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done", {}, session(null.get(), log.get(), log.get()));
  std::string expected;
  for (int i = 1; i < 10; ++i) expected += "o" + std::to_string(i) + "\ne" + std::to_string(i) + "\n";
  EXPECT_EQ(test::read_file(path), expected);
}

TEST(Stdio, ASocketIsRelayedBothWays) {
  int in[2], out[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out), 0);
  UniqueFd in_ours(in[0]), in_theirs(in[1]), out_ours(out[0]), out_theirs(out[1]);
  ASSERT_EQ(write(in_ours.get(), "ping", 4), 4);
  in_ours.reset();
  const UniqueFd null = open_file("/dev/null", O_RDWR);
  EXPECT_EQ(run_shell("cat; echo pong", {}, session(in_theirs.get(), out_theirs.get(), null.get())).result.exit_code, 0);
  out_theirs.reset();
  EXPECT_EQ(read_to_end(out_ours.get()), "pingpong\n");
}

TEST(Stdio, AReaderThatGoesAwayIsASigpipe) {
  int out[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out), 0);
  const UniqueFd theirs(out[1]), null = open_file("/dev/null", O_RDWR);
  close(out[0]);
  EXPECT_EQ(run_shell("exec yes", {}, session(null.get(), theirs.get(), null.get())).result.exit_code, 128 + SIGPIPE);
}

TEST(Stdio, AFullDeviceIsToldAndTheCommandLearnsIt) {
  const UniqueFd full = open_file("/dev/full", O_WRONLY), null = open_file("/dev/null", O_RDWR);
  const RunOutcome ran = run_shell("exec yes", {}, session(null.get(), full.get(), null.get()));
  EXPECT_EQ(ran.result.exit_code, 128 + SIGPIPE);
  ASSERT_EQ(ran.notes.size(), 1U);
  EXPECT_EQ(ran.notes[0], "cannot write stdout: No space left on device; output of the command was lost");
}

TEST(Stdio, TwoHundredMegabytesArriveWhole) {
  const test::TempDir dir;
  const UniqueFd log = open_file(dir / "log", O_RDWR | O_CREAT), null = open_file("/dev/null", O_RDWR);
  const RunOutcome ran = run_shell("head -c 200000000 /dev/zero", {}, session(null.get(), log.get(), null.get()));
  EXPECT_EQ(ran.result.exit_code, 0);
  EXPECT_EQ(lseek(log.get(), 0, SEEK_END), 200000000);
}

TEST(Stdio, TheCallersDescriptorsStayBlocking) {
  const test::Terminal terminal = test::open_terminal();
  const UniqueFd null = open_file("/dev/null", O_RDWR);
  run_shell("echo x", {}, session(null.get(), terminal.slave.get(), null.get()));
  EXPECT_EQ(fcntl(terminal.slave.get(), F_GETFL) & O_NONBLOCK, 0);
}

// Types into and reads from the outer terminal while the command runs on the inner one.
struct Talk {
  RunOutcome ran;
  std::string shown;
};
Talk talk(const std::string& script, const std::string& wait_for, const std::string& type) {
  test::Terminal terminal = test::open_terminal();
  const winsize size{33, 101, 0, 0};
  EXPECT_EQ(ioctl(terminal.slave.get(), TIOCSWINSZ, &size), 0);
  Talk result;
  std::thread user([&] {
    char buffer[4096];
    bool typed = false;
    for (ssize_t got = 0; (got = read(terminal.master.get(), buffer, sizeof buffer)) > 0;) {
      result.shown.append(buffer, static_cast<std::size_t>(got));
      if (!typed && !type.empty() && result.shown.find(wait_for) != std::string::npos)
        typed = write(terminal.master.get(), type.data(), type.size()) > 0;
    }
  });
  termios before{}, after{};
  EXPECT_EQ(tcgetattr(terminal.slave.get(), &before), 0);
  RunSettings both = session(terminal.slave.get(), terminal.slave.get(), terminal.slave.get());
  backend::Prepared (*prepared)() = [] {
    backend::Prepared p = test::plain();
    return p;
  };
  result.ran = run_shell(script, {}, both, prepared);
  EXPECT_EQ(tcgetattr(terminal.slave.get(), &after), 0);
  EXPECT_EQ(before.c_lflag, after.c_lflag);
  EXPECT_EQ(before.c_oflag, after.c_oflag);
  terminal.slave.reset();
  user.join();
  return result;
}

TEST(Pty, TheCommandHasATerminalOfItsOwnWithTheRightSize) {
  const Talk result = talk("tty >/dev/null && test -t 0 && test -t 1 && test -t 2 && stty size </dev/tty", "", "");
  EXPECT_EQ(result.ran.result.exit_code, 0);
  EXPECT_EQ(result.shown, "33 101\r\n");
}

TEST(Pty, KeysReachTheCommandAndControlCInterruptsIt) {
  const Talk result = talk("trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done", "ready", "\x03");
  EXPECT_EQ(result.ran.result.exit_code, 5);
  EXPECT_NE(result.shown.find("caught"), std::string::npos);
}

TEST(Pty, EverythingWrittenBeforeTheEndIsShown) {
  const Talk result = talk("seq 1 20000; echo end", "", "");
  EXPECT_EQ(result.shown.substr(result.shown.size() - 12), "20000\r\nend\r\n");
  EXPECT_EQ(std::count(result.shown.begin(), result.shown.end(), '\n'), 20001);
}

TEST(Pty, ARedirectedStderrStaysWhereItIs) {
  const test::Terminal terminal = test::open_terminal();
  auto err = open_pipe();
  backend::Prepared (*prepared)() = test::plain;
  const RunOutcome ran = run_shell("test -t 1 && ! test -t 2 && echo apart >&2", {},
                                   session(terminal.slave.get(), terminal.slave.get(), err.write.get()), prepared);
  EXPECT_EQ(ran.result.exit_code, 0);
  err.write.reset();
  EXPECT_EQ(read_to_end(err.read.get()), "apart\n");
}

}  // namespace
}  // namespace belljar::runtime
