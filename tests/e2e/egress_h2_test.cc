// HTTP/2 where TLS is looked into: real clients and servers of it. Each refusal stands beside what is allowed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "e2e/support_tls.h"
#include "support/built.h"

namespace belljar::test {
namespace {

const std::string kHere = std::string(kSourceDir) + "/tests/e2e/";
constexpr char kPython[] = "/usr/bin/python3";  // the distribution's, which has its gRPC

class Http2 : public TlsWorld {
 protected:
  // `belljar run` beside a server, whose words are told() then.
  Outcome beside(const std::string& server, const std::string& text, std::vector<std::string> more) const {
    constexpr char kBoth[] =
        "told=$1; server=$2; shift 2; : >\"$told\"; $server >\"$told\" 2>&1 & pid=$!; i=0; "
        "until grep -q ready \"$told\" || [ $i = 600 ]; do sleep 0.1; i=$((i+1)); done; \"$@\"; code=$?; kill $pid; exit $code";
    std::vector<std::string> command{"env", std::string("REAL_KEY=") + kSecret, "sh", "-c", kBoth, "sh", world_.files / "told",
                                     server};
    command.insert(command.end(), {kBelljar, "run", "--net", "proxy", "--tls-ca-file", world_.files / "ca.pem"});
    command.insert(command.end(), more.begin(), more.end());
    command.insert(command.end(), {"-c", text});
    return world_.run(command);
  }
  std::string told() const { return read_file(world_.files / "told"); }
  std::string node_server(const std::string& name, const std::string& address) const {
    return "node " + kHere + "h2_server.mjs " + address + " 9443 " + (world_.files / ("tls/" + name + ".pem"));
  }
  // The steps of h2_client.mjs, by the proxy variables or, `direct`, by the address alone.
  std::string client(const std::string& url, const std::string& steps, bool direct = false) const {
    world_.workspace.write("client.mjs", read_file(kHere + "h2_client.mjs"));
    return (direct ? kNoProxy : std::string()) + "node client.mjs " + url + " " + steps;
  }

  const std::vector<std::string> rules_{"--allow-request", "GET web.test/a",     "--allow-request", "POST web.test/a/post",
                                        "--allow-request", "* web.test/echo",    "--allow-request", "GET web.test/head",
                                        "--allow-request", "GET web.test/hold",  "--allow-request", "GET web.test/big",
                                        "--allow-request", "GET web.test/reset", "--allow-request", "GET web.test/hello"};
};

TEST_F(Http2, CurlSpeaksItAndEachRequestIsJudged) {
  const auto ask = [&](const std::string& how) {
    return shell(std::string(kCurl2) + "-w ' %{http_version}' " + how, {"--allow-request", "GET web.test/a"}).out;
  };
  EXPECT_EQ(ask("https://web.test/a"), "GET /a host=web.test at=93.184.0.80 body=0\n 2");
  EXPECT_EQ(ask("--http1.1 https://web.test/a"), "GET /a host=web.test at=93.184.0.80 body=0\n 1.1");
  EXPECT_TRUE(has(ask("https://web.test/b"), "GET of that path is not among the requests")) << ask("https://web.test/b");
  EXPECT_TRUE(has(ask("-d x https://web.test/a"), "POST of that path is not among the requests"));
  EXPECT_TRUE(has(ask("-H 'Host: other.test' https://web.test/a"), "Host names another place"));
  const std::string code = " -o /dev/null -w '%{http_code} %{http_version}\n' https://web.test/a";
  const Outcome limited =
      shell(std::string(kCurl2) + "-d x" + code + "; " + kCurl2 + code, {"--net-methods", "limited", "--allow-domain", "web.test"});
  EXPECT_EQ(limited.out, "405 2\n200 2\n") << limited;
  const Outcome body = shell(std::string(kCurl2) + "-X GET -d x" + code + "; " + kCurl2 + "-X OPTIONS -T -" + code +
                                 " </dev/null; " + kCurl2 + "-X OPTIONS" + code,
                             {"--net-methods", "limited", "--allow-domain", "web.test"});
  EXPECT_EQ(body.out, "413 2\n413 2\n200 2\n") << body;
}

TEST_F(Http2, AServerThatHasItGetsIt) {
  BELLJAR_NEEDS(program("node"));
  const Outcome all =
      beside(node_server("web.test", "93.184.0.80"),
             client("https://web.test:9443", "get post refused talk trailers head cancel reset host connect many big stalled") +
                 "; " + client("https://web.test:9443", "get talk refused", true),
             rules_);
  EXPECT_EQ(all.out,
            "get: 200 GET /a/get HTTP/h2 key= body=0\n"
            "post: 200 POST /a/post HTTP/h2 key= body=300000\n"
            "refused: 403 GET of that path is not among the requests that may go to web.test:9443\n"
            "talk: 200 one two three after \n"
            "trailers: b last\n"
            "head: 200 grpc-status=5 whole=true\n"
            "cancel: cancelled\n"
            "reset: half ERR_HTTP2_STREAM_ERROR\n"
            "host: 421\n"
            "connect: 501 undefined\n"
            "many: 60 of 60\n"
            "big: 3000000\n"
            "stalled: GET /a/get HTTP/h2 key= body=0 then 9000000\n"
            "get: 200 GET /a/get HTTP/h2 key= body=0\n"
            "talk: 200 one two three after \n"
            "refused: 403 GET of that path is not among the requests that may go to web.test:9443\n")
      << all;
  const std::string heard = told();
  EXPECT_TRUE(has(heard, "POST /echo te=trailers")) << heard;
  EXPECT_TRUE(has(heard, "aborted /hold")) << "a client that cancels is heard by the server" << heard;
  EXPECT_FALSE(has(heard, "GET /b te")) << heard;
}

TEST_F(Http2, AServerWithoutItGetsHttp1) {
  BELLJAR_NEEDS(program("node"));
  const Outcome all = shell(client("https://web.test", "get refused many"), rules_);
  EXPECT_EQ(all.out,
            "get: 200 GET /a/get host=web.test at=93.184.0.80 body=0\n"
            "refused: 403 GET of that path is not among the requests that may go to web.test:443\n"
            "many: 60 of 60\n")
      << all;
  world_.workspace.write("body", std::string(3'000'000, 'x'));
  EXPECT_EQ(shell(std::string(kCurl2) + "-T body https://web.test/put", {"--allow-request", "PUT web.test"}).out,
            "PUT /put host=web.test at=93.184.0.80 body=3000000\n");
}

TEST_F(Http2, ACredentialIsPutInAndTakenOutOfHeadBodyAndTrailers) {
  BELLJAR_NEEDS(program("node"));
  const std::vector<std::string> rules{
      "--credential", "API_KEY=env:REAL_KEY@echo.test", "--allow-domain", "echo.test", "--allow-domain", "web.test", "--json"};
  const std::string server = node_server("echo.test", "93.184.0.87");
  const Outcome sent = beside(server, client("https://echo.test:9443", "talk gzip") + "; echo inside=$API_KEY", rules);
  EXPECT_TRUE(has(told(), std::string("key=") + kSecret)) << sent << told();
  EXPECT_FALSE(has(sent.out, "0realSecret")) << sent;
  const std::string placeholder = sent.out.substr(sent.out.find("inside=") + 7, sizeof kSecret - 1);
  EXPECT_TRUE(has(sent.out, "talk: 200 one two three after " + placeholder)) << "its trailer holds the placeholder" << sent;
  EXPECT_TRUE(has(sent.out, "gzip: 502 the answer of echo.test:9443 is encoded")) << sent;
  const Outcome echoed = beside(
      server,
      "printf %s \"$API_KEY\" >key; " + std::string(kCurl2) + "-T key -X POST https://echo.test:9443/echo -H \"X-Key: $API_KEY\"",
      rules);
  EXPECT_TRUE(has(echoed.out, "ghp_belljar")) << echoed;
  const Outcome misplaced = shell(std::string(kCurl2) + "-H \"X-Key: $API_KEY\" https://web.test/a", [&] {
    std::vector<std::string> more{"--allow-request", "GET web.test"};
    more.insert(more.end(),
                {"--credential", "API_KEY=file:" + (world_.files / "key") + "@echo.test", "--allow-request", "GET echo.test"});
    world_.files.write("key", kSecret);
    return more;
  }());
  EXPECT_TRUE(has(misplaced.out, "the credential API_KEY is not for web.test:443")) << misplaced;
}

TEST_F(Http2, NoAnswerBringsACredentialBack) {
  for (const char* query : {"", "?chunked"}) {
    const Outcome sent = with_key(std::string(kCurl2) + "-i -H \"Authorization: Bearer $API_KEY\" https://echo.test/" + query);
    EXPECT_TRUE(has(sent.out, "HTTP/2 200")) << sent;
    EXPECT_TRUE(has(sent.out, "x-spelled: Bearer%20ghp_belljar")) << sent;
    EXPECT_TRUE(has(sent.out, "authorization%3A%20Bearer%20ghp_belljar")) << sent;
    EXPECT_TRUE(has(sent.out, "authorization: Bearer ghp_belljar")) << sent;
    EXPECT_FALSE(has(sent.out, "0realSecret")) << sent;
    EXPECT_TRUE(has(read_file(world_.files / "seen"), std::string("authorization: Bearer ") + kSecret)) << sent;
  }
  for (const char* query :
       {"gzip", "chunked&gzip", "field=Content-Range:bytes%200-1/9", "chunked&field=Transfer-Encoding:gzip,%20chunked",
        "field=Content-Encoding:$API_KEY", "field=grpc-encoding:gzip"}) {
    const Outcome sent = with_key(std::string(kCurl2) + "-i -H \"X-Key: $API_KEY\" \"https://echo.test/?" + query + "\"");
    EXPECT_TRUE(has(sent.out, "HTTP/2 502") && has(sent.out, "may hold a credential")) << query << sent;
    EXPECT_FALSE(has(sent.out, "0realSecret")) << query << sent;
  }
}

TEST_F(Http2, GrpcWorksEachWay) {
  if (run({kPython, "-c", "import grpc"}).exit_code != 0) GTEST_SKIP() << "needs python3-grpcio";
  world_.workspace.write("peer.py", read_file(kHere + "grpc_peer.py"));
  const std::string server =
      std::string(kPython) + " " + kHere + "grpc_peer.py serve 93.184.0.87:9443 " + (world_.files / "tls/echo.test.pem");
  for (const std::string& before : {std::string(), std::string(kNoProxy) + "export GRPC_DNS_RESOLVER=native; "}) {
    const Outcome asked = beside(server, before + kPython + " peer.py ask echo.test:9443; echo inside=$API_KEY",
                                 {"--credential", "API_KEY=env:REAL_KEY@echo.test", "--allow-request", "POST echo.test/test.Echo"});
    const std::string placeholder = asked.out.substr(asked.out.find("inside=") + 7, sizeof kSecret - 1);
    EXPECT_EQ(asked.out, "one ('echo x " + placeholder + "', {'x-end': 'after', 'x-key': '" + placeholder +
                             "'})\n"
                             "fail FAILED_PRECONDITION as asked\n"
                             "talk ['echo a', 'echo b', 'echo c']\n"
                             "sum b'2000000'\n"
                             "none UNIMPLEMENTED Method not found!\n"
                             "refused PERMISSION_DENIED Received http2 header with status: 403\n"
                             "inside=" +
                             placeholder + "\n")
        << asked;
    EXPECT_TRUE(has(told(), std::string("key=") + kSecret)) << told();
  }
}

}  // namespace
}  // namespace belljar::test
