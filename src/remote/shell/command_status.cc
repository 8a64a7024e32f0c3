// Reads what the helper `look` prints (scripts.cc): a line of state, a head and lines of base64 for each
// stream, a dot.
//
// A service may cut an answer, so nothing is believed before its end: the dot must come, and each stream must
// be as long as its head says. Otherwise the answer is nonsense as a whole, and the caller asks again, for
// less. That loses nothing, for a look is asked by offset and changes nothing. base64 is told from a head by
// its letters, since the number of its lines is not known beforehand.
//
// Carriage returns before line ends are dropped.
#include "remote/shell/command_status.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "base/encoding.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::remote::shell {
namespace {

constexpr std::size_t kMostWords = 6;

Error nonsense(std::string_view what, std::string_view line) {
  return Error(Code::kDataLoss, "cannot read what the sandbox says of a command")
      .reason(format("{}: {}", what, belljar::quoted(line.substr(0, 80))));
}

std::string_view next_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// False: not that many.
template <std::size_t N>
bool split(std::string_view line, std::array<std::string_view, N>& words) {
  for (std::size_t i = 0; i < N; ++i) {
    const std::size_t space = line.find(' ');
    if ((space == std::string_view::npos) != (i + 1 == N)) return false;
    words[i] = line.substr(0, space);
    line.remove_prefix(space == std::string_view::npos ? line.size() : space + 1);
  }
  return true;
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

Result<void> read_piece(std::string_view& rest, std::string_view name, bool only_counted, OutputPiece& piece) {
  const std::string_view line = next_line(rest);
  std::array<std::string_view, 4> words;
  if (!split(line, words) || words[0] != name || !read_number(words[1], piece.base) || !read_number(words[2], piece.count))
    return nonsense("this begins no stream", line);
  piece.more = words[3] == "1";
  std::string encoded;
  // A line of base64 holds neither a space nor a dot.
  while (!rest.empty() && rest.substr(0, rest.find('\n')).find_first_of(" .") == std::string_view::npos) encoded += next_line(rest);
  auto bytes = from_base64(encoded);
  if (!bytes) return nonsense("this is no base64", encoded);
  if (bytes->size() != (only_counted ? 0 : piece.count)) return nonsense("a stream is not as long as it says", line);
  piece.bytes = *std::move(bytes);
  return {};
}

}  // namespace

Result<CommandStatus> parse_command_status(std::string_view text, bool count_out, bool count_err) {
  CommandStatus status;
  const std::string_view line = next_line(text);
  std::array<std::string_view, kMostWords> words;
  if (!split(line, words) || words[0] != "s" || !read_number(words[1], status.pid)) return nonsense("this is no state", line);
  status.lost = words[2] == "lost";
  int code = 0;
  if (!status.lost && words[2] != "-") {
    if (!read_number(words[2], code)) return nonsense("this is no state", line);
    status.status = code;
  }
  status.signalled = words[3] == "signal";
  status.late = words[4] == "1";
  if (words[5] != "-") status.failed = words[5];
  BELLJAR_CHECK(read_piece(text, "o", count_out, status.out));
  BELLJAR_CHECK(read_piece(text, "e", count_err, status.err));
  const std::string_view last = next_line(text);
  if (last != ".") return nonsense("the end is missing", last);
  return status;
}

}  // namespace belljar::remote::shell
