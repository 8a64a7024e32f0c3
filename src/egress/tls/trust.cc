#include "egress/tls/trust.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "base/format.h"
#include "base/read_file.h"
#include "base/unique_fd.h"

namespace belljar::egress::tls {
namespace {

constexpr std::size_t kMostBundle = 8 << 20;
// Debian, Fedora, openSUSE, Alpine; as Go's crypto/x509 looks for them.
constexpr const char* kPlaces[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                                   "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

struct ReadPem {
  std::string name, data;
  bool valid = false;
};

ReadPem next_pem(BIO* bio) {
  char *name = nullptr, *header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;
  ReadPem read;
  if (PEM_read_bio(bio, &name, &header, &data, &size) == 1)
    read = {name, std::string(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size)), true};
  OPENSSL_free(name);
  OPENSSL_free(header);
  OPENSSL_free(data);
  return read;
}

Result<std::string> read_file(const std::string& path) {
  const auto refused = [&](const char* why) {
    return Error(Code::kFailedPrecondition, format("cannot use the certificates in {}", quoted(path)))
        .reason(why)
        .next("name a file with certificates as PEM: network.tls_ca_file");
  };
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) return Error(refused("")).sys(errno, "open");
  auto text = read_at_most(file.get(), kMostBundle + 1);
  if (!text) return Error(refused("")).sys(errno, "read");
  if (text->size() > kMostBundle) return refused("the file is longer than 8 MiB");
  return *std::move(text);
}

void put_number(std::string& text, std::uint64_t number, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) text += static_cast<char>(number >> shift & 0xFF);
}

void put_text(std::string& text, std::string_view word) {
  put_number(text, word.size(), 2);
  text += word;
}

// SHA-1 of the password as UTF-16, a constant and the store: what Java compares where it is told the password.
std::string store_digest(std::string_view store) {
  constexpr std::string_view kPassword = "changeit", kSalt = "Mighty Aphrodite";
  std::string text;
  for (const char c : kPassword) text += '\0', text += c;
  text += kSalt;
  text += store;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

}  // namespace

std::string system_bundle() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before the proxy's thread begins
  if (const char* own = std::getenv("SSL_CERT_FILE"); own != nullptr && *own != '\0') {
    if (auto text = read_file(own)) return *std::move(text);
  }
  for (const char* place : kPlaces) {
    if (auto text = read_file(place); text && !text->empty()) return *std::move(text);
  }
  return {};
}

Result<std::string> read_bundle(const std::string& path) {
  std::string text = BELLJAR_TRY(read_file(path));
  if (!certificates_of(text).empty()) return text;
  return Error(Code::kFailedPrecondition, format("there is no certificate in {}", quoted(path)))
      .next("name a file with certificates as PEM: network.tls_ca_file");
}

std::vector<std::string> certificates_of(std::string_view pem) {
  std::vector<std::string> found;
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  for (ReadPem read = next_pem(bio.get()); read.valid; read = next_pem(bio.get())) {
    if (read.name == PEM_STRING_X509) found.push_back(std::move(read.data));
  }
  ERR_clear_error();
  return found;
}

std::string java_store(const std::vector<std::string>& certificates) {
  std::string text;
  put_number(text, 0xFEEDFEED, 4);
  put_number(text, 2, 4);  // version
  put_number(text, certificates.size(), 4);
  for (std::size_t i = 0; i < certificates.size(); ++i) {
    put_number(text, 2, 4);  // a trusted certificate
    put_text(text, format("belljar-{}", i));
    put_number(text, 0, 8);  // when it was made
    put_text(text, "X.509");
    put_number(text, certificates[i].size(), 4);
    text += certificates[i];
  }
  return text + store_digest(text);
}

std::size_t add_to_store(X509_STORE* store, std::string_view pem) {
  std::size_t added = 0;
  for (const std::string& der : certificates_of(pem)) {
    const auto* data = reinterpret_cast<const unsigned char*>(der.data());
    const CertPtr certificate(d2i_X509(nullptr, &data, static_cast<long>(der.size())));
    if (certificate && X509_STORE_add_cert(store, certificate.get()) == 1) ++added;
  }
  ERR_clear_error();
  return added;
}

}  // namespace belljar::egress::tls
