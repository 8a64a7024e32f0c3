// Egress by way of another proxy (network.upstream_proxy): its URL, and the handshake before it relays. Pure:
// bytes in, bytes out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "egress/http.h"
#include "policy/domains.h"
#include "policy/proxy_url.h"

namespace belljar::egress {

struct Upstream : policy::ProxyUrl {
  std::vector<policy::DomainRule> bypass;  // destinations that leave without it
};

// Errors: as policy::parse_proxy_url and policy::parse_domain_rule.
Result<Upstream> parse_upstream(std::string_view url, const std::vector<std::string>& bypass);

bool leaves_without(const Upstream& upstream, const policy::Destination& destination);

// One handshake; afterwards the bytes belong to the client and the server. One thread.
class UpstreamHandshake {
 public:
  UpstreamHandshake(const Upstream& upstream, const policy::Destination& destination);
  std::string begin();
  enum class State { kMore, kDone, kFailed };
  // Consumes the handshake's bytes from `in` and appends the next ones to `out`.
  State feed(std::string& in, std::string& out);
  const std::string& reason() const noexcept { return reason_; }  // kFailed: one sentence

 private:
  State feed_http(std::string& in);
  State feed_socks(std::string& in, std::string& out);
  State fail(std::string reason);
  std::string socks_request() const;

  enum class Step { kMethod, kPassword, kReply };
  const Upstream::Kind kind_;
  const std::string credential_;
  const policy::Destination destination_;
  Step step_ = Step::kMethod;
  HttpReader answer_;
  std::string reason_;
};

}  // namespace belljar::egress
