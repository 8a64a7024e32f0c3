// The records that `run --audit FILE` writes, before the start and when all is over.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "belljar/audit.h"
#include "belljar/command.h"
#include "belljar/exec_result.h"
#include "belljar/redact.h"
#include "cli/command_line.h"
#include "cli/load.h"
#include "cli/policy_flags.h"

namespace belljar::cli {

struct AuditFlags {
  std::string file;    // --audit; empty: no trail
  std::string rotate;  // --audit-rotate
};

void add_audit_options(const OptionParser& command, AuditFlags& flags);

// The trail, out of the command's sight and reach; none without --audit. Errors: as AuditTrail::open; kInvalidArgument, a place
// that the command could write to.
Result<std::optional<AuditTrail>> open_trail(const AuditFlags& flags, LoadedPolicy* loaded);

class RunAudit {
 public:
  // Without --audit: does nothing, ever. Errors: as open_trail.
  static Result<RunAudit> open(const AuditFlags& flags, const PolicyFlags& given, LoadedPolicy* loaded);

  // "run.start", before anything runs; a trail that has no room refuses the run. Errors: as AuditTrail::append.
  Result<void> start(const Command& command, const LoadedPolicy& loaded);
  // "violation" and "egress" for each, then "run.end".
  Result<void> end(const ExecResult& result);
  // "run.refused": it could not be started.
  Result<void> refused(const std::vector<std::string>& argv, const Error& error);

 private:
  std::optional<AuditTrail> trail_;
  std::int64_t run_ = -1;  // number of its "run.start"
  Redactor secrets_;       // the values of the caller's variables, of the policy's and of --env
};

}  // namespace belljar::cli
