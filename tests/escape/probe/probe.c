// What the escape tests try inside: `probe ACT ARG...` makes one system call or a few and prints `ok`, or the errno's name.
// Static, so that it runs in any tree; it attacks nothing but what its arguments name.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char* arg1 = "";
static const char* arg2 = "";

static long open_as(const char* path, int flags) {
  const int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0644);
  if (fd >= 0) close(fd);
  return fd;
}

static long act_read(void) {
  char byte;
  const int fd = open(arg1, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  return fd < 0 ? fd : read(fd, &byte, 1);
}
static long act_write(void) { return open_as(arg1, O_WRONLY); }
static long act_create(void) { return open_as(arg1, O_WRONLY | O_CREAT); }
static long act_list(void) { return opendir(arg1) == NULL ? -1 : 0; }
static long act_mkdir(void) { return mkdir(arg1, 0755); }
static long act_unlink(void) { return unlink(arg1); }
static long act_truncate(void) { return truncate(arg1, 0); }
static long act_utimes(void) { return utimes(arg1, NULL); }
static long act_setxattr(void) { return setxattr(arg1, "user.probe", "1", 1, 0); }
static long act_rename(void) { return rename(arg1, arg2); }
static long act_link(void) { return link(arg1, arg2); }
static long act_chmod(void) { return chmod(arg1, (mode_t)strtoul(arg2, NULL, 8)); }
static long act_fchmod(void) {
  const int fd = open(arg1, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? fd : fchmod(fd, (mode_t)strtoul(arg2, NULL, 8));
}
static long act_fchmodat(void) { return fchmodat(AT_FDCWD, arg1, (mode_t)strtoul(arg2, NULL, 8), 0); }
static long act_fchmodat2(void) { return syscall(452, AT_FDCWD, arg1, strtoul(arg2, NULL, 8), 0); }
static long act_open_mode(void) { return open(arg1, O_WRONLY | O_CREAT | O_EXCL, (mode_t)strtoul(arg2, NULL, 8)); }
static long act_creat_mode(void) { return creat(arg1, (mode_t)strtoul(arg2, NULL, 8)); }
static long act_openat2(void) {
  struct {
    uint64_t flags, mode, resolve;
  } how = {O_WRONLY | O_CREAT | O_EXCL, strtoul(arg2, NULL, 8), 0};
  return syscall(SYS_openat2, AT_FDCWD, arg1, &how, sizeof how);
}
// The flags of an inode, as they are, by a descriptor that reads.
static long act_inode_flags(void) {
  const int fd = open(arg1, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  int flags = 0;
  if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) return -1;
  return ioctl(fd, FS_IOC_SETFLAGS, &flags);
}
// Files without a name anywhere: in memory, and one that was never given one.
static long act_fchmod_unnamed(void) {
  const int memory = memfd_create("probe", MFD_CLOEXEC), file = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  return memory < 0 || file < 0 || fchmod(memory, 0600) != 0 ? -1 : fchmod(file, 0640);
}
// An encrypted file system's key of the user, by its identifier: there is none of this one.
static long act_file_system_key(void) {
  struct fscrypt_remove_key_arg key = {.key_spec = {.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER}};
  return ioctl(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), FS_IOC_REMOVE_ENCRYPTION_KEY, &key);
}
static long act_mkdir_mode(void) { return mkdir(arg1, (mode_t)strtoul(arg2, NULL, 8)); }
static long act_mknod_mode(void) { return mknod(arg1, S_IFREG | (mode_t)strtoul(arg2, NULL, 8), 0); }
static long act_mknod_char(void) { return mknod(arg1, S_IFCHR | 0666, makedev(1, 5)); }
static long act_mknod_block(void) { return mknod(arg1, S_IFBLK | 0666, makedev(7, 0)); }
static long act_mkfifo(void) { return mkfifo(arg1, 0666); }
// Rights beyond those of the descriptor that was handed over.
static long act_reopen_stdin(void) {
  const int fd = open("/proc/self/fd/0", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  return fd < 0 ? fd : write(fd, "overwritten", 11);
}
// Descriptors above 2, the directory's own aside.
static long act_descriptors(void) {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == NULL) return -1;
  for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
    const int fd = atoi(entry->d_name);
    if (fd > 2 && fd != dirfd(directory)) printf("fd %d\n", fd);
  }
  return 0;
}

static long act_mount(void) { return mount("tmpfs", arg1, "tmpfs", 0, NULL); }
static long act_remount(void) { return mount(NULL, arg1, NULL, MS_REMOUNT | MS_BIND, NULL); }
static long act_bind(void) { return mount(arg1, arg2, NULL, MS_BIND, NULL); }
static long act_umount(void) { return umount2(arg1, MNT_DETACH); }
static long act_open_tree(void) { return syscall(428, AT_FDCWD, arg1, 1); }
static long act_fsopen(void) { return syscall(430, "tmpfs", 0); }
static long act_pivot_root(void) { return syscall(SYS_pivot_root, ".", "."); }
static long act_chroot(void) { return chroot(arg1); }
static long act_open_by_handle(void) {
  struct {
    struct file_handle head;
    char bytes[128];
  } handle = {.head = {.handle_bytes = 128}};
  int mount_id;
  if (name_to_handle_at(AT_FDCWD, arg1, &handle.head, &mount_id, 0) != 0) return -1;
  const int directory = open(arg1, O_RDONLY | O_CLOEXEC);
  return directory < 0 ? directory : open_by_handle_at(directory, &handle.head, O_RDONLY);
}

static long act_unshare(void) { return unshare((int)strtol(arg1, NULL, 0)); }
// Flags that clone(2) takes; the child leaves at once.
static long act_clone(void) {
  const long pid = syscall(SYS_clone, strtol(arg1, NULL, 0) | SIGCHLD, NULL, NULL, NULL, NULL);
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid((pid_t)pid, NULL, 0);
  return pid;
}
static long act_clone3(void) {
  struct clone_args args = {.flags = strtoull(arg1, NULL, 0), .exit_signal = SIGCHLD};
  const long pid = syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid((pid_t)pid, NULL, 0);
  return pid;
}
static long act_setns(void) {
  const int fd = open(arg1, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? fd : setns(fd, 0);
}
static long act_kill(void) { return kill(atoi(arg1), 0); }
static long act_signal(void) { return kill(atoi(arg1), SIGTERM); }
static long act_ptrace(void) {
  const long result = ptrace(PTRACE_SEIZE, atoi(arg1), NULL, NULL);
  return result;
}
static long act_vm_read(void) {
  char byte;
  struct iovec local = {&byte, 1}, remote = {(void*)(uintptr_t)strtoull(arg2, NULL, 0), 1};
  return process_vm_readv(atoi(arg1), &local, 1, &remote, 1, 0);
}
static long act_pidfd(void) { return syscall(SYS_pidfd_open, atoi(arg1), 0); }
// Limits of another process; `child`: of one of our own.
static long act_limit(void) {
  struct rlimit least = {16, 16};
  if (strcmp(arg1, "child") != 0) return prlimit(atoi(arg1), RLIMIT_NOFILE, &least, NULL);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  if (child < 0) return -1;
  const long result = prlimit(child, RLIMIT_NOFILE, &least, NULL);
  const int error = errno;
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  errno = error;
  return result;
}
static long act_setuid0(void) { return setresuid(0, 0, 0); }

static long act_io_uring(void) {
  char params[120] = {0};
  return syscall(425, 1, params);
}
static long act_bpf(void) {
  union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
  return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr);
}
static long act_perf(void) {
  uint32_t attr[32] = {1 /* software */, sizeof attr, 0, 0};
  return syscall(SYS_perf_event_open, attr, 0, -1, -1, 0);
}
static long act_userfaultfd(void) { return syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */); }
static long act_keyctl(void) { return syscall(SYS_keyctl, 0 /* get id */, -4 /* user keyring */, 1); }
static long act_add_key(void) { return syscall(SYS_add_key, "user", "belljar-probe", "x", 1, -1 /* thread keyring */); }
static long act_personality(void) { return syscall(SYS_personality, 0x0040000 /* ADDR_NO_RANDOMIZE */); }
static long act_socket(void) { return socket(atoi(arg1), atoi(arg2), 0); }
static long act_netlink(void) { return socket(AF_NETLINK, SOCK_RAW, atoi(arg1)); }
#ifdef __x86_64__
static long act_int80(void) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L /* getpid of i386 */) : "memory");
  return result;
}
static long act_x32(void) { return syscall(0x40000000 | SYS_getpid); }
#endif
static long act_kmsg(void) { return syscall(SYS_syslog, 10, NULL, 0); }
static long act_sethostname(void) { return sethostname("probe", 5); }

static long act_tiocsti(void) { return ioctl(0, TIOCSTI, "x"); }
// CVE-2019-10063: the kernel looks at 32 bits of the request, a careless filter at 64.
static long act_tiocsti_high(void) { return syscall(SYS_ioctl, 0L, 0x100000000UL | TIOCSTI, "x"); }
// BTRFS_IOC_SUBVOL_CREATE on a directory: ENOTTY says that the file system was asked.
static long act_subvolume(void) {
  static char name[4096] = "";
  return ioctl(open(".", O_RDONLY | O_DIRECTORY), 0x5000940eUL, name);
}
static long act_tioclinux(void) { return ioctl(0, TIOCLINUX, "\2"); }

static long connect_ip(int family, const char* address) {
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(arg1))};
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(arg1))};
  inet_pton(family, address, family == AF_INET ? (void*)&four.sin_addr : (void*)&six.sin6_addr);
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fd;
  return family == AF_INET ? connect(fd, (struct sockaddr*)&four, sizeof four) : connect(fd, (struct sockaddr*)&six, sizeof six);
}
static long act_connect4(void) { return connect_ip(AF_INET, *arg2 == 0 ? "127.0.0.1" : arg2); }
static long act_connect6(void) { return connect_ip(AF_INET6, *arg2 == 0 ? "::1" : arg2); }

// Without bind: the kernel finds a port.
static long listen_ip(int family) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return fd < 0 ? fd : listen(fd, 1);
}
static long act_listen4(void) { return listen_ip(AF_INET); }
static long act_listen6(void) { return listen_ip(AF_INET6); }

// `@name` is an abstract one.
static socklen_t unix_address(struct sockaddr_un* address, const char* path) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  strncpy(address->sun_path, path, sizeof address->sun_path - 1);
  if (path[0] == '@') address->sun_path[0] = 0;
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
}
static long act_connect_unix(void) {
  struct sockaddr_un address;
  const socklen_t size = unix_address(&address, arg1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return fd < 0 ? fd : connect(fd, (struct sockaddr*)&address, size);
}
// A listener of our own and a connection to it.
static long act_own_unix(void) {
  struct sockaddr_un address;
  const socklen_t size = unix_address(&address, arg1);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, (struct sockaddr*)&address, size) != 0 || listen(listener, 1) != 0) return -1;
  return act_connect_unix();
}
static long act_send_unix(void) {
  struct sockaddr_un address;
  const socklen_t size = unix_address(&address, arg1);
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  return fd < 0 ? fd : sendto(fd, "x", 1, 0, (struct sockaddr*)&address, size);
}
// trpc-agent-go #2426: an end of a pair that is pointed at a path.
static long act_pair_send_unix(void) {
  struct sockaddr_un address;
  const socklen_t size = unix_address(&address, arg1);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  struct iovec part = {"x", 1};
  struct msghdr message = {.msg_name = &address, .msg_namelen = size, .msg_iov = &part, .msg_iovlen = 1};
  return sendmsg(ends[0], &message, 0);
}

// Children that wait, until no more can be made; prints how many, ends them.
static long act_forks(void) {
  const int most = atoi(arg1);
  pid_t* children = calloc((size_t)most, sizeof *children);
  int count = 0;
  for (; children != NULL && count < most; ++count) {
    children[count] = fork();
    if (children[count] == 0) {
      pause();
      _exit(0);
    }
    if (children[count] < 0) break;
  }
  printf("%d\n", count);
  fflush(stdout);
  for (int i = 0; i < count; ++i) kill(children[i], SIGKILL);
  while (wait(NULL) > 0) {
  }
  return 0;
}
static long act_memory(void) {
  const size_t size = strtoull(arg1, NULL, 0) << 20;
  char* bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED) return -1;
  for (size_t at = 0; at < size; at += 4096) bytes[at] = 1;
  return 0;
}
static long act_open_files(void) {
  int count = 0;
  while (count < atoi(arg1) && open("/dev/null", O_RDONLY) >= 0) ++count;
  printf("%d\n", count);
  return count < atoi(arg1) ? -1 : 0;
}
// Holds stdout open, deaf to TERM, in a session of its own, after a double fork; the front returns at once.
static long act_linger(void) {
  if (fork() != 0) return 0;
  setsid();
  if (fork() != 0) _exit(0);
  signal(SIGTERM, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  for (;;) pause();
}

// The file arg1 is made again and again, for ten minutes, by a thread that outlives the process's first one; arg2 "deaf": TERM is
// ignored.
static void* keep_making(void* unused) {
  (void)unused;
  for (int i = 0; i < 60000; ++i) {
    close(open(arg1, O_WRONLY | O_CREAT, 0666));
    usleep(10000);
  }
  exit(0);
}

static long act_first_thread_ends(void) {
  if (strcmp(arg2, "deaf") == 0) signal(SIGTERM, SIG_IGN);
  pthread_t thread;
  if (pthread_create(&thread, NULL, keep_making, NULL) != 0) return -1;
  syscall(SYS_exit, 0);
  return 0;
}

// Whoever opens or executes the file arg1 waits for us, as long as the kernel lets him (45 s, lease-break-time): a lease is ours, and
// we do not give it back.
static long act_lease(void) {
  signal(SIGIO, SIG_IGN);
  const int fd = open(arg1, O_RDONLY);
  if (fd < 0 || fcntl(fd, F_SETLEASE, F_WRLCK) != 0) return -1;
  puts("leased");
  fflush(stdout);
  sleep(600);
  return 0;
}

static const struct Act {
  const char* name;
  long (*run)(void);
} kActs[] = {
    {"read", act_read},
    {"write", act_write},
    {"create", act_create},
    {"list", act_list},
    {"mkdir", act_mkdir},
    {"unlink", act_unlink},
    {"truncate", act_truncate},
    {"utimes", act_utimes},
    {"setxattr", act_setxattr},
    {"rename", act_rename},
    {"link", act_link},
    {"chmod", act_chmod},
    {"fchmod", act_fchmod},
    {"fchmod_unnamed", act_fchmod_unnamed},
    {"inode_flags", act_inode_flags},
    {"file_system_key", act_file_system_key},
    {"fchmodat", act_fchmodat},
    {"fchmodat2", act_fchmodat2},
    {"open_mode", act_open_mode},
    {"creat_mode", act_creat_mode},
    {"openat2", act_openat2},
    {"mkdir_mode", act_mkdir_mode},
    {"mknod_mode", act_mknod_mode},
    {"mknod_char", act_mknod_char},
    {"mknod_block", act_mknod_block},
    {"mkfifo", act_mkfifo},
    {"reopen_stdin", act_reopen_stdin},
    {"descriptors", act_descriptors},
    {"mount", act_mount},
    {"remount", act_remount},
    {"bind", act_bind},
    {"umount", act_umount},
    {"open_tree", act_open_tree},
    {"fsopen", act_fsopen},
    {"pivot_root", act_pivot_root},
    {"chroot", act_chroot},
    {"open_by_handle", act_open_by_handle},
    {"unshare", act_unshare},
    {"clone", act_clone},
    {"clone3", act_clone3},
    {"setns", act_setns},
    {"kill", act_kill},
    {"signal", act_signal},
    {"ptrace", act_ptrace},
    {"vm_read", act_vm_read},
    {"pidfd", act_pidfd},
    {"limit", act_limit},
    {"setuid0", act_setuid0},
    {"io_uring", act_io_uring},
    {"bpf", act_bpf},
    {"perf", act_perf},
    {"userfaultfd", act_userfaultfd},
    {"keyctl", act_keyctl},
    {"add_key", act_add_key},
    {"personality", act_personality},
    {"socket", act_socket},
    {"netlink", act_netlink},
#ifdef __x86_64__
    {"int80", act_int80},
    {"x32", act_x32},
#endif
    {"kmsg", act_kmsg},
    {"sethostname", act_sethostname},
    {"tiocsti", act_tiocsti},
    {"tiocsti_high", act_tiocsti_high},
    {"subvolume", act_subvolume},
    {"tioclinux", act_tioclinux},
    {"connect4", act_connect4},
    {"connect6", act_connect6},
    {"listen4", act_listen4},
    {"listen6", act_listen6},
    {"connect_unix", act_connect_unix},
    {"own_unix", act_own_unix},
    {"send_unix", act_send_unix},
    {"pair_send_unix", act_pair_send_unix},
    {"forks", act_forks},
    {"memory", act_memory},
    {"open_files", act_open_files},
    {"linger", act_linger},
    {"first_thread_ends", act_first_thread_ends},
    {"lease", act_lease},
};

int main(int argc, char** argv) {
  umask(0);
  if (argc > 2) arg1 = argv[2];
  if (argc > 3) arg2 = argv[3];
  for (size_t i = 0; argc > 1 && i < sizeof kActs / sizeof *kActs; ++i) {
    if (strcmp(kActs[i].name, argv[1]) != 0) continue;
    errno = 0;
    const long result = kActs[i].run();
    puts(result >= 0 ? "ok" : strerrorname_np(errno));
    return 0;
  }
  return 64;
}
