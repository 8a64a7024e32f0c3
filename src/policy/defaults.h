// What the built-in layer hides, protects and passes. Lists of plain text, so that anyone can read what the default is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/policy.h"

namespace belljar::policy {

// Secret paths of `home` ("" skips what lies in it) and of the system, absolute; those of `runtime_dir` too when given. They need
// not exist: a hidden path that appears after start is hidden too. `profile`: of the policy, whose own agent finds its log-in.
std::vector<std::string> default_secret_paths(std::string_view home, std::string_view runtime_dir = {},
                                              std::string_view profile = {});

// Those of `home` alone.
std::vector<std::string> home_secret_paths(std::string_view home, std::string_view profile = {});

// Of them: whose programs ask first whether it is a plain file, and complain at each start where it is none.
bool is_plain_file_secret(std::string_view path) noexcept;

// Of the secrets: gpg's.
std::string gpg_directory(std::string_view home);

// Inside, where hidden names lead: a directory of mode 000, and links to it whose access times tell which names were used.
inline constexpr std::string_view kHiddenPlace = "/dev/hidden-by-belljar";
inline constexpr std::string_view kUsedPlace = "/dev/used-by-belljar";

// Caches of package managers and compilers below `home`, absolute.
std::vector<std::string> default_cache_dirs(std::string_view home);

// Where the proxy listens, in the sandbox's own network namespace (mode proxy).
inline constexpr std::uint16_t kProxyPort = 3128;
// The sandbox's own address there, and the range that allowed names lead to inside: for benchmarks of network devices (RFC 2544),
// so nothing of the world has them.
inline constexpr std::uint32_t kInnerAddress = 0xC6120001;   // 198.18.0.1
inline constexpr std::uint32_t kFakeAddresses = 0xC6130000;  // 198.19.0.0/16
// The same where nobody may add a route, as in a container: part of what leads to a loopback anyway.
inline constexpr std::uint32_t kFakeLoopback = 0x7F130000;  // 127.19.0.0/16

// Names that stay read-only at the workspace root and at every work-tree root (protect = default or all): who reads what there
// outside, and what of it runs or is followed.
struct ProtectedName {
  std::string_view name;  // one component or two; a `*` in the last stands for any text
  std::string_view tool;
  std::string_view reads;
};
std::span<const ProtectedName> protected_names() noexcept;
// Directories below which a nested work tree's protected names do not count: dependencies bring their own .vscode and nobody opens
// them.
std::span<const std::string_view> unprotected_parents() noexcept;
// What git reads as code or as a pointer inside a git directory, relative to it (protect = default).
std::span<const std::string_view> git_control_names() noexcept;

// Variables that `inherit = core` passes: names and patterns.
std::span<const std::string_view> core_variables() noexcept;
// Names that look like secrets: the built-in `environment.exclude`.
std::span<const std::string_view> secret_variables() noexcept;

// The environment of the command, "NAME=value", sorted by name.
//
// `caller` is the caller's environ. Order: inherit and include give names, exclude takes them away, pass gives them back, `set` and
// then `overrides` (of the command itself) put values in. Strings without '=' in `caller` are dropped; of duplicates the first
// counts, as for getenv(3).
std::vector<std::string> build_environment(const Environment& environment, std::span<const std::string> caller,
                                           const std::map<std::string, std::string>& overrides = {});

}  // namespace belljar::policy
