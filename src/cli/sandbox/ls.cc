// belljar ls [--all] [--json]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/format.h"
#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/sandbox/ask.h"
#include "cli/sandbox/commands.h"
#include "keeper/about.h"
#include "keeper/directory.h"

namespace belljar::cli {
namespace {

using keeper::Entry;
using keeper::State;

constexpr std::chrono::milliseconds kInfoPatience{2000};

struct Row {
  Entry entry;
  std::optional<std::uint64_t> processes;  // unset: it does not run, or does not answer
};

std::string json_of(const Row& row) {
  auto object = nlohmann::ordered_json::parse(keeper::to_json(row.entry.about));
  object["state"] = keeper::to_string(row.entry.state);
  object["age_ms"] = std::max<std::int64_t>(now_ms() - row.entry.about.created_ms, 0);
  object["processes"] = row.processes ? nlohmann::ordered_json(*row.processes) : nlohmann::ordered_json(nullptr);
  object["keeper_pid"] = row.entry.keeper > 0 ? nlohmann::ordered_json(row.entry.keeper) : nlohmann::ordered_json(nullptr);
  return object.dump() + "\n";
}

std::vector<std::string> cells_of(const Row& row) {
  const keeper::About& about = row.entry.about;
  const std::int64_t now = now_ms();
  const bool runs = row.entry.state == State::kRunning;
  std::string expires = !about.expires_ms ? "never" : "in " + short_time(*about.expires_ms - now);
  if (!runs) expires = "-";
  std::string state(keeper::to_string(row.entry.state));
  if (runs && !row.processes) state = "no answer";
  if (row.entry.state == State::kEnded) state += ": " + escaped(about.ended);
  return {about.id,
          about.name.empty() ? "-" : escaped(about.name),
          state,
          short_time(now - about.created_ms),
          expires,
          escaped(about.policy),
          row.processes ? format("{}", *row.processes) : "-",
          escaped(about.workspace)};
}

std::string table_of(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> lines = {{"ID", "NAME", "STATE", "AGE", "EXPIRES", "POLICY", "PROCESSES", "WORKSPACE"}};
  for (const Row& row : rows) lines.push_back(cells_of(row));
  std::vector<std::size_t> widths(lines[0].size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i) text += format("{:<{}}  ", line[i], widths[i]);
    text += line.back() + "\n";
  }
  return text;
}

int list(bool all, bool json) {
  const auto directory = keeper::Directory::open();
  if (!directory) return print_error(directory.error());
  auto entries = directory->list();
  if (!entries) return print_error(entries.error());
  std::vector<Row> rows;
  for (Entry& entry : *entries) {
    if (entry.state == State::kEnded && !all) continue;
    Row row{std::move(entry), {}};
    if (row.entry.state == State::kRunning) {
      if (const auto info = ask(row.entry, request("info"), kInfoPatience))
        row.processes = info->value("processes", std::uint64_t{0});
    }
    rows.push_back(std::move(row));
  }
  std::string text = json ? "" : table_of(rows);
  for (const Row& row : rows) {
    if (json) text += json_of(row);
    // Told once; from now on it is one of those that have ended.
    if (row.entry.state == State::kGone) directory->retire(row.entry.about.id, keeper::kKilled, false);
  }
  return print_result(text);
}

}  // namespace

std::vector<FittingWord> fitting_sandboxes() {
  std::vector<FittingWord> words;
  const auto directory = keeper::Directory::open();
  const auto entries = directory ? directory->list() : Result<std::vector<Entry>>(directory.error());
  if (!entries) return words;
  for (const Entry& entry : *entries) {
    if (entry.state != State::kRunning) continue;
    const std::string workspace = escaped(entry.about.workspace);
    words.push_back({entry.about.id, workspace});
    if (!entry.about.name.empty()) words.push_back({entry.about.name, workspace});
  }
  return words;
}

void add_ls(const OptionParser& command, const KeeperCommandWords& /*words*/, int& exit_code) {
  struct LsFlags {
    bool all = false, json = false;
  };
  const auto flags = std::make_shared<LsFlags>();
  command.add_flag("--all", flags->all, "Also the last that have ended, and why");
  command.add_flag("--json", flags->json, "One JSON object a line");
  command.callback([flags, &exit_code] { exit_code = list(flags->all, flags->json); });
}

}  // namespace belljar::cli
