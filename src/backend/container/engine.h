// The calls of the Docker Engine API that the backend makes, as functions. JSON stays in the .cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/container/http.h"
#include "backend/container/spec.h"
#include "belljar/cancel.h"
#include "belljar/container.h"
#include "belljar/result.h"

namespace belljar::backend::container {

struct EngineFacts {
  bool rootless = false;
  bool maps_ids = false;                                             // --userns-remap: a container's ids are others here
  bool seccomp = false;                                              // a profile is on by default
  double processors = 0;                                             // 0: it does not say
  bool memory_limit = false, cpu_quota = false, pids_limit = false;  // what the engine says it can hold
  std::string default_runtime;
  std::map<std::string, std::string> runtimes;  // name -> its program, or the type of its shim
  std::string version, machine;                 // of the engine; its host's name
};

struct ImageFacts {
  std::vector<std::string> volumes;  // paths that each container has a volume of its own at
};

struct ContainerStats {
  std::chrono::microseconds cpu{0};
  std::uint64_t memory = 0, processes = 0;
};

struct ContainerEntry {
  std::string id;
  std::map<std::string, std::string> labels;
};

// Safe from any thread: a connection for each call, nothing shared. `cancel` ends the wait for the answer (kCanceled).
class Engine {
 public:
  // Asks the engine for its version. Errors: as fetch; kFailedPrecondition, it is too old.
  static Result<Engine> connect(Address address, std::chrono::milliseconds patience = std::chrono::seconds(10),
                                const CancelToken& cancel = {});

  Result<EngineFacts> facts(std::chrono::milliseconds patience = std::chrono::seconds(30), const CancelToken& cancel = {}) const;
  const Address& address() const noexcept { return address_; }
  bool is_local() const noexcept { return !address_.path.empty(); }  // by a socket of this machine
  // nullopt: it has none of that name.
  Result<std::optional<ImageFacts>> find_image(const std::string& image, const CancelToken& cancel = {}) const;
  // Errors: kNotFound, kUnauthenticated, kUnavailable: what the engine said, also when it said it in the middle of a success;
  // kCanceled, `cancel` was cancelled meanwhile.
  Result<void> pull(const ContainerOptions& options, const CancelToken& cancel = {}) const;
  // Its id. Errors: kNotFound, no such image; kFailedPrecondition, kInvalidArgument, kResourceExhausted: what the engine said.
  Result<std::string> create(const Spec& spec) const;
  // Its stdin, stdout and stderr; before start(), so that nothing is missed.
  Result<UpgradedStream> attach(const std::string& id) const;
  Result<void> start(const std::string& id, const CancelToken& cancel = {}) const;
  Result<int> pid(const std::string& id) const;  // of its pid 1, as the engine sees it; 0: it does not run
  // With its anonymous volumes, running or not. One that is not there, or on its way out, is fine.
  Result<void> remove(const std::string& id, const CancelToken& cancel = {}) const;
  // Waits until the engine has removed one that ends by itself. Errors: kDeadlineExceeded.
  Result<void> await_removal(const std::string& id, std::chrono::milliseconds patience, const CancelToken& cancel = {}) const;
  Result<ContainerStats> stats(const std::string& id, const CancelToken& cancel = {}) const;
  Result<std::vector<ContainerEntry>> list(const std::string& label) const;  // running or not

 private:
  Engine(Address address, std::string version, bool podman)
      : address_(std::move(address)), version_(std::move(version)), podman_(podman) {}
  Result<Reply> call(Method method, const std::string& path, std::string json = {}, CancelToken cancel = {}) const;

  Address address_;
  std::string version_;  // "/v1.41"
  bool podman_ = false;
};

}  // namespace belljar::backend::container
