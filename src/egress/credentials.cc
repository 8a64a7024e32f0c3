// Placeholders for credentials, the real values in requests, and the way back in answers.
//
// The way back (Restorer) is a streaming replacement under three conditions. A value may be cut at any byte
// between two reads, so the end of what was read waits while it may become a value. Each replacement has the
// length of what it replaces, so that Content-Length and frames stay true. And what waits must not depend on
// how much of a value a server's guess got right: anybody who can make the server say guesses would see the
// delay. So only the value's beginning, which is no secret, and the kind of its letters decide what waits
// (credentials.h), and the comparison of the rest looks at all of it.
//
// Requests lose the fields that ask for compressed or partial answers, for those could bring a value back in
// a form that is not recognised.
#include "egress/credentials.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/encoding.h"
#include "base/format.h"
#include "egress/http.h"
#include "egress/spelling.h"
#include "policy/domains.h"
#include "policy/host.h"

namespace belljar::egress {
namespace {

// Beginnings that programs look for before they use a key; public knowledge, so they tell nothing.
constexpr std::string_view kBeginnings[] = {
    "github_pat_", "ghp_",     "gho_",     "ghu_",  "ghs_",  "ghr_", "glpat-", "sk-ant-api03-", "sk-ant-", "sk-proj-", "sk-",
    "sk_live_",    "sk_test_", "rk_live_", "xoxb-", "xoxp-", "npm_", "pypi-",  "hf_",           "AKIA",    "ASIA",     "AIza"};
constexpr std::string_view kMark = "belljar";
constexpr std::size_t kLeastRandom = 6;

std::string_view known_beginning(std::string_view value) {
  const auto* const found = std::ranges::find_if(kBeginnings, [value](std::string_view beginning) {
    return value.starts_with(beginning) && value.size() >= beginning.size() + kLeastRandom;
  });
  return found == std::end(kBeginnings) ? std::string_view() : *found;
}

// What is not kept from who can have the host say guesses: see Restorer.
std::string_view told_beginning(std::string_view value) {
  const std::string_view known = known_beginning(value);
  if (!known.empty()) return known;
  std::size_t size = std::min(value.size() / 4, kMostTold);
  while (size < value.size() && (static_cast<unsigned char>(value[size]) & 0xC0U) == 0x80) ++size;  // whole letters of UTF-8
  return value.substr(0, size);
}

// What of the base64 of a longer text is certain when `text` begins `before` bytes (modulo 3) into it.
std::string inside_base64(std::string_view text, std::size_t before) {
  const std::string whole = to_base64(std::string(before, 'x') + std::string(text) + "xx");
  const std::size_t first = (before * 8 + 5) / 6, end = (before + text.size()) * 8 / 6;
  return whole.substr(first, end - first);
}

std::string url_alphabet(std::string text) {
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

bool replace_all(std::string& text, std::string_view from, std::string_view to) {
  bool any = false;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
    any = true;
  }
  return any;
}

// The user and password of a Basic field, if it is one.
std::optional<std::string> basic_of(const HttpField& field) {
  if (!iequals(field.name, "Authorization")) return std::nullopt;
  return basic_credential(field.value);
}

bool stands_in(const Credential& credential, const HttpHead& head) {
  if (head.target.find(credential.placeholder) != std::string::npos) return true;
  return std::ranges::any_of(head.fields, [&](const HttpField& field) {
    const auto basic = basic_of(field);
    return field.value.find(credential.placeholder) != std::string::npos ||
           (basic && basic->find(credential.placeholder) != std::string::npos);
  });
}

bool is_for(const Credential& credential, const policy::Destination& destination) {
  return std::ranges::any_of(credential.rule.hosts,
                             [&](const policy::DomainRule& rule) { return policy::covers_destination(rule, destination); });
}

bool is_known_to(const Credential& credential, const policy::Host& host) {
  return std::ranges::any_of(credential.rule.hosts, [&](const policy::DomainRule& rule) {
    return policy::covers_destination(rule, {host, rule.port.value_or(0)});
  });
}

// Fields of a request for an answer in pieces, or compressed: it could bring a value back that nobody here recognises.
bool hides_answer(std::string_view name) {
  for (const std::string_view asks : {"Accept-Encoding", "Range", "If-Range", "Request-Range", "Sec-WebSocket-Extensions",
                                      "grpc-accept-encoding", "connect-accept-encoding"}) {
    if (iequals(name, asks)) return true;
  }
  return false;
}

bool put_into_fields(const Credential& credential, HttpHead& head) {
  bool any = false;
  for (HttpField& field : head.fields) {
    if (iequals(field.name, "Host")) continue;
    if (auto basic = basic_of(field);
        basic && credential.rule.basic && replace_all(*basic, credential.placeholder, credential.value))
      field.value = "Basic " + to_base64(*basic), any = true;
    if (credential.rule.header) any = replace_all(field.value, credential.placeholder, credential.value) || any;
  }
  return any;
}

bool put_into_query(const Credential& credential, std::string& path) {
  const std::size_t mark = path.find('?');
  if (!credential.rule.query || mark == std::string::npos) return false;
  std::string query = path.substr(mark);
  if (!replace_all(query, credential.placeholder, percent_encoded(credential.value))) return false;
  path = path.substr(0, mark) + query;
  return true;
}

}  // namespace

std::string make_placeholder(std::string_view value, std::string_view random) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::string text(known_beginning(value));
  if (value.size() >= text.size() + kMark.size() + kLeastRandom) text += kMark;
  for (std::size_t i = 0; text.size() < value.size(); ++i)
    text += kLetters[static_cast<unsigned char>(random[i % random.size()]) % kLetters.size()];
  return text;
}

Restorer::Restorer(const std::vector<const Credential*>& credentials) {
  constexpr std::size_t kLongestForm = 6;  // letters for one of the value: as it stood in a query, in hex
  for (const Credential* credential : credentials) {
    const std::string &value = credential->value, &instead = credential->placeholder;
    const std::string_view beginning = told_beginning(value);
    add_forms(value, instead, beginning);
    for (const Digits digits : {Digits::kCapital, Digits::kSmall})  // as it stood in a query
      add_forms(percent_encoded(value, {}, digits), instead, percent_encoded(beginning, {}, digits));
    const auto within = bytes_of_spellings(value);
    std::ranges::transform(within_, within, within_.begin(), std::logical_or());
    longest_ = std::max(longest_, value.size() * kLongestForm * kLongestLetter);
  }
  std::ranges::stable_sort(spellings_, std::ranges::greater{}, [](const Spelling& spelling) { return spelling.value.size(); });
}

// As it is, in hex, and in base64 wherever it begins.
void Restorer::add_forms(const std::string& value, std::string instead, std::string_view beginning) {
  instead.resize(value.size(), '*');
  add(value, instead, std::string(beginning));
  for (const Digits digits : {Digits::kCapital, Digits::kSmall})
    add(to_hex(value, digits), to_hex(instead, digits), to_hex(beginning, digits));
  for (std::size_t before = 0; before < 3; ++before) {
    const std::string one = inside_base64(value, before), two = inside_base64(instead, before),
                      three = inside_base64(beginning, before);
    add(one, two, three);
    add(url_alphabet(one), two, url_alphabet(three));
  }
}

void Restorer::add(std::string value, std::string instead, std::string beginning) {
  if (std::ranges::find(spellings_, value, &Spelling::value) != spellings_.end()) return;
  instead.resize(value.size(), '*');
  first_[static_cast<unsigned char>(value[0])] = true;
  spellings_.push_back({std::move(value), std::move(instead), std::move(beginning)});
}

// As far as `text` goes. No letter beyond the beginning is looked at.
bool Restorer::begins_value(std::string_view text) const {
  return std::ranges::any_of(spellings_,
                             [text](const Spelling& spelling) { return fit_spelling(spelling.beginning, text).fit != Fit::kNo; });
}

// `taken`: how much of `bytes` the result stands for; the rest may become a value.
std::string Restorer::change(std::string_view bytes, bool last, std::size_t& taken) const {
  std::size_t waits = last ? bytes.size() : bytes.size() - std::min(bytes.size(), longest_);  // nothing before can
  for (std::size_t i = waits; i < bytes.size(); ++i) {
    if (!within_[static_cast<unsigned char>(bytes[i])]) waits = i + 1;
  }
  std::string result;
  std::size_t at = 0, copied = 0;
  const auto copy = [&] { result.append(bytes, copied, at - copied); };
  while (at < bytes.size()) {
    const std::string_view rest = bytes.substr(at);
    if (!may_begin(rest, first_)) {
      ++at;
      continue;
    }
    const Spelling* whole = nullptr;
    std::size_t size = 0;
    for (const Spelling& spelling : spellings_) {
      if (fit_spelling(spelling.beginning, rest).fit != Fit::kWhole) continue;
      size = match_spelling(spelling.value, rest);
      if (size == 0) continue;
      whole = &spelling;
      break;
    }
    if (whole == nullptr) {
      if (at >= waits && begins_value(rest)) break;
      ++at;
      continue;
    }
    copy();
    result += whole->instead;
    result.append(size - whole->value.size(), '*');
    copied = at += size;
  }
  copy();
  return taken = at, result;
}

// What change() makes of bytes is as long as they are: what is out already is the front of it.
std::string Restorer::feed(std::string_view bytes, bool last) {
  held_ += bytes;
  std::size_t taken = 0;
  std::string result = change(held_, last, taken);
  held_.erase(0, taken);
  const std::size_t out = std::min(given_, taken);
  given_ -= out;
  return result.substr(out);
}

bool Restorer::goes_beyond_beginning(std::string_view text) const {
  return std::ranges::any_of(spellings_, [text](const Spelling& spelling) {
    const SpellingMatch found = fit_spelling(spelling.beginning, text);
    return found.fit == Fit::kWhole && found.size < text.size();
  });
}

bool Restorer::holds_little() const {
  if (given_ == held_.size()) return false;
  for (std::size_t at = 0; at < held_.size(); ++at) {
    if (goes_beyond_beginning(std::string_view(held_).substr(at))) return false;
  }
  return true;
}

std::string Restorer::give_early() {
  if (!holds_little()) return {};
  return held_.substr(std::exchange(given_, held_.size()));
}

std::string Restorer::restore(std::string_view whole) const {
  std::size_t taken = 0;
  return change(whole, true, taken);
}

const Credential* Credentials::find_misplaced(const HttpHead& head, const ProxyRequest& request) const {
  const auto found = std::ranges::find_if(list_, [&](const Credential& credential) {
    return (!request.secure || !is_for(credential, request.destination)) && stands_in(credential, head);
  });
  return found == list_.end() ? nullptr : &*found;
}

std::vector<const Credential*> Credentials::known_to(const policy::Host& host) const {
  std::vector<const Credential*> found;
  for (const Credential& credential : list_) {
    if (is_known_to(credential, host)) found.push_back(&credential);
  }
  return found;
}

std::vector<std::string> Credentials::put_in(HttpHead& head, ProxyRequest& request) const {
  std::vector<std::string> names;
  const auto known = known_to(request.destination.host);
  if (known.empty()) return names;
  for (const Credential* credential : known) {
    if (!request.secure || !is_for(*credential, request.destination)) continue;
    const bool fields = put_into_fields(*credential, head), query = put_into_query(*credential, request.path);
    if (fields || query) names.push_back(credential->rule.name);
  }
  std::erase_if(head.fields, [](const HttpField& field) { return hides_answer(field.name); });
  head.fields.push_back({"Accept-Encoding", "identity"});
  return names;
}

}  // namespace belljar::egress
