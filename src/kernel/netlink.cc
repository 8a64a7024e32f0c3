// Two batches of messages, for rtnetlink(7) and for nf_tables. netlink.h says why they are written by hand.
//
// Each message has a header, a fixed body and attributes of {length, type, value}, all padded to four bytes.
// The length of an attribute does not count its padding, that of a message does. Lengths are not known before
// the end and are patched in.
//
// local_delivery() has every TCP connection, and DNS over UDP, delivered on this machine, whatever its address:
// a rule sends them to a table of its own, and the only route there is of the type `local` (ip-route(8)). The
// address is needed as the source of such packets.
//
// redirect_tcp() then gives those connections to one listener by tproxy (Documentation/networking/tproxy.rst of
// the kernel). Unlike a redirect by NAT it leaves the packet as it is, so getsockname(2) tells the listener
// where the client wanted to go. 127/8 and answers are left out. nf_tables takes its messages as one
// transaction between BATCH_BEGIN and BATCH_END: all of it holds, or nothing.
//
// Byte orders differ: rtnetlink has numbers of the host, nf_tables numbers in network order; addresses and
// ports are in network order in both, except where a port range of a rule is meant, which is of the host
// (struct fib_rule_port_range).
#include "kernel/netlink.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>

#include <cstddef>
#include <string_view>
#include <type_traits>

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kLoopbackIndex = 1;  // in every network namespace
constexpr std::uint32_t kTable = 100;        // of the local routes
constexpr std::uint16_t kDnsPort = 53;

// One message after the other; attributes nest. Lengths are filled in when a message or an attribute ends.
class Writer {
 public:
  void begin(int type, int flags) {
    message_ = bytes_.size();
    nlmsghdr header{};
    header.nlmsg_type = static_cast<std::uint16_t>(type);
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    header.nlmsg_seq = ++sequence_;
    put(header);
  }
  void end() { patch<std::uint32_t>(message_, bytes_.size() - message_); }

  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    bytes_.resize((bytes_.size() + 3) & ~std::size_t{3});
  }
  template <class T>
  void attribute(int type, const T& value) {
    const std::size_t at = open(type);
    put(value);
    patch<std::uint16_t>(at, sizeof(nlattr) + sizeof value);
  }
  void text(int type, std::string_view value) {
    const std::size_t at = open(type);
    bytes_.append(value).push_back('\0');
    patch<std::uint16_t>(at, bytes_.size() - at);
    bytes_.resize((bytes_.size() + 3) & ~std::size_t{3});
  }
  void number(int type, std::uint32_t value) { attribute(type, htonl(value)); }  // nf_tables counts in network order
  template <class Body>
  void nest(int type, Body body) {
    const std::size_t at = open(type | NLA_F_NESTED);
    body();
    patch<std::uint16_t>(at, bytes_.size() - at);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::size_t open(int type) {
    const std::size_t at = bytes_.size();
    put(nlattr{0, static_cast<std::uint16_t>(type)});
    return at;
  }
  template <class T>
  void patch(std::size_t at, std::size_t length) {
    const auto value = static_cast<T>(length);
    bytes_.replace(at, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
  }

  std::string bytes_;
  std::size_t message_ = 0;
  std::uint32_t sequence_ = 0;
};

void add_address(Writer& out, std::uint32_t own) {
  out.begin(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
  ifaddrmsg message{};
  message.ifa_family = AF_INET;
  message.ifa_prefixlen = 32;
  message.ifa_scope = RT_SCOPE_UNIVERSE;
  message.ifa_index = kLoopbackIndex;
  out.put(message);
  out.attribute(IFA_LOCAL, htonl(own));
  out.attribute(IFA_ADDRESS, htonl(own));
  out.end();
}

void add_rule(Writer& out, std::uint8_t protocol, std::uint16_t port) {
  out.begin(RTM_NEWRULE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
  fib_rule_hdr rule{};
  rule.family = AF_INET;
  rule.table = kTable;
  rule.action = FR_ACT_TO_TBL;
  out.put(rule);
  out.attribute(FRA_IP_PROTO, protocol);
  if (port != 0) out.attribute(FRA_DPORT_RANGE, fib_rule_port_range{port, port});
  out.end();
}

void add_route(Writer& out, std::uint32_t own) {
  out.begin(RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
  rtmsg route{};
  route.rtm_family = AF_INET;
  route.rtm_table = kTable;
  route.rtm_protocol = RTPROT_BOOT;
  route.rtm_scope = RT_SCOPE_HOST;
  route.rtm_type = RTN_LOCAL;
  out.put(route);
  out.attribute(RTA_OIF, kLoopbackIndex);
  out.attribute(RTA_PREFSRC, htonl(own));
  out.end();
}

// --- nf_tables

constexpr char kName[] = "belljar";
constexpr std::uint32_t kDestination = 16, kProtocol = 9;  // bytes into the IPv4 header

void begin_nf(Writer& out, int type, int flags, std::uint8_t family = NFPROTO_IPV4) {
  out.begin(NFNL_SUBSYS_NFTABLES << 8 | type, flags);
  out.put(nfgenmsg{family, NFNETLINK_V0, 0});
}

void mark_batch(Writer& out, int type) {
  out.begin(type, 0);
  out.put(nfgenmsg{AF_UNSPEC, NFNETLINK_V0, htons(NFNL_SUBSYS_NFTABLES)});
  out.end();
}

template <class Body>
void expression(Writer& out, std::string_view name, Body body) {
  out.nest(NFTA_LIST_ELEM, [&] {
    out.text(NFTA_EXPR_NAME, name);
    out.nest(NFTA_EXPR_DATA, body);
  });
}

void load(Writer& out, std::uint32_t offset, std::uint32_t size) {
  expression(out, "payload", [&] {
    out.number(NFTA_PAYLOAD_DREG, NFT_REG_1);
    out.number(NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
    out.number(NFTA_PAYLOAD_OFFSET, offset);
    out.number(NFTA_PAYLOAD_LEN, size);
  });
}

template <class T>
void compare(Writer& out, std::uint32_t how, const T& value) {
  expression(out, "cmp", [&] {
    out.number(NFTA_CMP_SREG, NFT_REG_1);
    out.number(NFTA_CMP_OP, how);
    out.nest(NFTA_CMP_DATA, [&] { out.attribute(NFTA_DATA_VALUE, value); });
  });
}

template <class T>
void immediate(Writer& out, std::uint32_t reg, const T& value) {
  expression(out, "immediate", [&] {
    out.number(NFTA_IMMEDIATE_DREG, reg);
    out.nest(NFTA_IMMEDIATE_DATA, [&] { out.attribute(NFTA_DATA_VALUE, value); });
  });
}

void add_chain(Writer& out) {
  constexpr std::uint32_t kMangle = static_cast<std::uint32_t>(-150);  // NF_IP_PRI_MANGLE, where tproxy belongs
  begin_nf(out, NFT_MSG_NEWCHAIN, NLM_F_ACK | NLM_F_CREATE);
  out.text(NFTA_CHAIN_TABLE, kName);
  out.text(NFTA_CHAIN_NAME, kName);
  out.nest(NFTA_CHAIN_HOOK, [&] {
    out.number(NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
    out.number(NFTA_HOOK_PRIORITY, kMangle);
  });
  out.text(NFTA_CHAIN_TYPE, "filter");
  out.end();
}

}  // namespace

NetlinkBatch local_delivery(std::uint32_t own) {
  Writer out;
  add_address(out, own);
  add_rule(out, IPPROTO_TCP, 0);
  add_rule(out, IPPROTO_UDP, kDnsPort);
  add_route(out, own);
  return {.protocol = NETLINK_ROUTE, .acks = 4, .bytes = out.take()};
}

NetlinkBatch redirect_tcp(std::uint32_t own, std::uint16_t port) {
  Writer out;
  mark_batch(out, NFNL_MSG_BATCH_BEGIN);
  begin_nf(out, NFT_MSG_NEWTABLE, NLM_F_ACK | NLM_F_CREATE);
  out.text(NFTA_TABLE_NAME, kName);
  out.end();
  add_chain(out);
  begin_nf(out, NFT_MSG_NEWRULE, NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND);
  out.text(NFTA_RULE_TABLE, kName);
  out.text(NFTA_RULE_CHAIN, kName);
  out.nest(NFTA_RULE_EXPRESSIONS, [&] {
    // 127/8 is the command's own loopback.
    load(out, kDestination, 1);
    compare(out, NFT_CMP_NEQ, std::uint8_t{127});
    load(out, kDestination, 4);
    compare(out, NFT_CMP_NEQ, htonl(own));  // answers on their way back to the client
    load(out, kProtocol, 1);
    compare(out, NFT_CMP_EQ, std::uint8_t{IPPROTO_TCP});
    immediate(out, NFT_REG_1, htonl(INADDR_LOOPBACK));
    immediate(out, NFT_REG_2, htons(port));
    expression(out, "tproxy", [&] {
      out.number(NFTA_TPROXY_FAMILY, NFPROTO_IPV4);
      out.number(NFTA_TPROXY_REG_ADDR, NFT_REG_1);
      out.number(NFTA_TPROXY_REG_PORT, NFT_REG_2);
    });
  });
  out.end();
  mark_batch(out, NFNL_MSG_BATCH_END);
  return {.protocol = NETLINK_NETFILTER, .acks = 3, .bytes = out.take()};
}

}  // namespace belljar::kernel
