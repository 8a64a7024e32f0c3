#include "bench/probe.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/format.h"
#include "base/unique_fd.h"

namespace belljar::bench {
namespace {

constexpr unsigned kNamespaces =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
constexpr const char* kPlainProbe = "plain probe: no code of ours";
constexpr const char* kRoot = "/tmp";  // covered in the child's own mount namespace

bool write_file(const std::string& path, const std::string& text) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

bool map_ids(pid_t child) {
  const std::string proc = format("/proc/{}/", child);
  return write_file(proc + "setgroups", "deny") && write_file(proc + "uid_map", format("1000 {} 1", ::geteuid())) &&
         write_file(proc + "gid_map", format("1000 {} 1", ::getegid()));
}

bool make_parents(const std::string& below_root) {
  for (std::size_t slash = below_root.find('/', 1); slash != std::string::npos; slash = below_root.find('/', slash + 1))
    ::mkdir((kRoot + below_root.substr(0, slash)).c_str(), 0755);
  return true;
}

bool bind_mount(const std::string& from, unsigned long flags) {
  const std::string to = kRoot + from;
  return ::mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0 &&
         (flags == 0 || ::mount(nullptr, to.c_str(), nullptr, MS_BIND | MS_REMOUNT | flags, nullptr) == 0);
}

bool bind_directory(const std::string& path, unsigned long flags) { return make_parents(path + "/") && bind_mount(path, flags); }

bool bind_node(const std::string& path) {
  const UniqueFd made(::open((kRoot + path).c_str(), O_CREAT | O_CLOEXEC, 0666));
  return made.valid() && bind_mount(path, 0);
}

// A workspace below /tmp is gone from sight once the root covers it: it is taken by descriptor before.
bool build_tree(const std::string& workspace_path) {
  const UniqueFd workspace(::open(workspace_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  bool well = ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
              ::mount("tmpfs", kRoot, "tmpfs", MS_NOSUID | MS_NODEV, nullptr) == 0 &&
              bind_directory("/usr", MS_RDONLY | MS_NOSUID | MS_NODEV) && bind_directory("/etc", MS_RDONLY | MS_NOSUID | MS_NODEV);
  for (const char* name : {"bin", "lib", "lib64"})
    well = well && ::symlink(format("usr/{}", name).c_str(), format("{}/{}", kRoot, name).c_str()) == 0;
  well = well && make_parents("/dev/") && make_parents("/proc/") && make_parents(workspace_path + "/");
  for (const char* node : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}) well = well && bind_node(node);
  const int tree =
      static_cast<int>(::syscall(SYS_open_tree, workspace.get(), "", OPEN_TREE_CLONE | AT_EMPTY_PATH | OPEN_TREE_CLOEXEC));
  well = well && tree >= 0 &&
         ::syscall(SYS_move_mount, tree, "", AT_FDCWD, (kRoot + workspace_path).c_str(), 4 /* MOVE_MOUNT_F_EMPTY_PATH */) == 0 &&
         ::mount("proc", format("{}/proc", kRoot).c_str(), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0;
  return well && ::chdir(kRoot) == 0 && ::syscall(SYS_pivot_root, ".", ".") == 0 && ::umount2(".", MNT_DETACH) == 0 &&
         ::chdir(workspace_path.c_str()) == 0;
}

bool loopback_up() {
  const UniqueFd any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{.ifr_ifrn = {"lo"}, .ifr_ifru = {}};
  request.ifr_flags = IFF_UP;
  return any.valid() && ::ioctl(any.get(), SIOCSIFFLAGS, &request) == 0;
}

bool restrict_itself() {
  const landlock_ruleset_attr handled{.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE};
  const UniqueFd rules(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0)));
  const UniqueFd here(::open(".", O_PATH | O_CLOEXEC));
  const landlock_path_beneath_attr writable{.allowed_access = LANDLOCK_ACCESS_FS_WRITE_FILE, .parent_fd = here.get()};
  std::array<sock_filter, 4> code{{{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
                                   {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_ptrace},
                                   {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | 1},
                                   {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}};
  const sock_fprog filter{static_cast<unsigned short>(code.size()), code.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && rules.valid() && here.valid() &&
         ::syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &writable, 0) == 0 &&
         ::syscall(SYS_landlock_restrict_self, rules.get(), 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

// The first process of the namespace: never returns.
[[noreturn]] void be_first(int mapped, const std::string& workspace_path) {
  char byte = 0;
  if (::read(mapped, &byte, 1) != 1 || !build_tree(workspace_path) || !loopback_up()) ::_exit(2);
  const pid_t command = ::vfork();
  if (command == 0) {
    if (restrict_itself()) ::execl("/bin/true", "true", nullptr);
    ::_exit(3);
  }
  int status = 1;
  ::waitpid(command, &status, 0);
  ::_exit(status == 0 ? 0 : 4);
}

}  // namespace

bool plain_probe(const std::string& workspace) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return false;
  const UniqueFd read_end(pipe[0]);
  const UniqueFd write_end(pipe[1]);
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, kNamespaces | SIGCHLD, 0, 0, 0, 0));
  if (child == 0) be_first(read_end.get(), workspace);
  if (child < 0) return false;
  if (!map_ids(child) || ::write(write_end.get(), "g", 1) != 1) ::kill(child, SIGKILL);
  int status = 1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

void add_plain_probe(Report& report, const std::string& group, std::string name, const Samples& probe) {
  if (probe.us.empty()) {
    report.left_out.push_back("plain probe: the kernel refused it");
    if (Row* row = report.find(group, name)) row->target = 1500;
    return;
  }
  report.add(group, kPlainProbe, probe);
  report.compare_rows(group, name, kPlainProbe, 1.0);
}

}  // namespace belljar::bench
