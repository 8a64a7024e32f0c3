// The Sandbox of every cloud: its life, its commands and its file calls, over what the cloud offers (cloud.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/owner.h"
#include "belljar/cloud.h"
#include "command/ending.h"
#include "command/process.h"
#include "command/request.h"
#include "remote/cloud.h"
#include "remote/environment.h"
#include "remote/in_time.h"
#include "remote/report.h"
#include "runtime/enforcement.h"
#include "session/ended.h"
#include "session/in_time.h"

namespace belljar::remote {

inline constexpr char kNoStop[] = "cannot stop the sandbox";
inline constexpr char kNoLook[] = "cannot look at the sandbox";

// Errors: kInvalidArgument, a time that is not positive.
inline Result<void> check_lifetime(std::optional<std::chrono::milliseconds> lifetime) {
  if (!lifetime || lifetime->count() > 0) return {};
  return Error(Code::kInvalidArgument, "the lifetime of a sandbox must be positive");
}
inline Result<void> check_request_timeout(std::chrono::milliseconds timeout) {
  if (timeout.count() > 0) return {};
  return Error(Code::kInvalidArgument, "the request timeout must be positive");
}

// `Face`: what its callers know it as, CloudSandbox or what is made of that.
template <class Face>
class RemoteSandbox final : public Face {
 public:
  // Asks nobody yet. `before`: an existing one to connect to, instead of a new one. `on_stop`, unset: kKill, and kLeave for one
  // that was connected to.
  RemoteSandbox(std::shared_ptr<const Cloud> cloud, SandboxConfig config, std::string workspace, std::string before,
                std::optional<CloudOnStop> on_stop)
      : cloud_(std::move(cloud)),
        config_(std::move(config)),
        id_(session::next_id()),
        workspace_(std::move(workspace)),
        variables_(variables_elsewhere(config_)),
        on_stop_(on_stop.value_or(before.empty() ? CloudOnStop::kKill : CloudOnStop::kLeave)),
        remote_id_(std::move(before)) {}
  ~RemoteSandbox() override {
    if (owner_.is_this()) {
      (void)RemoteSandbox::stop({});
      return;
    }
    // In a forked child: the machine is the parent's, and so is what its connections hold of TLS.
    belljar::abandon(running_);
    belljar::abandon(unended_);
    belljar::abandon(cloud_);
  }

  std::string_view backend() const noexcept override { return cloud_->name(); }
  const std::string& id() const noexcept override { return id_; }
  const std::string& workspace() const noexcept override { return workspace_; }
  EnforcementReport enforcement() const override {
    if (!owner_.is_this()) return {};
    const std::lock_guard lock(mutex_);
    return enforcement_;
  }
  std::string sandbox_id() const override {
    if (!owner_.is_this()) return {};
    const std::lock_guard lock(mutex_);
    return remote_id_;
  }

  // --- life

  Result<void> start(const CallOptions& options) override {
    BELLJAR_CHECK(owner_.check());  // before the locks: a thread of the parent may hold them here
    const auto one = BELLJAR_TRY(session::lock_in_time(starting_, options, session::kNoStart));
    {
      const std::lock_guard lock(mutex_);
      if (running_ != nullptr) return Error(Code::kFailedPrecondition, session::kNoStart).reason("it runs already");
    }
    BELLJAR_CHECK(session::check_not_cancelled(config_.cancel));
    BELLJAR_CHECK(options.check(session::kNoStart));
    BELLJAR_CHECK(check());
    const std::string before = sandbox_id();
    const CancelToken end = BELLJAR_TRY(options.token(config_.cancel));
    auto entered = cloud_->enter(config_, workspace_, before, end);
    if (!entered) return session::start_error(entered.error(), options);
    auto place = *std::move(entered);
    auto settled = session::check_not_cancelled(config_.cancel);
    if (settled) settled = options.check(session::kNoStart);
    if (settled) settled = place->settle();
    if (!settled) {
      if (before.empty()) return place->abandon(settled.error());
      place->unsettle();
      return settled.error();
    }
    unended_ = nullptr;  // it runs again
    const std::lock_guard lock(mutex_);
    remote_id_ = place->id();
    running_ = std::move(place);
    return {};
  }

  Result<void> stop(const CallOptions& options) override {
    BELLJAR_CHECK(owner_.check());
    const auto one = BELLJAR_TRY(session::lock_in_time(starting_, options, kNoStop));
    return in_time(options, kNoStop, {"the sandbox may run on", "stop() it again"},
                   [&](const CancelToken& end) { return leave_it(end); });
  }

  Result<bool> kill() override {
    BELLJAR_CHECK(owner_.check());
    const std::lock_guard one(starting_);
    leave();
    const std::string remote = sandbox_id();
    if (remote.empty()) return false;
    const bool killed = BELLJAR_TRY(unended_ != nullptr ? unended_->kill({}) : cloud_->kill(config_, remote));
    forget();
    return killed;
  }

  Result<void> set_timeout(std::chrono::milliseconds lifetime) override {
    if (const auto fine = check_lifetime(lifetime); !fine) return Error(fine.error()).next("kill() it");
    return BELLJAR_TRY(running())->set_timeout(lifetime);
  }

  Result<void> health(const CallOptions& options) override {
    BELLJAR_CHECK(owner_.check());
    const auto alive = running();
    if (!alive) return Error(Code::kUnavailable, alive.error().what()).reason(alive.error().reason());
    return in_time(options, kNoLook, {}, [&](const CancelToken& end) { return (*alive)->health(end); });
  }

  Result<SandboxStats> stats(const CallOptions& options) override {
    const auto alive = BELLJAR_TRY(running());
    SandboxStats stats;
    stats.processes =
        BELLJAR_TRY(in_time(options, kNoLook, {}, [&](const CancelToken& end) { return alive->count_processes(end); }));
    stats.execs = execs_.load();
    stats.bytes_written = written_.load();
    return stats;
  }

  // --- commands

  using Sandbox::exec;
  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override {
    BELLJAR_CHECK(check(command, options));
    const auto alive = BELLJAR_TRY(running());
    auto request = BELLJAR_TRY(request_for(*alive, command::make_request(command, options, config_.policy.limits)));
    if (options.cancel.cancelled()) return command::cancelled_before_start();
    const auto run = BELLJAR_TRY(alive->commands().start(std::move(request)));
    ++execs_;
    return run->finish();
  }

  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options) override {
    BELLJAR_CHECK(check(command, options));
    const auto alive = BELLJAR_TRY(running());
    BELLJAR_CHECK(cloud_->check_spawn(options));
    auto request = BELLJAR_TRY(request_for(*alive, command::make_request(command, options, config_.policy.limits)));
    if (options.cancel.cancelled()) return command::make_cancelled_process();
    auto run = BELLJAR_TRY(alive->commands().start(std::move(request)));
    ++execs_;
    return command::follow(std::move(run), nullptr);
  }

  // --- files

  Result<std::string> read_file(const std::string& path, const ReadOptions& options) override {
    return with_files(options.call, "read", path, {}, [&](const Files& files) { return files.read(path, options); });
  }
  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override {
    BELLJAR_CHECK(with_files(options.call, "write", path, may_be_done(),
                             [&](const Files& files) { return files.write(path, bytes, options); }));
    written_ += bytes.size();
    return {};
  }
  Result<std::vector<FileInfo>> list(const std::string& path, const CallOptions& options) override {
    return with_files(options, "list", path, {}, [&](const Files& files) { return files.list(path); });
  }
  Result<FileInfo> stat(const std::string& path, const CallOptions& options) override {
    return with_files(options, "look at", path, {}, [&](const Files& files) { return files.stat(path); });
  }
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) override {
    return with_files(options.call, "make directory", path, may_be_done(),
                      [&](const Files& files) { return files.make_dir(path, options); });
  }
  Result<void> rename(const std::string& from, const std::string& to, const CallOptions& options) override {
    return with_files(options, "rename", from, may_be_done(), [&](const Files& files) { return files.rename(from, to); });
  }
  Result<void> remove(const std::string& path, const RemoveOptions& options) override {
    return with_files(options.call, "remove", path, may_be_done(), [&](const Files& files) { return files.remove(path, options); });
  }
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) override {
    return BELLJAR_TRY(running())->files({})->glob(pattern, options);
  }
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) override {
    return BELLJAR_TRY(running())->files({})->grep(text, options);
  }

 private:
  Result<std::shared_ptr<CloudInstance>> running() const {
    BELLJAR_CHECK(owner_.check());
    const std::lock_guard lock(mutex_);
    if (running_ == nullptr)
      return Error(Code::kFailedPrecondition, "the sandbox does not run")
          .reason("it was not started, or it was stopped")
          .next("start() it");
    return running_;
  }

  // Whether the policy holds there, and how far.
  Result<void> check() {
    CloudTraits place = cloud_->traits(config_);
    place.backend = cloud_->name();
    place.workspace = workspace_;
    BELLJAR_CHECK(check_remote_policy(config_.policy, config_, place));
    place.host = BELLJAR_TRY(cloud_->check(config_));
    EnforcementReport report = report_remote(config_.policy, place);
    BELLJAR_CHECK(runtime::check_required(report, config_.policy));
    const std::lock_guard lock(mutex_);
    enforcement_ = std::move(report);
    return {};
  }

  // The next three with starting_ held. Ends the commands, and keeps what stop() has to end.
  void leave() {
    std::shared_ptr<CloudInstance> alive;
    {
      const std::lock_guard lock(mutex_);
      alive = std::exchange(running_, nullptr);
    }
    if (alive == nullptr) return;
    alive->commands().end_commands();
    unended_ = std::move(alive);
  }

  Result<void> leave_it(const CancelToken& end) {
    leave();
    if (unended_ == nullptr) return {};
    if (on_stop_ == CloudOnStop::kKill) {
      BELLJAR_TRY(unended_->kill(end));
      forget();
      return {};
    }
    unended_->clear(end);
    if (end.cancelled()) return Error(Code::kCanceled, kNoStop);
    if (on_stop_ == CloudOnStop::kPause) BELLJAR_CHECK(unended_->pause(end));
    unended_ = nullptr;
    return {};
  }

  void forget() {
    unended_ = nullptr;
    const std::lock_guard lock(mutex_);
    remote_id_.clear();
  }

  template <class Options>
  static Result<void> check(const Command& command, const Options& options) {
    BELLJAR_CHECK(command::check(command, options));
    return command::check_no_hosts(options.allowed_domains);
  }

  Result<command::Request> request_for(const CloudInstance& place, command::Request request) const {
    request.cwd = BELLJAR_TRY(place.files({})->find_cwd(request.command.cwd));
    for (const auto& [name, text] : variables_) request.command.env.emplace(name, text);
    return request;
  }

  template <class Act>
  auto with_files(const CallOptions& options, std::string_view doing, const std::string& path, const UnknownOutcome& unheard,
                  Act act) const -> decltype(act(std::declval<const Files&>())) {
    const auto alive = BELLJAR_TRY(running());
    return in_time(options, format("cannot {} {}", doing, belljar::quoted(path)), unheard,
                   [&](const CancelToken& end) { return act(*alive->files(end)); });
  }

  std::shared_ptr<const Cloud> cloud_;
  SandboxConfig config_;
  std::string id_, workspace_;
  std::map<std::string, std::string> variables_;  // of every command
  CloudOnStop on_stop_;
  std::atomic<std::uint64_t> execs_{0}, written_{0};
  std::mutex starting_;                     // start, stop and kill, one at a time; before mutex_
  std::shared_ptr<CloudInstance> unended_;  // guarded by starting_; stop() failed, and the next one tries again
  mutable std::mutex mutex_;
  std::shared_ptr<CloudInstance> running_;  // guarded by mutex_
  std::string remote_id_;                   // guarded by mutex_; what start() goes back to
  EnforcementReport enforcement_;           // guarded by mutex_
  const OwningProcess owner_;
};

}  // namespace belljar::remote
