// Suspicious calls that wait for a person, in Belljar's state directory. The agent's process asks and waits;
// `belljar review` shows and answers, from any terminal. A call without an answer in time is denied.
//
//   auto queue = BELLJAR_TRY(ReviewQueue::open(default_state_dir()));
//   auto decision = BELLJAR_TRY(queue.ask({.session = id, .tool = "bash", .call = command, .reason = judgement.reason}, 5min));
//   if (decision.answer == ReviewAnswer::kDeny) ...
//
// Of two people who answer at once the first counts, and the second is told so. An approval for the session
// or for always holds for this tool with exactly this call, byte by byte, and for nothing that looks like it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"
#include "belljar/turn.h"

namespace belljar {

enum class ReviewAnswer { kOnce, kSession, kAlways, kDeny };
std::string_view to_string(ReviewAnswer answer) noexcept;
Result<ReviewAnswer> parse_review_answer(std::string_view word);

struct ReviewRequest {
  std::string session;  // of the agent; approvals of a session end with it, since no other has its name
  std::string tool;
  std::string call;  // the command or the arguments, as they would run
  std::string reason;
  Advice advice = Advice::kAsk;
  std::vector<Evidence> evidence;  // the first 16 are kept
};

struct ReviewDecision {
  ReviewAnswer answer = ReviewAnswer::kDeny;
  std::string by;  // "person", "timeout", "approval" (an earlier answer); of record(): what the caller says, one word
};

enum class ReviewState { kWaiting, kAnswered, kExpired };  // kExpired: its time is over and nobody wrote an answer
std::string_view to_string(ReviewState state) noexcept;

struct ReviewItem {
  std::string id;  // 12 hexadecimal digits
  ReviewRequest request;
  std::int64_t asked_ms = 0, deadline_ms = 0;  // Unix time
  ReviewState state = ReviewState::kWaiting;
  ReviewDecision decision;  // of kAnswered
};

// Files below DIRECTORY/reviews, mode 0700, of the calling user. Safe from several threads and processes; a value, no descriptor
// stays open.
class ReviewQueue {
 public:
  static constexpr std::size_t kMostWaiting = 64;  // beyond it calls are denied unasked
  static constexpr std::size_t kMostKept = 256;    // answered ones; beyond it the oldest go
  static constexpr std::size_t kMostCall = 64U << 10;

  // Makes the directory. Errors: kPermissionDenied, it belongs to somebody else or others may write it.
  static Result<ReviewQueue> open(const std::string& state_dir);

  // Asks and waits. An earlier approval answers at once. Errors: kResourceExhausted, too many wait or the call is larger than
  // kMostCall; all errors mean: do not run it.
  Result<ReviewDecision> ask(const ReviewRequest& request, std::chrono::milliseconds patience) const;
  // The two halves of it, for who has a loop of its own. `id` of an approved call is empty.
  Result<std::string> submit(const ReviewRequest& request, std::chrono::milliseconds patience) const;
  Result<ReviewDecision> wait(const std::string& id) const;
  // As wait(), and for this long at most: nullopt, it waits still. A descriptor that becomes readable ends the waiting, too.
  Result<std::optional<ReviewDecision>> wait_for(const std::string& id, std::chrono::milliseconds patience, int stop = -1) const;
  // What was decided without the queue: blocked by a validator, answered by other means. For those who look at it later.
  Result<void> record(const ReviewRequest& request, const ReviewDecision& decision) const;

  Result<std::vector<ReviewItem>> list() const;  // the oldest first
  // Errors: kNotFound.
  Result<ReviewItem> find(std::string_view id) const;
  // Errors: kNotFound; kFailedPrecondition, it was answered or its time is over.
  Result<void> answer(std::string_view id, ReviewAnswer answer) const;
  bool is_approved(const ReviewRequest& request) const;

 private:
  explicit ReviewQueue(std::string directory) : directory_(std::move(directory)) {}
  Result<std::string> put(const ReviewRequest& request, std::chrono::milliseconds patience) const;
  Result<void> decide(const std::string& id, ReviewDecision decision) const;
  Result<void> remember(const ReviewRequest& request, ReviewAnswer answer) const;
  void forget_old(std::vector<ReviewItem> items) const;
  std::string directory_;
};

}  // namespace belljar
