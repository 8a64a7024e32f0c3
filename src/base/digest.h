// SHA-256 and HMAC. Bytes come out; base/encoding.h makes text of them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct SHA256state_st;

namespace belljar {

// Of what comes in pieces. Not EVP: OpenSSL 3 loads its providers for that, 1.6 MiB that would stay resident in every front.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void add(std::string_view bytes) noexcept;
  std::string take();

 private:
  std::unique_ptr<SHA256state_st> context_;
};

std::string sha256(std::string_view bytes);
// RFC 2104.
std::string hmac_sha256(std::string_view key, std::string_view bytes);

}  // namespace belljar
