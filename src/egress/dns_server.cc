// The resolver inside: what each question is answered, and the UDP socket.
//
// The order of a question: faults of form, names of this machine and of the range of stand-in addresses, then
// the rules, then the type, then the budgets. A name that the rules refuse ends there, before any name server
// hears of it. Only questions of type A are looked up: every other type of an allowed name has an empty
// answer.
//
// The answer is never the real address of a host. The name gets one of the stand-in addresses, and the proxy
// resolves the name itself when a client connects to that, so what the client was told cannot be turned
// against the check of the address (rebinding).
//
// A reply must come from the address that was asked, or the client drops it. Every address is ours inside, so
// IP_PKTINFO says on receipt which one it was, and sets it on the reply.
#include "egress/dns_server.h"

#include <netinet/in.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/exec_result.h"
#include "egress/context.h"
#include "egress/culprit.h"
#include "egress/dns.h"
#include "egress/fake_addresses.h"
#include "egress/resolve.h"
#include "policy/domains.h"
#include "policy/host.h"
#include "policy/ip.h"

namespace belljar::egress {
namespace {

constexpr int kAtOnce = 64;                // datagrams before others get a turn
constexpr std::size_t kMostWaiting = 256;  // questions; what comes beyond is dropped, and asked again
constexpr std::uint32_t kLoopback = 0x7F000001;

// What stands for a name that no host has: it is recorded like one that nobody listed, and never looked up either.
policy::Host told_name(const DnsQuestion& question) {
  return question.name ? *question.name : policy::Host{.name = escaped(question.text), .ip = {}};
}

// Resolvers ask for A and AAAA of a name at once: together they are one act of the program.
bool is_other_half(Context& context, const std::string& name, std::uint16_t type, int pid) {
  constexpr std::chrono::seconds kTogether{1};
  const auto now = std::chrono::steady_clock::now();
  const Context::RefusedName& last = context.last_name;
  const bool pair = (type == kTypeA && last.type == kTypeAaaa) || (type == kTypeAaaa && last.type == kTypeA);
  const bool one = pid == last.pid || pid == 0 || last.pid == 0;
  const bool half = pair && one && name == last.name && now - last.at < kTogether;
  context.last_name = half ? Context::RefusedName{} : Context::RefusedName{name, type, pid, now};
  return half;
}

void note(Context& context, std::uint16_t type, EgressRecord record, Violation violation, const Culprit& culprit) {
  record.time = std::chrono::system_clock::now();
  record.protocol = "dns";
  violation.operation = "egress";
  violation.target = record.host;
  violation.origin = context.origin_of(violation.rule);
  violation.pid = record.pid = culprit.pid;
  violation.program = record.program = culprit.program;
  context.add(std::move(record));
  if (!is_other_half(context, violation.target, type, culprit.pid)) context.add(std::move(violation));
}

DnsAnswer refuse(Context& context, const DnsQuestion& question, const Culprit& culprit) {
  const policy::Host host = told_name(question);
  const policy::HostVerdict verdict = policy::decide_host(context.options.rules, {host, 0});
  const bool denied = verdict.reason == policy::HostReason::kDenied;
  EgressRecord record;
  record.host = host.name;
  record.reason = denied || question.name ? policy::to_string(verdict.reason) : "malformed";
  if (denied) record.rule = verdict.rule;
  Violation violation;
  violation.rule = denied ? "network.denied_domains" : "network.allowed_domains";
  violation.errnum = ENOENT;
  const std::string why = denied           ? format("{} is denied by the rule {}", host.name, verdict.rule)
                          : !question.name ? "no host can have that name"
                                           : format("{} is not on the list of allowed hosts", host.name);
  violation.allowed = question.name ? why + "; " + policy::next_step(verdict, {host, 0}) : why;
  note(context, question.type, std::move(record), std::move(violation), culprit);
  return {.code = DnsCode::kNoSuchName, .address = {}, .why = why};
}

// No address is ever taken back: who connects to it later would reach another host than it asked for.
DnsAnswer refuse_full(Context& context, const std::string& name, const Culprit& culprit) {
  EgressRecord record;
  record.host = name;
  record.reason = "names-full";
  Violation violation;
  violation.rule = "network.transparent";
  violation.errnum = EAGAIN;
  violation.allowed =
      format("the table of names is full: {} have addresses in this sandbox; by the proxy variables (HTTPS_PROXY) every name works",
             kMostNames);
  note(context, kTypeA, std::move(record), std::move(violation), culprit);
  return {.code = DnsCode::kServerFailure, .address = {}, .why = "the table of names is full"};
}

// A question carries data to whoever owns the zone, as a request does.
DnsAnswer refuse_spent(Context& context, const std::string& name, const Culprit& culprit, bool bytes) {
  EgressRecord record;
  record.host = name;
  record.reason = bytes ? "egress_bytes" : "egress_heads";
  Violation violation;
  violation.rule = bytes ? "limits.egress_bytes" : "limits.egress_heads";
  violation.errnum = EACCES;
  const std::string why = bytes ? "the sandbox has used up its bytes of egress"
                                : "names have used up what may be said in a minute: network.methods is \"limited\"";
  violation.allowed = why + (bytes ? "; raise limits.egress_bytes" : "; wait, or raise limits.egress_heads");
  note(context, kTypeA, std::move(record), std::move(violation), culprit);
  return {.code = DnsCode::kServerFailure, .address = {}, .why = why};
}

// The name of an address of loopback or of one that stands for a name here (RFC 1035 section 3.5): programs that log their peers
// ask for it, no host is meant, and no rule could open it.
bool asks_for_our_own(const Context& context, std::string_view name) {
  constexpr std::string_view kReverse = ".in-addr.arpa";
  if (!name.ends_with(kReverse)) return false;
  const auto reversed = policy::parse_ip(name.substr(0, name.size() - kReverse.size()));
  if (!reversed || reversed->v6) return false;
  const auto& bytes = reversed->bytes;
  const std::uint32_t number =
      std::uint32_t{bytes[3]} << 24 | std::uint32_t{bytes[2]} << 16 | std::uint32_t{bytes[1]} << 8 | bytes[0];
  return number >> 24 == kLoopback >> 24 || context.fakes.is_fake(number);
}

}  // namespace

std::optional<DnsAnswer> judge_question(Context& context, const DnsQuestion& question, const std::function<Culprit()>& asker) {
  if (question.fault) return DnsAnswer{.code = *question.fault, .address = {}, .why = {}};
  if (question.text.empty()) return DnsAnswer{};  // the root, which programs ask for to see whether anybody answers
  if (!question.name) return refuse(context, question, asker());
  const std::string& name = question.name->name;
  if (name == "localhost" || name.ends_with(".localhost")) return DnsAnswer{.address = kLoopback, .why = {}};  // RFC 6761
  if (asks_for_our_own(context, name)) return DnsAnswer{.code = DnsCode::kNoSuchName, .address = {}, .why = {}};
  if (!policy::may_resolve(context.options.rules, *question.name)) return refuse(context, question, asker());
  if (question.type != kTypeA) return DnsAnswer{};
  const bool spent = context.passed > context.options.max_bytes;
  if (spent || !context.may_name(name)) return refuse_spent(context, name, asker(), spent);
  return std::nullopt;
}

DnsAnswer answer_question(Context& context, const DnsQuestion& question, const Resolved& resolved,
                          const std::function<Culprit()>& asker) {
  // A name that only an upstream proxy knows is left to it.
  if (resolved.addresses.empty() && !context.options.upstream) {
    const DnsCode code = resolved.missing ? DnsCode::kNoSuchName
                         : resolved.empty ? DnsCode::kNoError  // a client would ask again after a failure
                                          : DnsCode::kServerFailure;
    return {.code = code, .address = {}, .why = {}};
  }
  const auto address = context.fakes.address_of(question.name->name);
  if (!address) return refuse_full(context, question.name->name, asker());
  return {.address = address, .why = {}};
}

bool DnsServer::serve() {
  for (int i = 0; i < kAtOnce; ++i) {
    char bytes[kMaxDns];
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(in_pktinfo))];
    Asker asker;
    iovec part{bytes, sizeof bytes};
    msghdr message{};
    message.msg_name = &asker.peer;
    message.msg_namelen = sizeof asker.peer;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(socket_.get(), &message, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    asker.peer_size = message.msg_namelen;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_type != IP_PKTINFO || (message.msg_flags & MSG_TRUNC) != 0) continue;
    in_pktinfo info;
    std::memcpy(&info, CMSG_DATA(header), sizeof info);
    asker.asked_at = info.ipi_addr.s_addr;
    handle_query(std::string_view(bytes, static_cast<std::size_t>(got)), asker);
  }
  return true;
}

std::function<Culprit()> DnsServer::finder(const Asker& asker) const {
  return [this, &asker] { return context_.culprits.find_datagram(asker.peer, asker.asked_at); };
}

void DnsServer::handle_query(std::string_view message, const Asker& asker) {
  auto question = read_dns_question(message);
  if (!question) return;
  const auto judged = judge_question(context_, *question, finder(asker));
  if (judged) return reply(*question, *judged, asker);
  if (waiting_.size() >= kMostWaiting) return;
  const std::uint64_t id = next_++;
  const auto kept = context_.look_up(question->name->name, id);
  if (kept) return reply(*question, answer_question(context_, *question, *kept, finder(asker)), asker);
  waiting_.emplace(id, Waiting{*std::move(question), asker});
}

void DnsServer::on_resolved(std::uint64_t id, const Resolved& resolved) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  const auto& [question, asker] = found->second;
  reply(question, answer_question(context_, question, resolved, finder(asker)), asker);
  waiting_.erase(found);
}

// From the address that was asked, or the client would not take it.
void DnsServer::reply(const DnsQuestion& question, const DnsAnswer& answer, const Asker& asker) const {
  std::string bytes = dns_answer(question, answer);
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(in_pktinfo))]{};
  msghdr message{};
  message.msg_name = const_cast<sockaddr_storage*>(&asker.peer);
  message.msg_namelen = asker.peer_size;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = IPPROTO_IP;
  header->cmsg_type = IP_PKTINFO;
  header->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
  in_pktinfo info{};
  info.ipi_spec_dst.s_addr = asker.asked_at;
  std::memcpy(CMSG_DATA(header), &info, sizeof info);
  ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);  // lost like any datagram when there is no room
}

}  // namespace belljar::egress
