#include "policy/ignore.h"

#include <gtest/gtest.h>

#include "support_policy.h"

namespace belljar::policy {
namespace {

Violation act(std::string operation, std::string target, std::string program = "sh") {
  Violation violation;
  violation.operation = std::move(operation);
  violation.target = std::move(target);
  violation.program = std::move(program);
  return violation;
}

bool file(const char* pattern, const Violation& violation) { return is_ignored({.file = {pattern}}, violation); }
bool network(const char* pattern, const Violation& violation) { return is_ignored({.network = {pattern}}, violation); }

TEST(Ignore, GlobsCoverPathsAndWhatLiesBelow) {
  EXPECT_TRUE(file("/tmp/**", act("write", "/tmp/a/b")));
  EXPECT_TRUE(file("/var/cache", act("create", "/var/cache/x")));
  EXPECT_FALSE(file("/tmp/*.log", act("write", "/tmp/a.txt")));
  EXPECT_FALSE(file("/tmp/**", act("write", "/tmpx")));
}

TEST(Ignore, DotsDoNotLeadAPathUnderAPattern) { EXPECT_FALSE(file("/tmp/**", act("unix-connect", "/tmp/../run/docker.sock"))); }

TEST(Ignore, OperationAndProgramNarrowAPattern) {
  EXPECT_TRUE(file("/etc/** on delete", act("delete", "/etc/x")));
  EXPECT_FALSE(file("/etc/** on delete", act("write", "/etc/x")));
  EXPECT_TRUE(file("/etc/** on writ*", act("write", "/etc/x")));
  EXPECT_TRUE(file("/etc/** by npm", act("write", "/etc/x", "npm")));
  EXPECT_FALSE(file("/etc/** by npm", act("write", "/etc/x", "curl")));
  EXPECT_TRUE(file("/etc/** on write by npm*", act("write", "/etc/x", "npm exec")));
  EXPECT_FALSE(file("/etc/** on write by npm*", act("delete", "/etc/x", "npm exec")));
}

TEST(Ignore, HostsAndPortsTakeWildcards) {  // F-004-26, F-004-40, F-004-45
  EXPECT_TRUE(network("localhost:*", act("connect", "localhost:9")));
  EXPECT_TRUE(network("127.0.0.1:3000", act("connect", "127.0.0.1:3000")));
  EXPECT_FALSE(network("127.0.0.1:3000", act("connect", "127.0.0.1:3001")));
  EXPECT_TRUE(network("*.example.com:443", act("egress", "api.EXAMPLE.com:443")));
  EXPECT_FALSE(network("*.example.com:443", act("egress", "example.com:443")));
  EXPECT_FALSE(network("*.example.com:443", act("egress", "api.example.com:80")));
  EXPECT_TRUE(network("target-host.com:443", act("egress", "target-host.com:443")));
  EXPECT_TRUE(network("[2001:db8::1]:443", act("connect", "[2001:db8::1]:443")));
  EXPECT_TRUE(network("10.*", act("connect", "10.1.2.3:5")));
  for (const char* operation : {"udp-connect", "bind", "listen"}) EXPECT_TRUE(network("*:53", act(operation, "10.1.2.3:53")));
}

TEST(Ignore, ListsKeepToTheirKind) {
  EXPECT_FALSE(file("/**", act("connect", "192.0.2.1:1")));
  EXPECT_FALSE(network("*", act("write", "/etc/x")));
  EXPECT_FALSE(network("*", act("system-call", "bpf")));
  EXPECT_FALSE(file("/**", act("limit", "memory")));
  EXPECT_FALSE(network("*", act("limit", "memory")));
  EXPECT_FALSE(is_ignored({}, act("write", "/etc/x")));
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
