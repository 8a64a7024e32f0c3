// The container backend with an engine over TCP: a real one behind TLS of our own, and what is refused before any engine is asked.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "../backend/container/support_fake_engine.h"
#include "belljar/container.h"
#include "belljar/error.h"
#include "belljar/sandbox.h"
#include "support/as_user.h"
#include "support/engine.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"
#include "support/tls_relay.h"

namespace belljar {
namespace {

using test::Certificates;
using test::TlsRelay;

class EngineOverTcp : public testing::Test {
 protected:
  static void SetUpTestSuite() { files_ = new Certificates(); }
  static void TearDownTestSuite() {
    delete files_;
    files_ = nullptr;
  }
  EngineOverTcp() {
    work_.give_to(test::user_uid(), test::user_gid());
    config_.backend = "container";
    config_.workspace = work_.path();
    config_.container.image = test::Engine::image();
    config_.container.pull = PullPolicy::kNever;
  }
  Error refusal(const std::string& engine, const std::map<std::string, std::string>& environment) {
    config_.container.engine = engine;
    config_.caller_env = environment;
    config_.caller_env["PATH"] = "/bin";
    const auto sandbox = make_sandbox(config_);
    if (!sandbox) return sandbox.error();
    const auto started = (*sandbox)->start();
    return started ? Error(Code::kUnknown, "it was started") : started.error();
  }
  static Certificates* files_;
  const test::TempDir work_;
  SandboxConfig config_;
};
Certificates* EngineOverTcp::files_ = nullptr;

class EngineOverTls : public EngineOverTcp {
 protected:
  void SetUp() override { BELLJAR_NEEDS(start_engine(engine_)); }
  std::unique_ptr<test::Engine> engine_;
};

TEST_F(EngineOverTls, ServesCommandsThroughIt) {
  const TlsRelay relay(*files_, "good", engine_->socket(), TlsRelay::Clients::kKnown);
  for (const char* host : {"127.0.0.1", "localhost"}) {
    config_.container.engine = relay.address(host);
    config_.caller_env = files_->client();
    config_.caller_env["PATH"] = "/bin";
    const auto sandbox = make_sandbox(config_);
    ASSERT_TRUE(sandbox) << sandbox.error().line();
    const auto started = (*sandbox)->start();
    ASSERT_TRUE(started) << started.error().line() << started.error().next();
    const std::string large(2'000'000, 'x');
    const auto echoed = (*sandbox)->exec("cat", {.stdin_bytes = large, .output_bytes = 3'000'000});
    ASSERT_TRUE(echoed) << echoed.error().line();
    EXPECT_EQ(echoed->out.bytes, large);
    EXPECT_EQ((*sandbox)->exec("exit 3")->exit_code, 3);
    ASSERT_TRUE((*sandbox)->write_file("here", "shown"));
    EXPECT_EQ((*sandbox)->exec("cat here")->out.bytes, "shown");
    ASSERT_TRUE((*sandbox)->stop());
  }
  EXPECT_TRUE(engine_->containers().empty());
}

TEST_F(EngineOverTls, WhoIsNotBelievedIsOneClearError) {
  const TlsRelay good(*files_, "good", engine_->socket(), TlsRelay::Clients::kKnown);
  const TlsRelay expired(*files_, "expired", engine_->socket(), TlsRelay::Clients::kAny);
  const TlsRelay misnamed(*files_, "misnamed", engine_->socket(), TlsRelay::Clients::kAny);
  const auto why = [&](const TlsRelay& relay, const std::map<std::string, std::string>& environment) {
    const Error error = refusal(relay.address(), environment);
    EXPECT_EQ(error.code(), Code::kUnauthenticated) << error.line();
    return error.reason();
  };
  EXPECT_EQ(refusal(good.address(), files_->client()).what(), "it was started") << "the twin";
  EXPECT_EQ(why(expired, files_->client()), "its certificate: certificate has expired");
  EXPECT_EQ(why(misnamed, files_->client()), "its certificate is not for `127.0.0.1`");
  EXPECT_EQ(why(good, files_->client("client", "other")), "its certificate: self-signed certificate in certificate chain");
  EXPECT_NE(why(good, files_->client("")).find("certificate required"), std::string::npos);
  EXPECT_NE(why(good, files_->client("stranger")).find("unknown ca"), std::string::npos);
}

// A tunnel: loopback, and the engine of another machine behind it.
TEST_F(EngineOverTcp, FilesOfAnotherMachineAreRefusedByName) {
  backend::container::test::FakeEngine engine;
  engine.answer_ping();
  engine.answer_json("/info", 200, R"({"Name": "elsewhere", "ServerVersion": "1"})");
  const TlsRelay relay(*files_, "good", engine.address().path, TlsRelay::Clients::kKnown);
  const Error error = refusal(relay.address(), files_->client());
  EXPECT_EQ(error.code(), Code::kUnimplemented);
  EXPECT_EQ(error.what(), "cannot show the workspace to the container engine at `" + relay.address() + "`");
  EXPECT_EQ(error.reason(), "bind mounts are directories of its own machine, `elsewhere`");
  config_.container.engine_files = EngineFiles::kShared;
  EXPECT_EQ(refusal(relay.address(), files_->client()).what(), "there is no image `localhost/belljar-test:1`")
      << "the twin goes on";
}

TEST_F(EngineOverTcp, FilesThatAreMissingAreNamed) {
  const test::TempDir nothing;
  const TlsRelay relay(*files_, "good", "/nonexistent/sock", TlsRelay::Clients::kAny);
  const Error none = refusal(relay.address(), {{"DOCKER_TLS_VERIFY", "1"}, {"DOCKER_CERT_PATH", nothing.path()}});
  EXPECT_EQ(none.code(), Code::kNotFound) << none.line();
  EXPECT_EQ(none.what(), "cannot use `" + (nothing / "ca.pem") + "` as the engine's authority");
  const auto half = files_->client();
  const test::TempDir no_key;
  no_key.write("ca.pem", test::read_file(half.at("DOCKER_CERT_PATH") + "/ca.pem"));
  no_key.write("cert.pem", test::read_file(half.at("DOCKER_CERT_PATH") + "/cert.pem"));
  EXPECT_EQ(refusal(relay.address(), {{"DOCKER_TLS_VERIFY", "1"}, {"DOCKER_CERT_PATH", no_key.path()}}).what(),
            "cannot use `" + (no_key / "key.pem") + "` as our certificate's key");
}

TEST_F(EngineOverTcp, WhatSpeaksNoTlsOrIsNotThereIsSaid) {
  const TlsRelay relay(*files_, "good", "/nonexistent/sock", TlsRelay::Clients::kAny);
  EXPECT_EQ(refusal("tcp://127.0.0.1:1", files_->client()).code(), Code::kUnavailable);
  EXPECT_EQ(refusal("tcp://10.255.255.1:2375", {}).code(), Code::kFailedPrecondition) << "plain, and not loopback";
  EXPECT_EQ(refusal("tcp://no-such-host.invalid:2376", files_->client()).code(), Code::kUnavailable);
  EXPECT_EQ(refusal("ssh://host", {}).code(), Code::kUnimplemented);
  EXPECT_NE(refusal(relay.address(), {}).what(), "it was started") << "plain towards TLS";
}

}  // namespace
}  // namespace belljar
