#include <gtest/gtest.h>

#include "policy/paths.h"
#include "support_policy.h"

namespace belljar::policy {
namespace {

std::string judged(const std::vector<FsEntry>& entries, std::string_view path) {
  Filesystem filesystem;
  filesystem.entries = entries;
  const FsEntry* rule = find_rule(filesystem, path);
  return rule == nullptr ? "no rule" : std::string(to_string(rule->access)) + " " + rule->path;
}

TEST(FindRule, MostSpecificWinsByWholeComponents) {
  const std::vector<FsEntry> entries{
      {"/", false, Access::kRead, {}}, {"/a", false, Access::kWrite, {}}, {"/a/b", false, Access::kNone, {}}};
  EXPECT_EQ(judged(entries, "/"), "read /");
  EXPECT_EQ(judged(entries, "/a"), "write /a");
  EXPECT_EQ(judged(entries, "/ab"), "read /");
  EXPECT_EQ(judged(entries, "/a/b"), "none /a/b");
  EXPECT_EQ(judged(entries, "/a/b/c"), "none /a/b");
  EXPECT_EQ(judged(entries, "/a/bc"), "write /a");
  EXPECT_EQ(judged({}, "/a"), "no rule");
}

TEST(FindRule, TiesResolveNoneThenWriteThenRead) {
  const FsEntry read{"/a", false, Access::kRead, {}}, write{"/a", false, Access::kWrite, {}}, none{"/a", false, Access::kNone, {}};
  EXPECT_EQ(judged({read, write}, "/a"), "write /a");
  EXPECT_EQ(judged({write, read}, "/a"), "write /a");
  EXPECT_EQ(judged({none, write, read}, "/a"), "none /a");
  EXPECT_EQ(judged({read, write, none}, "/a"), "none /a");
}

TEST(FindRule, APatternIsAsSpecificAsWhatItMatches) {
  const std::vector<FsEntry> entries{
      {"/w", false, Access::kWrite, {}}, {"/w/**/.env", true, Access::kNone, {}}, {"/w/ok/.env", false, Access::kRead, {}}};
  EXPECT_EQ(judged(entries, "/w/.env"), "none /w/**/.env");
  EXPECT_EQ(judged(entries, "/w/a/b/.env"), "none /w/**/.env");
  EXPECT_EQ(judged(entries, "/w/a/.env/below"), "none /w/**/.env");
  EXPECT_EQ(judged(entries, "/w/a/.envx"), "write /w");
  EXPECT_EQ(judged(entries, "/w/ok/.env"), "none /w/**/.env");  // a tie: none
  EXPECT_EQ(judged(entries, "/v/.env"), "no rule");
}

TEST(Glob, Syntax) {
  EXPECT_TRUE(glob_match("/a/*.c", "/a/x.c"));
  EXPECT_FALSE(glob_match("/a/*.c", "/a/b/x.c"));
  EXPECT_TRUE(glob_match("/a/**/x", "/a/x"));
  EXPECT_TRUE(glob_match("/a/**/x", "/a/b/c/x"));
  EXPECT_FALSE(glob_match("/a/**/x", "/a/b/c/xy"));
  EXPECT_TRUE(glob_match("/**/b/**/d", "/a/b/c/b/e/d"));
  EXPECT_TRUE(glob_match("/a/?", "/a/b"));
  EXPECT_FALSE(glob_match("/a/?", "/a/"));
  EXPECT_TRUE(glob_match("/a/[b-d]x", "/a/cx"));
  EXPECT_FALSE(glob_match("/a/[!b-d]x", "/a/cx"));
  EXPECT_TRUE(glob_match("/a/[]x]", "/a/]"));
  EXPECT_TRUE(glob_match("/**", "/a/b"));
  EXPECT_TRUE(glob_match("/a/.*", "/a/.git"));
  EXPECT_TRUE(glob_match("/a/*", "/a/.git"));  // a leading dot is nothing special: hiding must not miss dot files
  EXPECT_TRUE(glob_match(literal_glob("/a[*]?"), "/a[*]?"));
  EXPECT_FALSE(glob_match(literal_glob("/a[*]?"), "/a*x"));
}

TEST(Glob, WhatOtherMatchersUnderstandInBracketsIsRefusedByName) {
  EXPECT_EQ(check_glob("**/[^f]*").error().reason(), "`[^` negates nothing here");
  EXPECT_EQ(check_glob("[[:alpha:]]*").error().reason(), "character classes have no names here");
  EXPECT_EQ(check_glob("[a[:digit:]]*").error().reason(), "character classes have no names here");
  // The twins.
  for (const char* fine : {"**/[!f]*", "[f^]*", "[[:]*", "[:a-z:]*", "^*"}) EXPECT_TRUE(check_glob(fine)) << fine;
  EXPECT_TRUE(glob_match("[f^]", "^"));
}

TEST(Glob, OfASearchIsRelativeToItsTop) {
  EXPECT_EQ(glob_below("./src/./*.cc", "/w").value(), "src/*.cc");
  EXPECT_EQ(glob_below("/w/./src//*", "/w").value(), "src/*");
  EXPECT_EQ(glob_below("/l/src/*", "/w", "/l").value(), "src/*");
  EXPECT_EQ(glob_below("**", "/").value(), "**");
  EXPECT_EQ(glob_below("/a/*", "/").value(), "a/*");
  for (const char* out : {"../*", "a/../*", "/etc/*", "/w2/*", "/w/../x", "/l/src/*"})
    EXPECT_EQ(glob_below(out, "/w").error().what(), std::string("path escapes workspace: ") + out);
  EXPECT_EQ(glob_below("", "/w").error().code(), Code::kInvalidArgument);
}

TEST(Glob, BracesAreRefusedByNameAndMeanThemselvesInBrackets) {
  const auto braces = check_glob("**/{x,y}.cfg");
  ASSERT_FALSE(braces);
  EXPECT_NE(braces.error().reason().find("braces mean nothing here"), std::string::npos) << braces.error().line();
  EXPECT_FALSE(check_glob("**/a}"));
  // The twin.
  EXPECT_TRUE(check_glob("**/[{]x[}].cfg"));
  EXPECT_TRUE(glob_match("**/[{]x[}].cfg", "/w/{x}.cfg"));
}

TEST(Glob, HostilePatternsEndSoon) {
  std::string pattern, path;
  for (int i = 0; i < 300; ++i) pattern += "/**/*a*", path += "/aaaaaaaa";
  EXPECT_FALSE(glob_match(pattern + "/b", path));
  std::string stars(2000, '*');
  EXPECT_FALSE(glob_match("/" + stars + "b", "/" + std::string(2000, 'a')));
}

TEST(Paths, NormalForm) {
  EXPECT_EQ(normal("/"), "/");
  EXPECT_EQ(normal("//a///b/./c/"), "/a/b/c");
  EXPECT_EQ(normal("/a/../../b"), "/b");
  EXPECT_EQ(normal("/.."), "/");
  EXPECT_EQ(normal("/a/..."), "/a/...");
}

// The oracle: literal rules only, all of them compared by their lists of components.
std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : path + "/") {
    if (c != '/') part += c;
    else if (!part.empty()) parts.push_back(std::exchange(part, ""));
  }
  return parts;
}

std::string oracle(const std::vector<FsEntry>& entries, const std::string& path) {
  const auto wanted = split(path);
  for (std::size_t length = wanted.size() + 1; length-- > 0;) {
    for (const Access access : {Access::kNone, Access::kWrite, Access::kRead}) {
      for (const FsEntry& entry : entries) {
        if (entry.access == access &&
            split(entry.path) == std::vector(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(length)))
          return std::string(to_string(access));
      }
    }
  }
  return "no rule";
}

TEST(FindRule, AgreesWithANaiveOracle) {
  std::uint32_t seed = 7;
  const auto random = [&seed](std::uint32_t below) {
    seed = seed * 1664525U + 1013904223U;
    return (seed >> 8) % below;
  };
  const auto path = [&] {
    std::string result;
    for (std::uint32_t i = 0, n = random(5); i < n; ++i)
      result += std::string("/") + "abA."[random(4)] + (random(4) == 0 ? "x" : "");
    return normal(result.empty() ? "/" : result);
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<FsEntry> entries;
    for (std::uint32_t i = 0, n = random(8); i < n; ++i) entries.push_back({path(), false, static_cast<Access>(random(3)), {}});
    const std::string probe = path();
    const std::string found = judged(entries, probe);
    ASSERT_EQ(found.substr(0, found.find(" /")), oracle(entries, probe)) << probe;
  }
}

}  // namespace
}  // namespace belljar::policy
