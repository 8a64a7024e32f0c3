// Layers joined to one policy. merge.h has the rules; this is how they are kept.
//
// Layers are applied in ascending order to one policy, each key in the way that its row in the schema says.
// File-system rules are collected in a list of their own, with an index by path, because the same path again
// replaces a rule in its place.
//
// A layer from the workspace is judged twice. While it is applied, each setting is compared with what the
// layers below say (check_narrows). It is not compared with its own earlier lines, or two of them could widen
// together what none may alone. At the end its rules are held to the trusted layers once more: a higher layer
// may have closed a directory, and a deeper path that the project file names as writable would be more
// specific than that, and win.
//
// The mode comes before everything else of a layer. It drops the rules of lower layers and must not drop
// those that stand beside it.
//
// complete_entries() spells out what the mode, the secrets and the temporary directories imply, as rules like
// any other, so that find_rule() alone judges a path and `policy explain` shows the rule that decides. An
// implied rule gives way to a layer's own rule for the very same path.
#include "policy/merge.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/units.h"
#include "policy/backends.h"
#include "policy/defaults.h"
#include "policy/file_rules.h"
#include "policy/ignore.h"
#include "policy/layer.h"
#include "policy/narrow.h"
#include "policy/paths.h"
#include "policy/schema.h"

namespace belljar::policy {
namespace {

Error at_origin(const Origin& origin, const Error& error) {
  return Error(error.code(), format("{}: {}", to_string(origin), error.what())).reason(error.reason()).next(error.next());
}

// A rule as some layer gave it.
struct Rule {
  FsEntry entry;
  const Key* key = nullptr;
  std::size_t layer = 0;
};

Access access_of(const Key& key) noexcept {
  return key.name == "filesystem.writable_roots"   ? Access::kWrite
         : key.name == "filesystem.readonly_paths" ? Access::kRead
                                                   : Access::kNone;
}

bool is_elsewhere(const std::string& backend) {
  const BackendKind* const kind = find_backend_kind(backend);
  return kind != nullptr && kind->elsewhere;
}

bool drops_rules(Mode mode) noexcept { return mode == Mode::kDangerFullAccess || mode == Mode::kExternalSandbox; }

class Merger {
 public:
  explicit Merger(const MergeContext& context) : context_(context) {
    policy_.filesystem.cache_dirs = default_cache_dirs(context.home);
    const auto excluded = secret_variables();
    policy_.environment.exclude.assign(excluded.begin(), excluded.end());
  }

  Result<Effective> run(std::span<const Layer> layers) {
    for (const Layer& layer : layers) BELLJAR_CHECK(apply(layer));
    if (narrowed_) BELLJAR_CHECK(hold_to_trusted(layers));
    return finish();
  }

 private:
  // A project file is judged against the layers below it, and layers above may close what it has named: a directory that the
  // command line makes read-only holds also for a deeper path of which the project file says that it is written to.
  Result<void> hold_to_trusted(std::span<const Layer> layers) {
    Merger trusted(context_);
    for (const Layer& layer : layers) {
      if (!layer.narrow_only) BELLJAR_CHECK(trusted.apply(layer));
    }
    Filesystem without;
    without.entries = trusted.complete_entries().entries;
    for (Rule& rule : rules_) {
      FsEntry& entry = rule.entry;
      if (entry.kind != RuleKind::kNarrowing || entry.access == Access::kNone) continue;
      const FsEntry* const now = find_rule(without, entry.path);
      if (now == nullptr || now->access == entry.access || now->access == Access::kWrite) continue;
      entry.access = now->access, entry.origin = now->origin;
    }
    return {};
  }

  Result<void> apply(const Layer& layer) {
    ++layer_;
    Layer resolved = layer;
    for (Setting& setting : resolved.settings) BELLJAR_CHECK(resolve(setting, layer));
    if (layer.narrow_only) {
      narrowed_ = narrowed_ || !resolved.settings.empty();
      // Judged against what the layers below say, not against what this layer has said two lines up.
      Policy in_force = policy_;
      in_force.filesystem.entries = complete_entries().entries;
      for (const Setting& setting : resolved.settings) BELLJAR_CHECK(check_narrows(setting, in_force));
      // A value in force, said again, is still of who said it first: a mode that moved up here would drop the rules beside it.
      std::erase_if(resolved.settings, [&](const Setting& setting) {
        return setting.key->join == Join::kReplace && load(*setting.key, in_force) == setting.value;
      });
    }
    // Hosts that a lower layer opened for its proxy mean nothing without one: `--net none` over a profile that has it.
    const auto ends_proxy = [](const Setting& setting) {
      return setting.key->name == "network.mode" && setting.value != Value(std::string("proxy"));
    };
    if (std::ranges::any_of(resolved.settings, ends_proxy)) {
      policy_.network.allowed_domains.clear();
      std::erase_if(origins_, [](const auto& origin) { return origin.first.starts_with("network.allowed_domains"); });
    }
    // The mode first: it drops lower layers' rules, never those that stand beside it.
    for (const Setting& setting : resolved.settings) {
      if (setting.key->name == "mode") set_mode(setting);
    }
    for (const Setting& setting : resolved.settings) {
      if (setting.key->name != "mode") join(setting, layer.narrow_only);
    }
    return {};
  }

  // Paths become absolute; lists of paths under the three short keys become entries.
  Result<void> resolve(Setting& setting, const Layer& layer) const {
    const std::string& base = layer.name == "flag" && !context_.cwd.empty() ? context_.cwd : context_.workspace;
    const auto fix = [&](std::string& path, const Origin& origin) -> Result<void> {
      auto full = absolute(path, context_.home, base);
      if (!full) return at_origin(origin, full.error());
      path = *std::move(full);
      return {};
    };
    if (setting.key->join == Join::kEntries && setting.key->type == Type::kPaths) {
      std::vector<FsEntry> entries;
      const auto& paths = std::get<std::vector<std::string>>(setting.value);
      for (std::size_t i = 0; i < paths.size(); ++i) {
        // Who writes `--hide '**/.env'` means a pattern. A name with a star in it goes into an entry with `path`.
        const bool glob = paths[i].find('*') != std::string::npos;
        const Origin& from = i < setting.items.size() ? setting.items[i] : setting.origin;
        if (const auto checked = glob ? check_glob(paths[i]) : Result<void>(); !checked) return at_origin(from, checked.error());
        entries.push_back({paths[i], glob, access_of(*setting.key), from});
      }
      setting.value = std::move(entries);
    }
    if (auto* entries = std::get_if<std::vector<FsEntry>>(&setting.value)) {
      for (FsEntry& entry : *entries) {
        // A relative pattern is anchored at the base, whose own name is no pattern.
        if (entry.glob && !entry.path.starts_with('/') && !entry.path.starts_with('~'))
          entry.path = literal_glob(base) + "/" + entry.path;
        else if (entry.glob && entry.path.starts_with("~/")) entry.path = literal_glob(context_.home) + entry.path.substr(1);
        BELLJAR_CHECK(fix(entry.path, entry.origin));
      }
    } else if (auto* volumes = std::get_if<std::vector<Volume>>(&setting.value)) {
      for (Volume& volume : *volumes) {
        BELLJAR_CHECK(fix(volume.source, volume.origin));
        BELLJAR_CHECK(fix(volume.target, volume.origin));
      }
    } else if (setting.key->name == "ignore_violations.file") {
      for (std::string& pattern : std::get<std::vector<std::string>>(setting.value))
        pattern = anchored(pattern, literal_glob(base), literal_glob(context_.home));
    } else if (setting.key->type == Type::kPath) {
      BELLJAR_CHECK(fix(std::get<std::string>(setting.value), setting.origin));
    } else if (setting.key->type == Type::kPaths) {
      auto& paths = std::get<std::vector<std::string>>(setting.value);
      for (std::string& path : paths) BELLJAR_CHECK(fix(path, setting.origin));
    }
    return {};
  }

  void set_mode(const Setting& setting) {
    store(*setting.key, policy_, setting.value);
    origins_["mode"] = setting.origin;
    mode_layer_ = layer_;
    if (policy_.mode != Mode::kReadOnly) return;
    std::erase_if(rules_, [](const Rule& rule) { return rule.entry.access == Access::kWrite; });
    for (Volume& volume : policy_.filesystem.volumes) volume.readonly = true;
    if (policy_.filesystem.temp_dir) policy_.filesystem.temp_dir.reset(), origins_.erase("filesystem.temp_dir");
    index_rules();
  }

  void join(const Setting& setting, bool narrow) {
    const std::string name(setting.key->name);
    if (name == "network.mode") net_layer_ = layer_;
    if (name == "filesystem.siblings") siblings_layer_ = layer_;
    if (setting.key->join == Join::kEntries) return join_entries(setting, narrow);
    // As above, of lists.
    if (!narrow || setting.key->narrow != Narrow::kNever) origins_[name] = setting.origin;
    if (setting.key->join == Join::kReplace) return store(*setting.key, policy_, setting.value);
    const bool whole = narrow && setting.key->narrow == Narrow::kSubset;  // a narrowed grant is the whole grant
    Field field = setting.key->field(policy_);
    if (const auto* texts = std::get_if<std::vector<std::string>>(&setting.value)) {
      join_list(*std::get<std::vector<std::string>*>(field), *texts, setting, whole);
    } else if (const auto* ports = std::get_if<std::vector<PortPair>>(&setting.value)) {
      join_list(*std::get<std::vector<PortPair>*>(field), *ports, setting, whole);
    } else if (const auto* volumes = std::get_if<std::vector<Volume>>(&setting.value)) {
      join_volumes(*volumes, whole);
    } else if (const auto* map = std::get_if<std::map<std::string, std::string>>(&setting.value)) {
      auto& have = *std::get<std::map<std::string, std::string>*>(field);
      if (map->empty()) have.clear();
      std::size_t i = 0;
      for (const auto& [key, text] : *map) {
        have[key] = text;
        origins_[name + "[" + key + "]"] = i < setting.items.size() ? setting.items[i] : setting.origin;
        ++i;
      }
    }
  }

  static std::string element_name(const std::string& element) { return element; }
  static std::string element_name(const PortPair& element) { return to_string(element); }

  template <class Element>
  void join_list(std::vector<Element>& have, const std::vector<Element>& added, const Setting& setting, bool whole) {
    if (added.empty() || whole) have.clear();
    for (std::size_t i = 0; i < added.size(); ++i) {
      if (std::ranges::find(have, added[i]) != have.end()) continue;
      have.push_back(added[i]);
      origins_[std::string(setting.key->name) + "[" + element_name(added[i]) + "]"] =
          i < setting.items.size() ? setting.items[i] : setting.origin;
    }
  }

  void join_volumes(const std::vector<Volume>& added, bool whole) {
    auto& have = policy_.filesystem.volumes;
    if (added.empty() || whole) have.clear();
    for (const Volume& volume : added) {
      std::erase_if(have, [&](const Volume& other) { return other.target == volume.target; });
      have.push_back(volume);
    }
  }

  // The same path again replaces a lower layer's rule; inside one layer the stricter rule stands.
  void join_entries(const Setting& setting, bool narrow) {
    const auto& added = std::get<std::vector<FsEntry>>(setting.value);
    if (added.empty()) {
      std::erase_if(rules_, [&](const Rule& rule) { return rule.key == setting.key && rule.layer < layer_; });
      index_rules();
    }
    for (FsEntry entry : added) {
      if (narrow) entry.kind = RuleKind::kNarrowing;
      const auto [found, fresh] = rule_at_.try_emplace(rule_name(entry), rules_.size());
      if (fresh) {
        rules_.push_back({entry, setting.key, layer_});
        continue;
      }
      Rule& have = rules_[found->second];
      if (have.layer == layer_ && have.entry.access != entry.access) warn_of_tie(have.entry, entry);
      if (have.layer == layer_ && strictness(have.entry.access) >= strictness(entry.access)) continue;
      if (narrow && have.entry.access == entry.access) continue;  // a repetition: it is still whose it was
      have = {entry, setting.key, layer_};
    }
  }

  // Legal, and probably not meant.
  void warn_of_tie(const FsEntry& first, const FsEntry& second) {
    const FsEntry& held = strictness(first.access) >= strictness(second.access) ? first : second;
    warnings_.push_back(
        format("{}: {} has two rules: {} ({}) and {} ({}); it is {}: of two, `none` holds before `write`, `write` before `read`",
               to_string(second.origin), quoted(second.path), to_string(first.access), to_string(first.origin),
               to_string(second.access), to_string(second.origin), to_string(held.access)));
  }
  static std::string rule_name(const FsEntry& entry) { return (entry.glob ? "g" : "p") + entry.path; }
  void index_rules() {
    rule_at_.clear();
    for (std::size_t i = 0; i < rules_.size(); ++i) rule_at_.emplace(rule_name(rules_[i].entry), i);
  }

  Origin mode_origin() const {
    const auto found = origins_.find("mode");
    return found == origins_.end() ? Origin{"built-in", "", 0} : found->second;
  }
  Origin origin(const std::string& name) const {
    const auto found = origins_.find(name);
    return found == origins_.end() ? Origin{"built-in", "", 0} : found->second;
  }

  // Everything find_rule() needs: what the mode, the secrets and the temporary directories mean, the layers' own rules, and
  // Belljar's.
  struct Complete {
    std::vector<FsEntry> entries;
    std::size_t own = 0;  // how many at the end are Belljar's
  };

  // A rule of a layer for the very same path stands instead of the implied one.
  Complete complete_entries() const {
    std::vector<FsEntry> entries;
    if (drops_rules(policy_.mode)) {
      entries.push_back({"/", false, Access::kWrite, mode_origin()});
      return {std::move(entries), 0};
    }
    const auto imply = [&](std::string path, Access access, Origin from, RuleKind kind = RuleKind::kGiven) {
      if (path.empty() || (!rule_at_.empty() && rule_at_.contains("p" + path))) return;
      entries.push_back({std::move(path), false, access, std::move(from), kind});
    };
    entries.reserve(rules_.size() + 256);
    const bool writes = policy_.mode == Mode::kWorkspaceWrite;
    imply("/", Access::kRead, {"built-in", "", 0});
    imply(context_.workspace, writes ? Access::kWrite : Access::kRead, mode_origin());
    if (writes) imply_temporary(imply);
    if (policy_.filesystem.secrets == Secrets::kDefault) {
      for (std::string& path : default_secret_paths(context_.home, context_.runtime_dir, policy_.profile)) {
        imply(std::move(path), Access::kNone, {"default secrets", "", 0}, RuleKind::kDefaultSecret);
      }
    }
    for (const Rule& rule : rules_) entries.push_back(rule.entry);
    const std::size_t given = entries.size();
    if (!policy_.network.credentials.empty()) hide_credentials(entries, policy_.network, context_.home);
    if (writes && opens_repository(entries))
      entries.push_back({context_.repository, false, Access::kWrite, {"linked work tree", "", 0}, RuleKind::kImplied});
    if (auto kept = keep_config(entries)) entries.push_back(*std::move(kept));
    hide_state(entries, context_.state_dir);
    if (policy_.filesystem.secrets == Secrets::kDefault) hide_account(entries), hide_log_ins(entries);
    const std::size_t own = entries.size() - given;
    return {std::move(entries), own};
  }

  // Backends know the secrets of $HOME by themselves. Those of the account's home are rules, so that an empty or foreign $HOME
  // opens none of them.
  void hide_account(std::vector<FsEntry>& entries) const {
    if (context_.account_home == context_.home) return;
    for (std::string& path : home_secret_paths(context_.account_home, policy_.profile)) {
      if (!rule_at_.contains("p" + path))
        entries.push_back({std::move(path), false, Access::kNone, {"default secrets", "", 0}, RuleKind::kDefaultSecret});
    }
  }

  // Whoever else's: what the agent's own profile does not name of its own is in the layer of its state.
  void hide_log_ins(std::vector<FsEntry>& entries) const {
    for (const LogIn& log_in : context_.log_ins) {
      const auto is_there = [&](const FsEntry& entry) { return !entry.glob && entry.path == log_in.path; };
      if (log_in.profile == policy_.profile || std::ranges::any_of(entries, is_there)) continue;
      entries.push_back({log_in.path, false, Access::kNone, {"default secrets", "", 0}, RuleKind::kDefaultSecret});
    }
  }

  // find_rule() among `entries`, which are as they were afterwards: hundreds are not copied.
  static const FsEntry* rule_among(std::vector<FsEntry>& entries, const std::string& path) {
    Filesystem filesystem;
    filesystem.entries.swap(entries);
    const FsEntry* const rule = find_rule(filesystem, path);
    entries.swap(filesystem.entries);
    return rule;
  }

  // Nobody has said anything of it, or of what it lies in.
  bool opens_repository(std::vector<FsEntry>& entries) const {
    if (context_.repository.empty() || policy_.filesystem.protect == Protect::kAll) return false;
    const FsEntry* const rule = rule_among(entries, context_.repository);
    return rule != nullptr && rule->path == "/" && !rule_at_.contains("p/");
  }

  // Who may write ~/.config must not thereby write the policy of the next start. Only ever takes away: a hidden directory stays so.
  std::optional<FsEntry> keep_config(std::vector<FsEntry>& entries) const {
    if (context_.config_dir.empty() || rule_at_.contains("p" + context_.config_dir)) return std::nullopt;
    const FsEntry* const rule = rule_among(entries, context_.config_dir);
    if (rule == nullptr || rule->access != Access::kWrite) return std::nullopt;
    return FsEntry{context_.config_dir, false, Access::kRead, {"built-in", "", 0}};
  }

  template <class Imply>
  void imply_temporary(const Imply& imply) const {
    if (policy_.filesystem.temp_dir) imply(*policy_.filesystem.temp_dir, Access::kWrite, origin("filesystem.temp_dir"));
    if (policy_.filesystem.tmp != Tmp::kShared) return;
    if (!policy_.filesystem.exclude_slash_tmp) imply("/tmp", Access::kWrite, origin("filesystem.tmp"));
    imply("/var/tmp", Access::kWrite, origin("filesystem.tmp"));
    if (uses_tmpdir()) imply(normal(context_.tmpdir), Access::kWrite, origin("filesystem.tmp"));
  }

  // $TMPDIR comes from the environment: a value that would open the workspace's or home's surroundings is not taken.
  bool uses_tmpdir() const {
    if (policy_.filesystem.exclude_tmpdir_env_var || !context_.tmpdir.starts_with('/')) return false;
    const std::string path = normal(context_.tmpdir);
    return !is_within(context_.workspace, path) && (context_.home.empty() || !is_within(normal(context_.home), path));
  }

  // A file of the workspace may make the others fail: it must not thereby send the command to a machine elsewhere.
  void keep_here() {
    if (!narrowed_ || is_elsewhere(policy_.backend)) return;
    if (std::erase_if(policy_.fallback, is_elsewhere) > 0)
      warnings_.push_back("the workspace has a policy file: its commands fall back to no machine elsewhere");
  }

  // An image says which backend is meant, unless somebody says it.
  void settle_image() {
    if (!policy_.container.image || origins_.contains("backend")) return;
    if (std::ranges::find(policy_.fallback, kContainer) != policy_.fallback.end()) return;
    policy_.backend = kContainer;
    origins_["backend"] = origin("container.image");
  }

  // What must not stay is in a directory of the sandbox's own.
  Result<void> check_clean_temp() const {
    const Filesystem& filesystem = policy_.filesystem;
    if (filesystem.temp_dir || !filesystem.clean_temp_dir || filesystem.tmp != Tmp::kShared) return {};
    return Error(Code::kInvalidArgument, format("{}: `filesystem.clean_temp_dir` (auto_clean_temp) cannot hold",
                                                to_string(origin("filesystem.clean_temp_dir"))))
        .reason("filesystem.tmp is \"shared\": files in the host's /tmp stay there")
        .next("take one of them out, or name filesystem.temp_dir");
  }

  Result<Effective> finish() {
    BELLJAR_CHECK(check_mode());
    BELLJAR_CHECK(check_clean_temp());
    settle_image();
    keep_here();
    BELLJAR_CHECK(check_clauses());
    BELLJAR_CHECK(settle_proxy_auth());
    if (const auto order = backend_order(policy_.backend, policy_.fallback, policy_.isolation); !order)
      return at_origin(origin("fallback"), order.error());
    if (drops_rules(policy_.mode)) {
      if (!rules_.empty())
        warnings_.push_back(format("mode {} drops {} file rules of lower layers", to_string(policy_.mode), rules_.size()));
      policy_.network.mode = NetMode::kHost;
      origins_["network.mode"] = mode_origin();
      policy_.filesystem.siblings.reset();
      origins_.erase("filesystem.siblings");
    }
    if (policy_.mode == Mode::kDangerFullAccess)
      warnings_.emplace_back("mode danger-full-access: no sandbox holds the commands, they have all rights of this user");
    else if (policy_.mode != Mode::kExternalSandbox && policy_.network.mode == NetMode::kHost && !is_elsewhere(policy_.backend))
      warnings_.emplace_back("network.mode host: nothing judges whom the commands reach, services of this machine included");
    BELLJAR_CHECK(check_times());
    clamp_timeout();
    set_tmpdir();
    // "Empty list means none": no cache directories, no cache layer.
    if (policy_.filesystem.cache_dirs.empty() && policy_.filesystem.caches != Caches::kOff) {
      policy_.filesystem.caches = Caches::kOff;
      origins_["filesystem.caches"] = origin("filesystem.cache_dirs");
    }
    Effective result;
    Complete complete = complete_entries();
    result.complete.entries = std::move(complete.entries);
    if (!drops_rules(policy_.mode)) {
      for (const Rule& rule : rules_) policy_.filesystem.entries.push_back(rule.entry);
      const auto& all = result.complete.entries;
      policy_.filesystem.entries.insert(policy_.filesystem.entries.end(), all.end() - static_cast<std::ptrdiff_t>(complete.own),
                                        all.end());
    }
    if (policy_.profile.empty()) policy_.profile = "workspace-write";
    result.policy = std::move(policy_);
    result.origins = std::move(origins_);
    result.warnings = std::move(warnings_);
    return result;
  }

  // Every command would end as it begins. No limit is a key that is not there.
  Result<void> check_times() const {
    const Limits& limits = policy_.limits;
    const std::pair<const char*, std::optional<std::chrono::milliseconds>> times[] = {{"limits.timeout", limits.timeout},
                                                                                      {"limits.max_timeout", limits.max_timeout},
                                                                                      {"limits.idle_timeout", limits.idle_timeout}};
    for (const auto& [key, time] : times) {
      if (time && *time <= std::chrono::milliseconds(0))
        return Error(Code::kInvalidArgument, format("{}: `{}` is {}", to_string(origin(key)), key, belljar::to_string(*time)))
            .next("give a positive time, or leave it out");
    }
    return {};
  }

  // Rules that stand beside or above a mode that drops them contradict it.
  Result<void> check_mode() const {
    if (!drops_rules(policy_.mode)) return {};
    const auto contradiction = [&](const Origin& at, std::string_view what) {
      return Error(Code::kInvalidArgument, format("{}: {} cannot hold in mode {}", to_string(at), what, to_string(policy_.mode)))
          .reason(format("the mode ({}) drops file and network rules", to_string(mode_origin())))
          .next("take the rule out, or choose mode workspace-write");
    };
    for (const Rule& rule : rules_) {
      if (rule.layer >= mode_layer_ && rule.entry.access != Access::kWrite)
        return contradiction(rule.entry.origin, quoted(rule.key->name));
    }
    if (net_layer_ >= mode_layer_ && net_layer_ != 0 && policy_.network.mode != NetMode::kHost) {
      return contradiction(origin("network.mode"), format("network.mode {}", to_string(policy_.network.mode)));
    }
    if (siblings_layer_ >= mode_layer_ && siblings_layer_ != 0 && policy_.filesystem.siblings == Siblings::kHidden)
      return contradiction(origin("filesystem.siblings"), "filesystem.siblings hidden");
    return {};
  }

  Result<void> check_clauses() const {
    if (policy_.network.mode != NetMode::kHost || drops_rules(policy_.mode)) return {};
    for (const std::string name : {"network.allowed_domains", "network.denied_domains", "network.credentials"}) {
      const auto& network = policy_.network;
      const auto& list = name == "network.allowed_domains"  ? network.allowed_domains
                         : name == "network.denied_domains" ? network.denied_domains
                                                            : network.credentials;
      if (list.empty()) continue;
      return Error(Code::kInvalidArgument, format("{}: `{}` cannot hold with network.mode host", to_string(origin(name)), name))
          .reason(format("the host's network ({}) goes past the proxy that judges domains", to_string(origin("network.mode"))))
          .next("choose network.mode proxy, or take the domains out");
    }
    return {};
  }

  // What is caught on its way to another place cannot be asked for a credential: the two are one or the other.
  Result<void> settle_proxy_auth() {
    Network& network = policy_.network;
    if (!network.proxy_auth || !network.transparent) return {};
    if (origins_.contains("network.transparent"))
      return Error(Code::kInvalidArgument, format("{}: `network.proxy_auth` guards nothing with network.transparent",
                                                  to_string(origin("network.proxy_auth"))))
          .reason(format("programs that know nothing of the proxy ({}) are served without a credential",
                         to_string(origin("network.transparent"))))
          .next("take one of them out");
    network.transparent = false;
    origins_["network.transparent"] = origin("network.proxy_auth");
    return {};
  }

  void clamp_timeout() {
    Limits& limits = policy_.limits;
    if (!limits.max_timeout || (limits.timeout && *limits.timeout <= *limits.max_timeout)) return;
    if (limits.timeout)
      warnings_.push_back(format("timeout {} is capped to max_timeout {}", belljar::to_string(*limits.timeout),
                                 belljar::to_string(*limits.max_timeout)));
    limits.timeout = limits.max_timeout;
    origins_["limits.timeout"] = origin("limits.max_timeout");
  }

  // TMPDIR inside names a directory that exists there: the caller's own may not.
  void set_tmpdir() {
    std::string value = "/tmp";
    if (policy_.filesystem.temp_dir && !drops_rules(policy_.mode)) value = *policy_.filesystem.temp_dir;
    else if (drops_rules(policy_.mode) || (policy_.filesystem.tmp == Tmp::kShared && uses_tmpdir())) value = context_.tmpdir;
    else if (policy_.filesystem.exclude_slash_tmp) value = "/var/tmp";
    if (value.empty() || policy_.environment.set.contains("TMPDIR")) return;
    policy_.environment.set["TMPDIR"] = value;
    origins_["environment.set[TMPDIR]"] = policy_.filesystem.temp_dir ? origin("filesystem.temp_dir") : origin("filesystem.tmp");
  }

  const MergeContext& context_;
  Policy policy_;
  std::vector<Rule> rules_;
  std::unordered_map<std::string, std::size_t> rule_at_;  // by kind and path
  std::map<std::string, Origin> origins_;
  std::vector<std::string> warnings_;
  std::size_t layer_ = 0;  // the layer being joined, from 1
  std::size_t mode_layer_ = 0, net_layer_ = 0, siblings_layer_ = 0;
  bool narrowed_ = false;  // a file of the workspace has a say
};

}  // namespace

void hide_state(std::vector<FsEntry>& entries, const std::string& state_dir) {
  const std::string path = state_dir.empty() ? "" : normal(state_dir);
  if (path.empty() || std::ranges::any_of(entries, [&](const FsEntry& entry) { return !entry.glob && entry.path == path; })) return;
  entries.push_back({path, false, Access::kNone, {"state directory", "", 0}, RuleKind::kDefaultSecret});
}

std::vector<std::string> secret_paths(const MergeContext& context) {
  std::vector<std::string> paths = default_secret_paths(context.home, context.runtime_dir);
  for (const LogIn& log_in : context.log_ins) paths.push_back(log_in.path);
  if (context.account_home == context.home) return paths;
  const std::vector<std::string> more = home_secret_paths(context.account_home);
  paths.insert(paths.end(), more.begin(), more.end());
  return paths;
}

Result<Effective> merge(std::span<const Layer> layers, const MergeContext& context) { return Merger(context).run(layers); }

std::string origin_of(const Effective& effective, const std::string& name) {
  const auto found = effective.origins.find(name);
  return found == effective.origins.end() ? "built-in" : to_string(found->second);
}

}  // namespace belljar::policy
