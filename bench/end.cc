// How long a tree outlives its front: from SIGKILL to the front until nothing inside holds the pipe any more.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "bench/measure.h"
#include "bench/rows.h"

namespace belljar::bench {
namespace {

constexpr int kPatienceMs = 10'000;
// Four processes: two that ignore what can be ignored, one in a session of its own. Each holds the pipe.
constexpr const char* kTree = "(setsid sh -c 'trap \"\" TERM HUP INT; sleep 1000; :' &); trap '' TERM; printf r; sleep 1000; :";

// Microseconds; negative when the tree was not there or did not go.
double measure_end(const Argv& argv) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return -1;
  const UniqueFd mine(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t pid = start_process(argv, theirs.get(), false);
  if (pid < 0) return -1;
  theirs.reset();
  char byte = 0;
  const bool ready = ::read(mine.get(), &byte, 1) == 1;
  const double before = now_us();
  ::kill(pid, SIGKILL);
  pollfd gone{mine.get(), POLLIN, 0};
  const bool ended = ready && ::poll(&gone, 1, kPatienceMs) == 1 && ::read(mine.get(), &byte, 1) == 0;
  const double took = now_us() - before;
  ::waitpid(pid, nullptr, 0);
  return ended ? took : -1;
}

void add_row(const Setting& setting, const std::string& name, const Argv& options, Report& report) {
  Argv argv = {setting.belljar, "run", "--workspace", setting.directory};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.insert(argv.end(), {"--", "sh", "-c", kTree});
  Samples samples;
  const int rounds = setting.runs < 50 ? setting.runs : 50;
  for (int round = 0; round < rounds; ++round) {
    const double took = measure_end(argv);
    if (took < 0) return report.left_out.push_back(name + ": a run failed, so none is shown");
    samples.us.push_back(took);
  }
  report.add("end", name, samples);
  report.rows.back().target = 100'000;  // SPECIFICATION: within 100 ms
}

}  // namespace

void bench_end(const Setting& setting, Report& report) {
  add_row(setting, "front killed, until its tree is gone", {}, report);
  add_row(setting, "the same with --pids 100", {"--pids", "100"}, report);
}

}  // namespace belljar::bench
