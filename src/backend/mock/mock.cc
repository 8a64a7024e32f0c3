// In-memory files and canned commands, behind one mutex.
//
// Each call is logged before anything else is decided about it, so a test sees calls that failed as well. An
// injected failure comes next, before the state of the sandbox is asked. The callbacks and answers of the test
// run without the mutex, since they may call the mock again.
//
// Of the outputs that fit a command the longest wins, and of the answers the one that was set last, so a test
// sets the general case first and exceptions after it.
#include "belljar/mock.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/mock/tree.h"
#include "base/format.h"
#include "base/wildcard.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/files.h"
#include "belljar/process.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "policy/check_command.h"
#include "policy/paths.h"

namespace belljar {
namespace {

using std::chrono::milliseconds;

// `*` any bytes, `?` one.
bool fits(std::string_view pattern, std::string_view text) noexcept {
  return wildcard_match(pattern, text, [&](std::size_t at, char c, std::size_t& next) {
    next = at + 1;
    return pattern[at] == '?' || pattern[at] == c;
  });
}

std::string text_of(const Command& command) {
  const auto& argv = command.argv;
  if (argv.size() == 3 && argv[1] == "-c" && (argv[0] == "/bin/sh" || argv[0] == "sh")) return argv[2];
  std::string text;
  for (const std::string& word : argv) text += (text.empty() ? "" : " ") + word;
  return text;
}

class Mock final : public MockSandbox {
 public:
  explicit Mock(const std::string& workspace) : workspace_(policy::normal(workspace)), id_("mock"), files_(workspace_) {}

  std::string_view backend() const noexcept override { return "mock"; }
  const std::string& id() const noexcept override { return id_; }
  const std::string& workspace() const noexcept override { return workspace_; }
  EnforcementReport enforcement() const override {
    return {{"mode", "mock", "", Enforced::kNone, "the mock backend executes nothing and holds nothing", true}};
  }

  Result<void> start(const CallOptions& options) override {
    const std::lock_guard lock(mutex_);
    BELLJAR_CHECK(enter("start", ""));
    if (running_) return log_failed(Error(Code::kFailedPrecondition, "cannot start the sandbox").reason("it runs already"));
    BELLJAR_CHECK(go_on(options));
    running_ = true;
    return {};
  }
  Result<void> stop(const CallOptions& options) override {
    const std::lock_guard lock(mutex_);
    BELLJAR_CHECK(enter("stop", ""));
    BELLJAR_CHECK(go_on(options));
    running_ = false;
    return {};
  }
  Result<void> health(const CallOptions& options) override {
    const std::lock_guard lock(mutex_);
    BELLJAR_CHECK(enter("health", ""));
    if (!running_) return log_failed(Error(Code::kUnavailable, "the sandbox does not run"));
    return go_on(options);
  }
  Result<SandboxStats> stats(const CallOptions& options) override {
    const std::lock_guard lock(mutex_);
    BELLJAR_CHECK(enter_running("stats", ""));
    BELLJAR_CHECK(go_on(options));
    return SandboxStats{{}, {}, 0, execs_, written_};
  }

  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override {
    const std::string text = text_of(command);
    std::optional<Answer> answer;
    milliseconds delay{0};
    {
      const std::lock_guard lock(mutex_);
      BELLJAR_CHECK(enter_running("exec", text));
      if (const auto fine = policy::check_command(command); !fine) return log_failed(fine.error());
      if (const auto fine = policy::check_timeout(options.timeout); !fine) return log_failed(fine.error());
      if (const auto fine = files_.check_cwd(command.cwd); !fine) return log_failed(fine.error());
      ++execs_;
      answer = find_answer(text);
      delay = find_delay(text);
    }
    if (options.cancel.cancelled()) return ended(Reason::kCancelled, 143, "cancelled by the caller");
    const milliseconds timeout = std::min(options.timeout.value_or(kShortTask), milliseconds(std::chrono::minutes(5)));
    if (delay > timeout) return ended(Reason::kTimeout, 124, timeout_message(timeout));
    if (!answer) {
      ExecResult result = ended(Reason::kExited, 127, "");
      result.err.bytes = format("mock: no output is set for {}\n", quoted(text));
      result.err.total = result.err.bytes.size();
      return result;
    }
    ExecResult result = (*answer)(command, options);
    result.duration = delay;
    cap(result.out, options);
    cap(result.err, options);
    if (options.on_stdout && !result.out.bytes.empty()) options.on_stdout(result.out.bytes);
    if (options.on_stderr && !result.err.bytes.empty()) options.on_stderr(result.err.bytes);
    return result;
  }
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions&) override {
    const std::lock_guard lock(mutex_);
    BELLJAR_CHECK(enter_running("spawn", text_of(command)));
    return log_failed(
        Error(Code::kUnimplemented, "cannot spawn a process").reason("the mock backend has none").next("use exec, or local"));
  }

  Result<void> set_network_rules(const NetworkRules& rules) override {
    const std::lock_guard lock(mutex_);
    std::string hosts;
    for (const std::string& host : rules.allowed_domains) hosts += (hosts.empty() ? "" : " ") + host;
    return enter_running("set_network_rules", hosts);
  }

  Result<std::string> read_file(const std::string& path, const ReadOptions& options) override {
    return call("read_file", path, options.call, [&] { return files_.read(path, options); });
  }
  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override {
    return call("write_file", path, options.call, [&]() -> Result<void> {
      BELLJAR_CHECK(files_.write(path, bytes, options));
      written_ += bytes.size();
      return {};
    });
  }
  Result<std::vector<FileInfo>> list(const std::string& path, const CallOptions& options) override {
    return call("list", path, options, [&] { return files_.list(path); });
  }
  Result<FileInfo> stat(const std::string& path, const CallOptions& options) override {
    return call("stat", path, options, [&] { return files_.stat(path); });
  }
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) override {
    return call("make_dir", path, options.call, [&] { return files_.make_dir(path, options); });
  }
  Result<void> rename(const std::string& from, const std::string& to, const CallOptions& options) override {
    return call("rename", from, options, [&] { return files_.rename(from, to); });
  }
  Result<void> remove(const std::string& path, const RemoveOptions& options) override {
    return call("remove", path, options.call, [&] { return files_.remove(path, options); });
  }
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) override {
    return call("glob", pattern, {}, [&] { return files_.glob(pattern, options); });
  }
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) override {
    return call("grep", text, {}, [&] { return files_.grep(text, options); });
  }

  void set_output(std::string command, std::string out, int exit_code, std::string err) override {
    const std::lock_guard lock(mutex_);
    ExecResult result;
    result.exit_code = exit_code;
    result.out = {out, out.size(), 0};
    result.err = {err, err.size(), 0};
    exact_[std::move(command)] = std::move(result);
  }
  void set_answer(std::string pattern, Answer answer) override {
    const std::lock_guard lock(mutex_);
    answers_.emplace_back(std::move(pattern), std::move(answer));
  }
  void set_delay(std::string command, milliseconds delay) override {
    const std::lock_guard lock(mutex_);
    delays_[std::move(command)] = delay;
  }
  void fail_next(std::string method, Error error, int times) override {
    const std::lock_guard lock(mutex_);
    if (times > 0) failures_.push_back({std::move(method), std::move(error), times});
  }
  std::vector<MockCall> calls() const override {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  struct Failure {
    std::string method;
    Error error;
    int times = 0;
  };

  static ExecResult ended(Reason reason, int code, std::string message) {
    ExecResult result;
    result.reason = reason;
    result.exit_code = code;
    result.message = std::move(message);
    return result;
  }
  static void cap(Output& output, const ExecOptions& options) {
    const std::uint64_t most = options.output_bytes.value_or(200'000);
    output.total = output.bytes.size();
    if (output.total > most) output.bytes.resize(static_cast<std::size_t>(most));
    output.omitted = output.total - output.bytes.size();
  }

  Error log_failed(Error error) {
    calls_.back().failed = true;
    return error;
  }
  // Logs the call, and lets an injected failure have its way.
  Result<void> enter(const std::string& method, const std::string& subject) {
    calls_.push_back({method, subject, false});
    for (auto failure = failures_.begin(); failure != failures_.end(); ++failure) {
      if (failure->method != "*" && failure->method != method) continue;
      Error error = failure->error;
      if (--failure->times <= 0) failures_.erase(failure);
      return log_failed(std::move(error));
    }
    return {};
  }
  Result<void> enter_running(const std::string& method, const std::string& subject) {
    BELLJAR_CHECK(enter(method, subject));
    if (!running_)
      return log_failed(
          Error(Code::kFailedPrecondition, "the sandbox does not run").reason("it was not started, or it was stopped"));
    return {};
  }

  // Nothing here waits: whether the call was over when it came.
  Result<void> go_on(const CallOptions& options) {
    auto over = options.check(format("cannot do {}", calls_.back().method));
    if (!over) return log_failed(std::move(over).error());
    return {};
  }

  // A file call: logged, and with it whether it failed.
  template <class Work>
  auto call(const std::string& method, const std::string& subject, const CallOptions& options, Work work) -> decltype(work()) {
    const std::lock_guard lock(mutex_);
    BELLJAR_CHECK(enter_running(method, subject));
    BELLJAR_CHECK(go_on(options));
    auto result = work();
    if (!result) calls_.back().failed = true;
    return result;
  }

  std::optional<Answer> find_answer(const std::string& text) const {
    const ExecResult* best = nullptr;
    std::size_t length = 0;
    for (const auto& [command, result] : exact_) {
      const bool whole = text == command;
      if ((whole || text.starts_with(command + " ")) && command.size() >= length) best = &result, length = command.size();
    }
    if (best != nullptr) return [result = *best](const Command&, const ExecOptions&) { return result; };
    for (auto at = answers_.rbegin(); at != answers_.rend(); ++at) {
      if (fits(at->first, text)) return at->second;
    }
    return {};
  }
  milliseconds find_delay(const std::string& text) const {
    const auto found = delays_.find(text);
    return found == delays_.end() ? milliseconds(0) : found->second;
  }

  std::string workspace_, id_;
  mutable std::mutex mutex_;
  // all guarded by mutex_
  bool running_ = false;
  mock::Tree files_;
  std::map<std::string, ExecResult> exact_;
  std::vector<std::pair<std::string, Answer>> answers_;
  std::map<std::string, milliseconds> delays_;
  std::vector<Failure> failures_;
  std::vector<MockCall> calls_;
  std::uint64_t execs_ = 0, written_ = 0;
};

}  // namespace

std::shared_ptr<MockSandbox> MockSandbox::create(const std::string& workspace) { return std::make_shared<Mock>(workspace); }

}  // namespace belljar
