// belljar logs: what happened in a sandbox, from its keeper while it runs and from its files afterwards.
//
// Events are JSON lines with a kind; each kind has a sentence here, and one that this version does not know
// is printed as name=value. A sandbox can end between the look into the directory and our question, so a
// question that fails is followed by a second look. Whatever comes from inside is escaped.
#include <fcntl.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/violation_text.h"
#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/sandbox/ask.h"
#include "cli/sandbox/commands.h"
#include "keeper/directory.h"
#include "keeper/event_log.h"
#include "keeper/wire.h"
#include "kernel/small_file.h"

namespace belljar::cli {
namespace {

using keeper::Entry;
using keeper::State;
using Ordered = nlohmann::ordered_json;

struct LogsFlags {
  std::string id;
  bool follow = false, json = false;
};

// "301 ms", "12.5 s", "3 min".
std::string time_text(std::int64_t milliseconds) {
  if (milliseconds < 1000) return format("{} ms", milliseconds);
  if (milliseconds < 60'000) return format("{:.1f} s", static_cast<double>(milliseconds) / 1000);
  return short_time(milliseconds);
}
std::string size_text(const Ordered& data, const char* name) { return short_size(data.value(name, 0.0)); }
std::string percent_text(const Ordered& data, const char* name) { return format("{:.1f} %", data.value(name, 0.0) / 100); }

std::string execution_text(const Ordered& data) {
  const std::string command = belljar::quoted(data.value("command", ""));
  if (const std::string error = data.value("error", ""); !error.empty())
    return format("{} did not run: {}", command, escaped(error));
  return format("{} {} with exit code {} after {}, {} of output", command, escaped(data.value("reason", "")),
                data.value("exit_code", 0), time_text(data.value("duration_us", std::int64_t{0}) / 1000),
                size_text(data, "output_bytes"));
}

// "cpu 12.5 %, memory 3.0 MiB (45.0 %), disk 17 B, network 0 B in, 0 B out, 3 processes".
std::string resource_text(const Ordered& data) {
  std::string text = "cpu " + percent_text(data, "cpu_percent_x100") + ", memory " + size_text(data, "memory_bytes");
  if (data.contains("memory_percent_x100")) text += format(" ({})", percent_text(data, "memory_percent_x100"));
  if (data.contains("disk_bytes")) text += ", disk " + size_text(data, "disk_bytes");
  if (data.contains("disk_percent_x100")) text += format(" ({})", percent_text(data, "disk_percent_x100"));
  const std::int64_t processes = data.value("processes", std::int64_t{0});
  return text + format(", network {} in, {} out, {} {}", size_text(data, "network_in"), size_text(data, "network_out"), processes,
                       processes == 1 ? "process" : "processes");
}

std::string alert_text(const Ordered& data) {
  return format("{} at {} {} its threshold of {}", escaped(data.value("resource", "")), percent_text(data, "value_x100"),
                data.value("raised", false) ? "is over" : "is below", percent_text(data, "threshold_x100"));
}

std::string egress_text(const Ordered& data) {
  return format("{} {}:{} {}, {} sent, {} received", escaped(data.value("protocol", "")), escaped(data.value("host", "")),
                data.value("port", 0), escaped(data.value("why", "")), size_text(data, "bytes_sent"),
                size_text(data, "bytes_received"));
}

std::string violation_text(const Ordered& data) {
  const std::int64_t count = data.value("count", std::int64_t{1});
  const int errnum = data.value("errno", 0);  // 0: no call was refused, a limit ended processes
  return format("refused: {} {} by {}{} ({}){}", escaped(data.value("operation", "")), belljar::quoted(data.value("target", "")),
                belljar::quoted(data.value("program", "")), errnum != 0 ? ": " + errno_name(errnum) : "",
                escaped(data.value("rule", "")), count > 1 ? format(", {} times", count) : "");
}

// What has no sentence of its own: name=value.
std::string fields_text(const Ordered& data) {
  std::string text;
  for (const auto& [name, value] : data.items())
    text += format("{}{}={}", text.empty() ? "" : " ", escaped(name), escaped(value.dump()));
  return text;
}

std::string in_words(const std::string& line) {
  const Ordered event = Ordered::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object() || !event.contains("data")) return format("damaged: {}\n", belljar::quoted(line.substr(0, 200)));
  const Ordered& data = event["data"];
  const std::string kind = event.value("kind", "");
  std::string text = kind == "execution"   ? execution_text(data)
                     : kind == "violation" ? violation_text(data)
                     : kind == "resource"  ? resource_text(data)
                     : kind == "alert"     ? alert_text(data)
                     : kind == "egress"    ? egress_text(data)
                                           : fields_text(data);
  if (kind == "lifecycle") {
    const std::string detail = data.value("detail", "");
    text = escaped(data.value("what", "")) + (detail.empty() ? "" : ": " + escaped(detail));
  }
  return format("{}  {:<9}  {}\n", escaped(event.value("time", "")), escaped(kind), text);
}

int print_lines(const LogsFlags& flags, const std::vector<std::string>& lines, std::uint64_t lost) {
  std::string text;
  if (lost > 0 && !flags.json) text = format("({} earlier events are no longer kept)\n", lost);
  for (const std::string& line : lines) text += flags.json ? line + "\n" : in_words(line);
  return text.empty() ? 0 : print_result(text);
}

// Of a sandbox that does not run any more.
int show_kept(const LogsFlags& flags, const Entry& entry) {
  const UniqueFd directory(::open(entry.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  std::vector<std::string> lines;
  for (const char* name : {keeper::kOlderLog, keeper::kLog}) {
    const auto text = kernel::read_small_file(directory.get(), name);
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    while (!rest.empty()) lines.emplace_back(kernel::next_field(rest, '\n'));
  }
  const int failed = print_lines(flags, lines, 0);
  const std::string why = entry.state == State::kGone ? keeper::kKilled : entry.about.ended;
  if (failed == 0) print_note(format("{} does not run any more: {}", entry.about.id, escaped(why)));
  return failed;
}

Result<int> show_running(const LogsFlags& flags, const Entry& entry) {
  keeper::Channel channel(BELLJAR_TRY(keeper::connect_to(entry)));
  keeper::Json question = request("logs");
  question["follow"] = flags.follow;
  BELLJAR_CHECK(channel.send(question));
  keeper::Received answer = BELLJAR_TRY(next_answer(channel, std::chrono::seconds(10)));
  for (;;) {
    const auto lines = answer.message.at("lines").get<std::vector<std::string>>();
    const int failed = print_lines(flags, lines, answer.message.value("lost", std::uint64_t{0}));
    if (failed != 0) return failed;
    auto more = channel.receive(std::nullopt);
    if (!more || !*more) return 0;  // that was all, or the sandbox has ended
    answer = **std::move(more);
  }
}

int show(const LogsFlags& flags) {
  const auto directory = keeper::Directory::open();
  if (!directory) return print_error(directory.error());
  const auto entry = directory->find(flags.id);
  if (!entry) return print_error(entry.error());
  if (entry->state != State::kRunning) return show_kept(flags, *entry);
  const auto shown = show_running(flags, *entry);
  if (shown) return *shown;
  // It may have ended just now, with our question unheard.
  const auto again = directory->find(entry->about.id);
  return again && again->state != State::kRunning ? show_kept(flags, *again) : print_error(shown.error());
}

}  // namespace

void add_logs(const OptionParser& command, const KeeperCommandWords& /*words*/, int& exit_code) {
  const auto flags = std::make_shared<LogsFlags>();
  command.add_option("ID", flags->id, "Its id or name").required();
  command.add_flag("--follow", flags->follow, "Go on until the sandbox ends");
  command.add_flag("--json", flags->json, "One JSON object a line");
  command.callback([flags, &exit_code] { exit_code = show(*flags); });
}

}  // namespace belljar::cli
