// What an agent changed of its own state and was dropped: told, shown, and applied by hand.
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

class AgentsDropped : public Run {
 protected:
  void SetUp() override {
    Run::SetUp();
    home_.write(".claude/settings.json", "{\n  \"a\": 1\n}\n");
    home_.write(".claude/CLAUDE.md", "the user's\n");
    if (is_root()) home_.give_to(user_uid(), user_gid());
  }
  std::map<std::string, std::string> environment() const { return {{"HOME", home_.path()}, {"XDG_STATE_HOME", state_.path()}}; }
  Outcome claude(const std::string& text, std::vector<std::string> more = {}) const {
    std::vector<std::string> args = {"--policy", "agent-claude", "-c", "cd ~/.claude; " + text};
    args.insert(args.begin(), more.begin(), more.end());
    return run_in(args, {.stdin_is = Input::kNull, .env = environment()});
  }
  Outcome agents(std::vector<std::string> args) const {
    args.insert(args.begin(), "agents");
    return belljar(args, {.stdin_is = Input::kNull, .env = environment()});
  }
  std::string diff() const { return agents({"diff", "claude"}).out; }
  std::string at_home(const std::string& name) const { return home_ / (".claude/" + name); }

  TempDir home_{"/var/tmp"};
  TempDir state_{"/var/tmp"};
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(AgentsDropped, AChangeIsToldOnceAndShown) {
  const Outcome outcome = claude("echo '{}' > settings.json; mkdir hooks; echo evil > hooks/h; rm CLAUDE.md");
  EXPECT_TRUE(has(outcome.err, "belljar: 3 files of claude's own state were changed, and dropped: belljar agents diff claude\n"))
      << outcome;
  const std::string shown = diff();
  EXPECT_TRUE(has(shown, "M " + at_home("settings.json") + "\n")) << shown;
  EXPECT_TRUE(has(shown, "\n-  \"a\": 1\n") && has(shown, "\n+{}\n")) << shown;
  EXPECT_TRUE(has(shown, "A " + at_home("hooks/h") + "\n")) << shown;
  EXPECT_TRUE(has(shown, "D " + at_home("CLAUDE.md") + "\n")) << shown;
  EXPECT_EQ(read_file(at_home("CLAUDE.md")), "the user's\n");
  EXPECT_EQ(agents({"diff", "claude", "--json"}).out.substr(0, 9), "{\"path\":\"");
}

TEST_F(AgentsDropped, WhatOnlyServedTheRunOrDidNotChangeIsNotTold) {
  const Outcome outcome =
      claude("mkdir shell-snapshots; echo x > shell-snapshots/s.sh; touch settings.json; echo t > history.jsonl; echo ran");
  EXPECT_EQ(outcome.out, "ran\n");
  EXPECT_FALSE(has(outcome.err, "dropped")) << outcome;
  EXPECT_EQ(diff(), "");
}

TEST_F(AgentsDropped, WhatWasRemovedWithItsDirectoryIsToldByName) {
  home_.write(".claude/skills/s/SKILL.md", "skill\n");
  home_.write(".claude/agents/a.md", "agent\n");
  if (is_root()) home_.give_to(user_uid(), user_gid());
  claude("rm -rf skills agents; mkdir skills; echo new > skills/x");
  const std::string shown = diff();
  EXPECT_TRUE(has(shown, "D " + at_home("skills/s/SKILL.md") + "\n")) << shown;
  EXPECT_TRUE(has(shown, "A " + at_home("skills/x") + "\n")) << shown;
  EXPECT_TRUE(has(shown, "D " + at_home("agents/a.md") + "\n")) << shown;
  EXPECT_EQ(agents({"keep", "claude", "agents/a.md", "--yes"}).exit_code, 0);
  EXPECT_FALSE(exists(at_home("agents/a.md")));
  EXPECT_TRUE(exists(at_home("skills/s/SKILL.md"))) << "not asked for";
}

TEST_F(AgentsDropped, AConfigThatSetsNothingIsNotTold) {
  const Outcome empty = claude("printf '{\n  \"$schema\": \"https://x.test/c.json\"\n}' > c.json; echo ran");
  EXPECT_TRUE(has(empty.out, "ran") && !has(empty.err, "dropped")) << empty;
  const Outcome sets = claude("printf '{\"$schema\": \"https://x.test/c.json\", \"a\": \"b\"}' > c.json");
  EXPECT_TRUE(has(sets.err, "one file of claude's own state was changed")) << sets;
}

TEST_F(AgentsDropped, ANewFileOfSettingsIsToldThoughItHoldsNone) {
  std::filesystem::remove(at_home("settings.json"));
  claude("echo '{}' > settings.json");
  EXPECT_EQ(diff(), "A " + at_home("settings.json") + "\n@@ -0,0 +1 @@\n+{}\n");
}

TEST_F(AgentsDropped, AnotherRunTakesThePlaceOfTheLast) {
  claude("echo 1 > one");
  EXPECT_TRUE(has(diff(), "/one\n"));
  claude("echo 2 > two");
  EXPECT_TRUE(has(diff(), "/two\n") && !has(diff(), "/one\n")) << diff();
  claude("true");
  EXPECT_TRUE(has(diff(), "/two\n")) << "a run that changes nothing leaves it";
}

TEST_F(AgentsDropped, WhatIsKeptIsKeptByHandAndNothingElse) {
  claude("echo '{}' > settings.json; mkdir -p skills/s; echo skill > skills/s/SKILL.md; rm CLAUDE.md");
  const Outcome asked = agents({"keep", "claude", "settings.json"});
  EXPECT_EQ(asked.exit_code, 125) << asked;
  EXPECT_TRUE(has(asked.err, "--yes")) << asked;
  EXPECT_EQ(read_file(at_home("settings.json")), "{\n  \"a\": 1\n}\n");
  const Outcome kept = agents({"keep", "claude", "settings.json", "--yes"});
  EXPECT_EQ(kept.exit_code, 0) << kept;
  EXPECT_TRUE(has(kept.out, "\n+{}\n")) << "shown before";
  EXPECT_EQ(read_file(at_home("settings.json")), "{}\n");
  EXPECT_FALSE(exists(at_home("skills"))) << "not asked for";
  EXPECT_FALSE(has(diff(), "settings.json")) << "it is there by now";
  EXPECT_TRUE(has(diff(), "SKILL.md") && has(diff(), "CLAUDE.md")) << diff();
  EXPECT_EQ(agents({"keep", "claude", "~/.claude/skills/s/SKILL.md", "CLAUDE.md", "--yes"}).exit_code, 0);
  EXPECT_EQ(read_file(at_home("skills/s/SKILL.md")), "skill\n");
  EXPECT_FALSE(exists(at_home("CLAUDE.md")));
  EXPECT_EQ(diff(), "");
  EXPECT_NE(agents({"keep", "claude", "nothing", "--yes"}).exit_code, 0);
  EXPECT_NE(agents({"diff", "cluade"}).exit_code, 0);
}

TEST_F(AgentsDropped, NothingIsKeptThroughALink) {
  const TempDir elsewhere{"/var/tmp"};
  claude("mkdir skills; echo skill > skills/SKILL.md");
  std::filesystem::create_symlink(elsewhere.path(), at_home("skills"));
  EXPECT_NE(agents({"keep", "claude", "SKILL.md", "--yes"}).exit_code, 0);
  EXPECT_FALSE(exists(elsewhere / "SKILL.md"));
}

TEST_F(AgentsDropped, ALinkOfTheUsersIsNamedAndStays) {
  std::filesystem::rename(at_home("CLAUDE.md"), home_ / "base");
  std::filesystem::create_symlink("../base", at_home("CLAUDE.md"));
  if (is_root()) home_.give_to(user_uid(), user_gid());
  claude("rm CLAUDE.md; echo new > CLAUDE.md");
  EXPECT_TRUE(has(diff(), "M " + at_home("CLAUDE.md") + " (there it is a link to ../base)\n")) << diff();
  const Outcome refused = agents({"keep", "claude", "CLAUDE.md", "--yes"});
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_TRUE(std::filesystem::is_symlink(at_home("CLAUDE.md")));
  std::filesystem::remove(at_home("CLAUDE.md"));
  EXPECT_EQ(agents({"keep", "claude", "CLAUDE.md", "--yes"}).exit_code, 0);
  EXPECT_EQ(read_file(at_home("CLAUDE.md")), "new\n");
}

TEST_F(AgentsDropped, LinksSocketsAndLargeFilesAreNotKept) {
  const Outcome outcome = claude("ln -s /etc/shadow link; mkfifo pipe; head -c 5000000 /dev/zero > large; echo ran");
  EXPECT_EQ(outcome.out, "ran\n");
  const std::string shown = diff();
  EXPECT_TRUE(has(shown, "/link (not kept") && has(shown, "/large (not kept") && !has(shown, "/pipe")) << shown;
  EXPECT_NE(agents({"keep", "claude", "link", "--yes"}).exit_code, 0);
}

TEST_F(AgentsDropped, EscapesOfTerminalsAreShownAsText) {
  claude("printf '\\033[2Jx\\n' > rules.md");
  EXPECT_EQ(diff().find('\033'), std::string::npos);
}

// A file cannot be mounted that is not there: the first log-in is put in its place at the end.
TEST_F(AgentsDropped, AFirstLogInPersists) {
  const Outcome outcome = claude("echo token > .credentials.json; echo h > history.jsonl");
  EXPECT_FALSE(has(outcome.err, "dropped")) << outcome;
  EXPECT_EQ(read_file(at_home(".credentials.json")), "token\n");
  EXPECT_EQ(std::filesystem::status(at_home(".credentials.json")).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(claude("cat .credentials.json; echo new > .credentials.json").out, "token\n");
  EXPECT_EQ(read_file(at_home(".credentials.json")), "new\n");
}

TEST_F(AgentsDropped, AFirstLogInPersistsWhereTheStateIsALink) {
  std::filesystem::rename(home_ / ".claude", home_ / "dot");
  std::filesystem::create_symlink("dot", home_ / ".claude");
  const Outcome outcome = claude("echo token > .credentials.json; echo '{}' > settings.json");
  EXPECT_TRUE(has(outcome.err, "one file of claude's own state was changed")) << outcome;
  EXPECT_EQ(read_file(home_ / "dot/.credentials.json"), "token\n");
  EXPECT_EQ(read_file(home_ / "dot/settings.json"), "{\n  \"a\": 1\n}\n");
}

TEST_F(AgentsDropped, APlainRunKeepsNothing) {
  run_in({"--scratch", home_ / ".claude", "-c", "echo x > ~/.claude/settings.json"},
         {.stdin_is = Input::kNull, .env = environment()});
  EXPECT_EQ(diff(), "");
}

}  // namespace
}  // namespace belljar::test
