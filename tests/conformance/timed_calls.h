// Every call of a Sandbox that takes CallOptions, for tests of when it ends.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "belljar/sandbox.h"

namespace belljar {

struct TimedCall {
  const char* name;
  std::function<std::optional<Error>(Sandbox& sandbox, const CallOptions& options)> act;  // nullopt: it succeeded
};

template <class T>
std::optional<Error> error_of(const Result<T>& result) {
  if (result) return {};
  return result.error();
}

// With t/f there, each of them succeeds in this order; after it t/new, t/appended, t/atomic and t/dir are.
inline std::vector<TimedCall> timed_calls() {
  using Options = const CallOptions&;
  return {
      {"read_file", [](Sandbox& sandbox, Options call) { return error_of(sandbox.read_file("t/f", {.call = call})); }},
      {"read_file, a part",
       [](Sandbox& sandbox, Options call) { return error_of(sandbox.read_file("t/f", {.offset = 1, .limit = 1, .call = call})); }},
      {"write_file", [](Sandbox& sandbox, Options call) { return error_of(sandbox.write_file("t/new", "new", {.call = call})); }},
      {"write_file, appending",
       [](Sandbox& sandbox, Options call) {
         return error_of(sandbox.write_file("t/appended", "new", {.how = WriteMode::kAppend, .call = call}));
       }},
      {"write_file, as a whole",
       [](Sandbox& sandbox, Options call) {
         return error_of(sandbox.write_file("t/atomic", "new", {.how = WriteMode::kAtomic, .call = call}));
       }},
      {"list", [](Sandbox& sandbox, Options call) { return error_of(sandbox.list("t", call)); }},
      {"stat", [](Sandbox& sandbox, Options call) { return error_of(sandbox.stat("t/f", call)); }},
      {"make_dir", [](Sandbox& sandbox, Options call) { return error_of(sandbox.make_dir("t/dir", {.call = call})); }},
      {"rename", [](Sandbox& sandbox, Options call) { return error_of(sandbox.rename("t/f", "t/g", call)); }},
      {"remove",
       [](Sandbox& sandbox, Options call) { return error_of(sandbox.remove("t/g", {.depth = Depth::kTree, .call = call})); }},
      {"health", [](Sandbox& sandbox, Options call) { return error_of(sandbox.health(call)); }},
      {"stats", [](Sandbox& sandbox, Options call) { return error_of(sandbox.stats(call)); }},
  };
}

}  // namespace belljar
