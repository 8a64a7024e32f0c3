// The options of belljar mcp --http.
#pragma once

#include <string>
#include <vector>

#include "belljar/result.h"
#include "cli/command_line.h"
#include "mcp/http.h"

namespace belljar::cli {

struct HttpFlags {
  std::string address;     // --http; empty: stdin and stdout
  std::string token_file;  // --http-token-file
  bool no_token = false;
  std::vector<std::string> hosts, origins;
  std::string idle;  // --http-idle; empty: 30m
};

void add_http_options(const OptionParser& command, HttpFlags& flags);
// Reads or makes the token. `made`: it is new, and has to be told to somebody. Errors: kInvalidArgument, naming the option.
struct HttpSettings {
  mcp::HttpOptions options;
  bool made = false;
};
// Where none is needed: no command is to find it.
void forget_token();
Result<HttpSettings> http_of(const HttpFlags& flags);
// Without --http: that none of the others was given. Errors: kInvalidArgument, naming it.
Result<void> check_no_http(const HttpFlags& flags);

}  // namespace belljar::cli
