#include "agent/skill_file.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::agent {
namespace {

constexpr std::size_t kLongestName = 64, kLongestDescription = 1024;

Error bad(std::string why) { return Error(Code::kInvalidArgument, "this is no skill").reason(std::move(why)); }

std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view trimmed(std::string_view text) { return trim(text, " \t"); }

// A value on one line. nullopt: it means something else in YAML than its characters.
std::optional<std::string> scalar(std::string_view text) {
  if (text.empty()) return "";
  const char quote = text.front();
  if (quote == '\'' || quote == '"') {
    if (text.size() < 2 || text.back() != quote) return std::nullopt;
    std::string value;
    const std::string_view inside = text.substr(1, text.size() - 2);
    for (std::size_t i = 0; i < inside.size(); ++i) {
      const bool doubled = quote == '\'' && inside[i] == '\'';
      const bool escape = quote == '"' && inside[i] == '\\';
      if (inside[i] == quote && !doubled) return std::nullopt;
      if (doubled || escape) {
        if (++i >= inside.size()) return std::nullopt;
        if (doubled ? inside[i] != '\'' : inside[i] != '"' && inside[i] != '\\') return std::nullopt;
      }
      value += inside[i];
    }
    return value;
  }
  if (std::string_view("[]{}&*!|>%@`#,?").find(quote) != std::string_view::npos) return std::nullopt;
  return std::string(trimmed(text.substr(0, text.find(" #"))));
}

// The indented lines that follow `key: >`.
std::string block(const std::vector<std::string_view>& lines, std::size_t& at, bool folded) {
  std::string value;
  while (at + 1 < lines.size() && (lines[at + 1].starts_with(' ') || lines[at + 1].empty())) {
    if (!value.empty()) value += folded ? ' ' : '\n';
    value += trimmed(lines[++at]);
  }
  return value;
}

Result<std::vector<std::pair<std::string, std::string>>> read_matter(const std::vector<std::string_view>& lines) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const std::string_view line = lines[at];
    // What is indented belongs to a key that we do not read.
    if (line.empty() || line.starts_with('#') || line.starts_with(' ') || line.starts_with('\t') || line.starts_with("- "))
      continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return bad("line " + std::to_string(at + 2) + " of it is no `key: value`");
    const std::string key(trimmed(line.substr(0, colon)));
    const std::string_view text = trimmed(line.substr(colon + 1));
    if (key != "name" && key != "description") continue;
    const bool is_block = text == ">" || text == "|" || text == ">-" || text == "|-";
    auto value = is_block ? block(lines, at, text.starts_with('>')) : scalar(text);
    if (!value) return bad(format("the value of `{}` is more YAML than is read here: put it in quotes", key));
    pairs.emplace_back(key, std::move(*value));
  }
  return pairs;
}

bool is_name(std::string_view name) {
  for (const char c : name) {
    const bool fine = is_alnum(c) || c == '-' || c == '_' || c == '.';
    if (!fine) return false;
  }
  return !name.empty() && name.size() <= kLongestName;
}

}  // namespace

Result<Skill> parse_skill(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (next_line(text) != "---") return bad("it does not begin with a line `---`");
  std::vector<std::string_view> lines;
  bool ended = false;
  while (!text.empty() && !ended) {
    const std::string_view line = next_line(text);
    ended = line == "---";
    if (!ended) lines.push_back(line);
  }
  if (!ended) return bad("its front matter does not end with a line `---`");
  Skill skill{.body = std::string(text)};
  for (auto& [key, value] : BELLJAR_TRY(read_matter(lines))) {
    std::string& to = key == "name" ? skill.name : skill.description;
    if (!to.empty()) return bad(format("`{}` stands there twice", key));
    to = std::move(value);
  }
  if (!is_name(skill.name)) return bad("`name` must be 1 to 64 letters, digits, `-`, `_`, `.`");
  if (skill.description.empty() || skill.description.size() > kLongestDescription)
    return bad("`description` must have 1 to 1024 bytes");
  return skill;
}

}  // namespace belljar::agent
