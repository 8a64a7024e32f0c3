// The fields of a record, as JSON.
#include "base/format.h"
#include "belljar/audit.h"
#include "policy/json.h"

namespace belljar {
namespace {

std::string hexadecimal(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) text += format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

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
  const bool cut = kept.size() < value.size();
  if (!cut && holds_replaced(json)) {
    name(std::string(field) + "_hex");
    members_ += "\"" + hexadecimal(kept) + "\"";
  }
  if (cut) number(std::string(field) + "_bytes", static_cast<std::int64_t>(value.size()));
  return *this;
}

AuditFields& AuditFields::texts(std::string_view field, const std::vector<std::string>& values) & {
  name(field);
  members_ += '[';
  std::size_t room = kMaxText, shown = 0;
  for (const std::string& value : values) {
    if (value.size() > room) break;
    room -= value.size();
    if (shown++ > 0) members_ += ',';
    members_ += policy::json_text(value);
  }
  members_ += ']';
  if (shown < values.size()) number(std::string(field) + "_omitted", static_cast<std::int64_t>(values.size() - shown));
  return *this;
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
