// Which sandboxes live is answered by the kernel and by no file's text. The keeper holds a record
// lock, fcntl(2), on `lock` in its entry. Whatever ends the keeper, SIGKILL included, releases it,
// and F_GETLK names the pid of the holder. flock(2) would tell only that somebody has the lock, not
// who; a pid file would name a process that may be another one by now.
//
// A record lock has a trap: any close of any descriptor of that file by the process releases it. So
// the keeper never opens its own `lock` a second time, and retire() with `own` skips the question.
//
// A second lock, flock(2) on `.lock` in the directory itself, makes each change whole for other
// commands: the check of a name and the making of its entry are one step, and nobody lists an entry
// that is half made. It is held for moments only; the record lock lasts as long as the sandbox.
//
// An entry that has ended is moved, not marked: what lies in `ended/` needs no lock to be known as
// over. Its socket, lock and key go before the move, so nobody connects to what has ended. Where
// the move fails, the entry is removed, since an entry without a keeper would otherwise stay for
// ever.
//
// The socket is bound and reached through /proc/self/fd/N, because sun_path holds 108 bytes,
// unix(7), and a runtime directory may have a longer name.
#include "keeper/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/environment.h"
#include "base/format.h"
#include "base/made_directories.h"
#include "base/random.h"
#include "base/remove_tree.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/state_dir.h"
#include "keeper/about.h"
#include "kernel/small_file.h"
#include "policy/schema.h"

namespace belljar::keeper {
namespace {

constexpr std::string_view kPrefix = "sb-";
constexpr const char* kEnded = "ended";
constexpr const char* kLockFile = "lock";
constexpr const char* kSocket = "socket";
constexpr const char* kAbout = "about.json";
constexpr const char* kKey = "key";
constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kLongestName = 64;

Error cannot(std::string_view what, const std::string& path, int errnum, const char* call) {
  return Error(errnum == EACCES || errnum == EPERM ? Code::kPermissionDenied : Code::kUnavailable,
               format("cannot {} {}", what, quoted(path)))
      .sys(errnum, call);
}

bool is_ours(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
}

// Held over each change of the directory and each look at it, briefly.
class Locked {
 public:
  Locked(int directory, int how) : file_(::openat(directory, ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    while (::flock(file_.get(), how) < 0 && errno == EINTR) {
    }
  }

 private:
  UniqueFd file_;
};

struct flock whole(short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

// Who holds the lock of an entry; -1: nobody does.
pid_t find_keeper(int directory) {
  const UniqueFd file(::openat(directory, kLockFile, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct flock lock = whole(F_WRLCK);
  if (!file.valid() || ::fcntl(file.get(), F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK) return -1;
  return lock.l_pid;
}

Result<void> write_about(int directory, const About& about) {
  const std::string text = to_json(about);
  const UniqueFd file(::openat(directory, "about.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid() || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::renameat(directory, "about.new", directory, kAbout) < 0)
    return Error(Code::kUnavailable, "cannot describe the sandbox in its directory").sys(errno, "write");
  return {};
}

// By way of a descriptor: the path of a socket may have 107 bytes at most, unix(7).
sockaddr_un address_in(int directory) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = format("/proc/self/fd/{}/{}", directory, kSocket);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<UniqueFd> listen_in(int directory) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = address_in(directory);
  if (!socket.valid() || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0 ||
      ::fchmodat(directory, kSocket, 0600, 0) < 0 || ::listen(socket.get(), SOMAXCONN) < 0)
    return Error(Code::kUnavailable, "cannot listen for commands to the sandbox").sys(errno, "bind");
  return socket;
}

std::string random_id() {
  unsigned value = 0;
  while (::getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return format("{}{:08x}", kPrefix, value);
}

// What whoever connects has to say first: who cannot read it is not the user, whatever the socket says of them.
Result<std::string> make_key(int directory) {
  std::string key = random_hex(kKeyBytes / 2);
  const UniqueFd file(::openat(directory, kKey, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (key.size() != kKeyBytes || !file.valid() || !write_all(file.get(), key))
    return Error(Code::kUnavailable, "cannot make the key of the sandbox").sys(errno, "write");
  return key;
}

std::vector<std::string> names_in(int directory, const char* name) {
  std::vector<std::string> names;
  UniqueFd fd(::openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd.get()), ::closedir);
  if (stream == nullptr) return names;
  (void)fd.release();
  while (const dirent* entry = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe): the stream is ours
    if (std::string_view(entry->d_name).starts_with(kPrefix)) names.emplace_back(entry->d_name);
  }
  return names;
}

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

About read_about(int directory, const std::string& id) {
  About about;
  if (const auto text = kernel::read_small_file(directory, kAbout)) {
    if (auto parsed = parse_about(*text)) about = *std::move(parsed);
  }
  about.id = id;  // what the directory is called is what counts
  return about;
}

// An open entry of the directory; -1 when it is not there.
UniqueFd open_entry(int directory, const std::string& id) {
  return UniqueFd(::openat(directory, id.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

}  // namespace

std::string_view to_string(State state) noexcept {
  return state == State::kRunning ? "running" : state == State::kGone ? "gone" : "ended";
}

Result<std::string> sandboxes_path() {
  const std::string given = own_variable("XDG_RUNTIME_DIR");
  if (given.starts_with('/') && is_ours(given)) return given + "/belljar";
  const std::string usual = format("/run/user/{}", ::geteuid());
  if (is_ours(usual)) return usual + "/belljar";
  if (::geteuid() == 0 && ::faccessat(AT_FDCWD, "/run", W_OK, AT_EACCESS) == 0) return std::string("/run/belljar");
  const std::string state = default_state_dir();
  if (!state.empty()) return state + "/sandboxes";
  return Error(Code::kFailedPrecondition, "there is no place for sandboxes that stay")
      .reason("neither XDG_RUNTIME_DIR nor HOME is set")
      .next("set XDG_RUNTIME_DIR to a directory of yours");
}

Result<void> check_name(std::string_view name) {
  const bool fine = !name.empty() && name.size() <= kLongestName && is_alnum(name[0]) &&
                    std::ranges::all_of(name, [](char c) { return is_alnum(c) || c == '.' || c == '_' || c == '-'; });
  if (fine) return {};
  return Error(Code::kInvalidArgument, format("{} is no name for a sandbox", quoted(name.substr(0, 2 * kLongestName))))
      .next("use at most 64 letters, digits, `.`, `_` and `-`, beginning with a letter or digit");
}

Result<Directory> Directory::open() {
  const std::string path = BELLJAR_TRY(sandboxes_path());
  if (const auto failure = make_directories(path); failure.errnum != 0)
    return cannot("make the directory", failure.path, failure.errnum, "mkdir");
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return cannot("open the directory of sandboxes", path, errno, "open");
  struct stat status{};
  if (::fstat(fd.get(), &status) < 0 || status.st_uid != ::geteuid() || (status.st_mode & 077U) != 0)
    return Error(Code::kPermissionDenied, format("cannot use the directory of sandboxes {}", quoted(path)))
        .reason("it belongs to somebody else, or others may enter it")
        .next("remove it, or set XDG_RUNTIME_DIR to a directory of yours");
  return Directory(path, std::move(fd));
}

Entry Directory::look(const std::string& id, bool ended) const {
  Entry entry;
  entry.path = path_ + (ended ? format("/{}/", kEnded) : "/") + id;
  const UniqueFd directory(::open(entry.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  entry.about = read_about(directory.get(), id);
  if (!ended) entry.keeper = find_keeper(directory.get());
  entry.state = ended ? State::kEnded : entry.keeper >= 0 ? State::kRunning : State::kGone;
  return entry;
}

std::vector<Entry> Directory::entries(bool ended) const {
  std::vector<Entry> found;
  for (const std::string& id : names_in(fd_.get(), ended ? kEnded : ".")) found.push_back(look(id, ended));
  std::ranges::sort(found, {}, [](const Entry& entry) { return std::pair(entry.about.created_ms, entry.about.id); });
  return found;
}

Result<std::vector<Entry>> Directory::list() const {
  const Locked lock(fd_.get(), LOCK_SH);
  std::vector<Entry> all = entries(false);
  for (Entry& entry : entries(true)) all.push_back(std::move(entry));
  return all;
}

Result<Entry> Directory::find(const std::string& text) const {
  if (!text.starts_with(kPrefix)) BELLJAR_CHECK(check_name(text));
  const std::vector<Entry> all = BELLJAR_TRY(list());
  const Entry* found = nullptr;
  std::vector<std::string_view> names;
  for (const Entry& entry : all) {
    names.emplace_back(entry.about.id);
    if (!entry.about.name.empty()) names.emplace_back(entry.about.name);
    const bool meant = entry.about.id == text || entry.about.name == text;
    // A living one counts before what has ended; of those the last.
    if (meant && (found == nullptr || found->state == State::kEnded)) found = &entry;
  }
  if (found != nullptr) return *found;
  const std::string_view near = policy::nearest(text, names);
  return Error(Code::kNotFound, format("there is no sandbox {}", quoted(text.substr(0, 2 * kLongestName))))
      .next(near.empty() ? "`belljar ls` shows which there are, `belljar create` makes one" : format("did you mean `{}`?", near));
}

Result<Claim> Directory::claim(About about) const {
  if (!about.name.empty()) BELLJAR_CHECK(check_name(about.name));
  const Locked lock(fd_.get(), LOCK_EX);
  for (const Entry& entry : entries(false)) {
    if (about.name.empty() || (entry.about.name != about.name && entry.about.id != about.name)) continue;
    if (entry.state == State::kRunning)
      return Error(Code::kAlreadyExists, format("there is a sandbox {} already", quoted(about.name)))
          .next(format("choose another --name, or `belljar kill {}`", about.name));
    put_away(entry.about, kKilled);
  }
  Claim claim;
  do about.id = random_id();
  while (::mkdirat(fd_.get(), about.id.c_str(), 0700) < 0 && errno == EEXIST);
  claim.path = path_ + "/" + about.id;
  claim.directory = open_entry(fd_.get(), about.id);
  if (!claim.directory.valid()) return cannot("make the sandbox's directory", claim.path, errno, "mkdirat");
  claim.lock = UniqueFd(::openat(claim.directory.get(), kLockFile, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  struct flock own = whole(F_WRLCK);
  if (!claim.lock.valid() || ::fcntl(claim.lock.get(), F_SETLK, &own) < 0)
    return cannot("lock the sandbox's directory", claim.path, errno, "fcntl");
  BELLJAR_CHECK(write_about(claim.directory.get(), about));
  claim.key = BELLJAR_TRY(make_key(claim.directory.get()));
  claim.listener = BELLJAR_TRY(listen_in(claim.directory.get()));
  claim.about = std::move(about);
  return claim;
}

void Directory::retire(const std::string& id, const std::string& why, bool own) const {
  const Locked lock(fd_.get(), LOCK_EX);
  const UniqueFd directory = open_entry(fd_.get(), id);
  if (!directory.valid()) return;
  // Not asked of one's own: that opens the lock's file, and to close it again would give the lock up.
  if (own || find_keeper(directory.get()) < 0) put_away(read_about(directory.get(), id), why);
}

void Directory::discard(const std::string& id) const {
  const Locked lock(fd_.get(), LOCK_EX);
  (void)remove_tree_at(fd_.get(), id);
}

// With the lock held.
void Directory::put_away(About about, const std::string& why) const {
  const std::string& id = about.id;
  const UniqueFd directory = open_entry(fd_.get(), id);
  about.ended = why;
  about.ended_ms = now_ms();
  (void)write_about(directory.get(), about);  // on a full disk it is put away with less said of it
  ::unlinkat(directory.get(), kSocket, 0);
  ::unlinkat(directory.get(), kLockFile, 0);
  ::unlinkat(directory.get(), kKey, 0);
  ::mkdirat(fd_.get(), kEnded, 0700);
  const UniqueFd ended(::openat(fd_.get(), kEnded, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!ended.valid() || ::renameat(fd_.get(), id.c_str(), ended.get(), id.c_str()) < 0) {
    (void)remove_tree_at(fd_.get(), id);
    return;
  }
  std::vector<Entry> kept = entries(true);
  std::ranges::sort(kept, {}, [](const Entry& one) { return one.about.ended_ms.value_or(0); });
  for (std::size_t i = 0; i + kMostEnded < kept.size(); ++i) (void)remove_tree_at(ended.get(), kept[i].about.id);
}

Result<UniqueFd> connect_to(const Entry& entry) {
  const UniqueFd directory(::open(entry.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_in(directory.get());
  const std::string key = kernel::read_small_file(directory.get(), kKey).value_or("");  // an older keeper has none, and takes none
  if (socket.valid() && ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      (key.empty() || ::send(socket.get(), key.data(), key.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(key.size())))
    return socket;
  return Error(Code::kUnavailable, format("cannot reach the sandbox {}", quoted(entry.about.id)))
      .sys(errno, "connect")
      .next("`belljar ls` shows what became of it");
}

}  // namespace belljar::keeper
