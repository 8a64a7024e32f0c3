// The control plane: sandboxes made, found, paused, ended. JSON over HTTP.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "belljar/e2b.h"
#include "belljar/result.h"
#include "http/client.h"
#include "remote/e2b/address.h"

namespace belljar::remote::e2b {

struct Granted {  // a sandbox that runs
  std::string id, token, url, envd_version;
};

struct Wanted {
  std::string template_id;
  std::chrono::milliseconds lifetime;
  std::map<std::string, std::string> metadata, variables;
  bool internet = false;
};

class Control {
 public:
  Control(const http::Client& http, Address address, std::chrono::milliseconds patience)
      : http_(http), address_(std::move(address)), patience_(patience) {}
  const Address& address() const noexcept { return address_; }

  // Errors, of all: kUnauthenticated; kNotFound; kResourceExhausted; kUnavailable; kDeadlineExceeded; kDataLoss, the answer makes
  // no sense. What the service asks to try again (429; 503, but for create) is tried again within the patience.
  Result<Granted> create(const Wanted& wanted) const;
  Result<Granted> connect(const std::string& id, std::chrono::milliseconds lifetime) const;
  // Ends a sandbox that was made and cannot be used: `why`, and where it lives on, its id as well.
  Error abandon(const std::string& id, const Error& why) const;
  Result<bool> kill(const std::string& id) const;   // false: there is none
  Result<bool> pause(const std::string& id) const;  // false: it is paused already
  Result<void> set_timeout(const std::string& id, std::chrono::milliseconds lifetime) const;

 private:
  Result<http::Reply> ask(const char* method, const std::string& path, const std::string& body) const;
  Result<Granted> granted(const http::Reply& reply) const;
  Error refused(const http::Reply& reply, const std::string& what) const;

  http::Client http_;
  Address address_;
  std::chrono::milliseconds patience_;
};

// The code for an HTTP status of either plane.
Code code_of_status(long status) noexcept;

}  // namespace belljar::remote::e2b
