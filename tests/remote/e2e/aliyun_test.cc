// belljar run --backend aliyun; and the request core of Aliyun's own clients against the server that ours is tested with.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "support/built.h"
#include "support/eventually.h"
#include "support/fake_aliyun.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

constexpr const char* kCore = "@alicloud/openapi-core@1.0.8";

class RunOnAliyun : public testing::Test {
 protected:
  std::map<std::string, std::string> environment() const {
    return {{"AGENTBAY_API_KEY", FakeAliyun::key()}, {"AGENTBAY_ENDPOINT", fake_.url()}, {"FAKE_LOG", fake_.path() + "/log"}};
  }
  Outcome run_on(std::vector<std::string> words, const std::string& input = {}) const {
    words.insert(words.begin(), {"run", "--backend", "aliyun", "--net", "host", "--workspace-at", there_.path()});
    return belljar(words, {.input = input, .cwd = here_.path(), .env = environment()});
  }

  TempDir here_, there_;
  FakeAliyun fake_;
};

TEST_F(RunOnAliyun, StreamsExitCodesAndInputPassThrough) {
  const Outcome outcome = run_on({"--", "/bin/sh", "-c", "cat; echo err >&2; exit 7"}, "given\n");
  EXPECT_EQ(outcome.exit_code, 7) << outcome;
  EXPECT_EQ(outcome.out, "given\n");
  EXPECT_EQ(outcome.err, "err\n");
  EXPECT_EQ(run_on({"-c", "kill -9 $$"}).exit_code, 137);
  EXPECT_EQ(run_on({"--", "no-such-program"}).exit_code, 127);
  EXPECT_EQ(run_on({"--timeout", "300ms", "--", "sleep", "300"}).exit_code, 124);
  EXPECT_EQ(fake_.asked("Action=DeleteSessionAsync"), 4U) << "ended with the command";
}

// Only that it asks: the default workspace would be made on this machine.
TEST_F(RunOnAliyun, APolicyFileMayNameIt) {
  const std::string policy = there_.write("policy.toml", "backend = \"aliyun\"\n[network]\nmode = \"host\"\n");
  fake_.set("CreateMcpSession=403");
  const Outcome outcome = belljar({"run", "--policy", policy, "--", "true"}, {.cwd = here_.path(), .env = environment()});
  EXPECT_EQ(outcome.exit_code, 125) << outcome;
  EXPECT_NE(outcome.err.find("cannot create a session of the image `linux_latest`"), std::string::npos) << outcome;
}

TEST_F(RunOnAliyun, JsonTellsWhatIsHeld) {
  const Outcome outcome = run_on({"--json", "-c", "echo out"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_NE(outcome.out.find(R"("stdout":"out\n")"), std::string::npos) << outcome;
  EXPECT_NE(outcome.out.find(R"("clause":"filesystem.write")"), std::string::npos) << outcome;
}

TEST_F(RunOnAliyun, ANetworkThatNobodyClosesIsRefused) {
  const std::vector<std::string> words = {"run", "--backend", "aliyun", "--workspace-at", there_.path(), "-c", "true"};
  const Outcome open = belljar(words, {.cwd = here_.path(), .env = environment()});
  EXPECT_EQ(open.exit_code, 125) << open;
  EXPECT_NE(open.err.find("network"), std::string::npos) << open;
  EXPECT_EQ(fake_.asked("Action=CreateMcpSession"), 0U);
  std::vector<std::string> closed = words;
  closed.insert(closed.begin() + 3, {"--aliyun-policy", "policy-1"});
  EXPECT_EQ(belljar(closed, {.cwd = here_.path(), .env = environment()}).exit_code, 0);
  EXPECT_EQ(fake_.asked("McpPolicyId=policy-1"), 1U);
}

TEST_F(RunOnAliyun, FlagsReachTheService) {
  const Outcome outcome = run_on({"--aliyun-image", "code_latest", "--idle-release", "2m", "--aliyun-label", "team=a",
                                  "--aliyun-context", "ctx-1:/data", "--aliyun-region", "cn-hangzhou", "-c", "true"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (const char* field :
       {"ImageId=code_latest", "Timeout=120", "%22team%22%3A%22a%22", "%22ContextId%22%3A%22ctx-1%22", "LoginRegionId=cn-hangzhou"})
    EXPECT_EQ(fake_.asked(field), 1U) << field;
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{{"--aliyun-context", "ctx-1"},
                                                                                     {"--aliyun-label", "=a"},
                                                                                     {"--aliyun-route", "x"},
                                                                                     {"--idle-release", "1s"},
                                                                                     {"--on-stop", "x"}}) {
    std::vector<std::string> words = wrong;
    words.insert(words.end(), {"-c", "true"});
    EXPECT_EQ(run_on(words).exit_code, 125) << wrong.front();
  }
}

TEST_F(RunOnAliyun, WhatLivesOnIsNamed) {
  for (const char* on_stop : {"pause", "leave"}) {
    const Outcome first = run_on({"--on-stop", on_stop, "-c", "echo kept >file"});
    EXPECT_EQ(first.exit_code, 0) << first;
    const std::string before = "belljar: the session is ";
    ASSERT_TRUE(first.err.starts_with(before)) << first;
    const std::string id = first.err.substr(before.size(), first.err.find(' ', before.size()) - before.size());
    const Outcome second = run_on({"--aliyun-session", id, "--on-stop", "kill", "-c", "cat file"});
    EXPECT_EQ(second.out, "kept\n") << second;
    EXPECT_EQ(second.err, "") << second;
  }
}

TEST_F(RunOnAliyun, ASignalDuringTheStartLeavesNoSession) {
  fake_.set("hold=1");
  Running run({kBelljar, "run", "--backend", "aliyun", "--net", "host", "--workspace-at", there_.path(), "--", "true"},
              {.cwd = here_.path(), .env = environment()});
  ASSERT_TRUE(eventually([&] { return fake_.asked("Action=CreateMcpSession") > 0; }));
  run.send(SIGINT);
  fake_.set("");
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.exit_code, 130) << outcome;
  EXPECT_EQ(fake_.asked("Action=DeleteSessionAsync"), 1U) << "made, and ended";
}

TEST_F(RunOnAliyun, WhatIsMissingIsSaid) {
  const std::map<std::string, std::string> none = {
      {"AGENTBAY_API_KEY", ""}, {"ALIYUN_MCP_ENDPOINT", ""}, {"ALIYUN_ACCESS_KEY_ID", "LTAI-1"}};
  const Outcome keyless = belljar({"run", "--backend", "aliyun", "--", "true"}, {.cwd = here_.path(), .env = none});
  EXPECT_EQ(keyless.exit_code, 125);
  EXPECT_NE(keyless.err.find("set AGENTBAY_API_KEY"), std::string::npos) << keyless;
  const Outcome limited = run_on({"--memory", "512MiB", "--", "true"});
  EXPECT_EQ(limited.exit_code, 125) << limited;
  EXPECT_NE(limited.err.find("limits.memory"), std::string::npos) << limited;
  EXPECT_EQ(run_on({"--memory", "512MiB", "--accept", "limits.memory", "--", "true"}).exit_code, 0);
  fake_.set("CreateMcpSession=401");
  const Outcome wrong = run_on({"--", "true"});
  EXPECT_EQ(wrong.exit_code, 125);
  EXPECT_EQ((wrong.out + wrong.err).find(FakeAliyun::key()), std::string::npos) << wrong;
}

TEST_F(RunOnAliyun, AGatewayRunsItToo) {
  std::map<std::string, std::string> variables = {{"ALIYUN_MCP_ENDPOINT", fake_.url() + "/mcp"},
                                                  {"ALIYUN_ACCESS_KEY_ID", FakeAliyun::access_key()},
                                                  {"ALIYUN_ACCESS_KEY_SECRET", FakeAliyun::secret_key()},
                                                  {"ALIYUN_REGION", "cn-hangzhou"},
                                                  {"AGENTBAY_API_KEY", ""}};
  const std::vector<std::string> words = {"run",         "--backend", "aliyun",          "--net", "host", "--workspace-at",
                                          there_.path(), "-c",        "echo out; exit 3"};
  const Outcome outcome = belljar(words, {.cwd = here_.path(), .env = variables});
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_EQ(outcome.out, "out\n") << outcome;
  variables["AGENTBAY_API_KEY"] = FakeAliyun::key();
  const Outcome both = belljar(words, {.cwd = here_.path(), .env = variables});
  EXPECT_EQ(both.exit_code, 125);
  EXPECT_NE(both.err.find("--aliyun-route"), std::string::npos) << both;
}

TEST_F(RunOnAliyun, DoctorSaysWhetherThereIsAKey) {
  const Outcome with = belljar({"doctor"}, {.cwd = here_.path(), .env = environment()});
  EXPECT_NE(with.out.find("AGENTBAY_API_KEY is set; it was not tried"), std::string::npos) << with;
  EXPECT_EQ(with.out.find(FakeAliyun::key()), std::string::npos);
  const Outcome without =
      belljar({"doctor"}, {.cwd = here_.path(), .env = {{"AGENTBAY_API_KEY", ""}, {"ALIYUN_MCP_ENDPOINT", ""}}});
  EXPECT_NE(without.out.find("cannot be used here: AGENTBAY_API_KEY"), std::string::npos) << without;
}

TEST_F(RunOnAliyun, TheOfficialRequestCoreFindsTheFakeFaithful) {
  BELLJAR_NEEDS(program("npm"));
  const TempDir place;
  const std::string script = place.write("client.mjs", read_file(std::string(kSourceDir) + "/tests/remote/e2e/aliyun_client.mjs"));
  const std::string npm = "cd " + place.path() + " && npm install --silent --no-audit --no-fund --no-update-notifier --cache " +
                          (place / "cache") + " " + kCore;
  const Outcome installed = run({"/bin/sh", "-c", npm}, {.env = {{"HOME", place.path()}}, .timeout = std::chrono::minutes(4)});
  ASSERT_EQ(installed.exit_code, 0) << installed;
  const Outcome outcome =
      run({"node", script}, {.stdin_is = Input::kNull, .env = environment(), .timeout = std::chrono::minutes(2)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "the client is content\n");
}

}  // namespace
}  // namespace belljar::test
