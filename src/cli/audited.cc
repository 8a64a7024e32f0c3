// What `run` writes into the audit trail: that it starts, each refusal, each connection, and the end.
//
// "run.start" is written before anything runs, after room for the end was reserved (AuditTrail::reserve): a
// trail that could not take the end of a run must not have its beginning. If either is impossible, the run is
// refused. The records of one run carry the number of its start, since runs that share a trail write between
// each other.
//
// Values of variables that look like secrets never enter the trail. That includes variables on the command
// line of a run whose policy was refused, so they are taken from the flags as well as from the policy.
//
// The trail is kept away from the command: out of its sight, and in no place that it can write to. A record
// that the recorded can change would be worth nothing.
#include "cli/audited.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/format.h"
#include "base/real_path.h"
#include "base/rfc3339.h"
#include "belljar/audit.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/redact.h"
#include "belljar/result.h"
#include "belljar/units.h"
#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "cli/own_files.h"
#include "cli/secrets.h"
#include "policy/paths.h"

namespace belljar::cli {

namespace {

// The trail and its full files, and as many as may become full while the sandbox lives.
std::vector<OwnFile> files_of(const AuditFlags& flags) {
  constexpr unsigned kFull = 256;
  std::vector<std::string> names = {""};
  unsigned last = 0;
  const std::size_t slash = flags.file.rfind('/');
  const std::string name = flags.file.substr(slash == std::string::npos ? 0 : slash + 1) + ".";
  std::error_code none;
  for (const auto& entry :
       std::filesystem::directory_iterator(slash == std::string::npos ? "." : flags.file.substr(0, slash + 1), none)) {
    const std::string other = entry.path().filename();
    unsigned number = 0;
    const char* const end = other.data() + other.size();
    if (!other.starts_with(name) || std::from_chars(other.data() + name.size(), end, number).ptr != end) continue;
    names.push_back(other.substr(name.size() - 1));
    last = std::max(last, number);
  }
  if (!flags.rotate.empty()) {
    names.emplace_back(".next");
    for (unsigned number = last + 1; number <= last + kFull; ++number) names.push_back(format(".{:06}", number));
  }
  std::vector<OwnFile> files;
  for (const std::string& more : names)
    files.push_back({.doing = "write to the audit trail", .option = "--audit", .path = flags.file + more});
  return files;
}

// The command must neither write the trail nor read what other runs did: refused, or hidden from it.
Result<void> keep_away(const AuditFlags& flags, LoadedPolicy& loaded) {
  const Policy& policy = loaded.effective.policy;
  // These modes keep the audit and have no file rules.
  if (policy.mode == Mode::kDangerFullAccess || policy.mode == Mode::kExternalSandbox) {
    print_note(format("warning: with mode {} nothing keeps the command from changing the audit trail", to_string(policy.mode)));
    return {};
  }
  return keep_own_files(files_of(flags), loaded);
}

// The canonical path of a file that need not exist, in a directory that must.
Result<std::string> place_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : file.substr(0, slash);
  const std::string real = real_path(directory);
  if (real.empty())
    return Error(Code::kNotFound, format("cannot write to the audit trail {}", belljar::quoted(file)))
        .sys(errno, "realpath")
        .next("its directory must exist");
  const std::string name = slash == std::string::npos ? file : file.substr(slash + 1);
  return policy::normal(real + "/" + name);
}

AuditFields& add_result(AuditFields& fields, const ExecResult& result) {
  fields.number("exit_code", result.exit_code).text("reason", to_string(result.reason));
  if (result.signal) fields.number("signal", *result.signal);
  fields.texts("limits_hit", result.limits_hit)
      .number("duration_us", result.duration.count())
      .number("cpu_user_us", result.usage.cpu_user.count())
      .number("cpu_system_us", result.usage.cpu_system.count());
  if (result.usage.peak_memory) fields.number("peak_memory_bytes", static_cast<std::int64_t>(result.usage.peak_memory->count));
  const auto count = [&](const char* name, std::uint64_t value) { fields.number(name, static_cast<std::int64_t>(value)); };
  count("violations", result.violations.size());
  count("violations_dropped", result.violations_dropped);
  count("violations_hidden", result.violations_hidden);
  count("egress", result.egress.size());
  count("egress_dropped", result.egress_dropped);
  if (!result.id.empty()) fields.text("id", result.id);
  return fields;
}

AuditFields fields_of(const Violation& violation, const Redactor& redactor) {
  return AuditFields()
      .text("acted", rfc3339(violation.time))
      .text("operation", violation.operation)
      .text("target", redactor(violation.target))
      .text("rule", violation.rule)
      .text("origin", to_string(violation.origin))
      .text("program", violation.program)
      .number("pid", violation.pid)
      .number("errno", violation.errnum)
      .number("count", static_cast<std::int64_t>(violation.count));
}

AuditFields fields_of(const EgressRecord& record, const Redactor& redactor) {
  return AuditFields()
      .text("ended", rfc3339(record.time))
      .text("protocol", record.protocol)
      .text("method", record.method)
      .text("host", redactor(record.host))
      .number("port", record.port)
      .text("address", record.address)
      .boolean("allowed", record.allowed)
      .text("why", record.reason)
      .text("rule", record.rule)
      .number("bytes_sent", static_cast<std::int64_t>(record.bytes_sent))
      .number("bytes_received", static_cast<std::int64_t>(record.bytes_received));
}

}  // namespace

void add_audit_options(const OptionParser& command, AuditFlags& flags) {
  command.add_option("--audit", flags.file, "Append what is run, refused and what came of it to the audit trail FILE")
      .not_empty()
      .type_name("FILE");
  command.add_option("--audit-rotate", flags.rotate, "Begin a new file of the trail when it has reached this size (default: never)")
      .not_empty()
      .type_name("SIZE");
}

Result<std::optional<AuditTrail>> open_trail(const AuditFlags& flags, LoadedPolicy* loaded) {
  if (flags.file.empty() && !flags.rotate.empty())
    return Error(Code::kInvalidArgument, "--audit-rotate is for an audit trail, and there is none").next("add --audit FILE");
  if (flags.file.empty()) return std::optional<AuditTrail>();
  AuditOptions options;
  if (!flags.rotate.empty()) options.rotate_at = BELLJAR_TRY(parse_bytes(flags.rotate));
  const std::string file = BELLJAR_TRY(place_of(flags.file));
  if (loaded != nullptr) BELLJAR_CHECK(keep_away(flags, *loaded));
  return std::optional<AuditTrail>(BELLJAR_TRY(AuditTrail::open(file, std::move(options))));
}

Result<RunAudit> RunAudit::open(const AuditFlags& flags, const PolicyFlags& given, LoadedPolicy* loaded) {
  RunAudit audit;
  audit.trail_ = BELLJAR_TRY(open_trail(flags, loaded));
  if (!audit.trail_) return audit;
  // The flags besides: there may be no policy, because one of its files is wrong.
  audit.secrets_ = secrets_of(loaded != nullptr ? loaded->effective.policy : Policy(), by_name(own_environment()));
  audit.secrets_.add_environment(variables_set(given));
  return audit;
}

Result<void> RunAudit::start(const Command& command, const LoadedPolicy& loaded) {
  if (!trail_) return {};
  BELLJAR_CHECK(trail_->reserve());
  const Policy& policy = loaded.effective.policy;
  run_ = static_cast<std::int64_t>(BELLJAR_TRY(trail_->append("run.start", AuditFields()
                                                                               .texts("argv", secrets_.arguments(command.argv))
                                                                               .text("workspace", loaded.context.workspace)
                                                                               .text("cwd", command.cwd)
                                                                               .text("profile", policy.profile)
                                                                               .text("mode", to_string(policy.mode))
                                                                               .text("network", to_string(policy.network.mode))
                                                                               .text("backend", policy.backend)
                                                                               .number("uid", ::geteuid()))));
  return {};
}

Result<void> RunAudit::end(const ExecResult& result) {
  if (!trail_) return {};
  const auto write = [&](std::string_view kind, AuditFields fields) { return trail_->append(kind, fields.number("run", run_)); };
  for (const Violation& violation : result.violations) BELLJAR_TRY(write("violation", fields_of(violation, secrets_)));
  for (const EgressRecord& record : result.egress) BELLJAR_TRY(write("egress", fields_of(record, secrets_)));
  AuditFields fields;
  BELLJAR_TRY(write("run.end", add_result(fields, result)));
  return {};
}

Result<void> RunAudit::refused(const std::vector<std::string>& argv, const Error& error) {
  if (!trail_) return {};
  AuditFields fields;
  fields.texts("argv", secrets_.arguments(argv)).text("error", secrets_(error.line()));
  if (run_ >= 0) fields.number("run", run_);
  BELLJAR_TRY(trail_->append("run.refused", fields));
  return {};
}

}  // namespace belljar::cli
