#include "backend/find.h"

#include <memory>
#include <string_view>

#include "backend/backend.h"
#include "backend/landlock/landlock.h"
#include "backend/local/local.h"
#include "backend/native/native.h"
#include "backend/paths/host.h"
#include "backend/probe.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend {
namespace {

template <class Kind>
std::unique_ptr<Backend> make(const Host& host) {
  return std::make_unique<Kind>(host);
}

// The native backend, or the second tier where user namespaces are refused, aloud. What that tier cannot hold still ends the start
// (runtime/enforcement.h).
class AutoBackend final : public Backend {
 public:
  explicit AutoBackend(const Host& host) {
    const Probe probe = probe_user_namespaces(host);
    if (probe.works) {
      chosen_ = make<NativeBackend>(host);
      return;
    }
    chosen_ = make<LandlockBackend>(host);
    warning_ = format("no user namespaces here ({}): the landlock backend holds this run, which hides less", probe.detail);
  }
  std::string_view name() const noexcept override { return chosen_->name(); }
  Result<Prepared> prepare(const Policy& policy, const Workplace& place) override {
    Prepared prepared = BELLJAR_TRY(chosen_->prepare(policy, place));
    if (!warning_.empty()) prepared.warnings.push_back(warning_);
    return prepared;
  }

 private:
  std::unique_ptr<Backend> chosen_;
  std::string warning_;
};

struct Row {
  std::string_view name;
  std::unique_ptr<Backend> (*make)(const Host&);
};

constexpr Row kBackends[] = {{"native", make<NativeBackend>},
                             {"auto", make<AutoBackend>},
                             {"", make<NativeBackend>},
                             {"landlock", make<LandlockBackend>},
                             {"local", make<LocalBackend>}};

}  // namespace

Result<std::unique_ptr<Backend>> find_backend(std::string_view name, const Host& host) {
  for (const Row& row : kBackends) {
    if (row.name == name) return row.make(host);
  }
  return Error(Code::kUnimplemented, format("there is no backend {}", quoted(name))).next("use native, landlock or auto");
}

}  // namespace belljar::backend
