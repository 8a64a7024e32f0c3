// Messages for the kernel's networking, built beforehand: the child of the launcher only sends them (launch/network.cc). Pure.
//
// Written by hand after rtnetlink(7), include/uapi/linux/netfilter/nf_tables.h and what nft --debug=netlink prints: five messages
// do not need libmnl and libnftnl, which the static program would carry in every run.
#pragma once

#include <cstdint>
#include <string>

namespace belljar::kernel {

// Sent in one write(2) on a socket of `protocol`; the kernel answers it with `acks` acknowledgements before that call returns.
struct NetlinkBatch {
  int protocol = 0;  // NETLINK_ROUTE, NETLINK_NETFILTER
  int acks = 0;
  std::string bytes;
  bool operator==(const NetlinkBatch&) const = default;
};

// In a namespace with nothing but a loopback that is up: TCP to every IPv4 address outside of 127.0.0.0/8, and UDP to port 53 of
// it, is delivered locally with `own` as the source; all else stays unreachable. `own` becomes an address of the loopback.
// Addresses are numbers: 0x7F000001 is 127.0.0.1. Needs policy routing by protocol (Linux 4.17).
NetlinkBatch local_delivery(std::uint32_t own);

// Gives the TCP connections that local_delivery() brings in to the transparent listener on 127.0.0.1:`port`, whatever port it was
// meant for; getsockname(2) on the accepted socket tells where. No NAT and no connection tracking, so the sandbox's own traffic on
// 127.0.0.1 pays three comparisons. Needs nf_tables with tproxy.
NetlinkBatch redirect_tcp(std::uint32_t own, std::uint16_t port);

}  // namespace belljar::kernel
