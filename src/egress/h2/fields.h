// HTTP/2's messages as HTTP/1.1 text and back (RFC 9113 section 8). Pure; knows no frames.
//
// Two readings of one message are how a request is smuggled past a rule: so nothing is translated that HTTP/1.1 could read in
// another way, and what comes out is read again, strictly, by http.h before it is judged.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "egress/http.h"
#include "egress/streams.h"

namespace belljar::egress::h2 {

using Fields = std::vector<HttpField>;

inline constexpr int kFirstFinal = 200;  // a status below it is followed by another one

struct Head {
  std::string text;
  MessageText::Body body = MessageText::Body::kNone;
};

// A request's field section, pseudo-fields first. `whole`: no body follows. nullopt: `fault` says why.
// Refused: a second or unknown pseudo-field or one after another field, CONNECT, a scheme other than https, a path that begins with
// no slash, `host` beside another :authority, fields of the connection, upper case, a control character, a length that is no
// number. Cookies are put together (section 8.2.3).
std::optional<Head> request_head(const Fields& fields, bool whole, HttpFault& fault);

// An answer's. `bodyless`: it answers HEAD. Faults as above.
std::optional<Head> answer_head(const Fields& fields, bool whole, bool bodyless, HttpFault& fault);

// Whether a field may come after a body: not what is about the message's length, its way or who sent it (RFC 9110 section 6.5.1).
bool may_trail(const HttpField& field);
// Such fields as lines. nullopt: one may not.
std::optional<std::string> trailer_lines(const Fields& fields);

// The other way. Fields of the connection stay behind, and of trailers what may not be one; names are in lower case.
Fields request_fields(const HttpHead& head);
Fields answer_fields(const HttpHead& head);
Fields trailer_fields(const Fields& trailers);

// The status of an answer's field section; 0: there is none.
int status_of(const Fields& fields);

}  // namespace belljar::egress::h2
