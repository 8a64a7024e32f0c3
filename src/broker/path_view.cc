#include "broker/path_view.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "broker/path_resolver.h"
#include "broker/sockaddr.h"

namespace belljar::broker {
namespace {

OrErrno<UniqueFd> open_path(int dir, const std::string& path, std::uint64_t resolve) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = resolve;
  for (int tries = 0; tries < 64; ++tries) {
    UniqueFd file(static_cast<int>(::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how)));
    if (file.valid()) return file;
    if (errno != EAGAIN && errno != EINTR) return errno_is(errno);  // EAGAIN: a rename during "..", openat2(2)
  }
  return errno_is(EACCES);
}

}  // namespace

OrErrno<PathView> PathView::create(Caller& caller, std::string_view path) {
  PathView view;
  auto root = caller.open_root();
  if (!root) return errno_is(root.error());
  view.root_ = *std::move(root);
  view.path_ = path;
  const SelfPath self = decode_self_path(path);
  if (self.kind != SelfPath::Kind::kNone) view.path_ = self.rest;
  const bool relative = !path.starts_with('/');
  if (!relative && self.kind == SelfPath::Kind::kRoot && view.path_.empty()) view.path_ = "/";
  if (!relative && (self.kind == SelfPath::Kind::kNone || self.kind == SelfPath::Kind::kRoot)) return view;
  auto start = self.kind == SelfPath::Kind::kFd ? caller.duplicate(self.fd) : caller.open_cwd();
  if (!start) return errno_is(start.error() == EBADF ? ENOENT : start.error());
  view.start_ = *std::move(start);
  view.start_path_ = self.kind == SelfPath::Kind::kFd ? path_of(view.start_.get()) : caller.cwd_path();
  return view;
}

OrErrno<UniqueFd> PathView::open() const {
  if (!start_.valid()) return open_path(root_.get(), path_, RESOLVE_IN_ROOT);
  if (path_.empty()) return UniqueFd(::fcntl(start_.get(), F_DUPFD_CLOEXEC, 0));
  auto file = open_path(start_.get(), path_, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
  if (file || file.error() != EXDEV || start_path_.empty()) return file;
  return open_path(root_.get(), start_path_ + "/" + path_, RESOLVE_IN_ROOT);
}

}  // namespace belljar::broker
