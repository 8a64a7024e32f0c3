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

constexpr char kNoProxy[] =
    "unset HTTP_PROXY http_proxy HTTPS_PROXY https_proxy ALL_PROXY all_proxy JAVA_TOOL_OPTIONS NODE_USE_ENV_PROXY; ";

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
  EXPECT_EQ(direct("curl -sS -m 9 http://web.test/a").out, "GET /a host=web.test at=93.184.0.80 body=0\n");
  EXPECT_EQ(direct("curl -sS -m 9 http://sub.web.test:8081/b").out, "GET /b host=sub.web.test:8081 at=93.184.0.82 body=0\n");
  EXPECT_EQ(direct("curl -sS -m 9 http://api.test:8081/").out, "GET / host=api.test:8081 at=93.184.0.83 body=0\n");
  const Outcome port = direct("curl -sS -m 9 http://api.test/");
  EXPECT_NE(port.out.find("api.test:80 is not on the list of allowed hosts"), std::string::npos) << port;
  const Outcome name = direct("curl -sS -m 9 http://other.test/");
  EXPECT_NE(name.err.find("Could not resolve host"), std::string::npos) << name;
  EXPECT_EQ(world_.asked().find("other.test"), std::string::npos) << "a refused name is not looked up";
  EXPECT_EQ(python("print(socket.create_connection(('web.test', 25)).recv(99))").out, "b'220 hello at 93.184.0.80\\r\\n'\n")
      << "a server that speaks first";
}

TEST_F(EgressWorld, AnAddressMeetsTheSameRules) {
  EXPECT_EQ(direct("curl -sS -m 9 http://93.184.0.81/", {"--allow-domain", "93.184.0.81"}).out,
            "GET / host=93.184.0.81 at=93.184.0.81 body=0\n");
  const Outcome refused = direct("curl -sS -m 9 http://93.184.0.81/; curl -sS -m 9 http://93.184.0.81:8081/");
  EXPECT_NE(refused.out.find("93.184.0.81:80 is not on the list"), std::string::npos) << refused;
  EXPECT_NE(refused.err.find("reset"), std::string::npos) << refused;
  EXPECT_EQ(direct("curl -sS -m 9 http://93.184.0.81/", {"--allow-domain", "93.184.0.0/16", "--deny-domain", "93.184.0.81"})
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
  const Outcome record = shell("python3 -c \"import socket; socket.getaddrinfo('data.other.test', 80)\" 2>/dev/null", {"--json"});
  EXPECT_NE(record.out.find(R"("protocol":"dns","method":"","host":"data.other.test")"), std::string::npos) << record;
  EXPECT_NE(record.out.find(R"("operation":"egress","target":"data.other.test")"), std::string::npos) << record;
}

TEST_F(EgressWorld, AnyResolverThatAProgramAsksIsOurs) {
  const std::string ask =
      "q = b'\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0' + LABELS + b'\\0\\0\\1\\0\\1'\n"
      "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(9); s.connect(('8.8.8.8', 53)); s.send(q)\n"
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
  EXPECT_NE(outcome.out.find(R"("operation":"connect","target":"198.19.)"), std::string::npos) << outcome;
}

TEST_F(EgressWorld, NamesThatLeadInwardStayOutside) {
  const std::vector<std::string> all{"--allow-domain", "*"};
  for (const char* name : {"private.test", "loop.test", "meta.test"}) {
    const Outcome outcome = direct(std::string("curl -sS -m 9 http://") + name + "/", all);
    EXPECT_NE(outcome.out.find("resolves to an address that is not public"), std::string::npos) << name << outcome;
  }
  EXPECT_EQ(direct("curl -sS -m 9 http://mixed.test/", all).out, "GET / host=mixed.test at=93.184.0.80 body=0\n")
      << "the public one of two addresses is dialled";
  const Outcome again =
      direct("curl -sS -m 9 http://rebind.test/1; curl -sS -m 9 http://rebind.test/2; curl -sS -m 9 http://rebind.test/3", all);
  EXPECT_EQ(again.out.find("at=127.0.0.1"), std::string::npos) << again;
  EXPECT_NE(again.out.find("not public (loopback)"), std::string::npos) << again;
}

TEST_F(EgressWorld, ARefusalNamesTheProcess) {
  const Outcome outcome = direct("curl -sS -m 9 http://93.184.0.81:8081/ || true", {"--json"});
  EXPECT_NE(outcome.out.find(R"("program":"curl","operation":"egress","target":"93.184.0.81:8081")"), std::string::npos) << outcome;
  EXPECT_NE(outcome.out.find(R"("program":"curl","protocol":"direct")"), std::string::npos) << outcome;
}

TEST_F(EgressWorld, LimitedLooksIntoWhatCameDirectly) {
  const std::vector<std::string> limited{"--net-methods", "limited"};
  EXPECT_EQ(direct("curl -sS -m 9 http://web.test/a", limited).out, "GET /a host=web.test at=93.184.0.80 body=0\n");
  EXPECT_NE(direct("curl -sS -m 9 -d x http://web.test/a", limited).out.find("the method POST is refused"), std::string::npos);
  EXPECT_NE(direct("curl -sS -m 9 -H 'Host: other.test' http://web.test/a", limited).out.find("Host names another place"),
            std::string::npos);
  EXPECT_NE(python("s = socket.create_connection(('web.test', 7)); s.sendall(b'\\x16\\3\\1'); print(s.recv(9))", limited)
                .err.find("reset"),
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

}  // namespace
}  // namespace belljar::test
