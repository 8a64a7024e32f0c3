// The live-rules broker: performs, outside the sandbox, the calls that a filter cannot judge: AF_UNIX connect, bind, listen and
// getsockname (no mount, no Landlock right and no filter selects a socket by its path), and where FileRules ask for it every call
// that makes, moves, removes or writes a name. It also tells of refusals that the filter wants told. The room's README says which
// file does what. Of sockets:
//
//   connect (x86-64: 42)  always performed here, on a duplicate of the caller's socket and a private copy of the address. Never
//                         CONTINUE: a second thread may swap the descriptor, the address or a link after any check of ours.
//   bind    (x86-64: 49)  where rules judge names: a socket's name is judged like any other's and made here, see bind_call.cc.
//                         Where no port may be taken, one of TCP is refused.
//   listen  (x86-64: 50)  noted, then continued. On a bound AF_UNIX socket SIOCUNIXFILE gives the very inode that the socket is
//                         bound to, which the broker keeps open: an *own* socket. Letting listen go on is harmless whatever the
//                         caller swaps: a socket that was not noted is refused to connect to, nothing else. Where no port may be
//                         taken it is performed here, on a duplicate: it takes a port without bind.
//
//   getsockopt (55)       SO_PEERCRED and SO_PEERPIDFD alone: where the broker made the connection it names who asked for it, with
//                         the answer written here; all others go on.
//
// A path that the policy lists is connected to on the host, whatever the caller's own view has there. Any other
// pathname connect is resolved in the caller's view. When the inode it leads to is one of the noted ones, connect goes to the
// *noted* descriptor (by /proc/self/fd/N), so no mistake in path resolution can lead to a socket of the host. Everything else with
// a live socket behind it is refused with EACCES and a Violation.
//
// Contract with launch/:
//   - the filter notifies these calls and is installed with SECCOMP_FILTER_FLAG_NEW_LISTENER and, where the kernel has it,
//     SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (seccomp(2), Linux 5.19; without it a signal during a connect makes it happen twice,
//     EISCONN);
//   - AF_UNIX SOCK_DGRAM and SOCK_RAW cannot be made inside (sendmsg has an address that nobody sees); who asks for a pair of them
//     (socketpair, 53) gets one of SOCK_SEQPACKET, whose ends the kernel lets send to each other only;
//   - the caller of create() owns the sandbox's user namespace from its parent, or is root: SIOCUNIXFILE asks for CAP_NET_ADMIN
//     over the sandbox's network namespace, pidfd_getfd and process_vm_readv for ptrace access;
//   - no descriptor of a bound or listening socket of the host is handed to the command.
//
//   Broker broker = BELLJAR_TRY(Broker::create(sandbox.take_listener(), {.own_network_namespace = true}));
//   poll({broker.poll_fd(), POLLIN}) -> broker.on_readable();      // never blocks, from the event loop's thread
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "broker/directories.h"
#include "broker/file_rules.h"
#include "broker/observation.h"
#include "kernel/seccomp.h"

namespace belljar::broker {

// Why the kernel refused an act on a path, in terms of the policy.
struct Explanation {
  std::string rule;
  Origin origin;
  std::string allowed;
};

// A socket of the host that the policy opens (network.allow_unix_sockets).
struct ListedSocket {
  std::string path;  // as the policy names it, normal
  std::string real;  // on the host, links resolved; followed again at no connect
  // Below a directory that the command writes to: the inode of the start is meant, whatever stands there later.
  bool pinned = false;
};

// A workspace that is an overlay (a transaction): where it stands inside, and its upper layer on the host.
struct WorkspaceOverlay {
  std::string path;
  std::string upper;
};

struct BrokerOptions {
  // The sandbox has a network namespace of its own, so abstract names reach nothing outside. False (`--net host`): abstract
  // connects are refused with EPERM, as a Landlock scope would (landlock(7), LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET).
  bool own_network_namespace = true;
  // Any path of the caller's that names one of these or leads to it is connected to it, by our own permissions: the server sees the
  // user who runs us.
  std::vector<ListedSocket> listed;
  // Before anything ran inside, by CLOCK_REALTIME_COARSE. Tells own sockets from older ones where unix_diag has to (own_sockets.h).
  timespec began{};
  // Who the commands are on the host. Root performs connects as this user, so that permissions of the socket and SO_PEERCRED come
  // out as if the caller had connected. -1: our own ids.
  uid_t uid = static_cast<uid_t>(-1);
  gid_t gid = static_cast<gid_t>(-1);
  // File calls. Whether they come here is the filter's choice (kernel::FileCalls). None: every one is performed as the kernel
  // would.
  std::shared_ptr<const FileRules> rules;
  // Without a pid namespace: the subreaper above init and all processes inside. What lies in /proc of others is refused then, where
  // `rules` hold paths. 0: the sandbox has a /proc of its own.
  pid_t guard = 0;
  // Landlock lets nobody inside make a socket where `rules` judge names: a bind that goes elsewhere may go on by itself. Else every
  // bind is performed here.
  bool sockets_held = false;
  // network.allow_local_binding = false: nobody inside listens on TCP, bound or not (local_ports.h).
  bool ports_refused = false;
  std::optional<WorkspaceOverlay> overlay;
  // Where all sandboxes and commits of a user find each other (default_state_dir()): none acts on names in the roots of `rules`
  // while another makes two halves of a git directory one or gives a directory a new path. Empty, or where no lock can be had: the
  // sandbox is ordered by itself alone, and why_alone() says so.
  std::string state_dir;
  // Nobody inside can change its root (no chroot, pivot_root, mount namespaces): it is looked up once. False with
  // allow_nested_userns.
  bool one_root = true;
  // What answers for EROFS, EACCES and EPERM of the kernel, where mounts hold a rule: a violation is recorded when it knows why.
  // Called on receiver threads, several at once. None: only refusals of `rules` are recorded.
  std::function<std::optional<Explanation>(Act, std::string_view path, int errnum)> explain;
  // Where a policy key got its value, for violations; from any thread. Unset: {"built-in"}.
  std::function<Origin(const std::string& key)> origin_of;
  // The policy gives the sandbox no network: an ENETUNREACH of a connect is its refusal.
  bool network_refused = false;
  bool proxied = false;  // but what the proxy carries
  // What the filter was made from: what it refuses by way of a notification (tell_refusals) is refused here, with its errno.
  kernel::SeccompSpec filter;
  // `belljar learn` (SeccompSpec::observe): is told each use of a path and each connect. Decides nothing.
  Observer observer;
  std::function<bool(const Violation&)> ignored;  // policy.ignore_violations: counted, not kept; from any thread
  std::size_t max_violations = 1000;              // kept between two take_violations(); the rest is counted
  std::size_t max_own_sockets = 256;              // listening AF_UNIX sockets with a path at one time; one descriptor of ours each
  std::size_t max_pending = 128;                  // connects that may block at one time, a thread each; more wait their turn
};

// What can only be made inside, where the sandbox has a network namespace of its own. Without them: see each.
struct Inner {
  UniqueFd diag;  // of NETLINK_SOCK_DIAG, nobody else's. SO_PEERCRED of connections that the broker made says pid 0
  // To pid 1, or whoever else makes pairs: for each packet of one byte, 'p', one with the two ends of a new AF_UNIX SOCK_SEQPACKET
  // pair, or with none. SOCK_DGRAM pairs are refused (EACCES)
  UniqueFd pairs;
};

// Answers the notifications of one sandbox. Move-only. All methods from one thread; the work is done on threads of its own (a path
// on a dead network mount, a full backlog or a slow TCP peer never hold the event loop), none of which exist before the first
// call that arrives here. The destructor interrupts and joins them; callers still waiting get ENOSYS from the kernel, so end the
// sandbox first.
class Broker {
 public:
  // Errors: kInvalidArgument, `listener` is not a seccomp listener; kUnavailable or kResourceExhausted from the kernel.
  static Result<Broker> create(UniqueFd listener, BrokerOptions options, Inner inner = {});
  Broker(Broker&&) noexcept;
  Broker& operator=(Broker&&) noexcept;
  ~Broker();

  // Readable when on_readable() has something to do. Level-triggered; the same descriptor for the broker's whole life.
  int poll_fd() const noexcept;
  void on_readable();
  // False once the last process under the filter is gone: drop poll_fd() from the loop then.
  bool active() const noexcept;
  // Held shared by who acts on files of the sandbox on somebody's behalf, alone by who may give a directory a new path
  // (file_calls.h). Outlives the broker.
  std::shared_ptr<Directories> directories() const;
  // Why it is not ordered among others (BrokerOptions::state_dir); empty: it is, or has no rules.
  const std::string& why_alone() const noexcept;
  // Refusals since the last call, oldest first. A refusal is in the list before its caller sees the errno.
  std::vector<Violation> take_violations();
  // How many refusals found the list full, and how many `ignored` kept out, in all.
  std::uint64_t dropped() const noexcept;
  std::uint64_t hidden() const noexcept;

 private:
  struct State;
  explicit Broker(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace belljar::broker
