// The policy commands as people call them: the real program, real files in a directory of our own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "support/built.h"
#include "support/has.h"

namespace {

using belljar::test::has;
using belljar::test::kBelljar;

namespace fs = std::filesystem;

class PolicyCommand : public testing::Test {
 protected:
  PolicyCommand() {
    char name[] = "/var/tmp/belljar-test-XXXXXX";
    root_ = mkdtemp(name);
    fs::create_directories(root_ / "w/.belljar");
    fs::create_directories(root_ / "home/.config/belljar");
  }
  ~PolicyCommand() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) { std::ofstream(root_ / name) << text; }

  struct Outcome {
    int code = -1;
    std::string out, err;
  };
  // `belljar ARGS` in the workspace; a shell puts stderr into a file.
  Outcome belljar(const std::string& arguments) const { return outcome_of(std::string(kBelljar) + " " + arguments); }
  Outcome outcome_of(const std::string& line) const {
    const std::string command = "cd '" + (root_ / "w").string() + "' && env -i PATH=/usr/bin:/bin HOME='" +
                                (root_ / "home").string() + "' timeout 120 " + line + " >../out 2>../err";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read("out"), read("err")};
  }
  std::string read(const std::string& name) const {
    std::ifstream file(root_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string path(const std::string& name) const { return (root_ / name).string(); }

  fs::path root_;
};

TEST_F(PolicyCommand, CheckTakesAGoodFileAndRefusesABadOneWithACaret) {
  write("good.toml", "mode = \"read-only\"\n");
  write("bad.toml", "[limits]\nmemmory = \"1GiB\"\n");
  const Outcome good = belljar("policy check ../good.toml");
  EXPECT_EQ(good.code, 0);
  EXPECT_EQ(good.out, "../good.toml: ok\n");
  EXPECT_EQ(good.err, "");
  const Outcome bad = belljar("policy check ../good.toml ../bad.toml");
  EXPECT_EQ(bad.code, 125);
  EXPECT_EQ(bad.out, "../good.toml: ok\n");
  EXPECT_EQ(bad.err,
            "belljar: ../bad.toml:2:1: unknown key `limits.memmory`\n"
            "  2 | memmory = \"1GiB\"\n"
            "    | ^\n"
            "  reason: every key must be known, so that a mistyped rule is not dropped in silence\n"
            "  next:   did you mean `limits.memory`?\n");
}

// All that a start refuses before it touches the kernel, at once.
TEST_F(PolicyCommand, CheckRefusesWhatNoStartAcceptsAndTellsAllOfIt) {
  write(
      "bad.toml",
      "[limits]\nmemory = \"12KiB\"\npids = 0\n[network]\nallowed_domains = [\"example.com\"]\n[filesystem]\ntmp_size = \"4KiB\"\n"
      "writable_roots = [\"/proc\"]\n[[filesystem.entries]]\npath = \"/none/at/all\"\naccess = \"write\"\n");
  const Outcome bad = belljar("policy check ../bad.toml");
  EXPECT_EQ(bad.code, 125);
  EXPECT_EQ(bad.out, "");
  for (const char* part : {"bad.toml:3:8: `0` is not", "bad.toml:5: cannot enforce network.allowed_domains",
                           "bad.toml:7: filesystem.tmp_size is 4KiB", "bad.toml:2: limits.memory = 12KiB cannot be enforced",
                           "cannot make `/proc` writable", "cannot make `/none/at/all` writable"})
    EXPECT_TRUE(has(bad.err, part)) << part << "\n" << bad.err;
  write("good.toml",
        "[limits]\nmemory = \"12MiB\"\npids = 9\n[network]\nmode = \"proxy\"\nallowed_domains = [\"example.com\"]\n[filesystem]\n"
        "tmp_size = \"4MiB\"\n");
  const Outcome good = belljar("policy check ../good.toml");
  EXPECT_EQ(good.out, "../good.toml: ok\n") << good.err;
  write("w/.belljar/policy.toml", "mode = \"danger-full-access\"\n");
  const Outcome project = belljar("policy check .belljar/policy.toml");
  EXPECT_EQ(project.code, 125);
  EXPECT_TRUE(has(project.err, "a project file may not widen `mode`")) << project.err;
}

TEST_F(PolicyCommand, CheckWarnsOfTwoRulesForOnePath) {
  write("p.toml",
        "[[filesystem.entries]]\npath = \"/a\"\naccess = \"read\"\n[[filesystem.entries]]\npath = \"/a\"\naccess = \"none\"\n");
  const Outcome checked = belljar("policy check ../p.toml");
  EXPECT_EQ(checked.code, 0);
  EXPECT_TRUE(has(checked.err,
                  "belljar: warning: policy ../p.toml:5: `/a` has two rules: read (policy ../p.toml:2) and none (policy "
                  "../p.toml:5); it is none"))
      << checked.err;
}

TEST_F(PolicyCommand, LayersComeFromUserProjectFileAndFlagsInThisOrder) {
  write("home/.config/belljar/policy.toml", "[limits]\npids = 10\nmemory = \"1GiB\"\nopen_files = 9\ntimeout = 9\n");
  write("w/.belljar/policy.toml", "[limits]\npids = 9\nmemory = \"512MiB\"\nopen_files = 8\n");
  write("p.toml", "[limits]\npids = 20\nmemory = \"2GiB\"\n");
  const Outcome explained = belljar("policy explain --policy ../p.toml --pids 30");
  ASSERT_EQ(explained.code, 0) << explained.err;
  EXPECT_TRUE(has(explained.out, "limits.pids = 30  # flag --pids\n")) << explained.out;
  EXPECT_TRUE(has(explained.out, "limits.memory = \"2GiB\"  # policy ../p.toml:3\n"));
  EXPECT_TRUE(has(explained.out, "limits.open_files = 8  # project " + path("w/.belljar/policy.toml") + ":4\n"));
  EXPECT_TRUE(has(explained.out, "limits.timeout = \"9s\"  # user " + path("home/.config/belljar/policy.toml") + ":5\n"));
}

TEST_F(PolicyCommand, AProjectFileThatWidensStopsEverything) {
  write("w/.belljar/policy.toml", "[network]\nmode = \"host\"\n");
  const Outcome refused = belljar("policy show");
  EXPECT_EQ(refused.code, 125);
  EXPECT_EQ(refused.out, "");
  EXPECT_TRUE(
      has(refused.err, "belljar: project " + path("w/.belljar/policy.toml") + ":2: a project file may not widen `network.mode`\n"))
      << refused.err;
  write("w/.belljar/policy.toml", "[network]\nmode = \"none\"\n");
  EXPECT_EQ(belljar("policy show").code, 0);
}

TEST_F(PolicyCommand, AnyFileInsideTheWorkspaceMayOnlyNarrow) {
  write("w/p.toml", "[network]\nmode = \"host\"\n");
  EXPECT_TRUE(has(belljar("policy show --policy ./p.toml").err, "may not widen `network.mode`"));
  write("p.toml", "[network]\nmode = \"host\"\n");
  EXPECT_EQ(belljar("policy show --policy ../p.toml").code, 0);
  // Not fooled by a link that lies outside and points inside.
  fs::create_symlink(path("w/p.toml"), path("link.toml"));
  EXPECT_TRUE(has(belljar("policy show --policy ../link.toml").err, "may not widen `network.mode`"));
}

TEST_F(PolicyCommand, LinksFifosDirectoriesAndHugeFilesInTheWorkspaceAreErrorsAndNoHang) {
  const std::string file = path("w/.belljar/policy.toml");
  write("p.toml", "mode = \"read-only\"\n");
  fs::create_symlink(path("p.toml"), file);
  EXPECT_TRUE(has(belljar("policy show").err, "a symbolic link in the workspace can be pointed elsewhere by the command"));
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_TRUE(has(belljar("policy show").err, "it is not a regular file"));
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_TRUE(has(belljar("policy show").err, "it is a directory"));
  fs::remove(file);
  write("w/.belljar/policy.toml", "");
  fs::resize_file(file, 9U << 20);
  const Outcome huge = belljar("policy show");
  EXPECT_EQ(huge.code, 125);
  EXPECT_TRUE(has(huge.err, "it is larger than 8 MiB"));
  fs::remove_all(root_ / "w/.belljar");
  fs::create_directory_symlink(root_ / "home", root_ / "w/.belljar");
  EXPECT_EQ(belljar("policy show").code, 125);
  fs::remove(root_ / "w/.belljar");
  EXPECT_EQ(belljar("policy show").code, 0);
}

TEST_F(PolicyCommand, AnUnreadableUserFileIsAnErrorAndAnAbsentOneIsNot) {
  EXPECT_EQ(belljar("policy show").code, 0);
  fs::create_directory(root_ / "home/.config/belljar/policy.toml");
  const Outcome refused = belljar("policy show");
  EXPECT_EQ(refused.code, 125);
  EXPECT_TRUE(has(refused.err, "cannot read policy")) << refused.err;
}

TEST_F(PolicyCommand, PolicyTakesModesProfilesAndFiles) {
  EXPECT_TRUE(has(belljar("policy explain --policy read-only").out, "mode = \"read-only\"  # flag --policy\n"));
  EXPECT_TRUE(has(belljar("policy explain --policy build").out, "profile = \"build\"  # flag --policy\n"));
  EXPECT_TRUE(has(belljar("policy explain --policy danger-full-access").out, "filesystem.entries += write /  # flag --policy\n"));
  const Outcome unknown = belljar("policy explain --policy biuld");
  EXPECT_EQ(unknown.code, 125);
  EXPECT_TRUE(has(unknown.err, "belljar: there is no profile `biuld`\n")) << unknown.err;
  EXPECT_TRUE(has(unknown.err, "  next:   did you mean `build`?\n"));
  const Outcome missing = belljar("policy explain --policy ./none.toml");
  EXPECT_EQ(missing.code, 125);
  EXPECT_TRUE(has(missing.err, "belljar: cannot read policy `./none.toml`: No such file or directory (open)\n")) << missing.err;
}

TEST_F(PolicyCommand, TheUserMayChooseAProfileAndTheProjectMayNot) {
  write("home/.config/belljar/policy.toml", "profile = \"build\"\n");
  EXPECT_TRUE(has(belljar("policy explain").out, "profile = \"build\"  # user "));
  EXPECT_TRUE(has(belljar("policy explain --policy dev").out, "profile = \"dev\"  # flag --policy"));
  write("w/.belljar/policy.toml", "profile = \"dev\"\n");
  EXPECT_TRUE(has(belljar("policy explain").err, "may not widen `profile`"));
}

TEST_F(PolicyCommand, WrongWordsGetOneLineAndTheNearestName) {
  struct Case {
    const char* arguments;
    const char* err;
  };
  for (const Case& one :
       {Case{"polcy show", "belljar: `polcy` was not expected here\n  next:   did you mean `policy`?\n"},
        Case{"policy shwo", "belljar: `shwo` was not expected here\n  next:   did you mean `show`?\n"},
        Case{"policy explain --memroy 1G", "belljar: unknown option `--memroy`\n  next:   did you mean `--memory`?\n"},
        Case{"policy show --wirte=/x", "belljar: unknown option `--wirte`\n  next:   did you mean `--write`?\n"},
        Case{"policy show --worksapce /x", "belljar: unknown option `--worksapce`\n  next:   did you mean `--workspace`?\n"},
        Case{"policy show --zzzzzzzz",
             "belljar: unknown option `--zzzzzzzz`\n  next:   `belljar policy show --help` lists the options\n"},
        Case{"policy show --memory 1Q",
             "belljar: --memory: `1Q` is not a size\n  reason: unit `Q` is not known\n  next:   write it like 512MiB, 1.5GiB or "
             "200000\n"},
        Case{"policy show --net hots",
             "belljar: --net: `hots` is not a value of `network.mode`\n  reason: it takes one of `none`, `proxy`, `host`\n  next:  "
             " did you mean `host`?\n"},
        Case{"policy show --transparent=maybe",
             "belljar: --transparent: `maybe` is no value of it: true|false\n  next:   see `belljar policy show --help`\n"},
        Case{"policy show --publish 0", "belljar: --publish: `0` is not a port (1 to 65535)\n"},
        Case{"policy show --pass-env 'FOO*'",
             "belljar: --pass-env: `FOO*` cannot be the name of a variable\n  reason: names are exact here, not patterns: what a "
             "pattern withholds passes one by one\n  next:   name each variable; patterns go into environment.include\n"},
        Case{"policy show --write ''", "belljar: --write: `` cannot be a path\n  reason: it is empty\n"}}) {
    const Outcome outcome = belljar(one.arguments);
    EXPECT_EQ(outcome.code, 125) << one.arguments;
    EXPECT_EQ(outcome.err, one.err) << one.arguments;
    EXPECT_EQ(outcome.out, "") << one.arguments;
  }
}

TEST_F(PolicyCommand, EveryFlagSetsItsKey) {
  const Outcome explained = belljar(
      "policy explain --backend landlock --require a --require b --accept c --enable-weaker-nested-sandbox --allow-nested-userns "
      "--allow-root-uid "
      "--write /wr --write rel --read /rd --hide /hd --siblings hidden --device /dev/dri --env 'A=1 = 2' --pass-env TOKEN --net "
      "proxy "
      "--allow-local-binding=false "
      "--allow-unix-socket /run/s --allow-all-unix-sockets --publish 80 --allow-domain d.example --deny-domain e.example --timeout "
      "30s --max-timeout 40 "
      "--idle-timeout 5 --kill-grace 1 --cpus 1.5 --cpu-request 0.5 --memory 1G --memory-request 1M --pids 9 --open-files 10 "
      "--file-size 11 --disk 12 "
      "--write-quota 13 --output-bytes 14 --output-action kill");
  ASSERT_EQ(explained.code, 0) << explained.err;
  const std::string lines[] = {"backend = \"landlock\"  # flag --backend",
                               "require += \"a\"  # flag --require",
                               "require += \"b\"  # flag --require",
                               "accept += \"c\"  # flag --accept",
                               "enable_weaker_nested_sandbox = true  # flag --enable-weaker-nested-sandbox",
                               "allow_nested_userns = true  # flag --allow-nested-userns",
                               "allow_root_uid = true  # flag --allow-root-uid",
                               "filesystem.entries += write /wr  # flag --write",
                               "filesystem.entries += write " + path("w/rel") + "  # flag --write",
                               "filesystem.entries += read  /rd  # flag --read",
                               "filesystem.entries += none  /hd  # flag --hide",
                               "filesystem.siblings = \"hidden\"  # flag --siblings",
                               "filesystem.devices += \"/dev/dri\"  # flag --device",
                               "environment.set += A = \"1 = 2\"  # flag --env",
                               "environment.pass += \"TOKEN\"  # flag --pass-env",
                               "network.mode = \"proxy\"  # flag --net",
                               "network.allow_local_binding = false  # flag --allow-local-binding",
                               "network.allow_unix_sockets += \"/run/s\"  # flag --allow-unix-socket",
                               "network.allow_all_unix_sockets = true  # flag --allow-all-unix-sockets",
                               "network.publish += 80  # flag --publish",
                               "network.allowed_domains += \"d.example\"  # flag --allow-domain",
                               "network.denied_domains += \"e.example\"  # flag --deny-domain",
                               "limits.timeout = \"30s\"  # flag --timeout",
                               "limits.max_timeout = \"40s\"  # flag --max-timeout",
                               "limits.idle_timeout = \"5s\"  # flag --idle-timeout",
                               "limits.kill_grace = \"1s\"  # flag --kill-grace",
                               "limits.cpus = 1.5  # flag --cpus",
                               "limits.cpu_request = 0.5  # flag --cpu-request",
                               "limits.memory = \"1GiB\"  # flag --memory",
                               "limits.memory_request = \"1MiB\"  # flag --memory-request",
                               "limits.pids = 9  # flag --pids",
                               "limits.open_files = 10  # flag --open-files",
                               "limits.file_size = \"11\"  # flag --file-size",
                               "limits.disk = \"12\"  # flag --disk",
                               "limits.write_quota = \"13\"  # flag --write-quota",
                               "limits.output_bytes = \"14\"  # flag --output-bytes",
                               "limits.output_action = \"kill\"  # flag --output-action"};
  for (const std::string& line : lines) EXPECT_TRUE(has(explained.out, "\n" + line + "\n")) << line;
}

TEST_F(PolicyCommand, ADomainToAllowMeansTheProxy) {
  EXPECT_TRUE(has(belljar("policy explain --allow-domain a.example").out, "network.mode = \"proxy\"  # flag --allow-domain\n"));
  EXPECT_EQ(belljar("policy explain --allow-domain a.example --net host").code, 125);
}

TEST_F(PolicyCommand, HomeAndRootAreNoWorkspaceUnlessNamedTwice) {
  const std::string home = path("home");
  EXPECT_EQ(belljar("policy show --workspace /").code, 125);
  EXPECT_TRUE(has(belljar("policy show --workspace " + home).err, "everything in your home directory would be writable"));
  EXPECT_EQ(belljar("policy show --workspace " + home + " --workspace " + home).code, 0);
  EXPECT_EQ(belljar("policy show --workspace / --workspace /").code, 0);
  EXPECT_EQ(belljar("policy show --workspace ../w").code, 0);
  EXPECT_TRUE(has(belljar("policy show --workspace ../none").err,
                  "belljar: cannot use workspace `../none`: No such file or directory (realpath)\n"));
  write("file", "");
  EXPECT_TRUE(has(belljar("policy show --workspace ../file").err, "Not a directory"));
}

TEST_F(PolicyCommand, InAWorkspaceThatHoldsTheHomeTheUsersFileMayOnlyNarrow) {
  write("home/.config/belljar/policy.toml", "[network]\nmode = \"host\"\n");
  EXPECT_EQ(belljar("policy show").code, 0);
  const std::string home = path("home");
  EXPECT_TRUE(has(belljar("policy show --workspace " + home + " --workspace " + home).err, "may not widen `network.mode`"));
}

TEST_F(PolicyCommand, ExplainPathAndJson) {
  const Outcome text = belljar("policy explain --path '~/.ssh/id' --hide /x");
  EXPECT_TRUE(has(text.out, "/.ssh/id: none\n  rule:  none ")) << text.out;
  const Outcome json = belljar("policy explain --json --path /x/y --hide /x");
  EXPECT_TRUE(has(
      json.out,
      R"("access":"none","rule":{"path":"/x","target":"/x","glob":false,"access":"none","origin":{"layer":"flag --hide","file":"","line":0}})"))
      << json.out;
}

TEST_F(PolicyCommand, AnEmptyHomeHidesTheSecretsOfTheAccount) {
  const passwd* const account = getpwuid(getuid());  // NOLINT(concurrency-mt-unsafe): one thread
  if (account == nullptr || std::string_view(account->pw_dir) == "/") GTEST_SKIP() << "needs an account with a home directory";
  const std::string secret = "/" + std::string(account->pw_dir).substr(1) + "/.ssh", rule = "none  " + secret + "  #";
  // A later HOME= of env(1) counts.
  for (const char* home : {"HOME=", "HOME=/nosuch", "-u HOME"}) {
    const Outcome explained = outcome_of(std::string("env ") + home + " " + kBelljar + " policy explain --all");
    EXPECT_TRUE(has(explained.out, rule)) << home << explained.out << explained.err;
  }
  EXPECT_TRUE(has(outcome_of("env HOME= " + std::string(kBelljar) + " policy explain --path " + secret + " --read " + secret).out,
                  ": read"));
}

TEST_F(PolicyCommand, ProtectedNamesAreListedWithTheirReaders) {
  const Outcome names = outcome_of(std::string(kBelljar) + " policy names");
  EXPECT_TRUE(has(names.out, "| `.helix` | Helix | languages.toml")) << names.out << names.err;
  EXPECT_TRUE(has(names.out, "| `mise.*toml` | mise |")) << names.out;
}

TEST_F(PolicyCommand, StdoutClosedEarlyIsAnErrorAndNoCrash) {
  const int status =
      std::system((std::string("cd /; HOME=/nonexistent ") + kBelljar + " policy keys >/dev/full 2>" + path("err")).c_str());
  EXPECT_EQ(WEXITSTATUS(status), 125);
  EXPECT_TRUE(has(read("err"), "cannot write to stdout: No space left on device (write)"));
}

}  // namespace
