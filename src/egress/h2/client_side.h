// HTTP/2 with a client, as its server (RFC 9113).
#pragma once

#include <cstdint>
#include <memory>

#include "egress/streams.h"

namespace belljar::egress::h2 {

// What one client may have at once, and how fast it may say what asks for nothing.
struct ClientLimits {
  std::uint32_t streams = 100;
  std::uint32_t window = 65'535;                             // bytes of a request's body that nobody has taken
  double resets = 200, resets_per_second = 40;               // CVE-2023-44487; also those that its faults bring about
  double idle_frames = 5000, idle_frames_per_second = 1000;  // PING, SETTINGS, PRIORITY, CONTINUATION, empty DATA
};

std::unique_ptr<Streams> make_streams(const ClientLimits& limits = {});

}  // namespace belljar::egress::h2
