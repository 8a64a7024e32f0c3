// Dry run: commands are told and not executed, writes are kept in memory (dry_run_files.h).
//
// Each pretended call is first checked as the real one would be, and told to the observer only when
// it passed: a rehearsal that passes more than the real thing is worth little. Calls whose effect
// cannot be shown (watches, snapshots, rules for hosts) are refused and not pretended. glob and
// grep are asked of the inner sandbox; then the names that the overlay changed are taken out and
// the overlay's own added.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/format.h"
#include "belljar/cancel.h"
#include "belljar/command.h"
#include "belljar/decorators.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/files.h"
#include "belljar/process.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/txn.h"
#include "belljar/watch.h"
#include "command/ending.h"
#include "command/process.h"
#include "decorate/call.h"
#include "decorate/dry_run_files.h"
#include "policy/check_command.h"
#include "policy/domains.h"

namespace belljar {
namespace {

constexpr const char* kNotExecuted = "dry run: not executed";

ExecResult not_executed(const CancelToken& cancel) {
  if (cancel.cancelled()) return command::cancelled_before_start();
  ExecResult result;
  result.message = kNotExecuted;
  return result;
}

class DryRun final : public SandboxDecorator {
 public:
  DryRun(SandboxPtr inside, std::function<void(const DryRunEntry&)> on_entry)
      : SandboxDecorator(std::move(inside)), on_entry_(std::move(on_entry)), files_(inner()) {}

  Result<void> stop(const CallOptions& options) override {
    BELLJAR_CHECK(options.check("cannot stop the sandbox"));  // nothing is forgotten
    {
      const std::lock_guard guard(mutex_);
      files_.forget();
    }
    return inner().stop(options);
  }
  using Sandbox::exec;
  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override {
    BELLJAR_CHECK(check(command, options.timeout, options.allowed_domains));
    if (!options.cancel.cancelled()) tell({.kind = "exec", .subject = decorate::text_of(command)});
    return not_executed(options.cancel);
  }
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options) override {
    BELLJAR_CHECK(check(command, options.timeout, options.allowed_domains));
    if (!options.cancel.cancelled()) tell({.kind = "spawn", .subject = decorate::text_of(command)});
    return command::make_ended_process(not_executed(options.cancel), kNotExecuted);
  }
  Result<std::string> read_file(const std::string& path, const ReadOptions& options) override {
    const std::lock_guard guard(mutex_);
    BELLJAR_CHECK(look_in_time(options.call));
    const std::string real = BELLJAR_TRY(files_.resolve(path, true));
    return files_.read(real, options);
  }
  Result<std::vector<FileInfo>> list(const std::string& path, const CallOptions& options) override {
    const std::lock_guard guard(mutex_);
    BELLJAR_CHECK(look_in_time(options));
    const std::string real = BELLJAR_TRY(files_.resolve(path, true));
    return files_.list(real);
  }
  Result<FileInfo> stat(const std::string& path, const CallOptions& options) override {
    const std::lock_guard guard(mutex_);
    BELLJAR_CHECK(look_in_time(options));
    const std::string real = BELLJAR_TRY(files_.resolve(path, false));
    FileInfo info = BELLJAR_TRY(files_.look(real));
    info.path = path;
    return info;
  }
  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override {
    return pretend({.kind = "writeFile", .subject = path, .bytes = bytes.size()}, options.call,
                   [&] { return files_.write(path, bytes, options); });
  }
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) override {
    return pretend({.kind = "makeDir", .subject = path}, options.call, [&] { return files_.make_dir(path, options); });
  }
  Result<void> rename(const std::string& from, const std::string& to, const CallOptions& options) override {
    return pretend({.kind = "rename", .subject = from, .target = to}, options, [&] { return files_.rename(from, to); });
  }
  Result<void> remove(const std::string& path, const RemoveOptions& options) override {
    return pretend({.kind = "remove", .subject = path}, options.call, [&] { return files_.remove(path, options.depth); });
  }
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) override {
    GlobResult result = BELLJAR_TRY(inner().glob(pattern, options));
    const std::lock_guard guard(mutex_);
    std::erase_if(result.files, [&](const FileInfo& file) { return !files_.is_as_inside(file.path); });
    files_.use(CallOptions::within(options.timeout, options.cancel));
    for (const std::string& name : files_.written(pattern)) result.files.push_back(BELLJAR_TRY(files_.look(name)));
    std::ranges::sort(result.files, {}, &FileInfo::path);
    if (result.files.size() > options.max_results) result.files.resize(options.max_results), result.complete = false;
    return result;
  }
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) override {
    GrepResult result = BELLJAR_TRY(inner().grep(text, options));
    const std::lock_guard guard(mutex_);
    std::erase_if(result.matches, [&](const GrepMatch& match) { return !files_.is_as_inside(match.path); });
    files_.use(CallOptions::within(options.walk.timeout, options.walk.cancel));
    for (const std::string& name : files_.written(options.files)) BELLJAR_CHECK(search(name, text, options.letters, result));
    std::ranges::stable_sort(result.matches, {}, &GrepMatch::path);
    if (result.matches.size() > options.walk.max_results) result.matches.resize(options.walk.max_results), result.complete = false;
    return result;
  }
  Result<std::unique_ptr<FileWatch>> watch(const std::string& path, const WatchOptions&) override {
    return no_rehearsal(format("watch {}", quoted(path)), "what is pretended changes no file");
  }
  Result<void> set_network_rules(const NetworkRules&) override {
    return no_rehearsal("change the hosts that may be reached", "nothing runs that could reach them");
  }
  Result<std::vector<txn::Change>> changes() override {
    return no_rehearsal("list the changes", "what is pretended is in no layer");
  }
  Result<void> snapshot(const std::string&) override { return no_rehearsal("take a snapshot", "what is pretended is in no layer"); }
  Result<void> rollback(const std::string&) override { return no_rehearsal("roll back", "what is pretended is in no layer"); }

 private:
  static Error no_rehearsal(std::string_view doing, std::string_view why) {
    return Error(Code::kUnimplemented, format("cannot {} in a dry run", doing))
        .reason(std::string(why))
        .next("call the sandbox inside of it, or leave with_dry_run out");
  }
  Result<void> check(const Command& command, std::optional<std::chrono::milliseconds> timeout,
                     const std::vector<std::string>& allowed_domains) {
    BELLJAR_CHECK(policy::check_command(command));
    BELLJAR_CHECK(policy::check_timeout(timeout));
    for (const std::string& rule : allowed_domains) BELLJAR_TRY(policy::parse_domain_rule(rule));
    BELLJAR_CHECK(inner().stat("."));  // it runs
    if (command.cwd.empty()) return {};
    const std::lock_guard guard(mutex_);
    files_.use({});
    const auto real = files_.resolve(command.cwd, true);
    if (!real && real.error().what().starts_with("path escapes"))
      return Error(Code::kInvalidArgument, format("workdir escapes workspace: {}", escaped(command.cwd)));
    if (!real) return real.error();
    if (*real == ".") return {};
    const FileInfo info = BELLJAR_TRY(files_.look(*real));
    if (info.type != FileType::kDirectory)
      return Error(Code::kFailedPrecondition, format("cannot use {} as working directory", quoted(command.cwd)))
          .reason("it is no directory");
    return {};
  }

  // With mutex_ held.
  Result<void> look_in_time(const CallOptions& options) {
    files_.use(options);
    return options.check("cannot look at the files of a dry run");
  }
  template <class Act>
  Result<void> pretend(const DryRunEntry& entry, const CallOptions& options, Act act) {
    BELLJAR_CHECK(inner().stat(".", options));  // it runs
    {
      const std::lock_guard guard(mutex_);
      files_.use(options);
      BELLJAR_CHECK(act());
    }
    tell(entry);
    return {};
  }
  void tell(const DryRunEntry& entry) const {
    if (on_entry_) on_entry_(entry);
  }

  Result<void> search(const std::string& name, const std::string& text, Case letters, GrepResult& result) {
    const FileInfo info = BELLJAR_TRY(files_.look(name));
    if (info.type != FileType::kFile) return {};
    const auto lower = [&](const std::string& line) { return letters == Case::kIgnoreAscii ? lower_case(line) : line; };
    const std::string bytes = BELLJAR_TRY(files_.read(name, {}));
    const std::string wanted = lower(text);
    std::uint64_t number = 0;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
      ++number;
      const std::string line = bytes.substr(at, end - at);
      if (lower(line).find(wanted) != std::string::npos) result.matches.push_back({name, number, line.substr(0, 1000)});
      at = end + 1;
    }
    return {};
  }

  std::function<void(const DryRunEntry&)> on_entry_;
  std::mutex mutex_;
  decorate::DryRunFiles files_;  // guarded by mutex_
};

}  // namespace

SandboxPtr with_dry_run(SandboxPtr inner, std::function<void(const DryRunEntry&)> on_entry) {
  return std::make_shared<DryRun>(std::move(inner), std::move(on_entry));
}

}  // namespace belljar
