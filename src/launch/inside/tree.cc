// Finding and ending the process tree of one command among those of others, without a cgroup of its own.
//
// In a container for several commands all share one cgroup and one pid namespace, so membership is derived
// from /proc. A command's process is a subreaper: what its descendants leave behind comes to it and not to
// pid 1. So descent from it marks a process (mark_tree); what came to pid 1 because the command has ended
// itself is told apart by what was there before, by session and by start time.
//
// A listing of /proc is no snapshot: a process may fork behind the reader and end before it is read. So one
// listing proves nothing. The tree is stopped until no new process shows, then killed until nobody is found
// that was not sent SIGKILL (kill_tree), for two listings in a row.
#include "launch/inside/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

namespace belljar::inside {

namespace {

constexpr int kMostDisturbed = 200;
constexpr int kQuietRounds = 2;             // one may miss who forks just as pids begin anew
constexpr long long kKillPatience = 3000;   // ms; who waits outside gives us ten seconds
constexpr useconds_t kBetweenRounds = 500;  // µs, while the command's own process has not stopped yet

// As field 22 of /proc/pid/stat counts, less one: what has not begun a tick yet has the number of the one before.
unsigned long long now_ticks() {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  const auto per_second = static_cast<unsigned long long>(sysconf(_SC_CLK_TCK));
  return static_cast<unsigned long long>(now.tv_sec) * per_second +
         static_cast<unsigned long long>(now.tv_nsec) * per_second / 1000000000 - 1;
}

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

enum class Membership : char { kUnknown, kMarked, kOther };  // of the command that is ended, or of another

struct ProcessRecord {
  pid_t pid, parent, session;
  unsigned long long start;
  int threads;
  char state;  // of its first thread, as in /proc/pid/stat
  Membership side;
  int sent;  // what it was sent last by who ends its tree
};

// By pid, as /proc lists them. The one before stays, so that a listing knows whom it has met.
struct Listing {
  ProcessRecord known[kMostProcesses];
  size_t count;
  bool one_left;  // between its name and its state: what it forked may not be here
};
Listing g_listings[2];
Listing* g_now = &g_listings[0];

bool read_stat(const char* path, pid_t pid, ProcessRecord& known) {
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
  int parent = 0, session = 0, threads = 0;
  unsigned long long start = 0;
  if (sscanf(rest + 1, " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu", &state, &parent, &session,
             &threads, &start) != 5)
    return false;
  known = {pid, parent, session, start, threads, state, Membership::kUnknown, 0};
  return true;
}

ProcessRecord* find_known(Listing& listing, pid_t pid) {
  size_t low = 0, high = listing.count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (listing.known[middle].pid < pid) low = middle + 1;
    else high = middle;
  }
  return low < listing.count && listing.known[low].pid == pid ? &listing.known[low] : nullptr;
}

bool has_ended(char state) { return state == 'Z' || state == 'X'; }

// A process whose first thread has ended reads as a zombie while the others run.
bool is_dead(const ProcessRecord& known) { return has_ended(known.state) && known.threads <= 1; }

void list_processes() {
  Listing& before = *g_now;
  g_now = g_now == &g_listings[0] ? &g_listings[1] : &g_listings[0];
  g_now->count = 0;
  g_now->one_left = false;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return;
  while (const dirent* entry = readdir(proc)) {
    const int pid = atoi(entry->d_name);
    if (pid <= 1 || g_now->count == kMostProcesses) continue;
    ProcessRecord& known = g_now->known[g_now->count];
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!read_stat(path, pid, known)) {
      g_now->one_left = true;
      continue;
    }
    ++g_now->count;
    const ProcessRecord* const met = find_known(before, pid);
    if (met != nullptr && met->start == known.start) known.sent = met->sent;
  }
  closedir(proc);
}

void forget_sent() {
  for (size_t i = 0; i < g_now->count; ++i) g_now->known[i].sent = 0;
}

bool is_a_commands_own(pid_t pid) {
  for (const Command* command = g_commands; command != nullptr; command = command->next) {
    if (command->started && !command->exited && command->pid == pid) return true;
  }
  return false;
}

bool is_session_of_others(const Command& command, pid_t session) {
  if (session == command.pid) return false;
  for (const Command* other = g_commands; other != nullptr; other = other->next) {
    if (other->pid == session) return true;
  }
  for (size_t i = 0; i < command.other_count; ++i) {
    if (command.others[i] == session) return true;
  }
  return false;
}

// What the command forked when it had been told to end, and left behind: its parent is gone, and with it the command's own process,
// to which such a one comes. A session is never entered from outside it, so who is in one that was another's is another's.
bool is_late_orphan(const Command& command, const ProcessRecord& known) {
  return command.told_at != 0 && known.parent == 1 && known.start >= command.told_at && !is_a_commands_own(known.pid) &&
         !is_session_of_others(command, known.session);
}

void spread() {
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < g_now->count; ++i) {
      ProcessRecord& known = g_now->known[i];
      if (known.side != Membership::kUnknown) continue;
      const ProcessRecord* const parent = find_known(*g_now, known.parent);
      if (parent == nullptr || parent->side == Membership::kUnknown) continue;
      known.side = parent->side;
      more = true;
    }
  }
}

// Marks the command, what it was when it was told to end, what it left behind since, and all that descends from any of them.
void mark_tree(const Command& command) {
  list_processes();
  if (ProcessRecord* const own = command.exited ? nullptr : find_known(*g_now, command.pid); own != nullptr)
    own->side = Membership::kMarked;
  for (size_t v = 0; v < command.victim_count; ++v) {
    ProcessRecord* const victim = find_known(*g_now, command.victims[v].pid);
    if (victim != nullptr && victim->start == command.victims[v].start) victim->side = Membership::kMarked;
  }
  for (size_t i = 0; i < g_now->count; ++i) {
    ProcessRecord& known = g_now->known[i];
    if (known.side == Membership::kUnknown && known.parent <= 1)
      known.side = is_late_orphan(command, known) ? Membership::kMarked : Membership::kOther;
  }
  spread();
}

bool is_own(const Command& command, const ProcessRecord& known) { return !command.exited && known.pid == command.pid; }

// To all that are marked, the command's own process or the others; how many of them had not been sent it yet, those included that
// have died meanwhile: what they forked may not be listed.
size_t signal_marked(const Command& command, int number, bool own) {
  size_t fresh = 0;
  for (size_t i = 0; i < g_now->count; ++i) {
    ProcessRecord& known = g_now->known[i];
    if (known.side != Membership::kMarked || is_own(command, known) != own) continue;
    if (known.sent != number) ++fresh;
    known.sent = number;
    kill(known.pid, number);  // who is dead does not mind
  }
  return fresh;
}

void signal_tree(const Command& command, int number) {
  signal_marked(command, number, false);
  signal_marked(command, number, true);
}

bool a_thread_runs(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR* const tasks = opendir(path);
  if (tasks == nullptr) return false;
  bool runs = false;
  while (const dirent* entry = runs ? nullptr : readdir(tasks)) {
    const int thread = atoi(entry->d_name);
    ProcessRecord known;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, thread);
    runs = thread > 0 && read_stat(path, thread, known) && !has_ended(known.state) && known.state != 'T' && known.state != 't';
  }
  closedir(tasks);
  return runs;
}

bool own_runs(const Command& command) {
  const ProcessRecord* const own = command.exited ? nullptr : find_known(*g_now, command.pid);
  if (own == nullptr || is_dead(*own)) return false;
  if (has_ended(own->state)) return a_thread_runs(own->pid);
  return own->state != 'T' && own->state != 't';
}

size_t count_of(Membership side) {
  size_t count = 0;
  for (size_t i = 0; i < g_now->count; ++i) count += g_now->known[i].side == side ? 1 : 0;
  return count;
}

void remember_others(Command& command) {
  free(command.others);
  command.other_count = 0;
  command.others = static_cast<pid_t*>(calloc(count_of(Membership::kOther) + 1, sizeof(pid_t)));
  if (command.others == nullptr) return;
  for (size_t i = 0; i < g_now->count; ++i) {
    const ProcessRecord& known = g_now->known[i];
    if (known.side == Membership::kOther) command.others[command.other_count++] = known.session;
  }
}

void remember_tree(Command& command) {
  const unsigned long long now = now_ticks();
  mark_tree(command);
  if (command.told_at == 0) {
    remember_others(command);
    command.told_at = now;
  }
  free(command.victims);
  command.victim_count = 0;
  command.victims = static_cast<Victim*>(calloc(count_of(Membership::kMarked) + 1, sizeof(Victim)));
  if (command.victims == nullptr) return;
  for (size_t i = 0; i < g_now->count; ++i) {
    const ProcessRecord& known = g_now->known[i];
    if (known.side == Membership::kMarked && !is_dead(known)) command.victims[command.victim_count++] = {known.pid, known.start};
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

// All but the command's own process are stopped, again and again until no new one shows, so that they hold their places under the
// limit of processes and none forks away; then killed, until a look finds nobody who was not. A process that forks and ends, over
// and over, is met sooner or later: its orphans come to the command's own process, which is stopped first and killed last. Where
// they stay ahead of us it is left as it is, and who waits outside ends the container.
void kill_tree(const Command& command) {
  long long give_up = now_ms() + kKillPatience;  // for the stops, and again for the kills
  forget_sent();
  int number = SIGSTOP;
  int quiet = 0;  // looks in a row that found nobody new
  for (int round = 0;; ++round) {
    mark_tree(command);
    const bool late = now_ms() >= give_up;
    if (round < 2 || own_runs(command)) signal_marked(command, SIGSTOP, true);
    const bool fresh = signal_marked(command, number, false) > 0;
    if (fresh && late) return;
    // One that left may have been another command's.
    quiet = fresh || (g_now->one_left && !late && round < kMostDisturbed) ? 0 : quiet + 1;
    if (quiet == 0) continue;
    if (number == SIGSTOP) {
      number = SIGKILL;
      give_up = now_ms() + kKillPatience;
    } else if (late || (quiet >= kQuietRounds && !own_runs(command))) {
      signal_marked(command, SIGKILL, true);
      return;
    } else if (quiet >= kQuietRounds) {
      usleep(kBetweenRounds);
    }
  }
}

void note_ended(const Command& ended) {
  for (Command* command = g_commands; command != nullptr; command = command->next) {
    if (command == &ended || command->ending != Ending::kTerm || command->exited) continue;
    const size_t size = (command->other_count + 1) * sizeof(pid_t);
    auto* const larger = static_cast<pid_t*>(realloc(command->others, size));
    if (larger == nullptr) continue;
    command->others = larger;
    command->others[command->other_count++] = ended.pid;
  }
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
  signal_tree(command, SIGTERM);
  signal_tree(command, SIGCONT);  // a stopped process does not see TERM
}

}  // namespace belljar::inside
