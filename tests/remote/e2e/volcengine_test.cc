// belljar run --backend volcengine; and the official client against the server that ours is tested with.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/built.h"
#include "support/eventually.h"
#include "support/fake_volcengine.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

constexpr const char* kClient = "@volcengine/openapi@1.36.2";

class RunOnVolcengine : public testing::Test {
 protected:
  Outcome run_on(std::vector<std::string> words, const std::string& input = {}) const {
    words.insert(words.begin(), {"run", "--backend", "volcengine", "--workspace-at", work_.path()});
    return belljar(words, {.input = input, .cwd = here_.path(), .env = fake_.environment()});
  }

  TempDir here_, work_;
  FakeVolcengine fake_;
};

TEST_F(RunOnVolcengine, StreamsExitCodesAndInputPassThrough) {
  const Outcome outcome = run_on({"--", "/bin/sh", "-c", "cat; echo err >&2; exit 7"}, "given\n");
  EXPECT_EQ(outcome.exit_code, 7) << outcome;
  EXPECT_EQ(outcome.out, "given\n");
  EXPECT_EQ(outcome.err, "err\n");
  EXPECT_EQ(run_on({"-c", "kill -9 $$"}).exit_code, 137);
  EXPECT_EQ(run_on({"--", "no-such-program"}).exit_code, 127);
  EXPECT_EQ(run_on({"--timeout", "300ms", "--", "sleep", "300"}).exit_code, 124);
  EXPECT_NE(fake_.log().find("Action=KillSandbox"), std::string::npos) << "ended with the command";
}

TEST_F(RunOnVolcengine, JsonTellsWhatIsHeld) {
  const Outcome outcome = run_on({"--memory", "1GiB", "--instance-type", "performance", "--json", "-c", "echo out"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_NE(outcome.out.find(R"("stdout":"out\n")"), std::string::npos) << outcome;
  EXPECT_NE(outcome.out.find(R"("mechanism":"MemoryMB = 1024","enforced":"partial")"), std::string::npos) << outcome;
  EXPECT_NE(fake_.log().find(R"(\"CpuMilli\":4000)"), std::string::npos);
}

TEST_F(RunOnVolcengine, APolicyFileNamesTheBackend) {
  const std::string policy = work_.write("policy.toml", "backend = \"volcengine\"\n[limits]\nmemory = \"1GiB\"\n");
  // Its workspace is /home/gem, which this machine has not: that it was made there is enough.
  (void)belljar({"run", "--policy", policy, "--", "true"}, {.cwd = here_.path(), .env = fake_.environment()});
  EXPECT_NE(fake_.log().find("Action=CreateSandbox"), std::string::npos);
  EXPECT_NE(fake_.log().find(R"(\"MemoryMB\":1024)"), std::string::npos);
  EXPECT_NE(fake_.log().find("Action=KillSandbox"), std::string::npos);
}

TEST_F(RunOnVolcengine, WhatLivesOnIsNamed) {
  for (const char* on_stop : {"pause", "leave"}) {
    const Outcome first = run_on({"--on-stop", on_stop, "-c", "echo kept >file"});
    EXPECT_EQ(first.exit_code, 0) << first;
    const std::string before = "belljar: the sandbox is ";
    ASSERT_TRUE(first.err.starts_with(before)) << first;
    const std::string id = first.err.substr(before.size(), first.err.find(' ', before.size()) - before.size());
    const Outcome second = run_on({"--volcengine-sandbox", id, "--on-stop", "kill", "-c", "cat file"});
    EXPECT_EQ(second.out, "kept\n") << second;
    EXPECT_EQ(second.err, "") << second;
  }
}

TEST_F(RunOnVolcengine, ASignalDuringTheStartLeavesNoSandbox) {
  fake_.misbehave("starting=1000000");  // until the signal was sent
  Running run({kBelljar, "run", "--backend", "volcengine", "--workspace-at", work_.path(), "--", "true"},
              {.cwd = here_.path(), .env = fake_.environment()});
  ASSERT_TRUE(eventually([&] { return fake_.log().find("Action=DescribeSandbox") != std::string::npos; }));
  run.send(SIGINT);
  fake_.misbehave("becomes=failed");
  const Outcome outcome = run.wait();
  EXPECT_NE(outcome.exit_code, 0) << outcome;
  EXPECT_NE(fake_.log().find("Action=KillSandbox"), std::string::npos) << "made, and ended";
  EXPECT_EQ(fake_.log().find("bash/exec"), std::string::npos) << "nothing was run";
}

TEST_F(RunOnVolcengine, AContainerNeedsNoAccount) {
  const auto run_in = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"run",        "--backend", "volcengine", "--aio-url", fake_.aio_url(), "--workspace-at",
                                      work_.path(), "--accept",  "network"};
    words.insert(words.end(), more.begin(), more.end());
    return belljar(words, {.cwd = here_.path(), .env = {{"SANDBOX_API_KEY", FakeVolcengine::aio_key()}}});
  };
  const Outcome outcome = run_in({"-c", "echo here"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "here\n");
  EXPECT_EQ(run_in({"--on-stop", "kill", "--", "true"}).exit_code, 125);
  const Outcome left = run_in({"--on-stop", "leave", "--", "true"});
  EXPECT_EQ(left.exit_code, 0) << left;
}

TEST_F(RunOnVolcengine, WhatIsMissingIsSaid) {
  const Outcome keyless =
      belljar({"run", "--backend", "volcengine", "--", "true"}, {.cwd = here_.path(), .env = {{"SANDBOX_APP_ID", "fn-test"}}});
  EXPECT_EQ(keyless.exit_code, 125);
  EXPECT_NE(keyless.err.find("set VOLC_ACCESS_KEY_ID and VOLC_SECRET_ACCESS_KEY"), std::string::npos) << keyless;
  const Outcome homeless =
      belljar({"run", "--backend", "volcengine", "--", "true"},
              {.cwd = here_.path(), .env = {{"VOLC_ACCESS_KEY_ID", "AKLT1"}, {"VOLC_SECRET_ACCESS_KEY", "secret1"}}});
  EXPECT_NE(homeless.err.find("set SANDBOX_APP_ID"), std::string::npos) << homeless;
  EXPECT_EQ(run_on({"--lifetime", "1m", "--", "true"}).exit_code, 125);
  EXPECT_EQ(run_on({"--lifetime", "5m", "--", "true"}).exit_code, 0);
  EXPECT_EQ(run_on({"--instance-type", "huge", "--", "true"}).exit_code, 125);
  const Outcome small = run_on({"--memory", "64MiB", "--", "true"});
  EXPECT_EQ(small.exit_code, 125) << small;
  EXPECT_NE(small.err.find("limits.memory below 512MiB"), std::string::npos) << small;
  EXPECT_EQ(run_on({"--txn", "--", "true"}).exit_code, 125);
  fake_.misbehave("control=401");
  const Outcome wrong = run_on({"--", "true"});
  EXPECT_EQ(wrong.exit_code, 125);
  for (const auto& [name, value] : fake_.environment()) {
    if (name.find("KEY") == std::string::npos && name != "SANDBOX_AUTHORIZATION") continue;
    EXPECT_EQ((wrong.out + wrong.err).find(value), std::string::npos) << name << wrong;
  }
}

TEST_F(RunOnVolcengine, DoctorSaysWhetherThereIsAKey) {
  const Outcome with = belljar({"doctor"}, {.cwd = here_.path(), .env = fake_.environment()});
  EXPECT_NE(with.out.find("are set; it was not tried"), std::string::npos) << with;
  EXPECT_EQ(with.out.find(FakeVolcengine::secret()), std::string::npos);
  const Outcome without = belljar({"doctor"}, {.cwd = here_.path()});
  EXPECT_NE(without.out.find("cannot be used here: SANDBOX_APP_ID"), std::string::npos) << without;
}

TEST_F(RunOnVolcengine, TheOfficialClientFindsTheFakeFaithful) {
  BELLJAR_NEEDS(program("npm"));
  const TempDir place;
  const std::string script =
      place.write("client.mjs", read_file(std::string(kSourceDir) + "/tests/remote/e2e/volcengine_client.mjs"));
  const std::string npm = "cd " + place.path() +
                          " && npm install --loglevel=error --no-audit --no-fund --no-update-notifier --cache " +
                          (place / "cache") + " " + kClient;
  const Outcome installed = run({"/bin/sh", "-c", npm}, {.env = {{"HOME", place.path()}}, .timeout = std::chrono::minutes(4)});
  // Not in .ci/accepted-skips: there the network has to be there.
  for (const char* reason : {"EAI_AGAIN", "ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT"}) {
    if (installed.exit_code != 0 && installed.err.find(reason) != std::string::npos)
      GTEST_SKIP() << "needs npm's registry: " << reason;
  }
  ASSERT_EQ(installed.exit_code, 0) << installed;
  const Outcome outcome =
      run({"node", script}, {.stdin_is = Input::kNull, .env = fake_.environment(), .timeout = std::chrono::minutes(2)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "the client is content\n");
}

}  // namespace
}  // namespace belljar::test
