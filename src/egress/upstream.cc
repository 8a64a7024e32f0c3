#include "egress/upstream.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/result.h"
#include "egress/http.h"
#include "egress/socks.h"
#include "policy/domains.h"
#include "policy/proxy_url.h"

namespace belljar::egress {

Result<Upstream> parse_upstream(std::string_view url, const std::vector<std::string>& bypass) {
  Upstream upstream{BELLJAR_TRY(policy::parse_proxy_url(url)), {}};
  for (const std::string& rule : bypass) upstream.bypass.push_back(BELLJAR_TRY(policy::parse_domain_rule(rule)));
  return upstream;
}

bool leaves_without(const Upstream& upstream, const policy::Destination& destination) {
  const policy::HostRules rules{.allowed = upstream.bypass, .denied = {}, .requests = {}};
  return policy::decide_host(rules, destination).allowed();
}

UpstreamHandshake::UpstreamHandshake(const Upstream& upstream, const policy::Destination& destination)
    : kind_(upstream.kind),
      credential_(upstream.credential),
      destination_(destination),
      answer_(HttpReader::Kind::kResponse, true) {}

std::string UpstreamHandshake::begin() {
  if (kind_ == Upstream::Kind::kSocks5)
    return credential_.empty() ? std::string("\x05\x01\0", 3) : std::string("\x05\x02\0\x02", 4);
  const std::string place = to_string(destination_);
  return format("CONNECT {} HTTP/1.1\r\nHost: {}\r\n{}\r\n", place, place, proxy_authorization(credential_));
}

UpstreamHandshake::State UpstreamHandshake::fail(std::string reason) {
  reason_ = std::move(reason);
  return State::kFailed;
}

UpstreamHandshake::State UpstreamHandshake::feed(std::string& in, std::string& out) {
  return kind_ == Upstream::Kind::kHttp ? feed_http(in) : feed_socks(in, out);
}

UpstreamHandshake::State UpstreamHandshake::feed_http(std::string& in) {
  const std::size_t taken = answer_.feed(in);
  in.erase(0, taken);
  if (answer_.fault()) return fail("it gave no HTTP answer: " + answer_.fault()->reason);
  if (!answer_.head_done()) return State::kMore;
  const int status = answer_.head().status;
  if (status >= 200 && status < 300) return State::kDone;
  return fail(format("it answered {} {}", status, escaped(answer_.head().phrase)));
}

std::string UpstreamHandshake::socks_request() const {
  std::string request("\x05\x01\0", 3);
  if (destination_.host.ip) {
    const policy::Ip& ip = *destination_.host.ip;
    request += ip.v6 ? '\x04' : '\x01';
    request.append(reinterpret_cast<const char*>(ip.bytes.data()), ip.v6 ? 16 : 4);
  } else {
    request += '\x03';
    request += static_cast<char>(destination_.host.name.size());
    request += destination_.host.name;
  }
  request += static_cast<char>(destination_.port >> 8);
  request += static_cast<char>(destination_.port & 0xFF);
  return request;
}

UpstreamHandshake::State UpstreamHandshake::feed_socks(std::string& in, std::string& out) {
  const auto byte = [&in](std::size_t at) { return static_cast<unsigned char>(in[at]); };
  if (step_ != Step::kReply) {
    if (in.size() < 2) return State::kMore;
    const unsigned second = byte(1);
    const bool password = step_ == Step::kMethod && second == 2 && !credential_.empty();
    if (!password && second != 0) return fail(step_ == Step::kMethod ? "it wants another credential" : "it refused the credential");
    in.erase(0, 2);
    step_ = password ? Step::kPassword : Step::kReply;
    if (!password) return out += socks_request(), State::kMore;
    const std::size_t colon = credential_.find(':');
    out += '\x01';
    out += static_cast<char>(colon);
    out.append(credential_, 0, colon);
    out += static_cast<char>(credential_.size() - colon - 1);
    out.append(credential_, colon + 1);
    return State::kMore;
  }
  if (in.size() < 5) return State::kMore;
  if (byte(1) != 0) return fail(format("it refused with SOCKS5 reply {}", static_cast<int>(byte(1))));
  const std::size_t address = byte(3) == 1 ? 4 : byte(3) == 4 ? 16 : byte(3) == 3 ? 1U + byte(4) : 0;
  if (address == 0) return fail("its SOCKS5 reply makes no sense");
  if (in.size() < 4 + address + 2) return State::kMore;
  in.erase(0, 4 + address + 2);
  return State::kDone;
}

}  // namespace belljar::egress
