// A file with the user's words, which somebody else writes anew: a hook of the client, an editor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "belljar/result.h"

namespace belljar::mcp {

// One thread at a time.
class TaskFile {
 public:
  static constexpr std::size_t kLongest = 64U << 10;

  explicit TaskFile(std::string path) : path_(std::move(path)) {}
  // The words where they are others than before; a file that is not there, or holds none, changes nothing. Errors, once for each
  // state of the file: kInvalidArgument, it is no file, or too long; kPermissionDenied, others may write it.
  Result<std::optional<std::string>> changed();

 private:
  // Whatever a writer changes: the file, its size, its time in nanoseconds.
  using State = std::tuple<std::uint64_t, std::uint64_t, std::int64_t, std::int64_t, std::int64_t>;
  std::string path_;  // empty: none
  std::optional<State> seen_;
};

}  // namespace belljar::mcp
