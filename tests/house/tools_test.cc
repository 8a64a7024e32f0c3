// The law of the house must be able to say no. Each check runs on a small tree of its own.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "support/built.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

const std::string kTools = std::string(kSourceDir) + "/tools/";

class Tree {
 public:
  Tree() {
    run({"git", "init", "-q", dir_.path()});
    write("src/ROOMS", "base:\nkernel:   base\nlaunch:   base kernel\npolicy:   base\n");
  }
  void write(const std::string& name, const std::string& text) const { dir_.write(name, text); }
  Outcome check(const std::string& tool) const { return run({kTools + tool}, {.cwd = dir_.path()}); }

 private:
  TempDir dir_;
};

class CheckRooms : public testing::Test {
 protected:
  void SetUp() override { BELLJAR_NEEDS(program("git")); }
  // What check-rooms says about one file.
  Outcome with(const std::string& name, const std::string& text) {
    tree_.write(name, text);
    return tree_.check("check-rooms");
  }
  Tree tree_;
};

TEST_F(CheckRooms, ListedIncludePassesUnlistedIsRefused) {
  EXPECT_EQ(with("src/kernel/a.cc", "#include \"base/x.h\"\n#include \"kernel/a.h\"\n#include \"belljar/error.h\"\n").exit_code, 0);
  const Outcome outcome = with("src/policy/b.cc", "\n#include \"kernel/a.h\"\n");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "src/policy/b.cc:2: policy may not include kernel/a.h (src/ROOMS)\n");
}

TEST_F(CheckRooms, PublicHeaderMayNotReachIntoSrc) {
  EXPECT_EQ(with("include/belljar/a.h", "#include \"belljar/b.h\"\n").exit_code, 0);
  EXPECT_EQ(with("include/belljar/a.h", "#include \"base/format.h\"\n").out,
            "include/belljar/a.h:1: a public header includes base/format.h\n");
}

TEST_F(CheckRooms, UnknownRoomIsRefused) {
  EXPECT_EQ(with("src/utils/a.cc", "").out, "src/utils/a.cc:0: room `utils` is not in src/ROOMS\n");
}

TEST_F(CheckRooms, OnlyLaunchMakesProcesses) {
  for (const char* code : {"  pid = fork();\n", "  ::posix_spawn(&pid, path);\n", "  syscall(SYS_clone3, &args, sizeof args);\n",
                           "  std::system(x);\n"}) {
    EXPECT_EQ(with("src/launch/a.cc", code).exit_code, 0) << code;
    EXPECT_EQ(with("src/kernel/a.cc", code).exit_code, 1) << code;
    tree_.write("src/kernel/a.cc", "");
  }
  for (const char* code :
       {"  // fork() is for launch\n", "  say(\"fork()\");\n", "  filter.fork(x);\n", "  SCMP_SYS(clone3);\n", "  unfork();\n"}) {
    EXPECT_EQ(with("src/kernel/a.cc", code).exit_code, 0) << code;
  }
}

TEST(CheckDocs, ASourceThatAPageNamesIsThere) {
  BELLJAR_NEEDS(program("git"));
  const Tree tree;
  tree.write("src/kernel/a.cc", "");
  tree.write("docs/A.md", "see `src/kernel/a.cc`, `kernel/a.cc` and a.cc; tests/x_test.cc stands for many\n");
  EXPECT_EQ(tree.check("check-docs").exit_code, 0);
  tree.write("src/kernel/README.md", "\n| mounts | `a.cc`, `gone.cc` |\n");
  EXPECT_EQ(tree.check("check-docs").out, "src/kernel/README.md:2: there is no gone.cc\n");
}

TEST_F(CheckRooms, NobodyAsksWhichBackendItHas) {
  EXPECT_EQ(with("src/launch/a.cc", "if (policy.backend == \"native\") return;\n").exit_code, 1);
  EXPECT_EQ(with("src/launch/a.cc", "options.backend = \"native\";\n").exit_code, 0);
}

TEST(CheckLeaks, MachinePathsAndRegistryHostsAreFound) {
  BELLJAR_NEEDS(program("git"));
  const TempDir dir;
  const auto check = [&](const std::string& text) {
    dir.write("file", text);
    run({"git", "init", "-q", "."}, {.cwd = dir.path()});
    run({"git", "add", "file"}, {.cwd = dir.path()});
    return run({kTools + "check-leaks"}, {.cwd = dir.path()}).exit_code;
  };
  EXPECT_EQ(check("nothing of the kind, /home/dev/project, example.com\n"), 0);
  EXPECT_NE(check(std::string("see /wo") + "rk/main\n"), 0);
  EXPECT_NE(check(std::string("https://deb.deb") + "ian.org/debian\n"), 0);
}

TEST(Changed, IsWhatOneSessionCommittedAndWhatIsNew) {
  BELLJAR_NEEDS(program("git"));
  const TempDir dir;
  const auto git = [&](const std::vector<std::string>& words, const std::string& date) {
    std::vector<std::string> command = {"git", "-c", "user.name=a", "-c", "user.email=a@b"};
    command.insert(command.end(), words.begin(), words.end());
    const Outcome outcome =
        run(command, {.cwd = dir.path(), .env = {{"GIT_AUTHOR_DATE", date}, {"GIT_COMMITTER_DATE", "2026-01-02T12:00:00Z"}}});
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
  };
  const auto commit = [&](const std::string& name, const std::string& date) {
    dir.write(name, name);
    git({"add", name}, date);
    git({"commit", "-q", "-m", name}, date);
  };
  const auto changed = [&] { return run({kTools + "changed"}, {.cwd = dir.path()}).out; };
  git({"init", "-q", "."}, "");
  commit("first", "2026-01-02T07:00:00Z");
  EXPECT_EQ(changed(), "first\n") << "there is nothing before it";
  commit("second", "2026-01-02T11:00:00Z");
  commit("third", "2026-01-02T12:00:00Z");
  dir.write("new", "");
  EXPECT_EQ(changed(), "new\nsecond\nthird\n");
  EXPECT_EQ(run({kTools + "changed", "--all"}, {.cwd = dir.path()}).out, "new\nfirst\nsecond\nthird\n");
}

// As ctest writes it: a row is a test, and a reason where it was skipped, or `failed`, or nothing.
class TestReport : public testing::Test {
 protected:
  void SetUp() override { BELLJAR_NEEDS(program("python3")); }
  std::string results(const std::string& name, const std::vector<std::pair<std::string, std::string>>& rows) const {
    std::string text = "<?xml version=\"1.0\"?>\n<testsuite time=\"7\">\n";
    for (const auto& [test, what] : rows) {
      text += "<testcase name=\"" + test + "\" time=\"1.5\" status=\"" +
              (what.empty()       ? "run\">"
               : what == "failed" ? "fail\"><failure message=\"\"/>"
                                  : "notrun\"><skipped message=\"x\"/>");
      text += "<system-out>/x/a.cc:7: Skipped\n" + what + "\n\n[  SKIPPED ] " + test + " (0 ms)\n</system-out></testcase>\n";
    }
    return dir_.write(name, text + "</testsuite>\n");
  }
  Outcome report(const std::vector<std::string>& runs) const {
    std::vector<std::string> words = {kTools + "test-report", "--skips",
                                      dir_.write("accepted", "^unit .*: needs a thing$  # why\n")};
    words.insert(words.end(), runs.begin(), runs.end());
    return run(words);
  }
  const TempDir dir_;
};

TEST_F(TestReport, CountsWhatCameOfTheTests) {
  const Outcome fine = report({"root=" + results("a.xml", {{"A.B", ""}, {"A.C", ""}})});
  EXPECT_EQ(fine.exit_code, 0) << fine;
  EXPECT_EQ(fine.out,
            "suite  tests  passed  failed  skipped  seconds\n"
            "root       2       2       0        0        7\n");
  const Outcome failed = report({"root=" + results("a.xml", {{"A.B", "failed"}, {"A.C", ""}})});
  EXPECT_EQ(failed.exit_code, 1) << failed;
  EXPECT_NE(failed.out.find("failed: root: A.B\n"), std::string::npos) << failed;
  results("a.again.xml", {{"A.B", ""}});
  const Outcome again = report({"root=" + (dir_ / "a.xml")});
  EXPECT_EQ(again.exit_code, 0) << again;
  EXPECT_NE(again.out.find("unsteady, passed alone only: root: A.B\n"), std::string::npos) << again;
  EXPECT_NE(report({"root=" + (dir_ / "none.xml")}).exit_code, 0);
}

TEST_F(TestReport, OnlyAcceptedReasonsToSkipPass) {
  dir_.write("a.json", R"({"tests":[{"name":"A.B","properties":[{"name":"LABELS","value":["unit"]}]}]})");
  const Outcome accepted = report({"root=" + results("a.xml", {{"A.B", "needs a thing"}})});
  EXPECT_EQ(accepted.exit_code, 0) << accepted;
  EXPECT_NE(accepted.out.find("skipped: root: 1: needs a thing\n"), std::string::npos) << accepted;
  EXPECT_EQ(report({"root=" + results("a.xml", {{"A.C", "needs a thing"}})}).exit_code, 1) << "another label";
  EXPECT_EQ(report({"root=" + results("a.xml", {{"A.B", "I was not in the mood"}})}).exit_code, 1);
  EXPECT_EQ(report({"root=" + results("a.xml", {{"A.B", " "}})}).exit_code, 1) << "a skip without a reason";
}

TEST_F(TestReport, WhatIsForOneIdentityRunsSomewhere) {
  const std::string root = "root=" + results("a.xml", {{"A.B", "only as an ordinary user"}});
  EXPECT_EQ(report({root, "user=" + results("b.xml", {{"A.B", ""}})}).exit_code, 0);
  const Outcome nowhere = report({root, "user=" + results("b.xml", {{"A.C", ""}})});
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_NE(nowhere.out.find("A.B: only as an ordinary user (and it ran nowhere else)"), std::string::npos) << nowhere;
}

class CheckFeatures : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(program("python3"));
    std::filesystem::create_directory(dir_ / "tools");
    std::filesystem::copy(kTools + "check-features", dir_ / "tools/check-features");
    std::filesystem::create_symlink(std::string(kSourceDir) + "/tests", dir_ / "tests");
  }
  // What the check says once `line` stands for F-000-05.
  Outcome with(const std::string& line, const std::vector<std::string>& results = {}) const {
    std::string text = read(std::string(kSourceDir) + "/docs/features.tsv");
    const std::size_t begin = text.find("\nF-000-05\t") + 1;
    text.replace(begin, text.find('\n', begin) - begin, line);
    dir_.write("docs/features.tsv", text);
    std::vector<std::string> words = {dir_ / "tools/check-features", "--fix"};
    words.insert(words.end(), results.begin(), results.end());
    return run(words);
  }
  static std::string read(const std::string& name) {
    std::ifstream file(name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const TempDir dir_;
};

TEST_F(CheckFeatures, EachRowIsThereOnceAndNamesATestThatExists) {
  EXPECT_EQ(with("F-000-05\twork\tit works\t`CheckFeatures.*`").exit_code, 0);
  EXPECT_NE(read(dir_ / "docs/FEATURES.md").find("| F-000-05 | it works | work | `CheckFeatures.*` |\n"), std::string::npos);
  for (const auto& [line, fault] : std::vector<std::pair<std::string, std::string>>{
           {"", "F-000-05: 0 lines"},
           {"F-000-05\twork\tx\t`CheckFeatures.*`\nF-000-05\tclaim\tx\ty", "F-000-05: 2 lines"},
           {"F-000-05\twork\tx\tthe code", "F-000-05: works, and names no test"},
           {"F-000-05\twork\tx\t`CheckFeatures.Nope`", "F-000-05: no test is called CheckFeatures.Nope"},
           {"F-000-05\twork\tx\tconformance: *nope*", "F-000-05: no conformance row is called nope"},
           {"F-000-05\tdone\tx\ty", "F-000-05: not ID, state, feature and proof"}}) {
    const Outcome outcome = with(line);
    EXPECT_EQ(outcome.exit_code, 1) << line;
    EXPECT_EQ(outcome.err, "check-features: " + fault + "\n") << line;
  }
}

TEST_F(CheckFeatures, ATestThatIsNamedHasPassed) {
  const std::string line = "F-000-05\twork\tx\t`CheckFeatures.ATestThatIsNamedHasPassed`";
  const auto results = [&](const std::string& status) {
    return dir_.write(status + ".xml", "<testsuite><testcase name=\"On/CheckFeatures.ATestThatIsNamedHasPassed/x\" status=\"" +
                                           status + "\"/></testsuite>");
  };
  EXPECT_EQ(with(line, {results("run")}).exit_code, 0);
  EXPECT_EQ(with(line, {results("fail"), results("run")}).exit_code, 0) << "as the other user";
  const Outcome failed = with(line, {results("fail")});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_EQ(failed.err, "check-features: F-000-05: CheckFeatures.ATestThatIsNamedHasPassed did not pass in this run\n");
}

}  // namespace
}  // namespace belljar::test
