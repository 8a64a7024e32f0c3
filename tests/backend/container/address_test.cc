// Where the engine is looked for.
#include "backend/container/address.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/temp_dir.h"

namespace belljar::backend::container {
namespace {

TEST(EngineAddress, SocketsAreTakenAndOtherSchemesRefusedByName) {
  EXPECT_EQ(parse_address("unix:///run/docker.sock")->path, "/run/docker.sock");
  EXPECT_EQ(parse_address("/run/docker.sock")->path, "/run/docker.sock");
  EXPECT_EQ(parse_address("ssh://host").error().code(), Code::kUnimplemented);
  EXPECT_EQ(parse_address("docker.sock").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(parse_address("unix://relative").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(parse_address("unix:///" + std::string(200, 'x')).error().code(), Code::kInvalidArgument);
}

TEST(EngineAddress, TheFirstUsualPlaceIsTaken) {
  const auto find = [](const std::map<std::string, std::string>& environment, const std::string& there) {
    const auto found = find_engine({}, environment, [&](const std::string& path) { return path == there; });
    return found ? found->path : std::string(to_string(found.error().code()));
  };
  EXPECT_EQ(find({}, "/var/run/docker.sock"), "/var/run/docker.sock");
  EXPECT_EQ(find({{"XDG_RUNTIME_DIR", "/run/user/7"}}, "/run/user/7/podman/podman.sock"), "/run/user/7/podman/podman.sock");
  EXPECT_EQ(find({{"DOCKER_HOST", "unix:///x"}}, "/var/run/docker.sock"), "/x");
  EXPECT_EQ(find({}, "nowhere"), "unavailable");
  EXPECT_EQ(find_engine({.engine = "/given"}, {{"DOCKER_HOST", "unix:///x"}}, [](const std::string&) { return true; })->path,
            "/given");
}

TEST(EngineAddress, DockersContextComesBeforeTheUsualPlaces) {
  const belljar::test::TempDir home;
  home.write(".docker/contexts/meta/aa/meta.json", R"({"Name": "near", "Endpoints": {"docker": {"Host": "unix:///near"}}})");
  home.write(".docker/contexts/meta/bb/meta.json", R"({"Name": "far", "Endpoints": {"docker": {"Host": "ssh://far"}}})");
  const auto find = [&](std::map<std::string, std::string> environment) {
    environment["HOME"] = home.path();
    const auto found = find_engine({}, environment, [&](const std::string& path) { return path == "/var/run/docker.sock"; });
    return found ? found->path : found.error().what();
  };
  EXPECT_EQ(find({}), "/var/run/docker.sock");
  EXPECT_EQ(find({{"DOCKER_CONTEXT", "near"}}), "/near");
  EXPECT_EQ(find({{"DOCKER_CONTEXT", "near"}, {"DOCKER_HOST", "unix:///x"}}), "/x");
  EXPECT_EQ(find({{"DOCKER_CONTEXT", "far"}}), "cannot use Docker's context `far`");
  EXPECT_EQ(find({{"DOCKER_CONTEXT", "other"}}), "there is no Docker context `other`");
  home.write(".docker/config.json", R"({"currentContext": "near"})");
  EXPECT_EQ(find({}), "/near");
  EXPECT_EQ(find({{"DOCKER_CONTEXT", "default"}}), "/var/run/docker.sock");
  // A bind mount of a file that was not there leaves a directory.
  std::filesystem::remove(home / ".docker/config.json");
  std::filesystem::create_directory(home / ".docker/config.json");
  EXPECT_EQ(find({}), "/var/run/docker.sock");
}

using Environment = std::map<std::string, std::string>;

TEST(EngineAddress, TcpHasAHostAndAPort) {
  const auto said = [](std::string_view text, const std::optional<TlsFiles>& tls = {}) {
    const auto address = parse_address(text, tls);
    return address ? to_string(*address) : std::string(to_string(address.error().code()));
  };
  const TlsFiles files{"ca", "cert", "key"};
  EXPECT_EQ(said("tcp://127.0.0.1:1234"), "tcp://127.0.0.1:1234");
  EXPECT_EQ(said("tcp://engine.example.com"), "tcp://engine.example.com:2375");
  EXPECT_EQ(said("tcp://engine.example.com/", files), "tcp://engine.example.com:2376");
  EXPECT_EQ(said("tcp://[::1]:2376"), "tcp://[::1]:2376");
  for (const char* wrong : {"tcp://", "tcp://:2375", "tcp://host:", "tcp://host:0", "tcp://host:65536", "tcp://host:1/path",
                            "tcp://[::1", "tcp://::1:2", "tcp://a b", "tcp://user@host", "tcp://-x"})
    EXPECT_EQ(said(wrong), "invalid_argument") << wrong;
}

TEST(EngineAddress, PlainTcpStaysOnLoopbackUnlessTold) {
  const auto find = [](const ContainerOptions& options, const Environment& environment) {
    return find_engine(options, environment, [](const std::string&) { return false; });
  };
  for (const char* near : {"tcp://127.0.0.1:1", "tcp://localhost:1", "tcp://[::1]:1"})
    EXPECT_TRUE(find({.engine = near}, {})) << near;
  for (const char* far : {"tcp://10.0.0.1:1", "tcp://127.0.0.1.example.com:1", "tcp://engine:1"}) {
    EXPECT_EQ(find({.engine = far}, {}).error().code(), Code::kFailedPrecondition) << far;
    EXPECT_TRUE(find({.engine = far, .plain_tcp = PlainTcp::kAnywhere}, {})) << far;
    EXPECT_TRUE(find({.engine = far}, {{"DOCKER_TLS_VERIFY", "1"}})) << far;
  }
  EXPECT_EQ(find({}, {{"DOCKER_HOST", "tcp://engine:1"}}).error().code(), Code::kFailedPrecondition);
}

TEST(EngineAddress, TlsComesFromDockersVariables) {
  EXPECT_FALSE(*tls_of({}));
  EXPECT_EQ(tls_of({{"DOCKER_TLS_VERIFY", "1"}, {"DOCKER_CERT_PATH", "/c"}})->value().key, "/c/key.pem");
  EXPECT_EQ(tls_of({{"DOCKER_TLS_VERIFY", "1"}, {"HOME", "/home/me"}})->value().ca, "/home/me/.docker/ca.pem");
  EXPECT_EQ(tls_of({{"DOCKER_TLS", "1"}}).error().code(), Code::kUnimplemented) << "nobody's certificate would be checked";
  const auto sockets = find_engine({.engine = "/x"}, {{"DOCKER_TLS_VERIFY", "1"}}, [](const std::string&) { return true; });
  EXPECT_FALSE(sockets->tls) << "a unix socket has none";
}

}  // namespace
}  // namespace belljar::backend::container
