#include "mcp/defence.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/content_policy.h"
#include "belljar/error.h"
#include "belljar/guardian.h"
#include "belljar/result.h"
#include "belljar/review.h"
#include "belljar/tools.h"
#include "belljar/turn.h"
#include "guard/call.h"
#include "guard/detect.h"
#include "mcp/rpc.h"

namespace belljar::mcp {
namespace {

// More than the context of a model holds: what entered before has left it.
constexpr std::size_t kMostRemembered = 2U << 20;

// Empty when the kernel gives no randomness.
std::string random_name() {
  std::array<unsigned char, 12> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  std::string name;
  for (const unsigned char byte : bytes) name += format("{:02x}", byte);
  return name;
}

// The strings of a structured result that hold what was read, not what it is called.
bool is_content_key(std::string_view key) noexcept {
  constexpr std::string_view kKeys[] = {"stdout", "stderr", "output", "content", "text", "message"};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

void each_content(Json& json, const std::function<void(std::string&)>& use) {
  if (!json.is_structured()) return;
  for (auto& [key, value] : json.items()) {
    if (value.is_string() && is_content_key(key)) use(value.get_ref<std::string&>());
    else each_content(value, use);
  }
}

std::string text_of(const Json& arguments, const char* key) {
  const auto found = arguments.find(key);
  return found != arguments.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string name_of(const ToolSpec& tool, const Json& arguments) {
  constexpr std::size_t kLongest = 200;
  for (const char* key : {"path", "command", "pattern", "text", "id"}) {
    if (std::string text = text_of(arguments, key); !text.empty()) return text.substr(0, kLongest);
  }
  return tool.name;
}

ProposedCall call_of(const ToolRequest& request) { return {.tool = request.tool, .arguments = request.arguments}; }

}  // namespace

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
    : options_(std::move(options)), session_("mcp-" + random_name()), gate_(ContentGate::create(options_.content)) {}

std::string Defence::rules_for_model() const {
  if (options_.level != DefenceLevel::kOn) return {};
  return std::string(guard::system_prompt_rules()) + (gate_ ? gate_->system_prompt_rules() : "");
}

void Defence::heard(const std::string& conversation, const std::string& user_words) {
  const std::lock_guard lock(mutex_);
  if (!conversation.empty() && conversation != conversation_) {
    conversation_ = conversation;
    user_words_.clear();
    early_.clear();
    turn_.reset();
  }
  if (user_words.empty() || user_words == user_words_) return;
  user_words_ = user_words;
  Entered words{.source = TextSource::kUser, .name = "user", .text = user_words};
  if (turn_) turn_->entered(std::move(words));
  else early_.push_back(std::move(words));
}

Judgement Defence::judge(const ToolRequest& request, const std::string& workspace) {
  if (!judges() || request.kind == ToolKind::kControl) return {};
  GuardianQuestion question{.call = call_of(request)};
  {
    const std::lock_guard lock(mutex_);
    if (!turn_) {
      turn_ = std::make_unique<Turn>(TurnSettings{.workspace = workspace,
                                                  .max_bytes = kMostRemembered,
                                                  .user_words = UserWords::kUnseen,
                                                  .overflow = Overflow::kForgetOldest});
      for (Entered& each : early_) turn_->entered(std::move(each));
      early_.clear();
    }
    question.judgement = turn_->judge(question.call);
    question.user = user_words_.empty() ? "(not known here: judge by the call and the evidence)" : user_words_;
  }
  if (!options_.guardian || request.kind == ToolKind::kRead || question.judgement.advice == Advice::kBlock)
    return question.judgement;
  const std::lock_guard lock(guardian_mutex_);
  return options_.guardian(question);
}

ReviewRequest Defence::review_of(const ToolRequest& request, const Judgement& judgement) const {
  return {.session = session_,
          .tool = request.tool,
          .call = act_text(request),
          .reason = judgement.reason,
          .advice = judgement.advice,
          .evidence = judgement.evidence};
}

void Defence::record(const ToolRequest& request, const Judgement& judgement, ReviewAnswer answer, std::string by) {
  if (options_.state_dir.empty()) return;
  // What cannot be recorded was decided all the same.
  if (const auto queue = ReviewQueue::open(options_.state_dir))
    (void)queue->record(review_of(request, judgement), {answer, std::move(by)});
}

ToolVerdict Defence::review(const ToolRequest& request, const Judgement& judgement) {
  const std::string why = words_of(judgement);
  const auto refused = [&](const std::string& more, std::string next) {
    return ToolVerdict{false, why + "; " + more, std::move(next)};
  };
  const auto queue = ReviewQueue::open(options_.state_dir);
  if (!queue)
    return refused("it needs a person's word, and there is no way to ask: " + queue.error().line(), "tell the user what happened");
  const std::string key = request.tool + '\0' + request.arguments;
  std::string id;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = waiting_.find(key); known != waiting_.end()) id = known->second;
  }
  if (id.empty()) {
    auto asked = queue->submit(review_of(request, judgement), options_.review_open);
    if (!asked) return refused("it needs a person's word: " + asked.error().line(), "tell the user what happened");
    if (asked->empty()) return {};  // approved before
    id = *std::move(asked);
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= ReviewQueue::kMostKept) waiting_.clear();
    waiting_.insert_or_assign(key, id);
  }
  const auto decision = queue->wait_for(id, options_.review_wait, request.cancel.fd());
  if (decision && !decision->has_value())
    return refused(
        format("nobody has answered the review {} yet", id),
        format("tell the user to look at it with `belljar review show {}` and to answer with `belljar review answer {} once` "
               "(or session, always, deny); then make the very same call again",
               id, id));
  {
    const std::lock_guard lock(mutex_);
    waiting_.erase(key);
  }
  if (!decision) return refused("its review was lost: " + decision.error().line(), "tell the user what happened");
  if ((*decision)->answer != ReviewAnswer::kDeny) return {};
  return refused((*decision)->by == "timeout" ? "nobody answered its review in time" : "the review was answered with deny",
                 "do not try it another way; tell the user what the content says");
}

// What was found in the whole is acted on in each part, found there again or not.
void Defence::act_on_parts(ContentAction done, const Entered& what, Json& structured) const {
  const ContentPolicy& given = options_.content;
  const ContentRule& of_source = what.source == TextSource::kNetwork     ? given.network
                                 : what.source == TextSource::kWorkspace ? given.workspace
                                                                         : given.tool;
  const ContentRule rule{.action = done, .suspicious = done, .max_bytes = of_source.max_bytes};
  const auto gate = ContentGate::create({.workspace = rule, .network = rule, .tool = rule, .mark = given.mark});
  each_content(structured, [&](std::string& part) {
    part = gate ? gate->apply({.source = what.source, .name = what.name, .text = part}).text : std::string();
  });
}

TextSource Defence::source_of(const ToolSpec& tool, const std::string& arguments) {
  if (tool.kind == ToolKind::kRead) return TextSource::kWorkspace;
  if (tool.kind != ToolKind::kExecute) return TextSource::kTool;
  const guard::Call call = guard::read_call({.tool = tool.name, .arguments = arguments}, reader_);
  const bool talks = std::ranges::any_of(
      call.acts, [](const guard::Act& act) { return act.kind == CallClass::kFetching || act.kind == CallClass::kSending; });
  return talks ? TextSource::kNetwork : TextSource::kTool;
}

void Defence::remember(const Entered& what, const Json& structured) {
  std::vector<Entered> all{what};
  // Of a long output the text shows head and tail, the structured result the beginning.
  constexpr std::size_t kWorthIt = 16;
  Json copy = structured;
  each_content(copy, [&](const std::string& part) {
    if (part.size() < kWorthIt || what.text.find(part) != std::string::npos) return;
    all.push_back(what);
    all.back().text = part;
  });
  for (Entered& each : all) {
    if (turn_) turn_->entered(std::move(each));
    else early_.push_back(std::move(each));
  }
}

ShownResult Defence::show(const ToolSpec& tool, const Json& arguments, std::string text, Json structured) {
  // Writing tools answer in our own words.
  if (!judges() || tool.kind == ToolKind::kWrite) return {std::move(text), std::move(structured), {}};
  Entered what{.name = name_of(tool, arguments), .text = std::move(text)};
  {
    const std::lock_guard lock(mutex_);
    what.source = source_of(tool, to_line(arguments));
    remember(what, structured);
  }
  if (options_.level != DefenceLevel::kOn) return {std::move(what.text), std::move(structured), {}};
  const std::string nonce = random_name();
  if (!gate_ || nonce.empty()) return {"[The content is withheld: it cannot be wrapped.]", Json::object(), {}};
  ContentShown shown = gate_->apply(what);
  ShownResult result{.structured = std::move(structured), .notes = std::move(shown.notes)};
  if (shown.done != ContentAction::kPass || shown.left_out != 0) act_on_parts(shown.done, what, result.structured);
  result.text =
      guard::wrap_result({.tool = tool.name, .source = static_cast<guard::Source>(what.source), .content = shown.text}, nonce);
  return result;
}

}  // namespace belljar::mcp
