#include "backend/find.h"

#include <memory>
#include <string_view>

#include "backend/backend.h"
#include "backend/landlock/landlock.h"
#include "backend/local/local.h"
#include "backend/native/host.h"
#include "backend/native/native.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend {
namespace {

template <class Kind>
std::unique_ptr<Backend> make(const Host& host) {
  return std::make_unique<Kind>(host);
}

struct Row {
  std::string_view name;
  std::unique_ptr<Backend> (*make)(const Host&);
};

constexpr Row kBackends[] = {{"native", make<NativeBackend>},
                             {"auto", make<NativeBackend>},
                             {"", make<NativeBackend>},
                             {"landlock", make<LandlockBackend>},
                             {"local", make<LocalBackend>}};

}  // namespace

Result<std::unique_ptr<Backend>> find_backend(std::string_view name, const Host& host) {
  for (const Row& row : kBackends) {
    if (row.name == name) return row.make(host);
  }
  return Error(Code::kUnimplemented, format("there is no backend {}", quoted(name))).next("use native or landlock");
}

}  // namespace belljar::backend
