// What a run was refused, from the act to `belljar explain`. Every refusal has a twin that is allowed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "support/as_user.h"
#include "support/identity.h"
#include "support/kept_runs.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

class Violations : public KeptRuns {
 protected:
  void SetUp() override {
    KeptRuns::SetUp();
    if (IsSkipped()) return;
    host_ = serve("host.sock");
  }
  Outcome python(const std::string& text, const std::vector<std::string>& flags = {}) const {
    return KeptRuns::python(flags, {"-c", "import socket, sys\n" + text});
  }

  UniqueFd host_;
};

constexpr char kConnect[] = "socket.socket(1).connect('host.sock')\nprint('CONNECTED')\n";

// Whoever asks for the last one may mean a later one, which was refused nothing and is not kept.
TEST_F(Violations, LastIsTheLastRunAlsoWithoutARefusalAndOfThisWorkspace) {
  (void)python(kConnect);
  EXPECT_NE(explain().out.find("1 act refused\n"), std::string::npos);
  EXPECT_EQ(python("print('fine')").exit_code, 0);
  const Outcome fine = explain({"last"});
  EXPECT_TRUE(fine.out.ends_with(", ended (exit code 0); 0 acts refused\n")) << fine;
  // Another workspace's runs are not this one's, seen from here or from there.
  base_.make_dir("other/below");
  RunOptions there = options();
  there.cwd = base_ / "other";
  EXPECT_NE(belljar({"explain"}, there).err.find("there is nothing to explain in "), std::string::npos);
  EXPECT_EQ(belljar({"run", "-c", "exit 3"}, there).exit_code, 3);
  EXPECT_EQ(explain().out, fine.out);
  for (const char* directory : {"other", "other/below"}) {
    there.cwd = base_ / directory;
    const Outcome words = belljar({"explain"}, there);
    EXPECT_NE(words.out.find(base_ / "other"), std::string::npos) << words;
    EXPECT_NE(words.out.find("exit code 3"), std::string::npos) << words;
  }
  EXPECT_EQ(belljar({"explain", "--workspace", base_ / "ws"}, there).out, fine.out);
  // What explains a run of elsewhere is its id.
  there.cwd = base_.path();
  const Outcome elsewhere = belljar({"run", "--workspace", base_ / "ws", "-c", "echo x >/etc/belljar-test"}, there);
  const std::size_t at = elsewhere.err.find("belljar explain 20");
  ASSERT_NE(at, std::string::npos) << elsewhere;
  const std::string id = elsewhere.err.substr(at + sizeof "belljar explain " - 1, sizeof "20261121-064030-123456" - 1);
  EXPECT_NE(belljar({"explain", id}, there).out.find("/etc/belljar-test"), std::string::npos) << id;
}

// A mask answers inside the kernel and tells nobody; the name's own link does.
TEST_F(Violations, AReadOfAHiddenSecretIsTold) {
  base_.write("home/.ssh/id_rsa", "KEY\n");
  base_.write("home/.netrc", "machine x\n");
  base_.make_dir("home/.aws");
  const Outcome refused = belljar({"run", "-c", "ls -la ~ >/dev/null; cat ~/.ssh/id_rsa; exec cat ~/.netrc ~/.bashrc"}, options());
  EXPECT_EQ(refused.out, "") << refused;
  EXPECT_TRUE(refused.err.ends_with("belljar: 2 acts were refused; belljar explain last\n")) << refused;
  const std::string words = explain().out;
  for (const char* name : {".ssh", ".netrc"}) {
    EXPECT_NE(words.find("tried to read `" + (base_ / "home/") + name + "`, and got EACCES"), std::string::npos) << words;
    EXPECT_NE(words.find("--read " + (base_ / "home/") + name), std::string::npos) << words;
  }
  EXPECT_NE(words.find("filesystem.secrets (default secrets)"), std::string::npos) << words;
  EXPECT_EQ(words.find(".aws"), std::string::npos) << "nobody used it: " << words;
  // What tells is not the command's to change.
  const Outcome hushed = belljar(
      {"run", "--verbose", "-c", "cat ~/.netrc; cd /dev/used-by-belljar; chmod 755 .; rm -f *; touch x; cat ~/.netrc; false"},
      options());
  EXPECT_NE(hushed.err.find("refused: read `" + (base_ / "home/.netrc")), std::string::npos) << hushed;
  // Somebody wrote that name down: there or not.
  const Outcome asked = belljar({"run", "--hide", base_ / "home/later", "--verbose", "-c", "cat ~/later"}, options());
  EXPECT_NE(asked.err.find("refused: read `" + (base_ / "home/later")), std::string::npos) << asked;
  // Nor does a copy of what tells stand in for what is hidden.
  const Outcome copied = belljar({"run", "--verbose", "-c", "cp -r ~/.ssh copy"}, options());
  EXPECT_NE(copied.err.find("refused: read `" + (base_ / "home/.ssh")), std::string::npos) << copied;
  EXPECT_FALSE(exists(base_ / "ws/copy")) << copied;
  // The twin.
  EXPECT_EQ(belljar({"run", "--read", base_ / "home/.netrc", "-c", "cat ~/.netrc"}, options()).out, "machine x\n");
  EXPECT_EQ(belljar({"run", "--read", base_ / "home/.ssh", "-c", "cp -r ~/.ssh copy && cat copy/id_rsa"}, options()).out, "KEY\n");
}

// Of what is no link of ours the arguments tell.
TEST_F(Violations, WhatTheArgumentsNameThatIsHiddenIsSaid) {
  const std::string pass = base_.write("home/.pgpass", "*:*:*:*:secret\n");
  base_.write("home/.netrc", "machine x\n");
  base_.write("ws/secret", "SECRET\n");
  if (is_root()) base_.give_to(user_uid(), user_gid());
  const auto run = [&](std::vector<std::string> args) {
    args.insert(args.begin(), "run");
    return belljar(args, options());
  };
  const std::string note = " is hidden inside (default secrets); --read " + pass + " shows it\n";
  const Outcome given = run({"--", "cat", pass});
  EXPECT_NE(given.err.find("belljar: `" + pass + "`" + note), std::string::npos) << given;
  const Outcome in_text = run({"-c", "cat <~/.pgpass; cat <\"$HOME/.pgpass\""});
  EXPECT_NE(in_text.err.find("belljar: `~/.pgpass`" + note), std::string::npos) << in_text;
  EXPECT_EQ(run({"--read", pass, "-c", "cat ~/.pgpass"}).out, "*:*:*:*:secret\n");
  EXPECT_EQ(run({"--read", pass, "-c", "cat ~/.pgpass; exit 3"}).err, "");
  EXPECT_EQ(run({"-c", "cat ~/.pgpass 2>/dev/null; true"}).err, "") << "it was content";
  EXPECT_EQ(run({"-c", "cat ~/.pgpasses"}).err.find("hidden"), std::string::npos) << "another name";
  for (const auto& [told, path] : {std::pair("cat ~/.netrc", base_ / "home/.netrc"), {"cat secret", base_ / "ws/secret"}}) {
    const Outcome refused = run({"--hide", "secret", "-c", told});
    const std::string last = "ermission denied\nbelljar: 1 act was refused (read `" + path + "`); belljar explain last\n";
    EXPECT_TRUE(refused.err.ends_with(last)) << refused;
  }
  EXPECT_TRUE(
      run({"--hide", "secret", "-c", "cat secret ~/.netrc"}).err.ends_with("belljar: 2 acts were refused; belljar explain last\n"))
      << "of several none is named";
  if (!landlock_abi_at_least(1).empty()) return;
  const Outcome held = run({"--backend", "landlock", "-c", "cat ~/.netrc"});
  EXPECT_NE(
      held.err.find("belljar: `~/.netrc` is hidden inside (default secrets); --read " + (base_ / "home/.netrc") + " shows it\n"),
      std::string::npos)
      << held;
}

// Nobody sees which name is looked up where no server can be asked.
TEST_F(Violations, WithoutANetworkTheHostsOfTheArgumentsAreNamed) {
  const std::string ask =
      "import urllib.request\nfor url in ('http://nobody.invalid/', 'http://127.0.0.1:1/'): urllib.request.urlopen(url)";
  const std::string note =
      "belljar: `nobody.invalid` is out of reach: the sandbox has no network; --net proxy --allow-domain nobody.invalid opens it\n";
  const Outcome refused = python(ask);
  EXPECT_NE(refused.err.find(note), std::string::npos) << refused;
  EXPECT_EQ(refused.err.find("`127.0.0.1"), std::string::npos) << "the sandbox's own: " << refused;
  EXPECT_EQ(python(ask, {"--net", "proxy", "--allow-domain", "nobody.invalid"}).err.find("has no network"), std::string::npos);
  EXPECT_EQ(python("'http://nobody.invalid/'").err, "") << "it was no failure";
}

// The programs are functions here: what they would do is not asked, what their words say is.
TEST_F(Violations, WithoutANetworkTheHostThatAProgramAsksForIsNamed) {
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "run");
    return belljar(words, options());
  };
  const auto said = [&](const std::string& text, const std::vector<std::string>& flags = {}) {
    const std::string program = text.substr(0, text.find(' '));
    std::vector<std::string> words = flags;
    words.insert(words.end(), {"-c", program + "() { return 1; }\n" + text});
    return run(words).err;
  };
  const auto note = [](const std::string& end) {
    return "belljar: `nobody.invalid` is out of reach: the sandbox has no network; --net proxy --allow-domain nobody.invalid opens "
           "it" +
           end + "\n";
  };
  for (const char* text :
       {"ssh git@nobody.invalid", "ssh -p 22 -i key.pem nobody.invalid ls a.b", "scp -P 22 a.b nobody.invalid:c",
        "sftp u@nobody.invalid:d", "git clone git@nobody.invalid:x", "git push --force 'git@nobody.invalid:x'",
        "getent ahosts nobody.invalid", "nc -w 1 nobody.invalid 80", "dig +short MX nobody.invalid",
        "curl -fsSLo out.html nobody.invalid/x", "rsync -a a.b u@nobody.invalid:c", "timeout 5 telnet nobody.invalid"})
    EXPECT_EQ(said(text), note("")) << text;
  EXPECT_EQ(said("ping -c 1 nobody.invalid"), note(", for TCP alone"));
  EXPECT_EQ(run({"--", "getent", "ahosts", "nobody.invalid"}).err.substr(0, note("").size()), note(""));
  for (const char* text : {"ssh localhost", "ssh 192.0.2.1", "scp a.b c.d", "git push origin v1.0:v1.0", "git add nobody.invalid",
                           "getent passwd nobody.invalid", "cat nobody.invalid u@nobody.invalid:x", "curl -o nobody.invalid",
                           "nc -l 8080", "rsync --chown nobody.invalid:x a b", "ssh \"$HOST\""})
    EXPECT_EQ(said(text), "") << "no host: " << text;
  EXPECT_EQ(said("ssh nobody.invalid", {"--net", "proxy", "--allow-domain", "nobody.invalid"}), "") << "the twin";
}

// Mounts alone refuse there, and tell nobody.
TEST_F(Violations, ThatTheWorkspaceIsReadOnlyIsSaidWhereARunFails) {
  const auto write = [&](std::vector<std::string> flags, const std::string& text) {
    flags.insert(flags.begin(), {"run", "--policy", "read-only"});
    flags.insert(flags.end(), {"-c", text});
    return belljar(flags, options());
  };
  if (is_root()) base_.give_to(user_uid(), user_gid());
  const std::string flag = "--write " + (base_ / "ws");
  const std::string note = "belljar: the workspace is read-only (mode read-only); " + flag + " lets it be written to\n";
  const Outcome refused = write({}, "echo x >f");
  EXPECT_TRUE(refused.err.ends_with(note)) << refused;
  EXPECT_EQ(write({}, "true").err, "");
  const Outcome allowed = write({"--write", base_ / "ws"}, "echo x >f; cat f; exit 3");
  EXPECT_EQ(allowed.out, "x\n") << allowed;
  EXPECT_EQ(allowed.err, "") << allowed;
}

TEST_F(Violations, ThatTmpIsPrivateIsSaidOfWhatLiesThere) {
  const TempDir there("/tmp");
  const std::string file = there.write("data", "DATA\n"), program = there.write("program", "#!/bin/sh\necho ran\n", 0755);
  const std::string note =
      "belljar: `" + file + "` is not there inside: the sandbox has a /tmp of its own; --read " + file + " shows it\n";
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--", "cat", file}, {"-c", "cat <'" + file + "'"}}) {
    std::vector<std::string> args = {"run"};
    args.insert(args.end(), words.begin(), words.end());
    const Outcome refused = belljar(args, options());
    EXPECT_NE(refused.err.find(note), std::string::npos) << refused;
    args.insert(args.begin() + 1, {"--read", file});
    EXPECT_EQ(belljar(args, options()).err, "");
  }
  const Outcome started = belljar({"run", "--", program}, options());
  EXPECT_EQ(started.exit_code, 127) << started;
  EXPECT_NE(started.err.find("the sandbox has a /tmp of its own"), std::string::npos) << started;
  EXPECT_EQ(belljar({"run", "--read", program, "--", program}, options()).out, "ran\n");
  EXPECT_EQ(belljar({"run", "-c", "cat " + file + " 2>/dev/null; true"}, options()).err, "") << "it was content";
}

TEST_F(Violations, AnAllowedHostThatIsNotReachedIsTold) {
  const std::string ask = "import os, urllib.request\nurllib.request.urlopen('http://nobody.invalid/')";
  const std::string note =
      "belljar: `nobody.invalid:80` is allowed and was not reached: its name does not resolve on this machine\n";
  const Outcome refused = python(ask, {"--allow-domain", "nobody.invalid"});
  EXPECT_NE(refused.err.find(note), std::string::npos) << refused;
  EXPECT_EQ(python(ask, {"--allow-domain", "other.invalid"}).err.find("was not reached"), std::string::npos)
      << "refused, and told so";
}

TEST_F(Violations, AKillByTheFilterNamesTheCall) {
  const std::string x32 = "import ctypes; ctypes.CDLL(None).syscall(0x40000027)";
  const Outcome killed = python(x32);
  EXPECT_EQ(killed.exit_code, 128 + SIGSYS) << killed;
  const std::string last = "belljar: 1 act was refused (system-call `getpid of x32`, which kills); belljar explain last\n";
  EXPECT_TRUE(killed.err.ends_with(last)) << killed;
  const Outcome several = python("try: socket.socket(1).connect('host.sock')\nexcept OSError: pass\n" + x32);
  EXPECT_NE(several.err.find("2 acts were refused (system-call `getpid of x32`, which kills)"), std::string::npos) << several;
  EXPECT_NE(explain().out.find("tried the system call `getpid of x32`, and was killed\n"), std::string::npos) << explain();
  // Who would live on gets what nobody can catch.
  EXPECT_EQ(python("import signal; signal.signal(signal.SIGSYS, signal.SIG_IGN); " + x32).exit_code, 128 + SIGKILL);
  EXPECT_EQ(python("import ctypes; ctypes.CDLL(None).syscall(39)").exit_code, 0);
}

TEST_F(Violations, AFailedRunHintsAndExplainTellsRuleFlagAndRisk) {
  const Outcome refused = python(kConnect);
  EXPECT_NE(refused.exit_code, 0);
  const std::string last = "belljar: 1 act was refused (unix-connect `" + (base_ / "ws/host.sock") + "`); belljar explain last\n";
  EXPECT_TRUE(refused.err.ends_with(last)) << refused;
  const Outcome words = explain();
  EXPECT_EQ(words.exit_code, 0) << words;
  for (const std::string text : {"host.sock", "EACCES", "network.allow_unix_sockets (built-in)", "--allow-unix-socket /", "risk:"})
    EXPECT_NE(words.out.find(text), std::string::npos) << text << words;
  EXPECT_EQ(explain({"last"}).out, words.out);
  EXPECT_NE(explain({"--model"}).out.find("\"unix-connect\""), std::string::npos);
  EXPECT_NE(explain({"--json"}).out.find("\"flag\":\"--allow-unix-socket /"), std::string::npos);
}

TEST_F(Violations, WhatExplainAdvisesPermitsTheAct) {
  EXPECT_NE(python(kConnect).exit_code, 0);
  const std::string words = explain().out;
  const std::string flag = "--allow-unix-socket ";
  const std::size_t at = words.find(flag);
  ASSERT_NE(at, std::string::npos) << words;
  const std::string path = words.substr(at + flag.size(), words.find('\n', at) - at - flag.size());
  const Outcome allowed = python(kConnect, {"--allow-unix-socket", path});
  EXPECT_EQ(allowed.out, "CONNECTED\n") << allowed;
  EXPECT_EQ(allowed.err, "");
  EXPECT_EQ(python(kConnect, {"--allow-all-unix-sockets"}).out, "CONNECTED\n");
}

// An ordinary user's command is that user: a grant for a directory of root's is not enough, and the advice says so.
TEST_F(Violations, AdviceThatTheMachinesModesMakeVainSaysSo) {
  if (is_root()) GTEST_SKIP() << "only as an ordinary user";  // as root what a grant names is lent: it is enough
  EXPECT_NE(python("open('/etc/belljar-test', 'w')").exit_code, 0);
  const std::string vain = explain().out;
  EXPECT_NE(vain.find("--write /etc\n"), std::string::npos) << vain;
  EXPECT_NE(vain.find("not enough alone"), std::string::npos) << vain;
  // The twin: a directory of the user's own.
  EXPECT_NE(python("open('" + (base_ / "home/mine") + "', 'w')").exit_code, 0);
  const std::string useful = explain().out;
  EXPECT_NE(useful.find("home/mine"), std::string::npos) << useful;
  EXPECT_EQ(useful.find("not enough alone"), std::string::npos) << useful;
}

TEST_F(Violations, ARunWithoutRefusalsLeavesNoFileAndSaysNothing) {
  EXPECT_EQ(python("print('fine')").err, "");
  EXPECT_EQ(python("open('/no/such/file')").err.find("refused"), std::string::npos);  // ENOENT is nobody's refusal
  EXPECT_EQ(python("open('missing')").err.find("refused"), std::string::npos);
  EXPECT_EQ(python("import sys; sys.exit(4)").err, "");
  EXPECT_TRUE(runs_are_warm() || !exists(base_ / "home/.local"));
  const Outcome nothing = explain();
  EXPECT_EQ(nothing.exit_code, 125);
  EXPECT_NE(nothing.err.find("there is nothing to explain"), std::string::npos) << nothing;
}

TEST_F(Violations, ASuccessKeepsThemWithoutAHint) {
  const Outcome fine = python("try: socket.socket(1).connect('host.sock')\nexcept PermissionError: print('went on')");
  EXPECT_EQ(fine.exit_code, 0);
  EXPECT_EQ(fine.err, "");
  EXPECT_NE(explain().out.find("host.sock"), std::string::npos);
}

TEST_F(Violations, TheIdOfTheReportFindsTheRun) {
  const Outcome first = python(kConnect, {"--json"});
  const std::size_t at = first.out.find("\"id\":\"");
  ASSERT_NE(at, std::string::npos) << first;
  const std::string id = first.out.substr(at + 6, 22);
  python("socket.socket().connect(('192.0.2.1', 443))");
  EXPECT_NE(explain({id}).out.find("host.sock"), std::string::npos);
  EXPECT_NE(explain({"last"}).out.find("192.0.2.1:443"), std::string::npos);
  EXPECT_EQ(std::ranges::count(explain({"--list"}).out, '\n'), 2);
}

TEST_F(Violations, ConnectionsWithoutANetworkAreTheModesRefusal) {
  const Outcome refused = python("socket.socket().connect(('192.0.2.1', 443))");
  EXPECT_NE(refused.err.find("Network is unreachable"), std::string::npos) << refused;
  const std::string words = explain().out;
  EXPECT_NE(words.find("--net proxy --allow-domain 192.0.2.1:443\n"), std::string::npos) << words;
  EXPECT_EQ(words.find("--net host"), std::string::npos) << words;
  // Both texts are taken as they are.
  const std::string tag = "or in a file: ";
  const std::size_t at = words.find(tag) + tag.size();
  const std::string file = base_.write("one.toml", words.substr(at, words.find('\n', at) - at) + "\n");
  EXPECT_EQ(belljar({"run", "--policy", file, "--", "true"}, options()).exit_code, 0) << words;
  // The sandbox's own loopback is no refusal, answered or not.
  const Outcome own = python(
      "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\nsocket.create_connection(s.getsockname())\n"
      "try: socket.create_connection(('127.0.0.1', 1))\nexcept ConnectionRefusedError: sys.exit(3)");
  EXPECT_EQ(own.exit_code, 3) << own;
  EXPECT_EQ(own.err, "");
}

constexpr char kListen[] =
    "for family in (socket.AF_INET, socket.AF_INET6):\n s = socket.socket(family); s.listen(); print(s.getsockname()[1] > 0)\n";
constexpr char kListenRefused[] =
    "for act in ('listen()', 'bind((\"127.0.0.1\", 0))'):\n try: eval('socket.socket().' + act)\n except PermissionError: "
    "print('EACCES')\n";

// listen without bind takes a port of the kernel's choice; Landlock sees bind alone.
TEST_F(Violations, NobodyListensOnTheHostsNetworkUnasked) {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--net", "host"},
                                                {"--net", "host", "--allow-all-unix-sockets"},
                                                {"--net", "proxy", "--allow-local-binding=false"},
                                                {"--allow-local-binding=false"}}) {
    EXPECT_NE(python(kListen, flags).err.find("Permission denied"), std::string::npos) << flags[0];
    EXPECT_EQ(python(kListenRefused, flags).out, "EACCES\nEACCES\n");
    const std::string words = explain().out;
    // No second flag outweighs one that says no.
    const std::string no = flags.back().ends_with("=false") ? "leave out or change " : "";
    for (const std::string& text :
         {std::string("listen on the TCP port `0.0.0.0:0`"), std::string("network.allow_local_binding ("),
          std::string("bind the TCP port `127.0.0.1:0`"), "to permit:    " + no + "--allow-local-binding\n"})
      EXPECT_NE(words.find(text), std::string::npos) << text << words;
  }
  EXPECT_EQ(python(kListen, {"--net", "host", "--allow-local-binding"}).out, "True\nTrue\n") << "the twin";
  EXPECT_EQ(python(kListen, {"--net", "proxy"}).out, "True\nTrue\n") << "the sandbox's own loopback";
  // What is no TCP port: UDP clients, and servers of their own on Unix sockets.
  const Outcome other = python(
      "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(('', 0))\n"
      "from multiprocessing.connection import Listener, Client\nimport threading\n"
      "l = Listener('own.sock', 'AF_UNIX'); t = threading.Thread(target=lambda: l.accept().send('served')); t.start()\n"
      "print(Client('own.sock', 'AF_UNIX').recv()); t.join()",
      {"--net", "host"});
  EXPECT_EQ(other.out, "served\n") << other;
  EXPECT_EQ(other.err.find("refused"), std::string::npos) << other;
}

// Where a proxy is, nobody is sent to the host's network for what it does not carry.
TEST_F(Violations, WhatTheProxyDoesNotCarryIsExplainedWithTheProxy) {
  const std::vector<std::string> proxy{"--net", "proxy", "--allow-domain", "*"};
  EXPECT_NE(python("socket.socket(socket.AF_INET6).connect(('2001:db8::1', 80))", proxy).exit_code, 0);
  std::string words = explain().out;
  EXPECT_EQ(words.find("--net host"), std::string::npos) << words;
  EXPECT_NE(words.find("connect to `[2001:db8::1]:80`"), std::string::npos) << words;
  EXPECT_NE(words.find("--allow-domain HOST"), std::string::npos) << words;
  const char udp[] = "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 443))";
  EXPECT_NE(python(udp, proxy).exit_code, 0);
  words = explain().out;
  EXPECT_EQ(words.find("--net host"), std::string::npos) << words;
  EXPECT_NE(words.find("send UDP to `192.0.2.1:443`"), std::string::npos) << words;
  EXPECT_NE(words.find("UDP does not leave"), std::string::npos) << words;
  EXPECT_NE(python(udp).exit_code, 0);
  EXPECT_NE(explain().out.find("--net host"), std::string::npos) << "the twin: without a proxy nothing else permits it";
}

TEST_F(Violations, ALimitIsExplainedWithItsFlagAndOrigin) {
  const std::string file = base_.write("p.toml", "[limits]\ntimeout = \"300ms\"\n");
  const Outcome ended = python("import time; time.sleep(100)", {"--policy", file});
  EXPECT_EQ(ended.exit_code, 124);
  const std::string words = explain().out;
  EXPECT_NE(words.find("limits.timeout (policy " + file + ":2)"), std::string::npos) << words;
  EXPECT_NE(words.find("--timeout MORE"), std::string::npos) << words;
}

TEST_F(Violations, VerboseTellsEachKindOnce) {
  const Outcome told =
      python("for i in range(50):\n try: socket.socket(1).connect('host.sock')\n except PermissionError: pass", {"--verbose"});
  EXPECT_NE(told.err.find("refused: unix-connect"), std::string::npos) << told;
  EXPECT_NE(told.err.find("(50 times)"), std::string::npos) << told;
  EXPECT_EQ(told.err.find("refused: unix-connect", told.err.find("refused: unix-connect") + 1), std::string::npos) << told;
}

TEST_F(Violations, IgnoredOnesAreCountedAndStayRefused) {
  const std::string file = base_.write("p.toml", "[ignore_violations]\nfile = [\"host.sock\"]\nnetwork = [\"192.0.2.*:443\"]\n");
  const std::string both =
      "try: socket.socket(1).connect('host.sock')\nexcept PermissionError: print('EACCES')\n"
      "try: socket.socket().connect(('192.0.2.1', 443))\nexcept OSError: print('UNREACHABLE')\nsys.exit(1)";
  const Outcome hidden = python(both, {"--policy", file, "--report", base_ / "report"});
  EXPECT_EQ(hidden.out, "EACCES\nUNREACHABLE\n");
  EXPECT_EQ(hidden.err, "");
  EXPECT_NE(read_file(base_ / "report").find("\"violations\":[],\"violations_dropped\":0,\"violations_hidden\":2"),
            std::string::npos)
      << read_file(base_ / "report");
  EXPECT_TRUE(runs_are_warm() || !exists(kept()));
  EXPECT_NE(python(both, {"--policy", file, "--verbose"}).err.find("2 acts were refused and hidden by ignore_violations"),
            std::string::npos);
  EXPECT_NE(python(both).err.find("2 acts were refused; belljar explain last"), std::string::npos);
}

TEST_F(Violations, AProjectFileMayNotHideThem) {
  base_.write("ws/.belljar/policy.toml", "[ignore_violations]\nfile = [\"**\"]\n");
  const Outcome refused = python(kConnect);
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_NE(refused.err.find("may not widen `ignore_violations.file`"), std::string::npos) << refused;
  base_.write("ws/.belljar/policy.toml", "[ignore_violations]\nfile = []\n");
  EXPECT_NE(python(kConnect).err.find("1 act was refused"), std::string::npos);
}

TEST_F(Violations, AStateDirectoryThatCannotBeWrittenCostsTheRunNothing) {
  RunOptions elsewhere = options();
  elsewhere.env["XDG_STATE_HOME"] = "/proc/nowhere";
  const Outcome refused = belljar({"run", "--", "python3", "-c", std::string("import socket\n") + kConnect}, elsewhere);
  EXPECT_EQ(refused.exit_code, 1) << refused;
  EXPECT_NE(refused.err.find("`); --verbose tells which"), std::string::npos) << refused;
  const Outcome nothing = belljar({"explain"}, elsewhere);
  EXPECT_EQ(nothing.exit_code, 125);
  EXPECT_NE(nothing.err.find("/proc/nowhere/belljar/violations"), std::string::npos) << nothing;
}

TEST_F(Violations, NoLaterCommandReadsWhatIsKept) {
  python(kConnect);
  const std::string look = "import os\nprint(os.listdir('" + kept() + "'))";
  EXPECT_NE(python(look).err.find("Permission denied"), std::string::npos);
  // The same where the user keeps state elsewhere.
  base_.make_dir("state");
  RunOptions elsewhere = options();
  elsewhere.env["XDG_STATE_HOME"] = base_ / "state";
  belljar({"run", "--", "python3", "-c", std::string("import socket\n") + kConnect}, elsewhere);
  ASSERT_TRUE(exists(base_ / "state/belljar/violations"));
  const std::string there = "import os\nprint(os.listdir('" + (base_ / "state/belljar") + "'))";
  const Outcome hidden = belljar({"run", "--read", base_ / "state", "--", "python3", "-c", there}, elsewhere);
  EXPECT_EQ(hidden.out, "") << hidden;
  // The twin: a directory beside it can be read.
  base_.write("state/other/file", "");
  const std::string beside = "import os\nprint(os.listdir('" + (base_ / "state/other") + "'))";
  EXPECT_EQ(belljar({"run", "--read", base_ / "state", "--", "python3", "-c", beside}, elsewhere).out, "['file']\n");
}

TEST_F(Violations, SecretsOfTheCommandLineAreNotKept) {
  python("token = 'hunter2-in-argv'\n" + std::string(kConnect), {"--env", "NAME=hunter2-in-env"});
  EXPECT_NE(explain({"--json"}).out.find("host.sock"), std::string::npos);
  EXPECT_EQ(explain({"--json"}).out.find("hunter2"), std::string::npos);
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}
constexpr char kOperation[] = "\"operation\":\"";

TEST_F(Violations, OneRefusedOpenIsOneViolation) {
  base_.write("ws/a/.env", "SECRET");
  base_.write("ws/p.pem", "old");
  const std::string file = base_.write("p.toml",
                                       "[[filesystem.entries]]\nglob = \"**/.env\"\naccess = \"none\"\n"
                                       "[[filesystem.entries]]\nglob = \"**/*.pem\"\naccess = \"read\"\n");
  const auto told = [&](const std::string& act) {
    python("try:\n " + act + "\nexcept OSError: sys.exit(1)", {"--policy", file});
    return explain({"--json"}).out;
  };
  for (const auto& [act, operation] : {std::pair{"open('a/.env')", "read"},
                                       {"open('new.pem', 'w')", "create"},
                                       {"open('p.pem', 'w')", "write"},
                                       {"open('.vscode/x', 'w')", "create"}}) {
    if (std::string_view(act).find("vscode") != std::string_view::npos) base_.make_dir("ws/.vscode");
    const std::string all = told(act);
    EXPECT_EQ(count_of(all, kOperation), 1U) << act << all;
    EXPECT_NE(all.find(kOperation + std::string(operation) + '"'), std::string::npos) << act << all;
  }
  EXPECT_EQ(read_file(base_ / "ws/p.pem"), "old");
  // Two acts are two.
  EXPECT_EQ(count_of(told("\n  try: open('a/.env')\n  except OSError: pass\n  open('new.pem', 'w')"), kOperation), 2U);
}

TEST_F(Violations, WhatExplainAdvisesForANewFilePermitsIt) {
  base_.make_dir("home/data");
  const std::string make = "open('" + (base_ / "home/data/new") + "', 'w').write('MADE')";
  EXPECT_NE(python(make).exit_code, 0);
  const std::string words = explain().out;
  EXPECT_NE(words.find("--write " + (base_ / "home/data") + "\n"), std::string::npos) << words;
  EXPECT_EQ(python(make, {"--write", base_ / "home/data"}).exit_code, 0);
  EXPECT_EQ(read_file(base_ / "home/data/new"), "MADE");
  // What is there is permitted by itself.
  EXPECT_NE(python(make).exit_code, 0);
  EXPECT_NE(explain().out.find("--write " + (base_ / "home/data/new") + "\n"), std::string::npos) << explain().out;
}

std::string value_of(const std::string& json, const std::string& key) {
  const std::string start = '"' + key + "\":\"";
  const std::size_t at = json.find(start);
  if (at == std::string::npos) return {};
  return json.substr(at + start.size(), json.find('"', at + start.size()) - at - start.size());
}

// Each entry is three lines; without the one that line `number` is in.
std::string without(const std::string& policy, std::size_t number) {
  std::string text;
  std::size_t line = 0;
  for (std::size_t at = 0, end = 0; at < policy.size(); at = end) {
    end = policy.find('\n', at) + 1;
    if (line++ / 3 != (number - 1) / 3) text += policy.substr(at, end - at);
  }
  return text;
}

TEST_F(Violations, WhatExplainAdvisesForPatternsAndHiddenNamesPermitsTheAct) {
  base_.write("ws/.env", "SECRET");
  base_.write("ws/p.pem", "old", 0666);
  const std::string entry = "[[filesystem.entries]]\n";
  const std::string text = entry + "glob = \"**/.env\"\naccess = \"none\"\n" + entry + "glob = \"**/*.pem\"\naccess = \"read\"\n" +
                           entry + "path = \"hid\"\naccess = \"none\"\n" + entry + "path = \"ro\"\naccess = \"read\"\n";
  for (const std::string act : {"open('q.pem', 'w')", "open('.env').read()", "os.rmdir('hid')", "os.listdir('hid')",
                                "os.rmdir('ro')", "open('p.pem', 'w')", "open('ro/new', 'w').close(); os.unlink('ro/new')"}) {
    for (const char* dir : {"ws/hid", "ws/ro"}) ASSERT_EQ(::chmod(base_.make_dir(dir).c_str(), 0777), 0);
    const std::string file = base_.write("p.toml", text);
    const std::string program = "import os\n" + act;
    EXPECT_NE(python(program, {"--policy", file}).exit_code, 0) << act;
    const std::string told = explain({"--json"}).out;
    const std::string flag = value_of(told, "flag"), step = value_of(told, "step");
    std::vector<std::string> flags = {"--policy", file};
    if (!flag.empty()) {
      flags.insert(flags.end(), {flag.substr(0, flag.find(' ')), flag.substr(flag.find(' ') + 1)});
    } else {
      const std::string start = "change or remove line ";
      ASSERT_TRUE(step.starts_with(start) && step.ends_with(" of " + file)) << act << told;
      EXPECT_NE(explain().out.find("to permit:    " + step + "\n"), std::string::npos) << explain();
      base_.write("p.toml", without(text, std::stoul(step.substr(start.size()))));
    }
    const Outcome permitted = python(program, flags);
    EXPECT_EQ(permitted.exit_code, 0) << act << permitted << told;
  }
  base_.make_dir("ws/hid");
  EXPECT_NE(python("import os; os.rmdir('hid')", {"--hide", base_ / "ws/hid"}).exit_code, 0);
  EXPECT_NE(explain().out.find("to permit:    leave out or change --hide\n"), std::string::npos) << explain();
}

TEST_F(Violations, WhatExplainAdvisesForAgentNamesPermitsTheAct) {
  base_.write("ws/.mcp.json", "{}", 0666);
  ASSERT_EQ(::chmod(base_.make_dir("ws/.vscode").c_str(), 0777), 0);
  for (const auto& [act, name] : {std::pair{"open('.mcp.json', 'w').write('new')", ".mcp.json"},
                                  {"open('.vscode/x', 'w').write('new')", ".vscode"},
                                  {"os.mkdir('.vscode/d')", ".vscode"}}) {
    const std::string program = std::string("import os\n") + act, path = base_ / "ws" + "/" + name;
    EXPECT_NE(python(program).exit_code, 0) << act;
    EXPECT_EQ(value_of(explain({"--json"}).out, "flag"), "--write " + path) << act;
    EXPECT_EQ(python(program, {"--write", path}).exit_code, 0) << act;
  }
  // What is not there yet.
  const std::string make = "open('.envrc', 'w').write('new')", path = base_ / "ws/.envrc";
  EXPECT_NE(python(make).exit_code, 0);
  const std::string words = explain().out;
  EXPECT_NE(words.find("to permit:    create it outside first, then --write " + path + "\n"), std::string::npos) << words;
  EXPECT_NE(words.find("allowed:      making it outside the sandbox; once it is there"), std::string::npos) << words;
  EXPECT_EQ(python(make, {"--write", path}).exit_code, 125) << "it is not there yet";
  base_.write("ws/.envrc", "", 0666);
  EXPECT_EQ(python(make, {"--write", path}).exit_code, 0);
  EXPECT_EQ(read_file(path), "new");
  // The name itself is moved by nobody but with the whole protection gone.
  const std::string remove = "import os; os.unlink('.mcp.json')";
  EXPECT_NE(python(remove, {"--write", base_ / "ws/.mcp.json"}).exit_code, 0);
  EXPECT_EQ(value_of(explain({"--json"}).out, "flag"), "");
  const std::string file = base_.write("p.toml", "filesystem.protect = \"none\"\n");
  EXPECT_NE(explain().out.find("to permit:    filesystem.protect = \"none\"\n"), std::string::npos) << explain();
  EXPECT_EQ(python(remove, {"--policy", file}).exit_code, 0);
}

TEST_F(Violations, ProtectionThatAFileSetNamesTheFile) {
  const std::string make = "open('.envrc', 'w').write('new')", file = base_.write("p.toml", "filesystem.protect = \"all\"\n");
  EXPECT_NE(python(make, {"--policy", file}).exit_code, 0);
  EXPECT_NE(explain().out.find("filesystem.protect (policy " + file + ":1)"), std::string::npos) << explain();
  EXPECT_NE(python(make).exit_code, 0);
  EXPECT_NE(explain().out.find("filesystem.protect (built-in)"), std::string::npos) << explain() << "nobody's file";
}

TEST_F(Violations, WhatExplainAdvisesForASecretThatIsChangedPermitsIt) {
  base_.write("home/.ssh/authorized_keys", "KEY\n", 0666);
  const std::string add = "open('" + (base_ / "home/.ssh/authorized_keys") + "', 'a').write('MORE')";
  EXPECT_NE(python(add).exit_code, 0);
  EXPECT_EQ(read_file(base_ / "home/.ssh/authorized_keys"), "KEY\n");
  EXPECT_EQ(value_of(explain({"--json"}).out, "flag"), "--write " + (base_ / "home/.ssh"));
  EXPECT_EQ(python(add, {"--write", base_ / "home/.ssh"}).exit_code, 0);
  EXPECT_EQ(read_file(base_ / "home/.ssh/authorized_keys"), "KEY\nMORE");
}

TEST_F(Violations, APathTooLongToBeJudgedNamesTheRulesOrigin) {
  const std::string deep = "import os\nfor i in range(24): os.mkdir('d' * 200); os.chdir('d' * 200)\n";
  const Outcome refused = python(deep);
  EXPECT_NE(refused.err.find("File name too long"), std::string::npos) << refused;
  const Outcome words = explain();
  EXPECT_NE(words.out.find("refused by:   filesystem.protect (built-in)"), std::string::npos) << words;
  EXPECT_EQ(python("import os\nfor i in range(9): os.mkdir('e' * 200); os.chdir('e' * 200)\n").exit_code, 0) << "the twin";
}

TEST_F(Violations, NamesThatAreMountPointsAreToldWhenTheyAreMovedOrRemoved) {
  for (const char* dir : {"ws/ro", "ws/up/ro", "ws/hid", "ws/free"}) base_.make_dir(dir);
  const std::vector<std::string> flags = {"--read", base_ / "ws/ro", "--read", base_ / "ws/up/ro", "--hide", base_ / "ws/hid"};
  const auto told = [&](const std::string& act) {
    const Outcome refused = python("import os\ntry: " + act + "\nexcept OSError as e: print(e.strerror); sys.exit(1)", flags);
    const auto names = [&](const char* name) { return act.find(name) != std::string::npos; };
    EXPECT_EQ(refused.out, names("'hid'")  ? "Permission denied\n"
                           : names("'ro'") ? "Read-only file system\n"
                                           : "Device or resource busy\n")
        << act << refused;
    return explain({"--json"}).out;
  };
  for (const auto& [act, operation, target] : {std::tuple{"os.rename('ro', 'r2')", "rename", "ws/ro"},
                                               {"os.rename('hid', 'h2')", "rename", "ws/hid"},
                                               {"os.rename('up', 'u2')", "rename", "ws/up"},
                                               {"os.rename('free', 'ro')", "rename", "ws/ro"},
                                               {"os.rmdir('ro')", "delete", "ws/ro"},
                                               {"os.rmdir('hid')", "delete", "ws/hid"}}) {
    const std::string all = told(act);
    EXPECT_EQ(count_of(all, kOperation), 1U) << act << all;
    EXPECT_NE(all.find(kOperation + std::string(operation) + '"'), std::string::npos) << act << all;
    EXPECT_NE(all.find((base_ / target) + '"'), std::string::npos) << act << all;
  }
  // The twin.
  EXPECT_EQ(python("import os; os.rename('free', 'f2'); os.rmdir('f2')", flags).exit_code, 0);
}

// Through an overlay, as over a home with hidden names, the kernel finds no socket; a mask shuts it.
TEST_F(Violations, ASocketInAHomeOrAtAHiddenNameIsToldLikeAnyOther) {
  base_.make_dir("home/.gnupg");
  for (const std::string name : {"app.sock", ".gnupg/S.gpg-agent"}) {
    UniqueFd server = serve("../home/" + name);
    const std::string path = base_ / "home/" + name;
    const std::string act = "socket.socket(1).connect('" + path + "')\nprint('CONNECTED')";
    const Outcome refused = python(act);
    EXPECT_NE(refused.err.find("PermissionError"), std::string::npos) << refused;
    const std::string told = explain({"--json"}).out;
    EXPECT_EQ(count_of(told, kOperation), 1U) << told;
    EXPECT_NE(told.find("\"rule\":\"network.allow_unix_sockets\""), std::string::npos) << told;
    EXPECT_EQ(value_of(told, "flag"), "--allow-unix-socket " + path);
    EXPECT_EQ(python(act, {"--allow-unix-socket", path}).out, "CONNECTED\n");
  }
  // Nobody listens any more: nobody's refusal.
  serve("../home/dead.sock").reset();
  const Outcome dead = python("socket.socket(1).connect('" + (base_ / "home/dead.sock") + "')");
  EXPECT_NE(dead.exit_code, 0);
  EXPECT_EQ(dead.err.find("refused; belljar"), std::string::npos) << dead;
}

// Who root lends is kept out by the file's mode before the mount is asked. An ordinary user's append fails without us, too.
TEST_F(Violations, AnAppendThatRootCouldMakeIsTold) {
  const Outcome refused = python("open('/etc/passwd', 'a')");
  EXPECT_NE(refused.err.find("PermissionError"), std::string::npos) << refused;
  EXPECT_EQ(refused.err.find("1 act was refused") != std::string::npos, is_root()) << refused;
  if (is_root()) {
    const std::string told = explain({"--json"}).out;
    EXPECT_EQ(count_of(told, kOperation), 1U) << told;
    EXPECT_EQ(value_of(told, "rule"), "filesystem.writable_roots");
    EXPECT_EQ(value_of(told, "flag"), "--write /etc/passwd");
  }
  const Outcome made = python("open('/usr/belljar-test', 'w')");
  EXPECT_NE(made.err.find("Read-only file system"), std::string::npos) << "what the mount refuses stays EROFS" << made;
  // Where the policy lets write, a mode is nobody's refusal.
  base_.write("ws/closed", "", 0444);
  EXPECT_EQ(python("open('closed', 'a')").err.find("refused; belljar"), std::string::npos);
}

TEST_F(Violations, WhatExplainAdvisesForAShellsFileInAHomePermitsIt) {
  const std::string path = base_ / "home/.bashrc";
  const std::string act = "open('" + path + "', 'a').write('new')";
  EXPECT_NE(python(act).exit_code, 0);
  EXPECT_NE(explain().out.find("to permit:    create it outside first, then --write " + path + "\n"), std::string::npos)
      << explain();
  EXPECT_NE(python(act, {"--write", base_ / "home"}).exit_code, 0) << "its directory alone does not do";
  base_.write("home/.bashrc", "", 0666);
  EXPECT_EQ(python(act, {"--write", path}).exit_code, 0);
  EXPECT_EQ(read_file(path), "new");
}

TEST_F(Violations, WhatExplainAdvisesForANameInAHomePermitsIt) {
  const std::string path = base_ / "home/.tool.tmp1", act = "import os; open(os.environ['HOME'] + '/.tool.tmp1', 'w').write('new')";
  EXPECT_NE(python(act).exit_code, 0);
  const std::string told = explain({"--json"}).out;
  EXPECT_EQ(value_of(told, "flag"), "") << "its directory is all of a home";
  EXPECT_EQ(value_of(told, "step"), "create it outside first, then --write " + path);
  EXPECT_EQ(python(act, {"--env", "HOME=" + (base_ / "ws")}).exit_code, 0) << told;
  base_.write("home/.tool.tmp1", "", 0666);
  EXPECT_EQ(python(act, {"--write", path}).exit_code, 0);
  EXPECT_EQ(read_file(path), "new");
}

// Inside it is there, since names below it are hidden.
TEST_F(Violations, WhatExplainAdvisesBelowADirectoryThatIsNotThere) {
  const std::string act = "import os; os.mkdir('" + (base_ / "home/.config/tool") + "')";
  EXPECT_NE(python(act).exit_code, 0);
  EXPECT_EQ(value_of(explain({"--json"}).out, "step"), "create it outside first, then --write " + (base_ / "home/.config"));
  ASSERT_EQ(::chmod(base_.make_dir("home/.config").c_str(), 0777), 0);
  EXPECT_EQ(python(act, {"--write", base_ / "home/.config"}).exit_code, 0);
}

TEST_F(Violations, AllOfOneRemovalIsOneEntryWithTheFlagThatPermitsIt) {
  BELLJAR_NEEDS(program("git"));
  ASSERT_EQ(python("import subprocess; subprocess.run(['git', 'init', '-q'], check=True)").exit_code, 0);
  const std::string act = "import shutil; shutil.rmtree('.git', ignore_errors=True); import os; sys.exit(os.path.exists('.git'))";
  EXPECT_EQ(python(act).exit_code, 1);
  const std::string words = explain().out;
  EXPECT_NE(words.find("   and the same: `" + (base_ / "ws/.git/")), std::string::npos) << words;
  EXPECT_EQ(count_of(words, "--allow-git-removal\n"), 1U) << words;
  EXPECT_EQ(value_of(explain({"--json"}).out, "flag"), "--allow-git-removal");
  EXPECT_EQ(python(act, {"--allow-git-removal"}).exit_code, 0);
}

TEST_F(Violations, AMountIsPermittedInNamespacesOfItsOwn) {
  const std::string mount = "'mount', '-t', 'tmpfs', 'x', '/mnt'", start = "import subprocess; sys.exit(subprocess.run([";
  const std::string bare = start + mount + "]).returncode)", own = start + "'unshare', '-rm', " + mount + "]).returncode)";
  EXPECT_NE(python(bare).exit_code, 0);
  const std::string words = explain().out;
  EXPECT_NE(words.find("   note:         only in namespaces that the program makes for itself (`unshare -rm`)"), std::string::npos)
      << words;
  EXPECT_NE(python(bare, {"--allow-nested-userns"}).exit_code, 0);
  EXPECT_NE(python(own).exit_code, 0);
  EXPECT_EQ(value_of(explain({"--json"}).out, "flag"), "--allow-nested-userns");
  EXPECT_EQ(python(own, {"--allow-nested-userns"}).exit_code, 0);
}

TEST_F(Violations, OutputThatIsTooMuchNamesItsLimit) {
  const std::vector<std::string> limit{"--output-bytes", "1KiB", "--output-action", "kill"};
  EXPECT_EQ(python("import time\nprint('x' * 5000, flush=True)\ntime.sleep(100)", limit).exit_code, 137);
  const std::string words = explain().out;
  EXPECT_NE(words.find("limits.output_bytes (flag --output-bytes)"), std::string::npos) << words;
  EXPECT_NE(words.find("--output-bytes MORE"), std::string::npos) << words;
  EXPECT_EQ(python("print('x' * 500)", limit).exit_code, 0) << "the twin";
}

// A shell closes what it opened once it stands at its number: nothing was written by then.
TEST_F(Violations, ARefusedRedirectionLeavesGitsFileAsItWasAndIsOne) {
  base_.make_dir("ws/.git/objects"), base_.make_dir("ws/.git/refs");
  base_.write("ws/.git/HEAD", "ref: refs/heads/main\n");
  const std::string old = "[core]\n\tbare = false\n", config = base_.write("ws/.git/config", old, 0666);
  const auto shell = [&](const std::string& text) { return belljar({"run", "-c", text}, options()); };
  for (const std::string act : {"printf '[core]\\n\\tpager = x\\n' >.git/config", "echo ../x >.git/commondir"}) {
    shell(act);
    EXPECT_EQ(read_file(config), old) << act;
    EXPECT_EQ(count_of(explain({"--json"}).out, kOperation), 1U) << act << explain();
    EXPECT_FALSE(exists(base_ / "ws/.git/commondir")) << act;
  }
  shell("printf '[user]\\n\\tname = x\\n' >.git/config");
  EXPECT_EQ(read_file(config), "[user]\n\tname = x\n") << "the twin";
  shell("exec 3>.git/config; exec 5>&3 3>&-; printf '[user]\\n' >&5");
  EXPECT_EQ(read_file(config), "[user]\n");
  shell(": >.git/config");
  EXPECT_EQ(read_file(config), "");
}

}  // namespace
}  // namespace belljar::test
