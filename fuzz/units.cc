// Sizes and durations: what is accepted prints to a form that reads back to the same value.
#include "belljar/units.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto bytes = belljar::parse_bytes(text)) {
    if (*belljar::parse_bytes(belljar::to_string(*bytes)) != *bytes) std::abort();
  }
  if (const auto time = belljar::parse_duration(text)) {
    if (*belljar::parse_duration(belljar::to_string(*time)) != *time) std::abort();
  }
  // What people see holds no control character.
  for (const char c : belljar::escaped(text)) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) std::abort();
  }
  return 0;
}
