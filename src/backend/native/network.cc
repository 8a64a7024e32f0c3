#include "backend/native/network.h"

#include <algorithm>
#include <set>

#include "policy/defaults.h"
#include "policy/domains.h"

namespace belljar::backend {
namespace {

using launch::InnerSocket;
using Purpose = InnerSocket::Purpose;
using Kind = InnerSocket::Kind;

constexpr std::uint32_t kAnyAddress = 0;
constexpr std::uint16_t kDnsPort = 53;
constexpr std::size_t kMostDirect = 16;

// Without a redirect only these ports are caught.
// What is published is a server's of the command, which could not bind it beside a listener of ours.
std::set<std::uint16_t> direct_ports(const Network& network) {
  std::set<std::uint16_t> ports{80, 443};
  if (const auto rules = policy::make_host_rules(network)) {  // what is wrong with them is told by name later on
    for (const policy::DomainRule& rule : rules->allowed) {
      if (rule.port && *rule.port != kDnsPort && *rule.port != policy::kProxyPort && ports.size() < kMostDirect)
        ports.insert(*rule.port);
    }
  }
  for (const PortPair& published : network.publish) ports.erase(published.inside);
  return ports;
}

void add_transparent(const Network& network, std::vector<InnerSocket>& sockets) {
  sockets.push_back(
      {.purpose = Purpose::kDns, .kind = Kind::kDatagram, .address = kAnyAddress, .port = kDnsPort, .transparent = true});
  sockets.push_back({.purpose = Purpose::kDnsStream, .address = kAnyAddress, .port = kDnsPort, .transparent = true});
  for (const std::uint16_t port : direct_ports(network)) {
    sockets.push_back(
        {.purpose = Purpose::kDirect, .address = kAnyAddress, .port = port, .transparent = true, .without_redirect = true});
  }
}

constexpr char kOurResolver[] = "nameserver 127.0.0.53\n";
// An address without a route (RFC 5737), so the kernel refuses a look-up at once, and the broker tells of it. Not the loopback's: a
// socket may be connected to it, and nothing would be told. musl does not listen for that refusal and waits the time given here,
// which is 5 s by default (resolv.conf(5)).
constexpr char kNoResolver[] = "nameserver 192.0.2.53\noptions timeout:0 attempts:1\n";

}  // namespace

std::vector<InnerSocket> inner_sockets(const Network& network) {
  std::vector<InnerSocket> sockets;
  for (const PortPair& ports : network.host_ports)
    sockets.push_back({.purpose = Purpose::kHostPort, .port = ports.inside, .host_port = ports.host});
  if (!network.publish.empty()) sockets.push_back({.purpose = Purpose::kMaker, .kind = Kind::kMaker});
  if (network.mode != NetMode::kProxy) return sockets;
  sockets.push_back({.purpose = Purpose::kProxy, .port = policy::kProxyPort, .transparent = network.transparent});
  for (const auto& port : {network.http_proxy_port, network.socks_proxy_port}) {
    const auto number = static_cast<std::uint16_t>(port.value_or(policy::kProxyPort));
    const auto same = [number](const InnerSocket& socket) { return socket.purpose == Purpose::kProxy && socket.port == number; };
    if (std::ranges::none_of(sockets, same)) sockets.push_back({.purpose = Purpose::kProxy, .port = number});
  }
  sockets.push_back({.purpose = Purpose::kDiag, .kind = Kind::kDiag});
  if (network.transparent) add_transparent(network, sockets);
  return sockets;
}

void plan_network(const Host& host, const Network& network, launch::Plan& plan, View& view) {
  plan.sockets = inner_sockets(network);
  if (network.mode == NetMode::kHost) return;
  const bool names = network.mode == NetMode::kProxy && network.transparent;
  if (names) {
    plan.routes = kernel::local_delivery(policy::kInnerAddress);
    plan.redirect = kernel::redirect_tcp(policy::kInnerAddress, policy::kProxyPort);
  }
  const auto file = host.canonical("/etc/resolv.conf");
  if (file && host.facts(*file).kind == PathKind::kFile) view.files.push_back({{*file}, names ? kOurResolver : kNoResolver});
}

}  // namespace belljar::backend
