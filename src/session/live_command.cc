// One command of a live sandbox, as the thread that waits for it sees it.
//
// The pipes are made here and their far ends go to pid 1 with the request. The waiter polls the near ends
// itself. No thread of ours feeds the stdin of an exec: what fits into an empty pipe is written before the
// command exists, and anything larger goes into a sealed memfd (memfd_create(2), F_ADD_SEALS in fcntl(2)),
// which reads to its end without a writer.
//
// The exit of the command ends the wait, not the end of its pipes. A process that it left in the background may
// hold them open for ever. What the command itself wrote is in the pipes when its exit is told, so drain()
// reads what is there and no more.
//
// Sending never blocks. Where the socket to pid 1 is full, the request waits here and is tried again when
// poll(2) reports room, for as long as the command's own time. If that time is over first, the request is
// dropped: nothing of it can run later.
//
// A pid 1 that was stopped or frozen would run what it was sent whenever it goes on, long after the command's
// time. Giving up on the one command would therefore not end it, and the whole sandbox is ended instead
// (check_pid1).
#include "session/live_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/held_signal.h"
#include "base/patience.h"
#include "base/write_all.h"
#include "command/ending.h"
#include "command/running_command.h"
#include "runtime/run.h"
#include "runtime/start_failure.h"
#include "runtime/violations.h"

namespace belljar::session {
namespace {

using command::EndMode;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

// What fits into a new pipe, pipe(7): such input needs nobody to feed it.
constexpr std::size_t kFitsPipe = 64U << 10;
// Larger than any pipe a command can make of ours (pipe-max-size): who still writes then is another one.
constexpr std::uint64_t kDrainAtMost = 2U << 20;
constexpr milliseconds kTryAgain = 100ms;
// So often, kTryAgain apart, pid 1 is seen to tell nobody anything before it counts as gone. Looks and not time, since time passes
// also while all of us are stopped.
constexpr int kSilentLooks = 100;

Error no_descriptors(const char* call) {
  return Error(Code::kResourceExhausted, "cannot start a command").sys(errno, call).next("raise `ulimit -n`, or run fewer at once");
}

struct Pipe {
  UniqueFd read, write;
};

// Our end never blocks us; the command's end is an ordinary one.
Result<Pipe> open_pipe(bool ours_reads) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return no_descriptors("pipe2");
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::fcntl(ours_reads ? ends[0] : ends[1], F_SETFL, O_NONBLOCK);
  return pipe;
}

// write(2) to a pipe that nobody reads raises SIGPIPE.
ssize_t write_quietly(int fd, std::string_view bytes) {
  const HeldSignal nobody_reads(SIGPIPE);
  return ::write(fd, bytes.data(), bytes.size());
}

}  // namespace

LiveCommand::LiveCommand(std::shared_ptr<LiveInstance> instance, command::Request request, StdioFds handed)
    : RunningCommand(std::move(request), kTryAgain),
      instance_(std::move(instance)),
      use_(std::in_place, *instance_),
      stdio_fds_(std::move(handed)) {}

LiveCommand::~LiveCommand() {
  if (state_ != nullptr) instance_->forget(id_);
}

Result<std::shared_ptr<LiveCommand>> LiveCommand::start(std::shared_ptr<LiveInstance> instance, command::Request given,
                                                        StdioFds handed) {
  std::shared_ptr<LiveCommand> running(new LiveCommand(std::move(instance), std::move(given), std::move(handed)));
  const command::Request& wanted = running->request_;
  launch::ExecRequest request;
  request.argv = wanted.command.argv;
  request.cwd = BELLJAR_TRY(running->instance_->files().find_cwd(wanted.command.cwd));
  if (!wanted.command.env.empty()) request.env = running->instance_->environment_with(wanted.command.env);
  request.adopt = true;
  if (!running->valid()) return no_descriptors("eventfd");
  if (wanted.terminal) BELLJAR_CHECK(running->open_terminal(request));
  else BELLJAR_CHECK(running->open_streams(request));
  running->opened_ = BELLJAR_TRY(running->instance_->open_hosts(wanted.allowed_domains));
  running->ending_.clock().begin(Steady::now());
  running->unsent_ = BELLJAR_TRY(running->instance_->pack(request));
  BELLJAR_CHECK(running->send());
  return running;
}

// One try.
Result<void> LiveCommand::send() {
  auto started = BELLJAR_TRY(instance_->send(*unsent_));
  if (!started) {
    if (!room_.valid()) room_ = BELLJAR_TRY(instance_->room());
    return {};
  }
  id_ = started->id;
  state_ = std::move(started->state);
  unsent_.reset();
  room_.reset();
  for (UniqueFd& end : ends_) end.reset();
  return {};
}

// Also to a command that is not us: else it could not open /dev/stdout.
Result<void> LiveCommand::lend(int end, launch::ExecRequest& request) {
  request.stdio[end] = ends_[end].get();
  const auto lent = instance_->lent_identity();
  if (lent && ends_[end].valid() && ::fchown(ends_[end].get(), lent->first, lent->second) < 0) return no_descriptors("fchown");
  return {};
}

Result<void> LiveCommand::use_stdio_fds(launch::ExecRequest& request) {
  for (int n = request_.terminal ? 2 : 0; n < 3; ++n) {
    UniqueFd& end = (*stdio_fds_)[static_cast<std::size_t>(n)];
    if (!end.valid() && request_.terminal) return {};
    ends_[n] = std::move(end);
    BELLJAR_CHECK(lend(n, request));
  }
  return {};
}

Result<void> LiveCommand::open_streams(launch::ExecRequest& request) {
  if (stdio_fds_) return use_stdio_fds(request);
  BELLJAR_CHECK(open_input(request));
  for (int n = 1; n <= 2; ++n) {
    Pipe pipe = BELLJAR_TRY(open_pipe(true));
    (n == 1 ? out_ : err_) = std::move(pipe.read);
    ends_[n] = std::move(pipe.write);
    BELLJAR_CHECK(lend(n, request));
  }
  return {};
}

Result<void> LiveCommand::open_input(launch::ExecRequest& request) {
  const std::string& bytes = request_.stdin_bytes;
  if (!request_.stdin_pipe && bytes.empty()) return {};
  if (request_.stdin_pipe || bytes.size() <= kFitsPipe) {
    Pipe pipe = BELLJAR_TRY(open_pipe(false));
    // A user who has many pipes gets small ones (pipe-user-pages-soft, pipe(7)).
    if (bytes.empty() || ::write(pipe.write.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()))
      ends_[0] = std::move(pipe.read);
    if (request_.stdin_pipe) input_ = std::move(pipe.write);
  }
  if (!ends_[0].valid()) {
    // A file of its own in memory, that nobody can write to any more.
    UniqueFd file(::memfd_create("stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file.valid()) return no_descriptors("memfd_create");
    if (!write_all(file.get(), bytes)) return no_descriptors("write");
    ::lseek(file.get(), 0, SEEK_SET);
    if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
      return no_descriptors("fcntl");
    ends_[0] = std::move(file);
  }
  return lend(0, request);
}

Result<void> LiveCommand::open_terminal(launch::ExecRequest& request) {
  UniqueFd master = BELLJAR_TRY(instance_->files().open_terminal());
  const winsize size{request_.terminal->rows, request_.terminal->columns, 0, 0};
  ::ioctl(master.get(), TIOCSWINSZ, &size);
  ends_[0] = UniqueFd(::ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!ends_[0].valid()) return no_descriptors("TIOCGPTPEER");
  request.own_terminal = true;
  for (int& fd : request.stdio) fd = ends_[0].get();
  if (stdio_fds_) {
    pty_master_ = std::move(master);
    return use_stdio_fds(request);
  }
  input_ = UniqueFd(::fcntl(master.get(), F_DUPFD_CLOEXEC, 3));
  if (!input_.valid()) return no_descriptors("fcntl");
  out_ = std::move(master);
  return {};
}

// --- waiting

// Until it is sent, or has to end before that: then nothing of it runs, now or later.
void LiveCommand::send_in_time() {
  constexpr char kNotTaken[] = "pid 1 of the sandbox did not take the command";
  while (unsent_ && !over()) {
    const auto deadline = ending_.next();
    const Time again = Steady::now() + kTryAgain;
    const auto [rung, token] = control_fds();
    std::array<pollfd, 3> set = {{{room_.get(), POLLOUT, 0}, {rung, POLLIN, 0}, {token, POLLIN, 0}}};
    const timespec wait = command::until(deadline ? std::min(*deadline, again) : again);
    const int ready = ::ppoll(set.data(), set.size(), &wait, nullptr);
    if (const auto sent = send(); !sent) {
      gone_ = true;
      lost_ = sent.error().line();
    } else if (!unsent_) {
      return;
    } else if (ending_.due(Steady::now(), EndMode::kAtOnce) != command::EndAction::kNone) {
      ending_.add(kNotTaken);
    } else if (wants_end()) {
      ending_.stop(command::cancelled(), EndMode::kAtOnce, Steady::now());
      ending_.add(kNotTaken);
    } else if (ready == 0 && !deadline) {
      check_pid1();
    }
  }
}

// Without a timeout nothing is due: pid 1 is looked for instead.
int LiveCommand::await_start() {
  send_in_time();
  if (unsent_) return 0;
  bool ending = false;
  for (;;) {
    {
      const std::lock_guard lock(state_->mutex);
      state_->wants_start = !ending;
      if (state_->failed || state_->gone) return 0;
      if (state_->started) {
        if (!state_->exited) state_->wake.take();  // unless it told of more than the start
        return state_->started->pid;
      }
      if (ending || gone_) return 0;
    }
    const auto deadline = ending_.next();
    std::array<pollfd, 2> set = {{{state_->wake.get(), POLLIN, 0}, {request_.cancel.fd(), POLLIN, 0}}};
    const timespec wait = command::until(deadline.value_or(Steady::now() + kTryAgain));
    const int ready = ::ppoll(set.data(), set.size(), &wait, nullptr);
    ending = (deadline && Steady::now() >= *deadline) || set[1].revents != 0;
    if (ready == 0 && !deadline) check_pid1();
  }
}

void LiveCommand::look() {
  send_in_time();
  if (state_ == nullptr) return;
  const std::lock_guard lock(state_->mutex);
  if (state_->started && !started_) ending_.clock().begin(state_->started->at);  // the clock runs from execve
  started_ = state_->started;
  failed_ = state_->failed;
  exited_ = state_->exited;
  limits_ = state_->limits;
  gone_ = gone_ || state_->gone;
}

void LiveCommand::wait(std::optional<Time> deadline) {
  const auto [rung, token] = control_fds();
  std::array<pollfd, 5> set = {
      {{state_->wake.get(), POLLIN, 0}, {rung, POLLIN, 0}, {token, POLLIN, 0}, {out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}}};
  const timespec wait = command::until(deadline);
  if (::ppoll(set.data(), set.size(), deadline ? &wait : nullptr, nullptr) <= 0) return;
  if (set[3].revents != 0) read_some(Stream::kOut);
  if (set[4].revents != 0) read_some(Stream::kErr);
  if (set[0].revents != 0) look();
}

// One read; false when there is nothing now, or nothing any more.
bool LiveCommand::read_some(Stream stream) {
  UniqueFd& fd = stream == Stream::kOut ? out_ : err_;
  if (!fd.valid()) return false;
  std::array<char, 64U << 10> buffer;
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (got <= 0) {  // a terminal's end is EIO
    fd.reset();
    return false;
  }
  drained_ += static_cast<std::uint64_t>(got);
  take(stream, {buffer.data(), static_cast<std::size_t>(got)});
  return true;
}

// What the command wrote before its end is in the pipes by now. Others of the sandbox may hold the pipes open and go on writing:
// they are not waited for.
void LiveCommand::drain() {
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    drained_ = 0;
    while (drained_ <= kDrainAtMost && read_some(stream)) {
    }
  }
}

// --- the end

// TERM to the tree as it is, KILL after the grace to what is left of it and what came of that.
void LiveCommand::advance_end(command::EndAction act) {
  look();
  if (over()) return;
  if (started_ && !std::exchange(was_told_, true)) {
    orphans_ = Orphans(instance_->init_pid());
    tree_ = CommandTree::find(instance_->init_pid(), started_->pid);
  }
  if (act != command::EndAction::kTerm) return kill_tree();
  tree_.signal(SIGTERM);
  // A stopped process takes TERM only when it goes on.
  tree_.signal(SIGCONT);
}

// Again and again, until its end is told.
void LiveCommand::kill_tree() {
  ending_.clock().told(Steady::now());
  check_pid1();
  if (gone_) return;
  if (started_) {
    if (tree_.empty()) tree_ = CommandTree::find(instance_->init_pid(), started_->pid);
    // A tree that forks faster than it dies takes the others of the sandbox with it.
    if (!tree_.end()) instance_->signal(0, SIGKILL);
    instance_->signal(id_, SIGKILL);
  } else {
    instance_->give_up(id_);
  }
}

// It tells of the start and of the end soon, unless it serves nobody, as one that was stopped or frozen from outside. Then it would
// start whenever it goes on what it was sent, long after its time: so all of the sandbox ends.
void LiveCommand::check_pid1() {
  instance_->ping();
  const std::uint64_t received = instance_->events_received();
  silent_looks_ = received == received_ ? silent_looks_ + 1 : 0;
  received_ = received;
  if (silent_looks_ < kSilentLooks) return;
  instance_->kill("its pid 1 did not answer");
  lost_ = "pid 1 of the sandbox did not answer, and the sandbox was ended";
  ending_.add(lost_);
  gone_ = true;
}

// --- what came of it

Result<ExecResult> LiveCommand::result() {
  drain();
  ended_ = true;
  ExecResult result;
  if (failed_) {
    result = runtime::failed_start(
        runtime::explain_start_failure(failed_->errnum, failed_->failed_call, request_.command.argv[0],
                                       request_.command.cwd.empty() ? instance_->files().workspace() : request_.command.cwd));
    instance_->take_seen(result);
  } else {
    set_end(result);
    // Daemons that outlived the TERM of their parent, which ended by it, were part of what had to end.
    const bool all_ended = !(ending_.ending() || was_told_) ||
                           ((tree_.empty() || tree_.end()) && orphans_.end([this] { return instance_->pids_of_commands(); }));
    if (!all_ended) instance_->signal(0, SIGKILL);
    streams_.finish(result);
    instance_->take_seen(result);
    runtime::add_limit_violations(result, instance_->policy(), instance_->origins(), request_.command.argv[0], request_.timeout);
  }
  opened_.reset();
  use_.reset();
  return result;
}

void LiveCommand::set_end(ExecResult& result) {
  const Time begun = ending_.clock().begun();
  if (!exited_) {
    // Where the sandbox went, that is why, whatever had been meant for the command.
    if (silent_looks_ < kSilentLooks && !unsent_) ending_.forgive();
    ending_.tell_lost(result, lost_);
    result.duration = std::chrono::duration_cast<std::chrono::microseconds>(Steady::now() - begun);
    return;
  }
  ending_.tell_exit(result, exited_->exit.wait_status);
  result.duration = std::chrono::duration_cast<std::chrono::microseconds>(exited_->at - begun);
  result.usage = command::usage_of(exited_->exit.usage);
  if (limits_) result.limits_hit = limits_->limits_hit;
  if (ending_.ending()) return;
  // What ended with a code of its own was ended by no limit, whatever was over one meanwhile. 128+n may be a shell's word for it.
  const bool was_ended = result.exit_code == 128 + SIGKILL || result.exit_code == 128 + SIGXFSZ;
  if (limits_ && limits_->reason && was_ended) {
    ending_.tell_limit(result, *limits_->reason, limits_->message);
  } else if (const auto hit = instance_->hit(); hit && result.signal == SIGKILL) {
    ending_.tell_limit(result, hit->reason, hit->message);
    result.limits_hit.push_back(hit->limit);
  }
}

// --- from other threads

Result<void> LiveCommand::signal(int number) {
  const std::uint32_t id = id_.load();
  if (id == 0) return Error(Code::kFailedPrecondition, "cannot signal the command").reason("it was never sent");  // 0 is all
  instance_->signal(id, number);
  return {};
}

Result<void> LiveCommand::write(std::string_view bytes, milliseconds patience) {
  const std::lock_guard lock(input_mutex_);
  if (!input_.valid()) return command::no_input("it was spawned without a pipe for it, or the pipe is closed");
  const Time end = Steady::now() + bounded(patience);
  while (!bytes.empty()) {
    const ssize_t written = write_quietly(input_.get(), bytes);
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    if (errno == EPIPE || errno == EIO) return command::no_input("nobody reads it any more");
    if (errno != EAGAIN && errno != EINTR) return command::no_input("the pipe failed");
    const auto left = std::chrono::duration_cast<milliseconds>(end - Steady::now()).count();
    if (left <= 0) return command::not_read(patience);
    if (ended_.load()) return command::no_input("the command has ended");
    pollfd wait{input_.get(), POLLOUT, 0};
    // In short steps: a descendant may hold the pipe open after the command's end.
    ::poll(&wait, 1, static_cast<int>(std::min<std::int64_t>(left, 200)));
  }
  return {};
}

Result<void> LiveCommand::close_input() {
  if (request_.terminal) return write("\x04", 5s);
  const std::lock_guard lock(input_mutex_);
  input_.reset();
  return {};
}

Result<void> LiveCommand::resize(unsigned short rows, unsigned short columns) {
  const std::lock_guard lock(input_mutex_);
  const winsize size{rows, columns, 0, 0};
  if (!request_.terminal || ::ioctl(input_.get(), TIOCSWINSZ, &size) < 0) return command::no_terminal();
  return {};
}

}  // namespace belljar::session
