// `belljar policy explain --path` beside what a run with the same flags does, where links lead from one name to another.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"
#include "support_run.h"

namespace belljar::test {
namespace {

class ExplainPath : public Run {
 protected:
  void SetUp() override {
    beside_.make_dir("target");
    ASSERT_EQ(::symlink((beside_ / "target").c_str(), (beside_ / "out").c_str()), 0);
    workspace_.make_dir("real");
    workspace_.write("real/f", "s\n");
    ASSERT_EQ(::symlink("real", (workspace_ / "link").c_str()), 0);
    if (is_root()) beside_.give_to(user_uid(), user_gid());
    Run::SetUp();
  }
  // none, read or write: as the file can be used in a run.
  std::string done(const std::vector<std::string>& flags, const std::string& path) const {
    std::vector<std::string> args = flags;
    args.insert(args.end(),
                {"--", "/bin/sh", "-c",
                 "if ! cat \"$0\" >/dev/null 2>&1; then echo none; elif ( : >>\"$0\" ) 2>/dev/null; then echo write; else "
                 "echo read; fi",
                 path});
    return run_in(args).out;
  }
  std::string explained(const std::vector<std::string>& flags, const std::string& path) const {
    std::vector<std::string> args = {"policy", "explain"};
    args.insert(args.end(), flags.begin(), flags.end());
    args.insert(args.end(), {"--path", path});
    const std::string text = belljar(args, {.stdin_is = Input::kNull, .cwd = workspace_.path()}).out;
    const std::string line = text.substr(0, text.find('\n'));
    return line.substr(line.rfind(' ') + 1) + "\n";
  }
  TempDir beside_;
};

TEST_F(ExplainPath, SaysWhatTheRunDoesThroughLinks) {
  beside_.write("target/f", "s\n");
  if (is_root()) beside_.give_to(user_uid(), user_gid());
  const std::string link = workspace_ / "link", real = workspace_ / "real", out = beside_ / "out";
  struct Case {
    std::vector<std::string> flags;
    std::string path, access;
  };
  for (const Case& one :
       {Case{{"--hide", link}, "real/f", "none\n"}, Case{{"--hide", real}, "link/f", "none\n"},
        Case{{"--read", link}, "real/f", "read\n"}, Case{{"--read", real}, "link/f", "read\n"},
        Case{{"--write", out}, beside_ / "target/f", "write\n"}, Case{{"--read", out}, beside_ / "target/f", "read\n"},
        Case{{}, "link/f", "write\n"}, Case{{"--hide", link + "/other"}, "real/f", "write\n"}}) {
    const std::string flags = one.flags.empty() ? "" : one.flags[0] + " " + one.flags[1];
    EXPECT_EQ(explained(one.flags, one.path), one.access) << flags << ": " << one.path;
    EXPECT_EQ(done(one.flags, one.path), one.access) << flags << ": " << one.path;
  }
}

// Names that the broker and mounts hold, there or not.
TEST_F(ExplainPath, SaysWhatTheRunDoesToProtectedNames) {
  workspace_.make_dir("sub");
  workspace_.write(".vscode/x", "s\n");
  ASSERT_EQ(run({"git", "init", "-q", workspace_.path()}).exit_code, 0);
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  const auto written = [&](std::vector<std::string> flags, const std::string& path) {
    flags.insert(flags.end(),
                 {"--", "/bin/sh", "-c",
                  "mkdir -p \"${0%/*}\" 2>/dev/null; if ( : >>\"$0\" ) 2>/dev/null; then echo write; else echo read; fi",
                  workspace_ / path});
    return run_in(flags).out;
  };
  const TempDir place;
  const std::vector<std::string> all{"--policy", place.write("all.toml", "[filesystem]\nprotect = \"all\"\n")};
  for (const char* path : {".codex/a", ".vscode/x", "sub/.codex/a", ".git/config", ".git/hooks/pre-commit", "plain/a"}) {
    EXPECT_EQ(explained({}, path), written({}, path)) << path;
    EXPECT_EQ(explained(all, path), written(all, path)) << "protect all: " << path;
  }
  EXPECT_EQ(explained({}, ".codex/a"), "read\n");
  EXPECT_EQ(explained(all, ".git/config"), "read\n");
  EXPECT_EQ(explained({}, "plain/a"), "write\n");
}

TEST(PolicyCompile, ThePolicyInForceIsWrittenAndWhatIsNotHeldIsSaid) {
  const TempDir place;
  const std::vector<std::string> words{"policy", "compile", "--workspace", place.path(), "--write", "/srv", "--memory", "1GiB"};
  const auto compiled = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return belljar(more);
  };
  const Outcome seatbelt = compiled({"--for", "seatbelt"});
  EXPECT_EQ(seatbelt.exit_code, 0) << seatbelt;
  EXPECT_NE(seatbelt.out.find("(allow file-read* file-write* (subpath \"/srv\"))\n"), std::string::npos) << seatbelt;
  EXPECT_NE(seatbelt.out.find("(subpath \"" + place.path() + "\")"), std::string::npos) << seatbelt;
  EXPECT_NE(seatbelt.err.find("warning: seatbelt does not hold limits.memory: "), std::string::npos) << seatbelt;
  const Outcome windows = compiled({"--for", "windows"});
  EXPECT_NE(windows.out.find("\"job_memory_bytes\": 1073741824"), std::string::npos) << windows;
  EXPECT_EQ(windows.err.find("limits.memory"), std::string::npos) << windows;
  EXPECT_EQ(compiled({"--for", "plan9"}).exit_code, 125);
  EXPECT_EQ(compiled({"--for", "seatbelt", "--require", "limits.memory"}).exit_code, 125);
}

}  // namespace
}  // namespace belljar::test
