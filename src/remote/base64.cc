#include "remote/base64.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/ascii.h"

namespace belljar::remote {

std::string to_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0 || text.size() > (64U << 20)) return {};
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const bool plain = std::ranges::all_of(text.substr(0, text.size() - padding),
                                         [](char letter) { return is_alnum(letter) || letter == '+' || letter == '/'; });
  if (!plain) return {};  // EVP_DecodeBlock would take some of it
  std::string bytes(text.size() / 4 * 3, '\0');
  if (EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()), reinterpret_cast<const unsigned char*>(text.data()),
                      static_cast<int>(text.size())) < 0)
    return {};
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace belljar::remote
