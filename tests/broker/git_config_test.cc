// Our reading of a configuration file against git's own, on files made of the pieces that either could trip over.
#include "broker/git_config.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::broker {
namespace {

using namespace std::string_literals;

constexpr std::array<std::string_view, 44> kPieces = {"[a]",
                                                      "[a.b]",
                                                      "[A \"s\"]",
                                                      "[a \"x\\\"y\"]",
                                                      "[a\t \"\"]",
                                                      "[a \"b\"",
                                                      "[",
                                                      "]",
                                                      "key",
                                                      "Key-2",
                                                      "=",
                                                      " = ",
                                                      "value",
                                                      "\n",
                                                      "\n",
                                                      "\n",
                                                      "\r\n",
                                                      "\r",
                                                      "\\\n",
                                                      "\\\r\n",
                                                      "\\",
                                                      "\\n",
                                                      "\\t",
                                                      "\\b",
                                                      "\\\\",
                                                      "\\\"",
                                                      "\\x",
                                                      "\"",
                                                      "\"quoted # text\"",
                                                      "#",
                                                      ";",
                                                      " ",
                                                      "\t",
                                                      "\v",
                                                      "\xEF\xBB\xBF",
                                                      "\xEF\xBB",
                                                      "k=v",
                                                      "[core]\n",
                                                      "\n\thooksPath = x",
                                                      "é",
                                                      "!sh",
                                                      "1",
                                                      "-",
                                                      "."};

std::vector<std::string> fixed_files() {
  return {"",
          "[core]\n\tbare = false\n",
          "\xEF\xBB\xBF[core]\nbare",
          "[core]bare=true # comment\n",
          "[core]\nhooks\\\nPath = x\n",
          "[core]\npager = a\\\nb\n",
          "[core]\npager = \"a ; b\" c  ; d\n",
          "# [core]\\\npager = x\n",
          "[core] # x\npager = y\n",
          "[core]\n# comment \\\npager = z\n",
          "[core]pager=\"a\nb\"\n",
          "[core]\npager = a   \n",
          "[core]\npager =   a \t b\n",
          "[core]\npager\n = a\n",
          "[core] pager=a",
          "[core]\r\npager = a\r\n",
          "[core]\rpager = a\rb\r",
          "key = value\n",
          "[a \"b\\c\"]\nk\n",
          "[a \"b]c\"]\nk\n",
          "[a \"b\"]k=1[c]l=2\n",
          "[a][b]k=1\n",
          "[a.B.C]k=1\n",
          "[a \"B\"]K=1\n",
          "[a \"b\" ]k=1\n",
          "[ a]k=1\n",
          "[a]\n1k=1\n",
          "[a]\nk_=1\n",
          "[a]\nk = \\\"\n",
          "[a]\nk = \\",
          "[a \"b\\",
          "[a]\nk = \"\\\n\"\n"};
}

std::vector<std::string> random_files(std::size_t count) {
  std::mt19937 random(20240607);  // NOLINT: the same files each time
  std::vector<std::string> files;
  for (std::size_t i = 0; i < count; ++i) {
    std::string text = i % 3 == 0 ? "" : "[core]\n";
    for (std::size_t length = random() % 14; length > 0; --length) text += kPieces[random() % kPieces.size()];
    files.push_back(text);
  }
  return files;
}

// What `git config --list -z` prints for these entries.
std::string listed(const GitConfig& config) {
  std::string text;
  for (const GitConfigEntry& entry : config.entries) {
    text += entry.key;
    if (entry.value) text += "\n" + *entry.value;
    text.push_back('\0');
  }
  return text;
}

TEST(GitConfig, ReadsAsGitDoes) {
  if (test::run({"git", "--version"}).exit_code != 0) GTEST_SKIP() << "no git here";
  std::vector<std::string> files = fixed_files();
  for (std::string& file : random_files(1200)) files.push_back(std::move(file));
  const test::TempDir dir;
  for (std::size_t i = 0; i < files.size(); ++i) dir.write("c" + std::to_string(i), files[i]);
  const test::Outcome all =
      test::run({"/bin/sh", "-c",
                 "i=0; while [ $i -lt $0 ]; do git config --file c$i --list -z >o$i 2>/dev/null; echo $? >r$i; i=$((i+1)); done",
                 std::to_string(files.size())},
                {.cwd = dir.path(), .env = {{"GIT_CONFIG_NOSYSTEM", "1"}, {"HOME", dir.path()}}});
  ASSERT_EQ(all.exit_code, 0) << all;
  std::size_t whole = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const GitConfig ours = parse_git_config(files[i]);
    const bool broken = test::read_file(dir / ("r" + std::to_string(i))) != "0\n";
    EXPECT_EQ(ours.broken, broken) << testing::PrintToString(files[i]);
    if (broken) continue;
    ++whole;
    EXPECT_EQ(listed(ours), test::read_file(dir / ("o" + std::to_string(i)))) << testing::PrintToString(files[i]);
  }
  EXPECT_GT(whole, files.size() / 10) << "too few of the files are good ones";
}

TEST(GitConfig, KeepsWhatCameBeforeAnError) {
  const GitConfig config = parse_git_config("[core]\npager = x\n?");
  EXPECT_TRUE(config.broken);
  ASSERT_EQ(config.entries.size(), 1U);
  EXPECT_EQ(config.entries[0].key, "core.pager");
}

// One megabyte that would become a hundred gigabytes of keys.
TEST(GitConfig, ALongSectionIsNotHeldOncePerName) {
  const auto text = [](std::size_t section, std::size_t names) {
    std::string result = "[remote \"" + std::string(section, 'x') + "\"]\n";
    for (std::size_t i = 0; i < names; ++i) result += "url\n";
    return result;
  };
  const GitConfig bomb = parse_git_config(text(300'000, 100'000));
  EXPECT_TRUE(bomb.excessive);
  EXPECT_LT(bomb.entries.size(), 100U);
  const GitConfig many = parse_git_config(text(20, 100'000));
  EXPECT_FALSE(many.excessive);
  EXPECT_EQ(many.entries.size(), 100'000U);
}

TEST(GitConfig, KeepsNulBytes) {
  const GitConfig config = parse_git_config("[a]\nk = x\0y\n"s);
  ASSERT_EQ(config.entries.size(), 1U);
  EXPECT_EQ(config.entries[0].value, "x\0y"s);
}

}  // namespace
}  // namespace belljar::broker
