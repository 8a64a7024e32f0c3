// Files and the life of a sandbox where only shell text runs.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/files.h"
#include "belljar/policy.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"
#include "remote/shell/command_status.h"
#include "remote/shell/files.h"
#include "support/local_shell.h"
#include "support/shell_bench.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using test::Fault;

class ShellFiles : public test::ShellBench {};

TEST_F(ShellFiles, AFileIsOneCall) {
  const auto sandbox = create();
  int before = cloud_->calls();
  ASSERT_TRUE(sandbox->write_file("d/file", "\0\xff\n"s));
  EXPECT_EQ(sandbox->read_file("d/file").value(), "\0\xff\n"s);
  EXPECT_EQ(sandbox->stat("d/file")->size, 3U);
  EXPECT_EQ(sandbox->list("d")->size(), 1U);
  EXPECT_EQ(cloud_->calls() - before, 4);
}

TEST_F(ShellFiles, LargeOnesTakeTheServicesOwnWay) {
  cloud_->takes_files = true;
  const auto sandbox = create();
  std::string bytes(3'000'000, 'x');
  for (std::size_t at = 0; at < bytes.size(); at += 7) bytes[at] = static_cast<char>(at / 7);
  int before = cloud_->file_calls();
  ASSERT_TRUE(sandbox->write_file("large", bytes));
  EXPECT_TRUE(sandbox->read_file("large").value() == bytes);
  EXPECT_EQ(cloud_->file_calls() - before, 2);
  EXPECT_TRUE(sandbox->read_file("large", {.offset = 1'000'000, .limit = 1'500'000}).value() == bytes.substr(1'000'000, 1'500'000));
  cloud_->takes_files = false;
  EXPECT_TRUE(sandbox->read_file("large").value() == bytes) << "and the other";
}

TEST_F(ShellFiles, EveryShellAndBusyboxAlone) {
  const test::TempDir bin;
  ASSERT_EQ(std::system(("busybox --install -s " + bin.path()).c_str()), 0);
  for (const auto& [shell, path] : std::vector<std::pair<std::string, std::string>>{
           {"/bin/dash", "/usr/bin:/bin"}, {"/bin/bash --posix", "/usr/bin:/bin"}, {"/bin/busybox sh", bin.path()}}) {
    SCOPED_TRACE(shell);
    cloud_->shell = shell;
    cloud_->path = path;
    const auto sandbox = create();
    const std::string name = "odd '\n\xff$(x)/-n *";
    EXPECT_EQ(sandbox->exec("echo x; exit 4").value().exit_code, 4);
    ASSERT_TRUE(sandbox->write_file(name, "one\n"));
    ASSERT_TRUE(sandbox->write_file(name, "two\n", {.how = WriteMode::kAppend}));
    const auto both = sandbox->read_file(name);
    ASSERT_TRUE(both) << both.error().line();
    EXPECT_EQ(*both, "one\ntwo\n");
    ASSERT_TRUE(sandbox->write_file(name, "new", {.how = WriteMode::kAtomic, .mode = 0640}));
    ASSERT_TRUE(sandbox->write_file(name, "newer", {.how = WriteMode::kAtomic}));
    const FileInfo info = sandbox->stat(name).value();
    EXPECT_EQ(info.mode, 0640U) << "kept";
    EXPECT_EQ(info.size, 5U);
    EXPECT_EQ(info.type, FileType::kFile);
    EXPECT_EQ(info.path, name);
    EXPECT_LT(std::chrono::system_clock::now() - info.modified, 5min);
    const auto found = sandbox->glob("**").value();
    ASSERT_EQ(found.files.size(), 2U);
    EXPECT_EQ(found.files[1].path, name);
    EXPECT_TRUE(found.complete);
    ASSERT_EQ(sandbox->exec("ln -s 'a b' link").value().exit_code, 0);
    const auto link = sandbox->stat("link");
    ASSERT_TRUE(link) << link.error().line();
    EXPECT_EQ(link->target, "a b");
    const auto entries = sandbox->list();
    ASSERT_TRUE(entries) << entries.error().line();
    ASSERT_EQ(entries->size(), 2U);
    EXPECT_EQ(entries->at(0).target, "a b");
    ASSERT_TRUE(sandbox->remove("link"));
    ASSERT_TRUE(sandbox->remove(name));
    EXPECT_EQ(sandbox->stat(name).error().code(), Code::kNotFound);
    ASSERT_TRUE(sandbox->remove("odd '\n\xff$(x)", {.depth = Depth::kTree}));
    ASSERT_TRUE(sandbox->kill());
  }
}

TEST_F(ShellFiles, ErrorsSayWhichKind) {
  const auto sandbox = create();
  ASSERT_TRUE(sandbox->write_file("d/file", "x"));
  ASSERT_TRUE(sandbox->exec("mkfifo fifo"));
  const auto code = [](const auto& result) { return result ? Code::kUnknown : result.error().code(); };
  EXPECT_EQ(code(sandbox->read_file("missing")), Code::kNotFound);
  EXPECT_EQ(code(sandbox->read_file("d")), Code::kFailedPrecondition);
  EXPECT_EQ(code(sandbox->read_file("fifo")), Code::kFailedPrecondition);
  EXPECT_EQ(code(sandbox->write_file("fifo", "x")), Code::kFailedPrecondition);
  EXPECT_EQ(code(sandbox->write_file("d/", "x")), Code::kFailedPrecondition);
  EXPECT_EQ(code(sandbox->write_file("no/file", "x", {.parents = Parents::kMustExist})), Code::kNotFound);
  EXPECT_EQ(code(sandbox->make_dir("d/file")), Code::kFailedPrecondition);
  EXPECT_EQ(code(sandbox->make_dir("d/file", {.parents = Parents::kMustExist})), Code::kAlreadyExists);
  EXPECT_EQ(code(sandbox->make_dir("no/d", {.parents = Parents::kMustExist})), Code::kNotFound);
  EXPECT_EQ(code(sandbox->list("missing")), Code::kNotFound);
  EXPECT_EQ(code(sandbox->list("d/file")), Code::kFailedPrecondition);
  EXPECT_EQ(code(sandbox->rename("missing", "x")), Code::kNotFound);
  EXPECT_EQ(code(sandbox->rename("d/file", "no/x")), Code::kNotFound);
  EXPECT_EQ(code(sandbox->rename("fifo", "d")), Code::kFailedPrecondition) << "nothing is moved into it";
  EXPECT_EQ(code(sandbox->remove("d")), Code::kFailedPrecondition);
  EXPECT_EQ(code(sandbox->remove("missing")), Code::kNotFound);
  EXPECT_EQ(code(sandbox->write_file("../x", "x")), Code::kInvalidArgument);
  EXPECT_EQ(code(sandbox->exec("true", {.timeout = 0ms})), Code::kInvalidArgument);
  EXPECT_EQ(code(sandbox->write_file("d/file/x", "x")), Code::kAlreadyExists);
}

TEST_F(ShellFiles, AppendKeepsWhatOthersAppend) {
  const auto sandbox = create();
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i)
    writers.emplace_back([&] {
      for (int turn = 0; turn < 3; ++turn) EXPECT_TRUE(sandbox->write_file("log/lines", "one line\n", {.how = WriteMode::kAppend}));
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(sandbox->exec("grep -cx 'one line' log/lines").value().out.bytes, "24\n");
}

TEST_F(ShellFiles, AWriteWhoseStartIsLostChangesNothing) {
  const auto sandbox = create();
  ASSERT_TRUE(sandbox->write_file("file", "old"));
  cloud_->fault = [](const std::string& script) {
    return script.find("watch") != std::string::npos ? Fault::kNever : Fault::kNone;
  };
  EXPECT_EQ(sandbox->write_file("file", " new", {.how = WriteMode::kAppend}).error().code(), Code::kUnavailable);
  cloud_->fault = nullptr;
  EXPECT_EQ(sandbox->read_file("file").value(), "old");
}

// --- life

TEST_F(ShellFiles, AStopThatFailedIsTriedAgain) {
  for (const CloudOnStop on_stop : {CloudOnStop::kKill, CloudOnStop::kPause}) {
    const auto sandbox = create(on_stop);
    cloud_->broken_control = Code::kUnavailable;
    EXPECT_EQ(sandbox->stop().error().code(), Code::kUnavailable);
    EXPECT_EQ(sandbox->stop().error().code(), Code::kUnavailable);
    cloud_->broken_control.reset();
    EXPECT_TRUE(sandbox->stop());
    EXPECT_EQ(sandbox->sandbox_id().empty(), on_stop == CloudOnStop::kKill);
    EXPECT_TRUE(sandbox->stop());
    EXPECT_EQ(sandbox->kill().value(), on_stop == CloudOnStop::kPause);
    EXPECT_EQ(cloud_->alive(), 0U);
  }
}

TEST_F(ShellFiles, WhatWasMadeAndCannotBeUsedIsEnded) {
  config_.workspace = "relative";
  EXPECT_EQ(refusal().code(), Code::kInvalidArgument);
  EXPECT_EQ(cloud_->calls(), 0);
  config_.workspace = "/proc/nothing/can/be/made/here";
  EXPECT_NE(refusal().code(), Code::kUnknown);
  EXPECT_EQ(cloud_->alive(), 0U);
  config_.workspace.clear();
  cloud_->path = "/nowhere";
  EXPECT_EQ(refusal().code(), Code::kFailedPrecondition);
  EXPECT_EQ(cloud_->alive(), 0U);
  cloud_->path = "/usr/bin:/bin";
  EXPECT_EQ(refusal().what(), "it was created");
}

TEST_F(ShellFiles, OneIsFoundAgainByItsId) {
  const auto first = create();
  ASSERT_TRUE(first->write_file("file", "kept"));
  options_.sandbox_id = first->sandbox_id();
  {
    const auto second = create();
    EXPECT_EQ(second->sandbox_id(), first->sandbox_id());
    EXPECT_EQ(second->read_file("file").value(), "kept");
    EXPECT_TRUE(second->set_timeout(10min));
    EXPECT_EQ(second->set_timeout(0ms).error().code(), Code::kInvalidArgument);
  }
  EXPECT_TRUE(first->health()) << "left, not killed";
  EXPECT_TRUE(first->kill().value());
  EXPECT_EQ(first->exec("true").error().code(), Code::kFailedPrecondition);
  options_.sandbox_id = "unknown";
  EXPECT_EQ(refusal().code(), Code::kNotFound);
}

// --- policy

TEST_F(ShellFiles, WhatCannotBeHeldIsSaidAndRefused) {
  const auto clause = [&](const std::string& name) {
    const auto sandbox = create();
    for (const EnforcementClause& found : sandbox->enforcement()) {
      if (found.clause == name) return std::string(to_string(found.enforced));
    }
    return "absent"s;
  };
  EXPECT_EQ(clause("filesystem.root"), "full");
  EXPECT_EQ(clause("filesystem.write"), "none");
  EXPECT_EQ(clause("network"), "partial") << "as the service says";
  config_.policy.limits.memory = 512_MiB;
  EXPECT_EQ(clause("limits.memory"), "partial");
  config_.policy.limits.pids = 10;
  EXPECT_EQ(refusal().code(), Code::kFailedPrecondition);
  config_.policy.limits.pids.reset();
  config_.policy.limits.disk = 1_GiB;
  EXPECT_EQ(refusal().code(), Code::kUnimplemented) << "by the service itself";
  config_.policy.limits.disk.reset();
  config_.policy.network.mode = NetMode::kProxy;
  EXPECT_EQ(refusal().code(), Code::kUnimplemented);
  config_.policy.network.mode = NetMode::kNone;
  config_.on_stop = OnStop::kClean;
  EXPECT_NE(refusal().next().find("ShellOptions"), std::string::npos);
  config_.on_stop = OnStop::kKeep;
  EXPECT_EQ(refusal().what(), "it was created");
}

TEST_F(ShellFiles, OnlyWhatIsNamedLeavesThisMachine) {
  const auto env = [&] { return create()->exec("env").value().out.bytes; };
  EXPECT_EQ(env().find("named"), std::string::npos);
  EXPECT_NE(env().find("FROM_IMAGE=yes"), std::string::npos);
  config_.policy.environment.pass = {"TOLD"};
  config_.policy.environment.set = {{"OWN", "value"}};
  const std::string more = env();
  EXPECT_NE(more.find("TOLD=named\n"), std::string::npos);
  EXPECT_NE(more.find("OWN=value\n"), std::string::npos);
  EXPECT_EQ(more.find("/nowhere"), std::string::npos);
}

// --- what is read of what was said

TEST(ShellLooked, IsTakenWholeOrNotAtAll) {
  using remote::shell::parse_command_status;
  const std::string text = "s 12 137 signal 0 -\no 0 3 1\nYWJj\ne 5 0 0\n.\n";
  const auto looked = parse_command_status(text, false, false);
  ASSERT_TRUE(looked);
  EXPECT_EQ(looked->pid, 12);
  EXPECT_EQ(looked->status, 137);
  EXPECT_TRUE(looked->signalled);
  EXPECT_EQ(looked->out.bytes, "abc");
  EXPECT_TRUE(looked->out.more);
  EXPECT_EQ(looked->err.base, 5U);
  for (std::size_t size = 0; size + 1 < text.size(); ++size)
    EXPECT_FALSE(parse_command_status(text.substr(0, size), false, false)) << size;
  EXPECT_FALSE(parse_command_status("s 12 - - 0 -\no 0 4 1\nYWJj\ne 5 0 0\n.\n", false, false)) << "one byte is missing";
  EXPECT_TRUE(parse_command_status("s 12 - - 0 -\no 0 4000 1\ne 5 0 0\n.\n", true, false)) << "only counted";
}

TEST(ShellRecords, OfBothKinds) {
  std::vector<FileInfo> files;
  EXPECT_TRUE(remote::shell::parse_records("f 3 640 1700000000.5000000000 a b\0\0l 1 777 1.0 l\0to\0"s, files));
  EXPECT_TRUE(remote::shell::parse_records("x41ed 4096 1700000000 dir\0\0"s, files));
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files[0].path, "a b");
  EXPECT_EQ(files[0].mode, 0640U);
  EXPECT_EQ(files[0].modified.time_since_epoch(), 1700000000500ms);
  EXPECT_EQ(files[1].target, "to");
  EXPECT_EQ(files[2].type, FileType::kDirectory);
  EXPECT_EQ(files[2].mode, 0755U);
  for (const auto& wrong : {"f 3"s, "f 3 640 17 name\0"s, "x 3"s, "\0"s, "f 3 999 1.0 n\0\0"s}) {
    EXPECT_FALSE(remote::shell::parse_records(wrong, files)) << wrong;
  }
}

}  // namespace
}  // namespace belljar
