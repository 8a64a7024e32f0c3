// The URL of another proxy to leave by (network.upstream_proxy).
#pragma once

#include <string>
#include <string_view>

#include "belljar/result.h"
#include "policy/domains.h"

namespace belljar::policy {

struct ProxyUrl {
  enum class Kind { kHttp, kSocks5 };
  Kind kind = Kind::kHttp;
  Destination place;
  std::string credential;  // "user:password"; empty: none
};

// `http://[USER:PASSWORD@]HOST[:PORT][/]` or `socks5://`, `socks5h://` (names are always left to it); user and password may be
// percent-encoded. Errors: kInvalidArgument, never with the URL's own text; https:// is refused by name.
Result<ProxyUrl> parse_proxy_url(std::string_view url);

}  // namespace belljar::policy
