// The names of what belljar/turn.h counts up. Here and not with the judging, since the audit trail writes them, too.
#include <cstddef>
#include <string_view>

#include "belljar/turn.h"

namespace belljar {

std::string_view to_string(TextSource source) noexcept {
  constexpr std::string_view kNames[] = {"user", "workspace", "network", "tool"};
  return kNames[static_cast<std::size_t>(source)];
}

std::string_view to_string(CallClass kind) noexcept {
  constexpr std::string_view kNames[] = {"reading",     "writing",        "running",      "installing",  "fetching",
                                         "sending",     "secret-reading", "exfiltrating", "destructive", "privilege",
                                         "persistence", "commitment",     "unread"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(Advice advice) noexcept {
  constexpr std::string_view kNames[] = {"allow", "ask", "block"};
  return kNames[static_cast<std::size_t>(advice)];
}

}  // namespace belljar
