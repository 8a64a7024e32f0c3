#include "backend/container/context.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "base/environment.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend::container {
namespace {

using Json = nlohmann::json;

// Of a file that is missing or broken: no object. Docker's client goes on without it, too.
Json read_json(const std::filesystem::path& path) {
  std::error_code missing;
  if (!std::filesystem::is_regular_file(path, missing)) return nullptr;  // a stream of a directory throws, a FIFO waits
  std::ifstream file(path);
  return Json::parse(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), nullptr, false);
}

std::string text_at(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  return json.is_object() && json.contains(at) && json[at].is_string() ? json[at].get<std::string>() : std::string();
}

}  // namespace

Result<std::string> host_of_context(const std::map<std::string, std::string>& environment) {
  std::string directory = variable_of(environment, "DOCKER_CONFIG");
  if (directory.empty()) directory = variable_of(environment, "HOME") + "/.docker";
  std::string name = variable_of(environment, "DOCKER_CONTEXT");
  if (name.empty()) name = text_at(read_json(directory + "/config.json"), "/currentContext");
  if (name.empty() || name == "default") return std::string();
  std::error_code missing;
  std::filesystem::directory_iterator entry(directory + "/contexts/meta", missing);
  for (; !missing && entry != std::filesystem::directory_iterator(); entry.increment(missing)) {
    const Json json = read_json(entry->path() / "meta.json");
    if (text_at(json, "/Name") != name) continue;
    std::string host = text_at(json, "/Endpoints/docker/Host");
    if (host.starts_with("unix://")) return host;
    return Error(Code::kUnimplemented, format("cannot use Docker's context {}", belljar::quoted(name)))
        .reason(format("its engine is at {}, and of contexts only unix sockets are served", belljar::quoted(host)))
        .next("name the engine with --engine or DOCKER_HOST");
  }
  return Error(Code::kNotFound, format("there is no Docker context {}", belljar::quoted(name)))
      .reason("DOCKER_CONTEXT, or config.json of Docker's client, names it")
      .next("look at `docker context ls`, or name the engine with --engine or DOCKER_HOST");
}

}  // namespace belljar::backend::container
