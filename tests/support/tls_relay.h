// Certificates, and TLS in front of an engine's unix socket, for tests of engines over TCP.
//
//   const Certificates files;                       // of an authority: "good", "expired", "misnamed", "client"; of another:
//   "stranger" const TlsRelay relay(files, "good", socket, TlsRelay::Clients::kKnown); config.container.engine = relay.address();
//   config.caller_env = files.client();             // DOCKER_TLS_VERIFY and DOCKER_CERT_PATH
#pragma once

#include <map>
#include <string>

#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {

class Certificates {
 public:
  Certificates();  // throws std::runtime_error where openssl fails
  std::string file(const std::string& name) const { return directory_ / name; }
  // A directory with ca.pem, and with cert.pem and key.pem of `who` unless that is empty.
  std::map<std::string, std::string> client(const std::string& who = "client", const std::string& authority = "ca") const;

 private:
  const TempDir directory_;
};

class TlsRelay {
 public:
  enum class Clients { kAny, kKnown };
  TlsRelay(const Certificates& files, const std::string& name, const std::string& socket, Clients clients);
  std::string address(const std::string& host = "127.0.0.1") const { return "tcp://" + host + ":" + port_; }
  const std::string& port() const { return port_; }

 private:
  Running relay_;
  std::string port_;
};

}  // namespace belljar::test
