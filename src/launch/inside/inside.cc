// belljar-inside: pid 1 of a container that the container backend starts. Static, needs nothing of the image, so a scratch image
// works.
//
// The engine's attach stream is its only line to the outside: requests come in on stdin, everything goes out on stdout, in records
// (backend/container/records.h). The Engine API has no call that ends a command inside, and one `docker exec` costs a whole runtime
// start; this program starts commands itself and ends their trees, so neither matters, and any engine or runtime that can attach
// will do. When stdin ends, whoever started us is gone: pid 1 exits and takes everything with it.
//
// It runs as the same user as the commands. They cannot signal it (pid 1 gets only the signals that it asks for, pid_namespaces(7))
// nor look into it (it is not dumpable, so its /proc/1/fd and its memory are closed to them, ptrace(2)).
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <new>

namespace {

constexpr uint32_t kLargestRecord = 1U << 20;
constexpr size_t kLargestRequest = 64U << 20;
constexpr size_t kPiece = 32U << 10;         // of output in one record
constexpr uint64_t kWindow = 1U << 20;       // output under way that the outside has not taken; records.h has the same number
constexpr uint64_t kDrainAtMost = 1U << 20;  // read after a command's end: what it wrote fits in a pipe or two
constexpr size_t kMostProcesses = 1U << 16;

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
  int out = -1, err = -1, in = -1;
  char* input = nullptr;
  size_t input_size = 0;
  bool close_input = false;
  uint64_t window = kWindow;
  Ending ending = Ending::kNo;
  long long kill_at = 0;
  Victim* victims = nullptr;
  size_t victim_count = 0;
  unsigned long long oom_before = 0, pids_before = 0;
  Command* next = nullptr;
};

Command* g_commands = nullptr;
rlim_t g_open_files = 0, g_file_size = 0;
sigset_t g_old_mask;

long long now_us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}
long long now_ms() { return now_us() / 1000; }

// --- records out

void put32(char* at, uint32_t value) {
  at[0] = static_cast<char>(value >> 24);
  at[1] = static_cast<char>(value >> 16);
  at[2] = static_cast<char>(value >> 8);
  at[3] = static_cast<char>(value);
}
void put64(char* at, uint64_t value) {
  put32(at, static_cast<uint32_t>(value >> 32));
  put32(at + 4, static_cast<uint32_t>(value));
}
uint32_t get32(const char* at) {
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(at);
  return static_cast<uint32_t>(bytes[0]) << 24 | static_cast<uint32_t>(bytes[1]) << 16 | static_cast<uint32_t>(bytes[2]) << 8 |
         bytes[3];
}

// Blocks: the outside always reads, and what is under way for one command is bounded by its window.
void write_all(const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t wrote = write(1, bytes, size);
    if (wrote > 0) {
      bytes += wrote;
      size -= static_cast<size_t>(wrote);
    } else if (errno == EAGAIN) {
      pollfd wait{1, POLLOUT, 0};
      poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      _exit(1);  // nobody listens
    }
  }
}

// `record` has 9 bytes of room before its payload.
void send_record(char type, uint32_t id, char* record, size_t payload) {
  record[0] = type;
  put32(record + 1, id);
  put32(record + 5, static_cast<uint32_t>(payload));
  write_all(record, payload + 9);
}

void send_number(char type, uint32_t id, uint32_t value) {
  char record[9 + 4];
  put32(record + 9, value);
  send_record(type, id, record, 4);
}

// --- what the kernel counted against the container's limits

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
unsigned long long oom_kills() {
  return counter_in("/sys/fs/cgroup/memory.events", "oom_kill") +
         counter_in("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill");
}
unsigned long long pids_refused() {
  return counter_in("/sys/fs/cgroup/pids.events", "max") + counter_in("/sys/fs/cgroup/pids/pids.events", "max");
}

// --- trees

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

// --- starting a command

struct Failure {
  int error = 0;
  char step = 'e';  // c: the working directory, e: execve, r: a resource of ours
};

struct Words {
  char** argv = nullptr;
  char** envp = nullptr;
  char* cwd = nullptr;
};

// "argc envc" as two numbers, then cwd, argv and the variables, each ended by NUL.
bool take_apart(Command& command, Words& words) {
  if (command.request_size < 8) return false;
  const size_t argc = get32(command.request), envc = get32(command.request + 4);
  char* at = command.request + 8;
  char* const end = command.request + command.request_size;
  size_t inherited = 0;
  while (environ[inherited] != nullptr) ++inherited;
  if (argc == 0 || argc > command.request_size || envc > command.request_size) return false;
  words.argv = static_cast<char**>(calloc(argc + 1, sizeof(char*)));
  words.envp = static_cast<char**>(calloc(inherited + envc + 1, sizeof(char*)));
  if (words.argv == nullptr || words.envp == nullptr) return false;
  size_t variables = 0;
  for (; variables < inherited; ++variables) words.envp[variables] = environ[variables];
  for (size_t i = 0; i < 1 + argc + envc; ++i) {
    char* const stop = static_cast<char*>(memchr(at, 0, static_cast<size_t>(end - at)));
    if (stop == nullptr) return false;
    if (i == 0) words.cwd = at;
    else if (i <= argc) words.argv[i - 1] = at;
    else {
      const char* const equals = strchr(at, '=');
      if (equals == nullptr) return false;
      size_t slot = 0;
      while (slot < variables && strncmp(words.envp[slot], at, static_cast<size_t>(equals - at) + 1) != 0) ++slot;
      words.envp[slot] = at;
      if (slot == variables) ++variables;
    }
    at = stop + 1;
  }
  return true;
}

const char* variable(char* const* envp, const char* name) {
  const size_t length = strlen(name);
  for (; *envp != nullptr; ++envp) {
    if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=') return *envp + length + 1;
  }
  return nullptr;
}

// As execvpe(3), in the child: the working directory is the command's, which a relative entry of PATH is seen from.
int exec_in_path(const Words& words) {
  const char* const program = words.argv[0];
  if (strchr(program, '/') != nullptr) {
    execve(program, words.argv, words.envp);
    return errno;
  }
  const char* path = variable(words.envp, "PATH");
  if (path == nullptr) path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  int found = ENOENT;
  for (bool more = true; more;) {
    const char* const stop = strchrnul(path, ':');
    char full[4096];
    const int length = static_cast<int>(stop - path);
    const int printed = snprintf(full, sizeof full, "%.*s%s%s", length, path, length == 0 ? "" : "/", program);
    if (printed > 0 && static_cast<size_t>(printed) < sizeof full) {
      execve(full, words.argv, words.envp);
      if (errno == EACCES) found = EACCES;
      else if (errno != ENOENT && errno != ENOTDIR) return errno;
    }
    more = *stop == ':';
    path = stop + 1;
  }
  return found;
}

struct Ends {
  int in = -1, out = -1, err = -1;  // the command's
  bool terminal = false;
};

void limit(int resource, rlim_t value) {
  rlimit now;
  if (value == 0 || getrlimit(static_cast<__rlimit_resource_t>(resource), &now) != 0) return;
  now.rlim_max = value < now.rlim_max ? value : now.rlim_max;
  now.rlim_cur = now.rlim_max;
  setrlimit(static_cast<__rlimit_resource_t>(resource), &now);
}

// In the child, which shares our memory until execve(2): no library state is touched.
[[noreturn]] void become(const Words& words, const Ends& ends, volatile Failure* failure) {
  setsid();
  if (dup2(ends.in, 0) < 0 || dup2(ends.out, 1) < 0 || dup2(ends.err, 2) < 0) {
    failure->error = errno;
    failure->step = 'r';
    _exit(126);
  }
  if (ends.terminal) ioctl(0, TIOCSCTTY, 0);
  // Its orphans come to it while it runs, so they are found below it when it has to end.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  limit(RLIMIT_NOFILE, g_open_files);
  limit(RLIMIT_FSIZE, g_file_size);
  if (chdir(words.cwd) != 0) {
    failure->error = errno;
    failure->step = 'c';
    _exit(126);
  }
  struct sigaction plain{};
  plain.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &plain, nullptr);
  sigprocmask(SIG_SETMASK, &g_old_mask, nullptr);
  failure->error = exec_in_path(words);
  failure->step = 'e';
  _exit(126);
}

bool open_terminal(Command& command, Ends& ends, uint16_t rows, uint16_t columns) {
  const int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (master < 0) return false;
  command.out = master;
  int unlock = 0;
  unsigned number = 0;
  if (ioctl(master, TIOCSPTLCK, &unlock) != 0 || ioctl(master, TIOCGPTN, &number) != 0) return false;
  char path[32];
  snprintf(path, sizeof path, "/dev/pts/%u", number);
  const winsize size{rows, columns, 0, 0};
  ioctl(master, TIOCSWINSZ, &size);
  ends.in = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
  ends.terminal = true;
  if (ends.in < 0) return false;
  ends.out = fcntl(ends.in, F_DUPFD_CLOEXEC, 3);
  ends.err = fcntl(ends.in, F_DUPFD_CLOEXEC, 3);
  command.in = fcntl(master, F_DUPFD_CLOEXEC, 3);
  command.terminal = true;
  return ends.out >= 0 && ends.err >= 0 && command.in >= 0;
}

bool open_pipes(Command& command, Ends& ends, bool input) {
  int pair[2];
  if (pipe2(pair, O_CLOEXEC) != 0) return false;
  command.out = pair[0];
  ends.out = pair[1];
  if (pipe2(pair, O_CLOEXEC) != 0) return false;
  command.err = pair[0];
  ends.err = pair[1];
  fcntl(command.out, F_SETFL, O_NONBLOCK);
  fcntl(command.err, F_SETFL, O_NONBLOCK);
  if (!input) {
    ends.in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return ends.in >= 0;
  }
  if (pipe2(pair, O_CLOEXEC) != 0) return false;
  ends.in = pair[0];
  command.in = pair[1];
  fcntl(command.in, F_SETFL, O_NONBLOCK);
  return true;
}

void close_fd(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

Failure run(Command& command, const Ends& ends, const Words& words) {
  volatile Failure failure;
  const pid_t pid = vfork();
  if (pid == 0) become(words, ends, &failure);
  if (pid < 0) {
    failure.error = errno;
    failure.step = 'r';
  } else if (failure.error != 0) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  } else {
    command.pid = pid;
    command.started = true;
    command.started_us = now_us();
  }
  Failure result;
  result.error = failure.error;
  result.step = failure.step;
  return result;
}

void start_command(Command& command, const char* payload, size_t size) {
  Failure failure{EINVAL, 'r'};
  const bool input = size >= 5 && (payload[0] & 1) != 0, terminal = size >= 5 && (payload[0] & 2) != 0;
  Words words;
  Ends ends;
  if (size >= 5 && take_apart(command, words)) {
    const auto u16 = [&](int at) {
      return static_cast<uint16_t>(static_cast<unsigned char>(payload[at]) << 8 | static_cast<unsigned char>(payload[at + 1]));
    };
    command.oom_before = oom_kills();
    command.pids_before = pids_refused();
    const bool open = terminal ? open_terminal(command, ends, u16(1), u16(3)) : open_pipes(command, ends, input);
    if (open) failure = run(command, ends, words);
    else failure = {errno, 'r'};
  }
  close_fd(ends.in);
  close_fd(ends.out);
  close_fd(ends.err);
  free(words.argv);
  free(words.envp);
  free(command.request);
  command.request = nullptr;
  if (command.started) return send_number('s', command.id, static_cast<uint32_t>(command.pid));
  char record[9 + 5];
  record[9] = failure.step;
  put32(record + 10, static_cast<uint32_t>(failure.error));
  send_record('f', command.id, record, 5);
  command.exited = true;  // to be taken off the list
  close_fd(command.out);
  close_fd(command.err);
  close_fd(command.in);
}

// --- streams

// One read; false when there is nothing now, or nothing any more.
bool relay(Command& command, int& fd, char type, uint64_t& count) {
  if (fd < 0 || (!command.detached && command.window == 0)) return false;
  static char record[9 + kPiece];
  const size_t most = command.detached || command.window > kPiece ? kPiece : static_cast<size_t>(command.window);
  const ssize_t got = read(fd, record + 9, most);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (got <= 0) {  // a terminal's end is EIO
    close_fd(fd);
    return false;
  }
  count += static_cast<uint64_t>(got);
  if (command.detached) return true;
  command.window -= static_cast<uint64_t>(got);
  send_record(type, command.id, record, static_cast<size_t>(got));
  return true;
}

void drop_input(Command& command) {
  free(command.input);
  command.input = nullptr;
  command.input_size = 0;
  close_fd(command.in);
}

void feed(Command& command) {
  while (command.in >= 0 && command.input_size > 0) {
    const ssize_t wrote = write(command.in, command.input, command.input_size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) return;
    if (wrote <= 0) {
      drop_input(command);
      send_number('b', command.id, 0);  // nobody reads it any more
      return;
    }
    command.input_size -= static_cast<size_t>(wrote);
    memmove(command.input, command.input + wrote, command.input_size);
    send_number('w', command.id, static_cast<uint32_t>(wrote));
  }
  if (command.close_input && command.input_size == 0) drop_input(command);
}

void take_input(Command& command, const char* bytes, size_t size) {
  if (command.in < 0 || size == 0) return;
  char* const larger = static_cast<char*>(realloc(command.input, command.input_size + size));
  if (larger == nullptr) {
    drop_input(command);
    return send_number('b', command.id, 0);
  }
  command.input = larger;
  memcpy(command.input + command.input_size, bytes, size);
  command.input_size += size;
  feed(command);
}

// --- the end of a command

// Its output is drained as far as the window lets it; false: more is waiting for the outside to take what it has.
bool drained(Command& command) {
  uint64_t count = 0;
  while (count < kDrainAtMost && (relay(command, command.out, 'o', count) || relay(command, command.err, 'e', count))) {
  }
  if (command.window > 0 || command.detached || count >= kDrainAtMost) return true;
  pollfd more[2] = {{command.out, POLLIN, 0}, {command.err, POLLIN, 0}};
  return poll(more, 2, 0) <= 0 || ((more[0].revents | more[1].revents) & POLLIN) == 0;
}

void send_end(Command& command) {
  char record[9 + 4 + 8 + 8 + 8 + 1 + 1 + 8];
  char* at = record + 9;
  put32(at, static_cast<uint32_t>(command.status));
  const auto micro = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1000000 + static_cast<uint64_t>(time.tv_usec);
  };
  put64(at + 4, micro(command.usage.ru_utime));
  put64(at + 12, micro(command.usage.ru_stime));
  put64(at + 20, static_cast<uint64_t>(command.usage.ru_maxrss) * 1024);
  at[28] = oom_kills() > command.oom_before ? 1 : 0;
  at[29] = pids_refused() > command.pids_before ? 1 : 0;
  put64(at + 30, static_cast<uint64_t>(command.ended_us - command.started_us));
  send_record('x', command.id, record, 38);
}

void finish(Command& command) {
  if (command.ending != Ending::kNo) {  // what outlived its parent's TERM was part of what had to end
    kill_tree(command);
    command.ending = Ending::kKill;
  }
}

void reap() {
  for (;;) {
    int status = 0;
    rusage usage;
    const pid_t pid = wait4(-1, &status, WNOHANG, &usage);
    if (pid <= 0) return;
    for (Command* command = g_commands; command != nullptr; command = command->next) {
      if (!command->started || command->exited || command->pid != pid) continue;
      command->exited = true;
      command->ended_us = now_us();
      command->status = status;
      command->usage = usage;
      finish(*command);
    }
  }
}

void discard(Command* command) {
  close_fd(command->out);
  close_fd(command->err);
  drop_input(*command);
  free(command->request);
  free(command->victims);
  free(command);
}

void settle() {
  for (Command** link = &g_commands; *link != nullptr;) {
    Command* const command = *link;
    if (command->exited && (!command->started || drained(*command))) {
      if (command->started) send_end(*command);
      *link = command->next;
      discard(command);
    } else {
      link = &command->next;
    }
  }
}

// --- records in

Command* find_command(uint32_t id) {
  for (Command* command = g_commands; command != nullptr; command = command->next) {
    if (command->id == id) return command;
  }
  return nullptr;
}

bool add_request(uint32_t id, const char* payload, size_t size) {
  Command* command = find_command(id);
  if (command == nullptr) {
    void* const memory = malloc(sizeof(Command));
    if (memory == nullptr) return false;
    command = new (memory) Command;
    command->id = id;
    command->next = g_commands;
    g_commands = command;
  }
  if (command->started || command->request_size + size > kLargestRequest) return false;
  char* const larger = static_cast<char*>(realloc(command->request, command->request_size + size + 1));
  if (larger == nullptr) return false;
  memcpy(larger + command->request_size, payload, size);
  command->request = larger;
  command->request_size += size;
  return true;
}

void resize(const Command& command, const char* payload) {
  const uint32_t both = get32(payload);
  const winsize size{static_cast<uint16_t>(both >> 16), static_cast<uint16_t>(both), 0, 0};
  if (command.terminal) ioctl(command.out, TIOCSWINSZ, &size);
}

void serve(char type, uint32_t id, const char* payload, size_t size) {
  if (type == 'P') return send_number('p', id, 0);
  if (type == 'R') {
    if (!add_request(id, payload, size)) _exit(3);
    return;
  }
  Command* const command = find_command(id);
  if (command == nullptr) return;  // it has ended meanwhile
  const bool number = size >= 4;
  if (type == 'G') start_command(*command, payload, size);
  else if (type == 'D') take_input(*command, payload, size);
  else if (type == 'C') {
    command->close_input = true;
    feed(*command);
  } else if (type == 'S' && number && command->started && !command->exited) kill(-command->pid, static_cast<int>(get32(payload)));
  else if (type == 'E' && number) end_command(*command, get32(payload));
  else if (type == 'W' && number) command->window += get32(payload);
  else if (type == 'T' && number) resize(*command, payload);
  else if (type == 'H') command->detached = true;
}

void read_records() {
  static char buffer[9 + kLargestRecord];
  static size_t have = 0;
  const ssize_t got = read(0, buffer + have, sizeof buffer - have);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) _exit(0);  // whoever started us is gone
  have += static_cast<size_t>(got);
  size_t at = 0;
  while (have - at >= 9) {
    const size_t size = get32(buffer + at + 5);
    if (size > kLargestRecord) _exit(3);
    if (have - at < 9 + size) break;
    serve(buffer[at], get32(buffer + at + 1), buffer + at + 9, size);
    at += 9 + size;
  }
  have -= at;
  memmove(buffer, buffer + at, have);
}

// --- the loop

size_t add_polls(pollfd*& set, size_t& room, int signals) {
  size_t count = 2;
  for (const Command* command = g_commands; command != nullptr; command = command->next) count += 3;
  if (count > room) {
    free(set);
    room = count * 2;
    set = static_cast<pollfd*>(calloc(room, sizeof(pollfd)));
    if (set == nullptr) _exit(4);
  }
  set[0] = {0, POLLIN, 0};
  set[1] = {signals, POLLIN, 0};
  size_t at = 2;
  for (const Command* command = g_commands; command != nullptr; command = command->next, at += 3) {
    const bool open = command->detached || command->window > 0;
    set[at] = {open ? command->out : -1, POLLIN, 0};
    set[at + 1] = {open ? command->err : -1, POLLIN, 0};
    set[at + 2] = {command->input_size > 0 ? command->in : -1, POLLOUT, 0};
  }
  return count;
}

int patience() {
  long long soonest = -1;
  for (const Command* command = g_commands; command != nullptr; command = command->next) {
    if (command->ending == Ending::kTerm && !command->exited && (soonest < 0 || command->kill_at < soonest))
      soonest = command->kill_at;
  }
  if (soonest < 0) return -1;
  const long long left = soonest - now_ms();
  return left < 0 ? 0 : left > 60000 ? 60000 : static_cast<int>(left);
}

void turn(pollfd*& set, size_t& room, int signals) {
  add_polls(set, room, signals);
  size_t count = 2;
  for (const Command* command = g_commands; command != nullptr; command = command->next) count += 3;
  poll(set, count, patience());
  size_t at = 2;
  uint64_t ignored = 0;
  for (Command* command = g_commands; command != nullptr; command = command->next, at += 3) {
    if (set[at].revents != 0) relay(*command, command->out, 'o', ignored);
    if (set[at + 1].revents != 0) relay(*command, command->err, 'e', ignored);
    if (set[at + 2].revents != 0) feed(*command);
    if (command->ending == Ending::kTerm && !command->exited && now_ms() >= command->kill_at) end_command(*command, 0);
  }
  if (set[1].revents != 0) {
    signalfd_siginfo told;
    while (read(signals, &told, sizeof told) == static_cast<ssize_t>(sizeof told)) {
      if (told.ssi_signo == SIGTERM) _exit(0);
    }
  }
  reap();
  if (set[0].revents != 0) read_records();
  settle();
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_DUMPABLE, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // where something else is pid 1
  for (int i = 1; i + 1 < argc; i += 2) {
    const rlim_t value = strtoull(argv[i + 1], nullptr, 10);
    (strcmp(argv[i], "--open-files") == 0 ? g_open_files : g_file_size) = value;
  }
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigaddset(&mask, SIGTERM);
  sigprocmask(SIG_BLOCK, &mask, &g_old_mask);
  signal(SIGPIPE, SIG_IGN);
  const int signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) return 4;
  send_number('h', 0, 1);  // the version of the protocol
  pollfd* set = nullptr;
  size_t room = 0;
  for (;;) turn(set, room, signals);
}
