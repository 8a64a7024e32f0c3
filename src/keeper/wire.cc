// Frames over a stream socket. The descriptors of a message travel with the first byte of its
// frame, as SCM_RIGHTS (unix(7)), so they have arrived by the time that the frame is complete. They
// are collected until then. No side sends two messages with descriptors on one connection
// (serve.h), so descriptors cannot be given to the wrong message.
//
// Frames are judged before they are trusted: a length beyond kMostBytes, more descriptors than any
// message has, ancillary data that was cut (MSG_CTRUNC), or a value that is no object ends the
// connection. After one of these the position in the stream is not known any more, so there is
// nothing to go on from.
//
// receive() keeps a part of a frame for the next call, so that a timeout in the middle loses
// nothing.
#include "keeper/wire.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "kernel/pass_fds.h"

namespace belljar::keeper {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kHeader = 4;

Error gone(int errnum, const char* call) {
  return Error(Code::kUnavailable, "the sandbox's keeper is gone").sys(errnum, call).next("`belljar ls` shows what there is");
}
Error nonsense() { return Error(Code::kUnavailable, "the sandbox's keeper sent what is no message"); }

int left(Clock::time_point end) {
  const auto rest = std::chrono::duration_cast<milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(rest, 0, 1 << 30));
}

}  // namespace

Channel::Channel(UniqueFd socket) noexcept : socket_(std::move(socket)) { ::fcntl(socket_.get(), F_SETFL, O_RDWR | O_NONBLOCK); }

void Channel::stop_receiving() const noexcept { ::shutdown(socket_.get(), SHUT_RD); }

Result<void> Channel::send(const Json& message, std::initializer_list<int> fds, milliseconds patience) {
  std::string frame(kHeader, '\0');
  Json::to_cbor(message, frame);
  const std::size_t size = frame.size() - kHeader;
  if (size > kMostBytes)
    return Error(Code::kInvalidArgument, "cannot send the request to the sandbox")
        .reason("arguments, environment and text are larger than 16 MiB together");
  for (std::size_t i = 0; i < kHeader; ++i) frame[i] = static_cast<char>(size >> (8 * i) & 0xFFU);
  const Clock::time_point end = Clock::now() + patience;
  for (std::size_t at = 0; at < frame.size();) {
    const std::size_t with = at == 0 ? fds.size() : 0;  // they go with the first byte
    const ssize_t sent = kernel::send_fds<kMostDescriptors>(socket_.get(), &frame[at], frame.size() - at, fds.begin(), with);
    if (sent > 0) at += static_cast<std::size_t>(sent);
    if (sent >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return gone(errno, "sendmsg");
    const int rest = left(end);
    if (rest == 0) return Error(Code::kDeadlineExceeded, "the other side of the sandbox's socket does not read");
    pollfd wait{socket_.get(), POLLOUT, 0};
    ::poll(&wait, 1, rest);
  }
  return {};
}

Result<std::optional<Received>> Channel::receive(std::optional<milliseconds> patience) {
  const Clock::time_point end = Clock::now() + patience.value_or(milliseconds(0));
  for (;;) {
    auto message = BELLJAR_TRY(take_message());
    if (message) return message;
    pollfd wait{socket_.get(), POLLIN, 0};
    const int ready = ::poll(&wait, 1, patience ? left(end) : -1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::optional<Received>();
    BELLJAR_CHECK(take_bytes());
  }
}

Result<void> Channel::take_bytes() {
  char bytes[16384];
  const auto got = kernel::receive_fds<kMostDescriptors>(socket_.get(), bytes, sizeof bytes);
  if (got.size < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got.size <= 0) return gone(got.size < 0 ? errno : 0, got.size < 0 ? "recvmsg" : "");
  buffer_.append(bytes, static_cast<std::size_t>(got.size));
  for (std::size_t i = 0; i < got.count; ++i) fds_.emplace_back(got.fds[i]);
  if (got.cut || fds_.size() > kMostDescriptors) return nonsense();
  return {};
}

Result<std::optional<Received>> Channel::take_message() {
  if (buffer_.size() < kHeader) return std::optional<Received>();
  std::uint32_t size = 0;
  for (std::size_t i = 0; i < kHeader; ++i) size |= static_cast<std::uint32_t>(static_cast<unsigned char>(buffer_[i])) << (8 * i);
  if (size > kMostBytes) return nonsense();
  if (buffer_.size() - kHeader < size) return std::optional<Received>();
  const auto begin = buffer_.begin() + kHeader;
  Received received{Json::from_cbor(begin, begin + size, /*strict=*/true, /*allow_exceptions=*/false), std::exchange(fds_, {})};
  buffer_.erase(0, kHeader + size);
  if (!received.message.is_object()) return nonsense();
  return std::optional<Received>(std::move(received));
}

Json to_message(const Error& error) {
  return {{"code", static_cast<int>(error.code())},
          {"what", error.what()},
          {"reason", error.reason()},
          {"next", error.next()},
          {"excerpt", error.excerpt()},
          {"errno", error.errnum()},
          {"call", error.call()},
          {"exit_code", error.exit_code()}};
}

Error error_from(const Json& message) {
  const auto text = [&](const char* key) { return message.value(key, std::string()); };
  return Error(static_cast<Code>(message.value("code", static_cast<int>(Code::kUnknown))), text("what"))
      .reason(text("reason"))
      .next(text("next"))
      .excerpt(text("excerpt"))
      .sys(message.value("errno", 0), text("call"))
      .exit_code(message.value("exit_code", 125));
}

}  // namespace belljar::keeper
