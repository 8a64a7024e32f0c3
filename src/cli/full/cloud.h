// `belljar run` on a machine of a service: what the services have in common. A file for each says what is its own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "belljar/cloud.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "cli/command_line.h"

namespace belljar::cli {

// No flag for a key, here or in a service's own: words of a command line are everybody's to read.
struct CloudFlags {
  std::string workspace_at, on_stop;
};

struct Cloud {
  std::string_view name;
  const char* summary;
  const char* usage;
  const char* machine;   // what the service calls one: "sandbox"
  const char* entering;  // the option that enters one again
  std::function<void(const OptionParser&)> add_options;
  std::function<Result<SandboxFactory>()> make;
  const std::string* address = nullptr;  // given, it says which machine it is, and no id is told
};

// An option's value that means nothing.
Error wrong_option(std::string_view option, std::string_view text, std::string next);
// --on-stop; empty: what is there already.
Result<void> set_on_stop(const CloudFlags& flags, std::optional<CloudOnStop>& to);
// All of a main(). `flags` are read after `cloud.add_options` filled them.
int run_in_cloud(int argc, char** argv, const CloudFlags& flags, const Cloud& cloud);

}  // namespace belljar::cli
