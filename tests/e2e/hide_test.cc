// Names that a policy hides before anybody made them, and what a debugger and a shared repository need. Each refusal has a twin.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"
#include "support_run.h"

namespace belljar::test {
namespace {

using Hide = Run;

TEST_F(Hide, ANameThatIsNotThereIsNotMade) {
  const Outcome made =
      run_in({"--hide", "later", "-c", "mkdir later; echo x >later/x; mkdir box && mv box later; echo fine >other"});
  EXPECT_EQ(read_file(workspace_ / "other"), "fine\n") << made;
  EXPECT_FALSE(exists(workspace_ / "later")) << made;
  EXPECT_NE(made.err.find("Permission denied"), std::string::npos) << made;
  EXPECT_EQ(run_in({"-c", "mkdir later"}).exit_code, 0);
}

TEST_F(Hide, ANameThatTheHostMakesLaterIsNotRead) {
  Running running(command_line({"--hide", "later", "-c", "echo ready; while [ ! -e done ]; do sleep 0.05; done; cat later other"}),
                  {.stdin_is = Input::kNull, .cwd = workspace_.path()});
  ASSERT_TRUE(running.wait_for_output("ready"));
  workspace_.write("later", "HOST\n");
  workspace_.write("other", "OTHER\n");
  workspace_.write("done", "");
  const Outcome read = running.wait();
  EXPECT_EQ(read.out, "ready\nOTHER\n") << read;
}

TEST_F(Hide, TheReportSaysWhatGoesAroundIt) {
  const Outcome told = run_in({"--hide", "later", "--json", "--", "true"});
  const std::size_t at = told.out.find("\"filesystem.hidden_absent\"");
  ASSERT_NE(at, std::string::npos) << told;
  EXPECT_NE(told.out.find("partial", at), std::string::npos) << told;
  EXPECT_EQ(run_in({"--json", "--", "true"}).out.find("filesystem.hidden_absent"), std::string::npos);
}

TEST_F(Hide, ADirectoryMayGiveItsGroupOnAndAFileMayNot) {
  const Outcome made = run_in(
      {"-c", "mkdir -m 2775 a && install -d -m 2755 b && mkdir c && chmod g+s c && git init -q --shared=group repo; echo $?"});
  EXPECT_EQ(made.out, "0\n") << made;
  for (const char* dir : {"a", "b", "c", "repo/.git"}) {
    struct stat now{};
    ASSERT_EQ(::stat((workspace_ / dir).c_str(), &now), 0) << dir;
    EXPECT_NE(now.st_mode & S_ISGID, 0U) << dir;
  }
  const Outcome refused =
      run_in({"--json", "-c",
              "echo >f; chmod 2755 f; chmod u+s a; python3 -c 'import os; os.fchmod(os.open(\"f\", 0), 0o2755)'; "
              "ln -s f l; chmod 2755 l"});
  EXPECT_NE(refused.out.find("\"operation\":\"system-call\",\"target\":\"fchmodat\",\"rule\":\"seccomp\""), std::string::npos)
      << refused;
  for (const char* name : {"f", "a"}) {
    struct stat now{};
    ASSERT_EQ(::stat((workspace_ / name).c_str(), &now), 0) << name;
    EXPECT_EQ(now.st_mode & S_ISUID, 0U) << name;
    EXPECT_EQ((now.st_mode & S_ISGID) != 0, S_ISDIR(now.st_mode)) << name;
  }
}

// Needs ptrace, and as root of the host a broker that lends it: a word is written into a child that is traced, not into another.
constexpr char kPoke[] = R"(
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
word = ctypes.c_long(7)
traced = sys.argv[1] == 'traced'
child = os.fork()
if child == 0:
    if traced: libc.ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(word.value)
os.waitpid(child, os.WUNTRACED)
try:
    memory = os.open('/proc/%d/mem' % child, os.O_RDWR)
    os.pwrite(memory, (9).to_bytes(8, 'little'), ctypes.addressof(word))
except OSError as e: print(e.strerror)
if traced: libc.ptrace(17, child, 0, 0)
os.kill(child, signal.SIGCONT)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
)";

TEST_F(Hide, ADebuggerWritesToWhatItTraces) {
  BELLJAR_NEEDS(program("python3"));
  EXPECT_EQ(run_in({"--", "python3", "-c", kPoke, "traced"}).out, "9\n");
  // An ordinary user's broker asks as the user, whom the kernel may let in.
  if (is_root()) {
    EXPECT_EQ(run_in({"--", "python3", "-c", kPoke, "other"}).out, "Permission denied\n7\n");
  }
}

}  // namespace
}  // namespace belljar::test
