// What a policy shows of this machine, tried with the built program: secrets, /tmp, volumes, devices.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "e2e/support_run.h"
#include "support/as_user.h"
#include "support/built.h"
#include "support/has.h"
#include "support/identity.h"
#include "support/must.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

// A home with a key in it, and a policy file outside of the workspace.
class Shown : public Run {
 protected:
  void SetUp() override {
    Run::SetUp();
    home_.write(".ssh/id_rsa", "the key", 0600);
    home_.write("src/f", "the source");
    policy_.write("p.toml", "");
    if (is_root()) home_.give_to(user_uid(), user_gid()), state_.give_to(user_uid(), user_gid());
  }
  Outcome under(const std::string& policy, std::vector<std::string> args) const {
    args.insert(args.begin(), {"--policy", policy_.write("p.toml", policy)});
    return run_in(std::move(args), {.stdin_is = Input::kNull, .env = environment()});
  }
  Outcome commit() const { return belljar({"commit"}, {.cwd = workspace_.path(), .env = environment()}); }
  std::map<std::string, std::string> environment() const { return {{"HOME", home_.path()}, {"XDG_STATE_HOME", state_.path()}}; }
  Outcome project(const std::string& policy, std::vector<std::string> args) const {
    workspace_.write(".belljar/policy.toml", policy);
    if (is_root()) workspace_.give_to(user_uid(), user_gid());
    return run_in(std::move(args), {.stdin_is = Input::kNull, .env = {{"HOME", home_.path()}}});
  }

  TempDir home_;
  TempDir state_{layers_base(home_.path())};  // transactions need a place that can be an upper layer
  TempDir policy_{"/tmp"};
};

constexpr char kSharedWithout[] = "[filesystem]\ntmp = \"shared\"\nexclude_slash_tmp = true\n";

// The place where a tree is built is writable and un-hides every name.
TEST_F(Shown, TheStageIsNotInAnyView) {
  for (const std::string policy :
       {"[filesystem]\ntmp = \"shared\"\n", kSharedWithout, "[filesystem]\nexclude_slash_tmp = true\n", ""}) {
    const Outcome key =
        under(policy, {"--require", "filesystem.secrets", "-c",
                       "rmdir /tmp/mask*/* /tmp/mask*/.ssh 2>/dev/null; ls -d /tmp/mask* /tmp/hidden; cat ~/.ssh/id_rsa"});
    EXPECT_EQ(key.out, "") << policy << key;
    EXPECT_EQ(under(policy, {"-c", "cat ~/src/f; echo x > made && cat made"}).out, "the sourcex\n") << policy;
  }
}

TEST_F(Shown, ASharedTmpThatIsExcludedIsReadOnly) {
  EXPECT_EQ(under(kSharedWithout, {"-c", "ls -d " + policy_.path()}).exit_code, 0);
  EXPECT_NE(under(kSharedWithout, {"-c", "echo x > /tmp/belljar-made"}).exit_code, 0);
  EXPECT_EQ(under("[filesystem]\ntmp = \"shared\"\n", {"-c", "f=$(mktemp /tmp/XXXXXX) && rm $f"}).exit_code, 0);
}

TEST_F(Shown, AnEntryForATemporaryDirectoryHolds) {
  const std::string shared = "[filesystem]\ntmp = \"shared\"\n";
  const std::string text = "cd /tmp && f=$(mktemp -p /tmp made-XXXXXX) && rm $f && echo made";
  for (const std::string& policy : {shared, std::string()}) {
    EXPECT_EQ(under(policy, {"--read", "/tmp", "-c", text}).out, "") << policy;
    EXPECT_EQ(under(policy, {"-c", text}).out, "made\n") << policy;
    EXPECT_EQ(under(policy, {"--hide", "/dev/shm", "-c", "ls /dev/shm || echo x > /dev/shm/x || echo closed"}).out, "closed\n")
        << policy;
  }
  EXPECT_EQ(under(shared + "readonly_paths = [\"/tmp\"]\n", {"-c", text}).out, "");
}

// Of a machine whose /proc is covered in part the kernel gives a user no other: user_namespaces(7).
TEST(NestedSandbox, AProcThatIsNotItsOwnIsInTheReport) {
  BELLJAR_NEEDS(user_namespaces());
  BELLJAR_NEEDS(program("unshare"));
  const TempDir workspace;
  const auto within = [&](const std::string& covered, std::vector<std::string> args) {
    args.insert(args.begin(), {"unshare", "-Urm", "sh", "-c", covered + "exec unshare -U --map-user=1000 --map-group=1000 \"$@\"",
                               "sh", kBelljar});
    return run(args, {.stdin_is = Input::kNull, .cwd = workspace.path()});
  };
  const auto nested = [&](const std::string& covered, std::vector<std::string> args) {
    args.insert(args.begin(), {"run", "--enable-weaker-nested-sandbox"});
    return within(covered, std::move(args));
  };
  const std::string cover = "mount -t tmpfs none /proc/bus && ";
  const Outcome seen = nested(cover, {"--json", "-c", "echo /proc/[0-9]*"});
  EXPECT_EQ(seen.exit_code, 0) << seen;
  EXPECT_TRUE(has(seen.out, R"("mechanism":"pid namespace, fresh /proc)")) << seen;
  EXPECT_TRUE(has(seen.out, R"("enforced":"partial","detail":"`/proc` could not be mounted)")) << seen;
  EXPECT_TRUE(has(seen.out, "with other processes and their command lines")) << seen;
  const Outcome refused = nested(cover, {"--require", "processes", "-c", "echo ran"});
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_EQ(refused.out, "");
  const Outcome own = nested("", {"--require", "processes", "-c", "cat /proc/1/cmdline | tr '\\0' ' '"});
  EXPECT_EQ(own.exit_code, 0) << own;
  EXPECT_TRUE(own.out.starts_with("init")) << own;
  // Found out by trying, and told with what to do.
  const Outcome doctor = within(cover, {"doctor"});
  EXPECT_TRUE(has(doctor.out, "  fresh /proc            no   ")) << doctor;
  EXPECT_TRUE(has(doctor.out, "an outer container covers parts of /proc: enable_weaker_nested_sandbox goes on without")) << doctor;
  EXPECT_TRUE(has(within("", {"doctor"}).out, "  fresh /proc            yes")) << "the twin";
}

// What neither has: a listener of its own, sock_diag, openat2, and a /proc that is not covered in part.
TEST(NestedSandbox, BelljarRunsInABelljarThatLetsNamespacesNest) {
  BELLJAR_NEEDS(user_namespaces());
  const TempDir workspace;
  const auto nested = [&](std::vector<std::string> outer, std::vector<std::string> inner) {
    std::vector<std::string> args = {"run"};
    args.insert(args.end(), outer.begin(), outer.end());
    args.insert(args.end(), {"--", kBelljar, "run"});
    args.insert(args.end(), inner.begin(), inner.end());
    args.insert(args.end(), {"-c", "echo x >made && cat made; echo x >/etc/belljar-test"});
    return belljar(args, {.stdin_is = Input::kNull, .cwd = workspace.path()});
  };
  const Outcome made = nested({"--allow-nested-userns"}, {"--enable-weaker-nested-sandbox"});
  EXPECT_EQ(made.out, "x\n") << made;
  EXPECT_NE(made.err.find("/etc/belljar-test"), std::string::npos) << made;
  const Outcome neither = nested({}, {}), one = nested({"--allow-nested-userns"}, {});
  EXPECT_EQ(nested({}, {"--enable-weaker-nested-sandbox"}).exit_code, 125) << "the outer one lets nothing nest";
  EXPECT_EQ(neither.exit_code, 125) << neither;
  EXPECT_TRUE(has(neither.err, "start that one with --allow-nested-userns, this one with --enable-weaker-nested-sandbox\n"))
      << neither;
  EXPECT_EQ(one.exit_code, 125) << one;
  EXPECT_TRUE(has(one.err, "next:   inside another sandbox, --enable-weaker-nested-sandbox goes on without a /proc")) << one;
}

// Root's commands have another id: what is closed to others is lent, and nothing else of it.
TEST(RootOnly, AWorkspaceThatIsClosedToOthersIsReadOnlyAsWell) {
  BELLJAR_NEEDS(as_root());
  const TempDir home, place("/var/lib");
  if (on_overlay(place.path())) GTEST_SKIP() << "needs idmapped mounts";
  for (const char* name : {"ws/f", "ws/in/f", "beside/f"}) place.write(name, std::string(name) + "\n", 0600);
  const auto in = [&](const std::string& workspace, const std::string& text) {
    return belljar({"run", "--policy", "read-only", "-c", text},
                   {.stdin_is = Input::kNull, .cwd = place / workspace, .env = {{"HOME", home.path()}}});
  };
  for (const mode_t mode : {0700U, 0755U}) {
    must(::chmod(place.path().c_str(), mode));
    for (const char* folder : {"ws", "ws/in"}) {
      must(::chmod((place / folder).c_str(), 0700));
      const Outcome read = in(folder, "pwd && cat f && ls " + place.path());
      EXPECT_EQ(read.out, place / folder + "\n" + folder + "/f\n" + (mode == 0700U ? "ws\n" : "beside\nws\n")) << read;
      EXPECT_NE(in(folder, "echo x >f").exit_code, 0);
    }
    EXPECT_EQ(in("ws", "cat ../beside/f").out, "");
  }
  const Outcome at_home = belljar({"run", "--policy", "read-only", "--", "cat", "f"},
                                  {.stdin_is = Input::kNull, .cwd = place / "ws", .env = {{"HOME", place.path()}}});
  EXPECT_EQ(at_home.out, "ws/f\n") << at_home;
  EXPECT_EQ(read_file(place / "ws/f"), "ws/f\n");
}

// A hidden name lies in an overlay over its directory, which is shown with the owner and mode of that directory: what is closed to
// others has to be lent, and what is on the way replaced.
TEST(RootOnly, AHiddenNameInOrAboveAClosedWorkspaceClosesNothingElse) {
  BELLJAR_NEEDS(as_root());
  const TempDir home, place("/var/lib");
  if (on_overlay(place.path())) GTEST_SKIP() << "needs idmapped mounts";
  for (const char* name : {"ws/f", "ws/g", "ws/in/f", "beside/f", "x"}) place.write(name, std::string(name) + "\n", 0600);
  must(::chmod(place.path().c_str(), 0700));
  must(::chmod((place / "ws").c_str(), 0700));
  for (const std::string policy : {"read-only", "workspace-write"}) {
    for (const char* hidden : {"ws/f", "ws/in/f", "ws/in", "ws/absent", "x", "beside/f", "beside", "absent"}) {
      const Outcome read =
          belljar({"run", "--policy", policy, "--hide", place / hidden, "-c", "cat g; cat ../" + std::string(hidden)},
                  {.stdin_is = Input::kNull, .cwd = place / "ws", .env = {{"HOME", home.path()}}});
      EXPECT_EQ(read.out, "ws/g\n") << policy << " " << hidden << read;
    }
  }
}

// The host's /bin and /lib64 are links into /usr.
TEST_F(Shown, ARootOfUsrAloneStartsTheSameOnBothTiers) {
  const std::string policy =
      "[filesystem]\nentries = [ { path = \"/\", access = \"none\" }, { path = \"/usr\", access = \"read\" } ]\n";
  for (const std::string backend : {"native", "landlock"}) {
    const Outcome started = under(policy, {"--backend", backend, "-c", "echo ran; cat /etc/passwd"});
    EXPECT_EQ(started.out, "ran\n") << backend << started;
    const std::string closed = policy.substr(0, policy.size() - 3) + ", { path = \"/usr/bin\", access = \"none\" } ]\n";
    EXPECT_NE(under(closed, {"--backend", backend, "-c", "echo ran"}).out, "ran\n") << backend;
  }
}

// Where the limits are not held in full, an ordinary user's start goes on and says so.
TEST_F(Shown, TheProfileForCiStartsForAnOrdinaryUser) {
  const Outcome started = run_in({"--policy", "ci-strict", "-c", "echo ran"}, {.stdin_is = Input::kNull, .env = environment()});
  EXPECT_EQ(started.out, "ran\n") << started;
  const Outcome report =
      run_in({"--policy", "ci-strict", "--json", "--", "true"}, {.stdin_is = Input::kNull, .env = environment()});
  const bool full = report.out.find(R"("clause":"limits.memory")") != std::string::npos && report.err.empty();
  EXPECT_TRUE(full || started.err.find("warning: limits.memory is partial, as accepted") != std::string::npos) << started << report;
}

// A link that leads to nothing yet: what is made there later is what the rule is about.
TEST_F(Shown, ARuleForADanglingLinkIsAboutWhereItLeads) {
  ASSERT_EQ(::symlink("later", (workspace_ / "link").c_str()), 0);
  ASSERT_EQ(::symlink("nodir", (workspace_ / "way").c_str()), 0);
  ASSERT_EQ(::symlink((home_ / "later").c_str(), (home_ / "link").c_str()), 0);
  const std::string text =
      "echo x > link; echo $?; echo x > later; echo $?; cat link; mkdir -p nodir; echo x > way/secret; echo $?";
  EXPECT_EQ(under("", {"--hide", "link", "--hide", "way/secret", "-c", text}).out, "2\n2\n2\n");
  EXPECT_EQ(under("", {"--read", "link", "-c", "echo x > link; echo $?"}).out, "2\n");
  // ".." behind a link is not what its letters say.
  for (const char* folder : {"real", "real/deep"}) ASSERT_EQ(::mkdir((workspace_ / folder).c_str(), 0755), 0);
  ASSERT_EQ(::symlink("real/deep", (workspace_ / "short").c_str()), 0);
  ASSERT_EQ(::symlink("short/../made", (workspace_ / "dots").c_str()), 0);
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  EXPECT_EQ(under("", {"--hide", "dots", "-c", "echo x > real/made; echo $?"}).out, "2\n");
  EXPECT_EQ(under("", {"-c", "echo x > real/made; echo $?; rm real/made"}).out, "0\n");
  EXPECT_EQ(under("", {"-c", text}).out, "0\n0\nx\n0\n");
  // Out there, made by somebody else while the command runs.
  const std::string later = home_ / "later";
  Running running({kBelljar, "run", "--hide", home_ / "link", "-c", "echo ready; read x; cat " + later + " || echo closed"},
                  {.cwd = workspace_.path(), .env = environment()});
  ASSERT_TRUE(running.wait_for_output("ready"));
  home_.write("later", "told");
  if (is_root()) home_.give_to(user_uid(), user_gid());
  running.close_input();
  EXPECT_EQ(running.wait().out, "ready\nclosed\n");
  EXPECT_EQ(under("", {"-c", "cat " + later}).out, "told");
}

TEST_F(Shown, WhatCannotBeHiddenIsRefused) {
  for (const char* path : {"/dev", "/dev/null", "/dev/fd", "/proc", "/proc/self/environ", "/proc/mounts"}) {
    const Outcome outcome = under("", {"--hide", path, "--", "true"});
    EXPECT_EQ(outcome.exit_code, 125) << path;
    EXPECT_NE(outcome.err.find(std::string("cannot hide `") + path + "`"), std::string::npos) << outcome;
  }
  EXPECT_EQ(under("", {"--hide", "/proc/version", "-c", "cat /proc/version || echo closed"}).out, "closed\n");
}

TEST_F(Shown, AVolumeIsMountedWhereItCanBeOrRefused) {
  const auto volume = [&](const std::string& source, const std::string& target) {
    return "[[volumes]]\nsource = \"" + source + "\"\ntarget = \"" + target + "\"\n";
  };
  const std::string folder = home_ / "src", file = home_ / "src/f";
  for (const std::string target : {"/", "/tmp", "/dev/shm", "/proc", "/dev", "/sys/kernel", "/etc/passwd"}) {
    const Outcome outcome = under(volume(folder, target), {"--", "true"});
    EXPECT_EQ(outcome.exit_code, 125) << target;
    EXPECT_NE(outcome.err.find("at `" + target + "`"), std::string::npos) << outcome;
  }
  EXPECT_EQ(under(volume(file, "/mnt"), {"--", "true"}).exit_code, 125);
  EXPECT_EQ(under(volume(folder, "/mnt"), {"--", "cat", "/mnt/f"}).out, "the source");
  EXPECT_EQ(under(volume(file, "/tmp/below"), {"--", "cat", "/tmp/below"}).out, "the source");
}

TEST_F(Shown, AFileOfTheWorkspaceOpensNothingOfTmp) {
  const TempDir beside("/tmp");
  const std::string file = beside.write("f", "of the host");
  if (is_root()) beside.give_to(user_uid(), user_gid());
  EXPECT_NE(project("[filesystem]\nexclude_slash_tmp = true\n", {"-c", "cat " + file}).out, "of the host");
  EXPECT_EQ(project("[filesystem]\nexclude_slash_tmp = true\n", {"-c", "echo x > $TMPDIR/f && cat $TMPDIR/f"}).out, "x\n");
  EXPECT_EQ(project("[filesystem]\nreadonly_paths = [\"" + file + "\"]\n", {"--", "cat", file}).exit_code, 125);
  EXPECT_EQ(project("", {"--read", file, "--", "cat", file}).out, "of the host");
}

TEST_F(Shown, AVolumeDoesNotLeadAroundWhatIsHidden) {
  const auto volume = [&](const std::string& source) {
    return "[filesystem]\nvolumes = [{ source = \"" + source + "\", target = \"/mnt\" }]\n";
  };
  const Outcome refused = under(volume(home_.path()), {"--", "cat", "/mnt/.ssh/id_rsa"});
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_NE(refused.err.find("would not hold there"), std::string::npos) << refused;
  EXPECT_EQ(under(volume(home_ / "src"), {"--", "cat", "/mnt/f"}).out, "the source");
}

TEST_F(Shown, ADeviceIsADevice) {
  const Outcome refused = under("", {"--device", home_ / ".ssh", "--", "cat", home_ / ".ssh/id_rsa"});
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_EQ(under("", {"--device", "/etc/hostname", "--", "true"}).exit_code, 125);
  EXPECT_EQ(under("", {"--device", "/dev/null", "--", "true"}).exit_code, 0);
}

TEST_F(Shown, ASecretBelowAWritableDirectoryStaysHidden) {
  home_.write(".config/gh/hosts.yml", "the token");
  if (is_root()) home_.give_to(user_uid(), user_gid());
  const Outcome outcome =
      under("", {"--write", home_ / ".config", "-c", "cat ~/.config/gh/hosts.yml; echo x > ~/.config/f && cat ~/.config/f"});
  EXPECT_EQ(outcome.out, "x\n") << outcome;
}

TEST_F(Shown, TheWorkspaceIsWritableInReadOnlyWhereSomebodySaysSo) {
  EXPECT_NE(run_in({"--policy", "read-only", "-c", "echo x > f"}).exit_code, 0);
  EXPECT_EQ(run_in({"--policy", "read-only", "--write", workspace_.path(), "-c", "echo x > f"}).exit_code, 0);
}

TEST_F(Shown, AReadOnlyDirectoryStaysSoWhateverIsNamedInIt) {
  workspace_.write("a/c/d/f", "x");
  workspace_.write("b/c/f", "x");
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  const std::string touch = "touch a/new a/c/new a/c/d/new; touch b/new && rm b/new";
  const std::string file = workspace_ / "a/c/d/f", folder = workspace_ / "a/c", all = workspace_ / "a";
  for (const std::string& inner : {file, folder}) {
    for (const auto& [first, second] : {std::pair(all, inner), std::pair(inner, all)}) {
      const Outcome flags = under("", {"--read", first, "--read", second, "-c", touch});
      EXPECT_EQ(flags.exit_code, 0) << flags << "what is beside it is writable";
      const Outcome listed =
          under("[filesystem]\nreadonly_paths = [\"" + first + "\", \"" + second + "\"]\n", {"--txn", "-c", touch});
      EXPECT_EQ(listed.exit_code, 0) << listed;
      commit();
      for (const char* name : {"a/new", "a/c/new", "a/c/d/new"}) EXPECT_FALSE(exists(workspace_ / name)) << name << " " << inner;
    }
  }
  // What is writable in what is read-only, and read-only in that, whose way up cannot be renamed.
  const Outcome nested = under("", {"--read", all, "--write", folder, "--read", file, "-c",
                                    "echo x >a/c/d/f; touch a/new; mv a/c/d a/c/e; touch a/c/d/fine"});
  EXPECT_EQ(read_file(file), "x") << nested;
  EXPECT_FALSE(exists(workspace_ / "a/new")) << nested;
  EXPECT_TRUE(exists(workspace_ / "a/c/d/fine")) << nested;
  const Outcome moved = under("", {"--write", workspace_ / "b/c", "--read", workspace_ / "b/c/f", "-c", "mv b e; touch b/c/fine"});
  EXPECT_TRUE(exists(workspace_ / "b/c/fine")) << moved;
  EXPECT_FALSE(exists(workspace_ / "e")) << moved;
}

TEST_F(Shown, AProtectedFileInAReadOnlyDirectoryOpensNothing) {
  workspace_.write(".github/copilot-instructions.md", "x");
  workspace_.write(".github/workflows/ci.yml", "w");
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  const std::string append = "echo evil >>.github/workflows/ci.yml";
  EXPECT_NE(under("", {"--read", workspace_ / ".github", "-c", append}).exit_code, 0);
  EXPECT_EQ(read_file(workspace_ / ".github/workflows/ci.yml"), "w");
  EXPECT_EQ(under("", {"--hide", workspace_ / ".github", "-c", "ls .github 2>/dev/null || echo fine"}).out, "fine\n");
  EXPECT_EQ(under("", {"-c", append}).exit_code, 0);
}

TEST_F(Shown, AReadOnlyVolumeStaysSoWithAReadOnlyNameInIt) {
  const TempDir volume;
  volume.write("sub/f", "the volume's");
  workspace_.write("vol/sub/f", "the host's");
  if (is_root()) volume.give_to(user_uid(), user_gid()), workspace_.give_to(user_uid(), user_gid());
  const auto mounted = [&](const std::string& readonly, const std::string& command) {
    return under("[filesystem]\nreadonly_paths = [\"" + (workspace_ / "vol/sub/f") + "\"]\nvolumes = [{ source = \"" +
                     volume.path() + "\", target = \"" + (workspace_ / "vol") + "\", readonly = " + readonly + " }]\n",
                 {"-c", command});
  };
  const Outcome kept = mounted("true", "cat vol/sub/f; touch vol/sub/new || touch vol/new || touch fine");
  EXPECT_EQ(kept.out, "the volume's") << kept;
  EXPECT_TRUE(exists(workspace_ / "fine")) << kept;
  const Outcome open = mounted("false", "touch vol/sub/new; echo x >vol/sub/f");
  EXPECT_TRUE(exists(volume / "sub/new")) << open;
  EXPECT_EQ(read_file(volume / "sub/f"), "the volume's") << open;
  EXPECT_FALSE(exists(workspace_ / "vol/sub/new")) << open;
}

TEST_F(Shown, AProtectedNameBehindALinkStopsNoRun) {
  const TempDir outside;
  outside.write("copilot-instructions.md", "x");
  workspace_.write("docs/copilot-instructions.md", "x");
  const std::string link = workspace_ / ".github";
  const std::string act = "echo evil >>.github/copilot-instructions.md; touch docs/fine && rm docs/fine";
  for (const std::string& target : {std::string("docs"), outside.path(), std::string("nowhere")}) {
    ASSERT_EQ(::symlink(target.c_str(), link.c_str()), 0);
    if (is_root()) workspace_.give_to(user_uid(), user_gid());
    for (const bool txn : {false, true}) {
      const Outcome ran = under("", txn ? std::vector<std::string>{"--txn", "-c", act} : std::vector<std::string>{"-c", act});
      EXPECT_EQ(ran.exit_code, 0) << target << ran;
    }
    EXPECT_EQ(commit().exit_code, 0) << target;
    EXPECT_EQ(read_file(workspace_ / "docs/copilot-instructions.md"), "x") << target;
    EXPECT_EQ(read_file(outside / "copilot-instructions.md"), "x") << target;
    ASSERT_EQ(::unlink(link.c_str()), 0);
  }
}

TEST_F(Shown, TheHomeCanBeHiddenAsAWhole) {
  EXPECT_EQ(under("", {"--hide", home_.path(), "-c", "cat ~/src/f ~/.ssh/id_rsa; echo ran"}).out, "ran\n");
  EXPECT_EQ(under("", {"-c", "cat ~/src/f"}).out, "the source");
}

TEST_F(Shown, AReadOnlyNameInACacheStaysSo) {
  home_.write(".cache/kept/f", "x");
  if (is_root()) home_.give_to(user_uid(), user_gid());
  const std::string act = "echo evil >~/.cache/kept/f; cat ~/.cache/kept/f";
  EXPECT_EQ(under("", {"--read", home_ / ".cache/kept", "-c", act + "; echo x >~/.cache/other && echo ' fine'"}).out, "x fine\n");
  EXPECT_EQ(under("", {"-c", act}).out, "evil\n");
}

// musl's resolver hears of no refusal, and would wait 5 s for each name.
TEST_F(Shown, WithoutANetworkNoLookUpIsWaitedFor) {
  if (!std::filesystem::is_regular_file("/etc/resolv.conf")) return;
  const auto file = [&](const std::string& net) { return under("", {"--net", net, "-c", "cat /etc/resolv.conf"}).out; };
  EXPECT_EQ(file("none"), "nameserver 192.0.2.53\noptions timeout:0 attempts:1\n");
  EXPECT_EQ(file("proxy"), "nameserver 127.0.0.53\n");
  EXPECT_EQ(file("host"), read_file("/etc/resolv.conf"));
}

TEST_F(Shown, WithoutANetworkALookUpIsTold) {
  if (!std::filesystem::is_regular_file("/etc/resolv.conf")) return;
  const auto look_up = [&](const std::string& name) { return under("", {"--json", "--", "getent", "ahosts", name}).out; };
  EXPECT_NE(look_up("example.com").find(R"("operation":"udp-connect","target":"192.0.2.53:53")"), std::string::npos);
  EXPECT_NE(look_up("localhost").find(R"("violations":[])"), std::string::npos) << "the twin: a name of /etc/hosts";
}

TEST_F(Shown, AShippedProfileStartsWithoutItsDirectories) {
  const RunOptions options{.stdin_is = Input::kNull, .env = {{"HOME", home_.path()}}};
  for (const std::string profile : {"build", "agent-claude", "agent-codex"}) {
    const Outcome outcome = run_in({"--policy", profile, "--verbose", "--", "true"}, options);
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    EXPECT_NE(outcome.err.find("do not exist and are left out"), std::string::npos) << outcome;
  }
  EXPECT_EQ(run_in({"--write", home_ / "new", "--", "true"}, options).exit_code, 125);
}

}  // namespace
}  // namespace belljar::test
