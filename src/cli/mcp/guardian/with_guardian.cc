#include <functional>
#include <memory>
#include <utility>

#include "belljar/guardian.h"
#include "belljar/result.h"
#include "belljar/turn.h"
#include "cli/mcp/defence_flags.h"

namespace belljar::cli {

Result<std::function<Judgement(const GuardianQuestion&)>> make_guardian(GuardianOptions options) {
  std::shared_ptr<Guardian> guardian = BELLJAR_TRY(http_guardian(std::move(options)));
  return std::function<Judgement(const GuardianQuestion&)>(
      [guardian](const GuardianQuestion& question) { return guarded(*guardian, question); });
}

}  // namespace belljar::cli
