// HTTP/1.1 as it is read, refused and written again. The parser is Boost.Beast's; this file is what a proxy
// must add to it.
//
// Request smuggling needs two readers that see different messages in the same bytes. So a request is refused
// if another reader could read it differently, before anything else is asked of it: bare CR or LF, folded
// fields, two lengths or hosts, control characters in chunk extensions. Answers of servers are read
// leniently, as clients read them, but then written again in one spelling (straightened), so that the client
// reads what was judged.
#include "egress/http.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/encoding.h"
#include "base/format.h"
#include "policy/host.h"

namespace belljar::egress {
namespace {

namespace http = boost::beast::http;
using boost::beast::string_view;
using ErrorCode = boost::beast::error_code;

using policy::kHttpPort;
using policy::kHttpsPort;

std::string text_of(string_view text) { return {text.data(), text.size()}; }

// What Beast would forgive in a head: it unfolds folded fields.
std::optional<std::string> odd_bytes(std::string_view head) {
  for (std::size_t i = 0; i < head.size(); ++i) {
    const char c = head[i];
    if (c == '\0') return "a NUL byte in the head";
    if (c == '\n' && (i == 0 || head[i - 1] != '\r')) return "a line that ends in a bare LF";
    if (c == '\r' && (i + 1 >= head.size() || head[i + 1] != '\n')) return "a bare CR";
    const bool folded = c == '\n' && i + 1 < head.size() && (head[i + 1] == ' ' || head[i + 1] == '\t');
    if (folded) return "a folded field";
  }
  return std::nullopt;
}

bool has_bare_lf(std::string_view text) {
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    if (at == 0 || text[at - 1] != '\r') return true;
  }
  return false;
}

// Where a head ends for who takes a bare LF for the end of a line, as clients do (RFC 9112 section 2.2).
std::size_t lenient_end(std::string_view data, std::size_t from) {
  for (std::size_t at = data.find('\n', from); at != std::string_view::npos; at = data.find('\n', at + 1)) {
    if (data.substr(at + 1, 1) == "\n") return at + 2;
    if (data.substr(at + 1, 2) == "\r\n") return at + 3;
  }
  return std::string_view::npos;
}

// The head of an answer in the one spelling that Beast reads. Servers that every client understands end lines in a bare LF, leave
// out the space behind a status without words, or have one before a colon (RFC 9112 section 5.1: a proxy takes it away). What goes
// on to the client is written anew, so that nobody reads it in another way than we did.
std::string straightened(std::string_view head) {
  constexpr std::size_t kBareStatus = std::string_view("HTTP/1.1 200").size();
  std::string text;
  for (bool first = true; !head.empty(); first = false) {
    const std::size_t end = head.find('\n');
    std::string_view line = head.substr(0, end);
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t colon = line.starts_with(' ') || line.starts_with('\t') ? std::string_view::npos : line.find(':');
    const std::size_t name_end = colon == 0 || first ? std::string_view::npos : line.find_last_not_of(" \t", colon - 1);
    const bool spaced = colon != std::string_view::npos && name_end != std::string_view::npos;
    if (spaced) text.append(line.substr(0, name_end + 1)).append(line.substr(colon));
    else text += line;
    text += first && line.size() == kBareStatus && line.starts_with("HTTP/1.") ? " \r\n" : "\r\n";
  }
  return text;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < ' ' && byte != '\t') || byte == 0x7F;
}

template <bool isRequest>
class Parser final : public http::basic_parser<isRequest> {
 public:
  explicit Parser(HttpHead& head) : head_(head) {
    this->header_limit(static_cast<std::uint32_t>(kMaxHead));
    this->body_limit(boost::none);
  }
  std::vector<HttpField> trailers;
  bool keep_body = false;
  std::string body;

 private:
  void on_request_impl(http::verb, string_view method, string_view target, int version, ErrorCode&) override {
    head_.method = text_of(method);
    head_.target = text_of(target);
    head_.version = version;
  }
  void on_response_impl(int code, string_view reason, int version, ErrorCode&) override {
    head_.status = code;
    head_.phrase = text_of(reason);
    head_.version = version;
  }
  void on_field_impl(http::field, string_view name, string_view value, ErrorCode&) override {
    if (this->is_header_done()) trailers.push_back({text_of(name), text_of(value)});
    else head_.fields.push_back({text_of(name), text_of(value)});
  }
  void on_header_impl(ErrorCode&) override {}
  void on_body_init_impl(boost::optional<std::uint64_t> const&, ErrorCode&) override {}
  std::size_t on_body_impl(string_view part, ErrorCode&) override {
    if (keep_body) body.append(part.data(), part.size());
    return part.size();
  }
  // Beast takes any byte within quotes there; who ends a line at a bare LF would see the chunk begin earlier.
  void on_chunk_header_impl(std::uint64_t, string_view extensions, ErrorCode& error) override {
    if (std::ranges::any_of(extensions, is_control)) error = http::error::bad_chunk_extension;
  }
  std::size_t on_chunk_body_impl(std::uint64_t, string_view part, ErrorCode& error) override { return on_body_impl(part, error); }
  void on_finish_impl(ErrorCode&) override {}

  HttpHead& head_;
};

// One face for the two instantiations.
class AnyParser {
 public:
  virtual ~AnyParser() = default;
  virtual std::size_t put(std::string_view data, ErrorCode& error) = 0;
  virtual void put_end(ErrorCode& error) = 0;
  virtual bool header_done() const = 0;
  virtual bool done() const = 0;
  virtual bool needs_end() const = 0;
  virtual bool keeps_alive() const = 0;
  virtual const std::vector<HttpField>& trailers() const = 0;
  virtual void keep_body() = 0;
  virtual std::string take_body() = 0;
};

template <bool isRequest>
class Wrapped final : public AnyParser {
 public:
  Wrapped(HttpHead& head, bool no_body) : parser_(head) { parser_.skip(no_body); }
  std::size_t put(std::string_view data, ErrorCode& error) override {
    if (parser_.is_header_done()) parser_.eager(true);
    return parser_.put(boost::asio::const_buffer(data.data(), data.size()), error);
  }
  void put_end(ErrorCode& error) override { parser_.put_eof(error); }
  bool header_done() const override { return parser_.is_header_done(); }
  bool done() const override { return parser_.is_done(); }
  bool needs_end() const override { return parser_.need_eof(); }
  bool keeps_alive() const override { return parser_.keep_alive(); }
  const std::vector<HttpField>& trailers() const override { return parser_.trailers; }
  void keep_body() override { parser_.keep_body = true; }
  std::string take_body() override { return std::exchange(parser_.body, {}); }

 private:
  Parser<isRequest> parser_;
};

std::ptrdiff_t count_fields(const HttpHead& head, std::string_view name) {
  return std::ranges::count_if(head.fields, [name](const HttpField& field) { return iequals(field.name, name); });
}

std::string_view trimmed(std::string_view text) { return trim(text, " \t"); }

// Whether a member of a comma list is one that `fits`.
template <class Fits>
bool any_listed(std::string_view list, Fits fits) {
  for (;;) {
    const std::size_t comma = list.find(',');
    if (fits(trimmed(list.substr(0, comma)))) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

bool lists(std::string_view list, std::string_view token) {
  return any_listed(list, [token](std::string_view member) { return iequals(member, token); });
}

// In any of its Connection fields: they are one list (RFC 9110 section 5.3).
bool asks_connection(const HttpHead& head, std::string_view option) {
  return std::ranges::any_of(
      head.fields, [option](const HttpField& field) { return iequals(field.name, "Connection") && lists(field.value, option); });
}

bool is_coding(std::string_view member) { return !member.empty() && !iequals(member, "identity"); }

bool is_chunked(const HttpHead& head) { return iequals(trimmed(*find_field(head, "Transfer-Encoding")), "chunked"); }

std::optional<HttpFault> odd_framing(const HttpHead& head) {
  const auto codings = count_fields(head, "Transfer-Encoding"), lengths = count_fields(head, "Content-Length");
  if (codings > 1 || lengths > 1) return HttpFault{400, "the length of the message is given twice"};
  if (lengths == 1 && find_field(head, "Content-Length")->find_first_not_of("0123456789") != std::string::npos)
    return HttpFault{400, "Content-Length is no number"};  // Beast takes "3, 3"
  if (codings == 0) return std::nullopt;
  if (lengths > 0) return HttpFault{400, "Content-Length beside Transfer-Encoding"};
  if (!is_chunked(head)) return HttpFault{501, "a transfer coding other than chunked"};
  if (head.version < 11) return HttpFault{400, "HTTP/1.0 knows no Transfer-Encoding"};
  return std::nullopt;
}

// Fields about this connection, not about the message (RFC 9110 section 7.6.1), and those meant for us.
bool is_ours(const HttpHead& head, std::string_view name) {
  for (const std::string_view own : {"Connection", "Proxy-Connection", "Keep-Alive", "TE", "Trailer", "Upgrade",
                                     "Proxy-Authorization", "Proxy-Authenticate", "Proxy-Authentication-Info"}) {
    if (iequals(name, own)) return true;
  }
  return asks_connection(head, name) && !iequals(name, "Transfer-Encoding") && !iequals(name, "Content-Length");
}

std::string field_line(const HttpField& field) { return format("{}: {}\r\n", field.name, field.value); }

std::optional<std::string_view> scheme_of(std::string_view target) {
  const std::size_t colon = target.find("://");
  return colon == std::string_view::npos ? std::nullopt : std::optional(target.substr(0, colon));
}

// Servers that hand fields on as variables tell `-` from `_` as little as letters from capitals (RFC 3875 section 4.1.18).
bool same_variable(std::string_view field, std::string_view name) {
  const auto folded = [](char c) { return c == '_' ? '-' : to_lower(c); };
  return std::ranges::equal(field, name, {}, folded, folded);
}

void read_overrides(const HttpHead& head, ProxyRequest& request) {
  // Of a family that frameworks and fronts know in many spellings: `X-Original-URL`, `X-Rewrite-URI`, `X-Forwarded-Path`,
  // `X-HTTP-Method-Override`, `X-Method` ...
  constexpr std::string_view kMethods[] = {"-Method", "-Verb", "-Method-Override", "-Override-Method"};
  constexpr std::string_view kPaths[] = {"-URL", "-URI", "-Path"};
  for (const HttpField& field : head.fields) {
    const auto ends = [&](std::string_view end) {
      return field.name.size() > end.size() && same_variable(std::string_view(field.name).substr(0, 2), "X-") &&
             same_variable(std::string_view(field.name).substr(field.name.size() - end.size()), end);
    };
    std::string value(trimmed(field.value));
    if (std::ranges::any_of(kPaths, ends)) request.other_paths.push_back(value);
    if (!std::ranges::any_of(kMethods, ends)) continue;
    std::ranges::transform(value, value.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    if (!value.empty()) request.other_methods.push_back(std::move(value));
  }
}

bool read_target(const HttpHead& head, ProxyRequest& request, HttpFault& fault, const policy::Destination* direct) {
  const std::string_view target = head.target;
  const auto refuse = [&](int status, std::string reason) {
    fault = {status, std::move(reason)};
    return false;
  };
  if (target.find('#') != std::string_view::npos) return refuse(400, "a fragment in the target");
  if (direct != nullptr) {
    if (!target.starts_with('/')) return refuse(400, "this is no proxy to the client: the target must be a path");
    request.path = target;
    request.destination = *direct;
    return true;
  }
  std::string_view authority = target;
  std::uint16_t fallback = 0;
  if (!request.connect) {
    const auto scheme = scheme_of(target);
    if (!scheme) return refuse(400, "this is a proxy: the target must be a whole URL (http://HOST/PATH)");
    if (iequals(*scheme, "https")) return refuse(400, "https goes through CONNECT");
    if (!iequals(*scheme, "http")) return refuse(501, format("the scheme {} is not served", quoted(*scheme)));
    authority = target.substr(scheme->size() + 3);
    const std::size_t end = authority.find_first_of("/?");
    const std::string_view path = end == std::string_view::npos ? std::string_view() : authority.substr(end);
    authority = authority.substr(0, end);
    request.path = path.starts_with('/') ? std::string(path) : "/" + std::string(path);
    fallback = kHttpPort;
  }
  auto destination = policy::parse_destination(authority, fallback);
  if (!destination) return refuse(400, destination.error().what() + ": " + destination.error().reason());
  request.destination = *std::move(destination);
  return true;
}

bool check_host_field(const HttpHead& head, const ProxyRequest& request, HttpFault& fault, bool fixed) {
  const auto hosts = count_fields(head, "Host");
  if (hosts == 0 && head.version == 10) return true;
  if (hosts == 0 && request.connect) return true;  // Java's and old Python's CONNECT have none; the target says it all
  if (hosts != 1) {
    fault = {400, hosts == 0 ? "there is no Host field" : "there are two Host fields"};
    return false;
  }
  // Where the place is known a Host without a port is that place: cargo's git leaves the port out, whichever it is.
  const auto named =
      policy::parse_destination(*find_field(head, "Host"), request.connect || fixed ? request.destination.port : kHttpPort);
  // With CONNECT many clients leave the port out of Host, or write 443 for it.
  const bool same =
      named && named->host == request.destination.host && (request.connect || named->port == request.destination.port);
  if (!same) fault = {421, "Host names another place than the target"};
  return same;
}

}  // namespace

const std::string* find_field(const HttpHead& head, std::string_view name) {
  const auto found = std::ranges::find_if(head.fields, [name](const HttpField& field) { return iequals(field.name, name); });
  return found == head.fields.end() ? nullptr : &found->value;
}

bool is_transfer_coded(const HttpHead& head) {
  const auto codings = count_fields(head, "Transfer-Encoding");
  return codings > 1 || (codings == 1 && !is_chunked(head));
}

// Every field and every member of its list: a client undoes them all. gRPC and Connect compress each message of a body.
bool is_encoded(const HttpHead& head) {
  const bool content = std::ranges::any_of(head.fields, [](const HttpField& field) {
    const bool names_coding = iequals(field.name, "Content-Encoding") || iequals(field.name, "grpc-encoding") ||
                              iequals(field.name, "connect-content-encoding");
    return names_coding && any_listed(field.value, is_coding);
  });
  return content || is_transfer_coded(head);
}

struct HttpReader::State {
  HttpHead head;
  std::unique_ptr<AnyParser> parser;
  std::optional<HttpFault> fault;
  bool request = false, may_trail = false;
  std::size_t searched = 0;  // no end of an answer's head begins before: one that drips is not read anew for each byte

  void fail(int status, std::string reason) {
    if (!fault) fault = HttpFault{status, std::move(reason)};
  }
  std::size_t feed_head(std::string_view data);
  std::size_t feed_answer_head(std::string_view data);
  std::size_t put(std::string_view data);
};

std::size_t HttpReader::State::put(std::string_view data) {
  ErrorCode error;
  const std::size_t taken = parser->put(data, error);
  if (error && error != http::error::need_more) fail(400, "malformed HTTP: " + error.message());
  if (request && !may_trail && !parser->trailers().empty()) fail(400, "trailers after a chunked body");
  // Nothing of a body is left lying but a line around a chunk, which waits for its CRLF.
  if (request && taken == 0 && has_bare_lf(data)) fail(400, "a line that ends in a bare LF");
  return fault ? 0 : taken;
}

std::size_t HttpReader::State::feed_answer_head(std::string_view data) {
  const std::size_t end = lenient_end(data, searched);
  searched = data.size() - std::min<std::size_t>(data.size(), 2);
  if (std::min(end, data.size()) > kMaxHead) return fail(431, "the head is longer than 64 KiB"), 0;
  if (end == std::string_view::npos) return 0;
  put(straightened(data.substr(0, end)));
  if (fault || !parser->header_done()) return fail(400, "malformed HTTP"), 0;
  return end;
}

std::size_t HttpReader::State::feed_head(std::string_view data) {
  if (!request) return feed_answer_head(data);
  const std::size_t end = data.find("\r\n\r\n");
  const std::string_view seen = data.substr(0, end == std::string_view::npos ? end : end + 4);
  if (seen.size() > kMaxHead) return fail(431, "the head is longer than 64 KiB"), 0;
  if (end == std::string_view::npos) {
    // A client that never sends the blank line as it should is told at once.
    if (data.find("\n\n") != std::string_view::npos || data.find("\n\r\n\n") != std::string_view::npos)
      fail(400, "a line that ends in a bare LF");
    return 0;
  }
  if (auto odd = odd_bytes(seen)) return fail(400, *std::move(odd)), 0;
  const std::size_t taken = put(seen);
  if (fault || !parser->header_done()) return fail(400, "malformed HTTP"), 0;
  if (auto odd = odd_framing(head)) return fail(odd->status, odd->reason), 0;
  return taken;
}

HttpReader::HttpReader(Kind kind, bool no_body) : state_(std::make_unique<State>()) {
  state_->request = kind == Kind::kRequest;
  if (state_->request) state_->parser = std::make_unique<Wrapped<true>>(state_->head, false);
  else state_->parser = std::make_unique<Wrapped<false>>(state_->head, no_body);
}
HttpReader::HttpReader(HttpReader&&) noexcept = default;
HttpReader& HttpReader::operator=(HttpReader&&) noexcept = default;
HttpReader::~HttpReader() = default;

std::size_t HttpReader::feed(std::string_view data) {
  if (state_->fault || done() || data.empty()) return 0;
  if (!head_done()) return state_->feed_head(data);
  std::size_t taken = 0;
  while (taken < data.size() && !done()) {
    const std::size_t more = state_->put(data.substr(taken));
    if (more == 0) break;
    taken += more;
  }
  return state_->fault ? 0 : taken;
}

bool HttpReader::head_done() const noexcept { return state_->parser->header_done(); }
bool HttpReader::done() const noexcept { return head_done() && state_->parser->done(); }
void HttpReader::allow_trailers() { state_->may_trail = true; }
const std::vector<HttpField>& HttpReader::trailers() const noexcept { return state_->parser->trailers(); }
void HttpReader::keep_body() { state_->parser->keep_body(); }
std::string HttpReader::take_body() { return state_->parser->take_body(); }
bool HttpReader::needs_end() const noexcept { return state_->parser->needs_end(); }
bool HttpReader::keeps_alive() const noexcept { return state_->parser->keeps_alive(); }
const std::optional<HttpFault>& HttpReader::fault() const noexcept { return state_->fault; }
const HttpHead& HttpReader::head() const noexcept { return state_->head; }

bool HttpReader::end() noexcept {
  if (state_->fault || !head_done()) return false;
  if (done()) return true;
  ErrorCode error;
  state_->parser->put_end(error);
  return !error && done();
}

bool begins_other(std::string_view data) noexcept {
  const std::size_t end = data.find('\n');
  return data.starts_with("SSH-") ||
         (end != std::string_view::npos && data.substr(0, end).find(" HTTP/") == std::string_view::npos);
}

std::optional<ProxyRequest> read_request(const HttpHead& head, bool keeps_alive, HttpFault& fault,
                                         const policy::Destination* direct, bool secure) {
  ProxyRequest request;
  request.secure = secure;
  request.method = head.method;
  request.connect = head.method == "CONNECT";
  request.keep_alive = keeps_alive;
  if (head.version != 10 && head.version != 11) return fault = {505, "HTTP/1.0 and HTTP/1.1 are served"}, std::nullopt;
  if (head.method == "TRACE") return fault = {405, "TRACE is not passed on"}, std::nullopt;
  if (!read_target(head, request, fault, direct) || !check_host_field(head, request, fault, direct != nullptr)) return std::nullopt;
  if (request.connect && (find_field(head, "Content-Length") != nullptr || find_field(head, "Transfer-Encoding") != nullptr))
    return fault = {400, "CONNECT with a body"}, std::nullopt;
  read_overrides(head, request);
  if (const std::string* field = find_field(head, "Proxy-Authorization")) request.authorization = *field;
  // curl and others ask their proxy with a field of their own name.
  if (const std::string* field = find_field(head, "Proxy-Connection"); field != nullptr && head.version == 10)
    request.keep_alive = lists(*field, "keep-alive");
  const std::string* upgrade = find_field(head, "Upgrade");
  request.upgrade = upgrade != nullptr && asks_connection(head, "upgrade") && iequals(trimmed(*upgrade), "websocket");
  return request;
}

std::string proxy_authorization(std::string_view credential) {
  return credential.empty() ? std::string() : format("Proxy-Authorization: Basic {}\r\n", to_base64(credential));
}

std::string forwarded_head(const HttpHead& head, const ProxyRequest& request, const std::string* upstream) {
  std::string host = to_string(request.destination);
  const std::uint16_t usual = request.secure ? kHttpsPort : kHttpPort;
  if (request.destination.port == usual) host.resize(host.rfind(':'));
  const std::string place = upstream == nullptr ? "" : "http://" + host;
  std::string text = format("{} {}{} HTTP/1.{}\r\nHost: {}\r\n", head.method, place, request.path, head.version % 10, host);
  if (upstream != nullptr) text += proxy_authorization(*upstream);
  bool takes_trailers = false;
  for (const HttpField& field : head.fields) {
    const bool kept = request.stream && iequals(field.name, "Trailer");
    takes_trailers = takes_trailers || (request.stream && iequals(field.name, "TE") && lists(field.value, "trailers"));
    if (!iequals(field.name, "Host") && (kept || !is_ours(head, field.name))) text += field_line(field);
  }
  if (takes_trailers) text += "TE: trailers\r\n";
  text += request.upgrade  ? "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
          : takes_trailers ? "Connection: close, TE\r\n\r\n"
                           : "Connection: close\r\n\r\n";
  return text;
}

std::string returned_head(const HttpHead& head, bool keep_alive, bool upgrade) {
  std::string text = format("HTTP/1.{} {} {}\r\n", head.version % 10, head.status, head.phrase);
  constexpr int kNoContent = 204;
  bool has_length = head.status < 200 || head.status == kNoContent;  // these have none, RFC 9110 section 8.6
  for (const HttpField& field : head.fields) {
    if (iequals(field.name, "Content-Length")) {  // "3, 3" and two fields were seen to say the same
      if (!std::exchange(has_length, true)) text += field_line({field.name, field.value.substr(0, field.value.find(','))});
    } else if (!is_ours(head, field.name) || iequals(field.name, "Trailer") || (upgrade && iequals(field.name, "Upgrade"))) {
      text += field_line(field);
    }
  }
  if (upgrade) text += "Connection: Upgrade\r\n";
  else if (head.status >= 200) text += keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
  return text + "\r\n";
}

std::string refusal_text(const Refusal& refusal, bool head_only, bool keep_alive) {
  std::string body = format("belljar: {}\n", refusal.reason);
  if (!refusal.next.empty()) body += format("  next: {}\n", refusal.next);
  std::string text = format("HTTP/1.1 {} {}\r\nProxy-Status: belljar; error={}\r\nX-Belljar-Refused: {}\r\n", refusal.status,
                            refusal.reason, refusal.error, refusal.reason);
  if (refusal.status == 407) text += "Proxy-Authenticate: Basic realm=\"belljar\"\r\n";
  if (refusal.status == 429) text += "Retry-After: 30\r\n";
  if (refusal.status == 405) text += "Allow: GET, HEAD, OPTIONS\r\n";
  text += format("Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: {}\r\n\r\n", body.size(),
                 keep_alive ? "keep-alive" : "close");
  return head_only ? text : text + body;
}

std::optional<std::string> basic_credential(std::string_view field) {
  if (field.size() < 6 || !iequals(field.substr(0, 6), "basic ")) return std::nullopt;
  field = trimmed(field.substr(6));
  std::string text;
  unsigned bits = 0, held = 0;
  for (const char c : field) {
    if (c == '=') break;
    const int digit = base64_digit(c);
    if (digit < 0) return std::nullopt;
    held = held << 6 | static_cast<unsigned>(digit);
    bits += 6;
    if (bits >= 8) text += static_cast<char>(held >> (bits -= 8) & 0xFF);
  }
  return text;
}

}  // namespace belljar::egress
