// One isolated environment with an id and a lifetime: what an agent's tools depend on, whatever is underneath.
//
//   SandboxConfig config;                      // native, workspace-write, no network
//   config.workspace = "/home/me/project";
//   std::shared_ptr<Sandbox> sandbox = BELLJAR_TRY(make_sandbox(config));
//   BELLJAR_CHECK(sandbox->start());
//   ExecResult result = BELLJAR_TRY(sandbox->exec("make test", {.timeout = 60s}));
//   std::string log = BELLJAR_TRY(sandbox->read_file("build/log"));
//   BELLJAR_CHECK(sandbox->stop());            // or the destructor
//
// Exec never fails for what the command did: exit 1, a signal, a timeout, a program that is not there are an ExecResult. An Error
// means that the sandbox could not do its own work or was asked something that makes no sense. All methods are safe from any
// thread and may run at the same time, except that nothing may run while the object is destroyed.
//
// After a fork(2) a sandbox that was started, and the processes in it, stay the parent's: in the child their methods are refused
// (kFailedPrecondition; the report is empty) and their destructors end nothing. The child may make sandboxes of its own, and
// start those that were not started yet, but for copies of one in a cloud.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/command.h"
#include "belljar/container.h"
#include "belljar/exec_result.h"
#include "belljar/files.h"
#include "belljar/policy.h"
#include "belljar/process.h"
#include "belljar/result.h"
#include "belljar/txn.h"
#include "belljar/watch.h"

namespace belljar {

// Called with each piece of output as it arrives, before any cap. An exception ends the command and comes out of exec(), or of
// Process::wait() for a spawned one.
using OutputCallback = std::function<void(std::string_view bytes)>;

struct ExecOptions {
  // Wall time from execve. Unset: the policy's, else 30 s. Never more than the policy's max_timeout, else 5 min: larger values are
  // lowered to it. Zero or negative: kInvalidArgument. On expiry the command's whole tree is ended, double-forked descendants
  // included; if pid 1 of the sandbox gives no sign of life for 10 s after that (it is stopped or frozen), the sandbox is ended.
  std::optional<std::chrono::milliseconds> timeout;
  std::string stdin_bytes;  // empty: /dev/null
  CancelToken cancel;       // cancelled: the tree is ended and the result says kCancelled
  OutputCallback on_stdout, on_stderr;
  // Bytes kept of each stream. Unset: the policy's, else 200 000. The rest is read, counted and dropped, or ends the command where
  // the policy's output_action says so.
  std::optional<std::uint64_t> output_bytes;
  // Hosts beside the policy's that may be reached from the start of the command to its end (network.mode proxy; the forms of
  // allowed_domains). The proxy does not tell commands apart: others that run meanwhile reach them, too. Denied ones stay denied.
  // Errors of the call: kInvalidArgument, what is no rule; kFailedPrecondition, another mode; kUnimplemented, by this backend.
  std::vector<std::string> allowed_domains;
};

enum class SpawnInput { kNull, kPipe };

struct TerminalSize {
  unsigned short rows = 24, columns = 80;
};

struct SpawnOptions {
  // Unset: none. In any case the sandbox is ended if its pid 1 does not report the start within 10 s.
  std::optional<std::chrono::milliseconds> timeout;
  SpawnInput input = SpawnInput::kNull;
  std::optional<TerminalSize> terminal;  // a terminal of the sandbox's own; its output is stdout, stderr stays empty
  CancelToken cancel;
  OutputCallback on_stdout, on_stderr;  // on a thread of the process's own
  std::optional<std::uint64_t> output_bytes;
  std::vector<std::string> allowed_domains;  // as of ExecOptions, to the end of the command itself
};

// What the proxy lets through, as the policy's keys of these names say it.
struct NetworkRules {
  std::vector<std::string> allowed_domains, denied_domains, allowed_requests;
  bool operator==(const NetworkRules&) const = default;
};

// What a sandbox uses now.
struct SandboxStats {
  std::chrono::microseconds cpu{0};  // of all commands since the start
  Bytes memory;                      // of all processes inside now
  std::uint64_t processes = 0;       // and threads; init included, and its guard where there is no pid namespace
  std::uint64_t execs = 0;           // commands started
  std::uint64_t bytes_written = 0;   // through write_file
};

class Sandbox {
 public:
  Sandbox() = default;
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;
  virtual ~Sandbox() = default;

  virtual std::string_view backend() const noexcept = 0;  // for people and logs; nothing should depend on it
  virtual const std::string& id() const noexcept = 0;
  virtual const std::string& workspace() const noexcept = 0;
  // Further places that file calls take absolute paths below: what the policy makes writable or readable by name
  // (filesystem.entries, volumes, temp_dir), by the names it gives them. None of a backend that has only its workspace (clouds,
  // mock, a replay).
  virtual std::vector<std::string> roots() const { return {}; }
  // Which clauses of the policy are enforced, and how far: see exec_result.h. Complete after start().
  virtual EnforcementReport enforcement() const = 0;

  // Errors: as belljar::run; kFailedPrecondition, it runs already. A stopped one can be started again, empty of processes. Ended by
  // its options nothing of it runs. Without a deadline of theirs a step that waits (a mount of a file system that does not answer)
  // has 60 s and an engine 10 s to answer. A cloud looks at them before and between its requests alone, for what was asked of it
  // may be made all the same; each of these has its request_timeout.
  virtual Result<void> start(const CallOptions& options = {}) = 0;
  // Ends everything inside and gives all back. Commands that run meanwhile end with kCancelled. Stopping twice is fine. Ended by
  // its options it is not done: where a cloud or an engine was asked already, the sandbox may run on, and the next stop() goes on.
  virtual Result<void> stop(const CallOptions& options = {}) = 0;
  // Proves that a command could be started now. Errors: kUnavailable, why not; as CallOptions::check.
  virtual Result<void> health(const CallOptions& options = {}) = 0;
  virtual Result<SandboxStats> stats(const CallOptions& options = {}) = 0;

  // Errors: kFailedPrecondition, it does not run; kInvalidArgument, a NUL byte, an empty command, a cwd outside of the workspace;
  // kNotFound, no such cwd; kResourceExhausted, no descriptors or memory.
  virtual Result<ExecResult> exec(const Command& command, const ExecOptions& options = {}) = 0;
  virtual Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options = {}) = 0;
  // `sh -c text`.
  Result<ExecResult> exec(std::string text, const ExecOptions& options = {}) {
    return exec(shell_command(std::move(text)), options);
  }

  // Files of the workspace: files.h says what a path is. Errors: kInvalidArgument, "path escapes workspace: ..." and other paths
  // that make no sense; kNotFound; kAlreadyExists; kPermissionDenied, by the policy or the file's mode; kFailedPrecondition, it is
  // of another type than asked for; kResourceExhausted, disk full or a quota. kCanceled and kDeadlineExceeded, by the options:
  // files.h says what is left then.
  virtual Result<std::string> read_file(const std::string& path, const ReadOptions& options = {}) = 0;
  virtual Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options = {}) = 0;
  // Sorted, without "." and "..".
  virtual Result<std::vector<FileInfo>> list(const std::string& path = ".", const CallOptions& options = {}) = 0;
  // A symbolic link is not followed.
  virtual Result<FileInfo> stat(const std::string& path, const CallOptions& options = {}) = 0;
  virtual Result<void> make_dir(const std::string& path, const MakeDirOptions& options = {}) = 0;
  virtual Result<void> rename(const std::string& from, const std::string& to, const CallOptions& options = {}) = 0;
  virtual Result<void> remove(const std::string& path, const RemoveOptions& options = {}) = 0;
  virtual Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options = {}) = 0;
  // Lines that hold `text`, as it is: for regular expressions exec grep inside.
  virtual Result<GrepResult> grep(const std::string& text, const GrepOptions& options = {}) = 0;
  // Changes of files in a directory of the workspace and all below it, as they happen: watch.h. Errors: as list;
  // kResourceExhausted, the user's limits of inotify; kUnimplemented, this backend gets no such events (containers,
  // clouds, mock, a replay, a rehearsal).
  virtual Result<std::unique_ptr<FileWatch>> watch([[maybe_unused]] const std::string& path = ".",
                                                   [[maybe_unused]] const WatchOptions& options = {}) {
    return Error(Code::kUnimplemented, "cannot watch files")
        .reason("nobody tells this backend what changes")
        .next("use backend native, landlock or local, or list the files again");
  }

  // Replaces the policy's rules for hosts until stop() (network.mode proxy). Connections under way that the
  // new rules refuse are refused, or cut if an answer has begun, and then their record says `rules`. The
  // caller decides alone, as the author of the policy does. Errors: kInvalidArgument, something is no rule,
  // and nothing has changed; kFailedPrecondition, the sandbox does not run, its mode is another, or the rules
  // are for requests where the policy had none; kUnimplemented, by this backend.
  virtual Result<void> set_network_rules([[maybe_unused]] const NetworkRules& rules) {
    return Error(Code::kUnimplemented, "cannot change the hosts that may be reached")
        .reason("no proxy of ours serves this backend")
        .next("use backend native or container, or make another sandbox with the rules");
  }

  // For a sandbox whose workspace is a transaction (SandboxConfig::transaction): its changes, sorted by path,
  // none of which the host has. Errors, of all three: kUnimplemented, it has no transaction;
  // kFailedPrecondition, it does not run.
  virtual Result<std::vector<txn::Change>> changes() { return no_transaction(); }
  // Keeps the workspace as it is now under this name, or returns to it; without a name, to the state of the
  // host. The sandbox is made anew for that: /tmp, caches, ports and watches are not kept, and while a
  // process runs the call is refused by name. Calls of other threads wait meanwhile. Errors:
  // kFailedPrecondition, something runs in it; kAlreadyExists, kInvalidArgument and kNotFound, about the
  // name; as start(), and it does not run then.
  virtual Result<void> snapshot([[maybe_unused]] const std::string& name) { return no_transaction(); }
  virtual Result<void> rollback([[maybe_unused]] const std::string& snapshot = {}) { return no_transaction(); }

 private:
  static Error no_transaction() {
    return Error(Code::kUnimplemented, "the workspace is no transaction")
        .reason("its changes are made to the directory itself")
        .next("set SandboxConfig::transaction, with backend native");
  }
};

enum class OnStop { kKeep, kClean };
enum class OnStart { kRestore, kEmpty };

struct SandboxConfig;
using SandboxFactory = std::function<Result<std::shared_ptr<Sandbox>>(const SandboxConfig&)>;

struct SandboxConfig {
  // Decides alone: policy.backend is for belljar::run and the command line. native, landlock: locked down by the kernel. container:
  // by a container engine. local: guard rails only, and says so. mock: nothing is executed. Clouds: by `factory` or `factories`.
  // auto: native, then landlock where that cannot start; and then a container where policy.isolation asks for more than namespaces.
  std::string backend = "native";
  // Tried in this order when `backend` cannot start, at each start() anew; like `backend` it decides alone. Each is held to the
  // same policy, `require` and `isolation` included, before anything runs. local and mock are refused here. enforcement() is that
  // of the one in use, and ExecResult::tried tells of those before it; when none starts, the error does.
  std::vector<std::string> fallback;
  Policy policy;
  // By keys of the policy file ("network.allowed_domains"): where the policy's values come from, for what refusals say (Violation).
  // Values that are not named here read "built-in".
  std::map<std::string, Origin> origins;
  // What policy.filesystem.siblings is where the policy leaves it unset. A pool takes kHidden there, whatever this says.
  Siblings siblings = Siblings::kShown;
  CancelToken cancel;                             // cancelled: start() ends with kCanceled, under way or later; no mock looks at it
  std::string workspace;                          // empty: the current directory
  std::map<std::string, std::string> caller_env;  // what the policy's environment is taken from; empty: this process's own
  // Without a command or file call for this long the sandbox stops by itself. policy.limits.idle_timeout means the same here.
  std::optional<std::chrono::milliseconds> idle_timeout;
  // Instead of `workspace`: an existing directory in which the sandbox makes a workspace of its own, empty at its first start. With
  // siblings hidden nothing else in that directory is seen, by this one and by others that hide theirs.
  std::string workspaces;
  // kClean removes such a workspace when the sandbox is stopped or destroyed, or stops by itself. For a workspace that the caller
  // named it is refused (kInvalidArgument): that may be a person's project.
  OnStop on_stop = OnStop::kKeep;
  // Instead of `workspace`: a directory of the host that keeps the workspace's content from one life to the next. kEmpty: what is
  // in it is removed at each start, which is refused (kFailedPrecondition) while another sandbox of ours uses it.
  std::string persistent_volume;
  OnStart on_start = OnStart::kRestore;
  // Not empty: the workspace is a transaction of that name (belljar/txn.h). From start() to stop() the sandbox alone may change it,
  // then txn::commit() gives its changes to the host, or txn::rollback() drops them. Backend native, mode workspace-write.
  std::string transaction;
  std::string state_dir;       // where transactions are kept; empty: default_state_dir()
  ContainerOptions container;  // for backend container: engine, image ...
  SandboxFactory factory;      // one's own instead of a backend's name
  // For names in `backend` and `fallback` that libraries of their own serve: {"e2b", e2b_backend()}.
  std::map<std::string, SandboxFactory> factories;
};

// Errors: as belljar::run for policy and workspace; kUnimplemented, there is no such backend.
Result<std::shared_ptr<Sandbox>> make_sandbox(const SandboxConfig& config);

// BELLJAR_BACKEND names a backend; without it BELLJAR_ENV does: development is local, test is mock, production (and neither set) is
// native. BELLJAR_WORKSPACE and BELLJAR_TIMEOUT ("30s") fill in the rest, BELLJAR_IMAGE and BELLJAR_ENGINE those of containers.
// SANDBOX_COMMANDS=true, exactly, is container with sandbox_commands() unless BELLJAR_BACKEND names another. Errors:
// kInvalidArgument, an unknown word; a name of `factories` alone is set in `backend` afterwards.
Result<SandboxConfig> sandbox_config_from(const std::map<std::string, std::string>& environment);

// For policy.limits.timeout, by kind of task.
inline constexpr std::chrono::milliseconds kShortTask = std::chrono::seconds(30);
inline constexpr std::chrono::milliseconds kLongTask = std::chrono::seconds(600);
inline constexpr std::chrono::milliseconds kBatchTask = std::chrono::seconds(3600);

}  // namespace belljar
