#define OPENSSL_SUPPRESS_DEPRECATED  // the small interface keeps the static program small
#include "base/digest.h"

#include <openssl/sha.h>

#include <memory>
#include <string>
#include <string_view>

namespace belljar {

Sha256::Sha256() : context_(std::make_unique<SHA256_CTX>()) { SHA256_Init(context_.get()); }

Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) noexcept { SHA256_Update(context_.get(), bytes.data(), bytes.size()); }

std::string Sha256::take() {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), context_.get());
  return digest;
}

std::string sha256(std::string_view bytes) {
  Sha256 digest;
  digest.add(bytes);
  return digest.take();
}

std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  constexpr unsigned char kInner = 0x36, kOuter = 0x5C;
  std::string block = key.size() > SHA256_CBLOCK ? sha256(key) : std::string(key);
  block.resize(SHA256_CBLOCK, '\0');
  const auto hashed = [&](unsigned char pad, std::string_view text) {
    Sha256 digest;
    std::string padded = block;
    for (char& c : padded) c = static_cast<char>(static_cast<unsigned char>(c) ^ pad);
    digest.add(padded);
    digest.add(text);
    return digest.take();
  };
  return hashed(kOuter, hashed(kInner, bytes));
}

}  // namespace belljar
