// A small internet whose TLS servers have an authority of the test's own, and `belljar run` in it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/as_user.h"
#include "support/built.h"
#include "support/has.h"
#include "support/identity.h"
#include "support/world.h"

namespace belljar::test {

inline constexpr char kSecret[] = "ghp_0realSecret/Value+0123456789abcdef";
// Nothing but what is asked of curl: no .curlrc, and an answer soon.
inline constexpr char kCurl[] = "curl -q -sS --http1.1 -m 60 ", kCurl2[] = "curl -q -sS --http2 -m 60 ";

// An authority, and for each name a certificate and its key in one file.
inline constexpr char kMake[] = R"(set -e
cd "$1"; mkdir -p tls
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.pem -days 30 -subj '/CN=Test authority' \
  -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
make() { # NAME, NAMES IN IT, SIGNED WITH, DAYS
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout tls/k -out tls/r -subj "/CN=$1"
  printf 'subjectAltName=DNS:%s\nbasicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n' "$2" >tls/x
  if [ "$3" = ca ]; then openssl x509 -req -in tls/r -CA ca.pem -CAkey ca.key -CAcreateserial -days "$4" -extfile tls/x -out tls/c
  else openssl x509 -req -in tls/r -signkey tls/k -days "$4" -extfile tls/x -out tls/c; fi
  cat tls/c tls/k >"tls/$1.pem"
}
for name in web.test sub.web.test other.test api.test echo.test client.test; do make $name $name ca 20; done
make misnamed.test other.test ca 20
make self.test self.test self 20
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout tls/k -out tls/r -subj /CN=expired.test
printf 'subjectAltName=DNS:expired.test\n' >tls/x
: >index.txt; echo 01 >serial
printf '[ca]\ndefault_ca=d\n[d]\nnew_certs_dir=.\ndatabase=index.txt\nserial=serial\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n' >ca.conf
openssl ca -batch -config ca.conf -cert ca.pem -keyfile ca.key -in tls/r -out tls/c -notext -extfile tls/x \
  -startdate 20200101000000Z -enddate 20210101000000Z
cat tls/c tls/k >tls/expired.test.pem
cp tls/web.test.pem cert.pem; cp tls/web.test.pem key.pem
)";

class TlsWorld : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    BELLJAR_NEEDS(program("openssl"));
    if (const std::string missing = World::missing(); !missing.empty()) GTEST_SKIP() << missing;
    world_.files.make_dir("files");
    const Outcome made = run({"sh", "-c", kMake, "sh", world_.files.path()});
    ASSERT_EQ(made.exit_code, 0) << made;
  }
  Outcome shell(const std::string& text, std::vector<std::string> more = {}) const {
    std::vector<std::string> args{"run", "--net", "proxy", "--tls-ca-file", world_.files / "ca.pem"};
    args.insert(args.end(), more.begin(), more.end());
    args.insert(args.end(), {"-c", text});
    return world_.belljar(args);
  }
  Outcome direct(const std::string& text, std::vector<std::string> more = {}) const {
    return shell(kNoProxy + text, std::move(more));
  }
  // With a credential for echo.test, whose value stands in a variable of the caller.
  Outcome with_key(const std::string& text, std::vector<std::string> more = {}) const {
    std::vector<std::string> command{"env",
                                     std::string("REAL_KEY=") + kSecret,
                                     kBelljar,
                                     "run",
                                     "--net",
                                     "proxy",
                                     "--tls-ca-file",
                                     world_.files / "ca.pem",
                                     "--credential",
                                     "API_KEY=env:REAL_KEY@echo.test",
                                     "--allow-domain",
                                     "echo.test",
                                     "--allow-domain",
                                     "web.test"};
    command.insert(command.end(), more.begin(), more.end());
    command.insert(command.end(), {"-c", text});
    return world_.run(command);
  }

  World world_;
};

}  // namespace belljar::test
