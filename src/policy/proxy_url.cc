// The URL of another proxy to leave by.
//
// Errors never repeat the URL, for it may hold a password. User and password may hold no control character
// and no more than SOCKS5 can carry (255 bytes each, RFC 1929): a CR or LF in them would end a header of the
// request to that proxy.
#include "policy/proxy_url.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/encoding.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "policy/domains.h"
#include "policy/host.h"

namespace belljar::policy {
namespace {

constexpr std::uint16_t kSocksPort = 1080;
constexpr std::size_t kMostPart = 255;  // of user and of password, RFC 1929

// No byte that could end a header or a field of SOCKS5 early.
bool is_credential(std::string_view text) {
  const std::size_t colon = text.find(':');
  const bool whole = colon != std::string_view::npos && colon > 0 && colon <= kMostPart && text.size() - colon - 1 <= kMostPart;
  return whole && std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

}  // namespace

Result<ProxyUrl> parse_proxy_url(std::string_view url) {
  const auto bad = [](std::string reason) {
    // The URL itself may hold a password: it is not repeated.
    return Error(Code::kInvalidArgument, "the proxy to leave by cannot be used")
        .reason(std::move(reason))
        .next("write http://[USER:PASSWORD@]HOST:PORT or socks5://[USER:PASSWORD@]HOST:PORT");
  };
  ProxyUrl proxy;
  const std::size_t scheme_end = url.find("://");
  const std::string_view scheme = url.substr(0, scheme_end);
  if (scheme_end == std::string_view::npos) return bad("it is no URL");
  if (scheme == "https") return bad("proxies that speak TLS themselves (https://) are not served");
  if (scheme == "socks5" || scheme == "socks5h") proxy.kind = ProxyUrl::Kind::kSocks5;
  else if (scheme != "http") return bad(format("the scheme {} is not served", quoted(scheme)));
  std::string_view rest = url.substr(scheme_end + 3);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    auto credential = percent_decoded(rest.substr(0, at));
    if (!credential || !is_credential(*credential)) return bad("what stands before the @ is no USER:PASSWORD");
    proxy.credential = *std::move(credential);
    rest.remove_prefix(at + 1);
  }
  auto place = parse_destination(rest, proxy.kind == ProxyUrl::Kind::kHttp ? kHttpPort : kSocksPort);
  if (!place) return bad(place.error().what() + ": " + place.error().reason());
  proxy.place = *std::move(place);
  return proxy;
}

}  // namespace belljar::policy
