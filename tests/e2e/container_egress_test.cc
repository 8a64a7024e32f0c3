// `belljar run --backend container --net proxy` with a real engine, in a small internet with a name server of its own. The image
// holds busybox; curl is this machine's, shown to the container.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "support/as_user.h"
#include "support/built.h"
#include "support/engine.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"
#include "support/world.h"

namespace belljar::test {
namespace {

namespace fs = std::filesystem;

class ContainerEgress : public testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(World::missing());
    BELLJAR_NEEDS(program("curl"));
    BELLJAR_NEEDS(start_engine(engine_, GetParam()));
    world_.workspace.give_to(user_uid(), user_gid());
    world_.files.make_dir("files");
    pack_curl();
  }
  void TearDown() override {
    if (engine_ == nullptr) return;
    EXPECT_TRUE(engine_->containers().empty());
    EXPECT_EQ(left_behind(world_.state()), "") << "a door or files that were shown";
  }

  Outcome shell(const std::string& text, std::vector<std::string> more = {}) const {
    std::vector<std::string> args{"run",     "--backend",     "container", "--engine", engine_->address(),
                                  "--image", Engine::image(), "--pull",    "never"};
    args.insert(args.end(), {"--read", tools_.path()});
    more.insert(more.end(), {"-c", "curl() { " + curl_ + " \"$@\"; }; " + text});
    args.insert(args.end(), more.begin(), more.end());
    return world_.belljar(args);
  }
  Outcome proxied(const std::string& text, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--net", "proxy", "--allow-domain", "**.web.test", "--allow-domain", "api.test:8081"});
    return shell(text, std::move(more));
  }
  Outcome direct(const std::string& text, std::vector<std::string> more = {}) const {
    return proxied(kNoProxy + text, std::move(more));
  }
  // This machine's curl with its loader and libraries, for an image that has none of them.
  void pack_curl() {
    std::istringstream lines(run({"ldd", find_program("curl")}).out);
    std::string loader;
    for (std::string line; std::getline(lines, line);) {
      const std::size_t begin = line.find('/'), end = line.find(" (");
      if (begin == std::string::npos || end == std::string::npos) continue;
      const fs::path library = line.substr(begin, end - begin);
      fs::copy_file(library, tools_ / library.filename().native(), fs::copy_options::overwrite_existing);
      if (line.find("=>") == std::string::npos) loader = library.filename();
    }
    fs::copy_file(find_program("curl"), tools_ / "curl");
    curl_ = (tools_ / loader) + " --library-path " + tools_.path() + " " + (tools_ / "curl");
  }
  static std::string left_behind(const std::string& state) {
    std::string names;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(state + "/belljar/container", ignored)) {
      if (entry.path().filename().native().starts_with("shown-")) names += entry.path().filename().native() + " ";
    }
    return names;
  }

  std::unique_ptr<Engine> engine_;
  World world_;
  const TempDir tools_;
  std::string curl_;
};

TEST_P(ContainerEgress, ByTheVariablesWhatIsListedIsReached) {
  EXPECT_EQ(proxied("curl -sS -m 60 http://web.test/a").out, "GET /a host=web.test at=93.184.0.80 body=0\n");
  EXPECT_EQ(proxied("wget -q -O - http://web.test/b").out, "GET /b host=web.test at=93.184.0.80 body=0\n") << "busybox";
  EXPECT_EQ(proxied("curl -sS -m 60 -p http://web.test/c").out, "GET /c host=web.test at=93.184.0.80 body=0\n") << "CONNECT";
  EXPECT_EQ(proxied("curl -sS -m 60 -x socks5h://127.0.0.1:3128 http://web.test/d").out,
            "GET /d host=web.test at=93.184.0.80 body=0\n");
}

TEST_P(ContainerEgress, WhatIsNotListedIsAViolation) {
  const Outcome told = proxied("curl -sS -m 60 http://other.test/");
  EXPECT_NE(told.out.find("other.test:80 is not on the list of allowed hosts"), std::string::npos) << told;
  const Outcome refused = proxied("wget -q -O - http://other.test/", {"--json"});
  EXPECT_NE(refused.out.find(R"("rule":"network.allowed_domains")"), std::string::npos) << refused;
  EXPECT_NE(refused.out.find(R"("target":"other.test:80")"), std::string::npos) << refused;
  EXPECT_NE(refused.out.find(R"("program":"wget")"), std::string::npos) << "whose it was: " << refused;
  EXPECT_EQ(world_.asked().find("other.test"), std::string::npos) << "a refused name is not looked up";
  const Outcome allowed = proxied("wget -q -O - http://web.test/", {"--json"});
  EXPECT_NE(allowed.out.find(R"("violations":[])"), std::string::npos) << allowed;
  EXPECT_NE(allowed.out.find(R"("host":"web.test")"), std::string::npos) << "the record of the twin: " << allowed;
}

TEST_P(ContainerEgress, NothingGoesAroundTheProxy) {
  EXPECT_EQ(direct("ls /sys/class/net").out, "lo\n");
  EXPECT_EQ(direct("curl -sS -m 5 --noproxy '*' http://93.184.0.80/").exit_code, 7) << "an address that a listed name leads to";
  EXPECT_NE(direct("nc -w 3 93.184.0.80 7 </dev/null").exit_code, 0);
  EXPECT_NE(direct("nslookup web.test 93.184.0.53").exit_code, 0);
}

// Of the socket that the listeners came out by nothing is left, nor of anything that leads to it.
TEST_P(ContainerEgress, TheDoorIsGoneBeforeACommandRuns) {
  EXPECT_EQ(proxied("ls -A /.belljar /.belljar/door").out, "/.belljar:\ndoor\ninside\n\n/.belljar/door:\n");
  EXPECT_NE(proxied("echo x > /.belljar/door/socket").exit_code, 0);
  EXPECT_EQ(shell("ls /.belljar").out, "inside\n") << "without a network of ours there is none";
}

TEST_P(ContainerEgress, AProgramThatKnowsNoProxyIsServedByName) {
  EXPECT_EQ(direct("curl -sS -m 60 http://web.test/a").out, "GET /a host=web.test at=93.184.0.80 body=0\n");
  EXPECT_EQ(direct("wget -q -O - http://sub.web.test/").out, "GET / host=sub.web.test at=93.184.0.82 body=0\n");
  EXPECT_EQ(direct("curl -sS -m 60 http://api.test:8081/").out, "GET / host=api.test:8081 at=93.184.0.83 body=0\n");
  EXPECT_NE(direct("curl -sS -m 60 http://other.test/").err.find("Could not resolve host"), std::string::npos);
  EXPECT_NE(direct("curl -sS -m 60 http://api.test/").out.find("api.test:80 is not on the list"), std::string::npos) << "the port";
  EXPECT_EQ(direct("curl -sS -m 5 http://web.test:25/").exit_code, 7) << "a port that no rule names is not caught";
}

// On every address, as servers in containers do.
TEST_P(ContainerEgress, AServerOfTheCommandMayHaveAPortThatRulesName) {
  const std::string serve = "timeout 10 nc -l -p 8081 </dev/null 2>&1; echo done";
  EXPECT_NE(proxied(serve).out.find("in use"), std::string::npos);
  EXPECT_EQ(proxied(serve, {"--transparent=false"}).out.find("in use"), std::string::npos);
  EXPECT_EQ(proxied(serve, {"--publish", "38081:8081"}).out.find("in use"), std::string::npos);
  const Outcome told = proxied("true", {"--json"});
  EXPECT_NE(told.out.find("--publish the port, or --transparent=false"), std::string::npos) << told;
}

TEST_P(ContainerEgress, TheReportSaysWhatHolds) {
  const Outcome told = proxied("true", {"--json"});
  EXPECT_NE(told.out.find(R"({"clause":"network","asked":"no route out but the proxy")"), std::string::npos) << told;
  EXPECT_NE(
      told.out.find(R"("clause":"network.domains","asked":"2 rules allowed, 0 rules denied; public addresses only unless listed")"),
      std::string::npos)
      << told;
  EXPECT_NE(told.out.find(R"("mechanism":"resolver on 127.0.0.53, names as addresses of 127.19.0.0/16, listeners on their ports",)"
                          R"("enforced":"partial")"),
            std::string::npos)
      << told;
  const Outcome required = proxied("true", {"--require", "network.transparent"});
  EXPECT_EQ(required.exit_code, 125);
  EXPECT_NE(required.err.find("network.transparent is required, but this machine enforces it only as"), std::string::npos)
      << required;
  EXPECT_EQ(proxied("true", {"--require", "network.domains"}).exit_code, 0) << "the twin";
}

// An authority and a certificate of web.test and echo.test.
constexpr char kMakeTls[] = R"(set -e
cd "$1"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.pem -days 30 -subj '/CN=Test authority' \
  -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out request -subj /CN=web.test
printf 'subjectAltName=DNS:web.test,DNS:echo.test\nbasicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n' >extensions
openssl x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -days 20 -extfile extensions -out cert.pem
)";

TEST_P(ContainerEgress, TlsIsLookedIntoWhereARuleNeedsIt) {
  BELLJAR_NEEDS(program("openssl"));
  const Outcome made = run({"sh", "-c", kMakeTls, "sh", world_.files.path()});
  ASSERT_EQ(made.exit_code, 0) << made;
  const std::vector<std::string> rules = {"--net",           "proxy",         "--tls-ca-file", world_.files / "ca.pem",
                                          "--allow-request", "GET web.test/a"};
  const std::string told = "POST of that path is not among the requests that may go to web.test:443";
  for (const std::string& before : {std::string(), std::string(kNoProxy)}) {
    EXPECT_EQ(shell(before + "curl -sS -m 60 https://web.test/a", rules).out, "GET /a host=web.test at=93.184.0.80 body=0\n");
    const Outcome refused = shell(before + "curl -sS -m 60 -d x https://web.test/a", rules);
    EXPECT_NE(refused.out.find(told), std::string::npos) << refused;
  }
  EXPECT_EQ(shell("grep -c BEGIN /dev/belljar-ca.pem /etc/ssl/certs/ca-certificates.crt | sed 's/.*://' | uniq | wc -l", rules).out,
            "1\n")
      << "programs that are told nothing read the same";
  EXPECT_NE(shell("echo x > /dev/belljar-ca.pem", rules).exit_code, 0);
}

TEST_P(ContainerEgress, TheCommandNeverSeesACredential) {
  BELLJAR_NEEDS(program("openssl"));
  ASSERT_EQ(run({"sh", "-c", kMakeTls, "sh", world_.files.path()}).exit_code, 0);
  constexpr char kSecret[] = "ghp_0realSecret/Value+0123456789abcdef";
  ::setenv("REAL_KEY", kSecret, 1);
  const Outcome outcome = shell("env; curl -sS -m 60 -H \"Authorization: Bearer $API_KEY\" https://echo.test/",
                                {"--net", "proxy", "--tls-ca-file", world_.files / "ca.pem", "--credential",
                                 "API_KEY=env:REAL_KEY@echo.test", "--allow-domain", "echo.test", "--pass-env", "REAL_KEY"});
  ::unsetenv("REAL_KEY");
  EXPECT_EQ(outcome.out.find(kSecret), std::string::npos) << outcome;
  EXPECT_NE(outcome.out.find("API_KEY="), std::string::npos) << outcome;
  EXPECT_NE(read_file(world_.files / "seen").find(kSecret), std::string::npos) << "the server does: " << outcome;
}

// Not root, and an engine that is: the directory of the door is the caller's.
TEST_P(ContainerEgress, AnOrdinaryUserHasItToo) {
  const fs::path socket = engine_->socket();
  fs::permissions(socket.parent_path(), fs::perms(0755));
  fs::permissions(socket, fs::perms(0666));
  const TempDir work, home;
  work.give_to(user_uid(), user_gid());
  home.give_to(user_uid(), user_gid());
  const auto asked = [&](const std::string& host) {
    const std::vector<std::string> words = {kBelljar,
                                            "run",
                                            "--backend",
                                            "container",
                                            "--engine",
                                            engine_->address(),
                                            "--image",
                                            Engine::image(),
                                            "--pull",
                                            "never",
                                            "--net",
                                            "proxy",
                                            "--allow-domain",
                                            "listed.invalid",
                                            "-c",
                                            "wget -q -O - http://" + host + "/"};
    return run(as_user(words, home.path()),
               {.stdin_is = Input::kNull, .cwd = work.path(), .env = {{"XDG_STATE_HOME", home / "state"}}});
  };
  const Outcome refused = asked("other.invalid"), missing = asked("listed.invalid");
  EXPECT_NE(refused.err.find("403 other.invalid:80 is not on the list of allowed hosts"), std::string::npos) << refused;
  EXPECT_NE(missing.err.find("502 listed.invalid"), std::string::npos) << "listed, and there is none: " << missing;
  EXPECT_EQ(left_behind(home / "state"), "");
}

TEST_P(ContainerEgress, PortsAreJoined) {
  const Outcome joined = proxied("nc -w 5 127.0.0.1 8025 </dev/null", {"--host-port", "25:8025"});
  EXPECT_EQ(joined.out.substr(0, 10), "220 hello ") << "a server on the host's loopback: " << joined;
  EXPECT_NE(proxied("nc -w 5 127.0.0.1 8025 </dev/null").exit_code, 0) << "the twin";
}

INSTANTIATE_TEST_SUITE_P(Engines, ContainerEgress, testing::Values(EngineKind::kDocker, EngineKind::kPodman),
                         [](const auto& each) { return each.param == EngineKind::kDocker ? "Docker" : "Podman"; });

}  // namespace
}  // namespace belljar::test
