// Names that a policy hides before anybody made them, and what a debugger and a shared repository need. Each refusal has a twin.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "support/as_user.h"
#include "support/built.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"
#include "support_run.h"

namespace belljar::test {
namespace {

using Hide = Run;

TEST_F(Hide, ANameThatIsNotThereIsNotMade) {
  const Outcome made =
      run_in({"--hide", "later", "-c", "mkdir later; echo x >later/x; mkdir box && mv box later; echo fine >other"});
  EXPECT_EQ(read_file(workspace_ / "other"), "fine\n") << made;
  EXPECT_FALSE(exists(workspace_ / "later")) << made;
  EXPECT_NE(made.err.find("Permission denied"), std::string::npos) << made;
  EXPECT_EQ(run_in({"-c", "mkdir later"}).exit_code, 0);
}

// What a user accepted is told once, of how many rules it may be true.
TEST_F(Hide, WhatIsTrueOfTwelvePatternsIsOneWarning) {
  const auto warnings = [&](std::size_t patterns) {
    std::vector<std::string> words = {"--accept", "filesystem.globs"};
    for (std::size_t i = 0; i < patterns; ++i) words.insert(words.end(), {"--hide", format("*.key{}", i)});
    words.insert(words.end(), {"--", "true"});
    return run_in(words).err;
  };
  const std::string of_twelve = warnings(12), of_one = warnings(1);
  EXPECT_TRUE(of_twelve.starts_with("belljar: warning: filesystem.globs is partial for each of 12 rules, as accepted: "))
      << of_twelve;
  EXPECT_EQ(std::ranges::count(of_twelve, '\n'), 1) << of_twelve;
  EXPECT_TRUE(of_one.starts_with("belljar: warning: filesystem.globs is partial, as accepted: ")) << of_one;
}

TEST_F(Hide, ANameThatTheHostMakesLaterIsNotRead) {
  Running running(command_line({"--hide", "later", "-c", "echo ready; while [ ! -e done ]; do sleep 0.05; done; cat later other"}),
                  {.stdin_is = Input::kNull, .cwd = workspace_.path()});
  ASSERT_TRUE(running.wait_for_output("ready"));
  workspace_.write("later", "HOST\n");
  workspace_.write("other", "OTHER\n");
  workspace_.write("done", "");
  const Outcome read = running.wait();
  EXPECT_EQ(read.out, "ready\nOTHER\n") << read;
}

// A save renames a new file over the old one, a checkout makes directories anew: no mount lies over those.
TEST_F(Hide, WhatTheHostPutsInItsPlaceIsHeldToo) {
  for (const std::string backend : {"native", "landlock"}) {
    for (const char* name : {"secret", "dir/x", "up/on/secret", "kept", "free"}) workspace_.write(name, "OLD\n");
    std::filesystem::remove(workspace_ / "done");
    Running running(
        command_line({"--backend", backend, "--hide", "secret", "--hide", "dir", "--hide", "up/on/secret", "--read", "kept", "-c",
                      "echo ready; while [ ! -e done ]; do sleep 0.05; done; cat secret dir/x up/on/secret; ls dir; cat "
                      "kept free; echo MORE >>kept; echo MORE >>free"}),
        {.stdin_is = Input::kNull, .cwd = workspace_.path()});
    ASSERT_TRUE(running.wait_for_output("ready"));
    for (const char* name : {"dir", "up"}) std::filesystem::rename(workspace_ / name, workspace_ / (std::string(name) + backend));
    for (const char* name : {"secret", "dir/x", "up/on/secret", "kept", "free"}) {
      workspace_.write("new", "NEW\n", 0666);
      std::filesystem::create_directories(std::filesystem::path(workspace_ / name).parent_path());
      std::filesystem::rename(workspace_ / "new", workspace_ / name);
    }
    if (is_root()) workspace_.give_to(user_uid(), user_gid());
    workspace_.write("done", "");
    const Outcome read = running.wait();
    EXPECT_EQ(read.out, "ready\nNEW\nNEW\n") << backend << read;
    EXPECT_EQ(read_file(workspace_ / "kept"), "NEW\n") << backend;
    EXPECT_EQ(read_file(workspace_ / "free"), "NEW\nMORE\n") << backend;
  }
}

// Elsewhere it would be out of its rule for the next run.
TEST_F(Hide, ADirectoryAboveIsNotMoved) {
  workspace_.write("box/on/secret", "SECRET\n");
  workspace_.write("other/on/f", "");
  if (is_root()) workspace_.give_to(user_uid(), user_gid());
  for (const std::string backend : {"native", "landlock"}) {
    for (const std::string rule : {"--hide", "--read"}) {
      const auto in_it = [&](const std::string& text) { return run_in({"--backend", backend, rule, "box/on/secret", "-c", text}); };
      const Outcome moved = in_it(
          "mv box far; mv box/on far; mv -T --exchange box other || python3 -c 'import ctypes; "
          "ctypes.CDLL(None).renameat2(-100, b\"box\", -100, b\"other\", 2)'");
      EXPECT_TRUE(exists(workspace_ / "box/on/secret")) << backend << rule << moved;
      EXPECT_NE(moved.err.find("busy"), std::string::npos) << backend << rule << moved;
      EXPECT_EQ(in_it("mv other far && mv far other; mv box/on/secret box/on/moved; echo x >box/y && mv box/y box/z").exit_code, 0);
      EXPECT_TRUE(exists(workspace_ / "box/on/secret")) << backend << rule;
    }
  }
  EXPECT_EQ(run_in({"-c", "mv box far && mv far box"}).exit_code, 0);
  // Nor is a link on the way exchanged for another.
  std::filesystem::create_symlink("box", workspace_ / "way");
  for (const std::string backend : {"native", "landlock"}) {
    const auto in_it = [&](const std::string& text) {
      return run_in({"--backend", backend, "--hide", "way/on/secret", "-c", text});
    };
    (void)in_it("rm way; ln -s other way; mv way gone");
    EXPECT_EQ(in_it("cat way/on/secret box/on/secret").out, "") << backend;
    EXPECT_EQ(std::filesystem::read_symlink(workspace_ / "way"), "box") << backend;
  }
}

TEST_F(Hide, TheReportSaysWhatGoesAroundIt) {
  const Outcome told = run_in({"--hide", "later", "--json", "--", "true"});
  const std::size_t at = told.out.find("\"filesystem.hidden_absent\"");
  ASSERT_NE(at, std::string::npos) << told;
  EXPECT_NE(told.out.find("partial", at), std::string::npos) << told;
  EXPECT_EQ(run_in({"--json", "--", "true"}).out.find("filesystem.hidden_absent"), std::string::npos);
}

// The workspace alone shows through.
TEST_F(Hide, AWorkspaceInAHiddenDirectoryShowsNothingElseOfIt) {
  const TempDir home;
  home.write(".ssh/id", "the key\n", 0644);
  home.write(".ssh/w/own", "own\n");
  if (is_root()) home.give_to(user_uid(), user_gid());
  const std::string workspace = home / ".ssh/w";
  for (const std::string backend : {"native", "landlock"}) {
    const auto in_it = [&](std::vector<std::string> args) {
      args.insert(args.begin(), {"--backend", backend, "--workspace", workspace, "--require", "filesystem.secrets"});
      return run_in(std::move(args), {.stdin_is = Input::kNull, .env = {{"HOME", home.path()}}});
    };
    const Outcome read = in_it({"-c", "cat ../id; cat ~/.ssh/id; echo x >../new; cat own && echo more >made && cat made"});
    EXPECT_EQ(read.out, "own\nmore\n") << backend << read;
    EXPECT_FALSE(exists(home / ".ssh/new")) << backend;
    EXPECT_EQ(in_it({"--policy", "read-only", "-c", "cat ../id; cat own; echo x >own"}).out, "own\n") << backend;
    EXPECT_EQ(in_it({"--hide", "**/*.none", "-c", "cat ../id; cat own"}).out, "own\n") << backend;
    const Outcome asked = run_in({"--backend", backend, "--workspace", workspace, "--read", home / ".ssh", "-c", "cat ../id"},
                                 {.stdin_is = Input::kNull, .env = {{"HOME", home.path()}}});
    EXPECT_EQ(asked.out, "the key\n") << "the twin" << backend << asked;
  }
}

// What is hidden around something writable: neither read nor listed, renamed, removed, linked or made, by whatever name.
TEST_F(Hide, WhatIsWritableInAHiddenDirectoryShowsNothingElseOfIt) {
  const TempDir place(is_root() ? "/var/lib" : std::string(::getenv("HOME")));  // NOLINT(concurrency-mt-unsafe): one thread
  for (const char* name : {"x/secret", "x/sub/secret", "x/sub/other", "x/y/f", "x/y/in/secret", "x/deep/er/w/f"})
    place.write(name, "SECRET\n");
  place.write("x/y/f", "open\n");
  place.write("x/deep/er/w/f", "deep\n");
  ASSERT_EQ(::symlink("../secret", (place / "x/y/link").c_str()), 0);
  ASSERT_EQ(::symlink((place / "x").c_str(), (place / "alias").c_str()), 0);
  if (is_root()) place.give_to(user_uid(), user_gid());
  const std::string x = place / "x";
  const std::string acts = format(
      "cat {0}/secret {0}/sub/secret {0}/sub/other {0}/y/link {0}/y/../secret {0}/y/in/secret {1}/secret; cd {0}/y && cat "
      "../secret; ls {0}/sub;"
      "ls {0} | grep secret; ls {1}/ | grep secret; mv {0}/secret {0}/y/moved; ln {0}/secret {0}/y/linked; cp {0}/secret "
      "{0}/y/copy;"
      "echo x >{0}/new; mkdir {0}/made; mv {0}/y {0}/gone; mv {0}/y/f {0}/out; rm -rf {0}/sub {0}/y/in; rmdir {0}/y; mv {0} "
      "{1}-away;"
      "echo x >{0}/secret; chmod 777 {0}; cat {0}/secret /proc/self/cwd/../secret /proc/self/root{0}/secret",
      x, place / "alias");
  for (const std::string backend : {"native", "landlock"}) {
    const auto with = [&](std::vector<std::string> args) {
      args.insert(args.begin(), {"--backend", backend, "--hide", x + "/sub/secret", "--hide", x, "--write", x + "/y", "--write",
                                 x + "/deep/er/w", "--hide", x + "/y/in"});
      return run_in(std::move(args));
    };
    const Outcome tried = with({"-c", "(" + acts + ") 2>/dev/null"});
    EXPECT_EQ(tried.out, "") << backend << tried;
    for (const char* name : {"x/new", "x/made", "x/gone", "x/out", "x/y/moved", "x/y/linked", "x/y/copy", "alias-away"})
      EXPECT_FALSE(exists(place / name)) << backend << " " << name;
    for (const char* name : {"x/secret", "x/sub/secret", "x/y/in/secret"})
      EXPECT_EQ(read_file(place / name), "SECRET\n") << backend << " " << name;
    const Outcome open =
        with({"-c", format("cd {0}/y && cat f ../deep/er/w/f {1}/y/f; echo more >made && cat made; rm made", x, place / "alias")});
    EXPECT_EQ(open.out, "open\ndeep\nopen\nmore\n") << backend << open;
    const Outcome twin =
        run_in({"--backend", backend, "--write", x + "/y", "-c", format("cat {0}/secret; ls {0} | grep secret", x)});
    EXPECT_EQ(twin.out, "SECRET\nsecret\n") << "the twin: not hidden" << backend << twin;
  }
}

// As root: secrets that a user lets others read are still that user's.
// In the home, which one overlay masks: default secrets lie in most directories that somebody may hide.
TEST_F(Hide, WhatHidesADirectoryHidesTheHiddenNamesInItToo) {
  const TempDir home;
  for (const char* file : {".config/app/s", ".local/share/s", ".ssh/s", "a/s", "a/b/s"}) home.write(file, "SECRET\n");
  home.make_dir("a/none");
  if (is_root()) home.give_to(user_uid(), user_gid());
  const auto look = [&](std::vector<std::string> hidden) {
    std::vector<std::string> words;
    for (const std::string& name : hidden) words.insert(words.end(), {"--hide", home / name});
    words.insert(words.end(), {"-c", "cd ~; cat .config/app/s .local/share/s a/s a/b/s; ls .config .local a a/b; cat .ssh/s"});
    return run_in(words, {.stdin_is = Input::kNull, .env = {{"HOME", home.path()}}});
  };
  const Outcome shown = look({});
  const auto times = [](const std::string& text, std::string_view what) {
    std::size_t count = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
    return count;
  };
  EXPECT_EQ(times(shown.out, "SECRET"), 4U) << "all but the default secret: " << shown;
  for (const std::vector<std::string>& hidden :
       std::vector<std::vector<std::string>>{{".config", ".local", "a", "a/b"},
                                             {"a/b", "a", ".local", ".config"},
                                             {".config", ".local", "a", ".ssh/s", "a/none/x"}}) {
    const Outcome held = look(hidden);
    EXPECT_EQ(held.out, "") << held;
    EXPECT_GE(times(held.err, "Permission denied"), 9U) << held;
  }
}

TEST_F(Hide, RootHidesTheHomeOfTheWorkspacesOwnerToo) {
  BELLJAR_NEEDS(as_root());
  const TempDir home("/var/lib");  // what lies below /tmp is out of sight as it is
  for (const char* name : {".ssh/id", ".aws/credentials", ".netrc", "src/f"})
    home.write(name, "text of " + std::string(name) + "\n");
  home.write("ws/f", "");
  const TempDir etc;
  etc.write("passwd", read_file("/etc/passwd") + format("theirs:x:{}:{}::{}:/bin/sh\n", user_uid(), user_gid(), home.path()));
  home.give_to(user_uid(), user_gid());
  ASSERT_EQ(::chmod(home.path().c_str(), 0755), 0);
  const auto in_it = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"unshare", "-m", "sh", "-c", "mount --bind \"$0\" /etc/passwd && exec \"$@\"", etc / "passwd",
                               kBelljar, "run", "--workspace", home / "ws"});
    return run(args, {.stdin_is = Input::kNull});
  };
  const std::string text = format("cd {} && cat .ssh/id .aws/credentials .netrc src/f; mkdir .docker", home.path());
  for (const std::string backend : {"native", "landlock"}) {
    const Outcome read = in_it({"--backend", backend, "--require", "filesystem.secrets", "-c", text});
    EXPECT_EQ(read.out, "text of src/f\n") << backend << read;
    const Outcome asked = in_it({"--backend", backend, "--read", home / ".ssh", "-c", text});
    EXPECT_EQ(asked.out, "text of .ssh/id\ntext of src/f\n") << "the twin" << backend << asked;
  }
}

struct Refused {
  const char* act;  // shell text
  const char* operation;
  const char* target;  // below the workspace
};

// Where the kernel stops each of them: at the mask of a directory on the way, at that of the name itself, at its mount.
constexpr Refused kChanges[] = {
    {"mkdir hid/y", "mkdir", "hid/y"},
    {"echo >hid/new", "write", "hid/new"},
    {"ln -s a hid/z", "symlink", "hid/z"},
    {"ln plain hid/z", "link", "hid/z"},
    {"rm hid/x", "delete", "hid/x"},
    {"truncate -s 0 hid/x", "write", "hid/x"},
    {"mv hid/x y", "rename", "hid/x"},
    {"mv -T plain hid/y", "rename", "hid/y"},
    {"python3 -c 'import os; os.chmod(\"hid/x\", 0o600)'", "chmod", "hid/x"},  // chmod(1) looks first
    {"echo >way", "write", "hid/x"},
    {"echo >hf", "write", "hf"},
    {"chmod 600 hf", "chmod", "hf"},
    {"rm hf", "delete", "hf"},
    {"mv hf y", "rename", "hf"},
    {"mv -T plain hf", "rename", "hf"},
    {"ln hf y", "link", "hf"},
    {"chmod 700 hid", "chmod", "hid"},
    {"rmdir hid", "delete", "hid"},
    {"mv hid y", "rename", "hid"},
    {"truncate -s 0 hid", "write", "hid"},
};

std::string told(const Refused& refused, const std::string& workspace) {
  return std::string("\"operation\":\"") + refused.operation + "\",\"target\":\"" + workspace + "/" + refused.target +
         "\",\"rule\":\"filesystem.entries\",\"origin\":{\"layer\":\"flag --hide\"";
}

class HiddenNames : public Hide {
 protected:
  void SetUp() override {
    Hide::SetUp();
    if (IsSkipped()) return;
    BELLJAR_NEEDS(program("python3"));
    make_names();
  }
  void make_names() const {
    run({"/bin/sh", "-c", "rm -rf ./*; mkdir hid; echo x >hid/x; echo f >hf; echo p >plain; ln -s hid/x way"},
        {.stdin_is = Input::kNull, .cwd = workspace_.path()});
    if (is_root()) workspace_.give_to(user_uid(), user_gid());
  }
  Outcome act(const std::string& text, std::vector<std::string> flags) const {
    flags.insert(flags.end(), {"--json", "-c", text});
    return run_in(flags);
  }
  void expect_refused_and_told(const Refused& refused, const std::vector<std::string>& more) const {
    std::vector<std::string> flags = {"--hide", "hid", "--hide", "hf"};
    flags.insert(flags.end(), more.begin(), more.end());
    const Outcome outcome = act(refused.act, flags);
    EXPECT_NE(outcome.out.find(told(refused, workspace_.path())), std::string::npos) << refused.act << outcome;
    const std::size_t first = outcome.out.find("\"operation\"");
    EXPECT_EQ(outcome.out.find("\"operation\"", first + 1), std::string::npos) << refused.act << outcome;
    EXPECT_NE(outcome.exit_code, 0) << refused.act;
    EXPECT_NE(outcome.out.find("\"errno\":13"), std::string::npos) << refused.act << outcome;
    EXPECT_NE(outcome.out.find("ermission denied"), std::string::npos) << refused.act << outcome;
    EXPECT_EQ(read_file(workspace_ / "hid/x") + read_file(workspace_ / "hf"), "x\nf\n") << refused.act;
  }
};

TEST_F(HiddenNames, EveryChangeIsRefusedWithEaccesAndToldOnce) {
  for (const Refused& refused : kChanges) expect_refused_and_told(refused, {});
}

// Every open is notified, and trees are looked through before they are moved.
TEST_F(HiddenNames, EveryChangeIsToldOnceBesidePatterns) {
  const TempDir beside;
  const std::string file = beside.write("p.toml", "[[filesystem.entries]]\nglob = \"**/*.secret\"\naccess = \"none\"\n");
  for (const Refused& refused : kChanges) expect_refused_and_told(refused, {"--policy", file});
}

// Rules alone hold the names, no mask does. There the broker sees that a name is new.
TEST_F(HiddenNames, EveryChangeIsToldOnceWithoutNamespaces) {
  BELLJAR_NEEDS(landlock_abi_at_least(1));
  for (Refused refused : kChanges) {
    if (std::string_view(refused.act) == "echo >hid/new") refused.operation = "create";
    expect_refused_and_told(refused, {"--backend", "landlock"});
  }
}

TEST_F(HiddenNames, WithoutTheRuleTheSameChangesAreMade) {
  for (const Refused& refused : kChanges) {
    make_names();
    if (std::string(refused.act) == "rmdir hid") std::filesystem::remove(workspace_ / "hid/x");
    const Outcome outcome = act(refused.act, {});
    const bool directory = std::string(refused.act) == "truncate -s 0 hid";  // which nobody may
    EXPECT_EQ(outcome.exit_code != 0, directory) << refused.act << outcome;
    EXPECT_NE(outcome.out.find("\"violations\":[]"), std::string::npos) << refused.act << outcome;
  }
}

TEST_F(HiddenNames, WhatIsMissingElsewhereIsNobodysRefusal) {
  const Outcome outcome = act("rm gone; echo >gone/x; mv gone a; rmdir plain; echo >.; chmod 600 gone; mkdir plain/x; exit 3",
                              {"--hide", "hid", "--hide", "hf"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_NE(outcome.out.find("\"violations\":[]"), std::string::npos) << outcome;
}

TEST_F(HiddenNames, ReadsAreToldWhereEveryOpenIsNotified) {
  const TempDir beside;
  const std::string file = beside.write("p.toml", "[[filesystem.entries]]\nglob = \"**/*.secret\"\naccess = \"none\"\n");
  const Outcome outcome = act("cat hid/x; cat hf; cat way; ls hid; cat plain", {"--hide", "hid", "--hide", "hf", "--policy", file});
  for (const char* target : {"hid/x", "hf", "hid"})
    EXPECT_NE(outcome.out.find(told({"", "read", target}, workspace_.path())), std::string::npos) << target << outcome;
  EXPECT_EQ(outcome.out.find(workspace_ / "plain"), std::string::npos) << outcome;
}

TEST_F(HiddenNames, ChangesOfDefaultSecretsAreTold) {
  const TempDir home;
  home.write("home/.ssh/authorized_keys", "KEY\n");
  home.write("home/.netrc", "NET\n");
  home.write("home/other/file", "FILE\n");
  if (is_root()) home.give_to(user_uid(), user_gid());
  RunOptions options{.stdin_is = Input::kNull};
  options.env = {{"HOME", home / "home"}, {"XDG_CONFIG_HOME", ""}};
  const Outcome outcome =
      run_in({"--write", home / "home/other", "--json", "-c",
              "echo k >>~/.ssh/authorized_keys; mkdir ~/.ssh/d; rm ~/.ssh/authorized_keys; chmod 777 ~/.ssh; mv ~/.netrc a; "
              "echo >~/.netrc; ln ~/.netrc b; echo >/etc/shadow; echo more >>~/other/file; exit 3"},
             options);
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  for (const auto& [operation, target] : {std::pair{"write", ".ssh/authorized_keys"},
                                          {"mkdir", ".ssh/d"},
                                          {"delete", ".ssh/authorized_keys"},
                                          {"chmod", ".ssh"},
                                          {"rename", ".netrc"},
                                          {"write", ".netrc"},
                                          {"link", ".netrc"}}) {
    const std::string words = std::string("\"operation\":\"") + operation + "\",\"target\":\"" + (home / "home") + "/" + target +
                              "\",\"rule\":\"filesystem.secrets\"";
    EXPECT_NE(outcome.out.find(words), std::string::npos) << operation << target << outcome;
  }
  EXPECT_NE(outcome.out.find("\"target\":\"/etc/shadow\",\"rule\":\"filesystem.secrets\""), std::string::npos) << outcome;
  for (const char* other : {"Read-only", "Is a directory", "other/file"})
    EXPECT_EQ(outcome.out.find(other), std::string::npos) << outcome;
  EXPECT_EQ(read_file(home / "home/other/file"), "FILE\nmore\n");
}

TEST_F(Hide, ADirectoryMayGiveItsGroupOnAndAFileMayNot) {
  const Outcome made = run_in(
      {"-c", "mkdir -m 2775 a && install -d -m 2755 b && mkdir c && chmod g+s c && git init -q --shared=group repo; echo $?"});
  EXPECT_EQ(made.out, "0\n") << made;
  for (const char* dir : {"a", "b", "c", "repo/.git"}) {
    struct stat now{};
    ASSERT_EQ(::stat((workspace_ / dir).c_str(), &now), 0) << dir;
    EXPECT_NE(now.st_mode & S_ISGID, 0U) << dir;
  }
  const Outcome refused =
      run_in({"--json", "-c",
              "echo >f; chmod 2755 f; chmod u+s a; python3 -c 'import os; os.fchmod(os.open(\"f\", 0), 0o2755)'; "
              "ln -s f l; chmod 2755 l"});
  EXPECT_NE(refused.out.find("\"operation\":\"system-call\",\"target\":\"fchmodat\",\"rule\":\"seccomp\""), std::string::npos)
      << refused;
  for (const char* name : {"f", "a"}) {
    struct stat now{};
    ASSERT_EQ(::stat((workspace_ / name).c_str(), &now), 0) << name;
    EXPECT_EQ(now.st_mode & S_ISUID, 0U) << name;
    EXPECT_EQ((now.st_mode & S_ISGID) != 0, S_ISDIR(now.st_mode)) << name;
  }
}

// Needs ptrace, and as root of the host a broker that lends it: a word is written into a child that is traced, not into another.
constexpr char kPoke[] = R"(
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
word = ctypes.c_long(7)
traced = sys.argv[1] == 'traced'
child = os.fork()
if child == 0:
    if traced: libc.ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(word.value)
os.waitpid(child, os.WUNTRACED)
try:
    memory = os.open('/proc/%d/mem' % child, os.O_RDWR)
    os.pwrite(memory, (9).to_bytes(8, 'little'), ctypes.addressof(word))
except OSError as e: print(e.strerror)
if traced: libc.ptrace(17, child, 0, 0)
os.kill(child, signal.SIGCONT)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
)";

TEST_F(Hide, ADebuggerWritesToWhatItTraces) {
  BELLJAR_NEEDS(program("python3"));
  EXPECT_EQ(run_in({"--", "python3", "-c", kPoke, "traced"}).out, "9\n");
  // An ordinary user's broker asks as the user, whom the kernel may let in.
  if (is_root()) {
    EXPECT_EQ(run_in({"--", "python3", "-c", kPoke, "other"}).out, "Permission denied\n7\n");
  }
}

}  // namespace
}  // namespace belljar::test
