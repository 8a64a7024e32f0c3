#include "base/digest.h"

#include <gtest/gtest.h>

#include <string>

#include "base/encoding.h"

namespace belljar {
namespace {

TEST(Digest, IsSha256) {  // FIPS 180-4, the examples of NIST
  EXPECT_EQ(to_hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Digest, PiecesMakeTheSame) {
  const std::string text(1000, 'x');
  Sha256 digest;
  for (const char c : text) digest.add(std::string(1, c));
  EXPECT_EQ(digest.take(), sha256(text));
}

TEST(Digest, HmacIsThatOfTheRfc) {  // RFC 4231, cases 1, 2 and 6: a key longer than a block
  EXPECT_EQ(to_hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(to_hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(to_hex(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace
}  // namespace belljar
