// What developers run every day, so that judging by provenance does not ask about it.
//
// A README says `npm test`, and the model runs it because every project does: that the words stand in a text
// proves nothing. So builds, tests and formatters with their usual targets, the products they make anew, and
// the installation of what a project lists itself are left out, as long as no suspicious text speaks of them.
// The lists are short and by name. A program that is not in them is merely judged like any other.
//
// command_words() is the other side: what of a command is so particular that finding it word by word in a
// text means something. That is a command with eight characters of arguments or more, or a file of the
// workspace that is run. A file that a build makes or that a build system brings (`./configure`, `./gradlew`)
// says nothing about anybody's intention.
#include "guard/daily.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/paths.h"
#include "detect/normal.h"
#include "guard/call.h"
#include "shell/word_list.h"

namespace belljar::guard {

using detect::Hidden;
using detect::normalise;
using shell::has_word;

namespace {

constexpr std::string_view kFetchers = "npx bunx uvx";  // a program of a package, by its name
constexpr std::size_t kFewest = 8;                      // characters of arguments that are somebody's idea

std::string plain_word(std::string_view word) {
  Hidden hidden;
  std::string plain = normalise(word, hidden).text;
  // printf 'x\n': the text may have it without.
  while (plain.ends_with("\\n")) plain.resize(plain.size() - 2);
  while (!plain.empty() && (plain.back() == ' ' || plain.back() == '\n')) plain.pop_back();
  return plain;
}

bool is_script_name(std::string_view path) noexcept {
  const std::string_view name = file_name(path);
  const std::size_t dot = name.rfind('.');
  return dot != std::string_view::npos && dot > 0 &&
         has_word("sh bash zsh py js mjs cjs ts rb pl php lua r ps1 fish awk", name.substr(dot + 1));
}

// The file that it runs, as it is written.
std::string_view script_of(const Act& act) {
  if (act.words.empty()) return {};
  const std::string_view program = act.words[0];
  if (program.find('/') != std::string_view::npos && !program.starts_with("/usr/") && !program.starts_with("/bin/")) return program;
  const auto [what, at] = find_run(act.words);
  if (what != Runs::kFile) return {};
  const std::string_view word = act.words[at];
  return is_script_name(word) || word.find('/') != std::string_view::npos ? word : std::string_view();
}

// Of an interpreter's options: after which comes code, a module, or a value that is no file to run.
struct Runner {
  std::string_view programs, code, module, values;
};

constexpr Runner kRunners[] = {
    {"sh bash dash zsh ksh fish", "-c", "", "-o +o -O +O --rcfile --init-file"},
    {"python python3", "-c", "-m", "-W -X --check-hash-based-pycs"},
    {"node tsx ts-node", "-e -p --eval --print -pe", "",
     "-r --require --import --loader --experimental-loader -C --conditions --env-file"},
    {"deno bun", "-e --eval eval", "", "-r --require --preload -c --config --import-map"},
    {"ruby perl", "-e -E", "", "-I -r -C"},
    {"php", "-r", "", "-d -c -z"},
    {"lua", "-e", "", "-l"},
    {"Rscript", "-e", "", ""},
};

// `-ec` of a shell: code follows.
bool is_code(const Runner& runner, std::string_view word) {
  if (has_word(runner.code, word)) return true;
  return runner.code == "-c" && word.size() > 2 && word[0] == '-' && word[1] != '-' && runner.module.empty() &&
         word.find('c') != std::string_view::npos;
}

}  // namespace

std::pair<Runs, std::size_t> find_run(const std::vector<std::string>& words) {
  if (words.empty()) return {Runs::kNothing, 0};
  const std::string_view program = file_name(words[0]);
  if (!runs_files(program)) return {Runs::kNothing, 0};
  const auto known = std::ranges::find_if(kRunners, [&](const Runner& one) { return has_word(one.programs, program); });
  const Runner runner = known == std::end(kRunners) ? Runner{} : *known;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (is_code(runner, word)) return {Runs::kCode, i};
    if (word == "-n" && runner.code == "-c") return {Runs::kNothing, i};  // only read
    const bool more = i + 1 < words.size();
    if (has_word(runner.module, word) && more) return {Runs::kModule, i + 1};
    // `bash -eo pipefail`
    const bool takes = has_word(runner.values, word) ||
                       (runner.code == "-c" && word.size() > 2 && word[0] == '-' && word[1] != '-' && word.back() == 'o');
    if (takes) ++i;
    else if (!word.starts_with('-') && !word.starts_with('+') && word != "run") return {Runs::kFile, i};
  }
  return {Runs::kNothing, 0};
}

bool runs_files(std::string_view program) noexcept {
  return has_word("sh bash dash zsh ksh fish source . python python3 node deno bun ruby perl php lua Rscript tsx ts-node", program);
}

std::string_view inside(std::string_view path, std::string_view workspace) noexcept {
  if (!workspace.empty() && path.starts_with(workspace) && path.substr(workspace.size()).starts_with('/'))
    path.remove_prefix(workspace.size() + 1);
  while (path.starts_with("./")) path.remove_prefix(2);
  return path;
}

bool is_development(const Act& act) {
  constexpr std::string_view kPrograms[] = {"make",   "cmake", "ninja",  "meson", "gradle", "mvn",   "tox",    "pytest",  "jest",
                                            "vitest", "ctest", "npm",    "pnpm",  "yarn",   "cargo", "go",     "dotnet",  "bundle",
                                            "rake",   "mypy",  "eslint", "tsc",   "ruff",   "black", "python", "python3", "node",
                                            "bash",   "sh",    "venv",   "cd",    "mkdir",  "touch", "echo",   "export",  "git"};
  constexpr std::string_view kTargets[] = {"test",  "tests",    "build",  "check",     "lint",     "all",       "dev",
                                           "start", "format",   "ci",     "run",       "install",  "unittest",  "compile",
                                           "vet",   "fmt",      "clippy", "configure", "coverage", "typecheck", "commit",
                                           "add",   "checkout", "switch", "init",      "status",   "venv",      "warnings"};
  std::string_view what = act.what;
  std::string_view program = what.substr(0, what.find(' '));
  const bool module = what.starts_with("python3 -m ") || what.starts_with("python -m ");
  if (module || has_word(kFetchers, program)) {
    what.remove_prefix(std::min(program.size() + (module ? 4 : 1), what.size()));
    program = what.substr(0, what.find(' '));
  }
  if (std::ranges::find(kPrograms, program) == std::end(kPrograms)) return false;
  return std::ranges::all_of(act.atoms, [&](const Atom& atom) {
    return atom.kind != Atom::Kind::kName || atom.text == program || std::ranges::find(kTargets, atom.text) != std::end(kTargets);
  });
}

bool is_product(const Atom& atom, std::string_view workspace) {
  constexpr std::string_view kNames[] = {
      "build", "dist", "out",   "target", "node_modules", "__pycache__",   "coverage",          ".cache",
      "bin",   "obj",  ".next", ".tox",   ".mypy_cache",  ".pytest_cache", "cmake-build-debug", "tmp"};
  std::string_view path = inside(atom.text, workspace);
  while (path.ends_with('/') || path.ends_with('*')) path.remove_suffix(1);
  return std::ranges::find(kNames, path) != std::end(kNames);
}

bool installs(const Act& act) {
  return act.kind == CallClass::kInstalling && !act.words.empty() && !has_word(kFetchers, act.words[0]);
}

bool installs_what_is_listed(const Act& act) {
  return installs(act) && std::ranges::all_of(act.atoms, [&](const Atom& atom) {
           const bool named = has_word("composer go gh brew helm docker podman", act.words[0]) && !atom.text.starts_with('.');
           const bool leaves =
               named || atom.text.starts_with('/') || atom.text.starts_with('~') || atom.text.find("..") != std::string::npos;
           return atom.kind == Atom::Kind::kPath && !leaves;
         });
}

CommandWords command_words(const Act& act, std::string_view workspace) {
  CommandWords result;
  const std::string_view file = script_of(act);
  if (!file.empty()) {
    const std::string_view path = inside(file, workspace);
    const std::string_view first = path.substr(0, path.find('/'));
    const bool made = path != first && has_word("build dist out target node_modules cmake-build-debug obj .venv venv", first);
    const bool built_with = has_word("configure gradlew mvnw manage.py setup.py", file_name(path));
    // A bare name is a word like any other.
    const bool telling = path.find('/') != std::string_view::npos || is_script_name(path);
    if (made || built_with) return result;
    result.script = plain_word(telling ? path : file);
  }
  if (is_development(act) && file.empty()) return result;
  std::size_t characters = 0;
  for (std::size_t i = 0; i < act.words.size(); ++i) {
    std::string word = plain_word(i == 0 ? file_name(act.words[0]) : std::string_view(act.words[i]));
    if (word.empty()) continue;
    if (i > 0) characters += word.size() + (i > 1 ? 1 : 0);
    result.all.push_back(std::move(word));
  }
  if (characters < kFewest || (is_development(act) && result.script.empty())) result.all.clear();
  return result;
}

}  // namespace belljar::guard
