// Options and operands of a command as getopt_long(3) takes them apart, and the words among them that name what is written.
#pragma once

#include <string_view>
#include <vector>

#include "shell/script.h"

namespace belljar::shell {

// A short option in a cluster (`-rf`) or a long one, by any beginning that getopt takes.
bool has_option(const SimpleCommand& command, std::string_view letters, std::string_view long_name) noexcept;
// The words that are no options. Values of options are among them.
std::vector<const Word*> operands(const SimpleCommand& command);

// Which options of a program take a value.
struct ValueOptions {
  std::string_view letters;
  std::string_view names;       // long ones, separated by spaces
  std::string_view flags = {};  // long ones without a value that one of the names begins with
};
// A beginning of a long name in front of another option: `--suf -t x`. It takes that word for its value, or is a flag that the
// table does not know.
enum class Abbreviation { kFlag, kTakesWord };
struct Arguments {
  struct Option {
    std::string_view name;  // the letter, or the long name in full
    Word value;
  };
  std::vector<Option> options;  // only those with a value
  std::vector<Word> operands;
  bool unsure = false;  // there is such a beginning: both readings count
};
Arguments arguments(const SimpleCommand& command, const ValueOptions& valued, Abbreviation beginning = Abbreviation::kFlag);

// Of tar(1), whose first word may be a cluster without its dash: `tar xCf DIR FILE`.
Arguments tar_arguments(const SimpleCommand& command);

// `word` without its first `count` bytes.
Word tail_of(const Word& word, std::size_t count);

// A relative `word` as a name that is seen from `directory`, where that is fixed and not empty.
Word seen_from(const Word& directory, Word word);

// The places that `command` writes to, redirections apart: the last operand of cp, what `-t` names, `find -fprint`, `curl -o` ...
std::vector<Word> written_paths(const SimpleCommand& command);

}  // namespace belljar::shell
