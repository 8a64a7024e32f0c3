// One option for each key of the policy's schema that has a flag.
//
// The option's name, its help and the type of its value come from the schema, so that the two cannot differ.
// Lists grow with each use of the option. Of single values the last one counts, so that an alias can be
// overruled. The values become a layer like that of a file, with the flag as their origin, and pass the same
// checks.
//
// Options are built only if they occur among the words (may_be_given). A word that merely looks like one
// builds an option too many, which does no harm.
#include "cli/policy_flags.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/format.h"
#include "belljar/result.h"
#include "cli/command_line.h"
#include "policy/layer.h"
#include "policy/paths.h"
#include "policy/schema.h"

namespace belljar::cli {
namespace {

using policy::Key;
using policy::Type;

bool is_list(const Key& key) {
  return key.type == Type::kTexts || key.type == Type::kPaths || key.type == Type::kPorts || key.type == Type::kMap;
}

std::string_view value_name(const Key& key) {
  switch (key.type) {
    case Type::kSize:
      return "SIZE";
    case Type::kDuration:
      return "TIME";
    case Type::kNumber:
    case Type::kCount:
      return "N";
    case Type::kPath:
    case Type::kPaths:
      return "PATH";
    case Type::kPorts:
      return "PORT";
    case Type::kMap:
      return "NAME=VALUE";
    case Type::kEnum:
      return key.values;
    default:
      return "TEXT";
  }
}

void add_one(const OptionParser& app, PolicyFlags& flags, const Key& key) {
  const std::string name(key.flag);
  if (key.type == Type::kBool) {
    app.on_flag(
           name,
           [&flags, &key](bool given) { flags.values.emplace_back(&key, std::vector<std::string>{given ? "true" : "false"}); },
           std::string(key.doc))
        .check([](const std::string& value) {
          return value == "true" || value == "false" ? std::string()
                                                     : format("{} is no value of it: true|false", belljar::quoted(value));
        })
        .group("Policy");
    return;
  }
  const Option option = app.on_option(
      name, [&flags, &key](const std::vector<std::string>& given) { flags.values.emplace_back(&key, given); },
      std::string(key.doc));
  option.type_name(std::string(value_name(key))).group("Policy");
  // A list grows each time the option is given.
  if (is_list(key)) option.repeatable();
  else option.last_counts();
}

// Whether an option is given, as `--name` or `--name=value`, or help is asked for. A word that only looks like one (the value of
// another option) does no harm: an option more is built.
bool may_be_given(std::span<const char* const> words, std::string_view name) {
  for (const char* raw : words) {
    const std::string_view word = raw == nullptr ? std::string_view() : std::string_view(raw);
    if (word == "--") return false;
    if (word == "--help" || word == "-h" || word == "--help-all") return true;
    if (word.starts_with(name) && (word.size() == name.size() || word[name.size()] == '=')) return true;
  }
  return false;
}

bool wanted(std::span<const char* const> words, std::string_view name) { return words.empty() || may_be_given(words, name); }

// Lists of one element each, put together.
void append(policy::Value& to, const policy::Value& from) {
  if (auto* texts = std::get_if<std::vector<std::string>>(&to)) {
    const auto& more = std::get<std::vector<std::string>>(from);
    texts->insert(texts->end(), more.begin(), more.end());
  } else if (auto* ports = std::get_if<std::vector<PortPair>>(&to)) {
    const auto& more = std::get<std::vector<PortPair>>(from);
    ports->insert(ports->end(), more.begin(), more.end());
  } else if (auto* map = std::get_if<std::map<std::string, std::string>>(&to)) {
    for (const auto& [name, text] : std::get<std::map<std::string, std::string>>(from)) (*map)[name] = text;
  } else {
    to = from;
  }
}

Result<policy::Value> value_of_flag(const Key& key, const std::string& text) {
  if (key.type == Type::kText || key.type == Type::kTexts || key.type == Type::kPaths)
    BELLJAR_CHECK(policy::check_element(key, text));
  return policy::value_from_text(key, text);
}

}  // namespace

void add_policy_options(const OptionParser& app, PolicyFlags& flags, std::span<const char* const> words) {
  if (wanted(words, "--policy"))
    app.add_option("--policy", flags.policy, "A mode, a profile or a file")
        .not_empty()
        .type_name("MODE|PROFILE|FILE")
        .group("Policy");
  if (wanted(words, "--workspace")) {
    app.add_option("--workspace", flags.workspace, "The directory the command works in (default: the current one)")
        .repeatable()
        .type_name("DIR")
        .group("Policy");
  }
  for (const Key& key : policy::keys()) {
    if (!key.flag.empty() && wanted(words, key.flag)) add_one(app, flags, key);
  }
}

void add_cwd_option(const OptionParser& app, PolicyFlags& flags, std::span<const char* const> words) {
  if (wanted(words, "--cwd"))
    app.add_option("--cwd", flags.cwd, "Where the command starts, inside the workspace").not_empty().type_name("DIR");
}

void add_login_flag(const OptionParser& app, PolicyFlags& flags, std::span<const char* const> words) {
  if (wanted(words, "--login")) app.add_flag("--login", flags.login, "Run the shell text in the user's login shell");
}

std::map<std::string, std::string> variables_set(const PolicyFlags& flags) {
  std::map<std::string, std::string> variables;
  for (const auto& [key, texts] : flags.values) {
    if (key->name != "environment.set") continue;
    for (const std::string& text : texts) {
      if (const std::size_t equals = text.find('='); equals != std::string::npos)
        variables[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  return variables;
}

Result<policy::Layer> flags_layer(const PolicyFlags& flags) {
  policy::Layer layer;
  layer.name = "flag";
  bool has_mode = false, has_domains = false;
  for (const auto& [key, texts] : flags.values) {
    policy::Setting setting{key, {}, {format("flag {}", key->flag), "", 0}, {}};
    bool first = true;
    for (const std::string& text : texts) {
      auto value = value_of_flag(*key, text);
      if (!value) {
        return Error(value.error().code(), format("{}: {}", key->flag, value.error().what()))
            .reason(value.error().reason())
            .next(value.error().next());
      }
      if (std::exchange(first, false)) setting.value = *std::move(value);
      else append(setting.value, *value);
    }
    has_mode = has_mode || key->name == "network.mode";
    has_domains = has_domains || key->name == "network.allowed_domains" || key->name == "network.allowed_requests";
    layer.settings.push_back(std::move(setting));
  }
  // A domain to allow says which network is meant.
  if (has_domains && !has_mode) {
    layer.settings.push_back({policy::find_key("network.mode"), std::string("proxy"), {"flag --allow-domain", "", 0}, {}});
  }
  return layer;
}

}  // namespace belljar::cli
