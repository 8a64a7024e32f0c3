// Which HTTP requests a server of ours takes, by their headers alone. Pure.
//
// What a page in a browser on this machine can do is the threat: it reaches every port of loopback, under its own name when DNS
// says so (rebinding). Its requests carry a Host or an Origin that is not ours, and no token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::mcp {

struct HttpRules {
  std::uint16_t port = 0;
  std::vector<std::string> tokens;   // one for each client; none: none is asked for
  std::vector<std::string> hosts;    // values of Host that are ours besides localhost and addresses, with our port: "box.lan:8080"
  std::vector<std::string> origins;  // values of Origin that are welcome besides our own
};

struct HttpHead {
  std::string method, target;
  std::string host, origin, authorization, accept, content_type, protocol;  // empty: absent
  std::string transfer_encoding;
};

struct HttpRefusal {
  unsigned status = 400;
  std::string reason;
  bool operator==(const HttpRefusal&) const = default;
};

inline constexpr std::string_view kHttpPath = "/mcp";

// Which of the tokens a request has, by its Authorization; 0 where none is asked for. Takes as long for each token that is given.
std::optional<std::size_t> find_token(const HttpRules& rules, std::string_view authorization);

// Whether nobody knows where its body ends: a coding other than `chunked` (RFC 9112, 6.1). What follows is no request of its own.
bool has_unknown_length(const HttpHead& head) noexcept;

// nullopt: it may be read on. 501 for a body of unknown length, 403 for a host or origin, 401 for the token, then 404, 405, 415,
// 406, 400 (a version that is none).
std::optional<HttpRefusal> check_head(const HttpRules& rules, const HttpHead& head);

// "127.0.0.1:8080", "[::1]:8080", "8080", "localhost:8080"; the address without brackets, and whether it is of loopback.
struct HttpAddress {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
  bool loopback = true;
};
std::optional<HttpAddress> parse_http_address(std::string_view text);

}  // namespace belljar::mcp
