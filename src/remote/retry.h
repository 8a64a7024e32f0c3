#pragma once

#include "http/client.h"

namespace belljar::remote {

// Before try number `turn` (from 1) is repeated: sleeps for as long as the service asks, else for so many seconds. False, at once:
// that is not in the time that is left.
bool rest(int turn, const http::Reply& reply, http::Clock::time_point deadline);

}  // namespace belljar::remote
