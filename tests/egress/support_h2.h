// HTTP/2 by hand, for tests: frames as text one can read, also such as no library would send.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "egress/h2/fields.h"
#include "egress/intercept.h"

namespace belljar::test {

inline constexpr std::uint8_t kData = 0, kHeaders = 1, kPriority = 2, kReset = 3, kSettings = 4, kPing = 6, kGoaway = 7,
                              kWindow = 8, kContinuation = 9;
inline constexpr std::uint8_t kEndStream = 1, kEndHeaders = 4;

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, std::string_view payload);
std::string number(std::uint32_t value);  // four bytes

struct Frame {
  std::uint8_t type = 0, flags = 0;
  std::uint32_t stream = 0;
  std::string payload;
  egress::h2::Fields fields;                      // of kHeaders
  std::uint32_t code() const;                     // of kReset and kGoaway
  std::string find(std::string_view name) const;  // of kHeaders; "" without it
};

// One end of a connection: what it says and what it hears.
class Talker {
 public:
  Talker();
  ~Talker();
  Talker(const Talker&) = delete;
  Talker& operator=(const Talker&) = delete;
  static std::string preface();  // of a client, with empty settings
  std::string headers(std::uint32_t stream, const egress::h2::Fields& fields, std::uint8_t flags = kEndStream | kEndHeaders);
  std::string block(const egress::h2::Fields& fields);  // HPACK alone
  std::vector<Frame> hear(std::string_view bytes);      // whole frames; the rest waits

 private:
  nghttp2_hd_deflater* deflater_ = nullptr;
  nghttp2_hd_inflater* inflater_ = nullptr;
  std::string rest_;
};

// GET of `path` at web.test.
egress::h2::Fields get_fields(std::string path = "/", egress::h2::Fields more = {});

// Instead of TLS: bytes as they are.
class Plain final : public egress::SecureStream {
 public:
  explicit Plain(std::string protocol) : protocol_(std::move(protocol)) {}
  void put(std::string_view wire) override { in_ += wire; }
  std::string take() override { return std::exchange(out_, {}); }
  State handshake() override { return State::kReady; }
  bool open(std::string& plain, std::size_t most) override;
  void seal(std::string_view plain) override { out_ += plain; }
  std::string protocol() const override { return protocol_; }
  bool ended() const override { return false; }
  bool broken() const override { return false; }
  void end() override {}
  const egress::TlsFault& fault() const override { return fault_; }

 private:
  std::string protocol_, in_, out_;
  egress::TlsFault fault_;
};

}  // namespace belljar::test
