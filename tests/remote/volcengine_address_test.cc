#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "belljar/cloud.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/volcengine.h"
#include "remote/address.h"
#include "remote/volcengine/address.h"

namespace belljar::remote::volcengine {
namespace {

using Environment = std::map<std::string, std::string>;

const Environment kEnough = {{"VOLC_ACCESS_KEY_ID", "AKLT1"}, {"VOLC_SECRET_ACCESS_KEY", "secret1"}, {"SANDBOX_APP_ID", "fn-1"}};

Environment with(Environment more) {
  more.insert(kEnough.begin(), kEnough.end());
  return more;
}

TEST(VolcengineAddress, EveryNameOfAKeyWillDo) {
  for (const auto& [id, secret] :
       {std::pair{"VOLC_ACCESS_KEY_ID", "VOLC_SECRET_ACCESS_KEY"}, std::pair{"VOLC_ACCESS_KEY", "VOLC_SECRET_KEY"},
        std::pair{"VOLC_ACCESSKEY", "VOLC_SECRETKEY"}, std::pair{"VOLCENGINE_ACCESS_KEY", "VOLCENGINE_SECRET_KEY"}}) {
    const auto found = find_address({}, {{id, "AKLT2"}, {secret, "c2VjcmV0Cg=="}, {"SANDBOX_APP_ID", "fn-1"}});
    ASSERT_TRUE(found) << found.error().line();
    EXPECT_EQ(found->keys.id, "AKLT2") << id;
    EXPECT_EQ(found->keys.secret, "c2VjcmV0Cg==");
    EXPECT_EQ(found->region, "cn-beijing");
    EXPECT_EQ(found->function_id, "fn-1");
    EXPECT_EQ(found->url_of("vefaas"), "https://open.volcengineapi.com");
    EXPECT_EQ(found->endpoint, "");
  }
}

TEST(VolcengineAddress, OptionsWinOverTheEnvironment) {
  const Environment environment = with({{"VEFAAS_REGION", "cn-shanghai"},
                                        {"SANDBOX_ENDPOINT", "https://gw.example.com/"},
                                        {"VOLC_SESSION_TOKEN", "STS1"},
                                        {"SANDBOX_AUTHORIZATION", "Bearer key"}});
  const auto found = find_address({}, environment);
  ASSERT_TRUE(found) << found.error().line();
  EXPECT_EQ(found->region, "cn-shanghai");
  EXPECT_EQ(found->endpoint, "https://gw.example.com");
  EXPECT_EQ(found->keys.token, "STS1");
  EXPECT_EQ(found->authorization, "Bearer key");
  VolcengineOptions options;
  options.access_key_id = "AKLT9";
  options.secret_access_key = "secret9";
  options.region = "cn-guangzhou";
  options.function_id = "fn-9";
  options.hosts = VolcengineHosts::kDualStack;
  const auto chosen = find_address(options, environment);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->keys.id, "AKLT9");
  EXPECT_EQ(chosen->keys.token, "") << "the token of the environment belongs to the key there";
  EXPECT_EQ(chosen->function_id, "fn-9");
  EXPECT_EQ(chosen->url_of("vefaas"), "https://vefaas.cn-guangzhou.volcengine-api.com");
  options.hosts = VolcengineHosts::kRegional;
  EXPECT_EQ(find_address(options, environment)->url_of("apig"), "https://apig.cn-guangzhou.volcengineapi.com");
}

TEST(VolcengineAddress, WhatIsMissingIsNamed) {
  EXPECT_EQ(find_address({}, {{"SANDBOX_APP_ID", "fn-1"}}).error().code(), Code::kUnauthenticated);
  const Error half = find_address({}, {{"SANDBOX_APP_ID", "fn-1"}, {"VOLC_ACCESS_KEY", "AKLTgiven"}}).error();
  EXPECT_EQ(half.code(), Code::kInvalidArgument);
  EXPECT_EQ(half.reason(), "there is VOLC_ACCESS_KEY, and no VOLC_SECRET_KEY");
  EXPECT_EQ(half.line().find("AKLTgiven"), std::string::npos);
  VolcengineOptions options;
  options.secret_access_key = "only-this";
  EXPECT_EQ(find_address(options, kEnough).error().reason(), "there is secret_access_key, and no access_key_id");
  const Error nowhere = find_address({}, {{"VOLC_ACCESS_KEY_ID", "AKLT1"}, {"VOLC_SECRET_ACCESS_KEY", "secret1"}}).error();
  EXPECT_NE(nowhere.next().find("SANDBOX_APP_ID"), std::string::npos) << nowhere.line();
  const Error legacy = find_address({}, {{"VOLCENGINE_ENDPOINT", "https://mcp.example.com"},
                                         {"VOLCENGINE_ACCESS_KEY", "AKLT1"},
                                         {"VOLCENGINE_SECRET_KEY", "secret1"}})
                           .error();
  EXPECT_EQ(legacy.code(), Code::kUnimplemented);
  EXPECT_NE(legacy.reason().find("computer_*"), std::string::npos) << legacy.line();
}

TEST(VolcengineAddress, KeysGoNowhereInTheClear) {
  for (const char* url : {"http://gw.example.com", "https://user:pass@gw.example.com", "gw.example.com", "ftp://gw.example.com",
                          "https://gw.example.com/?Authorization=key", "https://"}) {
    const auto found = find_address({}, with({{"SANDBOX_ENDPOINT", url}}));
    ASSERT_FALSE(found) << url;
    EXPECT_EQ(found.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(found.error().line().find("user:"), std::string::npos) << found.error().line();
  }
  for (const char* url : {"http://127.0.0.1:8080", "http://localhost:8080/", "http://[::1]:8080", "https://gw.example.com/prefix"})
    EXPECT_TRUE(find_address({}, with({{"SANDBOX_ENDPOINT", url}}))) << url;
  EXPECT_FALSE(find_address({}, with({{"VOLCENGINE_API_URL", "http://open.volcengineapi.com"}})));
  EXPECT_FALSE(find_address({}, with({{"VOLCENGINE_API_URL", "https://open.volcengineapi.com/path"}}))) << "the path / is signed";
  EXPECT_TRUE(find_address({}, with({{"VOLCENGINE_API_URL", "https://open.volcengineapi.com/"}})));
  EXPECT_FALSE(find_address({}, with({{"SANDBOX_AUTHORIZATION", "Bearer x\r\nEvil: yes"}})));
  EXPECT_FALSE(find_address({}, with({{"VEFAAS_REGION", "cn/../x"}})));
}

TEST(VolcengineAddress, AContainerNeedsNoAccount) {
  VolcengineOptions options;
  options.aio_url = "http://localhost:8080/";
  const auto found = find_address(options, {{"SANDBOX_API_KEY", "k"}});
  ASSERT_TRUE(found) << found.error().line();
  EXPECT_EQ(found->endpoint, "http://localhost:8080");
  EXPECT_EQ(found->aio_key, "k");
  options.aio_url = "http://elsewhere:8080";
  EXPECT_FALSE(find_address(options, {}));
}

TEST(VolcengineAddress, WhatIsShownHoldsNoSecret) {
  Address address;
  address.keys = {.id = "AKLT1", .secret = "topsecret", .token = "sts-token"};
  address.authorization = "Bearer gateway";
  EXPECT_EQ(shown("AKLT1 topsecret sts-token Bearer gateway gateway \x1b[31m", address.secrets()),
            "[redacted] [redacted] [redacted] [redacted] [redacted] \\x1b[31m");
  EXPECT_EQ(shown(std::string(1000, 'x'), {}).size(), 303U);
}

Result<VolcengineOptions> options_from(const std::map<std::string, std::string>& keys) {
  VolcengineOptions options;
  for (const auto& [key, value] : keys) BELLJAR_CHECK(set_option(options, key, value));
  return options;
}

TEST(VolcengineOptions, KeysOfConfigurationFilesAreMapped) {
  const auto found = options_from({{"region", "cn-beijing"},
                                   {"access_key_id", "AKLT1"},
                                   {"secret_access_key", "s"},
                                   {"instance_type", "performance"},
                                   {"timeout", "600"},
                                   {"auto_destroy", "true"}});
  ASSERT_TRUE(found) << found.error().line();
  EXPECT_EQ(found->region, "cn-beijing");
  EXPECT_EQ(found->access_key_id, "AKLT1");
  EXPECT_EQ(found->secret_access_key, "s");
  EXPECT_EQ(found->instance_type, VolcengineInstance::kPerformance);
  EXPECT_EQ(found->lifetime, std::chrono::minutes(10));
  EXPECT_EQ(found->on_stop, CloudOnStop::kKill);
  EXPECT_EQ(options_from({{"auto_destroy", "false"}})->on_stop, CloudOnStop::kLeave);
  EXPECT_EQ(volcengine_config_from({{"workdir", "/workspace"}, {"region", "cn-beijing"}})->workspace, "/workspace");
  EXPECT_FALSE(volcengine_config_from({{"regoin", "cn-beijing"}}));
  EXPECT_EQ(options_from({{"timeout", "1h"}})->lifetime, std::chrono::hours(1));
}

TEST(VolcengineOptions, OtherKeysAreRefusedWithWhatToUse) {
  for (const auto& [key, next] : {std::pair{"secret_key", "secret_access_key"}, std::pair{"access_key", "access_key_id"},
                                  std::pair{"memory_limit", "limits.memory"}, std::pair{"cpu_limit", "limits.cpus"},
                                  std::pair{"network_mode", "network.mode"}, std::pair{"work_dir", "use workdir"},
                                  std::pair{"regoin", "region, access_key_id"}}) {
    const auto found = options_from({{key, "value-not-told"}});
    ASSERT_FALSE(found) << key;
    EXPECT_NE(found.error().what().find(key), std::string::npos);
    EXPECT_NE(found.error().next().find(next), std::string::npos) << found.error().line();
    EXPECT_EQ(found.error().line().find("value-not-told"), std::string::npos);
  }
  EXPECT_FALSE(options_from({{"instance_type", "huge"}}));
  EXPECT_FALSE(options_from({{"auto_destroy", "yes"}}));
  EXPECT_FALSE(options_from({{"timeout", "soon"}}));
}

}  // namespace
}  // namespace belljar::remote::volcengine
