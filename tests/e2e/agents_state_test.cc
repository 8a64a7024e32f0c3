// The profiles of agents: what a command plants in an agent's state directory is there for the rest of the run, and neither the
// next start nor a session that runs outside meanwhile sees it; what the profile names persists. Tried with the programs themselves
// by hand; here stand-ins write what they write.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"
#include "support_run.h"

namespace belljar::test {
namespace {

struct Agent {
  std::string profile;
  std::vector<std::string> plants;     // of each the next start, or a live session, ran or obeyed what stands in it
  std::vector<std::string> persists;   // present before; the run appends to them
  std::vector<std::string> may_begin;  // files of the run's own in a directory that persists
};

std::vector<Agent> agents() {
  return {
      {"agent-claude",
       {".claude/.config.json", ".claude/remote-settings.json", ".claude/settings.json", ".claude/settings.local.json",
        ".claude/session-env/1/sessionstart-hook-0.sh", ".claude/shell-snapshots/snapshot-bash-1.sh", ".claude/rules/r.md",
        ".claude/CLAUDE.md", ".claude/hooks/h", ".claude/skills/s/SKILL.md", ".claude/plugins/installed_plugins.json",
        ".claude/backups/.claude.json.backup.1", ".claude/agents/a.md", ".claude/commands/c.md"},
       {".claude/history.jsonl", ".claude/.credentials.json", ".claude/projects/-ws/old.jsonl"},
       {".claude/projects/-ws/new.jsonl", ".claude/projects/-other/new.jsonl"}},
      {"agent-codex",
       {".codex/environments.toml", ".codex/config.toml", ".codex/shell_snapshots/1.sh", ".codex/hooks.json", ".codex/AGENTS.md",
        ".codex/rules/default.rules", ".codex/skills/s/SKILL.md", ".codex/memories/m.md", ".codex/models_cache.json"},
       {".codex/history.jsonl", ".codex/auth.json", ".codex/sessions/2026/old.jsonl", ".codex/archived_sessions/old.jsonl"},
       {".codex/sessions/2027/01/new.jsonl"}},
      {"agent-gemini",
       {".gemini/settings.json", ".gemini/GEMINI.md", ".gemini/extensions/e/gemini-extension.json", ".gemini/tmp/bin/rg",
        ".gemini/tmp/p/memory/m.md", ".gemini/history/p/config", ".gemini/commands/c.toml", ".gemini/policies/p.toml"},
       {".gemini/oauth_creds.json"},
       {}},
      {"agent-opencode",
       {".config/opencode/opencode.json", ".config/opencode/plugin/x.js", ".config/opencode/AGENTS.md",
        ".local/share/opencode/bin/rg", ".local/state/opencode/kv.json", ".cache/opencode/bin/x"},
       {},
       {}}};
}

class AgentsState : public Run {
 protected:
  void SetUp() override {
    Run::SetUp();
    hand_over();
  }
  void hand_over() const {
    if (is_root()) home_.give_to(user_uid(), user_gid());
  }
  Outcome under(const std::string& profile, std::vector<std::string> args) const {
    args.insert(args.begin(), {"--policy", profile});
    return run_in(std::move(args), {.stdin_is = Input::kNull, .env = environment()});
  }
  std::map<std::string, std::string> environment() const { return {{"HOME", home_.path()}, {"XDG_STATE_HOME", state_.path()}}; }
  void make_persisting(const Agent& agent) const {
    for (const std::string& name : agent.persists) home_.write(name, "old\n");
    hand_over();
  }
  // Writes each, and reads it again: the number of those that are there.
  static std::string write_all(const std::vector<std::string>& names, const std::string& how = ">>") {
    std::string text = "n=0; cd ~;";
    for (const std::string& name : names) {
      text += " mkdir -p \"$(dirname " + name + ")\" && echo plant " + how + " " + name + " && grep -q plant " + name +
              " && n=$((n + 1));";
    }
    return text + " echo $n";
  }
  static std::string count(const std::vector<std::string>& names) { return std::to_string(names.size()) + "\n"; }

  TempDir home_{"/var/tmp"};
  TempDir state_{place_of_programs()};
};

TEST_F(AgentsState, APlantIsGoneWithTheRunAndWhatIsNamedPersists) {
  for (const Agent& agent : agents()) {
    make_persisting(agent);
    const auto before = describe_tree(home_.path());
    EXPECT_EQ(under(agent.profile, {"--require", "filesystem.scratch", "-c", write_all(agent.plants)}).out, count(agent.plants))
        << agent.profile;
    EXPECT_EQ(describe_tree(home_.path()), before) << agent.profile;
    EXPECT_EQ(under(agent.profile, {"-c", write_all(agent.persists)}).out, count(agent.persists)) << agent.profile;
    EXPECT_EQ(under(agent.profile, {"-c", write_all(agent.may_begin)}).out, count(agent.may_begin)) << agent.profile;
    for (const std::string& name : agent.persists) EXPECT_EQ(read_file(home_ / name), "old\nplant\n") << name;
    for (const std::string& name : agent.may_begin) EXPECT_EQ(read_file(home_ / name), "plant\n") << name;
  }
}

// What stands there already is changed, removed, replaced and moved away inside, and stays as it is outside.
TEST_F(AgentsState, WhatStandsThereStaysAsItIs) {
  for (const Agent& agent : agents()) {
    make_persisting(agent);
    for (const std::string& name : agent.plants) home_.write(name, "the user's\n");
    hand_over();
    const auto before = describe_tree(home_.path());
    EXPECT_EQ(under(agent.profile, {"-c", write_all(agent.plants, ">")}).out, count(agent.plants)) << agent.profile;
    std::string text = "cd ~;";
    for (const std::string& name : agent.plants)
      text += " cat " + name + "; echo x > " + name + ".tmp && mv " + name + ".tmp " + name + "; rm " + name + ";";
    std::string seen;
    for (std::size_t i = 0; i < agent.plants.size(); ++i) seen += "the user's\n";
    const Outcome outcome = under(agent.profile, {"-c", text});
    EXPECT_EQ(outcome.out, seen) << agent.profile << outcome;
    EXPECT_EQ(describe_tree(home_.path()), before) << agent.profile;
  }
}

// Directories that persist are made; nothing else is there afterwards.
TEST_F(AgentsState, AHomeWithoutStateGetsWhatPersistsAlone) {
  for (const Agent& agent : agents()) {
    EXPECT_EQ(under(agent.profile, {"-c", write_all(agent.plants)}).out, count(agent.plants)) << agent.profile;
    for (const std::string& name : agent.plants) EXPECT_FALSE(exists(home_ / name)) << name;
    EXPECT_EQ(under(agent.profile, {"-c", write_all(agent.may_begin)}).out, count(agent.may_begin)) << agent.profile;
    for (const std::string& name : agent.may_begin) EXPECT_EQ(read_file(home_ / name), "plant\n") << name;
  }
  EXPECT_EQ(std::filesystem::status(home_ / ".claude/projects").permissions(), std::filesystem::perms::owner_all);
  EXPECT_FALSE(exists(home_ / ".gemini"));
}

// A link that an earlier command may have left is not gone through.
TEST_F(AgentsState, NoStateIsMadeThroughALink) {
  const TempDir elsewhere{"/var/tmp"};
  std::filesystem::create_symlink(elsewhere.path(), home_ / ".claude");
  const auto before = describe_tree(elsewhere.path());
  EXPECT_NE(under("agent-claude", {"-c", "true"}).err.find("cannot be made"), std::string::npos);
  EXPECT_EQ(describe_tree(elsewhere.path()), before);
}

// The next command of the workspace finds what is in its caches (KeptCaches.*), and no plant.
TEST_F(AgentsState, KeptCachesKeepNoPlant) {
  for (const Agent& agent : agents()) {
    make_persisting(agent);
    const std::string name = agent.plants.front();
    EXPECT_EQ(under(agent.profile, {"--caches", "workspace", "-c", write_all({name})}).out, "1\n");
    const std::string laid = name == ".claude/.config.json" ? "{}\n" : "";  // AgentsAnswers.*
    EXPECT_EQ(under(agent.profile, {"--caches", "workspace", "-c", "cat ~/" + name}).out, laid) << agent.profile;
  }
}

TEST_F(AgentsState, TheMemoryAmongTheTranscriptsIsReadOnly) {
  home_.write(".claude/projects/-ws/memory/MEMORY.md", "the user's\n");
  hand_over();
  const Outcome outcome =
      under("agent-claude", {"-c",
                             "cd ~/.claude/projects; cat -- */memory/MEMORY.md; echo x > ./-ws/memory/MEMORY.md; "
                             "echo x > ./-ws/memory/new; mkdir -p ./-new/memory && echo x > ./-new/memory/MEMORY.md;"
                             "mkdir ./m; echo x > ./m/MEMORY.md; mv ./m ./-new/memory; mv ./-ws/memory ./-ws/gone;"
                             "echo t > ./-new/t.jsonl && echo ran"});
  EXPECT_EQ(outcome.out, "the user's\nran\n") << outcome;
  EXPECT_EQ(read_file(home_ / ".claude/projects/-ws/memory/MEMORY.md"), "the user's\n");
  EXPECT_FALSE(exists(home_ / ".claude/projects/-ws/memory/new"));
  EXPECT_FALSE(exists(home_ / ".claude/projects/-new/memory/MEMORY.md"));
  EXPECT_EQ(read_file(home_ / ".claude/projects/-new/t.jsonl"), "t\n") << "the twin";
}

// Claude Code tries to make such a directory in each run.
TEST_F(AgentsState, WhatItsProfileRefusesOnPurposeIsNotBlamedForAFailure) {
  make_persisting(agents()[0]);
  const RunOptions options{.cwd = workspace_.path(), .env = environment()};
  const Outcome failed = under("agent-claude", {"-c", "mkdir -p ~/.claude/projects/-ws/memory 2>&1; exit 3"});
  EXPECT_EQ(failed.exit_code, 3) << failed;
  EXPECT_EQ(failed.err.find("refused"), std::string::npos) << failed;
  const Outcome told = belljar({"explain", "last"}, options);
  EXPECT_NE(told.out.find("\nintended by the profile agent-claude, so seldom why a run failed:\n   `mkdir`"), std::string::npos)
      << told;
  EXPECT_EQ(told.out.find("1. "), std::string::npos) << told;
  // The twin: what somebody may want to permit is told, and that alone is counted.
  const Outcome both = under("agent-claude", {"-c", "mkdir -p ~/.claude/projects/-ws/memory; echo x > /etc/belljar-test; exit 3"});
  EXPECT_NE(both.err.find("1 act was refused (create `/etc/belljar-test`); belljar explain last"), std::string::npos) << both;
}

// Claude Code's ~/.claude.json names MCP servers, and is replaced by rename.
TEST_F(AgentsState, TheFileBesideIsReadOnly) {
  home_.write(".claude.json", "{}\n");
  make_persisting(agents()[0]);
  const auto before = describe_tree(home_.path());
  under("agent-claude", {"-c", "cd ~; echo x > .claude.json; echo x > .claude.json.tmp.1 && mv .claude.json.tmp.1 .claude.json"});
  EXPECT_EQ(describe_tree(home_.path()), before);
}

// An agent that is started in the home: what else lies there is the workspace.
TEST_F(AgentsState, AHomeThatIsTheWorkspaceKeepsNoPlant) {
  const std::string lift = "[filesystem]\nentries = [{ path = \"~/.local/state/opencode\", access = \"write\" }]\n";
  for (const std::string& project : {std::string(), lift}) {
    for (const Agent& agent : agents()) {
      make_persisting(agent);
      for (const std::string& name : agent.plants) home_.write(name, "the user's\n");
      if (!project.empty()) home_.write(".belljar/policy.toml", project);
      hand_over();
      const Outcome outcome = belljar({"run", "--policy", agent.profile, "--workspace", home_.path(), "--workspace", home_.path(),
                                       "-c", write_all(agent.plants, ">") + "; echo mine > mine"},
                                      {.stdin_is = Input::kNull, .cwd = home_.path(), .env = environment()});
      EXPECT_EQ(outcome.out, count(agent.plants)) << agent.profile << outcome;
      for (const std::string& name : agent.plants) EXPECT_EQ(read_file(home_ / name), "the user's\n") << name;
      EXPECT_EQ(read_file(home_ / "mine"), "mine\n") << "the twin";
    }
  }
}

// By way of a directory above the layer that is moved aside, or of a link at a name of the profile's pattern.
TEST_F(AgentsState, NothingIsPlantedAroundTheLayer) {
  const auto at_home = [&](const std::string& profile, const std::string& text) {
    return belljar({"run", "--policy", profile, "--workspace", home_.path(), "--workspace", home_.path(), "-c", text},
                   {.stdin_is = Input::kNull, .cwd = home_.path(), .env = environment()});
  };
  home_.write(".config/opencode/opencode.json", "the user's\n");
  home_.make_dir(".claude/projects");
  hand_over();
  EXPECT_NE(
      at_home("agent-opencode", "mv .config .aside && mkdir -p .config/opencode && echo planted > .config/opencode/opencode.json")
          .exit_code,
      0);
  EXPECT_EQ(read_file(home_ / ".config/opencode/opencode.json"), "the user's\n");
  EXPECT_EQ(at_home("agent-opencode", "mkdir other && mv other moved").exit_code, 0) << "the twin";
  at_home("agent-claude",
          "mkdir -p p/memory; echo planted > p/memory/MEMORY.md; cd .claude/projects; ln -s ../../p one; ln -s ../../p ../../l; "
          "mv ../../l two; mkdir three; echo mine > three/new.jsonl");
  EXPECT_FALSE(exists(home_ / ".claude/projects/one"));
  EXPECT_FALSE(exists(home_ / ".claude/projects/two"));
  EXPECT_TRUE(exists(home_ / ".claude/projects/three/new.jsonl")) << "the twin";
}

TEST_F(AgentsState, AHomeThatIsTheWorkspaceGetsNoStateFromInside) {
  for (const Agent& agent : agents()) {
    belljar(
        {"run", "--policy", agent.profile, "--workspace", home_.path(), "--workspace", home_.path(), "-c", write_all(agent.plants)},
        {.stdin_is = Input::kNull, .cwd = home_.path(), .env = environment()});
    for (const std::string& name : agent.plants) EXPECT_FALSE(exists(home_ / name)) << name;
  }
}

TEST_F(AgentsState, WithoutMountsNothingIsWrittenButWhatPersists) {
  BELLJAR_NEEDS(landlock_abi_at_least(1));
  for (const Agent& agent : agents()) {
    make_persisting(agent);
    for (const std::string& name : agent.plants) home_.write(name, "the user's\n");
    hand_over();
    const auto in_tier = [&](const std::string& text) {
      return under(agent.profile, {"--backend", "landlock", "--net", "none", "-c", text});
    };
    EXPECT_EQ(in_tier(write_all(agent.plants, ">")).out, "0\n") << agent.profile;
    for (const std::string& name : agent.plants) EXPECT_EQ(read_file(home_ / name), "the user's\n") << name;
    EXPECT_EQ(in_tier(write_all(agent.persists)).out, count(agent.persists)) << agent.profile;
    const std::vector<std::string> at_home = {"--backend",   "landlock",   "--net",       "none",
                                              "--workspace", home_.path(), "--workspace", home_.path()};
    const auto in_home = [&](const std::string& text) {
      std::vector<std::string> args = at_home;
      args.insert(args.end(), {"-c", text});
      return under(agent.profile, args);
    };
    EXPECT_EQ(in_home(write_all(agent.plants, ">")).out, "0\n") << agent.profile;
    for (const std::string& name : agent.plants) EXPECT_EQ(read_file(home_ / name), "the user's\n") << name;
    EXPECT_EQ(in_home(write_all({"mine"})).out, "1\n") << "the twin";
  }
}

// opencode's snapshots: the repository lies in the layer, its work tree is the workspace.
TEST_F(AgentsState, ARepositoryInTheLayerHasTheWorkspaceAsItsWorkTree) {
  const Outcome outcome =
      under("agent-opencode",
            {"-c",
             "mkdir -p ~/.local/share/opencode/snapshot; echo x > f; export GIT_DIR=$HOME/.local/share/opencode/snapshot/p "
             "GIT_WORK_TREE=$PWD; git init -q 2>&1 && git add f && git write-tree && "
             "git config core.worktree"});
  EXPECT_EQ(outcome.out, "a1dffc7a64c0b2d395484bf452e9aeb1da3a18f2\n" + workspace_.path() + "\n") << outcome;
  EXPECT_FALSE(exists(home_ / ".local/share/opencode/snapshot"));
}

// The user's own word for the very directory.
TEST_F(AgentsState, AGrantOfTheDirectoryStandsInsteadOfTheLayer) {
  make_persisting(agents()[0]);
  EXPECT_EQ(under("agent-claude", {"--write", home_ / ".claude", "-c", write_all({".claude/settings.json"})}).out, "1\n");
  EXPECT_EQ(read_file(home_ / ".claude/settings.json"), "plant\n");
  EXPECT_EQ(under("agent-claude", {"--read", home_ / ".claude", "-c", write_all({".claude/settings.json"})}).out, "0\n");
}

TEST_F(AgentsState, WhatExplainAdvisesIsTheProfile) {
  for (const Agent& agent : agents()) {
    make_persisting(agent);
    const std::string name = agent.plants.front();
    home_.write(name, "the user's\n");
    hand_over();
    const std::string act = write_all({name}, ">");
    EXPECT_EQ(run_in({"-c", act}, {.stdin_is = Input::kNull, .env = environment()}).out, "0\n");
    const std::string advice = belljar({"explain"}, {.cwd = workspace_.path(), .env = environment()}).out;
    EXPECT_NE(advice.find("--policy " + agent.profile), std::string::npos) << advice;
    EXPECT_EQ(advice.find("--write"), std::string::npos) << advice;
    EXPECT_EQ(under(agent.profile, {"-c", act}).out, "1\n");
    EXPECT_EQ(read_file(home_ / name), "the user's\n");
    const std::string path = belljar({"policy", "explain", "--policy", agent.profile, "--path", home_ / name},
                                     {.cwd = workspace_.path(), .env = environment()})
                                 .out;
    EXPECT_NE(path.find("(filesystem.scratch)"), std::string::npos) << path;
  }
}

}  // namespace
}  // namespace belljar::test
