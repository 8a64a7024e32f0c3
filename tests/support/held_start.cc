#include "support/held_start.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "support/must.h"

namespace belljar::test {
namespace {

int hold_keyctl() {
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_keyctl, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
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

HeldStart::HeldStart(const std::function<int()>& act) {
  int ends[2];
  must(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  UniqueFd ours(ends[0]), theirs(ends[1]);
  pid_ = ::fork();
  must(pid_);
  if (pid_ == 0) {
    ours.reset();
    UniqueFd listener(hold_keyctl());
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
  send(SIGKILL);
  (void)wait();
}

bool HeldStart::await_call(std::chrono::milliseconds patience) const { return await(listener_.get(), POLLIN, patience); }

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
