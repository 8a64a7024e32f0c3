#include "remote/e2b/address.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "belljar/e2b.h"
#include "belljar/error.h"
#include "remote/address.h"

namespace belljar::remote::e2b {
namespace {

Error refusal(const E2bOptions& options, const std::map<std::string, std::string>& environment = {}) {
  const auto address = find_address(options, environment);
  return address ? Error(Code::kUnknown, "it was taken") : address.error();
}

TEST(E2bAddress, OptionsThenEnvironmentThenE2b) {
  const auto own =
      find_address({.api_key = "k1", .domain = "cloud.example"}, {{"E2B_API_KEY", "k2"}, {"E2B_DOMAIN", "other.example"}});
  ASSERT_TRUE(own);
  EXPECT_EQ(own->api_key, "k1");
  EXPECT_EQ(own->api_url, "https://api.cloud.example");
  const auto given = find_address({}, {{"E2B_API_KEY", "k2"}, {"E2B_API_URL", "http://127.0.0.1:3000/"}});
  ASSERT_TRUE(given);
  EXPECT_EQ(given->api_url, "http://127.0.0.1:3000");
  EXPECT_EQ(find_address({.api_key = "k"}, {})->api_url, "https://api.e2b.app");
}

TEST(E2bAddress, AKeyIsNeededAndNeverShown) {
  EXPECT_EQ(refusal({}).code(), Code::kUnauthenticated);
  EXPECT_EQ(refusal({}).next(), "set E2B_API_KEY, or api_key of E2bOptions");
  for (const char* key : {"secret\r\nX-Other: 1", "secret key", "secret\x01"}) {
    EXPECT_EQ(refusal({.api_key = key}).code(), Code::kInvalidArgument);
    EXPECT_EQ(refusal({.api_key = key}).line().find("secret"), std::string::npos);
  }
  EXPECT_EQ(refusal({.api_key = "secret"}).what(), "it was taken");
}

TEST(E2bAddress, PlainHttpIsForThisMachineOnly) {
  for (const char* url : {"http://api.example", "http://127.0.0.1.example", "http://localhost.example:3000", "ftp://127.0.0.1",
                          "file:///etc/passwd", "https://user:password@api.example", "nonsense"}) {
    EXPECT_EQ(refusal({.api_key = "k", .api_url = url}).code(), Code::kInvalidArgument) << url;
    EXPECT_EQ(refusal({.api_key = "k", .sandbox_url = url}).code(), Code::kInvalidArgument) << url;
  }
  EXPECT_EQ(refusal({.api_key = "k", .api_url = "https://user:password@api.example"}).line().find("password@"), std::string::npos);
  for (const char* url : {"https://api.example", "http://127.0.0.1:1", "http://localhost:3000", "http://[::1]:3000"})
    EXPECT_EQ(refusal({.api_key = "k", .api_url = url, .sandbox_url = url}).what(), "it was taken") << url;
}

TEST(E2bAddress, OfOneSandbox) {
  const Address e2b{.api_key = "k", .domain = "e2b.app", .api_url = "https://api.e2b.app", .sandbox_url = {}};
  EXPECT_EQ(sandbox_address(e2b, "i1", "").value(), "https://sandbox.e2b.app");
  EXPECT_EQ(sandbox_address(e2b, "i1", "cloud.example:8443").value(), "https://49983-i1.cloud.example:8443");
  EXPECT_EQ(sandbox_address({.sandbox_url = "http://127.0.0.1:1"}, "i1", "x.example").value(), "http://127.0.0.1:1");
  for (const char* id : {"", "../x", "a b", "a\r\nb", "a/b", "a.b"}) EXPECT_FALSE(sandbox_address(e2b, id, "")) << id;
  for (const char* domain : {"evil.example/", "a@b", "a b", "x?y", "x#y"})
    EXPECT_FALSE(sandbox_address(e2b, "i1", domain)) << domain;
}

TEST(E2bAddress, WhatAServiceSaysIsShownWithoutSecrets) {
  EXPECT_EQ(shown("bad key k123456 and token t123456", {"k123456", "t123456"}), "bad key [redacted] and token [redacted]");
  EXPECT_EQ(shown("\x1b[31mred\n", {}), "\\x1b[31mred\\x0a");
  EXPECT_EQ(shown("redacted", {"redacted"}), "[redacted]");
  EXPECT_LT(shown(std::string(100'000, 'x'), {}).size(), 400U);
}

}  // namespace
}  // namespace belljar::remote::e2b
