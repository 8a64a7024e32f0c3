// No sandbox: commands run as the caller, and see and may what the caller sees and may. What is kept are the guard rails around an
// agent's mistakes: file calls stay in the workspace, commands end in time with everything they started, output is capped, and the
// environment is filtered. For development; its report says so in every clause.
#pragma once

#include "backend/backend.h"
#include "backend/paths/host.h"

namespace belljar::backend {

class LocalBackend : public Backend {
 public:
  explicit LocalBackend(const Host& host) : host_(host) {}
  std::string_view name() const noexcept override { return "local"; }
  Result<Prepared> prepare(const Policy& policy, const Workplace& place) override;

 private:
  const Host& host_;
};

}  // namespace belljar::backend
