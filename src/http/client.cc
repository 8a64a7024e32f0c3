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
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::http {
namespace {

constexpr std::size_t kIdleLines = 64;

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* thing) const noexcept {
    Free(thing);
  }
};
using Url = std::unique_ptr<CURLU, Freed<curl_url_cleanup>>;

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
struct Stream::Line {
  std::unique_ptr<CURLM, Freed<curl_multi_cleanup>> multi{curl_multi_init()};
  std::unique_ptr<CURL, Freed<curl_easy_cleanup>> easy{curl_easy_init()};
  std::unique_ptr<curl_mime, Freed<curl_mime_free>> form;
  std::unique_ptr<curl_slist, Freed<curl_slist_free_all>> headers;
  Request request;
  std::string pending;
  std::size_t taken = 0, received = 0;
  bool too_much = false, added = false, over = false;
  CURLcode code = CURLE_OK;

  static std::size_t write(char* data, std::size_t size, std::size_t count, void* self) {
    Line& line = *static_cast<Line*>(self);
    const std::size_t bytes = size * count;
    line.received += bytes;
    if (line.received > line.request.most_reply) {
      line.too_much = true;
      return 0;  // ends the transfer
    }
    line.pending.append(data, bytes);
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

void Stream::Line::set_body() {
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
          Line& line = *static_cast<Line*>(self);
          return line.request.body.copy(to, size * count,
                                        std::exchange(line.taken, std::min(line.taken + size * count, line.request.body.size())));
        },
        [](void* self, curl_off_t offset, int origin) {
          if (origin != SEEK_SET) return static_cast<int>(CURL_SEEKFUNC_CANTSEEK);
          static_cast<Line*>(self)->taken = static_cast<std::size_t>(offset);
          return static_cast<int>(CURL_SEEKFUNC_OK);
        },
        nullptr, this);
    curl_easy_setopt(handle, CURLOPT_MIMEPOST, form.get());
  } else if (request.method != "GET") {
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.body.c_str());
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
}

bool Stream::Line::begin() {
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
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &Line::write);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, this);
  added = ready && curl_multi_add_handle(multi.get(), handle) == CURLM_OK;
  return added;
}

void Stream::Line::end() noexcept {
  if (added) curl_multi_remove_handle(multi.get(), easy.get());
  added = false;
  form.reset();
}

class Stream::Lines {
 public:
  std::unique_ptr<Line> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto line = std::move(idle_.back());
        idle_.pop_back();
        return line;
      }
    }
    return std::make_unique<Line>();
  }
  void give_back(std::unique_ptr<Line> line) {
    line->end();
    line->request = {};
    line->pending = {};
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kIdleLines) idle_.push_back(std::move(line));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Line>> idle_;  // guarded by mutex_
};

Stream::Stream(std::shared_ptr<Lines> lines, std::unique_ptr<Line> line) : lines_(std::move(lines)), line_(std::move(line)) {}
Stream::~Stream() { lines_->give_back(std::move(line_)); }

Result<Stream::Came> Stream::wait(Clock::time_point until, std::span<const int> wake) {
  std::vector<curl_waitfd> fds;
  for (const int fd : wake) {
    if (fd >= 0) fds.push_back({fd, CURL_WAIT_POLLIN, 0});
  }
  const auto deadline = line_->request.deadline;
  for (;;) {
    int running = 0;
    if (!line_->over && curl_multi_perform(line_->multi.get(), &running) != CURLM_OK) return broken("libcurl failed");
    if (!line_->over && running == 0) {
      int left = 0;
      while (const CURLMsg* message = curl_multi_info_read(line_->multi.get(), &left)) line_->code = message->data.result;
      line_->over = true;
    }
    if (!line_->pending.empty()) return Came::kSomething;
    if (line_->over && line_->code == CURLE_OK) return Came::kEnd;
    if (line_->too_much)
      return Error(Code::kResourceExhausted, "the connection failed")
          .reason(format("the reply is larger than {} bytes", line_->request.most_reply));
    if (line_->over) return broken(curl_easy_strerror(line_->code));
    const auto now = Clock::now();
    if (deadline && now >= *deadline) return Error(Code::kDeadlineExceeded, "the connection failed").reason("no answer in time");
    if (now >= until || std::ranges::any_of(fds, [](const curl_waitfd& fd) { return fd.revents != 0; })) return Came::kNothing;
    const auto next = deadline ? std::min(until, *deadline) : until;
    const auto wait = std::clamp<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(next - now).count(), 0, 60'000);
    curl_multi_poll(line_->multi.get(), fds.data(), static_cast<unsigned>(fds.size()), static_cast<int>(wait), nullptr);
  }
}

std::string Stream::take() { return std::exchange(line_->pending, {}); }

long Stream::status() const {
  long status = 0;
  curl_easy_getinfo(line_->easy.get(), CURLINFO_RESPONSE_CODE, &status);
  return status;
}

Reply Stream::head() const {
  Reply reply;
  reply.status = status();
  const char* type = nullptr;
  curl_easy_getinfo(line_->easy.get(), CURLINFO_CONTENT_TYPE, &type);
  if (type != nullptr) reply.content_type = type;
  curl_header* found = nullptr;
  if (curl_easy_header(line_->easy.get(), "Retry-After", 0, CURLH_HEADER, -1, &found) != CURLHE_OK) return reply;
  reply.retry_after = found->value;
  curl_off_t after = 0;
  if (curl_easy_getinfo(line_->easy.get(), CURLINFO_RETRY_AFTER, &after) == CURLE_OK)
    reply.retry_seconds = static_cast<long>(after);
  return reply;
}

Client::Client() : lines_(std::make_shared<Stream::Lines>()) {
  [[maybe_unused]] static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);  // once in a process, as its manual asks
}

Result<std::unique_ptr<Stream>> Client::open(Request request) const {
  auto line = lines_->take();
  if (!line->usable()) return Error(Code::kResourceExhausted, "the connection failed").reason("libcurl does not start");
  line->request = std::move(request);
  if (!line->begin()) return Error(Code::kResourceExhausted, "the connection failed").reason("libcurl takes no request");
  return std::unique_ptr<Stream>(new Stream(lines_, std::move(line)));
}

Result<Reply> Client::ask(Request request, int cancel_fd) const {
  const auto until = request.deadline.value_or(Clock::now() + std::chrono::minutes(1));
  request.deadline = until;
  const auto stream = BELLJAR_TRY(open(std::move(request)));
  std::string body;
  for (;;) {
    switch (BELLJAR_TRY(stream->wait(until, {&cancel_fd, 1}))) {
      case Stream::Came::kSomething:
        body += stream->take();
        break;
      case Stream::Came::kEnd: {
        Reply reply = stream->head();
        reply.body = std::move(body);
        return reply;
      }
      case Stream::Came::kNothing:
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
