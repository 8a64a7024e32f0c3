// What a call on files costs more when the broker performs it: the same small program under the same filter, once with file calls
// notified and once without, 1 and 8 writers at a time. "added" is the difference of the medians, promised in
// docs/SPECIFICATION.md.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "backend/native/native.h"
#include "bench/rows.h"
#include "broker/broker.h"
#include "kernel/seccomp.h"
#include "launch/launcher.h"

namespace belljar::bench {
namespace {

constexpr const char* kFilesGroup = "files";
constexpr int kWarmUp = 50;
constexpr int kCallsARound = 14;  // of all kinds together, close(2) left out
constexpr const char* kProcessorTime = "processor time";
constexpr int kOneBesideEight = 0;  // instead of a number of writers: one that calls now and then, and eight that never stop

// Of this process, all threads.
double processor_us() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

struct Kind {
  const char* name;
  std::function<void(int)> before, timed, after;  // with the writer's directory as working directory; the number is the round
};

void close_made(int fd) {
  if (fd >= 0) ::close(fd);
}

// Relative names in a directory of the writer's own, as compilers, tar and git use them.
std::vector<Kind> kinds(const std::string& at) {
  const auto make = [at](int) { close_made(::open((at + "/f").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)); };
  const auto remove = [at](int) { ::unlink((at + "/f").c_str()); };
  const auto nothing = [](int) {};
  return {
      {"create a file", nothing, make, remove},
      {"open to write", make, make, nothing},
      {"open /dev/null", nothing, [](int) { close_made(::open("/dev/null", O_WRONLY | O_CLOEXEC)); }, nothing},
      {"mkdir", nothing, [at](int) { ::mkdir((at + "/d").c_str(), 0755); }, [at](int) { ::rmdir((at + "/d").c_str()); }},
      {"rename", make, [at](int) { std::rename((at + "/f").c_str(), (at + "/g").c_str()); },
       [at](int) { ::unlink((at + "/g").c_str()); }},
      {"unlink", make, remove, nothing},
      {"chmod", make, [at](int) { ::chmod((at + "/f").c_str(), 0600); }, nothing},
  };
}

void time_kinds(const std::string& at, int rounds, std::map<std::string, Samples>& times, std::chrono::microseconds pause = {}) {
  for (const Kind& kind : kinds(at)) {
    Samples& samples = times[kind.name];
    for (int round = -kWarmUp; round < rounds; ++round) {
      kind.before(round);
      const double start = now_us();
      kind.timed(round);
      const double end = now_us();
      kind.after(round);
      if (pause.count() > 0) std::this_thread::sleep_for(pause);
      if (round >= 0) samples.us.push_back(end - start);
    }
  }
}

// The plan of an ordinary sandbox, whose filter sends file calls to the broker or to the kernel.
Result<backend::Prepared> prepare(const Setting& setting, kernel::SeccompSpec& filter) {
  const backend::RealHost host;
  backend::NativeBackend native(host);
  backend::Workplace place;
  place.workspace = place.cwd = setting.directory;
  place.env = {"PATH=/usr/bin:/bin"};
  backend::Prepared prepared = BELLJAR_TRY(native.prepare(Policy{}, place));
  filter.unix_sockets = kernel::UnixSockets::kBrokered;
  prepared.plan.seccomp = kernel::build_filter(filter);
  prepared.plan.seccomp_listener = true;
  return prepared;
}

// The processor time that this process spent on it meanwhile: the broker's. Nothing when it did not run well.
std::optional<double> run_inside(const Setting& setting, kernel::FileCalls calls, int writers, int rounds) {
  kernel::SeccompSpec filter{.file_calls = calls};
  auto prepared = prepare(setting, filter);
  if (!prepared) return std::nullopt;
  launch::ExecRequest request;
  const std::string own = std::filesystem::read_symlink("/proc/self/exe").string();
  request.argv = {own, "--files-inside", setting.directory, std::to_string(writers), std::to_string(rounds)};
  auto sandbox = launch::start(prepared->plan, &request, {});
  if (!sandbox) return std::nullopt;
  broker::BrokerOptions options{.filter = filter};
  if (prepared->plan.identity == launch::Identity::kRootMapped) {
    options.uid = prepared->plan.outside_uid, options.gid = prepared->plan.outside_gid;
  }
  broker::FileRulesOptions rules;
  rules.roots = {setting.directory};
  options.rules = std::make_shared<broker::FileRules>(std::move(rules));
  auto broker = broker::Broker::create(sandbox->take_listener(), std::move(options));
  if (!broker) return std::nullopt;
  bool well = false;
  const double before = processor_us();
  for (bool ended = false; !ended;) {
    pollfd ready[] = {{sandbox->control_fd(), POLLIN, 0}, {broker->active() ? broker->poll_fd() : -1, POLLIN, 0}};
    ::poll(ready, 2, -1);
    if (ready[1].revents != 0) broker->on_readable();
    while (!ended) {  // the end of a sandbox is told again and again
      const auto event = sandbox->next_event();
      if (!event) break;
      if (event->kind == launch::Event::Kind::kStarted) continue;
      well = event->kind == launch::Event::Kind::kExited && event->exit.wait_status == 0;
      ended = true;
    }
    if ((ready[0].revents & POLLHUP) != 0) ended = true;
  }
  const double spent = processor_us() - before;
  sandbox->kill_and_reap();
  return well ? std::optional(spent) : std::nullopt;
}

// What a call costs all processors together: unlike its time it does not grow with what others do there meanwhile.
double processor_time_of(const std::map<std::string, Samples>& times, double front, int writers, int rounds) {
  return (times.at(kProcessorTime).us.front() + front) / (kCallsARound * writers * (rounds + kWarmUp));
}

void compare_writers(const Setting& setting, Report& report, int writers, int rounds) {
  const std::string file = setting.directory + "/times";
  const std::string who = writers == 1 ? "" : ", " + std::to_string(writers) + " writers";
  const auto without = run_inside(setting, kernel::FileCalls::kDirect, writers, rounds);
  if (!without) return report.left_out.push_back("files: no sandbox starts");
  const auto kernel = read_times(file);
  const auto with = run_inside(setting, kernel::FileCalls::kWrites, writers, rounds);
  if (!with) return report.left_out.push_back("files: no broker");
  const auto broker = read_times(file);
  for (const Kind& kind : kinds("")) {
    const std::string name = kind.name + who;
    report.add(kFilesGroup, name + ", kernel", kernel.at(kind.name));
    report.add(kFilesGroup, name + ", broker", broker.at(kind.name));
    report.compare_rows(kFilesGroup, name + ", broker", name + ", kernel", 0);
    Row added{.group = kFilesGroup, .name = name + ", added"};
    added.p50 = report.find(kFilesGroup, name + ", broker")->p50 - report.find(kFilesGroup, name + ", kernel")->p50;
    added.p99 = report.find(kFilesGroup, name + ", broker")->p99 - report.find(kFilesGroup, name + ", kernel")->p99;
    added.p10 = report.find(kFilesGroup, name + ", broker")->p10 - report.find(kFilesGroup, name + ", kernel")->p10;
    added.p90 = report.find(kFilesGroup, name + ", broker")->p90 - report.find(kFilesGroup, name + ", kernel")->p90;
    added.runs = rounds;
    added.target = 10;
    report.rows.push_back(added);
  }
  const std::string name = std::string(kProcessorTime) + " a call" + who;
  report.add(kFilesGroup, name + ", kernel", {{processor_time_of(kernel, *without, writers, rounds)}});
  report.add(kFilesGroup, name + ", broker", {{processor_time_of(broker, *with, writers, rounds)}});
  report.compare_rows(kFilesGroup, name + ", broker", name + ", kernel", 0);
}

// No writer may be kept from its turn by the others: its slowest call of a hundred beside its middle one.
void compare_one_beside(const Setting& setting, Report& report, int rounds) {
  if (!run_inside(setting, kernel::FileCalls::kWrites, kOneBesideEight, rounds))
    return report.left_out.push_back("files: no broker");
  const auto times = read_times(setting.directory + "/times");
  for (const Kind& kind : kinds("")) {
    const std::string name = std::string(kind.name) + ", one beside 8, broker";
    report.add(kFilesGroup, name, times.at(kind.name));
    Row slowest = *report.find(kFilesGroup, name);
    slowest.name = std::string(kind.name) + ", one beside 8, p99";
    slowest.p50 = slowest.p99;
    report.rows.push_back(slowest);
    report.compare_rows(kFilesGroup, slowest.name, name, 5);
  }
}

// The first writer's times alone.
void run_one_beside(const std::string& directory, int rounds, std::map<std::string, Samples>& times) {
  constexpr int kOthers = 8;
  std::atomic<bool> done = false;
  std::vector<std::thread> others;
  for (int other = 1; other <= kOthers; ++other) {
    const std::string at = directory + "/writer" + std::to_string(other);
    ::mkdir(at.c_str(), 0755);
    others.emplace_back([&done, at] {
      std::map<std::string, Samples> nobodys;
      while (!done) time_kinds(at, 1, nobodys);
    });
  }
  const std::string at = directory + "/writer0";
  ::mkdir(at.c_str(), 0755);
  time_kinds(at, rounds, times, std::chrono::microseconds(500));
  done = true;
  for (std::thread& thread : others) thread.join();
}

}  // namespace

int files_inside(const std::string& directory, int writers, int rounds) {
  std::vector<std::map<std::string, Samples>> times(static_cast<std::size_t>(std::max(writers, 1)));
  std::vector<std::thread> threads;
  if (writers == kOneBesideEight) run_one_beside(directory, rounds, times.front());
  for (int writer = 0; writer < writers; ++writer) {
    const std::string at = directory + "/writer" + std::to_string(writer);
    ::mkdir(at.c_str(), 0755);
    threads.emplace_back([&, writer, at] { time_kinds(at, rounds, times[static_cast<std::size_t>(writer)]); });
  }
  for (std::thread& thread : threads) thread.join();
  const double spent = processor_us();
  std::ofstream out(directory + "/times");
  out << kProcessorTime << '\t' << spent << '\n';
  for (const auto& of_one : times) {
    for (const auto& [name, samples] : of_one) {
      for (const double us : samples.us) out << name << '\t' << us << '\n';
    }
  }
  return out.flush() ? 0 : 1;
}

void bench_files(const Setting& setting, Report& report) {
  if (::chmod(setting.directory.c_str(), 0777) != 0) return;
  compare_writers(setting, report, 1, setting.runs * 10);
  compare_writers(setting, report, 8, setting.runs * 2);
  compare_one_beside(setting, report, setting.runs * 5);
  // Where the broker is one lock, a call of one among many costs more than one alone.
  const std::string name = std::string(kProcessorTime) + " a call";
  const std::string many = name + ", 8 writers, broker";
  if (report.find(kFilesGroup, many) == nullptr || report.find(kFilesGroup, name + ", broker") == nullptr) return;
  Row row = *report.find(kFilesGroup, many);
  row.name = name + ", 8 beside 1, broker";
  report.rows.push_back(row);
  report.compare_rows(kFilesGroup, row.name, name + ", broker", 2);
}

}  // namespace belljar::bench
