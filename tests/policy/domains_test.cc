#include "policy/domains.h"

#include <gtest/gtest.h>

namespace belljar::policy {
namespace {

HostRules rules(std::vector<std::string> allowed, std::vector<std::string> denied = {}) {
  Network network;
  network.allowed_domains = std::move(allowed);
  network.denied_domains = std::move(denied);
  return make_host_rules(network).value();
}

std::string decide(const HostRules& with, std::string_view destination) {
  return std::string(to_string(decide_host(with, parse_destination(destination).value()).reason));
}

std::string decide_at(const HostRules& with, std::string_view destination, std::string_view address, bool own = false) {
  return std::string(
      to_string(decide_address(with, parse_destination(destination).value(), parse_ip(address).value(), own).reason));
}

TEST(Domains, NamesMatchByWholeLabels) {
  struct Row {
    const char* rule;
    const char* host;
    bool allowed;
  };
  constexpr Row kRows[] = {
      {"example.com", "example.com:443", true},
      {"example.com", "EXAMPLE.COM.:443", true},
      {"example.com", "www.example.com:443", false},
      {"example.com", "evil-example.com:443", false},
      {"example.com", "example.com.evil.net:443", false},
      {"Example.Com.", "example.com:1", true},
      {"*.example.com", "example.com:443", false},
      {"*.example.com", "a.example.com:443", true},
      {"*.example.com", "a.b.example.com:443", true},
      {"*.example.com", "xexample.com:443", false},
      {"**.example.com", "example.com:443", true},
      {"**.example.com", "a.b.example.com:443", true},
      {"**.example.com", "notexample.com:443", false},
      {"example.com:443", "example.com:443", true},
      {"example.com:443", "example.com:80", false},
      {"*", "anything.example:22", true},
      {"*:443", "anything.example:22", false},
      {"*", "8.8.8.8:53", true},
      {"example.com", "93.184.216.34:443", false},
      {"93.184.216.34", "93.184.216.34:443", true},
      {"93.184.216.0/24:443", "93.184.216.99:443", true},
      {"93.184.216.0/24:443", "93.184.216.99:80", false},
      {"[2606:4700::]/32:443", "[2606:4700::1]:443", true},
      {"2606:4700::/32", "[2606:4701::1]:443", false},
      {"127.1", "2130706433:80", true},
  };
  for (const Row& row : kRows)
    EXPECT_EQ(decide(rules({row.rule}), row.host), row.allowed ? "allowed" : "not-listed") << row.rule << " " << row.host;
}

TEST(Domains, AnEmptyListAllowsNothing) { EXPECT_EQ(decide(rules({}), "example.com:443"), "not-listed"); }

TEST(Domains, DenyWinsWhateverComesFirst) {
  const HostRules with = rules({"*", "api.example.com"}, {"**.example.com", "192.0.2.0/24", "bad.example:25"});
  EXPECT_EQ(decide(with, "api.example.com:443"), "denied");
  EXPECT_EQ(decide(with, "other.example:443"), "allowed");
  EXPECT_EQ(decide(with, "192.0.2.5:443"), "denied");
  EXPECT_EQ(decide(with, "bad.example:25"), "denied");
  EXPECT_EQ(decide(with, "bad.example:26"), "allowed");
}

TEST(Domains, ADeniedRangeIsDeniedInEverySpelling) {
  const HostRules with = rules({"*", "8.8.8.0/24"}, {"8.8.8.8"});
  for (const char* text : {"8.8.8.8:53", "[::ffff:8.8.8.8]:53", "0x08080808:53", "[64:ff9b::8.8.8.8]:53", "[2002:808:808::]:53"})
    EXPECT_EQ(decide(with, text), "denied") << text;
  EXPECT_EQ(decide(with, "8.8.8.9:53"), "allowed");
  EXPECT_EQ(decide_at(with, "dns.example:53", "8.8.8.8"), "denied");
  EXPECT_EQ(decide_at(with, "dns.example:53", "64:ff9b::808:808"), "denied");
  EXPECT_EQ(decide_at(with, "dns.example:53", "8.8.4.4"), "allowed");
}

TEST(Domains, ANameOpensPublicAddressesOnly) {
  const HostRules with = rules({"example.com"});
  EXPECT_EQ(decide_at(with, "example.com:443", "93.184.216.34"), "allowed");
  for (const char* address :
       {"127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1", "64:ff9b::7f00:1", "2002:7f00:1::", "100.64.0.1"})
    EXPECT_EQ(decide_at(with, "example.com:443", address), "not-public") << address;
  EXPECT_EQ(decide_at(with, "example.com:443", "93.184.216.34", true), "own-address");
}

TEST(Domains, OnlyARuleForTheAddressOpensWhatIsNotPublic) {
  const HostRules with = rules({"example.com", "localhost", "127.0.0.1:8080", "10.0.0.0/8"});
  EXPECT_EQ(decide_at(with, "localhost:8080", "127.0.0.1"), "allowed");
  EXPECT_EQ(decide_at(with, "localhost:8081", "127.0.0.1"), "not-public");
  EXPECT_EQ(decide_at(with, "example.com:443", "10.9.8.7", true), "allowed");
  EXPECT_EQ(decide_at(with, "example.com:443", "::1"), "not-public");
  EXPECT_EQ(decide_at(rules({"*"}), "127.0.0.1:80", "127.0.0.1"), "not-public");
}

TEST(Domains, WhatIsNoRuleIsAnError) {
  for (const char* text : {"",
                           "*.",
                           "**",
                           "*.*.com",
                           "a.*.com",
                           "*a.com",
                           "https://example.com",
                           "example.com/path",
                           "example.com:0",
                           "example.com:x",
                           "*/8",
                           "10.0.0.0/33",
                           "10.0.0.1/8",
                           "10.0.0.0/",
                           "10.0.0.0/-1",
                           "*.10.0.0.0",
                           "b\xC3\xBC"
                           "cher.example",
                           "u@example.com",
                           "a b",
                           "[::1",
                           "fd00::1/8",
                           "256.1.1.1",
                           "example.com:443:443"})
    EXPECT_FALSE(parse_domain_rule(text)) << text;
}

TEST(Domains, APathIsSentToTheRulesThatHaveThem) {
  for (const char* text : {"good.test/x", "*/x"}) {
    const auto rule = parse_domain_rule(text);
    ASSERT_FALSE(rule);
    EXPECT_NE(rule.error().next().find(std::string("--allow-request 'GET ") + text + '\''), std::string::npos)
        << rule.error().next();
    EXPECT_TRUE(parse_request_rule(std::string("GET ") + text)) << "the twin";
  }
}

TEST(Domains, WhatPeopleWriteInsteadIsToldAsTheRuleItMeans) {
  struct Row {
    const char* text;
    const char* reason;
    const char* next;
  };
  constexpr Row kRows[] = {
      {".pypi.org", "it begins with a dot", "write **.pypi.org for the names below it and itself, *.pypi.org for those below only"},
      {"*pypi.org", "a star stands for whole names", "write **.pypi.org"},
      {"a.org,b.org", "a rule names one host", "a rule for each"},
      {"a.org b.org", "a rule names one host", "a rule for each"},
      {"https://u:secret@a.org:8443/x", "it is a URL", "leave out the scheme and the path: a.org:8443"},
      {"u:secret@a.org", "it carries a user name", "leave out everything up to the `@`"},
  };
  for (const Row& row : kRows) {
    const auto parsed = parse_domain_rule(row.text);
    ASSERT_FALSE(parsed) << row.text;
    EXPECT_TRUE(parsed.error().reason().starts_with(row.reason)) << row.text << ": " << parsed.error().reason();
    EXPECT_TRUE(parsed.error().next().find(row.next) != std::string::npos) << row.text << ": " << parsed.error().next();
    EXPECT_EQ(parsed.error().what().find("secret"), std::string::npos) << parsed.error().what();
  }
  for (const char* meant : {"**.pypi.org", "*.pypi.org", "a.org", "a.org:8443", "*:443"})
    EXPECT_TRUE(parse_domain_rule(meant)) << meant;
}

TEST(Domains, LocalhostIsJoinedByItsPort) {
  for (const char* text : {"localhost:9", "a.localhost:9", "127.0.0.1:9", "[::1]:9"})
    EXPECT_NE(next_step({HostReason::kNotListed, {}, {}}, parse_destination(text).value()).find("--host-port 9 joins"),
              std::string::npos)
        << text;
  EXPECT_EQ(next_step({HostReason::kNotListed, {}, {}}, parse_destination("localhost.org:9").value()),
            "--allow-domain localhost.org opens it");
}

TEST(Domains, APartOfAListIsCovered) {
  EXPECT_TRUE(domain_covers("*", "a.example:443"));
  EXPECT_FALSE(domain_covers("*", "10.0.0.1"));
  EXPECT_TRUE(domain_covers("10.0.0.0/8", "10.1.0.0/16"));
  EXPECT_TRUE(domain_covers("10.0.0.0/8", "10.1.0.0/16:22"));
  EXPECT_FALSE(domain_covers("10.1.0.0/16", "10.0.0.0/8"));
  EXPECT_FALSE(domain_covers("10.0.0.0/8:22", "10.1.0.0/16"));
  EXPECT_TRUE(domain_covers("**.a.example", "*.B.a.example."));
  EXPECT_FALSE(domain_covers("*.a.example", "**.a.example"));
  EXPECT_FALSE(domain_covers("a.example", "*"));
  EXPECT_FALSE(domain_covers("nonsense/", "nonsense/"));
}

TEST(Domains, ARefusalSaysWhyAndWhatNext) {
  const Destination to = parse_destination("example.com:443").value();
  const HostVerdict verdict = decide_host(rules({}), to);
  EXPECT_EQ(explain_verdict(verdict, to), "example.com:443 is not on the list of allowed hosts");
  EXPECT_EQ(next_step(verdict, to), "--allow-domain example.com opens it");
}

TEST(Requests, ARuleCoversItsMethodsAndWhatIsBelowItsPath) {
  Network network;
  network.allowed_requests = {"GET,HEAD web.test:8080/docs", "* api.test", "GET **.cdn.test/a/"};
  const HostRules rules = make_host_rules(network).value();
  const auto may = [&](const char* where, const char* method, const char* path) {
    return find_request(rules, parse_destination(where, 80).value(), method, path) != nullptr;
  };
  EXPECT_TRUE(may("web.test:8080", "GET", "/docs"));
  EXPECT_TRUE(may("web.test:8080", "HEAD", "/docs/a?q=/../b"));
  for (const char* path :
       {"/", "/docsx", "/docs/../x", "/docs/..", "/docs/.", "//docs/a", "/docs//a", "/docs/%2e%2e/x", "/docs/%2Fx", "/docs/%252e",
        "/docs/%5cx", "/docs/a\\b", "/docs/a;b", "/docs/%0", "/Docs/a", "/docs/%zz", "/docs/%2", "/docs/%u002e", "/docs/%0a",
        "/docs/%1F", "/docs/%7f", "/docs/%3b", "/docs/%3Bx", "/docs/%c0%ae", "/docs/\xc0\xae\xc0\xae/s", "/docs/\xc3\xa9",
        "/docs/%C1%9c", "/docs/%e0%80%ae", "/docs/%f0%80%80%ae", "/docs/%f8%80%80%80%ae", "/docs/%80%ae", "/docs/%ff..",
        "/docs/%e0%a4", "/docs/%e0%a4x", "/docs/%ed%a0%80", "/docs/%f4%90%80%80", "/docs/.%c2%ad./x", "/docs/.%e2%80%8b./x",
        "/docs/%c2%ad../x",
        // Windows takes off dots and spaces at the end of a name.
        "/docs/..%20/x", "/docs/%20../x", "/docs/..%09", "/docs/.%20./x", "/docs/..+/x", "/docs/..%c2%a0/x", "/docs/.../x",
        "/docs/..:/x", "/docs/.%20/x",
        // Dots, slashes and more that compatibility forms make of other letters.
        "/docs/%EF%BC%8E%EF%BC%8E/x", "/docs/%e2%80%a5/x", "/docs/%E2%80%A4%E2%80%A4/x", "/docs/%E2%80%A6/x", "/docs/..%EF%BC%8Fx",
        "/docs/%EF%BC%BCx", "/docs/%EF%B9%A8x", "/docs/%E2%88%95x", "/docs/%E2%81%84x", "/docs/%EF%BC%852e", "/docs/%EF%BC%9Bx",
        "/docs/%CD%BEx", "/docs/%EF%B9%92%EF%B9%92/x"})
    EXPECT_FALSE(may("web.test:8080", "GET", path)) << path;
  for (const char* path :
       {"/docs/a%20b", "/docs/%C3%A9", "/docs/%e0%a4%85", "/docs/%F0%9F%98%80", "/docs/%e2%9d%a4%ef%b8%8f", "/docs/a%c2%adb",
        "/docs/%3a%40", "/docs/a?%zz%2e", "/docs/.well-known/x", "/docs/..data/x", "/docs/a..b", "/docs/a.../x", "/docs/a%20.../x",
        "/docs/a/", "/docs/%E2%80%A2", "/docs/%EF%BC%A1", "/docs/.env", "/docs/%20a"})
    EXPECT_TRUE(may("web.test:8080", "GET", path)) << path;
  EXPECT_FALSE(may("web.test:8080", "POST", "/docs"));
  EXPECT_FALSE(may("web.test:8080", "get", "/docs")) << "methods are as they are written, RFC 9110 section 9.1";
  EXPECT_FALSE(may("web.test:80", "GET", "/docs"));
  EXPECT_TRUE(may("api.test", "DELETE", "/any//thing/%2e"));
  EXPECT_TRUE(may("x.cdn.test", "GET", "/a/b"));
  EXPECT_FALSE(may("x.cdn.test", "GET", "/a"));
  EXPECT_EQ(decide_host(rules, parse_destination("api.test:80").value()).reason, HostReason::kRequests);
  EXPECT_EQ(decide_host(rules, parse_destination("other.test:80").value()).reason, HostReason::kNotListed);
  EXPECT_TRUE(may_resolve(rules, parse_host("web.test").value()));
  EXPECT_FALSE(may_resolve(rules, parse_host("other.test").value()));
}

TEST(Requests, AnAlmostRightRuleIsToldHowItIsWritten) {
  EXPECT_EQ(parse_request_rule("GET, HEAD a.org").error().reason(), "methods are separated by a comma alone");
  EXPECT_EQ(parse_request_rule("GET HEAD a.org/x").error().reason(), "it has more than one space");
  EXPECT_EQ(parse_request_rule("GET https://a.org/x").error().next(), "write GET a.org/x");
  for (const char* meant : {"GET,HEAD a.org", "GET a.org/x"}) EXPECT_TRUE(parse_request_rule(meant)) << meant;
}

TEST(Requests, WhatIsNoRuleIsRefused) {
  for (const char* text :
       {"", "GET", " web.test", "GET ", "get web.test", "GET,,HEAD web.test", "CONNECT web.test", "GET web.test/../a",
        "GET web.test/a?b", "GET web.test/*", "GET http://web.test/", "GET web.test:0/", "GET web.test/a b"})
    EXPECT_FALSE(parse_request_rule(text)) << text;
  EXPECT_TRUE(parse_request_rule("GET web.test/a"));
}

}  // namespace
}  // namespace belljar::policy
