// Certificates of one sandbox's authority, made in memory and signed with a key that is never written
// anywhere.
//
// Times are generous both ways. Clocks inside a guest may be late, so a certificate begins 25 hours ago; a
// leaf is valid for a month but replaced after a week, so that no client ever sees one about to expire. All
// leaves share one key.
#include "egress/tls/authority.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <array>
#include <ctime>
#include <mutex>
#include <utility>

#include "base/format.h"

namespace belljar::egress::tls {
namespace {

using std::chrono::hours;

constexpr hours kAuthorityLife{24 * 365};
constexpr hours kLeafLife{24 * 30};
constexpr hours kLeafUse{24 * 7};  // then a new one, long before anybody's clock says that it is over
constexpr hours kBefore{25};       // clocks inside a guest may be late by a time zone
constexpr std::size_t kMostLeaves = 512;
constexpr std::size_t kSerialBytes = 16;

PkeyPtr make_key() { return PkeyPtr(EVP_EC_gen("P-256")); }

bool set_random_serial(X509* certificate) {
  std::array<unsigned char, kSerialBytes> bytes{};
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) return false;
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7FU) | 0x40U);  // positive, and never short (RFC 5280 section 4.1.2.2)
  const std::unique_ptr<BIGNUM, FreeWith<BN_free>> number(BN_bin2bn(bytes.data(), bytes.size(), nullptr));
  return number != nullptr && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_times(X509* certificate, WallClock::time_point now, hours life) {
  const std::time_t from = WallClock::to_time_t(now - kBefore), until = WallClock::to_time_t(now + life);
  return X509_time_adj_ex(X509_getm_notBefore(certificate), 0, 0, const_cast<std::time_t*>(&from)) != nullptr &&
         X509_time_adj_ex(X509_getm_notAfter(certificate), 0, 0, const_cast<std::time_t*>(&until)) != nullptr;
}

bool set_subject(X509* certificate, const std::string& name) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  const auto* bytes = reinterpret_cast<const unsigned char*>(name.data());
  return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, bytes, static_cast<int>(name.size()), -1, 0) == 1;
}

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

CertPtr begin_certificate(const std::string& subject, EVP_PKEY* key, WallClock::time_point now, hours life) {
  CertPtr certificate(X509_new());
  const bool made = certificate && X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
                    set_random_serial(certificate.get()) && set_times(certificate.get(), now, life) &&
                    set_subject(certificate.get(), subject) && X509_set_pubkey(certificate.get(), key) == 1;
  return made ? std::move(certificate) : nullptr;
}

CertPtr make_authority(EVP_PKEY* key, WallClock::time_point now) {
  std::array<unsigned char, 4> mark{};
  RAND_bytes(mark.data(), mark.size());
  // Two sandboxes' authorities are told apart in a list of certificates.
  const std::string name = format("Belljar sandbox authority {:02x}{:02x}{:02x}{:02x}", mark[0], mark[1], mark[2], mark[3]);
  CertPtr certificate = begin_certificate(name, key, now, kAuthorityLife);
  X509* raw = certificate.get();
  const bool made = raw != nullptr && X509_set_issuer_name(raw, X509_get_subject_name(raw)) == 1 &&
                    add_extension(raw, raw, NID_subject_key_identifier, "hash") &&
                    add_extension(raw, raw, NID_authority_key_identifier, "keyid:always") &&
                    add_extension(raw, raw, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    add_extension(raw, raw, NID_key_usage, "critical,keyCertSign,cRLSign") && X509_sign(raw, key, EVP_sha256()) > 0;
  return made ? std::move(certificate) : nullptr;
}

// The host was canonicalised: letters, digits, dots, `-` and `_` only, so nothing in it can be read as a second name.
std::string alternative_name(const policy::Host& host) { return (host.ip ? "IP:" : "DNS:") + policy::to_string(host); }

}  // namespace

void begin_openssl() {
  static std::once_flag once;
  std::call_once(once, [] { OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr); });
}

std::string take_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text == nullptr ? "no reason is known" : text;
}

Result<Authority> Authority::create(WallClock::time_point now) {
  begin_openssl();
  Authority authority;
  authority.key_ = make_key();
  authority.leaf_key_ = make_key();
  if (authority.key_ && authority.leaf_key_) authority.certificate_ = make_authority(authority.key_.get(), now);
  if (authority.certificate_) return authority;
  return Error(Code::kUnavailable, "cannot make the certificate authority of this sandbox").reason(take_error());
}

X509* Authority::leaf_for(const policy::Host& host, WallClock::time_point now) {
  const auto found = leaves_.find(host);
  if (found != leaves_.end() && now < found->second.until) return found->second.certificate.get();
  constexpr std::size_t kLongestCommonName = 64;  // RFC 5280; clients read the alternative name
  std::string subject = policy::to_string(host);
  if (subject.size() > kLongestCommonName) subject = "host";
  CertPtr certificate = begin_certificate(subject, leaf_key_.get(), now, kLeafLife);
  X509 *raw = certificate.get(), *issuer = certificate_.get();
  const bool made = raw != nullptr && X509_set_issuer_name(raw, X509_get_subject_name(issuer)) == 1 &&
                    add_extension(raw, issuer, NID_subject_alt_name, alternative_name(host)) &&
                    add_extension(raw, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
                    add_extension(raw, issuer, NID_key_usage, "critical,digitalSignature") &&
                    add_extension(raw, issuer, NID_ext_key_usage, "serverAuth") &&
                    add_extension(raw, issuer, NID_subject_key_identifier, "hash") &&
                    add_extension(raw, issuer, NID_authority_key_identifier, "keyid:always") &&
                    X509_sign(raw, key_.get(), EVP_sha256()) > 0;
  if (!made) return ERR_clear_error(), nullptr;
  if (leaves_.size() >= kMostLeaves) leaves_.clear();
  Leaf& leaf = leaves_[host];
  leaf = {std::move(certificate), now + kLeafUse};
  return leaf.certificate.get();
}

std::string to_pem(X509* certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_X509(bio.get(), certificate) != 1) return {};
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

}  // namespace belljar::egress::tls
