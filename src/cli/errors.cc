#include "cli/errors.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "policy/schema.h"

namespace belljar::cli {
namespace {

void write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // stderr is gone; there is nobody to tell
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

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

}  // namespace

std::string error_text(const Error& error) {
  std::string text = "belljar: " + error.what();
  if (error.errnum() != 0) text += format(": {} ({})", std::strerror(error.errnum()), error.call());
  text += '\n';
  if (!error.excerpt().empty()) text += error.excerpt() + "\n";
  if (!error.reason().empty()) text += "  reason: " + error.reason() + "\n";
  if (!error.next().empty()) text += "  next:   " + error.next() + "\n";
  return text;
}

int print_error(const Error& error) {
  write_to_stderr(error_text(error));
  return error.exit_code();
}

int print_result(const std::string& text) {
  const bool fine = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return fine ? 0 : print_error(Error(Code::kUnavailable, "cannot write to stdout").sys(errno, "write"));
}

void print_note(std::string_view text) { write_to_stderr(format("belljar: {}\n", text)); }

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

int parse_and_run(const CLI::App& app, const std::function<void()>& parse, const int& exit_code,
                  const std::function<void(const Error&)>& on_usage_error) {
  try {
    parse();
  } catch (const CLI::Success& asked) {  // --help
    return app.exit(asked);
  } catch (const CLI::ParseError& refused) {
    const Error error = usage_error(app, refused);
    print_error(error);
    if (on_usage_error) on_usage_error(error);
    return error.exit_code();
  } catch (const std::exception& bug) {
    return print_error(Error(Code::kInternal, escaped(bug.what())));
  }
  return exit_code;
}

}  // namespace belljar::cli
