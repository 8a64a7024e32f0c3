// The second tier: Landlock and seccomp alone, for machines where user namespaces are refused (hardened kernels, Ubuntu's AppArmor
// rule, a default Docker container), or on request with `--backend landlock`. Weaker, and its report says where.
//
// Landlock is an allow list and cannot carve holes, so secrets are held the other way round: what may be read is granted piece by
// piece around them. A folder that holds a hidden name is granted child by child; it cannot be listed itself, and a name that
// appears in it later is as closed as the hidden ones. What would need a hole in something writable (protected names, read-only
// parts) reads `none`, and the start is refused by that name unless the policy accepts it.
#pragma once

#include "backend/backend.h"
#include "backend/native/host.h"

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
