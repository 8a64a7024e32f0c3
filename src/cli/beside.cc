#include "cli/beside.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "cli/own_program.h"

namespace belljar::cli {

const char* part_of_backend(std::string_view name) noexcept {
  constexpr std::array kParts{"container", "e2b", "aliyun", "volcengine"};
  const auto* const found = std::ranges::find(kParts, name, [](const char* part) { return std::string_view(part); });
  return found == kParts.end() ? nullptr : *found;
}

std::string beside_us(std::string_view program) {
  std::string file = own_program();
  file.resize(file.rfind('/') + 1);
  return file.append(program);
}

Error replace_by(const char* part, char* const* argv) {
  const std::string_view wanted = part == nullptr ? "belljar" : part;
  const char* const program = part == nullptr ? "belljar" : wanted == "bench" ? "belljar-bench" : kFullProgram;
  std::vector<char*> words;
  if (program == kFullProgram) words = {const_cast<char*>(kFullProgram), const_cast<char*>(part)};
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
