// Each change of the host that a plan could see is told, and nothing else is.
#include "backend/paths/witness.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "support/temp_dir.h"

namespace belljar::backend {
namespace {

namespace fs = std::filesystem;
using belljar::test::TempDir;

struct Changed {
  const char* what;
  std::function<void(const TempDir&)> change;
  const char* told;  // below the directory; "": nothing is
};

void replace(const TempDir& dir, const std::string& name, const std::string& text) {
  fs::rename(dir.write(name + ".new", text), dir / name);
}

class WitnessOf : public testing::TestWithParam<Changed> {
 protected:
  void SetUp() override {
    fs::create_directories(dir_ / "home/.ssh");
    fs::create_directories(dir_ / "other/.ssh");
    dir_.write("home/file", "text");
    dir_.write("home/policy", "text");
    dir_.write("home/plain", "text");
    ::link((dir_ / "home/file").c_str(), (dir_ / "other/name").c_str());
    fs::create_symlink("home", dir_ / "link");
    fs::create_symlink("link", dir_ / "far");
    host_.facts(dir_ / "home/.ssh");
    host_.facts(dir_ / "home/.absent/below");
    host_.facts(dir_ / "home/file");
    host_.open_to_command(dir_ / "home/file");
    host_.canonical(dir_ / "far/plain");
    host_.note_file(dir_ / "home/policy");
    host_.note_file(dir_ / "home/no-policy");
    host_.names_in(dir_ / "other");
  }

  TempDir dir_{"/var/tmp"};
  Witness host_;
};

TEST_P(WitnessOf, TellsWhatAPlanWouldSee) {
  ASSERT_EQ(host_.changed(), "");
  GetParam().change(dir_);
  const std::string told = GetParam().told;
  const std::string changed = host_.changed();
  EXPECT_EQ(changed, told.empty() ? "" : dir_ / told) << GetParam().what;
  EXPECT_EQ(host_.changed(), changed) << "a second look";
}

const std::vector<Changed> kChanges = {
    {"nothing", [](const TempDir&) {}, ""},
    {"another name beside", [](const TempDir& dir) { dir.write("home/another", ""); }, ""},
    {"a name that was looked for", [](const TempDir& dir) { fs::create_directories(dir / "home/.absent"); }, "home/.absent"},
    {"a name that came and went",
     [](const TempDir& dir) {
       fs::create_directories(dir / "home/.absent");
       fs::remove(dir / "home/.absent");
     },
     ""},
    {"what is in a directory that nothing in was asked for", [](const TempDir& dir) { dir.write("home/.ssh/key", ""); }, ""},
    {"a directory that is gone", [](const TempDir& dir) { fs::remove(dir / "home/.ssh"); }, "home/.ssh"},
    {"a directory that another has taken the place of",
     [](const TempDir& dir) {
       fs::remove(dir / "home/.ssh");
       fs::rename(dir / "other/.ssh", dir / "home/.ssh");
       fs::create_directories(dir / "other/.ssh");
     },
     "home/.ssh"},
    {"a file of the same text in the place of one", [](const TempDir& dir) { replace(dir, "home/file", "text"); }, "home/file"},
    {"a file that decides by its text", [](const TempDir& dir) { dir.write("home/policy", "other"); }, "home/policy"},
    {"a file that would", [](const TempDir& dir) { dir.write("home/no-policy", ""); }, "home/no-policy"},
    {"a directory that went and came, be it with the same inode",
     [](const TempDir& dir) {
       fs::remove(dir / "home/.ssh");
       fs::create_directories(dir / "home/.ssh");
     },
     "home/.ssh"},
    {"a file that was unlinked and is back by another name of its own",
     [](const TempDir& dir) {
       fs::remove(dir / "home/file");
       fs::rename(dir / "other/name", dir / "home/file");
       ::link((dir / "home/file").c_str(), (dir / "other/name").c_str());
     },
     "home/file"},
    {"a file that was moved away and back",
     [](const TempDir& dir) {
       fs::rename(dir / "home/file", dir / "home/away");
       fs::rename(dir / "home/away", dir / "home/file");
     },
     "home/file"},
    {"a mode", [](const TempDir& dir) { ::chmod((dir / "home/.ssh").c_str(), 0711); }, "home/.ssh"},
    {"a mode by another name of the file", [](const TempDir& dir) { ::chmod((dir / "other/name").c_str(), 0600); }, "home/file"},
    {"a directory above that is a link now",
     [](const TempDir& dir) {
       fs::rename(dir / "home", dir / "moved");
       fs::create_symlink("moved", dir / "home");
     },
     "home"},
    {"a link on the way of a link",
     [](const TempDir& dir) {
       fs::remove(dir / "link");
       fs::create_symlink("other", dir / "link");
     },
     "far/plain"},
    {"a name in a directory that was listed", [](const TempDir& dir) { dir.write("other/new", ""); }, "other"},
};
INSTANTIATE_TEST_SUITE_P(Changes, WitnessOf, testing::ValuesIn(kChanges),
                         [](const auto& one) { return std::to_string(one.index); });

// Queues of events are finite: 16384 by default.
TEST_F(WitnessOf, LostEventsCountAsAChange) {
  const std::string name = dir_ / "home/many";
  const auto make = [&](int times) {
    for (int i = 0; i < times; ++i) {
      ::close(::open(name.c_str(), O_CREAT | O_CLOEXEC, 0600));
      ::unlink(name.c_str());
    }
  };
  make(1000);
  EXPECT_EQ(host_.changed(), "");
  make(20'000);
  EXPECT_NE(host_.changed(), "");
}

// One that is mapped changes without a new time, and its text is not kept.
TEST_F(WitnessOf, NobodyAnswersForALongFileThatDecides) {
  dir_.write("home/long", std::string(64U << 10, 'x'));
  dir_.write("home/longer", std::string((64U << 10) + 1, 'x'));
  ASSERT_EQ(host_.changed(), "") << "nobody asked for them yet";
  host_.note_file(dir_ / "home/long");
  EXPECT_EQ(host_.changed(), "");
  host_.note_file(dir_ / "home/longer");
  EXPECT_EQ(host_.changed(), dir_ / "home/longer");
}

// By whatever name: what a spare finds there is its own.
TEST_F(WitnessOf, NobodyAnswersForAFileOfAProcess) {
  const UniqueFd file(::open((dir_ / "home/policy").c_str(), O_RDONLY | O_CLOEXEC));
  const auto told = [](const std::function<void(const Witness&)>& ask) {
    Witness host;
    ask(host);
    return host.changed();
  };
  fs::create_directories(dir_ / "links");
  fs::create_symlink("/dev/fd/" + std::to_string(file.get()), dir_ / "links/there");
  fs::create_symlink("/dev/fd/12345", dir_ / "links/not-there");
  fs::create_symlink("/proc/self/../self/fd", dir_ / "links/folder");
  fs::create_symlink("../home/policy", dir_ / "links/ordinary");
  fs::create_symlink("loop", dir_ / "links/loop");
  for (const char* name : {"links/there", "links/not-there"}) {
    EXPECT_EQ(told([&](const Witness& host) { host.note_file(dir_ / name); }), dir_ / name);
    EXPECT_EQ(told([&](const Witness& host) { host.canonical(dir_ / name); }), dir_ / name);
  }
  const std::string below = dir_ / "links/folder/" + std::to_string(file.get());
  EXPECT_NE(told([&](const Witness& host) { host.note_file(below); }), "");
  for (const char* name : {"links/ordinary", "links/loop", "links/absent"}) {
    EXPECT_EQ(told([&](const Witness& host) { host.note_file(dir_ / name); }), "") << "the twin: " << name;
    EXPECT_EQ(told([&](const Witness& host) { host.canonical(dir_ / name); }), "") << "the twin: " << name;
  }
}

// The directory above watches what lies under the mount.
TEST_F(WitnessOf, AMountPointIsLookedAtEachTime) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a mount";
  const std::string point = dir_ / "home/.ssh";
  if (::mount("none", point.c_str(), "tmpfs", 0, "mode=755") != 0) GTEST_SKIP() << "needs a mount";
  const auto told = [&](const std::function<void()>& change, bool below) {
    Witness host;
    host.facts(below ? point + "/name" : point);
    EXPECT_EQ(host.changed(), "");
    change();
    return host.changed();
  };
  for (const bool below : {true, false}) {
    EXPECT_EQ(told([] {}, below), "") << "the twin";
    EXPECT_EQ(told([&] { ::chmod(point.c_str(), 0700); }, below), point);
    EXPECT_EQ(told([&] { (void)!::chown(point.c_str(), 1234, 1234); }, below), point);
    (void)!::chown(point.c_str(), 0, 0);
    ::chmod(point.c_str(), 0755);
  }
  ::umount2(point.c_str(), MNT_DETACH);
}

// The names in it are no text of its own, however many they are.
TEST_F(WitnessOf, ALargeDirectoryIsNoLongFile) {
  for (int i = 0; i < 600; ++i) dir_.write("large/" + std::string(200, 'n') + std::to_string(i), "");
  ASSERT_EQ(host_.changed(), "");
  host_.note_file(dir_ / "large");
  EXPECT_EQ(host_.changed(), "");
}

}  // namespace
}  // namespace belljar::backend
