// Decorators: wrappers around any Sandbox, in any order, that are Sandboxes again. They record, limit,
// rehearse, refuse, redact, replay.
//
//   auto trail = std::make_shared<AuditTrail>(BELLJAR_TRY(AuditTrail::open("/var/log/belljar/audit.jsonl")));
//   sandbox = with_redaction(sandbox, std::make_shared<Redactor>(Redactor::from_environment(environment)));
//   sandbox = with_audit(sandbox, trail);              // outermost: also records what the others refuse
//   agent.use(sandbox);
//
// A decorator calls the inner sandbox and returns its result, unless its own task is to do otherwise. An
// outer one sees what an inner one refuses. Each is safe from any thread, as its inner sandbox is, and keeps
// it alive. None is a security boundary: a caller that holds the inner sandbox goes past them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "belljar/audit.h"
#include "belljar/redact.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"

namespace belljar {

using SandboxPtr = std::shared_ptr<Sandbox>;

// Forwards every call. For decorators of one's own: override what matters.
class SandboxDecorator : public Sandbox {
 public:
  explicit SandboxDecorator(SandboxPtr inner) : inner_(std::move(inner)) {}
  std::string_view backend() const noexcept override { return inner_->backend(); }
  const std::string& id() const noexcept override { return inner_->id(); }
  const std::string& workspace() const noexcept override { return inner_->workspace(); }
  std::vector<std::string> roots() const override { return inner_->roots(); }
  EnforcementReport enforcement() const override { return inner_->enforcement(); }
  Result<void> start(const CallOptions& options) override { return inner_->start(options); }
  Result<void> stop(const CallOptions& options) override { return inner_->stop(options); }
  Result<void> health(const CallOptions& options) override { return inner_->health(options); }
  Result<SandboxStats> stats(const CallOptions& options) override { return inner_->stats(options); }
  using Sandbox::exec;
  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override { return inner_->exec(command, options); }
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options) override {
    return inner_->spawn(command, options);
  }
  Result<std::string> read_file(const std::string& path, const ReadOptions& options) override {
    return inner_->read_file(path, options);
  }
  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override {
    return inner_->write_file(path, bytes, options);
  }
  Result<std::vector<FileInfo>> list(const std::string& path, const CallOptions& options) override {
    return inner_->list(path, options);
  }
  Result<FileInfo> stat(const std::string& path, const CallOptions& options) override { return inner_->stat(path, options); }
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) override { return inner_->make_dir(path, options); }
  Result<void> rename(const std::string& from, const std::string& to, const CallOptions& options) override {
    return inner_->rename(from, to, options);
  }
  Result<void> remove(const std::string& path, const RemoveOptions& options) override { return inner_->remove(path, options); }
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) override {
    return inner_->glob(pattern, options);
  }
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) override { return inner_->grep(text, options); }
  Result<std::unique_ptr<FileWatch>> watch(const std::string& path, const WatchOptions& options) override {
    return inner_->watch(path, options);
  }
  Result<void> set_network_rules(const NetworkRules& rules) override { return inner_->set_network_rules(rules); }
  Result<std::vector<txn::Change>> changes() override { return inner_->changes(); }
  Result<void> snapshot(const std::string& name) override { return inner_->snapshot(name); }
  Result<void> rollback(const std::string& snapshot) override { return inner_->rollback(snapshot); }

 protected:
  Sandbox& inner() const noexcept { return *inner_; }

 private:
  SandboxPtr inner_;
};

// --- audit
// -------------------------------------------------------------------------------------------------------------------------

// One call, told after it has come back, whether it succeeded, failed or was refused.
struct AuditEntry {
  std::string kind;     // "exec", "spawn", "readFile", "writeFile", "list", "stat", "makeDir", "rename", "remove", "glob", "grep",
                        // "watch", "setNetworkRules", "snapshot", "rollback", "start", "stop"
  std::string subject;  // the command (shell text, or argv joined by spaces), the path, the pattern, the rules
  std::string target;   // of rename: the new path; exec, spawn: "allowed HOST, ...", what is opened for it
  int exit_code = 0;    // exec, spawn
  std::string reason;   // exec, spawn: "exited", "timeout", ...
  std::uint64_t bytes = 0;  // exec, spawn: of stdout and stderr, dropped ones included; files: of the content
  bool append = false;      // writeFile
  std::chrono::microseconds duration{0};
  bool failed = false;  // an Error was returned, or a callback threw
  std::string error;    // its line; "...: callback threw" where a callback ended the call, which throws
  std::vector<Violation> violations;
};
// "[audit] exec `make test` exit_code=0 bytes=12 4ms".
std::string to_line(const AuditEntry& entry);

// `on_entry` is called on the thread of the call; what it throws comes out of that call. Without one, or below without a trail,
// nothing would be recorded: each call is refused (kInvalidArgument).
SandboxPtr with_audit(SandboxPtr inner, std::function<void(const AuditEntry&)> on_entry);

// Into a trail: "exec.start" before a command runs, "exec.end", "file" and "violation" afterwards, texts redacted. No record, no
// work: without room for the record a call is refused (kResourceExhausted) before anything happens; a call that was done while its
// record found no room returns its result, and further ones are refused until that record is in.
SandboxPtr with_audit(SandboxPtr inner, std::shared_ptr<AuditTrail> trail, std::shared_ptr<const Redactor> redactor = {});

// --- limits
// ------------------------------------------------------------------------------------------------------------------------

// At most `quota` bytes through write_file in all, whatever becomes of the files. Beyond: kResourceExhausted, nothing is written. A
// write that fails costs nothing.
SandboxPtr with_write_quota(SandboxPtr inner, Bytes quota);

struct Rate {
  double per_second = 10;  // not positive: `burst` calls in all, and no more
  double burst = 20;       // calls that may come at once; at least 1
  // A call waits this long for its turn, then it is refused: kResourceExhausted, saying when to try again. Negative counts as 0.
  std::chrono::milliseconds patience{0};
};
// Of exec, spawn and file calls together.
SandboxPtr with_rate_limit(SandboxPtr inner, Rate rate);

// --- rules
// -------------------------------------------------------------------------------------------------------------------------

struct CommandVerdict {
  bool allowed = true;
  std::string reason;  // why not
  std::string next;    // what to do instead
};
// What a command finds on its standard input: a shell runs it.
struct CommandInput {
  std::string bytes;
  bool open = false;  // more may come that nobody has seen: a pipe or a terminal
};
// Called from any thread, also at the same time; of commands that are one: of what every backend refuses nobody is asked (an empty
// argv, a NUL byte, a variable without a name). Made of what is called with (const Command&, const CommandInput&), or with a
// command alone by who looks at no input.
class CommandJudge {
 public:
  CommandJudge() = default;
  template <class Judge>
    requires std::is_invocable_r_v<CommandVerdict, const Judge&, const Command&, const CommandInput&>
  CommandJudge(Judge judge) : judge_(std::move(judge)) {}
  template <class Judge>
    requires(std::is_invocable_r_v<CommandVerdict, const Judge&, const Command&> && !std::is_same_v<Judge, CommandJudge>)
  CommandJudge(Judge judge) {
    if constexpr (std::is_same_v<Judge, std::function<CommandVerdict(const Command&)>>) {
      if (!judge) return;
    }
    judge_ = [judge = std::move(judge)](const Command& command, const CommandInput&) { return judge(command); };
  }

  explicit operator bool() const noexcept { return static_cast<bool>(judge_); }
  CommandVerdict operator()(const Command& command, const CommandInput& input = {}) const { return judge_(command, input); }

 private:
  std::function<CommandVerdict(const Command&, const CommandInput&)> judge_;
};
// exec and spawn are refused (kPermissionDenied) where the judge says so; without a judge always (kInvalidArgument). Rules guide:
// only the sandbox holds a command. For a policy's commands.allow and commands.deny, on parsed shell: belljar/command_rules.h.
SandboxPtr with_command_rules(SandboxPtr inner, CommandJudge judge);

// Calls that write are refused (kPermissionDenied). So are commands, since a decorator cannot see what they write, unless
// `only_reads` says that one only reads. To hold a command to reading use a policy with mode read-only.
SandboxPtr with_read_only(SandboxPtr inner, std::function<bool(const Command&)> only_reads = {});

// --- pretending
// --------------------------------------------------------------------------------------------------------------------

struct DryRunEntry {
  std::string kind;     // "exec", "spawn", "writeFile", "makeDir", "rename", "remove"
  std::string subject;  // the command or the path
  std::string target;   // of rename
  std::uint64_t bytes = 0;
};
// A rehearsal: commands are not executed and writes do not land; `on_entry` is told of each. Reads, list, stat, glob and grep see
// the writes as if they had landed. exec answers exit code 0, no output and the message "dry run: not executed". What the inner
// sandbox's policy would refuse is not known before it is tried. A start of the inner sandbox is forwarded: reads come from there.
// stop() forgets the writes. Not rehearsed, and refused by name: watch, set_network_rules, changes, snapshot and rollback.
SandboxPtr with_dry_run(SandboxPtr inner, std::function<void(const DryRunEntry&)> on_entry);

// --- outputs
// -----------------------------------------------------------------------------------------------------------------------

// Replaces secrets in the output of commands (results, callbacks, messages, refusals) and in the lines that
// grep finds. Output::total and omitted count the original bytes. read_file is left alone, for its bytes may
// be written back. A file with a match of grep is read through the inner sandbox (at most 16 MiB of it), so
// that a line of a private key is recognised as one; beyond that, and in files that cannot be read, each line
// is judged by itself. So is output: `head -2` of a key shows one line of it. A null redactor is one without
// values: well-known shapes are replaced all the same.
SandboxPtr with_redaction(SandboxPtr inner, std::shared_ptr<const Redactor> redactor);

struct CacheOptions {
  std::function<bool(const Command&)> pure;  // commands that only read, and answer alike as long as nothing was written
  std::chrono::milliseconds time_to_live{1000};
  std::size_t max_entries = 256;
  Bytes max_bytes{8U << 20};  // of all outputs
};
// Answers a pure command from its last result: same argv, cwd, env, stdin and options, nothing written through this sandbox since,
// by a call or by a command that is not pure, none of those running, and the time to live not over, which bounds what others may
// have changed: others, and what a command that is not pure left running in the background, which cannot be known. It counts from
// the command's start. An answer from here needs a sandbox that runs (its stat is asked). Results that were cut, refused, killed or
// failed to start are not kept. After a spawn nothing is cached until stop(): it may write at any time.
SandboxPtr with_result_cache(SandboxPtr inner, CacheOptions options);

// --- record and replay
// -------------------------------------------------------------------------------------------------------------

// Records every call and its result in a new file (mode 0600; existing: kAlreadyExists). A call whose record
// cannot be written fails (kResourceExhausted) after it was done. Recordings hold contents and outputs: put
// with_redaction() inside. watch and set_network_rules are not recorded, and therefore refused.
Result<SandboxPtr> with_recording(SandboxPtr inner, const std::string& file);
// A sandbox that executes nothing: it answers each call as the recording did, alike calls in their order. Errors: kNotFound,
// kDataLoss, the recording is damaged. A call that was not recorded is refused: kFailedPrecondition. Between start() and stop() it
// runs, as what was recorded did (one that ran already when the recording began runs from the beginning); stop() needs no record.
Result<SandboxPtr> make_replay(const std::string& file);

}  // namespace belljar
