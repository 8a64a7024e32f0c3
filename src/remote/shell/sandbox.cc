#include "remote/shell/sandbox.h"

#include <signal.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/random.h"
#include "belljar/cloud.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/files.h"
#include "belljar/policy.h"
#include "belljar/process.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "command/ending.h"
#include "command/process.h"
#include "command/request.h"
#include "remote/environment.h"
#include "remote/in_time.h"
#include "remote/paths.h"
#include "remote/report.h"
#include "remote/shell/core.h"
#include "remote/shell/files.h"
#include "remote/shell/machine.h"
#include "remote/shell/run.h"
#include "runtime/enforcement.h"
#include "session/ended.h"
#include "session/in_time.h"

namespace belljar::remote::shell {
namespace {

constexpr char kClock[] =
    "inside: TERM, then KILL of the command's tree, also when nobody looks any more; this client a while later";

constexpr char kNoStop[] = "cannot stop the sandbox";
constexpr char kNoLook[] = "cannot look at the sandbox";

Error not_running(std::string reason) {
  return Error(Code::kFailedPrecondition, "the sandbox does not run").reason(std::move(reason)).next("start() it");
}

}  // namespace

Result<std::shared_ptr<ShellSandbox>> ShellSandbox::make(std::shared_ptr<Service> service, const SandboxConfig& config,
                                                         ShellOptions options) {
  std::string workspace = BELLJAR_TRY(workspace_elsewhere(config.workspace, service->workspace()));
  if (options.lifetime && options.lifetime->count() <= 0)
    return Error(Code::kInvalidArgument, "the lifetime of a sandbox must be positive");
  if (options.request_timeout.count() <= 0) return Error(Code::kInvalidArgument, "the request timeout must be positive");
  return std::shared_ptr<ShellSandbox>(new ShellSandbox(std::move(service), config, std::move(options), std::move(workspace)));
}

ShellSandbox::ShellSandbox(std::shared_ptr<Service> service, SandboxConfig config, ShellOptions options, std::string workspace)
    : service_(std::move(service)),
      config_(std::move(config)),
      options_(std::move(options)),
      id_(session::next_id()),
      workspace_(std::move(workspace)),
      variables_(variables_elsewhere(config_)),
      remote_id_(options_.sandbox_id) {
  if (!options_.on_stop) options_.on_stop = options_.sandbox_id.empty() ? CloudOnStop::kKill : CloudOnStop::kLeave;
}

ShellSandbox::~ShellSandbox() {
  if (owner_.is_this()) {
    (void)ShellSandbox::stop({});
    return;
  }
  // In a forked child: the machine is the parent's, and so is what its connections hold of TLS.
  belljar::abandon(running_);
  belljar::abandon(unended_);
  belljar::abandon(service_);
}

EnforcementReport ShellSandbox::enforcement() const {
  if (!owner_.is_this()) return {};
  const std::lock_guard lock(mutex_);
  return enforcement_;
}

std::string ShellSandbox::sandbox_id() const {
  if (!owner_.is_this()) return {};
  const std::lock_guard lock(mutex_);
  return remote_id_;
}

// --- life

Result<void> ShellSandbox::check() {
  const Elsewhere place = {.backend = service_->name(),
                           .options = options_.type,
                           .image = "image",
                           .host = service_->host(),
                           .workspace = workspace_,
                           .isolation = service_->isolation(),
                           .clock = kClock,
                           .holds = [this](std::string_view clause) { return service_->holds(config_.policy, clause); }};
  BELLJAR_CHECK(check_elsewhere(config_.policy, config_, place));
  BELLJAR_CHECK(service_->check_served(config_.policy));
  EnforcementReport report = report_elsewhere(config_.policy, place);
  BELLJAR_CHECK(runtime::check_required(report, config_.policy));
  const std::lock_guard lock(mutex_);
  enforcement_ = std::move(report);
  return {};
}

Result<std::shared_ptr<const Machine>> ShellSandbox::enter() const {
  const std::string before = sandbox_id();
  if (before.empty()) return service_->create(config_.policy, config_.cancel);
  auto connected = service_->connect(before, config_.cancel);
  if (!connected && connected.error().code() == Code::kCanceled)
    return Error(connected.error()).next(format("it may have been resumed, and run on: pause or end {}", belljar::quoted(before)));
  auto machine = BELLJAR_TRY(std::move(connected));
  if (options_.lifetime) BELLJAR_CHECK(service_->set_timeout(before, *options_.lifetime));
  return machine;
}

// What was made and cannot be used is ended, or named.
Error ShellSandbox::abandon(const std::string& remote, Error error) const {
  if (service_->kill(remote)) return error;
  const std::string next = format("end the sandbox {}, which could not be ended from here", belljar::quoted(remote));
  return Error(error.code(), error.what()).reason(error.reason()).next(next);
}

Result<void> ShellSandbox::start() {
  BELLJAR_CHECK(owner_.check());  // before the locks: a thread of the parent may hold them here
  const std::lock_guard one(starting_);
  {
    const std::lock_guard lock(mutex_);
    if (running_ != nullptr) return Error(Code::kFailedPrecondition, "cannot start the sandbox").reason("it runs already");
  }
  BELLJAR_CHECK(session::check_not_cancelled(config_.cancel));
  BELLJAR_CHECK(check());
  const bool made = sandbox_id().empty();
  const auto machine = BELLJAR_TRY(enter());
  const std::string remote = machine->id();
  auto core = std::make_shared<Core>(machine, workspace_, random_hex(8), options_.request_timeout);
  auto settled = session::check_not_cancelled(config_.cancel);
  if (settled) settled = core->settle();
  if (!settled) {
    if (made) return abandon(remote, settled.error());
    core->clear();
    return settled.error();
  }
  unended_ = nullptr;  // it runs again
  const std::lock_guard lock(mutex_);
  remote_id_ = remote;
  running_ = std::make_shared<const Running>(Running{.core = core, .files = ShellFiles(core)});
  return {};
}

ShellSandbox::RunningPtr ShellSandbox::leave() {
  RunningPtr alive;
  {
    const std::lock_guard lock(mutex_);
    alive = std::exchange(running_, nullptr);
  }
  if (alive != nullptr) alive->core->end_commands();
  return alive;
}

Result<void> ShellSandbox::stop(const CallOptions& options) {
  BELLJAR_CHECK(owner_.check());
  const auto one = BELLJAR_TRY(session::lock_in_time(starting_, options, kNoStop));
  return in_time(options, kNoStop, {"the sandbox may run on", "stop() it again"},
                 [&](const CancelToken& end) { return leave_it(end); });
}

// With starting_ held.
Result<void> ShellSandbox::leave_it(const CancelToken& end) {
  if (RunningPtr left = leave()) unended_ = std::move(left);
  if (unended_ == nullptr) return {};
  const std::string remote = sandbox_id();
  if (options_.on_stop != CloudOnStop::kKill) {
    unended_->core->clear(end.fd());
    if (end.cancelled()) return Error(Code::kCanceled, kNoStop);
    if (options_.on_stop == CloudOnStop::kPause) BELLJAR_CHECK(service_->pause(remote, end));
    unended_ = nullptr;
    return {};
  }
  const auto killed = service_->kill(remote, end);
  if (!killed) return killed.error();
  unended_ = nullptr;
  const std::lock_guard lock(mutex_);
  remote_id_.clear();
  return {};
}

Result<bool> ShellSandbox::kill() {
  BELLJAR_CHECK(owner_.check());
  const std::lock_guard one(starting_);
  if (RunningPtr left = leave()) unended_ = std::move(left);
  const std::string remote = sandbox_id();
  if (remote.empty()) return false;
  const bool killed = BELLJAR_TRY(service_->kill(remote));
  unended_ = nullptr;
  const std::lock_guard lock(mutex_);
  remote_id_.clear();
  return killed;
}

Result<void> ShellSandbox::set_timeout(std::chrono::milliseconds lifetime) {
  if (lifetime.count() <= 0) return Error(Code::kInvalidArgument, "the lifetime of a sandbox must be positive").next("kill() it");
  BELLJAR_CHECK(running());
  return service_->set_timeout(sandbox_id(), lifetime);
}

Result<ShellSandbox::RunningPtr> ShellSandbox::running() const {
  BELLJAR_CHECK(owner_.check());
  const std::lock_guard lock(mutex_);
  if (running_ == nullptr) return not_running("it was not started, or it was stopped");
  return running_;
}

Result<void> ShellSandbox::health(const CallOptions& options) {
  BELLJAR_CHECK(owner_.check());
  const auto alive = running();
  if (!alive) return Error(Code::kUnavailable, alive.error().what()).reason(alive.error().reason());
  return in_time(options, kNoLook, {}, [&](const CancelToken& end) { return (*alive)->core->machine().health(end.fd()); });
}

Result<SandboxStats> ShellSandbox::stats(const CallOptions& options) {
  const auto alive = BELLJAR_TRY(running());
  SandboxStats stats;
  stats.processes =
      BELLJAR_TRY(in_time(options, kNoLook, {}, [&](const CancelToken& end) { return alive->core->count_marked(end.fd()); }));
  stats.execs = execs_.load();
  stats.bytes_written = written_.load();
  return stats;
}

// --- commands

Result<command::Request> ShellSandbox::elsewhere(const RunningPtr& /*alive*/, command::Request request) const {
  request.cwd = BELLJAR_TRY(cwd_below(workspace_, request.command.cwd));
  for (const auto& [name, text] : variables_) request.command.env.emplace(name, text);
  return request;
}

Result<ExecResult> ShellSandbox::exec(const Command& command, const ExecOptions& options) {
  BELLJAR_CHECK(command::check_command(command));
  BELLJAR_CHECK(command::check_timeout(options.timeout));
  BELLJAR_CHECK(command::check_no_hosts(options.allowed_domains));
  const auto alive = BELLJAR_TRY(running());
  auto request = BELLJAR_TRY(elsewhere(alive, command::make_request(command, options, config_.policy.limits)));
  if (options.cancel.cancelled()) return command::cancelled_before_start();
  const auto run = BELLJAR_TRY(alive->core->start(std::move(request)));
  ++execs_;
  return run->finish();
}

Result<std::unique_ptr<Process>> ShellSandbox::spawn(const Command& command, const SpawnOptions& options) {
  BELLJAR_CHECK(command::check_command(command));
  BELLJAR_CHECK(command::check_timeout(options.timeout));
  BELLJAR_CHECK(command::check_no_hosts(options.allowed_domains));
  const auto alive = BELLJAR_TRY(running());
  if (options.terminal)
    return Error(Code::kUnimplemented, format("the {} backend does not serve terminals", service_->name()))
        .reason("the service runs shell text, and has no terminal for it")
        .next("spawn it with a pipe, or by script(1) inside");
  auto request = BELLJAR_TRY(elsewhere(alive, command::make_request(command, options, config_.policy.limits)));
  if (options.cancel.cancelled()) return command::make_cancelled_process();
  auto run = BELLJAR_TRY(alive->core->start(std::move(request)));
  ++execs_;
  return command::follow(std::move(run), nullptr);
}

// --- files

Result<std::string> ShellSandbox::read_file(const std::string& path, const ReadOptions& options) {
  const auto alive = BELLJAR_TRY(running());
  return in_time(options.call, format("cannot read {}", belljar::quoted(path)), {},
                 [&](const CancelToken& end) { return alive->files.until(end).read(path, options); });
}
Result<void> ShellSandbox::write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) {
  const auto alive = BELLJAR_TRY(running());
  BELLJAR_CHECK(in_time(options.call, format("cannot write {}", belljar::quoted(path)), may_be_done(),
                        [&](const CancelToken& end) { return alive->files.until(end).write(path, bytes, options); }));
  written_ += bytes.size();
  return {};
}
Result<std::vector<FileInfo>> ShellSandbox::list(const std::string& path, const CallOptions& options) {
  const auto alive = BELLJAR_TRY(running());
  return in_time(options, format("cannot list {}", belljar::quoted(path)), {},
                 [&](const CancelToken& end) { return alive->files.until(end).list(path); });
}
Result<FileInfo> ShellSandbox::stat(const std::string& path, const CallOptions& options) {
  const auto alive = BELLJAR_TRY(running());
  return in_time(options, format("cannot look at {}", belljar::quoted(path)), {},
                 [&](const CancelToken& end) { return alive->files.until(end).stat(path); });
}
Result<void> ShellSandbox::make_dir(const std::string& path, const MakeDirOptions& options) {
  const auto alive = BELLJAR_TRY(running());
  return in_time(options.call, format("cannot make directory {}", belljar::quoted(path)), may_be_done(),
                 [&](const CancelToken& end) { return alive->files.until(end).make_dir(path, options); });
}
Result<void> ShellSandbox::rename(const std::string& from, const std::string& to, const CallOptions& options) {
  const auto alive = BELLJAR_TRY(running());
  return in_time(options, format("cannot rename {}", belljar::quoted(from)), may_be_done(),
                 [&](const CancelToken& end) { return alive->files.until(end).rename(from, to); });
}
Result<void> ShellSandbox::remove(const std::string& path, const RemoveOptions& options) {
  const auto alive = BELLJAR_TRY(running());
  return in_time(options.call, format("cannot remove {}", belljar::quoted(path)), may_be_done(),
                 [&](const CancelToken& end) { return alive->files.until(end).remove(path, options); });
}
Result<GlobResult> ShellSandbox::glob(const std::string& pattern, const WalkOptions& options) {
  return BELLJAR_TRY(running())->files.glob(pattern, options);
}
Result<GrepResult> ShellSandbox::grep(const std::string& text, const GrepOptions& options) {
  return BELLJAR_TRY(running())->files.grep(text, options);
}

}  // namespace belljar::remote::shell
