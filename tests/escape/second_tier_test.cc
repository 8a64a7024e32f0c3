// The tier without namespaces: Landlock, seccomp and the broker. What the other tests of this directory show for namespaces and
// mounts, for the parts that differ: every path is a rule's, /proc is the host's, and the broker has the command's own uid.
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "escape/support_attack.h"
#include "support/as_user.h"
#include "support/built.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

struct SecondTier : Attack {
  void SetUp() override {
    Attack::SetUp();
    BELLJAR_NEEDS(landlock_abi_at_least(6));
    always_ = {"--backend", "landlock"};
  }
};

TEST_F(SecondTier, WhatTheBrokerHoldsIsFullAndWhatNobodyHoldsIsNot) {
  for (const char* clause : {"filesystem.secrets", "protect.existing", "protect.absent", "protect.nested", "network.unix_sockets"})
    EXPECT_EQ(run_in({"--require", clause, "--", "true"}).exit_code, 0) << clause;
  for (const char* clause : {"filesystem.root", "filesystem.secrets_metadata", "filesystem.tmp", "processes", "kill"}) {
    const Outcome outcome = run_in({"--require", clause, "--", "true"});
    EXPECT_EQ(outcome.exit_code, 125) << clause;
    EXPECT_NE(outcome.err.find("enforces it only as `partial`"), std::string::npos) << outcome;
  }
  for (const std::vector<std::string>& unserved :
       {std::vector<std::string>{"--policy", "danger-full-access"}, {"--allow-nested-userns"}, {"--net", "proxy"}, {"--txn"}}) {
    std::vector<std::string> words = unserved;
    words.insert(words.end(), {"--", "true"});
    EXPECT_EQ(run_in(words).exit_code, 125) << unserved[0];
  }
}

TEST_F(SecondTier, NoPortOfTheHostIsTakenUnasked) {
  for (const char* act : {"listen4", "listen6"}) {
    EXPECT_EQ(inside({act}, {"--net", "host"}), "EACCES") << act;
    EXPECT_EQ(inside({act}, {"--net", "host", "--allow-all-unix-sockets"}), "EACCES") << act;
    EXPECT_EQ(inside({act}, {"--net", "host", "--allow-local-binding"}), "ok") << act;
  }
  EXPECT_EQ(inside({"own_unix", workspace("own")}, {"--net", "host"}), "ok");
}

// Landlock judges no connect: the broker does, also where all sockets are allowed.
TEST_F(SecondTier, ASocketInAHiddenDirectoryIsOutOfReachInEveryMode) {
  plant_dir(beside("secret"));
  plant_dir(beside("plain"));
  const UniqueFd hidden = listen_unix(beside("secret/sock")), shown = listen_unix(beside("plain/sock"));
  ASSERT_TRUE(hidden.valid() && shown.valid());
  std::filesystem::create_symlink(beside("secret/sock"), workspace("link"));
  std::filesystem::create_symlink(beside("plain/sock"), workspace("other"));
  hand_over();
  const std::vector<std::string> all = {"--hide", beside("secret"), "--allow-all-unix-sockets"};
  for (const std::string& place : {beside("secret/sock"), workspace("link"), workspace("link/../link")})
    EXPECT_NE(inside({"connect_unix", place}, all), "ok") << place;
  for (const std::string& place : {beside("plain/sock"), workspace("other")})
    EXPECT_EQ(inside({"connect_unix", place}, all), "ok") << place;
  EXPECT_EQ(inside({"connect_unix", beside("secret/sock")}, {"--allow-all-unix-sockets"}), "ok") << "the twin";
  EXPECT_EQ(inside({"own_unix", workspace("own")}, all), "ok");
}

// Hidden by Landlock for what is read and run, by the broker for the rest.
TEST_F(SecondTier, HiddenPathsRefuseEveryTouch) {
  plant(home(".ssh/id_rsa"), "a key");
  plant(beside("secret/file"), "a secret");
  plant(beside("plain/file"), "not");
  plant_dir(home("open"));
  const std::vector<std::string> hide = {"--hide", beside("secret"), "--write", beside()};
  const auto acts = [](const std::string& dir) {
    return std::vector<std::vector<std::string>>{{"read", dir + "/file"},
                                                 {"write", dir + "/file"},
                                                 {"list", dir},
                                                 {"list", dir + "/."},
                                                 {"create", dir + "/new"},
                                                 {"chmod", dir + "/file", "600"},
                                                 {"truncate", dir + "/file"},
                                                 {"link", dir + "/file", dir + "-hard"},
                                                 {"rename", dir + "/file", dir + "-moved"}};
  };
  for (const auto& act : acts(beside("secret"))) EXPECT_EQ(inside(act, hide), "EACCES") << act[0];
  for (const auto& act : acts(beside("plain"))) EXPECT_EQ(inside(act, hide), "ok") << act[0];
  EXPECT_EQ(inside({"read", home(".ssh/id_rsa")}), "EACCES");
  EXPECT_EQ(inside({"list", home(".ssh")}), "EACCES");
  EXPECT_EQ(inside({"list", home()}), "ok");
  EXPECT_EQ(inside({"list", home("open")}), "ok");
  EXPECT_EQ(inside({"list", "/"}), "ok");
  EXPECT_EQ(read_file(beside("secret/file")), "a secret");
}

// A descriptor that only reads is enough for fchmod, and for the flags of an inode: no mount is there to refuse it.
TEST_F(SecondTier, ModeAndFlagsOutsideStayWhateverIsOpen) {
  plant(beside("file"));
  plant(workspace("file"));
  plant_dir(beside("dir"));
  const auto mode_of = [](const std::string& path) {
    struct stat now{};
    return ::stat(path.c_str(), &now) == 0 ? now.st_mode & 07777U : 0U;
  };
  const auto before = mode_of(beside("file"));
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--hide", workspace("none")}}) {
    EXPECT_EQ(inside({"fchmod", beside("file"), "666"}, more), "EROFS");
    EXPECT_EQ(inside({"fchmod", beside("dir"), "777"}, more), "EROFS");
    EXPECT_EQ(inside({"fchmod", workspace("file"), "640"}, more), "ok");
    EXPECT_EQ(inside({"fchmod_unnamed"}, more), "ok");
  }
  EXPECT_EQ(mode_of(beside("file")), before);
  EXPECT_EQ(mode_of(workspace("file")), 0640U);
  EXPECT_EQ(inside({"fchmod", beside("file"), "640"}, {"--write", beside()}), "ok");
  EXPECT_EQ(mode_of(beside("file")), 0640U);
  EXPECT_EQ(inside({"inode_flags", beside("file")}), "EPERM");
  EXPECT_NE(outside({"inode_flags", beside("file")}), "EPERM");
}

TEST_F(SecondTier, WhatIsHiddenInTheWorkspaceStaysHiddenAndTheRestWorks) {
  plant(workspace("deep/secret/file"), "a secret");
  const std::vector<std::string> hide = {"--hide", workspace("deep/secret")};
  const Outcome tried = shell(
      "mv deep/secret shown; mv deep moved; ln deep/secret/file hard; cd deep/secret && cat file; cat ../deep/secret/file;"
      "cat deep/secret/file shown/file moved/secret/file hard /proc/self/cwd/file /proc/self/cwd/deep/secret/file",
      hide);
  EXPECT_EQ(tried.out, "") << tried;
  EXPECT_EQ(
      shell("echo new >deep/later; cat deep/later; printf '#!/bin/sh\\necho ran\\n' >x; chmod +x x; ./x; mv deep/later l; cat l",
            hide)
          .out,
      "new\nran\nnew\n");
  EXPECT_EQ(shell("mv deep moved; cat moved/secret/file").out, "a secret");
}

// The front, whose uid is the command's, and any other process of the user.
TEST_F(SecondTier, ProcessesOfTheHostAreOutOfReach) {
  const Running other = victim();
  const std::string host = std::to_string(other.pid());
  for (const std::vector<std::string>& act : std::vector<std::vector<std::string>>{{"ptrace", host},
                                                                                   {"signal", host},
                                                                                   {"kill", host},
                                                                                   {"read", "/proc/" + host + "/environ"},
                                                                                   {"read", "/proc/" + host + "/maps"},
                                                                                   {"write", "/proc/" + host + "/mem"},
                                                                                   {"list", "/proc/" + host + "/fd"},
                                                                                   {"list", "/proc/" + host + "/root"},
                                                                                   {"list", "/proc/" + host + "/cwd/"}}) {
    EXPECT_NE(inside(act), "ok") << act[0] << " " << act[1];
    // With every open performed by the broker.
    EXPECT_NE(inside(act, {"--hide", workspace("none")}), "ok") << act[0] << " " << act[1];
  }
  for (const char* file : {"environ", "maps"}) EXPECT_EQ(outside({"read", "/proc/" + host + "/" + file}), "ok") << file;
  EXPECT_EQ(outside({"ptrace", host}), "ok");
  // Init above the command, who guards it, and the front.
  const std::string front =
      "up=$PPID; above() { sed -n 's/^PPid:\\t//p' /proc/$1/status; }; guard=$(above $up); front=$(above $guard); (for p in $up "
      "$guard $front; do for f in environ mem maps; do ./probe read "
      "/proc/$p/$f; done; ./probe write /proc/$p/mem; ./probe ptrace $p; ./probe list /proc/$p/fd; done; for p in $guard $front; "
      "do ./probe signal $p; ./probe kill $p; done) | grep -c ok";
  EXPECT_EQ(shell(front).out, "0\n");
  EXPECT_EQ(shell(front, {"--hide", workspace("none")}).out, "0\n");
  EXPECT_EQ(shell("sleep 1000 & ./probe write /proc/$!/oom_score_adj; ./probe ptrace $!; ./probe list /proc/$!/fd; kill $!")
                .out.substr(0, 3),
            "ok\n");
  EXPECT_EQ(outside({"signal", host}), "ok");  // the last: it ends the victim
}

TEST_F(SecondTier, OwnSocketsWorkAndThoseOfTheHostByList) {
  EXPECT_EQ(inside({"own_unix", workspace("own")}), "ok");
  EXPECT_EQ(inside({"own_unix", workspace("own2")}, {"--net", "host"}), "ok");
  const UniqueFd server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(beside("sock").size(), sizeof address.sun_path);
  std::strcpy(address.sun_path, beside("sock").c_str());
  ASSERT_EQ(::bind(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(server.get(), 64), 0);
  hand_over();
  EXPECT_NE(inside({"connect_unix", beside("sock")}), "ok");
  EXPECT_EQ(inside({"connect_unix", beside("sock")}, {"--allow-unix-socket", beside("sock")}), "ok");
  EXPECT_EQ(inside({"connect_unix", beside("sock")}, {"--allow-unix-socket", beside("other")}), "EACCES");
}

// The subreaper reads its list of children although nobody answers opens any more.
TEST_F(SecondTier, NothingOutlivesTheCommand) {
  const std::string mark = std::to_string(100000 + ::getpid());
  // The short sleep lets them begin; one that has not ends as well.
  EXPECT_EQ(shell("setsid sleep " + mark + " & (setsid sh -c 'trap \"\" TERM; sleep " + mark + "; true' &) ; sleep 0.1",
                  {"--hide", workspace("none")})
                .exit_code,
            0);
  EXPECT_NE(run({"pgrep", "-f", "sleep " + mark}).exit_code, 0);
  {
    Running killed(program({"--hide", workspace("none"), "--", "sh", "-c", "setsid sleep " + mark + " & echo up; wait"}),
                   in_workspace());
    ASSERT_TRUE(killed.wait_for_output("up"));
    EXPECT_EQ(run({"pgrep", "-f", "sleep " + mark}).exit_code, 0);
    killed.send(SIGKILL);
  }
  EXPECT_TRUE(eventually([&] { return run({"pgrep", "-f", "sleep " + mark}).exit_code != 0; }));
}

// The command has init's uid and is in init's Landlock domain.
TEST_F(SecondTier, NothingOutlivesInitEither) {
  const std::string mark = std::to_string(200000 + ::getpid());
  const Outcome outcome =
      run_in({"-c", "setsid sleep " + mark + " & ./probe signal $PPID; kill -KILL $PPID; sleep 1000; echo still here"});
  EXPECT_FALSE(outcome.timed_out) << outcome;
  EXPECT_NE(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out.find("still here"), std::string::npos) << outcome;
  EXPECT_NE(run({"pgrep", "-f", "sleep " + mark}).exit_code, 0);
}

// Stopped it would serve nobody and sweep nothing: it is let go on, and what stops it without end ends the sandbox.
TEST_F(SecondTier, NothingOutlivesAStoppedInit) {
  const std::string mark = std::to_string(300000 + ::getpid());
  // The short sleep leaves time for what a stopped init would lead to.
  Outcome outcome = run_in({"-c", "setsid sleep " + mark + " & kill -STOP $PPID; sleep 0.5; echo goes on"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_NE(outcome.out.find("goes on"), std::string::npos) << outcome;
  EXPECT_NE(run({"pgrep", "-f", "sleep " + mark}).exit_code, 0);
  outcome = run_in({"--timeout", "5s", "-c", "setsid sleep " + mark + " & while :; do kill -STOP $PPID; done"});
  EXPECT_NE(outcome.exit_code, 0) << outcome;
  EXPECT_NE(run({"pgrep", "-f", "sleep " + mark}).exit_code, 0);
}

// As an ordinary user where none can be made: the machine that this tier is for.
TEST_F(SecondTier, WorksWhereUserNamespacesAreRefused) {
  const TempDir place;  // the build may lie below a home that the user may not enter
  const std::string program = place / "belljar";
  std::filesystem::copy_file(kBelljar, program);
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        "unshare",
        "--user",
        "--map-current-user",
        "--keep-caps",
        "sh",
        "-c",
        "echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all -- \"$@\"",
        "sh",
        program,
        "run"};
    words.insert(words.end(), more.begin(), more.end());
    return run(as_user(words, home()), in_workspace());
  };
  const Outcome native = refused({"--", "true"});
  EXPECT_EQ(native.exit_code, 125) << native;
  plant(home(".ssh/id_rsa"), "a key");
  const Outcome second = refused({"--backend", "landlock", "-c",
                                  "echo in >inside; cat inside ~/.ssh/id_rsa; mkdir .vscode; echo x >~/out; ./probe own_unix own"});
  EXPECT_EQ(second.out, "in\nok\n") << second;
  // `auto` finds out by itself and says so; where namespaces are to be had it takes them.
  const Outcome chosen = refused({"--backend", "auto", "-c", "cat ~/.ssh/id_rsa; echo done"});
  EXPECT_EQ(chosen.out, "done\n") << chosen;
  EXPECT_NE(chosen.err.find("the landlock backend holds this run"), std::string::npos) << chosen;
  RunOptions own_state = in_workspace();
  own_state.env["XDG_STATE_HOME"] = home(".local/state");  // root's is not for the user to write to, which is said
  const Outcome spaces = run(as_user({program, "run", "--backend", "auto", "-c", "echo $$"}, home()), own_state);
  EXPECT_EQ(spaces.err, "") << spaces;
}

}  // namespace
}  // namespace belljar::test
