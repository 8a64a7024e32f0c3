// What passes between the two ends: one request and its answer, or a tunnel's bytes.
//
// A request and its answer pass at the same time, since a server may answer before it has read all (a refused
// upload). Each way holds at most kWindow for a slow peer: while that much waits, nothing more is read from
// the other side, and TCP holds the sender back. The bytes are counted in pieces (is_enough), because
// limits.egress_bytes and limits.egress_rate must also stop a single long message.
//
// The head of an answer is judged before any of it passes. Where the answer may hold a credential, its body
// goes through the guard, and chunks are framed anew: the guard keeps lengths but not the borders of pieces.
// An answer that breaks off ends in a reset, never in a clean close, so that the client cannot take a part
// for the whole.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/exec_result.h"
#include "egress/context.h"
#include "egress/decision.h"
#include "egress/http.h"
#include "egress/phase.h"
#include "egress/relay.h"
#include "egress/upstream.h"
#include "policy/host.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kWindow = std::size_t{256} * 1024;  // bytes held for a slow peer while a request is passed on
constexpr int kBudget = 16;                               // bursts of one tunnel before others get a turn
constexpr std::uint64_t kBurst = 1U << 20;                // of one message between two looks at what is left of limits.egress_bytes
constexpr int kSwitching = 101, kNoContent = 204, kPartialContent = 206, kNotModified = 304;

// As far as it came.
bool is_http(std::string_view answer) {
  constexpr std::string_view kVersion = "HTTP/1.";
  return kVersion.starts_with(answer.substr(0, kVersion.size()));
}

bool is_chunked(const HttpHead& head) { return find_field(head, "Transfer-Encoding") != nullptr; }

Problem bad_answer(std::string text) { return {"server", {502, "http_protocol_error", std::move(text), ""}}; }

// A request goes on, and its answer comes back; both as they arrive, without what must not pass. Needs `request`, `head` and a
// server that takes them.
class Exchange final : public Phase {
 public:
  explicit Exchange(ConnectionState& state) : Phase(state, state.timeouts().answer), request_(*state.request) {
    server_.out = forwarded_head(state.head, asked_, asks_upstream(state) ? &context_.options.upstream->credential : nullptr);
    begin_answer();
  }
  bool has_begun() const override { return answer_->head_done(); }

  Next go() override {
    for (;;) {
      const std::uint64_t before = state_.passed();
      if (!state_.may_pass()) return {};
      if (Next next = pass_request()) return next;
      if (Next next = pass_answer()) return next;
      if (client_.broken) return give_up(state_);
      if (!state_.spend()) return refuse_spent(state_, has_begun());
      const std::uint64_t passed = state_.passed() - before;
      if (passed != 0) state_.wait(state_.timeouts().answer);
      if (answer_->done() && client_.out.empty()) return end_exchange();
      // Stopped to be counted, or the server takes more since it was read.
      if (state_.starved || (passed < kBurst && !server_.may_seal())) return {};
    }
  }
  Next late() override {
    if (!client_.out.empty() || has_begun()) return give_up(state_);
    const std::string why = format("{} does not answer", to_string(asked_.destination));
    return refuse(state_, Problem{"slow", {504, "http_response_timeout", why, ""}});
  }
  void on_silence() override { deliver_body(state_.guard.give_early()); }

 private:
  // With a rate, one piece after the other; else a burst, so that a limit of bytes is seen on the way of a long message.
  bool is_enough(std::uint64_t passed) {
    constexpr std::uint64_t kPiece = 65536;
    if (context_.options.max_rate != 0 && passed >= kPiece) state_.starved = true;
    return state_.starved || passed >= kBurst;
  }

  Next pass_request() {
    std::uint64_t& sent = state_.record.bytes_sent;
    for (const std::uint64_t before = sent;;) {
      sent += server_.flush();
      if (is_enough(sent - before) || request_.done() || server_.out.size() >= kWindow) return {};
      client_.read(kWindow);
      const std::size_t taken = request_.feed(client_.in);
      if (request_.fault()) return refuse(state_, *request_.fault());
      if (Next next = check_trailers()) return next;
      if (taken == 0) return client_.eof || client_.broken ? give_up(state_) : Next();
      server_.out.append(client_.in, 0, taken);
      client_.in.erase(0, taken);
    }
  }
  // Nothing is put into them, as into a body.
  Next check_trailers() {
    if (request_.trailers().empty()) return {};
    HttpHead trailers;
    trailers.fields = request_.trailers();
    auto wrong = judge_credentials(state_, trailers);
    return wrong ? refuse(state_, *std::move(wrong)) : Next();
  }

  Next pass_answer() {
    std::uint64_t& received = state_.record.bytes_received;
    for (const std::uint64_t before = received;;) {
      received += client_.flush();
      if (is_enough(received - before) || answer_->done()) return {};
      // Its answer waits for the client; what it takes of the request need not.
      if (client_.out.size() >= kWindow) return server_.read(0), Next();
      server_.read(kWindow);
      const bool had_head = answer_->head_done();
      const std::size_t taken = answer_->feed(server_.in);
      const bool ended = taken == 0 && (server_.eof || server_.broken);
      if (is_cut(ended)) return had_head ? break_off() : refuse_answer();
      if (taken == 0 && !ended) return {};
      if (had_head) deliver(std::string_view(server_.in).substr(0, taken));
      server_.in.erase(0, taken);
      if (!had_head && answer_->head_done()) {
        if (Next next = receive_head()) return next;
      } else if (ended) {
        return {};
      }
    }
  }
  // Before its end.
  bool is_cut(bool ended) {
    if (answer_->fault()) return true;
    return ended && (((server_.cut || server_.broken) && answer_->needs_end()) || !answer_->end());
  }
  // The client has a part of it, and must see that it is one.
  Next break_off() {
    // Without a length or the server's word that this was all, anybody on the way may have cut it (RFC 9112 section 9.8).
    if (!answer_->fault() && answer_->needs_end() && server_.cut && !server_.broken) state_.broken_as = "tls-cut";
    server_.in.clear();
    return begin_breaking(state_);
  }
  Next refuse_answer() {
    const bool by_tls = server_.secure != nullptr && server_.secure->broken();  // an alert: it wants a client certificate, say
    const std::string why = by_tls                ? server_.secure->fault().text
                            : answer_->fault()    ? answer_->fault()->reason
                            : server_.in.empty()  ? "it closed the connection without an answer"
                            : is_http(server_.in) ? "it closed the connection before the end of the head"
                                                  : "what it sent is something else";
    state_.record.bytes_received += server_.in.size();
    return refuse(state_, bad_answer(format("{} gave no HTTP answer: {}", to_string(asked_.destination), why)));
  }

  void begin_answer() {
    answer_.emplace(HttpReader::Kind::kResponse, asked_.method == "HEAD");
    if (state_.guard.active()) answer_->keep_body();
  }
  Next receive_head() {
    if (auto wrong = find_wrong()) return refuse(state_, *std::move(wrong));
    HttpHead head = answer_->head();
    state_.guard.restore(head);
    if (head.status == kSwitching) {
      client_.out += returned_head(head, false, true);
      state_.record.bytes_received += client_.out.size();  // a tunnel counts what comes from here on
      state_.guard.begin_frames();
      return begin_tunnel(state_);
    }
    // With another coding than chunked the body ends with the connection, whatever its length says (RFC 9112 section 6.3).
    keep_client_ = asked_.keep_alive && head.version == 11 && !answer_->needs_end() && !asked_.stream && !is_transfer_coded(head);
    client_.out += returned_head(head, keep_client_, false);
    if (head.status < 200) begin_answer();
    return {};
  }
  // Of the answer's head.
  std::optional<Problem> find_wrong() const {
    const HttpHead& head = answer_->head();
    const std::string place = to_string(asked_.destination);
    const bool no_body = asked_.method == "HEAD";
    // What cannot be read as a whole could bring the credential back, and so could the server's words in our own.
    const bool partial = head.status == kPartialContent || find_field(head, "Content-Range") != nullptr;
    if (state_.guard.active() && !no_body && (partial || is_encoded(head)))
      return bad_answer(format("the answer of {} is {} although that was not asked for, and may hold a credential", place,
                               partial ? "a part" : "encoded"));
    // Nobody behind us would undo a coding that is left on the way. An answer without a body has nothing to undo.
    const bool bodiless = no_body || head.status == kNoContent || head.status == kNotModified;
    if (asked_.stream && !bodiless && is_transfer_coded(head))
      return bad_answer(format("the answer of {} has a transfer coding that HTTP/2 does not know", place));
    constexpr int kProxyAuthentication = 407;  // asked of us, by the upstream proxy itself
    if (head.status == kProxyAuthentication && asks_upstream(state_))
      return Problem{"upstream",
                     {502, "http_request_error",
                      format("the upstream proxy {} refuses: {}", to_string(context_.options.upstream->place), head.status),
                      "network.upstream_proxy names user and password"}};
    if (head.status == kSwitching && !asked_.upgrade) return bad_answer("the server changes the protocol unasked");
    return {};
  }

  // A piece of the answer's body to the client: as it is, or without what must not come back. Lengths stay; chunks are ours then.
  void deliver(std::string_view raw) {
    if (!state_.guard.active()) {
      client_.out += raw;
      return;
    }
    const bool done = answer_->done();
    deliver_body(state_.guard.filter(answer_->take_body(), done));
    if (!done || !is_chunked(answer_->head())) return;
    client_.out += "0\r\n";
    for (const HttpField& field : answer_->trailers())
      client_.out += format("{}: {}\r\n", state_.guard.restore(field.name), state_.guard.restore(field.value));
    client_.out += "\r\n";
  }
  void deliver_body(const std::string& body) {
    if (!is_chunked(answer_->head())) client_.out += body;
    else if (!body.empty()) client_.out += format("{:x}\r\n{}\r\n", body.size(), body);
  }

  Next end_exchange() {
    state_.end_record("allowed");
    state_.drop_server();
    return keep_client_ && request_.done() ? begin_first_byte(state_) : close_politely(state_);
  }

  HttpReader& request_;
  std::optional<HttpReader> answer_;
  bool keep_client_ = false;
};

// Two directions; nobody judges what is in them. Values are taken out of the answers where the guard is active.
class Tunnel final : public Phase {
 public:
  explicit Tunnel(ConnectionState& state) : Phase(state, state.timeouts().tunnel), up_(client_, server_), down_(server_, client_) {
    state.tunnelled = true;
    server_.out += std::exchange(client_.in, {});
    state.record.bytes_received += server_.in.size();
    std::string first = std::exchange(server_.in, {});
    client_.out += state.guard.active() ? state.guard.filter(first, false) : first;
    state.record.bytes_sent += server_.out.size();
    if (state.guard.active())
      down_.set_filter([&guard = state.guard](const std::string& bytes, bool last) { return guard.filter(bytes, last); });
  }
  bool has_begun() const override { return true; }
  Next go() override {
    if (!state_.may_pass()) return {};
    const auto [moved, more] = pump(context_.options.max_rate == 0 ? kBudget : 1);
    state_.starved = context_.options.max_rate != 0 && more;
    if (!state_.spend()) return refuse_spent(state_, true);
    if (state_.guard.broken()) return state_.broken_as = "server", begin_breaking(state_, std::move(down_));
    if (client_.broken) return give_up(state_);
    if (server_.broken) return begin_breaking(state_, std::move(down_));
    if (up_.done() && down_.done()) return state_.end_record("allowed"), end(state_);
    if (up_.done() && client_.hung) return give_up(state_);
    if (down_.done() && server_.hung) return begin_breaking(state_, std::move(down_));
    if (moved || more) state_.wait(up_.done() || down_.done() ? state_.timeouts().half_closed : state_.timeouts().tunnel);
    return {};
  }
  bool has_more() override { return pump(0).more; }
  void on_silence() override { client_.out += state_.guard.give_early(); }

 private:
  struct Pumped {
    bool moved, more;
  };
  Pumped pump(int budget) {
    EgressRecord& record = state_.record;
    const std::uint64_t before = state_.passed(), sent = up_.bytes(), received = down_.bytes();
    const bool more_up = up_.pump(context_.pipes, budget), more_down = down_.pump(context_.pipes, budget);
    record.bytes_sent += up_.bytes() - sent;
    record.bytes_received += down_.bytes() - received;
    return {state_.passed() != before, more_up || more_down};
  }
  Direction up_, down_;
};

}  // namespace

Next begin_exchange(ConnectionState& state) { return std::make_unique<Exchange>(state); }

Next begin_tunnel(ConnectionState& state) { return std::make_unique<Tunnel>(state); }

}  // namespace belljar::egress
