// The front's half of a recipe: clone, what the caller asked to be told, and waiting.
//
// The order follows bubblewrap's contract with its callers. Namespaces that exist are entered before the
// clone, since a pid namespace is for children alone (setns(2)). The child's pid and namespaces are written
// to info_fd and json_status_fd before it goes on; who reads them may write the id maps itself and lets us go
// on by userns_block_fd. Only then the child is told to start (`go`), and from there on this process only
// waits: it closes its descriptors and gives up its capabilities.
//
// With die_with_parent the parent-death signal is set in both processes. A change of credentials clears it
// (prctl(2)), so it is set again after each.
#include "launch/recipe.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "launch/recipe_child.h"
#include "launch/recipe_stubs.h"

namespace belljar::launch {
namespace {

using FailedStep = RecipeFailure::FailedStep;

struct Pipe {
  UniqueFd read, write;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return {};
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

RecipeFailure failure(FailedStep at, int errnum = errno) { return {.at = at, .op = -1, .errnum = errnum, .detail = {}}; }

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 2);
  for (const std::string& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  return result;
}

// The namespaces of `pid` that are its own, as info and status say them.
std::vector<std::pair<std::string_view, std::uint64_t>> namespace_ids(pid_t pid, std::uint64_t namespaces) {
  constexpr std::pair<std::string_view, std::uint64_t> kNames[] = {{"cgroup", CLONE_NEWCGROUP}, {"ipc", CLONE_NEWIPC},
                                                                   {"mnt", CLONE_NEWNS},        {"net", CLONE_NEWNET},
                                                                   {"pid", CLONE_NEWPID},       {"uts", CLONE_NEWUTS}};
  std::vector<std::pair<std::string_view, std::uint64_t>> ids;
  for (const auto& [name, flag] : kNames) {
    struct stat facts{};
    if ((namespaces & flag) != 0 && ::stat(format("/proc/{}/ns/{}", pid, name).c_str(), &facts) == 0)
      ids.emplace_back(name, facts.st_ino);
  }
  return ids;
}

class RecipeRun {
 public:
  explicit RecipeRun(const Recipe& recipe) : recipe_(recipe) {}

  RecipeEnd run() {
    if (!prepare() || !enter_given() || !clone() || !tell()) return {failed_, 1};
    return follow();
  }

 private:
  bool fail(FailedStep at, int errnum = errno) {
    failed_ = failure(at, errnum);
    return false;
  }

  bool prepare() {
    argv_ = pointers(recipe_.argv);
    argv_.push_back(nullptr);
    env_ = recipe_.env;
    context_.recipe = &recipe_;
    context_.own_users = (recipe_.namespaces & CLONE_NEWUSER) != 0;
    context_.own_proc = (recipe_.namespaces & CLONE_NEWPID) != 0 || recipe_.pidns >= 0;
    // Capabilities that the caller adds shall be no say over the sandbox's own mounts, where its recipe makes a devpts: there
    // another user namespace has always been between them.
    bool dev = false;
    for (const RecipeOp& op : recipe_.ops) dev = dev || op.kind == RecipeOp::Kind::kDev;
    context_.nested_users =
        context_.own_users && dev && recipe_.uid != 0 && recipe_.capabilities != 0 && recipe_.userns_block_fd < 0;
    // Who asks for the namespace's id must find it at once.
    context_.late_network = (recipe_.namespaces & CLONE_NEWNET) != 0 && recipe_.info_fd < 0 && recipe_.json_status_fd < 0;
    int pwd = -1;
    for (std::size_t i = 0; i < env_.size(); ++i) {
      if (env_[i].starts_with("PWD=")) pwd = static_cast<int>(i);
    }
    if (pwd < 0) {
      pwd = static_cast<int>(env_.size());
      env_.emplace_back();
    }
    pwd_[0] = "PWD=" + recipe_.chdir;
    pwd_[1] = "PWD=" + recipe_.cwd;
    pwd_[2] = "PWD=" + recipe_.home;
    pwd_[3] = "PWD=/";
    envp_ = pointers(env_);
    envp_.push_back(nullptr);
    captured_.assign(recipe_.ops.size(), -1);
    context_.captured = captured_.data();
    context_.argv = argv_.data();
    context_.envp = envp_.data();
    context_.pwd = pwd;
    context_.pwd_chdir = pwd_[0].data();
    context_.pwd_cwd = pwd_[1].data();
    context_.pwd_home = pwd_[2].data();
    context_.pwd_root = pwd_[3].data();
    report_ = make_pipe();
    status_ = make_pipe();
    go_ = make_pipe();
    if (!go_.write.valid() || !status_.write.valid() || !report_.write.valid()) return fail(FailedStep::kWait);
    context_.report = report_.write.get();
    context_.status = status_.write.get();
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) return fail(FailedStep::kWait);
    stubs_ = UniqueFd(ends[0]);
    stubs_child_ = UniqueFd(ends[1]);
    context_.stubs = stubs_child_.get();
    context_.ends_with_mounts = (recipe_.namespaces & CLONE_NEWPID) == 0;
    const int fronts[] = {report_.read.get(), status_.read.get(), go_.write.get(), stubs_.get()};
    std::copy(std::begin(fronts), std::end(fronts), context_.fronts);
    const bool waits = recipe_.die_with_parent || recipe_.info_fd >= 0 || recipe_.json_status_fd >= 0;
    if (waits) context_.go = go_.read.get();
    return true;
  }

  // Namespaces that are there already. A pid namespace is for our children alone, setns(2).
  bool enter_given() {
    if (recipe_.userns >= 0 && ::setns(recipe_.userns, CLONE_NEWUSER) < 0) return fail(FailedStep::kJoinUserns);
    if (recipe_.pidns >= 0 && ::setns(recipe_.pidns, CLONE_NEWPID) < 0) return fail(FailedStep::kJoinPidns);
    return true;
  }

  bool clone() {
    clone_args args{};
    int pidfd = -1;
    args.flags = recipe_.namespaces | CLONE_NEWNS | CLONE_PIDFD;
    if (context_.late_network) args.flags &= ~std::uint64_t{CLONE_NEWNET};
    args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
    args.exit_signal = SIGCHLD;
    long pid = ::syscall(SYS_clone3, &args, sizeof args);
    // An outer filter cannot look behind clone3's pointer and says so by ENOSYS; clone's flags it can judge.
    if (pid < 0 && errno == ENOSYS)
      pid = ::syscall(SYS_clone, static_cast<unsigned long>(args.flags | SIGCHLD), nullptr, &pidfd, nullptr, nullptr);
    if (pid == 0) enter_recipe(context_);
    if (pid < 0) return fail(FailedStep::kClone);
    pid_ = static_cast<pid_t>(pid);
    pidfd_ = UniqueFd(pidfd);
    report_.write.reset();
    status_.write.reset();
    go_.read.reset();
    stubs_child_.reset();
    return true;
  }

  // What the caller asked to be told, then the word to go on.
  bool tell() {
    const auto ids = recipe_.info_fd >= 0 || recipe_.json_status_fd >= 0
                         ? namespace_ids(pid_, recipe_.namespaces | CLONE_NEWNS)
                         : std::vector<std::pair<std::string_view, std::uint64_t>>();
    tie_to_caller();
    if (recipe_.info_fd >= 0) {
      std::string text = format("{{\n    \"child-pid\": {}", pid_);
      for (const auto& [name, id] : ids) text += format(",\n    \"{}-namespace\": {}", name, id);
      if (!write_all(recipe_.info_fd, text + "\n}\n")) return fail(FailedStep::kInfo);
      ::close(recipe_.info_fd);
    }
    if (recipe_.json_status_fd >= 0) {
      std::string text = format("{{ \"child-pid\": {}", pid_);
      for (const auto& [name, id] : ids) text += format(", \"{}-namespace\": {}", name, id);
      if (!write_all(recipe_.json_status_fd, text + " }\n")) return fail(FailedStep::kInfo);
    }
    if (recipe_.userns_block_fd >= 0) {
      char byte = 0;
      while (::read(recipe_.userns_block_fd, &byte, 1) < 0 && errno == EINTR) {
      }
    }
    if (context_.go >= 0) (void)write_all(go_.write.get(), "1");
    go_.write.reset();
    return true;
  }

  void tie_to_caller() {
    if (!recipe_.die_with_parent) return;
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (::getppid() != parent_) ::_exit(1);  // it was gone before; our child sees our end
  }

  // From here on we only wait, with no power.
  void drop_own() {
    if (recipe_.userns2 >= 0) (void)::setns(recipe_.userns2, CLONE_NEWUSER);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2]{};
    (void)::syscall(SYS_capset, &header, none);
    (void)::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    tie_to_caller();  // a change of credentials has cleared it
  }

  RecipeEnd follow() {
    close_others();
    serve_until_started();
    drop_own();
    RecipeReport report;
    ssize_t got = 0;
    do got = ::read(report_.read.get(), &report, sizeof report);
    while (got < 0 && errno == EINTR);
    if (got == sizeof report) {
      failed_ = {.at = static_cast<FailedStep>(report.at),
                 .op = report.op,
                 .errnum = report.errnum,
                 .detail = std::string(report.detail, static_cast<std::size_t>(report.detail_size))};
      (void)wait_for_child();
      await_keeper();
      return {failed_, 1};
    }
    const int exit_code = await_command();
    await_keeper();
    if (recipe_.json_status_fd >= 0) (void)write_all(recipe_.json_status_fd, format("{{ \"exit-code\": {} }}\n", exit_code));
    return {{}, exit_code};
  }

  // Until the child is the command, or has told why not. Only where it lacks a mount point on the host is there a keeper.
  void serve_until_started() {
    pollfd awaited[] = {{report_.read.get(), POLLIN, 0}, {stubs_.get(), POLLIN, 0}};
    while (awaited[0].revents == 0) {
      if (::poll(awaited, 2, -1) < 0 || awaited[1].revents == 0) continue;
      if ((awaited[1].revents & POLLIN) != 0)
        keeper_ = start_stub_keeper(stubs_.get(), {.pid_1 = context_.ends_with_mounts ? -1 : pidfd_.get(),
                                                   .users = context_.own_users ? pidfd_.get() : -1,
                                                   .switch_ids = recipe_.userns >= 0,
                                                   .uid = recipe_.uid,
                                                   .gid = recipe_.gid});
      stubs_.reset();
      awaited[1].fd = -1;
    }
    stubs_.reset();
  }

  // What the caller finds after our end shall be without stubs. Where something lives on in the sandbox, they stay as long.
  void await_keeper() {
    if (!keeper_.process.valid()) return;
    constexpr int kSure = 10'000, kPerhaps = 200;  // ms; the first is for a machine that hangs
    const bool dies = recipe_.die_with_parent && !context_.ends_with_mounts;
    if (dies) (void)::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);  // as our end would
    if (!dies && !alone_ && !context_.ends_with_mounts) return;
    if (alone_ && !context_.ends_with_mounts) (void)::send(keeper_.word.get(), "", 1, MSG_NOSIGNAL);
    pollfd gone{keeper_.word.get(), POLLIN, 0};
    while (::poll(&gone, 1, context_.ends_with_mounts ? kPerhaps : kSure) < 0 && errno == EINTR) {
    }
    (void)::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(keeper_.process.get()), nullptr, WEXITED | WNOHANG | __WALL);
  }

  // What the caller left open, whose other ends wait for its end.
  void close_others() {
    const int kept[] = {report_.read.get(), status_.read.get(),     pidfd_.get(),
                        stubs_.get(),       recipe_.json_status_fd, recipe_.userns2};
    unsigned from = 3;
    for (;;) {
      unsigned next = ~0U;
      for (const int fd : kept) {
        if (fd >= static_cast<int>(from) && static_cast<unsigned>(fd) < next) next = static_cast<unsigned>(fd);
      }
      if (next == ~0U) break;
      if (next > from) ::syscall(SYS_close_range, from, next - 1, 0);
      from = next + 1;
    }
    ::syscall(SYS_close_range, from, ~0U, 0);
  }

  static int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

  int wait_for_child() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0) {
      if (errno != EINTR) return 1;
    }
    return code_of(status);
  }

  // Pid 1 tells of the command's end, and may stay for what that started; without one the child is the command.
  int await_command() {
    RecipeStatus told;
    ssize_t got = 0;
    do got = ::read(status_.read.get(), &told, sizeof told);
    while (got < 0 && errno == EINTR);
    alone_ = got != sizeof told || told.alone != 0;
    return got == sizeof told ? code_of(told.status) : wait_for_child();
  }

  const Recipe& recipe_;
  RecipeContext context_;
  RecipeFailure failed_;
  std::vector<std::string> env_;
  std::string pwd_[4];
  std::vector<char*> argv_, envp_;
  std::vector<int> captured_;
  Pipe report_, status_, go_;
  pid_t pid_ = -1, parent_ = ::getppid();
  UniqueFd pidfd_, stubs_, stubs_child_;
  StubKeeper keeper_;
  bool alone_ = true;  // as far as we know, nothing of it lives on
};

}  // namespace

RecipeEnd run_recipe(const Recipe& recipe) { return RecipeRun(recipe).run(); }

}  // namespace belljar::launch
