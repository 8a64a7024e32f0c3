// Where the engine listens. Text in, value out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/container.h"
#include "belljar/result.h"

namespace belljar::backend::container {

// PEM files: whom we believe, and who we are. The last two may be missing on disk, together.
struct TlsFiles {
  std::string ca, certificate, key;
  bool operator==(const TlsFiles&) const = default;
};

struct Address {
  std::string path;  // of a unix socket; empty: TCP
  std::string host = {};
  std::uint16_t port = 0;
  std::optional<TlsFiles> tls = {};  // of TCP; none: plain
  bool operator==(const Address&) const = default;
};

// "/path", "tcp://host:port".
std::string to_string(const Address& address);
// By its text: "localhost", 127.0.0.0/8, ::1.
bool is_loopback(const Address& address) noexcept;

// "unix:///path", "/path", "tcp://host[:port]" (default: 2376 with `tls`, else 2375). Errors: kInvalidArgument; kUnimplemented,
// another scheme (npipe, ssh), by name.
Result<Address> parse_address(std::string_view text, const std::optional<TlsFiles>& tls = std::nullopt);

// DOCKER_TLS_VERIFY with anything in it asks for TLS; ca.pem, cert.pem and key.pem are in DOCKER_CERT_PATH, else ~/.docker. Errors:
// kUnimplemented, DOCKER_TLS alone: TLS with nobody's certificate checked.
Result<std::optional<TlsFiles>> tls_of(const std::map<std::string, std::string>& environment);

// The usual places of sockets.
std::vector<std::string> usual_places(const std::map<std::string, std::string>& environment);

// `options.engine`, else DOCKER_HOST, else Docker's context (context.h), else the first usual place that `exists` says yes to.
// Errors: as parse_address, tls_of and host_of_context;
// kUnavailable, there is no engine here; kFailedPrecondition, plain TCP to somewhere else.
Result<Address> find_engine(const ContainerOptions& options, const std::map<std::string, std::string>& environment,
                            const std::function<bool(const std::string&)>& exists);

}  // namespace belljar::backend::container
