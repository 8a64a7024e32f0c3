// New names that go to the workspace by one rename, and those that may not: what stands on the host afterwards is the same.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/format.h"
#include "belljar/txn.h"
#include "kernel/tree_lock.h"
#include "support/awaited.h"
#include "support/eventually.h"
#include "support/must.h"
#include "support/temp_dir.h"
#include "txn/journal.h"
#include "txn/support_layers.h"

namespace belljar::test {
namespace {

struct stat status_of(const std::string& path) {
  struct stat status{};
  must(::lstat(path.c_str(), &status));
  return status;
}

class Handover : public testing::Test {
 protected:
  static std::string committed(const Workbench& bench, const std::vector<std::string>& paths = {}) {
    const auto done = txn::commit(bench.place(), {.paths = paths});
    if (!done) return done.error().line();
    std::string text = done->applied ? "applied\n" : "";
    for (const auto& one : done->conflicts) text += "conflict " + one.path + "\n";
    for (const auto& one : done->refused) text += "refused " + one.path + "\n";
    return text;
  }
  std::string committed() const { return committed(bench_); }
  ino_t inode(const std::string& name) const { return status_of(bench_.ws(name)).st_ino; }

  Workbench bench_{"/var/tmp"};
};

TEST_F(Handover, ANewDirectoryGoesAsItIs) {
  ino_t inner = 0;
  const timespec times[2] = {{.tv_sec = 1'000'000'000, .tv_nsec = 0}, {.tv_sec = 1'000'000'001, .tv_nsec = 0}};
  bench_.in_layer([&](const std::string& up) {
    Workbench::put(up, "d/f", "f\n", 0640);
    Workbench::put(up, "d/e/g", "g\n");
    must(::link((up + "/d/f").c_str(), (up + "/d/e/same").c_str()));
    must(::symlink("f", (up + "/d/link").c_str()));
    must(::mkfifo((up + "/d/fifo").c_str(), 0600));
    must(::setxattr((up + "/d/e/g").c_str(), "user.note", "hi", 2, 0));
    must(::setxattr((up + "/d/e/g").c_str(), "user.overlay.origin", "", 0, 0));
    must(::setxattr((up + "/d/e").c_str(), "user.overlay.impure", "y", 1, 0));
    must(::chmod((up + "/d/e").c_str(), 0555));
    for (const char* name : {"/d/e", "/d"}) must(::utimensat(AT_FDCWD, (up + name).c_str(), times, 0));
    inner = status_of(up + "/d/e").st_ino;
  });
  // Who may not write to `e` cannot take a mark from it: then the whole is made anew.
  const bool whole = ::geteuid() == 0;
  EXPECT_EQ(committed(), "applied\n");
  EXPECT_EQ(inode("d/e") == inner, whole);
  EXPECT_EQ(status_of(bench_.ws("d")).st_mtim.tv_sec, times[1].tv_sec);
  EXPECT_EQ(status_of(bench_.ws("d/e")).st_mtim.tv_sec, times[1].tv_sec);
  EXPECT_EQ(status_of(bench_.ws("d/e")).st_mode & 07777U, 0555U);
  EXPECT_EQ(status_of(bench_.ws("d/f")).st_mode & 07777U, 0640U);
  EXPECT_EQ(inode("d/f"), inode("d/e/same"));
  EXPECT_EQ(std::filesystem::read_symlink(bench_.ws("d/link")), "f");
  EXPECT_TRUE(S_ISFIFO(status_of(bench_.ws("d/fifo")).st_mode));
  char value[8] = {};
  EXPECT_EQ(::getxattr(bench_.ws("d/e/g").c_str(), "user.note", value, sizeof value), 2);
  EXPECT_EQ(::getxattr(bench_.ws("d/e/g").c_str(), "user.overlay.origin", value, sizeof value), -1);
  EXPECT_EQ(::getxattr(bench_.ws("d/e").c_str(), "user.overlay.impure", value, sizeof value), -1);
  must(::chmod(bench_.ws("d/e").c_str(), 0755));
  ASSERT_TRUE(txn::sweep(bench_.place()));
  for (const auto& one : std::filesystem::recursive_directory_iterator(bench_.place().state_dir))
    EXPECT_NE(one.path().filename(), "g") << one.path();
}

TEST_F(Handover, ANewFileInADirectoryOfTheHostsGoesAsItIs) {
  if (on_overlay("/var/tmp")) GTEST_SKIP() << "/var/tmp is on overlayfs, and the layers lie elsewhere: they are copied";
  bench_.write("d/old", "o\n");
  bench_.write("shut/old", "o\n");
  must(::chmod(bench_.ws("shut").c_str(), 0555));
  std::map<std::string, ino_t> made;
  bench_.in_layer([&](const std::string& up) {
    for (const char* name : {"d/new", "top", "shut/new"}) {
      Workbench::put(up, name, "n\n", 0444);
      made[name] = status_of(up + "/" + name).st_ino;
    }
    must(::chmod((up + "/shut").c_str(), 0555));
  });
  EXPECT_EQ(committed(), "applied\n");
  for (const auto& [name, number] : made) {
    EXPECT_EQ(inode(name), number) << name;
    EXPECT_EQ(read_file(bench_.ws(name)), "n\n");
  }
  EXPECT_EQ(status_of(bench_.ws("shut")).st_mode & 07777U, 0555U);
  must(::chmod(bench_.ws("shut").c_str(), 0755));
}

TEST_F(Handover, WhatIsMoreThanTheHostIsToHaveIsMadeAnew) {
  if (on_overlay("/var/tmp")) GTEST_SKIP() << "/var/tmp is on overlayfs, and the layers lie elsewhere: they are copied";
  using Work = std::function<void(const std::string& up)>;
  const std::map<std::string, Work> reasons = {
      {"whiteout", [](const std::string& up) { Workbench::white_out(up, "d/e/gone"); }},
      {"opaque", [](const std::string& up) { Workbench::make_dir(up, "d/e", true); }},
      {"a name elsewhere", [](const std::string& up) { must(::link((up + "/d/e/f").c_str(), (up + "/outside").c_str())); }},
      {"none", [](const std::string&) {}}};
  for (const auto& [reason, work] : reasons) {
    const Workbench bench("/var/tmp");
    ino_t number = 0;
    bench.in_layer([&](const std::string& up) {
      Workbench::put(up, "d/e/f", "f\n");
      work(up);
      number = status_of(up + "/d").st_ino;
    });
    EXPECT_EQ(committed(bench), "applied\n") << reason;
    EXPECT_EQ(status_of(bench.ws("d")).st_ino == number, reason == "none") << reason;
    EXPECT_EQ(read_file(bench.ws("d/e/f")), "f\n") << reason;
    EXPECT_FALSE(std::filesystem::exists(bench.ws("d/e/gone"))) << reason;
    char value = 0;
    EXPECT_EQ(::getxattr(bench.ws("d/e").c_str(), "user.overlay.opaque", &value, 1), -1) << reason;
    if (reason == "a name elsewhere") {
      EXPECT_EQ(status_of(bench.ws("outside")).st_ino, status_of(bench.ws("d/e/f")).st_ino);
    }
  }
}

TEST_F(Handover, WhatAFrozenLayerHasPartOfIsMadeAnew) {
  bench_.in_layer([](const std::string& up) { Workbench::put(up, "d/one", "1\n"); });
  ASSERT_TRUE(txn::make_fork(bench_.place(), "other"));
  bench_.in_layer([](const std::string& up) { Workbench::put(up, "d/two", "2\n"); });
  EXPECT_EQ(committed(), "applied\n");
  EXPECT_EQ(read_file(bench_.ws("d/one")) + read_file(bench_.ws("d/two")), "1\n2\n");
  EXPECT_EQ(bench_.changes("other"), "") << "its layer is still whole";
}

TEST_F(Handover, WhatIsRefusedOrAConflictStaysInTheLayer) {
  bench_.in_layer([](const std::string& up) {
    Workbench::put(up, "a/f", "f\n");
    Workbench::put(up, "d/f", "f\n");
    Workbench::put(up, "d/tool", "x\n", 04755);
  });
  EXPECT_EQ(committed(), "refused d/tool\n");
  EXPECT_EQ(bench_.tree().size(), 1U);
  bench_.in_layer([](const std::string& up) { must(::chmod((up + "/d/tool").c_str(), 0755)); });
  bench_.write("d/f", "mine\n");
  EXPECT_EQ(committed(), "conflict d/f\n");
  EXPECT_FALSE(std::filesystem::exists(bench_.ws("a")));
  std::filesystem::remove_all(bench_.ws("d"));
  EXPECT_EQ(committed(), "applied\n");
  EXPECT_EQ(read_file(bench_.ws("d/tool")), "x\n");
}

// The host makes one of them after all was prepared: those before it go back into the layer.
TEST_F(Handover, WhatWasPutIsTakenBackIntoTheLayer) {
  bench_.in_layer([](const std::string& up) {
    Workbench::put(up, "a/f", "f\n");
    must(::chmod((up + "/a").c_str(), 0555));
    Workbench::put(up, "b", "b\n");
    Workbench::put(up, "d/f", "f\n");
  });
  const std::string locks = kernel::tree_locks_in(bench_.place().state_dir);
  kernel::TreeLock others = *kernel::TreeLock::open(locks, {bench_.ws()});
  std::unique_lock alone(others);
  std::string done;
  std::thread commit([&] { done = committed(); });
  EXPECT_TRUE(eventually([&] { return is_awaited(locks); }));
  bench_.write("d/mine", "m\n");
  alone.unlock();
  commit.join();
  EXPECT_NE(done.find("it was made on the host meanwhile"), std::string::npos) << done;
  EXPECT_EQ(bench_.tree().size(), 3U);
  std::filesystem::remove_all(bench_.ws("d"));
  EXPECT_EQ(bench_.changes(), "A a\nA a/f\nA b\nA d\nA d/f\n");
  EXPECT_EQ(committed(), "applied\n");
  EXPECT_EQ(status_of(bench_.ws("a")).st_mode & 07777U, 0555U);
  EXPECT_EQ(read_file(bench_.ws("a/f")) + read_file(bench_.ws("b")) + read_file(bench_.ws("d/f")), "f\nb\nf\n");
  must(::chmod(bench_.ws("a").c_str(), 0755));
}

TEST_F(Handover, APartIsCopiedAndTheLayerKeepsIt) {
  ino_t number = 0;
  bench_.in_layer([&](const std::string& up) {
    Workbench::put(up, "d/e/f", "f\n");
    Workbench::put(up, "d/g", "g\n");
    number = status_of(up + "/d/e").st_ino;
  });
  EXPECT_EQ(committed(bench_, {"d/e"}), "applied\n");
  EXPECT_NE(inode("d/e"), number);
  EXPECT_EQ(bench_.changes(), "A d/g\n");
  std::filesystem::remove(bench_.ws("d/e/f"));
  EXPECT_EQ(committed(), "applied\n");
  EXPECT_EQ(read_file(bench_.ws("d/g")), "g\n");
  EXPECT_FALSE(std::filesystem::exists(bench_.ws("d/e/f"))) << "the host removed what it had been given";
}

TEST_F(Handover, LayersOnAnotherFileSystemAreCopied) {
  const Workbench apart("/dev/shm", "/var/tmp");
  apart.in_layer([](const std::string& up) {
    Workbench::put(up, "d/e/f", "f\n", 0600);
    Workbench::put(up, "d/e/large", std::string(200'000, 'l'));
    Workbench::put(up, "d/e/empty", "");
  });
  EXPECT_EQ(committed(apart), "applied\n");
  EXPECT_EQ(read_file(apart.ws("d/e/f")), "f\n");
  EXPECT_EQ(read_file(apart.ws("d/e/large")), std::string(200'000, 'l'));
  EXPECT_EQ(read_file(apart.ws("d/e/empty")), "");
}

// A commit that an older belljar was cut off in.
TEST(Journal, IsReadAsVersionOneWroteItAndRefusedFromAnUnknownOne) {
  const auto json = [](int version) {
    const nlohmann::json identity = nlohmann::json::array({S_IFREG, 12, 3, 4});
    nlohmann::json op = {{"kind", 0}, {"path", "d"}, {"number", 0}, {"staged", nlohmann::json::array({S_IFDIR, 11, 0, 0})}};
    op["tree"] = nlohmann::json::object();
    op["staged_tree"] = {{"f", identity}};
    op["mode"] = {0, 0755};
    op["attributes"] = {nlohmann::json::object(), {{"user.a", "b"}}};
    const nlohmann::json root = {{"version", version}, {"whole", true}, {"paths", {"d", "d/f"}}, {"ops", {op}}};
    std::string bytes;
    nlohmann::json::to_cbor(root, bytes);
    return bytes;
  };
  const auto old = txn::decode_record(json(1));
  ASSERT_TRUE(old) << old.error().line();
  ASSERT_EQ(old->ops.size(), 1U);
  EXPECT_EQ(old->ops[0].layer, 0U);
  EXPECT_EQ(old->ops[0].staged_tree.at("f").ino, 12U);
  EXPECT_EQ(old->ops[0].attributes.at("user.a"), "b");
  txn::Record record = *old;
  record.ops[0].layer = 7;
  record.ops[0].tree["g\xff"] = {.type = S_IFLNK, .ino = 1, .size = 2, .mtime = -3};
  EXPECT_EQ(*txn::decode_record(txn::encode(record)), record);
  EXPECT_EQ(txn::decode_record(json(3)).error().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace belljar::test
