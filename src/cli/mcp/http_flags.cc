#include "cli/mcp/http_flags.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/random.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/units.h"
#include "cli/command_line.h"
#include "cli/load.h"
#include "mcp/http.h"
#include "mcp/http_rules.h"

namespace belljar::cli {
namespace {

constexpr const char* kTokenVariable = "BELLJAR_MCP_TOKEN";
constexpr std::size_t kShortestToken = 16, kMadeToken = 32;

Result<std::string> check_token(std::string_view token) {
  while (token.ends_with('\n') || token.ends_with('\r')) token.remove_suffix(1);
  const bool printable = std::ranges::all_of(token, [](char c) { return c > ' ' && c < 0x7F; });
  if (token.size() >= kShortestToken && printable) return std::string(token);
  return Error(Code::kInvalidArgument, "cannot use this token")
      .reason(format("it must have {} characters or more, and neither blanks nor others than ASCII", kShortestToken))
      .next("openssl rand -hex 32 makes one");
}

// Of a file each line is one; of none at all the first is what is wrong.
Result<std::vector<std::string>> given_tokens(const HttpFlags& flags) {
  std::vector<std::string> tokens;
  const std::string variable = take_variable(kTokenVariable);
  if (flags.token_file.empty()) {
    if (!variable.empty()) tokens.push_back(BELLJAR_TRY(check_token(variable)));
    return tokens;
  }
  const std::string text = BELLJAR_TRY(read_text_file(flags.token_file, "the token"));
  std::string_view rest = text;
  do {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string token = BELLJAR_TRY(check_token(rest.substr(0, end)));
    if (std::ranges::find(tokens, token) != tokens.end())
      return Error(Code::kInvalidArgument, "cannot use these tokens")
          .reason("one stands there twice, and each is for one client")
          .next("openssl rand -hex 32 makes another");
    tokens.push_back(std::move(token));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  } while (rest.find_first_not_of("\r\n") != std::string_view::npos);
  return tokens;
}

}  // namespace

void add_http_options(const OptionParser& command, HttpFlags& flags) {
  command
      .add_option(
          "--http", flags.address,
          "Serve many clients over streamable HTTP at http://ADDR:PORT/mcp instead of one over stdin and stdout; ADDR is "
          "127.0.0.1 unless given, port 0 is any. The workspace is --workspace or the current directory. Plain HTTP: put a proxy "
          "with TLS in front of another address than loopback")
      .type_name("[ADDR:]PORT");
  command
      .add_option("--http-token-file", flags.token_file,
                  "The bearer token that clients have to send, or several, one a line: then a session is served to the token that "
                  "began it alone. Default: BELLJAR_MCP_TOKEN, or a new one that is printed on stderr")
      .not_empty()
      .type_name("FILE");
  command.add_flag("--http-no-token", flags.no_token, "Ask for none; at loopback alone. Every program of this machine may connect");
  command.add_option("--http-host", flags.hosts, "A Host header that is ours besides localhost and addresses: box.example:8080")
      .repeatable()
      .type_name("NAME[:PORT]");
  command.add_option("--http-origin", flags.origins, "An Origin header that is welcome besides our own: https://ui.example")
      .repeatable()
      .type_name("ORIGIN");
  command.add_option("--http-idle", flags.idle, "A session without requests, stream or call ends after this (30m)")
      .not_empty()
      .type_name("TIME");
}

void forget_token() { (void)take_variable(kTokenVariable); }

Result<void> check_no_http(const HttpFlags& flags) {
  const char* option = !flags.token_file.empty() ? "--http-token-file"
                       : flags.no_token          ? "--http-no-token"
                       : !flags.hosts.empty()    ? "--http-host"
                       : !flags.origins.empty()  ? "--http-origin"
                       : !flags.idle.empty()     ? "--http-idle"
                                                 : nullptr;
  if (option == nullptr) return {};
  return Error(Code::kInvalidArgument, format("{} is for a server over HTTP, and this one serves stdin and stdout", option))
      .next("add --http [ADDR:]PORT");
}

Result<HttpSettings> http_of(const HttpFlags& flags) {
  const auto address = mcp::parse_http_address(flags.address);
  if (!address)
    return Error(Code::kInvalidArgument, format("--http cannot be {}", belljar::quoted(flags.address)))
        .next("a port, or an address with one: 8080, 127.0.0.1:8080, [::1]:8080");
  HttpSettings settings;
  settings.options.address = *address;
  settings.options.rules.hosts = flags.hosts;
  settings.options.rules.origins = flags.origins;
  const auto idle = parse_duration(flags.idle.empty() ? "30m" : flags.idle);
  if (!idle || idle->count() <= 0)
    return Error(Code::kInvalidArgument, format("--http-idle cannot be {}", belljar::quoted(flags.idle)))
        .next("a time, such as 30m");
  settings.options.session_idle = *idle;
  std::vector<std::string> tokens = BELLJAR_TRY(given_tokens(flags));
  if (flags.no_token && !flags.token_file.empty())
    return Error(Code::kInvalidArgument, "--http-no-token and --http-token-file say two things").next("leave one out");
  if (flags.no_token) tokens.clear();
  settings.made = tokens.empty() && !flags.no_token;
  if (settings.made) tokens.push_back(random_hex(kMadeToken));
  if (settings.made && tokens[0].empty()) return Error(Code::kUnavailable, "cannot make a token").sys(errno, "getrandom");
  settings.options.rules.tokens = std::move(tokens);
  return settings;
}

}  // namespace belljar::cli
