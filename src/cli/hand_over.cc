// Commands that belljar-full does, beside this program: `run` links neither TLS nor a parser of shell.
#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

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

constexpr const char kGuardPart[] = "guard";

// The part for `run` with a backend that has one of its own, or with an option that only containers have; null: this one. The
// words after "--" are the program's.
const char* part_of_run(std::span<char* const> words) noexcept {
  constexpr std::string_view kBackend = "--backend";
  const auto is = [](std::string_view word, std::string_view option) {
    return word.starts_with(option) && (word.size() == option.size() || word[option.size()] == '=');
  };
  if (policy_chooses({words.data(), words.size()})) return nullptr;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--") return nullptr;
    if (is(word, "--image") || is(word, "--engine")) return part_of_backend("container");
    const char* part = nullptr;
    if (word == kBackend && i + 1 < words.size()) part = part_of_backend(words[i + 1]);
    else if (is(word, kBackend) && word != kBackend) part = part_of_backend(word.substr(kBackend.size() + 1));
    if (part != nullptr) return part;
  }
  return nullptr;
}

}  // namespace

const char* part_for(std::span<char* const> argv) noexcept {
  if (argv.size() < 2) return nullptr;
  const std::string_view word = argv[1];
  if (word == "bench") return "bench";
  if (word == "audit") return "audit";
  if (word == "mcp") return "mcp";
  if (word == "agent") return "agent";
  if (word == "run") return part_of_run(argv);
  if (word == "rules" || word == "scan" || word == "review") return kGuardPart;
  if (word == "policy" && argv.size() > 2 && std::string_view(argv[2]) == "import") return kGuardPart;
  return nullptr;
}

Result<void> become_tls_program(const Policy& policy) {
  if (interceptor_of_this_program() != nullptr || !policy::wants_look(policy.network)) return {};
  become(beside_us(kFullProgram), kTlsPart);
  return not_beside_us("cannot look into TLS", kFullProgram);
}

int hand_over(const char* part, char** argv, unsigned closed) {
  // What is to be judged must not look empty because nobody gave it: reading this fails, as reading what is closed does.
  if ((closed & 1U) != 0 && std::string_view(part) == kGuardPart) {
    const UniqueFd unreadable(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    (void)::dup2(unreadable.get(), STDIN_FILENO);
  }
  return print_error(replace_by(part, argv));
}

}  // namespace belljar::cli
