#include "policy/permit.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "policy/refusal.h"
#include "policy/schema.h"
#include "support_policy.h"

namespace belljar::policy {
namespace {

Violation act(std::string operation, std::string target, std::string rule, Origin origin = {"built-in", "", 0}) {
  Violation violation;
  violation.operation = std::move(operation);
  violation.target = std::move(target);
  violation.rule = std::move(rule);
  violation.origin = std::move(origin);
  return violation;
}

const PermitContext kPlace{"/home/u", "/run/user/1"};

TEST(Permit, AWriteIsPermittedAtItsFileAndAMakingInItsDirectory) {
  EXPECT_EQ(permit_for(act("write", "/srv/a", "mode")).flag, "--write /srv/a");
  EXPECT_EQ(permit_for(act("create", "/srv/d/a", "mode")).flag, "--write /srv/d");
  EXPECT_EQ(permit_for(act("delete", "/srv/d/a", "filesystem.entries")).line, "filesystem.writable_roots = [\"/srv/d\"]");
  EXPECT_NE(permit_for(act("write", "/srv/a", "mode")).risk, "none");
}

TEST(Permit, AWriteThatTheMachinesModesRefuseTooSaysSo) {
  const PermitContext of_another{"/home/u", "", [](const std::string& path, std::string_view) { return path != "/etc"; }};
  EXPECT_NE(permit_for(act("create", "/etc/x", "filesystem.writable_roots"), of_another).note.find("not enough alone"),
            std::string::npos);
  EXPECT_EQ(permit_for(act("create", "/srv/x", "filesystem.writable_roots"), of_another).note, "");
  EXPECT_EQ(permit_for(act("create", "/etc/x", "filesystem.writable_roots"), kPlace).note, "");
}

TEST(Permit, ASecretIsPermittedAsAWholeAndSaysWhatItCosts) {
  const Permit permit = permit_for(act("read", "/home/u/.ssh/id_rsa", "filesystem.secrets"), kPlace);
  EXPECT_EQ(permit.flag, "--read /home/u/.ssh");
  EXPECT_NE(permit.risk.find("keys and tokens"), std::string::npos);
}

TEST(Permit, ASecretThatIsChangedIsPermittedForWriting) {
  const Permit permit = permit_for(act("write", "/home/u/.ssh/authorized_keys", "filesystem.secrets"), kPlace);
  EXPECT_EQ(permit.flag, "--write /home/u/.ssh");
  EXPECT_NE(permit.risk.find("change"), std::string::npos);
  EXPECT_EQ(permit_for(act("delete", "/home/u/.ssh/known_hosts", "filesystem.secrets"), kPlace).flag, "--write /home/u/.ssh");
  // A grant is a mount, and keeps its name.
  for (const char* operation : {"delete", "rename", "link"}) {
    const Permit none = permit_for(act(operation, "/home/u/.ssh", "filesystem.secrets"), kPlace);
    EXPECT_EQ(none.flag + none.line + none.step, "") << operation;
    EXPECT_NE(none.note.find("outside"), std::string::npos);
  }
}

// Where no grant outweighs a rule, the rule itself is named.
TEST(Permit, NoGrantOpensAWholeHome) {
  Violation violation = act("create", "/home/u/.tool.tmp1", "filesystem.writable_roots");
  for (const char* target : {"/home/u/.tool.tmp1", "/home/x", "/x"}) {
    violation.target = target;
    const Permit made = permit_for(violation, {.home = "/home/u"});
    EXPECT_EQ(made.flag + made.line, "") << target;
    EXPECT_EQ(made.step, "create it outside first, then --write " + violation.target);
    violation.operation = "rename";
    EXPECT_EQ(permit_for(violation, {.home = "/home/u"}).step, "");
    violation.operation = "create";
  }
  violation.target = "/home/u/.config/x";
  EXPECT_EQ(permit_for(violation, {.home = "/home/u"}).flag, "--write /home/u/.config") << "the twin";
  const auto absent = [](const std::string&) { return false; };
  EXPECT_EQ(permit_for(violation, {.home = "/home/u", .exists = absent}).step,
            "create it outside first, then --write /home/u/.config");
}

TEST(Permit, RiskIsNotToldByTheNameOfAValue) {
  EXPECT_EQ(permit_for(act("write", "/w/.git/hooks/x", "filesystem.protect")).risk,
            "a later git, editor or agent outside may run planted code");
}

TEST(Permit, ARuleThatStandsAgainstEveryGrantIsNamed) {
  const Origin line{"policy", "p.toml", 5};
  const auto of = [&](const char* operation, const char* target, std::string_view allowed, int errnum, const Origin& origin) {
    Violation violation = act(operation, target, "filesystem.entries", origin);
    violation.allowed = allowed;
    violation.errnum = errnum;
    return permit_for(violation, kPlace);
  };
  constexpr std::string_view kReadOnly = "reading; writes only below the writable directories";
  for (const Permit& permit :
       {of("create", "/w/q.pem", kKeptByRule, EROFS, line), of("read", "/w/.env", kHiddenByRule, EACCES, line),
        of("delete", "/w/hid", "nothing below /w/hid: it is hidden", EACCES, line),
        of("read", "/w/hid/x", "nothing below /w/hid: it is hidden", EACCES, line),
        of("rename", "/w/ro", "leaving the name where it is", EBUSY, line)}) {
    EXPECT_EQ(permit.flag + permit.line, "");
    EXPECT_EQ(permit.step, "change or remove line 5 of p.toml");
  }
  EXPECT_EQ(of("read", "/w/hid/x", kHiddenByRule, EACCES, {"flag --hide", "", 0}).step, "leave out or change --hide");
  EXPECT_EQ(of("read", "/w/own", kHiddenByRule, EACCES, {"built-in", "", 0}).step, "");
  // The twins: a grant of the same path, or of one below, outweighs a rule that lets read.
  EXPECT_EQ(of("write", "/w/p.pem", kKeptByRule, EROFS, line).flag, "--write /w/p.pem");
  EXPECT_EQ(of("create", "/w/ro/new", kReadOnly, EROFS, line).flag, "--write /w/ro");
  EXPECT_EQ(of("read", "/srv/x", "nothing below /: it is hidden", EACCES, line).flag, "--read /srv/x");
}

TEST(Permit, ProtectedNamesNameTheDangerSetting) {
  const Permit permit = permit_for(act("create", "/w/.git/hooks/pre-commit", "filesystem.protect"));
  EXPECT_EQ(permit.flag, "");
  EXPECT_EQ(permit.line, "filesystem.protect = \"none\"");
  EXPECT_NE(permit.risk.find("planted code"), std::string::npos);
  EXPECT_NE(permit.note, "");
}

// "all" keeps the whole of `.git`; what "default" lets git do needs no more than that.
TEST(Permit, WhatOnlyAllRefusesIsPermittedByDefault) {
  const auto line_of = [](const char* operation, const char* target, std::string_view allowed = kGitByDefault) {
    Violation violation = act(operation, target, "filesystem.protect");
    violation.allowed = allowed;
    return permit_for(violation).line;
  };
  for (const auto& [operation, target] : std::vector<std::pair<const char*, const char*>>{{"create", "/w/.git/index.lock"},
                                                                                          {"write", "/w/.git/logs/HEAD"},
                                                                                          {"mkdir", "/w/.git/objects/ab"},
                                                                                          {"rename", "/w/.git/index"},
                                                                                          {"delete", "/w/.git"},
                                                                                          {"create", "/w/.git/hooks/a.sample"},
                                                                                          {"write", "/w/sub/.GIT/config"}}) {
    EXPECT_EQ(line_of(operation, target), "filesystem.protect = \"default\"") << target;
    EXPECT_EQ(line_of(operation, target, "something else"), "filesystem.protect = \"none\"") << target;
  }
  for (const auto& [operation, target] : std::vector<std::pair<const char*, const char*>>{{"create", "/w/.git/hooks/pre-commit"},
                                                                                          {"create", "/w/.git/modules/m/hooks/a"},
                                                                                          {"symlink", "/w/.git/index"},
                                                                                          {"rename", "/w/.git"}})
    EXPECT_EQ(line_of(operation, target), "filesystem.protect = \"none\"") << target;
  Violation config = act("write", "/w/.git/config", "filesystem.protect");
  config.allowed = kGitByDefault;
  EXPECT_NE(permit_for(config).note.find("judged"), std::string::npos);
  EXPECT_EQ(permit_for(config).risk.find("planted code"), std::string::npos);
}

TEST(Permit, AgentNamesArePermittedByThemselves) {
  const auto of = [](const char* operation, const char* target) {
    return permit_for(act(operation, target, "filesystem.protect"));
  };
  EXPECT_EQ(of("write", "/w/.mcp.json").flag, "--write /w/.mcp.json");
  EXPECT_EQ(of("write", "/w/.mcp.json").line, "filesystem.writable_roots = [\"/w/.mcp.json\"]");
  EXPECT_NE(of("write", "/w/.mcp.json").risk.find("planted code"), std::string::npos);
  EXPECT_EQ(of("create", "/w/.vscode/new").flag, "--write /w/.vscode");
  EXPECT_EQ(of("delete", "/w/sub/.VSCode/a/b").flag, "--write /w/sub/.VSCode");
  EXPECT_EQ(of("create", "/u/.claude/trees/w/.mcp.json").step,
            "create it outside first, then --write /u/.claude/trees/w/.mcp.json");
  EXPECT_EQ(of("mkdir", "/w/.github/copilot-instructions.md").step,
            "create it outside first, then --write /w/.github/copilot-instructions.md");
  EXPECT_EQ(of("mkdir", "/w/.vscode").flag + of("mkdir", "/w/.vscode").line, "");
  // The name itself stays where it is, and git's control files are judged by content.
  for (const Permit& permit :
       {of("delete", "/w/.mcp.json"), of("rename", "/w/.vscode"), of("symlink", "/w/.vscode"), of("write", "/w/.git/config"),
        of("write", "/w/.gitmodules"), of("create", "/w/.vscode/.git/hooks/a")}) {
    EXPECT_EQ(permit.flag + permit.step, "");
    EXPECT_EQ(permit.line, "filesystem.protect = \"none\"");
  }
}

// A directory that is granted is a writable root, and an agent's or shell's name protected in it.
TEST(Permit, AnAgentNameOutsideIsNotPermittedByItsDirectory) {
  const auto of = [](const char* operation, const char* target) {
    return permit_for(act(operation, target, "filesystem.writable_roots"));
  };
  for (const char* operation : {"create", "mkdir"}) {
    EXPECT_EQ(of(operation, "/home/u/.bashrc").step, "create it outside first, then --write /home/u/.bashrc");
    EXPECT_EQ(of(operation, "/home/u/.bashrc").flag + of(operation, "/home/u/.bashrc").line, "");
  }
  for (const char* operation : {"rename", "symlink", "delete"}) {
    const Permit permit = of(operation, "/home/u/.bashrc");
    EXPECT_EQ(permit.flag + permit.line + permit.step, "") << operation;
    EXPECT_NE(permit.note.find("outside"), std::string::npos);
  }
  EXPECT_EQ(of("write", "/home/u/.bashrc").flag, "--write /home/u/.bashrc");
  EXPECT_EQ(of("create", "/home/u/.claude/new").flag, "--write /home/u/.claude");
  EXPECT_EQ(of("create", "/home/u/bashrc").flag, "--write /home/u") << "the twin";
}

// The profile is in force where the name is a mount: to take it again would change nothing.
TEST(Permit, ARenameOverAFileThatPersistsIsPermittedByNothing) {
  Violation busy = act("rename", "/home/u/.claude/.credentials.json", "filesystem.protect");
  EXPECT_EQ(permit_for(busy, kPlace).flag, "--policy agent-claude");
  busy.errnum = EBUSY;
  const Permit permit = permit_for(busy, kPlace);
  EXPECT_EQ(permit.flag + permit.line + permit.step, "");
  EXPECT_NE(permit.note.find("write it in place"), std::string::npos);
}

TEST(Permit, NothingPermitsAWriteToWhatBelljarKeeps) {
  PermitContext context = kPlace;
  const Violation write = act("write", "/home/u/.local/state/belljar/agents/claude.answers", "filesystem.secrets");
  EXPECT_EQ(permit_for(write, context).flag, "--write /home/u/.local/state/belljar") << "another state directory";
  context.state_dir = "/home/u/.local/state/belljar";
  const Permit permit = permit_for(write, context);
  EXPECT_EQ(permit.flag + permit.line + permit.step, "");
}

TEST(Permit, ARuleOfAShippedProfileIsNoFileToChange) {
  const auto of = [](const char* file) {
    Violation violation = act("write", "/home/u/.x/memory/m", "filesystem.entries", {"agent-claude", file, 24});
    violation.allowed = "leaving the name where it is";
    violation.errnum = EBUSY;
    return permit_for(violation, kPlace);
  };
  EXPECT_EQ(of("agent-claude.toml").step, "");
  EXPECT_NE(of("agent-claude.toml").note.find("the built-in profile agent-claude"), std::string::npos);
  EXPECT_EQ(of("/etc/p.toml").step, "change or remove line 24 of /etc/p.toml");
}

TEST(Permit, AnAgentsStateIsPermittedByItsProfile) {
  const auto of = [](const char* operation, const char* target) {
    return permit_for(act(operation, target, "filesystem.writable_roots"), kPlace);
  };
  for (const char* operation : {"write", "create", "rename"}) {
    EXPECT_EQ(of(operation, "/home/u/.gemini/settings.json").flag, "--policy agent-gemini");
    EXPECT_EQ(of(operation, "/home/u/.gemini/settings.json").line, "profile = \"agent-gemini\"");
    EXPECT_EQ(of(operation, "/home/u/.config/opencode/plugin/x.js").flag, "--policy agent-opencode");
    EXPECT_EQ(of(operation, "/home/u/.claude/new").flag, "--policy agent-claude");
    EXPECT_EQ(of(operation, "/home/u/.codex").flag, "--policy agent-codex");
    for (const char* file : {"/home/u/.claude.json", "/home/u/.claude.json.tmp.7.ab"}) {
      const Permit permit = of(operation, file);
      EXPECT_EQ(permit.flag + permit.line + permit.step, "") << file;
      EXPECT_NE(permit.note.find("outside"), std::string::npos);
    }
  }
  EXPECT_EQ(of("create", "/home/u/.config/other/x").flag, "--write /home/u/.config/other") << "the twin";
  EXPECT_EQ(of("create", "/home/v/.gemini/x").flag, "--write /home/v/.gemini") << "of somebody else";
}

TEST(Permit, NetworkAndSocketsHaveTheirFlags) {
  const Permit host = permit_for(act("egress", "other.example:443", "network.allowed_domains"));
  EXPECT_EQ(host.flag, "--allow-domain other.example:443");
  EXPECT_EQ(host.line, "network.allowed_domains = [\"other.example:443\"]");
  EXPECT_EQ(permit_for(act("egress", "other.example:443", "network.methods")).flag, "--net-methods full");
  const Permit one = permit_for(act("unix-connect", "/run/x", "network.allow_unix_sockets"));
  EXPECT_EQ(one.flag, "--allow-unix-socket /run/x");
  EXPECT_EQ(one.line, "network.allow_unix_sockets = [\"/run/x\"]");
  EXPECT_EQ(permit_for(act("unix-connect", "@x", "network.allow_unix_sockets")).flag, "--allow-all-unix-sockets");
}

// Who is told to open the host's network does it; one host by the proxy is enough.
TEST(Permit, WithoutANetworkOneHostIsOpenedAndNotTheHostsNetwork) {
  const Permit address = permit_for(act("connect", "192.0.2.1:443", "network.mode"));
  EXPECT_EQ(address.flag, "--net proxy --allow-domain 192.0.2.1:443");
  EXPECT_EQ(address.line, "network = { mode = \"proxy\", allowed_domains = [\"192.0.2.1:443\"] }");
  const Permit looked_up = permit_for(act("udp-connect", "192.0.2.53:53", "network.mode"));
  EXPECT_EQ(looked_up.flag, "--net proxy --allow-domain HOST");
  EXPECT_NE(looked_up.note.find("HOST is that name"), std::string::npos) << looked_up.note;
  const Permit six = permit_for(act("connect", "[2001:db8::1]:80", "network.mode"));
  EXPECT_EQ(six.flag, "--net proxy --allow-domain '[2001:db8::1]:80'");
  EXPECT_NE(six.note.find("HTTPS_PROXY"), std::string::npos) << six.note;
  EXPECT_EQ(permit_for(act("udp-connect", "192.0.2.1:443", "network.mode")).flag, "--net host") << "the twin: UDP has no other way";
}

// Where a proxy is, the host's network is no way out of a refusal: it would end all control.
TEST(Permit, WhatTheProxyDoesNotCarryIsNotSentToTheHostsNetwork) {
  Violation violation = act("udp-connect", "192.0.2.1:443", "network.mode");
  EXPECT_EQ(permit_for(violation).flag, "--net host") << "the twin: no network at all";
  violation.allowed = kTcpByProxy;
  EXPECT_EQ(permit_for(violation).flag + permit_for(violation).line, "");
  EXPECT_NE(permit_for(violation).note.find("TCP"), std::string::npos);
  violation = act("connect", "[2001:db8::1]:80", "network.mode");
  violation.allowed = kHostsByProxy;
  EXPECT_EQ(permit_for(violation).flag, "--allow-domain HOST");
  EXPECT_EQ(permit_for(violation).line, "network.allowed_domains = [\"HOST\"]");
  EXPECT_NE(permit_for(violation).note.find("HTTPS_PROXY"), std::string::npos);
}

TEST(Permit, PortsHaveTheirFlag) {
  EXPECT_EQ(permit_for(act("listen", "0.0.0.0:0", "network.allow_local_binding")).flag, "--allow-local-binding");
  EXPECT_EQ(permit_for(act("bind", "[::]:80", "network.allow_local_binding")).line, "network.allow_local_binding = true");
  // A flag that says no is not outweighed by a second one.
  const Permit said = permit_for(
      act("listen", "127.0.0.1:80", "network.allow_local_binding", {.layer = "flag --allow-local-binding", .file = "", .line = 0}));
  EXPECT_EQ(said.step, "leave out or change --allow-local-binding");
  EXPECT_EQ(said.flag + said.line, "");
}

TEST(Permit, LimitsNameTheirFlagAndValue) {
  Violation violation = act("limit", "memory", "limits.memory");
  violation.allowed = "up to 64MiB";
  const Permit permit = permit_for(violation);
  EXPECT_EQ(permit.flag, "--memory MORE");
  EXPECT_NE(permit.note.find("64MiB"), std::string::npos);
}

TEST(Permit, ABuiltInRefusalHasNoFlag) {
  const Permit permit = permit_for(act("system-call", "bpf", "seccomp"));
  EXPECT_EQ(permit.flag + permit.line, "");
  EXPECT_NE(permit.note.find("nothing permits"), std::string::npos);
  const Permit nested = permit_for(act("system-call", "unshare", "allow_nested_userns"));
  EXPECT_EQ(nested.flag, "--allow-nested-userns");
  EXPECT_NE(nested.note.find("--accept filesystem.globs"), std::string::npos);
  EXPECT_NE(nested.risk.find("memories of projects"), std::string::npos);
}

TEST(Permit, HostileNamesAreOneHarmlessWord) {
  EXPECT_EQ(shell_word("/a/b-c.d"), "/a/b-c.d");
  EXPECT_EQ(shell_word("/a b;$(x)'y"), "'/a b;$(x)'\\''y'");
  EXPECT_EQ(shell_word("/a\x1b[2J\n'\\\xff"), "$'/a\\x1b[2J\\x0a\\'\\\\\\xff'");
  EXPECT_EQ(shell_word(""), "''");
  const Permit permit = permit_for(act("write", "/srv/\x1b\xff", "mode"));
  EXPECT_EQ(permit.flag, "--write $'/srv/\\x1b\\xff'");
  EXPECT_EQ(permit.line, "");  // TOML cannot hold it
}

// The advice is not only words: the line it gives opens the path it was asked for.
TEST(Permit, TheLineGrantsTheAct) {
  const auto before = merged({layer("user", "")});
  EXPECT_EQ(access_of(before, "/srv/a b"), "read");
  const auto after = merged({layer("user", permit_for(act("write", "/srv/a b", "mode")).line)});
  EXPECT_EQ(access_of(after, "/srv/a b"), "write");
  EXPECT_EQ(access_of(merged({layer("user", "")}), "/home/u/.ssh/k"), "none");
  const Violation secret = act("read", "/home/u/.ssh/k", "filesystem.secrets");
  EXPECT_EQ(access_of(merged({layer("user", permit_for(secret, kPlace).line)}), "/home/u/.ssh/k"), "read");
}

TEST(Permit, ANameThatNoHostHasIsOpenedByNothing) {
  EXPECT_EQ(permit_for(act("egress", R"(a\x00b.test:443)", "network.allowed_domains")).flag, "");
  EXPECT_EQ(permit_for(act("egress", "b.test:443", "network.allowed_domains")).flag, "--allow-domain b.test:443");
  EXPECT_EQ(permit_for(act("egress", "b.test", "network.allowed_domains")).flag, "--allow-domain b.test");
}

TEST(Permit, AFullTableOfNamesIsNoSetting) {
  const Permit permit = permit_for(act("egress", "b.test", "network.transparent"));
  EXPECT_EQ(permit.flag + permit.line, "");
  EXPECT_NE(permit.note.find("HTTPS_PROXY"), std::string::npos);
}

}  // namespace
}  // namespace belljar::policy
