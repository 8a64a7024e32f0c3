#include "mcp/client_sandboxes.h"

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/random.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/tools.h"

namespace belljar::mcp {
namespace {

Result<void> end(Box& box) {
  auto stopped = box.sandbox->stop();
  if (box.put_away) box.put_away();
  return stopped;
}

}  // namespace

Result<std::shared_ptr<Box>> Boxes::make(std::string id, const BoxWish& wish) {
  if (closed_) return Error(Code::kCanceled, "cannot make a sandbox").reason("the client is gone");
  if (boxes_.size() >= kMost) {
    return Error(Code::kResourceExhausted, "cannot make another sandbox")
        .reason(format("there are {} already", kMost))
        .next("end one with sandbox_kill");
  }
  MadeBox made = BELLJAR_TRY(host_.make(wish, closing_));
  for (std::string& warning : made.warnings) host_.log("warning", std::move(warning));
  if (made.record) BELLJAR_CHECK(made.record());
  if (auto started = made.sandbox->start(); !started) {
    if (made.put_away) made.put_away();
    return std::move(started).error();
  }
  ToolOptions options = host_.tools;
  options.workspace_name = made.named;
  if (options.texts == ToolTexts::kBelljar) options.shell = made.shell;
  options.timeout = made.timeout;
  // Each call brings its own (ToolContext::hook).
  options.hook = [](const ToolRequest&) { return ToolVerdict{false, "nobody has judged it", ""}; };
  auto box = std::make_shared<Box>();
  box->id = id;
  box->wish = wish;
  box->sandbox = made.sandbox;
  box->policy = std::move(made.policy);
  box->hook = [judge = std::move(made.judge), decide = host_.decide,
               place = BoxPlace{made.sandbox->workspace(), made.calls, made.secrets}](const ToolRequest& request, Call& call) {
    return *(call.verdict = decide(judge ? judge(request) : Opinion{}, request, place, call));
  };
  box->record = std::move(made.calls);
  box->put_away = std::move(made.put_away);
  // What is in the transaction already is somebody's work: a rollback ends there.
  if (const auto before = box->sandbox->changes(); before && !before->empty()) {
    box->base = "mcp-" + random_hex(6);
    BELLJAR_CHECK(box->sandbox->snapshot(box->base));
  }
  box->toolbox = std::make_unique<Toolbox>(box->sandbox, std::move(options));
  box->created = std::chrono::system_clock::now();
  boxes_[id] = box;
  host_.log("info", format("sandbox {}: {}, workspace {}", id, box->sandbox->backend(), quoted(box->sandbox->workspace())));
  return box;
}

// One that has ended (out of memory, idle for too long) is started anew: its processes and private files are gone, and the model is
// told by the log alone. Its workspace is as it was.
Result<std::shared_ptr<Box>> Boxes::alive(std::shared_ptr<Box> box) {
  const auto health = box->sandbox->health();
  if (health) return box;
  host_.log("warning", format("sandbox {} is started anew: {}", box->id, health.error().line()));
  (void)box->sandbox->stop();
  BELLJAR_CHECK(box->sandbox->start());
  return box;
}

Result<std::shared_ptr<Box>> Boxes::get_default(const BoxWish& wish) {
  const std::string id(kDefault);
  const std::lock_guard lock(mutex_);
  const auto known = boxes_.find(id);
  if (known == boxes_.end()) return make(id, wish);
  if (known->second->wish == wish) return alive(known->second);
  (void)end(*known->second);
  boxes_.erase(known);
  return make(id, wish);
}

Result<std::shared_ptr<Box>> Boxes::get(const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (const auto known = boxes_.find(id); known != boxes_.end()) return alive(known->second);
  return Error(Code::kNotFound, format("there is no sandbox {}", quoted(id.substr(0, 80))))
      .next("sandbox_list shows those there are");
}

Result<std::shared_ptr<Box>> Boxes::create(const BoxWish& wish) {
  const std::lock_guard lock(mutex_);
  BoxWish numbered = wish;
  numbered.number = ++serial_;
  return make(format("s{}", serial_), numbered);
}

std::vector<std::shared_ptr<Box>> Boxes::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Box>> boxes;
  for (const auto& [id, box] : boxes_) boxes.push_back(box);
  return boxes;
}

Result<void> Boxes::kill(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto known = boxes_.find(id);
  if (known == boxes_.end())
    return Error(Code::kNotFound, format("there is no sandbox {}", quoted(id.substr(0, 80))))
        .next("sandbox_list shows those there are");
  const std::shared_ptr<Box> box = known->second;
  boxes_.erase(known);
  return end(*box);
}

void Boxes::kill_all() noexcept {
  closing_.cancel();
  std::map<std::string, std::shared_ptr<Box>> boxes;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    boxes = std::exchange(boxes_, {});
  }
  for (const auto& [id, box] : boxes) (void)end(*box);
}

}  // namespace belljar::mcp
