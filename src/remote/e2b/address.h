// The addresses to ask, and the key to ask with. Values; no I/O.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/e2b.h"
#include "belljar/result.h"

namespace belljar::remote::e2b {

struct Address {
  std::string api_key, domain, api_url, sandbox_url;  // sandbox_url may be empty
  std::vector<std::string> headers;                   // of the control plane, the key's among them: "Name: text"
};

// Options, then the environment, then E2B's own. Errors: kUnauthenticated, no key; kInvalidArgument: a URL that is none, or plain
// http to another machine; a key or a header that is none. No error holds the key.
Result<Address> find_address(const E2bOptions& options, const std::map<std::string, std::string>& environment);

// The address of a sandbox's daemon. `domain`: what the service said, empty: the client's own. Errors: kDataLoss, the service
// answered with something that is no id, no domain.
Result<std::string> sandbox_address(const Address& address, std::string_view id, std::string_view domain);

}  // namespace belljar::remote::e2b
