// Values of credentials live in pages of their own. MADV_WIPEONFORK gives a forked child zeros in
// their place, and MADV_DONTDUMP keeps them out of core dumps, madvise(2); mlock(2) keeps them out
// of swap as far as RLIMIT_MEMLOCK allows, and is not required. A value is read from the variable
// or the file straight into its page: a std::string on the way would leave a copy on the heap.
//
// The command gets a placeholder instead, of the same length as the value. clean() also replaces
// the value wherever else it stands in the environment, because a variable of another name may hold
// it, alone or within a longer text.
//
// Programs find certificates in different ways. Many read variables, which name kBundle; some read
// fixed paths of their distribution, so these are shown with one root more where they exist; Java
// has a key store of its own.
#include "runtime/interception.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/unique_fd.h"
#include "egress/environment.h"
#include "policy/tls_interception.h"

namespace belljar::runtime {

// Memory that a new process of ours gets as zeros (MADV_WIPEONFORK), a core dump leaves out and nothing swaps where that is
// allowed.
class SecretPage {
 public:
  static constexpr std::size_t kSize = 16384;
  SecretPage() : page_(::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (!valid()) return;
    ::madvise(page_, kSize, MADV_WIPEONFORK);
    ::madvise(page_, kSize, MADV_DONTDUMP);
    ::mlock(page_, kSize);
  }
  ~SecretPage() {
    if (!valid()) return;
    ::explicit_bzero(page_, kSize);
    ::munmap(page_, kSize);
  }
  SecretPage(const SecretPage&) = delete;
  SecretPage& operator=(const SecretPage&) = delete;
  bool valid() const noexcept { return page_ != MAP_FAILED; }
  char* bytes() const noexcept { return static_cast<char*>(page_); }
  std::string_view text() const noexcept { return {bytes(), size}; }
  std::size_t size = 0;

 private:
  void* page_;
};

namespace {

constexpr char kBundle[] = "/dev/belljar-ca.pem", kJavaStore[] = "/dev/belljar-ca.jks";
// The first is named to programs by variables. Those that are told nothing read the others; where these exist they
// are shown with one root more.
constexpr const char* kBundles[] = {kBundle,
                                    "/etc/ssl/certs/ca-certificates.crt",
                                    "/etc/pki/tls/certs/ca-bundle.crt",
                                    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
                                    "/etc/ssl/ca-bundle.pem",
                                    "/etc/ssl/cert.pem"};

Error bad_value(const policy::Credential& rule, Code code, std::string why,
                std::string next = "set its variable or file, or take it out of network.credentials") {
  return Error(code, format("cannot use the credential {}", quoted(rule.text))).reason(std::move(why)).next(std::move(next));
}

// A pointer into the environment, never a copy of the value.
std::string_view variable_or_empty(const std::vector<std::string>& env, const std::string& name) {
  for (const std::string& entry : env) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return std::string_view(entry).substr(name.size() + 1);
  }
  const char* own = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): before the threads of this run
  return own == nullptr ? std::string_view() : std::string_view(own);
}

Result<void> read_variable(const policy::Credential& rule, const std::vector<std::string>& env, SecretPage& page) {
  const std::string_view value = variable_or_empty(env, rule.from);
  if (value.data() == nullptr) return bad_value(rule, Code::kNotFound, format("the variable {} is not set", rule.from));
  if (value.empty()) return bad_value(rule, Code::kNotFound, format("the variable {} is empty", rule.from));
  page.size = std::min(value.size(), SecretPage::kSize);
  std::memcpy(page.bytes(), value.data(), page.size);
  return {};
}

Result<void> read_secret_file(const policy::Credential& rule, const std::string& home, SecretPage& page) {
  const std::string path = rule.from.starts_with("~/") ? home + rule.from.substr(1) : rule.from;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat facts{};
  if (!file.valid() || ::fstat(file.get(), &facts) != 0)
    return Error(bad_value(rule, Code::kNotFound, "")).sys(errno, format("open {}", path));
  if (!S_ISREG(facts.st_mode)) return bad_value(rule, Code::kInvalidArgument, format("{} is no file", quoted(path)));
  while (page.size < SecretPage::kSize) {
    const ssize_t got = ::read(file.get(), page.bytes() + page.size, SecretPage::kSize - page.size);
    if (got <= 0) break;
    page.size += static_cast<std::size_t>(got);
  }
  while (page.size > 0 && (page.bytes()[page.size - 1] == '\n' || page.bytes()[page.size - 1] == '\r')) --page.size;
  return {};
}

Result<void> check_value(const policy::Credential& rule, std::string_view value) {
  if (value.size() < egress::kShortestCredential)
    return bad_value(
        rule, Code::kInvalidArgument,
        format("its value has {} bytes, and {} are the least: a shorter one would be found in answers by chance", value.size(),
               egress::kShortestCredential),
        format("is it the whole value? One that is so short can only be handed in as it is: --env {}=VALUE", rule.name));
  if (value.size() > egress::kLongestCredential)
    return bad_value(rule, Code::kInvalidArgument, format("its value has more than {} bytes", egress::kLongestCredential));
  if (std::ranges::any_of(value, [](char c) { return c < ' ' || c > '~'; }))
    return bad_value(rule, Code::kInvalidArgument, "its value has bytes that no field of a request can hold");
  return {};
}

Result<std::string> placeholder_for(const policy::Credential& rule, std::string_view value) {
  std::string random(value.size(), '\0');
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    return Error(bad_value(rule, Code::kUnavailable, "")).sys(errno, "getrandom");
  return egress::make_placeholder(value, random);
}

void set_variable(std::vector<std::string>& env, const std::string& name, const std::string& value) {
  const auto found = std::ranges::find_if(env, [&](const std::string& entry) {
    return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
  });
  if (found != env.end()) *found = name + "=" + value;
  else env.push_back(name + "=" + value);
}

}  // namespace

Interception::Interception(Interception&&) noexcept = default;
Interception& Interception::operator=(Interception&&) noexcept = default;
Interception::~Interception() = default;

Result<void> Interception::hold(const policy::Credential& rule, const std::vector<std::string>& caller_env,
                                const std::string& home) {
  auto page = std::make_unique<SecretPage>();
  if (!page->valid()) return Error(bad_value(rule, Code::kResourceExhausted, "")).sys(errno, "mmap");
  if (rule.source == policy::Credential::Source::kVariable) BELLJAR_CHECK(read_variable(rule, caller_env, *page));
  else BELLJAR_CHECK(read_secret_file(rule, home, *page));
  BELLJAR_CHECK(check_value(rule, page->text()));
  std::string placeholder = BELLJAR_TRY(placeholder_for(rule, page->text()));
  held_.push_back({rule, std::move(placeholder), std::move(page)});
  return {};
}

// A variable that holds a value under another name too, or as a part of itself.
void Interception::clean(std::vector<std::string>& env) const {
  for (const StoredCredential& held : held_) {
    const std::string_view value = held.value->text();
    for (std::string& entry : env) {
      for (std::size_t at = entry.find(value); at != std::string::npos; at = entry.find(value, at + value.size()))
        entry.replace(at, value.size(), held.placeholder);
    }
  }
}

Result<std::optional<Interception>> Interception::create(const Policy& policy, egress::MakeInterceptor make,
                                                         const std::vector<std::string>& caller_env, backend::Workplace& place) {
  const bool drops = policy.mode == Mode::kDangerFullAccess || policy.mode == Mode::kExternalSandbox;
  if (policy.network.mode != NetMode::kProxy || drops) return std::optional<Interception>();
  const policy::InterceptionRules rules = BELLJAR_TRY(policy::make_interception_rules(policy.network));
  if (!policy::wants_interception(policy.network)) {
    // No rule needs it now. A wrong name is told all the same, before the day one does.
    const auto& file = policy.network.tls_ca_file;
    if (file && ::access(file->c_str(), R_OK) != 0)
      return Error(Code::kFailedPrecondition, format("cannot use the certificates in {}", quoted(*file)))
          .sys(errno, "access")
          .next("name a file with certificates as PEM: network.tls_ca_file");
    return std::optional<Interception>();
  }
  if (make == nullptr)
    return Error(Code::kUnimplemented, "cannot look into TLS").reason("this program holds no TLS").next("use `belljar run`");
  Interception made;
  std::set<std::string> names;
  for (const policy::Credential& rule : rules.credentials) {
    if (!names.insert(rule.name).second)
      return bad_value(rule, Code::kInvalidArgument, format("{} is named twice; list its hosts with commas", rule.name));
    BELLJAR_CHECK(made.hold(rule, caller_env, place.home));
  }
  made.interceptor_ = BELLJAR_TRY(make({.ca_file = policy.network.tls_ca_file.value_or("")}));
  place.files.push_back({{std::begin(kBundles), std::end(kBundles)}, made.interceptor_->bundle()});
  place.files.push_back({{kJavaStore}, made.interceptor_->java_store()});
  made.clean(place.env);
  return std::optional<Interception>(std::move(made));
}

void Interception::plan(const Policy& policy, const Command& command, std::vector<std::string>& env,
                        EnforcementReport& report) const {
  const auto java = std::ranges::find_if(env, [](const std::string& entry) { return entry.starts_with("JAVA_TOOL_OPTIONS="); });
  const std::string java_options = java == env.end() ? "" : java->substr(java->find('=') + 1);
  for (const auto& [name, value] : egress::trust_environment(kBundle, kJavaStore, java_options)) {
    const bool own = policy.environment.set.contains(name) || command.env.contains(name);
    if (!own) set_variable(env, name, value);
  }
  for (const StoredCredential& held : held_) set_variable(env, held.rule.name, held.placeholder);
  report.push_back({"network.tls", "TLS is looked into where a rule needs it, else relayed as it is",
                    "egress proxy: an authority of this sandbox; servers' certificates verified", Enforced::kFull,
                    "HTTP/1.1 only there; programs that trust neither the bundle nor the variables refuse it"});
  for (const StoredCredential& held : held_)
    report.push_back({"network.credentials", held.rule.text, "egress proxy: put into requests over TLS, taken out of answers",
                      Enforced::kFull, "a host that gets the value can send it back in a spelling that is not recognised"});
}

egress::Credentials Interception::credentials() const {
  std::vector<egress::Credential> list;
  list.reserve(held_.size());
  for (const StoredCredential& held : held_) list.push_back({held.rule, held.placeholder, std::string(held.value->text())});
  return egress::Credentials(std::move(list));
}

}  // namespace belljar::runtime
