#include "launch/inside/start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <termios.h>

#include "launch/inside/filter.h"
#include "launch/inside/tree.h"
#include "launch/inside/wire.h"

namespace belljar::inside {

namespace {

// As it is sent: the step (c: the working directory, e: execve, r: a resource of ours, l: the filter), the errno.
constexpr size_t kFailureSize = 5;

struct ExecArguments {
  char** argv = nullptr;
  char** envp = nullptr;
  char* cwd = nullptr;
};

// "argc envc" as two numbers, then cwd, argv and the variables, each ended by NUL.
bool parse_request(Command& command, ExecArguments& arguments) {
  if (command.request_size < 8) return false;
  const size_t argc = get32(command.request), envc = get32(command.request + 4);
  char* at = command.request + 8;
  char* const end = command.request + command.request_size;
  size_t inherited = 0;
  while (environ[inherited] != nullptr) ++inherited;
  if (argc == 0 || argc > command.request_size || envc > command.request_size) return false;
  arguments.argv = static_cast<char**>(calloc(argc + 1, sizeof(char*)));
  arguments.envp = static_cast<char**>(calloc(inherited + envc + 1, sizeof(char*)));
  if (arguments.argv == nullptr || arguments.envp == nullptr) return false;
  size_t variables = 0;
  for (; variables < inherited; ++variables) arguments.envp[variables] = environ[variables];
  for (size_t i = 0; i < 1 + argc + envc; ++i) {
    char* const stop = static_cast<char*>(memchr(at, 0, static_cast<size_t>(end - at)));
    if (stop == nullptr) return false;
    if (i == 0) arguments.cwd = at;
    else if (i <= argc) arguments.argv[i - 1] = at;
    else {
      const char* const equals = strchr(at, '=');
      if (equals == nullptr) return false;
      size_t slot = 0;  // what is asked for names each variable once: only ours can be in its place
      while (slot < inherited && strncmp(arguments.envp[slot], at, static_cast<size_t>(equals - at) + 1) != 0) ++slot;
      arguments.envp[slot < inherited ? slot : variables++] = at;
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
int exec_in_path(const ExecArguments& arguments) {
  const char* const program = arguments.argv[0];
  if (strchr(program, '/') != nullptr) {
    execve(program, arguments.argv, arguments.envp);
    return errno;
  }
  const char* path = variable(arguments.envp, "PATH");
  if (path == nullptr) path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  int found = ENOENT;
  for (bool more = true; more;) {
    const char* const stop = strchrnul(path, ':');
    char full[4096];
    const int length = static_cast<int>(stop - path);
    const int printed = snprintf(full, sizeof full, "%.*s%s%s", length, path, length == 0 ? "" : "/", program);
    if (printed > 0 && static_cast<size_t>(printed) < sizeof full) {
      execve(full, arguments.argv, arguments.envp);
      if (errno == EACCES) found = EACCES;
      else if (errno != ENOENT && errno != ENOTDIR) return errno;
    }
    more = *stop == ':';
    path = stop + 1;
  }
  return found;
}

struct ChildStdio {
  int in = -1, out = -1, err = -1;  // the command's
  int failure = -1;                 // where its child tells why it could not become it; closed by execve(2)
  bool terminal = false;
};

[[noreturn]] void fail(const ChildStdio& ends, char step, int error) {
  char told[kFailureSize] = {step};
  put32(told + 1, static_cast<uint32_t>(error));
  while (write(ends.failure, told, sizeof told) < 0 && errno == EINTR) {
  }
  _exit(126);
}

void limit(int resource, rlim_t value) {
  rlimit now;
  if (value == RLIM_INFINITY || getrlimit(static_cast<__rlimit_resource_t>(resource), &now) != 0) return;
  now.rlim_max = value < now.rlim_max ? value : now.rlim_max;
  now.rlim_cur = now.rlim_max;
  setrlimit(static_cast<__rlimit_resource_t>(resource), &now);
}

// A child that is held before its execve(2) would hold their ends, too: no command would read the end of its stdin.
void close_others() {
  for (Command* command = g_commands; command != nullptr; command = command->next) {
    close_fd(command->begin);
    close_fd(command->in);
    close_fd(command->out);
    close_fd(command->err);
  }
}

// In the child.
[[noreturn]] void become(const Setup& setup, const ExecArguments& arguments, const ChildStdio& ends) {
  close_others();
  setsid();
  if (dup2(ends.in, 0) < 0 || dup2(ends.out, 1) < 0 || dup2(ends.err, 2) < 0) fail(ends, 'r', errno);
  if (ends.terminal) ioctl(0, TIOCSCTTY, 0);
  // Its orphans come to it while it runs, so they are found below it when it has to end.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  limit(RLIMIT_NOFILE, setup.open_files);
  limit(RLIMIT_FSIZE, setup.file_size);
  if (chdir(arguments.cwd) != 0) fail(ends, 'c', errno);
  struct sigaction plain{};
  plain.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &plain, nullptr);
  sigprocmask(SIG_SETMASK, &setup.mask, nullptr);
  if (const int error = install_filter(setup); error != 0) fail(ends, 'l', error);
  fail(ends, 'e', exec_in_path(arguments));
}

bool open_terminal(Command& command, ChildStdio& ends, uint16_t rows, uint16_t columns) {
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

bool open_pipes(const Setup& setup, Command& command, ChildStdio& ends, bool input) {
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
    ends.in = fcntl(setup.null, F_DUPFD_CLOEXEC, 3);
    return ends.in >= 0;
  }
  if (pipe2(pair, O_CLOEXEC) != 0) return false;
  ends.in = pair[0];
  command.in = pair[1];
  fcntl(command.in, F_SETFL, O_NONBLOCK);
  return true;
}

// 0, or the errno. fork(2) and no vfork(2): until its execve(2) a child can be stopped by any command, and may wait there for a
// file (a lease, fcntl(2)); we must not wait for it, since who stops us would outlive the line.
int run(const Setup& setup, Command& command, ChildStdio& ends, const ExecArguments& arguments) {
  int pair[2];
  if (pipe2(pair, O_CLOEXEC) != 0) return errno;
  command.begin = pair[0];
  ends.failure = pair[1];
  fcntl(command.begin, F_SETFL, O_NONBLOCK);
  command.started_us = now_us();
  command.pid = fork();
  if (command.pid == 0) become(setup, arguments, ends);
  if (command.pid < 0) return errno;
  command.started = true;
  return 0;
}

void tell_failure(Command& command, char step, uint32_t error) {
  char record[kHeader + kFailureSize];
  record[kHeader] = step;
  put32(record + kHeader + 1, error);
  send_record('f', command.id, record, kFailureSize);
  command.started = false;
  command.exited = true;  // to be taken off the list
  close_fd(command.begin);
  close_fd(command.out);
  close_fd(command.err);
  close_fd(command.in);
}

}  // namespace

void start_command(const Setup& setup, Command& command, const char* payload, size_t size) {
  int error = EINVAL;
  const bool input = size >= 5 && (payload[0] & 1) != 0, terminal = size >= 5 && (payload[0] & 2) != 0;
  ExecArguments arguments;
  ChildStdio ends;
  if (size >= 5 && parse_request(command, arguments)) {
    const auto u16 = [&](int at) {
      return static_cast<uint16_t>(static_cast<unsigned char>(payload[at]) << 8 | static_cast<unsigned char>(payload[at + 1]));
    };
    command.oom_before = oom_kills();
    command.pids_before = pids_refused();
    const bool open = terminal ? open_terminal(command, ends, u16(1), u16(3)) : open_pipes(setup, command, ends, input);
    error = open ? run(setup, command, ends, arguments) : errno;
  }
  close_fd(ends.in);
  close_fd(ends.out);
  close_fd(ends.err);
  close_fd(ends.failure);
  free(static_cast<void*>(arguments.argv));
  free(static_cast<void*>(arguments.envp));
  free(command.request);
  command.request = nullptr;
  if (!command.started) tell_failure(command, 'r', static_cast<uint32_t>(error));
}

void follow_start(Command& command) {
  char told[kFailureSize];
  const ssize_t got = read(command.begin, told, sizeof told);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got == static_cast<ssize_t>(sizeof told)) return tell_failure(command, told[0], get32(told + 1));
  close_fd(command.begin);  // by execve(2), or it was killed before it: then its end is told next
  send_number('s', command.id, static_cast<uint32_t>(command.pid));
}

}  // namespace belljar::inside
