#include "base/wake.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <utility>

namespace belljar {
namespace {

bool is_readable(const Wake& wake) {
  pollfd wait{.fd = wake.get(), .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, 0) == 1;
}

TEST(Wake, IsReadableFromTheRingUntilItIsTaken) {
  const Wake wake;
  ASSERT_TRUE(wake.valid());
  EXPECT_FALSE(is_readable(wake));
  EXPECT_FALSE(wake.take());
  wake.ring();
  wake.ring();
  EXPECT_TRUE(is_readable(wake));
  EXPECT_TRUE(wake.take());
  EXPECT_FALSE(is_readable(wake));
  EXPECT_FALSE(wake.take());
}

TEST(Wake, MovesWithItsRings) {
  Wake first;
  first.ring();
  const Wake second(std::move(first));
  EXPECT_TRUE(second.take());
}

}  // namespace
}  // namespace belljar
