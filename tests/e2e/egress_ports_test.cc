// Joined ports, limits, rules for requests, other proxies, fixed ports: `belljar run` in the small internet of
// tests/support/world.py.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/as_user.h"
#include "support/built.h"
#include "support/identity.h"
#include "support/world.h"

namespace belljar::test {
namespace {

class EgressPorts : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    if (const std::string missing = World::missing(); !missing.empty()) GTEST_SKIP() << missing;
    world_.files.make_dir("files");
  }
  Outcome shell(const std::string& text, std::vector<std::string> more) const {
    more.insert(more.begin(), "run");
    more.insert(more.end(), {"-c", text});
    return world_.belljar(more);
  }
  Outcome proxied(const std::string& text, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--net", "proxy"});
    return shell(text, std::move(more));
  }
  // What happens on the host while a sandbox with `options` serves `text` inside.
  Outcome beside(const std::string& options, const std::string& text, const std::string& host) const {
    // Emptied before, not by the shell in the background: what the last one said is not what this one says.
    const std::string run = std::string(": >inside.log; '") + kBelljar + "' run " + options + " -c \"" + text + "\"";
    return world_.run({"sh", "-c",
                       run +
                           " >inside.log 2>&1 & i=0; until grep -q ready inside.log || ! kill -0 $! || [ $i = 600 ]; do sleep 0.1; "
                           "i=$((i+1)); done; " +
                           host + "; r=$?; kill $!; wait $! 2>/dev/null; exit $r"});
  }

  World world_;
};

constexpr char kServe[] =
    "python3 -u -c 'import http.server as h; s = h.HTTPServer((\\\"ADDRESS\\\", 3000), h.SimpleHTTPRequestHandler); "
    "print(\\\"ready\\\"); s.serve_forever()'";

std::string serve_at(const std::string& address) {
  std::string text = kServe;
  return text.replace(text.find("ADDRESS"), 7, address);
}

TEST_F(EgressPorts, APublishedPortIsReachedFromTheHostsLoopback) {
  world_.workspace.write("page.txt", "from inside\n");
  const std::string get = "curl -sS -m 60 http://127.0.0.1:18123/page.txt";
  EXPECT_EQ(beside("--net none --publish 18123:3000", serve_at("127.0.0.1"), get).out, "from inside\n");
  EXPECT_EQ(beside("--net proxy --publish 18123:3000", serve_at("0.0.0.0"), get).out, "from inside\n");
  EXPECT_EQ(beside("--net none", serve_at("127.0.0.1"), get).exit_code, 7) << "the twin";
  EXPECT_EQ(beside("--net none --publish 18123:3000", serve_at("127.0.0.1"), "curl -sS -m 60 http://127.0.0.1:3000/").exit_code, 7)
      << "only where it was published";
  EXPECT_NE(beside("--net none --publish 18123:3000", serve_at("127.0.0.1"), "curl -sS -m 60 http://93.184.0.1:18123/").exit_code,
            0)
      << "on loopback only";
}

TEST_F(EgressPorts, APublishedPortMayListenOnIpv6) {
  const std::string serve =
      "python3 -u -c 'import socket; s = socket.create_server((\\\"::1\\\", 3000), family=socket.AF_INET6); print(\\\"ready\\\"); "
      "s.accept()[0].sendall(b\\\"six\\\")'";
  EXPECT_EQ(beside("--net none --publish 18123:3000", serve,
                   "python3 -c \"import socket; print(socket.create_connection(('127.0.0.1', 18123)).recv(9))\"")
                .out,
            "b'six'\n");
}

TEST_F(EgressPorts, APortThatIsTakenEndsTheStart) {
  const Outcome outcome = shell("true", {"--net", "none", "--publish", "8081"});
  EXPECT_EQ(outcome.exit_code, 125);
  EXPECT_NE(outcome.err.find("cannot publish on port 8081 of the host"), std::string::npos) << outcome;
  EXPECT_EQ(shell("true", {"--net", "none", "--publish", "18123"}).exit_code, 0);
  EXPECT_NE(shell("true", {"--net", "host", "--publish", "18123"}).err.find("cannot enforce network.publish"), std::string::npos);
}

TEST_F(EgressPorts, AHostPortIsReachedOnlyWhenListed) {
  const std::string echo =
      "python3 -c \"import socket; s = socket.create_connection(('127.0.0.1', 7007)); s.sendall(b'there and back'); "
      "print(s.recv(99))\"";
  EXPECT_EQ(shell(echo, {"--net", "none", "--host-port", "7:7007"}).out, "b'there and back'\n");
  EXPECT_EQ(proxied(echo, {"--host-port", "7:7007"}).out, "b'there and back'\n");
  EXPECT_NE(shell(echo, {"--net", "none"}).err.find("Connection refused"), std::string::npos);
  EXPECT_NE(shell(echo, {"--net", "none", "--host-port", "8:7007"}).err.find("reset"), std::string::npos) << "nobody listens there";
}

TEST_F(EgressPorts, APortOfOursInsideIsNotJoined) {
  const auto said = [&](std::vector<std::string> more) { return proxied("true", std::move(more)).err; };
  for (const char* inside : {"3128", "53", "4000"}) {
    for (const char* option : {"--publish", "--host-port"}) {
      const std::string err = said({option, std::string("18124:") + inside, "--http-proxy-port", "4000"});
      EXPECT_NE(err.find(std::string(option) + ") 18124:" + inside), std::string::npos) << err;
      EXPECT_NE(err.find(std::string(inside) + " inside is the proxy's or the resolver's own"), std::string::npos) << err;
    }
  }
  EXPECT_NE(said({"--publish", "18124:9", "--host-port", "18125:9"}).find("(--host-port) 18125:9\n  reason: 9 inside is published"),
            std::string::npos);
  EXPECT_NE(
      said({"--host-port", "18124:9", "--host-port", "18125:9"}).find("(--host-port) 18125:9\n  reason: 9 inside is joined twice"),
      std::string::npos);
  // The twins: other ports, and these where there is no proxy.
  EXPECT_EQ(said({"--publish", "18124:3000", "--host-port", "18125:9", "--host-port", "18125:10"}), "");
  EXPECT_EQ(shell("true", {"--net", "none", "--publish", "18124:3128", "--host-port", "18125:53"}).exit_code, 0);
}

TEST_F(EgressPorts, APortIsNotPublishedWhereNothingMayListen) {
  const Outcome refused = proxied("true", {"--publish", "18124:3000", "--allow-local-binding=false"});
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_NE(refused.err.find("network.allow_local_binding is false: nothing inside may listen"), std::string::npos) << refused;
  EXPECT_EQ(proxied("true", {"--publish", "18124:3000"}).exit_code, 0) << "the twin";
}

TEST_F(EgressPorts, NoLimitOfEgressIsNothing) {
  for (const char* option : {"--egress-bytes", "--egress-rate", "--egress-connections"}) {
    EXPECT_EQ(proxied("true", {option, "0"}).exit_code, 125) << option;
    EXPECT_EQ(proxied("true", {option, "1"}).exit_code, 0) << option;
  }
}

TEST_F(EgressPorts, AFileOfRootsThatIsNotThereIsToldBeforeARuleNeedsIt) {
  const Outcome missing = proxied("true", {"--tls-ca-file", "/nope"});
  EXPECT_EQ(missing.exit_code, 125);
  EXPECT_NE(missing.err.find("cannot use the certificates in `/nope`"), std::string::npos) << missing;
  world_.workspace.write("roots.pem", "");
  EXPECT_EQ(proxied("true", {"--tls-ca-file", world_.workspace / "roots.pem"}).exit_code, 0);
}

TEST_F(EgressPorts, BytesBeyondTheLimitDoNotPass) {
  world_.files.write("files/big", std::string(24U << 20, 'x'));
  const std::string get = "curl -sS http://web.test/big | wc -c";
  const std::vector<std::string> open{"--allow-domain", "web.test"};
  EXPECT_EQ(proxied(get, open).out, std::to_string(24U << 20) + "\n");
  const Outcome cut =
      proxied(get + "; curl -sS http://web.test/more", {"--allow-domain", "web.test", "--egress-bytes", "1MiB", "--json"});
  EXPECT_NE(cut.out.find(R"("rule":"limits.egress_bytes")"), std::string::npos) << cut;
  EXPECT_NE(cut.out.find(R"("limits_hit":["egress_bytes"])"), std::string::npos) << cut;
  EXPECT_EQ(cut.out.find(R"("operation":"limit")"), std::string::npos) << "one violation is enough" << cut;
  const Outcome within =
      proxied("curl -sS http://web.test/more", {"--allow-domain", "web.test", "--egress-bytes", "1MiB", "--json"});
  EXPECT_NE(within.out.find(R"("limits_hit":[])"), std::string::npos) << within;
  EXPECT_NE(cut.out.find("used up its bytes of egress"), std::string::npos) << cut;
  EXPECT_EQ(cut.out.find(std::to_string(24U << 20)), std::string::npos) << cut;
  const Outcome kept =
      world_.run({"sh", "-c",
                  "id=$(\"$1\" create --net proxy --allow-domain web.test --egress-bytes 1MiB) && \"$1\" exec --json "
                  "$id -c 'curl -q -sS -m 60 -o /dev/null http://web.test/big'; \"$1\" kill $id",
                  "sh", kBelljar});
  EXPECT_NE(kept.out.find(R"("limits_hit":["egress_bytes"])"), std::string::npos) << kept;
  EXPECT_EQ(kept.out.find(R"("operation":"limit")"), std::string::npos) << kept;
  const Outcome tunnel =
      proxied("curl -sS -p http://web.test/big | wc -c", {"--allow-domain", "web.test", "--egress-bytes", "1MiB"});
  EXPECT_NE(tunnel.out, std::to_string(24U << 20) + "\n");
}

TEST_F(EgressPorts, TheRateHolds) {
  world_.files.write("files/some", std::string(1U << 20, 'x'));
  // What is left of a second and the bucket pass at once; nothing can make it faster than this.
  const Outcome slow = proxied("curl -sS -o /dev/null -w '%{time_total}' http://web.test/some",
                               {"--allow-domain", "web.test", "--egress-rate", "256KiB"});
  EXPECT_GE(std::stod("0" + slow.out), 2.0) << slow;
  EXPECT_EQ(slow.exit_code, 0);
}

TEST_F(EgressPorts, ConnectionsBeyondTheLimitWait) {
  const Outcome outcome = proxied(
      "python3 -c \"\nimport os, socket\nos.environ.clear()\na = socket.create_connection(('web.test', 25)); print(a.recv(3))\n"
      "b = socket.create_connection(('web.test', 25)); b.settimeout(0.5)\ntry: print(b.recv(3))\nexcept TimeoutError: "
      "print('waits')\n"
      "a.close(); b.settimeout(60); print(b.recv(3))\"",
      {"--allow-domain", "web.test", "--egress-connections", "1"});
  EXPECT_EQ(outcome.out, "b'220'\nwaits\nb'220'\n") << outcome;
}

TEST_F(EgressPorts, ARuleForRequestsLetsThoseThroughAndNothingElse) {
  const std::vector<std::string> rule{"--allow-request", "GET,HEAD web.test/docs"};
  const auto get = [&](const std::string& arguments) { return proxied("curl -sS --path-as-is " + arguments, rule); };
  EXPECT_EQ(get("http://web.test/docs/a?q=/../x").out, "GET /docs/a?q=/../x host=web.test at=93.184.0.80 body=0\n");
  EXPECT_EQ(get("http://web.test/docs").out, "GET /docs host=web.test at=93.184.0.80 body=0\n");
  for (const char* other :
       {"http://web.test/", "http://web.test/docsx", "http://web.test/docs/../secret", "http://web.test/docs/%2e%2e/secret",
        "http://web.test//docs/a", "http://web.test/docs/%2fx", "'http://web.test/docs/a;/../b'", "-X POST http://web.test/docs/a",
        "-X DELETE http://web.test/docs/a", "http://sub.web.test/docs/a", "http://web.test:8081/docs/../a"}) {
    const Outcome outcome = get(other);
    EXPECT_EQ(outcome.out.find("host="), std::string::npos) << other << outcome;
    EXPECT_NE(outcome.out.find("belljar:"), std::string::npos) << other << outcome;
  }
  // In a tunnel the same rules hold: it is looked into.
  EXPECT_EQ(get("-p http://web.test/docs/a").out, "GET /docs/a host=web.test at=93.184.0.80 body=0\n");
  const Outcome tunnelled = get("-p http://web.test/secret");
  EXPECT_NE(tunnelled.out.find("not among the requests"), std::string::npos) << tunnelled;
  const Outcome direct = proxied(std::string(kNoProxy) + "curl -sS http://web.test/docs/d; curl -sS http://web.test/x", rule);
  EXPECT_NE(direct.out.find("GET /docs/d host=web.test"), std::string::npos) << direct;
  EXPECT_NE(direct.out.find("GET of that path is not among the requests"), std::string::npos) << direct;
}

TEST_F(EgressPorts, EverythingLeavesByTheUpstreamProxy) {
  const std::vector<std::string> http{"--allow-domain",     "web.test",         "--allow-domain",
                                      "only.upstream.test", "--upstream-proxy", "http://me:p%40ss@127.0.0.1:3129"};
  EXPECT_EQ(proxied("curl -sS http://web.test/a", http).out, "GET /a host=web.test at=93.184.0.80 body=0\n");
  EXPECT_NE(world_.asked().find("http-proxy GET http://web.test/a"), std::string::npos) << world_.asked();
  EXPECT_EQ(proxied("curl -sS -p http://web.test/b", http).out, "GET /b host=web.test at=93.184.0.80 body=0\n");
  EXPECT_NE(world_.asked().find("http-proxy CONNECT web.test:80"), std::string::npos) << world_.asked();
  EXPECT_EQ(proxied("curl -sS http://only.upstream.test/c", http).out, "GET /c host=only.upstream.test at=93.184.0.90 body=0\n")
      << "a name that only it knows";
  EXPECT_EQ(proxied(std::string(kNoProxy) + "curl -sS http://web.test/d", http).out,
            "GET /d host=web.test at=93.184.0.80 body=0\n");
  EXPECT_NE(proxied("curl -sS http://other.test/", http).out.find("not on the list"), std::string::npos) << "the rules stay";
  EXPECT_EQ(world_.asked().find("other.test"), std::string::npos);
  EXPECT_NE(proxied("env | grep -c 'p%40ss\\|p@ss'", http).out.find("0"), std::string::npos) << "its password stays outside";
  const Outcome wrong =
      proxied("curl -sS -p http://web.test/", {"--allow-domain", "web.test", "--upstream-proxy", "http://me:no@127.0.0.1:3129"});
  EXPECT_NE(wrong.err.find("502"), std::string::npos) << wrong;
}

// A file of the workspace may have set it, by way of a shell or an editor; so it is told, and not followed.
TEST_F(EgressPorts, AProxyInTheCallersEnvironmentIsToldAndNotFollowed) {
  constexpr char kNote[] = "belljar: HTTPS_PROXY is set and not used: ";
  const auto with_variable = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"env", "HTTPS_PROXY=http://me:p%40ss@127.0.0.1:3129", kBelljar});
    Outcome outcome = world_.run(words);
    EXPECT_EQ((outcome.out + outcome.err).find("p%40ss"), std::string::npos) << outcome;
    return outcome;
  };
  const auto fetch = [&](const std::string& host, std::vector<std::string> more) {
    std::vector<std::string> words{"run", "--net", "proxy", "--allow-domain", host};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", "curl", "-sSf", "http://" + host + "/a"});
    return with_variable(words);
  };
  const std::vector<std::string> by_it{"--upstream-proxy", "http://me:p%40ss@127.0.0.1:3129"};
  const Outcome alone = fetch("only.upstream.test", {});
  EXPECT_NE(alone.exit_code, 0) << alone;
  EXPECT_NE(alone.err.find(kNote), std::string::npos) << alone;
  EXPECT_NE(alone.err.find("network.upstream_proxy"), std::string::npos) << alone;
  EXPECT_EQ(world_.asked().find("http-proxy"), std::string::npos) << world_.asked();
  const Outcome named = fetch("only.upstream.test", by_it);
  EXPECT_EQ(named.out, "GET /a host=only.upstream.test at=93.184.0.90 body=0\n") << named;
  EXPECT_EQ(named.err, "") << "the twin: there is nothing to tell";
  EXPECT_EQ(fetch("web.test", {}).err, "") << "what works needs no words";
  const std::string verbose = fetch("web.test", {"--verbose"}).err;
  EXPECT_EQ(verbose.find(kNote), verbose.rfind(kNote)) << "once" << verbose;
  EXPECT_NE(verbose.find(kNote), std::string::npos) << verbose;
  EXPECT_EQ(with_variable({"run", "--verbose", "--", "true"}).err.find(kNote), std::string::npos) << "without a network";
  EXPECT_NE(with_variable({"policy", "explain", "--net", "proxy"}).err.find(kNote), std::string::npos);
  EXPECT_EQ(with_variable({"policy", "explain"}).err, "");
}

TEST_F(EgressPorts, TheUpstreamProxyMaySpeakSocks) {
  const std::vector<std::string> socks{"--allow-domain", "web.test", "--upstream-proxy", "socks5h://127.0.0.1:1081"};
  EXPECT_EQ(proxied("curl -sS http://web.test/a", socks).out, "GET /a host=web.test at=93.184.0.80 body=0\n");
  EXPECT_EQ(proxied("curl -sS -p http://web.test/b", socks).out, "GET /b host=web.test at=93.184.0.80 body=0\n");
  EXPECT_NE(world_.asked().find("socks-proxy web.test 80"), std::string::npos) << world_.asked();
  for (const char* url :
       {"https://127.0.0.1:3129", "ftp://127.0.0.1", "127.0.0.1:3129", "http://me@127.0.0.1", "http://a\nb:c@h"}) {
    const Outcome refused = proxied("true", {"--upstream-proxy", url});
    EXPECT_EQ(refused.exit_code, 125) << url;
    EXPECT_NE(refused.err.find("--upstream-proxy: "), std::string::npos) << refused;
  }
}

TEST_F(EgressPorts, FixedPortsAreServedAndNamed) {
  const Outcome outcome =
      proxied("curl -sS http://web.test/a; curl -sS -x socks5h://127.0.0.1:1080 http://web.test/b; echo $HTTP_PROXY",
              {"--allow-domain", "web.test", "--http-proxy-port", "8888", "--socks-proxy-port", "1080"});
  EXPECT_EQ(outcome.out,
            "GET /a host=web.test at=93.184.0.80 body=0\nGET /b host=web.test at=93.184.0.80 body=0\nhttp://127.0.0.1:8888\n");
  EXPECT_NE(proxied("true", {"--http-proxy-port", "70000"}).exit_code, 0);
}

}  // namespace
}  // namespace belljar::test
