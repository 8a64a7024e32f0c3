// One TLS connection over memory: SecureStream by OpenSSL.
#pragma once

#include <string>

#include "egress/intercept.h"
#include "egress/tls/openssl.h"

namespace belljar::egress::tls {

class Stream final : public SecureStream {
 public:
  // `ssl` knows already whether it is client or server. Takes over its application data (SSL_get_app_data is the Stream).
  Stream(SslPtr ssl, std::string expected);
  static Stream& of(SSL* ssl) { return *static_cast<Stream*>(SSL_get_app_data(ssl)); }

  void put(std::string_view wire) override;
  std::string take() override;
  State handshake() override;
  bool open(std::string& plain, std::size_t most) override;
  void seal(std::string_view plain) override;
  bool ended() const override { return ended_; }
  bool broken() const override { return broken_; }
  void end() override;
  std::string protocol() const override;
  const TlsFault& fault() const override { return fault_; }

  const std::string& expected() const noexcept { return expected_; }
  void set_fault(TlsFault fault) { fault_ = std::move(fault); }
  SSL* ssl() const noexcept { return ssl_.get(); }

 private:
  void explain();
  SslPtr ssl_;
  const std::string expected_;  // the name that SNI must be; of a server: its name
  BIO *in_ = nullptr, *out_ = nullptr;
  bool ended_ = false, broken_ = false;
  TlsFault fault_;
};

}  // namespace belljar::egress::tls
