// One client of the Model Context Protocol (https://modelcontextprotocol.io/specification): from its messages to tools in
// sandboxes, and back. Knows no transport.
//
// Each call of a tool has a thread of its own, so that a long one holds up neither a ping nor its own cancellation.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "belljar/tools.h"
#include "mcp/boxes.h"
#include "mcp/client.h"
#include "mcp/rpc.h"

namespace belljar::mcp {

struct SessionOptions {
  BoxMaker make;
  ToolOptions tools;
  std::string version;
  // The first root of the client is the workspace. False: the command line names one.
  bool roots_are_workspace = true;
};

class Session {
 public:
  // `send`: one message, a line without its end; from any thread.
  Session(SessionOptions options, std::function<void(std::string line)> send);
  ~Session() { close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // From one thread. Never blocks for what a message asks.
  void take(std::string_view line);
  void line_too_long(std::size_t limit);
  // True once no call is in hand.
  bool wait_idle(std::chrono::milliseconds patience);
  // Cancels what is in hand, ends the sandboxes, waits for the threads. Nothing is answered any more.
  void close();

 private:
  using Reply = std::function<void(Json)>;  // null: nothing is answered
  struct InHand {
    CancelToken cancel;
    bool cancelled = false;
  };
  struct Worker {
    std::thread thread;
    std::atomic<bool> done{false};
  };

  void take_batch(Json&& batch);
  void take_one(Json&& json, const Reply& reply);
  void take_request(Message&& request, const Reply& reply);
  void take_notification(const Message& message);
  Json initialize(const Json& params);
  Json list_tools() const;
  void call_tool(const Message& request, const Reply& reply);
  Json run_tool(const std::string& name, Json arguments, const Json& params, const CancelToken& cancel);
  Result<Json> run_own_tool(const std::string& name, const Json& arguments, const CancelToken& cancel);
  Result<std::shared_ptr<Box>> box_for(const Json& arguments, const CancelToken& cancel);
  Result<BoxWish> default_wish(const CancelToken& cancel);
  Result<Json> create_box(const Json& arguments, const CancelToken& cancel);
  void read_resource(const Message& request, const Reply& reply);
  Result<Json> resource(const std::string& uri, const CancelToken& cancel);
  void in_background(const Message& request, const Reply& reply, std::function<Json(const CancelToken&)> work);
  void answer_in_thread(Worker& worker, const std::string& key, const Json& id, const Reply& reply,
                        const std::function<Json()>& work);
  void reap(bool all);
  void send(const Json& json);
  void log(std::string_view level, std::string_view text);
  void remember(const std::vector<Violation>& violations, const std::string& box);
  bool is_own_tool(std::string_view name) const;
  bool offers_boxes() const noexcept { return options_.tools.texts == ToolTexts::kBelljar; }

  const SessionOptions options_;
  const std::function<void(std::string)> send_;
  Client client_;
  Boxes boxes_;
  std::string protocol_;  // of the reading thread: negotiated; empty before
  std::atomic<int> log_level_;
  std::atomic<bool> closed_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  // guarded by mutex_
  std::map<std::string, InHand> in_hand_;  // by the request's id, as JSON text
  std::list<Worker> workers_;
  std::list<Json> violations_;  // newest last
};

}  // namespace belljar::mcp
