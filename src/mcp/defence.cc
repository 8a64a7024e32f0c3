// What a model is shown of results, what is remembered of them, and when a call needs a person.
//
// Each conversation has a Turn (guard/turn.h): the texts that entered it, against which calls are judged. An
// MCP server does not see the conversation itself. It knows the user's words only if the client sends them
// (`_meta`), and otherwise judges with UserWords::kUnseen. At most kMostConversations are remembered. A
// conversation that was dropped for others and comes back has lost what it read, so its changes are asked
// about: forgetting must not be a way to be trusted.
//
// A result is remembered as it was and shown as the content policy has it. The other order would lose the
// strings that the policy took out, and just those may turn up in a later call. In a structured result each
// string is treated by itself, since JSON cannot be wrapped in delimiters; what was found in the whole is
// acted on in every part. Of passages that were described in the whole, each line is looked for in the parts:
// a search result has them one by one.
//
// A description names an id, under which the passage is kept. Showing it is a call of its own that a person is
// asked about, since a text could tell the model to ask for what was withheld from it.
//
// A review is a file in a queue that a person answers with `belljar review`. The call waits for a while and
// is then refused with the advice to repeat it; the same call made again finds the answer. `waiting_` joins
// equal calls to one review, and an answer "once" is used up by the first of them.
#include "mcp/defence.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/random.h"
#include "belljar/call_record.h"
#include "belljar/content_policy.h"
#include "belljar/error.h"
#include "belljar/guardian.h"
#include "belljar/redact.h"
#include "belljar/result.h"
#include "belljar/review.h"
#include "belljar/tools.h"
#include "belljar/turn.h"
#include "detect/detect.h"
#include "guard/call.h"
#include "guard/passages.h"
#include "mcp/rpc.h"

namespace belljar::mcp {
namespace {

// More than the context of a model holds: what entered before has left it.
constexpr std::size_t kMostRemembered = 2U << 20;
constexpr std::size_t kMostConversations = 16, kMostForgotten = 4096;

// The strings of a structured result that hold what was read, not what it is called.
bool is_content_key(std::string_view key) noexcept {
  constexpr std::string_view kKeys[] = {"stdout", "stderr", "output", "content", "text", "message"};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

// Our own words, from short lists.
bool is_own_key(std::string_view key) noexcept {
  constexpr std::string_view kKeys[] = {"id", "reason", "origin", "operation", "rule", "allowed", "type", "encoding"};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

// Every string that is none of those, with its key; in a list that of the list.
void each_string(Json& json, const std::string& key, const std::function<void(const std::string& key, std::string&)>& use) {
  if (json.is_string() && !is_own_key(key)) use(key, json.get_ref<std::string&>());
  if (json.is_array()) {
    for (Json& item : json) each_string(item, key, use);
  } else if (json.is_object()) {
    for (auto& [name, value] : json.items()) each_string(value, name, use);
  }
}

std::string text_of(const Json& arguments, const char* key) {
  const auto found = arguments.find(key);
  return found != arguments.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string name_of(const ToolSpec& tool, const Json& arguments) {
  constexpr std::size_t kLongest = 200;
  for (const char* key : {"path", "command"}) {
    if (std::string text = text_of(arguments, key); !text.empty()) return text.substr(0, kLongest);
  }
  // What was looked for is no file's name: it must not be taken for one that agents read.
  for (const char* key : {"pattern", "text", "id"}) {
    if (const std::string text = text_of(arguments, key); !text.empty()) return tool.name + " " + text.substr(0, kLongest);
  }
  return tool.name;
}

ProposedCall call_of(const ToolRequest& request) { return {.tool = request.tool, .arguments = request.arguments}; }

// Those that the shared value has when they are asked for: a conversation may use several sandboxes.
WorkspaceFiles files_in(const std::shared_ptr<WorkspaceFiles>& now) {
  return {.read = [now](const std::string& path) { return now->read ? now->read(path) : std::nullopt; },
          .changed_in =
              [now](const std::string& directory) {
                return now->changed_in ? now->changed_in(directory) : std::vector<std::string>();
              }};
}

}  // namespace

ReviewRequest reviewed(CallRecord record, const std::string& workspace, const Redactor* secrets) {
  record = for_review(std::move(record), secrets != nullptr ? *secrets : Redactor());
  if (!workspace.empty()) record.call += "\n[workspace: " + belljar::quoted(workspace) + "]";
  return {.tool = std::move(record.tool),
          .call = std::move(record.call),
          .reason = std::move(record.reason),
          .advice = Advice::kAsk,
          .evidence = std::move(record.evidence)};
}

std::string words_of(const Judgement& judgement) {
  constexpr std::size_t kMostQuotes = 3;
  std::string words = judgement.reason;
  for (std::size_t i = 0; i < std::min(judgement.evidence.size(), kMostQuotes); ++i) {
    const Evidence& each = judgement.evidence[i];
    words += format("; {} {} says{}: {}", to_string(each.source), belljar::quoted(each.name),
                    each.layer.empty() || each.layer == "text" ? "" : format(" (hidden as {})", escaped(each.layer)),
                    belljar::quoted(each.quote));
  }
  return words;
}

Defence::Defence(DefenceOptions options)
    : options_(std::move(options)),
      session_("mcp-" + random_hex(12)),
      gate_(ContentGate::create(options_.content)),
      task_(options_.task),
      task_version_(options_.task.empty() ? 0 : 1) {}

std::string Defence::rules_for_model() const {
  if (options_.level == DefenceLevel::kOff) return {};
  if (options_.level == DefenceLevel::kJudge) return detect::system_prompt_rules(detect::Delimiters::kNone);
  return detect::system_prompt_rules() + (gate_ ? gate_->system_prompt_rules() : "");
}

// With mutex_ held.
Defence::Memory& Defence::memory_of(const std::string& conversation) {
  const std::string& name = conversation.empty() ? conversation_ : conversation;
  const auto known = memories_.find(name);
  if (known == memories_.end() && memories_.size() >= kMostConversations) {
    const auto oldest = std::ranges::min_element(memories_, {}, [](const auto& each) { return each.second.used; });
    if (forgotten_.size() < kMostForgotten) forgotten_.insert(std::hash<std::string>{}(oldest->first));
    memories_.erase(oldest);
  }
  Memory& memory = memories_[name];
  if (known == memories_.end())
    memory.was_forgotten = forgotten_.size() >= kMostForgotten || forgotten_.contains(std::hash<std::string>{}(name));
  memory.used = ++clock_;
  if (memory.task_version != task_version_) {
    memory.task_version = task_version_;
    hear(memory, task_);
  }
  return memory;
}

void Defence::hear(Memory& memory, const std::string& user_words) {
  if (user_words.empty() || user_words == memory.user_words) return;
  memory.user_words = user_words;
  Entered words{.source = TextSource::kUser, .name = "user", .text = user_words};
  if (memory.turn) memory.turn->entered(std::move(words));
  else memory.early.push_back(std::move(words));
}

void Defence::set_task(std::string user_words) {
  const std::lock_guard lock(mutex_);
  task_ = std::move(user_words);
  ++task_version_;
}

void Defence::add_user_words(const std::string& conversation, const std::string& user_words) {
  const std::lock_guard lock(mutex_);
  hear(memory_of(conversation), user_words);
}

bool Defence::knows_user_words(const std::string& conversation) {
  const std::lock_guard lock(mutex_);
  return !memory_of(conversation).user_words.empty();
}

std::string Defence::note_user_words(const std::string& conversation, const std::string& user_words) {
  const std::lock_guard lock(mutex_);
  if (!conversation.empty()) conversation_ = conversation;
  hear(memory_of(conversation_), user_words);
  return conversation_;
}

Judgement Defence::judge(const ToolRequest& request, const std::string& workspace, const std::string& conversation,
                         const WorkspaceFiles& files) {
  if (!judges() || request.kind == ToolKind::kControl) return {};
  GuardianQuestion question{.call = call_of(request)};
  {
    const std::lock_guard lock(mutex_);
    Memory& memory = memory_of(conversation);
    if (!memory.turn) {
      memory.turn = std::make_unique<Turn>(TurnSettings{.workspace = workspace,
                                                        .files = files_in(memory.files),
                                                        .max_bytes = kMostRemembered,
                                                        .user_words = UserWords::kUnseen,
                                                        .overflow = Overflow::kForgetOldest});
      for (Entered& each : memory.early) memory.turn->entered(std::move(each));
      memory.early.clear();
    }
    *memory.files = files;
    question.judgement = memory.turn->judge(question.call);
    if (memory.was_forgotten && request.kind != ToolKind::kRead && question.judgement.advice == Advice::kAllow) {
      question.judgement.advice = Advice::kAsk;
      question.judgement.row = "forgotten";
      question.judgement.reason = "what this conversation read earlier is forgotten: too many others came between";
    }
    question.user = memory.user_words.empty() ? "(not known here: judge by the call and the evidence)" : memory.user_words;
  }
  if (!options_.guardian || request.kind == ToolKind::kRead || question.judgement.advice == Advice::kBlock)
    return question.judgement;
  const std::lock_guard lock(guardian_mutex_);
  return options_.guardian(question);
}

ReviewRequest Defence::review_of(const ToolRequest& request, const Judgement& judgement, const ReviewContext& around) const {
  const bool both = !around.rule.empty() && !judgement.reason.empty();
  ReviewRequest review = reviewed({.tool = request.tool,
                                   .call = act_text(request),
                                   .reason = around.rule + (both ? "; " : "") + judgement.reason,
                                   .evidence = judgement.evidence},
                                  around.workspace, around.secrets.get());
  review.session = session_;
  review.advice = std::max(judgement.advice, Advice::kAsk);
  // All of the call is compared when an earlier answer is looked for.
  if (around.rule.empty()) return review;
  const CallRecord rule = for_review({.tool = request.tool, .call = act_text(request), .reason = around.rule},
                                     around.secrets ? *around.secrets : Redactor());
  review.call += (both ? "\n[rules ask, too: " : "\n[rules ask: ") + escaped(rule.reason) + "]";
  return review;
}

void Defence::record(const ToolRequest& request, const Judgement& judgement, ReviewAnswer answer, std::string by,
                     const ReviewContext& around) {
  if (options_.state_dir.empty()) return;
  // What cannot be recorded was decided all the same.
  if (const auto queue = ReviewQueue::open(options_.state_dir))
    (void)queue->record(review_of(request, judgement, around), {answer, std::move(by)});
}

// The review that waits for the same call, or a new one. Empty: it was approved before.
Result<std::string> Defence::ask_for(const ReviewQueue& queue, const ReviewRequest& asked, const std::string& key) {
  const std::lock_guard one(review_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = waiting_.find(key); known != waiting_.end()) return known->second;
  }
  std::string id = BELLJAR_TRY(queue.submit(asked, options_.review_open));
  if (id.empty()) return id;
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= ReviewQueue::kMostKept) waiting_.clear();
  waiting_.insert_or_assign(key, id);
  return id;
}

QuestionOutcome Defence::review(const ToolRequest& request, const Judgement& judgement, const ReviewContext& around) {
  const ReviewRequest wanted = review_of(request, judgement, around);
  const auto refused = [&](const std::string& more, std::string next, std::string by = "nobody") {
    return QuestionOutcome{{false, wanted.reason + "; " + more, std::move(next)}, ReviewAnswer::kDeny, std::move(by)};
  };
  if (options_.state_dir.empty())
    return refused("it needs somebody's word, and this client cannot ask (it has no elicitation)",
                   "do it another way, or let the user allow it in a rules file (belljar mcp --rules)");
  const auto queue = ReviewQueue::open(options_.state_dir);
  if (!queue)
    return refused("it needs a person's word, and there is no way to ask: " + queue.error().line(), "tell the user what happened");
  const std::string key = request.tool + '\0' + wanted.call;
  const auto asked = ask_for(*queue, wanted, key);
  if (!asked) return refused("it needs a person's word: " + asked.error().line(), "tell the user what happened");
  if (asked->empty()) return {{}, ReviewAnswer::kSession, "approval"};
  const std::string& id = *asked;
  const auto decision = queue->wait_for(id, options_.review_wait, request.cancel.fd());
  if (decision && !decision->has_value()) {
    QuestionOutcome waiting = refused(
        format("nobody has answered the review {} yet", id),
        format("tell the user to look at it with `belljar review show {}` and to answer with `belljar review answer {} once` "
               "(or session, always, deny); then make the very same call again",
               id, id));
    waiting.undecided = true;
    return waiting;
  }
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    const auto mine = waiting_.find(key);
    first = mine != waiting_.end() && mine->second == id;
    if (first) waiting_.erase(mine);
  }
  if (!decision) return refused("its review was lost: " + decision.error().line(), "tell the user what happened");
  const ReviewDecision& made = **decision;
  if (made.answer == ReviewAnswer::kOnce && !first)
    return refused("its review was answered with once, and another such call has used that", "make the call again", made.by);
  if (made.answer != ReviewAnswer::kDeny) return {{}, made.answer, made.by};
  return refused(made.by == "timeout" ? "nobody answered its review in time" : "the review was answered with deny",
                 judgement.reason.empty() ? "ask the user what to do instead"
                                          : "do not try it another way; tell the user what the content says",
                 made.by);
}

// Keeps it, and says how it can be seen.
std::string Defence::keep(const Withheld& passage) const {
  const std::string id = reveals() ? withheld_.keep(passage) : "";
  if (id.empty()) return {};
  return format("{} with reveal=\"{}\" shows them as data{}", options_.revealer, id,
                options_.content.reveal == RevealRule::kAsk ? ", if a person allows it" : "");
}

// Lines that stand in a passage of the whole are withheld here, too, each run of them as one.
std::string Defence::without_lines(std::string_view part, const std::vector<Withheld>& whole, const Entered& what) const {
  constexpr std::size_t kWorthIt = 16;
  std::string text, run;
  const Withheld* found = nullptr;
  const auto put_run = [&] {
    if (found == nullptr) return;
    const bool ended = run.ends_with('\n');
    if (ended) run.pop_back();
    const Withheld passage{.source = what.source, .name = what.name, .text = run, .signs = found->signs};
    text += guard::description_of(passage, keep(passage)) + (ended ? "\n" : "");
    run.clear();
    found = nullptr;
  };
  for (std::size_t at = 0; at < part.size();) {
    const std::size_t end = std::min(part.find('\n', at), part.size());
    const std::string_view line = part.substr(at, end - at), with_end = part.substr(at, end - at + 1);
    const auto holder =
        line.size() < kWorthIt
            ? whole.end()
            : std::ranges::find_if(whole, [&](const Withheld& passage) { return passage.text.find(line) != std::string::npos; });
    if (holder != whole.end()) {
      found = &*holder;
      run += with_end;
    } else {
      put_run();
      text += with_end;
    }
    at = end + 1;
  }
  put_run();
  return text;
}

// Each string on its own; and what was found in the whole is acted on in each part of the content, found there again or not.
void Defence::act_on_parts(const ContentShown& whole, const Entered& what, Json& structured,
                           std::vector<std::string>& notes) const {
  const ContentAction done = whole.done;
  const ContentPolicy& given = options_.content;
  const ContentRule& of_source = what.source == TextSource::kNetwork     ? given.network
                                 : what.source == TextSource::kWorkspace ? given.workspace
                                                                         : given.tool;
  const ContentRule rule{.action = done, .suspicious = done, .max_bytes = of_source.max_bytes};
  // A name is told as long as nothing is found in it: without it nobody knows what was left out.
  const ContentRule names{.action = std::min(of_source.action, ContentAction::kStrip),
                          .suspicious = std::max(of_source.action, of_source.suspicious),
                          .max_bytes = of_source.max_bytes};
  const auto gate = ContentGate::create({.workspace = rule, .network = rule, .tool = rule, .mark = given.mark});
  const auto name_gate = ContentGate::create({.workspace = names, .network = names, .tool = names, .mark = given.mark});
  if (!gate || !name_gate) return structured.clear();
  const Withhold withhold = [this](const Withheld& passage) { return keep(passage); };
  each_string(structured, "", [&](const std::string& key, std::string& part) {
    const Entered entered{.source = what.source, .name = what.name, .text = part};
    const bool content = is_content_key(key);
    ContentShown shown = content ? gate_->apply(entered, withhold) : name_gate->apply(entered, withhold);
    if (content && done == ContentAction::kDescribe) shown.text = without_lines(shown.text, whole.withheld, what);
    else if (content && done > shown.done) shown = gate->apply(entered, withhold);
    // Said once, of the whole or of its first part.
    if (notes.empty() && shown.done != ContentAction::kPass) notes = std::move(shown.notes);
    part = std::move(shown.text);
  });
}

// Where the result came from; a file that a command showed has its own name, as one that a tool read.
void Defence::find_source(const ToolSpec& tool, const std::string& arguments, Entered& what) {
  what.source = tool.kind == ToolKind::kRead ? TextSource::kWorkspace : TextSource::kTool;
  if (tool.kind != ToolKind::kExecute) return;
  const guard::Call call = guard::read_call({.tool = tool.name, .arguments = arguments}, reader_);
  if (guard::talks(call)) {
    what.source = TextSource::kNetwork;
  } else if (std::string name = guard::name_of_shown(call); !name.empty()) {
    what.source = TextSource::kWorkspace;
    what.name = std::move(name);
  }
}

void Defence::remember(Memory& memory, const Entered& what, const Json& structured) {
  std::vector<Entered> all{what};
  // Of a long output the text shows head and tail, the structured result the beginning.
  constexpr std::size_t kWorthIt = 16;
  Json copy = structured;
  each_string(copy, "", [&](const std::string& key, const std::string& part) {
    const bool ours = key == "message";  // how a command ended
    if (ours || part.size() < kWorthIt || what.text.find(part) != std::string::npos) return;
    all.push_back(what);
    all.back().text = part;
  });
  for (Entered& each : all) {
    if (memory.turn) memory.turn->entered(std::move(each));
    else memory.early.push_back(std::move(each));
  }
}

Json Defence::clean(Json content) const {
  if (options_.level != DefenceLevel::kOn) return content;
  if (!gate_) return Json::array();
  std::vector<std::string> notes;
  act_on_parts({}, {.source = TextSource::kTool, .name = "violations"}, content, notes);
  return content;
}

bool Defence::passes_all() const noexcept {
  const auto passes = [](const ContentRule& rule) {
    return rule.action == ContentAction::kPass && rule.suspicious == ContentAction::kPass;
  };
  return options_.level != DefenceLevel::kOn ||
         (passes(options_.content.tool) && passes(options_.content.network) && passes(options_.content.workspace));
}

ResultForModel Defence::show(const ToolSpec& tool, const Json& arguments, ToolResult done, const std::string& conversation) {
  Json structured = done.failed || done.structured.empty() ? Json::object() : Json::parse(done.structured);
  // Writing tools answer in our own words, until they fail and quote.
  if (!judges() || (tool.kind == ToolKind::kWrite && !done.failed)) return {std::move(done.text), std::move(structured), {}};
  Entered what{.name = name_of(tool, arguments), .text = foreign_text(done, to_line(arguments))};
  {
    const std::lock_guard lock(mutex_);
    find_source(tool, to_line(arguments), what);
    remember(memory_of(conversation), what, structured);
  }
  what.text = std::move(done.text);
  if (options_.level != DefenceLevel::kOn) return {std::move(what.text), std::move(structured), {}};
  const std::string nonce = random_hex(12);
  if (!gate_ || nonce.empty()) return {"[The content is withheld: it cannot be wrapped.]", Json::object(), {}};
  const ContentShown shown = gate_->apply_to_result(what, done.own_from, [this](const Withheld& passage) { return keep(passage); });
  ResultForModel result{.structured = std::move(structured), .notes = shown.notes};
  act_on_parts(shown, what, result.structured, result.notes);
  result.text =
      detect::wrap_result({.tool = tool.name, .source = static_cast<detect::Source>(what.source), .content = shown.text}, nonce);
  return result;
}

bool Defence::reveals() const noexcept {
  return options_.level == DefenceLevel::kOn && !options_.revealer.empty() && gate_ && gate_->reveals();
}

Judgement Defence::judge_reveal(const Withheld& passage) const {
  return options_.content.reveal == RevealRule::kAllow ? Judgement{} : belljar::judge_reveal(passage);
}

ResultForModel Defence::reveal(const Withheld& passage, const std::string& conversation) {
  const std::string nonce = random_hex(12);
  if (!gate_ || nonce.empty()) return {"[The content is withheld: it cannot be wrapped.]", Json::object(), {}};
  {
    const std::lock_guard lock(mutex_);
    remember(memory_of(conversation), {.source = passage.source, .name = passage.name, .text = passage.text}, Json::object());
  }
  const std::string text = gate_->reveal(passage);
  // The name may be what speaks.
  const std::string name = gate_->apply({.source = passage.source, .name = "", .text = passage.name}).text;
  return {.text = detect::wrap_result(
              {.tool = options_.revealer, .source = static_cast<detect::Source>(passage.source), .content = text}, nonce),
          .structured = {{"path", name}, {"size", passage.text.size() + passage.left_out}, {"content", text}},
          .notes = {format("{} bytes of {} that were withheld are shown", passage.text.size(), belljar::quoted(passage.name))}};
}

}  // namespace belljar::mcp
