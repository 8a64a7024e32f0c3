// What pid 1 knows: the commands that run, and what it was told at its start. One thread.
#pragma once

#include <linux/filter.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

namespace belljar::inside {

inline constexpr uint32_t kProtocol = 6;  // records.h has the same number
inline constexpr uint32_t kLargestRecord = 1U << 20;
inline constexpr size_t kLargestRequest = 64U << 20;
inline constexpr size_t kPiece = 32U << 10;    // of output in one record
inline constexpr uint64_t kWindow = 1U << 20;  // output under way that the outside has not taken; records.h has the same number
inline constexpr uint64_t kDrainAtMost = 1U << 20;  // read after a command's end: what it wrote fits in a pipe or two
inline constexpr size_t kMostProcesses = 1U << 16;

struct Victim {
  pid_t pid;
  unsigned long long start;  // field 22 of /proc/pid/stat: a pid that was used again has another
};

enum class Ending { kNo, kTerm, kKill };

struct Command {
  uint32_t id = 0;
  pid_t pid = 0;
  char* request = nullptr;
  size_t request_size = 0;
  long long started_us = 0, ended_us = 0;
  bool started = false, exited = false, detached = false, terminal = false;
  int status = 0;
  rusage usage{};
  int begin = -1;  // while it has not become the program yet: says so by its end, or why it cannot
  int out = -1, err = -1, in = -1;
  char* input = nullptr;
  size_t input_size = 0;
  bool close_input = false;
  uint64_t window = kWindow;
  Ending ending = Ending::kNo;
  long long kill_at = 0;
  Victim* victims = nullptr;
  size_t victim_count = 0;
  unsigned long long told_at = 0;  // when it was told to end, as Victim::start; 0: not yet
  pid_t* others = nullptr;         // sessions of processes that were there then and are not its own
  size_t other_count = 0;
  unsigned long long oom_before = 0, pids_before = 0;
  Command* next = nullptr;
};

// How it was started: limits for the commands (0: none), the signal mask that they get. What it was told since: their filter.
struct Setup {
  rlim_t open_files = RLIM_INFINITY, file_size = RLIM_INFINITY;  // RLIM_INFINITY: as the engine has it
  sigset_t mask{};
  int null = -1;  // /dev/null, opened before any command could put something in its place: root in there owns /dev
  sock_filter* filter = nullptr;
  unsigned short filter_size = 0;  // instructions; 0: none
};

extern Command* g_commands;

long long now_us();
inline long long now_ms() { return now_us() / 1000; }

inline void close_fd(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

}  // namespace belljar::inside
