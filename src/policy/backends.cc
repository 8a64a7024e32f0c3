// The backends as a table: what isolates at most how strongly, which may be chosen by a fallback, and in
// which order they are tried.
//
// `mock` and `local` hold a command back as good as nothing, so only a user who names them gets them. A cloud
// is tried only where it is named, in `backend` or in `fallback`: there the command and its files go to a
// machine of another company.
#include "policy/backends.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/schema.h"

namespace belljar::policy {
namespace {

constexpr BackendKind kKinds[] = {
    {"native", Isolation::kNamespace, true, false, true},
    {"landlock", Isolation::kLandlock, true, false, true},
    {"container", Isolation::kVm, true},  // with a runtime that has a kernel of its own; else a container
    {"local", Isolation::kGuardRails, false, false, true},
    {"mock", Isolation::kNone, false},
    {"e2b", Isolation::kVm, true, true},
    {"aliyun", Isolation::kContainer, true, true},
    {"volcengine", Isolation::kContainer, true, true},
};

constexpr std::string_view kAuto = "auto";
constexpr const char *kStage = "BELLJAR_ENV", *kCommands = "SANDBOX_COMMANDS", *kBackend = "BELLJAR_BACKEND";

std::string names_for_fallback() {
  std::string names;
  for (const BackendKind& kind : kKinds) {
    if (kind.by_fallback) names += format("{}{}", names.empty() ? "" : ", ", kind.name);
  }
  return names;
}

Error no_fallback(std::string_view name, std::string reason, const std::string& hint = "") {
  return Error(Code::kInvalidArgument, format("cannot fall back to {}", quoted(name)))
      .reason(std::move(reason))
      .next(hint.empty() ? "use some of " + names_for_fallback() : hint);
}

Result<void> check_fallback(std::string_view name) {
  if (name == kAuto) return no_fallback(name, "auto is a list of its own");
  const BackendKind* const kind = name.empty() ? nullptr : find_backend_kind(name);
  if (kind == nullptr) {
    const std::string hint = backend_hint(name);
    return no_fallback(name, "there is no such backend", hint.starts_with("did") ? hint : "");
  }
  if (!kind->by_fallback) return no_fallback(name, "it holds a command back as good as nothing, so it is never chosen by fallback");
  return {};
}

std::string joined(std::span<const TriedBackend> tried) {
  std::string text;
  for (const TriedBackend& one : tried) text += format("{}{}: {}", text.empty() ? "" : "; ", escaped(one.backend), one.why);
  return text;
}

}  // namespace

std::span<const BackendKind> backend_kinds() noexcept { return kKinds; }

const BackendKind* find_backend_kind(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kKinds, name.empty() ? "native" : name, &BackendKind::name);
  return found == std::end(kKinds) ? nullptr : found;
}

bool is_backend(std::string_view name) noexcept { return name == kAuto || find_backend_kind(name) != nullptr; }

std::string backend_hint(std::string_view wrong) {
  if (wrong == "seatbelt" || wrong == "windows")
    return format("it runs on {} alone: `belljar policy compile --for {}` writes what that system takes",
                  wrong == "windows" ? "Windows" : "macOS", wrong);
  // What people call them that is spelled like none of them.
  constexpr std::pair<std::string_view, std::string_view> kAlso[] = {
      {"docker", "container"}, {"podman", "container"}, {"namespaces", "native"}, {"bwrap", "native"}, {"agentbay", "aliyun"}};
  std::vector<std::string_view> names = {kAuto};
  for (const BackendKind& kind : kKinds) names.push_back(kind.name);
  std::string_view near = nearest(wrong, names);
  for (const auto& [also, name] : kAlso) {
    if (near.empty() && nearest(wrong, std::span(&also, 1)) == also) near = name;
  }
  return near.empty() ? format("use one of auto, {}", names_for_fallback()) : format("did you mean `{}`?", near);
}

Result<std::vector<std::string>> backend_order(std::string_view backend, std::span<const std::string> fallback, Isolation wanted) {
  std::vector<std::string> order;
  if (backend != kAuto) order.emplace_back(backend.empty() ? "native" : backend);
  else if (wanted <= Isolation::kNamespace) order = {"native", "landlock"};
  else order = {"native", "landlock", "container"};
  for (const std::string& name : fallback) {
    BELLJAR_CHECK(check_fallback(name));
    if (std::ranges::find(order, name) == order.end()) order.push_back(name);
  }
  return order;
}

Result<void> check_backend_keys(const Policy& policy, std::span<const std::string> order) {
  if ((!policy.container.image && !policy.container.pull) || std::ranges::find(order, kContainer) != order.end()) return {};
  return Error(Code::kInvalidArgument,
               format("`container.{}` cannot be used with the backend {}", policy.container.image ? "image" : "pull",
                      quoted(order.empty() ? std::string() : order.front())))
      .reason("only a container has an image")
      .next("write backend = \"container\" (or use_docker = true), or take the key out");
}

Result<FromEnvironment> backend_of_environment(const std::function<std::string(const char*)>& value) {
  constexpr std::pair<std::string_view, std::string_view> kStages[] = {
      {"development", "local"}, {"test", "mock"}, {"production", "native"}};
  FromEnvironment said;
  if (const std::string stage = value(kStage); !stage.empty()) {
    const auto* const known =
        std::ranges::find(kStages, std::string_view(stage), &std::pair<std::string_view, std::string_view>::first);
    if (known == std::end(kStages))
      return Error(Code::kInvalidArgument, format("BELLJAR_ENV is {}", quoted(stage))).next("use development, test or production");
    said = {std::string(known->second), kStage};
  }
  if (value(kCommands) == "true") said = {std::string(kContainer), kCommands, true};
  if (const std::string backend = value(kBackend); !backend.empty()) {
    if (!is_backend(backend))
      return Error(Code::kInvalidArgument, format("BELLJAR_BACKEND is {}", quoted(backend)))
          .reason("there is no such backend")
          .next(backend_hint(backend));
    said.backend = backend, said.variable = kBackend;
  }
  return said;
}

bool is_backend_variable(std::string_view name) noexcept { return name == kStage || name == kCommands || name == kBackend; }

std::string too_weak(std::string_view backend, Isolation wanted) {
  const BackendKind* const kind = find_backend_kind(backend);
  if (kind == nullptr || kind->most >= wanted) return {};
  return format("isolation {} is required, and it has {} at most", to_string(wanted), to_string(kind->most));
}

Error too_weak_error(std::string_view backend, Isolation wanted) {
  return Error(Code::kFailedPrecondition, format("the {} backend is too weak", escaped(backend)))
      .reason(too_weak(backend, wanted))
      .next("name another (`belljar doctor` lists them, with what each isolates with), or ask for less isolation");
}

bool is_worth_another(const Error& error) noexcept {
  constexpr Code kOfTheBackend[] = {Code::kUnimplemented,    Code::kFailedPrecondition, Code::kUnavailable,
                                    Code::kPermissionDenied, Code::kNotFound,           Code::kUnauthenticated,
                                    Code::kDeadlineExceeded, Code::kResourceExhausted};
  return std::ranges::find(kOfTheBackend, error.code()) != std::end(kOfTheBackend);
}

Error none_starts(std::span<const TriedBackend> tried) {
  std::string names;
  for (const TriedBackend& one : tried) names += format("{}{}", names.empty() ? "" : ", ", escaped(one.backend));
  return Error(Code::kFailedPrecondition, format("no backend can start this: tried {}", names))
      .reason(joined(tried))
      .next("`belljar doctor` says what each needs here");
}

std::string fallback_note(std::string_view backend, std::span<const TriedBackend> tried) {
  return format("warning: the {} backend holds this run, by fallback: {}", escaped(backend), joined(tried));
}

void report_isolation(const Policy& policy, Isolation held, std::string with, EnforcementReport& report) {
  if (policy.isolation == Isolation::kNone) return;
  EnforcementClause clause{"isolation", format("at least {}", to_string(policy.isolation)), format("{}: {}", to_string(held), with),
                           Enforced::kFull, ""};
  if (held < policy.isolation) {
    clause.enforced = Enforced::kNone;
    clause.detail = format("what isolates here is {} at most", to_string(held));
  }
  report.push_back(std::move(clause));
}

}  // namespace belljar::policy
