// What an engine has mounted, against what it was asked for. That an engine can be led astray:
// ContainerBackend.ALinkInAPlannedNamesPlaceIsNotFollowed.
#include "backend/container/mounted.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/container/spec.h"
#include "belljar/units.h"

namespace belljar::backend::container {
namespace {

const std::string kHere =
    "1 0 8:1 / / rw - ext4 /dev/a rw\n"
    "2 1 8:2 / /home rw shared:1 - ext4 /dev/b rw\n"
    "3 2 8:3 /sub /home/me/my\\040disk rw - btrfs /dev/c rw\n"
    "4 1 0:30 / /hidden/deep rw - tmpfs tmpfs rw\n"
    "5 1 8:2 /elsewhere /hidden rw - ext4 /dev/b rw\n";
// Of a container with the workspace /home/me/ws, and .git in it.
const std::string kRoot = "20 9 0:50 / / ro - overlay overlay ro\n21 20 0:51 / /proc rw - proc proc rw\n";
const std::string kWorkspace = "22 20 8:2 /me/ws /home/me/ws rw - ext4 /dev/b rw\n";

const Bind kBind{"/home/me/ws", "/home/me/ws", false};
const Bind kGit{"/home/me/ws/.git", "/home/me/ws/.git", true};

std::string told(const std::vector<Bind>& binds, const std::string& inside) {
  const auto checked = check_mounted(binds, parse_mounts(kHere), parse_mounts(kRoot + inside));
  return checked ? "" : checked.error().what() + "; " + checked.error().reason();
}

TEST(Mounted, WhatWasAskedForPasses) {
  EXPECT_EQ(told({kBind, kGit}, kWorkspace + "23 22 8:2 /me/ws/.git /home/me/ws/.git ro - ext4 /dev/b rw\n"), "");
  EXPECT_EQ(told({{"/home/me/my disk/a", "/data", true}}, "23 20 8:3 /sub/a /data ro,nosuid - btrfs /dev/c rw\n"), "");
  EXPECT_EQ(told({{"/hidden/deep/x", "/data", true}}, "23 20 8:2 /elsewhere/deep/x /data ro - ext4 /dev/b rw\n"), "")
      << "what was mounted below is hidden by what was mounted over it";
  EXPECT_EQ(told({{"/", "/host", true}}, "23 20 8:1 / /host ro - ext4 /dev/a rw\n"), "");
}

TEST(Mounted, AnythingElseInItsPlaceIsTold) {
  EXPECT_EQ(told({kBind, kGit}, kWorkspace + "23 22 8:2 /me/.ssh /home/me/ws/.git ro - ext4 /dev/b rw\n"),
            "the container shows something else than `/home/me/ws/.git`; at `/home/me/ws/.git` it has `/me/.ssh` of device 8:2");
  EXPECT_EQ(told({kBind, kGit}, kWorkspace + "23 22 8:1 /me/ws/.git /home/me/ws/.git ro - ext4 /dev/a rw\n"),
            "the container shows something else than `/home/me/ws/.git`; at `/home/me/ws/.git` it has `/me/ws/.git` of device 8:1");
}

TEST(Mounted, WhatIsMissingOrWritableIsTold) {
  EXPECT_EQ(told({kBind, kGit}, kWorkspace),
            "the container shows something else than `/home/me/ws/.git`; it has nothing of it at `/home/me/ws/.git`");
  EXPECT_EQ(told({kBind, kGit}, kWorkspace + "23 22 8:2 /me/ws/.git /home/me/ws/.git rw - ext4 /dev/b rw\n"),
            "the container shows something else than `/home/me/ws/.git`; at `/home/me/ws/.git` it has `/me/ws/.git` of device 8:2, "
            "writable");
  // Put elsewhere by a link of the workspace, what it was to cover is open.
  EXPECT_NE(told({kBind, kGit}, kWorkspace + "23 20 8:2 /me/ws/.git /srv/.git ro - ext4 /dev/b rw\n"), "");
  // Mounted, and hidden by another one.
  EXPECT_NE(told({kBind}, kWorkspace + "24 20 0:60 / /home rw - tmpfs tmpfs rw\n"), "");
}

// Mounts below a read-only bind have binds of their own.
TEST(Mounted, AnEngineNeedNotKnowWhatIsMountedBelow) {
  Bind disk{"/home/me/my disk", "/home/me/my disk", true};
  const std::string under = "23 20 8:2 /me/my\\040disk /home/me/my\\040disk ro - ext4 /dev/b rw\n";
  EXPECT_NE(told({disk}, under), "") << "what was asked for by name has to be there";
  disk.below = true;
  EXPECT_EQ(told({disk}, under), "");
  EXPECT_NE(told({disk}, "23 20 8:2 /me/.ssh /home/me/my\\040disk ro - ext4 /dev/b rw\n"), "");
}

TEST(Mounted, AFileThatIsReplacedOnTheHostMeanwhileIsNone) {
  EXPECT_EQ(told({kBind, kGit}, kWorkspace + "23 22 8:2 /me/ws/.git//deleted /home/me/ws/.git ro - ext4 /dev/b rw\n"), "");
}

TEST(Mounted, ALinkOfTheImageMayLeadElsewhere) {
  const Bind data{"/home/me/data", "/var/run/data", true}, sub{"/home/me/data/sub", "/var/run/data/sub", true};
  const std::string there = "23 20 8:2 /me/data /run/data ro - ext4 /dev/b rw\n";
  EXPECT_EQ(told({data, sub}, there + "24 23 8:2 /me/data/sub /run/data/sub ro - ext4 /dev/b rw\n"), "");
  EXPECT_NE(told({data, sub}, there), "");
}

TEST(Mounted, WhatNobodyAskedForIsFound) {
  const auto unasked = [](const std::string& inside) {
    const std::vector<Mount> mounts = parse_mounts(kRoot + kWorkspace + inside);
    return find_unasked(check_mounted({kBind}, parse_mounts(kHere), mounts).value(), mounts);
  };
  using Points = std::vector<std::string>;
  EXPECT_EQ(unasked("23 20 8:1 /var/lib/x/hosts /etc/hosts rw - ext4 /dev/a rw\n"
                    "27 20 8:1 /var/lib/y/passwd /etc/passwd rw - ext4 /dev/a rw\n"
                    "24 22 8:3 / /home/me/ws/disk rw - btrfs /dev/c rw\n"
                    "25 20 0:61 / /run rw - tmpfs tmpfs rw\n"
                    "26 21 0:61 / /proc/bus ro - proc proc rw\n"),
            Points());
  EXPECT_EQ(unasked("23 20 8:1 /srv /srv rw - ext4 /dev/a rw\n24 20 0:62 /secrets /run/secrets rw - tmpfs tmpfs rw\n"),
            (Points{"/srv", "/run/secrets"}));
}

TEST(Mounted, ATmpfsThatTakesMoreThanWasAskedForIsFound) {
  Spec spec;
  spec.tmp_size = 1ULL << 30;
  spec.tmpfs = {{"/tmp", private_tmpfs(Bytes{1ULL << 30})}, {"/run", private_tmpfs(Bytes{1ULL << 30})}, {"/big", "size=2g"}};
  const auto larger = [&](const std::string& inside) { return find_larger(spec, parse_mounts(kRoot + inside)); };
  using Points = std::vector<std::string>;
  EXPECT_EQ(larger("23 20 0:61 / /run rw - tmpfs tmpfs rw,inode64\n"), Points{"/run"}) << "half of the machine's memory";
  EXPECT_EQ(larger("23 20 0:61 / /run rw - tmpfs tmpfs rw,size=1048577k\n24 20 0:62 / /other rw - tmpfs tmpfs rw,size=9g\n"),
            (Points{"/run", "/other"}));
  EXPECT_EQ(larger("23 20 0:61 / /big rw - tmpfs tmpfs rw\n"), Points{"/big"}) << "its size was left out";
  // The twins: as asked for, read-only, a part of one, hidden by another, the engine's own devices.
  EXPECT_EQ(
      larger("23 20 0:61 / /run rw - tmpfs tmpfs rw,size=1048576k\n24 20 0:62 / /big rw - tmpfs tmpfs rw,size=2097152k\n"
             "25 21 0:63 / /proc/scsi ro - tmpfs tmpfs ro\n26 23 0:64 /sub /run/x rw - tmpfs tmpfs rw\n"
             "27 20 0:65 / /tmp rw - tmpfs tmpfs rw\n28 27 0:66 / /tmp rw - tmpfs tmpfs rw,size=4k\n"
             "29 20 0:67 / /dev rw - tmpfs tmpfs rw,size=65536k,mode=755\n30 29 0:68 / /dev/shm rw - tmpfs shm rw,size=64000k\n"),
      Points());
  spec.tmp_size = 1024;
  EXPECT_EQ(larger("29 20 0:67 / /dev rw - tmpfs tmpfs rw,size=65536k\n"), Points());
  EXPECT_EQ(larger("29 20 0:67 / /dev/shm rw - tmpfs tmpfs rw,size=65537k\n"), Points{"/dev/shm"});
}

// mount --bind, of a directory that holds the file or of the file alone.
TEST(Mounted, AFileHasANameInEachMountOfItsFileSystem) {
  using Names = std::vector<std::string>;
  const std::vector<Mount> here = parse_mounts(kHere +
                                               "6 1 8:1 /run/pod /srv/mm rw - ext4 /dev/a rw\n"
                                               "7 1 8:1 /run/pod/e.sock /var/host.sock rw - ext4 /dev/a rw\n"
                                               "8 1 8:1 /run /covered rw - ext4 /dev/a rw\n"
                                               "9 8 0:70 / /covered/pod rw - tmpfs tmpfs rw\n");
  EXPECT_EQ(names_of("/run/pod/e.sock", here), (Names{"/run/pod/e.sock", "/srv/mm/e.sock", "/var/host.sock"}));
  EXPECT_EQ(names_of("/srv/mm/e.sock", here), (Names{"/srv/mm/e.sock", "/run/pod/e.sock", "/var/host.sock"}));
  EXPECT_EQ(names_of("/etc/x", here), Names{"/etc/x"});
}

TEST(Mounted, AHardLinkOfADoorMayBeInAnySharedDirectoryOfItsFileSystem) {
  const std::vector<Mount> here = parse_mounts(kHere);
  EXPECT_TRUE(check_single_link("/home/me/e.sock", 1, {kBind}, here));
  const auto refused = check_single_link("/home/me/e.sock", 2, {kBind}, here);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(refused.error().line().find("`/home/me/e.sock` has 2 hard links"), std::string::npos) << refused.error().line();
  EXPECT_TRUE(check_single_link("/run/e.sock", 2, {kBind}, here)) << "of another file system";
  EXPECT_FALSE(check_single_link("/home/me/e.sock", 2, {{"/", "/host", true}}, here)) << "a mount below what is shown";
}

TEST(ContainerStatus, IsReadAsFarAsItIsThere) {
  const InsideStatus all = parse_status(
      "\nName:\tinside\nPid:\t1\nUid:\t1000\t1000\t1000\t1000\nGid:\t7\t7\t7\t7\n"
      "CapInh:\t0000000000000000\nCapBnd:\t00000000a80425fb\nNoNewPrivs:\t1\n");
  EXPECT_EQ(all,
            (InsideStatus{.pid = 1, .uid = 1000, .gid = 7, .no_new_privs = 1, .capabilities = 0xa80425fb, .own_terminals = {}}));
  EXPECT_EQ(parse_status(""), InsideStatus{});
}

TEST(ContainerStatus, TerminalsOfThisMachineAreNotItsOwn) {
  const std::vector<Mount> here = parse_mounts("1 0 0:20 / /dev/pts rw - devpts devpts rw\n");
  EXPECT_TRUE(has_own_terminals(here, parse_mounts("1 0 0:66 / /dev/pts rw - devpts devpts rw\n")));
  EXPECT_FALSE(has_own_terminals(here, here));
}

}  // namespace
}  // namespace belljar::backend::container
