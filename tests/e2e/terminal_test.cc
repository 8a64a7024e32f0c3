// A terminal as a person has it: an interactive shell with job control on a pty, and belljar as one of its jobs.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <string>

#include "base/unique_fd.h"
#include "support/built.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

using namespace std::chrono_literals;

// The destructor hangs up, which ends the shell and its jobs.
class Shell {
 public:
  explicit Shell(const std::string& cwd) {
    int master = -1;
    pid_ = ::forkpty(&master, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      ::setenv("PS1", "ready> ", 1);
      ::setenv("TERM", "dumb", 1);
      if (::chdir(cwd.c_str()) == 0) ::execlp("bash", "bash", "--norc", "--noprofile", "-i", nullptr);
      ::_exit(127);
    }
    master_ = UniqueFd(master);
  }
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;
  ~Shell() {
    master_.reset();
    ::kill(pid_, SIGHUP);
    ::waitpid(pid_, nullptr, 0);
  }

  void type(const std::string& text) const { EXPECT_EQ(::write(master_.get(), text.data(), text.size()), std::ssize(text)); }
  // What was shown up to and with `text`, since the last call.
  bool sees(const std::string& text) {
    const auto until = std::chrono::steady_clock::now() + 60s;
    for (;;) {
      if (const auto at = shown_.find(text); at != std::string::npos) {
        passed_ = shown_.substr(0, at);
        shown_.erase(0, at + text.size());
        return true;
      }
      pollfd wait{master_.get(), POLLIN, 0};
      char buffer[4096];
      if (std::chrono::steady_clock::now() > until || ::poll(&wait, 1, 1000) < 0) return false;
      if (wait.revents == 0) continue;
      const ssize_t got = ::read(master_.get(), buffer, sizeof buffer);
      if (got <= 0) return false;
      shown_.append(buffer, static_cast<std::size_t>(got));
    }
  }
  const std::string& shown() const { return shown_; }
  const std::string& passed() const { return passed_; }  // before what was seen last

 private:
  pid_t pid_ = -1;
  UniqueFd master_;
  std::string shown_, passed_;
};

class Job : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    BELLJAR_NEEDS(program("bash"));
  }
  TempDir workspace_;
};

// A cat that runs in the foreground and answers: what is typed from now on is for it. What is typed earlier may still be the
// shell's.
constexpr const char* kCat = "sh -c 'echo st''arted; exec cat'\n";
void start_cat(Shell& shell, const std::string& command) {
  shell.type(command);
  ASSERT_TRUE(shell.sees("started\r\n")) << shell.shown();
  shell.type("answer\n");
  ASSERT_TRUE(shell.sees("answer\r\nanswer\r\n")) << shell.shown();
}

const std::string kRun = std::string(kBelljar) + " run -- ";
const std::string kRunPatient = std::string(kBelljar) + " run --kill-grace 600s -- ";

// `belljar` alone, for people: where they are, what they could try.
TEST_F(Job, BelljarAloneSaysInTenLinesWhatToTry) {
  Shell shell(workspace_.path());
  ASSERT_TRUE(shell.sees("ready> ")) << shell.shown();
  shell.type("mkdir bin .git && touch bin/claude Makefile && chmod +x bin/claude && PATH=$PWD/bin:$PATH && echo ma''de\n");
  ASSERT_TRUE(shell.sees("made")) << shell.shown();
  shell.type(std::string(kBelljar) + "; echo co''de $?\n");
  ASSERT_TRUE(shell.sees(" (a git repository):")) << shell.shown();
  EXPECT_TRUE(shell.sees(" -- claude ")) << shell.shown();
  EXPECT_TRUE(shell.sees("--txn -c 'make'")) << shell.shown();
  EXPECT_TRUE(shell.sees("belljar --help")) << shell.shown();
  EXPECT_TRUE(shell.sees("code 0")) << shell.shown();
}

TEST_F(Job, APlainProgramStopsAtControlZAndGoesOnWithFg) {
  const Leftovers left;
  {
    Shell shell(workspace_.path());
    ASSERT_TRUE(shell.sees("ready> ")) << shell.shown();
    start_cat(shell, kRun + "sh -c 'echo st''arted; cat; echo en''ded'\n");
    shell.type("\x1a");
    ASSERT_TRUE(shell.sees("Stopped")) << shell.shown();
    shell.type("jobs\n");
    ASSERT_TRUE(shell.sees("Stopped")) << shell.shown();
    shell.type("fg\n");
    ASSERT_TRUE(shell.sees("belljar run")) << shell.shown();  // bash names the job
    shell.type("typed\n");
    ASSERT_TRUE(shell.sees("typed\r\ntyped\r\n")) << shell.shown();  // the terminal's echo, and cat's
    shell.type("\x1a");
    ASSERT_TRUE(shell.sees("Stopped")) << "a second time: " << shell.shown();
    shell.type("fg\n");
    ASSERT_TRUE(shell.sees("belljar run")) << shell.shown();
    shell.type("again\n");
    ASSERT_TRUE(shell.sees("again\r\nagain\r\n")) << shell.shown();
    shell.type("\x04");
    ASSERT_TRUE(shell.sees("ended")) << shell.shown();
    ASSERT_TRUE(shell.sees("ready> ")) << shell.shown();  // what is typed earlier is still the command's
    shell.type("echo co''de $?\n");
    EXPECT_TRUE(shell.sees("code 0")) << shell.shown();
    shell.type("exit\n");
    shell.sees("exit");
  }
  EXPECT_EQ(left.report(), "");
}

TEST_F(Job, AShellInsideStopsItsOwnJobAndNotUs) {
  Shell shell(workspace_.path());
  ASSERT_TRUE(shell.sees("ready> ")) << shell.shown();
  shell.type(kRun + "bash --norc --noprofile -i\n");
  ASSERT_TRUE(shell.sees("$ ")) << shell.shown();
  start_cat(shell, kCat);
  shell.type("\x1a");
  ASSERT_TRUE(shell.sees("Stopped")) << shell.shown();
  shell.type("echo sti''ll inside\n");
  ASSERT_TRUE(shell.sees("still inside\r\n")) << shell.shown();
  shell.type("kill -KILL $$\n");  // `exit` would warn of the stopped job
  EXPECT_TRUE(shell.sees("ready> ")) << shell.shown();
}

TEST_F(Job, ControlCEndsTheProgramAndTellsTheShell) {
  Shell shell(workspace_.path());
  ASSERT_TRUE(shell.sees("ready> ")) << shell.shown();
  start_cat(shell, kRun + kCat);
  shell.type("\x03");
  ASSERT_TRUE(shell.sees("ready> ")) << shell.shown();
  shell.type("echo co''de $?\n");
  EXPECT_TRUE(shell.sees("code 130")) << shell.shown();
}

// As it would without us: a program that reads the keys as they are gets no end of input by ^D.
TEST_F(Job, ATerminalThatIsClosedHangsUpTheOneInside) {
  {
    Shell shell(workspace_.path());
    ASSERT_TRUE(shell.sees("ready> ")) << shell.shown();
    shell.type("exec " + kRunPatient + "sh -c 'trap \"\" HUP; stty raw; echo st\"\"arted; cat; echo > go\"\"ne'\n");
    ASSERT_TRUE(shell.sees("started")) << shell.shown();
  }
  EXPECT_TRUE(exists(workspace_ / "gone"));
}

TEST_F(Job, ATerminalThatIsClosedEndsWhatIgnoresThat) {
  Shell shell(workspace_.path());
  ASSERT_TRUE(shell.sees("ready> ")) << shell.shown();
  shell.type("exec " + kRun + "sh -c 'trap \"\" HUP; echo st\"\"arted; sleep 1000'\n");
  ASSERT_TRUE(shell.sees("started")) << shell.shown();
}

// It cannot leave the alternate screen, show the cursor or let go of the mouse any more.
TEST_F(Job, WhatAKilledProgramSwitchedOnInTheTerminalIsSwitchedOff) {
  Shell shell(workspace_.path());
  ASSERT_TRUE(shell.sees("ready> ")) << shell.shown();
  const std::string on = R"(printf '\033[?1049h\033[?1003h\033[?25l\033[>1uin si''de'; )";
  shell.type(kRun + "sh -c \"" + on + "kill -KILL \\$\\$\"\n");
  ASSERT_TRUE(shell.sees("in side")) << shell.shown();
  EXPECT_TRUE(shell.sees("\033[0m\033[<1u\033[?25h\033[?1003l\033[?1049l")) << shell.shown();
  ASSERT_TRUE(shell.sees("ready> ")) << shell.shown();
  shell.type("echo co''de $?\n");
  EXPECT_TRUE(shell.sees("code 137")) << shell.shown();
  shell.type(kRun + "sh -c \"" + on + "\"\n");
  ASSERT_TRUE(shell.sees("in side")) << shell.shown();
  ASSERT_TRUE(shell.sees("ready> ")) << shell.shown();
  EXPECT_EQ(shell.passed().find("\033[?1049l"), std::string::npos) << "who ends by itself may mean it";
}

}  // namespace
}  // namespace belljar::test
