// bubblewrap's words as a recipe: order, options for the next option, what does not go together. No kernel.
#include "bwrap/parse.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <sched.h>

#include <cerrno>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bwrap/capabilities.h"
#include "bwrap/texts.h"

namespace belljar::bwrap {
namespace {

using Kind = launch::RecipeOp::Kind;
using Act = Parsed::Act;
using Words = std::vector<std::string>;

struct World {
  Surroundings here;
  std::map<int, std::string> files;

  World() {
    here.environment = {"HOME=/home/me", "PATH=/bin", "SECRET=s"};
    here.uid = 1000;
    here.gid = 1000;
    here.cwd = "/work";
    here.read_fd = [this](int fd) -> Result<std::string> {
      const auto found = files.find(fd);
      if (found == files.end()) return Error(Code::kInvalidArgument, "cannot read").sys(EBADF, "read");
      std::string data = found->second;
      files.erase(found);
      return data;
    };
  }
  Parsed parse(Words words) { return parse_words(words, here); }
  std::string refusal(Words words) {
    words.emplace_back("true");
    const Parsed parsed = parse(std::move(words));
    EXPECT_EQ(parsed.act, Act::kRefused);
    return parsed.refusal;
  }
  launch::Recipe recipe(Words words) {
    words.emplace_back("true");
    Parsed parsed = parse(std::move(words));
    EXPECT_EQ(parsed.act, Act::kRun) << parsed.refusal;
    return std::move(parsed.recipe);
  }
};

TEST(BwrapWords, MountsKeepTheirOrder) {
  World world;
  const auto recipe =
      world.recipe({"--ro-bind", "/", "/", "--tmpfs", "/tmp", "--bind-try", "a", "/b", "--dev", "/dev", "--symlink", "x", "/y"});
  ASSERT_EQ(recipe.ops.size(), 5U);
  EXPECT_EQ(recipe.ops[0].kind, Kind::kBind);
  EXPECT_TRUE(recipe.ops[0].read_only);
  EXPECT_FALSE(recipe.ops[0].devices);
  EXPECT_EQ(recipe.ops[1].kind, Kind::kTmpfs);
  EXPECT_EQ(recipe.ops[1].options, std::string("mode=0755\0", 10));
  EXPECT_TRUE(recipe.ops[2].if_exists);
  EXPECT_EQ(recipe.ops[2].source, "a");
  EXPECT_EQ(recipe.ops[2].dest, "/b");
  EXPECT_EQ(recipe.ops[3].kind, Kind::kDev);
  EXPECT_EQ(recipe.ops[4].source, "x");
}

TEST(BwrapWords, OptionsEndAtTheCommand) {
  World world;
  const Parsed parsed = world.parse({"--unshare-pid", "sh", "--dev", "/dev"});
  EXPECT_EQ(parsed.recipe.argv, Words({"sh", "--dev", "/dev"}));
  EXPECT_TRUE(parsed.recipe.ops.empty());
  EXPECT_EQ(world.parse({"--", "--dev"}).recipe.argv, Words({"--dev"}));
  EXPECT_EQ(world.parse({"--argv0", "x", "sh", "-c"}).recipe.argv, Words({"x", "-c"}));
  EXPECT_EQ(world.parse({"--argv0", "x", "sh", "-c"}).recipe.program, "sh");
  EXPECT_EQ(world.parse({"--unshare-pid"}).act, Act::kUsage);
  EXPECT_EQ(world.parse({}).act, Act::kUsage);
  EXPECT_EQ(world.parse({"--help", "--bogus"}).act, Act::kHelp);
  EXPECT_EQ(world.parse({"--version"}).act, Act::kVersion);
}

TEST(BwrapWords, WhatIsUnknownOrIncompleteIsRefused) {
  World world;
  EXPECT_EQ(world.refusal({"--bogus"}), "Unknown option --bogus");
  EXPECT_EQ(world.refusal({"-x"}), "Unknown option -x");
  EXPECT_EQ(world.parse({"--bind", "/a"}).refusal, "--bind takes two arguments");
  EXPECT_EQ(world.parse({"--overlay-src", "a", "--overlay", "b"}).refusal, "--overlay takes three arguments");
  EXPECT_EQ(world.refusal({"--exec-label", "l"}), "--exec-label: labeling not supported on this system");
  EXPECT_EQ(world.refusal({"--file-label", "l"}), "--file-label: labeling not supported on this system");
  EXPECT_EQ(world.refusal({"--bogus\x1b[2J"}), "Unknown option --bogus\\x1b[2J");
}

TEST(BwrapWords, NumbersAreNumbers) {
  World world;
  for (const char* fd : {"-1", "0a", "", " 3", "99999999999"})
    EXPECT_TRUE(world.refusal({"--sync-fd", fd}).starts_with("Invalid fd: ")) << fd;
  EXPECT_EQ(world.recipe({"--sync-fd", "12"}).sync_fd, 12);
  EXPECT_EQ(world.refusal({"--file", "5", "/a", "--file", "5", "/b"}), "Invalid fd: 5: an option before has used it");
  EXPECT_EQ(world.recipe({"--file", "5", "/a", "--file", "6", "/b"}).ops.size(), 2U) << "the twin";
  EXPECT_EQ(world.refusal({"--uid", "-5"}), "Invalid uid: -5");
  EXPECT_EQ(world.recipe({"--uid", "5", "--gid", "6"}).uid, 5U);
  EXPECT_EQ(world.refusal({"--perms", "8", "--dir", "/d"}), "--perms takes an octal argument <= 07777");
  EXPECT_EQ(world.refusal({"--perms", "10000", "--dir", "/d"}), "--perms takes an octal argument <= 07777");
  for (const char* size : {"0", "1x", "", "-1", " 1", "18446744073709551616"})
    EXPECT_EQ(world.refusal({"--size", size, "--tmpfs", "/t"}), "--size takes a non-zero number of bytes") << size;
  EXPECT_EQ(world.recipe({"--size", "4096", "--perms", "1777", "--tmpfs", "/t"}).ops[0].options,
            std::string("mode=1777\0size=4096\0", 20));
}

TEST(BwrapWords, WhatIsForTheNextOptionMustBeUsedByIt) {
  World world;
  EXPECT_EQ(world.refusal({"--perms", "700", "--bind", "/a", "/b"}), "--perms must be followed by an option that creates a file");
  EXPECT_EQ(world.refusal({"--size", "1", "--dir", "/b"}), "--size must be followed by --tmpfs");
  EXPECT_EQ(world.refusal({"--perms", "700", "--perms", "700", "--dir", "/d"}), "--perms given twice for the same action");
  EXPECT_TRUE(world.refusal({"--overlay-src", "/a", "--chdir", "/"}).starts_with("--overlay-src must be followed by"));
  EXPECT_TRUE(world.refusal({"--overlay-src", "/a"}).starts_with("--overlay-src must be followed by"));
  EXPECT_EQ(world.refusal({"--overlay", "u", "w", "/d"}), "--overlay requires at least one --overlay-src");
  EXPECT_EQ(world.refusal({"--overlay-src", "a", "--ro-overlay", "/d"}), "--ro-overlay requires at least two --overlay-src");
  const auto recipe =
      world.recipe({"--overlay-src", "a", "--overlay-src", "b", "--overlay", "u", "w", "/d", "--perms", "0700", "--dir", "/e"});
  EXPECT_EQ(recipe.ops[0].layers, Words({"a", "b"}));
  EXPECT_EQ(recipe.ops[0].source, "u");
  EXPECT_EQ(recipe.ops[0].work, "w");
  EXPECT_EQ(recipe.ops[1].perms, 0700U);
}

TEST(BwrapWords, ArgumentsFromADescriptor) {
  World world;
  world.files[5] = std::string("--dir\0/a\0--setenv\0X\0y z\0", 25);
  const auto recipe = world.recipe({"--args", "5", "--dir", "/b"});
  EXPECT_EQ(recipe.ops[0].dest, "/a");
  EXPECT_EQ(recipe.ops[1].dest, "/b");
  EXPECT_EQ(recipe.env.back(), "X=y z");
  world.files[5] = std::string("--args\0006\0", 9);
  EXPECT_EQ(world.refusal({"--args", "5"}), "--args not supported in arguments file");
  EXPECT_EQ(world.refusal({"--args", "9"}), "Can't read --args data: Bad file descriptor");
  world.files[5] = "--bogus";
  EXPECT_EQ(world.refusal({"--args", "5"}), "Unknown option --bogus");
}

TEST(BwrapWords, TheEnvironmentIsChangedInOrder) {
  World world;
  EXPECT_EQ(world.recipe({"--unsetenv", "SECRET", "--setenv", "PATH", "/x"}).env, Words({"HOME=/home/me", "PATH=/x"}));
  EXPECT_EQ(world.recipe({"--setenv", "A", "1", "--clearenv", "--setenv", "B", "2"}).env, Words({"B=2"}));
  EXPECT_EQ(world.recipe({"--setenv", "HOME", "/other"}).home, "/other");
  EXPECT_EQ(world.refusal({"--setenv", "A=B", "c"}), "setenv failed: A=B: Invalid argument");
}

TEST(BwrapWords, NamespacesThatAreAskedForAreMade) {
  World world;
  EXPECT_EQ(world.recipe({}).namespaces, std::uint64_t{CLONE_NEWUSER}) << "an ordinary user can do nothing without";
  world.here.uid = 0;
  EXPECT_EQ(world.recipe({}).namespaces, 0U);
  EXPECT_EQ(world.recipe({"--unshare-all"}).namespaces,
            std::uint64_t{CLONE_NEWUSER | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP});
  EXPECT_EQ(world.recipe({"--unshare-all", "--share-net"}).namespaces & CLONE_NEWNET, 0U);
  world.here.user_namespaces = false;
  EXPECT_EQ(world.recipe({"--unshare-user-try"}).namespaces, 0U);
}

TEST(BwrapWords, WhatDoesNotGoTogetherIsRefused) {
  World world;
  EXPECT_EQ(world.refusal({"--as-pid-1"}), "Specifying --as-pid-1 requires --unshare-pid");
  EXPECT_EQ(world.refusal({"--hostname", "h"}), "Specifying --hostname requires --unshare-uts");
  EXPECT_EQ(world.refusal({"--disable-userns"}), "--disable-userns requires --unshare-user");
  EXPECT_EQ(world.refusal({"--userns-block-fd", "3", "--unshare-user"}), "--userns-block-fd requires --info-fd");
  EXPECT_EQ(world.refusal({"--userns", "3", "--unshare-user"}), "--userns not compatible --unshare-user");
  EXPECT_EQ(world.refusal({"--pidns", "3", "--unshare-pid"}), "--pidns together with --unshare-pid is not done: give one of them");
  EXPECT_EQ(world.refusal({"--unshare-pid", "--as-pid-1", "--lock-file", "/l"}),
            "Specifying --as-pid-1 and --lock-file is not permitted");
  EXPECT_TRUE(world.recipe({"--unshare-pid", "--as-pid-1"}).as_pid_1) << "the twin";
  world.here.uid = 0;
  EXPECT_EQ(world.refusal({"--uid", "5"}), "Specifying --uid requires --unshare-user or --userns");
}

TEST(BwrapWords, FiltersAreReadAtOnce) {
  World world;
  world.files[7] = std::string(16, '\0');
  world.files[8] = std::string(8, '\0');
  const auto recipe = world.recipe({"--add-seccomp-fd", "7", "--add-seccomp-fd", "8"});
  ASSERT_EQ(recipe.filters.size(), 2U);
  EXPECT_EQ(recipe.filters[0].size(), 2U);
  world.files[7] = "123";
  EXPECT_EQ(world.refusal({"--seccomp", "7"}), "Invalid seccomp data, must be multiple of 8");
  EXPECT_EQ(world.refusal({"--seccomp", "7"}), "Can't read seccomp data: Bad file descriptor");
  EXPECT_EQ(world.refusal({"--seccomp", "7", "--add-seccomp-fd", "8"}), "--add-seccomp-fd cannot be combined with --seccomp");
}

TEST(BwrapWords, AnOrdinaryUserHasNoCapabilitiesUnlessAsked) {
  World world;
  EXPECT_TRUE(world.recipe({}).set_capabilities);
  EXPECT_EQ(world.recipe({}).capabilities, 0U);
  EXPECT_EQ(world.recipe({"--cap-add", "CAP_CHOWN", "--cap-add", "cap_kill"}).capabilities, 0b100001U);
  EXPECT_EQ(world.recipe({"--cap-add", "all", "--cap-drop", "ALL", "--cap-add", "CAP_KILL"}).capabilities, 0b100000U);
  EXPECT_EQ(world.refusal({"--cap-add", "CAP_FLY"}), "unknown cap: CAP_FLY");
  world.here.uid = 0;
  world.here.capabilities = 0b11;
  EXPECT_FALSE(world.recipe({}).set_capabilities) << "root keeps what it has";
  const auto recipe = world.recipe({"--cap-drop", "CAP_CHOWN"});
  EXPECT_TRUE(recipe.set_capabilities);
  EXPECT_EQ(recipe.capabilities, 0b10U);
  EXPECT_EQ(find_capability("CAP_CHECKPOINT_RESTORE"), 40);
  EXPECT_FALSE(find_capability("kill"));
}

TEST(BwrapWords, OnlyTheLastIsSaid) {
  World world;
  const Parsed parsed = world.parse({"--chdir", "/a", "--chdir", "/b", "true"});
  EXPECT_EQ(parsed.warnings, Words({"Only the last --chdir option will take effect"}));
  EXPECT_EQ(parsed.recipe.chdir, "/b");
}

TEST(BwrapWords, TheHelpNamesEveryOption) {
  const std::string help = help_text("bwrap");
  EXPECT_TRUE(help.starts_with("usage: bwrap [OPTIONS...] [--] COMMAND [ARGS...]\n"));
  for (const char* option :
       {"--perms OCTAL", "--argv0 VALUE", "--overlay RWSRC WORKDIR DEST", "--json-status-fd FD", "--disable-userns"})
    EXPECT_NE(help.find(option), std::string::npos) << option;
}

TEST(BwrapTexts, AreThoseThatCallersMatch) {
  World world;
  const auto recipe = world.recipe({"--bind", "/no-such", "/d", "--proc", "/proc", "--symlink", "a", "/l"});
  using launch::RecipeFailure;
  EXPECT_EQ(failure_text(recipe, {RecipeFailure::FailedStep::kSource, 0, ENOENT, {}}),
            "Can't find source path /no-such: No such file or directory");
  EXPECT_EQ(failure_text(recipe, {RecipeFailure::FailedStep::kProc, 1, EPERM, {}}),
            "Can't mount proc on /newroot/proc: Operation not permitted");
  EXPECT_EQ(failure_text(recipe, {RecipeFailure::FailedStep::kUidMap, -1, EACCES, {}}), "setting up uid map: Permission denied");
  EXPECT_EQ(failure_text(recipe, {RecipeFailure::FailedStep::kLoopback, -1, EPERM, {}}),
            "loopback: Failed RTM_NEWADDR: Operation not permitted");
  EXPECT_TRUE(failure_text(recipe, {RecipeFailure::FailedStep::kClone, -1, EPERM, {}})
                  .starts_with("No permissions to create a new namespace"));
  EXPECT_EQ(failure_text(recipe, {RecipeFailure::FailedStep::kExec, -1, ENOENT, {}}), "execvp true: No such file or directory");
  EXPECT_EQ(failure_text(recipe, {RecipeFailure::FailedStep::kSymlinkIsOther, 2, EEXIST, "b"}),
            "Can't make symlink at /l: existing destination is b");
}

TEST(BwrapTexts, NameWhereARecipeIsWeaker) {
  World world;
  const auto tight = world.recipe(
      {"--unshare-all", "--disable-userns", "--unshare-user", "--new-session", "--die-with-parent", "--ro-bind", "/", "/"});
  EXPECT_EQ(weaknesses(tight), Words({"no system call is refused (--seccomp)"}));
  const auto loose = world.recipe({"--bind", "/", "/"});
  EXPECT_GE(weaknesses(loose).size(), 7U);
}

}  // namespace
}  // namespace belljar::bwrap
