// The parent's half of a start: clone3, id maps, messages of the child and of pid 1, errors as sentences.
//
// Everything that needs memory is made before clone3 (Starter::prepare): argv, environment, the candidates of PATH, the slots for
// mounts. The child works on a copy of our memory and may not allocate, since another thread may have held malloc's lock at the
// moment of the clone.
//
// clone3 is called with all signals blocked, so that no handler of the host program runs in the child; without SIGCHLD as exit
// signal, which a library's host program did not ask for (we wait on the pidfd); and into the v2 cgroup, which costs nothing
// there, while moving a process by file may wait for an RCU grace period (kernel/cgroup.h). An outer sandbox's filter answers
// clone3 with ENOSYS, since its flags lie behind a pointer; clone(2) serves then, unless there is a v2 cgroup to enter.
//
// Namespaces that can be made later are left out of the flags: the cgroup namespace must come after joining the group, and the
// network namespace is made beside the tree, or beforehand (early_setup.h).
//
// Afterwards both sides talk over one SOCK_SEQPACKET: a step that failed is {index, errno} and becomes a sentence here, with the
// step's own words (`doing`) and the path of the mount operation that failed.
#include "launch/launcher.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "kernel/cgroup.h"
#include "kernel/pass_fds.h"
#include "kernel/process_tree.h"
#include "kernel/small_file.h"
#include "launch/child.h"
#include "launch/clone_error.h"
#include "launch/early_setup.h"
#include "launch/plan.h"
#include "launch/raw.h"
#include "launch/wire.h"

namespace belljar::launch {
namespace {

constexpr std::uint32_t kFirstId = 1;     // with one_shot the command whose end is that of the sandbox
constexpr int kSetupDeadlineMs = 60'000;  // a mount of a dead network file system must not hang the caller for ever
constexpr int kStopGraceMs = 1'000;       // what a start with a command may still take once StartOptions::stop is readable

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const std::string& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

std::string_view path_of(const std::vector<std::string>& env) {
  for (const std::string& entry : env) {
    if (entry.starts_with("PATH=")) return std::string_view(entry).substr(5);
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

// What execvp(3) would try, in order. Looked up inside, by the child: what a name means is a question for the sandbox's own tree.
std::vector<std::string> candidates(const std::string& program, const std::vector<std::string>& env) {
  if (program.find('/') != std::string::npos) return {program};
  std::vector<std::string> result;
  if (program.empty()) return result;
  std::string_view path = path_of(env);
  for (;;) {
    const std::size_t colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    if (!folder.empty()) result.push_back(std::string(folder) + "/" + program);  // an empty entry means the cwd: not for us (EN-03)
    if (colon == std::string_view::npos) return result;
    path.remove_prefix(colon + 1);
  }
}

Error exec_error(const ExecRequest& request) {
  return Error(Code::kInvalidArgument, "cannot start a command without a program")
      .next(format("give a program ({} arguments seen)", request.argv.size()));
}

struct ReceivedReply {
  wire::Reply reply;
  int fds[wire::kMaxFds];  // `fd_count` of them
  int fd_count = 0;

  // With our table full the kernel drops descriptors and delivers the message (MSG_CTRUNC, unix(7)).
  bool is_whole() const {
    return fd_count == reply.has_listener + reply.has_pty + reply.has_root + reply.exported + std::popcount(reply.sockets);
  }
};

// 1 message, 0 end of the socket, -errno.
int receive(int socket, ReceivedReply& received, int flags) {
  kernel::ReceivedFds<wire::kMaxFds> got;
  // A peer that ends with words of ours unread resets the socket, and that is told once, before what the peer said last.
  do got = kernel::receive_fds<wire::kMaxFds>(socket, &received.reply, sizeof received.reply, flags);
  while (got.size < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got.size < 0) return -errno;
  if (got.size == 0) return 0;
  received.fd_count = static_cast<int>(got.count);
  std::memcpy(received.fds, got.fds, sizeof received.fds);
  return got.size == sizeof received.reply ? 1 : -EPROTO;
}

int write_map(int pid, const char* name, unsigned inside, unsigned outside) {
  const std::string text = format("{} {} 1", inside, outside);
  const UniqueFd fd(::open(format("/proc/{}/{}", pid, name).c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return errno;
  return ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : errno;
}

Event decode(const wire::Reply& reply) {
  constexpr std::string_view kCalls[] = {"execve", "chdir", "stdio", "vfork", "request"};
  Event event;
  event.exec_id = reply.exec_id;
  event.pid = reply.pid;
  event.errnum = reply.errnum;
  event.at = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(reply.at_ns));  // CLOCK_MONOTONIC in libstdc++
  switch (reply.type) {
    case wire::FromInit::kStarted:
      event.kind = Event::Kind::kStarted;
      break;
    case wire::FromInit::kExecFailed:
      event.kind = Event::Kind::kExecFailed;
      event.failed_call = kCalls[static_cast<std::size_t>(reply.where)];
      break;
    case wire::FromInit::kExited:
      event.kind = Event::Kind::kExited;
      event.exit = {reply.exec_id, reply.wait_status, reply.usage};
      break;
    case wire::FromInit::kStopped:
      event.kind = Event::Kind::kStopped;
      break;
    case wire::FromInit::kAlive:
      event.kind = Event::Kind::kAlive;
      break;
    case wire::FromInit::kPending:
      event.kind = Event::Kind::kPending;
      break;
    case wire::FromInit::kMapMe:
    case wire::FromInit::kStepFailed:
      break;
  }
  return event;
}

std::string describe(const MountOp& op) {
  constexpr std::string_view kNames[] = {"copy",
                                         "copy",
                                         "tmpfs",
                                         "proc",
                                         "devpts",
                                         "mqueue",
                                         "overlay",
                                         "attach",
                                         "detach",
                                         "set attributes of",
                                         "make directory",
                                         "make file",
                                         "write file",
                                         "make device",
                                         "link",
                                         "link",
                                         "hide",
                                         "hide names below",
                                         "set owner of",
                                         "open for the starter",
                                         "set the stage at",
                                         "hide names",
                                         "pivot into"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(MountOpKind::kPivot) + 1);
  return format("{} {}", kNames[static_cast<std::size_t>(op.kind)], quoted(op.target.empty() ? op.source : op.target));
}

// Each is held by a descriptor and looked at once more: its number is still that of a child then.
void kill_children(pid_t parent) noexcept {
  const std::vector<int> tree = kernel::list_tree(parent);
  for (const int pid : tree) {
    if (pid == parent) continue;
    const UniqueFd child(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    const std::vector<int> now = kernel::list_tree(parent);
    if (child.valid() && std::ranges::find(now, pid) != now.end())
      ::syscall(SYS_pidfd_send_signal, child.get(), SIGKILL, nullptr, 0);
  }
}

int pid_of(int pidfd) {
  const auto facts = kernel::read_small_file(AT_FDCWD, format("/proc/self/fdinfo/{}", pidfd));
  constexpr std::string_view kKey = "Pid:\t";
  const std::size_t at = facts ? facts->find(kKey) : std::string::npos;
  const auto pid = at == std::string::npos ? std::nullopt : kernel::parse_number(std::string_view(*facts).substr(at + kKey.size()));
  return pid ? static_cast<int>(*pid) : -1;
}

// Whoever was killed and does not end may be frozen by somebody else (an engine's `pause`), who is not waited for.
void await_killed(int pidfd) noexcept {
  constexpr int kPatienceMs = 500;
  pollfd gone{pidfd, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&gone, 1, kPatienceMs);
    if (ready == 0 && !kernel::thaw_process(pid_of(pidfd))) break;
  } while (ready == 0 || (ready < 0 && errno == EINTR));
  siginfo_t info{};
  while (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd), &info, WEXITED | __WALL) < 0 && errno == EINTR) {
  }
}

}  // namespace

class Starter {
 public:
  Starter(const Plan& plan, const ExecRequest* first, const StartOptions& options)
      : plan_(plan), first_(first), options_(options) {}
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;
  // The stage is closed after the last that was done on it.
  ~Starter() {
    if (plan_.early) plan_.early->end();
  }

  Result<Sandbox> run() {
    if (first_ != nullptr && first_->argv.empty()) return exec_error(*first_);
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
      return Error(Code::kResourceExhausted, "cannot make the control socket").sys(errno, "socketpair").next(kMoreFiles);
    sandbox_.control_ = UniqueFd(ends[0]);
    child_end_ = UniqueFd(ends[1]);
    front_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    if (!front_.valid())
      return Error(Code::kResourceExhausted, "cannot tie the sandbox to this process").sys(errno, "pidfd_open").next(kMoreFiles);
    prepare();
    if (plan_.early) take_early();
    BELLJAR_CHECK(clone());
    BELLJAR_CHECK(follow());
    return std::move(sandbox_);
  }

 private:
  void prepare() {
    environment_ = pointers(plan_.env);
    slots_.assign(static_cast<std::size_t>(plan_.slots), -1);
    context_.plan = &plan_;
    context_.one_shot = options_.one_shot && (first_ != nullptr || options_.first_later);
    if (context_.one_shot && first_ == nullptr) sandbox_.next_id_ = kFirstId;
    context_.time_steps = options_.time_steps;
    context_.control = child_end_.get();
    context_.front = front_.get();
    context_.slots = slots_.data();
    context_.envp = environment_.data();
    if (first_ == nullptr) return;
    const auto& env = first_->env.empty() ? plan_.env : first_->env;
    paths_ = candidates(first_->argv[0], env);
    path_pointers_ = pointers(paths_);
    argv_ = pointers(first_->argv);
    if (!first_->env.empty()) first_env_ = pointers(first_->env);
    exec_.id = kFirstId;
    exec_.cwd = first_->cwd.empty() ? plan_.default_cwd.c_str() : first_->cwd.c_str();
    exec_.paths = path_pointers_.data();
    exec_.argv = argv_.data();
    exec_.envp = first_->env.empty() ? environment_.data() : first_env_.data();
    std::memcpy(exec_.stdio, first_->stdio, sizeof exec_.stdio);
    exec_.pty = first_->pty;
    context_.first = &exec_;
  }

  void take_early() {
    made_ = plan_.early->take();
    context_.network = made_.network.get();
    context_.ipc = made_.ipc.get();
    context_.uts = made_.uts.get();
    context_.users = made_.users.get();
    context_.stage = made_.stage.get();
    if (made_.stage.valid()) context_.names = made_.names.get();
    context_.entered = made_.entered;
  }

  Result<void> clone() {
    clone_args args{};
    int pidfd = -1;
    // The cgroup namespace is made by the child after it has joined its group, the network namespace beside the tree (network.cc).
    std::uint64_t later = CLONE_NEWCGROUP;
    if (plan_.loopback_up) later |= CLONE_NEWNET;
    if (context_.ipc >= 0) later |= CLONE_NEWIPC;
    if (context_.uts >= 0) later |= CLONE_NEWUTS;
    args.flags = (plan_.clone_flags & ~later) | CLONE_PIDFD;
    args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
    args.exit_signal = 0;  // no SIGCHLD in a host program that did not ask for one; we wait on the pidfd
    if (plan_.cgroup_fd >= 0) {
      args.flags |= CLONE_INTO_CGROUP;
      args.cgroup = static_cast<std::uint64_t>(plan_.cgroup_fd);
    }
    // Signals stay blocked across the clone: a handler of the host program must not run in the child.
    sigset_t all;
    sigset_t old;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, &old);
    long pid = context_.entered ? clone_into(args) : -EAGAIN;
    if (pid < 0) pid = raw_clone(args);
    if (pid == 0) enter_sandbox(context_);
    ::sigprocmask(SIG_SETMASK, &old, nullptr);
    if (pid < 0) return clone_error(static_cast<int>(-pid), (plan_.clone_flags & CLONE_NEWUSER) != 0);
    sandbox_.init_pid_ = static_cast<int>(pid);
    sandbox_.pidfd_ = UniqueFd(pidfd);
    sandbox_.subreaper_ = plan_.subreaper;
    sandbox_.own_pid_namespace_ = (plan_.clone_flags & CLONE_NEWPID) != 0;
    sandbox_.default_cwd_ = plan_.default_cwd;
    sandbox_.default_env_.push_back("PATH=" + std::string(path_of(plan_.env)));
    child_end_.reset();
    return {};
  }

  // From the namespaces that were made beforehand. Where that fails nothing of them is made use of.
  long clone_into(clone_args args) {
    args.flags &= ~static_cast<std::uint64_t>(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS);
    const long pid = plan_.early->clone(args, context_);
    if (pid < 0) {
      context_.entered = false;
      context_.stage = context_.names = -1;
    }
    return pid;
  }

  // Until the child says something.
  Result<void> await_message() {
    const int grace = first_ != nullptr ? kStopGraceMs : 0;
    bool stopped = false;
    for (;;) {
      const auto stop = [&](std::size_t i) { return stopped ? -1 : options_.stop[i]; };  // -1 is passed over
      pollfd wait[3] = {{sandbox_.control_.get(), POLLIN, 0}, {stop(0), POLLIN, 0}, {stop(1), POLLIN, 0}};
      const int ready = ::poll(wait, 3, stopped ? grace : kSetupDeadlineMs);
      if (ready < 0 && errno == EINTR) continue;
      if (ready < 0 || wait[0].revents != 0) return {};
      if (ready == 0 && stopped)
        return Error(Code::kCanceled, "cannot set up the sandbox").reason("it was to end before its start had");
      if (ready == 0)
        return Error(Code::kDeadlineExceeded, "cannot set up the sandbox")
            .reason("a step did not end within 60 s (a mount of a file system that does not answer?)");
      stopped = true;
    }
  }

  // Serves the child until its start is decided.
  Result<void> follow() {
    for (;;) {
      BELLJAR_CHECK(await_message());
      ReceivedReply received;
      const int status = receive(sandbox_.control_.get(), received, 0);
      if (status <= 0) {
        sandbox_.kill_and_reap();
        return Error(Code::kInternal, "cannot set up the sandbox")
            .reason("pid 1 ended before the first command (killed from outside, or out of memory)");
      }
      if (received.reply.type == wire::FromInit::kMapMe) {
        map_child();
        continue;
      }
      if (received.reply.type == wire::FromInit::kStepFailed) return step_error(received.reply);
      if (!received.is_whole()) {
        for (int i = 0; i < received.fd_count; ++i) ::close(received.fds[i]);
        sandbox_.kill_and_reap();
        return Error(Code::kResourceExhausted, "cannot take the sandbox's descriptors").sys(EMFILE, "recvmsg").next(kMoreFiles);
      }
      accept(received);
      return {};
    }
  }

  void map_child() {
    wire::SignalMessage answer{wire::ToInit::kMapped, 0, 0};
    int error = write_map(sandbox_.init_pid_, "uid_map", plan_.inside_uid, plan_.outside_uid);
    if (error == 0) error = write_map(sandbox_.init_pid_, "gid_map", plan_.inside_gid, plan_.outside_gid);
    answer.signal = error;
    ::send(sandbox_.control_.get(), &answer, sizeof answer, MSG_NOSIGNAL);
  }

  Error step_error(const wire::Reply& reply) {
    const Step& step = steps()[static_cast<std::size_t>(reply.where)];
    std::string call(step.name);
    if (reply.op >= 0) call = format("{}: {}", step.name, describe(plan_.mounts[static_cast<std::size_t>(reply.op)]));
    sandbox_.kill_and_reap();
    std::string next = "see `belljar doctor` for what this machine can enforce";
    if (reply.errnum == EMFILE) next = format("{}: building the tree takes about 100", kMoreFiles);
    else if (reply.errnum == EPERM && call.starts_with("tree: proc"))
      next = "inside another sandbox, --enable-weaker-nested-sandbox goes on without a /proc of its own; see `belljar doctor`";
    return Error(reply.errnum == ENOSPC || reply.errnum == ENOMEM ? Code::kResourceExhausted : Code::kFailedPrecondition,
                 format("cannot {}", step.doing))
        .sys(reply.errnum, std::move(call))
        .next(std::move(next));
  }

  void accept(ReceivedReply& received) {
    int next = 0;
    if (received.reply.has_listener != 0) sandbox_.listener_ = UniqueFd(received.fds[next++]);
    if (received.reply.has_pty != 0) sandbox_.pty_master_ = UniqueFd(received.fds[next++]);
    sandbox_.sockets_.resize(plan_.sockets.size());
    for (std::size_t i = 0; i < plan_.sockets.size(); ++i) {
      if ((received.reply.sockets >> i & 1) != 0) sandbox_.sockets_[i] = UniqueFd(received.fds[next++]);
    }
    if (received.reply.has_root != 0) sandbox_.root_ = UniqueFd(received.fds[next++]);
    for (int i = 0; i < received.reply.exported; ++i) sandbox_.exported_.emplace_back(received.fds[next++]);
    sandbox_.routes_errno_ = received.reply.routes_errno;
    sandbox_.redirect_errno_ = received.reply.redirect_errno;
    if (options_.time_steps) {
      for (int i = 0; i < received.reply.steps; ++i)
        sandbox_.steps_.push_back({steps()[static_cast<std::size_t>(i)].name, received.reply.step_ns[i]});
    }
    for (int i = 0; i < received.reply.skipped; ++i)
      sandbox_.skipped_.push_back({received.reply.skipped_op[i], received.reply.skipped_errno[i]});
    if (first_ != nullptr) sandbox_.pending_ = decode(received.reply);
  }

  const Plan& plan_;
  const ExecRequest* first_;
  StartOptions options_;
  Sandbox sandbox_;
  UniqueFd child_end_, front_;
  EarlySetup::Resources made_;
  ChildContext context_;
  PreparedExec exec_;
  std::vector<int> slots_;
  std::vector<std::string> paths_;
  std::vector<char*> environment_, path_pointers_, argv_, first_env_;
};

Result<Sandbox> start(const Plan& plan, const ExecRequest* first, const StartOptions& options) {
  return Starter(plan, first, options).run();
}

void forget_start(Plan& plan) noexcept {
  const auto drop = [](auto&... lists) { ((lists = std::remove_reference_t<decltype(lists)>()), ...); };
  drop(plan.sockets, plan.routes, plan.redirect, plan.mounts, plan.stage_names, plan.stage_rest, plan.kept_fds, plan.rlimits,
       plan.landlock, plan.seccomp, plan.join_files, plan.early);
}

Sandbox::Sandbox(Sandbox&& other) noexcept = default;

// By the two that know all members: a list of them here would miss the next one.
Sandbox& Sandbox::operator=(Sandbox&& other) noexcept {
  if (this == &other) return *this;
  std::destroy_at(this);
  return *std::construct_at(this, std::move(other));
}

Sandbox::~Sandbox() { kill_and_reap(); }

void Sandbox::kill_and_reap() noexcept {
  if (!pidfd_.valid()) return;
  if (subreaper_) {
    // Pid 1 sees the end of the socket, sweeps the tree and leaves; a sender may hold it open.
    ::shutdown(control_.get(), SHUT_RDWR);
    control_.reset();
    pollfd gone{pidfd_.get(), POLLIN, 0};
    // One that does not: without it the guard sweeps, and without the guard nobody would.
    if (::poll(&gone, 1, 5000) == 0) {
      kill_children(init_pid_);
      ::poll(&gone, 1, 5000);
    }
  }
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
  await_killed(pidfd_.get());
  pidfd_.reset();
  control_.reset();
}

UniqueFd Sandbox::let_go() noexcept {
  if (!pidfd_.valid() || !own_pid_namespace_) {
    kill_and_reap();
    return {};
  }
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);  // it is on its way out; now whatever happens
  control_.reset();
  return std::move(pidfd_);
}

void await_end(const UniqueFd& pidfd) noexcept {
  if (pidfd.valid()) await_killed(pidfd.get());
}

std::optional<Event> Sandbox::next_event() {
  if (pending_) return std::exchange(pending_, std::nullopt);
  if (!control_.valid()) return Event{};
  ReceivedReply received;
  const int status = receive(control_.get(), received, MSG_DONTWAIT);
  if (status == -EAGAIN) return std::nullopt;
  if (status <= 0) return Event{};
  for (int i = 0; i < received.fd_count; ++i) ::close(received.fds[i]);
  return decode(received.reply);
}

void Sandbox::signal(std::uint32_t exec_id, int signal) noexcept {
  const wire::SignalMessage message{wire::ToInit::kSignal, exec_id, signal};
  ::send(control_.get(), &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Sandbox::signal_alone(std::uint32_t exec_id, int signal) noexcept {
  const wire::SignalMessage message{wire::ToInit::kSignalAlone, exec_id, signal};
  ::send(control_.get(), &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Sandbox::give_up(std::uint32_t exec_id) noexcept {
  const wire::SignalMessage message{wire::ToInit::kGiveUp, exec_id, 0};
  ::send(control_.get(), &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::uint32_t Sandbox::ping() noexcept {
  const wire::SignalMessage message{wire::ToInit::kPing, next_id_++, 0};
  ::send(control_.get(), &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
  return message.exec_id;
}

Result<PackedExec> Sandbox::pack(const ExecRequest& request) const {
  if (request.argv.empty()) return exec_error(request);
  const std::vector<std::string> paths = candidates(request.argv[0], request.env.empty() ? default_env_ : request.env);
  wire::ExecHeader header;
  header.pty = request.pty ? 1 : 0;
  header.own_terminal = request.own_terminal ? 1 : 0;
  header.adopt = request.adopt ? 1 : 0;
  std::string strings = request.cwd.empty() ? default_cwd_ : request.cwd;
  strings.push_back('\0');
  const auto append = [&](const std::vector<std::string>& list) {
    for (const std::string& text : list) strings.append(text).push_back('\0');
    return static_cast<std::uint32_t>(list.size());
  };
  header.paths = append(paths);
  header.argc = append(request.argv);
  header.envc = append(request.env);
  header.bytes = static_cast<std::uint32_t>(strings.size());
  PackedExec packed;
  for (unsigned i = 0; i < 3; ++i) {
    if (request.stdio[i] < 0) continue;
    header.has_stdio |= 1U << i;
    packed.fds[static_cast<std::size_t>(packed.fd_count++)] = request.stdio[i];
  }
  if (strings.size() > wire::kInlineExec) {
    packed.memory = UniqueFd(::memfd_create("belljar-exec", MFD_CLOEXEC));
    if (!packed.memory.valid() || !write_all(packed.memory.get(), strings))
      return Error(Code::kResourceExhausted, "cannot pass the command to the sandbox").sys(errno, "memfd_create");
    header.in_memfd = 1;
    packed.fds[static_cast<std::size_t>(packed.fd_count++)] = packed.memory.get();
    strings.clear();
  }
  packed.bytes.assign(reinterpret_cast<const char*>(&header), sizeof header);
  packed.bytes += strings;
  return packed;
}

int Sandbox::send(PackedExec& packed) noexcept {
  std::memcpy(packed.bytes.data() + offsetof(wire::ExecHeader, exec_id), &next_id_, sizeof next_id_);
  ssize_t sent = 0;
  do
    sent = kernel::send_fds<4>(control_.get(), packed.bytes.data(), packed.bytes.size(), packed.fds.data(),
                               static_cast<std::size_t>(packed.fd_count), MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  if (sent < 0) return -errno;
  ++next_id_;
  return 0;
}

Result<std::uint32_t> Sandbox::exec(const ExecRequest& request) {
  PackedExec packed = BELLJAR_TRY(pack(request));
  if (const int status = send(packed); status != 0)
    return Error(Code::kUnavailable, "cannot reach pid 1 of the sandbox").sys(-status, "sendmsg");
  return next_id_ - 1;
}

}  // namespace belljar::launch
