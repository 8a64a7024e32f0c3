// Credentials that the command never sees: a placeholder inside, the value put into requests to the hosts it is for, and taken out
// of what those hosts answer. Pure.
//
// A placeholder has the length of its value, so that taking the value out of an answer changes no length and no framing. What a
// server makes of a value before it sends it back (compressed, encrypted, in pieces) is beyond that: a host that gets the value is
// trusted with it. Known spellings are found: as it is, in base64 and in hex, each with any of its letters escaped as URLs, JSON
// and HTML do (spelling.h).
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "egress/http.h"
#include "policy/tls_interception.h"

namespace belljar::egress {

inline constexpr std::size_t kShortestCredential = 8;  // shorter ones stand in answers by chance
inline constexpr std::size_t kLongestCredential = 8192;
inline constexpr std::size_t kMostTold = 4;  // letters of a value's beginning, see Restorer; of a short one a quarter

struct Credential {
  policy::Credential rule;
  std::string placeholder, value;
};

// A placeholder for a value: its length, its well-known beginning (`ghp_`, `sk-`), letters and digits from `random` (as many bytes
// as the value has).
std::string make_placeholder(std::string_view value, std::string_view random);

// Takes values out of a stream of bytes, across the borders of its pieces. One stream, one thread.
//
// The end of a stream that may become a value waits for more. Who can have the host say guesses sees what waits, so that this must
// not depend on whether they are right: it would give the value away letter by letter. So what waits is told by three things that
// are no secret: the value's beginning (the well-known one, `ghp_`, which the placeholder has too, or else a quarter of the value
// and at most kMostTold letters), the kind of its letters (spelling.h) and its length. From a beginning on everything waits,
// whatever it is, until a byte that no spelling has, the end, or more bytes than the longest spelling. Only the whole value is
// compared, and who guesses all of it has it anyhow.
class Restorer {
 public:
  Restorer() = default;
  explicit Restorer(const std::vector<const Credential*>& credentials);
  // What may go on now. What may become a value waits for more, unless this is the `last` piece.
  std::string feed(std::string_view bytes, bool last);
  // The end of a stream that has fallen silent: no more than a value's beginning, or a part of that, need not hold up who waits for
  // an answer. It is remembered: when the rest comes it is taken out as before. More than that waits.
  bool holds_little() const;
  std::string give_early();                           // nothing unless holds_little()
  std::string restore(std::string_view whole) const;  // by itself

 private:
  struct Spelling {
    std::string value, instead;  // of one length; any letter of the value may be escaped where it stands
    std::string beginning;       // of the value
  };
  void add_forms(const std::string& value, std::string instead, std::string_view beginning);
  void add(std::string value, std::string instead, std::string beginning);
  std::string change(std::string_view bytes, bool last, std::size_t& taken) const;
  bool begins_value(std::string_view text) const;
  bool goes_beyond_beginning(std::string_view text) const;
  std::vector<Spelling> spellings_;  // longest first
  std::array<bool, 256> first_{}, within_{};
  std::size_t longest_ = 0;  // no spelling has more bytes
  std::string held_;
  std::size_t given_ = 0;  // so much of held_ is out already
};

class Credentials {
 public:
  Credentials() = default;
  explicit Credentials(std::vector<Credential> list) : list_(std::move(list)) {}
  bool empty() const noexcept { return list_.empty(); }

  // The credential whose placeholder stands in `head` though its value may not go there: another host, or not through TLS.
  const Credential* find_misplaced(const HttpHead& head, const ProxyRequest& request) const;
  // Puts values in where their placeholders stand, in a request through TLS; also takes out what would hide them in the answer of
  // who knows them (compression, ranges), in any request. `head` and `request` are changed. The names that were put in.
  std::vector<std::string> put_in(HttpHead& head, ProxyRequest& request) const;
  // Those whose values that host has, whichever its port and however it is asked: they may be in all that it says.
  std::vector<const Credential*> known_to(const policy::Host& host) const;

 private:
  std::vector<Credential> list_;
};

}  // namespace belljar::egress
