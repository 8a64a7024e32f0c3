// Where the engine listens. Text in, value out.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "belljar/result.h"

namespace belljar::backend::container {

struct Address {
  std::string path;  // of its unix socket
  bool operator==(const Address&) const = default;
};

// "unix:///path" or "/path". Errors: kInvalidArgument; kUnimplemented, another scheme (tcp, npipe, ssh), by name.
Result<Address> parse_address(std::string_view text);

// `given`, else DOCKER_HOST, else the first usual place that `exists` says yes to. Errors: as parse_address; kUnavailable, there is
// no engine here.
Result<Address> find_engine(const std::string& given, const std::map<std::string, std::string>& environment,
                            const std::function<bool(const std::string&)>& exists);

}  // namespace belljar::backend::container
