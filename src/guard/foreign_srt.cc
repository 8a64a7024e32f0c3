#include <span>
#include <string_view>

#include "guard/importer.h"
#include "policy/document.h"

namespace belljar::guard {

using policy::Node;

namespace {

constexpr std::string_view kNoChain = "write another proxy as network.upstream_proxy in a policy; hosts stay judged here";

constexpr FieldRule kSrt[] = {
    {"network.allowedDomains", FieldHandling::kDomains, "network.allowed_domains"},
    {"network.deniedDomains", FieldHandling::kTexts, "network.denied_domains"},
    {"network.deniedDomainReasons", FieldHandling::kOnlyFalse, "a refusal names its rule; texts of your own are not shown"},
    {"network.deniedResolvedAddresses", FieldHandling::kOnlyFalse,
     "addresses that are not public are refused after resolution anyway; lists of your own are not held"},
    {"network.strictAllowlist", FieldHandling::kOnlyTrue, "a host that no rule allows is refused, never asked about"},
    {"network.allowUnixSockets", FieldHandling::kPaths, "network.allow_unix_sockets"},
    {"network.allowAllUnixSockets", FieldHandling::kFlag, "network.allow_all_unix_sockets"},
    {"network.allowLocalBinding", FieldHandling::kFlag, "network.allow_local_binding"},
    {"network.allowMachLookup", FieldHandling::kOnlyFalse, kMac},
    {"network.httpProxyPort", FieldHandling::kUpstream, "http"},
    {"network.socksProxyPort", FieldHandling::kUpstream, "socks5h"},
    {"network.mitmProxy", FieldHandling::kOnlyFalse, kNoChain},
    {"network.parentProxy", FieldHandling::kOnlyFalse, kNoChain},
    {"network.tlsTerminate", FieldHandling::kOnlyFalse, kNoTls},
    {"network.allowPlaintextHeaderSet", FieldHandling::kOnlyFalse, kNoTls},
    {"network.stripResponseHeaders", FieldHandling::kOnlyFalse, kNoTls},
    {"network.refuseOpaqueTunnels", FieldHandling::kOnlyFalse, kNoTls},
    {"network.requireHostMatch", FieldHandling::kOnlyFalse, kNoTls},
    {"network.ambiguousRequestTarget", FieldHandling::kOnlyFalse, kNoTls},
    {"filesystem.denyRead", FieldHandling::kPaths, "filesystem.blocked_paths"},
    {"filesystem.allowRead", FieldHandling::kReadable, ""},
    {"filesystem.allowWrite", FieldHandling::kPaths, "filesystem.writable_roots"},
    {"filesystem.denyWrite", FieldHandling::kPaths, "filesystem.readonly_paths"},
    {"filesystem.allowGitConfig", FieldHandling::kNotNeeded,
     "git's configuration is judged by its content, so that harmless keys can be set and others not"},
    {"filesystem.disabled", FieldHandling::kOnlyFalse,
     "it drops all file rules; choose mode = \"danger-full-access\" in a policy, aloud"},
    {"credentials", FieldHandling::kOnlyFalse, kNoCredentials},
    {"ignoreViolations", FieldHandling::kOnlyFalse,
     "its rules look for text in a log line; write ignore_violations.file and .network in a policy"},
    {"enableWeakerNestedSandbox", FieldHandling::kFlag, "enable_weaker_nested_sandbox"},
    {"allowNestedUserNamespaces", FieldHandling::kFlag, "allow_nested_userns"},
    {"enableWeakerNetworkIsolation", FieldHandling::kOnlyFalse, kMac},
    {"allowAppleEvents", FieldHandling::kOnlyFalse, kMac},
    {"allowPty", FieldHandling::kNotNeeded, "a terminal is given whenever stdin and stdout are terminals"},
    {"ripgrep", FieldHandling::kNotNeeded, kOwn},
    {"mandatoryDenySearchDepth", FieldHandling::kNotNeeded, "protected names hold at every depth without a search"},
    {"seccomp", FieldHandling::kNotNeeded, kOwn},
    {"bwrapPath", FieldHandling::kNotNeeded, kOwn},
    {"socatPath", FieldHandling::kNotNeeded, kOwn},
    {"javaAgentJarPath", FieldHandling::kNotNeeded, kOwn},
    {"windows", FieldHandling::kNotNeeded, "this machine is not Windows"},
    {"git", FieldHandling::kOnlyFalse, "directories that git calls safe are for git's own configuration"},
};

}  // namespace

std::span<const FieldRule> field_rules_of_srt() noexcept { return kSrt; }

bool is_srt(const Node& root) noexcept {
  const Node* files = find_member(root, "filesystem");
  return find_member(root, "enabled") == nullptr && find_member(root, "network") != nullptr && files != nullptr &&
         find_member(*files, "denyRead") != nullptr;
}

}  // namespace belljar::guard
