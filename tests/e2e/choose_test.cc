// `belljar run` where several backends may hold it: --backend auto, --fallback, --isolation. No engine is needed: one that is not
// there is what is fallen back from.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/as_user.h"
#include "support/built.h"
#include "support/has.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using test::has;

class RunChooses : public testing::Test {
 protected:
  // Root's command is somebody else: the workspace's owner.
  RunChooses() { work_.give_to(test::user_uid(), test::user_gid()); }
  test::Outcome run(std::vector<std::string> words, test::RunOptions options = {}) const {
    words.insert(words.begin(), "run");
    options.cwd = work_.path();
    options.env["DOCKER_HOST"] = "unix:///nonexistent/sock";
    return test::belljar(std::move(words), options);
  }
  std::string refusal(std::vector<std::string> words) const {
    words.insert(words.end(), {"--", "true"});
    const auto outcome = run(std::move(words));
    EXPECT_EQ(outcome.exit_code, 125) << outcome;
    return outcome.err;
  }
  const test::TempDir work_;
};

TEST_F(RunChooses, TheNextOneRunsWhatTheFirstCannotStart) {
  const auto outcome =
      run({"--backend", "container", "--image", "x", "--fallback", "native", "-c", "cat; exit 3"}, {.input = "in"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_EQ(outcome.out, "in");
  EXPECT_EQ(outcome.err.substr(0, outcome.err.find("/nonexistent")),
            "belljar: warning: the native backend holds this run, by fallback: container: cannot reach the container engine at `");
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome;
  // The twin: without a list there is no other.
  EXPECT_TRUE(has(refusal({"--backend", "container", "--image", "x"}), "cannot reach the container engine"));
}

TEST_F(RunChooses, ResultsTellWhatWasTried) {
  const auto outcome = run({"--backend", "container", "--fallback", "native", "--json", "--report", "r.json", "--", "true"});
  for (const std::string& text : {outcome.out, test::read_file(work_ / "r.json")}) {
    EXPECT_TRUE(has(text, R"("backend":"native","tried":[{"backend":"container","why":"cannot reach)")) << outcome;
  }
  const auto none = run({"--backend", "container", "--fallback", "landlock", "--isolation", "namespace", "--json", "--", "true"});
  EXPECT_EQ(none.exit_code, 125) << none;
  EXPECT_TRUE(has(none.out, R"("backend":null,"tried":[{"backend":"container")")) << none;
  EXPECT_TRUE(has(none.out, R"({"backend":"landlock","why":"isolation namespace is required, and it has landlock at most"})"))
      << none;
}

TEST_F(RunChooses, OneMessageTellsWhyNoneWorks) {
  const std::string error = refusal({"--backend", "container", "--fallback", "landlock", "--isolation", "namespace"});
  EXPECT_TRUE(has(error, "belljar: no backend can start this: tried container, landlock\n  reason: container: cannot reach"))
      << error;
  EXPECT_TRUE(has(error, "; landlock: isolation namespace is required, and it has landlock at most\n")) << error;
}

// The weaker tier holds `processes` in part: it may not take over what requires all of it, the stronger one may.
TEST_F(RunChooses, AFallbackWeakensNoRequirement) {
  EXPECT_TRUE(has(refusal({"--backend", "container", "--fallback", "landlock", "--require", "processes"}),
                  "landlock: processes is required, but this machine enforces it only as `partial`"));
  const auto twin = run({"--backend", "landlock", "--fallback", "native", "--require", "processes", "--", "echo", "hi"});
  EXPECT_EQ(twin.out, "hi\n") << twin;
  EXPECT_TRUE(has(twin.err, "the native backend holds this run, by fallback: landlock: processes is required")) << twin;
}

TEST_F(RunChooses, IsolationIsAMinimum) {
  for (const auto& [words, why] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--isolation", "vm"}, "isolation vm is required, and it has namespace at most"},
           {{"--isolation", "namespace", "--backend", "landlock"}, "isolation namespace is required, and it has landlock at most"},
           {{"--isolation", "namespace", "--policy", "external-sandbox"},
            "isolation namespace is required, and is not to be had here"},
           {{"--isolation", "landlock", "--policy", "danger-full-access", "--accept", "isolation"},
            "what isolates here is guard-rails"},
           {{"--isolation", "container", "--backend", "auto"}, "no backend can start this: tried native, landlock, container"}}) {
    EXPECT_TRUE(has(refusal(words), why)) << refusal(words);
  }
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--isolation", "namespace"},
                                                {"--isolation", "namespace", "--backend", "auto"},
                                                {"--isolation", "landlock", "--backend", "landlock"},
                                                {"--isolation", "none", "--policy", "external-sandbox"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--", "true"});
    EXPECT_EQ(run(all).exit_code, 0) << words[1];
  }
}

TEST_F(RunChooses, WhatRanIsNotRunAgain) {
  const auto outcome = run({"--fallback", "landlock", "-c", "echo ran >>count; exit 125"});
  EXPECT_EQ(outcome.exit_code, 125);
  EXPECT_EQ(test::read_file(work_ / "count"), "ran\n");
  EXPECT_EQ(run({"--fallback", "landlock", "--", "no-such-program"}).exit_code, 127);
  EXPECT_EQ(run({"--fallback", "landlock", "--", "no-such-program"}).err.find("fallback"), std::string::npos);
}

TEST_F(RunChooses, WhatMakesNoSenseAnywhereIsNoReasonToTryAnother) {
  const auto outcome = run({"--fallback", "landlock", "--cwd", "/etc", "--", "true"});
  EXPECT_EQ(outcome.exit_code, 125);
  EXPECT_TRUE(has(outcome.err, "belljar: workdir escapes workspace")) << outcome;
}

TEST_F(RunChooses, GuardRailsAndUnknownNamesAreRefused) {
  EXPECT_TRUE(has(refusal({"--fallback", "local"}), "flag --fallback: cannot fall back to `local`"));
  EXPECT_TRUE(has(refusal({"--fallback", "mock"}), "never chosen by fallback"));
  EXPECT_TRUE(has(refusal({"--fallback", "docker"}), "there is no such backend"));
  EXPECT_TRUE(has(refusal({"--backend", "container", "--tried", "nonsense"}), "--tried is not for people"));
}

TEST_F(RunChooses, OptionsOfABackendNeedThatBackend) {
  EXPECT_TRUE(has(refusal({"--template", "x"}), "cannot use --template with the backend `native`"));
  EXPECT_TRUE(has(refusal({"--backend", "container", "--template", "x"}), "cannot use --template with the backend `container`"));
  EXPECT_TRUE(has(refusal({"--fallback", "container", "--imagee", "x"}), "unknown option `--imagee`"));
  EXPECT_EQ(run({"--fallback", "container", "--image", "x", "--writable-root", "--", "true"}).exit_code, 0);
  EXPECT_EQ(run({"--fallback", "e2b", "--template", "x", "--", "true"}).err, "");
}

// What `belljar` takes for a backend's option is one: the programs' own lists are the truth.
TEST_F(RunChooses, EveryOptionOfAContainerIsKnown) {
  const auto help = test::run({test::kBelljar, "run", "--backend", "container", "--help"});
  std::istringstream lines(help.out.substr(help.out.find("\nContainer:") + 11));
  int seen = 0;
  for (std::string line; std::getline(lines, line) && (line.empty() || line.starts_with("  "));) {
    std::istringstream words(line);
    std::string name, type;
    words >> name >> type;
    if (!name.starts_with("--")) continue;
    ++seen;
    std::vector<std::string> given = {"--fallback", "container", name};
    if (name != "--writable-root" && name != "--plain-tcp" && name != "--shared-files") given.emplace_back("1");
    given.insert(given.end(), {"--", "true"});
    EXPECT_EQ(run(given).exit_code, 0) << run(given);
  }
  EXPECT_GE(seen, 14) << help;
}

TEST_F(RunChooses, APolicyFileMayListThem) {
  const test::TempDir own;
  const std::string file = own.write("p.toml", "backend = \"container\"\nfallback = [\"native\"]\nisolation = \"namespace\"\n");
  const auto outcome = run({"--policy", file, "--json", "--", "echo", "hi"});
  EXPECT_TRUE(has(outcome.out, "\"stdout\":\"hi\\n\"")) << outcome;
  EXPECT_TRUE(has(outcome.out, R"({"clause":"isolation","asked":"at least namespace","mechanism":"namespace: )")) << outcome;
}

// The front that takes over is as whole as one that was called directly.
TEST_F(RunChooses, SignalsReachTheCommandAfterAFallback) {
  test::Running front({test::kBelljar, "run", "--backend", "container", "--fallback", "native", "-c",
                       "trap 'echo caught; exit 5' TERM; echo ready; sleep 300 & wait"},
                      {.cwd = work_.path(), .env = {{"DOCKER_HOST", "unix:///nonexistent/sock"}}});
  ASSERT_TRUE(front.wait_for_output("ready")) << front.err();
  front.send(15);
  const auto outcome = front.wait();
  EXPECT_EQ(outcome.exit_code, 5) << outcome;
}

TEST_F(RunChooses, TheTrailTellsOfEach) {
  const test::TempDir own;
  const std::string trail = own / "trail";
  const auto outcome = run({"--backend", "container", "--fallback", "native", "--audit", trail, "--", "true"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  const std::string text = test::read_file(trail);
  const std::size_t refused = text.find("run.refused");
  EXPECT_NE(refused, std::string::npos) << text;
  EXPECT_NE(text.find("run.end", refused), std::string::npos) << text;
  EXPECT_EQ(test::belljar({"audit", "verify", trail}).exit_code, 0);
}

}  // namespace
}  // namespace belljar
