// Git at work inside, in repositories that are new and in ones that were there, as it works outside (issue 3, "Live rules"). What a
// repository must not be taught there is tests/escape/git_test.cc.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "e2e/support_run.h"
#include "support/as_user.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

class GitWork : public Run {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(program("git"));
    Run::SetUp();
    if (IsSkipped()) return;
    const Outcome made = run({"/bin/sh", "-ec", kOld}, options());
    ASSERT_EQ(made.exit_code, 0) << made;
    if (is_root()) workspace_.give_to(user_uid(), user_gid());
  }
  RunOptions options() const {
    RunOptions options{.stdin_is = Input::kNull, .cwd = workspace_.path(), .timeout = std::chrono::minutes(3)};
    options.env = {{"HOME", home_.path()}, {"GIT_CONFIG_NOSYSTEM", "1"}, {"GIT_CONFIG_GLOBAL", "/dev/null"}};
    return options;
  }
  // Each line must succeed; the line that fails is the last that `set -x` shows.
  void works(const std::string& text) const {
    const Outcome outcome = run_in({"--pass-env", "GIT_CONFIG_GLOBAL", "--", "/bin/sh", "-exc", text + "\necho all"}, options());
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    EXPECT_TRUE(outcome.out.ends_with("all\n")) << outcome;
  }
  // What the host's git says of it afterwards. By its own config: it belongs to another where root asks.
  std::string host(const std::string& text) const {
    return run({"/bin/sh", "-c", "git() { command git -c safe.directory='*' \"$@\"; }; " + text}, options()).out;
  }

  // master: one, two; side: one, side
  static constexpr char kOld[] = R"(
git init -q -b master old && cd old && git config user.name h && git config user.email h@h
echo 1 >f && git add f && git commit -qm one && echo 2 >>f && git commit -qam two
git checkout -qb side HEAD~1 && echo s >s && git add s && git commit -qm side && git checkout -q master)";
  TempDir home_;
};

TEST_F(GitWork, ARepositoryThatWasThereIsWorkedIn) {
  works(R"(cd old
git config user.name new; git config user.email new@new
echo 3 >>f; git stash -q; git stash list; git stash pop -q; git commit -qam three
git rebase -q side; git log --oneline
git checkout -qb topic; echo t >t; git add t; git commit -qm topic; git checkout -q master; git merge -q --no-ff -m merged topic
git cherry-pick --allow-empty --keep-redundant-commits topic >/dev/null; git revert --no-edit HEAD~1 -m 1 || git revert --abort
git reset -q --hard topic; git tag -m tag t1; git notes add -m note; git branch -m side other; git reflog expire --expire=now --all
git worktree add -q ../tree -b inside; (cd ../tree; echo w >w; git add w; git commit -qm w); git worktree list; git worktree remove ../tree
git sparse-checkout set --skip-checks /f; git sparse-checkout disable
git bisect start >/dev/null; git bisect reset >/dev/null
git maintenance run --quiet; git gc -q --prune=now; git fsck --strict
git format-patch -1 -o .. >/dev/null; git archive HEAD | tar t; git bundle create ../x.bundle --all 2>/dev/null)");
  EXPECT_EQ(host("git -C old config user.name; git -C old show -s --format=%an%n%s; git -C old rev-parse t1^{commit} topic | uniq "
                 "| wc -l"),
            "new\nnew\ntopic\n1\n");
}

TEST_F(GitWork, CloneFetchPushAndBareRepositoriesWork) {
  works(R"(git clone -q old copy; cd copy; git config user.name i; git config user.email i@i
git fetch -q; git checkout -q side; git rebase -q origin/master; git stash list; echo x >>f; git commit -qam inner
git push -q origin HEAD:refs/heads/inner; git pull -q --ff-only origin inner; git remote rename origin up; git remote -v >/dev/null
cd ..; git clone -q --bare old bare.git; git clone -q bare.git second; git clone -q --mirror old mirror.git; git -C mirror.git fetch -q
git -C old remote add o ../bare.git; git -C old fetch -q o; git -C old branch -q --set-upstream-to=o/master
git clone -q --depth 1 "file://$PWD/old" shallow; git -C shallow log --oneline | grep -c .
git init -q --bare new.git; git -C old push -q ../new.git master side; git ls-remote new.git
git clone -q --separate-git-dir=apart old pointed; git -C pointed status --short; cp -r old second-old; git -C second-old status --short
mv second-old moved; git -C moved log --oneline; rm -rf moved copy; mkdir -p deep/er; git init -q deep/er/still; tar -cf t.tar old; tar -xf t.tar -C deep
git -C deep/old status --short)");
  EXPECT_EQ(host("git -C old log -1 --format=%s inner; git -C new.git branch | grep -c ."), "inner\n2\n");
}

// Missing objects come from where the command itself could ask; a server that only the host reaches is not put in its place.
TEST_F(GitWork, APartialCloneWorks) {
  works(R"(git -C old config uploadpack.allowFilter true; git clone -q --filter=blob:none file://$PWD/old part
git -C part log -p --format=%s | grep -q two; git -C part config remote.origin.promisor | grep -qx true)");
  const Outcome moved = run_in({"-c", "git -C part config remote.origin.url https://host.invalid/x"}, options());
  EXPECT_NE(moved.exit_code, 0) << moved;
  EXPECT_EQ(host("git -C part config remote.origin.url").substr(0, 8), "file:///");
}

TEST_F(GitWork, SubmodulesOfLocalRepositoriesWork) {
  works(R"(git init -q super; cd super; git config user.name i; git config user.email i@i
git -c protocol.file.allow=always submodule --quiet add ../old sub; git commit -qm sub; git submodule status; cat sub/f
cd ..; git -c protocol.file.allow=always clone -q --recurse-submodules super again; cat again/sub/f
cd again; git -c protocol.file.allow=always submodule --quiet update --remote; git submodule --quiet foreach 'git log -1 --format=%s'
git submodule --quiet deinit -f sub; git -c protocol.file.allow=always submodule --quiet update --init; cat sub/s || cat sub/f)");
  EXPECT_EQ(host("git -C super ls-files --stage sub | cut -c1-6; cat super/sub/f"), "160000\n1\n2\n");
}

// Git's own records of conflicts, which tests/escape/git_test.cc forges.
TEST_F(GitWork, ResolutionsAreRecordedAndUsedAgain) {
  works(R"(cd old; git config user.name i; git config user.email i@i; git config rerere.enabled true
git checkout -q side; echo mine >f; git commit -qam mine; git checkout -q master
git merge side || :; test -s .git/MERGE_RR; echo both >f; git rerere status | grep f; git commit -qam merged
test -s .git/MERGE_RR && exit 1; git reset -q --hard HEAD~1
git -c rerere.autoupdate=true merge side || :; grep -qx both f; git commit -qm again
git worktree add -q ../tree HEAD~1; cd ../tree; git merge side || :; grep -qx both f; git commit -qam there
cd ../old; git bisect start -- f s >/dev/null; cat .git/BISECT_NAMES; git bisect bad; git bisect good HEAD~1; git bisect reset)");
  EXPECT_EQ(host("git -C old show -s --format=%s; ls old/.git/rr-cache | wc -l"), "again\n1\n");
}

// The twin of all that works: a hook does not come to stand there, and outside of Belljar it would.
TEST_F(GitWork, AHookIsRefusedAndRunsOutside) {
  const std::string plant =
      "printf '#!/bin/sh\\necho ran >../ran\\n' >old/.git/hooks/post-commit && chmod 755 old/.git/hooks/post-commit";
  const std::string commit = "cd old && echo x >>f && git -c user.name=h -c user.email=h@h commit -qam x; cat ../ran";
  const Outcome inside = run_in({"--", "/bin/sh", "-c", plant}, options());
  EXPECT_NE(inside.exit_code, 0) << inside;
  EXPECT_EQ(host(commit), "");
  EXPECT_EQ(run({"/bin/sh", "-c", plant}, options()).exit_code, 0);
  EXPECT_EQ(host(commit), "ran\n");
}

// A slip takes no history with it, and git, other repositories and whoever may have their way.
TEST_F(GitWork, TheWorkspacesOwnRepositoryIsNotRemoved) {
  host("git init -q . && echo 1 >f && git add f && git -c user.name=a -c user.email=a@b commit -qm one && rm .git/COMMIT_EDITMSG");
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  const std::string before = host("find .git | LC_ALL=C sort | md5sum; git log --format=%s");
  ASSERT_NE(before.find("one"), std::string::npos);
  for (const char* slip : {"rm -rf .git", "rm -r .git/objects", "mv .git away", "find .git -delete", "rm .git/HEAD",
                           "python3 -c 'import shutil; shutil.rmtree(\".git\")'"}) {
    const Outcome refused = run_in({"-c", slip}, options());
    EXPECT_NE(refused.exit_code, 0) << slip << refused;
    EXPECT_EQ(host("find .git | LC_ALL=C sort | md5sum; git log --format=%s"), before) << slip;
  }
  EXPECT_NE(run_in({"-c", "rm -rf .git"}, options()).err.find("refused"), std::string::npos);
  // However it was touched before: what git or the broker wrote anew is no younger repository.
  const std::string later = "git -c user.name=x -c user.email=x commit --allow-empty -qm two; rm -rf .git";
  EXPECT_NE(run_in({"-c", later}, options()).exit_code, 0);
  EXPECT_EQ(host("git log --format=%s"), "two\none\n");
  // The twins.
  works(
      "git gc -q --prune=now; git branch x; git branch -D x; git repack -qad; git pack-refs --all; rm -rf old/.git; git stash "
      "list");
  works("git init -q made && rm -rf made/.git; touch .git/index.lock; rm .git/index.lock");
  EXPECT_EQ(host("git log --format=%s | tail -1; ls -d old/.git 2>/dev/null"), "one\n");
  EXPECT_EQ(run_in({"--allow-git-removal", "-c", "rm -rf .git"}, options()).exit_code, 0);
  EXPECT_EQ(host("ls -d .git 2>/dev/null"), "");
  // A worktree's `.git` is a file, and emptying it is a removal.
  host(
      "git init -q base && cd base && git -c user.name=a -c user.email=a@b commit --allow-empty -qm one && git worktree add -q "
      "../wt");
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  RunOptions there = options();
  there.cwd = workspace_ / "wt";
  const std::string pointer = host("cat wt/.git");
  for (const char* slip : {": > .git", "printf '' > .git; rm .git", "rm -f .git", "mv .git g", "cp /dev/null .git"})
    (void)run_in({"--write", workspace_ / "base", "-c", slip}, there);
  EXPECT_EQ(host("cat wt/.git"), pointer);
  EXPECT_EQ(pointer.substr(0, 8), "gitdir: ");
}

// What a shell, an editor or a script writes to a control file in place is there for whoever reads it next; what is refused leaves
// what was there, and is told though the command ended well.
// Its commits go to the repository beside it, which is written to as its own `.git` would be, and no more.
TEST_F(GitWork, ALinkedWorkTreeHasItsRepository) {
  ASSERT_EQ(host("cd old && git worktree add -q ../tree -b linked && cp -r ../tree ../copy && rm .git/COMMIT_EDITMSG && echo made"),
            "made\n");
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  const auto in = [&](const std::string& tree, const std::string& text, const std::vector<std::string>& more = {}) {
    std::vector<std::string> args{"run", "--pass-env", "GIT_CONFIG_GLOBAL"};
    args.insert(args.end(), more.begin(), more.end());
    args.insert(args.end(), {"-c", text});
    RunOptions there = options();
    there.cwd = workspace_ / tree;
    return belljar(args, there);
  };
  const Outcome works =
      in("tree",
         "set -e; echo w >w; git add w; git commit -qm inside; git checkout -qb more; git branch -D linked; git gc -q; "
         "git stash list; git config user.name new; git log --format=%s -1");
  EXPECT_TRUE(works.out.ends_with("inside\n")) << works;
  EXPECT_EQ(host("git -C old log --format=%s -1 more; git -C old config user.name"), "inside\nnew\n");
  const std::string before = host("ls -R old/.git");
  const Outcome refused = in("tree",
                             "rm -rf ../old/.git; mv ../old/.git ../old/.other; echo x >../old/.git/hooks/post-commit; "
                             "git config core.pager x; ln -s / ../old/.git/refs/x; echo x >../old/f; echo x >../old/.vscode");
  EXPECT_EQ(host("ls -R old/.git"), before) << refused;
  EXPECT_EQ(host("git -C old status --short; git -C old fsck"), "") << refused;
  EXPECT_NE(in("copy", "touch ../old/.git/x").exit_code, 0) << "a pointer that the repository knows nothing of";
  EXPECT_NE(in("tree", "touch ../old/.git/x", {"--read", workspace_ / "old"}).exit_code, 0) << "the user's word stands";
  EXPECT_EQ(in("tree", "touch ../old/.git/x; rm ../old/.git/x").exit_code, 0) << "the twin";
  // A transaction could not take back what is beside its layers.
  const TempDir state{layers_base("/var/tmp")};
  RunOptions there = options();
  there.cwd = workspace_ / "tree";
  there.env["XDG_STATE_HOME"] = state.path();
  const Outcome dropped = belljar({"run", "--txn", "-c", "touch ../old/.git/x; rm -rf ../old/.git; echo t >t"}, there);
  const Outcome kept = belljar({"run", "--txn", "--write", workspace_ / "old/.git", "-c", "rm -rf ../old/.git"}, there);
  EXPECT_EQ(belljar({"rollback"}, there).exit_code, 0);
  EXPECT_EQ(host("ls -R old/.git"), before) << dropped << kept;
}

TEST_F(GitWork, AControlFileThatIsWrittenInPlace) {
  std::string text = "cd old\n";
  for (const char* shell : {"sh", "bash", "busybox sh", "zsh"}) {
    if (!program(std::string(shell).substr(0, std::string(shell).find(' ')).c_str()).empty()) continue;
    text += std::string(shell) + " -c 'printf \"[user]\\n name = %s\\n\" here > .git/config'\n";
    // A call that the broker performs begins after all that was closed before it has been judged; a read alone may come too early.
    text += ": > ../sync; git config user.name | grep -qx here; printf '[user]\\n name = tee\\n' | tee .git/config >/dev/null\n";
    text += "git config user.name | grep -qx tee\n";
  }
  text += R"end(sed -i s/tee/sed/ .git/config; git config user.name | grep -qx sed
python3 -c 'open(".git/config", "w").write("[user]\n name = py\n")'; git config user.name | grep -qx py
i=0; while [ $i -lt 60 ]; do git config user.name n$i; [ "$(git config user.name)" = n$i ];
i=$((i + 1)); done
)end";
  works(text);
  EXPECT_EQ(host("git -C old config user.name"), "n59\n");
  const std::string before = host("md5sum old/.git/config");
  const Outcome told = run_in({"-c", "printf '[core]\n pager = x\n' > old/.git/config"}, options());
  EXPECT_EQ(told.exit_code, 0) << told;
  EXPECT_NE(told.err.find("/old/.git/config` is as it was: what was written there was refused"), std::string::npos) << told;
  EXPECT_EQ(host("md5sum old/.git/config"), before);
  EXPECT_EQ(run_in({"-c", "printf '[user]\n name = z\n' > old/.git/config"}, options()).err, "") << "the twin";
}

// Many programs change a file by removing it and writing it anew, and directories are moved aside and copied back: settings of the
// user's that no command could make are still what stood there.
TEST_F(GitWork, WhatTheCommandTookAwayMayStandThereAgain) {
  host("git -C old config alias.hi '!echo hi'");
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  const std::string before = host("cat old/.git/config");
  const std::string ways[] = {
      R"(python3 -c 'import os; p = "old/.git/config"; d = open(p).read(); os.unlink(p); open(p, "w").write(d)')",
      "tar cf a.tar old/.git/config && tar xf a.tar",
      "cp old/.git/config c && cp --remove-destination c old/.git/config",
      "cp old/.git/config c && install -m 644 c old/.git/config",
      "cp old/.git/config /tmp/c; rm old/.git/config; mv /tmp/c old/.git/config",
      "cd old/.git; mv config config.bak; cp config.bak config; rm config.bak",
      "perl -i.bak -pe 1 old/.git/config && rm old/.git/config.bak",
      "cp -a old /tmp/; rm -rf old; cp -a /tmp/old .",
      "cp -a old /tmp/; rm -rf old; mv /tmp/old .",
      "mv old two; cp -a two old; rm -rf two",
      "cp -a old/.git /tmp/g; rm -rf old/.git; cp -a /tmp/g old/.git",
  };
  for (const std::string& way : ways) {
    const Outcome done = run_in({"-c", way}, options());
    EXPECT_EQ(done.exit_code, 0) << way << done;
    EXPECT_EQ(host("cat old/.git/config"), before) << way << done;
    EXPECT_EQ(host("git -C old hi"), "hi\n") << way;
  }
  const std::string plant = "printf '[core]\n pager = x\n' > old/.git/";
  const std::string refused = "rm old/.git/config; " + plant + "config";
  EXPECT_NE(run_in({"-c", refused}, options()).err.find("is as it was"), std::string::npos);
  EXPECT_EQ(host("cat old/.git/config"), before) << "what is refused leaves what stood there";
  EXPECT_NE(run_in({"-c", plant + "config.worktree"}, options()).err.find("is as it was"), std::string::npos);
  EXPECT_EQ(host("ls old/.git/config.worktree 2>/dev/null"), "") << "or nothing, where nothing stood";
  // It stood there, and nowhere else.
  host("mkdir -p bad && git init -q --bare bad/evil.git && git -C bad/evil.git config core.pager x");
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  const Outcome elsewhere =
      run_in({"-c", "cp bad/evil.git/config /tmp/c; rm bad/evil.git/config; cp /tmp/c old/.git/config"}, options());
  EXPECT_EQ(host("cat old/.git/config"), before) << elsewhere;
}

// An editor makes and removes files of its own beside the one that it was given.
TEST_F(GitWork, AnEditorWritesTheMessage) {
  host("git init -q . && git config user.name a && git config user.email a@b");
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  const std::string editor = R"end(set -e
f=$1; d=${f%/*}; n=${f##*/}
: >$d/.$n.swx; rm $d/.$n.swx; echo swap >$d/.$n.swp
mv $f $f~; echo "message $(cat $d/.$n.swp)" > $f; rm $f~ $d/.$n.swp)end";
  workspace_.write("ed.sh", "#!/bin/sh\n" + editor + "\n", 0755);
  for (const char* way : {"GIT_EDITOR=$PWD/ed.sh git commit -q --allow-empty",
                          "GIT_EDITOR=$PWD/ed.sh git commit -q --amend --allow-empty", "GIT_EDITOR=$PWD/ed.sh git tag -a t"})
    works(way);
  EXPECT_EQ(host("git log --format=%s; git tag -n; ls -A .git | grep -c swp"), "message swap\nt               message swap\n0\n");
}

}  // namespace
}  // namespace belljar::test
