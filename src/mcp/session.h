// A session with one client of the Model Context Protocol (https://modelcontextprotocol.io/specification): from its messages to
// tools in sandboxes, and back. Knows no transport.
//
// Each call of a tool has a thread of its own, so that a long one holds up neither a ping nor its own cancellation.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "belljar/tools.h"
#include "mcp/client.h"
#include "mcp/client_sandboxes.h"
#include "mcp/defence.h"
#include "mcp/rpc.h"
#include "mcp/task_file.h"

namespace belljar::mcp {

struct SessionOptions {
  SandboxMaker make;
  ToolOptions tools;
  std::string version;
  // The first root of the client is the workspace. False: the command line names one.
  bool roots_are_workspace = true;
  // The sandboxes have transactions: the tools that take snapshots are offered.
  bool transactions = false;
  DefenceOptions defence;
  // A file of the user's with the user's newest words, looked at before each call; empty: none.
  std::string task_file;
  // A prompt `task` is offered, whose argument is the user's words. For clients in which no model gets prompts.
  bool task_prompt = false;
};

// What a session says. `stream`: which receive() it belongs to, 0 where it belongs to none; `last`: nothing more belongs to that
// one. An empty `line` only says that.
struct Outgoing {
  std::string line;
  std::uint64_t stream = 0;
  bool last = false;
};

class Session {
 public:
  // `send`: one message, a line without its end; from any thread.
  Session(SessionOptions options, std::function<void(Outgoing)> send);
  ~Session() { close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // From one thread. Never blocks for what a message asks. `stream`: any number but 0, for a transport that tells answers apart.
  void receive(std::string_view line, std::uint64_t stream = 1);
  // The protocol's version, once it is agreed on. From the thread of receive().
  const std::string& protocol() const noexcept { return protocol_; }
  // No call is in hand.
  bool idle();
  void line_too_long(std::size_t limit);
  // True once no call is in hand.
  bool wait_idle(std::chrono::milliseconds patience);
  // Cancels what is in hand, ends the sandboxes, waits for the threads. Nothing is answered any more.
  void close();

 private:
  using Reply = std::function<void(Json)>;  // null: nothing is answered
  // While it lives, what this thread says belongs to that stream.
  class StreamScope;
  struct ActiveCall {
    CancelToken cancel;
    bool cancelled = false;
  };
  struct Worker {
    std::thread thread;
    std::atomic<bool> done{false};
  };

  void handle_batch(Json&& batch, const Reply& reply);
  void handle_message(Json&& json, const Reply& reply);
  void handle_request(Message&& request, const Reply& reply);
  void handle_notification(const Message& message);
  Json initialize(const Json& params);
  Json list_tools() const;
  static Json list_prompts();
  void get_prompt(const Message& request, const Reply& reply);
  void call_tool(const Message& request, const Reply& reply);
  Json run_tool(const std::string& name, Json arguments, const Json& params, const CancelToken& cancel,
                const std::string& conversation);
  Json show_withheld(ClientSandbox& entry, const Json& id, const CancelToken& cancel, const std::string& conversation);
  Result<Json> run_own_tool(const std::string& name, const Json& arguments, const CancelToken& cancel);
  static Result<Json> take_snapshot(ClientSandbox& entry, const std::string& name);
  static Result<Json> roll_back(ClientSandbox& entry, const std::optional<std::string>& to);
  Result<Json> run_layers_tool(const std::string& name, const Json& arguments, const CancelToken& cancel);
  Result<std::shared_ptr<ClientSandbox>> sandbox_for(const Json& arguments, const CancelToken& cancel);
  Result<void> check_root(const std::string& id, const CancelToken& cancel);
  Result<SandboxSpec> default_spec(const CancelToken& cancel);
  Result<Json> create_sandbox(const Json& arguments, const CancelToken& cancel);
  void read_resource(const Message& request, const Reply& reply);
  Result<Json> resource(const std::string& uri, const CancelToken& cancel);
  void in_background(const Message& request, const Reply& reply, std::function<Json(const CancelToken&)> work);
  void answer_in_thread(Worker& worker, const std::string& key, const Json& id, const Reply& reply,
                        const std::function<Json()>& work);
  void reap(bool all);
  void send(const Json& json) { send(json, stream_here()); }
  void send(const Json& json, std::uint64_t stream);
  std::uint64_t stream_here();
  std::string note_meta(const Json& params);
  ToolVerdict decide(const Opinion& opinion, const ToolRequest& request, const ActContext& context, const Call& call);
  void log(std::string_view level, std::string_view text);
  void remember(const std::vector<Violation>& violations, const std::string& entry);
  bool is_own_tool(std::string_view name) const;
  bool offers_sandboxes() const noexcept { return options_.tools.texts == ToolTexts::kBelljar; }

  const SessionOptions options_;
  const std::function<void(Outgoing)> send_;
  Client client_;
  Defence defence_;
  ClientSandboxes sandboxes_;
  std::string protocol_;  // of the reading thread: negotiated; empty before
  TaskFile task_file_;    // of the reading thread
  std::atomic<int> log_level_;
  std::atomic<bool> closed_{false};
  std::mutex streams_mutex_;
  // guarded by streams_mutex_
  std::map<std::thread::id, std::uint64_t> streams_;  // of who is at work
  std::mutex mutex_;
  std::condition_variable changed_;
  // guarded by mutex_
  std::map<std::string, ActiveCall> active_;  // by the request's id, as JSON text
  std::list<Worker> workers_;
  std::list<Json> violations_;  // newest last
};

}  // namespace belljar::mcp
