// The second tier: Landlock, seccomp and the broker, for machines where user namespaces are refused (hardened kernels, Ubuntu's
// AppArmor rule, a default Docker container), or on request with `--backend landlock`. Weaker, and its report says where.
//
// Landlock is an allow list and cannot carve holes, so what is hidden is held the other way round: what may be read and run is
// granted piece by piece around it, which costs an ordinary open nothing. Calls that write, list, move or link are performed by the
// broker, outside of the command's domain, so its rules (broker/file_rules.h, EnforcedPaths) hold every path. Landlock alone would
// close the listing of a folder that holds a hidden name, and reading what appears in a writable one: the first is the broker's
// (every open with O_DIRECTORY), for the second writable roots are granted whole, and if something hidden lies below one, every
// open is brokered. Without a broker (another sandbox has the listener, yama's ptrace_scope 2) protected names and patterns read
// `none`.
#pragma once

#include "backend/backend.h"
#include "backend/paths/host.h"

namespace belljar::backend {

class LandlockBackend : public Backend {
 public:
  explicit LandlockBackend(const Host& host) : host_(host) {}
  std::string_view name() const noexcept override { return "landlock"; }
  Result<Prepared> prepare(const Policy& policy, const Workplace& place) override;

 private:
  const Host& host_;
};

}  // namespace belljar::backend
