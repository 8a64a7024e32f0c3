// The backends as `belljar doctor` lists them: which can be used here, why not, and what to do.
//
// Our own were tried by doctor itself. Container engines are asked, in a process of belljar-full, because
// `belljar` links no HTTP client. An engine may hang, so there is a deadline, and what has not answered by
// then is missing from the list. Services are not asked: only a start tells whether a key is right, and costs
// money. For them only the variables are looked at, and their values are never shown.
#include "cli/backends.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "cli/components.h"
#include "launch/detached.h"
#include "policy/names.h"

namespace belljar::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{3};  // each engine has two

bool is_set(const char* variable) noexcept {
  const char* const text = std::getenv(variable);
  return text != nullptr && *text != '\0';
}

// All that comes until the other side closes; what is missing at the deadline is left out.
std::string read_until_end(int fd, Clock::time_point deadline) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{fd, POLLIN, 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) == 0) return text;
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

Result<Json> ask_engines() {
  const std::string program = path_of_sibling(kFullProgram);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error(Code::kResourceExhausted, "cannot ask container engines").sys(errno, "socketpair");
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  if (::access(program.c_str(), X_OK) != 0)
    return Error(Code::kNotFound, format("there is no program {}", belljar::quoted(program))).next("build or install belljar-full");
  BELLJAR_CHECK(launch::start_detached(
      program, {kFullProgram, name_of(Component::kContainer), "probe", format("{}", launch::kDetachedChannel)}, own_environment(),
      theirs.get()));
  theirs.reset();
  Json engines = Json::parse(read_until_end(ours.get(), Clock::now() + kPatience), nullptr, false);
  if (engines.is_array()) return engines;
  return Error(Code::kDeadlineExceeded, "the container engines did not answer in time").next("look at their logs");
}

std::string text_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

BackendState state_of(const Json& engine) {
  BackendState state{"container", Isolation::kContainer, engine.value("usable", false), "", escaped(text_in(engine, "next"))};
  const std::string address = escaped(text_in(engine, "address"));
  if (!state.usable) {
    state.detail = format("{}: {}", address, text_in(engine, "why"));
    return state;
  }
  const std::string most = text_in(engine, "isolation_most");
  state.isolation = policy::value_of<Isolation>(most).value_or(Isolation::kContainer);
  const std::string own_kernel = state.isolation == Isolation::kVm
                                     ? format("runtime {} has a kernel of its own", escaped(text_in(engine, "runtime")))
                                     : std::string("no runtime with a kernel of its own (kata, runsc) for isolation vm");
  state.detail = format("{}: engine {}{}, {}", address, escaped(text_in(engine, "version")),
                        engine.value("rootless", false) ? ", rootless" : "", own_kernel);
  return state;
}

void add_containers(std::vector<BackendState>& states) {
  const auto engines = ask_engines();
  if (!engines) {
    states.push_back({"container", Isolation::kContainer, false, engines.error().line(), engines.error().next()});
    return;
  }
  for (const Json& engine : *engines) states.push_back(state_of(engine));
  if (engines->empty())
    states.push_back({"container", Isolation::kContainer, false,
                      "no socket of an engine at the usual places, and DOCKER_HOST is not set",
                      "install and start Docker or Podman's service, or name its socket in DOCKER_HOST"});
}

// The first set of variables that is there says who pays; whether they are right only a start tells, and costs money.
BackendState service(std::string_view name, Isolation isolation, std::initializer_list<std::initializer_list<const char*>> keys) {
  BackendState state{std::string(name), isolation, false, "", ""};
  std::string wanted;
  for (const auto& variables : keys) {
    std::string names;
    for (const char* variable : variables) names += (names.empty() ? "" : " and ") + std::string(variable);
    if (state.detail.empty() && std::ranges::all_of(variables, is_set)) {
      state.usable = true;
      state.detail = format("{} {} set; it was not tried", names, variables.size() == 1 ? "is" : "are");
    }
    wanted += (wanted.empty() ? "" : ", or ") + names;
  }
  if (!state.usable) {
    state.detail = format("cannot be used here: {} {} not set", wanted, keys.size() == 1 ? "is" : "are");
    state.next = "set it to a key of the service";
  } else if (::access(path_of_sibling(kFullProgram).c_str(), X_OK) != 0) {
    state.usable = false;
    state.detail += format(", and there is no program {}", belljar::quoted(path_of_sibling(kFullProgram)));
    state.next = format("build or install {}", kFullProgram);
  }
  return state;
}

}  // namespace

std::vector<BackendState> find_backends(const OwnBackends& own) {
  std::vector<BackendState> states;
  const auto mine = [&](const char* name, Isolation isolation, const std::string& refusal, const char* holds) {
    states.push_back({name, isolation, refusal.empty(), refusal.empty() ? holds : refusal,
                      refusal.empty() ? "" : "see above, or use another backend"});
  };
  mine("native", Isolation::kNamespace, own.native_refusal, "namespaces, seccomp, Landlock and a broker, on this kernel");
  mine("landlock", Isolation::kLandlock, own.landlock_refusal, "Landlock, seccomp and a broker, without namespaces");
  add_containers(states);
  states.push_back({"local", Isolation::kGuardRails, true, "guard rails only; for programs that link the library", ""});
  states.push_back({"mock", Isolation::kNone, true, "executes nothing; for tests that link the library", ""});
  states.push_back(service("e2b", Isolation::kVm, {{"E2B_API_KEY"}}));
  states.push_back(service("aliyun", Isolation::kContainer,
                           {{"AGENTBAY_API_KEY"}, {"ALIYUN_MCP_ENDPOINT", "ALIYUN_ACCESS_KEY_ID", "ALIYUN_ACCESS_KEY_SECRET"}}));
  if (is_set("AGENTBAY_API_KEY") && is_set("ALIYUN_MCP_ENDPOINT")) {
    states.back().usable = false;
    states.back().detail = "cannot be chosen here: AGENTBAY_API_KEY and ALIYUN_MCP_ENDPOINT are both set";
    states.back().next = "drop one, or say --aliyun-route";
  }
  states.push_back(service("volcengine", Isolation::kContainer,
                           {{"SANDBOX_APP_ID", "VOLC_ACCESS_KEY_ID", "VOLC_SECRET_ACCESS_KEY"},
                            {"SANDBOX_APP_ID", "VOLC_ACCESS_KEY", "VOLC_SECRET_KEY"},
                            {"SANDBOX_APP_ID", "VOLC_ACCESSKEY", "VOLC_SECRETKEY"},
                            {"SANDBOX_APP_ID", "VOLCENGINE_ACCESS_KEY", "VOLCENGINE_SECRET_KEY"}}));
  return states;
}

std::string backends_text(const std::vector<BackendState>& backends) {
  std::string text = "\nBackends (--backend, --fallback), and the isolation that each has here:\n";
  for (const BackendState& one : backends) {
    text += format("  {:<11} {:<4} {:<12} {}\n", one.name, one.usable ? "yes" : "no", to_string(one.isolation), one.detail);
    if (!one.next.empty()) text += format("  {:<11} {:<4} {:<12} next: {}\n", "", "", "", one.next);
  }
  const bool vm =
      std::ranges::any_of(backends, [](const BackendState& one) { return one.usable && one.isolation == Isolation::kVm; });
  if (!vm)
    text += format(
        "  isolation vm is not to be had: a container engine needs the runtime runsc, or kata with /dev/kvm ({}); e2b a key\n",
        ::access("/dev/kvm", R_OK | W_OK) == 0 ? "which is here" : "which is not here or not ours to open");
  return text;
}

nlohmann::ordered_json backends_json(const std::vector<BackendState>& backends) {
  Json list = Json::array();
  for (const BackendState& one : backends) {
    list.push_back({{"name", one.name},
                    {"usable", one.usable},
                    {"isolation", to_string(one.isolation)},
                    {"detail", one.detail},
                    {"next", one.next}});
  }
  return list;
}

}  // namespace belljar::cli
