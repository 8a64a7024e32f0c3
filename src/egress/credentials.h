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
};

class Credentials {
 public:
  Credentials() = default;
  explicit Credentials(std::vector<Credential> list) : list_(std::move(list)) {}
  bool empty() const noexcept { return list_.empty(); }

  // The credential whose placeholder stands in `head` though its value may not go there: another host, or not through TLS.
  const Credential* find_misplaced(const HttpHead& head, const ProxyRequest& request) const;
  // Puts values in where their placeholders stand; also takes out what would hide them in the answer (compression, ranges). `head`
  // and `request` are changed. The names that were put in.
  std::vector<std::string> put_in(HttpHead& head, ProxyRequest& request) const;
  // Those for `request`'s host, for its answer; nullptr where there are none.
  std::vector<const Credential*> of(const ProxyRequest& request) const;

 private:
  std::vector<Credential> list_;
};

}  // namespace belljar::egress
