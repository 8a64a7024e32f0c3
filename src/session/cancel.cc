#include "belljar/cancel.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/unique_fd.h"

namespace belljar {

struct CancelToken::State {
  UniqueFd fd;
};

Result<CancelToken> CancelToken::create() {
  CancelToken token;
  token.state_ = std::make_shared<State>();
  token.state_->fd = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!token.state_->fd.valid()) return Error(Code::kResourceExhausted, "cannot make a cancel token").sys(errno, "eventfd");
  return token;
}

void CancelToken::cancel() const noexcept {
  const std::uint64_t one = 1;
  if (state_ != nullptr && ::write(state_->fd.get(), &one, sizeof one) < 0) return;  // full: it is cancelled already
}

bool CancelToken::cancelled() const noexcept {
  pollfd look{fd(), POLLIN, 0};
  return state_ != nullptr && ::poll(&look, 1, 0) > 0;
}

int CancelToken::fd() const noexcept { return state_ == nullptr ? -1 : state_->fd.get(); }

}  // namespace belljar
