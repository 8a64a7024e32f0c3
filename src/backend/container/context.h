// The contexts of Docker's own client: files below ~/.docker that name engines.
#pragma once

#include <map>
#include <string>

#include "belljar/result.h"

namespace belljar::backend::container {

// The address of the context that DOCKER_CONTEXT names, else config.json of DOCKER_CONFIG (~/.docker). Empty: none is chosen, or
// `default`. Errors: kNotFound, there is none of that name; kUnimplemented, its engine is behind no unix socket: TLS and ssh of
// contexts are not served.
Result<std::string> host_of_context(const std::map<std::string, std::string>& environment);

}  // namespace belljar::backend::container
