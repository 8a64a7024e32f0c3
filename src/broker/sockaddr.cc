#include "broker/sockaddr.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/format.h"

namespace belljar::broker {
namespace {

sa_family_t family_of(const Address& address) noexcept {
  sa_family_t family = AF_UNSPEC;
  if (address.length >= sizeof family) std::memcpy(&family, address.bytes.data(), sizeof family);
  return family;
}

bool take_prefix(std::string_view& text, std::string_view prefix) noexcept {
  if (!text.starts_with(prefix)) return false;
  const std::string_view after = text.substr(prefix.size());
  if (!after.empty() && after.front() != '/') return false;
  text = after;
  return true;
}

std::string_view without_slashes(std::string_view text) noexcept {
  while (text.starts_with('/')) text.remove_prefix(1);
  return text;
}

// `text` is "/N" or "/N/rest".
SelfPath fd_path(std::string_view text) noexcept {
  text = without_slashes(text);
  SelfPath result;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result.fd);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc() || result.fd < 0 || (!rest.empty() && rest.front() != '/')) return {};
  result.kind = SelfPath::Kind::kFd;
  result.rest = without_slashes(rest);
  return result;
}

struct Endpoint {
  sa_family_t family = AF_UNSPEC;
  in_addr four{};
  in6_addr six{};
  in_port_t port = 0;
};

Endpoint endpoint_of(const Address& address) noexcept {
  Endpoint endpoint;
  if (family_of(address) == AF_INET && address.length >= sizeof(sockaddr_in)) {
    sockaddr_in peer{};
    std::memcpy(&peer, address.bytes.data(), sizeof peer);
    endpoint = {.family = AF_INET, .four = peer.sin_addr, .port = peer.sin_port};
  }
  constexpr std::size_t kLeastIn6 = offsetof(sockaddr_in6, sin6_scope_id);  // SIN6_LEN_RFC2133, net/ipv6.h
  if (family_of(address) != AF_INET6 || address.length < kLeastIn6) return endpoint;
  sockaddr_in6 peer{};
  std::memcpy(&peer, address.bytes.data(), std::min<std::size_t>(address.length, sizeof peer));
  endpoint = {.family = AF_INET6, .six = peer.sin6_addr, .port = peer.sin6_port};
  if (!IN6_IS_ADDR_V4MAPPED(&peer.sin6_addr)) return endpoint;
  endpoint.family = AF_INET;
  std::memcpy(&endpoint.four, peer.sin6_addr.s6_addr + 12, sizeof endpoint.four);
  return endpoint;
}

bool is_loopback(const Endpoint& endpoint) noexcept {
  if (endpoint.family == AF_INET) return ntohl(endpoint.four.s_addr) >> 24 == IN_LOOPBACKNET;
  return endpoint.family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&endpoint.six);
}

std::string text_of(const Endpoint& endpoint) {
  char text[INET6_ADDRSTRLEN];
  const void* const host =
      endpoint.family == AF_INET ? static_cast<const void*>(&endpoint.four) : static_cast<const void*>(&endpoint.six);
  if (endpoint.family == AF_UNSPEC || ::inet_ntop(endpoint.family, host, text, sizeof text) == nullptr) return "";
  return endpoint.family == AF_INET ? format("{}:{}", text, ntohs(endpoint.port)) : format("[{}]:{}", text, ntohs(endpoint.port));
}

}  // namespace

UnixName decode_unix(const Address& address) noexcept {
  constexpr std::size_t kHeader = offsetof(sockaddr_un, sun_path);
  if (address.length <= kHeader || address.length > sizeof(sockaddr_un) || family_of(address) != AF_UNIX) return {};
  const std::string_view name(reinterpret_cast<const char*>(address.bytes.data()) + kHeader, address.length - kHeader);
  if (name.front() == '\0') return {UnixName::Kind::kAbstract, name.substr(1)};
  return {UnixName::Kind::kPath, name.substr(0, name.find('\0'))};
}

std::string internet_name(const Address& address) {
  const Endpoint endpoint = endpoint_of(address);
  return endpoint.port == 0 || is_loopback(endpoint) ? "" : text_of(endpoint);
}

std::string endpoint_name(const Address& address) { return text_of(endpoint_of(address)); }

bool names_netlink_peer(const Address& address) noexcept {
  sockaddr_nl peer{};
  if (address.length < sizeof peer || family_of(address) != AF_NETLINK) return false;
  std::memcpy(&peer, address.bytes.data(), sizeof peer);
  return peer.nl_pid != 0 || peer.nl_groups != 0;
}

SelfPath decode_self_path(std::string_view path) noexcept {
  std::string_view text = path;
  if (take_prefix(text, "/dev/fd")) return fd_path(text);
  if (!take_prefix(text, "/proc/self") && !take_prefix(text, "/proc/thread-self")) return {};
  if (take_prefix(text, "/fd")) return fd_path(text);
  if (take_prefix(text, "/cwd")) return {SelfPath::Kind::kCwd, -1, without_slashes(text)};
  if (take_prefix(text, "/root")) return {SelfPath::Kind::kRoot, -1, without_slashes(text)};
  return {};
}

}  // namespace belljar::broker
