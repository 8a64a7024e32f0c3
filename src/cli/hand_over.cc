// Commands that live in programs of their own beside this one: `run` links neither the benchmarks nor a parser of shell.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/tls_parts.h"
#include "policy/look.h"

namespace belljar::cli {
namespace {

// The program for `run` with a backend that has one of its own, or with an option that only containers have; null: this one. The
// words after "--" are the program's.
const char* program_of_run(std::span<char* const> words) noexcept {
  constexpr std::string_view kBackend = "--backend";
  const auto is = [](std::string_view word, std::string_view option) {
    return word.starts_with(option) && (word.size() == option.size() || word[option.size()] == '=');
  };
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--") return nullptr;
    if (is(word, "--image") || is(word, "--engine")) return program_of_backend("container");
    const char* program = nullptr;
    if (word == kBackend && i + 1 < words.size()) program = program_of_backend(words[i + 1]);
    else if (is(word, kBackend) && word != kBackend) program = program_of_backend(word.substr(kBackend.size() + 1));
    if (program != nullptr) return program;
  }
  return nullptr;
}

}  // namespace

const char* program_of_backend(std::string_view name) noexcept {
  if (name == "container") return "belljar-container";
  return name == "e2b" ? "belljar-e2b" : nullptr;
}

const char* other_program(std::span<char* const> argv) noexcept {
  if (argv.size() < 2) return nullptr;
  const std::string_view word = argv[1];
  if (word == "bench") return "belljar-bench";
  if (word == "audit") return "belljar-audit";
  if (word == "mcp") return "belljar-mcp";
  if (word == "agent") return "belljar-agent";
  if (word == "run") return program_of_run(argv);
  for (const std::string_view verb : {"create", "exec", "ls", "kill", "logs", "stats"}) {
    if (word == verb) return "belljar-sandbox";
  }
  if (word == "rules" || word == "scan" || word == "review") return "belljar-guard";
  if (word == "policy" && argv.size() > 2 && std::string_view(argv[2]) == "import") return "belljar-guard";
  return nullptr;
}

namespace {

std::string beside_us(const char* program) {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  std::string file(path, size > 0 ? static_cast<std::size_t>(size) : 0);
  file.resize(file.rfind('/') + 1);
  return file + program;
}

// As they were given, the first included. CLI11 has them in pieces by now.
std::string own_words() {
  std::string words;
  const UniqueFd file(::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  char buffer[4096];
  ssize_t got = 0;
  while ((got = ::read(file.get(), buffer, sizeof buffer)) > 0) words.append(buffer, static_cast<std::size_t>(got));
  return words;
}

}  // namespace

Result<void> become_tls_program(const Policy& policy) {
  if (interceptor_of_this_program() != nullptr || !policy::wants_look(policy.network)) return {};
  const std::string file = beside_us("belljar-tls");
  std::string words = own_words();
  std::vector<char*> argv;
  for (std::size_t at = 0; at < words.size(); at = words.find('\0', at) + 1) argv.push_back(words.data() + at);
  argv.push_back(nullptr);
  ::execv(file.c_str(), argv.data());
  return Error(Code::kNotFound, format("cannot look into TLS: it is done by {}", quoted(file)))
      .sys(errno, "execve")
      .next("build it: ./dev build release belljar-tls");
}

Error replace_by(const char* program, char* const* argv) {
  const std::string file = beside_us(program);
  ::execv(file.c_str(), argv);
  return Error(Code::kNotFound, format("cannot do `belljar {}`: it is done by {}", escaped(argv[0]), quoted(file)))
      .sys(errno, "execve")
      .next(format("build it: ./dev build release {}", program));
}

int hand_over(const char* program, char** argv) { return print_error(replace_by(program, argv)); }

}  // namespace belljar::cli
