// A command inside plants code in what git reads, and a person runs git in that workspace afterwards, outside. Each plant with its
// twin: with protect = "none" it gets through and the tripwire fires, so the test would see it.
#include <cctype>
#include <string>
#include <tuple>
#include <vector>

#include "escape/support_attack.h"
#include "support/as_user.h"
#include "support/identity.h"

namespace belljar::test {
namespace {

struct Plant {
  const char* name;
  const char* inside;  // $T is the tripwire: a path outside of the workspace
  const char* later;   // on the host, in the workspace
};

constexpr char kRepository[] =
    "git init -q . && git config user.name x && git config user.email x@y && echo a >a && git add a && git commit -qm one";

#define HOOK(file) "printf '#!/bin/sh\\ntouch '$T'\\n' >" file "; chmod +x " file "; "

// Below 18 directories of 250 letters no rule can name what is written; then it is brought up again, a few levels at a time.
#define DEEP                                                                                                                  \
  "W=$PWD perl -e '$n = \"A\" x 250; for (1 .. 18) { mkdir $n; chdir $n } mkdir \"r\"; chdir \"r\"; mkdir $_ "                \
  "for (\".git\", \".git/objects\", \".git/refs\"); "                                                                         \
  "open F, \">.git/HEAD\"; print F \"ref: refs/heads/main\\n\"; close F; "                                                    \
  "open F, \">.git/config\"; print F "                                                                                        \
  "\"[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = \\\"touch $ENV{T}; false\\\"\\n\"; close F; "                   \
  "chdir $ENV{W}; $six = join \"/\", ($n) x 6; rename $six, \"b0\"; rename \"b0/$six\", \"b1\"; rename \"b1/$six\", \"b2\"; " \
  "rename \"b2/r\", \"r\"'"

// An index (index-format(5)) with one entry: that name, and a blob of the text.
#define INDEX(name, text)                                                                               \
  "B=$(printf '" text "' $T | git hash-object -w --stdin) N='" name                                     \
  "' python3 -c '\n"                                                                                    \
  "import os, struct, hashlib\n"                                                                        \
  "n = os.environ[\"N\"].encode()\n"                                                                    \
  "e = struct.pack(\">10I\", 0, 0, 0, 0, 0, 0, 0o100755, 0, 0, 0) + bytes.fromhex(os.environ[\"B\"])\n" \
  "e += struct.pack(\">H\", len(n)) + n\n"                                                              \
  "d = b\"DIRC\" + struct.pack(\">II\", 2, 1) + e + bytes(8 - len(e) % 8)\n"                            \
  "open(\".git/index.lock\", \"wb\").write(d + hashlib.sha1(d).digest())\n"                             \
  "os.rename(\".git/index.lock\", \".git/index\")'"

// Two branches that conflict in `a`, and a merge strategy of one's own.
#define CONFLICT                                                                                                \
  "M=$(git branch --show-current); git checkout -qb side; echo s >a; git commit -qam s; echo s >c; git add c; " \
  "git commit -qm c; git checkout -q $M; echo t >a; git commit -qam t; mkdir git-merge-x; "                     \
  "printf '#!/bin/sh\\ntouch '$T'\\nexit 1\\n' >git-merge-x/evil; chmod +x git-merge-x/evil; "

// What rerere will put in place of a file whose conflict has that id.
#define RESOLUTION(file)                                                                                       \
  "h=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; r=$(git rev-parse --git-common-dir)/rr-cache/$h; mkdir -p $r; " \
  "cp " file " $r/preimage; cp " file " $r/postimage; printf '[core]\\n\\tfsmonitor = \"touch %s; false\"\\n' $T >>$r/postimage; "

const Plant kPlants[] = {
    {"a hook", HOOK(".git/hooks/pre-commit"), "git commit --allow-empty -qm x"},
    {"a hook by rename", HOOK("h") "mv h .git/hooks/pre-commit", "git commit --allow-empty -qm x"},
    {"a sample that becomes a hook",
     "rm -f .git/hooks/*; " HOOK(".git/hooks/pre-commit.sample") "mv .git/hooks/pre-commit.sample .git/hooks/pre-commit",
     "git commit --allow-empty -qm x"},
    {"a hook by hard link", HOOK("h") "ln h .git/hooks/pre-commit", "git commit --allow-empty -qm x"},
    {"a hook by symbolic link", HOOK("h") "ln -s $PWD/h .git/hooks/pre-commit", "git commit --allow-empty -qm x"},
    {"hooks by symbolic link", "mkdir h; " HOOK("h/pre-commit") "rm -rf .git/hooks; ln -s ../h .git/hooks",
     "git commit --allow-empty -qm x"},
    {"hooks by renaming a directory", "mkdir h; " HOOK("h/pre-commit") "rm -rf .git/hooks; mv h .git/hooks",
     "git commit --allow-empty -qm x"},
    {"a repository by renaming a directory", "cp -r .git new; " HOOK("new/hooks/pre-commit") "rm -rf .git; mv new .git",
     "git commit --allow-empty -qm x"},
    {"a repository of which every part is made elsewhere",
     "cp -r .git new; rm -rf new/refs; " HOOK("new/hooks/pre-commit") "rm -rf .git; mv new .git; mkdir .git/refs",
     "git commit --allow-empty -qm x"},
    {"a hook through a link to the directory", "ln -s .git/hooks way; " HOOK("way/pre-commit"), "git commit --allow-empty -qm x"},
    {"a hook through a directory that is open", "cd .git/hooks; " HOOK("./pre-commit"), "git commit --allow-empty -qm x"},
    {"core.fsmonitor", "git config core.fsmonitor \"touch $T; false\"", "git status"},
    {"core.fsmonitor by writing the file", "printf '[core]\\n\\tfsmonitor = \"touch %s; false\"\\n' $T >>.git/config",
     "git status"},
    {"core.fsmonitor through a descriptor from before",
     "cp .git/config x; exec 3>>x; mv x .git/config; printf '[core]\\n\\tfsmonitor = \"touch %s; false\"\\n' $T >&3", "git status"},
    {"core.fsmonitor through a hard link", "ln .git/config x; printf '[core]\\n\\tfsmonitor = \"touch %s; false\"\\n' $T >>x",
     "git status"},
    {"core.fsmonitor through a symbolic link",
     "cp .git/config x; printf '[core]\\n\\tfsmonitor = \"touch %s; false\"\\n' $T >>x; rm .git/config; ln -s ../x .git/config",
     "git status"},
    {"core.fsmonitor through /proc/self/fd",
     "exec 3<.git/config; printf '[core]\\n\\tfsmonitor = \"touch %s; false\"\\n' $T >>/proc/self/fd/3", "git status"},
    {"core.hooksPath", "mkdir h; " HOOK("h/pre-commit") "git config core.hooksPath h", "git commit --allow-empty -qm x"},
    {"core.sshCommand", "git remote add o ssh://localhost/x; git config core.sshCommand \"touch $T; false\"", "git fetch o"},
    {"core.editor", "git config core.editor \"touch $T; false\"", "git commit --allow-empty"},
    {"core.pager", "git config core.pager \"touch $T; cat\"", "script -qec 'git log' /dev/null"},
    {"an alias", "git config alias.st \"!touch $T\"", "git st"},
    {"a filter", "git config filter.e.clean \"touch $T; cat\"; echo '* filter=e' >.gitattributes; echo b >a", "git add a"},
    {"diff.external", "git config diff.external \"touch $T\"; echo b >a", "git diff"},
    {"a textconv", "git config diff.e.textconv \"touch $T; cat\"; echo '* diff=e' >.gitattributes; echo b >a", "git diff"},
    {"a merge driver",
     "git config merge.e.driver \"touch $T; false\"; echo '* merge=e' >.gitattributes; git checkout -qb s; echo s >a; git commit "
     "-qam s; git checkout -q -;"
     "echo t >a; git commit -qam t",
     "git merge s"},
    {"an include", "printf '[core]\\n\\tfsmonitor = \"touch %s; false\"\\n' $T >inc; git config include.path ../inc", "git status"},
    {"a conditional include",
     "printf '[core]\\n\\tfsmonitor = \"touch %s; false\"\\n' $T >inc; git config 'includeIf.gitdir:/.path' $PWD/inc",
     "git status"},
    {"a remote helper", "git config protocol.ext.allow always; git remote add e \"ext::touch $T\"", "git fetch e"},
    {"url.insteadOf",
     "git config protocol.ext.allow always; git remote add e https://example.invalid/; git config \"url.ext::touch $T .insteadOf\" "
     "https://example.invalid/",
     "git fetch e"},
    {"remote.uploadpack", "git remote add e .; git config remote.e.uploadpack \"touch $T; git-upload-pack\"", "git fetch e"},
    {"gpg.program",
     "printf '#!/bin/sh\\ntouch '$T'\\n' >g; chmod +x g; git config gpg.program $PWD/g; git config commit.gpgSign true",
     "git commit --allow-empty -qm x"},
    {"config.worktree",
     "git config extensions.worktreeConfig true; printf '[core]\\n\\tfsmonitor = \"touch %s; false\"\\n' $T >.git/config.worktree",
     "git status"},
    {"commondir", "cp -r .git eg; rm -f eg/hooks/*; " HOOK("eg/hooks/post-commit") "echo ../eg >.git/commondir",
     "git commit --allow-empty -qm x"},
    {"a .git file", "cp -r .git eg; rm -f eg/hooks/*; " HOOK("eg/hooks/post-commit") "mkdir sub; echo 'gitdir: ../eg' >sub/.git",
     "cd sub && git commit --allow-empty -qm x"},
    {"a worktree",
     "git worktree add -q wt; git config extensions.worktreeConfig true; printf '[core]\\n\\tfsmonitor = \"touch %s; false\"\\n' "
     "$T >.git/worktrees/wt/config.worktree",
     "cd wt && git status"},
    {"a worktree's commondir",
     "git worktree add -q wt; cp -r .git eg; rm -f eg/hooks/*; " HOOK(
         "eg/hooks/post-commit") "echo $PWD/eg >.git/worktrees/wt/commondir",
     "cd wt && git commit --allow-empty -qm x"},
    {"a nested repository",
     "git init -q a1/b/c/n; cd a1/b/c/n; git config user.name x; git config user.email x; " HOOK(".git/hooks/pre-commit"),
     "cd a1/b/c/n && git commit --allow-empty -qm x"},
    {"a nested repository in node_modules",
     "git init -q node_modules/n; cd node_modules/n; git config core.fsmonitor \"touch $T; false\"",
     "cd node_modules/n && git status"},
    {"a submodule's hook",
     "git clone -q --bare . ../ws/b.git; git -c protocol.file.allow=always submodule --quiet add ./b.git sub; rm -f "
     ".git/modules/sub/hooks/*; " HOOK(".git/modules/sub/hooks/post-checkout"),
     "cd sub && git checkout -q --detach"},
    {"a submodule's settings",
     "git clone -q --bare . ../ws/b.git; git -c protocol.file.allow=always submodule --quiet add ./b.git sub; git -C sub config "
     "core.fsmonitor \"touch $T; false\"",
     "cd sub && git status"},
    {"a submodule's update command",
     "git clone -q --bare . ../ws/b.git; git -c protocol.file.allow=always submodule --quiet add ./b.git sub; git config "
     "submodule.sub.update \"!touch $T\"; git commit -qm s; git -C sub -c user.name=x -c user.email=x commit --allow-empty -qm z",
     "git -c protocol.file.allow=always submodule update"},
    {"a bare repository, settings last",
     "git init -q --bare b; printf '[core]\\n\\tbare = true\\n[alias]\\n\\tst = \"!touch %s\"\\n' $T "
     ">b/config",
     "cd b && git st"},
    {"a bare repository, markers last",
     "mkdir b; printf '[core]\\n\\tbare = true\\n[alias]\\n\\tst = \"!touch %s\"\\n' $T >b/config; cp "
     ".git/HEAD b/; cp -r .git/objects b/; mkdir b/refs",
     "cd b && git st"},
    {"a bare repository, a marker by rename",
     "mkdir b r; printf '[core]\\n\\tbare = true\\n[alias]\\n\\tst = \"!touch %s\"\\n' $T >b/config; cp "
     ".git/HEAD b/; cp -r .git/objects b/; mv r b/refs",
     "cd b && git st"},
    {"a bare repository, a marker by link",
     "mkdir b r; printf '[core]\\n\\tbare = true\\n[alias]\\n\\tst = \"!touch %s\"\\n' $T >b/config; cp "
     ".git/HEAD b/; cp -r .git/objects b/; ln -s ../r b/refs",
     "cd b && git st"},
    {"a bare repository in the root",
     "rm -rf .git/HEAD; cp -r .git/objects .git/refs .; printf '[core]\\n\\tbare = true\\n[alias]\\n\\tst = \"!touch %s\"\\n' $T "
     ">config; echo 'ref: refs/heads/main' >HEAD",
     "git st"},
    {"a repository deeper than any path", DEEP, "cd r && git status"},
    {"a promisor remote that only the host reaches",
     "git config core.repositoryformatversion 1; git config extensions.partialClone p; git config remote.p.url ssh://p.invalid/x; "
     "git config remote.p.promisor true; rm -f .git/objects/$(git rev-parse HEAD:a | cut -c1-2)/*; echo b >a",
     "GIT_SSH_COMMAND='touch ../beside/tripped; false' git diff"},
    {"a bare repository, a socket for a marker",
     "mkdir x x/objects y; printf '[core]\n\tbare = false\n\tworktree = ..\n\tfsmonitor = \"touch %s; false\"\n' $T >x/config; "
     "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un(\"x/refs\"))'; "
     "echo 'ref: refs/heads/main' >x/HEAD; echo 'gitdir: ../x' >y/.git",
     "cd y && git status"},
    {"a work tree behind a link",
     "echo x >tripped; git add tripped; git commit -qm two; rm tripped; ln -s ${T%/*} way; git config core.worktree $PWD/way",
     "git checkout -qf"},
    {"a log that is a link", "rm -f .git/logs/HEAD; ln -s $T .git/logs/HEAD", "git commit --allow-empty -qm x"},
    {"a log that is a hard link to a link", "ln -s $T l; rm -f .git/logs/HEAD; ln -P l .git/logs/HEAD",
     "git commit --allow-empty -qm x"},
    {"a log that is a renamed link", "ln -s $T l; mv -f l .git/logs/HEAD", "git commit --allow-empty -qm x"},
    {"a log in a renamed directory", "mkdir l; ln -s $T l/HEAD; rm -rf .git/logs; mv l .git/logs",
     "git commit --allow-empty -qm x"},
    {"a log of a repository whose markers come last",
     "mkdir b b/logs; ln -s $T b/logs/HEAD; cp .git/HEAD b/; cp -r .git/objects b/; printf '[core]\n\tbare = "
     "true\n\tlogAllRefUpdates = always\n' >b/config; mkdir b/refs",
     "cd b && git update-ref HEAD $(git -C .. rev-parse HEAD)"},
    {"a log of a bare repository",
     "git init -q --bare b; git -C b config core.logAllRefUpdates always; cp -r .git/objects b/; mkdir b/logs; ln -s $T "
     "b/logs/HEAD",
     "cd b && git update-ref HEAD $(git -C .. rev-parse HEAD)"},
    {"a message that is a link", "ln -sf $T .git/COMMIT_EDITMSG", "git commit --allow-empty -qm x"},
    {"FETCH_HEAD that is a link", "git remote add o .; ln -sf $T .git/FETCH_HEAD", "git fetch -q o"},
    {"an index that is a link", "rm .git/index; ln -s $T .git/index", "git add ."},
    {"packed refs that are a link", "ln -s $T .git/packed-refs", "git pack-refs --all"},
    {"refs that are a link", "ln -s ${T%/*} .git/refs/heads/feature", "git branch feature/tripped"},
    {"an index that leads out", INDEX("../beside/tripped", "x%s"), "git restore ."},
    {"an index with a hook", INDEX(".git/hooks/pre-commit", "#!/bin/sh\\ntouch %s\\n"),
     "git restore .; git commit --allow-empty -qm x"},
    {"a rebase's strategy",
     CONFLICT "git checkout -q side; git rebase $M; echo x/evil >.git/rebase-merge/strategy; echo c >a; git add a; "
              "echo \"pick $(git rev-parse side~1)\" >>.git/rebase-merge/git-rebase-todo",
     "git -c core.editor=true rebase --continue"},
    {"a cherry-pick's strategy",
     CONFLICT "git cherry-pick side~1 side; printf '[options]\n\tstrategy = x/evil\n' >.git/sequencer/opts; echo c >a; git add a",
     "git -c core.editor=true cherry-pick --continue"},
    {"the options of am",
     CONFLICT
     "git format-patch -q -o p $M..side; git am -3 p/*; printf \" '--build-fake-ancestor=$T'\" >.git/rebase-apply/apply-opt",
     "git am --skip"},
    {"a rebase that goes on",
     "echo b >b; git add b; git commit -qm two; GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -q -i HEAD~1; echo \"exec "
     "touch $T\" "
     ">>.git/rebase-merge/git-rebase-todo",
     "git rebase --continue"},
    {"a record of rerere", RESOLUTION(".git/config") "printf '%s.-1\\t.git/config\\0' $h >.git/MERGE_RR",
     "git commit --allow-empty -qm x; git status"},
    {"a record of rerere as git writes it",
     RESOLUTION(
         ".git/config") "printf '%s.4294967295\\t.git/config\\0' $h >.git/MERGE_RR.lock; mv .git/MERGE_RR.lock .git/MERGE_RR",
     "git rerere; git status"},
    {"a record of rerere that leads out",
     RESOLUTION("a") "printf '%s.-1\\t../beside/settings\\0' $h >.git/MERGE_RR; cp $r/postimage $r/thisimage; : >$r/preimage; "
                     "echo '* merge=union' >.gitattributes",
     "touch ../beside/settings; git rerere; cp ../beside/settings .git/config; git status"},
    {"a record of rerere in a worktree",
     "git worktree add -q wt; cd wt; " RESOLUTION(
         "../.git/config") "printf '%s.-1\\t../.git/config\\0' $h >../.git/worktrees/wt/MERGE_RR",
     "cd wt && git rerere; git status"},
    {"settings that look conflicted",
     "git config core.bare false; printf '[user]\\n\\tname = \"x \\\\\\n<<<<<<< a \\\\\\nb \\\\\\n======= \\\\\\nc \\\\\\n>>>>>>> "
     "d \\\\\\n\"\\n' "
     ">>.git/config; " RESOLUTION(
         ".git/config") "sed -i 's/^<<<<<<< .*/<<<<<<</; s/^======= .*/=======/; s/^>>>>>>> .*/>>>>>>>/' $r/preimage; "
                        "sed -i '/^<<<<<<</,/^>>>>>>>/d' $r/postimage; ln -s .git way; printf '%s\\tway/config\\0' $h "
                        ">.git/MERGE_RR",
     "git rerere; git status"},
    {"a step of a rebase by the format of its list",
     "M=$(git branch --show-current); git checkout -qb side; echo s >s; git add s; git commit -qm s; git checkout -q $M; "
     "echo t >t; git add t; git commit -qm t; git config rebase.instructionFormat \"%s%nexec touch $T\"",
     "git rebase side"},
    {"a server for gitweb", "mkdir -p .git/gitweb; " HOOK(".git/gitweb/lighttpd"), "git instaweb --start"},
};

// On the native backend, and where there are no namespaces.
class Git : public Attack, public testing::WithParamInterface<std::tuple<Plant, const char*>> {
 protected:
  void SetUp() override {
    Attack::SetUp();
    BELLJAR_NEEDS(test::program("git"));
    always_ = {"--backend", std::get<1>(GetParam())};
    top_policy_ = beside("none.toml");
    plant(top_policy_, "mode = \"workspace-write\"\n[filesystem]\nprotect = \"none\"\n");
    ASSERT_EQ(as_person(kRepository).exit_code, 0);
  }
  // The person to whom the workspace belongs, outside.
  Outcome as_person(const std::string& text) const {
    return run(as_user({"/bin/sh", "-c", text}, home()), {.stdin_is = Input::kNull,
                                                          .cwd = workspace(),
                                                          // Where nobody planted one: `more` would wait for a key.
                                                          .env = {{"PAGER", "cat"},
                                                                  {"GIT_TERMINAL_PROMPT", "0"},
                                                                  {"GIT_CONFIG_NOSYSTEM", "1"},
                                                                  {"GIT_MERGE_AUTOEDIT", "no"},
                                                                  {"TERM", "xterm"},
                                                                  {"VISUAL", "true"}}});
  }
  static const Plant& planted() { return std::get<0>(GetParam()); }
  std::string tripwire() const { return beside("tripped"); }
  std::string with_tripwire(const std::string& text) const { return "T=" + tripwire() + "; export T; " + text; }
  std::vector<std::string> unprotected() const { return {"--policy", top_policy_}; }

 private:
  std::string top_policy_;
};

// What anybody does in a workspace after an agent was there.
constexpr char kEverydayWork[] =
    "git status; git commit --allow-empty -qm later; git fetch --all; git checkout -q --detach; git gc -q; git diff; git log -1; "
    "true";

TEST_P(Git, RunsNothingThatWasPlanted) {
  const Outcome inside = shell(with_tripwire(planted().inside));
  const Outcome later = as_person(planted().later);
  as_person(kEverydayWork);
  EXPECT_FALSE(exists(tripwire())) << "inside: " << inside << "\nlater: " << later;
}

TEST_P(Git, WouldHaveRunItWithoutProtection) {
  const Outcome inside = shell(with_tripwire(planted().inside), unprotected());
  ASSERT_FALSE(exists(tripwire())) << "it ran inside, where the tripwire cannot be reached";
  const Outcome later = as_person(planted().later);
  // Every call is judged by its path there, and a path that is too long has none: nothing below one is made, whoever may.
  const bool impossible = std::string_view(std::get<1>(GetParam())) == "landlock" && std::string_view(planted().inside) == DEEP;
  EXPECT_EQ(exists(tripwire()), !impossible) << "inside: " << inside << "\nlater: " << later;
}

std::string test_name(const testing::TestParamInfo<std::tuple<Plant, const char*>>& info) {
  std::string name = std::string(std::get<0>(info.param).name) + " " + std::get<1>(info.param);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(Plants, Git, testing::Combine(testing::ValuesIn(kPlants), testing::Values("native", "landlock")),
                         test_name);

}  // namespace
}  // namespace belljar::test
