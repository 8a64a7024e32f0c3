#include "cli/container/environment.h"

#include <string>
#include <utility>

#include "base/environment.h"
#include "belljar/container.h"
#include "policy/merge.h"

namespace belljar::cli {

ContainerOptions container_of_environment(const policy::Effective& effective) {
  ContainerOptions options;
  if (policy::origin_of(effective, "backend") == "SANDBOX_COMMANDS") options = sandbox_commands();
  if (std::string image = own_variable("BELLJAR_IMAGE"); !image.empty()) options.image = std::move(image);
  options.engine = own_variable("BELLJAR_ENGINE");
  return options;
}

}  // namespace belljar::cli
