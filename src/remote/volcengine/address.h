// The addresses to ask, and the keys to ask with. Values; no I/O.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"
#include "belljar/volcengine.h"
#include "remote/volcengine/sign.h"

namespace belljar::remote::volcengine {

struct Address {
  Keys keys;
  std::string region, function_id;
  std::string api_url;  // empty: by `hosts`
  VolcengineHosts hosts = VolcengineHosts::kCentral;
  std::string endpoint;                // of the sandboxes; empty: the service is asked
  std::string authorization, aio_key;  // for the endpoint; may be empty

  std::string url_of(std::string_view service) const;  // without a path
  std::vector<std::string> secrets() const;
};

// Options, then the environment, then Volcengine's own. With `aio_url` only the endpoint and its keys are looked for. Errors:
// kUnauthenticated, no key; kInvalidArgument: half a key, no application, a URL that is none, plain http to another machine, a key
// that is no header. No error holds a key.
Result<Address> find_address(const VolcengineOptions& options, const std::map<std::string, std::string>& environment);

// `url` without a slash at its end. Errors: kInvalidArgument, it is no place for a key to go.
Result<std::string> check_url(std::string_view what, std::string url);
std::string authority_of(const std::string& url);  // host[:port], in small letters

// One setting as configuration files have it. Errors: kInvalidArgument, by name and with what to use instead; without the value.
Result<void> set_option(VolcengineOptions& options, const std::string& key, const std::string& value);

bool is_id(std::string_view text) noexcept;  // what can be in a URL as it is

}  // namespace belljar::remote::volcengine
