// Any bytes as what a client or a server says: no crash, no more taken than given; a request that is taken goes on as one message
// that reads back as the same request, and never with a second head inside.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "egress/http.h"
#include "egress/socks.h"

using namespace belljar::egress;

namespace {

void require(bool fact) {
  if (!fact) std::abort();
}

void check_request(std::string_view text) {
  HttpReader reader(HttpReader::Kind::kRequest);
  const std::size_t taken = reader.feed(text);
  require(taken <= text.size());
  if (!reader.head_done() || reader.fault()) return;
  HttpFault fault;
  const auto request = read_request(reader.head(), reader.keeps_alive(), fault);
  if (!request) return require(fault.status >= 400 && !fault.reason.empty());
  while (reader.feed(text.substr(taken)) != 0 && !reader.done() && !reader.fault()) break;
  if (request->connect) return;
  const std::string head = forwarded_head(reader.head(), *request);
  require(head.find("\r\n\r\n") == head.size() - 4);
  HttpReader again(HttpReader::Kind::kRequest);
  require(again.feed(head) == head.size() && again.head_done());
  require(again.head().method == request->method && again.head().target == request->path);
}

void check_answer(std::string_view text) {
  HttpReader reader(HttpReader::Kind::kResponse);
  std::size_t at = 0;
  while (const std::size_t taken = reader.feed(text.substr(at))) {
    at += taken;
    require(at <= text.size());
  }
  if (reader.head_done() && !reader.fault()) require(returned_head(reader.head(), true, false).ends_with("\r\n\r\n"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_request(text);
  check_answer(text);
  const SocksGreeting greeting = read_socks_greeting(text);
  require(greeting.taken <= size);
  const SocksRequest request = read_socks_request(text);
  require(request.taken <= size);
  if (request.parse == Parse::kBad) require(request.reply != SocksReply::kDone && !request.reason.empty());
  require(read_socks_password(text).taken <= size);
  return 0;
}
