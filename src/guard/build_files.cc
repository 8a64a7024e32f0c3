// Build files and code are read by lines and quotes, not parsed: what is found too much is looked up in what
// entered, and found nowhere.
#include "guard/build_files.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/paths.h"
#include "policy/document.h"
#include "shell/word_list.h"

namespace belljar::guard {

using shell::has_word;

namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = text.find_first_not_of(" \t\r|"); at != std::string_view::npos; at = text.find_first_not_of(" \t\r|", at)) {
    const std::size_t end = std::min(text.find_first_of(" \t\r|", at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

// Calls `use` with each line, without its end; one that ends in a backslash with the next.
template <typename Use>
void each_line(std::string_view text, const Use& use) {
  std::string joined;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\\') && at < text.size()) {
      line.remove_suffix(1);
      joined += line;
      continue;
    }
    joined += line;
    use(std::string_view(joined));
    joined.clear();
  }
}

struct MakeRule {
  std::vector<std::string> targets, needs;
  std::string recipe;
};

// Without what tells make how to run it.
void add_recipe_line(std::string_view line, std::string& recipe) {
  line.remove_prefix(std::min(line.find_first_not_of("\t @-+"), line.size()));
  if (!line.empty()) recipe.append(line).append(1, '\n');
}

// `a b: c d` with what follows a `;`; not `a := b` and `a = b:c`.
bool read_rule(std::string_view line, MakeRule& rule) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || line.find('=') < colon) return false;
  std::string_view rest = line.substr(colon + 1);
  while (rest.starts_with(':')) rest.remove_prefix(1);
  if (rest.starts_with('=')) return false;
  const std::size_t recipe = std::min(rest.find(';'), rest.size());
  rule.targets = words_in(line.substr(0, colon));
  rule.needs = words_in(rest.substr(0, std::min(rest.find('#'), recipe)));
  if (recipe < rest.size()) add_recipe_line(rest.substr(recipe + 1), rule.recipe);
  return !rule.targets.empty();
}

// What `$(shell ...)` runs.
void add_shell_calls(std::string_view line, std::string& commands) {
  for (std::size_t at = line.find("$(shell "); at != std::string_view::npos; at = line.find("$(shell ", at)) {
    at += 8;
    std::size_t end = at;
    for (int open = 1; end < line.size(); ++end) {
      if (line[end] == '(') ++open;
      if (line[end] == ')' && --open == 0) break;
    }
    commands.append(line.substr(at, end - at)).append(1, '\n');
  }
}

bool is_variable(std::string_view word) { return word.find_first_of("$%*") != std::string_view::npos; }

// Of the words of `make`: what is to be made.
std::vector<std::string> targets_of(const std::vector<std::string>& words) {
  std::vector<std::string> targets;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (has_word("-f -C -I -o -W --file --makefile --directory", word)) ++i;
    else if (!word.starts_with('-') && word.find('=') == std::string::npos &&
             word.find_first_not_of("0123456789") != std::string::npos)
      targets.push_back(word);
  }
  return targets;
}

}  // namespace

std::string recipes_of(std::string_view text, const std::vector<std::string>& words) {
  std::string commands;
  std::vector<MakeRule> rules;
  bool defining = false;
  each_line(text, [&](std::string_view line) {
    add_shell_calls(line, commands);
    if (line.starts_with("define ") || line.starts_with("endef")) defining = line.starts_with("define ");
    if (defining) return add_recipe_line(line, commands);
    if (line.starts_with('\t')) return rules.empty() ? void() : add_recipe_line(line, rules.back().recipe);
    MakeRule rule;
    if (!line.starts_with('#') && read_rule(line, rule)) rules.push_back(std::move(rule));
  });
  std::vector<std::string> wanted = targets_of(words);
  const bool chosen_inside = wanted.empty() && text.find(".DEFAULT_GOAL") != std::string_view::npos;
  bool all = chosen_inside || std::ranges::any_of(wanted, is_variable);
  for (const MakeRule& rule : rules) {
    const bool special = rule.targets[0].starts_with('.') && rule.targets[0].find('/') == std::string::npos;
    if (!wanted.empty()) break;
    if (!special) wanted.push_back(rule.targets[0]);
  }
  std::set<std::string> seen;
  std::vector<bool> taken(rules.size());
  while (!wanted.empty() && !all) {
    const std::string target = std::move(wanted.back());
    wanted.pop_back();
    if (!seen.insert(target).second) continue;
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const MakeRule& rule = rules[i];
      const bool fits =
          std::ranges::any_of(rule.targets, [&](const std::string& name) { return name == target || is_variable(name); });
      if (!fits) continue;
      taken[i] = true;
      all = all || std::ranges::any_of(rule.needs, [](const std::string& name) { return name.find('$') != std::string::npos; });
      wanted.insert(wanted.end(), rule.needs.begin(), rule.needs.end());
    }
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (all || taken[i]) commands += rules[i].recipe;
  }
  return commands;
}

std::string steps_of(std::string_view text, bool docker) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (docker) {
      const std::string_view word = line.substr(0, line.find(' '));
      if (!has_word("RUN CMD ENTRYPOINT", word) || word.size() == line.size()) continue;
      line.remove_prefix(word.size() + 1);
      while (line.starts_with("--")) line.remove_prefix(std::min(line.find(' '), line.size() - 1) + 1);  // --mount=...
      if (line.starts_with('[')) continue;
    } else if (!line.starts_with(' ') && !line.starts_with('\t')) {
      continue;
    }
    add_recipe_line(line, result);
  }
  return result;
}

namespace {

// The scripts that such a command runs, without `pre` and `post`; empty: not known.
std::vector<std::string> script_names(const std::vector<std::string>& words) {
  constexpr std::string_view kInstall = "install i ci add update up rebuild link pack publish";
  std::vector<std::string> operands;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--") break;
    if (has_word("--prefix -C --cwd --dir --workspace -w --filter -F", words[i])) ++i;
    else if (!words[i].starts_with('-')) operands.push_back(words[i]);
  }
  if (operands.empty())
    return words.empty() || file_name(words[0]) != "yarn" ? std::vector<std::string>()
                                                          : std::vector<std::string>{"install", "prepare"};
  const std::string& first = operands[0];
  if (has_word("run run-script rum urn", first))
    return operands.size() > 1 ? std::vector<std::string>{operands[1]} : std::vector<std::string>();
  if (has_word("test t tst", first)) return {"test"};
  if (has_word(kInstall, first)) return {"install", "prepare", "prepublish", "prepublishOnly", "pack", "publish"};
  if (has_word("exec x dlx create init audit outdated view config", first)) return {};
  return {first};
}

}  // namespace

std::string scripts_of(std::string_view text, const std::vector<std::string>& words) {
  std::string result;
  const auto document = policy::parse_json_document({text, "package.json"});
  if (!document) return result;
  const std::vector<std::string> names = script_names(words);
  for (const policy::Member& member : document->members) {
    if (member.key != "scripts") continue;
    for (const policy::Member& script : member.value.members) {
      const bool wanted = names.empty() || std::ranges::any_of(names, [&](const std::string& name) {
                            return script.key == name || script.key == "pre" + name || script.key == "post" + name;
                          });
      if (wanted) result += script.value.text + "\n";
    }
  }
  return result;
}

namespace {

// The literals of code from `at` on, to `end`.
template <typename Use>
void each_literal(std::string_view code, const Use& use) {
  for (std::size_t at = code.find_first_of("'\"`"); at != std::string_view::npos; at = code.find_first_of("'\"`", at)) {
    const char quote = code[at++];
    std::size_t end = at;
    while (end < code.size() && code[end] != quote && code[end] != '\n') end += code[end] == '\\' ? 2 : 1;
    end = std::min(end, code.size());
    use(code.substr(at, end - at));
    at = std::min(end + 1, code.size());
  }
}

}  // namespace

std::string literals_of(std::string_view code) {
  std::string result;
  each_literal(code, [&](std::string_view literal) { result.append(literal).append(1, '\n'); });
  return result;
}

namespace {

// The arguments of a call whose name ends at `at`: to the closing bracket.
std::string_view arguments_at(std::string_view code, std::size_t at) {
  constexpr std::size_t kLongest = 1000;
  const std::size_t open = code.find_first_not_of(" \t", at);
  if (open == std::string_view::npos || code[open] != '(') return code.substr(at, std::min(code.find('\n', at), code.size()) - at);
  char quote = 0;
  int depth = 0;
  for (std::size_t i = open; i < std::min(code.size(), open + kLongest); ++i) {
    if (code[i] == '\\') ++i;
    else if (quote != 0) quote = code[i] == quote || code[i] == '\n' ? 0 : quote;
    else if (code[i] == '\'' || code[i] == '"' || code[i] == '`') quote = code[i];
    else if (code[i] == '(') ++depth;
    else if (code[i] == ')' && --depth == 0) return code.substr(open + 1, i - open - 1);
  }
  return code.substr(open, std::min(kLongest, code.size() - open));
}

// What stands in quotes behind `name =`.
std::string_view value_of(std::string_view code, std::string_view name) {
  for (std::size_t at = code.find(name); at != std::string_view::npos; at = code.find(name, at + 1)) {
    const std::size_t after = code.find_first_not_of(' ', at + name.size());
    const bool whole = at == 0 || kLetters.find(code[at - 1]) == std::string_view::npos;
    if (!whole || after == std::string_view::npos || code[after] != '=' || code.substr(after).starts_with("==")) continue;
    return code.substr(after + 1, std::min(code.find_first_of("\n;", after), code.size()) - after - 1);
  }
  return {};
}

}  // namespace

std::vector<std::string> commands_in(std::string_view code) {
  constexpr std::size_t kMost = 64;
  constexpr std::array<std::string_view, 19> kCalls = {
      "os.system", "subprocess.run", "subprocess.call", "check_output", "check_call", "Popen", "popen",
      "getoutput", "execSync",       "execFileSync",    "execFile",     "spawnSync",  "spawn", "exec",
      "system",    "shell_exec",     "passthru",        "pexpect.run",  "proc_open"};
  std::vector<std::string> commands;
  const auto add = [&](std::string command) {
    if (!command.empty() && commands.size() < kMost && std::ranges::find(commands, command) == commands.end())
      commands.push_back(std::move(command));
  };
  const auto add_all = [&](std::string_view arguments) {
    std::string joined;
    each_literal(arguments, [&](std::string_view literal) {
      joined.append(joined.empty() ? "" : " ").append(literal);
      if (literal.find(' ') != std::string_view::npos) add(std::string(literal));
    });
    add(std::move(joined));
  };
  for (const std::string_view name : kCalls) {
    for (std::size_t at = code.find(name); at != std::string_view::npos && commands.size() < kMost;
         at = code.find(name, at + name.size())) {
      if (at > 0 && kLetters.find(code[at - 1]) != std::string_view::npos) continue;
      const std::string_view arguments = arguments_at(code, at + name.size());
      add_all(arguments);
      const std::string_view first = arguments.substr(0, arguments.find_first_not_of(kLetters));
      if (!first.empty()) add_all(value_of(code, first));
    }
  }
  return commands;
}

namespace {

// `a.b` of Python's import, seen from where the program is and from the file's own directory.
void add_module(std::string_view name, std::vector<std::string>& files) {
  std::string up;
  for (std::size_t dots = 0; name.starts_with('.'); ++dots, name.remove_prefix(1)) up += dots > 0 ? "../" : "";
  std::string path = up + std::string(name.substr(0, name.find_first_not_of(std::string(kLetters) + ".")));
  std::replace(path.begin() + static_cast<std::ptrdiff_t>(up.size()), path.end(), '.', '/');
  if (path.empty() || path.ends_with('/')) return;
  for (const std::string_view end : {".py", "/__init__.py"}) files.push_back(path + std::string(end));
  const std::size_t slash = path.find('/', up.size());
  if (slash != std::string::npos) files.push_back(path.substr(0, slash) + "/__init__.py");
}

void add_python(std::string_view text, std::vector<std::string>& files) {
  each_line(text, [&](std::string_view line) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const bool from = line.starts_with("from ");
    if (!from && !line.starts_with("import ")) return;
    line.remove_prefix(from ? 5 : 7);
    const std::size_t import = from ? line.find(" import ") : std::string_view::npos;
    if (from && import == std::string_view::npos) return;
    const std::string module(from ? line.substr(0, import) : line);
    if (from) add_module(module, files);
    std::string names(from ? line.substr(import + 8) : line);
    std::ranges::replace_if(names, [](char c) { return c == ',' || c == '(' || c == ')'; }, ' ');
    const std::string front = !from ? "" : module.ends_with('.') ? module : module + ".";
    for (const std::string& name : words_in(names)) {
      if (name == "as" || files.size() > 256) continue;
      add_module(front + name, files);
    }
  });
}

// require("./x"), import ... from "./x", require_relative "x", dofile("x.lua"): any literal that looks like a file of code.
void add_literals(std::string_view text, std::vector<std::string>& files) {
  constexpr std::string_view kEnds = "js mjs cjs ts tsx jsx py rb pl php lua sh bash zsh mk r R awk";
  each_literal(text, [&](std::string_view literal) {
    if (files.size() > 256 || literal.size() > 200) return;
    const bool relative = literal.starts_with("./") || literal.starts_with("../");
    for (const std::string& word : words_in(literal)) {
      const std::string_view name = file_name(word);
      const std::size_t dot = name.rfind('.');
      const bool code = dot != std::string_view::npos && dot > 0 && has_word(kEnds, name.substr(dot + 1));
      if (code || relative) files.push_back(word);
      if (!relative || code) continue;
      for (const char* end : {".js", ".mjs", ".cjs", ".ts", ".rb", "/index.js", "/index.ts"}) files.push_back(word + end);
    }
  });
}

}  // namespace

std::vector<std::string> files_named_in(std::string_view path, std::string_view text) {
  std::vector<std::string> files;
  const std::string_view name = file_name(path);
  const std::string_view end = name.substr(std::min(name.rfind('.') + 1, name.size()));
  const bool make = has_word("Makefile makefile GNUmakefile", name) || end == "mk";
  if (make) {
    each_line(text, [&](std::string_view line) {
      for (const std::string_view word : {"include ", "-include ", "sinclude "}) {
        if (!line.starts_with(word)) continue;
        for (std::string& file : words_in(line.substr(word.size()))) files.push_back(std::move(file));
      }
    });
    return files;
  }
  if (name == "CMakeLists.txt" || end == "cmake") {
    for (const std::string_view call : {"include(", "add_subdirectory("}) {
      for (std::size_t at = text.find(call); at != std::string_view::npos && files.size() < 64; at = text.find(call, at + 1)) {
        const std::vector<std::string> words =
            words_in(text.substr(at + call.size(), std::min(text.find(')', at), text.size()) - at - call.size()));
        if (!words.empty()) files.push_back(call == "include(" ? words[0] : words[0] + "/CMakeLists.txt");
      }
    }
    return files;
  }
  const std::string_view first = text.substr(0, text.find('\n'));
  if (end == "py" || (first.starts_with("#!") && first.find("python") != std::string_view::npos)) add_python(text, files);
  add_literals(text, files);
  return files;
}

}  // namespace belljar::guard
