// HTTP/2 fields to the text of an HTTP/1.1 head, and back.
//
// The text is read again by the reader of HTTP/1.1, so nothing may come through that would mean something
// else there: names and values are checked for every byte that ends a line or a field (RFC 9113 section
// 8.2.1), fields that belong to a connection are refused, and the framing of the message is ours. A
// Content-Length is passed on unless trailers may follow, which need a chunked body; nghttp2 checks it
// against the frames in any case.
#include "egress/h2/fields.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/format.h"
#include "egress/http.h"
#include "egress/streams.h"

namespace belljar::egress::h2 {
namespace {

constexpr int kNoContent = 204, kNotModified = 304;

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_alnum(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool is_name(std::string_view text) { return is_token(text) && std::ranges::none_of(text, is_upper); }

// A tab and bytes beyond ASCII are part of a value, RFC 9110 section 5.5.
bool is_value(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= ' ' && byte != 0x7F);
  });
}

bool is_path(std::string_view text) {
  return text.starts_with('/') && std::ranges::all_of(text, [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte > ' ' && byte != 0x7F;
         });
}

// RFC 9113 section 8.2.2.
bool is_of_connection(std::string_view name) {
  for (const std::string_view own : {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"}) {
    if (iequals(name, own)) return true;
  }
  return false;
}

bool lists_trailers(std::string_view te) { return iequals(te, "trailers"); }

// gRPC's messages end with trailers and need no length; `trailer` announces some.
bool may_have_trailers(const Fields& fields) {
  return std::ranges::any_of(fields, [](const HttpField& field) {
    return field.name == "trailer" || (field.name == "content-type" && field.value.starts_with("application/grpc"));
  });
}

// What is common to requests and answers: `pseudo` are taken out, the rest is checked.
struct Section {
  Fields pseudo, fields;
  std::optional<std::string> length;

  const std::string* find_pseudo(std::string_view name) const {
    const auto found = std::ranges::find(pseudo, name, &HttpField::name);
    return found == pseudo.end() ? nullptr : &found->value;
  }
};

std::optional<HttpFault> check_field(const HttpField& field) {
  if (!is_name(field.name)) return HttpFault{400, "a field whose name is none"};
  if (!is_value(field.value)) return HttpFault{400, "a control character in a field"};
  if (is_of_connection(field.name)) return HttpFault{400, "a field of the connection, which HTTP/2 does not have"};
  if (field.name == "te" && !lists_trailers(field.value)) return HttpFault{400, "te is something else than trailers"};
  return std::nullopt;
}

std::optional<HttpFault> add_pseudo(Section& section, const HttpField& field) {
  if (!section.fields.empty()) return HttpFault{400, "a pseudo-field after another field"};
  if (section.find_pseudo(field.name) != nullptr) return HttpFault{400, "a pseudo-field is given twice"};
  section.pseudo.push_back(field);
  return std::nullopt;
}

std::optional<HttpFault> add_field(Section& section, const HttpField& field) {
  if (auto fault = check_field(field)) return fault;
  if (field.name == "content-length") {
    if (section.length || !is_number(field.value)) return HttpFault{400, "the length of the message is no number, or given twice"};
    section.length = field.value;
  }
  section.fields.push_back(field);
  return std::nullopt;
}

std::optional<Section> read_section(const Fields& fields, HttpFault& fault) {
  Section section;
  for (const HttpField& field : fields) {
    const bool pseudo = field.name.starts_with(':');
    if (auto found = pseudo ? add_pseudo(section, field) : add_field(section, field))
      return fault = *std::move(found), std::nullopt;
  }
  return section;
}

std::string line_of(std::string_view name, std::string_view value) { return format("{}: {}\r\n", name, value); }

// The framing that HTTP/1.1 needs, and its line. A length that is not kept is one that was checked against the frames.
Head frame(const std::string& text, const Section& section, bool whole) {
  if (whole) return {.text = text + (section.length ? line_of("content-length", *section.length) : "") + "\r\n", .body = {}};
  if (section.length && !may_have_trailers(section.fields))
    return {text + line_of("content-length", *section.length) + "\r\n", MessageText::Body::kLength};
  return {text + "transfer-encoding: chunked\r\n\r\n", MessageText::Body::kChunked};
}

std::optional<HttpFault> check_target(const Section& section) {
  for (const HttpField& field : section.pseudo) {
    if (field.name != ":method" && field.name != ":scheme" && field.name != ":authority" && field.name != ":path")
      return HttpFault{400, "an unknown pseudo-field"};
  }
  const auto *method = section.find_pseudo(":method"), *scheme = section.find_pseudo(":scheme"),
             *path = section.find_pseudo(":path");
  if (method == nullptr || !is_token(*method)) return HttpFault{400, "the method is none"};
  if (*method == "CONNECT") return HttpFault{501, "CONNECT in a tunnel that is looked into"};
  if (scheme == nullptr || !iequals(*scheme, "https")) return HttpFault{400, "the scheme is not https"};
  if (path == nullptr || !is_path(*path)) return HttpFault{400, "the target must be a path"};
  return std::nullopt;
}

// :authority, or else the one `host`; nullptr: there is none, or two that differ.
const std::string* authority_of(const Section& section) {
  const std::string* const asked = section.find_pseudo(":authority");
  const std::string* authority = asked;
  for (const HttpField& field : section.fields) {
    if (field.name != "host") continue;
    if (authority != nullptr && !iequals(*authority, field.value)) return nullptr;
    if (asked == nullptr) authority = &field.value;
  }
  return authority != nullptr && is_value(*authority) ? authority : nullptr;
}

Fields lower_fields(const Fields& fields) {
  Fields lower;
  for (const HttpField& field : fields) {
    if (is_of_connection(field.name)) continue;
    lower.push_back({lower_case(field.name), field.value});
  }
  return lower;
}

}  // namespace

std::optional<Head> request_head(const Fields& fields, bool whole, HttpFault& fault) {
  auto section = read_section(fields, fault);
  if (!section) return std::nullopt;
  if (auto odd = check_target(*section)) return fault = *std::move(odd), std::nullopt;
  const std::string* const authority = authority_of(*section);
  if (authority == nullptr) return fault = {400, "there is no :authority, or Host is another one"}, std::nullopt;
  if (whole && section->length && section->length->find_first_not_of('0') != std::string::npos)
    return fault = {400, "there is less of a body than its length"}, std::nullopt;
  std::string text =
      format("{} {} HTTP/1.1\r\nHost: {}\r\n", *section->find_pseudo(":method"), *section->find_pseudo(":path"), *authority);
  std::string cookies;
  for (const HttpField& field : section->fields) {
    if (field.name == "host" || field.name == "content-length") continue;
    if (field.name == "te") text += "Connection: TE\r\n";
    if (field.name == "cookie") cookies += (cookies.empty() ? "" : "; ") + field.value;
    else text += line_of(field.name, field.value);
  }
  if (!cookies.empty()) text += line_of("cookie", cookies);
  return frame(text, *section, whole);
}

std::optional<Head> answer_head(const Fields& fields, bool whole, bool bodyless, HttpFault& fault) {
  auto section = read_section(fields, fault);
  if (!section) return std::nullopt;
  const int status = status_of(section->pseudo);
  if (section->pseudo.size() != 1 || status == 0) return fault = {502, "an answer without a status"}, std::nullopt;
  const bool none = bodyless || status < kFirstFinal || status == kNoContent || status == kNotModified;
  std::string text = format("HTTP/1.1 {} \r\n", status);
  for (const HttpField& field : section->fields) {
    if (field.name != "content-length") text += line_of(field.name, field.value);
  }
  if (whole && !none && !section->length) section->length = "0";
  return frame(text, *section, whole || none);
}

bool may_trail(const HttpField& field) {
  constexpr std::string_view kHeadOnly[] = {
      "authorization", "content-encoding", "content-length", "content-range",       "content-type", "cookie", "expect",
      "host",          "max-forwards",     "range",          "proxy-authorization", "set-cookie",   "te",     "trailer"};
  return !check_field(field) && std::ranges::find(kHeadOnly, field.name) == std::end(kHeadOnly);
}

std::optional<std::string> trailer_lines(const Fields& fields) {
  std::string lines;
  for (const HttpField& field : fields) {
    if (!may_trail(field)) return std::nullopt;
    lines += line_of(field.name, field.value);
  }
  return lines;
}

Fields request_fields(const HttpHead& head) {
  const std::string* const host = find_field(head, "Host");
  Fields fields{
      {":method", head.method}, {":scheme", "https"}, {":authority", host == nullptr ? "" : *host}, {":path", head.target}};
  for (HttpField& field : lower_fields(head.fields)) {
    if (field.name != "host" && (field.name != "te" || lists_trailers(field.value))) fields.push_back(std::move(field));
  }
  return fields;
}

Fields answer_fields(const HttpHead& head) {
  Fields fields{{":status", std::to_string(head.status)}};
  for (HttpField& field : lower_fields(head.fields)) fields.push_back(std::move(field));
  return fields;
}

Fields trailer_fields(const Fields& trailers) {
  Fields fields = lower_fields(trailers);
  std::erase_if(fields, [](const HttpField& field) { return !may_trail(field); });
  return fields;
}

int status_of(const Fields& fields) {
  const auto found = std::ranges::find(fields, ":status", &HttpField::name);
  constexpr std::size_t kDigits = 3;
  if (found == fields.end() || found->value.size() != kDigits || !is_number(found->value)) return 0;
  return std::stoi(found->value);
}

}  // namespace belljar::egress::h2
