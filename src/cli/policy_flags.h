// The policy options of the command line, one for each key of the schema that has a flag. `run` and `policy ...` share them, so
// `belljar policy explain --write /x` shows exactly what `belljar run --write /x` would do.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "belljar/result.h"
#include "cli/command_line.h"
#include "policy/layer.h"

namespace belljar::cli {

// The values of the policy options, as text. Must outlive the parsing of the App it is registered on.
struct PolicyFlags {
  std::string policy;                  // --policy: a mode, a profile or a file; empty: not given
  std::string recognised;              // the profile of the agent that is started; anybody's word for another one outweighs it
  std::vector<std::string> workspace;  // --workspace, each time it was given
  std::string cwd;                     // --cwd
  bool login = false;                  // --login
  std::vector<std::pair<const policy::Key*, std::vector<std::string>>> values;
};

// Registers the options on `app`.
//
// With `words` (argv), only the options that occur there before "--" are built, all of them when help is asked for: fifty options
// cost 0.1 ms, which is a tenth of a short start. Unknown options are still answered with the nearest name, see usage_error().
void add_policy_options(const OptionParser& app, PolicyFlags& flags, std::span<const char* const> words = {});
// --cwd, of a command that starts in one place; --login, of one that runs shell text. `words` as above.
void add_cwd_option(const OptionParser& app, PolicyFlags& flags, std::span<const char* const> words = {});
void add_login_flag(const OptionParser& app, PolicyFlags& flags, std::span<const char* const> words = {});

// The variables that --env sets, as far as they can be read: for keeping values out of records, also when the policy is refused.
std::map<std::string, std::string> variables_set(const PolicyFlags& flags);

// The flags as a layer named "flag"; each value's origin reads "flag --write". Errors: kInvalidArgument, naming the option.
Result<policy::Layer> flags_layer(const PolicyFlags& flags);

}  // namespace belljar::cli
