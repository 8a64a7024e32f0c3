// What other systems' sandboxes are told. There is no macOS here, so the profile is read as sandbox-exec reads it (of the rules
// that match an act the last counts), and must say of every path what find_rule() says.
#include "policy/compile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/policy.h"
#include "policy/profiles.h"
#include "policy/schema.h"
#include "support_policy.h"

namespace belljar::policy {
namespace {

// The rules of files and the network, which the compiler writes one a line.
class Profile {
 public:
  explicit Profile(const std::string& text) {
    const std::regex rule(R"(\((allow|deny) ([a-z*\- ]+?) (\(.*\))\))");
    const std::regex filter(R"re(\((subpath|literal|regex) #?"((?:[^"\\]|\\.)*)"\))re");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::smatch parts;
      if (!std::regex_match(line, parts, rule)) continue;
      Rule made{.allow = parts[1] == "allow", .acts = parts[2], .filters = {}};
      const std::string filters = parts[3];
      for (std::sregex_iterator at(filters.begin(), filters.end(), filter), end; at != end; ++at) {
        const std::string kind = (*at)[1], name = (*at)[2];
        made.filters.push_back({kind, name, kind == "regex" ? std::regex(name, std::regex::extended) : std::regex()});
      }
      rules_.push_back(std::move(made));
    }
  }

  bool allows(const std::string& act, const std::string& path) const {
    bool allowed = false;
    for (const Rule& rule : rules_) {
      const auto matches = [&](const Filter& filter) { return names(filter, path); };
      if (names_act(rule.acts, act) && std::ranges::any_of(rule.filters, matches)) allowed = rule.allow;
    }
    return allowed;
  }
  bool reads(const std::string& path) const { return allows("file-read-data", path); }
  bool writes(const std::string& path) const { return allows("file-write-data", path); }

 private:
  struct Filter {
    std::string kind, name;
    std::regex regex;
  };
  struct Rule {
    bool allow;
    std::string acts;
    std::vector<Filter> filters;
  };
  static bool names_act(const std::string& acts, const std::string& act) {
    std::istringstream words(acts);
    for (std::string word; words >> word;) {
      if (word == act || (word.ends_with('*') && act.starts_with(word.substr(0, word.size() - 1)))) return true;
    }
    return false;
  }
  static bool names(const Filter& filter, const std::string& path) {
    if (filter.kind == "literal") return path == filter.name;
    if (filter.kind == "subpath") return filter.name == "/" || path == filter.name || path.starts_with(filter.name + "/");
    return std::regex_search(path, filter.regex);
  }
  std::vector<Rule> rules_;
};

Compiled seatbelt(const std::string& toml) {
  const auto effective = merged({layer("user", toml)});
  EXPECT_TRUE(effective) << effective.error().line();
  auto compiled = compile_seatbelt(*effective, place());
  EXPECT_TRUE(compiled) << compiled.error().line();
  return compiled ? *compiled : Compiled{};
}

bool has_gap(const Compiled& compiled, const std::string& clause) {
  return std::ranges::find(compiled.gaps, clause, &CompileGap::clause) != compiled.gaps.end();
}

constexpr char kNested[] = R"(
[filesystem]
protect = "none"
entries = [
  {path = "/data", access = "none"}, {path = "/data/open", access = "read"}, {path = "/data/open/w", access = "write"},
  {path = "/data/open/w/shut", access = "none"}, {path = "/w/ro", access = "read"}, {path = "/w/ro/rw", access = "write"},
  {path = "/tmp/x", access = "write"}, {glob = "**/.env", access = "none"}, {glob = "/w/*.lock", access = "read"}]
)";

TEST(CompileSeatbelt, SaysOfEachPathWhatTheRulesSay) {
  const auto effective = merged({layer("user", kNested)});
  ASSERT_TRUE(effective) << effective.error().line();
  const Profile profile(seatbelt(kNested).text);
  for (const std::string path : {"/usr/bin/x",
                                 "/w",
                                 "/w/a",
                                 "/w/ro",
                                 "/w/ro/a",
                                 "/w/ro/rw",
                                 "/w/ro/rw/a",
                                 "/w/.env",
                                 "/w/sub/.env",
                                 "/w/a.env",
                                 "/w/x.lock",
                                 "/w/sub/x.lock",
                                 "/data/a",
                                 "/data/open/a",
                                 "/data/open/w/a",
                                 "/data/open/w/shut",
                                 "/data/open/w/shut/a",
                                 "/dataset",
                                 "/home/u/.ssh/id_rsa",
                                 "/home/u/.sshx",
                                 "/home/u/a",
                                 "/etc/shadow",
                                 "/tmp/x/a",
                                 "/tmp/y"}) {
    const FsEntry* const rule = find_rule(effective->complete, path);
    ASSERT_NE(rule, nullptr) << path;
    EXPECT_EQ(profile.reads(path), rule->access != Access::kNone) << path;
    EXPECT_EQ(profile.writes(path), rule->access == Access::kWrite) << path;
  }
  // macOS follows its own links before it judges.
  EXPECT_TRUE(profile.writes("/private/tmp/x/a"));
  EXPECT_FALSE(profile.reads("/private/etc/shadow"));
  EXPECT_FALSE(profile.reads("/home/u/Library/Keychains/login.keychain-db"));
  // The way to what is open, without what stands beside it.
  EXPECT_TRUE(profile.allows("file-read-metadata", "/data"));
  EXPECT_FALSE(profile.reads("/data"));
  // What holds something closed is not moved away.
  EXPECT_FALSE(profile.allows("file-write-unlink", "/data/open/w"));
  EXPECT_TRUE(profile.allows("file-write-unlink", "/data/open/w/a"));
}

TEST(CompileSeatbelt, ProtectedNamesAreKeptInEveryCase) {
  const Compiled compiled = seatbelt("");
  const Profile profile(compiled.text);
  for (const char* path : {"/w/.git/hooks/pre-commit", "/w/.git/config", "/w/sub/.GIT/Hooks/x", "/w/.git/modules/a/b/config",
                           "/w/.vscode/tasks.json", "/w/a/.Claude/settings.json", "/w/.envrc"})
    EXPECT_FALSE(profile.writes(path)) << path;
  for (const char* path : {"/w/.git/index", "/w/.git/refs/heads/config", "/w/.github/x", "/w/vscode", "/w/.envrc.sample"})
    EXPECT_TRUE(profile.writes(path)) << path;
  EXPECT_FALSE(profile.allows("file-write-unlink", "/w/sub/.git"));
  EXPECT_TRUE(has_gap(compiled, "filesystem.protect"));
  EXPECT_TRUE(Profile(seatbelt("[filesystem]\nprotect = \"none\"\n").text).writes("/w/.git/config"));
  EXPECT_FALSE(Profile(seatbelt("[filesystem]\nprotect = \"all\"\n").text).writes("/w/.git/index"));
}

TEST(CompileSeatbelt, AVolumeAtItsOwnPlaceIsARule) {
  const Profile profile(seatbelt(R"([filesystem]
volumes = [{source = "/data/v", target = "/data/v", readonly = false}, {source = "/w/r", target = "/w/r"}]
)")
                            .text);
  EXPECT_TRUE(profile.writes("/data/v/a"));
  EXPECT_FALSE(profile.writes("/data/a"));
  EXPECT_TRUE(profile.reads("/w/r/a"));
  EXPECT_FALSE(profile.writes("/w/r/a"));
}

TEST(CompileSeatbelt, TheNetworkIsOpenedNoFurther) {
  const auto section = [](const std::string& toml) {
    const std::string text = seatbelt(toml).text;
    return text.substr(text.find("; network"));
  };
  EXPECT_EQ(section("").find("remote"), std::string::npos);
  EXPECT_NE(section("[network]\nmode = \"proxy\"\n").find("(allow network-outbound (remote ip \"localhost:3128\"))\n"),
            std::string::npos);
  EXPECT_EQ(section("[network]\nmode = \"proxy\"\n").find("(allow network*)"), std::string::npos);
  EXPECT_NE(section("[network]\nmode = \"host\"\n").find("(allow network*)"), std::string::npos);
  EXPECT_EQ(section("").find("localhost:*"), std::string::npos);
  EXPECT_NE(section("[network]\nallow_local_binding = true\n").find("localhost:*"), std::string::npos);
}

// The whole of it, for who changes what is written around the rules.
TEST(CompileSeatbelt, Golden) {
  EXPECT_EQ(seatbelt("mode = \"read-only\"\n[filesystem]\nsecrets = \"none\"\n").text,
            R"text(; made by `belljar policy compile --for seatbelt` of profile workspace-write
; sandbox-exec -D BELLJAR_TMP=/private/tmp/SOME-EMPTY-DIRECTORY -f THIS-FILE COMMAND
(version 1)
(deny default)

; processes: they start others, and see and signal their own
(allow process-exec* process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow ipc-posix-shm-read* ipc-posix-shm-write*)
(allow user-preference-read)
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.cfprefsd.agent")
  (global-name "com.apple.cfprefsd.daemon")
  (global-name "com.apple.PowerManagement.control"))

; files: of two rules the later counts
(allow file-read* (subpath "/"))
(allow file-read* (subpath "/w"))
(deny file-write* (subpath "/w"))

; TMPDIR
(allow file-read* file-write* (subpath (param "BELLJAR_TMP")))

; devices and terminals
(allow pseudo-tty)
(allow file-read* file-write* file-ioctl
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/ptmx")
  (literal "/dev/random") (literal "/dev/urandom")
  (subpath "/dev/fd") (regex #"^/dev/ttys[0-9]+$"))

; network: none
)text");
}

TEST(Compile, WhatCannotBeHeldIsSaidOrRefused) {
  EXPECT_TRUE(has_gap(seatbelt("[limits]\nmemory = \"1GiB\"\n"), "limits.memory"));
  EXPECT_FALSE(has_gap(seatbelt(""), "limits.memory"));
  const auto required = merged({layer("user", "require = [\"limits.memory\"]\n[limits]\nmemory = \"1GiB\"\n")});
  ASSERT_TRUE(required) << required.error().line();
  EXPECT_FALSE(compile_seatbelt(*required, place()));
  EXPECT_TRUE(compile_windows(*required, place()));
  const auto external = merged({layer("user", "mode = \"external-sandbox\"\n")});
  ASSERT_TRUE(external);
  EXPECT_FALSE(compile_seatbelt(*external, place()));
  EXPECT_FALSE(compile_windows(*external, place()));
  for (const char* entry : {"{glob = \"**/out\", access = \"write\"}", "{glob = \"/w/a\\\"b/*\", access = \"none\"}"}) {
    const auto wrong = merged({layer("user", std::string("[filesystem]\nentries = [") + entry + "]\n")});
    ASSERT_TRUE(wrong) << wrong.error().line();
    EXPECT_FALSE(compile_seatbelt(*wrong, place())) << entry;
  }
}

// A value for each key of the schema. `beside`: what gives it a meaning; `named`: the gap that is there with it and without.
struct Sample {
  const char* key;
  const char* value;
  const char* beside = "";
  const char* named = "";
};
constexpr char kProxy[] = "network.mode = \"proxy\"\n";
constexpr char kShared[] = "filesystem.tmp = \"shared\"\n";
constexpr Sample kSamples[] = {
    {"profile", R"("build")"},
    {"mode", R"("read-only")"},
    {"backend", R"("container")"},
    {"fallback", R"(["landlock"])"},
    {"isolation", R"("vm")"},
    {"enable_weaker_nested_sandbox", "true"},
    {"allow_nested_userns", "true"},
    {"allow_root_uid", "true"},
    {"warm", "true"},
    {"filesystem.entries", R"([{path = "/w/a", access = "read"}])"},
    {"filesystem.writable_roots", R"(["/c/x"])"},
    {"filesystem.readonly_paths", R"(["/w/a"])"},
    {"filesystem.blocked_paths", R"(["/c/x"])", "", "filesystem.secrets"},
    {"filesystem.volumes", R"([{source = "/c/x", target = "/c/x", readonly = false}])"},
    {"filesystem.protect", R"("all")"},
    {"filesystem.allow_git_removal", "true"},
    {"filesystem.secrets", R"("none")"},
    {"filesystem.tmp", R"("shared")"},
    {"filesystem.tmp_size", R"("1MiB")"},
    {"filesystem.temp_dir", R"("/c/x")"},
    {"filesystem.clean_temp_dir", "true", "filesystem.temp_dir = \"/c/x\"\n"},
    {"filesystem.exclude_tmpdir_env_var", "true", kShared},
    {"filesystem.exclude_slash_tmp", "true", kShared},
    {"filesystem.caches", R"("off")"},
    {"filesystem.cache_dirs", "[]"},
    {"filesystem.siblings", R"("hidden")"},
    {"filesystem.scratch", R"(["/c/x"])"},
    {"filesystem.devices", R"(["/dev/fuse"])"},
    {"environment.inherit", R"("all")", "", "environment"},
    {"environment.include", R"(["A*"])", "", "environment"},
    {"environment.exclude", R"(["A*"])", "", "environment"},
    {"environment.set", R"({A = "1"})", "", "environment"},
    {"environment.pass", R"(["A"])", "", "environment"},
    {"network.mode", R"("host")"},
    {"network.allow_local_binding", "true"},
    {"network.allow_unix_sockets", R"(["/c/x"])", "", "network.unix_sockets"},
    {"network.allow_all_unix_sockets", "true"},
    {"network.publish", "[3000]"},
    {"network.host_ports", "[3000]"},
    {"network.allowed_domains", R"(["a.example"])", kProxy, "network.domains"},
    {"network.denied_domains", R"(["a.example"])", kProxy, "network.domains"},
    {"network.allowed_requests", R"(["GET a.example"])", kProxy, "network.requests"},
    {"network.methods", R"("limited")", kProxy},
    {"network.proxy_auth", "true", kProxy},
    {"network.http_proxy_port", "3129", kProxy},
    {"network.socks_proxy_port", "3130", kProxy},
    {"network.upstream_proxy", R"("http://proxy.example:3128")", kProxy},
    {"network.upstream_bypass", R"(["a.example"])", kProxy},
    {"network.transparent", "false", kProxy},
    {"network.credentials", R"(["NAME for a.example"])", kProxy, "network.requests"},
    {"network.tls_passthrough", R"(["a.example"])", kProxy},
    {"network.tls_ca_file", R"("/c/x")", kProxy},
    {"limits.timeout", R"("1s")"},
    {"limits.max_timeout", R"("1s")"},
    {"limits.idle_timeout", R"("1s")"},
    {"limits.kill_grace", R"("1s")"},
    {"limits.cpus", "1.5"},
    {"limits.cpu_request", "0.5"},
    {"limits.memory", R"("1GiB")"},
    {"limits.memory_request", R"("1MiB")"},
    {"limits.pids", "64"},
    {"limits.open_files", "64"},
    {"limits.file_size", R"("1MiB")"},
    {"limits.disk", R"("1GiB")"},
    {"limits.write_quota", R"("1MiB")"},
    {"limits.egress_bytes", R"("1MiB")", kProxy},
    {"limits.egress_connections", "4", kProxy},
    {"limits.egress_rate", R"("1MiB")", kProxy},
    {"limits.egress_heads", R"("1KiB")", kProxy},
    {"limits.output_bytes", R"("1MiB")"},
    {"limits.output_action", R"("kill")"},
    {"commands.allow", R"(["make"])"},
    {"commands.deny", R"(["make"])"},
    {"container.image", R"("a/b:1")"},
    {"container.pull", R"("never")"},
    {"permission.mode", R"("plan")"},
    {"permission.auto_allow_bash_if_sandboxed", "true"},
    {"permission.ask_for_reads", "true"},
    {"ignore_violations.file", R"(["/x"])"},
    {"ignore_violations.network", R"(["a.example"])"},
};
// `require` is held: of what has a gap the compilation fails. `accept` changes nothing: every gap is said.
constexpr const char* kOfGaps[] = {"require", "accept"};

// A key that somebody adds to the schema is in neither text until it is compiled, and has to be a gap until then.
TEST(CompileGaps, EachKeyIsCompiledOrNamed) {
  MergeContext context = place();
  context.tmpdir = "/c/tmp";
  for (const Key& key : keys()) {
    SCOPED_TRACE(key.name);
    if (std::ranges::find(kOfGaps, key.name) != std::end(kOfGaps)) continue;
    const auto* const sample = std::ranges::find(kSamples, key.name, [](const Sample& each) { return std::string_view(each.key); });
    ASSERT_NE(sample, std::end(kSamples)) << "the test has no value for it";
    const auto effective = [&](const std::string& toml) {
      std::vector<Layer> layers = {layer("user", toml)};
      if (key.name == "profile") layers.insert(layers.begin(), profile_layer(toml.empty() ? "workspace-write" : "build").value());
      auto result = merged(layers, context);
      EXPECT_TRUE(result) << result.error().line();
      return result ? *result : Effective{};
    };
    const Effective without = effective(sample->beside);
    const Effective with = effective(std::string(sample->beside) + sample->key + " = " + sample->value + "\n");
    for (const auto& compile : {compile_seatbelt, compile_windows}) {
      const auto before = compile(without, context), after = compile(with, context);
      ASSERT_TRUE(before) << before.error().line();
      ASSERT_TRUE(after) << after.error().line();
      const bool is_named = has_gap(*after, sample->named[0] == 0 ? sample->key : sample->named);
      EXPECT_TRUE(is_named || before->text != after->text || before->gaps != after->gaps)
          << (compile == compile_seatbelt ? "seatbelt" : "windows");
    }
  }
}

nlohmann::json windows(const std::string& toml, std::vector<CompileGap>& gaps) {
  const auto effective = merged({layer("user", toml)});
  EXPECT_TRUE(effective) << effective.error().line();
  const auto compiled = compile_windows(*effective, place());
  EXPECT_TRUE(compiled) << compiled.error().line();
  gaps = compiled->gaps;
  return nlohmann::json::parse(compiled->text);
}

TEST(CompileWindows, TokenJobAndLists) {
  std::vector<CompileGap> gaps;
  const auto plan = windows(R"([filesystem]
entries = [{path = "/w/ro", access = "read"}, {path = "/c/Data", access = "write"}, {path = "/srv/x", access = "write"}]
[limits]
memory = "512MiB"
pids = 64
)",
                            gaps);
  EXPECT_EQ(plan["token"]["flags"], (nlohmann::json{"DISABLE_MAX_PRIVILEGE", "LUA_TOKEN", "WRITE_RESTRICTED"}));
  EXPECT_EQ(plan["token"]["keep_privileges"], nlohmann::json{"SeChangeNotifyPrivilege"});
  EXPECT_EQ(plan["job"]["job_memory_bytes"], 536870912);
  EXPECT_EQ(plan["job"]["active_processes"], 64);
  const auto access = [&](const std::string& path) {
    std::string all;
    for (const auto& entry : plan["acl"]) {
      if (entry["path"] == path) all += entry["access"].get<std::string>() + " ";
    }
    return all;
  };
  EXPECT_EQ(access("%WORKSPACE%"), "write ");
  EXPECT_EQ(access("%WORKSPACE%\\ro"), "deny-write ");
  EXPECT_EQ(access("%WORKSPACE%\\.git\\hooks"), "deny-write ");
  EXPECT_EQ(access("C:\\Data"), "write ");
  const auto says = [&](const std::string& clause) { return std::ranges::find(gaps, clause, &CompileGap::clause) != gaps.end(); };
  EXPECT_TRUE(says("filesystem.secrets"));
  EXPECT_TRUE(says("filesystem.entries")) << "/srv/x";
  EXPECT_TRUE(says("network.mode"));
  EXPECT_FALSE(says("limits.memory"));
  const auto danger = windows("mode = \"danger-full-access\"\n", gaps);
  EXPECT_TRUE(danger["token"].is_null());
  EXPECT_TRUE(danger["acl"].empty());
}

}  // namespace
}  // namespace belljar::policy
