// `belljar doctor`: every backend, usable or not, and why.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "support/as_user.h"
#include "support/engine.h"
#include "support/has.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar {
namespace {

using test::has;
using namespace std::chrono_literals;

class Doctor : public testing::Test {
 protected:
  Doctor() { place_.give_to(test::user_uid(), test::user_gid()); }
  test::Outcome doctor(std::map<std::string, std::string> env, const std::vector<std::string>& more = {}) const {
    env.emplace("XDG_RUNTIME_DIR", place_.path());
    std::vector<std::string> words = {"doctor"};
    words.insert(words.end(), more.begin(), more.end());
    return test::belljar(words, {.cwd = place_.path(), .env = env});
  }
  UniqueFd listen_at(const std::string& path) const {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::strncpy(name.sun_path, path.c_str(), sizeof name.sun_path - 1);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
    EXPECT_EQ(::listen(fd.get(), 16), 0);
    return fd;
  }
  const test::TempDir place_;
};

TEST_F(Doctor, ListsEveryBackendWithItsIsolation) {
  const auto outcome = doctor({{"DOCKER_HOST", "unix:///nonexistent/sock"}, {"E2B_API_KEY", ""}});
  for (const char* row : {"  native      yes  namespace ", "  landlock    yes  landlock ", "  container   no   container ",
                          "  local       yes  guard-rails ", "  mock        yes  none ", "  e2b         no   vm ",
                          "  aliyun      no   container ", "  volcengine  no   container "})
    EXPECT_TRUE(has(outcome.out, row)) << row << outcome;
  EXPECT_TRUE(has(outcome.out, "/nonexistent/sock: cannot reach the container engine at `/nonexistent/sock`")) << outcome;
  EXPECT_TRUE(has(outcome.out, "next: start the engine")) << outcome;
  EXPECT_TRUE(has(outcome.out, "isolation vm is not to be had")) << outcome;
  const auto json = doctor({{"DOCKER_HOST", "unix:///nonexistent/sock"}}, {"--json"});
  EXPECT_TRUE(has(json.out, R"("name": "container",
      "usable": false,
      "isolation": "container")"))
      << json;
}

TEST_F(Doctor, BeginsWithTheAnswerAndEndsWithWhatToType) {
  const auto outcome = doctor({});
  const std::string second = outcome.out.substr(outcome.out.find('\n') + 1);
  const std::string asked = "This machine can run sandboxes: ";
  EXPECT_TRUE(second.starts_with(asked + (outcome.exit_code == 0 ? "yes" : "no: "))) << outcome;
  const std::string last = outcome.out.substr(outcome.out.rfind("\n\n") + 2);
  EXPECT_TRUE(last.starts_with("What to do next:\n  ")) << outcome;
  EXPECT_TRUE(has(last, outcome.exit_code == 0 ? "\n  belljar run -- PROGRAM " : "\n  belljar doctor ")) << outcome;
}

TEST_F(Doctor, SaysOfWhichWorkTreesTheNestedNamesAreHeld) {
  const auto outcome = doctor({});
  if (!has(outcome.out, "protect.nested           full ")) GTEST_SKIP() << "needs the broker";
  EXPECT_TRUE(has(outcome.out, "those of agents and editors in work trees that stood before the run\n")) << outcome;
  place_.make_dir("stood/.git");
  place_.give_to(test::user_uid(), test::user_gid());
  const auto plant = [&](const std::string& tree) {
    return test::belljar({"run", "-c", "mkdir -p " + tree + "/.git; echo x >" + tree + "/.envrc"}, {.cwd = place_.path()})
        .exit_code;
  };
  EXPECT_NE(plant("stood"), 0);
  EXPECT_EQ(plant("made"), 0);
}

TEST_F(Doctor, TwoWaysToAliyunAreNoChoice) {
  const auto both = doctor({{"AGENTBAY_API_KEY", "akm-x"}, {"ALIYUN_MCP_ENDPOINT", "https://127.0.0.1/"}});
  EXPECT_TRUE(has(both.out, "  aliyun      no   container ")) << both;
  EXPECT_TRUE(has(both.out, "AGENTBAY_API_KEY and ALIYUN_MCP_ENDPOINT are both set")) << both;
  EXPECT_TRUE(has(doctor({{"AGENTBAY_API_KEY", "akm-x"}}).out, "  aliyun      yes  container ")) << "the twin";
}

TEST_F(Doctor, SaysThatAProxyOfTheEnvironmentIsNotUsed) {
  const std::map<std::string, std::string> proxy = {{"http_proxy", "http://me:secretsecret@127.0.0.1:9"}};
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--json"}}) {
    const auto told = doctor(proxy, more);
    EXPECT_TRUE(has(told.out, "http_proxy is set and not used")) << told;
    EXPECT_TRUE(has(told.out, "network.upstream_proxy")) << told;
    EXPECT_FALSE(has(told.out + told.err, "secretsecret")) << told;
    EXPECT_FALSE(has(doctor({}, more).out, "is set and not used")) << "the twin";
  }
}

TEST_F(Doctor, ShowsNoKey) {
  const std::map<std::string, std::string> keys = {{"E2B_API_KEY", "e2b_secretsecret"},
                                                   {"AGENTBAY_API_KEY", "akm-secretsecret"},
                                                   {"VOLC_ACCESS_KEY_ID", "AKsecretsecret"},
                                                   {"VOLC_SECRET_ACCESS_KEY", "secretsecret"}};
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--json"}}) {
    const auto outcome = doctor(keys, more);
    EXPECT_FALSE(has(outcome.out + outcome.err, "secretsecret")) << outcome;
    EXPECT_TRUE(has(outcome.out, "SANDBOX_APP_ID and VOLC_ACCESS_KEY_ID and VOLC_SECRET_ACCESS_KEY")) << outcome;
  }
}

TEST_F(Doctor, WaitsNotLongForAnEngineThatIsSilent) {
  const UniqueFd silent = listen_at(place_ / "docker.sock");
  const auto outcome = doctor({{"DOCKER_HOST", ""}});
  EXPECT_TRUE(has(outcome.out, (place_ / "docker.sock") + ": the container engine did not finish")) << outcome;
  EXPECT_TRUE(has(outcome.out, "no answer for 2 s")) << outcome;
  EXPECT_FALSE(outcome.timed_out) << "it never answers";
}

TEST_F(Doctor, AsksTheEnginesThatAreThere) {
  std::unique_ptr<test::Engine> engine;
  BELLJAR_NEEDS(start_engine(engine));
  const auto outcome = doctor({{"DOCKER_HOST", engine->address()}});
  EXPECT_TRUE(has(outcome.out, "  container   yes  container    " + engine->socket() + ": engine ")) << outcome;
  EXPECT_TRUE(has(outcome.out, "no runtime with a kernel of its own")) << outcome;
}

}  // namespace
}  // namespace belljar
