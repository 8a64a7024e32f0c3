// Bursts: a hundred sandboxes at once and a thousand in a stream, until the first command of each has answered, beside peers that
// do the same; and what a hundred that do nothing cost.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <memory>
#include <thread>
#include <utility>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/pool.h"
#include "belljar/sandbox.h"
#include "bench/rows.h"

namespace belljar::bench {
namespace {

constexpr const char* kBurstGroup = "burst";
constexpr int kBurst = 100, kStream = 1000, kIdle = 300;
constexpr int kStreamClients = 8;  // of a stream, each waits for its command before it begins with the next

// How long `clients` threads take for `count` acts; 0 when one failed.
Samples time_all(int clients, int count, const std::function<bool(int number)>& act) {
  std::latch ready(clients + 1);
  std::atomic<int> next{0}, failed{0};
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(clients));
  for (int client = 0; client < clients; ++client)
    threads.emplace_back([&] {
      ready.arrive_and_wait();
      for (int number = next++; number < count; number = next++) {
        if (!act(number)) ++failed;
      }
    });
  ready.arrive_and_wait();
  const double start = now_us();
  for (std::thread& thread : threads) thread.join();
  if (failed > 0) return {};
  return {{now_us() - start}};
}

void add_row(Report& report, const std::string& name, const Samples& samples, double target) {
  if (samples.us.empty()) return report.left_out.push_back("burst, " + name + ": one failed");
  report.add(kBurstGroup, name, samples);
  report.rows.back().target = target;
}

void append(Samples& to, const Samples& from) { to.us.insert(to.us.end(), from.us.begin(), from.us.end()); }

std::shared_ptr<Sandbox> make_fresh(const Setting& setting) {
  SandboxConfig config;
  config.workspace = setting.directory;
  auto sandbox = make_sandbox(config);
  return sandbox && (*sandbox)->start() ? *std::move(sandbox) : nullptr;
}

Result<std::unique_ptr<Pool>> open_pool(const Setting& setting, std::size_t ready) {
  PoolOptions options;
  options.workspaces = setting.directory;
  options.ready = ready;
  options.most = 4 * ready;
  return Pool::create(options);
}

void await_full(const Pool& pool, std::size_t ready) {
  while (pool.stats().ready < ready) ::usleep(1000);
}

// Takes one, and runs the first command in it; null when that failed. `waited`: how long the hand-out took.
std::shared_ptr<Lease> take_and_use(Pool& pool, double& waited) {
  const double start = now_us();
  auto lease = pool.take();
  waited = now_us() - start;
  return lease && exec_true(**lease) ? std::make_shared<Lease>(*std::move(lease)) : nullptr;
}

// All of `count` are there before, and none is given back meanwhile.
Samples take_all(Pool& pool, int clients, int count, std::vector<std::shared_ptr<Lease>>& held) {
  await_full(pool, static_cast<std::size_t>(count));
  ::usleep(20'000);  // what was given back has its end behind it by then
  held.assign(static_cast<std::size_t>(count), nullptr);
  return time_all(clients, count, [&](int number) {
    double waited = 0;
    return (held[static_cast<std::size_t>(number)] = take_and_use(pool, waited)) != nullptr;
  });
}

void bench_pooled(const Setting& setting, int rounds, Report& report) {
  auto pool = open_pool(setting, kBurst);
  if (!pool) return report.left_out.push_back("burst: " + pool.error().line());
  Samples burst;
  Samples again;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::shared_ptr<Lease>> held;
    append(burst, take_all(**pool, kBurst, kBurst, held));
    const double start = now_us();
    await_full(**pool, kBurst);
    again.us.push_back(now_us() - start);
  }
  add_row(report, format("{} taken from a pool, first command", kBurst), burst, 150'000);
  add_row(report, format("until the pool has {} again", kBurst), again, 0);
  Samples stream;
  Samples waits;
  for (int round = 0; round < std::max(1, rounds / 4); ++round) {
    await_full(**pool, kBurst);
    Samples one{std::vector<double>(kStream)};
    append(stream, time_all(kStreamClients, kStream,
                            [&](int number) { return take_and_use(**pool, one.us[static_cast<std::size_t>(number)]) != nullptr; }));
    append(waits, one);
  }
  add_row(report, format("{} from a pool of {} that refills", kStream, kBurst), stream, 0);
  add_row(report, "of those, one hand-out", waits, 0);
}

// A sandbox needs nine descriptors of ours.
void bench_large_pool(const Setting& setting, rlim_t files, Report& report) {
  const std::string name = format("{} taken from a pool, first command", kStream);
  if (files < rlim_t{12} * kStream) return report.left_out.push_back(format("{}: `ulimit -n` is {}", name, files));
  auto pool = open_pool(setting, kStream);
  if (!pool) return report.left_out.push_back("burst: " + pool.error().line());
  std::vector<std::shared_ptr<Lease>> held;
  add_row(report, name, take_all(**pool, kStreamClients, kStream, held), 2e6);
}

void bench_fresh(const Setting& setting, int rounds, Report& report) {
  Samples burst;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::shared_ptr<Sandbox>> held(kBurst);
    append(burst, time_all(kBurst, kBurst, [&](int number) {
             auto& sandbox = held[static_cast<std::size_t>(number)] = make_fresh(setting);
             return sandbox != nullptr && exec_true(*sandbox);
           }));
  }
  add_row(report, format("{} made, first command", kBurst), burst, 0);
  Samples stream;
  for (int round = 0; round < std::max(1, rounds / 4); ++round)
    append(stream, time_all(kStreamClients, kStream, [&](int) {
             const auto sandbox = make_fresh(setting);
             return sandbox != nullptr && exec_true(*sandbox);
           }));
  add_row(report, format("{} made and ended in a stream", kStream), stream, 0);
}

// A container is known by a name, so each gets one.
Argv numbered(const Peer& peer, int number) {
  Argv argv = peer.argv;
  if (peer.name == "crun") argv.back() += format("-{}", number);
  return argv;
}

void bench_peer(const Peer& peer, int rounds, Report& report) {
  if (!installed(peer.argv[0])) return report.left_out.push_back(peer.name + ": not installed");
  if (run_process(peer.argv) != 0) return report.left_out.push_back(peer.name + ": installed, but cannot start anything here");
  const auto run = [&](int number) { return run_process(numbered(peer, number)) == 0; };
  Samples burst;
  for (int round = 0; round < rounds; ++round) append(burst, time_all(kBurst, kBurst, run));
  add_row(report, format("{} x {} at once", kBurst, peer.name), burst, 0);
  if (peer.name == "docker") return;  // minutes
  add_row(report, format("{} x {} in a stream", kStream, peer.name), time_all(kStreamClients, kStream, run), 0);
}

// What of the machine's memory one of `kIdle` costs when `hold` has returned.
void add_idle_memory(Samples& to, const std::function<bool()>& hold, const std::function<void()>& end) {
  ::usleep(2'000'000);  // the kernel frees namespaces a moment later
  const double before = available_kib();
  const bool well = hold();
  ::usleep(100'000);
  if (well) to.us.push_back((before - available_kib()) / kIdle);
  end();
}

// In turns: what one leaves in the kernel's caches the next need not take. Others come and go meanwhile, and the median counts.
void bench_idle_beside(const Setting& setting, Report& report) {
  std::vector<std::shared_ptr<Sandbox>> held;
  const auto make_all = [&] {
    for (int i = 0; i < kIdle; ++i) held.push_back(make_fresh(setting));
    return std::ranges::find(held, nullptr) == held.end();
  };
  Peer bwrap = process_peers(setting).front();
  const bool beside = installed(bwrap.argv[0]) && run_process(bwrap.argv) == 0;  // else bench_peer() says so
  bwrap.argv.back() = "/bin/sh";
  bwrap.argv.insert(bwrap.argv.end(), {"-c", "echo; exec sleep 600"});
  std::vector<pid_t> pids;
  UniqueFd out;  // all of them write to it: it ends when the last one has
  const auto start_all = [&] {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) < 0) return false;
    out = UniqueFd(ends[0]);
    UniqueFd in(ends[1]);
    for (int i = 0; i < kIdle; ++i) pids.push_back(start_process(bwrap.argv, in.get()));
    in.reset();
    int ready = 0;
    for (char line = 0; ready < kIdle && ::read(out.get(), &line, 1) == 1;) ++ready;
    return ready == kIdle;
  };
  const auto end_all = [&] {
    for (const pid_t pid : pids) ::kill(pid, SIGKILL);
    for (char rest = 0; ::read(out.get(), &rest, 1) > 0;) continue;
    for (const pid_t pid : std::exchange(pids, {})) ::waitpid(pid, nullptr, 0);
  };
  Samples ours;
  Samples theirs;
  for (int round = 0; round < 3; ++round) {
    add_idle_memory(ours, make_all, [&] { held.clear(); });
    if (beside) add_idle_memory(theirs, start_all, end_all);
  }
  const auto add = [&](const std::string& name, const Samples& samples) {
    if (samples.us.empty()) return;
    report.add(kBurstGroup, name, samples);
    report.rows.back().unit = "KiB";
  };
  add(format("memory of one of {} idle", kIdle), ours);
  add(format("memory of one of {} x bwrap -- sleep", kIdle), theirs);
}

}  // namespace

void bench_burst(const Setting& setting, Report& report) {
  if (make_fresh(setting) == nullptr) return report.left_out.push_back("burst: a sandbox could not be made");
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  bench_idle_beside(setting, report);
  const int rounds = std::clamp(setting.runs / 10, 2, 20);
  bench_pooled(setting, rounds, report);
  bench_large_pool(setting, files.rlim_max, report);
  bench_fresh(setting, rounds, report);
  for (const Peer& peer : process_peers(setting)) {
    if (peer.name == "bwrap" || peer.name == "crun" || peer.name == "docker")
      bench_peer(peer, peer.name == "docker" ? 1 : rounds, report);
  }
}

}  // namespace belljar::bench
