// From a policy to what the engine is asked for, on a host of literal paths.
#include "backend/container/spec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../paths/fake_host.h"
#include "backend/backend.h"
#include "backend/container/report.h"
#include "backend/container/shown_dir.h"
#include "belljar/container.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/units.h"
#include "launch/plan.h"
#include "support/temp_dir.h"

namespace belljar::backend::container {
namespace {

const InstalledFiles kInstalled{"/state/inside", "/state/closed", "/state/closed.d", "/state/resolv.conf", "/state"};

struct Case {
  test::FakeHost host;
  Policy policy;
  ContainerOptions options;
  Workplace place{.workspace = "/home/me/project", .home = "/home/me"};
  bool rootless = false;

  Case() { host.dir("/home/me/project").dir("/tmp", 0, 01777).dir("/opt/data"); }
  Result<ContainerPlan> plan() const { return plan_container(host, policy, place, options, kInstalled, rootless); }
};

std::string bind_at(const ContainerPlan& planned, const std::string& target) {
  for (const Bind& bind : planned.spec.binds) {
    if (bind.target == target) return bind.source + (bind.readonly ? " ro" : " rw");
  }
  return "none";
}

EnforcementClause clause(const ContainerPlan& planned, const std::string& name) {
  const auto found = std::ranges::find(planned.report, name, &EnforcementClause::clause);
  return found == planned.report.end() ? EnforcementClause{} : *found;
}

std::string enforced(const ContainerPlan& planned, const std::string& name) {
  const EnforcementClause found = clause(planned, name);
  return found.clause.empty() ? "absent" : std::string(to_string(found.enforced));
}

TEST(ContainerSpec, OnlyTheWorkspaceIsThere) {
  const Case given;
  const auto planned = given.plan();
  ASSERT_TRUE(planned) << planned.error().line();
  EXPECT_EQ(planned->spec.binds,
            (std::vector<Bind>{{"/state/inside", "/.belljar/inside", true}, {"/home/me/project", "/home/me/project", false}}));
  EXPECT_EQ(planned->spec.network, "none");
  EXPECT_EQ(planned->spec.user, "1000:1000");
  EXPECT_TRUE(planned->spec.readonly_root);
  EXPECT_EQ(planned->spec.entrypoint, std::vector<std::string>{"/.belljar/inside"});
  EXPECT_EQ(enforced(*planned, "network"), "full");
}

TEST(ContainerSpec, TheWorkspaceMayHaveAnotherPathInside) {
  Case given;
  given.options.workspace_at = "/workspace";
  given.host.dir("/home/me/project/.vscode");
  const auto planned = given.plan();
  ASSERT_TRUE(planned) << planned.error().line();
  EXPECT_EQ(bind_at(*planned, "/workspace"), "/home/me/project rw");
  EXPECT_EQ(bind_at(*planned, "/workspace/.vscode"), "/home/me/project/.vscode ro");
  EXPECT_EQ(planned->spec.workdir, "/workspace");
  for (const std::string bad :
       {"/", "workspace", "/a/../b", "/.belljar", "/.belljar/x", "/etc", "/bin", "/proc/x", "/dev", "/tmp"}) {
    given.options.workspace_at = bad;
    EXPECT_EQ(given.plan().error().code(), Code::kInvalidArgument) << bad;
  }
}

// Whoever may use it is as good as root: it stays with us, by whatever directory it would come along.
TEST(ContainerSpec, NoBindShowsTheEnginesSocket) {
  Case given;
  given.host.file("/srv/engine/e.sock").dir("/srv/other").link("/srv/alias", "/srv/engine").file("/home/me/project/run/own.sock");
  given.host.file("/run/docker.sock");
  const auto closed = [&](std::vector<FsEntry> entries, const std::vector<std::string>& privileged_paths = {"/srv/alias/e.sock"}) {
    given.policy.filesystem.entries = std::move(entries);
    const auto planned = given.plan();
    EXPECT_TRUE(planned) << planned.error().line();
    return check_privileged_paths_hidden(given.host, planned->spec.binds, privileged_paths);
  };
  for (const char* shown : {"/srv/engine", "/srv/alias", "/srv", "/srv/engine/e.sock"}) {
    const auto refused = closed({{.path = shown, .access = Access::kRead}});
    ASSERT_FALSE(refused) << shown;
    EXPECT_EQ(refused.error().code(), Code::kPermissionDenied);
    EXPECT_NE(refused.error().line().find("`/srv/engine/e.sock` is there"), std::string::npos) << refused.error().line();
  }
  EXPECT_FALSE(closed({}, {"/home/me/project/run/own.sock"})) << "in the workspace";
  EXPECT_FALSE(closed({{.path = "/run/docker.sock", .access = Access::kRead}}, {"/run/docker.sock"}));
  EXPECT_TRUE(closed({{.path = "/run", .access = Access::kRead}}, {"/run/docker.sock"})) << "covered as it is";
  EXPECT_TRUE(closed({{.path = "/srv/other", .access = Access::kRead}})) << "the twin";
  EXPECT_TRUE(closed({{.path = "/srv", .access = Access::kRead}, {.path = "/srv/engine/e.sock", .access = Access::kNone}}))
      << "hidden";
  EXPECT_TRUE(closed({{.path = "/srv", .access = Access::kRead}}, {"/srv/none.sock"}));
}

TEST(ContainerSpec, ReadOnlyModeHasNoWritableBind) {
  Case given;
  given.policy.mode = Mode::kReadOnly;
  const auto planned = given.plan();
  ASSERT_TRUE(planned) << planned.error().line();
  EXPECT_EQ(bind_at(*planned, "/home/me/project"), "/home/me/project ro");
}

TEST(ContainerSpec, ProtectedNamesAreReadOnlyAndWhatIsNotHeldReadsNone) {
  Case given;
  given.host.dir("/home/me/project/.git").dir("/home/me/project/.vscode");
  const auto planned = given.plan();
  ASSERT_TRUE(planned);
  EXPECT_EQ(bind_at(*planned, "/home/me/project/.git"), "/home/me/project/.git ro");
  EXPECT_EQ(bind_at(*planned, "/home/me/project/.vscode"), "/home/me/project/.vscode ro");
  EXPECT_EQ(enforced(*planned, "protect.existing"), "partial");
  EXPECT_EQ(enforced(*planned, "protect.absent"), "none");
  EXPECT_EQ(planned->held, (std::vector<std::string>{"/home/me/project/.git", "/home/me/project/.vscode"}));
  given.policy.filesystem.protect = Protect::kNone;
  EXPECT_EQ(bind_at(*given.plan(), "/home/me/project/.git"), "none");
}

TEST(ContainerSpec, HiddenAndReadOnlyPathsAreCovered) {
  Case given;
  given.host.dir("/home/me/project/a/secret").file("/home/me/project/.env").dir("/home/me/project/lib");
  given.policy.filesystem.entries = {{.path = "/home/me/project/a/secret", .access = Access::kNone},
                                     {.path = "/home/me/project/.env", .access = Access::kNone},
                                     {.path = "/home/me/project/lib", .access = Access::kRead},
                                     {.path = "/opt/data", .access = Access::kRead}};
  const auto planned = given.plan();
  ASSERT_TRUE(planned) << planned.error().line();
  EXPECT_EQ(bind_at(*planned, "/home/me/project/a/secret"), "/state/closed.d ro");
  EXPECT_EQ(bind_at(*planned, "/home/me/project/.env"), "/state/closed ro");
  EXPECT_EQ(bind_at(*planned, "/home/me/project/lib"), "/home/me/project/lib ro");
  EXPECT_EQ(bind_at(*planned, "/opt/data"), "/opt/data ro");
}

// Of a name that the policy spells out that is said by a clause of its own; the built-in list is a best effort.
TEST(ContainerSpec, AHiddenNameThatDoesNotExistReadsNone) {
  Case given;
  given.host.link("/home/me/project/way", "/home/me/project/later");
  given.policy.filesystem.entries = {{.path = "/home/me/project/way", .access = Access::kNone}};
  const auto planned = given.plan();
  ASSERT_TRUE(planned) << planned.error().line();
  EXPECT_EQ(enforced(*planned, "filesystem.hidden_absent"), "none");
  EXPECT_EQ(clause(*planned, "filesystem.hidden_absent").asked, "/home/me/project/way hidden once it exists");
  EXPECT_NE(clause(*planned, "filesystem.secrets").detail.find("/way is a link in a writable directory"), std::string::npos);
  given.host.dir("/home/me/project/later");
  EXPECT_EQ(enforced(*given.plan(), "filesystem.hidden_absent"), "absent") << "the twin: there is something to cover";
  given.host.dir("/home/me");
  given.policy.filesystem.entries = {{.path = "/home/me", .access = Access::kWrite}};
  const auto home = given.plan();
  ASSERT_TRUE(home) << home.error().line();
  EXPECT_EQ(enforced(*home, "filesystem.hidden_absent"), "absent");
  EXPECT_EQ(enforced(*home, "filesystem.secrets"), "partial");
  EXPECT_NE(clause(*home, "filesystem.secrets").detail.find("does not exist yet: what is made there can be seen"),
            std::string::npos);
}

TEST(ContainerSpec, APatternReadsNone) {
  Case given;
  given.policy.filesystem.entries = {{.path = "**/.env", .glob = true, .access = Access::kNone}};
  EXPECT_EQ(enforced(*given.plan(), "filesystem.globs"), "none");
}

TEST(ContainerSpec, VolumesAndTmpAreMounted) {
  Case given;
  given.policy.filesystem.volumes = {{.source = "/opt/data", .target = "/data", .readonly = true}};
  given.policy.filesystem.tmp_size = 1_MiB;
  const auto planned = given.plan();
  ASSERT_TRUE(planned);
  EXPECT_EQ(bind_at(*planned, "/data"), "/opt/data ro");
  Case writable = given;
  writable.policy.filesystem.volumes[0].readonly = false;
  const auto held = writable.plan();
  ASSERT_TRUE(held);
  EXPECT_EQ(std::ranges::find(held->report, "filesystem.write", &EnforcementClause::clause)->enforced, Enforced::kFull);
  ASSERT_FALSE(planned->spec.tmpfs.empty());
  EXPECT_EQ(planned->spec.tmpfs[0].first, "/tmp");
  EXPECT_NE(planned->spec.tmpfs[0].second.find("size=1048576"), std::string::npos);
  // Or the engine has one of its own there, as large as half of the memory.
  const auto run = [&] {
    const auto spec = given.plan()->spec;
    const auto found = std::ranges::find(spec.tmpfs, "/run", &std::pair<std::string, std::string>::first);
    return found == spec.tmpfs.end() ? "none" : found->second;
  };
  EXPECT_EQ(run(), planned->spec.tmpfs[0].second);
  given.options.tmpfs = {{"/run", "size=1m"}};
  EXPECT_EQ(run(), "size=1m");
  given.options.tmpfs.clear();
  given.options.root = ContainerRoot::kWritable;
  EXPECT_EQ(run(), "none");
}

// What would be lost, or left behind in the workspace.
TEST(ContainerSpec, NothingIsMountedOverTheWorkspaceOrWhereItWouldHaveToBeMade) {
  Case given;
  const auto at = [&](const std::string& path) {
    given.options.tmpfs = {{path, ""}};
    const auto planned = given.plan();
    return planned ? std::string("fine") : planned.error().reason();
  };
  EXPECT_EQ(at("/scratch"), "fine");
  EXPECT_EQ(at("/home/me/project"), "the workspace is shown there, and what is written would be lost");
  EXPECT_NE(at("/home/me/project/sub").find("no such directory in the workspace"), std::string::npos);
  EXPECT_NE(at("/etc").find("as it is"), std::string::npos);
  given.host.dir("/home/me/project/sub");
  EXPECT_EQ(at("/home/me/project/sub"), "fine");
}

TEST(ContainerSpec, TheImagesVolumesArePrivateBelowAReadOnlyRoot) {
  Case given;
  given.options.tmpfs = {{"/scratch", ""}};
  Spec spec = given.plan()->spec;
  const std::size_t before = spec.tmpfs.size();
  hold_volumes(spec, {"/data/", "/scratch"}, Bytes{1000});
  ASSERT_EQ(spec.tmpfs.size(), before + 1);
  EXPECT_EQ(spec.tmpfs.back(), std::pair(std::string("/data"), std::string("rw,exec,nosuid,nodev,size=1000,mode=1777")));
  given.options.root = ContainerRoot::kWritable;
  Spec writable = given.plan()->spec;
  const std::size_t then = writable.tmpfs.size();
  hold_volumes(writable, {"/data"}, Bytes{1000});
  EXPECT_EQ(writable.tmpfs.size(), then) << "the twin";
}

TEST(ContainerSpec, LimitsAreTheEnginesOrPid1s) {
  Case given;
  given.policy.limits.memory = 64_MiB;
  given.policy.limits.cpus = 1.5;
  given.policy.limits.pids = 99;
  given.policy.limits.output_bytes = Bytes{77};
  given.policy.limits.open_files = 50;
  auto planned = given.plan();
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->spec.memory, 64U << 20);
  EXPECT_EQ(planned->spec.cpus, 1.5);
  EXPECT_EQ(planned->spec.pids, 100U) << "pid 1 is none of the command's";
  EXPECT_EQ(planned->spec.entrypoint, (std::vector<std::string>{"/.belljar/inside", "--open-files", "50"}));
  report_limits(given.policy, true, true, false, planned->report);
  EXPECT_EQ(enforced(*planned, "limits.memory"), "full");
  EXPECT_EQ(enforced(*planned, "limits.pids"), "none");
}

TEST(ContainerSpec, WhatIsNotServedIsRefusedByName) {
  const auto refusal = [](auto change) {
    Case given;
    change(given);
    const auto planned = given.plan();
    return planned ? std::string("served") : std::string(to_string(planned.error().code())) + ": " + planned.error().what();
  };
  EXPECT_EQ(refusal([](Case&) {}), "served");
  EXPECT_EQ(refusal([](Case& given) { given.policy.network.mode = NetMode::kProxy; }), "served");
  EXPECT_EQ(refusal([](Case& given) {
              given.policy.network.mode = NetMode::kProxy;
              given.policy.network.allow_local_binding = false;
            }),
            "unimplemented: the container backend does not serve network.allow_local_binding = false");
  EXPECT_EQ(refusal([](Case& given) { given.policy.network.allow_unix_sockets = {"/run/x"}; }),
            "unimplemented: the container backend does not serve network.allow_unix_sockets");
  EXPECT_EQ(refusal([](Case& given) { given.policy.mode = Mode::kDangerFullAccess; }),
            "unimplemented: the container backend does not serve mode = \"danger-full-access\"");
  EXPECT_EQ(refusal([](Case& given) { given.options.image = "../../containers/x/json?"; }),
            "invalid_argument: `../../containers/x/json?` is no name of an image");
  EXPECT_EQ(ContainerOptions{}.image, "node:20-slim") << "the default, which is one";
  EXPECT_EQ(refusal([](Case& given) { given.options.user = "nobody"; }), "invalid_argument: cannot run as `nobody` in a container");
  EXPECT_EQ(refusal([](Case& given) { given.options.user = "0"; }),
            "failed_precondition: the command would be uid 0 of this machine");
  EXPECT_EQ(refusal([](Case& given) { given.options.user = "1000:0"; }),
            "failed_precondition: the command would be gid 0 of this machine");
  EXPECT_EQ(refusal([](Case& given) { given.options.user = "1000:100"; }), "served");
  EXPECT_EQ(refusal([](Case& given) { given.policy.limits.pids = 4'294'967'297; }),
            "invalid_argument: limits.pids = 4294967297 cannot be enforced");
  EXPECT_EQ(refusal([](Case& given) { given.options.capabilities = {"NET_ADMIN"}; }),
            "unimplemented: the container backend does not serve --cap-add for a command that is not root");
  EXPECT_EQ(refusal([](Case& given) {
              given.options.capabilities = {"NET_ADMIN"};
              given.rootless = true;
            }),
            "served");
  EXPECT_EQ(refusal([](Case& given) {
              given.options.user = "0";
              given.policy.allow_root_uid = true;
            }),
            "served");
}

TEST(ContainerSpec, TheProxysSocketsAreMadeInsideAndNothingElseLeadsOut) {
  using Purpose = launch::InnerSocket::Purpose;
  Case given;
  given.policy.network.mode = NetMode::kProxy;
  given.policy.network.allowed_domains = {"api.test:8443", "web.test:8080"};
  given.policy.network.host_ports = {{.host = 5432, .inside = 8080}};
  given.options.network = "bridge";
  const auto planned = given.plan();
  ASSERT_TRUE(planned) << planned.error().line();
  EXPECT_EQ(planned->spec.network, "none");
  EXPECT_EQ(clause(*planned, "network").asked, "no route out but the proxy");
  EXPECT_EQ(bind_at(*planned, "/etc/resolv.conf"), "/state/resolv.conf ro");
  std::vector<std::uint16_t> caught;
  for (const launch::InnerSocket& socket : planned->spec.sockets) {
    if (socket.purpose == Purpose::kDirect) caught.push_back(socket.port);
    EXPECT_FALSE(socket.transparent) << "that needs a capability";
  }
  EXPECT_EQ(caught, (std::vector<std::uint16_t>{80, 443, 8443})) << "8080 is joined";
  given.policy.network.publish = {{.host = 18443, .inside = 8443}};
  const auto published = given.plan();
  EXPECT_TRUE(std::ranges::none_of(published->spec.sockets, [](const launch::InnerSocket& socket) {
    return socket.purpose == Purpose::kDirect && socket.port == 8443;
  })) << "it is a server's inside";
  given.policy.network.transparent = false;
  EXPECT_EQ(bind_at(*given.plan(), "/etc/resolv.conf"), "none") << "the twin";
  given.policy.network = {.mode = NetMode::kHost};
  EXPECT_TRUE(given.plan()->spec.sockets.empty());
  EXPECT_EQ(given.plan()->spec.network, "bridge");
}

TEST(ContainerSpec, SocketsStayWithTheirKernel) {
  Spec spec;
  EXPECT_TRUE(check_passing(spec, Isolation::kVm, false, "tcp://x")) << "none are asked for";
  spec.sockets = {{.port = 3128}};
  EXPECT_TRUE(check_passing(spec, Isolation::kContainer, true, "unix:///x"));
  EXPECT_NE(check_passing(spec, Isolation::kVm, true, "unix:///x").error().reason().find("a kernel of its own"), std::string::npos);
  EXPECT_EQ(check_passing(spec, Isolation::kContainer, false, "tcp://x:1").error().reason(),
            "the engine at `tcp://x:1` is on another machine, and sockets stay on theirs");
}

TEST(ContainerSpec, WhatCannotBeCaughtIsInTheReport) {
  EnforcementReport report = {{"network.transparent", "all", "nf_tables", Enforced::kFull, ""}};
  lower_transparent(report, 0);
  EXPECT_EQ(report[0].enforced, Enforced::kPartial);
  lower_transparent(report, EACCES);
  EXPECT_EQ(report[0].enforced, Enforced::kNone);
  EXPECT_TRUE(report[0].best_effort);
}

TEST(ContainerSpec, FilesAreShownWhateverTheImageHas) {
  const belljar::test::TempDir state;
  const auto dir = ShownDir::create(state.path());
  ASSERT_TRUE(dir);
  Spec spec;
  spec.binds = {{"/x", "/etc/b", true}};
  ASSERT_TRUE(show_files({{{"/etc/a", "/etc/b"}, "one"}, {{"/dev/c"}, "two"}}, *dir, spec));
  ASSERT_EQ(spec.binds.size(), 3U);
  EXPECT_EQ(spec.binds[0].source, spec.binds[1].source) << "the same content is there once";
  EXPECT_NE(spec.binds[0].source, spec.binds[2].source);
  for (const Bind& bind : spec.binds) EXPECT_TRUE(bind.readonly);
}

// Or a read-only bind would leave it as writable as it is there.
TEST(ContainerSpec, WhatIsMountedBelowAReadOnlyBindHasABindOfItsOwn) {
  Case given;
  given.host.mounted("/opt/data/sub").mounted("/opt/data/sub/deep").mounted("/opt/data/open/mnt").mounted("/opt/data/closed/mnt");
  given.host.mounted("/home/me/project/.git/mnt").mounted("/home/me/project/mnt").dir("/opt/data/open").dir("/opt/data/closed");
  given.policy.filesystem.entries = {{.path = "/opt/data", .access = Access::kRead},
                                     {.path = "/opt/data/open", .access = Access::kWrite},
                                     {.path = "/opt/data/closed", .access = Access::kNone}};
  given.host.mounted("/opt/volume/sub").mounted("/opt/volume/sub/deep");
  given.policy.filesystem.volumes = {{.source = "/opt/volume", .target = "/data", .readonly = true}};
  const auto planned = given.plan();
  ASSERT_TRUE(planned) << planned.error().line();
  EXPECT_EQ(bind_at(*planned, "/opt/data/sub"), "/opt/data/sub ro");
  EXPECT_EQ(bind_at(*planned, "/opt/data/sub/deep"), "/opt/data/sub/deep ro");
  EXPECT_EQ(bind_at(*planned, "/data/sub/deep"), "/opt/volume/sub/deep ro");
  EXPECT_EQ(bind_at(*planned, "/home/me/project/.git/mnt"), "/home/me/project/.git/mnt ro");
  EXPECT_EQ(bind_at(*planned, "/opt/data/closed/mnt"), "none") << "it would show what is hidden";
  EXPECT_EQ(bind_at(*planned, "/opt/data/open/mnt"), "none") << "the twin: it comes with a writable bind";
  EXPECT_EQ(bind_at(*planned, "/home/me/project/mnt"), "none") << "the twin";
  EXPECT_FALSE(std::ranges::any_of(planned->spec.binds, &Bind::with_mounts));
  given.rootless = true;
  const auto rootless = given.plan();
  ASSERT_TRUE(rootless);
  EXPECT_TRUE(std::ranges::find(rootless->spec.binds, "/opt/data", &Bind::target)->with_mounts);
}

TEST(ContainerSpec, KernelFileSystemsOfTheHostAreNotShown) {
  Case given;
  given.host.dir("/dev")
      .dir("/dev/shm")
      .dir("/dev/pts")
      .dir("/proc")
      .dir("/sys/kernel")
      .dir("/opt/alias")
      .link("/opt/link", "/dev");
  const auto reading = [&](const std::string& path) {
    given.policy.filesystem.entries = {{.path = path, .access = Access::kRead}};
    const auto planned = given.plan();
    return planned ? std::string("shown") : planned.error().what();
  };
  EXPECT_EQ(reading("/dev"), "cannot show `/dev` in a container");
  EXPECT_EQ(reading("/dev/pts"), "cannot show `/dev/pts` in a container");
  EXPECT_EQ(reading("/proc"), "cannot show `/proc` in a container");
  EXPECT_EQ(reading("/sys/kernel"), "cannot show `/sys/kernel` in a container");
  EXPECT_EQ(reading("/opt/link"), "cannot show `/dev` in a container");
  EXPECT_EQ(reading("/opt/data"), "shown") << "the twin";
  given.policy.filesystem.entries.clear();
  given.policy.filesystem.volumes = {{.source = "/proc", .target = "/data", .readonly = true}};
  EXPECT_EQ(given.plan().error().what(), "cannot show `/proc` in a container");
}

TEST(ContainerSpec, NoMoreThanTheEngineHas) {
  Case given;
  given.policy.limits.cpus = 64;
  Spec spec = given.plan()->spec;
  fit_engine(spec, 2, true);
  EXPECT_EQ(spec.cpus, 2.0);
  EXPECT_TRUE(spec.host_ids);
  fit_engine(spec, 4, false);
  EXPECT_EQ(spec.cpus, 2.0);
  EXPECT_FALSE(spec.host_ids);
}

TEST(ContainerSpec, WhatAnEngineSaysOfItselfIsInTheReport) {
  Case given;
  auto planned = given.plan();
  report_engine(false, true, planned->report);
  EXPECT_EQ(enforced(*planned, "seccomp"), "full");
  EXPECT_NE(clause(*planned, "seccomp").mechanism.find("on top of the engine's default profile"), std::string::npos);
  planned = given.plan();
  report_engine(true, false, planned->report);
  EXPECT_EQ(enforced(*planned, "seccomp"), "full") << "our own filter is";
  EXPECT_EQ(clause(*planned, "seccomp").mechanism.find("on top"), std::string::npos);
  EXPECT_NE(clause(*planned, "identity").mechanism.find("mapping of ids is off"), std::string::npos);
}

// The policy's filter would refuse what they are for.
TEST(ContainerSpec, CapabilitiesLeaveTheEnginesProfileAlone) {
  Case given;
  given.policy.allow_root_uid = true;
  given.options.user = "0:0";
  given.options.capabilities = {"CHOWN"};
  auto planned = given.plan();
  ASSERT_TRUE(planned) << planned.error().line();
  EXPECT_TRUE(planned->spec.filter.empty());
  EXPECT_EQ(enforced(*planned, "seccomp"), "partial");
  EXPECT_EQ(enforced(*planned, "keyring"), "partial");
  report_engine(true, false, planned->report);
  EXPECT_EQ(enforced(*planned, "seccomp"), "none");
  EXPECT_EQ(enforced(*planned, "keyring"), "none");
  given.options.capabilities.clear();
  planned = given.plan();
  EXPECT_FALSE(planned->spec.filter.empty()) << "the twin";
  EXPECT_EQ(enforced(*planned, "keyring"), "full");
  EXPECT_EQ(enforced(*planned, "terminal"), "full");
}

// Nothing but the workspace is shown, so nobody else's is.
TEST(ContainerSpec, SiblingsAreNotThere) {
  Case given;
  given.host.dir("/opt/data/b");
  EXPECT_EQ(enforced(*given.plan(), "filesystem.siblings"), "absent");
  given.place.siblings = SiblingWorkspaces{.hidden = {"/opt/data/b"}};
  auto planned = given.plan();
  EXPECT_EQ(enforced(*planned, "filesystem.siblings"), "full");
  lower_root({"/mnt"}, planned->report);
  EXPECT_EQ(enforced(*planned, "filesystem.siblings"), "partial");
  given.policy.filesystem.entries.push_back({.path = "/opt/data", .access = Access::kRead});
  planned = given.plan();
  EXPECT_EQ(enforced(*planned, "filesystem.siblings"), "partial") << "a later one may lie there";
  EXPECT_EQ(bind_at(*planned, "/opt/data/b"), "/state/closed.d ro");
  given.place.siblings.reset();
  EXPECT_EQ(bind_at(*given.plan(), "/opt/data/b"), "none") << "the twin";
}

// No clause is a constant: each that can read `full` has something that lowers it.
TEST(ContainerSpec, EveryFullClauseCanBeLess) {
  Case given;
  const auto planned = given.plan();
  ASSERT_TRUE(planned) << planned.error().line();
  const auto after = [&](const std::function<void(EnforcementReport&)>& change) {
    ContainerPlan other{.spec = planned->spec, .report = planned->report};
    change(other.report);
    return other;
  };
  const auto status = [&](const InsideStatus& told) {
    return after([&](EnforcementReport& report) { lower_status(told, planned->spec, report); });
  };
  const auto asked_for = [&](const std::function<void(Spec&)>& change) {
    Spec spec = planned->spec;
    change(spec);
    PathPlan paths;
    paths.writable = {"/home/me/project"};
    paths.view.private_dirs.push_back({.target = "/tmp"});
    return ContainerPlan{.spec = spec,
                         .report = report_container(given.policy, given.options, paths, {1000, 1000, 1000, 1000}, false, spec)};
  };
  const InsideStatus right{.pid = 1, .uid = 1000, .gid = 1000, .no_new_privs = 1, .capabilities = 0, .own_terminals = true};
  EXPECT_EQ(status(right).report, planned->report);
  EXPECT_EQ(status({}).report, planned->report) << "a kernel of its own need not say";
  const std::multimap<std::string, ContainerPlan> less = [&] {
    std::multimap<std::string, ContainerPlan> all;
    const auto add = [&](const char* name, ContainerPlan other) { all.emplace(name, std::move(other)); };
    InsideStatus told = right;
    told.pid = 7;
    add("processes", status(told));
    add("kill", status(told));
    told = right;
    told.capabilities = 0x400;
    add("privileges", status(told));
    told = right;
    told.no_new_privs = 0;
    add("privileges", status(told));
    told = right;
    told.uid = 0;
    add("identity", status(told));
    told = right;
    told.own_terminals = false;
    add("terminal", status(told));
    add("kill", after([](EnforcementReport& report) { report_unheld(report); }));
    add("filesystem.root", after([](EnforcementReport& report) { lower_root({"/srv"}, report); }));
    for (const char* name : {"seccomp", "keyring", "mode"})
      add(name, after([](EnforcementReport& report) { lower_filter(report); }));
    add("filesystem.write", asked_for([](Spec& spec) { spec.binds.clear(); }));
    add("filesystem.tmp", asked_for([](Spec& spec) { spec.tmpfs.clear(); }));
    add("filesystem.tmp", after([](EnforcementReport& report) { lower_tmp({"/run"}, report); }));
    add("network", asked_for([](Spec& spec) { spec.network = "bridge"; }));
    return all;
  }();
  for (const auto& [name, other] : less) {
    EXPECT_EQ(enforced(*planned, name), "full") << name;
    EXPECT_NE(enforced(other, name), "full") << name;
  }
  // What a hidden name in a writable directory makes of it: HiddenAndReadOnlyPathsAreCovered and its neighbours.
  for (const EnforcementClause& one : planned->report) {
    const bool provoked = one.enforced != Enforced::kFull || one.clause == "filesystem.secrets" || less.contains(one.clause);
    EXPECT_TRUE(provoked) << one.clause << " cannot be";
  }
}

TEST(ContainerSpec, AllUnixSocketsAreAnotherFilter) {
  Case given;
  const auto own = given.plan();
  given.policy.network.allow_all_unix_sockets = true;
  const auto all = given.plan();
  ASSERT_TRUE(all) << all.error().line();
  EXPECT_EQ(enforced(*all, "network.unix_sockets"), "full");
  const auto same = [](const sock_filter& a, const sock_filter& b) { return a.code == b.code && a.k == b.k && a.jt == b.jt; };
  EXPECT_FALSE(std::ranges::equal(own->spec.filter, all->spec.filter, same));
}

TEST(ContainerSpec, ANetworkThatWouldNotBeUsedIsRefused) {
  Case given;
  given.options.network = "mine";
  for (const NetMode mode : {NetMode::kNone, NetMode::kProxy}) {
    given.policy.network.mode = mode;
    const auto planned = given.plan();
    ASSERT_FALSE(planned);
    EXPECT_EQ(planned.error().what(), "the engine's network `mine` would not be used");
  }
  given.policy.network.mode = NetMode::kHost;
  EXPECT_EQ(given.plan()->spec.network, "mine");
}

TEST(ContainerSpec, SocketsGoByWhatIsSharedAndByTheNetwork) {
  Case given;
  given.policy.filesystem.entries = {{.path = "/opt/data", .access = Access::kRead}};
  EXPECT_EQ(clause(*given.plan(), "network.unix_sockets").detail,
            "sockets in what is shared can be connected to, read-only or not: /home/me/project, /opt/data");
  EXPECT_EQ(enforced(*given.plan(), "network.unix_sockets"), "partial") << "network none, the twin";
  given.options.network = "host";
  given.policy.network.mode = NetMode::kHost;
  EXPECT_EQ(enforced(*given.plan(), "network.unix_sockets"), "none");
  given.options.network = "container:abc";
  EXPECT_EQ(enforced(*given.plan(), "network.unix_sockets"), "none");
  given.options.network = "bridge";
  EXPECT_EQ(enforced(*given.plan(), "network.unix_sockets"), "partial");
}

// The kernel's own default is half of the memory.
TEST(ContainerSpec, ATmpfsHasASize) {
  const auto options_of = [](const std::string& given_options) {
    Case given;
    given.policy.filesystem.tmp_size = Bytes{4096};
    given.options.tmpfs = {{"/scratch", given_options}};
    return given.plan()->spec.tmpfs.back();
  };
  EXPECT_EQ(options_of(""), std::pair(std::string("/scratch"), std::string("size=4096")));
  EXPECT_EQ(options_of("mode=700,nosize=1").second, "mode=700,nosize=1,size=4096");
  EXPECT_EQ(options_of("mode=700,size=1m").second, "mode=700,size=1m") << "the twin";
}

TEST(ContainerSpec, ATmpfsOverTheOwnTmpIsSaid) {
  Case given;
  EXPECT_EQ(clause(*given.plan(), "filesystem.tmp").asked, "private, 1GiB each");
  given.options.tmpfs = {{"/tmp", "size=1m"}};
  EXPECT_EQ(clause(*given.plan(), "filesystem.tmp").asked, "private, 1GiB each; /tmp as --tmpfs says (size=1m)");
}

TEST(ContainerSpec, ARootlessEnginesZeroIsTheCaller) {
  Case given;
  given.rootless = true;
  const auto planned = given.plan();
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->spec.user, "0:0");
  EXPECT_EQ(planned->uid, 1000U);
}

TEST(ContainerSpec, PlacesOfTheHostAreNotInTheEnvironment) {
  Environment environment;
  environment.inherit = Inherit::kAll;
  const std::vector<std::string> caller = {"PATH=/host/bin", "HOME=/home/me", "LANG=C.UTF-8", "XDG_RUNTIME_DIR=/run/user/1"};
  EXPECT_EQ(container_environment(environment, caller), std::vector<std::string>{"LANG=C.UTF-8"});
  environment.set["PATH"] = "/inside/bin";
  environment.pass = {"HOME"};
  EXPECT_EQ(container_environment(environment, caller),
            (std::vector<std::string>{"HOME=/home/me", "LANG=C.UTF-8", "PATH=/inside/bin"}));
}

}  // namespace
}  // namespace belljar::backend::container
