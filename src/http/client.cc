// HTTP by libcurl's multi interface, driven by the caller's thread.
//
// curl_easy_perform() would not do: a caller must be able to stop waiting at its own deadline or when a
// descriptor becomes readable, and to read an answer as it comes. curl_multi_poll() waits for curl's sockets
// and for ours together.
//
// A multi handle keeps the connection of the transfer that ended in it, so pairs of handles go back to a
// pool: the next request to the same service saves the handshakes. curl_easy_reset() keeps connections and
// drops all options. Redirects are not followed, for a request may carry a key, and that is for one address.
#include "http/client.h"

#include <curl/curl.h>
#include <curl/easy.h>
#include <curl/header.h>
#include <curl/multi.h>
#include <curl/system.h>
#include <curl/urlapi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/format.h"
#include "base/free_with.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::http {
namespace {

constexpr std::size_t kIdleTransfers = 64;

using Url = std::unique_ptr<CURLU, FreeWith<curl_url_cleanup>>;

std::optional<std::string> part_of(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return std::nullopt;
  std::string result = text;
  curl_free(text);
  return result;
}

Error broken(std::string reason) { return Error(Code::kUnavailable, "the connection failed").reason(std::move(reason)); }

}  // namespace

// One transfer at a time, and the connection that it leaves for the next.
struct Stream::Transfer {
  std::unique_ptr<CURLM, FreeWith<curl_multi_cleanup>> multi{curl_multi_init()};
  std::unique_ptr<CURL, FreeWith<curl_easy_cleanup>> easy{curl_easy_init()};
  std::unique_ptr<curl_mime, FreeWith<curl_mime_free>> form;
  std::unique_ptr<curl_slist, FreeWith<curl_slist_free_all>> headers;
  Request request;
  std::string pending;
  std::size_t taken = 0, received = 0;
  bool too_much = false, added = false, over = false;
  CURLcode code = CURLE_OK;

  static std::size_t write(char* data, std::size_t size, std::size_t count, void* self) {
    Transfer& transfer = *static_cast<Transfer*>(self);
    const std::size_t bytes = size * count;
    transfer.received += bytes;
    if (transfer.received > transfer.request.most_reply) {
      transfer.too_much = true;
      return 0;  // ends the transfer
    }
    transfer.pending.append(data, bytes);
    return bytes;
  }

  bool usable() const noexcept { return multi != nullptr && easy != nullptr; }
  bool add_header(const std::string& text) {
    curl_slist* const before = headers.release();
    curl_slist* const longer = curl_slist_append(before, text.c_str());
    headers.reset(longer != nullptr ? longer : before);
    return longer != nullptr;
  }
  void set_body();
  bool begin();
  void end() noexcept;
};

void Stream::Transfer::set_body() {
  CURL* const handle = easy.get();
  if (request.as_file) {
    form.reset(curl_mime_init(handle));
    curl_mimepart* part = curl_mime_addpart(form.get());
    curl_mime_name(part, "file");
    curl_mime_filename(part, "file");
    curl_mime_type(part, "application/octet-stream");
    // Read from where it is: curl_mime_data would copy it.
    curl_mime_data_cb(
        part, static_cast<curl_off_t>(request.body.size()),
        [](char* to, std::size_t size, std::size_t count, void* self) {
          Transfer& transfer = *static_cast<Transfer*>(self);
          return transfer.request.body.copy(
              to, size * count,
              std::exchange(transfer.taken, std::min(transfer.taken + size * count, transfer.request.body.size())));
        },
        [](void* self, curl_off_t offset, int origin) {
          if (origin != SEEK_SET) return static_cast<int>(CURL_SEEKFUNC_CANTSEEK);
          static_cast<Transfer*>(self)->taken = static_cast<std::size_t>(offset);
          return static_cast<int>(CURL_SEEKFUNC_OK);
        },
        nullptr, this);
    curl_easy_setopt(handle, CURLOPT_MIMEPOST, form.get());
  } else if (request.method != "GET") {
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.body.c_str());
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
}

bool Stream::Transfer::begin() {
  CURL* const handle = easy.get();
  curl_easy_reset(handle);
  pending.clear();
  taken = received = 0;
  too_much = over = false;
  code = CURLE_OK;
  headers.reset();
  bool ready = add_header("Expect:");
  for (const std::string& header : request.headers) ready = ready && add_header(header);
  set_body();
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);  // a key goes to one address and no further
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "belljar");
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, static_cast<long>(request.connect_within.count()));
  curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(handle, CURLOPT_FRESH_CONNECT, request.only_once ? 1L : 0L);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &Transfer::write);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, this);
  added = ready && curl_multi_add_handle(multi.get(), handle) == CURLM_OK;
  return added;
}

void Stream::Transfer::end() noexcept {
  if (added) curl_multi_remove_handle(multi.get(), easy.get());
  added = false;
  form.reset();
}

class Stream::TransferPool {
 public:
  std::unique_ptr<Transfer> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto transfer = std::move(idle_.back());
        idle_.pop_back();
        return transfer;
      }
    }
    return std::make_unique<Transfer>();
  }
  void give_back(std::unique_ptr<Transfer> transfer) {
    transfer->end();
    transfer->request = {};
    transfer->pending = {};
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kIdleTransfers) idle_.push_back(std::move(transfer));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Transfer>> idle_;  // guarded by mutex_
};

Stream::Stream(std::shared_ptr<TransferPool> pool, std::unique_ptr<Transfer> transfer)
    : pool_(std::move(pool)), transfer_(std::move(transfer)) {}
Stream::~Stream() { pool_->give_back(std::move(transfer_)); }

Result<Stream::Progress> Stream::wait(Clock::time_point until, std::span<const int> wake) {
  std::vector<curl_waitfd> fds;
  for (const int fd : wake) {
    if (fd >= 0) fds.push_back({fd, CURL_WAIT_POLLIN, 0});
  }
  const auto deadline = transfer_->request.deadline;
  for (;;) {
    int running = 0;
    if (!transfer_->over && curl_multi_perform(transfer_->multi.get(), &running) != CURLM_OK) return broken("libcurl failed");
    if (!transfer_->over && running == 0) {
      int left = 0;
      while (const CURLMsg* message = curl_multi_info_read(transfer_->multi.get(), &left)) transfer_->code = message->data.result;
      transfer_->over = true;
    }
    if (!transfer_->pending.empty()) return Progress::kSomething;
    if (transfer_->over && transfer_->code == CURLE_OK) return Progress::kEnd;
    if (transfer_->too_much)
      return Error(Code::kResourceExhausted, "the connection failed")
          .reason(format("the reply is larger than {} bytes", transfer_->request.most_reply));
    if (transfer_->over) return broken(curl_easy_strerror(transfer_->code));
    const auto now = Clock::now();
    if (deadline && now >= *deadline) return Error(Code::kDeadlineExceeded, "the connection failed").reason("no answer in time");
    if (now >= until || std::ranges::any_of(fds, [](const curl_waitfd& fd) { return fd.revents != 0; })) return Progress::kNothing;
    const auto next = deadline ? std::min(until, *deadline) : until;
    const auto wait = std::clamp<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(next - now).count(), 0, 60'000);
    curl_multi_poll(transfer_->multi.get(), fds.data(), static_cast<unsigned>(fds.size()), static_cast<int>(wait), nullptr);
  }
}

std::string Stream::take() { return std::exchange(transfer_->pending, {}); }

long Stream::status() const {
  long status = 0;
  curl_easy_getinfo(transfer_->easy.get(), CURLINFO_RESPONSE_CODE, &status);
  return status;
}

Reply Stream::head() const {
  Reply reply;
  reply.status = status();
  const char* type = nullptr;
  curl_easy_getinfo(transfer_->easy.get(), CURLINFO_CONTENT_TYPE, &type);
  if (type != nullptr) reply.content_type = type;
  curl_header* found = nullptr;
  if (curl_easy_header(transfer_->easy.get(), "Retry-After", 0, CURLH_HEADER, -1, &found) != CURLHE_OK) return reply;
  reply.retry_after = found->value;
  curl_off_t after = 0;
  if (curl_easy_getinfo(transfer_->easy.get(), CURLINFO_RETRY_AFTER, &after) == CURLE_OK)
    reply.retry_seconds = static_cast<long>(after);
  return reply;
}

Client::Client() : pool_(std::make_shared<Stream::TransferPool>()) {
  [[maybe_unused]] static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);  // once in a process, as its manual asks
}

Result<std::unique_ptr<Stream>> Client::open(Request request) const {
  auto transfer = pool_->take();
  if (!transfer->usable()) return Error(Code::kResourceExhausted, "the connection failed").reason("libcurl does not start");
  transfer->request = std::move(request);
  if (!transfer->begin()) return Error(Code::kResourceExhausted, "the connection failed").reason("libcurl takes no request");
  return std::unique_ptr<Stream>(new Stream(pool_, std::move(transfer)));
}

Result<Reply> Client::ask(Request request, int cancel_fd) const {
  const auto until = request.deadline.value_or(Clock::now() + std::chrono::minutes(1));
  request.deadline = until;
  const auto stream = BELLJAR_TRY(open(std::move(request)));
  std::string body;
  for (;;) {
    switch (BELLJAR_TRY(stream->wait(until, {&cancel_fd, 1}))) {
      case Stream::Progress::kSomething:
        body += stream->take();
        break;
      case Stream::Progress::kEnd: {
        Reply reply = stream->head();
        reply.body = std::move(body);
        return reply;
      }
      case Stream::Progress::kNothing:
        if (Clock::now() < until) return Error(Code::kCanceled, "the request was cancelled");
        return Error(Code::kDeadlineExceeded, "the connection failed").reason("no answer in time");
    }
  }
}

std::optional<UrlParts> parse_url(const std::string& text) {
  const Url url(curl_url());
  if (!url || curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return {};
  UrlParts parts{.scheme = part_of(url.get(), CURLUPART_SCHEME).value_or(""),
                 .host = part_of(url.get(), CURLUPART_HOST).value_or("")};
  if (parts.scheme != "http" && parts.scheme != "https") return {};
  parts.has_user = part_of(url.get(), CURLUPART_USER) || part_of(url.get(), CURLUPART_PASSWORD);
  return parts;
}

bool is_this_machine(std::string_view host) noexcept {
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]" || host == "::1";
}

}  // namespace belljar::http
