// The sandboxes of one client: the one that is there by default, and those it made itself.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/call_record.h"
#include "belljar/cancel.h"
#include "belljar/content_policy.h"
#include "belljar/redact.h"
#include "belljar/result.h"
#include "belljar/review.h"
#include "belljar/sandbox.h"
#include "belljar/tools.h"
#include "belljar/turn.h"

namespace belljar::mcp {

// The word of command rules and permission on an act.
enum class OpinionKind { kRun, kAsk, kRefuse };
struct Opinion {
  OpinionKind kind = OpinionKind::kRun;
  std::string reason, next;
};
// The answer to a question whether an act may be done.
struct QuestionOutcome : ToolVerdict {
  ReviewAnswer answer = ReviewAnswer::kDeny;
  std::string by;          // who answered, one word: "client", "person", "timeout", "approval" (an earlier answer), "nobody"
  std::string user_words;  // what the person asked for, where they said so
};
// Judges an act by the rules, before anybody is asked. Called from any thread.
using Judge = std::function<Opinion(const ToolRequest&)>;

// Which sandbox is wanted.
struct SandboxSpec {
  std::optional<std::string> workspace;  // unset: what the command line says
  bool read_only = false;                // narrower than the command line
  unsigned number = 0;                   // of those the client made; 0: the default one
  bool operator==(const SandboxSpec&) const = default;
};

// A sandbox as the program makes it, with all that judging and recording its calls needs.
struct SandboxSetup {
  std::shared_ptr<Sandbox> sandbox;                  // not started
  std::string named;                                 // another absolute name of its workspace, as it was given; empty: it has none
  std::vector<std::string> shell;                    // ToolOptions::shell, where the texts are Belljar's own
  Judge judge;                                       // empty: everything runs
  CallRecorder calls;                                // empty: verdicts and answers are not recorded
  std::shared_ptr<const Redactor> secrets;           // what no review shows; empty: known shapes alone
  WorkspaceFiles files;                              // what provenance sees of its workspace; empty: nothing
  std::string policy;                                // JSON, for the resource
  std::optional<std::chrono::milliseconds> timeout;  // the policy's, of a command
  std::vector<std::string> warnings;
  // May be empty. Before start(): tells the audit trail under what it works; an error refuses the start. After stop(): what is left
  // of it and nobody misses goes.
  std::function<Result<void>()> record;
  std::function<void()> put_away;
};
// `closing` is for the sandbox's start(), the first and any later: cancelled once the client is gone. Errors: as load_policy and
// make_sandbox.
using SandboxMaker = std::function<Result<SandboxSetup>(const SandboxSpec&, const CancelToken& closing)>;

// One call of a tool, from its message to its answer.
struct Call {
  std::string conversation;
  std::optional<ToolVerdict> verdict;  // unset: nobody was asked
  const Withheld* reveals = nullptr;   // what it wants to see, where that was withheld
};

// Where an act would be done, and how it is recorded.
struct ActContext {
  std::string workspace;
  CallRecorder record;  // may be empty
  std::shared_ptr<const Redactor> secrets;
  WorkspaceFiles files;
};

// Shared by the calls that use it. Its commands end with it.
struct ClientSandbox {
  std::string id;
  SandboxSpec spec;
  std::shared_ptr<Sandbox> sandbox;
  std::string policy;
  std::function<ToolVerdict(const ToolRequest&, Call&)> hook;  // what is asked before a change; writes the verdict down
  CallRecorder record;                                         // may be empty
  // Of its transaction: what this client may return to. `base`: where it began; empty: as the host has it.
  std::string base;
  std::vector<std::string> snapshots;  // oldest first; one call at a time uses them (layers_mutex)
  std::mutex layers_mutex;
  std::function<void()> put_away;    // after stop(); may be empty
  std::unique_ptr<Toolbox> toolbox;  // last: ends before the sandbox
  std::chrono::system_clock::time_point created;
};

// The services of the session that its sandboxes use.
struct SandboxHost {
  SandboxMaker make;
  ToolOptions tools;  // the hook is the host's
  // Between the judge's word and the act.
  std::function<ToolVerdict(const Opinion&, const ToolRequest&, const ActContext&, const Call&)> decide;
  std::function<void(std::string_view level, std::string text)> log;
};

// Safe from any thread.
class ClientSandboxes {
 public:
  static constexpr std::string_view kDefault = "default";
  static constexpr std::size_t kMost = 8;

  explicit ClientSandboxes(SandboxHost host) : host_(std::move(host)) {}
  ~ClientSandboxes() { kill_all(); }
  ClientSandboxes(const ClientSandboxes&) = delete;
  ClientSandboxes& operator=(const ClientSandboxes&) = delete;

  // The default one, for this workspace; made when it is first asked for, and anew when the workspace is another or it has ended.
  Result<std::shared_ptr<ClientSandbox>> get_default(const SandboxSpec& spec);
  // Started anew where it has ended. Errors: kNotFound.
  Result<std::shared_ptr<ClientSandbox>> get(const std::string& id);
  Result<std::shared_ptr<ClientSandbox>> create(const SandboxSpec& spec);
  std::vector<std::shared_ptr<ClientSandbox>> list() const;
  Result<void> kill(const std::string& id);
  // Also ends a start that is under way.
  void kill_all() noexcept;

 private:
  Result<std::shared_ptr<ClientSandbox>> make(std::string id, const SandboxSpec& spec);
  Result<std::shared_ptr<ClientSandbox>> alive(std::shared_ptr<ClientSandbox> entry);

  const SandboxHost host_;
  // A start may hang (a file system that does not answer), and who waits for it holds mutex_. Without a descriptor it never ends
  // one.
  const CancelToken closing_ = CancelToken::create().value_or(CancelToken());
  mutable std::mutex mutex_;
  // guarded by mutex_
  std::map<std::string, std::shared_ptr<ClientSandbox>> sandboxes_;
  unsigned serial_ = 0;
  bool closed_ = false;
};

}  // namespace belljar::mcp
