// A socket's file says that a spare was there, and connect(2) says whether it is: what nobody listens on any more is removed by who
// finds it. Two spares that take the same slot at one time cannot be: bind(2) refuses the second.
// `has_room()` asks for names alone, since to connect is to disturb; the client, which connects to both, removes what is dead.
//
// The wait costs an idle machine nothing: one poll(2), whose patience is minutes. inotify(7) tells when our socket is removed,
// which is how a login session's end, or somebody's `rm -r`, ends spares. Of the directory's own end it would not tell: our socket
// holds it.
#include "warm/door.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/format.h"
#include "base/made_directories.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "kernel/pass_fds.h"

namespace belljar::warm {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kVisit{1000};  // what somebody who connected may take to say what they want
constexpr int kMostWaiting = 2;       // who comes when more do starts cold at once
constexpr std::size_t kMostText = 64U << 10;

std::vector<const char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<const char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(text.c_str());
  result.push_back(nullptr);
  return result;
}

Error no_place(std::string_view why) {
  return Error(Code::kFailedPrecondition, "cannot keep a sandbox ready").reason(std::string(why));
}

sockaddr_un address_of(const std::string& path) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);  // wire::put_directory() leaves room
  return address;
}

UniqueFd new_socket(int flags) noexcept { return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0)); }

bool connect_to(int socket, const std::string& path) noexcept {
  const sockaddr_un address = address_of(path);
  return ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// A spare that was killed leaves its socket.
bool remove_if_dead(const std::string& path) noexcept {
  const UniqueFd socket = new_socket(SOCK_NONBLOCK);
  const bool dead = socket.valid() && !connect_to(socket.get(), path) && errno == ECONNREFUSED;
  if (dead && ::unlink(path.c_str()) == 0) return true;
  errno = EEXIST;
  return false;
}

// The socket has its name only when it listens: one that refuses has been left by somebody who was killed.
Result<UniqueFd> listen_at(const std::string& folder, const std::string& path) {
  const std::string aside = format("{}/.{}", folder, ::getpid());
  UniqueFd socket = new_socket(SOCK_NONBLOCK);
  const sockaddr_un address = address_of(aside);
  ::unlink(aside.c_str());  // of a process that had our number
  const auto named = [&] { return ::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0; };
  if (!socket.valid() || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Error(Code::kFailedPrecondition, "cannot keep a sandbox ready").sys(errno, "bind");
  if (::chmod(aside.c_str(), 0600) == 0 && ::listen(socket.get(), kMostWaiting) == 0 &&
      (named() || (errno == EEXIST && remove_if_dead(path) && named())))
    return socket;
  Error error =
      Error(errno == EEXIST ? Code::kAlreadyExists : Code::kFailedPrecondition, "cannot keep a sandbox ready").sys(errno, "rename");
  ::unlink(aside.c_str());
  return error;
}

ino_t inode_of(const std::string& path) noexcept {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

std::string path_in(const std::string& directory, std::uint64_t kind, int slot) {
  char name[32];
  wire::put_name(name, kind, slot);
  return directory + name;
}

bool is_ours_alone(const std::string& path) noexcept {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & 077U) == 0;
}

// Texts that end with NUL each; false: the last does not.
bool split(std::string_view bytes, std::vector<std::string>& into) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\0');
    if (end == std::string_view::npos) return false;
    into.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
  }
  return true;
}

// `warm --stop` leaves its time, for spares that were being made then.
constexpr const char* kStopped = ".stopped";

bool was_stopped(const std::string& folder, std::chrono::system_clock::time_point since) noexcept {
  struct stat status{};
  if (::lstat((folder + "/" + kStopped).c_str(), &status) != 0) return false;
  const auto at = std::chrono::seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec);
  return at >= since.time_since_epoch();
}

void note_stop(const std::string& folder) noexcept {
  const UniqueFd file(::open((folder + "/" + kStopped).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  timespec now[2];
  ::clock_gettime(CLOCK_REALTIME, &now[0]);  // finer than UTIME_NOW
  now[1] = now[0];
  ::futimens(file.get(), now);
}

std::vector<std::string> sockets_in(const std::string& folder) {
  std::vector<std::string> paths;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(folder.empty() ? nullptr : ::opendir(folder.c_str()), ::closedir);
  if (stream == nullptr) return paths;
  while (const dirent* entry = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe): the stream is ours
    if (entry->d_name[0] != '.') paths.push_back(folder + "/" + entry->d_name);
  }
  std::ranges::sort(paths);
  return paths;
}

// Asks the spare at `path`; its answer, empty where it does not; nullopt: there is none.
std::optional<std::string> ask_at(const std::string& path, wire::Ask ask) {
  const UniqueFd socket = path.size() < wire::kPathBytes ? new_socket(SOCK_NONBLOCK) : UniqueFd();
  if (!socket.valid()) return std::nullopt;
  if (!connect_to(socket.get(), path)) {
    if (errno == EAGAIN) return "";
    if (errno == ECONNREFUSED) ::unlink(path.c_str());
    return std::nullopt;
  }
  wire::Request request{.ask = ask};
  // It tells those alone whom the kernel lets look into it, as a run shows, too (wire.h).
  ucred spare{};
  socklen_t spare_size = sizeof spare;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &spare, &spare_size) == 0)
    (void)!::readlink(format("/proc/{}/fd/{}", spare.pid, wire::kProofFd).c_str(), request.proof, sizeof request.proof);
  std::string text(kMostText, '\0');
  pollfd wait{socket.get(), POLLIN, 0};
  if (::send(socket.get(), &request, sizeof request, MSG_NOSIGNAL) != sizeof request ||
      ::poll(&wait, 1, static_cast<int>(kVisit.count())) <= 0)
    return "";
  const ssize_t size = ::recv(socket.get(), text.data(), text.size(), 0);
  if (size <= 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(size));
  return text;
}

// Kinds of which nobody will ask again are many where a variable differs with every call.
void end_oldest(const std::string& folder) {
  constexpr std::size_t kMostSpares = 16;
  std::vector<std::string> paths = sockets_in(folder);
  const auto made = [](const std::string& path) {
    struct stat status{};
    return ::lstat(path.c_str(), &status) == 0 ? std::pair(status.st_mtim.tv_sec, status.st_mtim.tv_nsec) : std::pair(0L, 0L);
  };
  for (; paths.size() >= kMostSpares; paths.pop_back()) {
    std::iter_swap(std::ranges::min_element(paths, {}, made), paths.end() - 1);
    // One that does not answer, as one that is stopped, ends when it finds its socket gone.
    if (ask_at(paths.back(), wire::Ask::kEnd).value_or("").empty()) ::unlink(paths.back().c_str());
  }
}

constexpr std::chrono::minutes kCold{10};

std::string cold_mark(const std::string& folder, const RunWords& words, const wire::Inherited& inherited) {
  char name[32];
  wire::put_name(name, words.hash(inherited), 0);
  return folder + "/." + std::string(name + 1, 16) + ".cold";
}

// Of less than ten minutes ago.
bool is_fresh(const std::string& mark) noexcept {
  struct stat status{};
  if (::lstat(mark.c_str(), &status) != 0) return false;
  const auto age = std::chrono::system_clock::now().time_since_epoch() - std::chrono::seconds(status.st_mtim.tv_sec);
  return age >= std::chrono::seconds(-1) && age < kCold;
}

// What was left by a spare that was killed before it listened, by its number; and marks that say nothing any more.
void remove_leftovers(const std::string& folder) noexcept {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(folder.c_str()), ::closedir);
  if (stream == nullptr) return;
  while (const dirent* entry = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe): the stream is ours
    const std::string_view name(entry->d_name);
    const std::string path = folder + "/" + entry->d_name;
    pid_t pid = 0;
    const bool number = name.size() > 1 && std::from_chars(name.begin() + 1, name.end(), pid).ptr == name.end() && pid > 0;
    if (number ? ::kill(pid, 0) != 0 && errno == ESRCH : name.ends_with(".cold") && !is_fresh(path)) ::unlink(path.c_str());
  }
}

}  // namespace

wire::Words RunWords::parts() const { return wire::words_of(static_cast<int>(argv.size()), pointers_to(argv).data()); }

std::string RunWords::kind() const {
  std::string kind;
  wire::each_of_kind(parts(), pointers_to(argv).data(), pointers_to(environment).data(), cwd.c_str(),
                     [&kind](const char* text) { kind.append(text).push_back('\0'); });
  return kind;
}

std::uint64_t RunWords::hash(const wire::Inherited& inherited) const {
  return wire::hash_of_kind(parts(), pointers_to(argv).data(), pointers_to(environment).data(), cwd.c_str(), inherited);
}

bool Visitor::answer(wire::Say say, int value) const noexcept {
  const wire::Answer answer{say, value};
  return ::send(connection.get(), &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer;
}

bool Visitor::has_left() const noexcept {
  pollfd wait{connection.get(), POLLRDHUP, 0};
  return ::poll(&wait, 1, 0) != 0;
}

bool Visitor::await_go() noexcept {
  constexpr int kPatience = 2000;
  pollfd wait{connection.get(), POLLIN, 0};
  if (::poll(&wait, 1, kPatience) <= 0) ::shutdown(connection.get(), SHUT_RD);  // from here on it cannot say it any more
  wire::Signal go[2] = {{-1}, {-1}};
  const auto got = kernel::receive_fds<3>(connection.get(), go, sizeof go, MSG_DONTWAIT);
  for (std::size_t i = 0; i < got.count; ++i) streams[i] = UniqueFd(got.fds[i]);
  return got.size == sizeof go[0] && !got.cut && got.count == 3 && go[0].number == wire::kGo;
}

void make_directory() {
  if (const std::string folder = directory(); !folder.empty()) make_directories(folder);
}

std::string directory() {
  const std::vector<std::string> environment = own_environment();
  char path[wire::kPathBytes];
  return {path, wire::put_directory(pointers_to(environment).data(), ::geteuid() == 0, path)};
}

void note_cold(const RunWords& words, const wire::Inherited& inherited) {
  const std::string folder = directory();
  if (folder.empty() || !is_ours_alone(folder)) return;
  remove_leftovers(folder);
  const UniqueFd file(::open(cold_mark(folder, words, inherited).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  ::futimens(file.get(), nullptr);
}

bool has_room(const RunWords& words, const wire::Inherited& inherited) {
  const std::string folder = directory();
  if (folder.empty() || !is_ours_alone(folder) || is_fresh(cold_mark(folder, words, inherited))) return false;
  const std::uint64_t kind = words.hash(inherited);
  for (int slot = 0; slot < wire::kSlots; ++slot) {
    if (::access(path_in(folder, kind, slot).c_str(), F_OK) != 0) return true;
  }
  return false;
}

Result<Door> Door::open(const RunWords& words, const wire::Inherited& inherited, std::chrono::system_clock::time_point since) {
  Door door;
  const std::string folder = directory();
  if (folder.empty()) return no_place("the path of the state directory is too long for a socket, or there is none");
  make_directory();
  if (!is_ours_alone(folder)) return no_place(format("{} is not a directory of yours alone (mode 0700)", quoted(folder)));
  if (was_stopped(folder, since)) return Error(Code::kCanceled, "spares were told to end");
  remove_leftovers(folder);
  end_oldest(folder);
  const std::uint64_t kind = words.hash(inherited);
  for (int slot = 0; slot < wire::kSlots; ++slot) {
    std::string path = path_in(folder, kind, slot);
    auto listener = listen_at(folder, path);
    if (!listener && listener.error().code() == Code::kAlreadyExists) continue;
    door.listener_ = BELLJAR_TRY(std::move(listener));
    door.path_ = std::move(path);
    // Without it patience is what ends us.
    door.watch_ = UniqueFd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (door.watch_.valid())
      ::inotify_add_watch(door.watch_.get(), folder.c_str(),
                          IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
    door.inode_ = inode_of(door.path_);
    // Whoever told spares to end had looked for their sockets before ours was there.
    if (was_stopped(folder, since)) return Error(Code::kCanceled, "spares were told to end");
    return door;
  }
  return Error(Code::kAlreadyExists, "there are enough spares of that kind");
}

Door::~Door() { close(); }

void Door::close() noexcept {
  if (!listener_.valid()) return;
  if (inode_of(path_) == inode_) ::unlink(path_.c_str());  // and not one that has taken its place
  listener_.reset();
}

std::optional<Visitor> Door::next(milliseconds patience, int also) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd wait[3] = {{listener_.get(), POLLIN, 0}, {watch_.get(), POLLIN, 0}, {also, POLLIN, 0}};
    if (::poll(wait, 3, static_cast<int>(left.count())) < 0) continue;
    if (wait[2].revents != 0) return std::nullopt;
    if (wait[1].revents != 0) {
      char events[4096];
      while (::read(watch_.get(), events, sizeof events) > 0) {
      }
      if (inode_of(path_) != inode_) return std::nullopt;
    }
    if (wait[0].revents == 0) continue;
    UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.valid()) continue;
    if (auto visitor = receive(std::move(connection))) return visitor;
  }
}

std::optional<Visitor> Door::receive(UniqueFd connection) const {
  Visitor visitor;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != ::geteuid() || peer.pid <= 0)
    return std::nullopt;
  visitor.caller = Caller::look_at(peer.pid);  // while it prepares what it will say
  pollfd wait{connection.get(), POLLIN, 0};
  if (::poll(&wait, 1, static_cast<int>(kVisit.count())) <= 0) return std::nullopt;
  const auto bytes = std::make_unique_for_overwrite<char[]>(wire::kMostBytes);
  const auto got = kernel::receive_fds<1>(connection.get(), bytes.get(), wire::kMostBytes);
  for (std::size_t i = 0; i < got.count; ++i) ::close(got.fds[i]);  // nobody was asked for any yet
  wire::Request request;
  if (got.size < static_cast<ssize_t>(sizeof request) || got.cut) return std::nullopt;
  std::memcpy(&request, bytes.get(), sizeof request);
  std::string_view rest(bytes.get() + sizeof request, static_cast<std::size_t>(got.size) - sizeof request);
  const auto take = [&rest](std::size_t count) { return std::exchange(rest, rest.substr(count)).substr(0, count); };
  const bool asks = request.ask == wire::Ask::kRun || request.ask == wire::Ask::kTell || request.ask == wire::Ask::kEnd;
  if (request.magic != wire::kMagic || !asks ||
      std::size_t{request.argv_bytes} + request.environment_bytes + request.cwd_bytes != rest.size())
    return std::nullopt;
  visitor.ask = request.ask;
  visitor.inherited = request.inherited;
  visitor.proof.assign(request.proof, ::strnlen(request.proof, sizeof request.proof));
  std::vector<std::string> cwd;
  if (!split(take(request.argv_bytes), visitor.run.argv) || !split(take(request.environment_bytes), visitor.run.environment) ||
      !split(rest, cwd))
    return std::nullopt;
  if (request.ask == wire::Ask::kRun) {
    if (got.count != 0 || cwd.size() != 1 || visitor.run.argv.size() != request.argc) return std::nullopt;
    visitor.run.cwd = std::move(cwd.front());
  }
  visitor.connection = std::move(connection);
  return visitor;
}

bool tell(const Visitor& visitor, std::string_view text) noexcept {
  text = text.substr(0, kMostText);
  return ::send(visitor.connection.get(), text.data(), text.size(), MSG_NOSIGNAL) >= 0;
}

std::vector<std::string> ask_all(wire::Ask ask) {
  const std::string folder = directory();
  if (ask == wire::Ask::kEnd && !folder.empty()) note_stop(folder);
  std::vector<std::string> answers;
  for (const std::string& path : sockets_in(folder)) {
    if (auto text = ask_at(path, ask)) answers.push_back(*std::move(text));
  }
  return answers;
}

}  // namespace belljar::warm
