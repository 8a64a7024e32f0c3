// belljar agents diff AGENT [--json] | keep AGENT PATH... [--yes] | forget AGENT
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "cli/answers.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/dropped.h"
#include "cli/errors.h"
#include "policy/json.h"

namespace belljar::cli {
namespace {

struct AgentsFlags {
  std::string agent;
  std::vector<std::string> paths;
  bool json = false, yes = false;
};

int diff(const AgentsFlags& flags) {
  const auto files = dropped_files(flags.agent);
  if (!files) return print_error(files.error());
  std::string text;
  for (const DroppedFile& file : *files) {
    if (!flags.json) text += show_dropped(flags.agent, file);
    else text += format("{{\"path\":{},\"removed\":{},\"kept\":{}}}\n", policy::json_text(file.path), file.removed, !file.left_out);
  }
  if (files->empty() && !flags.json)
    print_note(format("the last run of {} changed nothing that was dropped and is not kept by now", flags.agent));
  return print_result(text);
}

bool ends_with_path(std::string_view path, std::string_view asked) {
  return path == asked || (path.size() > asked.size() && path.ends_with(asked) && path[path.size() - asked.size() - 1] == '/');
}

// The file that `asked` names: absolute, from "~/", or its last components. Errors: kNotFound, none or several.
Result<DroppedFile> find_file(const std::vector<DroppedFile>& files, const std::string& asked) {
  std::string name = asked;
  if (name.starts_with("~/")) name = own_variable("HOME") + name.substr(1);
  std::vector<DroppedFile> found;
  std::ranges::copy_if(files, std::back_inserter(found), [&](const DroppedFile& file) { return ends_with_path(file.path, name); });
  if (found.size() == 1) return found.front();
  return Error(Code::kNotFound,
               format("{} {}", found.empty() ? "nothing was dropped under the name" : "several were dropped under", quoted(asked)))
      .next("name one of those that `belljar agents diff` lists");
}

// Nothing but a plain yes is one.
bool is_wanted(const AgentsFlags& flags) {
  if (flags.yes) return true;
  std::cerr << "belljar: make this change, which came from inside the sandbox? [y/N] " << std::flush;
  std::string answer;
  return std::getline(std::cin, answer) && (answer == "y" || answer == "yes");
}

Result<void> keep(const AgentsFlags& flags) {
  const std::vector<DroppedFile> files = BELLJAR_TRY(dropped_files(flags.agent));
  std::vector<DroppedFile> chosen;
  for (const std::string& path : flags.paths) chosen.push_back(BELLJAR_TRY(find_file(files, path)));
  if (!flags.yes && ::isatty(STDIN_FILENO) == 0)
    return Error(Code::kInvalidArgument, "nobody is there to say yes to the change")
        .reason("stdin is no terminal")
        .next("look at it with `belljar agents diff`, then give --yes");
  for (const DroppedFile& file : chosen) {
    (void)print_result(show_dropped(flags.agent, file));
    if (is_wanted(flags)) BELLJAR_CHECK(apply_dropped(flags.agent, file));
  }
  return {};
}

}  // namespace

void add_agents(const OptionParser& app, int& exit_code) {
  const OptionParser group = app.add_subcommand("agents", "What an agent's last run changed of its own state, and was dropped");
  group.require_subcommand();
  const auto flags = std::make_shared<AgentsFlags>();
  const OptionParser differing = group.add_subcommand("diff", "What was changed, against what is there now");
  differing.add_option("AGENT", flags->agent, "claude, codex, gemini or opencode").required();
  differing.add_flag("--json", flags->json, "One JSON object a line");
  differing.callback([flags, &exit_code] { exit_code = diff(*flags); });
  const OptionParser keeping = group.add_subcommand("keep", "Show a change and make it");
  keeping.add_option("AGENT", flags->agent, "claude, codex, gemini or opencode").required();
  keeping.add_option("PATH", flags->paths, "As `diff` shows it, from ~/, or its last components").required();
  keeping.add_flag("--yes", flags->yes, "Do not ask");
  keeping.callback([flags, &exit_code] {
    if (const auto done = keep(*flags); !done) exit_code = print_error(done.error());
  });
  const OptionParser forgetting = group.add_subcommand("forget", "Forget what was answered to it inside: trust, theme, log-in");
  forgetting.add_option("AGENT", flags->agent, "claude, codex, gemini or opencode").required();
  forgetting.callback([flags, &exit_code] {
    if (const auto done = forget_answers(flags->agent); !done) exit_code = print_error(done.error());
  });
}

}  // namespace belljar::cli
