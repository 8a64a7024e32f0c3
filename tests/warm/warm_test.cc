// The parts of warm starts: which words are the command's, where sockets lie, who a client is, what a spare takes of it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/unique_fd.h"
#include "kernel/pass_fds.h"
#include "support/temp_dir.h"
#include "warm/caller.h"
#include "warm/door.h"
#include "warm/wire.h"

namespace belljar::warm {
namespace {

using belljar::test::TempDir;
using std::chrono::milliseconds;

RunWords words(std::vector<std::string> argv) {
  argv.insert(argv.begin(), {"belljar", "run"});
  return {std::move(argv), {"A=1", "_=/bin/sh"}, "/srv"};
}

TEST(WarmWords, WhatIsTheCommandsIsNoPartOfTheKind) {
  const std::string kind = words({"--net", "none", "--", "true"}).kind();
  EXPECT_EQ(words({"--net", "none", "--", "false", "-c", "x"}).kind(), kind);
  EXPECT_NE(words({"--net", "host", "--", "true"}).kind(), kind);
  EXPECT_NE(words({"--", "true"}).kind(), kind);
  EXPECT_EQ(words({"-c", "a"}).kind(), words({"-c", "b", "--", "c"}).kind());
  EXPECT_NE(words({"-c", "a"}).kind(), words({"--", "a"}).kind());
  EXPECT_NE(words({"-c", "a", "--net", "none"}).kind(), words({"-c", "a"}).kind());
}

TEST(WarmWords, VariablesCountBeforeThoseOfEachRun) {
  RunWords one = words({"--", "true"}), other = one;
  other.environment = {"A=1", "_=/bin/bash", "SHLVL=3", "OLDPWD=/"};
  EXPECT_EQ(one.kind(), other.kind());
  EXPECT_EQ(one.hash({}), other.hash({}));
  other.environment = {"A=2"};
  EXPECT_NE(one.kind(), other.kind());
  other.environment = {"A=1", "_X=1"};
  EXPECT_NE(one.kind(), other.kind());
  wire::Inherited nice;
  nice.nice = 1;
  EXPECT_NE(one.hash({}), one.hash(nice));
}

TEST(WarmWords, OnlyARunWithOneCommandMayBeServed) {
  EXPECT_TRUE(words({"--", "true"}).parts().right);
  EXPECT_TRUE(words({"-c", "true"}).parts().right);
  EXPECT_EQ(words({"-c", "true"}).parts().text, 3);
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {}, {"--"}, {"--", ""}, {"-c"}, {"-c", ""}, {"-c", "-x"}, {"-c", "a", "-c", "b"}, {"true"}})
    EXPECT_FALSE(words(wrong).parts().right) << testing::PrintToString(wrong);
  EXPECT_FALSE((RunWords{{"belljar", "exec", "--", "true"}, {}, "/"}.parts().right));
}

std::string directory_of(const std::vector<const char*>& environment, bool is_root) {
  std::vector<const char*> ended = environment;
  ended.push_back(nullptr);
  char path[wire::kPathBytes];
  return {path, wire::put_directory(ended.data(), is_root, path)};
}

TEST(WarmPlace, IsTheStateDirectory) {
  EXPECT_EQ(directory_of({"HOME=/home/u", "XDG_STATE_HOME=/s"}, false), "/s/belljar/warm");
  EXPECT_EQ(directory_of({"HOME=/home/u", "XDG_STATE_HOME=s"}, false), "/home/u/.local/state/belljar/warm");
  EXPECT_EQ(directory_of({"HOME=/home/u"}, true), "/var/lib/belljar/warm");
  EXPECT_EQ(directory_of({"HOME=u"}, false), "");
  EXPECT_EQ(directory_of({}, false), "");
  const std::string longest = "XDG_STATE_HOME=/" + std::string(74, 'x'), longer = longest + "x";
  EXPECT_EQ(directory_of({longest.c_str()}, false).size(), 88U);
  EXPECT_EQ(directory_of({longer.c_str()}, false), "") << "no socket has room in it";
}

// A child that is held while it is looked at.
std::optional<Caller> caller_after(const std::function<void()>& change) {
  int ready[2], done[2];
  if (::pipe(ready) != 0 || ::pipe(done) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    change();
    char byte = 0;
    ::close(done[1]);
    (void)!::write(ready[1], &byte, 1);
    (void)!::read(done[0], &byte, 1);
    ::_exit(0);
  }
  char byte = 0;
  (void)!::read(ready[0], &byte, 1);
  auto caller = Caller::look_at(child);
  for (const int fd : {ready[0], ready[1], done[0], done[1]}) ::close(fd);
  ::waitpid(child, nullptr, 0);
  return caller;
}

TEST(WarmCaller, IsWhatACommandWouldInherit) {
  const auto own = Caller::look_at(::getpid());
  ASSERT_TRUE(own.has_value());
  EXPECT_TRUE(caller_after([] {}) == own);
  EXPECT_FALSE(caller_after([] { ::umask(0123); }) == own);
  EXPECT_FALSE(caller_after([] { ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); }) == own);
  EXPECT_FALSE(caller_after([] { ::signal(SIGHUP, SIG_IGN); }) == own);
  EXPECT_FALSE(caller_after([] { (void)!::chdir("/proc"); }) == own);
  EXPECT_FALSE(Caller::look_at(0x7fffffff).has_value());
}

TEST(WarmCaller, IsWhereAnotherIsByItsNamespacesAlone) {
  const auto own = Caller::look_at(::getpid());
  ASSERT_TRUE(own.has_value());
  const auto is_where = [&](const std::optional<Caller>& other) { return other.has_value() && other->is_where(*own); };
  EXPECT_TRUE(is_where(caller_after([] { ::umask(0123); })));
  EXPECT_TRUE(is_where(caller_after([] { (void)!::chdir("/proc"); })));
  EXPECT_FALSE(is_where(caller_after([] { ::unshare(CLONE_NEWUSER); })));
}

// As many filters are not the same ones, unless they are those that everybody here is under.
TEST(WarmCaller, KnowsWhichFiltersOnlyWhereTheyArePid1s) {
  const auto status = [](const char* mode, const char* filters) {
    return "NoNewPrivs:\t1\nSeccomp:\t" + std::string(mode) + "\n" +
           (*filters == '\0' ? "" : "Seccomp_filters:\t" + std::string(filters) + "\n") +
           "Speculation_Store_Bypass:\tthread vulnerable\n";
  };
  EXPECT_TRUE(are_known_filters(status("0", "0"), status("0", "0")));
  EXPECT_TRUE(are_known_filters(status("0", ""), "")) << "nothing to know, and a kernel that does not count";
  EXPECT_TRUE(are_known_filters(status("2", "1"), status("2", "1")));
  EXPECT_FALSE(are_known_filters(status("2", "1"), status("0", "0")));
  EXPECT_FALSE(are_known_filters(status("2", "2"), status("2", "1")));
  EXPECT_FALSE(are_known_filters(status("2", "1"), status("2", "11")));
  EXPECT_FALSE(are_known_filters(status("2", ""), status("2", ""))) << "not counted";
  EXPECT_FALSE(are_known_filters(status("2", "1"), "")) << "pid 1 is not to be seen";
  EXPECT_FALSE(are_known_filters("", ""));
  EXPECT_TRUE(has_known_filters());
}

TEST(WarmCaller, SaysItsLimitsAndPriorities) {
  const wire::Inherited own = own_inherited();
  EXPECT_EQ(own_inherited(), own);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  EXPECT_EQ(own.limits[RLIMIT_NOFILE][0], files.rlim_cur);
  EXPECT_EQ(own.nice, ::getpriority(PRIO_PROCESS, 0));
}

class WarmDoor : public testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_STATE_HOME", state_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("XDG_STATE_HOME"); }

  UniqueFd connect() const {
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    char path[wire::kPathBytes];
    const std::string folder = directory();
    std::memcpy(path, folder.data(), folder.size());
    wire::put_name(path + folder.size(), words_.hash({}), 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path, sizeof path);
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? std::move(socket)
                                                                                                     : UniqueFd();
  }
  // What a client sends, and what the door makes of it.
  std::optional<Visitor> sent(Door& door, const wire::Request& request, const std::string& bytes, std::vector<int> fds) const {
    const UniqueFd socket = connect();
    std::string message(reinterpret_cast<const char*>(&request), sizeof request);
    message += bytes;
    kernel::send_fds<4>(socket.get(), message.data(), message.size(), fds.data(), fds.size());
    return door.next(milliseconds(200), -1);
  }

  TempDir state_{"/var/tmp"};
  RunWords words_ = words({"--", "true"});
};

TEST_F(WarmDoor, TakesARequestAsItWasSent) {
  auto door = Door::open(words_, {}, {});
  ASSERT_TRUE(door) << door.error().line();
  const std::string argv("belljar\0run\0--\0id\0", 18), environment("A=1\0", 4), cwd("/srv\0", 5);
  const wire::Request right{.argc = 4, .argv_bytes = 18, .environment_bytes = 4, .cwd_bytes = 5};
  const auto visitor = sent(*door, right, argv + environment + cwd, {});
  ASSERT_TRUE(visitor.has_value());
  EXPECT_EQ(visitor->run.argv, (std::vector<std::string>{"belljar", "run", "--", "id"}));
  EXPECT_EQ(visitor->run.environment, (std::vector<std::string>{"A=1"}));
  EXPECT_EQ(visitor->run.cwd, "/srv");
  EXPECT_TRUE(visitor->caller == Caller::look_at(::getpid()));

  const auto wrong = [&](auto change, const std::string& bytes, std::vector<int> fds) {
    wire::Request request = right;
    change(request);
    return sent(*door, request, bytes, std::move(fds)).has_value();
  };
  const std::string all = argv + environment + cwd;
  const auto same = [](wire::Request&) {};
  EXPECT_TRUE(wrong(same, all, {})) << "the twin";
  EXPECT_FALSE(wrong(same, all, {0})) << "a stream before it was asked for";
  EXPECT_FALSE(wrong(same, all.substr(0, all.size() - 1), {})) << "cut off";
  EXPECT_FALSE(wrong([](auto& r) { r.magic = 0; }, all, {}));
  EXPECT_FALSE(wrong([](auto& r) { r.argc = 3; }, all, {}));
  EXPECT_FALSE(wrong([](auto& r) { r.argv_bytes = 17, r.environment_bytes = 5; }, all, {})) << "no end of a word";
  EXPECT_FALSE(wrong([](auto& r) { r.argv_bytes = 0xffffffff, r.environment_bytes = 23; }, all, {}));
  EXPECT_FALSE(wrong([](auto& r) { r.ask = static_cast<wire::Ask>(77); }, all, {})) << "asks for nothing that there is";
}

TEST_F(WarmDoor, StreamsComeWithTheWordGoAndNothingElseIsIt) {
  struct Said {
    const char* what;
    std::string bytes;
    std::vector<int> fds;
    bool is_go;
  };
  const auto number = [](std::int32_t value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const Said& said : std::vector<Said>{{"go", number(0), {0, 1, 2}, true},
                                            {"a signal", number(15), {0, 1, 2}, false},
                                            {"too few", number(0), {0, 1}, false},
                                            {"none", number(0), {}, false},
                                            {"too long", number(0) + number(0), {0, 1, 2}, false},
                                            {"longer than there is room for", std::string(5000, '\0'), {0, 1, 2}, false},
                                            {"too short", std::string(1, '\0'), {0, 1, 2}, false}}) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    Visitor visitor;
    visitor.connection = UniqueFd(ends[0]);
    const UniqueFd client(ends[1]);
    kernel::send_fds<3>(client.get(), said.bytes.data(), said.bytes.size(), said.fds.data(), said.fds.size());
    EXPECT_EQ(visitor.await_go(), said.is_go) << said.what;
    EXPECT_EQ(visitor.streams[2].valid(), said.fds.size() == 3) << said.what;
  }
}

TEST_F(WarmDoor, HasTwoPlacesAndFreesThemWithItsEnd) {
  const auto second = [&] { return Door::open(words_, {}, {}); };
  {
    auto one = Door::open(words_, {}, {});
    ASSERT_TRUE(one);
    EXPECT_TRUE(has_room(words_, {}));
    auto two = second();
    ASSERT_TRUE(two);
    EXPECT_FALSE(has_room(words_, {}));
    auto three = second();
    ASSERT_FALSE(three);
    EXPECT_EQ(three.error().code(), Code::kAlreadyExists);
  }
  EXPECT_TRUE(second());
}

TEST_F(WarmDoor, ASocketOfOneThatWasKilledIsTakenOver) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto one = Door::open(words_, {}, {});
    ::_exit(one ? 0 : 1);  // no destructor
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_FALSE(connect().valid());
  auto door = Door::open(words_, {}, {});
  ASSERT_TRUE(door);
  EXPECT_TRUE(connect().valid());
}

TEST_F(WarmDoor, IsNotOpenedInADirectoryThatOthersMayEnter) {
  ASSERT_TRUE(Door::open(words_, {}, {}));
  ASSERT_EQ(::chmod(directory().c_str(), 0755), 0);
  const auto refused = Door::open(words_, {}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  ASSERT_EQ(::chmod(directory().c_str(), 0700), 0);
  EXPECT_TRUE(Door::open(words_, {}, {}));
}

std::size_t sockets() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory())) count += entry.is_socket() ? 1 : 0;
  return count;
}

// None of these answers: their process waits for the answer.
TEST_F(WarmDoor, ThereAreAtMostSixteenThoughTheOldestDoNotAnswer) {
  std::vector<Door> doors;
  for (int i = 0; i < 18; ++i) {
    auto door = Door::open(words({"--env", "N=" + std::to_string(i), "--", "true"}), {}, {});
    ASSERT_TRUE(door);
    doors.push_back(*std::move(door));
    EXPECT_EQ(sockets(), std::min<std::size_t>(doors.size(), 16));
  }
  EXPECT_FALSE(doors[0].next(std::chrono::minutes(5), -1).has_value());  // at once: its socket is gone
}

TEST_F(WarmDoor, RemovesWhatAKilledSpareLeftBeforeItListened) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  make_directory();
  const std::string dead = directory() + "/." + std::to_string(child), living = directory() + "/." + std::to_string(::getppid());
  for (const std::string& path : {dead, living}) std::ofstream(path) << "";
  ASSERT_TRUE(Door::open(words_, {}, {}));
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(living)) << "the twin";
}

TEST_F(WarmDoor, RemovesNoSocketButItsOwn) {
  char name[32];
  wire::put_name(name, words_.hash({}), 0);
  const std::string path = directory() + name;
  {
    auto door = Door::open(words_, {}, {});
    ASSERT_TRUE(door);
    std::filesystem::rename(path, path + ".kept");  // its inode must not be had again
    std::ofstream(path) << "of another";
  }
  EXPECT_TRUE(std::filesystem::remove(path));
  {
    ASSERT_TRUE(Door::open(words_, {}, {}));
  }
  EXPECT_FALSE(std::filesystem::exists(path)) << "the twin";
}

TEST_F(WarmDoor, NoSpareIsMadeForAWhileOfWhatCannotBeWarm) {
  make_directory();
  EXPECT_TRUE(has_room(words_, {}));
  note_cold(words_, {});
  EXPECT_FALSE(has_room(words_, {}));
  EXPECT_TRUE(has_room(words({"--net", "none", "--", "true"}), {})) << "the twin: another kind";
  for (const auto& entry : std::filesystem::directory_iterator(directory()))
    std::filesystem::last_write_time(entry, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(11));
  EXPECT_TRUE(has_room(words_, {})) << "the twin: long ago";
  ASSERT_TRUE(Door::open(words_, {}, {}));
  EXPECT_TRUE(std::filesystem::is_empty(directory())) << "and it is gone";
  ASSERT_EQ(::chmod(directory().c_str(), 0755), 0);
  EXPECT_FALSE(has_room(words_, {})) << "in a directory that others may enter";
}

TEST_F(WarmDoor, EndsWhenItsDirectoryIsRemoved) {
  auto door = Door::open(words_, {}, {});
  ASSERT_TRUE(door);
  ASSERT_EQ(::unlink((directory() + "/" +
                      [&] {
                        char name[32];
                        wire::put_name(name, words_.hash({}), 0);
                        return std::string(name + 1);
                      }())
                         .c_str()),
            0);
  ASSERT_EQ(::rmdir(directory().c_str()), 0);
  EXPECT_FALSE(door->next(std::chrono::minutes(5), -1).has_value());  // at once
}

}  // namespace
}  // namespace belljar::warm
