// The model's data: every system call this program knows, sorted into groups, and what a group answers. Private to src/kernel and
// its tests; others use seccomp.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernel/seccomp.h"

namespace belljar::kernel {

// Groups before kFirstConditional are allowed, those from kFirstRefused on are refused unless the spec grants them; between them
// the arguments decide.
enum class Group : std::uint8_t {
  kUnknown,  // not in the table
  kFiles,
  kMemory,
  kProcess,
  kSignals,
  kIdentity,
  kScheduling,
  kTime,
  kWaiting,
  kSocketIo,
  kDebug,
  kSelfConfinement,
  kInformation,
  // by argument or spec
  kIpc,
  kOpenMode1,  // flags and mode at arguments 1 and 2: open
  kOpenMode2,  // at 2 and 3: openat
  kMode1,      // mode at argument 1: fchmod
  kPathMode1,  // a path and a mode at argument 1: chmod
  kPathMode2,  // at 2: fchmodat, fchmodat2
  kOwner1,     // owner and group at arguments 1 and 2: chown, lchown, fchown
  kOwner2,     // at 2 and 3: fchownat
  kCreat,
  kNames,  // calls that make, move or remove names, and truncate
  kLinks,  // link, linkat
  kUmask,
  kClose,
  kLandlockSelf,
  kPathQueries,  // calls that ask about a path
  kNode1,        // mknod
  kNode2,        // mknodat
  kOpenHow,
  kIoctl,
  kSocket,
  kSocketpair,
  kConnect,
  kListen,
  kBind,
  kSocketName,
  kSocketOption,  // getsockopt
  kClone,
  kClone3,
  kUnshare,
  kPrctl,
  kPersonality,
  kMovePages,
  kPrlimit,
  // refused
  kMount,
  kNewMount,
  kSetns,
  kHostName,
  kPidfdGetfd,
  kIoUring,
  kBpf,
  kPerf,
  kUserfaultfd,
  kKeyring,
  kKernelCode,
  kHandles,
  kClock,
  kAdmin,
  kRawHardware,
  kFanotify,
  kForeignMemory,
  kKcmp,
  kConsole,
  kMemfdSecret,
  kNewSurface,
  kObsolete,
  kCount,
};
inline constexpr Group kFirstConditional = Group::kIpc;
inline constexpr Group kFirstRefused = Group::kMount;

struct Call {
  std::uint32_t number;
  std::string_view name;
  Group group;
};

// All calls, in the order of the table's text.
std::span<const Call> calls() noexcept;
// Numbers of the native ABI end before this; every array over numbers has this size.
inline constexpr std::uint32_t kNumbers = 512;
Group group_of(std::uint32_t number) noexcept;

struct GroupInfo {
  std::string_view name;
  std::string_view why;  // why refused, or why allowed
};
const GroupInfo& info(Group group) noexcept;

// A test of one 32-bit half of one argument: (word & mask) == value, or != value.
struct Condition {
  std::uint8_t arg = 0;
  bool high = false;
  bool equal = true;
  std::uint32_t mask = 0xffffffffU;
  std::uint32_t value = 0;
  bool operator==(const Condition&) const = default;
};

// All conditions hold -> the verdict.
struct Clause {
  std::array<Condition, 2> conditions;
  std::uint8_t count = 0;
  Verdict verdict;
  bool operator==(const Clause&) const = default;
};

// The first clause that holds decides, else `otherwise`. Fixed size, so that building a filter allocates nothing for its rules.
struct Rule {
  static constexpr std::size_t kMaxClauses = 24;
  std::array<Clause, kMaxClauses> clauses{};
  std::uint8_t count = 0;
  Verdict otherwise;

  std::span<const Clause> list() const noexcept { return {clauses.data(), count}; }
  bool operator==(const Rule& other) const noexcept;
};

// What `group` answers under `spec`.
Rule rule_for(const SeccompSpec& spec, Group group) noexcept;

// The ABI this program is built for, and the verdicts for what is outside the table.
#if defined(__x86_64__)
inline constexpr std::uint32_t kNativeArch = 0xc000003eU;  // AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
inline constexpr std::uint32_t kNativeArch = 0xc00000b7U;  // AUDIT_ARCH_AARCH64
#else
#error "seccomp: name the audit architecture and check the call table for this machine"
#endif
// x32 calls are native calls with this bit (CVE-2014-0038); all numbers from it on are killed, save the one a tracer writes to skip
// a call (ptrace(2)), which is no call at all.
#if defined(__x86_64__)
inline constexpr bool kHasX32 = true;
#else
inline constexpr bool kHasX32 = false;
#endif
inline constexpr std::uint32_t kX32Bit = 0x40000000U;
inline constexpr std::uint32_t kSkippedCall = 0xffffffffU;

}  // namespace belljar::kernel
