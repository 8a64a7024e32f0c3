// `belljar run --net proxy` in a small internet with a name server of its own: programs that know nothing of a proxy, and every way
// around the rules that we know of, each beside its twin that is allowed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/as_user.h"
#include "support/identity.h"
#include "support/world.h"

namespace belljar::test {
namespace {

class EgressWorld : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    if (const std::string missing = World::missing(); !missing.empty()) GTEST_SKIP() << missing;
    world_.files.make_dir("files");
  }
  Outcome shell(const std::string& text, std::vector<std::string> more = {}) const {
    std::vector<std::string> args{"run", "--net", "proxy", "--allow-domain", "**.web.test", "--allow-domain", "api.test:8081"};
    args.insert(args.end(), more.begin(), more.end());
    args.insert(args.end(), {"-c", text});
    return world_.belljar(args);
  }
  Outcome direct(const std::string& text, std::vector<std::string> more = {}) const {
    return shell(kNoProxy + text, std::move(more));
  }
  Outcome python(const std::string& text, std::vector<std::string> more = {}) const {
    world_.workspace.write("try.py", "import socket\n" + text);
    return direct("python3 try.py", std::move(more));
  }

  World world_;
};

TEST_F(EgressWorld, AProgramThatKnowsNoProxyIsServedByTheSameRules) {
  EXPECT_EQ(direct("curl -sS -m 60 http://web.test/a").out, "GET /a host=web.test at=93.184.0.80 body=0\n");
  EXPECT_EQ(direct("curl -sS -m 60 http://sub.web.test:8081/b").out, "GET /b host=sub.web.test:8081 at=93.184.0.82 body=0\n");
  EXPECT_EQ(direct("curl -sS -m 60 http://api.test:8081/").out, "GET / host=api.test:8081 at=93.184.0.83 body=0\n");
  const Outcome port = direct("curl -sS -m 60 http://api.test/");
  EXPECT_NE(port.out.find("api.test:80 is not on the list of allowed hosts"), std::string::npos) << port;
  const Outcome name = direct("curl -sS -m 60 http://other.test/");
  EXPECT_NE(name.err.find("Could not resolve host"), std::string::npos) << name;
  EXPECT_EQ(world_.asked().find("other.test"), std::string::npos) << "a refused name is not looked up";
  EXPECT_EQ(python("print(socket.create_connection(('web.test', 25)).recv(99))").out, "b'220 hello at 93.184.0.80\\r\\n'\n")
      << "a server that speaks first";
}

TEST_F(EgressWorld, AnAddressMeetsTheSameRules) {
  EXPECT_EQ(direct("curl -sS -m 60 http://93.184.0.81/", {"--allow-domain", "93.184.0.81"}).out,
            "GET / host=93.184.0.81 at=93.184.0.81 body=0\n");
  const Outcome refused = direct("curl -sS -m 60 http://93.184.0.81/; curl -sS -m 60 http://93.184.0.81:8081/");
  EXPECT_NE(refused.out.find("93.184.0.81:80 is not on the list"), std::string::npos) << refused;
  // A reset, which curl sees while it connects (7), asks whom it is connected to (55) or reads (56).
  EXPECT_TRUE(refused.exit_code == 7 || refused.exit_code == 55 || refused.exit_code == 56) << refused;
  EXPECT_EQ(refused.out.find(" at="), std::string::npos) << refused;
  EXPECT_EQ(direct("curl -sS -m 60 http://93.184.0.81/", {"--allow-domain", "93.184.0.0/16", "--deny-domain", "93.184.0.81"})
                .out.find("GET"),
            std::string::npos);
}

TEST_F(EgressWorld, TheResolverInsideAnswersNamesOfTheListOnly) {
  const std::string ask = "print(socket.gethostbyname(NAME))";
  const auto lookup = [&](const std::string& name) { return python("NAME = '" + name + "'\n" + ask); };
  EXPECT_EQ(lookup("web.test").out.substr(0, 7), "198.19.") << "an address that means this name in here only";
  EXPECT_EQ(lookup("WEB.test.").out.substr(0, 7), "198.19.");
  EXPECT_EQ(lookup("localhost").out, "127.0.0.1\n");
  for (const char* name : {"other.test", "web.test.other.test", "xweb.test", "private.test", "missing.web.test"})
    EXPECT_NE(lookup(name).err.find("Name or service not known"), std::string::npos) << name;
  const Outcome empty = python("socket.getaddrinfo('empty.test', 80)", {"--allow-domain", "empty.test"});
  EXPECT_NE(empty.err.find("No address associated with hostname"), std::string::npos) << empty;
  const Outcome record = shell("python3 -c \"import socket; socket.getaddrinfo('data.other.test', 80)\" 2>/dev/null", {"--json"});
  EXPECT_NE(record.out.find(R"("protocol":"dns","method":"","host":"data.other.test")"), std::string::npos) << record;
  EXPECT_NE(record.out.find(R"("operation":"egress","target":"data.other.test")"), std::string::npos) << record;
}

TEST_F(EgressWorld, ALookupIsExplainedAsOneAct) {
  const Outcome told = python(
      "try: socket.getaddrinfo('other.test', 80)\nexcept OSError: pass\n"
      "try: socket.create_connection(('93.184.0.81', 80)).recv(9)\nexcept OSError: pass\nraise SystemExit(1)\n");
  EXPECT_EQ(told.exit_code, 1) << told;
  const Outcome words = world_.belljar({"explain"});
  EXPECT_NE(words.out.find("; 2 acts refused\n"), std::string::npos) << "the halves of a lookup are one" << words;
  EXPECT_NE(words.out.find("asked for the name `other.test`, and got ENOENT"), std::string::npos) << words;
  EXPECT_NE(words.out.find("tried to reach `93.184.0.81:80`, and got EACCES"), std::string::npos) << words;
}

TEST_F(EgressWorld, ANameThatNoHostCanHaveIsRecordedToo) {
  const std::string ask =
      "for name in (b'\\x0csecret data!\\4evil', b'\\3x\\x01y\\4evil', b'\\x011\\x010\\x010\\x03127\\7in-addr\\4arpa'):\n"
      " s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(60); s.connect(('127.0.0.53', 53))\n"
      " s.send(b'\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0' + name + b'\\0\\0\\1\\0\\1'); s.recv(999)\n";
  const Outcome told = python(ask, {"--json"});
  EXPECT_NE(told.out.find(R"("operation":"egress","target":"secret data!.evil")"), std::string::npos) << told;
  EXPECT_NE(told.out.find(R"("protocol":"dns","method":"","host":"x)"), std::string::npos) << told;
  EXPECT_EQ(told.out.find("in-addr"), std::string::npos) << "the name of loopback is no violation" << told;
}

TEST_F(EgressWorld, ACredentialOfTheProxyHoldsForEveryProgram) {
  EXPECT_NE(direct("curl -sS -m 60 http://web.test/", {"--proxy-auth"}).exit_code, 0) << "nothing is served without it";
  EXPECT_EQ(shell("curl -sS -m 60 http://web.test/a", {"--proxy-auth"}).out, "GET /a host=web.test at=93.184.0.80 body=0\n");
  const Outcome both = shell("true", {"--proxy-auth", "--transparent"});
  EXPECT_EQ(both.exit_code, 125) << both;
  EXPECT_NE(both.err.find("`network.proxy_auth` guards nothing"), std::string::npos) << both;
}

TEST_F(EgressWorld, WhatIsLearnedOfTheProxyRunsAgain) {
  const std::string policy = world_.files / "learned.toml";
  for (const std::string& before : {std::string(), std::string(kNoProxy)}) {
    const std::string get = before + "curl -sS -m 60 http://web.test:8081/";
    const Outcome learned =
        world_.belljar({"learn", "--net", "proxy", "--allow-domain", "**.test", "--output", policy, "--", "sh", "-c", get});
    EXPECT_EQ(learned.exit_code, 0) << learned;
    const Outcome again = world_.belljar({"run", "--policy", policy, "--", "sh", "-c", get});
    EXPECT_EQ(again.out, "GET / host=web.test:8081 at=93.184.0.80 body=0\n") << again << read_file(policy);
    EXPECT_EQ(read_file(policy).find("198.19."), std::string::npos) << read_file(policy);
    const Outcome other = world_.belljar({"run", "--policy", policy, "-c", "curl -sS -m 60 http://api.test:8081/"});
    EXPECT_NE(other.out.find("api.test:8081 is not on the list"), std::string::npos) << other;
  }
}

TEST_F(EgressWorld, AnyResolverThatAProgramAsksIsOurs) {
  const std::string ask =
      "q = b'\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0' + LABELS + b'\\0\\0\\1\\0\\1'\n"
      "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(60); s.connect(('8.8.8.8', 53)); s.send(q)\n"
      "a = s.recv(999); print(a[3] & 15, a[7])\n"
      "t = socket.create_connection((SERVER, 53)); t.sendall(len(q).to_bytes(2, 'big') + q); b = t.recv(999)\n"
      "print(b[5] & 15, b[9])\n";
  EXPECT_EQ(python("LABELS = b'\\3web\\4test'; SERVER = '127.0.0.53'\n" + ask).out, "0 1\n0 1\n");
  EXPECT_EQ(python("LABELS = b'\\3web\\4test'; SERVER = '9.9.9.9'\n" + ask).out, "0 1\n0 1\n");
  EXPECT_EQ(python("LABELS = b'\\5other\\4test'; SERVER = '9.9.9.9'\n" + ask).out, "3 0\n3 0\n");
  EXPECT_EQ(world_.asked().find("other.test"), std::string::npos);
}

TEST_F(EgressWorld, UdpBesideDnsDoesNotLeaveAndIsTold) {
  const Outcome outcome = shell(
      "python3 -c \"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
      "s.connect((socket.gethostbyname('web.test'), "
      "443))\"",
      {"--json"});
  EXPECT_NE(outcome.out.find("Network is unreachable"), std::string::npos) << outcome;
  EXPECT_NE(outcome.out.find(R"("operation":"udp-connect","target":"198.19.)"), std::string::npos) << outcome;
}

TEST_F(EgressWorld, NamesThatLeadInwardStayOutside) {
  const std::vector<std::string> all{"--allow-domain", "*"};
  for (const char* name : {"private.test", "loop.test", "meta.test"}) {
    const Outcome outcome = direct(std::string("curl -sS -m 60 http://") + name + "/", all);
    EXPECT_NE(outcome.out.find("resolves to an address that is not public"), std::string::npos) << name << outcome;
  }
  EXPECT_EQ(direct("curl -sS -m 60 http://mixed.test/", all).out, "GET / host=mixed.test at=93.184.0.80 body=0\n")
      << "the public one of two addresses is dialled";
  const Outcome again =
      direct("curl -sS -m 60 http://rebind.test/1; curl -sS -m 60 http://rebind.test/2; curl -sS -m 60 http://rebind.test/3", all);
  EXPECT_EQ(again.out.find("at=127.0.0.1"), std::string::npos) << again;
  EXPECT_NE(again.out.find("not public (loopback)"), std::string::npos) << again;
}

TEST_F(EgressWorld, ARefusalNamesTheProcess) {
  const Outcome outcome = direct("curl -sS -m 60 http://93.184.0.81:8081/ || true", {"--json"});
  EXPECT_NE(outcome.out.find(R"("program":"curl","operation":"egress","target":"93.184.0.81:8081")"), std::string::npos) << outcome;
  EXPECT_NE(outcome.out.find(R"("program":"curl","protocol":"direct")"), std::string::npos) << outcome;
}

TEST_F(EgressWorld, LimitedLooksIntoWhatCameDirectly) {
  const std::vector<std::string> limited{"--net-methods", "limited"};
  EXPECT_EQ(direct("curl -sS -m 60 http://web.test/a", limited).out, "GET /a host=web.test at=93.184.0.80 body=0\n");
  EXPECT_NE(direct("curl -sS -m 60 -d x http://web.test/a", limited).out.find("the method POST is refused"), std::string::npos);
  EXPECT_NE(direct("curl -sS -m 60 -H 'Host: other.test' http://web.test/a", limited).out.find("Host names another place"),
            std::string::npos);
  EXPECT_NE(
      python("s = socket.create_connection(('web.test', 7)); s.sendall(b'\\0\\3\\1'); print(s.recv(9))", limited).err.find("reset"),
      std::string::npos);
  EXPECT_EQ(python("s = socket.create_connection(('web.test', 7)); s.sendall(b'\\x16\\3\\1'); print(s.recv(9))").out,
            "b'\\x16\\x03\\x01'\n");
}

// Real programs with no proxy in their environment.
TEST_F(EgressWorld, NodeJavaWgetAndAStaticProgram) {
  if (!find_program("node").empty()) {
    EXPECT_EQ(direct("node -e \"fetch('http://web.test/n').then(r => r.text()).then(t => process.stdout.write(t))\"").out,
              "GET /n host=web.test at=93.184.0.80 body=0\n");
  }
  if (!find_program("wget").empty()) {
    EXPECT_EQ(direct("wget -q -O - http://web.test/w").out, "GET /w host=web.test at=93.184.0.80 body=0\n");
  }
  if (!find_program("javac").empty()) {
    world_.workspace.write("Get.java",
                           "public class Get { public static void main(String[] a) throws Exception { "
                           "System.out.print(new String(new java.net.URL(a[0]).openStream().readAllBytes())); } }");
    EXPECT_EQ(direct("java Get.java http://web.test/j").out, "GET /j host=web.test at=93.184.0.80 body=0\n");
  }
  if (!find_program("cc").empty()) {
    world_.workspace.write("ask.c", R"(
#include <netdb.h>
#include <stdio.h>
#include <unistd.h>
#include <arpa/inet.h>
int main(int n, char **v) {  /* by hand, as a static program without NSS does */
  unsigned char q[64] = {0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, 'w', 'e', 'b', 4, 't', 'e', 's', 't', 0, 0, 1, 0, 1}, a[512];
  struct sockaddr_in d = {AF_INET, htons(53), {htonl(0x7f000035)}}, w = {AF_INET, htons(80)};
  int u = socket(AF_INET, SOCK_DGRAM, 0), t = socket(AF_INET, SOCK_STREAM, 0);
  if (sendto(u, q, 26, 0, (void *)&d, sizeof d) != 26) return 1;
  long got = recv(u, a, sizeof a, 0);
  __builtin_memcpy(&w.sin_addr, a + got - 4, 4);
  if (connect(t, (void *)&w, sizeof w)) return 2;
  dprintf(t, "GET /c HTTP/1.1\r\nHost: web.test\r\nConnection: close\r\n\r\n");
  while ((got = read(t, a, sizeof a)) > 0) write(1, a, got);
})");
    const Outcome built = run({"cc", "-static", "-o", world_.workspace / "ask", world_.workspace / "ask.c"});
    if (built.exit_code == 0) {
      EXPECT_NE(direct("./ask").out.find("GET /c host=web.test at=93.184.0.80 body=0\n"), std::string::npos);
    }
  }
}

// NW-17, NW-18 and their kin: a redirect, another Host, another target, another port, a request behind an allowed one.
TEST_F(EgressWorld, EachWayAroundTheNameEndsAtTheRules) {
  EXPECT_EQ(shell("curl -sSL http://web.test/to/sub.web.test/r").out, "GET /r host=sub.web.test at=93.184.0.82 body=0\n");
  EXPECT_NE(shell("curl -sSL http://web.test/to/other.test/r").out.find("other.test:80 is not on the list"), std::string::npos);
  EXPECT_NE(shell("curl -sS -H 'Host: other.test' http://web.test/").out.find("Host names another place"), std::string::npos);
  EXPECT_EQ(shell("curl -sS -H 'Host: WEB.test.' http://web.test/").out, "GET / host=web.test at=93.184.0.80 body=0\n");
  EXPECT_NE(shell("curl -sS http://web.test@other.test/").out.find("other.test"), std::string::npos);
  EXPECT_NE(shell("curl -sS -p http://93.184.0.80/").err.find("403"), std::string::npos)
      << "CONNECT to the address of an allowed name";
  EXPECT_EQ(shell("curl -sS -p http://93.184.0.80/", {"--allow-domain", "93.184.0.80"}).out,
            "GET / host=93.184.0.80 at=93.184.0.80 body=0\n");
  for (const char* name : {"web.test.other.test", "xweb.test", "web.test%2eother.test", "web.test%00.other.test", "wеb.test"}) {
    const Outcome outcome = shell(std::string("curl -sS -m 60 -x http://127.0.0.1:3128 'http://") + name + "/'");
    EXPECT_EQ(outcome.out.find(" at="), std::string::npos) << name << outcome;
  }
  EXPECT_EQ(world_.asked().find("other.test"), std::string::npos);
}

// What is sent to port 3128 by hand: {words, whether it may reach a server}.
TEST_F(EgressWorld, WordsToTheProxyThatTwoReadersWouldReadDifferently) {
  const std::pair<const char*, bool> cases[] = {
      {"GET http://web.test/ok HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n", true},
      {"GET http://web.test/ HTTP/1.1\\r\\nHost: web.test\\r\\nHost: other.test\\r\\n\\r\\n", false},
      {"GET http://web.test/ HTTP/1.1\\nHost: web.test\\n\\n", false},
      {"GET http://web.test/ HTTP/1.1\\r\\nHost: web.test\\r\\n X: folded\\r\\n\\r\\n", false},
      {"GET http://web.test\\x00.other.test/ HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n", false},
      {"GET http://web.test#@other.test/ HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n", false},
      {"GET http://other.test\\\\@web.test/ HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n", false},
      {"GET /x HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n", false},
      {"POST http://web.test/ HTTP/1.1\\r\\nHost: web.test\\r\\nContent-Length: 3\\r\\nTransfer-Encoding: "
       "chunked\\r\\n\\r\\n0\\r\\n\\r\\n",
       false},
      {"GET ftp://web.test/ HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n", false},
      {"CONNECT 2130706433:80 HTTP/1.1\\r\\n\\r\\nGET /secret HTTP/1.0\\r\\n\\r\\n", false},
      {"CONNECT [::ffff:127.0.0.1]:80 HTTP/1.1\\r\\n\\r\\nGET /secret HTTP/1.0\\r\\n\\r\\n", false},
      {"CONNECT web.test:80 HTTP/1.1\\r\\n\\r\\nGET /ok HTTP/1.0\\r\\nHost: web.test\\r\\n\\r\\n", true},
      {"CONNECT web.test HTTP/1.1\\r\\n\\r\\n", false},
      {"CONNECT web.test:0 HTTP/1.1\\r\\n\\r\\n", false},
  };
  std::string script =
      "def say(words):\n s = socket.create_connection(('127.0.0.1', 3128)); s.settimeout(60)\n s.sendall(words); "
      "s.shutdown(1); a = b''\n try:\n  while d := s.recv(9999): a += d\n except OSError: pass\n print(b' at=' in a)\n";
  std::string expected;
  for (const auto& [words, reaches] : cases) {
    std::string text;
    for (const char* c = words; *c != 0; ++c) {
      if (*c == '\\' && c[1] == '\\') ++c;
      text += *c;
    }
    script += "say(b'" + text + "')\n";
    expected += reaches ? "True\n" : "False\n";
  }
  EXPECT_EQ(python(script).out, expected) << script;
}

TEST_F(EgressWorld, WebsocketsPass) {
  const std::string client =
      "def ws(s, target):\n"
      " s.sendall(b'GET ' + target + b' HTTP/1.1\\r\\nHost: web.test\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
      "Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n')\n"
      " a = b''\n while b'\\r\\n\\r\\n' not in a: a += s.recv(999)\n"
      " s.sendall(b'\\x81\\x85abcd\\x09\\x07\\x0f\\x08\\x0e'); print(b' 101 ' in a and b's3pPLMBiTxaQ9kYGzzhZRbK+xOo=' in a, "
      "len(s.recv(99)))\n"
      "p = ('127.0.0.1', 3128)\n"
      "s = socket.create_connection(p); s.sendall(b'CONNECT web.test:80 HTTP/1.1\\r\\n\\r\\n'); s.recv(999); ws(s, b'/ws')\n"
      "ws(socket.create_connection(p), b'http://web.test/ws')\n"
      "ws(socket.create_connection(('web.test', 80)), b'/ws')\n";
  EXPECT_EQ(python(client).out, "True 11\nTrue 11\nTrue 11\n");
}

TEST_F(EgressWorld, AnOpenConnectionLeavesItsPortToServersInside) {
  const std::string text =
      "import os, socket\n"
      "out = socket.create_connection(('web.test', 8081))\n"
      "inside = socket.create_server(('0.0.0.0', 8081))\n"
      "asks = socket.create_connection(('127.0.0.1', 8081)); inside.accept()[0].sendall(b'inside'); print(asks.recv(9))\n"
      "out.sendall(b'GET /a HTTP/1.0\\r\\nHost: web.test:8081\\r\\n\\r\\n'); print(out.makefile().read().split('\\n')[-2])\n"
      "try: socket.create_server(('0.0.0.0', 3128)); print('taken over')\n"
      "except OSError as error: print(os.strerror(error.errno))\n";
  world_.workspace.write("both.py", text);
  EXPECT_EQ(direct("python3 both.py", {"--allow-domain", "web.test"}).out,
            "b'inside'\nGET /a host=web.test:8081 at=93.184.0.80 body=0\nAddress already in use\n");
}

TEST_F(EgressWorld, TlsWithAndWithoutTheProxy) {
  BELLJAR_NEEDS(program("openssl"));
  ASSERT_EQ(run({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                 world_.files / "key.pem", "-out", world_.files / "cert.pem", "-days", "2", "-subj", "/CN=web.test", "-addext",
                 "subjectAltName=DNS:web.test"})
                .exit_code,
            0);
  world_.workspace.write("cert.pem", read_file(world_.files / "cert.pem"));
  EXPECT_EQ(shell("curl -sS --cacert cert.pem https://web.test/s").out, "GET /s host=web.test at=93.184.0.80 body=0\n");
  EXPECT_EQ(direct("curl -sS --cacert cert.pem https://web.test/s").out, "GET /s host=web.test at=93.184.0.80 body=0\n");
  const std::string client =
      "printf 'GET /o HTTP/1.0\\r\\nHost: web.test\\r\\n\\r\\n' | openssl s_client -quiet -verify_return_error -CAfile cert.pem ";
  EXPECT_NE(direct(client + "-connect web.test:443 -servername web.test 2>/dev/null").out.find("GET /o host=web.test"),
            std::string::npos);
  EXPECT_NE(shell(client + "-proxy 127.0.0.1:3128 -connect web.test:443 -servername web.test 2>/dev/null")
                .out.find("GET /o host=web.test"),
            std::string::npos);
  EXPECT_EQ(direct(client + "-connect other.test:443 2>/dev/null").out, "");
}

}  // namespace
}  // namespace belljar::test
