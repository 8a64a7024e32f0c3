#include "cli/components.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "cli/own_program.h"

namespace belljar::cli {

const char* name_of(Component component) noexcept {
  return std::ranges::find(kComponents, component, &ComponentName::component)->name;
}

std::optional<Component> find_component(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kComponents, name, &ComponentName::name);
  return found == kComponents.end() ? std::nullopt : std::optional(found->component);
}

std::optional<Component> component_of_backend(std::string_view name) noexcept {
  const auto* const found =
      std::ranges::find_if(kComponents, [&](const ComponentName& one) { return one.is_backend && one.name == name; });
  return found == kComponents.end() ? std::nullopt : std::optional(found->component);
}

std::string path_of_sibling(std::string_view program) {
  std::string file = own_program();
  file.resize(file.rfind('/') + 1);
  return file.append(program);
}

Error exec_component(std::optional<Component> component, char* const* argv) {
  const char* const wanted = component ? name_of(*component) : "belljar";
  const char* const program = !component ? "belljar" : component == Component::kBench ? "belljar-bench" : kFullProgram;
  std::vector<char*> words;
  if (component && component != Component::kBench) words = {const_cast<char*>(kFullProgram), const_cast<char*>(wanted)};
  for (; *argv != nullptr; ++argv) words.push_back(*argv);
  words.push_back(nullptr);
  ::execv(path_of_sibling(program).c_str(), words.data());
  return sibling_is_missing(format("cannot do `belljar {}`", wanted), program);
}

Error sibling_is_missing(const std::string& what, std::string_view program) {
  const int number = errno;
  return Error(Code::kNotFound, format("{}: it is done by {}", what, belljar::quoted(path_of_sibling(program))))
      .sys(number, "execve")
      .next(format("install all of Belljar, whose programs lie beside each other; from its sources: ./dev build release {}",
                   program));
}

}  // namespace belljar::cli
