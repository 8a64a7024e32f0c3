#include "broker/support_inside.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "broker/directories.h"
#include "support/as_user.h"
#include "support/clock.h"
#include "support/eventually.h"

namespace belljar::test {
namespace {

void write_file(const std::string& path, const std::string& text) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (write(file.get(), text.data(), text.size()) < 0) perror(path.c_str());
}

constexpr unsigned kListen = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

int install_socket_filter() {
  const sock_filter code[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 2, 0, SYS_connect},
      {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_getsockopt},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_listen},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_USER_NOTIF},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program{6, const_cast<sock_filter*>(code)};
  return kernel::install_filter(program, kListen);
}

kernel::SeccompSpec filter_of(const Setting& setting) {
  kernel::SeccompSpec spec{.unix_sockets = setting.sockets};
  if (setting.files && setting.brokered) spec.file_calls = *setting.files;
  if (setting.options.ports_refused) spec.local_ports = kernel::LocalPorts::kJudged;
  return spec;
}

int install_filter(const Setting& setting) {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (!setting.files) return setting.brokered ? install_socket_filter() : -1;
  const std::vector<sock_filter> filter = kernel::build_filter(filter_of(setting));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
  const int status = kernel::install_filter(program, setting.brokered ? kListen : 0);
  return setting.brokered ? status : -1;
}

void send_fds(int socket, const int* fds, std::size_t count) {
  char byte = 'f';
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  const std::size_t bytes = count * sizeof(int);
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(bytes);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(header), fds, bytes);
  if (sendmsg(socket, &message, 0) != 1) perror("sendmsg");
}

void send_fd(int socket, int fd) { send_fds(socket, &fd, 1); }

UniqueFd receive_fd(int socket) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 || CMSG_FIRSTHDR(&message) == nullptr) return {};
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return UniqueFd(fd);
}

void loopback_up() {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  ioctl(socket.get(), SIOCSIFFLAGS, &request);
}

struct Channel {
  UniqueFd front, body;
};

Channel channel(int type = SOCK_STREAM) {
  int ends[2];
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void await_byte(int fd) {
  char byte = 0;
  if (read(fd, &byte, 1) != 1) _exit(90);
}

// Namespaces of the body: as launch/ makes them, for root (Identity::kRootMapped) and for a user (kSelfMapped). The pid namespace
// is that of the first child, which gets a /proc of its own.
void enter_outer(const Setting& setting) {
  const int spaces = CLONE_NEWNS | CLONE_NEWPID | (setting.own_network ? CLONE_NEWNET : 0);
  if (unshare(getuid() == 0 ? spaces : spaces | CLONE_NEWUSER) != 0) _exit(91);
  if (setting.own_network) loopback_up();
}

void enter_inner(int fd, bool root) {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(98);
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) perror("mount /proc");
  if (root && unshare(CLONE_NEWUSER) != 0) _exit(92);
  if (write(fd, "n", 1) != 1) _exit(93);
  await_byte(fd);  // ids are mapped
  if (setresgid(1234, 1234, 1234) != 0 || setresuid(1234, 1234, 1234) != 0) _exit(94);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  if (syscall(SYS_capset, &header, none) != 0) _exit(97);
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // as after an exec
}

void become_user() {
  if (getuid() == 0 && (syscall(SYS_setgroups, 0, nullptr) != 0 || setresgid(user_gid(), user_gid(), user_gid()) != 0 ||
                        setresuid(user_uid(), user_uid(), user_uid()) != 0))
    _exit(99);
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // as after an exec
}

// As pid 1 does for the broker (launch/init.cc), of the network that it is in.
[[noreturn]] void make_pairs(int maker) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  char what = 0;
  while (recv(maker, &what, 1, 0) == 1) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) _exit(1);
    send_fds(maker, ends, 2);
    close(ends[0]), close(ends[1]);
  }
  _exit(0);
}

[[noreturn]] void body_process(const Setting& setting, const std::function<std::string()>& body, int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const bool root = getuid() == 0;
  if (has_namespaces(setting.front)) enter_outer(setting);
  else prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  Channel pairs = channel(SOCK_SEQPACKET);
  const pid_t inner = fork();
  if (inner != 0) {
    pairs.front.reset();
    if (setting.own_network && fork() == 0) close(fd), make_pairs(pairs.body.get());
    pairs.body.reset();
    int status = 0;
    for (pid_t gone = 0; gone >= 0 && gone != inner;) gone = waitpid(-1, &status, 0);  // a pid namespace ends when all are reaped
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 95);
  }
  if (has_namespaces(setting.front)) enter_inner(fd, root);
  else become_user();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const UniqueFd diag(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (const UniqueFd listener(install_filter(setting)); setting.brokered) {
    send_fd(fd, listener.get());
    send_fd(fd, diag.get());
    send_fd(fd, pairs.front.get());
  }
  pairs = {};
  const std::string text = body();
  if (write(fd, text.data(), text.size()) < 0) _exit(96);
  _exit(0);
}

// The first child of `pid`.
pid_t child_of(pid_t pid) {
  const UniqueFd file(open(format("/proc/{0}/task/{0}/children", pid).c_str(), O_RDONLY | O_CLOEXEC));
  char text[64] = {};
  return read(file.get(), text, sizeof text - 1) > 0 ? static_cast<pid_t>(strtol(text, nullptr, 10)) : pid;
}

std::string errno_name(int number) { return strerrorname_np(number) != nullptr ? strerrorname_np(number) : "0"; }

std::string describe(broker::Broker& broker) {
  std::string text;
  for (const Violation& violation : broker.take_violations()) {
    if (violation.pid <= 0 || violation.program.empty() || violation.allowed.empty()) text += "INCOMPLETE ";
    text += format("violation {} {} {}\n", violation.operation, violation.target, errno_name(violation.errnum));
  }
  if (broker.dropped() > 0) text += format("dropped {}\n", broker.dropped());
  return text;
}

std::string serve(const Setting& setting, int fd, pid_t child) {
  std::string text;
  std::shared_ptr<broker::Directories> held;  // longer than the broker, as a thread of its that is about to end may
  {
    std::optional<broker::Broker> broker;
    if (setting.brokered) {
      UniqueFd listener = receive_fd(fd);
      broker::Inner inner{.diag = receive_fd(fd), .pairs = {}};
      inner.pairs = receive_fd(fd);
      auto made = broker::Broker::create(std::move(listener), setting.options, std::move(inner));
      if (!made) return "CREATE " + made.error().line();
      broker.emplace(*std::move(made));
      held = broker->directories();
    }
    const auto start = std::chrono::steady_clock::now();
    const int limit = 200'000;
    for (;;) {
      if (setting.end_when && setting.end_when()) break;
      const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count();
      if (spent >= limit) break;
      pollfd ready[] = {{fd, POLLIN, 0}, {broker && broker->active() ? broker->poll_fd() : -1, POLLIN, 0}};
      poll(ready, 2, setting.end_when ? 5 : static_cast<int>(limit - spent));
      if (ready[1].revents != 0) broker->on_readable();
      if (ready[0].revents == 0) continue;
      char buffer[65536];
      const ssize_t size = read(fd, buffer, sizeof buffer);
      if (size <= 0) break;
      text.append(buffer, static_cast<std::size_t>(size));
    }
    if (!setting.end_when) {
      int status = -1;
      eventually([&] { return waitpid(child, &status, WNOHANG) != 0; });
      if (status != 0) text += format("BODY DIED {}\n", status);
    }
    if (setting.before_end) text += setting.before_end();
    if (broker) text += describe(*broker);
  }
  if (setting.after_end) text += setting.after_end();
  return text;
}

void map_ids(int socket, pid_t child) {
  await_byte(socket);
  const pid_t mapped = child_of(child);
  if (getuid() != 0) write_file(format("/proc/{}/setgroups", mapped), "deny");
  write_file(format("/proc/{}/uid_map", mapped), format("1234 {} 1\n", user_uid()));
  write_file(format("/proc/{}/gid_map", mapped), format("1234 {} 1\n", user_gid()));
  if (write(socket, "g", 1) != 1) _exit(81);
}

[[noreturn]] void front_process(const Setting& given, const std::function<std::string()>& body, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Setting setting = given;
  if (setting.options.began.tv_sec == 0) {
    let_the_clock_tick();  // past all that the test has made before
    ::clock_gettime(CLOCK_REALTIME_COARSE, &setting.options.began);
  }
  setting.options.own_network_namespace = setting.own_network && has_namespaces(setting.front);
  if (setting.files) setting.options.filter = filter_of(setting);
  if (getuid() == 0 && !needs_root(setting.front)) {
    if (syscall(SYS_setgroups, 0, nullptr) != 0 || setresgid(user_gid(), user_gid(), user_gid()) != 0 ||
        setresuid(user_uid(), user_uid(), user_uid()) != 0)
      _exit(80);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // as after an exec by that user; else /proc/self belongs to root
  }
  if (getuid() == 0) setting.options.uid = user_uid(), setting.options.gid = user_gid();
  Channel pair = channel();
  const pid_t child = fork();
  if (child == 0) {
    pair.front.reset();
    body_process(setting, body, pair.body.get());
  }
  pair.body.reset();
  if (has_namespaces(setting.front)) map_ids(pair.front.get(), child);
  else setting.options.guard = getpid();  // the child between is init
  const std::string text = serve(setting, pair.front.get(), child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (write(out, text.data(), text.size()) < 0) _exit(82);
  _exit(0);
}

}  // namespace

std::string run_inside(const Setting& setting, const std::function<std::string()>& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "NO PIPE";
  UniqueFd in(ends[0]), out(ends[1]);
  const pid_t front = fork();
  if (front == 0) front_process(setting, body, out.get());
  out.reset();
  std::string text;
  char buffer[4096];
  for (ssize_t size = 0; (size = read(in.get(), buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(size));
  int status = 0;
  waitpid(front, &status, 0);
  if (status != 0) text += format("FRONT DIED {:x}\n", status);
  return text;
}

bool sleeps_in(pid_t tid, long call) {
  const UniqueFd file(open(format("/proc/self/task/{}/syscall", tid).c_str(), O_RDONLY | O_CLOEXEC));
  char text[32] = {};  // "NUMBER ...", or "running", proc(5)
  return read(file.get(), text, sizeof text - 1) > 0 && std::string_view(text).starts_with(format("{} ", call));
}

std::string named(long status) {
  if (status >= 0) return "ok";
  const char* const name = strerrorname_np(errno);
  return name != nullptr ? name : format("errno {}", errno);
}

}  // namespace belljar::test
