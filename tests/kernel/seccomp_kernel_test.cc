// The filter in a real kernel: what each call number answers, and each refusal beside its twin without the filter.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <netinet/in.h>  // IWYU pragma: keep (clang-tidy looks for the IPPROTO_ macros in linux/in.h)
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ios>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "kernel/seccomp.h"
#include "kernel/support_child.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar::kernel {
namespace {

using test::TempDir;

long address(const void* pointer) { return reinterpret_cast<long>(pointer); }

// --- every number ----------------------------------------------------------------------------------------------------------------

// What each call answers in the default spec with all arguments 0. A change of the filter shows here as a change of this text.
// Numbers that are not in it answer ENOSYS.
constexpr char kGolden[] = R"(
allow  0:read 1:write 2:open 3:close 4:stat 5:fstat 6:lstat 7:poll 8:lseek 9:mmap 10:mprotect 11:munmap 12:brk 13:rt_sigaction
       14:rt_sigprocmask 15:rt_sigreturn 16:ioctl 17:pread64 18:pwrite64 19:readv 20:writev 21:access 22:pipe 23:select
       24:sched_yield 25:mremap 26:msync 27:mincore 28:madvise 29:shmget 30:shmat 31:shmctl 32:dup 33:dup2 34:pause 35:nanosleep
       36:getitimer 37:alarm 38:setitimer 39:getpid 40:sendfile 42:connect 43:accept 44:sendto 45:recvfrom 46:sendmsg 47:recvmsg
       48:shutdown 49:bind 50:listen 51:getsockname 52:getpeername 54:setsockopt 55:getsockopt 56:clone 57:fork 58:vfork
       59:execve 60:exit 61:wait4 62:kill 63:uname 64:semget 65:semop 66:semctl 67:shmdt 68:msgget 69:msgsnd 70:msgrcv 71:msgctl
       72:fcntl 73:flock 74:fsync 75:fdatasync 76:truncate 77:ftruncate 78:getdents 79:getcwd 80:chdir 81:fchdir 82:rename
       83:mkdir 84:rmdir 85:creat 86:link 87:unlink 88:symlink 89:readlink 90:chmod 91:fchmod 92:chown 93:fchown 94:lchown
       95:umask 96:gettimeofday 97:getrlimit 98:getrusage 99:sysinfo 100:times 101:ptrace 102:getuid 104:getgid 105:setuid
       106:setgid 107:geteuid 108:getegid 109:setpgid 110:getppid 111:getpgrp 112:setsid 113:setreuid 114:setregid 115:getgroups
       116:setgroups 117:setresuid 118:getresuid 119:setresgid 120:getresgid 121:getpgid 122:setfsuid 123:setfsgid 124:getsid
       125:capget 126:capset 127:rt_sigpending 128:rt_sigtimedwait 129:rt_sigqueueinfo 130:rt_sigsuspend 131:sigaltstack
       132:utime 133:mknod 135:personality 137:statfs 138:fstatfs 140:getpriority 141:setpriority 142:sched_setparam
       143:sched_getparam 144:sched_setscheduler 145:sched_getscheduler 146:sched_get_priority_max 147:sched_get_priority_min
       148:sched_rr_get_interval 149:mlock 150:munlock 151:mlockall 152:munlockall 157:prctl 158:arch_prctl 160:setrlimit
       162:sync 186:gettid 187:readahead 188:setxattr 189:lsetxattr 190:fsetxattr 191:getxattr 192:lgetxattr 193:fgetxattr
       194:listxattr 195:llistxattr 196:flistxattr 197:removexattr 198:lremovexattr 199:fremovexattr 200:tkill 201:time
       202:futex 203:sched_setaffinity 204:sched_getaffinity 206:io_setup 207:io_destroy 208:io_getevents 209:io_submit
       210:io_cancel 213:epoll_create 216:remap_file_pages 217:getdents64 218:set_tid_address 219:restart_syscall 220:semtimedop
       221:fadvise64 222:timer_create 223:timer_settime 224:timer_gettime 225:timer_getoverrun 226:timer_delete
       228:clock_gettime 229:clock_getres 230:clock_nanosleep 231:exit_group 232:epoll_wait 233:epoll_ctl 234:tgkill 235:utimes
       237:mbind 238:set_mempolicy 239:get_mempolicy 240:mq_open 241:mq_unlink 242:mq_timedsend 243:mq_timedreceive
       244:mq_notify 245:mq_getsetattr 247:waitid 251:ioprio_set 252:ioprio_get 253:inotify_init 254:inotify_add_watch
       255:inotify_rm_watch 257:openat 258:mkdirat 259:mknodat 260:fchownat 261:futimesat 262:newfstatat 263:unlinkat
       264:renameat 265:linkat 266:symlinkat 267:readlinkat 268:fchmodat 269:faccessat 270:pselect6 271:ppoll 272:unshare
       273:set_robust_list 274:get_robust_list 275:splice 276:tee 277:sync_file_range 278:vmsplice 279:move_pages 280:utimensat
       281:epoll_pwait 282:signalfd 283:timerfd_create 284:eventfd 285:fallocate 286:timerfd_settime 287:timerfd_gettime
       288:accept4 289:signalfd4 290:eventfd2 291:epoll_create1 292:dup3 293:pipe2 294:inotify_init1 295:preadv 296:pwritev
       297:rt_tgsigqueueinfo 299:recvmmsg 302:prlimit64 303:name_to_handle_at 306:syncfs 307:sendmmsg 309:getcpu
       310:process_vm_readv 311:process_vm_writev 314:sched_setattr 315:sched_getattr 316:renameat2 317:seccomp 318:getrandom
       319:memfd_create 322:execveat 324:membarrier 325:mlock2 326:copy_file_range 327:preadv2 328:pwritev2 329:pkey_mprotect
       330:pkey_alloc 331:pkey_free 332:statx 333:io_pgetevents 334:rseq 335:uretprobe 336:uprobe 424:pidfd_send_signal
       434:pidfd_open 436:close_range 439:faccessat2 441:epoll_pwait2 444:landlock_create_ruleset 445:landlock_add_rule
       446:landlock_restrict_self 449:futex_waitv 450:set_mempolicy_home_node 452:fchmodat2 453:map_shadow_stack 454:futex_wake
       455:futex_wait 456:futex_requeue 457:statmount 458:listmount 459:lsm_get_self_attr 461:lsm_list_modules 462:mseal
       463:setxattrat 464:getxattrat 465:listxattrat 466:removexattrat 468:file_getattr
EPERM  103:syslog 153:vhangup 154:modify_ldt 155:pivot_root 159:adjtimex 161:chroot 163:acct 164:settimeofday 165:mount
       166:umount2 167:swapon 168:swapoff 169:reboot 170:sethostname 171:setdomainname 172:iopl 173:ioperm 175:init_module
       176:delete_module 179:quotactl 227:clock_settime 246:kexec_load 256:migrate_pages 298:perf_event_open 300:fanotify_init
       301:fanotify_mark 304:open_by_handle_at 305:clock_adjtime 308:setns 312:kcmp 313:finit_module 320:kexec_file_load 321:bpf
       323:userfaultfd 438:pidfd_getfd 440:process_madvise 443:quotactl_fd 448:process_mrelease
ENOSYS  134:uselib 136:ustat 139:sysfs 156:_sysctl 174:create_module 177:get_kernel_syms 178:query_module 180:nfsservctl
        181:getpmsg 182:putpmsg 183:afs_syscall 184:tuxcall 185:security 205:set_thread_area 211:get_thread_area
        212:lookup_dcookie 214:epoll_ctl_old 215:epoll_wait_old 236:vserver 248:add_key 249:request_key 250:keyctl
        425:io_uring_setup 426:io_uring_enter 427:io_uring_register 428:open_tree 429:move_mount 430:fsopen 431:fsconfig
        432:fsmount 433:fspick 435:clone3 437:openat2 442:mount_setattr 447:memfd_secret 451:cachestat 460:lsm_set_self_attr
        467:open_tree_attr 469:file_setattr 470:listns
EAFNOSUPPORT  41:socket 53:socketpair
)";

constexpr int kLast = 600;

int errno_named(const std::string& name) {
  if (name == "allow") return kReached;
  if (name == "EPERM") return EPERM;
  if (name == "ENOSYS") return ENOSYS;
  return name == "EAFNOSUPPORT" ? EAFNOSUPPORT : -1;
}

std::map<int, int> golden() {
  std::map<int, int> answers;
  std::istringstream text(kGolden);
  int answer = -1;
  for (std::string word; text >> word;) {
    const std::size_t colon = word.find(':');
    if (colon == std::string::npos) {
      answer = errno_named(word);
    } else {
      const int number = std::stoi(word);
      EXPECT_EQ(call_name(static_cast<std::uint32_t>(number)), word.substr(colon + 1));
      EXPECT_TRUE(answers.emplace(number, answer).second) << word << " twice";
    }
  }
  return answers;
}

// The kernel passes its own trampolines whatever a filter says (uretprobe since Linux 6.14) and raises SIGILL for our call.
bool is_trampoline(long number) { return number == 335 || number == 336; }

// Memory that a child's answers come back in: below the catch-all filter it may not even allocate.
using Answers = std::array<long, kLast + 1>;
struct Unmap {
  void operator()(Answers* answers) const { munmap(answers, sizeof *answers); }
};
std::unique_ptr<Answers, Unmap> shared_answers() {
  void* memory = mmap(nullptr, sizeof(Answers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return std::unique_ptr<Answers, Unmap>(static_cast<Answers*>(memory));
}

std::unique_ptr<Answers, Unmap> ask_all_numbers(const std::vector<sock_filter>* filter) {
  auto answers = shared_answers();
  const Probe probe = in_child([&]() -> long {
    if (const int status = install_catch_all(); status < 0) return status;
    if (filter != nullptr) {
      const sock_fprog program{static_cast<unsigned short>(filter->size()), const_cast<sock_filter*>(filter->data())};
      // The catch-all is in force: only a call with its pass as the sixth argument gets through.
      if (const long status = raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, address(&program), 0, 0, kPass); status < 0)
        return status;
    }
    for (long number = 0; number <= kLast; ++number) {
      if (!is_trampoline(number)) (*answers)[static_cast<std::size_t>(number)] = -raw(number);
    }
    return 0;
  });
  EXPECT_EQ(probe.signal, 0);
  EXPECT_EQ(probe.value, 0);
  return answers;
}

TEST(SeccompKernel, EachNumberAnswersWhatTheGoldenTableSays) {
  std::map<int, int> expected = golden();
  const std::vector<sock_filter> filter = build_filter({});
  const auto answers = ask_all_numbers(&filter);
  const auto twin = ask_all_numbers(nullptr);
  for (int number = 0; number <= kLast; ++number) {
    if (is_trampoline(number)) continue;
    const auto known = expected.find(number);
    const int answer = known == expected.end() ? ENOSYS : known->second;
    EXPECT_EQ((*answers)[static_cast<std::size_t>(number)], answer)
        << number << " " << call_name(static_cast<std::uint32_t>(number));
    EXPECT_EQ((*twin)[static_cast<std::size_t>(number)], kReached) << number;
  }
}

#if defined(__x86_64__)
long int80(long number) {
  long value = number;
  asm volatile("int $0x80" : "+a"(value) : "b"(0), "c"(0), "d"(0), "S"(0), "D"(0) : "memory", "cc", "r8", "r9", "r10", "r11");
  return value;
}

TEST(SeccompKernel, EveryI386CallIsKilled) {
  constexpr long kI386Getpid = 20;
  const Probe twin = in_child([] { return int80(kI386Getpid) == raw(SYS_getpid) ? 1L : 0L; });
  if (twin.signal == SIGSEGV || twin.value != 1) GTEST_SKIP() << "needs i386 emulation, this kernel has none";
  for (long number = 0; number <= kLast; ++number) {
    const Probe probe = filtered({}, [number] { return int80(number); });
    ASSERT_EQ(probe.signal, SIGSYS) << number << ": " << probe;
  }
}

TEST(SeccompKernel, X32CallsAreKilledAndASkippedCallIsNot) {
  constexpr long kX32 = 0x40000000;
  for (const long number : {kX32 | SYS_getpid, kX32 | SYS_read, kX32 | 512, kX32 | 547, 0x7fffffffL, 0xfffffffeL}) {
    EXPECT_EQ(filtered({}, [number] { return raw(number); }).signal, SIGSYS) << std::hex << number;
    EXPECT_EQ(in_child([number] { return raw(number); }).signal, 0) << std::hex << number;
  }
  EXPECT_EQ(filtered({}, [] { return raw(-1); }).value, -ENOSYS);
  EXPECT_EQ(filtered({}, [] { return raw(0x3fffffff); }).value, -ENOSYS);
}
#endif

TEST(SeccompKernel, SpecsAnswerForWhatTheyGrant) {
  const auto answer = [](const SeccompSpec& spec, long number) {
    const std::vector<sock_filter> filter = build_filter(spec);
    return (*ask_all_numbers(&filter))[static_cast<std::size_t>(number)];
  };
  for (const long number : {SYS_shmget, SYS_shmat, SYS_msgrcv, SYS_semop, SYS_mq_open}) {
    EXPECT_EQ(answer({.allow_ipc = false}, number), ENOSYS);
    EXPECT_EQ(answer({}, number), kReached);
  }
  for (const long number : {SYS_mount, SYS_umount2, SYS_fsopen, SYS_setns, SYS_chroot, SYS_clone3, SYS_sethostname}) {
    EXPECT_EQ(answer({.allow_nested_userns = true}, number), kReached);
    EXPECT_NE(answer({}, number), kReached);
  }
  EXPECT_EQ(answer({.allow_nested_userns = true}, SYS_keyctl), ENOSYS);
  EXPECT_EQ(answer({.allow_nested_userns = true}, SYS_bpf), EPERM);
  EXPECT_EQ(answer({.deny_setid_bits = false}, SYS_openat2), kReached);
}

// --- acts, each with its twin ----------------------------------------------------------------------------------------------------

enum class Twin { kAnyone, kRoot };  // who could do it without the filter

struct Act {
  const char* name;
  int refused;  // errno under the filter
  std::function<long()> act;
  Twin twin = Twin::kAnyone;
};

void expect_refused(const SeccompSpec& spec, const std::vector<Act>& acts) {
  for (const Act& act : acts) {
    const Probe probe = filtered(spec, act.act);
    EXPECT_EQ(probe.value, -act.refused) << act.name << ": " << probe;
    if (act.twin == Twin::kRoot && !test::is_root()) continue;
    const Probe free = in_child(act.act);
    EXPECT_NE(free.value, -act.refused) << act.name << " without the filter: " << free;
    EXPECT_EQ(free.signal, 0) << act.name;
  }
}

void expect_allowed(const SeccompSpec& spec, const std::vector<std::pair<const char*, std::function<long()>>>& acts) {
  for (const auto& [name, act] : acts) {
    const Probe probe = filtered(spec, act);
    EXPECT_GE(probe.value, 0) << name << ": " << probe;
    EXPECT_EQ(probe.signal, 0) << name;
  }
}

long open_raw(const std::string& path, long flags, long mode) {
  return raw(SYS_openat, AT_FDCWD, address(path.c_str()), flags, mode);
}

TEST(SeccompKernel, NoCallSetsASetIdBit) {
  const TempDir dir;
  const std::string file = dir.write("file", "x");
  const auto fresh = [&dir](const char* name) { return dir / name; };
  constexpr long kCreate = O_CREAT | O_WRONLY;
  constexpr long kTmpfile = O_TMPFILE | O_WRONLY;
  expect_refused(
      {}, {
              {"openat setuid", EPERM, [&] { return open_raw(fresh("a"), kCreate, 04755); }},
              {"openat setgid", EPERM, [&] { return open_raw(fresh("b"), kCreate, 02755); }},
              {"openat O_TMPFILE", EPERM, [&] { return open_raw(dir.path(), kTmpfile, 04755); }},
              {"openat with high bits", EPERM, [&] { return open_raw(fresh("c"), kCreate | (1L << 40), 04755 | (0xbeefL << 16)); }},
              {"openat2", ENOSYS,
               [&] {
                 const open_how how{.flags = kCreate, .mode = 04755, .resolve = 0};
                 return raw(SYS_openat2, AT_FDCWD, address(fresh("d").c_str()), address(&how), sizeof how);
               }},
              {"fchmodat", EPERM, [&] { return raw(SYS_fchmodat, AT_FDCWD, address(file.c_str()), 04755); }},
              {"fchmod", EPERM,
               [&] {
                 const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
                 return raw(SYS_fchmod, fd.get(), 02755);
               }},
              {"mknodat", EPERM, [&] { return raw(SYS_mknodat, AT_FDCWD, address(fresh("e").c_str()), S_IFREG | 04755, 0); }},
              {"mknodat of a device", EPERM,
               [&] { return raw(SYS_mknodat, AT_FDCWD, address(fresh("f").c_str()), S_IFCHR | 0600, 0); }},
#if defined(__x86_64__)
              {"open", EPERM, [&] { return raw(SYS_open, address(fresh("g").c_str()), kCreate, 06755); }},
              {"creat", EPERM, [&] { return raw(SYS_creat, address(fresh("h").c_str()), 04755); }},
              {"chmod", EPERM, [&] { return raw(SYS_chmod, address(file.c_str()), 06755); }},
              {"chmod with high bits", EPERM, [&] { return raw(SYS_chmod, address(file.c_str()), 04755 | (1L << 32)); }},
              {"mknod", EPERM, [&] { return raw(SYS_mknod, address(fresh("i").c_str()), S_IFREG | 04755, 0); }},
#endif
          });
  // Linux 6.6; before that ENOSYS comes from the kernel itself.
  EXPECT_EQ(filtered({}, [&] { return raw(452, AT_FDCWD, address(file.c_str()), 04755, 0); }).value, -EPERM);
}

TEST(SeccompKernel, PlainModesPassAndMkdirDropsSetIdBitsByItself) {
  const TempDir dir;
  const std::string file = dir.write("file", "x");
  expect_allowed({}, {
                         {"create 0755", [&] { return open_raw(dir / "a", O_CREAT | O_WRONLY, 0755); }},
                         {"open with a mode that does not count", [&] { return open_raw(file, O_RDONLY, 06755); }},
                         {"chmod 01777", [&] { return raw(SYS_fchmodat, AT_FDCWD, address(file.c_str()), 01777); }},
                         {"mkfifo", [&] { return raw(SYS_mknodat, AT_FDCWD, address((dir / "fifo").c_str()), S_IFIFO | 0600, 0); }},
                         {"mkdir 06755", [&] { return raw(SYS_mkdirat, AT_FDCWD, address((dir / "d").c_str()), 06755); }},
                     });
  struct stat made{};
  ASSERT_EQ(stat((dir / "d").c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 06000U, 0U);  // why mkdir is not filtered
}

TEST(SeccompKernel, SetIdBitsPassWhereTheSpecLetsThem) {
  const TempDir dir;
  expect_allowed({.deny_setid_bits = false}, {{"create 04755", [&] { return open_raw(dir / "a", O_CREAT | O_WRONLY, 04755); }}});
}

TEST(SeccompKernel, SocketsOfOtherFamiliesTypesAndProtocolsAreRefused) {
  const auto socket_of = [](long family, long type, long protocol) {
    return [=] { return raw(SYS_socket, family, type, protocol); };
  };
  constexpr long kHigh = 1L << 32;
  constexpr long kVsock = 40, kAlg = 38;
  const auto pair_of = [](long family, long type) {
    return [=] {
      int ends[2];
      return raw(SYS_socketpair, family, type, 0, address(ends));
    };
  };
  constexpr long kMptcp = 262;
  const SeccompSpec spec{.unix_sockets = UnixSockets::kStream};
  expect_refused(spec, {
                           {"packet", EAFNOSUPPORT, socket_of(AF_PACKET, SOCK_RAW, 0)},
                           {"inet raw", EPERM, socket_of(AF_INET, SOCK_RAW, IPPROTO_ICMP), Twin::kRoot},
                           {"inet6 raw", EPERM, socket_of(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6), Twin::kRoot},
                           {"inet SOCK_PACKET", ESOCKTNOSUPPORT, socket_of(AF_INET, SOCK_PACKET, 0)},
                           {"netlink kobject", EPROTONOSUPPORT, socket_of(AF_NETLINK, SOCK_RAW, 15)},
                           {"netlink generic", EPROTONOSUPPORT, socket_of(AF_NETLINK, SOCK_RAW, 16)},
                           {"netlink generic, high bits", EPROTONOSUPPORT, socket_of(kHigh | AF_NETLINK, SOCK_RAW, kHigh | 16)},
                           {"unix datagram", EACCES, socket_of(AF_UNIX, SOCK_DGRAM, 0)},
                           {"unix datagram with flags", EACCES, socket_of(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)},
                           {"unix datagram with high bits", EACCES, socket_of(kHigh | AF_UNIX, kHigh | SOCK_DGRAM, 0)},
                           {"unix raw, which is datagram", EACCES, socket_of(AF_UNIX, SOCK_RAW, 0)},
                           {"datagram pair", EACCES, pair_of(AF_UNIX, SOCK_DGRAM)},
                           {"raw pair", EACCES, pair_of(AF_UNIX, SOCK_RAW | SOCK_CLOEXEC)},
                       });
  // What the kernel says by itself, in the same words: programs look for them.
  const auto as_the_kernel = [&](const std::function<long()>& act) {
    const long with = filtered(spec, act).value;
    EXPECT_EQ(with, in_child(act).value);
    return -with;
  };
  EXPECT_EQ(as_the_kernel(socket_of(AF_INET, 75, 0)), EINVAL) << "flags that are none";
  EXPECT_EQ(as_the_kernel(socket_of(AF_UNIX, SOCK_STREAM | 0x100, 0)), EINVAL);
  EXPECT_EQ(as_the_kernel(socket_of(AF_UNIX, SOCK_STREAM, 6)), EPROTONOSUPPORT);
  EXPECT_EQ(as_the_kernel(socket_of(AF_UNIX, SOCK_RDM, 0)), ESOCKTNOSUPPORT);
  EXPECT_EQ(as_the_kernel(socket_of(AF_INET, SOCK_RAW, 0)), EPROTONOSUPPORT);
  EXPECT_EQ(as_the_kernel(socket_of(AF_INET, SOCK_STREAM, IPPROTO_UDP)), EPROTONOSUPPORT);
  EXPECT_EQ(as_the_kernel(pair_of(AF_INET, SOCK_STREAM)), EOPNOTSUPP);
  EXPECT_EQ(as_the_kernel(pair_of(AF_INET6, SOCK_DGRAM)), EOPNOTSUPP);
  EXPECT_EQ(as_the_kernel(pair_of(AF_INET, SOCK_RAW)), EPROTONOSUPPORT);
  EXPECT_EQ(as_the_kernel(pair_of(AF_INET, 75)), EINVAL);
  EXPECT_EQ(as_the_kernel(pair_of(AF_UNIX, SOCK_RDM)), ESOCKTNOSUPPORT);
  // Without a twin: kernels are built without these families, and answer the same then.
  EXPECT_EQ(filtered(spec, socket_of(kAlg, SOCK_SEQPACKET, 0)).value, -EAFNOSUPPORT);
  EXPECT_EQ(filtered(spec, socket_of(kVsock, SOCK_STREAM, 0)).value, -EAFNOSUPPORT);
  EXPECT_EQ(filtered(spec, socket_of(AF_INET, SOCK_STREAM, kMptcp)).value, -EPROTONOSUPPORT);
  expect_allowed(spec, {
                           {"tcp", socket_of(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP)},
                           {"udp", socket_of(AF_INET, SOCK_DGRAM, 0)},
                           {"tcp6", socket_of(AF_INET6, SOCK_STREAM, 0)},
                           {"netlink route", socket_of(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0)},
                           {"unix stream", socket_of(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)},
                           {"unix seqpacket", socket_of(AF_UNIX, SOCK_SEQPACKET, 0)},
                           {"stream pair", pair_of(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)},
                           {"seqpacket pair", pair_of(AF_UNIX, SOCK_SEQPACKET)},
                       });
  expect_allowed({.unix_sockets = UnixSockets::kAll},
                 {{"unix datagram", socket_of(AF_UNIX, SOCK_DGRAM, 0)}, {"datagram pair", pair_of(AF_UNIX, SOCK_DGRAM)}});
  expect_refused({}, {{"unix stream in kPairs", EAFNOSUPPORT, socket_of(AF_UNIX, SOCK_STREAM, 0)}});
  expect_allowed({}, {{"stream pair in kPairs", pair_of(AF_UNIX, SOCK_STREAM)}});
  expect_refused({.allow_inet = false, .allow_netlink_route = false},
                 {{"tcp without inet", EAFNOSUPPORT, socket_of(AF_INET, SOCK_STREAM, 0)},
                  {"udp6 without inet", EAFNOSUPPORT, socket_of(AF_INET6, SOCK_DGRAM, 0)},
                  {"route without netlink", EAFNOSUPPORT, socket_of(AF_NETLINK, SOCK_RAW, 0)}});
}

TEST(SeccompKernel, NamespacesAreRefused) {
  // A namespace of one's own needs no privilege once it comes with a user namespace; where the host refuses those, root's turn.
  const Twin twin = test::user_namespaces_work() ? Twin::kAnyone : Twin::kRoot;
  const auto cloned = [](long flags) {
    return [flags] {
      const long pid = raw(SYS_clone, flags | SIGCHLD);
      if (pid == 0) _exit(0);
      if (pid > 0) waitpid(static_cast<pid_t>(pid), nullptr, 0);
      return pid > 0 ? 0 : pid;
    };
  };
  expect_refused({}, {
                         {"clone NEWUSER", EPERM, cloned(CLONE_NEWUSER), twin},
                         {"clone NEWUSER NEWNS", EPERM, cloned(CLONE_NEWUSER | CLONE_NEWNS), twin},
                         {"clone with high bits", EPERM, cloned(CLONE_NEWUSER | (1L << 40)), twin},
                         {"clone NEWNET", EPERM, cloned(CLONE_NEWNET), Twin::kRoot},
                         {"unshare NEWUSER", EPERM, [] { return raw(SYS_unshare, CLONE_NEWUSER); }, twin},
                         {"unshare NEWTIME", EPERM, [] { return raw(SYS_unshare, CLONE_NEWTIME); }, Twin::kRoot},
                         {"unshare a bit above 32", EPERM, [] { return raw(SYS_unshare, CLONE_FS | (1L << 40)); }},
                         {"clone3", ENOSYS,
                          [] {
                            clone_args args{};
                            args.exit_signal = SIGCHLD;
                            const long pid = raw(SYS_clone3, address(&args), sizeof args);
                            if (pid == 0) _exit(0);
                            if (pid > 0) waitpid(static_cast<pid_t>(pid), nullptr, 0);
                            return pid > 0 ? 0 : pid;
                          }},
                         {"setns", EPERM,
                          [] {
                            const UniqueFd ns(open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC));
                            return raw(SYS_setns, ns.get(), CLONE_NEWUTS);
                          },
                          Twin::kRoot},
                     });
  expect_allowed({}, {
                         {"fork", cloned(0)},
                         {"vfork", cloned(CLONE_VFORK)},
                         {"unshare FS and FILES", [] { return raw(SYS_unshare, CLONE_FS | CLONE_FILES); }},
                     });
  if (twin == Twin::kAnyone) expect_allowed({.allow_nested_userns = true}, {{"nested", cloned(CLONE_NEWUSER | CLONE_NEWNS)}});
}

// On a descriptor that is none, the kernel's own answer is EBADF: the filter came first.
TEST(SeccompKernel, TerminalInjectionIsRefusedWhateverTheHighBits) {
  constexpr long kTioclinux = 0x541c;
  const auto request = [](long number) { return [number] { return raw(SYS_ioctl, -1, number, 0); }; };
  expect_refused({}, {
                         {"TIOCSTI", EPERM, request(TIOCSTI)},
                         {"TIOCSTI with a bit above 32 (CVE-2019-10063)", EPERM, request(TIOCSTI | (1L << 32))},
                         {"TIOCSTI with all bits above 32", EPERM, request(TIOCSTI | (-1L << 32))},
                         {"TIOCLINUX", EPERM, request(kTioclinux)},
                         {"TIOCLINUX with a bit above 32", EPERM, request(kTioclinux | (1L << 63))},
                         {"TIOCSETD", EPERM, request(TIOCSETD)},
                     });
  EXPECT_EQ(filtered({}, request(TCGETS)).value, -EBADF);
}

long type_into_own_terminal(long request) {
  int master = -1;
  int slave = -1;
  if (openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) return -errno;
  setsid();
  if (ioctl(slave, TIOCSCTTY, 0) != 0) return -errno;
  const char key = 'x';
  return raw(SYS_ioctl, slave, request, address(&key));
}

TEST(SeccompKernel, ATerminalThatWouldTakeATypedKeyDoesNotGetIt) {
  BELLJAR_NEEDS(as_root());  // dev.tty.legacy_tiocsti = 0 leaves it to CAP_SYS_ADMIN
  EXPECT_EQ(in_child([] { return type_into_own_terminal(TIOCSTI); }).value, 0);
  EXPECT_EQ(filtered({}, [] { return type_into_own_terminal(TIOCSTI); }).value, -EPERM);
  EXPECT_EQ(in_child([] { return type_into_own_terminal(TIOCSTI | (1L << 32)); }).value, 0);
  EXPECT_EQ(filtered({}, [] { return type_into_own_terminal(TIOCSTI | (1L << 32)); }).value, -EPERM);
}

TEST(SeccompKernel, KernelSurfaceIsRefused) {
  const long self = getpid();
  timex query{};
  expect_refused({},
                 {
                     {"io_uring_setup", ENOSYS, [] { return raw(SYS_io_uring_setup, 1, 0); }},
                     {"add_key", ENOSYS,
                      [] { return raw(SYS_add_key, address("user"), address("belljar-test"), 0, 0, -2 /* process keyring */); }},
                     {"keyctl", ENOSYS, [] { return raw(SYS_keyctl, 0, -2, 1); }},
                     {"bpf", EPERM, [] { return raw(SYS_bpf, 0, 0, 0); }, Twin::kRoot},
                     {"perf_event_open", EPERM, [] { return raw(SYS_perf_event_open, 0, 0, -1, -1, 0); }, Twin::kRoot},
                     {"userfaultfd", EPERM, [] { return raw(SYS_userfaultfd, 0); }, Twin::kRoot},
                     {"init_module", EPERM, [] { return raw(SYS_init_module, 0, 0, 0); }, Twin::kRoot},
                     {"open_by_handle_at", EPERM, [] { return raw(SYS_open_by_handle_at, -1, 0, 0); }, Twin::kRoot},
                     {"mount", EPERM, [] { return raw(SYS_mount, 0, 0, 0, 0, 0); }, Twin::kRoot},
                     {"umount2", EPERM, [] { return raw(SYS_umount2, address("/nonexistent"), 0); }, Twin::kRoot},
                     {"chroot", EPERM, [] { return raw(SYS_chroot, address("/")); }, Twin::kRoot},
                     {"fsopen", ENOSYS, [] { return raw(SYS_fsopen, address("tmpfs"), 0); }},
                     {"open_tree", ENOSYS, [] { return raw(SYS_open_tree, AT_FDCWD, address("/"), 0); }},
                     {"sethostname", EPERM, [] { return raw(SYS_sethostname, 0, 1); }, Twin::kRoot},
                     {"clock_settime", EPERM, [] { return raw(SYS_clock_settime, CLOCK_REALTIME, 0); }, Twin::kRoot},
                     {"adjtimex", EPERM, [&] { return raw(SYS_adjtimex, address(&query)); }},
                     {"syslog", EPERM, [] { return raw(SYS_syslog, 10 /* size of the buffer */, 0, 0); }, Twin::kRoot},
                     {"kcmp", EPERM, [] { return raw(SYS_kcmp, getpid(), getpid(), 1 /* KCMP_VM */, 0, 0); }},
                     {"pidfd_getfd", EPERM,
                      [] {
                        const UniqueFd process(static_cast<int>(raw(SYS_pidfd_open, getpid(), 0)));
                        return raw(SYS_pidfd_getfd, process.get(), process.get(), 0);
                      },
                      Twin::kRoot},  // a non-dumpable process, which our children are, is root's only
                     {"move_pages of another", EPERM, [=] { return raw(SYS_move_pages, self, 0, 0, 0, 0, 0); }, Twin::kRoot},
                     {"migrate_pages", EPERM, [] { return raw(SYS_migrate_pages, 0, 0, 0, 0); }},
                     {"fanotify_init", EPERM, [] { return raw(SYS_fanotify_init, 0x200 /* FAN_REPORT_FID */, 0); }, Twin::kRoot},
                     {"quotactl", EPERM, [] { return raw(SYS_quotactl, 0, 0, 0, 0); }},
                     {"personality LINUX32", EPERM, [] { return raw(SYS_personality, PER_LINUX32); }},
                     {"personality READ_IMPLIES_EXEC", EPERM, [] { return raw(SYS_personality, READ_IMPLIES_EXEC); }},
                     {"PR_SET_MM", EPERM, [] { return raw(SYS_prctl, PR_SET_MM, 0, 0, 0, 1); }},
#if defined(__x86_64__)
                     {"modify_ldt", EPERM, [] { return raw(SYS_modify_ldt, 0, 0, 0); }},
                     {"iopl", EPERM, [] { return raw(SYS_iopl, 0); }},
                     {"ioperm", EPERM, [] { return raw(SYS_ioperm, 0, 1, 0); }},
#endif
                 });
  EXPECT_EQ(filtered({.own_pid_namespace = false}, [=] { return raw(SYS_prlimit64, self, 7, 0, 0); }).value, -EPERM);
  EXPECT_EQ(filtered({}, [] { return raw(SYS_prlimit64, 1, 7, 0, 0); }).value, -EPERM);
  expect_allowed({.own_pid_namespace = false}, {{"own prlimit64", [] { return raw(SYS_prlimit64, 0, 7, 0, 0); }}});
  expect_allowed({},
                 {
                     {"prlimit64 of another", [=] { return test::is_root() ? raw(SYS_prlimit64, self, 7, 0, 0) : 0; }},
                     {"personality query", [] { return raw(SYS_personality, 0xffffffff); }},
                     {"personality ADDR_NO_RANDOMIZE", [] { return raw(SYS_personality, ADDR_NO_RANDOMIZE); }},
                     {"move_pages of oneself", [] { return raw(SYS_move_pages, 0, 0, 0, 0, 0, 0); }},
                     {"landlock version", [] { return test::landlock_abi() > 0 ? raw(SYS_landlock_create_ruleset, 0, 0, 1) : 0; }},
                     {"SysV shared memory",
                      [] {
                        const long id = raw(SYS_shmget, 0 /* IPC_PRIVATE */, 4096, 0600);
                        return id < 0 ? id : raw(SYS_shmctl, id, 0 /* IPC_RMID */, 0);
                      }},
                 });
}

// --- notifications ---------------------------------------------------------------------------------------------------------------

long connect_to(const char* path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, path, sizeof name.sun_path - 1);
  const UniqueFd fd(static_cast<int>(raw(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  return raw(SYS_connect, fd.get(), address(&name), sizeof name);
}

// Installs the filter of `spec` with a listener and lets a child of the caller make `act`; the caller answers it with `answer`.
// Returns what the act returned, or -EPROTO when no notification came for SYS_connect.
long act_with_broker(const SeccompSpec& spec, int answer, long (*act)()) {
  std::vector<sock_filter> filter = build_filter(spec);
  const int listener =
      install_filter({static_cast<unsigned short>(filter.size()), filter.data()}, SECCOMP_FILTER_FLAG_NEW_LISTENER);
  if (listener < 0) return listener;
  const pid_t pid = fork();
  if (pid == 0) _exit(static_cast<int>(-act()));
  seccomp_notif seen{};
  seccomp_notif_resp reply{};
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &seen) != 0) return -errno;
  reply.id = seen.id;
  reply.error = -answer;
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply) != 0) return -errno;
  int status = 0;
  waitpid(pid, &status, 0);
  return seen.data.nr == SYS_connect ? -WEXITSTATUS(status) : -EPROTO;
}

TEST(SeccompKernel, ABrokeredConnectAsksTheListener) {
  const auto act = [] { return connect_to("/nonexistent/socket"); };
  EXPECT_EQ(in_child([&] { return act_with_broker({.unix_sockets = UnixSockets::kBrokered}, EHOSTUNREACH, act); }).value,
            -EHOSTUNREACH);
  EXPECT_EQ(filtered({.unix_sockets = UnixSockets::kStream}, act).value, -ENOENT);
}

TEST(SeccompKernel, ASecondListenerInTheChainIsRefusedAndAPlainFilterIsNot) {
  const auto another = [](unsigned flags) {
    sock_filter allow_all[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    return static_cast<long>(install_filter({1, allow_all}, flags));
  };
  const auto after_broker = [&](unsigned flags) {
    return in_child([&, flags] {
             std::vector<sock_filter> filter = build_filter({.unix_sockets = UnixSockets::kBrokered});
             const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
             const int listener = install_filter(program, SECCOMP_FILTER_FLAG_NEW_LISTENER);
             return listener < 0 ? -1000000L : another(flags);
           })
        .value;
  };
  EXPECT_EQ(after_broker(SECCOMP_FILTER_FLAG_NEW_LISTENER), -EBUSY);
  EXPECT_EQ(after_broker(0), 0);
  EXPECT_GE(in_child([&] { return another(SECCOMP_FILTER_FLAG_NEW_LISTENER); }).value, 0);
}

TEST(SeccompKernel, AFilterThatIsNoProgramIsRefused) {
  sock_filter nothing[] = {{BPF_ALU | BPF_AND | BPF_K, 0, 0, 0}};
  EXPECT_EQ(in_child([&] { return static_cast<long>(install_filter({1, nothing}, 0)); }).value, -EINVAL);
}

TEST(SeccompKernel, AProgramRunsBelowTheFilter) {
  expect_allowed({}, {{"/bin/sh", [] {
                         const pid_t pid = fork();
                         if (pid == 0) {
                           execl("/bin/sh", "sh", "-c", "x=$(echo a | cat); test \"$x\" = a", nullptr);
                           _exit(126);
                         }
                         int status = 0;
                         waitpid(pid, &status, 0);
                         return status == 0 ? 0L : -1L;
                       }}});
}

}  // namespace
}  // namespace belljar::kernel
