// Questions that a session asks its client: roots, approvals. Whoever asks waits; the answers come in on
// another thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/result.h"
#include "belljar/tools.h"
#include "mcp/client_sandboxes.h"
#include "mcp/rpc.h"

namespace belljar::mcp {

// The parts of a question besides the act and the reason.
struct Question {
  std::string workspace;
  std::string evidence;         // for the person alone: what it quotes may speak to a model
  bool asks_for_words = false;  // nobody knows what the user wants: the form has a field for it that may stay empty
};

// Safe from any thread.
class Client {
 public:
  explicit Client(std::function<void(const Json&)> send) : send_(std::move(send)) {}

  void set_capabilities(const Json& capabilities);
  bool has_roots() const;
  bool can_be_asked() const;

  // Waits for the answer. Errors: kCanceled, the client is gone or the call was cancelled; kDeadlineExceeded; kUnknown, the client
  // answered with an error.
  Result<Json> ask(std::string_view method, Json params, std::chrono::milliseconds patience, const CancelToken& cancel);
  void handle_response(Message&& message);
  // Who waits looks at its token again.
  void wake();
  // Whoever waits stops waiting, for good.
  void close();

  // The client's roots as paths of this machine. Asked once, and again after they have changed. Errors: as ask();
  // kInvalidArgument, there are some and none is such a path.
  Result<std::vector<std::string>> roots(const CancelToken& cancel);
  void roots_changed();

  // What becomes of an act of which rules say this. Where it is to be asked about, the user decides through the client
  // (elicitation), which can be asked; no answer within five minutes and everything but "accept" mean no.
  QuestionOutcome decide(const Opinion& opinion, const ToolRequest& request, const Question& question);

 private:
  struct Pending {
    std::optional<Message> answer;
  };
  std::function<void(const Json&)> send_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // guarded by mutex_
  std::map<std::int64_t, Pending> pending_;
  std::int64_t serial_ = 0;
  bool closed_ = false, has_roots_ = false, can_be_asked_ = false;
  std::optional<std::vector<std::string>> roots_;
  std::uint64_t roots_version_ = 0;  // how often they changed
  std::set<std::string> approved_;   // for this session: workspace, tool, arguments and reason
};

}  // namespace belljar::mcp
