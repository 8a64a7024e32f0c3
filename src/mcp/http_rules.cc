#include "mcp/http_rules.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/ascii.h"
#include "base/format.h"
#include "mcp/rpc.h"

namespace belljar::mcp {
namespace {

std::optional<std::uint16_t> port_of(std::string_view text) noexcept {
  std::uint16_t port = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

bool is_address(const std::string& name, bool bracketed) noexcept {
  in6_addr six{};
  in_addr four{};
  return bracketed ? ::inet_pton(AF_INET6, name.c_str(), &six) == 1 : ::inet_pton(AF_INET, name.c_str(), &four) == 1;
}

struct Authority {
  std::string name;
  bool bracketed = false;
  std::optional<std::uint16_t> port;
};

std::optional<Authority> authority_of(std::string_view text) {
  Authority result;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    result.name = text.substr(1, end - 1);
    result.bracketed = true;
    text.remove_prefix(end + 1);
  } else {
    const std::size_t end = std::min(text.find(':'), text.size());
    result.name = text.substr(0, end);
    text.remove_prefix(end);
  }
  if (result.name.empty()) return std::nullopt;
  if (text.empty()) return result;
  result.port = port_of(text.substr(1));
  if (text[0] != ':' || !result.port) return std::nullopt;
  return result;
}

// A name that DNS gives can be anybody's; an address in Host is where the client really went, and `localhost` never leaves.
bool is_our_host(const HttpRules& rules, std::string_view host) {
  if (std::ranges::any_of(rules.hosts, [&](const std::string& ours) { return iequals(ours, host); })) return true;
  const auto authority = authority_of(host);
  if (!authority || authority->port.value_or(80) != rules.port) return false;
  return (!authority->bracketed && iequals(authority->name, "localhost")) || is_address(authority->name, authority->bracketed);
}

bool is_our_origin(const HttpRules& rules, const HttpHead& head) {
  if (head.origin.empty()) return true;
  if (std::ranges::any_of(rules.origins, [&](const std::string& ours) { return iequals(ours, head.origin); })) return true;
  constexpr std::string_view kScheme = "http://";
  return head.origin.starts_with(kScheme) && iequals(std::string_view(head.origin).substr(kScheme.size()), head.host);
}

// "application/json, text/event-stream;q=0.9": each item without its parameters.
bool lists(std::string_view header, std::string_view type) {
  while (!header.empty()) {
    std::string_view item = header.substr(0, std::min(header.find(','), header.size()));
    header.remove_prefix(std::min(item.size() + 1, header.size()));
    item = item.substr(0, std::min(item.find(';'), item.size()));
    item = trim(item, " \t");
    if (iequals(item, type) || item == "*/*") return true;
  }
  return false;
}

}  // namespace

std::optional<std::size_t> find_token(const HttpRules& rules, std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (rules.tokens.empty()) return 0;
  if (authorization.size() < kScheme.size() || !iequals(authorization.substr(0, kScheme.size()), kScheme)) return std::nullopt;
  authorization.remove_prefix(kScheme.size());
  // In constant time; only the length can be told from it.
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < rules.tokens.size(); ++i) {
    const std::string& token = rules.tokens[i];
    if (authorization.size() == token.size() && ::CRYPTO_memcmp(authorization.data(), token.data(), token.size()) == 0) found = i;
  }
  return found;
}

bool has_unknown_length(const HttpHead& head) noexcept {
  return !head.transfer_encoding.empty() && !iequals(head.transfer_encoding, "chunked");
}

std::optional<HttpRefusal> check_head(const HttpRules& rules, const HttpHead& head) {
  if (has_unknown_length(head)) return HttpRefusal{501, "Not Implemented: the only Transfer-Encoding here is `chunked`"};
  if (!is_our_host(rules, head.host)) return HttpRefusal{403, "Forbidden: this Host is not ours (--http-host names another)"};
  if (!is_our_origin(rules, head)) return HttpRefusal{403, "Forbidden: this Origin is not welcome (--http-origin names another)"};
  if (!find_token(rules, head.authorization)) return HttpRefusal{401, "Unauthorized: `Authorization: Bearer TOKEN` is needed"};
  if (head.target != kHttpPath) return HttpRefusal{404, format("Not Found: the server is at {}", kHttpPath)};
  const bool post = head.method == "POST", get = head.method == "GET";
  if (!post && !get && head.method != "DELETE") return HttpRefusal{405, "Method Not Allowed"};
  const std::string_view type = std::string_view(head.content_type).substr(0, head.content_type.find(';'));
  if (post && !iequals(type, "application/json"))
    return HttpRefusal{415, "Unsupported Media Type: Content-Type must be application/json"};
  if ((post && !lists(head.accept, "application/json")) || ((post || get) && !lists(head.accept, "text/event-stream")))
    return HttpRefusal{406, post ? "Not Acceptable: Accept must list application/json and text/event-stream"
                                 : "Not Acceptable: Accept must list text/event-stream"};
  if (!head.protocol.empty() && !is_known_version(head.protocol))
    return HttpRefusal{400, "Bad Request: this MCP-Protocol-Version is not spoken here"};
  return std::nullopt;
}

std::optional<HttpAddress> parse_http_address(std::string_view text) {
  HttpAddress result;
  if (const auto port = port_of(text)) {
    result.port = *port;
    return result;
  }
  const auto authority = authority_of(text);
  if (!authority || !authority->port) return std::nullopt;
  result.port = *authority->port;
  result.address = iequals(authority->name, "localhost") ? "127.0.0.1" : authority->name;
  if (!is_address(result.address, authority->bracketed)) return std::nullopt;
  result.loopback = authority->bracketed ? result.address == "::1" : result.address.starts_with("127.");
  return result;
}

}  // namespace belljar::mcp
