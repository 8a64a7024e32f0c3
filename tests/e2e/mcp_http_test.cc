// belljar mcp --http: the real program, by hand. The official client is in mcp_test.cc.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "e2e/support_run.h"
#include "support/built.h"
#include "support/leftovers.h"

namespace belljar::test {
namespace {

class McpHttp : public Run {};

TEST_F(McpHttp, WhoIsServedAndWhoIsNot) {
  BELLJAR_NEEDS(program("python3"));
  const Leftovers left;
  const std::string script = std::string(kSourceDir) + "/tests/e2e/mcp_http.py";
  const Outcome outcome =
      run({"python3", "-B", script, kBelljar, workspace_.path()}, {.stdin_is = Input::kNull, .timeout = std::chrono::minutes(4)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (const char* part :
       {"who_is_refused_and_its_twin", "what_is_too_large_is_refused_and_the_next_is_served", "sessions_begin_work_apart_and_end",
        "a_session_sees_no_other_workspace", "who_listens_hears_the_end_of_its_session", "a_stream_that_was_lost_is_resumed",
        "who_listened_goes_on_listening", "a_session_that_nobody_uses_ends", "when_all_places_are_taken_the_oldest_goes",
        "tokens_come_from_a_file_or_the_environment", "a_session_is_of_the_token_that_began_it",
        "no_token_takes_the_places_of_another", "who_has_no_token_keeps_nobody_out",
        "what_comes_in_an_unknown_coding_ends_its_connection", "beyond_loopback_only_with_a_token"})
    EXPECT_NE(outcome.out.find(std::string("ok ") + part + "\n"), std::string::npos) << part << outcome;
  EXPECT_EQ(left.report(), "");
}

TEST_F(McpHttp, AWrongOptionIsToldAtOnce) {
  const TempDir place;
  const struct {
    std::vector<std::string> args;
    const char* words;
  } kRows[] = {
      {{"--http", "here"}, "--http cannot be"},
      {{"--http", "127.0.0.1"}, "--http cannot be"},
      {{"--http", "example.org:80"}, "--http cannot be"},
      {{"--http", "0", "--http-idle", "never"}, "--http-idle cannot be"},
      {{"--http", "0", "--http-token-file", place.write("short", "abc\n")}, "must have 16 characters"},
      {{"--http", "0", "--http-token-file", place.write("empty", "")}, "must have 16 characters"},
      {{"--http", "0", "--http-token-file", place.write("second", "0123456789abcdef\nabc\n")}, "must have 16 characters"},
      {{"--http", "0", "--http-token-file", place.write("twice", "0123456789abcdef\n0123456789abcdef\n")}, "stands there twice"},
      {{"--http", "0", "--http-token-file", place.write("fine", "0123456789abcdef\n"), "--http-no-token"}, "two things"},
      {{"--http", "192.0.2.1:0"}, "cannot listen at 192.0.2.1"},
  };
  for (const auto& row : kRows) {
    std::vector<std::string> args{"mcp", "--workspace", workspace_.path()};
    args.insert(args.end(), row.args.begin(), row.args.end());
    const Outcome outcome = belljar(args);
    EXPECT_EQ(outcome.exit_code, 125) << outcome;
    EXPECT_NE(outcome.err.find(row.words), std::string::npos) << row.words << outcome;
  }
}

}  // namespace
}  // namespace belljar::test
