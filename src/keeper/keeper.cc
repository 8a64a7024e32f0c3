// The life of a keeper. One thread accepts, watches the clock and takes signals; each connection
// has a thread of its own, because an `exec` or a log that is followed waits as long as it likes.
//
// A new connection passes the checks from the cheapest to the dearest, and what may wait is done by
// the connection's thread: a peer that sends no key must not hold up the accepting thread. The
// peer's uid and pid are read from the socket (SO_PEERCRED, unix(7)), its user namespace from that
// pid. They tell who connected and not who speaks; the key closes that gap. It is compared in a
// time that does not depend on where it differs.
//
// The end has an order. The sandbox stops first, while connections still live, so that commands
// report how they ended. Then the entry is put away, so that a new command finds "ended" and not a
// dead socket. Then those who wait in `kill` are told, so the end that they are told of is one that
// `ls` shows already. Only then receivers are woken and threads joined: a thread that waits for
// stopped_ could not be joined before.
//
// CLOCK_BOOTTIME is the clock of the expiry: it counts time in which the machine was suspended,
// clock_gettime(2), which CLOCK_MONOTONIC does not.
#include "keeper/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/events.h"
#include "belljar/exec_result.h"

namespace belljar::keeper {
namespace {

using std::chrono::milliseconds;

// How often it is looked whether anybody can still find the socket.
constexpr int kPlaceCheckMs = 30'000;
constexpr const char* kByItself = "it ended by itself";

bool same_namespace(pid_t pid) {
  struct stat own{}, theirs{};
  return ::stat("/proc/self/ns/user", &own) == 0 && ::stat(format("/proc/{}/ns/user", pid).c_str(), &theirs) == 0 &&
         own.st_ino == theirs.st_ino && own.st_dev == theirs.st_dev;
}

// The directory is closed to other users; this is the second lock. The namespace is a third one, against what runs in a sandbox of
// the same user and got hold of the socket; it looks at a pid, which could in theory be another's by now.
bool is_owner(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid() && same_namespace(peer.pid);
}

// The socket names the user alone, and not always who connected: a broker connects for its sandbox. Only who may read the entry of
// this sandbox knows its key, and no sandbox may.
bool knows_key(int socket, const std::string& key) {
  constexpr milliseconds kPatience{10'000};
  std::string told(key.size(), '\0');
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (std::size_t at = 0; at < told.size();) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
    pollfd wait{socket, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) <= 0) return false;
    const ssize_t got = ::recv(socket, told.data() + at, told.size() - at, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (got > 0) at += static_cast<std::size_t>(got);
  }
  unsigned char differs = 0;  // as long for any wrong one
  for (std::size_t i = 0; i < key.size(); ++i) differs |= static_cast<unsigned char>(key[i] ^ told[i]);
  return !key.empty() && differs == 0;
}

}  // namespace

Keeper::Keeper(KeptSandbox kept, Claim claim, const Directory& directory, std::optional<milliseconds> expires)
    : kept_(std::move(kept)), claim_(std::move(claim)), directory_(directory) {
  open_timer(expires);
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&taken, signal);
  signals_ = UniqueFd(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  kept_.sandbox->on_end([this](const ExecResult& rest) {
    tell_seen(kept_, rest.violations, rest.egress);
    end(kByItself);
  });
}

// What the sandbox tells of its end it tells to us.
Keeper::~Keeper() { (void)kept_.sandbox->stop(); }

// Time during which the machine was suspended counts.
void Keeper::open_timer(std::optional<milliseconds> expires) {
  if (!expires) return;
  timer_ = UniqueFd(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  itimerspec at{};
  at.it_value = {static_cast<time_t>(expires->count() / 1000), static_cast<long>(expires->count() % 1000 * 1'000'000)};
  if (expires->count() == 0) at.it_value.tv_nsec = 1;
  ::timerfd_settime(timer_.get(), 0, &at, nullptr);
}

void Keeper::end(const std::string& why) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (why_.empty()) why_ = why;
  }
  wake_.ring();
}

bool Keeper::await_end(milliseconds patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [this] { return stopped_; });
}

void Keeper::run() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (!why_.empty()) break;
    }
    turn();
  }
  stop();
}

void Keeper::turn() {
  std::array<pollfd, 4> set = {
      {{claim_.listener.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}, {timer_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
  const int ready = ::poll(set.data(), set.size(), kPlaceCheckMs);
  reap();
  if (ready == 0) check_place();
  if (ready <= 0) return;
  if (set[0].revents != 0) accept_one();
  if (set[2].revents != 0) end("it expired");
  if (set[3].revents != 0) end("its keeper was told to end");
}

void Keeper::accept_one() {
  UniqueFd socket(::accept4(claim_.listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.valid() || !is_owner(socket.get())) return;
  connections_.emplace_back(std::move(socket));
  Connection& connection = connections_.back();
  if (connections_.size() > kMostConnections) {
    (void)connection.channel.send({{"error", to_message(Error(Code::kResourceExhausted, "the sandbox is busy")
                                                            .reason(format("{} requests are served already", kMostConnections)))}},
                                  {}, milliseconds(0));
    connections_.pop_back();
    return;
  }
  try {
    connection.thread = std::thread([this, &connection] { serve_one(connection); });
  } catch (const std::exception&) {  // no more threads: the connection closes
    connections_.pop_back();
  }
}

void Keeper::serve_one(Connection& connection) {
  try {
    if (knows_key(connection.channel.fd(), claim_.key)) serve(connection.channel, kept_, *this);
  } catch (const std::exception& wrong) {  // a request of another shape than ours
    (void)connection.channel.send(
        {{"error", to_message(Error(Code::kInternal, "the sandbox's keeper does not understand").reason(escaped(wrong.what())))}});
  }
  // The other side sees the end now, not when this is reaped.
  ::shutdown(connection.channel.fd(), SHUT_RDWR);
  connection.done.store(true);
  wake_.ring();
}

void Keeper::reap() {
  if (!wake_.take()) return;
  for (auto at = connections_.begin(); at != connections_.end();) {
    if (!at->done.load()) {
      ++at;
      continue;
    }
    at->thread.join();
    at = connections_.erase(at);
  }
}

// Whoever removes the directory (the runtime directory of a user who logged out) takes the way to us: nobody could end us any more.
void Keeper::check_place() {
  struct stat own{}, there{};
  if (::fstat(claim_.directory.get(), &own) == 0 && ::stat(claim_.path.c_str(), &there) == 0 && own.st_ino == there.st_ino) return;
  end("its directory was removed");
}

void Keeper::stop() {
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    why = why_;
  }
  // Unused for too long, or its pid 1 was killed: it knows, as long as it was not stopped.
  if (const auto told = kept_.sandbox->stats(); why == kByItself && !told && !told.error().reason().empty())
    why = told.error().reason();
  (void)kept_.sandbox->stop();
  kept_.log->publish({.body = LifecycleEvent{Lifecycle::kStopped, why}});
  directory_.retire(claim_.about.id, why, true);
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  kept_.log->close();
  for (Connection& connection : connections_) connection.channel.stop_receiving();
  for (Connection& connection : connections_) connection.thread.join();
  connections_.clear();
}

}  // namespace belljar::keeper
