// JSON of the daemon, read with suspicion: it comes from a machine on which somebody else's commands run.
//
// protobuf's JSON writes 64 bits as text and leaves zeros out (https://protobuf.dev/programming-guides/json/),
// so a number may be a number, a text or missing. How a command ended comes as Go prints it ("signal: killed
// (core dumped)"), and the names are mapped back; an unknown one counts as SIGKILL, because the command did not
// exit by itself. Exit codes beyond eight bits are refused: cut to eight, 256 would read as success. Fields and
// events that are new are skipped, for daemons are of many versions.
#include "remote/e2b/events.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "belljar/error.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "remote/json.h"

namespace belljar::remote::e2b {
namespace {

using Json = nlohmann::json;

Error nonsense(std::string_view what) {
  return Error(Code::kDataLoss, "the sandbox's daemon answered with nonsense").reason(std::string(what));
}

const Json* member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}
// 64 bits come as text, and as numbers from others.
std::optional<std::int64_t> number_in(const Json& object, const char* name) {
  const Json* found = member(object, name);
  if (found == nullptr) return 0;  // zero is left out
  if (found->is_number_integer()) return found->get<std::int64_t>();
  if (!found->is_string()) return {};
  const auto& text = found->get_ref<const std::string&>();
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

// As Go spells a signal.
constexpr std::array<std::pair<std::string_view, int>, 16> kSignals = {{{"hangup", SIGHUP},
                                                                        {"interrupt", SIGINT},
                                                                        {"quit", SIGQUIT},
                                                                        {"illegal instruction", SIGILL},
                                                                        {"trace/breakpoint trap", SIGTRAP},
                                                                        {"aborted", SIGABRT},
                                                                        {"bus error", SIGBUS},
                                                                        {"floating point exception", SIGFPE},
                                                                        {"killed", SIGKILL},
                                                                        {"user defined signal 1", SIGUSR1},
                                                                        {"segmentation fault", SIGSEGV},
                                                                        {"user defined signal 2", SIGUSR2},
                                                                        {"broken pipe", SIGPIPE},
                                                                        {"alarm clock", SIGALRM},
                                                                        {"terminated", SIGTERM},
                                                                        {"bad system call", SIGSYS}}};

int signal_in(std::string_view status) {
  constexpr std::string_view kSays = "signal: ";
  constexpr std::string_view kNumber = "signal ";
  if (!status.starts_with(kSays)) return 0;
  status.remove_prefix(kSays.size());
  if (const auto core = status.find(" (core"); core != std::string_view::npos) status = status.substr(0, core);
  if (const auto* found = std::ranges::find(kSignals, status, &std::pair<std::string_view, int>::first); found != kSignals.end())
    return found->second;
  int number = SIGKILL;
  if (status.starts_with(kNumber)) std::from_chars(status.data() + kNumber.size(), status.data() + status.size(), number);
  return number > 0 && number < 65 ? number : SIGKILL;
}

Result<Event> parse_output(const Json& data) {
  Event event;
  for (const auto& [name, kind] :
       {std::pair{"stdout", EventKind::kStdout}, {"stderr", EventKind::kStderr}, {"pty", EventKind::kStdout}}) {
    const Json* found = member(data, name);
    if (found == nullptr) continue;
    auto bytes = found->is_string() ? from_base64(found->get_ref<const std::string&>()) : std::nullopt;
    if (!bytes) return nonsense("output that is no base64");
    event.kind = kind;
    event.bytes = *std::move(bytes);
    return event;
  }
  return event;  // no bytes
}

Result<Event> parse_end(const Json& end) {
  Event event;
  event.kind = EventKind::kEnd;
  const auto code = number_in(end, "exitCode");
  if (!code || !end.is_object()) return nonsense("an end without an exit code");
  const Json* exited = member(end, "exited");
  if (exited == nullptr || !exited->is_boolean() || !exited->get<bool>()) event.signal = signal_in(text_in(end, "status"));
  // Of Linux a code has eight bits; cut to them, 256 would read as success. -1 is Go's for none.
  if (event.signal == 0 && (*code < -1 || *code > 255)) return nonsense("an end with an exit code that is none");
  event.exit_code = event.signal != 0 ? 128 + event.signal : static_cast<int>(*code & 0xFF);
  return event;
}

Code code_named(std::string_view name) noexcept {
  for (int i = 0; i <= static_cast<int>(Code::kUnauthenticated); ++i) {
    if (to_string(static_cast<Code>(i)) == name) return static_cast<Code>(i);
  }
  return Code::kUnknown;
}

// RFC 3339; the epoch when it is none. Fractions below a microsecond are dropped.
std::chrono::system_clock::time_point time_in(const std::string& text) {
  struct tm parts{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return {};
  std::int64_t micros = 0;
  if (*rest == '.') {
    int digits = 0;
    for (++rest; *rest >= '0' && *rest <= '9'; ++rest) {
      if (digits++ < 6) micros = micros * 10 + (*rest - '0');
    }
    for (; digits < 6; ++digits) micros *= 10;
  }
  int hours = 0;
  int minutes = 0;
  if ((*rest == '+' || *rest == '-') && std::sscanf(rest + 1, "%2d:%2d", &hours, &minutes) == 2 && *rest == '-') {
    hours = -hours;
    minutes = -minutes;
  }
  return std::chrono::system_clock::time_point(std::chrono::seconds(::timegm(&parts)) - std::chrono::hours(hours) -
                                               std::chrono::minutes(minutes) + std::chrono::microseconds(micros));
}

Result<Entry> entry_of(const Json& json) {
  Entry entry;
  const auto size = number_in(json, "size");
  const auto mode = number_in(json, "mode");
  entry.info.path = text_in(json, "name");
  entry.path = text_in(json, "path");
  if (!json.is_object() || !size || *size < 0 || !mode) return nonsense("an entry without size or mode");
  if (entry.info.path.find('/') != std::string::npos || entry.info.path.find('\0') != std::string::npos)
    return nonsense("an entry whose name is none");
  entry.info.size = static_cast<std::uint64_t>(*size);
  entry.info.mode = static_cast<unsigned>(*mode) & 07777U;
  entry.info.target = text_in(json, "symlinkTarget");
  const std::string type = text_in(json, "type");
  // The type is that of what a link leads to.
  const bool link = !entry.info.target.empty() || text_in(json, "permissions").starts_with('L');
  entry.info.type = link                            ? FileType::kSymlink
                    : type == "FILE_TYPE_FILE"      ? FileType::kFile
                    : type == "FILE_TYPE_DIRECTORY" ? FileType::kDirectory
                    : type == "FILE_TYPE_SYMLINK"   ? FileType::kSymlink
                                                    : FileType::kOther;
  entry.info.modified = time_in(text_in(json, "modifiedTime"));
  return entry;
}

}  // namespace

Result<Event> parse_event(std::string_view json) {
  const Json root = Json::parse(json, nullptr, false);
  if (!root.is_object()) return nonsense("a message of a process that is no JSON object");
  const Json* event = member(root, "event");
  if (event == nullptr) return Event{};  // new to us
  if (!event->is_object()) return nonsense("a message of a process without an event");
  if (const Json* start = member(*event, "start")) {
    const auto pid = number_in(*start, "pid");
    if (!start->is_object() || !pid || *pid <= 0 || *pid > INT32_MAX) return nonsense("a start without a pid");
    return Event{.kind = EventKind::kStart, .pid = static_cast<std::uint32_t>(*pid)};
  }
  if (const Json* data = member(*event, "data")) return parse_output(*data);
  if (const Json* end = member(*event, "end")) return parse_end(*end);
  return Event{};
}

std::optional<Complaint> parse_complaint(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("code")) return {};
  return Complaint{code_named(text_in(json, "code")), text_in(json, "message")};
}

Result<std::optional<Complaint>> parse_last(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return nonsense("the end of a stream that is no JSON object");
  const Json* error = member(json, "error");
  if (error == nullptr) return std::optional<Complaint>();
  return std::optional(Complaint{code_named(text_in(*error, "code")), text_in(*error, "message")});
}

Result<Entry> parse_entry(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  const Json* entry = member(json, "entry");
  if (entry == nullptr) return nonsense("no entry");
  return entry_of(*entry);
}

Result<std::vector<Entry>> parse_entries(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return nonsense("no entries");
  std::vector<Entry> entries;
  const Json* list = member(json, "entries");
  if (list == nullptr) return entries;
  if (!list->is_array()) return nonsense("no entries");
  for (const Json& entry : *list) entries.push_back(BELLJAR_TRY(entry_of(entry)));
  return entries;
}

}  // namespace belljar::remote::e2b
