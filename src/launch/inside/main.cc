// belljar-inside: pid 1 of a container that the container backend starts. Static, needs nothing of the image, so a scratch image
// works.
//
// The engine's attach stream is its only line to the outside: requests come in on stdin, everything goes out on stdout, in records
// (backend/container/records.h). The Engine API has no call that ends a command inside, and one `docker exec` costs a whole runtime
// start; this program starts commands itself and ends their trees, so neither matters, and any engine or runtime that can attach
// will do. When stdin ends, whoever started us is gone: pid 1 exits and takes everything with it.
//
// Where the sandbox has a network of ours, its sockets are made here and passed out, once, before anything else (sockets.h).
//
// It runs as the same user as the commands. They cannot signal it (pid 1 gets only the signals that it asks for, pid_namespaces(7))
// nor look into it (it is not dumpable, so its /proc/1/fd and its memory are closed to them, ptrace(2)).
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <new>  // NOLINT(misc-include-cleaner): placement new

#include "launch/inside/filter.h"
#include "launch/inside/mounts.h"
#include "launch/inside/sockets.h"
#include "launch/inside/start.h"
#include "launch/inside/state.h"
#include "launch/inside/streams.h"
#include "launch/inside/tree.h"
#include "launch/inside/wire.h"

namespace belljar::inside {

long long now_us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

Command* g_commands = nullptr;

namespace {

Setup g_setup;

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
      note_ended(*command);
    }
  }
}

void discard(Command* command) {
  close_fd(command->begin);
  close_fd(command->out);
  close_fd(command->err);
  drop_input(*command);
  free(command->request);
  free(command->victims);
  free(command->others);
  free(command);
}

void settle() {
  for (Command** link = &g_commands; *link != nullptr;) {
    Command* const command = *link;
    if (command->exited && command->begin >= 0) follow_start(*command);
    if (command->exited && command->begin < 0 && (!command->started || drained(*command))) {
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

// With our number: who is not pid 1 (an engine put an init of its own before us, or gave us a pid namespace that is not the
// container's own) can be stopped by any command, and outlived.
void greet() {
  char record[kHeader + 8];
  put32(record + kHeader, kProtocol);
  put32(record + kHeader + 4, static_cast<uint32_t>(getpid()));
  send_record('h', 0, record, 8);
}

void resize(const Command& command, const char* payload) {
  const uint32_t both = get32(payload);
  const winsize size{static_cast<uint16_t>(both >> 16), static_cast<uint16_t>(both), 0, 0};
  if (command.terminal) ioctl(command.out, TIOCSWINSZ, &size);
}

void signal_command(const Command& command, int number) {
  if (!command.started || command.exited) return;
  if (kill(-command.pid, number) != 0) kill(command.pid, number);  // not the leader of its group yet
}

void serve(char type, uint32_t id, const char* payload, size_t size) {
  if (type == 'P') return send_number('p', id, 0);
  if (type == 'M') return send_mounts(id);
  if (type == 'F') return send_number('f', id, static_cast<uint32_t>(take_filter(g_setup, payload, size)));
  if (type == 'R') {
    if (!add_request(id, payload, size)) _exit(3);
    return;
  }
  Command* const command = find_command(id);
  if (command == nullptr) return;  // it has ended meanwhile
  const bool number = size >= 4;
  if (type == 'G') start_command(g_setup, *command, payload, size);
  else if (type == 'D') take_input(*command, payload, size);
  else if (type == 'C') {
    command->close_input = true;
    feed(*command);
  } else if (type == 'S' && number) signal_command(*command, static_cast<int>(get32(payload)));
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

constexpr size_t kOwnPolls = 3, kPollsOfEach = 4;
int g_maker = -1;

size_t add_polls(pollfd*& set, size_t& room, int signals) {
  size_t count = kOwnPolls;
  for (const Command* command = g_commands; command != nullptr; command = command->next) count += kPollsOfEach;
  if (count > room) {
    free(set);
    room = count * 2;
    set = static_cast<pollfd*>(calloc(room, sizeof(pollfd)));
    if (set == nullptr) _exit(4);
  }
  set[0] = {0, POLLIN, 0};
  set[1] = {signals, POLLIN, 0};
  set[2] = {g_maker, POLLIN, 0};  // -1 is passed over
  size_t at = kOwnPolls;
  for (const Command* command = g_commands; command != nullptr; command = command->next, at += kPollsOfEach) {
    const bool open = command->begin < 0 && (command->detached || command->window > 0);
    set[at] = {open ? command->out : -1, POLLIN, 0};
    set[at + 1] = {open ? command->err : -1, POLLIN, 0};
    set[at + 2] = {command->input_size > 0 ? command->in : -1, POLLOUT, 0};
    set[at + 3] = {command->begin, POLLIN, 0};
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
  const size_t count = add_polls(set, room, signals);
  poll(set, count, patience());
  size_t at = kOwnPolls;
  uint64_t ignored = 0;
  for (Command* command = g_commands; command != nullptr; command = command->next, at += kPollsOfEach) {
    if (set[at + 3].revents != 0) follow_start(*command);
    if (set[at].revents != 0) relay(*command, command->out, 'o', ignored);
    if (set[at + 1].revents != 0) relay(*command, command->err, 'e', ignored);
    if (set[at + 2].revents != 0) feed(*command);
    if (command->ending == Ending::kTerm && !command->exited && now_ms() >= command->kill_at) end_command(*command, 0);
  }
  if (set[2].revents != 0 && !make_socket(g_maker)) close_fd(g_maker);
  if (set[1].revents != 0) {
    signalfd_siginfo told;
    while (read(signals, &told, sizeof told) == static_cast<ssize_t>(sizeof told)) {
      // From outside: a sender in this pid namespace, a command, has a pid here.
      if (told.ssi_signo == SIGTERM && told.ssi_pid == 0) _exit(0);
    }
  }
  reap();
  if (set[0].revents != 0) read_records();
  settle();
}

}  // namespace

}  // namespace belljar::inside

int main(int argc, char** argv) {
  using namespace belljar::inside;
  prctl(PR_SET_DUMPABLE, 0);
  const char* door = nullptr;
  SocketRequests requests;
  for (int i = 1; i + 1 < argc; i += 2) {
    const char* const value = argv[i + 1];
    if (strcmp(argv[i], "--open-files") == 0) g_setup.open_files = strtoull(value, nullptr, 10);
    else if (strcmp(argv[i], "--file-size") == 0) g_setup.file_size = strtoull(value, nullptr, 10);
    else if (strcmp(argv[i], "--door") == 0) door = value;
    else if (strcmp(argv[i], "--socket") != 0 || !add_socket(requests, value)) return 2;
  }
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigaddset(&mask, SIGTERM);
  sigprocmask(SIG_BLOCK, &mask, &g_setup.mask);
  signal(SIGPIPE, SIG_IGN);
  const int signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) return 4;
  g_setup.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (g_setup.null < 0) return 4;
  // Before the greeting: no command runs until who listens behind the door has closed it.
  if (door != nullptr && !hand_over_sockets(door, requests, g_maker)) return 5;
  greet();
  pollfd* set = nullptr;
  size_t room = 0;
  for (;;) turn(set, room, signals);
}
