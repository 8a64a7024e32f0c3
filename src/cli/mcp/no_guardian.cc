// In belljar-mcp only; belljar-mcp-guardian has guardian/with_guardian.cc instead.

#include <cerrno>
#include <functional>
#include <string>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/guardian.h"
#include "belljar/result.h"
#include "belljar/turn.h"
#include "cli/beside.h"
#include "cli/mcp/defence_flags.h"
#include "cli/own_program.h"

namespace belljar::cli {

// The same words to the program beside us: libcurl cannot be linked statically on Debian, and few need it.
// NOLINTNEXTLINE(performance-unnecessary-value-param): as the other file has it
Result<std::function<Judgement(const GuardianQuestion&)>> make_guardian(GuardianOptions /*options*/) {
  const std::string file = beside_us("belljar-mcp-guardian");
  become(file);
  return Error(Code::kNotFound, format("cannot ask a guardian: it is done by {}", belljar::quoted(file)))
      .sys(errno, "execve")
      .next("build it: ./dev build release belljar-mcp-guardian");
}

}  // namespace belljar::cli
