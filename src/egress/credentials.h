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
#include "policy/look.h"

namespace belljar::egress {

inline constexpr std::size_t kShortestCredential = 8;  // shorter ones stand in answers by chance
inline constexpr std::size_t kLongestCredential = 8192;
inline constexpr std::size_t kMostGivenEarly = 4;  // bytes of what may begin a value: at most half of the shortest

struct Credential {
  policy::Credential rule;
  std::string placeholder, value;
};

// A placeholder for a value: its length, its well-known beginning (`ghp_`, `sk-`), letters and digits from `random` (as many bytes
// as the value has).
std::string make_placeholder(std::string_view value, std::string_view random);

// Takes values out of a stream of bytes, across the borders of its pieces. One stream, one thread.
class Restorer {
 public:
  Restorer() = default;
  explicit Restorer(const std::vector<const Credential*>& credentials);
  // What may go on now. The beginning of a value at the end waits for more, unless this is the `last` piece.
  std::string feed(std::string_view bytes, bool last);
  // The end of a stream that has fallen silent: kMostGivenEarly bytes at most, so that who waits for an answer is not held up by a
  // letter or two. They stay the beginning of a value: when the rest of it comes it is taken out as before. More than that waits.
  bool holds_little() const noexcept { return given_ < held_.size() && held_.size() <= kMostGivenEarly; }
  std::string give_early();                           // nothing unless holds_little()
  std::string restore(std::string_view whole) const;  // by itself

 private:
  struct Spelling {
    std::string value, instead;  // of one length; any letter of the value may be escaped where it stands
  };
  void add_forms(const std::string& value, std::string instead);
  void add(std::string value, std::string instead);
  std::string change(std::string_view bytes, bool last, std::size_t& taken) const;
  std::vector<Spelling> spellings_;  // longest first
  std::array<bool, 256> first_{};
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
