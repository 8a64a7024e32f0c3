// belljar::run: what an embedder calls. Puts together what the command line puts together from files and flags.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/find.h"
#include "backend/paths/host.h"
#include "base/format.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/run.h"
#include "belljar/state_dir.h"
#include "belljar/txn.h"
#include "front/stdio.h"
#include "policy/check_command.h"
#include "policy/choice.h"
#include "runtime/embed.h"
#include "runtime/run.h"

namespace belljar {
namespace {

// The first backend that starts. Those that are no plan for our launcher (containers, clouds) have no place here.
Result<ExecResult> run_first(const runtime::Embedded& embedded, const Command& command, runtime::RunSettings& settings) {
  policy::Choice choice = BELLJAR_TRY(policy::Choice::of(embedded.policy));
  settings.launched = choice.settled();
  const backend::RealHost host;
  return choice.first([&](const std::string& name) -> Result<ExecResult> {
    const auto backend = BELLJAR_TRY(backend::find_backend(name, host));
    auto ran = BELLJAR_TRY(runtime::run(*backend, embedded.policy, command, embedded.place, embedded.caller_env, settings));
    ran.result.backend = name;
    ran.result.tried = choice.tried();
    return std::move(ran.result);
  });
}

// A NUL byte ends a path for the kernel: another directory than the one that was named.
Result<void> check_names(const RunOptions& options) {
  const std::pair<std::string_view, const std::string*> names[] = {
      {"workspace", &options.workspace}, {"transaction", &options.transaction}, {"state_dir", &options.state_dir}};
  for (const auto& [name, value] : names) {
    if (value->find('\0') != std::string::npos)
      return Error(Code::kInvalidArgument, format("cannot run with the `{}` {}", name, quoted(*value)))
          .reason("it holds a NUL byte");
  }
  return {};
}

}  // namespace

Result<ExecResult> run(const Policy& given, const Command& command, const RunOptions& options) {
  BELLJAR_CHECK(policy::check_command(command));
  BELLJAR_CHECK(check_names(options));
  const runtime::Embedded embedded = BELLJAR_TRY(runtime::embed(given, options.workspace, options.caller_env));
  runtime::RunSettings settings;
  settings.cancel_fd = options.cancel_fd;
  settings.complete = embedded.rules.get();
  settings.interceptor = runtime::library_interceptor();
  if (!options.transaction.empty())
    settings.transaction = txn::Place{embedded.place.workspace, options.state_dir.empty() ? default_state_dir() : options.state_dir,
                                      options.transaction};
  settings.stdio = {.input = options.input_fd < 0 ? front::Input::kNull : front::Input::kInherit,
                    .output = front::OutputTo::kCapture,
                    .pty = front::Pty::kNo,
                    .cap = options.output_bytes.count,
                    .host = {options.input_fd, -1, -1}};
  return run_first(embedded, command, settings);
}

}  // namespace belljar
