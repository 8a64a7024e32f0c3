// filesystem.caches = "workspace" and `belljar caches`: package managers find what an earlier command of the workspace fetched, and
// the host's own caches stay as they are.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/as_user.h"
#include "support/built.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

// A home with a cache of the host's own, two workspaces and, where it may lie there, the state directory.
class KeptCaches : public testing::Test {
 protected:
  KeptCaches() : home_("/var/tmp") {
    if (on_overlay(home_.path())) apart_.emplace(layers_base(home_.path()));
  }
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    home_.write(".cache/pip/host", "the host's\n");
    for (const char* name : {"ws", "other"}) mkdir((home_ / name).c_str(), 0755);
    mkdir(state().c_str(), 0700);
    hand_over();
  }
  void hand_over() const {
    if (is_root()) home_.give_to(user_uid(), user_gid());
  }
  Outcome call(std::vector<std::string> words, const std::string& workspace = "ws") const {
    return belljar(std::move(words), {.cwd = home_ / workspace, .env = environment()});
  }
  std::map<std::string, std::string> environment() const { return {{"HOME", home_.path()}, {"XDG_STATE_HOME", state()}}; }
  Outcome shell(const std::string& text, const std::string& workspace = "ws", const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words = {"run", "--caches", "workspace"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"-c", text});
    return call(std::move(words), workspace);
  }
  static std::vector<std::string> command(std::vector<std::string> words) {
    words.insert(words.begin(), kBelljar);
    return words;
  }
  // The clause of the enforcement report.
  std::string clause(const std::vector<std::string>& options = {}) const {
    const std::string out = shell("true", "ws",
                                  [&] {
                                    std::vector<std::string> all = {"--json"};
                                    all.insert(all.end(), options.begin(), options.end());
                                    return all;
                                  }())
                                .out;
    const auto at = out.find(R"("clause":"filesystem.caches")");
    return at == std::string::npos ? out : out.substr(at, out.find('}', at) - at);
  }
  std::string cache(const std::string& name) const { return home_ / (".cache/" + name); }
  std::string state() const { return (apart_ ? *apart_ : home_) / "state"; }

  TempDir home_;
  std::optional<TempDir> apart_;
};

TEST_F(KeptCaches, TheNextCommandFindsWhatTheLastOneLeft) {
  const auto before = describe_tree(cache(""));
  EXPECT_EQ(shell("cd ~/.cache/pip; cat host; echo fetched > wheel; echo over > host; mkdir d; echo deep > d/e").out,
            "the host's\n");
  EXPECT_EQ(shell("cd ~/.cache/pip; cat wheel host d/e; rm host; rm -r d; mkdir d").out, "fetched\nover\ndeep\n");
  const Outcome third = shell("cd ~/.cache/pip; ls; ls d; stat -c %u wheel; id -u");
  EXPECT_EQ(third.out.substr(0, 8), "d\nwheel\n") << third;
  const std::string owner = third.out.substr(8);
  EXPECT_EQ(owner.substr(0, owner.size() / 2), owner.substr(owner.size() / 2)) << third;
  EXPECT_EQ(describe_tree(cache("")), before);
  EXPECT_NE(clause().find(R"("enforced":"full")"), std::string::npos) << clause();
  // The twins: the same command without the key, and in another workspace, has the host's alone.
  EXPECT_EQ(call({"run", "-c", "ls ~/.cache/pip"}).out, "host\n");
  EXPECT_EQ(shell("ls ~/.cache/pip", "other").out, "host\n");
}

TEST_F(KeptCaches, ACacheThatTheHostLacksIsKeptToo) {
  EXPECT_EQ(shell("mkdir -p ~/.npm/_cacache && echo x > ~/.npm/_cacache/index").exit_code, 0);
  EXPECT_EQ(shell("cat ~/.npm/_cacache/index").out, "x\n");
  EXPECT_NE(access((home_ / ".npm").c_str(), F_OK), 0);  // no stub on the host
}

// Git on the host can be led into a layer (a `.git` file and a link), so no git directory in it runs anything either, and the
// command is not told where it lies.
TEST_F(KeptCaches, AGitDirectoryInALayerIsJudged) {
  BELLJAR_NEEDS(program("git"));
  const std::string half = "mkdir -p ~/.cache/evil && cd ~/.cache/evil && printf '[core]\\n\\t%s\\n' ";
  const std::string whole = " > config && echo 'ref: refs/heads/main' > HEAD && mkdir objects && mkdir refs && echo made";
  const Outcome evil = shell(half + "'fsmonitor = touch /tmp/x'" + whole);
  EXPECT_NE(evil.exit_code, 0) << evil;
  EXPECT_EQ(shell("ls ~/.cache/evil").out.find("refs"), std::string::npos);
  const Outcome hook =
      shell("mkdir -p ~/.cache/hooked/hooks && cd ~/.cache/hooked && mkdir objects && echo x > hooks/post-checkout; mkdir refs");
  EXPECT_NE(hook.exit_code, 0) << hook;
  // The twins: what git and its friends make in a cache, and a name that only an editor would read.
  EXPECT_EQ(shell("rm -r ~/.cache/evil; " + half + "'bare = true'" + whole).out, "made\n");
  EXPECT_EQ(shell("git init -q ~/.cache/repo && git init -q --bare ~/.cache/r.git && mkdir ~/.cache/.vscode").exit_code, 0);
  EXPECT_EQ(shell("git -C ~/.cache/repo status --short && git --git-dir ~/.cache/r.git config core.bare").out, "true\n");
  const Outcome mounts = shell("cat /proc/self/mountinfo");
  EXPECT_EQ(mounts.out.find(state()), std::string::npos) << mounts;
  const std::string none = home_.write("none.toml", "[filesystem]\nprotect = \"none\"\n");
  // What was written while nobody judged is not the layer that git names are judged in.
  EXPECT_EQ(shell("mkdir -p ~/.cache/free/hooks && cd ~/.cache/free && mkdir objects refs && echo x > hooks/post-checkout", "ws",
                  {"--policy", none})
                .exit_code,
            0);
  EXPECT_NE(shell("ls ~/.cache/free").exit_code, 0);
}

TEST_F(KeptCaches, HiddenNamesStayHidden) {
  home_.write(".cargo/registry/src", "x\n");
  home_.write(".cargo/credentials.toml", "token\n");
  hand_over();
  EXPECT_EQ(shell("echo y > ~/.cargo/registry/index").exit_code, 0);
  const Outcome outcome = shell("cat ~/.cargo/registry/index ~/.cargo/credentials.toml");
  EXPECT_EQ(outcome.out, "y\n") << outcome;
  EXPECT_NE(outcome.err.find("denied"), std::string::npos) << outcome;
}

// What a layer has is shown over everything below it: under stricter rules it is not this layer.
TEST_F(KeptCaches, WhatWasReadBeforeIsHiddenAfterwards) {
  const std::string secret = cache("pip/host");
  EXPECT_EQ(shell("touch ~/.cache/pip/host; echo n > ~/.cache/pip/new").exit_code, 0);
  const Outcome hidden = shell("cat ~/.cache/pip/host; cat ~/.cache/pip/new", "ws", {"--hide", secret});
  EXPECT_EQ(hidden.out, "") << hidden;
  EXPECT_EQ(shell("echo more > ~/.cache/pip/more; ls ~/.cache/pip", "ws", {"--hide", secret}).out.find("new"), std::string::npos);
  // The twin: under the rules of before what was kept is there.
  EXPECT_EQ(shell("cat ~/.cache/pip/host ~/.cache/pip/new").out, "the host's\nn\n");
}

TEST_F(KeptCaches, HiddenNamesRightInACacheOfOnesOwnStayHidden) {
  home_.write("tools/host", "x\n");
  home_.write("tools/secret", "s\n");
  hand_over();
  home_.write("policy.toml", "[filesystem]\ncache_dirs = [\"" + (home_ / "tools") + "\"]\n");
  for (const char* caches : {"private", "workspace"}) {
    const std::vector<std::string> words = {"run",
                                            "--policy",
                                            home_ / "policy.toml",
                                            "--caches",
                                            caches,
                                            "--hide",
                                            home_ / "tools/secret",
                                            "-c",
                                            "echo w > ~/tools/made; cat ~/tools/secret; cat ~/tools/host ~/tools/made"};
    const Outcome outcome = call(words);
    EXPECT_EQ(outcome.out, "x\nw\n") << caches << outcome;
  }
}

// The home as a cache would be shown around the rules for what is in it.
TEST_F(KeptCaches, AHomeIsNoCache) {
  home_.write(".npmrc", "token\n");
  hand_over();
  home_.write("policy.toml", "[filesystem]\ncache_dirs = [\"" + home_.path() + "\"]\n");
  for (const char* caches : {"private", "workspace"}) {
    const Outcome outcome = call({"run", "--policy", home_ / "policy.toml", "--caches", caches, "-c", "cat ~/.npmrc"});
    EXPECT_EQ(outcome.out, "") << caches << outcome;
    EXPECT_NE(outcome.err.find("denied"), std::string::npos) << caches << outcome;
  }
}

// A layer holds one cache: what was written there does not come back at a place that the policy names no more.
TEST_F(KeptCaches, ACacheThatIsNamedNoMoreIsTheHosts) {
  home_.write("tools/host", "x\n");
  hand_over();
  home_.write("ws/belljar.toml", "");
  const std::string policy = home_ / "policy.toml";
  home_.write("policy.toml", "[filesystem]\ncaches = \"workspace\"\ncache_dirs = [\"" + (home_ / "tools") + "\"]\n");
  EXPECT_EQ(call({"run", "--policy", policy, "-c", "echo planted > ~/tools/planted; ls ~/tools"}).out, "host\nplanted\n");
  EXPECT_EQ(shell("ls ~/tools").out, "host\n");
  EXPECT_EQ(call({"run", "--policy", policy, "-c", "ls ~/tools"}).out, "host\nplanted\n");
}

TEST_F(KeptCaches, ASecondSandboxAtOnceDiscards) {
  EXPECT_EQ(shell("echo first > ~/.cache/pip/first").exit_code, 0);
  Running one(command({"run", "--caches", "workspace", "-c", "echo ready; read line; cat ~/.cache/pip/first"}),
              {.cwd = home_ / "ws", .env = environment()});
  ASSERT_TRUE(one.wait_for_output("ready"));
  EXPECT_NE(clause().find(R"("enforced":"partial")"), std::string::npos) << clause();
  EXPECT_NE(clause().find("another sandbox of this workspace has them"), std::string::npos) << clause();
  EXPECT_EQ(shell("echo second > ~/.cache/pip/second; ls ~/.cache/pip").out, "host\nsecond\n");
  const Outcome in_use = call({"caches", "rm"});
  EXPECT_EQ(in_use.exit_code, 125);
  EXPECT_NE(in_use.err.find("a sandbox uses them"), std::string::npos) << in_use;
  one.close_input();
  EXPECT_NE(one.wait().out.find("first"), std::string::npos);
  EXPECT_EQ(shell("ls ~/.cache/pip").out, "first\nhost\n");
}

TEST_F(KeptCaches, WhereTheyCannotBeKeptTheReportSaysSo) {
  EXPECT_NE(clause({"--disk", "100M"}).find("limits.disk would not count them"), std::string::npos) << clause({"--disk", "100M"});
  const std::string refused = shell("true", "ws", {"--disk", "100M", "--require", "filesystem.caches"}).err;
  EXPECT_NE(refused.find("filesystem.caches"), std::string::npos) << refused;
  EXPECT_EQ(shell("true", "ws", {"--require", "filesystem.caches"}).exit_code, 0);
}

TEST_F(KeptCaches, TheyAreListedAndRemoved) {
  EXPECT_NE(call({"caches"}).err.find("no caches are kept"), std::string::npos);
  EXPECT_EQ(shell("head -c 3000000 /dev/zero > ~/.cache/pip/wheel; mkdir -m 0 ~/.cache/pip/closed").exit_code, 0);
  EXPECT_EQ(shell("true", "other").exit_code, 0);
  const Outcome listed = call({"caches"});
  EXPECT_NE(listed.out.find("kept"), std::string::npos) << listed;
  EXPECT_NE(listed.out.find(home_ / "ws\n"), std::string::npos) << listed;
  EXPECT_NE(call({"caches", "--json"}).out.find(R"("caches":[")" + cache("").substr(0, cache("").size() - 1)), std::string::npos)
      << call({"caches", "--json"});
  const Outcome removed = call({"caches", "rm"});
  EXPECT_EQ(removed.exit_code, 0) << removed;
  EXPECT_NE(removed.err.find("removed the caches of " + (home_ / "ws") + " ("), std::string::npos) << removed;
  EXPECT_EQ(shell("ls ~/.cache/pip").out, "host\n");
  EXPECT_EQ(call({"caches", "rm", "--gone"}).exit_code, 0);  // none is
  EXPECT_NE(call({"caches"}).out.find(home_ / "other"), std::string::npos);
  ASSERT_EQ(rmdir((home_ / "other").c_str()), 0);
  EXPECT_EQ(call({"caches", "rm", "--gone"}).exit_code, 0);
  EXPECT_EQ(call({"caches"}).out.find(home_ / "other"), std::string::npos) << call({"caches"});
  EXPECT_EQ(call({"caches", "rm", "--all"}).exit_code, 0);
  EXPECT_EQ(call({"caches"}).out, "");
  EXPECT_NE(rmdir((state() + "/belljar/caches").c_str()), -1);  // nothing is left in it
  EXPECT_EQ(call({"caches", "rm"}).exit_code, 125);
  EXPECT_EQ(call({"caches", "rm", "--all", "--gone"}).exit_code, 125);
}

// An inode number is given again once its directory is gone.
TEST_F(KeptCaches, AnotherWorkspaceOfTheSameInodeInheritsNothing) {
  EXPECT_EQ(shell("echo old > ~/.cache/pip/old").exit_code, 0);
  ASSERT_EQ(rename((home_ / "ws").c_str(), (home_ / "moved").c_str()), 0);
  EXPECT_EQ(shell("ls ~/.cache/pip", "moved").out, "host\n");
}

TEST_F(KeptCaches, NothingIsLeftBehindByOneThatIsKilled) {
  const Leftovers left;
  {
    Running one(command({"run", "--caches", "workspace", "-c", "echo x > ~/.cache/pip/half; echo ready; sleep 60"}),
                {.cwd = home_ / "ws", .env = environment()});
    ASSERT_TRUE(one.wait_for_output("ready"));
    one.send(SIGKILL);
    (void)one.wait();
  }
  EXPECT_EQ(left.report(), "");
  EXPECT_EQ(shell("cat ~/.cache/pip/half").out, "x\n");
}

// The profile for builds with warm caches: what the host has is written to, and a tool that was never used before works as well.
TEST_F(KeptCaches, TheProfileBuildWritesToTheHostsCachesAndWorksWithoutThem) {
  home_.write(".npm/_cacache/host", "the host's\n");
  hand_over();
  const std::string text =
      "echo pip >~/.cache/pip/new && echo npm >~/.npm/_cacache/new && mkdir -p ~/.npm/_logs ~/.cache/ccache/tmp "
      "~/.cache/go-build/00 "
      "~/.cache/other && touch ~/.npm/_logs/x ~/.cache/ccache/tmp/x ~/.cache/go-build/00/x ~/.cache/other/x && echo done";
  const Outcome built = call({"run", "--policy", "build", "-c", text});
  EXPECT_EQ(built.out, "done\n") << built;
  EXPECT_EQ(read_file(home_ / ".cache/pip/new"), "pip\n");
  EXPECT_EQ(read_file(home_ / ".npm/_cacache/new"), "npm\n");
  for (const char* name : {".npm/_logs", ".cache/ccache", ".cache/go-build", ".cache/other"})
    EXPECT_FALSE(exists(home_ / name)) << name;
  // The twin: without the profile nothing reaches the host.
  const Outcome layered = call({"run", "-c", "echo more >~/.cache/pip/new && echo more >~/.npm/_cacache/new && echo done"});
  EXPECT_EQ(layered.out, "done\n") << layered;
  EXPECT_EQ(read_file(home_ / ".cache/pip/new"), "pip\n");
  EXPECT_EQ(read_file(home_ / ".npm/_cacache/new"), "npm\n");
}

}  // namespace
}  // namespace belljar::test
