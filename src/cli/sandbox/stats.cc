// belljar stats ID [--json]
#include <chrono>
#include <memory>
#include <string>

#include "base/format.h"
#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/sandbox/ask.h"
#include "cli/sandbox/commands.h"

namespace belljar::cli {
namespace {

using keeper::Json;

constexpr std::chrono::milliseconds kStatsPatience{10'000};

std::string size_text(const Json& bytes) { return bytes.is_number() ? short_size(bytes.get<double>()) : "unknown"; }

std::string limit_text(const Json& limit, bool size) {
  if (limit.is_null()) return "";
  return format(" of {}", size ? size_text(limit) : limit.dump());
}

std::string usage_in_words(const Json& used) {
  std::string text = format("cpu        {:.1f} %{}, {:.0f} ms in all\n", used.at("cpu_percent").get<double>(),
                            used.at("cpus_limit").is_null() ? "" : format(" (limit {} cpus)", used.at("cpus_limit").dump()),
                            used.at("cpu_ms").get<double>());
  text += format("memory     {}{}\n", size_text(used.at("memory_bytes")), limit_text(used.at("memory_limit_bytes"), true));
  text += format("processes  {}{}\n", used.at("processes").dump(), limit_text(used.at("processes_limit"), false));
  text += format("disk       {}{}\n", size_text(used.at("disk_bytes")), limit_text(used.at("disk_limit_bytes"), true));
  text += format("network    {} in, {} out\n", size_text(used.at("network_in_bytes")), size_text(used.at("network_out_bytes")));
  return text + format("commands   {}\n", used.at("execs").dump());
}

int show(const std::string& id, bool json) {
  const auto entry = find_running(id);
  if (!entry) return print_error(entry.error());
  auto used = ask(*entry, request("stats"), kStatsPatience);
  if (!used) return print_error(used.error());
  if (!json) return print_result(usage_in_words(*used));
  (*used)["id"] = entry->about.id;
  return print_result(used->dump() + "\n");
}

}  // namespace

void add_stats(const OptionParser& command, const KeeperCommandWords& /*words*/, int& exit_code) {
  struct StatsFlags {
    std::string id;
    bool json = false;
  };
  const auto flags = std::make_shared<StatsFlags>();
  command.add_option("ID", flags->id, "Its id or name").required();
  command.add_flag("--json", flags->json, "As one JSON object; null: not known");
  command.callback([flags, &exit_code] { exit_code = show(flags->id, flags->json); });
}

}  // namespace belljar::cli
