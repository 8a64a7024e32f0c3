// Any bytes as what a client says to TLS of ours: no crash, no handshake that ends well, a reason when it fails. And a stream that
// holds a credential, cut anywhere: it never comes out, nothing else is lost, lengths stay.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "egress/credentials.h"
#include "egress/tls/interceptor.h"
#include "egress/websocket.h"

using namespace belljar;
using namespace belljar::egress;

namespace {

void require(bool fact) {
  if (!fact) std::abort();
}

void check_hello(std::string_view bytes) {
  static const auto interceptor = tls::make_interceptor({}).value();
  const auto stream = interceptor->accept(policy::parse_host("web.test").value());
  require(stream != nullptr);
  const std::size_t half = bytes.size() / 2;
  stream->put(bytes.substr(0, half));
  (void)stream->handshake();
  stream->put(bytes.substr(half));
  const auto state = stream->handshake();
  require(state != SecureStream::State::kReady);
  if (state == SecureStream::State::kFailed) require(!stream->fault().reason.empty());
  std::string plain;
  (void)stream->open(plain, 1000);
  require(plain.empty());
  (void)stream->take();
}

// Frames come out the same however they are cut, and never longer.
void check_frames(const Restorer& restorer, std::string_view text, std::size_t step) {
  WebSocketRestorer whole(restorer), cut(restorer);
  const std::string expected = whole.feed(text, true);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += step) out += cut.feed(text.substr(at, step), false);
  out += cut.feed({}, true);
  require(out == expected && whole.broken() == cut.broken());
  require(out.size() <= text.size());
}

// The first byte says where it is cut; `#` stands for the value, so that the fuzzer finds it.
void check_restored(std::string_view bytes) {
  static const std::string value = "s3cr3t/+v\"lue";
  static const egress::Credential key{policy::parse_credential("KEY for h.test").value(), make_placeholder(value, "abcdefghijklm"),
                                      value};
  if (bytes.empty()) return;
  const std::size_t step = static_cast<unsigned char>(bytes[0]) % 31 + 1;
  std::string text;
  for (const char c : bytes.substr(1)) {
    if (c == '#') text += value;
    else text += c;
  }
  Restorer restorer({&key});
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += step) out += restorer.feed(std::string_view(text).substr(at, step), false);
  out += restorer.feed({}, true);
  require(out.size() == text.size());
  require(out.find(value) == std::string::npos);
  require(out == restorer.restore(text));
  check_frames(Restorer({&key}), text, step);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_hello(bytes);
  check_restored(bytes);
  return 0;
}
