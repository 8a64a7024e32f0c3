// Times of whole processes and of single acts, taken in turns so that every rival sees the same weather.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace belljar::bench {

using Argv = std::vector<std::string>;

double now_us() noexcept;

struct Samples {
  std::vector<double> us;
  double percentile(double share) const;  // of sorted copies; 0 when empty
  double p50() const { return percentile(0.50); }
  double p99() const { return percentile(0.99); }
};

// Starts `argv` with posix_spawn; -1 when it could not be started. stdin and stdout are /dev/null unless `out` (a descriptor) is
// given; stderr is dropped when `quiet`.
pid_t start_process(const Argv& argv, int out = -1, bool quiet = true);
// The same, waits, returns its exit code (128+n for a signal, -1 when it could not be started).
int run_process(const Argv& argv, int out = -1, bool quiet = true);

// One rival of a comparison: does its act once and says whether it went well.
struct Rival {
  std::string name;
  std::function<bool()> act;
  std::function<void()> settle = {};  // after each turn, not measured: what it left to be done is none of the next rival's
};

// Runs all rivals `rounds` times in turns after three rounds of warming up. A rival that ever fails has no samples, and `failed`
// names it: a refused start is fast and means nothing.
std::vector<Samples> compare(const std::vector<Rival>& rivals, int rounds, std::vector<std::string>& failed);

// What a client inside a sandbox wrote: a line `NAME\tMICROSECONDS` for each.
std::map<std::string, Samples> read_times(const std::string& file);

bool installed(const std::string& program);

}  // namespace belljar::bench
