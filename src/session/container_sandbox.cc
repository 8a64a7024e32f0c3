// The sandbox of the container backend. Order of a start (make_instance):
//
// First the rules are completed on this side, then the engine is asked what it can do, then the container is
// planned, and only then the image is fetched, which may take longest. Required clauses are checked twice:
// before the start, by what the plan promises, and after it, by what the start found out.
//
// The sockets and keys of container engines are looked for under all names that the mounts give them
// (close_doors). A command that reached one would control the engine.
//
// stop() takes everything out under the mutex and waits for the engine without it, so that other calls fail at
// once and do not wait. When the caller ends that wait, the rest is kept in unended_, and the next stop() or
// start() goes on with it: a container that nobody remembers would run on.
//
// In per-command mode each command has a container of its own. A stop() while one is starting does not see it;
// the start notices that the sandbox is gone (container_for_command) and lets the container go.
#include "session/container_sandbox.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/container/address.h"
#include "backend/container/container.h"
#include "backend/container/engine.h"
#include "backend/container/inside.h"
#include "backend/container/mounted.h"
#include "backend/container/report.h"
#include "backend/container/runtimes.h"
#include "backend/container/shown_dir.h"
#include "backend/container/spec.h"
#include "backend/paths/host.h"
#include "backend/paths/volume_targets.h"
#include "base/environment.h"
#include "base/format.h"
#include "base/owner.h"
#include "base/remove_tree.h"
#include "belljar/cancel.h"
#include "belljar/command.h"
#include "belljar/container.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/files.h"
#include "belljar/policy.h"
#include "belljar/process.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/state_dir.h"
#include "command/ending.h"
#include "command/process.h"
#include "command/request.h"
#include "policy/backends.h"
#include "policy/merge.h"
#include "policy/paths.h"
#include "runtime/embed.h"
#include "runtime/enforcement.h"
#include "runtime/interception.h"
#include "runtime/limits.h"
#include "runtime/sandbox_egress.h"
#include "runtime/unsupported.h"
#include "session/container_command.h"
#include "session/ended.h"
#include "session/files.h"
#include "session/in_time.h"
#include "session/lifecycle.h"
#include "session/live_egress.h"
#include "session/networked_container.h"

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

constexpr char kNoStop[] = "cannot stop the sandbox";
constexpr char kNoLook[] = "cannot look at the sandbox";

Result<void> check_lifecycle(const Policy& policy, const Lifecycle& lifecycle) {
  if (!policy.limits.idle_timeout && !lifecycle.idle_timeout) return {};
  return Error(Code::kUnimplemented, "the container backend does not serve limits.idle_timeout")
      .reason("nothing watches whether a container is used")
      .next("drop the key, or use another backend");
}

// Over TCP an engine may be anywhere, also behind a tunnel from our loopback.
bool is_same_machine(const Address& address, const EngineFacts& facts) {
  if (!address.path.empty()) return true;
  std::array<char, HOST_NAME_MAX + 1> ours{};
  ::gethostname(ours.data(), HOST_NAME_MAX);
  return is_loopback(address) && facts.machine == ours.data();
}

Result<void> check_files_shared(const Address& address, const EngineFacts& facts, const ContainerOptions& options) {
  if (is_same_machine(address, facts) || options.engine_files == EngineFiles::kShared) return {};
  return Error(Code::kUnimplemented, format("cannot show the workspace to the container engine at {}", quoted(to_string(address))))
      .reason(format("bind mounts are directories of its own machine, {}", quoted(facts.machine)))
      .next("use an engine of this machine, or say --shared-files where both see the same directories at the same paths");
}

// This engine's, and those of others that may be here.
std::vector<std::string> doors_of(const Address& address, const std::map<std::string, std::string>& environment) {
  std::vector<std::string> privileged_paths = usual_places(environment);
  if (!address.path.empty()) privileged_paths.push_back(address.path);
  if (address.tls) privileged_paths.push_back(address.tls->key);
  return privileged_paths;
}

// None is shown, under whatever name it has.
Result<void> close_doors(const backend::Host& host, const std::vector<Bind>& binds,
                         const std::vector<std::string>& privileged_paths) {
  const std::vector<Mount> here = read_mounts();
  std::vector<std::string> names;
  for (const std::string& door : privileged_paths) {
    const auto real = host.canonical(door);
    if (!real) continue;
    std::ranges::move(names_of(*real, here), std::back_inserter(names));
    struct stat facts{};
    if (::lstat(real->c_str(), &facts) == 0 && !S_ISDIR(facts.st_mode))
      BELLJAR_CHECK(check_single_link(*real, facts.st_nlink, binds, here));
  }
  return check_privileged_paths_hidden(host, binds, names);
}

}  // namespace

ContainerSandbox::ContainerSandbox(runtime::Embedded embedded, ContainerOptions options, Lifecycle lifecycle, CancelToken cancel)
    : embedded_(std::move(embedded)),
      options_(std::move(options)),
      lifecycle_(std::move(lifecycle)),
      cancel_(std::move(cancel)),
      id_(next_id()),
      shown_at_(options_.workspace_at.empty() ? embedded_.place.workspace : options_.workspace_at) {}

ContainerSandbox::~ContainerSandbox() {
  if (owner_.is_this()) {
    (void)stop({});
    return;
  }
  abandon(running_);
  abandon(containers_);
  abandon(unended_);
  abandon(home_);
}

EnforcementReport ContainerSandbox::enforcement() const {
  if (!owner_.is_this()) return {};
  const std::lock_guard lock(mutex_);
  return enforcement_;
}

// --- life

Result<ContainerPlan> ContainerSandbox::plan(const Policy& policy, const backend::Workplace& place, const Engine& engine,
                                             const CancelToken& cancel) {
  const EngineFacts facts = BELLJAR_TRY(engine.facts(std::chrono::seconds(30), cancel));
  BELLJAR_CHECK(runtime::check_limits(policy.limits));
  BELLJAR_CHECK(check_files_shared(engine.address(), facts, options_));
  const backend::RealHost host;
  const InstalledFiles installed = BELLJAR_TRY(install_inside(default_state_dir() + "/container"));
  ContainerOptions options = options_;
  options.runtime = choose_runtime(facts, options_.runtime, policy.isolation);
  BELLJAR_CHECK(
      backend::make_volume_targets(policy, place, options_.workspace_at.empty() ? place.workspace : options_.workspace_at));
  ContainerPlan planned = BELLJAR_TRY(plan_container(host, policy, place, options, installed, facts.rootless));
  BELLJAR_CHECK(close_doors(host, planned.spec.binds, doors_of(engine.address(), by_name(embedded_.caller_env))));
  fit_engine(planned.spec, facts.processors, facts.maps_ids);
  report_engine(facts.maps_ids, facts.seccomp, planned.report);
  report_limits(policy, facts.memory_limit, facts.cpu_quota, facts.pids_limit, planned.report);
  const std::string& runtime = options.runtime.empty() ? facts.default_runtime : options.runtime;
  const Isolation isolation = isolation_of_runtime(facts, options.runtime);
  policy::report_isolation(policy, isolation, format("runtime {}", escaped(runtime)), planned.report);
  BELLJAR_CHECK(check_passing(planned.spec, isolation, is_same_machine(engine.address(), facts), to_string(engine.address())));
  planned.report.push_back(command::timeout_clause(policy.limits));
  planned.spec.labels[kOwnerLabel] = owner_label();
  planned.spec.labels[kSandboxLabel] = id_;
  return planned;
}

Result<Files> ContainerSandbox::open_files(const ContainerPlan& planned) const {
  FilesOptions options;
  options.root = UniqueFd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  options.workspace = embedded_.place.workspace;
  options.named = embedded_.named;
  options.roots = roots();
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

Result<ContainerSandbox::Instance> ContainerSandbox::make_instance(const CancelToken& cancel) {
  Policy policy = embedded_.policy;
  BELLJAR_CHECK(runtime::check_supported(policy));
  BELLJAR_CHECK(check_lifecycle(policy, lifecycle_));
  policy::hide_state(policy.filesystem.entries, default_state_dir());
  backend::Workplace place = embedded_.place;
  place.cwd = place.workspace;
  place.env = container_environment(policy.environment, embedded_.caller_env);
  policy::hide_credentials(policy.filesystem.entries, policy.network, place.home);
  std::shared_ptr<void> living = BELLJAR_TRY(enter_living(policy, lifecycle_, place));
  LiveEgressOptions egress{.interception = nullptr, .origins = embedded_.origins, .given_rules = {}};
  if (auto look = BELLJAR_TRY(runtime::Interception::create(policy, runtime::library_interceptor(), embedded_.caller_env, place)))
    egress.interception = std::make_shared<const runtime::Interception>(*std::move(look));
  const auto exists = [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; };
  Address address = BELLJAR_TRY(find_engine(options_, by_name(embedded_.caller_env), exists));
  Engine engine = BELLJAR_TRY(Engine::connect(std::move(address), std::chrono::seconds(10), cancel));
  ContainerPlan planned = BELLJAR_TRY(plan(policy, place, engine, cancel));
  std::shared_ptr<const ShownDir> shown;
  if (!place.files.empty()) {
    shown = std::make_shared<const ShownDir>(BELLJAR_TRY(ShownDir::create(planned.spec.state)));
    BELLJAR_CHECK(show_files(place.files, *shown, planned.spec));
  }
  // Containers of ours whose owner is gone.
  (void)remove_orphans(engine);
  const ImageFacts image = BELLJAR_TRY(fetch_image(engine, options_, cancel));
  hold_volumes(planned.spec, image.volumes, policy.filesystem.tmp_size);
  Files files = BELLJAR_TRY(open_files(planned));
  Instance made{std::move(engine), std::move(planned.spec), std::move(files), std::move(egress), std::move(shown), nullptr, {},
                std::move(living)};
  made.spent = std::make_shared<SpentTime>();
  ContainerPtr container = make_container(made);  // of single commands each gets one of its own, and this one stays a plan
  BELLJAR_CHECK(container->plan(planned.report));
  BELLJAR_CHECK(runtime::check_required(planned.report, policy));
  if (options_.mode == ContainerMode::kSession) {
    BELLJAR_CHECK(container->start(made.engine, planned.report, cancel));
    made.container = std::move(container);
  }
  if (made.container != nullptr ? !made.container->container().held() : !made.engine.is_local()) report_unheld(planned.report);
  BELLJAR_CHECK(runtime::check_required(planned.report, policy));  // what this start found out
  enforcement_ = std::move(planned.report);
  return made;
}

ContainerSandbox::ContainerPtr ContainerSandbox::make_container(const Instance& running) const {
  LiveEgressOptions egress = running.egress;
  Policy policy = embedded_.policy;
  if (network_rules_) {
    egress.given_rules = rules_of(policy.network);
    apply(*network_rules_, policy.network);
  }
  return std::make_shared<NetworkedContainer>(running.spec, std::move(policy), std::move(egress));
}

Result<void> ContainerSandbox::start(const CallOptions& options) {
  if (!owner_.is_this() && running_ != nullptr)
    return OwningProcess::not_this();  // before the lock: a thread of the parent may hold it here
  owner_.take();
  const auto lock = BELLJAR_TRY(lock_in_time(mutex_, options, kNoStart));
  if (running_ != nullptr && (running_->container == nullptr || running_->container->channel()->alive()))
    return Error(Code::kFailedPrecondition, kNoStart).reason("it runs already");
  BELLJAR_CHECK(check_not_cancelled(cancel_));
  BELLJAR_CHECK(options.check(kNoStart));
  const CancelToken end = BELLJAR_TRY(options.token(cancel_));
  // A process handle may hold it still, and with it the ports.
  if (running_ != nullptr && running_->container != nullptr) (void)running_->container->stop();
  running_ = nullptr;
  if (const PendingStop before = std::exchange(unended_, {}); before.running != nullptr) (void)before.finish(end);
  network_rules_.reset();
  volume_.reset();  // ours, of the one that ended
  UniqueFd volume = BELLJAR_TRY(ready_workspace(embedded_.place.workspace, lifecycle_));
  auto made = make_instance(end);
  if (!made) return start_error(made.error(), options);
  volume_ = std::move(volume);
  running_ = std::make_shared<const Instance>(*std::move(made));
  return {};
}

Result<void> ContainerSandbox::PendingStop::finish(const CancelToken& cancel) const {
  Result<void> stopped;
  if (running != nullptr && running->container != nullptr) stopped = running->container->stop(cancel);
  for (const auto& weak : containers) {
    if (const ContainerPtr container = weak.lock()) (void)container->stop(cancel);
  }
  return stopped;
}

Result<void> ContainerSandbox::stop(const CallOptions& options) {
  BELLJAR_CHECK(owner_.check());
  const CancelToken end = BELLJAR_TRY(options.token());
  PendingStop ending;
  {
    const auto lock = BELLJAR_TRY(lock_in_time(mutex_, options, kNoStop));
    BELLJAR_CHECK(options.check(kNoStop));
    ending = std::exchange(unended_, {});
    if (running_ != nullptr) ending = {std::exchange(running_, nullptr), std::exchange(containers_, {}), std::move(volume_)};
    network_rules_.reset();
  }
  const Result<void> stopped = ending.finish(end);
  if (!stopped && stopped.error().code() == Code::kCanceled && end.cancelled()) {
    const std::lock_guard lock(mutex_);
    unended_ = std::move(ending);
    const Result<void> over = options.check(kNoStop);
    return in_vain(over ? stopped.error() : over.error(), "its container may run yet", "stop() it again");
  }
  command::clear(*home_);
  BELLJAR_CHECK(stopped);
  if (lifecycle_.remove_workspace) return remove_tree(embedded_.place.workspace);
  return {};
}

Result<std::shared_ptr<const ContainerSandbox::Instance>> ContainerSandbox::running(const CallOptions& options) const {
  BELLJAR_CHECK(owner_.check());
  const auto lock = BELLJAR_TRY(lock_in_time(mutex_, options, "cannot use the sandbox"));
  if (running_ == nullptr)
    return Error(Code::kFailedPrecondition, "the sandbox does not run")
        .reason("it was not started, or it was stopped")
        .next("start() it");
  if (running_->container != nullptr && !running_->container->channel()->alive())
    return Error(Code::kFailedPrecondition, "the sandbox does not run")
        .reason("its container is gone: " + running_->container->channel()->ended_because())
        .next("start() it again");
  return running_;
}

Result<void> ContainerSandbox::health(const CallOptions& options) {
  BELLJAR_CHECK(owner_.check());
  const auto alive = running(options);
  if (!alive) return not_healthy(alive.error());
  BELLJAR_CHECK(options.check(kNoLook));
  const CancelToken end = BELLJAR_TRY(options.token());
  Result<void> answered;
  if ((*alive)->container != nullptr) answered = (*alive)->container->channel()->ping(std::chrono::seconds(5), end.fd());
  else if (const auto facts = (*alive)->engine.facts(std::chrono::seconds(30), end); !facts)
    answered = Error(Code::kUnavailable, "the container engine takes no commands").reason(facts.error().line());
  if (!answered) BELLJAR_CHECK(options.check(kNoLook));
  return answered;
}

Result<SandboxStats> ContainerSandbox::stats(const CallOptions& options) {
  const auto alive = BELLJAR_TRY(running(options));
  BELLJAR_CHECK(options.check(kNoLook));
  const CancelToken end = BELLJAR_TRY(options.token());
  SandboxStats stats;
  stats.execs = execs_.load();
  stats.bytes_written = written_.load();
  const auto used = usage(*alive, end);
  if (!used && used.error().code() == Code::kCanceled) BELLJAR_CHECK(options.check(kNoLook));
  if (!used) return used.error();
  stats.cpu = used->cpu;
  stats.memory = Bytes{used->memory};
  stats.processes = used->processes;
  return stats;
}

Result<ContainerStats> ContainerSandbox::usage(const Instance& running, const CancelToken& cancel) {
  if (running.container != nullptr) return running.container->container().stats(cancel);
  const std::chrono::microseconds ended(running.spent->ended_us.load());
  std::vector<ContainerPtr> containers;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& weak : containers_) {
      if (ContainerPtr container = weak.lock()) containers.push_back(std::move(container));
    }
  }
  ContainerStats all = BELLJAR_TRY(usage_of(containers, cancel));
  all.cpu = running.spent->tell(all.cpu + ended);
  return all;
}

// --- commands

Result<ContainerSandbox::ContainerPtr> ContainerSandbox::container_for_command(const Instance& running) {
  if (running.container != nullptr) return running.container;
  ContainerPtr container;
  EnforcementReport report;  // of the sandbox, and what this start finds out
  {
    const std::lock_guard lock(mutex_);
    container = make_container(running);
    report = enforcement_;
  }
  BELLJAR_CHECK(container->plan(report));
  BELLJAR_CHECK(container->start(running.engine, report));
  const std::lock_guard lock(mutex_);
  if (running_ == nullptr)
    return Error(Code::kFailedPrecondition, "the sandbox does not run").reason("it was stopped meanwhile").next("start() it");
  std::erase_if(containers_, [](const auto& weak) { return weak.expired(); });
  if (network_rules_) BELLJAR_CHECK(container->egress().set_rules(*network_rules_));  // set while it started
  containers_.push_back(container);
  for (const EnforcementClause& found : report) {
    const auto told = std::ranges::find(enforcement_, found.clause, &EnforcementClause::clause);
    if (told != enforcement_.end() && found.enforced > told->enforced) *told = found;
  }
  BELLJAR_CHECK(runtime::check_required(enforcement_, embedded_.policy));
  return container;
}

Result<std::shared_ptr<ContainerCommand>> ContainerSandbox::begin(command::Request request) {
  const auto alive = BELLJAR_TRY(running());
  const std::string& host = embedded_.place.workspace;
  const std::string& asked = request.command.cwd;
  auto named = on_host(asked);
  if (!named)
    return Error(Code::kInvalidArgument, format("workdir escapes workspace: {}", escaped(asked)))
        .next("name a directory inside of the workspace");
  const std::string cwd = BELLJAR_TRY(alive->files.find_cwd(*named));
  request.cwd = policy::is_within(cwd, host) ? shown_at_ + cwd.substr(host.size()) : cwd;
  const bool last = alive->container == nullptr;
  ContainerPtr container = BELLJAR_TRY(container_for_command(*alive));
  auto run = ContainerCommand::start(std::move(container), std::move(request),
                                     {.origins = embedded_.origins, .last = last, .spent = last ? alive->spent : nullptr});
  if (run) ++execs_;
  return run;
}

Result<ExecResult> ContainerSandbox::exec(const Command& command, const ExecOptions& options) {
  BELLJAR_CHECK(command::check(command, options));
  if (options.cancel.cancelled()) {
    BELLJAR_CHECK(running());
    return command::cancelled_before_start();
  }
  return BELLJAR_TRY(begin(command::make_request(command, options, embedded_.policy.limits)))->finish();
}

Result<std::unique_ptr<Process>> ContainerSandbox::spawn(const Command& command, const SpawnOptions& options) {
  BELLJAR_CHECK(command::check(command, options));
  if (options.cancel.cancelled()) {
    BELLJAR_CHECK(running());
    return command::make_cancelled_process();
  }
  return command::follow(BELLJAR_TRY(begin(command::make_request(command, options, embedded_.policy.limits))), home_);
}

// --- files

std::vector<std::string> ContainerSandbox::roots() const {
  Filesystem same = embedded_.policy.filesystem;
  std::erase_if(same.volumes, [](const Volume& volume) { return volume.source != volume.target; });
  same.temp_dir.reset();
  std::vector<std::string> roots = roots_of(same);
  std::erase_if(roots, [](const std::string& root) { return ::access(root.c_str(), F_OK) != 0; });
  return roots;
}

Result<std::string> ContainerSandbox::on_host(const std::string& path) const {
  const std::string& host = embedded_.place.workspace;
  if (shown_at_ == host || !path.starts_with('/')) return path;
  std::string full = policy::is_within(path, shown_at_) ? path : policy::normal(path);
  if (policy::is_within(full, shown_at_)) return host + full.substr(shown_at_.size());
  if (std::ranges::any_of(roots(), [&](const std::string& root) { return policy::is_within(full, root); })) return full;
  return Error(Code::kInvalidArgument, format("path escapes workspace: {}", escaped(path)))
      .next("name a path inside of the workspace");
}

Result<std::shared_ptr<const Files>> ContainerSandbox::files(const CallOptions& options) const {
  const auto alive = BELLJAR_TRY(running(options));
  return std::shared_ptr<const Files>(alive, &alive->files);
}

// --- the hosts that may be reached

Result<void> ContainerSandbox::set_network_rules(const NetworkRules& rules) {
  BELLJAR_CHECK(running());
  const std::lock_guard lock(mutex_);
  if (running_ == nullptr) return Error(Code::kFailedPrecondition, "the sandbox does not run").reason("it was stopped meanwhile");
  Network network = embedded_.policy.network;
  apply(rules, network);
  const Command none;
  const runtime::SandboxEgress like(embedded_.policy, none, nullptr, running_->egress.interception.get());
  BELLJAR_CHECK(like.check_hosts(network));
  if (running_->container != nullptr) BELLJAR_CHECK(running_->container->egress().set_rules(rules));
  for (const auto& weak : containers_) {
    if (const ContainerPtr container = weak.lock())
      (void)container->egress().set_rules(rules);  // one that ends meanwhile needs none
  }
  network_rules_ = rules;
  for (EnforcementClause& clause : enforcement_) {
    if (clause.clause == runtime::kDomainsClause)
      clause.asked = runtime::describe_domains(rules.allowed_domains, rules.denied_domains);
  }
  return {};
}

}  // namespace belljar::session
