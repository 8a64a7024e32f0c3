// Domain rules as text: `example.com`, `*.example.com` (sub-domains only), `**.example.com` (both), each with an optional `:port`.
#pragma once

#include <string_view>

namespace belljar::policy {

// Whether every destination that `wanted` covers is covered by `have`. Letters of either case; a trailing dot does not count.
bool domain_covers(std::string_view have, std::string_view wanted) noexcept;

}  // namespace belljar::policy
