// The law of the house must be able to say no. Each check runs on a small tree of its own.
#include <gtest/gtest.h>

#include <string>

#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

const std::string kTools = std::string(BELLJAR_SOURCE_DIR) + "/tools/";

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

TEST(CheckSkips, OnlyAcceptedReasonsPass) {
  const TempDir dir;
  const auto log = [](const std::string& test, const std::string& reason) {
    return "1/1 Testing: " + test + "\n1/1 Test: " + test + "\nOutput:\n/x/a.cc:7: Skipped\n" + reason + "\n\n[  SKIPPED ] " +
           test + " (0 ms)\n<end of output>\n";
  };
  const auto check = [&](const std::string& text) { return run({kTools + "check-skips", dir.write("LastTest.log", text)}); };
  EXPECT_EQ(check("1/1 Test: A.B\n[       OK ] A.B (0 ms)\n").out, "skips: none\n");
  const Outcome accepted = check(log("A.B", "only as root"));
  EXPECT_EQ(accepted.exit_code, 0) << accepted;
  EXPECT_EQ(accepted.out, "skips: 1\n  A.B: only as root\n");
  EXPECT_EQ(check(log("A.B", "I was not in the mood")).exit_code, 1);
  EXPECT_EQ(check(log("A.B", "only as root") + log("C.D", "")).exit_code, 1) << "a skip without a reason";
}

}  // namespace
}  // namespace belljar::test
