// Posting alerts from a thread of its own, so that send() never waits.
//
// The queue has a capacity, and when it is full the oldest alert is dropped and counted: an unreachable
// receiver must not make the process grow. A delivery is tried again after connection failures and the
// statuses that ask for it (408, 429, 5xx), with pauses that double; other statuses will not change. Each
// attempt has a new timestamp, and the signature covers timestamp and body, so that a receiver can refuse
// what is replayed; the id stays the same for all attempts of one alert.
//
// The destructor does not wait for the queue. It interrupts a transfer by curl's progress callback, and a
// delivery that was interrupted counts as dropped.
#include "belljar/webhook.h"

#include <curl/curl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <mutex>
#include <thread>

#include "base/ascii.h"
#include "base/digest.h"
#include "base/encoding.h"
#include "base/format.h"
#include "base/owner.h"
#include "base/patience.h"
#include "base/random.h"
#include "base/thread.h"

namespace belljar {
namespace {

using std::chrono::milliseconds;

struct Delivery {
  std::string kind, body, id;
};

enum class Outcome { kDelivered, kAgain, kGivenUp };

std::size_t ignore_body(char*, std::size_t size, std::size_t count, void*) { return size * count; }

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

}  // namespace

struct Webhook::State {
  WebhookOptions options;
  const OwningProcess owner;
  std::atomic<bool> stop{false};
  mutable std::mutex mutex;
  std::condition_variable changed;
  // guarded by mutex
  std::deque<Delivery> waiting;
  bool busy = false;
  WebhookCounts counts;
  std::thread thread;  // last

  void run();
  void deliver(const Delivery& delivery);
  Outcome attempt(CURL* curl, const Delivery& delivery) const;
  static int watch(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<State*>(self)->stop.load() ? 1 : 0;  // 1 ends the transfer
  }
};

void Webhook::State::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return stop || !waiting.empty(); });
    if (stop) return;
    const Delivery delivery = std::move(waiting.front());
    waiting.pop_front();
    busy = true;
    lock.unlock();
    deliver(delivery);
    lock.lock();
    busy = false;
    changed.notify_all();
  }
}

void Webhook::State::deliver(const Delivery& delivery) {
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  milliseconds pause = options.first_pause;
  Outcome outcome = Outcome::kGivenUp;
  for (int attempts = 0; curl && attempts < std::max(options.attempts, 1); ++attempts) {
    if (attempts > 0) {
      std::unique_lock lock(mutex);
      if (changed.wait_for(lock, pause, [this] { return stop.load(); })) break;
      pause *= 2;
    }
    outcome = attempt(curl.get(), delivery);
    if (outcome != Outcome::kAgain) break;
  }
  const std::lock_guard guard(mutex);
  if (outcome == Outcome::kDelivered) ++counts.delivered;
  else ++(stop ? counts.dropped : counts.failed);
}

Outcome Webhook::State::attempt(CURL* curl, const Delivery& delivery) const {
  curl_easy_reset(curl);
  const std::string timestamp = format("{}", std::time(nullptr));
  Headers headers;
  headers.add("Content-Type: application/json");
  headers.add("X-Belljar-Event: " + delivery.kind);
  headers.add("X-Belljar-Delivery: " + delivery.id);
  headers.add("X-Belljar-Timestamp: " + timestamp);
  if (!options.secret.empty())
    headers.add("X-Belljar-Signature: sha256=" + to_hex(hmac_sha256(options.secret, timestamp + "." + delivery.body)));
  headers.add("Expect:");
  curl_easy_setopt(curl, CURLOPT_URL, options.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_POST, 1L);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, delivery.body.c_str());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(delivery.body.size()));
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(options.timeout.count()));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "belljar");
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ignore_body);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &State::watch);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, this);
  if (curl_easy_perform(curl) != CURLE_OK) return Outcome::kAgain;
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (status >= 200 && status < 300) return Outcome::kDelivered;
  return status == 408 || status == 429 || status >= 500 ? Outcome::kAgain : Outcome::kGivenUp;
}

Webhook::Webhook(std::unique_ptr<State> state) : state_(std::move(state)) {}

Webhook::~Webhook() {
  if (!state_->owner.is_this()) {  // a forked child has no such thread
    abandon(state_);
    return;
  }
  state_->stop = true;
  {
    const std::lock_guard guard(state_->mutex);
  }
  state_->changed.notify_all();
  state_->thread.join();
}

Result<std::shared_ptr<Webhook>> Webhook::create(WebhookOptions options) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);  // once in a process, as its manual asks
  const std::unique_ptr<CURLU, void (*)(CURLU*)> url(curl_url(), curl_url_cleanup);
  char* scheme = nullptr;
  const bool parsed = ready == CURLE_OK && url && curl_url_set(url.get(), CURLUPART_URL, options.url.c_str(), 0) == CURLUE_OK &&
                      curl_url_get(url.get(), CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK;
  const std::string name = parsed ? scheme : "";
  curl_free(scheme);
  if (name != "http" && name != "https")
    return Error(Code::kInvalidArgument, format("cannot post to {}", quoted(options.url))).next("use https://HOST/PATH");
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  state->options.capacity = std::max<std::size_t>(state->options.capacity, 1);
  state->thread = BELLJAR_TRY(open_thread([raw = state.get()] { raw->run(); }, "cannot post to a webhook"));
  return std::shared_ptr<Webhook>(new Webhook(std::move(state)));
}

void Webhook::send(std::string_view kind, std::string body) {
  std::string word;
  for (const char c : kind) {
    const bool fine = is_alnum(c) || c == '.' || c == '-' || c == '_';
    if (fine) word += c;
  }
  Delivery delivery{std::move(word), std::move(body), random_hex(16)};
  {
    const std::lock_guard guard(state_->mutex);
    if (state_->waiting.size() >= state_->options.capacity) {
      state_->waiting.pop_front();
      ++state_->counts.dropped;
    }
    state_->waiting.push_back(std::move(delivery));
  }
  state_->changed.notify_all();
}

bool Webhook::wait_idle(milliseconds patience) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, bounded(patience), [this] { return state_->waiting.empty() && !state_->busy; });
}

WebhookCounts Webhook::counts() const {
  const std::lock_guard guard(state_->mutex);
  return state_->counts;
}

}  // namespace belljar
