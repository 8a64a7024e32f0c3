// connect(2), every family: performed here on a duplicate of the caller's socket. See broker.h.
//
// A path is resolved in the caller's view with the caller's permissions, and gives an inode (O_PATH). From
// then on only inodes count:
//   - listed by the policy: connected on the host, with our own permissions, since the user who listed it has
//     them;
//   - an own socket, one that was noted at its listen (own_sockets.h): connected to the *noted* descriptor,
//     so that no mistake in resolving can lead to a socket of the host;
//   - anything else that is alive: refused, with a violation. The address of each connect is our own
//     /proc/self/fd/N of that inode.
//
// The hard case is a server between bind and listen. The kernel answers its client ECONNREFUSED, and clients
// try again; from outside it looks like a socket of the host's that is not noted. A refusal would be final,
// so find_own() waits for the listen: up to a second where the socket was made during the run, 40 ms where it
// is older. Each round peeks first and looks into the notes second: what was alive when it was peeked at and
// is not noted after that is not ours. The other order would refuse a server that listens in between.
//
// Who connected is noted before the server can see the connection (PeerRecord), since it may ask at once
// (SO_PEERCRED).
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/format.h"
#include "broker/as_caller.h"
#include "broker/handlers.h"
#include "broker/notification.h"
#include "broker/path_view.h"
#include "broker/socket_args.h"
#include "broker/unix_connect.h"
#include "policy/paths.h"
#include "policy/permit.h"

namespace belljar::broker {
namespace {

// For a server to come from bind to listen.
constexpr std::chrono::milliseconds kPatience{40}, kPatienceWithNew{1000}, kFirstPause{1}, kLongestPause{10};

constexpr char kAllowed[] = "sockets that a process of this sandbox listens on, and those of network.allow_unix_sockets";
constexpr char kAllowedAbstract[] =
    "sockets with a path that a process of this sandbox listens on; network.allow_all_unix_sockets = true opens abstract names, "
    "all of them";
constexpr char kAllowedNowhere[] =
    "sockets of network.allow_unix_sockets; this kernel does not tell the sandbox's own sockets from others on the host's network "
    "(no unix_diag): use a network of its own (network.mode = \"none\")";

constexpr char kNoNetwork[] =
    "the sandbox's own loopback; network.mode proxy opens single hosts, network.mode host the host's network";

// One connect while it is being decided and done.
struct Connect {
  Context& context;
  const Call& call;
  Receivers::Slot& slot;
  Caller caller;
  SocketArgs args;
};

// Repeats `attempt` when a signal of ours came from a tick that no longer concerns this call. An interrupted connect that goes on
// in the background is picked up again by the second one (net/ipv4/af_inet.c, SS_CONNECTING).
template <class Attempt>
int uninterrupted(Connect& connect, Attempt attempt) {
  for (;;) {
    int status = 0;
    {
      const Receivers::Blocking blocking(connect.slot);
      status = attempt();
    }
    if (status != -EINTR || connect.slot.interrupted()) return status;
  }
}

int connect_as_given(Connect& connect) {
  return uninterrupted(connect, [&] {
    const auto* address = reinterpret_cast<const sockaddr*>(connect.args.address.bytes.data());
    return ::connect(connect.args.socket.get(), address, connect.args.address.length) == 0 ? 0 : -errno;
  });
}

bool is_connected(int socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  return ::getpeername(socket, reinterpret_cast<sockaddr*>(&name), &size) == 0;
}

// Known before the server can see it. A second connect of the same socket says nothing new.
class PeerRecord {
 public:
  explicit PeerRecord(Connect& connect) : peers_(connect.context.peers) {
    struct stat socket{};
    if (is_connected(connect.args.socket.get()) || ::fstat(connect.args.socket.get(), &socket) != 0) return;
    client_ = socket.st_ino;
    peers_.note(client_, Peers::Process::of(connect.caller));
  }
  ~PeerRecord() {
    if (!connected_) peers_.forget(client_);
  }
  PeerRecord(const PeerRecord&) = delete;
  PeerRecord& operator=(const PeerRecord&) = delete;

  int finish(int status) {
    connected_ = status == 0 || client_ == 0;
    return status;
  }

 private:
  Peers& peers_;
  ino_t client_ = 0;
  bool connected_ = false;
};

// The path of a refused socket with links resolved: what was meant, whatever it was called.
std::string real_path_of(int file, std::string_view path) {
  std::string real_path(PATH_MAX, '\0');
  const ssize_t size = ::readlink(format("/proc/self/fd/{}", file).c_str(), real_path.data(), real_path.size());
  if (size <= 0) return std::string(path);
  real_path.resize(static_cast<std::size_t>(size));
  return real_path;
}

int refuse_path(Connect& connect, std::string target) {
  return connect.context.refuse(connect.caller, "unix-connect", std::move(target), EACCES,
                                connect.context.cannot_note ? kAllowedNowhere : kAllowed);
}

// What stands behind a file: a socket of the sandbox's own, or what a connect of somebody else's would find.
struct SocketLookup {
  OwnSockets::SocketRef own;
  int peeked = 0;  // where it is not our own
};

// A server of the sandbox may be between bind and listen: its client gets ECONNREFUSED from the kernel and tries again, and must
// not be refused for good. We cannot see that state, so the client waits for the listen to be noted: longer, once, where the socket
// was made during the run, since a busy machine may keep its server from the processor.
//
// Judged by one look: what was alive when it was peeked at, and is not noted after it. A second peek could find what was bound
// since the first.
SocketLookup find_own(Connect& connect, int file) {
  using Clock = std::chrono::steady_clock;
  const auto begun = Clock::now();
  const bool is_new = connect.context.own.is_new(file);
  const auto patience = is_new ? kPatienceWithNew : kPatience;
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    const bool last = Clock::now() - begun >= patience;
    const int peeked = peek(file);
    if (OwnSockets::SocketRef own = connect.context.own.find(file)) return {std::move(own), 0};
    if (last && is_new) connect.context.own.waited_in_vain(file);
    if (last || !is_alive(peeked)) return {nullptr, peeked};
    const Receivers::Blocking blocking(connect.slot);
    std::this_thread::sleep_for(pause);
    if (connect.slot.interrupted()) return {nullptr, -EINTR};
  }
}

// The file's place is one that the policy hides: the mask answers for it, whether or not anything is there.
bool is_hidden(const Connect& connect, const std::string& real_path) {
  const auto& explain = connect.context.options.explain;
  return explain && explain(Act::kRead, real_path, EACCES).has_value();
}

// The socket behind what an overlay shows of it; none where that is another by now.
UniqueFd open_on_host(int file, const std::string& real_path) {
  struct stat seen{}, real{};
  if (::fstat(file, &seen) != 0 || !S_ISSOCK(seen.st_mode)) return {};
  UniqueFd host(::open(real_path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!host.valid() || ::fstat(host.get(), &real) != 0 || !S_ISSOCK(real.st_mode)) return {};
  const bool same = seen.st_ctim.tv_sec == real.st_ctim.tv_sec && seen.st_ctim.tv_nsec == real.st_ctim.tv_nsec;
  return same ? std::move(host) : UniqueFd();
}

// The host's own socket behind what the caller's view leads to. connect(2) finds no socket through an overlay, as over a home with
// hidden names, and who root lends may be kept out by its mode: neither is a socket that nobody serves. What was made at that path
// in a layer of the sandbox's own last changed at another time; a server of its own may be binding there just now, which looks the
// same for as long as it has not listened. With our own permissions.
bool is_socket_of_host(Connect& connect, int file, const std::string& real_path) {
  const UniqueFd host = open_on_host(file, real_path);
  if (!host.valid()) return false;
  const SocketLookup found = find_own(connect, host.get());
  return found.own == nullptr && is_alive(found.peeked);
}

// The caller's view has no server for it, or shuts it.
int explain_path(Connect& connect, AsCaller& permissions, int file, std::string real_path, int status) {
  if (status == -EACCES && is_hidden(connect, real_path)) return refuse_path(connect, std::move(real_path));
  if (status != -EACCES && status != -ECONNREFUSED) return status;
  bool refused = false;
  {
    const AsCaller::Suspended ours(permissions);
    refused = is_socket_of_host(connect, file, real_path);
  }
  return refused ? refuse_path(connect, std::move(real_path)) : status;
}

// Names nothing beside the path: what is read depends on the path alone.
struct NoSurroundings : Surroundings {
  bool exists(int, std::string_view) const override { return false; }
};

// Where every socket is allowed but those of hidden places: 0, or the refusal by the rule that hides it.
int refuse_hidden(Connect& connect, const std::string& real_path) {
  Context& context = connect.context;
  const auto refuse = [&](std::string rule, Origin origin, std::string allowed) {
    return context.refuse(connect.caller, "unix-connect", real_path, EACCES, std::move(allowed), std::move(rule),
                          std::move(origin));
  };
  if (const auto& rules = context.options.rules) {
    const Ruling ruling = rules->rule_for(Act::kRead, real_path, false, NoSurroundings());
    if (ruling.answer == Answer::kRefuse) {
      std::string rule(ruling.rule);
      Origin origin = ruling.origin != nullptr ? *ruling.origin : context.origin_of(rule);
      return refuse(std::move(rule), std::move(origin), std::string(ruling.allowed));
    }
  }
  const auto& explain = context.options.explain;
  if (auto why = explain ? explain(Act::kRead, real_path, EACCES) : std::nullopt)
    return refuse(std::move(why->rule), std::move(why->origin), std::move(why->allowed));
  return 0;
}

// network.allow_all_unix_sockets. Performed here all the same: what is hidden stays out of reach where no mount lies over it, and
// the kernel finds no socket through an overlay.
int connect_to_any(Connect& connect, AsCaller& permissions, const PathView& view, std::string_view path) {
  const auto file = view.open();
  if (!file && file.error() == EACCES) {
    const int hidden = refuse_hidden(
        connect, policy::normal(path.starts_with('/') ? std::string(path) : format("{}/{}", connect.caller.cwd_path(), path)));
    return hidden != 0 ? hidden : -EACCES;
  }
  if (!file) return -file.error();
  const std::string real_path = real_path_of(file->get(), path);
  if (const int hidden = refuse_hidden(connect, real_path); hidden != 0) return hidden;
  PeerRecord record(connect);
  const auto attempt = [&](int at) {
    return record.finish(uninterrupted(connect, [&] { return connect_to_file(connect.args.socket.get(), at); }));
  };
  const int status = attempt(file->get());
  if (status != -ECONNREFUSED) return status;
  UniqueFd host;
  {
    const AsCaller::Suspended ours(permissions);
    host = open_on_host(file->get(), real_path);
  }
  return host.valid() ? attempt(host.get()) : status;
}

// A path that the caller's view does not open.
int explain_way(Connect& connect, std::string_view path, int error) {
  // A link of /proc in the middle of the path, which would mean our process instead of the caller's.
  if (error == EXDEV) return refuse_path(connect, std::string(path));
  if (error != EACCES) return -error;
  std::string real_path =
      policy::normal(path.starts_with('/') ? std::string(path) : format("{}/{}", connect.caller.cwd_path(), path));
  return is_hidden(connect, real_path) ? refuse_path(connect, std::move(real_path)) : -error;
}

// A socket of the host's, by our own permissions: those of the user who listed it.
int connect_to_listed(Connect& connect, const ListedSocket& listed) {
  const AsCaller ours(connect.context.options.uid, Identity::kOwn);
  const auto file = connect.context.listed.open(listed);
  if (!file) return -file.error();
  return uninterrupted(connect, [&] { return connect_to_file(connect.args.socket.get(), file->get()); });
}

// What the caller's own view leads to: by the path without links, and by the inode.
const ListedSocket* find_listed(const Connect& connect, int file, std::string_view path) {
  const ListedSocket* const found = connect.context.listed.find_name(real_path_of(file, path));
  return found != nullptr ? found : connect.context.listed.find_file(file);
}

int connect_to_path(Connect& connect, AsCaller& permissions, const PathView& view, std::string_view path) {
  const auto file = view.open();
  if (file && connect.context.listed.any()) {
    const ListedSocket* listed = nullptr;
    {
      const AsCaller::Suspended ours(permissions);
      listed = find_listed(connect, file->get(), path);
    }
    if (listed != nullptr) return connect_to_listed(connect, *listed);
  }
  if (!file) return explain_way(connect, path, file.error());
  const SocketLookup found = find_own(connect, file->get());
  if (found.own != nullptr) {
    PeerRecord record(connect);
    return record.finish(uninterrupted(connect, [&] { return connect_to_file(connect.args.socket.get(), found.own->get()); }));
  }
  std::string real_path = real_path_of(file->get(), path);
  if (is_alive(found.peeked)) return refuse_path(connect, std::move(real_path));
  return explain_path(connect, permissions, file->get(), std::move(real_path), found.peeked);
}

int connect_unix(Connect& connect) {
  const UnixName target = decode_unix(connect.args.address);
  const bool any = connect.context.options.filter.unix_sockets == kernel::UnixSockets::kAnyJudged;
  if (target.kind == UnixName::Kind::kPath) {
    const auto view = PathView::create(connect.caller, target.name);
    const ListedSocket* listed = nullptr;
    if (connect.context.listed.any()) {
      const bool absolute = target.name.starts_with('/');
      listed = connect.context.listed.find_name(absolute ? std::string(target.name)
                                                         : format("{}/{}", connect.caller.cwd_path(), target.name));
    }
    if (!still_waiting(connect.context.listener.get(), connect.call.id)) return -ESRCH;
    if (listed != nullptr) return connect_to_listed(connect, *listed);
    if (!view) return -view.error();
    AsCaller permissions(connect.context.options.uid);
    if (!permissions.ok()) return -EACCES;
    return any ? connect_to_any(connect, permissions, *view, target.name)
               : connect_to_path(connect, permissions, *view, target.name);
  }
  if (target.kind == UnixName::Kind::kAbstract && !any && !connect.context.options.own_network_namespace) {
    return connect.context.refuse(connect.caller, "unix-connect", "@" + std::string(target.name), EPERM, kAllowedAbstract);
  }
  const AsCaller permissions(connect.context.options.uid);
  if (!permissions.ok()) return -EACCES;
  PeerRecord record(connect);
  return record.finish(connect_as_given(connect));
}

// A network without a route is how "no network" is enforced, so this errno is the policy's word.
int note_network(Connect& connect) {
  const std::string target = internet_name(connect.args.address);
  if (!connect.context.options.network_refused || target.empty()) return -ENETUNREACH;
  const bool datagrams = socket_option(connect.args.socket.get(), SO_TYPE) == SOCK_DGRAM;
  const char* const by_proxy = datagrams ? policy::kTcpByProxy : policy::kHostsByProxy;
  return connect.context.refuse(connect.caller, datagrams ? "udp-connect" : "connect", target, ENETUNREACH,
                                connect.context.options.proxied ? by_proxy : kNoNetwork, "network.mode");
}

int decide_and_connect(Connect& connect) {
  if (const int status = read_socket_args(connect.caller, connect.call, connect.args); status != 0) return status;
  if (!still_waiting(connect.context.listener.get(), connect.call.id)) return -ESRCH;
  const int domain = socket_option(connect.args.socket.get(), SO_DOMAIN);
  if (domain == AF_UNIX) return connect_unix(connect);
  // The owner of the namespace may name netlink peers, a caller without capabilities may not (netlink(7), netlink_connect).
  if (domain == AF_NETLINK && names_netlink_peer(connect.args.address)) return -EPERM;
  const AsCaller permissions(connect.context.options.uid);
  if (!permissions.ok()) return -EACCES;
  if (connect.context.options.observer) {
    if (std::string target = internet_name(connect.args.address); !target.empty())
      connect.context.options.observer({Observation::Act::kReach, std::move(target), true, false, connect.call.tid});
  }
  const int status = connect_as_given(connect);
  return status == -ENETUNREACH ? note_network(connect) : status;
}

// A signal ended the wait: without SO_SNDTIMEO the kernel restarts the call where the handler says so, signal(7).
int interrupted_status(const Connect& connect) {
  timeval timeout{};
  socklen_t size = sizeof timeout;
  ::getsockopt(connect.args.socket.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, &size);
  return timeout.tv_sec == 0 && timeout.tv_usec == 0 ? -kRestart : -EINTR;
}

}  // namespace

void handle_connect(Context& context, const Call& call, Receivers::Slot& slot) {
  Connect connect{context, call, slot, Caller(call.tid), {}};
  int status = decide_and_connect(connect);
  if (status == -EINTR) status = interrupted_status(connect);
  connect.args.socket.reset();  // before the caller goes on: our duplicate must not outlive its own close()
  answer(context.listener.get(), call.id, status);
}

}  // namespace belljar::broker
