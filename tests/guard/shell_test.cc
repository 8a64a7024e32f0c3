#include "guard/shell.h"

#include <gtest/gtest.h>

namespace belljar::guard {
namespace {

// The parts, a line each, "line | inside"; then "? reason" for each place that cannot be judged.
std::string parts(std::string_view text) {
  ShellReader reader;
  const Script script = reader.read(text);
  std::string result;
  for (const Part& part : script.parts) {
    result += to_line(part);
    for (const std::string& label : part.inside) result += " | " + label;
    result += '\n';
  }
  for (const Unread& unread : script.unread) result += "? " + unread.reason + "\n";
  return result;
}

TEST(Shell, ListsPipelinesAndGroupsAreSplit) {
  EXPECT_EQ(parts("a && b || c; d & e | f"), "a\nb\nc\nd\ne\nf\n");
  EXPECT_EQ(parts("(a; b); { c; }; ! d"), "a\nb\nc\nd\n");
  EXPECT_EQ(parts("if a; then b; elif c; then d; else e; fi"), "a\nb\nc\nd\ne\n");
  EXPECT_EQ(parts("while a; do b; done"), "a | loop\nb | loop\n");
  EXPECT_EQ(parts("case $x in a) b;; *) c;; esac"), "b\nc\n");
  EXPECT_EQ(parts("f() { a; }; f"), "a | function f\nf\n");
  EXPECT_EQ(parts(""), "");
  EXPECT_EQ(parts("# only a comment"), "");
}

TEST(Shell, SubstitutionsAreParts) {
  EXPECT_EQ(parts("a $(b `c`)"), "c | substitution | substitution\nb ... | substitution\na ...\n");
  EXPECT_EQ(parts("a <(b) \"x $(c) y\""), "b | substitution\nc | substitution\na ... 'x  y'...\n");
  EXPECT_EQ(parts("x=$(b)"), "b | substitution\nx=...\n");
  EXPECT_EQ(parts("for i in $(b); do :; done"), "i=... | loop\nb | loop | substitution\n: | loop\n");
  EXPECT_EQ(parts("[ -n \"$(b)\" ] && [[ $(c) == x ]]"), "b | substitution\nc | substitution\n");
  EXPECT_EQ(parts("echo ${x:-$(b)} $((1+$(c)))"), "b | substitution\nc | substitution\necho ... ...\n");
}

TEST(Shell, QuotesAndEscapesAreTakenAway) {
  EXPECT_EQ(parts("r\"m\" su\\do 'a b' $'c\\x2fd' \"e\\\"f\""), "rm sudo 'a b' c/d 'e\"f'\n");
  EXPECT_EQ(parts("a \\\n b"), "a b\n");
  EXPECT_EQ(parts("git commit -m \"two\nlines\""), "git commit -m 'two\nlines'\n");
}

TEST(Shell, WordsBehindARedirectionBelongToTheCommand) {
  EXPECT_EQ(parts("rm >x -rf /"), "rm -rf / >x\n");
  EXPECT_EQ(parts(">x rm -rf /"), "rm -rf / >x\n");
  EXPECT_EQ(parts("a 2>&1 >/dev/null"), "a >&1 >/dev/null\n");
}

TEST(Shell, WrappersAreOpened) {
  EXPECT_EQ(parts("sh -c 'a; b'"), "sh -c 'a; b'\na | sh -c\nb | sh -c\n");
  EXPECT_EQ(parts("env -i A=1 nohup timeout -k 5 10s nice -n 3 a"),
            "env -i A=1 nohup timeout -k 5 10s nice -n 3 a\n"
            "A=1 nohup timeout -k 5 10s nice -n 3 a | env\n"
            "timeout -k 5 10s nice -n 3 a | env | nohup\n"
            "nice -n 3 a | env | nohup | timeout\n"
            "a | env | nohup | timeout | nice\n");
  EXPECT_EQ(parts("sudo -u root a -b"), "sudo -u root a -b\na -b | sudo\n");
  EXPECT_EQ(parts("xargs -n1 rm -f"), "xargs -n1 rm -f\nrm -f ... | xargs\n");
  EXPECT_EQ(parts("find . -exec a {} \\; -execdir b {} +"),
            "find . -exec a {} ';' -execdir b {} +\na {}... | find -exec\nb {}... | find -execdir\n");
  EXPECT_EQ(parts("eval 'a; b'"), "eval 'a; b'\na | eval\nb | eval\n");
  EXPECT_EQ(parts("bash <<'E'\na\nE\n"), "bash <<...\na | bash <<\n");
  EXPECT_EQ(parts("bash <<< 'a b'"), "bash <<<a b\na b | bash <<\n");
  EXPECT_EQ(parts("trap 'a' EXIT; alias b='c d'"), "trap a EXIT\na | trap\nalias 'b=c d'\nc d | alias b\n");
  EXPECT_EQ(parts("flock /x -c 'a'; watch -n 1 b c"), "flock /x -c a\na | flock -c\nwatch -n 1 b c\nb c | watch\n");
}

TEST(Shell, WhatIsOnlyKnownAtRunTimeIsUnread) {
  EXPECT_EQ(parts("eval \"$x\""), "eval ...\n? `eval` gets a text that only the run decides\n");
  EXPECT_EQ(parts("sh -c \"$x\""), "sh -c ...\n? `sh -c` gets a text that only the run decides\n");
  EXPECT_EQ(parts("sudo --new-option x a"), "sudo --new-option x a\n? `sudo` has an option that is not known here\n");
  EXPECT_EQ(parts("env -S 'a b'"), "env -S 'a b'\n? `env -S` splits a text into words by rules of its own\n");
}

TEST(Shell, WhatGrammarAndShellReadDifferentlyIsUnread) {
  for (const char* text : {"a\rb", "a\fb", "a\vb"}) EXPECT_EQ(parts(text), "? the text holds a control character\n");
  EXPECT_EQ(parts("a\\ b"), "'a b'\n");
  EXPECT_NE(parts("a (").find("? "), std::string::npos);
  EXPECT_NE(parts("x=(a b").find("? "), std::string::npos);
  EXPECT_NE(parts("cat <<A <<B\n1\nA\n2\nB\n").find("? "), std::string::npos);
  EXPECT_NE(parts("a 3<>x").find("? "), std::string::npos);
  EXPECT_NE(parts("a\xC2\xA0-b").find("a\xC2\xA0-b"), std::string::npos) << "a no-break space is a letter to the shell";
}

TEST(Shell, HereDocumentsEndWhereTheShellEndsThem) {
  EXPECT_EQ(parts("cat <<E\nx $(a)\nE\nb"), "a | substitution\ncat <<...\nb\n");
  EXPECT_EQ(parts("cat <<'E'\nx $(a)\nE\nb"), "cat <<...\nb\n");
  EXPECT_EQ(parts("cat <<E | sh && b\nx\nE\n"), "cat <<...\nsh\nb\n");
}

TEST(Shell, HugeDeepAndBrokenTextNeitherCrashesNorHangs) {
  const auto repeat = [](std::string_view piece, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += piece;
    return text;
  };
  EXPECT_EQ(parts(repeat("a;", 1U << 19)), "? the text is longer than 128 KiB\n");
  EXPECT_EQ(parts(std::string("a\0b", 3)), "? the text holds a control character\n");
  EXPECT_EQ(parts("a \xFF\xFE"), "? the text is not UTF-8\n");
  EXPECT_NE(parts("echo " + repeat("$(", 10'000) + "a" + repeat(")", 10'000)).find("? "), std::string::npos);
  for (const char* piece : {"$(", "(", "{ ", "`", "\"$(", "if ", "<<E ", "a|", "${", "$((", "[[ ", "f() "})
    EXPECT_NE(parts(repeat(piece, 5'000)).find("? "), std::string::npos) << piece;
  EXPECT_NE(parts(repeat("a;", 5'000)).find("? "), std::string::npos);
}

TEST(Shell, WrappersInsideWrappersEnd) {
  std::string text = "a";
  for (int i = 0; i < 12; ++i) text = "env " + text;
  EXPECT_NE(parts(text).find("? commands start commands deeper than is judged"), std::string::npos);
}

}  // namespace
}  // namespace belljar::guard
