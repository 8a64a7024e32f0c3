// The effective policy in words: as TOML or JSON that reads back to the same policy, and with the origin of
// each value.
//
// `policy show` writes the keys that have a value, so that its output is a policy file. `policy explain`
// writes the complete rules instead, with what the mode, the secrets and the temporary directories imply,
// since that is what judges a path. The default secrets are counted in one line: hundreds of them would hide
// the rules that a person wrote. Passwords in URLs are replaced, for such output ends in logs and bug
// reports.
#include "policy/explain.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/format.h"
#include "policy/file_rules.h"
#include "policy/json.h"
#include "policy/paths.h"
#include "policy/protected.h"
#include "policy/schema.h"

namespace belljar::policy {
namespace {

std::string_view table_of(std::string_view name) {
  const std::size_t dot = name.find('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}
std::string_view leaf_of(std::string_view name) { return name.substr(name.find('.') + 1); }

// The short keys for entries are shown as the entries they became.
bool shown(const Key& key) { return key.join != Join::kEntries || key.type == Type::kEntries; }

// scheme://USER:PASSWORD@HOST without the password: what is shown ends in logs and bug reports.
void hide_password(std::string& url) {
  const std::size_t scheme = url.find("://"), at = url.rfind('@');
  if (at == std::string::npos) return;
  const std::size_t user = scheme == std::string::npos ? 0 : scheme + 3, colon = url.find(':', user);
  if (colon < at) url.replace(colon + 1, at - colon - 1, "***");
}

std::optional<Value> value_to_show(const Key& key, const Policy& policy) {
  if (!shown(key)) return std::nullopt;
  std::optional<Value> value = load(key, policy);
  if (value && key.name == "network.upstream_proxy") hide_password(std::get<std::string>(*value));
  // Lists that are empty by default say nothing; an emptied list of defaults does.
  if (value && key.fallback == "[]") {
    if (const auto* entries = std::get_if<std::vector<FsEntry>>(&*value); entries != nullptr && entries->empty())
      return std::nullopt;
    if (const auto* texts = std::get_if<std::vector<std::string>>(&*value); texts != nullptr && texts->empty()) return std::nullopt;
    if (const auto* ports = std::get_if<std::vector<PortPair>>(&*value); ports != nullptr && ports->empty()) return std::nullopt;
    if (const auto* volumes = std::get_if<std::vector<Volume>>(&*value); volumes != nullptr && volumes->empty())
      return std::nullopt;
  }
  if (value && key.type == Type::kText && key.fallback.empty() && std::get<std::string>(*value).empty()) return std::nullopt;
  if (value && key.type == Type::kMap && std::get<std::map<std::string, std::string>>(*value).empty()) return std::nullopt;
  return value;
}

// Rules with what the mode, secrets and temporary directories imply spelled out.
std::optional<Value> value_to_explain(const Key& key, const Effective& effective) {
  if (key.type == Type::kEntries) return Value(effective.complete.entries);
  return value_to_show(key, effective.policy);
}

Origin origin_or_built_in(const Effective& effective, const std::string& name) {
  const auto found = effective.origins.find(name);
  return found == effective.origins.end() ? Origin{"built-in", "", 0} : found->second;
}

// Some hundreds, between which the rules that somebody wrote are not seen.
std::string secrets_line(std::string_view name, const std::vector<FsEntry>& entries) {
  const auto is_secret = [](const FsEntry& entry) { return entry.kind == RuleKind::kDefaultSecret; };
  constexpr int kNamed = 3;
  std::string some;
  int count = 0;
  for (const FsEntry& entry : entries) {
    if (is_secret(entry) && ++count <= kNamed) some += (some.empty() ? "" : ", ") + escaped(entry.path);
  }
  if (count <= kNamed) return {};
  return format("{} += none  {} secrets: {} ... (belljar policy explain --all)  # default secrets\n", name, count, some);
}

std::string element_lines(const Effective& effective, std::string_view name, const Value& value, ShownSecrets secrets) {
  std::string text;
  const auto line = [&](const std::string& element, const std::string& shown_as) {
    text += format("{} += {}  # {}\n", name, escaped(shown_as),
                   to_string(origin_or_built_in(effective, std::string(name) + "[" + element + "]")));
  };
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    for (const std::string& element : *texts) line(element, to_toml(element));
  } else if (const auto* ports = std::get_if<std::vector<PortPair>>(&value)) {
    for (const PortPair& port : *ports) line(to_string(port), to_string(port));
  } else if (const auto* map = std::get_if<std::map<std::string, std::string>>(&value)) {
    for (const auto& [key, element] : *map) line(key, key + " = " + to_toml(element));
  } else if (const auto* entries = std::get_if<std::vector<FsEntry>>(&value)) {
    std::string folded = secrets == ShownSecrets::kCounted ? secrets_line(name, *entries) : std::string();
    const bool folds = !folded.empty();
    for (const FsEntry& entry : *entries) {
      if (folds && entry.kind == RuleKind::kDefaultSecret) {
        text += std::exchange(folded, {});
        continue;
      }
      text += format("{} += {:5} {}{}  # {}\n", name, to_string(entry.access), escaped(entry.path), entry.glob ? " (pattern)" : "",
                     to_string(entry.origin));
    }
  } else if (const auto* volumes = std::get_if<std::vector<Volume>>(&value)) {
    for (const Volume& volume : *volumes) {
      text += format("{} += {} -> {}{}  # {}\n", name, escaped(volume.source), escaped(volume.target),
                     volume.readonly ? " (read-only)" : "", to_string(volume.origin));
    }
  }
  return text;
}

bool is_collection(const Key& key) {
  return key.type == Type::kTexts || key.type == Type::kPaths || key.type == Type::kPorts || key.type == Type::kMap ||
         key.type == Type::kEntries || key.type == Type::kVolumes;
}

std::string note_for(const Policy& policy, const MergeContext& context, std::string_view path, Access access, bool& kept_by_name) {
  if (policy.mode == Mode::kDangerFullAccess || policy.mode == Mode::kExternalSandbox) return {};
  const Filesystem& filesystem = policy.filesystem;
  if (access != Access::kNone && is_scratch(filesystem, path))
    return "scratch: writes go to a layer of the sandbox and are discarded at the end (filesystem.scratch)";
  if (filesystem.tmp == Tmp::kPrivate && access == Access::kRead) {
    for (const std::string_view directory : {std::string_view("/tmp"), std::string_view("/var/tmp"), std::string_view("/dev/shm"),
                                             std::string_view(context.runtime_dir)}) {
      if (directory == "/tmp" && filesystem.exclude_slash_tmp) continue;
      if (!directory.empty() && is_within(path, directory))
        return format("{} is private to the sandbox: writable, up to {}, discarded at the end", directory,
                      to_string(filesystem.tmp_size));
    }
  }
  if (access == Access::kWrite && filesystem.protect != Protect::kNone) {
    if (const std::string_view name = protected_name_in(path); !name.empty()) {
      // Git itself has to write there: contents are judged.
      const bool judged = filesystem.protect == Protect::kDefault && (folds_to(name, ".git") || folds_to(name, ".gitmodules"));
      kept_by_name = !judged;
      return format("{} is a protected name: inside a writable root {} (filesystem.protect)", quoted(name),
                    judged ? "nothing is written there that git would run" : "it stays read-only");
    }
  }
  if (access == Access::kRead && filesystem.caches != Caches::kOff) {
    for (const std::string& cache : filesystem.cache_dirs) {
      if (is_within(path, cache))
        return filesystem.caches == Caches::kWorkspace
                   ? "a cache: writes go to a layer of the sandbox, which is kept for the workspace's next command"
                   : "a cache: writes go to a layer of the sandbox and are discarded at the end";
    }
  }
  return {};
}

}  // namespace

std::string to_toml_text(const Effective& effective) {
  std::string text, table;
  for (const Key& key : keys()) {
    const auto value = value_to_show(key, effective.policy);
    if (!value || key.type == Type::kEntries) continue;
    if (table_of(key.name) != table) {
      table = table_of(key.name);
      text += format("\n[{}]\n", table);
    }
    text += format("{} = {}\n", leaf_of(key.name), to_toml(*value));
  }
  if (!effective.policy.filesystem.entries.empty()) text += "\n";
  for (const FsEntry& entry : effective.policy.filesystem.entries) {
    text += format("[[filesystem.entries]]\n{} = {}\naccess = \"{}\"\n", entry.glob ? "glob" : "path", to_toml(entry.path),
                   to_string(entry.access));
  }
  return text;
}

std::string to_json_text(const Effective& effective) {
  std::string text = "{", table;
  const auto open_table = [&](std::string_view name) {
    if (name == table) return;
    if (!table.empty()) text += '}';
    table = name;
    if (text.size() > 1) text += ',';
    text += json_text(table) + ":{";
  };
  for (const Key& key : keys()) {
    const auto value = value_to_show(key, effective.policy);
    if (!value) continue;
    if (!table_of(key.name).empty()) open_table(table_of(key.name));
    if (text.back() != '{') text += ',';
    text += json_text(leaf_of(key.name)) + ':' + to_json(*value);
  }
  return text + (table.empty() ? "}\n" : "}}\n");
}

std::string explain_text(const Effective& effective, ShownSecrets secrets) {
  std::string text;
  for (const Key& key : keys()) {
    const auto value = value_to_explain(key, effective);
    if (!value) continue;
    if (is_collection(key)) {
      const std::string lines = element_lines(effective, key.name, *value, secrets);
      text += !lines.empty() ? lines : format("{} = []  # {}\n", key.name, origin_of(effective, std::string(key.name)));
    } else {
      text += format("{} = {}  # {}\n", key.name, escaped(to_toml(*value)), origin_of(effective, std::string(key.name)));
    }
  }
  return text;
}

std::string explain_json(const Effective& effective) {
  std::string text = "{\"values\":[";
  bool first = true;
  const auto row = [&](std::string_view name, const Value& value, const Origin& origin) {
    text +=
        format("{}{{\"key\":{},\"value\":{},\"origin\":{}}}", first ? "" : ",", json_text(name), to_json(value), to_json(origin));
    first = false;
  };
  for (const Key& key : keys()) {
    const auto value = value_to_explain(key, effective);
    if (!value) continue;
    const std::string name(key.name);
    if (const auto* texts = std::get_if<std::vector<std::string>>(&*value)) {
      for (const std::string& element : *texts) row(key.name, element, origin_or_built_in(effective, name + "[" + element + "]"));
    } else if (const auto* entries = std::get_if<std::vector<FsEntry>>(&*value)) {
      for (const FsEntry& entry : *entries) row(key.name, std::vector<FsEntry>{entry}, entry.origin);
    } else {
      row(key.name, *value, origin_or_built_in(effective, name));
    }
  }
  text += "],\"warnings\":[";
  for (std::size_t i = 0; i < effective.warnings.size(); ++i) text += (i == 0 ? "" : ",") + json_text(effective.warnings[i]);
  return text + "]}\n";
}

Result<PathAnswer> explain_path(const Effective& effective, const MergeContext& context, std::string_view path,
                                const Resolve& resolve) {
  BELLJAR_CHECK(check_path(path));
  const auto leads_to = [&](const std::string& asked) { return resolve ? resolve(asked) : asked; };
  PathAnswer answer;
  answer.path = BELLJAR_TRY(absolute(path, context.home, context.cwd.empty() ? context.workspace : context.cwd));
  answer.target = leads_to(answer.path);
  Filesystem held = effective.complete;
  for (FsEntry& entry : held.entries) {
    if (!entry.glob) entry.path = leads_to(entry.path);
  }
  const FsEntry* rule = find_rule(held, answer.target);
  if (rule == nullptr) return Error(Code::kInternal, format("no rule covers {}", quoted(answer.path)));
  answer.access = rule->access;
  for (std::size_t i = 0; i < held.entries.size(); ++i) {
    const FsEntry& entry = held.entries[i];
    const bool covers = entry.glob ? glob_covers(entry.path, answer.target).has_value() : is_within(answer.target, entry.path);
    PathRule as_written{.entry = effective.complete.entries[i], .target = entry.path};
    if (&entry == rule) answer.rule = std::move(as_written);
    else if (covers) answer.others.push_back(std::move(as_written));
  }
  std::ranges::stable_sort(answer.others,
                           [](const PathRule& a, const PathRule& b) { return components(a.target) > components(b.target); });
  answer.note = note_for(effective.policy, context, answer.target, answer.access, answer.kept_by_name);
  return answer;
}

std::string to_text(const PathAnswer& answer) {
  const auto shown = [](const std::string& path, const std::string& target) {
    return target == path ? escaped(path) : format("{} -> {}", escaped(path), escaped(target));
  };
  const auto rule = [&](const PathRule& one) {
    return format("{} {}{}  # {}", to_string(one.entry.access), shown(one.entry.path, one.target),
                  one.entry.glob ? " (pattern)" : "", to_string(one.entry.origin));
  };
  std::string text =
      format("{}: {}\n  rule:  {}\n", shown(answer.path, answer.target), to_string(answer.access), rule(answer.rule));
  if (!answer.note.empty()) text += format("  note:  {}\n", answer.note);
  for (const PathRule& other : answer.others) text += format("  below: {}\n", rule(other));
  return text;
}

std::string to_json_text(const PathAnswer& answer) {
  const auto rule = [](const PathRule& one) {
    return format("{{\"path\":{},\"target\":{},\"glob\":{},\"access\":\"{}\",\"origin\":{}}}", json_text(one.entry.path),
                  json_text(one.target), one.entry.glob, to_string(one.entry.access), to_json(one.entry.origin));
  };
  std::string others;
  for (const PathRule& other : answer.others) others += (others.empty() ? "" : ",") + rule(other);
  return format("{{\"path\":{},\"target\":{},\"access\":\"{}\",\"rule\":{},\"note\":{},\"others\":[{}]}}\n", json_text(answer.path),
                json_text(answer.target), to_string(answer.access), rule(answer.rule), json_text(answer.note), others);
}

std::string keys_markdown() {
  constexpr auto cell = [](std::string_view text) {
    std::string result;
    for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
    return result;
  };
  constexpr auto narrowing = [](Narrow narrow) -> std::string_view {
    switch (narrow) {
      case Narrow::kNever:
        return "no";
      case Narrow::kStricter:
        return "stricter only";
      case Narrow::kLower:
      case Narrow::kLowerOrSet:
        return "lower only";
      case Narrow::kSubset:
        return "a part of it";
      case Narrow::kMore:
        return "more of it";
      case Narrow::kEntries:
        return "stricter rules";
      case Narrow::kVariables:
        return "harmless ones";
    }
    return "";
  };
  std::string text =
      "| Key | Flag | Takes | Default | Layers | A project file may say | The worst that gets it | Risk of a wider value | Meaning "
      "|\n|---|---|---|---|---|---|---|---|---|\n";
  for (const Key& key : keys()) {
    text += format("| `{}` | {} | {} | {} | {} | {} | {} | {} | {} |\n", key.name, key.flag.empty() ? "" : format("`{}`", key.flag),
                   cell(expected(key)), key.fallback.empty() ? "unset" : cell(key.fallback),
                   key.join == Join::kReplace ? "higher wins" : "added; `[]` clears", narrowing(key.narrow), cell(key.hostile),
                   cell(key.risk), cell(key.doc));
  }
  text += "\n| Also accepted | Means |\n|---|---|\n";
  for (const Alias& alias : aliases()) {
    const std::string_view unit = alias.how == Alias::How::kMegabytes     ? " (a bare number is MiB)"
                                  : alias.how == Alias::How::kNetworkMode ? " (full, restricted, none)"
                                  : alias.how == Alias::How::kPullPolicy  ? " (Always, IfNotPresent, Never)"
                                  : alias.how == Alias::How::kDocker      ? " (true: container, false: native)"
                                  : alias.how == Alias::How::kOneOf       ? " (one more of them)"
                                                                          : "";
    if (alias.how == Alias::How::kRefused) text += format("| `{}` | refused: {} |\n", alias.name, alias.why);
    else if (alias.how == Alias::How::kMustBeTrue) text += format("| `{}` | only `true`: {} |\n", alias.name, alias.why);
    else if (alias.how == Alias::How::kOnlyThese)
      text += format("| `{}` | `{}`, and `environment.inherit = \"none\"` |\n", alias.name, alias.key);
    else text += format("| `{}` | `{}`{} |\n", alias.name, alias.key, unit);
  }
  return text;
}

}  // namespace belljar::policy
