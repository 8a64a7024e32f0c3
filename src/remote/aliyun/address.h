// The addresses to ask, and the key to ask with. Values; no I/O.
#pragma once

#include <map>
#include <string>

#include "belljar/aliyun.h"
#include "belljar/result.h"

namespace belljar::remote::aliyun {

using Variables = std::map<std::string, std::string>;

struct Address {                     // of AgentBay
  std::string api_key, url, region;  // no slash at the url's end; region may be empty
};

struct GatewayAddress {
  std::string url, key_id, key_secret, token;  // token may be empty
};

// Which of the two is asked for. Errors: kInvalidArgument, both are known and nothing says which; kUnauthenticated, neither is.
Result<AliyunRoute> find_route(const AliyunOptions& options, const Variables& environment);

// Options, then the environment, then the service's own. Errors: kUnauthenticated, no key; kInvalidArgument: a URL that is none, or
// plain http to another machine; a key that is no text for a header. No error holds a key.
Result<Address> find_address(const AliyunOptions& options, const Variables& environment);
Result<GatewayAddress> find_gateway(const AliyunOptions& options, const Variables& environment);

}  // namespace belljar::remote::aliyun
