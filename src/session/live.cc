#include "session/live.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "base/format.h"
#include "base/remove_tree.h"
#include "base/unique_fd.h"
#include "belljar/state_dir.h"
#include "kernel/process_tree.h"
#include "policy/defaults.h"
#include "policy/look.h"
#include "policy/merge.h"
#include "policy/paths.h"
#include "runtime/embed.h"
#include "runtime/interception.h"
#include "runtime/parts.h"
#include "runtime/unserved.h"
#include "session/checks.h"
#include "session/patience.h"
#include "session/spawned.h"
#include "session/watch.h"
#include "txn/store.h"

namespace belljar::session {
namespace {

RunRequest make_request(const Command& command, const SpawnOptions& options, const Limits& limits) {
  RunRequest request;
  request.command = command;
  request.timeout = spawn_timeout(options, limits);
  request.terminal = options.terminal;
  request.cancel = options.cancel;
  return request;
}

}  // namespace

LiveSandbox::LiveSandbox(std::unique_ptr<backend::Backend> backend, std::shared_ptr<const backend::Host> host,
                         runtime::Embedded embedded, Lifecycle lifecycle)
    : backend_(std::move(backend)), host_(std::move(host)), embedded_(std::move(embedded)), lifecycle_(lifecycle), id_(next_id()) {}

LiveSandbox::~LiveSandbox() { (void)stop(); }

EnforcementReport LiveSandbox::enforcement() const {
  const std::lock_guard lock(mutex_);
  return enforcement_;
}

Result<std::shared_ptr<Core>> LiveSandbox::make_core() {
  CoreOptions options;
  options.policy = embedded_.policy;
  BELLJAR_CHECK(runtime::check_served(options.policy));
  Limits& limits = options.policy.limits;
  options.idle_timeout = limits.idle_timeout ? limits.idle_timeout : lifecycle_.idle_timeout;
  if (options.idle_timeout) options.idle_timeout = bounded(*options.idle_timeout);
  limits.idle_timeout.reset();  // of one command that is: here it is the sandbox's
  if (limits.disk) options.policy.filesystem.tmp_size = std::min(options.policy.filesystem.tmp_size, *limits.disk);
  backend::Workplace place = embedded_.place;
  place.cwd = place.workspace;
  policy::hide_state(options.policy.filesystem.entries, default_state_dir());
  place.env = policy::build_environment(options.policy.environment, embedded_.caller_env);
  policy::hide_credentials(options.policy.filesystem.entries, options.policy.network, place.home);
  options.workspace = place.workspace;
  auto look =
      BELLJAR_TRY(runtime::Interception::create(options.policy, runtime::library_interceptor(), embedded_.caller_env, place));
  if (look) options.interception = std::make_shared<const runtime::Interception>(*std::move(look));
  for (;;) {
    CoreOptions attempt{{},     options.policy, options.workspace, embedded_.rules, options.idle_timeout, options.interception,
                        on_end_};
    attempt.prepared = BELLJAR_TRY(backend_->prepare(options.policy, place));
    attempt.prepared.report.push_back(timeout_clause(options.policy.limits));
    auto started = Core::start(std::move(attempt));
    if (started || !runtime::give_way(started.error(), place)) return started;
  }
}

Result<void> LiveSandbox::start() {
  const std::lock_guard lock(mutex_);
  if (core_ != nullptr && core_->running())
    return Error(Code::kFailedPrecondition, "cannot start the sandbox").reason("it runs already");
  core_ = nullptr;
  BELLJAR_CHECK(ready_workspace(workspace(), lifecycle_));
  core_ = BELLJAR_TRY(make_core());
  enforcement_ = core_->enforcement();
  return {};
}

Result<void> LiveSandbox::stop() {
  std::shared_ptr<Core> core;
  {
    const std::lock_guard lock(mutex_);
    core = std::exchange(core_, nullptr);
  }
  if (core != nullptr) core->stop();
  std::vector<std::shared_ptr<SpawnedCommand>> detached;
  {
    const std::lock_guard lock(detached_->mutex);
    detached = std::exchange(detached_->commands, {});
  }
  if (lifecycle_.remove_workspace) return remove_tree(workspace());
  return {};
}

Result<std::shared_ptr<Core>> LiveSandbox::core() const {
  const std::lock_guard lock(mutex_);
  if (core_ == nullptr)
    return Error(Code::kFailedPrecondition, "the sandbox does not run")
        .reason("it was not started, or it was stopped")
        .next("start() it");
  if (!core_->running()) return core_->not_running();
  return core_;
}

// A program that cannot be there: init's answer proves that it takes requests and can make a process.
Result<void> LiveSandbox::health() {
  const auto alive = core();
  if (!alive) return Error(Code::kUnavailable, alive.error().what()).reason(alive.error().reason());
  RunRequest request;
  request.command.argv = {"/dev/null/health"};
  request.timeout = std::chrono::seconds(5);
  auto running = Running::start(*alive, std::move(request));
  if (!running) return Error(Code::kUnavailable, "the sandbox takes no commands").reason(running.error().line());
  const ExecResult result = (*running)->finish();
  if (result.reason == Reason::kStartFailed && (result.exit_code == 127 || result.exit_code == 126)) return {};
  return Error(Code::kUnavailable, "the sandbox takes no commands").reason(result.message);
}

Result<void> LiveSandbox::answer() {
  const auto alive = core();
  if (alive && (*alive)->answers(std::chrono::seconds(5))) return {};
  return Error(Code::kUnavailable, "the sandbox does not answer");
}

Result<SandboxStats> LiveSandbox::stats() {
  const std::shared_ptr<Core> alive = BELLJAR_TRY(core());
  const kernel::TreeUsage usage = kernel::measure_tree(kernel::list_tree(alive->init_pid()), true);
  return SandboxStats{usage.cpu, usage.memory, usage.tasks, execs_.load(), written_.load()};
}

Result<ExecResult> LiveSandbox::exec(const Command& command, const ExecOptions& options) {
  BELLJAR_CHECK(check_command(command));
  BELLJAR_CHECK(check_timeout(options.timeout));
  std::shared_ptr<Core> alive = BELLJAR_TRY(core());
  const Limits& limits = alive->policy().limits;
  RunRequest request;
  request.command = command;
  request.timeout = exec_timeout(options, limits);
  request.stdin_bytes = options.stdin_bytes;
  request.cancel = options.cancel;
  request.on_stdout = options.on_stdout;
  request.on_stderr = options.on_stderr;
  request.output_bytes = kept_output(options.output_bytes, limits);
  auto running = BELLJAR_TRY(Running::start(std::move(alive), std::move(request)));
  ++execs_;
  return running->finish();
}

Result<std::unique_ptr<Process>> LiveSandbox::spawn(const Command& command, const SpawnOptions& options) {
  BELLJAR_CHECK(check_command(command));
  BELLJAR_CHECK(check_timeout(options.timeout));
  const std::shared_ptr<Core> alive = BELLJAR_TRY(core());
  const Limits& limits = alive->policy().limits;
  RunRequest request = make_request(command, options, limits);
  request.stdin_pipe = options.input == SpawnInput::kPipe;
  request.on_stdout = options.on_stdout;
  request.on_stderr = options.on_stderr;
  request.output_bytes = kept_output(options.output_bytes, limits);
  auto running = BELLJAR_TRY(Running::start(alive, std::move(request)));
  ++execs_;
  auto spawned = std::make_shared<SpawnedCommand>(std::move(running), alive, options.terminal.has_value());
  return std::unique_ptr<Process>(std::make_unique<SpawnedProcess>(std::move(spawned), detached_));
}

Result<Handed> LiveSandbox::spawn_handed(const Command& command, const SpawnOptions& options, std::array<UniqueFd, 3> ends) {
  BELLJAR_CHECK(check_command(command));
  BELLJAR_CHECK(check_timeout(options.timeout));
  const std::shared_ptr<Core> alive = BELLJAR_TRY(core());
  RunRequest request = make_request(command, options, alive->policy().limits);
  request.handed = std::move(ends);
  auto running = BELLJAR_TRY(Running::start(alive, std::move(request)));
  ++execs_;
  UniqueFd master = running->take_master();
  auto spawned = std::make_shared<SpawnedCommand>(std::move(running), alive, options.terminal.has_value());
  return Handed{std::make_unique<SpawnedProcess>(std::move(spawned), detached_), std::move(master)};
}

std::vector<Violation> LiveSandbox::take_violations() {
  const auto alive = core();
  std::uint64_t dropped = 0;
  return alive ? (*alive)->take_violations(dropped) : std::vector<Violation>();
}

template <class Act>
auto LiveSandbox::with_files(Act act) const -> decltype(act(std::declval<const Files&>())) {
  const std::shared_ptr<Core> alive = BELLJAR_TRY(core());
  const Core::Use use(*alive);
  return act(alive->files());
}

Result<std::string> LiveSandbox::read_file(const std::string& path, const ReadOptions& options) {
  return with_files([&](const Files& files) { return files.read(path, options); });
}
Result<void> LiveSandbox::write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) {
  auto done = with_files([&](const Files& files) { return files.write(path, bytes, options); });
  if (done) written_ += bytes.size();
  return done;
}
Result<std::vector<FileInfo>> LiveSandbox::list(const std::string& path) {
  return with_files([&](const Files& files) { return files.list(path); });
}
Result<FileInfo> LiveSandbox::stat(const std::string& path) {
  return with_files([&](const Files& files) { return files.stat(path); });
}
Result<void> LiveSandbox::make_dir(const std::string& path, const MakeDirOptions& options) {
  return with_files([&](const Files& files) { return files.make_dir(path, options); });
}
Result<void> LiveSandbox::rename(const std::string& from, const std::string& to) {
  return with_files([&](const Files& files) { return files.rename(from, to); });
}
Result<void> LiveSandbox::remove(const std::string& path, const RemoveOptions& options) {
  return with_files([&](const Files& files) { return files.remove(path, options); });
}
Result<GlobResult> LiveSandbox::glob(const std::string& pattern, const WalkOptions& options) {
  return with_files([&](const Files& files) { return files.glob(pattern, options); });
}
Result<GrepResult> LiveSandbox::grep(const std::string& text, const GrepOptions& options) {
  return with_files([&](const Files& files) { return files.grep(text, options); });
}
Result<std::unique_ptr<FileWatch>> LiveSandbox::watch(const std::string& path, const WatchOptions& options) {
  const std::shared_ptr<Core> alive = BELLJAR_TRY(core());
  const Core::Use use(*alive);
  return open_watch(alive, path, options);
}

}  // namespace belljar::session
