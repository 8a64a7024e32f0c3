// A usual host of literal paths, and views planned on it: for tests of views and of trees.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/paths/fake_host.h"
#include "backend/paths/host.h"
#include "backend/paths/plan.h"
#include "belljar/policy.h"

namespace belljar::backend {

using test::FakeHost;

inline FakeHost usual_host() {
  FakeHost host;
  host.dir("/tmp", 0, 01777).dir("/var/tmp", 0, 01777).dir("/dev/shm", 0, 01777).dir("/home/u").dir("/home/u/ws").dir("/etc");
  return host;
}

inline const Workplace kPlace{.workspace = "/home/u/ws", .cwd = "/home/u/ws", .home = "/home/u"};

inline PathPlan plan(const FakeHost& host, const Policy& policy, const Workplace& place = kPlace) {
  auto paths = plan_paths(host, policy, place);
  EXPECT_TRUE(paths) << (paths ? "" : paths.error().line());
  return paths ? *std::move(paths) : PathPlan{};
}

inline std::string refusal(const FakeHost& host, const Policy& policy, const Workplace& place = kPlace) {
  const auto paths = plan_paths(host, policy, place);
  return paths ? "" : paths.error().line();
}

inline bool has_gap(const PathPlan& paths, const std::string& clause) {
  return std::ranges::any_of(paths.gaps, [&](const Gap& gap) { return gap.clause == clause; });
}

inline Policy with(FsEntry entry) {
  Policy policy;
  policy.filesystem.entries.push_back(std::move(entry));
  return policy;
}

inline bool hides(const PathPlan& paths, const std::string& path) {
  if (std::ranges::count(paths.view.hide_dirs, path) + std::ranges::count(paths.view.hide_files, path) > 0) return true;
  return std::ranges::any_of(paths.view.masks, [&](const auto& mask) {
    return std::ranges::any_of(mask.second.hidden, [&](const std::string& name) { return mask.first + "/" + name == path; });
  });
}

// protect = "all", or nobody who judges contents: mounts hold what they can.
inline Policy protect_all() {
  Policy policy;
  policy.filesystem.protect = Protect::kAll;
  return policy;
}

inline Workplace in_transaction() {
  Workplace place = kPlace;
  place.layers =
      WorkspaceLayers{.pool = "/home/u/.local/state/belljar/txn/1-2/layers", .lower = {"1/up"}, .upper = "2/up", .work = "2/work"};
  return place;
}

}  // namespace belljar::backend
