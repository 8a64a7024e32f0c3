#include "session/running.h"

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

#include "base/format.h"
#include "base/write_all.h"
#include "policy/defaults.h"
#include "runtime/run.h"
#include "runtime/start_failure.h"
#include "runtime/supervise.h"
#include "runtime/violations.h"

namespace belljar::session {
namespace {

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

timespec until(std::optional<std::chrono::steady_clock::time_point> deadline, std::chrono::steady_clock::time_point now) {
  if (!deadline || *deadline <= now) return {};
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(*deadline - now).count();
  return {static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
}

std::chrono::microseconds micro(const timeval& time) { return std::chrono::microseconds(time.tv_sec * 1'000'000LL + time.tv_usec); }

}  // namespace

Running::Running(std::shared_ptr<Core> core, RunRequest request)
    : core_(std::move(core)),
      use_(std::in_place, *core_),
      request_(std::move(request)),
      out_{{}, command::Capture(request_.output_bytes), &request_.on_stdout},
      err_{{}, command::Capture(request_.output_bytes), &request_.on_stderr} {}

Running::~Running() {
  if (state_ != nullptr) core_->forget(id_);
}

Result<std::unique_ptr<Running>> Running::start(std::shared_ptr<Core> core, RunRequest given) {
  std::unique_ptr<Running> running(new Running(std::move(core), std::move(given)));
  RunRequest& wanted = running->request_;
  launch::ExecRequest request;
  request.argv = wanted.command.argv;
  request.cwd = BELLJAR_TRY(running->core_->files().find_cwd(wanted.command.cwd));
  if (!wanted.command.env.empty()) request.env = running->core_->environment_with(wanted.command.env);
  request.adopt = true;
  if (!running->own_cancel_.valid()) return no_descriptors("eventfd");
  if (wanted.terminal) BELLJAR_CHECK(running->open_terminal(request));
  else BELLJAR_CHECK(running->open_streams(request));
  running->opened_ = BELLJAR_TRY(running->core_->open_hosts(wanted.allowed_domains));
  running->sent_ = Clock::now();
  running->unsent_ = BELLJAR_TRY(running->core_->pack(request));
  BELLJAR_CHECK(running->send());
  return running;
}

// One try.
Result<void> Running::send() {
  auto started = BELLJAR_TRY(core_->send(*unsent_));
  if (!started) {
    if (!room_.valid()) room_ = BELLJAR_TRY(core_->room());
    return {};
  }
  id_ = started->id;
  state_ = std::move(started->state);
  unsent_.reset();
  room_.reset();
  for (UniqueFd& end : ends_) end.reset();
  return {};
}

Result<void> Running::take_handed(launch::ExecRequest& request) {
  const auto lent = core_->lent_identity();
  for (int n = request_.terminal ? 2 : 0; n < 3; ++n) {
    UniqueFd& end = (*request_.handed)[static_cast<std::size_t>(n)];
    if (!end.valid() && request_.terminal) return {};
    ends_[n] = std::move(end);
    request.stdio[n] = ends_[n].get();
    if (lent && ends_[n].valid() && ::fchown(ends_[n].get(), lent->first, lent->second) < 0) return no_descriptors("fchown");
  }
  return {};
}

Result<void> Running::open_streams(launch::ExecRequest& request) {
  if (request_.handed) return take_handed(request);
  BELLJAR_CHECK(open_input(request));
  const auto lent = core_->lent_identity();
  for (int n = 1; n <= 2; ++n) {
    Pipe pipe = BELLJAR_TRY(open_pipe(true));
    (n == 1 ? out_ : err_).fd = std::move(pipe.read);
    ends_[n] = std::move(pipe.write);
    request.stdio[n] = ends_[n].get();
    // Else a command that is not us could not open /dev/stdout.
    if (lent && ::fchown(ends_[n].get(), lent->first, lent->second) < 0) return no_descriptors("fchown");
  }
  return {};
}

Result<void> Running::open_input(launch::ExecRequest& request) {
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
  request.stdio[0] = ends_[0].get();
  const auto lent = core_->lent_identity();
  if (lent && ::fchown(ends_[0].get(), lent->first, lent->second) < 0) return no_descriptors("fchown");
  return {};
}

Result<void> Running::open_terminal(launch::ExecRequest& request) {
  UniqueFd master = BELLJAR_TRY(core_->files().open_terminal());
  const winsize size{request_.terminal->rows, request_.terminal->columns, 0, 0};
  ::ioctl(master.get(), TIOCSWINSZ, &size);
  ends_[0] = UniqueFd(::ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!ends_[0].valid()) return no_descriptors("TIOCGPTPEER");
  request.own_terminal = true;
  for (int& fd : request.stdio) fd = ends_[0].get();
  if (request_.handed) {
    handed_master_ = std::move(master);
    return take_handed(request);
  }
  input_ = UniqueFd(::fcntl(master.get(), F_DUPFD_CLOEXEC, 3));
  if (!input_.valid()) return no_descriptors("fcntl");
  out_.fd = std::move(master);
  return {};
}

// --- waiting

// Until it is sent, or has to end before that: then nothing of it runs, now or later.
void Running::send_in_time() {
  while (unsent_ && !cause_ && !gone_) {
    const auto deadline = request_.timeout ? std::optional(sent_ + *request_.timeout) : std::nullopt;
    const Clock::time_point next = Clock::now() + kTryAgain;
    std::array<pollfd, 3> set = {{{room_.get(), POLLOUT, 0}, {own_cancel_.get(), POLLIN, 0}, {request_.cancel.fd(), POLLIN, 0}}};
    const timespec wait = until(deadline ? std::min(*deadline, next) : next, Clock::now());
    const int ready = ::ppoll(set.data(), set.size(), &wait, nullptr);
    if (const auto sent = send(); !sent) {
      gone_ = true;
      message_ = sent.error().line();
    } else if (!unsent_) {
      return;
    } else if (deadline && Clock::now() >= *deadline) {
      cause_ = Reason::kTimeout;
      message_ = timeout_message(*request_.timeout) + "; pid 1 of the sandbox did not take the command";
    } else if (set[1].revents != 0 || set[2].revents != 0) {
      cause_ = Reason::kCancelled;
      message_ = "cancelled by the caller; pid 1 of the sandbox did not take the command";
    } else if (ready == 0 && !deadline) {
      look_for_pid1();
    }
  }
}

// What is due or cancelled before it is told of goes to finish(), which ends it. Without a timeout nothing is due: pid 1 is looked
// for instead.
int Running::await_start() {
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
    const auto deadline = next_deadline();
    std::array<pollfd, 2> set = {{{state_->wake.get(), POLLIN, 0}, {request_.cancel.fd(), POLLIN, 0}}};
    const timespec wait = until(deadline.value_or(Clock::now() + kTryAgain), Clock::now());
    const int ready = ::ppoll(set.data(), set.size(), &wait, nullptr);
    ending = (deadline && Clock::now() >= *deadline) || set[1].revents != 0;
    if (ready == 0 && !deadline) look_for_pid1();
  }
}

ExecResult Running::finish() {
  send_in_time();
  look();
  while (!unsent_ && !exited_ && !failed_ && !gone_) turn();
  drain();
  ExecResult end = result();
  if (thrown_) core_->give_back(end);
  opened_.reset();
  use_.reset();
  if (thrown_) std::rethrow_exception(thrown_);
  return end;
}

void Running::cancel() noexcept { own_cancel_.ring(); }

void Running::look() {
  if (state_ == nullptr) return;
  const std::lock_guard lock(state_->mutex);
  started_ = state_->started;
  failed_ = state_->failed;
  exited_ = state_->exited;
  limits_ = state_->limits;
  gone_ = gone_ || state_->gone;
}

void Running::turn() {
  const Clock::time_point now = Clock::now();
  check_deadlines(now);
  std::array<pollfd, 5> set = {{{state_->wake.get(), POLLIN, 0},
                                {own_cancel_.get(), POLLIN, 0},
                                {cause_ || detached_.load() ? -1 : request_.cancel.fd(), POLLIN, 0},
                                {out_.fd.get(), POLLIN, 0},
                                {err_.fd.get(), POLLIN, 0}}};
  if (cause_) set[1].fd = -1;
  const auto deadline = next_deadline();
  const timespec wait = until(deadline, now);
  if (::ppoll(set.data(), set.size(), deadline ? &wait : nullptr, nullptr) <= 0) return;
  if (set[3].revents != 0) read_some(out_);
  if (set[4].revents != 0) read_some(err_);
  if (set[0].revents != 0) look();
  if (exited_ || failed_ || gone_) return;
  if (set[1].revents != 0 || set[2].revents != 0)
    stop(Reason::kCancelled, "cancelled by the caller", core_->policy().limits.kill_grace);
}

// One read; false when there is nothing now, or nothing any more.
bool Running::read_some(Stream& stream) {
  if (!stream.fd.valid()) return false;
  std::array<char, 64U << 10> buffer;
  const ssize_t got = ::read(stream.fd.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (got <= 0) {  // a terminal's end is EIO
    stream.fd.reset();
    return false;
  }
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
  stream.capture.append(bytes);
  stream.read += bytes.size();
  if (*stream.callback && !thrown_ && !detached_.load()) {
    try {
      (*stream.callback)(bytes);
    } catch (...) {
      thrown_ = std::current_exception();
      stop(Reason::kCancelled, "a callback of the caller failed", 0ms);
    }
  }
  if (stream.capture.over() && core_->policy().limits.output_action == OutputAction::kKill)
    stop(Reason::kOutput, format("the output exceeded the limit of {} bytes", request_.output_bytes), 0ms);
  return true;
}

// What the command wrote before its end is in the pipes by now. Others of the sandbox may hold the pipes open and go on writing:
// they are not waited for.
void Running::drain() {
  for (Stream* stream : {&out_, &err_}) {
    stream->read = 0;
    while (stream->read <= kDrainAtMost && read_some(*stream)) {
    }
  }
}

// --- the end

std::optional<Running::Clock::time_point> Running::next_deadline() const {
  if (kill_at_) return kill_at_;
  if (cause_ || !request_.timeout || detached_.load()) return {};
  return (started_ ? started_->at : sent_) + *request_.timeout;
}

void Running::check_deadlines(Clock::time_point now) {
  if (kill_at_ && now >= *kill_at_) return kill();
  if (cause_ || !request_.timeout || now < sent_ + *request_.timeout) return;
  look();  // the clock runs from execve, which the start tells
  const auto deadline = next_deadline();
  if (deadline && now >= *deadline && !exited_)
    stop(Reason::kTimeout, timeout_message(*request_.timeout), core_->policy().limits.kill_grace);
}

// TERM to the tree as it is, KILL after the grace to what is left of it and what came of that. CONT because a stopped process does
// not see TERM.
void Running::stop(Reason reason, std::string message, milliseconds grace) {
  if (cause_) return;
  cause_ = reason;
  message_ = std::move(message);
  look();
  if (exited_ || failed_ || gone_) return;
  if (started_) {
    orphans_ = Orphans(core_->init_pid());
    tree_ = CommandTree::find(core_->init_pid(), started_->pid);
  }
  if (grace <= 0ms || !started_) return kill();
  tree_.signal(SIGTERM);
  tree_.signal(SIGCONT);
  kill_at_ = Clock::now() + grace;
}

void Running::kill() {
  look();
  kill_at_ = Clock::now() + kTryAgain;
  look_for_pid1();
  if (gone_) return;
  if (started_) {
    if (tree_.empty()) tree_ = CommandTree::find(core_->init_pid(), started_->pid);
    // A tree that forks faster than it dies takes the others of the sandbox with it.
    if (!tree_.end()) core_->signal(0, SIGKILL);
    core_->signal(id_, SIGKILL);
  } else {
    core_->give_up(id_);
  }
}

// It tells of the start and of the end soon, unless it serves nobody, as one that was stopped or frozen from outside. Then it would
// start whenever it goes on what it was sent, long after its time: so all of the sandbox ends.
void Running::look_for_pid1() {
  core_->ping();
  const std::uint64_t received = core_->events_received();
  silent_looks_ = received == received_ ? silent_looks_ + 1 : 0;
  received_ = received;
  if (silent_looks_ < kSilentLooks) return;
  core_->kill("its pid 1 did not answer");
  message_ += message_.empty() ? "" : "; ";
  message_ += "pid 1 of the sandbox did not answer, and the sandbox was ended";
  gone_ = true;
}

ExecResult Running::result() {
  if (failed_) {
    ExecResult failed = runtime::failed_start(
        runtime::explain_start_failure(failed_->errnum, failed_->failed_call, request_.command.argv[0],
                                       request_.command.cwd.empty() ? core_->files().workspace() : request_.command.cwd));
    core_->take_seen(failed);
    return failed;
  }
  ExecResult result;
  set_end(result);
  // Daemons that outlived the TERM of their parent, which ended by it, were part of what had to end.
  const bool all_ended = !cause_ || ((tree_.empty() || tree_.end()) && orphans_.end([this] { return core_->pids_of_commands(); }));
  if (!all_ended) core_->signal(0, SIGKILL);
  result.out = std::move(out_.capture).finish();
  result.err = std::move(err_.capture).finish();
  if (result.out.omitted > 0 || result.err.omitted > 0) result.limits_hit.emplace_back("output");
  core_->take_seen(result);
  runtime::add_limit_violations(result, core_->policy(), core_->origins(), request_.command.argv[0], request_.timeout);
  return result;
}

void Running::set_end(ExecResult& result) {
  const Clock::time_point begun = started_ ? started_->at : sent_;
  if (!exited_) {
    result.reason = Reason::kCancelled;
    result.exit_code = 128 + SIGKILL;
    result.signal = SIGKILL;
    result.message = "the sandbox ended before the command did";
    if (silent_looks_ >= kSilentLooks || unsent_) {
      result.reason = cause_.value_or(Reason::kCancelled);
      result.message = message_;
      if (cause_ == Reason::kTimeout) result.exit_code = 124;
    }
    result.duration = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begun);
    return;
  }
  const rusage& usage = exited_->exit.usage;
  runtime::set_exit(result, exited_->exit.wait_status);
  result.duration = std::chrono::duration_cast<std::chrono::microseconds>(exited_->at - begun);
  result.usage = {.cpu_user = micro(usage.ru_utime), .cpu_system = micro(usage.ru_stime), .peak_memory = {}};
  if (usage.ru_maxrss > 0) result.usage.peak_memory = Bytes{static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
  if (limits_) result.limits_hit = limits_->limits_hit;
  if (cause_) {
    result.reason = *cause_;
    result.message = message_;
    if (*cause_ == Reason::kTimeout) result.exit_code = 124;
    else if (result.exit_code < 128) result.exit_code = 128 + (*cause_ == Reason::kCancelled ? SIGTERM : SIGKILL);
    return;
  }
  // What ended with a code of its own was ended by no limit, whatever was over one meanwhile. 128+n may be a shell's word for it.
  const bool was_ended = result.exit_code == 128 + SIGKILL || result.exit_code == 128 + SIGXFSZ;
  if (limits_ && limits_->reason && was_ended) {
    result.reason = *limits_->reason;
    result.message = limits_->message;
  } else if (const auto hit = core_->hit(); hit && result.signal == SIGKILL) {
    result.reason = hit->reason;
    result.message = hit->message;
    result.limits_hit.push_back(hit->limit);
  }
}

}  // namespace belljar::session
