// The port of a cloud that can only run shell text and return its output at the end. It stands
// between sandbox.cc, which makes commands, streams, timeouts and files of it, and the services (remote/aliyun, remote/volcengine).
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "remote/report.h"

namespace belljar::remote::shell {

// The result of one call. It is text: a service may pass it through JSON, cut it and mend its UTF-8, so bytes travel as base64.
struct ScriptOutput {
  int exit_code = 0;
  std::string out, err;
};

// One sandbox that runs. All methods from any thread, several at a time.
class Machine {
 public:
  virtual ~Machine() = default;

  virtual const std::string& id() const noexcept = 0;  // the service's

  // Runs `script` by sh to its end, with no stdin, in whatever directory. The service itself ends it after `longest`, or earlier.
  // Exactly once: what may have begun is not sent again. Errors: kUnavailable, the sandbox or the way to it is gone;
  // kUnauthenticated; kNotFound, no such sandbox; kResourceExhausted, asked too often (after the tries within `patience`);
  // kDeadlineExceeded, no answer within `patience`; kCanceled, `cancel_fd` (-1: none) became readable; kDataLoss, the answer makes
  // no sense.
  virtual Result<ScriptOutput> run(const std::string& script, std::chrono::milliseconds patience, int cancel_fd) const = 0;
  // Nothing but a look at whether it could run something now. Errors: kUnavailable, also when `cancel_fd` became readable.
  virtual Result<void> health(int cancel_fd = -1) const = 0;

  // Whole files, binary, by calls of the service's own. nullopt: it has none that are better than run(). Errors as of run(), and
  // kPermissionDenied, kFailedPrecondition, kResourceExhausted of the file system there.
  virtual std::optional<Result<std::string>> read([[maybe_unused]] const std::string& path,
                                                  [[maybe_unused]] int cancel_fd = -1) const {
    return std::nullopt;
  }
  virtual std::optional<Result<void>> write([[maybe_unused]] const std::string& path, [[maybe_unused]] std::string_view bytes,
                                            [[maybe_unused]] int cancel_fd = -1) const {
    return std::nullopt;
  }

  // The limits of one call of run().
  struct Limits {
    std::chrono::milliseconds longest;  // that it may last
    std::size_t script = 0;             // bytes of script
    std::size_t output = 0;             // characters of `out` that come back whole
  };
  virtual Limits limits() const noexcept = 0;
};

using remote::ClauseEnforcement;

// The control plane of one cloud: sandboxes made, found, paused, ended. All methods from any thread.
class Service {
 public:
  virtual ~Service() = default;

  virtual std::string_view name() const noexcept = 0;       // "aliyun": the backend's name, for people and messages
  virtual std::string_view workspace() const noexcept = 0;  // where a sandbox works unless the configuration says otherwise
  virtual std::string host() const = 0;                     // the host that it asks, for the enforcement report; no secret in it

  // Refuses by name what of the policy the service cannot take, beyond what no machine elsewhere can (report.h).
  virtual Result<void> check_supported(const Policy& policy) const = 0;
  // Of "network", "limits.memory", "limits.cpus", "limits.disk": what create() asks the service to hold.
  virtual ClauseEnforcement holds(const Policy& policy, std::string_view clause) const = 0;
  // The isolation between its sandboxes and this machine, by its word; kNone: it gives none.
  virtual Isolation isolation() const { return Isolation::kContainer; }

  // A sandbox that runs; returns when commands can be run. What was made and cannot be used is ended, or named in the error.
  // A create is at most once: tried again only when nothing can have been made. Errors: kUnauthenticated; kNotFound, no such image;
  // kResourceExhausted; kUnavailable; kDeadlineExceeded; kDataLoss; kCanceled, `cancel` came while it was waited for (never in the
  // middle of a request, whose answer says what there is to end).
  virtual Result<std::shared_ptr<const Machine>> create(const Policy& policy, const CancelToken& cancel) const = 0;
  // To one that runs or is paused.
  virtual Result<std::shared_ptr<const Machine>> connect(const std::string& id, const CancelToken& cancel) const = 0;
  // The next two: `cancel` ends the wait for the answer as well (kCanceled), which would have said whether it was done.
  virtual Result<bool> kill(const std::string& id, const CancelToken& cancel = {}) const = 0;   // false: there is none
  virtual Result<void> pause(const std::string& id, const CancelToken& cancel = {}) const = 0;  // kUnimplemented: it cannot
  virtual Result<void> set_timeout(const std::string& id, std::chrono::milliseconds lifetime) const = 0;
};

}  // namespace belljar::remote::shell
