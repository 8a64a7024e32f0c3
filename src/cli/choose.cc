// Which backend serves a run, and how one program hands it on to the next.
//
// Backends are in different programs: native and landlock in `belljar`, containers and clouds in
// belljar-full. With `fallback` several may be tried, in the policy's order, and the next one may belong to
// another program. So what was tried so far travels in the command line (`--tried NAME: WHY`, hidden from
// help), and the program replaces itself by the next one with the same words. That keeps the words as the
// user wrote them, and each program parses them once more, with the options that it knows.
//
// It has a price: each program must accept options of backends that it does not serve. kOptions lists them by
// name only, and they are built only if they occur. Whether such an option makes sense is checked against the
// whole order of backends, so `--image` with a backend that has no images is an error wherever it is noticed
// first.
#include "cli/choose.h"

#include <algorithm>

#include "base/format.h"
#include "cli/command_line.h"
#include "cli/components.h"
#include "policy/backends.h"

namespace belljar::cli {
namespace {

constexpr std::string_view kTried = "--tried", kNoneTried = "none";

struct BackendOption {
  std::string_view name, backends;  // "container e2b"
  bool is_flag = false;
};
constexpr BackendOption kOptions[] = {
    {"--image", "container"},
    {"--engine", "container"},
    {"--pull", "container"},
    {"--registry-user", "container"},
    {"--registry-server", "container"},
    {"--registry-password-file", "container"},
    {"--user", "container"},
    {"--workspace-at", "container e2b aliyun volcengine"},
    {"--runtime", "container"},
    {"--container-network", "container"},
    {"--tmpfs", "container"},
    {"--cap-add", "container"},
    {"--label", "container"},
    {"--writable-root", "container", true},
    {"--plain-tcp", "container", true},
    {"--shared-files", "container", true},
    {"--template", "e2b"},
    {"--lifetime", "e2b volcengine"},
    {"--e2b-domain", "e2b"},
    {"--e2b-api-url", "e2b"},
    {"--e2b-sandbox-url", "e2b"},
    {"--e2b-sandbox", "e2b"},
    {"--e2b-user", "e2b"},
    {"--e2b-auth", "e2b"},
    {"--e2b-header", "e2b"},
    {"--e2b-least-lifetime", "e2b"},
    {"--on-stop", "e2b aliyun volcengine"},
    {"--aliyun-route", "aliyun"},
    {"--aliyun-image", "aliyun"},
    {"--aliyun-region", "aliyun"},
    {"--aliyun-endpoint", "aliyun"},
    {"--aliyun-session", "aliyun"},
    {"--aliyun-policy", "aliyun"},
    {"--aliyun-network", "aliyun"},
    {"--aliyun-context", "aliyun"},
    {"--aliyun-label", "aliyun"},
    {"--idle-release", "aliyun"},
    {"--volcengine-region", "volcengine"},
    {"--volcengine-function", "volcengine"},
    {"--volcengine-endpoint", "volcengine"},
    {"--volcengine-hosts", "volcengine"},
    {"--volcengine-image", "volcengine"},
    {"--volcengine-sandbox", "volcengine"},
    {"--instance-type", "volcengine"},
    {"--aio-url", "volcengine"},
};

bool is(std::string_view word, std::string_view option) noexcept {
  return word.starts_with(option) && (word.size() == option.size() || word[option.size()] == '=');
}

bool occurs(std::span<const char* const> words, std::string_view option) noexcept {
  for (const std::string_view word : words) {
    if (word == "--") return false;
    if (is(word, option)) return true;
  }
  return false;
}

std::string joined(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) text += format("{}{}", text.empty() ? "" : ", ", belljar::quoted(name));
  return text;
}

bool serves(const BackendOption& option, std::string_view backend) {
  const std::size_t at = option.backends.find(backend);
  return at != std::string_view::npos && !backend.empty();
}

Result<void> check_given(const ChooseFlags& flags, std::span<const std::string> order) {
  for (const BackendOption& option : kOptions) {
    if (std::ranges::find(flags.given, option.name) == flags.given.end()) continue;
    if (std::ranges::any_of(order, [&](const std::string& backend) { return serves(option, backend); })) continue;
    return Error(Code::kInvalidArgument,
                 format("cannot use {} with the backend{} {}", option.name, order.size() > 1 ? "s" : "", joined(order)))
        .reason(format("it is an option of {}", option.backends))
        .next("say --backend or --fallback with that backend, or drop the option");
  }
  return {};
}

// "NAME: WHY" each; "none" says no more than that the policy decides.
Result<std::vector<TriedBackend>> parse_tried(std::span<const std::string> words) {
  std::vector<TriedBackend> tried;
  for (const std::string& word : words) {
    if (word == kNoneTried) continue;
    const std::size_t colon = word.find(": ");
    if (colon == std::string::npos) return Error(Code::kInvalidArgument, "--tried is not for people").next("drop it");
    tried.push_back({word.substr(0, colon), word.substr(colon + 2)});
  }
  return tried;
}

// Who says --image and no backend means a container, unless containers are what is fallen back to. What a variable says comes after
// every option.
std::string_view implied_backend(const ChooseFlags& flags, const policy::Effective& effective, std::string_view ours) {
  const auto named = effective.origins.find("backend");
  const bool by_variable = named != effective.origins.end() && policy::is_backend_variable(named->second.layer);
  if (named != effective.origins.end() && !by_variable) return effective.policy.backend;
  const auto given = [&](std::string_view name) { return std::ranges::find(flags.given, name) != flags.given.end(); };
  const std::vector<std::string>& fallback = effective.policy.fallback;
  if (given("--image") || given("--engine"))
    return std::ranges::find(fallback, policy::kContainer) == fallback.end() ? policy::kContainer : effective.policy.backend;
  return by_variable || !flags.tried.empty() || ours.empty() ? std::string_view(effective.policy.backend) : ours;
}

}  // namespace

void add_choose_options(const OptionParser& run, ChooseFlags& flags, std::span<const char* const> words) {
  const auto list = [&run](std::string_view name, std::vector<std::string>& to) {
    run.add_option(std::string(name), to).repeatable().group("");
  };
  if (occurs(words, kTried)) list(kTried, flags.tried);
  for (const BackendOption& option : kOptions) {
    const std::string name(option.name);
    if (!occurs(words, option.name) || run.find_option(name)) continue;
    if (option.is_flag) {
      run.add_flag(name).group("");
      continue;
    }
    list(name, flags.ignored);
  }
}

void note_given(const OptionParser& run, ChooseFlags& flags) {
  for (const BackendOption& option : kOptions) {
    const auto known = run.find_option(std::string(option.name));
    if (known && known->times_given() > 0) flags.given.push_back(option.name);
  }
}

bool policy_chooses(std::span<const char* const> words) noexcept { return occurs(words, kTried) || occurs(words, "--fallback"); }

Result<policy::Choice> make_choice(const ChooseFlags& flags, const policy::Effective& effective, std::string_view ours) {
  const Policy& policy = effective.policy;
  std::vector<std::string> order =
      BELLJAR_TRY(policy::backend_order(implied_backend(flags, effective, ours), policy.fallback, policy.isolation));
  BELLJAR_CHECK(check_given(flags, order));
  BELLJAR_CHECK(policy::check_backend_keys(policy, order));
  return policy::Choice(std::move(order), policy.isolation, BELLJAR_TRY(parse_tried(flags.tried)));
}

Error exec_backend_program(const policy::Choice& choice, const std::string& backend, std::span<const char* const> words,
                           std::span<const std::string> program) {
  const std::optional<Component> other = component_of_backend(backend);
  std::vector<std::string> all;
  if (!other) all.emplace_back("belljar");
  all.emplace_back("run");
  for (const TriedBackend& one : choice.tried()) all.insert(all.end(), {std::string(kTried), one.backend + ": " + one.why});
  if (choice.tried().empty()) all.insert(all.end(), {std::string(kTried), std::string(kNoneTried)});
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == kTried) ++i;
    else if (!is(word, kTried)) all.emplace_back(word);
  }
  if (!program.empty()) {
    all.emplace_back("--");
    all.insert(all.end(), program.begin(), program.end());
  }
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  return exec_component(other, argv.data());
}

}  // namespace belljar::cli
