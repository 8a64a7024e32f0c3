// Commands and files of an AIO server behind Volcengine's gateway.
//
// The gateway ends a call after 30 s, so no call waits longer than half of that. A command is begun by one
// POST, which returns early with what there is, and followed by /v1/bash/output with offsets. The POST is never
// sent twice. The rest may be: an offset can be asked for again.
//
// Errors have two meanings for the caller (machine.h): codes of has_begun() say that the command may have run,
// all others that it did not. A failure after the start must not leave with a code of the second kind, and is
// turned into kUnavailable.
//
// A missing file is reported with status 200 and JSON in place of the content. A file may hold just such JSON,
// so a suspicious body is followed by a second question, whether the file can be read.
#include "remote/volcengine/aio.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/encoding.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "http/client.h"
#include "remote/json.h"
#include "remote/retry.h"
#include "remote/shell/machine.h"
#include "remote/volcengine/address.h"
#include "remote/volcengine/envelope.h"
#include "remote/volcengine/reply.h"
#include "runtime/json.h"

namespace belljar::remote::volcengine {

using http::Clock;
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

// The gateway in front ends a call after 30 s unless the application says otherwise (RequestTimeout). A call returns before that,
// with what there is, and what is missing is read by the next.
constexpr auto kOneCall = 15s;
constexpr auto kLongest = 60s;
constexpr char kNoInput[] = "exec </dev/null\n";  // the service leaves a pipe open there, for /v1/bash/write
constexpr std::size_t kMostScript = 100'000;      // bash -c: one word of execve(2) has at most 128 KiB
constexpr std::size_t kMostOutput = 1U << 20;
constexpr std::size_t kMostReply = 8 * kMostOutput;  // JSON writes a byte with up to six letters
constexpr std::size_t kMostFile = 256U << 20;
constexpr std::size_t kOnePiece = 3U << 20;  // of a write: 4 MiB as base64, which gateways take
constexpr int kTries = 4;
constexpr auto kBreath = 50ms;  // before the same is asked again

// A session that the service dropped: it says so, and nothing began.
bool is_no_session(const Error& error) {
  return (error.code() == Code::kFailedPrecondition || error.code() == Code::kNotFound) &&
         (error.reason().find("session") != std::string::npos || error.reason().find("Session") != std::string::npos);
}

// To who asked, an error of another code says that nothing ran.
Error has_begun(const Error& error) {
  for (const Code code : {Code::kUnavailable, Code::kDeadlineExceeded, Code::kDataLoss, Code::kCanceled}) {
    if (error.code() == code) return error;
  }
  return Error(Code::kUnavailable, error.what()).reason(error.reason()).next(error.next());
}

// What is no UTF-8 would come to another name through JSON.
bool is_text(const std::string& path) { return runtime::to_utf8(path).replaced == 0; }

double seconds_of(milliseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

struct AioMachine::Ask {
  const char* method = "GET";
  std::string path, query, body;  // the query begins with '&'
  std::string what;
  Clock::time_point deadline;
  int cancel_fd = -1;
  bool once = false;  // what may have begun is not sent again
  std::size_t most = kMostReply;
};

AioMachine::AioMachine(const http::Client& http, const Address& address, std::string endpoint, std::string instance,
                       milliseconds patience)
    : http_(http),
      endpoint_(std::move(endpoint)),
      instance_(std::move(instance)),
      id_(instance_.empty() ? authority_of(endpoint_) : instance_),
      secrets_(address.secrets()),
      patience_(patience) {
  headers_ = {"Content-Type: application/json"};
  if (!instance_.empty()) headers_.push_back("x-faas-instance-name: " + instance_);
  if (!address.authorization.empty()) headers_.push_back("Authorization: " + address.authorization);
  if (!address.aio_key.empty()) headers_.push_back("X-AIO-API-Key: " + address.aio_key);
}

Result<http::Reply> AioMachine::ask(Ask what) const {
  for (int turn = 1;; ++turn) {
    std::string url = endpoint_ + what.path + "?" + (instance_.empty() ? "" : "&faasInstanceName=" + instance_) + what.query;
    if (const std::size_t first = url.find("?&"); first != std::string::npos) url.erase(first + 1, 1);
    if (url.ends_with('?')) url.pop_back();
    auto reply = http_.ask({.method = what.method,
                            .url = std::move(url),
                            .headers = headers_,
                            .body = what.body,
                            .only_once = what.once,
                            .deadline = what.deadline,
                            .most_reply = what.most},
                           what.cancel_fd);
    if (!reply && !what.once && reply.error().code() == Code::kUnavailable && turn < kTries &&
        Clock::now() + kBreath < what.deadline) {
      BELLJAR_CHECK(wait_for(kBreath, what.cancel_fd));
      continue;
    }
    if (!reply)
      return Error(what.once ? code_unheard(reply.error()) : reply.error().code(), what.what)
          .reason("the sandbox gave no answer: " + reply.error().reason())
          .next("check the network, and whether the sandbox still runs");
    // 429 says that nothing began.
    const bool again =
        reply->status == 429 || (!what.once && (reply->status == 502 || reply->status == 503 || reply->status == 504));
    // Compared as numbers: what a server names may be more than a clock can count.
    const std::int64_t pause = reply->retry_seconds.value_or(turn);
    if (!again || turn == kTries || pause < 0 || pause > 3600) return reply;
    const milliseconds nap = std::max<milliseconds>(std::chrono::seconds(pause), kBreath);
    if (Clock::now() + nap >= what.deadline) return reply;
    BELLJAR_CHECK(wait_for(nap, what.cancel_fd));
  }
}

Result<Json> AioMachine::post(const char* path, const Json& body, Ask how) const {
  how.method = "POST";
  how.path = path;
  how.body = dump(body);
  const std::string what = how.what;
  return parse_envelope(BELLJAR_TRY(ask(std::move(how))), what, secrets_);
}

// --- commands

// A session is where the service keeps what a command said. One at a time runs in each, so that nothing is mixed up; they are used
// again and not closed, since closing would end what a command left running on purpose.
std::string AioMachine::take_session() const {
  const std::lock_guard lock(mutex_);
  if (sessions_.empty()) return {};
  std::string session = std::move(sessions_.back());
  sessions_.pop_back();
  return session;
}

void AioMachine::keep_session(const std::string& session) const {
  const std::lock_guard lock(mutex_);
  if (!session.empty()) sessions_.push_back(session);
}

void AioMachine::kill(const std::string& session) const {
  if (session.empty()) return;
  (void)post("/v1/bash/kill", {{"session_id", session}, {"signal", "SIGKILL"}},
             {.what = "cannot end a command", .deadline = Clock::now() + 5s});
}

Result<Json> AioMachine::begin(const std::string& script, Clock::time_point deadline, int cancel_fd) const {
  // Before the patience is over, so that there is a session by which it can be ended.
  const auto patience = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  Json body = {{"command", kNoInput + script},
               {"timeout", seconds_of(std::clamp<milliseconds>(patience * 3 / 4, 1ms, kOneCall))},
               {"hard_timeout", seconds_of(kLongest)},
               {"max_output_length", 2 * kMostOutput}};
  const std::string session = take_session();
  if (!session.empty()) body["session_id"] = session;
  Ask how{.what = "cannot run a command in the sandbox", .deadline = deadline, .cancel_fd = cancel_fd, .once = true};
  auto begun = post("/v1/bash/exec", body, how);
  if (!begun && !session.empty()) {
    if (is_no_session(begun.error())) {
      body.erase("session_id");
      begun = post("/v1/bash/exec", body, std::move(how));
    } else {
      kill(session);
    }
  }
  // success = false does not say how far it came.
  if (!begun && begun.error().code() == Code::kFailedPrecondition) return has_begun(begun.error());
  return begun;
}

Result<shell::ScriptOutput> AioMachine::follow(const Json& begun, Clock::time_point deadline, int cancel_fd) const {
  Progress now = BELLJAR_TRY(parse_exec(begun));
  shell::ScriptOutput said{.exit_code = 0, .out = std::move(now.out), .err = std::move(now.err)};
  const std::string session = now.session;
  while (now.state == Progress::State::kRunning) {
    const auto left = std::chrono::floor<milliseconds>(deadline - Clock::now());
    const Json body = {{"session_id", session},
                       {"command_id", now.command},
                       {"offset", now.out_offset},
                       {"stderr_offset", now.err_offset},
                       {"wait", true},
                       {"wait_timeout", seconds_of(std::clamp<milliseconds>(left, 0ms, kOneCall))}};
    auto more =
        post("/v1/bash/output", body, {.what = "cannot read what a command says", .deadline = deadline, .cancel_fd = cancel_fd});
    auto next = more ? parse_output(*more) : more.error();
    if (!next) {
      kill(session);  // what cannot be seen any more must not run on
      return has_begun(next.error());
    }
    next->command = now.command;
    now = std::move(*next);
    said.out += now.out;
    said.err += now.err;
    if (said.out.size() + said.err.size() > kMostReply) {
      kill(session);
      return Error(Code::kDataLoss, "cannot run a command in the sandbox").reason("it said more than was to be expected");
    }
  }
  keep_session(session);
  said.exit_code = now.state == Progress::State::kEnded ? now.exit_code : now.state == Progress::State::kTimedOut ? 124 : 137;
  return said;
}

Result<shell::ScriptOutput> AioMachine::run(const std::string& script, milliseconds patience, int cancel_fd) const {
  const auto deadline = Clock::now() + patience;
  return follow(BELLJAR_TRY(begin(script, deadline, cancel_fd)), deadline, cancel_fd);
}

Result<void> AioMachine::health(int cancel_fd) const {
  const std::string what = "the sandbox does not answer";
  const auto reply = ask({.path = "/v1/sandbox",
                          .what = what,
                          .deadline = Clock::now() + std::min<milliseconds>(patience_, 10s),
                          .cancel_fd = cancel_fd});
  if (!reply) return Error(Code::kUnavailable, what).reason(reply.error().reason()).next(reply.error().next());
  const auto parsed = parse_envelope(*reply, what, secrets_);
  if (parsed) return {};
  if (parsed.error().code() == Code::kUnauthenticated) return parsed.error();
  return Error(Code::kUnavailable, what).reason(parsed.error().reason()).next(parsed.error().next());
}

shell::Machine::Limits AioMachine::limits() const noexcept {
  return {.longest = kLongest, .script = kMostScript, .output = kMostOutput};
}

// --- files

Result<void> AioMachine::check_there(const std::string& path, Clock::time_point deadline, int cancel_fd) const {
  return post("/v1/file/read", {{"file", path}, {"start_line", 0}, {"end_line", 1}},
              {.what = format("cannot read {}", belljar::quoted(path)), .deadline = deadline, .cancel_fd = cancel_fd})
      .map([](const Json&) {});
}

std::optional<Result<std::string>> AioMachine::read(const std::string& path, int cancel_fd) const {
  if (!is_text(path)) return std::nullopt;
  const std::string what = format("cannot read {}", belljar::quoted(path));
  const auto deadline = Clock::now() + patience_;
  auto reply = ask({.path = "/v1/file/download",
                    .query = "&path=" + percent_encoded(path, "/"),
                    .what = what,
                    .deadline = deadline,
                    .cancel_fd = cancel_fd,
                    .most = kMostFile});
  if (!reply) return reply.error();
  if (reply->status != 200) return refused(*reply, what, secrets_);
  // A complaint comes with status 200, and a file may consist of one: then the file is there.
  if (may_be_complaint(*reply)) {
    const auto there = check_there(path, deadline, cancel_fd);
    if (!there) return there.error();
  }
  return std::move(reply->body);
}

std::optional<Result<void>> AioMachine::write(const std::string& path, std::string_view bytes, int cancel_fd) const {
  if (!is_text(path)) return std::nullopt;
  const auto deadline = Clock::now() + patience_;
  for (std::size_t at = 0; at == 0 || at < bytes.size(); at += kOnePiece) {
    const std::string_view piece = bytes.substr(at, kOnePiece);
    const auto written = post(
        "/v1/file/write", {{"file", path}, {"content", to_base64(piece)}, {"encoding", "base64"}, {"append", at > 0}},
        {.what = format("cannot write {}", belljar::quoted(path)), .deadline = deadline, .cancel_fd = cancel_fd, .once = true});
    if (!written) return written.error();
    const Json& count = member(*written, "bytes_written");
    if (count.is_number_integer() && count.get<std::int64_t>() != static_cast<std::int64_t>(piece.size()))
      return Error(Code::kDataLoss, format("cannot write {}", belljar::quoted(path)))
          .reason(format("{} bytes were sent, and {} written", piece.size(), count.get<std::int64_t>()));
  }
  return Result<void>();
}

}  // namespace belljar::remote::volcengine
