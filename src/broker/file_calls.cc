#include "broker/file_calls.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include "broker/staged_files.h"
#include "kernel/sys.h"

namespace belljar::broker {
namespace {

using Perform = int (*)(FileCall&);

constexpr int kRedirected = 10;  // what a shell calls by one digit

Perform performer_of(int number) {
  switch (number) {
    case SYS_mkdir:
    case SYS_mkdirat:
      return perform_mkdir;
    case SYS_mknod:
    case SYS_mknodat:
      return perform_mknod;
    case SYS_symlink:
    case SYS_symlinkat:
      return perform_symlink;
    case SYS_unlink:
    case SYS_unlinkat:
    case SYS_rmdir:
      return perform_unlink;
    case SYS_link:
    case SYS_linkat:
      return perform_link;
    case SYS_rename:
    case SYS_renameat:
    case SYS_renameat2:
      return perform_rename;
    case SYS_chmod:
    case SYS_fchmod:
    case SYS_fchmodat:
    case kernel::sys::kFchmodat2:
      return perform_chmod;
    case SYS_truncate:
      return perform_truncate;
    default:
      return nullptr;
  }
}

// What was closed before this call began is judged and shown before it begins. False: it may not begin.
bool catch_up(Context& context, Receivers::Slot& slot) {
  if (!context.staged.any()) return true;
  const auto lock = share_directories(context, slot);
  const AsCaller permissions(context.options.uid);
  if (lock && permissions.ok()) context.staged.publish_closed(context);
  return lock.owns_lock();
}

void perform(Context& context, const Call& call, Receivers::Slot& slot, Perform performer) {
  int status = 0;
  {
    FileCall file(context, call, slot);
    status = performer(file);
  }
  answer(context.listener.get(), call.id, status);
}

}  // namespace

void handle_umask(Context& context, const Call& call) {
  context.umasks.changes();
  let_continue(context.listener.get(), call.id);
}

// A shell's redirection: opened, put at the place of one of its first descriptors, and closed before anything was written. What is
// to be judged, and to stand at the name, is what the command writes there, not that it is empty now.
bool is_redirected(Caller& caller, int file, int closing) {
  struct stat now{}, other{};
  if (::fstat(file, &now) != 0 || now.st_size != 0) return false;
  for (int number = 0; number < kRedirected; ++number) {
    const auto fd = number == closing ? OrErrno<UniqueFd>(errno_is(EBADF)) : caller.duplicate(number);
    if (fd && ::fstat(fd->get(), &other) == 0 && other.st_ino == now.st_ino && other.st_dev == now.st_dev) return true;
  }
  return false;
}

// The call goes on whatever came of it: as with a full disk, close(2) is no place to take something back.
void handle_close(Context& context, const Call& call, Receivers::Slot& slot) {
  if (context.staged.any()) {
    Caller caller(call.tid);
    const int number = static_cast<int>(call.args[0]);
    auto fd = caller.duplicate(number);
    const bool goes_on = fd && context.staged.is_staged(fd->get()) && is_redirected(caller, fd->get(), number);
    if (fd && !goes_on && still_waiting(context.listener.get(), call.id)) {
      const auto lock = share_directories(context, slot);
      const AsCaller permissions(context.options.uid);
      if (lock && permissions.ok()) context.staged.publish_of(context, fd->get());  // else when the last one closes it
    }
  }
  let_continue(context.listener.get(), call.id);
}

bool handle_file_call(Context& context, const Call& call, Receivers::Slot& slot) {
  switch (call.number) {
    case SYS_open:
    case SYS_openat:
    case SYS_openat2:
    case SYS_creat:
      if (catch_up(context, slot)) handle_open(context, call, slot);
      else answer(context.listener.get(), call.id, -kRestart);
      return true;
    case SYS_close:
      handle_close(context, call, slot);
      return true;
    case SYS_umask:
      handle_umask(context, call);
      return true;
    default:
      break;
  }
  const Perform performer = performer_of(call.number);
  if (performer == nullptr) return false;
  if (catch_up(context, slot)) perform(context, call, slot, performer);
  else answer(context.listener.get(), call.id, -kRestart);
  return true;
}

}  // namespace belljar::broker
