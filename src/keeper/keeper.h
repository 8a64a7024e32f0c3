// Keeps one sandbox after the command that made it has gone: serves its socket until it expires, is killed or ends by itself.
//
// One thread accepts and watches the clock; each connection has a thread of its own, which may wait. What a connection may ask is
// in serve.h. The peer of a connection has to be the same user, in the same user namespace: a command in a sandbox of that user is
// in another one.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "base/wake.h"
#include "keeper/directory.h"
#include "keeper/event_log.h"
#include "keeper/serve.h"
#include "keeper/wire.h"
#include "session/live.h"

namespace belljar::keeper {

// Connections at one time; further ones are told so and closed.
inline constexpr std::size_t kMostConnections = 1500;

class Keeper final : public EndControl {
 public:
  // `kept.sandbox` is not started yet; run() wants it running. `expires`: wall time from now. Signals INT, TERM and HUP are blocked
  // in every thread.
  Keeper(KeptSandbox kept, Claim claim, const Directory& directory, std::optional<std::chrono::milliseconds> expires);
  ~Keeper() override;
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Until the sandbox has ended and everything of it is given back.
  void run();

  void end(const std::string& why) noexcept override;
  bool await_end(std::chrono::milliseconds patience) override;

 private:
  struct Connection {
    explicit Connection(UniqueFd socket) : channel(std::move(socket)) {}
    Channel channel;
    std::atomic<bool> done{false};
    std::thread thread;
  };
  void open_timer(std::optional<std::chrono::milliseconds> expires);
  void turn();
  void accept_one();
  void serve_one(Connection& connection);
  void reap();
  void check_place();
  void stop();

  KeptSandbox kept_;
  const Claim claim_;
  const Directory& directory_;
  Wake wake_;
  UniqueFd timer_, signals_;
  std::list<Connection> connections_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string why_;       // guarded by mutex_; not empty: it is to end
  bool stopped_ = false;  // guarded by mutex_
};

}  // namespace belljar::keeper
