// One suite for every backend. Each row is a fact about the Sandbox interface; for each backend it is the same, refused by name, or
// not applicable, and the table at the end says which.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "belljar/aliyun.h"
#include "belljar/cloud.h"
#include "belljar/decorators.h"
#include "belljar/e2b.h"
#include "belljar/sandbox.h"
#include "belljar/volcengine.h"
#include "conformance/rows.h"
#include "remote/shell/sandbox.h"
#include "support/as_user.h"
#include "support/engine.h"
#include "support/eventually.h"
#include "support/fake_aliyun.h"
#include "support/fake_e2b.h"
#include "support/fake_volcengine.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/local_shell.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

const char* to_text(Outcome outcome) {
  if (outcome == Outcome::kSame) return "same";
  return outcome == Outcome::kRefused ? "refused by name" : "not applicable";
}

std::map<std::string, std::map<std::string, std::string>>& table() {
  static std::map<std::string, std::map<std::string, std::string>> rows;
  return rows;
}

std::vector<Row> general_rows() {
  return {
      {"exit codes and streams", true,
       [](const Bench& bench) {
         const ExecResult result = run(bench, "echo out; echo err >&2; exit 3");
         EXPECT_EQ(result.exit_code, 3);
         EXPECT_EQ(result.reason, Reason::kExited);
         EXPECT_EQ(result.out.bytes, "out\n");
         EXPECT_EQ(result.err.bytes, "err\n");
         return Outcome::kSame;
       }},
      {"a signal is a result", true,
       [](const Bench& bench) {
         const ExecResult result = run(bench, "kill -9 $$");
         EXPECT_EQ(result.exit_code, 137);
         EXPECT_EQ(result.reason, Reason::kSignalled);
         return Outcome::kSame;
       }},
      {"a missing program is a result", false,
       [](const Bench& bench) {
         auto result = bench.sandbox->exec(Command{.argv = {"no-such-program"}});
         EXPECT_TRUE(result) << result.error().line();
         if (result) {
           EXPECT_EQ(result->exit_code, 127);
         }
         return Outcome::kSame;
       }},
      {"argv, environment, cwd, stdin", true,
       [](const Bench& bench) {
         EXPECT_TRUE(bench.sandbox->make_dir("sub"));
         auto result = bench.sandbox->exec(
             Command{
                 .argv = {"/bin/sh", "-c", "cat; echo \"$WORD $1\"; pwd", "sh", "a  b"}, .cwd = "sub", .env = {{"WORD", "hello"}}},
             {.stdin_bytes = "in "});
         EXPECT_TRUE(result);
         if (result) {
           EXPECT_EQ(result->out.bytes, "in hello a  b\n" + bench.sandbox->workspace() + "/sub\n");
         }
         return Outcome::kSame;
       }},
      {"stdin that nobody gave is at its end", true,
       [](const Bench& bench) {
         // Where it were ours, this would wait: the writer stays.
         int ends[2];
         EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
         const UniqueFd reader(ends[0]), writer(ends[1]), before(::fcntl(0, F_DUPFD_CLOEXEC, 3));
         EXPECT_EQ(::dup2(reader.get(), 0), 0);
         const ExecResult result = run(bench, "cat; echo ended", {.timeout = 30s});
         EXPECT_EQ(before.valid() ? ::dup2(before.get(), 0) : ::close(0), 0);
         EXPECT_EQ(result.reason, Reason::kExited);
         EXPECT_EQ(result.out.bytes, "ended\n");
         return Outcome::kSame;
       }},
      {"large stdin arrives whole", true,
       [](const Bench& bench) {
         EXPECT_EQ(run(bench, "wc -c", {.stdin_bytes = std::string(3'000'000, 'x')}).out.bytes, "3000000\n");
         return Outcome::kSame;
       }},
      {"a timeout ends the tree, daemons too", true,
       [](const Bench& bench) {
         const std::uint64_t idle = bench.sandbox->stats().value().processes;
         ExecResult result;  // a busy machine needs its time until `before`
         auto timeout = 150ms;
         do {
           timeout *= 2;
           result = run(bench, "trap '' TERM; (trap '' TERM; setsid sh -c 'sleep 300 & wait' & ) ; echo before; sleep 300",
                        {.timeout = timeout});
         } while (result.out.bytes.empty() && timeout < 30s);
         EXPECT_EQ(result.exit_code, 124);
         EXPECT_EQ(result.reason, Reason::kTimeout);
         EXPECT_EQ(result.out.bytes, "before\n");
         EXPECT_EQ(result.message, "command timeout after " + std::to_string(timeout.count()) + "ms");
         // What was killed is counted until init has reaped it.
         std::uint64_t left = 0;
         EXPECT_TRUE(test::eventually([&] { return (left = bench.sandbox->stats().value().processes) == idle; })) << left;
         return Outcome::kSame;
       }},
      {"a timeout that is not positive is refused", false,
       [](const Bench& bench) {
         EXPECT_EQ(bench.sandbox->exec("true", {.timeout = -1ms}).error().code(), Code::kInvalidArgument);
         EXPECT_EQ(bench.sandbox->exec("true", {.timeout = 0ms}).error().code(), Code::kInvalidArgument);
         EXPECT_TRUE(bench.sandbox->exec("true", {.timeout = 99999999s}));
         return Outcome::kSame;
       }},
      {"output is capped and counted", true,
       [](const Bench& bench) {
         const ExecResult result = run(bench, "head -c 300000 /dev/zero; head -c 10 /dev/zero >&2");
         EXPECT_EQ(result.out.bytes.size(), 200'000U);
         EXPECT_EQ(result.out.total, 300'000U);
         EXPECT_EQ(result.out.omitted, 100'000U);
         EXPECT_EQ(result.err.total, 10U);
         return Outcome::kSame;
       }},
      {"output streams to callbacks", true,
       [](const Bench& bench) {
         std::string seen;
         run(bench, "echo one; echo two", {.on_stdout = [&](std::string_view bytes) { seen += bytes; }});
         EXPECT_EQ(seen, "one\ntwo\n");
         return Outcome::kSame;
       }},
      {"a callback that throws ends the command", true,
       [](const Bench& bench) {
         EXPECT_THROW((void)bench.sandbox->exec("echo x; sleep 300", {.on_stdout = [](std::string_view) { throw 7; }}), int);
         EXPECT_EQ(run(bench, "echo still here").out.bytes, "still here\n");
         return Outcome::kSame;
       }},
      {"cancel before the start, and during", true,
       [](const Bench& bench) {
         const CancelToken early = *CancelToken::create();
         early.cancel();
         EXPECT_EQ(run(bench, "touch early").reason, Reason::kExited);
         EXPECT_EQ(run(bench, "touch ran; sleep 300", {.cancel = early}).reason, Reason::kCancelled);
         auto process = bench.sandbox->spawn(shell_command("touch ran; sleep 300"), {.cancel = early});
         EXPECT_TRUE(process) << process.error().line();
         if (process) {
           EXPECT_EQ((*process)->wait()->value().reason, Reason::kCancelled);
           EXPECT_EQ((*process)->signal(SIGTERM).error().code(), Code::kFailedPrecondition);
         }
         EXPECT_EQ(bench.sandbox->exec("touch ran", {.cancel = early})->reason, Reason::kCancelled);
         EXPECT_FALSE(bench.sandbox->stat("ran")) << "nothing was started";
         EXPECT_TRUE(bench.sandbox->stat("early"));
         const CancelToken late = *CancelToken::create();
         const ExecResult result =
             run(bench, "echo ready; sleep 300", {.cancel = late, .on_stdout = [&](std::string_view) { late.cancel(); }});
         EXPECT_EQ(result.reason, Reason::kCancelled);
         EXPECT_NE(result.exit_code, 0);
         return Outcome::kSame;
       }},
      {"state persists between commands", true,
       [](const Bench& bench) {
         run(bench, "echo kept >file; sleep 200 >/dev/null 2>&1 & echo $! >pid");
         EXPECT_EQ(run(bench, "kill -0 $(cat pid) && cat file && kill $(cat pid)").out.bytes, "kept\n");
         return Outcome::kSame;
       }},
      {"NUL bytes in commands are refused", false,
       [](const Bench& bench) {
         EXPECT_EQ(bench.sandbox->exec(Command{.argv = {"echo", std::string("a\0b", 3)}}).error().code(), Code::kInvalidArgument);
         EXPECT_EQ(bench.sandbox->exec(Command{}).error().code(), Code::kInvalidArgument);
         return Outcome::kSame;
       }},
      {"a cwd outside is refused", false,
       [](const Bench& bench) {
         const auto refused = bench.sandbox->exec(Command{.argv = {"true"}, .cwd = "/etc"});
         EXPECT_FALSE(refused);
         if (!refused) {
           EXPECT_EQ(refused.error().what(), "workdir escapes workspace: /etc");
         }
         EXPECT_EQ(bench.sandbox->exec(Command{.argv = {"true"}, .cwd = "missing"}).error().code(), Code::kNotFound);
         EXPECT_TRUE(bench.sandbox->make_dir("inside"));
         EXPECT_TRUE(bench.sandbox->exec(Command{.argv = {"true"}, .cwd = "inside"}));
         return Outcome::kSame;
       }},
      {"files: write, append, read, stat, list", false,
       [](const Bench& bench) {
         Sandbox& sandbox = *bench.sandbox;
         const std::string bytes("\0\xff binary \n", 11);
         EXPECT_TRUE(sandbox.write_file("f/a/b.bin", bytes));
         EXPECT_EQ(sandbox.read_file("f/a/b.bin").value(), bytes);
         EXPECT_TRUE(sandbox.write_file("f/a/b.bin", "tail", {.how = WriteMode::kAppend}));
         EXPECT_EQ(sandbox.read_file("f/a/b.bin").value(), bytes + "tail");
         EXPECT_EQ(sandbox.read_file("f/a/b.bin", {.offset = 11, .limit = 2}).value(), "ta");
         EXPECT_TRUE(sandbox.write_file("f/a/b.bin", "new", {.how = WriteMode::kAtomic, .mode = 0600}));
         EXPECT_EQ(sandbox.stat("f/a/b.bin")->size, 3U);
         EXPECT_EQ(sandbox.stat("f/a/b.bin")->mode, 0600U);
         EXPECT_EQ(sandbox.stat("f/a")->type, FileType::kDirectory);
         EXPECT_TRUE(sandbox.write_file("f/..foo", "legal"));
         const auto entries = sandbox.list("f");
         EXPECT_TRUE(entries);
         if (entries) {
           EXPECT_EQ(entries->size(), 2U);
         }
         if (entries) {
           EXPECT_EQ(entries->at(0).path, "..foo");
         }
         return Outcome::kSame;
       }},
      {"files: make_dir, rename, remove", false,
       [](const Bench& bench) {
         Sandbox& sandbox = *bench.sandbox;
         EXPECT_TRUE(sandbox.make_dir("d/e/f"));
         EXPECT_EQ(sandbox.make_dir("d", {.parents = Parents::kMustExist}).error().code(), Code::kAlreadyExists);
         EXPECT_TRUE(sandbox.write_file("d/e/x", "1"));
         EXPECT_TRUE(sandbox.rename("d/e", "d/g"));
         EXPECT_EQ(sandbox.read_file("d/g/x").value(), "1");
         EXPECT_EQ(sandbox.remove("d/g").error().code(), Code::kFailedPrecondition);
         EXPECT_TRUE(sandbox.remove("d", {.depth = Depth::kTree}));
         EXPECT_EQ(sandbox.stat("d").error().code(), Code::kNotFound);
         EXPECT_EQ(sandbox.remove("d").error().code(), Code::kNotFound);
         EXPECT_EQ(sandbox.remove(".").error().code(), Code::kInvalidArgument);
         return Outcome::kSame;
       }},
      {"files: glob and grep", false,
       [](const Bench& bench) {
         Sandbox& sandbox = *bench.sandbox;
         EXPECT_TRUE(sandbox.write_file("g/a.cc", "one\nNeedle two\n"));
         EXPECT_TRUE(sandbox.write_file("g/h/b.cc", "needle\n"));
         const auto found = sandbox.glob("g/**/*.cc");
         EXPECT_TRUE(found);
         if (found) {
           EXPECT_EQ(found->files.size(), 2U);
         }
         const auto exact = sandbox.grep("needle");
         EXPECT_TRUE(exact);
         if (exact) {
           EXPECT_EQ(exact->matches, (std::vector<GrepMatch>{{"g/h/b.cc", 1, "needle"}}));
         }
         const auto folded = sandbox.grep("needle", {.files = "g/*.cc", .letters = Case::kIgnoreAscii});
         EXPECT_TRUE(folded);
         if (folded) {
           EXPECT_EQ(folded->matches, (std::vector<GrepMatch>{{"g/a.cc", 2, "Needle two"}}));
         }
         return Outcome::kSame;
       }},
      {"what makes no sense is refused", false,
       [](const Bench& bench) {
         Sandbox& sandbox = *bench.sandbox;
         EXPECT_EQ(sandbox.exec(Command{.argv = {"true"}, .env = {{"a=b", "x"}}}).error().code(), Code::kInvalidArgument);
         EXPECT_EQ(sandbox.exec(Command{.argv = {"true"}, .env = {{"a", std::string("x\0y", 3)}}}).error().code(),
                   Code::kInvalidArgument);
         if (bench.elsewhere) return Outcome::kNotApplicable;  // names and walks are that machine's
         EXPECT_TRUE(sandbox.write_file("g/file", "senseless\n"));
         EXPECT_EQ(sandbox.glob("**", {.timeout = -1ms}).error().code(), Code::kInvalidArgument);
         EXPECT_EQ(sandbox.grep("senseless", {.walk = {.timeout = 0ms}}).error().code(), Code::kInvalidArgument);
         EXPECT_EQ(sandbox.write_file("g/", "x").error().code(), Code::kFailedPrecondition);
         EXPECT_FALSE(sandbox.write_file(std::string(256, 'n'), "x"));
         EXPECT_TRUE(sandbox.write_file(std::string(255, 'n'), "x"));
         const CancelToken cancelled = *CancelToken::create();
         cancelled.cancel();
         EXPECT_FALSE(sandbox.glob("**", {.cancel = cancelled})->complete);
         EXPECT_FALSE(sandbox.grep("senseless", {.walk = {.cancel = cancelled}})->complete);
         EXPECT_TRUE(sandbox.glob("**")->complete);
         EXPECT_EQ(sandbox.grep("senseless")->matches.size(), 1U);
         return Outcome::kSame;
       }},
      {"files: paths that lead out are refused", false,
       [](const Bench& bench) {
         Sandbox& sandbox = *bench.sandbox;
         expect_escape(sandbox.read_file("/etc/passwd"), "/etc/passwd");
         expect_escape(sandbox.read_file("../../etc/passwd"), "../../etc/passwd");
         expect_escape(sandbox.write_file(sandbox.workspace() + "2/x", "x"), sandbox.workspace() + "2/x");
         expect_escape(sandbox.make_dir("../out"), "../out");
         expect_escape(sandbox.remove("../out"), "../out");
         expect_escape(sandbox.rename("../a", "b"), "../a");
         expect_escape(sandbox.list(".."), "..");
         // As text they lead out, whatever is missing on the way.
         expect_escape(sandbox.read_file("nope/../../x"), "nope/../../x");
         expect_escape(sandbox.list("nope/../../x"), "nope/../../x");
         expect_escape(sandbox.remove("nope/../../x"), "nope/../../x");
         expect_escape(sandbox.write_file("nope/../../x", "x"), "nope/../../x");
         EXPECT_EQ(sandbox.read_file("nope/x").error().code(), Code::kNotFound) << "the twin";
         EXPECT_TRUE(sandbox.write_file(sandbox.workspace() + "/absolute", "x"));
         EXPECT_EQ(sandbox.read_file("absolute").value(), "x");
         EXPECT_EQ(sandbox.read_file(std::string("a\0b", 3)).error().code(), Code::kInvalidArgument);
         return Outcome::kSame;
       }},
      {"files: links that lead out are refused", true,
       [](const Bench& bench) {
         Sandbox& sandbox = *bench.sandbox;
         run(bench, "ln -s /etc/passwd out; ln -s /etc outdir; ln -s ../.. up; echo x >real; ln -s real in");
         if (bench.elsewhere) {
           EXPECT_EQ(sandbox.read_file("in").value(), "x\n");
           EXPECT_EQ(sandbox.stat("out")->target, "/etc/passwd");
           return Outcome::kNotApplicable;  // that machine is the boundary
         }
         expect_escape(sandbox.read_file("out"), "out");
         expect_escape(sandbox.write_file("out", "x"), "out");
         expect_escape(sandbox.write_file("outdir/x", "x"), "outdir/x");
         expect_escape(sandbox.list("up"), "up");
         run(bench, "ln -s nowhere dangling; mkdir there; ln -s there todir");
         EXPECT_EQ(sandbox.make_dir("dangling").error().code(), Code::kAlreadyExists);
         EXPECT_EQ(sandbox.make_dir("dangling/x").error().code(), Code::kAlreadyExists);
         EXPECT_TRUE(sandbox.make_dir("todir/x"));
         EXPECT_EQ(sandbox.stat("there/x")->type, FileType::kDirectory);
         EXPECT_EQ(sandbox.read_file("in").value(), "x\n");
         EXPECT_EQ(sandbox.stat("out")->target, "/etc/passwd");
         return Outcome::kSame;
       }},
      {"files: FIFOs hang nobody", true,
       [](const Bench& bench) {
         Sandbox& sandbox = *bench.sandbox;
         run(bench, "mkfifo fifo");
         EXPECT_EQ(sandbox.read_file("fifo").error().code(), Code::kFailedPrecondition);
         EXPECT_EQ(sandbox.write_file("fifo", "x").error().code(), Code::kFailedPrecondition);
         EXPECT_EQ(sandbox.stat("fifo")->type, FileType::kOther);
         EXPECT_TRUE(sandbox.grep("x"));
         return Outcome::kSame;
       }},
      {"files: of the wrong type are errors", false,
       [](const Bench& bench) {
         Sandbox& sandbox = *bench.sandbox;
         EXPECT_TRUE(sandbox.write_file("t/file", "x"));
         EXPECT_EQ(sandbox.read_file("t").error().code(), Code::kFailedPrecondition);
         EXPECT_EQ(sandbox.write_file("t", "x").error().code(), Code::kFailedPrecondition);
         EXPECT_EQ(sandbox.list("t/file").error().code(), Code::kFailedPrecondition);
         EXPECT_EQ(sandbox.write_file("t/file", "x", {.mode = 04755}).error().code(), Code::kInvalidArgument);
         return Outcome::kSame;
       }},
      {"spawn: write, wait, signal", true,
       [](const Bench& bench) {
         auto process = bench.sandbox->spawn(shell_command("cat"), {.input = SpawnInput::kPipe});
         EXPECT_TRUE(process) << process.error().line();
         if (!process) return Outcome::kSame;
         EXPECT_FALSE((*process)->wait(20ms)->has_value());
         EXPECT_TRUE((*process)->write_stdin("hello"));
         EXPECT_TRUE((*process)->close_stdin());
         EXPECT_EQ((*process)->wait()->value().out.bytes, "hello");
         auto sleeper = bench.sandbox->spawn(Command{.argv = {"sleep", "300"}});
         EXPECT_TRUE((*sleeper)->signal(SIGTERM));
         EXPECT_EQ((*sleeper)->wait()->value().signal, SIGTERM);
         EXPECT_EQ((*sleeper)->signal(SIGTERM).error().code(), Code::kFailedPrecondition);
         return Outcome::kSame;
       }},
      {"spawn: kill ends the tree, daemons too", true,
       [](const Bench& bench) {
         const std::uint64_t idle = bench.sandbox->stats().value().processes;
         auto process =
             bench.sandbox->spawn(shell_command("(setsid sh -c 'sleep 300 & wait' &) ; trap '' TERM; echo up >up; sleep 300"));
         EXPECT_TRUE(process) << process.error().line();
         if (!process) return Outcome::kSame;
         EXPECT_TRUE(test::eventually([&] { return bench.sandbox->read_file("up").has_value(); }));
         EXPECT_TRUE((*process)->kill());
         const ExecResult result = (*process)->wait()->value();
         EXPECT_EQ(result.reason, Reason::kSignalled);
         EXPECT_EQ(result.exit_code, 137);
         EXPECT_EQ(result.message, "killed by SIGKILL");
         EXPECT_TRUE(test::eventually([&] { return bench.sandbox->stats().value().processes == idle; }));
         EXPECT_EQ((*process)->kill().error().code(), Code::kFailedPrecondition);
         return Outcome::kSame;
       }},
      {"spawn: terminate ends the tree, daemons too", true,
       [](const Bench& bench) {
         const std::uint64_t idle = bench.sandbox->stats().value().processes;
         auto process =
             bench.sandbox->spawn(shell_command("(setsid sh -c 'trap \"\" TERM; sleep 300 & wait; sleep 300' &) ; trap 'exit 7' "
                                                "TERM; echo up >ready; while :; do sleep "
                                                "0.05; done"));
         EXPECT_TRUE(process) << process.error().line();
         if (!process) return Outcome::kSame;
         EXPECT_TRUE(test::eventually([&] { return bench.sandbox->read_file("ready").has_value(); }));
         EXPECT_TRUE((*process)->terminate());
         const ExecResult result = (*process)->wait()->value();
         EXPECT_EQ(result.reason, Reason::kExited);
         EXPECT_EQ(result.exit_code, 7) << "its own";
         EXPECT_TRUE(test::eventually([&] { return bench.sandbox->stats().value().processes == idle; }));
         return Outcome::kSame;
       }},
      {"spawn: a terminal", true,
       [](const Bench& bench) {
         auto process = bench.sandbox->spawn(shell_command("stty size; test -t 0 && read line && echo got $line; stty size"),
                                             {.terminal = TerminalSize{30, 100}});
         if (!bench.terminals) {
           EXPECT_EQ(process.error().code(), Code::kUnimplemented);
           EXPECT_TRUE(bench.sandbox->spawn(shell_command("true")));
           return Outcome::kRefused;
         }
         EXPECT_TRUE(process) << process.error().line();
         if (!process) return Outcome::kSame;
         EXPECT_TRUE((*process)->resize(40, 120));
         EXPECT_TRUE((*process)->write_stdin("line\n"));
         const ExecResult result = (*process)->wait()->value();
         EXPECT_NE(result.out.bytes.find("got line"), std::string::npos) << result.out.bytes;
         EXPECT_NE(result.out.bytes.find("40 120"), std::string::npos) << result.out.bytes;
         return Outcome::kSame;
       }},
      {"spawn: detach outlives the handle, not the sandbox", true,
       [](const Bench& bench) {
         auto process = bench.sandbox->spawn(shell_command("echo $$ >detached; exec sleep 300"));
         EXPECT_TRUE((*process)->detach());
         process->reset();
         EXPECT_EQ(run(bench, "while ! test -s detached; do sleep 0.01; done; kill -0 $(cat detached)").exit_code, 0);
         return Outcome::kSame;
       }},
      {"spawn is refused by name where there are no processes", false,
       [](const Bench& bench) {
         auto process = bench.sandbox->spawn(shell_command("true"));
         if (process) {
           EXPECT_EQ((*process)->wait()->value().exit_code, 0);
           return Outcome::kSame;
         }
         EXPECT_EQ(process.error().code(), Code::kUnimplemented);
         return Outcome::kRefused;
       }},
      {"many commands at once", true,
       [](const Bench& bench) {
         std::vector<std::thread> threads;
         std::atomic<int> good{0};
         const int count = std::min(bench.at_once, 100);
         for (int i = 0; i < count; ++i)
           threads.emplace_back([&, i] {
             const auto result = bench.sandbox->exec("sleep 0.05; echo " + std::to_string(i));
             if (result && result->out.bytes == std::to_string(i) + "\n") ++good;
           });
         for (std::thread& thread : threads) thread.join();
         EXPECT_EQ(good.load(), count);
         return Outcome::kSame;
       }},
      {"names and words need not be text", false,
       [](const Bench& bench) {
         Sandbox& sandbox = *bench.sandbox;
         const std::string name = "n/new\nline \xff\xfe\x1b[31m";
         if (bench.text_only) {
           EXPECT_EQ(sandbox.write_file(name, "x").error().code(), Code::kUnimplemented);
           EXPECT_EQ(sandbox.exec(Command{.argv = {"echo", "\xff"}}).error().code(), Code::kUnimplemented);
           EXPECT_TRUE(sandbox.write_file("n/new\nline \u00e9\x1b[31m", "x"));
           EXPECT_EQ(sandbox.list("n")->at(0).path, "new\nline \u00e9\x1b[31m");
           return Outcome::kRefused;
         }
         EXPECT_TRUE(sandbox.write_file(name, "x"));
         EXPECT_EQ(sandbox.read_file(name).value(), "x");
         const auto entries = sandbox.list("n");
         EXPECT_TRUE(entries && entries->size() == 1 && "n/" + entries->at(0).path == name);
         EXPECT_TRUE(sandbox.exec(Command{.argv = {"echo", "\xff\n"}, .cwd = {}, .env = {{"WORD", "\xff"}}}));
         EXPECT_EQ(sandbox.read_file(std::string(5000, 'x')).error().code(), Code::kInvalidArgument);
         return Outcome::kSame;
       }},
      {"an environment of 7 MB and an argument of 200 KB", true,
       [](const Bench& bench) {
         const auto with_env = [&](int count) {
           Command command{.argv = {"/bin/sh", "-c", "echo ${#V1}"}, .cwd = {}, .env = {}};
           for (int i = 0; i < count; ++i) command.env["V" + std::to_string(i)] = std::string(100'000, 'x');
           return bench.sandbox->exec(command).value();
         };
         EXPECT_EQ(with_env(70).reason, Reason::kStartFailed) << "the kernel takes 6 MB at most, execve(2)";
         EXPECT_EQ(with_env(10).out.bytes, "100000\n");
         const auto with_argument = [&](std::size_t size) {
           return bench.sandbox->exec(Command{.argv = {"/bin/sh", "-c", "echo ${#1}", "sh", std::string(size, 'x')}}).value();
         };
         EXPECT_EQ(with_argument(200'000).reason, Reason::kStartFailed) << "and 128 KiB in one string";
         EXPECT_EQ(with_argument(100'000).out.bytes, "100000\n");
         return Outcome::kSame;
       }},
      {"absurd patience is for ever, and not the past", true,
       [](const Bench& bench) {
         constexpr auto kAbsurd = std::chrono::milliseconds::max();
         EXPECT_EQ(run(bench, "echo x", {.timeout = kAbsurd}).out.bytes, "x\n");
         auto process = bench.sandbox->spawn(shell_command("cat"), {.timeout = kAbsurd, .input = SpawnInput::kPipe});
         EXPECT_TRUE((*process)->write_stdin("x", kAbsurd));
         EXPECT_TRUE((*process)->close_stdin());
         EXPECT_EQ((*process)->wait(kAbsurd)->value().out.bytes, "x");
         EXPECT_FALSE((*process)->wait(-1ms)->value().out.bytes.empty()) << "it has ended";
         EXPECT_TRUE(bench.sandbox->glob("**", {.timeout = kAbsurd})->complete);
         return Outcome::kSame;
       }},
      {"very many commands at once", true,
       [](const Bench& bench) {
         rlimit files{};
         ::getrlimit(RLIMIT_NOFILE, &files);
         files.rlim_cur = files.rlim_max;
         ::setrlimit(RLIMIT_NOFILE, &files);
         std::atomic<int> good{0}, refused{0}, wrong{0};
         std::vector<std::thread> threads;
         for (int i = 0; i < bench.at_once; ++i)
           threads.emplace_back([&, i] {
             const std::string word = std::to_string(i);
             const auto result = bench.sandbox->exec(Command{.argv = {"/bin/echo", word}}, {.timeout = 240s});
             if (!result) ++(result.error().code() == Code::kResourceExhausted ? refused : wrong);
             else ++(result->out.bytes == word + "\n" ? good : wrong);
           });
         for (std::thread& thread : threads) thread.join();
         EXPECT_EQ(wrong.load(), 0);
         EXPECT_EQ(refused.load(), files.rlim_max >= 16'384 ? 0 : refused.load()) << "only for want of descriptors";
         EXPECT_GT(good.load(), std::min(bench.at_once - 1, 100));
         EXPECT_TRUE(bench.sandbox->health());
         return Outcome::kSame;
       }},
      {"health, stop, stop again, start again", false,
       [](const Bench& bench) {
         Sandbox& sandbox = *bench.sandbox;
         EXPECT_TRUE(sandbox.health());
         EXPECT_EQ(sandbox.start().error().code(), Code::kFailedPrecondition);
         EXPECT_TRUE(sandbox.write_file("survives", "x"));
         EXPECT_TRUE(sandbox.stop());
         EXPECT_TRUE(sandbox.stop());
         EXPECT_EQ(sandbox.health().error().code(), Code::kUnavailable);
         EXPECT_EQ(sandbox.exec("true").error().code(), Code::kFailedPrecondition);
         EXPECT_EQ(sandbox.read_file("survives").error().code(), Code::kFailedPrecondition);
         EXPECT_TRUE(sandbox.start());
         EXPECT_EQ(sandbox.read_file("survives").value(), "x");
         return Outcome::kSame;
       }},
      {"stop ends a command that runs", true,
       [](const Bench& bench) {
         auto process = bench.sandbox->spawn(shell_command("sleep 300"));
         EXPECT_TRUE(process);
         EXPECT_TRUE(bench.sandbox->stop());
         EXPECT_EQ((*process)->wait()->value().reason, Reason::kCancelled);
         return Outcome::kSame;
       }},
  };
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> joined = general_rows();
    for (Row& row : file_rows()) joined.push_back(std::move(row));
    for (Row& row : in_time_rows()) joined.push_back(std::move(row));
    return joined;
  }();
  return all;
}

struct Kind {
  const char* name;  // of the column
  const char* backend;
  bool processes;
  bool decorated = false;
  bool transaction = false;  // the workspace is one
};
constexpr Kind kKinds[] = {{"native", "native", true},
                           {"landlock", "landlock", true},
                           {"local", "local", true},
                           {"mock", "mock", false},
                           {"native_decorated", "native", true, true},
                           {"mock_decorated", "mock", false, true},
                           {"native_transaction", "native", true, false, true}};

// Decorators with nothing to object: whoever is behind them notices nothing.
SandboxPtr decorated(SandboxPtr sandbox, const std::string& directory) {
  auto trail = AuditTrail::open(directory + "/audit.jsonl", {.sync = AuditSync::kNever});
  EXPECT_TRUE(trail) << trail.error().line();
  sandbox = with_redaction(std::move(sandbox), std::make_shared<Redactor>());
  sandbox = with_rate_limit(std::move(sandbox), {.per_second = 1e6, .burst = 1e6});
  sandbox = with_write_quota(std::move(sandbox), Bytes{1ULL << 40});
  sandbox = with_command_rules(std::move(sandbox), [](const Command&) { return CommandVerdict{}; });
  sandbox = with_result_cache(std::move(sandbox), {.pure = [](const Command&) { return false; }});
  auto recording = with_recording(std::move(sandbox), directory + "/recording.jsonl");
  EXPECT_TRUE(recording) << recording.error().line();
  return with_audit(*std::move(recording), std::make_shared<AuditTrail>(*std::move(trail)));
}

class Conformance : public testing::TestWithParam<std::tuple<Kind, std::size_t>> {};

TEST_P(Conformance, Row) {
  const auto& [kind, index] = GetParam();
  const Row& row = rows()[index];
  std::string& cell = table()[row.name][kind.name];
  if (row.needs_processes && !kind.processes) {
    cell = "not applicable";
    return;
  }
  if (std::string(kind.backend) == "native") BELLJAR_NEEDS(user_namespaces());
  if (std::string(kind.backend) == "landlock") BELLJAR_NEEDS(landlock_abi_at_least(4));
  const test::TempDir workspace, names, state(kind.transaction ? test::layers_base("/var/tmp") : "");
  if (test::is_root()) workspace.give_to(test::user_uid(), test::user_gid());
  const std::string named = names / "link";
  ASSERT_EQ(::symlink(workspace.path().c_str(), named.c_str()), 0);
  const test::Leftovers left;
  {
    SandboxConfig config;
    config.backend = kind.backend;
    config.workspace = named;
    config.caller_env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", workspace.path()}};
    if (kind.transaction) config.transaction = "of-a-row", config.state_dir = state.path();
    if (std::string(kind.backend) == "landlock") {
      config.policy.filesystem.protect = Protect::kNone;
      config.policy.network.mode = NetMode::kHost;
      config.policy.accept = {"filesystem.protect", "filesystem.tmp", "network.mode", "filesystem.secrets"};
    }
    auto sandbox = make_sandbox(config);
    const test::TempDir records;
    if (sandbox && kind.decorated) sandbox = decorated(*std::move(sandbox), records.path());
    ASSERT_TRUE(sandbox) << sandbox.error().line();
    const auto started = (*sandbox)->start();
    ASSERT_TRUE(started) << started.error().line();
    const Outcome outcome = row.check({.sandbox = *sandbox, .workspace = workspace.path(), .named = named});
    cell = HasFailure() ? "DIFFERENT" : to_text(outcome);
  }
  EXPECT_EQ(left.report(), "");
}

INSTANTIATE_TEST_SUITE_P(Every, Conformance,
                         testing::Combine(testing::ValuesIn(kKinds), testing::Range<std::size_t>(0, rows().size())),
                         [](const auto& test) {
                           std::string name = std::get<0>(test.param).name;
                           name += "_";
                           for (const char* c = rows()[std::get<1>(test.param)].name; *c != '\0'; ++c)
                             name += std::isalnum(static_cast<unsigned char>(*c)) != 0 ? *c : '_';
                           return name;
                         });

// By every door, as for a command.
TEST(AbsoluteLinks, AreInsideWhereTheyComeOutInside) {
  BELLJAR_NEEDS(user_namespaces());
  for (const std::string backend : {"native", "local"}) {
    const test::TempDir workspace, outside;
    workspace.write("dir/f", "text");
    outside.write("f", "outside");
    for (const auto& [link, target] : {std::pair<std::string, std::string>{"file", workspace / "dir/f"},
                                       {"way", workspace / "dir"},
                                       {"new", workspace / "made"},
                                       {"out", outside / "f"},
                                       {"gone", outside / "none"},
                                       {"away", outside.path()}})
      ASSERT_EQ(::symlink(target.c_str(), (workspace / link).c_str()), 0);
    if (test::is_root()) workspace.give_to(test::user_uid(), test::user_gid());
    SandboxConfig config;
    config.backend = backend;
    config.workspace = workspace.path();
    const auto made = make_sandbox(config);
    ASSERT_TRUE(made) << made.error().line();
    Sandbox& sandbox = **made;
    ASSERT_TRUE(sandbox.start());
    EXPECT_EQ(*sandbox.read_file("file"), "text") << backend;
    EXPECT_EQ(*sandbox.read_file("way/f"), "text") << backend;
    EXPECT_EQ(sandbox.list("way")->size(), 1U) << backend;
    EXPECT_TRUE(sandbox.write_file("file", "other")) << backend;
    EXPECT_TRUE(sandbox.write_file("way/g", "more")) << backend;
    EXPECT_TRUE(sandbox.write_file("new", "new")) << backend;
    EXPECT_TRUE(sandbox.write_file("way/on/g", "deep")) << backend;
    EXPECT_TRUE(sandbox.make_dir("way/m/n")) << backend;
    EXPECT_TRUE(sandbox.write_file("way/../beside", "beside")) << backend;
    EXPECT_TRUE(sandbox.rename("way/on/g", "way/m/n/g")) << backend;
    EXPECT_EQ(sandbox.read_file("dir/m/n/g").value(), "deep") << backend;
    EXPECT_EQ(test::read_file(workspace / "beside"), "beside") << backend;
    EXPECT_EQ(sandbox.read_file("way/none/../f").error().code(), Code::kNotFound) << backend;
    EXPECT_EQ(sandbox.read_file("way/f/").error().code(), Code::kFailedPrecondition) << backend;
    EXPECT_TRUE(sandbox.remove("way/m", {.depth = Depth::kTree})) << backend;
    EXPECT_TRUE(sandbox.remove("way/on")) << backend;
    EXPECT_EQ(sandbox.write_file("away/on/g", "x").error().what(), "path escapes workspace: away/on/g") << backend;
    EXPECT_EQ(sandbox.make_dir("gone/on").error().what(), "path escapes workspace: gone/on") << backend;
    EXPECT_EQ(sandbox.exec("cat dir/f dir/g made; cd way && pwd")->out.bytes, "othermorenew" + (workspace / "way") + "\n")
        << backend;
    const auto in = [&](const char* cwd) {
      Command command = shell_command("pwd -P");
      command.cwd = cwd;
      return sandbox.exec(command);
    };
    EXPECT_EQ(in("way")->out.bytes, (workspace / "dir") + "\n") << backend;
    for (const char* path : {"out", "away/f"}) {
      EXPECT_EQ(sandbox.read_file(path).error().what(), "path escapes workspace: " + std::string(path)) << backend;
      EXPECT_FALSE(sandbox.write_file(path, "x")) << backend;
    }
    EXPECT_FALSE(sandbox.list("away")) << backend;
    EXPECT_FALSE(in("away")) << backend;
    EXPECT_EQ(test::read_file(outside / "f"), "outside") << backend;
  }
}

// A rehearsal answers as what it rehearses.
TEST(DryRunConformance, FileRows) {
  for (const Row& row : file_rows()) {
    SCOPED_TRACE(row.name);
    const test::TempDir workspace, names;
    const std::string named = names / "link";
    ASSERT_EQ(::symlink(workspace.path().c_str(), named.c_str()), 0);
    SandboxConfig config;
    config.backend = "local";
    config.workspace = named;
    auto sandbox = make_sandbox(config);
    ASSERT_TRUE(sandbox) << sandbox.error().line();
    ASSERT_TRUE((*sandbox)->start());
    EXPECT_EQ(row.check({.sandbox = with_dry_run(*sandbox, {}), .workspace = workspace.path(), .named = named}), Outcome::kSame);
    EXPECT_TRUE((*sandbox)->list(".")->empty());
  }
}

// All rows with one engine, which takes a second to start.
void check_containers(const test::Engine& engine, test::EngineKind kind, const std::string& column) {
  for (const Row& row : rows()) {
    // What needs no process is this machine's own code, and the same whichever engine there is.
    if (kind == test::EngineKind::kPodman && !row.needs_processes) continue;
    SCOPED_TRACE(row.name);
    const test::TempDir workspace, names;
    workspace.give_to(test::user_uid(), test::user_gid());
    const std::string named = names / "link";
    ASSERT_EQ(::symlink(workspace.path().c_str(), named.c_str()), 0);
    SandboxConfig config;
    config.backend = "container";
    config.workspace = named;
    config.caller_env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", workspace.path()}};
    config.container = {.engine = engine.address(), .image = engine.image(), .pull = PullPolicy::kNever};
    {
      auto sandbox = make_sandbox(config);
      ASSERT_TRUE(sandbox) << sandbox.error().line();
      const auto started = (*sandbox)->start();
      ASSERT_TRUE(started) << started.error().line();
      const bool before = testing::Test::HasFailure();
      const Outcome outcome = row.check({.sandbox = *sandbox, .workspace = workspace.path(), .named = named});
      table()[row.name][column] = testing::Test::HasFailure() && !before ? "DIFFERENT" : to_text(outcome);
    }
    EXPECT_TRUE(engine.containers().empty());
  }
}

TEST(ContainerConformance, EveryRow) {
  std::unique_ptr<test::Engine> engine;
  BELLJAR_NEEDS(start_engine(engine));
  check_containers(*engine, test::EngineKind::kDocker, "container");
}

TEST(ContainerConformance, EveryRowWithPodman) {
  std::unique_ptr<test::Engine> engine;
  BELLJAR_NEEDS(start_engine(engine, belljar::test::EngineKind::kPodman));
  check_containers(*engine, test::EngineKind::kPodman, "podman");
}

// Every row, each with a sandbox of its own at a service of our own. `place`: what is known of its machine.
void check_cloud(const SandboxFactory& factory, const char* column, Bench place) {
  place.elsewhere = true;
  place.at_once = 36;  // more than the calls that a session has at once; each takes a dozen processes of a service on this machine
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    const test::TempDir workspace;
    SandboxConfig config;
    config.workspace = workspace.path();
    config.factory = factory;
    const auto sandbox = make_sandbox(config);
    ASSERT_TRUE(sandbox) << sandbox.error().line();
    const auto started = (*sandbox)->start();
    ASSERT_TRUE(started) << started.error().line();
    place.sandbox = *sandbox;
    place.workspace = workspace.path();
    const bool before = testing::Test::HasFailure();
    const Outcome outcome = row.check(place);
    table()[row.name][column] = testing::Test::HasFailure() && !before ? "DIFFERENT" : to_text(outcome);
    place.sandbox = nullptr;
  }
}

// Paused and not killed on stop, which is what keeps files; so the others.
TEST(E2bConformance, EveryRow) {
  BELLJAR_NEEDS(program("python3"));
  const test::Leftovers left;
  {
    const test::FakeE2b fake;
    E2bOptions options = fake.options();
    options.on_stop = E2bOnStop::kPause;
    check_cloud(e2b_backend(options), "e2b", {.text_only = true});
  }
  EXPECT_EQ(left.report(), "");
}

// The core of the clouds that only run shell text, on one that does so on this machine.
TEST(ShellConformance, EveryRow) {
  const test::Leftovers left;
  {
    const auto cloud = std::make_shared<test::LocalCloud>();
    const auto factory = [&](const SandboxConfig& asked) -> Result<std::shared_ptr<Sandbox>> {
      auto made = BELLJAR_TRY(remote::shell::ShellSandbox::make(
          cloud, asked, {.type = "ShellOptions", .sandbox_id = {}, .lifetime = {}, .on_stop = CloudOnStop::kPause}));
      return std::shared_ptr<Sandbox>(std::move(made));
    };
    check_cloud(factory, "shell", {.terminals = false});
    EXPECT_EQ(cloud->private_dirs(), std::vector<std::string>());
  }
  EXPECT_EQ(left.report(), "");
}

TEST(AliyunConformance, EveryRow) {
  BELLJAR_NEEDS(program("python3"));
  const test::Leftovers left;
  {
    const test::FakeAliyun fake;
    AliyunOptions options = fake.options();
    options.on_stop = CloudOnStop::kPause;
    options.policy_id = "closed";  // without one nobody closes the network, and a start says so
    check_cloud(aliyun_backend(options), "aliyun", {.terminals = false});
  }
  EXPECT_EQ(left.report(), "");
}

// The same core at Volcengine's gateway: commands by its calls, files by its own or the same.
TEST(VolcengineConformance, EveryRow) {
  BELLJAR_NEEDS(program("python3"));
  const test::Leftovers left;
  {
    const test::FakeVolcengine fake;
    VolcengineOptions options = fake.options();
    options.on_stop = CloudOnStop::kPause;
    check_cloud(volcengine_backend(options), "volcengine", {.terminals = false});
  }
  EXPECT_EQ(left.report(), "");
}

// One program, all rows: CTest runs each test by itself, so the table is printed when the program is run as a whole.
class Table : public testing::Environment {
 public:
  void TearDown() override {
    if (table().size() < 2) return;
    std::printf("%-55s", "row");
    std::vector<const char*> columns;
    for (const Kind& kind : kKinds) columns.push_back(kind.name);
    columns.insert(columns.end(), {"container", "podman", "e2b", "shell", "aliyun", "volcengine"});
    for (const char* column : columns) std::printf(" | %-16s", column);
    std::printf("\n");
    for (const Row& row : rows()) {
      std::printf("%-55s", row.name);
      for (const char* column : columns) std::printf(" | %-16s", table()[row.name][column].c_str());
      std::printf("\n");
    }
  }
};
const auto* const kTable = testing::AddGlobalTestEnvironment(new Table);  // owned by GoogleTest

}  // namespace
}  // namespace belljar
