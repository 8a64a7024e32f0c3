// `belljar run --txn` and the commands about transactions as people use them.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/as_user.h"
#include "support/built.h"
#include "support/clock.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/must.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

void must_remove(const std::string& path) { EXPECT_EQ(::remove(path.c_str()), 0) << path; }

// A home with a workspace and, where it may lie there, the state directory in it; outside of /tmp, which a sandbox has for itself.
class Txn : public testing::Test {
 protected:
  Txn() : home_("/var/tmp") {
    if (on_overlay(home_.path())) apart_.emplace(layers_base(home_.path()));
  }
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    mkdir(ws().c_str(), 0755);
    mkdir(state().c_str(), 0755);
    hand_over();
  }
  void hand_over() const {
    if (is_root()) home_.give_to(user_uid(), user_gid());
    if (is_root() && apart_) apart_->give_to(user_uid(), user_gid());
    let_the_clock_tick();
  }
  // Belljar itself runs as whoever runs the tests: root, or an ordinary user.
  Outcome txn(std::vector<std::string> args, const std::string& input = {}) const {
    return belljar(std::move(args), {.input = input, .cwd = ws(), .env = environment()});
  }
  std::map<std::string, std::string> environment() const { return {{"HOME", home_.path()}, {"XDG_STATE_HOME", state()}}; }
  Outcome shell(const std::string& text, std::vector<std::string> options = {}) const {
    std::vector<std::string> words = {"run", "--txn"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"-c", text});
    return txn(std::move(words));
  }
  void write(const std::string& name, const std::string& text) const {
    home_.write("ws/" + name, text);
    hand_over();
  }
  std::string diff() const { return txn({"diff"}).out; }
  std::string ws(const std::string& name = {}) const { return home_ / (name.empty() ? "ws" : "ws/" + name); }
  const TempDir& around_state() const { return apart_ ? *apart_ : home_; }
  std::string state() const { return around_state() / "state"; }

  TempDir home_;
  std::optional<TempDir> apart_;
};

TEST_F(Txn, TheHostDoesNotSeeWhatWasWritten) {
  write("kept", "old\n");
  write("gone", "x\n");
  const auto before = describe_tree(ws());
  const Outcome outcome = shell("echo new > kept; echo more > made; rm gone; mkdir d; echo deep > d/e; cat kept made d/e; ls");
  EXPECT_EQ(outcome.out, "new\nmore\ndeep\nd\nkept\nmade\n") << outcome;
  EXPECT_EQ(describe_tree(ws()), before);
  // The twin: without --txn the host has it at once.
  EXPECT_EQ(txn({"run", "-c", "echo new > kept"}).exit_code, 0);
  EXPECT_EQ(read_file(ws("kept")), "new\n");
}

// Halves of which each passes: what they make together is judged, too.
TEST_F(Txn, WhatAMergeMakesIsJudged) {
  const std::string config = "[core]\n\trepositoryformatversion = 0\n";
  ASSERT_EQ(txn({"run", "-c", "git init -q r"}).exit_code, 0);
  const std::string keys = "\tbare = false\n\tfilemode = true\n\tignorecase = false\n\tprecomposeunicode = false\n";
  write("r/.git/config", config + "[color]\n" + keys);
  ASSERT_EQ(shell("printf '\\tpager = touch /tmp/owned\\n' >> r/.git/config").exit_code, 0);
  write("r/.git/config", config + "[core]\n" + keys);
  const Outcome refused = txn({"commit"});
  EXPECT_EQ(refused.exit_code, 1) << refused;
  EXPECT_NE(refused.err.find("refused: `r/.git/config`"), std::string::npos) << refused;
  EXPECT_EQ(read_file(ws("r/.git/config")), config + "[core]\n" + keys);
  // The twin: where the host's half is harmless together with it, too.
  write("r/.git/config", config + "[Color]\n" + keys);
  const Outcome merged = txn({"commit"});
  EXPECT_EQ(merged.exit_code, 0) << merged;
  EXPECT_NE(read_file(ws("r/.git/config")).find("pager"), std::string::npos);
}

// Nobody looks before --commit: so it is as careful with the repository as a run without a transaction.
TEST_F(Txn, ACommitAtTheEndKeepsTheRepository) {
  ASSERT_EQ(txn({"run", "-c", "git init -q . && echo x > file"}).exit_code, 0);
  hand_over();
  const Outcome refused = shell("rm -rf .git", {"--commit"});
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_NE(refused.err.find("refused: `.git"), std::string::npos) << refused;
  EXPECT_TRUE(exists(ws(".git/HEAD")));
  EXPECT_EQ(txn({"rollback"}).exit_code, 0);
  // The twins: what git does to its own, what the user allows, and what a user may have looked at.
  EXPECT_EQ(
      shell("git add file && git -c user.name=a -c user.email=b commit -qm c && git gc -q && git pack-refs --all", {"--commit"})
          .exit_code,
      0);
  EXPECT_TRUE(exists(ws(".git/packed-refs")));
  hand_over();
  const Outcome allowed = shell("rm -rf .git", {"--commit", "--allow-git-removal"});
  EXPECT_EQ(allowed.exit_code, 0) << allowed;
  EXPECT_FALSE(exists(ws(".git")));
  ASSERT_EQ(txn({"run", "-c", "git init -q ."}).exit_code, 0);
  hand_over();
  EXPECT_EQ(shell("rm -rf .git").exit_code, 0);
  EXPECT_EQ(txn({"commit"}).exit_code, 0);
  EXPECT_FALSE(exists(ws(".git")));
}

TEST_F(Txn, TheNextRunGoesOnWhereTheLastOneStopped) {
  EXPECT_EQ(shell("echo one > a").exit_code, 0);
  EXPECT_EQ(shell("cat a; echo two >> a").out, "one\n");
  EXPECT_EQ(shell("cat a").out, "one\ntwo\n");
  // The twins: another transaction, and none, do not see it.
  EXPECT_NE(shell("cat a", {"--txn-name", "other"}).exit_code, 0);
  EXPECT_NE(txn({"run", "--", "cat", "a"}).exit_code, 0);
}

TEST_F(Txn, DiffSaysWhatChanged) {
  write("mod", "1\n");
  write("mode", "2\n");
  write("same", "3\n");
  write("moved", "some content\n");
  write("tree/a", "4\n");
  write("tree/b", "5\n");
  write("opaque/old", "6\n");
  const Outcome outcome = shell(
      "echo x >> mod; chmod 755 mode; touch same; mv moved target; rm -r tree; rm -r opaque; mkdir opaque; echo n > opaque/new;"
      "ln -s mod link; mkfifo fifo; echo esc > \"$(printf 'a\\033b')\"");
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(diff(),
            "A a\\x1bb\nA fifo\nA link\nM mod\nM mode (mode 0644 -> 0755)\nA opaque/new\nD opaque/old\nR moved -> target\n"
            "D tree/\nD tree/a\nD tree/b\n");
  const std::string json = txn({"diff", "--json"}).out;
  EXPECT_NE(json.find(R"({"kind":"renamed","path":"target","from":"moved","before":{"type":"file","mode":"0644","size":13})"),
            std::string::npos)
      << json;
  EXPECT_NE(txn({"diff", "--stat"}).out.find("4 added, 2 modified, 4 deleted, 1 renamed"), std::string::npos)
      << txn({"diff", "--stat"}).out;
}

TEST_F(Txn, TimesCannotHideAChange) {
  write("file", "aaaa");
  EXPECT_EQ(shell("touch -r file ref; printf bbbb > file; touch -r ref file; rm ref").exit_code, 0);
  EXPECT_EQ(diff(), "M file\n");
}

TEST_F(Txn, RollbackDropsAllOfIt) {
  write("kept", "old\n");
  const auto before = describe_tree(ws());
  EXPECT_EQ(shell("echo new > kept; mkdir -p a/b; chmod 000 a").exit_code, 0);
  EXPECT_EQ(txn({"rollback"}).exit_code, 0);
  EXPECT_EQ(describe_tree(ws()), before);
  EXPECT_EQ(shell("cat kept; ls").out, "old\nkept\n");
  // Nothing of it is left on the disk.
  EXPECT_EQ(txn({"rollback"}).exit_code, 0);
  EXPECT_EQ(run({"/usr/bin/find", state(), "-name", "locks", "-prune", "-o", "-type", "f", "-size", "+0", "-print"}).out, "");
}

TEST_F(Txn, ThereIsNoWayToTheLayersInside) {
  EXPECT_EQ(shell("echo secret > mine").exit_code, 0);
  for (const std::string& act :
       std::vector<std::string>{"ls " + state() + "/belljar", "cat " + state() + "/belljar/txn/*/layers/*/*/up/mine",
                                "echo x > " + state() + "/belljar/x", "ls /tmp/layers /tmp/merged /tmp/below"}) {
    EXPECT_NE(shell(act).exit_code, 0) << act;
    EXPECT_NE(txn({"run", "-c", act}).exit_code, 0) << act;
  }
  // The twin: outside of any sandbox it is there for its owner.
  EXPECT_EQ(run({"/bin/sh", "-c", "cat " + state() + "/belljar/txn/*/layers/*/*/up/mine"}).out, "secret\n");
}

TEST_F(Txn, ProtectedNamesStayReadOnlyInside) {
  write(".vscode/tasks.json", "{}\n");
  write("src/x", "1\n");
  EXPECT_NE(shell("echo evil > .vscode/tasks.json").exit_code, 0);
  EXPECT_NE(shell("mv .vscode aside").exit_code, 0);
  EXPECT_EQ(shell("cat .vscode/tasks.json; echo fine > src/x").out, "{}\n");
  EXPECT_EQ(diff(), "M src/x\n");
}

TEST_F(Txn, ANarrowerRuleInTheWorkspaceHoldsOnTheLayers) {
  write("ro/file", "1\n");
  const std::vector<std::string> options = {"--read", ws("ro")};
  EXPECT_NE(shell("echo 2 > ro/file", options).exit_code, 0);
  EXPECT_EQ(shell("echo 2 > ro/file").exit_code, 0);
  EXPECT_EQ(shell("cat ro/file", options).out, "2\n");  // as the transaction has it
  EXPECT_EQ(read_file(ws("ro/file")), "1\n");
  // A writable root below the workspace is part of it.
  EXPECT_EQ(shell("echo 3 > ro/file", {"--write", ws("ro")}).exit_code, 0);
  EXPECT_EQ(read_file(ws("ro/file")), "1\n");
}

TEST_F(Txn, WhatCannotBeHeldIsRefusedByName) {
  const auto refused = [&](std::vector<std::string> args, const char* words) {
    const Outcome outcome = txn(std::move(args));
    EXPECT_EQ(outcome.exit_code, 125) << outcome;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome;
  };
  refused({"diff"}, "cannot find the transaction");
  refused({"run", "--txn", "--backend", "landlock", "--", "true"}, "the landlock backend");
  refused({"run", "--txn", "--policy", "read-only", "--", "true"}, "in read-only mode nothing is written");
  refused({"run", "--txn", "--policy", "danger-full-access", "--", "true"}, "around every layer");
  refused({"run", "--txn", "--txn-name", "../x", "--", "true"}, "as the name of a transaction");
  refused({"run", "--txn", "--workspace", around_state().path(), "--workspace", around_state().path(), "--", "true"},
          "XDG_STATE_HOME");
  refused({"rollback", "--txn-name", "none"}, "cannot find the transaction");
  EXPECT_EQ(txn({"run", "--txn", "--", "true"}).exit_code, 0);
  EXPECT_EQ(txn({"diff"}).exit_code, 0);
}

// overlayfs marks what it puts in the place of a directory of the host's by user.* attributes: a tmpfs has them, where the kernel
// lets it, and a ramfs never has.
TEST_F(Txn, TheStateDirectoryLiesWhereAttributesAreKept) {
  BELLJAR_NEEDS(as_root());
  write("d/old", "1\n");
  const auto on = [&](const char* type, const auto& look) {
    must(::mount(type, state().c_str(), type, 0, "mode=0700"));
    look(shell("rm -r d && mkdir d && echo new >d/f && mv d e && ls e"));
    must(::umount2(state().c_str(), MNT_DETACH));
  };
  on("ramfs", [](const Outcome& outcome) {
    EXPECT_EQ(outcome.exit_code, 125) << outcome;
    EXPECT_NE(outcome.err.find("needs user.* attributes"), std::string::npos) << outcome;
    EXPECT_NE(outcome.err.find("next:   set XDG_STATE_HOME to a directory on ext4, xfs, btrfs or tmpfs\n"), std::string::npos)
        << outcome;
  });
  on("tmpfs", [&](const Outcome& outcome) {
    if (::setxattr(state().c_str(), "user.test", "", 0, 0) == 0) {
      EXPECT_EQ(outcome.out, "f\n") << outcome;
      EXPECT_EQ(outcome.err, "");
      EXPECT_EQ(diff(), "D d/\nD d/old\nA e/\nA e/f\n");
      EXPECT_EQ(txn({"commit"}).exit_code, 0);
      EXPECT_EQ(read_file(ws("e/f")), "new\n");
    } else {
      EXPECT_NE(outcome.err.find("lies on a tmpfs, which keeps none on this kernel"), std::string::npos) << outcome;
      EXPECT_NE(outcome.err.find("on ext4, xfs or btrfs\n"), std::string::npos) << outcome;
    }
  });
}

TEST_F(Txn, OneCommandAtATime) {
  Running running({kBelljar, "run", "--txn", "-c", "echo ready; read x"}, {.cwd = ws(), .env = environment()});
  ASSERT_TRUE(running.wait_for_output("ready"));
  for (const std::vector<std::string>& words : {std::vector<std::string>{"run", "--txn", "--", "true"}, {"rollback"}}) {
    const Outcome outcome = txn(words);
    EXPECT_EQ(outcome.exit_code, 125) << outcome;
    EXPECT_NE(outcome.err.find("a command runs in it"), std::string::npos) << outcome;
  }
  EXPECT_EQ(txn({"diff"}).exit_code, 0);
  // The twin: another transaction of the same workspace is free.
  EXPECT_EQ(txn({"run", "--txn-name", "other", "--", "true"}).exit_code, 0);
  running.close_input();
  running.wait();
  EXPECT_EQ(txn({"run", "--txn", "--", "true"}).exit_code, 0);
}

TEST_F(Txn, ADirectoryOfTheHostIsMovedByCopying) {
  write("dir/a", "1\n");
  // rename(2) answers EXDEV, which mv(1) and others take as a reason to copy.
  EXPECT_NE(shell("python3 -c 'import os; os.rename(\"dir\", \"other\")'").exit_code, 0);
  EXPECT_EQ(shell("mv dir other; mkdir new; mv new newer; cat other/a").out, "1\n");
  EXPECT_EQ(diff(), "D dir/\nA newer/\nA other/\nR dir/a -> other/a\n");
}

TEST_F(Txn, ARepositoryOfTheHostIsCloned) {
  BELLJAR_NEEDS(program("git"));
  write("file", "1\n");
  const std::string repository =
      "git init -q up && cd up && echo 1 > f && git add -A && git -c user.name=a -c user.email=a@b commit -qm one"
      " && ln f again";
  ASSERT_EQ(txn({"run", "-c", repository}).exit_code, 0);
  // Objects with two names each: an earlier clone made them.
  ASSERT_EQ(txn({"run", "-c", "git clone -q up earlier"}).exit_code, 0);
  const Outcome cloned = shell("git clone -q up copy && git -C copy log --format=%s");
  EXPECT_EQ(cloned.out, "one\n") << cloned;
  // A link that would be to another file than the one that was looked at is none; what the layer has is linked.
  EXPECT_NE(shell("ln up/f linked").exit_code, 0);
  EXPECT_EQ(shell("ln up/f copy/.git").exit_code, 1);
  const Outcome own = shell("echo x > made; ln made second; [ made -ef second ] && ln file third; [ file -ef third ] && echo same");
  EXPECT_EQ(own.out, lent_by_root(ws()) ? "same\n" : "") << own;
}

// A file without a name gets one.
TEST_F(Txn, ATemporaryFileIsLinked) {
  const Outcome outcome = shell(
      "python3 -c 'import os; fd = os.open(\".\", os.O_TMPFILE | os.O_RDWR); os.write(fd, b\"x\");"
      "os.link(\"/proc/self/fd/%d\" % fd, \"named\", src_dir_fd=0)'; cat named");
  EXPECT_EQ(outcome.out, "x") << outcome;
}

TEST_F(Txn, ARunThatNeverBeganLeavesNone) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"run", "--txn", "--backend", "landlock", "--", "true"},
                                                {"run", "--txn", "--", "no-such-program"},
                                                {"run", "--txn", "--memory", "1", "--", "true"}}) {
    EXPECT_NE(txn(words).exit_code, 0);
    EXPECT_EQ(txn({"diff"}).exit_code, 125) << words[2];
  }
  // The twin: one that was there is left as it is.
  EXPECT_EQ(shell("echo new > a").exit_code, 0);
  EXPECT_EQ(txn({"run", "--txn", "--", "no-such-program"}).exit_code, 127);
  EXPECT_EQ(diff(), "A a\n");
}

TEST_F(Txn, CommitGivesTheHostWhatTheCommandSaw) {
  write("kept", "old\n");
  write("gone", "x\n");
  write("tree/a", "1\n");
  EXPECT_EQ(
      shell("echo new > kept; rm gone; mv tree wood; mkdir -p d/e; echo deep > d/e/f; chmod 711 d; ln kept hard; ln -s kept soft;"
            "truncate -s 1M sparse; printf x >> sparse; mkfifo fifo")
          .exit_code,
      0);
  const Outcome seen = shell("find . -printf '%P %y %m %s %l\\n' | grep -v ' d ' | sort; cat kept wood/a d/e/f");
  const Outcome outcome = txn({"commit"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  const Outcome host =
      run({"/bin/sh", "-c", "find . -printf '%P %y %m %s %l\\n' | grep -v ' d ' | sort; cat kept wood/a d/e/f"}, {.cwd = ws()});
  EXPECT_EQ(host.out, seen.out);
  // As on the host: the workspace's owner, a hole kept as a hole, one file under two names.
  struct stat kept{}, hard{}, sparse{};
  ASSERT_EQ(stat(ws("kept").c_str(), &kept), 0);
  ASSERT_EQ(stat(ws("hard").c_str(), &hard), 0);
  ASSERT_EQ(stat(ws("sparse").c_str(), &sparse), 0);
  EXPECT_EQ(kept.st_uid, user_uid());
  EXPECT_EQ(kept.st_ino, hard.st_ino);
  EXPECT_LT(sparse.st_blocks * 512, 64 * 1024);
  EXPECT_NE(txn({"diff"}).exit_code, 0);  // the transaction has ended
  EXPECT_EQ(run({"/usr/bin/find", state(), "-name", "locks", "-prune", "-o", "-type", "f", "-size", "+0", "-print"}).out, "");
}

TEST_F(Txn, ReadOnlyDirectoriesComeAndGo) {
  write("old/in", "1\n");
  ASSERT_EQ(::chmod(ws("old").c_str(), 0555), 0);
  EXPECT_EQ(shell("mkdir -p new/cache; echo x > new/cache/f; chmod 555 new/cache new; chmod 755 old; rm -r old").exit_code, 0);
  EXPECT_EQ(txn({"commit"}).exit_code, 0);
  struct stat status{};
  ASSERT_EQ(stat(ws("new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0555U);
  EXPECT_EQ(read_file(ws("new/cache/f")), "x\n");
  EXPECT_FALSE(exists(ws("old")));
  EXPECT_EQ(::chmod(ws("new").c_str(), 0755), 0);
  EXPECT_EQ(::chmod(ws("new/cache").c_str(), 0755), 0);
}

// As files do. What is in a directory of the host changes its time on the host, as without a transaction.
TEST_F(Txn, NewDirectoriesKeepTheTimesThatTheCommandGaveThem) {
  write("old/in", "1\n");
  EXPECT_EQ(shell("mkdir -p new/deep shut; echo x > new/deep/f; echo x > shut/f; echo x > old/made; chmod 555 shut; "
                  "touch -d @1000000000 new/deep/f new/deep shut old; touch -d @1000000001 new")
                .exit_code,
            0);
  EXPECT_EQ(txn({"commit"}).exit_code, 0);
  const auto modified = [&](const std::string& name) {
    struct stat status{};
    EXPECT_EQ(stat(ws(name).c_str(), &status), 0) << name;
    return status.st_mtim.tv_sec;
  };
  EXPECT_EQ(modified("new"), 1000000001);
  EXPECT_EQ(modified("new/deep"), 1000000000);
  EXPECT_EQ(modified("new/deep/f"), 1000000000);
  EXPECT_EQ(modified("shut"), 1000000000);
  EXPECT_GT(modified("old"), 1000000001);
  EXPECT_EQ(::chmod(ws("shut").c_str(), 0755), 0);
}

TEST_F(Txn, AChosenPartLeavesTheRest) {
  write("a", "1\n");
  write("b", "2\n");
  EXPECT_EQ(shell("echo A > a; echo B > b; mkdir -p new/deep; echo x > new/deep/x; echo y > new/y").exit_code, 0);
  EXPECT_NE(txn({"commit", "nothing"}).exit_code, 0);
  EXPECT_EQ(txn({"commit", "a", "new/deep/x"}).exit_code, 0);
  EXPECT_EQ(read_file(ws("a")), "A\n");
  EXPECT_EQ(read_file(ws("b")), "2\n");
  EXPECT_EQ(read_file(ws("new/deep/x")), "x\n");
  EXPECT_FALSE(exists(ws("new/y")));
  EXPECT_EQ(diff(), "M b\nA new/y\n");
  // What was committed is the host's: writing on in the transaction does not reach it.
  EXPECT_EQ(shell("echo more >> a; cat a").out, "A\nmore\n");
  EXPECT_EQ(read_file(ws("a")), "A\n");
  EXPECT_EQ(txn({"commit", "--all"}).exit_code, 0);
  EXPECT_EQ(read_file(ws("a")), "A\nmore\n");
  EXPECT_EQ(read_file(ws("b")), "B\n");
}

TEST_F(Txn, InteractiveAsksForEach) {
  write("a", "1\n");
  write("d/x", "2\n");
  EXPECT_EQ(shell("echo A > a; rm -r d; echo n > n").exit_code, 0);
  EXPECT_EQ(txn({"commit", "--interactive"}, "n\ny\nq\n").exit_code, 0);
  EXPECT_EQ(read_file(ws("a")), "1\n");
  EXPECT_FALSE(exists(ws("d")));
  EXPECT_EQ(diff(), "M a\nA n\n");
}

TEST_F(Txn, InteractiveAsksAgainAndTheEndOfTheInputCommitsNothing) {
  write("a", "1\n");
  write("b", "1\n");
  EXPECT_EQ(shell("echo 2 > a; echo 2 > b").exit_code, 0);
  const Outcome gone = txn({"commit", "--interactive"}, "y\n");
  EXPECT_EQ(gone.exit_code, 125) << gone;
  EXPECT_NE(gone.err.find("nothing was committed"), std::string::npos) << gone;
  EXPECT_EQ(read_file(ws("a")), "1\n");
  EXPECT_EQ(txn({"commit", "--interactive"}, "?\ny\n\nno\n").exit_code, 0);
  EXPECT_EQ(read_file(ws("a")), "2\n");
  EXPECT_EQ(diff(), "M b\n");
}

TEST_F(Txn, APartThatWasMergedIsNotTakenBackAndModesStay) {
  write("m", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  EXPECT_EQ(shell("sed -i s/1/one/ m; echo k > k").exit_code, 0);
  home_.write("ws/m", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
  ASSERT_EQ(::chmod(ws("m").c_str(), 0600), 0);
  EXPECT_EQ(txn({"commit", "m"}).exit_code, 0);
  EXPECT_EQ(diff(), "A k\n");
  EXPECT_EQ(txn({"commit"}).exit_code, 0);
  EXPECT_EQ(read_file(ws("m")), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
  struct stat status{};
  ASSERT_EQ(stat(ws("m").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_EQ(read_file(ws("k")), "k\n");
}

TEST_F(Txn, ADirectoryBelowIsToldWhereTheTransactionIs) {
  write("sub/x", "1\n");
  EXPECT_EQ(shell("echo 2 > sub/x").exit_code, 0);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"diff"}, {"commit", "x"}, {"recover"}}) {
    const Outcome outcome = belljar(words, {.cwd = ws("sub"), .env = environment()});
    EXPECT_EQ(outcome.exit_code, 125) << outcome;
    EXPECT_NE(outcome.err.find("give --workspace `" + ws() + "`"), std::string::npos) << outcome;
  }
  // The twin: as it says.
  const Outcome outcome = belljar({"commit", "--workspace", ws(), "x"}, {.cwd = ws("sub"), .env = environment()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(read_file(ws("sub/x")), "2\n");
}

TEST_F(Txn, WhatChangedOnTheHostIsNeverOverwritten) {
  write("text", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  write("clash", "1\n2\n3\n");
  write("gone", "x\n");
  write("binary", std::string("a\0b", 3));
  EXPECT_EQ(shell("sed -i s/1/one/ text clash; rm gone; printf 'c\\000d' > binary; echo mine > both").exit_code, 0);
  home_.write("ws/text", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
  home_.write("ws/clash", "eins\n2\n3\n");
  home_.write("ws/gone", "edited\n");
  home_.write("ws/binary", std::string("e\0f", 3));
  home_.write("ws/both", "theirs\n");
  hand_over();
  const auto before = describe_tree(ws());
  const Outcome outcome = txn({"commit"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  for (const char* name : {"clash", "gone", "binary", "both"})
    EXPECT_NE(outcome.err.find(std::string("conflict: `") + name + "`"), std::string::npos) << name << outcome;
  EXPECT_EQ(outcome.err.find("conflict: `text`"), std::string::npos) << outcome;
  EXPECT_EQ(describe_tree(ws()), before);
  // The twin: what only differs in other lines is merged.
  EXPECT_EQ(txn({"commit", "text"}).exit_code, 0);
  EXPECT_EQ(read_file(ws("text")), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
}

TEST_F(Txn, ADirectoryMadeAnewIsNotTheOneThatWas) {
  write("f", "a\n");
  EXPECT_EQ(shell("echo stale > old").exit_code, 0);
  struct stat before{}, after{};
  must(::stat(ws().c_str(), &before));
  std::filesystem::remove_all(ws());
  must(::mkdir(ws().c_str(), 0755));
  must(::stat(ws().c_str(), &after));
  hand_over();
  if (before.st_ino != after.st_ino) {  // this file system does not use them again: it is told by that
    EXPECT_NE(txn({"diff"}).err.find("none of that name"), std::string::npos);
    return;
  }
  if (on_overlay(home_.path())) return;  // docs/design/txn.md: nothing tells it there
  for (const std::vector<std::string>& words : {std::vector<std::string>{"diff"}, {"commit"}, {"run", "--txn", "--", "true"}}) {
    const Outcome outcome = txn(words);
    EXPECT_EQ(outcome.exit_code, 125) << outcome;
    EXPECT_NE(outcome.err.find("what is there now is another directory"), std::string::npos) << outcome;
  }
  EXPECT_FALSE(exists(ws("old")));
  // As it says.
  EXPECT_EQ(txn({"rollback"}).exit_code, 0);
  EXPECT_EQ(shell("echo fresh > new").exit_code, 0);
  EXPECT_EQ(txn({"commit"}).exit_code, 0);
  EXPECT_TRUE(exists(ws("new")) && !exists(ws("old")));
}

TEST_F(Txn, ADirectoryThatWasMovedKeepsItsTransaction) {
  write("f", "a\n");
  EXPECT_EQ(shell("echo b > f").exit_code, 0);
  const std::string elsewhere = home_ / "elsewhere";
  must(::rename(ws().c_str(), elsewhere.c_str()));
  const Outcome outcome = belljar({"commit"}, {.cwd = elsewhere, .env = environment()});
  if (on_overlay(home_.path())) {  // docs/design/txn.md: the path must do there
    EXPECT_NE(outcome.err.find("move the directory back"), std::string::npos) << outcome;
    return;
  }
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(read_file(elsewhere + "/f"), "b\n");
}

TEST_F(Txn, ProtectedNamesAreNotCommitted) {
  write("src/x", "1\n");
  // Of a run that was told to protect nothing, too.
  const TempDir policies;
  const std::string none = policies.write("none.toml", "mode = \"workspace-write\"\n[filesystem]\nprotect = \"none\"\n");
  EXPECT_EQ(shell("mkdir -p sub .vscode && git init -q sub 2>/dev/null; echo 2 > src/x; mkdir -p repo/.git/hooks; echo evil > "
                  "repo/.git/hooks/pre-commit;"
                  "echo '{}' > .vscode/tasks.json; echo fine > sub/file",
                  {"--policy", none})
                .exit_code,
            0);
  const Outcome outcome = txn({"commit"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_NE(outcome.err.find("refused: `repo/.git/hooks/pre-commit`: filesystem.protect"), std::string::npos) << outcome;
  EXPECT_NE(outcome.err.find("refused: `.vscode/tasks.json`: filesystem.protect"), std::string::npos) << outcome;
  EXPECT_FALSE(exists(ws("repo")));
  EXPECT_EQ(read_file(ws("src/x")), "1\n");
  // The twin: the rest goes.
  EXPECT_EQ(txn({"commit", "src", "sub/file"}).exit_code, 0);
  EXPECT_EQ(read_file(ws("src/x")), "2\n");
  EXPECT_EQ(read_file(ws("sub/file")), "fine\n");
}

// A git directory comes by halves: its markers by a transaction, what git runs from it in another way. Whichever comes last is told
// what is there already. The twin has settings that run nothing.
TEST_F(Txn, AGitDirectoryIsJudgedWithWhatTheHostHasOfIt) {
  const auto halves = [&](const std::string& config, const std::string& hooks) {
    const std::string mine = "mkdir -p evil" + hooks + "; printf '[core]\\n\\t" + config + "\\n' > evil/config";
    return mine + "; printf 'ref: refs/heads/main\\n' > evil/HEAD";
  };
  const std::string markers = "mkdir -p evil/objects evil/refs; echo x > evil/objects/x; echo x > evil/refs/x";
  const std::string hostile = halves("fsmonitor = touch pwned", " evil/hooks; echo true > evil/hooks/post-checkout");
  const std::string tame = halves("bare = true", "");
  write("evil/README", "1\n");
  const auto fresh = [&] {
    (void)txn({"rollback"});
    std::filesystem::remove_all(ws("evil"));
    write("evil/README", "1\n");
  };
  for (const std::string& half : {hostile, tame}) {
    const bool evil = half == hostile;
    const auto expect_judged = [&](const Outcome& outcome, const char* way) {
      EXPECT_EQ(outcome.exit_code, evil ? 1 : 0) << way << outcome;
      EXPECT_EQ(outcome.err.find("filesystem.protect") != std::string::npos, evil) << way << outcome;
      EXPECT_EQ(exists(ws("evil/objects")) && exists(ws("evil/refs")), !evil) << way;
    };
    // The markers wait while a run without a transaction makes the rest, which is free then.
    ASSERT_EQ(shell(markers).exit_code, 0);
    EXPECT_EQ(txn({"run", "-c", half}).exit_code, 0);
    expect_judged(txn({"commit"}), "after a run: ");
    fresh();
    // A part is chosen: the rest first, then the markers. The transaction takes them, since nobody on the host sees them there; its
    // commit refuses them.
    ASSERT_EQ(shell(half).exit_code, 0);
    ASSERT_EQ(txn({"commit", "evil"}).exit_code, 0);
    ASSERT_EQ(shell(markers).exit_code, 0);
    expect_judged(txn({"commit"}), "by parts: ");
    fresh();
    // The host's own, and only the markers are asked for.
    ASSERT_EQ(shell(markers + "; echo x > evil/file").exit_code, 0);
    EXPECT_EQ(txn({"run", "-c", half}).exit_code, 0);
    expect_judged(txn({"commit", "evil/objects", "evil/refs"}), "chosen: ");
    fresh();
  }
}

// What a run without a transaction refuses when it is done. In a transaction nobody judges the act, because the host sees nothing
// of it: the promise is the commit's, which gives the host none of it and names what it refuses.
struct Planted {
  const char* act;
  const char* refused;  // by the commit
};
constexpr Planted kPlanted[] = {
    {"mkdir .vscode && echo '{}' > .vscode/tasks.json", ".vscode/tasks.json"},
    {"mkdir .VSCode && echo '{}' > .VSCode/tasks.json", ".VSCode/tasks.json"},
    {"echo '{}' > .mcp.json", ".mcp.json"},
    {"echo x > plain && mv plain .cursorrules", ".cursorrules"},
    {"mkdir work/.vscode && echo '{}' > work/.vscode/tasks.json", "work/.vscode/tasks.json"},
    {"echo evil > work/.idea/held.xml", "work/.idea/held.xml"},
    {"rm work/.idea/held.xml", "work/.idea/held.xml"},
    {"mv work/.idea/held.xml work/moved.xml", "work/.idea/held.xml"},
    {"mkdir -p a/.git/hooks && echo true > a/.git/hooks/pre-commit", "a/.git/hooks/pre-commit"},
    {"mkdir -p d/hooks a/.git && echo true > d/hooks/pre-commit && mv d/hooks a/.git/hooks", "a/.git/hooks/pre-commit"},
    {"mkdir d && echo true > d/pre-commit && mv d work/.git/hooks", "work/.git/hooks/pre-commit"},
    {"printf '[core]\n\tfsmonitor = touch x\n' > c && mv c work/.git/config", "work/.git/config"},
    {"mkdir -p m && printf 'gitdir: /tmp/evil\n' > p && mv p m/.git", "m/.git"},
    {"mkdir bare/hooks && echo true > bare/hooks/post-receive", "bare/hooks/post-receive"},
    {"mkdir -p e/hooks e/objects && echo true > e/hooks/post-checkout && mkdir e/refs", "e/hooks/post-checkout"},
    {"ln -s ../../made work/.git/logs", "work/.git/logs"},
    {"chmod +x work/.git/off/hooks/pre-push", "work/.git/off/hooks/pre-push"},
    {"mkfifo p && mv p work/.git/config", "work/.git/config"},
    {"python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")' && mv s work/.git/config", "work/.git/config"},
    {"mkdir .belljar-commit-1 && echo x > .belljar-commit-1/x", ".belljar-commit-1/x"},
};

// The twins.
constexpr const char* kHarmless[] = {
    "mkdir -p a/src && echo 1 > a/src/x && mv a/src a/lib && ln a/lib/x a/y && ln -s y a/z && chmod +x a/y && rm a/z",
    "mkdir d && echo 1 > d/.vscode && rm -r d && mkdir -p node_modules/p/.vscode && echo 1 > node_modules/p/.vscode/x",
    "printf '[core]\n\tbare = false\n\tfilemode = true\n' > c && mv c work/.git/config",
    "mkdir -p hooks work/.git/hooks && echo 1 > hooks/pre-commit && echo 1 > work/.git/hooks/pre-commit.sample",
    // A work tree that comes with its own: nobody has worked in it yet.
    "mkdir -p n/.git/objects n/.git/refs && printf 'ref: refs/heads/main\n' > n/.git/HEAD && mkdir n/.vscode && echo 1 > "
    "n/.vscode/x",
    "mkfifo p && mv p q && mkdir g && chmod 2755 g",
};

class TxnAndLive : public Txn {
 protected:
  void fresh() {
    (void)txn({"rollback"});
    for (const auto& entry : std::filesystem::directory_iterator(ws())) std::filesystem::remove_all(entry.path());
    for (const char* marker : {"work/.git", "work/.git/off", "bare"}) {
      write(std::string(marker) + "/HEAD", "ref: refs/heads/main\n");
      write(std::string(marker) + "/objects/x", "");
      write(std::string(marker) + "/refs/x", "");
    }
    write("work/.git/config", "[core]\n\tbare = false\n");
    write("work/.git/off/hooks/pre-push", "true\n");
    write("work/.idea/held.xml", "<x/>\n");
  }
};

TEST_F(TxnAndLive, WhatARunRefusesACommitRefusesByName) {
  for (const Planted& one : kPlanted) {
    SCOPED_TRACE(one.act);
    fresh();
    const auto before = describe_tree(ws());
    EXPECT_NE(txn({"run", "-c", one.act}).exit_code, 0);
    fresh();
    const Outcome inside = shell(one.act);
    EXPECT_EQ(inside.exit_code, 0) << inside;
    EXPECT_EQ(describe_tree(ws()), before);
    const Outcome commit = txn({"commit"});
    EXPECT_EQ(commit.exit_code, 1) << commit;
    EXPECT_NE(commit.err.find("refused: `" + std::string(one.refused) + "`: filesystem.protect"), std::string::npos) << commit;
    EXPECT_EQ(describe_tree(ws()), before);
  }
}

TEST_F(TxnAndLive, WhatARunMayDoIsCommitted) {
  for (const char* act : kHarmless) {
    SCOPED_TRACE(act);
    fresh();
    const Outcome live = txn({"run", "-c", act});
    EXPECT_EQ(live.exit_code, 0) << live;
    const std::string names = run({"/usr/bin/find", ws()}).out;
    fresh();
    const Outcome inside = shell(act);
    EXPECT_EQ(inside.exit_code, 0) << inside;
    const Outcome commit = txn({"commit"});
    EXPECT_EQ(commit.exit_code, 0) << commit;
    const auto sorted = [](const std::string& text) { return run({"/usr/bin/sort"}, {.input = text}).out; };
    EXPECT_EQ(sorted(run({"/usr/bin/find", ws()}).out), sorted(names));
  }
}

// No call makes these, in a transaction or not.
TEST_F(TxnAndLive, DevicesAndSetIdBitsAreRefusedWhenTheyAreMade) {
  fresh();
  for (const char* act :
       {"mknod n c 0 0", "mknod n b 7 0", "echo x > s && chmod 4755 s", "echo x > s && chmod 2755 s",
        "python3 -c 'import os; os.open(\"s\", os.O_CREAT | os.O_WRONLY, 0o4755)'", "ln work/.git/config linked"}) {
    EXPECT_NE(txn({"run", "-c", act}).exit_code, 0) << act;
    EXPECT_NE(shell(act).exit_code, 0) << act;
  }
  EXPECT_EQ(shell("mkfifo p; mkdir d && chmod 2755 d && echo x > s && chmod 755 s && ln s linked").exit_code, 0) << "the twin";
}

// What a run refuses by a pattern, or by a name that is not there yet, a later commit need not know of: that is refused at once in
// a transaction, too. So is everything where something else than the workspace is written to.
TEST_F(TxnAndLive, WhatNoCommitWouldJudgeIsRefusedAtOnce) {
  fresh();
  write("x.ro", "1\n");
  mkdir((home_ / "beside").c_str(), 0755);
  hand_over();
  for (const auto& [act, option, value] : {std::array<std::string, 3>{"echo 2 > x.ro", "--read", "**/*.ro"},
                                           {"echo 2 > later", "--read", ws("later")},
                                           {"mkdir " + home_ / "beside/.vscode", "--write", home_ / "beside"},
                                           {"mkdir .vscode", "--write", home_ / "beside"}}) {
    EXPECT_NE(shell(act, {option, value}).exit_code, 0) << act;
    EXPECT_EQ(shell("echo 2 > other", {option, value}).exit_code, 0) << "the twin";
  }
  EXPECT_EQ(shell("mkdir .vscode && echo 2 > x.ro && echo 2 > later").exit_code, 0) << "the twin";
}

TEST_F(TxnAndLive, TheReportSaysWhoJudges) {
  fresh();
  const auto told = [&](std::vector<std::string> options, const char* clause) {
    options.push_back("--verbose");
    const std::string err = shell("true", options).err;
    const std::size_t at = err.find(clause);
    return at == std::string::npos ? std::string() : err.substr(at, err.find('\n', at) - at);
  };
  for (const char* clause : {"protect.existing", "protect.absent", "protect.nested"}) {
    EXPECT_NE(told({}, clause).find("judged at commit"), std::string::npos) << clause;
    EXPECT_NE(told({"--read", "**/*.ro"}, clause).find("broker"), std::string::npos) << clause;
  }
}

// One file of two names: whoever may write to the one later would write to the other, which nobody would look at then.
TEST_F(TxnAndLive, NoNameIsLinkedToAProtectedOne) {
  for (const auto& [linked, bad] :
       {std::array<const char*, 2>{"cd work && mv .idea/held.xml t && ln t u && mv t .idea/held.xml", "work/u"},
        {"cd work/.git && mv config ../t && cd .. && ln t u && mv t .git/config", "work/u"},
        {"cp work/.git/config c && echo >> c && ln c u && mv c work/.git/config", "u"}}) {
    fresh();
    const auto before = describe_tree(ws());
    ASSERT_EQ(shell(linked).exit_code, 0) << linked;
    const Outcome commit = txn({"commit"});
    EXPECT_EQ(commit.exit_code, 1) << commit;
    EXPECT_NE(commit.err.find("refused: `" + std::string(bad) + "`: filesystem.protect: it is one file with"), std::string::npos)
        << commit;
    EXPECT_EQ(describe_tree(ws()), before);
    // Alone it is a file of its own.
    EXPECT_EQ(txn({"commit", bad}).exit_code, 0);
    struct stat now{};
    EXPECT_EQ(::stat(ws(bad).c_str(), &now), 0);
    EXPECT_EQ(now.st_nlink, 1U);
  }
  fresh();
  ASSERT_EQ(shell("echo x > one && ln one two").exit_code, 0) << "the twin";
  EXPECT_EQ(txn({"commit"}).exit_code, 0);
  struct stat now{};
  EXPECT_EQ(::stat(ws("two").c_str(), &now), 0);
  EXPECT_EQ(now.st_nlink, 2U);
}

// A link in the workspace must not lead somebody's git into a layer that nobody has judged.
TEST_F(Txn, NobodyGuessesWhereLayersLie) {
  EXPECT_EQ(shell("echo x > x").exit_code, 0);
  const std::string layers = state() + "/belljar/txn/*/layers/*";
  const std::string first = run({"/bin/sh", "-c", "basename " + layers}).out;
  EXPECT_EQ(first.size(), 33U) << first;
  EXPECT_NE(run({"/bin/sh", "-c", "ls " + state() + "/belljar/txn/*/pool/"}).exit_code, 0) << "nor does the name lead there";
  mkdir(ws("other").c_str(), 0755);
  hand_over();
  EXPECT_EQ(shell("echo x > x", {"--workspace", ws("other")}).exit_code, 0);
  const std::string both = run({"/bin/sh", "-c", "for one in " + layers + "; do basename $one; done | sort -u | wc -l"}).out;
  EXPECT_EQ(both, "2\n");
}

TEST_F(Txn, ARunCommitsWhenItsCommandSucceeded) {
  const Outcome outcome = shell("echo said; echo 1 > a", {"--commit"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "said\n");
  EXPECT_NE(outcome.err.find("committed 1 change\n"), std::string::npos) << outcome;
  EXPECT_EQ(read_file(ws("a")), "1\n");
  EXPECT_EQ(txn({"diff"}).exit_code, 125) << "the transaction has ended";
  // The twin: a command that fails.
  const Outcome failed = shell("echo 2 > a; exit 3", {"--commit"});
  EXPECT_EQ(failed.exit_code, 3) << failed;
  EXPECT_NE(failed.err.find("not committed, since the command failed; the changes are kept: `belljar diff` shows them"),
            std::string::npos)
      << failed;
  EXPECT_EQ(read_file(ws("a")), "1\n");
  // What was kept goes with the next one, which says so.
  const Outcome both = shell("echo 3 > b", {"--commit"});
  EXPECT_EQ(both.exit_code, 0) << both;
  EXPECT_NE(both.err.find("what the transaction held before this run was committed with it"), std::string::npos) << both;
  EXPECT_EQ(read_file(ws("a")) + read_file(ws("b")), "2\n3\n");
}

TEST_F(Txn, ARunWhoseCommitIsRefusedFailsAndKeepsTheTransaction) {
  write("file", "1\n");
  const Outcome refused = shell("echo said; echo 2 > file; echo '{}' > .mcp.json", {"--commit"});
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_EQ(refused.out, "said\n");
  EXPECT_NE(refused.err.find("refused: `.mcp.json`: filesystem.protect"), std::string::npos) << refused;
  EXPECT_NE(refused.err.find("the changes are kept"), std::string::npos) << refused;
  EXPECT_EQ(read_file(ws("file")), "1\n");
  EXPECT_EQ(diff(), "A .mcp.json\nM file\n");
  // The host changed what the transaction did.
  EXPECT_EQ(shell("rm .mcp.json").exit_code, 0);
  write("file", "3\n");
  const Outcome conflict = shell("true", {"--commit"});
  EXPECT_EQ(conflict.exit_code, 125) << conflict;
  EXPECT_NE(conflict.err.find("conflict: `file`"), std::string::npos) << conflict;
  EXPECT_EQ(read_file(ws("file")), "3\n");
  // The rules are those of the run that commits; and --txn-name is a transaction, too.
  EXPECT_EQ(txn({"run", "--txn-name", "other", "--commit", "--write", ws(".mcp.json"), "-c", "true"}).exit_code, 125)
      << "it does not exist";
  const Outcome none = txn({"run", "--commit", "--", "true"});
  EXPECT_EQ(none.exit_code, 125) << none;
  EXPECT_NE(none.err.find("cannot use --commit without --txn"), std::string::npos) << none;
}

TEST_F(Txn, TheReportTellsWhatWasCommitted) {
  const std::string report = around_state() / "state/report.json";
  const Outcome done = shell("echo 1 > a", {"--commit", "--json", "--report", report});
  EXPECT_EQ(done.exit_code, 0) << done;
  const char* const applied = R"("commit":{"applied":true,"changes":[{"kind":"added","path":"a",)";
  EXPECT_NE(done.out.find(applied), std::string::npos) << done;
  EXPECT_NE(read_file(report).find(applied), std::string::npos) << read_file(report);
  EXPECT_NE(shell("echo 2 > a; exit 1", {"--commit", "--json"}).out.find(R"("commit":{"applied":false,"changes":[])"),
            std::string::npos);
  const Outcome refused = shell("mkdir .vscode", {"--commit", "--json"});
  EXPECT_NE(refused.out.find(R"("refused":[{"path":".vscode","reason":"filesystem.protect)"), std::string::npos) << refused;
  EXPECT_EQ(shell("true", {"--json"}).out.find("\"commit\""), std::string::npos) << "nobody asked";
}

TEST_F(Txn, RecoverHasNothingToDoAfterAnOrderlyEnd) {
  EXPECT_EQ(shell("echo x > x").exit_code, 0);
  EXPECT_NE(txn({"recover"}).err.find("no commit was cut off"), std::string::npos);
  EXPECT_EQ(txn({"commit"}).exit_code, 0);
  EXPECT_NE(txn({"recover"}).err.find("no commit was cut off"), std::string::npos);
}

TEST_F(Txn, SnapshotsAndForks) {
  write("f", "0\n");
  EXPECT_EQ(shell("echo 1 > f").exit_code, 0);
  const Outcome kept = txn({"snapshot", "first"});
  EXPECT_EQ(kept.exit_code, 0) << kept;
  EXPECT_NE(kept.err.find("`belljar rollback --to first` goes back to it"), std::string::npos) << kept;
  EXPECT_EQ(shell("echo 2 > f; echo n > n").exit_code, 0);
  const Outcome forked = txn({"fork", "other"});
  EXPECT_EQ(forked.exit_code, 0) << forked;
  EXPECT_EQ(forked.out, "");
  EXPECT_NE(forked.err.find("`belljar run --txn-name other -- PROGRAM` goes on in it"), std::string::npos) << forked;
  // Its name in the wrong place.
  EXPECT_NE(txn({"diff", "other"}).err.find("belljar diff --txn-name other\n"), std::string::npos);
  EXPECT_NE(txn({"rollback", "first"}).err.find("a snapshot: --to first\n"), std::string::npos);
  EXPECT_NE(txn({"commit", "other"}).err.find("belljar commit --txn-name other\n"), std::string::npos);
  EXPECT_EQ(txn({"commit", "nothing"}).err.find("--txn-name"), std::string::npos);
  EXPECT_EQ(shell("rm n; cat f").out, "2\n");
  EXPECT_EQ(txn({"rollback", "--txn-name", "default", "--to", "none"}).exit_code, 125);
  EXPECT_EQ(txn({"rollback", "--txn-name", "default", "--to", "first"}).exit_code, 0);
  EXPECT_EQ(shell("cat f; ls").out, "1\nf\n");
  EXPECT_EQ(shell("cat f n", {"--txn-name", "other"}).out, "2\nn\n");
  EXPECT_EQ(txn({"snapshot", "first"}).exit_code, 125);
  EXPECT_EQ(txn({"fork", "other"}).exit_code, 125);
  EXPECT_EQ(txn({"commit", "--txn-name", "other"}).exit_code, 0);
  EXPECT_EQ(read_file(ws("f")), "2\n");
  // The host has moved on under the first one: said, not overwritten.
  EXPECT_EQ(txn({"commit", "--txn-name", "default"}).exit_code, 1);
  EXPECT_EQ(txn({"rollback"}).exit_code, 0);
}

TEST_F(Txn, ARollbackNamesTheSnapshotsThatGoWithIt) {
  for (const std::string name : {"one", "two", "three"}) {
    EXPECT_EQ(shell("echo " + name + " >f").exit_code, 0);
    EXPECT_EQ(txn({"snapshot", name}).exit_code, 0);
  }
  const Outcome last = txn({"rollback", "--to", "three"});
  EXPECT_EQ(last.err.find("went with it"), std::string::npos) << last;
  const Outcome first = txn({"rollback", "--to", "one"});
  EXPECT_NE(first.err.find("the snapshots made since then went with it: two, three\n"), std::string::npos) << first;
  EXPECT_EQ(txn({"rollback", "--to", "two"}).exit_code, 125);
  EXPECT_EQ(txn({"rollback", "--to", "one"}).exit_code, 0);
}

TEST_F(Txn, ADirectoryTooDeepToBeNamedIsToldAndCanBeRemoved) {
  const std::string deeper = "echo 1 >f; d=$(printf %0255d 1); for i in $(seq 20); do mkdir $d && cd -P $d || exit 0; done";
  EXPECT_EQ(shell(deeper).exit_code, 0);
  const Outcome refused = txn({"diff"});
  EXPECT_EQ(refused.exit_code, 125);
  EXPECT_NE(refused.err.find("move or remove it with `belljar run --txn`"), std::string::npos) << refused;
  EXPECT_LT(refused.err.size(), 1000U);
  EXPECT_EQ(shell("rm -rf 0*").exit_code, 0);
  EXPECT_EQ(diff(), "A f\n") << "the twin";
}

TEST_F(Txn, OneUnreadableFileLeavesThePatchOfTheRest) {
  if (is_root()) GTEST_SKIP() << "only as an ordinary user";
  shell("echo x >a; : >e; chmod 000 e");
  const Outcome patch = txn({"diff", "--patch"});
  EXPECT_EQ(patch.exit_code, 0) << patch;
  EXPECT_NE(patch.out.find("+++ b/a\n"), std::string::npos) << patch;
  EXPECT_NE(patch.err.find("not in the patch: e: it cannot be read: Permission denied"), std::string::npos) << patch;
}

TEST_F(Txn, ReadOnlyDirectoriesOfOnesOwnAreCommittedInto) {
  write("r/s/a", "1\n");
  write("closed/f", "s\n");
  for (const char* name : {"r/s", "r", "closed"}) must(::chmod(ws(name).c_str(), 0555));
  EXPECT_EQ(shell("chmod 755 r/s; echo 2 > r/s/b; rm r/s/a; chmod 555 r/s; echo more >> closed/f").exit_code, 0);
  const Outcome outcome = txn({"commit"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(read_file(ws("r/s/b")), "2\n");
  EXPECT_FALSE(exists(ws("r/s/a")));
  EXPECT_EQ(read_file(ws("closed/f")), "s\nmore\n");
  for (const char* name : {"r/s", "r", "closed"}) {
    struct stat status{};
    must(::stat(ws(name).c_str(), &status));
    EXPECT_EQ(status.st_mode & 07777U, 0555U) << name << " is left as it was";
    must(::chmod(ws(name).c_str(), 0755));
  }
}

TEST_F(Txn, ADirectoryThatMayNotBeLookedIntoIsNamed) {
  if (is_root()) GTEST_SKIP() << "only as an ordinary user";
  write("f/x", "1\n");
  EXPECT_EQ(shell("echo 2 > f/x; chmod 600 f; mkdir new; echo n > new/n; chmod 000 new; echo t > plain; echo t > taken").exit_code,
            0);
  EXPECT_EQ(diff(),
            "M f/ (mode 0755 -> 0600) (its owner may not look into it)\nA new/ (its owner may not look into it)\n"
            "A plain\nA taken\n");
  EXPECT_NE(txn({"diff", "--json"}).out.find("\"unread\":true"), std::string::npos);
  EXPECT_NE(txn({"diff", "--patch"}).err.find("not in the patch: new/: its owner may not look into it"), std::string::npos);
  const Outcome refused = txn({"commit"});
  EXPECT_EQ(refused.exit_code, 1) << refused;
  EXPECT_NE(refused.err.find("`chmod u+rwx` it, with `belljar run --txn`"), std::string::npos) << refused;
  EXPECT_FALSE(exists(ws("plain"))) << "all or nothing";
  EXPECT_EQ(txn({"commit", "taken"}).exit_code, 0);
  EXPECT_EQ(read_file(ws("taken")), "t\n");
  // The twin: as it says.
  EXPECT_EQ(shell("chmod u+rwx f new").exit_code, 0);
  EXPECT_EQ(diff(), "M f/ (mode 0755 -> 0700)\nM f/x\nA new/\nA new/n\nA plain\n");
  EXPECT_EQ(txn({"commit"}).exit_code, 0);
  EXPECT_EQ(read_file(ws("f/x")), "2\n");
  EXPECT_EQ(read_file(ws("new/n")), "n\n");
}

TEST_F(Txn, WhatTheHostWroteIntoAClosedDirectoryMeanwhileIsAConflict) {
  if (is_root()) GTEST_SKIP() << "only as an ordinary user";
  for (const bool edited : {true, false}) {
    write("f/x", "1\n");
    EXPECT_EQ(shell("echo 2 > f/x; chmod 000 f").exit_code, 0);
    if (edited) write("f/x", "host\n");
    EXPECT_EQ(shell("chmod 755 f").exit_code, 0);
    EXPECT_EQ(txn({"commit"}).exit_code, edited ? 1 : 0);
    EXPECT_EQ(read_file(ws("f/x")), edited ? "host\n" : "2\n");
    EXPECT_EQ(txn({"rollback"}).exit_code, edited ? 0 : 125) << "the commit ended it";
  }
}

TEST_F(Txn, AClosedDirectoryIsDroppedLikeAnother) {
  EXPECT_EQ(shell("mkdir -p d/e; echo x > d/e/f; chmod 000 d/e d").exit_code, 0);
  EXPECT_EQ(txn({"rollback"}).exit_code, 0);
  EXPECT_EQ(txn({"diff"}).exit_code, 125) << "there is none any more";
  EXPECT_EQ(run({"/usr/bin/find", state(), "-name", "d"}).out, "");
}

TEST_F(Txn, GitAppliesThePatch) {
  BELLJAR_NEEDS(program("git"));
  std::string lines;
  for (int i = 0; i < 300; ++i) lines += std::to_string(i) + "\n";
  write("text", lines);
  write("binary", std::string("a\0b", 3) + lines);
  write("gone binary", std::string(300, '\0'));
  write("gone", "x\n");
  write("mode", "m\n");
  write("dir/moved", lines + "moved\n");
  write("to_link", "f\n");
  write("bare", "no newline");
  write("empty_gone", "");
  const Outcome work = shell(
      "sed -i -e s/^7$/seven/ -e 's/^150$/a\\nb/' -e /^299$/d text; head -c 5000 /dev/urandom > binary; rm 'gone binary' gone "
      "empty_gone;"
      "chmod 755 mode; mkdir new; mv dir/moved new/place; ln -sf text to_link; printf 'still none' > bare; : > empty;"
      "head -c 3000 /dev/zero > 'new/zero file'; echo q > \"$(printf 'new/\\303\\244\\t\"')\"; mkfifo fifo; mkdir void");
  ASSERT_EQ(work.exit_code, 0) << work;
  const Outcome patch = txn({"diff", "--patch"});
  EXPECT_EQ(patch.exit_code, 0);
  EXPECT_NE(patch.err.find("not in the patch: fifo"), std::string::npos) << patch;
  EXPECT_NE(patch.err.find("not in the patch: void/: an empty directory"), std::string::npos) << patch;
  const TempDir other("/var/tmp");
  ASSERT_EQ(run({"/bin/cp", "-a", ws() + "/.", other.path()}).exit_code, 0);
  const Outcome applied = run({"git", "apply", "-v", "-"}, {.input = patch.out, .cwd = other.path()});
  ASSERT_EQ(applied.exit_code, 0) << applied << patch.out;
  ASSERT_EQ(txn({"commit"}).exit_code, 0);
  must_remove(ws("fifo"));
  must_remove(ws("void"));
  if (exists(ws("dir"))) must_remove(ws("dir"));
  const Outcome difference = run({"/usr/bin/diff", "-r", "--no-dereference", ws(), other.path()});
  EXPECT_EQ(difference.out, "");
  struct stat status{};
  ASSERT_EQ(stat((other / "mode").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0755U);
}

// Git takes no patch that names anything in a `.git`.
TEST_F(Txn, ThePatchGoesWithoutWhatGitKeepsForItself) {
  BELLJAR_NEEDS(program("git"));
  ASSERT_EQ(txn({"run", "-c", "git init -q; echo a > a; git add a"}).exit_code, 0);
  const TempDir other("/var/tmp");
  ASSERT_EQ(run({"/bin/cp", "-a", ws() + "/.", other.path()}).exit_code, 0);
  ASSERT_EQ(
      shell("echo b >> a; git -c user.name=a -c user.email=a@b commit -qam 2; mkdir d; echo c > d/.gitignore; git init -q d/e")
          .exit_code,
      0);
  const Outcome patch = txn({"diff", "--patch"});
  EXPECT_EQ(patch.exit_code, 0) << patch;
  EXPECT_EQ(patch.err.find("COMMIT_EDITMSG"), std::string::npos) << patch;
  EXPECT_NE(patch.err.find("not in the patch: .git: git takes nothing"), std::string::npos) << patch;
  EXPECT_NE(patch.err.find("not in the patch: d/e/.git: git takes nothing"), std::string::npos) << patch;
  const Outcome applied = run({"git", "apply", "-"}, {.input = patch.out, .cwd = other.path()});
  EXPECT_EQ(applied.exit_code, 0) << applied << patch.out;
  EXPECT_EQ(read_file(other / "a"), "a\nb\n");
  EXPECT_EQ(read_file(other / "d/.gitignore"), "c\n");
}

}  // namespace
}  // namespace belljar::test
