// The root certificates that this machine trusts, and the bundle for the inside: the same and our own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"
#include "egress/tls/openssl.h"

namespace belljar::egress::tls {

// The bundle of the machine as text: $SSL_CERT_FILE, or where the distributions keep it. Empty: there is none.
std::string system_bundle();
// Errors: kFailedPrecondition, the file is not there, cannot be read, is longer than 8 MiB or holds no certificate.
Result<std::string> read_bundle(const std::string& path);

// Each certificate of a PEM text as DER; what is no certificate is passed over.
std::vector<std::string> certificates_of(std::string_view pem);
// A key store of trusted certificates in the JKS format, which every Java reads without a password
// (JavaKeyStore.java of OpenJDK documents it).
std::string java_store(const std::vector<std::string>& certificates);

// Adds every certificate of `pem` to a store of trusted ones; how many there were.
std::size_t add_to_store(X509_STORE* store, std::string_view pem);

}  // namespace belljar::egress::tls
