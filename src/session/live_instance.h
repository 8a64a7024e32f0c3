// A live sandbox: its pid 1 and the threads that serve it.
//
// A starter of the process makes it and a loop serves it (reactor.h): the loop hands the end of each command to the thread that
// waits for it, feeds the broker, samples the limits and notices idleness. The threads that want commands start them and read their
// output. The thread that stops the sandbox kills and reaps everything.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/unique_fd.h"
#include "base/wake.h"
#include "belljar/cancel.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/sandbox.h"
#include "broker/broker.h"
#include "launch/launcher.h"
#include "runtime/limits.h"
#include "runtime/violations.h"
#include "session/files.h"
#include "session/live_egress.h"
#include "session/reactor.h"

namespace belljar::session {

// One command, as the serving thread and its waiter share it.
struct CommandState {
  Wake wake;         // readable when something below has changed for good
  timespec began{};  // by CLOCK_REALTIME_COARSE, before it is sent
  std::mutex mutex;
  // guarded by mutex
  bool settled = false;      // started or failed to
  bool wants_start = false;  // the waiter is to be woken by the start, too
  std::optional<launch::Event> started, failed, exited;
  std::optional<runtime::Finish> limits;
  bool gone = false;  // the sandbox ended before the command did
};

struct InstanceOptions {
  backend::Prepared prepared;
  Policy policy;  // complete
  std::string workspace;
  std::string named;                        // FilesOptions::named
  std::vector<std::string> roots;           // FilesOptions::roots
  std::string growing;                      // the directory of the host that limits.disk is about
  std::shared_ptr<const Filesystem> rules;  // for the file calls; null: the mode has none
  std::optional<std::chrono::milliseconds> idle_timeout;
  std::shared_ptr<const runtime::Interception> interception;  // none: nothing is looked into
  // Called when it has ended, whatever ended it, with what no result has told: refusals nobody took, and what went through the
  // proxy. From any thread.
  std::function<void(const ExecResult&)> on_end;
  std::shared_ptr<const runtime::Origins> origins;  // of the policy as it was given, for violations; may be null
  // Set: the rules for hosts that the policy was given, while `policy` has others.
  std::optional<NetworkRules> given_rules;
  std::string state_dir;         // BrokerOptions::state_dir
  std::string remove_when_idle;  // a directory of the host that goes when idle_timeout ends the sandbox; empty: none
};

class LiveInstance : public LoopHandler, public std::enable_shared_from_this<LiveInstance> {
 public:
  // Starts the sandbox; once `cancel` is cancelled no longer. Errors: as launch::start, and what the policy asks that cannot be
  // held.
  static Result<std::shared_ptr<LiveInstance>> start(InstanceOptions options, const CancelToken& cancel = {});
  ~LiveInstance() override;
  LiveInstance(const LiveInstance&) = delete;
  LiveInstance& operator=(const LiveInstance&) = delete;

  // Ends everything inside and waits for that. Idempotent. Not from a turn of the loop.
  void stop() noexcept;
  bool running() const noexcept { return running_.load(); }
  // Why it does not run any more.
  Error not_running() const;

  struct Started {
    std::uint32_t id = 0;
    std::shared_ptr<CommandState> state;
  };
  // A request in two steps, of which none waits for pid 1: another may have stopped it. Errors: of pack() kInvalidArgument, no
  // program, and kResourceExhausted; of send() kFailedPrecondition, it does not run, kResourceExhausted and kUnavailable.
  Result<launch::PackedExec> pack(const launch::ExecRequest& request) const { return sandbox_.pack(request); }
  // nullopt: pid 1 takes no more messages now.
  Result<std::optional<Started>> send(launch::PackedExec& request);
  // Writable, poll(2), when it may take some again.
  Result<UniqueFd> room();
  // Whether its pid 1 answers within `patience`, and before `cancel_fd` (-1: none) is readable.
  bool answers(std::chrono::milliseconds patience, int cancel_fd = -1);
  void forget(std::uint32_t id) noexcept;
  // Asks its pid 1 for a sign of life, at most once a second; events_received() counts all that it tells.
  void ping() noexcept;
  std::uint64_t events_received() const noexcept { return events_received_.load(); }
  // Ends everything inside, soon; waits only for a stop() that is under way.
  void kill(const char* because) noexcept;
  // The pids of all commands that run, as init sees them: of each that was there at the call. nullopt: pid 1 does not answer.
  std::optional<std::vector<int>> pids_of_commands();
  void signal(std::uint32_t id, int number) noexcept;
  // Ends one that was not started yet.
  void give_up(std::uint32_t id) noexcept;

  int init_pid() const noexcept { return init_pid_; }
  bool in_use() const noexcept { return users_.load() > 0; }
  const Policy& policy() const noexcept { return options_.policy; }
  const runtime::Origins* origins() const noexcept { return options_.origins.get(); }
  const EnforcementReport& enforcement() const noexcept { return options_.prepared.report; }
  // The sandbox's environment with `overrides` on top, for one command.
  std::vector<std::string> environment_with(const std::map<std::string, std::string>& overrides) const;
  const Files& files() const noexcept { return *files_; }
  std::optional<std::pair<uid_t, gid_t>> lent_identity() const noexcept;
  // Adds what was refused and what went through the proxy since the last time, whichever command it was of.
  void take_seen(ExecResult& result);
  // Takes that back from a result that nobody will read.
  void give_back(ExecResult& unread);
  // As of LiveEgress; where it does not run the error says why.
  Result<void> set_network_rules(const NetworkRules& rules);
  Result<std::unique_ptr<LiveEgress::HostGrant>> open_hosts(const std::vector<std::string>& domains);
  // The limit for which everything inside was ended last, if that happened.
  std::optional<runtime::Hit> hit() const;

  // Marks the sandbox as in use for as long as it lives.
  class Use {
   public:
    explicit Use(LiveInstance& instance) noexcept;
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    LiveInstance& instance_;
  };

 private:
  using Clock = std::chrono::steady_clock;
  explicit LiveInstance(InstanceOptions options) : options_(std::move(options)) {}
  Result<void> prepare();
  // Registers the next id, before the request goes out: its answer must find it. With send_mutex_ held.
  Result<Started> expect();
  void begin_run();
  Result<void> launch(const CancelToken& cancel);
  std::optional<LoopTime> turn(std::uint32_t ready) override;
  void take_events();
  void deliver(const launch::Event& event);
  void sample_limits(Clock::time_point now);
  void take_notices();
  std::optional<Clock::time_point> next_deadline() const;
  bool idle(Clock::time_point now);
  void finish() noexcept;

  InstanceOptions options_;
  std::optional<runtime::LimitSet> limits_;
  launch::Sandbox sandbox_;
  std::optional<broker::Broker> broker_;
  std::shared_ptr<LiveEgress> egress_;  // from prepare() on
  std::optional<Files> files_;
  int init_pid_ = -1;
  Loop* loop_ = nullptr;
  std::atomic<bool> running_{false}, stop_{false}, idled_{false};
  std::atomic<int> users_{0};
  std::atomic<Clock::rep> last_use_{0}, last_ping_{0};
  std::atomic<std::uint64_t> events_received_{0};

  std::mutex stop_mutex_;
  // guarded by stop_mutex_
  std::optional<std::uint64_t> served_;  // by loop_
  bool finished_ = false;
  std::mutex send_mutex_;  // guards send() and signal() of sandbox_ against each other and the end; nobody waits with it held
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::shared_ptr<CommandState>> commands_;  // guarded by mutex_
  std::map<std::uint32_t, int> pids_;                                // guarded by mutex_; also of commands that nobody waits for
  std::vector<Violation> violations_;                                // guarded by mutex_
  std::uint64_t violations_dropped_ = 0;                             // guarded by mutex_
  std::string ended_because_;                                        // guarded by mutex_
  std::optional<runtime::Hit> hit_;                                  // guarded by mutex_
};

}  // namespace belljar::session
