// Commands that live in programs of their own beside this one: `run` links neither the benchmarks nor a parser of shell.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "cli/beside.h"
#include "cli/choose.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/own_program.h"
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
  if (policy_chooses({words.data(), words.size()})) return nullptr;
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

const char* other_program(std::span<char* const> argv) noexcept {
  if (argv.size() < 2) return nullptr;
  const std::string_view word = argv[1];
  if (word == "bench") return "belljar-bench";
  if (word == "audit") return "belljar-audit";
  if (word == "mcp") return "belljar-mcp";
  if (word == "agent") return "belljar-agent";
  if (word == "run") return program_of_run(argv);
  for (const std::string_view verb : {"create", "exec", "ls", "kill", "logs", "stats", "network"}) {
    if (word == verb) return "belljar-sandbox";
  }
  if (word == "rules" || word == "scan" || word == "review") return "belljar-guard";
  if (word == "policy" && argv.size() > 2 && std::string_view(argv[2]) == "import") return "belljar-guard";
  return nullptr;
}

Result<void> become_tls_program(const Policy& policy) {
  if (interceptor_of_this_program() != nullptr || !policy::wants_look(policy.network)) return {};
  const std::string file = beside_us("belljar-tls");
  become(file);
  return Error(Code::kNotFound, format("cannot look into TLS: it is done by {}", belljar::quoted(file)))
      .sys(errno, "execve")
      .next("build it: ./dev build release belljar-tls");
}

int hand_over(const char* program, char** argv, unsigned closed) {
  // What is to be judged must not look empty because nobody gave it: reading this fails, as reading what is closed does.
  if ((closed & 1U) != 0 && std::string_view(program) == "belljar-guard") {
    const UniqueFd unreadable(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    (void)::dup2(unreadable.get(), STDIN_FILENO);
  }
  return print_error(replace_by(program, argv));
}

}  // namespace belljar::cli
