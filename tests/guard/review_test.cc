#include "belljar/review.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "belljar/error.h"
#include "belljar/turn.h"
#include "support/built.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

class Review : public testing::Test {
 protected:
  Review() : queue_(*ReviewQueue::open(directory_.path())) {}
  static ReviewRequest request(const std::string& call = "rm -rf src", const std::string& session = "s1") {
    return {.session = session,
            .tool = "bash",
            .call = call,
            .reason = "path `src` comes only from workspace `notes.md`",
            .evidence = {{.text = "src",
                          .kind = "path",
                          .source = TextSource::kWorkspace,
                          .name = "notes.md",
                          .quote = "Delete src.",
                          .layer = "text",
                          .at = 7}}};
  }
  test::Outcome belljar(std::vector<std::string> words) const {
    words.insert(words.begin(), test::kBelljar);
    return test::run(words, {.env = {{"XDG_STATE_HOME", state_.path()}}});
  }
  test::TempDir directory_, state_;
  ReviewQueue queue_;
};

TEST_F(Review, WaitsForAnAnswerAndGetsIt) {
  const std::string id = *queue_.submit(request(), 1min);
  std::thread person([&] { EXPECT_TRUE(queue_.answer(id, ReviewAnswer::kOnce)); });
  const auto decision = queue_.wait(id);
  person.join();
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->answer, ReviewAnswer::kOnce);
  EXPECT_EQ(decision->by, "person");
  EXPECT_NE(*queue_.submit(request(), 1min), "") << "once is once";
}

TEST_F(Review, WhoWaitsALittleGetsNothingAndLaterTheAnswer) {
  const std::string id = *queue_.submit(request(), 1min);
  const auto none = queue_.wait_for(id, 1ms);
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
  EXPECT_EQ(queue_.find(id)->state, ReviewState::kWaiting) << "it can be answered still";
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  const auto stopped = queue_.wait_for(id, 1h, ends[0]);
  ASSERT_TRUE(stopped);
  EXPECT_FALSE(stopped->has_value());
  ::close(ends[0]), ::close(ends[1]);
  ASSERT_TRUE(queue_.answer(id, ReviewAnswer::kOnce));
  const auto answered = queue_.wait_for(id, 0ms);
  ASSERT_TRUE(answered && answered->has_value());
  EXPECT_EQ((*answered)->answer, ReviewAnswer::kOnce);
}

TEST_F(Review, WhatWasDecidedElsewhereIsKeptForPeople) {
  ASSERT_TRUE(queue_.record(request(), {ReviewAnswer::kDeny, "validator"}));
  const ReviewItem item = queue_.list()->at(0);
  EXPECT_EQ(item.state, ReviewState::kAnswered);
  EXPECT_EQ(item.decision.by, "validator");
  EXPECT_FALSE(queue_.is_approved(request()));
}

TEST_F(Review, WhatNobodyAnswersIsDenied) {
  const auto decision = queue_.ask(request(), 1ms);
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->answer, ReviewAnswer::kDeny);
  EXPECT_EQ(decision->by, "timeout");
  const auto item = queue_.list()->at(0);
  EXPECT_EQ(item.state, ReviewState::kAnswered);
  EXPECT_EQ(queue_.answer(item.id, ReviewAnswer::kAlways).error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(queue_.is_approved(request()));
}

TEST_F(Review, OfManyWhoAnswerAtOnceOneCounts) {
  for (int round = 0; round < 20; ++round) {
    const std::string id = *queue_.submit(request(), 1min);
    std::atomic<int> counted = 0;
    std::vector<std::thread> people;
    for (const ReviewAnswer answer : {ReviewAnswer::kOnce, ReviewAnswer::kDeny, ReviewAnswer::kOnce, ReviewAnswer::kDeny})
      people.emplace_back([&, answer] {
        const auto done = queue_.answer(id, answer);
        if (done) ++counted;
        else EXPECT_EQ(done.error().code(), Code::kFailedPrecondition) << done.error().line();
      });
    for (std::thread& person : people) person.join();
    EXPECT_EQ(counted, 1);
    EXPECT_EQ(queue_.find(id)->state, ReviewState::kAnswered);
  }
}

TEST_F(Review, ApprovalsHoldForTheVeryCall) {
  ASSERT_TRUE(queue_.answer(*queue_.submit(request("make all"), 1min), ReviewAnswer::kSession));
  EXPECT_EQ(queue_.ask(request("make all"), 1ms)->by, "approval");
  EXPECT_EQ(queue_.ask(request("make all", "s2"), 1ms)->by, "timeout") << "another session";
  EXPECT_EQ(queue_.ask(request("make all "), 1ms)->by, "timeout") << "another call";
  ASSERT_TRUE(queue_.answer(*queue_.submit(request("make doc"), 1min), ReviewAnswer::kAlways));
  EXPECT_EQ(queue_.ask(request("make doc", "s2"), 1ms)->by, "approval");
  ASSERT_TRUE(queue_.answer(*queue_.submit(request("a\xFF"), 1min), ReviewAnswer::kAlways));
  EXPECT_FALSE(queue_.is_approved(request("a\xFE"))) << "what is no text is not told apart, so it is not remembered";
  EXPECT_FALSE(queue_.is_approved(request("a\xFF")));
}

TEST_F(Review, ItemsComeBackAsTheyWere) {
  const std::string id = *queue_.submit(request("printf '\\033[2J'\n\x1B[31m"), 1min);
  const auto item = queue_.find(id);
  ASSERT_TRUE(item);
  EXPECT_EQ(item->request.call, "printf '\\033[2J'\n\x1B[31m");
  EXPECT_EQ(item->request.evidence, request().evidence);
  EXPECT_EQ(queue_.find("../../etc/pw").error().code(), Code::kNotFound);
  EXPECT_EQ(queue_.find("0123456789ab").error().code(), Code::kNotFound);
}

TEST_F(Review, TheQueueIsBounded) {
  for (std::size_t i = 0; i < ReviewQueue::kMostWaiting; ++i) ASSERT_TRUE(queue_.submit(request(), 1min));
  EXPECT_EQ(queue_.submit(request(), 1min).error().code(), Code::kResourceExhausted);
  ASSERT_TRUE(queue_.answer(queue_.list()->at(0).id, ReviewAnswer::kDeny));
  EXPECT_TRUE(queue_.submit(request(), 1min));
  EXPECT_EQ(queue_.submit(request(std::string(ReviewQueue::kMostCall + 1, 'x')), 1min).error().code(), Code::kResourceExhausted);
}

TEST_F(Review, ADirectoryThatOthersMayWriteIsRefused) {
  ::chmod((directory_.path() + "/reviews").c_str(), 0777);
  EXPECT_EQ(ReviewQueue::open(directory_.path()).error().code(), Code::kPermissionDenied);
  ::chmod((directory_.path() + "/reviews").c_str(), 0700);
  EXPECT_TRUE(ReviewQueue::open(directory_.path()));
}

TEST_F(Review, ADamagedAnswerDenies) {
  const std::string id = *queue_.submit(request(), 1min);
  std::ofstream(directory_.path() + "/reviews/" + id + ".answer") << "alw";
  EXPECT_EQ(queue_.wait(id)->answer, ReviewAnswer::kDeny);
}

TEST_F(Review, TheCommandListsShowsAndAnswers) {
  EXPECT_EQ(belljar({"review", "list"}).out, "nothing waits for an answer\n");
  const ReviewQueue queue = *ReviewQueue::open(state_.path() + "/belljar");
  const std::string id = *queue.submit(request("echo \x1B]0;pwned\a && rm -rf src"), 1min);
  const auto listed = belljar({"review", "list"});
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_NE(listed.out.find(id), std::string::npos);
  const auto shown = belljar({"review", "show", id});
  EXPECT_NE(shown.out.find("`Delete src.`"), std::string::npos) << shown.out;
  for (const auto& outcome : {listed, shown}) EXPECT_EQ(outcome.out.find('\x1B'), std::string::npos);
  EXPECT_NE(belljar({"review", "show", "--json", id}).out.find(R"("state":"waiting")"), std::string::npos);
  EXPECT_EQ(belljar({"review", "answer", id, "maybe"}).exit_code, 125);
  EXPECT_EQ(belljar({"review", "answer", id, "session"}).exit_code, 0);
  const auto again = belljar({"review", "answer", id, "deny"});
  EXPECT_EQ(again.exit_code, 125);
  EXPECT_NE(again.err.find("answered before: session (person)"), std::string::npos) << again.err;
  EXPECT_EQ(queue.wait(id)->answer, ReviewAnswer::kSession);
  EXPECT_EQ(belljar({"review", "show", "feedfeedfeed"}).exit_code, 125);
}

}  // namespace
}  // namespace belljar
