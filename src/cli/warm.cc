// belljar warm [--json] [--stop]
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/format.h"
#include "belljar/units.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "warm/door.h"

namespace belljar::cli {
namespace {

struct WarmFlags {
  bool json = false, stop = false;
};

std::string line_of_spare(const std::string& told) {
  const auto spare = nlohmann::json::parse(told, nullptr, false);
  if (!spare.is_object()) return {};
  return format("{:>8}  {:>9}  {}  {}\n", spare.value("pid", 0), to_string(Bytes{spare.value("memory_bytes", std::uint64_t{0})}),
                escaped(spare.value("workspace", "")), escaped(spare.value("options", "")));
}

int show_or_stop(const WarmFlags& flags) {
  const auto kept = warm::ask_all(flags.stop ? warm::wire::Ask::kEnd : warm::wire::Ask::kTell);
  std::string text;
  std::size_t told = 0;
  for (const std::string& one : kept) {
    if (one.empty()) continue;
    text += flags.json ? one + "\n" : line_of_spare(one);
    ++told;
  }
  if (told < kept.size())
    print_note(format("{} of them did not answer within a second: `pgrep -af '^belljar __spare'` lists them", kept.size() - told));
  if (kept.empty() && !flags.json) print_note("no sandbox is kept ready (`belljar run --warm` keeps some)");
  else if (flags.stop && !flags.json) print_note(format("ended {}:", told == 1 ? "one" : format("{}", told)));
  return print_result(text);
}

}  // namespace

void add_warm(const OptionParser& app, int& exit_code) {
  const OptionParser command =
      app.add_subcommand("warm", "Show the sandboxes that `run --warm` keeps ready: process, memory, workspace, options");
  const auto flags = std::make_shared<WarmFlags>();
  command.add_flag("--json", flags->json, "One JSON object a line");
  command.add_flag("--stop", flags->stop, "End them");
  command.callback([flags, &exit_code] { exit_code = show_or_stop(*flags); });
}

}  // namespace belljar::cli
