#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "launch/sweeper.h"
#include "support/eventually.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"

namespace belljar::launch {
namespace {

// A front that starts a sweeper and then ends as told. Its directory, made of ordinary files here, is empty.
void run_front(const std::string& directory, bool killed) {
  const pid_t front = fork();
  if (front == 0) {
    {
      const Sweeper sweeper = Sweeper::start({directory});
      if (killed) raise(SIGKILL);
    }
    _exit(0);
  }
  ASSERT_GT(front, 0);
  ASSERT_EQ(waitpid(front, nullptr, 0), front);
}

TEST(Sweeper, RemovesWhatAKilledFrontLeft) {
  const test::TempDir place;
  const test::Leftovers left;
  run_front(place.make_dir("group"), true);
  EXPECT_TRUE(test::eventually([&] { return !test::exists(place / "group"); }));
  EXPECT_EQ(left.report(), "");
}

TEST(Sweeper, LeavesItToAFrontThatEnds) {
  const test::TempDir place;
  const test::Leftovers left;
  run_front(place.make_dir("group"), false);
  EXPECT_EQ(left.report(), "");  // it is gone, and did nothing
  EXPECT_TRUE(test::exists(place / "group"));
}

TEST(Sweeper, HoldsNoDescriptorOfItsFront) {
  const test::TempDir place;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Sweeper sweeper = Sweeper::start({place.make_dir("group")});
  close(ends[1]);
  pollfd closed{ends[0], POLLIN, 0};
  EXPECT_EQ(poll(&closed, 1, 60'000), 1);  // end of file
  close(ends[0]);
}

TEST(Sweeper, WithoutDirectoriesItIsNobody) {
  const test::Leftovers left;
  const Sweeper sweeper = Sweeper::start({});
  EXPECT_TRUE(test::descendants().empty());
}

}  // namespace
}  // namespace belljar::launch
