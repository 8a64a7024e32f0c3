// belljar mcp and injected instructions: the real program, and a client that obeys whatever it reads.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "e2e/support_run.h"
#include "support/built.h"
#include "support/leftovers.h"

namespace belljar::test {
namespace {

class McpDefence : public Run {};

TEST_F(McpDefence, AClientThatObeysWhatItReads) {
  BELLJAR_NEEDS(program("python3"));
  const Leftovers left;
  const std::string script = std::string(kSourceDir) + "/tests/e2e/mcp_defence.py";
  const Outcome outcome =
      run({"python3", "-B", script, kBelljar, workspace_.path()}, {.stdin_is = Input::kNull, .timeout = std::chrono::minutes(4)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (const char* part :
       {"a_poisoned_file_is_shown_as_data_and_what_obeys_it_is_blocked", "the_clean_twin_is_not",
        "what_is_suspicious_waits_for_a_person", "and_in_the_clean_twin_nobody_is_asked",
        "an_answer_that_comes_while_the_call_waits_counts", "a_client_that_can_ask_asks_its_user",
        "what_the_user_wrote_is_heard_where_the_client_tells_it", "the_acceptance_attack_of_document_001_does_not_run_unasked",
        "what_is_refused_stands_in_the_trail_and_what_may_be_answered_in_the_queue", "another_conversation_begins_with_nothing",
        "the_levels_are_what_they_say", "a_content_policy_holds_by_source", "a_guardian_only_makes_it_stricter_and_fails_closed",
        "in_the_documents_texts_an_answer_says_how_a_person_allows_it", "our_own_words_are_no_instruction"})
    EXPECT_NE(outcome.out.find(std::string("ok ") + part + "\n"), std::string::npos) << part << outcome;
  EXPECT_EQ(left.report(), "");
}

TEST_F(McpDefence, WhatIsWithheldAndWhoseWordsCount) {
  BELLJAR_NEEDS(program("python3"));
  const Leftovers left;
  const std::string script = std::string(kSourceDir) + "/tests/e2e/mcp_withheld.py";
  const Outcome outcome =
      run({"python3", "-B", script, kBelljar, workspace_.path()}, {.stdin_is = Input::kNull, .timeout = std::chrono::minutes(4)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (const char* part : {"a_passage_is_described_and_the_rest_is_shown", "a_person_decides_whether_it_is_seen",
                           "without_a_client_that_asks_a_review_does", "an_id_is_one_sessions", "the_policy_may_say_otherwise",
                           "files_for_agents_are_read_as_such", "a_file_brings_the_users_words",
                           "a_file_that_commands_may_write_is_no_word_of_the_users",
                           "a_prompt_brings_them_where_the_command_line_says_so", "who_is_asked_may_say_what_was_wanted"})
    EXPECT_NE(outcome.out.find(std::string("ok ") + part + "\n"), std::string::npos) << part << outcome;
  EXPECT_EQ(left.report(), "");
}

TEST_F(McpDefence, AWrongOptionIsToldAtOnce) {
  const TempDir place;
  const std::string summary = place.write("content.toml", "[network]\naction = \"summarise\"\n");
  const std::string fine = place.write("fine.toml", "[network]\naction = \"refuse\"\n");
  const struct {
    std::vector<std::string> args;
    const char* words;
  } kRows[] = {
      {{"--defence", "loud"}, "one of on, judge, off"},
      {{"--content", "/none.toml"}, "/none.toml"},
      {{"--content", summary}, "cannot summarise content of the source `network`"},
      {{"--content", fine, "--defence", "off"}, "do nothing with --defence off"},
      {{"--task", "x", "--defence", "off"}, "--task does nothing with --defence off"},
      {{"--task-file", "x", "--defence", "off"}, "--task-file does nothing with --defence off"},
      {{"--task-prompt", "--defence", "off"}, "--task-prompt does nothing with --defence off"},
      {{"--content", fine, "--defence", "judge"}, "--content needs --defence on"},
      {{"--review-wait", "soon"}, "--review-wait cannot be"},
      {{"--guardian-model", "m"}, "needs --guardian-url"},
      {{"--guardian-failure", "ask"}, "--guardian-failure needs --guardian-url"},
      {{"--guardian-timeout", "5s"}, "--guardian-timeout needs --guardian-url"},
      {{"--guardian-wire", "openai"}, "--guardian-wire needs --guardian-url"},
      {{"--guardian-key-file", "/none"}, "--guardian-key-file needs --guardian-url"},
      {{"--guardian-url", "http://127.0.0.1:1", "--guardian-key-file", "/none"}, "cannot read the guardian's key `/none`"},
      {{"--content", "/none"}, "cannot read the content policy `/none`"},
      {{"--http", "0", "--http-token-file", "/none"}, "cannot read the token `/none`"},
      {{"--permission", "bogus"}, "--permission cannot be `bogus`"},
      {{"--guardian-url", "http://far.example", "--guardian-model", "m"}, "far.example"},
      {{"--guardian-url", "http://127.0.0.1:1", "--guardian-model", "m", "--guardian-failure", "allow"}, "one of block, ask"},
      {{"--guardian-url", "http://127.0.0.1:1", "--guardian-model", "m", "--guardian-wire", "smoke"}, "one of openai, anthropic"},
  };
  for (const auto& row : kRows) {
    std::vector<std::string> args{"mcp", "--workspace", workspace_.path()};
    args.insert(args.end(), row.args.begin(), row.args.end());
    const Outcome outcome = belljar(args);
    EXPECT_EQ(outcome.exit_code, 125) << outcome;
    EXPECT_NE(outcome.err.find(row.words), std::string::npos) << row.words << outcome;
  }
  EXPECT_EQ(belljar({"mcp", "--workspace", workspace_.path(), "--content", fine, "--defence", "on"}).exit_code, 0) << "the twin";
}

// Whatever the workspace will be: no client has said it yet.
TEST_F(McpDefence, WhatNoWorkspaceMendsIsToldAtOnce) {
  const TempDir place;
  const std::string pipe = place.write("pipe.toml", "[commands]\nallow = [\"a | b\"]\n");
  const std::string git = place.write("git.toml", "[commands]\nallow = [\"git status\"]\n");
  const std::string outside = place.write("outside.toml", "[permission]\nexcluded_commands = [\"docker\"]\n");
  const std::string rules = place.write("rules.toml", "[[rule]]\npattern = 1\n");
  const auto start = [&](std::vector<std::string> args) {
    args.insert(args.begin(), "mcp");
    return belljar(args, {.cwd = workspace_.path()});
  };
  for (const auto& [args, words] : {std::pair(std::vector<std::string>{"--policy", pipe}, "`a | b` is not a command prefix"),
                                    {{"--rules", outside}, "cannot honour permission.excluded_commands"},
                                    {{"--policy", "/none.toml"}, "cannot read policy `/none.toml`"},
                                    {{"--rules", rules}, "`pattern` is not a list"}}) {
    const Outcome refused = start(args);
    EXPECT_EQ(refused.exit_code, 125) << refused;
    EXPECT_NE(refused.err.find(words), std::string::npos) << refused;
  }
  EXPECT_EQ(start({"--policy", git}).exit_code, 0) << "the twin";
  const Outcome checked = belljar({"policy", "check", git, pipe}, {.cwd = workspace_.path()});
  EXPECT_EQ(checked.exit_code, 125) << checked;
  EXPECT_NE(checked.err.find("pipe.toml:2: `a | b` is not a command prefix"), std::string::npos) << checked;
  EXPECT_EQ(checked.out, git + ": ok\n") << "the twin";
}

}  // namespace
}  // namespace belljar::test
