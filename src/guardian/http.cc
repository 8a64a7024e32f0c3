#include <curl/curl.h>
#include <curl/easy.h>
#include <curl/system.h>
#include <curl/urlapi.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/guardian.h"
#include "belljar/result.h"
#include "belljar/turn.h"

namespace belljar {
namespace {

constexpr std::size_t kMostReply = 1U << 20;

using Curl = std::unique_ptr<CURL, void (*)(CURL*)>;
using Url = std::unique_ptr<CURLU, void (*)(CURLU*)>;

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

std::size_t take(char* data, std::size_t size, std::size_t count, void* to) {
  auto& reply = *static_cast<std::string*>(to);
  if (reply.size() + size * count > kMostReply) return 0;  // ends the transfer
  reply.append(data, size * count);
  return size * count;
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

class HttpGuardian final : public Guardian {
 public:
  explicit HttpGuardian(GuardianOptions options) : options_(std::move(options)) {
    while (options_.url.ends_with('/')) options_.url.pop_back();
    options_.url += options_.wire == GuardianWire::kOpenAi ? "/v1/chat/completions" : "/v1/messages";
  }
  Advice on_failure() const noexcept override { return options_.on_failure; }
  Result<GuardianVerdict> review(const GuardianQuestion& question) override;

 private:
  void add_headers(Headers& headers) const;
  GuardianOptions options_;
};

void HttpGuardian::add_headers(Headers& headers) const {
  headers.add("Content-Type: application/json");
  headers.add("Expect:");
  if (options_.wire == GuardianWire::kAnthropic) headers.add("anthropic-version: 2023-06-01");
  if (options_.key.empty()) return;
  headers.add((options_.wire == GuardianWire::kAnthropic ? "x-api-key: " : "Authorization: Bearer ") + options_.key);
}

Result<GuardianVerdict> HttpGuardian::review(const GuardianQuestion& question) {
  const Curl curl(curl_easy_init(), curl_easy_cleanup);
  if (!curl) return Error(Code::kInternal, "cannot ask the guardian").reason("libcurl does not start");
  const std::string body = guardian_request(options_, question);
  std::string reply;
  Headers headers;
  add_headers(headers);
  curl_easy_setopt(curl.get(), CURLOPT_URL, options_.url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(options_.timeout.count()));
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
  curl_easy_setopt(curl.get(), CURLOPT_USERAGENT, "belljar");
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &reply);
  const CURLcode code = curl_easy_perform(curl.get());
  if (code == CURLE_OPERATION_TIMEDOUT)
    return Error(Code::kDeadlineExceeded, "the guardian gave no verdict")
        .reason(format("no answer within {} ms", options_.timeout.count()));
  if (code == CURLE_WRITE_ERROR)
    return Error(Code::kResourceExhausted, "the guardian gave no verdict").reason("its reply is larger than 1 MiB");
  if (code != CURLE_OK) return Error(Code::kUnavailable, "the guardian gave no verdict").reason(curl_easy_strerror(code));
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != 200)
    return Error(Code::kUnavailable, "the guardian gave no verdict").reason(format("the endpoint answered with status {}", status));
  return parse_guardian_reply(options_.wire, reply);
}

}  // namespace

Result<std::unique_ptr<Guardian>> http_guardian(GuardianOptions options) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);  // once in a process, as its manual asks
  const Url url(curl_url(), curl_url_cleanup);
  const bool parsed = ready == CURLE_OK && url && curl_url_set(url.get(), CURLUPART_URL, options.url.c_str(), 0) == CURLUE_OK;
  const std::string scheme = parsed ? part_of(url.get(), CURLUPART_SCHEME).value_or("") : "";
  const std::string host = parsed ? part_of(url.get(), CURLUPART_HOST).value_or("") : "";
  const auto bad = [](std::string what) { return Error(Code::kInvalidArgument, std::move(what)); };
  if (scheme != "https" && scheme != "http")
    return bad(format("cannot ask a guardian at {}", quoted(options.url))).next("use https://HOST");
  if (scheme == "http" && !is_this_machine(host))
    return bad(format("cannot ask a guardian at {}", quoted(options.url)))
        .reason("over plain http everybody on the way reads the call and the key")
        .next("use https://, or an endpoint of this machine");
  if (options.model.empty()) return bad("a guardian needs the name of a model");
  if (options.key.find_first_of("\r\n") != std::string::npos) return bad("the key of the guardian holds a line end");
  if (options.on_failure == Advice::kAllow)
    return bad("a guardian that fails cannot allow").next("choose ask or block for on_failure");
  if (options.timeout.count() <= 0) return bad("the guardian's timeout must be positive");
  return std::unique_ptr<Guardian>(std::make_unique<HttpGuardian>(std::move(options)));
}

}  // namespace belljar
