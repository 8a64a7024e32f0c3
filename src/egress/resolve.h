// Names to addresses, on the host: /etc/hosts, then the name servers of /etc/resolv.conf. No search list: a rule names a whole
// name. Not through NSS: the program is static, and getaddrinfo(3) would load modules of the host's libc. Names that only NSS knows
// (LDAP, mDNS) do not resolve.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "policy/ip.h"

namespace belljar::egress {

struct Resolved {
  std::vector<policy::Ip> addresses;  // IPv4 first
  std::string error;                  // why there are none: "the name does not exist", ...
  std::chrono::seconds ttl{0};        // how long the answer may be cached
  bool missing = false;               // the name servers say that there is no such name
  bool empty = false;                 // they say that the name has no address
};

// Blocks, for seconds at worst. Safe from any thread.
using Resolve = std::function<Resolved(const std::string& name)>;
Resolved resolve_on_host(const std::string& name);

// The answer /etc/hosts has; empty when it has none. `text` is the file.
std::vector<policy::Ip> find_in_hosts(std::string_view text, std::string_view name);

// The addresses of this machine's interfaces now.
std::vector<policy::Ip> own_addresses();

}  // namespace belljar::egress
