// One record as a line: sealed by a format that has one spelling, and parsed by the same spelling, byte by
// byte.
//
// A JSON parser would accept members in another order, white space and escapes, which a record never has;
// whatever is not as it was written is damage. The hash covers the bytes of the line, so no canonical form of
// JSON is needed.
#include "audit/line.h"

#include <time.h>  // NOLINT(modernize-deprecated-headers): strptime and timegm are POSIX's

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <system_error>

#include "base/digest.h"
#include "base/encoding.h"
#include "base/format.h"
#include "base/rfc3339.h"

namespace belljar::audit {
namespace {

constexpr std::string_view kPrev = R"(,"prev":")";
constexpr std::string_view kHash = R"(,"hash":")";
constexpr std::string_view kEnd = R"("})";
constexpr std::time_t kLatest =
    std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::duration::max()).count() - 1;
// From ,"prev" to the end of the line.
constexpr std::size_t kTail = kPrev.size() + kHashDigits + 1 + kHash.size() + kHashDigits + kEnd.size();

bool is_hash(std::string_view text) { return text.size() == kHashDigits && is_small_hex(text); }

// Removes `word` off the front of `text`.
bool consume(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

bool consume_number(std::string_view& text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// Up to the next quote; none of these values holds an escape.
bool consume_text(std::string_view& text, std::string& value) {
  const std::size_t quote = text.find('"');
  if (quote == std::string_view::npos) return false;
  value = text.substr(0, quote);
  text.remove_prefix(quote + 1);
  return true;
}

bool consume_time(std::string_view& text, std::chrono::system_clock::time_point& time) {
  std::string written;
  if (!consume_text(text, written)) return false;
  std::tm utc{};
  const char* rest = ::strptime(written.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  long micro = 0;
  if (rest == nullptr || std::sscanf(rest, ".%6ldZ", &micro) != 1) return false;
  const std::time_t seconds = ::timegm(&utc);
  if (seconds < 0 || seconds > kLatest) return false;  // of a changed byte: the year 3026 is no time_point
  time = std::chrono::system_clock::from_time_t(seconds) + std::chrono::microseconds(micro);
  return true;
}

bool parse_front(std::string_view text, Parsed& parsed) {
  Head& head = parsed.head;
  std::uint64_t since_boot = 0, pid = 0;
  const bool fine = consume(text, R"({"seq":)") && consume_number(text, head.sequence) && consume(text, R"(,"time":")") &&
                    consume_time(text, head.time.wall) && consume(text, R"(,"boottime_ns":)") && consume_number(text, since_boot) &&
                    consume(text, R"(,"boot":")") && consume_text(text, head.time.boot) && consume(text, R"(,"pid":)") &&
                    consume_number(text, pid) && consume(text, R"(,"kind":")") && consume_text(text, head.kind) &&
                    consume(text, R"(,"data":)");
  head.time.since_boot = std::chrono::nanoseconds(since_boot);
  parsed.data = text;
  return fine && text.starts_with('{') && text.ends_with('}');
}

}  // namespace

const std::string kNoHash(kHashDigits, '0');

std::string seal(const Head& head, int pid, std::string_view data) {
  std::string line =
      format(R"({{"seq":{},"time":"{}","boottime_ns":{},"boot":"{}","pid":{},"kind":"{}","data":{},"prev":"{}")", head.sequence,
             rfc3339(head.time.wall), head.time.since_boot.count(), head.time.boot, pid, head.kind, data, head.prev);
  const std::string hash = to_hex(sha256(line));
  line += kHash;
  line += hash;
  line += kEnd;
  line += '\n';
  return line;
}

Parsed parse(std::string_view line) {
  Parsed parsed;
  if (line.size() < kTail || !line.ends_with(kEnd)) return parsed;
  const std::string_view front = line.substr(0, line.size() - kTail);
  std::string_view tail = line.substr(front.size());
  if (!consume(tail, kPrev)) return parsed;
  parsed.head.prev = tail.substr(0, kHashDigits);
  tail.remove_prefix(kHashDigits);
  if (!consume(tail, "\"") || !consume(tail, kHash)) return parsed;
  parsed.head.hash = tail.substr(0, kHashDigits);
  if (!is_hash(parsed.head.prev) || !is_hash(parsed.head.hash) || !parse_front(front, parsed)) return parsed;
  const std::size_t sealed = line.size() - kHash.size() - kHashDigits - kEnd.size();
  parsed.broken = to_hex(sha256(line.substr(0, sealed))) == parsed.head.hash ? Broken::kNo : Broken::kHash;
  return parsed;
}

bool is_torn_record(std::string_view tail) {
  if (tail.size() > kMaxLine) return false;
  constexpr std::string_view kStart = R"({"seq":)";
  if (!std::string_view(kStart).starts_with(tail.substr(0, kStart.size()))) return false;
  // Where the seal stands, nothing may follow it. Text inside `data` cannot look like it: its quotes are escaped.
  constexpr std::size_t kBefore = kPrev.size() + kHashDigits + 1;
  const std::size_t seal_at = tail.rfind(kHash);
  if (seal_at == std::string_view::npos || seal_at < kBefore || tail.substr(seal_at - kBefore, kPrev.size()) != kPrev) return true;
  const std::size_t whole = seal_at + kHash.size() + kHashDigits + kEnd.size();
  if (tail.size() < whole) return true;
  return tail.size() == whole && parse(tail).broken == Broken::kNo;
}

}  // namespace belljar::audit
