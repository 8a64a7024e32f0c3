// Result<T>: a value or an Error. Member names are those of std::expected, which g++ 12 has only from C++23 on; the body is
// tl::expected. Remove the base class when C++23 is the floor.
//
//   Result<Policy> parse(std::string_view text);
//   Policy policy = BELLJAR_TRY(parse(text));          // returns the Error to our caller
#pragma once

#include <tl/expected.hpp>
#include <utility>

#include "belljar/error.h"

namespace belljar {

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
  using Base = tl::expected<T, Error>;

 public:
  using Base::Base;
  Result(Error error) : Base(tl::unexpect, std::move(error)) {}  // NOLINT(google-explicit-constructor)
  Result(Base base) : Base(std::move(base)) {}                   // NOLINT(google-explicit-constructor)
};

template <>
class [[nodiscard]] Result<void> : public tl::expected<void, Error> {
  using Base = tl::expected<void, Error>;

 public:
  using Base::Base;
  Result() = default;
  Result(Error error) : Base(tl::unexpect, std::move(error)) {}  // NOLINT(google-explicit-constructor)
  Result(Base base) : Base(std::move(base)) {}                   // NOLINT(google-explicit-constructor)
};

}  // namespace belljar

// Yields the value or returns the error from the enclosing function. Not in coroutines: g++ 12 crashes on it there.
#define BELLJAR_TRY(...)                                                   \
  ({                                                                       \
    auto belljar_try_result = (__VA_ARGS__);                               \
    if (!belljar_try_result) return std::move(belljar_try_result).error(); \
    *std::move(belljar_try_result);                                        \
  })

// For Result<void>.
#define BELLJAR_CHECK(...)                                                     \
  do {                                                                         \
    auto belljar_check_result = (__VA_ARGS__);                                 \
    if (!belljar_check_result) return std::move(belljar_check_result).error(); \
  } while (false)
