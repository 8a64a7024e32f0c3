#include "support/as_user.h"

#include <sys/types.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "support/identity.h"

namespace belljar::test {
namespace {
constexpr uid_t kNobodysId = 21000;  // as in tools/as-test-user
}  // namespace

uid_t user_uid() noexcept { return is_root() ? kNobodysId : ::geteuid(); }
gid_t user_gid() noexcept { return is_root() ? kNobodysId : ::getegid(); }

std::vector<std::string> as_user(std::vector<std::string> argv, const std::string& home) {
  std::vector<std::string> prefix;
  if (is_root()) {
    const std::string id = std::to_string(kNobodysId);
    prefix = {"setpriv", "--reuid", id, "--regid", id, "--clear-groups", "--inh-caps=-all", "--ambient-caps=-all"};
  }
  if (!home.empty()) prefix.insert(prefix.end(), {"env", "HOME=" + home});
  argv.insert(argv.begin(), prefix.begin(), prefix.end());
  return argv;
}

}  // namespace belljar::test
