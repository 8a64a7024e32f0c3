// The model and the filter made from it answer the same, for every spec, number and argument worth trying.
#include "kernel/seccomp.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/format.h"
#include "kernel/seccomp_table.h"

namespace belljar::kernel {
namespace {

std::vector<SeccompSpec> all_specs() {
  std::vector<SeccompSpec> specs;
  for (unsigned bits = 0; bits < 5U * 256U; ++bits) {
    specs.push_back({.unix_sockets = static_cast<UnixSockets>(bits & 3U),
                     .allow_inet = (bits & 4U) != 0,
                     .allow_netlink_route = (bits & 8U) != 0,
                     .allow_ipc = (bits & 16U) != 0,
                     .own_pid_namespace = (bits & 32U) != 0,
                     .own_mounts = bits % 5 != 0,
                     .allow_nested_userns = (bits & 64U) != 0,
                     .deny_setid_bits = (bits & 128U) != 0,
                     .only_uid = bits % 3 == 0 ? 1000 : ~0U,
                     .only_gid = bits % 3 == 0 ? 100 : ~0U,
                     .file_calls = static_cast<FileCalls>(bits >> 8U)});
  }
  const std::size_t silent = specs.size();
  for (std::size_t i = 0; i < silent; i += 7) {  // enough of them, in all mixtures
    specs.push_back(specs[i]);
    specs.back().tell_refusals = true;
    specs.push_back(specs.back());
    specs.back().observe = true;
  }
  for (const UnixSockets sockets :
       {UnixSockets::kPairs, UnixSockets::kBrokered, UnixSockets::kStream, UnixSockets::kAnyJudged, UnixSockets::kAll}) {
    for (const LocalPorts ports : {LocalPorts::kJudged, LocalPorts::kRefused})
      specs.push_back({.unix_sockets = sockets, .local_ports = ports, .tell_refusals = ports == LocalPorts::kJudged});
  }
  return specs;
}

seccomp_data call(std::uint32_t number, std::uint64_t a0 = 0, std::uint64_t a1 = 0, std::uint64_t a2 = 0, std::uint64_t a3 = 0) {
  seccomp_data data{};
  data.nr = static_cast<int>(number);
  data.arch = kNativeArch;
  data.args[0] = a0;
  data.args[1] = a1;
  data.args[2] = a2;
  data.args[3] = a3;
  return data;
}

std::string text(const Verdict& verdict) {
  const auto kind = static_cast<int>(verdict.kind);
  return format("{}", verdict.kind == Verdict::Kind::kErrno ? -static_cast<int>(verdict.errnum) : kind);
}

void expect_agreement(const SeccompSpec& spec, const std::vector<sock_filter>& filter, const seccomp_data& data) {
  const Verdict model = judge(spec, data);
  const Verdict program = evaluate(filter, data);
  ASSERT_EQ(model, program) << "model " << text(model) << ", filter " << text(program)
                            << format("; nr {} arch {:#x} args {:#x} {:#x} {:#x} {:#x}", data.nr, data.arch, data.args[0],
                                      data.args[1], data.args[2], data.args[3]);
}

// Every value the rule of a group compares with, its neighbours and its mask; none for a group no spec has a rule for.
void add_edges(Group group, std::set<std::uint32_t>& low) {
  for (const SeccompSpec& spec : all_specs()) {
    const Rule rule = rule_for(spec, group);
    for (const Clause& clause : rule.list()) {
      for (std::size_t c = 0; c < clause.count; ++c) {
        const Condition& k = clause.conditions[c];
        low.insert({k.value, k.value - 1, k.value + 1, k.mask, ~k.mask, k.value | ~k.mask, k.mask & (0 - k.mask)});
      }
    }
  }
}

// The values, and the same with bits above the 32 the kernel reads.
std::vector<std::uint64_t> widened(const std::set<std::uint32_t>& low) {
  std::vector<std::uint64_t> values;
  for (const std::uint32_t value : low) {
    values.push_back(value);
    values.push_back(value | 0x100000000ULL);
    values.push_back(value | 0xffffffff00000000ULL);
  }
  return values;
}

std::set<std::uint32_t> common_edges() { return {0, 1, AF_NETLINK, 0x80801, 0x7fffffff, 0xffffffff}; }

TEST(SeccompModel, FilterAgreesOnEveryNumberUnderEverySpec) {
  for (const SeccompSpec& spec : all_specs()) {
    const std::vector<sock_filter> filter = build_filter(spec);
    for (std::uint32_t number = 0; number < 1024; ++number) {
      expect_agreement(spec, filter, call(number));
      expect_agreement(spec, filter, call(number, ~0ULL, ~0ULL, ~0ULL, ~0ULL));
      expect_agreement(spec, filter, call(number | kX32Bit));
      if (HasFatalFailure()) return;
    }
    for (const std::uint32_t number : {0x3fffffffU, 0x40000000U, 0x7fffffffU, 0x80000000U, 0xfffffffeU, 0xffffffffU}) {
      expect_agreement(spec, filter, call(number));
    }
  }
}

// Six specs that switch each of the few rules in which specs differ both ways.
std::vector<SeccompSpec> switching_specs() {
  const std::vector<SeccompSpec> all = all_specs();
  return {all[0b10000000U], all[0b11111101U], all[0b00000110U], all[0b10111111U], all[0b110000110U], all[0b1000000110U]};
}

void expect_agreement_around(const SeccompSpec& spec, const std::vector<sock_filter>& filter, std::uint32_t number, std::uint64_t a,
                             std::uint64_t b) {
  expect_agreement(spec, filter, call(number, a, b, a, b));
  expect_agreement(spec, filter, call(number, AF_INET, a, b, a));
  expect_agreement(spec, filter, call(number, AF_UNIX, a, b, a));
  expect_agreement(spec, filter, call(number, AF_NETLINK, a, b, a));
}

// A rule reads its own values: those in all pairs.
TEST(SeccompModel, FilterAgreesOnEveryPairOfEdgesOfARule) {
  std::map<Group, std::vector<std::uint64_t>> edges_of;
  const std::vector<SeccompSpec> specs = switching_specs();
  for (const Call& known : calls()) {
    if (known.group < kFirstConditional || known.group >= kFirstRefused) continue;
    std::vector<std::uint64_t>& edges = edges_of[known.group];
    if (edges.empty()) {
      std::set<std::uint32_t> low = common_edges();
      add_edges(known.group, low);
      edges = widened(low);
    }
    for (const SeccompSpec& spec : specs) {
      const std::vector<sock_filter> filter = build_filter(spec);
      for (const std::uint64_t a : edges) {
        for (const std::uint64_t b : edges) expect_agreement_around(spec, filter, known.number, a, b);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// And a jump into another rule's comparisons would show in their values: those one at a time.
TEST(SeccompModel, FilterAgreesOnTheEdgesOfOtherRules) {
  std::set<std::uint32_t> low = common_edges();
  for (std::size_t g = 0; g < static_cast<std::size_t>(Group::kCount); ++g) add_edges(static_cast<Group>(g), low);
  const std::vector<std::uint64_t> edges = widened(low);
  for (const SeccompSpec& spec : switching_specs()) {
    const std::vector<sock_filter> filter = build_filter(spec);
    for (const Call& known : calls()) {
      for (const std::uint64_t edge : edges) {
        for (const std::uint64_t other : {std::uint64_t{0}, std::uint64_t{1}, edge, ~edge})
          expect_agreement_around(spec, filter, known.number, edge, other);
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST(SeccompModel, ForeignArchitecturesAreKilledWhateverTheNumber) {
  for (const SeccompSpec& spec : {SeccompSpec{}, SeccompSpec{.allow_nested_userns = true, .deny_setid_bits = false}}) {
    const std::vector<sock_filter> filter = build_filter(spec);
    for (const std::uint32_t arch : {0x40000003U /* i386 */, 0x40000028U /* arm */, 0U, 0xffffffffU, kNativeArch ^ 0x40000000U}) {
      for (std::uint32_t number = 0; number < 600; ++number) {
        seccomp_data data = call(number);
        data.arch = arch;
        EXPECT_EQ(judge(spec, data).kind, Verdict::Kind::kKillProcess);
        expect_agreement(spec, filter, data);
      }
    }
  }
}

TEST(SeccompFilter, EveryInstructionIsReachableAndEveryProgramIsShort) {
  for (const SeccompSpec& spec : all_specs()) {
    const std::vector<sock_filter> filter = build_filter(spec);
    EXPECT_LE(filter.size(), spec.own_mounts ? 380U : 405U);  // without mounts the flags of inodes are the filter's to hold
    std::vector<bool> reached(filter.size());
    reached[0] = true;
    for (std::size_t pc = 0; pc < filter.size(); ++pc) {
      if (!reached[pc]) ADD_FAILURE() << "instruction " << pc << " is dead";
      const sock_filter& op = filter[pc];
      if (BPF_CLASS(op.code) == BPF_RET) continue;
      const bool jumps = BPF_CLASS(op.code) == BPF_JMP;
      if (jumps && BPF_OP(op.code) == BPF_JA) {
        reached.at(pc + 1 + op.k) = true;
      } else {
        reached.at(pc + 1 + (jumps ? op.jt : 0U)) = true;
        reached.at(pc + 1 + (jumps ? op.jf : 0U)) = true;
      }
    }
  }
}

TEST(SeccompEvaluator, RefusesWhatTheKernelWouldNotLoad) {
  const seccomp_data data = call(0);
  const auto bad = Verdict::Kind::kBadProgram;
  EXPECT_EQ(evaluate({}, data).kind, bad);
  const sock_filter unaligned[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 2}, {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  EXPECT_EQ(evaluate(unaligned, data).kind, bad);
  const sock_filter beyond[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, sizeof data}, {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  EXPECT_EQ(evaluate(beyond, data).kind, bad);
  const sock_filter endless[] = {{BPF_JMP | BPF_JA, 0, 0, 5}, {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  EXPECT_EQ(evaluate(endless, data).kind, bad);
  const sock_filter fine[] = {{BPF_JMP | BPF_JA, 0, 0, 0}, {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  EXPECT_EQ(evaluate(fine, data).kind, Verdict::Kind::kAllow);
}

TEST(SeccompDescribe, NamesAnAnswerAndAReasonForEachRefusedGroup) {
  std::map<std::string, std::string> answers;
  for (const Refusal& refusal : describe({.unix_sockets = UnixSockets::kBrokered})) {
    EXPECT_GT(refusal.why.size(), 10U) << refusal.group;
    answers[std::string(refusal.group)] = refusal.answer;
  }
  EXPECT_EQ(answers["io_uring"], "ENOSYS");
  EXPECT_EQ(answers["mounts"], "EPERM");
  EXPECT_EQ(answers["connect"], "notify");
  EXPECT_EQ(answers["socket families"], "by argument");
  for (const Refusal& refusal : describe({.allow_nested_userns = true})) EXPECT_NE(refusal.group, "mounts");
}

// Telling changes who says no, never what is refused: for every call the teller's answer is the silent filter's.
TEST(SeccompModel, ToldRefusalsAreTheSilentOnes) {
  const SeccompSpec silent{.unix_sockets = UnixSockets::kStream}, told{.unix_sockets = UnixSockets::kStream, .tell_refusals = true};
  const std::uint64_t values[] = {0, 1, 2, 3, 10, 16, 17, 38, 40, 04755, 0x5412, 0x10000000, ~0ULL};
  std::size_t notified = 0;
  for (std::uint32_t number = 0; number < kNumbers; ++number) {
    for (const std::uint64_t a : values) {
      for (const std::uint64_t b : values) {
        const seccomp_data data = call(number, a, b, b, b);
        const Verdict before = judge(silent, data), after = judge(told, data);
        const std::array<std::uint64_t, 6> registers{a, b, b, b, 0, 0};
        const CallRefusal refusal = refusal_of(told, number, registers);
        ASSERT_EQ(refusal.errnum, before.kind == Verdict::Kind::kErrno ? before.errnum : 0) << number;
        if (before == after) continue;
        ASSERT_EQ(before.kind, Verdict::Kind::kErrno) << number;
        ASSERT_EQ(after.kind, Verdict::Kind::kNotify) << number;
        ++notified;
      }
    }
  }
  EXPECT_GT(notified, 0U);
}

TEST(SeccompModel, OnlyActsDoneOnPurposeAreTold) {
  const SeccompSpec told{.unix_sockets = UnixSockets::kBrokered, .tell_refusals = true};
  const auto kind = [&](const seccomp_data& data) { return judge(told, data).kind; };
  using enum Verdict::Kind;
  for (const auto number :
       {SYS_mount, SYS_setns, SYS_bpf, SYS_keyctl, SYS_perf_event_open, SYS_userfaultfd, SYS_reboot, SYS_init_module})
    EXPECT_EQ(kind(call(static_cast<std::uint32_t>(number))), kNotify) << number;
  EXPECT_EQ(kind(call(SYS_socket, AF_PACKET, SOCK_RAW)), kNotify);
  EXPECT_EQ(kind(call(SYS_socket, AF_UNIX, SOCK_DGRAM)), kNotify);
  EXPECT_EQ(kind(call(SYS_unshare, 0x10000000)), kNotify);
  EXPECT_EQ(kind(call(SYS_socket, AF_INET, SOCK_STREAM, 262 /* IPPROTO_MPTCP */)), kErrno);
  for (const auto number : {SYS_io_uring_setup, SYS_clone3, SYS_openat2, SYS_memfd_secret, 500})
    EXPECT_EQ(kind(call(static_cast<std::uint32_t>(number))), kErrno) << number;
  for (const auto number : {SYS_read, SYS_clone, SYS_ioctl, SYS_openat, SYS_chmod})
    EXPECT_EQ(kind(call(static_cast<std::uint32_t>(number))), kAllow) << number;
}

// Who may not take a port cannot listen, bound or not; all else about sockets is as it was.
TEST(SeccompModel, ListenAndBindAnswerByWhoHoldsPorts) {
  using enum Verdict::Kind;
  const auto kinds = [](const SeccompSpec& spec) {
    std::string text;
    for (const auto number : {SYS_listen, SYS_bind, SYS_connect, SYS_getsockname, SYS_accept4, SYS_sendto}) {
      const Verdict::Kind kind = judge(spec, call(static_cast<std::uint32_t>(number))).kind;
      text += kind == kAllow ? 'a' : kind == kNotify ? 'n' : 'e';
    }
    return text;
  };
  EXPECT_EQ(kinds({}), "aaaaaa");
  EXPECT_EQ(kinds({.unix_sockets = UnixSockets::kBrokered}), "nanaaa");
  EXPECT_EQ(kinds({.unix_sockets = UnixSockets::kBrokered, .local_ports = LocalPorts::kJudged}), "nnnaaa");
  EXPECT_EQ(kinds({.unix_sockets = UnixSockets::kAll, .local_ports = LocalPorts::kJudged}), "nnaaaa");
  EXPECT_EQ(kinds({.unix_sockets = UnixSockets::kAnyJudged}), "aanaaa");
  EXPECT_EQ(kinds({.local_ports = LocalPorts::kRefused}), "eaaaaa");
  EXPECT_EQ(judge({.local_ports = LocalPorts::kRefused}, call(SYS_listen)).errnum, EACCES);
}

// A pair of datagrams is the broker's to give; where there is none, nobody's.
TEST(SeccompModel, DatagramPairsAreTheBrokers) {
  const auto of = [](UnixSockets sockets, std::uint64_t type) {
    return judge({.unix_sockets = sockets}, call(SYS_socketpair, AF_UNIX, type));
  };
  constexpr Verdict kAllowed{Verdict::Kind::kAllow, 0}, kRefused{Verdict::Kind::kErrno, EACCES}, kAsked{Verdict::Kind::kNotify, 0};
  for (const int kind : {SOCK_DGRAM + 0, SOCK_RAW + 0, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK}) {
    const auto type = static_cast<std::uint64_t>(kind);
    EXPECT_EQ(of(UnixSockets::kPairs, type), kRefused);
    EXPECT_EQ(of(UnixSockets::kStream, type), kRefused);
    EXPECT_EQ(of(UnixSockets::kBrokered, type), kAsked);
    EXPECT_EQ(of(UnixSockets::kAnyJudged, type), kAllowed);
    EXPECT_EQ(of(UnixSockets::kAll, type), kAllowed);
    EXPECT_EQ(judge({.unix_sockets = UnixSockets::kBrokered}, call(SYS_socket, AF_UNIX, type)), kRefused);
  }
  EXPECT_EQ(of(UnixSockets::kBrokered, SOCK_STREAM), kAllowed);
}

// The broker's connections are the only ones of which the kernel does not know who asked.
TEST(SeccompModel, WhoAPeerIsIsAskedOfTheBroker) {
  const auto kind = [](UnixSockets sockets, std::uint64_t level, std::uint64_t name) {
    return judge({.unix_sockets = sockets}, call(SYS_getsockopt, 3, level, name)).kind;
  };
  using enum Verdict::Kind;
  for (const UnixSockets sockets : {UnixSockets::kBrokered, UnixSockets::kAnyJudged}) {
    EXPECT_EQ(kind(sockets, SOL_SOCKET, SO_PEERCRED), kNotify);
    EXPECT_EQ(kind(sockets, SOL_SOCKET, kPeerPidfd), kNotify);
    EXPECT_EQ(kind(sockets, SOL_SOCKET | 0x100000000ULL, SO_PEERCRED | 0x100000000ULL), kNotify) << "as the kernel reads ints";
    EXPECT_EQ(kind(sockets, SOL_SOCKET, SO_TYPE), kAllow);
    EXPECT_EQ(kind(sockets, 6 /* SOL_TCP */, SO_PEERCRED), kAllow);
  }
  for (const UnixSockets sockets : {UnixSockets::kPairs, UnixSockets::kStream, UnixSockets::kAll})
    EXPECT_EQ(kind(sockets, SOL_SOCKET, SO_PEERCRED), kAllow);
}

TEST(SeccompModel, OpensBecomeNotificationsByWhatTheyAskFor) {
  const SeccompSpec writes{.file_calls = FileCalls::kWrites};
  const auto kind = [](const SeccompSpec& spec, const seccomp_data& data) { return judge(spec, data).kind; };
  using enum Verdict::Kind;
  for (const int flags : {O_RDONLY, O_RDONLY | O_DIRECTORY | O_CLOEXEC, O_NONBLOCK}) {
    EXPECT_EQ(kind(writes, call(SYS_openat, 0, 0, static_cast<unsigned>(flags))), kAllow) << flags;
    EXPECT_EQ(kind({.file_calls = FileCalls::kAll}, call(SYS_openat, 0, 0, static_cast<unsigned>(flags))), kNotify) << flags;
    EXPECT_EQ(kind({}, call(SYS_openat, 0, 0, static_cast<unsigned>(flags))), kAllow) << flags;
  }
  for (const FileCalls calls : {FileCalls::kDirect, FileCalls::kWrites, FileCalls::kAll}) {
    EXPECT_EQ(kind({.file_calls = calls}, call(SYS_openat, 0, 0, O_PATH | O_NOFOLLOW)), kAllow);
    EXPECT_EQ(kind({.file_calls = calls}, call(SYS_openat, 0, 0, O_PATH | O_CREAT | O_RDWR)), kAllow);
  }
  for (const int flags : {O_WRONLY, O_RDWR, O_RDONLY | O_CREAT, O_RDONLY | O_TRUNC, O_TMPFILE | O_RDWR, O_ACCMODE}) {
    EXPECT_EQ(kind(writes, call(SYS_openat, 0, 0, static_cast<unsigned>(flags))), kNotify) << flags;
    EXPECT_EQ(kind({}, call(SYS_openat, 0, 0, static_cast<unsigned>(flags))), kAllow) << flags;
  }
  EXPECT_EQ(kind(writes, call(SYS_openat, 0, 0, O_CREAT, 04755)), kErrno);
  EXPECT_EQ(kind(writes, call(SYS_openat2)), kNotify);
}

TEST(SeccompModel, WhereACommitJudgesTheBrokerSeesLinksNodesAndSockets) {
  const SeccompSpec links{.file_calls = FileCalls::kLinks};
  using enum Verdict::Kind;
  for (const auto number : {SYS_linkat, SYS_mknodat, SYS_bind, SYS_getsockname, SYS_umask})
    EXPECT_EQ(judge(links, call(static_cast<std::uint32_t>(number))).kind, kNotify) << number;
  for (const auto number : {SYS_mkdirat, SYS_renameat2, SYS_unlinkat, SYS_symlinkat, SYS_truncate, SYS_fchmodat, SYS_close})
    EXPECT_EQ(judge(links, call(static_cast<std::uint32_t>(number), 960)).kind, kAllow) << number;
  for (const unsigned flags : {O_RDONLY, O_CREAT | O_WRONLY, O_TRUNC | O_RDWR, O_TMPFILE | O_RDWR})
    EXPECT_EQ(judge(links, call(SYS_openat, 0, 0, flags)).kind, kAllow) << flags;
  // The bits that name whose a file is are refused as ever, and of a directory asked about.
  EXPECT_EQ(judge(links, call(SYS_openat, 0, 0, O_CREAT, 04755)).kind, kErrno);
  EXPECT_EQ(judge(links, call(SYS_openat2)).kind, kErrno);
  EXPECT_EQ(judge(links, call(SYS_fchmodat, 0, 0, 04755)).kind, kErrno);
  EXPECT_EQ(judge(links, call(SYS_fchmodat, 0, 0, 02755)).kind, kNotify);
  EXPECT_EQ(judge(links, call(SYS_fchmod, 0, 02755)).kind, kNotify);
  EXPECT_EQ(judge(links, call(SYS_landlock_restrict_self)).kind, kErrno);
}

TEST(SeccompModel, OwnersAreChangedToMappedIdsOnly) {
  const SeccompSpec spec{.only_uid = 1000, .only_gid = 100, .tell_refusals = true};
  constexpr std::uint64_t kKeep = 0xffffffffU, kKeepSigned = ~0ULL;
  const auto verdict = [&](std::uint64_t uid, std::uint64_t gid) {
    const Verdict by_path = judge(spec, call(SYS_lchown, 7, uid, gid));
    EXPECT_EQ(by_path, judge(spec, call(SYS_fchownat, 7, 7, uid, gid)));
    return text(by_path);
  };
  const std::string allowed = text({Verdict::Kind::kAllow, 0}), refused = text({Verdict::Kind::kErrno, EPERM});
  for (const std::uint64_t uid : {kKeep, kKeepSigned, std::uint64_t{1000}}) {
    for (const std::uint64_t gid : {kKeep, kKeepSigned, std::uint64_t{100}}) EXPECT_EQ(verdict(uid, gid), allowed) << uid << gid;
  }
  for (const std::uint64_t id : {0, 65534, 2000}) {
    EXPECT_EQ(verdict(id, kKeep), refused) << id;
    EXPECT_EQ(verdict(kKeep, id), refused) << id;
    EXPECT_EQ(verdict(1000, id), refused) << id;
  }
  EXPECT_EQ(text(judge({}, call(SYS_chown, 7, 65534, 65534))), allowed) << "the kernel answers where no ids are given";
  EXPECT_EQ(text(judge({.allow_nested_userns = true, .only_uid = 1, .only_gid = 1}, call(SYS_chown, 7, 0, 0))), allowed);
}

TEST(SeccompModel, ObservingRefusesWhatIsRefusedAndSeesWhatNamesFiles) {
  const SeccompSpec observed{.observe = true};
  using enum Verdict::Kind;
  for (const auto number : {SYS_openat, SYS_newfstatat, SYS_statx, SYS_mkdirat, SYS_renameat2, SYS_readlinkat})
    EXPECT_EQ(judge(observed, call(static_cast<std::uint32_t>(number))).kind, kNotify) << number;
  for (const auto number :
       {SYS_execve, SYS_chdir, SYS_read, SYS_fstat, SYS_close, SYS_umask, SYS_landlock_restrict_self, SYS_getdents64})
    EXPECT_EQ(judge(observed, call(static_cast<std::uint32_t>(number), kStagedFdFirst)).kind, kAllow) << number;
  for (std::uint32_t number = 0; number < kNumbers; ++number) {
    const std::array<std::uint64_t, 6> registers{0x10000000, 04755 | O_CREAT, 04755, 04755, 0, 0};
    EXPECT_EQ(refusal_of(observed, number, registers).errnum, refusal_of({}, number, registers).errnum) << number;
    // What the broker performs it performs under observation too.
    for (const FileCalls calls : {FileCalls::kWrites, FileCalls::kAll}) {
      const Verdict alone = judge({.file_calls = calls}, call(number, 960, 04755 | O_CREAT, 0755, 0755));
      const Verdict seen = judge({.file_calls = calls, .observe = true}, call(number, 960, 04755 | O_CREAT, 0755, 0755));
      EXPECT_EQ(alone.kind == kAllow ? seen : alone, seen) << number;
    }
  }
}

// Pid 1 runs behind the filter before anybody answers it, and while whoever answers may wait for it: what it calls until a command
// runs (launch/init.cc) is never notified.
TEST(SeccompModel, NothingThatPid1CallsIsNotified) {
  struct Made {
    std::uint32_t number;
    std::uint64_t first = 0, second = 0;
  };
  constexpr Made kCalls[] = {
#if defined(__x86_64__)
      {SYS_vfork},
      {SYS_dup2, 10, 1},
      {SYS_poll},
#endif
      {SYS_dup3, 10, 1},
      {SYS_clone, CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD},
      {SYS_futex},
      {SYS_sendto},
      {SYS_waitid},
      {SYS_getpid},
      {SYS_setpgid},
      {SYS_setsid},
      {SYS_ioctl, 0, TIOCSPGRP},
      {SYS_ioctl, 0, TIOCSCTTY},
      {SYS_chdir},
      {SYS_statfs},
      {SYS_prctl, PR_SET_CHILD_SUBREAPER, 1},
      {SYS_rt_sigaction},
      {SYS_rt_sigprocmask},
      {SYS_execve},
      {SYS_exit_group},
      {SYS_wait4},
      {SYS_signalfd4},
      {SYS_clock_gettime},
      {SYS_sendmsg},
      {SYS_recvmsg},
      {SYS_fcntl, 10, F_DUPFD_CLOEXEC},
      {SYS_close, 10},
      {SYS_mmap},
      {SYS_munmap},
      {SYS_madvise},
      {SYS_read},
      {SYS_pread64},
      {SYS_kill},
  };
  for (const SeccompSpec& spec : all_specs()) {
    for (const Made& made : kCalls)
      EXPECT_EQ(judge(spec, call(made.number, made.first, made.second)).kind, Verdict::Kind::kAllow) << call_name(made.number);
  }
  EXPECT_EQ(judge({.observe = true}, call(SYS_faccessat)).kind, Verdict::Kind::kNotify) << "unlike a look at a path";
}

TEST(SeccompModel, CloseBecomesANotificationInTheStagedRangeOnly) {
  for (std::uint32_t fd = 0; fd < 2048; ++fd) {
    const bool staged = fd >= kStagedFdFirst && fd < kStagedFdFirst + kStagedFdCount;
    const Verdict::Kind brokered = judge({.file_calls = FileCalls::kWrites}, call(SYS_close, fd)).kind;
    EXPECT_EQ(brokered, staged ? Verdict::Kind::kNotify : Verdict::Kind::kAllow) << fd;
    EXPECT_EQ(judge({}, call(SYS_close, fd)).kind, Verdict::Kind::kAllow);
  }
}

TEST(SeccompTable, NamesCallsByNumber) {
  EXPECT_EQ(call_name(SYS_openat), "openat");
  EXPECT_EQ(call_name(452), "fchmodat2");
  EXPECT_EQ(call_name(511), "");
}

}  // namespace
}  // namespace belljar::kernel
