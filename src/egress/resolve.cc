// Names to addresses by the host's own configuration; resolve.h says what that leaves out.
//
// An answer is kept for its TTL but at most a minute: a name whose owner moved it must become reachable
// again. Failures are not kept. libresolv reports a lack of descriptors as a name server that is silent, so
// it is asked apart (lacks_descriptors): the user can do something about it. AAAA is asked for only where the
// machine has a route to IPv6; connect(2) of a UDP socket finds that out without a packet.
#include "egress/resolve.h"

#include <arpa/nameser.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/read_file.h"
#include "base/unique_fd.h"
#include "belljar/result.h"
#include "policy/host.h"
#include "policy/ip.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kMostHosts = 1 << 20;  // bytes of /etc/hosts that are read
constexpr std::chrono::seconds kLongestTtl{60}, kHostsTtl{5};
constexpr char kNoDescriptor[] = "no descriptor is free to ask for it";

std::string read_hosts() {
  const UniqueFd file(::open("/etc/hosts", O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file.valid() ? read_at_most(file.get(), kMostHosts).value_or("") : std::string();
}

policy::Ip from_record(const unsigned char* data, bool v6) {
  std::array<std::uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), data, v6 ? 16 : 4);
  return v6 ? policy::ipv6(bytes) : policy::Ip{.v6 = false, .bytes = bytes};
}

// Adds what an answer holds; CNAMEs were followed by the name server.
void add_records(const unsigned char* answer, int size, int type, Resolved& resolved) {
  ns_msg message;
  if (::ns_initparse(answer, size, &message) < 0) return;
  for (int i = 0; i < ns_msg_count(message, ns_s_an); ++i) {
    ns_rr record;
    if (::ns_parserr(&message, ns_s_an, i, &record) < 0) return;
    const std::size_t wanted = type == ns_t_a ? 4 : 16;
    if (ns_rr_type(record) != type || ns_rr_rdlen(record) != wanted) continue;
    resolved.addresses.push_back(from_record(ns_rr_rdata(record), type == ns_t_aaaa));
    resolved.ttl = std::min(resolved.ttl, std::chrono::seconds(ns_rr_ttl(record)));
  }
}

std::string why(int error) {
  if (error == HOST_NOT_FOUND) return "the name does not exist";
  if (error == NO_DATA) return "the name has no address";
  if (error == TRY_AGAIN) return "the name servers do not answer";
  return "the name servers failed";
}

// The resolver does not tell it from a name server that is silent.
bool lacks_descriptors() {
  const UniqueFd probe(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return !probe.valid() && (errno == EMFILE || errno == ENFILE);
}

// Whether the machine could reach an IPv6 address at all: a route, no packet.
bool has_ipv6() {
  const UniqueFd probe(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 somewhere{};
  somewhere.sin6_family = AF_INET6;
  somewhere.sin6_port = htons(53);
  somewhere.sin6_addr.s6_addr[0] = 0x26;
  return probe.valid() && ::connect(probe.get(), reinterpret_cast<sockaddr*>(&somewhere), sizeof somewhere) == 0;
}

}  // namespace

std::vector<policy::Ip> find_in_hosts(std::string_view text, std::string_view name) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<policy::Ip> found;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line = line.substr(0, line.find('#'));
    std::optional<policy::Ip> ip;
    for (bool first = true;; first = false) {
      line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
      const std::string_view word = line.substr(0, line.find_first_of(kBlank));
      if (word.empty()) break;
      line.remove_prefix(word.size());
      if (first) ip = policy::parse_ip(word);
      if (!ip) break;
      const auto host = first ? Result<policy::Host>(policy::Host{}) : policy::parse_host(word);
      if (!first && host && host->name == name) found.push_back(*ip);
    }
  }
  std::ranges::stable_sort(found, {}, &policy::Ip::v6);
  return found;
}

Resolved resolve_on_host(const std::string& name) {
  Resolved resolved;
  resolved.addresses = find_in_hosts(read_hosts(), name);
  resolved.ttl = kHostsTtl;
  if (!resolved.addresses.empty()) return resolved;
  resolved.ttl = kLongestTtl;
  struct __res_state state{};
  if (::res_ninit(&state) != 0) {
    resolved.error = lacks_descriptors() ? kNoDescriptor : "the name servers are not known";
    resolved.ttl = std::chrono::seconds(0);
    return resolved;
  }
  state.retrans = 3;
  state.retry = 2;
  std::array<unsigned char, 65536> answer;  // NOLINT(cppcoreguidelines-pro-type-member-init): written by the resolver
  int error = NO_DATA;
  for (const int type : {ns_t_a, ns_t_aaaa}) {
    if (type == ns_t_aaaa && !has_ipv6()) continue;
    const int size = ::res_nquery(&state, name.c_str(), ns_c_in, type, answer.data(), answer.size());
    if (size < 0 && error == NO_DATA) error = state.res_h_errno;  // a failure is not forgotten for what another type says
    else add_records(answer.data(), std::min(size, static_cast<int>(answer.size())), type, resolved);
  }
  ::res_nclose(&state);
  if (resolved.addresses.empty()) {
    const bool told = error == HOST_NOT_FOUND || error == NO_DATA;
    resolved.error = !told && lacks_descriptors() ? kNoDescriptor : why(error);
    resolved.ttl = std::chrono::seconds(0);
    resolved.missing = error == HOST_NOT_FOUND;
    resolved.empty = error == NO_DATA;
  }
  return resolved;
}

std::vector<policy::Ip> own_addresses() {
  std::vector<policy::Ip> own;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return own;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr) continue;
    if (at->ifa_addr->sa_family == AF_INET)
      own.push_back(from_record(
          reinterpret_cast<const unsigned char*>(&reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr), false));
    if (at->ifa_addr->sa_family == AF_INET6)
      own.push_back(from_record(
          reinterpret_cast<const unsigned char*>(&reinterpret_cast<const sockaddr_in6*>(at->ifa_addr)->sin6_addr), true));
  }
  ::freeifaddrs(list);
  return own;
}

}  // namespace belljar::egress
