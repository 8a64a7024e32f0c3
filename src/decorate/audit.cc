// Audit: to a callback, or to a trail that refuses work it cannot record.
//
// An audit trail is worth something only when no work escapes it, so the room for a record is
// reserved before the call (AuditTrail::reserve) and a call that finds none is refused. The end of
// a call can fail to be written all the same. Such a record stays owed, in order, and the next call
// pays first: it is refused as long as the debt cannot be written. stop() is the one call that is
// never refused, because a sandbox must end whatever the disk says.
//
// A spawned command has a start record at once and an end record later, which carries the number of
// the start. The end is told by wait(), or by the handle's destructor when nobody waited. told_ is
// exchanged atomically, since two threads may wait for one command and only one record is due. A
// forked child's copy of the handle tells nothing (is_ours): the command is the parent's.
#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <tuple>

#include "base/format.h"
#include "base/rfc3339.h"
#include "belljar/decorators.h"
#include "decorate/call.h"

namespace belljar {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::microseconds since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
}

// Where entries go.
class Recorder {
 public:
  Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  virtual ~Recorder() = default;
  // Before the call: an Error refuses it. Returns the number that done() gets.
  virtual Result<std::int64_t> begin(const AuditEntry& entry) = 0;
  virtual void done(std::int64_t number, const AuditEntry& entry) = 0;
};

class ToCallback final : public Recorder {
 public:
  explicit ToCallback(std::function<void(const AuditEntry&)> on_entry) : on_entry_(std::move(on_entry)) {}
  Result<std::int64_t> begin(const AuditEntry&) override { return 0; }
  void done(std::int64_t, const AuditEntry& entry) override { on_entry_(entry); }

 private:
  std::function<void(const AuditEntry&)> on_entry_;
};

// Without a place to record to. No record, no work.
class ToNowhere final : public Recorder {
 public:
  explicit ToNowhere(const char* lacks) : lacks_(lacks) {}
  Result<std::int64_t> begin(const AuditEntry&) override {
    return Error(Code::kInvalidArgument, "cannot audit the sandbox")
        .reason(format("with_audit was given no {}", lacks_))
        .next("give it one, or leave the decorator out");
  }
  void done(std::int64_t, const AuditEntry&) override {}

 private:
  const char* lacks_;
};

bool is_command(const AuditEntry& entry) { return entry.kind == "exec" || entry.kind == "spawn"; }

// The kind of its record in a trail.
std::string_view record_kind(const AuditEntry& entry) {
  if (is_command(entry)) return "exec.end";
  constexpr std::string_view kOfSandbox[] = {"start", "stop", "setNetworkRules", "snapshot", "rollback"};
  return std::ranges::find(kOfSandbox, entry.kind) != std::end(kOfSandbox) ? "sandbox" : "file";
}

class ToTrail final : public Recorder {
 public:
  ToTrail(std::shared_ptr<AuditTrail> trail, std::shared_ptr<const Redactor> redactor, std::string sandbox)
      : trail_(std::move(trail)), redactor_(std::move(redactor)), sandbox_(std::move(sandbox)) {
    if (!redactor_) redactor_ = std::make_shared<Redactor>();
  }

  Result<std::int64_t> begin(const AuditEntry& entry) override {
    BELLJAR_CHECK(catch_up());
    BELLJAR_CHECK(trail_->reserve());
    if (!is_command(entry)) return -1;
    return static_cast<std::int64_t>(BELLJAR_TRY(trail_->append("exec.start", subject_of(entry))));
  }

  void done(std::int64_t number, const AuditEntry& entry) override {
    const std::lock_guard guard(mutex_);
    for (const Violation& violation : entry.violations) owed_.push_back({"violation", fields_of(violation, number)});
    owed_.push_back({std::string(record_kind(entry)), fields_of(entry, number)});
    std::ignore = pay();  // what finds no room stays owed, and refuses the next call
  }

 private:
  struct Owed {
    std::string kind;
    AuditFields fields;
  };

  Result<void> catch_up() {
    const std::lock_guard guard(mutex_);
    return pay();
  }

  Result<void> pay() {
    while (!owed_.empty()) {
      BELLJAR_TRY(trail_->append(owed_.front().kind, owed_.front().fields));
      owed_.pop_front();
    }
    return {};
  }

  AuditFields subject_of(const AuditEntry& entry) const {
    AuditFields fields;
    fields.text("sandbox", sandbox_)
        .text("call", entry.kind)
        .text("subject", is_command(entry) ? redactor_->command(entry.subject) : (*redactor_)(entry.subject));
    if (!entry.target.empty()) fields.text("target", (*redactor_)(entry.target));
    return fields;
  }

  AuditFields fields_of(const AuditEntry& entry, std::int64_t number) const {
    AuditFields fields = subject_of(entry);
    if (number >= 0) fields.number("start", number);
    if (is_command(entry) && !entry.failed) fields.number("exit_code", entry.exit_code).text("reason", entry.reason);
    fields.number("bytes", static_cast<std::int64_t>(entry.bytes)).number("duration_us", entry.duration.count());
    if (entry.kind == "writeFile") fields.boolean("append", entry.append);
    fields.boolean("failed", entry.failed);
    if (entry.failed) fields.text("error", (*redactor_)(entry.error));
    return fields;
  }

  AuditFields fields_of(const Violation& violation, std::int64_t number) const {
    return AuditFields()
        .text("sandbox", sandbox_)
        .number("start", number)
        .text("acted", rfc3339(violation.time))
        .text("operation", violation.operation)
        .text("target", (*redactor_)(violation.target))
        .text("rule", violation.rule)
        .text("program", violation.program)
        .number("errno", violation.errnum)
        .number("count", static_cast<std::int64_t>(violation.count));
  }

  std::shared_ptr<AuditTrail> trail_;
  std::shared_ptr<const Redactor> redactor_;
  std::string sandbox_;
  std::mutex mutex_;
  std::deque<Owed> owed_;  // guarded by mutex_
};

void take(AuditEntry& entry, const ExecResult& result) {
  entry.exit_code = result.exit_code;
  entry.reason = to_string(result.reason);
  entry.bytes = result.out.total + result.err.total;
  entry.violations = result.violations;
}

// Tells its end when somebody waited for it, or when the handle goes.
class AuditedProcess final : public decorate::ForwardedProcess {
 public:
  AuditedProcess(std::unique_ptr<Process> inner, std::shared_ptr<Recorder> recorder, AuditEntry entry, std::int64_t number)
      : ForwardedProcess(std::move(inner)), recorder_(std::move(recorder)), entry_(std::move(entry)), number_(number) {}
  ~AuditedProcess() override {
    if (!is_ours()) return;
    try {
      std::ignore = AuditedProcess::wait(std::chrono::milliseconds(0));
      end();
      ExecResult unknown;
      unknown.reason = detached() ? Reason::kExited : Reason::kCancelled;
      tell(unknown);
    } catch (...) {  // a callback that throws must not end the program from a destructor
    }
  }

  Result<std::optional<ExecResult>> wait(std::optional<std::chrono::milliseconds> patience) override {
    try {
      auto result = inner().wait(patience);
      if (result && *result) tell(**result);
      return result;
    } catch (...) {
      tell_thrown();
      throw;
    }
  }

 private:
  void tell(const ExecResult& result) {
    if (told_.exchange(true)) return;
    take(entry_, result);
    if (detached() && result.out.total == 0) entry_.reason = "detached";
    entry_.duration = since(start_);
    recorder_->done(number_, entry_);
  }

  void tell_thrown() {
    if (told_.exchange(true)) return;
    entry_.failed = true;
    entry_.error = decorate::callback_threw().line();
    entry_.duration = since(start_);
    recorder_->done(number_, entry_);
  }

  std::shared_ptr<Recorder> recorder_;
  AuditEntry entry_;
  std::int64_t number_;
  Clock::time_point start_ = Clock::now();
  std::atomic<bool> told_{false};
};

class Audited final : public SandboxDecorator {
 public:
  Audited(SandboxPtr inner, std::shared_ptr<Recorder> recorder)
      : SandboxDecorator(std::move(inner)), recorder_(std::move(recorder)) {}

  Result<void> start(const CallOptions& options) override {
    return record({.kind = "start", .subject = id()}, [&] { return inner().start(options); });
  }
  Result<void> stop(const CallOptions& options) override {
    // Never refused: a sandbox must end whatever the disk says.
    AuditEntry entry{.kind = "stop", .subject = id()};
    const auto begun = Clock::now();
    auto result = inner().stop(options);
    finish(-1, entry, begun, result);
    return result;
  }
  using Sandbox::exec;
  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override {
    return record(
        {.kind = "exec", .subject = decorate::text_of(command), .target = decorate::text_of(options.allowed_domains, "allowed ")},
        [&] { return inner().exec(command, options); }, [](AuditEntry& entry, const ExecResult& result) { take(entry, result); });
  }
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options) override {
    AuditEntry entry{
        .kind = "spawn", .subject = decorate::text_of(command), .target = decorate::text_of(options.allowed_domains, "allowed ")};
    const std::int64_t number = BELLJAR_TRY(recorder_->begin(entry));
    const auto begun = Clock::now();
    auto process = inner().spawn(command, options);
    if (!process) {
      finish(number, entry, begun, process);
      return process;
    }
    return std::unique_ptr<Process>(std::make_unique<AuditedProcess>(*std::move(process), recorder_, std::move(entry), number));
  }
  Result<std::string> read_file(const std::string& path, const ReadOptions& options) override {
    return record(
        {.kind = "readFile", .subject = path}, [&] { return inner().read_file(path, options); },
        [](AuditEntry& entry, const std::string& bytes) { entry.bytes = bytes.size(); });
  }
  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override {
    return record({.kind = "writeFile", .subject = path, .bytes = bytes.size(), .append = options.how == WriteMode::kAppend},
                  [&] { return inner().write_file(path, bytes, options); });
  }
  Result<std::vector<FileInfo>> list(const std::string& path, const CallOptions& options) override {
    return record({.kind = "list", .subject = path}, [&] { return inner().list(path, options); });
  }
  Result<FileInfo> stat(const std::string& path, const CallOptions& options) override {
    return record({.kind = "stat", .subject = path}, [&] { return inner().stat(path, options); });
  }
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) override {
    return record({.kind = "makeDir", .subject = path}, [&] { return inner().make_dir(path, options); });
  }
  Result<void> rename(const std::string& from, const std::string& to, const CallOptions& options) override {
    return record({.kind = "rename", .subject = from, .target = to}, [&] { return inner().rename(from, to, options); });
  }
  Result<void> remove(const std::string& path, const RemoveOptions& options) override {
    return record({.kind = "remove", .subject = path}, [&] { return inner().remove(path, options); });
  }
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) override {
    return record({.kind = "glob", .subject = pattern}, [&] { return inner().glob(pattern, options); });
  }
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) override {
    return record({.kind = "grep", .subject = text}, [&] { return inner().grep(text, options); });
  }
  Result<std::unique_ptr<FileWatch>> watch(const std::string& path, const WatchOptions& options) override {
    return record({.kind = "watch", .subject = path}, [&] { return inner().watch(path, options); });
  }
  Result<void> set_network_rules(const NetworkRules& rules) override {
    return record({.kind = "setNetworkRules", .subject = decorate::text_of(rules)},
                  [&] { return inner().set_network_rules(rules); });
  }
  Result<void> snapshot(const std::string& name) override {
    return record({.kind = "snapshot", .subject = name}, [&] { return inner().snapshot(name); });
  }
  Result<void> rollback(const std::string& snapshot) override {
    return record({.kind = "rollback", .subject = snapshot}, [&] { return inner().rollback(snapshot); });
  }

 private:
  struct Nothing {
    template <class T>
    void operator()(AuditEntry&, const T&) const {}
  };

  template <class Call, class Fill = Nothing>
  auto record(AuditEntry entry, Call call, Fill fill = {}) -> decltype(call()) {
    const std::int64_t number = BELLJAR_TRY(recorder_->begin(entry));
    const auto begun = Clock::now();
    auto result = [&] {
      try {
        return call();
      } catch (...) {
        finish(number, entry, begun, decltype(call())(decorate::callback_threw()));
        throw;
      }
    }();
    using Value = typename decltype(result)::value_type;
    if constexpr (!std::is_void_v<Value>) {
      if (result) fill(entry, *result);
    }
    finish(number, entry, begun, result);
    return result;
  }

  template <class R>
  void finish(std::int64_t number, AuditEntry& entry, Clock::time_point begun, const R& result) {
    entry.duration = since(begun);
    entry.failed = !result;
    if (!result) entry.error = result.error().line();
    recorder_->done(number, entry);
  }

  std::shared_ptr<Recorder> recorder_;
};

}  // namespace

std::string to_line(const AuditEntry& entry) {
  std::string line = format("[audit] {} {}", entry.kind, quoted(entry.subject));
  if (!entry.target.empty()) line += format(" to {}", quoted(entry.target));
  if (is_command(entry) && !entry.failed) line += format(" exit_code={}", entry.exit_code);
  line += format(" bytes={} {}", entry.bytes, to_string(std::chrono::duration_cast<std::chrono::milliseconds>(entry.duration)));
  if (entry.append) line += " append";
  if (entry.failed) line += " failed: " + escaped(entry.error);
  return line;
}

SandboxPtr with_audit(SandboxPtr inner, std::function<void(const AuditEntry&)> on_entry) {
  if (!on_entry) return std::make_shared<Audited>(std::move(inner), std::make_shared<ToNowhere>("callback"));
  return std::make_shared<Audited>(std::move(inner), std::make_shared<ToCallback>(std::move(on_entry)));
}

SandboxPtr with_audit(SandboxPtr inner, std::shared_ptr<AuditTrail> trail, std::shared_ptr<const Redactor> redactor) {
  if (trail == nullptr) return std::make_shared<Audited>(std::move(inner), std::make_shared<ToNowhere>("trail"));
  auto recorder = std::make_shared<ToTrail>(std::move(trail), std::move(redactor), inner->id());
  return std::make_shared<Audited>(std::move(inner), std::move(recorder));
}

}  // namespace belljar
