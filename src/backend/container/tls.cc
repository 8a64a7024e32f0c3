#include "backend/container/tls.h"

#include <openssl/err.h>
#include <openssl/prov_ssl.h>
#include <openssl/ssl.h>
#include <openssl/tls1.h>
#include <openssl/types.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "backend/container/address.h"
#include "base/format.h"
#include "base/thread.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend::container {
namespace {

using Clock = std::chrono::steady_clock;

struct Free {
  void operator()(SSL* ssl) const noexcept { ::SSL_free(ssl); }
  void operator()(SSL_CTX* context) const noexcept { ::SSL_CTX_free(context); }
};

// The oldest error of this thread, and none is left.
std::string take_error() {
  const unsigned long code = ::ERR_get_error();
  ::ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ::ERR_reason_error_string(code);
  return reason == nullptr ? std::string("the connection was closed") : std::string(reason);
}

Error bad_file(const std::string& path, std::string_view what) {
  const int errnum = ::access(path.c_str(), R_OK) == 0 ? 0 : errno;
  const Code code = errnum == ENOENT ? Code::kNotFound : errnum == EACCES ? Code::kPermissionDenied : Code::kInvalidArgument;
  const Error error = Error(code, format("cannot use {} as {}", quoted(path), what))
                          .next("DOCKER_CERT_PATH names a directory with ca.pem, cert.pem and key.pem");
  return errnum != 0 ? Error(error).sys(errnum, "open") : Error(error).reason(take_error());
}

Result<std::unique_ptr<SSL_CTX, Free>> make_context(const TlsFiles& files) {
  std::unique_ptr<SSL_CTX, Free> context(::SSL_CTX_new(::TLS_client_method()));
  if (context == nullptr) return Error(Code::kResourceExhausted, "cannot begin TLS").reason(take_error());
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ::ERR_clear_error();
  if (::SSL_CTX_load_verify_locations(context.get(), files.ca.c_str(), nullptr) != 1)
    return bad_file(files.ca, "the engine's authority");
  const bool none = ::access(files.certificate.c_str(), F_OK) != 0 && ::access(files.key.c_str(), F_OK) != 0;
  if (none) return context;
  if (::SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1)
    return bad_file(files.certificate, "our certificate");
  if (::SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return bad_file(files.key, "our certificate's key");
  return context;
}

// False: no name would be checked.
bool expect_host(SSL* ssl, const std::string& host) {
  X509_VERIFY_PARAM* const verify = ::SSL_get0_param(ssl);
  if (::X509_VERIFY_PARAM_set1_ip_asc(verify, host.c_str()) == 1) return true;
  ::X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return ::X509_VERIFY_PARAM_set1_host(verify, host.c_str(), host.size()) == 1 &&
         ::SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
}

// What `ssl` waits for; 0: it is done or broken.
short wanted(int error) noexcept {
  return error == SSL_ERROR_WANT_READ ? short{POLLIN} : error == SSL_ERROR_WANT_WRITE ? short{POLLOUT} : short{0};
}

std::string untrusted_reason(long verified, const std::string& host) {
  if (verified == X509_V_ERR_HOSTNAME_MISMATCH || verified == X509_V_ERR_IP_ADDRESS_MISMATCH)
    return format("its certificate is not for {}", quoted(host));
  return format("its certificate: {}", ::X509_verify_cert_error_string(verified));
}

// A peer that hangs up while we write is an error, not a signal to the program that we are part of.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &old_);
  }
  ~NoPipeSignal() {
    const timespec now{};
    if (sigismember(&old_, SIGPIPE) == 0) {
      while (::sigtimedwait(&pipe_, nullptr, &now) > 0) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_{}, old_{};
};

Result<void> shake_hands(SSL* ssl, int fd, const Address& address, Clock::time_point deadline) {
  const std::string what = format("cannot reach the container engine at {}", quoted(to_string(address)));
  const NoPipeSignal quiet;
  for (;;) {
    ::ERR_clear_error();
    const int done = ::SSL_connect(ssl);
    if (done == 1) return {};
    const short events = wanted(::SSL_get_error(ssl, done));
    if (events == 0) break;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{fd, events, 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(std::min<long>(left, 60'000))) == 0)
      return Error(Code::kDeadlineExceeded, what)
          .reason("it does not answer the TLS greeting")
          .next("check that the port speaks TLS");
  }
  const long verified = ::SSL_get_verify_result(ssl);
  if (verified != X509_V_OK)
    return Error(Code::kUnauthenticated, what)
        .reason(untrusted_reason(verified, address.host))
        .next("check the address, and that ca.pem in DOCKER_CERT_PATH is the engine's");
  return Error(Code::kUnavailable, what)
      .reason("TLS: " + take_error())
      .next("check that the port speaks TLS, and our cert.pem in DOCKER_CERT_PATH");
}

}  // namespace

struct TlsPipe::Line {
  std::unique_ptr<SSL_CTX, Free> context;
  UniqueFd socket;
  std::unique_ptr<SSL, Free> ssl;
  UniqueFd plain;  // our end
};

Result<std::unique_ptr<TlsPipe>> TlsPipe::open(UniqueFd socket, const Address& address, Deadline deadline, UniqueFd& plain) {
  auto line = std::make_unique<Line>();
  line->context = BELLJAR_TRY(make_context(*address.tls));
  line->socket = std::move(socket);
  line->ssl.reset(::SSL_new(line->context.get()));
  int ends[2];
  if (line->ssl == nullptr || ::SSL_set_fd(line->ssl.get(), line->socket.get()) != 1 ||
      ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return Error(Code::kResourceExhausted, "cannot begin TLS").sys(errno, "socketpair");
  line->plain = UniqueFd(ends[0]);
  plain = UniqueFd(ends[1]);
  if (!expect_host(line->ssl.get(), address.host))
    return Error(Code::kResourceExhausted, "cannot begin TLS").reason("the engine's name cannot be checked");
  BELLJAR_CHECK(shake_hands(line->ssl.get(), line->socket.get(), address, deadline));
  return std::unique_ptr<TlsPipe>(new TlsPipe(std::move(line)));
}

TlsPipe::TlsPipe(std::unique_ptr<Line> line) : line_(std::move(line)) {
  thread_ = start_thread([this] { relay(); });
}

TlsPipe::~TlsPipe() {
  if (thread_.joinable()) thread_.join();
}

std::string TlsPipe::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

namespace {

// What relays between the caller, who reads and writes plain bytes at a socket, and the engine, who speaks TLS.
//
// A round has four steps: each direction reads a piece where it holds none, and writes what it holds. So a side that takes nothing
// stops its own direction alone, and no more than a piece of each is held. SSL_read may want to write and the other way round (key
// updates), so every step is tried again whenever one has got rid of its piece; a round in which nothing can go says by the events
// that its steps want for what to wait. Of the line nothing is wanted while the caller does not read: its end would be told again
// and again.
//
// Over once one side is gone and the other has what it had said; who does not take that within a second, has none of it.
class Relay {
 public:
  Relay(SSL* ssl, int socket, int plain) : ssl_(ssl), socket_(socket), plain_(plain) {}
  std::string run() {  // why the line broke; empty: it did not
    while (!(caller_gone_ && out_.empty()) && !(peer_gone_ && in_.empty())) {
      socket_events_ = plain_events_ = 0;
      read_caller();
      if (write_peer()) continue;
      read_peer();
      if (write_caller()) continue;
      if (!peer_gone_ && !caller_gone_) wait();
      else if (!wait_for_last()) break;
    }
    return why_;
  }

 private:
  // One direction: what was read and is not yet written.
  struct Buffer {
    std::array<char, 16U << 10> bytes;
    std::size_t begin = 0, end = 0;
    bool empty() const noexcept { return begin == end; }
    void clear() noexcept { begin = end = 0; }
    void fill(ssize_t size) noexcept { begin = 0, end = static_cast<std::size_t>(size); }
  };

  void read_caller() {
    if (caller_gone_ || !out_.empty()) return;
    const ssize_t got = ::recv(plain_, out_.bytes.data(), out_.bytes.size(), 0);
    if (got > 0) out_.fill(got);
    else if (got == 0 || (errno != EAGAIN && errno != EINTR)) caller_gone_ = true;
    else plain_events_ = POLLIN;
  }
  bool write_peer() {  // true: all of the piece
    if (out_.empty() || peer_gone_) return false;
    ::ERR_clear_error();
    const int wrote = ::SSL_write(ssl_, out_.bytes.data() + out_.begin, static_cast<int>(out_.end - out_.begin));
    if (wrote > 0) out_.begin += static_cast<std::size_t>(wrote);
    else if (const short events = wanted(::SSL_get_error(ssl_, wrote)); events != 0) socket_events_ |= events;
    else out_.clear();  // what the peer says of it is read next
    return out_.empty();
  }
  void read_peer() {
    if (peer_gone_ || !in_.empty()) return;
    ::ERR_clear_error();
    const int got = ::SSL_read(ssl_, in_.bytes.data(), static_cast<int>(in_.bytes.size()));
    const int error = ::SSL_get_error(ssl_, got);
    if (got > 0) return in_.fill(got);
    if (const short events = wanted(error); events != 0) return void(socket_events_ |= events);
    peer_gone_ = true;
    // An end without a word is an end like that of any socket: HTTP tells whether something is missing.
    if (error == SSL_ERROR_SSL && ERR_GET_REASON(::ERR_peek_error()) != SSL_R_UNEXPECTED_EOF_WHILE_READING) why_ = take_error();
  }
  bool write_caller() {  // true: all of the piece
    if (in_.empty()) return false;
    const ssize_t wrote = ::send(plain_, in_.bytes.data() + in_.begin, in_.end - in_.begin, MSG_NOSIGNAL);
    if (wrote > 0) in_.begin += static_cast<std::size_t>(wrote);
    else if (errno == EAGAIN) plain_events_ |= POLLOUT;
    else if (errno != EINTR) caller_gone_ = true, in_.clear();
    return in_.empty();
  }
  bool wait_for_last() const {
    pollfd last{peer_gone_ ? plain_ : socket_, POLLOUT, 0};
    return ::poll(&last, 1, 1000) > 0;
  }
  void wait() {
    std::array<pollfd, 2> set = {{{plain_, plain_events_, 0}, {socket_events_ == 0 ? -1 : socket_, socket_events_, 0}}};
    ::poll(set.data(), set.size(), -1);
    // Nobody reads what we hold: it hung up.
    if ((set[0].revents & (POLLHUP | POLLERR)) != 0 && (plain_events_ & POLLIN) == 0) caller_gone_ = true, in_.clear();
  }

  SSL* const ssl_;
  const int socket_, plain_;
  Buffer out_, in_;
  bool caller_gone_ = false, peer_gone_ = false;
  short socket_events_ = 0, plain_events_ = 0;  // that the steps of this round want
  std::string why_;
};

}  // namespace

void TlsPipe::relay() {
  std::string why = Relay(line_->ssl.get(), line_->socket.get(), line_->plain.get()).run();
  {
    const std::lock_guard lock(mutex_);
    why_ = std::move(why);
  }
  (void)::SSL_shutdown(line_->ssl.get());
  ::shutdown(line_->socket.get(), SHUT_RDWR);
  line_->plain.reset();
}

}  // namespace belljar::backend::container
