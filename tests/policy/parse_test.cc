#include "policy/parse.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policy/schema.h"

namespace belljar::policy {
namespace {

// Place and what, the excerpt, reason and next of the refusal, a line each; or "accepted".
std::string refusal(std::string_view text, std::string_view file = "p.toml") {
  const auto layer = parse_policy(text, file, "user");
  if (layer) return "accepted";
  const Error& error = layer.error();
  return error.what() + "\n" + error.excerpt() + "\n" + error.reason() + "\n" + error.next();
}

// Only the first line.
std::string what(std::string_view text, std::string_view file = "p.toml") {
  const auto layer = parse_policy(text, file, "user");
  return layer ? "accepted" : layer.error().what();
}

// "key = value" of each setting, in order.
std::string settings(std::string_view text, std::string_view file = "p.toml") {
  const auto layer = parse_policy(text, file, "user");
  if (!layer) return layer.error().line();
  std::string result;
  for (const Setting& setting : layer->settings) result += std::string(setting.key->name) + " = " + to_toml(setting.value) + "\n";
  return result;
}

TEST(Parse, UnknownKeyNamesPlaceCaretAndNearestKey) {
  EXPECT_EQ(refusal("mode = \"read-only\"\n[limits]\n  memmory = \"1GiB\"\n"),
            "p.toml:3:3: unknown key `limits.memmory`\n"
            "  3 |   memmory = \"1GiB\"\n"
            "    |   ^\n"
            "every key must be known, so that a mistyped rule is not dropped in silence\n"
            "did you mean `limits.memory`?");
}

TEST(Parse, KnownKeyIsTakenWithItsLine) {
  const auto layer = parse_toml("[limits]\nmemory = \"1GiB\"\n", "p.toml", "user");
  ASSERT_TRUE(layer) << layer.error().line();
  ASSERT_EQ(layer->settings.size(), 1U);
  EXPECT_EQ(layer->settings[0].key->name, "limits.memory");
  EXPECT_EQ(layer->settings[0].value, Value(Bytes{1ULL << 30}));
  EXPECT_EQ(layer->settings[0].origin, (Origin{"user", "p.toml", 2}));
}

TEST(Parse, KeyInTheWrongTableIsPointedToTheRightOne) {
  EXPECT_NE(refusal("pids = 5\n").find("did you mean `limits.pids`?"), std::string::npos);
  EXPECT_NE(refusal("[limits]\nallow_local_binding = true\n").find("did you mean `network.allow_local_binding`?"),
            std::string::npos);
}

TEST(Parse, JsonCaretStandsAtTheValue) {
  EXPECT_EQ(refusal("{\n  \"limits\": {\"pids\": 5,\n    \"memory\": [1]}\n}\n", "p.json"),
            "p.json:3:15: `limits.memory` is a list\n"
            "  3 |     \"memory\": [1]}\n"
            "    |               ^\n"
            "expected a size such as \"512MiB\" (a bare number is bytes)\n");
  EXPECT_EQ(what("{\"limits\": {\"pids\": 5, \"memmory\": 1}}", "p.json"), "p.json:1:24: unknown key `limits.memmory`");
  EXPECT_EQ(what("{\"require\":[\"a\",7]}", "p.json"), "p.json:1:17: an element of `require` is the number 7");
}

TEST(Parse, TomlAndJsonSayTheSame) {
  const std::string toml = settings(
      "mode = \"read-only\"\nrequire = [\"limits.memory\"]\n[limits]\ntimeout = 30\ncpus = 1.5\npids = 64\n"
      "[network]\npublish = [3000]\nallow_local_binding = true\n[environment]\nset = { A = \"1\", B = \"x y\" }\n"
      "[[filesystem.entries]]\nglob = \"**/.env\"\naccess = \"none\"\n");
  EXPECT_EQ(toml,
            "mode = \"read-only\"\nrequire = [\"limits.memory\"]\nlimits.timeout = \"30s\"\nlimits.cpus = 1.5\nlimits.pids = 64\n"
            "network.publish = [3000]\nnetwork.allow_local_binding = true\nenvironment.set = { A = \"1\", B = \"x y\" }\n"
            "filesystem.entries = [{ glob = \"**/.env\", access = \"none\" }]\n");
  EXPECT_EQ(settings(R"({"mode": "read-only", "require": ["limits.memory"], "limits": {"timeout": 30, "cpus": 1.5, "pids": 64},
                         "network": {"publish": [3000], "allow_local_binding": true}, "environment": {"set": {"A": "1", "B": "x y"}},
                         "filesystem": {"entries": [{"glob": "**/.env", "access": "none"}]}})",
                     "p.json"),
            toml);
}

TEST(Parse, CaretCountsCharactersAndPrintedEscapes) {
  // Two-byte letters before the place; a terminal escape in the line is printed escaped, and the caret moves with it.
  EXPECT_NE(refusal("require = [\"äöü\", 1]\n").find("  1 | require = [\"äöü\", 1]\n    |                   ^\n"),
            std::string::npos);
  EXPECT_EQ(refusal("{\"mode\": \"a\u202eb\"}", "p.json").find("\u202e"), std::string::npos);
  EXPECT_NE(refusal("{\"mode\": \"a\u202eb\", \"x\": 1}", "p.json").find("\\u{202e}"), std::string::npos);
}

TEST(Parse, WrongTypesSayWhatWasExpected) {
  EXPECT_EQ(refusal("[limits]\npids = \"many\"\n"),
            "p.toml:2:8: `many` is not a whole number such as 256\n  2 | pids = \"many\"\n    |        ^\n\n");
  EXPECT_EQ(what("mode = 3\n"), "p.toml:1:8: `mode` is the number 3");
  EXPECT_EQ(what("[network]\nallow_all_unix_sockets = \"yes\"\n"), "p.toml:2:26: `network.allow_all_unix_sockets` is text `yes`");
  EXPECT_EQ(what("limits = 1\n"), "p.toml:1:10: `limits` is the number 1");
  EXPECT_EQ(what("[limits]\ntimeout = 2026-01-01\n"), "p.toml:2:11: `limits.timeout` is a date or time");
  EXPECT_EQ(what("[network]\npublish = [70000]\n"), "p.toml:2:12: an element of `network.publish` is the number 70000");
  EXPECT_EQ(what("{\"mode\": null}", "p.json"), "p.json:1:10: `mode` is null");
  EXPECT_EQ(what("[]", "p.json"), "p.json:1:1: a policy is a list");
}

TEST(Parse, WrongWordOffersTheNearestValue) {
  EXPECT_EQ(
      refusal("mode = \"workspace_write\"\n"),
      "p.toml:1:8: `workspace_write` is not a value of `mode`\n  1 | mode = \"workspace_write\"\n    |        ^\n"
      "it takes one of `read-only`, `workspace-write`, `danger-full-access`, `external-sandbox`\ndid you mean `workspace-write`?");
  EXPECT_EQ(what("mode = \"\"\n"), "p.toml:1:8: `` is not a value of `mode`");
}

TEST(Parse, BadQuantitiesAreRefused) {
  EXPECT_EQ(what("[limits]\nmemory = \"12Q\"\n"), "p.toml:2:10: `12Q` is not a size");
  EXPECT_EQ(what("[limits]\nmemory = -1\n"), "p.toml:2:10: `-1` is not a size");
  EXPECT_EQ(what("[limits]\ntimeout = \"soon\"\n"), "p.toml:2:11: `soon` is not a duration");
  EXPECT_EQ(what("[limits]\ncpus = 0\n"), "p.toml:2:8: `0` is not a number such as 1.5");
  EXPECT_EQ(what("[limits]\ncpus = inf\n"), "p.toml:2:8: `inf` is not a number such as 1.5");
  EXPECT_EQ(what("[limits]\npids = 0\n"), "p.toml:2:8: `0` is not a whole number such as 256");
  EXPECT_EQ(what("[limits]\npids = 1.5\n"), "p.toml:2:8: `1.5` is not a whole number such as 256");
  EXPECT_EQ(what("[limits]\nmemory = \"1.5GiB\"\npids = 1\ncpus = 2\ntimeout = \"250ms\"\n"), "accepted");
}

TEST(Parse, AmountsOfEgressAreNotNothing) {
  EXPECT_EQ(what("[limits]\negress_bytes = 0\n"), "p.toml:2:16: limits.egress_bytes is 0");
  EXPECT_EQ(what("[limits]\negress_rate = \"0MiB\"\n"), "p.toml:2:15: limits.egress_rate is 0");
  EXPECT_EQ(what("[limits]\negress_bytes = 1\nfile_size = 0\n"), "accepted");
}

TEST(Parse, RulesForRequestsAreChecked) {
  const std::string refused = refusal("[network]\nmode = \"proxy\"\nallowed_requests = [\"GET https://web.test/a\"]\n");
  EXPECT_TRUE(refused.starts_with("p.toml:3:")) << refused;
  EXPECT_NE(refused.find("URL"), std::string::npos) << refused;
  EXPECT_EQ(what("[network]\nmode = \"proxy\"\nallowed_requests = [\"GET web.test/a\"]\n"), "accepted");
}

TEST(Parse, AProxyToLeaveByIsCheckedAndItsPasswordNotRepeated) {
  const std::string refused = refusal("[network]\nhttp_proxy = \"https://me:hunter2@proxy.example\"\n");
  EXPECT_TRUE(refused.starts_with("p.toml:2:14: the proxy to leave by cannot be used\n")) << refused;
  EXPECT_EQ(refused.find("hunter2"), std::string::npos) << refused;
  EXPECT_EQ(what("[network]\nhttp_proxy = \"http://me:hunter2@proxy.example\"\n"), "accepted");
}

TEST(Parse, DuplicatesAreErrors) {
  EXPECT_NE(what("mode = \"read-only\"\nmode = \"read-only\"\n").find("p.toml:2:"), std::string::npos);
  EXPECT_EQ(refusal("{\"mode\": \"read-only\",\n \"mode\": \"read-only\"}", "p.json"),
            "p.json:2:2: key `mode` is given twice\n  2 |  \"mode\": \"read-only\"}\n    |  ^\nfirst on line 1\n");
  // Two spellings of one key are one key.
  EXPECT_EQ(refusal("timeout = 5\n[limits]\ntimeout = 6\n"),
            "p.toml:3:1: key `limits.timeout` is given twice\n  3 | timeout = 6\n    | ^\nline 1 says it already, maybe under "
            "another spelling\n");
}

TEST(Parse, TextThatIsNoTextIsRefusedWithItsPlace) {
  EXPECT_EQ(what(std::string_view("mode = \"a\0b\"\n", 13)), "p.toml:1:10: a NUL byte in the text");
  EXPECT_EQ(what("require = [\"\xff\"]\n"), "p.toml:1:13: the text is not valid UTF-8");
  EXPECT_EQ(what("{\"mode\": \"\xc0\xaf\"}", "p.json"), "p.json:1:11: the text is not valid UTF-8");
  EXPECT_EQ(what("[filesystem]\nwritable_roots = [\"/a\\u0000b\"]\n"), "p.toml:2:19: `/a\\x00b` cannot be a path");
  EXPECT_EQ(what("{\"filesystem\": {\"temp_dir\": \"/a\\u0000b\"}}", "p.json"), "p.json:1:29: `/a\\x00b` cannot be a path");
}

TEST(Parse, BrokenSyntaxNamesThePlace) {
  EXPECT_EQ(what("mode = \n"), "p.toml:1:8: not valid TOML");
  EXPECT_EQ(what("{\"mode\": }", "p.json"), "p.json:1:10: not valid JSON");
  EXPECT_EQ(what("", "p.json"), "p.json:1:1: not valid JSON");
  EXPECT_EQ(what("[~etwork]\n"), "p.toml:1:2: not valid TOML");  // a debug assertion of toml++, found by fuzzing
  EXPECT_EQ(what("require = [\"\u00e4\"] \ufe3f = 1\n"),
            "p.toml:1:17: not valid TOML: a character outside ASCII stands outside quotes");
  EXPECT_EQ(what("\ufeffrequire = [\"\u00e4\"] # \ufe3f\n"), "accepted");
  EXPECT_EQ(what(""), "accepted");
}

TEST(Parse, DepthAndBreadthAreLimited) {
  std::string dotted = "a";
  for (int i = 0; i < 400000; ++i) dotted += ".a";
  EXPECT_EQ(what(dotted + " = 1\n"), "p.toml:1:66: a key has more than 32 parts");
  EXPECT_EQ(what("[" + dotted + "]\n"), "p.toml:1:67: a key has more than 32 parts");
  EXPECT_EQ(what(std::string(100, '{') + "\"a\":1", "p.json").substr(0, 8), "p.json:1");
  std::string wide = "require = [";
  for (int i = 0; i < 10001; ++i) wide += "\"a\",";
  EXPECT_EQ(what(wide + "]\n"), "p.toml:1:11: `require` has more than 10000 elements");
  // Dots in strings and comments are no parts of a key.
  EXPECT_EQ(what("require = [\"" + dotted + "\"]\n"), "p.toml:1:12: `" + dotted.substr(0, 80) + "`... cannot be a value");
  EXPECT_EQ(
      what("# " + dotted + "\nrequire = ['''" + dotted.substr(0, 2000) + "''', \"\"\"" + dotted.substr(0, 2000) + "\"\"\"]\n"),
      "accepted");
}

TEST(Parse, AThousandEntriesAndLongPathsWork) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "[[filesystem.entries]]\npath = \"/data/" + std::to_string(i) + "\"\naccess = \"read\"\n";
  const auto layer = parse_toml(text, "p.toml", "user");
  ASSERT_TRUE(layer) << layer.error().line();
  EXPECT_EQ(std::get<std::vector<FsEntry>>(layer->settings[0].value).size(), 1000U);
  EXPECT_EQ(std::get<std::vector<FsEntry>>(layer->settings[0].value)[999].origin.line, 2999);
  const std::string longest = "/" + std::string(4094, 'x');
  EXPECT_EQ(what("[filesystem]\nwritable_roots = [\"" + longest + "\"]\n"), "accepted");
  EXPECT_EQ(what("[filesystem]\nwritable_roots = [\"" + longest + "x\"]\n"),
            "p.toml:2:19: `/" + std::string(79, 'x') + "`... cannot be a path");
}

TEST(Parse, PathsThatMeanTwoThingsAreRefused) {
  EXPECT_EQ(what("[filesystem]\nwritable_roots = [\"$HOME/x\"]\n"), "p.toml:2:19: `$HOME/x` cannot be a path");
  EXPECT_EQ(what("[filesystem]\nwritable_roots = [\"~bob/x\"]\n"), "p.toml:2:19: `~bob/x` cannot be a path");
  EXPECT_EQ(what("[filesystem]\nwritable_roots = [\"\"]\n"), "p.toml:2:19: `` cannot be a path");
  EXPECT_EQ(what("[filesystem]\nwritable_roots = [\"~\", \"~/x\", \"./~bob\", \"a/$b\", \"/a b\\n\"]\n"), "accepted");
  EXPECT_EQ(what("[[filesystem.entries]]\nglob = \"/a[b\"\naccess = \"none\"\n"), "p.toml:2:8: `/a[b` cannot be a pattern");
  EXPECT_EQ(what("[environment]\nset = { \"A=B\" = \"1\" }\n"), "p.toml:2:9: `A=B` cannot be the name of a variable");
}

TEST(Parse, PatternsOfVariablesThatWouldMatchNothingAreRefused) {
  for (const char* pattern : {"FOO_[12]", "FOO]", "{A,B}", "A}", "A\\\\*"}) {
    for (const char* key : {"include", "exclude", "pass"}) {
      const std::string refused = what(std::string("[environment]\n") + key + " = [\"OK\", \"" + pattern + "\"]\n");
      EXPECT_EQ(refused.substr(0, refused.find('`')), std::string("p.toml:2:") + (key[0] == 'p' ? "15: " : "18: ")) << refused;
      EXPECT_NE(refused.find(" cannot be "), std::string::npos) << refused;
    }
  }
  EXPECT_EQ(what("env_blacklist = [\"A[1]\"]\n"), "p.toml:1:18: `A[1]` cannot be a pattern of variables' names");
  EXPECT_EQ(what("[environment]\npass = [\"FOO*\"]\n"), "p.toml:2:9: `FOO*` cannot be the name of a variable");
  EXPECT_EQ(what("[environment]\npass = [\"FOO?\"]\n"), "p.toml:2:9: `FOO?` cannot be the name of a variable");
  EXPECT_EQ(what("[environment]\npass = [\"A=B\"]\n"), "p.toml:2:9: `A=B` cannot be the name of a variable");
  EXPECT_EQ(what("[environment]\ninclude = [\"LC_*\"]\nexclude = [\"FOO_?\", \"*KEY*\"]\npass = [\"FOO_1\"]\n"), "accepted");
}

TEST(Parse, EntriesNeedOnePlaceAndAnAccess) {
  EXPECT_EQ(what("[[filesystem.entries]]\npath = \"/a\"\n"), "p.toml:1:1: an entry needs `access`");
  EXPECT_EQ(what("[[filesystem.entries]]\naccess = \"read\"\n"), "p.toml:1:1: an entry needs `path` or `glob`");
  EXPECT_EQ(what("[[filesystem.entries]]\npath = \"/a\"\nglob = \"b\"\naccess = \"read\"\n"),
            "p.toml:3:1: an entry takes either `path` or `glob`, not both");
  EXPECT_EQ(refusal("[[filesystem.entries]]\npath = \"/a\"\nacces = \"read\"\n"),
            "p.toml:3:1: unknown key `acces`\n  3 | acces = \"read\"\n    | ^\nhere stand `path`, `glob`, `access`\ndid you mean "
            "`access`?");
  EXPECT_EQ(what("[[filesystem.entries]]\npath = \"/a\"\naccess = \"rw\"\n"), "p.toml:3:10: `access` is text `rw`");
  EXPECT_EQ(what("[[filesystem.volumes]]\ntarget = \"/a\"\n"), "p.toml:1:1: a volume needs `source`");
  EXPECT_EQ(settings("[[filesystem.volumes]]\nsource = \"/a\"\n"),
            "filesystem.volumes = [{ source = \"/a\", target = \"/a\", readonly = true }]\n");
}

struct AliasCase {
  const char* text;
  const char* means;
};

TEST(Parse, EveryAliasWorksOrIsRefusedByName) {
  const AliasCase cases[] = {
      {"cpu_limit = 2.0", "limits.cpus = 2.0\n"},
      {"limits.cpu_limit = 2", "limits.cpus = 2.0\n"},
      {"cpu = \"1.0\"", "limits.cpus = 1.0\n"},
      {"memory = \"512m\"", "limits.memory = \"512MiB\"\n"},
      {"cpu_request = 1.0", "limits.cpu_request = 1.0\n"},
      {"memory_limit = 2048", "limits.memory = \"2GiB\"\n"},
      {"memory_limit = \"512m\"", "limits.memory = \"512MiB\"\n"},
      {"limits.memory_limit = 1024", "limits.memory = \"1GiB\"\n"},
      {"memory_request = 1024", "limits.memory_request = \"1GiB\"\n"},
      {"disk_limit = 10240", "limits.disk = \"10GiB\"\n"},
      {"limits.disk_limit = 10240", "limits.disk = \"10GiB\"\n"},
      {"max_disk_usage = 5368709120", "limits.disk = \"5GiB\"\n"},
      {"limits.max_disk_usage = 5368709120", "limits.disk = \"5GiB\"\n"},
      {"timeout = 600", "limits.timeout = \"10m\"\n"},
      {"idle_timeout = 300", "limits.idle_timeout = \"5m\"\n"},
      {"network_mode = \"full\"", "network.mode = \"host\"\n"},
      {"network_mode = \"restricted\"", "network.mode = \"proxy\"\n"},
      {"network_mode = \"none\"", "network.mode = \"none\"\n"},
      {"network.network_mode = \"full\"", "network.mode = \"host\"\n"},
      {"network_access = true", "network.mode = \"host\"\n"},
      {"network_access = false", "network.mode = \"none\"\n"},
      {"allowed_domains = [\"a.example\"]", "network.allowed_domains = [\"a.example\"]\n"},
      {"blocked_domains = [\"*.b.example\"]", "network.denied_domains = [\"*.b.example\"]\n"},
      {"network.blocked_domains = [\"b.example\"]", "network.denied_domains = [\"b.example\"]\n"},
      {"http_proxy = \"http://p.example:3128\"", "network.upstream_proxy = \"http://p.example:3128\"\n"},
      {"network.http_proxy = \"socks5://p.example:1080\"", "network.upstream_proxy = \"socks5://p.example:1080\"\n"},
      {"network.allowLocalBinding = false", "network.allow_local_binding = false\n"},
      {"network.allowUnixSockets = [\"/run/a\"]", "network.allow_unix_sockets = [\"/run/a\"]\n"},
      {"network.allowAllUnixSockets = true", "network.allow_all_unix_sockets = true\n"},
      {"denied_domains = [\"b.example\"]", "network.denied_domains = [\"b.example\"]\n"},
      {"writable_roots = [\"/a\"]", "filesystem.writable_roots = [\"/a\"]\n"},
      {"readonly_paths = [\"/etc\", \"/usr\"]", "filesystem.readonly_paths = [\"/etc\", \"/usr\"]\n"},
      {"blocked_paths = [\"/proc\", \"/sys\"]", "filesystem.blocked_paths = [\"/proc\", \"/sys\"]\n"},
      {"volumes = [{ source = \"/host/data\", target = \"/workspace/data\", readonly = false }]",
       "filesystem.volumes = [{ source = \"/host/data\", target = \"/workspace/data\", readonly = false }]\n"},
      {"temp_dir = \"/tmp/agent\"", "filesystem.temp_dir = \"/tmp/agent\"\n"},
      {"exclude_tmpdir_env_var = true", "filesystem.exclude_tmpdir_env_var = true\n"},
      {"exclude_slash_tmp = true", "filesystem.exclude_slash_tmp = true\n"},
      {"devices = [\"/dev/dri\"]", "filesystem.devices = [\"/dev/dri\"]\n"},
      {"env_whitelist = [\"PATH\", \"HOME\"]", "environment.inherit = \"none\"\nenvironment.include = [\"PATH\", \"HOME\"]\n"},
      {"environment.env_whitelist = [\"PATH\"]", "environment.inherit = \"none\"\nenvironment.include = [\"PATH\"]\n"},
      {"env_blacklist = [\"AWS_*\", \"GITHUB_TOKEN\"]", "environment.exclude = [\"AWS_*\", \"GITHUB_TOKEN\"]\n"},
      {"environment.env_blacklist = [\"X\"]", "environment.exclude = [\"X\"]\n"},
      {"allowed_commands = [\"ls\"]", "commands.allow = [\"ls\"]\n"},
      {"blocked_commands = [\"rm\"]", "commands.deny = [\"rm\"]\n"},
      {"commands.allowed_commands = [\"ls\"]", "commands.allow = [\"ls\"]\n"},
      {"commands.blocked_commands = [\"rm\"]", "commands.deny = [\"rm\"]\n"},
      {"ignoreViolations.file = [\"/tmp/**\"]", "ignore_violations.file = [\"/tmp/**\"]\n"},
      {"ignoreViolations.network = [\"localhost:*\"]", "ignore_violations.network = [\"localhost:*\"]\n"},
      {"auto_clean_temp = true", "filesystem.clean_temp_dir = true\n"},
      {"auto_clean = true", "filesystem.clean_temp_dir = true\n"},
      {"clean_on_stop = true", "filesystem.clean_temp_dir = true\n"},
      {"persistent_volume = \"/mnt/agent-state\"", "filesystem.writable_roots = [\"/mnt/agent-state\"]\n"},
      {"restore_on_start = true\npersistent_volume = \"/s\"", "filesystem.writable_roots = [\"/s\"]\n"},
      {"use_docker = true", "backend = \"container\"\n"},
      {"image = \"golang:1.21\"", "container.image = \"golang:1.21\"\n"},
      {"image_pull_policy = \"IfNotPresent\"", "container.pull = \"missing\"\n"},
  };
  for (const AliasCase& one : cases) EXPECT_EQ(settings(std::string(one.text) + "\n"), one.means) << one.text;
  // No alias is left untried: it is in the table above, or it is refused by name.
  for (const Alias& alias : aliases()) {
    const std::string start = std::string(alias.name) + " = ";
    if (alias.how == Alias::How::kRefused) {
      const auto refused = parse_toml(start + "1\n", "p.toml", "user");
      ASSERT_FALSE(refused) << alias.name;
      EXPECT_EQ(refused.error().code(), Code::kUnimplemented);
      EXPECT_EQ(refused.error().reason(), alias.why);
      continue;
    }
    const bool tried =
        std::ranges::any_of(cases, [&](const AliasCase& one) { return std::string_view(one.text).starts_with(start); });
    EXPECT_TRUE(tried) << alias.name;
  }
  EXPECT_EQ(settings("cpu = 1.5\n"), "limits.cpus = 1.5\n");
  EXPECT_EQ(what("cpu = \"half\"\n"), "p.toml:1:7: `half` is not a number such as 1.5");
  EXPECT_EQ(what("auto_clean = false\n"), "p.toml:1:1: key `auto_clean` is known and not offered");
  EXPECT_EQ(what("network_mode = \"host\"\n"), "p.toml:1:16: `network_mode` is text `host`");
}

TEST(Parse, NumbersMayStandInQuotes) {
  EXPECT_EQ(settings("cpu_limit = \"2.0\"\n"), "limits.cpus = 2.0\n");
  EXPECT_EQ(settings("cpu_request = \"1.0\"\n"), "limits.cpu_request = 1.0\n");
  EXPECT_EQ(settings("[limits]\npids = \"100\"\n"), "limits.pids = 100\n");
  EXPECT_EQ(settings("memory_limit = \"1024\"\n"), "limits.memory = \"1GiB\"\n") << "as without quotes";
  EXPECT_EQ(settings("disk_limit = \"10g\"\n"), "limits.disk = \"10GiB\"\n");
  EXPECT_EQ(settings("timeout = \"300\"\n"), "limits.timeout = \"5m\"\n");
  EXPECT_EQ(what("[limits]\npids = \"many\"\n"), "p.toml:2:8: `many` is not a whole number such as 256");
}

TEST(Parse, WhatIsToStayIsOneMoreWritableRoot) {
  EXPECT_EQ(settings("persistent_volume = \"/s\"\nwritable_roots = [\"/a\"]\n"), "filesystem.writable_roots = [\"/s\", \"/a\"]\n");
  EXPECT_EQ(settings("writable_roots = [\"/a\"]\npersistent_volume = \"/s\"\n"), "filesystem.writable_roots = [\"/a\", \"/s\"]\n");
  EXPECT_EQ(what("persistent_volume = \"/s\"\nwritable_roots = []\n"),
            "p.toml:2:1: key `filesystem.writable_roots` is given twice");
  EXPECT_EQ(what("writable_roots = [\"/a\"]\npersistent_volume = \"/s\"\n[filesystem]\nwritable_roots = [\"/b\"]\n"),
            "p.toml:4:1: key `filesystem.writable_roots` is given twice");
  EXPECT_EQ(what("restore_on_start = true\n"), "p.toml:1:1: key `restore_on_start` restores nothing");
  EXPECT_EQ(what("restore_on_start = false\npersistent_volume = \"/s\"\n"),
            "p.toml:1:1: key `restore_on_start` is known and not offered");
}

TEST(Parse, WhatAlwaysEndsMayBeSaidTwiceAndNotOtherwise) {
  EXPECT_EQ(settings("auto_clean_temp = true\nauto_clean = true\nclean_on_stop = true\n"), "filesystem.clean_temp_dir = true\n");
  EXPECT_EQ(what("auto_clean_temp = false\nauto_clean = true\n"), "p.toml:2:1: key `auto_clean` says the opposite of line 1");
  EXPECT_EQ(what("auto_clean_temp = false\n"), "p.toml:1:1: key `auto_clean_temp` is known and not offered");
  EXPECT_EQ(settings("auto_clean_temp = false\ntemp_dir = \"/t\"\n"),
            "filesystem.clean_temp_dir = false\nfilesystem.temp_dir = \"/t\"\n");
  EXPECT_EQ(settings("auto_clean_temp = false\nfilesystem.tmp = \"shared\"\n"),
            "filesystem.clean_temp_dir = false\nfilesystem.tmp = \"shared\"\n");
  EXPECT_EQ(what("auto_clean_temp = false\nfilesystem.tmp = \"private\"\n"),
            "p.toml:1:1: key `auto_clean_temp` is known and not offered");
}

TEST(Parse, AnAlertOfAnyNameIsPointedToWhatThereIs) {
  for (const char* name : {"alert_cpu_threshold", "alert_cpu", "alert_email", "alert_network_threshold"}) {
    const std::string said = refusal(std::string(name) + " = 80\n");
    EXPECT_NE(said.find(std::string("key `") + name + "` is known and not offered"), std::string::npos) << said;
    EXPECT_NE(said.find("limits.cpus, limits.memory and limits.disk"), std::string::npos) << said;
    EXPECT_NE(said.find("EventOptions::alerts"), std::string::npos) << said;
  }
  EXPECT_EQ(settings("limits.cpus = 2\n"), "limits.cpus = 2.0\n") << "the twin";
  EXPECT_NE(refusal("alertness = 1\n").find("unknown key `alertness`"), std::string::npos);
}

TEST(Parse, SizesInMegabytesOnlyUnderTheirOldNames) {
  EXPECT_EQ(settings("[limits]\nmemory = 2048\n"), "limits.memory = \"2KiB\"\n");
  EXPECT_EQ(settings("memory_limit = 2048\n"), "limits.memory = \"2GiB\"\n");
}

}  // namespace
}  // namespace belljar::policy
