// policy.ignore_violations: which refusals reports leave out. Decides what is shown, never what is allowed: nothing that refuses
// reads these lists. Pure.
#pragma once

#include <string>
#include <string_view>

#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::policy {

// Syntax of one element of ignore_violations.file: GLOB [on OPERATION] [by PROGRAM]. A path with " on " or " by " in it is written
// with `?` for a space.
Result<void> check_ignored_file(std::string_view text);
// HOST[:PORT], an IPv6 address in brackets; `*` and `?` in HOST, `*` or a number as PORT.
Result<void> check_ignored_host(std::string_view text);

// A relative or `~/` pattern of ignore_violations.file made absolute. `base` and `home` are patterns already (literal_glob).
std::string anchored(std::string_view text, std::string_view base, std::string_view home);

// Whether the lists keep `violation` out. Limits are never kept out: they are the result's reason.
bool is_ignored(const IgnoreViolations& lists, const Violation& violation) noexcept;

}  // namespace belljar::policy
