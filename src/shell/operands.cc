// Options and operands as getopt_long(3) takes them apart, and which of them name what a program writes.
//
// A table says of each program which options take a value; all others are flags, and what is left are
// operands. Two habits of getopt_long(3) matter for judging: options may follow operands, and a long option
// may be shortened to any beginning that is unique. A beginning that fits a valued option, but may as well be
// a flag that the table does not know, can be read in two ways; then `unsure` is set, and callers have to
// take every word into account.
//
// kWriters names what is written besides redirections: the last operand of `cp`, the value of `curl -o`, each
// operand of `tee`. tar(1) has a function of its own, because its first word may be a cluster of letters
// whose values follow in the order of the letters: `tar xCf DIR FILE`. A place in a list too many costs a
// question; one that is missing would be a write that nobody looks at, so unknown programs are left to the
// rules about unknown programs.
#include "shell/operands.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shell/git.h"
#include "shell/script.h"
#include "shell/word_list.h"

namespace belljar::shell {
namespace {

// The first of `names` that begins with `name`: getopt_long(3) takes the shortest that is unique.
std::string_view long_name(std::string_view names, std::string_view name) noexcept {
  for (std::size_t at = 0; !name.empty() && at <= names.size();) {
    const std::size_t end = std::min(names.find(' ', at), names.size());
    if (names.substr(at, end - at).starts_with(name)) return names.substr(at, end - at);
    at = end + 1;
  }
  return {};
}

// Where an option's value is written to, and what else of a program's words is.
enum class Written { kNothing, kLast, kAll, kSecond };
struct Writer {
  std::string_view programs;
  ValueOptions valued;
  std::string_view paths;  // of the valued: those whose value is written to
  Written operands = Written::kNothing;
};
// clang-format off
constexpr Writer kWriters[] = {
    {"cp mv ln", {"tS", "target-directory suffix"}, "t target-directory", Written::kLast},
    {"install", {"tSmgo", "target-directory suffix mode owner group strip-program", "strip"}, "t target-directory", Written::kLast},
    {"rsync", {"efTBM", "rsh filter exclude include exclude-from include-from files-from log-file backup-dir partial-dir temp-dir write-batch only-write-batch rsync-path"},
     "T log-file backup-dir partial-dir temp-dir write-batch only-write-batch", Written::kLast},
    {"scp", {"cDFiJloPSX", ""}, "", Written::kLast},
    {"tee", {"", ""}, "", Written::kAll},
    {"truncate", {"rs", "reference size"}, "", Written::kAll},
    {"shred", {"ns", "iterations size random-source"}, "", Written::kAll},
    {"sort", {"koStT", "key output buffer-size field-separator temporary-directory compress-program files0-from batch-size parallel random-source"}, "o output", Written::kNothing},
    {"uniq", {"fsw", "skip-fields skip-chars check-chars"}, "", Written::kSecond},
    {"curl", {"AbcCdDeEFhHKmMoPQrtTuUwxXyYz", "output output-dir dump-header cookie-jar trace trace-ascii stderr etag-save hsts alt-svc libcurl"},
     "o D c output output-dir dump-header cookie-jar trace trace-ascii stderr etag-save hsts alt-svc libcurl", Written::kNothing},
    {"wget", {"aADeiIlOoPQRtTUwX", "output-document output-file append-output directory-prefix save-cookies hsts-file warc-file"},
     "O o a P output-document output-file append-output directory-prefix save-cookies hsts-file warc-file", Written::kNothing},
    {"unzip", {"dP", ""}, "d", Written::kNothing},
    {"patch", {"dioBprYzFgDV", "directory output input strip prefix reject-file"}, "d o r directory output reject-file", Written::kAll},
    {"chown chgrp", {"", "from reference"}, "", Written::kAll},
    {"setfacl", {"mxM", "modify remove modify-file remove-file set set-file restore"}, "", Written::kAll},
};
// clang-format on

// Whether the word is sed's script and not a file: quoted, behind -e, or the first where no option brings one.
bool is_sed_script(const SimpleCommand& command, const Word& word) noexcept {
  if (program_name(command) != "sed" || word.splits) return false;
  const auto awaits = [](const Word& each) {
    return each.text == "-e" || each.text == "-f" || each.text == "--expression" || each.text == "--file";
  };
  const auto brings = [&](const Word& each) {
    const std::string_view text = each.text;
    return awaits(each) || text.starts_with("--expression=") || text.starts_with("--file=") ||
           (text.size() > 2 && !text.starts_with("--") && (text.starts_with("-e") || text.starts_with("-f")));
  };
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    if (&command.argv[i] == &word) return awaits(command.argv[i - 1]) || std::ranges::none_of(command.argv, brings);
    if (!command.argv[i].text.starts_with('-')) return false;
  }
  return false;
}

// sed -i, perl -i: every file that is named.
std::vector<Word> edited_in_place(const SimpleCommand& command) {
  std::vector<Word> paths;
  for (const Word* word : operands(command)) {
    if (word->fixed || !is_sed_script(command, *word)) paths.push_back(*word);
  }
  return paths;
}

std::vector<Word> find_prints(const SimpleCommand& command) {
  std::vector<Word> paths;
  for (std::size_t i = 1; i + 1 < command.argv.size(); ++i) {
    if (has_word("-fprint -fprint0 -fprintf -fls", command.argv[i].text)) paths.push_back(command.argv[++i]);
  }
  return paths;
}

// gcc(1), go build: `-o FILE`, where other options hold any letters.
std::vector<Word> compiled(const SimpleCommand& command) {
  std::vector<Word> paths;
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const Word& word = command.argv[i];
    if (word.text == "-o" && word.fixed && i + 1 < command.argv.size()) paths.push_back(command.argv[++i]);
    else if (word.text.starts_with("-o")) paths.push_back(tail_of(word, 2));
  }
  return paths;
}

// `one-top-level` is none: its value is glued to it or missing.
constexpr ValueOptions kTar{
    "bCfFgHIKLNTVX",
    "add-file after-date blocking-factor checkpoint-action directory exclude exclude-from exclude-tag file "
    "files-from format group index-file info-script label level listed-incremental mode mtime new-volume-script "
    "newer newer-mtime owner record-size rmt-command rsh-command sort starting-file strip-components suffix "
    "tape-length to-command transform use-compress-program volno-file warning",
    "exclude-backups exclude-caches exclude-vcs list"};

// Of tar's first word, a cluster without its dash, all letters are options; of any other those up to one that takes a value.
bool has_tar_option(const SimpleCommand& command, std::string_view letters, std::string_view long_name) noexcept {
  for (std::size_t i = 1; i < command.argv.size() && command.argv[i].text != "--"; ++i) {
    std::string_view text = command.argv[i].text;
    if (text.starts_with("--")) {
      const std::string_view name = text.substr(2, text.find('=') - 2);
      if (name.size() > 1 && long_name.starts_with(name)) return true;
      continue;
    }
    if (text.starts_with('-')) text = text.substr(0, text.find_first_of(kTar.letters));
    else if (i > 1) continue;
    if (text.find_first_of(letters) != std::string_view::npos) return true;
  }
  return false;
}

// tar(1): the archive that is made, the directory that is filled, lists that it keeps.
std::vector<Word> tar_places(const SimpleCommand& command) {
  const auto given = [&](std::string_view letters, std::string_view name) { return has_tar_option(command, letters, name); };
  const auto either = [&](auto... names) { return (given("", names) || ...); };
  const bool extracts = given("x", "extract") || given("", "get");
  const bool makes = given("cruA", "create") || either("append", "update", "catenate", "concatenate", "delete");
  std::vector<Word> paths;
  Word directory{.text = "."};
  for (const auto& option : tar_arguments(command).options) {
    const bool changes = has_word("C directory", option.name);
    if (changes) directory = seen_from(directory, option.value);                                // each is seen from the one before
    const bool archive = makes && has_word("f file", option.name) && option.value.text != "-";  // standard output
    if (changes && extracts) paths.push_back(directory);
    if (archive || has_word("g listed-incremental index-file volno-file", option.name)) paths.push_back(option.value);
  }
  if (!extracts || given("O", "to-stdout") || given("", "to-command")) return paths;
  if (directory.text == ".") paths.push_back(directory);  // it fills the directory it is called in
  for (const Word& word : command.argv) {
    if (word.text.starts_with("--one-top-level=")) paths.push_back(tail_of(word, std::string_view("--one-top-level=").size()));
  }
  return paths;
}

void add_operands(const Writer& writer, const SimpleCommand& command, Arguments& args, std::vector<Word>& paths) {
  auto& words = args.operands;
  const std::string_view name = program_name(command);
  const auto given = [&](std::string_view list) {
    return std::ranges::any_of(args.options, [&](const auto& option) { return has_word(list, option.name); });
  };
  // The first is the owner, where no option brings it.
  const bool owner = (name == "chown" || name == "chgrp") && !given("reference");
  if (owner && !words.empty()) words.erase(words.begin());
  switch (writer.operands) {
    case Written::kNothing:
      return;
    case Written::kAll:
      return void(std::ranges::move(words, std::back_inserter(paths)));
    case Written::kSecond:
      if (words.size() > 1) paths.push_back(words[1]);
      return;
    case Written::kLast: {
      const bool all = name == "install" && has_option(command, "d", "directory");
      if (all) return void(std::ranges::move(words, std::back_inserter(paths)));
      const bool has_target = words.size() > 1 || (words.size() == 1 && words[0].expands && words[0].splits);
      if (has_target && !given("t target-directory")) paths.push_back(words.back());
    }
  }
}

}  // namespace

Arguments tar_arguments(const SimpleCommand& command) {
  if (command.argv.size() < 2) return {};
  const Word& first = command.argv[1];
  if (first.text.starts_with('-') || first.text.empty()) return arguments(command, kTar);
  // `tar xCf DIR FILE`: each letter that takes a value takes the next word, in order.
  SimpleCommand rest = command;
  rest.argv.erase(rest.argv.begin() + 1);
  std::vector<Arguments::Option> options;
  for (std::size_t i = 0; i < first.text.size(); ++i) {
    const std::string_view letter = std::string_view(first.text).substr(i, 1);
    if (kTar.letters.find(letter) == std::string_view::npos || rest.argv.size() < 2) continue;
    options.push_back({kTar.letters.substr(kTar.letters.find(letter), 1), rest.argv[1]});
    rest.argv.erase(rest.argv.begin() + 1);
  }
  Arguments result = arguments(rest, kTar);
  // Names may be letters of `rest`, which goes; the tables stay.
  std::erase_if(result.options, [](Arguments::Option& option) {
    const std::string_view table = option.name.size() == 1 ? kTar.letters : kTar.names;
    const std::size_t at = table.find(option.name);
    if (at != std::string_view::npos) option.name = table.substr(at, option.name.size());
    return at == std::string_view::npos;
  });
  result.options.insert(result.options.begin(), options.begin(), options.end());
  return result;
}

bool has_option(const SimpleCommand& command, std::string_view letters, std::string_view long_name) noexcept {
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const std::string& text = command.argv[i].text;
    if (text == "--") return false;
    if (text.starts_with("--")) {
      const std::string_view name = std::string_view(text).substr(2, text.find('=') - 2);
      if (!name.empty() && long_name.starts_with(name)) return true;
    } else if (text.starts_with('-') && text.find_first_of(letters, 1) != std::string::npos) {
      return true;
    }
  }
  return false;
}

std::vector<const Word*> operands(const SimpleCommand& command) {
  std::vector<const Word*> result;
  bool only = false;
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const Word& word = command.argv[i];
    if (!only && word.text == "--" && word.fixed) only = true;
    else if (only || !word.text.starts_with('-') || word.text == "-") result.push_back(&word);
  }
  return result;
}

Word tail_of(const Word& word, std::size_t count) {
  Word tail = word;
  tail.text.erase(0, count);
  tail.lead -= std::min(tail.lead, count);
  return tail;
}

Word seen_from(const Word& directory, Word word) {
  const bool may_be_absolute = word.text.starts_with('/') || word.text.starts_with('~') || (!word.fixed && word.lead == 0);
  if (may_be_absolute || directory.text.empty() || !directory.fixed) return word;
  word.text.insert(0, directory.text + "/");
  word.lead += word.fixed ? 0 : directory.text.size() + 1;
  return word;
}

Arguments arguments(const SimpleCommand& command, const ValueOptions& valued, Abbreviation beginning) {
  Arguments result;
  const auto& argv = command.argv;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string_view text = argv[i].text;
    if (text.size() < 2 || text[0] != '-') {
      result.operands.push_back(argv[i]);
    } else if (text == "--") {
      result.operands.insert(result.operands.end(), argv.begin() + static_cast<std::ptrdiff_t>(i) + 1, argv.end());
      break;
    } else if (text.starts_with("--")) {
      const std::size_t equals = std::min(text.find('='), text.size());
      const std::string_view written = text.substr(2, equals - 2);
      const std::string_view name = long_name(valued.names, written);
      if (name.empty() || has_word(valued.flags, written)) continue;
      if (equals < text.size()) result.options.push_back({name, tail_of(argv[i], equals + 1)});
      else if (i + 1 < argv.size()) result.options.push_back({name, argv[i + 1]});
      if (equals < text.size()) continue;
      const bool before_option = i + 1 < argv.size() && (argv[i + 1].text.starts_with('-') || !argv[i + 1].fixed);
      const bool unsure = written != name && before_option;
      result.unsure = result.unsure || unsure;
      // Another beginning may be a flag of its own: then the next word is an operand.
      if (written == name || (unsure && beginning == Abbreviation::kTakesWord)) ++i;
    } else if (const std::size_t at = text.find_first_of(valued.letters, 1); at != std::string_view::npos) {
      const std::string_view name = text.substr(at, 1);
      // What only the run decides may be glued to it: `-t"$d"`.
      if (at + 1 < text.size() || !argv[i].fixed) result.options.push_back({name, tail_of(argv[i], at + 1)});
      else if (++i < argv.size()) result.options.push_back({name, argv[i]});
    }
  }
  return result;
}

std::vector<Word> written_paths(const SimpleCommand& command) {
  const std::string_view name = program_name(command);
  if (name.empty()) return {};
  if (name == "find") return find_prints(command);
  if (name == "tar") return tar_places(command);
  if (name == "git") return git_written_paths(command);
  if (has_word("gcc g++ cc c++ clang clang++ ld as go rustc", name)) return compiled(command);
  if ((name == "sed" && has_option(command, "i", "in-place")) || (name == "perl" && has_option(command, "i", "")))
    return edited_in_place(command);
  const auto* writer = std::ranges::find_if(kWriters, [&](const Writer& each) { return has_word(each.programs, name); });
  if (writer == std::end(kWriters)) return {};
  std::vector<Word> paths;
  for (const Abbreviation beginning : {Abbreviation::kFlag, Abbreviation::kTakesWord}) {
    Arguments args = arguments(command, writer->valued, beginning);
    for (auto& option : args.options) {
      if (has_word(writer->paths, option.name)) paths.push_back(std::move(option.value));
    }
    add_operands(*writer, command, args, paths);
    if (!args.unsure) break;
  }
  return paths;
}

}  // namespace belljar::shell
