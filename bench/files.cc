// What a call on files costs more when the broker performs it: the same small program under the same filter, once with file calls
// notified and once without, 1 and 8 writers at a time. "added" is the difference of the medians, promised in DESIGN section 12.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "backend/native/native.h"
#include "bench/rows.h"
#include "broker/broker.h"
#include "kernel/seccomp.h"
#include "launch/launcher.h"

namespace belljar::bench {
namespace {

constexpr const char* kGroup = "files";
constexpr int kWarmUp = 50;

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

void time_kinds(const std::string& at, int rounds, std::map<std::string, Samples>& times) {
  for (const Kind& kind : kinds(at)) {
    Samples& samples = times[kind.name];
    for (int round = -kWarmUp; round < rounds; ++round) {
      kind.before(round);
      const double start = now_us();
      kind.timed(round);
      const double end = now_us();
      kind.after(round);
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

bool run_inside(const Setting& setting, kernel::FileCalls calls, int writers, int rounds) {
  kernel::SeccompSpec filter{.file_calls = calls};
  auto prepared = prepare(setting, filter);
  if (!prepared) return false;
  launch::ExecRequest request;
  const std::string own = std::filesystem::read_symlink("/proc/self/exe").string();
  request.argv = {own, "--files-inside", setting.directory, std::to_string(writers), std::to_string(rounds)};
  auto sandbox = launch::start(prepared->plan, &request, {});
  if (!sandbox) return false;
  broker::BrokerOptions options{.filter = filter};
  if (prepared->plan.identity == launch::Identity::kRootMapped) {
    options.uid = prepared->plan.outside_uid, options.gid = prepared->plan.outside_gid;
  }
  broker::FileRulesOptions rules;
  rules.roots = {setting.directory};
  options.rules = std::make_shared<broker::FileRules>(std::move(rules));
  auto broker = broker::Broker::create(sandbox->take_listener(), std::move(options));
  if (!broker) return false;
  bool well = false;
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
  sandbox->kill_and_reap();
  return well;
}

std::map<std::string, Samples> read_times(const std::string& file) {
  std::map<std::string, Samples> times;
  std::ifstream in(file);
  std::string name;
  for (double us = 0; std::getline(in, name, '\t') && in >> us; in.ignore()) times[name].us.push_back(us);
  return times;
}

void compare_writers(const Setting& setting, Report& report, int writers, int rounds) {
  const std::string file = setting.directory + "/times";
  const std::string who = writers == 1 ? "" : ", " + std::to_string(writers) + " writers";
  if (!run_inside(setting, kernel::FileCalls::kDirect, writers, rounds))
    return report.left_out.push_back("files: no sandbox starts");
  const auto kernel = read_times(file);
  if (!run_inside(setting, kernel::FileCalls::kWrites, writers, rounds)) return report.left_out.push_back("files: no broker");
  const auto broker = read_times(file);
  for (const Kind& kind : kinds("")) {
    const std::string name = kind.name + who;
    report.add(kGroup, name + ", kernel", kernel.at(kind.name));
    report.add(kGroup, name + ", broker", broker.at(kind.name));
    report.compare_rows(kGroup, name + ", broker", name + ", kernel", 0);
    Row added{.group = kGroup, .name = name + ", added"};
    added.p50 = report.find(kGroup, name + ", broker")->p50 - report.find(kGroup, name + ", kernel")->p50;
    added.p99 = report.find(kGroup, name + ", broker")->p99 - report.find(kGroup, name + ", kernel")->p99;
    added.runs = rounds;
    added.target = 10;
    report.rows.push_back(added);
  }
}

}  // namespace

int files_inside(const std::string& directory, int writers, int rounds) {
  std::vector<std::map<std::string, Samples>> times(static_cast<std::size_t>(writers));
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    const std::string at = directory + "/writer" + std::to_string(writer);
    ::mkdir(at.c_str(), 0755);
    threads.emplace_back([&, writer, at] { time_kinds(at, rounds, times[static_cast<std::size_t>(writer)]); });
  }
  for (std::thread& thread : threads) thread.join();
  std::ofstream out(directory + "/times");
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
}

}  // namespace belljar::bench
