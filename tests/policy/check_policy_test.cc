#include "policy/check_policy.h"

#include <gtest/gtest.h>

#include <functional>

#include "policy/merge.h"
#include "support_policy.h"

namespace belljar::policy {
namespace {

using namespace std::chrono_literals;

// "ok", or what was refused, after a policy written in code was changed by `change`.
std::string checked(const std::function<void(Policy&)>& change) {
  Policy policy;
  change(policy);
  const auto result = check_policy(policy);
  if (result) return "ok";
  EXPECT_EQ(result.error().code(), Code::kInvalidArgument);
  return result.error().what();
}

std::string entry(const std::string& path, bool glob = false) {
  return checked([&](Policy& policy) { policy.filesystem.entries = {{.path = path, .glob = glob, .access = Access::kNone}}; });
}

TEST(CheckPolicy, APathIsAbsolute) {
  EXPECT_EQ(entry("key"), "filesystem.entries: `key` is not an absolute path");
  EXPECT_EQ(entry("~/key"), "filesystem.entries: `~/key` is not an absolute path");
  EXPECT_EQ(entry("./key"), "filesystem.entries: `./key` is not an absolute path");
  EXPECT_EQ(entry(""), "filesystem.entries: `` cannot be a path");
  EXPECT_EQ(entry(std::string("/a\0b", 4)), "filesystem.entries: `/a\\x00b` cannot be a path");
  EXPECT_EQ(entry("/home/u/key"), "ok");
  EXPECT_EQ(entry("/home/u/key/"), "ok");
  EXPECT_EQ(entry("/"), "ok");
}

TEST(CheckPolicy, APatternIsAbsoluteOrHoldsEverywhere) {
  EXPECT_EQ(entry("*.pem", true), "filesystem.entries: the pattern `*.pem` is not absolute");
  EXPECT_EQ(entry("~/*.pem", true), "filesystem.entries: the pattern `~/*.pem` is not absolute");
  EXPECT_EQ(entry("/w/{a,b}", true), "filesystem.entries: `/w/{a,b}` cannot be a pattern");
  EXPECT_EQ(entry("/w/*.pem", true), "ok");
  EXPECT_EQ(entry("**/.env", true), "ok");
}

TEST(CheckPolicy, OtherPathsAreAbsoluteToo) {
  const auto at = [](const std::function<void(Filesystem&, const std::string&)>& set, const std::string& path) {
    return checked([&](Policy& policy) { set(policy.filesystem, path); });
  };
  const auto volume = [](Filesystem& files, const std::string& path) { files.volumes = {{.source = path, .target = path}}; };
  const auto tmp = [](Filesystem& files, const std::string& path) { files.temp_dir = path; };
  const auto device = [](Filesystem& files, const std::string& path) { files.devices = {path}; };
  const auto cache = [](Filesystem& files, const std::string& path) { files.cache_dirs = {path}; };
  EXPECT_EQ(at(volume, "data"), "filesystem.volumes: `data` is not an absolute path");
  EXPECT_EQ(at(tmp, "tmp"), "filesystem.temp_dir: `tmp` is not an absolute path");
  EXPECT_EQ(at(device, "kvm"), "filesystem.devices: `kvm` is not an absolute path");
  EXPECT_EQ(at(cache, "cache"), "filesystem.cache_dirs: `cache` is not an absolute path");
  for (const auto& set : {std::function<void(Filesystem&, const std::string&)>(volume), {tmp}, {device}, {cache}})
    EXPECT_EQ(at(set, "/data"), "ok");
  EXPECT_EQ(at(cache, "~/.cache"), "ok");
}

TEST(CheckPolicy, AVariableHasAName) {
  const auto set = [](const std::string& name, const std::string& text) {
    return checked([&](Policy& policy) { policy.environment.set[name] = text; });
  };
  EXPECT_EQ(set("A=B", "x"), "environment.set: `A=B` cannot be the name of a variable");
  EXPECT_EQ(set("", "x"), "environment.set: `` cannot be the name of a variable");
  EXPECT_EQ(set("A", std::string("x\0y", 3)), "environment.set: `A` cannot have this value");
  EXPECT_EQ(set("A", ""), "ok");
  EXPECT_EQ(set("A", "B=C"), "ok");
}

TEST(CheckPolicy, WhatPassesIsNamedAndPatternsAreOnesThatMatch) {
  const auto list = [](std::vector<std::string> Environment::* names, const std::string& name) {
    return checked([&](Policy& policy) { policy.environment.*names = {name}; });
  };
  EXPECT_EQ(list(&Environment::exclude, "FOO_[12]"), "environment.exclude: `FOO_[12]` cannot be a pattern of variables' names");
  EXPECT_EQ(list(&Environment::include, "{A,B}"), "environment.include: `{A,B}` cannot be a pattern of variables' names");
  EXPECT_EQ(list(&Environment::pass, "FOO*"), "environment.pass: `FOO*` cannot be the name of a variable");
  EXPECT_EQ(list(&Environment::exclude, "FOO_?"), "ok");
  EXPECT_EQ(list(&Environment::include, "LC_*"), "ok");
  EXPECT_EQ(list(&Environment::pass, "FOO_1"), "ok");
}

TEST(CheckPolicy, TimesArePositive) {
  const auto timeout = [](std::chrono::milliseconds time) {
    return checked([&](Policy& policy) { policy.limits.timeout = time; });
  };
  EXPECT_EQ(timeout(0s), "`limits.timeout` is 0s");
  EXPECT_EQ(timeout(-1s), "`limits.timeout` is -1s");
  EXPECT_EQ(timeout(1ms), "ok");
  EXPECT_EQ(checked([](Policy& policy) { policy.limits.max_timeout = 0s; }), "`limits.max_timeout` is 0s");
  EXPECT_EQ(checked([](Policy& policy) { policy.limits.idle_timeout = 0s; }), "`limits.idle_timeout` is 0s");
  EXPECT_EQ(checked([](Policy& policy) { policy.limits.kill_grace = -1s; }), "`limits.kill_grace` is -1s");
  EXPECT_EQ(checked([](Policy& policy) { policy.limits.kill_grace = 0s; }), "ok");
}

TEST(CheckPolicy, AmountsOfEgressAreNotNothing) {
  EXPECT_EQ(checked([](Policy& policy) { policy.limits.egress_bytes = Bytes{0}; }), "limits.egress_bytes is 0");
  EXPECT_EQ(checked([](Policy& policy) { policy.limits.egress_rate = Bytes{0}; }), "limits.egress_rate is 0");
  EXPECT_EQ(checked([](Policy& policy) { policy.limits.egress_bytes = Bytes{1}; }), "ok");
}

TEST(CheckPolicy, AProxyToLeaveByIsOneThatCanBeUsed) {
  const auto proxy = [](const char* url) { return checked([&](Policy& policy) { policy.network.upstream_proxy = url; }); };
  EXPECT_EQ(proxy("http://user:secret@"), "network.upstream_proxy: the proxy to leave by cannot be used");
  EXPECT_EQ(proxy("http://user:secret@proxy.example:3128"), "ok");
  EXPECT_EQ(proxy(""), "ok");
}

TEST(CheckPolicy, WhatWasMergedPasses) {
  const auto effective = merged({layer("user", R"([filesystem]
blocked_paths = ["key", "~/x", "**/*.pem", "src/*.key"]
volumes = [{ source = "data" }]
[environment]
set = { A = "1" }
exclude = ["FOO_*"]
[limits]
timeout = "30s"
)")});
  ASSERT_TRUE(effective) << effective.error().line();
  const auto fine = check_policy(effective->policy);
  EXPECT_TRUE(fine) << fine.error().line();
}

}  // namespace
}  // namespace belljar::policy
