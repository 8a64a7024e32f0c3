// Keys and variables as the documents write them (issue 21, A3 and A4): honoured by every program alike, or refused by name.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "e2e/support_run.h"
#include "support/as_user.h"
#include "support/built.h"
#include "support/has.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

constexpr const char* kBegin =
    R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}})"
    "\n";
constexpr const char* kNoEngine = "unix:///nonexistent/sock";

class DocumentKeys : public Run {
 protected:
  std::string policy(const std::string& text) const { return place_.write("p.toml", text); }
  Outcome with(const std::string& text, const std::string& shell) const { return run_in({"--policy", policy(text), "-c", shell}); }
  // What each program says to `words` that it does not start with.
  std::vector<Outcome> everywhere(const std::vector<std::string>& words,
                                  const std::map<std::string, std::string>& variables = {}) const {
    std::map<std::string, std::string> env = variables;
    env.insert({{"HOME", home_.path()}, {"DOCKER_HOST", kNoEngine}});
    std::vector<Outcome> all;
    const auto ask = [&](std::vector<std::string> args, const std::vector<std::string>& behind, const std::string& input) {
      args.insert(args.end(), words.begin(), words.end());
      args.insert(args.end(), behind.begin(), behind.end());
      all.push_back(belljar(std::move(args), {.input = input, .cwd = workspace_.path(), .env = env}));
    };
    ask({"run"}, {"--", "true"}, "");
    ask({"create"}, {}, "");
    ask({"mcp", "--workspace", workspace_.path()}, {},
        std::string(kBegin) +
            R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash","arguments":{"command":"true"}}})" + "\n");
    ask({"agent", "--provider", "scripted", "--script", place_.write("script.json", R"([{"text": "done"}])")}, {"go"}, "");
    return all;
  }
  TempDir place_, home_;
};

TEST_F(DocumentKeys, WhatCannotBeHeldIsRefusedByNameEverywhere) {
  for (const auto& [text, says] : {std::pair<std::string, std::string>{"alert_cpu_threshold = 80.0\n", "EventOptions::alerts"},
                                   {"alert_webhook = \"https://alerts.example/webhook\"\n", "belljar/webhook.h"},
                                   {"webhook = \"https://alerts.example/webhook\"\n", "belljar/webhook.h"},
                                   {"image_pull_secrets = [\"my-registry-secret\"]\n", "--registry-user NAME"},
                                   {"restore_on_start = true\n", "restores nothing"},
                                   {"auto_clean_temp = false\n", "always end with the sandbox"},
                                   {"use_docker = false\nimage = \"golang:1.21\"\n", "only a container has an image"},
                                   {"image_pull_policy = \"Always\"\n", "only a container has an image"}}) {
    for (const Outcome& outcome : everywhere({"--policy", policy(text)})) {
      EXPECT_EQ(outcome.exit_code, 125) << text << outcome;
      EXPECT_TRUE(has(outcome.err, says)) << text << outcome;
    }
  }
}

TEST_F(DocumentKeys, AContainerIsMeantByDockerByAnImageAndByTheVariable) {
  const std::string docker = "use_docker = true\nimage = \"golang:1.21\"\nmemory = \"512m\"\ncpu = \"1.0\"\n";
  const auto check = [](const std::vector<Outcome>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string_view says =
          i == 1 ? "a sandbox of backend `container` cannot be kept" : "cannot reach the container engine";
      EXPECT_TRUE(has(all[i].err + all[i].out, says)) << i << all[i];
    }
  };
  check(everywhere({"--policy", policy(docker)}));
  check(everywhere({"--policy", policy("image = \"golang:1.21\"\n")}));
  check(everywhere({}, {{"SANDBOX_COMMANDS", "true"}}));
  const Outcome twin = run_in({"--backend", "native", "-c", "echo ran"},
                              {.stdin_is = Input::kNull, .env = {{"SANDBOX_COMMANDS", "true"}, {"DOCKER_HOST", kNoEngine}}});
  EXPECT_EQ(twin.out, "ran\n") << "an option comes before the variable" << twin;
}

TEST_F(DocumentKeys, TheVariableOfTheStageIsRead) {
  for (const auto& [stage, says] : {std::pair<std::string, std::string>{"development", "BELLJAR_ENV names the backend local"},
                                    {"test", "BELLJAR_ENV names the backend mock"},
                                    {"staging", "BELLJAR_ENV is `staging`"}}) {
    for (const Outcome& outcome : everywhere({}, {{"BELLJAR_ENV", stage}})) {
      EXPECT_EQ(outcome.exit_code, 125) << stage << outcome;
      EXPECT_TRUE(has(outcome.err, says)) << stage << outcome;
    }
    const Outcome named = run_in({"--backend", "native", "--", "true"}, {.env = {{"BELLJAR_ENV", stage}}});
    EXPECT_EQ(named.exit_code, stage == "staging" ? 125 : 0) << "an option comes before the variable" << named;
  }
  EXPECT_EQ(run_in({"--", "true"}, {.env = {{"BELLJAR_ENV", "production"}}}).exit_code, 0);
}

TEST_F(DocumentKeys, WhatIsCleanedLeavesNothingInTheTemporaryDirectory) {
  const TempDir temp(place_of_programs());
  temp.write("of-the-host", "");
  if (is_root()) temp.give_to(user_uid(), user_gid());
  const std::string named = "temp_dir = \"" + temp.path() + "\"\n";
  const std::string text = "echo $TMPDIR; ls $TMPDIR; touch $TMPDIR/left";
  const Leftovers left({workspace_.path(), temp.path()});
  const Outcome cleaned = with(named + "auto_clean_temp = true\n", text);
  EXPECT_EQ(cleaned.out, temp.path() + "\n") << "empty at the start" << cleaned;
  EXPECT_FALSE(exists(temp / "left"));
  EXPECT_EQ(left.report(), "");
  EXPECT_EQ(with(named, text).out, temp.path() + "\nof-the-host\n") << "the twin";
  EXPECT_TRUE(exists(temp / "left"));
  const Outcome landlock = with("backend = \"landlock\"\nauto_clean_temp = true\n" + named, text);
  EXPECT_TRUE(has(landlock.err, "cannot enforce filesystem.clean_temp_dir")) << landlock;
}

TEST_F(DocumentKeys, ATemporaryDirectoryBelowThePrivateOneIsMade) {
  const Outcome outcome =
      with("temp_dir = \"/tmp/agent-of-the-document\"\nauto_clean_temp = true\n", "echo $TMPDIR; touch $TMPDIR/x && ls $TMPDIR");
  EXPECT_EQ(outcome.out, "/tmp/agent-of-the-document\nx\n") << outcome;
  EXPECT_FALSE(exists("/tmp/agent-of-the-document"));
  EXPECT_TRUE(has(with("temp_dir = \"/srv/not/there\"\n", "true").err, "it does not exist"));
}

TEST_F(DocumentKeys, WhatPersistsIsFoundAgain) {
  const TempDir state(place_of_programs());
  if (is_root()) state.give_to(user_uid(), user_gid());
  const std::string text = "persistent_volume = \"" + state.path() + "\"\nrestore_on_start = true\n";
  EXPECT_EQ(with(text, "echo kept >" + (state / "f")).exit_code, 0);
  EXPECT_EQ(with(text, "cat " + (state / "f")).out, "kept\n");
  EXPECT_NE(shell("echo more >>" + (state / "f")).exit_code, 0) << "the twin: without the key it is read-only";
}

TEST_F(DocumentKeys, TheTargetOfAVolumeIsMade) {
  const TempDir data(place_of_programs());
  data.write("f", "of the volume\n");
  if (is_root()) data.give_to(user_uid(), user_gid());
  const auto volume = [&](const std::string& target) {
    return "volumes = [{ source = \"" + data.path() + "\", target = \"" + target + "\", readonly = false }]\n";
  };
  for (const std::string target : {"sub/data", "/workspace-of-the-document/data", "/usr/share/not-there/data"}) {
    const Outcome outcome = with(volume(target), "cat " + target + "/f; echo inside >" + target + "/g; touch " + target + "/../no");
    EXPECT_TRUE(has(outcome.out, "of the volume\n")) << target << outcome;
    EXPECT_EQ(read_file(data / "g"), "inside\n") << target;
    EXPECT_EQ(outcome.exit_code == 0, target == "sub/data") << "only the workspace's own is writable beside it" << outcome;
    EXPECT_FALSE(target.starts_with('/') && exists(target.substr(0, target.rfind('/')))) << "the host has no stub of it";
  }
  EXPECT_TRUE(exists(workspace_ / "sub/data"));
  EXPECT_FALSE(exists(workspace_ / "sub/data/f")) << "a mount point, and no more";
}

// A root of the sandbox's own shows what the host's does, and hides what is hidden.
TEST_F(DocumentKeys, ARootWithOneMoreNameShowsAndHidesTheSame) {
  const TempDir data(place_of_programs());
  home_.write(".ssh/id_rsa", "secret");
  const std::string text = "volumes = [{ source = \"" + data.path() + "\", target = \"/workspace-of-the-document/data\" }]\n";
  const std::map<std::string, std::string> env{{"HOME", home_.path()}};
  const auto both = [&](const std::string& shell) {
    const Outcome bare = run_in({"-c", shell}, {.env = env});
    const Outcome own = run_in({"--policy", policy(text), "-c", shell}, {.env = env});
    return std::pair(bare, own);
  };
  const auto [names, more] = both("ls / | grep -v workspace-of-the-document");
  EXPECT_EQ(names.out, more.out);
  for (const char* shell :
       {"cat ~/.ssh/id_rsa", "touch /x", "touch /etc/x", "touch /usr/x", "cat /etc/shadow", "ls /proc/1/root/", "echo x >/sys/x"}) {
    const auto [bare, own] = both(shell);
    EXPECT_EQ(bare.exit_code, own.exit_code) << shell << bare << own;
    EXPECT_NE(own.exit_code, 0) << shell << own;
  }
  EXPECT_EQ(both("touch f && cat f && echo $HOME && ls -d /tmp /var/tmp /dev/null /proc/self").second.exit_code, 0);
}

// It is named on the command line, and lies where commands write: taken for what narrows, by `check` and `run` alike.
TEST_F(DocumentKeys, APolicyInTheWorkspaceIsCheckedAsItIsTaken) {
  const std::string widens = "[filesystem]\nwritable_roots = [\"" + place_.path() + "\"]\n";
  workspace_.write("p.toml", widens);
  const RunOptions here{.stdin_is = Input::kNull, .cwd = workspace_.path(), .env = {{"HOME", home_.path()}}};
  const Outcome checked = belljar({"policy", "check", "p.toml"}, here);
  const Outcome taken = belljar({"run", "--policy", "p.toml", "--", "true"}, here);
  for (const Outcome& outcome : {checked, taken}) {
    EXPECT_EQ(outcome.exit_code, 125) << outcome;
    EXPECT_TRUE(has(outcome.err, "policy p.toml:2: a policy in the workspace may not widen `filesystem.writable_roots`"))
        << outcome;
    EXPECT_TRUE(has(outcome.err, "move it to ~/.config/belljar")) << outcome;
  }
  home_.write(".config/belljar/p.toml", widens);
  const std::string moved = home_ / ".config/belljar/p.toml";
  EXPECT_EQ(belljar({"policy", "check", moved}, here).exit_code, 0) << "the advice works";
  EXPECT_EQ(belljar({"run", "--policy", moved, "--", "true"}, here).exit_code, 0);
  EXPECT_NE(belljar({"run", "--policy", moved, "-c", "echo >>" + moved}, here).exit_code, 0) << "and stays what it is";
  workspace_.write("n.toml", "[limits]\npids = 100\n");
  EXPECT_EQ(belljar({"policy", "check", "n.toml"}, here).exit_code, 0) << "the twin narrows";
  EXPECT_EQ(belljar({"run", "--policy", "n.toml", "--", "true"}, here).exit_code, 0);
  // Without it the next run would be wider.
  for (const std::string backend : {"native", "landlock"}) {
    for (const char* change : {"echo '# gone' >n.toml", "rm -f n.toml", "mv n.toml m.toml", "echo >new; mv new n.toml"}) {
      const Outcome kept = belljar({"run", "--backend", backend, "--policy", "./n.toml", "-c", change}, here);
      EXPECT_NE(kept.exit_code, 0) << backend << " " << change << kept;
      EXPECT_EQ(read_file(workspace_ / "n.toml"), "[limits]\npids = 100\n") << backend << " " << change;
    }
  }
}

// One import, one file, which both programs read.
TEST_F(DocumentKeys, WhatIsImportedIsAskedByMcpAndAgent) {
  constexpr const char* kScript =
      R"([{"calls": [{"name": "write_file", "arguments": {"path": "x", "content": "y"}}]}, {"text": "tried"}])";
  const std::string call =
      std::string(kBegin) +
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_file","arguments":{"path":"y","content":"y"}}})" +
      "\n";
  const RunOptions here{.input = call, .cwd = workspace_.path(), .env = {{"HOME", home_.path()}}};
  for (const auto& [mode, may_write] : {std::pair<std::string, bool>{"plan", false}, {"autoEdit", true}}) {
    const Outcome imported = belljar(
        {"policy", "import", place_.write("settings.json", R"({"sandbox": {"enabled": true}, "permissionMode": ")" + mode + "\"}")},
        here);
    ASSERT_EQ(imported.exit_code, 0) << imported;
    const std::string file = policy(imported.out);
    const Outcome agent =
        belljar({"agent", "--provider", "scripted", "--script", place_.write("s.json", kScript), "--policy", file, "go"}, here);
    EXPECT_EQ(exists(workspace_ / "x"), may_write) << mode << agent;
    const Outcome mcp = belljar({"mcp", "--workspace", workspace_.path(), "--policy", file}, here);
    EXPECT_EQ(exists(workspace_ / "y"), may_write) << mode << mcp;
  }
  const Outcome plan = with("permission.mode = \"plan\"\n", "true");
  EXPECT_EQ(plan.exit_code, 125) << plan;
  EXPECT_TRUE(has(plan.err, "--policy read-only")) << plan;
}

TEST_F(DocumentKeys, NothingRunsOutsideWhoeverAsks) {
  for (const char* line : {"excluded_commands = [\"docker\"]\n", "allow_unsandboxed_commands = true\n"}) {
    const std::string rules = place_.write("rules.toml", std::string("[permission]\n") + line);
    const auto all = everywhere({"--rules", rules});
    for (const std::size_t i : {2UL, 3UL}) {
      EXPECT_EQ(all[i].exit_code, 125) << line << all[i];
      EXPECT_TRUE(has(all[i].err, "nothing that an agent calls runs outside of the sandbox")) << line << all[i];
    }
  }
}

}  // namespace
}  // namespace belljar::test
