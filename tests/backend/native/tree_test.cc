// From view to mount operations, on a host of literal paths.
#include "backend/native/tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/paths/fake_host.h"
#include "backend/paths/host.h"
#include "backend/paths/plan.h"
#include "backend/paths/support_plan.h"
#include "base/unique_fd.h"
#include "belljar/policy.h"
#include "launch/plan.h"
#include "launch/stage.h"
#include "support/temp_dir.h"

namespace belljar::backend {
namespace {

// What may be hidden lies on the stage, which lies over /tmp while the tree is built.
TEST(BuildTree, TheStageIsCoveredInEveryView) {
  FakeHost host = usual_host();
  host.dir("/").dir("/tmp/ws");
  for (const Tmp tmp : {Tmp::kPrivate, Tmp::kShared}) {
    for (const bool exclude : {false, true}) {
      for (const Mode mode : {Mode::kWorkspaceWrite, Mode::kReadOnly}) {
        for (const std::string workspace : {"/home/u/ws", "/tmp/ws", "/tmp", "/"}) {
          const Policy policy{.mode = mode, .filesystem = {.tmp = tmp, .exclude_slash_tmp = exclude}};
          const Workplace place{.workspace = workspace, .cwd = workspace, .home = "/home/u"};
          launch::Plan made;
          ASSERT_TRUE(build_tree_ops(host, plan(host, policy, place).view, made));
          const bool covered = std::ranges::any_of(made.mounts, [](const launch::MountOp& op) {
            return op.kind == launch::MountOpKind::kAttach && op.target == "/tmp" && op.flags == 0;
          });
          EXPECT_TRUE(covered) << workspace << " " << to_string(mode) << (exclude ? " excluded" : "");
        }
      }
    }
  }
}

// Whatever the policy treats apart below the workspace comes out of the overlay: the host's own directory is only its floor.
// Root's are made while the rest is still being planned (launch/early_setup.h): where that fails the child makes them again, later.
TEST(BuildTree, TheHiddenNamesNeedNothingElseOnTheStage) {
  if (::geteuid() != 0) GTEST_SKIP() << "only as root: names in a closed directory are made past its mode";
  FakeHost host = usual_host();
  host.dir("/").dir("/home/u/.ssh").file("/home/u/.netrc").dir("/home/u/.config");
  const PathPlan paths = plan(host, {});
  ASSERT_TRUE(hides(paths, "/home/u/.aws")) << "an absent one, which is a link";
  launch::Plan plan;
  build_names(host, paths.view, plan);
  EXPECT_FALSE(plan.stage_names.empty());
  const belljar::test::TempDir stage;
  const UniqueFd place(::open(stage.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(launch::run_stage_ops(place.get(), plan.stage_names, launch::MayBind::kNo), 0);
}

// The names that are absent inside, one whiteout each.
std::vector<std::string> absent_names(const FakeHost& host, const Policy& policy = {}) {
  launch::Plan made;
  build_names(host, plan(host, policy).view, made);
  std::vector<std::string> names;
  for (const launch::MountOp& op : made.stage_names) {
    if (op.kind != launch::MountOpKind::kLinkNames || op.source != "../absent") continue;
    for (std::size_t at = 0; at < op.data.size(); at += names.back().size() + 1) names.emplace_back(op.data.c_str() + at);
  }
  return names;
}

TEST(BuildTree, ADirectoryThatTheHostLacksIsAbsentAsAWhole) {
  FakeHost host = usual_host();
  host.dir("/home/u/.config");
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::count(names, name) == 1;
  };
  const auto lacking = absent_names(host);
  EXPECT_TRUE(has(lacking, ".composer"));
  EXPECT_FALSE(has(lacking, ".composer/auth.json"));
  EXPECT_TRUE(has(lacking, ".config/gcloud")) << "the host has .config";
  EXPECT_TRUE(has(lacking, ".config/containers"));
  EXPECT_TRUE(has(lacking, ".local/share/keyrings")) << "what a program makes in .local/share is refused and told";
  EXPECT_FALSE(has(lacking, ".local"));
  // The twins: it is there, or something else below it has to be.
  host.dir("/home/u/.composer");
  const auto there = absent_names(host);
  EXPECT_FALSE(has(there, ".composer"));
  EXPECT_TRUE(has(there, ".composer/auth.json"));
  const auto needed = absent_names(host, with({.path = "/home/u/.config/containers/own", .access = Access::kNone}));
  EXPECT_FALSE(has(needed, ".config/containers"));
  EXPECT_TRUE(has(needed, ".config/containers/auth.json"));
}

TEST(BuildTree, InATransactionNoMountLeadsAroundTheLayers) {
  FakeHost host = usual_host();
  host.dir("/home/u/ws/.git").dir("/home/u/ws/sub").dir("/home/u/ws/sub/deep").dir("/home/u/ws/out");
  Policy policy = with({.path = "/home/u/ws/sub/deep", .access = Access::kRead});
  policy.filesystem.entries.push_back({.path = "/home/u/ws/out", .access = Access::kWrite});
  const auto captured = [&](const Workplace& place) {
    launch::Plan made;
    const PathPlan paths = plan(host, policy, place);
    EXPECT_TRUE(build_tree_ops(host, paths.view, made));
    std::vector<std::string> sources;
    for (const launch::MountOp& op : made.mounts) {
      const bool readonly = (op.attr_set & MOUNT_ATTR_RDONLY) != 0;
      if (op.kind == launch::MountOpKind::kCapture && is_under(op.source, kPlace.workspace))
        sources.push_back(op.source + (readonly ? " ro" : " rw"));
    }
    return sources;
  };
  EXPECT_EQ(captured(in_transaction()), std::vector<std::string>{"/home/u/ws ro"});
  EXPECT_GE(captured(kPlace).size(), 4U);
}

// What a command finds at a path: the mount that was attached last at or above it.
class Seen {
 public:
  Seen(const FakeHost& host, const Policy& policy, const Workplace& place) : paths_(plan(host, policy, place)) {
    EXPECT_TRUE(build_tree_ops(host, paths_.view, plan_));
    for (const launch::MountOp& op : plan_.mounts) {
      if (op.kind == launch::MountOpKind::kAttach) attached_.push_back(&op);
      else made_.try_emplace(op.slot, &op);
    }
  }
  // Nothing is found below what is hidden.
  Access at(const std::string& path) const {
    for (std::string up = path; up != "/"; up = parent_of(up)) {
      if (shown_at(up) == Access::kNone && !is_way(up)) return Access::kNone;
    }
    return shown_at(path);
  }
  std::string source_of(const std::string& path) const {
    const launch::MountOp* last = last_at(path);
    return last == nullptr ? "" : made_in(last->slot).source;
  }
  bool is_mount_point(const std::string& path) const {
    const launch::MountOp* last = last_at(path);
    return last != nullptr && last->target == path;
  }

 private:
  // Hidden, with the way to something that is shown.
  bool is_way(const std::string& path) const {
    const launch::MountOp* last = last_at(path);
    return last != nullptr && std::ranges::find(paths_.ways, last->target) != paths_.ways.end();
  }
  Access shown_at(const std::string& path) const {
    const launch::MountOp* last = last_at(path);
    if (last == nullptr) return Access::kRead;  // the floor
    if (is_way(path)) return Access::kNone;
    if (const auto mask = paths_.view.masks.find(last->target); mask != paths_.view.masks.end()) {
      const bool hidden =
          std::ranges::any_of(mask->second.hidden, [&](const auto& name) { return is_under(path, last->target + "/" + name); });
      return hidden ? Access::kNone : Access::kRead;
    }
    const launch::MountOp& made = made_in(last->slot);
    if (made.source.starts_with("/tmp/hidden")) return Access::kNone;
    return (made.attr_set & MOUNT_ATTR_RDONLY) != 0 ? Access::kRead : Access::kWrite;
  }
  const launch::MountOp* last_at(const std::string& path) const {
    const launch::MountOp* last = nullptr;
    for (const launch::MountOp* op : attached_) {
      if (is_under(path, op->target)) last = op;
    }
    return last;
  }
  const launch::MountOp& made_in(int slot) const { return *made_.at(slot); }

  PathPlan paths_;
  launch::Plan plan_;
  std::vector<const launch::MountOp*> attached_;  // in order
  std::map<int, const launch::MountOp*> made_;    // by slot
};

// Every directory of three levels below `root`, and `root`.
std::vector<std::string> small_tree(const std::string& root) {
  std::vector<std::string> all{root};
  for (std::size_t from = 0, level = 0; level < 3; ++level) {
    const std::size_t end = all.size();
    for (; from < end; ++from) {
      for (const char* name : {"/a", "/b"}) all.push_back(all[from] + name);
    }
  }
  return all;
}

// Once the pins of a deeper read-only name lay, writable, over a shallower one.
TEST(BuildTree, WhateverIsNestedInWhatEachPathIsAsItsRuleSays) {
  FakeHost host = usual_host();
  host.dir("/");
  std::vector<std::string> tree = small_tree(kPlace.workspace);
  for (const std::string& path : small_tree("/home/u/other")) tree.push_back(path);
  for (const std::string& path : small_tree("/srv")) tree.push_back(path);
  for (const std::string& path : tree) host.dir(path);
  std::mt19937 random(7);
  const auto any = [&](std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random); };
  int planned = 0;
  for (int round = 0; round < 150; ++round) {
    Policy policy;
    policy.filesystem.caches = Caches::kOff;
    std::string told;
    for (std::size_t count = 1 + any(6); count > 0; --count) {
      constexpr Access kKinds[] = {Access::kRead, Access::kRead, Access::kWrite, Access::kWrite, Access::kNone};
      policy.filesystem.entries.push_back({.path = tree[any(tree.size())], .access = kKinds[any(std::size(kKinds))]});
      told += std::string(to_string(policy.filesystem.entries.back().access)) + " " + policy.filesystem.entries.back().path + "\n";
    }
    const Workplace place = any(2) == 0 ? kPlace : in_transaction();
    if (!plan_paths(host, policy, place)) continue;  // something inside of what is hidden
    ++planned;
    const Seen seen(host, policy, place);
    for (const std::string& path : tree) {
      const FsEntry* rule = find_rule(policy.filesystem, path);
      const Access granted = is_under(path, kPlace.workspace) && (rule == nullptr || !is_under(rule->path, kPlace.workspace))
                                 ? Access::kWrite
                             : rule == nullptr ? Access::kRead
                                               : rule->access;
      ASSERT_EQ(to_string(seen.at(path)), to_string(granted)) << path << (place.layers ? " in a transaction" : "") << "\n" << told;
    }
    for (const FsEntry& entry : policy.filesystem.entries) {
      if (seen.at(entry.path) != Access::kRead) continue;
      for (std::string up = parent_of(entry.path); up != "/"; up = parent_of(up)) {
        ASSERT_TRUE(seen.at(up) != Access::kWrite || seen.is_mount_point(up)) << up << " could be renamed\n" << told;
      }
    }
  }
  EXPECT_GT(planned, 20);
}

TEST(BuildTree, AProtectedNameOpensNoReadOnlyDirectoryAboveIt) {
  FakeHost host = usual_host();
  host.dir("/").file("/home/u/ws/.github/copilot-instructions.md").dir("/home/u/ws/.github/workflows");
  const Seen kept(host, with({.path = "/home/u/ws/.github", .access = Access::kRead}), kPlace);
  EXPECT_EQ(kept.at("/home/u/ws/.github/workflows"), Access::kRead);
  EXPECT_EQ(kept.at("/home/u/ws/.github/copilot-instructions.md"), Access::kRead);
  const Seen open(host, {}, kPlace);
  EXPECT_EQ(open.at("/home/u/ws/.github/workflows"), Access::kWrite);
  EXPECT_EQ(open.at("/home/u/ws/.github/copilot-instructions.md"), Access::kRead);
}

TEST(BuildTree, TheCommonRepositoryStaysReadOnlyAboveItsWorktrees) {
  FakeHost host = usual_host();
  host.dir("/").dir("/home/u/ws/main/worktrees/wt").file("/home/u/ws/main/worktrees/wt/commondir", "../..\n");
  host.file("/home/u/ws/.git", "gitdir: main/worktrees/wt\n");
  host.link("/home/u/ws/main/worktrees/wt/../..", "/home/u/ws/main");
  const Seen seen(host, protect_all(), kPlace);
  EXPECT_EQ(seen.at("/home/u/ws/main/worktrees"), Access::kRead);
  EXPECT_EQ(seen.at("/home/u/ws"), Access::kWrite);
}

TEST(BuildTree, AReadOnlyNameBelowAVolumeIsTheVolumes) {
  FakeHost host = usual_host();
  host.dir("/").file("/home/u/ws/vol/sub/f").dir("/srv/data/sub").file("/srv/data/sub/f").dir("/srv/same/sub");
  for (const bool readonly : {true, false}) {
    Policy policy = with({.path = "/home/u/ws/vol/sub/f", .access = Access::kRead});
    policy.filesystem.entries.push_back({.path = "/srv/same/sub", .access = Access::kRead});
    policy.filesystem.volumes = {{.source = "/srv/data", .target = "/home/u/ws/vol", .readonly = readonly},
                                 {.source = "/srv/same", .target = "/srv/same", .readonly = readonly}};
    const Seen seen(host, policy, kPlace);
    const Access rest = readonly ? Access::kRead : Access::kWrite;
    EXPECT_EQ(seen.at("/home/u/ws/vol/sub/f"), Access::kRead);
    EXPECT_EQ(seen.at("/home/u/ws/vol/sub"), rest);
    EXPECT_EQ(seen.at("/home/u/ws/vol"), rest);
    EXPECT_TRUE(is_under(seen.source_of("/home/u/ws/vol/sub"), "/srv/data")) << seen.source_of("/home/u/ws/vol/sub");
    EXPECT_EQ(seen.source_of("/home/u/ws/vol/sub/f"), readonly ? "/srv/data" : "/srv/data/sub/f");
    EXPECT_EQ(seen.at("/srv/same"), rest);
    EXPECT_EQ(seen.at("/srv/same/sub"), Access::kRead);
    EXPECT_EQ(seen.at("/home/u/ws"), Access::kWrite);
  }
}

TEST(BuildTree, AVolumeBelowAHiddenPlaceIsRefused) {
  FakeHost host = usual_host();
  host.dir("/").dir("/srv/data").dir("/usr/share/doc/sub");
  for (const char* hidden : {"/usr/share/doc", "/usr/share/other"}) {
    Policy policy = with({.path = hidden, .access = Access::kNone});
    policy.filesystem.volumes.push_back({.source = "/srv/data", .target = "/usr/share/doc/sub", .readonly = false});
    launch::Plan made;
    const auto built = build_tree_ops(host, plan(host, policy).view, made);
    EXPECT_EQ(static_cast<bool>(built), hidden != std::string("/usr/share/doc")) << (built ? "" : built.error().line());
  }
}

TEST(BuildTree, ADefaultSecretInAVolumeIsTheVolumes) {
  FakeHost host = usual_host();
  host.dir("/")
      .dir("/home/u/.aws")
      .dir("/home/u/.config/op")
      .dir("/home/u/.config")
      .dir("/srv/keys")
      .dir("/srv/etc/gh")
      .dir("/srv/etc/git");
  Policy policy;
  policy.filesystem.volumes = {{.source = "/srv/keys", .target = "/home/u/.aws"},
                               {.source = "/srv/etc", .target = "/home/u/.config"}};
  const Seen seen(host, policy, kPlace);
  EXPECT_EQ(seen.source_of("/home/u/.aws/key"), "/srv/keys") << "somebody wants it there";
  EXPECT_EQ(seen.at("/home/u/.config/gh"), Access::kNone);
  EXPECT_EQ(seen.source_of("/home/u/.config/git"), "/srv/etc");
  EXPECT_EQ(seen.source_of("/home/u/.config/op"), "/srv/etc") << "no mask of the host's directory";
}

TEST(BuildTree, ACacheLiesNeitherOverAVolumeNorOverAReadOnlyName) {
  FakeHost host = usual_host();
  host.dir("/").dir("/home/u/.cache").dir("/home/u/.cache/kept").dir("/home/u/.cache/other").dir("/srv/data");
  const Seen seen(host, with({.path = "/home/u/.cache/kept", .access = Access::kRead}), kPlace);
  EXPECT_EQ(seen.at("/home/u/.cache/kept"), Access::kRead);
  EXPECT_EQ(seen.at("/home/u/.cache/other"), Access::kWrite);
  Policy policy;
  policy.filesystem.volumes.push_back({.source = "/srv/data", .target = "/home/u/.cache"});
  EXPECT_EQ(Seen(host, policy, kPlace).source_of("/home/u/.cache/other"), "/srv/data");
}

// What the host has mounted below a masked directory is put back: never over the mask's names.
TEST(BuildTree, AMountOfTheHostShowsNothingHidden) {
  FakeHost host = usual_host();
  host.dir("/").mounted("/home/u/.ssh").mounted("/home/u/.config").dir("/home/u/.config/gh").mounted("/home/u/data");
  host.dir("/home/u/ws/secret").mounted("/home/u/ws/secret/m").mounted("/home/u/ws/shown");
  for (const Workplace& place : {kPlace, in_transaction()}) {
    const Seen seen(host, with({.path = "/home/u/ws/secret", .access = Access::kNone}), place);
    for (const std::string path :
         {"/home/u/.ssh", "/home/u/.config/gh", "/home/u/.config/op", "/home/u/ws/secret", "/home/u/ws/secret/m"})
      EXPECT_EQ(seen.at(path), Access::kNone) << path;
    EXPECT_EQ(seen.source_of("/home/u/data"), "/home/u/data");
    EXPECT_EQ(seen.at("/home/u/.config/git"), Access::kRead);
  }
  // No layer can hold what lies on another file system.
  const Seen layered(host, with({.path = "/home/u/ws/shown", .access = Access::kWrite}), in_transaction());
  EXPECT_EQ(layered.source_of("/home/u/ws/shown"), "/home/u/ws/shown");
  EXPECT_EQ(layered.at("/home/u/ws/shown"), Access::kRead);
}

TEST(BuildTree, AProtectedNameBelowAHiddenOneNeedsNoMountOfItsOwn) {
  FakeHost host = usual_host();
  host.dir("/").file("/home/u/ws/.github/copilot-instructions.md");
  const Seen hidden(host, with({.path = "/home/u/ws/.github", .access = Access::kNone}), kPlace);
  EXPECT_FALSE(hidden.is_mount_point("/home/u/ws/.github/copilot-instructions.md"));
  EXPECT_EQ(hidden.at("/home/u/ws/.github/copilot-instructions.md"), Access::kNone);
  const Seen other(host, with({.path = "/home/u/ws/other", .access = Access::kNone}), kPlace);
  EXPECT_TRUE(other.is_mount_point("/home/u/ws/.github/copilot-instructions.md"));
}

// The masks of what lies below it once lay over the mask that hides the directory itself.
TEST(BuildTree, AHiddenDirectoryStaysHiddenWhateverIsHiddenInIt) {
  FakeHost host = usual_host();
  host.dir("/").dir("/home/u/.ssh").dir("/home/u/.cache").dir("/srv/a/b/c").dir("/srv/a/b").dir("/srv/ws").dir("/srv/a/other");
  const Workplace place{.workspace = "/srv/ws", .cwd = "/srv/ws", .home = "/home/u"};
  const Seen home(host, with({.path = "/home/u", .access = Access::kNone}), place);
  EXPECT_EQ(home.at("/home/u"), Access::kNone);
  EXPECT_EQ(Seen(host, {}, place).at("/home/u"), Access::kRead);
  Policy nested = with({.path = "/srv/a/b/c", .access = Access::kNone});
  EXPECT_EQ(Seen(host, nested, place).at("/srv/a/b"), Access::kRead);
  nested.filesystem.entries.push_back({.path = "/srv/a/b", .access = Access::kNone});
  EXPECT_EQ(Seen(host, nested, place).at("/srv/a/b"), Access::kNone);
  EXPECT_EQ(Seen(host, nested, place).at("/srv/a/other"), Access::kRead);
}

}  // namespace
}  // namespace belljar::backend
