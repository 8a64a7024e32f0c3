// What the policies of macOS and Windows cannot express, key by key.
//
// A compiled policy that silently left out a rule would be weaker than the one it was made from. So each key
// is either compiled or named here with the reason, and a unit test holds the tables to the schema: a new key
// fails it until somebody has decided.
#include "policy/compile_gaps.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "policy/file_rules.h"
#include "policy/schema.h"

namespace belljar::policy {
namespace {

constexpr std::string_view kNoLimit = "no such limit", kNoClock = "no clock for a command: its caller has to end it";
constexpr std::string_view kNoProxy = "no proxy of Belljar's", kNoReport = "refusals are not reported there";
constexpr std::string_view kNoBackends = "the text is for one system: nothing else is tried, whatever is named here";
constexpr std::string_view kNoAgent = "it is for `belljar mcp` and `agent`, which judge what is proposed before anything runs";
constexpr std::string_view kNoImage = "no images: the command sees the machine's own files";

// What a policy may ask beyond the defaults, and neither system has a word for. Every key is here, in one of the texts, or among
// the gaps below: CompileGaps.EachKeyIsCompiledOrNamed.
constexpr std::pair<std::string_view, std::string_view> kUnheld[] = {
    {"backend", kNoBackends},
    {"fallback", kNoBackends},
    {"isolation", "nobody there says what stands between the command and the machine"},
    {"enable_weaker_nested_sandbox", "nothing is dropped: inside another sandbox the start fails"},
    {"allow_nested_userns", "no user namespaces"},
    {"allow_root_uid", "no map of ids: the command has those of its caller"},
    {"warm", "nothing is kept ready: each command is started by the system's own tool"},
    {"filesystem.clean_temp_dir", "nobody empties the temporary directory at the start, and it stays"},
    {"filesystem.tmp_size", kNoLimit},
    {"filesystem.devices", "no nodes in /dev of that kind"},
    {"network.methods", kNoProxy},
    {"network.proxy_auth", kNoProxy},
    {"network.upstream_proxy", kNoProxy},
    {"network.upstream_bypass", kNoProxy},
    {"network.tls_passthrough", kNoProxy},
    {"network.tls_ca_file", kNoProxy},
    {"limits.timeout", kNoClock},
    {"limits.max_timeout", kNoClock},
    {"limits.idle_timeout", kNoClock},
    {"limits.kill_grace", kNoClock},
    {"limits.cpus", kNoLimit},
    {"limits.cpu_request", kNoLimit},
    {"limits.memory", kNoLimit},
    {"limits.memory_request", kNoLimit},
    {"limits.pids", kNoLimit},
    {"limits.open_files", kNoLimit},
    {"limits.file_size", kNoLimit},
    {"limits.disk", kNoLimit},
    {"limits.write_quota", kNoLimit},
    {"limits.egress_bytes", kNoProxy},
    {"limits.egress_connections", kNoProxy},
    {"limits.egress_rate", kNoProxy},
    {"limits.egress_heads", kNoProxy},
    {"limits.output_bytes", kNoLimit},
    {"limits.output_action", kNoLimit},
    {"commands.allow", kNoAgent},
    {"commands.deny", kNoAgent},
    {"container.image", kNoImage},
    {"container.pull", kNoImage},
    {"permission.mode", kNoAgent},
    {"permission.auto_allow_bash_if_sandboxed", kNoAgent},
    {"permission.ask_for_reads", kNoAgent},
    {"ignore_violations.file", kNoReport},
    {"ignore_violations.network", kNoReport},
};

}  // namespace

std::vector<CompileGap> common_gaps(const Policy& policy, std::string_view system, const std::vector<std::string_view>& held) {
  std::vector<CompileGap> gaps;
  const Policy nothing_asked;
  for (const auto& [name, why] : kUnheld) {
    const Key& key = *find_key(name);
    if (std::ranges::find(held, name) != held.end() || load(key, policy) == load(key, nothing_asked)) continue;
    gaps.push_back({std::string(name), why.starts_with("no ") ? format("{} has {}", system, why) : std::string(why)});
  }
  const Filesystem& files = policy.filesystem;
  if (files.caches != Caches::kOff && !files.cache_dirs.empty())
    gaps.push_back({"filesystem.caches", "there are no layers: the host's caches can be read and not written"});
  if (!files.scratch.empty()) gaps.push_back({"filesystem.scratch", "there are no layers: what is written there fails"});
  for (const Volume& volume : files.volumes) {
    if (volume.source != volume.target)
      gaps.push_back({"filesystem.volumes", format("there are no mounts: {} does not appear at {}", volume.source, volume.target)});
  }
  if (files.siblings == Siblings::kHidden)
    gaps.push_back({"filesystem.siblings", "which other sandboxes there are is not known when the text is made"});
  if (policy.network.mode == NetMode::kProxy) {
    gaps.push_back({"network.domains", format("the text leads to the proxy's port alone; {} has {}", system, kNoProxy)});
    if (policy.network.transparent) gaps.push_back({"network.transparent", "only programs that know of the proxy are served"});
  }
  if (!policy.network.credentials.empty() || !policy.network.allowed_requests.empty())
    gaps.push_back({"network.requests", format("{} has {} to look into them", system, kNoProxy)});
  return gaps;
}

Filesystem with_volumes(const Effective& effective) {
  Filesystem complete = effective.complete;
  for (const Volume& volume : effective.policy.filesystem.volumes) {
    if (volume.source == volume.target)
      complete.entries.push_back(
          {.path = volume.source, .access = volume.readonly ? Access::kRead : Access::kWrite, .origin = volume.origin});
  }
  return complete;
}

std::vector<FsEntry> in_order(const Filesystem& complete) {
  std::vector<FsEntry> entries;
  for (const FsEntry& entry : complete.entries) {
    if (!entry.glob) entries.push_back(entry);
  }
  std::ranges::stable_sort(entries, [](const FsEntry& a, const FsEntry& b) {
    if (a.path != b.path) return a.path.size() != b.path.size() ? a.path.size() < b.path.size() : a.path < b.path;
    return strictness(a.access) < strictness(b.access);
  });
  std::vector<FsEntry> once;
  for (FsEntry& entry : entries) {
    if (!once.empty() && once.back().path == entry.path) once.back() = std::move(entry);
    else once.push_back(std::move(entry));
  }
  return once;
}

Result<Compiled> finish(Compiled compiled, const Policy& policy, std::string_view system) {
  for (const CompileGap& gap : compiled.gaps) {
    if (std::ranges::find(policy.require, gap.clause) != policy.require.end())
      return Error(Code::kFailedPrecondition, format("{} is required, and {} does not hold it", gap.clause, system))
          .reason(gap.why);
  }
  return compiled;
}

}  // namespace belljar::policy
