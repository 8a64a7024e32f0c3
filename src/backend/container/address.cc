#include "backend/container/address.h"

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend::container {
namespace {

constexpr std::string_view kUnix = "unix://";
constexpr std::size_t kLongestPath = 107;  // sockaddr_un, unix(7)

std::string variable(const std::map<std::string, std::string>& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  std::string_view path = text;
  if (path.starts_with(kUnix)) path.remove_prefix(kUnix.size());
  else if (const std::size_t colon = path.find("://"); colon != std::string_view::npos)
    return Error(Code::kUnimplemented, format("cannot reach the container engine at {}", quoted(text)))
        .reason(format("{} is not served: the workspace is a directory that the engine must see as we do",
                       escaped(path.substr(0, colon))))
        .next("name the engine's unix socket: unix:///var/run/docker.sock");
  if (!path.starts_with('/') || path.find('\0') != std::string_view::npos)
    return Error(Code::kInvalidArgument, format("cannot use {} as a container engine's address", quoted(text)))
        .next("name its unix socket: unix:///var/run/docker.sock");
  if (path.size() > kLongestPath)
    return Error(Code::kInvalidArgument, format("cannot use {} as a container engine's address", quoted(text)))
        .reason(format("the path of a socket has at most {} bytes", kLongestPath));
  return Address{std::string(path)};
}

Result<Address> find_engine(const std::string& given, const std::map<std::string, std::string>& environment,
                            const std::function<bool(const std::string&)>& exists) {
  if (!given.empty()) return parse_address(given);
  if (const std::string host = variable(environment, "DOCKER_HOST"); !host.empty()) return parse_address(host);
  const std::string runtime = variable(environment, "XDG_RUNTIME_DIR");
  std::vector<std::string> places;
  if (!runtime.empty()) places.push_back(runtime + "/docker.sock");
  places.emplace_back("/var/run/docker.sock");
  if (!runtime.empty()) places.push_back(runtime + "/podman/podman.sock");
  places.emplace_back("/run/podman/podman.sock");
  std::string looked;
  for (const std::string& place : places) {
    if (exists(place)) return Address{place};
    looked += (looked.empty() ? "" : ", ") + escaped(place);
  }
  return Error(Code::kUnavailable, "there is no container engine here")
      .reason("no socket at " + looked)
      .next("install and start Docker or Podman's service, name its socket (--engine, DOCKER_HOST), or use another backend");
}

}  // namespace belljar::backend::container
