// What a kept sandbox uses now, for `belljar stats`.
#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "belljar/policy.h"
#include "belljar/units.h"
#include "keeper/serve.h"
#include "kernel/disk_usage.h"

namespace belljar::keeper {
namespace {

using std::chrono::milliseconds;

// Of two looks at the processor time.
constexpr milliseconds kBetween{200};
// For the walk of the workspace; a larger one is not told.
constexpr milliseconds kMostWalk{1000};

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json count_or_null(const std::optional<Bytes>& value) { return value ? Json(value->count) : Json(nullptr); }

Json disk_of(const std::string& workspace) {
  const UniqueFd root(::open(workspace.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return nullptr;
  kernel::DiskScan scan(root.get());
  return scan.advance(kMostWalk) ? Json(scan.result().used.count) : Json(nullptr);
}

// A connection through the proxy is counted when it has ended, the host's network by nobody.
Json network_of(NetMode mode, std::uint64_t bytes) { return mode == NetMode::kHost ? Json(nullptr) : Json(bytes); }

}  // namespace

Json measure(Channel& channel, KeptSandbox& kept) {
  const auto begun = std::chrono::steady_clock::now();
  const auto before = kept.sandbox->stats();
  pollfd wait{channel.fd(), POLLRDHUP, 0};
  ::poll(&wait, 1, static_cast<int>(kBetween.count()));
  const auto stats = kept.sandbox->stats();
  tell_background(kept);
  if (!before) return {{"error", to_message(before.error())}};
  if (!stats) return {{"error", to_message(stats.error())}};
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  const double used = std::chrono::duration<double>(std::max(stats->cpu - before->cpu, std::chrono::microseconds(0))).count();
  return {{"cpu_ms", static_cast<double>(stats->cpu.count()) / 1000.0},
          {"cpu_percent", elapsed > 0 ? 100 * used / elapsed : 0.0},
          {"cpus_limit", or_null(kept.limits.cpus)},
          {"memory_bytes", stats->memory.count},
          {"memory_limit_bytes", count_or_null(kept.limits.memory)},
          {"processes", stats->processes},
          {"processes_limit", or_null(kept.limits.pids)},
          {"disk_bytes", disk_of(kept.sandbox->workspace())},
          {"disk_limit_bytes", count_or_null(kept.limits.disk)},
          {"network_in_bytes", network_of(kept.network, kept.traffic->in.load())},
          {"network_out_bytes", network_of(kept.network, kept.traffic->out.load())},
          {"execs", stats->execs}};
}

}  // namespace belljar::keeper
