#include "runtime/kept_run.h"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/encoding.h"
#include "base/format.h"
#include "policy/json.h"
#include "runtime/json.h"

namespace belljar::runtime {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;

// Of one violation as JSON, names escaped at their worst.
std::size_t room_for(const Violation& violation) {
  constexpr std::size_t kKeys = 400, kWorst = 6 + 2;  // \u0001, and target_hex
  return kKeys + violation.target.size() * kWorst + violation.program.size() * kWorst + violation.allowed.size() +
         violation.origin.file.size() * kWorst;
}

// Reads fields with fallbacks instead of exceptions: the file may come from another version.
std::string text_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}
template <class Number>
Number number_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<Number>() : Number{};
}

// "2023-11-14T22:13:20.000005Z"
std::chrono::system_clock::time_point time_from(const std::string& text) {
  std::tm utc{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  long micro = 0;
  if (rest == nullptr || std::sscanf(rest, ".%6ldZ", &micro) != 1) return {};
  return std::chrono::system_clock::from_time_t(::timegm(&utc)) + std::chrono::microseconds(micro);
}

Violation violation_from(const Json& object) {
  Violation violation;
  violation.time = time_from(text_at(object, "time"));
  violation.sequence = number_at<std::uint64_t>(object, "sequence");
  violation.count = number_at<std::uint64_t>(object, "count");
  violation.pid = number_at<int>(object, "pid");
  violation.program = text_at(object, "program");
  violation.operation = text_at(object, "operation");
  violation.target =
      object.contains("target_hex") ? from_hex(text_at(object, "target_hex")).value_or("") : text_at(object, "target");
  violation.rule = text_at(object, "rule");
  if (const auto origin = object.find("origin"); origin != object.end() && origin->is_object())
    violation.origin = {text_at(*origin, "layer"), text_at(*origin, "file"), number_at<int>(*origin, "line")};
  violation.errnum = number_at<int>(object, "errno");
  violation.allowed = text_at(object, "allowed");
  return violation;
}

Reason reason_from(std::string_view name) {
  for (int value = 0; value <= static_cast<int>(Reason::kStartFailed); ++value) {
    if (to_string(static_cast<Reason>(value)) == name) return static_cast<Reason>(value);
  }
  return Reason::kExited;
}

ExecResult result_from(const Json& object) {
  ExecResult result;
  result.id = text_at(object, "id");
  result.exit_code = number_at<int>(object, "exit_code");
  result.reason = reason_from(text_at(object, "reason"));
  result.violations_dropped = number_at<std::uint64_t>(object, "violations_dropped");
  result.violations_hidden = number_at<std::uint64_t>(object, "violations_hidden");
  for (const Json& violation : object.value("violations", Json::array())) {
    if (violation.is_object()) result.violations.push_back(violation_from(violation));
  }
  return result;
}

}  // namespace

std::string to_json(const KeptRun& run) {
  ExecResult kept;
  kept.id = run.result.id;
  kept.exit_code = run.result.exit_code;
  kept.reason = run.result.reason;
  kept.violations_dropped = run.result.violations_dropped;
  kept.violations_hidden = run.result.violations_hidden;
  std::size_t room = kMaxKeptBytes;
  for (const Violation& violation : run.result.violations) {
    const std::size_t needed = room_for(violation);
    if (needed > room) {
      kept.violations_dropped += violation.count;
      continue;
    }
    room -= needed;
    kept.violations.push_back(violation);
  }
  return format("{{\"version\":{},\"program\":{},\"workspace\":{},\"result\":{}}}", kVersion, policy::json_text(run.program),
                policy::json_text(run.workspace), to_json(kept, JsonStreams::kOmit));
}

Result<KeptRun> parse_kept_run(std::string_view text) {
  const Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto result = object.is_object() ? object.find("result") : object.end();
  if (!object.is_object() || number_at<int>(object, "version") != kVersion || result == object.end() || !result->is_object())
    return Error(Code::kDataLoss, "cannot read what was kept of a run").reason("it is incomplete, or from another version");
  return KeptRun{text_at(object, "program"), text_at(object, "workspace"), result_from(*result)};
}

}  // namespace belljar::runtime
