// Which TLS is looked into and why, and credentials as text.
#include "policy/tls_interception.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "policy/merge.h"

namespace belljar::policy {
namespace {

Destination destination(const char* text) { return parse_destination(text, 443).value(); }

InterceptionVerdict intercept(const Network& network, const char* where) {
  return decide_interception(make_host_rules(network).value(), make_interception_rules(network).value(), destination(where));
}

TEST(Credential, SaysNameSourceHostsAndPlaces) {
  const Credential plain = parse_credential("TOKEN for api.test").value();
  EXPECT_EQ(plain.name, "TOKEN");
  EXPECT_EQ(plain.from, "TOKEN");
  EXPECT_EQ(plain.source, Credential::Source::kVariable);
  EXPECT_TRUE(plain.header && plain.basic && plain.query);
  const Credential full = parse_credential("T=file:/run/a@b for api.test:8443,*.git.test in basic,query").value();
  EXPECT_EQ(full.from, "/run/a@b");
  EXPECT_EQ(full.source, Credential::Source::kFile);
  ASSERT_EQ(full.hosts.size(), 2U);
  EXPECT_EQ(full.hosts[0].port, 8443);
  EXPECT_FALSE(full.header);
  EXPECT_EQ(parse_credential("T=env:OTHER@api.test").value().from, "OTHER");
}

TEST(Credential, WhatNamesNoHostNoValueOrNoPlaceIsRefused) {
  for (const char* text : {"TOKEN", "TOKEN for *", "TOKEN for 10.0.0.0/8", "TOKEN for ", " for api.test", "A-B for api.test",
                           "T=env: for api.test", "T=file:relative for api.test", "T=cmd:x for api.test", "T for api.test in body",
                           "T for https://api.test", "T for api.test,"}) {
    const auto parsed = parse_credential(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), Code::kInvalidArgument) << text;
    EXPECT_FALSE(parsed.error().next().empty()) << text;
  }
  EXPECT_TRUE(parse_credential("TOKEN for 192.0.2.7"));
}

TEST(Credential, AVariableThatEveryProgramReadsIsNotAPlaceholder) {
  for (const char* name : {"PATH", "HOME", "HTTP_PROXY", "no_proxy", "LD_PRELOAD"}) {
    const auto parsed = parse_credential(format("{} for api.test", name));
    ASSERT_FALSE(parsed) << name;
    EXPECT_NE(parsed.error().reason().find("read by every program"), std::string::npos) << parsed.error().reason();
  }
  // It may be where the value comes from, and a name that only resembles one of them is free.
  for (const char* text : {"TOKEN=env:HTTP_PROXY for api.test", "MY_PATH for api.test", "PROXY_TOKEN for api.test"})
    EXPECT_TRUE(parse_credential(text)) << text;
}

TEST(TlsInterception, OnlyWhatARuleNeedsIsLookedInto) {
  Network network;
  network.mode = NetMode::kProxy;
  network.allowed_domains = {"whole.test", "key.test", "pinned.test"};
  EXPECT_FALSE(wants_interception(network));
  network.allowed_requests = {"GET clear.test:80/"};
  EXPECT_FALSE(wants_interception(network)) << "in the clear nothing has to be looked into";
  network.allowed_requests = {"GET docs.test/a", "GET pinned2.test"};
  network.credentials = {"TOKEN for key.test,pinned.test"};
  network.tls_passthrough = {"pinned.test", "pinned2.test"};
  EXPECT_TRUE(wants_interception(network));
  EXPECT_EQ(intercept(network, "whole.test").why, InterceptionReason::kNone);
  EXPECT_EQ(intercept(network, "docs.test").why, InterceptionReason::kRequests);
  EXPECT_EQ(intercept(network, "key.test").why, InterceptionReason::kCredential);
  EXPECT_EQ(intercept(network, "pinned.test").why, InterceptionReason::kPassthrough);
  EXPECT_FALSE(intercept(network, "pinned2.test").intercepts());
  EXPECT_EQ(intercept(network, "nowhere.test").why, InterceptionReason::kNone);
  network.methods = NetMethods::kLimited;
  EXPECT_EQ(intercept(network, "whole.test").why, InterceptionReason::kLimited);
  network.mode = NetMode::kNone;
  EXPECT_FALSE(wants_interception(network));
}

TEST(TlsInterception, AnExceptionForEverythingNeedsNoTls) {
  Network network;
  network.mode = NetMode::kProxy;
  network.allowed_requests = {"GET docs.test/a"};
  network.tls_passthrough = {"*"};
  EXPECT_FALSE(wants_interception(network));
}

TEST(TlsInterception, TheVariableOfAValueIsKnownByItsExactName) {
  Network network;
  network.credentials = {"T=env:REAL for a.test", "U=file:/x for a.test"};
  EXPECT_TRUE(is_credential_source(network, "REAL=1"));
  EXPECT_FALSE(is_credential_source(network, "REALLY=1"));
  EXPECT_FALSE(is_credential_source(network, "T=1"));
}

TEST(TlsInterception, AFileThatHoldsACredentialIsHiddenWhateverElseIsSaid) {
  Network network;
  network.credentials = {"T=file:~/token for a.test"};
  std::vector<FsEntry> entries{{"/home/u/token", false, Access::kWrite, {}}};
  hide_credentials(entries, network, "/home/u");
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].access, Access::kNone);
}

}  // namespace
}  // namespace belljar::policy
