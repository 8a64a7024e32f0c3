// The control plane: sandboxes made, found, paused, ended. Signed JSON over HTTP.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "http/client.h"
#include "remote/volcengine/address.h"
#include "remote/volcengine/reply.h"

namespace belljar::remote::volcengine {

struct CreateRequest {
  std::chrono::milliseconds lifetime;
  std::optional<long> cpu_milli, memory_mb;  // unset: the service's own
  std::string image;                         // empty: the application's
  bool closed = false;                       // no way out of it
  std::map<std::string, std::string> envs, metadata;
  std::string session;  // in its metadata, too: by which it is found when the answer is lost
  CancelToken cancel;   // ends the waiting between tries, no request
};

class Control {
 public:
  using Now = std::function<std::chrono::system_clock::time_point()>;
  Control(
      const http::Client& http, Address address, std::chrono::milliseconds patience,
      Now now = [] { return std::chrono::system_clock::now(); })
      : http_(http), address_(std::move(address)), patience_(patience), now_(std::move(now)) {}
  const Address& address() const noexcept { return address_; }

  // Errors, of all: kUnauthenticated; kPermissionDenied; kNotFound; kInvalidArgument; kResourceExhausted; kUnavailable;
  // kDeadlineExceeded; kDataLoss, the answer makes no sense. What was refused because it was asked too often is tried again within
  // the patience, and so is what failed over there, but for create. kCanceled, while it waits between tries.
  Result<std::string> create(const CreateRequest& wanted) const;  // its id
  Result<Description> describe(const std::string& id) const;
  // The next two: `cancel` ends the wait for the answer, too.
  Result<bool> kill(const std::string& id, const CancelToken& cancel = {}) const;  // false: there is none
  Result<void> pause(const std::string& id, const CancelToken& cancel = {}) const;
  Result<void> resume(const std::string& id, std::chrono::milliseconds lifetime) const;
  Result<void> set_timeout(const std::string& id, std::chrono::milliseconds lifetime) const;
  // Where the sandboxes of the application answer.
  Result<std::string> find_endpoint() const;

  // Ends a sandbox that was made and cannot be used: `why`, and where it lives on, its id as well.
  Error abandon(const std::string& id, const Error& why) const;

 private:
  enum class Times { kMany, kOnce };
  Result<nlohmann::json> call(const char* action, const nlohmann::json& body, const std::string& what, Times times = Times::kMany,
                              const CancelToken& cancel = {}) const;
  Result<nlohmann::json> call_on(const char* action, const std::string& id, nlohmann::json more, const char* doing,
                                 const CancelToken& cancel = {}) const;
  Error lost(const std::string& session, const Error& why) const;

  http::Client http_;
  Address address_;
  std::chrono::milliseconds patience_;
  Now now_;
};

}  // namespace belljar::remote::volcengine
