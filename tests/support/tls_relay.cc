#include "support/tls_relay.h"

#include <chrono>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/built.h"
#include "support/run.h"

namespace belljar::test {
namespace {

namespace fs = std::filesystem;

// "expired" has a date that has passed: `openssl ca` takes dates where `x509` of older versions takes none.
constexpr char kMake[] = R"(
set -e
cat >conf <<'END'
[ca]
default_ca = it
[it]
dir = .
database = ./index
new_certs_dir = .
serial = ./serial
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
END
authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout $1.key -out $1.pem -subj "/CN=$1" -days 2
}
leaf() {
  : >index
  echo $5 >serial
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout $1.key -out $1.csr -subj "/CN=$1" -addext "subjectAltName=$2"
  openssl ca -batch -notext -config conf -cert $3.pem -keyfile $3.key -in $1.csr -out $1.crt -startdate 20200101000000Z -enddate $4
}
authority ca
authority other
leaf good IP:127.0.0.1,DNS:localhost ca 20490101000000Z 01
leaf expired IP:127.0.0.1 ca 20210101000000Z 02
leaf misnamed DNS:elsewhere.example.com ca 20490101000000Z 03
leaf client DNS:client ca 20490101000000Z 04
leaf stranger DNS:stranger other 20490101000000Z 05
)";

}  // namespace

Certificates::Certificates() {
  const Outcome made = run({"/bin/sh", "-c", kMake}, {.cwd = directory_.path()});
  if (made.exit_code != 0) throw std::runtime_error("openssl: " + made.err);
}

std::map<std::string, std::string> Certificates::client(const std::string& who, const std::string& authority) const {
  const std::string path = directory_.make_dir("client-" + who + "-" + authority);
  const auto copy = [&](const std::string& from, const std::string& to) {
    fs::copy_file(file(from), path + "/" + to, fs::copy_options::overwrite_existing);
  };
  copy(authority + ".pem", "ca.pem");
  if (!who.empty()) copy(who + ".crt", "cert.pem"), copy(who + ".key", "key.pem");
  return {{"DOCKER_TLS_VERIFY", "1"}, {"DOCKER_CERT_PATH", path}};
}

TlsRelay::TlsRelay(const Certificates& files, const std::string& name, const std::string& socket, Clients clients)
    : relay_({"python3", std::string(kSourceDir) + "/tests/support/tls_relay.py", files.file(name + ".crt"),
              files.file(name + ".key"), clients == Clients::kKnown ? files.file("ca.pem") : "-", socket},
             {.timeout = std::chrono::minutes(10)}) {
  if (!relay_.wait_for_output("\n")) throw std::runtime_error("no relay: " + relay_.err());
  port_ = relay_.out().substr(0, relay_.out().find('\n'));
}

}  // namespace belljar::test
