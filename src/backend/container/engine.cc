// The Docker Engine API (https://docs.docker.com/reference/api/engine/), as far as a sandbox needs it, of
// Docker and of Podman's service.
//
// The version is negotiated once: /_ping names the newest that the engine speaks, and every later path carries
// the smaller of that and ours. Within the range used here the fields mean the same.
//
// Values that are missing or of another type read as "not there", because engines differ in what they tell.
// What an engine does not claim is not counted on: a limit that /info does not name becomes `none` in the
// report.
//
// Three things in the body of a create are against defaults of some engines. No init of the engine's own, since
// any command could stop ours then. No log, since output would pile up on the engine's disk. No health check of
// the image, since the engine would run it beside our commands, unwatched.
//
// A pull answers with status 200 before it knows the outcome and tells a failure in the stream that follows, so
// the stream is read line by line for it. A 404 or 409 of a delete is success: the container removes itself
// when it ends (AutoRemove), and both may happen at once.
#include "backend/container/engine.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/container/address.h"
#include "backend/container/http.h"
#include "backend/container/spec.h"
#include "base/encoding.h"
#include "base/format.h"
#include "belljar/cancel.h"
#include "belljar/container.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend::container {
namespace {

using Json = nlohmann::json;

constexpr int kOldest = 40, kNewest = 44;  // of the API, 1.x: the fields used here mean the same in all of them

// The engine's own words, which came over a wire: `{"message": "..."}`, or plain text.
std::string message_in(const std::string& body) {
  const Json parsed = Json::parse(body, nullptr, false);
  if (parsed.is_object() && parsed.contains("message") && parsed["message"].is_string())
    return escaped(parsed["message"].get<std::string>().substr(0, 500));
  return body.empty() ? "it gave no reason" : escaped(std::string_view(body).substr(0, 200));
}

Code code_of(unsigned status, const std::string& message) {
  if (message.find("no space left on device") != std::string::npos || message.find("disk quota exceeded") != std::string::npos)
    return Code::kResourceExhausted;
  if (status == 400) return Code::kFailedPrecondition;  // we asked for what this engine or its machine does not serve
  if (status == 401) return Code::kUnauthenticated;
  if (status == 403) return Code::kPermissionDenied;
  if (status == 404) return Code::kNotFound;
  if (status == 409) return Code::kFailedPrecondition;
  return Code::kUnavailable;
}

constexpr char kLookAtIt[] = "look at the engine's log, or try the same with its own client";
// Engines say 500 of most: a name, a login and the network are no fault of theirs.
constexpr char kLookAtPull[] = "check its name, the network and the registry's login";

const char* next_of(Code code, const char* otherwise) {
  return code == Code::kResourceExhausted ? "free space where the engine keeps its data (docker system prune)" : otherwise;
}

Error refused(std::string what, const Reply& reply, const char* next = kLookAtIt) {
  const std::string message = message_in(reply.body);
  const Code code = code_of(reply.status, message);
  return Error(code, std::move(what))
      .reason(format("the container engine says: {} (HTTP {})", message, reply.status))
      .next(next_of(code, next));
}

Result<Json> parsed(const Reply& reply, std::string_view what) {
  Json json = Json::parse(reply.body, nullptr, false);
  if (!json.is_discarded()) return json;
  return Error(Code::kDataLoss, format("cannot read {}", what))
      .reason("the container engine answered with something that is not JSON")
      .next("check that the address is a Docker Engine API");
}

template <class T>
T value_in(const Json& json, std::initializer_list<const char*> keys, T fallback) {
  const Json* at = &json;
  for (const char* key : keys) {
    if (!at->is_object()) return fallback;
    const auto found = at->find(key);
    if (found == at->end()) return fallback;
    at = &*found;
  }
  if constexpr (std::is_same_v<T, bool>) return at->is_boolean() ? at->get<bool>() : fallback;
  else if constexpr (std::is_same_v<T, std::string>) return at->is_string() ? at->get<std::string>() : fallback;
  else return at->is_number() ? at->get<T>() : fallback;
}

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// "1.41" -> 41; nullopt when it is none.
std::optional<int> minor_of(const std::string& version) {
  if (!version.starts_with("1.")) return {};
  const int minor = std::atoi(version.c_str() + 2);  // NOLINT(cert-err34-c): 0 is refused as too old
  return minor;
}

std::string login_header(const RegistryLogin& login) {
  return to_base64url(text_of({{"username", login.user}, {"password", login.password}, {"serveraddress", login.server}}));
}

Json mounts_of(const Spec& spec) {
  Json mounts = Json::array();
  for (const Bind& bind : spec.binds)
    mounts.push_back({{"Type", "bind"},
                      {"Source", bind.source},
                      {"Target", bind.target},
                      {"ReadOnly", bind.readonly},
                      {"BindOptions", {{"Propagation", "rprivate"}, {"NonRecursive", bind.readonly && !bind.with_mounts}}}});
  return mounts;
}

Json host_config_of(const Spec& spec) {
  Json config = {{"Mounts", mounts_of(spec)},
                 {"NetworkMode", spec.network},
                 {"ReadonlyRootfs", spec.readonly_root},
                 {"CapDrop", {"ALL"}},
                 {"SecurityOpt", {"no-new-privileges"}},
                 {"IpcMode", "private"},
                 {"AutoRemove", true},
                 // An engine may put an init of its own before ours by default: any command could stop ours then.
                 {"Init", false},
                 // Output goes to whoever is attached and is not kept on the engine's disk.
                 {"LogConfig", {{"Type", "none"}}}};
  if (!spec.capabilities.empty()) config["CapAdd"] = spec.capabilities;
  for (const auto& [path, options] : spec.tmpfs) config["Tmpfs"][path] = options;
  for (const std::string& device : spec.devices)
    config["Devices"].push_back({{"PathOnHost", device}, {"PathInContainer", device}, {"CgroupPermissions", "rw"}});
  if (spec.memory) {
    config["Memory"] = *spec.memory;
    config["MemorySwap"] = *spec.memory;  // of both together: none of it is swap
  }
  if (spec.pids) config["PidsLimit"] = *spec.pids;
  if (spec.cpus) config["NanoCpus"] = static_cast<std::int64_t>(*spec.cpus * 1e9);
  if (!spec.runtime.empty()) config["Runtime"] = spec.runtime;
  if (spec.host_ids) config["UsernsMode"] = "host";
  // As Docker has it by default since 20.10: in a network of its own a port below 1024 is no more than another.
  if (!spec.sockets.empty()) config["Sysctls"]["net.ipv4.ip_unprivileged_port_start"] = "0";
  return config;
}

Json body_of(const Spec& spec) {
  return {{"Image", spec.image},
          {"Entrypoint", spec.entrypoint},
          {"Cmd", Json::array()},
          {"User", spec.user},
          {"WorkingDir", spec.workdir},
          {"Labels", spec.labels},
          {"Tty", false},
          {"OpenStdin", true},
          {"StdinOnce", true},
          {"AttachStdin", true},
          {"AttachStdout", true},
          {"AttachStderr", true},
          {"StopSignal", "SIGTERM"},
          // The image's own would be run by the engine, past our line and our clocks.
          {"Healthcheck", {{"Test", {"NONE"}}}},
          {"HostConfig", host_config_of(spec)}};
}

// JSON takes UTF-8 only, and what is put in a foreign byte's place may be the name of another file.
Result<void> check_utf8(const Spec& spec) {
  const auto check = [](const std::string& text) -> Result<void> {
    if (is_utf8(text)) return {};
    return Error(Code::kInvalidArgument, format("cannot tell the container engine of {}", belljar::quoted(text)))
        .reason("its API takes UTF-8 only")
        .next("rename the file or change the variable, or use the native backend");
  };
  for (const Bind& bind : spec.binds) {
    BELLJAR_CHECK(check(bind.source));
    BELLJAR_CHECK(check(bind.target));
  }
  for (const auto& [path, options] : spec.tmpfs) {
    BELLJAR_CHECK(check(path));
    BELLJAR_CHECK(check(options));
  }
  for (const auto& [name, value] : spec.labels) {
    BELLJAR_CHECK(check(name));
    BELLJAR_CHECK(check(value));
  }
  for (const auto* list : {&spec.entrypoint, &spec.devices, &spec.capabilities}) {
    for (const std::string& text : *list) BELLJAR_CHECK(check(text));
  }
  for (const std::string& text : {spec.workdir, spec.runtime, spec.network}) BELLJAR_CHECK(check(text));
  return {};
}

Error missing_image(const std::string& image, std::string reason) {
  return Error(Code::kNotFound, format("there is no image {}", belljar::quoted(image)))
      .reason(std::move(reason))
      .next("pull or build it, check the name, or log in to its registry");
}

}  // namespace

Result<Engine> Engine::connect(Address address, std::chrono::milliseconds patience, const CancelToken& cancel) {
  const Reply reply = BELLJAR_TRY(fetch(address, {.target = "/_ping", .patience = patience, .cancel = cancel}));
  if (reply.status != 200) return refused("cannot use the container engine", reply);
  const auto found = reply.headers.find("api-version");
  const std::optional<int> minor = found == reply.headers.end() ? std::nullopt : minor_of(found->second);
  if (!minor)
    return Error(Code::kFailedPrecondition,
                 format("what listens at {} is no container engine", belljar::quoted(to_string(address))))
        .reason("its answer names no API version")
        .next("name the socket of Docker or of Podman's service");
  if (*minor < kOldest)
    return Error(Code::kFailedPrecondition, "cannot use the container engine")
        .reason(format("it speaks API 1.{}, and 1.{} is the oldest that is served", *minor, kOldest))
        .next("update the engine");
  return Engine(std::move(address), format("/v1.{}", std::min(*minor, kNewest)), reply.headers.contains("libpod-api-version"));
}

Result<Reply> Engine::call(Method method, const std::string& path, std::string json, CancelToken cancel) const {
  return fetch(address_, {.method = method, .target = version_ + path, .json = std::move(json), .cancel = std::move(cancel)});
}

Result<EngineFacts> Engine::facts(std::chrono::milliseconds patience, const CancelToken& cancel) const {
  const Reply reply = BELLJAR_TRY(fetch(address_, {.target = version_ + "/info", .patience = patience, .cancel = cancel}));
  if (reply.status != 200) return refused("cannot ask the container engine what it can do", reply);
  const Json json = BELLJAR_TRY(parsed(reply, "what the container engine can do"));
  EngineFacts facts;
  facts.memory_limit = value_in(json, {"MemoryLimit"}, false);
  facts.cpu_quota = value_in(json, {"CpuCfsQuota"}, false);
  facts.pids_limit = value_in(json, {"PidsLimit"}, false);
  facts.processors = value_in(json, {"NCPU"}, 0.0);
  if (const auto options = json.find("SecurityOptions"); options != json.end() && options->is_array()) {
    for (const Json& option : *options) {
      const std::string text = option.is_string() ? option.get<std::string>() : std::string();
      if (text.starts_with("name=rootless")) facts.rootless = true;
      if (text.starts_with("name=userns")) facts.maps_ids = true;
      if (text.starts_with("name=seccomp")) facts.seccomp = text.find("profile=unconfined") == std::string::npos;
    }
  }
  facts.default_runtime = value_in(json, {"DefaultRuntime"}, std::string());
  facts.machine = value_in(json, {"Name"}, std::string());
  facts.version = value_in(json, {"ServerVersion"}, std::string());
  if (const auto runtimes = json.find("Runtimes"); runtimes != json.end() && runtimes->is_object()) {
    for (const auto& [name, runtime] : runtimes->items())
      facts.runtimes[name] = value_in(runtime, {"runtimeType"}, value_in(runtime, {"path"}, std::string()));
  }
  return facts;
}

Result<std::optional<ImageFacts>> Engine::find_image(const std::string& image, const CancelToken& cancel) const {
  const Reply reply = BELLJAR_TRY(call(Method::kGet, "/images/" + image + "/json", {}, cancel));
  if (reply.status == 404) return std::optional<ImageFacts>();
  if (reply.status != 200) return refused(format("cannot look for the image {}", belljar::quoted(image)), reply);
  const Json json = BELLJAR_TRY(parsed(reply, "what the image is"));
  ImageFacts facts;
  const auto config = json.find("Config");
  if (config == json.end() || !config->is_object()) return std::optional(facts);
  if (const auto volumes = config->find("Volumes"); volumes != config->end() && volumes->is_object()) {
    for (const auto& [path, nothing] : volumes->items()) facts.volumes.push_back(path);
  }
  return std::optional(facts);
}

Result<void> Engine::pull(const ContainerOptions& options, const CancelToken& cancel) const {
  const std::string& image = options.image;
  // A name without a tag would pull all of them.
  const bool tagged = image.find('@') != std::string::npos || image.rfind(':') + 1 > image.rfind('/') + 1;
  Request request{
      .method = Method::kPost,
      .target = format("{}/images/create?fromImage={}{}", version_, percent_encoded(image), tagged ? "" : "&tag=latest"),
      .patience = options.pull_timeout,
      .cancel = cancel};
  if (options.login) request.headers["X-Registry-Auth"] = login_header(*options.login);
  std::string line, failed;
  const auto look = [&] {
    const Json said = Json::parse(line, nullptr, false);
    line.clear();
    if (std::string text = value_in(said, {"errorDetail", "message"}, value_in(said, {"error"}, std::string())); !text.empty())
      failed = std::move(text);
  };
  request.on_body = [&](std::string_view piece) {
    for (const char c : piece) {
      if (c == '\n') look();
      else if (line.size() < (1U << 20)) line += c;
    }
  };
  const Reply reply = BELLJAR_TRY(fetch(address_, request));
  if (!line.empty()) look();
  if (reply.status == 404) return missing_image(image, "the registry has none: " + message_in(reply.body));
  if (reply.status != 200) return refused(format("cannot pull the image {}", belljar::quoted(image)), reply, kLookAtPull);
  if (failed.empty()) return {};
  const Code code = code_of(500, failed);
  return Error(code, format("cannot pull the image {}", belljar::quoted(image)))
      .reason(format("the container engine says: {}", escaped(failed.substr(0, 500))))
      .next(next_of(code, kLookAtPull));
}

Result<std::string> Engine::create(const Spec& spec) const {
  BELLJAR_CHECK(check_utf8(spec));
  Json body = body_of(spec);
  // Docker's containers have a pid namespace of their own; Podman's as containers.conf has it, unless told.
  if (podman_) body["HostConfig"]["PidMode"] = "private";
  const Reply reply = BELLJAR_TRY(call(Method::kPost, "/containers/create", text_of(body)));
  if (reply.status == 404) return missing_image(spec.image, "the engine has none: " + message_in(reply.body));
  if (reply.status != 201) return refused("cannot make a container", reply);
  std::string id = value_in(BELLJAR_TRY(parsed(reply, "the new container's id")), {"Id"}, std::string());
  const bool plain =
      !id.empty() && std::ranges::all_of(id, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'); });
  if (!plain) return Error(Code::kDataLoss, "cannot make a container").reason("the engine's answer has no id");
  return id;
}

Result<UpgradedStream> Engine::attach(const std::string& id) const {
  UpgradedStream upgraded = BELLJAR_TRY(container::upgrade(
      address_,
      {.method = Method::kPost, .target = format("{}/containers/{}/attach?stream=1&stdin=1&stdout=1&stderr=1", version_, id)}));
  if (!upgraded.stream) return refused("cannot attach to the container", upgraded.reply);
  return upgraded;
}

Result<void> Engine::start(const std::string& id, const CancelToken& cancel) const {
  const Reply reply = BELLJAR_TRY(call(Method::kPost, format("/containers/{}/start", id), {}, cancel));
  if (reply.status == 204 || reply.status == 304) return {};
  return refused("cannot start the container", reply);
}

Result<int> Engine::pid(const std::string& id) const {
  const Reply reply = BELLJAR_TRY(call(Method::kGet, format("/containers/{}/json", id)));
  if (reply.status != 200) return refused("cannot look at the container", reply);
  return value_in(BELLJAR_TRY(parsed(reply, "the container's state")), {"State", "Pid"}, 0);
}

Result<void> Engine::remove(const std::string& id, const CancelToken& cancel) const {
  const Reply reply = BELLJAR_TRY(call(Method::kDelete, format("/containers/{}?force=1&v=1", id), {}, cancel));
  if (reply.status == 204 || reply.status == 200 || reply.status == 404 || reply.status == 409) return {};
  return refused("cannot remove the container", reply);
}

Result<void> Engine::await_removal(const std::string& id, std::chrono::milliseconds patience, const CancelToken& cancel) const {
  const Reply reply = BELLJAR_TRY(fetch(address_, {.method = Method::kPost,
                                                   .target = format("{}/containers/{}/wait?condition=removed", version_, id),
                                                   .patience = patience,
                                                   .cancel = cancel}));
  if (reply.status == 200 || reply.status == 404) return {};
  return refused("cannot wait for the container's end", reply);
}

Result<ContainerStats> Engine::stats(const std::string& id, const CancelToken& cancel) const {
  const Reply reply = BELLJAR_TRY(call(Method::kGet, format("/containers/{}/stats?stream=false&one-shot=true", id), {}, cancel));
  if (reply.status != 200) return refused("cannot measure the container", reply);
  const Json json = BELLJAR_TRY(parsed(reply, "what the container uses"));
  const auto number = [&](std::initializer_list<const char*> keys) { return value_in<std::uint64_t>(json, keys, 0); };
  ContainerStats stats;
  stats.cpu = std::chrono::microseconds(number({"cpu_stats", "cpu_usage", "total_usage"}) / 1000);
  const std::uint64_t used = number({"memory_stats", "usage"});
  // File cache that can be dropped counts in `usage`; its name differs between cgroup v2 and v1.
  const std::uint64_t cache =
      std::max(number({"memory_stats", "stats", "inactive_file"}), number({"memory_stats", "stats", "total_inactive_file"}));
  stats.memory = used > cache ? used - cache : 0;
  stats.processes = number({"pids_stats", "current"});
  return stats;
}

Result<std::vector<ContainerEntry>> Engine::list(const std::string& label) const {
  const std::string filter = percent_encoded(text_of({{"label", {label}}}));
  const Reply reply = BELLJAR_TRY(call(Method::kGet, "/containers/json?all=1&filters=" + filter));
  if (reply.status != 200) return refused("cannot list containers", reply);
  const Json json = BELLJAR_TRY(parsed(reply, "the list of containers"));
  std::vector<ContainerEntry> containers;
  if (!json.is_array()) return containers;
  for (const Json& entry : json) {
    ContainerEntry listed{value_in(entry, {"Id"}, std::string()), {}};
    if (const auto labels = entry.find("Labels"); labels != entry.end() && labels->is_object()) {
      for (const auto& [name, text] : labels->items()) {
        if (text.is_string()) listed.labels[name] = text.get<std::string>();
      }
    }
    if (!listed.id.empty()) containers.push_back(std::move(listed));
  }
  return containers;
}

}  // namespace belljar::backend::container
