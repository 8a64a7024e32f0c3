// A lock file beside the conversation, held with flock(2).
//
// The file is removed when the lock is given up, while it is still held. So somebody who opened it before and
// gets the lock afterwards holds a lock on a file that has no name any more, and a third one could lock a new
// file of the same name. That is why acquire() compares the locked file with what the name leads to now, and
// begins anew if they differ.
#include "agent/conversation_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::agent {

ConversationLock::ConversationLock(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}

ConversationLock::~ConversationLock() {
  if (file_.valid()) (void)::unlink(path_.c_str());  // while it is still held: who opened it meanwhile sees that it is gone
}

Result<ConversationLock> ConversationLock::acquire(const std::string& conversation) {
  const std::string path = conversation + ".lock";
  const auto failed = [&](Code code) {
    return Error(code, format("cannot go on with the conversation {}", belljar::quoted(conversation)));
  };
  for (;;) {
    UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    if (!file.valid())
      return failed(Code::kPermissionDenied).sys(errno, "open").reason(format("{} cannot be made", belljar::quoted(path)));
    struct stat held{};
    struct stat named{};
    if (::fstat(file.get(), &held) != 0 || !S_ISREG(held.st_mode) || held.st_size != 0)
      return failed(Code::kFailedPrecondition)
          .reason(format("{} is there, and no lock of `belljar agent`", belljar::quoted(path)))
          .next("move it away, or name another file");
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return failed(Code::kPermissionDenied).sys(errno, "flock");
      return failed(Code::kFailedPrecondition)
          .reason("another `belljar agent` is at work on it")
          .next("wait until that has ended, or name another file");
    }
    // Whoever held it before took the name away at its end: a lock that no name leads to locks nothing.
    if (::stat(path.c_str(), &named) == 0 && named.st_ino == held.st_ino && named.st_dev == held.st_dev)
      return ConversationLock(path, std::move(file));
  }
}

}  // namespace belljar::agent
