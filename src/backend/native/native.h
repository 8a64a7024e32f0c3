// The native backend: namespaces, a mount tree, Landlock and seccomp, with nothing but the kernel underneath.
#pragma once

#include <memory>
#include <string_view>

#include "backend/backend.h"
#include "backend/paths/host.h"

namespace belljar::backend {

class NativeBackend : public Backend {
 public:
  explicit NativeBackend(const Host& host) : host_(host) {}
  std::string_view name() const noexcept override { return "native"; }
  Result<Prepared> prepare(const Policy& policy, const Workplace& place) override;

 private:
  Result<Prepared> prepare_at(const Policy& policy, const Workplace& place);

  const Host& host_;
};

}  // namespace belljar::backend
