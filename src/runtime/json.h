// Results as JSON: the object of `belljar run --json` and `--report`.
#pragma once

#include <string>
#include <string_view>

#include "belljar/exec_result.h"

namespace belljar::runtime {

enum class JsonStreams { kInclude, kOmit };  // a report beside passed-through output has no streams to tell

// One object on one line, without a newline. Always valid UTF-8: bytes of the streams that are none become U+FFFD, and
// "stdout_replaced" counts them. Times are in milliseconds, sizes in bytes.
std::string to_json(const ExecResult& result, JsonStreams streams);

// `text` with each byte that is not part of valid UTF-8 replaced by U+FFFD.
struct Utf8Text {
  std::string text;
  std::uint64_t replaced = 0;
};
Utf8Text to_utf8(std::string_view text);

}  // namespace belljar::runtime
