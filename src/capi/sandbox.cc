// The calls of the C interface on a sandbox.
//
// Option structs begin with their size. A caller that was compiled against an earlier version has a shorter
// struct: its part is copied over the defaults, and fields that it does not know keep them (full()).
#include "belljar/sandbox.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "belljar/violation_text.h"
#include "capi/values.h"

namespace belljar::capi {
namespace {

// The caller's struct may be of an earlier version, and shorter.
template <class Options>
Result<Options> full(const Options* given, const Options& defaults) {
  Options options = defaults;
  if (given == nullptr) return options;
  if (given->size < sizeof(std::size_t) || given->size > 4096)
    return Error(Code::kInvalidArgument, "the options do not say how large they are").next("begin with the INIT macro");
  std::memcpy(&options, given, std::min(given->size, sizeof options));
  return options;
}

Error missing(const char* what) { return Error(Code::kInvalidArgument, std::string(what) + " is NULL"); }

Result<void> create(const belljar_options* given, belljar_sandbox** sandbox) {
  const belljar_options options = BELLJAR_TRY(full<belljar_options>(given, BELLJAR_OPTIONS_INIT));
  SandboxConfig config;
  if (options.workspace != nullptr) config.workspace = options.workspace;
  config.policy = BELLJAR_TRY(policy_of(options.policy_toml, config.workspace));
  config.backend = options.backend != nullptr ? options.backend : config.policy.backend;
  config.fallback = config.policy.fallback;
  if (options.idle_timeout_ms < 0) return Error(Code::kInvalidArgument, "idle_timeout_ms is negative");
  if (options.idle_timeout_ms > 0) config.idle_timeout = std::chrono::milliseconds(options.idle_timeout_ms);
  auto made = BELLJAR_TRY(make_sandbox(config));
  BELLJAR_CHECK(made->start());
  *sandbox = new belljar_sandbox{std::move(made)};
  return {};
}

Result<void> add_variables(const char* const* entries, Command& command) {
  for (; entries != nullptr && *entries != nullptr; ++entries) {
    const char* const equals = std::strchr(*entries, '=');
    if (equals == nullptr || equals == *entries)
      return Error(Code::kInvalidArgument, "a variable in `env` sets nothing").next("NAME=VALUE");
    command.env[std::string(*entries, equals)] = equals + 1;
  }
  return {};
}

Result<void> run(belljar_sandbox* sandbox, Command command, const belljar_exec_options* given, belljar_result** result) {
  const auto options = BELLJAR_TRY(full<belljar_exec_options>(given, BELLJAR_EXEC_OPTIONS_INIT));
  if (options.cwd != nullptr) command.cwd = options.cwd;
  BELLJAR_CHECK(add_variables(options.env, command));
  ExecOptions how;
  if (options.stdin_size > 0) {
    if (options.stdin_bytes == nullptr) return missing("stdin_bytes");
    how.stdin_bytes.assign(static_cast<const char*>(options.stdin_bytes), options.stdin_size);
  }
  if (options.timeout_ms != 0) how.timeout = std::chrono::milliseconds(options.timeout_ms);
  ExecResult ended = BELLJAR_TRY(sandbox->sandbox->exec(command, how));
  const std::string reason(to_string(ended.reason));
  std::string refusals = to_model_text(ended);
  *result = new belljar_result{std::move(ended), reason, std::move(refusals)};
  return {};
}

Result<void> read(belljar_sandbox* sandbox, const char* path, char** bytes, std::size_t* size) {
  const std::string content = BELLJAR_TRY(sandbox->sandbox->read_file(path));
  *bytes = static_cast<char*>(std::malloc(content.size() + 1));
  if (*bytes == nullptr) throw std::bad_alloc();
  std::memcpy(*bytes, content.c_str(), content.size() + 1);
  if (size != nullptr) *size = content.size();
  return {};
}

}  // namespace
}  // namespace belljar::capi

using belljar::Result;
using belljar::capi::guarded;
using belljar::capi::missing;

extern "C" {

belljar_code belljar_create(const belljar_options* options, belljar_sandbox** sandbox, belljar_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (sandbox == nullptr) return missing("sandbox");
    *sandbox = nullptr;
    return belljar::capi::create(options, sandbox);
  });
}

void belljar_destroy(belljar_sandbox* sandbox) { delete sandbox; }

belljar_code belljar_exec(belljar_sandbox* sandbox, const char* const* argv, const belljar_exec_options* options,
                          belljar_result** result, belljar_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (result == nullptr) return missing("result");
    *result = nullptr;
    if (sandbox == nullptr || argv == nullptr) return missing(sandbox == nullptr ? "sandbox" : "argv");
    belljar::Command command;
    for (const char* const* word = argv; *word != nullptr; ++word) command.argv.emplace_back(*word);
    return belljar::capi::run(sandbox, std::move(command), options, result);
  });
}

belljar_code belljar_shell(belljar_sandbox* sandbox, const char* text, const belljar_exec_options* options, belljar_result** result,
                           belljar_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (result == nullptr) return missing("result");
    *result = nullptr;
    if (sandbox == nullptr || text == nullptr) return missing(sandbox == nullptr ? "sandbox" : "text");
    return belljar::capi::run(sandbox, belljar::shell_command(text), options, result);
  });
}

belljar_code belljar_read_file(belljar_sandbox* sandbox, const char* path, char** bytes, size_t* size, belljar_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (bytes == nullptr) return missing("bytes");
    *bytes = nullptr;
    if (size != nullptr) *size = 0;
    if (sandbox == nullptr || path == nullptr) return missing(sandbox == nullptr ? "sandbox" : "path");
    return belljar::capi::read(sandbox, path, bytes, size);
  });
}

belljar_code belljar_write_file(belljar_sandbox* sandbox, const char* path, const void* bytes, size_t size, belljar_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (sandbox == nullptr || path == nullptr) return missing(sandbox == nullptr ? "sandbox" : "path");
    if (bytes == nullptr && size > 0) return missing("bytes");
    return sandbox->sandbox->write_file(path, {static_cast<const char*>(bytes), size});
  });
}

}  // extern "C"
