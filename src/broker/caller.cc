#include "broker/caller.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <utility>

#include "base/format.h"

namespace belljar::broker {
namespace {

// PIDFD_THREAD (Linux 6.9) has O_EXCL's value; the C library's headers are older.
constexpr unsigned kPidfdThread = O_EXCL;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kFirstPiece = 512;  // of a path: nearly all end in it

std::string slurp(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(4096, '\0');
  const ssize_t size = file.valid() ? ::read(file.get(), text.data(), text.size()) : -1;
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

// The value of "Name:\t" in /proc/TID/status. A comm cannot forge it: the kernel escapes newlines in the first line.
std::string_view field(std::string_view status, std::string_view name) {
  const std::size_t start = status.find(format("\n{}:\t", name));
  if (start == std::string_view::npos) return {};
  status.remove_prefix(start + name.size() + 3);
  return status.substr(0, status.find('\n'));
}

template <class T>
T number(std::string_view text, int base) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

UniqueFd open_link(pid_t tid, const char* name) {
  return UniqueFd(::open(format("/proc/{}/{}", tid, name).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

// Of the thread that called last, for its next call: one program makes most calls of a time. It means that very thread for as long
// as it lives, and its number is nobody else's until then; afterwards it is good for nothing (ESRCH).
struct Kept {
  pid_t tid = -1;
  UniqueFd pidfd;
};
thread_local Kept kept;

UniqueFd& kept_pidfd(pid_t tid) {
  if (kept.tid != tid) kept = {.tid = tid, .pidfd = {}};
  return kept.pidfd;
}

}  // namespace

OrErrno<int> Caller::pidfd() {
  if (pidfd_.valid()) return pidfd_.get();
  UniqueFd& own = kept_pidfd(tid_);
  if (!own.valid()) own = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, tid_, kPidfdThread)));
  if (own.valid()) return own.get();
  if (errno == EINVAL) {
    // Remove when Linux 6.9 is the oldest kernel. Until then: the thread group's leader, whose table its threads share (a thread
    // that left it by unshare(CLONE_FILES) gets the leader's descriptor of that number, which it may use as well). It may outlive
    // the thread and its number, so it is not kept.
    const auto leader = number<pid_t>(field(slurp(format("/proc/{}/status", tid_)), "Tgid"), 10);
    pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, leader, 0)));
  }
  if (!pidfd_.valid()) return errno_is(errno);
  return pidfd_.get();
}

OrErrno<UniqueFd> Caller::duplicate(int fd) {
  for (bool first = true;; first = false) {
    const auto process = pidfd();
    if (!process) return errno_is(process.error());
    UniqueFd copy(static_cast<int>(::syscall(SYS_pidfd_getfd, *process, fd, 0)));
    if (copy.valid()) return copy;
    if (errno != ESRCH || !first) return errno_is(errno == EPERM ? EACCES : errno);
    kept_pidfd(tid_).reset();  // of a thread that is gone: its number is another one's now
  }
}

OrErrno<void> Caller::read(std::uint64_t address, std::span<std::byte> buffer) const {
  if (buffer.empty()) return {};
  const iovec local{buffer.data(), buffer.size()};
  const iovec remote{reinterpret_cast<void*>(address), buffer.size()};  // NOLINT(performance-no-int-to-ptr): of another process
  const ssize_t size = ::process_vm_readv(tid_, &local, 1, &remote, 1, 0);
  if (size == static_cast<ssize_t>(buffer.size())) return {};
  return errno_is(size < 0 && errno == EPERM ? EACCES : EFAULT);
}

OrErrno<UniqueFd> Caller::open_memory() const {
  UniqueFd memory(::open(format("/proc/{}/mem", tid_).c_str(), O_RDWR | O_CLOEXEC));
  if (!memory.valid()) return errno_is(errno == EPERM ? EACCES : errno);
  return memory;
}

int tracer_of(int process_dir) {
  return number<int>(field(slurp(format("/proc/self/fd/{}/status", process_dir)), "TracerPid"), 10);
}

bool write_memory(int memory, std::uint64_t address, std::span<const std::byte> bytes) {
  return ::pwrite(memory, bytes.data(), bytes.size(), static_cast<off_t>(address)) == static_cast<ssize_t>(bytes.size());
}

OrErrno<std::string> Caller::read_path(std::uint64_t address) const {
  char path[PATH_MAX];
  std::size_t got = 0;
  // Page by page: the string may end right before one that is not mapped.
  while (got < sizeof path) {
    const std::size_t to_page_end = kPage - (address + got) % kPage;
    const std::size_t size = std::min({to_page_end, sizeof path - got, got == 0 ? kFirstPiece : sizeof path});
    const auto read_now = read(address + got, std::as_writable_bytes(std::span(path)).subspan(got, size));
    if (!read_now) return errno_is(read_now.error());
    if (const void* const end = std::memchr(path + got, 0, size); end != nullptr) {
      return std::string(path, static_cast<std::size_t>(static_cast<const char*>(end) - path));
    }
    got += size;
  }
  return errno_is(ENAMETOOLONG);
}

Caller::Paths Caller::read_paths(std::uint64_t first, std::uint64_t second) const {
  char pieces[2][kFirstPiece];
  const std::uint64_t addresses[2] = {first, second};
  iovec local[2], remote[2];
  std::size_t total = 0;
  for (int i = 0; i < 2; ++i) {
    const std::size_t size = std::min<std::size_t>(kFirstPiece, kPage - addresses[i] % kPage);
    local[i] = {pieces[i], size};
    remote[i] = {reinterpret_cast<void*>(addresses[i]), size};  // NOLINT(performance-no-int-to-ptr): of another process
    total += size;
  }
  const bool all = ::process_vm_readv(tid_, local, 2, remote, 2, 0) == static_cast<ssize_t>(total);
  const auto path = [&](int i) -> OrErrno<std::string> {
    const void* const end = all ? std::memchr(pieces[i], 0, local[i].iov_len) : nullptr;
    if (end == nullptr) return read_path(addresses[i]);
    return std::string(pieces[i], static_cast<std::size_t>(static_cast<const char*>(end) - pieces[i]));
  };
  auto one = path(0);
  return {std::move(one), path(1)};
}

OrErrno<UniqueFd> Caller::open_root() const {
  UniqueFd root = open_link(tid_, "root");
  if (!root.valid()) return errno_is(EACCES);
  return root;
}

OrErrno<UniqueFd> Caller::open_cwd() const {
  UniqueFd cwd = open_link(tid_, "cwd");
  if (!cwd.valid()) return errno_is(EACCES);
  return cwd;
}

std::string Caller::cwd_path() const {
  std::string path(PATH_MAX, '\0');
  const ssize_t size = ::readlink(format("/proc/{}/cwd", tid_).c_str(), path.data(), path.size());
  path.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return path;
}

std::string Caller::program() const {
  std::string name = slurp(format("/proc/{}/comm", tid_));
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

int Caller::pid_inside() const { return ids_inside().tgid; }

Caller::Ids Caller::ids_inside() const {
  const std::string status = slurp(format("/proc/{}/status", tid_));
  const auto last = [&](std::string_view name) {
    const std::string_view ids = field(status, name);
    return number<int>(ids.substr(ids.find_last_of('\t') + 1), 10);
  };
  return {last("NStgid"), last("NSpid"), number<pid_t>(field(status, "Tgid"), 10)};
}

// Lines of "INSIDE OUTSIDE COUNT", user_namespaces(7): the second column is as we see it.
std::uint32_t Caller::id_inside(const char* map, std::uint32_t ours) const {
  constexpr std::uint32_t kOverflow = 65534;
  const std::string text = slurp(format("/proc/{}/{}", tid_, map));
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto next = [&] {
    while (at != end && (*at == ' ' || *at == '\n')) ++at;
    std::uint32_t value = 0;
    at = std::from_chars(at, end, value).ptr;
    return value;
  };
  while (at != end) {
    const std::uint32_t inside = next(), outside = next(), count = next();
    if (ours - outside < count) return inside + (ours - outside);
    while (at != end && *at != '\n') ++at;
    if (at != end) ++at;
  }
  return kOverflow;
}

mode_t Caller::umask() const {
  const std::string status = slurp(format("/proc/{}/status", tid_));
  const std::string_view mask = field(status, "Umask");
  return mask.empty() ? 022 : number<mode_t>(mask, 8);
}

ino_t Caller::identity() const {
  struct stat now{};
  return ::stat(format("/proc/{}", tid_).c_str(), &now) == 0 ? now.st_ino : 0;
}

dev_t Caller::terminal() const {
  const std::string stat = slurp(format("/proc/{}/stat", tid_));
  // After the name in parentheses: state ppid pgrp session tty_nr, proc_pid_stat(5).
  std::string_view rest = stat;
  rest.remove_prefix(std::min(rest.size(), rest.rfind(')') + 1));
  for (int fields = 0; fields < 5 && !rest.empty(); ++fields) {
    rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
    if (fields < 4) rest.remove_prefix(std::min(rest.size(), rest.find(' ')));
  }
  const auto device = number<unsigned>(rest.substr(0, rest.find(' ')), 10);
  return makedev((device >> 8U) & 0xfffU, (device & 0xffU) | ((device >> 12U) & 0xfff00U));
}

OrErrno<UniqueFd> Caller::open_program() const {
  UniqueFd file(::open(format("/proc/{}/exe", tid_).c_str(), O_PATH | O_CLOEXEC));
  if (!file.valid()) return errno_is(EACCES);
  return file;
}

std::uint64_t Caller::limit(const char* name, int resource) const {
  rlimit limit{};
  if (::prlimit(tid_, static_cast<__rlimit_resource>(resource), nullptr, &limit) == 0) return limit.rlim_cur;
  // Root in a container often lacks CAP_SYS_RESOURCE, which another user's limits ask for; their text does not, proc_pid_limits(5).
  const std::string text = slurp(format("/proc/{}/limits", tid_));
  const std::size_t line = text.find(format("\n{} ", name));
  if (line == std::string::npos) return RLIM_INFINITY;
  std::string_view value = std::string_view(text).substr(line + 1 + std::string_view(name).size());
  value.remove_prefix(std::min(value.size(), value.find_first_not_of(' ')));
  std::uint64_t soft = RLIM_INFINITY;  // "unlimited" is no number
  std::from_chars(value.data(), value.data() + value.size(), soft);
  return soft;
}

std::uint64_t Caller::file_size_limit() const { return limit("Max file size", RLIMIT_FSIZE); }
std::uint64_t Caller::open_files_limit() const { return limit("Max open files", RLIMIT_NOFILE); }

void Caller::signal(int number) const { ::syscall(SYS_tkill, tid_, number); }

bool Caller::dies_of(int signal) const {
  const std::string status = slurp(format("/proc/{}/status", tid_));
  const auto mask = [&](std::string_view name) { return number<std::uint64_t>(field(status, name), 16); };
  return ((mask("SigIgn") | mask("SigCgt") | mask("SigBlk")) >> static_cast<unsigned>(signal - 1) & 1U) == 0;
}

bool Caller::has_pending_signal() const {
  const std::string status = slurp(format("/proc/{}/status", tid_));
  const auto mask = [&](std::string_view name) { return number<std::uint64_t>(field(status, name), 16); };
  return ((mask("SigPnd") | mask("ShdPnd")) & mask("SigCgt") & ~mask("SigBlk")) != 0;
}

}  // namespace belljar::broker
