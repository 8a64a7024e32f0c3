// The way out of a sandbox that stays: the hosts that may be reached now, who opened which of them, and what came through that no
// result has told yet. The same for every backend whose network our proxy serves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "belljar/command.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "runtime/interception.h"
#include "runtime/sandbox_egress.h"
#include "runtime/violations.h"

namespace belljar::session {

void apply(const NetworkRules& rules, Network& network);
NetworkRules rules_of(const Network& network);

struct LiveOutletOptions {
  std::shared_ptr<const runtime::Interception> interception;  // none: nothing is looked into
  std::shared_ptr<const runtime::Origins> origins;            // of the policy as it was given; may be null
  // Set: the rules for hosts that the policy was given, while it has others.
  std::optional<NetworkRules> given_rules;
};

// plan() and open() once, one after the other; then safe from any thread.
class LiveOutlet : public std::enable_shared_from_this<LiveOutlet> {
 public:
  // `policy`: complete; it outlives this.
  LiveOutlet(const Policy& policy, LiveOutletOptions options);
  LiveOutlet(const LiveOutlet&) = delete;
  LiveOutlet& operator=(const LiveOutlet&) = delete;

  // As of runtime::Outlet.
  Result<void> plan(std::vector<std::string>& env, EnforcementReport& report) { return outlet_->plan(env, report); }
  Result<void> open(runtime::Inside inside, EnforcementReport& report) { return outlet_->open(std::move(inside), report, false); }
  // Adds to `result` what nobody was told.
  void take(ExecResult& result);
  // Takes the records of what went through back from a result that nobody will read.
  void give_back(ExecResult& unread);
  // The sandbox has ended. As take(); twice is fine.
  void close(ExecResult& result);

  // The hosts that may be reached from now on: `rules` instead of the policy's. Errors: as Outlet::set_hosts; kFailedPrecondition,
  // it is closed.
  Result<void> set_rules(const NetworkRules& rules);

  // Opens hosts for as long as it lives.
  class Opened {
   public:
    Opened(std::shared_ptr<LiveOutlet> outlet, std::uint64_t id) noexcept : outlet_(std::move(outlet)), id_(id) {}
    ~Opened() { outlet_->close_hosts(id_); }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    std::shared_ptr<LiveOutlet> outlet_;
    std::uint64_t id_;
  };
  // Of no domains, in whatever mode: null. Errors: as of set_rules.
  Result<std::unique_ptr<Opened>> open_hosts(const std::vector<std::string>& domains);

 private:
  runtime::Origins origins_of(const NetworkRules& now) const;
  void close_hosts(std::uint64_t id) noexcept;
  Result<void> apply_hosts();  // with mutex_ held

  const Policy& policy_;
  const LiveOutletOptions options_;
  const Command no_command_;  // the outlet's: each command brings its own variables
  const runtime::Origins origins_at_start_;
  std::mutex mutex_;
  std::optional<runtime::Outlet> outlet_;                           // guarded by mutex_ once it is open, as the next four
  std::optional<NetworkRules> rules_;                               // unset: the policy's
  std::map<std::uint64_t, std::vector<std::string>> opened_hosts_;  // by commands that run
  std::uint64_t next_opened_ = 0;
  std::vector<EgressRecord> untold_;  // given back
};

}  // namespace belljar::session
