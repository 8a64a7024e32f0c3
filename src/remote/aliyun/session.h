// One session of AgentBay that runs: commands go to it by its own address where it has one, by the control plane else.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "belljar/result.h"
#include "http/client.h"
#include "remote/aliyun/rpc.h"
#include "remote/aliyun/tools.h"
#include "remote/aliyun/wire.h"
#include "remote/shell/machine.h"

namespace belljar::remote::aliyun {

// A session as the service describes it.
struct SessionAccess {
  std::string id, status;                      // status may be empty
  std::string link_url, token;                 // empty: only the control plane leads there
  std::map<std::string, std::string> servers;  // of each tool
};

// Data of CreateMcpSession and GetSession. An address over plain http is as none: a token does not go there. Errors: kDataLoss, an
// id or a token that is none.
Result<SessionAccess> parse_session_access(const Json& data);

class SessionTools final : public Tools {
 public:
  SessionTools(Rpc rpc, SessionAccess access) : rpc_(std::move(rpc)), id_(access.id), access_(std::move(access)) {}
  const std::string& id() const noexcept { return id_; }
  const Rpc& rpc() const noexcept { return rpc_; }
  Result<Content> call(const std::string& tool, const Json& arguments, std::chrono::milliseconds patience,
                       int cancel_fd) const override;

 private:
  struct Way {
    std::string url, token, server;  // url empty: by the control plane
  };
  Way way_to(const std::string& tool) const;
  Result<Content> call_directly(Way way, const std::string& tool, const Json& arguments, http::Clock::time_point deadline,
                                int cancel_fd) const;
  Result<Content> call_by_rpc(const std::string& server, const std::string& tool, const Json& arguments,
                              std::chrono::milliseconds patience, int cancel_fd) const;
  // Another token for the one that expired. Errors: kUnauthenticated, it is the same.
  Result<void> renew(const std::string& expired, int cancel_fd) const;
  Error refused(long status, const std::string& token) const;

  Rpc rpc_;
  std::string id_;
  mutable std::mutex mutex_;
  mutable SessionAccess access_;  // guarded by mutex_
};

class Session final : public shell::Machine {
 public:
  // `idle`: after how long without use the service ends it.
  Session(Rpc rpc, SessionAccess access, std::chrono::milliseconds idle) : tools_(std::move(rpc), std::move(access)), idle_(idle) {}
  const std::string& id() const noexcept override { return tools_.id(); }
  Result<shell::ScriptOutput> run(const std::string& script, std::chrono::milliseconds patience, int cancel_fd) const override;
  Result<void> health(int cancel_fd = -1) const override;
  Limits limits() const noexcept override;

 private:
  void keep_alive(std::chrono::milliseconds patience, int cancel_fd) const;

  SessionTools tools_;
  std::chrono::milliseconds idle_;
  mutable std::mutex mutex_;
  mutable http::Clock::time_point refreshed_ = http::Clock::now();  // guarded by mutex_
};

// Runs `script` by the tool `shell`, which ends it after `longest`. Errors: as Machine::run; kUnimplemented, it is no UTF-8.
Result<shell::ScriptOutput> run_by_shell(const Tools& tools, const std::string& script, std::chrono::milliseconds longest,
                                         std::chrono::milliseconds patience, int cancel_fd);

}  // namespace belljar::remote::aliyun
