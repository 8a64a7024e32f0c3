// Sandboxes made ahead of time: taking one costs a message and its answer instead of a start.
//
//   PoolOptions options;
//   options.ready = 4;
//   auto pool = BELLJAR_TRY(Pool::create(options));
//   {
//     Lease lease = BELLJAR_TRY(pool->take());
//     BELLJAR_TRY(lease->exec("make test"));
//   }                                          // given back: ended, its workspace removed, another one made meanwhile
//
// No sandbox is ever used twice. One that is given back is ended with every process, mount, key, socket and
// IPC object in it, its workspace is removed, and another one is made in the background. So there is no state
// to reset, and none to forget.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "belljar/cancel.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"

namespace belljar {

struct PoolOptions {
  // The configuration of each sandbox. `workspace` and `transaction` stay empty: each gets an empty workspace of its own, which
  // goes with it, and sees no other's unless policy.filesystem.siblings is kShown.
  SandboxConfig sandbox;
  // Where those are made: an existing directory of the host. Empty: one below $TMPDIR or /var/tmp, removed with the pool.
  std::string workspaces;
  std::size_t ready = 4;  // how many wait to be taken; made ahead in the background
  std::size_t most = 64;  // in all, those in use included; at least 1 and at least `ready`
  // One that waited this long is ended, and no other is made for it until the next take(): a quiet pool shrinks to nothing.
  std::optional<std::chrono::milliseconds> idle_time;
  // How often those that wait are asked whether they live; dead ones are replaced. They are asked again when they are taken.
  std::chrono::milliseconds check_interval{10'000};
  // Prepares each new sandbox: files, programs, a server. On any thread, for several at one time; on those of the pool with a lower
  // priority than yours (nice(2) 10), which what runs inside does not have. One whose preparation returns an error or throws
  // (kInternal), or that does not run any more afterwards (kUnavailable), is discarded.
  std::function<Result<void>(Sandbox& sandbox)> prepare;
};

struct TakeOptions {
  std::chrono::milliseconds patience{30'000};  // when `most` are in use: how long to wait for one to be given back
  CancelToken cancel;
};

struct PoolStats {
  std::size_t ready = 0, in_use = 0;
  std::uint64_t made = 0;    // since the pool was made
  std::uint64_t taken = 0;   // handed out
  std::uint64_t dead = 0;    // of `made`: found dead while they waited
  std::uint64_t waited = 0;  // of `taken`: none was ready, so it was made while the caller waited
  std::string last_error;    // why the last one could not be made; empty after a success
};

class PoolState;

// A sandbox in use by one owner. Move-only; the destructor gives it back. Whoever kept a pointer to the sandbox then holds one that
// is stopped.
class Lease {
 public:
  Lease(Lease&&) noexcept = default;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease() { give_back(); }

  Sandbox& operator*() const noexcept { return *sandbox_; }
  Sandbox* operator->() const noexcept { return sandbox_.get(); }
  const std::shared_ptr<Sandbox>& sandbox() const noexcept { return sandbox_; }
  // Returns at once; the pool ends it in the background. Idempotent.
  void give_back() noexcept;

 private:
  friend class PoolState;
  Lease(std::shared_ptr<Sandbox> sandbox, std::shared_ptr<PoolState> home) noexcept;
  std::shared_ptr<Sandbox> sandbox_;
  std::shared_ptr<PoolState> home_;
};

// Safe from any thread. After a fork(2) the pool stays the parent's, as a sandbox does (sandbox.h).
class Pool {
 public:
  // Errors: kInvalidArgument, numbers that contradict each other or a workspace; as make_sandbox, and as its start(): the first
  // sandbox is made before this returns, so that what can never be made is found here. With `ready` 0 nothing is.
  static Result<std::unique_ptr<Pool>> create(PoolOptions options);
  ~Pool();  // stop() without patience
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // A sandbox that answered just now and that nobody had before. When none waits it is made at once, on the caller's time. Errors:
  // kResourceExhausted, `most` were in use for as long as the patience; kCanceled; kFailedPrecondition, the pool was stopped; as
  // Sandbox::start.
  Result<Lease> take(const TakeOptions& options = {});
  // Hands out no more, ends those that wait, waits for those in use to be given back for at most `patience`, and ends the rest.
  void stop(std::chrono::milliseconds patience = std::chrono::milliseconds(0));
  PoolStats stats() const;

 private:
  explicit Pool(std::shared_ptr<PoolState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<PoolState> state_;
};

}  // namespace belljar
