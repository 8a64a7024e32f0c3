// The life of one container: made, attached to, started, removed. And what an earlier front left behind.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "backend/container/channel.h"
#include "backend/container/engine.h"
#include "backend/container/mounted.h"
#include "backend/container/socket_handover.h"
#include "base/unique_fd.h"
#include "belljar/cancel.h"
#include "belljar/result.h"

namespace belljar::backend::container {

inline constexpr char kOwnerLabel[] = "belljar.owner";
inline constexpr char kSandboxLabel[] = "belljar.sandbox";

// This process, as a label: a container whose owner is gone is an orphan. Empty where /proc does not tell.
std::string owner_label();
// Whether the process that `label` names may still be there; of another boot, or in another pid namespace, it may.
bool owner_may_live(const std::string& label);

// Removes the containers of ours whose owner is gone. Returns how many. What cannot be listed or removed is left: it is somebody's
// later start that tries again.
int remove_orphans(const Engine& engine);

// The image as the policy of pulls says. Errors: kNotFound, with pull = never or at the registry too; as Engine::pull.
Result<ImageFacts> fetch_image(const Engine& engine, const ContainerOptions& options, const CancelToken& cancel = {});

// Of this process, now.
std::vector<Mount> read_mounts();

// A resource. Safe from any thread.
class Container {
 public:
  // Errors: as the calls of Engine; kFailedPrecondition, its pid 1 did not begin; kCanceled, and it is removed.
  // As Channel::set_filter, unless the spec says that it may be missing.
  // Its sockets come out before it returns: kDataLoss, others than were asked for. kAborted, as check_mounted.
  static Result<std::shared_ptr<Container>> start(const Engine& engine, const Spec& spec, const CancelToken& cancel = {});
  ~Container() { (void)stop(); }
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;

  const std::shared_ptr<Channel>& channel() const noexcept { return channel_; }
  // One for each of the spec, once.
  HandedSockets take_passed() { return std::move(sockets_); }
  // Its pid 1 is killed when the line breaks, whoever is left to do it.
  bool held() const noexcept { return held_; }
  // Its commands get the spec's filter.
  bool filtered() const noexcept { return filtered_; }
  // What the engine shows in there beside what it was asked for.
  const std::vector<std::string>& unasked() const noexcept { return unasked_; }
  // Where it has more room in memory than it was asked for.
  const std::vector<std::string>& larger() const noexcept { return larger_; }
  // What its pid 1 is.
  const InsideStatus& status() const noexcept { return status_; }
  Result<ContainerStats> stats(const CancelToken& cancel) const { return engine_.stats(id_, cancel); }
  // Kills and removes it, and waits until the engine has. Twice is fine. Errors: as Engine::remove; kCanceled, it may be there yet,
  // and the next stop() looks after it.
  Result<void> stop(const CancelToken& cancel = {});

 private:
  Container(Engine engine, std::string id) : engine_(std::move(engine)), id_(std::move(id)) {}
  Result<void> look_inside(const Spec& spec);

  Engine engine_;
  std::string id_;
  std::shared_ptr<Channel> channel_;
  HandedSockets sockets_;
  std::vector<std::string> unasked_, larger_;
  InsideStatus status_;
  bool begun_ = false, held_ = false, filtered_ = false;  // set once, before anybody else has it
  std::mutex mutex_;
  bool stopped_ = false;  // guarded by mutex_
};

}  // namespace belljar::backend::container
