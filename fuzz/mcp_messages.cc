// Any bytes from a client: the lines do not depend on how they arrive, and each is a message or an error that can be written.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "mcp/http_rules.h"
#include "mcp/lines.h"
#include "mcp/rpc.h"
#include "mcp/uri.h"

using namespace belljar::mcp;

namespace {

std::vector<std::string> lines_of(std::string_view bytes, std::size_t piece) {
  std::vector<std::string> lines;
  LineReader reader(200, [&](std::string_view line) { lines.emplace_back(line); }, [&] { lines.emplace_back("too long"); });
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) reader.feed(bytes.substr(0, piece));
  reader.finish();
  return lines;
}

// Any headers: who has not the whole token is refused, whatever else is sent.
void check_headers(const std::vector<std::string>& lines) {
  const HttpRules rules{.port = 80, .tokens = {"a token of this length"}, .hosts = {"box"}, .origins = {"http://ui"}};
  const auto line = [&](std::size_t i) { return i < lines.size() ? lines[i] : std::string(); };
  const HttpHead head{.method = "POST",
                      .target = "/mcp",
                      .host = line(0),
                      .origin = line(1),
                      .authorization = line(2),
                      .accept = line(3),
                      .content_type = line(4),
                      .protocol = line(5)};
  if (!check_head(rules, head) && head.authorization.find(rules.tokens[0]) == std::string::npos) std::abort();
  if (const auto address = parse_http_address(line(0)); address && address->address.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> lines = lines_of(bytes, size + 1);
  if (lines != lines_of(bytes, 3)) std::abort();
  check_headers(lines);
  for (const std::string& line : lines) {
    auto json = parse_text(line);
    if (std::holds_alternative<RpcError>(json)) {
      if (to_line(make_error(std::get<RpcError>(json))).empty()) std::abort();
      continue;
    }
    auto message = to_message(std::move(std::get<Json>(json)));
    if (const auto* wrong = std::get_if<RpcError>(&message)) {
      if (!Json::accept(to_line(make_error(*wrong)))) std::abort();
    } else if (!Json::accept(to_line(std::get<Message>(message).params))) {
      std::abort();
    }
    (void)path_of_uri(line);
  }
  return 0;
}
