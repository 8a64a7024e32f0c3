#include "support/held_start.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>

#include "support/must.h"

namespace belljar::test {
namespace {

int hold_calls(HeldStart::At at) {
  const unsigned keyctl = at == HeldStart::At::kKeyring ? SYS_keyctl : ~0U;
  const unsigned prctl = at == HeldStart::At::kParentDeath ? SYS_prctl : ~0U;
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, keyctl, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),  // its first, on a little-endian machine
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PDEATHSIG, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{sizeof filter / sizeof filter[0], filter};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}

// One descriptor over a socket pair; as `fd` -1 receives it.
int pass(int socket, int fd) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  if (fd < 0) {
    if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 || CMSG_FIRSTHDR(&message) == nullptr) return -1;
    std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
  }
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

bool await(int fd, short event, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  pollfd look{fd, event, 0};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    // A call that waits is POLLIN for as long as nobody takes it.
    if (::poll(&look, 1, static_cast<int>(left.count())) > 0 && (look.revents & event) != 0) return true;
  }
}

}  // namespace

HeldStart::HeldStart(const std::function<int()>& act, At at) {
  int ends[2];
  must(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  UniqueFd ours(ends[0]), theirs(ends[1]);
  pid_ = ::fork();
  must(pid_);
  if (pid_ == 0) {
    ours.reset();
    UniqueFd listener(hold_calls(at));
    must(listener.get());
    must(pass(theirs.get(), listener.get()));
    listener.reset();
    theirs.reset();
    ::_exit(act());
  }
  theirs.reset();
  listener_ = UniqueFd(pass(ours.get(), -1));
  must(listener_.get());
}

HeldStart::~HeldStart() {
  if (sandbox_.valid()) ::syscall(SYS_pidfd_send_signal, sandbox_.get(), SIGKILL, nullptr, 0);
  send(SIGKILL);
  (void)wait();
}

bool HeldStart::await_call(std::chrono::milliseconds patience) const { return await(listener_.get(), POLLIN, patience); }

bool HeldStart::take_call(int& pid) {
  seccomp_notif call{};
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) < 0) return false;
  held_call_ = call.id;
  pid = static_cast<int>(call.pid);
  return true;
}

void HeldStart::let_go_on() const {
  seccomp_notif_resp answer{};
  answer.id = held_call_;
  answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  (void)::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

bool HeldStart::await_sandbox() {
  while (await_call()) {
    int pid = 0;
    if (!take_call(pid)) continue;
    // Each number that it has: the last is that of its own namespace.
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    std::string line;
    while (std::getline(status, line) && !line.starts_with("NSpid:")) {
    }
    if (line.ends_with("\t1")) {
      sandbox_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
      return true;
    }
    let_go_on();
  }
  return false;
}

bool HeldStart::let_all_go_on(std::chrono::milliseconds patience) {
  let_go_on();
  while (await(listener_.get(), POLLIN | POLLHUP, patience)) {
    pollfd look{listener_.get(), POLLIN, 0};
    (void)::poll(&look, 1, 0);
    if ((look.revents & POLLHUP) != 0) return true;
    if (int pid = 0; take_call(pid)) let_go_on();
  }
  return false;
}

void HeldStart::send(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

int HeldStart::wait() {
  if (pid_ <= 0) return -1;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool HeldStart::await_all_ended(std::chrono::milliseconds patience) const { return await(listener_.get(), POLLHUP, patience); }

}  // namespace belljar::test
