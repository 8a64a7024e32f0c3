// The control plane: sandboxes made, found, paused, ended. JSON over HTTP.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "belljar/cancel.h"
#include "belljar/e2b.h"
#include "belljar/result.h"
#include "http/client.h"
#include "remote/e2b/address.h"

namespace belljar::remote::e2b {

struct SandboxAccess {  // a sandbox that runs
  std::string id, token, url, envd_version;
};

struct CreateRequest {
  std::string template_id;
  std::chrono::milliseconds lifetime;
  std::map<std::string, std::string> metadata, variables;  // but for the tag
  bool internet = false;
  CancelToken cancel;  // ends the waiting between tries, no request
};

class Control {
 public:
  // `least`: the shortest lifetime that the service takes.
  Control(const http::Client& http, Address address, std::chrono::milliseconds patience,
          std::chrono::milliseconds least = std::chrono::milliseconds(0))
      : http_(http), address_(std::move(address)), patience_(patience), least_(least) {}
  const Address& address() const noexcept { return address_; }

  // Errors, of all: kUnauthenticated; kNotFound; kResourceExhausted; kUnavailable; kDeadlineExceeded; kDataLoss, the answer makes
  // no sense. What the service asks to try again (429; 503, but for create) is tried again within the patience. A create whose
  // answer is lost is looked for by a tag in its metadata, and ended. kCanceled, while it waits between tries.
  Result<SandboxAccess> create(const CreateRequest& wanted) const;
  Result<SandboxAccess> connect(const std::string& id, std::chrono::milliseconds lifetime, const CancelToken& cancel) const;
  // Ends a sandbox that was made and cannot be used: `why`, and where it lives on, its id as well.
  Error abandon(const std::string& id, const Error& why) const;
  // The next two: `cancel` ends the wait for the answer, too.
  Result<bool> kill(const std::string& id, const CancelToken& cancel = {}) const;   // false: there is none
  Result<bool> pause(const std::string& id, const CancelToken& cancel = {}) const;  // false: it is paused already
  Result<void> set_timeout(const std::string& id, std::chrono::milliseconds lifetime) const;

 private:
  // A create is never sent twice, whatever became of it.
  enum class Times { kAgain, kOnce };
  // `cancel`: of the waiting between tries; `end_fd` of a request, too.
  Result<http::Reply> ask(const char* method, const std::string& path, const std::string& body, Times times = Times::kAgain,
                          const CancelToken& cancel = {}, int end_fd = -1) const;
  // Below /sandboxes, and where the service does not know that, below /v2/sandboxes.
  Result<http::Reply> ask_either(const char* method, const std::string& rest, const std::string& body, Times times,
                                 const CancelToken& cancel = {}) const;
  Error lost(const std::string& tag, const Error& why) const;
  std::int64_t seconds_of(std::chrono::milliseconds lifetime) const;
  Result<SandboxAccess> access(const http::Reply& reply) const;
  Error refused(const http::Reply& reply, const std::string& what) const;

  http::Client http_;
  Address address_;
  std::chrono::milliseconds patience_, least_;
};

// "0.3.5" is older than {0, 4, 0}. What is no version is not: who does not say it is of today.
bool is_older(std::string_view version, std::array<int, 3> than) noexcept;

// The code for an HTTP status of either plane.
Code code_of_status(long status) noexcept;

}  // namespace belljar::remote::e2b
