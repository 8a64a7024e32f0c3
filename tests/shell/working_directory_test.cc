#include "shell/working_directory.h"

#include <gtest/gtest.h>

#include <string>

#include "guard/support_rows.h"

namespace belljar::guard {
namespace {

TEST(WorkingDirectory, ACdInsideABranchIsRemembered) {
  expect_rows({
      {"if test -d x; then cd /etc; fi; tee x", "prompt system-write", "if test -d x; then cd out; fi; tee x"},
      {"if test -d x; then cd /etc; else cd /usr; fi; tee x", "prompt system-write",
       "if test -d x; then cd /etc; else cd /usr; fi; cd /tmp; tee x"},
      {"if a; then cd /etc; elif b; then cd /etc; else cd /etc; fi; tee x", "forbid system-write",
       "if a; then cd /etc; elif b; then cd /etc; else cd /etc; fi; cat x"},
      {"if a; then :; elif b; then cd /; fi; rm -rf etc", "prompt remove-root",
       "if a; then :; elif b; then cd /; fi; rm -rf /tmp/x"},
      {"if a; then :; else cd /; fi; rm -rf etc", "prompt remove-root", "if a; then :; else cd /tmp; fi; rm -rf etc"},
      {"if cd /etc; then tee x; fi", "forbid system-write", "if cd /tmp; then tee x; fi"},
      {"if cd /etc; then :; fi; tee x", "forbid system-write", "if cd /tmp; then :; fi; tee x"},
      {"case $1 in a) cd /etc;; b) ;; esac; tee x", "prompt system-write", "case $1 in a) cd out;; b) ;; esac; tee x"},
      {"case $1 in a) cd /etc;; *) cd /etc;; esac; tee x", "forbid system-write",
       "case $1 in a) cd /etc;; *) cd /etc;; esac; cat x"},
      {"case $1 in a) cd /etc;& b) tee x;; esac", "prompt system-write", "case $1 in a) cd /etc;; b) tee x;; esac"},
      {"{ if a; then cd /etc; fi; } 2>err; tee x", "prompt system-write", "(if a; then cd /etc; fi); tee x"},
      {"cd /; if a; then cd /tmp; fi; rm -rf etc", "prompt remove-root", "cd /; if a; then cd /tmp; else cd /tmp; fi; rm -rf etc"},
  });
}

TEST(WorkingDirectory, ABranchBeginsWhereItsTestsEnded) {
  expect_rows({
      {"if a; then tee x; else cd /etc; tee x; fi", "forbid system-write", "if a; then cd /etc; else tee x; fi"},
      {"if a; then :; elif cd /etc; then tee x; fi", "forbid system-write", "if a; then cd /etc; elif b; then tee x; fi"},
      {"case $1 in a) :;; b) cd /etc; tee x;; esac", "forbid system-write", "case $1 in a) cd /etc;; b) tee x;; esac"},
  });
}

TEST(WorkingDirectory, ABranchThatLeavesTheShellLeadsNowhere) {
  expect_rows({
      {"if a; then cd /; exit 1 & fi; rm -rf etc", "prompt remove-root", "if a; then cd /; exit 1; fi; rm -rf etc"},
      {"if a; then cd /; exit 1; else cd /; fi; rm -rf etc", "forbid remove-root",
       "if a; then cd /; exit 1; else cd /tmp; fi; rm -rf etc"},
      {"case $1 in a) cd /; exit;; b) cd /;; esac; rm -rf etc", "prompt remove-root",
       "case $1 in a) cd /; exit;; esac; rm -rf etc"},
  });
}

TEST(WorkingDirectory, ACdInsideALoopIsRemembered) {
  expect_rows({
      {"for i in a b; do cd /etc; done; tee x", "forbid system-write", "for i in a b; do cd /tmp; done; tee x"},
      {"for i in $(ls); do cd /etc; done; tee x", "prompt system-write", "for i in $(ls); do cd /tmp; done; tee x"},
      {"while read -r l; do cd /etc; done < list; tee x", "prompt system-write", "while read -r l; do cd /tmp; done < list; tee x"},
      {"while a; do tee x; cd /etc; done", "prompt system-write", "while a; do cat x; cd /etc; done"},
      {"for d in $(ls); do tee x; cd /etc; done", "prompt system-write", "for d in $(ls); do (cd /etc); tee x; done"},
      {"for i in a b; do if b; then cd /etc; break; fi; cd /tmp; done; tee x", "prompt system-write",
       "for i in a b; do if b; then cd /tmp; break; fi; cd /etc; done; cd /tmp; tee x"},
      {"while a; do cd /etc; continue; done; tee x", "prompt system-write", "while a; do cd out; continue; done; tee x"},
      {"while a; do while b; do cd /etc; break 2; done; cd /tmp; done; tee x", "prompt system-write",
       "while a; do while b; do cd /tmp; break 2; done; cd /tmp; done; tee x"},
      {"until cd /etc; do :; done; tee x", "forbid system-write", "until cd /tmp; do :; done; tee x"},
      {"cd /home/me/p; while ! test -e x; do cd ..; done; tee etc/x", "prompt unread",
       "cd /home/me/p; for d in $(ls); do cd \"$d\"; make; cd ..; done; tee x"},
      {"cd /; for i in a b; do cd nosuch; done; rm -rf etc", "prompt remove-root",
       "cd /tmp; for i in a b; do cd nosuch; done; rm -rf etc"},
  });
}

TEST(WorkingDirectory, ACdThatTheShellItselfRunsIsFollowed) {
  expect_rows({
      {"command cd /etc; tee x", "forbid system-write", "command -v cd; tee x"},
      {"builtin cd -- /etc && tee x", "forbid system-write", "builtin cd -- /tmp && tee x"},
      {"eval 'cd /etc'; tee x", "forbid system-write", "eval 'cd /tmp'; tee x"},
      {"eval cd /etc; tee x", "forbid system-write", "sh -c 'cd /etc'; tee x"},
  });
}

TEST(WorkingDirectory, AReturnLeavesAFunctionFromWhereItStands) {
  expect_rows({
      {"cd /; f() { [ -d /x ] || return 1; cd /tmp; }; f; rm -rf etc", "prompt remove-root",
       "cd out; f() { [ -d /x ] || return 1; cd /tmp; }; f; rm -rf etc"},
      {"cd /; f() { if a; then return; fi; cd /tmp; }; f; rm -rf etc", "prompt remove-root",
       "cd /; f() { if a; then return; fi; cd /tmp; }; f && cd /tmp; rm -rf x"},
      {"cd /; f() { return; cd /tmp; }; f; rm -rf etc", "prompt remove-root", "f() { return; cd /tmp; }; f; rm -rf etc"},
      {"f() { if true; then cd /etc; return; fi; cd /tmp; }; f; tee passwd", "prompt system-write",
       "f() { if true; then cd out; return; fi; cd /tmp; }; f; tee passwd"},
      {"f() { if true; then cd /etc; eval return; fi; cd /tmp; }; f; tee passwd", "prompt system-write",
       "f() { if true; then cd /etc; fi; cd /tmp; }; f; tee passwd"},
      {"f() { a && cd /etc || return; cd /tmp; }; f; tee passwd", "prompt system-write",
       "f() { a && cd out || return; cd /tmp; }; f; tee passwd"},
  });
}

TEST(WorkingDirectory, OnlyAPlainExitLeaves) {
  expect_rows({
      {"cd /etc; if false; then cd /tmp; else return; fi; tee passwd", "prompt system-write",
       "cd /etc; if false; then cd /tmp; else exit; fi; tee passwd"},
      {"cd /etc; if false; then cd /tmp; else exit | cat; fi; tee passwd", "prompt system-write",
       "cd /etc; if false; then cd /tmp; else exit 1; fi; tee passwd"},
      {"cd /etc; if false; then cd /tmp; else exit >/nonexist/x; fi; tee passwd", "prompt system-write",
       "cd /etc; if false; then cd /tmp; else exit $?; fi; tee passwd"},
      {"cd /etc; if false; then cd /tmp; else exit 1 2; fi; tee passwd", "prompt system-write",
       "cd /etc; if false; then cd /tmp; else echo sys.exit; exit 2; fi; tee passwd"},
      {"exit() { :; }; cd /etc; if false; then cd /tmp; else exit; fi; tee passwd", "prompt system-write",
       "my_exit() { :; }; cd /etc; if false; then cd /tmp; else cd /tmp; fi; tee passwd"},
      {"function exit { :; }; cd /; cd x || exit; rm -rf etc", "prompt remove-root", "cd /; cd x || exit; rm -rf etc"},
      {"cd /; cd x || return; rm -rf etc", "prompt remove-root", "f() { cd /; cd x || return; rm -rf etc; }; f"},
  });
}

TEST(WorkingDirectory, AnEvalMovesOnlyTheShellThatRunsIt) {
  expect_rows({
      {"cd /etc; env eval 'cd /tmp'; tee passwd", "forbid system-write", "cd /etc; eval 'cd /tmp'; tee passwd"},
      {"cd /etc; nohup eval 'cd /tmp'; tee passwd", "forbid system-write", "cd /etc; command eval 'cd /tmp'; tee passwd"},
      {"cd /etc; timeout 1 eval 'cd /tmp'; tee passwd", "forbid system-write", "cd /etc; builtin eval 'cd /tmp'; tee passwd"},
      {"cd /etc; nice eval 'cd /tmp'; tee passwd", "forbid system-write", "cd /etc; time eval 'cd /tmp'; tee passwd"},
      {"cd /etc; flock x eval 'cd /tmp'; tee passwd", "forbid system-write", "cd out; flock x eval 'cd /tmp'; tee passwd"},
      {"cd /etc; find . -exec eval 'cd /tmp' \\;; tee passwd", "forbid system-write",
       "cd out; find . -exec eval 'cd /tmp' \\;; tee passwd"},
      {"cd /; cd x && eval true; rm -rf etc", "prompt remove-root", "cd /; cd x && eval true && rm -rf etc"},
      {"while true; do cd /etc; eval break; cd /tmp; done; tee passwd", "prompt system-write",
       "while true; do cd out; eval break; cd /tmp; done; tee passwd"},
  });
}

TEST(WorkingDirectory, AFunctionMayNotBeDefined) {
  expect_rows({
      {"cd /etc; if false; then f() { cd /tmp; }; fi; f; tee passwd", "prompt system-write",
       "cd /etc; if false; then f() { cd /tmp; }; fi; f && tee passwd"},
      {"cd /etc; (f() { cd /tmp; }); f; tee passwd", "prompt system-write", "cd out; (f() { cd /tmp; }); f; tee passwd"},
      {"cd /etc; false && f() { cd /tmp; }; f; tee passwd", "prompt system-write",
       "cd out; false && f() { cd /tmp; }; f; tee passwd"},
      {"f() { cd /tmp; }; cd /etc; unset -f f; f; tee passwd", "prompt system-write",
       "f() { cd /tmp; }; cd /etc; unset -f f; f; cd /tmp; tee passwd"},
  });
}

TEST(WorkingDirectory, AFunctionThatIsDefinedLaterMovesItsCaller) {
  expect_rows({
      {"main() { go; tee passwd; }; go() { cd /etc; }; main", "forbid system-write",
       "main() { go; tee passwd; }; go() { cd /tmp; }; main"},
      {"f() { go; tee passwd; go() { cd /etc; }; }; f; f", "forbid system-write",
       "f() { go; tee passwd; go() { cd /tmp; }; }; f; f"},
      {"f() { cd /etc; }; time f; tee passwd", "forbid system-write", "f() { cd /etc; }; command f; tee passwd"},
  });
  std::string calls = "f() { g() { :; }; tee x; };";
  for (int i = 0; i < 200; ++i) calls += "f;";
  EXPECT_EQ(judged(calls), "allow") << "the same body is one body";
}

TEST(WorkingDirectory, ABuiltinIsFoundBehindCommandAndWithItsOptions) {
  expect_rows({
      {"while true; do cd /etc; command break; cd /tmp; done; tee passwd", "prompt system-write",
       "while true; do cd out; command break; cd /tmp; done; tee passwd"},
      {"cd /; f() { builtin return; cd /tmp; }; f; rm -rf etc", "prompt remove-root",
       "cd out; f() { builtin return; cd /tmp; }; f; rm -rf etc"},
      {"cd /etc; pushd -n /tmp; tee passwd", "forbid system-write", "cd /etc; pushd /tmp; tee passwd"},
      {"cd /etc; cd /tmp < nosuch; tee passwd", "prompt system-write", "cd /etc; pushd /tmp > /dev/null 2>&1; tee passwd"},
  });
}

TEST(WorkingDirectory, AFunctionIsJudgedWhereItIsCalledToo) {
  expect_rows({
      {"f() { tee x; }; cd /etc; f", "forbid system-write", "f() { tee x; }; cd /tmp; f"},
      {"f() { cd /etc; }; f; tee x", "forbid system-write", "f() { cd /etc; }; tee x"},
      {"f() { if a; then cd /etc; fi; }; f; tee x", "prompt system-write", "f() { if a; then (cd /etc); fi; }; f; tee x"},
      {"f() { g; }; g() { tee x; }; cd /etc; f", "forbid system-write", "f() { g; }; g() { cat x; }; cd /etc; f"},
      {"f() { sh; }; curl u | f", "forbid download-to-shell", "f() { cat; }; curl u | f"},
      {"f() { cd /tmp; }; f() { cd /etc; }; f; tee x", "prompt system-write", "f() { cd /tmp; }; f() { cd out; }; f; tee x"},
      {"f() { tee x; }; cd /tmp; f; cd /etc; f", "forbid system-write", "f() { tee x; }; cd /etc; (cd /tmp; f)"},
  });
  std::string calls = "f() { tee x; };";
  for (int i = 0; i < 200; ++i) calls += "cd /tmp/" + std::to_string(i) + " && f;";
  EXPECT_EQ(judged(calls), "prompt unread") << "bounded";
  calls = "f() { tee x; };";
  for (int i = 0; i < 200; ++i) calls += "cd /tmp/a && f;";
  EXPECT_EQ(judged(calls), "allow") << "the same place is read once";
}

}  // namespace
}  // namespace belljar::guard
