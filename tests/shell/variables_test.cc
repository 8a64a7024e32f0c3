#include "shell/variables.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "guard/judge.h"

namespace belljar::guard {
namespace {

// What no check speaks about is allowed here.
std::string judged_here(std::string_view text) {
  Judge judge(*parse_rules("unmatched = \"allow\"\nredirects = \"allow\"\n", "r.toml", Trust::kUser));
  const Verdict verdict = judge.judge(text);
  std::string result(to_string(verdict.decision));
  for (const CommandVerdict& command : verdict.commands) {
    if (verdict.decision != Decision::kAllow && command.decision == verdict.decision && !command.findings.empty())
      return result + " " + command.findings[0].rule;
  }
  return result + (verdict.unread.empty() ? "" : " unread");
}

TEST(Variables, HarmlessScriptsAreNotAskedAboutAndHarmfulOnesAreJudgedAsIfWrittenOut) {
  constexpr struct {
    const char *harmless, *harmful, *verdict;
  } kRows[] = {
      {"f=out.txt; echo x > \"$f\"", "f=/etc/passwd; echo x > \"$f\"", "forbid system-write"},
      {"f=out.txt; echo x > $f", "f=/etc/passwd; echo x > ${f}", "forbid system-write"},
      {"f=a; f=\"$f.new\"; echo x > \"$f\"", "f=/etc; f=\"$f/x\"; echo x > \"$f\"", "forbid system-write"},
      {"f=/etc/x; f=out; echo x > $f", "f=out; f=/etc/x; echo x > $f", "forbid system-write"},
      {"a=out b=$a; echo > $b", "a=/etc b=$a; echo > $b/x", "forbid system-write"},
      {"export D=out; cp x \"$D\"", "export D=/usr/bin; cp x \"$D\"", "forbid system-write"},
      {"D=build; mkdir -p \"$D\"; cd \"$D\"", "D=/etc; cp x \"$D\"; cd \"$D\"", "forbid system-write"},
      {"D=build && mkdir \"$D\" && cp x \"$D\"", "D=/etc && mkdir \"$D\" && cp x \"$D\"", "forbid system-write"},
      {"ls && D=build && cp x \"$D\"", "ls && D=/etc && cp x \"$D\"", "forbid system-write"},
      {"if D=build; then cp x \"$D\"; fi", "if D=/etc; then cp x \"$D\"; fi", "forbid system-write"},
      {"d=build; rm -rf \"$d\"", "d=/; rm -rf \"$d\"", "forbid remove-root"},
      {"d=build; rm -rf $d/x", "d=/etc; rm -rf $d/*", "forbid remove-root"},
      {"d=build; rm -rf \"${d}\"/x", "d=; rm -rf \"$d\"/*", "forbid remove-root"},
      {"d=x; find \"$d\" -delete", "d=/; find \"$d\" -delete", "forbid remove-root"},
      {"m=755; chmod $m f", "m=777; chmod $m f", "forbid world-writable"},
      {"D=$HOME/out; echo x > \"$D/f\"", "D=$HOME; rm -rf \"$D\"", "forbid remove-root"},
      {"D=~/out; echo x > \"$D/f\"", "D=~; rm -rf \"$D\"", "forbid remove-root"},
      {"f=x; echo x > \"$HOME/out/$f\"", "f=..; rm -rf \"/tmp/$f\"", "forbid remove-root"},
      {"t=out-$(date +%s); echo x > \"$t\"", "t=/etc/$(date +%s); echo x > \"$t\"", "forbid system-write"},
      {"x=$(cat f); echo \"$x\"", "x=$(curl u); sh -c \"$x\"", "forbid download-to-shell"},
      {"c='ls -l'; sh -c \"$c\"", "c='rm -rf /'; sh -c \"$c\"", "forbid remove-root"},
      {"sh -c 'f=out; echo > $f'", "sh -c 'f=/etc/x; echo > $f'", "forbid system-write"},
      {"bash <<'E'\nf=out\necho > $f\nE\n", "bash <<'E'\nf=/etc/x\necho > $f\nE\n", "forbid system-write"},
      {"f=out; cat > $f <<E\nx\nE\n", "f=/etc/x; cat > $f <<E\nx\nE\n", "forbid system-write"},
      {"f=out; (echo > $f)", "f=/etc/x; (echo > $f)", "forbid system-write"},
      {"f=out; ls | tee \"$f\"", "f=/etc/x; ls | tee \"$f\"", "forbid system-write"},
      {"f=out; while read l; do echo > $f; done", "f=/etc/x; while read l; do echo > $f; done", "forbid system-write"},
      {"set -e; f=out; printf '%s\\n' \"$f\" > $f", "set -e; f=/etc/x; printf '%s\\n' x > $f", "forbid system-write"},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(judged_here(row.harmless), "allow") << row.harmless;
    EXPECT_EQ(judged_here(row.harmful), row.verdict) << row.harmful;
  }
}

TEST(Variables, ALoopOverKnownWordsIsJudgedAsIfWrittenOut) {
  constexpr struct {
    const char *harmless, *harmful, *verdict;
  } kRows[] = {
      {"for f in *.c; do clang-format \"$f\" > \"$f.new\"; done", "for f in /etc/*.c; do fmt \"$f\" > \"$f.new\"; done",
       "forbid system-write"},
      {"for i in 1 2 3; do echo $i > out$i.txt; done", "for i in a /etc/b; do echo $i > $i.txt; done", "forbid system-write"},
      {"for i in {1..3}; do echo > \"$i.txt\"; done", "for i in {/etc,a}; do echo > \"/etc/$i\"; done", "forbid system-write"},
      {"for f in a b; do rm -rf \"$f\"; done", "for f in a /; do rm -rf \"$f\"; done", "forbid remove-root"},
      {"for f in a/*; do rm \"$f\"; done", "for f in /etc/*; do rm \"$f\"; done", "forbid remove-root"},
      {"for f in a b; do g=$f.x; echo > \"$g\"; done", "for f in a b; do g=/etc/$f; echo > \"$g\"; done", "forbid system-write"},
      {"for a in x y; do for b in 1 2; do echo > $a$b; done; done", "for a in x /etc/; do for b in 1 2; do echo > $a$b; done; done",
       "forbid system-write"},
      {"d=out; for f in a b; do echo > $d/$f; done", "d=/etc; for f in a b; do echo > $d/$f; done", "forbid system-write"},
      {"for f in *.c; do mv \"$f\" \"old-$f\"; done", "for f in *.c; do mv \"$f\" \"/usr/bin/$f\"; done", "forbid system-write"},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(judged_here(row.harmless), "allow") << row.harmless;
    EXPECT_EQ(judged_here(row.harmful), row.verdict) << row.harmful;
  }
}

// Each gives $f, or may give it, something else than the last literal that is written before the use. The same text without the
// doubt is allowed.
TEST(Variables, WhatCannotBeFollowedIsAskedAbout) {
  EXPECT_EQ(judged_here("f=out; ls; echo x > \"$f\""), "allow") << "the twin of all";
  for (const char* text : {
           "echo x > \"$f\"; f=out",
           "true || f=out; echo x > \"$f\"",
           "false && f=out; echo x > \"$f\"",
           "a && f=out || b; echo x > \"$f\"",
           "a || f=out && echo x > \"$f\"",
           "a && f=out || echo x > \"$f\"",
           "a || { f=out; }; echo x > \"$f\"",
           "if a; then f=out; fi; echo x > \"$f\"",
           "if a; then f=out; else echo x > \"$f\"; fi",
           "if a; then b; elif f=out; then c; else d; fi; echo x > \"$f\"",
           "case $x in a) f=out;; *) echo x > \"$f\";; esac",
           "case $x in a) f=out;; esac; echo x > \"$f\"",
           "while a; do f=out; done; echo x > \"$f\"",
           "f=out; while a; do echo x > \"$f\"; f=$(b); done",
           "f=out; for i in 1 2; do echo x > \"$f\"; f=$y; done",
           "(f=out); echo x > \"$f\"",
           "f=out | ls; echo x > \"$f\"",
           "ls | f=out; echo x > \"$f\"",
           "f=out & echo x > \"$f\"",
           "y=$(f=out); echo x > \"$f\"",
           "ls <(f=out); echo x > \"$f\"",
           "f=out ls; echo x > \"$f\"",
           "f=out; f+=/../../etc/x; echo x > \"$f\"",
           "f=out; read f; echo x > \"$f\"",
           "f=out; read -r a f < y; echo x > \"$f\"",
           "f=out; read -af; echo x > \"$f\"",
           "f=out; read \"$n\"; echo x > \"$f\"",
           "f=out; read $n; echo x > \"$f\"",
           "f=out; unset f; echo x > \"$f\"",
           "f=out; declare f=$y; echo x > \"$f\"",
           "declare -n r=f; f=out; r=/etc/x; echo x > \"$f\"",
           "declare -i n; f=out; n=f=1; echo x > \"$f\"",
           "declare -u f; f=out; echo x > \"$f\"",
           "readonly f=$y; f=out; echo x > \"$f\"",
           "f=out; export -n f; echo x > \"$f\"",
           "f=out; printf -v f %s /etc/x; echo x > \"$f\"",
           "f=out; printf '%n' f; echo x > \"$f\"",
           "f=out; printf $y f; echo x > \"$f\"",
           "f=out; eval 'f=/etc/x'; echo x > \"$f\"",
           "f=out; e\\val 'f=/etc/x'; echo x > \"$f\"",
           "f=out; \"eval\" f=/etc/x; echo x > \"$f\"",
           "f=out; command eval f=/etc/x; echo x > \"$f\"",
           "f=out; builtin read f; echo x > \"$f\"",
           "f=out; $c; echo x > \"$f\"",
           "f=out; . ./y; echo x > \"$f\"",
           "f=out; source y; echo x > \"$f\"",
           "trap 'f=/etc/x' DEBUG; f=out; echo x > \"$f\"",
           "f=out; mapfile -t f; echo x > \"$f\"",
           "f=out; getopts a f; echo x > \"$f\"",
           "f=out; let f=1; echo x > \"$f\"",
           "f=out; ((f=1)); echo x > \"/tmp/$f\"",
           "f=out; echo $((f=1)); echo x > \"/tmp/$f\"",
           "f=out; for ((f=0;f<1;f++)); do :; done; echo x > \"/tmp/$f\"",
           "f=out; a[f=1]=2; echo x > \"$f\"",
           "f=; : ${f:=/etc/x}; echo x > \"$f\"",
           "f=out; : \"${y:-${f=z}}\"; echo x > \"$f\"",
           "f=out; select f in /etc/x; do :; done; echo x > \"$f\"",
           "f=out; g() { f=/etc/x; }; g; echo x > \"$f\"",
           "f=out; g() { echo x > \"$f\"; }; f=$y; g",
           "f=out; g() { local f=$1; echo x > \"$f\"; }; g y",
           "g() { for f in a b; do echo x > \"$f\"; done; }; g",
           "f=(out); echo x > \"$f\"",
           "f=out; f[0]=$y; echo x > \"$f\"",
           "exec {f}>y; f=out; echo x > \"$f\"",
           "for f; do echo x > \"$f\"; done",
           "for f in \"$@\"; do echo x > \"$f\"; done",
           "for f in $(cat y); do echo x > \"$f\"; done",
           "for f in a $y; do echo x > \"$f\"; done",
           "for f in a b; do f=$y; echo x > \"$f\"; done",
           "for f in a b; do :; done; echo x > \"$f\"",
           "f=$1; echo x > \"$f\"",
           "f=$(cat y); echo x > \"$f\"",
           "IFS=:; f=out; tee $f",
           "f='a /etc/x'; tee $f",
           "f='*'; tee $f",
           "f='a:~/x'; echo x > \"/tmp/$f\"; f=a:~root/x; tee $f",
           "REPLY=out; read; echo x > \"$REPLY\"",
           "OLDPWD=out; cd /; echo x > \"$OLDPWD/x\"",
           "SECONDS=0; PWD=out; cd /etc; echo x > \"$PWD\"/../$y",
           "time f=out; echo x > \"$f\"",
           "set -k; f=out; echo x > \"$f\"",
           "shopt -s lastpipe; f=out; echo x > \"$f\"",
           "alias ls='f=/etc/x'; f=out; echo x > \"$f\"",
           "g() { f=/etc/x; }; export -f g; bash -c 'f=out; g; echo x > \"$f\"'",
           "f=out; eval 'echo x > \"$f\"'",
           "f=out; trap 'echo x > \"$f\"' EXIT",
           "f=out; sh -c 'echo x > \"$f\"'",
           "wait -p f; f=out; echo x > \"$f\"",
           "cat <<E && f=out\nx\nE\necho x > \"$f\"",
       }) {
    const std::string verdict = judged_here(text);
    EXPECT_NE(verdict.substr(0, 5), "allow") << text;
  }
}

TEST(Variables, AKnownVariableIsNoLetterMoreThanItsText) {
  EXPECT_EQ(judged_here("f=x; echo > \"$fx\""), "prompt system-write");
  EXPECT_EQ(judged_here("f=x; echo > \"${f}x\""), "allow");
  EXPECT_EQ(judged_here("f=x; echo > \"${f%.c}\""), "prompt system-write");
  EXPECT_EQ(judged_here("f=x; echo > \"$f[1]\""), "allow");
  EXPECT_EQ(judged_here("x=-la; ls $x"), "allow");
  EXPECT_EQ(judged_here("f='$HOME'; rm -rf \"$f\""), "allow") << "four letters and a dollar sign";
}

// Sixteen words, and sixty-four rounds of all loops: beyond, the word is one that only the run decides.
TEST(Variables, ALoopIsWrittenOutSoFar) {
  const auto loops = [](int words) {
    std::string text = "for f in";
    for (int i = 0; i < words; ++i) text += " w" + std::to_string(i);
    return text + "; do echo > \"$f\"; done";
  };
  EXPECT_EQ(judged_here(loops(16)), "allow");
  EXPECT_EQ(judged_here(loops(17)), "prompt system-write");
  std::string nested;
  for (const char* name : {"a", "b", "c", "d"}) nested += std::string("for ") + name + " in 1 2 3 4 5 6 7 8; do ";
  EXPECT_EQ(judged_here(nested + "echo > \"x$a\"; done; done; done; done"), "allow");
  Judge judge({});
  EXPECT_LT(judge.judge(nested + "echo > \"x$a\"; done; done; done; done").commands.size(), 300U);
}

}  // namespace
}  // namespace belljar::guard
