// `belljar run --net proxy` with the clients that people use, against servers of the test on the host's loopback. Loopback is not
// public, so each policy here names the address: the twin without that rule is refused.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "support/as_user.h"
#include "support/built.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

// Answers GET, HEAD, POST and everything else with the method and path, files below its directory with their content.
constexpr char kServer[] = R"(
import http.server, os, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *args): pass
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        answer = b'posted %d' % len(body)
        self.send_response(200); self.send_header('Content-Length', str(len(answer))); self.end_headers()
        self.wfile.write(answer)
os.chdir(sys.argv[1])
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
if len(sys.argv) > 2:
    import ssl
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print('port', server.server_port, 'ready', flush=True)
server.serve_forever()
)";

class Egress : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    BELLJAR_NEEDS(program("python3"));
    BELLJAR_NEEDS(program("curl"));
    files_.write("hello.txt", "hello from the host\n");
    server_.emplace(std::vector<std::string>{"python3", "-c", kServer, files_.path()});
    ASSERT_TRUE(server_->wait_for_output("ready")) << server_->err();
    port_ = port_of(*server_);
  }
  static std::string port_of(const Running& server) {
    const std::string& text = server.out();
    return text.substr(5, text.find(' ', 5) - 5);
  }
  Outcome run_in(std::vector<std::string> args) const {
    args.insert(args.begin(), {"run"});
    RunOptions options{.stdin_is = Input::kNull, .cwd = workspace_.path()};
    options.env["XDG_STATE_HOME"] = state_.path();
    return belljar(args, options);
  }
  // With a proxy that lets the server's address through. NO_PROXY names loopback: these clients are told to use the proxy even so.
  Outcome shell(const std::string& text, std::vector<std::string> more = {}) const {
    std::vector<std::string> args{
        "--net", "proxy",     "--allow-domain", "127.0.0.1:" + port_, "--allow-domain", "localhost",
        "--env", "NO_PROXY=", "--env",          "no_proxy=",          "--env",          "HOME=" + workspace_.path()};
    args.insert(args.end(), more.begin(), more.end());
    args.insert(args.end(), {"-c", text});
    return run_in(args);
  }
  std::string url(const std::string& path = "hello.txt", const std::string& host = "127.0.0.1") const {
    return "http://" + host + ":" + port_ + "/" + path;
  }

  TempDir workspace_, files_, state_;
  std::optional<Running> server_;
  std::string port_;
};

TEST_F(Egress, CurlReachesWhatIsListedAndIsToldWhatIsNot) {
  EXPECT_EQ(shell("curl -sS " + url()).out, "hello from the host\n");
  EXPECT_EQ(shell("curl -sS " + url("hello.txt", "localhost")).out, "hello from the host\n") << "by name";
  EXPECT_EQ(shell("curl -sS -d abc " + url("post")).out, "posted 3");
  EXPECT_EQ(shell("curl -sS -p " + url()).out, "hello from the host\n") << "CONNECT";
  EXPECT_EQ(shell("curl -sS -x socks5h://127.0.0.1:3128 " + url("hello.txt", "localhost")).out, "hello from the host\n");
  const Outcome refused = shell("curl -sS http://other.example/");
  EXPECT_NE(refused.out.find("other.example:80 is not on the list of allowed hosts"), std::string::npos) << refused;
  EXPECT_NE(shell("curl -sS https://other.example/").err.find("403"), std::string::npos);
}

TEST_F(Egress, OneRuleMakesTheDifference) {
  const std::vector<std::string> bare{"--net",     "proxy", "--allow-domain", "localhost", "--env",
                                      "NO_PROXY=", "--env", "no_proxy=",      "--"};
  std::vector<std::string> args = bare;
  args.insert(args.end(), {"curl", "-sS", url("hello.txt", "localhost")});
  const Outcome refused = run_in(args);
  EXPECT_NE(refused.out.find("not public (loopback)"), std::string::npos) << refused;
  args.insert(args.begin(), {"--allow-domain", "127.0.0.1:" + port_});
  EXPECT_EQ(run_in(args).out, "hello from the host\n");
  args.insert(args.begin(), {"--deny-domain", "localhost"});
  EXPECT_NE(run_in(args).out.find("denied by the rule localhost"), std::string::npos);
}

TEST_F(Egress, NothingGoesAroundTheProxy) {
  // The same address that the proxy reaches.
  EXPECT_EQ(shell("curl -sS -m 5 --noproxy '*' " + url()).exit_code, 7);
  EXPECT_NE(shell("python3 -c \"import socket; socket.create_connection(('127.0.0.1', " + port_ + "), 3)\"").exit_code, 0);
  const auto python = [](const std::string& text) { return "python3 -c \"import socket; " + text + "\""; };
  const Outcome direct = shell(python("s = socket.create_connection(('192.0.2.1', 8443), 3); print(s.recv(9))"));
  EXPECT_NE(direct.err.find("Connection reset by peer"), std::string::npos) << direct;
  const std::string datagram = "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('192.0.2.1', 443))";
  EXPECT_NE(shell(python(datagram)).err.find("Network is unreachable"), std::string::npos);
  EXPECT_NE(shell(python("socket.create_connection(('2001:db8::1', 80), 3)")).err.find("Network is unreachable"),
            std::string::npos);
  EXPECT_NE(shell(python("socket.getaddrinfo('example.com', 80)")).err.find("Name or service not known"), std::string::npos);
  // Without it: no names, no way.
  const std::vector<std::string> bare{"--transparent=false"};
  EXPECT_NE(shell(python("socket.create_connection(('192.0.2.1', 8443), 3)"), bare).err.find("Network is unreachable"),
            std::string::npos);
  EXPECT_NE(shell(python("socket.getaddrinfo('example.com', 80)"), bare).exit_code, 0);
  EXPECT_EQ(shell("tail -n +2 /proc/net/route", bare).out, "") << "there is no route";
  EXPECT_EQ(shell("curl -sS " + url()).out, "hello from the host\n") << "the twin";
}

TEST_F(Egress, OwnServersInsideAreReachedDirectly) {
  const Outcome outcome =
      run_in({"--net", "proxy", "-c",
              "python3 -m http.server 8099 --bind 127.0.0.1 2>/dev/null & i=0; until curl -sS -o /dev/null http://127.0.0.1:8099/ "
              "2>/dev/null && echo direct || [ $i = 600 ]; do sleep 0.1; i=$((i+1)); done; kill $!"});
  EXPECT_EQ(outcome.out, "direct\n") << outcome;
}

TEST_F(Egress, LimitedReadsAndDoesNotWrite) {
  EXPECT_EQ(shell("curl -sS " + url(), {"--net-methods", "limited"}).out, "hello from the host\n");
  const Outcome refused = shell("curl -sS -d abc " + url(), {"--net-methods", "limited"});
  EXPECT_NE(refused.out.find("the method POST is refused"), std::string::npos) << refused;
  EXPECT_EQ(shell("curl -sS -p " + url(), {"--net-methods", "limited"}).out, "hello from the host\n") << "looked into";
  const Outcome inside = shell("curl -sS -p -d abc " + url(), {"--net-methods", "limited"});
  EXPECT_NE(inside.out.find("the method POST is refused"), std::string::npos) << inside;
  const Outcome whole = shell("curl -sS -p " + url(), {"--net-methods", "limited", "--tls-passthrough", "*"});
  EXPECT_NE(whole.err.find("403"), std::string::npos) << "what may not be looked into is refused" << whole;
}

TEST_F(Egress, TheCredentialIsInTheEnvironmentAndNowhereElse) {
  EXPECT_EQ(shell("curl -sS " + url(), {"--proxy-auth"}).out, "hello from the host\n");
  EXPECT_NE(shell("curl -sS -x http://127.0.0.1:3128 " + url(), {"--proxy-auth"}).out.find("credential"), std::string::npos);
}

TEST_F(Egress, TheReportTellsEachDecision) {
  const Outcome outcome = shell("curl -sS " + url() + "; curl -sS http://other.example/x; curl -sS http://missing.invalid/",
                                {"--allow-domain", "missing.invalid", "--json"});
  EXPECT_NE(outcome.out.find(R"("protocol":"http","method":"GET","host":"127.0.0.1","port":)" + port_ +
                             R"(,"address":"127.0.0.1","allowed":true)"),
            std::string::npos)
      << outcome;
  EXPECT_NE(outcome.out.find(R"("host":"other.example","port":80,"address":"","allowed":false,"reason":"not-listed")"),
            std::string::npos)
      << outcome;
  EXPECT_NE(outcome.out.find(R"("host":"missing.invalid","port":80,"address":"","allowed":false,"reason":"dns")"),
            std::string::npos)
      << outcome;
  EXPECT_NE(
      outcome.out.find(
          R"("operation":"egress","target":"other.example:80","rule":"network.allowed_domains","origin":{"layer":"flag --allow-domain")"),
      std::string::npos)
      << outcome;
  EXPECT_NE(outcome.out.find(R"("clause":"network.domains")"), std::string::npos);
}

TEST_F(Egress, WgetGitPipAndNpm) {
  if (!find_program("wget").empty()) {
    EXPECT_EQ(shell("wget -q -O - " + url()).out, "hello from the host\n");
  }
  if (!find_program("git").empty()) {
    ASSERT_EQ(run({"/bin/sh", "-c",
                   "cd " + files_.path() +
                       " && git init -q src && cd src && git -c user.name=t -c user.email=t@t commit -q --allow-empty -m first && "
                       "cd .. && "
                       "git clone -q --bare src repo.git && cd repo.git && git update-server-info"})
                  .exit_code,
              0);
    const Outcome clone = shell("git clone -q " + url("repo.git") + " copy && git -C copy log --format=%s");
    EXPECT_EQ(clone.out, "first\n") << clone;
    EXPECT_NE(shell("git clone -q http://other.example/repo.git other").exit_code, 0);
  }
  files_.make_dir("simple/tiny");
  // The interpreter itself: a version manager's shim wants to write beside it.
  const std::string python = run({"python3", "-c", "import sys; print(sys.executable, end='')"}).out;
  if (run({"python3", "-c",
           "import zipfile,sys; z=zipfile.ZipFile(sys.argv[1],'w'); z.writestr('tiny.py','print(\"tiny works\")'); "
           "z.writestr('tiny-1.0.dist-info/METADATA','Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n'); "
           "z.writestr('tiny-1.0.dist-info/WHEEL','Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: "
           "py3-none-any\\n'); "
           "z.writestr('tiny-1.0.dist-info/RECORD','tiny.py,,\\ntiny-1.0.dist-info/METADATA,,\\ntiny-1.0.dist-info/"
           "WHEEL,,\\ntiny-1.0.dist-info/RECORD,,\\n')",
           files_ / "simple/tiny/tiny-1.0-py3-none-any.whl"})
              .exit_code == 0 &&
      run({"python3", "-m", "pip", "--version"}).exit_code == 0) {
    const Outcome pip = shell(python + " -m pip install -q --disable-pip-version-check --no-cache-dir --target lib --index-url " +
                              url("simple/") + " tiny && PYTHONPATH=lib " + python + " -m tiny");
    EXPECT_EQ(pip.out, "tiny works\n") << pip;
  }
  if (!find_program("npm").empty()) {
    ASSERT_EQ(run({"/bin/sh", "-c",
                   "cd " + files_.path() +
                       " && mkdir -p pack/package && echo '{\"name\":\"tiny\",\"version\":\"1.0.0\"}' > pack/package/package.json "
                       "&& tar -C pack -czf tiny.tgz package"})
                  .exit_code,
              0);
    const Outcome npm = shell(
        "npm_config_noproxy= npm install --fetch-retries=0 --silent --no-audit --no-fund --no-update-notifier --cache /tmp/npm " +
        url("tiny.tgz") + " && ls node_modules");
    EXPECT_EQ(npm.out, "tiny\n") << npm;
  }
}

TEST_F(Egress, TlsPassesThroughUntouched) {
  BELLJAR_NEEDS(program("openssl"));
  const TempDir keys;
  ASSERT_EQ(run({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                 keys / "key.pem", "-out", keys / "cert.pem", "-days", "2", "-subj", "/CN=localhost", "-addext",
                 "subjectAltName=DNS:localhost"})
                .exit_code,
            0);
  Running tls({"python3", "-c", kServer, files_.path(), keys / "cert.pem", keys / "key.pem"});
  ASSERT_TRUE(tls.wait_for_output("ready")) << tls.err();
  const std::string port = port_of(tls);
  workspace_.write("cert.pem", read_file(keys / "cert.pem"));
  const std::vector<std::string> open{"--allow-domain", "127.0.0.1:" + port};
  const std::string https = "https://localhost:" + port + "/hello.txt";
  EXPECT_EQ(shell("curl -sS --cacert cert.pem " + https, open).out, "hello from the host\n");
  EXPECT_EQ(shell("python3 -c \"import ssl, urllib.request; print(urllib.request.urlopen('" + https +
                      "', context=ssl.create_default_context(cafile='cert.pem')).read().decode(), end='')\"",
                  open)
                .out,
            "hello from the host\n");
  EXPECT_NE(shell("curl -sS --cacert cert.pem " + https).err.find("403"), std::string::npos) << "the twin without the rule";
}

TEST_F(Egress, JavaFindsTheProxy) {
  BELLJAR_NEEDS(program("javac"));
  workspace_.write(
      "Get.java",
      "public class Get { public static void main(String[] a) throws Exception { System.setProperty(\"http.nonProxyHosts\", \"\"); "
      "System.out.print(new String(new java.net.URL(a[0]).openStream().readAllBytes())); } }");
  const Outcome java = shell("java Get.java " + url());
  EXPECT_EQ(java.out, "hello from the host\n") << java;
}

// The front is the proxy: with it the door goes, and the command.
TEST_F(Egress, AKilledFrontLeavesNoOpenDoor) {
  const Leftovers left({workspace_.path()});
  {
    std::vector<std::string> args{
        kBelljar, "run", "--net", "proxy", "--allow-domain", "127.0.0.1:" + port_, "-c", "echo up; sleep 1000"};
    Running front(args, {.stdin_is = Input::kNull, .cwd = workspace_.path()});
    ASSERT_TRUE(front.wait_for_output("up"));
    front.send(SIGKILL);
    EXPECT_EQ(front.wait().signal, SIGKILL);
  }
  EXPECT_EQ(left.report(), "");
}

}  // namespace
}  // namespace belljar::test
