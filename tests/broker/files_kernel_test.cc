// File calls performed by the broker answer as the kernel does.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/format.h"
#include "broker/support_fixture.h"
#include "broker/support_random.h"
#include "support/eventually.h"

namespace belljar::test {
namespace {

// The first line that differs, with what came before.
std::string difference(const std::string& one, const std::string& other) {
  std::istringstream a(one), b(other);
  std::string line_a, line_b, last;
  for (int number = 1;; ++number) {
    const bool more_a = static_cast<bool>(std::getline(a, line_a));
    const bool more_b = static_cast<bool>(std::getline(b, line_b));
    if (!more_a && !more_b) return "";
    if (!more_a || !more_b || line_a != line_b) return format("line {}\n  kernel: {}\n  broker: {}\n", number, line_a, line_b);
  }
}

class Differential : public Inside {
 protected:
  std::string run(unsigned seed, int operations, bool brokered, std::shared_ptr<const broker::FileRules> rules = nullptr) {
    const std::string outer = dir / format("{}{}", brokered ? "b" : "k", seed);
    const std::string where = outer + "/play";  // ".." of it is the sequence's as well
    std::filesystem::create_directories(where);
    const unsigned uid = is_root() ? user_uid() : getuid(), gid = is_root() ? user_gid() : getgid();
    for (const std::string& each : {outer, where}) {
      if (is_root() && chown(each.c_str(), uid, gid) != 0) ADD_FAILURE() << "chown";
    }
    make_playground(where, uid, gid);
    Setting twin = setting(brokered);
    twin.files = kernel::FileCalls::kWrites;
    twin.options.rules = std::move(rules);
    return run_inside(twin, [&] { return play(where, seed, operations); });
  }
};
INSTANTIATE_TEST_SUITE_P(As, Differential, testing::Values(Front::kRoot, Front::kUser), front_name);

TEST_P(Differential, ARandomSequenceAnswersTheSame) {
  const char* const given = getenv("BELLJAR_TEST_SEED");
  const unsigned first = given != nullptr ? static_cast<unsigned>(atoi(given)) : 1;
  for (unsigned seed = first; seed < first + 6; ++seed) {
    const std::string kernel = run(seed, 3000, false);
    const std::string broker = run(seed, 3000, true);
    ASSERT_GT(kernel.size(), 10000U) << kernel;
    ASSERT_TRUE(kernel == broker) << difference(kernel, broker) << "BELLJAR_TEST_SEED=" << seed;
  }
}

// openat2(2) with what it was made for. In a world of its own, which lies beside what nobody may reach.
struct Openat2 {
  const char* path;
  std::uint64_t flags, resolve;
};

constexpr std::uint64_t kBeneath = RESOLVE_BENEATH, kInRoot = RESOLVE_IN_ROOT;
constexpr Openat2 kOpens[] = {
    {"file", O_RDONLY, 0},
    {"file", O_RDWR, kBeneath},
    {"/file", O_RDWR, kBeneath},
    {"/file", O_RDWR, kInRoot},
    {"///file", O_RDONLY, kInRoot},
    {"../outside", O_RDWR, kBeneath},
    {"../outside", O_RDWR, kInRoot},
    {"../file", O_RDWR, kInRoot},
    {"sub/../file", O_RDWR, kBeneath},
    {"sub/../../outside", O_RDWR, kBeneath},
    {"sub/../../file", O_RDWR, kInRoot},
    {"up/outside", O_RDWR, kBeneath},
    {"up/file", O_RDWR, kInRoot},
    {"escape", O_RDWR, kBeneath},
    {"escape", O_RDWR, kInRoot},
    {"escape", O_RDWR | O_NOFOLLOW, kBeneath},
    {"absolute", O_RDWR, kBeneath},
    {"absolute", O_RDWR, kInRoot},
    {"tofile", O_RDWR, kBeneath},
    {"tofile", O_RDWR, kBeneath | RESOLVE_NO_SYMLINKS},
    {"tofile", O_RDWR, RESOLVE_NO_SYMLINKS},
    {"sub/back", O_RDWR, kBeneath},
    {"tosub/back", O_RDWR, kBeneath},
    {"tosub/back", O_RDWR, kInRoot},
    {"tosub/deep", O_RDWR, kBeneath},
    {"loop", O_RDWR, kBeneath},
    {"loop", O_RDWR, kInRoot},
    {".", O_RDONLY | O_DIRECTORY, kBeneath},
    {"..", O_RDONLY | O_DIRECTORY, kBeneath},
    {"..", O_RDONLY | O_DIRECTORY, kInRoot},
    {"/", O_RDONLY | O_DIRECTORY, kInRoot},
    {"/", O_RDONLY | O_DIRECTORY, kBeneath},
    {"sub/..", O_RDONLY | O_DIRECTORY, kInRoot},
    {"sub/.", O_WRONLY, kBeneath},
    {"sub/", O_RDONLY, kBeneath},
    {"file/", O_RDONLY, kBeneath},
    {"tosub/", O_RDONLY | O_DIRECTORY, kInRoot},
    {"missing", O_RDWR, kBeneath},
    {"sub/new", O_RDWR | O_CREAT, kBeneath},
    {"sub/new", O_RDWR | O_CREAT | O_EXCL, kBeneath},
    {"tosub/other", O_RDWR | O_CREAT | O_EXCL, kInRoot},
    {"/sub/third", O_RDWR | O_CREAT, kInRoot},
    {"/sub/fourth", O_RDWR | O_CREAT, kBeneath},
    {"../created", O_RDWR | O_CREAT, kBeneath},
    {"../created", O_RDWR | O_CREAT, kInRoot},
    {"dangling", O_RDWR | O_CREAT, kBeneath},
    {"dangling-out", O_RDWR | O_CREAT, kBeneath},
    {"dangling-out", O_RDWR | O_CREAT, kInRoot},
    {"dangling", O_RDWR | O_CREAT | O_EXCL, kInRoot},
    {"sub/", O_RDWR | O_CREAT, kBeneath},
    {"sub/..", O_RDWR | O_CREAT, kBeneath},
    {"sub", O_RDWR | O_TMPFILE, kBeneath},
    {"up", O_RDWR | O_TMPFILE, kBeneath},
    {"file", O_RDWR, kBeneath | kInRoot},
    {"file", O_RDWR, 0x100},
    {"", O_RDWR, kBeneath},
};

std::string try_openat2(const std::string& where) {
  const UniqueFd root(open(where.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::string text;
  for (const Openat2& each : kOpens) {
    open_how how{.flags = each.flags | O_CLOEXEC, .mode = 0, .resolve = each.resolve};
    if ((each.flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) != 0) how.mode = 0640;
    const UniqueFd fd(static_cast<int>(syscall(SYS_openat2, root.get(), each.path, &how, sizeof how)));
    std::string answer = fd.valid() ? "ok" : strerrorname_np(errno);
    if (fd.valid() && (each.flags & O_TMPFILE) != O_TMPFILE) {
      std::error_code none;
      const auto path = std::filesystem::read_symlink(format("/proc/self/fd/{}", fd.get()), none).string();
      answer += " " + (path.starts_with(where) ? path.substr(where.size()) : path);
    }
    text += format("{} {:#x} {:#x}: {}\n", each.path, each.flags, each.resolve, answer);
  }
  open_how how{.flags = O_RDONLY | O_CLOEXEC, .mode = 0, .resolve = 0};
  std::byte longer[64] = {};
  std::memcpy(longer, &how, sizeof how);
  const auto sized = [&](std::size_t size) { return named(syscall(SYS_openat2, root.get(), "file", longer, size)) + " "; };
  text += sized(sizeof how - 1) + sized(sizeof longer) + sized(5000);
  longer[40] = std::byte{1};
  return text + sized(sizeof longer) + named(syscall(SYS_openat2, root.get(), "file", 8, sizeof how)) + "\n";
}

class Scopes : public Inside {};
INSTANTIATE_TEST_SUITE_P(As, Scopes, testing::Values(Front::kRoot, Front::kUser), front_name);

TEST_P(Scopes, Openat2KeepsToThemAsTheKernelDoes) {
  std::string answers[2];
  for (const bool on : {false, true}) {
    const std::string outer = dir / (on ? "b" : "k"), where = outer + "/in";
    Setting with = setting(on);
    if (on) with.files = kernel::FileCalls::kWrites;  // without: no filter at all, which would refuse the call
    mkdir(outer.c_str(), 0777);
    ASSERT_EQ(chmod(outer.c_str(), 0777), 0);
    answers[on ? 1 : 0] = run_inside(with, [&] {
      std::filesystem::create_directories(where + "/sub");
      const auto link = [&](const char* text, const char* name) { std::filesystem::create_symlink(text, where + "/" + name); };
      for (const std::string& file : {outer + "/outside", where + "/file", where + "/sub/deep"})
        close(open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
      link("..", "up"), link("../outside", "escape"), link("/file", "absolute"), link("file", "tofile"),
          link("../file", "sub/back");
      link("sub", "tosub"), link("loop", "loop"), link("sub/made", "dangling"), link("../made", "dangling-out");
      return try_openat2(where);
    });
  }
  EXPECT_EQ(answers[1], answers[0]);
  EXPECT_NE(answers[0].find("\n../outside 0x2 0x8: EXDEV\n"), std::string::npos) << answers[0];
}

// Where fs.protected_symlinks is on (this machine or the guest of tests/vm), it is asked for the end of a path only.
class Sticky : public Inside {};
INSTANTIATE_TEST_SUITE_P(As, Sticky, testing::Values(Front::kRoot, Front::kUser), front_name);

TEST_P(Sticky, AForeignLinkOnTheWayIsFollowedAndAtTheEndAsTheKernelSays) {
  const std::string sticky = dir / "sticky";
  ASSERT_EQ(mkdir(sticky.c_str(), 0755), 0);
  ASSERT_EQ(is_root() ? chown(sticky.c_str(), user_uid(), user_gid()) : 0, 0);
  ASSERT_EQ(chmod(sticky.c_str(), 01777), 0);
  ASSERT_EQ(symlink("missing", (sticky + "/link").c_str()), 0);  // root's own, where root runs this
  ASSERT_EQ(symlink("/proc/self/cwd", (sticky + "/cwd").c_str()), 0);
  std::string answers[2];
  for (const bool on : {false, true}) {
    Setting with = setting(on);
    with.files = kernel::FileCalls::kWrites;
    answers[on ? 1 : 0] = run_inside(with, [&] {
      if (chdir(sticky.c_str()) != 0) return std::string("chdir");
      const auto tried = [](const char* path) {
        const int fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0600);
        std::string answer = fd >= 0 ? "ok" : strerrorname_np(errno);
        if (fd >= 0) close(fd), unlink(path);
        return answer;
      };
      std::string text = tried("link/x") + " " + tried("cwd/x") + " ";
      const int end = open("link", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
      return text + (end >= 0 ? "ok" : strerrorname_np(errno)) + "\n";
    });
    unlink((sticky + "/missing").c_str());
  }
  EXPECT_TRUE(answers[0].starts_with("ENOENT ok ")) << answers[0];
  EXPECT_EQ(answers[1], answers[0]);
}

class Waiting : public Inside {
 protected:
  Setting brokered(bool on) const {
    Setting with = setting(on);
    with.files = kernel::FileCalls::kWrites;
    broker::FileRulesOptions options;
    options.roots = {dir.path()};
    with.options.rules = std::make_shared<broker::FileRules>(std::move(options));
    return with;
  }
  // The same with the broker and without.
  void expect_both(const std::string& expected, const std::function<std::string()>& body) const {
    for (const bool on : {false, true}) EXPECT_EQ(run_inside(brokered(on), body), expected) << (on ? "broker" : "kernel");
  }
};
INSTANTIATE_TEST_SUITE_P(As, Waiting, testing::Values(Front::kRoot, Front::kUser), front_name);

TEST_P(Waiting, FifosWaitForTheirOtherEndAndStopNobody) {
  expect_both("written 20 others moved ok\n", [&] {
    if (chdir(dir.path().c_str()) != 0) return std::string("chdir");
    std::string result;
    std::vector<pid_t> writers;
    for (int i = 0; i < 20; ++i) {
      mkfifo(format("fifo{}", i).c_str(), 0600);
      const pid_t child = fork();
      if (child == 0) {
        const int fd = open(format("fifo{}", i).c_str(), O_WRONLY | O_CLOEXEC);
        _exit(fd >= 0 && write(fd, "x", 1) == 1 ? 0 : 1);
      }
      writers.push_back(child);
    }
    usleep(200000);  // most of them wait by then; what comes later proves less
    // While they wait, everything else goes on, renames of directories included.
    mkdir("one", 0755);
    const std::string moved = named(rename("one", "two"));
    rmdir("two");
    int written = 0;
    for (int i = 0; i < 20; ++i) {
      const int fd = open(format("fifo{}", i).c_str(), O_RDONLY | O_CLOEXEC);
      char byte = 0;
      if (read(fd, &byte, 1) == 1 && byte == 'x') ++written;
      close(fd);
      unlink(format("fifo{}", i).c_str());
    }
    for (const pid_t child : writers) waitpid(child, nullptr, 0);
    return format("written {} others moved {}\n", written, moved);
  });
}

// More than the broker has threads for.
TEST_P(Waiting, FifosThatNobodyOpensStopNobodyHoweverMany) {
  expect_both("200 200 ok\n", [&] {
    if (chdir(dir.path().c_str()) != 0) return std::string("chdir");
    constexpr int kFifos = 200;
    mkfifo("fifo", 0600);
    std::vector<pid_t> writers;
    for (int i = 0; i < kFifos; ++i) {
      const pid_t child = fork();
      if (child == 0) _exit(open("fifo", O_WRONLY | O_CLOEXEC) >= 0 ? 0 : 1);
      if (child > 0) writers.push_back(child);
    }
    usleep(300000);  // most of them wait by then; what comes later proves less
    const std::string made = named(mkdir("beside", 0755));
    rmdir("beside");
    const int reader = open("fifo", O_RDONLY | O_CLOEXEC);
    int done = 0;
    for (const pid_t child : writers) {
      int status = 1;
      waitpid(child, &status, 0);
      if (status == 0) ++done;
    }
    close(reader);
    unlink("fifo");
    return format("{} {} {}\n", writers.size(), done, made);
  });
}

// Where reads are judged the broker opens the reader's end: the writer, let in by that, may be gone before the caller has it.
TEST_P(Waiting, AReaderGetsWhatAWriterLeftThatHasGone) {
  constexpr int kFifos = 300;
  for (const bool on : {false, true}) {
    Setting with = brokered(on);
    with.files = kernel::FileCalls::kAll;
    const std::string said = run_inside(with, [&] {
      if (chdir(dir.path().c_str()) != 0) return std::string("chdir");
      for (int i = 0; i < kFifos; ++i) mkfifo(format("fifo{}", i).c_str(), 0600);
      const pid_t writer = fork();
      if (writer == 0) {
        for (int i = 0; i < kFifos; ++i) {
          const int fd = open(format("fifo{}", i).c_str(), O_WRONLY | O_CLOEXEC);
          if (write(fd, "x", 1) != 1) _exit(1);
          close(fd);
        }
        _exit(0);
      }
      int read_ones = 0;
      for (int i = 0; i < kFifos; ++i) {
        const int fd = open(format("fifo{}", i).c_str(), O_RDONLY | O_CLOEXEC);
        const bool waits = (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
        char byte = 0;
        if (waits && read(fd, &byte, 1) == 1 && byte == 'x' && read(fd, &byte, 1) == 0) ++read_ones;
        close(fd);
        unlink(format("fifo{}", i).c_str());
      }
      waitpid(writer, nullptr, 0);
      return format("read {}\n", read_ones);
    });
    EXPECT_EQ(said, format("read {}\n", kFifos)) << (on ? "broker" : "kernel");
  }
}

TEST_P(Waiting, ASignalInterruptsOrRestartsTheWaitForAFifo) {
  for (const int flags : {0, SA_RESTART}) {
    expect_both(flags == 0 ? "EINTR 1\n" : "ok 1\n", [&] {
      if (chdir(dir.path().c_str()) != 0) return std::string("chdir");
      mkfifo("fifo", 0600);
      static std::atomic<int> alarms = 0;
      struct sigaction action{};
      action.sa_handler = [](int) { ++alarms; };
      action.sa_flags = flags;
      sigaction(SIGALRM, &action, nullptr);
      const pthread_t writer = pthread_self();
      const auto writer_id = static_cast<pid_t>(syscall(SYS_gettid));
      std::atomic<bool> opened = false;
      std::thread other([&] {
        eventually([&] { return sleeps_in(writer_id, SYS_openat); });
        usleep(50'000);  // the broker has it by then; when it comes later, the signal is the kernel's alone
        pthread_kill(writer, SIGALRM);
        eventually([&] { return alarms > 0; });
        // Nobody comes for a wait that is interrupted, unless it is not.
        if (flags == 0 && eventually([&] { return opened.load(); })) return;
        const UniqueFd reader(open("fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
        eventually([&] { return opened.load(); });
      });
      const int fd = open("fifo", O_WRONLY | O_CLOEXEC);
      const std::string result = named(fd);
      opened = true;
      other.join();
      unlink("fifo");
      return format("{} {}\n", result, alarms.load());
    });
  }
}

// Ours is closed before the caller goes on: it may run what it has just written.
TEST_P(Waiting, AFileThatWasWrittenCanBeRunAtOnce) {
  expect_both("0\n", [&] {
    if (chdir(dir.path().c_str()) != 0) return std::string("chdir");
    int busy = 0;
    for (int i = 0; i < 300; ++i) {
      const int fd = open("program", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
      if (write(fd, "#!/bin/true\n", 12) != 12) ++busy;
      close(fd);
      const pid_t child = vfork();
      if (child == 0) {
        execl("./program", "program", nullptr);
        _exit(errno == ETXTBSY ? 99 : 98);
      }
      int status = 0;
      waitpid(child, &status, 0);
      if (status != 0) ++busy;
      unlink("program");
    }
    return format("{}\n", busy);
  });
}

// The broker holds a caller on one processor while it hands over a descriptor (OneProcessor).
TEST_P(Waiting, TheProcessorsOfACallerAreItsOwnAgain) {
  expect_both("ok as chosen\nok as chosen\n", [] {
    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    std::string result;
    for (const cpu_set_t& chosen : {all, one}) {
      sched_setaffinity(0, sizeof chosen, &chosen);
      std::string opened;
      for (int i = 0; i < 50; ++i) {
        const int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        opened = named(fd);
        close(fd);
      }
      cpu_set_t now;
      sched_getaffinity(0, sizeof now, &now);
      result += opened + (CPU_EQUAL(&now, &chosen) ? " as chosen\n" : " changed\n");
    }
    return result;
  });
}

// As debuggers, sanitizers and pthread_getattr_np(3) do. A process that may not be looked into stays shut, one's own too.
TEST_P(Waiting, ProcessesReachTheirOwnMemoryThroughProc) {
  for (const kernel::FileCalls calls : {kernel::FileCalls::kWrites, kernel::FileCalls::kAll}) {
    for (const bool on : {false, true}) {
      Setting with = brokered(on);
      with.files = calls;
      const std::string text = run_inside(with, [&] {
        volatile int value = 1;
        const int other = 2;
        const int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
        const auto at = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(&value));
        std::string result = named(mem);
        if (mem >= 0 && (pwrite(mem, &other, sizeof other, at) != sizeof other || value != 2)) result += " unchanged";
        result += " " + named(open(format("/proc/{}/task/{}/mem", getpid(), getpid()).c_str(), O_WRONLY | O_CLOEXEC));
        result += " " + named(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
        const pid_t child = fork();
        if (child == 0) {
          prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
          const bool shut = open("/proc/self/mem", O_RDWR | O_CLOEXEC) < 0 && errno == EACCES;
          kill(getpid(), SIGSTOP);
          _exit(shut ? 0 : 1);
        }
        int status = 0;
        waitpid(child, &status, WUNTRACED);
        result += " " + named(open(format("/proc/{}/mem", child).c_str(), O_RDWR | O_CLOEXEC));
        kill(child, SIGCONT);
        waitpid(child, &status, 0);
        return result + (status == 0 ? " shut\n" : " open\n");
      });
      EXPECT_EQ(text, "ok ok ok EACCES shut\n") << (on ? "broker" : "kernel");
    }
  }
}

TEST_P(Waiting, TerminalsAreTheCallersOwn) {
  expect_both("master ok slave ok tty same ENXIO\n", [&] {
    const int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    std::string result = "master " + named(master);
    grantpt(master), unlockpt(master);
    const std::string name = ptsname(master) != nullptr ? ptsname(master) : "";
    const pid_t child = fork();
    if (child == 0) {
      setsid();
      const bool none = open("/dev/tty", O_RDWR | O_CLOEXEC) < 0 && errno == ENXIO;
      const int slave = open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
      if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) != 0) _exit(1);
      const int own = open("/dev/tty", O_RDWR | O_CLOEXEC);
      _exit(own >= 0 && tcgetsid(own) == getpid() ? (none ? 0 : 3) : 2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status == 0) result += " slave ok tty same ENXIO";
    return result + (status == 0 ? "" : format(" {}", status >> 8)) + "\n";
  });
}

}  // namespace
}  // namespace belljar::test
