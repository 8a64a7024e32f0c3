// The sandboxes of one client: made when first asked for, started anew when they have ended.
//
// The default one belongs to a workspace, which can change when the client's roots do; then it is ended and
// another made. Those that the model made itself keep theirs. One that has ended by itself (out of memory,
// idle) is started again on its next use: files of the workspace are still there, processes and private files
// are gone.
//
// A start may take long or hang, and it happens with the mutex held, because two calls must not make the
// default sandbox twice. So kill_all() cancels the token that every start is given before it asks for the
// mutex. Otherwise a client that leaves during a start would never be let go.
//
// Options that concern judging are set last: a toolbox without a judge refuses everything (options.hook), so
// that a call that comes without its own hook cannot act.
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

Result<void> end(ClientSandbox& entry) {
  auto stopped = entry.sandbox->stop();
  if (entry.put_away) entry.put_away();
  return stopped;
}

}  // namespace

Result<std::shared_ptr<ClientSandbox>> ClientSandboxes::make(std::string id, const SandboxSpec& spec) {
  if (closed_) return Error(Code::kCanceled, "cannot make a sandbox").reason("the client is gone");
  if (sandboxes_.size() >= kMost) {
    return Error(Code::kResourceExhausted, "cannot make another sandbox")
        .reason(format("there are {} already", kMost))
        .next("end one with sandbox_kill");
  }
  SandboxSetup setup = BELLJAR_TRY(host_.make(spec, closing_));
  for (std::string& warning : setup.warnings) host_.log("warning", std::move(warning));
  if (setup.record) BELLJAR_CHECK(setup.record());
  if (auto started = setup.sandbox->start(); !started) {
    if (setup.put_away) setup.put_away();
    return std::move(started).error();
  }
  ToolOptions options = host_.tools;
  options.workspace_name = setup.named;
  if (options.texts == ToolTexts::kBelljar) options.shell = setup.shell;
  options.timeout = setup.timeout;
  // Each call brings its own (ToolContext::hook).
  options.hook = [](const ToolRequest&) { return ToolVerdict{false, "nobody has judged it", ""}; };
  auto entry = std::make_shared<ClientSandbox>();
  entry->id = id;
  entry->spec = spec;
  entry->sandbox = setup.sandbox;
  entry->policy = std::move(setup.policy);
  entry->hook = [judge = std::move(setup.judge), decide = host_.decide,
                 context = ActContext{setup.sandbox->workspace(), setup.calls, setup.secrets, setup.files}](
                    const ToolRequest& request, Call& call) {
    return *(call.verdict = decide(judge ? judge(request) : Opinion{}, request, context, call));
  };
  entry->record = std::move(setup.calls);
  entry->put_away = std::move(setup.put_away);
  // What is in the transaction already is somebody's work: a rollback ends there.
  if (const auto before = entry->sandbox->changes(); before && !before->empty()) {
    entry->base = "mcp-" + random_hex(6);
    BELLJAR_CHECK(entry->sandbox->snapshot(entry->base));
  }
  entry->toolbox = std::make_unique<Toolbox>(entry->sandbox, std::move(options));
  entry->created = std::chrono::system_clock::now();
  sandboxes_[id] = entry;
  host_.log("info", format("sandbox {}: {}, workspace {}", id, entry->sandbox->backend(), quoted(entry->sandbox->workspace())));
  return entry;
}

// One that has ended (out of memory, idle for too long) is started anew: its processes and private files are gone, and the model is
// told by the log alone. Its workspace is as it was.
Result<std::shared_ptr<ClientSandbox>> ClientSandboxes::alive(std::shared_ptr<ClientSandbox> entry) {
  const auto health = entry->sandbox->health();
  if (health) return entry;
  host_.log("warning", format("sandbox {} is started anew: {}", entry->id, health.error().line()));
  (void)entry->sandbox->stop();
  BELLJAR_CHECK(entry->sandbox->start());
  return entry;
}

Result<std::shared_ptr<ClientSandbox>> ClientSandboxes::get_default(const SandboxSpec& spec) {
  const std::string id(kDefault);
  const std::lock_guard lock(mutex_);
  const auto known = sandboxes_.find(id);
  if (known == sandboxes_.end()) return make(id, spec);
  if (known->second->spec == spec) return alive(known->second);
  (void)end(*known->second);
  sandboxes_.erase(known);
  return make(id, spec);
}

Result<std::shared_ptr<ClientSandbox>> ClientSandboxes::get(const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (const auto known = sandboxes_.find(id); known != sandboxes_.end()) return alive(known->second);
  return Error(Code::kNotFound, format("there is no sandbox {}", quoted(id.substr(0, 80))))
      .next("sandbox_list shows those there are");
}

Result<std::shared_ptr<ClientSandbox>> ClientSandboxes::create(const SandboxSpec& spec) {
  const std::lock_guard lock(mutex_);
  SandboxSpec numbered = spec;
  numbered.number = ++serial_;
  return make(format("s{}", serial_), numbered);
}

std::vector<std::shared_ptr<ClientSandbox>> ClientSandboxes::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ClientSandbox>> entries;
  for (const auto& [id, entry] : sandboxes_) entries.push_back(entry);
  return entries;
}

Result<void> ClientSandboxes::kill(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto known = sandboxes_.find(id);
  if (known == sandboxes_.end())
    return Error(Code::kNotFound, format("there is no sandbox {}", quoted(id.substr(0, 80))))
        .next("sandbox_list shows those there are");
  const std::shared_ptr<ClientSandbox> entry = known->second;
  sandboxes_.erase(known);
  return end(*entry);
}

void ClientSandboxes::kill_all() noexcept {
  closing_.cancel();
  std::map<std::string, std::shared_ptr<ClientSandbox>> entries;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    entries = std::exchange(sandboxes_, {});
  }
  for (const auto& [id, entry] : entries) (void)end(*entry);
}

}  // namespace belljar::mcp
