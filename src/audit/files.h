// The files of a trail: PATH, which is written, and PATH.000001 …, which are full.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/result.h"

namespace belljar::audit {

struct OldFile {
  unsigned number = 0;
  std::string path;
};
// Oldest first. Errors: the directory cannot be read.
Result<std::vector<OldFile>> find_old(const std::string& path);
// The number of a file's first record; nothing where that is none as it was written.
std::optional<std::uint64_t> first_sequence(const std::string& path);
std::string old_path(const std::string& path, unsigned number);
// The directory that `path` is in.
std::string directory_of(const std::string& path);

// Whether both names lead to one file: a rotation was killed half-way.
bool same_file(const std::string& one, const std::string& other) noexcept;

// With the code that fits the errno.
Error failed(std::string what, const char* call, int errnum);

// Reads a file line by line, in pieces. Lines longer than kMaxLine come out cut.
class Lines {
 public:
  explicit Lines(int fd) : fd_(fd) {}
  // False at the end; what is left then, bytes without a newline, is tail(). Errors: EIO and the like.
  Result<bool> next(std::string& line);
  const std::string& tail() const noexcept { return buffer_; }
  std::uint64_t offset() const noexcept { return offset_; }  // of the line that next() gave last, or of the tail

 private:
  int fd_;
  std::string buffer_;
  std::size_t at_ = 0;        // of the next line in buffer_
  std::uint64_t offset_ = 0;  // of that line in the file
  std::uint64_t behind_ = 0;  // offset of the line after
  bool end_ = false;
};

// Opens for reading without waiting for a FIFO's writer. Errors: kNotFound, kPermissionDenied, kInvalidArgument (no regular file).
Result<UniqueFd> open_to_read(const std::string& path);

}  // namespace belljar::audit
