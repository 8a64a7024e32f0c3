// One run at a time goes on with a conversation: of two, the one that ends last would drop what the other said.
//
// flock(2) on an empty file beside it, FILE.lock, since the conversation itself is replaced whole. The file goes when the run ends;
// one that was left by a kill locks nothing and is taken over.
#pragma once

#include <string>

#include "base/unique_fd.h"
#include "belljar/result.h"

namespace belljar::agent {

class ConversationLock {
 public:
  // Errors: kFailedPrecondition, another run has it; kPermissionDenied, there can be no file beside it.
  static Result<ConversationLock> acquire(const std::string& conversation);
  ConversationLock(ConversationLock&&) = default;
  ConversationLock& operator=(ConversationLock&&) = delete;
  ~ConversationLock();

 private:
  ConversationLock(std::string path, UniqueFd file);
  std::string path_;
  UniqueFd file_;
};

}  // namespace belljar::agent
