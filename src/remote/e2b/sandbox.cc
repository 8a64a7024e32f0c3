#include "remote/e2b/sandbox.h"

#include <signal.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/random.h"
#include "belljar/command.h"
#include "belljar/e2b.h"
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
#include "http/client.h"
#include "remote/e2b/address.h"
#include "remote/e2b/control.h"
#include "remote/e2b/core.h"
#include "remote/e2b/envd.h"
#include "remote/e2b/files.h"
#include "remote/e2b/run.h"
#include "remote/environment.h"
#include "remote/in_time.h"
#include "remote/paths.h"
#include "remote/report.h"
#include "runtime/enforcement.h"
#include "runtime/json.h"
#include "session/ended.h"
#include "session/in_time.h"

namespace belljar::remote::e2b {
namespace {

using Json = nlohmann::json;

constexpr char kNoStop[] = "cannot stop the sandbox";
constexpr char kNoLook[] = "cannot look at the sandbox";

Error not_running(std::string reason) {
  return Error(Code::kFailedPrecondition, "the sandbox does not run").reason(std::move(reason)).next("start() it");
}

Holds held(std::string_view clause) {
  if (clause != "network") return {};
  return {.enforced = Enforced::kPartial,
          .mechanism = "allow_internet_access = false, network.allowPublicTraffic = false",
          .detail = "the service holds both, and nothing here checks"};
}

Result<std::shared_ptr<RemoteSandbox>> make(const SandboxConfig& config, E2bOptions options) {
  std::string workspace = BELLJAR_TRY(workspace_elsewhere(config.workspace, "/home/user"));
  if (runtime::to_utf8(workspace).replaced > 0)
    return Error(Code::kUnimplemented, format("cannot use workspace {}", belljar::quoted(workspace)))
        .reason("it is no UTF-8, and E2B takes names as JSON")
        .next("name another");
  if (options.lifetime.count() <= 0) return Error(Code::kInvalidArgument, "the lifetime of a sandbox must be positive");
  if (options.request_timeout.count() <= 0) return Error(Code::kInvalidArgument, "the request timeout must be positive");
  if (options.metadata.contains("belljar"))
    return Error(Code::kInvalidArgument, "the metadata `belljar` is ours").next("use another name");
  return std::make_shared<RemoteSandbox>(config, std::move(options), std::move(workspace));
}

}  // namespace

RemoteSandbox::RemoteSandbox(SandboxConfig config, E2bOptions options, std::string workspace)
    : config_(std::move(config)), options_(std::move(options)), id_(session::next_id()), workspace_(std::move(workspace)) {
  if (!options_.on_stop) options_.on_stop = options_.sandbox_id.empty() ? E2bOnStop::kKill : E2bOnStop::kLeave;
  remote_id_ = options_.sandbox_id;
  variables_ = variables_elsewhere(config_);
}

RemoteSandbox::~RemoteSandbox() {
  if (owner_.is_this()) {
    (void)RemoteSandbox::stop({});
    return;
  }
  // In a forked child: the machine is the parent's, and so is what its connections hold of TLS.
  abandon(running_);
  abandon(unended_);
  abandon(http_);
}

EnforcementReport RemoteSandbox::enforcement() const {
  if (!owner_.is_this()) return {};
  const std::lock_guard lock(mutex_);
  return enforcement_;
}

std::string RemoteSandbox::sandbox_id() const {
  if (!owner_.is_this()) return {};
  const std::lock_guard lock(mutex_);
  return remote_id_;
}

// --- life

Result<Control> RemoteSandbox::find_service() {
  Elsewhere place = {.backend = "e2b",
                     .options = "E2bOptions",
                     .image = "template",
                     .host = {},
                     .workspace = workspace_,
                     .isolation = Isolation::kVm,
                     .clock = "this client: TERM, then KILL of the command's tree; the daemon kills exec's command later by itself",
                     .holds = held};
  BELLJAR_CHECK(check_elsewhere(config_.policy, config_, place));
  const Address address = BELLJAR_TRY(find_address(options_, caller_variables(config_)));
  if (const auto url = http::parse_url(address.api_url)) place.host = url->host;
  EnforcementReport report = report_elsewhere(config_.policy, place);
  BELLJAR_CHECK(runtime::check_required(report, config_.policy));
  const std::lock_guard lock(mutex_);
  enforcement_ = std::move(report);
  return Control(http_, address, options_.request_timeout, options_.least_lifetime);
}

Result<Granted> RemoteSandbox::enter(const Control& control) {
  if (const std::string before = sandbox_id(); !before.empty()) return control.connect(before, options_.lifetime, config_.cancel);
  return control.create({.template_id = options_.template_id,
                         .lifetime = options_.lifetime,
                         .metadata = options_.metadata,
                         .variables = {},
                         .internet = config_.policy.network.mode != NetMode::kNone,
                         .cancel = config_.cancel});
}

Result<void> RemoteSandbox::start() {
  BELLJAR_CHECK(owner_.check());  // before the locks: a thread of the parent may hold them here
  const std::lock_guard one(starting_);
  {
    const std::lock_guard lock(mutex_);
    if (running_ != nullptr) return Error(Code::kFailedPrecondition, "cannot start the sandbox").reason("it runs already");
  }
  BELLJAR_CHECK(session::check_not_cancelled(config_.cancel));
  Control control = BELLJAR_TRY(find_service());
  const bool made = sandbox_id().empty();
  Granted granted = BELLJAR_TRY(enter(control));
  const std::string remote = granted.id;
  auto core =
      std::make_shared<Core>(Envd(http_, std::move(granted), control.address().api_key, options_.user, options_.request_timeout),
                             workspace_, random_hex(8));
  RemoteFiles files(core);
  auto there = session::check_not_cancelled(config_.cancel);
  if (there) there = files.make_workspace();
  if (!there) {
    return made ? control.abandon(remote, there.error()) : there.error();
  }
  unended_ = nullptr;  // it runs again
  const std::lock_guard lock(mutex_);
  remote_id_ = remote;
  running_ = std::make_shared<const Running>(Running{std::move(control), std::move(core), std::move(files)});
  return {};
}

RemoteSandbox::RunningPtr RemoteSandbox::leave() {
  RunningPtr alive;
  {
    const std::lock_guard lock(mutex_);
    alive = std::exchange(running_, nullptr);
  }
  if (alive != nullptr) alive->core->end_commands();
  return alive;
}

Result<void> RemoteSandbox::stop(const CallOptions& options) {
  BELLJAR_CHECK(owner_.check());
  const auto one = BELLJAR_TRY(session::lock_in_time(starting_, options, kNoStop));
  return in_time(options, kNoStop, {"the sandbox may run on", "stop() it again"},
                 [&](const CancelToken& end) { return leave_it(end); });
}

// With starting_ held.
Result<void> RemoteSandbox::leave_it(const CancelToken& end) {
  if (RunningPtr left = leave()) unended_ = std::move(left);
  if (unended_ == nullptr) return {};
  const RunningPtr alive = unended_;
  const std::string remote = sandbox_id();
  if (options_.on_stop != E2bOnStop::kKill) {
    (void)alive->core->kill_marked(alive->core->nonce() + "-", SIGKILL, std::chrono::seconds(10), end);
    if (end.cancelled()) return Error(Code::kCanceled, kNoStop);
    if (options_.on_stop == E2bOnStop::kPause) BELLJAR_TRY(alive->control.pause(remote, end));
    unended_ = nullptr;
    return {};
  }
  const auto killed = alive->control.kill(remote, end);
  if (!killed) return killed.error();
  unended_ = nullptr;
  const std::lock_guard lock(mutex_);
  remote_id_.clear();
  return {};
}

Result<bool> RemoteSandbox::kill() {
  BELLJAR_CHECK(owner_.check());
  const std::lock_guard one(starting_);
  RunningPtr alive = leave();
  if (alive == nullptr) alive = unended_;
  const std::string remote = sandbox_id();
  if (remote.empty()) return false;
  const Control control = alive != nullptr ? alive->control : BELLJAR_TRY(find_service());
  const bool killed = BELLJAR_TRY(control.kill(remote));
  unended_ = nullptr;
  const std::lock_guard lock(mutex_);
  remote_id_.clear();
  return killed;
}

Result<void> RemoteSandbox::set_timeout(std::chrono::milliseconds lifetime) {
  if (lifetime.count() <= 0) return Error(Code::kInvalidArgument, "the lifetime of a sandbox must be positive").next("kill() it");
  const auto alive = BELLJAR_TRY(running());
  return alive->control.set_timeout(sandbox_id(), lifetime);
}

Result<RemoteSandbox::RunningPtr> RemoteSandbox::running() const {
  BELLJAR_CHECK(owner_.check());
  const std::lock_guard lock(mutex_);
  if (running_ == nullptr) return not_running("it was not started, or it was stopped");
  return running_;
}

Result<void> RemoteSandbox::health(const CallOptions& options) {
  BELLJAR_CHECK(owner_.check());
  const auto alive = running();
  if (!alive) return Error(Code::kUnavailable, alive.error().what()).reason(alive.error().reason());
  return in_time(options, kNoLook, {}, [&](const CancelToken& end) { return (*alive)->core->envd().health(end.fd()); });
}

Result<SandboxStats> RemoteSandbox::stats(const CallOptions& options) {
  const auto alive = BELLJAR_TRY(running());
  const Envd& envd = alive->core->envd();
  const std::string reply = BELLJAR_TRY(in_time(options, kNoLook, {}, [&](const CancelToken& end) {
    return envd.call("process.Process/List", "{}", kNoLook, envd.patience(), end.fd());
  }));
  const Json json = Json::parse(reply, nullptr, false);
  SandboxStats stats;
  if (json.is_object() && json.contains("processes") && json["processes"].is_array()) stats.processes = json["processes"].size();
  stats.execs = execs_.load();
  stats.bytes_written = written_.load();
  return stats;
}

// --- commands

Result<command::Request> RemoteSandbox::elsewhere(const RunningPtr& alive, command::Request request) const {
  request.cwd = BELLJAR_TRY(alive->files.find_cwd(request.command.cwd));
  for (const auto& [name, text] : variables_) request.command.env.emplace(name, text);
  return request;
}

Result<ExecResult> RemoteSandbox::exec(const Command& command, const ExecOptions& options) {
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

Result<std::unique_ptr<Process>> RemoteSandbox::spawn(const Command& command, const SpawnOptions& options) {
  BELLJAR_CHECK(command::check_command(command));
  BELLJAR_CHECK(command::check_timeout(options.timeout));
  BELLJAR_CHECK(command::check_no_hosts(options.allowed_domains));
  const auto alive = BELLJAR_TRY(running());
  auto request = BELLJAR_TRY(elsewhere(alive, command::make_request(command, options, config_.policy.limits)));
  if (options.cancel.cancelled()) return command::make_cancelled_process();
  auto run = BELLJAR_TRY(alive->core->start(std::move(request)));
  ++execs_;
  return command::follow(std::move(run), nullptr);
}

// --- files

Result<std::string> RemoteSandbox::read_file(const std::string& path, const ReadOptions& options) {
  const auto alive = BELLJAR_TRY(running());
  return in_time(options.call, format("cannot read {}", belljar::quoted(path)), {},
                 [&](const CancelToken& end) { return alive->files.until(end).read(path, options); });
}
Result<void> RemoteSandbox::write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) {
  const auto alive = BELLJAR_TRY(running());
  BELLJAR_CHECK(in_time(options.call, format("cannot write {}", belljar::quoted(path)), may_be_done(),
                        [&](const CancelToken& end) { return alive->files.until(end).write(path, bytes, options); }));
  written_ += bytes.size();
  return {};
}
Result<std::vector<FileInfo>> RemoteSandbox::list(const std::string& path, const CallOptions& options) {
  const auto alive = BELLJAR_TRY(running());
  return in_time(options, format("cannot list {}", belljar::quoted(path)), {},
                 [&](const CancelToken& end) { return alive->files.until(end).list(path); });
}
Result<FileInfo> RemoteSandbox::stat(const std::string& path, const CallOptions& options) {
  const auto alive = BELLJAR_TRY(running());
  return in_time(options, format("cannot look at {}", belljar::quoted(path)), {},
                 [&](const CancelToken& end) { return alive->files.until(end).stat(path); });
}
Result<void> RemoteSandbox::make_dir(const std::string& path, const MakeDirOptions& options) {
  const auto alive = BELLJAR_TRY(running());
  return in_time(options.call, format("cannot make directory {}", belljar::quoted(path)), may_be_done(),
                 [&](const CancelToken& end) { return alive->files.until(end).make_dir(path, options); });
}
Result<void> RemoteSandbox::rename(const std::string& from, const std::string& to, const CallOptions& options) {
  const auto alive = BELLJAR_TRY(running());
  return in_time(options, format("cannot rename {}", belljar::quoted(from)), may_be_done(),
                 [&](const CancelToken& end) { return alive->files.until(end).rename(from, to); });
}
Result<void> RemoteSandbox::remove(const std::string& path, const RemoveOptions& options) {
  const auto alive = BELLJAR_TRY(running());
  return in_time(options.call, format("cannot remove {}", belljar::quoted(path)), may_be_done(),
                 [&](const CancelToken& end) { return alive->files.until(end).remove(path, options); });
}
Result<GlobResult> RemoteSandbox::glob(const std::string& pattern, const WalkOptions& options) {
  return BELLJAR_TRY(running())->files.glob(pattern, options);
}
Result<GrepResult> RemoteSandbox::grep(const std::string& text, const GrepOptions& options) {
  return BELLJAR_TRY(running())->files.grep(text, options);
}

}  // namespace belljar::remote::e2b

namespace belljar {
namespace {

using remote::e2b::RemoteSandbox;

Result<std::shared_ptr<E2bSandbox>> started(const SandboxConfig& config, E2bOptions options) {
  auto sandbox = BELLJAR_TRY(remote::e2b::make(config, std::move(options)));
  BELLJAR_CHECK(sandbox->start());
  return std::shared_ptr<E2bSandbox>(std::move(sandbox));
}

}  // namespace

Result<std::shared_ptr<E2bSandbox>> E2bSandbox::create(std::chrono::milliseconds lifetime, E2bOptions options,
                                                       const SandboxConfig& config) {
  options.lifetime = lifetime;
  options.sandbox_id.clear();
  return started(config, std::move(options));
}

Result<std::shared_ptr<E2bSandbox>> E2bSandbox::connect(const std::string& sandbox_id, E2bOptions options,
                                                        const SandboxConfig& config) {
  if (sandbox_id.empty()) return Error(Code::kInvalidArgument, "cannot connect to a sandbox without its id");
  options.sandbox_id = sandbox_id;
  return started(config, std::move(options));
}

SandboxFactory e2b_backend(E2bOptions options) {
  return [options = std::move(options)](const SandboxConfig& config) -> Result<std::shared_ptr<Sandbox>> {
    auto sandbox = BELLJAR_TRY(remote::e2b::make(config, options));
    return std::shared_ptr<Sandbox>(std::move(sandbox));
  };
}

}  // namespace belljar
