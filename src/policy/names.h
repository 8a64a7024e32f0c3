// One list of names for each enumeration of the policy; both directions read it.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "belljar/policy.h"

namespace belljar::policy {

// Indexed by the enumerator's value.
template <class E>
inline constexpr std::array<std::string_view, 0> kNames{};
template <>
inline constexpr std::array<std::string_view, 4> kNames<Mode>{"read-only", "workspace-write", "danger-full-access",
                                                              "external-sandbox"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<Access>{"read", "write", "none"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<Protect>{"default", "all", "none"};
template <>
inline constexpr std::array<std::string_view, 2> kNames<Secrets>{"default", "none"};
template <>
inline constexpr std::array<std::string_view, 2> kNames<Tmp>{"private", "shared"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<Caches>{"private", "off", "workspace"};
template <>
inline constexpr std::array<std::string_view, 2> kNames<Siblings>{"shown", "hidden"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<Inherit>{"none", "core", "all"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<NetMode>{"none", "proxy", "host"};
template <>
inline constexpr std::array<std::string_view, 2> kNames<NetMethods>{"full", "limited"};
template <>
inline constexpr std::array<std::string_view, 2> kNames<OutputAction>{"drain", "kill"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<PullPolicy>{"missing", "always", "never"};
template <>
inline constexpr std::array<std::string_view, 6> kNames<Isolation>{"none",      "guard-rails", "landlock",
                                                                   "namespace", "container",   "vm"};

template <class E>
constexpr std::string_view name_of(E value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < kNames<E>.size() ? kNames<E>[index] : std::string_view("?");
}

template <class E>
constexpr std::optional<E> value_of(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kNames<E>.size(); ++i) {
    if (kNames<E>[i] == name) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace belljar::policy
