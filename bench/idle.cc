// Many idle sandboxes. Each needs nine descriptors, and a process may have few: so several processes of this program hold a share
// each, made one after the other.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/format.h"
#include "belljar/sandbox.h"
#include "bench/rows.h"

namespace belljar::bench {
namespace {

constexpr const char* kIdleGroup = "session";
constexpr int kAtOnce = 50, kMostOfOne = 1000;

// What the holders wrote so far: lines of a word and a number or a text.
struct Told {
  Samples made, memory, end;
  std::vector<std::string> left_out;
  int ready = 0;  // holders that have what they can have
};

Told read_notes(const std::string& path) {
  Told told;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t space = std::min(line.find(' '), line.size() - 1);
    const std::string word = line.substr(0, space), rest = line.substr(space + 1);
    if (word == "made") told.made.us.push_back(std::strtod(rest.c_str(), nullptr));
    else if (word == "memory") told.memory.us.push_back(std::strtod(rest.c_str(), nullptr));
    else if (word == "end") told.end.us.push_back(std::strtod(rest.c_str(), nullptr));
    else if (word == "ready") ++told.ready;
    else told.left_out.push_back("idle sandboxes: " + rest);
  }
  return told;
}

}  // namespace

double available_kib() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) return std::strtod(line.c_str() + 13, nullptr);
  }
  return 0;
}

// MemAvailable is the whole machine's, and others come and go meanwhile: so it is looked at after every fifty, and the median
// counts.
int hold_idle(const std::string& directory, const std::string& notes, int count) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  std::ofstream out(notes, std::ios::app);
  std::vector<std::shared_ptr<Sandbox>> idle;
  double available = available_kib();
  for (int i = 1; i <= count; ++i) {
    const double start = now_us();
    SandboxConfig config;
    config.workspace = directory;
    auto sandbox = make_sandbox(config);
    const auto started = sandbox ? (*sandbox)->start() : Result<void>();
    if (!sandbox || !started) {
      out << "left_out number " << i << " of a process: " << (sandbox ? started.error() : sandbox.error()).line() << "\n";
      break;
    }
    out << "made " << now_us() - start << "\n";
    idle.push_back(*std::move(sandbox));
    if (i % kAtOnce != 0) continue;
    ::usleep(100'000);  // the kernel frees some things a moment later
    const double now = available_kib();
    out << "memory " << (available - now) / 1024 / kAtOnce << "\n";
    available = now;
  }
  out << "ready " << idle.size() << std::endl;
  while (std::getchar() != EOF) {
  }
  for (const auto& sandbox : idle) {
    if (!sandbox->health()) out << "left_out one of them was dead\n";
  }
  for (auto& sandbox : idle) {
    const double start = now_us();
    sandbox = nullptr;
    out << "end " << now_us() - start << "\n";
  }
  return 0;
}

void bench_idle(const Setting& setting, Report& report) {
  if (setting.sandboxes == 0) return;
  using Pipe = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
  char self[4096] = {};
  if (::readlink("/proc/self/exe", self, sizeof self - 1) < 0) return;
  const std::string notes = setting.directory + ".idle";
  std::vector<Pipe> holders;
  for (int left = setting.sandboxes; left > 0; left -= kMostOfOne) {
    const std::string command = format("exec '{}' --hold '{}' '{}' {}", self, setting.directory, notes, std::min(left, kMostOfOne));
    holders.emplace_back(::popen(command.c_str(), "we"), ::pclose);
    const auto expected = static_cast<int>(holders.size());
    // Ten minutes are more than a thousand need; a holder that died is missed then.
    for (int i = 0; i < 6000 && read_notes(notes).ready < expected; ++i) ::usleep(100'000);
  }
  holders.clear();  // one after the other: each ends its share
  Told told = read_notes(notes);
  ::unlink(notes.c_str());
  report.left_out.insert(report.left_out.end(), told.left_out.begin(), told.left_out.end());
  if (told.made.us.empty()) return;
  report.add(kIdleGroup, format("make one of {} that stay", told.made.us.size()), told.made);
  report.add(kIdleGroup, format("memory of one of {} idle", told.made.us.size()), told.memory);
  report.rows.back().unit = "MiB";
  report.rows.back().target = 0.75;
  report.add(kIdleGroup, "end one of them", told.end);
}

}  // namespace belljar::bench
