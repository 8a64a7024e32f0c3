#include "policy/narrow.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "policy/schema.h"
#include "support_policy.h"

namespace belljar::policy {
namespace {

struct Case {
  const char* trusted;  // what the user says
  const char* widens;   // what a project file may not say then: refused
  const char* narrows;  // the twin that it may say: taken
};

// One row for each key. `widens` is refused from a project file and taken from a trusted one, so the refusal is about the layer.
const Case kCases[] = {
    {"profile = \"dev\"", "profile = \"build\"", "profile = \"dev\""},
    {"mode = \"read-only\"", "mode = \"workspace-write\"", "mode = \"read-only\""},
    {"", "mode = \"danger-full-access\"", "mode = \"read-only\""},
    {"mode = \"danger-full-access\"", "mode = \"external-sandbox\"", "mode = \"workspace-write\""},
    {"", "backend = \"landlock\"", "backend = \"native\""},
    // Also what is stricter: it could send a command elsewhere.
    {"fallback = [\"landlock\"]", "fallback = []", "fallback = [\"landlock\"]"},
    {"isolation = \"namespace\"", "isolation = \"vm\"", "isolation = \"namespace\""},
    {"require = [\"a\"]", "require = []", "require = [\"b\"]"},
    {"accept = [\"a\"]", "accept = [\"b\"]", "accept = []"},
    {"", "accept = [\"a\"]", "accept = []"},
    {"", "enable_weaker_nested_sandbox = true", "enable_weaker_nested_sandbox = false"},
    {"", "allow_nested_userns = true", "allow_nested_userns = false"},
    {"", "allow_root_uid = true", "allow_root_uid = false"},
    {"", "warm = true", "warm = false"},
    {"", "[[filesystem.entries]]\npath=\"/etc/x\"\naccess=\"write\"", "[[filesystem.entries]]\npath=\"src\"\naccess=\"write\""},
    {"", "[[filesystem.entries]]\npath=\"~/.ssh\"\naccess=\"read\"", "[[filesystem.entries]]\npath=\"/etc\"\naccess=\"read\""},
    {"", "[[filesystem.entries]]\npath=\"~/.ssh/config\"\naccess=\"read\"",
     "[[filesystem.entries]]\npath=\"~/.ssh/config\"\naccess=\"none\""},
    {"", "[[filesystem.entries]]\nglob=\"**\"\naccess=\"read\"", "[[filesystem.entries]]\nglob=\"**\"\naccess=\"none\""},
    {"blocked_paths = [\"/w/secret\"]", "[[filesystem.entries]]\npath=\"secret/x\"\naccess=\"read\"",
     "[[filesystem.entries]]\npath=\"secre\"\naccess=\"read\""},
    {"filesystem.entries = [{glob=\"*.key\", access=\"none\"}]", "readonly_paths = [\"a.key\"]", "readonly_paths = [\"a.kez\"]"},
    {"filesystem.entries = [{path=\"/a\", access=\"none\"}]", "filesystem.entries = []",
     "filesystem.entries = [{path=\"/b\", access=\"none\"}]"},
    {"filesystem.clean_temp_dir = true", "filesystem.clean_temp_dir = false", "filesystem.clean_temp_dir = true"},
    {"container.image = \"a\"", "container.image = \"b\"", "container.image = \"a\""},
    {"backend = \"container\"\ncontainer.pull = \"never\"", "container.pull = \"always\"", "container.pull = \"never\""},
    {"permission.mode = \"plan\"", "permission.mode = \"default\"", "permission.mode = \"plan\""},
    {"", "permission.auto_allow_bash_if_sandboxed = true", ""},
    {"", "permission.ask_for_reads = false", ""},
    {"ignore_violations.file = [\"/a/**\"]", "ignore_violations.file = [\"/**\"]", "ignore_violations.file = [\"/a/**\"]"},
    {"", "ignore_violations.network = [\"*\"]", "ignore_violations.network = []"},
    {"", "writable_roots = [\"/\"]", "writable_roots = [\"build\"]"},
    {"", "writable_roots = [\"../x\"]", "writable_roots = [\"x/../y\"]"},
    // Spelled out, a protected name is written to: more than what is writable already.
    {"", "writable_roots = [\".vscode\"]", "writable_roots = [\"vscode\"]"},
    {"", "[[filesystem.entries]]\npath=\"a/.CLAUDE/x\"\naccess=\"write\"",
     "[[filesystem.entries]]\npath=\"a/.claude/x\"\naccess=\"read\""},
    {"writable_roots = [\"/w/.vscode\"]", "writable_roots = [\".idea\"]", "writable_roots = [\".vscode/x\"]"},
    {"readonly_paths = [\"/w/gen\"]", "writable_roots = [\"gen\"]", "writable_roots = [\"gen2\"]"},
    {"blocked_paths = [\"/a\"]", "blocked_paths = []", "blocked_paths = [\"/b\"]"},
    {"readonly_paths = [\"/w/x\"]", "readonly_paths = []", "readonly_paths = [\"src\"]"},
    {"volumes = [{source=\"/v\"}]", "volumes = [{source=\"/v\", readonly=false}]", "volumes = [{source=\"/v\"}]"},
    {"", "volumes = [{source=\"/v\"}]", "volumes = []"},
    {"", "filesystem.protect = \"none\"", "filesystem.protect = \"all\""},
    {"filesystem.protect = \"all\"", "filesystem.protect = \"default\"", "filesystem.protect = \"all\""},
    {"", "filesystem.secrets = \"none\"", "filesystem.secrets = \"default\""},
    {"", "filesystem.tmp = \"shared\"", "filesystem.tmp = \"private\""},
    {"filesystem.tmp = \"shared\"", "filesystem.tmp_size = \"2GiB\"", "filesystem.tmp = \"private\""},
    {"", "filesystem.tmp_size = \"2GiB\"", "filesystem.tmp_size = \"1MiB\""},
    {"", "temp_dir = \"/t\"", "filesystem.tmp_size = \"1GiB\""},
    {"temp_dir = \"/t\"", "temp_dir = \"/u\"", "temp_dir = \"/t/\""},
    {"exclude_tmpdir_env_var = true", "exclude_tmpdir_env_var = false", "exclude_tmpdir_env_var = true"},
    {"exclude_slash_tmp = true", "exclude_slash_tmp = false", "exclude_slash_tmp = true"},
    {"", "filesystem.allow_git_removal = true", "filesystem.allow_git_removal = false"},
    {"", "filesystem.siblings = \"shown\"", "filesystem.siblings = \"hidden\""},
    {"filesystem.siblings = \"hidden\"", "filesystem.siblings = \"shown\"", "filesystem.siblings = \"hidden\""},
    {"filesystem.caches = \"off\"", "filesystem.caches = \"private\"", "filesystem.caches = \"off\""},
    {"", "filesystem.cache_dirs = [\"~/x\"]", "filesystem.cache_dirs = [\"~/.cache/pip\"]"},
    {"filesystem.scratch = [\"/s\"]", "filesystem.scratch = []", "filesystem.scratch = [\"/s\"]"},
    {"devices = [\"/dev/dri\"]", "devices = [\"/dev/kvm\"]", "devices = [\"/dev/dri/card0\"]"},
    {"", "devices = [\"/dev/kvm\"]", "devices = []"},
    {"environment.inherit = \"none\"", "environment.inherit = \"core\"", "environment.inherit = \"none\""},
    {"", "environment.inherit = \"all\"", "environment.inherit = \"none\""},
    {"environment.include = [\"FOO_*\"]", "environment.include = [\"BAR\"]", "environment.include = [\"FOO_A\"]"},
    {"", "environment.include = [\"LD_PRELOAD\"]", "environment.include = [\"PATH\", \"LC_ALL\"]"},
    {"environment.inherit = \"none\"", "environment.include = [\"PATH\"]", "environment.include = []"},
    {"", "env_whitelist = [\"PATH\", \"BASH_ENV\"]", "env_whitelist = [\"PATH\", \"HOME\"]"},
    {"", "environment.exclude = []", "environment.exclude = [\"PATH\"]"},
    {"", "environment.set = { LD_PRELOAD = \"/w/x.so\" }", "environment.set = { GREETING = \"hello\" }"},
    {"", "environment.set = { BASH_ENV = \"/w/x\" }", "environment.set = { RETRIES = \"3\" }"},
    {"", "environment.set = { NODE_OPTIONS = \"--require /w/x.js\" }", "environment.set = { DEBUG_LEVEL = \"3\" }"},
    {"", "environment.set = { GIT_SSH_COMMAND = \"x\" }", "environment.set = { STAGE = \"test\" }"},
    {"", "environment.set = { ANTHROPIC_BASE_URL = \"http://x\" }", "environment.set = {}"},
    {"", "environment.set = { https_proxy = \"http://x\" }", "environment.set = { VERBOSE = \"1\" }"},
    {"", "environment.set = { OPENSSL_CONF = \"x\" }", "environment.set = { OPEN = \"x\" }"},
    {"", "environment.set = { RSYNC_RSH = \"x\" }", "environment.set = { RSYNC = \"x\" }"},
    {"", "environment.set = { HGRCPATH = \"x\" }", "environment.set = { GREETING_2 = \"x\" }"},
    {"", "environment.set = { PYTEST_ADDOPTS = \"x\" }", "environment.set = { TEST_LEVEL = \"x\" }"},
    {"", "environment.set = { CMAKE_CXX_COMPILER_LAUNCHER = \"x\" }", "environment.set = { NO_COLOR = \"x\" }"},
    {"", "environment.set = { SSLKEYLOGFILE = \"x\" }", "environment.set = { LOG_LEVEL = \"x\" }"},
    {"", "environment.set = { MAKE = \"x\" }", "environment.set = { CI = \"x\" }"},
    {"", "environment.set = { XZ_OPT = \"x\" }", "environment.set = { TZ = \"x\" }"},
    {"", "environment.set = { GHCRTS = \"x\" }", "environment.set = { LANG = \"x\" }"},
    {"environment.set = { A = \"1\" }", "environment.set = { A = \"2\" }", "environment.set = { A = \"1\" }"},
    {"environment.set = { A = \"1\" }", "environment.set = {}", "environment.set = { B = \"1\" }"},
    {"environment.pass = [\"A_TOKEN\"]", "environment.pass = [\"B_TOKEN\"]", "environment.pass = []"},
    {"", "network.mode = \"host\"", "network.mode = \"none\""},
    {"network.mode = \"proxy\"", "network.mode = \"host\"", "network.mode = \"none\""},
    {"", "network.allow_local_binding = true", "network.allow_local_binding = false"},
    {"", "network.allow_unix_sockets = [\"/run/docker.sock\"]", "network.allow_unix_sockets = []"},
    {"network.allow_unix_sockets = [\"/run/a\"]", "network.allow_unix_sockets = [\"/run/ab\"]",
     "network.allow_unix_sockets = [\"/run/a\"]"},
    {"", "network.allow_all_unix_sockets = true", "network.allow_all_unix_sockets = false"},
    {"network.publish = [80]", "network.publish = [80, 81]", "network.publish = []"},
    {"network.mode = \"proxy\"\nallowed_domains = [\"**.a.example\"]", "allowed_domains = [\"xa.example\"]",
     "allowed_domains = [\"x.a.example:443\"]"},
    {"network.mode = \"proxy\"\nallowed_domains = [\"*.a.example\"]", "allowed_domains = [\"a.example\"]",
     "allowed_domains = [\"b.A.example.\"]"},
    {"network.mode = \"proxy\"\nallowed_domains = [\"a.example:443\"]", "allowed_domains = [\"a.example\"]",
     "allowed_domains = [\"a.example:443\"]"},
    {"denied_domains = [\"a\"]", "denied_domains = []", "denied_domains = [\"b\"]"},
    {"network.methods = \"limited\"", "network.methods = \"full\"", "network.methods = \"limited\""},
    {"network.host_ports = [80]", "network.host_ports = [80, 81]", "network.host_ports = []"},
    {"network.allowed_requests = [\"GET a.example\"]", "network.allowed_requests = [\"POST a.example\"]",
     "network.allowed_requests = [\"GET a.example\"]"},
    {"", "network.http_proxy_port = 8080", "network.mode = \"none\""},
    {"", "network.socks_proxy_port = 1080", "network.mode = \"none\""},
    {"", "network.upstream_proxy = \"http://p.example:3128\"", "network.mode = \"none\""},
    {"", "network.upstream_bypass = [\"a.example\"]", "network.upstream_bypass = []"},
    {"network.transparent = false", "network.transparent = true", "network.transparent = false"},
    {"network.proxy_auth = true", "network.proxy_auth = false", "network.proxy_auth = true"},
    {"", "network.credentials = [\"K for h\"]", "network.credentials = []"},
    // A value that is no credential's any more is passed by environment.inherit, and its file is shown.
    {"network.mode = \"proxy\"\nnetwork.credentials = [\"K for h\"]", "network.credentials = []",
     "network.credentials = [\"K for h\"]"},
    {"network.tls_passthrough = [\"a.example\"]", "network.tls_passthrough = []", "network.tls_passthrough = [\"a.example\"]"},
    // The flag that names the credential comes later, so no host can be judged here.
    {"", "network.tls_passthrough = [\"b.example:9444\"]", "network.tls_passthrough = []"},
    {"", "network.tls_ca_file = \"/x.pem\"", "network.mode = \"none\""},
    {"", "commands.allow = [\"rm\"]", "commands.allow = []"},
    {"", "environment.set = { VAULT_ADDR = \"http://x\" }", "environment.set = { ADDRESSES = \"2\" }"},
    {"", "environment.set = { ZDOTDIR = \"/w\" }", "environment.set = { API_LEVEL = \"2\" }"},
    {"", "limits.cpu_request = 1.0", "limits.cpus = 1.0"},
    {"", "limits.memory_request = \"1GiB\"", "limits.memory = \"1GiB\""},
    {"limits.timeout = 10", "limits.timeout = 11", "limits.timeout = 9"},
    {"limits.max_timeout = 10", "limits.max_timeout = 11", "limits.max_timeout = 9"},
    {"limits.idle_timeout = 10", "limits.idle_timeout = 11", "limits.idle_timeout = 9"},
    {"", "limits.kill_grace = 3", "limits.kill_grace = 1"},
    {"limits.cpus = 1.5", "limits.cpus = 1.6", "limits.cpus = 1.4"},
    {"limits.memory = 10", "limits.memory = 11", "limits.memory = 9"},
    {"limits.pids = 10", "limits.pids = 11", "limits.pids = 9"},
    {"limits.open_files = 10", "limits.open_files = 11", "limits.open_files = 9"},
    {"limits.file_size = 10", "limits.file_size = 11", "limits.file_size = 9"},
    {"limits.disk = 10", "limits.disk = 11", "limits.disk = 9"},
    {"limits.egress_bytes = 10", "limits.egress_bytes = 11", "limits.egress_bytes = 9"},
    {"limits.egress_connections = 10", "limits.egress_connections = 11", "limits.egress_connections = 9"},
    {"limits.egress_rate = 10", "limits.egress_rate = 11", "limits.egress_rate = 9"},
    {"limits.egress_heads = 10", "limits.egress_heads = 11", "limits.egress_heads = 9"},
    {"", "limits.egress_heads = \"65KiB\"", "limits.egress_heads = \"64KiB\""},
    {"limits.write_quota = 10", "limits.write_quota = 11", "limits.write_quota = 9"},
    {"limits.output_bytes = 10", "limits.output_bytes = 11", "limits.output_bytes = 9"},
    {"limits.output_action = \"kill\"", "limits.output_action = \"drain\"", "limits.output_action = \"kill\""},
};

TEST(Narrow, AProjectFileNarrowsAndNeverWidens) {
  for (const Case& one : kCases) {
    const Layer trusted = layer("user", std::string(one.trusted) + "\n");
    const auto widened = merged({trusted, layer("project", std::string(one.widens) + "\n")});
    ASSERT_FALSE(widened) << one.trusted << " + " << one.widens;
    EXPECT_EQ(widened.error().code(), Code::kPermissionDenied) << widened.error().line();
    EXPECT_EQ(widened.error().what().substr(0, 21), "project project.toml:") << widened.error().line();
    const auto narrowed = merged({trusted, layer("project", std::string(one.narrows) + "\n")});
    EXPECT_TRUE(narrowed) << one.trusted << " + " << one.narrows << ": " << (narrowed ? "" : narrowed.error().line());
    // The same words from a trusted layer are no widening (whether they are offered is another question).
    const auto trusted_too = merged({trusted, layer("system", std::string(one.widens) + "\n")});
    EXPECT_TRUE(trusted_too || trusted_too.error().code() != Code::kPermissionDenied) << one.widens;
  }
}

TEST(Narrow, EveryKeyHasARow) {
  for (const Key& key : keys()) {
    bool found = key.name == "commands.deny";  // more of it is narrower
    for (const Case& one : kCases) {
      const auto parsed = parse_toml(std::string(one.widens) + "\n", "p.toml", "project");
      for (const Setting& setting : parsed->settings) found = found || setting.key == &key;
    }
    EXPECT_TRUE(found) << key.name;
  }
}

// A value of the key's type that no trusted layer has said.
std::string foreign_value(const Key& key) {
  switch (key.type) {
    case Type::kBool:
      return "true";
    case Type::kNumber:
    case Type::kCount:
      return "7";
    case Type::kSize:
    case Type::kDuration:
      return "\"7\"";
    case Type::kEnum: {  // the second: none has it for its default
      const std::string_view behind = key.values.substr(key.values.find('|') + 1);
      return format("\"{}\"", behind.substr(0, behind.find('|')));
    }
    case Type::kText:
    case Type::kPath:
      return key.name == "network.upstream_proxy" ? "\"http://p.example:1\"" : "\"/elsewhere\"";
    case Type::kTexts:
      return key.name == "network.credentials" ? "[\"K for h.example\"]" : "[\"h.example\"]";
    case Type::kPaths:
      return "[\"/elsewhere\"]";
    case Type::kPorts:
      return "[7]";
    case Type::kMap:
      return "{ A = \"b\" }";
    case Type::kEntries:
    case Type::kVolumes:
      return "[]";
  }
  return {};
}

// "Can a hostile project file use this?", asked of every key: where the answer is "nothing", a value of its own is refused by name,
// and where it is something, that is never more than a refusal (the rows above show what passes, and what does not).
TEST(Narrow, EveryKeySaysWhatAHostileFileGetsOfIt) {
  for (const Key& key : keys()) {
    EXPECT_FALSE(key.hostile.empty()) << key.name;
    EXPECT_EQ(key.hostile.starts_with("nothing"), key.narrow == Narrow::kNever) << key.name << ": " << key.hostile;
    if (key.narrow != Narrow::kNever) continue;
    const std::string text = format("{} = {}\n", key.name, foreign_value(key));
    const auto refused = merged({layer("user", "limits.pids = 5\n"), layer("project", text)});
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code(), Code::kPermissionDenied) << refused.error().line();
    EXPECT_EQ(refused.error().what(), format("project project.toml:1: a project file may not widen `{}`", key.name));
  }
}

// What decides where a credential's value goes, and who takes it out of answers.
TEST(Narrow, NothingThatCredentialsPassThroughIsAProjectFilesToSay) {
  for (const char* name : {"credentials", "tls_passthrough", "tls_ca_file", "upstream_proxy", "upstream_bypass"})
    EXPECT_EQ(find_key(format("network.{}", name))->narrow, Narrow::kNever) << name;
  const Layer user = layer("user",
                           "network.mode = \"proxy\"\nnetwork.allowed_domains = [\"h.example\"]\n"
                           "network.credentials = [\"K=file:/k for h.example\"]\n");
  for (const char* text : {"network.tls_passthrough = [\"h.example:9444\"]\n", "network.credentials = []\n"}) {
    const auto refused = merged({user, layer("project", text)});
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code(), Code::kPermissionDenied) << refused.error().line();
  }
  // Its file stays hidden whatever a project file says of the path, and a passthrough of the user's own stands.
  const auto shown = merged({user, layer("project", "readonly_paths = [\"/k\"]\n"), layer("flag", "limits.pids = 5\n")});
  EXPECT_TRUE(!shown || access_of(shown, "/k") == "none");
  const auto own = merged({user, layer("flag", "network.tls_passthrough = [\"p.example\"]\n")});
  ASSERT_TRUE(own) << own.error().line();
  EXPECT_EQ(own->policy.network.tls_passthrough, (std::vector<std::string>{"p.example"}));
}

// The command line comes after the project file: what it closes is closed, however deep a path the file has named before.
TEST(Narrow, ALayerAboveTheProjectClosesWhatTheProjectNamed) {
  const auto effective =
      merged({layer("project", "writable_roots = [\"gen/x\", \"src/x\"]\nreadonly_paths = [\"secret/key\", \"doc\"]\n"),
              layer("flag", "readonly_paths = [\"/w/gen\"]\nblocked_paths = [\"/w/secret\"]\n")});
  ASSERT_TRUE(effective) << effective.error().line();
  EXPECT_EQ(access_of(effective, "/w/gen/x/y"), "read");
  EXPECT_EQ(access_of(effective, "/w/secret/key"), "none");
  EXPECT_EQ(access_of(effective, "/w/src/x/y"), "write");
  EXPECT_EQ(access_of(effective, "/w/doc/y"), "read");
  // What the trusted layer itself opens below stays open.
  const auto opened = merged({layer("project", "writable_roots = [\"gen/x\"]\n"),
                              layer("flag", "readonly_paths = [\"/w/gen\"]\nwritable_roots = [\"/w/gen/x\"]\n")});
  ASSERT_TRUE(opened) << opened.error().line();
  EXPECT_EQ(access_of(opened, "/w/gen/x/y"), "write");
}

// Said again by the project, the mode would stand above the rules beside it, which a mode that drops rules contradicts.
TEST(Narrow, ARepeatedModeDropsNoRule) {
  const Layer user = layer("user", "mode = \"danger-full-access\"\nnetwork.mode = \"none\"\n");
  const auto alone = merged({user}), repeated = merged({user, layer("project", "mode = \"danger-full-access\"\n")});
  ASSERT_FALSE(alone);
  ASSERT_FALSE(repeated);
  EXPECT_EQ(repeated.error().what(), alone.error().what());
  const auto narrowed = merged({user, layer("project", "mode = \"workspace-write\"\n")});
  ASSERT_TRUE(narrowed) << narrowed.error().line();
  EXPECT_EQ(narrowed->policy.network.mode, NetMode::kNone);
}

TEST(Narrow, TheErrorNamesFileLineKeyAndWhatIsInForce) {
  const auto widened =
      merged({layer("user", "limits.memory = \"1GiB\"\n"), layer("project", "# ours\nlimits.memory = \"2GiB\"\n")});
  ASSERT_FALSE(widened);
  EXPECT_EQ(widened.error().what(), "project project.toml:2: a project file may not widen `limits.memory`");
  EXPECT_EQ(widened.error().reason(), "it asks for \"2GiB\", and \"1GiB\" is in force");
}

TEST(Narrow, ATrustedLayerAboveTheProjectMayWidenAgain) {
  const auto effective =
      merged({layer("project", "limits.pids = 5\nblocked_paths = [\"x\"]\n"), layer("flag", "limits.pids = 50\n")});
  ASSERT_TRUE(effective) << effective.error().line();
  EXPECT_EQ(effective->policy.limits.pids, 50U);
  EXPECT_EQ(access_of(effective, "/w/x/y"), "none");
}

TEST(Narrow, ANarrowedGrantIsTheWholeGrant) {
  const auto effective = merged({layer("user", "network.mode = \"proxy\"\nallowed_domains = [\"a.example\", \"**.b.example\"]\n"),
                                 layer("project", "allowed_domains = [\"x.b.example\"]\n")});
  ASSERT_TRUE(effective) << effective.error().line();
  EXPECT_EQ(effective->policy.network.allowed_domains, (std::vector<std::string>{"x.b.example"}));
}

// Whatever a project file of random rules says, if it is taken, no path is more open than before.
TEST(Narrow, NoAcceptedProjectRuleOpensAPath) {
  std::uint32_t seed = 20261121;
  const auto random = [&seed](std::uint32_t below) {
    seed = seed * 1664525U + 1013904223U;
    return (seed >> 8) % below;
  };
  const char* parts[] = {"a", "b", "c", ".env"};
  const auto path = [&](bool glob) {
    std::string result;
    for (std::uint32_t i = 0, n = random(3) + 1; i < n; ++i)
      result += glob && random(2) == 0 ? (random(2) == 0 ? "/*" : "/**") : std::string("/") + parts[random(4)];
    return result;
  };
  const auto rules = [&](const char* name, std::uint32_t count) {
    std::string toml = "filesystem.entries = [";
    const char* words[] = {"read", "write", "none"};
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool glob = random(3) == 0;
      toml += std::string("{") + (glob ? "glob" : "path") + " = \"" + path(glob) + "\", access = \"" + words[random(3)] + "\"},";
    }
    return layer(name, toml + "]\n");
  };
  const auto openness = [](const Result<Effective>& effective, const std::string& where) {
    const std::string access = access_of(effective, where);
    return access == "none" ? 0 : access == "read" ? 1 : 2;
  };
  int taken = 0;
  for (int round = 0; round < 3000; ++round) {
    const Layer user = rules("user", 3), project = rules("project", 2);
    const auto before = merged({user}), after = merged({user, project});
    if (!after) continue;
    ++taken;
    for (int probe = 0; probe < 20; ++probe) {
      const std::string where = path(false) + (random(2) == 0 ? "/d" : "");
      ASSERT_LE(openness(after, where), openness(before, where)) << where << " round " << round;
    }
  }
  EXPECT_GT(taken, 300);
}

}  // namespace
}  // namespace belljar::policy
