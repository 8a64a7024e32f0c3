// Any bytes as a DNS question, as what an upstream proxy says, as a rule for requests: no crash, no more taken than given; an
// answer repeats its question; a rule that is read covers its own path and nothing above it.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "egress/dns.h"
#include "egress/upstream.h"
#include "policy/domains.h"

using namespace belljar;
using namespace belljar::egress;

namespace {

void require(bool fact) {
  if (!fact) std::abort();
}

void check_dns(std::string_view text) {
  const auto question = read_dns_question(text);
  if (!question) return;
  require(text.substr(12, question->wire.size()) == question->wire);
  if (question->name) {
    const auto again = policy::parse_host(question->name->name);
    require(again && *again == *question->name && !question->name->ip);
  }
  for (const auto code : {DnsCode::kNoError, DnsCode::kNoSuchName}) {
    const std::string answer = dns_answer(*question, {.code = code, .address = 0xC6130001, .why = "no"});
    require(answer.size() < 600 && answer.substr(12, question->wire.size()) == question->wire);
    require(!read_dns_question(answer));  // never a question: two resolvers do not talk for ever
  }
}

void check_upstream(std::string_view text) {
  for (const auto kind : {Upstream::Kind::kHttp, Upstream::Kind::kSocks5}) {
    Upstream upstream;
    upstream.kind = kind;
    upstream.credential = "user:password";
    policy::Destination destination;
    destination.host.name = "web.test";
    destination.port = 80;
    UpstreamHandshake handshake(upstream, destination);
    require(!handshake.begin().empty());
    std::string in(text), out;
    auto state = UpstreamHandshake::State::kMore;
    for (std::size_t before = in.size() + 1; state == UpstreamHandshake::State::kMore && in.size() < before;) {
      before = in.size();
      state = handshake.feed(in, out);
    }
    require(in.size() <= text.size() && out.size() < 1000);
    require((state == UpstreamHandshake::State::kFailed) == !handshake.reason().empty());
  }
  (void)parse_upstream(text, {});
}

void check_rule(std::string_view text) {
  const auto rule = policy::parse_request_rule(text);
  if (!rule) return;
  policy::HostRules rules;
  rules.requests.push_back(*rule);
  const std::string method = rule->methods.empty() ? "GET" : rule->methods.front();
  policy::Destination destination;
  destination.port = rule->host.port.value_or(80);
  if (rule->host.kind != policy::DomainRule::Kind::kName || !rule->host.self) return;
  destination.host.name = rule->host.name;
  require(policy::find_request(rules, destination, method, rule->path) != nullptr);
  require(rule->path == "/" || policy::find_request(rules, destination, method, "/") == nullptr);
  require(rule->path == "/" || policy::find_request(rules, destination, method, rule->path + "/../x") == nullptr);
  require(policy::decide_host(rules, destination).allowed());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_dns(text);
  check_upstream(text);
  check_rule(text);
  return 0;
}
