// Command rules and read-only.
#include "base/format.h"
#include "belljar/decorators.h"
#include "decorate/call.h"
#include "policy/check_command.h"

namespace belljar {
namespace {

// Asks before every command.
class Checked : public SandboxDecorator {
 public:
  using Sandbox::exec;
  using SandboxDecorator::SandboxDecorator;
  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override {
    BELLJAR_CHECK(policy::check_command(command));  // else whoever judges is asked about no command at all
    BELLJAR_CHECK(check(command, {.bytes = options.stdin_bytes}));
    return inner().exec(command, options);
  }
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options) override {
    BELLJAR_CHECK(policy::check_command(command));
    BELLJAR_CHECK(check(command, {.bytes = {}, .open = options.terminal || options.input == SpawnInput::kPipe}));
    return inner().spawn(command, options);
  }

 private:
  virtual Result<void> check(const Command& command, const CommandInput& input) const = 0;
};

class Ruled final : public Checked {
 public:
  Ruled(SandboxPtr inner, CommandJudge judge) : Checked(std::move(inner)), judge_(std::move(judge)) {}

 private:
  Result<void> check(const Command& command, const CommandInput& input) const override {
    if (!judge_)
      return Error(Code::kInvalidArgument, format("cannot judge the command {}", quoted(decorate::text_of(command))))
          .reason("with_command_rules was given no judge")
          .next("give it one, or leave the decorator out");
    CommandVerdict verdict = judge_(command, input);
    if (verdict.allowed) return {};
    return Error(Code::kPermissionDenied, format("the command {} is not allowed", quoted(decorate::text_of(command))))
        .reason(std::move(verdict.reason))
        .next(std::move(verdict.next));
  }

  CommandJudge judge_;
};

class ReadOnly final : public Checked {
 public:
  ReadOnly(SandboxPtr inner, std::function<bool(const Command&)> only_reads)
      : Checked(std::move(inner)), only_reads_(std::move(only_reads)) {}
  Result<void> write_file(const std::string& path, std::string_view, const WriteOptions&) override { return refuse("write", path); }
  Result<void> make_dir(const std::string& path, const MakeDirOptions&) override { return refuse("make", path); }
  Result<void> rename(const std::string& from, const std::string&, const CallOptions&) override { return refuse("rename", from); }
  Result<void> remove(const std::string& path, const RemoveOptions&) override { return refuse("remove", path); }
  Result<void> rollback(const std::string&) override {
    return Error(Code::kPermissionDenied, "cannot roll back").reason("this sandbox is read-only");
  }

 private:
  static Error refuse(std::string_view doing, const std::string& path) {
    return Error(Code::kPermissionDenied, format("cannot {} {}", doing, quoted(path))).reason("this sandbox is read-only");
  }
  Result<void> check(const Command& command, const CommandInput&) const override {
    if (only_reads_ && only_reads_(command)) return {};
    return Error(Code::kPermissionDenied, format("cannot run {}", quoted(decorate::text_of(command))))
        .reason("this sandbox is read-only, and the command is not known to only read")
        .next("for commands that may run but not write: a policy with mode read-only");
  }

  std::function<bool(const Command&)> only_reads_;
};

}  // namespace

SandboxPtr with_command_rules(SandboxPtr inner, CommandJudge judge) {
  return std::make_shared<Ruled>(std::move(inner), std::move(judge));
}

SandboxPtr with_read_only(SandboxPtr inner, std::function<bool(const Command&)> only_reads) {
  return std::make_shared<ReadOnly>(std::move(inner), std::move(only_reads));
}

}  // namespace belljar
