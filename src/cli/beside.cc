#include "cli/beside.h"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "base/format.h"
#include "belljar/error.h"
#include "cli/own_program.h"

namespace belljar::cli {

const char* program_of_backend(std::string_view name) noexcept {
  if (name == "container") return "belljar-container";
  if (name == "e2b") return "belljar-e2b";
  if (name == "aliyun") return "belljar-aliyun";
  return name == "volcengine" ? "belljar-volcengine" : nullptr;
}

std::string beside_us(std::string_view program) {
  std::string file = own_program();
  file.resize(file.rfind('/') + 1);
  return file.append(program);
}

Error replace_by(const char* program, char* const* argv) {
  const std::string file = beside_us(program);
  ::execv(file.c_str(), argv);
  return Error(Code::kNotFound, format("cannot do `belljar {}`: it is done by {}", escaped(argv[0]), belljar::quoted(file)))
      .sys(errno, "execve")
      .next(format("build it: ./dev build release {}", program));
}

}  // namespace belljar::cli
