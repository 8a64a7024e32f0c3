#include "bench/measure.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>

namespace belljar::bench {

double now_us() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

double Samples::percentile(double share) const {
  if (us.empty()) return 0;
  std::vector<double> sorted = us;
  std::sort(sorted.begin(), sorted.end());
  const auto at = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size()))) - 1;
  return sorted[std::min(at, sorted.size() - 1)];
}

pid_t start_process(const Argv& argv, int out, bool quiet) {
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (out >= 0) ::posix_spawn_file_actions_adddup2(&actions, out, 1);
  else ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  if (quiet) ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : -1;
}

int run_process(const Argv& argv, int out, bool quiet) {
  const pid_t pid = start_process(argv, out, quiet);
  if (pid < 0) return -1;
  int status = 0;
  if (::waitpid(pid, &status, 0) < 0) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<Samples> compare(const std::vector<Rival>& rivals, int rounds, std::vector<std::string>& failed) {
  std::vector<Samples> samples(rivals.size());
  std::vector<bool> out(rivals.size(), false);
  for (int round = -3; round < rounds; ++round) {
    for (std::size_t i = 0; i < rivals.size(); ++i) {
      if (out[i]) continue;
      const double before = now_us();
      const bool well = rivals[i].act();
      const double took = now_us() - before;
      if (rivals[i].settle) rivals[i].settle();
      if (!well) {
        out[i] = true;
        samples[i].us.clear();
        failed.push_back(rivals[i].name);
      } else if (round >= 0) {
        samples[i].us.push_back(took);
      }
    }
  }
  return samples;
}

std::map<std::string, Samples> read_times(const std::string& file) {
  std::map<std::string, Samples> times;
  std::ifstream in(file);
  std::string name;
  for (double us = 0; std::getline(in, name, '\t') && in >> us; in.ignore()) times[name].us.push_back(us);
  return times;
}

bool installed(const std::string& program) {
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): one thread
  for (std::string rest = path == nullptr ? "" : path; !rest.empty();) {
    const std::size_t colon = rest.find(':');
    if (::access((rest.substr(0, colon) + "/" + program).c_str(), X_OK) == 0) return true;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return false;
}

}  // namespace belljar::bench
