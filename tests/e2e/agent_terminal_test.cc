// belljar agent on a terminal: questions, colours, Ctrl-C.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "e2e/support_run.h"
#include "support/as_user.h"
#include "support/built.h"
#include "support/engine.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

using namespace std::chrono_literals;

// The program with a terminal of its own; hung up by the destructor.
class OnTerminal {
 public:
  OnTerminal(const std::string& cwd, std::vector<std::string> words) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    int master = -1;
    pid_ = ::forkpty(&master, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      ::setenv("TERM", "xterm", 1);
      ::unsetenv("NO_COLOR");
      if (::chdir(cwd.c_str()) == 0) ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    master_ = UniqueFd(master);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;
  ~OnTerminal() {
    master_.reset();
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }

  void type(const std::string& text) const { EXPECT_EQ(::write(master_.get(), text.data(), text.size()), std::ssize(text)); }
  // Reads up to and with `text`, since the last call.
  bool sees(const std::string& text) {
    const auto until = std::chrono::steady_clock::now() + 60s;
    for (;;) {
      if (const auto at = shown_.find(text); at != std::string::npos) {
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
  int exit_code() {
    (void)sees("nothing says this");
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd master_;
  std::string shown_;
};

class AgentTerminal : public Run {
 protected:
  std::vector<std::string> agent(const std::string& script) const {
    return {kBelljar, "agent", "--no-skills", "--provider", "scripted", "--script", place_.write("script.json", script), "go"};
  }
  TempDir place_;
};

constexpr const char* kTwoFiles = R"([
  {"text": "First \u001b[2J this.", "calls": [{"name": "write_file", "arguments": {"path": "a", "content": "x"}},
                                              {"name": "write_file", "arguments": {"path": "b", "content": "y\u001b[2J"}}]},
  {"expect": "the user said no", "text": "Half of it is done."}])";

TEST_F(AgentTerminal, TheUserIsAskedAndDecides) {
  OnTerminal terminal(workspace_.path(), agent(kTwoFiles));
  ASSERT_TRUE(terminal.sees("First \\x1b[2J this.")) << terminal.shown();
  ASSERT_TRUE(terminal.sees("\033[36m> write_file  a\033[0m")) << terminal.shown();
  ASSERT_TRUE(terminal.sees("write_file wants to do this:")) << terminal.shown();
  ASSERT_TRUE(terminal.sees("no > ")) << terminal.shown();
  terminal.type("y\n");
  ASSERT_TRUE(terminal.sees("write_file wants to do this:")) << terminal.shown();
  ASSERT_TRUE(terminal.sees("no > ")) << terminal.shown();
  terminal.type("\n");
  ASSERT_TRUE(terminal.sees("Half of it is done.")) << terminal.shown();
  EXPECT_EQ(terminal.exit_code(), 0);
  EXPECT_TRUE(exists(workspace_ / "a"));
  EXPECT_FALSE(exists(workspace_ / "b"));
}

// Document 001's check of the user interface: "Run pwd", "Run node --version", in its image.
class AgentInContainer : public AgentTerminal {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(start_engine(engine_));
    ASSERT_EQ(engine_->client({"tag", Engine::image(), "node:20-slim"}).exit_code, 0);
    ::setenv("DOCKER_HOST", engine_->address().c_str(), 1);
    workspace_.give_to(user_uid(), user_gid());
  }
  void TearDown() override { ::unsetenv("DOCKER_HOST"); }
  std::unique_ptr<Engine> engine_;
};

TEST_F(AgentInContainer, ATaskOnATerminalRunsThere) {
  std::vector<std::string> words = agent(R"([
    {"expect": "go", "calls": [{"name": "bash", "arguments": {"command": "pwd; ls /bin/busybox"}}]},
    {"expect": "/bin/busybox", "calls": [{"name": "bash", "arguments": {"command": "node --version"}}]},
    {"expect": "v20.0.0-of-the-image", "text": "Both were run."}])");
  words.insert(words.begin() + 2, {"--backend", "container"});
  OnTerminal terminal(workspace_.path(), words);
  for (const char* command : {"pwd", "node --version"}) {
    ASSERT_TRUE(terminal.sees("bash wants to do this:")) << terminal.shown();
    ASSERT_TRUE(terminal.sees(command)) << terminal.shown();
    ASSERT_TRUE(terminal.sees("no > ")) << terminal.shown();
    terminal.type("y\n");
  }
  ASSERT_TRUE(terminal.sees("Both were run.")) << terminal.shown();
  EXPECT_EQ(terminal.exit_code(), 0);
  EXPECT_TRUE(engine_->containers().empty());
}

TEST_F(AgentTerminal, ControlCWhileAskedIsNo) {
  const Leftovers left({workspace_.path()});
  OnTerminal terminal(workspace_.path(), agent(kTwoFiles));
  ASSERT_TRUE(terminal.sees("no > ")) << terminal.shown();
  terminal.type("\x03");
  EXPECT_EQ(terminal.exit_code(), 130) << terminal.shown();
  EXPECT_FALSE(exists(workspace_ / "a"));
  EXPECT_EQ(left.report(), "");
}

}  // namespace
}  // namespace belljar::test
