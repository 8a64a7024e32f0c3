// The native backend: namespaces, a mount tree, Landlock and seccomp, with nothing but the kernel underneath (DESIGN section 4).
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "backend/backend.h"
#include "backend/native/host.h"

namespace belljar::backend {

// What the policy room ships as defaults, handed in by main: this room decides how, not what.
struct NativeDefaults {
  std::span<const std::string_view> secrets;          // "~/.ssh", "/etc/shadow"
  std::span<const std::string_view> protected_names;  // ".git", ".vscode": names at a writable root
  std::span<const std::string_view> caches;           // "~/.cache"
};

class NativeBackend : public Backend {
 public:
  NativeBackend(const Host& host, const NativeDefaults& defaults) : host_(host), defaults_(defaults) {}
  std::string_view name() const noexcept override { return "native"; }
  Result<Prepared> prepare(const Policy& policy, const Workplace& place) override;

 private:
  const Host& host_;
  NativeDefaults defaults_;
};

}  // namespace belljar::backend
