// belljar doctor: what this machine can enforce, found out by trying, and what to do about the rest.
//
// Each kernel feature is probed and not derived from a version, since distributions patch kernels and forbid
// features by settings. Then the native and the landlock backend plan a run in each mode without starting it,
// and the enforcement reports of those plans are printed: so doctor tells what a run would hold, by the code
// that a run uses.
//
// The first line answers the question that most people have. The last lines are what to type, since that is
// what stands above the prompt at the end. The exit code tells scripts the same: 0 where the native backend
// starts in its default mode.
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/landlock/landlock.h"
#include "backend/native/native.h"
#include "backend/paths/host.h"
#include "backend/probe.h"
#include "base/format.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/units.h"
#include "cli/backends.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "cli/own_program.h"
#include "cli/policy_flags.h"
#include "cli/run_notes.h"
#include "policy/merge.h"
#include "runtime/limits.h"

namespace belljar::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ModeReport {
  std::string mode;
  std::string backend;
  std::string refusal;  // why it cannot start here; empty when it can
  EnforcementReport report;
};

// What every limit would be held with here: asked for at once, with values that cost nothing.
Limits all_limits() {
  Limits limits;
  limits.memory = Bytes{1ULL << 30};
  limits.pids = 256;
  limits.cpus = 1.0;
  limits.open_files = 1024;
  limits.file_size = Bytes{1ULL << 30};
  return limits;
}

// Plans (and, for the native tier, nothing is started): the report is of the plan this machine gets.
ModeReport report_mode(backend::Backend& backend, Policy policy, Mode mode, const policy::MergeContext& context) {
  ModeReport result{std::string(to_string(mode)), std::string(backend.name()), "", {}};
  policy.mode = mode;
  policy.limits = all_limits();
  backend::Workplace place;
  place.workspace = place.cwd = context.workspace;
  place.home = context.home;
  auto prepared = backend.prepare(policy, place);
  if (!prepared) {
    result.refusal = prepared.error().line();
    return result;
  }
  for (const std::string& path : prepared->remove_after) ::rmdir(path.c_str());
  result.report = std::move(prepared->report);
  const auto limits = runtime::LimitSet::create(
      policy.limits,
      {.pid_namespace = prepared->pid_namespace, .user_namespace = prepared->user_namespace, .workspace = context.workspace});
  if (limits) result.report.insert(result.report.end(), limits->clauses().begin(), limits->clauses().end());
  return result;
}

struct Findings {
  utsname machine{};
  uid_t uid = 0;
  std::vector<backend::Probe> probes;
  std::optional<backend::Advice> advice;
  std::vector<ModeReport> modes;
  std::vector<BackendState> backends;
  std::string proxy_note;
};

// What keeps the native backend from starting; empty: nothing.
std::string find_obstacle(const std::vector<backend::Probe>& probes) {
  for (const backend::Probe& probe : probes) {
    if (!probe.works && probe.loses.find("cannot start") != std::string::npos) return format("{}: {}", probe.name, probe.detail);
  }
  return {};
}

Result<Findings> examine(const PolicyFlags& flags) {
  Findings findings;
  ::uname(&findings.machine);
  findings.uid = ::geteuid();
  const backend::RealHost host;
  findings.probes = backend::probe_machine(host);
  if (!findings.probes.front().works) findings.advice = backend::advise_userns(backend::read_userns_settings(), 0, own_path());
  const LoadedPolicy loaded = BELLJAR_TRY(load_policy(flags));
  backend::NativeBackend native(host);
  backend::LandlockBackend landlock(host);
  const Policy& policy = loaded.effective.policy;
  if (policy.network.upstream_proxy.empty()) findings.proxy_note = note_of_proxy_variable();
  const std::string obstacle = find_obstacle(findings.probes);
  for (const Mode mode : {Mode::kWorkspaceWrite, Mode::kReadOnly, Mode::kDangerFullAccess, Mode::kExternalSandbox}) {
    ModeReport report = report_mode(native, policy, mode, loaded.context);
    // A plan starts nothing, so it does not know. external-sandbox needs no namespace, danger-full-access none as root.
    const bool needs_it = mode != Mode::kExternalSandbox && (mode != Mode::kDangerFullAccess || findings.uid != 0);
    if (needs_it && report.refusal.empty()) report.refusal = obstacle;
    findings.modes.push_back(std::move(report));
  }
  findings.modes.push_back(report_mode(landlock, policy, Mode::kWorkspaceWrite, loaded.context));
  findings.backends = find_backends({findings.modes.front().refusal, findings.modes.back().refusal});
  return findings;
}

// Why no sandbox starts here by the default way; empty: one does.
std::string why_not(const Findings& findings) {
  if (findings.advice && !findings.advice->cause.empty()) return findings.advice->cause;
  const std::string obstacle = find_obstacle(findings.probes);
  return obstacle.empty() ? findings.modes.front().refusal : obstacle;
}

// What other machines hold in full, and this one does not.
std::vector<const EnforcementClause*> weak_limits(const Findings& findings) {
  std::vector<const EnforcementClause*> weak;
  for (const EnforcementClause& clause : findings.modes.front().report) {
    if (clause.enforced != Enforced::kFull && clause.clause.starts_with("limits.")) weak.push_back(&clause);
  }
  return weak;
}

// What somebody wants to know first.
std::string verdict(const Findings& findings) {
  constexpr std::string_view kAsked = "This machine can run sandboxes:";
  if (const std::string why = why_not(findings); !why.empty()) return format("{} no: {}\n", kAsked, escaped(why));
  std::string limits;
  for (const backend::Probe& probe : findings.probes) {
    if (!probe.works) limits += format("{}without {}", limits.empty() ? "" : ", ", probe.name);
  }
  for (const EnforcementClause* clause : weak_limits(findings))
    limits += format("{}{} {}", limits.empty() ? "" : ", ", clause->clause, to_string(clause->enforced));
  return limits.empty() ? format("{} yes\n", kAsked) : format("{} yes, with limits: {}\n", kAsked, limits);
}

// What to type, last: there it stands above the prompt.
std::string next_steps(const Findings& findings) {
  std::string text = "\nWhat to do next:\n";
  const auto row = [&](std::string_view command, std::string_view what) { text += format("  {:<42} {}\n", command, what); };
  if (!why_not(findings).empty()) {
    if (findings.advice) {
      for (const std::string& step : findings.advice->steps) text += format("  {}\n", step);
    }
    if (findings.modes.back().refusal.empty())
      row("belljar run --backend landlock -- PROGRAM", "needs no namespaces, and holds less");
    row("belljar doctor", "again, when that is done");
    return text;
  }
  const auto weak = weak_limits(findings);
  for (const EnforcementClause* clause : weak) {
    if (clause->enforced == Enforced::kNone)
      row(format("belljar run --accept {} ...", clause->clause), "runs without it, where a policy asks for it");
  }
  if (std::ranges::any_of(weak, [](const auto* clause) { return clause->detail.find("Delegate=yes") != std::string::npos; }))
    row("systemd-run --user --scope -p Delegate=yes belljar run ...", "has a control group, which holds them in full");
  row("belljar run -- PROGRAM", "your agent or any program, in a sandbox");
  row("belljar", "what to try in this directory");
  return text;
}

void print_text(const Findings& findings) {
  std::string text = format("belljar on {} {} ({}), uid {}\n{}\nThis machine, by trying:\n", findings.machine.sysname,
                            findings.machine.release, findings.machine.machine, findings.uid, verdict(findings));
  if (std::string_view(findings.machine.machine) != "x86_64") text += "  note: x86-64 is the tested architecture\n";
  for (const backend::Probe& probe : findings.probes) {
    text += format("  {:<22} {:<4} {}\n", probe.name, probe.works ? "yes" : "no", escaped(probe.detail));
    if (!probe.loses.empty()) text += format("  {:<22}      without it: {}\n", "", probe.loses);
  }
  for (const ModeReport& mode : findings.modes) {
    text += format("\n{} ({} backend)", mode.mode, mode.backend);
    if (!mode.refusal.empty()) {
      text += format(": cannot start here\n  {}\n", mode.refusal);
      continue;
    }
    text += "\n";
    for (const EnforcementClause& clause : mode.report) {
      text += format("  {:<24} {:<8} {}\n", clause.clause, to_string(clause.enforced),
                     clause.mechanism.empty() ? clause.detail : clause.mechanism);
      if (!clause.mechanism.empty() && !clause.detail.empty()) text += format("  {:<24}          {}\n", "", clause.detail);
    }
  }
  text += backends_text(findings.backends);
  if (!findings.proxy_note.empty()) text += format("\nWith --net proxy: {}\n", findings.proxy_note);
  text += next_steps(findings);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void print_json(const Findings& findings) {
  Json root;
  root["kernel"] = findings.machine.release;
  root["machine"] = findings.machine.machine;
  root["uid"] = findings.uid;
  for (const backend::Probe& probe : findings.probes)
    root["probes"].push_back({{"name", probe.name}, {"works", probe.works}, {"detail", probe.detail}, {"loses", probe.loses}});
  if (findings.advice) root["advice"] = {{"cause", findings.advice->cause}, {"steps", findings.advice->steps}};
  for (const ModeReport& mode : findings.modes) {
    Json entry = {{"mode", mode.mode},
                  {"backend", mode.backend},
                  {"starts", mode.refusal.empty()},
                  {"refusal", mode.refusal},
                  {"enforcement", Json::array()}};
    for (const EnforcementClause& clause : mode.report) {
      entry["enforcement"].push_back({{"clause", clause.clause},
                                      {"asked", clause.asked},
                                      {"mechanism", clause.mechanism},
                                      {"enforced", to_string(clause.enforced)},
                                      {"detail", clause.detail}});
    }
    root["modes"].push_back(std::move(entry));
  }
  root["backends"] = backends_json(findings.backends);
  if (!findings.proxy_note.empty()) root["proxy_note"] = findings.proxy_note;
  const std::string text = root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

struct DoctorFlags {
  PolicyFlags policy;
  bool json = false;
};

// 0: the native backend starts here in its default mode. 125: it does not.
int doctor(const DoctorFlags& flags) {
  const auto findings = examine(flags.policy);
  if (!findings) return print_error(findings.error());
  if (flags.json) print_json(*findings);
  else print_text(*findings);
  if (!find_obstacle(findings->probes).empty()) return 125;
  return findings->modes.front().refusal.empty() ? 0 : 125;
}

}  // namespace

void add_doctor(const OptionParser& app, int& exit_code) {
  const OptionParser command = app.add_subcommand("doctor", "What this machine can enforce, and what to do about the rest");
  const auto flags = std::make_shared<DoctorFlags>();
  command.add_flag("--json", flags->json, "As one JSON object");
  command.before_parse([flags, command] {
    add_policy_options(command, flags->policy);
    add_cwd_option(command, flags->policy);
  });
  command.callback([flags, &exit_code] { exit_code = doctor(*flags); });
}

}  // namespace belljar::cli
