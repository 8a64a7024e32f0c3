// An engine that answers what a test wrote down, well or badly: raw bytes for each request, on a unix socket.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/container/address.h"
#include "base/unique_fd.h"
#include "support/temp_dir.h"

namespace belljar::backend::container::test {

class FakeEngine {
 public:
  enum class Then { kClose, kStall };

  FakeEngine() : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::strncpy(name.sun_path, address().path.c_str(), sizeof name.sun_path - 1);
    if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 || ::listen(listener_.get(), 16) != 0)
      throw std::runtime_error("the fake engine cannot listen");
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeEngine() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  Address address() const { return {.path = directory_ / "sock"}; }

  // For a request whose first line holds `part`. Later ones win.
  void answer(std::string part, std::string bytes, Then then = Then::kClose) {
    const std::lock_guard lock(mutex_);
    answers_.emplace_back(std::move(part), std::pair(std::move(bytes), then));
  }
  void answer_json(std::string part, int status, const std::string& json) {
    answer(std::move(part), "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: application/json\r\nContent-Length: " +
                                std::to_string(json.size()) + "\r\n\r\n" + json);
  }
  void answer_ping() { answer("/_ping", "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: 2\r\n\r\nOK"); }
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  // Header and body: who answers before it has read all resets the connection.
  static std::size_t whole_size(const std::string& request) {
    const std::size_t header = request.find("\r\n\r\n");
    if (header == std::string::npos) return request.size() + 1;
    const std::size_t length = request.find("Content-Length: ");
    return header + 4 + (length < header ? std::stoul(request.substr(length + 16)) : 0);
  }
  void serve() {
    std::vector<UniqueFd> stalled;
    for (;;) {
      UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer.valid()) return;
      std::string request;
      char buffer[4096];
      while (request.size() < whole_size(request)) {
        const ssize_t got = ::read(peer.get(), buffer, sizeof buffer);
        if (got <= 0) break;
        request.append(buffer, static_cast<std::size_t>(got));
      }
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      std::pair<std::string, Then> reply{"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n", Then::kClose};
      for (const auto& [part, answer] : answers_) {
        if (request.substr(0, request.find("\r\n")).find(part) != std::string::npos) reply = answer;
      }
      // One byte at a time: nothing may depend on what arrives together.
      for (const char c : reply.first) (void)!::send(peer.get(), &c, 1, MSG_NOSIGNAL);
      if (reply.second == Then::kStall) stalled.push_back(std::move(peer));
    }
  }

  belljar::test::TempDir directory_;
  UniqueFd listener_;
  mutable std::mutex mutex_;
  std::vector<std::pair<std::string, std::pair<std::string, Then>>> answers_;  // guarded by mutex_
  std::vector<std::string> requests_;                                          // guarded by mutex_
  std::thread thread_;
};

}  // namespace belljar::backend::container::test
