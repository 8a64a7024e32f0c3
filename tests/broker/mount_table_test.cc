// The table of mounts: which mount holds a path, and when that cannot be told.
#include "broker/mount_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace belljar::broker {
namespace {

constexpr char kTable[] =
    "20 1 0:1 / / ro,nosuid - tmpfs none rw\n"
    "21 20 8:1 /home/a /work rw,nosuid shared:1 - ext4 /dev/root rw\n"
    "22 20 0:5 / /proc rw,nosuid - proc proc rw\n"
    "23 21 8:1 /x /work/with\\040blank ro - ext4 /dev/root rw\n"
    "24 20 8:2 / /frozen rw - ext4 /dev/b ro\n"
    "25 99 8:1 / /work/hidden/deep rw - ext4 /dev/root rw\n"
    "26 20 8:1 / /twice ro - ext4 /dev/root rw\n"
    "27 26 8:1 / /twice rw - ext4 /dev/root rw\n";

const MountTable::Entry* find(const std::vector<MountTable::Entry>& entries, std::string_view point) {
  for (const auto& entry : entries) {
    if (entry.point == point) return &entry;
  }
  return nullptr;
}

TEST(MountTable, SaysWhatIsReadOnlyAndWhatIsProc) {
  const auto entries = MountTable::parse(kTable);
  ASSERT_NE(find(entries, "/"), nullptr);
  EXPECT_FALSE(find(entries, "/")->writable);
  ASSERT_NE(find(entries, "/work"), nullptr);
  EXPECT_TRUE(find(entries, "/work")->writable);
  EXPECT_TRUE(find(entries, "/proc")->proc);
  EXPECT_FALSE(find(entries, "/work")->proc);
  ASSERT_NE(find(entries, "/work/with blank"), nullptr);
  EXPECT_FALSE(find(entries, "/work/with blank")->writable);
  EXPECT_FALSE(find(entries, "/frozen")->writable) << "the file system itself is read-only";
}

TEST(MountTable, WhatAnotherMountHidesIsLeftOut) {
  const auto entries = MountTable::parse(kTable);
  EXPECT_EQ(find(entries, "/work/hidden/deep"), nullptr) << "it stands on a mount that the path does not lead to";
  ASSERT_NE(find(entries, "/twice"), nullptr);
  EXPECT_TRUE(find(entries, "/twice")->writable) << "the second stands on the first";
  EXPECT_EQ(entries.size(), 6U);
  // In the other order, and what stood below the first one.
  const auto covered = MountTable::parse(
      "1 0 0:1 / / rw - tmpfs none rw\n"
      "3 2 0:3 / /a ro - tmpfs none rw\n"
      "4 2 0:4 / /a/b rw - tmpfs none rw\n"
      "2 1 0:2 / /a rw - tmpfs none rw\n"
      "5 3 0:5 / /a/c rw - proc none rw\n");
  EXPECT_FALSE(find(covered, "/a")->writable);
  EXPECT_EQ(find(covered, "/a/b"), nullptr);
  EXPECT_TRUE(find(covered, "/a/c")->proc);
}

TEST(MountTable, WhatCannotBeReadIsUnknown) {
  EXPECT_TRUE(MountTable::parse("nonsense\n").empty());
  EXPECT_TRUE(MountTable::parse("").empty());
  MountTable table;
  EXPECT_FALSE(table.at(Caller(0x7ffffff0), "/work/x").known);
}

TEST(MountTable, KnowsTheMountsOfALivingProcess) {
  MountTable table;
  const MountTable::Facts facts = table.at(Caller(static_cast<pid_t>(getpid())), "/proc/self");
  EXPECT_TRUE(facts.proc);
}

}  // namespace
}  // namespace belljar::broker
