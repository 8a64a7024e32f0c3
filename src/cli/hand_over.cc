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
#include "policy/tls_interception.h"

namespace belljar::cli {
namespace {

// The component for `run` with a backend that has one of its own, or with an option that only containers have; none: this program.
// The words after "--" are the program's.
std::optional<Component> component_of_run(std::span<char* const> words) noexcept {
  constexpr std::string_view kBackend = "--backend";
  const auto is = [](std::string_view word, std::string_view option) {
    return word.starts_with(option) && (word.size() == option.size() || word[option.size()] == '=');
  };
  if (policy_chooses({words.data(), words.size()})) return {};
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--") return {};
    if (is(word, "--image") || is(word, "--engine")) return Component::kContainer;
    std::optional<Component> component;
    if (word == kBackend && i + 1 < words.size()) component = component_of_backend(words[i + 1]);
    else if (is(word, kBackend) && word != kBackend) component = component_of_backend(word.substr(kBackend.size() + 1));
    if (component) return component;
  }
  return {};
}

}  // namespace

std::optional<Component> component_for(std::span<char* const> argv) noexcept {
  if (argv.size() < 2) return {};
  const std::string_view word = argv[1];
  if (word == "run") return component_of_run(argv);
  if (word == "policy" && argv.size() > 2 && std::string_view(argv[2]) == "import") return Component::kGuard;
  const auto* const found = std::ranges::find(kComponentCommands, word, &ComponentCommand::word);
  return found == kComponentCommands.end() ? std::nullopt : std::optional(found->component);
}

Result<void> exec_tls_program(const Policy& policy) {
  if (interceptor_of_this_program() != nullptr || !policy::wants_interception(policy.network)) return {};
  exec_program(path_of_sibling(kFullProgram), name_of(Component::kTls));
  return sibling_is_missing("cannot look into TLS", kFullProgram);
}

int hand_over(Component component, char** argv, unsigned closed) {
  // What is to be judged must not look empty because nobody gave it: reading this fails, as reading what is closed does.
  if ((closed & 1U) != 0 && component == Component::kGuard) {
    const UniqueFd unreadable(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    (void)::dup2(unreadable.get(), STDIN_FILENO);
  }
  return print_error(exec_component(component, argv));
}

}  // namespace belljar::cli
