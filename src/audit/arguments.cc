// Secrets that nobody told, found by where they stand in a command: behind an option, a variable or a field whose name is a
// secret's, in a URL, behind curl's -u. A value that no name announces (`mysql -pX`) stays.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/redact.h"
#include "policy/defaults.h"
#include "policy/paths.h"

namespace belljar {
namespace {

constexpr std::string_view kSpace = " \t\r\n", kSeparators = ";|&()<>\n", kQuotes = "'\"";

bool any_name(std::span<const std::string_view> patterns, std::string_view name) {
  return std::ranges::any_of(patterns, [name](std::string_view pattern) { return policy::name_match(pattern, name); });
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
}

// `--sort-key` and `--max-tokens` are none, nor is what names a file with one.
bool is_secret_name(std::string_view text) {
  constexpr std::string_view kNone[] = {"*TOKENS",    "*TOKEN_TYPE", "*TOKENIZER*",   "*TOKEN_LIMIT*", "*FILE",    "*PATH",
                                        "*DIR",       "*SOCK",       "*SOCKET",       "*_STORE",       "*HELPER*", "*_NAME",
                                        "AWS_REGION", "AWS_PROFILE", "AWS_DEFAULT_*", "*_ENDPOINT*"};
  constexpr std::string_view kMore[] = {"PASS", "*_PASS", "PW", "PIN", "*ACCESS_KEY*", "*AUTH_KEY*", "*ENCRYPTION_KEY*", "AUTH"};
  constexpr std::string_view kTooMuch[] = {"*_KEY", "*_KEY_*", "AWS_*", "AZURE_*"};  // of an option
  const std::size_t start = std::min(text.find_first_not_of('-'), text.size());
  const bool option = start > 0;
  std::string name(text.substr(start));
  if (!is_name(name)) return false;
  std::ranges::replace(name, '-', '_');
  if (any_name(kNone, name)) return false;
  if (any_name(kMore, name)) return true;
  return std::ranges::any_of(policy::secret_variables(), [&](std::string_view pattern) {
    return policy::name_match(pattern, name) && !(option && std::ranges::find(kTooMuch, pattern) != std::end(kTooMuch));
  });
}

std::string mark(std::string_view name) {
  return "[redacted:" + std::string(name.substr(std::min(name.find_first_not_of('-'), name.size()))) + "]";
}

// A variable's name in place of a value gives nothing away, nor does one that is out already.
bool is_reference(std::string_view value) {
  while (!value.empty() && kQuotes.find(value[0]) != std::string_view::npos) value.remove_prefix(1);
  return value.starts_with('$') || value.starts_with("[redacted:");
}

// What one word of a shell's text is: quotes hold it together, a backslash takes the next letter with it.
std::size_t word_size(std::string_view text) {
  char quote = '\0';
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\' && quote != '\'') ++at;
    else if (quote != '\0') quote = c == quote ? '\0' : quote;
    else if (kQuotes.find(c) != std::string_view::npos) quote = c;
    else if (kSpace.find(c) != std::string_view::npos || kSeparators.find(c) != std::string_view::npos) break;
  }
  return std::min(at, text.size());
}

class Reader {
 public:
  std::string argument(std::string_view word) {
    const bool script = std::exchange(script_, word.size() > 1 && word.size() < 5 && word[0] == '-' && word.ends_with('c'));
    return script ? Reader().text(word) : this->word(word);
  }

  std::string text(std::string_view rest) {
    std::string out;
    while (!rest.empty()) {
      const std::size_t size = word_size(rest);
      if (size == 0) {
        if (kSeparators.find(rest[0]) != std::string_view::npos) *this = {};
        out += rest[0];
        rest.remove_prefix(1);
        continue;
      }
      const std::string_view one = rest.substr(0, size);
      const bool quoted = size > 1 && one.front() == one.back() && kQuotes.find(one.front()) != std::string_view::npos;
      if (quoted) out.append(1, one[0]).append(word(one.substr(1, size - 2))).append(1, one[0]);
      else out += word(one);
      rest.remove_prefix(size);
    }
    return out;
  }

 private:
  enum class Next { kAny, kSecret, kUser };

  std::string word(std::string_view one) {
    const Next next = std::exchange(next_, Next::kAny);
    if (next == Next::kSecret && !one.empty() && !one.starts_with('-')) return is_reference(one) ? std::string(one) : mark(option_);
    if (next == Next::kUser) return without_password(one);
    curl_ = curl_ || one.substr(one.rfind('/') + 1) == "curl";
    const std::size_t equals = one.find('='), colon = one.find(':');
    if (const std::string_view name = one.substr(0, std::min(equals, one.size())); equals != std::string_view::npos) {
      if (curl_ && (name == "--user" || name == "--proxy-user"))
        return std::string(name) + "=" + without_password(one.substr(equals + 1));
      if (is_secret_name(name) && equals + 1 < one.size() && !is_reference(one.substr(equals + 1)))
        return std::string(name) + "=" + mark(name);
    } else if (one.starts_with('-') && is_secret_name(one)) {
      next_ = Next::kSecret;
      option_ = one;
    }
    if (curl_ && (one == "-u" || one == "-U" || one == "--user" || one == "--proxy-user")) next_ = Next::kUser;
    if (colon != std::string_view::npos && is_secret_field(one.substr(0, colon)) && !one.substr(colon).starts_with("://"))
      return std::string(one.substr(0, colon + 1)) + field(one.substr(0, colon), one.substr(colon + 1));
    if (one.find_first_of(kSpace) != std::string_view::npos) return Reader().text(one);
    return without_users(one);
  }

  static bool is_secret_field(std::string_view name) {
    constexpr std::string_view kFields[] = {"Authorization", "Proxy-Authorization", "Cookie", "*Api-Key", "*-Token", "*-Secret"};
    return is_name(name) && any_name(kFields, name);
  }

  // ` Bearer x`: the scheme stays.
  static std::string field(std::string_view name, std::string_view value) {
    const std::size_t start = value.find_first_not_of(kSpace);
    if (start == std::string_view::npos || is_reference(value.substr(start))) return std::string(value);
    const std::size_t space = value.find(' ', start);
    const bool schemed = space != std::string_view::npos && policy::name_match("*Authorization", name);
    const std::size_t kept = schemed ? space + 1 : start;
    return std::string(value.substr(0, kept)) + (is_reference(value.substr(kept)) ? std::string(value.substr(kept)) : mark(name));
  }

  static std::string without_password(std::string_view user) {
    const std::size_t colon = user.find(':');
    if (colon == std::string_view::npos || colon + 1 == user.size() || is_reference(user.substr(colon + 1)))
      return std::string(user);
    return std::string(user.substr(0, colon + 1)) + mark("password");
  }

  // Of each URL in it.
  static std::string without_users(std::string_view rest) {
    std::string out;
    for (std::size_t at = rest.find("://"); at != std::string_view::npos; at = rest.find("://")) {
      out += rest.substr(0, at + 3);
      rest.remove_prefix(at + 3);
      const std::string_view authority = rest.substr(0, rest.find_first_of("/?# \t\n,'\""));
      const std::size_t end = authority.rfind('@');
      if (end == std::string_view::npos) continue;
      out += without_password(authority.substr(0, end));
      rest.remove_prefix(end);
    }
    return out += rest;
  }

  Next next_ = Next::kAny;
  std::string option_;
  bool curl_ = false, script_ = false;
};

}  // namespace

std::vector<std::string> Redactor::arguments(std::span<const std::string> words) const {
  std::vector<std::string> result;
  Reader reader;
  for (const std::string& word : words) result.push_back(reader.argument((*this)(word)));
  return result;
}

std::string Redactor::command(std::string_view text) const { return Reader().text((*this)(text)); }

}  // namespace belljar
