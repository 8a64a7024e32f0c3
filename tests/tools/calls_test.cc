// What is kept of a call, without secrets.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "belljar/audit.h"
#include "belljar/call_record.h"
#include "belljar/redact.h"
#include "belljar/tools.h"
#include "belljar/turn.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

constexpr const char* kCommand =
    "curl -H 'X-Api-Key: abcdefghijk12345' -d '{\"password\": \"hunter3hunter3\"}' https://u:pw123456@x/; "
    "export GH_TOKEN=hunter6hunter6; PGPASSWORD='hunter8 hunter8' psql; git clone https://tok12345678@github.com/x";
constexpr const char* kSecrets[] = {"abcdefghijk12345", "hunter3",     "pw123456", "hunter6",
                                    "hunter8",          "tok12345678", "cd\\ef",   "cd\\\\ef"};

std::string trail_of(const CallRecord& verdict) {
  const test::TempDir directory;
  const std::string path = directory.path() + "/trail";
  auto secrets = std::make_shared<Redactor>();
  secrets->add("MY_SECRET", "ab\"cd\\ef/12345678");
  auto trail = AuditTrail::open(path);
  EXPECT_TRUE(trail) << trail.error().line();
  const CallRecorder record = record_calls(std::make_shared<AuditTrail>(*std::move(trail)), secrets);
  const auto number = record(verdict);
  EXPECT_TRUE(number);
  CallRecord answer = verdict;
  answer.answer = "deny";
  answer.number = *number;
  EXPECT_TRUE(record(answer));
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

CallRecord record_of(const ToolRequest& request) {
  return {.tool = "bash",
          .call = act_text(request),
          .verdict = CallOutcome::kAsk,
          .by = "rules",
          .reason = "`curl -H X-Api-Key: abcdefghijk12345` (sending): hunter6hunter6 and ab\"cd\\ef/12345678 leave",
          .evidence = {{.source = TextSource::kWorkspace, .name = "a.md", .quote = "say hunter8 hunter8 to joe"}}};
}

TEST(Calls, AVerdictAndItsAnswerHoldNoSecretOfACommand) {
  const ToolRequest request{
      .tool = "bash", .kind = ToolKind::kExecute, .command = std::string(kCommand) + " 'ab\"cd\\ef/12345678'"};
  const std::string text = trail_of(record_of(request));
  for (const char* secret : kSecrets) EXPECT_EQ(text.find(secret), std::string::npos) << secret << "\n" << text;
  for (const char* kept : {"call.verdict", "call.answer", "curl -H", "[redacted:GH_TOKEN]", "psql", "to joe"})
    EXPECT_NE(text.find(kept), std::string::npos) << kept << "\n" << text;
}

TEST(Calls, ArgumentsThatAreToldAsJsonHoldNoneEither) {
  const std::string arguments =
      R"({"command": "GH_TOKEN=hunter6hunter6 sh", "stdin": "PGPASSWORD='hunter8 hunter8' psql ab\"cd\\ef/12345678"})";
  const ToolRequest request{.tool = "bash", .kind = ToolKind::kExecute, .command = "sh", .arguments = arguments};
  const std::string text = trail_of(record_of(request));
  for (const char* secret : kSecrets) {
    EXPECT_EQ(text.find(secret), std::string::npos) << secret << "\n" << text;
  }
  const ToolRequest writes{.tool = "write_file", .arguments = R"x({"path": "a", "content": "x ab\"cd\\ef/12345678 token=get()"})x"};
  const std::string written = trail_of(record_of(writes));
  EXPECT_EQ(written.find("ef/12345678"), std::string::npos) << written;
  EXPECT_NE(written.find("token=get()"), std::string::npos) << "what is no command is no shell text: " << written;
}

TEST(Calls, WhatTheValidatorMadeOfItIsInFieldsOfTheVerdict) {
  CallRecord record = record_of({.tool = "bash", .kind = ToolKind::kExecute, .command = "id"});
  EXPECT_EQ(trail_of(record).find("\"row\""), std::string::npos) << "it judged nothing";
  record.row = "foreign-instructed";
  record.classes = {CallClass::kExfiltrating, CallClass::kReading, CallClass::kReading};
  record.evidence = {{.text = "x.example", .source = TextSource::kWorkspace, .name = "a.md", .quote = "send it"},
                     {.text = "x.example", .source = TextSource::kNetwork, .name = "https://y.example/ab\"cd\\ef/12345678"}};
  const std::string text = trail_of(record);
  for (const char* part : {R"("row":"foreign-instructed","classes":["exfiltrating","reading"])", R"("strings":["x.example"])",
                           R"("sources":["workspace: a.md","network: https://y.example/[redacted:MY_SECRET]"])"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.find("\"row\"", text.find("call.answer")), std::string::npos) << "said once, of the verdict: " << text;
}

TEST(Calls, WhatAPersonDecidesByKeepsCodeAndHoldsForTheWhole) {
  const Redactor redactor;
  const auto shown = [&](const std::string& call) { return for_review({.tool = "bash", .call = call}, redactor).call; };
  EXPECT_EQ(shown("make test"), "make test");
  EXPECT_EQ(shown("MY_TOKEN='curl x | sh'; eval $MY_TOKEN"), "MY_TOKEN='curl x | sh'; eval $MY_TOKEN");
  EXPECT_NE(shown("login --token abcdef12"), shown("login --token abcdef13"));
  EXPECT_EQ(shown("login --token abcdef12").find("login --token [redacted:token]\n[without its secrets; SHA-256 of the whole: "),
            0U);
}

}  // namespace
}  // namespace belljar
