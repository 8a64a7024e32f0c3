#include "support/identity.h"

#include <linux/landlock.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "base/format.h"

namespace belljar::test {
namespace {

// The kernel's own word for a nested sandbox: belljar's seccomp filter refuses namespaces inside.
std::string seccomp_mode() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Seccomp:")) return line.substr(line.find_last_not_of("0123456789") + 1);
  }
  return "0";
}

}  // namespace

bool is_root() noexcept { return ::geteuid() == 0; }

int landlock_abi() noexcept {
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

bool user_namespaces_work() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) == 0 ? 0 : 1);
  int status = 1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

bool cgroup_v2_offers(std::string_view controller) {
  for (const char* root : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    std::ifstream file(std::string(root) + "/cgroup.controllers");
    for (std::string word; file >> word;) {
      if (word == controller) return ::access(root, W_OK) == 0;
    }
  }
  return false;
}

std::string find_program(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::istringstream parts(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string part; std::getline(parts, part, ':');) {
    std::string candidate = part + "/" + std::string(name);
    if (!part.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

std::string as_root() { return is_root() ? "" : "only as root"; }
std::string as_ordinary_user() { return is_root() ? "only as an ordinary user" : ""; }

std::string landlock_abi_at_least(int abi) {
  const int here = landlock_abi();
  return here >= abi ? "" : format("needs Landlock ABI {}, kernel has {}", abi, here);
}

std::string user_namespaces() {
  if (user_namespaces_work()) return "";
  return seccomp_mode() == "2" ? "nested: no user namespaces" : "needs user namespaces, this machine refuses them";
}

std::string cgroup_v2(std::string_view controller) {
  return cgroup_v2_offers(controller) ? "" : format("needs cgroup v2 with the {} controller and a group we may make", controller);
}

std::string program(std::string_view name) {
  return find_program(name).empty() ? format("needs the program {} (./dev setup test)", name) : "";
}

}  // namespace belljar::test
