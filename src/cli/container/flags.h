// The options of `belljar run` that only containers have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belljar/container.h"
#include "belljar/result.h"
#include "cli/command_line.h"

namespace belljar::cli {

struct ContainerFlags {
  std::string engine, image, pull, user, workspace_at, network, runtime, registry_user, registry_password_file, registry_server;
  std::vector<std::string> tmpfs, cap_add, labels;
  bool writable_root = false, plain_tcp = false, shared_files = false;
};

void add_container_options(const OptionParser& app, ContainerFlags& flags);
// `options`: what holds where no flag says otherwise. Errors: kInvalidArgument, naming the option; the password's file cannot be
// read.
Result<ContainerOptions> container_options(const ContainerFlags& flags, ContainerOptions options);

}  // namespace belljar::cli
