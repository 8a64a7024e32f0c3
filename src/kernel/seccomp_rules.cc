// What each group of system calls answers under a spec, and `judge`, which reads those rules.
//
// The kernel looks at 32 bits of these arguments (socket(2)'s ints, mode_t, the ioctl number), so the rules do too: a rule that
// compared all 64 bits was walked around with a bit above them (CVE-2019-10063, CVE-2019-7303).
#include <fcntl.h>
#include <linux/prctl.h>
#include <netinet/in.h>  // IWYU pragma: keep (clang-tidy looks for the IPPROTO_ macros in linux/in.h)
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>

#include "kernel/seccomp.h"
#include "kernel/seccomp_table.h"

namespace belljar::kernel {
namespace {

constexpr Verdict kAllow{Verdict::Kind::kAllow, 0};
constexpr Verdict kNotify{Verdict::Kind::kNotify, 0};
constexpr Verdict kKill{Verdict::Kind::kKillProcess, 0};

constexpr Verdict refuse(int errnum) { return {Verdict::Kind::kErrno, static_cast<std::uint16_t>(errnum)}; }

constexpr Condition is(std::uint8_t arg, std::uint32_t value, std::uint32_t mask = 0xffffffffU) {
  return {arg, false, true, mask, value};
}
constexpr Condition has_any(std::uint8_t arg, std::uint32_t bits) { return {arg, false, false, bits, 0}; }
constexpr Condition high_is_not(std::uint8_t arg, std::uint32_t value) { return {arg, true, false, 0xffffffffU, value}; }

// Writes like the sentence it is: Rules(otherwise).when(a, b, verdict).
class Rules {
 public:
  explicit Rules(Verdict otherwise) { rule_.otherwise = otherwise; }
  Rules& when(Condition a, Verdict verdict) { return add({{a, {}}, 1, verdict}); }
  Rules& when(Condition a, Condition b, Verdict verdict) { return add({{a, b}, 2, verdict}); }
  operator Rule() const { return rule_; }  // NOLINT(google-explicit-constructor)

 private:
  Rules& add(const Clause& clause) {
    rule_.clauses.at(rule_.count++) = clause;
    return *this;
  }
  Rule rule_;
};

// umode_t is 16 bits wide, so the bits above them cannot matter. sys/stat.h has these as int.
constexpr std::uint32_t kSetIdBits = S_ISUID | S_ISGID;
// The mode of an open counts only when it creates: without these flags the register may hold anything.
constexpr std::uint32_t kCreates = O_CREAT | (O_TMPFILE & ~O_DIRECTORY);

// Flags that make an open more than reading. __O_TMPFILE without O_DIRECTORY is EINVAL, which is the broker's to say too.
constexpr std::uint32_t kWrites = O_WRONLY | O_RDWR | O_TRUNC | kCreates;

constexpr bool performed(const SeccompSpec& spec) { return spec.file_calls != FileCalls::kDirect; }
constexpr bool writes_performed(const SeccompSpec& spec) { return spec.file_calls >= FileCalls::kWrites; }
constexpr Verdict linked(const SeccompSpec& spec) { return performed(spec) || spec.observe ? kNotify : kAllow; }
constexpr Verdict brokered(const SeccompSpec& spec) { return writes_performed(spec) || spec.observe ? kNotify : kAllow; }
constexpr Verdict observed(const SeccompSpec& spec) { return spec.observe ? kNotify : kAllow; }

Rule flat(Verdict verdict) { return Rules(verdict); }

Rule open_rule(const SeccompSpec& spec, std::uint8_t flags) {
  Rules rules(spec.file_calls == FileCalls::kAll || spec.observe ? kNotify : kAllow);
  if (spec.deny_setid_bits) {
    rules.when(has_any(flags, kCreates), has_any(static_cast<std::uint8_t>(flags + 1), kSetIdBits), refuse(EPERM));
  }
  // With O_PATH the kernel drops all flags that read, write or create (build_open_how), so nothing is to be judged. Such a
  // descriptor could not be given to the caller anyway (SECCOMP_IOCTL_NOTIF_ADDFD).
  if (writes_performed(spec)) rules.when(has_any(flags, O_PATH), kAllow);
  if (spec.file_calls == FileCalls::kWrites) rules.when(has_any(flags, kWrites), kNotify);
  if (spec.file_calls == FileCalls::kDirectories) rules.when(has_any(flags, kWrites | O_DIRECTORY), kNotify);
  return rules;
}

Rule mode_rule(const SeccompSpec& spec, std::uint8_t mode, Verdict otherwise) {
  Rules rules(otherwise);
  if (spec.deny_setid_bits) rules.when(has_any(mode, kSetIdBits), refuse(EPERM));
  return rules;
}

// Of a directory S_ISGID says whose group new files get, and only the broker can tell one from a file. S_ISUID means nothing there.
Rule change_mode_rule(const SeccompSpec& spec, std::uint8_t mode, Verdict otherwise) {
  if (!performed(spec) || !spec.deny_setid_bits) return mode_rule(spec, mode, otherwise);
  return Rules(otherwise).when(has_any(mode, S_ISUID), refuse(EPERM)).when(has_any(mode, S_ISGID), kNotify);
}

// S_IFCHR and S_IFBLK share the bit 0020000 with S_IFLNK only, which mknod does not take.
Rule node_rule(const SeccompSpec& spec, std::uint8_t mode) {
  return Rules(linked(spec)).when(has_any(mode, S_IFCHR | (spec.deny_setid_bits ? kSetIdBits : 0)), refuse(EPERM));
}

// The broker sees the mode of openat2 and refuses set-id bits itself.
Rule open_how_rule(const SeccompSpec& spec) {
  if (writes_performed(spec)) return Rules(kNotify);
  return Rules(spec.deny_setid_bits ? refuse(ENOSYS) : kAllow);
}

Rule close_rule(const SeccompSpec& spec) {
  static_assert(kStagedFdFirst % kStagedFdCount == 0 && (kStagedFdCount & (kStagedFdCount - 1)) == 0);
  Rules rules(kAllow);
  if (writes_performed(spec)) rules.when(is(0, kStagedFdFirst, ~(kStagedFdCount - 1)), kNotify);
  return rules;
}

// TIOCSTI types into the terminal, TIOCLINUX pastes into a console, TIOCSETD loads line disciplines (n_hdlc, n_gsm exploits).
constexpr std::uint32_t kTioclinux = 0x541c;  // asm-generic/ioctls.h; ioctl_console(2)

// A snapshot of a prepared subvolume brings any name with any content; linux/btrfs.h, by number so that sizes do not matter, and
// bcachefs_ioctl.h. Type and number are the low 16 bits of a request.
constexpr std::uint32_t kIoctlOf = 0xffff;
constexpr std::uint32_t kSubvolumeCalls[] = {
    0x9401, 0x940e, 0x940f, 0x9417, 0x9418, 0x943f,  // btrfs: SNAP_CREATE, SUBVOL_CREATE, SNAP_DESTROY, their second versions
    0xbc10, 0xbc11,                                  // bcachefs: SUBVOLUME_CREATE, SUBVOLUME_DESTROY
};

// The keys of encrypted directories hang on their file system, outside of every namespace: who takes the user's away locks them,
// and what is put there stays. linux/fscrypt.h: ADD_ENCRYPTION_KEY, REMOVE_ENCRYPTION_KEY, its ALL_USERS.
constexpr std::uint32_t kFileSystemKeyCalls[] = {0x6617, 0x6618, 0x6619};

// What a descriptor that only reads can change of its owner's file. SETFLAGS, FSSETXATTR, SETVERSION in both forms, ENABLE_VERITY
// (never to be written again), SET_ENCRYPTION_POLICY (of an empty directory).
// Of btrfs SUBVOL_SETFLAGS and SET_RECEIVED_SUBVOL, of FAT SET_ATTRIBUTES.
constexpr std::uint32_t kInodeCalls[] = {0x6602, 0x5820, 0x7602, 0x6604, 0x6685, 0x6613, 0x941a, 0x9425, 0x7211};

Rule ioctl_rule(const SeccompSpec& spec) {
  Rules rules(kAllow);
  rules.when(is(1, TIOCSTI), refuse(EPERM)).when(is(1, kTioclinux), refuse(EPERM)).when(is(1, TIOCSETD), refuse(EPERM));
  for (const std::uint32_t call : kSubvolumeCalls) rules.when(is(1, call, kIoctlOf), refuse(EPERM));
  for (const std::uint32_t call : kFileSystemKeyCalls) rules.when(is(1, call, kIoctlOf), refuse(EPERM));
  if (spec.own_mounts) return rules;
  for (const std::uint32_t call : kInodeCalls) rules.when(is(1, call, kIoctlOf), refuse(EPERM));
  return rules;
}

constexpr std::uint32_t kTypeMask = 0xf;  // SOCK_TYPE_MASK; above it are SOCK_CLOEXEC and SOCK_NONBLOCK

// What the kernel says first. By number: a flag of a later kernel is refused as well.
void refuse_unknown_flags(Rules& rules) {
  rules.when(has_any(1, ~(kTypeMask | std::uint32_t{SOCK_CLOEXEC} | std::uint32_t{SOCK_NONBLOCK})), refuse(EINVAL));
}

// `datagrams`: what SOCK_DGRAM and SOCK_RAW, which is the same here, come to.
void add_unix_types(Rules& rules, Verdict datagrams) {
  // One masked compare stands for two types.
  static_assert((SOCK_STREAM | 4) == SOCK_SEQPACKET && (SOCK_DGRAM | 1) == SOCK_RAW);
  rules.when(is(0, AF_UNIX), is(1, SOCK_STREAM, kTypeMask & ~4U), kAllow)
      .when(is(0, AF_UNIX), is(1, SOCK_DGRAM, kTypeMask & ~1U), datagrams)
      .when(is(0, AF_UNIX), refuse(ESOCKTNOSUPPORT));
}

constexpr bool has_all_types(UnixSockets sockets) { return sockets == UnixSockets::kAll || sockets == UnixSockets::kAnyJudged; }

// Other families are refused here, other protocols by the rule's last word. Raw sockets as of who has no CAP_NET_RAW.
void add_inet_types(Rules& rules) {
  static_assert((AF_INET | 8) == AF_INET6 && (AF_INET & 8) == 0);  // so one masked compare stands for both
  rules.when({0, false, false, ~8U, AF_INET}, refuse(EAFNOSUPPORT));
  rules.when(is(1, SOCK_RAW, kTypeMask), is(2, 0), refuse(EPROTONOSUPPORT)).when(is(1, SOCK_RAW, kTypeMask), refuse(EPERM));
  rules.when({1, false, false, kTypeMask, SOCK_STREAM}, {1, false, false, kTypeMask, SOCK_DGRAM}, refuse(ESOCKTNOSUPPORT));
  constexpr std::uint32_t kProtocols[] = {0, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_ICMPV6};
  for (const std::uint32_t protocol : kProtocols) rules.when(is(2, protocol), kAllow);
}

// What the kernel says where they are missing: families EAFNOSUPPORT, types ESOCKTNOSUPPORT, protocols EPROTONOSUPPORT. EACCES for
// AF_UNIX datagrams, which no kernel lacks.
//
// Within INET: no SOCK_RAW, no SOCK_PACKET (the kernel turns it into AF_PACKET), no SCTP, DCCP or L2TP, no MPTCP (Go's listeners
// ask for it and fall back). ICMP datagrams are ping sockets, gated by net.ipv4.ping_group_range. A protocol that does not fit its
// type is the kernel's to refuse.
Rule socket_rule(const SeccompSpec& spec) {
  Rules rules(refuse(spec.allow_inet ? EPROTONOSUPPORT : EAFNOSUPPORT));
  refuse_unknown_flags(rules);
  if (spec.allow_netlink_route) {
    rules.when(is(0, AF_NETLINK), is(2, 0 /* NETLINK_ROUTE */), kAllow).when(is(0, AF_NETLINK), refuse(EPROTONOSUPPORT));
  }
  // From here on as socketpair_rule: where refusals are told the two share the rest of the program.
  if (has_all_types(spec.unix_sockets)) rules.when(is(0, AF_UNIX), kAllow);
  else if (spec.unix_sockets != UnixSockets::kPairs) add_unix_types(rules, refuse(EACCES));
  if (spec.allow_inet) add_inet_types(rules);
  return rules;
}

// The kernel makes no pair of INET, and knows best why not: EOPNOTSUPP, or what it would say of such a socket.
Rule socketpair_rule(const SeccompSpec& spec) {
  Rules rules(refuse(spec.allow_inet ? EPROTONOSUPPORT : EAFNOSUPPORT));
  refuse_unknown_flags(rules);
  if (has_all_types(spec.unix_sockets)) rules.when(is(0, AF_UNIX), kAllow);
  else add_unix_types(rules, spec.unix_sockets == UnixSockets::kBrokered ? kNotify : refuse(EACCES));
  if (spec.allow_inet) add_inet_types(rules);
  return rules;
}

// CLONE_NEWTIME shares its bit with clone's exit signal: only unshare and clone3 can ask for it (clone(2)).
constexpr std::uint32_t kNewNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

Rule clone_rule(const SeccompSpec& spec) {
  Rules rules(kAllow);
  if (!spec.allow_nested_userns) rules.when(has_any(0, kNewNamespaces), refuse(EPERM));
  return rules;
}

// unshare takes an unsigned long, and a future kernel may give its other bits a meaning: only those without a namespace pass.
Rule unshare_rule(const SeccompSpec& spec) {
  Rules rules(kAllow);
  if (spec.allow_nested_userns) return rules;
  constexpr std::uint32_t kHarmless = CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_VM | CLONE_THREAD | CLONE_SIGHAND;
  return rules.when(has_any(0, ~kHarmless), refuse(EPERM)).when(high_is_not(0, 0), refuse(EPERM));
}

// 0xffffffff asks. ADDR_NO_RANDOMIZE takes randomness from the caller's own children only, no set-id program can start here, and
// gdb and ThreadSanitizer need it.
Rule personality_rule() {
  Rules rules(refuse(EPERM));
  return rules.when(is(0, 0), kAllow).when(is(0, 0xffffffffU), kAllow).when(is(0, ADDR_NO_RANDOMIZE), kAllow);
}

// chown(2): -1 leaves the one or the other as it is.
Rule owner_rule(const SeccompSpec& spec, std::uint8_t owner) {
  constexpr std::uint32_t kKeep = ~0U;
  if (spec.allow_nested_userns || (spec.only_uid == kKeep && spec.only_gid == kKeep)) return flat(kAllow);
  const auto group = static_cast<std::uint8_t>(owner + 1);
  Rules rules(refuse(EPERM));
  for (const std::uint32_t uid : {kKeep, spec.only_uid}) {
    for (const std::uint32_t gid : {kKeep, spec.only_gid}) rules.when(is(owner, uid), is(group, gid), kAllow);
  }
  return rules;
}

// Level and name are ints.
Rule socket_option_rule(const SeccompSpec& spec) {
  Rules rules(kAllow);
  if (!judges_connects(spec.unix_sockets)) return rules;
  return rules.when(is(1, SOL_SOCKET), is(2, SO_PEERCRED), kNotify).when(is(1, SOL_SOCKET), is(2, kPeerPidfd), kNotify);
}

Rule listen_rule(const SeccompSpec& spec) {
  if (spec.local_ports == LocalPorts::kRefused) return flat(refuse(EACCES));
  const bool seen = spec.unix_sockets == UnixSockets::kBrokered || spec.local_ports == LocalPorts::kJudged;
  return flat(seen ? kNotify : kAllow);
}

Rule only_self_rule() { return Rules(refuse(EPERM)).when(is(0, 0), kAllow); }

// Init has the command's ids, which is all that the kernel asks for: with limits of one descriptor and no process it would start no
// command any more, and one second of CPU time would end it with all inside. In a namespace of the command's own 1 is another.
Rule prlimit_rule(const SeccompSpec& spec) {
  if (!spec.own_pid_namespace) return only_self_rule();
  Rules rules(kAllow);
  if (!spec.allow_nested_userns) rules.when(is(0, 1), refuse(EPERM));
  return rules;
}

Rule granted_or(bool granted, int errnum) { return flat(granted ? kAllow : refuse(errnum)); }

Rule conditional_rule(const SeccompSpec& spec, Group group) {
  switch (group) {
    case Group::kIpc:
      return granted_or(spec.allow_ipc, ENOSYS);
    case Group::kOpenMode1:
      return open_rule(spec, 1);
    case Group::kOpenMode2:
      return open_rule(spec, 2);
    case Group::kMode1:
      return change_mode_rule(spec, 1, writes_performed(spec) && !spec.own_mounts ? kNotify : kAllow);
    case Group::kPathMode1:
      return change_mode_rule(spec, 1, brokered(spec));
    case Group::kPathMode2:
      return change_mode_rule(spec, 2, brokered(spec));
    case Group::kOwner1:
      return owner_rule(spec, 1);
    case Group::kOwner2:
      return owner_rule(spec, 2);
    case Group::kCreat:
      return mode_rule(spec, 1, brokered(spec));
    case Group::kNames:
      return flat(brokered(spec));
    case Group::kLinks:
      return flat(linked(spec));
    case Group::kUmask:
      return flat(performed(spec) ? kNotify : kAllow);
    case Group::kPathQueries:
      return flat(observed(spec));
    case Group::kClose:
      return close_rule(spec);
    case Group::kLandlockSelf:
      return flat(performed(spec) ? refuse(EOPNOTSUPP) : kAllow);
    case Group::kNode1:
      return node_rule(spec, 1);
    case Group::kNode2:
      return node_rule(spec, 2);
    case Group::kOpenHow:
      return open_how_rule(spec);
    case Group::kIoctl:
      return ioctl_rule(spec);
    case Group::kSocket:
      return socket_rule(spec);
    case Group::kSocketpair:
      return socketpair_rule(spec);
    case Group::kConnect:
      return flat(judges_connects(spec.unix_sockets) ? kNotify : kAllow);
    case Group::kListen:
      return listen_rule(spec);
    case Group::kBind:
      return flat(performed(spec) || spec.local_ports == LocalPorts::kJudged ? kNotify : kAllow);
    case Group::kSocketName:
      return flat(performed(spec) ? kNotify : kAllow);
    case Group::kSocketOption:
      return socket_option_rule(spec);
    case Group::kClone:
      return clone_rule(spec);
    case Group::kClone3:
      return granted_or(spec.allow_nested_userns, ENOSYS);
    case Group::kUnshare:
      return unshare_rule(spec);
    case Group::kPrctl:
      return Rules(kAllow).when(is(0, PR_SET_MM), refuse(EPERM));
    case Group::kPersonality:
      return personality_rule();
    case Group::kMovePages:
      return only_self_rule();
    case Group::kPrlimit:
      return prlimit_rule(spec);
    default:
      return flat(refuse(ENOSYS));
  }
}

// ENOSYS where callers have a way around an older kernel, EPERM where they know that answer from being unprivileged.
Rule refused_rule(const SeccompSpec& spec, Group group) {
  switch (group) {
    case Group::kMount:
    case Group::kSetns:
    case Group::kHostName:
    case Group::kPidfdGetfd:
      return granted_or(spec.allow_nested_userns, EPERM);
    case Group::kNewMount:
      return granted_or(spec.allow_nested_userns, ENOSYS);
    case Group::kIoUring:
    case Group::kKeyring:
    case Group::kMemfdSecret:
    case Group::kNewSurface:
    case Group::kObsolete:
      return flat(refuse(ENOSYS));
    default:
      return flat(refuse(EPERM));
  }
}

// Which refusals are worth telling: what is done on purpose. Not what programs try only to see whether this kernel has it, because
// a report full of that would be read by nobody.
bool is_told(Group group, int errnum) noexcept {
  switch (group) {
    case Group::kIoUring:
    case Group::kMemfdSecret:
    case Group::kNewSurface:
    case Group::kObsolete:
    case Group::kUnknown:
    case Group::kIpc:
    case Group::kClone3:
    case Group::kOpenHow:
    case Group::kPrctl:
    case Group::kOwner1:
    case Group::kOwner2:
    case Group::kKcmp:  // Mesa and Wine ask whether two descriptors are one
      return false;
    case Group::kSocket:  // Go asks for MPTCP, udev and PAM for their netlink families
    case Group::kSocketpair:
      return errnum != EPROTONOSUPPORT && errnum != ESOCKTNOSUPPORT && errnum != EINVAL;
    default:
      return errnum != EOPNOTSUPP;
  }
}

Rule told(Group group, Rule rule) noexcept {
  const auto tell = [group](Verdict& verdict) {
    if (verdict.kind == Verdict::Kind::kErrno && is_told(group, verdict.errnum)) verdict = kNotify;
  };
  for (Clause& clause : std::span(rule.clauses).first(rule.count)) tell(clause.verdict);
  tell(rule.otherwise);
  return rule;
}

bool holds(const Condition& condition, const seccomp_data& data) noexcept {
  const std::uint64_t argument = data.args[condition.arg];
  const auto word = static_cast<std::uint32_t>(condition.high ? argument >> 32 : argument);
  return ((word & condition.mask) == condition.value) == condition.equal;
}

Verdict decide(const Rule& rule, const seccomp_data& data) noexcept {
  for (const Clause& clause : rule.list()) {
    const auto conditions = std::span(clause.conditions).first(clause.count);
    if (std::ranges::all_of(conditions, [&](const Condition& c) { return holds(c, data); })) return clause.verdict;
  }
  return rule.otherwise;
}

}  // namespace

bool Rule::operator==(const Rule& other) const noexcept {
  return otherwise == other.otherwise && std::ranges::equal(list(), other.list());
}

Rule rule_for(const SeccompSpec& spec, Group group) noexcept {
  if (group == Group::kUnknown) return flat(refuse(ENOSYS));
  if (group < kFirstConditional) return flat(kAllow);
  const Rule rule = group < kFirstRefused ? conditional_rule(spec, group) : refused_rule(spec, group);
  return spec.tell_refusals ? told(group, rule) : rule;
}

bool is_foreign(std::uint32_t arch, std::uint32_t number) noexcept {
  return arch != kNativeArch || (kHasX32 && number >= kX32Bit && number != kSkippedCall);
}

Verdict foreign_verdict(const SeccompSpec& spec) noexcept { return spec.tell_refusals ? kNotify : kKill; }

Verdict judge(const SeccompSpec& spec, const seccomp_data& data) noexcept {
  const auto number = static_cast<std::uint32_t>(data.nr);
  if (is_foreign(data.arch, number)) return foreign_verdict(spec);
  return decide(rule_for(spec, group_of(number)), data);
}

CallRefusal refusal_of(const SeccompSpec& spec, std::uint32_t number, std::span<const std::uint64_t, 6> args) noexcept {
  SeccompSpec silent = spec;
  silent.tell_refusals = false;
  seccomp_data data{};
  data.nr = static_cast<int>(number);
  data.arch = kNativeArch;
  std::ranges::copy(args, data.args);
  const Verdict verdict = judge(silent, data);
  if (verdict.kind != Verdict::Kind::kErrno) return {};
  return {verdict.errnum, info(group_of(number)).why};
}

}  // namespace belljar::kernel
