#include "belljar/webhook.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "support/loopback.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;

// Answers each request with the next status, 200 when there is none left; 0: never.
class Receiver {
 public:
  explicit Receiver(std::vector<int> statuses = {}) : statuses_(std::move(statuses)) {
    listener_ = test::listen_loopback(port_);
    EXPECT_TRUE(listener_.valid());
    thread_ = std::thread([this] { serve(); });
  }
  ~Receiver() {
    stop_ = true;
    thread_.join();
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  std::string url() const { return format("http://127.0.0.1:{}/hook", port_); }
  std::vector<std::string> requests() const {
    const std::lock_guard guard(mutex_);
    return requests_;
  }

 private:
  void serve() {
    while (!stop_) {
      pollfd waiting{listener_.get(), POLLIN, 0};
      if (::poll(&waiting, 1, 20) <= 0) continue;
      UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const std::string request = read_request(client.get());
      std::size_t number = 0;
      {
        const std::lock_guard guard(mutex_);
        requests_.push_back(request);
        number = requests_.size() - 1;
      }
      const int status = number < statuses_.size() ? statuses_[number] : 200;
      if (status == 0) held_.push_back(std::move(client));
      else answer(client.get(), status);
    }
  }
  static void answer(int fd, int status) {
    const std::string text =
        format("HTTP/1.1 {} x\r\nContent-Length: 0\r\nConnection: close\r\nLocation: http://127.0.0.1:1/\r\n\r\n", status);
    EXPECT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  static std::string read_request(int fd) {
    std::string request;
    char buffer[4096];
    for (;;) {
      const std::size_t end = request.find("\r\n\r\n");
      const std::size_t length = request.find("Content-Length: ");
      if (end != std::string::npos && length != std::string::npos &&
          request.size() >= end + 4 + std::stoul(request.substr(length + 16)))
        return request;
      const ssize_t count = ::recv(fd, buffer, sizeof buffer, 0);
      if (count <= 0) return request;
      request.append(buffer, static_cast<std::size_t>(count));
    }
  }

  std::vector<int> statuses_;
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;  // guarded by mutex_
  std::vector<UniqueFd> held_;         // the thread's
  std::thread thread_;
};

std::string header(const std::string& request, const std::string& name) {
  const std::size_t at = request.find("\r\n" + name + ": ");
  if (at == std::string::npos) return "";
  const std::size_t from = at + name.size() + 4;
  return request.substr(from, request.find("\r\n", from) - from);
}

std::string hmac(const std::string& secret, const std::string& text) {
  unsigned char digest[32];
  unsigned size = sizeof digest;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), digest, &size);
  std::string hex;
  for (const unsigned char byte : digest) hex += format("{:02x}", byte);
  return hex;
}

std::shared_ptr<Webhook> hook(const std::string& url, WebhookOptions options = {.first_pause = 1ms, .timeout = 60s}) {
  options.url = url;
  return Webhook::create(std::move(options)).value();
}

TEST(Webhook, ADeliveryIsPostedWithASignatureThatFits) {
  Receiver receiver;
  auto webhook = hook(receiver.url(), {.secret = "s3cret", .timeout = 60s});
  webhook->send("alert\r\nX-Evil: 1", R"({"a":1})");
  ASSERT_TRUE(webhook->wait_idle(60s));
  const auto requests = receiver.requests();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_TRUE(requests[0].starts_with("POST /hook HTTP/1.1\r\n")) << requests[0];
  EXPECT_TRUE(requests[0].ends_with("\r\n\r\n{\"a\":1}")) << requests[0];
  EXPECT_EQ(header(requests[0], "Content-Type"), "application/json");
  EXPECT_EQ(header(requests[0], "X-Belljar-Event"), "alertX-Evil1");
  EXPECT_EQ(header(requests[0], "X-Evil"), "");
  EXPECT_EQ(header(requests[0], "X-Belljar-Signature"),
            "sha256=" + hmac("s3cret", header(requests[0], "X-Belljar-Timestamp") + R"(.{"a":1})"));
  EXPECT_EQ(webhook->counts().delivered, 1U);
}

TEST(Webhook, WithoutASecretThereIsNoSignature) {
  Receiver receiver;
  auto webhook = hook(receiver.url());
  webhook->send("alert", "{}");
  ASSERT_TRUE(webhook->wait_idle(60s));
  EXPECT_EQ(header(receiver.requests().at(0), "X-Belljar-Signature"), "");
}

TEST(Webhook, ItTriesAgainOnServerErrorsAndGivesUpOnOthers) {
  Receiver failing({500, 429, 503});
  auto webhook = hook(failing.url());
  webhook->send("alert", "{}");
  ASSERT_TRUE(webhook->wait_idle(60s));
  ASSERT_EQ(failing.requests().size(), 4U);
  EXPECT_EQ(header(failing.requests()[0], "X-Belljar-Delivery"), header(failing.requests()[3], "X-Belljar-Delivery"));
  EXPECT_EQ(webhook->counts().delivered, 1U);
  Receiver refusing({404, 404, 404});
  auto refused = hook(refusing.url());
  refused->send("alert", "{}");
  ASSERT_TRUE(refused->wait_idle(60s));
  EXPECT_EQ(refusing.requests().size(), 1U);
  EXPECT_EQ(refused->counts().failed, 1U);
  Receiver moved({302});
  auto redirected = hook(moved.url());
  redirected->send("alert", "{}");
  ASSERT_TRUE(redirected->wait_idle(60s));
  EXPECT_EQ(redirected->counts().failed, 1U) << "a redirect is not followed";
}

TEST(Webhook, NobodyListeningEndsAfterItsAttempts) {
  auto webhook = hook("http://127.0.0.1:1/", {.attempts = 3, .first_pause = 1ms});
  webhook->send("alert", "{}");
  ASSERT_TRUE(webhook->wait_idle(std::chrono::milliseconds::max()));
  EXPECT_EQ(webhook->counts().failed, 1U);
}

TEST(Webhook, AReceiverThatHangsBlocksNobodyAndTheOldestGo) {
  Receiver hanging(std::vector<int>(100, 0));
  const auto begun = std::chrono::steady_clock::now();
  {
    auto webhook = hook(hanging.url(), {.timeout = 10min, .capacity = 5});
    for (int i = 0; i < 1000; ++i) webhook->send("alert", "{}");
    EXPECT_GE(webhook->counts().dropped, 990U);
    EXPECT_FALSE(webhook->wait_idle(50ms));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 200s) << "neither send() nor the end wait for it";
}

TEST(Webhook, WhatIsNoUrlToPostToIsRefused) {
  for (const char* url : {"", "file:///etc/passwd", "ftp://x/", "no url"}) {
    const auto webhook = Webhook::create({.url = url});
    ASSERT_FALSE(webhook) << url;
    EXPECT_EQ(webhook.error().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace belljar
