#include "guard/rules.h"

#include <gtest/gtest.h>

namespace belljar::guard {
namespace {

std::string refusal(std::string_view text, Trust trust = Trust::kUser) {
  auto set = parse_rules(text, "r.toml", trust);
  return set ? "accepted" : set.error().what() + "\n" + set.error().reason();
}

TEST(Rules, ExamplesAreCheckedAtLoad) {
  constexpr std::string_view kRule = "[[rule]]\npattern = [\"git\", \"push\"]\ndecision = \"prompt\"\n";
  EXPECT_EQ(refusal(std::string(kRule) + "match = [\"git push x\", \"ls; env git push\"]\nnot_match = [\"git pull\"]\n"),
            "accepted");
  EXPECT_NE(
      refusal(std::string(kRule) + "match = [\"git pull\"]\n").find("the example `git pull` does not match the pattern `git push`"),
      std::string::npos);
  EXPECT_NE(refusal(std::string(kRule) + "not_match = [\"git push\"]\n").find("the example `git push` matches the pattern"),
            std::string::npos);
  EXPECT_NE(refusal(std::string(kRule) + "match = [\"git push (\"]\n").find("cannot be read"), std::string::npos);
}

TEST(Rules, WrongFilesAreRefusedWithTheirPlace) {
  EXPECT_NE(refusal("unmached = \"allow\"\n").find("r.toml:1:1: unknown key `unmached`"), std::string::npos);
  EXPECT_NE(refusal("unmatched = \"maybe\"\n").find("one of allow, prompt, forbid"), std::string::npos);
  EXPECT_NE(refusal("[[rule]]\npattern = [\"a\"]\n").find("needs `pattern` and `decision`"), std::string::npos);
  EXPECT_NE(refusal("[[rule]]\npattern = [[]]\ndecision = \"allow\"\n").find("is a text or a list"), std::string::npos);
  EXPECT_NE(refusal("[[rule]]\npattern = [\"a\"]\ndecision = \"allow\"\nreason = \"\"\n").find("says something"),
            std::string::npos);
  EXPECT_NE(refusal("disable = [\"nothing\"]\n").find("there is no check `nothing`"), std::string::npos);
  EXPECT_NE(refusal("rule = 3\n").find("not a list"), std::string::npos);
  EXPECT_NE(refusal("a = [").find("r.toml:1"), std::string::npos);
  EXPECT_EQ(refusal(""), "accepted");
}

TEST(Rules, WorkspaceFileMayOnlyNarrow) {
  constexpr std::string_view kAllow = "[[rule]]\npattern = [\"make\"]\ndecision = \"allow\"\n";
  constexpr std::string_view kForbid = "[[rule]]\npattern = [\"make\"]\ndecision = \"forbid\"\n";
  for (const std::string_view text : {kAllow, std::string_view("unmatched = \"allow\"\n"),
                                      std::string_view("redirects = \"allow\"\n"), std::string_view("disable = [\"sudo\"]\n")}) {
    EXPECT_NE(refusal(text, Trust::kWorkspace).find("may only narrow"), std::string::npos) << text;
    EXPECT_EQ(refusal(text), "accepted") << text;
  }
  EXPECT_EQ(refusal(kForbid, Trust::kWorkspace), "accepted");
  EXPECT_EQ(refusal("unmatched = \"forbid\"\n", Trust::kWorkspace), "accepted");
}

TEST(Rules, JoiningAWorkspaceNeverLoosens) {
  RuleSet set{.unmatched = Decision::kForbid};
  join(set, {.unmatched = Decision::kPrompt}, Trust::kWorkspace);
  EXPECT_EQ(set.unmatched, Decision::kForbid);
  join(set, {.unmatched = Decision::kPrompt}, Trust::kUser);
  EXPECT_EQ(set.unmatched, Decision::kPrompt);
  RuleSet open{.unmatched = Decision::kAllow};
  join(open, {.unmatched = Decision::kForbid}, Trust::kWorkspace);
  EXPECT_EQ(open.unmatched, Decision::kForbid);
}

}  // namespace
}  // namespace belljar::guard
