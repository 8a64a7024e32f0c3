// Values of keys: from text, into a Policy, out of it, and as TOML.
//
// A Key points to its field by a function that returns a variant of pointers, so one visit serves all keys,
// and a new key needs no code here. store() accepts a value only if its type is the field's: the parser has
// made it by the key's type, and an enumeration comes as text.
#include <charconv>
#include <cmath>
#include <type_traits>

#include "base/ascii.h"
#include "base/format.h"
#include "policy/backends.h"
#include "policy/names.h"
#include "policy/schema.h"

namespace belljar::policy {
namespace {

Error not_what_was_expected(const Key& key, std::string_view text) {
  return Error(Code::kInvalidArgument, format("{} is not {}", quoted(text), expected(key)));
}

template <class Number>
std::optional<Number> number_from(std::string_view text) {
  Number number{};
  const auto [end, errc] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (errc != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool names_value(const Key& key, std::string_view text) {
  std::string_view rest = key.values;
  while (!rest.empty()) {
    const std::size_t bar = rest.find('|');
    if (rest.substr(0, bar) == text) return true;
    rest = bar == std::string_view::npos ? std::string_view() : rest.substr(bar + 1);
  }
  return false;
}

Result<Value> enum_from(const Key& key, std::string_view text) {
  if (names_value(key, text)) return Value(std::string(text));
  std::vector<std::string_view> names;
  std::string_view rest = key.values;
  while (!rest.empty()) {
    const std::size_t bar = rest.find('|');
    names.push_back(rest.substr(0, bar));
    rest = bar == std::string_view::npos ? std::string_view() : rest.substr(bar + 1);
  }
  std::string all;
  for (const std::string_view name : names) all += format("{}`{}`", all.empty() ? "" : ", ", name);
  const std::string_view near = nearest(text, names), known = known_synonym(key.name, text);
  std::string next = !known.empty() ? std::string(known) : near.empty() ? "" : format("did you mean `{}`?", near);
  if (key.name == "backend") next = backend_hint(text);
  Error error(Code::kInvalidArgument, format("{} is not a value of `{}`", quoted(text), key.name));
  return std::move(error).reason(format("it takes one of {}", all)).next(next);
}

Result<Value> map_from(const Key& key, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return Error(Code::kInvalidArgument, format("{} is not a variable of `{}`", quoted(text), key.name))
        .reason("it has no name before an equals sign")
        .next("write NAME=value");
  }
  return Value(std::map<std::string, std::string>{{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))}});
}

}  // namespace

// As for limits that are counts: none is said by leaving the key out, and no network by network.mode.
Result<void> check_amount(std::string_view key, Bytes size) {
  const bool heads = key == "limits.egress_heads";
  if (size.count != 0 || (key != "limits.egress_bytes" && key != "limits.egress_rate" && !heads)) return {};
  return Error(Code::kInvalidArgument, format("{} is 0", key))
      .reason("it limits what passes, to 1 byte at least")
      .next(heads ? "leave the key out for 64KiB; `--net none` lets nothing pass"
                  : "leave the key out for no limit; `--net none` lets nothing pass");
}

Result<Value> value_from_text(const Key& key, std::string_view text) {
  switch (key.type) {
    case Type::kBool:
      if (text == "true") return Value(true);
      if (text == "false") return Value(false);
      return not_what_was_expected(key, text);
    case Type::kNumber: {
      const auto number = number_from<double>(text);
      if (!number || !std::isfinite(*number) || *number <= 0) return not_what_was_expected(key, text);
      return Value(*number);
    }
    case Type::kCount: {
      const auto number = number_from<std::uint64_t>(text);
      if (!number || *number == 0) return not_what_was_expected(key, text);
      return Value(*number);
    }
    case Type::kSize: {
      const Bytes size = BELLJAR_TRY(parse_bytes(text));
      BELLJAR_CHECK(check_amount(key.name, size));
      return Value(size);
    }
    case Type::kDuration:
      return Value(BELLJAR_TRY(parse_duration(text)));
    case Type::kEnum:
      return enum_from(key, text);
    case Type::kText:
    case Type::kPath:
      return Value(std::string(text));
    case Type::kTexts:
    case Type::kPaths:
      return Value(std::vector<std::string>{std::string(text)});
    case Type::kPorts: {
      const std::size_t colon = std::min(text.find(':'), text.size());
      const auto host = number_from<std::uint16_t>(text.substr(0, colon));
      const auto inside = colon == text.size() ? host : number_from<std::uint16_t>(text.substr(colon + 1));
      if (!host || !inside || *host == 0 || *inside == 0)
        return Error(Code::kInvalidArgument, format("{} is not a port (1 to 65535)", quoted(text)));
      return Value(std::vector<PortPair>{{*host, *inside}});
    }
    case Type::kMap:
      return map_from(key, text);
    case Type::kEntries:
    case Type::kVolumes:
      break;
  }
  return not_what_was_expected(key, text);
}

void store(const Key& key, Policy& policy, const Value& value) {
  std::visit(
      [&value](auto* field) {
        using FieldType = std::remove_pointer_t<decltype(field)>;
        if constexpr (std::is_same_v<FieldType, std::vector<FsEntry>>) {
          return;  // entries join by rule, merge.cc
        } else if constexpr (std::is_enum_v<FieldType>) {
          if (const auto* text = std::get_if<std::string>(&value)) *field = value_of<FieldType>(*text).value_or(*field);
        } else if constexpr (requires { typename FieldType::value_type; } && requires(FieldType f) { f.has_value(); }) {
          if constexpr (std::is_enum_v<typename FieldType::value_type>) {
            if (const auto* text = std::get_if<std::string>(&value)) *field = value_of<typename FieldType::value_type>(*text);
          } else if (const auto* held = std::get_if<typename FieldType::value_type>(&value)) *field = *held;
        } else {
          if (const auto* held = std::get_if<FieldType>(&value)) *field = *held;
        }
      },
      key.field(policy));
}

std::optional<Value> load(const Key& key, const Policy& policy) {
  // The fields of the schema serve both ways; nothing is written through this one.
  return std::visit(
      [](const auto* field) -> std::optional<Value> {
        using FieldType = std::remove_cv_t<std::remove_pointer_t<decltype(field)>>;
        if constexpr (std::is_enum_v<FieldType>) {
          return Value(std::string(name_of(*field)));
        } else if constexpr (requires(FieldType f) { f.has_value(); }) {
          if (!field->has_value()) return std::nullopt;
          if constexpr (std::is_enum_v<typename FieldType::value_type>) return Value(std::string(name_of(**field)));
          else return Value(**field);
        } else {
          return Value(*field);
        }
      },
      key.field(const_cast<Policy&>(policy)));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

namespace {

std::string toml_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\', result += c;
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) result += format("\\u{:04X}", static_cast<unsigned>(c));
    else result += c;
  }
  return result + "\"";
}

bool bare_key(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (!(c == '_' || c == '-' || is_alnum(c))) return false;
  }
  return true;
}

struct TomlWriter {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(double value) const {
    std::string text = format("{}", value);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }
  std::string operator()(std::uint64_t value) const { return format("{}", value); }
  std::string operator()(Bytes value) const { return toml_text(to_string(value)); }
  std::string operator()(std::chrono::milliseconds value) const { return toml_text(belljar::to_string(value)); }
  std::string operator()(const std::string& value) const { return toml_text(value); }
  template <class Element>
  std::string operator()(const std::vector<Element>& values) const {
    std::string text;
    for (const Element& value : values) text += (text.empty() ? "" : ", ") + (*this)(value);
    return "[" + text + "]";
  }
  std::string operator()(const PortPair& ports) const {
    return ports.host == ports.inside ? to_string(ports) : toml_text(to_string(ports));
  }
  std::string operator()(const std::map<std::string, std::string>& values) const {
    std::string text;
    for (const auto& [name, value] : values) {
      text += format("{}{} = {}", text.empty() ? "" : ", ", bare_key(name) ? name : toml_text(name), toml_text(value));
    }
    return text.empty() ? "{}" : "{ " + text + " }";
  }
  std::string operator()(const FsEntry& entry) const {
    return format("{{ {} = {}, access = \"{}\" }}", entry.glob ? "glob" : "path", toml_text(entry.path), to_string(entry.access));
  }
  std::string operator()(const Volume& volume) const {
    return format("{{ source = {}, target = {}, readonly = {} }}", toml_text(volume.source), toml_text(volume.target),
                  volume.readonly);
  }
};

}  // namespace

std::string to_toml(const Value& value) { return std::visit(TomlWriter{}, value); }

}  // namespace belljar::policy
