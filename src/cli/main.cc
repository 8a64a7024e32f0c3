// The command line of both programs that hold it: `belljar` (small/main.cc) and belljar-full with TLS in it
// (full/main.cc).
//
// The objects are built here and handed down; there are no singletons and no static registration. What is
// built depends on the first words, because building options is a tenth of a short start: for `run` only its
// own command exists, and of its options only those that occur (add_policy_options).
//
// The order before the parsing is not free:
//
// 1. Closed descriptors 0, 1 and 2 are opened again, or the first file that we open would become somebody's
//   stdout.
// 2. bubblewrap's words, since its rules for words, descriptors and exit codes are its own.
// 3. An option with `=` and no value. CLI11 would take the next word for its value, which may be an option
//   that protects.
// 4. What a component of belljar-full does, by execve(2): nothing is open yet, and no thread runs.
// 5. Commands about kept sandboxes, which have a command line of their own (sandbox/commands.cc).
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/paths.h"
#include "belljar/error.h"
#include "bwrap/speak.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/complete.h"
#include "cli/components.h"
#include "cli/errors.h"
#include "cli/refused_run.h"
#include "cli/sandbox/commands.h"
#include "cli/spare.h"
#include "front/stdio.h"

namespace belljar::cli {
namespace {

// The words after the first `--` belong to the program that `run` starts; CLI11 would take a second `--` out of them.
std::vector<std::string> split_argv(int& argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--") continue;
    std::vector<std::string> program(argv + i + 1, argv + argc);
    argc = i;
    return program;
  }
  return {};
}

// `help run` as `run --help`.
void ask_for_help(std::span<char*> words) {
  static char option[] = "--help";
  std::ranges::rotate(words, words.begin() + 1);
  words.back() = option;
}

// The words from the one before the command on: `belljar __complete exec b` and `belljar man exec` are answered by the command line
// that knows the options of exec. Of the benchmarks none are known, whose words are few and their own.
std::span<char* const> words_of_command(std::span<char* const> words) {
  const std::string_view first = words.size() > 1 ? words[1] : std::string_view();
  const bool completes = first == kCompleteWord;
  if (!completes && first != "man") return words;
  // The word that somebody is about to end may be the beginning of another.
  return words.first(words.size() - (completes ? 1 : 0)).subspan(1);
}

// Sandboxes that stay have a command line of their own (sandbox/commands.cc).
bool is_about_kept(std::span<char* const> words) noexcept {
  return words.size() > 1 && std::ranges::find(kKeeperCommands, words[1], &KeeperCommand::word) != kKeeperCommands.end();
}

// bubblewrap's words are not ours to parse, nor are its rules for descriptors and exit codes: `belljar bwrap WORDS`, and a link to
// this program that is called `bwrap`.
std::optional<int> speak_bwrap(int argc, char** argv) {
  if (argc < 1) return std::nullopt;
  const std::string_view name(argv[0]);
  // Inside, where its own name may not be shown, a bwrap is started again by the name that it always has; our words are no options.
  const bool again = name == "/proc/self/exe" && argc > 1 && std::string_view(argv[1]).starts_with("--");
  const bool called = again || belljar::file_name(name) == "bwrap";
  if (!called && (argc < 2 || std::string_view(argv[1]) != "bwrap")) return std::nullopt;
  const std::vector<std::string> words(argv + (called ? 1 : 2), argv + argc);
  return bwrap::speak(called ? std::string(name) : std::string(name) + " bwrap", words);
}

}  // namespace

int serve_command_line(int argc, char** argv) {
  const unsigned closed = front::reopen_closed_stdio();
  const bool is_spare = argc > 2 && std::string_view(argv[1]).starts_with(kSpareWord) && std::string_view(argv[2]) == "run";
  const auto spare = is_spare ? std::optional(read_spare_word(argv[1])) : std::nullopt;
  if (is_spare) std::rotate(argv + 1, argv + 2, argv + argc), --argc;
  if (const auto code = speak_bwrap(argc, argv)) return *code;
  if (argc > 1 && std::string_view(argv[1]) == "help") ask_for_help({argv + 1, static_cast<std::size_t>(argc - 1)});
  const bool is_run = argc > 1 && std::string_view(argv[1]) == "run";
  const auto empty = find_empty_option({argv, static_cast<std::size_t>(argc)});
  if (empty && !is_run) return print_error(*empty);
  if (argc == 1 && ::isatty(STDOUT_FILENO) == 1) return welcome();
  const auto command = words_of_command({argv, static_cast<std::size_t>(argc)});
  const auto component = empty ? std::nullopt : component_for(command);
  if (component) return hand_over(*component, argv + 1, closed);
  if (is_about_kept(command)) return run_keeper_command(argc, argv);
  int exit_code = 0;
  // Never deleted: taking the options apart again takes as long as parsing them.
  // Static, so that a leak checker still sees it.
  static auto& app = *new CommandLine("Run what a language model proposed, so that it can do useful work and no harm", "belljar");
  app.require_subcommand();
  std::vector<std::string> program;
  const bool is_learn = argc > 1 && std::string_view(argv[1]) == "learn";
  if (is_run || is_learn) program = split_argv(argc, argv);
  // The first word is there always: an empty span would mean all options.
  const std::span<const char* const> words(argv, is_run ? static_cast<std::size_t>(argc) : 0);
  add_run(app, words, is_learn ? std::vector<std::string>() : program, spare ? &*spare : nullptr, exit_code);
  // The others' options are not built on the way to a start.
  if (!is_run) {
    app.set_version("belljar " BELLJAR_VERSION);
    add_policy(app, exit_code);
    add_doctor(app, exit_code);
    add_setup(app, exit_code);
    add_explain(app, exit_code);
    add_agents(app, exit_code);
    add_caches(app, exit_code);
    add_warm(app, exit_code);
    add_learn(app, std::move(program), exit_code);
    add_diff(app, exit_code);
    add_commit(app, exit_code);
    add_rollback(app, exit_code);
    add_snapshot(app, exit_code);
    add_fork(app, exit_code);
    add_recover(app, exit_code);
    add_completion(app, exit_code);
    app.add_subcommand("bwrap", "Be bubblewrap: its command line, also when a link to this program is called `bwrap`");
    app.add_subcommand("man", "The manual page of a command. Without one: of belljar");
    app.subcommand("policy").add_subcommand("import", "Settings of Blade, Claude, srt or Codex as a policy");
    for (const auto& one : kComponentCommands) app.add_subcommand(std::string(one.word), one.help);
    for (const auto& one : kKeeperCommands) app.add_subcommand(std::string(one.word), one.help);
  }
  std::vector<std::string> given(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (empty) return refuse_empty_option(app, std::move(given), *empty);
  return app.parse_and_run(std::move(given), exit_code, [&](const Error& refused) {
    if (is_run) report_refusal(app, refused);
  });
}

}  // namespace belljar::cli
