// Parses the answers of an AIO server. Pure: text in, values out.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "belljar/result.h"
#include "http/client.h"

namespace belljar::remote::volcengine {

// A reply is {success, message, data, hint}; what is not is the gateway's. Gives `data`. Errors: kUnauthenticated;
// kPermissionDenied; kNotFound, no such sandbox; kResourceExhausted; kUnavailable; kInvalidArgument, it does not take what was sent
// (422); kDataLoss, it makes no sense; kFailedPrecondition, success = false; and what a file error says. None holds a secret.
Result<nlohmann::json> parse_envelope(const http::Reply& reply, const std::string& what, const std::vector<std::string>& secrets);
// Of a status that is no 2xx.
Error refused(const http::Reply& reply, const std::string& what, const std::vector<std::string>& secrets);

// Whether the bytes of a download look like the complaint that is sent in its place, with status 200.
bool may_be_complaint(const http::Reply& reply);

struct Progress {  // of one command
  enum class State { kRunning, kEnded, kTimedOut, kKilled };
  State state = State::kRunning;
  int exit_code = 0;
  std::string out, err, session, command;
  long out_offset = 0, err_offset = 0;
};
// Of /v1/bash/exec, and of /v1/bash/output. Errors: kDataLoss.
Result<Progress> parse_exec(const nlohmann::json& data);
Result<Progress> parse_output(const nlohmann::json& data);

}  // namespace belljar::remote::volcengine
