#include "session/contained.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "backend/container/inside.h"
#include "backend/container/report.h"
#include "backend/container/runtimes.h"
#include "backend/native/host.h"
#include "base/environment.h"
#include "base/format.h"
#include "base/remove_tree.h"
#include "belljar/state_dir.h"
#include "policy/backends.h"
#include "policy/merge.h"
#include "policy/paths.h"
#include "runtime/enforcement.h"
#include "runtime/limits.h"
#include "runtime/unserved.h"
#include "session/checks.h"
#include "session/contained_process.h"
#include "session/ended.h"

namespace belljar {

ContainerOptions sandbox_commands() {
  ContainerOptions options;
  options.mode = ContainerMode::kPerCommand;
  options.workspace_at = "/workspace";
  return options;
}

}  // namespace belljar

namespace belljar::session {
namespace {

using namespace backend::container;

Result<void> check_lifecycle(const Policy& policy, const Lifecycle& lifecycle) {
  if (!policy.limits.idle_timeout && !lifecycle.idle_timeout) return {};
  return Error(Code::kUnimplemented, "the container backend does not serve limits.idle_timeout")
      .reason("nothing watches whether a container is used")
      .next("drop the key, or use another backend");
}

// Over TCP an engine may be anywhere, also behind a tunnel from our loopback.
Result<void> check_same_machine(const Address& address, const EngineFacts& facts, const ContainerOptions& options) {
  if (!address.path.empty() || options.engine_files == EngineFiles::kShared) return {};
  std::array<char, HOST_NAME_MAX + 1> ours{};
  ::gethostname(ours.data(), HOST_NAME_MAX);
  if (is_loopback(address) && facts.machine == ours.data()) return {};
  return Error(Code::kUnimplemented, format("cannot show the workspace to the container engine at {}", quoted(to_string(address))))
      .reason(format("bind mounts are directories of its own machine, {}", quoted(facts.machine)))
      .next("use an engine of this machine, or say --shared-files where both see the same directories at the same paths");
}

}  // namespace

ContainedSandbox::ContainedSandbox(runtime::Embedded embedded, ContainerOptions options, Lifecycle lifecycle, CancelToken cancel)
    : embedded_(std::move(embedded)),
      options_(std::move(options)),
      lifecycle_(lifecycle),
      cancel_(std::move(cancel)),
      id_(next_id()),
      shown_at_(options_.workspace_at.empty() ? embedded_.place.workspace : options_.workspace_at) {}

ContainedSandbox::~ContainedSandbox() { (void)stop(); }

EnforcementReport ContainedSandbox::enforcement() const {
  const std::lock_guard lock(mutex_);
  return enforcement_;
}

// --- life

Result<Planned> ContainedSandbox::plan(const Policy& policy, const Engine& engine) {
  const EngineFacts facts = BELLJAR_TRY(engine.facts(std::chrono::seconds(30), cancel_));
  BELLJAR_CHECK(runtime::check_limits(policy.limits));
  BELLJAR_CHECK(check_same_machine(engine.address(), facts, options_));
  backend::Workplace place = embedded_.place;
  place.cwd = place.workspace;
  place.env = embedded_.caller_env;
  const backend::RealHost host;
  const Installed installed = BELLJAR_TRY(install_inside(default_state_dir() + "/container"));
  ContainerOptions options = options_;
  options.runtime = choose_runtime(facts, options_.runtime, policy.isolation);
  Planned planned = BELLJAR_TRY(plan_container(host, policy, place, options, installed, facts.rootless));
  fit_engine(planned.spec, facts.processors, facts.maps_ids);
  report_engine(facts.maps_ids, facts.seccomp, planned.report);
  report_limits(policy, facts.memory_limit, facts.cpu_quota, facts.pids_limit, planned.report);
  const std::string& runtime = options.runtime.empty() ? facts.default_runtime : options.runtime;
  policy::report_isolation(policy, isolation_of_runtime(facts, options.runtime), format("runtime {}", escaped(runtime)),
                           planned.report);
  planned.report.push_back(timeout_clause(policy.limits));
  BELLJAR_CHECK(runtime::check_required(planned.report, policy));
  planned.spec.labels[kOwnerLabel] = owner_label();
  planned.spec.labels[kSandboxLabel] = id_;
  return planned;
}

Result<Files> ContainedSandbox::open_files(const Planned& planned) const {
  FilesOptions options;
  options.root = UniqueFd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  options.workspace = embedded_.place.workspace;
  if (::geteuid() == 0) {
    options.uid = planned.uid;
    options.gid = planned.gid;
  }
  if (embedded_.rules != nullptr) {
    Filesystem rules = *embedded_.rules;
    // What mounts hold for commands is said here by a rule.
    for (const std::string& path : planned.held)
      rules.entries.push_back({.path = path, .access = Access::kRead, .origin = {"protect", "", 0}});
    options.rules.plain = std::make_shared<const Filesystem>(std::move(rules));
  }
  return Files::open(std::move(options));
}

Result<ContainedSandbox::Running> ContainedSandbox::make_running() {
  Policy policy = embedded_.policy;
  BELLJAR_CHECK(runtime::check_served(policy));
  BELLJAR_CHECK(check_lifecycle(policy, lifecycle_));
  policy::hide_state(policy.filesystem.entries, default_state_dir());
  const auto exists = [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; };
  Address address = BELLJAR_TRY(find_engine(options_, by_name(embedded_.caller_env), exists));
  Engine engine = BELLJAR_TRY(Engine::connect(std::move(address), std::chrono::seconds(10), cancel_));
  Planned planned = BELLJAR_TRY(plan(policy, engine));
  (void)remove_orphans(engine);
  const ImageFacts image = BELLJAR_TRY(fetch_image(engine, options_, cancel_));
  hold_volumes(planned.spec, image.volumes, policy.filesystem.tmp_size);
  Files files = BELLJAR_TRY(open_files(planned));
  Box box;
  if (options_.mode == ContainerMode::kSession) box = BELLJAR_TRY(Container::start(engine, planned.spec, cancel_));
  if (box != nullptr ? !box->held() : !engine.is_local()) report_unheld(planned.report);
  enforcement_ = std::move(planned.report);
  return Running{std::move(engine), std::move(planned.spec), std::move(files), std::move(box)};
}

Result<void> ContainedSandbox::start() {
  const std::lock_guard lock(mutex_);
  if (running_ != nullptr && (running_->box == nullptr || running_->box->channel()->alive()))
    return Error(Code::kFailedPrecondition, "cannot start the sandbox").reason("it runs already");
  running_ = nullptr;
  volume_.reset();  // ours, of the one that ended
  UniqueFd volume = BELLJAR_TRY(ready_workspace(embedded_.place.workspace, lifecycle_));
  Running made = BELLJAR_TRY(make_running());
  volume_ = std::move(volume);
  running_ = std::make_shared<const Running>(std::move(made));
  return {};
}

Result<void> ContainedSandbox::stop() {
  std::shared_ptr<const Running> running;
  std::vector<std::weak_ptr<Container>> boxes;
  UniqueFd volume;  // let go when all have ended
  {
    const std::lock_guard lock(mutex_);
    running = std::exchange(running_, nullptr);
    boxes = std::exchange(boxes_, {});
    volume = std::move(volume_);
  }
  Result<void> stopped;
  if (running != nullptr && running->box != nullptr) stopped = running->box->stop();
  for (const auto& weak : boxes) {
    if (const Box box = weak.lock()) (void)box->stop();
  }
  std::vector<std::shared_ptr<ContainedCommand>> detached;
  {
    const std::lock_guard lock(home_->mutex);
    detached = std::exchange(home_->commands, {});
  }
  detached.clear();
  BELLJAR_CHECK(stopped);
  if (lifecycle_.remove_workspace) return remove_tree(embedded_.place.workspace);
  return {};
}

Result<std::shared_ptr<const ContainedSandbox::Running>> ContainedSandbox::running() const {
  const std::lock_guard lock(mutex_);
  if (running_ == nullptr)
    return Error(Code::kFailedPrecondition, "the sandbox does not run")
        .reason("it was not started, or it was stopped")
        .next("start() it");
  if (running_->box != nullptr && !running_->box->channel()->alive())
    return Error(Code::kFailedPrecondition, "the sandbox does not run")
        .reason("its container is gone: " + running_->box->channel()->ended_because())
        .next("start() it again");
  return running_;
}

Result<void> ContainedSandbox::health() {
  const auto alive = running();
  if (!alive) return Error(Code::kUnavailable, alive.error().what()).reason(alive.error().reason());
  if ((*alive)->box != nullptr) return (*alive)->box->channel()->ping(std::chrono::seconds(5));
  const auto facts = (*alive)->engine.facts();
  if (!facts) return Error(Code::kUnavailable, "the container engine takes no commands").reason(facts.error().line());
  return {};
}

Result<SandboxStats> ContainedSandbox::stats() {
  const auto alive = BELLJAR_TRY(running());
  SandboxStats stats;
  stats.execs = execs_.load();
  stats.bytes_written = written_.load();
  if (alive->box == nullptr) return stats;
  const ContainerStats used = BELLJAR_TRY(alive->box->stats());
  stats.cpu = used.cpu;
  stats.memory = Bytes{used.memory};
  stats.processes = used.processes;
  return stats;
}

// --- commands

Result<ContainedSandbox::Box> ContainedSandbox::box_for_command(const Running& running) {
  if (running.box != nullptr) return running.box;
  Box box = BELLJAR_TRY(Container::start(running.engine, running.spec));
  const std::lock_guard lock(mutex_);
  if (running_ == nullptr)
    return Error(Code::kFailedPrecondition, "the sandbox does not run").reason("it was stopped meanwhile").next("start() it");
  std::erase_if(boxes_, [](const auto& weak) { return weak.expired(); });
  boxes_.push_back(box);
  return box;
}

Result<std::unique_ptr<ContainedRun>> ContainedSandbox::begin(const Command& command, ContainedRequest request) {
  const auto alive = BELLJAR_TRY(running());
  const std::string& host = embedded_.place.workspace;
  auto named = on_host(command.cwd);
  if (!named)
    return Error(Code::kInvalidArgument, format("workdir escapes workspace: {}", escaped(command.cwd)))
        .next("name a directory inside of the workspace");
  const std::string cwd = BELLJAR_TRY(alive->files.find_cwd(*named));
  request.cwd = shown_at_ + cwd.substr(std::min(host.size(), cwd.size()));
  request.command = command;
  request.limits = embedded_.policy.limits;
  request.origins = embedded_.origins;
  request.last = alive->box == nullptr;
  Box box = BELLJAR_TRY(box_for_command(*alive));
  auto run = ContainedRun::start(std::move(box), std::move(request));
  if (run) ++execs_;
  return run;
}

Result<ExecResult> ContainedSandbox::exec(const Command& command, const ExecOptions& options) {
  BELLJAR_CHECK(check_command(command));
  BELLJAR_CHECK(check_timeout(options.timeout));
  BELLJAR_CHECK(check_no_hosts(options.allowed_domains));
  if (options.cancel.cancelled()) {
    BELLJAR_CHECK(running());
    return cancelled_before_start();
  }
  const Limits& limits = embedded_.policy.limits;
  ContainedRequest request;
  request.timeout = exec_timeout(options, limits);
  request.stdin_bytes = options.stdin_bytes;
  request.cancel = options.cancel;
  request.on_stdout = options.on_stdout;
  request.on_stderr = options.on_stderr;
  request.output_bytes = kept_output(options.output_bytes, limits);
  const auto run = BELLJAR_TRY(begin(command, std::move(request)));
  return run->finish();
}

Result<std::unique_ptr<Process>> ContainedSandbox::spawn(const Command& command, const SpawnOptions& options) {
  BELLJAR_CHECK(check_command(command));
  BELLJAR_CHECK(check_timeout(options.timeout));
  BELLJAR_CHECK(check_no_hosts(options.allowed_domains));
  if (options.cancel.cancelled()) {
    BELLJAR_CHECK(running());
    return make_cancelled_process();
  }
  const Limits& limits = embedded_.policy.limits;
  ContainedRequest request;
  request.timeout = spawn_timeout(options, limits);
  request.stdin_pipe = options.input == SpawnInput::kPipe;
  request.terminal = options.terminal;
  request.cancel = options.cancel;
  request.on_stdout = options.on_stdout;
  request.on_stderr = options.on_stderr;
  request.output_bytes = kept_output(options.output_bytes, limits);
  auto run = BELLJAR_TRY(begin(command, std::move(request)));
  auto spawned = std::make_shared<ContainedCommand>(std::move(run), home_);
  return std::unique_ptr<Process>(std::make_unique<ContainedProcess>(std::move(spawned), home_));
}

// --- files

Result<std::string> ContainedSandbox::on_host(const std::string& path) const {
  const std::string& host = embedded_.place.workspace;
  if (shown_at_ == host || !path.starts_with('/')) return path;
  const std::string full = policy::is_within(path, shown_at_) ? path : policy::normal(path);
  if (policy::is_within(full, shown_at_)) return host + full.substr(shown_at_.size());
  return Error(Code::kInvalidArgument, format("path escapes workspace: {}", escaped(path)))
      .next("name a path inside of the workspace");
}

Result<std::string> ContainedSandbox::read_file(const std::string& path, const ReadOptions& options) {
  return BELLJAR_TRY(running())->files.read(BELLJAR_TRY(on_host(path)), options);
}
Result<void> ContainedSandbox::write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) {
  BELLJAR_CHECK(BELLJAR_TRY(running())->files.write(BELLJAR_TRY(on_host(path)), bytes, options));
  written_ += bytes.size();
  return {};
}
Result<std::vector<FileInfo>> ContainedSandbox::list(const std::string& path) {
  return BELLJAR_TRY(running())->files.list(BELLJAR_TRY(on_host(path)));
}
Result<FileInfo> ContainedSandbox::stat(const std::string& path) {
  const auto alive = BELLJAR_TRY(running());
  const std::string named = BELLJAR_TRY(on_host(path));
  FileInfo info = BELLJAR_TRY(alive->files.stat(named));
  info.path = path;
  return info;
}
Result<void> ContainedSandbox::make_dir(const std::string& path, const MakeDirOptions& options) {
  return BELLJAR_TRY(running())->files.make_dir(BELLJAR_TRY(on_host(path)), options);
}
Result<void> ContainedSandbox::rename(const std::string& from, const std::string& to) {
  return BELLJAR_TRY(running())->files.rename(BELLJAR_TRY(on_host(from)), BELLJAR_TRY(on_host(to)));
}
Result<void> ContainedSandbox::remove(const std::string& path, const RemoveOptions& options) {
  return BELLJAR_TRY(running())->files.remove(BELLJAR_TRY(on_host(path)), options);
}
Result<GlobResult> ContainedSandbox::glob(const std::string& pattern, const WalkOptions& options) {
  return BELLJAR_TRY(running())->files.glob(pattern, options);
}
Result<GrepResult> ContainedSandbox::grep(const std::string& text, const GrepOptions& options) {
  return BELLJAR_TRY(running())->files.grep(text, options);
}

}  // namespace belljar::session
