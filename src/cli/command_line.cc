#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "cli/errors.h"
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
  const std::string_view near = policy::nearest(name, names);
  return Error(Code::kInvalidArgument, format("unknown option {}", belljar::quoted(name)))
      .next(near.empty() ? format("`{} --help` lists the options", full_name(app)) : format("did you mean `{}`?", near));
}

Error unknown_command(const CLI::App& app, const std::string& wrong) {
  std::vector<std::string> known;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) known.push_back(sub->get_name());
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string_view near = policy::nearest(wrong, names);
  std::string all;
  for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
  return Error(Code::kInvalidArgument, format("{} was not expected here", belljar::quoted(wrong)))
      .next(!near.empty() ? format("did you mean `{}`?", near)
            : all.empty() ? format("`{} --help` shows what fits", full_name(app))
                          : "commands are " + all);
}

// As an Error with the nearest right option or command.
Error usage_error(const CLI::App& app, const CLI::ParseError& refused) {
  const CLI::App& here = *chosen(&app);
  for (const std::string& extra : app.remaining(true)) {
    if (extra == "--") continue;
    if ((here.get_name() == "run" || here.get_name() == "exec") && !extra.starts_with('-')) {
      return Error(Code::kInvalidArgument, format("{} was not expected here", belljar::quoted(extra)))
          .next(format("put `--` before the program: belljar {}{} -- {} ...", here.get_name(),
                       here.get_name() == "exec" ? " ID" : "", escaped(extra)));
    }
    return extra.size() > 1 && extra[0] == '-' ? unknown_option(here, extra) : unknown_command(here, extra);
  }
  std::string text = refused.what();
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return Error(Code::kInvalidArgument, escaped(text)).next(format("see `{} --help`", full_name(here)));
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
    const bool count = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
    return std::string(count && value.find_first_not_of('0') != std::string::npos ? "" : "give a whole number, at least 1");
  });
}

Option Option::between(int low, int high) const {
  option_->check(CLI::Range(low, high));
  return *this;
}

Option Option::one_of(const std::vector<std::string>& values) const {
  option_->check(CLI::IsMember(values));
  return *this;
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
  app_->preparse_callback([prepare = std::move(prepare)](std::size_t) { prepare(); });
}

CommandLine::CommandLine(const std::string& help, const std::string& name)
    : OptionParser(new CLI::App(help, name)), owned_(app()) {}
CommandLine::~CommandLine() = default;

void CommandLine::set_version(const std::string& text) const { app()->set_version_flag("--version", text); }

void CommandLine::parse_words(std::vector<std::string> words) const {
  std::ranges::reverse(words);  // CLI11 takes them from the back
  app()->parse(words);
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
    parse_words(std::move(words));
  } catch (const CLI::Success& asked) {  // --help
    return app()->exit(asked);
  } catch (const CLI::ParseError& refused) {
    const Error error = usage_error(*app(), refused);
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

}  // namespace belljar::cli
