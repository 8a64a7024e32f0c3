// Commands that live in programs of their own beside this one: `run` links neither the benchmarks nor a parser of shell.
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/format.h"
#include "belljar/error.h"
#include "cli/commands.h"
#include "cli/errors.h"

namespace belljar::cli {
namespace {

// `run` with an option that only containers have, or with their backend by name. The words after "--" are the program's.
bool means_container(std::span<char* const> words) noexcept {
  constexpr std::string_view kBackend = "--backend";
  const auto is = [](std::string_view word, std::string_view option) {
    return word.starts_with(option) && (word.size() == option.size() || word[option.size()] == '=');
  };
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--") return false;
    if (is(word, "--image") || is(word, "--engine")) return true;
    if (word == kBackend && i + 1 < words.size() && program_of_backend(words[i + 1]) != nullptr) return true;
    if (word.starts_with(kBackend) && word.size() > kBackend.size() && word[kBackend.size()] == '=' &&
        program_of_backend(word.substr(kBackend.size() + 1)) != nullptr)
      return true;
  }
  return false;
}

}  // namespace

const char* program_of_backend(std::string_view name) noexcept { return name == "container" ? "belljar-container" : nullptr; }

const char* other_program(std::span<char* const> argv) noexcept {
  if (argv.size() < 2) return nullptr;
  const std::string_view word = argv[1];
  if (word == "bench") return "belljar-bench";
  if (word == "audit") return "belljar-audit";
  if (word == "run" && means_container(argv)) return "belljar-container";
  if (word == "rules" || word == "scan") return "belljar-guard";
  if (word == "policy" && argv.size() > 2 && std::string_view(argv[2]) == "import") return "belljar-guard";
  return nullptr;
}

Error replace_by(const char* program, char* const* argv) {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  std::string file(path, size > 0 ? static_cast<std::size_t>(size) : 0);
  file.resize(file.rfind('/') + 1);
  file += program;
  ::execv(file.c_str(), argv);
  return Error(Code::kNotFound, format("cannot do `belljar {}`: it is done by {}", escaped(argv[0]), quoted(file)))
      .sys(errno, "execve")
      .next(format("build it: ./dev build release {}", program));
}

int hand_over(const char* program, char** argv) { return print_error(replace_by(program, argv)); }

}  // namespace belljar::cli
