// The fields of a record, as JSON.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "audit/line.h"
#include "base/digest.h"
#include "base/encoding.h"
#include "base/format.h"
#include "belljar/audit.h"
#include "policy/json.h"

namespace belljar {
namespace {

// Whether json_text had to replace a byte: it writes the escape \ufffd then, and only then.
bool holds_replaced(std::string_view json) {
  for (std::size_t at = json.find('\\'); at != std::string_view::npos; at = json.find('\\', at + 2)) {
    if (json.substr(at + 1, 5) == "ufffd") return true;
  }
  return false;
}

}  // namespace

void AuditFields::name(std::string_view name) {
  if (!members_.empty()) members_ += ',';
  members_ += policy::json_text(name);
  members_ += ':';
}

AuditFields& AuditFields::text(std::string_view field, std::string_view value) & {
  const std::string_view kept = value.substr(0, kMaxText);
  const std::string json = policy::json_text(kept);
  name(field);
  members_ += json;
  if (holds_replaced(json)) {
    name(std::string(field) + "_hex");
    members_ += "\"" + to_hex(kept) + "\"";
  }
  if (kept.size() < value.size()) number(std::string(field) + "_bytes", static_cast<std::int64_t>(value.size()));
  return *this;
}

// What is cut is still vouched for: by how long the whole was, and by a hash of it.
AuditFields& AuditFields::texts(std::string_view field, const std::vector<std::string>& values) & {
  std::string shown, hex, whole;
  std::size_t room = kMaxText, count = 0;
  bool cut = false;
  for (const std::string& value : values) {
    whole.append(value).push_back('\0');
    if (cut || room == 0) continue;
    const std::string_view kept = std::string_view(value).substr(0, room);
    const char* const comma = count++ > 0 ? "," : "";
    shown += comma + policy::json_text(kept);
    hex += comma + ('"' + to_hex(kept) + '"');
    cut = kept.size() < value.size();
    room -= std::min(room, kept.size() + 1);  // so that there is an end of empty ones, too
  }
  name(field);
  members_ += "[" + shown + "]";
  if (holds_replaced(shown)) {
    name(std::string(field) + "_hex");
    members_ += "[" + hex + "]";
  }
  if (!cut && count == values.size()) return *this;
  if (count < values.size()) number(std::string(field) + "_omitted", static_cast<std::int64_t>(values.size() - count));
  number(std::string(field) + "_bytes", static_cast<std::int64_t>(whole.size() - values.size()));
  return text(std::string(field) + "_sha256", to_hex(sha256(whole)));
}

AuditFields& AuditFields::number(std::string_view field, std::int64_t value) & {
  name(field);
  members_ += format("{}", value);
  return *this;
}

AuditFields& AuditFields::boolean(std::string_view field, bool value) & {
  name(field);
  members_ += value ? "true" : "false";
  return *this;
}

}  // namespace belljar
