// `belljar run` where TLS is looked into: real clients against TLS servers of a small internet whose authority is the test's own.
// Each refusal stands beside what is allowed.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "e2e/support_tls.h"
#include "support/built.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"
#include "support/world.h"

namespace belljar::test {
namespace {

class EgressTls : public TlsWorld {
 protected:
  const std::vector<std::string> rules_{"--allow-request", "GET web.test/a", "--allow-domain", "sub.web.test"};
};

TEST_F(EgressTls, MethodsAndPathsOfAHostHoldForHttpsToo) {
  for (const std::string& before : {std::string(), std::string(kNoProxy)}) {
    EXPECT_EQ(shell(before + kCurl + "https://web.test/a/b", rules_).out, "GET /a/b host=web.test at=93.184.0.80 body=0\n");
    const Outcome path = shell(before + kCurl + "https://web.test/b", rules_);
    EXPECT_TRUE(has(path.out, "GET of that path is not among the requests that may go to web.test:443")) << path;
    const Outcome method = shell(before + kCurl + "-d x https://web.test/a", rules_);
    EXPECT_TRUE(has(method.out, "POST of that path is not among the requests")) << method;
  }
  const Outcome told = shell(std::string(kCurl) + "https://web.test/b", [&] {
    std::vector<std::string> more = rules_;
    more.push_back("--json");
    return more;
  }());
  EXPECT_TRUE(has(told.out, R"("protocol":"https","method":"GET","host":"web.test")")) << told;
  EXPECT_TRUE(has(told.out, R"("rule":"network.allowed_requests")")) << told;
}

TEST_F(EgressTls, AHostThatNoRuleNeedsIsRelayedUntouched) {
  const std::string who =
      "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | openssl s_client -quiet -proxy 127.0.0.1:3128 -connect HOST:443 2>&1 | grep -c ";
  const auto issuer = [&](const std::string& host, const std::string& name) {
    std::string text = who + "'" + name + "'";
    text.replace(text.find("HOST"), 4, host);
    return shell(text, rules_).out;
  };
  EXPECT_NE(issuer("web.test", "CN = Belljar sandbox authority"), "0\n");
  EXPECT_EQ(issuer("sub.web.test", "CN = Belljar sandbox authority"), "0\n");
  EXPECT_NE(issuer("sub.web.test", "CN = Test authority"), "0\n");
}

TEST_F(EgressTls, AnExceptionKeepsAHostWhole) {
  std::vector<std::string> more = rules_;
  more.insert(more.end(), {"--tls-passthrough", "web.test"});
  const Outcome refused = shell(std::string(kCurl) + "https://web.test/a", more);
  EXPECT_TRUE(has(refused.err, "403")) << refused;
  EXPECT_EQ(shell(std::string(kCurl) + "http://web.test/a", more).out, "GET /a host=web.test at=93.184.0.80 body=0\n");
  more.insert(more.end(), {"--allow-domain", "web.test"});
  EXPECT_EQ(shell(std::string(kCurl) + "--cacert " + (world_.workspace / "ca.pem") + " https://web.test/b",
                  [&] {
                    world_.workspace.write("ca.pem", read_file(world_.files / "ca.pem"));
                    return more;
                  }())
                .out,
            "GET /b host=web.test at=93.184.0.80 body=0\n");
}

TEST_F(EgressTls, AnotherProtocolInATunnelIsResetAtOnce) {
  const std::string client =
      "import socket, sys\n"
      "s = socket.create_connection(('127.0.0.1', 3128)); s.settimeout(60)\n"
      "s.sendall(b'CONNECT web.test:443 HTTP/1.1\\r\\n\\r\\n'); s.recv(999)\n"
      "s.sendall(b'SSH-2.0-client\\r\\n')\n"
      "try: print(s.recv(99))\n"
      "except ConnectionResetError: print('reset')\n";
  world_.workspace.write("ssh.py", client);
  EXPECT_EQ(shell("python3 ssh.py", rules_).out, "reset\n");
  EXPECT_EQ(shell(std::string(kCurl) + "-p http://web.test/a", rules_).out.substr(0, 6), "GET /a") << "the twin";
}

// RFC 9112 section 9.8: without a length only TLS says that an answer is whole.
TEST_F(EgressTls, AnAnswerWithoutALengthIsWholeOnlyWhenTlsSaysSo) {
  for (const char* const client : {kCurl, kCurl2}) {
    const auto get = [&](const std::string& path) {
      return shell(client + ("https://web.test" + path), {"--allow-request", "GET web.test", "--json"});
    };
    const Outcome whole = get("/until-the-end");
    EXPECT_EQ(whole.exit_code, 0) << client << whole;
    EXPECT_TRUE(has(whole.out, "GET /until-the-end host=web.test")) << client << whole;
    EXPECT_FALSE(has(whole.out, "tls-cut")) << client << whole;
    const Outcome cut = get("/until-the-end?rude");
    EXPECT_NE(cut.exit_code, 0) << client << cut;
    EXPECT_TRUE(has(cut.out, R"("reason":"tls-cut")")) << client << cut;
  }
}

TEST_F(EgressTls, LimitedLooksIntoHttps) {
  const std::vector<std::string> limited{"--net-methods", "limited", "--allow-domain", "web.test"};
  EXPECT_EQ(shell(std::string(kCurl) + "https://web.test/x", limited).out, "GET /x host=web.test at=93.184.0.80 body=0\n");
  EXPECT_EQ(direct(std::string(kCurl) + "https://web.test/x", limited).out, "GET /x host=web.test at=93.184.0.80 body=0\n");
  EXPECT_TRUE(has(shell(std::string(kCurl) + "-d x https://web.test/x", limited).out, "the method POST is refused"));
  const auto upload = [&](const std::string& how) {
    return shell(
               "head -c 8000000 /dev/zero >8mb; " + std::string(kCurl) + how + " -o /dev/null -w '%{http_code}' https://web.test/x",
               limited)
        .out;
  };
  for (const std::string how : {"-X GET", "-X OPTIONS"}) {
    EXPECT_EQ(upload(how + " --data-binary @8mb"), "413") << how;
    EXPECT_EQ(upload(how + " -H 'Transfer-Encoding: chunked' -T 8mb"), "413") << how;
    EXPECT_EQ(upload(how), "200") << how << ": the twin";
  }
  EXPECT_TRUE(has(shell(std::string(kCurl) + "-X HEAD -m 20 -d x https://web.test/x -D - -o /dev/null", limited).out, " 413 "));
}

// NW: another name in TLS or in Host than the one that was asked for.
TEST_F(EgressTls, AnotherNameInsideIsRefused) {
  const std::string client =
      "printf 'GET /o HTTP/1.0\\r\\nHost: web.test\\r\\n\\r\\n' | openssl s_client -quiet -proxy 127.0.0.1:3128 -connect "
      "web.test:443 ";
  const std::vector<std::string> rules{"--allow-request", "GET web.test"};
  EXPECT_TRUE(has(shell(client + "-servername web.test 2>/dev/null", rules).out, "GET /o host=web.test"));
  EXPECT_TRUE(has(shell(client + "-noservername 2>/dev/null", rules).out, "GET /o host=web.test"));
  const Outcome refused = shell(client + "-servername other.test 2>&1", rules);
  EXPECT_FALSE(has(refused.out, " at=")) << refused;
  EXPECT_TRUE(has(refused.out, "unrecognized name")) << refused;
  std::vector<std::string> told = rules;
  told.push_back("--json");
  EXPECT_TRUE(has(shell(client + "-servername other.test", told).out, R"("reason":"tls-sni")"));
  EXPECT_TRUE(has(shell(std::string(kCurl) + "-H 'Host: other.test' https://web.test/", rules).out, "Host names another place"));
}

TEST_F(EgressTls, ABadCertificateOfAServerIsRefusedWithItsReason) {
  const std::vector<std::string> rules{"--allow-request", "GET **.test", "--json"};
  const std::pair<const char*, const char*> cases[] = {
      {"expired.test", "tls-expired"}, {"self.test", "tls-untrusted"}, {"misnamed.test", "tls-name"}};
  for (const auto& [name, reason] : cases) {
    const Outcome refused = shell(std::string(kCurl) + "https://" + name + "/", rules);
    EXPECT_TRUE(has(refused.out, std::string(R"("reason":")") + reason)) << name << refused;
    EXPECT_TRUE(has(refused.out, "its certificate is refused")) << name << refused;
    EXPECT_FALSE(has(refused.out, " at=")) << name << refused;
    const bool by_roots = std::string(reason) == "tls-untrusted";  // nothing of ours helps the others
    EXPECT_EQ(has(refused.out, "network.tls_ca_file names further roots"), by_roots) << name << refused;
  }
  EXPECT_TRUE(has(shell(std::string(kCurl) + "https://web.test/", rules).out, "GET / host=web.test"));
  const Outcome untrusted =
      world_.belljar({"run", "--net", "proxy", "--allow-request", "GET web.test", "-c", std::string(kCurl) + "https://web.test/"});
  EXPECT_TRUE(has(untrusted.out, "its certificate is refused")) << "without --tls-ca-file" << untrusted;
}

TEST_F(EgressTls, RealClientsTrustIt) {
  const std::vector<std::string> rules{"--allow-request", "GET web.test", "--allow-request", "POST web.test/post"};
  const std::string line = "GET /c host=web.test at=93.184.0.80 body=0\n";
  for (const std::string& before : {std::string(), std::string(kNoProxy)}) {
    EXPECT_EQ(shell(before + kCurl + "https://web.test/c", rules).out, line);
    EXPECT_EQ(shell(before + kCurl + "https://web.test/c https://web.test/c", rules).out, line + line)
        << "one connection, two requests";
    const Outcome python =
        shell(before + "python3 -c \"import urllib.request as u; print(u.urlopen('https://web.test/c').read().decode(), end='')\"",
              rules);
    EXPECT_EQ(python.out, line) << python;
    if (!find_program("wget").empty()) {
      EXPECT_EQ(shell(before + "wget -q -O - https://web.test/c", rules).out, line);
    }
    if (!find_program("node").empty()) {
      const std::string https =
          "node -e \"require('https').get('https://web.test/c', r => r.pipe(process.stdout))\"";  // direct only: it knows no proxy
      if (!before.empty()) {
        EXPECT_EQ(shell(before + https, rules).out, line);
        EXPECT_EQ(
            shell(before + "node -e \"fetch('https://web.test/c').then(r => r.text()).then(t => process.stdout.write(t))\"", rules)
                .out,
            line);
      }
    }
  }
  if (!find_program("javac").empty()) {
    world_.workspace.write("Get.java",
                           "public class Get { public static void main(String[] a) throws Exception { "
                           "System.out.print(new String(new java.net.URL(a[0]).openStream().readAllBytes())); } }");
    const Outcome java = shell("java Get.java https://web.test/c", rules);
    EXPECT_EQ(java.out, line) << java;
  }
}

TEST_F(EgressTls, EachWayInAndAnotherProxyLeadThroughTheSameRules) {
  const std::vector<std::string> rules{"--allow-request", "GET web.test/a"};
  std::vector<std::string> chained = rules;
  chained.insert(chained.end(), {"--upstream-proxy", "http://me:p%40ss@93.184.0.53:3129"});
  const std::string line = "GET /a host=web.test at=93.184.0.80 body=0\n", socks = "-x socks5h://127.0.0.1:3128 ";
  EXPECT_EQ(shell(std::string(kCurl) + socks + "https://web.test/a", rules).out, line);
  EXPECT_TRUE(has(shell(std::string(kCurl) + socks + "https://web.test/b", rules).out, "not among the requests"));
  EXPECT_EQ(shell(std::string(kCurl) + "https://web.test/a https://web.test/a", chained).out, line + line);
  EXPECT_TRUE(has(world_.asked(), "http-proxy CONNECT web.test:443\n")) << world_.asked();
  EXPECT_TRUE(has(shell(std::string(kCurl) + "https://web.test/b", chained).out, "not among the requests"));
  EXPECT_EQ(shell(std::string(kCurl) + "-p http://web.test/a", rules).out, line) << "in the clear inside a tunnel";
  EXPECT_TRUE(has(shell(std::string(kCurl) + "-p http://web.test/b", rules).out, "not among the requests"));
  const Outcome neither =
      shell("printf 'CONNECT web.test:7 HTTP/1.1\\r\\n\\r\\n\\0\\1hello' | timeout 10 nc 127.0.0.1 3128 | tail -c 5", rules);
  EXPECT_FALSE(has(neither.out, "hello")) << neither;
}

TEST_F(EgressTls, AClientCertificatePassesByAnExceptionOnly) {
  world_.workspace.write("own.pem", read_file(world_.files / "tls/web.test.pem"));
  world_.workspace.write("ca.pem", read_file(world_.files / "ca.pem"));
  const std::string ask = std::string(kCurl) + "--cert own.pem --cacert ca.pem https://client.test:4443/";
  const Outcome refused =
      shell(std::string(kCurl) + "--cert own.pem https://client.test:4443/", {"--allow-request", "GET client.test"});
  // TLS 1.3 asks after the handshake: the server's alert comes with its end, and may be lost to it.
  EXPECT_TRUE(has(refused.out, "certificate required") || has(refused.out, "gave no HTTP answer")) << refused;
  EXPECT_FALSE(has(refused.out, " at=")) << refused;
  const Outcome whole = shell(ask, {"--allow-domain", "client.test", "--net-methods", "full", "--tls-passthrough", "client.test"});
  EXPECT_EQ(whole.out, "GET / host=client.test:4443 at=93.184.0.88 body=0\n") << whole;
}

TEST_F(EgressTls, GitClonesOverIt) {
  BELLJAR_NEEDS(program("git"));
  const std::string made = "cd '" + world_.files.path() +
                           "/files' && git init -q repo && cd repo && echo hi >a && git add a && git -c user.name=a -c "
                           "user.email=a@b commit -qm one && git update-server-info && cp -r .git ../repo.git";
  ASSERT_EQ(run({"sh", "-c", made}).exit_code, 0);
  const Outcome clone = shell("git clone -q https://web.test/repo.git && cat repo/a", {"--allow-request", "GET web.test/repo.git"});
  EXPECT_TRUE(has(clone.out, "hi\n")) << clone;
  const Outcome refused = shell("git clone -q https://web.test/repo.git again 2>&1", {"--allow-request", "GET web.test/other.git"});
  EXPECT_TRUE(has(refused.out, "403")) << refused;
}

TEST_F(EgressTls, WebsocketsAndLargeBodiesPass) {
  std::string big(3'000'000, 'x');
  world_.files.write("files/big", big);
  world_.workspace.write("body", big);
  const Outcome size = with_key(std::string(kCurl) + "-k https://web.test/big | wc -c");
  EXPECT_EQ(size.out, "3000000\n") << "not looked into: no rule needs it";
  EXPECT_EQ(shell(std::string(kCurl) + "https://web.test/big | wc -c", {"--allow-request", "GET web.test"}).out, "3000000\n");
  EXPECT_TRUE(
      has(shell(std::string(kCurl) + "-T body https://web.test/put", {"--allow-request", "PUT web.test"}).out, "body=3000000"));
  world_.workspace.write(
      "ws.py",
      "import socket, ssl\n"
      "s = socket.create_connection(('127.0.0.1', 3128)); s.sendall(b'CONNECT echo.test:443 HTTP/1.1\\r\\n\\r\\n'); s.recv(999)\n"
      "s = ssl.create_default_context().wrap_socket(s, server_hostname='echo.test')\n"
      "s.sendall(b'GET /ws HTTP/1.1\\r\\nHost: echo.test\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
      "Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n')\n"
      "a = b''\nwhile b'\\r\\n\\r\\n' not in a: a += s.recv(999)\n"
      "s.sendall(b'\\x81\\x05hello'); print(b' 101 ' in a and b's3pPLMBiTxaQ9kYGzzhZRbK+xOo=' in a, s.recv(99))\n");
  const Outcome socket = with_key("python3 ws.py");
  EXPECT_EQ(socket.out, "True b'\\x81\\x05hello'\n") << socket;
}

// --- credentials

TEST_F(EgressTls, ACredentialReachesItsHostAndNothingInside) {
  const Outcome sent =
      with_key(std::string(kCurl) + "-H \"Authorization: Bearer $API_KEY\" -i https://echo.test/x; echo \"inside=$API_KEY\"");
  EXPECT_TRUE(has(read_file(world_.files / "seen"), std::string("Authorization: Bearer ") + kSecret)) << sent;
  EXPECT_FALSE(has(sent.out, kSecret)) << sent;
  EXPECT_TRUE(has(sent.out, "inside=ghp_belljar")) << sent;
  const std::string placeholder = sent.out.substr(sent.out.find("inside=") + 7, sizeof kSecret - 1);
  EXPECT_TRUE(has(sent.out, "Authorization: Bearer " + placeholder)) << "the echo holds the placeholder again" << sent;
  EXPECT_TRUE(has(sent.out, "X-Echo: Bearer " + placeholder)) << sent;
  EXPECT_FALSE(has(sent.out, "0realSecret")) << sent;
}

TEST_F(EgressTls, BasicAndQueryCarryItAndNoEchoBringsItBack) {
  for (const char* how : {"-u \"me:$API_KEY\" https://echo.test/", "\"https://echo.test/?k=$API_KEY\"",
                          "-H \"X-Key: $API_KEY\" 'https://echo.test/?chunked'"}) {
    const Outcome sent = with_key(
        std::string(kCurl) + how +
        " >answer; cat answer; grep -v : answer | base64 -d 2>/dev/null; "
        "python3 -c \"import re; [print(bytes.fromhex(x)) for x in re.findall('[0-9a-f]{200,}', open('answer').read())]\"");
    EXPECT_EQ(sent.exit_code, 0) << sent;
    EXPECT_FALSE(has(sent.out, "0realSecret")) << how << sent;
    EXPECT_TRUE(has(sent.out, "host") || has(sent.out, "Host")) << how << sent;
  }
  const std::string seen = read_file(world_.files / "seen");
  EXPECT_TRUE(has(seen, "ghp_0realSecret%2FValue%2B0123456789abcdef")) << seen;
  EXPECT_TRUE(has(seen, std::string("X-Key: ") + kSecret)) << seen;
  // What no credential can be put into passes as it is, whoever speaks first.
  world_.workspace.write(
      "mail.py",
      "import socket\n"
      "for port, say in ((25, b''), (7, b'\\0\\1x')):\n"
      " s = socket.create_connection(('127.0.0.1', 3128)); s.sendall(b'CONNECT echo.test:%d HTTP/1.1\\r\\n\\r\\n' % port)\n"
      " a = b''\n while not a.endswith(b'\\r\\n\\r\\n'): a += s.recv(1)\n"
      " s.sendall(say); print(s.recv(99))\n");
  EXPECT_EQ(with_key("python3 mail.py").out, "b'220 hello at 93.184.0.87\\r\\n'\nb'\\x00\\x01x'\n");
  const Outcome encoded = with_key(std::string(kCurl) + "-H \"X-Key: $API_KEY\" 'https://echo.test/?gzip'");
  EXPECT_TRUE(has(encoded.out, "is encoded although")) << encoded;
}

TEST_F(EgressTls, AnAnswerThatIsEncodedInAnyWayIsRefusedWithACredential) {
  for (const char* query :
       {"gzip", "gzip&field=Content-Encoding:identity&field=Content-Encoding:gzip",
        "gzip&field=Content-Encoding:&field=Content-Encoding:gzip", "gzip&field=Content-Encoding:identity,gzip",
        "field=Transfer-Encoding:gzip,%20chunked", "field=Transfer-Encoding:gzip&field=Transfer-Encoding:chunked"}) {
    const Outcome sent = with_key(std::string(kCurl) +
                                  "--raw -o answer -w '%{http_code}' -H \"X-Key: $API_KEY\" 'https://echo.test/?" + query + "'");
    EXPECT_EQ(sent.out, "502") << query << sent;
  }
  // The twin: what is not encoded passes, said once or twice.
  const Outcome sent =
      with_key(std::string(kCurl) +
               "-H \"X-Key: $API_KEY\" 'https://echo.test/?chunked&field=Content-Encoding:identity&field=Content-Encoding:'");
  EXPECT_TRUE(has(sent.out, "X-Key: ghp_belljar")) << sent;
}

TEST_F(EgressTls, NoRefusalAndNoFieldNameBringsACredentialBack) {
  const std::string curl = std::string(kCurl) + "-i ";
  for (const char* query : {"field=Content-Encoding:$API_KEY", "chunked&field=Transfer-Encoding:$API_KEY"}) {
    const Outcome sent = with_key(curl + "\"https://echo.test/?" + query + "\"");
    EXPECT_TRUE(has(sent.out, "HTTP/1.1 502 the answer of echo.test:443 is encoded")) << sent;
    EXPECT_FALSE(has(sent.out + sent.err, "0realSecret")) << sent;
  }
  // A slash is no letter of a name: here it stands for itself where a value has none.
  const Outcome name = world_.run({"env", "REAL_KEY=ghp_0realSecretValue0123456789", kBelljar, "run", "--net", "proxy",
                                   "--tls-ca-file", world_.files / "ca.pem", "--credential", "API_KEY=env:REAL_KEY@echo.test",
                                   "--allow-domain", "echo.test", "-c", curl + "\"https://echo.test/?field=$API_KEY:x\""});
  EXPECT_TRUE(has(name.out, "HTTP/1.1 200") && has(name.out, "ghp_belljar")) << name;
  EXPECT_FALSE(has(name.out, "0realSecret")) << name;
}

// What the host has kept of a request through TLS it says again to who asks in the clear.
TEST_F(EgressTls, NoWayToItsHostBringsACredentialBack) {
  const std::string keep = std::string(kCurl) + "-o /dev/null -H \"X-Keep: $API_KEY\" https://echo.test/; ";
  for (const std::string& ask :
       {std::string(kCurl) + "http://echo.test:8081/stored", kNoProxy + std::string(kCurl) + "http://echo.test:8081/stored",
        std::string(kCurl) + "-p http://echo.test/stored", std::string(kCurl) + "-p -X get http://echo.test/stored",
        std::string(kCurl) + "-x socks5h://127.0.0.1:3128 http://echo.test/stored"}) {
    const Outcome stored = with_key(keep + ask);
    EXPECT_TRUE(stored.out.starts_with("ghp_belljar")) << ask << stored;
    EXPECT_FALSE(has(stored.out, "0realSecret")) << ask << stored;
  }
}

TEST_F(EgressTls, AClientOfHttp10IsServed) {
  EXPECT_EQ(shell(std::string(kCurl) + "-0 https://web.test/a", rules_).out, "GET /a host=web.test at=93.184.0.80 body=0\n");
}

// As a run's: the value is the keeper's alone.
TEST_F(EgressTls, ASandboxThatStaysHasCredentialsToo) {
  const std::string create = std::string("REAL_KEY=") + kSecret + " \"$1\" create --net proxy --tls-ca-file '" +
                             (world_.files / "ca.pem") +
                             "' --allow-domain echo.test --credential 'API_KEY=env:REAL_KEY for echo.test'";
  const std::string look =
      "curl -q -sS --http1.1 -m 60 -H \"X-Key: $API_KEY\" https://echo.test/; echo \"inside=$API_KEY real=$REAL_KEY.\"; "
      "for f in /proc/[0-9]*/environ; do tr '\\0' '\\n' <$f 2>/dev/null | grep 0real[S]ecret; done; true";
  const Outcome sent = world_.run(
      {"sh", "-c",
       "id=$(" + create + ") && \"$1\" exec $id -c '" +
           [&] {
             std::string quoted = look;
             for (std::size_t at = quoted.find('\''); at != std::string::npos; at = quoted.find('\'', at + 4))
               quoted.replace(at, 1, "'\\''");
             return quoted;
           }() +
           "'; for k in $(\"$1\" ls --json | grep -o 'keeper_pid\":[0-9]*' | cut -d: -f2); do tr '\\0' '\\n' </proc/$k/environ | "
           "grep -c 0real; done; \"$1\" kill $id",
       "sh", kBelljar});
  EXPECT_TRUE(has(read_file(world_.files / "seen"), std::string("X-Key: ") + kSecret)) << sent;
  EXPECT_TRUE(has(sent.out, "inside=ghp_belljar")) << sent;
  EXPECT_TRUE(has(sent.out, "real=.")) << sent;
  EXPECT_FALSE(has(sent.out, "0realSecret")) << sent;
  EXPECT_TRUE(has(sent.out, "\n0\n")) << "the keeper's environment" << sent;
}

TEST_F(EgressTls, NoOrdinarySpellingBringsACredentialBack) {
  for (const char* query : {"", "?chunked"}) {
    const Outcome sent = with_key(std::string(kCurl) + "-i -H \"Authorization: Bearer $API_KEY\" https://echo.test/" + query);
    EXPECT_TRUE(has(sent.out, "X-Spelled: Bearer%20ghp_belljar")) << sent;
    EXPECT_TRUE(has(sent.out, "Authorization%3A%20Bearer%20ghp_belljar")) << sent;
    EXPECT_TRUE(has(sent.out, "Authorization: Bearer ghp_belljar")) << sent;
    EXPECT_FALSE(has(sent.out, "0realSecret")) << sent;
  }
}

// As cargo's git asks.
TEST_F(EgressTls, AHostWithoutItsPortIsThePlaceOfTheTunnel) {
  const std::vector<std::string> rules{"--allow-request", "GET web.test:8443/a"};
  for (const std::string& before : {std::string(), std::string(kNoProxy)}) {
    const std::string get = before + kCurl + "https://web.test:8443/a -H Host:";
    EXPECT_TRUE(has(shell(get + "web.test", rules).out, "GET /a host=web.test:8443"));
    EXPECT_TRUE(has(shell(get + "web.test:8443", rules).out, "GET /a host=web.test:8443"));
    for (const char* other : {"web.test:443", "other.test"})
      EXPECT_TRUE(has(shell(get + other, rules).out, "Host names another place than the target")) << other;
  }
}

// A client that resolves by itself and then asks the proxy.
TEST_F(EgressTls, AResolvedNameIsTheNameAtTheProxyToo) {
  const std::string number = "A=$(python3 -c 'import socket; print(socket.gethostbyname(\"web.test\"))'); ";
  for (const char* how : {"-x socks5://127.0.0.1:3128 http://web.test/a", "-x socks5://127.0.0.1:3128 https://web.test/a",
                          "-p --connect-to web.test:80:$A:80 http://web.test/a", "http://$A/a"}) {
    const Outcome sent = shell(number + kCurl + how, rules_);
    EXPECT_TRUE(has(sent.out, "GET /a host=web.test at=93.184.0.80")) << how << sent;
  }
  const Outcome path = shell(number + kCurl + "-x socks5://127.0.0.1:3128 https://web.test/b", rules_);
  EXPECT_TRUE(has(path.out, "GET of that path is not among the requests that may go to web.test:443")) << path;
  const Outcome nobody = shell(std::string(kCurl) + "-x socks5://127.0.0.1:3128 http://198.19.77.77/a", rules_);
  EXPECT_EQ(nobody.exit_code, 97) << nobody;
}

TEST_F(EgressTls, APlaceholderElsewhereIsRefusedAndTold) {
  const Outcome clear = with_key(std::string(kCurl) + "-H \"X-Key: $API_KEY\" http://web.test/", {"--json"});
  EXPECT_TRUE(has(clear.out, "the credential API_KEY is not for web.test:80 in the clear")) << clear;
  EXPECT_TRUE(has(clear.out, R"("rule":"network.credentials")")) << clear;
  EXPECT_FALSE(has(clear.out, kSecret));
  const Outcome own = with_key(std::string(kCurl) + "-u \"me:$API_KEY\" http://echo.test/");
  EXPECT_TRUE(has(own.out, "use https://")) << own;
  const Outcome looked =
      with_key(std::string(kCurl) + "-H \"X-Key: $API_KEY\" https://sub.web.test/", {"--allow-request", "GET sub.web.test"});
  EXPECT_TRUE(has(looked.out, "the credential API_KEY is not for sub.web.test:443")) << looked;
  EXPECT_EQ(with_key(std::string(kCurl) + "http://web.test/").out, "GET / host=web.test at=93.184.0.80 body=0\n");
}

TEST_F(EgressTls, NoProcessAndNoFileInsideHoldsTheValue) {
  world_.files.write("token", std::string(kSecret) + "X\n");
  const std::string look =
      "n=0; for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do tr '\\0' '\\n' <$f 2>/dev/null | grep -q 0real[S]ecret && n=1; "
      "done; "
      "grep -rqs 0real[S]ecret /tmp /dev/shm /run . && n=1; env | grep -q 0real[S]ecret && n=1; echo found=$n; "
      "echo two=$TWO | cut -c1-15; cat " +
      (world_.files / "token") + " || echo hidden; env | grep -c REAL_KEY";
  const Outcome outcome =
      with_key(look, {"--credential", "TWO=file:" + (world_.files / "token") + " for echo.test", "--pass-env", "REAL_KEY"});
  EXPECT_TRUE(has(outcome.out, "found=0")) << outcome;
  EXPECT_TRUE(has(outcome.out, "two=ghp_belljar")) << outcome;
  EXPECT_TRUE(has(outcome.out, "hidden\n")) << outcome;
  EXPECT_TRUE(outcome.out.ends_with("\n0\n")) << outcome;
  const Outcome twin = with_key("for f in /proc/[0-9]*/environ; do tr '\\0' '\\n' <$f 2>/dev/null | grep 0real[S]ecret; done",
                                {"--env", "PLAIN=0realSecret"});
  EXPECT_TRUE(has(twin.out, "PLAIN=0realSecret")) << "the search finds what is there" << twin;
  const Outcome trail = with_key(std::string(kCurl) + "-H \"X-Key: $API_KEY\" https://echo.test/",
                                 {"--json", "--audit", world_.files / "trail", "--report", world_.files / "report"});
  EXPECT_FALSE(has(trail.out + trail.err + read_file(world_.files / "trail") + read_file(world_.files / "report"), "0realSecret"));
}

TEST_F(EgressTls, ACredentialWithoutAValueEndsTheStart) {
  const auto start = [&](const std::string& credential) {
    return world_.belljar({"run", "--net", "proxy", "--allow-domain", "echo.test", "--credential", credential, "--", "true"});
  };
  for (const auto& [credential, word] :
       std::vector<std::pair<std::string, std::string>>{{"KEY=env:NOT_SET@echo.test", "the variable NOT_SET is not set"},
                                                        {"KEY=file:/nowhere@echo.test", "No such file"},
                                                        {"KEY=env:HOME@*", "would send it to every host"},
                                                        {"KEY", "it names no host"},
                                                        {"K-Y=env:HOME@echo.test", "is no variable's name"}}) {
    const Outcome refused = start(credential);
    EXPECT_EQ(refused.exit_code, 125) << credential << refused;
    EXPECT_TRUE(has(refused.err, word)) << credential << refused;
  }
  const Outcome none = world_.belljar({"run", "--credential", "KEY=env:HOME@echo.test", "--", "true"});
  EXPECT_TRUE(has(none.err, "cannot enforce network.credentials")) << none;
}

TEST_F(EgressTls, PolicyExplainSaysWhetherAHostIsLookedInto) {
  const auto explain = [&](const std::string& host, std::vector<std::string> more) {
    std::vector<std::string> args{"policy", "explain", "--host", host};
    args.insert(args.end(), more.begin(), more.end());
    return world_.belljar(args).out;
  };
  EXPECT_TRUE(has(explain("web.test", rules_), "looked into: yes: only the requests of GET web.test/a"));
  EXPECT_TRUE(has(explain("sub.web.test", rules_), "looked into: no"));
}

}  // namespace
}  // namespace belljar::test
