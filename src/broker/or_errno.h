// A value or the errno that the caller inside is to get. Answers to a system call are numbers, not sentences, so the handlers of
// this room use this instead of Result<T>.
#pragma once

#include <tl/expected.hpp>

namespace belljar::broker {

template <class T>
using OrErrno = tl::expected<T, int>;

inline tl::unexpected<int> errno_is(int number) { return tl::unexpected<int>(number); }

}  // namespace belljar::broker
