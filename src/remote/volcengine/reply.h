// Parses the answers of the control plane. Pure: text in, values out.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "belljar/error.h"
#include "belljar/result.h"
#include "http/client.h"

namespace belljar::remote::volcengine {

struct Refusal {  // the service's word for what is wrong
  std::string code, message;
};

// Empty where the reply is a success; otherwise what it says, however it says it.
std::optional<Refusal> find_refusal(const http::Reply& reply);
Code code_of(long status, const std::string& service_code) noexcept;
bool asked_too_often(long status, const std::string& service_code) noexcept;  // refused before anything began

// The `Result` of a reply. `what`: "cannot create a sandbox". Errors: as of code_of; kDataLoss, it makes no sense. None holds a
// secret.
Result<nlohmann::json> parse_reply(const http::Reply& reply, const std::string& what, const std::vector<std::string>& secrets);

struct Description {  // of one sandbox
  enum class State { kStarting, kReady, kPaused, kFailed, kGone };
  State state = State::kStarting;
  std::string status, error;   // the service's words
  std::optional<bool> egress;  // AllowEgressAccess; unset: not told
  std::optional<long> cpu_milli, memory_mb;
};
Description parse_description(const nlohmann::json& result);

// ListTriggers: the gateway in front of an application; empty: there is none.
std::string find_upstream(const nlohmann::json& result);
// ListRoutes: its address, https://HOST[/PREFIX], a public one if there is; empty: none.
std::string find_route(const nlohmann::json& result);

}  // namespace belljar::remote::volcengine
