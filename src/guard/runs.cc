// Which files an act runs, by the words of its command.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/paths.h"
#include "guard/call.h"
#include "shell/word_list.h"
#include "shell/wrappers.h"

namespace belljar::guard {

using shell::has_word;

namespace {

// Programs that run a file which an option names.
struct Takes {
  std::string_view programs, options;
};
constexpr Takes kTakes[] = {
    {"node bun deno tsx ts-node", "-r --require --import --loader --experimental-loader --preload"},
    {"ruby", "-r"},
    {"awk gawk mawk nawk sed gsed", "-f --file"},
    {"vim nvim vi view ex", "-S -u"},
    {"gdb", "-x"},
    {"psql", "-f --file"},
    {"sqlite3", "-init"},
    {"bash", "--rcfile --init-file"},
};
// They do what stands on their standard input, beside the interpreters.
constexpr std::string_view kReadsInput = "psql mysql mariadb sqlite3 mongosh redis-cli bc gdb at batch parallel";

// `npx tsx x.ts`, `poetry run python x.py`, `npm exec -- x`: what they start.
std::vector<std::string> without_launcher(const std::vector<std::string>& words) {
  if (words.size() < 2) return words;
  const std::string_view program = file_name(words[0]);
  std::size_t at = 0;
  if (has_word("npx bunx pnpx busybox", program)) at = 1;
  else if (has_word("uv poetry pipenv pdm hatch rye conda bundle npm pnpm yarn", program) &&
           has_word(program == "bundle" || program == "npm" || program == "pnpm" || program == "yarn" ? "exec x dlx" : "run",
                    words[1]))
    at = 2;
  if (at == 0) return words;
  while (at < words.size() && words[at].starts_with('-')) ++at;
  return at < words.size() ? std::vector(words.begin() + static_cast<std::ptrdiff_t>(at), words.end()) : words;
}

bool is_test_name(std::string_view name) {
  return name.find("test") != std::string_view::npos || name.find("spec") != std::string_view::npos;
}

}  // namespace

RunFiles files_run(const Act& given) {
  RunFiles result;
  Act act = given;
  act.words = without_launcher(given.words);
  if (act.words.empty()) return result;
  const std::string& first = act.words[0];
  const std::string program(file_name(first));
  const auto value_of = [&](std::string_view option) {
    for (std::size_t i = 1; i < act.words.size(); ++i) {
      // The grammar takes the `-` of `make -f - <<X` for a part of the redirection.
      if (act.words[i] == option) return i + 1 < act.words.size() ? act.words[i + 1] : std::string("-");
      if (act.words[i].starts_with(option) && act.words[i].size() > option.size()) return act.words[i].substr(option.size());
    }
    return std::string();
  };
  if (has_word("make gmake", program)) {
    if (const std::string file = value_of("-f"); !file.empty()) result.files.push_back(file);
    else result.files = {"Makefile", "makefile", "GNUmakefile"};
    return result;
  }
  // What such a program reads and runs, in the directory where it is called.
  struct Reads {
    std::string_view programs, files;
  };
  constexpr Reads kReads[] = {
      {"npm pnpm yarn bun", "package.json"},
      {"just", "justfile Justfile .justfile"},
      {"docker podman docker-compose buildah",
       "Dockerfile Containerfile compose.yml compose.yaml docker-compose.yml compose.override.yml"},
      {"gradle gradlew", "build.gradle build.gradle.kts settings.gradle"},
      {"mvn mvnw", "pom.xml"},
      {"rake", "Rakefile"},
      {"cmake", "CMakeLists.txt"},
      {"ninja", "build.ninja"},
      {"pip pip3 uv poetry pdm hatch", "setup.py pyproject.toml"},
      {"tox nox", "tox.ini noxfile.py"},
      {"pytest py.test tox nox", "conftest.py"},
      {"cargo", "build.rs"},
      {"pre-commit", ".pre-commit-config.yaml"},
      {"direnv", ".envrc"},
      {"vagrant", "Vagrantfile"},
      {"task go-task", "Taskfile.yml"},
      {"invoke inv fab", "tasks.py fabfile.py"},
      {"gulp grunt", "gulpfile.js Gruntfile.js"},
  };
  const auto add_files = [&](std::string_view names) {
    for (std::size_t at = 0; at < names.size();) {
      const std::size_t end = std::min(names.find(' ', at), names.size());
      result.files.emplace_back(names.substr(at, end - at));
      at = end + 1;
    }
  };
  for (const Reads& reads : kReads) {
    if (has_word(reads.programs, program)) add_files(reads.files);
  }
  if (program == "git") result.below = {".git/hooks", "hooks", ".husky", ".githooks"};
  if (program == "run-parts" && act.words.size() > 1) result.below.push_back(act.words.back());
  result.tests = has_word("pytest py.test tox nox jest vitest mocha", program);
  if (has_word("npm pnpm yarn bun go cargo", program)) result.tests = act.words.size() > 1 && has_word("test t run", act.words[1]);
  for (const Takes& takes : kTakes) {
    if (!has_word(takes.programs, program)) continue;
    for (std::size_t i = 1; i + 1 < act.words.size(); ++i) {
      if (has_word(takes.options, act.words[i])) result.files.push_back(act.words[i + 1]);
    }
  }
  if (has_word(kReadsInput, program)) result.files.insert(result.files.end(), act.inputs.begin(), act.inputs.end());
  if (runs_files(program)) {
    const auto [what, at] = find_run(act.words);
    const bool reads_input = what == Runs::kNothing || (what == Runs::kFile && act.words[at] == "-");
    if (reads_input) result.files.insert(result.files.end(), act.inputs.begin(), act.inputs.end());
    if (what == Runs::kFile) result.files.push_back(act.words[at]);
    if (what == Runs::kModule) {
      result.tests = has_word("pytest unittest tox nox", act.words[at]);
      if (result.tests) result.files.emplace_back("conftest.py");
      if (has_word("pip build", act.words[at])) result.files.emplace_back("setup.py");
      std::string path = act.words[at];
      std::ranges::replace(path, '.', '/');
      result.files.insert(result.files.end(), {path + ".py", path + "/__main__.py"});
    }
  } else if (first.find('/') != std::string::npos && !first.starts_with("/usr/") && !first.starts_with("/bin/")) {
    result.files.push_back(first);
  }
  return result;
}

bool is_run_by(const RunFiles& run, std::string_view path) {
  const std::string_view name = file_name(path);
  if (std::ranges::any_of(run.files, [&](const std::string& file) { return file_name(file) == name; })) return true;
  for (std::string_view directory : run.below) {
    while (directory.ends_with('/')) directory.remove_suffix(1);
    const std::size_t at = path.rfind('/');
    if (at == std::string_view::npos) continue;
    const std::string_view parent = path.substr(0, at);
    if (parent == directory || parent.ends_with("/" + std::string(directory))) return true;
  }
  return run.tests && is_test_name(name);
}

bool is_test_code(std::string_view name) noexcept {
  const std::size_t dot = name.rfind('.');
  return dot != std::string_view::npos && is_test_name(name) &&
         has_word("py js mjs cjs ts tsx jsx rb php sh bats", name.substr(dot + 1));
}

std::string inline_code(const Act& act) {
  if (act.words.empty()) return {};
  const std::string_view program = file_name(act.words[0]);
  if (has_word("awk gawk mawk nawk", program)) {
    for (std::size_t i = 1; i < act.words.size(); ++i) {
      if (has_word("-f --file", act.words[i])) return {};
      if (has_word("-F -v", act.words[i])) ++i;
      else if (!act.words[i].starts_with('-')) return act.words[i];
    }
    return {};
  }
  const auto [what, at] = find_run(act.words);
  const bool shell = shell::is_shell(program) || has_word("source .", program);  // the reader opens those
  return what == Runs::kCode && !shell && at + 1 < act.words.size() ? act.words[at + 1] : std::string();
}

}  // namespace belljar::guard
