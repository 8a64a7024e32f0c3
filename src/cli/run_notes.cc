// What `run` says on stderr about a run that failed, when nothing else has said why.
//
// A sandbox changes what programs meet, and most programs report it badly: a host name that does not resolve,
// a file in /tmp that is not there, a cache that is empty. So at the end of a failed run its words are
// compared with what the policy kept from it. If one of them names something that is hidden, private or
// unreachable here, a note says so and what would change it.
//
// These are guesses, and a wrong one is worse than none. So a note needs two things: that the words name the
// place literally, and that the policy really holds it. What a violation already tells is not told again.
#include "cli/run_notes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/format.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "cli/named_hosts.h"
#include "policy/merge.h"
#include "policy/paths.h"
#include "policy/permit.h"
#include "policy/refusal.h"

namespace belljar::cli {

std::vector<std::string> notes_of_accepted(const EnforcementReport& report, const Policy& policy) {
  std::vector<const EnforcementClause*> weak;
  for (const EnforcementClause& clause : report) {
    const bool accepted = std::ranges::find(policy.accept, clause.clause) != policy.accept.end() ||
                          (policy.allow_root_uid && clause.clause == "identity");
    if (accepted && clause.enforced != Enforced::kFull) weak.push_back(&clause);
  }
  std::vector<std::string> notes;
  while (!weak.empty()) {
    const EnforcementClause& first = *weak.front();
    const std::size_t times = std::erase_if(weak, [&](const EnforcementClause* one) {
      return one->clause == first.clause && one->enforced == first.enforced && one->detail == first.detail;
    });
    notes.push_back(format("{} is {}{}, as accepted: {}", first.clause, to_string(first.enforced),
                           times == 1 ? "" : format(" for each of {} rules", times), first.detail));
  }
  return notes;
}

void warn_of_accepted(const EnforcementReport& report, const Policy& policy) {
  for (const std::string& note : notes_of_accepted(report, policy)) print_note("warning: " + escaped(note));
}

bool is_worth_a_note(std::string_view reason, std::string_view message) noexcept {
  return reason != "exited" && (reason != "signalled" || !message.starts_with("killed by "));
}

void tell_limits(const ExecResult& result, std::uint64_t output_dropped) {
  for (const std::string& limit : result.limits_hit) {
    // Whoever reads the output cannot tell that it was cut, whatever the program thinks of itself.
    if (limit == "output" && output_dropped > 0 && result.reason != Reason::kOutput)
      print_note(format("the limit `output` was reached: {} {} of output dropped", output_dropped,
                        output_dropped == 1 ? "byte" : "bytes"));
    else if (result.exit_code != 0 && result.message.empty()) print_note(format("the limit `{}` was reached", limit));
  }
}

namespace {

constexpr std::string_view kTemporary[] = {"/tmp", "/var/tmp"};

// Paths in `text` that are `folder` or lie below it, as a shell's words have them: no expansion, no quoting beyond a cut.
std::vector<std::string> paths_in(std::string_view text, std::string_view folder) {
  std::vector<std::string> paths;
  for (std::size_t at = text.find(folder); at != std::string_view::npos; at = text.find(folder, at + folder.size())) {
    const bool begins = at == 0 || std::string_view(" \t\n'\"=:(<>&|;`@").find(text[at - 1]) != std::string_view::npos;
    const std::string_view path = text.substr(at, text.find_first_of(" \t\n'\"):;|&<>`$*?[{", at + folder.size()) - at);
    if (begins && (path.size() == folder.size() || path[folder.size()] == '/')) paths.emplace_back(path);
  }
  return paths;
}

std::vector<std::string> temporary_paths(std::string_view text) {
  std::vector<std::string> paths;
  for (const std::string_view folder : kTemporary) {
    for (std::string& path : paths_in(text, folder)) {
      if (path.size() > folder.size() + 1) paths.push_back(std::move(path));
    }
  }
  return paths;
}

bool exists(const std::string& path) { return ::faccessat(AT_FDCWD, path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0; }
// To the caller, who needs no rule for what the machine's own modes refuse.
bool is_open(const std::string& path) { return ::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) == 0; }

// As a shell's words may have it: whole, below the home, below the directory that the command starts in.
std::vector<std::string> spellings_of(const std::string& path, const std::string& home, const std::string& cwd) {
  std::vector<std::string> spellings = {path};
  const auto below = [&](const std::string& folder, std::initializer_list<const char*> starts) {
    if (folder.empty() || folder == "/" || path == folder || !policy::is_within(path, folder)) return;
    for (const char* start : starts) spellings.push_back(start + path.substr(folder.size() + 1));
  };
  below(home, {"~/", "$HOME/", "${HOME}/"});
  below(cwd, {"", "./"});
  return spellings;
}

// The first of the words that names `path` or something below it that is hidden with it, as it stands there.
std::string named_in(const std::vector<std::string>& words, const std::vector<std::string>& spellings, const std::string& path,
                     const Filesystem& complete) {
  for (const std::string& word : words) {
    for (const std::string& spelling : spellings) {
      for (std::string& found : paths_in(word, spelling)) {
        const FsEntry* rule = find_rule(complete, path + found.substr(spelling.size()));
        if (rule != nullptr && rule->access == Access::kNone) return std::move(found);
      }
    }
  }
  return {};
}

bool tells_of(const ExecResult& result, const std::string& path) {
  return std::ranges::any_of(result.violations, [&](const Violation& one) { return policy::is_within(one.target, path); });
}

// Something that the policy says of more than the whole directory shows it.
bool is_shown(const Filesystem& complete, std::string_view path) {
  const FsEntry* rule = find_rule(complete, path);
  return rule != nullptr && rule->path != "/" && std::ranges::find(kTemporary, rule->path) == std::end(kTemporary);
}

std::string_view why_unreachable(std::string_view reason) {
  if (reason == "dns") return "its name does not resolve on this machine";
  if (reason == "dial") return "nothing answers there, or there is no way to it";
  if (reason == "upstream") return "the upstream proxy does not bring it there";
  if (reason == "tls") return "TLS with it failed";
  if (reason == "server") return "it does not answer as HTTP asks";
  return {};
}

bool has_clause(const EnforcementReport& report, std::string_view clause) {
  return std::ranges::find(report, clause, &EnforcementClause::clause) != report.end();
}

}  // namespace

std::string note_of_proxy_variable() {
  for (const char* name : {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"}) {
    if (own_variable(name).empty()) continue;
    return format(
        "{} is set and not used: the proxy of a sandbox connects to the allowed hosts itself; to leave by another one, write it as "
        "network.upstream_proxy in a policy, or --upstream-proxy",
        name);
  }
  return {};
}

namespace {

void tell_proxy_variable(const EnforcementReport& report) {
  if (!has_clause(report, "network.domains") || has_clause(report, "network.upstream_proxy")) return;
  if (const std::string note = note_of_proxy_variable(); !note.empty()) print_note(note);
}

// Words (program and arguments, or shell text) that name something of the host's /tmp or /var/tmp, in whose place the sandbox has
// directories of its own.
void tell_private_tmp(const ExecResult& result, const std::vector<std::string>& words, const Filesystem& complete,
                      const std::string& workspace) {
  const bool private_tmp = std::ranges::any_of(result.enforcement, [](const EnforcementClause& clause) {
    return clause.clause == "filesystem.tmp" && clause.asked.starts_with("private");
  });
  if (!private_tmp) return;
  std::set<std::string> told;
  for (const std::string& word : words) {
    for (const std::string& path : temporary_paths(word)) {
      if (policy::is_within(path, workspace) || is_shown(complete, path) || !exists(path) || !told.insert(path).second) continue;
      print_note(format("{} is not there inside: the sandbox has a {} of its own; --read {} shows it", quoted(path),
                        path.starts_with("/var") ? "/var/tmp" : "/tmp", escaped(path)));
    }
  }
}

// And those that name something that the policy hides and the host has, where no violation tells of it (of what no mask holds, of
// other backends).
void tell_hidden(const ExecResult& result, const std::vector<std::string>& words, const Filesystem& complete,
                 const policy::MergeContext& context, const std::string& cwd) {
  std::set<std::string> told;
  for (const FsEntry& rule : complete.entries) {
    if (rule.glob || rule.access != Access::kNone || rule.path == "/") continue;
    const std::string named = named_in(words, spellings_of(rule.path, context.home, cwd), rule.path, complete);
    if (named.empty() || !is_open(rule.path) || tells_of(result, rule.path) || !told.insert(named).second) continue;
    const Violation read{.operation = "read",
                         .target = rule.path,
                         .rule = std::string(policy::entry_key(rule)),
                         .origin = rule.origin,
                         .errnum = EACCES,
                         .allowed = std::string(policy::kHiddenByRule)};
    const policy::Permit permit = policy::permit_for(read, {context.home, context.runtime_dir});
    const std::string next = !permit.flag.empty()   ? format("; {} shows it", permit.flag)
                             : !permit.step.empty() ? format("; to see it, {}", permit.step)
                                                    : "";
    print_note(format("{} is hidden inside ({}){}", quoted(named), escaped(to_string(rule.origin)), next));
  }
}

// A name that is looked up is told to nobody.
void tell_no_network(const ExecResult& result, const std::vector<std::string>& words, const Policy& policy) {
  const bool never_began = !result.message.empty() && (result.exit_code == 126 || result.exit_code == 127);
  if (never_began || policy.network.mode != NetMode::kNone) return;
  for (const NamedHost& host : named_hosts(words))
    print_note(format("{} is out of reach: the sandbox has no network; --net proxy --allow-domain {} opens it{}", quoted(host.name),
                      escaped(host.name), host.by_tcp ? "" : ", for TCP alone"));
}

// Where mounts alone refuse, nobody is told.
void tell_read_only(const ExecResult& result, const Policy& policy, const Filesystem& complete, const std::string& workspace) {
  const FsEntry* rule = find_rule(complete, workspace);
  if (!result.message.empty()) return;  // it never began, or was ended
  if (policy.mode != Mode::kReadOnly || (rule != nullptr && rule->access == Access::kWrite)) return;
  const bool told = std::ranges::any_of(result.violations, [](const Violation& one) { return one.errnum == EROFS; });
  if (!told)
    print_note(
        format("the workspace is read-only (mode read-only); --write {} lets it be written to", policy::shell_word(workspace)));
}

void tell_unreachable(const ExecResult& result, bool told_all) {
  std::set<std::string> told;
  for (const EgressRecord& record : result.egress) {
    const std::string_view why = why_unreachable(record.reason);
    const std::string place = format("{}:{}", record.host, record.port);
    if (why.empty() || !told.insert(place).second) continue;
    print_note(format("{} is allowed and was not reached: {}", quoted(place), why));
  }
  if (!told.empty() && !told_all) tell_proxy_variable(result.enforcement);
}

}  // namespace

void tell_why(const ExecResult& result, const std::vector<std::string>& words, const LoadedPolicy& loaded, const std::string& cwd,
              bool told_all) {
  const Filesystem& complete = loaded.effective.complete;
  const Policy& policy = loaded.effective.policy;
  const std::string& workspace = loaded.context.workspace;
  tell_private_tmp(result, words, complete, workspace);
  tell_hidden(result, words, complete, loaded.context, cwd.empty() ? workspace : cwd);
  tell_no_network(result, words, policy);
  tell_read_only(result, policy, complete, workspace);
  tell_unreachable(result, told_all);
}

std::string name_refused(const ExecResult& result) {
  constexpr std::size_t kLongest = 200;
  const Violation* named = nullptr;
  bool alike = result.violations_dropped == 0;
  for (const Violation& each : result.violations) {
    if (each.operation == "limit" || policy::is_intended(each)) continue;
    // Who makes a call of another ABI is killed: what came before it did not end the run.
    if (each.operation == "system-call" && each.errnum == 0)
      return format(" ({} {}, which kills)", each.operation, quoted(each.target));
    if (named == nullptr) named = &each;
    alike = alike && each.operation == named->operation && each.target == named->target;
  }
  if (named == nullptr || !alike || named->target.empty() || named->target.size() > kLongest) return "";
  return format(" ({} {})", named->operation, quoted(named->target));
}

void tell_enforcement(const EnforcementReport& report) {
  for (const EnforcementClause& clause : report)
    print_note(format("{}: {} ({}{}{}){}{}", clause.clause, to_string(clause.enforced), clause.asked,
                      clause.mechanism.empty() ? "" : "; ", clause.mechanism, clause.detail.empty() ? "" : ": ",
                      escaped(clause.detail)));
  tell_proxy_variable(report);
}

}  // namespace belljar::cli
