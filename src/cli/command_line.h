// The commands and options of a program, and the words that are parsed into them. Behind it is CLI11, which costs each file that
// includes it 5 to 9 s of compiling: only command_line.cc does.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/error.h"
#include "belljar/result.h"
#include "cli/command_info.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace belljar::cli {

// An option, a flag or an argument of an OptionParser. A handle: what it stands for lives as long as its CommandLine.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  // What help calls its value.
  Option type_name(const std::string& name) const;
  // Under which heading help shows it; "": not at all.
  Option group(const std::string& heading) const;
  Option required() const;
  // Not together with that one.
  Option excludes(Option other) const;
  // Help shows the value that is there already.
  Option show_default() const;

  // May be given again and again, with one value each time. A list of itself takes every word that follows and is no option: the ID
  // of `belljar exec --env A=1 ID` too.
  Option repeatable() const;
  // Of several values the last counts, as in `alias b="belljar run --memory 1GiB"`.
  Option last_counts() const;

  // `refusal` tells what is wrong with a value; "": nothing.
  Option check(std::function<std::string(const std::string&)> refusal) const;
  // Names a file, a host or a sandbox: "" is a variable of a script that was not set, and must not mean that nothing was given.
  Option not_empty() const;
  // A count: 0 would mean that nothing is done at all.
  Option at_least_one() const;
  Option between(int low, int high) const;
  Option one_of(const std::vector<std::string>& values) const;

  // Of what was parsed last.
  std::size_t times_given() const;
  std::vector<std::string> values() const;

 private:
  friend class OptionParser;
  CLI::Option* option_;
};

// A command, or the program itself. A handle like Option. What is given to add_... is written by the parser and must live as long.
class OptionParser {
 public:
  explicit OptionParser(CLI::App* app) : app_(app) {}

  // T: std::string, std::optional<std::string>, std::vector<std::string>, unsigned, std::size_t. `names` without dashes: an
  // argument.
  template <typename T>
  Option add_option(const std::string& names, T& value, const std::string& help = {}) const;
  Option add_flag(const std::string& names, bool& given, const std::string& help) const;
  // Nobody wants to know but Option::times_given().
  Option add_flag(const std::string& names) const;
  // Calls in the place of variables, as the command's callback is about to be called. A flag's takes `--flag=false` for false.
  Option on_option(const std::string& names, std::function<void(const std::vector<std::string>&)> take,
                   const std::string& help) const;
  Option on_flag(const std::string& names, std::function<void(bool)> take, const std::string& help) const;

  // nullopt: there is no such option.
  std::optional<Option> find_option(const std::string& name) const;
  // Throws std::exception where there is none.
  Option option(const std::string& name) const;

  OptionParser add_subcommand(const std::string& name, const std::string& help) const;
  // Throws std::exception where there is none.
  OptionParser subcommand(const std::string& name) const;
  void require_subcommand() const;
  // Whether that one was called.
  bool got(OptionParser subcommand) const;

  // Once the words of the command were parsed without fault.
  void callback(std::function<void()> act) const;
  // As soon as its first word is met, before the others are looked at: here options may still be added.
  void before_parse(std::function<void()> prepare) const;

 protected:
  CLI::App* app() const { return app_; }

 private:
  CLI::App* app_;
};

// A program's. Owns its commands and options.
class CommandLine : public OptionParser {
 public:
  // `name`: as usage calls the program.
  CommandLine(const std::string& help, const std::string& name);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  CommandLine(CommandLine&&) = delete;
  CommandLine& operator=(CommandLine&&) = delete;
  ~CommandLine();

  // What fits where help says `value`, for completion.
  void offer(const std::string& value, std::function<std::vector<FittingWord>()> words);
  void set_version(const std::string& text) const;

  // The words behind the program's name. What is wrong with them is told with the nearest right option or command; of --help and
  // --version, that they were asked for. Throws what the callbacks throw.
  Result<void> parse(std::vector<std::string> words) const;

  // What main() returns: parses, and the callbacks set `exit_code`; prints what is wrong, or the help, the manual page or the
  // completions that were asked for. The one place where exceptions end. `on_usage_error` is told of what was printed of the
  // command line, too.
  int parse_and_run(std::vector<std::string> words, const int& exit_code,
                    const std::function<void(const Error&)>& on_usage_error = {}) const;

 private:
  void parse_words(std::vector<std::string> words) const;
  // Has the options of a command built that are built only when it is called.
  void open(const std::vector<std::string>& path) const;
  // `belljar __complete WORD...`, which the shells call: complete.h.
  int complete(std::vector<std::string> words) const;
  // `belljar man [COMMAND...]`.
  int manual(const std::vector<std::string>& words) const;
  std::unique_ptr<CLI::App> owned_;
  Offers offers_;
};

// main()'s words without the program's name. `belljar` hands its own words on to its programs: then argv[0] is the first of them.
std::vector<std::string> own_words(int argc, char** argv);
// Takes the first `--` and what follows it out of `words`, and returns what follows: it belongs to a program. CLI11 would take a
// second `--` out of it.
std::vector<std::string> split_program(std::vector<std::string>& words);
// All of a main() that has commands of its own, which `add` hangs on the program. `about` is said first in its help.
int serve_commands(std::vector<std::string> words, const std::string& about,
                   const std::function<void(CommandLine& app, int& exit_code)>& add);

}  // namespace belljar::cli
