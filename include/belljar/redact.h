// Keeps secret values out of texts that others read: output for a model, the audit trail, logs.
//
//   Redactor redactor = Redactor::from_environment(environment);   // values of GITHUB_TOKEN, AWS_SECRET_ACCESS_KEY ...
//   redactor("push to https://ghp_…@github.com")                    // "push to https://[redacted:GITHUB_TOKEN]@github.com"
//
// It replaces literal values it was given, as they are and as JSON and our messages spell them, and strings in the shape of
// well-known tokens. A value that is transformed in another way (base64, reversed, split in two) is not recognised: a secret
// that must not get out must not get in.
//
// A value. Once its secrets are added, calls of a const one are safe from any thread; a Stream is for one thread at a time.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belljar {

class Redactor {
 public:
  // Shorter values are not added: they would be found everywhere.
  static constexpr std::size_t kShortest = 6;
  static constexpr std::size_t kLongest = 16'384;

  // Recognises well-known shapes: tokens of GitHub, GitLab, OpenAI, Anthropic, AWS, Google, Slack, Stripe and npm, JSON web tokens,
  // and private keys in PEM.
  Redactor();
  // As above, and the values of variables whose names look like a secret's (the policy's own list).
  static Redactor from_environment(const std::map<std::string, std::string>& environment);
  // Adds the secrets of a further environment, such as the variables that a policy or a command sets. Two values of one name
  // are both kept.
  Redactor& add_environment(const std::map<std::string, std::string>& environment);
  // Adds a value with its spellings in JSON and in our messages (escaped()). False: it is too short or too long.
  bool add(std::string_view name, std::string_view value);

  // `text` with each secret as "[redacted:NAME]".
  std::string operator()(std::string_view text) const;
  // The same with as many lines as before: of a secret of several lines each is "[redacted:NAME]".
  std::string by_line(std::string_view text) const;

  // For an argument list, and for a command as text: as above, and also values that were never added but
  // stand where a secret does. That is behind an option, a variable or a field of HTTP with a secret's name
  // (`--password=x`, `--token x`, `PGPASSWORD=x`, `Authorization: Bearer x`), behind such a name in JSON
  // (`"password": "x"`), in a URL (`https://user:x@host`), and behind curl's `-u user:`, `sshpass -p` and
  // `mysql -p`. References (`$PASSWORD`) stay, and so does code that a shell would run (`$(id)`).
  std::vector<std::string> arguments(std::span<const std::string> words) const;
  std::string command(std::string_view text) const;
  // kWords: of values that were never added, only single words are removed and nothing that could be shell
  // code. For a text by which a person decides.
  enum class Values { kAny, kWords };
  // The same; the removed values are added to `learned`, for other texts about the command.
  std::string command(std::string_view text, Redactor& learned, Values values = Values::kAny) const;

  // For a text that comes in pieces: gives out what is certain, and holds back what might be the start of a secret.
  class Stream {
   public:
    explicit Stream(std::shared_ptr<const Redactor> redactor) : redactor_(std::move(redactor)) {}
    std::string feed(std::string_view piece);
    std::string finish();

   private:
    std::shared_ptr<const Redactor> redactor_;
    std::string held_;
    char before_ = '\0';  // the byte before held_: a token does not begin inside a word
  };

 private:
  struct Secret {
    std::string name, value;
  };
  struct Found {
    std::size_t length = 0;  // 0: nothing here
    std::string_view name;
    bool undecided = false;  // more text could make it a secret, or a longer one
  };
  Found find_at(std::string_view text, std::size_t at, char before) const;
  enum class Lines { kJoin, kKeep };
  std::string replace(std::string_view text, char before, bool is_end, std::size_t& used, Lines lines = Lines::kJoin) const;

  std::vector<Secret> secrets_;  // longest first
  bool first_[256] = {};         // bytes that a secret may begin with
};

}  // namespace belljar
