// Owners of what OpenSSL makes, and its reasons in words. Included by the .cc files of this folder only.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "base/free_with.h"

namespace belljar::egress::tls {

using PkeyPtr = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using CertPtr = std::unique_ptr<X509, FreeWith<X509_free>>;
using CtxPtr = std::unique_ptr<SSL_CTX, FreeWith<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, FreeWith<SSL_free>>;
using SessionPtr = std::unique_ptr<SSL_SESSION, FreeWith<SSL_SESSION_free>>;
using BioPtr = std::unique_ptr<BIO, FreeWith<BIO_vfree>>;

// The oldest error of this thread that waits, in words; the rest is dropped.
std::string take_error();

// Once in a process, before anything else: no configuration file (it could name modules to load, and a static program loads none).
void begin_openssl();

}  // namespace belljar::egress::tls
