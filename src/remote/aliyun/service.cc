// Sessions of AgentBay. Deletes, pauses and resumes are asynchronous: the answer says that the request was
// taken, and the state is asked for until it is there, in pauses that grow.
//
// A create is sent once and labelled with a random tag. When its answer is lost, sweep() looks for the tag and
// ends what it finds. More than one hit means that the service took no notice of the label, and then nothing is
// ended: the sessions may be others'.
//
// A session whose contexts failed is ended and the start fails. The service's own clients go on; commands would
// then miss files that the caller counts on.
#include "remote/aliyun/service.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/random.h"
#include "belljar/aliyun.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "http/client.h"
#include "remote/address.h"
#include "remote/aliyun/address.h"
#include "remote/aliyun/rpc.h"
#include "remote/aliyun/session.h"
#include "remote/aliyun/wire.h"
#include "remote/json.h"
#include "remote/retry.h"
#include "remote/shell/machine.h"

namespace belljar::remote::aliyun {

using http::Clock;
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr char kTag[] = "belljar";  // the label of what we made

// Longer each time, up to `most`.
class Pace {
 public:
  Pace(milliseconds most, milliseconds within, CancelToken cancel = {})
      : most_(most), deadline_(Clock::now() + within), cancel_(std::move(cancel)) {}
  // False: no time is left. Errors: kCanceled.
  Result<bool> next() {
    if (Clock::now() + pause_ >= deadline_) return false;
    BELLJAR_CHECK(wait_for(pause_, cancel_.fd()));
    pause_ = std::min(pause_ * 3 / 2, most_);
    return true;
  }

 private:
  milliseconds pause_ = 250ms, most_;
  Clock::time_point deadline_;
  CancelToken cancel_;
};

std::string named(const char* what, const std::string& id) { return format("cannot {} the session {}", what, belljar::quoted(id)); }

bool is_over(const Json& data) {
  const std::string status = text_in(data, "Status");
  return status == "DELETED" || status == "FINISH";
}

// Of one context among the items of GetContextInfo. Several items may speak of it: up and down.
std::string status_of(const Json& items, const std::string& context) {
  std::string status;
  for (const Json& group : items) {
    // Items come as they are, or as text in {type, data}.
    const Json inner = group.is_object() && group.contains("data") ? unwrapped(group["data"]) : Json::array({group});
    for (const Json& item : inner) {
      if (text_in(item, "contextId") != context || text_in(item, "taskType") == "upload") continue;
      status = text_in(item, "status");
      if (status == "Failed") return status;
    }
  }
  return status;
}

// Whether something may have been made although no answer says so.
bool may_be_made(const Answer& failure) {
  const Code code = code_of(failure);
  return failure.status / 100 == 5 && code == Code::kUnavailable;
}

}  // namespace

Result<void> check_options(const AliyunOptions& options) {
  const auto wrong = [](std::string what, std::string next) {
    return Error(Code::kInvalidArgument, std::move(what)).next(std::move(next));
  };
  if (options.idle_release < 1min)
    return wrong("a session cannot be released after less than a minute unused", "set idle_release to a minute or more");
  if (options.request_timeout <= 0ms) return wrong("the request timeout must be positive", "set request_timeout");
  if (options.settle_timeout <= 0ms) return wrong("the settle timeout must be positive", "set settle_timeout");
  if (options.labels.contains(kTag)) return wrong("the label `belljar` is ours", "use another name");
  for (const AliyunContext& context : options.contexts) {
    if (context.context_id.empty() || !context.path.starts_with('/'))
      return wrong("a context needs an id and an absolute path", "name both");
    if (!context.sync_policy.empty() && !Json::parse(context.sync_policy, nullptr, false).is_object())
      return wrong(format("the sync policy of the context {} is no JSON object", belljar::quoted(context.context_id)),
                   "correct it");
  }
  return {};
}

std::string_view AgentBay::workspace() const noexcept {
  return options_.image_id.starts_with("code") ? "/workspace" : "/home/wuying";
}

std::string AgentBay::host() const {
  const auto parts = http::parse_url(rpc_.address().url);
  return parts ? parts->host : std::string();
}

Result<void> AgentBay::check_supported(const Policy& /*policy*/) const { return {}; }

shell::ClauseEnforcement AgentBay::holds(const Policy& /*policy*/, std::string_view clause) const {
  if (clause != "network")
    return {
        .enforced = Enforced::kNone, .mechanism = {}, .detail = "the image decides (AgentBay's console), and nothing asks for it"};
  if (options_.policy_id.empty() && options_.network_id.empty())
    return {
        .enforced = Enforced::kNone,
        .mechanism = {},
        .detail =
            "AgentBay closes a session's network by a policy or a network of the account only: name one (policy_id, network_id)"};
  const bool by_policy = !options_.policy_id.empty();
  return {.enforced = Enforced::kPartial,
          .mechanism = format("{} {}", by_policy ? "McpPolicyId" : "NetworkId",
                              escaped(by_policy ? options_.policy_id : options_.network_id)),
          .detail = "what it closes is written in the account, and nothing here checks"};
}

Fields AgentBay::wanted(const std::string& tag) const {
  Json labels = options_.labels;
  labels[kTag] = tag;
  Fields fields = {{"ImageId", options_.image_id},
                   {"Timeout", format("{}", std::chrono::ceil<std::chrono::seconds>(options_.idle_release).count())},
                   {"Labels", dump(labels)},
                   {"McpPolicyId", options_.policy_id},
                   {"NetworkId", options_.network_id},
                   {"LoginRegionId", rpc_.address().region}};
  Json contexts = Json::array();
  for (const AliyunContext& context : options_.contexts) {
    Json item = {{"ContextId", context.context_id}, {"Path", context.path}};
    if (!context.sync_policy.empty()) item["Policy"] = context.sync_policy;
    contexts.push_back(std::move(item));
  }
  if (!contexts.empty()) fields["PersistenceDataList"] = dump(contexts);
  return fields;
}

Result<std::shared_ptr<const shell::Machine>> AgentBay::create(const Policy& /*policy*/, const CancelToken& cancel) const {
  const std::string tag = random_hex(16);
  const std::string what = format("cannot create a session of the image {}", belljar::quoted(options_.image_id));
  const auto answer = rpc_.ask("CreateMcpSession", wanted(tag), Repeat::kOnlyRefused);
  // Who could not be reached at all made nothing; nobody knows which of the two it was.
  if (!answer) return sweep(tag, Error(answer.error().code(), what).reason(answer.error().line()));
  if (!answer->success) {
    Error error = rpc_.refused(*answer, what);
    return may_be_made(*answer) ? sweep(tag, error) : error;
  }
  auto access = parse_session_access(answer->data);
  if (!access) return sweep(tag, access.error());
  if (const auto ready = await_contexts(access->id, cancel); !ready) return abandon(access->id, ready.error());
  return std::make_shared<const Session>(rpc_, *std::move(access), options_.idle_release);
}

Error AgentBay::abandon(const std::string& id, const Error& why) const {
  if (kill(id)) return why;
  // Nobody else would know of it.
  return Error(why.code(), why.what())
      .reason(why.reason())
      .next(format("end the session {}, which could not be ended from here", belljar::quoted(id)));
}

Error AgentBay::sweep(const std::string& tag, const Error& why) const {
  Error unsure = Error(why.code(), why.what())
                     .reason(why.reason())
                     .next(format("check the network; a session that was made all the same has the label belljar={}", tag));
  const auto found = rpc_.ask("ListSession", {{"Labels", dump({{kTag, tag}})}, {"MaxResults", "10"}}, Repeat::kAlways);
  if (!found || !found->success || !found->data.is_array()) return unsure;
  if (found->data.size() > 1) return unsure;  // the tag is of one session: the label was not heeded, and these are others'
  for (const Json& session : found->data) {
    const std::string id = text_in(session, "SessionId");
    if (id.empty()) return unsure;
    if (!kill(id)) return abandon(id, why);
  }
  return why;
}

// As the service's own clients do: until every context is there or failed. A failed one is an error here, where they go on.
Result<void> AgentBay::await_contexts(const std::string& id, const CancelToken& cancel) const {
  if (options_.contexts.empty()) return {};
  const std::string what = "cannot load the contexts of the session";
  for (Pace pace(5s, options_.settle_timeout, cancel);;) {
    const Answer answer = BELLJAR_TRY(rpc_.call("GetContextInfo", {{"SessionId", id}}, Repeat::kAlways, what));
    const Json items = answer.data.contains("ContextStatus") ? unwrapped(answer.data["ContextStatus"]) : Json();
    std::size_t there = 0;
    for (const AliyunContext& context : options_.contexts) {
      const std::string status = status_of(items, context.context_id);
      if (status == "Failed")
        return Error(Code::kUnavailable, what)
            .reason(format("the service says that {} failed", belljar::quoted(context.context_id)))
            .next("check the context, or leave it out");
      if (status == "Success") ++there;
    }
    if (there == options_.contexts.size()) return {};
    if (!BELLJAR_TRY(pace.next()))
      return Error(Code::kDeadlineExceeded, what).reason("they are not there in time").next("set a longer settle_timeout");
  }
}

Result<Answer> AgentBay::find(const std::string& id, const std::string& what, int cancel_fd) const {
  return rpc_.call("GetSession", {{"SessionId", id}}, Repeat::kAlways, what, cancel_fd);
}

Result<Answer> AgentBay::await_status(const std::string& id, std::string_view wanted, std::string_view meanwhile,
                                      const std::string& what, const CancelToken& cancel) const {
  for (Pace pace(2s, options_.settle_timeout, cancel);;) {
    Answer answer = BELLJAR_TRY(find(id, what, cancel.fd()));
    const std::string status = text_in(answer.data, "Status");
    if (status == wanted) return answer;
    if (status != meanwhile)
      return Error(Code::kFailedPrecondition, what).reason("its status is " + shown(status, {})).next("try again");
    if (!BELLJAR_TRY(pace.next()))
      return Error(Code::kDeadlineExceeded, what).reason(format("it is {} for too long", status)).next("try again");
  }
}

Result<Answer> AgentBay::resume(const std::string& id, const std::string& what, const CancelToken& cancel) const {
  BELLJAR_CHECK(rpc_.call("ResumeSessionAsync", {{"SessionId", id}}, Repeat::kOnlyRefused, what));
  return await_status(id, "RUNNING", "RESUMING", what, cancel);
}

Result<std::shared_ptr<const shell::Machine>> AgentBay::connect(const std::string& id, const CancelToken& cancel) const {
  const std::string what = named("connect to", id);
  Answer answer = BELLJAR_TRY(find(id, what));
  std::string status = text_in(answer.data, "Status");
  if (status == "PAUSING") {
    BELLJAR_TRY(await_status(id, "PAUSED", status, what, cancel));
    status = "PAUSED";
  }
  if (status == "PAUSED") answer = BELLJAR_TRY(resume(id, what, cancel));
  else if (status == "RESUMING") answer = BELLJAR_TRY(await_status(id, "RUNNING", status, what, cancel));
  else if (is_over(answer.data) || status == "DELETING")
    return Error(Code::kNotFound, what).reason("its status is " + status).next("check the id of the session");
  return std::make_shared<const Session>(rpc_, BELLJAR_TRY(parse_session_access(answer.data)), options_.idle_release);
}

Result<bool> AgentBay::kill(const std::string& id, const CancelToken& cancel) const {
  const std::string what = named("end", id);
  const Answer answer =
      BELLJAR_TRY(rpc_.ask("DeleteSessionAsync", {{"SessionId", id}}, Repeat::kAlways, rpc_.patience(), cancel.fd()));
  if (is_gone(answer)) return false;
  if (!answer.success) return rpc_.refused(answer, what);
  // What goes wrong with a look is no matter while there is time for another.
  std::string last;
  for (Pace pace(1s, options_.settle_timeout, cancel);;) {
    const auto seen = rpc_.ask("GetSessionDetail", {{"SessionId", id}}, Repeat::kAlways, rpc_.patience(), cancel.fd());
    if (seen && (is_gone(*seen) || (seen->success && is_over(seen->data)))) return true;
    if (!seen) last = seen.error().reason();
    else last = seen->success ? "its status is " + shown(text_in(seen->data, "Status"), {}) : rpc_.refused(*seen, what).reason();
    if (!BELLJAR_TRY(pace.next()))
      return Error(Code::kDeadlineExceeded, what).reason("it is not gone in time: " + last).next("look again later");
  }
}

Result<void> AgentBay::pause(const std::string& id, const CancelToken& cancel) const {
  const std::string what = named("pause", id);
  const Answer answer =
      BELLJAR_TRY(rpc_.ask("PauseSessionAsync", {{"SessionId", id}}, Repeat::kOnlyRefused, rpc_.patience(), cancel.fd()));
  if (!answer.success) {
    const Error refusal = rpc_.refused(answer, what);
    if (refusal.code() != Code::kUnimplemented && refusal.code() != Code::kPermissionDenied) return refusal;
    return Error(Code::kUnimplemented, what)
        .reason(refusal.reason())
        .next("ask Aliyun to open pausing for the account, or use another on_stop");
  }
  BELLJAR_TRY(await_status(id, "PAUSED", "PAUSING", what, cancel));
  return {};
}

Result<void> AgentBay::set_timeout(const std::string& id, milliseconds lifetime) const {
  const std::string what = named("set the time of", id);
  if (lifetime != options_.idle_release)
    return Error(Code::kUnimplemented, what)
        .reason("AgentBay takes the time when a session is made, and can only begin it anew")
        .next("give the idle_release it was made with, or make another");
  BELLJAR_TRY(rpc_.call("RefreshSessionIdleTime", {{"SessionId", id}}, Repeat::kAlways, what));
  return {};
}

}  // namespace belljar::remote::aliyun
