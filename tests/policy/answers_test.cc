// Which answers are taken from files that a command wrote, and how they get into those of the next start.
#include "policy/answers.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace belljar::policy {
namespace {

const AnswerFile& file_of(std::string_view agent, std::string_view name) {
  for (const AnswerFile& file : answer_files(agent)) {
    if (file.name == name) return file;
  }
  return answer_files(agent).front();
}
const AnswerFile& claude() { return file_of("claude", ".config.json"); }
const AnswerFile& theme() { return file_of("claude", "settings.json"); }
const AnswerFile& codex() { return file_of("codex", "config.toml"); }
const AnswerFile& log_in() { return file_of("gemini", "settings.json"); }
const AnswerFile& folders() { return file_of("gemini", "trustedFolders.json"); }

const AnswerContext kHere{.workspace = "/home/u/ws", .key = "sk-0123456789abcdefghij"};

Answers taken(const AnswerFile& file, std::string_view text) {
  Answers answers;
  read_answers(file, text, kHere, answers);
  return answers;
}
std::string with(const AnswerFile& file, std::string_view text, const Answers& answers) {
  return with_answers(file, text, kHere, answers).value_or("as it is");
}

TEST(Answers, OfClaudeCodeTheFirstScreensTrustAndTheKeyAreTaken) {
  const Answers answers = taken(claude(), R"({"hasCompletedOnboarding": true, "mcpServers": {"evil": {"command": "x"}},
      "projects": {"/home/u/ws": {"hasTrustDialogAccepted": true, "mcpServers": {"evil": {}}, "allowedTools": ["Bash"]}},
      "customApiKeyResponses": {"approved": ["456789abcdefghij", "0123456789abcdefghij"], "rejected": []}})");
  EXPECT_EQ(answers, (Answers{.onboarded = true, .trusted = {{"/home/u/ws", true}}, .keys = {{"0123456789abcdefghij", true}}}));
  EXPECT_EQ(with(claude(), "", answers),
            R"({"hasCompletedOnboarding":true,"projects":{"/home/u/ws":{"hasTrustDialogAccepted":true}},)"
            R"("customApiKeyResponses":{"approved":["0123456789abcdefghij"],"rejected":[]}})"
            "\n");
  EXPECT_EQ(parse_answers(to_json(answers)).value(), answers);
}

TEST(Answers, WhatTheHostSaysStaysBesideThem) {
  const Answers answers{.onboarded = true, .trusted = {{"/home/u/ws", true}}, .keys = {{"0123456789abcdefghij", true}}};
  EXPECT_EQ(
      with(claude(),
           R"({"mcpServers":{"mine":{"args":[1,2.5,null]}},"projects":{"/home/u/ws":{"n":1},"/srv":{}},)"
           R"("customApiKeyResponses":{"rejected":["0123456789abcdefghij"]}})",
           answers),
      R"({"mcpServers":{"mine":{"args":[1,2.5,null]}},"projects":{"/home/u/ws":{"n":1,"hasTrustDialogAccepted":true},"/srv":{}},)"
      R"("customApiKeyResponses":{"rejected":["0123456789abcdefghij"]},"hasCompletedOnboarding":true})"
      "\n");
  EXPECT_EQ(with(theme(), R"({"theme":"light"})", {.theme = "dark"}), "as it is");
  EXPECT_EQ(with(theme(), R"({"hooks":{}})", {.theme = "dark"}), "{\"hooks\":{},\"theme\":\"dark\"}\n");
  EXPECT_EQ(with(log_in(), R"({"security":{"auth":{"selectedType":"vertex-ai"}}})", {.auth = "gemini-api-key"}), "as it is");
  EXPECT_EQ(with(folders(), R"({"/home/u/ws":"DO_NOT_TRUST"})", {.trusted = {{"/home/u/ws", true}}}), "as it is");
}

TEST(Answers, AFolderElsewhereIsNotTrusted) {
  for (const std::string path : {"/home/u", "/", "/home/u/ws2", "home/u/ws", "/home/u/ws/../x", "/home/u/ws/", ""}) {
    EXPECT_EQ(taken(claude(), "{\"projects\":{\"" + path + "\":{\"hasTrustDialogAccepted\":true}}}"), Answers{}) << path;
    EXPECT_EQ(taken(codex(), "[projects.\"" + path + "\"]\ntrust_level = \"trusted\"\n"), Answers{}) << path;
    EXPECT_EQ(taken(folders(), "{\"" + path + "\":\"TRUST_FOLDER\"}"), Answers{}) << path;
    EXPECT_EQ(with(folders(), "", {.trusted = {{path, true}}}), "as it is") << path;
    EXPECT_EQ(with(codex(), "", {.trusted = {{path, true}}}), "as it is") << path;
  }
  EXPECT_EQ(taken(folders(), R"({"/home/u/ws/sub":"TRUST_FOLDER"})").trusted.count("/home/u/ws/sub"), 1U);
}

TEST(Answers, OnlyKnownWordsAreAnswers) {
  EXPECT_EQ(taken(theme(), R"({"theme":"dark-ansi","hooks":{}})"), Answers{.theme = "dark-ansi"});
  EXPECT_EQ(taken(log_in(), R"({"security":{"auth":{"selectedType":"oauth-personal"}},"mcpServers":{}})"),
            Answers{.auth = "oauth-personal"});
  for (const std::string_view text : {R"({"theme":"custom:evil"})", R"({"theme":1})", R"({"theme":{"dark":1}})", R"(["theme"])",
                                      R"({"hooks":{"theme":"dark"}})", R"({"theme":"dark")", "", "\xff"}) {
    EXPECT_EQ(taken(theme(), text), Answers{}) << text;
  }
  EXPECT_EQ(taken(log_in(), R"({"security":{"auth":{"selectedType":"x"}}})"), Answers{});
  EXPECT_EQ(taken(codex(), "[projects.\"/home/u/ws\"]\ntrust_level = \"all\"\n"), Answers{});
  EXPECT_EQ(taken(claude(), R"({"hasCompletedOnboarding":"true","projects":{"/home/u/ws":{"hasTrustDialogAccepted":1}}})"),
            Answers{});
  EXPECT_EQ(taken(claude(), R"({"customApiKeyResponses":{"approved":["another key's tail"]}})"), Answers{});
  EXPECT_EQ(parse_answers(R"({"theme":"$x","auth":"y","trusted":{"/a":"yes"}})").value(), Answers{}) << "our own file";
}

TEST(Answers, OfCodexTrustInTheFolderIsTaken) {
  const std::string config =
      "model = \"m\"\n[mcp_servers.x]\ncommand = \"x\"\n\n[projects.\"/home/u/ws\"]\ntrust_level = \"trusted\"\n";
  const Answers answers = taken(codex(), config);
  EXPECT_EQ(answers, (Answers{.trusted = {{"/home/u/ws", true}}}));
  EXPECT_EQ(with(codex(), "model = \"m\"\n", answers), "model = \"m\"\n\n[projects.\"/home/u/ws\"]\ntrust_level = \"trusted\"\n");
  EXPECT_EQ(with(codex(), config, answers), "as it is");
  EXPECT_EQ(with(codex(), "projects = {}\n", answers), "as it is") << "a table that is closed";
  EXPECT_EQ(taken(codex(), "[projects.\"/home/u/ws\"]\ntrust_level = \"untrusted\"\n"),
            (Answers{.trusted = {{"/home/u/ws", false}}}));
}

TEST(Answers, OfGeminiATrustedParentIsThisFolder) {
  EXPECT_EQ(taken(folders(), R"({"/home/u/ws":"TRUST_PARENT"})"), (Answers{.trusted = {{"/home/u/ws", true}}}));
  EXPECT_EQ(with(folders(), "", {.trusted = {{"/home/u/ws", false}, {"/srv", true}}}), "{\"/home/u/ws\":\"DO_NOT_TRUST\"}\n");
  EXPECT_EQ(with(folders(), "// text of people's own\n{}", {.trusted = {{"/home/u/ws", true}}}), "as it is");
}

TEST(Answers, AFileMayDifferInAnswersAlone) {
  EXPECT_TRUE(same_but_answers(theme(), "", R"({"theme":"dark"})", kHere));
  EXPECT_FALSE(same_but_answers(theme(), "", R"({"theme":"dark","hooks":{}})", kHere));
  EXPECT_FALSE(same_but_answers(theme(), "", "{}", kHere)) << "it is new, and no answer";
  EXPECT_TRUE(same_but_answers(theme(), "{}", "{ }", kHere));
  EXPECT_TRUE(same_but_answers(log_in(), R"({"a":1})", R"({"a":1,"security":{"auth":{"selectedType":"vertex-ai"}}})", kHere));
  EXPECT_TRUE(same_but_answers(folders(), "", R"({"/home/u/ws":"TRUST_FOLDER"})", kHere));
  EXPECT_FALSE(same_but_answers(folders(), "", R"({"/srv":"TRUST_FOLDER"})", kHere));
  EXPECT_TRUE(same_but_answers(codex(), "a = 1\n",
                               "a = 1\n[tui]\nscreen_reader_detection_done = true\n"
                               "[projects.\"/home/u/ws\"]\ntrust_level = \"trusted\"\n",
                               kHere));
  EXPECT_FALSE(same_but_answers(codex(), "a = 1\n", "a = 2\n", kHere));
  EXPECT_FALSE(same_but_answers(codex(), "", "[projects.\"/home/u/ws\"]\ntrust_level = \"trusted\"\nmore = 1\n", kHere));
}

}  // namespace
}  // namespace belljar::policy
