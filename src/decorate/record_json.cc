#include "decorate/record_json.h"

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/files.h"
#include "belljar/sandbox.h"
#include "belljar/txn.h"

namespace belljar::decorate {
namespace {

using decorate::to_json;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

std::int64_t ticks(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<nanoseconds>(time.time_since_epoch()).count();
}
std::chrono::system_clock::time_point time_from(const Json& json) {
  return std::chrono::system_clock::time_point(nanoseconds(json.get<std::int64_t>()));
}

// Throws what answer_from() takes for damage.
template <class Enum>
Enum enum_from(const Json& json, Enum last) {
  const auto value = json.get<int>();
  if (value < 0 || value > static_cast<int>(last)) throw std::out_of_range("no such value");
  return static_cast<Enum>(value);
}

Json to_json(const Output& output) {
  return {{"bytes", from_bytes(output.bytes)}, {"total", output.total}, {"omitted", output.omitted}};
}
Output output_from(const Json& json) {
  return {to_bytes(json.at("bytes")), json.at("total").get<std::uint64_t>(), json.at("omitted").get<std::uint64_t>()};
}

Json to_json(const Violation& violation) {
  return {{"time_ns", ticks(violation.time)},
          {"sequence", violation.sequence},
          {"pid", violation.pid},
          {"program", from_bytes(violation.program)},
          {"operation", violation.operation},
          {"target", from_bytes(violation.target)},
          {"rule", from_bytes(violation.rule)},
          {"layer", from_bytes(violation.origin.layer)},
          {"file", from_bytes(violation.origin.file)},
          {"line", violation.origin.line},
          {"errno", violation.errnum},
          {"allowed", from_bytes(violation.allowed)},
          {"count", violation.count}};
}
Violation violation_from(const Json& json) {
  Violation violation;
  violation.time = time_from(json.at("time_ns"));
  violation.sequence = json.at("sequence");
  violation.pid = json.at("pid");
  violation.program = to_bytes(json.at("program"));
  violation.operation = json.at("operation");
  violation.target = to_bytes(json.at("target"));
  violation.rule = to_bytes(json.at("rule"));
  violation.origin = {to_bytes(json.at("layer")), to_bytes(json.at("file")), json.at("line").get<int>()};
  violation.errnum = json.at("errno");
  violation.allowed = to_bytes(json.at("allowed"));
  violation.count = json.at("count");
  return violation;
}

Json to_json(const EgressRecord& record) {
  return {{"time_ns", ticks(record.time)},
          {"pid", record.pid},
          {"program", from_bytes(record.program)},
          {"protocol", record.protocol},
          {"method", from_bytes(record.method)},
          {"host", from_bytes(record.host)},
          {"port", record.port},
          {"address", record.address},
          {"allowed", record.allowed},
          {"reason", record.reason},
          {"rule", from_bytes(record.rule)},
          {"sent", record.bytes_sent},
          {"received", record.bytes_received},
          {"duration_us", record.duration.count()}};
}
EgressRecord egress_from(const Json& json) {
  EgressRecord record;
  record.time = time_from(json.at("time_ns"));
  record.pid = json.at("pid");
  record.program = to_bytes(json.at("program"));
  record.protocol = json.at("protocol");
  record.method = to_bytes(json.at("method"));
  record.host = to_bytes(json.at("host"));
  record.port = json.at("port");
  record.address = json.at("address");
  record.allowed = json.at("allowed");
  record.reason = json.at("reason");
  record.rule = to_bytes(json.at("rule"));
  record.bytes_sent = json.at("sent");
  record.bytes_received = json.at("received");
  record.duration = microseconds(json.at("duration_us").get<std::int64_t>());
  return record;
}

Json to_json(const TriedBackend& tried) { return {{"backend", from_bytes(tried.backend)}, {"why", from_bytes(tried.why)}}; }
TriedBackend tried_from(const Json& json) { return {to_bytes(json.at("backend")), to_bytes(json.at("why"))}; }

Json to_json(const EnforcementClause& clause) {
  return {{"clause", clause.clause},
          {"asked", from_bytes(clause.asked)},
          {"mechanism", clause.mechanism},
          {"enforced", static_cast<int>(clause.enforced)},
          {"detail", from_bytes(clause.detail)},
          {"best_effort", clause.best_effort}};
}
EnforcementClause clause_from(const Json& json) {
  return {json.at("clause"),           to_bytes(json.at("asked")),
          json.at("mechanism"),        enum_from(json.at("enforced"), Enforced::kNone),
          to_bytes(json.at("detail")), json.at("best_effort")};
}

Json to_json(const txn::FileState& state) {
  return {{"kind", static_cast<int>(state.kind)}, {"mode", state.mode}, {"size", state.size}};
}
txn::FileState state_from(const Json& json) {
  return {enum_from(json.at("kind"), txn::FileKind::kOther), json.at("mode").get<mode_t>(), json.at("size").get<std::uint64_t>()};
}

Json to_json(const txn::Change& change) {
  return {{"kind", static_cast<int>(change.kind)}, {"path", from_bytes(change.path)}, {"from", from_bytes(change.from)},
          {"before", to_json(change.before)},      {"after", to_json(change.after)},  {"content", change.content},
          {"attributes", change.attributes},       {"unread", change.unread}};
}
txn::Change change_from(const Json& json) {
  return {.kind = enum_from(json.at("kind"), txn::ChangeKind::kRenamed),
          .path = to_bytes(json.at("path")),
          .from = to_bytes(json.at("from")),
          .before = state_from(json.at("before")),
          .after = state_from(json.at("after")),
          .content = json.at("content"),
          .attributes = json.at("attributes"),
          .unread = json.value("unread", false)};
}

template <class List>
Json list_of(const List& list) {
  Json array = Json::array();
  for (const auto& item : list) array.push_back(to_json(item));
  return array;
}

}  // namespace

Json from_bytes(std::string_view bytes) { return is_utf8(bytes) ? Json(std::string(bytes)) : Json{{"hex", to_hex(bytes)}}; }

std::string key_of(std::string_view bytes) { return is_utf8(bytes) ? std::string(bytes) : "\\x" + to_hex(bytes); }

std::string to_bytes(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  return from_hex(json.at("hex").get<std::string>()).value_or("");
}

Json to_json(const ExecResult& result) {
  return {{"exit_code", result.exit_code},
          {"signal", result.signal ? Json(*result.signal) : Json()},
          {"reason", static_cast<int>(result.reason)},
          {"message", from_bytes(result.message)},
          {"limits_hit", result.limits_hit},
          {"out", to_json(result.out)},
          {"err", to_json(result.err)},
          {"duration_us", result.duration.count()},
          {"cpu_user_us", result.usage.cpu_user.count()},
          {"cpu_system_us", result.usage.cpu_system.count()},
          {"peak_memory", result.usage.peak_memory ? Json(result.usage.peak_memory->count) : Json()},
          {"violations", list_of(result.violations)},
          {"violations_dropped", result.violations_dropped},
          {"violations_hidden", result.violations_hidden},
          {"id", result.id},
          {"egress", list_of(result.egress)},
          {"egress_dropped", result.egress_dropped},
          {"enforcement", list_of(result.enforcement)},
          {"backend", from_bytes(result.backend)},
          {"tried", list_of(result.tried)}};
}

void from_json(const Json& json, ExecResult& result) {
  result.exit_code = json.at("exit_code");
  if (!json.at("signal").is_null()) result.signal = json.at("signal").get<int>();
  result.reason = enum_from(json.at("reason"), Reason::kStartFailed);
  result.message = to_bytes(json.at("message"));
  result.limits_hit = json.at("limits_hit").get<std::vector<std::string>>();
  result.out = output_from(json.at("out"));
  result.err = output_from(json.at("err"));
  result.duration = microseconds(json.at("duration_us").get<std::int64_t>());
  result.usage.cpu_user = microseconds(json.at("cpu_user_us").get<std::int64_t>());
  result.usage.cpu_system = microseconds(json.at("cpu_system_us").get<std::int64_t>());
  if (!json.at("peak_memory").is_null()) result.usage.peak_memory = Bytes{json.at("peak_memory").get<std::uint64_t>()};
  for (const Json& violation : json.at("violations")) result.violations.push_back(violation_from(violation));
  result.violations_dropped = json.at("violations_dropped");
  result.violations_hidden = json.at("violations_hidden");
  result.id = json.at("id");
  for (const Json& record : json.at("egress")) result.egress.push_back(egress_from(record));
  result.egress_dropped = json.at("egress_dropped");
  for (const Json& clause : json.at("enforcement")) result.enforcement.push_back(clause_from(clause));
  result.backend = to_bytes(json.at("backend"));
  for (const Json& tried : json.at("tried")) result.tried.push_back(tried_from(tried));
}

Json to_json(const SandboxStats& stats) {
  return {{"cpu_us", stats.cpu.count()},
          {"memory", stats.memory.count},
          {"processes", stats.processes},
          {"execs", stats.execs},
          {"bytes_written", stats.bytes_written}};
}
void from_json(const Json& json, SandboxStats& stats) {
  stats.cpu = microseconds(json.at("cpu_us").get<std::int64_t>());
  stats.memory = {json.at("memory").get<std::uint64_t>()};
  stats.processes = json.at("processes");
  stats.execs = json.at("execs");
  stats.bytes_written = json.at("bytes_written");
}

Json to_json(const FileInfo& info) {
  Json json{{"path", from_bytes(info.path)},       {"type", static_cast<int>(info.type)}, {"size", info.size}, {"mode", info.mode},
            {"modified_ns", ticks(info.modified)}, {"target", from_bytes(info.target)}};
  if (info.changed) json["changed_ns"] = ticks(*info.changed);
  return json;
}
void from_json(const Json& json, FileInfo& info) {
  info.path = to_bytes(json.at("path"));
  info.type = enum_from(json.at("type"), FileType::kOther);
  info.size = json.at("size");
  info.mode = json.at("mode");
  info.modified = time_from(json.at("modified_ns"));
  info.target = to_bytes(json.at("target"));
  if (const auto changed = json.find("changed_ns"); changed != json.end()) info.changed = time_from(*changed);
}
Json to_json(const std::vector<FileInfo>& files) { return list_of(files); }
void from_json(const Json& json, std::vector<FileInfo>& files) {
  for (const Json& info : json) from_json(info, files.emplace_back());
}

Json to_json(const GlobResult& result) { return {{"files", to_json(result.files)}, {"complete", result.complete}}; }
void from_json(const Json& json, GlobResult& result) {
  from_json(json.at("files"), result.files);
  result.complete = json.at("complete");
}

Json to_json(const GrepResult& result) {
  Json matches = Json::array();
  for (const GrepMatch& match : result.matches)
    matches.push_back({{"path", from_bytes(match.path)}, {"line", match.line}, {"text", from_bytes(match.text)}});
  return {{"matches", matches}, {"complete", result.complete}};
}
void from_json(const Json& json, GrepResult& result) {
  for (const Json& match : json.at("matches"))
    result.matches.push_back({to_bytes(match.at("path")), match.at("line").get<std::uint64_t>(), to_bytes(match.at("text"))});
  result.complete = json.at("complete");
}

Json to_json(const std::vector<txn::Change>& changes) { return list_of(changes); }
void from_json(const Json& json, std::vector<txn::Change>& changes) {
  for (const Json& change : json) changes.push_back(change_from(change));
}

Json to_json(const Error& error) {
  return {{"code", static_cast<int>(error.code())}, {"what", from_bytes(error.what())}, {"reason", from_bytes(error.reason())},
          {"next", from_bytes(error.next())},       {"errno", error.errnum()},          {"call", error.call()},
          {"exit_code", error.exit_code()}};
}
Error error_from(const Json& json) {
  try {
    Error error(enum_from(json.at("code"), Code::kUnauthenticated), to_bytes(json.at("what")));
    return std::move(error)
        .reason(to_bytes(json.at("reason")))
        .next(to_bytes(json.at("next")))
        .sys(json.at("errno").get<int>(), json.at("call").get<std::string>())
        .exit_code(json.at("exit_code").get<int>());
  } catch (const std::exception&) {
    return damaged_answer();
  }
}
Error damaged_answer() { return Error(Code::kDataLoss, "cannot read the recording").reason("an answer in it is damaged"); }

}  // namespace belljar::decorate
