#include "backend/container/container.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "backend/container/channel.h"
#include "backend/container/engine.h"
#include "backend/container/http.h"
#include "backend/container/spec.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/container.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend::container {
namespace {

constexpr std::chrono::seconds kHelloPatience{20};
constexpr std::chrono::seconds kRemovalPatience{10};

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
  const std::string boot = read_line("/proc/sys/kernel/random/boot_id");
  if (size <= 0 || boot.empty()) return {};
  return boot + "/" + std::string(ns.data(), static_cast<std::size_t>(size));
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
  for (const Listed& listed : *containers) {
    const auto owner = listed.labels.find(kOwnerLabel);
    if (owner != listed.labels.end() && !owner_may_live(owner->second) && engine.remove(listed.id)) ++removed;
  }
  return removed;
}

Result<void> fetch_image(const Engine& engine, const ContainerOptions& options) {
  if (options.pull == PullPolicy::kAlways) return engine.pull(options);
  if (BELLJAR_TRY(engine.has_image(options.image))) return {};
  if (options.pull == PullPolicy::kIfNotPresent) return engine.pull(options);
  return Error(Code::kNotFound, format("there is no image {}", quoted(options.image)))
      .reason("the engine has none, and the pull policy is `never`")
      .next("build or load it, or let it be pulled");
}

Result<std::shared_ptr<Container>> Container::start(const Engine& engine, const Spec& spec) {
  std::string id = BELLJAR_TRY(engine.create(spec));
  // From here on its destructor removes it, whatever fails.
  std::shared_ptr<Container> container(new Container(engine, std::move(id)));
  Upgraded attached = BELLJAR_TRY(engine.attach(container->id_));
  container->channel_ = BELLJAR_TRY(Channel::open(std::move(attached)));
  BELLJAR_CHECK(engine.start(container->id_));
  container->begun_ = true;
  BELLJAR_CHECK(container->channel_->await_hello(kHelloPatience));
  return container;
}

Result<void> Container::stop() {
  const std::lock_guard lock(mutex_);
  if (stopped_) return {};
  // Without its line pid 1 ends, and the engine removes what has ended: a KILL by its API would be slower.
  if (channel_ != nullptr) channel_->hang_up();
  if (!begun_ || !engine_.await_removal(id_, kRemovalPatience)) {
    BELLJAR_CHECK(engine_.remove(id_));
    BELLJAR_CHECK(engine_.await_removal(id_, kRemovalPatience));
  }
  stopped_ = true;
  return {};
}

}  // namespace belljar::backend::container
