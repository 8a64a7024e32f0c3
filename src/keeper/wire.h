// Messages between a keeper and the commands that talk to it: objects with descriptors beside them, over a stream socket.
//
// A frame is its length (4 bytes, little endian) and CBOR (RFC 8949), because arguments and paths need not be text; nlohmann's CBOR
// takes strings as they are. Before the first one goes the key of the entry (directory.h). Both ends are the same program of the
// same user; a frame that makes no sense ends the connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::keeper {

using Json = nlohmann::json;

// The version of the protocol, on which both sides must agree; a keeper may be older than the program that talks to it.
inline constexpr int kProtocol = 3;
// More than execve takes of arguments and environment together.
inline constexpr std::uint32_t kMostBytes = 16U << 20;
inline constexpr std::size_t kMostDescriptors = 4;

struct Received {
  Json message;  // an object
  std::vector<UniqueFd> fds;
};

// One end of a connection. One thread may send while another receives.
class Channel {
 public:
  explicit Channel(UniqueFd socket) noexcept;

  // Errors: kInvalidArgument, larger than kMostBytes; kUnavailable, the other side is gone; kDeadlineExceeded, it does not read.
  Result<void> send(const Json& message, std::initializer_list<int> fds = {},
                    std::chrono::milliseconds patience = std::chrono::seconds(10));
  // The next message; nullopt when `patience` passed before it was whole (what came of it is kept). Unset: however long it takes.
  // Errors: kUnavailable, the other side is gone, or it sent what is no message.
  Result<std::optional<Received>> receive(std::optional<std::chrono::milliseconds> patience);

  int fd() const noexcept { return socket_.get(); }
  // Nothing more is received: a receive() on another thread ends.
  void stop_receiving() const noexcept;

 private:
  Result<void> take_bytes();
  Result<std::optional<Received>> take_message();

  UniqueFd socket_;
  std::string buffer_;
  std::vector<UniqueFd> fds_;
};

Json to_message(const Error& error);
Error error_from(const Json& message);

}  // namespace belljar::keeper
