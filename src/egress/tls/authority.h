// The certificate authority of one sandbox: a P-256 key made in memory, its certificate, and one for each host whose TLS is
// intercepted.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

#include "belljar/result.h"
#include "egress/tls/openssl.h"
#include "policy/host.h"

namespace belljar::egress::tls {

using WallClock = std::chrono::system_clock;

class Authority {
 public:
  // Errors: kUnavailable, OpenSSL makes no key.
  static Result<Authority> create(WallClock::time_point now = WallClock::now());

  // The certificate for `host`, kept; nullptr when none can be made (a name that no certificate can carry). The pointer holds
  // until the next call.
  X509* leaf_for(const policy::Host& host, WallClock::time_point now = WallClock::now());
  EVP_PKEY* leaf_key() const noexcept { return leaf_key_.get(); }
  X509* certificate() const noexcept { return certificate_.get(); }
  std::size_t kept() const noexcept { return leaves_.size(); }

 private:
  struct Leaf {
    CertPtr certificate;
    WallClock::time_point until;  // of its use; it is valid for longer
  };
  PkeyPtr key_, leaf_key_;
  CertPtr certificate_;
  std::map<policy::Host, Leaf> leaves_;
};

std::string to_pem(X509* certificate);

}  // namespace belljar::egress::tls
