#include "broker/receivers.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <set>

#include "base/unique_fd.h"
#include "support/eventually.h"

namespace belljar::broker {
namespace {

using test::eventually;

// Stands for a listener: a pipe of call numbers. Writes are atomic, so is each read.
struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe(ends) != 0) throw std::bad_alloc();
    reader = UniqueFd(ends[0]);
    writer = UniqueFd(ends[1]);
  }
  void put(int number) const { ASSERT_EQ(write(writer.get(), &number, sizeof number), ssize_t{sizeof number}); }
  UniqueFd reader, writer;
};

Receivers::Jobs jobs(const Pipe& calls, std::function<void(const Call&, Receivers::Slot&)> run) {
  return {.receive =
              [&](Call& call) {
                const ssize_t size = read(calls.reader.get(), &call.number, sizeof call.number);
                if (size == 0) return Receivers::Received::kEnd;
                return size > 0 ? Receivers::Received::kCall : Receivers::Received::kNothing;
              },
          .more =
              [&] {
                pollfd ready{calls.reader.get(), POLLIN, 0};
                return poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN) != 0;
              },
          .run = std::move(run),
          .caller_gone = [](const Call&) { return false; },
          .caller_signalled = [](const Call&) { return false; },
          .thread_started = [] {},
          .work_started = [] {}};
}

TEST(Receivers, EveryCallIsRunOnce) {
  const Pipe calls;
  std::mutex mutex;
  std::multiset<int> seen;
  const auto count = [&] {
    const std::scoped_lock lock(mutex);
    return seen.size();
  };
  Receivers receivers(4, jobs(calls, [&](const Call& job, Receivers::Slot&) {
                        const std::scoped_lock lock(mutex);
                        seen.insert(job.number);
                      }));
  ASSERT_TRUE(receivers.start());
  for (int i = 0; i < 500; ++i) calls.put(i);
  ASSERT_TRUE(eventually([&] { return count() == 500; }));
  usleep(10000);  // for one that runs twice
  const std::scoped_lock lock(mutex);
  EXPECT_EQ(seen.size(), 500U);
  EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), 500U);
}

TEST(Receivers, NeverMoreThanTheLimitAtOnce) {
  const Pipe calls;
  std::atomic<int> now = 0, most = 0, done = 0;
  Receivers receivers(3, jobs(calls, [&](const Call&, Receivers::Slot&) {
                        const int here = ++now;
                        for (int seen = most; seen < here && !most.compare_exchange_weak(seen, here);) {
                        }
                        eventually([&] { return most >= 3; });
                        usleep(20000);  // for one more than the limit, which a busy machine may not get to
                        --now;
                        ++done;
                      }));
  ASSERT_TRUE(receivers.start());
  for (int i = 0; i < 30; ++i) calls.put(i);
  ASSERT_TRUE(eventually([&] { return done == 30; }));
  EXPECT_EQ(most, 3);
}

// One after the other, so that nothing ever waits when a call is received: the watching thread must notice.
TEST(Receivers, CallsThatBlockNeverStopOthers) {
  const Pipe calls, release;
  std::atomic<int> blocked = 0, quick = 0, ended = 0;
  Receivers receivers(16, jobs(calls, [&](const Call& job, Receivers::Slot& slot) {
                        if (job.number % 2 == 0) {
                          ++quick;
                          return;
                        }
                        ++blocked;
                        const Receivers::Blocking blocking(slot);
                        char byte = 0;
                        if (read(release.reader.get(), &byte, 1) == 1) ++ended;
                      }));
  ASSERT_TRUE(receivers.start());
  for (int i = 1; i <= 10; ++i) {
    calls.put(1);
    ASSERT_TRUE(eventually([&] { return blocked == i; }));
    calls.put(2);
    ASSERT_TRUE(eventually([&] { return quick == i; })) << i;
  }
  ASSERT_EQ(write(release.writer.get(), "1234567890", 10), 10);
  EXPECT_TRUE(eventually([&] { return ended == 10; }));
}

// Calls that wait for good are not among the limit; too many are refused, and the others go on.
TEST(Receivers, WaitsTakeNoThreadFromOtherCalls) {
  const Pipe calls, release;
  std::atomic<int> waiting = 0, refused = 0, quick = 0;
  Receivers receivers(4, jobs(calls, [&](const Call& job, Receivers::Slot& slot) {
                        if (job.number == 0) {
                          ++quick;
                          return;
                        }
                        const Receivers::Wait wait(slot);
                        if (!wait.granted()) {
                          ++refused;
                          return;
                        }
                        ++waiting;
                        const Receivers::Blocking blocking(slot);
                        char byte = 0;
                        (void)!read(release.reader.get(), &byte, 1);
                        --waiting;
                      }));
  ASSERT_TRUE(receivers.start());
  for (int i = 1; i <= 40; ++i) {
    calls.put(1);
    ASSERT_TRUE(eventually([&] { return waiting == i; })) << i;
  }
  calls.put(0);
  ASSERT_TRUE(eventually([&] { return quick == 1; }));
  for (std::size_t i = 0; i < Receivers::kMostWaits; ++i) calls.put(1);
  ASSERT_TRUE(eventually([&] { return refused >= 40; }));
  calls.put(0);
  ASSERT_TRUE(eventually([&] { return quick == 2; }));
  // The twin: when they have ended, as many may wait again.
  const int before = waiting;
  for (int i = 0; i < before; ++i) ASSERT_EQ(write(release.writer.get(), "x", 1), 1);
  ASSERT_TRUE(eventually([&] { return waiting == 0; }));
  calls.put(1);
  ASSERT_TRUE(eventually([&] { return waiting == 1; }));
  ASSERT_EQ(write(release.writer.get(), "x", 1), 1);
}

TEST(Receivers, TickInterruptsOnlyCallsWhoseCallerIsGone) {
  const Pipe calls, pipe;
  std::atomic<int> started = 0, interrupted = 0, finished = 0;
  Receivers::Jobs blocking = jobs(calls, [&](const Call&, Receivers::Slot& slot) {
    ++started;
    char byte = 0;
    ssize_t size = -1;
    do {
      const Receivers::Blocking scope(slot);
      size = read(pipe.reader.get(), &byte, 1);
    } while (size < 0 && errno == EINTR && !slot.interrupted());
    ++(size == 1 ? finished : interrupted);
  });
  blocking.caller_gone = [](const Call& job) { return job.number % 2 == 0; };
  Receivers receivers(16, std::move(blocking));
  ASSERT_TRUE(receivers.start());
  for (int i = 0; i < 10; ++i) calls.put(i);
  ASSERT_TRUE(eventually([&] { return started == 10; }));
  ASSERT_TRUE(eventually([&] {
    receivers.tick();
    return interrupted == 5;
  }));
  for (int i = 0; i < 5; ++i) receivers.tick();
  EXPECT_EQ(finished, 0);
  ASSERT_EQ(write(pipe.writer.get(), "12345", 5), 5);
  EXPECT_TRUE(eventually([&] { return finished == 5; }));
}

TEST(Receivers, TickEndsWhenNothingIsInWork) {
  const Pipe calls;
  std::atomic<int> started = 0, run = 0;
  Receivers::Jobs counted = jobs(calls, [&](const Call&, Receivers::Slot&) { ++run; });
  counted.work_started = [&] { ++started; };
  Receivers receivers(4, std::move(counted));
  ASSERT_TRUE(receivers.start());
  for (int round = 1; round <= 3; ++round) {
    calls.put(0);
    calls.put(0);
    ASSERT_TRUE(eventually([&] { return run == 2 * round; }));
    ASSERT_EQ(started, round);
    ASSERT_TRUE(eventually([&] { return !receivers.tick(); }));
  }
}

TEST(Receivers, EndInterruptsAndWaits) {
  const Pipe calls, pipe;
  std::atomic<int> started = 0, ended = 0;
  {
    Receivers receivers(8, jobs(calls, [&](const Call&, Receivers::Slot& slot) {
                          ++started;
                          const Receivers::Blocking scope(slot);
                          char byte = 0;
                          while (read(pipe.reader.get(), &byte, 1) < 0 && errno != EINTR) {
                          }
                          ++ended;
                        }));
    ASSERT_TRUE(receivers.start());
    for (int i = 0; i < 8; ++i) calls.put(i);
    ASSERT_TRUE(eventually([&] { return started == 8; }));
  }
  EXPECT_EQ(ended, 8);
}

}  // namespace
}  // namespace belljar::broker
