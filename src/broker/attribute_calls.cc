// chmod and truncate by path: calls on the file behind a name.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "broker/file_call.h"
#include "broker/file_calls.h"
#include "broker/refused_call.h"
#include "kernel/sys.h"

namespace belljar::broker {
namespace {

// The name by which the file was reached is what is judged: hard links to control files cannot be made.
int judge_object(FileCall& file, Act act, int object) {
  if (!file.judged()) return 0;
  if (const int status = file.judge_object(act, object); status != 0) return status;
  const std::string path = path_of(object);
  if (path.empty()) return file.refuse(act, path, FileCall::unnamed());
  struct stat now{};
  if (!path.starts_with('/') || ::fstat(object, &now) != 0 || now.st_nlink == 0) return 0;
  auto entry = file.resolver().parent(-1, path);
  if (!entry) return -EACCES;
  const Ruling ruling = file.rule(act, *entry, S_ISDIR(now.st_mode));
  return ruling.answer == Answer::kAllow ? 0 : file.refuse(act, path, ruling);
}

// The filter sends S_ISGID here for the sake of directories, where it says whose group new files get. What an open descriptor is of
// does not change.
int check_set_id(FileCall& file, int object, mode_t mode) {
  struct stat now{};
  if ((mode & S_ISGID) == 0 || (::fstat(object, &now) == 0 && S_ISDIR(now.st_mode))) return 0;
  return refuse_as_filter(file.context, file.call);
}

int change_mode(FileCall& file, int object, mode_t mode, int flags) {
  struct stat now{};
  if (const int status = check_set_id(file, object, mode); status != 0) return status;
  if ((flags & AT_SYMLINK_NOFOLLOW) != 0 && ::fstat(object, &now) == 0 && S_ISLNK(now.st_mode)) return -EOPNOTSUPP;
  if (const int status = judge_object(file, Act::kChmod, object); status != 0) return status;
  return file.explain_object(Act::kChmod, object, result_of(::chmod(own_link(object).c_str(), mode)));
}

// An older kernel lets the filter see the number all the same.
bool kernel_has_fchmodat2() {
  static const bool has = kernel::sys::call(kernel::sys::kFchmodat2, -1, nullptr, 0, 0) != -ENOSYS;
  return has;
}

// The mode of the very name, where it is no link, and it is known that no rule has anything to say: 1 when that is not so.
int change_mode_of_name(FileCall& file, int start, const std::string& path, mode_t mode) {
  if ((mode & S_ISGID) != 0 || path.ends_with('/') || !kernel_has_fchmodat2()) return 1;
  auto entry = file.resolver().parent(start, path);
  if (!entry || !entry->is_name()) return 1;
  for (const bool is_dir : {false, true}) {
    if (file.rule(Act::kChmod, *entry, is_dir).answer != Answer::kAllow) return 1;
  }
  const long status = kernel::sys::call(kernel::sys::kFchmodat2, entry->dir, entry->name.c_str(), mode, AT_SYMLINK_NOFOLLOW);
  if (status == -EOPNOTSUPP) return 1;  // a link
  return file.explain(Act::kChmod, *entry, static_cast<int>(status));
}

// RLIMIT_FSIZE is the caller's, and so is its signal; ours would be the program's that we are a part of.
bool beyond_limit(int object, std::int64_t length, std::uint64_t limit) {
  struct stat now{};
  return ::fstat(object, &now) == 0 && S_ISREG(now.st_mode) && length > now.st_size && static_cast<std::uint64_t>(length) > limit;
}

// Only with S_ISGID, or where no mount holds what the descriptor leads to (SeccompSpec::own_mounts): fchmod is the kernel's else.
int perform_fchmod(FileCall& file) {
  const auto& args = file.call.args;
  auto object = file.caller.duplicate(static_cast<int>(args[0]));
  if (!object) return -object.error();
  if (const int status = file.begin(); status != 0) return status;
  if (const int status = file.share_directories(); status != 0) return status;
  file.permissions().narrow();  // it may be on a /proc
  const auto mode = static_cast<mode_t>(args[1] & 07777U);
  if (const int status = check_set_id(file, object->get(), mode); status != 0) return status;
  if (const int status = judge_object(file, Act::kChmod, object->get()); status != 0) return status;
  return file.explain_object(Act::kChmod, object->get(), result_of(::fchmod(object->get(), mode)));
}

}  // namespace

int perform_chmod(FileCall& file) {
  if (file.call.number == SYS_fchmod) return perform_fchmod(file);
  const auto& args = file.call.args;
  const bool at = file.call.number != SYS_chmod;
  const bool has_flags = file.call.number == kernel::sys::kFchmodat2;
  if (has_flags && !kernel_has_fchmodat2()) return -ENOSYS;
  const int flags = has_flags ? static_cast<int>(args[3]) : 0;
  if ((flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) != 0) return -EINVAL;
  const auto mode = static_cast<mode_t>(args[at ? 2 : 1] & 07777U);
  std::string path;
  StartDir start;
  if (const int status = file.read_path(args[at ? 1 : 0], path); status != 0) return status;
  if (path.empty() && (flags & AT_EMPTY_PATH) == 0) return -ENOENT;
  const auto dirfd = at ? args[0] : static_cast<std::uint64_t>(AT_FDCWD);
  if (const int status = file.open_start(dirfd, path, start); status != 0) return status;
  if (const int status = file.begin(); status != 0) return status;
  if (const int status = file.share_directories(); status != 0) return status;
  if (path.empty()) {
    file.permissions().narrow();  // it may be on a /proc
    return change_mode(file, start.fd.get(), mode, flags);
  }
  if (const int status = change_mode_of_name(file, start.fd.get(), path, mode); status != 1) return status;
  const auto last = (flags & AT_SYMLINK_NOFOLLOW) != 0 ? PathResolver::Last::kStay : PathResolver::Last::kFollow;
  auto object = file.resolver().object(start.fd.get(), path, last);
  if (!object) return file.explain_way(Act::kChmod, start.fd.get(), path, last, -object.error());
  return change_mode(file, object->get(), mode, flags);
}

int perform_truncate(FileCall& file) {
  const auto length = static_cast<std::int64_t>(file.call.args[1]);
  if (length < 0) return -EINVAL;
  std::string path;
  StartDir start;
  if (const int status = file.read_path(file.call.args[0], path); status != 0) return status;
  if (path.empty()) return -ENOENT;
  if (const int status = file.open_start(static_cast<std::uint64_t>(AT_FDCWD), path, start); status != 0) return status;
  std::uint64_t limit = RLIM_INFINITY;
  if (length > 0) {
    const AsCaller ours(file.context.options.uid, Identity::kOwn);
    limit = file.caller.file_size_limit();
  }
  if (const int status = file.begin(); status != 0) return status;
  if (const int status = file.share_directories(); status != 0) return status;
  auto object = file.resolver().object(start.fd.get(), path, PathResolver::Last::kFollow);
  if (!object) return file.explain_way(Act::kTruncate, start.fd.get(), path, PathResolver::Last::kFollow, -object.error());
  if (const int status = judge_object(file, Act::kTruncate, object->get()); status != 0) return status;
  if (beyond_limit(object->get(), length, limit)) {
    const AsCaller::Suspended ours(file.permissions());
    file.caller.signal(SIGXFSZ);
    return -EFBIG;
  }
  return file.explain_object(Act::kTruncate, object->get(), result_of(::truncate(own_link(object->get()).c_str(), length)));
}

}  // namespace belljar::broker
