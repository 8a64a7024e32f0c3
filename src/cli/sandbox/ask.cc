#include "cli/sandbox/ask.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "cli/errors.h"

namespace belljar::cli {

using keeper::Channel;
using keeper::Entry;
using keeper::Json;
using keeper::Received;

Result<Entry> find_running(const std::string& text) {
  const auto directory = BELLJAR_TRY(keeper::Directory::open());
  Entry entry = BELLJAR_TRY(directory.find(text));
  if (entry.state == keeper::State::kRunning) return entry;
  if (entry.state == keeper::State::kGone) {
    directory.retire(entry.about.id, keeper::kKilled, false);
    entry.about.ended = keeper::kKilled;
  }
  return Error(Code::kFailedPrecondition, format("the sandbox {} does not run any more", belljar::quoted(text)))
      .reason(escaped(entry.about.ended))
      .next(format("`belljar logs {}` tells what it did, `belljar create` makes another", entry.about.id));
}

Json request(const char* verb) { return {{"protocol", keeper::kProtocol}, {"verb", verb}}; }

Result<Received> next_answer(Channel& channel, std::chrono::milliseconds patience) {
  auto answer = BELLJAR_TRY(channel.receive(patience));
  if (!answer)
    return Error(Code::kDeadlineExceeded, "the sandbox's keeper does not answer").next("`belljar kill` ends it all the same");
  if (const auto error = answer->message.find("error"); error != answer->message.end()) return keeper::error_from(*error);
  return *std::move(answer);
}

Result<Json> ask(const Entry& entry, const Json& request, std::chrono::milliseconds patience) {
  Channel channel(BELLJAR_TRY(keeper::connect_to(entry)));
  BELLJAR_CHECK(channel.send(request, {}, patience));
  return BELLJAR_TRY(next_answer(channel, patience)).message;
}

std::string short_time(std::int64_t milliseconds) {
  const std::int64_t seconds = std::max<std::int64_t>(milliseconds, 0) / 1000;
  constexpr std::int64_t kHour = 3600;
  if (seconds < 120) return format("{} s", seconds);
  if (seconds < 2 * kHour) return format("{} min", seconds / 60);
  if (seconds < 48 * kHour) return format("{} h", seconds / kHour);
  return format("{} d", seconds / 86400);
}

std::string short_size(double bytes) {
  constexpr double kKilo = 1024, kMost = 10 * kKilo;
  if (bytes < kMost) return format("{:.0f} B", bytes);
  if (bytes < kMost * kKilo) return format("{:.1f} KiB", bytes / kKilo);
  return format("{:.1f} MiB", bytes / kKilo / kKilo);
}

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace belljar::cli
