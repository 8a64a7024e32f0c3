#include "front/front.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "base/wake.h"

namespace belljar::front {
namespace {

using namespace std::chrono_literals;

// Remembers what reaches it, and ends after some of it.
class Held final : public CommandControl {
 public:
  Held(Front& front, std::size_t ends_after) : front_(front), ends_after_(ends_after) {}
  void pass_on(int signal) override { take(signal); }
  void kill() override { take(SIGKILL); }
  std::size_t add_pollfds(pollfd* into) override {
    *into = {ended.get(), POLLIN, 0};
    return 1;
  }
  void handle(std::span<const pollfd> fds, bool /*moved*/) override {
    if (!fds.empty() && fds[0].revents != 0) front_.ended();
  }

  std::vector<int> taken;
  Wake ended;

 private:
  void take(int signal) {
    taken.push_back(signal);
    if (taken.size() == ends_after_) ended.ring();
  }
  Front& front_;
  std::size_t ends_after_;
};

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read = UniqueFd(ends[0]);
    write = UniqueFd(ends[1]);
  }
  UniqueFd read, write;
};

class FrontSignals : public testing::Test {
 protected:
  // What reaches the command of these signals.
  std::vector<int> reached(const std::vector<int>& sent, std::size_t ends_after, std::chrono::milliseconds grace) {
    auto signals = Signals::open(Signals::Mode::kForwarded);
    auto stdio = Stdio::open({.host = {-1, -1, -1}});
    EXPECT_TRUE(signals && stdio);
    Front front(*stdio, &*signals, nullptr, grace);
    Held held(front, ends_after);
    for (const int signal : sent) ::raise(signal);
    front.run(held);
    return held.taken;
  }
};

TEST_F(FrontSignals, ArePassedOn) {
  EXPECT_EQ(reached({SIGUSR1}, 1, 1s), std::vector<int>{SIGUSR1});
  EXPECT_EQ(reached({SIGHUP}, 1, 1s), std::vector<int>{SIGHUP}) << "no terminal went away";
  EXPECT_EQ(reached({SIGWINCH}, 1, 1s), std::vector<int>{SIGWINCH}) << "without a terminal of its own";
}

TEST_F(FrontSignals, KillFollowsATermAfterTheGrace) {
  EXPECT_EQ(reached({SIGTERM}, 2, 10ms), (std::vector<int>{SIGTERM, SIGKILL}));
  EXPECT_EQ(reached({SIGTERM}, 1, 1h), std::vector<int>{SIGTERM}) << "the twin: it ended in time";
}

// A signal that is pending is not queued a second time, signal(7): the second one is sent when the first has been taken. A job in
// the background ignores INT.
TEST_F(FrontSignals, ASecondInterruptMeansIt) {
  ::signal(SIGINT, SIG_DFL);
  auto signals = Signals::open(Signals::Mode::kForwarded);
  auto stdio = Stdio::open({.host = {-1, -1, -1}});
  ASSERT_TRUE(signals && stdio);
  Front front(*stdio, &*signals, nullptr, 1h);
  class Impatient final : public CommandControl {
   public:
    explicit Impatient(Front& front) : front_(front) {}
    void pass_on(int signal) override {
      taken.push_back(signal);
      ::raise(SIGINT);
    }
    void kill() override {
      taken.push_back(SIGKILL);
      front_.ended();
    }
    std::size_t add_pollfds(pollfd* /*into*/) override { return 0; }
    void handle(std::span<const pollfd> /*fds*/, bool /*moved*/) override {}
    std::vector<int> taken;

   private:
    Front& front_;
  } held(front);
  ::raise(SIGINT);
  front.run(held);
  EXPECT_EQ(held.taken, (std::vector<int>{SIGINT, SIGKILL}));
}

TEST(Front, DeliversWhatThePipesStillHold) {
  Pipe host;
  auto stdio = Stdio::open({.watch = true, .host = {-1, host.write.get(), -1}});
  ASSERT_TRUE(stdio);
  Front front(*stdio, nullptr, nullptr, 1s);
  Held held(front, 0);
  ASSERT_EQ(::write(stdio->command_fd(1), "last words", 10), 10);
  stdio->close_command_ends();
  held.ended.ring();
  front.run(held);
  char text[32];
  ASSERT_EQ(::read(host.read.get(), text, sizeof text), 10);
  EXPECT_EQ(std::string(text, 10), "last words");
  EXPECT_EQ(front.total(), 10U);
  EXPECT_TRUE(front.lost().empty());
}

}  // namespace
}  // namespace belljar::front
