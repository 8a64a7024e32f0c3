// belljar create | exec | ls | kill | logs | stats | network: sandboxes that outlive the command that made them.
#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "support/as_user.h"
#include "support/built.h"
#include "support/eventually.h"
#include "support/has.h"
#include "support/held_start.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/model_server.h"
#include "support/run.h"
#include "support/temp_dir.h"
#include "support/time_enough.h"

namespace belljar::test {
namespace {

// The number behind "key": in a line of JSON; -1 when there is none.
long number_of(const std::string& json, const std::string& key) {
  const std::size_t at = json.find("\"" + key + "\":");
  return at == std::string::npos ? -1 : std::strtol(json.c_str() + at + key.size() + 3, nullptr, 10);
}

// A runtime directory and a workspace of the test's own; what it makes and forgets ends with it.
class Keep : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    if (is_root()) workspace_.give_to(user_uid(), user_gid());
  }
  void TearDown() override { call({"kill", "--all"}); }

  RunOptions options(std::string input = {}) const {
    RunOptions options{.input = std::move(input), .cwd = workspace_.path()};
    options.env = {{"XDG_RUNTIME_DIR", runtime_.path()}};
    return options;
  }
  Outcome call(std::vector<std::string> args, std::string input = {}) const { return belljar(std::move(args), options(input)); }
  std::vector<std::string> words(std::vector<std::string> args) const {
    args.insert(args.begin(), kBelljar);
    return args;
  }
  // The id; fails the test when there is none.
  std::string create(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), "create");
    const Outcome made = call(more);
    EXPECT_EQ(made.exit_code, 0) << made;
    EXPECT_FALSE(made.output_held) << "the keeper holds the caller's streams";
    return made.out.substr(0, made.out.find('\n'));
  }
  Outcome shell(const std::string& id, const std::string& text) const { return call({"exec", id, "-c", text}); }
  std::string entry(const std::string& id) const { return runtime_ / ("belljar/" + id); }
  pid_t keeper_of(const std::string& id) const {
    std::string all = call({"ls", "--json"}).out;
    all = all.substr(all.find(id));
    return static_cast<pid_t>(number_of(all.substr(0, all.find('\n')), "keeper_pid"));
  }

  TempDir workspace_, runtime_;
};

TEST_F(Keep, WhatWasMadeIsFoundFromAnotherShellByIdAndName) {
  const std::string id = create({"--name", "work", "--expires", "1h"});
  ASSERT_TRUE(id.starts_with("sb-")) << id;
  const Outcome shown = belljar({"ls"}, {.cwd = "/", .env = {{"XDG_RUNTIME_DIR", runtime_.path()}}});
  EXPECT_TRUE(has(shown.out, id) && has(shown.out, "work") && has(shown.out, workspace_.path())) << shown;
  EXPECT_EQ(call({"__complete", "exec", ""}).out, id + "\t" + workspace_.path() + "\nwork\t" + workspace_.path() + "\n")
      << "for Tab";
  EXPECT_EQ(shell("work", "echo by name").out, "by name\n");
  EXPECT_EQ(shell(id, "pwd").out, workspace_.path() + "\n");
}

// Where a session has no runtime directory (cron, su), records lie in the state directory: a hidden name below a hidden name.
TEST_F(Keep, WithoutARuntimeDirectoryTheyAreKeptToo) {
  const TempDir home;
  if (is_root()) home.give_to(user_uid(), user_gid());
  const auto bare = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"env", "-u", "XDG_RUNTIME_DIR", "-u", "XDG_STATE_HOME", "HOME=" + home.path(), kBelljar});
    return run(std::move(args), {.stdin_is = Input::kNull, .cwd = workspace_.path()});
  };
  const Outcome made = bare({"create", "--expires", "1h"});
  ASSERT_EQ(made.exit_code, 0) << made;
  const std::string id = made.out.substr(0, made.out.find('\n'));
  EXPECT_EQ(bare({"exec", id, "--", "echo", "there"}).out, "there\n");
  EXPECT_NE(bare({"exec", id, "-c", "ls ~/.local/state/belljar"}).exit_code, 0) << "and stay hidden";
  EXPECT_EQ(bare({"kill", id}).exit_code, 0);
}

// filesystem.siblings: hidden for what stays, shown for a single run.
TEST_F(Keep, OneDoesNotSeeWhatAnotherWorksIn) {
  // Of what lies below /tmp nobody sees anything as it is.
  const TempDir seen(is_root() ? "/var/lib" : std::getenv("HOME"));  // NOLINT(concurrency-mt-unsafe): one thread
  seen.write("a/own", "OWN\n");
  seen.write("b/secret", "SECRET\n");
  if (is_root()) seen.give_to(user_uid(), user_gid());
  const std::string a = seen / "a", b = seen / "b", read = "cat " + (seen / "b/secret");
  const std::string other = create({"--workspace", b}), one = create({"--workspace", a});
  EXPECT_EQ(shell(one, read + "; ls " + b + "; echo x >" + b + "/planted; cat own").out, "OWN\n");
  EXPECT_EQ(shell(other, read + "; cat " + a + "/own").out, "SECRET\nOWN\n") << "the other started before";
  EXPECT_EQ(shell(create({"--workspace", a, "--siblings", "shown"}), read).out, "SECRET\n") << "the twin";
  EXPECT_EQ(call({"run", "--workspace", a, "-c", read}).out, "SECRET\n");
  EXPECT_EQ(call({"run", "--workspace", a, "--siblings", "hidden", "-c", read}).out, "");
  const auto explained = [&](const std::string& siblings) {
    return call({"policy", "explain", "--workspace", a, "--siblings", siblings, "--path", b + "/secret"}).out;
  };
  EXPECT_TRUE(has(explained("hidden"), "/secret: none\n")) << explained("hidden");
  EXPECT_TRUE(has(explained("shown"), "/secret: read\n")) << explained("shown");
  EXPECT_TRUE(has(call({"create", "--workspace", a, "--json"}).out, R"("clause":"filesystem.siblings")"));
  RunOptions nowhere = options();
  nowhere.env["XDG_STATE_HOME"] = "/proc/nowhere";
  EXPECT_TRUE(has(belljar({"create"}, nowhere).err, "warning: workspaces of other sandboxes are not hidden: "))
      << "nobody can know them";
  EXPECT_EQ(call({"create"}).err, "") << "the twin";
  ASSERT_EQ(::kill(keeper_of(other), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return shell(create({"--workspace", a}), read).out == "SECRET\n"; }))
      << "nobody works there any more";
}

TEST_F(Keep, WithoutAProxyTheNetworkIsNamed) {
  const std::string open = create({"--net", "host"}), closed = create({"--net", "none"});
  EXPECT_EQ(call({"network", open}).out, "the host's own network: nothing is filtered\n");
  EXPECT_EQ(call({"network", closed}).out, "no network\n");
  EXPECT_TRUE(has(call({"network", open, "--json"}).out, R"("mode":"host")"));
  EXPECT_EQ(call({"network", closed, "--reset"}).exit_code, 125);
}

TEST_F(Keep, HostsAreOpenedAndClosedWhileItRuns) {
  BELLJAR_NEEDS(program("curl"));
  const ModelServer server(std::vector<ModelAnswer>{{.pieces = {"hello"}, .type = "text/plain"}});
  const std::string place = server.url().substr(7);
  const std::string text = "curl -s -d x -m 20 --noproxy '' -x 127.0.0.1:3128 http://" + place + "/";
  const std::string id = create({"--net", "proxy", "--allow-domain", "a.example"});
  EXPECT_NE(shell(id, text).out, "hello");
  EXPECT_EQ(call({"exec", id, "--allow-domain", place, "-c", text}).out, "hello");
  EXPECT_NE(shell(id, text).out, "hello");
  EXPECT_EQ(call({"network", id}).out, "allowed   a.example\n");
  EXPECT_EQ(call({"network", id, "--allow-domain", place, "--drop", "a.example"}).out, "allowed   " + place + "\n");
  EXPECT_EQ(shell(id, text).out, "hello");
  EXPECT_TRUE(has(call({"network", id, "--deny-domain", "127.0.0.1"}).out, "denied    127.0.0.1\n"));
  EXPECT_NE(shell(id, text).out, "hello");
  EXPECT_EQ(call({"network", id, "--reset", "--json"}).out,
            R"({"allowed_domains":["a.example"],"allowed_requests":[],"denied_domains":[],"mode":"proxy"})"
            "\n");
  const Outcome missing = call({"network", id, "--drop", "b.example"});
  EXPECT_EQ(missing.exit_code, 125);
  EXPECT_TRUE(has(missing.err, "there is no rule `b.example`")) << missing;
  // A deny goes by its own name alone, where the same is allowed.
  EXPECT_EQ(call({"network", id, "--deny-domain", "a.example"}).exit_code, 0);
  const Outcome both = call({"network", id, "--drop", "a.example"});
  EXPECT_EQ(both.exit_code, 125);
  EXPECT_TRUE(has(both.err, "it is both denied and allowed") && has(both.err, "--drop 'denied a.example'")) << both;
  EXPECT_EQ(call({"network", id, "--drop", "denied    a.example"}).out, "allowed   a.example\n");
  EXPECT_EQ(call({"network", id, "--drop", "allowed a.example"}).out, "no host may be reached\n");
  EXPECT_TRUE(has(call({"network", id, "--allow-domain", "a b"}).err, "a b"));
  EXPECT_EQ(call({"exec", id, "--allow-domain", "a b", "-c", "true"}).exit_code, 125);
  EXPECT_GT(number_of(call({"stats", id, "--json"}).out, "network_in_bytes"), 0);
  const std::string log = call({"logs", id}).out;
  EXPECT_TRUE(has(log, "rules_changed") && has(log, "allowed " + place)) << log;

  const std::string closed = create({"--name", "closed"});
  EXPECT_TRUE(has(call({"network", "closed", "--allow-domain", "a.example"}).err, "no proxy of ours serves this sandbox"));
  EXPECT_TRUE(
      has(call({"exec", "closed", "--allow-domain", "a.example", "-c", "true"}).err, "no proxy of ours serves this sandbox"));
}

TEST_F(Keep, StateOfOneCommandIsThereForTheNext) {
  const std::string id = create();
  EXPECT_EQ(shell(id, "echo kept > /tmp/file; echo mine > in-workspace").exit_code, 0);
  EXPECT_EQ(call({"exec", id, "--", "cat", "/tmp/file"}).out, "kept\n");
  EXPECT_EQ(read_file(workspace_ / "in-workspace"), "mine\n");
  EXPECT_FALSE(exists("/tmp/file"));
  const Outcome left = shell(id, "sleep 4711 & echo $! > /tmp/pid");
  EXPECT_EQ(left.exit_code, 0) << left;
  EXPECT_FALSE(left.output_held) << "what runs in the background holds the caller's pipe";
  EXPECT_EQ(shell(id, "kill -0 $(cat /tmp/pid) && echo alive").out, "alive\n");
}

TEST_F(Keep, AServerOnLoopbackServesLaterCommands) {
  BELLJAR_NEEDS(program("python3"));
  const std::string id = create();
  const char* const server =
      "python3 -c 'import socket,os\n"
      "s = socket.create_server((\"127.0.0.1\", 4567))\n"
      "if os.fork(): os._exit(0)\n"
      "while True:\n"
      "  c, _ = s.accept(); c.sendall(b\"served\"); c.close()' >/dev/null 2>&1";
  EXPECT_EQ(shell(id, server).exit_code, 0);
  const Outcome asked = call(
      {"exec", id, "--", "python3", "-c", "import socket; print(socket.create_connection(('127.0.0.1', 4567)).recv(9).decode())"});
  EXPECT_EQ(asked.out, "served\n") << asked;
}

TEST_F(Keep, StreamsAndExitCodesAreTheCommands) {
  const std::string id = create();
  const Outcome both = call({"exec", id, "-c", "cat; echo err >&2; exit 3"}, "in\n");
  EXPECT_EQ(both.exit_code, 3) << both;
  EXPECT_EQ(both.out, "in\n");
  EXPECT_EQ(both.err, "err\n");
  EXPECT_EQ(call({"exec", id, "--", "no-such-program"}).exit_code, 127);
  EXPECT_EQ(call({"exec", id, "--", "/etc/passwd"}).exit_code, 126);
  EXPECT_EQ(shell(id, "kill -9 $$").exit_code, 137);
  const Outcome late = with_time_enough(
      [&](std::chrono::milliseconds time) {
        return call({"exec", id, "--timeout", std::to_string(time.count()) + "ms", "-c", "echo before; sleep 1000"});
      },
      [](const Outcome& tried) { return !tried.out.empty(); });
  EXPECT_EQ(late.exit_code, 124) << late;
  EXPECT_EQ(late.out, "before\n");
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(call({"exec", id, "--", "cat"}, large).out, large);
  const std::string bytes("\xff\x00\xfe", 3);
  EXPECT_EQ(call({"exec", id, "--", "cat"}, bytes).out, bytes);
  EXPECT_EQ(call({"exec", id, "--env", "A=1", "--env", "B=\xff", "-c", "echo $A$B", "ignored"}).exit_code, 125);
  EXPECT_EQ(call({"exec", id, "--env", "A=1", "--env", "B=\xff", "-c", "echo $A$B"}).out, "1\xff\n");
}

TEST_F(Keep, ALoginShellIsTheUsers) {
  const std::string id = create();
  RunOptions with_bash = options();
  with_bash.env["SHELL"] = "/bin/bash";
  const std::string text = "shopt -q login_shell && echo \"$0\"";
  EXPECT_EQ(belljar({"exec", id, "--login", "-c", text}, with_bash).out, "/bin/bash\n");
  EXPECT_NE(belljar({"exec", id, "-c", text}, with_bash).exit_code, 0) << "/bin/sh knows no shopt, or is no login shell";
}

TEST_F(Keep, CwdIsInsideTheWorkspace) {
  workspace_.make_dir("below");
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  const std::string id = create();
  EXPECT_EQ(call({"exec", id, "--cwd", "below", "--", "pwd"}).out, workspace_ / "below" + "\n");
  EXPECT_EQ(call({"exec", id, "--cwd", workspace_ / "below", "--", "pwd"}).out, workspace_ / "below" + "\n");
  // A workspace that was named through a symbolic link is known by that name, too; by the name of the caller's directory as well.
  const TempDir names;
  const std::string link = names / "link";
  ASSERT_EQ(::symlink(workspace_.path().c_str(), link.c_str()), 0);
  const std::string linked = create({"--workspace", link});
  EXPECT_EQ(call({"exec", linked, "--cwd", link + "/below", "--", "pwd"}).out, workspace_ / "below" + "\n");
  EXPECT_EQ(call({"exec", linked, "--cwd", link + "2", "--", "pwd"}).exit_code, 125);
  EXPECT_EQ(call({"exec", id, "--cwd", link + "/below", "--", "pwd"}).exit_code, 125);
  for (const char* outside : {"..", "/etc", "no-such"}) {
    const Outcome refused = call({"exec", id, "--cwd", outside, "--", "pwd"});
    EXPECT_EQ(refused.exit_code, 125) << outside << refused;
    EXPECT_EQ(refused.out, "");
  }
}

TEST_F(Keep, TwoCommandsRunAtOnce) {
  const std::string id = create();
  ASSERT_EQ(shell(id, "mkfifo /tmp/to /tmp/back").exit_code, 0);
  Running first(words({"exec", id, "-c", "cat /tmp/to; echo answer > /tmp/back"}), options());
  EXPECT_EQ(shell(id, "echo question > /tmp/to; cat /tmp/back").out, "answer\n");
  EXPECT_EQ(first.wait().out, "question\n");
}

TEST_F(Keep, JsonHoldsWhatRunsJsonHolds) {
  const std::string id = create();
  const Outcome told = call({"exec", id, "--json", "-c", "echo out; echo err >&2; exit 4"});
  EXPECT_EQ(told.exit_code, 4) << told;
  EXPECT_TRUE(has(told.out, R"("backend":"native")")) << told;
  for (const char* piece : {R"("exit_code":4)", R"("stdout":"out\n")", R"("stderr":"err\n")", R"("reason":"exited")",
                            R"("violations":[])", R"("clause":"filesystem.)"})
    EXPECT_TRUE(has(told.out, piece)) << piece << told;
  const Outcome run = belljar({"run", "--json", "-c", "exit 4"}, options());
  for (std::size_t at = 0; (at = run.out.find("\":", at)) != std::string::npos; ++at) {
    const std::string key = run.out.substr(run.out.rfind('"', at - 1), at + 2 - run.out.rfind('"', at - 1));
    EXPECT_TRUE(has(told.out, key)) << key;
  }
  const Outcome refused = call({"exec", "sb-none", "--json", "--", "true"});
  EXPECT_TRUE(has(refused.out, R"("exit_code":125)")) << refused;
}

TEST_F(Keep, AFrontsSignalsReachTheCommand) {
  const std::string id = create({"--kill-grace", "600s"});
  for (const auto& [signal, name] : {std::pair(SIGINT, "INT"), std::pair(SIGTERM, "TERM"), std::pair(SIGUSR1, "USR1")}) {
    Running front(words({"exec", id, "-c",
                         std::string("trap 'echo got ") + name + "; exit 7' " + name + "; echo up; while :; do sleep 0.05; done"}),
                  options());
    ASSERT_TRUE(front.wait_for_output("up"));
    front.send(signal);
    const Outcome ended = front.wait();
    EXPECT_EQ(ended.exit_code, 7) << ended;
    EXPECT_TRUE(has(ended.out, std::string("got ") + name)) << ended;
  }
}

TEST_F(Keep, AFrontThatIsToldToEndKillsACommandThatIgnoresIt) {
  const std::string id = create({"--kill-grace", "50ms"});
  // All of it: also who left the process group that the TERM went to.
  Running front(words({"exec", id, "-c", "trap '' TERM; setsid sleep 4714 & echo up; sleep 1000"}), options());
  ASSERT_TRUE(front.wait_for_output("up"));
  front.send(SIGTERM);
  const Outcome killed = front.wait();
  EXPECT_EQ(killed.exit_code, 137);
  EXPECT_TRUE(has(killed.err, "killed: it was told to end and had not within 50ms")) << killed;
  EXPECT_NE(shell(id, "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; echo; done | grep '^sleep 471[4]'").exit_code, 0);
}

// What it leaves behind, in its process group or beside it, was told to end as well.
TEST_F(Keep, AFrontThatIsToldToEndLeavesNothingOfItsCommand) {
  const std::string id = create();
  const std::string child = "sh -c 'trap \"\" TERM; echo up; sleep 4715; sleep 4715' & ";
  Running front(words({"exec", id, "-c", child + "setsid " + child + "sleep 1000"}), options());
  ASSERT_TRUE(front.wait_for_output("up\nup\n"));
  front.send(SIGTERM);
  EXPECT_EQ(front.wait().exit_code, 143);
  EXPECT_NE(shell(id, "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; echo; done | grep '^sleep 471[5]'").exit_code, 0);
  // The twin: what a command that ended by itself leaves behind belongs to the sandbox.
  EXPECT_EQ(shell(id, "sleep 4715 >/dev/null 2>&1 & until grep -q ^sleep /proc/$!/cmdline; do :; done").exit_code, 0);
  EXPECT_EQ(shell(id, "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; echo; done | grep '^sleep 471[5]'").exit_code, 0);
}

TEST_F(Keep, AFrontThatIsKilledTakesItsCommandAlongAndNotTheSandbox) {
  const std::string id = create();
  Running front(words({"exec", id, "-c", "echo up; sleep 4712"}), options());
  ASSERT_TRUE(front.wait_for_output("up"));
  Running log(words({"logs", id, "--follow"}), options());
  front.send(SIGKILL);
  EXPECT_TRUE(log.wait_for_output("cancelled")) << log.out();
  log.send(SIGTERM);
  EXPECT_NE(shell(id, "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; echo; done | grep '^sleep 471[2]'").exit_code, 0);
}

TEST_F(Keep, ATerminalOfItsOwn) {
  const std::string id = create();
  EXPECT_EQ(call({"exec", id, "--pty", "-c", "test -t 0 && test -t 1 && echo terminal"}).out, "terminal\r\n");
  EXPECT_EQ(call({"exec", id, "-c", "test -t 1 || echo pipe"}).out, "pipe\n");
}

TEST_F(Keep, KillEndsTheWholeTree) {
  const Leftovers left({workspace_.path()});
  const std::string id = create({"--name", "doomed"});
  ASSERT_EQ(shell(id, "setsid sh -c 'trap : TERM; while :; do sleep 1; done' >/dev/null 2>&1 & sleep 4713 >/dev/null &").exit_code,
            0);
  EXPECT_TRUE(exists(entry(id)));
  const Outcome killed = call({"kill", "doomed"});
  EXPECT_EQ(killed.exit_code, 0) << killed;
  EXPECT_FALSE(exists(entry(id)));
  EXPECT_EQ(left.report(), "");
  EXPECT_FALSE(has(call({"ls"}).out, id));
  EXPECT_TRUE(has(call({"ls", "--all"}).out, "ended: it was killed"));
  const Outcome after = shell(id, "true");
  EXPECT_EQ(after.exit_code, 125) << after;
  EXPECT_TRUE(has(after.err, "it was killed")) << after;
  EXPECT_TRUE(has(call({"logs", id}).out, "stopped: it was killed"));
  EXPECT_EQ(call({"kill", "doomed"}).exit_code, 0) << "it has ended already";
}

TEST_F(Keep, KillEndsCommandsThatRun) {
  const std::string id = create(), other = create();
  Running front(words({"exec", id, "-c", "echo up; sleep 1000"}), options());
  ASSERT_TRUE(front.wait_for_output("up"));
  EXPECT_EQ(call({"kill", id}).exit_code, 0);
  const Outcome ended = front.wait();
  EXPECT_EQ(ended.exit_code, 137) << ended;
  EXPECT_EQ(shell(other, "echo here").out, "here\n") << "nobody else's";
  EXPECT_EQ(call({"kill", "--all"}).exit_code, 0);
  EXPECT_EQ(shell(other, "true").exit_code, 125);
}

TEST_F(Keep, AKilledKeeperLeavesNothingRunning) {
  const Leftovers left({workspace_.path()});
  const std::string id = create({"--name", "victim", "--memory", "200MiB"});
  ASSERT_EQ(shell(id, "sleep 4714 >/dev/null 2>&1 &").exit_code, 0);
  const pid_t keeper = keeper_of(id);
  ASSERT_GT(keeper, 1);
  ASSERT_EQ(::kill(keeper, SIGKILL), 0);
  EXPECT_EQ(left.report(), "");
  const Outcome first = call({"ls"});
  EXPECT_TRUE(has(first.out, "gone")) << first;
  EXPECT_FALSE(has(call({"ls"}).out, id)) << "told once, then put away";
  EXPECT_FALSE(exists(entry(id)));
  EXPECT_TRUE(has(call({"ls", "--all"}).out, "its keeper was killed"));
  EXPECT_EQ(call({"logs", id}).exit_code, 0);
  create({"--name", "victim"});
}

TEST_F(Keep, AKeeperThatHangsIsKilledAllTheSame) {
  const std::string id = create();
  const pid_t keeper = keeper_of(id);
  ASSERT_GT(keeper, 1);
  ASSERT_EQ(::kill(keeper, SIGSTOP), 0);
  EXPECT_TRUE(has(call({"ls"}).out, "no answer"));
  EXPECT_EQ(call({"kill", id}).exit_code, 0);
  EXPECT_FALSE(exists(entry(id)));
}

TEST_F(Keep, ItExpires) {
  const std::string id = create({"--expires", "1s"}), other = create({"--expires", "never"});
  const Outcome log = call({"logs", id, "--follow"});
  EXPECT_TRUE(has(log.out, "stopped: it expired") || has(log.err, "it expired")) << log;
  EXPECT_EQ(shell(id, "true").exit_code, 125);
  EXPECT_FALSE(exists(entry(id)));
  EXPECT_EQ(shell(other, "true").exit_code, 0);
  EXPECT_TRUE(has(call({"ls"}).out, "never"));
}

TEST_F(Keep, UnusedItEnds) {
  const std::string id = create({"--idle-timeout", "500ms"});
  const Outcome log = call({"logs", id, "--follow"});
  EXPECT_TRUE(has(log.out, "it was not used for 500ms") || has(log.err, "it was not used for 500ms")) << log;
  EXPECT_FALSE(exists(entry(id)));
}

TEST_F(Keep, LogsTellCommandsAndRefusals) {
  const std::string id = create({"--sample-every", "100ms"});
  EXPECT_NE(call({"exec", id, "--", "touch", "/etc/belljar-test"}).exit_code, 0);
  const Outcome secret =
      belljar({"exec", id, "--", "echo", "a-t0ps3cret-b"},
              {.cwd = workspace_.path(), .env = {{"XDG_RUNTIME_DIR", runtime_.path()}, {"DEPLOY_TOKEN", "t0ps3cret"}}});
  EXPECT_EQ(secret.out, "a-t0ps3cret-b\n") << secret;
  const Outcome log = call({"logs", id});
  EXPECT_TRUE(has(log.out, "`touch /etc/belljar-test` exited with exit code 1")) << log;
  EXPECT_TRUE(has(log.out, "refused: ") && has(log.out, "`/etc/belljar-test`")) << log;
  EXPECT_TRUE(has(log.out, "[redacted:DEPLOY_TOKEN]") && !has(log.out, "t0ps3cret")) << log;
  EXPECT_TRUE(has(log.out, "started")) << log;
  const std::string set = create({"--env", "MY_API_TOKEN=lion-t0ps3cret", "--env", "COLOUR=plain-word"});
  EXPECT_EQ(call({"exec", set, "--", "echo", "lion-t0ps3cret", "plain-word"}).out, "lion-t0ps3cret plain-word\n");
  const Outcome kept = call({"logs", set});
  EXPECT_TRUE(has(kept.out, "echo [redacted:MY_API_TOKEN] plain-word") && !has(kept.out, "t0ps3cret")) << kept;
  Running follow(words({"logs", id, "--follow", "--json"}), options());
  EXPECT_TRUE(follow.wait_for_output(R"("kind":"resource")"));
  EXPECT_TRUE(follow.wait_for_output(R"("target":"/etc/belljar-test")"));
  // Numbers for people; --json has them for programs.
  const std::string words = call({"logs", id}).out;
  EXPECT_TRUE(std::regex_search(words, std::regex("exit code 1 after [0-9.]+ m?s, [0-9]+ B of output"))) << words;
  EXPECT_TRUE(std::regex_search(words, std::regex(R"(resource   cpu [0-9]+\.[0-9] %, memory [0-9.]+ (B|[KM]iB))"))) << words;
  EXPECT_FALSE(has(words, "_x100") || has(words, "_bytes=")) << words;
  EXPECT_EQ(call({"kill", id}).exit_code, 0);
  EXPECT_EQ(follow.wait().exit_code, 0);
  EXPECT_TRUE(has(call({"explain", "last"}).out, "/etc/belljar-test"));
}

TEST_F(Keep, WhatTheProxyRefusedIsInTheLogAtTheEnd) {
  BELLJAR_NEEDS(program("python3"));
  const std::string id = create({"--net", "proxy", "--allow-domain", "listed.invalid"});
  const char* const ask =
      "import urllib.request, urllib.error\n"
      "try: urllib.request.urlopen('http://not-listed.invalid/')\n"
      "except urllib.error.HTTPError as refused: print(refused.code)";
  EXPECT_EQ(call({"exec", id, "--", "python3", "-c", ask}).out, "403\n");
  EXPECT_EQ(call({"kill", id}).exit_code, 0);
  EXPECT_TRUE(has(call({"logs", id}).out, "not-listed.invalid:80 not-listed, ")) << "in words";
  const Outcome log = call({"logs", id, "--json"});
  EXPECT_TRUE(has(log.out, R"("host":"not-listed.invalid")") && has(log.out, R"("operation":"egress")")) << log;
}

TEST_F(Keep, LogsAreBounded) {
  const std::string id = create();
  const std::string long_text = ": " + std::string(100'000, 'x');
  for (int i = 0; i < 3; ++i) EXPECT_EQ(shell(id, long_text).exit_code, 0);
  const Outcome log = call({"logs", id, "--json"});
  EXPECT_LT(log.out.size(), 20'000U);
  EXPECT_TRUE(has(log.out, "bytes more)")) << log;
}

TEST_F(Keep, StatsTellWhatIsUsed) {
  const std::string id = create({"--pids", "100"});
  ASSERT_EQ(shell(id, "head -c 100000 /dev/zero > file; sleep 4715 >/dev/null 2>&1 &").exit_code, 0);
  Outcome json;
  (void)eventually([&] {  // what it began has ended, but for one
    json = call({"stats", id, "--json"});
    return number_of(json.out, "processes") == 2;
  });
  EXPECT_EQ(json.exit_code, 0) << json;
  EXPECT_EQ(number_of(json.out, "processes"), 2) << json;
  EXPECT_EQ(number_of(json.out, "processes_limit"), 100) << json;
  EXPECT_GE(number_of(json.out, "disk_bytes"), 100'000) << json;
  EXPECT_GT(number_of(json.out, "memory_bytes"), 0) << json;
  EXPECT_EQ(number_of(json.out, "execs"), 1) << json;
  EXPECT_TRUE(has(json.out, R"("memory_limit_bytes":null)")) << json;
  EXPECT_TRUE(has(call({"stats", id}).out, "processes  2 of 100"));
}

TEST_F(Keep, BadInputIsOneClearError) {
  create({"--name", "builder"});
  const auto refused = [&](const std::vector<std::string>& args, const std::string& why) {
    const Outcome outcome = call(args);
    EXPECT_EQ(outcome.exit_code, 125) << args[0] << outcome;
    EXPECT_TRUE(has(outcome.err, why)) << why << outcome;
  };
  refused({"exec", "bulider", "--", "true"}, "did you mean `builder`?");
  refused({"stats", "nothing-like-it"}, "there is no sandbox");
  refused({"kill", "sb-00000000"}, "there is no sandbox");
  refused({"logs", "../../etc"}, "is no name for a sandbox");
  refused({"kill"}, "which sandbox is to end?");
  refused({"kill", "builder", "--all"}, "either names or --all");
  refused({"exec", "builder"}, "there is no command to run");
  refused({"exec", "builder", "--login", "--", "true"}, "--login is for shells");
  refused({"exec", "builder", "ls"}, "put `--` before the program");
  refused({"exec", "builder", "--env", "=x", "--", "true"}, "--env");
  refused({"exec", "builder", "--timeout", "-1s", "--", "true"}, "timeout");
  refused({"exec", "builder", "--timeout", "soon", "--", "true"}, "--timeout");
  refused({"create", "--name", "builder"}, "there is a sandbox `builder` already");
  for (const char* name : {"../x", "a/b", "-x", ".", "..", "a b", "a\nb", "\xff"}) {
    const Outcome outcome = call({"create", "--name=" + std::string(name)});
    EXPECT_EQ(outcome.exit_code, 125) << name << outcome;
  }
  refused({"create", "--name", ""}, "--name: its value is empty");
  refused({"create", "--name", std::string(65, 'x')}, "at most 64");
  refused({"create", "--expires", "soon"}, "--expires");
  refused({"create", "--expires", "0s"}, "--expires");
  refused({"create", "--policy", "no-such-profile"}, "no-such-profile");
  refused({"create", "--cwd", "x"}, "unknown option `--cwd`");
  refused({"create", "--workspace", "/no/such"}, "cannot use workspace");
  refused({"create", "--nmae", "x"}, "did you mean `--name`?");
  EXPECT_EQ(call({"ls"}).out.find("\n", call({"ls"}).out.find("builder")) + 1, call({"ls"}).out.size()) << "none of these stayed";
}

TEST_F(Keep, AnOptionTakesOneValueAndLeavesThePositionalThatFollows) {
  const std::string id = create({"--net", "proxy"});
  EXPECT_EQ(call({"exec", "--allow-domain", "a.example", id, "-c", "echo fine"}).out, "fine\n");
  EXPECT_EQ(call({"exec", "--env", "A=1", id, "-c", "echo $A"}).out, "1\n");
  EXPECT_EQ(call({"exec", "--env", "A=1", "--env", "B=2", id, "-c", "echo $A$B"}).out, "12\n");
  EXPECT_EQ(call({"network", "--allow-domain", "a.example", id}).out, "allowed   a.example\n");
  EXPECT_EQ(call({"network", "--deny-domain", "b.example", id}).exit_code, 0);
  EXPECT_EQ(call({"network", "--drop", "b.example", id}).exit_code, 0);
  EXPECT_TRUE(has(call({"network", "--allow-request", "GET c.example", id}).err, "allow")) << "its ID was taken";
  EXPECT_TRUE(has(call({"commit", "--workspace", workspace_.path(), "q"}).err, "the transaction")) << "`q` was taken";
  EXPECT_TRUE(has(call({"fork", "--workspace", workspace_.path(), "q"}).err, "the transaction")) << "`q` was taken";
  EXPECT_TRUE(has(call({"snapshot", "--workspace", workspace_.path(), "q"}).err, "the transaction")) << "`q` was taken";
  EXPECT_EQ(call({"rules", "check", "--mode", "yolo", "--exclude", "make", "ls"}).exit_code, 0);
  const std::string rules = workspace_.write("rules.toml", "");
  EXPECT_EQ(call({"rules", "check", "--rules", rules, "ls"}).exit_code, 0);
  EXPECT_TRUE(has(call({"policy", "import", "--without", "x", "no-such.json"}).err, "no-such.json"));
  EXPECT_TRUE(has(call({"agent", "--provider", "scripted", "--rules", "/no/rules", "task"}).err, "has no script"))
      << "the task was taken";
}

TEST_F(Keep, MoreOutputThanTheLimitEndsTheCommandOrIsDropped) {
  const std::string kills = create({"--output-bytes", "1000", "--output-action", "kill"});
  const Outcome killed = shell(kills, "yes");
  EXPECT_EQ(killed.exit_code, 137) << killed.err;
  EXPECT_LE(killed.out.size(), 1000U);
  EXPECT_TRUE(has(killed.err, "stdout exceeded the limit of 1000 bytes")) << killed.err;
  const Outcome json = call({"exec", "--json", kills, "-c", "yes >&2"});
  EXPECT_TRUE(has(json.out, R"("reason":"output")") && has(json.out, R"("limits_hit":["output"])")) << json;
  EXPECT_EQ(number_of(json.out, "exit_code"), 137) << json;
  EXPECT_EQ(shell(kills, "echo little").out, "little\n");

  const std::string drops = create({"--output-bytes", "4"});
  const Outcome cut = shell(drops, "echo 0123456789; exit 3");
  EXPECT_EQ(cut.exit_code, 3) << cut;
  EXPECT_EQ(cut.out, "0123");
  EXPECT_TRUE(has(call({"exec", "--json", drops, "-c", "echo 0123456789"}).out, R"("limits_hit":["output"])"));
}

TEST_F(Keep, TheReportTellsTheTimeoutThatHolds) {
  const std::string id = create();
  EXPECT_TRUE(has(call({"exec", "--json", id, "-c", "true"}).out, R"("asked":"none for this command")"));
  EXPECT_TRUE(has(call({"exec", "--json", "--timeout", "7s", id, "-c", "true"}).out, R"("asked":"7s for this command")"));
}

TEST_F(Keep, EveryVerbEndsWhileItsPid1IsStopped) {
  const std::string id = create(), other = create();
  const auto stop_pid1 = [&](const std::string& which) {
    const std::string keeper = std::to_string(keeper_of(which));
    int stopped = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + keeper + "/task")) {
      std::ifstream list(task.path() / "children");
      for (pid_t pid = 0; list >> pid;) stopped += ::kill(pid, SIGSTOP) == 0 ? 1 : 0;
    }
    return stopped;
  };
  EXPECT_EQ(shell(id, "echo before").out, "before\n");
  ASSERT_GT(stop_pid1(id), 0);
  ASSERT_GT(stop_pid1(other), 0);
  EXPECT_TRUE(has(call({"ls"}).out, id));
  EXPECT_EQ(call({"stats", id}).exit_code, 0);
  EXPECT_TRUE(has(call({"logs", id}).out, "echo before"));
  const Outcome timed = call({"exec", "--timeout", "500ms", other, "-c", "touch ran"});
  EXPECT_EQ(timed.exit_code, 124) << timed;
  const Outcome command = shell(id, "touch ran");
  EXPECT_NE(command.exit_code, 0) << command;
  EXPECT_TRUE(has(command.err, "pid 1 of the sandbox did not answer")) << command;
  EXPECT_TRUE(has(call({"ls", "--all"}).out, "its pid 1 did not answer"));
  const std::string third = create();
  ASSERT_GT(stop_pid1(third), 0);
  EXPECT_EQ(call({"kill", third}).exit_code, 0);
  EXPECT_FALSE(exists(entry(third)));
  EXPECT_FALSE(exists(workspace_ / "ran"));
}

TEST_F(Keep, AFrontEndsOnASignalWhileItsKeeperHangs) {
  const std::string id = create();
  const pid_t keeper = keeper_of(id);
  ASSERT_GT(keeper, 0);
  ASSERT_EQ(kill(keeper, SIGSTOP), 0);
  for (const int number : {SIGTERM, SIGINT}) {
    Running front(words({"exec", id, "-c", "echo never"}), options());
    // Its signals are its own once it waits; before, they end it as well.
    usleep(300'000);  // so that it waits; where it does not yet, the other half is tried
    front.send(number);
    const Outcome ended = front.wait();
    EXPECT_FALSE(ended.timed_out) << number;
    EXPECT_EQ(ended.out, "") << ended;
    EXPECT_NE(ended.exit_code, 0) << ended;
  }
  ASSERT_EQ(kill(keeper, SIGCONT), 0);
  EXPECT_EQ(shell(id, "echo on").out, "on\n");
}

TEST_F(Keep, OfTwoCreatorsWithOneNameOneWins) {
  for (int round = 0; round < 5; ++round) {
    const std::string name = "race" + std::to_string(round);
    Running one(words({"create", "--name", name}), options());
    Running two(words({"create", "--name", name}), options());
    EXPECT_EQ(one.wait().exit_code + two.wait().exit_code, 125);
    EXPECT_EQ(shell(name, "true").exit_code, 0);
  }
}

TEST_F(Keep, ThePolicyIsWhatCreateWasGiven) {
  const TempDir other;
  if (is_root()) other.give_to(user_uid(), user_gid());
  const std::string open = create({"--write", other.path(), "--env", "GREETING=hello"}),
                    closed = create({"--policy", "read-only", "--workspace", "/usr"});
  EXPECT_EQ(shell(open, "echo $GREETING > " + other / "file").exit_code, 0);
  EXPECT_EQ(read_file(other / "file"), "hello\n");
  EXPECT_EQ(shell(closed, "pwd; echo x 2>/dev/null > belljar-test").out, "/usr\n");
  EXPECT_FALSE(exists("/usr/belljar-test"));
  EXPECT_TRUE(has(call({"ls"}).out, "read-only"));
  const Outcome report = call({"create", "--json"});
  EXPECT_TRUE(has(report.out, R"("clause":"filesystem.)")) << report;
}

TEST_F(Keep, TheKeeperInheritsNothing) {
  RunOptions with_secret = options();
  with_secret.env["DEPLOY_TOKEN"] = "t0ps3cret";
  const Outcome made = run({"/bin/sh", "-c", "exec 9>held; trap '' TERM; exec \"$0\" create", kBelljar}, with_secret);
  ASSERT_EQ(made.exit_code, 0) << made;
  const std::string id = made.out.substr(0, made.out.find('\n'));
  const std::string proc = "/proc/" + std::to_string(keeper_of(id));
  EXPECT_FALSE(has(read_file(proc + "/environ"), "t0ps3cret"));
  char target[4096];
  const ssize_t cwd = ::readlink((proc + "/cwd").c_str(), target, sizeof target);
  EXPECT_EQ(std::string(target, cwd > 0 ? static_cast<std::size_t>(cwd) : 0), "/");
  DIR* const fds = ::opendir((proc + "/fd").c_str());
  ASSERT_NE(fds, nullptr);
  while (const dirent* entry = ::readdir(fds)) {
    const ssize_t size = ::readlink((proc + "/fd/" + entry->d_name).c_str(), target, sizeof target);
    EXPECT_FALSE(has(std::string(target, size > 0 ? static_cast<std::size_t>(size) : 0), "/held"));
  }
  ::closedir(fds);
  const std::string status = read_file(proc + "/stat");
  const std::string fields = status.substr(status.rfind(')') + 2);  // state ppid pgrp session tty_nr
  int session = 0, terminal = -1;
  ASSERT_EQ(std::sscanf(fields.c_str(), "%*c %*d %*d %d %d", &session, &terminal), 2);
  EXPECT_EQ(session, keeper_of(id));
  EXPECT_EQ(terminal, 0);
  EXPECT_EQ(shell(id, "echo ${DEPLOY_TOKEN-unset}").out, "unset\n");
}

TEST_F(Keep, ACommandInsideCannotReachTheKeepers) {
  BELLJAR_NEEDS(program("python3"));
  const std::string id = create({"--allow-all-unix-sockets"});
  const std::string connect =
      "import socket; socket.socket(socket.AF_UNIX).connect('" + entry(id) + "/socket'); print('connected')";
  const Outcome inside = call({"exec", id, "--", "python3", "-c", connect});
  EXPECT_NE(inside.exit_code, 0) << inside;
  EXPECT_FALSE(has(inside.out, "connected")) << inside;
  const Outcome outside = run({"/usr/bin/env", "python3", "-c", connect});
  EXPECT_EQ(outside.out, "connected\n") << outside;
}

// By a state directory of its own, whose socket leads to another sandbox's: without namespaces the command is the same user.
TEST_F(Keep, ACommandOfTheSecondTierReachesNoKeeper) {
  BELLJAR_NEEDS(landlock_abi_at_least(6));
  const std::string id = create();
  workspace_.make_dir("rt/belljar/" + id);
  ASSERT_EQ(::symlink((entry(id) + "/socket").c_str(), (workspace_ / ("rt/belljar/" + id + "/socket")).c_str()), 0);
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  const std::string attack =
      "chmod -R go= rt; cp " + entry(id) + "/* rt/belljar/" + id + R"( 2>&1; exec 9>>rt/belljar/)" + id +
      "/lock; XDG_RUNTIME_DIR=$PWD/rt python3 -c \"import fcntl, os, struct, subprocess; f = open('rt/belljar/" + id +
      "/lock', 'w'); fcntl.lockf(f, fcntl.LOCK_EX); subprocess.run(['" + kBelljar + "', 'exec', '" + id +
      "', '-c', 'touch reached'])\"";
  const Outcome inside = call({"run", "--backend", "landlock", "--net", "host", "--allow-all-unix-sockets", "-c", attack});
  EXPECT_FALSE(exists(workspace_ / "reached")) << inside;
  EXPECT_EQ(shell(id, "echo lives").out, "lives\n") << inside;
  const Outcome required =
      call({"run", "--backend", "landlock", "--allow-all-unix-sockets", "--require", "network.unix_sockets", "--", "true"});
  EXPECT_EQ(required.exit_code, 125) << required;
}

// The user is not enough: a broker that connects for its sandbox is the user, too.
TEST_F(Keep, WhoDoesNotKnowTheKeyIsNotServed) {
  BELLJAR_NEEDS(program("python3"));
  const std::string id = create();
  const auto ask = [&](const std::string& key) {
    return run({"/usr/bin/env", "python3", "-c",
                "import socket; s = socket.socket(socket.AF_UNIX); e = '" + entry(id) +
                    R"('; s.connect(e + '/socket'); s.settimeout(60); m = b'\xa2\x68protocol\x03\x64verb\x64info'
s.sendall()" + key + R"( + len(m).to_bytes(4, 'little') + m); s.shutdown(socket.SHUT_WR)
try: print('answered' if s.recv(99) else 'closed')
except ConnectionResetError: print('closed'))"});
  };
  EXPECT_EQ(ask("b'0' * 32").out, "closed\n");
  EXPECT_EQ(ask("b''").out, "closed\n");
  EXPECT_EQ(ask("open(e + '/key', 'rb').read()").out, "answered\n") << "the twin";
}

TEST_F(Keep, AnotherUserNeitherSeesNorConnects) {
  BELLJAR_NEEDS(as_root());
  BELLJAR_NEEDS(program("python3"));
  const std::string id = create();
  // Even when the directories are open: the keeper asks the kernel who connects.
  for (const std::string& path : {runtime_.path(), runtime_ / "belljar", entry(id)}) ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  ASSERT_EQ(::chmod((entry(id) + "/socket").c_str(), 0777), 0);
  ASSERT_EQ(::chmod((entry(id) + "/key").c_str(), 0444), 0);
  const std::string ask = "import socket; s = socket.socket(socket.AF_UNIX); e = '" + entry(id) +
                          R"('; s.connect(e + '/socket'); s.settimeout(60); m = b'\xa2\x68protocol\x03\x64verb\x64info'
s.sendall(open(e + '/key', 'rb').read() + len(m).to_bytes(4, 'little') + m); print('answered' if s.recv(99) else 'closed'))";
  EXPECT_FALSE(has(run(as_user({"/usr/bin/env", "python3", "-c", ask})).out, "answered"));
  EXPECT_EQ(run({"/usr/bin/env", "python3", "-c", ask}).out, "answered\n");
  const Outcome refused = run(as_user(words({"exec", id, "--", "true"})), options());
  EXPECT_EQ(refused.exit_code, 125) << refused;
  for (const std::string& path : {runtime_.path(), runtime_ / "belljar", entry(id)}) ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  EXPECT_FALSE(has(run(as_user(words({"ls"})), options()).out, id));
  EXPECT_EQ(shell(id, "echo mine").out, "mine\n");
}

TEST_F(Keep, ADirectoryThatOthersMayEnterIsRefused) {
  ASSERT_EQ(::mkdir((runtime_ / "belljar").c_str(), 0700), 0);
  ASSERT_EQ(::chmod((runtime_ / "belljar").c_str(), 0755), 0);
  const Outcome refused = call({"create"});
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_TRUE(has(refused.err, "others may enter it")) << refused;
  ASSERT_EQ(::chmod((runtime_ / "belljar").c_str(), 0700), 0);
  create();
}

TEST_F(Keep, InterruptedWhileItsStartHangsNothingStays) {
  const std::string state = runtime_ / "state";
  for (const int signal : {SIGINT, SIGTERM}) {
    HeldStart held([&] {
      ::setenv("XDG_RUNTIME_DIR", runtime_.path().c_str(), 1);
      ::setenv("XDG_STATE_HOME", state.c_str(), 1);
      if (::chdir(workspace_.path().c_str()) != 0) return 1;
      ::execl(kBelljar, "belljar", "create", nullptr);
      return 127;
    });
    ASSERT_TRUE(held.await_call());
    held.send(signal);
    EXPECT_EQ(held.wait(), -signal);
    EXPECT_TRUE(held.await_all_ended(std::chrono::seconds(50))) << "its keeper waits on";
    EXPECT_FALSE(has(call({"ls"}).out, workspace_.path()));
  }
  EXPECT_EQ(shell(create(), "echo made").out, "made\n") << "one that does not hang";
}

}  // namespace
}  // namespace belljar::test
