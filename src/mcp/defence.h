// The defence between a model and the content that its tools bring in: results are shown as data, each call
// is judged by where its strings came from, and a call that looks like an obeyed injection is blocked or kept
// for a person. It holds no program back; the sandbox does.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/call_record.h"
#include "belljar/content_policy.h"
#include "belljar/guardian.h"
#include "belljar/redact.h"
#include "belljar/result.h"
#include "belljar/review.h"
#include "belljar/tools.h"
#include "belljar/turn.h"
#include "mcp/client_sandboxes.h"
#include "mcp/rpc.h"
#include "shell/script.h"

namespace belljar::mcp {

// kJudge: calls are judged, results are shown as they are. kOn: results pass the content policy and stand between delimiters.
enum class DefenceLevel { kOff, kJudge, kOn };

struct DefenceOptions {
  DefenceLevel level = DefenceLevel::kOff;
  ContentPolicy content;  // one that ContentGate::create() takes
  std::string task;       // the user's words, where the client does not send them: each conversation begins with them; empty: none
  std::string revealer = "read_file";  // the tool whose argument `reveal` shows what was withheld; empty: none has it
  std::string state_dir;               // where reviews are kept; empty: nobody can answer any
  // A call that waits for a person holds its client up this long; its review can be answered for as long as `review_open`, and the
  // same call made again finds the answer.
  std::chrono::milliseconds review_wait = std::chrono::seconds(45), review_open = std::chrono::minutes(10);
  // A second model, asked about all but reading. May only make a judgement stricter, as belljar::guarded() does.
  std::function<Judgement(const GuardianQuestion&)> guardian;
};

// A result as the model and the client get it.
struct ResultForModel {
  std::string text;
  Json structured;
  std::vector<std::string> notes;  // for people
};

// The circumstances that a review shows besides the act. An answer holds for all of it together.
struct ReviewContext {
  std::string workspace, rule;              // `rule`: why the rules ask, too
  std::shared_ptr<const Redactor> secrets;  // what is not shown; empty: known shapes alone
};

// Of one session. Safe from any thread.
class Defence {
 public:
  explicit Defence(DefenceOptions options);

  bool judges() const noexcept { return options_.level != DefenceLevel::kOff; }
  // For the model, of how results are shown; empty: as they are.
  std::string rules_for_model() const;

  // What the client says beside a call (`_meta`): the user's words, and the conversation it belongs to; empty: the one last named.
  // Each has a memory of its own; one that was forgotten for others is asked about. Returns its name, for the rest of the call.
  std::string note_user_words(const std::string& conversation, const std::string& user_words);
  // The same, said meanwhile of a conversation that need not be the last one named.
  void add_user_words(const std::string& conversation, const std::string& user_words);
  bool knows_user_words(const std::string& conversation);
  // The user's newest words for all conversations, in the place of DefenceOptions::task.
  void set_task(std::string user_words);
  // `files`: those of the sandbox that the call is for.
  Judgement judge(const ToolRequest& request, const std::string& workspace, const std::string& conversation = "",
                  const WorkspaceFiles& files = {});
  // A person's word by way of `belljar review`, waited for.
  QuestionOutcome review(const ToolRequest& request, const Judgement& judgement, const ReviewContext& around = {});
  // Keeps for `belljar review` what was decided without it. `by`: one word.
  void record(const ToolRequest& request, const Judgement& judgement, ReviewAnswer answer, std::string by,
              const ReviewContext& around = {});
  // Content of no call: each string as the policy has it.
  Json clean(Json content) const;
  // Raw output may be told as it comes.
  bool passes_all() const noexcept;

  // What a call brought is remembered as it is, but for our own words, and shown as the policy says.
  ResultForModel show(const ToolSpec& tool, const Json& arguments, ToolResult done, const std::string& conversation = "");

  // Passages may be described, and DefenceOptions::revealer shows one by its id.
  bool reveals() const noexcept;
  Result<Withheld> withheld(std::string_view id) const { return withheld_.find(id); }
  // Whether a person is to be asked before.
  Judgement judge_reveal(const Withheld& passage) const;
  // As data, marked, for a model that may see it; remembered once more, as untrusted as it was.
  ResultForModel reveal(const Withheld& passage, const std::string& conversation = "");

 private:
  ReviewRequest review_of(const ToolRequest& request, const Judgement& judgement, const ReviewContext& around) const;
  Result<std::string> ask_for(const ReviewQueue& queue, const ReviewRequest& asked, const std::string& key);
  void find_source(const ToolSpec& tool, const std::string& arguments, Entered& what);
  void act_on_parts(const ContentShown& whole, const Entered& what, Json& structured, std::vector<std::string>& notes) const;
  std::string keep(const Withheld& passage) const;
  std::string without_lines(std::string_view part, const std::vector<Withheld>& whole, const Entered& what) const;
  // Of one conversation.
  struct Memory {
    std::unique_ptr<Turn> turn;                                                  // made with the first workspace
    std::vector<Entered> early;                                                  // before that
    std::shared_ptr<WorkspaceFiles> files = std::make_shared<WorkspaceFiles>();  // of the call that is judged
    std::string user_words;
    bool was_forgotten = false;
    std::uint64_t used = 0;
    std::uint64_t task_version = 0;  // of `task_` that it has heard
  };
  Memory& memory_of(const std::string& conversation);
  static void hear(Memory& memory, const std::string& user_words);
  static void remember(Memory& memory, const Entered& what, const Json& structured);

  const DefenceOptions options_;
  const std::string session_;  // its name in the queue
  const Result<ContentGate> gate_;
  mutable WithheldTexts withheld_;
  std::mutex mutex_;
  // guarded by mutex_
  std::map<std::string, Memory> memories_;
  std::set<std::size_t> forgotten_;  // hashes of their names
  std::uint64_t clock_ = 0;
  std::string task_;
  std::uint64_t task_version_ = 0;  // how often it was said
  shell::ShellReader reader_;
  std::string conversation_;                    // last named
  std::map<std::string, std::string> waiting_;  // reviews by their call
  std::mutex review_mutex_;                     // of two equal calls one asks
  std::mutex guardian_mutex_;                   // it serves one at a time
};

// What a reviewer sees of a call, and what an answer for the session or for always holds for, byte by byte: the whole act and the
// directory it is done in. Without secrets, as for_review() has it.
ReviewRequest reviewed(CallRecord record, const std::string& workspace, const Redactor* secrets);

// The reason of a judgement and the quotes it rests on, escaped.
std::string words_of(const Judgement& judgement);

}  // namespace belljar::mcp
