#include "launch/inside/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace belljar::inside {

namespace {

unsigned long long counter_in(const char* path, const char* key) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[1024];
  const ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  if (got <= 0) return 0;
  text[got] = '\0';
  const size_t length = strlen(key);
  for (const char* line = text; line != nullptr && *line != '\0';) {
    if (strncmp(line, key, length) == 0 && line[length] == ' ') return strtoull(line + length + 1, nullptr, 10);
    line = strchr(line, '\n');
    if (line != nullptr) ++line;
  }
  return 0;
}

struct Known {
  pid_t pid, parent;
  unsigned long long start;
  bool marked, stopped;
};
Known g_known[kMostProcesses];
size_t g_known_count = 0;

bool read_stat(pid_t pid, Known& known) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[1024];
  const ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  if (got <= 0) return false;
  text[got] = '\0';
  const char* rest = strrchr(text, ')');  // the name may hold anything
  if (rest == nullptr) return false;
  char state = 0;
  int parent = 0;
  unsigned long long start = 0;
  if (sscanf(rest + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state, &parent,
             &start) != 3)
    return false;
  if (state == 'Z' || state == 'X') return false;
  known = {pid, parent, start, false, false};
  return true;
}

void list_processes() {
  g_known_count = 0;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return;
  while (const dirent* entry = readdir(proc)) {
    const int pid = atoi(entry->d_name);
    if (pid > 1 && g_known_count < kMostProcesses && read_stat(pid, g_known[g_known_count])) ++g_known_count;
  }
  closedir(proc);
}

// Marks the command, what it was when it was told to end, and all that descends from either.
void mark_tree(const Command& command) {
  list_processes();
  for (size_t i = 0; i < g_known_count; ++i) {
    Known& known = g_known[i];
    known.marked = !command.exited && known.pid == command.pid;
    for (size_t v = 0; v < command.victim_count; ++v)
      known.marked = known.marked || (command.victims[v].pid == known.pid && command.victims[v].start == known.start);
  }
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < g_known_count; ++i) {
      if (!g_known[i].marked) continue;
      for (size_t j = 0; j < g_known_count; ++j) {
        if (g_known[j].marked || g_known[j].parent != g_known[i].pid) continue;
        g_known[j].marked = more = true;
      }
    }
  }
}

void signal_tree(int number) {
  for (size_t i = 0; i < g_known_count; ++i) {
    if (g_known[i].marked) kill(g_known[i].pid, number);
  }
}

size_t marked_count() {
  size_t count = 0;
  for (size_t i = 0; i < g_known_count; ++i) count += g_known[i].marked ? 1 : 0;
  return count;
}

void remember_tree(Command& command) {
  mark_tree(command);
  free(command.victims);
  command.victim_count = 0;
  command.victims = static_cast<Victim*>(calloc(marked_count() + 1, sizeof(Victim)));
  if (command.victims == nullptr) return;
  for (size_t i = 0; i < g_known_count; ++i) {
    if (g_known[i].marked) command.victims[command.victim_count++] = {g_known[i].pid, g_known[i].start};
  }
}

}  // namespace

unsigned long long oom_kills() {
  return counter_in("/sys/fs/cgroup/memory.events", "oom_kill") +
         counter_in("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill");
}
unsigned long long pids_refused() {
  return counter_in("/sys/fs/cgroup/pids.events", "max") + counter_in("/sys/fs/cgroup/pids/pids.events", "max");
}

// Stopped first, again and again until no new one shows, so that none forks away while the others are killed.
void kill_tree(const Command& command) {
  size_t before = 0;
  for (int round = 0; round < 64; ++round) {
    mark_tree(command);
    const size_t count = marked_count();
    if (count == 0) return;
    signal_tree(SIGSTOP);
    if (count == before) break;
    before = count;
  }
  signal_tree(SIGKILL);
}

void end_command(Command& command, uint32_t grace_ms) {
  if (!command.started || command.exited || command.ending == Ending::kKill) return;
  if (grace_ms == 0) {
    command.ending = Ending::kKill;
    remember_tree(command);
    kill_tree(command);
    return;
  }
  if (command.ending == Ending::kTerm) return;
  command.ending = Ending::kTerm;
  command.kill_at = now_ms() + grace_ms;
  remember_tree(command);
  signal_tree(SIGTERM);
  signal_tree(SIGCONT);  // a stopped process does not see TERM
}

}  // namespace belljar::inside
