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

// Each policy with each path: what is explained is what the run then does. What is private, or goes to a layer, has a note instead.
TEST_F(ExplainPath, SaysWhatTheRunDoesWhateverThePolicy) {
  const TempDir home(place_of_programs()), outer(place_of_programs()), place;
  for (const char* file : {".vscode/x", "sub/.codex/a", "plain/a", "plain/deep/a", "plain/a.key", "mnt/v"})
    workspace_.write(file, "s\n");
  for (const char* file :
       {"a", "x.key", "hidden/s", "hidden/sub/s", "w/a", "w/ro/a", "w/ro/rw/a", "w/.vscode/x", "vol/v", "vol/.vscode/x", "at/v"})
    outer.write(file, "s\n");
  for (const char* file : {".ssh/id", ".netrc", ".config/app/s", "notes/a"}) home.write(file, "s\n");
  ASSERT_EQ(run({"git", "init", "-q", workspace_.path()}).exit_code, 0);
  if (is_root()) {
    for (const TempDir* tree : std::vector<const TempDir*>{&workspace_, &home, &outer}) tree->give_to(user_uid(), user_gid());
  }
  const auto toml = [&](const std::string& name, const std::string& text) {
    return std::vector<std::string>{"--policy", place.write(name + ".toml", text)};
  };
  const auto entry = [](const std::string& path, const std::string& access) {
    return "[[filesystem.entries]]\npath = \"" + path + "\"\naccess = \"" + access + "\"\n";
  };
  const auto volume = [&](const std::string& target, const std::string& readonly) {
    return "[[filesystem.volumes]]\nsource = \"" + (outer / "vol") + "\"\ntarget = \"" + target + "\"\nreadonly = " + readonly +
           "\n";
  };
  const std::string w = outer / "w", hidden = outer / "hidden";
  std::string named;
  for (const char* path : {"/usr", "/bin", "/lib", "/lib64", "/etc"}) named += entry(path, "read");
  const std::vector<std::vector<std::string>> policies = {
      {},
      {"--hide", hidden},
      {"--hide", hidden, "--write", hidden + "/sub"},
      {"--hide", hidden + "/s", "--hide", workspace_ / "plain/deep"},
      {"--hide", hidden, "--hide", hidden + "/sub"},
      {"--write", w},
      {"--write", w, "--read", w + "/ro"},
      {"--write", w, "--read", w + "/ro", "--write", w + "/ro/rw"},
      {"--write", w, "--hide", w + "/ro/a"},
      {"--read", workspace_ / "plain", "--write", workspace_ / "plain/deep"},
      {"--hide", home / "notes", "--write", home / ".config"},
      {"--read", home / ".ssh"},
      toml("none", "[filesystem]\nsecrets = \"none\"\nprotect = \"none\"\n"),
      toml("all", "[filesystem]\nprotect = \"all\"\n"),
      toml("readonly", "mode = \"read-only\"\n"),
      toml("pattern", "[[filesystem.entries]]\nglob = \"**/*.key\"\naccess = \"none\"\n"),
      toml("root", entry("/", "none") + named + entry(w, "write")),
      toml("volume", volume(outer / "at", "false")),
      toml("seen", volume(workspace_ / "mnt", "true")),
  };
  std::vector<std::string> paths = {workspace_ / "plain/a",      workspace_ / "plain/deep/a", workspace_ / "plain/a.key",
                                    workspace_ / "real/f",       workspace_ / "link/f",       workspace_ / ".vscode/x",
                                    workspace_ / "sub/.codex/a", workspace_ / ".git/config",  workspace_ / "mnt/v"};
  for (const char* name : {"a", "x.key", "hidden/s", "hidden/sub/s", "w/a", "w/ro/a", "w/ro/rw/a", "w/.vscode/x", "at/v"})
    paths.push_back(outer / name);
  for (const char* name : {".ssh/id", ".netrc", ".config/app/s", "notes/a"}) paths.push_back(home / name);
  const RunOptions options{.stdin_is = Input::kNull, .cwd = workspace_.path(), .env = {{"HOME", home.path()}}};
  for (const std::vector<std::string>& flags : policies) {
    std::vector<std::string> words = flags;
    words.insert(words.begin(), "run");
    words.insert(words.end(),
                 {"--", "/bin/sh", "-c",
                  "for p; do if ! cat \"$p\" >/dev/null 2>&1; then echo \"$p: none\"; elif ( : >>\"$p\" ) 2>/dev/null; then echo "
                  "\"$p: write\"; else echo \"$p: read\"; fi; done",
                  "sh"});
    words.insert(words.end(), paths.begin(), paths.end());
    const Outcome done = belljar(words, options);
    std::string explained;
    for (const std::string& path : paths) {
      words = {"policy", "explain"};
      words.insert(words.end(), flags.begin(), flags.end());
      words.insert(words.end(), {"--path", path});
      const std::string text = belljar(words, options).out, line = text.substr(0, text.find('\n'));
      explained += path + line.substr(line.rfind(": ")) + "\n";
    }
    EXPECT_EQ(done.out, explained) << testing::PrintToString(flags) << done.err;
  }
  std::vector<std::string> asked = toml("volume", volume(outer / "at", "false"));
  asked.insert(asked.begin(), {"policy", "explain", "--path", outer / "at/v"});
  const Outcome shown = belljar(asked, options);
  EXPECT_NE(shown.out.find("note:  the volume `" + (outer / "vol") + "` is shown there\n"), std::string::npos) << shown;
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
