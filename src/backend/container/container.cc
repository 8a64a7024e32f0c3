#include "backend/container/container.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/container/channel.h"
#include "backend/container/engine.h"
#include "backend/container/http.h"
#include "backend/container/mounted.h"
#include "backend/container/socket_handover.h"
#include "backend/container/spec.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/cancel.h"
#include "belljar/container.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend::container {
namespace {

constexpr std::chrono::seconds kHelloPatience{20};
constexpr std::chrono::seconds kRemovalPatience{10};
constexpr std::chrono::seconds kFilterPatience{20};
constexpr std::chrono::seconds kMountsPatience{20};
constexpr char kBootId[] = "/proc/sys/kernel/random/boot_id";

std::string read_line(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text;
  const ssize_t got = file.valid() ? ::read(file.get(), text.data(), text.size()) : -1;
  std::string line(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return line.substr(0, line.find('\n'));
}

// Field 22 of /proc/PID/stat; empty when there is no such process.
std::string start_of(const std::string& pid) {
  const std::string line = read_line("/proc/" + pid + "/stat");
  std::size_t at = line.rfind(')');
  for (int field = 2; at != std::string::npos && field < 22; ++field) at = line.find(' ', at + 1);
  return at == std::string::npos ? std::string() : line.substr(at + 1, line.find(' ', at + 1) - at - 1);
}

std::string place() {
  std::array<char, 64> ns;
  const ssize_t size = ::readlink("/proc/self/ns/pid", ns.data(), ns.size());
  const std::string boot = read_line(kBootId);
  if (size <= 0 || boot.empty()) return {};
  return boot + "/" + std::string(ns.data(), static_cast<std::size_t>(size));
}

// pid 1 of a container of ours, if that is who has this number here: the engine may count in another pid namespace.
UniqueFd find_process(int pid, const std::string& id) {
  if (pid <= 1) return {};
  UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) return {};
  const std::string own = format("/proc/{}/", pid);
  std::array<char, 4096> text;
  const UniqueFd groups(::open((own + "cgroup").c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t size = groups.valid() ? ::read(groups.get(), text.data(), text.size()) : -1;
  const bool ours = size > 0 && std::string_view(text.data(), static_cast<std::size_t>(size)).find(id) != std::string_view::npos;
  return ours && read_line(own + "cmdline").starts_with("/.belljar/inside") ? std::move(process) : UniqueFd();
}

}  // namespace

std::string owner_label() {
  const std::string where = place();
  const std::string pid = format("{}", ::getpid());
  return where.empty() ? std::string() : format("{}/{}/{}", where, pid, start_of(pid));
}

bool owner_may_live(const std::string& label) {
  const std::string where = place();
  if (where.empty() || !label.starts_with(where + "/")) return true;
  const std::string rest = label.substr(where.size() + 1);
  const std::size_t slash = rest.find('/');
  if (slash == std::string::npos || slash == 0 || rest.find_first_not_of("0123456789/") != std::string::npos) return true;
  return start_of(rest.substr(0, slash)) == rest.substr(slash + 1);
}

int remove_orphans(const Engine& engine) {
  int removed = 0;
  const auto containers = engine.list(kOwnerLabel);
  if (!containers) return 0;
  for (const ContainerEntry& listed : *containers) {
    const auto owner = listed.labels.find(kOwnerLabel);
    if (owner != listed.labels.end() && !owner_may_live(owner->second) && engine.remove(listed.id)) ++removed;
  }
  return removed;
}

Result<ImageFacts> fetch_image(const Engine& engine, const ContainerOptions& options, const CancelToken& cancel) {
  const auto missing = [&](std::string reason, std::string next) {
    return Error(Code::kNotFound, format("there is no image {}", quoted(options.image)))
        .reason(std::move(reason))
        .next(std::move(next));
  };
  if (options.pull != PullPolicy::kAlways) {
    if (auto found = BELLJAR_TRY(engine.find_image(options.image, cancel))) return *std::move(found);
    if (options.pull == PullPolicy::kNever)
      return missing("the engine has none, and the pull policy is `never`", "build or load it, or let it be pulled");
  }
  BELLJAR_CHECK(engine.pull(options, cancel));
  if (auto found = BELLJAR_TRY(engine.find_image(options.image))) return *std::move(found);
  return missing("the engine pulled it, and does not know it by that name", "check the name");
}

std::vector<Mount> read_mounts() {
  std::ifstream own("/proc/self/mountinfo");
  return parse_mounts(std::string(std::istreambuf_iterator<char>(own), {}));
}

Result<std::shared_ptr<Container>> Container::start(const Engine& engine, const Spec& given, const CancelToken& cancel) {
  Spec spec = given;
  std::optional<SocketHandover> handover;
  if (!spec.sockets.empty()) {
    handover = BELLJAR_TRY(SocketHandover::open(spec.state));
    spec.binds.push_back({handover->directory(), kHandoverDir, true});
    std::ranges::move(handover_arguments(spec.sockets), std::back_inserter(spec.entrypoint));
  }
  std::string id = BELLJAR_TRY(engine.create(spec));
  // From here on its destructor removes it, whatever fails.
  std::shared_ptr<Container> container(new Container(engine, std::move(id)));
  UpgradedStream attached = BELLJAR_TRY(engine.attach(container->id_));
  container->channel_ = BELLJAR_TRY(Channel::open(std::move(attached)));
  BELLJAR_CHECK(engine.start(container->id_, cancel));
  container->begun_ = true;
  BELLJAR_CHECK(container->channel_->await_hello(kHelloPatience, cancel));
  const auto is_pid1 = [&](int pid) { return find_process(pid, container->id_).valid(); };
  if (handover) container->sockets_ = BELLJAR_TRY((*std::move(handover)).receive(spec.sockets, is_pid1));
  BELLJAR_CHECK(container->look_inside(spec));
  if (!spec.filter.empty()) {
    const auto set = container->channel_->set_filter(spec.filter, kFilterPatience);
    if (!set && (!spec.filter_may_be_missing || set.error().code() != Code::kFailedPrecondition)) return set.error();
    container->filtered_ = set.has_value();
  }
  // An engine that is killed leaves its containers running, and our line says no more.
  if (const auto pid = engine.pid(container->id_); pid && engine.is_local()) {
    UniqueFd process = find_process(*pid, container->id_);
    container->held_ = process.valid() && ::syscall(SYS_pidfd_send_signal, process.get(), 0, nullptr, 0) == 0;
    container->channel_->kill_at_end(std::move(process));
  }
  return container;
}

// Another kernel (gVisor, Kata, an engine in a virtual machine) calls its devices otherwise: nothing can be compared.
Result<void> Container::look_inside(const Spec& spec) {
  if (spec.binds.empty()) return {};  // not even our own program: of no plan
  const std::string told = BELLJAR_TRY(channel_->mounts(kMountsPatience));
  const std::size_t boot = std::min(told.find('\n'), told.size());
  const std::size_t mounts = std::min(told.find("\n\n", boot), told.size());
  status_ = parse_status(std::string_view(told).substr(boot, mounts - boot));
  if (boot == 0 || told.substr(0, boot) != read_line(kBootId)) return {};
  const std::vector<Mount> here = read_mounts();
  const std::vector<Mount> inside = parse_mounts(std::string_view(told).substr(mounts));
  status_.own_terminals = has_own_terminals(here, inside);
  std::vector<std::string> asked = BELLJAR_TRY(check_mounted(spec.binds, here, inside));
  std::ranges::copy(spec.own_volumes, std::back_inserter(asked));
  unasked_ = find_unasked(asked, inside);
  larger_ = find_larger(spec, inside);
  return {};
}

Result<void> Container::stop(const CancelToken& cancel) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return {};
  // Without its line pid 1 ends, and the engine removes what has ended: a KILL by its API would be slower.
  if (channel_ != nullptr) channel_->hang_up();
  if (!begun_ || !engine_.await_removal(id_, kRemovalPatience, cancel)) {
    BELLJAR_CHECK(engine_.remove(id_, cancel));
    BELLJAR_CHECK(engine_.await_removal(id_, kRemovalPatience, cancel));
  }
  stopped_ = true;
  return {};
}

}  // namespace belljar::backend::container
