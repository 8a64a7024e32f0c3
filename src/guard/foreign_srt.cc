#include <span>
#include <string_view>

#include "guard/importer.h"
#include "policy/document.h"

namespace belljar::guard {

using policy::Node;

namespace {

constexpr std::string_view kNoChain = "write another proxy as network.upstream_proxy in a policy; hosts stay judged here";

constexpr Meaning kSrt[] = {
    {"network.allowedDomains", How::kDomains, "network.allowed_domains"},
    {"network.deniedDomains", How::kTexts, "network.denied_domains"},
    {"network.deniedDomainReasons", How::kOnlyFalse, "a refusal names its rule; texts of your own are not shown"},
    {"network.deniedResolvedAddresses", How::kOnlyFalse,
     "addresses that are not public are refused after resolution anyway; lists of your own are not held"},
    {"network.strictAllowlist", How::kOnlyTrue, "a host that no rule allows is refused, never asked about"},
    {"network.allowUnixSockets", How::kPaths, "network.allow_unix_sockets"},
    {"network.allowAllUnixSockets", How::kFlag, "network.allow_all_unix_sockets"},
    {"network.allowLocalBinding", How::kFlag, "network.allow_local_binding"},
    {"network.allowMachLookup", How::kOnlyFalse, kMac},
    {"network.httpProxyPort", How::kUpstream, "http"},
    {"network.socksProxyPort", How::kUpstream, "socks5h"},
    {"network.mitmProxy", How::kOnlyFalse, kNoChain},
    {"network.parentProxy", How::kOnlyFalse, kNoChain},
    {"network.tlsTerminate", How::kOnlyFalse, kNoTls},
    {"network.allowPlaintextHeaderSet", How::kOnlyFalse, kNoTls},
    {"network.stripResponseHeaders", How::kOnlyFalse, kNoTls},
    {"network.refuseOpaqueTunnels", How::kOnlyFalse, kNoTls},
    {"network.requireHostMatch", How::kOnlyFalse, kNoTls},
    {"network.ambiguousRequestTarget", How::kOnlyFalse, kNoTls},
    {"filesystem.denyRead", How::kPaths, "filesystem.blocked_paths"},
    {"filesystem.allowRead", How::kReadable, ""},
    {"filesystem.allowWrite", How::kPaths, "filesystem.writable_roots"},
    {"filesystem.denyWrite", How::kPaths, "filesystem.readonly_paths"},
    {"filesystem.allowGitConfig", How::kNotNeeded,
     "git's configuration is judged by its content, so that harmless keys can be set and others not"},
    {"filesystem.disabled", How::kOnlyFalse, "it drops all file rules; choose mode = \"danger-full-access\" in a policy, aloud"},
    {"credentials", How::kOnlyFalse, kNoCredentials},
    {"ignoreViolations", How::kOnlyFalse,
     "its rules look for text in a log line; write ignore_violations.file and .network in a policy"},
    {"enableWeakerNestedSandbox", How::kFlag, "enable_weaker_nested_sandbox"},
    {"allowNestedUserNamespaces", How::kFlag, "allow_nested_userns"},
    {"enableWeakerNetworkIsolation", How::kOnlyFalse, kMac},
    {"allowAppleEvents", How::kOnlyFalse, kMac},
    {"allowPty", How::kNotNeeded, "a terminal is given whenever stdin and stdout are terminals"},
    {"ripgrep", How::kNotNeeded, kOwn},
    {"mandatoryDenySearchDepth", How::kNotNeeded, "protected names hold at every depth without a search"},
    {"seccomp", How::kNotNeeded, kOwn},
    {"bwrapPath", How::kNotNeeded, kOwn},
    {"socatPath", How::kNotNeeded, kOwn},
    {"javaAgentJarPath", How::kNotNeeded, kOwn},
    {"windows", How::kNotNeeded, "this machine is not Windows"},
    {"git", How::kOnlyFalse, "directories that git calls safe are for git's own configuration"},
};

}  // namespace

std::span<const Meaning> meanings_of_srt() noexcept { return kSrt; }

bool is_srt(const Node& root) noexcept {
  const Node* files = find_member(root, "filesystem");
  return find_member(root, "enabled") == nullptr && find_member(root, "network") != nullptr && files != nullptr &&
         find_member(*files, "denyRead") != nullptr;
}

}  // namespace belljar::guard
