#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <thread>

#include "audit/line.h"
#include "audit/support_trail.h"
#include "base/unique_fd.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;
using test::first_problem;
using test::lines_of;
using test::open_trail;
using test::overwrite;
using test::read_file;
using test::TempDir;
using test::verified;

AuditFields sample(int i) { return AuditFields().text("command", "make " + std::to_string(i)).number("exit_code", i); }

// Three records: begin, exec, exec.
std::string small_trail(const TempDir& dir) {
  const std::string path = dir / "audit.jsonl";
  AuditTrail trail = open_trail(path);
  for (int i = 1; i < 3; ++i) EXPECT_TRUE(trail.append("exec", sample(i)));
  return path;
}

TEST(AuditTrail, RecordsAreNumberedChainedAndVerified) {
  const TempDir dir;
  const std::string path = small_trail(dir);
  const AuditVerification found = verified(path);
  EXPECT_TRUE(found.intact());
  EXPECT_EQ(found.records, 3U);
  EXPECT_EQ(found.head.sequence, 2U);
  const auto lines = lines_of(path);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(lines[0].starts_with(R"({"seq":0,"time":"2)")) << lines[0];
  EXPECT_NE(lines[1].find(R"("kind":"exec","data":{"command":"make 1","exit_code":1},"prev":")"), std::string::npos) << lines[1];
  EXPECT_NE(lines[2].find(lines[1].substr(lines[1].size() - 66, 64)), std::string::npos) << "the hash before is part of the next";
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

// Every byte of the file, one after another: found, and found in the line it is in.
TEST(AuditTrail, AChangedByteIsFoundAndLocated) {
  const TempDir dir;
  const std::string path = small_trail(dir);
  const std::string whole = read_file(path);
  std::uint64_t line = 1;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    overwrite(path, changed);
    const AuditVerification found = verified(path);
    ASSERT_FALSE(found.intact()) << "byte " << i;
    ASSERT_EQ(first_problem(found), "line " + std::to_string(line)) << "byte " << i << ": " << found.problems[0].what;
    if (whole[i] == '\n') ++line;
  }
  overwrite(path, whole);
  EXPECT_TRUE(verified(path).intact());
}

TEST(AuditTrail, AByteThatBecomesANewlineIsFound) {
  const TempDir dir;
  const std::string path = small_trail(dir);
  const std::string whole = read_file(path);
  for (std::size_t i = 0; i + 1 < whole.size(); ++i) {
    if (whole[i] == '\n') continue;
    std::string changed = whole;
    changed[i] = '\n';
    overwrite(path, changed);
    ASSERT_FALSE(verified(path).intact()) << "byte " << i;
  }
}

TEST(AuditTrail, RemovedAddedAndMovedRecordsAreFound) {
  const TempDir dir;
  const std::string path = small_trail(dir);
  const auto lines = lines_of(path);
  const auto with = [&](std::initializer_list<int> order) {
    std::string text;
    for (const int i : order) text += lines[static_cast<std::size_t>(i)] + "\n";
    overwrite(path, text);
    return first_problem(verified(path));
  };
  EXPECT_EQ(with({0, 1, 2}), "");
  EXPECT_EQ(with({0, 2}), "line 2");
  EXPECT_EQ(with({1, 2}), "line 1");
  EXPECT_EQ(with({0, 1, 1, 2}), "line 3");
  EXPECT_EQ(with({0, 2, 1}), "line 2");
}

// Cutting records off the end leaves a shorter chain; a head that was noted tells.
TEST(AuditTrail, ANotedHeadTellsThatTheEndWasCutOffOrAllWasWrittenAnew) {
  const TempDir dir;
  const std::string path = small_trail(dir);
  const AuditHead head = verified(path).head;
  EXPECT_EQ(*parse_audit_head(to_string(head)), head);
  EXPECT_TRUE(verified(path, head).intact());
  const auto lines = lines_of(path);
  overwrite(path, lines[0] + "\n" + lines[1] + "\n");
  EXPECT_TRUE(verified(path).intact()) << "the chain alone cannot tell";
  EXPECT_FALSE(verified(path, head).intact());
  ASSERT_EQ(::unlink(path.c_str()), 0);
  small_trail(dir);
  EXPECT_TRUE(verified(path).intact());
  EXPECT_FALSE(verified(path, head).intact());
  EXPECT_FALSE(parse_audit_head("2:xyz"));
  EXPECT_FALSE(parse_audit_head(""));
}

// As a writer that was killed leaves it, cut at every byte: verify passes, the next writer mends it, nothing else is lost.
TEST(AuditTrail, ATornEndIsNoDamageAndIsMendedByTheNextWriter) {
  const TempDir dir;
  const std::string path = small_trail(dir);
  const std::string whole = read_file(path);
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t size = last + 1; size < whole.size(); ++size) {
    overwrite(path, whole.substr(0, size));
    const AuditVerification torn = verified(path);
    ASSERT_TRUE(torn.intact()) << "cut at " << size << ": " << torn.problems[0].what;
    ASSERT_EQ(torn.torn_bytes, size - last);
    ASSERT_EQ(torn.records, 2U);
    AuditTrail trail = open_trail(path);
    ASSERT_TRUE(trail.append("exec", sample(9)));
    const AuditVerification mended = verified(path);
    ASSERT_TRUE(mended.intact());
    ASSERT_EQ(mended.torn_bytes, 0U);
    ASSERT_EQ(mended.mended, 1U);
    ASSERT_EQ(mended.records, 4U);  // begin, exec, mended, exec
  }
}

TEST(AuditTrail, WhatIsNoTornRecordAtTheEndIsDamageAndNotMended) {
  const TempDir dir;
  const std::string path = small_trail(dir);
  const std::string whole = read_file(path);
  for (const std::string& more : {std::string("hello"), std::string("\0\0", 2), whole.substr(0, whole.find('\n')) + "X"}) {
    overwrite(path, whole + more);
    EXPECT_FALSE(verified(path).intact()) << more;
    const auto trail = AuditTrail::open(path);
    ASSERT_FALSE(trail) << more;
    EXPECT_EQ(trail.error().code(), Code::kDataLoss);
    EXPECT_EQ(read_file(path), whole + more) << "left as it is";
  }
}

TEST(AuditTrail, DamageOfTheLastRecordRefusesFurtherOnes) {
  const TempDir dir;
  const std::string path = small_trail(dir);
  AuditTrail trail = open_trail(path);
  ASSERT_TRUE(trail.append("exec", sample(3)));
  std::string whole = read_file(path);
  overwrite(path, whole + "{}\n");
  const auto refused = trail.append("exec", sample(4));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kDataLoss);
  overwrite(path, whole);
  EXPECT_TRUE(trail.append("exec", sample(4)));
}

TEST(AuditTrail, ManyWritersShareOneChain) {
  const TempDir dir;
  const std::string path = dir / "audit.jsonl";
  AuditTrail shared = open_trail(path);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      AuditTrail own = open_trail(path);  // as another process would: a descriptor of its own
      for (int i = 0; i < 25; ++i) EXPECT_TRUE((t % 2 == 0 ? own : shared).append("exec", sample(i)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const AuditVerification found = verified(path);
  EXPECT_TRUE(found.intact()) << found.problems[0].what;
  EXPECT_EQ(found.records, 101U);
}

TEST(AuditTrail, RotationKeepsOneChainOverItsFiles) {
  const TempDir dir;
  const std::string path = dir / "audit.jsonl";
  const AuditOptions options{.sync = AuditSync::kNever, .rotate_at = Bytes{2000}};
  {
    AuditTrail trail = open_trail(path, options);
    AuditTrail other = open_trail(path, options);  // must notice that the file became another one
    for (int i = 0; i < 30; ++i) ASSERT_TRUE((i % 3 == 0 ? other : trail).append("exec", sample(i)));
  }
  EXPECT_TRUE(test::exists(path + ".000001"));
  const AuditVerification found = verified(path);
  EXPECT_TRUE(found.intact()) << found.problems[0].what;
  EXPECT_GT(found.files, 3U);
  EXPECT_EQ(found.records, 31 + found.files - 1) << "a record `rotated` begins each file but the first";
  std::string changed = read_file(path + ".000002");
  changed[changed.size() / 2] ^= 1;
  overwrite(path + ".000002", changed);
  EXPECT_EQ(verified(path).problems.at(0).file, path + ".000002");
}

TEST(AuditTrail, OldFilesBeyondKeepAreDeletedAndTheTrailSaysSo) {
  const TempDir dir;
  const std::string path = dir / "audit.jsonl";
  AuditTrail trail = open_trail(path, {.sync = AuditSync::kNever, .rotate_at = Bytes{1000}, .keep = 2});
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(trail.append("exec", sample(i)));
  const AuditVerification found = verified(path);
  EXPECT_TRUE(found.intact());
  EXPECT_EQ(found.files, 3U);
  EXPECT_GT(found.first_sequence, 0U);
  EXPECT_FALSE(test::exists(path + ".000001"));
  // Deleted by somebody else, in the middle: found.
  const std::string first = lines_of(path).front();
  ASSERT_NE(first.find("rotated"), std::string::npos);
  std::string name = path + ".000001";
  for (int i = 1; i < 1000 && !test::exists(name); ++i)
    name = path + ".000" + (i < 10 ? "00" : i < 100 ? "0" : "") + std::to_string(i);
  std::string cut = read_file(name);
  overwrite(name, cut.substr(cut.find('\n') + 1));
  EXPECT_EQ(first_problem(verified(path)), "line 1");
}

std::string numbered(const std::string& path, int number) { return path + ".00000" + std::to_string(number); }

TEST(AuditTrail, OldFilesThatNoRotationDeletedAreMissed) {
  const TempDir dir;
  const std::string path = dir / "audit.jsonl";
  {
    AuditTrail trail = open_trail(path, {.sync = AuditSync::kNever, .rotate_at = Bytes{1500}});
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(trail.append("exec", sample(i)));
  }
  EXPECT_TRUE(verified(path).intact());
  for (int i = 1; i <= 2; ++i) ASSERT_EQ(::unlink(numbered(path, i).c_str()), 0);
  const AuditVerification found = verified(path);
  ASSERT_FALSE(found.intact());
  EXPECT_GT(found.first_sequence, 0U);
  EXPECT_NE(found.problems[0].what.find("missing"), std::string::npos) << found.problems[0].what;
  EXPECT_EQ(found.problems[0].sequence, found.first_sequence);
}

TEST(AuditTrail, MoreFilesGoneThanRotationsDeletedAreMissed) {
  const TempDir dir;
  const std::string path = dir / "audit.jsonl";
  {
    AuditTrail trail = open_trail(path, {.sync = AuditSync::kNever, .rotate_at = Bytes{1500}, .keep = 3});
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(trail.append("exec", sample(i)));
  }
  ASSERT_TRUE(verified(path).intact());
  int oldest = 1;
  while (!test::exists(numbered(path, oldest))) ++oldest;
  ASSERT_GT(oldest, 1) << "some were deleted";
  const std::string last_bytes = read_file(numbered(path, oldest));
  ASSERT_EQ(::unlink(numbered(path, oldest).c_str()), 0);
  EXPECT_FALSE(verified(path).intact());
  overwrite(numbered(path, oldest), last_bytes);
  EXPECT_TRUE(verified(path).intact());
}

TEST(AuditTrail, ATrailOfWhichNoOldFileIsKeptIsIntact) {
  const TempDir dir;
  const std::string path = dir / "audit.jsonl";
  AuditTrail trail = open_trail(path, {.sync = AuditSync::kNever, .rotate_at = Bytes{1500}, .keep = 0});
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(trail.append("exec", sample(i)));
  EXPECT_TRUE(verified(path).intact());
  EXPECT_EQ(verified(path).files, 1U);
  EXPECT_GT(verified(path).first_sequence, 0U);
}

// As older versions wrote it: a record `rotated` that does not say from where on the trail was kept.
TEST(AuditTrail, AnOlderTrailIsJudgedByWhatItsRotationsDeleted) {
  const TempDir dir;
  const auto trail_with = [&](const char* name, int deleted) {
    std::string hash = "77" + std::string(62, '0');
    std::string bytes;
    for (std::uint64_t number = 7; number < 9; ++number) {
      audit::Head head{.sequence = number, .prev = hash, .hash = {}, .kind = number == 7 ? "rotated" : "exec", .time = {}};
      const std::string line =
          audit::seal(head, 1, number == 7 ? AuditFields().text("previous", "x").number("deleted", deleted).json() : "{}");
      hash = audit::parse(std::string_view(line).substr(0, line.size() - 1)).head.hash;
      bytes += line;
    }
    return dir.write(name, bytes, 0600);
  };
  EXPECT_TRUE(verified(trail_with("one", 1)).intact());
  EXPECT_FALSE(verified(trail_with("none", 0)).intact());
}

// Killed between giving the old file its second name and taking the first one away.
TEST(AuditTrail, AHalfDoneRotationIsFinishedByTheNextOne) {
  const TempDir dir;
  const std::string path = small_trail(dir);
  ASSERT_EQ(::link(path.c_str(), (path + ".000001").c_str()), 0);
  overwrite(path + ".next", "left over");
  EXPECT_TRUE(verified(path).intact());
  EXPECT_EQ(verified(path).records, 3U);
  AuditTrail trail = open_trail(path, {.sync = AuditSync::kNever, .rotate_at = Bytes{10}});
  ASSERT_TRUE(trail.append("exec", sample(5)));
  EXPECT_TRUE(verified(path).intact());
  EXPECT_FALSE(test::exists(path + ".next"));
}

TEST(AuditTrail, AJumpOfTheWallClockIsRecordedAndASlowDriftIsNot) {
  const TempDir dir;
  const std::string path = dir / "audit.jsonl";
  AuditTime time{std::chrono::system_clock::time_point(1'700'000'000s), 1000s, "0123abcd"};
  AuditTrail trail = open_trail(path, {.sync = AuditSync::kNever, .clock = [&] { return time; }});
  const auto later = [&](std::chrono::milliseconds wall, std::chrono::milliseconds boot) {
    time.wall += wall;
    time.since_boot += boot;
    EXPECT_TRUE(trail.append("exec", sample(1)));
    return verified(path).clock_jumps;
  };
  EXPECT_EQ(later(1000ms, 1000ms), 0U);
  EXPECT_EQ(later(86'400'000ms, 86'440'000ms), 0U) << "slewed by 460 ppm for a day";
  EXPECT_EQ(later(3'600'000ms, 10ms), 1U);
  EXPECT_EQ(later(-86'400'000ms, 10ms), 2U);
  EXPECT_NE(lines_of(path).at(5).find(R"("kind":"clock","data":{"jumped_ms":-86400010})"), std::string::npos)
      << lines_of(path).at(5);
  time.boot = "ffffffff";  // another boot: nothing to compare with
  EXPECT_EQ(later(5000ms, -900'000ms), 2U);
  EXPECT_TRUE(verified(path).intact());
}

// RLIMIT_FSIZE as a disk that is full, whose signal does not reach this program: of the record that did not fit nothing stays, and
// with room it goes on.
TEST(AuditTrail, AFullDiskRefusesTheRecordAndKeepsTheChain) {
  const TempDir dir;
  const std::string path = dir / "audit.jsonl";
  AuditTrail trail = open_trail(path);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit full{read_file(path).size() + 100, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  const auto refused = trail.append("exec", sample(1));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
  EXPECT_EQ(verified(path).torn_bytes, 0U);
  EXPECT_TRUE(trail.reserve());
  EXPECT_TRUE(trail.append("exec", sample(2)));
  EXPECT_TRUE(verified(path).intact());
  EXPECT_EQ(verified(path).records, 2U);
}

TEST(AuditTrail, TheLongestPatienceIsForEver) {
  const TempDir dir;
  AuditTrail trail = open_trail(dir / "a", {.sync = AuditSync::kNever, .patience = std::chrono::milliseconds::max()});
  const UniqueFd other(::open((dir / "a").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  std::thread later([&] {
    std::this_thread::sleep_for(50ms);  // append waits by then; one that comes later proves less
    ::flock(other.get(), LOCK_UN);
  });
  EXPECT_TRUE(trail.append("exec", sample(1)));
  later.join();
}

TEST(AuditTrail, PlacesThatOthersControlAreRefused) {
  const TempDir dir;
  const std::string target = dir.write("elsewhere", "");
  ASSERT_EQ(::symlink(target.c_str(), (dir / "link").c_str()), 0);
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  dir.write("open", "", 0666);
  ASSERT_EQ(::chmod((dir / "open").c_str(), 0666), 0);
  EXPECT_EQ(AuditTrail::open(dir / "link").error().code(), Code::kInvalidArgument);
  EXPECT_FALSE(AuditTrail::open(dir / "fifo"));
  EXPECT_EQ(AuditTrail::open(dir.path()).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(AuditTrail::open("/dev/null").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(AuditTrail::open(dir / "open").error().code(), Code::kPermissionDenied);
  EXPECT_EQ(AuditTrail::open(dir / "no/such").error().code(), Code::kNotFound);
  EXPECT_TRUE(AuditTrail::open(dir.write("mine", "", 0600)));
}

TEST(AuditFields, TextIsBytesAndLongTextIsCutWithItsLength) {
  EXPECT_EQ(AuditFields().text("a", "x\"\n").boolean("b", true).json(), R"({"a":"x\"\u000a","b":true})");
  EXPECT_EQ(AuditFields().text("a", "\xff").json(), R"({"a":"\ufffd","a_hex":"ff"})");
  EXPECT_EQ(AuditFields().text("a", "\xEF\xBF\xBD").json(), "{\"a\":\"\xEF\xBF\xBD\"}");
  EXPECT_EQ(AuditFields().text("a", "\\ufffd").json(), R"({"a":"\\ufffd"})");
  const std::string json = AuditFields().text("a", std::string(20'000, 'x')).json();
  EXPECT_TRUE(json.ends_with(R"(x","a_bytes":20000})"));
  EXPECT_LT(json.size(), 17'000U);
  EXPECT_TRUE(AuditFields().text("a", "\xff" + std::string(20'000, 'x')).json().starts_with(R"({"a":"\ufffdxx)"));
  EXPECT_NE(AuditFields().text("a", "\xff" + std::string(20'000, 'x')).json().find(R"("a_hex":"ff7878)"), std::string::npos);
}

// Who opens it later cannot tell; who had it open can.
TEST(AuditTrail, ATrailThatLostRecordsUnderALiveWriterIsNotGoneOnWith) {
  const TempDir dir;
  const std::string path = small_trail(dir);
  const std::string whole = read_file(path);
  const auto lines = lines_of(path);
  AuditTrail writer = open_trail(path);
  overwrite(path, lines[0] + "\n");
  for (int i = 0; i < 2; ++i) {
    const auto refused = writer.append("exec", sample(3));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::kDataLoss) << refused.error().line();
  }
  EXPECT_EQ(read_file(path), lines[0] + "\n");
  overwrite(path, "");
  EXPECT_EQ(writer.append("exec", sample(3)).error().code(), Code::kDataLoss);
  ASSERT_EQ(::unlink(path.c_str()), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(writer.append("exec", sample(3)).error().code(), Code::kDataLoss);
  overwrite(path, whole);
  EXPECT_EQ(writer.append("exec", sample(3)).value(), 3U) << "as it was";
  ASSERT_TRUE(open_trail(path).append("exec", sample(4)));
  EXPECT_EQ(writer.append("exec", sample(5)).value(), 5U) << "others may append";
}

// What ran must not leave the record by being long.
TEST(AuditFields, OfALongListTheStartIsKeptWithTheSizeAndAHashOfAll) {
  EXPECT_EQ(AuditFields().texts("v", {"sh", "-c", "true"}).json(), R"({"v":["sh","-c","true"]})");
  EXPECT_EQ(AuditFields().texts("v", {"a", "\xff"}).json(), R"({"v":["a","\ufffd"],"v_hex":["61","ff"]})");
  const std::string json = AuditFields().texts("v", {"rm", std::string(20'000, 'x'), "b"}).json();
  EXPECT_TRUE(json.starts_with(R"({"v":["rm","xxx)")) << json.substr(0, 50);
  // printf 'rm\0' ; 20000 x ; printf '\0b\0' : sha256sum
  EXPECT_TRUE(json.ends_with(
      R"(xxx"],"v_omitted":1,"v_bytes":20003,"v_sha256":"ddc1fbd1da0b7481d824f18ae896428d534fa79f02be6c91dd7bf077d2477ede"})"))
      << json.substr(json.size() - 150);
  EXPECT_LT(AuditFields().texts("v", std::vector<std::string>(500'000)).json().size(), 100'000U) << "empty ones, too";
  const std::string fits(AuditFields::kMaxText, 'x');
  EXPECT_EQ(AuditFields().texts("v", {fits}).json(), R"({"v":[")" + fits + R"("]})");
}

TEST(AuditTrail, AKindIsAWord) {
  const TempDir dir;
  AuditTrail trail = open_trail(dir / "a");
  EXPECT_FALSE(trail.append("", {}));
  EXPECT_FALSE(trail.append("a\",\"b", {}));
  EXPECT_TRUE(trail.append("run.start", {}));
}

}  // namespace
}  // namespace belljar
