// Secrets that nobody told, found by where they stand in a command: behind an option, a variable, a field of HTTP or a member of
// JSON whose name is a secret's, in a URL, behind curl's -u, sshpass' and mysql's -p. A value that no name announces stays.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/paths.h"
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
  return !text.empty() && std::ranges::all_of(text, [](char c) { return is_alnum(c) || c == '_' || c == '-' || c == '.'; });
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

// A variable's name in place of a value gives nothing away, nor does one that is out already.
bool is_reference(std::string_view value) {
  while (!value.empty() && kQuotes.find(value[0]) != std::string_view::npos) value.remove_prefix(1);
  return (value.starts_with('$') && !value.starts_with("$'")) || value.starts_with("[redacted:");
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

// What a shell would run or look up inside of a word is no secret, and hiding it would hide code. Where that begins.
std::size_t find_expansion(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') ++at;
    else if (text[at] == '`' || text.substr(at).starts_with("$(") || text.substr(at).starts_with("${")) return at;
  }
  return text.size();
}

std::string_view unquoted(std::string_view word) {
  const bool quoted = word.size() > 1 && word.front() == word.back() && kQuotes.find(word.front()) != std::string_view::npos;
  return quoted ? word.substr(1, word.size() - 2) : word;
}

// What was secrets out: its name and the value.
using FoundSecrets = std::vector<std::pair<std::string, std::string>>;

class Reader {
 public:
  using Values = Redactor::Values;
  explicit Reader(FoundSecrets& secrets, Values values = Values::kAny, int depth = 0)
      : secrets_(&secrets), values_(values), depth_(depth) {}

  std::string argument(std::string_view word) {
    const bool script = std::exchange(script_, word.size() > 1 && word.size() < 5 && word[0] == '-' && word.ends_with('c'));
    return script ? inner().text(word) : this->word(word);
  }

  // Shell text. What lies deeper than a few quotations is read as if quotes were blanks.
  std::string text(std::string_view rest) {
    constexpr int kDeepest = 8;
    if (depth_ > kDeepest) return loose(rest);
    std::string out;
    while (!rest.empty()) {
      const std::size_t size = word_size(rest);
      if (size == 0) {
        out += separator(rest[0]);
        rest.remove_prefix(1);
        continue;
      }
      const std::string_view one = rest.substr(0, size);
      const std::string_view content = unquoted(one);
      expands_ = !one.starts_with('\'');
      if (content.size() < one.size()) out.append(1, one[0]).append(word(content)).append(1, one[0]);
      else if (one.find_first_of(kSpace) != std::string_view::npos) out += mixed(one);
      else out += word(one);
      rest.remove_prefix(size);
    }
    expands_ = true;
    return without_members(out);
  }

 private:
  enum class Next { kAny, kSecret, kField, kUser };

  Reader inner() const { return Reader(*secrets_, values_, depth_ + 1); }

  char separator(char c) {
    if (kSeparators.find(c) != std::string_view::npos) *this = Reader(*secrets_, values_, depth_);
    return c;
  }

  // `--header='Authorization: Bearer x'`, `PASSWORD="a b"`, `don't`: blanks inside of quotes that are not around all of it.
  std::string mixed(std::string_view one) {
    const std::size_t equals = one.find('=');
    const bool whole = next_ != Next::kAny || (equals != std::string_view::npos && is_secret_name(one.substr(0, equals)));
    return whole ? word(one) : inner().loose(one);
  }

  std::string loose(std::string_view rest) {
    std::string out;
    while (!rest.empty()) {
      const std::size_t size = std::min(rest.find_first_of(" \t\r\n;|&<>()'\""), rest.size());
      if (size > 0) out += word(rest.substr(0, size));
      if (size < rest.size()) out += separator(rest[size]);
      rest.remove_prefix(std::min(size + 1, rest.size()));
    }
    expands_ = true;
    return without_members(out);
  }

  std::string word(std::string_view one) {
    const Next next = std::exchange(next_, Next::kAny);
    if (next == Next::kSecret && !one.empty() && !one.starts_with('-')) return redact(option_, one);
    if (next == Next::kUser) return without_password(one);
    if (next == Next::kField) {
      if (!is_scheme(one)) return redact(option_, one);
      next_ = Next::kField;
      return std::string(one);
    }
    const std::string_view name = file_name(one);
    curl_ = curl_ || name == "curl";
    sshpass_ = sshpass_ || name == "sshpass";
    mysql_ = mysql_ || name == "mysql" || name == "mysqldump" || name == "mysqladmin" || name == "mariadb";
    if ((sshpass_ || mysql_) && one.starts_with("-p") && one.size() > 2) {
      sshpass_ = false;  // what follows is another program's
      return "-p" + redact("password", one.substr(2));
    }
    if (sshpass_ && one == "-p") {
      sshpass_ = false;
      next_ = Next::kSecret;
      option_ = "password";
      return std::string(one);
    }
    const std::size_t equals = one.find('='), colon = one.find(':');
    if (const std::string_view key = one.substr(0, std::min(equals, one.size())); equals != std::string_view::npos) {
      if (curl_ && (key == "--user" || key == "--proxy-user"))
        return std::string(key) + "=" + without_password(one.substr(equals + 1));
      if (is_secret_name(key) && equals + 1 < one.size()) return std::string(key) + "=" + redact(key, one.substr(equals + 1));
    } else if (one.starts_with('-') && is_secret_name(one)) {
      next_ = Next::kSecret;
      option_ = one;
    }
    if (curl_ && (one == "-u" || one == "-U" || one == "--user" || one == "--proxy-user")) next_ = Next::kUser;
    if (colon != std::string_view::npos && is_secret_field(one.substr(0, colon)) && !one.substr(colon).starts_with("://")) {
      if (colon + 1 == one.size()) {
        next_ = Next::kField;
        option_ = one.substr(0, colon);
        return std::string(one);
      }
      return std::string(one.substr(0, colon + 1)) + field(one.substr(0, colon), one.substr(colon + 1));
    }
    if (one.find_first_of(kSpace) != std::string_view::npos) return inner().text(one);
    return without_members(without_users(one));
  }

  // The mark in place of the value, unless that gives nothing away.
  std::string redact(std::string_view name, std::string_view value) {
    if (is_reference(value)) return std::string(value);
    constexpr std::string_view kCode = " \t\r\n;|&<>()$`";
    if (values_ == Values::kWords && unquoted(value).find_first_of(kCode) != std::string_view::npos) return std::string(value);
    const std::size_t size = expands_ && !value.starts_with('\'') ? find_expansion(value) : value.size();
    name = name.substr(std::min(name.find_first_not_of('-'), name.size()));
    secrets_->emplace_back(name, unquoted(value.substr(0, size)));
    return "[redacted:" + std::string(name) + "]" + std::string(value.substr(size));
  }

  static bool is_scheme(std::string_view word) {
    constexpr std::string_view kSchemes[] = {"Bearer", "Basic", "Digest", "Token", "Negotiate", "ApiKey"};
    return any_name(kSchemes, word);
  }

  static bool is_secret_field(std::string_view name) {
    constexpr std::string_view kFields[] = {"Authorization", "Proxy-Authorization", "Cookie", "*Api-Key", "*-Token", "*-Secret"};
    return is_name(name) && any_name(kFields, name);
  }

  // ` Bearer x`: the scheme stays.
  std::string field(std::string_view name, std::string_view value) {
    const std::size_t start = value.find_first_not_of(kSpace);
    if (start == std::string_view::npos || is_reference(value.substr(start))) return std::string(value);
    const std::size_t space = value.find(' ', start);
    const bool schemed = space != std::string_view::npos && policy::name_match("*Authorization", name);
    const std::size_t kept = schemed ? space + 1 : start;
    return std::string(value.substr(0, kept)) + redact(name, value.substr(kept));
  }

  std::string without_password(std::string_view user) {
    const std::size_t colon = user.find(':');
    if (colon == std::string_view::npos || colon + 1 == user.size()) return std::string(user);
    return std::string(user.substr(0, colon + 1)) + redact("password", user.substr(colon + 1));
  }

  // A user alone in http(s): a token, as git takes them, if it has the look of one.
  std::string without_token(std::string_view scheme, std::string_view user) {
    constexpr std::size_t kShortest = 10;
    const bool digits = user.find_first_of("0123456789") != std::string_view::npos;
    const bool token = scheme.ends_with("http") || scheme.ends_with("https");
    return token && digits && user.size() >= kShortest ? redact("token", user) : std::string(user);
  }

  // Of each URL in it.
  std::string without_users(std::string_view rest) {
    std::string out;
    for (std::size_t at = rest.find("://"); at != std::string_view::npos; at = rest.find("://")) {
      const std::string_view scheme = rest.substr(0, at);
      out += rest.substr(0, at + 3);
      rest.remove_prefix(at + 3);
      const std::string_view authority = rest.substr(0, rest.find_first_of("/?# \t\n,'\""));
      const std::size_t end = authority.rfind('@');
      if (end == std::string_view::npos) continue;
      const std::string_view user = authority.substr(0, end);
      out += user.find(':') == std::string_view::npos ? without_token(scheme, user) : without_password(user);
      rest.remove_prefix(end);
    }
    return out += rest;
  }

  // Of each member `"NAME": "value"` of JSON in it, also where a backslash stands before each quote.
  std::string without_members(std::string_view rest) {
    std::string out;
    for (std::size_t at = rest.find('"'); at != std::string_view::npos; at = rest.find('"')) {
      const std::size_t end = std::min(rest.find('"', at + 1), rest.size());
      std::string_view name = rest.substr(at + 1, end - at - 1);
      const std::string_view quote = name.ends_with('\\') ? R"(\")" : R"(")";
      if (quote.size() > 1) name.remove_suffix(1);
      const std::size_t colon = std::min(rest.find_first_not_of(kSpace, end + 1), rest.size());
      const std::size_t begin = std::min(rest.find_first_not_of(kSpace, colon + 1), rest.size());
      const bool secret = is_secret_name(name) && rest.substr(colon).starts_with(':') && rest.substr(begin).starts_with(quote);
      const std::size_t from = secret ? begin + quote.size() : at + 1;
      out += rest.substr(0, from);
      rest.remove_prefix(from);
      if (!secret) continue;
      std::size_t last = 0;
      while (last < rest.size() && !rest.substr(last).starts_with(quote)) last += quote.size() == 1 && rest[last] == '\\' ? 2 : 1;
      last = std::min(last, rest.size());
      if (last > 0) out += redact(name, rest.substr(0, last));
      out += rest.substr(last, quote.size());
      rest.remove_prefix(std::min(last + quote.size(), rest.size()));
    }
    return out += rest;
  }

  FoundSecrets* secrets_;
  Values values_;
  int depth_;
  Next next_ = Next::kAny;
  std::string option_;
  bool curl_ = false, sshpass_ = false, mysql_ = false;  // the command is one of these
  bool script_ = false;
  bool expands_ = false;  // the word is a shell's, and not in single quotes
};

}  // namespace

std::vector<std::string> Redactor::arguments(std::span<const std::string> words) const {
  std::vector<std::string> result;
  FoundSecrets secrets;
  Reader reader(secrets);
  for (const std::string& word : words) result.push_back(reader.argument((*this)(word)));
  return result;
}

std::string Redactor::command(std::string_view text) const {
  FoundSecrets secrets;
  return Reader(secrets).text((*this)(text));
}

std::string Redactor::command(std::string_view text, Redactor& learned, Values values) const {
  FoundSecrets secrets;
  std::string result = Reader(secrets, values).text((*this)(text));
  for (const auto& [name, value] : secrets) learned.add(name, value);
  return result;
}

}  // namespace belljar
