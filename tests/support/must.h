// The preparation of a test: ends the process when a call fails, also in a forked child where an EXPECT would not be heard.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace belljar::test {

inline void must(int status) {
  if (status >= 0) return;
  std::perror("cannot prepare the test");
  std::abort();
}

}  // namespace belljar::test
