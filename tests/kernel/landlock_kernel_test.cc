// Landlock in a real kernel: each right that a domain takes away, beside its twin without the domain.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "kernel/landlock.h"
#include "kernel/support_child.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar::kernel {
namespace {

using landlock::HandledAccess;
using landlock::Rights;
using test::TempDir;

struct PathRule {
  std::string path;
  Rights rights;
};

long result(int value) { return value < 0 ? -errno : value; }

// Enters a domain that handles `handled` and allows `rules`, then acts.
long within(const HandledAccess& handled, const std::vector<PathRule>& rules, const std::function<long()>& act) {
  const UniqueFd ruleset(landlock::create_ruleset(handled));
  if (!ruleset.valid()) return -1000;
  for (const PathRule& rule : rules) {
    const UniqueFd place(open(rule.path.c_str(), O_PATH | O_CLOEXEC));
    if (landlock::add_path(ruleset.get(), place.get(), rule.rights) != 0) return -1001;
  }
  if (landlock::restrict_self(ruleset.get()) != 0) return -1002;
  return act();
}

long open_close(const std::string& path, int flags) {
  const UniqueFd fd(open(path.c_str(), flags | O_CLOEXEC, 0644));
  return fd.valid() ? 0 : -errno;
}

struct Case {
  const char* name;
  int abi;
  Rights needed;  // with it on the directory the act works, without it not
  int refused;
  std::function<long()> act;
};

void expect_rights_decide(const std::string& dir, const std::vector<Case>& cases) {
  const int abi = landlock_abi();
  const HandledAccess handled{.fs = landlock::fs_all(abi)};
  for (const Case& c : cases) {
    if (abi < c.abi) continue;
    const Rights all = landlock::fs_all(abi);
    EXPECT_EQ(in_child([&] { return within(handled, {{dir, all & ~c.needed}}, c.act); }).value, -c.refused) << c.name;
    EXPECT_EQ(in_child([&] { return within(handled, {{dir, all}}, c.act); }).value, 0) << c.name << " with the right";
    EXPECT_EQ(in_child(c.act).value, 0) << c.name << " without a domain";
  }
}

// Leaves the directory as it was, so that each act can be done three times.
TEST(LandlockKernel, EachFileRightAllowsItsActAndNothingElseDoes) {
  BELLJAR_NEEDS(landlock_abi_at_least(1));
  const TempDir dir;
  const std::string file = dir.write("file", "text");
  dir.make_dir("from");
  dir.make_dir("to");
  const auto made = [&dir](const char* name, const std::function<long(const char*)>& make, bool directory = false) {
    return [path = dir / name, make, directory] {
      const long status = make(path.c_str());
      if (status >= 0) unlinkat(AT_FDCWD, path.c_str(), directory ? AT_REMOVEDIR : 0);
      return status;
    };
  };
  constexpr Rights kFiles = landlock::kRemoveFile;
  expect_rights_decide(
      dir.path(), {
                      {"read", 1, landlock::kReadFile, EACCES, [&] { return open_close(file, O_RDONLY); }},
                      {"write", 1, landlock::kWriteFile, EACCES, [&] { return open_close(file, O_WRONLY); }},
                      {"list", 1, landlock::kReadDir, EACCES, [&] { return open_close(dir.path(), O_RDONLY | O_DIRECTORY); }},
                      {"create", 1, landlock::kMakeReg, EACCES,
                       made("new", [](const char* p) { return open_close(p, O_WRONLY | O_CREAT | O_EXCL); })},
                      {"mkdir", 1, landlock::kMakeDir, EACCES,
                       made(
                           "d", [](const char* p) { return result(mkdir(p, 0755)); }, true)},
                      {"symlink", 1, landlock::kMakeSym, EACCES, made("l", [](const char* p) { return result(symlink("x", p)); })},
                      {"fifo", 1, landlock::kMakeFifo, EACCES, made("p", [](const char* p) { return result(mkfifo(p, 0600)); })},
                      {"unlink", 1, kFiles, EACCES, [&] { return result(unlink(dir.write("gone", "").c_str())); }},
                      {"rmdir", 1, landlock::kRemoveDir, EACCES, [&] { return result(rmdir(dir.make_dir("gone.d").c_str())); }},
                      {"truncate", 3, landlock::kTruncate, EACCES, [&] { return result(truncate(file.c_str(), 4)); }},
                      {"move between directories", 2, landlock::kRefer, EXDEV,
                       [&] { return result(rename(dir.write("from/x", "").c_str(), (dir / "to/x").c_str())); }},
                  });
}

TEST(LandlockKernel, ReadExecReadsAndRunsButDoesNotWrite) {
  BELLJAR_NEEDS(landlock_abi_at_least(1));
  const TempDir dir;
  const std::string file = dir.write("file", "text");
  const int abi = landlock_abi();
  const HandledAccess handled{.fs = landlock::fs_all(abi)};
  const auto inside = [&](Rights rights, const std::function<long()>& act) {
    return in_child([&] { return within(handled, {{dir.path(), rights}}, act); }).value;
  };
  const auto write = [&] { return open_close(file, O_WRONLY); };
  const auto read = [&] { return open_close(file, O_RDONLY); };
  EXPECT_EQ(inside(landlock::fs_read_exec(abi), read), 0);
  EXPECT_EQ(inside(landlock::fs_read_exec(abi), write), -EACCES);
  EXPECT_EQ(inside(landlock::fs_read_write(abi), write), 0);
  EXPECT_EQ(in_child([&] { return within(handled, {}, read); }).value, -EACCES);
}

TEST(LandlockKernel, ARuleOnAFileTakesFileRightsOnly) {
  BELLJAR_NEEDS(landlock_abi_at_least(1));
  const TempDir dir;
  const std::string file = dir.write("file", "text");
  const int abi = landlock_abi();
  const UniqueFd ruleset(landlock::create_ruleset({.fs = landlock::fs_all(abi)}));
  const UniqueFd place(open(file.c_str(), O_PATH | O_CLOEXEC));
  EXPECT_EQ(landlock::add_path(ruleset.get(), place.get(), landlock::fs_read_write(abi)), -EINVAL);
  EXPECT_EQ(landlock::add_path(ruleset.get(), place.get(), landlock::fs_on_file(landlock::fs_read_write(abi))), 0);
}

TEST(LandlockKernel, TheMasksHoldExactlyWhatThisKernelKnows) {
  BELLJAR_NEEDS(landlock_abi_at_least(1));
  const int abi = landlock_abi();
  EXPECT_TRUE(UniqueFd(landlock::create_ruleset({.fs = landlock::fs_all(abi)})).valid());
  EXPECT_EQ(landlock::create_ruleset({}), -ENOMSG);
  if (abi > 7) return;  // a newer kernel knows more than our masks
  const Rights next = landlock::fs_all(abi) + 1;
  EXPECT_EQ(landlock::create_ruleset({.fs = next}), -EINVAL);
  EXPECT_EQ(UniqueFd(landlock::create_ruleset({.net = landlock::kBindTcp | landlock::kConnectTcp})).valid(), abi >= 4);
  EXPECT_EQ(UniqueFd(landlock::create_ruleset({.scoped = landlock::kScopeAbstractUnix | landlock::kScopeSignal})).valid(),
            abi >= 6);
}

TEST(LandlockMasks, GrowWithTheAbi) {
  EXPECT_EQ(landlock::fs_all(0), 0U);
  EXPECT_EQ(landlock::fs_all(1), 0x1fffU);
  EXPECT_EQ(landlock::fs_all(2), 0x3fffU);
  EXPECT_EQ(landlock::fs_all(3), 0x7fffU);
  EXPECT_EQ(landlock::fs_all(4), 0x7fffU);
  EXPECT_EQ(landlock::fs_all(5), 0xffffU);
  EXPECT_EQ(landlock::fs_all(7), 0xffffU);
  EXPECT_EQ(landlock::net_all(3), 0U);
  EXPECT_EQ(landlock::net_all(4), 3U);
  EXPECT_EQ(landlock::scope_all(5), 0U);
  EXPECT_EQ(landlock::scope_all(6), 3U);
  EXPECT_EQ(landlock::fs_read_write(5) & landlock::kMakeBlock, 0U);
  EXPECT_EQ(landlock::fs_devices(4) & landlock::kIoctlDev, 0U);
}

// A bound socket on a port the kernel chose; -errno.
long bind_tcp(std::uint16_t port) {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return result(bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name));
}

TEST(LandlockKernel, BindingAPortNeedsItsRule) {
  BELLJAR_NEEDS(landlock_abi_at_least(4));
  const auto bound = [](bool allowed) {
    return in_child([allowed] {
             const UniqueFd ruleset(landlock::create_ruleset({.net = landlock::kBindTcp}));
             if (allowed && landlock::add_port(ruleset.get(), 0, landlock::kBindTcp) != 0) return -1001L;
             if (landlock::restrict_self(ruleset.get()) != 0) return -1002L;
             return bind_tcp(0);
           })
        .value;
  };
  EXPECT_EQ(bound(false), -EACCES);
  EXPECT_EQ(bound(true), 0);
  EXPECT_EQ(in_child([] { return bind_tcp(0); }).value, 0);
}

TEST(LandlockKernel, DeviceIoctlNeedsItsRight) {
  BELLJAR_NEEDS(landlock_abi_at_least(5));
  const int abi = landlock_abi();
  const auto ask = [] {
    const UniqueFd fd(open("/dev/ptmx", O_RDWR | O_CLOEXEC | O_NOCTTY));
    if (!fd.valid()) return -static_cast<long>(errno) - 2000;
    int number = 0;
    return result(ioctl(fd.get(), TIOCGPTN, &number));
  };
  const Rights all = landlock::fs_all(abi);
  const auto inside = [&](Rights rights) { return in_child([&] { return within({.fs = all}, {{"/dev", rights}}, ask); }).value; };
  EXPECT_EQ(inside(landlock::fs_devices(abi)), 0);
  EXPECT_EQ(inside(landlock::fs_devices(abi) & ~landlock::kIoctlDev), -EACCES);
  EXPECT_EQ(inside(landlock::fs_read_write(abi)), -EACCES);  // a workspace has no devices to talk to
  EXPECT_EQ(in_child(ask).value, 0);
}

TEST(LandlockKernel, SignalScopeKeepsSignalsInside) {
  BELLJAR_NEEDS(landlock_abi_at_least(6));
  const auto signal_parent = [](Rights scoped) {
    return in_child([scoped] {
             if (scoped != 0 && within({.scoped = scoped}, {}, [] { return 0L; }) != 0) return -1000L;
             return result(kill(getppid(), 0));
           })
        .value;
  };
  EXPECT_EQ(signal_parent(landlock::kScopeSignal), -EPERM);
  EXPECT_EQ(signal_parent(landlock::kScopeAbstractUnix), 0);
  EXPECT_EQ(signal_parent(0), 0);
}

TEST(LandlockKernel, AbstractSocketScopeKeepsConnectionsInside) {
  BELLJAR_NEEDS(landlock_abi_at_least(6));
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  // Autobind: the kernel picks an abstract name nobody else has, unix(7).
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(sa_family_t)), 0);
  ASSERT_EQ(listen(listener.get(), 8), 0);
  socklen_t size = sizeof name;
  ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
  const auto connect_within = [&](Rights scoped) {
    return in_child([&, scoped] {
             if (scoped != 0 && within({.scoped = scoped}, {}, [] { return 0L; }) != 0) return -1000L;
             const UniqueFd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
             return result(connect(client.get(), reinterpret_cast<const sockaddr*>(&name), size));
           })
        .value;
  };
  EXPECT_EQ(connect_within(landlock::kScopeAbstractUnix), -EPERM);
  EXPECT_EQ(connect_within(landlock::kScopeSignal), 0);
  EXPECT_EQ(connect_within(0), 0);
}

// What the header warns of: these stay free. When one of these fails, Landlock has grown and the comment is out of date.
TEST(LandlockKernel, MetadataStaysFree) {
  BELLJAR_NEEDS(landlock_abi_at_least(1));
  const TempDir dir;
  const std::string file = dir.write("file", "text");
  const HandledAccess handled{.fs = landlock::fs_all(landlock_abi())};
  EXPECT_EQ(in_child([&] { return within(handled, {}, [&] { return result(chmod(file.c_str(), 0600)); }); }).value, 0);
  EXPECT_EQ(in_child([&] { return within(handled, {}, [&] { return open_close(file, O_RDONLY); }); }).value, -EACCES);
}

}  // namespace
}  // namespace belljar::kernel
