#include "broker/broker.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "broker/as_caller.h"
#include "broker/file_calls.h"
#include "broker/handlers.h"
#include "broker/observe.h"
#include "broker/one_processor.h"
#include "broker/refused_call.h"
#include "kernel/tree_lock.h"
#include "policy/paths.h"

namespace belljar::broker {
namespace {

std::uint64_t own_netns_cookie() noexcept {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (!socket.valid() || ::getsockopt(socket.get(), SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) != 0) return 0;
  return cookie;
}

void dispatch(Context& context, const Call& call, Receivers::Slot& slot) {
  const uid_t uid = context.options.uid;
  if (handle_foreign(context, call)) return;  // first: its number means another call than ours of that number
  if (handle_refused(context, call)) return;  // then: nobody below performs what the filter refuses
  if (context.options.observer) become(Identity::kOwn, uid);
  const bool seen = observe(context, call);
  switch (call.number) {
    case SYS_connect:
      become(Identity::kOwn, uid);
      return handle_connect(context, call, slot);
    case SYS_bind:
      return handle_bind(context, call, slot);
    case SYS_getsockname:
      become(Identity::kOwn, uid);
      return handle_getsockname(context, call);
    case SYS_socketpair:
      become(Identity::kOwn, uid);
      return handle_socketpair(context, call);
    case SYS_getsockopt:
      become(Identity::kOwn, uid);
      return handle_getsockopt(context, call);
    case SYS_listen:
      become(Identity::kOwn, uid);
      return handle_listen(context, call);
    default:
      // Only seen: the filter notifies for the observer alone, and nobody judges these calls.
      if (seen && context.options.filter.file_calls == kernel::FileCalls::kDirect)
        return let_continue(context.listener.get(), call.id);
      if (handle_file_call(context, call, slot)) return;
      if (seen) return let_continue(context.listener.get(), call.id);  // a look
      // The filter and the broker disagree: nothing that we did not judge may run.
      return answer(context.listener.get(), call.id, -EPERM);
  }
}

Receivers::Received receive_call(int listener, Call& call) {
  const int status = receive(listener, call);
  if (status == 0) OneProcessor::begin_call(call);
  if (status == 0) return Receivers::Received::kCall;
  if (status == -EINTR || (status == -ENOENT && !is_over(listener))) return Receivers::Received::kNothing;
  return Receivers::Received::kEnd;
}

// umask is the caller's for the time of a call, so it must be this thread's alone; groups are nobody's.
void prepare_thread(const BrokerOptions& options) {
  (void)::unshare(CLONE_FS);
  if (options.uid != static_cast<uid_t>(-1)) leave_groups(options.gid);
}

void arm(int timer) {
  const itimerspec setting{{0, 0}, {0, Receivers::kTickMilliseconds * 1'000'000}};
  ::timerfd_settime(timer, 0, &setting, nullptr);
}

Receivers::Jobs jobs_for(const std::shared_ptr<Context>& context) {
  return {
      .receive = [context](Call& call) { return receive_call(context->listener.get(), call); },
      .more = [context] { return has_waiting(context->listener.get()); },
      .run = [context](const Call& call, Receivers::Slot& slot) { dispatch(*context, call, slot); },
      .caller_gone = [context](const Call& call) { return !still_waiting(context->listener.get(), call.id); },
      .caller_signalled = [](const Call& call) { return Caller(call.tid).has_pending_signal(); },
      .thread_starting = [] { OneProcessor::leave(); },
      .thread_started = [context] { prepare_thread(context->options); },
      .work_started = [context] { arm(context->timer.get()); },
  };
}

// On a thread of its own, since it acts as the sandbox's user. False: another process held the directories all that time. The event
// loop waits for this, and with it deadlines and signals.
bool publish_staged(Context& context, std::chrono::milliseconds patience) {
  if (!context.staged.any()) return true;
  bool shared = false;
  std::thread([&context, &shared, patience] {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!(shared = context.directories.try_lock_shared()) && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!shared) return;
    const std::shared_lock lock(context.directories, std::adopt_lock);
    prepare_thread(context.options);
    const AsCaller permissions(context.options.uid);
    if (permissions.ok()) context.staged.publish_closed(context);
  }).join();
  return shared;
}

// What a transaction writes to its workspace is its own: there its commit takes part instead.
// Why not; empty: it takes part, or has nothing in common with anybody.
std::string join_others(Context& context) {
  const BrokerOptions& options = context.options;
  if (options.rules == nullptr || !options.rules->any()) return {};
  if (options.state_dir.empty()) return "there is no state directory: set XDG_STATE_HOME or HOME";
  std::vector<std::string> shared = options.rules->host_roots();
  if (options.overlay)
    std::erase_if(shared, [&](const std::string& path) { return policy::is_within(path, options.overlay->path); });
  auto others = kernel::TreeLock::open(kernel::tree_locks_in(options.state_dir), shared);
  if (!others) return others.error().line();
  context.directories.join(*std::move(others));
  return {};
}

Error failed(const char* what, const char* call) {
  return Error(errno == EMFILE || errno == ENFILE ? Code::kResourceExhausted : Code::kUnavailable, what).sys(errno, call);
}

}  // namespace

struct Broker::State {
  State(UniqueFd listener, BrokerOptions options, Inner inner)
      : context(std::make_shared<Context>(std::move(listener), std::move(options), std::move(inner))),
        leaving{*context},
        receivers(context->options.max_pending + 1, jobs_for(context)) {}

  // A thread that has ended its work may be the last that holds the context, and a program that ends now does not wait for it.
  struct Leaving {
    Context& context;
    ~Leaving() { context.directories.leave(); }
  };

  std::shared_ptr<Context> context;
  std::string why_alone;
  UniqueFd epoll;
  bool started = false;
  bool active = true;
  Leaving leaving;
  Receivers receivers;  // last: its threads end before what they use

  void look_at_listener();
};

// The first call makes the first thread; from then on the loop only learns of the end. Without a thread, this is tried again at the
// next round.
void Broker::State::look_at_listener() {
  const int listener = context->listener.get();
  if (is_over(listener)) {
    active = false;
    ::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, listener, nullptr);
    return;
  }
  if (started || !has_waiting(listener)) return;
  started = receivers.start();
  epoll_event event{};
  event.data.fd = listener;  // no events: only the end is told
  if (started) ::epoll_ctl(epoll.get(), EPOLL_CTL_MOD, listener, &event);
}

Broker::Broker(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Broker::Broker(Broker&&) noexcept = default;
Broker& Broker::operator=(Broker&&) noexcept = default;
Broker::~Broker() = default;

Result<Broker> Broker::create(UniqueFd listener, BrokerOptions options, Inner inner) {
  if (const int status = check_listener(listener.get()); status != 0) {
    return Error(Code::kInvalidArgument, "cannot start the broker").sys(-status, "SECCOMP_IOCTL_NOTIF_ID_VALID");
  }
  auto state = std::make_unique<State>(std::move(listener), std::move(options), std::move(inner));
  if (const auto& overlay = state->context->options.overlay)
    state->context->upper = UniqueFd(::open(overlay->upper.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  state->why_alone = join_others(*state->context);
  wake_on_this_cpu(state->context->listener.get());
  state->context->host_netns = own_netns_cookie();
  state->epoll = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!state->epoll.valid()) return failed("cannot start the broker", "epoll_create1");
  UniqueFd& timer = state->context->timer;
  timer = UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.valid()) return failed("cannot start the broker", "timerfd_create");
  state->context->staged.set_epoll(state->epoll.get());
  for (const int fd : {state->context->listener.get(), timer.get()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (::epoll_ctl(state->epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) return failed("cannot start the broker", "epoll_ctl");
  }
  return Broker(std::move(state));
}

int Broker::poll_fd() const noexcept { return state_->epoll.get(); }

void Broker::on_readable() {
  if (state_->active) state_->look_at_listener();
  const bool shown = publish_staged(*state_->context, std::chrono::milliseconds(0));
  const int timer = state_->context->timer.get();
  std::uint64_t expirations = 0;
  if (::read(timer, &expirations, sizeof expirations) > 0 && state_->receivers.tick()) arm(timer);
  if (!shown) arm(timer);  // and tried again then
}

std::shared_ptr<Directories> Broker::directories() const { return {state_->context, &state_->context->directories}; }

bool Broker::active() const noexcept { return state_->active; }

std::vector<Violation> Broker::take_violations() {
  constexpr std::chrono::seconds kPatience(3);  // a commit takes less than one for thousands of files
  if (!publish_staged(*state_->context, kPatience))
    state_->context->staged.drop_closed(*state_->context, "another process holds the directory (a commit that is stopped?)");
  return state_->context->violations.take();
}

const std::string& Broker::why_alone() const noexcept { return state_->why_alone; }

std::uint64_t Broker::dropped() const noexcept { return state_->context->violations.dropped(); }

std::uint64_t Broker::hidden() const noexcept { return state_->context->violations.hidden(); }

}  // namespace belljar::broker
