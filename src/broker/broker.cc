#include "broker/broker.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include <cerrno>
#include <utility>

#include "broker/as_caller.h"
#include "broker/handlers.h"

namespace belljar::broker {
namespace {

std::uint64_t own_netns_cookie() noexcept {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (!socket.valid() || ::getsockopt(socket.get(), SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) != 0) return 0;
  return cookie;
}

void dispatch(Context& context, const Call& call, Workers::Slot& slot) {
  switch (call.number) {
    case SYS_connect:
      return handle_connect(context, call, slot);
    case SYS_listen:
      return handle_listen(context, call);
    default:
      // The filter and the broker disagree: nothing that we did not judge may run.
      return answer(context.listener.get(), call.id, -EPERM);
  }
}

Workers::Jobs jobs_for(const std::shared_ptr<Context>& context) {
  return {
      .run = [context](const Call& call, Workers::Slot& slot) { dispatch(*context, call, slot); },
      .caller_gone = [context](const Call& call) { return !still_waiting(context->listener.get(), call.id); },
      .caller_signalled = [](const Call& call) { return Caller(call.tid).has_pending_signal(); },
      .thread_started =
          [context] {
            if (context->options.uid != static_cast<uid_t>(-1)) leave_groups();
          },
  };
}

Error failed(const char* what, const char* call) {
  return Error(errno == EMFILE || errno == ENFILE ? Code::kResourceExhausted : Code::kUnavailable, what).sys(errno, call);
}

}  // namespace

struct Broker::State {
  State(UniqueFd listener, BrokerOptions options)
      : context(std::make_shared<Context>(std::move(listener), std::move(options))),
        workers(context->options.max_pending, jobs_for(context)) {}

  std::shared_ptr<Context> context;
  UniqueFd epoll, timer;
  bool ticking = false;
  bool active = true;
  Workers workers;  // last: its threads end before what they use

  void take_calls();
  void set_ticking(bool on);
};

void Broker::State::set_ticking(bool on) {
  if (ticking == on) return;
  const timespec period{0, on ? Workers::kTickMilliseconds * 1'000'000 : 0};
  const itimerspec setting{period, period};
  ticking = ::timerfd_settime(timer.get(), 0, &setting, nullptr) == 0 && on;
}

void Broker::State::take_calls() {
  const int listener = context->listener.get();
  // A bound, so that a sandbox that connects in a loop cannot keep the event loop here.
  for (int count = 0; count < 64; ++count) {
    pollfd ready{listener, POLLIN, 0};
    if (::poll(&ready, 1, 0) != 1) return;
    if ((ready.revents & POLLIN) == 0) {
      active = false;  // POLLHUP: no process is left under the filter
      ::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, listener, nullptr);
      return;
    }
    Call call;
    if (receive(listener, call) != 0) continue;
    if (workers.submit(call)) set_ticking(true);
    else answer(listener, call.id, -ENOBUFS);
  }
}

Broker::Broker(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Broker::Broker(Broker&&) noexcept = default;
Broker& Broker::operator=(Broker&&) noexcept = default;
Broker::~Broker() = default;

Result<Broker> Broker::create(UniqueFd listener, BrokerOptions options) {
  if (const int status = check_listener(listener.get()); status != 0) {
    return Error(Code::kInvalidArgument, "cannot broker connect").sys(-status, "SECCOMP_IOCTL_NOTIF_ID_VALID");
  }
  auto state = std::make_unique<State>(std::move(listener), std::move(options));
  state->context->host_netns = own_netns_cookie();
  state->epoll = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!state->epoll.valid()) return failed("cannot broker connect", "epoll_create1");
  state->timer = UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!state->timer.valid()) return failed("cannot broker connect", "timerfd_create");
  for (const int fd : {state->context->listener.get(), state->timer.get()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (::epoll_ctl(state->epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) return failed("cannot broker connect", "epoll_ctl");
  }
  return Broker(std::move(state));
}

int Broker::poll_fd() const noexcept { return state_->epoll.get(); }

void Broker::on_readable() {
  if (state_->active) state_->take_calls();
  std::uint64_t expirations = 0;
  if (::read(state_->timer.get(), &expirations, sizeof expirations) <= 0) return;
  state_->workers.tick();
  if (!state_->workers.busy()) state_->set_ticking(false);
}

bool Broker::active() const noexcept { return state_->active; }

std::vector<Violation> Broker::take_violations() { return state_->context->violations.take(); }

std::uint64_t Broker::dropped() const noexcept { return state_->context->violations.dropped(); }

}  // namespace belljar::broker
