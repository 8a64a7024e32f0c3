// What tells programs that there is a proxy. There is no one way: each of these names is the only one that some program reads.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace belljar::egress {

// NAME and value, for a proxy on 127.0.0.1:`port`; `credential` is "user:password" or empty. `java_options` is what
// JAVA_TOOL_OPTIONS holds already.
std::vector<std::pair<std::string, std::string>> proxy_environment(std::uint16_t port, const std::string& credential,
                                                                   const std::string& java_options);

// The same for the roots of a sandbox whose TLS is intercepted: `bundle` as PEM, `java_store` as a key store.
std::vector<std::pair<std::string, std::string>> trust_environment(const std::string& bundle, const std::string& java_store,
                                                                   const std::string& java_options);

}  // namespace belljar::egress
