// A process inside namespaces and under a filter that notifies connect and listen, with a broker in front of it: all that the
// broker needs of a launcher, small enough to see.
//
//   test process -> front (root or an ordinary user; runs the broker) -> body (user, mount, network and pid namespace; filter)
//
// Or, for the tier without namespaces: the body is the user's own process on the host, below a subreaper.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "broker/broker.h"
#include "kernel/seccomp.h"

namespace belljar::test {

enum class Front { kRoot, kUser, kRootPlain, kUserPlain };  // plain: no namespaces
constexpr bool needs_root(Front front) { return front == Front::kRoot || front == Front::kRootPlain; }
constexpr bool has_namespaces(Front front) { return front == Front::kRoot || front == Front::kUser; }

struct Setting {
  Front front = Front::kUser;
  bool brokered = true;  // false: the same namespaces without filter and broker, for twins and differential tests
  bool own_network = true;
  broker::BrokerOptions options{};
  // Run by the front after the body ended and before the broker is destroyed, and after it is. What they return is appended.
  std::function<std::string()> before_end{}, after_end{};
  // The real filter with file calls going to the broker; with `brokered` false the same filter without. Else a filter of two calls.
  std::optional<kernel::FileCalls> files{};
  kernel::UnixSockets sockets = kernel::UnixSockets::kStream;  // of the real filter
  // Given: the front destroys the broker once it is so, while the body still runs, then kills the body.
  std::function<bool()> end_when{};
};

// What `body` returned, then a line "violation OPERATION TARGET ERRNO" each, then "dropped N" when there were any. "BODY DIED ..."
// when it did not return within 200 s.
std::string run_inside(const Setting& setting, const std::function<std::string()>& body);

// Whether the thread `tid` of this process sleeps in that system call, begun or taken by the broker.
bool sleeps_in(pid_t tid, long call);

// "ok" when `status` is not negative, else the name of errno.
std::string named(long status);

}  // namespace belljar::test
