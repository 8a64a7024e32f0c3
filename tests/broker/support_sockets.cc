#include "broker/support_sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/format.h"
#include "support/must.h"

namespace belljar::test {
namespace {

socklen_t fill(sockaddr_un& address, const std::string& name) {
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), std::min(name.size(), sizeof address.sun_path));
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
}

int raw_connect(int socket, const void* address, int length) {
  return syscall(SYS_connect, socket, address, length) == 0 ? 0 : -errno;
}

class Answers {
 public:
  explicit Answers(const std::string& directory) : directory_(directory) { mkdir(directory.c_str(), 0755); }
  std::string operator/(std::string_view name) const { return directory_ + "/" + std::string(name); }
  void add(std::string_view name, int status) { text += format("{}: {}\n", name, outcome(status)); }
  void to(std::string_view name, const std::string& path, int type = SOCK_STREAM) {
    const UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
    add(name, connect_to(socket.get(), path));
  }
  std::string text;

 private:
  std::string directory_;
};

void paths(Answers& answers) {
  answers.to("missing", answers / "missing");
  answers.to("missing directory", answers / "none/x");
  close(open((answers / "file").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  close(open((answers / "readonly").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0444));
  answers.to("file", answers / "file");
  answers.to("file without write permission", answers / "readonly");
  answers.to("below a file", answers / "file/x");
  answers.to("directory", answers / "");
  answers.to("root", "/");
  mkfifo((answers / "fifo").c_str(), 0644);
  answers.to("fifo", answers / "fifo");
  answers.to("device", "/dev/null");
  must(symlink("loop", (answers / "loop").c_str()));
  answers.to("loop", answers / "loop");
  must(symlink("nowhere", (answers / "dangling").c_str()));
  answers.to("dangling", answers / "dangling");
  answers.to("closed descriptor", "/proc/self/fd/777");
  answers.to("closed descriptor and more", "/proc/self/fd/777/x");
  {
    const UniqueFd gone = listen_at(answers / "stale");
  }
  answers.to("stale", answers / "stale");
  const UniqueFd closed = listen_at(answers / "closed");
  chmod((answers / "closed").c_str(), 0);
  answers.to("own without permission", answers / "closed");
  mkdir((answers / "locked").c_str(), 0700);
  const UniqueFd locked = listen_at(answers / "locked/s");
  chmod((answers / "locked").c_str(), 0);
  answers.to("below a locked directory", answers / "locked/s");
  chmod((answers / "locked").c_str(), 0700);
}

void unix_states(Answers& answers) {
  const UniqueFd server = listen_at(answers / "server");
  answers.to("own", answers / "server");
  answers.to("own, wrong type", answers / "server", SOCK_SEQPACKET);
  answers.to("own, datagram", answers / "server", SOCK_DGRAM);
  const UniqueFd client = connected(answers / "server");
  answers.add("again", connect_to(client.get(), answers / "server"));
  answers.add("again to missing", connect_to(client.get(), answers / "missing"));
  int pair[2];
  socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
  answers.add("pair", connect_to(pair[0], answers / "server"));
  close(pair[0]);
  close(pair[1]);
  answers.add("listener", connect_to(server.get(), answers / "server"));
  const UniqueFd full = listen_at(answers / "full", SOCK_STREAM, 0);
  const UniqueFd first = connected(answers / "full");
  answers.to("full, non-blocking", answers / "full", SOCK_STREAM | SOCK_NONBLOCK);
  const UniqueFd patient(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval timeout{0, 100000};
  setsockopt(patient.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  answers.add("full, with timeout", connect_to(patient.get(), answers / "full"));
  answers.to("abstract, missing", std::string("\0belljar-missing", 16));
  const std::string longest = answers / std::string(108 - (answers / "").size(), 'x');
  const UniqueFd unterminated = listen_at(longest);
  answers.to("unterminated", longest);
}

void lengths(Answers& answers) {
  sockaddr_un name{};
  fill(name, answers / "server");
  alignas(16) char room[256] = {};
  std::memcpy(room, &name, sizeof name);
  const UniqueFd server = listen_at(answers / "lengths");
  for (const int length : {-1, 0, 1, 2, 3, 110, 111, 128, 129, 4096}) {
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    answers.add(format("length {}", length), raw_connect(socket.get(), room, length));
  }
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  answers.add("null address", raw_connect(socket.get(), nullptr, 20));
  answers.add("kernel address", raw_connect(socket.get(), reinterpret_cast<void*>(~0xFFFUL), 20));
  answers.add("no descriptor", raw_connect(-1, room, 110));
  answers.add("closed descriptor, bad address", raw_connect(777, nullptr, 20));
  const UniqueFd file(open("/dev/null", O_RDWR | O_CLOEXEC));
  answers.add("no socket", raw_connect(file.get(), room, 110));
  answers.add("no socket, bad address", raw_connect(file.get(), nullptr, 20));
  const UniqueFd path(open("/dev/null", O_PATH | O_CLOEXEC));
  answers.add("path descriptor", raw_connect(path.get(), room, 110));
  sockaddr any{};
  any.sa_family = AF_UNSPEC;
  answers.add("unspec on unix", raw_connect(socket.get(), &any, sizeof any));
  any.sa_family = AF_INET;
  answers.add("inet on unix", raw_connect(socket.get(), &any, sizeof any));
}

void inet(Answers& answers) {
  const UniqueFd server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  getsockname(server.get(), reinterpret_cast<sockaddr*>(&address), &size);
  const auto stream = [](int flags = 0) { return UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)); };
  const UniqueFd early = stream();
  answers.add("tcp, nobody", raw_connect(early.get(), &address, sizeof address));
  listen(server.get(), 5);
  const UniqueFd client = stream();
  answers.add("tcp", raw_connect(client.get(), &address, sizeof address));
  answers.add("tcp again", raw_connect(client.get(), &address, sizeof address));
  sockaddr any{};
  any.sa_family = AF_UNSPEC;
  answers.add("tcp dissolve", raw_connect(client.get(), &any, sizeof any));
  answers.add("tcp after dissolve", raw_connect(client.get(), &address, sizeof address));
  const UniqueFd quick = stream(SOCK_NONBLOCK);
  answers.add("tcp non-blocking", raw_connect(quick.get(), &address, sizeof address));
  pollfd ready{quick.get(), POLLOUT, 0};
  poll(&ready, 1, 60'000);
  answers.add("tcp non-blocking, later", raw_connect(quick.get(), &address, sizeof address));
  answers.add("tcp, short", raw_connect(stream().get(), &address, 8));
  sockaddr_in away = address;
  away.sin_addr.s_addr = inet_addr("192.0.2.1");
  answers.add("tcp, no route", raw_connect(stream().get(), &away, sizeof away));
  sockaddr_un name{};
  answers.add("unix on tcp", raw_connect(stream().get(), &name, static_cast<int>(fill(name, answers / "server"))));
  const UniqueFd udp(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  answers.add("udp", raw_connect(udp.get(), &address, sizeof address));
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_loopback;
  six.sin6_port = htons(9);
  answers.add("tcp6", raw_connect(UniqueFd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)).get(), &six, sizeof six));
}

void netlink(Answers& answers) {
  for (const auto& [pid, groups] : {std::pair{0U, 0U}, {1U, 0U}, {0U, 1U}, {5U, 3U}}) {
    const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    sockaddr_nl peer{};
    peer.nl_family = AF_NETLINK;
    peer.nl_pid = pid;
    peer.nl_groups = groups;
    answers.add(format("netlink {} {}", pid, groups), raw_connect(socket.get(), &peer, sizeof peer));
  }
}

}  // namespace

UniqueFd bind_at(const std::string& name, int type) {
  UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  const socklen_t length = fill(address, name);
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) return {};
  return socket;
}

UniqueFd listen_at(const std::string& name, int type, int backlog) {
  UniqueFd socket = bind_at(name, type);
  if (!socket.valid() || listen(socket.get(), backlog) != 0) return {};
  return socket;
}

int connect_to(int socket, const std::string& name) {
  sockaddr_un address{};
  const socklen_t length = fill(address, name);
  return connect(socket, reinterpret_cast<sockaddr*>(&address), length) == 0 ? 0 : -errno;
}

UniqueFd connected(const std::string& name, int type) {
  UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (connect_to(socket.get(), name) != 0) return {};
  return socket;
}

std::string outcome(int status) {
  const char* const name = status == 0 ? "ok" : strerrorname_np(-status);
  return name != nullptr ? name : format("errno {}", -status);
}

std::string connect_outcome(int type, const std::string& name) {
  const UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  return outcome(connect_to(socket.get(), name));
}

std::string connect_answers(const std::string& directory) {
  Answers answers(directory);
  paths(answers);
  unix_states(answers);
  lengths(answers);
  inet(answers);
  netlink(answers);
  return answers.text;
}

}  // namespace belljar::test
