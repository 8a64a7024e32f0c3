// An item is ID.json, its answer ID.answer. Both appear whole, under their final name, or not at all: written aside and linked,
// which fails when the name is taken. So whoever links ID.answer first has answered, person or clock.
#include "belljar/review.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/random.h"
#include "base/read_file.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/turn.h"
#include "policy/document.h"
#include "policy/json.h"

namespace belljar {
namespace {

using policy::json_text;
using policy::Node;
using std::chrono::milliseconds;

constexpr std::array<std::string_view, 4> kAnswers{"once", "session", "always", "deny"};
constexpr std::array<std::string_view, 3> kStates{"waiting", "answered", "expired"};
constexpr std::size_t kMostEvidence = 16;
constexpr std::size_t kIdBytes = 6;
constexpr const char* kApprovals = "/approvals.jsonl";

std::int64_t now_ms() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Result<std::string> make_id() {
  std::string id = random_hex(kIdBytes);
  if (id.empty()) return Error(Code::kInternal, "cannot make a name for a review").sys(errno, "getrandom");
  return id;
}

bool is_id(std::string_view id) noexcept {
  return id.size() == 2 * kIdBytes && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<std::string> read_file(const std::string& path) {
  constexpr std::size_t kMost = 4U << 20;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) return std::nullopt;
  auto text = read_at_most(file.get(), kMost + 1);
  if (text && text->size() > kMost) return std::nullopt;
  return text;
}

Result<void> write_review(int file, std::string_view text) {
  if (!write_all(file, text)) return Error(Code::kUnavailable, "cannot write a review").sys(errno, "write");
  return {};
}

// `path` with this content, unless it exists. Errors: kAlreadyExists.
Result<void> create_whole(const std::string& directory, const std::string& path, std::string_view text) {
  const std::string aside = directory + "/.new." + BELLJAR_TRY(make_id());
  const UniqueFd file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return Error(Code::kUnavailable, format("cannot write {}", belljar::quoted(aside))).sys(errno, "open");
  Result<void> written = write_review(file.get(), text);
  if (written && ::fsync(file.get()) != 0) written = Error(Code::kUnavailable, "cannot write a review").sys(errno, "fsync");
  if (written && ::link(aside.c_str(), path.c_str()) != 0)
    written = Error(errno == EEXIST ? Code::kAlreadyExists : Code::kUnavailable, format("cannot write {}", belljar::quoted(path)))
                  .sys(errno, "link");
  ::unlink(aside.c_str());
  return written;
}

const Node* member(const Node& table, std::string_view key) {
  for (const policy::Member& each : table.members) {
    if (each.key == key) return &each.value;
  }
  return nullptr;
}

std::string text_of(const Node& table, std::string_view key) {
  const Node* node = member(table, key);
  return node != nullptr && node->kind == Node::Kind::kText ? node->text : std::string();
}

std::int64_t number_of(const Node& table, std::string_view key) {
  const Node* node = member(table, key);
  return node != nullptr && node->kind == Node::Kind::kInteger ? node->integer : 0;
}

std::string to_json(const Evidence& evidence) {
  return format(R"({{"text":{},"kind":{},"source":"{}","name":{},"quote":{},"layer":{},"at":{}}})", json_text(evidence.text),
                json_text(evidence.kind), to_string(evidence.source), json_text(evidence.name), json_text(evidence.quote),
                json_text(evidence.layer), evidence.at);
}

std::string to_json(const ReviewRequest& request, std::int64_t asked, std::int64_t deadline) {
  std::string list;
  for (std::size_t i = 0; i < std::min(request.evidence.size(), kMostEvidence); ++i)
    list += (i == 0 ? "" : ",") + to_json(request.evidence[i]);
  return format(R"({{"session":{},"tool":{},"call":{},"reason":{},"advice":"{}","asked_ms":{},"deadline_ms":{},"evidence":[{}]}})",
                json_text(request.session), json_text(request.tool), json_text(request.call), json_text(request.reason),
                to_string(request.advice), asked, deadline, list) +
         "\n";
}

Evidence evidence_of(const Node& node) {
  Evidence evidence{.text = text_of(node, "text"),
                    .kind = text_of(node, "kind"),
                    .name = text_of(node, "name"),
                    .quote = text_of(node, "quote"),
                    .layer = text_of(node, "layer"),
                    .at = static_cast<std::size_t>(number_of(node, "at"))};
  const std::string source = text_of(node, "source");
  for (const TextSource each : {TextSource::kUser, TextSource::kWorkspace, TextSource::kNetwork, TextSource::kTool}) {
    if (to_string(each) == source) evidence.source = each;
  }
  return evidence;
}

std::optional<ReviewItem> item_of(const std::string& id, const std::string& text) {
  const auto node = policy::parse_json_document({text, id});
  if (!node || node->kind != Node::Kind::kTable) return std::nullopt;
  ReviewItem item{.id = id, .asked_ms = number_of(*node, "asked_ms"), .deadline_ms = number_of(*node, "deadline_ms")};
  item.request = {.session = text_of(*node, "session"),
                  .tool = text_of(*node, "tool"),
                  .call = text_of(*node, "call"),
                  .reason = text_of(*node, "reason"),
                  .advice = text_of(*node, "advice") == "block" ? Advice::kBlock : Advice::kAsk};
  if (const Node* list = member(*node, "evidence")) {
    for (const Node& each : list->items) item.request.evidence.push_back(evidence_of(each));
  }
  return item;
}

// "once person\n"
std::optional<ReviewDecision> decision_of(const std::string& text) {
  const std::size_t space = text.find(' ');
  const auto answer = parse_review_answer(text.substr(0, space));
  if (!answer || space == std::string::npos || !text.ends_with('\n')) return std::nullopt;
  return ReviewDecision{*answer, text.substr(space + 1, text.size() - space - 2)};
}

Error not_found(std::string_view id) {
  return Error(Code::kNotFound, format("there is no review {}", belljar::quoted(id)))
      .next("`belljar review list` shows those that wait");
}

}  // namespace

std::string_view to_string(ReviewAnswer answer) noexcept { return kAnswers[static_cast<std::size_t>(answer)]; }
std::string_view to_string(ReviewState state) noexcept { return kStates[static_cast<std::size_t>(state)]; }

Result<ReviewAnswer> parse_review_answer(std::string_view word) {
  const auto at = std::ranges::find(kAnswers, word);
  if (at == kAnswers.end())
    return Error(Code::kInvalidArgument, format("{} is no answer", belljar::quoted(word)))
        .next("one of once, session, always, deny");
  return static_cast<ReviewAnswer>(at - kAnswers.begin());
}

Result<ReviewQueue> ReviewQueue::open(const std::string& state_dir) {
  if (!state_dir.starts_with('/'))
    return Error(Code::kInvalidArgument, format("cannot keep reviews in {}", belljar::quoted(state_dir)))
        .reason("there is no absolute state directory")
        .next("set HOME or XDG_STATE_HOME");
  std::error_code failed;
  std::filesystem::create_directories(state_dir, failed);
  const std::string directory = state_dir + "/reviews";
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return Error(Code::kUnavailable, format("cannot make {}", belljar::quoted(directory))).sys(errno, "mkdir");
  const UniqueFd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status{};
  if (!opened.valid() || ::fstat(opened.get(), &status) != 0)
    return Error(Code::kUnavailable, format("cannot open {}", belljar::quoted(directory))).sys(errno, "open");
  if (status.st_uid != ::geteuid() || (status.st_mode & 022U) != 0)
    return Error(Code::kPermissionDenied, format("cannot trust {}", belljar::quoted(directory)))
        .reason("it belongs to somebody else, or others may write it")
        .next("remove it, or `chmod 700` it");
  return ReviewQueue(directory);
}

Result<std::vector<ReviewItem>> ReviewQueue::list() const {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory_.c_str()), ::closedir);
  if (!entries) return Error(Code::kUnavailable, format("cannot read {}", belljar::quoted(directory_))).sys(errno, "opendir");
  std::vector<ReviewItem> items;
  while (const dirent* entry = ::readdir(entries.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
    const std::string_view name = entry->d_name;
    if (!name.ends_with(".json") || !is_id(name.substr(0, name.size() - 5))) continue;
    if (auto item = find(name.substr(0, name.size() - 5))) items.push_back(std::move(*item));
  }
  std::ranges::sort(
      items, [](const ReviewItem& a, const ReviewItem& b) { return std::tie(a.asked_ms, a.id) < std::tie(b.asked_ms, b.id); });
  return items;
}

Result<ReviewItem> ReviewQueue::find(std::string_view id) const {
  if (!is_id(id)) return not_found(id);
  const std::string base = directory_ + "/" + std::string(id);
  const auto text = read_file(base + ".json");
  if (!text) return not_found(id);
  auto item = item_of(std::string(id), *text);
  if (!item) return Error(Code::kDataLoss, format("cannot read the review {}", belljar::quoted(id))).reason("its file is damaged");
  if (const auto answer = read_file(base + ".answer")) {
    // A damaged answer is none that allows.
    item->decision = decision_of(*answer).value_or(ReviewDecision{ReviewAnswer::kDeny, "damaged"});
    item->state = ReviewState::kAnswered;
  } else if (now_ms() >= item->deadline_ms) {
    item->state = ReviewState::kExpired;
  }
  return std::move(*item);
}

bool ReviewQueue::is_approved(const ReviewRequest& request) const {
  const auto text = read_file(directory_ + kApprovals);
  if (!text) return false;
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = std::min(text->find('\n', at), text->size());
    const auto node = policy::parse_json_document({std::string_view(*text).substr(at, end - at), "approvals"});
    at = end + 1;
    if (!node || node->kind != Node::Kind::kTable) continue;
    const std::string scope = text_of(*node, "scope");
    const bool covers =
        scope == "always" || (scope == "session" && !request.session.empty() && text_of(*node, "session") == request.session);
    if (covers && text_of(*node, "tool") == request.tool && text_of(*node, "call") == request.call) return true;
  }
  return false;
}

Result<void> ReviewQueue::remember(const ReviewRequest& request, ReviewAnswer answer) const {
  const std::string path = directory_ + kApprovals;
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return Error(Code::kUnavailable, format("cannot write {}", belljar::quoted(path))).sys(errno, "open");
  // One write, so that two who append at once do not mix.
  return write_review(file.get(), format(R"({{"scope":"{}","session":{},"tool":{},"call":{}}})", to_string(answer),
                                         json_text(request.session), json_text(request.tool), json_text(request.call)) +
                                      "\n");
}

void ReviewQueue::forget_old(std::vector<ReviewItem> items) const {
  std::erase_if(items, [](const ReviewItem& item) { return item.state == ReviewState::kWaiting; });
  for (std::size_t i = 0; i + kMostKept < items.size() + 1; ++i) {
    const std::string base = directory_ + "/" + items[i].id;
    ::unlink((base + ".json").c_str());
    ::unlink((base + ".answer").c_str());
  }
}

Result<std::string> ReviewQueue::submit(const ReviewRequest& request, milliseconds patience) const {
  if (is_approved(request)) return std::string();
  return put(request, patience);
}

Result<std::string> ReviewQueue::put(const ReviewRequest& request, milliseconds patience) const {
  if (request.call.size() > kMostCall)
    return Error(Code::kResourceExhausted, "cannot keep a call for review")
        .reason(format("it has {} bytes, more than anybody reads", request.call.size()));
  std::vector<ReviewItem> items = BELLJAR_TRY(list());
  const auto waiting = static_cast<std::size_t>(std::ranges::count(items, ReviewState::kWaiting, &ReviewItem::state));
  if (waiting >= kMostWaiting)
    return Error(Code::kResourceExhausted, "cannot keep a call for review")
        .reason(format("{} wait already", waiting))
        .next("answer them: `belljar review list`");
  forget_old(std::move(items));
  std::string id = BELLJAR_TRY(make_id());
  const std::int64_t now = now_ms();
  BELLJAR_CHECK(create_whole(directory_, directory_ + "/" + id + ".json", to_json(request, now, now + patience.count())));
  return id;
}

Result<void> ReviewQueue::decide(const std::string& id, ReviewDecision decision) const {
  return create_whole(directory_, directory_ + "/" + id + ".answer", format("{} {}\n", to_string(decision.answer), decision.by));
}

Result<void> ReviewQueue::record(const ReviewRequest& request, const ReviewDecision& decision) const {
  return decide(BELLJAR_TRY(put(request, milliseconds(0))), decision);
}

Result<ReviewDecision> ReviewQueue::wait(const std::string& id) const {
  for (;;) {
    if (auto decision = BELLJAR_TRY(wait_for(id, std::chrono::hours(24)))) return *std::move(decision);
  }
}

Result<std::optional<ReviewDecision>> ReviewQueue::wait_for(const std::string& id, milliseconds limit, int stop) const {
  if (id.empty()) return std::optional(ReviewDecision{ReviewAnswer::kOnce, "approval"});
  const UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!watch.valid() || ::inotify_add_watch(watch.get(), directory_.c_str(), IN_CREATE | IN_MOVED_TO) < 0)
    return Error(Code::kUnavailable, format("cannot watch {}", belljar::quoted(directory_))).sys(errno, "inotify_add_watch");
  const auto start = std::chrono::steady_clock::now();
  std::optional<milliseconds> patience;
  for (;;) {
    const ReviewItem item = BELLJAR_TRY(find(id));
    if (item.state == ReviewState::kAnswered) return std::optional(item.decision);
    // The patience is of the steady clock: who turns the other one neither answers nor prolongs.
    if (!patience) patience = milliseconds(std::max<std::int64_t>(item.deadline_ms - now_ms(), 0));
    const auto past = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
    if (*patience <= past) {
      const auto denied = decide(id, {ReviewAnswer::kDeny, "timeout"});
      if (denied) return std::optional(ReviewDecision{ReviewAnswer::kDeny, "timeout"});
      if (denied.error().code() != Code::kAlreadyExists) return denied.error();
      continue;  // somebody answered in this moment
    }
    if (limit <= past) return std::optional<ReviewDecision>();
    const auto left = std::min(*patience, limit) - past;
    pollfd ready[] = {{watch.get(), POLLIN, 0}, {stop, POLLIN, 0}};
    ::poll(ready, 2, static_cast<int>(std::min<std::int64_t>(left.count() + 1, 60'000)));
    if (ready[1].revents != 0) return std::optional<ReviewDecision>();
    char events[4096];
    while (::read(watch.get(), events, sizeof events) > 0) {
    }
  }
}

Result<ReviewDecision> ReviewQueue::ask(const ReviewRequest& request, milliseconds patience) const {
  return wait(BELLJAR_TRY(submit(request, patience)));
}

Result<void> ReviewQueue::answer(std::string_view id, ReviewAnswer answer) const {
  const ReviewItem item = BELLJAR_TRY(find(id));
  const auto late = [&](std::string why) {
    return Error(Code::kFailedPrecondition, format("cannot answer the review {}", belljar::quoted(id))).reason(std::move(why));
  };
  if (item.state == ReviewState::kExpired) return late("its time is over, so it was denied");
  auto decided = decide(item.id, {answer, "person"});
  if (!decided && decided.error().code() == Code::kAlreadyExists) {
    const ReviewItem now = BELLJAR_TRY(find(id));
    return late(format("it was answered before: {} ({})", to_string(now.decision.answer), now.decision.by));
  }
  if (!decided) return decided;
  if (answer == ReviewAnswer::kSession || answer == ReviewAnswer::kAlways) return remember(item.request, answer);
  return {};
}

}  // namespace belljar
