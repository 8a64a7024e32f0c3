// The steps of a recipe, in order, and what becomes of the process that took them: pid 1 that reaps, or the command itself.
#include "launch/recipe_child.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "launch/child.h"
#include "launch/plan.h"
#include "launch/recipe.h"

namespace belljar::launch {
namespace {

using FailedStep = RecipeFailure::FailedStep;

char* write_digits(unsigned number, char* end) noexcept {
  do *--end = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  return end;
}

// The network namespace of a start takes as long as its tree (network.cc).
ChildContext network_context;
Plan network_plan;

[[noreturn]] void give_up(const RecipeContext& context, int status) noexcept {
  RecipeReport report;
  report.at = static_cast<std::int32_t>(context.at);
  report.op = context.op;
  report.errnum = -status;
  report.detail_size = context.detail_size;
  std::memcpy(report.detail, context.detail, sizeof report.detail);
  abandon_network(network_context);
  // The parent may be gone, and then nobody asks.
  [[maybe_unused]] const ssize_t wrote = ::write(context.report, &report, sizeof report);
  ::_exit(1);
}

void check(RecipeContext& context, FailedStep at, int status) noexcept {
  if (status >= 0) return;
  context.at = at;
  give_up(context, status);
}

int result(long value) noexcept { return value < 0 ? -errno : 0; }

int write_at(int proc, const char* name, const char* text, std::size_t size) noexcept {
  const int fd = ::openat(proc, name, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -errno;
  const ssize_t wrote = ::write(fd, text, size);
  const int error = errno;
  ::close(fd);
  return wrote == static_cast<ssize_t>(size) ? 0 : -error;
}

int write_map(int proc, const char* name, unsigned inside, unsigned outside) noexcept {
  char buffer[40];
  char* const end = buffer + sizeof buffer;
  char* text = end;
  *--text = '1';
  *--text = ' ';
  text = write_digits(outside, text);
  *--text = ' ';
  text = write_digits(inside, text);
  return write_at(proc, name, text, static_cast<std::size_t>(end - text));
}

void map_ids(RecipeContext& context, uid_t outer_uid, gid_t outer_gid) noexcept {
  const Recipe& recipe = *context.recipe;
  check(context, FailedStep::kUidMap, write_map(context.proc, "self/uid_map", recipe.uid, outer_uid));
  // gid_map needs setgroups denied first, user_namespaces(7) (CVE-2014-8989).
  check(context, FailedStep::kSetgroups, write_at(context.proc, "self/setgroups", "deny", 4));
  check(context, FailedStep::kGidMap, write_map(context.proc, "self/gid_map", recipe.gid, outer_gid));
}

// Armed again after each change of credentials, which clears it (prctl(2)). Whether the front died before is seen by its end of the
// pipe.
void tie_to_parent(const RecipeContext& context) noexcept {
  if (!context.recipe->die_with_parent) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  pollfd front{context.report, 0, 0};
  if (::poll(&front, 1, 0) > 0) ::_exit(1);
}

void await_parent(RecipeContext& context) noexcept {
  if (context.go < 0) return;
  char byte = 0;
  ssize_t got = 0;
  do got = ::read(context.go, &byte, 1);
  while (got < 0 && errno == EINTR);
  if (got != 1) ::_exit(1);  // it is gone, or has told what went wrong
  ::close(context.go);
  context.go = -1;
}

void drop_bounding(RecipeContext& context) noexcept {
  for (unsigned long capability = 0; capability < 64; ++capability) {
    if ((context.recipe->capabilities >> capability & 1) != 0) continue;
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0) continue;
    if (errno == EINVAL) break;  // past the last one this kernel knows
    if (errno != EPERM) check(context, FailedStep::kCapabilities, -errno);
  }
}

int set_capabilities(std::uint64_t wanted) noexcept {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  for (int i = 0; i < 2; ++i)
    data[i].effective = data[i].permitted = data[i].inheritable = static_cast<std::uint32_t>(wanted >> (32 * i));
  return result(::syscall(SYS_capset, &header, data));
}

void switch_ids(RecipeContext& context) noexcept {
  const Recipe& recipe = *context.recipe;
  if (recipe.userns < 0) return;
  if (recipe.gid != recipe.real_gid)
    check(context, FailedStep::kSwitchIds, result(::setresgid(recipe.gid, recipe.gid, recipe.gid)));
  if (recipe.uid != recipe.real_uid)
    check(context, FailedStep::kSwitchIds, result(::setresuid(recipe.uid, recipe.uid, recipe.uid)));
}

void nest_users(RecipeContext& context, int limit) noexcept {
  const Recipe& recipe = *context.recipe;
  if (recipe.userns2 >= 0) check(context, FailedStep::kJoinUserns2, result(::setns(recipe.userns2, CLONE_NEWUSER)));
  if (recipe.disable_userns) {
    const ssize_t wrote = ::write(limit, "1", 1);
    check(context, FailedStep::kDisableUserns, result(wrote));
  }
  if (context.nested_users || recipe.disable_userns) {
    check(context, FailedStep::kDisableUserns, result(::unshare(CLONE_NEWUSER)));
    map_ids(context, recipe.uid, recipe.gid);
  }
  if ((recipe.disable_userns || recipe.assert_userns_disabled) && ::unshare(CLONE_NEWUSER) == 0)
    check(context, FailedStep::kUsernsNotDisabled, -EPERM);
}

void limit_capabilities(RecipeContext& context) noexcept {
  const Recipe& recipe = *context.recipe;
  if (context.own_users || recipe.userns >= 0 || recipe.set_capabilities) drop_bounding(context);
  if (!recipe.set_capabilities) return;
  check(context, FailedStep::kCapabilities, set_capabilities(recipe.capabilities));
}

// Those of a command that is not uid 0 would be lost at its execve(2).
void keep_capabilities(std::uint64_t capabilities) noexcept {
  for (unsigned long capability = 0; capability < 64; ++capability) {
    if ((capabilities >> capability & 1) != 0) ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0);
  }
}

void enter_directory(RecipeContext& context) noexcept {
  const Recipe& recipe = *context.recipe;
  char* pwd = context.pwd_root;
  if (!recipe.chdir.empty()) {
    check(context, FailedStep::kChdir, result(::chdir(recipe.chdir.c_str())));
    pwd = context.pwd_chdir;
  } else if (!recipe.cwd.empty() && ::chdir(recipe.cwd.c_str()) == 0) {
    pwd = context.pwd_cwd;
  } else if (!recipe.home.empty() && ::chdir(recipe.home.c_str()) == 0) {
    pwd = context.pwd_home;
  }
  context.envp[context.pwd] = pwd;
}

void install_filters(RecipeContext& context) noexcept {
  for (const auto& filter : context.recipe->filters) {
    sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
    check(context, FailedStep::kFilter, result(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)));
  }
}

void close_used(const Recipe& recipe) noexcept {
  for (const int fd : recipe.used_fds) ::close(fd);
}

[[noreturn]] void become_command(RecipeContext& context) noexcept {
  const Recipe& recipe = *context.recipe;
  close_used(recipe);
  // Pid 1 holds it for us; where we are that, it is left open.
  if (recipe.sync_fd >= 0 && !recipe.as_pid_1) ::close(recipe.sync_fd);
  tie_to_parent(context);
  if (recipe.set_capabilities) keep_capabilities(recipe.capabilities);
  environ = context.envp;
  install_filters(context);
  ::execvp(recipe.program.c_str(), context.argv);
  check(context, FailedStep::kExec, -errno);
  ::_exit(1);
}

// Everything but `kept`, which are few.
void close_all_but(int* kept, int count) noexcept {
  for (int i = 1; i < count; ++i) {
    for (int j = i; j > 0 && kept[j] < kept[j - 1]; --j) std::swap(kept[j], kept[j - 1]);
  }
  unsigned from = 0;
  for (int i = 0; i <= count; ++i) {
    if (i < count && kept[i] < 0) continue;
    const unsigned to = i < count ? static_cast<unsigned>(kept[i]) : ~0U;
    if (to > from) ::syscall(SYS_close_range, from, i < count ? to - 1 : to, 0);
    from = to + 1;
  }
}

constexpr int kMostLocks = 32;

int lock_file(const char* path) noexcept {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -errno;
  struct flock lock{};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(fd, F_SETLK, &lock) < 0 ? -errno : fd;
}

// Once those that have ended are reaped. False, too, where that cannot be told.
bool nobody_left() noexcept {
  pid_t ended = 0;
  do ended = ::waitpid(-1, nullptr, WNOHANG | __WALL);
  while (ended > 0);
  return ended < 0 && errno == ECHILD;
}

// Reaps until nobody is left, and tells the parent of the command's end as soon as it comes.
[[noreturn]] void be_init(RecipeContext& context, pid_t command) noexcept {
  const Recipe& recipe = *context.recipe;
  ::signal(SIGPIPE, SIG_IGN);  // where the front is gone, the command's end is told to nobody
  set_capabilities(0);         // an outer filter may refuse it; nothing of the caller's is done with them
  int kept[kMostLocks + 4];
  int count = 0;
  context.op = 0;
  for (const std::string& file : recipe.lock_files) {
    const int fd = count < kMostLocks ? lock_file(file.c_str()) : -ENOLCK;
    if (fd < 0) ::kill(command, SIGKILL);
    check(context, FailedStep::kLockFile, fd);
    kept[count++] = fd;
    ++context.op;
  }
  context.op = -1;
  tie_to_parent(context);
  kept[count++] = context.status;
  kept[count++] = context.report;
  if (recipe.sync_fd >= 0) kept[count++] = recipe.sync_fd;
  close_all_but(kept, count);
  install_filters(context);
  ::close(context.report);
  int exit_code = 1;
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, __WALL);
    if (ended < 0 && errno == EINTR) continue;
    if (ended < 0) break;
    if (ended != command) continue;
    exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    const RecipeStatus told{status, nobody_left() ? 1 : 0};
    [[maybe_unused]] const ssize_t wrote = ::write(context.status, &told, sizeof told);
    ::close(context.status);
  }
  ::_exit(exit_code);
}

bool wants_init(const Recipe& recipe) noexcept {
  return !recipe.as_pid_1 && ((recipe.namespaces & CLONE_NEWPID) != 0 || !recipe.lock_files.empty() || recipe.sync_fd >= 0);
}

}  // namespace

DescriptorPath::DescriptorPath(int fd) noexcept {
  constexpr char kFolder[] = "/proc/self/fd/";
  std::memcpy(text_, kFolder, sizeof kFolder - 1);
  char buffer[12];
  char* const end = buffer + sizeof buffer;
  const char* const digits = write_digits(static_cast<unsigned>(fd), end);
  std::memcpy(text_ + sizeof kFolder - 1, digits, static_cast<std::size_t>(end - digits));
  text_[sizeof kFolder - 1 + static_cast<std::size_t>(end - digits)] = '\0';
}

// As an ordinary user all is done by the power of our own user namespace, which a command can lose (nest_users) and never gets
// back.
void enter_recipe(RecipeContext& context) noexcept {
  const Recipe& recipe = *context.recipe;
  for (const int fd : context.fronts) ::close(fd);
  // Early: whoever reads what we are waits for the end of it, and lets us go on only then.
  for (const int fd : {recipe.info_fd, recipe.json_status_fd, recipe.userns_block_fd}) {
    if (fd >= 0) ::close(fd);
  }
  tie_to_parent(context);
  await_parent(context);
  context.proc = ::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  check(context, FailedStep::kWait, result(context.proc));
  if (context.own_users && recipe.userns_block_fd < 0) map_ids(context, recipe.real_uid, recipe.real_gid);
  switch_ids(context);
  if (context.late_network) {
    network_plan.clone_flags = CLONE_NEWNET;
    network_plan.loopback_up = true;
    network_context.plan = &network_plan;
    network_context.network = -1;
    check(context, FailedStep::kLoopback, begin_network(network_context));
  } else if ((recipe.namespaces & CLONE_NEWNET) != 0) {
    check(context, FailedStep::kLoopback, raise_loopback());
  }
  context.cwd = ::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  int limit = -1;
  if (recipe.disable_userns) {
    limit = ::openat(context.proc, "sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
    check(context, FailedStep::kDisableUserns, result(limit));
  }
  const mode_t mask = ::umask(0);
  if (const int status = build_recipe_tree(context); status < 0) give_up(context, status);
  ::umask(mask);
  if (context.late_network) {
    check(context, FailedStep::kLoopback, join_network(network_context));
    check(context, FailedStep::kLoopback, end_helper(network_context));
  }
  nest_users(context, limit);
  limit_capabilities(context);
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // a change of ids took it, and the command shall own its files in /proc
  tie_to_parent(context);
  if (recipe.block_fd >= 0) {
    char byte = 0;
    while (::read(recipe.block_fd, &byte, 1) < 0 && errno == EINTR) {
    }
  }
  enter_directory(context);
  if (recipe.new_session) check(context, FailedStep::kSession, result(::setsid()));
  if (!wants_init(recipe)) become_command(context);
  int gate[2];
  check(context, FailedStep::kFork, result(::pipe2(gate, O_CLOEXEC)));
  const pid_t command = ::_Fork();
  check(context, FailedStep::kFork, command < 0 ? -errno : 0);
  if (command == 0) {
    // Not before what the caller's own environment and arguments hold is gone from /proc/1, where all that the command starts
    // could read it. They are the command's as well, so they cannot be wiped before the fork.
    ::close(gate[1]);
    char none = 0;
    while (::read(gate[0], &none, 1) < 0 && errno == EINTR) {
    }
    ::close(gate[0]);
    become_command(context);
  }
  wipe_arguments();
  ::close(gate[0]);
  ::close(gate[1]);
  be_init(context, command);
}

}  // namespace belljar::launch
