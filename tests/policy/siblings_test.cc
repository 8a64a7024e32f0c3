#include "policy/siblings.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace belljar::policy {
namespace {

using Paths = std::vector<std::string>;

SiblingAnswer choose(Paths others, SiblingQuestion question = {}) {
  if (question.workspace.empty()) question.workspace = "/home/u/a";
  if (question.home.empty()) question.home = "/home/u";
  question.others = std::move(others);
  return choose_siblings(std::move(question));
}

TEST(Siblings, OthersAreHiddenOnceEach) {
  EXPECT_EQ(choose({"/srv/c", "/home/u/b", "/srv/c"}).hidden, (Paths{"/home/u/b", "/srv/c"}));
  EXPECT_EQ(choose({}), SiblingAnswer{});
}

TEST(Siblings, TheSameDirectoryIsTheOwnOne) { EXPECT_EQ(choose({"/home/u/a", "/home/u/a"}), SiblingAnswer{}); }

TEST(Siblings, OneWithinIsAPartOfThisOne) {
  const SiblingAnswer answer = choose({"/home/u/a/worktree", "/home/u/ab"});
  EXPECT_EQ(answer.hidden, Paths{"/home/u/ab"}) << "whole names";
  EXPECT_EQ(answer.visible, Paths{"`/home/u/a/worktree` (it lies in this workspace)"});
}

TEST(Siblings, OneAroundIsHidden) {
  EXPECT_EQ(choose({"/home/u/p"}, {.workspace = "/home/u/p/worktree"}).hidden, Paths{"/home/u/p"});
  EXPECT_EQ(choose({"/srv/pool", "/srv/pool/1", "/srv/pool-x"}, {.workspace = "/srv/pool/2"}).hidden,
            (Paths{"/srv/pool", "/srv/pool-x"}))
      << "what lies in one that is hidden needs no rule of its own";
}

TEST(Siblings, WhatTheHomeDirectoryLiesInStays) {
  for (const std::string other : {"/home/u", "/home", "/"}) {
    const SiblingAnswer answer = choose({other});
    EXPECT_EQ(answer.hidden, Paths{}) << other;
    EXPECT_EQ(answer.visible, Paths{"`" + other + "` (the home directory lies in it)"});
  }
  SiblingQuestion homeless{.workspace = "/srv/a"};
  homeless.others = {"/srv/b"};
  EXPECT_EQ(choose_siblings(homeless).hidden, Paths{"/srv/b"});
}

TEST(Siblings, WhatARuleNamesStays) {
  const Paths told{"`/home/u/b` (a rule names it, or a part of it)"};
  EXPECT_EQ(choose({"/home/u/b"}, {.opened = {"/home/u/b"}}).visible, told);
  EXPECT_EQ(choose({"/home/u/b"}, {.opened = {"/home/u/b/include"}}).visible, told);
  EXPECT_EQ(choose({"/home/u/b"}, {.opened = {"/home/u", "/home/u/bb"}}).hidden, Paths{"/home/u/b"})
      << "what is around it does not";
  EXPECT_EQ(choose({"/home/u"}, {.workspace = "/home/u/a", .home = "/root", .opened = {"/home/u/a/src"}}).hidden, Paths{"/home/u"})
      << "nor does a part of the own one";
}

TEST(Siblings, WhatAVolumeShowsStays) {
  const Paths told{"`/home/u/b` (a volume shows it, or a part of it)"};
  for (const std::string source : {"/home/u/b", "/home/u/b/data", "/home/u"})
    EXPECT_EQ(choose({"/home/u/b"}, {.volumes = {source}}).visible, told) << source;
  EXPECT_EQ(choose({"/home/u/b"}, {.volumes = {"/home/u/bb"}}).hidden, Paths{"/home/u/b"});
}

}  // namespace
}  // namespace belljar::policy
