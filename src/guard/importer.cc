// Foreign settings become a policy: one table row for each field, one class that reads them all.
//
// Programs with sandboxes of their own have settings that users have written already. Each field has a row
// saying what it means here (FieldHandling): it becomes a policy key, concerns asking, needs nothing, or is
// refused by name. Nothing is dropped in silence. A field that cannot be honoured stops the import until the
// caller gives it up by name, because a policy that is looser than the file it came from would be worse than
// none.
//
// Some things are known only when all fields were read, so they are settled at the end: a path that is to be
// readable inside of a hidden one has no counterpart here and is refused if it may lie there (refuse_holes);
// two proxies become one (settle_upstream); modes that contradict each other are refused together.
//
// Each value is then checked on its own by the policy's parser, with the position in the foreign file, so
// that an error points to a line that the user wrote.
#include "guard/importer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "guard/foreign.h"
#include "policy/document.h"
#include "policy/json.h"
#include "policy/parse.h"
#include "policy/paths.h"

namespace belljar::guard {

using policy::Member;
using policy::Node;
using Treatment = Field::Treatment;

namespace {

constexpr std::string_view kOpensNoHost =
    "it keeps refusals out of reports and opens no host; network.allowed_domains does (`--net proxy --allow-domain HOST`), and "
    "network.host_ports a port of this machine";

std::span<const FieldRule> meanings(Dialect dialect) noexcept {
  if (dialect == Dialect::kSrt) return field_rules_of_srt();
  if (dialect == Dialect::kCodex) return field_rules_of_codex();
  return field_rules_of_sandbox_settings();
}

bool asks_nothing(const Node& node) noexcept {
  return node.kind == Node::Kind::kNull || (node.kind == Node::Kind::kBool && !node.flag) ||
         (node.kind == Node::Kind::kList && node.items.empty()) || (node.kind == Node::Kind::kTable && node.members.empty());
}

// "./a/" and "a" are one path.
std::string_view plain(std::string_view path) noexcept {
  if (path.starts_with("./")) path.remove_prefix(2);
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path.empty() ? "." : path;
}

// Where a home and a workspace lie is not known here. These may hold both: a home, what homes lie in, and what lies below such a
// place.
bool may_hold_homes(std::string_view path) noexcept {
  if (path == "~" || path == "/" || path == "/var" || path == "/export") return true;
  return std::ranges::any_of(std::array{"/home", "/root", "/Users", "/var/home", "/export/home"},
                             [&](std::string_view homes) { return policy::is_within(path, homes); });
}

// Whether `hole` may lie in `hidden`, as far as their texts tell.
bool may_lie_in(std::string_view hole, std::string_view hidden) noexcept {
  constexpr auto kind = [](std::string_view path) { return path[0] == '/' || path[0] == '~' ? path[0] : '.'; };
  // A pattern of the workspace is about names in it, so the workspace itself is none of them.
  if (hidden.find_first_of("*?[") != std::string_view::npos) return hole != "." || kind(hidden) != '.' || hidden.starts_with("**");
  if (kind(hole) == kind(hidden)) return hidden == "." || policy::is_within(hole, hidden);
  return may_hold_homes(hidden) && (kind(hole) != '/' || may_hold_homes(hole));
}

}  // namespace

const Node* find_member(const Node& table, std::string_view key) noexcept {
  const auto found = std::ranges::find(table.members, key, &Member::key);
  return found == table.members.end() ? nullptr : &found->value;
}

std::string toml_list(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const std::string& text : texts) list += (list.size() > 1 ? ", " : "") + policy::json_text(text);
  return list + "]";
}

Result<bool> Importer::flag(const Member& member) const {
  if (member.value.kind != Node::Kind::kBool) return wrong(member, "true or false");
  return member.value.flag;
}

Result<std::vector<std::string>> Importer::texts(const Member& member, bool paths) const {
  if (member.value.kind != Node::Kind::kList) return wrong(member, "a list of text");
  std::vector<std::string> result;
  for (const Node& item : member.value.items) {
    const Node* path = item.kind == Node::Kind::kTable && paths ? find_member(item, "path") : nullptr;
    const Node& text = path != nullptr ? *path : item;
    if (text.kind != Node::Kind::kText) return wrong(member, "a list of text");
    std::string value = text.text;
    const Node* literal = path != nullptr ? find_member(item, "literal") : nullptr;
    const bool is_pattern = value.find_first_of("*?[") != std::string::npos;
    if (literal != nullptr && literal->flag && is_pattern)
      return policy::error_at(source_, text.at, format("{} cannot be taken literally", quoted(value)))
          .reason("a policy takes a star for a pattern")
          .next("name the directory it is in");
    if (paths && value.ends_with("/**") && value.size() > 3) value.resize(value.size() - 3);
    result.push_back(std::move(value));
  }
  return result;
}

Result<void> Importer::domains(const FieldRule& meaning, const Member& member, const std::string& name) {
  const auto list = BELLJAR_TRY(texts(member, false));
  say(meaning.target, toml_list(list), name);
  // An empty list means none, never all.
  lines_["network.mode"] = list.empty() && !lines_.contains("network.upstream_proxy") ? "\"none\"" : "\"proxy\"";
  if (list.empty()) lines_.erase("network.allowed_domains");
  return {};
}

// The peers hand every host to that proxy unseen; here the list of domains holds before it.
Result<void> Importer::upstream(const FieldRule& meaning, const Member& member, const std::string& name) {
  if (member.value.kind != Node::Kind::kInteger || member.value.integer < 1 || member.value.integer > 65535)
    return wrong(member, "a port from 1 to 65535");
  proxies_[name] = format("\"{}://127.0.0.1:{}\"", meaning.target, member.value.integer);
  say("network.upstream_proxy", proxies_[name], name);
  lines_["network.mode"] = "\"proxy\"";
  return {};
}

// Two ports are two doors to what the user runs there; one of them carries everything.
void Importer::settle_upstream() {
  constexpr std::string_view kHttp = "network.httpProxyPort", kSocks = "network.socksProxyPort";
  if (proxies_.size() < 2) return;
  lines_["network.upstream_proxy"] = proxies_[std::string(kHttp)];
  for (Field& field : result_.fields) {
    if (field.name != kSocks) continue;
    field.treatment = Treatment::kNotNeeded;
    field.detail = format("everything leaves by {}: what is not HTTP by CONNECT", kHttp);
  }
}

// Several fields may fill one list: denyRead and rules Read(...).
void Importer::add_paths(std::string_view key, const std::vector<std::string>& paths, const std::string& name) {
  auto& list = paths_[std::string(key)];
  list.insert(list.end(), paths.begin(), paths.end());
  say(key, toml_list(list), name);
}

// Not access = "read": that would make a writable place read-only. Whether it lies in a hidden one is known at the end.
Result<void> Importer::readable(const Member& member, const std::string& name) {
  holes_ = BELLJAR_TRY(texts(member, true));
  note(name, Treatment::kNotNeeded, "what denyRead does not hide can be read anyway");
  return {};
}

void Importer::refuse_holes() {
  const auto list = paths_.find("filesystem.blocked_paths");
  if (list == paths_.end()) return;
  for (Field& field : result_.fields) {
    if (field.name != "filesystem.allowRead") continue;
    for (const std::string& hole : holes_) {
      const auto hidden =
          std::ranges::find_if(list->second, [&](const auto& path) { return may_lie_in(plain(hole), plain(path)); });
      if (hidden == list->second.end()) continue;
      field.treatment = Treatment::kRefused;
      field.detail = format("{} may lie in {}, and what is hidden has no readable places in it; hide what is beside it",
                            quoted(hole), quoted(*hidden));
    }
  }
}

Result<void> Importer::field(const FieldRule& meaning, const Member& member, const std::string& name) {
  switch (meaning.how) {
    case FieldHandling::kFlag:
      say(meaning.target, BELLJAR_TRY(flag(member)) ? "true" : "false", name);
      return {};
    case FieldHandling::kTexts:
      say(meaning.target, toml_list(BELLJAR_TRY(texts(member, false))), name);
      if (meaning.target == "ignore_violations.network" && !member.value.items.empty()) result_.fields.back().note = kOpensNoHost;
      return {};
    case FieldHandling::kPaths:
      add_paths(meaning.target, BELLJAR_TRY(texts(member, true)), name);
      return {};
    case FieldHandling::kReadable:
      return readable(member, name);
    case FieldHandling::kDomains:
      return domains(meaning, member, name);
    case FieldHandling::kUpstream:
      return upstream(meaning, member, name);
    case FieldHandling::kMode:
    case FieldHandling::kText:
      if (member.value.kind != Node::Kind::kText) return wrong(member, "text");
      say(meaning.target, policy::json_text(member.value.text), name);
      return {};
    case FieldHandling::kMap: {
      if (member.value.kind != Node::Kind::kTable) return wrong(member, "a table of text");
      std::string value = "{";
      for (const Member& each : member.value.members) {
        if (each.value.kind != Node::Kind::kText) return wrong(each, "text");
        value += format("{}{} = {}", value.size() > 1 ? ", " : "", policy::json_text(each.key), policy::json_text(each.value.text));
      }
      say(meaning.target, value + "}", name);
      return {};
    }
    case FieldHandling::kNetwork:
      say(meaning.target, BELLJAR_TRY(flag(member)) ? "\"host\"" : "\"none\"", name);
      return {};
    case FieldHandling::kEnabled:
      is_on_ = BELLJAR_TRY(flag(member));
      result_.has_permission = true;
      note(name, Treatment::kPermission, is_on_ ? "sandbox = \"on\"" : "mode = \"danger-full-access\"");
      return {};
    case FieldHandling::kPermission:
      return permission(meaning, member, name);
    case FieldHandling::kApproval:
      return approval(member, name);
    case FieldHandling::kOnlyFalse:
      if (asks_nothing(member.value)) note(name, Treatment::kNotNeeded, "asks for nothing");
      else refuse(name, meaning.target);
      return {};
    case FieldHandling::kOnlyTrue:
      if (member.value.kind == Node::Kind::kBool && member.value.flag)
        note(name, Treatment::kNotNeeded, std::string(meaning.target));
      else refuse(name, meaning.target);
      return {};
    case FieldHandling::kNotNeeded:
      note(name, Treatment::kNotNeeded, std::string(meaning.target));
      return {};
    case FieldHandling::kRefused:
      refuse(name, meaning.target);
      return {};
  }
  return {};
}

Result<void> Importer::table(const Node& node, const std::string& prefix) {
  if (node.kind != Node::Kind::kTable)
    return policy::error_at(
        source_, node.at, format("`{}` is {}, not a table", prefix.empty() ? "sandbox" : escaped(prefix), policy::describe(node)));
  const auto known = meanings(result_.dialect);
  for (const Member& member : node.members) {
    const std::string name = prefix.empty() ? member.key : prefix + "." + member.key;
    const auto found = std::ranges::find(known, name, &FieldRule::name);
    const bool is_group =
        std::ranges::any_of(known, [&](const FieldRule& meaning) { return meaning.name.starts_with(name + "."); });
    at_ = member.value.at;
    if (found != known.end()) BELLJAR_CHECK(field(*found, member, name));
    else if (is_group) BELLJAR_CHECK(table(member.value, name));
    else if (result_.dialect == Dialect::kCodex && (prefix.empty() || prefix == "features")) other(name);
    else refuse(name, kUnknown);
  }
  return {};
}

std::string Importer::policy_text() const {
  std::string text;
  std::string sections;
  std::string open;
  for (const auto& [key, value] : lines_) {
    const std::size_t dot = key.find('.');
    if (dot == std::string::npos) {
      text += format("{} = {}\n", key, value);
      continue;
    }
    if (key.substr(0, dot) != open) sections += format("\n[{}]\n", open = key.substr(0, dot));
    sections += format("{} = {}\n", key.substr(dot + 1), value);
  }
  return text + sections;
}

// Each value by itself, so that an error names the place in the file that was given, not one in a text that nobody wrote.
Result<void> Importer::check_values() const {
  for (const auto& [key, value] : lines_) {
    auto parsed = policy::parse_toml(format("{} = {}\n", key, value), "policy", "import");
    if (parsed) continue;
    const std::string& what = parsed.error().what();
    const std::size_t behind = what.find(": ");  // "policy:1:2: ..."
    const auto at = places_.find(key);
    return policy::error_at(source_, at == places_.end() ? policy::Position() : at->second,
                            behind == std::string::npos ? what : what.substr(behind + 2))
        .reason(parsed.error().reason())
        .next(parsed.error().next());
  }
  return {};
}

Result<Imported> Importer::finish(const std::vector<std::string>& without) {
  // srt writes nowhere but where allowWrite says; here the workspace is writable unless the mode says otherwise.
  if (result_.dialect == Dialect::kSrt) lines_["mode"] = "\"read-only\"";
  refuse_holes();
  settle_codex_mode();
  settle_upstream();
  settle_off();
  settle_permission_mode(without);
  for (const std::string& name : without) {
    const bool is_refused = std::ranges::any_of(
        result_.fields, [&](const Field& field) { return field.name == name && field.treatment == Treatment::kRefused; });
    if (!is_refused)
      return Error(Code::kInvalidArgument, format("--without {} gives up nothing", quoted(name)))
          .reason(format("no field of that name in {} is refused", quoted(source_.file)))
          .next("leave it out");
  }
  std::string refused;
  for (const Field& field : result_.fields) {
    if (field.treatment != Treatment::kRefused || std::ranges::find(without, field.name) != without.end()) continue;
    refused += format("{}`{}`: {}", refused.empty() ? "" : "; ", escaped(field.name), field.detail);
  }
  if (!refused.empty()) {
    return Error(Code::kUnimplemented, format("cannot import {}", quoted(source_.file)))
        .reason(std::move(refused))
        .next("take the field out, or give it up by name: --without FIELD");
  }
  BELLJAR_CHECK(check_values());
  result_.policy = policy_text();
  BELLJAR_CHECK(policy::parse_toml(result_.policy, source_.file, "import"));
  return std::move(result_);
}

}  // namespace belljar::guard
