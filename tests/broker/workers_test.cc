#include "broker/workers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <set>

#include "base/unique_fd.h"

namespace belljar::broker {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe(ends) != 0) throw std::bad_alloc();
    reader = UniqueFd(ends[0]);
    writer = UniqueFd(ends[1]);
  }
  UniqueFd reader, writer;
};

Workers::Jobs jobs(std::function<void(const Call&, Workers::Slot&)> run) {
  return {.run = std::move(run),
          .caller_gone = [](const Call&) { return false; },
          .caller_signalled = [](const Call&) { return false; },
          .thread_started = [] {}};
}

Call call(int number) {
  Call result;
  result.number = number;
  return result;
}

template <class Done>
bool within_seconds(int seconds, Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    usleep(1000);
  }
  return true;
}

TEST(Workers, EveryCallIsRunOnce) {
  std::mutex mutex;
  std::multiset<int> seen;
  Workers workers(4, jobs([&](const Call& job, Workers::Slot&) {
                    const std::scoped_lock lock(mutex);
                    seen.insert(job.number);
                  }));
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(workers.submit(call(i)));
  ASSERT_TRUE(within_seconds(20, [&] { return !workers.busy(); }));
  const std::scoped_lock lock(mutex);
  EXPECT_EQ(seen.size(), 500U);
  EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), 500U);
}

TEST(Workers, NeverMoreThanTheLimitAtOnce) {
  std::atomic<int> now = 0, most = 0;
  Workers workers(3, jobs([&](const Call&, Workers::Slot&) {
                    const int here = ++now;
                    for (int seen = most; seen < here && !most.compare_exchange_weak(seen, here);) {
                    }
                    usleep(2000);
                    --now;
                  }));
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(workers.submit(call(i)));
  ASSERT_TRUE(within_seconds(20, [&] { return !workers.busy(); }));
  EXPECT_EQ(most, 3);
}

TEST(Workers, TickInterruptsOnlyCallsWhoseCallerIsGone) {
  const Pipe pipe;
  std::atomic<int> interrupted = 0, finished = 0;
  Workers::Jobs blocking = jobs([&](const Call&, Workers::Slot& slot) {
    char byte = 0;
    ssize_t size = -1;
    while ((size = read(pipe.reader.get(), &byte, 1)) < 0 && errno == EINTR && !slot.interrupted()) {
    }
    ++(size == 1 ? finished : interrupted);
  });
  blocking.caller_gone = [](const Call& job) { return job.number % 2 == 0; };
  Workers workers(16, std::move(blocking));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(workers.submit(call(i)));
  ASSERT_TRUE(within_seconds(20, [&] {
    workers.tick();
    return interrupted == 5;
  }));
  for (int i = 0; i < 5; ++i) workers.tick();
  EXPECT_EQ(finished, 0);
  ASSERT_EQ(write(pipe.writer.get(), "12345", 5), 5);
  EXPECT_TRUE(within_seconds(20, [&] { return !workers.busy(); }));
  EXPECT_EQ(finished, 5);
}

TEST(Workers, EndInterruptsAndWaits) {
  const Pipe pipe;
  std::atomic<int> started = 0, ended = 0;
  {
    Workers workers(8, jobs([&](const Call&, Workers::Slot&) {
                      ++started;
                      char byte = 0;
                      while (read(pipe.reader.get(), &byte, 1) < 0 && errno != EINTR) {
                      }
                      ++ended;
                    }));
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(workers.submit(call(i)));
    ASSERT_TRUE(within_seconds(20, [&] { return started == 8; }));
  }
  EXPECT_EQ(ended, 8);
}

}  // namespace
}  // namespace belljar::broker
