// Any bytes as what a client or a server says in HTTP/2. What comes of a client's stream is one HTTP/1.1 request that the strict
// reader takes to its end, with nothing behind it, or a fault; of a server's one answer. What waits stays bounded. The first byte
// says which side it is, and in what pieces the rest comes.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "egress/h2/client_side.h"
#include "egress/h2/server_side.h"
#include "egress/http.h"
#include "egress/streams.h"
#include "policy/host.h"

using namespace belljar;
using namespace belljar::egress;

namespace {

constexpr std::size_t kMostHeld = 64U << 20;  // a hundred streams with a head and a window each, and room to spare

void require(bool fact) {
  if (!fact) std::abort();
}

class Plain final : public SecureStream {
 public:
  void put(std::string_view wire) override { in_ += wire; }
  std::string take() override { return std::exchange(out_, {}); }
  State handshake() override { return State::kReady; }
  bool open(std::string& plain, std::size_t) override { return plain += std::exchange(in_, {}), false; }
  void seal(std::string_view plain) override { out_ += plain; }
  std::string protocol() const override { return "h2"; }
  bool ended() const override { return false; }
  bool broken() const override { return false; }
  void end() override {}
  const TlsFault& fault() const override { return fault_; }

 private:
  std::string in_, out_;
  TlsFault fault_;
};

// Reads a message to its end; true when it got there. What is left of `text` then, or before a fault, stays in it.
bool read(HttpReader& reader, std::string& text) {
  for (std::size_t taken = reader.feed(text); taken != 0; taken = reader.feed(text)) text.erase(0, taken);
  return reader.done();
}

struct Served {
  std::shared_ptr<Stream> stream;
  std::unique_ptr<StreamEnd> end;
  HttpReader reader{HttpReader::Kind::kRequest};
  std::string text;
  bool answered = false;

  void serve() {
    if (stream->fault) {
      require(stream->fault->status >= 400);
      return;
    }
    const bool more = end->open(text, text.size() + 1000);
    (void)more;
    const bool done = read(reader, text);
    // A head beyond the bound, or what Beast is stricter about, is refused by this reader as it would be for HTTP/1.1.
    if (reader.fault()) return;
    if (done) require(text.empty());
    if (!reader.head_done()) return;
    const policy::Destination place{policy::parse_host("web.test").value(), 443};
    HttpFault fault;
    const auto asked = read_request(reader.head(), reader.keeps_alive(), fault, &place, true);
    if (asked) require(asked->destination == place && !asked->connect && !asked->upgrade && asked->path.starts_with('/'));
    if (asked && !std::exchange(answered, true))
      end->seal("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\nX-End: y\r\n\r\n");
  }
};

void check_client(std::string_view bytes, std::size_t step) {
  const auto side = h2::make_streams();
  side->put("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  std::vector<Served> all;
  std::size_t sent = 0;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    side->put(bytes.substr(at, step));
    for (auto& stream : side->take_opened()) {
      Served one{.stream = stream, .end = std::make_unique<StreamEnd>(stream), .text = {}};
      one.reader.allow_trailers();
      all.push_back(std::move(one));
    }
    for (Served& one : all) one.serve();
    sent += side->take(1 << 20).size();
    require(side->count() <= 101);
  }
  require(sent < kMostHeld);
}

void check_server(std::string_view bytes, std::size_t step) {
  const auto side = h2::speak_to_server(std::make_unique<Plain>());
  require(side->handshake() == SecureStream::State::kReady);
  side->seal("GET / HTTP/1.1\r\nHost: web.test\r\n\r\n");
  std::string text;
  for (std::size_t at = 0; at < bytes.size() && !side->broken(); at += step) {
    side->put(bytes.substr(at, step));
    (void)side->open(text, kMostHeld);
    (void)side->take();
  }
  require(text.size() < kMostHeld);
  for (bool final = false; !final && !text.empty();) {
    HttpReader reader(HttpReader::Kind::kResponse);
    const bool done = read(reader, text);
    final = !reader.head_done() || reader.head().status >= 200;
    if (done && final) require(text.empty());
    if (!done) break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t step = (data[0] >> 1U) * 8U + 1U;
  if ((data[0] & 1U) == 0) check_client(bytes, step);
  else check_server(bytes, step);
  return 0;
}
