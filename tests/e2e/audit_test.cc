// belljar run --audit FILE, and belljar audit.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "support/built.h"
#include "support/has.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using test::has;
using namespace std::chrono_literals;
using test::belljar;
using test::Outcome;
using test::TempDir;

// A workspace, and beside it the directory of the trail.
struct Place {
  TempDir dir;
  std::string workspace = dir.make_dir("workspace");
  std::string log = dir.make_dir("log");
  std::string trail = log + "/audit.jsonl";

  Outcome run(std::vector<std::string> args, std::map<std::string, std::string> env = {}) const {
    args.insert(args.begin(), {"run", "--audit", trail});
    return belljar(args, {.cwd = workspace, .env = std::move(env)});
  }
  std::string shown(const std::string& kind = "") const {
    return belljar({"audit", "show", trail, "--kind", kind.empty() ? "run" : kind}).out;
  }
  Outcome verify() const { return belljar({"audit", "verify", trail}); }
};

TEST(Audit, ARunItsRefusalsAndItsEndAreRecorded) {
  const Place place;
  const Outcome outcome = place.run({"-c", "touch /etc/belljar-test 2>&1; exit 3"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_TRUE(has(place.shown("run.start"), "touch /etc/belljar-test")) << place.shown();
  EXPECT_TRUE(has(place.shown("run.end"), "exit_code=3")) << place.shown();
  EXPECT_TRUE(has(place.shown("run.end"), "run=1")) << place.shown();
  EXPECT_EQ(has(outcome.err, "refused"), has(place.shown("violation"), "target=`/etc/belljar-test`")) << outcome;
  EXPECT_EQ(place.verify().exit_code, 0) << place.verify();
}

TEST(Audit, ARunThatCouldNotStartIsRecordedToo) {
  const Place place;
  EXPECT_EQ(place.run({"--policy", "no-such-profile", "--", "true"}).exit_code, 125);
  EXPECT_EQ(place.run({"--", "/no/such/program"}).exit_code, 127);
  EXPECT_TRUE(has(place.shown("run.refused"), "no-such-profile")) << place.shown();
  EXPECT_TRUE(has(place.shown("run.end"), "exit_code=127")) << place.shown();
}

TEST(Audit, ValuesOfSecretVariablesAreNotRecorded) {
  const Place place;
  place.run({"--", "echo", "a-t0ps3cret-b", "plain-word"}, {{"DEPLOY_TOKEN", "t0ps3cret"}, {"COLOUR", "plain-word"}});
  const std::string bytes = test::read_file(place.trail);
  EXPECT_FALSE(has(bytes, "t0ps3cret")) << bytes;
  EXPECT_TRUE(has(bytes, "a-[redacted:DEPLOY_TOKEN]-b")) << bytes;
  EXPECT_TRUE(has(bytes, "plain-word")) << bytes;
}

TEST(Audit, TheValueOfACredentialIsNotRecordedWhateverItsVariableIsCalled) {
  for (const bool is_credential : {true, false}) {
    const Place place;
    std::vector<std::string> words{"--net", "proxy", "--allow-domain", "a.example"};
    if (is_credential) words.insert(words.end(), {"--credential", "INSIDE=env:DEPLOYMENT for a.example"});
    words.insert(words.end(), {"--", "echo", "a-plainword-b"});
    place.run(words, {{"DEPLOYMENT", "plainword"}});
    const std::string bytes = test::read_file(place.trail);
    EXPECT_EQ(has(bytes, "a-plainword-b"), !is_credential) << bytes;
    EXPECT_EQ(has(bytes, "a-[redacted:DEPLOYMENT]-b"), is_credential) << bytes;
  }
}

TEST(Audit, ValuesThatAFlagOrAPolicySetsAreNotRecorded) {
  const Place place;
  const std::string policy = place.dir / "policy.toml";
  std::ofstream(policy) << "[environment]\nset = { POLICY_TOKEN = \"lion-t0ps3cret\", PLACE = \"plain-place\" }\n";
  const std::vector<std::string> given = {"--policy",
                                          policy,
                                          "--env",
                                          "MY_API_TOKEN=zebra-t0ps3cret",
                                          "--env",
                                          "COLOUR=plain-word",
                                          "--",
                                          "echo",
                                          "zebra-t0ps3cret",
                                          "lion-t0ps3cret",
                                          "own-t0ps3cret",
                                          "plain-word",
                                          "plain-place"};
  // Its own value is set over: both are kept out.
  EXPECT_EQ(place.run(given, {{"MY_API_TOKEN", "own-t0ps3cret"}}).out,
            "zebra-t0ps3cret lion-t0ps3cret own-t0ps3cret plain-word plain-place\n");
  std::string bytes = test::read_file(place.trail);
  EXPECT_FALSE(has(bytes, "t0ps3cret")) << bytes;
  EXPECT_TRUE(has(bytes, "[redacted:MY_API_TOKEN]") && has(bytes, "[redacted:POLICY_TOKEN]")) << bytes;
  EXPECT_TRUE(has(bytes, "plain-word") && has(bytes, "plain-place")) << bytes;
  // A run that is refused because its policy is wrong, and the path of a refused act.
  EXPECT_EQ(
      place.run({"--env", "MY_API_TOKEN=bear-t0ps3cret", "--policy", "no-such-profile", "--", "echo", "bear-t0ps3cret"}).exit_code,
      125);
  place.run({"--env", "MY_API_TOKEN=bear-t0ps3cret", "-c", "touch /etc/$MY_API_TOKEN"});
  bytes = test::read_file(place.trail);
  EXPECT_FALSE(has(bytes, "t0ps3cret")) << bytes;
  EXPECT_TRUE(has(place.shown("run.refused"), "[redacted:MY_API_TOKEN]")) << place.shown("run.refused");
}

TEST(Audit, TheCommandNeitherReadsNorWritesTheTrail) {
  const Place place;
  const Outcome inside = place.run({"--read", place.log, "-c", "cat " + place.trail + "; echo x >> " + place.trail});
  EXPECT_NE(inside.exit_code, 0) << inside;
  EXPECT_FALSE(has(inside.out, "run.start")) << inside;
  EXPECT_EQ(place.verify().exit_code, 0) << place.verify();
  // The twin: a file beside it is read.
  std::ofstream(place.log + "/other") << "beside";
  EXPECT_EQ(place.run({"--read", place.log, "--", "cat", place.log + "/other"}).out, "beside");
}

TEST(Audit, FullFilesOfTheTrailAreAsFarFromTheCommand) {
  const Place place;
  const std::string first = place.trail + ".000001";
  for (int i = 0; i < 40 && !test::exists(first); ++i) place.run({"--audit-rotate", "2KiB", "--", "true"});
  ASSERT_TRUE(test::exists(first));
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--audit-rotate", "1MiB"}}) {
    std::vector<std::string> args = {"--read", place.log, "-c", "cat " + place.log + "/*; echo x >>" + first};
    args.insert(args.begin(), more.begin(), more.end());
    const Outcome inside = place.run(args);
    EXPECT_FALSE(has(inside.out, "run.start")) << inside;
  }
  EXPECT_EQ(place.verify().exit_code, 0) << place.verify();
}

TEST(Audit, APlaceThatTheCommandMayWriteToIsRefused) {
  const Place place;
  const std::string inside = place.workspace + "/audit.jsonl";
  const Outcome refused = belljar({"run", "--audit", inside, "--", "true"}, {.cwd = place.workspace});
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_TRUE(has(refused.err, "the command may write there")) << refused;
  EXPECT_FALSE(test::exists(inside));
  const Outcome granted = place.run({"--write", place.log, "--", "true"});
  EXPECT_EQ(granted.exit_code, 125) << granted;
  EXPECT_EQ(place.run({"--", "true"}).exit_code, 0);
}

TEST(Audit, ATrailThatCannotBeWrittenRefusesTheRun) {
  const Place place;
  const Outcome missing = belljar({"run", "--audit", place.log + "/no/such", "-c", "touch ran"}, {.cwd = place.workspace});
  EXPECT_EQ(missing.exit_code, 125) << missing;
  EXPECT_FALSE(test::exists(place.workspace + "/ran")) << "nothing runs unrecorded";
  EXPECT_EQ(place.run({"-c", "touch ran"}).exit_code, 0);
  EXPECT_TRUE(test::exists(place.workspace + "/ran"));
  std::ofstream(place.trail, std::ios::app) << "{}\n";
  const Outcome damaged = place.run({"-c", "touch again"});
  EXPECT_EQ(damaged.exit_code, 125) << damaged;
  EXPECT_TRUE(has(damaged.err, "damaged")) << damaged;
  EXPECT_FALSE(test::exists(place.workspace + "/again"));
}

TEST(Audit, ARunWhoseFrontIsKilledLeavesAValidTrailWithoutItsEnd) {
  const Place place;
  {
    test::Running running({test::kBelljar, "run", "--audit", place.trail, "--", "sh", "-c", "echo up; sleep 60"},
                          {.cwd = place.workspace});
    ASSERT_TRUE(running.wait_for_output("up"));
    running.send(SIGKILL);
    running.wait();
  }
  EXPECT_EQ(place.verify().exit_code, 0) << place.verify();
  EXPECT_TRUE(has(place.shown("run.start"), "sleep 60"));
  EXPECT_EQ(place.shown("run.end"), "");
  EXPECT_EQ(place.run({"--", "true"}).exit_code, 0);
  EXPECT_EQ(place.verify().exit_code, 0) << place.verify();
}

TEST(Audit, VerifyLocatesAChangedByteAndExportSaysSo) {
  const Place place;
  for (int i = 0; i < 3; ++i) place.run({"--", "echo", "number " + std::to_string(i)});
  const Outcome fine = place.verify();
  ASSERT_EQ(fine.exit_code, 0) << fine;
  const std::string head = fine.out.substr(fine.out.rfind("head ") + 5, fine.out.size() - fine.out.rfind("head ") - 6);
  EXPECT_EQ(belljar({"audit", "verify", place.trail, "--head", head}).exit_code, 0) << head;
  const std::string exported = belljar({"audit", "export", place.trail, "--format", "csv", "--kind", "run.start"}).out;
  EXPECT_TRUE(exported.starts_with("seq,time,pid,kind,data\r\n1,\"2")) << exported;
  std::string bytes = test::read_file(place.trail);
  bytes.replace(bytes.find("number 1"), 8, "number 7");
  std::ofstream(place.trail, std::ios::trunc) << bytes;
  const Outcome damaged = place.verify();
  EXPECT_EQ(damaged.exit_code, 1) << damaged;
  EXPECT_TRUE(has(damaged.out, "line 4")) << damaged;
  EXPECT_EQ(belljar({"audit", "export", place.trail}).exit_code, 1);
  const Outcome json = belljar({"audit", "verify", place.trail, "--json"});
  EXPECT_TRUE(has(json.out, R"("intact":false)")) << json;
}

TEST(Audit, RotationMakesNewFilesAndVerifyReadsThemAll) {
  const Place place;
  for (int i = 0; i < 6; ++i) EXPECT_EQ(place.run({"--audit-rotate", "1k", "--", "true"}).exit_code, 0);
  EXPECT_TRUE(test::exists(place.trail + ".000002"));
  EXPECT_EQ(place.verify().exit_code, 0) << place.verify();
  EXPECT_EQ(belljar({"run", "--audit-rotate", "1k", "--", "true"}, {.cwd = place.workspace}).exit_code, 125);
  EXPECT_EQ(place.run({"--audit-rotate", "much", "--", "true"}).exit_code, 125);
  EXPECT_EQ(place.run({"--audit-rotate", "0", "--", "true"}).exit_code, 125);
}

TEST(Audit, ATimeOrANumberThatIsNoneIsRefused) {
  const Place place;
  ASSERT_EQ(place.run({"--", "true"}).exit_code, 0);
  for (const char* since : {"yesterday", "2026-13-41T10:00:00", "2026-02-30", "2026-11-21T10:00:00x", "2026-11-21 10:00"}) {
    for (const char* verb : {"show", "export"}) {
      const Outcome refused = belljar({"audit", verb, place.trail, "--since", since});
      EXPECT_EQ(refused.exit_code, 125) << refused;
      EXPECT_EQ(refused.out, "");
    }
  }
  for (const char* last : {"0", "-1", "many"})
    EXPECT_EQ(belljar({"audit", "show", place.trail, "--last", last}).exit_code, 125) << last;
  const auto lines = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"audit", "show", place.trail});
    const std::string out = belljar(args).out;
    return std::count(out.begin(), out.end(), '\n');
  };
  EXPECT_EQ(lines({"--last", "2"}), 2);
  EXPECT_EQ(lines({"--since", "2020-01-01T10:00:00"}), lines({}));
  EXPECT_EQ(lines({"--since", "2020-01-01"}), lines({}));
  EXPECT_EQ(lines({"--since", "2020-01-01T10:00:00.25Z"}), lines({}));
  EXPECT_EQ(lines({"--since", "2999-01-01"}), 0);
}

TEST(Audit, WhatIsShownOfACommandIsEscaped) {
  const Place place;
  place.run({"--", "echo", "\x1b[31mred\xff"});
  EXPECT_EQ(place.shown().find('\x1b'), std::string::npos);
  EXPECT_TRUE(has(place.shown(), "red")) << place.shown();
}

}  // namespace
}  // namespace belljar
