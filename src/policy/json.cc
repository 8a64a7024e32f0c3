#include "policy/json.h"

#include "base/format.h"

namespace belljar::policy {
namespace {

std::size_t valid_sequence(std::string_view text) noexcept {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xC2 && lead < 0xE0 ? 2
                                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80) return 0;
  }
  const auto second = length > 1 ? static_cast<unsigned char>(text[1]) : 0U;
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) || (lead == 0xF0 && second < 0x90) ||
      (lead == 0xF4 && second > 0x8F))
    return 0;
  return length;
}

struct JsonWriter {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(double value) const { return format("{}", value); }
  std::string operator()(std::uint64_t value) const { return format("{}", value); }
  std::string operator()(const PortPair& ports) const {
    return ports.host == ports.inside ? to_string(ports) : json_text(to_string(ports));
  }
  std::string operator()(Bytes value) const { return json_text(to_string(value)); }
  std::string operator()(std::chrono::milliseconds value) const { return json_text(belljar::to_string(value)); }
  std::string operator()(const std::string& value) const { return json_text(value); }
  std::string operator()(const FsEntry& entry) const {
    return format("{{{}:{},\"access\":\"{}\"}}", entry.glob ? "\"glob\"" : "\"path\"", json_text(entry.path),
                  to_string(entry.access));
  }
  std::string operator()(const Volume& volume) const {
    return format("{{\"source\":{},\"target\":{},\"readonly\":{}}}", json_text(volume.source), json_text(volume.target),
                  volume.readonly);
  }
  template <class Element>
  std::string operator()(const std::vector<Element>& values) const {
    std::string text = "[";
    for (const Element& value : values) {
      if (text.size() > 1) text += ',';
      text += (*this)(value);
    }
    return text + ']';
  }
  std::string operator()(const std::map<std::string, std::string>& values) const {
    std::string text = "{";
    for (const auto& [name, value] : values) {
      if (text.size() > 1) text += ',';
      text += json_text(name) + ':' + json_text(value);
    }
    return text + '}';
  }
};

}  // namespace

std::string json_text(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const std::size_t length = valid_sequence(text);
    const char c = text[0];
    if (length == 0) result += "\\ufffd";
    else if (c == '"' || c == '\\') result += '\\', result += c;
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) result += format("\\u{:04x}", static_cast<unsigned>(c));
    else result += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result + '"';
}

std::string to_json(const Value& value) { return std::visit(JsonWriter{}, value); }

std::string to_json(const Origin& origin) {
  return format("{{\"layer\":{},\"file\":{},\"line\":{}}}", json_text(origin.layer), json_text(origin.file), origin.line);
}

}  // namespace belljar::policy
