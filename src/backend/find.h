// The list of backends, for who has a policy and needs the one that it names. The only place that knows their names.
#pragma once

#include <memory>
#include <string_view>

#include "backend/backend.h"
#include "backend/paths/host.h"
#include "belljar/result.h"

namespace belljar::backend {

// `host` must outlive the backend. "" is the native one; "auto" too, unless
// user namespaces are refused (tried once, here): then it is the landlock one, and what it prepares warns of that. Errors:
// kUnimplemented, no backend has that name.
Result<std::unique_ptr<Backend>> find_backend(std::string_view name, const Host& host);

}  // namespace belljar::backend
