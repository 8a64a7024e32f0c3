// A cloud on this machine that can only run shell text, for remote/shell: it isolates nothing, and misbehaves when told to. What
// lasts longer than `limits` say, it ends after a minute at the earliest: on a slow machine every call is a long one.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/cancel.h"
#include "remote/shell/machine.h"
#include "support/temp_dir.h"

namespace belljar::test {

// What becomes of one call.
enum class Fault {
  kNone,
  kBusy,     // refused at once, asked too often
  kNever,    // lost on the way there: nothing ran
  kLost,     // it ran, and its answer was lost
  kStalled,  // no answer ever comes; nothing ran
  kCut,      // the middle of what it said is missing
  kMended,   // what it said went through something that means well
};

class LocalCloud final : public remote::shell::Service {
 public:
  LocalCloud();
  ~LocalCloud() override;
  LocalCloud(const LocalCloud&) = delete;
  LocalCloud& operator=(const LocalCloud&) = delete;

  std::string_view name() const noexcept override { return "shell"; }
  std::string_view workspace() const noexcept override { return workspace_; }
  std::string host() const override { return "cloud.example"; }
  Result<void> check_supported(const Policy& policy) const override;
  remote::shell::ClauseEnforcement holds(const Policy& policy, std::string_view clause) const override;
  Result<std::shared_ptr<const remote::shell::Machine>> create(const Policy& policy, const CancelToken& cancel) const override;
  Result<std::shared_ptr<const remote::shell::Machine>> connect(const std::string& id, const CancelToken& cancel) const override;
  Result<bool> kill(const std::string& id, const CancelToken& cancel = {}) const override;
  Result<void> pause(const std::string& id, const CancelToken& cancel = {}) const override;
  Result<void> set_timeout(const std::string& id, std::chrono::milliseconds lifetime) const override;

  // Set before the first sandbox.
  remote::shell::Machine::Limits limits{.longest = std::chrono::seconds(60), .script = 96U << 10, .output = 96U << 10};
  std::string shell = "/bin/sh";
  std::string path = "/usr/local/bin:/usr/bin:/bin";
  bool takes_files = false;  // offers calls of its own for whole files
  std::optional<Code> broken_control;

  // Asked of each call, from any thread. Set while nothing runs.
  std::function<Fault(const std::string& script)> fault;
  std::function<void(bool begins)> around;  // told of the begin and the end of each call

  int calls() const noexcept { return calls_.load(); }
  int file_calls() const noexcept { return file_calls_.load(); }
  std::size_t alive() const;                      // sandboxes
  std::vector<std::string> private_dirs() const;  // of all sandboxes
  const std::string& root() const noexcept { return root_.path(); }

 private:
  class Local;
  enum class State { kRuns, kPaused, kGone };
  State state(const std::string& id) const;
  std::vector<std::string> environment(const std::string& id) const;

  TempDir root_;
  std::string workspace_;
  mutable std::atomic<int> calls_{0}, file_calls_{0}, serial_{0};
  mutable std::mutex beginning_;  // before mutex_: held while a process begins, and while all are ended
  mutable std::mutex mutex_;
  mutable std::map<std::string, State> sandboxes_;  // guarded by mutex_
};

}  // namespace belljar::test
