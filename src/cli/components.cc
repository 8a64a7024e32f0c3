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

const char* name_of(Part part) noexcept { return std::ranges::find(kParts, part, &PartName::part)->name; }

std::optional<Part> find_part(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kParts, name, &PartName::name);
  return found == kParts.end() ? std::nullopt : std::optional(found->part);
}

std::optional<Part> part_of_backend(std::string_view name) noexcept {
  const auto* const found = std::ranges::find_if(kParts, [&](const PartName& one) { return one.is_backend && one.name == name; });
  return found == kParts.end() ? std::nullopt : std::optional(found->part);
}

std::string beside_us(std::string_view program) {
  std::string file = own_program();
  file.resize(file.rfind('/') + 1);
  return file.append(program);
}

Error replace_by(std::optional<Part> part, char* const* argv) {
  const char* const wanted = part ? name_of(*part) : "belljar";
  const char* const program = !part ? "belljar" : part == Part::kBench ? "belljar-bench" : kFullProgram;
  std::vector<char*> words;
  if (part && part != Part::kBench) words = {const_cast<char*>(kFullProgram), const_cast<char*>(wanted)};
  for (; *argv != nullptr; ++argv) words.push_back(*argv);
  words.push_back(nullptr);
  ::execv(beside_us(program).c_str(), words.data());
  return not_beside_us(format("cannot do `belljar {}`", wanted), program);
}

Error not_beside_us(const std::string& what, std::string_view program) {
  const int number = errno;
  return Error(Code::kNotFound, format("{}: it is done by {}", what, belljar::quoted(beside_us(program))))
      .sys(number, "execve")
      .next(format("install all of Belljar, whose programs lie beside each other; from its sources: ./dev build release {}",
                   program));
}

}  // namespace belljar::cli
