#include "broker/git_judge.h"

#include <optional>
#include <string>
#include <string_view>

namespace belljar::broker {

// First form: everything is refused that is not empty or unchanged. The parser follows.
std::optional<std::string> git_objection(GitName kind, std::string_view /*path*/, std::string_view content,
                                         const GitContext& context) {
  if (kind == GitName::kNone || kind == GitName::kSampleHook) return std::nullopt;
  if (content.size() > kMaxControlFile) return "it is longer than 1 MiB, which nobody reads";
  if (content.empty() || (context.old_content && *context.old_content == content)) return std::nullopt;
  return "it is a control file of git whose content cannot be judged yet";
}

}  // namespace belljar::broker
