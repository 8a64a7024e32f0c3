#include "runtime/violation_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar::runtime {
namespace {

using test::TempDir;

KeptRun kept_sample(const std::string& target = "/etc/hosts") {
  KeptRun run;
  run.program = "make";
  run.workspace = "/w";
  run.result.exit_code = 2;
  run.result.violations_hidden = 4;
  Violation violation;
  violation.time = std::chrono::system_clock::time_point(std::chrono::microseconds(1'700'000'000'000'005));
  violation.sequence = 3;
  violation.pid = 9;
  violation.program = "sh";
  violation.operation = "write";
  violation.target = target;
  violation.rule = "mode";
  violation.origin = {"user", "/p.toml", 7};
  violation.errnum = 30;
  violation.allowed = "writes below /w";
  violation.count = 2;
  run.result.violations = {violation};
  return run;
}

class Store : public testing::Test {
 protected:
  std::string state() const { return base_.path() + "/a/b/belljar"; }
  mode_t mode_of(const std::string& path) const {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }
  TempDir base_;
};

TEST_F(Store, ARunComesBackAsItWas) {
  const ViolationStore store(state());
  for (const std::string target : {"/etc/hosts", "/w/\xff\x01\n", ""}) {
    const KeptRun run = kept_sample(target);
    const auto id = store.keep(run);
    ASSERT_TRUE(id) << id.error().line();
    const auto back = store.load("last");
    ASSERT_TRUE(back) << back.error().line();
    EXPECT_EQ(back->result.violations, run.result.violations);
    EXPECT_EQ(back->result.id, *id);
    EXPECT_EQ(back->result.exit_code, 2);
    EXPECT_EQ(back->result.violations_hidden, 4U);
    EXPECT_EQ(back->program, "make");
    EXPECT_EQ(back->workspace, "/w");
  }
}

TEST_F(Store, OnlyTheUserMayReadIt) {
  const auto id = ViolationStore(state()).keep(kept_sample());
  ASSERT_TRUE(id);
  EXPECT_EQ(mode_of(state()), 0700U);
  EXPECT_EQ(mode_of(state() + "/violations"), 0700U);
  EXPECT_EQ(mode_of(state() + "/violations/" + *id + ".json"), 0600U);
}

TEST_F(Store, TheOldestGo) {
  const ViolationStore store(state());
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < ViolationStore::kMaxRuns + 5; ++i) ids.push_back(*store.keep(kept_sample()));
  const auto kept = store.list();
  ASSERT_TRUE(kept);
  EXPECT_EQ(*kept, std::vector<std::string>(ids.end() - ViolationStore::kMaxRuns, ids.end()));
}

TEST_F(Store, ConcurrentRunsAllFindRoomAndEachFileIsWhole) {
  const ViolationStore store(state());
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 30; ++i) {
        EXPECT_TRUE(store.keep(kept_sample()));
        const auto last = store.load("last");
        // Another thread may have removed it between looking and reading; a torn one would be kDataLoss.
        EXPECT_TRUE(last || last.error().errnum() == ENOENT) << last.error().line();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto kept = store.list();
  ASSERT_TRUE(kept);
  EXPECT_LE(kept->size(), ViolationStore::kMaxRuns);
  EXPECT_GE(kept->size(), ViolationStore::kMaxRuns - 8);
  for (const std::string& id : *kept) EXPECT_TRUE(store.load(id));
}

// It is written over where it stands, by longer and by shorter ones.
TEST_F(Store, AWorkspaceHasOneLastRun) {
  const ViolationStore store(state());
  ASSERT_TRUE(store.keep(kept_sample()));
  for (const std::size_t length : {10U, 9000U, 20U, 5000U, 0U}) {
    KeptRun run = kept_sample(std::string(length, 'x'));
    run.workspace = base_.path();
    store.note_last(run);
    const auto back = store.load_last(base_.path());
    ASSERT_TRUE(back) << back.error().line();
    EXPECT_EQ(back->result.violations, run.result.violations) << length;
  }
  std::size_t notes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(state() + "/violations")) {
    if (!entry.path().filename().string().starts_with("last-")) continue;
    ++notes;
    EXPECT_LE(entry.file_size(), 4096U) << "what a longer one took is given back";
  }
  EXPECT_EQ(notes, 1U);
}

TEST_F(Store, IdsMayBeShortenedWhileTheyFitOne) {
  const ViolationStore store(state());
  const std::string first = *store.keep(kept_sample()), second = *store.keep(kept_sample());
  EXPECT_EQ(store.load(first)->result.id, first);
  EXPECT_EQ(store.load(second.substr(9))->result.id, second);
  EXPECT_EQ(store.load("2").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(store.load("19990101").error().code(), Code::kNotFound);
  EXPECT_EQ(store.load("../../x").error().code(), Code::kNotFound);
}

TEST_F(Store, NothingKeptSaysWhy) {
  const auto none = ViolationStore(state()).load("last");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::kNotFound);
  EXPECT_NE(none.error().reason(), "");
  EXPECT_NE(none.error().next(), "");
  EXPECT_FALSE(ViolationStore("").load("last"));
  EXPECT_FALSE(ViolationStore("").keep(kept_sample()));
}

TEST_F(Store, APlaceThatIsNotOursAloneIsRefused) {
  base_.make_dir("a/b/belljar/violations");
  ASSERT_EQ(::chmod((state() + "/violations").c_str(), 0777), 0);
  const auto open = ViolationStore(state()).keep(kept_sample());
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code(), Code::kFailedPrecondition);
  ASSERT_EQ(::chmod((state() + "/violations").c_str(), 0700), 0);
  EXPECT_TRUE(ViolationStore(state()).keep(kept_sample()));
}

TEST_F(Store, ALinkInItsPlaceIsNotFollowed) {
  base_.make_dir("a/b");
  base_.make_dir("elsewhere");
  ASSERT_EQ(::symlink((base_ / "elsewhere").c_str(), state().c_str()), 0);
  EXPECT_FALSE(ViolationStore(state()).keep(kept_sample()));
  EXPECT_FALSE(test::exists(base_ / "elsewhere/violations"));
}

TEST_F(Store, AReadOnlyPlaceIsAnErrorAndNothingElse) {
  BELLJAR_NEEDS(test::as_ordinary_user());
  base_.make_dir("a/b");
  ASSERT_EQ(::chmod((base_ / "a/b").c_str(), 0500), 0);
  const auto kept = ViolationStore(state()).keep(kept_sample());
  ASSERT_EQ(::chmod((base_ / "a/b").c_str(), 0700), 0);
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code(), Code::kPermissionDenied);
}

TEST_F(Store, AFileStaysSmallWhateverACommandDoes) {
  KeptRun run = kept_sample();
  for (int i = 0; i < 1000; ++i) run.result.violations.push_back(kept_sample("/" + std::string(4000, '\x01')).result.violations[0]);
  const std::string text = to_json(run);
  EXPECT_LE(text.size(), kMaxKeptBytes + 4096);
  const auto back = parse_kept_run(text);
  ASSERT_TRUE(back);
  std::uint64_t acts = back->result.violations_dropped;
  for (const Violation& violation : back->result.violations) acts += violation.count;
  EXPECT_EQ(acts, 2002U);
}

TEST_F(Store, TornOrForeignFilesAreDataLoss) {
  const std::string whole = to_json(kept_sample());
  for (std::size_t size = 0; size < whole.size(); size += 7) EXPECT_FALSE(parse_kept_run(whole.substr(0, size)));
  for (const char* text :
       {"", "[]", "null", "{}", "{\"version\":1}", "{\"version\":2,\"result\":{}}", "{\"version\":1,\"result\":[]}"})
    EXPECT_FALSE(parse_kept_run(text)) << text;
  const char* const odd =
      "{\"version\":1,\"result\":{\"violations\":[1,{\"errno\":\"x\",\"time\":7,\"target_hex\":\"zz\",\"origin\":3}],\"exit_code\":"
      "\"9\"}}";
  const auto parsed = parse_kept_run(odd);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->result.violations.size(), 1U);
}

}  // namespace
}  // namespace belljar::runtime
