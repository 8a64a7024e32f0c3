// The one file that includes CLI11, which costs 5 to 9 seconds of compiling. Everything else sees handles
// (command_line.h).
//
// Parsing, help, manual pages and completion all read the same CLI::App, so they cannot tell different
// things. Options of a command are built only when its name is met (before_parse). Help and completion, which
// want to know all of them, open the command first.
//
// Errors are told with the nearest right name, which CLI11 does not know. Policy options that were not built,
// because they did not occur, are right names all the same, so the list of the schema is added when one is
// looked for.
//
// CLI11 reports by exceptions. They end in parse_and_run() and nowhere else.
#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "cli/command_info.h"
#include "cli/complete.h"
#include "cli/errors.h"
#include "cli/help.h"
#include "cli/man_page.h"
#include "front/stdio.h"
#include "policy/schema.h"

namespace belljar::cli {
namespace {

// "belljar policy show".
std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

// The sub-command that was reached last.
const CLI::App* chosen(const CLI::App* app) {
  for (const CLI::App* sub : app->get_subcommands()) return chosen(sub);
  return app;
}

bool takes_policy(const CLI::App& app) {
  constexpr std::string_view kNames[] = {"belljar run", "belljar learn", "belljar policy show", "belljar policy explain",
                                         "belljar mcp", "belljar agent"};
  return std::ranges::find(kNames, full_name(app)) != std::end(kNames);
}

Error unknown_option(const CLI::App& app, const std::string& wrong) {
  const std::string name = wrong.substr(0, wrong.find('='));
  std::vector<std::string> long_names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& known : option->get_lnames()) long_names.push_back("--" + known);
  }
  std::vector<std::string_view> names(long_names.begin(), long_names.end());
  // Options of the policy may not have been built (add_policy_options): those that were not asked for are right names all the same.
  if (takes_policy(app)) {
    names.insert(names.end(), {"--policy", "--workspace"});
    if (app.get_name() != "mcp" && app.get_name() != "agent") names.emplace_back("--cwd");
    if (app.get_name() == "run") names.emplace_back("--login");
    for (const policy::Key& key : policy::keys()) {
      if (!key.flag.empty()) names.push_back(key.flag);
    }
  }
  const std::string_view near = policy::nearest(name, names), known = policy::known_synonym("--", name);
  return Error(Code::kInvalidArgument, format("unknown option {}", belljar::quoted(name)))
      .next(takes_policy(app) && !known.empty() ? std::string(known)
            : near.empty()                      ? format("`{} --help` lists the options", full_name(app))
                                                : format("did you mean `{}`?", near));
}

std::string names_of(const std::vector<const CLI::App*>& commands) {
  std::string all;
  for (const CLI::App* command : commands) all += (all.empty() ? "" : ", ") + command->get_name();
  return all;
}

Error unknown_command(const CLI::App& app, const std::string& wrong) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::vector<std::string> known;
  for (const CLI::App* sub : commands) known.push_back(sub->get_name());
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string_view near = policy::nearest(wrong, names);
  const std::string all = names_of(commands);
  return Error(Code::kInvalidArgument, format("{} was not expected here", belljar::quoted(wrong)))
      .next(!near.empty() ? format("did you mean `{}`?", near)
            : all.empty() ? format("`{} --help` shows what fits", full_name(app))
                          : "commands are " + all);
}

OptionInfo describe(const CLI::Option& option) {
  OptionInfo info;
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  info.argument = info.names.empty();
  if (info.argument) info.names.push_back(option.get_name(true));
  if (option.get_items_expected_max() > 0) {
    info.value = option.get_type_name();
    if (info.value.starts_with("UINT")) info.value = "N";
  }
  info.text = option.get_description();
  if (!option.get_default_str().empty()) info.text += format(" (default: {})", option.get_default_str());
  if (option.get_group() != "Options") info.heading = option.get_group();
  info.required = option.get_required();
  info.repeatable = option.get_items_expected_max() > 1 || option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  return info;
}

CommandInfo describe(const CLI::App& app) {
  CommandInfo info;
  info.name = full_name(app);
  info.text = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (option != app.get_help_ptr() && option != app.get_help_all_ptr() && !option->get_group().empty())
      info.options.push_back(describe(*option));
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) info.commands.push_back(describe(*sub));
  }
  return info;
}

// As an Error with the nearest right option or command.
Error usage_error(const CLI::App& app, const CLI::ParseError& refused) {
  const CLI::App& here = *chosen(&app);
  for (const std::string& extra : app.remaining(true)) {
    if (extra == "--") continue;
    if ((here.get_name() == "run" || here.get_name() == "exec") && !extra.starts_with('-')) {
      const CLI::Option* const text = here.get_option_no_throw("-c");
      if (text != nullptr && text->count() > 0) {
        return Error(Code::kInvalidArgument, format("{} was not expected here", belljar::quoted(extra)))
            .next("-c takes one text: put quotes around all of it");
      }
      return Error(Code::kInvalidArgument, format("{} was not expected here", belljar::quoted(extra)))
          .next(format("put `--` before the program: belljar {}{} -- {} ...", here.get_name(),
                       here.get_name() == "exec" ? " ID" : "", escaped(extra)));
    }
    if (extra.size() > 1 && extra[0] == '-') return unknown_option(here, extra);
    if (here.get_option_no_throw("--txn-name") != nullptr)
      return Error(Code::kInvalidArgument, format("{} was not expected here", belljar::quoted(extra)))
          .next(format("a transaction is named by an option: belljar {} --txn-name {}{}", here.get_name(), escaped(extra),
                       here.get_option_no_throw("--to") == nullptr ? "" : "; a snapshot: --to " + escaped(extra)));
    return unknown_command(here, extra);
  }
  const auto commands = here.get_subcommands([](const CLI::App*) { return true; });
  if (!commands.empty() && here.get_subcommands().empty() && here.get_require_subcommand_min() > 0)
    return Error(Code::kInvalidArgument, format("`{}` stands before a command", full_name(here)))
        .reason("none was given")
        .next("commands are " + names_of(commands));
  std::string text = refused.what();
  for (char& c : text) c = c == '\n' ? ' ' : c;
  Error error(Code::kInvalidArgument, escaped(text));
  const bool missing = dynamic_cast<const CLI::RequiredError*>(&refused) != nullptr;
  const std::string usage = missing ? usage_of(describe(here)) : std::string();
  return std::move(error).next(missing && usage.find('\n') == std::string::npos ? format("it is `{}`", usage)
                                                                                : format("see `{} --help`", full_name(here)));
}

// Whether it was `--help all`. What stands behind `--` is the program's, and was taken out before.
HelpAmount asked_amount(const std::vector<std::string>& words) {
  const auto help = std::ranges::find_if(words, [](const std::string& word) { return word == "--help" || word == "-h"; });
  const bool all_word = help != words.end() && help + 1 != words.end() && help[1] == "all";
  return all_word ? HelpAmount::kAll : HelpAmount::kFirst;
}

// The command that the leading words name; `known`: how many of them do.
const CLI::App* find_command(const CLI::App* app, const std::vector<std::string>& words, std::size_t& known) {
  for (known = 0; known < words.size(); ++known) {
    const auto named = app->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == words[known]; });
    if (named.empty()) break;
    app = named.front();
  }
  return app;
}

}  // namespace

Option Option::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

Option Option::group(const std::string& heading) const {
  option_->group(heading);
  return *this;
}

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}

Option Option::show_default() const {
  option_->capture_default_str();
  return *this;
}

Option Option::repeatable() const {
  option_->expected(1)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return *this;
}

Option Option::last_counts() const {
  option_->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  return *this;
}

Option Option::check(std::function<std::string(const std::string&)> refusal) const {
  option_->check(std::move(refusal));
  return *this;
}

Option Option::not_empty() const {
  return check([](const std::string& value) { return std::string(value.empty() ? "its value is empty" : ""); });
}

Option Option::at_least_one() const {
  return check([](const std::string& value) {
    return std::string(is_number(value) && value.find_first_not_of('0') != std::string::npos ? ""
                                                                                             : "give a whole number, at least 1");
  });
}

Option Option::between(int low, int high) const {
  option_->check(CLI::Range(low, high).description(""));
  return type_name("N");
}

Option Option::one_of(const std::vector<std::string>& values) const {
  option_->check(CLI::IsMember(values).description(""));
  std::string all;
  for (const std::string& value : values) all += (all.empty() ? "" : "|") + value;
  return type_name(all);
}

std::size_t Option::times_given() const { return option_->count(); }
std::vector<std::string> Option::values() const { return option_->results(); }

template <typename T>
Option OptionParser::add_option(const std::string& names, T& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}
template Option OptionParser::add_option(const std::string&, std::string&, const std::string&) const;
template Option OptionParser::add_option(const std::string&, std::optional<std::string>&, const std::string&) const;
template Option OptionParser::add_option(const std::string&, std::vector<std::string>&, const std::string&) const;
template Option OptionParser::add_option(const std::string&, unsigned&, const std::string&) const;
template Option OptionParser::add_option(const std::string&, std::size_t&, const std::string&) const;

Option OptionParser::add_flag(const std::string& names, bool& given, const std::string& help) const {
  return Option(app_->add_flag(names, given, help));
}

Option OptionParser::add_flag(const std::string& names) const { return Option(app_->add_flag(names)); }

Option OptionParser::on_option(const std::string& names, std::function<void(const std::vector<std::string>&)> take,
                               const std::string& help) const {
  CLI::callback_t call = [take = std::move(take)](const CLI::results_t& values) {
    take(values);
    return true;
  };
  return Option(app_->add_option(names, std::move(call), help));
}

Option OptionParser::on_flag(const std::string& names, std::function<void(bool)> take, const std::string& help) const {
  std::function<void(std::int64_t)> call = [take = std::move(take)](std::int64_t count) { take(count > 0); };
  return Option(app_->add_flag_function(names, std::move(call), help));
}

std::optional<Option> OptionParser::find_option(const std::string& name) const {
  CLI::Option* const found = app_->get_option_no_throw(name);
  return found == nullptr ? std::nullopt : std::optional(Option(found));
}

Option OptionParser::option(const std::string& name) const { return Option(app_->get_option(name)); }

OptionParser OptionParser::add_subcommand(const std::string& name, const std::string& help) const {
  return OptionParser(app_->add_subcommand(name, help));
}

OptionParser OptionParser::subcommand(const std::string& name) const { return OptionParser(app_->get_subcommand(name)); }
void OptionParser::require_subcommand() const { app_->require_subcommand(1); }
bool OptionParser::got(OptionParser subcommand) const { return app_->got_subcommand(subcommand.app_); }
void OptionParser::callback(std::function<void()> act) const { app_->callback(std::move(act)); }

void OptionParser::before_parse(std::function<void()> prepare) const {
  // Once: open() may have asked for it already.
  app_->preparse_callback([prepare = std::move(prepare), done = false](std::size_t) mutable {
    if (!std::exchange(done, true)) prepare();
  });
}

CommandLine::CommandLine(const std::string& help, const std::string& name) : OptionParser(new CLI::App(help, name)), owned_(app()) {
  app()->set_help_all_flag("--help-all");
}
CommandLine::~CommandLine() = default;

void CommandLine::offer(const std::string& value, std::function<std::vector<FittingWord>()> words) {
  offers_[value] = std::move(words);
}

void CommandLine::set_version(const std::string& text) const {
  app()->set_version_flag("--version", text, "Which version this is");
}

void CommandLine::parse_words(std::vector<std::string> words) const {
  std::ranges::reverse(words);  // CLI11 takes them from the back
  app()->parse(words);
}

void CommandLine::open(const std::vector<std::string>& path) const {
  std::vector<std::string> words = path;
  words.emplace_back("--help");
  try {
    parse_words(std::move(words));
  } catch (const CLI::ParseError&) {  // --help was asked for
  }
}

int CommandLine::complete(std::vector<std::string> words) const {
  // Behind these stands a command.
  if (words.size() > 1 && (words[0] == "man" || words[0] == "help")) words.erase(words.begin());
  std::size_t known = 0;
  const std::span<const std::string> before(words.begin(), words.empty() ? 0 : words.size() - 1);
  const CLI::App* const command = find_command(app(), {before.begin(), before.end()}, known);
  open({before.begin(), before.begin() + static_cast<std::ptrdiff_t>(known)});
  return print_result(completions(describe(*command), std::span(words).subspan(known), offers_));
}

int CommandLine::manual(const std::vector<std::string>& words) const {
  std::size_t known = 0;
  const CLI::App* const command = find_command(app(), words, known);
  if (known < words.size()) return print_error(unknown_command(*command, words[known]));
  open(words);
  for (const CLI::App* sub : command->get_subcommands([](const CLI::App*) { return true; })) {
    std::vector<std::string> path = words;
    path.push_back(sub->get_name());
    if (!words.empty()) open(path);
  }
  return show_manual(describe(*command));
}

Result<void> CommandLine::parse(std::vector<std::string> words) const {
  try {
    parse_words(std::move(words));
  } catch (const CLI::ParseError& refused) {
    return usage_error(*app(), refused);
  }
  return {};
}

int CommandLine::parse_and_run(std::vector<std::string> words, const int& exit_code,
                               const std::function<void(const Error&)>& on_usage_error) const {
  try {
    if (!words.empty() && words[0] == kCompleteWord) return complete({words.begin() + 1, words.end()});
    if (!words.empty() && words[0] == "man" && (words.size() == 1 || !words[1].starts_with('-')))
      return manual({words.begin() + 1, words.end()});
    parse_words(words);
  } catch (const CLI::CallForHelp&) {
    return print_result(help_text(describe(*chosen(app())), asked_amount(words), style_of_stdout()));
  } catch (const CLI::CallForAllHelp&) {
    return print_result(help_text(describe(*chosen(app())), HelpAmount::kAll, style_of_stdout()));
  } catch (const CLI::Success& asked) {  // --version
    return app()->exit(asked);
  } catch (const CLI::ParseError& refused) {
    const Error error = usage_error(*app(), refused);
    // Alone it would be welcome() on a terminal.
    if (words.empty()) return std::fputs(help_text(describe(*app()), HelpAmount::kFirst, {}).c_str(), stderr), error.exit_code();
    print_error(error);
    if (on_usage_error) on_usage_error(error);
    return error.exit_code();
  } catch (const std::exception& bug) {
    return print_error(Error(Code::kInternal, escaped(bug.what())));
  }
  return exit_code;
}

std::vector<std::string> own_words(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  if (!words.empty() && (words[0].find('/') != std::string::npos || words[0].starts_with("belljar"))) words.erase(words.begin());
  return words;
}

std::vector<std::string> split_program(std::vector<std::string>& words) {
  const auto dashes = std::ranges::find(words, "--");
  if (dashes == words.end()) return {};
  std::vector<std::string> program(dashes + 1, words.end());
  words.erase(dashes, words.end());
  return program;
}

int serve_commands(std::vector<std::string> words, const std::string& about,
                   const std::function<void(CommandLine& app, int& exit_code)>& add) {
  front::reopen_closed_stdio();
  int exit_code = 0;
  CommandLine app(about, "belljar");
  app.require_subcommand();
  add(app, exit_code);
  return app.parse_and_run(std::move(words), exit_code);
}

}  // namespace belljar::cli
