// Against a vector that Volcengine's own npm package and a second implementation agree on.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "remote/volcengine/sign.h"

namespace belljar::remote::volcengine {
namespace {

Call example() {
  using namespace std::chrono;
  return {.service = "vefaas",
          .region = "cn-beijing",
          .authority = "open.volcengineapi.com",
          .query = {{"Version", "2024-06-06"}, {"Action", "CreateSandbox"}},
          .content_type = "application/json",
          .body = R"({"FunctionId":"abcd1234","Timeout":60,"Metadata":{"k":"v"}})",
          .now = sys_days(2026y / January / 2) + 3h + 4min + 5s};
}
const Keys kKeys{.id = "AKEXAMPLE", .secret = "SKEXAMPLE", .token = {}};

TEST(VolcengineSign, EveryStepIsAsTheVectorHasIt) {
  const Signature made = sign(example(), kKeys, {"host", "x-content-sha256", "x-date"});
  EXPECT_EQ(made.date, "20260102T030405Z");
  EXPECT_EQ(made.scope, "20260102/cn-beijing/vefaas/request");
  EXPECT_EQ(made.body_hash, "c384cc8f86895f4eb2467ffeef96b6fd07744e7319464c4e5bdb778144925a82");
  EXPECT_EQ(made.key_date, "c6a573bc9af070f8a93274426de970af6316d7b4ebc7e861e2020faf4f7c0835");
  EXPECT_EQ(made.key_region, "7f89223c83d18f6b3b2c14224198db2de477c91e259f18b6079fbd769a8d01d8");
  EXPECT_EQ(made.key_service, "718751e95806f4ce2289eaed55cacc6d99f6a03a66f64cdfb050b4be4be6c996");
  EXPECT_EQ(made.key_signing, "127aeed347c0de62a98ffbbda402ae4867f1f37bc3ff3619d01da912951c58f8");
  EXPECT_EQ(made.canonical_hash, "b69e53979e7ebaf0dd5000af0211a5c4ca7b36dfa57ed27e08e3ace507818b7a");
  EXPECT_EQ(made.signature, "2d2442b1d286913f1d3fc8c4d2e9cb682f3a0503c06f65bf28a837975a744507");
}

TEST(VolcengineSign, TheContentTypeIsSignedWithTheRest) {
  const Signature made = sign(example(), kKeys);
  EXPECT_EQ(made.canonical_hash, "4e9a1db1c6c34de72fb5691e6d65fd725de07ae26c1ee40be3259ad698397dc5");
  EXPECT_EQ(made.signature, "81df7576b0b8967538fd0d609f00e14510e684dfcfa6725e4c6e15a0aeb0ecae");
  EXPECT_EQ(made.headers.back(),
            "Authorization: HMAC-SHA256 Credential=AKEXAMPLE/20260102/cn-beijing/vefaas/request, "
            "SignedHeaders=content-type;host;x-content-sha256;x-date, "
            "Signature=81df7576b0b8967538fd0d609f00e14510e684dfcfa6725e4c6e15a0aeb0ecae");
}

TEST(VolcengineSign, ADefaultPortIsNotPartOfTheHost) {
  for (const char* authority : {"open.volcengineapi.com:443", "open.volcengineapi.com:80"}) {
    Call call = example();
    call.authority = authority;
    EXPECT_EQ(sign(call, kKeys).signature, sign(example(), kKeys).signature) << authority;
  }
  Call other = example();
  other.authority += ":8443";
  EXPECT_NE(sign(other, kKeys).signature, sign(example(), kKeys).signature);
  EXPECT_NE(sign(other, kKeys).canonical.find("host:open.volcengineapi.com:8443\n"), std::string::npos);
}

TEST(VolcengineSign, ATemporaryKeysTokenIsSignedAndSent) {
  Keys keys = kKeys;
  keys.token = "STSEXAMPLE";
  const Signature made = sign(example(), keys);
  EXPECT_NE(made.canonical.find("x-date:20260102T030405Z\nx-security-token:STSEXAMPLE\n"), std::string::npos) << made.canonical;
  EXPECT_NE(made.canonical.find("\ncontent-type;host;x-content-sha256;x-date;x-security-token\n"), std::string::npos);
  EXPECT_EQ(made.headers.back(), "X-Security-Token: STSEXAMPLE");
  EXPECT_NE(made.signature, sign(example(), kKeys).signature);
}

TEST(VolcengineSign, TheQueryIsSortedAndEscaped) {
  EXPECT_EQ(canonical_query({{"b", "2 3"}, {"a", "x/y~*"}, {"a", "\xC3\xBC"}}), "a=x%2Fy~%2A&a=%C3%BC&b=2%203");
  EXPECT_EQ(canonical_query({}), "");
}

}  // namespace
}  // namespace belljar::remote::volcengine
