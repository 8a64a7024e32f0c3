// Where the engine is looked for.
#include "backend/container/address.h"

#include <gtest/gtest.h>

namespace belljar::backend::container {
namespace {

TEST(EngineAddress, SocketsAreTakenAndOtherSchemesRefusedByName) {
  EXPECT_EQ(parse_address("unix:///run/docker.sock")->path, "/run/docker.sock");
  EXPECT_EQ(parse_address("/run/docker.sock")->path, "/run/docker.sock");
  EXPECT_EQ(parse_address("tcp://127.0.0.1:2375").error().code(), Code::kUnimplemented);
  EXPECT_EQ(parse_address("ssh://host").error().code(), Code::kUnimplemented);
  EXPECT_EQ(parse_address("docker.sock").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(parse_address("unix://relative").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(parse_address("unix:///" + std::string(200, 'x')).error().code(), Code::kInvalidArgument);
}

TEST(EngineAddress, TheFirstUsualPlaceIsTaken) {
  const auto find = [](const std::map<std::string, std::string>& environment, const std::string& there) {
    const auto found = find_engine("", environment, [&](const std::string& path) { return path == there; });
    return found ? found->path : std::string(to_string(found.error().code()));
  };
  EXPECT_EQ(find({}, "/var/run/docker.sock"), "/var/run/docker.sock");
  EXPECT_EQ(find({{"XDG_RUNTIME_DIR", "/run/user/7"}}, "/run/user/7/podman/podman.sock"), "/run/user/7/podman/podman.sock");
  EXPECT_EQ(find({{"DOCKER_HOST", "unix:///x"}}, "/var/run/docker.sock"), "/x");
  EXPECT_EQ(find({}, "nowhere"), "unavailable");
  EXPECT_EQ(find_engine("/given", {{"DOCKER_HOST", "unix:///x"}}, [](const std::string&) { return true; })->path, "/given");
}

}  // namespace
}  // namespace belljar::backend::container
