// A start goes from what is free to what costs: the endpoint is looked up before a sandbox is created, for one
// that cannot be reached would have to be ended again. Then the instance must be ready, and after it the server
// inside, which may take longer.
//
// Right after a create, "not found" is no answer yet: the instance may not be known everywhere. After a connect
// it is one.
//
// A sandbox that somebody else made is compared with the policy before it is entered (check_found). What the
// service does not tell counts as more than the policy allows.
#include "remote/volcengine/service.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/random.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/units.h"
#include "belljar/volcengine.h"
#include "http/client.h"
#include "remote/retry.h"
#include "remote/shell/machine.h"
#include "remote/volcengine/address.h"
#include "remote/volcengine/aio.h"
#include "remote/volcengine/control.h"
#include "remote/volcengine/reply.h"

namespace belljar::remote::volcengine {

using http::Clock;
using MachinePtr = std::shared_ptr<const shell::Machine>;
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr long kLeastCpuMilli = 250, kMostCpuMilli = 16'000, kLeastMb = 512, kMostMb = 131'072;
constexpr milliseconds kShortest = 3min, kLongestLife = 24h;

Error too_small(std::string_view key, std::string least) {
  return Error(Code::kUnimplemented, format("the volcengine backend does not serve {} below {}", key, least))
      .reason("it is the smallest that the service has")
      .next("ask for more, or use a backend of this machine");
}

bool accepts(const Policy& policy, std::string_view clause) {
  return std::ranges::find(policy.accept, clause) != policy.accept.end();
}

Error may_do_more(std::string_view clause, std::string found) {
  return Error(Code::kFailedPrecondition, format("cannot use this sandbox under {}", clause))
      .reason(std::move(found))
      .next(format("make one of your own, or go on without it: `accept = [\"{}\"]`", clause));
}

Error not_ours(std::string_view doing) {
  return Error(Code::kUnimplemented, format("cannot {} an AIO container", doing))
      .reason("it was started by somebody else, and its server has no such call")
      .next("do it where it was started");
}

}  // namespace

Result<void> check_lifetime(milliseconds lifetime) {
  if (lifetime >= kShortest && lifetime <= kLongestLife) return {};
  return Error(Code::kInvalidArgument, format("cannot give a sandbox a lifetime of {}", to_string(lifetime)))
      .reason("Volcengine takes three minutes to a day");
}

Result<void> size(CreateRequest& wanted, VolcengineInstance type, const Limits& limits) {
  if (type != VolcengineInstance::kDefault) {
    const bool standard = type == VolcengineInstance::kStandard;
    wanted.cpu_milli = standard ? 1000 : 4000;
    wanted.memory_mb = standard ? 2048 : 8192;
  }
  if (limits.cpus) {
    if (*limits.cpus * 1000 < static_cast<double>(kLeastCpuMilli)) return too_small("limits.cpus", "0.25");
    wanted.cpu_milli = static_cast<long>(std::min(*limits.cpus * 1000, static_cast<double>(kMostCpuMilli)));
  }
  if (limits.memory) {
    const std::uint64_t mb = limits.memory->count >> 20;
    if (mb < static_cast<std::uint64_t>(kLeastMb)) return too_small("limits.memory", "512MiB");
    wanted.memory_mb = static_cast<long>(std::min(mb, static_cast<std::uint64_t>(kMostMb)));
  }
  return {};
}

Result<void> check_found(const Description& found, const Policy& policy) {
  if (policy.network.mode == NetMode::kNone && found.egress != false && !accepts(policy, "network"))
    return may_do_more("network.mode = \"none\"", "the service does not say that its way out is closed (AllowEgressAccess)");
  CreateRequest most{};
  BELLJAR_CHECK(size(most, VolcengineInstance::kDefault, policy.limits));
  const auto exceeds = [](std::optional<long> has, std::optional<long> limit) { return limit && (!has || *has > *limit); };
  if (exceeds(found.memory_mb, most.memory_mb) && !accepts(policy, "limits.memory"))
    return may_do_more("limits.memory", "it has more memory, or the service does not say how much");
  if (exceeds(found.cpu_milli, most.cpu_milli) && !accepts(policy, "limits.cpus"))
    return may_do_more("limits.cpus", "it has more CPUs, or the service does not say how many");
  return {};
}

// --- Volcengine

std::string VefaasService::host() const { return authority_of(control_.address().url_of("vefaas")); }

Result<void> VefaasService::check_supported(const Policy& policy) const {
  CreateRequest wanted{};
  return size(wanted, options_.instance_type, policy.limits);
}

shell::ClauseEnforcement VefaasService::holds(const Policy& policy, std::string_view clause) const {
  constexpr char kItsWord[] = "the service holds it, and nothing here checks";
  CreateRequest wanted{};
  (void)size(wanted, options_.instance_type, policy.limits);
  if (clause == "network" && policy.network.mode == NetMode::kNone)
    return {Enforced::kPartial, "NetworkRules.AllowEgressAccess = false", kItsWord};
  if (clause == "limits.memory" && wanted.memory_mb)
    return {Enforced::kPartial, format("MemoryMB = {}", *wanted.memory_mb), kItsWord};
  if (clause == "limits.cpus" && wanted.cpu_milli)
    return {Enforced::kPartial, format("CpuMilli = {}", *wanted.cpu_milli), kItsWord};
  return {Enforced::kNone, "", "the service has no such limit"};
}

Result<MachinePtr> VefaasService::create(const Policy& policy, const CancelToken& cancel) const {
  const std::string endpoint = BELLJAR_TRY(control_.find_endpoint());  // before anything costs money
  CreateRequest wanted{.lifetime = options_.lifetime,
                       .image = options_.image,
                       .closed = policy.network.mode == NetMode::kNone,
                       .envs = options_.envs,
                       .metadata = options_.metadata,
                       .session = random_hex(8),
                       .cancel = cancel};
  BELLJAR_CHECK(size(wanted, options_.instance_type, policy.limits));
  const std::string id = BELLJAR_TRY(control_.create(wanted));
  auto machine = enter(id, endpoint, Fresh::kYes, cancel);
  if (!machine) return control_.abandon(id, machine.error());
  return machine;
}

Result<MachinePtr> VefaasService::connect(const std::string& id, const CancelToken& cancel) const {
  if (!is_id(id)) return Error(Code::kInvalidArgument, format("no sandbox has the id {}", belljar::quoted(id)));
  const std::string endpoint = BELLJAR_TRY(control_.find_endpoint());
  const Description found = BELLJAR_TRY(control_.describe(id));
  BELLJAR_CHECK(check_found(found, policy_));
  if (found.state == Description::State::kPaused) BELLJAR_CHECK(control_.resume(id, options_.lifetime));
  return enter(id, endpoint, Fresh::kNo, cancel);
}

Result<Description> VefaasService::await_ready(const std::string& id, Clock::time_point until, Fresh fresh,
                                               const CancelToken& cancel) const {
  for (;;) {
    auto found = control_.describe(id);
    // One that was just made may not have come to every desk yet.
    const bool unheard = !found && found.error().code() == Code::kNotFound && fresh == Fresh::kYes;
    if (!found && !unheard) return found.error();
    if (found && found->state == Description::State::kReady) return found;
    if (found && (found->state == Description::State::kFailed || found->state == Description::State::kGone))
      return Error(found->state == Description::State::kGone ? Code::kNotFound : Code::kUnavailable,
                   format("the sandbox {} does not run", belljar::quoted(id)))
          .reason(format("Volcengine says {} {}", belljar::quoted(found->status.substr(0, 40)), found->error))
          .next("look at the application's log in the console of veFaaS");
    if (Clock::now() + options_.ready_interval >= until)
      return Error(Code::kDeadlineExceeded, format("the sandbox {} is not ready", belljar::quoted(id)))
          .reason(format("it is {} after {}", found ? belljar::quoted(found->status.substr(0, 40)) : "unknown",
                         to_string(options_.ready_within)))
          .next("try again, or wait longer (ready_within)");
    BELLJAR_CHECK(wait_for(options_.ready_interval, cancel.fd()));
  }
}

Result<MachinePtr> VefaasService::enter(const std::string& id, const std::string& endpoint, Fresh fresh,
                                        const CancelToken& cancel) const {
  const auto until = Clock::now() + options_.ready_within;
  BELLJAR_CHECK(await_ready(id, until, fresh, cancel));
  auto machine = std::make_shared<const AioMachine>(http_, control_.address(), endpoint, id, options_.request_timeout);
  for (;;) {
    const auto alive = machine->health();
    if (alive) return MachinePtr(std::move(machine));
    // The server inside may take longer than the instance.
    if (alive.error().code() != Code::kUnavailable || Clock::now() + options_.ready_interval >= until) return alive.error();
    BELLJAR_CHECK(wait_for(options_.ready_interval, cancel.fd()));
  }
}

Result<void> VefaasService::set_timeout(const std::string& id, milliseconds lifetime) const {
  BELLJAR_CHECK(check_lifetime(lifetime));
  return control_.set_timeout(id, lifetime);
}

// --- a container that runs

Result<void> AioService::check_supported(const Policy& /*policy*/) const { return {}; }

shell::ClauseEnforcement AioService::holds(const Policy& /*policy*/, std::string_view /*clause*/) const {
  return {Enforced::kNone, "", "who started the container decides, and nothing here asks"};
}

Result<MachinePtr> AioService::create(const Policy& /*policy*/, const CancelToken& /*cancel*/) const {
  auto machine = std::make_shared<const AioMachine>(http_, address_, address_.endpoint, "", patience_);
  BELLJAR_CHECK(machine->health());
  return MachinePtr(std::move(machine));
}

Result<MachinePtr> AioService::connect(const std::string& /*id*/, const CancelToken& cancel) const { return create({}, cancel); }
Result<bool> AioService::kill(const std::string& /*id*/, const CancelToken& /*cancel*/) const { return not_ours("end"); }
Result<void> AioService::pause(const std::string& /*id*/, const CancelToken& /*cancel*/) const { return not_ours("pause"); }
Result<void> AioService::set_timeout(const std::string& /*id*/, milliseconds /*lifetime*/) const {
  return not_ours("set the time of");
}

}  // namespace belljar::remote::volcengine
