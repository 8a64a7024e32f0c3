#include "shell/script.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include <csignal>
#include <cstddef>
#include <string>
#include <string_view>

namespace belljar::shell {
namespace {

// The commands, a line each, "line | inside"; then "? reason" for each place that cannot be judged.
std::string commands(std::string_view text) {
  ShellReader reader;
  const Script script = reader.read(text);
  std::string result;
  for (const SimpleCommand& command : script.commands) {
    result += to_line(command);
    for (const std::string& label : command.inside) result += " | " + label;
    result += '\n';
  }
  for (const Unread& unread : script.unread) result += "? " + unread.reason + "\n";
  return result;
}

TEST(Shell, ListsPipelinesAndGroupsAreSplit) {
  EXPECT_EQ(commands("a && b || c; d & e | f"), "a\nb\nc\nd\ne\nf\n");
  EXPECT_EQ(commands("(a; b); { c; }; ! d"), "a\nb\nc\nd\n");
  EXPECT_EQ(commands("if a; then b; elif c; then d; else e; fi"), "a\nb\nc\nd\ne\n");
  EXPECT_EQ(commands("while a; do b; done"), "a | loop\nb | loop\n");
  EXPECT_EQ(commands("case $x in a) b;; *) c;; esac"), "b\nc\n");
  EXPECT_EQ(commands("f() { a; }; f"), "a | function f\nf\n");
  EXPECT_EQ(commands(""), "");
  EXPECT_EQ(commands("# only a comment"), "");
}

TEST(Shell, SubstitutionsAreParts) {
  EXPECT_EQ(commands("a $(b `c`)"), "c | substitution | substitution\nb `c` | substitution\na $(b `c`)\n");
  EXPECT_EQ(commands("a <(b) \"x $(c) y\""), "b | substitution\nc | substitution\na <(b) \"x $(c) y\"\n");
  EXPECT_EQ(commands("x=$(b)"), "b | substitution\nx=$(b)\n");
  EXPECT_EQ(commands("for i in $(b); do :; done"), "i=... | loop\nb | loop | substitution\n: | loop\n");
  EXPECT_EQ(commands("[ -n \"$(b)\" ] && [[ $(c) == x ]]"), "b | substitution\nc | substitution\n");
  EXPECT_EQ(
      commands("echo ${x:-$(b)} $((1+$(c)))"),
      "b | substitution\nc | substitution\necho ${x:-$(b)} $((1+$(c)))\n? the shell evaluates a text that only the run decides\n");
}

bool is_unread(std::string_view text) { return commands(text).find("? ") != std::string::npos; }

TEST(Shell, SubstitutionsThatTheGrammarTakesForLettersAreUnread) {
  for (const char* text :
       {"cat <<E\nx `cmd` y\nE\n", "echo ${a:-`cmd`}", "echo \"${a:-`cmd`}\"", "echo ${a-b `cmd`}", "echo ${q^^`cmd`}",
        "echo ${a/`cmd`/b}", "echo $((${q:-`cmd`}))", "echo ${q:-<(cmd)}", "echo \"${q:-'$(cmd)'}\"", "echo ${a#`cmd`}",
        "echo ${a%%$(cmd)}", "echo `echo \\`cmd\\``", "echo `echo \\$(cmd)`", "echo \"$\\\n(cmd)\"", "cat <<E\n$((cmd))\nE\n",
        "[ -n x <(cmd) ]", "[[ a < b<(cmd) ]]"})
    EXPECT_TRUE(is_unread(text)) << text;
  // The twins: letters to the shell, too, and substitutions that the tree shows.
  for (const char* text : {"cat <<'E'\nx `cmd` $(cmd)\nE\n", "cat <<E\nx \\`cmd\\` $y it's\nE\n",
                           "echo ${a:-b} ${a%/*} ${a##*.} \"${a:+b c}\"", "echo '`cmd`' $'$(cmd)' \"\\$(x) \\`y\\`\"", "a # `cmd`",
                           "echo \"x=>(y) <(z)\"", "cat <<E\nx=>(y) <(z)\nE\n", "a `b` $(c) <(d) \"`e` $(f)\"", "grep 'a$' \"b$\""})
    EXPECT_FALSE(is_unread(text)) << text;
}

// Wherever it is planted, a command that the shell would run is in the list, or the text is unread.
TEST(Shell, APlantedCommandIsNeverPassedBy) {
  constexpr const char* kTexts[] = {
      "echo a \"b c\" ${d:-e} ${f#g} ${h/i/j} ${k^^l} $((1+2)) m{n,o}p >q <r",
      "cat <<E\na ${b:-c} \"d\" $((1))\nE\n",
      "cat <<< \"a b\"; x=(c [1]=d \"e\"); y[1]=2; export z=3",
      "[[ a == b && c =~ d ]] || [ e = f ]; ((1 < 2))",
      "case a in b|\"c\") d;; *) e;; esac",
      "for i in a \"b\"; do c $i; done; while d; do e; done; for ((i=0;i<3;i++)); do f; done",
      "f() { a; } >b; (c; d) | e && ! g; if h; then i; fi",
      "echo $(a b) $(c \"d\") <(e) ${f[1]} ${g:1:2} \"${h}\"",
  };
  for (const std::string_view text : kTexts) {
    for (const char* planted : {"`marker`", "$(marker)", "${z:-`marker`}", "${z#$(marker)}", "\"$(marker)\""}) {
      for (std::size_t at = 0; at <= text.size(); ++at) {
        std::string whole(text);
        whole.insert(at, planted);
        const std::string read = commands(whole);
        EXPECT_TRUE(read.find("? ") != std::string::npos || read.find("marker |") != std::string::npos) << whole << '\n' << read;
      }
    }
  }
}

TEST(Shell, WhatArithmeticWouldEvaluateIsUnread) {
  for (const char* text : {"RANDOM='a[$(b)]'",
                           "for OPTIND in 'a[$(b)]'; do c; done",
                           "REPLY=0; read <f; echo $((REPLY))",
                           "BASH_REMATCH=0; [[ $(c) =~ .* ]]; echo $((BASH_REMATCH))",
                           "i=0; echo $(($i$(b)))",
                           "x=1; echo $(($x + y))",
                           "[[ 'a[$(b)]' -eq 1 ]]",
                           "[[ -n $y && ( $x -gt 1 ) ]]",
                           "[[ -v $x ]]",
                           "test -v 'a[$(b)]'",
                           "[ -v 'a[$(b)]' ]",
                           "[ $x ]",
                           "test -n $x",
                           "x=-v; [ \"$x\" 'a[$(b)]' ]",
                           "command test -v 'a[$(b)]'",
                           "x='a[$(b)]'; echo $((x))",
                           "echo $(($x))",
                           "echo $[x]",
                           "((x))",
                           "if ((x)); then a; fi",
                           "for ((i=x;i<1;i++)); do a; done",
                           "echo ${y:x}",
                           "echo ${y:1:x}",
                           "echo ${y[x]}",
                           "y[x]=1",
                           "y=([x]=1)",
                           "echo ${x@P}",
                           "echo \"${x@P}\"",
                           "echo ${!x}",
                           "echo ${x@P\\\n}",
                           "x+=1; echo $((x))",
                           "cat <<E\n${!x}\nE\n",
                           "cat {a['$(b)']}</dev/null",
                           "echo $((a[1]))",
                           "i=0; i=$x; echo $((i))",
                           "i=0; read i; echo $((i))",
                           "i=0; printf -v i %s $x; echo $((i))",
                           "i=0; eval 'i=\"a[\\$(b)]\"'; echo $((i))",
                           "i=0; declare -n i=j; echo $((i))",
                           "i=0; : ${i:=$x}; echo $((i))",
                           "a=0; i=1; echo $((a$i))",
                           "for i in $x; do echo $((i)); done",
                           "i=0; sh -c 'echo $((i))'"})
    EXPECT_TRUE(is_unread(text)) << text;
  for (const char* text :
       {"echo $((1 + 2 * 3)) $((0x1F))", "i=5; echo $((i+1)) $(($i)) $[i]", "n=0; while read -r line; do n=$((n+1)); done",
        "for ((i=0;i<10;i++)); do a $i; done", "for i in 1 2 {3..5}; do echo $((i)) ${a[i]} ${y:i}; done",
        "i=0; while [ $i -lt 3 ]; do i=$(($i + 1)); done", "RANDOM=1; echo $RANDOM", "echo $(($# - 1))", "cat <<-E\n\ta\n\tE\n",
        "i=0; while [ $i -lt 3 ]; do ((i++)); done", "i=0; if ((i < 3)); then a; fi", "[ $? -eq 0 ] && [ $# -lt 2 ]",
        "[[ $# -gt ${#y} ]]", "rc=$?; [[ $rc -ne 0 ]]",
        "echo ${y:1:2} ${y: -1} ${y[0]} ${y[@]} ${#y[@]} \"${!y[@]}\" ${!y@} ${x@Q}", "y[1]=2; y=([1]=a b)",
        "[ -n \"$x\" ] && [ \"$x\" = y ] && test -f a", "[[ -v x ]] || [ -v x ]", "echo ${x}>/dev/null; { a; }>/dev/null"})
    EXPECT_FALSE(is_unread(text)) << text << '\n' << commands(text);
}

TEST(Shell, QuotesAndEscapesAreTakenAway) {
  EXPECT_EQ(commands("r\"m\" su\\do 'a b' $'c\\x2fd' \"e\\\"f\""), "rm sudo 'a b' c/d 'e\"f'\n");
  EXPECT_EQ(commands("a \\\n b"), "a b\n");
  EXPECT_EQ(commands("git commit -m \"two\nlines\""), "git commit -m 'two\nlines'\n");
}

TEST(Shell, WordsBehindARedirectionBelongToTheCommand) {
  EXPECT_EQ(commands("rm >x -rf /"), "rm -rf / >x\n");
  EXPECT_EQ(commands(">x rm -rf /"), "rm -rf / >x\n");
  EXPECT_EQ(commands("a 2>&1 >/dev/null"), "a >&1 >/dev/null\n");
}

TEST(Shell, WrappersAreOpened) {
  EXPECT_EQ(commands("sh -c 'a; b'"), "sh -c 'a; b'\na | sh -c\nb | sh -c\n");
  EXPECT_EQ(commands("env -i A=1 nohup timeout -k 5 10s nice -n 3 a"),
            "env -i A=1 nohup timeout -k 5 10s nice -n 3 a\n"
            "A=1 nohup timeout -k 5 10s nice -n 3 a | env\n"
            "timeout -k 5 10s nice -n 3 a | env | nohup\n"
            "nice -n 3 a | env | nohup | timeout\n"
            "a | env | nohup | timeout | nice\n");
  EXPECT_EQ(commands("sudo -u root a -b"), "sudo -u root a -b\na -b | sudo\n");
  EXPECT_EQ(commands("xargs -n1 rm -f"), "xargs -n1 rm -f\nrm -f ... | xargs\n");
  EXPECT_EQ(commands("find . -exec a {} \\; -execdir b {} +"),
            "find . -exec a {} ';' -execdir b {} +\na {}... | find -exec\nb {}... | find -execdir\n");
  EXPECT_EQ(commands("eval 'a; b'"), "eval 'a; b'\na | eval\nb | eval\n");
  EXPECT_EQ(commands("bash <<'E'\na\nE\n"), "bash <<...\na | bash <<\n");
  EXPECT_EQ(commands("bash <<< 'a b'"), "bash <<<a b\na b | bash <<\n");
  EXPECT_EQ(commands("trap 'a' EXIT; alias b='c d'"), "trap a EXIT\na | trap\nalias 'b=c d'\nc d | alias b\n");
  EXPECT_EQ(commands("flock /x -c 'a'; watch -n 1 b c"), "flock /x -c a\na | flock -c\nwatch -n 1 b c\nb c | watch\n");
}

TEST(Shell, OptionsOfAShellAreSkipped) {
  for (const char* text : {"bash -eo pipefail -c 'a b'", "bash -o pipefail -c 'a b'", "bash -O extglob -c 'a b'",
                           "bash +x -c 'a b'", "bash -c -- 'a b'", "bash -c -e 'a b'", "bash --norc -c 'a b'"})
    EXPECT_NE(commands(text).find("\na b | bash -c\n"), std::string::npos) << text << '\n' << commands(text);
  for (const char* text :
       {"bash +x <<< 'a b'", "bash -eo pipefail <<< 'a b'", ". /dev/stdin <<< 'a b'", "source /dev/fd/0 <<< 'a b'"})
    EXPECT_NE(commands(text).find("\na b | "), std::string::npos) << text << '\n' << commands(text);
  EXPECT_TRUE(is_unread("bash --rcfile x -c 'a'"));
  EXPECT_EQ(commands("bash -e script.sh -c a"), "bash -e script.sh -c a\n") << "a script file: the rest is its own";
  EXPECT_EQ(commands("env - a b; trap -- 'c d' EXIT; eval -- e"),
            "env - a b\na b | env\ntrap -- 'c d' EXIT\nc d | trap\neval -- e\ne | eval\n");
  EXPECT_EQ(commands("trap - EXIT; . ./file; mapfile -t a"), "trap - EXIT\n. ./file\nmapfile -t a\n");
}

TEST(Shell, ProgramsThatStartOthersByRulesOfTheirOwnAreUnread) {
  for (const char* text : {"coproc N { a; }", "time ! a", "time { a; }", "source <(a)", ". \"$x\"", "mapfile -C 'a' b", "unshare a",
                           "setpriv a", "nsenter a", "script -c a", "parallel a", "systemd-run a", "runuser -u n -- a", "prlimit a",
                           "setarch a", "/lib64/ld-linux-x86-64.so.2 /bin/a"})
    EXPECT_TRUE(is_unread(text)) << text;
  EXPECT_EQ(commands("toybox a b; time -p a"), "toybox a b\na b | toybox\ntime -p a\na | time\n");
}

TEST(Shell, TextThatAnotherShellReadsDifferentlyIsUnread) {
  for (const char* text : {"sh <<'E'\n[[ x || a ]]\nE\n", "env sh -c 'a &> b c'", "flock f -c '((a))'",
                           "sh -c 'trap \"[[ a ]]\" EXIT'", "ksh <<< a", "zsh -c a"})
    EXPECT_TRUE(is_unread(text)) << text;
  for (const char* text :
       {"bash <<'E'\n[[ x || a ]]\nE\n", "sh -c 'a > b c'", "sh -c \"bash -c '[[ a ]]'\"", "zsh a.zsh", "[[ a ]] &> b"})
    EXPECT_FALSE(is_unread(text)) << text;
}

TEST(Shell, AWordIsJoinedAcrossAnEscapedNewlineOrUnread) {
  for (const char* text : {"tou\\\nch x", "echo <\\\n(a)", "echo $\\\n(a)", "i\\\nf a; then b; fi", "{\\\na; }", "x=\\\ny"})
    EXPECT_TRUE(is_unread(text)) << text;
  EXPECT_EQ(commands("a b \\\n  c &&\\\nd\\\n| e"), "a b c\nd\ne\n");
}

TEST(Shell, WhatIsOnlyKnownAtRunTimeIsUnread) {
  EXPECT_EQ(commands("eval \"$x\""), "eval \"$x\"\n? `eval` gets a text that only the run decides\n");
  EXPECT_EQ(commands("sh -c \"$x\""), "sh -c \"$x\"\n? `sh -c` gets a text that only the run decides\n");
  EXPECT_EQ(commands("sudo --new-option x a"), "sudo --new-option x a\n? `sudo` has an option that is not known here\n");
  EXPECT_EQ(commands("env -S 'a b'"), "env -S 'a b'\n? `env -S` splits a text into words by rules of its own\n");
}

TEST(Shell, WhatGrammarAndShellReadDifferentlyIsUnread) {
  for (const char* text : {"a\rb", "a\fb", "a\vb"}) EXPECT_EQ(commands(text), "? the text holds a control character\n");
  EXPECT_EQ(commands("a\\ b"), "'a b'\n");
  EXPECT_NE(commands("a (").find("? "), std::string::npos);
  EXPECT_NE(commands("x=(a b").find("? "), std::string::npos);
  EXPECT_NE(commands("cat <<A <<B\n1\nA\n2\nB\n").find("? "), std::string::npos);
  EXPECT_NE(commands("a 3<>x").find("? "), std::string::npos);
  EXPECT_NE(commands("a\xC2\xA0-b").find("a\xC2\xA0-b"), std::string::npos) << "a no-break space is a letter to the shell";
}

TEST(Shell, HereDocumentsEndWhereTheShellEndsThem) {
  EXPECT_EQ(commands("cat <<E\nx $(a)\nE\nb"), "a | substitution\ncat <<...\nb\n");
  EXPECT_EQ(commands("cat <<'E'\nx $(a)\nE\nb"), "cat <<...\nb\n");
  EXPECT_EQ(commands("cat <<E | sh && b\nx\nE\n"), "cat <<...\nsh\nb\n");
}

TEST(Shell, HugeDeepAndBrokenTextNeitherCrashesNorHangs) {
  const auto repeat = [](std::string_view piece, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += piece;
    return text;
  };
  EXPECT_EQ(commands(repeat("a;", 1U << 19)), "? the text is 64 KiB long or longer\n");
  EXPECT_EQ(commands(std::string("a\0b", 3)), "? the text holds a control character\n");
  EXPECT_EQ(commands("a \xFF\xFE"), "? the text is not UTF-8\n");
  EXPECT_NE(commands("echo " + repeat("$(", 10'000) + "a" + repeat(")", 10'000)).find("? "), std::string::npos);
  for (const char* piece : {"$(", "(", "{ ", "`", "\"$(", "if ", "<<E ", "a|", "${", "$((", "[[ ", "f() "})
    EXPECT_NE(commands(repeat(piece, 5'000)).find("? "), std::string::npos) << piece;
  EXPECT_NE(commands(repeat("a;", 5'000)).find("? "), std::string::npos);
  // Each took seconds or worse: a field asked for at every sibling, columns counted anew, more children than 16 bits can count.
  for (const std::string& text : {"print('" + repeat("{a,", 20'000) + "')", "for i in " + repeat("a ", 30'000) + "; do b; done",
                                  "cat <<E\n" + repeat("a b ", 15'000) + "\nE\n", repeat("((", 60'000)})
    EXPECT_TRUE(is_unread(text)) << text.substr(0, 20);
  EXPECT_FALSE(is_unread("cat <<E\n" + repeat("a line\n", 5'000) + "E\n"));
  EXPECT_FALSE(is_unread("echo" + repeat(" word", 1'500)));
}

// The thread is held up for longer than a text may take, as on a machine where others are busy: that is not the text's fault.
TEST(Shell, AStallIsNotTheTextsFault) {
  static volatile std::sig_atomic_t stalls = 0;
  std::string text;
  for (int i = 0; i < 1'200; ++i) text += "echo \"$a\" | grep -c 'b' > c\n";
  stalls = 0;
  struct sigaction stall{};
  stall.sa_handler = [](int) {
    stalls = stalls + 1;
    const timespec longer{.tv_sec = 1, .tv_nsec = 100'000'000};
    ::nanosleep(&longer, nullptr);
  };
  struct sigaction before{};
  ASSERT_EQ(::sigaction(SIGVTALRM, &stall, &before), 0);
  const itimerval once{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 1'000}};  // of this process's own time
  ASSERT_EQ(::setitimer(ITIMER_VIRTUAL, &once, nullptr), 0);
  const std::string unread = commands(text);
  const itimerval none{};
  ::setitimer(ITIMER_VIRTUAL, &none, nullptr);
  ::sigaction(SIGVTALRM, &before, nullptr);
  EXPECT_EQ(stalls, 1);
  EXPECT_EQ(unread.find("? "), std::string::npos) << unread.substr(unread.find("? "));
}

TEST(Shell, WrappersInsideWrappersEnd) {
  std::string text = "a";
  for (int i = 0; i < 12; ++i) text = "env " + text;
  EXPECT_NE(commands(text).find("? commands start commands deeper than is judged"), std::string::npos);
}

}  // namespace
}  // namespace belljar::shell
