// belljar policy show | list | explain | check | compile | names | keys
#include "belljar/policy.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/paths/host.h"
#include "base/format.h"
#include "base/real_path.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/components.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "cli/own_program.h"
#include "cli/policy_flags.h"
#include "cli/run_notes.h"
#include "cli/start_plan.h"
#include "cli/tls_program.h"
#include "policy/all_errors.h"
#include "policy/compile.h"
#include "policy/explain.h"
#include "policy/json.h"
#include "policy/layer.h"
#include "policy/merge.h"
#include "policy/parse.h"
#include "policy/paths.h"
#include "policy/profiles.h"
#include "policy/protected.h"
#include "policy/schema.h"

namespace belljar::cli {
namespace {

// What the sub-commands were given; lives as long as their callbacks.
struct PolicyCommandFlags {
  PolicyFlags policy;
  bool json = false, all = false;
  std::string path;
  std::string host;
  std::string name;
  std::string system;
  std::vector<std::string> files;
};

int show_policy(const PolicyCommandFlags& flags) {
  PolicyFlags policy_flags = flags.policy;
  if (!flags.name.empty() && !policy_flags.policy.empty() && policy_flags.policy != flags.name)
    return print_error(Error(Code::kInvalidArgument, "two policies are named").next("leave out the name or --policy"));
  if (!flags.name.empty()) policy_flags.policy = flags.name;
  auto loaded = load_policy(policy_flags);
  if (!loaded) return print_error(loaded.error());
  return print_result(flags.json ? policy::to_json_text(loaded->effective) : policy::to_toml_text(loaded->effective));
}

// One line each.
int list_policies(const PolicyCommandFlags& flags) {
  std::size_t width = 0;
  for (const policy::EmbeddedProfile& profile : policy::embedded_profiles()) width = std::max(width, profile.name.size());
  std::string text;
  for (const policy::EmbeddedProfile& profile : policy::embedded_profiles()) {
    const std::string_view summary = policy::summary_of(profile);
    if (flags.json) text += format("{{\"name\":{},\"summary\":{}}}\n", policy::json_text(profile.name), policy::json_text(summary));
    else text += format("{:<{}}  {}\n", profile.name, width, summary);
  }
  return print_result(text);
}

int explain_host(const PolicyCommandFlags& flags, const LoadedPolicy& loaded) {
  const auto answer = policy::explain_host(loaded.effective, flags.host);
  if (!answer) return print_error(answer.error());
  return print_result(flags.json ? policy::to_json_text(*answer) : policy::to_text(*answer));
}

int explain_policy(const PolicyCommandFlags& flags) {
  auto loaded = load_policy(flags.policy);
  if (!loaded) return print_error(loaded.error());
  for (const std::string& warning : loaded->effective.warnings) print_note("warning: " + warning);
  const Network& network = loaded->effective.policy.network;
  if (const std::string note = note_of_proxy_variable();
      network.mode == NetMode::kProxy && network.upstream_proxy.empty() && !note.empty())
    print_note(note);
  if (!flags.host.empty()) return explain_host(flags, *loaded);
  if (flags.path.empty())
    return print_result(flags.json ? policy::explain_json(loaded->effective)
                                   : policy::explain_text(loaded->effective, flags.all ? policy::ShownSecrets::kEach
                                                                                       : policy::ShownSecrets::kCounted));
  const backend::RealHost host;
  auto answer = policy::explain_path(loaded->effective, loaded->context, flags.path, [&](const std::string& path) {
    return host.canonical(path).value_or(backend::where_made(host, path));
  });
  if (!answer) return print_error(answer.error());
  const Mode mode = loaded->effective.policy.mode;
  if (mode != Mode::kDangerFullAccess && mode != Mode::kExternalSandbox) {
    if (const auto plan = plan_start(host, loaded->effective.policy, loaded->context))
      hold_to_plan(host, *plan, loaded->context.workspace, *answer);
    else print_note("warning: no start accepts this policy: " + plan.error().line());
  }
  return print_result(flags.json ? policy::to_json_text(*answer) : policy::to_text(*answer));
}

// Only belljar-full has the parser of shell that command_check_of_this_program() needs. Returns where it is not installed, and says
// so.
void exec_program_that_reads_commands(const std::vector<std::string>& files) {
  const bool names_commands = std::ranges::any_of(files, [](const std::string& file) {
    const auto text = read_policy_file(file);
    return text && text->find("commands") != std::string::npos;
  });
  if (!names_commands || command_check_of_this_program() != nullptr) return;
  exec_program(path_of_sibling(kFullProgram), name_of(Component::kTls));
  print_note("warning: " + sibling_is_missing("commands.allow and commands.deny are not checked", kFullProgram).line());
}

// Each file alone on top of the built-in profile, in the current directory: all that a start would refuse before it touches the
// kernel. True: it would refuse nothing.
bool check_file(const std::string& file, const policy::MergeContext& context) {
  const auto text = read_policy_file(file);
  if (!text) return print_error(text.error()) == 0;
  std::vector<Error> errors;
  // As a start with `--policy FILE` in this directory takes it.
  const bool project = is_project_file(file);
  policy::Layer layer = policy::parse_all(*text, file, project ? "project" : "policy", errors);
  layer.narrow_only = project || policy::is_within(real_path(file), context.workspace);
  const backend::RealHost host;
  std::vector<std::string> warnings;
  const policy::LayerCheck check = [&](const policy::Layer& asked) -> Result<void> {
    const policy::Effective effective = BELLJAR_TRY(merge_alone(asked, context));
    BELLJAR_CHECK(check_start(host, effective, context));
    if (const CheckCommands check_commands = command_check_of_this_program()) BELLJAR_CHECK(check_commands(asked));
    warnings = effective.warnings;
    for (std::string& warning : warnings_of_start(effective.policy)) warnings.push_back(std::move(warning));
    return {};
  };
  for (Error& error : policy::all_errors(std::move(layer), check)) errors.push_back(std::move(error));
  for (const Error& error : errors) (void)print_error(error);
  for (const std::string& warning : warnings) print_note("warning: " + warning);
  if (!errors.empty()) return false;
  print_result(format("{}: ok\n", escaped(file)));
  return true;
}

int check(const PolicyCommandFlags& flags) {
  constexpr int kRefused = 125;
  exec_program_that_reads_commands(flags.files);
  const policy::MergeContext context = context_here();
  bool fine = true;
  for (const std::string& file : flags.files) fine = check_file(file, context) && fine;
  return fine ? 0 : kRefused;
}

// As another system's sandbox takes it; what that cannot hold is said.
int compile_policy(const PolicyCommandFlags& flags) {
  const auto loaded = load_policy(flags.policy);
  if (!loaded) return print_error(loaded.error());
  const auto compiled = flags.system == "windows" ? policy::compile_windows(loaded->effective, loaded->context)
                                                  : policy::compile_seatbelt(loaded->effective, loaded->context);
  if (!compiled) return print_error(compiled.error());
  for (const policy::CompileGap& gap : compiled->gaps)
    print_note(format("warning: {} does not hold {}: {}", flags.system, gap.clause, gap.why));
  return print_result(compiled->text);
}

}  // namespace

void add_policy(const OptionParser& app, int& exit_code) {
  const OptionParser group = app.add_subcommand("policy", "Show, explain and check policies");
  group.require_subcommand();
  const auto flags = std::make_shared<PolicyCommandFlags>();
  const auto command = [&](const char* name, const char* doc, int (*act)(const PolicyCommandFlags&)) {
    const OptionParser sub = group.add_subcommand(name, doc);
    sub.callback([flags, act, &exit_code] { exit_code = act(*flags); });
    return sub;
  };
  // The options cost more to build than most commands take: only when `policy` is really called.
  group.before_parse([flags, group] {
    for (const char* name : {"show", "explain", "compile"}) {
      const OptionParser sub = group.subcommand(name);
      add_policy_options(sub, flags->policy);
      add_cwd_option(sub, flags->policy);
    }
  });
  const OptionParser showing = command("show", "The effective policy as TOML", show_policy);
  showing.add_flag("--json", flags->json, "As one JSON object");
  showing.add_option("NAME", flags->name, "As --policy NAME").not_empty();
  command("list", "The policies that have a name, one line each", list_policies)
      .add_flag("--json", flags->json, "As one JSON object a line");
  const OptionParser explaining = command("explain", "Each effective value and the line it came from", explain_policy);
  explaining.add_flag("--json", flags->json, "As one JSON object");
  explaining.add_flag("--all", flags->all, "Each of the secrets that are hidden by default, too");
  const Option path =
      explaining.add_option("--path", flags->path, "What one path allows, and the rule that decides").not_empty().type_name("PATH");
  explaining
      .add_option("--host", flags->host, "Whether this host may be reached (port 443 unless given), and the rule that decides")
      .not_empty()
      .type_name("HOST[:PORT]")
      .excludes(path);
  command("check", "All that a start with each of these policy files would refuse", check)
      .add_option("FILE", flags->files, "TOML, or JSON when it ends in .json")
      .required();
  command("compile", "The effective policy as the sandbox of macOS or Windows takes it", compile_policy)
      .add_option("--for", flags->system, "seatbelt: a profile for sandbox-exec; windows: what a launcher has to do, as JSON")
      .one_of({"seatbelt", "windows"})
      .required();
  command("names", "The table of names that filesystem.protect holds, and who reads them, as markdown",
          [](const PolicyCommandFlags&) { return print_result(policy::protected_names_markdown()); });
  command("keys", "The table of all keys as markdown",
          [](const PolicyCommandFlags&) { return print_result(policy::keys_markdown()); });
}

}  // namespace belljar::cli
