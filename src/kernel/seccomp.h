// The system call filter: a model in plain data, and the BPF program made from it.
//
// The model (seccomp_table.cc: which group a call belongs to; seccomp_rules.cc: what a group answers under a spec) is what a person
// reads. `judge` is its interpreter and `build_filter` its compiler; `evaluate` runs a filter in user space, so that tests and a
// fuzzer can check that both agree for every call. It is an allow list: a number that the table does not hold answers ENOSYS, which
// is what a C library expects of an older kernel (a new call is never open by accident: CVE-2021-41133). Foreign ABIs are killed.
//
//   std::vector<sock_filter> filter = build_filter({.unix_sockets = UnixSockets::kBrokered});   // before clone3
//   sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
//   int listener = install_filter(program, SECCOMP_FILTER_FLAG_NEW_LISTENER);                   // in the child, last of all
//
// What a filter cannot see: anything behind a pointer (paths, socket addresses, `struct open_how`, clone3's arguments). Where that
// matters the call is refused, brokered, or another lock holds it; docs/design/seccomp.md has the list.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace belljar::kernel {

// AF_UNIX. The filter sees the type of a socket at its birth and never the address of a connect or a send, so a sandbox that shows
// host sockets on its mounts needs kPairs or kBrokered. A datagram end can name a path in any sendmsg, socketpair ends included,
// hence SOCK_DGRAM (and SOCK_RAW, which the kernel turns into it) exists only in kAll and kAnyJudged.
enum class UnixSockets : std::uint8_t {
  kPairs,      // socketpair STREAM and SEQPACKET; socket(AF_UNIX) is refused
  kBrokered,   // + socket STREAM and SEQPACKET; every connect(2) and listen(2) becomes a user
               // notification, a getsockopt(2) that asks who the peer is and a socketpair of datagrams too (whoever answers gives a
               // SEQPACKET one, which names nobody)
  kStream,     // + socket STREAM and SEQPACKET; connect goes wherever the mounts let it
  kAnyJudged,  // every type; every connect(2) becomes a user notification. A datagram's address in sendmsg is not seen
  kAll,        // every type, every address
};

// Whether connects are notified.
constexpr bool judges_connects(UnixSockets sockets) noexcept {
  return sockets == UnixSockets::kBrokered || sockets == UnixSockets::kAnyJudged;
}

// SO_PEERPIDFD (Linux 6.5), which the C library's headers are too old for.
inline constexpr int kPeerPidfd = 77;

// Calls that name files. What is behind a pointer no filter sees, so live rules need the broker to perform the call.
enum class FileCalls : std::uint8_t {
  kDirect,  // go wherever mounts and Landlock let them
  // What gives a file a second name, makes a node or binds a socket, and S_ISGID of a directory; all else is direct. Where the one
  // writable directory is the overlay of a transaction, whose commit judges every name.
  kLinks,
  kWrites,  // what makes, renames, links, removes, truncates, changes modes, or opens with a flag to write becomes a notification
  kDirectories,  // + every open with O_DIRECTORY, opendir(3)'s: who may list what (second tier)
  kAll,          // + every other open
};
// close(2) of a number in here is a notification too where file calls are brokered: the broker gives out descriptors of staged
// files there and publishes their content before close returns. A multiple of its size, so that one masked comparison finds it;
// below 1024, the usual limit of open files.
inline constexpr std::uint32_t kStagedFdFirst = 960;
inline constexpr std::uint32_t kStagedFdCount = 64;

// Ports, where network.allow_local_binding is false. listen(2) without bind(2) takes a port by itself (inet_autobind), which
// Landlock does not see, and no filter sees the family of a descriptor.
enum class LocalPorts : std::uint8_t {
  kOpen,     // bind goes where Landlock lets it, listen as unix_sockets says
  kJudged,   // every bind and every listen becomes a notification
  kRefused,  // every listen is EACCES: for kPairs, which has no socket of AF_UNIX to listen on
};

// What the sandbox around the filter gives. A value; the defaults are a sandbox with all namespaces of its own.
struct SeccompSpec {
  UnixSockets unix_sockets = UnixSockets::kPairs;
  bool allow_inet = true;            // AF_INET and AF_INET6 stream and datagram; false where no network namespace holds them
  bool allow_netlink_route = true;   // NETLINK_ROUTE, which getifaddrs(3) needs
  bool allow_ipc = true;             // SysV IPC and POSIX queues; false without an ipc namespace (they have no path to hide)
  bool own_pid_namespace = true;     // false: prlimit64 on other processes is refused too (Landlock does not hold it)
  bool own_mounts = true;            // false: no read-only mount keeps a file that is open from another mode or other flags
  bool allow_nested_userns = false;  // clone, unshare and setns of namespaces, mount and chroot: a weaker sandbox
  bool deny_setid_bits = true;       // no call can set S_ISUID or S_ISGID; openat2 is ENOSYS (its mode is behind a pointer)
                                     // unless file calls are brokered
  // The only ids that the user namespace maps. To change an owner to another is EPERM, as for anybody without privilege: the
  // kernel's own answer, EINVAL, makes patch(1) and others give up a file whose group is not mapped. 32 bits; -1: the kernel
  // answers.
  std::uint32_t only_uid = ~0U, only_gid = ~0U;
  FileCalls file_calls = FileCalls::kDirect;
  LocalPorts local_ports = LocalPorts::kOpen;
  // Acts that nobody does by chance (mount, bpf, kernel keys, AF_PACKET, set-id modes ...) are refused by way of a notification, so
  // that they can be told: whoever answers it gives the errno of refusal_of(). Needs a listener. Calls that programs only try to
  // see whether a kernel has them (io_uring, MPTCP, new and obsolete numbers) are refused in silence as without it. A call of a
  // foreign ABI is notified as well: whoever answers kills its process.
  bool tell_refusals = false;
  // `belljar learn`: every open, every call that names files and every look (stat, access, readlink) is notified, to be seen and
  // then to go on, or to be performed as file_calls says. Refuses and allows what it would without. Not chdir and exec: init makes
  // them for the first command, before anybody answers.
  bool observe = false;
  bool operator==(const SeccompSpec&) const = default;
};

// What happens to one call.
struct Verdict {
  enum class Kind : std::uint8_t { kAllow, kErrno, kNotify, kKillProcess, kBadProgram };
  Kind kind = Kind::kAllow;
  std::uint16_t errnum = 0;  // kErrno
  bool operator==(const Verdict&) const = default;
};

// The model's answer. `data.arch` is an AUDIT_ARCH_*.
Verdict judge(const SeccompSpec& spec, const seccomp_data& data) noexcept;

// Another ABI than this machine's own (i386, x32), whose numbers mean other calls.
bool is_foreign(std::uint32_t arch, std::uint32_t number) noexcept;
// What becomes of its calls.
Verdict foreign_verdict(const SeccompSpec& spec) noexcept;

// Whether `spec`, told or not, refuses the call, with which errno and why (docs/design/seccomp.md has the whys). `args` are the
// caller's registers: what is behind pointers does not count.
struct CallRefusal {
  int errnum = 0;  // 0: it is not refused
  std::string_view why;
};
CallRefusal refusal_of(const SeccompSpec& spec, std::uint32_t number, std::span<const std::uint64_t, 6> args) noexcept;

// The program for `spec`. A few microseconds; never longer than 4096 instructions (BPF_MAXINSNS), about 240 in practice.
std::vector<sock_filter> build_filter(const SeccompSpec& spec);

// Runs a classic BPF program as seccomp(2) does. kBadProgram for what the kernel would refuse to load.
Verdict evaluate(std::span<const sock_filter> program, const seccomp_data& data) noexcept;

// seccomp(SECCOMP_SET_MODE_FILTER, flags, program). Returns 0, or with SECCOMP_FILTER_FLAG_NEW_LISTENER the notification
// descriptor, or -errno. Needs no_new_privs or CAP_SYS_ADMIN. Allocates nothing: fit for the code between clone3 and execve. After
// it clone3 answers ENOSYS to the caller too.
int install_filter(const sock_fprog& program, unsigned flags) noexcept;

// One refused group under a spec, for the enforcement report and the docs.
struct Refusal {
  std::string_view group;   // "kernel keyrings"
  std::string_view answer;  // "ENOSYS", "notify", "by argument"
  std::string_view why;     // the reason with its source
};
std::vector<Refusal> describe(const SeccompSpec& spec);

// "openat" for a number of the native ABI; empty when the table does not hold it.
std::string_view call_name(std::uint32_t number) noexcept;

}  // namespace belljar::kernel
