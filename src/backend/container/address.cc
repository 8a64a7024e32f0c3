#include "backend/container/address.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "backend/container/context.h"
#include "base/ascii.h"
#include "base/environment.h"
#include "base/format.h"
#include "belljar/container.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend::container {
namespace {

constexpr std::string_view kUnix = "unix://", kTcp = "tcp://";
constexpr std::size_t kLongestPath = 107;  // sockaddr_un, unix(7)
constexpr std::uint16_t kPlainPort = 2375, kTlsPort = 2376;

Error no_address(std::string_view text, std::string reason) {
  return Error(Code::kInvalidArgument, format("cannot use {} as a container engine's address", quoted(text)))
      .reason(std::move(reason))
      .next("name its unix socket, unix:///var/run/docker.sock, or tcp://HOST:PORT");
}

bool is_host(std::string_view host) {
  return !host.empty() && host.size() <= 253 && host.front() != '-' &&
         std::ranges::all_of(host, [](char c) { return is_alnum(c) || c == '.' || c == '-' || c == '_' || c == ':'; });
}

Result<Address> parse_tcp(std::string_view text, const std::optional<TlsFiles>& tls) {
  std::string_view rest = text.substr(kTcp.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  std::string_view host = rest, port;
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return no_address(text, "the bracket is not closed");
    host = rest.substr(1, end - 1);
    port = rest.substr(end + 1);
    if (!port.empty() && !port.starts_with(':')) return no_address(text, "a port comes after a colon");
    if (!port.empty()) port.remove_prefix(1);
  } else if (const std::size_t colon = rest.find(':'); colon != std::string_view::npos) {
    host = rest.substr(0, colon);
    port = rest.substr(colon + 1);
  }
  if (!is_host(host) || (host.find(':') != std::string_view::npos && !rest.starts_with('[')))
    return no_address(text, "that is no host");
  Address address{.path = "", .host = std::string(host), .port = tls ? kTlsPort : kPlainPort, .tls = tls};
  if (port.empty() && !rest.ends_with(':')) return address;
  const auto end = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (end.ec != std::errc() || end.ptr != port.data() + port.size() || address.port == 0)
    return no_address(text, "that is no port");
  return address;
}

}  // namespace

std::string to_string(const Address& address) {
  if (!address.path.empty()) return address.path;
  const bool six = address.host.find(':') != std::string::npos;
  return format("tcp://{}{}{}:{}", six ? "[" : "", address.host, six ? "]" : "", address.port);
}

bool is_loopback(const Address& address) noexcept {
  return address.host == "localhost" || address.host == "::1" ||
         (address.host.starts_with("127.") && address.host.find_first_not_of("0123456789.") == std::string::npos);
}

Result<Address> parse_address(std::string_view text, const std::optional<TlsFiles>& tls) {
  if (text.starts_with(kTcp)) return parse_tcp(text, tls);
  std::string_view path = text;
  if (path.starts_with(kUnix)) path.remove_prefix(kUnix.size());
  else if (const std::size_t colon = path.find("://"); colon != std::string_view::npos)
    return Error(Code::kUnimplemented, format("cannot reach the container engine at {}", quoted(text)))
        .reason(format("{} is not served", escaped(path.substr(0, colon))))
        .next("name the engine's unix socket: unix:///var/run/docker.sock");
  if (!path.starts_with('/') || path.find('\0') != std::string_view::npos) return no_address(text, "that is no absolute path");
  if (path.size() > kLongestPath) return no_address(text, format("the path of a socket has at most {} bytes", kLongestPath));
  return Address{.path = std::string(path)};
}

Result<std::optional<TlsFiles>> tls_of(const std::map<std::string, std::string>& environment) {
  if (variable_of(environment, "DOCKER_TLS_VERIFY").empty()) {
    if (variable_of(environment, "DOCKER_TLS").empty()) return std::optional<TlsFiles>();
    return Error(Code::kUnimplemented, "cannot use DOCKER_TLS")
        .reason("without DOCKER_TLS_VERIFY it means TLS with whoever answers")
        .next("set DOCKER_TLS_VERIFY=1, with the engine's ca.pem in DOCKER_CERT_PATH");
  }
  std::string directory = variable_of(environment, "DOCKER_CERT_PATH");
  if (directory.empty()) directory = variable_of(environment, "HOME") + "/.docker";
  return std::optional<TlsFiles>({directory + "/ca.pem", directory + "/cert.pem", directory + "/key.pem"});
}

std::vector<std::string> usual_places(const std::map<std::string, std::string>& environment) {
  const std::string runtime = variable_of(environment, "XDG_RUNTIME_DIR");
  std::vector<std::string> places;
  if (!runtime.empty()) places.push_back(runtime + "/docker.sock");
  places.emplace_back("/var/run/docker.sock");
  if (!runtime.empty()) places.push_back(runtime + "/podman/podman.sock");
  places.emplace_back("/run/podman/podman.sock");
  return places;
}

Result<Address> find_engine(const ContainerOptions& options, const std::map<std::string, std::string>& environment,
                            const std::function<bool(const std::string&)>& exists) {
  std::string named = options.engine.empty() ? variable_of(environment, "DOCKER_HOST") : options.engine;
  if (named.empty()) named = BELLJAR_TRY(host_of_context(environment));
  if (!named.empty()) {
    std::optional<TlsFiles> tls;
    if (named.starts_with(kTcp)) tls = BELLJAR_TRY(tls_of(environment));
    Address address = BELLJAR_TRY(parse_address(named, tls));
    if (address.path.empty() && !address.tls && !is_loopback(address) && options.plain_tcp == PlainTcp::kLoopback)
      return Error(Code::kFailedPrecondition, format("will not speak to the container engine at {}", quoted(named)))
          .reason("without TLS whoever is on the way can take the engine over, and with it the machine it runs on")
          .next("set DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH, or say --plain-tcp");
    return address;
  }
  std::string looked;
  for (const std::string& place : usual_places(environment)) {
    if (exists(place)) return Address{.path = place};
    looked += (looked.empty() ? "" : ", ") + escaped(place);
  }
  return Error(Code::kUnavailable, "there is no container engine here")
      .reason("no socket at " + looked)
      .next("install and start Docker or Podman's service, name its socket (--engine, DOCKER_HOST), or use another backend");
}

}  // namespace belljar::backend::container
