#include "belljar/denial_guess.h"

#include <gtest/gtest.h>

namespace belljar {
namespace {

ExecResult result(int exit_code, std::string out, std::string err) {
  ExecResult result;
  result.exit_code = exit_code;
  result.out.bytes = std::move(out);
  result.err.bytes = std::move(err);
  return result;
}

TEST(DenialGuess, EachWordCountsInEitherStreamAndAnyCase) {  // F-002-114, F-002-115
  for (const char* words : {"Operation not permitted", "PERMISSION DENIED", "Read-only file system", "seccomp", "Sandbox",
                            "Landlock", "failed to write file"}) {
    EXPECT_TRUE(is_likely_sandbox_denied(HeldBy::kRemote, result(1, "", std::string("x: ") + words + "\n"))) << words;
    EXPECT_TRUE(is_likely_sandbox_denied(HeldBy::kRemote, result(1, words, ""))) << words;
  }
  EXPECT_FALSE(is_likely_sandbox_denied(HeldBy::kRemote, result(1, "", "No such file or directory")));
}

TEST(DenialGuess, IsNeverMadeOfASuccessNorWhereRefusalsAreExact) {  // F-002-113
  EXPECT_FALSE(is_likely_sandbox_denied(HeldBy::kRemote, result(0, "", "permission denied")));
  EXPECT_FALSE(is_likely_sandbox_denied(HeldBy::kNobody, result(1, "", "permission denied")));
  EXPECT_FALSE(is_likely_sandbox_denied(HeldBy::kLocal, result(1, "", "permission denied")));
}

TEST(DenialGuess, ADeathBySigsysNeedsNoWords) {  // F-002-117
  EXPECT_TRUE(is_likely_sandbox_denied(HeldBy::kRemote, result(159, "", "")));
  EXPECT_FALSE(is_likely_sandbox_denied(HeldBy::kLocal, result(159, "", "")));
}

}  // namespace
}  // namespace belljar
