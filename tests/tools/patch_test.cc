// Unified diffs: what is read, what fits, what is refused.
#include "tools/patch.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"
#include "tools/patch_names.h"

namespace belljar::tools {
namespace {

struct Case {
  const char* name;
  const char* before;
  const char* patch;
  const char* after;  // nullptr: refused
  const char* why;    // of a refusal
};

// The hunks of the first file of `patch` on `before`.
Result<std::string> patched(const Case& row) {
  const auto patches = BELLJAR_TRY(parse_patch(row.patch));
  return BELLJAR_TRY(apply_hunks(row.before, patches[0])).text;
}

constexpr Case kCases[] = {
    {"one line", "a\nb\nc\n", "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n", nullptr},
    {"counts of one are left out", "a\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "b\n", nullptr},
    {"two hunks", "1\n2\n3\n4\n5\n6\n7\n8\n", "--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n 1\n+1a\n 2\n@@ -7,2 +8,1 @@\n 7\n-8\n",
     "1\n1a\n2\n3\n4\n5\n6\n7\n", nullptr},
    {"a hunk that has moved down", "x\ny\na\nb\nc\n", "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "x\ny\na\nB\nc\n",
     nullptr},
    {"a hunk that has moved up", "a\nb\nc\n", "--- a/f\n+++ b/f\n@@ -9,3 +9,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n", nullptr},
    {"inserted behind a line", "a\nb\n", "--- a/f\n+++ b/f\n@@ -1,0 +2,1 @@\n+x\n", "a\nx\nb\n", nullptr},
    {"a new file", "", "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n", "a\nb\n", nullptr},
    {"the last newline goes", "a\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n", "a", nullptr},
    {"the last newline comes", "a", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", "a\n", nullptr},
    {"a line behind one without a newline", "a", "--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n a\n+b\n", "a\nb\n", nullptr},
    {"an empty line of context without its blank", "a\n\nb\n", "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n",
     nullptr},
    {"carriage returns stay", "a\r\nb\r\n", "--- a/f\r\n+++ b/f\r\n@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+c\r\n", "a\r\nc\r\n", nullptr},
    {"a removed line that looks like a header", "-- x\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n--- x\n+++ y\n", "++ y\n", nullptr},
    {"mail around it", "a\n",
     "From: me\n\nwords\n---\n f | 2 +-\n\ndiff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n-- "
     "\n2.39\n",
     "b\n", nullptr},
    {"context that differs", "a\nb\n", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-x\n+y\n", nullptr,
     "line 2 is `b`, the patch has `x`"},
    {"behind the end", "a\n", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n", nullptr, "the file ends at line 1"},
    {"hunks out of order", "a\nb\n", "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+B\n@@ -1 +1 @@\n-a\n+A\n", nullptr, "does not fit"},
    {"too few lines", "a\n", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n", nullptr, "ends 1 old and 1 new lines early"},
    {"too many lines", "a\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n+c\n", nullptr, "goes on behind the lines"},
    {"no mark in front", "a\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\nx\n", nullptr, "begin each of its lines"},
    {"numbers that are none", "a\n", "--- a/f\n+++ b/f\n@@ -x +1 @@\n-a\n", nullptr, "no `@@"},
    {"a number too large", "a\n", "--- a/f\n+++ b/f\n@@ -1,99999999999999999999 +1 @@\n-a\n", nullptr, "no `@@"},
    {"a hunk without a file", "a\n", "@@ -1 +1 @@\n-a\n+b\n", nullptr, "a hunk without a file"},
    {"a hunk without numbers", "b\n", "--- a/f\n+++ b/f\n@@\n-b\n+B\n", nullptr, "line 3: no `@@"},
    {"a hunk with empty numbers", "b\n", "--- a/f\n+++ b/f\n@@ @@\n-b\n+B\n", nullptr, "line 3: no `@@"},
    {"a hunk with words", "b\n", "--- a/f\n+++ b/f\n@@ def foo():\n-b\n+B\n", nullptr, "line 3: no `@@"},
    {"a second hunk without numbers", "a\nb\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+A\n@@\n-b\n+B\n", nullptr, "line 6: no `@@"},
    {"words behind the numbers", "b\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@ def foo():\n-b\n+B\n", "B\n", nullptr},
    {"a loose hunk without numbers", "b\n", "@@\n-b\n+B\n", nullptr, "a hunk without a file"},
    {"lines without a hunk", "b\n", "--- a/f\n+++ b/f\n-b\n+B\n", nullptr, "a file without a hunk"},
    {"names alone", "b\n", "--- a/f\n+++ b/f\n", nullptr, "a file without a hunk"},
    {"git's names alone", "b\n", "diff --git a/f b/f\nindex 1..2 100644\n", nullptr, "a file without a hunk"},
    {"git's lines without a hunk", "b\n", "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n-b\n+B\n", nullptr,
     "a file without a hunk"},
    {"git's mode alone", "b\n", "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", "b\n", nullptr},
    {"no diff at all", "a\n", "just words\n", nullptr, "there is no diff in it"},
    {"both sides missing", "", "--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+a\n", nullptr, "both sides are /dev/null"},
    {"binary", "", "diff --git a/f b/f\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIc$~\n", nullptr, "a binary patch"},
    {"binary, told", "", "diff --git a/f b/f\nindex 1..2 100644\nBinary files a/f and b/f differ\n", nullptr, "a binary patch"},
    {"a link", "", "diff --git a/f b/f\nnew file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", nullptr,
     "a symbolic link"},
    {"a submodule", "", "diff --git a/f b/f\nnew file mode 160000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", nullptr,
     "a submodule"},
    {"another mode", "", "diff --git a/f b/f\nnew file mode 104755\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", nullptr,
     "the mode `104755`"},
};

TEST(Patch, EachCase) {
  for (const Case& row : kCases) {
    SCOPED_TRACE(row.name);
    const auto result = patched(row);
    if (row.after != nullptr) {
      ASSERT_TRUE(result) << result.error().line();
      EXPECT_EQ(*result, row.after);
    } else {
      ASSERT_FALSE(result) << *result;
      EXPECT_NE(result.error().line().find(row.why), std::string::npos) << result.error().line();
    }
  }
}

FilePatch header_of(std::string_view text) {
  auto patches = parse_patch(text);
  EXPECT_TRUE(patches) << patches.error().line();
  return patches ? patches->at(0) : FilePatch{};
}

TEST(Patch, NamesOfBothDialects) {
  EXPECT_EQ(header_of("--- a/x y\t2024-01-01\n+++ b/x y\t2024\n@@ -1 +1 @@\n-a\n+b\n").to, "x y");
  EXPECT_EQ(header_of("--- x\n+++ x\n@@ -1 +1 @@\n-a\n+b\n").to, "x") << "without prefixes";
  EXPECT_EQ(header_of("--- a/x.orig\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n").from, "x") << "a file under two names is the new one";
  EXPECT_EQ(header_of("--- \"a/\\303\\244\\t.txt\"\n+++ \"b/\\303\\244\\t.txt\"\n@@ -1 +1 @@\n-a\n+b\n").to, "\xC3\xA4\t.txt");
  const FilePatch renamed = header_of("diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n");
  EXPECT_EQ(renamed.from, "old");
  EXPECT_EQ(renamed.to, "new");
  EXPECT_TRUE(renamed.hunks.empty());
  EXPECT_EQ(header_of("diff --git a/e e b/e e\nnew file mode 100755\nindex 0..0\n").to, "e e") << "an empty file has no hunks";
  EXPECT_EQ(header_of("diff --git a/e b/e\nnew file mode 100755\n").new_mode, 0755U);
  EXPECT_FALSE(header_of("diff --git a/e b/e\nnew file mode 100755\n").from);
  EXPECT_FALSE(header_of("diff --git a/e b/e\ndeleted file mode 100644\n").to);
  EXPECT_TRUE(header_of("diff --git a/e b/f\ncopy from e\ncopy to f\n").copies);
}

TEST(Patch, ASeriesIsReadCommitByCommit) {
  const std::string diff = "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n";
  const std::string from = "From " + std::string(40, '0') + " Mon Sep 17 00:00:00 2001\n";
  const auto commits = [](const std::string& text) {
    std::vector<std::size_t> found;
    const auto files = parse_patch(text);
    for (const FilePatch& each : files.value()) found.push_back(each.commit);
    return found;
  };
  EXPECT_EQ(commits(from + diff + diff + "-- \n2.39\n\n" + from + diff), (std::vector<std::size_t>{1, 1, 2}));
  EXPECT_EQ(commits("commit " + std::string(64, 'f') + "\n" + diff), (std::vector<std::size_t>{1}));
  EXPECT_EQ(commits("From me\n" + diff + "commit message\n" + diff), (std::vector<std::size_t>{0, 0}));
}

TEST(Patch, BrokenQuotesAreNoNames) {
  for (const char* name : {"\"a", "\"a\\", "\"a\\9\"", "\"a\\12\"", "\"a\"b", "\"a\\777\""})
    EXPECT_FALSE(unquote_name(name)) << name;
  EXPECT_EQ(unquote_name("\"a\\\"b\\\\\\n\""), "a\"b\\\n");
  EXPECT_EQ(unquote_name("a\"b"), "a\"b");
}

// A hunk that fits nowhere in a file of lines that are all alike: the search ends, with a reason.
TEST(Patch, AHunkThatNearlyFitsEverywhereIsGivenUp) {
  std::string before, patch = "--- a/f\n+++ b/f\n@@ -1,4001 +1,4000 @@\n";
  for (int i = 0; i < 40000; ++i) before += "x\n";
  for (int i = 0; i < 4000; ++i) patch += " x\n";
  patch += "-y\n";
  const auto patches = parse_patch(patch);
  ASSERT_TRUE(patches);
  const auto result = apply_hunks(before, patches->at(0));
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().line().find("too many places"), std::string::npos) << result.error().line();
}

}  // namespace
}  // namespace belljar::tools
