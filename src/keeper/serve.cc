// One request for each connection. After its request a peer that follows or measures has nothing
// more to say, so anything readable there, or its end, means that it left. Waits are bounded by
// kLookAgain and then look again whether the sandbox has ended: a pager that stands still may wait
// as long as it likes, but must not keep the keeper from ending. Logs go in pieces, each after
// POLLOUT, for the same reason.
//
// The protocol's number is compared first. The program may have been updated while the keeper runs
// on.
#include "keeper/serve.h"

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/events.h"
#include "belljar/exec_result.h"

namespace belljar::keeper {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstWords{10'000};
constexpr milliseconds kLookAgain{1000};
constexpr std::size_t kPiece = 32U << 10;

bool peer_left(const Channel& channel) {
  pollfd hung{channel.fd(), POLLIN | POLLRDHUP, 0};
  return ::poll(&hung, 1, 0) != 0;  // after its request it has nothing more to say
}

Json answer_info(const KeptSandbox& kept) {
  const auto stats = kept.sandbox->stats();
  if (!stats) return {{"error", to_message(stats.error())}};
  return {{"processes", stats->processes}, {"execs", stats->execs}};
}

// A reader may stand still (a pager): it is waited for, until the sandbox ends. False: it is gone, or nothing more is to come.
bool await_room(const Channel& channel, EndControl& ending) {
  for (;;) {
    pollfd room{channel.fd(), POLLOUT, 0};
    if (::poll(&room, 1, static_cast<int>(kLookAgain.count())) > 0) return (room.revents & (POLLERR | POLLHUP)) == 0;
    if (ending.await_end(milliseconds(0))) return false;
  }
}

// In pieces that a socket takes at once where it has room.
bool send_lines(Channel& channel, const EventLog::Lines& lines, EndControl& ending) {
  Json message = {{"lines", Json::array()}, {"lost", lines.lost}};
  std::size_t bytes = 0;
  const auto flush = [&] {
    bytes = 0;
    const bool sent = await_room(channel, ending) && channel.send(message);
    message = {{"lines", Json::array()}, {"lost", 0}};
    return sent;
  };
  for (const std::string& line : lines.lines) {
    if (bytes > 0 && bytes + line.size() > kPiece && !flush()) return false;
    bytes += line.size();
    message["lines"].push_back(line);
  }
  return flush();
}

void serve_logs(Channel& channel, bool follow, KeptSandbox& kept, EndControl& ending) {
  tell_background(kept);
  EventLog::Lines lines = kept.log->read(0, milliseconds(0));
  if (!send_lines(channel, lines, ending)) return;
  while (follow && !peer_left(channel)) {
    const bool over = ending.await_end(milliseconds(0));
    tell_background(kept);
    lines = kept.log->read(lines.next, over ? milliseconds(0) : kLookAgain);
    if (!lines.lines.empty() && !send_lines(channel, lines, ending)) return;
    if (over) return;
  }
}

void serve_kill(Channel& channel, EndControl& ending) {
  ending.end("it was killed");
  while (!ending.await_end(kLookAgain)) {
  }
  (void)channel.send({{"ended", true}});
}

}  // namespace

void tell_seen(const KeptSandbox& kept, const std::vector<Violation>& violations, const std::vector<EgressRecord>& egress) {
  for (const Violation& violation : violations) kept.log->publish({.body = ViolationEvent{violation}});
  for (const EgressRecord& record : egress) {
    kept.traffic->in += record.bytes_received;
    kept.traffic->out += record.bytes_sent;
    kept.log->publish({.body = EgressEvent{record}});
  }
}

void tell_background(const KeptSandbox& kept) {
  const ExecResult seen = kept.sandbox->take_seen();
  tell_seen(kept, seen.violations, seen.egress);
}

void serve(Channel& channel, KeptSandbox& kept, EndControl& ending) {
  auto request = channel.receive(kFirstWords);
  if (!request || !*request) return;
  const Json& message = (*request)->message;
  const std::string verb = message.value("verb", "");
  if (message.value("protocol", 0) != kProtocol) {
    (void)channel.send({{"error", to_message(Error(Code::kFailedPrecondition, "the sandbox was made by another version of belljar")
                                                 .next("`belljar kill` ends it; then make it again"))}});
  } else if (verb == "exec") {
    serve_exec(channel, *std::move(*request), kept);
  } else if (verb == "logs") {
    serve_logs(channel, message.value("follow", false), kept, ending);
  } else if (verb == "kill") {
    serve_kill(channel, ending);
  } else if (verb == "stats") {
    (void)channel.send(measure(channel, kept));
  } else if (verb == "network") {
    (void)channel.send(serve_network(message, kept));
  } else if (verb == "info") {
    (void)channel.send(answer_info(kept));
  } else {
    (void)channel.send(
        {{"error", to_message(Error(Code::kUnimplemented, format("a sandbox's keeper cannot {}", belljar::quoted(verb))))}});
  }
}

}  // namespace belljar::keeper
