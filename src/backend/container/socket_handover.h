// How the sockets of a container's network come out: the attach stream carries no descriptors. pid 1 makes them and sends them,
// once and before it greets, over a unix socket in a directory of ours that the container sees at kHandoverDir. Before any command
// runs the socket is closed and its directory gone: what a command finds there is empty, and nobody answers.
//
// One packet (SOCK_SEQPACKET): for each socket that was asked for, in order, the errno of its making as a number of 4 bytes,
// highest first; those that were made come with it (SCM_RIGHTS), in the same order.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/container/shown_dir.h"
#include "base/unique_fd.h"
#include "belljar/result.h"
#include "launch/plan.h"

namespace belljar::backend::container {

inline constexpr char kHandoverDir[] = "/.belljar/door";
inline constexpr char kHandoverSocket[] = "/.belljar/door/socket";

// Empty where no sockets were asked for. Otherwise one entry for each that was.
struct HandedSockets {
  std::vector<UniqueFd> sockets;  // invalid: it could not be made, and `errnos` says why
  std::vector<int> errnos;
  int pid = 0;  // of who made them, in our pid namespace; 0: we cannot see it
};

// The words that tell belljar-inside of them.
std::vector<std::string> handover_arguments(std::span<const launch::InnerSocket> sockets);

class SocketHandover {
 public:
  // `state`: a directory of ours that the engine can reach. Errors: kFailedPrecondition, kResourceExhausted.
  static Result<SocketHandover> open(const std::string& state);
  SocketHandover(SocketHandover&&) noexcept = default;
  SocketHandover& operator=(SocketHandover&&) noexcept = default;

  const std::string& directory() const noexcept { return shared_; }  // to be bound at kHandoverDir
  // What pid 1 has sent, once it has greeted; then the socket and its directory are gone. `is_pid1` is asked of every peer that we
  // can see, and others are passed over. Errors: kFailedPrecondition, it sent none; kDataLoss, something else than was asked for.
  Result<HandedSockets> receive(std::span<const launch::InnerSocket> asked, const std::function<bool(int pid)>& is_pid1) &&;

 private:
  SocketHandover(ShownDir directory, std::string shared, UniqueFd listener)
      : directory_(std::move(directory)), shared_(std::move(shared)), listener_(std::move(listener)) {}
  ShownDir directory_;
  std::string shared_;
  UniqueFd listener_;
};

}  // namespace belljar::backend::container
