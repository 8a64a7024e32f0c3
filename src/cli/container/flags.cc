#include "cli/container/flags.h"

#include "base/format.h"
#include "cli/command_line.h"
#include "cli/load.h"

namespace belljar::cli {
namespace {

Error wrong(std::string_view option, std::string_view text, std::string next) {
  return Error(Code::kInvalidArgument, format("{}: cannot use {}", option, belljar::quoted(text))).next(std::move(next));
}

Result<PullPolicy> parse_pull(const std::string& text) {
  if (text.empty() || text == "missing" || text == "IfNotPresent") return PullPolicy::kIfNotPresent;
  if (text == "always" || text == "Always") return PullPolicy::kAlways;
  if (text == "never" || text == "Never") return PullPolicy::kNever;
  return wrong("--pull", text, "use missing, always or never");
}

}  // namespace

void add_container_options(const OptionParser& app, ContainerFlags& flags) {
  const auto option = [&](const char* name, std::string& to, const char* doc, const char* type) {
    app.add_option(name, to, doc).not_empty().type_name(type).group("Container");
  };
  const auto list = [&](const char* name, std::vector<std::string>& to, const char* doc, const char* type) {
    app.add_option(name, to, doc).not_empty().repeatable().type_name(type).group("Container");
  };
  option("--image", flags.image, "The image (default: node:20-slim)", "NAME");
  option("--engine", flags.engine, "The engine's socket, or tcp://HOST:PORT (default: $DOCKER_HOST, then the usual places)",
         "unix://PATH");
  option("--pull", flags.pull, "missing (default), always or never", "WHEN");
  option("--registry-user", flags.registry_user, "User at the registry", "NAME");
  option("--registry-password-file", flags.registry_password_file, "File with the password: its first line", "FILE");
  option("--registry-server", flags.registry_server, "The registry that both are for", "HOST");
  option("--user", flags.user, "Who the command is (default: you; of root, the workspace's owner)", "UID[:GID]");
  option("--workspace-at", flags.workspace_at, "Where the workspace is seen inside (default: at its own path)", "PATH");
  option("--container-network", flags.network, "The engine's network for --net host (default: bridge)", "NAME");
  option("--runtime", flags.runtime, "The engine's runtime, such as runsc or kata", "NAME");
  list("--tmpfs", flags.tmpfs, "A further private directory: PATH or PATH:OPTIONS", "PATH");
  list("--cap-add", flags.cap_add, "A capability to give back; all are dropped", "NAME");
  list("--label", flags.labels, "A label on the container", "NAME=TEXT");
  app.add_flag("--plain-tcp", flags.plain_tcp, "Speak to the engine without TLS also beyond this machine's loopback")
      .group("Container");
  app.add_flag("--shared-files", flags.shared_files, "The engine is elsewhere and sees the same directories at the same paths")
      .group("Container");
  app.add_flag("--writable-root", flags.writable_root, "Let the command write to the image's tree; it goes with the container")
      .group("Container");
}

Result<ContainerOptions> container_options(const ContainerFlags& flags, ContainerOptions options) {
  if (!flags.engine.empty()) options.engine = flags.engine;
  if (flags.plain_tcp) options.plain_tcp = PlainTcp::kAnywhere;
  if (flags.shared_files) options.engine_files = EngineFiles::kShared;
  if (!flags.image.empty()) options.image = flags.image;
  if (!flags.pull.empty()) options.pull = BELLJAR_TRY(parse_pull(flags.pull));
  options.user = flags.user;
  if (!flags.workspace_at.empty()) options.workspace_at = flags.workspace_at;
  if (!flags.network.empty()) options.network = flags.network;
  options.runtime = flags.runtime;
  options.capabilities = flags.cap_add;
  if (flags.writable_root) options.root = ContainerRoot::kWritable;
  for (const std::string& text : flags.tmpfs) {
    const std::size_t colon = text.find(':');
    if (!text.starts_with('/')) return wrong("--tmpfs", text, "name an absolute path: /run, or /run:size=64m");
    options.tmpfs[text.substr(0, colon)] = colon == std::string::npos ? "" : text.substr(colon + 1);
  }
  for (const std::string& text : flags.labels) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) return wrong("--label", text, "give NAME=TEXT");
    options.labels[text.substr(0, equals)] = text.substr(equals + 1);
  }
  if (flags.registry_user.empty() != flags.registry_password_file.empty())
    return Error(Code::kInvalidArgument, "--registry-user and --registry-password-file belong together").next("give both");
  if (!flags.registry_user.empty()) {
    const std::string text = BELLJAR_TRY(read_text_file(flags.registry_password_file, "the password"));
    options.login = RegistryLogin{flags.registry_user, text.substr(0, text.find('\n')), flags.registry_server};
  }
  return options;
}

}  // namespace belljar::cli
