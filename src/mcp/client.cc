// Questions to the client: its roots, and whether its user allows an act.
//
// A question is a request of ours with an id of ours, and its answer comes in on the thread that reads
// messages. So whoever asks waits on a condition variable, with a patience, and looks at two more things each
// time it is woken: whether the call was cancelled, and whether the client is gone. A question that is given
// up is cancelled towards the client, so that no dialog stays open for an act that will not happen.
//
// Roots are asked once and kept until the client says that they have changed. If that happens while an answer
// is on its way, the answer may still be the old list. `roots_version_` tells, and the question is asked
// again.
//
// The form may have a field for the user's task, which a server of tools does not hear otherwise. What is written
// there counts for later calls alone: the act that was asked about is allowed by the answer itself, and a form
// that is declined says nothing.
//
// "Remember for this session" holds for exactly the question that was answered: the workspace, the tool, the
// arguments and the reason. Another reason is another question.
#include "mcp/client.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/tools.h"
#include "mcp/client_sandboxes.h"
#include "mcp/rpc.h"
#include "mcp/uri.h"

namespace belljar::mcp {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRootsPatience = std::chrono::seconds(10);
constexpr milliseconds kUserPatience = std::chrono::minutes(5);
constexpr std::size_t kLongestWords = 4000, kLongestCharacter = 4;  // characters, bytes of one

// What a model wrote, as a person is shown it: line by line, nothing hidden (bidi, escapes), not endless.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 4000;
  std::string result;
  const std::string_view part = text.substr(0, kMost);
  for (std::size_t at = 0; at <= part.size();) {
    const std::size_t end = std::min(part.find('\n', at), part.size());
    result += "    " + escaped(part.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  if (text.size() > kMost) result += format("    ... and {} bytes more\n", text.size() - kMost);
  return result;
}

Result<std::vector<std::string>> paths_of(const Json& answer) {
  const auto unusable = [](std::string why) {
    return Error(Code::kInvalidArgument, "cannot use the client's roots").reason(std::move(why));
  };
  if (!answer.is_object() || !answer.contains("roots") || !answer["roots"].is_array())
    return unusable("its answer to roots/list holds no list");
  std::vector<std::string> paths;
  for (const Json& root : answer["roots"]) {
    if (!root.is_object() || !root.contains("uri") || !root["uri"].is_string()) continue;
    if (auto path = path_of_uri(root["uri"].get_ref<const std::string&>())) paths.push_back(*std::move(path));
  }
  // The current directory is for a client that has opened nothing, not for one that has opened something else.
  if (paths.empty() && !answer["roots"].empty()) return unusable("none of them is a directory of this machine, file:///...");
  return paths;
}

}  // namespace

void Client::set_capabilities(const Json& capabilities) {
  const std::lock_guard lock(mutex_);
  has_roots_ = capabilities.contains("roots") && capabilities["roots"].is_object();
  // An empty object means forms, as it did before there were others (2025-11-25, Elicitation, Capabilities).
  const auto asks = capabilities.find("elicitation");
  can_be_asked_ = asks != capabilities.end() && asks->is_object() && (asks->empty() || asks->contains("form"));
}

bool Client::has_roots() const {
  const std::lock_guard lock(mutex_);
  return has_roots_;
}

bool Client::can_be_asked() const {
  const std::lock_guard lock(mutex_);
  return can_be_asked_;
}

Result<Json> Client::ask(std::string_view method, Json params, milliseconds patience, const CancelToken& cancel) {
  std::unique_lock lock(mutex_);
  if (closed_) return Error(Code::kCanceled, format("cannot ask the client: {}", method)).reason("it is gone");
  const std::int64_t id = ++serial_;
  pending_[id];
  lock.unlock();
  send_(make_request(id, method, std::move(params)));
  lock.lock();
  const auto over = [&] { return closed_ || cancel.cancelled() || pending_[id].answer.has_value(); };
  changed_.wait_for(lock, patience, over);
  Pending mine = std::move(pending_[id]);
  pending_.erase(id);
  const bool closed = closed_;
  lock.unlock();
  if (!mine.answer) {
    if (closed) return Error(Code::kCanceled, format("cannot ask the client: {}", method)).reason("it is gone");
    const bool cancelled = cancel.cancelled();
    send_(make_notification("notifications/cancelled",
                            {{"requestId", id}, {"reason", cancelled ? "the call was cancelled" : "no answer in time"}}));
    return Error(cancelled ? Code::kCanceled : Code::kDeadlineExceeded, format("the client did not answer {}", method));
  }
  if (mine.answer->error.is_null()) return std::move(mine.answer->result);
  return Error(Code::kUnknown, format("the client refused {}", method)).reason(escaped(to_line(mine.answer->error).substr(0, 400)));
}

void Client::handle_response(Message&& message) {
  const std::lock_guard lock(mutex_);
  if (!message.id.is_number_integer()) return;
  const auto known = pending_.find(message.id.get<std::int64_t>());
  if (known == pending_.end()) return;  // too late, or never asked
  known->second.answer = std::move(message);
  changed_.notify_all();
}

void Client::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Client::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

Result<std::vector<std::string>> Client::roots(const CancelToken& cancel) {
  for (;;) {
    std::uint64_t version = 0;
    {
      const std::lock_guard lock(mutex_);
      if (!has_roots_) return std::vector<std::string>();
      if (roots_) return *roots_;
      version = roots_version_;
    }
    const Json answer = BELLJAR_TRY(ask("roots/list", Json::object(), kRootsPatience, cancel));
    std::vector<std::string> paths = BELLJAR_TRY(paths_of(answer));
    const std::lock_guard lock(mutex_);
    if (version != roots_version_) continue;  // changed meanwhile: the answer may be of before
    roots_ = paths;
    return paths;
  }
}

void Client::roots_changed() {
  const std::lock_guard lock(mutex_);
  roots_.reset();
  ++roots_version_;
}

QuestionOutcome Client::decide(const Opinion& opinion, const ToolRequest& request, const Question& question) {
  const auto refused = [](std::string reason, std::string next, std::string by) {
    return QuestionOutcome{{false, std::move(reason), std::move(next)}, ReviewAnswer::kDeny, std::move(by)};
  };
  if (opinion.kind == OpinionKind::kRun) return {{}, ReviewAnswer::kOnce, "rules"};
  if (opinion.kind == OpinionKind::kRefuse) return refused(opinion.reason, opinion.next, "rules");
  // An answer holds for the question it was given to.
  const std::string key = question.workspace + '\0' + request.tool + '\0' + request.arguments + '\0' + opinion.reason;
  {
    const std::lock_guard lock(mutex_);
    if (approved_.contains(key)) return {{}, ReviewAnswer::kSession, "approval"};
  }
  Json properties{{"remember",
                   {{"type", "string"},
                    {"title", "Remember"},
                    {"description", "once: this time; session: the very same act, until the server ends"},
                    {"enum", {"once", "session"}},
                    {"default", "once"}}}};
  if (question.asks_for_words)
    properties["task"] = {{"type", "string"},
                          {"title", "What did you ask for?"},
                          {"description",
                           "May stay empty. Your task in your words, not the agent's: later acts are compared with it, and you are "
                           "asked less"},
                          {"maxLength", kLongestWords}};
  const Json schema{{"type", "object"}, {"properties", std::move(properties)}};
  const std::string message = format("Let {} do this in the sandbox{}?\n\n{}\nWhy you are asked: {}", request.tool,
                                     question.workspace.empty() ? "" : " of " + belljar::quoted(question.workspace),
                                     shown(act_text(request)), escaped(opinion.reason + question.evidence));
  const auto answer = ask("elicitation/create", {{"message", message}, {"requestedSchema", schema}}, kUserPatience, request.cancel);
  if (!answer)
    return refused(opinion.reason + "; " + answer.error().line(), "",
                   answer.error().code() == Code::kDeadlineExceeded ? "timeout" : "nobody");
  if (!answer->is_object() || answer->value("action", Json()) != "accept")
    return refused("the user said no", "ask the user what to do instead", "client");
  const auto content = answer->find("content");
  if (content == answer->end() || !content->is_object()) return {{}, ReviewAnswer::kOnce, "client"};
  QuestionOutcome allowed{{}, ReviewAnswer::kOnce, "client"};
  const Json words = question.asks_for_words ? content->value("task", Json()) : Json();
  if (words.is_string() && words.get_ref<const std::string&>().size() <= kLongestWords * kLongestCharacter)
    allowed.user_words = words;
  if (content->value("remember", Json()) != "session") return allowed;
  const std::lock_guard lock(mutex_);
  approved_.insert(key);
  allowed.answer = ReviewAnswer::kSession;
  return allowed;
}

}  // namespace belljar::mcp
