// An error says what, why and what next, and survives its way up.
#include "belljar/error.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "belljar/result.h"

namespace belljar {
namespace {

Error sample() {
  return Error(Code::kFailedPrecondition, "cannot create a user namespace")
      .sys(EPERM, "clone3")
      .reason("user.max_user_namespaces is 0")
      .next("choose --backend landlock");
}

TEST(Error, LineHoldsWhatWhyAndNext) {
  EXPECT_EQ(sample().line(),
            "cannot create a user namespace: Operation not permitted (clone3); user.max_user_namespaces is 0; "
            "next: choose --backend landlock");
}

TEST(Error, LineLeavesOutWhatIsNotThere) { EXPECT_EQ(Error(Code::kNotFound, "cannot find `x`").line(), "cannot find `x`"); }

TEST(Error, ExitCodeIs125UnlessSaidOtherwise) {
  EXPECT_EQ(sample().exit_code(), 125);
  EXPECT_EQ(Error(Code::kNotFound, "no such program").exit_code(127).exit_code(), 127);
}

TEST(Error, CodesAreSpeltAsConnectSpellsThem) {
  EXPECT_EQ(to_string(Code::kInvalidArgument), "invalid_argument");
  EXPECT_EQ(to_string(Code::kCanceled), "canceled");
  EXPECT_EQ(to_string(Code::kUnauthenticated), "unauthenticated");
}

Result<int> half(int number) {
  if (number % 2 != 0) return Error(Code::kOutOfRange, "odd");
  return number / 2;
}
Result<int> quarter(int number) {
  const int once = BELLJAR_TRY(half(number));
  return half(once);
}
Result<void> check_quarter(int number) {
  BELLJAR_CHECK(quarter(number));
  return {};
}

TEST(Result, TryYieldsTheValueOrReturnsTheError) {
  EXPECT_EQ(*quarter(8), 2);
  ASSERT_FALSE(quarter(6));
  EXPECT_EQ(quarter(6).error().code(), Code::kOutOfRange);
  EXPECT_TRUE(check_quarter(4));
  EXPECT_FALSE(check_quarter(7));
}

}  // namespace
}  // namespace belljar
