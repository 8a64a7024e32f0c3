// The state that all connections of one sandbox's proxy share.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "egress/culprit.h"
#include "egress/fake_addresses.h"
#include "egress/head_budget.h"
#include "egress/inner_sockets.h"
#include "egress/lookups.h"
#include "egress/proxy.h"
#include "egress/relay.h"
#include "egress/streams.h"

namespace belljar::egress {

// A stream that has begun on a client's HTTP/2 connection, with what the connection that will serve it takes
// over from the carrier.
struct NewStream {
  std::shared_ptr<Stream> stream;
  std::uint64_t carrier = 0;  // id
  ClientKind client_kind = ClientKind::kProxy;
  policy::Destination direct, place;  // `place`: the host whose TLS is intercepted
  Endpoint server;                    // of the first stream: the connection that was dialled for the tunnel
  std::string address;
};

// Owned by the proxy's thread.
struct Context {
  ProxyOptions options;
  int epoll = -1;
  std::unique_ptr<Lookups> lookups;
  FakeAddresses fakes;
  struct RefusedName {
    std::string name;
    std::uint16_t type = 0;
    int pid = 0;
    std::chrono::steady_clock::time_point at;
  } last_name;  // dns_server.cc
  Culprits culprits;
  InnerSockets inner;
  std::uint64_t passed = 0;  // bytes through all connections, both ways
  double credit = 0;         // bytes that may pass now, with options.max_rate
  std::chrono::steady_clock::time_point credited;
  HeadBudgets heads;  // by rule; of names that are looked up: by ""
  PipePool pipes;
  EgressLog log;
  std::vector<NewStream> new_streams;  // streams without a connection yet
  std::set<std::uint64_t> woken;       // connections that another one has given something to do
  std::vector<policy::Ip> own;         // addresses of this machine
  std::chrono::steady_clock::time_point own_until;

  bool is_own(const policy::Ip& ip);
  void add(EgressRecord record);
  void add(Violation violation);
  // Counts what went through. False: that was the last of options.max_bytes.
  bool spend(std::uint64_t bytes);
  // Returns the cached answer, or asks the name servers. A question counts as bytes passed: the owner of the
  // name's zone reads it.
  std::optional<Resolved> look_up(const std::string& name, std::uint64_t id);
  // False: with kLimited names have said all that heads of requests may say in a minute.
  bool may_name(const std::string& name);
  // Whether anything may pass now; otherwise after a few milliseconds.
  bool has_credit();
  const Origin& origin_of(const std::string& rule_key) const;
};

}  // namespace belljar::egress
