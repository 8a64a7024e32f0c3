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
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::http {
namespace {

using Clock = std::chrono::steady_clock;
using Curl = std::unique_ptr<CURL, void (*)(CURL*)>;
using Url = std::unique_ptr<CURLU, void (*)(CURLU*)>;
using Multi = std::unique_ptr<CURLM, CURLMcode (*)(CURLM*)>;

bool is_ready() noexcept {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);  // once in a process, as its manual asks
  return ready == CURLE_OK;
}

class Headers {
 public:
  Headers() = default;
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  ~Headers() { curl_slist_free_all(list_); }
  void add(const std::string& line) { list_ = curl_slist_append(list_, line.c_str()); }
  curl_slist* get() const noexcept { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

struct Exchange {
  const Post& post;
  const Take& take;
  CURL* curl = nullptr;
  Reply reply;
  std::size_t bytes = 0;
  Clock::time_point last_byte = Clock::now();
  bool too_large = false, refused = false;
};

std::size_t take_piece(char* data, std::size_t size, std::size_t count, void* to) {
  auto& exchange = *static_cast<Exchange*>(to);
  const std::string_view piece(data, size * count);
  exchange.last_byte = Clock::now();
  exchange.bytes += piece.size();
  exchange.too_large = exchange.bytes > exchange.post.most_bytes;
  if (exchange.too_large) return CURL_WRITEFUNC_ERROR;
  long status = 0;
  curl_easy_getinfo(exchange.curl, CURLINFO_RESPONSE_CODE, &status);
  if (!exchange.take || status != 200) {
    exchange.reply.body += piece;
    return piece.size();
  }
  exchange.refused = !exchange.take(piece);
  return exchange.refused ? CURL_WRITEFUNC_ERROR : piece.size();
}

void set_options(Exchange& exchange, const Headers& headers) {
  CURL* curl = exchange.curl;
  const Post& post = exchange.post;
  curl_easy_setopt(curl, CURLOPT_URL, post.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, post.body.c_str());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(post.body.size()));
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(post.timeout.count()));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "belljar");
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_piece);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
}

Error failed(Code code, std::string why) { return Error(code, "the endpoint gave no answer").reason(std::move(why)); }

Result<void> judge(const Exchange& exchange, CURLcode code) {
  if (code == CURLE_OK) return {};
  if (exchange.too_large) return failed(Code::kResourceExhausted, format("it is larger than {} bytes", exchange.post.most_bytes));
  if (exchange.refused) return failed(Code::kAborted, "it is not what was expected");
  if (code == CURLE_OPERATION_TIMEDOUT && exchange.post.timeout.count() > 0)
    return failed(Code::kDeadlineExceeded, format("nothing whole within {} ms", exchange.post.timeout.count()));
  return failed(Code::kUnavailable, curl_easy_strerror(code));
}

// libcurl's own loop, so that somebody can cancel and silence is noticed.
Result<CURLcode> drive(CURLM* multi, const Exchange& exchange) {
  const Post& post = exchange.post;
  for (;;) {
    int running = 0;
    if (curl_multi_perform(multi, &running) != CURLM_OK) return failed(Code::kInternal, "libcurl does not go on");
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg == CURLMSG_DONE) return message->data.result;
    }
    if (running == 0) return failed(Code::kInternal, "libcurl ended without a word");
    int patience = 1000;
    if (post.silence.count() > 0) {
      const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(exchange.last_byte + post.silence - Clock::now());
      if (rest.count() <= 0) return failed(Code::kDeadlineExceeded, format("not a byte for {} ms", post.silence.count()));
      patience = static_cast<int>(std::min<std::chrono::milliseconds::rep>(rest.count() + 1, patience));
    }
    curl_waitfd cancel{post.cancel_fd, CURL_WAIT_POLLIN, 0};
    curl_multi_poll(multi, post.cancel_fd >= 0 ? &cancel : nullptr, post.cancel_fd >= 0 ? 1 : 0, patience, nullptr);
    if (cancel.revents != 0) return failed(Code::kCanceled, "it was cancelled");
  }
}

std::optional<std::string> part_of(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return std::nullopt;
  std::string result = text;
  curl_free(text);
  return result;
}

bool is_this_machine(std::string_view host) noexcept {
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]" || host == "::1";
}

}  // namespace

Result<Reply> post(const Post& what, const Take& take) {
  if (!is_ready()) return failed(Code::kInternal, "libcurl does not start");
  const Curl curl(curl_easy_init(), curl_easy_cleanup);
  const Multi multi(curl_multi_init(), curl_multi_cleanup);
  if (!curl || !multi) return failed(Code::kInternal, "libcurl does not start");
  Exchange exchange{.post = what, .take = take, .curl = curl.get()};
  Headers headers;
  headers.add("Expect:");
  for (const std::string& line : what.headers) headers.add(line);
  set_options(exchange, headers);
  curl_multi_add_handle(multi.get(), curl.get());
  const auto code = drive(multi.get(), exchange);
  curl_multi_remove_handle(multi.get(), curl.get());
  if (!code) return code.error();
  BELLJAR_CHECK(judge(exchange, *code));
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &exchange.reply.status);
  const char* type = nullptr;
  if (curl_easy_getinfo(curl.get(), CURLINFO_CONTENT_TYPE, &type) == CURLE_OK && type != nullptr)
    exchange.reply.content_type = type;
  curl_header* header = nullptr;
  if (curl_easy_header(curl.get(), "Retry-After", 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
    exchange.reply.retry_after = header->value;
  return std::move(exchange.reply);
}

Result<void> check_endpoint(const std::string& url, std::string_view what) {
  const Url parsed(curl_url(), curl_url_cleanup);
  const bool fine = is_ready() && parsed && curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) == CURLUE_OK;
  const std::string scheme = fine ? part_of(parsed.get(), CURLUPART_SCHEME).value_or("") : "";
  const std::string host = fine ? part_of(parsed.get(), CURLUPART_HOST).value_or("") : "";
  const auto bad = [&] { return Error(Code::kInvalidArgument, format("cannot ask {} at {}", what, belljar::quoted(url))); };
  if (scheme != "https" && scheme != "http") return bad().next("use https://HOST");
  if (fine && part_of(parsed.get(), CURLUPART_USER)) return bad().reason("a password in a URL is shown to everybody who sees it");
  if (scheme == "http" && !is_this_machine(host))
    return bad()
        .reason("over plain http everybody on the way reads the key and what is said")
        .next("use https://, or an endpoint of this machine");
  return {};
}

}  // namespace belljar::http
