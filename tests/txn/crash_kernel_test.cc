// A commit that is killed at any point leaves the workspace, once recover() has run, wholly before or wholly after.
//
// The points are the system calls that change anything: a tracer counts them and kills with SIGKILL before the call or right after
// it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <map>
#include <string>

#include "base/format.h"
#include "belljar/txn.h"
#include "support/identity.h"
#include "support/must.h"
#include "support/temp_dir.h"
#include "txn/support_layers.h"

namespace belljar::test {
namespace {

using Tree = std::map<std::string, std::string>;

#ifdef __x86_64__

bool changes_something(const user_regs_struct& regs) {
  switch (regs.orig_rax) {
    case SYS_openat:
      return (regs.rdx & (O_CREAT | O_TRUNC)) != 0;
    case SYS_openat2:
    case SYS_close:
    case SYS_read:
    case SYS_pread64:
      return false;
    case SYS_write:
    case SYS_pwrite64:
    case SYS_mkdirat:
    case SYS_mknodat:
    case SYS_linkat:
    case SYS_symlinkat:
    case SYS_unlinkat:
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_chmod:
    case SYS_fchmod:
    case SYS_fchmodat:
    case SYS_fchown:
    case SYS_fchownat:
    case SYS_ftruncate:
    case SYS_fsync:
    case SYS_syncfs:
    case SYS_utimensat:
    case SYS_fsetxattr:
    case SYS_fremovexattr:
    case SYS_lremovexattr:
      return true;
    default:
      return false;
  }
}

enum class Where { kBefore, kAfter };
struct Ended {
  int calls = 0;  // that change anything, seen
  bool killed = false;
  int status = 0;  // what `work` returned, when it was not killed
};

// Runs `work` in a process of its own and kills it at the call with that number, counted from 0; -1: never.
Ended run_killed(const std::function<int()>& work, int at, Where where) {
  const pid_t pid = ::fork();
  must(pid);
  if (pid == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) < 0) ::_exit(99);
    ::raise(SIGSTOP);
    ::_exit(work());
  }
  int status = 0;
  must(::waitpid(pid, &status, 0));
  must(static_cast<int>(::ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)));
  Ended ended;
  bool inside = false;
  bool counted = false;
  while (true) {
    if (::ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr) < 0 || ::waitpid(pid, &status, 0) < 0) break;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      return ended;
    }
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80)) continue;
    inside = !inside;
    if (inside) {
      user_regs_struct regs{};
      must(static_cast<int>(::ptrace(PTRACE_GETREGS, pid, nullptr, &regs)));
      counted = changes_something(regs);
    }
    const bool here = counted && ended.calls == at && inside == (where == Where::kBefore);
    if (here) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      ended.killed = true;
      return ended;
    }
    if (counted && !inside) ++ended.calls;
  }
  std::abort();
}

// Everything that a commit can do: files added, changed, merged, removed, replaced by a directory and back, whole trees, modes,
// links, hard links, a directory that its owner may not write to, and new directories: those that go as they are, with marks of
// overlayfs, closed ones and links in them, and those that are made anew for a whiteout or for a link to outside.
constexpr int kMany = 16;

void fill(const Workbench& bench) {
  for (int i = 0; i < kMany; ++i) bench.write(format("mod{}", i), format("old {}\n", i));
  for (int i = 0; i < kMany; ++i) bench.write(format("gone{}", i), format("bye {}\n", i));
  bench.write("merge", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  bench.write("tree/a", "a\n");
  bench.write("tree/b/c", "c\n");
  bench.write("to_dir", "file\n");
  bench.write("to_file/x", "x\n");
  bench.write("mode", "m\n");
  bench.write("opaque/old", "o\n");
  bench.write("closed/f", "old\n");
  must(::chmod(bench.ws("closed").c_str(), 0555));
}

void change(const Workbench& bench) {
  bench.in_layer([&](const std::string& up) {
    for (int i = 0; i < kMany; ++i) Workbench::put(up, format("mod{}", i), format("new {}\n", i));
    for (int i = 0; i < kMany; ++i) Workbench::white_out(up, format("gone{}", i));
    for (int i = 0; i < kMany; ++i) Workbench::put(up, format("fresh/d{}/f{}", i % 3, i), std::string(1000, 'f'));
    Workbench::put(up, "merge", "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    Workbench::white_out(up, "tree");
    Workbench::put(up, "to_dir/inner", "i\n");
    Workbench::put(up, "to_file", "now a file\n");
    Workbench::put(up, "mode", "m\n", 0755);
    Workbench::make_dir(up, "opaque", true);
    Workbench::put(up, "opaque/new", "n\n");
    Workbench::put(up, "closed/f", "new\n");
    must(::chmod((up + "/closed").c_str(), 0555));
    must(::symlink("mod0", (up + "/link").c_str()));
    Workbench::put(up, "whole/a/b/f", "f\n");
    Workbench::put(up, "whole/a/marked", "m\n");
    must(::setxattr((up + "/whole/a/marked").c_str(), "user.overlay.origin", "", 0, 0));
    must(::symlink("a", (up + "/whole/link").c_str()));
    must(::link((up + "/whole/a/b/f").c_str(), (up + "/whole/same").c_str()));
    Workbench::put(up, "whole_shut/f", "f\n", 0444);
    must(::chmod((up + "/whole_shut").c_str(), 0555));
    Workbench::put(up, "holed/f", "f\n");
    Workbench::white_out(up, "holed/gone");
    Workbench::put(up, "linked_out/f", "f\n");
    must(::link((up + "/linked_out/f").c_str(), (up + "/outside").c_str()));
    Workbench::put(up, "opaque/below/new", "n\n");
    Workbench::put(up, "hard1", "linked\n");
    must(::link((up + "/hard1").c_str(), (up + "/hard2").c_str()));
  });
  bench.write("merge", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
}

int commit_here(const txn::Place& place) {
  const auto done = txn::commit(place, {});
  return done && done->applied ? 0 : 1;
}

int recover_here(const txn::Place& place) { return txn::recover(place) ? 0 : 1; }

struct Trees {
  Tree before, after;
  int calls = 0;
};

Trees rehearse(const std::string& base, const std::string& state_base) {
  const Workbench bench(base, state_base);
  fill(bench);
  change(bench);
  Trees trees;
  trees.before = bench.tree();
  const Ended ended = run_killed([&] { return commit_here(bench.place()); }, -1, Where::kBefore);
  EXPECT_EQ(ended.status, 0);
  trees.calls = ended.calls;
  trees.after = bench.tree();
  EXPECT_NE(trees.before, trees.after);
  return trees;
}

std::string difference(const Tree& now, const Tree& wanted) {
  std::string text;
  for (const auto& [path, value] : now) {
    if (const auto other = wanted.find(path); other == wanted.end() || other->second != value) text += "\n+ " + path + " " + value;
  }
  for (const auto& [path, value] : wanted) {
    if (const auto other = now.find(path); other == now.end() || other->second != value) text += "\n- " + path + " " + value;
  }
  return text;
}

// Inode numbers, which describe_tree() does not tell, are no promise; everything else is.
void expect_whole(const Workbench& bench, const Trees& trees, const std::string& what) {
  const Tree now = bench.tree();
  const bool before = now == trees.before;
  const bool after = now == trees.after;
  EXPECT_TRUE(before || after) << what << difference(now, trees.before) << "\nand from what was to come"
                               << difference(now, trees.after);
  if (before) {
    // Nothing of the transaction is lost either: the same commit again.
    const auto again = txn::commit(bench.place(), {});
    EXPECT_TRUE(again && again->applied) << what << (again ? "" : again.error().line());
    if (again) {
      for (const txn::Refused& one : again->conflicts) ADD_FAILURE() << what << ": " << one.path << ": " << one.reason;
    }
    EXPECT_EQ(difference(bench.tree(), trees.after), "") << what;
  }
  const auto all = txn::list(bench.place());
  for (const txn::Info& one : *all) EXPECT_FALSE(one.interrupted) << what;
}

int kill_everywhere(const std::string& base, const std::string& state_base, int first, int stride) {
  const Trees trees = rehearse(base, state_base);
  int points = 0;
  for (int at = first; at < trees.calls; at += stride) {
    for (const Where where : {Where::kBefore, Where::kAfter}) {
      const Workbench bench(base, state_base);
      fill(bench);
      change(bench);
      const std::string what = format("call {} of {}, {}", at, trees.calls, where == Where::kBefore ? "before" : "after");
      EXPECT_TRUE(run_killed([&] { return commit_here(bench.place()); }, at, where).killed) << what;
      const auto recovered = txn::recover(bench.place());
      EXPECT_TRUE(recovered) << what << (recovered ? "" : recovered.error().line());
      expect_whole(bench, trees, what);
      ++points;
      if (testing::Test::HasFailure()) return points;
    }
  }
  return points;
}

// Every point; two tests, so that they run side by side.
TEST(Crash, AKillAtAnyEvenPointLeavesAllOrNothing) { EXPECT_GE(kill_everywhere("/dev/shm", "/dev/shm", 0, 2), 100); }
TEST(Crash, AKillAtAnyOddPointLeavesAllOrNothing) { EXPECT_GE(kill_everywhere("/dev/shm", "/dev/shm", 1, 2), 100); }

TEST(Crash, SoItDoesWhenLayersLieOnAnotherFileSystem) {
  const bool swapped = on_overlay("/var/tmp");  // which holds no layers then
  EXPECT_GE(kill_everywhere(swapped ? "/var/tmp" : "/dev/shm", swapped ? "/dev/shm" : "/var/tmp", 0, 16), 12);
}

TEST(Crash, SoItDoesOnADisk) { EXPECT_GE(kill_everywhere("/var/tmp", "/var/tmp", 0, 20), 10); }

TEST(Crash, ARecoveryThatIsKilledIsRecoveredFrom) {
  const Trees trees = rehearse("/dev/shm", "/dev/shm");
  for (int at = 3; at < trees.calls; at += 17) {
    for (int second = 0; second < 60; second += 7) {
      const Workbench bench("/dev/shm");
      fill(bench);
      change(bench);
      ASSERT_TRUE(run_killed([&] { return commit_here(bench.place()); }, at, Where::kAfter).killed);
      run_killed([&] { return recover_here(bench.place()); }, second, Where::kAfter);
      const auto recovered = txn::recover(bench.place());
      ASSERT_TRUE(recovered) << recovered.error().line();
      expect_whole(bench, trees, format("killed at {}, then at {}", at, second));
    }
  }
}

// After the mark `done` nothing is left but to note what was committed: an edit in that gap is the host's.
TEST(Crash, AnEditBetweenAPartialCommitAndItsRecoveryStays) {
  const std::string lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
  const std::string merged = "one\n2\n3\n4\n5\n6\n7\n8\nnine\n";
  const std::string edited = "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n";
  int edits = 0;
  for (int at = 0;; ++at) {
    const Workbench bench("/dev/shm");
    bench.write("merge", lines);
    bench.in_layer([&](const std::string& up) {
      Workbench::put(up, "merge", "one" + lines.substr(1));
      Workbench::put(up, "rest", "r\n");
    });
    bench.write("merge", lines.substr(0, 16) + "nine\n");
    const auto part = [&] {
      const auto done = txn::commit(bench.place(), {.paths = {"merge"}});
      return done && done->applied ? 0 : 1;
    };
    if (!run_killed(part, at, Where::kAfter).killed) break;
    // Only where it is in place: before, the edit would be one of those that a commit is undone for.
    const bool in_place = read_file(bench.ws("merge")) == merged;
    if (in_place) bench.write("merge", edited), ++edits;
    const auto recovered = txn::recover(bench.place());
    ASSERT_TRUE(recovered) << at << recovered.error().line();
    const auto rest = txn::commit(bench.place(), {});
    ASSERT_TRUE(rest && rest->applied) << at;
    EXPECT_EQ(read_file(bench.ws("merge")), in_place ? edited : merged) << at;
    EXPECT_EQ(read_file(bench.ws("rest")), "r\n") << at;
  }
  EXPECT_GE(edits, 5);
}

#endif

}  // namespace
}  // namespace belljar::test
