// A policy from a recording of what a command touched.
//
// Grants are made as few and as plain as a person can review: directories of the system as a whole, a
// directory instead of many files in it, nothing below what is granted already. Three things are never
// granted by themselves, but told, so that a person decides: what the policy refused while learning, names
// that are protected, and a home directory that was merely listed.
#include "policy/learn.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/paths.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/units.h"
#include "belljar/violation_text.h"
#include "policy/defaults.h"
#include "policy/domains.h"
#include "policy/file_rules.h"
#include "policy/host.h"
#include "policy/ip.h"
#include "policy/merge.h"
#include "policy/paths.h"
#include "policy/permit.h"
#include "policy/protected.h"
#include "policy/refusal.h"
#include "policy/schema.h"
#include "policy/tls_interception.h"

namespace belljar::policy {
namespace {

// Programs, libraries and settings of the system: granted as a whole. Those that are not there grant nothing.
constexpr std::string_view kSystem[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
constexpr std::string_view kSystemWhenUsed[] = {"/etc", "/sys", "/nix/store", "/gnu/store"};
constexpr std::string_view kOwnMounts[] = {"/proc", "/dev"};
constexpr std::size_t kManyFiles = 16;  // of one directory: then the directory

bool within_any(std::string_view path, std::span<const std::string_view> roots) {
  return std::ranges::any_of(roots, [path](std::string_view root) { return is_within(path, root); });
}

// What lies below another of the set goes.
void keep_topmost(std::set<std::string>& paths) {
  for (auto at = paths.begin(); at != paths.end();) {
    const bool covered =
        std::ranges::any_of(paths, [&](const std::string& other) { return other != *at && is_within(*at, other); });
    at = covered ? paths.erase(at) : std::next(at);
  }
}

class Learner {
 public:
  Learner(const LearnInput& input, const Effective& in_force, const MergeContext& context)
      : input_(input), in_force_(in_force), policy_(in_force.policy), context_(context) {}

  Learned run() {
    for (const Touched& touched : input_.touched) sort_in(touched);
    keep_topmost(writes_);
    gather_reads();
    return write();
  }

 private:
  bool is_private(std::string_view path) const {
    if (policy_.filesystem.tmp != Tmp::kPrivate || is_within(path, context_.workspace)) return false;
    if (!context_.home.empty() && is_within(path, context_.home)) return false;
    // A rule of its own shows it through the private directory.
    if (const FsEntry* rule = find_rule(in_force_.complete, path); rule != nullptr && rule->path != "/") return false;
    constexpr std::string_view kTmp[] = {"/tmp", "/var/tmp", "/dev/shm"};
    return within_any(path, kTmp) || (!context_.runtime_dir.empty() && is_within(path, context_.runtime_dir));
  }
  bool is_cache(std::string_view path) const {
    if (is_scratch(policy_.filesystem, path)) return true;
    if (policy_.filesystem.caches == Caches::kOff) return false;
    return std::ranges::any_of(policy_.filesystem.cache_dirs, [&](const std::string& cache) { return is_within(path, cache); });
  }
  Access access_of(std::string_view path) const {
    const FsEntry* rule = find_rule(in_force_.complete, path);
    return rule == nullptr ? Access::kRead : rule->access;
  }

  void sort_in(const Touched& touched) {
    if (within_any(touched.path, kOwnMounts) || is_private(touched.path)) return;
    if (is_cache(touched.path)) {
      caches_ = caches_ || touched.read || touched.written || touched.made;
      return;
    }
    const Access access = access_of(touched.path);
    if (access == Access::kNone) {
      if (touched.read || touched.executed || touched.written || touched.made) refused_.push_back(&touched);
      return;
    }
    if (touched.written || touched.made) {
      if (access != Access::kWrite) refused_.push_back(&touched);
      else sort_in_write(touched);
    }
    if (touched.exists && (touched.looked || touched.read || touched.executed)) reads_.push_back(&touched);
  }

  void sort_in_write(const Touched& touched) {
    const std::string root = touched.made ? parent_of(touched.path) : touched.path;
    if (is_violation(touched.path)) return;  // told with the other refusals
    if (is_protected(root)) protected_.push_back(&touched);
    else if (!touched.lost) writes_.insert(root);
  }

  bool is_violation(std::string_view path) const {
    return std::ranges::any_of(input_.result.violations, [path](const Violation& violation) {
      return violation.rule.starts_with("filesystem.") && violation.target == path;
    });
  }

  // An entry for `root` would lift the protection of an agent's or editor's name (filesystem.protect), which holds while learning.
  bool is_protected(std::string_view root) const {
    if (policy_.filesystem.protect == Protect::kNone) return false;
    const FsEntry* const rule = find_rule(in_force_.complete, root);
    for (std::size_t at = root.find('/'); at != std::string_view::npos; at = root.find('/', at + 1)) {
      const std::string_view rest = root.substr(at + 1);
      const std::size_t length = folds_to(rest.substr(0, rest.find('/')), ".gitmodules") ? 0 : protected_length(rest);
      const std::string_view name = root.substr(0, at + 1 + length);
      if (length > 0 && (rule == nullptr || rule->glob || !is_within(rule->path, name))) return true;
    }
    return false;
  }

  bool covered(const std::string& path) const {
    if (within_any(path, kSystem) || is_within(path, context_.workspace)) return true;
    return std::ranges::any_of(writes_, [&](const std::string& root) { return is_within(path, root); });
  }

  void gather_reads() {
    std::map<std::string, std::size_t> files_in;
    for (const Touched* touched : reads_) {
      if (!touched->directory) ++files_in[parent_of(touched->path)];
    }
    for (const Touched* touched : reads_) {
      if (const std::string secret = secret_around(touched->path); !secret.empty()) {
        granted_.insert(secret);
        continue;
      }
      if (covered(touched->path)) continue;
      const auto* const system =
          std::ranges::find_if(kSystemWhenUsed, [&](std::string_view root) { return is_within(touched->path, root); });
      if (system != std::end(kSystemWhenUsed)) granted_.insert(std::string(*system));
      else if (!touched->directory) grant_file(touched->path, files_in);
      else if (touched->read) grant_directory(touched->path);
    }
    keep_topmost(granted_);
  }

  // A secret that was opened opens as a whole: a rule below it cannot be served.
  std::string secret_around(const std::string& path) const {
    for (std::string& secret : secret_paths(context_)) {
      if (is_within(path, secret)) return std::move(secret);
    }
    return "";
  }

  void grant_file(const std::string& path, const std::map<std::string, std::size_t>& files_in) {
    const std::string directory = parent_of(path);
    if (files_in.at(directory) < kManyFiles || holds_home(directory)) granted_.insert(path);
    else granted_.insert(directory);
  }
  // Listing the home directory, or one above it, is no reason to open all of it.
  void grant_directory(const std::string& path) {
    if (holds_home(path)) listed_.insert(path);
    else granted_.insert(path);
  }
  bool holds_home(const std::string& path) const { return !context_.home.empty() && is_within(context_.home, path); }

  // ---- text

  std::string risk_of_write(const std::string& path) const {
    if (path == "/" || holds_home(path)) return "everything the user owns can be changed, start files of shells included";
    if (const std::string_view name = protected_name_in(path); !name.empty())
      return format("`{}` is read by git, an editor, an agent or a shell outside: what is planted there runs later", name);
    if (!is_within(path, context_.workspace)) return "outside the workspace: changed for good";
    return "";
  }

  // Only for what a layer opened: secrets are closed by default.
  std::string risk_of_read(const std::string& path) const {
    for (const std::string& secret : secret_paths(context_)) {
      if (is_within(path, secret) || is_within(secret, path)) return "keys or tokens can be read";
    }
    return "";
  }

  void comment(const std::string& text) { toml_ += "# " + escaped(text) + "\n"; }
  void risky(const std::string& what, const std::string& risk) {
    comment("RISK " + what + ": " + risk);
    risks_.push_back(what + ": " + risk);
  }

  // Paths TOML cannot hold are told and left out.
  void list(std::string_view key, const std::set<std::string>& paths, std::size_t least) {
    std::vector<std::string> texts;
    for (const std::string& path : paths) {
      if (escaped(path) == path) texts.push_back(path);
      else comment(format("not granted, for TOML cannot hold its name: {}", path));
    }
    if (texts.size() < least) return;
    toml_ += format("{} = [\n", key);
    for (const std::string& text : texts) toml_ += format("  {},\n", to_toml(text));
    toml_ += "]\n";
  }

  Learned write() {
    head();
    const bool whole = writes_.contains(context_.workspace);
    toml_ += format("mode = \"{}\"\n", whole ? "workspace-write" : "read-only");
    write_filesystem(whole);
    write_network();
    write_limits();
    write_protected();
    write_refused();
    return {std::move(toml_), std::move(risks_)};
  }

  void head() {
    comment(format("Learned by `belljar learn` from one run of {} (exit code {}). Read it before you use it.",
                   quoted(input_.program), input_.result.exit_code));
    comment("What another run, other input or another machine needs is not in it.");
    if (input_.result.exit_code != 0) comment("That run failed: what it would have needed afterwards is not in it either.");
  }

  void write_filesystem(bool whole) {
    std::set<std::string> roots = writes_;
    if (whole) roots.erase(context_.workspace);
    toml_ += "\n[filesystem]\n";
    for (const std::string& root : roots) {
      if (const std::string risk = risk_of_write(root); !risk.empty()) risky("write " + root, risk);
    }
    list("writable_roots", roots, 1);
    if (caches_) comment("It used caches of package managers, which need the whole tree in view: reads are not narrowed.");
    else if (!input_.complete) comment("It used more files than were recorded: reads are not narrowed.");
    for (const std::string& path : listed_)
      comment(format("It listed {}. That alone is not granted: only what it read below is there.", path));
    if (caches_ || !input_.complete) return;
    std::set<std::string> reads = granted_;
    for (const std::string& path : reads) {
      const bool system = std::ranges::find(kSystemWhenUsed, path) != std::end(kSystemWhenUsed);
      if (const std::string risk = system ? "" : risk_of_read(path); !risk.empty()) risky("read " + path, risk);
    }
    for (const std::string_view system : kSystem) reads.emplace(system);
    list("readonly_paths", reads, 0);
    toml_ += "\n[[filesystem.entries]]  # nothing else is there\npath = \"/\"\naccess = \"none\"\n";
  }

  // What the proxy let through. A rule for requests stays one; of other hosts the port counts.
  struct Used {
    std::set<std::string> domains, requests, credentials;
  };
  Used used_hosts() const {
    Used used;
    const auto& network = policy_.network;
    const auto interception = make_interception_rules(network);
    for (const EgressRecord& record : input_.result.egress) {
      const auto host = parse_host(record.host);
      const bool leaves = record.protocol != "dns" && record.protocol != "host-port" && record.protocol != "publish";
      if (!record.allowed || !leaves || !host) continue;
      const Destination place{*host, record.port};
      const bool request = std::ranges::find(network.allowed_requests, record.rule) != network.allowed_requests.end();
      (request ? used.requests : used.domains).insert(request ? record.rule : to_string(place));
      // A name that leads inside needs the address as well, as it did here.
      if (const auto ip = parse_ip(record.address); ip && !why_not_public(*ip).empty())
        used.domains.insert(to_string(Destination{{.name = {}, .ip = ip}, record.port}));
      if (!interception) continue;
      for (const Credential* credential : credentials_for(*interception, place)) used.credentials.insert(credential->text);
    }
    return used;
  }

  // As it was while learning, where that is not the default.
  void carry(std::string_view name) {
    const Key& key = *find_key(name);
    const auto value = load(key, policy_);
    if (value && value != load(key, Policy{})) toml_ += format("{} = {}\n", name.substr(name.find('.') + 1), to_toml(*value));
  }

  void grant(std::string_view name, const std::set<std::string>& texts) {
    if (texts.empty()) return;
    risky(std::string(name), std::string(find_key(name)->risk));
    list(name.substr(name.find('.') + 1), texts, 1);
  }

  // The connections themselves tell nothing here: they lead to the proxy, or to addresses that mean something in that run alone.
  void write_proxy(const Used& used) {
    toml_ += "\n[network]\nmode = \"proxy\"\n";
    if (input_.result.egress_dropped > 0) comment("It made more connections than were recorded: hosts may be missing.");
    if (!policy_.network.upstream_proxy.empty())
      comment("It left by another proxy, which is not written here: --upstream-proxy names it.");
    grant("network.allowed_domains", used.domains);
    grant("network.allowed_requests", used.requests);
    grant("network.credentials", used.credentials);
    for (const char* name : {"network.denied_domains", "network.methods", "network.proxy_auth", "network.transparent",
                             "network.tls_passthrough", "network.tls_ca_file"})
      carry(name);
  }

  void write_network() {
    if (policy_.network.mode == NetMode::kProxy) {
      const Used used = used_hosts();
      if (!used.domains.empty() || !used.requests.empty()) return write_proxy(used);
      toml_ += "\n[network]\nmode = \"none\"\n";
      return;
    }
    const bool host = policy_.network.mode == NetMode::kHost && !input_.reached.empty();
    toml_ += "\n[network]\n";
    if (host) risky("network.mode host", std::string(find_key("network.mode")->risk));
    for (const std::string& peer : input_.reached) comment(format("{} {}", host ? "connected to" : "refused: connect to", peer));
    if (!host && !input_.reached.empty())
      comment("`--net host` would permit it; risk: " + std::string(find_key("network.mode")->risk));
    toml_ += format("mode = \"{}\"\n", host ? "host" : "none");
  }

  // With room above what was measured; never more than what was in force.
  void write_limits() {
    const ExecResult& result = input_.result;
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(result.duration);
    comment(format("Measured: {} s, {} ms of processor time, {} of memory at most, {} tasks seen at once.", seconds.count(),
                   (result.usage.cpu_user + result.usage.cpu_system).count() / 1000,
                   result.usage.peak_memory ? to_string(*result.usage.peak_memory) : "unknown", input_.tasks));
    toml_ += "\n[limits]\n";
    auto timeout = std::chrono::milliseconds(std::max(seconds * 10, std::chrono::seconds(10)));
    if (policy_.limits.timeout) timeout = std::min(timeout, *policy_.limits.timeout);
    toml_ += format("timeout = \"{}\"\n", belljar::to_string(timeout));
    if (result.usage.peak_memory) {
      constexpr std::uint64_t kStep = 64ULL << 20;
      Bytes memory{(result.usage.peak_memory->count * 2 / kStep + 1) * kStep};
      if (policy_.limits.memory) memory = std::min(memory, *policy_.limits.memory);
      toml_ += format("memory = \"{}\"\n", to_string(memory));
    }
    std::uint64_t pids = std::max<std::uint64_t>(64, input_.tasks * 4);
    if (policy_.limits.pids) pids = std::min(pids, *policy_.limits.pids);
    toml_ += format("pids = {}\n", pids);
  }

  static Violation attempt(const Touched& touched) {
    Violation violation;
    violation.operation = !touched.written && !touched.made ? "read" : touched.made ? "create" : "write";
    violation.target = touched.path;
    return violation;
  }

  void tell(const Violation& violation) {
    const Permit permit = permit_for(violation, {context_.home, context_.runtime_dir});
    comment(format("{} {}; {} would permit it; risk: {}", violation.operation == "read" ? "read" : "write", violation.target,
                   permit.flag.empty() ? "no flag" : permit.flag, permit.risk));
  }

  void write_protected() {
    if (protected_.empty()) return;
    toml_ += "\n";
    comment("Not granted, for what is planted there runs later outside:");
    for (const Touched* touched : protected_) {
      Violation violation = attempt(*touched);
      violation.rule = "filesystem.protect";
      tell(violation);
    }
  }

  void write_refused() {
    if (refused_.empty() && input_.result.violations.empty()) return;
    toml_ += "\n";
    comment("Refused while learning, and so not granted:");
    for (const Touched* touched : refused_) {
      Violation violation = attempt(*touched);
      const FsEntry* rule = find_rule(in_force_.complete, touched->path);
      violation.rule = rule != nullptr ? entry_key(*rule) : "filesystem.entries";
      if (rule != nullptr) violation.origin = rule->origin;
      tell(violation);
    }
    for (const Violation& violation : merge_alike(input_.result.violations)) {
      if (violation.operation != "connect" && violation.operation != "udp-connect") comment(to_line(violation));
    }
  }

  const LearnInput& input_;
  const Effective& in_force_;
  const Policy& policy_;
  const MergeContext& context_;
  std::set<std::string> writes_, granted_, listed_;
  std::vector<const Touched*> reads_, refused_, protected_;
  bool caches_ = false;
  std::string toml_;
  std::vector<std::string> risks_;
};

}  // namespace

Learned learn(const LearnInput& input, const Effective& in_force, const MergeContext& context) {
  return Learner(input, in_force, context).run();
}

}  // namespace belljar::policy
