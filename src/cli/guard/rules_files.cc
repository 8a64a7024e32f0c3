#include "cli/guard/rules_files.h"

#include <stdlib.h>

#include <cerrno>
#include <string>

#include "base/environment.h"
#include "base/format.h"
#include "base/real_path.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "cli/load.h"
#include "guard/rules.h"

namespace belljar::cli {

std::string user_rules_file() {
  const std::string config = own_variable("XDG_CONFIG_HOME"), home = own_variable("HOME");
  if (config.starts_with('/')) return config + "/belljar/rules.toml";
  return home.empty() ? std::string() : home + "/.config/belljar/rules.toml";
}

Result<void> add_rules_file(guard::RuleSet& set, const std::string& path, const std::string& workspace, bool named) {
  auto text = read_text_file(path, "the rules");
  const bool absent = !text && (text.error().errnum() == ENOENT || text.error().errnum() == ENOTDIR);
  if (absent && !named && !dangles(path)) return {};
  if (!text) {
    return Error(text.error().code(), format("cannot read the rules {}", belljar::quoted(path)))
        .reason(dangles(path) ? "it is a link to what is not there, so what it forbids is not known" : text.error().reason())
        .sys(text.error().errnum(), text.error().call())
        .next(named ? "name a TOML file: --rules ./rules.toml" : "mend the file or remove it");
  }
  const bool inside = !workspace.empty() && (real_path(path) + "/").starts_with(workspace == "/" ? "/" : workspace + "/");
  const guard::Trust trust = inside ? guard::Trust::kWorkspace : guard::Trust::kUser;
  guard::join(set, BELLJAR_TRY(guard::parse_rules(*text, path, trust)), trust);
  return {};
}

}  // namespace belljar::cli
