// Which process inside holds a socket: sock_diag(7) tells the socket's inode, and /proc/PID/fd of the
// sandbox's processes tells who has it open.
//
// The search is bounded twice, by the number of processes and descriptors, and by time: after each search
// there is a pause of four times as long. A command that is refused in a loop could otherwise make the proxy
// search for ever.
#include "egress/culprit.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "kernel/process_tree.h"
#include "kernel/small_file.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kMostProcesses = 256;
constexpr int kMostDescriptors = 16384;  // looked at in one search
constexpr int kPause = 4;                // times as long as a search took

const sockaddr_in& as_ipv4(const sockaddr_storage& address) { return reinterpret_cast<const sockaddr_in&>(address); }

bool holds(int pid, std::string_view wanted, int& left) {
  const std::string path = format("/proc/{}/fd", pid);
  DIR* const directory = ::opendir(path.c_str());
  if (directory == nullptr) return false;
  bool found = false;
  while (const dirent* entry =
             found || --left < 0 ? nullptr : ::readdir(directory)) {  // NOLINT(concurrency-mt-unsafe): our own stream
    char target[64];
    const ssize_t size = ::readlinkat(::dirfd(directory), entry->d_name, target, sizeof target);
    found = size > 0 && std::string_view(target, static_cast<std::size_t>(size)) == wanted;
  }
  ::closedir(directory);
  return found;
}

// The last number of "NSpid:" in /proc/PID/status: the pid in the innermost namespace.
int inner_pid(int pid) {
  const auto status = kernel::read_small_file(AT_FDCWD, format("/proc/{}/status", pid).c_str());
  const std::size_t line = status ? status->find("\nNSpid:") : std::string::npos;
  if (line == std::string::npos) return pid;
  const std::string_view text = std::string_view(*status).substr(line + 1, status->find('\n', line + 1) - line - 1);
  int number = pid;
  const std::size_t last = text.find_last_of("\t ") + 1;
  std::from_chars(text.data() + last, text.data() + text.size(), number);
  return number;
}

std::string program_of(int pid) {
  auto name = kernel::read_small_file(AT_FDCWD, format("/proc/{}/comm", pid).c_str());
  if (name && name->ends_with('\n')) name->pop_back();
  return name ? *name : "";
}

}  // namespace

std::uint32_t Culprits::find_inode(int protocol, const sockaddr_storage& client, const sockaddr_storage& server) const {
  struct {
    nlmsghdr header;
    inet_diag_req_v2 request;
  } question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  inet_diag_req_v2& request = question.request;
  // Of UDP the kernel looks for the receiver of such a datagram, of TCP for the socket itself (udp_dump_one,
  // inet_diag_find_one_icsk).
  const bool datagram = protocol == IPPROTO_UDP;
  const sockaddr_in& from = as_ipv4(datagram ? server : client);
  const sockaddr_in& to = as_ipv4(datagram ? client : server);
  request.sdiag_family = AF_INET;
  request.sdiag_protocol = static_cast<std::uint8_t>(protocol);
  request.idiag_states = ~0U;
  request.id.idiag_sport = from.sin_port;
  request.id.idiag_src[0] = from.sin_addr.s_addr;
  request.id.idiag_dport = to.sin_port;
  request.id.idiag_dst[0] = to.sin_addr.s_addr;
  request.id.idiag_cookie[0] = request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (::send(diag_.get(), &question, sizeof question, MSG_NOSIGNAL) < 0) return 0;
  struct {
    nlmsghdr header;
    inet_diag_msg answer;
    char attributes[1024];
  } reply;
  const ssize_t got = ::recv(diag_.get(), &reply, sizeof reply, MSG_DONTWAIT);
  const bool whole = got >= static_cast<ssize_t>(sizeof reply.header + sizeof reply.answer);
  return whole && reply.header.nlmsg_type == SOCK_DIAG_BY_FAMILY ? reply.answer.idiag_inode : 0;
}

Culprit Culprits::search(int protocol, const sockaddr_storage& client, const sockaddr_storage& server) {
  const auto begin = std::chrono::steady_clock::now();
  if (!diag_.valid() || init_pid_ <= 0 || begin < next_ || client.ss_family != AF_INET || server.ss_family != AF_INET) return {};
  Culprit culprit;
  if (const std::uint32_t inode = find_inode(protocol, client, server); inode != 0) {
    const std::string wanted = format("socket:[{}]", inode);
    std::vector<int> processes = kernel::list_tree(init_pid_);
    processes.resize(std::min(processes.size(), kMostProcesses));
    int left = kMostDescriptors;
    const auto found = std::ranges::find_if(processes, [&](int pid) { return holds(pid, wanted, left); });
    if (found != processes.end()) culprit = {inner_pid(*found), program_of(*found)};
  }
  const auto end = std::chrono::steady_clock::now();
  next_ = end + kPause * (end - begin);
  return culprit;
}

Culprit Culprits::find(int accepted) {
  sockaddr_storage client{}, server{};
  socklen_t client_size = sizeof client, server_size = sizeof server;
  if (::getpeername(accepted, reinterpret_cast<sockaddr*>(&client), &client_size) != 0 ||
      ::getsockname(accepted, reinterpret_cast<sockaddr*>(&server), &server_size) != 0)
    return {};
  return search(IPPROTO_TCP, client, server);
}

Culprit Culprits::find_datagram(const sockaddr_storage& peer, std::uint32_t to) {
  constexpr std::uint16_t kDnsPort = 53;
  sockaddr_storage server{};
  auto& address = reinterpret_cast<sockaddr_in&>(server);
  address.sin_family = AF_INET;
  address.sin_port = htons(kDnsPort);
  address.sin_addr.s_addr = to;
  return search(IPPROTO_UDP, peer, server);
}

}  // namespace belljar::egress
