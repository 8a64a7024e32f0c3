// Rules by name hold whatever the command does: directly, by renames, links, kept descriptors, and with a second thread that swaps
// names, links and directories as fast as it can.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "base/format.h"
#include "broker/support_fixture.h"
#include "kernel/tree_lock.h"
#include "support/awaited.h"
#include "support/eventually.h"

namespace belljar::test {
namespace {

constexpr char kInert[] = "[user]\n\tname = A\n";
constexpr char kEvil[] = "[core]\n\tfsmonitor = touch /tmp/pwned\n";

std::string put(const std::string& path, std::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return named(fd);
  const std::string answer = named(write(fd, text.data(), text.size()));
  return close(fd) == 0 ? answer : "close";
}

// Whether it succeeds is for the tree to say.
template <class... Results>
void tried(Results...) {}

std::string get(const std::string& path) {
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  return text;
}

class Rules : public Inside {
 protected:
  void SetUp() override {
    Inside::SetUp();
    work = dir / "work";
    std::filesystem::create_directories(work + "/repo/.git/hooks");
    std::filesystem::create_directories(work + "/repo/.git/objects");
    std::filesystem::create_directories(work + "/repo/.git/refs");
    std::ofstream(work + "/repo/.git/HEAD") << "ref: refs/heads/main\n";
    std::ofstream(work + "/repo/.git/config") << kInert;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir.path())) {
      if (is_root() && lchown(entry.path().c_str(), user_uid(), user_gid()) != 0) ADD_FAILURE() << "chown";
    }
  }
  Setting ruled() const {
    Setting with = setting();
    with.files = kernel::FileCalls::kWrites;
    broker::FileRulesOptions options;
    options.roots = {work};
    if (!has_namespaces(GetParam()))
      options.held =
          broker::EnforcedPaths{.writable = {work}, .readonly = {}, .hidden = {}, .readable = {"/"}, .nodes = {"/dev/null"}};
    with.options.rules = std::make_shared<broker::FileRules>(std::move(options));
    return with;
  }
  std::string inside(const std::function<std::string()>& body) const {
    return run_inside(ruled(), [&] {
      if (chdir((work + "/repo").c_str()) != 0) return std::string("chdir");
      return body();
    });
  }
  std::string work;
};
INSTANTIATE_TEST_SUITE_P(As, Rules, testing::Values(Front::kRoot, Front::kUser, Front::kRootPlain, Front::kUserPlain), front_name);

TEST_P(Rules, HooksAreRefusedAndSamplesAreNot) {
  const std::string text = inside([] {
    return answers({put(".git/hooks/pre-commit", "#!/bin/sh\n"), put(".git/hooks/pre-commit.sample", "#!/bin/sh\n"),
                    put("file", "x"), named(rename("file", ".git/hooks/post-merge")), named(link("file", ".git/hooks/post-merge")),
                    named(symlink("file", ".git/hooks/post-merge")), named(mkfifo(".git/hooks/post-merge", 0755))}) +
           "\n";
  });
  const std::string first = text.substr(0, text.find('\n'));
  EXPECT_EQ(first, "EACCES ok ok EACCES EACCES EACCES EACCES") << text;
  EXPECT_NE(text.find("violation create " + work + "/repo/.git/hooks/pre-commit EACCES"), std::string::npos) << text;
  EXPECT_NE(text.find("violation rename " + work + "/repo/.git/hooks/post-merge EACCES"), std::string::npos) << text;
  EXPECT_FALSE(std::filesystem::exists(work + "/repo/.git/hooks/pre-commit"));
}

// "./" at the start of a path takes the short way, and the name that it leads to is judged as without.
TEST_P(Rules, ADotAtTheStartOfAPathHidesNoName) {
  const std::string text = inside([] {
    const int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const auto make = [&](const char* path) { return named(openat(here, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755)); };
    return answers({make("./.git/hooks/pre-commit"), make(".//.//.git/hooks/pre-push"),
                    put("./.git/hooks/commit-msg", "#!/bin/sh\n"), named(mkdir("./made", 0755)), make("./made/file"),
                    named(rename("./made/file", "./.git/hooks/update")), make("./made/file"), named(unlink(".//made/./file"))}) +
           "\n";
  });
  const std::string first = text.substr(0, text.find('\n'));
  EXPECT_EQ(first, "EACCES EACCES EACCES ok ok EACCES EEXIST ok") << text;
  EXPECT_NE(text.find("violation create " + work + "/repo/.git/hooks/pre-push EACCES"), std::string::npos) << text;
}

TEST_P(Rules, ConfigIsJudgedWhenItIsRenamedIntoPlace) {
  const std::string text = inside([] {
    return answers({put(".git/config.lock", "[user]\n\tname = B\n"), named(rename(".git/config.lock", ".git/config")),
                    put(".git/config.lock", kEvil), named(rename(".git/config.lock", ".git/config"))}) +
           "\n";
  });
  EXPECT_EQ(text.substr(0, text.find('\n')), "ok ok ok EACCES") << text;
  EXPECT_EQ(get(work + "/repo/.git/config"), "[user]\n\tname = B\n");
}

TEST_P(Rules, WhatIsWrittenInPlaceIsJudgedWhenItIsClosed) {
  const std::string text = inside([] {
    std::string answer = put(".git/config", "[user]\n\tname = C\n");
    answer += get(".git/config") == "[user]\n\tname = C\n" ? " shown" : " not shown";
    answer += " " + put(".git/config", kEvil);
    return answer + (get(".git/config") == "[user]\n\tname = C\n" ? " kept" : " CHANGED") + "\n";
  });
  EXPECT_EQ(text.substr(0, text.find('\n')), "ok shown ok kept") << text;
  EXPECT_NE(text.find("violation write " + work + "/repo/.git/config"), std::string::npos) << text;
  EXPECT_EQ(get(work + "/repo/.git/config"), "[user]\n\tname = C\n");
}

// Through dup2 and exit nobody calls close(2) on the descriptor that was given.
TEST_P(Rules, WhatIsWrittenInPlaceIsShownHoweverItIsClosed) {
  const std::string text = inside([] {
    const int fd = open(".git/config", O_WRONLY | O_TRUNC | O_CLOEXEC);
    const pid_t child = fork();
    if (child == 0) {
      if (dup2(fd, 1) != 1 || write(1, "[user]\n\tname = D\n", 17) != 17) _exit(1);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    syscall(SYS_close_range, fd, fd, 0);
    mkdir("later", 0755);
    return get(".git/config") + "\n";
  });
  EXPECT_EQ(text.substr(0, text.find("\n\n")), "[user]\n\tname = D") << text;
}

// As a shell does for `exec 12>.git/config`, and for a command in the background: what is opened is closed once before anything is
// written to its other name. What is refused then empties nothing.
TEST_P(Rules, ARefusedWriteLeavesWhatWasThereHoweverItWasRedirected) {
  for (const bool evil : {true, false}) {
    const std::string text = inside([&] {
      std::string answer = put(".git/config", kInert) + "\n";
      const int fd = open(".git/config", O_WRONLY | O_TRUNC | O_CLOEXEC);
      const std::string content = evil ? kEvil : "[user]\n\tname = E\n";
      if (dup2(fd, 12) != 12 || close(fd) != 0) return std::string("dup2");
      if (write(12, content.data(), content.size()) < 0) return std::string("write");
      close(12);
      mkdir("later", 0755);
      return answer + get(".git/config") + "\n";
    });
    const std::string expected = evil ? std::string(kInert) : "[user]\n\tname = E\n";
    EXPECT_TRUE(text.starts_with("ok\n" + expected)) << text;
    EXPECT_EQ(text.find("violation write") != std::string::npos, evil) << text;
    EXPECT_EQ(get(work + "/repo/.git/config"), expected);
  }
}

// Several closes of one open file: what was refused at one is nothing to put back at the next.
TEST_P(Rules, NoRefusedContentComesBackThroughAnEmptiedFile) {
  for (const bool goes_on : {true, false}) {
    const std::string text = inside([&] {
      std::string answer = put(".git/config", kInert) + "\n";
      const int fd = open(".git/config", O_WRONLY | O_TRUNC | O_CLOEXEC);
      const auto close_with = [&](int number, const std::string& content) {
        if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0 || write(fd, content.data(), content.size()) < 0) return false;
        return dup2(fd, number) == number && close(number) == 0;
      };
      bool closed = close_with(990, kEvil) && close_with(991, "");
      if (goes_on) closed = closed && close_with(992, std::string(kEvil) + "\n") && close_with(993, "") && close_with(994, kEvil);
      close(fd);
      mkdir("later", 0755);
      return answer + (closed ? "" : "not closed ") + get(".git/config") + "\n";
    });
    const std::string expected = goes_on ? std::string(kInert) : "";
    EXPECT_TRUE(text.starts_with("ok\n" + expected + "\n")) << text;
    EXPECT_EQ(get(work + "/repo/.git/config"), expected) << "emptied for good is the twin";
  }
}

TEST_P(Rules, AKeptDescriptorCannotChangeAJudgedFile) {
  const std::string text = inside([] {
    const int kept = open("candidate", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    std::string answer = named(write(kept, kInert, sizeof kInert - 1));
    answer += " " + answers({named(link("candidate", "other")), named(rename("candidate", ".git/config")),
                             named(pwrite(kept, kEvil, sizeof kEvil - 1, 0)), put("other", kEvil)});
    answer += std::filesystem::exists("candidate") ? " stays" : " gone";
    return answer + "\n";
  });
  EXPECT_EQ(text.substr(0, text.find('\n')), "ok ok ok ok ok gone") << text;
  EXPECT_EQ(get(work + "/repo/.git/config"), kInert);
}

TEST_P(Rules, ADirectoryIsJudgedWhenItGetsAControlName) {
  const std::string text = inside([] {
    std::string answer;
    mkdir("good", 0755), mkdir("bad", 0755), mkdir("hooked", 0755), mkdir("hooked/hooks", 0755), mkdir("sub", 0755),
        mkdir("sub2", 0755), mkdir("sub3", 0755);
    const int kept = open("good/config", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    answer = answers({named(write(kept, kInert, sizeof kInert - 1)), put("bad/config", kEvil), put("hooked/hooks/pre-push", "#!"),
                      named(rename("good", "sub/.git")), named(rename("bad", "sub2/.git")), named(rename("hooked", "sub3/.git")),
                      named(pwrite(kept, kEvil, sizeof kEvil - 1, 0)), named(rename("hooked/hooks", ".git/modules"))});
    return answer + "\n";
  });
  EXPECT_EQ(text.substr(0, text.find('\n')), "ok ok ok ok EACCES EACCES ok ok") << text;
  EXPECT_EQ(get(work + "/repo/sub/.git/config"), kInert);
  EXPECT_FALSE(std::filesystem::exists(work + "/repo/sub2/.git"));
}

TEST_P(Rules, ControlFilesCannotBeReachedByLinks) {
  const std::string text = inside([] {
    tried(symlink(".git/config", "way"));
    tried(symlink(".git", "git"));
    std::string answer = named(link(".git/config", "copy")) + " ";
    const int fd = open("way", O_RDWR | O_CLOEXEC);  // staged, as under its own name
    answer += answers({named(fd), named(pwrite(fd, kEvil, sizeof kEvil - 1, 0))}) + " ";
    close(fd);
    const int reading = open(".git/config", O_RDONLY | O_CLOEXEC);
    answer += named(open(format("/proc/self/fd/{}", reading).c_str(), O_RDWR | O_CLOEXEC)) + " ";
    const std::string slash = format("/proc/self/fd/{}/", reading);
    return answer +
           answers({named(truncate("git/config", 0)), put("git/hooks/pre-commit", "#!"),
                    named(open(slash.c_str(), O_WRONLY | O_CLOEXEC))}) +
           "\n";
  });
  EXPECT_EQ(text.substr(0, text.find('\n')), "EACCES ok ok EACCES EACCES EACCES ENOTDIR") << text;
  EXPECT_EQ(get(work + "/repo/.git/config"), kInert);
}

TEST_P(Rules, WhatIsNotThereIsNoViolation) {
  const std::string text = inside([] {
    return answers({named(open(".git/hooks/missing", O_WRONLY | O_CLOEXEC)), named(unlink(".git/hooks/missing")),
                    named(rename(".git/hooks/missing", ".git/hooks/other")),
                    named(open(".git/none/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0644))}) +
           "\n";
  });
  EXPECT_EQ(text, "ENOENT ENOENT ENOENT ENOENT\n");
}

// --- a second thread at full speed ---

constexpr auto kRace = std::chrono::milliseconds(2500);

bool planted(const std::string& repo) {
  return std::filesystem::exists(repo + "/.git/hooks/pre-commit") ||
         get(repo + "/.git/config").find("fsmonitor") != std::string::npos || std::filesystem::exists(repo + "/.git/hooks/evil");
}

// `attack` is called over and over while `swap` runs beside it, until both ran often: then "tried".
std::string race_between(const std::function<void()>& swap, const std::function<void()>& attack) {
  std::atomic<bool> stop = false;
  std::atomic<long> swaps = 0;
  std::thread other([&] {
    while (!stop) swap(), ++swaps;
  });
  long attacks = 0;
  const auto begun = std::chrono::steady_clock::now();
  const auto goes_on = [&](auto time) { return std::chrono::steady_clock::now() - begun < time; };
  for (; goes_on(kRace) || ((attacks <= 100 || swaps <= 100) && goes_on(std::chrono::seconds(60))); ++attacks) attack();
  stop = true;
  other.join();
  return attacks > 100 && swaps > 100 ? "tried" : format("attacks {} swaps {}", attacks, swaps.load());
}

TEST_P(Rules, SwappingThePathStringNeverWins) {
  const std::string text = inside([&] {
    alignas(64) static char path[64];
    std::atomic<int> good = 0;
    const std::string answer = race_between(
        [&] {
          std::memcpy(path, ".git/hooks/pre-commit", 22);
          std::memcpy(path, "harmless/x/pre-commit", 22);
        },
        [&] {
          const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
          if (fd >= 0) close(fd), ++good;
        });
    return answer + (planted(work + "/repo") ? " PLANTED" : " safe") + "\n";
  });
  EXPECT_EQ(text.substr(0, text.find('\n')), "tried safe");
}

TEST_P(Rules, SwappingALinkNeverWins) {
  const std::string text = inside([&] {
    mkdir("real", 0755);
    const std::string answer = race_between(
        [&] {
          tried(symlink("real", "way.new")), tried(rename("way.new", "way"));
          tried(symlink(".git/hooks", "way.new")), tried(rename("way.new", "way"));
        },
        [&] {
          const int fd = open("way/pre-commit", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
          if (fd >= 0) close(fd);
          unlink("real/pre-commit");
        });
    return answer + (planted(work + "/repo") ? " PLANTED" : " safe") + "\n";
  });
  EXPECT_EQ(text.substr(0, text.find('\n')), "tried safe");
}

TEST_P(Rules, SwappingAParentNeverWins) {
  const std::string text = inside([&] {
    mkdir("nest", 0755), mkdir("nest/plain", 0755), mkdir("nest/plain/hooks", 0755);
    const std::string answer = race_between(
        [&] {
          rename("nest/plain", "nest/.git");
          rename("nest/.git", "nest/plain");
        },
        [&] {
          const int fd = open("nest/plain/hooks/pre-commit", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
          if (fd >= 0) close(fd);
          if (access("nest/.git/hooks/pre-commit", F_OK) == 0) _exit(9);
          unlink("nest/plain/hooks/pre-commit");
        });
    return answer + (access("nest/.git/hooks/pre-commit", F_OK) == 0 ? " PLANTED" : " safe") + "\n";
  });
  EXPECT_EQ(text.substr(0, text.find('\n')), "tried safe");
}

TEST_P(Rules, SwappingTheContentOrTheSourceNeverWins) {
  const std::string text = inside([&] {
    const int kept = open("shared", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    tried(ftruncate(kept, 0));
    const std::string answer = race_between(
        [&] {
          tried(pwrite(kept, "[user]\n\tname = Abcdefghijklmnop\n\n\n\n\n", 36, 0));
          tried(pwrite(kept, "[core]\n\tfsmonitor = touch /tmp/pwn\n", 36, 0));
          if (symlink("/etc/passwd", "source") == 0) unlink("source");
          if (mkdir("source", 0755) == 0) rmdir("source");
        },
        [&] {
          tried(link("shared", "candidate"));
          rename("candidate", ".git/config");
          tried(link("shared", "source"));
          rename("source", ".git/config");
          unlink("candidate"), unlink("source"), rmdir("source");
        });
    return answer + (planted(work + "/repo") ? " PLANTED" : " safe") + "\n";
  });
  EXPECT_EQ(text.substr(0, text.find('\n')), "tried safe");
}

// --- bounds ---

// Each half of a git directory is free while the other is not there. Both are asked for while a long look into the directory holds
// it in the kernel: whoever judges them without holding each other off has judged both before the first is made.
TEST_P(Rules, TwoHalvesOfAGitDirectoryNeverComeAtOnce) {
  const std::string evil = work + "/repo/evil";
  std::filesystem::create_directories(evil + "/hooks");
  std::ofstream(evil + "/hooks/post-checkout") << "#!/bin/sh\n";
  for (int i = 0; i < 4000; ++i) std::ofstream(evil + format("/a-rather-long-name-that-has-to-be-copied-{}", i));
  if (is_root() && chown(evil.c_str(), user_uid(), user_gid()) != 0) ADD_FAILURE() << "chown";
  const std::string text = inside([] {
    using Make = std::function<long(const char*)>;
    put("file", "x");
    const Make ways[] = {[](const char* name) { return mkdir(name, 0755); },
                         [](const char* name) { return close(open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)); },
                         [](const char* name) { return link("file", name); },
                         [](const char* name) {
                           const std::string from = std::string(name).substr(5);
                           put(from, "x");
                           return rename(from.c_str(), name);
                         },
                         [](const char* name) { return mkfifo(name, 0644); }};
    std::atomic<bool> over = false;
    std::thread holder([&] {
      const int fd = open("evil", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      std::vector<char> entries(1 << 20);
      while (!over) {
        lseek(fd, 0, SEEK_SET);
        while (syscall(SYS_getdents64, fd, entries.data(), entries.size()) > 0) {
        }
      }
      close(fd);
    });
    std::string answer = "one at a time";
    for (int round = 0; round < 10 && answer == "one at a time"; ++round) {
      const auto& way = ways[static_cast<std::size_t>(round) % std::size(ways)];
      std::atomic<int> ready = 0;
      const auto at_once = [&](const Make& make, const char* name) {
        ++ready;
        while (ready < 2) std::this_thread::yield();
        tried(make(name));
      };
      std::thread other([&] { at_once(way, "evil/refs"); });
      at_once(ways[0], "evil/objects");
      other.join();
      if (access("evil/refs", F_OK) == 0 && access("evil/objects", F_OK) == 0) answer = format("both, round {}", round);
      rmdir("evil/objects"), rmdir("evil/refs"), unlink("evil/refs");
    }
    over = true;
    holder.join();
    return answer + "\n";
  });
  EXPECT_EQ(text.substr(0, text.find('\n')), "one at a time") << text.substr(0, 400);
}

// Another sandbox, or a commit, makes the other half. It acts while it holds the lock of all: what is judged here comes after.
TEST_P(Rules, SoItIsBetweenTwoThatHaveADirectoryInCommon) {
  const std::string evil = work + "/repo/evil";
  std::filesystem::create_directories(evil + "/hooks");
  std::ofstream(evil + "/HEAD") << "ref: refs/heads/main\n";
  std::ofstream(evil + "/hooks/post-checkout") << "#!/bin/sh\n";
  const std::string locks = kernel::tree_locks_in(dir / "state");
  kernel::TreeLock other = *kernel::TreeLock::open(locks, {work});
  if (is_root()) dir.give_to(user_uid(), user_gid());
  Setting common = ruled();
  common.options.state_dir = dir / "state";
  std::string left;
  for (const bool half : {true, false}) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    std::unique_lock alone(other);
    std::thread beside([&] {
      char byte = 0;
      EXPECT_EQ(read(ready[0], &byte, 1), 1);
      EXPECT_TRUE(eventually([&] { return is_awaited(locks); }));
      EXPECT_TRUE(!half || mkdir((evil + "/objects").c_str(), 0755) == 0);
      alone.unlock();
    });
    const std::string text = run_inside(common, [&] {
      if (write(ready[1], "x", 1) != 1) return std::string("write");
      return named(mkdir((evil + "/refs").c_str(), 0755)) + "\n";
    });
    beside.join();
    close(ready[0]), close(ready[1]);
    left += text.substr(0, text.find('\n')) + " ";
    std::filesystem::remove(evil + "/objects");
  }
  EXPECT_EQ(left, "EACCES ok ");
}

TEST_P(Rules, WithTheBrokerItsPlaceAmongTheOthersIsGone) {
  const std::string locks = kernel::tree_locks_in(dir / "state");
  Setting common = ruled();
  common.options.state_dir = dir / "state";
  common.before_end = [&] { return exists(locks) ? "there " : "none "; };
  common.after_end = [&] { return exists(locks) ? "left" : "gone"; };
  const std::string text = run_inside(common, [&] { return named(mkdir((work + "/made").c_str(), 0755)) + " "; });
  EXPECT_EQ(text, "ok there gone");
}

TEST_P(Rules, AFloodOfViolationsIsBoundedAndCounted) {
  Setting flood = ruled();
  flood.options.max_violations = 100;
  const std::string text = run_inside(flood, [&] {
    for (int i = 0; i < 5000; ++i) tried(mkfifo(format("{}/repo/.git/hooks/hook{}", work, i).c_str(), 0755));
    return std::string("done\n");
  });
  const auto kept = std::ranges::count(text, '\n') - 2;
  EXPECT_GT(kept, 0);
  EXPECT_LE(kept, 100);
  EXPECT_TRUE(text.ends_with(format("dropped {}\n", 5000 - kept))) << text.substr(text.size() - 100);
}

long resident_pages() {
  std::ifstream file("/proc/self/statm");
  long size = 0, resident = 0;
  file >> size >> resident;
  return resident;
}

TEST_P(Rules, NothingIsLeftBehind) {
  // Once no more files and threads than those are left: who was killed may take a moment to be forgotten.
  const auto after = [&](int rounds, long most_files, long most_threads) {
    Setting counted = ruled();
    counted.options.max_violations = 0;
    counted.before_end = [&] {
      eventually([&] { return entries("/proc/self/fd") <= most_files && entries("/proc/self/task") <= most_threads; });
      return format("{} {} {}\n", entries("/proc/self/fd"), entries("/proc/self/task"), resident_pages());
    };
    const std::string text = run_inside(counted, [&] {
      if (chdir((work + "/repo").c_str()) != 0) return std::string("chdir");
      for (int i = 0; i < rounds; ++i) {
        put("x", "y"), put(".git/config", i % 2 == 0 ? kInert : kEvil), put(".git/hooks/pre-commit", "");
        mkdir("d", 0755), rename("d", "e"), rmdir("e"), tried(symlink("x", "l")), tried(link("x", "m"));
        rename("m", "n"), tried(truncate("n", 1));
        chmod("n", 0600), unlink("n"), unlink("l"), open("missing", O_WRONLY | O_CLOEXEC);
        if (i % 20 != 0) continue;
        const pid_t child = fork();
        if (child == 0) {
          for (;;) put("z", "z");
        }
        usleep(3000);  // into its calls; before them its end proves less
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
      }
      return std::string();
    });
    long files = 0, threads = 0, pages = 0;
    EXPECT_EQ(std::sscanf(text.c_str(), "%ld %ld %ld", &files, &threads, &pages), 3) << text;
    return std::vector<long>{files, threads, pages};
  };
  constexpr long kAny = 1'000'000;
  const auto few = after(200, kAny, kAny), many = after(1000, few[0] + 2, 8);
  EXPECT_LE(many[0], few[0] + 2);
  EXPECT_LE(many[1], 8);
  // Judged contents and refusals come and go in the heap, 12 MiB at most in a run of ten seconds; a leak of one content would be
  // 400 MiB.
  EXPECT_LE(many[2], few[2] + 4096) << "pages of 4 KiB";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(work)) {
    EXPECT_EQ(entry.path().string().find(".belljar-new-"), std::string::npos) << entry.path();
  }
}

}  // namespace
}  // namespace belljar::test
