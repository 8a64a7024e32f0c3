// The trail under kill -9 and on a disk that is really full.
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <string>
#include <vector>

#include "audit/support_trail.h"
#include "support/as_user.h"
#include "support/identity.h"
#include "support/must.h"

namespace belljar {
namespace {

using test::must;
using test::open_trail;
using test::TempDir;
using test::verified;

AuditFields sample(std::uint64_t i) {
  return AuditFields().number("i", static_cast<std::int64_t>(i)).text("text", std::string(i % 3000, 'x'));
}

// Appends until it is killed, and says after each append which record is in.
[[noreturn]] void append_for_ever(const std::string& path, int tell) {
  auto trail = AuditTrail::open(path, {.sync = AuditSync::kNever, .rotate_at = Bytes{50'000}});
  if (!trail) ::_exit(3);
  for (std::uint64_t i = 0;; ++i) {
    const auto sequence = trail->append("exec", sample(i));
    if (!sequence || ::write(tell, &*sequence, sizeof *sequence) != sizeof *sequence) ::_exit(4);
  }
}

TEST(AuditTrail, KillAtRandomPointsLosesNothingThatWasAcknowledged) {
  const TempDir dir;
  const std::string path = dir / "audit.jsonl";
  std::mt19937 random(20261121);  // NOLINT(bugprone-random-generator-seed): repeatable
  for (int round = 0; round < 40; ++round) {
    int ends[2];
    must(::pipe(ends));
    std::vector<pid_t> writers;
    for (int i = 0; i < 2; ++i) {
      writers.push_back(::fork());
      if (writers.back() == 0) append_for_ever(path, ends[1]);
    }
    ::close(ends[1]);
    std::uint64_t acknowledged = 0, sequence = 0;
    const auto wait_for = 1 + random() % 60;
    for (std::uint64_t i = 0; i < wait_for && ::read(ends[0], &sequence, sizeof sequence) == sizeof sequence; ++i)
      acknowledged = std::max(acknowledged, sequence);
    ::usleep(static_cast<useconds_t>(random() % 2000));  // any point will do
    for (const pid_t writer : writers) ::kill(writer, SIGKILL);
    for (const pid_t writer : writers) ::waitpid(writer, nullptr, 0);
    while (::read(ends[0], &sequence, sizeof sequence) == sizeof sequence) acknowledged = std::max(acknowledged, sequence);
    ::close(ends[0]);
    const AuditVerification found = verified(path);
    ASSERT_TRUE(found.intact()) << found.problems[0].file << ": " << found.problems[0].what;
    ASSERT_GE(found.head.sequence, acknowledged) << "round " << round;
  }
  EXPECT_GT(verified(path).files, 1U);
}

// A server that forks its workers has them write to the trail that it opened.
TEST(AuditTrail, AForkedProcessGoesOnWithTheOneThatWasOpen) {
  constexpr int kWorkers = 4, kEach = 200;
  const TempDir dir;
  const std::string path = dir / "audit.jsonl";
  AuditTrail trail = open_trail(path, {.sync = AuditSync::kNever, .rotate_at = Bytes{50'000}});
  ASSERT_TRUE(trail.append("exec", sample(1)));
  const auto append_all = [&] {
    for (int i = 0; i < kEach; ++i) {
      if (!trail.append("exec", sample(100))) return 1;
    }
    return 0;
  };
  std::vector<pid_t> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.push_back(::fork());
    if (workers.back() == 0) ::_exit(append_all());
  }
  EXPECT_EQ(append_all(), 0) << "the parent goes on as well";
  for (const pid_t worker : workers) {
    int status = -1;
    must(::waitpid(worker, &status, 0));
    EXPECT_EQ(status, 0) << "a worker was refused";
  }
  const std::vector<std::string> lines = test::lines_of(path);
  const auto records =
      std::ranges::count_if(lines, [](const std::string& line) { return line.find("\"kind\":\"exec\"") != std::string::npos; });
  const AuditVerification found = verified(path);
  EXPECT_TRUE(found.intact()) << found.problems[0].what;
  EXPECT_EQ(records, 1 + (kWorkers + 1) * kEach);
}

// A worker that gave up root may not open the file any more; one without root finds that its mode was taken away.
TEST(AuditTrail, AForkedWorkerWithoutTheRightToOpenItGoesOnToo) {
  constexpr int kWorkers = 4, kEach = 100;
  const TempDir dir;
  const std::string path = dir / "audit.jsonl";
  AuditTrail trail = open_trail(path);
  ASSERT_TRUE(trail.append("exec", sample(1)));
  must(::chmod(dir.path().c_str(), 0711));
  if (!test::is_root()) must(::chmod(path.c_str(), 0));
  const auto append_all = [&] {
    for (int i = 0; i < kEach; ++i) {
      if (!trail.reserve() || !trail.append("exec", sample(100))) return 1;
    }
    return 0;
  };
  std::vector<pid_t> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.push_back(::fork());
    if (workers.back() != 0) continue;
    if (test::is_root() && (::setgid(test::user_gid()) != 0 || ::setuid(test::user_uid()) != 0)) ::_exit(2);
    if (AuditTrail::open(path)) ::_exit(3);
    ::_exit(append_all());
  }
  EXPECT_EQ(append_all(), 0) << "the twin: the parent goes on as well";
  for (const pid_t worker : workers) {
    int status = -1;
    must(::waitpid(worker, &status, 0));
    EXPECT_EQ(status, 0) << "a worker was refused (1), or could open it (3)";
  }
  must(::chmod(path.c_str(), 0600));
  const AuditVerification found = verified(path);
  EXPECT_TRUE(found.intact()) << found.problems[0].what;
  EXPECT_GE(found.head.sequence, 1U + (kWorkers + 1) * kEach);
}

// It cannot follow to another file: what it wrote to the old one would break the chain.
TEST(AuditTrail, AForkedWorkerWithoutTheRightToOpenItIsRefusedAfterARotation) {
  const TempDir dir;
  const std::string path = dir / "audit.jsonl";
  AuditTrail trail = open_trail(path, {.sync = AuditSync::kNever, .rotate_at = Bytes{2000}});
  must(::chmod(dir.path().c_str(), 0711));
  const auto in_a_worker = [&] {
    const pid_t worker = ::fork();
    if (worker == 0) {
      if (test::is_root() && (::setgid(test::user_gid()) != 0 || ::setuid(test::user_uid()) != 0)) ::_exit(2);
      if (!test::is_root()) ::chmod(path.c_str(), 0);
      const bool before = trail.append("exec", sample(1)).has_value();
      ::_exit(before ? 0 : 1);
    }
    int status = -1;
    must(::waitpid(worker, &status, 0));
    must(::chmod(path.c_str(), 0600));
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(in_a_worker(), 0);
  AuditTrail other = open_trail(path, {.sync = AuditSync::kNever, .rotate_at = Bytes{2000}});
  ASSERT_TRUE(other.append("exec", sample(2999)));
  ASSERT_TRUE(other.append("exec", sample(1)));
  EXPECT_EQ(in_a_worker(), 1);
  EXPECT_TRUE(verified(path).intact());
  EXPECT_TRUE(trail.append("exec", sample(1))) << "the parent follows";
}

// Appends until the disk is full. Bits: 1 refused as exhausted, 2 the chain is intact then, 4 goes on when there is room, 8 intact.
int fill_the_disk(const std::string& directory) {
  const std::string path = directory + "/audit.jsonl";
  auto trail = AuditTrail::open(path, {.sync = AuditSync::kEach});
  if (!trail) return 64;
  const std::string ballast = directory + "/ballast";
  const int fd = ::open(ballast.c_str(), O_CREAT | O_WRONLY, 0600);
  char block[4096]{};
  while (::write(fd, block, sizeof block) > 0) {
  }
  ::close(fd);
  int seen = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto sequence = trail->append("exec", sample(2999));
    if (sequence) continue;
    const auto reserved = trail->reserve();
    if (sequence.error().code() == Code::kResourceExhausted && !reserved && reserved.error().code() == Code::kResourceExhausted)
      seen |= 1;
    break;
  }
  const auto found = verify_audit(path);
  if (found && found->intact() && found->torn_bytes == 0) seen |= 2;
  ::unlink(ballast.c_str());
  if (trail->reserve() && trail->append("exec", sample(1))) seen |= 4;
  const auto after = verify_audit(path);
  if (after && after->intact()) seen |= 8;
  return seen;
}

TEST(AuditTrail, ADiskThatIsReallyFullRefusesAndThenGoesOn) {
  const TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) {
    const uid_t uid = ::geteuid();
    const gid_t gid = ::getegid();
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(77);
    test::overwrite("/proc/self/setgroups", "deny");
    test::overwrite("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1");
    test::overwrite("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1");
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(77);
    if (::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=512k,mode=0700") != 0) ::_exit(77);
    ::_exit(fill_the_disk(dir.path()));
  }
  int status = 0;
  must(::waitpid(child, &status, 0));
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs user namespaces";
  EXPECT_EQ(WEXITSTATUS(status), 1 | 2 | 4 | 8);
}

}  // namespace
}  // namespace belljar
