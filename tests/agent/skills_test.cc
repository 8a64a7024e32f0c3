#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "agent/skill_file.h"
#include "agent/support_agent.h"
#include "belljar/agent.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

using agent::parse_skill;
using agent::Skill;

TEST(SkillFile, FrontMatterAsItIsWritten) {
  const Skill expected{"commits", "How to write a commit: short", "# Body\ntext\n"};
  for (const char* text : {"---\nname: commits\ndescription: 'How to write a commit: short'\n---\n# Body\ntext\n",
                           "\xEF\xBB\xBF---\r\nname: \"commits\"\r\nlicense: MIT\r\ndescription: How to write a commit: short   # "
                           "note\r\n---\r\n# Body\ntext\n",
                           "---\n# note\nmetadata:\n  tags:\n  - a\ndescription: >-\n  How to write\n  a commit: short\nname: "
                           "commits\n---\n# Body\ntext\n"}) {
    const auto skill = parse_skill(text);
    ASSERT_TRUE(skill) << skill.error().line();
    EXPECT_EQ(*skill, expected) << text;
  }
  EXPECT_EQ(parse_skill("---\nname: a\ndescription: |\n  one\n  two\n---\n")->description, "one\ntwo");
  EXPECT_EQ(parse_skill("---\nname: a\ndescription: 'it''s'\n---\n")->description, "it's");
  EXPECT_EQ(parse_skill("---\nname: a\ndescription: \"a \\\"b\\\" \\\\\"\n---\n")->description, "a \"b\" \\");
}

TEST(SkillFile, WhatIsNoneIsRefused) {
  for (const char* text : {"", "# Title\n", "---\nname: a\ndescription: d\n", "---\nname: a\n---\n", "---\ndescription: d\n---\n",
                           "---\nname: ../a\ndescription: d\n---\n", "---\nname: a\nname: b\ndescription: d\n---\n",
                           "---\nname: a\ndescription: [d]\n---\n", "---\nname: a\ndescription: \"d\n---\n",
                           "---\nname: a\ndescription: &d x\n---\n", "---\nname: a\nnonsense\ndescription: d\n---\n"})
    EXPECT_FALSE(parse_skill(text)) << text;
  EXPECT_FALSE(parse_skill("---\nname: a\ndescription: " + std::string(2000, 'x') + "\n---\n"));
  EXPECT_TRUE(parse_skill("---\nname: a\ndescription: d\n---\n"));
}

class SkillsTest : public AgentTest {};

TEST_F(SkillsTest, WhatLiesInTheWorkspaceIsPassedOver) {
  const TempDir place, workspace;
  const char* text = "---\nname: style\ndescription: The style of code\n---\nTwo blanks.\n";
  place.write("own.md", text);
  workspace.write("evil.md", text);
  ASSERT_EQ(::symlink((workspace / "evil.md").c_str(), (place / "linked.md").c_str()), 0);
  std::vector<std::string> warnings;
  const auto warn = [&](std::string warning) { warnings.push_back(std::move(warning)); };
  EXPECT_NE(skills(place.path(), warn, workspace.path())->prompt().find("style"), std::string::npos) << "our own is taken";
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("linked.md"), std::string::npos) << warnings[0];
  EXPECT_EQ(skills(workspace.path(), {}, workspace.path())->prompt(), "");
}

TEST_F(SkillsTest, DescriptionsAreToldAndBodiesReadOnDemand) {
  const TempDir place;
  place.write("commits/SKILL.md", "---\nname: commits\ndescription: How commits are written here\n---\nUse the imperative mood.\n");
  place.write("style.md", "---\nname: style\ndescription: The style of code\n---\nTwo blanks.\n");
  place.write("broken.md", "no front matter\n");
  place.write("open.md", "---\nname: open\ndescription: everybody may write it\n---\n");
  ASSERT_EQ(::chmod((place / "open.md").c_str(), 0666), 0);
  std::vector<std::string> warnings;
  AgentOptions with = options(R"([
    {"expect": "- commits: How commits are written here", "calls": [{"name": "skill", "arguments": {"name": "commits"}}, {"name": "skill", "arguments": {"name": "fly"}}]},
    {"expect": "Use the imperative mood.", "text": "ok"}])");
  with.middleware.push_back(skills(place.path(), [&](std::string text) { warnings.push_back(std::move(text)); }));
  Agent agent(std::move(with));
  const AgentResult result = agent.run("commit it");
  EXPECT_EQ(result.end, AgentEnd::kDone) << result.reason;
  EXPECT_EQ(agent.messages()[2].text, "Use the imperative mood.\n") << "the user's own words, not data";
  EXPECT_TRUE(has(agent.messages()[3].text, "there are commits, style"));
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_TRUE(has(warnings[0], "does not begin with")) << warnings[0];
  EXPECT_TRUE(has(warnings[1], "somebody else may write it")) << warnings[1];
}

TEST_F(SkillsTest, WithoutAnyThereIsNoTool) {
  const TempDir place;
  for (const std::string& directory : {place.path(), place / "absent"}) {
    const auto none = skills(directory);
    EXPECT_TRUE(none->tools().empty());
    EXPECT_EQ(none->prompt(), "");
  }
}

}  // namespace
}  // namespace belljar::test
