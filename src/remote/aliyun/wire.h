// Requests to AgentBay's control plane (Aliyun's RPC style) as text, and its answers read into values. No I/O.
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::remote::aliyun {

using Json = nlohmann::json;
using Fields = std::map<std::string, std::string>;

// Sorted by name, percent-encoded as RFC 3986 has it (a space is %20); what is empty is left out.
std::string form_of(const Fields& fields);

// "?Action=...": what every request says of itself.
std::string query_of(std::string_view action, std::chrono::system_clock::time_point now, std::string_view nonce);

// An answer, whichever of its shapes it came in.
struct Answer {
  long status = 0;  // of HTTP; of the envelope, where that calls it a failure
  bool success = false;
  std::string code, message;  // of a failure; either may be empty
  Json data;                  // what came as JSON inside a string is read, too
};

// Failures: a status of 4xx or 5xx, whatever its body; Success = false; Data.Success = false. Errors: kDataLoss, it should be the
// service's JSON and is not.
Result<Answer> parse_answer(long status, const std::string& body);

Code code_of(const Answer& failure);
bool is_throttled(const Answer& answer) noexcept;  // refused before anything began: may be asked again
bool is_gone(const Answer& failure);               // there is no such session (any more)

// `text` as JSON, where it is an object or a list; else as it is.
Json unwrapped(const Json& value);

}  // namespace belljar::remote::aliyun
