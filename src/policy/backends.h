// Which backends there are, what each isolates with at most, and which are tried in which order. Values; no system calls.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::policy {

inline constexpr std::string_view kContainer = "container";

struct BackendKind {
  std::string_view name;
  Isolation most;          // a start may find less: the report says what holds
  bool by_fallback;        // false: only who names it as the backend gets it
  bool elsewhere = false;  // on a machine of somebody else
  bool our_tree = false;   // its commands find this machine's programs
};
std::span<const BackendKind> backend_kinds() noexcept;
const BackendKind* find_backend_kind(std::string_view name) noexcept;

// `auto` is one, too.
bool is_backend(std::string_view name) noexcept;
// For an Error's next, of a name that is none: the nearest right one, or those that are fallen back to.
std::string backend_hint(std::string_view wrong);

// The backends to try, in order, each once. `auto` is native, then landlock; and then a container where `wanted` is more than
// namespaces are: an image's tree is another place, not only another lock. An unknown `backend` passes: who makes it refuses it by
// name. Errors: kInvalidArgument, `fallback` names something that is never fallen back to, or that there is not.
Result<std::vector<std::string>> backend_order(std::string_view backend, std::span<const std::string> fallback, Isolation wanted);

// Keys that only one backend has: refused where it is not in `order`. Errors: kInvalidArgument, with the key.
Result<void> check_backend_keys(const Policy& policy, std::span<const std::string> order);

// What the environment says of the backend, as document 003 has it: SANDBOX_COMMANDS=true is container, BELLJAR_ENV development,
// test or production is local, mock or native; of the later ones the last outweighs: BELLJAR_ENV, SANDBOX_COMMANDS,
// BELLJAR_BACKEND.
struct FromEnvironment {
  std::string backend, variable;  // both empty: nothing is said
  bool own_containers = false;    // SANDBOX_COMMANDS: each command has one
};
// `value`: of a variable, empty where it is unset. Errors: kInvalidArgument, an unknown word.
Result<FromEnvironment> backend_of_environment(const std::function<std::string(const char*)>& value);
// Whether `name` is one of those variables.
bool is_backend_variable(std::string_view name) noexcept;

// Why `backend` cannot hold `wanted` on any machine; empty: it may.
std::string too_weak(std::string_view backend, Isolation wanted);
// That as an Error, for where there is no other to try.
Error too_weak_error(std::string_view backend, Isolation wanted);

// Whether another backend may do better: not when what was asked makes no sense anywhere.
bool is_worth_another(const Error& error) noexcept;
// All that were tried, in one message.
Error none_starts(std::span<const TriedBackend> tried);
// For people, when a later one is used.
std::string fallback_note(std::string_view backend, std::span<const TriedBackend> tried);

// Appends the report's clause `isolation` where `policy` asks for one. `with`: "namespaces of its own on this kernel".
void report_isolation(const Policy& policy, Isolation held, std::string with, EnforcementReport& report);

}  // namespace belljar::policy
