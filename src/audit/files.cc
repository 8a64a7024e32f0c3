#include "audit/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "audit/line.h"
#include "base/format.h"
#include "base/paths.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::audit {
namespace {

constexpr std::size_t kDigits = 6;
constexpr std::size_t kPiece = 64U << 10;

}  // namespace

Error failed(std::string what, const char* call, int errnum) {
  const Code code = errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG  ? Code::kResourceExhausted
                    : errnum == EACCES || errnum == EPERM || errnum == EROFS ? Code::kPermissionDenied
                    : errnum == ENOENT                                       ? Code::kNotFound
                                                                             : Code::kUnavailable;
  return Error(code, std::move(what)).sys(errnum, call);
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string old_path(const std::string& path, unsigned number) { return format("{}.{:06}", path, number); }

Result<std::vector<OldFile>> find_old(const std::string& path) {
  const std::string directory = directory_of(path);
  const std::string start = std::string(file_name(path)) + ".";
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), ::closedir);
  if (!stream) return failed(format("cannot read the audit trail's directory {}", quoted(directory)), "opendir", errno);
  std::vector<OldFile> found;
  while (const dirent* entry = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe)
    const std::string_view name = entry->d_name;
    if (!name.starts_with(start) || name.size() < start.size() + kDigits) continue;
    const std::string_view digits = name.substr(start.size());
    unsigned number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size()) found.push_back({number, old_path(path, number)});
  }
  std::ranges::sort(found, {}, &OldFile::number);
  return found;
}

bool same_file(const std::string& one, const std::string& other) noexcept {
  struct stat a{}, b{};
  return ::stat(one.c_str(), &a) == 0 && ::stat(other.c_str(), &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

Result<UniqueFd> open_to_read(const std::string& path) {
  const std::string what = format("cannot read the audit trail {}", quoted(path));
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file.valid()) return failed(what, "open", errno);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return failed(what, "fstat", errno);
  if (!S_ISREG(status.st_mode)) return Error(Code::kInvalidArgument, what).reason("it is not a regular file");
  return file;
}

std::optional<std::uint64_t> first_sequence(const std::string& path) {
  const auto file = open_to_read(path);
  if (!file) return {};
  Lines lines(file->get());
  std::string line;
  const auto read = lines.next(line);
  if (!read || !*read) return {};
  const Parsed parsed = parse(line);
  if (parsed.broken != Broken::kNo) return {};
  return parsed.head.sequence;
}

Result<bool> Lines::next(std::string& line) {
  offset_ = behind_;
  std::size_t searched = at_;
  for (;;) {
    const std::size_t newline = buffer_.find('\n', searched);
    if (newline != std::string::npos) {
      line.assign(buffer_, at_, newline - at_);
      behind_ += newline + 1 - at_;
      at_ = newline + 1;
      return true;
    }
    searched = buffer_.size() - at_;
    buffer_.erase(0, at_);
    at_ = 0;
    if (buffer_.size() > 4 * kMaxLine) {  // no line of ours: hand it out in pieces
      line.swap(buffer_);
      buffer_.clear();
      behind_ += line.size();
      return true;
    }
    if (end_) return false;
    char piece[kPiece];
    const ssize_t count = ::read(fd_, piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("cannot read the audit trail", "read", errno);
    if (count == 0) end_ = true;
    buffer_.append(piece, static_cast<std::size_t>(count));
  }
}

}  // namespace belljar::audit
