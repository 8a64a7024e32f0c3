#include "policy/learn.h"

#include <gtest/gtest.h>

#include "support_policy.h"

namespace belljar::policy {
namespace {

Touched read(std::string path, bool directory = false) {
  return {.path = std::move(path), .exists = true, .directory = directory, .read = true};
}
Touched made(std::string path) { return {.path = std::move(path), .made = true}; }
Touched written(std::string path) { return {.path = std::move(path), .exists = true, .written = true}; }

// Learns under `user`, then merges the result as `--policy FILE` would.
struct Lesson {
  Learned learned;
  Result<Effective> effective;
};
Lesson lesson(std::vector<Touched> touched, const char* user = "", LearnInput input = {}) {
  input.touched = std::move(touched);
  input.program = "prog";
  const auto in_force = merged({layer("user", user)});
  Learned learned = learn(input, *in_force, place());
  auto effective = merged({layer("policy", learned.toml)});
  EXPECT_TRUE(effective) << learned.toml;
  return {std::move(learned), std::move(effective)};
}

TEST(Learn, GrantsWhatWasUsedAndNothingBesides) {
  const Lesson one = lesson({read("/home/u/data/a"), read("/etc/passwd"), made("/w/build/x.o"), written("/w/log")});
  EXPECT_EQ(access_of(one.effective, "/home/u/data/a"), "read");
  EXPECT_EQ(access_of(one.effective, "/home/u/data/b"), "none");
  EXPECT_EQ(access_of(one.effective, "/etc/hosts"), "read");
  EXPECT_EQ(access_of(one.effective, "/usr/lib/x"), "read");
  EXPECT_EQ(access_of(one.effective, "/srv/x"), "none");
  EXPECT_EQ(access_of(one.effective, "/w/build/y.o"), "write");
  EXPECT_EQ(access_of(one.effective, "/w/log"), "write");
  EXPECT_EQ(access_of(one.effective, "/w/src"), "read");
  EXPECT_EQ(one.effective->policy.mode, Mode::kReadOnly);
  EXPECT_TRUE(one.learned.risks.empty());
}

TEST(Learn, NamesMadeInTheWorkspaceOpenItAsAWhole) {
  const Lesson one = lesson({made("/w/out"), made("/w/out/x")});
  EXPECT_EQ(one.effective->policy.mode, Mode::kWorkspaceWrite);
  EXPECT_EQ(access_of(one.effective, "/w/any"), "write");
}

TEST(Learn, ManyFilesOfOneDirectoryAreTheDirectory) {
  std::vector<Touched> many, few;
  for (int i = 0; i < 20; ++i) many.push_back(read("/srv/d/" + std::to_string(i)));
  for (int i = 0; i < 5; ++i) few.push_back(read("/srv/d/" + std::to_string(i)));
  EXPECT_EQ(access_of(lesson(many).effective, "/srv/d/new"), "read");
  EXPECT_EQ(access_of(lesson(few).effective, "/srv/d/new"), "none");
  for (Touched& touched : many) touched.path = "/home/u/" + touched.path.substr(7);
  EXPECT_EQ(access_of(lesson(many).effective, "/home/u/new"), "none");  // never the whole home
}

TEST(Learn, ListingTheHomeDoesNotOpenIt) {
  const Lesson one = lesson({read("/home/u", true), read("/home", true), read("/srv/list", true)});
  EXPECT_EQ(access_of(one.effective, "/home/u/x"), "none");
  EXPECT_EQ(access_of(one.effective, "/srv/list/x"), "read");
  EXPECT_NE(one.learned.toml.find("# It listed /home/u."), std::string::npos);
}

TEST(Learn, WhatWasRefusedIsAComment) {
  const Lesson one = lesson({read("/home/u/.ssh/id"), made("/srv/x/y"), written("/etc/hosts")});
  EXPECT_EQ(access_of(one.effective, "/home/u/.ssh/id"), "none");
  EXPECT_EQ(access_of(one.effective, "/srv/x/y"), "none");
  EXPECT_NE(access_of(one.effective, "/etc/hosts"), "write");
  for (const char* text : {"# read /home/u/.ssh/id; --read /home/u/.ssh would", "# write /srv/x/y; --write /srv/x would",
                           "# write /etc/hosts; --write /etc/hosts would"})
    EXPECT_NE(one.learned.toml.find(text), std::string::npos) << text << one.learned.toml;
}

TEST(Learn, RiskyGrantsAreMarked) {
  const char* const user = "writable_roots = [\"/home/u\", \"/srv\", \"/w/.vscode\"]\nreadonly_paths = [\"/home/u/.ssh\"]";
  const Lesson one = lesson({made("/home/u/x"), made("/srv/x"), made("/w/.vscode/tasks.json"), read("/home/u/.ssh/id")}, user);
  ASSERT_EQ(one.learned.risks.size(), 4U) << one.learned.toml;
  EXPECT_NE(one.learned.toml.find("# RISK write /home/u: everything the user owns"), std::string::npos) << one.learned.toml;
  EXPECT_NE(one.learned.toml.find("# RISK write /srv: outside the workspace"), std::string::npos) << one.learned.toml;
  EXPECT_NE(one.learned.toml.find("# RISK write /w/.vscode: `.vscode` is read"), std::string::npos) << one.learned.toml;
  EXPECT_NE(one.learned.toml.find("# RISK read /home/u/.ssh: "), std::string::npos) << one.learned.toml;
}

// A program must not choose what its policy opens by trying: an entry that names a protected name would lift its protection.
TEST(Learn, ProtectedNamesAreToldAndNotGranted) {
  for (const char* path : {"/w/.vscode/tasks.json", "/w/.claude/settings.json", "/w/.belljar/policy.toml", "/w/sub/.idea/a/b",
                           "/w/.github/hooks/x.json"}) {
    const Lesson one = lesson({made(path)});
    EXPECT_EQ(one.learned.toml.find("writable_roots"), std::string::npos) << one.learned.toml;
    EXPECT_NE(one.learned.toml.find("# Not granted, for what is planted there"), std::string::npos) << one.learned.toml;
    EXPECT_NE(one.learned.toml.find(std::string("# write ") + path), std::string::npos) << one.learned.toml;
  }
  const Lesson file = lesson({written("/w/.mcp.json")});
  EXPECT_NE(access_of(file.effective, "/w/.mcp.json"), "write");
  EXPECT_NE(file.learned.toml.find("# write /w/.mcp.json; --write /w/.mcp.json would permit it"), std::string::npos)
      << file.learned.toml;
  // The twins: names beside them, and one that the policy in force opens by its name.
  EXPECT_EQ(access_of(lesson({made("/w/.github/workflows/x.yml")}).effective, "/w/.github/workflows/y.yml"), "write");
  const Lesson opened = lesson({made("/w/.vscode/tasks.json")}, "writable_roots = [\"/w/.vscode\"]");
  EXPECT_EQ(access_of(opened.effective, "/w/.vscode/x"), "write");
  const Lesson bare = lesson({made("/w/.vscode/tasks.json")}, "filesystem.protect = \"none\"");
  EXPECT_EQ(access_of(bare.effective, "/w/.vscode/x"), "write");
}

TEST(Learn, WhatFailedOpensNothing) {
  Touched lost = made("/w/none/x");
  lost.lost = true;
  LearnInput input;
  Violation refused;
  refused.operation = "create";
  refused.target = "/w/.git/hooks/pre-commit";
  refused.rule = "filesystem.protect";
  input.result.violations = {refused};
  const Lesson one = lesson({lost, made("/w/.git/hooks/pre-commit"), made("/w/out/x")}, "", input);
  EXPECT_NE(access_of(one.effective, "/w/none/x"), "write");
  EXPECT_NE(access_of(one.effective, "/w/.git/hooks/x"), "write");
  EXPECT_EQ(access_of(one.effective, "/w/out/y"), "write") << "the twin";
}

TEST(Learn, PrivateDirectoriesAndKernelFilesNeedNoGrant) {
  const Lesson one = lesson({made("/tmp/x"), made("/dev/shm/y"), read("/proc/self/maps"), written("/dev/null")});
  EXPECT_EQ(one.learned.toml.find("writable_roots"), std::string::npos) << one.learned.toml;
  EXPECT_EQ(one.learned.toml.find("Refused"), std::string::npos) << one.learned.toml;
}

TEST(Learn, CachesAndALostRecordLeaveReadsWide) {
  EXPECT_EQ(access_of(lesson({read("/home/u/.cache/pip/x")}).effective, "/srv/x"), "read");
  EXPECT_EQ(access_of(lesson({read("/etc/passwd")}, "", {.complete = false}).effective, "/srv/x"), "read");
}

TEST(Learn, LimitsHaveRoomAndNeverExceedThoseInForce) {
  LearnInput input;
  input.tasks = 40;
  input.result.duration = std::chrono::seconds(30);
  input.result.usage.peak_memory = Bytes{300ULL << 20};
  const Lesson wide = lesson({}, "", input);
  EXPECT_EQ(*wide.effective->policy.limits.timeout, std::chrono::seconds(300));
  EXPECT_EQ(wide.effective->policy.limits.memory->count, 640ULL << 20);
  EXPECT_EQ(*wide.effective->policy.limits.pids, 160U);
  const Lesson tight = lesson({}, "[limits]\ntimeout = \"20s\"\nmemory = \"100MiB\"\npids = 7", input);
  EXPECT_EQ(*tight.effective->policy.limits.timeout, std::chrono::seconds(20));
  EXPECT_EQ(tight.effective->policy.limits.memory->count, 100ULL << 20);
  EXPECT_EQ(*tight.effective->policy.limits.pids, 7U);
}

TEST(Learn, TheNetworkIsOpenedOnlyWhereItWasOpenAndUsed) {
  LearnInput reached;
  reached.reached = {"192.0.2.1:443"};
  EXPECT_EQ(lesson({}, "", reached).effective->policy.network.mode, NetMode::kNone);
  const Lesson host = lesson({}, "[network]\nmode = \"host\"", reached);
  EXPECT_EQ(host.effective->policy.network.mode, NetMode::kHost);
  EXPECT_NE(host.learned.toml.find("# RISK network.mode host"), std::string::npos);
  EXPECT_EQ(lesson({}, "[network]\nmode = \"host\"").effective->policy.network.mode, NetMode::kNone);
}

EgressRecord went(const char* host, std::uint16_t port, const char* rule, const char* address = "93.184.0.80",
                  bool allowed = true) {
  EgressRecord record;
  record.protocol = "http";
  record.host = host;
  record.port = port;
  record.address = address;
  record.rule = rule;
  record.allowed = allowed;
  return record;
}

TEST(Learn, OfTheProxyTheHostsThatWereReachedAreGranted) {
  LearnInput input;
  input.reached = {"198.19.0.1:80", "127.0.0.1:3128"};
  input.result.egress = {went("web.test", 8081, "**.test"), went("api.test", 443, "GET api.test/docs"),
                         went("inside.test", 80, "**.test", "10.1.2.3"), went("other.test", 80, "", "", false)};
  const char* const user =
      "[network]\nmode = \"proxy\"\nallowed_domains = [\"**.test\", \"10.0.0.0/8\"]\ndenied_domains = [\"bad.test\"]\n"
      "allowed_requests = [\"GET api.test/docs\", \"* more.test\"]\nmethods = \"limited\"\n"
      "credentials = [\"KEY for api.test\", \"OTHER for unused.test\"]";
  const Lesson one = lesson({}, user, input);
  const Network& network = one.effective->policy.network;
  EXPECT_EQ(network.mode, NetMode::kProxy);
  EXPECT_EQ(network.allowed_domains, (std::vector<std::string>{"10.1.2.3:80", "inside.test:80", "web.test:8081"}));
  EXPECT_EQ(network.allowed_requests, std::vector<std::string>{"GET api.test/docs"}) << "a rule for requests is not widened";
  EXPECT_EQ(network.credentials, std::vector<std::string>{"KEY for api.test"});
  EXPECT_EQ(network.denied_domains, std::vector<std::string>{"bad.test"});
  EXPECT_EQ(network.methods, NetMethods::kLimited);
  EXPECT_EQ(one.learned.toml.find("198.19."), std::string::npos) << one.learned.toml;
  EXPECT_EQ(one.learned.toml.find("--net host"), std::string::npos) << one.learned.toml;
  EXPECT_NE(one.learned.toml.find("# RISK network.allowed_domains"), std::string::npos) << one.learned.toml;
  input.result.egress.erase(input.result.egress.begin(), input.result.egress.begin() + 3);
  EXPECT_EQ(lesson({}, user, input).effective->policy.network.mode, NetMode::kNone) << "what was refused is not granted";
}

// Names are the command's to choose: they must not become lines of the policy.
TEST(Learn, HostileNamesBecomeNoGrant) {
  for (const std::string name : {"/srv/x\n[network]\nmode = \"host\"", "/srv/\xff\xfe",
                                 "/srv/a\"]\nmode = \"danger-full-access\"\n#", "/srv/\x1b[2J", "/srv/\r\nx", "/srv/'''"}) {
    const Lesson one = lesson({read(name), made(name), read("/home/u/.ssh/" + name.substr(5))}, "writable_roots = [\"/srv\"]");
    ASSERT_TRUE(one.effective);
    EXPECT_EQ(one.effective->policy.network.mode, NetMode::kNone);
    EXPECT_EQ(one.effective->policy.mode, Mode::kReadOnly);
    EXPECT_EQ(one.learned.toml.find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace belljar::policy
