#include "broker/git_index.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace belljar::broker {
namespace {

std::string number(std::uint32_t value, int bytes = 4) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> (8 * i) & 0xFFU));
  return text;
}

struct Made {
  std::string text;
  std::vector<std::uint32_t> starts;
};

// index-format(5). `told`: what the flags say of a name's length, where that is a lie.
Made index_of(std::uint32_t version, const std::vector<std::string>& names, int told = -1, std::uint32_t mode = 0100644) {
  Made made{"DIRC" + number(version) + number(static_cast<std::uint32_t>(names.size())), {}};
  std::string before;
  for (const std::string& name : names) {
    made.starts.push_back(static_cast<std::uint32_t>(made.text.size()));
    std::string entry = std::string(24, '\1') + number(mode) + std::string(12, '\1') + std::string(20, 'h');
    entry += number(told >= 0 ? static_cast<std::uint32_t>(told) : static_cast<std::uint32_t>(name.size()), 2);
    if (version == 4) {
      std::size_t same = 0;
      while (same < before.size() && same < name.size() && before[same] == name[same]) ++same;
      entry += static_cast<char>(before.size() - same) + name.substr(same) + std::string(1, '\0');
      before = name;
    } else {
      entry += name;
      entry.append(8 - entry.size() % 8, '\0');
    }
    made.text += entry;
  }
  return made;
}
std::string ended(const std::string& text) { return text + std::string(20, 's'); }
std::string extension(const std::string& name, const std::string& content) {
  return name + number(static_cast<std::uint32_t>(content.size())) + content;
}

TEST(GitIndex, NamesOfTheWorkTreePass) {
  const std::vector<std::string> names = {".gitignore", "a", "a.git/x", "dir/b", "dir/c/..d", "dir/c/d...", "git/config"};
  for (const std::uint32_t version : {2U, 3U, 4U}) EXPECT_EQ(index_objection(ended(index_of(version, names).text)), std::nullopt);
  EXPECT_EQ(index_objection(""), std::nullopt);
  EXPECT_EQ(index_objection(ended(index_of(2, {}).text)), std::nullopt);
  EXPECT_EQ(index_objection(ended(index_of(2, {"sparse/"}, -1, 040000).text)), std::nullopt);
  EXPECT_EQ(index_objection(ended(index_of(2, {std::string(5000, 'n')}, 0xFFF).text)), std::nullopt);
}

TEST(GitIndex, NamesThatLeadOutAreObjectedTo) {
  for (const char* name :
       {"../x", "a/../x", "/etc/x", "a//b", "./a", "a/.", ".git/hooks/x", "a/.GIT/config", "a/git~1/x", "dir/", ".git"}) {
    for (const std::uint32_t version : {2U, 3U, 4U})
      EXPECT_NE(index_objection(ended(index_of(version, {"a", name}).text)), std::nullopt) << name << " " << version;
  }
}

TEST(GitIndex, WhatCouldBeReadAnotherWayIsObjectedTo) {
  EXPECT_NE(index_objection("DIRC"), std::nullopt);
  EXPECT_NE(index_objection(ended(index_of(5, {"a"}).text)), std::nullopt);
  EXPECT_NE(index_objection(ended(index_of(2, {"abcdefgh"}, 3).text)), std::nullopt);
  EXPECT_NE(index_objection(ended(index_of(4, {"abcdefgh"}, 30).text)), std::nullopt);
  EXPECT_NE(index_objection(ended(index_of(2, {"a"}, 0xFFF).text)), std::nullopt);
  EXPECT_NE(index_objection(ended(index_of(2, {""}).text)), std::nullopt);
  const std::string whole = index_of(2, {"a", "b"}).text;
  for (std::size_t cut = 1; cut < whole.size(); ++cut) EXPECT_NE(index_objection(ended(whole.substr(0, cut))), std::nullopt) << cut;
}

// Threads of git's begin where the table says, and look for it where the end says.
TEST(GitIndex, TheTableOfOffsetsLeadsToEntries) {
  const Made made = index_of(2, {"a", "b", "c"});
  const auto table = [&](std::uint32_t first, std::uint32_t second, std::uint32_t many) {
    return made.text + extension("IEOT", number(1) + number(first) + number(many) + number(second) + number(3 - many));
  };
  EXPECT_EQ(index_objection(ended(table(made.starts[0], made.starts[1], 1))), std::nullopt);
  EXPECT_NE(index_objection(ended(table(made.starts[0], made.starts[2], 1))), std::nullopt);
  EXPECT_NE(index_objection(ended(table(made.starts[0] + 8, made.starts[1], 1))), std::nullopt);
  EXPECT_NE(index_objection(ended(made.text + extension("IEOT", number(1)))), std::nullopt);
  const Made packed = index_of(4, {"abc", "abd"});
  EXPECT_NE(index_objection(ended(packed.text + extension("IEOT", number(1) + number(packed.starts[0]) + number(1) +
                                                                      number(packed.starts[1]) + number(1)))),
            std::nullopt);
  const auto end = [&](std::uint32_t at) { return made.text + extension("EOIE", number(at) + std::string(20, 'h')); };
  EXPECT_EQ(index_objection(ended(end(static_cast<std::uint32_t>(made.text.size())))), std::nullopt);
  EXPECT_NE(index_objection(ended(end(12))), std::nullopt);
  EXPECT_NE(index_objection(ended(made.text + "TREE" + number(1000))), std::nullopt);
}

TEST(GitIndex, ASplitIndexMayReplaceEntriesOfTheSharedOne) {
  EXPECT_EQ(index_objection(ended(index_of(2, {""}).text + extension("link", std::string(20, 'h')))), std::nullopt);
}

}  // namespace
}  // namespace belljar::broker
