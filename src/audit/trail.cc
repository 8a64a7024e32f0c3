// Appending to the audit trail: many processes, one file, and no record half written.
//
// An append locks the file that the path names, reads the last record if somebody else wrote since, cuts off
// what a killed writer left behind it, writes one line with one write(2) and syncs it. The lock is flock(2),
// which the kernel drops with its holder, so a killed writer blocks nobody.
//
// Fork needs more. flock(2) belongs to the open file, which parent and child share, so each process opens the
// file anew for itself after a fork. A child that may not open it any more goes on with the shared one, and a
// mutex in shared memory (process_shared_mutex.h) keeps the two apart. Record locks of fcntl(2) would not do:
// they are lost as soon as the process closes any descriptor of the file.
//
// Rotation never lets the name be missing. The full file gets a second name by link(2); the new file is made
// as FILE.next with its first record in it, synced, and renamed over FILE. Old files are deleted last. A
// process that waited for the old file's lock finds that the name leads to another inode, and opens that one.
//
// A full disk must not leave half a record, for that would read as a crash: what was written of it is cut off
// again, and the record is refused. reserve() takes disk space before work begins, so that the record of work
// that is done finds room.
//
// The chain cannot show that its end was cut off. A writer that has the file open can: it remembers the last
// record, and refuses to go on once that is gone.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "audit/files.h"
#include "audit/line.h"
#include "audit/process_shared_mutex.h"
#include "base/encoding.h"
#include "base/format.h"
#include "base/held_signal.h"
#include "base/paths.h"
#include "base/patience.h"
#include "base/unique_fd.h"
#include "belljar/audit.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/units.h"

namespace belljar {
namespace {

using audit::Head;
using Clock = std::chrono::steady_clock;

constexpr off_t kReserve = 64 << 10;
// A wall clock that NTP slews runs up to 500 ppm fast or slow, adjtimex(8); more than that, and two seconds, is a jump.
constexpr std::chrono::nanoseconds kJump = std::chrono::seconds(2);
constexpr int kSlewed = 1000;

std::string boot_id() {
  std::string id;
  const UniqueFd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[8];
  if (file.valid() && ::read(file.get(), text, sizeof text) == sizeof text) id.assign(text, sizeof text);
  const bool fine = is_small_hex(id);
  return fine ? id : std::string();
}

AuditTime system_time(const std::string& boot) {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return {std::chrono::system_clock::now(), std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec), boot};
}

Error held_too_long(std::chrono::milliseconds patience, const std::string& path) {
  return Error(Code::kUnavailable, format("cannot write to the audit trail {}", quoted(path)))
      .reason(format("another process has held its lock for {}", to_string(patience)))
      .next(format("find it: fuser {}", escaped(path)));
}

class Lock {
 public:
  // Waits by trying: flock(2) knows no deadline, and the holders are our own appends, which take a write and an fdatasync.
  static Result<Lock> acquire(int fd, std::chrono::milliseconds patience, const std::string& path) {
    const auto deadline = Clock::now() + bounded(patience);
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return audit::failed(format("cannot lock {}", quoted(path)), "flock", errno);
      if (Clock::now() >= deadline) return held_too_long(patience, path);
      ::poll(nullptr, 0, 1);
    }
    return Lock(fd);
  }
  Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Lock& operator=(Lock&& other) noexcept {
    release();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  ~Lock() { release(); }

 private:
  explicit Lock(int fd) : fd_(fd) {}
  void release() noexcept {
    if (fd_ >= 0) ::flock(std::exchange(fd_, -1), LOCK_UN);
  }
  int fd_;
};

Result<UniqueFd> open_to_write(const std::string& path, int more = 0) {
  const std::string what = format("cannot write to the audit trail {}", quoted(path));
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK | more, 0600));
  if (!file.valid() && errno == ELOOP)
    return Error(Code::kInvalidArgument, what).reason("it is a symbolic link").next("name the file itself");
  if (!file.valid() && errno == EISDIR) return Error(Code::kInvalidArgument, what).reason("it is a directory");
  if (!file.valid()) return audit::failed(what, "open", errno);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return audit::failed(what, "fstat", errno);
  if (!S_ISREG(status.st_mode)) return Error(Code::kInvalidArgument, what).reason("it is not a regular file");
  if (status.st_uid != ::geteuid() || (status.st_mode & 022) != 0)
    return Error(Code::kPermissionDenied, what)
        .reason("it belongs to another user, or others may write it")
        .next(format("chmod 600 {}, as its owner", escaped(path)));
  return file;
}

}  // namespace

std::string to_string(const AuditHead& head) { return format("{}:{}", head.sequence, head.hash); }

Result<AuditHead> parse_audit_head(std::string_view text) {
  AuditHead head;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [rest, error] = std::from_chars(begin, end, head.sequence);
  if (error == std::errc() && rest != end && *rest == ':') head.hash.assign(rest + 1, end);
  if (head.hash.size() != audit::kHashDigits || !is_small_hex(head.hash))
    return Error(Code::kInvalidArgument, format("{} is no head of an audit trail", quoted(text)))
        .next("it reads NUMBER:HASH, as `belljar audit verify` prints it");
  return head;
}

struct AuditTrail::State {
  std::string path;
  AuditOptions options;
  std::string boot = boot_id();
  audit::ProcessSharedMutex between_forks;  // taken after `mutex`, before the file's lock

  mutable std::mutex mutex;
  // guarded by mutex
  UniqueFd file;
  pid_t opener = -1;  // the process that opened it, or could not after fork(2)
  ino_t inode = 0;
  off_t size = -1;     // of the file after our last record; another size: somebody else wrote
  off_t reserved = 0;  // bytes of disk taken ahead
  std::optional<Head> last;
  Clock::time_point synced;

  AuditTime now() const { return options.clock ? options.clock() : system_time(boot); }
  std::string what() const { return format("cannot write to the audit trail {}", quoted(path)); }

  Result<void> open();
  Result<audit::ProcessSharedMutex::Guard> lock_between_forks();
  Result<Lock> lock();
  Result<void> read_end(off_t length);
  Result<void> mend(off_t from, off_t length);
  Result<void> reserve_disk(off_t until);
  Result<void> write(std::string_view kind, std::string_view data);
  Result<void> write_line(const std::string& line);
  Result<void> note_clock(const AuditTime& time);
  Result<void> rotate(Lock& held);
  Result<void> sync();
  Result<void> prepare(Lock& held, const AuditTime& time);
};

Result<void> AuditTrail::State::open() {
  file = BELLJAR_TRY(open_to_write(path));
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return audit::failed(what(), "fstat", errno);
  opener = ::getpid();
  inode = status.st_ino;
  size = -1;
  reserved = 0;
  return {};
}

// Before lock(), and held longer: of a process and those forked from it, one at a time.
Result<audit::ProcessSharedMutex::Guard> AuditTrail::State::lock_between_forks() {
  audit::ProcessSharedMutex::Guard guard = between_forks.lock_within(bounded(options.patience));
  if (!guard) return held_too_long(options.patience, path);
  return guard;
}

// Locks the file that `path` names, which may be another one since the last time: somebody rotated.
Result<Lock> AuditTrail::State::lock() {
  // flock(2) locks what was opened, and a forked child has the same open file as its parent. A worker that gave up its rights may
  // write to it but not open it anew, and goes on with it as long as `path` names it: lock_between_forks() keeps it from its
  // parent. What is lost then: of a holder that was killed, the lock stays until its parent's next record.
  if (opener != ::getpid() && !open()) opener = ::getpid();
  for (int tries = 0; tries < 1000; ++tries) {
    Lock held = BELLJAR_TRY(Lock::acquire(file.get(), options.patience, path));
    struct stat named{};
    if (::stat(path.c_str(), &named) == 0 && named.st_ino == inode) {
      struct stat status{};
      if (::fstat(file.get(), &status) != 0) return audit::failed(what(), "fstat", errno);
      if (status.st_size != size) BELLJAR_CHECK(read_end(status.st_size));
      return held;
    }
    {
      const Lock done = std::move(held);  // before open() closes it: a forked child may have the open file still, and its lock
    }
    BELLJAR_CHECK(open());
  }
  return Error(Code::kUnavailable, what()).reason("the file is replaced again and again");
}

// Reads the last record, and mends what a killed writer left behind it. `length`: of the file.
Result<void> AuditTrail::State::read_end(off_t length) {
  std::optional<Head> found;
  const off_t most = static_cast<off_t>(2 * audit::kMaxLine + 2);
  const off_t from = std::max<off_t>(0, length - most);
  std::string end(static_cast<std::size_t>(length - from), '\0');
  const ssize_t count = ::pread(file.get(), end.data(), end.size(), from);
  if (count < 0) return audit::failed(what(), "pread", errno);
  end.resize(static_cast<std::size_t>(count));
  const std::size_t newline = end.rfind('\n');
  const std::size_t tail_at = newline == std::string::npos ? 0 : newline + 1;
  const std::string_view tail = std::string_view(end).substr(tail_at);
  const auto damaged = [&](std::string why) {
    return Error(Code::kDataLoss, what()).reason(std::move(why)).next(format("belljar audit verify {}", escaped(path)));
  };
  if (newline != std::string::npos) {
    const std::size_t before = newline == 0 ? std::string::npos : end.rfind('\n', newline - 1);
    const std::size_t line_at = before == std::string::npos ? 0 : before + 1;
    audit::Parsed parsed = audit::parse(std::string_view(end).substr(line_at, newline - line_at));
    if (parsed.broken != audit::Broken::kNo) return damaged("its last record is damaged");
    found = std::move(parsed.head);
  }
  // What we know was there must be there still: it is refused again and again, until somebody has looked and opens it anew.
  if (last && (!found || found->sequence < last->sequence || (found->sequence == last->sequence && found->hash != last->hash)))
    return Error(Code::kDataLoss, what())
        .reason(format("its records up to {} were cut off or written anew", last->sequence))
        .next(format("belljar audit verify --head {}:{} {}", last->sequence, last->hash, escaped(path)));
  last = std::move(found);
  size = length;
  if (tail.empty()) return {};
  if (!audit::is_torn_record(tail)) return damaged("there is something else behind its last record");
  return mend(from + static_cast<off_t>(tail_at), length);
}

Result<void> AuditTrail::State::mend(off_t from, off_t length) {
  if (::ftruncate(file.get(), from) != 0) return audit::failed(what(), "ftruncate", errno);
  size = from;
  return write("mended", AuditFields().number("torn_bytes", length - from).json());
}

// fallocate(2) beyond the end: the file's size stays. File systems without it (NFS, some FUSE) are asked with the write itself.
Result<void> AuditTrail::State::reserve_disk(off_t until) {
  if (until <= reserved) return {};
  if (::fallocate(file.get(), FALLOC_FL_KEEP_SIZE, 0, until + kReserve) == 0) {
    reserved = until + kReserve;
    return {};
  }
  const int errnum = errno;
  if (errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG)
    return audit::failed(what(), "fallocate", errnum).next("make room; until then no work that must be recorded is done");
  reserved = until;
  return {};
}

Result<void> AuditTrail::State::write_line(const std::string& line) {
  ssize_t wrote = 0;
  do wrote = ::write(file.get(), line.data(), line.size());
  while (wrote < 0 && errno == EINTR);
  if (wrote == static_cast<ssize_t>(line.size())) {
    size += wrote;
    return {};
  }
  const int errnum = wrote < 0 ? errno : ENOSPC;
  // Nothing of it stays: half a record would read as a crash.
  if (wrote > 0 && ::ftruncate(file.get(), size) != 0) size = -1;
  return audit::failed(what(), "write", errnum).next("make room; until then no work that must be recorded is done");
}

Result<void> AuditTrail::State::write(std::string_view kind, std::string_view data) {
  Head head;
  head.sequence = last ? last->sequence + 1 : 0;
  head.prev = last ? last->hash : audit::kNoHash;
  head.kind = kind;
  head.time = now();
  const std::string line = audit::seal(head, ::getpid(), data);
  if (line.size() > audit::kMaxLine) return Error(Code::kInvalidArgument, what()).reason("the record is larger than 1 MiB");
  BELLJAR_CHECK(write_line(line));
  last = audit::parse(std::string_view(line).substr(0, line.size() - 1)).head;
  return {};
}

// Says so in the trail when the wall clock and the boot-time clock disagree about how long ago the last record was.
Result<void> AuditTrail::State::note_clock(const AuditTime& time) {
  if (!last || last->time.boot.empty() || last->time.boot != time.boot) return {};
  const auto elapsed = time.since_boot - last->time.since_boot;
  const auto by_wall = std::chrono::duration_cast<std::chrono::nanoseconds>(time.wall - last->time.wall);
  const auto off = by_wall - elapsed;
  if (std::chrono::abs(off) <= kJump + std::chrono::abs(elapsed) / kSlewed) return {};
  return write("clock", AuditFields().number("jumped_ms", off / std::chrono::milliseconds(1)).json());
}

// FILE becomes FILE.000001 by a second name, then the new file takes the name FILE: it is never missing, whoever is killed when.
Result<void> AuditTrail::State::rotate(Lock& held) {
  std::vector<audit::OldFile> old = BELLJAR_TRY(audit::find_old(path));
  if (old.empty() || !audit::same_file(old.back().path, path)) {
    const unsigned number = old.empty() ? 1 : old.back().number + 1;
    old.push_back({number, audit::old_path(path, number)});
    if (::link(path.c_str(), old.back().path.c_str()) != 0) return audit::failed(what(), "link", errno);
  }
  const std::optional<Head> before = last;
  const std::string next_path = path + ".next";
  ::unlink(next_path.c_str());
  UniqueFd next = BELLJAR_TRY(open_to_write(next_path, O_EXCL));
  // The chain goes on: the first record of the new file follows the last of the old one.
  UniqueFd full = std::exchange(file, std::move(next));
  size = 0;
  Lock fresh = BELLJAR_TRY(Lock::acquire(file.get(), options.patience, next_path));
  const std::size_t deleted = options.keep && old.size() > *options.keep ? old.size() - *options.keep : 0;
  AuditFields fields;
  fields.text("previous", audit::old_path(std::string(file_name(path)), old.back().number));
  fields.number("deleted", static_cast<std::int64_t>(deleted));
  const auto first = deleted == old.size() ? std::optional(last->sequence + 1) : audit::first_sequence(old[deleted].path);
  if (first) fields.number("first", static_cast<std::int64_t>(*first));
  auto wrote = write("rotated", fields.json());
  if (wrote && ::fdatasync(file.get()) != 0) wrote = audit::failed(what(), "fdatasync", errno);
  if (wrote && ::rename(next_path.c_str(), path.c_str()) != 0) wrote = audit::failed(what(), "rename", errno);
  if (!wrote) {
    ::unlink(next_path.c_str());
    {
      const Lock done = std::move(fresh);
    }
    size = -1;
    last = before;
    file = std::move(full);
    return wrote;
  }
  held = std::move(fresh);  // who waits for the old one finds that the name leads elsewhere
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return audit::failed(what(), "fstat", errno);
  inode = status.st_ino;
  reserved = 0;
  // Only now: whoever is killed in between leaves files that the trail does not miss, and the next rotation takes them away.
  for (std::size_t i = 0; i < deleted; ++i) ::unlink(old[i].path.c_str());
  const UniqueFd directory(::open(audit::directory_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.valid()) ::fsync(directory.get());
  return {};
}

Result<void> AuditTrail::State::sync() {
  if (options.sync == AuditSync::kNever) return {};
  const auto time = Clock::now();
  if (options.sync == AuditSync::kEvery && time - synced < bounded(options.sync_interval)) return {};
  if (::fdatasync(file.get()) != 0) return audit::failed(what(), "fdatasync", errno);
  synced = time;
  return {};
}

// What comes before a record. The file is locked.
Result<void> AuditTrail::State::prepare(Lock& held, const AuditTime& time) {
  if (!last) {
    BELLJAR_CHECK(reserve_disk(1));
    return write("begin", AuditFields().number("version", 1).json());
  }
  if (options.rotate_at && static_cast<std::uint64_t>(size) >= options.rotate_at->count) BELLJAR_CHECK(rotate(held));
  return note_clock(time);
}

AuditTrail::AuditTrail(std::unique_ptr<State> state) : state_(std::move(state)) {}
AuditTrail::AuditTrail(AuditTrail&&) noexcept = default;
AuditTrail& AuditTrail::operator=(AuditTrail&&) noexcept = default;
AuditTrail::~AuditTrail() {
  if (state_ && state_->options.sync == AuditSync::kEvery && state_->file.valid()) ::fdatasync(state_->file.get());
}

Result<AuditTrail> AuditTrail::open(std::string path, AuditOptions options) {
  if (path.empty() || path.find('\0') != std::string::npos)
    return Error(Code::kInvalidArgument, "cannot open an audit trail").reason("its name is empty or holds a NUL byte");
  if (options.rotate_at && options.rotate_at->count == 0)
    return Error(Code::kInvalidArgument, "cannot open an audit trail")
        .reason("its files would be rotated at 0 bytes, each before its first record")
        .next("name a size such as 64MiB, or none for one file");
  const HeldSignal too_large(SIGXFSZ);  // EFBIG says it, setrlimit(2)
  auto state = std::make_unique<State>();
  state->path = std::move(path);
  state->options = std::move(options);
  BELLJAR_CHECK(state->open());
  {
    const auto fork_guard = BELLJAR_TRY(state->lock_between_forks());
    Lock held = BELLJAR_TRY(state->lock());
    BELLJAR_CHECK(state->prepare(held, state->now()));
    BELLJAR_CHECK(state->sync());
  }
  return AuditTrail(std::move(state));
}

Result<std::uint64_t> AuditTrail::append(std::string_view kind, const AuditFields& fields) {
  State& state = *state_;
  if (kind.empty() || kind.find_first_not_of("abcdefghijklmnopqrstuvwxyz.-") != std::string_view::npos)
    return Error(Code::kInvalidArgument, format("{} is no kind of an audit record", quoted(kind)));
  const HeldSignal too_large(SIGXFSZ);
  const std::lock_guard guard(state.mutex);
  const auto fork_guard = BELLJAR_TRY(state.lock_between_forks());
  Lock held = BELLJAR_TRY(state.lock());
  BELLJAR_CHECK(state.prepare(held, state.now()));
  BELLJAR_CHECK(state.write(kind, fields.json()));
  BELLJAR_CHECK(state.sync());
  return state.last->sequence;
}

Result<void> AuditTrail::reserve() {
  State& state = *state_;
  const HeldSignal too_large(SIGXFSZ);
  const std::lock_guard guard(state.mutex);
  const auto fork_guard = BELLJAR_TRY(state.lock_between_forks());
  const Lock held = BELLJAR_TRY(state.lock());
  return state.reserve_disk(state.size + kReserve);
}

AuditHead AuditTrail::head() const {
  const std::lock_guard guard(state_->mutex);
  return state_->last ? AuditHead{state_->last->sequence, state_->last->hash} : AuditHead{};
}

const std::string& AuditTrail::path() const noexcept { return state_->path; }

}  // namespace belljar
