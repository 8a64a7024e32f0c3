// A directory of ours that containers are shown parts of, while this process lives.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"
#include "belljar/result.h"

namespace belljar::backend::container {

// Only we can enter it; the engine shows what is in it by bind mounts. Move-only; the destructor removes it. What a killed process
// left behind goes when the next one is made: it is locked (flock(2)) by who has it.
class ShownDir {
 public:
  // In `state`, which is there. Errors: kFailedPrecondition, kResourceExhausted.
  static Result<ShownDir> create(const std::string& state);
  ShownDir(ShownDir&& other) noexcept : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
  ShownDir& operator=(ShownDir&& other) noexcept;
  ~ShownDir();

  const std::string& path() const noexcept { return path_; }
  // A file in it that anybody may read who is shown it. Errors: as create().
  Result<std::string> write(std::string_view name, std::string_view content) const;

 private:
  ShownDir(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;  // empty: moved from
  UniqueFd lock_;
};

}  // namespace belljar::backend::container
