#include "cli/container/probe.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "backend/container/address.h"
#include "backend/container/engine.h"
#include "backend/container/runtimes.h"
#include "base/environment.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::cli {
namespace {

using namespace backend::container;
using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kPatience{2};

Json unusable(const std::string& address, const Error& error) {
  return {{"address", address}, {"usable", false}, {"why", error.line()}, {"next", error.next()}};
}

Json ask(const Address& address) {
  const auto engine = Engine::connect(address, kPatience);
  if (!engine) return unusable(to_string(address), engine.error());
  const auto facts = engine->facts(kPatience);
  if (!facts) return unusable(to_string(address), facts.error());
  const std::string runtime = choose_runtime(*facts, "", Isolation::kVm);
  return {{"address", to_string(address)},
          {"usable", true},
          {"why", ""},
          {"next", ""},
          {"version", facts->version},
          {"machine", facts->machine},
          {"rootless", facts->rootless},
          {"isolation", belljar::to_string(isolation_of_runtime(*facts, ""))},
          {"isolation_most", belljar::to_string(isolation_of_runtime(*facts, runtime))},
          {"runtime", runtime.empty() ? facts->default_runtime : runtime}};
}

// DOCKER_HOST or Docker's context, and every socket at a usual place; two names of one socket are two lines.
std::vector<Address> places(const std::map<std::string, std::string>& variables, Json& engines) {
  std::vector<Address> found;
  const auto named = find_engine({}, variables, [](const std::string&) { return false; });
  const auto host = variables.find("DOCKER_HOST");
  if (named) found.push_back(*named);
  else if (named.error().code() != Code::kUnavailable)  // nothing is named
    engines.push_back(unusable(host == variables.end() ? "Docker's context" : host->second, named.error()));
  for (const std::string& place : usual_places(variables)) {
    const Address address{.path = place};
    if (::access(place.c_str(), F_OK) == 0 && std::ranges::find(found, address) == found.end()) found.push_back(address);
  }
  return found;
}

}  // namespace

int probe_engines(std::span<const char* const> words) {
  int fd = STDOUT_FILENO;
  if (!words.empty()) {
    const std::string_view text = words[0];
    std::from_chars(text.data(), text.data() + text.size(), fd);
  }
  Json engines = Json::array();
  const std::vector<Address> asked = places(by_name(own_environment()), engines);
  std::vector<Json> answers(asked.size());
  std::vector<std::thread> threads;
  threads.reserve(asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) threads.emplace_back([&, i] { answers[i] = ask(asked[i]); });
  for (std::thread& thread : threads) thread.join();
  for (Json& answer : answers) engines.push_back(std::move(answer));
  const std::string text = engines.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t wrote = ::write(fd, rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return 125;
    rest.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return 0;
}

}  // namespace belljar::cli
