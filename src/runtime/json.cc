#include "runtime/json.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/encoding.h"
#include "base/format.h"
#include "base/rfc3339.h"
#include "belljar/violation_text.h"

namespace belljar::runtime {
namespace {

using OrderedJson = nlohmann::ordered_json;

double to_milliseconds(std::chrono::microseconds time) { return static_cast<double>(time.count()) / 1000.0; }

OrderedJson json_of(const Origin& origin) {
  return {{"layer", to_utf8(origin.layer).text}, {"file", to_utf8(origin.file).text}, {"line", origin.line}};
}

OrderedJson json_of(const Violation& violation) {
  Utf8Text target = to_utf8(violation.target);
  OrderedJson object = {{"time", rfc3339(violation.time)},
                        {"sequence", violation.sequence},
                        {"count", violation.count},
                        {"pid", violation.pid},
                        {"program", to_utf8(violation.program).text},
                        {"operation", to_utf8(violation.operation).text},
                        {"target", std::move(target.text)},
                        {"rule", to_utf8(violation.rule).text},
                        {"origin", json_of(violation.origin)},
                        {"errno", violation.errnum},
                        {"errno_name", errno_name(violation.errnum)},
                        {"allowed", to_utf8(violation.allowed).text}};
  if (target.replaced > 0) object["target_hex"] = to_hex(violation.target);  // the name as it is
  return object;
}

OrderedJson json_of(const EgressRecord& record) {
  return {{"time", rfc3339(record.time)},
          {"pid", record.pid},
          {"program", to_utf8(record.program).text},
          {"protocol", record.protocol},
          {"method", to_utf8(record.method).text},
          {"host", to_utf8(record.host).text},
          {"port", record.port},
          {"address", record.address},
          {"allowed", record.allowed},
          {"reason", record.reason},
          {"rule", to_utf8(record.rule).text},
          {"bytes_sent", record.bytes_sent},
          {"bytes_received", record.bytes_received},
          {"duration_ms", to_milliseconds(record.duration)}};
}

OrderedJson json_of(const EnforcementClause& clause) {
  return {{"clause", clause.clause},
          {"asked", to_utf8(clause.asked).text},
          {"mechanism", clause.mechanism},
          {"enforced", to_string(clause.enforced)},
          {"detail", to_utf8(clause.detail).text}};
}

OrderedJson json_of(const TriedBackend& tried) {
  return {{"backend", to_utf8(tried.backend).text}, {"why", to_utf8(tried.why).text}};
}

template <class List>
OrderedJson json_list(const List& list) {
  OrderedJson array = OrderedJson::array();
  for (const auto& item : list) array.push_back(json_of(item));
  return array;
}

void add_stream(OrderedJson& object, const std::string& name, const Output& output) {
  Utf8Text text = to_utf8(output.bytes);
  object[name] = std::move(text.text);
  object[name + "_bytes"] = output.total;
  object[name + "_omitted"] = output.omitted;
  object[name + "_replaced"] = text.replaced;
}

}  // namespace

Utf8Text to_utf8(std::string_view text) {
  Utf8Text result;
  result.text.reserve(text.size());
  while (!text.empty()) {
    std::size_t length = utf8_size(text);
    if (length == 0) {
      result.text += "\xEF\xBF\xBD";
      ++result.replaced;
      length = 1;
    } else {
      result.text += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return result;
}

std::string to_json(const ExecResult& result, JsonStreams streams) {
  OrderedJson object;
  object["exit_code"] = result.exit_code;
  object["signal"] = result.signal ? OrderedJson(*result.signal) : OrderedJson(nullptr);
  object["reason"] = to_string(result.reason);
  object["message"] = to_utf8(result.message).text;
  object["limits_hit"] = result.limits_hit;
  if (streams == JsonStreams::kInclude) {
    add_stream(object, "stdout", result.out);
    add_stream(object, "stderr", result.err);
  }
  object["duration_ms"] = to_milliseconds(result.duration);
  object["usage"] = {
      {"cpu_user_ms", to_milliseconds(result.usage.cpu_user)},
      {"cpu_system_ms", to_milliseconds(result.usage.cpu_system)},
      {"peak_memory_bytes", result.usage.peak_memory ? OrderedJson(result.usage.peak_memory->count) : OrderedJson(nullptr)}};
  object["violations"] = json_list(result.violations);
  object["violations_dropped"] = result.violations_dropped;
  object["violations_hidden"] = result.violations_hidden;
  object["id"] = result.id.empty() ? OrderedJson(nullptr) : OrderedJson(result.id);
  object["egress"] = json_list(result.egress);
  object["egress_dropped"] = result.egress_dropped;
  object["enforcement"] = json_list(result.enforcement);
  object["backend"] = result.backend.empty() ? OrderedJson(nullptr) : OrderedJson(to_utf8(result.backend).text);
  object["tried"] = json_list(result.tried);
  return object.dump();
}

}  // namespace belljar::runtime
