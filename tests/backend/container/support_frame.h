// A frame of the engine's multiplexed stream.
#pragma once

#include <string>

namespace belljar::backend::container {

// `payload`: below 64 KiB.
inline std::string frame(int stream, const std::string& payload) {
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(stream);
  bytes[6] = static_cast<char>(payload.size() >> 8);
  bytes[7] = static_cast<char>(payload.size());
  return bytes + payload;
}

}  // namespace belljar::backend::container
