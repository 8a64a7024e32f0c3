#include "broker/sockaddr.h"

#include <linux/netlink.h>
#include <sys/un.h>

#include <charconv>
#include <cstring>

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

}  // namespace

UnixName decode_unix(const Address& address) noexcept {
  constexpr std::size_t kHeader = offsetof(sockaddr_un, sun_path);
  if (address.length <= kHeader || address.length > sizeof(sockaddr_un) || family_of(address) != AF_UNIX) return {};
  const std::string_view name(reinterpret_cast<const char*>(address.bytes.data()) + kHeader, address.length - kHeader);
  if (name.front() == '\0') return {UnixName::Kind::kAbstract, name.substr(1)};
  return {UnixName::Kind::kPath, name.substr(0, name.find('\0'))};
}

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
