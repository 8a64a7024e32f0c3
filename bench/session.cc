// The library's Sandbox: commands in a live one, files, one made for each command, many idle ones, and a soak.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/pool.h"
#include "belljar/sandbox.h"
#include "bench/probe.h"
#include "bench/rows.h"

namespace belljar::bench {
namespace {

constexpr const char* kSessionGroup = "session";
constexpr std::size_t kMiB = 1U << 20;

Result<std::shared_ptr<Sandbox>> open_sandbox(const Setting& setting) {
  SandboxConfig config;
  config.workspace = setting.directory;
  auto sandbox = BELLJAR_TRY(make_sandbox(config));
  BELLJAR_CHECK(sandbox->start());
  return sandbox;
}

void leave_out(Report& report, const std::string& what, const Error& error) {
  report.left_out.push_back(what + ": " + error.line());
}

void bench_exec(const Setting& setting, Report& report) {
  auto sandbox = open_sandbox(setting);
  if (!sandbox) return leave_out(report, "session", sandbox.error());
  std::vector<std::string> failed;
  const std::vector<Rival> rivals = {{"posix_spawn, wait", [] { return run_process({"/bin/true"}) == 0; }},
                                     {"Sandbox::exec, warm", [&] { return exec_true(**sandbox); }}};
  const auto samples = compare(rivals, setting.runs, failed);
  for (std::size_t i = 0; i < rivals.size(); ++i) report.add(kSessionGroup, rivals[i].name, samples[i]);
  report.compare_rows(kSessionGroup, "Sandbox::exec, warm", rivals[0].name, 1.3);
}

// Of every thread: those that serve sandboxes are here already.
bool run_on(const cpu_set_t& processors) {
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir("/proc/self/task"), ::closedir);
  bool well = tasks != nullptr;
  while (const dirent* task = well ? ::readdir(tasks.get()) : nullptr) {
    const int tid = std::atoi(task->d_name);  // NOLINT(cert-err34-c): the kernel wrote it
    if (tid > 0) well = ::sched_setaffinity(tid, sizeof processors, &processors) == 0;
  }
  return well;
}

// Everything that takes part on one processor: 1 500 a second are 667 us each.
void bench_one_core(const Setting& setting, Report& report) {
  cpu_set_t before;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  ::sched_getaffinity(0, sizeof before, &before);
  if (!run_on(one)) return report.left_out.push_back("exec on one core: no processor 0");
  if (auto sandbox = open_sandbox(setting)) {
    Samples samples;
    for (int i = -20; i < setting.runs * 5; ++i) {
      const double start = now_us();
      if (!exec_true(**sandbox)) break;
      if (i >= 0) samples.us.push_back(now_us() - start);
    }
    report.add(kSessionGroup, "Sandbox::exec, all on one core", samples);
    report.rows.back().target = 667;
  }
  run_on(before);
}

void bench_whole_life(const Setting& setting, Report& report) {
  std::vector<std::string> failed;
  const auto samples = compare({{"life",
                                 [&] {
                                   auto sandbox = open_sandbox(setting);
                                   return sandbox && exec_true(**sandbox) && (*sandbox)->stop();
                                 }},
                                {"probe", [&] { return plain_probe(setting.directory); }}},
                               setting.runs, failed);
  report.add(kSessionGroup, "create, exec, destroy", samples[0]);
  add_plain_probe(report, kSessionGroup, report.rows.back().name, samples[1]);
}

bool write_plainly(const std::string& path, const std::string& bytes) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  return fd.valid() && ::write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

bool read_plainly(const std::string& path, std::size_t size) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes(size, '\0');
  return fd.valid() && ::read(fd.get(), bytes.data(), size) == static_cast<ssize_t>(size);
}

void bench_file_calls(const Setting& setting, Report& report) {
  auto sandbox = open_sandbox(setting);
  if (!sandbox) return;
  const std::string bytes(kMiB, 'x');
  const std::string plain = setting.directory + "/plain";
  std::vector<std::string> failed;
  const std::vector<Rival> rivals = {
      {"write 1 MiB, plain", [&] { return write_plainly(plain, bytes); }},
      {"write_file, 1 MiB", [&] { return (*sandbox)->write_file("through", bytes).has_value(); }},
      {"read 1 MiB, plain", [&] { return read_plainly(plain, bytes.size()); }},
      {"read_file, 1 MiB", [&] { return (*sandbox)->read_file("through").value().size() == bytes.size(); }},
      {"write_file, 100 bytes", [&] { return (*sandbox)->write_file("small", bytes.substr(0, 100)).has_value(); }},
  };
  const auto samples = compare(rivals, setting.runs, failed);
  for (std::size_t i = 0; i < rivals.size(); ++i) report.add(kSessionGroup, rivals[i].name, samples[i]);
  report.compare_rows(kSessionGroup, rivals[1].name, rivals[0].name, 1.5);
  report.compare_rows(kSessionGroup, rivals[3].name, rivals[2].name, 1.5);
}

// One value of a file of lines "Name: value ...".
double value_in(const char* file, std::string_view name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) return std::atof(line.c_str() + name.size());  // NOLINT(cert-err34-c): the kernel wrote it
  }
  return 0;
}

double count_entries(const char* directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory), ::closedir);
  double count = 0;
  while (stream != nullptr && ::readdir(stream.get()) != nullptr) ++count;
  return count;
}

double count_lines(const char* file) {
  std::ifstream lines(file);
  double count = 0;
  for (std::string line; std::getline(lines, line);) ++count;
  return count;
}

void add_value(Report& report, std::string name, std::string unit, double value, double target) {
  Row row;
  row.group = kSessionGroup;
  row.name = std::move(name);
  row.unit = std::move(unit);
  row.p50 = value;
  row.runs = 1;
  row.target = target;
  report.rows.push_back(std::move(row));
}

void bench_pool(const Setting& setting, Report& report) {
  PoolOptions options;
  options.workspaces = setting.directory;
  options.ready = 4;
  options.most = 16;
  auto pool = Pool::create(options);
  if (!pool) return leave_out(report, "pool", pool.error());
  Samples taken;
  Samples used;
  for (int i = -3; i < setting.runs; ++i) {
    // Filled again, and what was given back gone: else its end is measured.
    while ((*pool)->stats().ready < options.ready) ::usleep(1000);
    ::usleep(2000);
    const double start = now_us();
    auto lease = (*pool)->take();
    const double took = now_us() - start;
    if (!lease) return leave_out(report, "pool", lease.error());
    if (!exec_true(**lease)) return report.left_out.push_back("pool: a command failed");
    if (i < 0) continue;
    taken.us.push_back(took);
    used.us.push_back(now_us() - start);
  }
  report.add(kSessionGroup, "pool: hand out one that answers", taken);
  report.rows.back().target = 200;
  report.add(kSessionGroup, "pool: hand out, exec", used);
  report.rows.back().target = 1000;
}

void bench_soak(const Setting& setting, Report& report) {
  if (setting.execs == 0) return;
  auto sandbox = open_sandbox(setting);
  if (!sandbox) return;
  struct Held {
    double memory, descriptors, threads, mounts;
  };
  const auto look = [] {
    return Held{value_in("/proc/self/status", "VmRSS:"), count_entries("/proc/self/fd"), value_in("/proc/self/status", "Threads:"),
                count_lines("/proc/self/mountinfo")};
  };
  int done = 0;
  const auto run = [&](int count) {
    for (int i = 0; i < count && exec_true(**sandbox); ++i) ++done;
  };
  run(1000);  // what is allocated once
  const Held before = look();
  const double inside = static_cast<double>((*sandbox)->stats()->memory.count) / 1024;
  const double start = now_us();
  run(setting.execs);
  const double took = now_us() - start;
  const Held after = look();
  const std::string name = format("after {} execs", done - 1000);
  add_value(report, name + ": rate", "/s", static_cast<double>(done - 1000) / took * 1e6, 0);
  // A bound of one page for every hundred: what grows with each exec is far above it.
  add_value(report, name + ": memory grown", "KiB", after.memory - before.memory, 4.0 * setting.execs / 100);
  add_value(report, name + ": init grown", "KiB", static_cast<double>((*sandbox)->stats()->memory.count) / 1024 - inside, 64);
  const double others = after.descriptors - before.descriptors + after.threads - before.threads + after.mounts - before.mounts;
  add_value(report, name + ": descriptors, threads, mounts grown", "", others, 0.5);
}

}  // namespace

bool exec_true(Sandbox& sandbox) {
  const auto result = sandbox.exec(Command{.argv = {"/bin/true"}, .cwd = {}, .env = {}});
  return result && result->exit_code == 0;
}

void bench_session(const Setting& setting, Report& report) {
  const auto rows = report.rows.size();
  bench_exec(setting, report);
  if (report.rows.size() == rows) return;  // it cannot start here, and that is said
  bench_one_core(setting, report);
  bench_whole_life(setting, report);
  bench_file_calls(setting, report);
  bench_pool(setting, report);
  bench_idle(setting, report);
  bench_soak(setting, report);
}

}  // namespace belljar::bench
