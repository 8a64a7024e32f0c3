#include "policy/json.h"

#include "base/encoding.h"
#include "base/format.h"

namespace belljar::policy {
namespace {

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
    const std::size_t length = utf8_size(text);
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
