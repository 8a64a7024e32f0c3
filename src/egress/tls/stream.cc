// One TLS connection over memory: wire bytes go into one BIO, and what is to be sent comes out of another, so
// that the proxy's loop owns every read and write.
//
// An empty input BIO means that nothing has come yet and not the end (BIO_set_mem_eof_return). OpenSSL keeps
// errors in a queue for each thread, and one thread serves all connections here: the queue is emptied before
// each call whose error is looked at.
#include "egress/tls/stream.h"

#include <openssl/err.h>

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace belljar::egress::tls {
namespace {

std::string reason_of(long verdict) {
  switch (verdict) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "tls-expired";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "tls-name";
    default:
      return "tls-untrusted";
  }
}

}  // namespace

Stream::Stream(SslPtr ssl, std::string expected) : ssl_(std::move(ssl)), expected_(std::move(expected)) {
  in_ = BIO_new(BIO_s_mem());
  out_ = BIO_new(BIO_s_mem());
  BIO_set_mem_eof_return(in_, -1);  // nothing yet is not the end
  SSL_set_bio(ssl_.get(), in_, out_);
  SSL_set_app_data(ssl_.get(), this);
}

void Stream::put(std::string_view wire) {
  if (!wire.empty()) BIO_write(in_, wire.data(), static_cast<int>(wire.size()));
}

std::string Stream::take() {
  char* data = nullptr;
  const long size = BIO_get_mem_data(out_, &data);
  std::string wire(data, size > 0 ? static_cast<std::size_t>(size) : 0);
  BIO_reset(out_);
  return wire;
}

SecureStream::State Stream::handshake() {
  if (broken_) return State::kFailed;
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_.get());
  if (done == 1) return State::kReady;
  const int why = SSL_get_error(ssl_.get(), done);
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return State::kMore;
  broken_ = true;
  explain();
  return State::kFailed;
}

// What a callback said already stands.
void Stream::explain() {
  const long verdict = SSL_is_server(ssl_.get()) == 1 ? X509_V_OK : SSL_get_verify_result(ssl_.get());
  if (verdict != X509_V_OK) {
    fault_ = {reason_of(verdict), "tls_certificate_error",
              format("its certificate is refused: {}", X509_verify_cert_error_string(verdict))};
    ERR_clear_error();
  }
  const std::string text = take_error();
  if (fault_.reason.empty()) fault_ = {"tls", "tls_protocol_error", "TLS fails: " + text};
}

bool Stream::open(std::string& plain, std::size_t most) {
  while (!broken_ && !ended_ && plain.size() < most) {
    char buffer[16384];
    ERR_clear_error();
    const int got = SSL_read(ssl_.get(), buffer, static_cast<int>(std::min(sizeof buffer, most - plain.size())));
    if (got > 0) {
      plain.append(buffer, static_cast<std::size_t>(got));
      continue;
    }
    const int why = SSL_get_error(ssl_.get(), got);
    if (why == SSL_ERROR_ZERO_RETURN) ended_ = true;
    else if (why != SSL_ERROR_WANT_READ) broken_ = true, explain();
    return false;
  }
  return !broken_ && !ended_;
}

void Stream::seal(std::string_view plain) {
  ERR_clear_error();
  if (!plain.empty() && !broken_ && SSL_write(ssl_.get(), plain.data(), static_cast<int>(plain.size())) <= 0) broken_ = true;
}

void Stream::end() {
  ERR_clear_error();
  if (!broken_ && SSL_is_init_finished(ssl_.get()) == 1) SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

std::string Stream::protocol() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

}  // namespace belljar::egress::tls
