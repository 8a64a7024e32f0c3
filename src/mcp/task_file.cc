// The task file, read where it has changed.
//
// What stands in it counts as the user's word, so it must be the user's: a file of this user (or root's) that
// nobody else may write. That no command of a sandbox may write it is checked where the sandbox's policy is known
// (cli/mcp/make_client_sandbox.cc).
//
// Reading may meet a writer that is not done. Its next write changes the file's time, so the next call sees the
// rest; who wants neither renames a finished file over it.
#include "mcp/task_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/read_file.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::mcp {

Result<std::optional<std::string>> TaskFile::changed() {
  using Words = std::optional<std::string>;
  if (path_.empty()) return Words();
  const std::string what = format("cannot read the task file {}", quoted(path_));
  const UniqueFd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid() && errno == ENOENT) return Words();
  if (!file.valid()) return Error(Code::kPermissionDenied, what).sys(errno, "open");
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return Error(Code::kUnknown, what).sys(errno, "fstat");
  const State state{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  if (seen_ == state) return Words();
  seen_ = state;
  if (!S_ISREG(status.st_mode)) return Error(Code::kInvalidArgument, what).reason("it is no regular file");
  const bool ours = status.st_uid == ::geteuid() || status.st_uid == 0;
  if (!ours || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return Error(Code::kPermissionDenied, what)
        .reason(ours ? "others than its owner may write it" : "it belongs to another user")
        .next("what it says counts as your words: make it yours alone (chmod 600)");
  auto text = read_at_most(file.get(), kLongest + 1);
  if (!text) return Error(Code::kUnknown, what).sys(errno, "read");
  if (text->size() > kLongest) return Error(Code::kInvalidArgument, what).reason(format("it is longer than {} bytes", kLongest));
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) return Words();
  return Words(std::move(text));
}

}  // namespace belljar::mcp
