#include "guard/foreign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "policy/parse.h"

namespace belljar::guard {
namespace {

std::string policy_of(std::string_view text, std::string_view file = "settings.json") {
  auto imported = import_settings(text, file, {});
  return imported ? imported->policy : imported.error().reason();
}

PermissionSettings permission_of(std::string_view text, std::string_view file = "settings.json") {
  auto imported = import_settings(text, file, {});
  EXPECT_TRUE(imported) << imported.error().line();
  return imported ? imported->permission : PermissionSettings{};
}

// The configurations of document 004, as written there but for the quotes that JSON wants.
TEST(Import, ScenariosOfTheDocument) {
  EXPECT_EQ(policy_of(R"({"enabled": true, "autoAllowBashIfSandboxed": true, "network": {"allowLocalBinding": true}})"),
            "\n[network]\nallow_local_binding = true\n");
  EXPECT_EQ(policy_of(R"({"enabled": true, "network": {"allowUnixSockets": ["/var/run/docker.sock"]}})"),
            "\n[network]\nallow_unix_sockets = [\"/var/run/docker.sock\"]\n");
  EXPECT_EQ(
      policy_of(
          R"({"enabled": true, "ignoreViolations": {"file": ["/tmp/**", "/var/cache/**"], "network": ["localhost:*", "127.0.0.1:3000"]}})"),
      "\n[ignore_violations]\nfile = [\"/tmp/**\", \"/var/cache/**\"]\nnetwork = [\"localhost:*\", \"127.0.0.1:3000\"]\n");
  EXPECT_EQ(policy_of(R"({"enabled": true, "ignoreViolations": {"network": ["*.example.com:443"]}})"),
            "\n[ignore_violations]\nnetwork = [\"*.example.com:443\"]\n");
  EXPECT_EQ(permission_of(R"({"enabled": true, "autoAllowBashIfSandboxed": true})"),
            (PermissionSettings{.auto_allow_bash_if_sandboxed = true}));
  EXPECT_EQ(permission_of(R"({"enabled": true, "autoAllowBashIfSandboxed": false})"), PermissionSettings{});
  EXPECT_EQ(permission_of(R"({"enabled": false})"), PermissionSettings{.sandbox = SandboxState::kOff});
  EXPECT_EQ(permission_of(R"({"enabled": true, "excludedCommands": [], "allowUnsandboxedCommands": false})"), PermissionSettings{});
  EXPECT_EQ(policy_of(R"({"enabled": true, "enableWeakerNestedSandbox": true, "network": {"allowAllUnixSockets": true}})"),
            "enable_weaker_nested_sandbox = true\n\n[network]\nallow_all_unix_sockets = true\n");
}

// Blade and Claude run commands as they are unless `enabled` is true.
TEST(Import, WithoutEnabledThereIsNoSandbox) {
  for (const char* text :
       {R"({"sandbox": {}})", R"({"enabled": false})",
        R"({"sandbox": {"enabled": false, "network": {"allowedDomains": ["a.example"]}}})",
        R"({"sandbox": {"autoAllowBashIfSandboxed": true, "excludedCommands": ["docker"], "allowUnsandboxedCommands": true}})",
        R"x({"sandbox": {}, "permissions": {"deny": ["Read(./.env)"]}})x"}) {
    const auto off = import_settings(text, "settings.json", {});
    ASSERT_TRUE(off) << text << off.error().line();
    EXPECT_TRUE(off->is_off) << text;
    EXPECT_EQ(off->policy, "mode = \"danger-full-access\"\n") << text;
    EXPECT_EQ(off->permission, PermissionSettings{.sandbox = SandboxState::kOff}) << text;
    for (const Field& field : off->fields) EXPECT_NE(field.treatment, Field::Treatment::kPolicy) << text << field.name;
  }
  for (const char* text : {"{}", R"({"network": {"allowedDomains": []}})"}) {
    const auto untold = import_settings(text, "settings.json", {});
    ASSERT_FALSE(untold) << text << " may as well be srt's, which always has one";
    EXPECT_EQ(untold.error().what(), "`settings.json` does not say whether there is a sandbox");
  }
  const auto mistyped = import_settings(R"({"sandbox": {"enabeld": true}})", "settings.json", {});
  ASSERT_FALSE(mistyped) << "nobody has it off by a slip";
  EXPECT_NE(mistyped.error().reason().find("`enabeld`"), std::string::npos);
  const auto on = import_settings(R"({"sandbox": {"enabled": true}})", "settings.json", {});
  ASSERT_TRUE(on);
  EXPECT_FALSE(on->is_off);
  EXPECT_EQ(on->policy, "");
}

TEST(Import, OneFileHoldsThePolicyAndWhatIsAsked) {
  const auto imported =
      import_settings(R"({"sandbox": {"enabled": true, "autoAllowBashIfSandboxed": true, "network": {"allowLocalBinding": true}},
    "permissionMode": "autoEdit"})",
                      "settings.json", {});
  ASSERT_TRUE(imported) << imported.error().line();
  EXPECT_EQ(to_policy_file(*imported),
            "\n[network]\nallow_local_binding = true\n\n[permission]\nmode = \"auto-edit\"\nauto_allow_bash_if_sandboxed = true\n"
            "ask_for_reads = true\n");
  EXPECT_TRUE(policy::parse_toml(to_policy_file(*imported), "p.toml", "user")) << "a policy takes it";
}

TEST(Import, TheModeOfASettingsFileIsTaken) {
  const auto mode_of = [](std::string_view text) { return permission_of(text).mode; };
  EXPECT_EQ(mode_of(R"({"sandbox": {"enabled": true}})"), PermissionMode::kDefault);
  EXPECT_EQ(mode_of(R"({"sandbox": {"enabled": true}, "permissionMode": "autoEdit"})"), PermissionMode::kAutoEdit);
  EXPECT_EQ(mode_of(R"({"permissionMode": "plan", "sandbox": {"enabled": true}})"), PermissionMode::kPlan);
  EXPECT_EQ(mode_of(R"({"sandbox": {"enabled": true}, "permissions": {"defaultMode": "acceptEdits"}})"), PermissionMode::kAutoEdit);
  EXPECT_EQ(permission_of(R"({"sandbox": {"enabled": false}, "permissionMode": "yolo"})"),
            (PermissionSettings{.mode = PermissionMode::kYolo, .sandbox = SandboxState::kOff}));
  EXPECT_EQ(policy_of(R"({"sandbox": {"enabled": true}, "permissionMode": "Yolo"})"), "`permissionMode`: there is no mode `Yolo`");
  // What switches asking off in Claude's settings does not here.
  EXPECT_EQ(mode_of(R"({"sandbox": {"enabled": true}, "permissions": {"defaultMode": "bypassPermissions"}})"),
            PermissionMode::kDefault);
}

TEST(Import, ClaudesKeyTakesClaudesModesOnly) {
  for (const std::string word : {"yolo", "autoEdit", "bypassPermissions"}) {
    const auto imported =
        import_settings(R"({"sandbox": {"enabled": true}, "permissions": {"defaultMode": ")" + word + "\"}}", "settings.json", {});
    ASSERT_TRUE(imported) << imported.error().line();
    EXPECT_EQ(imported->permission.mode, PermissionMode::kDefault) << word;
    ASSERT_EQ(imported->fields.size(), 2U);
    EXPECT_EQ(imported->fields[0].treatment, Field::Treatment::kOther) << word;
  }
  EXPECT_EQ(permission_of(R"({"sandbox": {"enabled": true}, "permissions": {"defaultMode": "plan"}})").mode, PermissionMode::kPlan)
      << "the twin";
}

TEST(Import, TwoModesThatDifferAreRefusedBoth) {
  constexpr std::string_view kBoth =
      R"({"sandbox": {"enabled": true}, "permissionMode": "yolo", "permissions": {"defaultMode": "plan"}})";
  EXPECT_EQ(policy_of(kBoth),
            "`permissionMode`: says another mode than `permissions.defaultMode`; "
            "`permissions.defaultMode`: says another mode than `permissionMode`");
  EXPECT_NE(
      policy_of(R"({"sandbox": {"enabled": true}, "permissions": {"defaultMode": "bypassPermissions"}, "permissionMode": "plan"})")
          .find("`permissionMode`: says another mode"),
      std::string::npos);
  const auto mode_without = [&](const std::vector<std::string>& names) {
    const auto imported = import_settings(kBoth, "settings.json", names);
    EXPECT_TRUE(imported) << imported.error().line();
    return imported ? imported->permission.mode : PermissionMode::kDefault;
  };
  EXPECT_EQ(mode_without({"permissionMode"}), PermissionMode::kPlan) << "giving one up leaves the other";
  EXPECT_EQ(mode_without({"permissions.defaultMode"}), PermissionMode::kYolo);
  EXPECT_EQ(mode_without({"permissionMode", "permissions.defaultMode"}), PermissionMode::kDefault);
  EXPECT_EQ(permission_of(
                R"({"sandbox": {"enabled": true}, "permissionMode": "autoEdit", "permissions": {"defaultMode": "acceptEdits"}})")
                .mode,
            PermissionMode::kAutoEdit)
      << "the twin: two words for one mode";
}

TEST(Import, AProxyPortIsAnotherProxyBehindOurs) {
  EXPECT_EQ(policy_of(R"({"enabled": true, "network": {"httpProxyPort": 8080, "allowedDomains": ["a.example"]}})"),
            "\n[network]\nallowed_domains = [\"a.example\"]\nmode = \"proxy\"\nupstream_proxy = \"http://127.0.0.1:8080\"\n");
  EXPECT_EQ(policy_of(R"({"enabled": true, "network": {"socksProxyPort": 1080}})"),
            "\n[network]\nmode = \"proxy\"\nupstream_proxy = \"socks5h://127.0.0.1:1080\"\n");
  for (const char* text : {R"({"enabled": true, "network": {"httpProxyPort": 3128, "socksProxyPort": 1080}})",
                           R"({"enabled": true, "network": {"socksProxyPort": 1080, "httpProxyPort": 3128}})"}) {
    const auto both = import_settings(text, "s.json", {});
    ASSERT_TRUE(both) << both.error().line();
    EXPECT_EQ(both->policy, "\n[network]\nmode = \"proxy\"\nupstream_proxy = \"http://127.0.0.1:3128\"\n") << text;
    EXPECT_TRUE(std::ranges::any_of(both->fields, [](const Field& field) {
      return field.name == "network.socksProxyPort" && field.treatment == Field::Treatment::kNotNeeded;
    })) << "said by name";
  }
}

TEST(Import, EveryFieldThatIsNotHonouredIsRefusedByName) {
  for (const auto& [text, field] : {std::pair{R"({"enabled": true, "network": {"tlsTerminate": true}})", "`network.tlsTerminate`"},
                                    {R"({"enabled": true, "autoAllowBash": true})", "`autoAllowBash`"},
                                    {R"({"enabled": true, "network": {"allowedDomain": []}})", "`network.allowedDomain`"},
                                    {R"({"enabled": true, "excludedCommands": ["docker"]})", "`excludedCommands`"},
                                    {R"({"enabled": true, "allowUnsandboxedCommands": true})", "`allowUnsandboxedCommands`"},
                                    {R"({"enabled": true, "failIfUnavailable": false})", "`failIfUnavailable`"},
                                    {R"({"enabled": true, "credentials": {"files": [1]}})", "`credentials`"}})
    EXPECT_NE(policy_of(text).find(field), std::string::npos) << text << policy_of(text);
  auto given_up = import_settings(R"({"enabled": true, "network": {"tlsTerminate": true, "allowLocalBinding": false}})", "s.json",
                                  {"network.tlsTerminate"});
  ASSERT_TRUE(given_up);
  EXPECT_EQ(given_up->policy, "\n[network]\nallow_local_binding = false\n");
}

TEST(Import, WrongTypesAreRefusedWithTheirPlace) {
  auto wrong = import_settings("{\n  \"enabled\": \"yes\"\n}", "s.json", {});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().what().substr(0, 9), "s.json:2:");
  EXPECT_FALSE(import_settings(R"({"network": []})", "s.json", {}));
  EXPECT_FALSE(import_settings(R"([])", "s.json", {}));
  EXPECT_FALSE(import_settings("{", "s.json", {}));
  EXPECT_FALSE(import_settings(R"({"network": {"allowUnixSockets": [3]}})", "s.json", {}));
}

TEST(Import, WholeSettingsFileNamesWhatItLeavesOut) {
  auto imported = import_settings(R"({"model": "x", "sandbox": {"enabled": true, "network": {"allowedDomains": ["example.com"]}}})",
                                  "settings.json", {});
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->policy, "\n[network]\nallowed_domains = [\"example.com\"]\nmode = \"proxy\"\n");
  EXPECT_EQ(imported->fields[0], (Field{"model", Field::Treatment::kOther, "is no setting of a sandbox"}));
}

TEST(Import, SrtSettings) {
  EXPECT_EQ(policy_of(R"({"network": {"allowedDomains": ["example.org", "*.example.com"], "deniedDomains": []},
    "filesystem": {"denyRead": ["~/.ssh"], "allowWrite": [".", "/data/**"], "denyWrite": [".env"], "allowRead": ["/usr/share"]}})"),
            "mode = \"read-only\"\n\n[filesystem]\nblocked_paths = [\"~/.ssh\"]\nreadonly_paths = [\".env\"]\nwritable_roots = "
            "[\".\", \"/data\"]\n\n[network]\nallowed_domains = [\"example.org\", \"*.example.com\"]\ndenied_domains = []\nmode = "
            "\"proxy\"\n");
  // CVE-2025-66479: an empty list is none, not all.
  EXPECT_EQ(
      policy_of(
          R"({"network": {"allowedDomains": [], "deniedDomains": []}, "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}})"),
      "mode = \"read-only\"\n\n[filesystem]\nblocked_paths = []\nreadonly_paths = []\nwritable_roots = "
      "[]\n\n[network]\ndenied_domains = []\nmode = \"none\"\n");
  EXPECT_NE(
      policy_of(R"({"network": {"mitmProxy": {"socketPath": "/x"}}, "filesystem": {"denyRead": []}})").find("`network.mitmProxy`"),
      std::string::npos);
  EXPECT_NE(
      policy_of(R"({"network": {}, "filesystem": {"denyRead": []}, "ignoreViolations": {"*": ["x"]}})").find("`ignoreViolations`"),
      std::string::npos);
}

std::vector<Field> fields_of(std::string_view text, std::string_view file = "settings.json") {
  auto imported = import_settings(text, file, {});
  EXPECT_TRUE(imported) << imported.error().line();
  return imported ? imported->fields : std::vector<Field>();
}

// srt's allowRead reads again inside of denyRead. It never takes away that something may be written.
TEST(Import, WhatIsReadableInsideOfWhatIsHiddenIsRefused) {
  EXPECT_EQ(policy_of(R"({"sandbox": {"enabled": true, "filesystem": {"allowRead": ["/ws"]}}})"), "");
  const auto fields = fields_of(R"({"enabled": true, "filesystem": {"denyRead": ["/a"], "allowRead": ["/ab", "/b"]}})");
  ASSERT_EQ(fields.size(), 3U);
  EXPECT_EQ(fields[2].treatment, Field::Treatment::kNotNeeded);
  for (const char* text : {R"({"enabled": true, "filesystem": {"denyRead": ["/a"], "allowRead": ["/b", "/a/x"]}})",
                           R"({"enabled": true, "filesystem": {"allowRead": ["/a"], "denyRead": ["/a"]}})",
                           R"({"enabled": true, "filesystem": {"denyRead": ["./a"], "allowRead": ["a/x"]}})",
                           R"({"enabled": true, "filesystem": {"denyRead": ["."], "allowRead": ["x"]}})",
                           R"({"enabled": true, "filesystem": {"denyRead": ["/**/x"], "allowRead": ["/b"]}})",
                           R"({"enabled": true, "filesystem": {"denyRead": ["~/"], "allowRead": ["~/x"]}})",
                           R"({"enabled": true, "filesystem": {"denyRead": ["/a/"], "allowRead": ["/a/x/"]}})",
                           // One of them is written by a name of its own; the home holds the workspace as a rule.
                           R"({"enabled": true, "filesystem": {"denyRead": ["~/"], "allowRead": ["."]}})",
                           R"({"enabled": true, "filesystem": {"denyRead": ["/home"], "allowRead": ["~/x"]}})",
                           R"({"enabled": true, "filesystem": {"denyRead": ["~"], "allowRead": ["/home/me/x"]}})"})
    EXPECT_NE(policy_of(text).find("`filesystem.allowRead`"), std::string::npos) << text;
  for (const char* text : {R"({"enabled": true, "filesystem": {"denyRead": ["~/.ssh"], "allowRead": [".", "/usr/share"]}})",
                           R"({"enabled": true, "filesystem": {"denyRead": ["~"], "allowRead": ["/usr/share"]}})",
                           R"({"enabled": true, "filesystem": {"denyRead": ["/etc/shadow"], "allowRead": ["~/x", "./"]}})",
                           R"({"enabled": true, "filesystem": {"denyRead": [".env.*"], "allowRead": ["."]}})"})
    EXPECT_EQ(fields_of(text)[2].treatment, Field::Treatment::kNotNeeded) << text;
}

TEST(Import, ClaudesDenyRulesKeepPathsFromCommands) {
  EXPECT_EQ(
      policy_of(
          R"j({"sandbox": {"enabled": true, "filesystem": {"denyRead": ["/k"]}}, "permissions": {"allow": ["Read(./x)"], "deny":
    ["Read(./.env)", "Read(secrets/**)", "Read(.npmrc)", "Read(~/.aws/*)", "Read(//etc/shadow)", "Edit(./Makefile)", "Bash(curl:*)"]}})j"),
      "\n[filesystem]\nblocked_paths = [\".env\", \"secrets\", \"**/.npmrc\", \"~/.aws/*\", \"/etc/shadow\", \"/k\"]\n"
      "readonly_paths = [\"Makefile\"]\n");
  const auto fields = fields_of(R"j({"sandbox": {"enabled": true}, "permissions": {"deny": ["Bash(curl:*)"], "allow": []}})j");
  ASSERT_EQ(fields.size(), 3U);
  EXPECT_EQ(fields[0], (Field{"permissions.deny Bash(curl:*)", Field::Treatment::kOther, "keeps no path from a command"}));
  for (const char* rule : {"Read", "Read(**)", "Read(/x)", "Read(!x)", "Read(./a?)", "Edit({a,b}*)", "Read(~other/x)"}) {
    const std::string text = std::string(R"({"sandbox": {"enabled": true}, "permissions": {"deny": [")") + rule + "\"]}}";
    EXPECT_NE(policy_of(text).find(std::string("`permissions.deny ") + rule), std::string::npos) << rule << policy_of(text);
  }
  EXPECT_FALSE(import_settings(R"({"sandbox": {"enabled": true}, "permissions": {"deny": [3]}})", "s.json", {}));
  EXPECT_FALSE(import_settings(R"j({"sandbox": {"enabled": true}, "permissions": {"deny": "Read(./x)"}})j", "s.json", {}));
}

TEST(Import, CodexOpensTheNetworkInOneModeOnly) {
  const std::string table = "[sandbox_workspace_write]\nnetwork_access = true\nwritable_roots = [\"/data\"]\n";
  EXPECT_EQ(policy_of("sandbox_mode = \"read-only\"\n" + table, "config.toml"), "mode = \"read-only\"\n");
  EXPECT_EQ(policy_of(table, "config.toml"), "mode = \"read-only\"\n") << "Codex' default, and never our wider one";
  EXPECT_EQ(policy_of("model = \"x\"\n", "config.toml"), "mode = \"read-only\"\n");
  EXPECT_EQ(fields_of(table, "config.toml")[0].treatment, Field::Treatment::kNotNeeded);
  EXPECT_NE(policy_of("sandbox_mode = \"workspace-write\"\n" + table, "config.toml").find("mode = \"host\""), std::string::npos);
}

// What narrows the network there is not dropped while what opens it is taken.
TEST(Import, CodexProxyIsRefusedByName) {
  const std::string open = "sandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\nnetwork_access = true\n";
  for (const char* narrow :
       {"[features]\nnetwork_proxy = true\n", "[network]\nenabled = true\n[network.domains]\n\"a.example\" = \"allow\"\n",
        "[experimental_network]\nallowed_domains = [\"a.example\"]\n"}) {
    const std::string text = policy_of(open + narrow, "config.toml");
    EXPECT_EQ(text.find("mode = \"host\""), std::string::npos) << text;
    EXPECT_NE(text.find("its proxy is another"), std::string::npos) << text;
  }
  EXPECT_NE(policy_of(open + "[features]\nnetwork_proxy = false\nweb_search = true\n", "config.toml").find("mode = \"host\""),
            std::string::npos);
}

TEST(Import, CodexProfileThatIsChosenHolds) {
  const std::string rest =
      "sandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\nnetwork_access = true\n[profiles.x]\nsandbox_mode = "
      "\"read-only\"\nmodel = \"m\"\napproval_policy = \"on-request\"\n[profiles.y.sandbox_workspace_write]\nnetwork_access = "
      "false\n";
  EXPECT_EQ(policy_of("profile = \"x\"\n" + rest, "config.toml"), "mode = \"read-only\"\n");
  EXPECT_TRUE(permission_of("profile = \"x\"\n" + rest, "config.toml").auto_allow_bash_if_sandboxed);
  EXPECT_EQ(policy_of(rest, "config.toml"), "mode = \"workspace-write\"\n\n[network]\nmode = \"host\"\n") << "none is chosen";
  EXPECT_NE(policy_of("profile = \"y\"\n" + rest, "config.toml").find("`profiles.y.sandbox_workspace_write`"), std::string::npos);
  EXPECT_NE(policy_of("profile = \"z\"\n" + rest, "config.toml").find("`profile`: there is no [profiles.z]"), std::string::npos);
}

TEST(Import, ErrorsNameAPlaceOfTheFileThatWasGiven) {
  auto wrong = import_settings(R"({"enabled": true, "network": {"allowedDomains": ["a b"]}})", "dom.json", {});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().what().substr(0, 14), "dom.json:1:49:") << wrong.error().what();
  auto null = import_settings(R"({"sandbox": null})", "s.json", {});
  ASSERT_FALSE(null);
  EXPECT_NE(null.error().what().find("`sandbox` is null, not a table"), std::string::npos) << null.error().what();
}

TEST(Import, CodexSandboxKeys) {
  EXPECT_EQ(policy_of("model = \"x\"\nsandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\nwritable_roots = "
                      "[\"/data\"]\nnetwork_access = true\nexclude_slash_tmp = true\n",
                      "config.toml"),
            "mode = \"workspace-write\"\n\n[filesystem]\nexclude_slash_tmp = true\nwritable_roots = [\"/data\"]\n\n[network]\nmode "
            "= \"host\"\n");
  EXPECT_EQ(policy_of("[shell_environment_policy]\ninherit = \"core\"\nexclude = [\"AWS_*\"]\nset = {A = \"b\"}\n", "config.toml"),
            "mode = \"read-only\"\n\n[environment]\nexclude = [\"AWS_*\"]\ninherit = \"core\"\nset = {\"A\" = \"b\"}\n");
  EXPECT_TRUE(permission_of("approval_policy = \"on-request\"\n", "config.toml").auto_allow_bash_if_sandboxed);
  EXPECT_NE(policy_of("approval_policy = \"never\"\n", "config.toml").find("`approval_policy`"), std::string::npos);
  EXPECT_NE(policy_of("default_permissions = \":workspace\"\n", "config.toml").find("`default_permissions`"), std::string::npos);
  EXPECT_NE(policy_of("sandbox_mode = \"everything\"\n", "config.toml").find("sandbox_mode"), 0U) << "not a mode of ours";
}

}  // namespace
}  // namespace belljar::guard
