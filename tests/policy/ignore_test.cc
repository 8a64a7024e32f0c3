#include "policy/ignore.h"

#include <gtest/gtest.h>

#include "support_policy.h"

namespace belljar::policy {
namespace {

Violation tried(std::string operation, std::string target, std::string program = "sh") {
  Violation violation;
  violation.operation = std::move(operation);
  violation.target = std::move(target);
  violation.program = std::move(program);
  return violation;
}

bool file(const char* pattern, const Violation& violation) { return is_ignored({.file = {pattern}}, violation); }
bool network(const char* pattern, const Violation& violation) { return is_ignored({.network = {pattern}}, violation); }

TEST(Ignore, GlobsCoverPathsAndWhatLiesBelow) {
  EXPECT_TRUE(file("/tmp/**", tried("write", "/tmp/a/b")));
  EXPECT_TRUE(file("/var/cache", tried("create", "/var/cache/x")));
  EXPECT_FALSE(file("/tmp/*.log", tried("write", "/tmp/a.txt")));
  EXPECT_FALSE(file("/tmp/**", tried("write", "/tmpx")));
}

TEST(Ignore, DotsDoNotLeadAPathUnderAPattern) { EXPECT_FALSE(file("/tmp/**", tried("unix-connect", "/tmp/../run/docker.sock"))); }

TEST(Ignore, OperationAndProgramNarrowAPattern) {
  EXPECT_TRUE(file("/etc/** on delete", tried("delete", "/etc/x")));
  EXPECT_FALSE(file("/etc/** on delete", tried("write", "/etc/x")));
  EXPECT_TRUE(file("/etc/** on writ*", tried("write", "/etc/x")));
  EXPECT_TRUE(file("/etc/** by npm", tried("write", "/etc/x", "npm")));
  EXPECT_FALSE(file("/etc/** by npm", tried("write", "/etc/x", "curl")));
  EXPECT_TRUE(file("/etc/** on write by npm*", tried("write", "/etc/x", "npm exec")));
  EXPECT_FALSE(file("/etc/** on write by npm*", tried("delete", "/etc/x", "npm exec")));
}

TEST(Ignore, HostsAndPortsTakeWildcards) {  // F-004-26, F-004-40, F-004-45
  EXPECT_TRUE(network("localhost:*", tried("connect", "localhost:9")));
  EXPECT_TRUE(network("127.0.0.1:3000", tried("connect", "127.0.0.1:3000")));
  EXPECT_FALSE(network("127.0.0.1:3000", tried("connect", "127.0.0.1:3001")));
  EXPECT_TRUE(network("*.example.com:443", tried("egress", "api.EXAMPLE.com:443")));
  EXPECT_FALSE(network("*.example.com:443", tried("egress", "example.com:443")));
  EXPECT_FALSE(network("*.example.com:443", tried("egress", "api.example.com:80")));
  EXPECT_TRUE(network("target-host.com:443", tried("egress", "target-host.com:443")));
  EXPECT_TRUE(network("[2001:db8::1]:443", tried("connect", "[2001:db8::1]:443")));
  EXPECT_TRUE(network("10.*", tried("connect", "10.1.2.3:5")));
  for (const char* operation : {"udp-connect", "bind", "listen"}) EXPECT_TRUE(network("*:53", tried(operation, "10.1.2.3:53")));
}

TEST(Ignore, ListsKeepToTheirKind) {
  EXPECT_FALSE(file("/**", tried("connect", "192.0.2.1:1")));
  EXPECT_FALSE(network("*", tried("write", "/etc/x")));
  EXPECT_FALSE(network("*", tried("system-call", "bpf")));
  EXPECT_FALSE(file("/**", tried("limit", "memory")));
  EXPECT_FALSE(network("*", tried("limit", "memory")));
  EXPECT_FALSE(is_ignored({}, tried("write", "/etc/x")));
}

TEST(Ignore, BothSpellingsParseAndPatternsAreAnchored) {
  const auto effective =
      merged({layer("user", "[ignoreViolations]\nfile = [\"/tmp/**\", \"build/**\", \"~/x\"]\nnetwork = [\"a:1\"]")});
  ASSERT_TRUE(effective) << effective.error().line();
  EXPECT_EQ(effective->policy.ignore_violations.file, (std::vector<std::string>{"/tmp/**", "/w/build/**", "/home/u/x"}));
  EXPECT_EQ(effective->policy.ignore_violations.network, std::vector<std::string>{"a:1"});
}

TEST(Ignore, WhatMatchesNothingIsAnError) {
  for (const char* text : {"", "/a[", "/a on ", "/a by ", "~u/x"}) EXPECT_FALSE(check_ignored_file(text)) << text;
  for (const char* text : {"/a", "/a on x by y", "**/*.pem"}) EXPECT_TRUE(check_ignored_file(text)) << text;
  for (const char* text : {":1", "a:b", "a:70000", "http://a", "u@a:1"}) EXPECT_FALSE(check_ignored_host(text)) << text;
  for (const char* text : {"a", "*.b:443", "[::1]:80", "c:*"}) EXPECT_TRUE(check_ignored_host(text)) << text;
}

TEST(Ignore, GrantsNothing) {
  const auto with = merged({layer("user", "ignore_violations.file = [\"/**\"]\nignore_violations.network = [\"*\"]")});
  const auto without = merged({layer("user", "")});
  ASSERT_TRUE(with && without);
  Policy same = with->policy;
  same.ignore_violations = {};
  EXPECT_EQ(same, without->policy);
  EXPECT_EQ(with->complete, without->complete);
}

}  // namespace
}  // namespace belljar::policy
