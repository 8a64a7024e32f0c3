// Decorators on the mock backend: what each does, and that it leaves the rest alone.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <tuple>

#include "belljar/decorators.h"
#include "belljar/events.h"
#include "belljar/mock.h"
#include "belljar/txn.h"
#include "support/as_user.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;
using test::TempDir;

std::shared_ptr<MockSandbox> started_mock() {
  auto mock = MockSandbox::create();
  EXPECT_TRUE(mock->start());
  mock->set_output("ls", "a\nb\n");
  mock->set_output("fail", "out", 3, "err");
  return mock;
}

// Guard rails only, and real files, times and processes.
std::shared_ptr<Sandbox> started_local(const TempDir& dir) {
  if (test::is_root()) dir.give_to(test::user_uid(), test::user_gid());
  SandboxConfig config;
  config.backend = "local";
  config.workspace = dir.path();
  config.caller_env = {{"PATH", "/usr/bin:/bin"}};
  auto sandbox = make_sandbox(config).value();
  EXPECT_TRUE(sandbox->start());
  return sandbox;
}

Command shell(const std::string& text) { return shell_command(text); }

std::size_t execs(const MockSandbox& mock) {
  std::size_t count = 0;
  for (const MockCall& call : mock.calls()) count += call.method == "exec" ? 1 : 0;
  return count;
}

// --- audit

TEST(Audited, EveryCallIsToldWithWhatCameOfIt) {
  auto mock = started_mock();
  std::vector<AuditEntry> entries;
  using Clock = std::chrono::steady_clock;
  Clock::duration inside{0};
  mock->set_answer("slow", [&](const Command&, const ExecOptions&) {
    const auto begun = Clock::now();
    while (Clock::now() - begun < 2ms) std::this_thread::yield();
    inside = Clock::now() - begun;
    return ExecResult{};
  });
  SandboxPtr sandbox = with_audit(mock, [&](const AuditEntry& entry) { entries.push_back(entry); });
  const auto called = Clock::now();
  EXPECT_EQ(sandbox->exec("slow")->exit_code, 0);
  ASSERT_EQ(entries.size(), 1U) << "told once it has ended";
  EXPECT_GE(entries[0].duration, std::chrono::floor<std::chrono::microseconds>(inside)) << "not less than the command took";
  EXPECT_LE(entries[0].duration, Clock::now() - called) << "nor more than the caller waited";
  entries.clear();
  EXPECT_EQ(sandbox->exec("fail")->exit_code, 3);
  EXPECT_TRUE(sandbox->write_file("f", "12345", {.how = WriteMode::kAppend}));
  EXPECT_EQ(sandbox->read_file("f").value(), "12345");
  EXPECT_FALSE(sandbox->read_file("absent"));
  EXPECT_FALSE(sandbox->write_file("../outside", "x"));
  ASSERT_EQ(entries.size(), 5U);
  EXPECT_EQ(entries[0].kind, "exec");
  EXPECT_EQ(entries[0].subject, "fail");
  EXPECT_EQ(entries[0].exit_code, 3);
  EXPECT_EQ(entries[0].bytes, 6U);
  EXPECT_EQ(entries[1].kind, "writeFile");
  EXPECT_EQ(entries[1].bytes, 5U);
  EXPECT_TRUE(entries[1].append);
  EXPECT_EQ(entries[2].kind, "readFile");
  EXPECT_EQ(entries[2].bytes, 5U);
  EXPECT_TRUE(entries[3].failed) << "failed operations are told too";
  EXPECT_TRUE(entries[4].failed);
  EXPECT_NE(entries[4].error.find("path escapes workspace"), std::string::npos) << entries[4].error;
  EXPECT_TRUE(to_line(entries[0]).starts_with("[audit] exec `fail` exit_code=3 bytes=6 ")) << to_line(entries[0]);
}

std::string trail_text(const std::string& path) { return test::read_file(path); }

TEST(Audited, TheTrailHoldsStartEndRefusalsAndNoSecrets) {
  const TempDir dir;
  const std::string path = dir / "audit.jsonl";
  auto trail = std::make_shared<AuditTrail>(AuditTrail::open(path, {.sync = AuditSync::kNever}).value());
  auto redactor = std::make_shared<Redactor>();
  redactor->add("DB", "hunter22");
  auto mock = started_mock();
  SandboxPtr ruled = with_command_rules(mock, [](const Command&) { return CommandVerdict{false, "not on the list", ""}; });
  SandboxPtr sandbox = with_audit(mock, trail, redactor);
  EXPECT_TRUE(sandbox->exec("echo hunter22"));
  EXPECT_FALSE(with_audit(ruled, trail)->exec("rm -rf x"));
  EXPECT_FALSE(sandbox->remove("absent"));
  const std::string text = trail_text(path);
  EXPECT_EQ(text.find("hunter22"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("kind":"exec.start")"), std::string::npos);
  EXPECT_NE(text.find(R"("subject":"echo [redacted:DB]","start":1,"exit_code":127)"), std::string::npos) << text;
  EXPECT_NE(text.find("not on the list"), std::string::npos) << "what an inner decorator refused is recorded";
  EXPECT_NE(text.find(R"("call":"remove")"), std::string::npos);
  EXPECT_TRUE(verify_audit(path)->intact());
}

TEST(Audited, ARecordsKindSaysWhatItIsAbout) {
  const TempDir dir;
  auto trail = std::make_shared<AuditTrail>(AuditTrail::open(dir / "a", {.sync = AuditSync::kNever}).value());
  SandboxPtr sandbox = with_audit(started_mock(), trail);
  EXPECT_TRUE(sandbox->stop());
  EXPECT_TRUE(sandbox->start());
  EXPECT_TRUE(sandbox->write_file("f", "x"));
  const std::string text = trail_text(dir / "a");
  const auto kind_of = [&](const std::string& call) {
    const std::size_t at = text.find(R"("call":")" + call + "\"");
    const std::size_t begin = text.rfind(R"("kind":")", at) + 8;
    return at == std::string::npos ? "none" : text.substr(begin, text.find('"', begin) - begin);
  };
  EXPECT_EQ(kind_of("start"), "sandbox") << text;
  EXPECT_EQ(kind_of("stop"), "sandbox") << text;
  EXPECT_EQ(kind_of("writeFile"), "file") << text;
}

TEST(Audited, WithoutRoomForTheRecordNothingIsDone) {
  const TempDir dir("/var/tmp");  // tmpfs counts what is reserved as written
  auto trail = std::make_shared<AuditTrail>(AuditTrail::open(dir / "a", {.sync = AuditSync::kNever}).value());
  auto mock = started_mock();
  SandboxPtr sandbox = with_audit(mock, trail);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit full{test::read_file(dir / "a").size() + 10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  const auto refused = sandbox->exec("ls");
  const bool executed = execs(*mock) > 0;
  const auto done = sandbox->write_file("f", "x");  // reserved before, but its record finds no room
  const auto next = sandbox->write_file("g", "x");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
  EXPECT_FALSE(executed);
  EXPECT_TRUE(done) << "it was done, and says so";
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code(), Code::kResourceExhausted);
  EXPECT_TRUE(sandbox->write_file("h", "x"));
  const std::string text = trail_text(dir / "a");
  EXPECT_NE(text.find(R"("subject":"f")"), std::string::npos) << "the record that was owed is in";
  EXPECT_EQ(text.find(R"("subject":"g")"), std::string::npos);
  EXPECT_NE(text.find(R"("subject":"h")"), std::string::npos);
}

TEST(Audited, ACallWhoseCallbackThrewHasItsEnd) {
  const TempDir dir;
  auto trail = std::make_shared<AuditTrail>(AuditTrail::open(dir / "a", {.sync = AuditSync::kNever}).value());
  auto mock = started_mock();
  std::vector<AuditEntry> entries;
  SandboxPtr sandbox = with_audit(with_audit(mock, trail), [&](const AuditEntry& entry) { entries.push_back(entry); });
  const ExecOptions throwing = {.on_stdout = [](std::string_view) { throw std::runtime_error("mine"); }};
  EXPECT_THROW(std::ignore = sandbox->exec("ls", throwing), std::runtime_error);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_TRUE(entries[0].failed);
  EXPECT_NE(entries[0].error.find("callback threw"), std::string::npos) << entries[0].error;
  EXPECT_NE(trail_text(dir / "a").find(R"("kind":"exec.end")"), std::string::npos);
  EXPECT_NE(trail_text(dir / "a").find("callback threw"), std::string::npos);
  EXPECT_TRUE(sandbox->exec("ls"));
  EXPECT_FALSE(entries.at(1).failed);
  // A recording answers with an error in its place.
  {
    SandboxPtr recording = with_recording(mock, dir / "r").value();
    EXPECT_THROW(std::ignore = recording->exec("ls", throwing), std::runtime_error);
    EXPECT_TRUE(recording->exec("ls"));
  }
  SandboxPtr replay = make_replay(dir / "r").value();
  EXPECT_EQ(replay->exec("ls").error().reason(), "callback threw");
  EXPECT_EQ(replay->exec("ls")->out.bytes, "a\nb\n");
}

// --- quota and rate

TEST(WriteQuota, TheSumIsLimitedAndWhatFailedCostsNothing) {
  auto mock = started_mock();
  SandboxPtr sandbox = with_write_quota(mock, Bytes{10});
  EXPECT_TRUE(sandbox->write_file("a", "123456"));
  EXPECT_FALSE(sandbox->write_file("../b", "1234"));
  const auto over = sandbox->write_file("b", "12345");
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code(), Code::kResourceExhausted);
  EXPECT_FALSE(mock->stat("b"));
  EXPECT_TRUE(sandbox->write_file("b", "1234"));
  EXPECT_FALSE(sandbox->write_file("c", "1"));
  EXPECT_TRUE(sandbox->write_file("c", ""));
}

TEST(WriteQuota, WritesAtTheSameTimeDoNotExceedItTogether) {
  auto mock = started_mock();
  SandboxPtr sandbox = with_write_quota(mock, Bytes{1000});
  std::atomic<int> written{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) written += sandbox->write_file("f" + std::to_string(t), std::string(10, 'x')) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(written.load(), 100);
}

TEST(RateLimit, ABurstPassesThenCallsWaitOrAreRefused) {
  auto mock = started_mock();
  SandboxPtr impatient = with_rate_limit(mock, {.per_second = 0.001, .burst = 3});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(impatient->exec("ls"));
  const auto refused = impatient->list(".");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
  EXPECT_NE(refused.error().next().find("try again in"), std::string::npos);
  SandboxPtr patient = with_rate_limit(mock, {.per_second = 100, .burst = 1, .patience = 5s});
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(patient->exec("ls"));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 45ms);
}

// A cancelled call says so itself, and costs no turn.
TEST(RateLimit, NumbersThatMakeNoSenseCountAsTheLeast) {
  SandboxPtr hasty = with_rate_limit(started_mock(), {.per_second = 1e-3, .burst = 2, .patience = -5ms});
  EXPECT_TRUE(hasty->exec("a"));
  EXPECT_TRUE(hasty->exec("b"));
  EXPECT_EQ(hasty->exec("c").error().code(), Code::kResourceExhausted);
  for (const double rate : {0.0, -1.0, std::nan("")}) {
    SandboxPtr counted =
        with_rate_limit(started_mock(), {.per_second = rate, .burst = 2, .patience = std::chrono::milliseconds::max()});
    EXPECT_TRUE(counted->exec("a"));
    EXPECT_TRUE(counted->exec("b"));
    const Error refused = counted->exec("c").error();
    EXPECT_EQ(refused.reason(), "at most 2 in all");
    EXPECT_EQ(refused.next().find("try again"), std::string::npos) << refused.line();
  }
  SandboxPtr one = with_rate_limit(started_mock(), {.per_second = 0, .burst = std::nan("")});
  EXPECT_TRUE(one->exec("a"));
  EXPECT_FALSE(one->exec("b"));
}

TEST(RateLimit, ACancelledCallTakesNoTurn) {
  auto mock = started_mock();
  SandboxPtr sandbox = with_rate_limit(mock, {.per_second = 0.001, .burst = 1});
  const CancelToken cancelled = CancelToken::create().value();
  cancelled.cancel();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sandbox->exec("ls", {.cancel = cancelled})->reason, Reason::kCancelled);
  EXPECT_TRUE(sandbox->exec("ls"));
  EXPECT_EQ(sandbox->exec("ls").error().code(), Code::kResourceExhausted);
}

// --- rules

TEST(CommandRules, TheJudgeRefusesBeforeAnythingRuns) {
  auto mock = started_mock();
  SandboxPtr sandbox = with_command_rules(mock, [](const Command& command) {
    const bool fine = command.argv.back() == "ls";
    return CommandVerdict{fine, fine ? "" : "only ls", ""};
  });
  EXPECT_EQ(sandbox->exec("ls")->out.bytes, "a\nb\n");
  const auto refused = sandbox->exec("fail");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kPermissionDenied);
  EXPECT_EQ(refused.error().reason(), "only ls");
  EXPECT_EQ(sandbox->spawn(shell("fail")).error().code(), Code::kPermissionDenied);
  EXPECT_EQ(execs(*mock), 1U);
  EXPECT_TRUE(sandbox->write_file("f", "x")) << "files are not its concern";
}

TEST(CommandRules, TheJudgeIsToldWhatTheCommandReads) {
  std::vector<std::string> told;
  SandboxPtr sandbox = with_command_rules(started_mock(), [&](const Command&, const CommandInput& input) {
    told.push_back(input.bytes + (input.open ? " and more" : ""));
    return CommandVerdict{};
  });
  EXPECT_TRUE(sandbox->exec(shell("ls"), {.stdin_bytes = "touch bypass"}));
  (void)sandbox->spawn(shell("ls"));  // a mock starts none
  (void)sandbox->spawn(shell("ls"), {.input = SpawnInput::kPipe});
  (void)sandbox->spawn(shell("ls"), {.terminal = TerminalSize{}});
  EXPECT_EQ(told, (std::vector<std::string>{"touch bypass", "", " and more", " and more"}));
  EXPECT_FALSE(CommandJudge(std::function<CommandVerdict(const Command&)>()));
}

// Of what no backend would take nobody is asked: the callback may look at argv[0].
TEST(Decorators, CallbacksAreAskedAboutCommandsOnly) {
  int asked = 0;
  const auto judge = [&](const Command& command) { return ++asked, CommandVerdict{!command.argv.at(0).empty(), "", ""}; };
  const auto reads = [&](const Command& command) { return ++asked, !command.argv.at(0).empty(); };
  for (const SandboxPtr& sandbox : {with_command_rules(started_mock(), judge), with_read_only(started_mock(), reads),
                                    with_result_cache(started_mock(), {.pure = reads})}) {
    asked = 0;
    EXPECT_EQ(sandbox->exec(Command{}).error().code(), Code::kInvalidArgument);
    EXPECT_EQ(sandbox->exec(Command{.argv = {std::string("a\0b", 3)}}).error().code(), Code::kInvalidArgument);
    EXPECT_EQ(sandbox->exec(Command{.argv = {"a"}, .env = {{"", "x"}}}).error().code(), Code::kInvalidArgument);
    EXPECT_FALSE(sandbox->spawn(Command{}));
    EXPECT_EQ(asked, 0);
    EXPECT_TRUE(sandbox->exec("ls"));
    EXPECT_EQ(asked, 1);
  }
}

TEST(Decorators, WithoutACallbackWorkIsRefusedByName) {
  SandboxPtr ruled = with_command_rules(started_mock(), {});
  EXPECT_EQ(ruled->exec("ls").error().reason(), "with_command_rules was given no judge");
  EXPECT_FALSE(ruled->spawn(shell("ls")));
  EXPECT_TRUE(ruled->write_file("f", "x")) << "rules are about commands";
  auto mock = started_mock();
  for (const SandboxPtr& audited :
       {with_audit(mock, std::function<void(const AuditEntry&)>()), with_audit(mock, std::shared_ptr<AuditTrail>())}) {
    const Error refused = audited->exec("ls").error();
    EXPECT_EQ(refused.code(), Code::kInvalidArgument);
    EXPECT_TRUE(refused.reason().starts_with("with_audit was given no ")) << refused.line();
    EXPECT_FALSE(audited->write_file("f", "x"));
  }
  EXPECT_EQ(execs(*mock), 0U);
  EXPECT_TRUE(with_audit(mock, [](const AuditEntry&) {})->exec("ls")) << "the twin";
  EXPECT_TRUE(with_audit(mock, std::shared_ptr<AuditTrail>())->stop()) << "a sandbox must end";
}

TEST(ReadOnly, WritesAndCommandsAreRefusedAndReadsPass) {
  auto mock = started_mock();
  ASSERT_TRUE(mock->write_file("f", "x"));
  SandboxPtr sandbox = with_read_only(mock);
  EXPECT_EQ(sandbox->read_file("f").value(), "x");
  EXPECT_TRUE(sandbox->list("."));
  EXPECT_EQ(sandbox->write_file("f", "y").error().code(), Code::kPermissionDenied);
  EXPECT_EQ(sandbox->make_dir("d").error().code(), Code::kPermissionDenied);
  EXPECT_EQ(sandbox->rename("f", "g").error().code(), Code::kPermissionDenied);
  EXPECT_EQ(sandbox->remove("f").error().code(), Code::kPermissionDenied);
  EXPECT_EQ(sandbox->exec("ls").error().code(), Code::kPermissionDenied);
  EXPECT_EQ(mock->read_file("f").value(), "x");
  SandboxPtr some = with_read_only(mock, [](const Command& command) { return command.argv.back() == "ls"; });
  EXPECT_TRUE(some->exec("ls"));
  EXPECT_FALSE(some->exec("fail"));
}

// --- dry run

TEST(DryRun, NothingLandsReadsSeeWhatWasPretendedAndAllIsTold) {
  auto mock = started_mock();
  ASSERT_TRUE(mock->write_file("src/old", "one\ntwo\n"));
  ASSERT_TRUE(mock->write_file("keep", "kept"));
  std::vector<std::string> told;
  SandboxPtr dry = with_dry_run(mock, [&](const DryRunEntry& entry) { told.push_back(entry.kind + " " + entry.subject); });
  EXPECT_EQ(dry->exec("rm -rf /")->message, "dry run: not executed");
  EXPECT_TRUE(dry->write_file("new/deep/file", "needle\n"));
  EXPECT_TRUE(dry->write_file("keep", " more", {.how = WriteMode::kAppend}));
  EXPECT_TRUE(dry->rename("src", "lib"));
  EXPECT_TRUE(dry->write_file("gone", "x"));
  EXPECT_TRUE(dry->remove("gone"));
  EXPECT_EQ(dry->read_file("keep").value(), "kept more");
  EXPECT_EQ(dry->read_file("lib/old").value(), "one\ntwo\n");
  EXPECT_EQ(dry->read_file("src/old").error().code(), Code::kNotFound);
  EXPECT_EQ(dry->read_file("gone").error().code(), Code::kNotFound);
  EXPECT_EQ(dry->stat("new/deep")->type, FileType::kDirectory);
  std::string names;
  const std::vector<FileInfo> listed = dry->list(".").value();
  for (const FileInfo& file : listed) names += file.path + " ";
  EXPECT_EQ(names, "keep lib new ");
  names.clear();
  const GlobResult found = dry->glob("**").value();
  for (const FileInfo& file : found.files) names += file.type == FileType::kFile ? file.path + " " : "";
  EXPECT_EQ(names, "keep lib/old new/deep/file ");
  EXPECT_EQ(dry->grep("needle")->matches, (std::vector<GrepMatch>{{"new/deep/file", 1, "needle"}}));
  EXPECT_EQ(dry->grep("two")->matches, (std::vector<GrepMatch>{{"lib/old", 2, "two"}}));
  // Inside nothing changed.
  EXPECT_EQ(execs(*mock), 0U);
  EXPECT_EQ(mock->read_file("keep").value(), "kept");
  EXPECT_EQ(mock->read_file("src/old").value(), "one\ntwo\n");
  EXPECT_FALSE(mock->stat("new"));
  EXPECT_EQ(told, (std::vector<std::string>{"exec rm -rf /", "writeFile new/deep/file", "writeFile keep", "rename src",
                                            "writeFile gone", "remove gone"}));
}

TEST(DryRun, WhatWouldFailFails) {
  auto mock = started_mock();
  ASSERT_TRUE(mock->write_file("dir/file", "x"));
  int told = 0;
  SandboxPtr dry = with_dry_run(mock, [&](const DryRunEntry&) { ++told; });
  EXPECT_EQ(dry->write_file("../x", "x").error().what(), "path escapes workspace: ../x");
  EXPECT_EQ(dry->write_file("/etc/passwd", "x").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(dry->write_file("dir", "x").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(dry->write_file("no/such", "x", {.parents = Parents::kMustExist}).error().code(), Code::kNotFound);
  EXPECT_EQ(dry->remove("dir").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(dry->remove("absent").error().code(), Code::kNotFound);
  EXPECT_EQ(dry->rename("dir", "dir/below").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(dry->make_dir("dir", {.parents = Parents::kMustExist}).error().code(), Code::kAlreadyExists);
  EXPECT_EQ(told, 0);
  EXPECT_TRUE(dry->remove("dir", {.depth = Depth::kTree}));
  EXPECT_TRUE(dry->make_dir("dir"));
  EXPECT_TRUE(dry->list("dir")->empty()) << "what was below the old one does not show through";
  EXPECT_EQ(dry->read_file("dir/file").error().code(), Code::kNotFound);
}

// What the inner sandbox would refuse without looking at its policy.
TEST(DryRun, WhatMakesNoSenseIsRefusedAsInside) {
  const TempDir dir;
  const std::shared_ptr<Sandbox> inside = started_local(dir);
  ASSERT_TRUE(inside->write_file("dir/f", "x"));
  ASSERT_TRUE(inside->write_file("locked", "x", {.mode = 0444}));
  ASSERT_EQ(inside->exec("ln -s dir/f link")->exit_code, 0);
  SandboxPtr dry = with_dry_run(inside, {});
  EXPECT_EQ(dry->exec("ls", {.timeout = -1ms}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(dry->exec(Command{.argv = {"ls"}, .env = {{"a=b", "x"}}}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(dry->exec(Command{.argv = {"ls"}, .env = {{"a", std::string("x\0", 2)}}}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(dry->exec(Command{.argv = {"ls"}, .cwd = "/etc"}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(dry->exec(Command{.argv = {"ls"}, .cwd = "absent"}).error().code(), Code::kNotFound);
  EXPECT_EQ(dry->exec(Command{.argv = {"ls"}, .cwd = "dir/f"}).error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(dry->exec(Command{.argv = {"ls"}, .cwd = "dir", .env = {{"a", "b"}}}, {.timeout = 1s}));
  EXPECT_EQ(dry->write_file("nf/", "x").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(dry->write_file("dir/f/../g", "x").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(dry->read_file("nope/../dir/f").error().code(), Code::kNotFound);
  EXPECT_EQ(dry->make_dir("d", {.mode = 07777}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(dry->write_file("locked", "y").error().code(), Code::kPermissionDenied);
  EXPECT_TRUE(dry->write_file("locked", "y", {.how = WriteMode::kAtomic})) << "the name gets another file";
  EXPECT_TRUE(dry->write_file("dir/../g", "x"));
  EXPECT_TRUE(dry->write_file("link", "new", {.how = WriteMode::kAtomic}));
  EXPECT_EQ(dry->read_file("link").value(), "new");
  EXPECT_EQ(dry->read_file("dir/f").value(), "x") << "the link was replaced, not what it leads to";
  EXPECT_TRUE(dry->stop());
  EXPECT_EQ(dry->exec("ls").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(dry->write_file("h", "x").error().code(), Code::kFailedPrecondition);
}

TEST(DryRun, AnAbsolutePatternFindsWhatWasPretended) {
  auto mock = started_mock();
  SandboxPtr dry = with_dry_run(mock, {});
  ASSERT_TRUE(dry->write_file("a/one", "needle\n"));
  ASSERT_TRUE(dry->write_file("b/two", "needle\n"));
  const auto names = [](const GlobResult& found) {
    std::string text;
    for (const FileInfo& file : found.files) text += file.path + " ";
    return text;
  };
  EXPECT_EQ(names(dry->glob("/workspace/a/*").value()), "a/one ");
  EXPECT_EQ(names(dry->glob("a/*").value()), "a/one ");
  EXPECT_EQ(dry->grep("needle", {.files = "/workspace/b/**"})->matches, (std::vector<GrepMatch>{{"b/two", 1, "needle"}}));
  EXPECT_EQ(names(dry->glob("/workspace/./a/./*").value()), "a/one ");
  EXPECT_EQ(dry->glob("/elsewhere/*").error().what(), "path escapes workspace: /elsewhere/*");
}

// Each call to the real sandbox, and to a rehearsal around it.
TEST(DryRun, ItAnswersAsInside) {
  const TempDir dir;
  const std::shared_ptr<Sandbox> inside = started_local(dir);
  ASSERT_TRUE(inside->write_file("file", "x"));
  SandboxPtr dry = with_dry_run(inside, {});
  const CancelToken cancelled = CancelToken::create().value();
  cancelled.cancel();
  const std::string longest(255, 'n'), longer(300, 'n');
  const auto word = [](const auto& result) { return result ? std::string("ok") : std::string(to_string(result.error().code())); };
  for (Sandbox* sandbox : {inside.get(), dry.get()}) {
    EXPECT_EQ(word(sandbox->list("")), "ok");
    EXPECT_EQ(word(sandbox->write_file("", "x")), "invalid_argument");
    EXPECT_EQ(word(sandbox->write_file(longest, "x")), "ok");
    EXPECT_EQ(word(sandbox->write_file(longer, "x")), "invalid_argument");
    EXPECT_EQ(word(sandbox->make_dir(longer)), "invalid_argument");
    EXPECT_EQ(word(sandbox->make_dir("file")), "failed_precondition");
    EXPECT_EQ(word(sandbox->make_dir("file", {.parents = Parents::kMustExist})), "already_exists");
    EXPECT_FALSE(sandbox->exec("true", {.allowed_domains = {"not a host"}}));
    const ExecResult ended = sandbox->exec("true", {.cancel = cancelled}).value();
    EXPECT_EQ(ended.reason, Reason::kCancelled);
    EXPECT_EQ(ended.exit_code, 143);
    EXPECT_EQ(sandbox->spawn(shell("true"), {.cancel = cancelled}).value()->wait().value()->reason, Reason::kCancelled);
  }
}

// Absolute links are followed where they come out inside, as relative ones are.
TEST(DryRun, LinksLeadWhereTheyLeadInside) {
  for (const bool dry : {false, true}) {
    const TempDir dir;
    SandboxPtr sandbox = started_local(dir);
    ASSERT_TRUE(sandbox->write_file("d/f", "x"));
    ASSERT_EQ(
        sandbox
            ->exec(
                "ln -s \"$PWD/d/f\" absolute; ln -s /etc/hostname out; ln -s d/f relative; ln -s nowhere dangling; ln -s d todir; "
                "ln -s \"$PWD/d\" way; ln -s / away")
            ->exit_code,
        0);
    if (dry) sandbox = with_dry_run(sandbox, {});
    EXPECT_EQ(sandbox->read_file("absolute").value(), "x");
    EXPECT_TRUE(sandbox->write_file("way/on/g", "deep"));
    EXPECT_EQ(sandbox->read_file("d/on/g").value(), "deep");
    EXPECT_EQ(sandbox->write_file("away/on/g", "x").error().what(), "path escapes workspace: away/on/g");
    EXPECT_EQ(sandbox->read_file("out").error().what(), "path escapes workspace: out");
    EXPECT_EQ(sandbox->write_file("out", "y").error().what(), "path escapes workspace: out");
    EXPECT_EQ(sandbox->read_file("relative").value(), "x");
    EXPECT_EQ(sandbox->read_file("relative/").error().code(), Code::kFailedPrecondition);
    EXPECT_EQ(sandbox->stat("todir")->type, FileType::kSymlink);
    EXPECT_EQ(sandbox->stat("todir/")->type, FileType::kDirectory);
    EXPECT_EQ(sandbox->make_dir("dangling").error().code(), Code::kAlreadyExists);
    EXPECT_TRUE(sandbox->write_file("dangling", "new"));
    EXPECT_EQ(sandbox->read_file("nowhere").value(), "new");
    EXPECT_TRUE(sandbox->write_file("todir/../g", "x"));
    EXPECT_EQ(sandbox->read_file("g").value(), "x");
  }
}

TEST(DryRun, WhatCannotBeRehearsedSaysSo) {
  SandboxPtr dry = with_dry_run(started_mock(), {});
  for (const Error& error : {dry->changes().error(), dry->snapshot("s").error(), dry->rollback().error(), dry->watch(".").error(),
                             dry->set_network_rules({}).error()}) {
    EXPECT_EQ(error.code(), Code::kUnimplemented);
    EXPECT_NE(error.what().find("in a dry run"), std::string::npos) << error.line();
  }
}

// --- redaction

TEST(Redaction, SecretsGoFromResultsCallbacksAndMatchesAndFilesStay) {
  auto mock = started_mock();
  mock->set_output("env", "DB=hunter22\n", 0, "warn hunter22");
  ASSERT_TRUE(mock->write_file("f", "hunter22\n"));
  auto redactor = std::make_shared<Redactor>();
  redactor->add("DB", "hunter22");
  SandboxPtr sandbox = with_redaction(mock, redactor);
  std::string streamed;
  const ExecResult result = sandbox->exec("env", {.on_stdout = [&](std::string_view bytes) { streamed += bytes; }}).value();
  EXPECT_EQ(result.out.bytes, "DB=[redacted:DB]\n");
  EXPECT_EQ(result.err.bytes, "warn [redacted:DB]");
  EXPECT_EQ(result.out.total, 12U) << "as it came";
  EXPECT_TRUE(streamed.empty() || streamed == "DB=[redacted:DB]\n") << streamed;
  EXPECT_EQ(sandbox->grep("hunter22")->matches.at(0).text, "[redacted:DB]");
  EXPECT_EQ(sandbox->read_file("f").value(), "hunter22\n") << "what is read may be written back";
  EXPECT_EQ(sandbox->exec("ls")->out.bytes, "a\nb\n");
}

TEST(Redaction, WithoutARedactorKnownShapesGoAllTheSame) {
  const std::string token = "ghp_" + std::string(36, 'a');
  for (const std::shared_ptr<const Redactor>& none : {std::shared_ptr<const Redactor>(), std::make_shared<const Redactor>()}) {
    auto mock = started_mock();
    mock->set_output("env", "DB=hunter22 T=" + token + "\n");
    ASSERT_TRUE(mock->write_file("f", token + "\n"));
    SandboxPtr sandbox = with_redaction(mock, none);
    std::string streamed;
    const auto result = sandbox->exec("env", {.on_stdout = [&](std::string_view bytes) { streamed += bytes; }}).value();
    EXPECT_EQ(result.out.bytes.find("DB=hunter22 T=[redacted:"), 0U) << result.out.bytes;
    EXPECT_EQ(streamed.find(token), std::string::npos) << streamed;
    EXPECT_EQ(sandbox->grep("ghp_")->matches.at(0).text.find("[redacted:"), 0U);
  }
}

TEST(Redaction, SecretsGoFromEveryTextOfAResult) {
  auto mock = started_mock();
  mock->set_answer("curl", [](const Command&, const ExecOptions&) {
    ExecResult result;
    Violation refused;
    refused.program = refused.target = refused.rule = refused.allowed = refused.origin.file = "a-hunter22-b";
    EgressRecord record;
    record.program = record.method = record.host = record.rule = record.reason = "a-hunter22-b";
    result.message = "a-hunter22-b";
    result.violations = {refused};
    result.egress = {record};
    result.tried = {{"native", "a-hunter22-b"}};
    result.enforcement = {{.clause = "network", .asked = "a-hunter22-b", .mechanism = "proxy", .detail = "a-hunter22-b"}};
    return result;
  });
  auto redactor = std::make_shared<Redactor>();
  redactor->add("DB", "hunter22");
  const ExecResult result = with_redaction(mock, redactor)->exec("curl").value();
  const Violation& refused = result.violations.at(0);
  const EgressRecord& record = result.egress.at(0);
  const EnforcementClause& clause = result.enforcement.at(0);
  for (const std::string& text :
       {result.message, refused.program, refused.target, refused.rule, refused.allowed, refused.origin.file, record.program,
        record.method, record.host, record.rule, record.reason, result.tried.at(0).why, clause.asked, clause.detail})
    EXPECT_EQ(text, "a-[redacted:DB]-b");
  EXPECT_EQ(clause.clause, "network");
}

TEST(Redaction, TheEndOfAStreamIsGivenOutWhenItsHandleGoes) {
  const TempDir dir;
  auto redactor = std::make_shared<Redactor>();
  redactor->add("KEY", "secret-value-1");
  SandboxPtr sandbox = with_redaction(started_local(dir), redactor);
  std::string got;
  const auto run = [&](const char* text) {
    got.clear();
    auto process = sandbox->spawn(shell(text), {.on_stdout = [&](std::string_view bytes) { got += bytes; }}).value();
    EXPECT_TRUE(test::eventually([&] { return test::exists(dir / "done"); }));
    EXPECT_TRUE(sandbox->remove("done"));
    process.reset();
    return got;
  };
  EXPECT_EQ(run("printf 'tail s'; touch done"), "tail s");
  EXPECT_EQ(run("printf 'tail secret-value-1'; touch done"), "tail [redacted:KEY]");
}

// As without decorators: a handle may go in a callback of its own command.
TEST(Decorators, AHandleMayGoInItsOwnCallback) {
  struct Slot {
    std::unique_ptr<Process> handle;
    std::promise<void> filled, emptied;
  };
  const TempDir dir, logs;
  SandboxPtr sandbox = with_redaction(started_local(dir), std::make_shared<Redactor>());
  sandbox = with_events(with_audit(sandbox, [](const AuditEntry&) {}), std::make_shared<EventBus>());
  sandbox = with_recording(sandbox, logs / "r").value();
  const auto slot = std::make_shared<Slot>();
  const auto drop = [slot](std::string_view) {
    slot->filled.get_future().wait();
    slot->handle.reset();
    slot->emptied.set_value();
  };
  slot->handle = sandbox->spawn(shell("echo here; sleep 300"), {.on_stdout = drop}).value();
  slot->filled.set_value();
  EXPECT_EQ(slot->emptied.get_future().wait_for(60s), std::future_status::ready);
  EXPECT_TRUE(sandbox->stop());
}

// The cap may cut a secret in two: the beginning that is left goes as well.
TEST(Redaction, ASecretThatTheCapCutIsNotLeftInPart) {
  auto mock = started_mock();
  mock->set_output("cut", "before hunter22 after");
  auto redactor = std::make_shared<Redactor>();
  redactor->add("DB", "hunter22");
  EXPECT_EQ(with_redaction(mock, redactor)->exec("cut", {.output_bytes = 11})->out.bytes, "before [redacted:cut]");
}

TEST(Redaction, GrepShowsNoSecretInPartAndNoLineOfOne) {
  auto mock = started_mock();
  const std::string key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n";
  ASSERT_TRUE(mock->write_file("cut", std::string(990, 'q') + "hunter2222222222\n"));
  ASSERT_TRUE(mock->write_file("key", "# MII of ours\n" + key + "plain MII\n"));
  ASSERT_TRUE(mock->write_file("lines", "T=line1secret\nline2secret and line2 stays\n"));
  auto redactor = std::make_shared<Redactor>();
  redactor->add("DB", "hunter2222222222");
  redactor->add("TWO", "line1secret\nline2secret");
  SandboxPtr sandbox = with_redaction(mock, redactor);
  EXPECT_EQ(sandbox->grep("qqq")->matches.at(0).text, std::string(990, 'q') + "[redacted:");
  EXPECT_EQ(sandbox->grep("MII")->matches,
            (std::vector<GrepMatch>{{"key", 1, "# MII of ours"}, {"key", 3, "[redacted:private-key]"}, {"key", 6, "plain MII"}}));
  EXPECT_EQ(sandbox->grep("line1")->matches, (std::vector<GrepMatch>{{"lines", 1, "T=[redacted:TWO]"}}));
  EXPECT_EQ(sandbox->grep("line2")->matches, (std::vector<GrepMatch>{{"lines", 2, "[redacted:TWO] and line2 stays"}}));
  // What cannot be read is looked at line by line, and what is cut loses its end.
  mock->fail_next("read_file", Error(Code::kPermissionDenied, "no"), 1);
  EXPECT_EQ(sandbox->grep("qqq")->matches.at(0).text, std::string(990, 'q') + "[redacted:cut]");
}

// --- cache

TEST(ResultCache, APureCommandIsAnsweredFromItsLastResultUntilSomethingWrites) {
  auto mock = started_mock();
  SandboxPtr sandbox = with_result_cache(
      mock, {.pure = [](const Command& command) { return command.argv.back().starts_with("ls"); }, .time_to_live = 1h});
  std::string streamed;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sandbox->exec("ls")->out.bytes, "a\nb\n");
  EXPECT_EQ(execs(*mock), 1U);
  EXPECT_TRUE(sandbox->exec("ls", {.on_stdout = [&](std::string_view bytes) { streamed += bytes; }}));
  EXPECT_EQ(streamed, "a\nb\n");
  EXPECT_EQ(execs(*mock), 1U);
  EXPECT_TRUE(sandbox->exec("ls -l"));
  EXPECT_TRUE(sandbox->exec(Command{.argv = shell("ls").argv, .env = {{"LC_ALL", "C"}}}));
  EXPECT_EQ(execs(*mock), 3U) << "another command, another environment";
  EXPECT_TRUE(sandbox->write_file("f", "x"));
  EXPECT_TRUE(sandbox->exec("ls"));
  EXPECT_EQ(execs(*mock), 4U) << "after a write";
  EXPECT_TRUE(sandbox->exec("fail"));
  EXPECT_TRUE(sandbox->exec("ls"));
  EXPECT_EQ(execs(*mock), 6U) << "after a command that is not pure";
  EXPECT_TRUE(sandbox->exec("fail"));
  EXPECT_TRUE(sandbox->exec("fail"));
  EXPECT_EQ(execs(*mock), 8U) << "what is not pure always runs";
}

TEST(ResultCache, ItsTimeToLiveAndItsSizeEnd) {
  auto mock = started_mock();
  const auto pure = [](const Command&) { return true; };
  SandboxPtr short_lived = with_result_cache(mock, {.pure = pure, .time_to_live = 0ms});
  EXPECT_TRUE(short_lived->exec("ls"));
  EXPECT_TRUE(short_lived->exec("ls"));
  EXPECT_EQ(execs(*mock), 2U);
  SandboxPtr small = with_result_cache(mock, {.pure = pure, .time_to_live = 1h, .max_entries = 1});
  EXPECT_TRUE(small->exec("ls"));
  EXPECT_TRUE(small->exec("ls -a"));
  EXPECT_TRUE(small->exec("ls"));
  EXPECT_EQ(execs(*mock), 5U);
}

TEST(ResultCache, OneThatEndedAnswersForItself) {
  auto mock = started_mock();
  SandboxPtr sandbox = with_result_cache(mock, {.pure = [](const Command&) { return true; }, .time_to_live = 1h});
  EXPECT_TRUE(sandbox->exec("ls"));
  EXPECT_TRUE(sandbox->exec("ls"));
  EXPECT_EQ(execs(*mock), 1U);
  ASSERT_TRUE(mock->stop());  // by itself, past the cache
  const auto late = sandbox->exec("ls");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::kFailedPrecondition);
}

TEST(ResultCache, TheLongestTimeToLiveIsForEver) {
  auto mock = started_mock();
  SandboxPtr sandbox =
      with_result_cache(mock, {.pure = [](const Command&) { return true; }, .time_to_live = std::chrono::milliseconds::max()});
  EXPECT_TRUE(sandbox->exec("ls"));
  EXPECT_TRUE(sandbox->exec("ls"));
  EXPECT_EQ(execs(*mock), 1U);
}

// The file may change while the command reads it: the time to live counts from its start.
TEST(ResultCache, ALongCommandIsOldWhenItEnds) {
  auto mock = started_mock();
  mock->set_answer("slow", [](const Command&, const ExecOptions&) {
    std::this_thread::sleep_for(60ms);  // longer than `brief` keeps it; more is as well
    return ExecResult();
  });
  const auto pure = [](const Command&) { return true; };
  SandboxPtr brief = with_result_cache(mock, {.pure = pure, .time_to_live = 50ms});
  EXPECT_TRUE(brief->exec("slow"));
  EXPECT_TRUE(brief->exec("slow"));
  EXPECT_EQ(execs(*mock), 2U);
  SandboxPtr lasting = with_result_cache(mock, {.pure = pure, .time_to_live = 1h});
  EXPECT_TRUE(lasting->exec("slow"));
  EXPECT_TRUE(lasting->exec("slow"));
  EXPECT_EQ(execs(*mock), 3U);
}

// --- record and replay

TEST(Replay, ARecordedSessionIsAnsweredWithoutExecuting) {
  const TempDir dir;
  const std::string file = dir / "session.jsonl";
  std::vector<std::string> recorded, replayed;
  const auto play = [](Sandbox& sandbox, std::vector<std::string>& log) {
    log.push_back(sandbox.id() + sandbox.workspace());
    std::string streamed;
    const auto result = sandbox.exec("fail", {.on_stdout = [&](std::string_view bytes) { streamed += bytes; }});
    log.push_back(std::to_string(result->exit_code) + result->out.bytes + result->err.bytes);
    log.push_back(sandbox.write_file("f", std::string("\xff\0x", 3)) ? "written" : "refused");
    log.push_back(sandbox.read_file("f").value());
    log.push_back(sandbox.read_file("absent").error().line());
    log.push_back(sandbox.write_file("f", "second") ? "written" : "refused");
    log.push_back(sandbox.read_file("f").value());
    const std::vector<FileInfo> listed = sandbox.list(".").value();
    for (const FileInfo& info : listed) log.push_back(info.path + std::to_string(info.size));
    log.push_back(sandbox.grep("sec")->matches.at(0).text);
    log.push_back(sandbox.exec(Command{.argv = {"\xfe"}})->out.bytes);
    log.push_back(std::to_string(sandbox.stats()->execs));
  };
  {
    auto mock = started_mock();
    SandboxPtr recording = with_recording(mock, file).value();
    play(*recording, recorded);
  }
  EXPECT_EQ(with_recording(started_mock(), file).error().code(), Code::kAlreadyExists);
  SandboxPtr replay = make_replay(file).value();
  play(*replay, replayed);
  EXPECT_EQ(recorded, replayed);
  const auto more = replay->exec("fail");
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(more.error().reason().find("not asked so often"), std::string::npos);
  EXPECT_NE(replay->exec("other").error().reason().find("never asked"), std::string::npos);
}

TEST(Replay, EveryFieldIsAsItWasRecorded) {
  const TempDir dir, place;
  const auto now = std::chrono::system_clock::time_point(std::chrono::nanoseconds(1'700'000'000'123'456'789));
  auto mock = started_mock();
  mock->set_answer("curl", [&](const Command&, const ExecOptions&) {
    ExecResult result;
    result.backend = "landlock";
    result.tried = {{"native", "no user namespace"}};
    Violation refused;
    refused.time = now;
    refused.operation = "write";
    result.violations = {refused};
    EgressRecord record;
    record.time = now;
    record.pid = 7;
    record.program = "curl";
    record.host = "example.org";
    result.egress = {record};
    return result;
  });
  const ExecResult recorded = with_recording(mock, dir / "r").value()->exec("curl").value();
  const ExecResult replayed = make_replay(dir / "r").value()->exec("curl").value();
  EXPECT_EQ(replayed.backend, "landlock");
  EXPECT_EQ(replayed.tried, recorded.tried);
  EXPECT_EQ(replayed.violations, recorded.violations);
  EXPECT_EQ(replayed.egress, recorded.egress);
  const std::shared_ptr<Sandbox> local = started_local(place);
  ASSERT_TRUE(local->write_file("f", "x"));
  const FileInfo info = with_recording(local, dir / "files").value()->stat("f").value();
  EXPECT_EQ(make_replay(dir / "files").value()->stat("f").value(), info);
}

TEST(Replay, ItRunsBetweenStartAndStop) {
  const TempDir dir;
  auto mock = MockSandbox::create();
  {
    SandboxPtr recording = with_recording(mock, dir / "r").value();
    EXPECT_EQ(recording->health().error().code(), Code::kUnavailable);
    ASSERT_TRUE(recording->start());
    EXPECT_TRUE(recording->exec("ls"));
    EXPECT_TRUE(recording->exec("ls"));
    EXPECT_TRUE(recording->write_file("f", "x"));
    ASSERT_TRUE(recording->stop());
  }
  SandboxPtr replay = make_replay(dir / "r").value();
  EXPECT_EQ(replay->exec("ls").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(replay->write_file("f", "x").error().reason(), "it was not started, or it was stopped");
  EXPECT_EQ(replay->health().error().code(), Code::kUnavailable);
  EXPECT_TRUE(replay->start());
  EXPECT_EQ(replay->start().error().reason(), "it runs already");
  EXPECT_TRUE(replay->exec("ls"));
  EXPECT_TRUE(replay->write_file("f", "x")) << "the refused call took no answer away";
  EXPECT_TRUE(replay->stop());
  EXPECT_TRUE(replay->stop());
  EXPECT_EQ(replay->exec("ls").error().reason(), "it was not started, or it was stopped");
  EXPECT_EQ(replay->health().error().code(), Code::kUnavailable);
}

// It ended by itself, and was started again.
TEST(Replay, WhatWasStartedAgainStartsAgain) {
  const TempDir dir;
  auto mock = MockSandbox::create();
  {
    SandboxPtr recording = with_recording(mock, dir / "r").value();
    ASSERT_TRUE(recording->start());
    ASSERT_TRUE(mock->stop());
    ASSERT_TRUE(recording->start());
  }
  SandboxPtr replay = make_replay(dir / "r").value();
  EXPECT_TRUE(replay->start());
  EXPECT_TRUE(replay->start());
  EXPECT_EQ(replay->start().error().reason(), "it runs already");
}

// A workspace that is a transaction, as far as a decorator sees it.
class Layered final : public SandboxDecorator {
 public:
  using SandboxDecorator::SandboxDecorator;
  Result<std::vector<txn::Change>> changes() override { return std::vector<txn::Change>{kChange}; }
  Result<void> snapshot(const std::string& name) override { return names_.insert(name).second ? Result<void>() : taken(); }
  Result<void> rollback(const std::string& name) override { return names_.contains(name) ? Result<void>() : taken(); }
  static inline const txn::Change kChange{.kind = txn::ChangeKind::kRenamed,
                                          .path = "b\xff",
                                          .from = "a",
                                          .before = {txn::FileKind::kFile, 0644, 3},
                                          .after = {txn::FileKind::kFile, 0600, 4},
                                          .content = true};

 private:
  static Error taken() { return Error(Code::kAlreadyExists, "no such luck"); }
  std::set<std::string> names_;
};

TEST(Replay, TransactionsAreRecorded) {
  const TempDir dir;
  const auto play = [](Sandbox& sandbox) {
    EXPECT_EQ(sandbox.changes().value(), std::vector<txn::Change>{Layered::kChange});
    EXPECT_TRUE(sandbox.snapshot("one"));
    EXPECT_EQ(sandbox.snapshot("one").error().what(), "no such luck");
    EXPECT_TRUE(sandbox.rollback("one"));
    EXPECT_EQ(sandbox.rollback("two").error().code(), Code::kAlreadyExists);
  };
  play(*with_recording(std::make_shared<Layered>(started_mock()), dir / "r").value());
  play(*make_replay(dir / "r").value());
  SandboxPtr recording = with_recording(started_mock(), dir / "none").value();
  EXPECT_EQ(recording->changes().error().what(), "the workspace is no transaction") << "the inner sandbox's own answer";
  EXPECT_NE(recording->watch(".").error().reason().find("recording"), std::string::npos);
  EXPECT_NE(recording->set_network_rules({}).error().reason().find("recording"), std::string::npos);
}

TEST(Replay, AnAnswerWithAnUnknownWordIsDamage) {
  const TempDir dir;
  {
    EXPECT_TRUE(with_recording(started_mock(), dir / "r").value()->exec("ls"));
  }
  std::string text = test::read_file(dir / "r");
  const std::string reason = R"("reason":0)";
  ASSERT_NE(text.find(reason), std::string::npos) << text;
  text.replace(text.find(reason), reason.size(), R"("reason":99)");
  EXPECT_EQ(make_replay(dir.write("changed", text)).value()->exec("ls").error().code(), Code::kDataLoss);
  EXPECT_TRUE(make_replay(dir / "r").value()->exec("ls"));
}

TEST(Recording, AFileThatMayNotGrowIsALimitAndNoEnd) {
  const TempDir dir;
  auto mock = started_mock();
  SandboxPtr sandbox = with_recording(mock, dir / "r").value();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit full{test::read_file(dir / "r").size() + 10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  const auto refused = sandbox->exec("ls");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
}

TEST(Replay, ADamagedRecordingIsRefused) {
  const TempDir dir;
  EXPECT_EQ(make_replay(dir / "absent").error().code(), Code::kNotFound);
  EXPECT_EQ(make_replay(dir.write("text", "hello\n")).error().code(), Code::kDataLoss);
  EXPECT_EQ(make_replay(dir.write("empty", "")).error().code(), Code::kDataLoss);
  EXPECT_EQ(make_replay(dir.path()).error().code(), Code::kDataLoss);
  const std::string fine = R"({"call":{},"answer":{"version":2,"backend":"b","id":"i","workspace":"w"}})";
  EXPECT_TRUE(make_replay(dir.write("fine", fine)));
  for (const auto& [part, other] :
       std::vector<std::pair<std::string, std::string>>{{R"("version":2)", R"("version":"x")"},
                                                        {R"("backend":"b")", R"("backend":3)"},
                                                        {R"("id":"i")", R"("id":null)"},
                                                        {R"("workspace":"w")", R"("workspace":7)"},
                                                        {R"("workspace":"w")", R"("workspace":{"hex":7})"},
                                                        {R"("id":"i",)", ""}}) {
    std::string header = fine;
    header.replace(header.find(part), part.size(), other);
    const auto replay = make_replay(dir.write("header", header));
    ASSERT_FALSE(replay) << header;
    EXPECT_EQ(replay.error().code(), Code::kDataLoss);
  }
  EXPECT_EQ(make_replay(dir.write("version", R"({"call":{},"answer":{"version":99}})")).error().code(), Code::kDataLoss);
}

// --- the mock itself

TEST(Mock, FailingNoCallFailsNone) {
  auto mock = started_mock();
  mock->fail_next("exec", Error(Code::kUnavailable, "gone"), 0);
  mock->fail_next("exec", Error(Code::kUnavailable, "gone"), -1);
  EXPECT_TRUE(mock->exec("ls"));
  mock->fail_next("exec", Error(Code::kUnavailable, "gone"), 1);
  EXPECT_FALSE(mock->exec("ls"));
  EXPECT_TRUE(mock->exec("ls"));
}

// --- together

// Outermost sees what is inside refuse, whatever the order of the rest.
TEST(Decorators, TheyStackInAnyOrder) {
  const auto quota = [](SandboxPtr inner) { return with_write_quota(std::move(inner), Bytes{4}); };
  const auto rate = [](SandboxPtr inner) { return with_rate_limit(std::move(inner), {.per_second = 1e6, .burst = 1e6}); };
  const auto redact = [](SandboxPtr inner) {
    auto redactor = std::make_shared<Redactor>();
    redactor->add("A", "a\nb\na\n");
    return with_redaction(std::move(inner), redactor);
  };
  const std::vector<std::function<SandboxPtr(SandboxPtr)>> stack = {quota, rate, redact};
  std::vector<std::size_t> order = {0, 1, 2};
  do {
    auto mock = started_mock();
    mock->set_output("ls", "xa\nb\na\n");
    SandboxPtr sandbox = mock;
    for (const std::size_t i : order) sandbox = stack[i](sandbox);
    int failed = 0;
    sandbox = with_audit(sandbox, [&](const AuditEntry& entry) { failed += entry.failed ? 1 : 0; });
    EXPECT_EQ(sandbox->exec("ls")->out.bytes, "x[redacted:A]");
    EXPECT_TRUE(sandbox->write_file("f", "1234"));
    EXPECT_FALSE(sandbox->write_file("f", "5"));
    EXPECT_EQ(failed, 1);
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace belljar
