// belljar run --backend e2b; and the official SDK against the server that our client is tested with.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "support/built.h"
#include "support/eventually.h"
#include "support/fake_e2b.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

constexpr const char* kSdk = "e2b@2.51.0";

class RunOnE2b : public testing::Test {
 protected:
  std::map<std::string, std::string> environment() const {
    return {{"E2B_API_KEY", FakeE2b::key()}, {"E2B_API_URL", fake_.url()}, {"E2B_SANDBOX_URL", fake_.url()}};
  }
  Outcome run_on(std::vector<std::string> words, const std::string& input = {}) const {
    words.insert(words.begin(), {"run", "--backend", "e2b"});
    return belljar(words, {.input = input, .cwd = here_.path(), .env = environment()});
  }

  TempDir here_;
  FakeE2b fake_;
};

TEST_F(RunOnE2b, StreamsExitCodesAndInputPassThrough) {
  const Outcome outcome = run_on({"--", "/bin/sh", "-c", "cat; echo err >&2; exit 7"}, "given\n");
  EXPECT_EQ(outcome.exit_code, 7) << outcome;
  EXPECT_EQ(outcome.out, "given\n");
  EXPECT_EQ(outcome.err, "err\n");
  EXPECT_EQ(run_on({"-c", "kill -9 $$"}).exit_code, 137);
  EXPECT_EQ(run_on({"--", "no-such-program"}).exit_code, 127);
  EXPECT_EQ(run_on({"--timeout", "300ms", "--", "sleep", "300"}).exit_code, 124);
  EXPECT_NE(fake_.log().find(R"(["DELETE", "/sandboxes/)"), std::string::npos) << "ended with the command";
}

TEST_F(RunOnE2b, JsonTellsWhatIsHeld) {
  const Outcome outcome = run_on({"--json", "-c", "echo out"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_NE(outcome.out.find(R"("stdout":"out\n")"), std::string::npos) << outcome;
  EXPECT_NE(
      outcome.out.find(R"("clause":"filesystem.write","asked":"write below /home/user only","mechanism":"","enforced":"none")"),
      std::string::npos)
      << outcome;
}

TEST_F(RunOnE2b, AUsageErrorIsReported) {
  const std::string report = here_.write("r", "of an earlier run");
  ASSERT_EQ(run_on({"--report", report, "--nope", "-c", "true"}).exit_code, 125);
  EXPECT_EQ(read_file(report).find("{\"exit_code\":125,"), 0U) << read_file(report);
  ASSERT_EQ(run_on({"--report", report, "-c", "true"}).exit_code, 0);
  EXPECT_EQ(read_file(report).find("{\"exit_code\":0,"), 0U) << read_file(report);
}

TEST_F(RunOnE2b, OutputIsCutAtTheCap) {
  const Outcome cut = run_on({"--output-bytes", "10", "-c", "seq 100; echo to stderr >&2"});
  EXPECT_EQ(cut.exit_code, 0) << cut;
  EXPECT_EQ(cut.out, "1\n2\n3\n4\n5\n");
  EXPECT_EQ(cut.err, "to stderr\nbelljar: the limit `output` was reached: 282 bytes of output dropped\n");
  const Outcome fits = run_on({"--output-bytes", "292", "-c", "seq 100"});
  EXPECT_EQ(fits.out.size(), 292U) << "the twin";
  EXPECT_EQ(fits.err, "") << "the twin";
  const Outcome killed = run_on({"--output-bytes", "10", "--output-action", "kill", "-c", "seq 100; sleep 300"});
  EXPECT_EQ(killed.exit_code, 137) << killed;
  EXPECT_EQ(killed.out, "1\n2\n3\n4\n5\n");
  EXPECT_EQ(killed.err, "belljar: the output exceeded the limit of 10 bytes\n");
}

TEST_F(RunOnE2b, WhatIsAcceptedIsNamedAtTheStart) {
  const Outcome accepted = run_on({"--accept", "filesystem.write", "-c", "true"});
  EXPECT_EQ(accepted.exit_code, 0) << accepted;
  EXPECT_TRUE(accepted.err.starts_with("belljar: warning: filesystem.write is none, as accepted: ")) << accepted;
  EXPECT_EQ(run_on({"-c", "true"}).err, "") << "the twin: nothing was accepted by name";
}

TEST_F(RunOnE2b, AFailedStopKeepsWhatCameOfTheCommand) {
  fake_.misbehave("kill=500");
  const Outcome failed = run_on({"--json", "-c", "echo out; exit 3"});
  EXPECT_EQ(failed.exit_code, 3) << failed;
  EXPECT_NE(failed.out.find(R"("stdout":"out\n")"), std::string::npos) << failed;
  EXPECT_NE(failed.err.find("cannot end the sandbox"), std::string::npos) << failed;
  const Outcome fine = run_on({"-c", "echo out"});
  EXPECT_EQ(fine.exit_code, 125) << fine;
  EXPECT_EQ(fine.out, "out\n");
}

TEST_F(RunOnE2b, WhatLivesOnIsNamed) {
  for (const char* on_stop : {"pause", "leave"}) {
    const Outcome first = run_on({"--on-stop", on_stop, "-c", "echo kept >file"});
    EXPECT_EQ(first.exit_code, 0) << first;
    const std::string before = "belljar: the sandbox is ";
    ASSERT_TRUE(first.err.starts_with(before)) << first;
    const std::string id = first.err.substr(before.size(), first.err.find(' ', before.size()) - before.size());
    const Outcome second = run_on({"--e2b-sandbox", id, "--on-stop", "kill", "-c", "cat file"});
    EXPECT_EQ(second.out, "kept\n") << second;
    EXPECT_EQ(second.err, "") << second;
  }
}

TEST_F(RunOnE2b, ASignalDuringTheStartLeavesNoSandbox) {
  fake_.misbehave("hold=1");
  Running run({kBelljar, "run", "--backend", "e2b", "--", "true"}, {.cwd = here_.path(), .env = environment()});
  ASSERT_TRUE(eventually([&] { return fake_.log().find(R"(["POST", "/sandboxes")") != std::string::npos; }));
  run.send(SIGINT);
  fake_.misbehave("");
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.exit_code, 130) << outcome;
  EXPECT_NE(fake_.log().find(R"(["DELETE", "/sandboxes/)"), std::string::npos) << "made, and ended";
  EXPECT_EQ(fake_.log().find("process.Process/Start"), std::string::npos) << "nothing was run";
}

TEST_F(RunOnE2b, WhatIsMissingIsSaid) {
  const Outcome keyless = belljar({"run", "--backend", "e2b", "--", "true"}, {.cwd = here_.path(), .env = {{"E2B_API_KEY", ""}}});
  EXPECT_EQ(keyless.exit_code, 125);
  EXPECT_NE(keyless.err.find("set E2B_API_KEY"), std::string::npos) << keyless;
  const Outcome limited = run_on({"--memory", "512MiB", "--", "true"});
  EXPECT_EQ(limited.exit_code, 125) << limited;
  EXPECT_NE(limited.err.find("limits.memory"), std::string::npos) << limited;
  EXPECT_EQ(run_on({"--memory", "512MiB", "--accept", "limits.memory", "--", "true"}).exit_code, 0);
  const Outcome ruled = run_on({"--hide", "/etc/passwd", "--", "true"});
  EXPECT_EQ(ruled.exit_code, 125) << ruled;
  EXPECT_NE(ruled.err.find("filesystem.entries"), std::string::npos) << ruled;
  EXPECT_EQ(run_on({"--txn", "--", "true"}).exit_code, 125);
  fake_.misbehave("control=401");
  const Outcome wrong = run_on({"--", "true"});
  EXPECT_EQ(wrong.exit_code, 125);
  EXPECT_EQ((wrong.out + wrong.err).find(FakeE2b::key()), std::string::npos) << wrong;
}

TEST_F(RunOnE2b, ATerminalIsThere) {
  const Outcome outcome = run_on({"--pty", "-c", "test -t 0 && test -t 1 && echo terminal"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_NE(outcome.out.find("terminal"), std::string::npos) << outcome;
}

TEST_F(RunOnE2b, DoctorSaysWhetherThereIsAKey) {
  const Outcome with = belljar({"doctor"}, {.cwd = here_.path(), .env = environment()});
  EXPECT_NE(with.out.find("E2B_API_KEY is set; it was not tried"), std::string::npos) << with;
  EXPECT_EQ(with.out.find(FakeE2b::key()), std::string::npos);
  const Outcome without = belljar({"doctor"}, {.cwd = here_.path(), .env = {{"E2B_API_KEY", ""}}});
  EXPECT_NE(without.out.find("cannot be used here: E2B_API_KEY is not set"), std::string::npos) << without;
}

TEST_F(RunOnE2b, TheOfficialSdkFindsTheFakeFaithful) {
  BELLJAR_NEEDS(program("npm"));
  const TempDir place;
  const std::string script = place.write("client.mjs", read_file(std::string(kSourceDir) + "/tests/remote/e2e/e2b_client.mjs"));
  const std::string npm = "cd " + place.path() + " && npm install --silent --no-audit --no-fund --no-update-notifier --cache " +
                          (place / "cache") + " " + kSdk;
  const Outcome installed = run({"/bin/sh", "-c", npm}, {.env = {{"HOME", place.path()}}, .timeout = std::chrono::minutes(4)});
  ASSERT_EQ(installed.exit_code, 0) << installed;
  const Outcome outcome =
      run({"node", script}, {.stdin_is = Input::kNull, .env = environment(), .timeout = std::chrono::minutes(2)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "the SDK is content\n");
}

}  // namespace
}  // namespace belljar::test
