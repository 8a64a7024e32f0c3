// Containers beside the engine's own ways, at its API and in the same run: a command in a session beside `exec`, a container for
// each command beside create, start, wait, remove. BELLJAR_BENCH_ENGINE (a socket) and BELLJAR_BENCH_IMAGE say which; without, left
// out.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "backend/container/engine.h"
#include "base/format.h"
#include "belljar/sandbox.h"
#include "bench/rows.h"

namespace belljar::bench {
namespace {

using namespace backend::container;

constexpr const char* kContainerGroup = "container";

// The bare API, with the client that the backend uses: what differs is what is asked for.
class Api {
 public:
  Api(Address address, std::string image) : address_(std::move(address)), image_(std::move(image)) {}

  std::string create(const std::string& command) {
    return text_after(
        post("/containers/create",
             format(R"({{"Image":"{}","Cmd":{},"OpenStdin":true,"HostConfig":{{"NetworkMode":"none"}}}})", image_, command)),
        "\"Id\":\"");
  }
  bool start(const std::string& id) { return ok(post(format("/containers/{}/start", id), "")); }
  bool wait(const std::string& id) { return ok(post(format("/containers/{}/wait", id), "")); }
  void remove(const std::string& id) {
    (void)fetch(address_, {.method = Method::kDelete, .target = "/v1.41/containers/" + id + "?force=1"});
  }

  // As `docker exec` does: create, start and read until the end, look at the exit code.
  bool exec_true(const std::string& container) {
    const std::string id = text_after(
        post(format("/containers/{}/exec", container), R"({"AttachStdout":true,"AttachStderr":true,"Cmd":["/bin/true"]})"),
        "\"Id\":\"");
    if (id.empty() || !ok(post(format("/exec/{}/start", id), R"({"Detach":false,"Tty":false})"))) return false;
    const auto reply = fetch(address_, {.target = format("/v1.41/exec/{}/json", id)});
    return reply && reply->body.find("\"ExitCode\":0") != std::string::npos;
  }
  bool run_true() {
    const std::string id = create(R"(["/bin/true"])");
    const bool well = !id.empty() && start(id) && wait(id);
    remove(id);
    return well;
  }

 private:
  Result<Reply> post(const std::string& path, std::string json) {
    return fetch(address_, {.method = Method::kPost, .target = "/v1.41" + path, .json = std::move(json)});
  }
  static bool ok(const Result<Reply>& reply) { return reply && reply->status < 300; }
  static std::string text_after(const Result<Reply>& reply, std::string_view key) {
    if (!ok(reply)) return {};
    const std::size_t at = reply->body.find(key);
    if (at == std::string::npos) return {};
    return reply->body.substr(at + key.size(), reply->body.find('"', at + key.size()) - at - key.size());
  }

  Address address_;
  std::string image_;
};

Result<std::shared_ptr<Sandbox>> open_sandbox(const Setting& setting, const char* engine, const char* image, ContainerMode mode) {
  SandboxConfig config;
  config.backend = "container";
  config.workspace = setting.directory;
  config.policy.allow_root_uid = true;  // the scratch directory is ours, and we may be root
  config.container.engine = engine;
  config.container.image = image;
  config.container.pull = PullPolicy::kNever;
  config.container.mode = mode;
  auto sandbox = BELLJAR_TRY(make_sandbox(config));
  BELLJAR_CHECK(sandbox->start());
  return sandbox;
}

void compare_all(const std::vector<Rival>& rivals, int runs, double target, Report& report) {
  std::vector<std::string> failed;
  const auto samples = compare(rivals, runs, failed);
  for (std::size_t i = 0; i < rivals.size(); ++i) report.add(kContainerGroup, rivals[i].name, samples[i]);
  for (const std::string& name : failed) report.left_out.push_back(name + ": it failed");
  report.compare_rows(kContainerGroup, rivals[1].name, rivals[0].name, target);
}

}  // namespace

void bench_container(const Setting& setting, Report& report) {
  const char* engine = std::getenv("BELLJAR_BENCH_ENGINE");
  const char* image = std::getenv("BELLJAR_BENCH_IMAGE");
  if (engine == nullptr || image == nullptr) {
    report.left_out.emplace_back("container: BELLJAR_BENCH_ENGINE and BELLJAR_BENCH_IMAGE name no engine");
    return;
  }
  const auto address = parse_address(engine);
  const auto session = open_sandbox(setting, engine, image, ContainerMode::kSession);
  const auto single = open_sandbox(setting, engine, image, ContainerMode::kPerCommand);
  if (!address || !session || !single) {
    report.left_out.push_back("container: " + (!address ? address.error() : !session ? session.error() : single.error()).line());
    return;
  }
  Api api(*address, image);
  const std::string box = api.create(R"(["/bin/sleep","600"])");
  if (box.empty() || !api.start(box)) {
    report.left_out.emplace_back("container: the image has no /bin/sleep");
    return;
  }
  compare_all({{"the engine's exec, at its API", [&] { return api.exec_true(box); }},
               {"Sandbox::exec in a session", [&] { return exec_true(**session); }}},
              setting.runs, 1.2, report);
  compare_all({{"create, start, wait, remove at its API", [&] { return api.run_true(); }},
               {"Sandbox::exec, a container each", [&] { return exec_true(**single); }}},
              std::max(3, setting.runs / 4), 1.1, report);
  api.remove(box);
}

}  // namespace belljar::bench
