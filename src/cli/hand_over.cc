// Commands that belljar-full does, beside this program: `run` links neither TLS nor a parser of shell.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "belljar/error.h"
#include "cli/choose.h"
#include "cli/commands.h"
#include "cli/components.h"
#include "cli/errors.h"
#include "cli/own_program.h"
#include "cli/tls_program.h"
#include "policy/look.h"

namespace belljar::cli {
namespace {

// The part for `run` with a backend that has one of its own, or with an option that only containers have; none: this one. The
// words after "--" are the program's.
std::optional<Part> part_of_run(std::span<char* const> words) noexcept {
  constexpr std::string_view kBackend = "--backend";
  const auto is = [](std::string_view word, std::string_view option) {
    return word.starts_with(option) && (word.size() == option.size() || word[option.size()] == '=');
  };
  if (policy_chooses({words.data(), words.size()})) return {};
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--") return {};
    if (is(word, "--image") || is(word, "--engine")) return Part::kContainer;
    std::optional<Part> part;
    if (word == kBackend && i + 1 < words.size()) part = part_of_backend(words[i + 1]);
    else if (is(word, kBackend) && word != kBackend) part = part_of_backend(word.substr(kBackend.size() + 1));
    if (part) return part;
  }
  return {};
}

}  // namespace

std::optional<Part> part_for(std::span<char* const> argv) noexcept {
  if (argv.size() < 2) return {};
  const std::string_view word = argv[1];
  if (word == "run") return part_of_run(argv);
  if (word == "policy" && argv.size() > 2 && std::string_view(argv[2]) == "import") return Part::kGuard;
  const auto* const found = std::ranges::find(kPartCommands, word, &PartCommand::word);
  return found == kPartCommands.end() ? std::nullopt : std::optional(found->part);
}

Result<void> become_tls_program(const Policy& policy) {
  if (interceptor_of_this_program() != nullptr || !policy::wants_look(policy.network)) return {};
  become(beside_us(kFullProgram), name_of(Part::kTls));
  return not_beside_us("cannot look into TLS", kFullProgram);
}

int hand_over(Part part, char** argv, unsigned closed) {
  // What is to be judged must not look empty because nobody gave it: reading this fails, as reading what is closed does.
  if ((closed & 1U) != 0 && part == Part::kGuard) {
    const UniqueFd unreadable(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    (void)::dup2(unreadable.get(), STDIN_FILENO);
  }
  return print_error(replace_by(part, argv));
}

}  // namespace belljar::cli
