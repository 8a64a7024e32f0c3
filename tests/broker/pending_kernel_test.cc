// Connects that block: many at once, callers that die or have signals, a broker that ends, and nothing left over.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/format.h"
#include "broker/support_fixture.h"
#include "support/eventually.h"

namespace belljar::test {
namespace {

using Pending = Inside;
INSTANTIATE_TEST_SUITE_P(As, Pending, testing::Values(Front::kRoot, Front::kUser), front_name);

long threads_now() { return entries("/proc/self/task"); }

// Unix sockets of this network namespace, the broker's duplicates too.
long sockets_now() {
  std::ifstream file("/proc/self/net/unix");
  return std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n');
}

// A listener whose queue is full, so that the next blocking connect waits.
struct Full {
  explicit Full(const std::string& path) : server(listen_at(path, SOCK_STREAM, 0)), first(connected(path)) {}
  void take_one() const { close(accept(server.get(), nullptr, nullptr)); }
  UniqueFd server, first;
};

std::string connect_many(const std::string& path, int count) {
  const Full full(path);
  std::atomic<int> connected = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      if (connect_outcome(SOCK_STREAM, path) == "ok") ++connected;
    });
  }
  usleep(100000);  // most of them wait by then; who comes later waits then
  const int early = connected;
  for (int i = 0; i <= count; ++i) full.take_one();
  for (std::thread& thread : threads) thread.join();
  return format("{} {}\n", early, connected.load());
}

TEST_P(Pending, ManyConnectsMayBlockAtOnce) {
  EXPECT_EQ(run_inside(setting(), [&] { return connect_many(dir / "s", 100); }), "0 100\n");
}

TEST_P(Pending, MoreThanTheLimitWaitTheirTurn) {
  Setting few = setting();
  few.options.max_pending = 3;
  EXPECT_EQ(run_inside(few, [&] { return connect_many(dir / "s", 40); }), "0 40\n");
}

TEST_P(Pending, KilledCallersLeaveNoThread) {
  Setting counted = setting();
  counted.before_end = [] {
    return format("{}\n", eventually([] { return threads_now() <= 6; }) ? "few threads" : "many threads");
  };
  const std::string text = run_inside(counted, [&] {
    const Full full(dir / "s");
    const long before = sockets_now();
    std::vector<pid_t> children;
    for (int i = 0; i < 30; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        connect_outcome(SOCK_STREAM, dir / "s");
        _exit(0);
      }
      children.push_back(child);
    }
    std::string result;
    if (!eventually([&] { return sockets_now() >= before + 30; })) result += "no sockets\n";
    usleep(200000);  // most of them wait by then; killing one that does not yet proves less
    for (const pid_t child : children) {
      if (waitpid(child, nullptr, WNOHANG) != 0) result += "did not block\n";
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    // The duplicates go too: the backlog takes the next one once the first is accepted.
    if (!eventually([&] { return sockets_now() <= before; })) result += "duplicates stay\n";
    full.take_one();
    return result + connect_outcome(SOCK_STREAM, dir / "s") + "\n";
  });
  EXPECT_EQ(text, "ok\nfew threads\n");
}

std::atomic<int> alarms = 0;

// The signal comes while connect waits, and once it was handled the queue takes one more; for a connect that is interrupted by it
// only where it is not.
std::string connect_with_alarm(const std::string& path, int flags) {
  const Full full(path);
  struct sigaction action{};
  action.sa_handler = [](int) { ++alarms; };
  action.sa_flags = flags;
  sigaction(SIGALRM, &action, nullptr);
  const pthread_t client = pthread_self();
  const auto client_id = static_cast<pid_t>(syscall(SYS_gettid));
  std::atomic<bool> over = false;
  std::thread later([&] {
    eventually([&] { return sleeps_in(client_id, SYS_connect); });
    usleep(50'000);  // the broker has it by then; when it comes later, the signal is the kernel's alone
    pthread_kill(client, SIGALRM);
    eventually([&] { return alarms > 0; });
    if (flags == 0 && eventually([&] { return over.load(); })) return;
    full.take_one();
  });
  const std::string result = connect_outcome(SOCK_STREAM, path);
  const int seen = alarms;
  over = true;
  later.join();
  return format("{} {}\n", result, seen);
}

TEST_P(Pending, SignalInterruptsAsWithoutABroker) {
  const auto body = [&] { return connect_with_alarm(dir / "s", 0); };
  EXPECT_EQ(run_inside(setting(), body), "EINTR 1\n");
  unlink((dir / "s").c_str());
  EXPECT_EQ(run_inside(setting(false), body), "EINTR 1\n");
}

TEST_P(Pending, SignalRestartsAsWithoutABroker) {
  const auto body = [&] { return connect_with_alarm(dir / "s", SA_RESTART); };
  EXPECT_EQ(run_inside(setting(), body), "ok 1\n");
  unlink((dir / "s").c_str());
  EXPECT_EQ(run_inside(setting(false), body), "ok 1\n");
}

// A connect is done once, however many signals arrive meanwhile (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV).
TEST_P(Pending, SignalStormNeverRepeatsAConnect) {
  const std::string text = run_inside(setting(), [&] {
    const UniqueFd server = listen_at(dir / "s", SOCK_STREAM, 4096);
    struct sigaction action{};
    action.sa_handler = [](int) { ++alarms; };
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    const itimerval often{{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &often, nullptr);
    int wrong = 0;
    // Where signals are few because the machine is busy, more connects, for which the queue has places again.
    for (int i = 0; i < 3000 || (alarms <= 100 && i < 300'000); ++i) {
      if (i >= 3000) close(accept(server.get(), nullptr, nullptr));
      if (connect_outcome(SOCK_STREAM, dir / "s") != "ok") ++wrong;
    }
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    return format("{} {}\n", wrong, alarms > 100);
  });
  EXPECT_EQ(text, "0 true\n");
}

TEST_P(Pending, EndOfTheBrokerInterruptsWhatWaits) {
  Setting ends = setting();
  ends.end_when = [] { return threads_now() > 20; };
  ends.before_end = [] { return std::string(threads_now() > 20 ? "threads, " : "no threads, "); };
  ends.after_end = [] {
    eventually([] { return threads_now() <= 1; });
    return format("then {}", threads_now());
  };
  const auto start = std::chrono::steady_clock::now();
  const std::string text = run_inside(ends, [&] {
    const Full full(dir / "s");
    std::vector<std::thread> threads;
    for (int i = 0; i < 20; ++i) threads.emplace_back([&] { connect_outcome(SOCK_STREAM, dir / "s"); });
    sleep(180);  // until it is killed, or the broker's end waited for it
    return std::string();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(170));
  EXPECT_EQ(text, "threads, then 1");
}

TEST_P(Pending, NoDescriptorIsLeft) {
  const UniqueFd host = host_service(dir / "host");
  const auto descriptors_after = [&](int connects) {
    Setting counted = setting();
    counted.options.max_violations = 0;
    counted.before_end = [] { return format("{} descriptors\n", entries("/proc/self/fd")); };
    const std::string text = run_inside(counted, [&] {
      for (int i = 0; i < connects; ++i) {
        const UniqueFd server = listen_at(dir / "s");
        connect_outcome(SOCK_STREAM, dir / "s");
        connect_outcome(SOCK_STREAM, dir / "missing");
        connect_outcome(SOCK_STREAM, "relative");
        if (i % 50 == 0) connect_outcome(SOCK_STREAM, dir / "host");
        if (i + 1 < connects) unlink((dir / "s").c_str());
      }
      unlink((dir / "s").c_str());
      return std::string();
    });
    return text.substr(0, text.find('\n'));
  };
  const std::string few = descriptors_after(2);
  const std::string many = descriptors_after(1000);
  // Dead own sockets are dropped at the latest when 16 have gathered.
  EXPECT_LE(std::stoi(many), std::stoi(few) + 16) << few << " then " << many;
}

}  // namespace
}  // namespace belljar::test
