// What `belljar run` says to input that is wrong and to a machine that is full: one clear message, the right exit code, nothing
// left behind (issue 2, "Bad input"). Every refusal has a twin that works.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "e2e/support_run.h"
#include "support/as_user.h"
#include "support/built.h"
#include "support/has.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

struct Bad {
  const char* name;
  std::vector<std::string> args;
  int exit_code;
  std::string_view says;
};
class BadInput : public Run, public testing::WithParamInterface<Bad> {};

TEST_P(BadInput, IsOneClearMessage) {
  const Leftovers left({workspace_.path()});
  const Outcome outcome = run_in(GetParam().args);
  EXPECT_EQ(outcome.exit_code, GetParam().exit_code) << outcome;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.find("belljar: "), 0U) << outcome;
  EXPECT_NE(outcome.err.find(GetParam().says), std::string::npos) << outcome;
  EXPECT_EQ(left.report(), "");
}

INSTANTIATE_TEST_SUITE_P(
    , BadInput,
    testing::Values(
        Bad{"NoCommand", {}, 125, "there is no command to run"},
        Bad{"NothingAfterDashes", {"--"}, 125, "there is no command to run"},
        Bad{"ForgottenDashes", {"ls", "-l"}, 125, "put `--` before the program"},
        Bad{"ForgottenQuotes", {"-c", "echo", "hi"}, 125, "-c takes one text"},
        Bad{"QuotesAroundAll", {"--", "echo hi"}, 127, "give a shell text with -c"},
        Bad{"MissingPolicy", {"--policy", "/no/such/policy.toml", "--", "true"}, 125, "cannot read policy `/no/such/policy.toml`"},
        Bad{"EmptyPolicy", {"--policy", "", "--", "true"}, 125, "--policy: its value is empty"},
        Bad{"EmptyByEquals", {"--hide=", "--policy=read-only", "--", "true"}, 125, "`--hide=` has no value"},
        Bad{"EmptyReport", {"--report", "", "--", "true"}, 125, "--report: its value is empty"},
        Bad{"EmptyAudit", {"--audit", "", "--", "true"}, 125, "--audit: its value is empty"},
        Bad{"EmptyCwd", {"--cwd", "", "--", "true"}, 125, "--cwd: its value is empty"},
        Bad{"EmptyWorkspace", {"--workspace", "", "--", "true"}, 125, "the name is empty"},
        Bad{"EmptyTransaction", {"--txn-name", "", "--", "true"}, 125, "--txn-name: its value is empty"},
        Bad{"EmptyHidden", {"--hide", "", "--", "true"}, 125, "it is empty"},
        Bad{"DirectoryAsPolicy", {"--policy", "/etc/", "--", "true"}, 125, "it is a directory"},
        Bad{"UnknownProfile", {"--policy", "workspace-wirte", "--", "true"}, 125, "there is no profile `workspace-wirte`"},
        Bad{"FullAccess", {"--policy", "full-access", "--", "true"}, 125, "write `danger-full-access`: no sandbox holds"},
        Bad{"FullAccessOption", {"--full-access", "--", "true"}, 125, "write `--policy danger-full-access`"},
        Bad{"LegacyLandlock", {"--use-legacy-landlock", "--", "true"}, 125, "write `--backend landlock`"},
        Bad{"NetLimited",
            {"--net", "limited", "--", "true"},
            125,
            "(`--net-methods limited`), which lets GET, HEAD and OPTIONS pass"},
        Bad{"ReadOnlyAccess", {"--read-only-access", "/etc", "--", "true"}, 125, "write `--read PATH`"},
        Bad{"Mitm", {"--mitm", "--", "true"}, 125, "TLS is looked into where `--net-methods limited`"},
        Bad{"BadPattern", {"--hide", "a[b*", "--", "true"}, 125, "a `[` is not closed"},
        Bad{"BracePattern", {"--hide", "**/{x,y}.cfg", "--", "true"}, 125, "braces mean nothing here"},
        Bad{"BadDuration", {"--idle-timeout", "3parsecs", "--", "true"}, 125, "unit `parsecs` is not known"},
        Bad{"NegativeSize", {"--disk", "-5", "--", "true"}, 125, "it must not be negative"},
        Bad{"LittleDisk", {"--disk", "1", "--", "true"}, 125, "limits.disk is 1\n"},
        Bad{"APageOfDisk", {"--disk", "4096", "--", "true"}, 125, "limits.disk is 4KiB\n"},
        Bad{"NotATime", {"--timeout", "nan", "--", "true"}, 125, "it is not a finite number"},
        Bad{"PatternOfVariables", {"--pass-env", "FOO*", "--", "true"}, 125, "`FOO*` cannot be the name of a variable"},
        Bad{"NoMemory", {"--memory", "0", "--", "true"}, 125, "limits.memory = 0 cannot be enforced"},
        Bad{"NoProcess", {"--pids", "0", "--", "true"}, 125, "--pids"},
        Bad{"NoDevice", {"--device", "/dev/no-such-device", "--", "true"}, 125, "cannot open the device `/dev/no-such-device`"},
        Bad{"RequiredOfNobody", {"--require", "no.such.clause", "--", "true"}, 125, "requires `no.such.clause`"},
        Bad{"ReadBelowHidden",
            {"--hide", "/usr/share", "--read", "/usr/share/doc", "--", "true"},
            125,
            "inside hidden `/usr/share`"},
        Bad{"PathTooLong", {"--", "/" + std::string(5000, 'a')}, 126, "longer than 4095 bytes"},
        Bad{"UnknownFlag", {"--memroy", "1GiB", "--", "true"}, 125, "did you mean `--memory`?"},
        Bad{"MissingWorkspace", {"--workspace", "/no/such/place", "--", "true"}, 125, "cannot use workspace `/no/such/place`"},
        Bad{"FileAsWorkspace", {"--workspace", "/etc/passwd", "--", "true"}, 125, "cannot use workspace `/etc/passwd`"},
        Bad{"RootAsWorkspace", {"--workspace", "/", "--", "true"}, 125, "name it twice"},
        Bad{"CwdOutside", {"--cwd", "/etc", "--", "true"}, 125, "workdir escapes workspace: `/etc`"},
        Bad{"CwdUpwards", {"--cwd", "..", "--", "true"}, 125, "workdir escapes workspace: "},
        Bad{"MissingCwd", {"--cwd", "nowhere", "--", "true"}, 125, "working directory"},
        Bad{"LoginProgram", {"--login", "--", "true"}, 125, "--login"},
        Bad{"BadTimeout", {"--timeout", "soon", "--", "true"}, 125, "--timeout"},
        Bad{"BadSize", {"--memory", "much", "--", "true"}, 125, "--memory"},
        Bad{"OfMacos", {"--backend", "seatbelt", "--", "true"}, 125, "`belljar policy compile --for seatbelt`"},
        Bad{"OfWindows", {"--backend", "windows", "--", "true"}, 125, "`belljar policy compile --for windows`"},
        Bad{"CalledDocker", {"--backend", "docker", "--", "true"}, 125, "did you mean `container`?"},
        Bad{"ProxyWithoutRules", {"--policy", "danger-full-access", "--net", "proxy", "--", "true"}, 125, "network.mode"},
        Bad{"ProxyWithoutANamespace", {"--backend", "landlock", "--net", "proxy", "--", "true"}, 125, "network.mode"},
        Bad{"DomainsWithoutAProxy", {"--net", "host", "--deny-domain", "example.com", "--", "true"}, 125, "network.denied_domains"},
        Bad{"MethodsWithoutAProxy", {"--net-methods", "limited", "--", "true"}, 125, "network.methods"},
        Bad{"NoDomain", {"--allow-domain", "https://example.com/", "--", "true"}, 125, "it is a URL"},
        Bad{"NoPort", {"--publish", "99999", "--", "true"}, 125, "is not a port"},
        Bad{"PublishOnTheHost", {"--net", "host", "--publish", "8080", "--", "true"}, 125, "network.publish"},
        Bad{"NoSocket", {"--allow-unix-socket", "/etc/passwd", "--", "true"}, 125, "it is not a socket"},
        Bad{"SocketThatTheCommandMayMake", {"--allow-unix-socket", "later", "--", "true"}, 125, "it does not exist yet"},
        Bad{"ReportNowhere", {"--report", "/no/such/place/r", "--", "true"}, 125, "cannot create the report"},
        Bad{"ReportToAFullDisk", {"--report", "/dev/full", "--", "true"}, 125, "No space left on device"},
        Bad{"EmptyProgram", {"--", ""}, 125, "there is no command to run"},
        Bad{"Directory", {"--", "/etc"}, 126, "it is a directory"},
        Bad{"NoProgram", {"--", "no-such-program"}, 127, "cannot run `no-such-program`"}),
    [](const auto& one) { return one.param.name; });

TEST_F(Run, TheTwinsOfBadInputWork) {
  mkdir((workspace_ / "sub").c_str(), 0755);
  EXPECT_EQ(run_in({"--cwd", "sub", "--", "pwd"}).out, workspace_ / "sub\n");
  EXPECT_EQ(run_in({"--workspace", workspace_.path(), "--memory", "1GiB", "--timeout", "30s", "--disk", "1MiB", "--", "pwd"}).out,
            workspace_.path() + "\n");
  EXPECT_EQ(run_in({"--workspace", "./sub", "--", "pwd"}).out, workspace_ / "sub\n");
  // Seen from the caller's directory; where it would be in the workspace alone, that is said.
  mkdir((workspace_ / "sub/below").c_str(), 0755);
  const Outcome elsewhere = run_in({"--workspace", "./sub", "--cwd", "below", "--", "pwd"});
  EXPECT_EQ(elsewhere.exit_code, 125) << elsewhere;
  EXPECT_NE(elsewhere.err.find("--cwd " + (workspace_ / "sub/below") + " names the one in the workspace"), std::string::npos)
      << elsewhere;
  EXPECT_EQ(run_in({"--workspace", "./sub", "--cwd", workspace_ / "sub/below", "--", "pwd"}).out, workspace_ / "sub/below\n");
  EXPECT_EQ(run_in({"--net", "host", "--", "true"}).exit_code, 0);
  EXPECT_EQ(run_in({"--login", "-c", "true"}).exit_code, 0);
  EXPECT_EQ(run_in({"--allow-unix-socket", "/run/belljar-test-none", "--", "true"}).exit_code, 0);
  EXPECT_NE(run_in({"--allow-unix-socket", "/run/docker.sock", "--", "true"}).err.find("is open to the command"),
            std::string::npos);
}

// A word about shell text where there is none: it was taken and did nothing.
TEST_F(Run, ALoginShellIsForThoseThatTakeShellText) {
  const std::vector<std::string> kRows[] = {
      {"learn", "--login", "--", "true"}, {"policy", "show", "--login"}, {"policy", "explain", "--login"}, {"doctor", "--login"}};
  for (std::vector<std::string> words : kRows) {
    words.insert(words.begin(), kBelljar);
    const Outcome refused = run(words, {.stdin_is = Input::kNull, .cwd = workspace_.path()});
    EXPECT_EQ(refused.exit_code, 125) << refused;
    EXPECT_NE(refused.err.find("unknown option `--login`"), std::string::npos) << refused;
    std::erase(words, "--login");
    EXPECT_EQ(run(words, {.stdin_is = Input::kNull, .cwd = workspace_.path()}).exit_code, 0) << words[1] << ": the twin";
  }
}

TEST_F(Run, FewDescriptorsAreAClearErrorOrEnough) {
  const Leftovers left({workspace_.path()});
  for (int files = 6; files <= 70; ++files) {
    const std::string start = "cd " + workspace_.path() + "; ulimit -n " + std::to_string(files) + "; exec " + kBelljar +
                              " run -c ': >/dev/null && echo fine'";  // a call for the broker, whose listener is a descriptor
    const Outcome outcome = run({"/bin/sh", "-c", start}, {.stdin_is = Input::kNull});
    if (outcome.exit_code == 0) {
      EXPECT_EQ(outcome.out, "fine\n") << files;
    } else {
      EXPECT_EQ(outcome.exit_code, 125) << files << outcome;
      EXPECT_NE(outcome.err.find("ulimit -n"), std::string::npos) << files << outcome;
    }
  }
  EXPECT_EQ(left.report(), "");
}

// A file for a policy is written outside of the workspace, which may only narrow.
TEST_F(Run, APolicyFileThatIsWrongIsShownWithItsPlace) {
  const TempDir files;
  const auto with = [&](const std::string& text) { return run_in({"--policy", files.write("p.toml", text), "--", "true"}); };
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"mode =\n", "p.toml:1:"},
           {"writeable_roots = []\n", "did you mean `writable_roots`?"},
           {"mode = \"full-access\"\n", "write `danger-full-access`"},
           {"network.mode = \"limited\"\n", "write network.methods = \"limited\""},
           {"network_mode = \"limited\"\n", "write network.methods = \"limited\""},
           {"[network]\nmode = \"full\"\n", "write `host`"},
           {"mitm = true\n", "TLS is looked into where a rule needs it"},
           {"read_only_access = [\"/etc\"]\n", "write filesystem.readonly_paths"},
           {"use_legacy_landlock = true\n", "write backend = \"landlock\""},
           {"[limits]\nmemory = \"12XB\"\n", "p.toml:2:"},
           {"[network]\nallowed_domains = [\"a*b\"]\n", "p.toml:2:"},
           {"blocked_paths = [\"" + std::string(4096, 'a') + "\"]\n", "the most is 4095"},
       }) {
    const Outcome outcome = with(text);
    EXPECT_EQ(outcome.exit_code, 125) << text << outcome;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << text << outcome;
  }
  EXPECT_EQ(with("[limits]\nmemory = \"1GiB\"\n").exit_code, 0);
  if (is_root()) return;  // who may read everything
  const std::string closed = files.write("closed.toml", "", 0);
  const Outcome outcome = run_in({"--policy", closed, "--", "true"});
  EXPECT_EQ(outcome.exit_code, 125) << outcome;
  EXPECT_NE(outcome.err.find("Permission denied"), std::string::npos) << outcome;
}

TEST_F(Run, TheHostsNetworkAndNoSandboxAreWarnedOfOnce) {
  const auto warnings = [&](const std::vector<std::string>& options) {
    std::vector<std::string> args = options;
    args.insert(args.end(), {"-c", "true"});
    const Outcome outcome = run_in(args);
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    return outcome.err;
  };
  EXPECT_EQ(warnings({"--net", "host"}),
            "belljar: warning: network.mode host: nothing judges whom the commands reach, services of this machine included\n");
  EXPECT_EQ(warnings({"--policy", "danger-full-access"}),
            "belljar: warning: mode danger-full-access: no sandbox holds the commands, they have all rights of this user\n");
  EXPECT_EQ(warnings({}), "") << "the twin";
}

// A text can be judged, not what it starts: `run` would promise more than holds.
TEST_F(Run, CommandRulesOfAPolicyAreRefusedByName) {
  const TempDir place;
  const std::string policy = place.write("p.toml", "blocked_commands = [\"rm\"]\n");
  const Outcome refused = run_in({"--policy", policy, "-c", "true"});
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_TRUE(has(refused.err, "cannot enforce commands.deny") && has(refused.err, "use `belljar mcp` or `belljar agent`"))
      << refused;
  const Outcome checked = belljar({"policy", "check", policy}, {.cwd = workspace_.path()});
  EXPECT_EQ(checked.exit_code, 0) << checked;
  EXPECT_EQ(checked.err, "belljar: warning: commands.deny is for `belljar mcp` and `belljar agent`; `belljar run` refuses it\n");
  place.write("p.toml", "blocked_commands = []\n");
  EXPECT_EQ(run_in({"--policy", policy, "-c", "true"}).exit_code, 0) << "the twin";
}

TEST_F(Run, AVolumeAtTmpIsRefusedWithWhatServesInstead) {
  const TempDir files;
  const TempDir data("/var/tmp");
  data.write("f", "shown\n");
  if (is_root()) data.give_to(user_uid(), user_gid());
  const auto with = [&](const std::string& text) { return files.write("p.toml", "[filesystem]\n" + text); };
  const auto volume = [&](const std::string& target) {
    return with("volumes = [{ source = \"" + data.path() + "\", target = \"" + target + "\" }]\n");
  };
  const Outcome refused = run_in({"--policy", volume("/tmp"), "--", "true"});
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_NE(refused.err.find("cannot mount volume `" + data.path() + "` at `/tmp`"), std::string::npos) << refused;
  EXPECT_NE(refused.err.find("the sandbox's own is there"), std::string::npos) << refused;
  const std::string line = "filesystem.temp_dir = \"" + data.path() + "\"";
  EXPECT_NE(refused.err.find("such as /tmp/data, or write `" + line + "`"), std::string::npos) << refused;
  // The twins: both that it advises.
  EXPECT_EQ(run_in({"--policy", volume("/tmp/data"), "--", "cat", "/tmp/data/f"}).out, "shown\n");
  const std::string policy = files.write("p.toml", line + "\n");
  EXPECT_EQ(run_in({"--policy", policy, "-c", "cat $TMPDIR/f && echo new >$TMPDIR/g"}).out, "shown\n");
  EXPECT_EQ(read_file(data / "g"), "new\n");
}

TEST_F(Run, AThousandEntriesAndPathsOf4095BytesHold) {
  const TempDir files;
  std::string deep = workspace_.path();
  while (deep.size() + 201 <= 4095 - 20) deep += "/" + std::string(200, 'd');
  deep += "/" + std::string(4095 - deep.size() - 1, 'e');
  std::string text = "blocked_paths = [\"" + deep + "\",";
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "d" + std::to_string(i);
    workspace_.write(name + "/f", "x");
    text += "\n\"" + (workspace_ / name) + "\",";
  }
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  const std::string policy = files.write("p.toml", text + "]\n");
  const Outcome held = run_in({"--policy", policy, "--", "sh", "-c", "cat d0/f d500/f d999/f; echo done"});
  EXPECT_EQ(held.out, "done\n") << held;
  EXPECT_EQ(run_in({"--", "sh", "-c", "cat d0/f d500/f d999/f"}).out, "xxx");
}

TEST_F(Run, AUserWithoutFreeProcessesIsToldSo) {
  BELLJAR_NEEDS(as_ordinary_user());  // root has no such limit
  const auto limited = [&](const char* most) {
    return run({"/bin/bash", "-c", "cd " + workspace_.path() + "; ulimit -u " + most + "; exec " + kBelljar + " run -- echo fine"},
               {.stdin_is = Input::kNull});
  };
  const Outcome none = limited("1");
  EXPECT_EQ(none.exit_code, 125) << none;
  EXPECT_NE(none.err.find("no process is free"), std::string::npos) << none;
  EXPECT_EQ(limited("4000").out, "fine\n");
}

TEST_F(Run, AFullDiskIsTheCommandsToSeeAndOursToTell) {
  const Outcome full = run({"/bin/sh", "-c", "cd " + workspace_.path() + "; exec " + kBelljar + " run -- echo x >/dev/full"});
  EXPECT_EQ(full.exit_code, 125) << full;
  EXPECT_NE(full.err.find("No space left on device"), std::string::npos) << full;
  const Outcome json =
      run({"/bin/sh", "-c", "cd " + workspace_.path() + "; exec " + kBelljar + " run --json -- echo x >/dev/full"});
  EXPECT_EQ(json.exit_code, 125) << json;
  EXPECT_NE(json.err.find("free some space"), std::string::npos) << json;
  const Outcome inside = run_in({"--disk", "1MiB", "--", "sh", "-c", "head -c 4000000 /dev/zero >/tmp/big || echo full; ls /tmp"});
  EXPECT_NE(inside.out.find("full"), std::string::npos) << inside;
}

TEST_F(Run, AProgramForAnotherMachineIsNamed) {
  std::string elf("\177ELF\2\1\1", 7);
  elf.resize(64, '\0');
  elf[16] = 2, elf[18] = static_cast<char>(183);  // ET_EXEC, EM_AARCH64
  workspace_.write("arm", elf, 0755);
  workspace_.write("text", "garbage", 0755);
  workspace_.write("closed", "#!/bin/sh\n", 0644);
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  for (const auto& [program, says] : std::vector<std::pair<std::string, std::string>>{
           {"./arm", "ELF program for aarch64"}, {"./text", "neither a program"}, {"./closed", "chmod +x"}}) {
    const Outcome outcome = run_in({"--", program});
    EXPECT_EQ(outcome.exit_code, 126) << outcome;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome;
  }
}

TEST_F(Run, ADamagedProgramIsNotCalledAnotherMachines) {
  const std::string whole = read_file("/bin/true");
  workspace_.write("cut", whole.substr(0, 100), 0755);
  workspace_.write("stub", whole.substr(0, 10), 0755);
  workspace_.write("whole", whole, 0755);
  std::string object = whole;
  object[16] = 1;  // ET_REL
  workspace_.write("object", object, 0755);
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  for (const char* program : {"./cut", "./stub"}) {
    const Outcome outcome = run_in({"--", program});
    EXPECT_EQ(outcome.exit_code, 126) << outcome;
    EXPECT_NE(outcome.err.find("damaged or cut off"), std::string::npos) << outcome;
  }
  EXPECT_NE(run_in({"--", "./object"}).err.find("an ELF file and no program"), std::string::npos);
  EXPECT_EQ(run_in({"--", "./whole"}).exit_code, 0) << "the twin";
}

TEST_F(Run, AScriptWithWindowsLineEndsIsToldSo) {
  workspace_.write("windows", "#!/bin/sh\r\necho fine\r\n", 0755);
  workspace_.write("unix", "#!/bin/sh\necho fine\n", 0755);
  workspace_.write("missing", "#!/no/such/shell\n", 0755);
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  const Outcome refused = run_in({"--", "./windows"});
  EXPECT_EQ(refused.exit_code, 127) << refused;
  EXPECT_NE(refused.err.find("its interpreter `/bin/sh\\x0d` is not there: the line ends as on Windows"), std::string::npos)
      << refused;
  EXPECT_EQ(run_in({"--", "./unix"}).out, "fine\n");
  const Outcome missing = run_in({"--", "./missing"});
  EXPECT_NE(missing.err.find("its interpreter `/no/such/shell` or the file"), std::string::npos) << missing;
}

}  // namespace
}  // namespace belljar::test
