// The tier without namespaces: rules hold every path, since no mount does, and /proc is the host's. Each refusal beside an act that
// succeeds.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <thread>
#include <vector>

#include "base/format.h"
#include "broker/support_fixture.h"
#include "support/eventually.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

std::string line(std::initializer_list<std::string> list) { return answers(list) + "\n"; }

std::string try_open(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0644);
  const std::string answer = named(fd);
  if (fd >= 0) close(fd);
  return answer;
}

class Held : public Inside {
 protected:
  void SetUp() override {
    Inside::SetUp();
    for (const char* name : {"work/secret", "work/deep/secret", "work/plain", "beside/secret", "beside/plain"})
      std::filesystem::create_directories(dir / name);
    for (const char* name : {"work/secret/key", "work/deep/secret/key", "work/plain/f", "beside/secret/key", "beside/plain/f"})
      std::ofstream(dir / name) << "content";
    if (is_root()) dir.give_to(user_uid(), user_gid());
  }
  Setting held() const {
    Setting with = setting();
    with.files = kernel::FileCalls::kAll;
    broker::FileRulesOptions options;
    options.roots = {dir / "work"};
    options.held = broker::EnforcedPaths{.writable = {dir / "work"},
                                         .readonly = {dir / "work/deep/fixed"},
                                         .hidden = {dir / "work/secret", dir / "work/deep/secret", dir / "beside/secret"},
                                         .readable = {"/"},
                                         .nodes = {"/dev/null"}};
    with.options.rules = std::make_shared<broker::FileRules>(std::move(options));
    return with;
  }
  // One line for each act: "NAME ERRNO".
  std::string inside(const std::function<std::string()>& body) const {
    return run_inside(held(), [&] { return chdir((dir / "work").c_str()) == 0 ? body() : std::string("chdir"); });
  }
};
INSTANTIATE_TEST_SUITE_P(As, Held, testing::Values(Front::kRootPlain, Front::kUserPlain), front_name);

TEST_P(Held, HiddenIsRefusedToEveryCallByEveryWay) {
  const std::string text = inside([&] {
    std::string out;
    for (const std::string& way : {dir / "work/secret", std::string("secret"), dir / "beside/secret", std::string("deep/../secret"),
                                   std::string("/proc/self/cwd/secret")}) {
      const std::string key = way + "/key";
      out += line({try_open(key, O_RDONLY), try_open(key, O_WRONLY), try_open(way + "/new", O_WRONLY | O_CREAT),
                   try_open(way, O_RDONLY | O_DIRECTORY), try_open(way + "/", O_RDONLY), try_open(way + "/.", O_RDONLY),
                   try_open(way, O_TMPFILE | O_RDWR), named(unlink(key.c_str())), named(rename(key.c_str(), "taken")),
                   named(link(key.c_str(), "taken")), named(chmod(key.c_str(), 0600)), named(truncate(key.c_str(), 0)),
                   named(mkdir((way + "/d").c_str(), 0700)), named(rename(way.c_str(), "taken"))});
    }
    if (chdir("secret") == 0) out += line({try_open(".", O_RDONLY), try_open("key", O_RDONLY), try_open("../plain/f", O_RDWR)});
    return out;
  });
  const std::string row = "EACCES EACCES EACCES EACCES EACCES EACCES EACCES EACCES EACCES EACCES EACCES EACCES EACCES EACCES\n";
  EXPECT_TRUE(text.starts_with(row + row + row + row + row + "EACCES EACCES ok\n")) << text;
}

TEST_P(Held, WritesStayBelowWhatIsWritable) {
  const std::string text = inside([&] {
    const std::string out = dir / "beside/plain";
    if (symlink((out + "/f").c_str(), "to-f") != 0) return std::string("symlink");
    const std::string file = out + "/f";
    return line({try_open(file, O_WRONLY), try_open(file, O_RDONLY), try_open(out + "/n", O_WRONLY | O_CREAT),
                 try_open("to-f", O_WRONLY), try_open(out, O_TMPFILE | O_RDWR), try_open(out, O_RDONLY | O_DIRECTORY),
                 named(mkdir((out + "/d").c_str(), 0700)), named(rename(file.c_str(), "f")), named(link(file.c_str(), "f")),
                 named(rename("plain/f", (out + "/g").c_str())), named(unlink(file.c_str())), named(chmod(file.c_str(), 0777)),
                 named(truncate(file.c_str(), 0)), named(mknod((out + "/p").c_str(), S_IFIFO | 0600, 0)),
                 named(symlink("x", (out + "/l").c_str()))}) +
           line({try_open("plain/f", O_WRONLY), try_open("plain/n", O_WRONLY | O_CREAT), try_open("plain", O_TMPFILE | O_RDWR),
                 named(mkdir("d", 0700)), named(rename("plain/f", "f")), named(link("f", "plain/f")), named(chmod("f", 0777)),
                 named(truncate("f", 0)), named(unlink("f")), try_open("/dev/null", O_WRONLY | O_CREAT | O_TRUNC)});
  });
  EXPECT_TRUE(
      text.starts_with("EROFS ok EROFS EROFS EROFS ok EROFS EROFS EROFS EROFS EROFS EROFS EROFS EROFS EROFS\n"
                       "ok ok ok ok ok ok ok ok ok ok\n"))
      << text;
}

// A directory on the way to what is hidden or read-only stays where it is, and what is read-only but not there yet is so later.
TEST_P(Held, TheWayToWhatIsHeldStays) {
  const std::string text = inside([] {
    return line({named(rename("deep", "moved")), named(mkdir("deep/fixed", 0700)), try_open("deep/fixed", O_WRONLY | O_CREAT),
                 named(rename("plain", "deep/fixed")), try_open("deep/other", O_WRONLY | O_CREAT),
                 named(rename("plain", "moved"))});
  });
  EXPECT_TRUE(text.starts_with("EBUSY EROFS EROFS EROFS ok ok\n")) << text;
}

// Nothing of a hidden or read-only directory changes, the name of what is writable in it neither.
TEST_P(Held, WhatIsWritableWithinWhatIsNotStays) {
  for (const char* name : {"work/secret/open", "work/set/open", "work/plain/open"}) std::filesystem::create_directories(dir / name);
  if (is_root()) dir.give_to(user_uid(), user_gid());
  Setting with = setting();
  with.files = kernel::FileCalls::kAll;
  broker::FileRulesOptions options;
  options.roots = {dir / "work"};
  options.held =
      broker::EnforcedPaths{.writable = {dir / "work", dir / "work/secret/open", dir / "work/set/open", dir / "work/plain/open"},
                            .readonly = {dir / "work/set"},
                            .hidden = {dir / "work/secret"},
                            .readable = {"/"},
                            .nodes = {}};
  with.options.rules = std::make_shared<broker::FileRules>(std::move(options));
  const std::string text = run_inside(with, [&] {
    if (chdir((dir / "work").c_str()) != 0) return std::string("chdir");
    std::string out;
    for (const std::string in : {"secret", "set", "plain"}) {
      const std::string open = in + "/open", file = open + "/f";
      out += line({try_open(file, O_WRONLY | O_CREAT), named(rename(file.c_str(), "taken")), named(rmdir(open.c_str())),
                   named(rename(open.c_str(), ("of-" + in).c_str()))});
    }
    return out;
  });
  EXPECT_TRUE(text.starts_with("ok ok EBUSY EBUSY\nok ok EBUSY EBUSY\nok ok ok ENOENT\n")) << text;
}

// The broker could open all of these for the caller: they are its own user's.
TEST_P(Held, ProcessesOfTheHostAreOutOfReach) {
  const Running victim(as_user({"sleep", "1000"}));
  const std::string host = "/proc/" + std::to_string(victim.pid());
  ASSERT_TRUE(eventually([&] { return read_file(host + "/comm") == "sleep\n"; })) << "it is the user's by then";
  const std::string front = "/proc/" + std::to_string(getpid());
  const std::string text = inside([&] {
    const pid_t child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    std::string out;
    for (const std::string& base : {host, front, format("/proc/{}", getppid()), format("{}/task/{}", host, host.substr(6))}) {
      out += line({try_open(base + "/mem", O_RDONLY), try_open(base + "/environ", O_RDONLY), try_open(base + "/maps", O_RDONLY),
                   try_open(base + "/mem", O_RDWR), try_open(base + "/fd", O_RDONLY | O_DIRECTORY),
                   try_open(base + "/root/etc", O_RDONLY), try_open(base + "/cwd", O_RDONLY)});
    }
    for (const std::string& base : {std::string("/proc/self"), format("/proc/{}", getpid()), format("/proc/{}", child)})
      out += line(
          {try_open(base + "/mem", O_RDWR), try_open(base + "/fd", O_RDONLY | O_DIRECTORY), try_open(base + "/maps", O_RDONLY)});
    kill(child, SIGKILL);
    return out + try_open("/proc/sys/kernel/core_pattern", O_WRONLY) + "\n";
  });
  const std::string row = "EACCES EACCES EACCES EACCES EACCES EACCES EACCES\n";
  EXPECT_TRUE(text.starts_with(row + row + row + row + "ok ok ok\nok ok ok\nok ok ok\nEROFS\n")) << text;
  EXPECT_EQ(run(as_user({"head", "-c", "1", host + "/environ"})).exit_code, 0);
}

// --- a second thread at full speed ---

TEST_P(Held, SwappingALinkNeverShowsOrWritesWhatIsHeld) {
  const std::string text = inside([&] {
    std::atomic<bool> stop = false;
    std::atomic<long> swaps = 0;
    std::thread other([&] {
      const std::string beside = dir / "beside/plain";
      for (; !stop; ++swaps) {
        for (const char* where : {"plain", "secret", beside.c_str()}) {
          if (symlink(where, "way.new") == 0 && rename("way.new", "way") != 0) stop = true;
        }
      }
    });
    long attacks = 0, good = 0;
    std::string broken;
    struct stat secret{}, outside{};
    stat("secret/key", &secret), stat((dir / "beside/plain/f").c_str(), &outside);
    const auto often = [&] { return attacks > 50 && swaps > 50 && good > 10; };
    const auto begun = std::chrono::steady_clock::now();
    const auto goes_on = [&](auto time) { return std::chrono::steady_clock::now() - begun < time; };
    for (; goes_on(std::chrono::milliseconds(2500)) || (!often() && goes_on(std::chrono::seconds(60))); ++attacks) {
      for (const auto& [path, flags] : {std::pair("way/key", O_RDONLY), std::pair("way/f", O_WRONLY), std::pair("way", O_RDONLY)}) {
        const int fd = open(path, flags | O_CLOEXEC);
        struct stat now{};
        if (fd < 0 || fstat(fd, &now) != 0) continue;
        ++good;
        if (now.st_ino == secret.st_ino || (flags == O_WRONLY && now.st_ino == outside.st_ino)) broken = " BROKEN";
        struct stat hidden{};
        if (stat("secret", &hidden) == 0 && now.st_ino == hidden.st_ino) broken = " LISTED";
        close(fd);
      }
    }
    stop = true;
    other.join();
    return format("{}{}\n", often() ? "tried" : format("a {} s {} g {}", attacks, swaps.load(), good),
                  broken.empty() ? " safe" : broken);
  });
  EXPECT_EQ(text.substr(0, text.find('\n')), "tried safe");
}

}  // namespace
}  // namespace belljar::test
