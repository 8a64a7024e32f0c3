// belljar explain [ID | last]: what a run was refused, which rule did it, what would permit it and what that
// would cost.
//
// Violations are kept with the run, so nothing is run again, and what is explained is the policy that held
// then. For each refusal policy/permit.h finds the smallest thing that would permit it, as a flag and as a
// line of a file. Refusals of one program by one rule that the same thing would permit are one paragraph: the
// first in full, the others by their names. A build that was refused two hundred files below one directory
// has one cause.
//
// What an agent's profile refuses on purpose comes last and without advice, since it is hardly ever why a run
// failed. Whether a permission would help at all is asked of the file's own mode and owner too: a grant in a
// policy gives nobody more rights than the user has.
//
// Everything from inside (program names, paths) is escaped before it is printed.
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/format.h"
#include "base/real_path.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/state_dir.h"
#include "belljar/violation_text.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "policy/json.h"
#include "policy/permit.h"
#include "runtime/kept_run.h"
#include "runtime/violation_store.h"

namespace belljar::cli {
namespace {

struct ExplainFlags {
  std::string id = "last", workspace;
  bool json = false, list = false, model = false;
};

std::string acts(std::uint64_t count) { return format("{} act{}", count, count == 1 ? "" : "s"); }

// "tried to connect to": what the operation means in a sentence.
std::string_view verb(std::string_view operation) {
  constexpr std::pair<std::string_view, std::string_view> kVerbs[] = {
      {"unix-connect", "tried to connect to the Unix socket"},
      {"unix-listen", "tried to listen on one more Unix socket"},
      {"connect", "tried to connect to"},
      {"udp-connect", "tried to send UDP to"},
      {"bind", "tried to bind the TCP port"},
      {"listen", "tried to listen on the TCP port"},
      {"egress", "tried to reach"},
      {"socket", "tried to make a socket of the kind"},
      {"system-call", "tried the system call"},
      {"limit", "reached the limit"},
      {"read", "tried to read"},
      {"write", "tried to write to"},
      {"create", "tried to create"},
      {"mkdir", "tried to make the directory"},
      {"mknod", "tried to make the node"},
      {"symlink", "tried to make the symbolic link"},
      {"link", "tried to make the hard link"},
      {"rename", "tried to rename"},
      {"delete", "tried to delete"},
      {"chmod", "tried to change the mode of"},
      {"truncate", "tried to truncate"},
      {"attributes", "tried to change attributes of"},
  };
  for (const auto& [name, words] : kVerbs) {
    if (name == operation) return words;
  }
  return {};
}

// The resolver inside answers like one; a connection that the proxy refuses has EACCES.
bool is_lookup(const Violation& violation) { return violation.operation == "egress" && violation.errnum != EACCES; }

std::string sentence(const Violation& violation) {
  const std::string_view words = is_lookup(violation) ? "asked for the name" : verb(violation.operation);
  std::string text = belljar::quoted(violation.program.empty() ? "the command" : violation.program);
  if (violation.pid > 0) text += format(" (pid {} inside)", violation.pid);
  text += words.empty() ? format(" was refused {}", belljar::quoted(violation.operation)) : format(" {}", words);
  if (!violation.target.empty()) text += " " + belljar::quoted(violation.target);
  if (violation.count > 1) text += format(", {} times", violation.count);
  if (violation.errnum != 0) text += format(", and got {}", errno_name(violation.errnum));
  else if (violation.operation == "system-call") text += ", and was killed";
  return text;
}

// Refusals of one program by one rule that one thing would permit: the first in full, the others by their names.
struct RefusalGroup {
  Violation first;
  policy::Permit permit;
  std::vector<std::string> others;
};

std::vector<RefusalGroup> group_alike(const std::vector<Violation>& violations, const policy::PermitContext& context) {
  std::vector<RefusalGroup> groups;
  for (const Violation& violation : merge_alike(violations)) {
    policy::Permit permit = policy::permit_for(violation, context);
    const auto same = std::ranges::find_if(groups, [&](const RefusalGroup& known) {
      return known.permit == permit && known.first.program == violation.program && known.first.operation == violation.operation &&
             known.first.rule == violation.rule && known.first.origin == violation.origin &&
             known.first.errnum == violation.errnum && known.first.allowed == violation.allowed;
    });
    if (same == groups.end()) groups.push_back({violation, std::move(permit), {}});
    else same->others.push_back(violation.target);
  }
  return groups;
}

std::string list_some(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) text += (i == 0 ? "" : ", ") + belljar::quoted(names[i]);
  return names.size() > kMost ? text + format(" and {} more", names.size() - kMost) : text;
}

std::string in_words(std::size_t number, const RefusalGroup& alike) {
  const policy::Permit& permit = alike.permit;
  std::string text = format("\n{}. {}\n", number, sentence(alike.first));
  const auto line = [&](const char* name, std::string_view value) {
    if (!value.empty()) text += format("   {:<14}{}\n", name, value);
  };
  line("and the same:", list_some(alike.others));
  line("refused by:", format("{} ({})", escaped(alike.first.rule), escaped(to_string(alike.first.origin))));
  line("allowed:", escaped(alike.first.allowed));
  const std::string& best = permit.flag.empty() ? permit.step : permit.flag;
  const bool nothing = best.empty() && permit.line.empty();
  line("to permit:", nothing ? "nothing does" : best);
  line(best.empty() ? "to permit:" : "or in a file:", permit.line);
  line("note:", permit.note);
  if (!nothing) line("risk:", permit.risk);
  return text;
}

// What an agent's profile refuses on purpose needs no permit, and no advice.
std::string intended_in_words(std::span<const RefusalGroup> groups) {
  std::string text;
  for (const RefusalGroup& alike : groups) {
    if (!policy::is_intended(alike.first)) continue;
    if (text.empty())
      text = format("\nintended by the profile {}, so seldom why a run failed:\n", escaped(alike.first.origin.layer));
    text += "   " + sentence(alike.first) + "\n";
    if (!alike.others.empty()) text += format("   {:<14}{}\n", "and the same:", list_some(alike.others));
  }
  return text;
}

std::string heading(const runtime::KeptRun& run) {
  std::uint64_t total = run.result.violations_dropped;
  for (const Violation& violation : run.result.violations) total += violation.count;
  return format("run {}: {} in {}, {} ({}); {} refused\n", escaped(run.result.id), belljar::quoted(run.program),
                belljar::quoted(run.workspace), run.result.reason == Reason::kExited ? "ended" : to_string(run.result.reason),
                format("exit code {}", run.result.exit_code), acts(total));
}

std::string counted_only(const ExecResult& result) {
  std::string text;
  if (result.violations_dropped > 0) text += format("\n{} more: there was no room for them\n", acts(result.violations_dropped));
  if (result.violations_hidden > 0)
    text += format("\n{} more: hidden by ignore_violations (they were refused all the same)\n", acts(result.violations_hidden));
  return text;
}

std::string json_with_permits(const runtime::KeptRun& run, const policy::PermitContext& context) {
  std::string permits;
  for (const Violation& violation : run.result.violations) {
    const policy::Permit permit = policy::permit_for(violation, context);
    permits +=
        format("{}{{\"sequence\":{},\"flag\":{},\"line\":{},\"step\":{},\"note\":{},\"risk\":{}}}", permits.empty() ? "" : ",",
               violation.sequence, policy::json_text(permit.flag), policy::json_text(permit.line), policy::json_text(permit.step),
               policy::json_text(permit.note), policy::json_text(permit.risk));
  }
  std::string text = runtime::to_json(run);
  text.pop_back();
  return text + ",\"permits\":[" + permits + "]}\n";
}

// An ordinary user's command is that user, so a grant lifts no mode and no owner.
bool modes_allow(const std::string& path, std::string_view operation) {
  struct stat status{};
  if (::geteuid() == 0 || ::stat(path.c_str(), &status) != 0) return true;  // as root it belongs to the path's owner
  if (operation == "chmod") return status.st_uid == ::geteuid();
  return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0 || errno != EACCES;
}

bool exists(const std::string& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

// Workspaces are kept by their canonical paths.
std::string canonical(const std::string& path) { return path.empty() ? real_path(".") : real_path_or_given(path); }

int explain(const ExplainFlags& flags) {
  const std::string home = own_variable("HOME");
  const policy::PermitContext context{home, own_variable("XDG_RUNTIME_DIR"), modes_allow, exists, default_state_dir()};
  const runtime::ViolationStore store(default_state_dir());
  if (flags.list) {
    const auto ids = store.list();
    if (!ids) return print_error(ids.error());
    std::string text;
    for (const std::string& id : *ids) {
      const auto run = store.load(id);
      text += run ? heading(*run) : format("run {}: cannot be read\n", id);
    }
    return print_result(text);
  }
  const auto run = flags.id == "last" ? store.load_last(canonical(flags.workspace)) : store.load(flags.id);
  if (!run) return print_error(run.error());
  if (flags.json) return print_result(json_with_permits(*run, context));
  if (flags.model) return print_result(to_model_text(run->result));
  std::string text = heading(*run);
  std::size_t number = 0;
  const std::vector<RefusalGroup> groups = group_alike(run->result.violations, context);
  for (const RefusalGroup& alike : groups) {
    if (!policy::is_intended(alike.first)) text += in_words(++number, alike);
  }
  return print_result(text + counted_only(run->result) + intended_in_words(groups));
}

}  // namespace

void add_explain(const OptionParser& app, int& exit_code) {
  const OptionParser sub = app.add_subcommand("explain", "What a run was refused, by which rule, and what would permit it");
  const auto flags = std::make_shared<ExplainFlags>();
  sub.add_option("ID", flags->id, "The run: the id that --json and --report tell, a start or end of it, or last (the default)");
  sub.add_option("--workspace", flags->workspace, "Of which `last` is the last run (default: the one you are in)").type_name("DIR");
  const Option json = sub.add_flag("--json", flags->json, "As one JSON object");
  const Option model = sub.add_flag("--model", flags->model, "As the block of text that a model is given").excludes(json);
  sub.add_flag("--list", flags->list, "The runs that are kept, oldest first").excludes(json).excludes(model);
  sub.callback([flags, &exit_code] { exit_code = explain(*flags); });
}

}  // namespace belljar::cli
