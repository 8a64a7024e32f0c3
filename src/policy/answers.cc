#include "policy/answers.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "policy/document.h"
#include "policy/json.h"
#include "policy/paths.h"

namespace belljar::policy {
namespace {

// 2.1.197, 0.171, 0.61. opencode asks nothing. Sorted by agent.
constexpr AnswerFile kFiles[] = {
    {"claude", kClaudeConfig, true},    {"claude", "settings.json", false},       {"codex", "config.toml", false},
    {"gemini", "settings.json", false}, {"gemini", "trustedFolders.json", false},
};

constexpr std::string_view kThemes[] = {"auto", "dark", "light", "dark-daltonized", "light-daltonized", "dark-ansi", "light-ansi"};
constexpr std::string_view kLogIns[] = {"oauth-personal", "gemini-api-key", "vertex-ai", "compute-default-credentials"};
constexpr std::size_t kKeyTail = 20;  // of an API key, that Claude Code remembers
constexpr std::size_t kMostFolders = 1000, kMostKeys = 100;

bool is_toml(const AnswerFile& file) { return file.name.ends_with(".toml"); }

std::optional<Node> parse_document(const AnswerFile& file, std::string_view text) {
  const Source source{text, file.name};
  if (text.empty()) {
    Node empty;
    empty.kind = Node::Kind::kTable;
    return empty;
  }
  if (!check_text(source)) return std::nullopt;
  auto parsed = is_toml(file) ? parse_toml_document(source) : parse_json_document(source);
  if (!parsed || parsed->kind != Node::Kind::kTable) return std::nullopt;
  return *std::move(parsed);
}

// --- nodes

Node* find_member(Node& table, std::string_view key) {
  const auto found = std::ranges::find(table.members, key, &Member::key);
  return table.kind != Node::Kind::kTable || found == table.members.end() ? nullptr : &found->value;
}

const Node* find_member(const Node& top, std::initializer_list<std::string_view> keys) {
  const Node* at = &top;
  for (const std::string_view key : keys) {
    const auto found = std::ranges::find(at->members, key, &Member::key);
    if (at->kind != Node::Kind::kTable || found == at->members.end()) return nullptr;
    at = &found->value;
  }
  return at;
}

// The member, made where it is missing; what is no table becomes one.
Node& table_at(Node& table, std::string_view key) {
  Node* found = find_member(table, key);
  if (found == nullptr) found = &table.members.emplace_back(Member{std::string(key), {}, {}}).value;
  if (found->kind != Node::Kind::kTable) *found = Node{.kind = Node::Kind::kTable};
  return *found;
}

void put_member(Node& table, std::string_view key, Node value) {
  if (Node* const found = find_member(table, key); found != nullptr) *found = std::move(value);
  else table.members.push_back({std::string(key), {}, std::move(value)});
}

void drop_member(Node& table, std::string_view key) {
  std::erase_if(table.members, [&](const Member& member) { return member.key == key; });
}

Node text_node(std::string_view text) { return Node{.kind = Node::Kind::kText, .text = std::string(text)}; }
Node flag_node(bool flag) { return Node{.kind = Node::Kind::kBool, .flag = flag}; }
bool is_true(const Node* node) { return node != nullptr && node->kind == Node::Kind::kBool && node->flag; }
std::string_view text_of(const Node* node) {
  return node != nullptr && node->kind == Node::Kind::kText ? std::string_view(node->text) : std::string_view();
}

std::string json_of(const Node& node) {
  std::string all;
  const auto part = [&all](std::string text) { all += (all.empty() ? "" : ",") + std::move(text); };
  switch (node.kind) {
    case Node::Kind::kBool:
      return node.flag ? "true" : "false";
    case Node::Kind::kInteger:
      return format("{}", node.integer);
    case Node::Kind::kFloat:
      return format("{}", node.number);
    case Node::Kind::kText:
      return json_text(node.text);
    case Node::Kind::kList:
      for (const Node& item : node.items) part(json_of(item));
      return "[" + all + "]";
    case Node::Kind::kTable:
      for (const Member& member : node.members) part(json_text(member.key) + ":" + json_of(member.value));
      return "{" + all + "}";
    case Node::Kind::kNull:
    case Node::Kind::kOther:
      break;
  }
  return "null";
}

// --- what is an answer

bool is_one_of(std::span<const std::string_view> known, std::string_view text) {
  return std::ranges::find(known, text) != known.end();
}

bool is_folder(std::string_view path, const AnswerContext& context) {
  return path.starts_with('/') && normal(std::string(path)) == path && is_within(path, context.workspace);
}

std::string_view tail_of(std::string_view key) { return key.size() < kKeyTail ? key : key.substr(key.size() - kKeyTail); }

// What each agent calls it: "" is no answer.
std::string_view trust_word(const AnswerFile& file, bool trusted) {
  if (file.agent == "codex") return trusted ? "trusted" : "untrusted";
  return trusted ? "TRUST_FOLDER" : "DO_NOT_TRUST";
}

const Node* folders_of(const AnswerFile& file, const Node& top) {
  if (file.agent == "gemini") return file.name == "trustedFolders.json" ? &top : nullptr;
  return file.name == "settings.json" ? nullptr : find_member(top, {"projects"});
}

// What is said of one folder: Claude Code has no word for no.
std::optional<bool> trust_of(const AnswerFile& file, const Node& folder) {
  if (file.agent == "claude") {
    if (is_true(find_member(folder, {"hasTrustDialogAccepted"}))) return true;
    return std::nullopt;
  }
  const std::string_view word = text_of(file.agent == "codex" ? find_member(folder, {"trust_level"}) : &folder);
  if (word == trust_word(file, false)) return false;
  // No more of it than this folder.
  if (word == trust_word(file, true) || (file.agent == "gemini" && word == "TRUST_PARENT")) return true;
  return std::nullopt;
}

// Whether the key may be used, as Claude Code has noted it.
std::optional<bool> said_of_key(const Node& top, std::string_view tail) {
  for (const bool may : {true, false}) {
    const Node* const list = find_member(top, {"customApiKeyResponses", may ? "approved" : "rejected"});
    if (list != nullptr && std::ranges::any_of(list->items, [&](const Node& item) { return text_of(&item) == tail; })) return may;
  }
  return std::nullopt;
}

void read_keys(const Node& top, const AnswerContext& context, Answers& answers) {
  const std::string tail(tail_of(context.key));
  if (tail.empty() || (answers.keys.size() >= kMostKeys && !answers.keys.contains(tail))) return;
  if (const auto may = said_of_key(top, tail)) answers.keys[tail] = *may;
}

// --- putting them in

bool add_claude_config(Node& top, const AnswerContext& context, const Answers& answers) {
  if (answers.onboarded) put_member(top, "hasCompletedOnboarding", flag_node(true));
  for (const auto& [path, trusted] : answers.trusted) {
    if (trusted && is_folder(path, context))
      put_member(table_at(table_at(top, "projects"), path), "hasTrustDialogAccepted", flag_node(true));
  }
  const std::string tail(tail_of(context.key));
  if (const auto said = answers.keys.find(tail); said != answers.keys.end() && !tail.empty() && !said_of_key(top, tail)) {
    Node& responses = table_at(top, "customApiKeyResponses");
    for (const char* name : {"approved", "rejected"}) {
      if (find_member(responses, name) == nullptr) put_member(responses, name, Node{.kind = Node::Kind::kList});
    }
    find_member(responses, said->second ? "approved" : "rejected")->items.push_back(text_node(tail));
  }
  return true;  // as it is, too: the agent is to write this one
}

bool add_json(const AnswerFile& file, Node& top, const AnswerContext& context, const Answers& answers) {
  if (file.name == kClaudeConfig) return add_claude_config(top, context, answers);
  bool changed = false;
  if (file.agent == "claude" && !answers.theme.empty() && find_member(top, "theme") == nullptr) {
    put_member(top, "theme", text_node(answers.theme));
    changed = true;
  }
  if (file.agent == "gemini" && file.name == "settings.json" && !answers.auth.empty() &&
      find_member(top, {"security", "auth", "selectedType"}) == nullptr) {
    put_member(table_at(table_at(top, "security"), "auth"), "selectedType", text_node(answers.auth));
    changed = true;
  }
  if (file.name == "trustedFolders.json") {
    for (const auto& [path, trusted] : answers.trusted) {
      if (!is_folder(path, context) || find_member(top, path) != nullptr) continue;
      put_member(top, path, text_node(trust_word(file, trusted)));
      changed = true;
    }
  }
  return changed;
}

// At the end, where a table may always begin.
std::optional<std::string> add_toml(const AnswerFile& file, std::string_view text, const Node& top, const AnswerContext& context,
                                    const Answers& answers) {
  std::string added;
  for (const auto& [path, trusted] : answers.trusted) {
    if (!is_folder(path, context) || find_member(top, {"projects", path}) != nullptr) continue;
    added += format("\n[projects.{}]\ntrust_level = \"{}\"\n", json_text(path), trust_word(file, trusted));
  }
  if (added.empty()) return std::nullopt;
  std::string all = std::string(text) + added;
  // `projects` may be a table that is closed already.
  if (!parse_document(file, all)) return std::nullopt;
  return all;
}

// --- taking them out

void remove_answers(const AnswerFile& file, Node& top, const AnswerContext& context) {
  if (file.agent == "claude") drop_member(top, "theme");
  if (Node* const security = find_member(top, "security"); security != nullptr && file.agent == "gemini") {
    if (Node* const auth = find_member(*security, "auth"); auth != nullptr) {
      drop_member(*auth, "selectedType");
      if (auth->members.empty()) drop_member(*security, "auth");
    }
    if (security->members.empty()) drop_member(top, "security");
  }
  if (file.name == "trustedFolders.json")
    std::erase_if(top.members, [&](const Member& one) { return is_folder(one.key, context); });
  // What Codex notes of its interface: a hint was shown, a screen reader was looked for.
  if (Node* const tui = find_member(top, "tui"); tui != nullptr && file.agent == "codex") {
    for (const char* note : {"model_availability_nux", "screen_reader_detection_done"}) drop_member(*tui, note);
    if (tui->members.empty()) drop_member(top, "tui");
  }
  Node* const projects = file.agent == "codex" ? find_member(top, "projects") : nullptr;
  if (projects == nullptr) return;
  for (Member& one : projects->members) {
    if (is_folder(one.key, context)) drop_member(one.value, "trust_level");
  }
  std::erase_if(projects->members, [](const Member& one) { return one.value.members.empty(); });
  if (projects->members.empty()) drop_member(top, "projects");
}

// As text, by folder; "": for all of them. None where there are none.
std::map<std::string, std::string> servers_of(const Node& top) {
  constexpr char kServers[] = "mcpServers";
  std::map<std::string, std::string> found;
  const auto add = [&](const std::string& folder, const Node& at) {
    if (const Node* const servers = find_member(at, {kServers}); servers != nullptr && !servers->members.empty())
      found[folder] = json_of(*servers);
  };
  add("", top);
  const Node* const projects = find_member(top, {"projects"});
  if (projects == nullptr) return found;
  for (const Member& one : projects->members) add(one.key, one.value);
  return found;
}

}  // namespace

std::span<const AnswerFile> answer_files(std::string_view agent) noexcept {
  return std::ranges::equal_range(kFiles, agent, {}, &AnswerFile::agent);
}

Result<Answers> parse_answers(std::string_view text) {
  const Source source{text, "answers"};
  BELLJAR_CHECK(check_text(source));
  const Node top = BELLJAR_TRY(parse_json_document(source));
  Answers answers;
  answers.onboarded = is_true(find_member(top, {"onboarded"}));
  if (const std::string_view theme = text_of(find_member(top, {"theme"})); is_one_of(kThemes, theme)) answers.theme = theme;
  if (const std::string_view auth = text_of(find_member(top, {"auth"})); is_one_of(kLogIns, auth)) answers.auth = auth;
  const auto flags = [&](const char* name, std::map<std::string, bool>& into) {
    const Node* const table = find_member(top, {name});
    if (table == nullptr) return;
    for (const Member& one : table->members) {
      if (one.value.kind == Node::Kind::kBool) into[one.key] = one.value.flag;
    }
  };
  flags("trusted", answers.trusted);
  flags("keys", answers.keys);
  return answers;
}

std::string to_json(const Answers& answers) {
  const auto flags = [](const std::map<std::string, bool>& from) {
    Node table{.kind = Node::Kind::kTable};
    for (const auto& [key, flag] : from) table.members.push_back({key, {}, flag_node(flag)});
    return table;
  };
  Node top{.kind = Node::Kind::kTable};
  put_member(top, "onboarded", flag_node(answers.onboarded));
  put_member(top, "theme", text_node(answers.theme));
  put_member(top, "auth", text_node(answers.auth));
  put_member(top, "trusted", flags(answers.trusted));
  put_member(top, "keys", flags(answers.keys));
  return json_of(top) + "\n";
}

void read_answers(const AnswerFile& file, std::string_view text, const AnswerContext& context, Answers& answers) {
  const auto top = parse_document(file, text);
  if (!top) return;
  if (file.name == kClaudeConfig) {
    answers.onboarded |= is_true(find_member(*top, {"hasCompletedOnboarding"}));
    read_keys(*top, context, answers);
  }
  if (file.agent == "claude") {
    if (const std::string_view theme = text_of(find_member(*top, {"theme"})); is_one_of(kThemes, theme)) answers.theme = theme;
  } else if (file.agent == "gemini" && file.name == "settings.json") {
    const std::string_view auth = text_of(find_member(*top, {"security", "auth", "selectedType"}));
    if (is_one_of(kLogIns, auth)) answers.auth = auth;
  }
  const Node* const folders = folders_of(file, *top);
  if (folders == nullptr) return;
  for (const Member& one : folders->members) {
    const auto trusted = is_folder(one.key, context) ? trust_of(file, one.value) : std::nullopt;
    if (trusted && (answers.trusted.size() < kMostFolders || answers.trusted.contains(one.key)))
      answers.trusted[one.key] = *trusted;
  }
}

std::optional<std::string> with_answers(const AnswerFile& file, std::string_view text, const AnswerContext& context,
                                        const Answers& answers) {
  auto top = parse_document(file, text);
  if (!top) return std::nullopt;
  if (is_toml(file)) return add_toml(file, text, *top, context, answers);
  if (!add_json(file, *top, context, answers)) return std::nullopt;
  return json_of(*top) + "\n";
}

bool differs_in_servers(const AnswerFile& file, std::string_view one, std::string_view other) {
  const auto before = parse_document(file, one), after = parse_document(file, other);
  return before && after && servers_of(*before) != servers_of(*after);
}

bool same_but_answers(const AnswerFile& file, std::string_view one, std::string_view other, const AnswerContext& context) {
  auto first = parse_document(file, one);
  auto second = parse_document(file, other);
  if (!first || !second) return false;
  const std::string whole = json_of(*second);
  remove_answers(file, *first, context);
  remove_answers(file, *second, context);
  const std::string rest = json_of(*second);
  // A file that is new, and not for an answer.
  if (one.empty() && rest == whole) return false;
  return json_of(*first) == rest;
}

}  // namespace belljar::policy
