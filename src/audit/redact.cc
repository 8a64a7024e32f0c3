// Secrets in text: values that were given, and strings in the form of well-known tokens.
//
// A token counts only where a word begins and only from a length that such tokens have: "sk-" alone is a word
// of its own in many texts. Text that comes in pieces is held back where its end may become a secret.
#include "belljar/redact.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "policy/defaults.h"
#include "policy/paths.h"

namespace belljar {
namespace {

// How a token looks: its beginning, the bytes that go on, and how many of them there are at least.
struct TokenPattern {
  std::string_view name, prefix, letters;
  std::size_t least;
};
constexpr std::string_view kWord = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kUrl = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
constexpr std::string_view kJwt = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
constexpr std::string_view kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
constexpr TokenPattern kTokenPatterns[] = {
    {"github-token", "ghp_", kWord, 30},   {"github-token", "gho_", kWord, 30},   {"github-token", "ghu_", kWord, 30},
    {"github-token", "ghs_", kWord, 30},   {"github-token", "ghr_", kWord, 30},   {"github-token", "github_pat_", kUrl, 30},
    {"gitlab-token", "glpat-", kUrl, 20},  {"api-key", "sk-", kUrl, 20},          {"aws-key-id", "AKIA", kUpper, 16},
    {"aws-key-id", "ASIA", kUpper, 16},    {"google-key", "AIza", kUrl, 35},      {"slack-token", "xoxb-", kUrl, 10},
    {"slack-token", "xoxp-", kUrl, 10},    {"slack-token", "xoxa-", kUrl, 10},    {"slack-token", "xoxs-", kUrl, 10},
    {"stripe-key", "sk_live_", kWord, 16}, {"stripe-key", "rk_live_", kWord, 16}, {"npm-token", "npm_", kWord, 36},
    {"json-web-token", "eyJ", kJwt, 30},
};
constexpr std::string_view kPemBegin = "-----BEGIN ";
constexpr std::string_view kPemKey = "PRIVATE KEY-----";
constexpr std::string_view kPemEnd = "-----END ";

// Kept from commands, but no secrets in themselves: taking "us-east-1" out of every output would help nobody.
constexpr std::string_view kPlain[] = {"AWS_*REGION", "AWS_*PROFILE", "AWS_*OUTPUT", "AWS_PAGER",
                                       "SSH_*",       "DBUS_*",       "DOCKER_HOST", "GPG_AGENT_INFO"};

// Between the quotes of a JSON string.
std::string in_json(std::string_view value) {
  std::string result;
  for (const char c : value) {
    constexpr std::string_view kNamed = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
    const std::size_t named = kNamed.find(c);
    if (named != std::string_view::npos) result.append(1, '\\').append(1, kLetters[named]);
    else if (static_cast<unsigned char>(c) < 0x20) result += format("\\u{:04x}", static_cast<unsigned char>(c));
    else result += c;
  }
  return result;
}

bool is_word(char c) { return c != '\0' && kUrl.find(c) != std::string_view::npos; }

}  // namespace

namespace {

bool is_for_a_path(std::string_view name) {
  constexpr std::string_view kNames[] = {"*FILE", "*PATH", "*DIR", "*SOCK", "*SOCKET", "*CREDENTIALS", "*ASKPASS"};
  return std::ranges::any_of(kNames, [&](std::string_view pattern) { return policy::name_match(pattern, name); });
}

}  // namespace

Redactor::Redactor() {
  for (const TokenPattern& pattern : kTokenPatterns) first_[static_cast<unsigned char>(pattern.prefix[0])] = true;
  first_[static_cast<unsigned char>(kPemBegin[0])] = true;
}

Redactor Redactor::from_environment(const std::map<std::string, std::string>& environment) {
  Redactor redactor;
  return redactor.add_environment(environment);
}

Redactor& Redactor::add_environment(const std::map<std::string, std::string>& environment) {
  const auto patterns = policy::secret_variables();
  for (const auto& [name, value] : environment) {
    const bool secret = std::ranges::any_of(patterns, [&](std::string_view p) { return policy::name_match(p, name); });
    const bool plain = std::ranges::any_of(kPlain, [&](std::string_view p) { return policy::name_match(p, name); });
    // A path to a file with secrets (SSH_AUTH_SOCK, GOOGLE_APPLICATION_CREDENTIALS) is none itself.
    // A key may begin with a slash as well.
    const bool path = value.starts_with('/') && (is_for_a_path(name) || ::access(value.c_str(), F_OK) == 0);
    if (secret && !plain && !path) add(name, value);
  }
  return *this;
}

bool Redactor::add(std::string_view name, std::string_view value) {
  if (value.size() < kShortest || value.size() > kLongest) return false;
  std::vector<std::string> spellings{std::string(value)};
  for (std::string other : {in_json(value), escaped(value)}) {
    if (other.size() <= kLongest && std::ranges::find(spellings, other) == spellings.end()) spellings.push_back(std::move(other));
  }
  for (std::string& each : spellings) {
    first_[static_cast<unsigned char>(each[0])] = true;
    secrets_.push_back({std::string(name), std::move(each)});
  }
  std::ranges::stable_sort(secrets_, std::ranges::greater(), [](const Secret& secret) { return secret.value.size(); });
  return true;
}

Redactor::Found Redactor::find_at(std::string_view text, std::size_t at, char before) const {
  const std::string_view rest = text.substr(at);
  Found found;
  for (const Secret& secret : secrets_) {
    if (rest.starts_with(secret.value)) return {secret.value.size(), secret.name, found.undecided};
    if (std::string_view(secret.value).starts_with(rest)) found.undecided = true;
  }
  const bool inside_word = is_word(at > 0 ? text[at - 1] : before);
  for (const TokenPattern& pattern : kTokenPatterns) {
    if (inside_word) break;
    if (pattern.prefix.starts_with(rest)) found.undecided = true;
    if (!rest.starts_with(pattern.prefix)) continue;
    std::size_t end = rest.find_first_not_of(pattern.letters, pattern.prefix.size());
    const bool open = end == std::string_view::npos;
    if (open) end = rest.size();
    const bool enough = end - pattern.prefix.size() >= pattern.least;
    // A JSON web token has two dots; three letters alone are too common.
    const bool fits = pattern.prefix != "eyJ" || std::ranges::count(rest.substr(0, end), '.') == 2;
    if (enough && fits && end <= kLongest) return {end, pattern.name, open};
    if (open && end <= kLongest) found.undecided = true;
  }
  if (kPemBegin.starts_with(rest)) found.undecided = true;
  if (!rest.starts_with(kPemBegin)) return found;
  const std::size_t line = rest.find('\n');
  if (line == std::string_view::npos) return found.undecided = rest.size() < 80, found;
  if (!rest.substr(0, line).ends_with(kPemKey) && !rest.substr(0, line).ends_with(std::string(kPemKey) + "\r")) return found;
  const std::size_t end = rest.find(kPemEnd);
  const std::size_t last = end == std::string_view::npos ? end : rest.find(kPemKey, end);
  // A key whose end is not there is none the less a key.
  if (last == std::string_view::npos) return {std::min(rest.size(), kLongest), "private-key", rest.size() < kLongest};
  return {last + kPemKey.size(), "private-key", false};
}

// `used`: how much of `text` was taken; what is behind it waits for more text.
std::string Redactor::replace(std::string_view text, char before, bool is_end, std::size_t& used, Lines lines) const {
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t plain = at;
    while (plain < text.size() && !first_[static_cast<unsigned char>(text[plain])]) ++plain;
    result += text.substr(at, plain - at);
    at = plain;
    if (at == text.size()) break;
    const Found found = find_at(text, at, before);
    if (found.undecided && !is_end) break;
    if (found.length == 0) {
      result += text[at++];
      continue;
    }
    const std::string mark = "[redacted:" + std::string(found.name) + "]";
    result += mark;
    const std::string_view secret = text.substr(at, found.length);
    for (std::size_t i = 0; lines == Lines::kKeep && i < secret.size(); ++i) {
      if (secret[i] != '\n') continue;
      result += '\n';
      if (i + 1 < secret.size()) result += mark;  // else the next line is another's
    }
    at += found.length;
  }
  used = at;
  return result;
}

std::string Redactor::operator()(std::string_view text) const {
  std::size_t used = 0;
  return replace(text, '\0', true, used);
}

std::string Redactor::by_line(std::string_view text) const {
  std::size_t used = 0;
  return replace(text, '\0', true, used, Lines::kKeep);
}

std::string Redactor::Stream::feed(std::string_view piece) {
  held_ += piece;
  std::size_t used = 0;
  std::string out = redactor_->replace(held_, before_, false, used);
  if (used > 0) before_ = held_[used - 1];
  held_.erase(0, used);
  return out;
}

std::string Redactor::Stream::finish() {
  std::size_t used = 0;
  std::string out = redactor_->replace(held_, before_, true, used);
  held_.clear();
  return out;
}

}  // namespace belljar
