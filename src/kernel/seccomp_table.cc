// Which group each system call belongs to, and the reason for each group. What a group answers is in seccomp_rules.cc.
//
// Numbers come from the headers, except where Debian 12's headers (Linux 6.1) end: those are literal, with the kernel that brought
// them; from 424 on they are the same on every architecture. A call that is missing here answers ENOSYS.
#include "kernel/seccomp_table.h"

#include <asm/unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

namespace belljar::kernel {
namespace {

#define NR(name) __NR_##name, #name

constexpr Call kCalls[] = {
    // --- allowed ---
    {NR(read), Group::kFiles},
    {NR(write), Group::kFiles},
    {NR(close), Group::kFiles},
    {NR(fstat), Group::kFiles},
    {NR(lseek), Group::kFiles},
    {NR(pread64), Group::kFiles},
    {NR(pwrite64), Group::kFiles},
    {NR(readv), Group::kFiles},
    {NR(writev), Group::kFiles},
    {NR(preadv), Group::kFiles},
    {NR(pwritev), Group::kFiles},
    {NR(preadv2), Group::kFiles},
    {NR(pwritev2), Group::kFiles},
    {NR(dup), Group::kFiles},
    {NR(dup3), Group::kFiles},
    {NR(fcntl), Group::kFiles},
    {NR(flock), Group::kFiles},
    {NR(fsync), Group::kFiles},
    {NR(fdatasync), Group::kFiles},
    {NR(sync), Group::kFiles},
    {NR(syncfs), Group::kFiles},
    {NR(sync_file_range), Group::kFiles},
    {NR(truncate), Group::kFiles},
    {NR(ftruncate), Group::kFiles},
    {NR(fallocate), Group::kFiles},
    {NR(fadvise64), Group::kFiles},
    {NR(readahead), Group::kFiles},
    {NR(sendfile), Group::kFiles},
    {NR(splice), Group::kFiles},
    {NR(tee), Group::kFiles},
    {NR(vmsplice), Group::kFiles},
    {NR(copy_file_range), Group::kFiles},
    {NR(pipe2), Group::kFiles},
    {NR(close_range), Group::kFiles},
    {NR(getdents64), Group::kFiles},
    {NR(getcwd), Group::kFiles},
    {NR(chdir), Group::kFiles},
    {NR(fchdir), Group::kFiles},
    {NR(umask), Group::kFiles},
    {NR(statx), Group::kFiles},
    {NR(newfstatat), Group::kFiles},
    {NR(statfs), Group::kFiles},
    {NR(fstatfs), Group::kFiles},
    {NR(faccessat), Group::kFiles},
    {NR(faccessat2), Group::kFiles},
    {NR(readlinkat), Group::kFiles},
    // mkdir masks its mode with 01777 before the file system sees it (vfs_mkdir), so it cannot set an id bit; tested.
    {NR(mkdirat), Group::kFiles},
    {NR(unlinkat), Group::kFiles},
    {NR(renameat), Group::kFiles},
    {NR(renameat2), Group::kFiles},
    {NR(linkat), Group::kFiles},
    {NR(symlinkat), Group::kFiles},
    {NR(fchown), Group::kFiles},
    {NR(fchownat), Group::kFiles},
    {NR(utimensat), Group::kFiles},
    {NR(setxattr), Group::kFiles},
    {NR(lsetxattr), Group::kFiles},
    {NR(fsetxattr), Group::kFiles},
    {NR(getxattr), Group::kFiles},
    {NR(lgetxattr), Group::kFiles},
    {NR(fgetxattr), Group::kFiles},
    {NR(listxattr), Group::kFiles},
    {NR(llistxattr), Group::kFiles},
    {NR(flistxattr), Group::kFiles},
    {NR(removexattr), Group::kFiles},
    {NR(lremovexattr), Group::kFiles},
    {NR(fremovexattr), Group::kFiles},
    {463, "setxattrat", Group::kFiles},     // 6.13
    {464, "getxattrat", Group::kFiles},     // 6.13
    {465, "listxattrat", Group::kFiles},    // 6.13
    {466, "removexattrat", Group::kFiles},  // 6.13
    {468, "file_getattr", Group::kFiles},   // 6.17
    {NR(inotify_init1), Group::kFiles},
    {NR(inotify_add_watch), Group::kFiles},
    {NR(inotify_rm_watch), Group::kFiles},
    // A handle is of no use without open_by_handle_at; the inode number in it is in stat(2) as well.
    {NR(name_to_handle_at), Group::kFiles},
    {NR(io_setup), Group::kFiles},
    {NR(io_destroy), Group::kFiles},
    {NR(io_getevents), Group::kFiles},
    {NR(io_submit), Group::kFiles},
    {NR(io_cancel), Group::kFiles},
    {NR(io_pgetevents), Group::kFiles},

    {NR(mmap), Group::kMemory},
    {NR(mprotect), Group::kMemory},
    {NR(munmap), Group::kMemory},
    {NR(brk), Group::kMemory},
    {NR(mremap), Group::kMemory},
    {NR(msync), Group::kMemory},
    {NR(mincore), Group::kMemory},
    {NR(madvise), Group::kMemory},
    {NR(mlock), Group::kMemory},
    {NR(mlock2), Group::kMemory},
    {NR(munlock), Group::kMemory},
    {NR(mlockall), Group::kMemory},
    {NR(munlockall), Group::kMemory},
    {NR(remap_file_pages), Group::kMemory},
    {NR(memfd_create), Group::kMemory},
    {NR(membarrier), Group::kMemory},
    {NR(pkey_mprotect), Group::kMemory},
    {NR(pkey_alloc), Group::kMemory},
    {NR(pkey_free), Group::kMemory},
    // These set the caller's own NUMA policy only (JVM, numactl).
    {NR(mbind), Group::kMemory},
    {NR(set_mempolicy), Group::kMemory},
    {NR(get_mempolicy), Group::kMemory},
    {NR(set_mempolicy_home_node), Group::kMemory},
    {453, "map_shadow_stack", Group::kMemory},  // 6.6
    {462, "mseal", Group::kMemory},             // 6.10

    {NR(execve), Group::kProcess},
    {NR(execveat), Group::kProcess},
    {NR(exit), Group::kProcess},
    {NR(exit_group), Group::kProcess},
    {NR(wait4), Group::kProcess},
    {NR(waitid), Group::kProcess},
    {NR(getpid), Group::kProcess},
    {NR(getppid), Group::kProcess},
    {NR(gettid), Group::kProcess},
    {NR(setpgid), Group::kProcess},
    {NR(getpgid), Group::kProcess},
    {NR(setsid), Group::kProcess},
    {NR(getsid), Group::kProcess},
    {NR(set_tid_address), Group::kProcess},
    {NR(set_robust_list), Group::kProcess},
    {NR(get_robust_list), Group::kProcess},
    {NR(rseq), Group::kProcess},
    {NR(futex), Group::kProcess},
    {NR(futex_waitv), Group::kProcess},
    {454, "futex_wake", Group::kProcess},     // 6.7
    {455, "futex_wait", Group::kProcess},     // 6.7
    {456, "futex_requeue", Group::kProcess},  // 6.7
    {NR(getrlimit), Group::kProcess},
    {NR(setrlimit), Group::kProcess},
    {NR(getrusage), Group::kProcess},
    {NR(times), Group::kProcess},
    {NR(pidfd_open), Group::kProcess},
    {NR(restart_syscall), Group::kProcess},

    {NR(rt_sigaction), Group::kSignals},
    {NR(rt_sigprocmask), Group::kSignals},
    {NR(rt_sigreturn), Group::kSignals},
    {NR(rt_sigpending), Group::kSignals},
    {NR(rt_sigtimedwait), Group::kSignals},
    {NR(rt_sigqueueinfo), Group::kSignals},
    {NR(rt_tgsigqueueinfo), Group::kSignals},
    {NR(rt_sigsuspend), Group::kSignals},
    {NR(sigaltstack), Group::kSignals},
    {NR(kill), Group::kSignals},
    {NR(tkill), Group::kSignals},
    {NR(tgkill), Group::kSignals},
    {NR(pidfd_send_signal), Group::kSignals},
    {NR(signalfd4), Group::kSignals},

    {NR(getuid), Group::kIdentity},
    {NR(getgid), Group::kIdentity},
    {NR(geteuid), Group::kIdentity},
    {NR(getegid), Group::kIdentity},
    {NR(setuid), Group::kIdentity},
    {NR(setgid), Group::kIdentity},
    {NR(setreuid), Group::kIdentity},
    {NR(setregid), Group::kIdentity},
    {NR(setresuid), Group::kIdentity},
    {NR(getresuid), Group::kIdentity},
    {NR(setresgid), Group::kIdentity},
    {NR(getresgid), Group::kIdentity},
    {NR(setfsuid), Group::kIdentity},
    {NR(setfsgid), Group::kIdentity},
    {NR(getgroups), Group::kIdentity},
    {NR(setgroups), Group::kIdentity},
    {NR(capget), Group::kIdentity},
    {NR(capset), Group::kIdentity},

    {NR(sched_yield), Group::kScheduling},
    {NR(sched_setparam), Group::kScheduling},
    {NR(sched_getparam), Group::kScheduling},
    {NR(sched_setscheduler), Group::kScheduling},
    {NR(sched_getscheduler), Group::kScheduling},
    {NR(sched_get_priority_max), Group::kScheduling},
    {NR(sched_get_priority_min), Group::kScheduling},
    {NR(sched_rr_get_interval), Group::kScheduling},
    {NR(sched_setaffinity), Group::kScheduling},
    {NR(sched_getaffinity), Group::kScheduling},
    {NR(sched_setattr), Group::kScheduling},
    {NR(sched_getattr), Group::kScheduling},
    {NR(getpriority), Group::kScheduling},
    {NR(setpriority), Group::kScheduling},
    {NR(ioprio_set), Group::kScheduling},
    {NR(ioprio_get), Group::kScheduling},

    {NR(nanosleep), Group::kTime},
    {NR(clock_nanosleep), Group::kTime},
    {NR(clock_gettime), Group::kTime},
    {NR(clock_getres), Group::kTime},
    {NR(gettimeofday), Group::kTime},
    {NR(getitimer), Group::kTime},
    {NR(setitimer), Group::kTime},
    {NR(timer_create), Group::kTime},
    {NR(timer_settime), Group::kTime},
    {NR(timer_gettime), Group::kTime},
    {NR(timer_getoverrun), Group::kTime},
    {NR(timer_delete), Group::kTime},
    {NR(timerfd_create), Group::kTime},
    {NR(timerfd_settime), Group::kTime},
    {NR(timerfd_gettime), Group::kTime},

    {NR(ppoll), Group::kWaiting},
    {NR(pselect6), Group::kWaiting},
    {NR(epoll_create1), Group::kWaiting},
    {NR(epoll_ctl), Group::kWaiting},
    {NR(epoll_pwait), Group::kWaiting},
    {NR(epoll_pwait2), Group::kWaiting},
    {NR(eventfd2), Group::kWaiting},

    {NR(bind), Group::kSocketIo},
    {NR(accept), Group::kSocketIo},
    {NR(accept4), Group::kSocketIo},
    {NR(getsockname), Group::kSocketIo},
    {NR(getpeername), Group::kSocketIo},
    {NR(sendto), Group::kSocketIo},
    {NR(recvfrom), Group::kSocketIo},
    {NR(sendmsg), Group::kSocketIo},
    {NR(recvmsg), Group::kSocketIo},
    {NR(sendmmsg), Group::kSocketIo},
    {NR(recvmmsg), Group::kSocketIo},
    {NR(setsockopt), Group::kSocketIo},
    {NR(getsockopt), Group::kSocketIo},
    {NR(shutdown), Group::kSocketIo},

    {NR(ptrace), Group::kDebug},
    {NR(process_vm_readv), Group::kDebug},
    {NR(process_vm_writev), Group::kDebug},

    {NR(seccomp), Group::kSelfConfinement},
    {NR(landlock_create_ruleset), Group::kSelfConfinement},
    {NR(landlock_add_rule), Group::kSelfConfinement},
    {NR(landlock_restrict_self), Group::kSelfConfinement},

    {NR(uname), Group::kInformation},
    {NR(sysinfo), Group::kInformation},
    {NR(getcpu), Group::kInformation},
    {NR(getrandom), Group::kInformation},
    {457, "statmount", Group::kInformation},          // 6.8; what /proc/self/mountinfo says
    {458, "listmount", Group::kInformation},          // 6.8
    {459, "lsm_get_self_attr", Group::kInformation},  // 6.8; what /proc/self/attr says
    {461, "lsm_list_modules", Group::kInformation},   // 6.8

    // --- by argument, or by what the sandbox has ---
    {NR(shmget), Group::kIpc},
    {NR(shmat), Group::kIpc},
    {NR(shmctl), Group::kIpc},
    {NR(shmdt), Group::kIpc},
    {NR(semget), Group::kIpc},
    {NR(semop), Group::kIpc},
    {NR(semctl), Group::kIpc},
    {NR(semtimedop), Group::kIpc},
    {NR(msgget), Group::kIpc},
    {NR(msgsnd), Group::kIpc},
    {NR(msgrcv), Group::kIpc},
    {NR(msgctl), Group::kIpc},
    {NR(mq_open), Group::kIpc},
    {NR(mq_unlink), Group::kIpc},
    {NR(mq_timedsend), Group::kIpc},
    {NR(mq_timedreceive), Group::kIpc},
    {NR(mq_notify), Group::kIpc},
    {NR(mq_getsetattr), Group::kIpc},

    {NR(openat), Group::kOpenMode2},
    {NR(openat2), Group::kOpenHow},
    {NR(fchmod), Group::kMode1},
    {NR(fchmodat), Group::kMode2},
    {452, "fchmodat2", Group::kMode2},  // 6.6
    {NR(mknodat), Group::kNode2},
    {NR(ioctl), Group::kIoctl},
    {NR(socket), Group::kSocket},
    {NR(socketpair), Group::kSocketpair},
    {NR(connect), Group::kConnect},
    {NR(listen), Group::kConnect},  // the broker notes which sockets are the sandbox's own, then lets it go on
    {NR(clone), Group::kClone},
    {NR(clone3), Group::kClone3},
    {NR(unshare), Group::kUnshare},
    {NR(prctl), Group::kPrctl},
    {NR(personality), Group::kPersonality},
    {NR(move_pages), Group::kMovePages},
    {NR(prlimit64), Group::kPrlimit},

    // --- refused ---
    {NR(mount), Group::kMount},
    {NR(umount2), Group::kMount},
    {NR(pivot_root), Group::kMount},
    {NR(chroot), Group::kMount},
    {NR(open_tree), Group::kNewMount},
    {NR(move_mount), Group::kNewMount},
    {NR(fsopen), Group::kNewMount},
    {NR(fsconfig), Group::kNewMount},
    {NR(fsmount), Group::kNewMount},
    {NR(fspick), Group::kNewMount},
    {NR(mount_setattr), Group::kNewMount},
    {467, "open_tree_attr", Group::kNewMount},  // 6.15
    {NR(setns), Group::kSetns},
    {NR(sethostname), Group::kHostName},
    {NR(setdomainname), Group::kHostName},
    {NR(pidfd_getfd), Group::kPidfdGetfd},
    {NR(io_uring_setup), Group::kIoUring},
    {NR(io_uring_enter), Group::kIoUring},
    {NR(io_uring_register), Group::kIoUring},
    {NR(bpf), Group::kBpf},
    {NR(perf_event_open), Group::kPerf},
    {NR(userfaultfd), Group::kUserfaultfd},
    {NR(add_key), Group::kKeyring},
    {NR(request_key), Group::kKeyring},
    {NR(keyctl), Group::kKeyring},
    {NR(kexec_load), Group::kKernelCode},
    {NR(kexec_file_load), Group::kKernelCode},
    {NR(init_module), Group::kKernelCode},
    {NR(finit_module), Group::kKernelCode},
    {NR(delete_module), Group::kKernelCode},
    {NR(open_by_handle_at), Group::kHandles},
    {NR(settimeofday), Group::kClock},
    {NR(clock_settime), Group::kClock},
    {NR(adjtimex), Group::kClock},
    {NR(clock_adjtime), Group::kClock},
    {NR(acct), Group::kAdmin},
    {NR(swapon), Group::kAdmin},
    {NR(swapoff), Group::kAdmin},
    {NR(reboot), Group::kAdmin},
    {NR(quotactl), Group::kAdmin},
    {NR(quotactl_fd), Group::kAdmin},
    {NR(fanotify_init), Group::kFanotify},
    {NR(fanotify_mark), Group::kFanotify},
    {NR(migrate_pages), Group::kForeignMemory},
    {NR(process_madvise), Group::kForeignMemory},
    {NR(process_mrelease), Group::kForeignMemory},
    {NR(kcmp), Group::kKcmp},
    {NR(syslog), Group::kConsole},
    {NR(vhangup), Group::kConsole},
    {NR(memfd_secret), Group::kMemfdSecret},
    {451, "cachestat", Group::kNewSurface},          // 6.5; page cache residency of host files, a side channel
    {460, "lsm_set_self_attr", Group::kNewSurface},  // 6.8; the next exec's AppArmor or SELinux label
    {469, "file_setattr", Group::kNewSurface},       // 6.17; project ids and immutable flags
    {470, "listns", Group::kNewSurface},             // 6.19; other namespaces' ids
    {NR(lookup_dcookie), Group::kObsolete},
    {NR(nfsservctl), Group::kObsolete},

#if defined(__x86_64__)
    // What only x86-64 has: the spellings of 1991 and some of the machine's own.
    {NR(dup2), Group::kFiles},
    {NR(pipe), Group::kFiles},
    {NR(stat), Group::kFiles},
    {NR(lstat), Group::kFiles},
    {NR(access), Group::kFiles},
    {NR(getdents), Group::kFiles},
    {NR(rename), Group::kFiles},
    {NR(mkdir), Group::kFiles},
    {NR(rmdir), Group::kFiles},
    {NR(link), Group::kFiles},
    {NR(unlink), Group::kFiles},
    {NR(symlink), Group::kFiles},
    {NR(readlink), Group::kFiles},
    {NR(chown), Group::kFiles},
    {NR(lchown), Group::kFiles},
    {NR(utime), Group::kFiles},
    {NR(utimes), Group::kFiles},
    {NR(futimesat), Group::kFiles},
    {NR(inotify_init), Group::kFiles},
    {NR(fork), Group::kProcess},
    {NR(vfork), Group::kProcess},
    {NR(getpgrp), Group::kProcess},
    {NR(arch_prctl), Group::kProcess},
    // Trampolines that the kernel itself plants when the host's administrator traces a library; refusing them would kill the
    // program.
    {335, "uretprobe", Group::kProcess},  // 6.11
    {336, "uprobe", Group::kProcess},     // 6.18
    {NR(pause), Group::kSignals},
    {NR(signalfd), Group::kSignals},
    {NR(alarm), Group::kTime},
    {NR(time), Group::kTime},
    {NR(poll), Group::kWaiting},
    {NR(select), Group::kWaiting},
    {NR(epoll_create), Group::kWaiting},
    {NR(epoll_wait), Group::kWaiting},
    {NR(eventfd), Group::kWaiting},
    {NR(open), Group::kOpenMode1},
    {NR(creat), Group::kMode1},
    {NR(chmod), Group::kMode1},
    {NR(mknod), Group::kNode1},
    {NR(iopl), Group::kRawHardware},
    {NR(ioperm), Group::kRawHardware},
    {NR(modify_ldt), Group::kRawHardware},
    {NR(create_module), Group::kObsolete},
    {NR(get_kernel_syms), Group::kObsolete},
    {NR(query_module), Group::kObsolete},
    {NR(uselib), Group::kObsolete},
    {NR(ustat), Group::kObsolete},
    {NR(sysfs), Group::kObsolete},
    {NR(_sysctl), Group::kObsolete},
    {NR(getpmsg), Group::kObsolete},
    {NR(putpmsg), Group::kObsolete},
    {NR(afs_syscall), Group::kObsolete},
    {NR(tuxcall), Group::kObsolete},
    {NR(security), Group::kObsolete},
    {NR(set_thread_area), Group::kObsolete},
    {NR(get_thread_area), Group::kObsolete},
    {NR(epoll_ctl_old), Group::kObsolete},
    {NR(epoll_wait_old), Group::kObsolete},
    {NR(vserver), Group::kObsolete},
#endif
};
#undef NR

constexpr std::array<Group, kNumbers> by_number() {
  std::array<Group, kNumbers> table{};
  for (const Call& call : kCalls) {
    if (table[call.number] != Group::kUnknown) throw "a call is listed twice";  // a compile error: this runs in the compiler only
    table[call.number] = call.group;
  }
  return table;
}
constexpr std::array<Group, kNumbers> kByNumber = by_number();

// In the order of Group.
constexpr GroupInfo kInfo[] = {
    {"unknown", "not in our table: a newer kernel's call nobody here has judged (CVE-2021-41133)"},
    {"files", "paths and descriptors; mounts, Landlock and the broker decide which"},
    {"memory", "the caller's own address space and NUMA policy"},
    {"processes", "fork, exec, wait, own limits"},
    {"signals", "the pid namespace (else Landlock's scope) bounds whom they reach"},
    {"identity", "no capabilities and no_new_privs: only ids the caller already has"},
    {"scheduling", "bounded by rlimits, cgroup and pid namespace"},
    {"time", "reading clocks, timers"},
    {"waiting", "poll, epoll, eventfd"},
    {"socket i/o", "on sockets whose family and type were judged at birth"},
    {"debuggers", "ptrace and process_vm_*: the pid namespace (else the Landlock domain) is the boundary"},
    {"self confinement", "a command may only narrow itself; a second seccomp listener gets EBUSY"},
    {"information", "what uname, /proc/self and sysfs say anyway"},
    {"SysV IPC and POSIX queues",
     "keys and ids have no path to hide: without an ipc namespace they reach the user's other programs"},
    {"open with a set-id mode",
     "a setuid file made in the workspace outlives the sandbox on the host (RestrictSUIDSGID, systemd.exec(5))"},
    {"openat with a set-id mode", "as open with a set-id mode"},
    {"chmod, fchmod, creat with a set-id mode", "as open; measured: an idmapped chmod 4755 leaves a setuid-root file on the host"},
    {"fchmodat with a set-id mode", "as chmod; fchmodat2 is the same call with flags"},
    {"mknod of devices or set-id files", "device nodes are the whole machine; no CAP_MKNOD is the first lock, this the second"},
    {"mknodat of devices or set-id files", "as mknod of devices or set-id files"},
    {"openat2", "its mode is behind a pointer where a filter cannot see set-id bits; callers fall back to openat on ENOSYS"},
    {"terminal injection",
     "TIOCSTI (CVE-2017-5226; upper bits CVE-2019-10063), TIOCLINUX (CVE-2023-28100), TIOCSETD (CVE-2017-2636)"},
    {"socket families",
     "AF_ALG (CVE-2026-31431), AF_PACKET, AF_VSOCK, AF_RXRPC (CVE-2026-43500), XFRM and the rest: kernel surface"},
    {"socketpair", "a datagram end can send to any path, which no filter sees"},
    {"connect", "host sockets by path (docker.sock, ssh-agent) are the broker's to judge"},
    {"clone with namespaces", "a user namespace brings capabilities and most kernel exploits of recent years (CVE-2022-0185)"},
    {"clone3", "its flags are behind a pointer (CVE-2021-41133); C libraries fall back to clone on ENOSYS only"},
    {"unshare of namespaces", "as clone with namespaces"},
    {"prctl(PR_SET_MM)", "rewrites what /proc shows of a process; checkpoint tools only"},
    {"personality", "old ABIs and executable data; ADDR_NO_RANDOMIZE is left for debuggers and sanitizers"},
    {"move_pages of others", "reads and moves another process's pages (CVE-2017-14140)"},
    {"prlimit64 on others", "without a pid namespace it reaches every process of the user, and Landlock does not hold it"},
    {"mounts", "umount and bind peel off what hides and protects"},
    {"new mount calls", "the same by other numbers (CVE-2021-41133)"},
    {"setns", "joins namespaces outside"},
    {"host name", "of the sandbox's own uts namespace; changing it serves nobody"},
    {"pidfd_getfd", "takes descriptors out of other processes"},
    {"io_uring", "a second system call table that no filter sees; most kernel exploits of Google's kCTF"},
    {"bpf", "verifier exploits"},
    {"perf_event_open", "kernel surface and a side channel"},
    {"userfaultfd", "holds the kernel inside a copy from user space: the exploit writer's tool"},
    {"kernel keyrings", "not namespaced; the user's session keyring is inherited"},
    {"modules and kexec", "loads kernel code"},
    {"open_by_handle_at", "opens files behind the mounts (shocker, 2014)"},
    {"clocks", "set the machine's time; adjtimex hides its modes behind a pointer"},
    {"administration", "accounting, swap, reboot, quotas"},
    {"raw hardware", "i/o ports, local descriptor tables (CVE-2015-3290)"},
    {"fanotify", "watches whole file systems"},
    {"foreign memory", "page placement and reclaim of other processes"},
    {"kcmp", "compares kernel pointers of two processes: a leak"},
    {"kernel log and consoles", "the log holds kernel addresses; vhangup acts on a terminal"},
    {"memfd_secret", "memory that neither a debugger nor an audit can read; off by default in the kernel"},
    {"new calls without users", "not needed by any tool yet; ENOSYS is what older kernels say"},
    {"obsolete calls", "not implemented, or of no use since Linux 2.6"},
};
static_assert(std::size(kInfo) == static_cast<std::size_t>(Group::kCount));

}  // namespace

std::span<const Call> calls() noexcept { return kCalls; }

Group group_of(std::uint32_t number) noexcept { return number < kNumbers ? kByNumber[number] : Group::kUnknown; }

const GroupInfo& info(Group group) noexcept { return kInfo[static_cast<std::size_t>(group)]; }

std::string_view call_name(std::uint32_t number) noexcept {
  for (const Call& call : kCalls) {
    if (call.number == number) return call.name;
  }
  return {};
}

}  // namespace belljar::kernel
