// TCP on 127.0.0.1, for tests that are a server or talk to one.
#pragma once

#include <cstdint>

#include "base/unique_fd.h"

namespace belljar::test {

// Listens at a port of the kernel's choice, which is filled in; accepting does not block. Invalid when it cannot.
UniqueFd listen_loopback(std::uint16_t& port);
UniqueFd connect_loopback(std::uint16_t port);

}  // namespace belljar::test
