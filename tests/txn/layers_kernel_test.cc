// Layers as overlayfs writes them, read, stacked, dropped and applied: without a sandbox, so that each case is a few files.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/format.h"
#include "belljar/txn.h"
#include "kernel/tree_lock.h"
#include "support/as_user.h"
#include "support/awaited.h"
#include "support/clock.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/in_a_child.h"
#include "support/must.h"
#include "txn/store.h"
#include "txn/support_layers.h"

namespace belljar::test {
namespace {

// The state file of the only transaction.
std::string must_find(const std::string& state_dir) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(state_dir)) {
    if (entry.path().filename() == "meta") return entry.path().string();
  }
  std::abort();
}

class Layers : public testing::Test {
 protected:
  std::string committed(const txn::CommitOptions& options = {}, const std::string& name = "default") const {
    txn::Place place = bench_.place();
    place.name = name;
    const auto done = txn::commit(place, options);
    if (!done) return done.error().line();
    std::string text = done->applied ? "applied\n" : "";
    for (const auto& one : done->conflicts) text += "conflict " + one.path + ": " + one.reason + "\n";
    for (const auto& one : done->refused) text += "refused " + one.path + "\n";
    for (const auto& one : done->merged) text += "merged " + one + "\n";
    return text;
  }
  std::string read(const std::string& name) const { return read_file(bench_.ws(name)); }

  Workbench bench_{"/var/tmp"};
};

// The kernel drops the lock of a front that dies before it ends what runs in the sandbox, which still writes to the layer.
TEST_F(Layers, WhatADeadHolderLeftRunningIsWaitedFor) {
  bench_.in_layer([](const std::string& up) { Workbench::put(up, "made", "x"); });
  const pid_t sandbox = fork();
  if (sandbox == 0) {
    pause();
    _exit(0);
  }
  {
    auto held = txn::Transaction::open(bench_.place(), txn::Store::Open::kExisting, txn::Access::kChange);
    ASSERT_TRUE(held) << held.error().line();
    held->note_running(sandbox);
  }
  std::atomic<bool> open = false;
  std::thread next([&] {
    const auto taken = txn::Transaction::open(bench_.place(), txn::Store::Open::kExisting, txn::Access::kChange);
    EXPECT_TRUE(taken) << taken.error().line();
    open = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // never too long: it may not be open before the kill
  EXPECT_FALSE(open);
  kill(sandbox, SIGKILL);
  next.join();  // a zombie is gone as well: nobody has waited for it yet
  int status = 0;
  waitpid(sandbox, &status, 0);
  EXPECT_EQ(committed(), "applied\n");
}

TEST_F(Layers, AttributesAreSeenAndCommitted) {
  bench_.write("file", "x");
  bench_.write("dir/in", "y");
  bench_.in_layer([](const std::string& up) {
    Workbench::put(up, "file", "x");
    must(::setxattr((up + "/file").c_str(), "user.note", "hi", 2, 0));
    Workbench::make_dir(up, "dir");
    must(::setxattr((up + "/dir").c_str(), "user.note", "ho", 2, 0));
    must(::setxattr((up + "/file").c_str(), "user.overlay.origin", "xx", 2, 0));
  });
  EXPECT_EQ(bench_.changes(), "M dir\nM file\n");
  EXPECT_EQ(committed(), "applied\n");
  char value[8] = {};
  EXPECT_EQ(::getxattr(bench_.ws("file").c_str(), "user.note", value, sizeof value), 2);
  EXPECT_EQ(::getxattr(bench_.ws("dir").c_str(), "user.note", value, sizeof value), 2);
  EXPECT_EQ(::getxattr(bench_.ws("file").c_str(), "user.overlay.origin", value, sizeof value), -1);
  EXPECT_EQ(read("dir/in"), "y");
}

// user.* takes write permission to a file, xattr(7): the mode comes last.
TEST_F(Layers, ReadOnlyFilesAreCommittedWithTheirAttributes) {
  bench_.write("f", "same\n", 0444);
  bench_.in_layer([](const std::string& up) {
    for (const char* name : {"f", "n", "shut"}) {
      Workbench::put(up, name, name == std::string("f") ? "same\n" : "new\n");
      must(setxattr((up + "/" + name).c_str(), "user.a", "1", 1, 0));
      must(chmod((up + "/" + name).c_str(), name == std::string("shut") ? 0 : 0444));
    }
    must(link((up + "/n").c_str(), (up + "/n2").c_str()));
  });
  txn::CommitOptions some;
  some.paths = {"n", "n2"};
  EXPECT_EQ(committed(some), "applied\n");
  EXPECT_EQ(committed(), "applied\n");
  for (const char* name : {"f", "n", "n2", "shut"}) {
    struct stat now{};
    must(stat(bench_.ws(name).c_str(), &now));
    EXPECT_EQ(now.st_mode & 07777, name == std::string("shut") ? 0U : 0444U) << name;
    must(chmod(bench_.ws(name).c_str(), 0644));
    char value = 0;
    EXPECT_EQ(getxattr(bench_.ws(name).c_str(), "user.a", &value, 1), 1) << name;
    must(chmod(bench_.ws(name).c_str(), now.st_mode & 07777));  // `n` and `n2` are one
  }
}

TEST_F(Layers, NothingThatOverlayfsNotedStaysOnTheHost) {
  const std::vector<std::pair<std::string, mode_t>> files = {{"plain", 0644}, {"read", 0444}, {"written", 0200}, {"shut", 0}};
  for (const auto& [name, mode] : files) bench_.write(name, "old\n", mode);
  bench_.in_layer([&](const std::string& up) {
    for (const auto& [name, mode] : files) {
      Workbench::put(up, name, "new\n");
      must(setxattr((up + "/" + name).c_str(), "user.overlay.origin", "", 0, 0));
      must(chmod((up + "/" + name).c_str(), mode));
    }
  });
  EXPECT_EQ(committed(), "applied\n");
  for (const auto& [name, mode] : files) {
    struct stat now{};
    must(stat(bench_.ws(name).c_str(), &now));
    EXPECT_EQ(now.st_mode & 07777, mode) << name;
    must(chmod(bench_.ws(name).c_str(), 0644));
    EXPECT_EQ(read(name), "new\n");
    EXPECT_EQ(listxattr(bench_.ws(name).c_str(), nullptr, 0), 0) << name;
  }
}

// There is no link from one to the other; who owns a file may not be one who may read it.
TEST_F(Layers, OfAnotherFileSystemWhatItsOwnerMayNotReadIsCopied) {
  const Workbench apart("/var/tmp", "/dev/shm");
  const std::vector<std::pair<std::string, mode_t>> files = {{"written", 0200}, {"shut", 0}};
  apart.in_layer([&](const std::string& up) {
    for (const auto& [name, mode] : files) {
      Workbench::put(up, name, "new\n");
      must(setxattr((up + "/" + name).c_str(), "user.a", "1", 1, 0));
      must(chmod((up + "/" + name).c_str(), mode));
    }
  });
  const auto done = txn::commit(apart.place(), {});
  ASSERT_TRUE(done) << done.error().line();
  EXPECT_TRUE(done->applied);
  for (const auto& [name, mode] : files) {
    struct stat now{};
    must(stat(apart.ws(name).c_str(), &now));
    EXPECT_EQ(now.st_mode & 07777, mode) << name;
    must(chmod(apart.ws(name).c_str(), 0600));
    EXPECT_EQ(read_file(apart.ws(name)), "new\n");
    char value = 0;
    EXPECT_EQ(getxattr(apart.ws(name).c_str(), "user.a", &value, 1), 1) << name;
  }
}

TEST_F(Layers, ReadOnlyDirectoriesAreFlattened) {
  bench_.in_layer([](const std::string& up) {
    Workbench::make_dir(up, "d");
    Workbench::put(up, "d/f", "1\n");
    must(chmod((up + "/d").c_str(), 0555));
  });
  for (int i = 0; i < 70; ++i) {
    ASSERT_TRUE(txn::snapshot(bench_.place(), format("s{}", i)));
    bench_.in_layer([&](const std::string& up) { Workbench::put(up, "n", format("{}\n", i)); });
  }
  EXPECT_EQ(committed(), "applied\n");
  struct stat now{};
  must(stat(bench_.ws("d").c_str(), &now));
  EXPECT_EQ(now.st_mode & 07777, 0555U);
  EXPECT_EQ(read("d/f"), "1\n");
  must(chmod(bench_.ws("d").c_str(), 0755));
}

TEST_F(Layers, ALinkToAFileThatKeepsItsBytesIsALinkOnTheHost) {
  bench_.write("m", "same\n", 0755);
  struct stat before{};
  must(stat(bench_.ws("m").c_str(), &before));
  bench_.in_layer([](const std::string& up) {
    Workbench::put(up, "m", "same\n", 0700);
    Workbench::make_dir(up, "d");
    for (const char* name : {"a", "n", "d/l"}) must(link((up + "/m").c_str(), (up + "/" + name).c_str()));
  });
  EXPECT_EQ(committed(), "applied\n");
  for (const char* name : {"a", "m", "n", "d/l"}) {
    struct stat now{};
    must(stat(bench_.ws(name).c_str(), &now));
    EXPECT_EQ(now.st_ino, before.st_ino) << name;
    EXPECT_EQ(now.st_mode & 07777, 0700U) << name;
  }
}

// The group of a member, which is not its first one.
TEST_F(Layers, WhatIsNewInASetGroupIdDirectoryHasItsGroup) {
  constexpr gid_t kProject = 33;
  BELLJAR_NEEDS(as_root());
  const std::string ws = bench_.ws();
  must(chown(ws.c_str(), user_uid(), kProject));
  must(chmod(ws.c_str(), 02775));
  must(chown(std::filesystem::path(bench_.place().state_dir).parent_path().c_str(), user_uid(), user_gid()));
  const int wrong = in_a_child([&] {
    must(setgroups(1, &kProject));
    must(setresgid(user_gid(), user_gid(), user_gid()));
    must(setresuid(user_uid(), user_uid(), user_uid()));
    bench_.in_layer([](const std::string& up) {
      Workbench::put(up, "f", "1\n");
      Workbench::make_dir(up, "d");
      Workbench::put(up, "d/f", "1\n");
    });
    if (committed() != "applied\n") return 100;
    return static_cast<int>(std::ranges::count_if(std::vector<std::string>{"f", "d", "d/f"}, [&](const std::string& name) {
      struct stat now{};
      must(stat(bench_.ws(name).c_str(), &now));
      return now.st_gid != kProject || (S_ISDIR(now.st_mode) && (now.st_mode & S_ISGID) == 0);
    }));
  });
  EXPECT_EQ(wrong, 0);
}

// What stands on the host is looked at again when everything is prepared and nobody else acts on names there.
TEST_F(Layers, AHalfOfAGitDirectoryThatComesWhileACommitIsPreparedIsSeen) {
  const auto commit_with_a_half_made_by = [&](const std::function<void()>& others) {
    bench_.in_layer([](const std::string& up) {
      Workbench::make_dir(up, "x");
      Workbench::put(up, "x/config", "[core]\n\tfsmonitor = touch PLANT\n");
      Workbench::make_dir(up, "x/objects");
    });
    const std::string locks = kernel::tree_locks_in(bench_.place().state_dir);
    kernel::TreeLock others_lock = *kernel::TreeLock::open(locks, {bench_.ws()});
    std::unique_lock alone(others_lock);
    std::string done;
    std::thread commit([&] { done = committed(); });
    EXPECT_TRUE(eventually([&] { return is_awaited(locks); }));
    others();
    alone.unlock();
    commit.join();
    return done;
  };
  std::filesystem::create_directory(bench_.ws("x"));
  bench_.write("x/HEAD", "ref: refs/heads/m\n");
  EXPECT_EQ(commit_with_a_half_made_by([&] { std::filesystem::create_directory(bench_.ws("x/refs")); }), "refused x/config\n");
  EXPECT_FALSE(std::filesystem::exists(bench_.ws("x/config")));
  std::filesystem::remove(bench_.ws("x/refs"));
  EXPECT_EQ(committed(), "applied\n") << "it can be tried again";
  std::filesystem::remove_all(bench_.ws("x/objects"));
  std::filesystem::remove_all(bench_.ws("x/config"));
  EXPECT_EQ(commit_with_a_half_made_by([&] { std::filesystem::create_directory(bench_.ws("x/else")); }), "applied\n");
}

TEST_F(Layers, AnOpaqueDirectoryHidesAllThatLiesBelow) {
  bench_.write("d/old", "1");
  bench_.write("d/sub/older", "2");
  bench_.in_layer([](const std::string& up) {
    Workbench::make_dir(up, "d", true);
    Workbench::put(up, "d/new", "3");
  });
  EXPECT_EQ(bench_.changes(), "A d/new\nD d/old\nD d/sub\nD d/sub/older\n");
  EXPECT_EQ(committed(), "applied\n");
  EXPECT_EQ(bench_.tree().size(), 3U);
}

TEST_F(Layers, SetIdBitsAreNotCommitted) {
  bench_.in_layer([](const std::string& up) { Workbench::put(up, "tool", "x", 04755); });
  EXPECT_EQ(committed(), "refused tool\n");
  EXPECT_EQ(bench_.tree().size(), 1U);
}

TEST_F(Layers, TheCallersJudgeIsAsked) {
  bench_.in_layer([](const std::string& up) {
    Workbench::put(up, "yes", "x");
    Workbench::put(up, "no", "x");
  });
  const txn::Judge judge = [](const txn::Change& change) {
    return change.path == "no" ? std::optional<std::string>("because") : std::nullopt;
  };
  EXPECT_EQ(committed({.judge = judge}), "refused no\n");
  EXPECT_EQ(committed({.paths = {"yes"}, .judge = judge}), "applied\n");
  EXPECT_EQ(read("yes"), "x");
}

TEST_F(Layers, WhatIsNewOnTheHostBelowARemovedDirectoryIsAConflict) {
  bench_.write("d/a", "1");
  bench_.in_layer([](const std::string& up) { Workbench::white_out(up, "d"); });
  bench_.write("d/b", "2");
  EXPECT_EQ(committed(), "conflict d/b: it was changed on the host meanwhile\n");
  EXPECT_EQ(read("d/a"), "1");
  // The twin: without it the directory goes.
  must(::unlink(bench_.ws("d/b").c_str()));
  EXPECT_EQ(committed(), "applied\n");
  EXPECT_EQ(bench_.tree().size(), 1U);
}

// A part of it changes the times of the directories it lay in.
TEST_F(Layers, APartOfARemovedDirectoryLeavesTheRestToCommit) {
  for (const std::string edit : {"", "new file", "mode", "mode before"}) {
    for (const char* name : {"d/a", "d/e/c", "d/e/g/h", "d/e/g/i"}) bench_.write(name, "1");
    must(::chmod(bench_.ws("d/e").c_str(), 0755));
    bench_.in_layer([](const std::string& up) { Workbench::white_out(up, "d"); });
    if (edit == "mode before") must(::chmod(bench_.ws("d/e").c_str(), 0700));
    for (const char* part : {"d/e/c", "d/e/g/h", "d/e/g"}) {
      let_the_clock_tick();
      EXPECT_EQ(committed({.paths = {part}}), "applied\n") << part;
    }
    if (edit == "new file") bench_.write("d/e/new", "of the host");
    if (edit == "mode") must(::chmod(bench_.ws("d/e").c_str(), 0700));
    const std::string changed =
        "conflict d/e" + std::string(edit == "new file" ? "/new" : "") + ": it was changed on the host meanwhile\n";
    EXPECT_EQ(committed({.paths = {"d/e"}}), edit.empty() ? "applied\n" : changed) << edit;
    EXPECT_EQ(committed(), edit.empty() ? "applied\n" : changed) << edit;
    EXPECT_EQ(bench_.tree().size(), edit.empty() ? 1U : edit == "new file" ? 5U : 4U) << edit;
    if (edit == "new file") {
      EXPECT_EQ(read("d/e/new"), "of the host");
      must(::unlink(bench_.ws("d/e/new").c_str()));
    }
    if (!edit.empty()) {
      ASSERT_TRUE(txn::rollback(bench_.place(), {}));
    }
  }
}

TEST_F(Layers, WhatNobodyElseTouchedIsCommittedInAnyOrder) {
  std::mt19937 random(11);
  const auto any = [&](std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random); };
  const std::vector<std::string> dirs = {"a", "a/x", "a/x/y", "b", "b/x", "a/z"};
  for (int round = 0; round < 12; ++round) {
    for (const std::string& dir : dirs) {
      for (const char* name : {"/1", "/2"}) bench_.write(dir + name, format("{} {}", dir, round));
    }
    bench_.in_layer([&](const std::string& up) {
      for (std::size_t count = 1 + any(3); count > 0; --count) {
        const std::string& dir = dirs[any(dirs.size())];
        bool whited_out = false;
        for (std::filesystem::path at = dir; !at.empty(); at = at.parent_path()) {
          const auto status = std::filesystem::symlink_status(std::filesystem::path(up) / at);
          whited_out = whited_out || status.type() == std::filesystem::file_type::character;
        }
        if (whited_out) continue;
        if (any(3) == 0) Workbench::put(up, dir + "/3", "new");
        else Workbench::white_out(up, dir);
      }
    });
    for (std::string left = bench_.changes(); !left.empty(); left = bench_.changes()) {
      std::vector<std::string> paths;
      for (std::size_t at = 0; at < left.size(); at = left.find('\n', at) + 1)
        paths.push_back(left.substr(at + 2, left.find('\n', at) - at - 2));
      const std::string path = paths[any(paths.size())];
      let_the_clock_tick();
      ASSERT_EQ(committed({.paths = {path}}), "applied\n") << path << " of\n" << left;
    }
    ASSERT_EQ(committed(), "applied\n");
  }
}

TEST_F(Layers, ChangesInPlaceAreFoundWhateverTheirTimesSay) {
  bench_.write("f", "old");
  bench_.in_layer([](const std::string& up) { Workbench::put(up, "f", "new"); });
  struct stat before{};
  must(::stat(bench_.ws("f").c_str(), &before));
  const int fd = ::open(bench_.ws("f").c_str(), O_WRONLY);
  must(fd);
  EXPECT_EQ(::write(fd, "own", 3), 3);
  const timespec times[2] = {before.st_atim, before.st_mtim};
  must(::futimens(fd, times));
  ::close(fd);
  EXPECT_EQ(committed(), "conflict f: the same lines were changed on the host meanwhile, in another way\n");
  EXPECT_EQ(read("f"), "own");
}

TEST_F(Layers, ALinkInTheWorkspaceLeadsNowhere) {
  const TempDir outside("/var/tmp");
  outside.write("target", "safe");
  bench_.write("d/f", "1");
  bench_.in_layer([](const std::string& up) { Workbench::put(up, "d/f", "2"); });
  must(::rename(bench_.ws("d").c_str(), bench_.ws("moved").c_str()));
  outside.write("f", "safe");
  must(::symlink(outside.path().c_str(), bench_.ws("d").c_str()));
  const std::string answer = committed();
  EXPECT_EQ(answer.find("applied"), std::string::npos) << answer;
  EXPECT_EQ(read_file(outside / "f"), "safe");
}

TEST_F(Layers, SeventySnapshotsAreFlattenedAndStillThere) {
  bench_.write("base", "host");
  for (int i = 0; i < 70; ++i) {
    bench_.in_layer([i](const std::string& up) {
      Workbench::put(up, "counter", format("{}", i));
      Workbench::put(up, format("f{}", i), "x");
      if (i == 5) Workbench::white_out(up, "base");
      if (i > 0) Workbench::white_out(up, format("f{}", i - 1));
    });
    const auto kept = txn::snapshot(bench_.place(), format("s{}", i));
    ASSERT_TRUE(kept) << kept.error().line();
  }
  const auto transaction = txn::Transaction::open(bench_.place(), txn::Store::Open::kExisting, txn::Access::kRead);
  ASSERT_TRUE(transaction);
  EXPECT_LT(transaction->meta().chain.size(), txn::kMostLayers);
  EXPECT_EQ(bench_.changes(), "D base\nA counter\nA f69\n");
  ASSERT_TRUE(txn::rollback(bench_.place(), "s3"));
  EXPECT_EQ(bench_.changes(), "A counter\nA f3\n");
  EXPECT_EQ(committed(), "applied\n");
  EXPECT_EQ(read("counter"), "3");
  ASSERT_TRUE(txn::sweep(bench_.place()));
}

TEST_F(Layers, ASnapshotDoesNotChangeWithTheHostsFiles) {
  bench_.in_layer([](const std::string& up) { Workbench::put(up, "f", "1"); });
  ASSERT_TRUE(txn::make_fork(bench_.place(), "other"));
  EXPECT_EQ(committed(), "applied\n");
  // The host's file is its own: writing to it in place does not reach the layer that the fork still has.
  const int fd = ::open(bench_.ws("f").c_str(), O_WRONLY);
  must(fd);
  EXPECT_EQ(::write(fd, "2", 1), 1);
  ::close(fd);
  EXPECT_EQ(bench_.changes("other"), "M f\n");
}

TEST_F(Layers, StateMayNotLieInTheWorkspace) {
  txn::Place place = bench_.place();
  place.state_dir = place.workspace + "/state";
  EXPECT_EQ(txn::snapshot(place, "x").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(txn::snapshot(bench_.place(), "x").error().code(), Code::kNotFound);
  bench_.in_layer([](const std::string&) {});
  EXPECT_TRUE(txn::snapshot(bench_.place(), "x"));
}

TEST_F(Layers, DamagedStateIsSaidAndCanBeDropped) {
  bench_.in_layer([](const std::string& up) { Workbench::put(up, "f", "1"); });
  const std::string meta = must_find(bench_.place().state_dir);
  must(::truncate(meta.c_str(), 3));
  EXPECT_NE(bench_.changes().find("cannot read the state of a transaction"), std::string::npos);
  EXPECT_TRUE(txn::rollback(bench_.place()));
  EXPECT_NE(bench_.changes().find("cannot find the transaction"), std::string::npos);
}

std::string numbers(const std::string& second, const std::string& eighth) {
  return "1\n" + second + "\n3\n4\n5\n6\n7\n" + eighth + "\n9\n";
}

TEST_F(Layers, AMergedPartIsNotTakenBackByTheRest) {
  bench_.write("m", numbers("2", "8"));
  bench_.in_layer([](const std::string& up) {
    Workbench::put(up, "m", numbers("two", "8"));
    Workbench::put(up, "k", "k");
  });
  bench_.write("m", numbers("2", "eight"));
  EXPECT_EQ(committed({.paths = {"m"}}), "applied\nmerged m\n");
  EXPECT_EQ(bench_.changes(), "A k\n");
  // An edit after the commit is the host's alone, too.
  bench_.write("m", numbers("two", "acht"));
  EXPECT_EQ(bench_.changes(), "A k\n");
  EXPECT_EQ(committed(), "applied\n");
  EXPECT_EQ(read("m"), numbers("two", "acht"));
  EXPECT_EQ(read("k"), "k");
}

TEST_F(Layers, WhatIsWrittenAfterAPartWasCommittedIsAChangeAgain) {
  bench_.write("m", numbers("2", "8"));
  bench_.in_layer([](const std::string& up) {
    Workbench::put(up, "m", numbers("two", "8"));
    Workbench::put(up, "k", "k");
  });
  bench_.write("m", numbers("2", "eight"));
  EXPECT_EQ(committed({.paths = {"m"}}), "applied\nmerged m\n");
  bench_.in_layer([](const std::string& up) { Workbench::put(up, "m", numbers("zwei", "8")); });
  EXPECT_EQ(bench_.changes(), "A k\nM m\n");
  EXPECT_EQ(committed({.paths = {"m"}}), "applied\nmerged m\n");
  EXPECT_EQ(read("m"), numbers("zwei", "eight"));
  // The twin: in the same line it is a conflict.
  bench_.in_layer([](const std::string& up) { Workbench::put(up, "m", numbers("zwei", "acht")); });
  EXPECT_EQ(committed(), "conflict m: the same lines were changed on the host meanwhile, in another way\n");
  EXPECT_EQ(read("m"), numbers("zwei", "eight"));
}

TEST_F(Layers, ARollbackAfterAPartWasCommittedTakesNothingOfTheHostsBack) {
  bench_.write("m", numbers("2", "8"));
  bench_.in_layer([](const std::string& up) { Workbench::put(up, "m", numbers("two", "8")); });
  ASSERT_TRUE(txn::snapshot(bench_.place(), "s"));
  bench_.write("m", numbers("2", "eight"));
  EXPECT_EQ(committed({.paths = {"m"}}), "applied\nmerged m\n");
  ASSERT_TRUE(txn::rollback(bench_.place(), "s"));
  bench_.in_layer([](const std::string& up) { Workbench::put(up, "k", "k"); });
  EXPECT_EQ(bench_.changes(), "A k\n");
  EXPECT_EQ(committed(), "applied\n");
  EXPECT_EQ(read("m"), numbers("two", "eight"));
}

TEST_F(Layers, WhateverWasCommittedInPartBelongsToTheHost) {
  const std::string binary("a\0b", 3);
  bench_.write("binary", "text");
  bench_.write("gone", "1");
  bench_.write("tree/a", "1");
  bench_.write("rest", "1");
  bench_.in_layer([&](const std::string& up) {
    Workbench::put(up, "binary", binary);
    Workbench::white_out(up, "gone");
    Workbench::white_out(up, "tree");
    Workbench::put(up, "rest", "2");
    must(::symlink("one", (up + "/link").c_str()));
  });
  EXPECT_EQ(committed({.paths = {"binary", "gone", "tree", "link"}}), "applied\n");
  EXPECT_EQ(bench_.changes(), "M rest\n");
  // All of it is made anew on the host: the transaction has nothing to say about it.
  bench_.write("binary", std::string("c\0d", 3));
  bench_.write("gone", "back");
  bench_.write("tree/b", "back");
  must(::unlink(bench_.ws("link").c_str()));
  must(::symlink("other", bench_.ws("link").c_str()));
  EXPECT_EQ(bench_.changes(), "M rest\n");
  EXPECT_EQ(committed(), "applied\n");
  EXPECT_EQ(read("binary"), std::string("c\0d", 3));
  EXPECT_EQ(read("gone"), "back");
  EXPECT_EQ(read("tree/b"), "back");
  EXPECT_EQ(read("rest"), "2");
  EXPECT_EQ(std::filesystem::read_symlink(bench_.ws("link")), "other");
}

TEST_F(Layers, WhatTheHostMakesInANewDirectoryIsNotOverwritten) {
  bench_.in_layer([](const std::string& up) {
    Workbench::make_dir(up, "n", true);
    Workbench::put(up, "n/a", "ours");
    Workbench::put(up, "n/b", "ours");
  });
  EXPECT_EQ(committed({.paths = {"n/a"}}), "applied\n");
  bench_.write("n/b", "theirs");
  bench_.in_layer([](const std::string&) {});
  EXPECT_EQ(committed(), "conflict n/b: it was made on the host meanwhile\n");
  EXPECT_EQ(read("n/b"), "theirs");
  // The twin: without it the rest follows.
  must(::unlink(bench_.ws("n/b").c_str()));
  EXPECT_EQ(committed(), "applied\n");
  EXPECT_EQ(read("n/b"), "ours");
}

TEST_F(Layers, ADirectoryThatTheHostRemovedAfterAPartIsAConflict) {
  bench_.in_layer([](const std::string& up) {
    Workbench::make_dir(up, "n", true);
    Workbench::put(up, "n/a", "ours");
    Workbench::put(up, "n/b", "ours");
  });
  EXPECT_EQ(committed({.paths = {"n/a"}}), "applied\n");
  std::filesystem::remove_all(bench_.ws("n"));
  EXPECT_EQ(committed(), "conflict n: it was removed on the host meanwhile\n");
  EXPECT_EQ(bench_.tree().size(), 1U);
}

TEST_F(Layers, AModeOfTheHostsSurvivesAMerge) {
  bench_.write("s", numbers("2", "8"));
  bench_.write("only_mode", "1");
  bench_.in_layer([](const std::string& up) {
    Workbench::put(up, "s", numbers("two", "8"));
    Workbench::put(up, "only_mode", "2");
  });
  bench_.write("s", numbers("2", "SECRET"), 0600);
  must(::setxattr(bench_.ws("s").c_str(), "user.note", "hi", 2, 0));
  must(::chmod(bench_.ws("only_mode").c_str(), 0600));
  EXPECT_EQ(committed(), "applied\nmerged only_mode\nmerged s\n");
  EXPECT_EQ(read("s"), numbers("two", "SECRET"));
  EXPECT_EQ(read("only_mode"), "2");
  struct stat status{};
  must(::stat(bench_.ws("s").c_str(), &status));
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  must(::stat(bench_.ws("only_mode").c_str(), &status));
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  char value[8] = {};
  EXPECT_EQ(::getxattr(bench_.ws("s").c_str(), "user.note", value, sizeof value), 2);
}

TEST_F(Layers, AModeOfTheTransactionsSurvivesAMergeAndTwoAreAConflict) {
  bench_.write("s", numbers("2", "8"));
  bench_.write("t", numbers("2", "8"));
  bench_.in_layer([](const std::string& up) {
    Workbench::put(up, "s", numbers("two", "8"), 0755);
    Workbench::put(up, "t", numbers("two", "8"), 0755);
  });
  bench_.write("s", numbers("2", "eight"));
  bench_.write("t", numbers("2", "eight"), 0600);
  EXPECT_EQ(committed(), "conflict t: its mode was changed on the host meanwhile, in another way\n");
  EXPECT_EQ(committed({.paths = {"s"}}), "applied\nmerged s\n");
  EXPECT_EQ(read("s"), numbers("two", "eight"));
  struct stat status{};
  must(::stat(bench_.ws("s").c_str(), &status));
  EXPECT_EQ(status.st_mode & 07777U, 0755U);
}

TEST_F(Layers, AttributesOfBothSidesThatDifferAreAConflict) {
  bench_.write("f", numbers("2", "8"));
  bench_.in_layer([](const std::string& up) {
    Workbench::put(up, "f", numbers("two", "8"));
    must(::setxattr((up + "/f").c_str(), "user.note", "hi", 2, 0));
  });
  must(::setxattr(bench_.ws("f").c_str(), "user.note", "ho", 2, 0));
  EXPECT_EQ(committed(), "conflict f: its attributes were changed on the host meanwhile, in another way\n");
  // The twin: set alike by both.
  must(::setxattr(bench_.ws("f").c_str(), "user.note", "hi", 2, 0));
  EXPECT_EQ(committed(), "applied\nmerged f\n");
  EXPECT_EQ(read("f"), numbers("two", "8"));
}

// Once it was the whole patch that failed, with a name of the layers' own.
TEST_F(Layers, APatchNamesWhatCannotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "only as an ordinary user";
  bench_.write("host", "x", 0);
  bench_.write("read", "old");
  bench_.in_layer([](const std::string& up) {
    Workbench::put(up, "host", "y", 0644);
    Workbench::put(up, "layer", "", 0);
    Workbench::put(up, "read", "new");
  });
  const auto patch = txn::patch(bench_.place());
  ASSERT_TRUE(patch) << patch.error().line();
  EXPECT_EQ(patch->left_out, (std::vector<std::string>{"host: it cannot be read on the host: Permission denied",
                                                       "layer: it cannot be read: Permission denied"}));
  EXPECT_NE(patch->text.find("+++ b/read\n"), std::string::npos) << patch->text;
  EXPECT_EQ(patch->text.find("layer"), std::string::npos) << patch->text;
}

TEST_F(Layers, APatchNamesTheModesItDoesNotCarry) {
  bench_.write("edited", "a\n", 0755);
  bench_.write("plain", "a\n", 0755);
  bench_.in_layer([](const std::string& up) {
    Workbench::put(up, "edited", "b\n", 0700);
    Workbench::put(up, "plain", "b\n", 0755);
    Workbench::put(up, "new", "n\n", 0600);
    Workbench::put(up, "usual", "u\n", 0644);
  });
  const auto patch = txn::patch(bench_.place());
  ASSERT_TRUE(patch);
  const std::vector<std::string> wanted = {"edited: git has no word for the mode", "new: git has no word for the mode"};
  EXPECT_EQ(patch->left_out, wanted);
}

// A workspace on a file system that fills up while the commit is prepared.
TEST(FullDisk, ACommitThatDoesNotFitLeavesTheWorkspaceAsItWas) {
  BELLJAR_NEEDS(as_root());
  const TempDir mount("/var/tmp");
  must(::mount("tmpfs", mount.path().c_str(), "tmpfs", 0, "size=1m"));
  {
    const Workbench bench(mount.path(), "/var/tmp");
    bench.write("kept", "old");
    bench.in_layer([](const std::string& up) {
      Workbench::put(up, "kept", "new");
      Workbench::put(up, "big", std::string(2U << 20, 'x'));
    });
    const auto before = bench.tree();
    const auto done = txn::commit(bench.place(), {});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), Code::kResourceExhausted) << done.error().line();
    EXPECT_EQ(bench.tree(), before);
    // The twin: with room it goes.
    must(::mount("tmpfs", mount.path().c_str(), "tmpfs", MS_REMOUNT, "size=8m"));
    const auto again = txn::commit(bench.place(), {});
    ASSERT_TRUE(again) << again.error().line();
    EXPECT_EQ(read_file(bench.ws("kept")), "new");
  }
  must(::umount(mount.path().c_str()));
}

}  // namespace
}  // namespace belljar::test
