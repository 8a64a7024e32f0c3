// One sandbox that answers as AIO sandbox does (github.com/agent-infra/sandbox): commands and files, plain JSON over HTTP.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"
#include "http/client.h"
#include "remote/shell/machine.h"
#include "remote/volcengine/address.h"

namespace belljar::remote::volcengine {

class AioMachine final : public shell::Machine {
 public:
  // `instance`: by which the gateway finds it; empty: the endpoint is the sandbox. `patience`: of file calls and health.
  AioMachine(const http::Client& http, const Address& address, std::string endpoint, std::string instance,
             std::chrono::milliseconds patience);

  const std::string& id() const noexcept override { return id_; }
  Result<shell::ScriptOutput> run(const std::string& script, std::chrono::milliseconds patience, int cancel_fd) const override;
  Result<void> health(int cancel_fd = -1) const override;
  std::optional<Result<std::string>> read(const std::string& path, int cancel_fd) const override;
  std::optional<Result<void>> write(const std::string& path, std::string_view bytes, int cancel_fd) const override;
  Limits limits() const noexcept override;

 private:
  struct Ask;
  Result<http::Reply> ask(Ask what) const;
  Result<nlohmann::json> post(const char* path, const nlohmann::json& body, Ask how) const;
  Result<nlohmann::json> begin(const std::string& script, http::Clock::time_point deadline, int cancel_fd) const;
  Result<shell::ScriptOutput> follow(const nlohmann::json& begun, http::Clock::time_point deadline, int cancel_fd) const;
  void kill(const std::string& session) const;
  std::string take_session() const;
  void keep_session(const std::string& session) const;
  Result<void> check_there(const std::string& path, http::Clock::time_point deadline, int cancel_fd) const;

  http::Client http_;
  std::string endpoint_, instance_, id_;
  std::vector<std::string> headers_, secrets_;
  std::chrono::milliseconds patience_;
  mutable std::mutex mutex_;
  mutable std::vector<std::string> sessions_;  // guarded by mutex_; of the service, nothing runs in them
};

}  // namespace belljar::remote::volcengine
