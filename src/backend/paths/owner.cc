#include "backend/paths/owner.h"

#include <sys/types.h>

#include <optional>
#include <string>

#include "backend/backend.h"
#include "backend/paths/host.h"
#include "base/format.h"
#include "kernel/account.h"

namespace belljar::backend {
std::optional<Workplace> place_of_owner(const Host& host, const Workplace& place) {
  const uid_t uid = host.facts(place.workspace).uid;
  if (uid == 0) return std::nullopt;
  const kernel::Account account =
      kernel::find_account(host.read_small("/etc/passwd").value_or(""), uid).value_or(kernel::Account{});
  Workplace theirs = place;
  // Never the workspace's group: it may be one that the owner is not in (shadow, docker). Never group 0 either.
  theirs.owner = Owner{uid, account.gid != 0 ? account.gid : uid, place.home};
  const auto is_theirs = [&](const std::string& path) {
    const PathFacts facts = host.facts(path);
    return path != "/" && facts.kind == PathKind::kDirectory && facts.uid == uid;
  };
  const std::string home = account.home.empty() ? "" : host.canonical(account.home).value_or("");
  if (is_theirs(home)) theirs.home = home;
  else if (!is_theirs(place.home)) theirs.home.clear();
  theirs.runtime_dir = format("/run/user/{}", uid);
  if (!theirs.home.empty()) {
    for (std::string& variable : theirs.env) {
      if (variable == "HOME=" + place.home) variable = "HOME=" + theirs.home;
    }
  }
  return theirs;
}

}  // namespace belljar::backend
