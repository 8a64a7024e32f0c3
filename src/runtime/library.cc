// belljar::run: what an embedder calls. Puts together what the command line puts together from files and flags.
#include "backend/find.h"
#include "backend/native/host.h"
#include "belljar/run.h"
#include "belljar/state_dir.h"
#include "runtime/embed.h"
#include "runtime/run.h"
#include "runtime/stdio.h"

namespace belljar {

Result<ExecResult> run(const Policy& given, const Command& command, const RunOptions& options) {
  const runtime::Embedded embedded = BELLJAR_TRY(runtime::embed(given, options.workspace, options.caller_env));
  runtime::Session session;
  session.cancel_fd = options.cancel_fd;
  session.interceptor = runtime::library_interceptor();
  if (!options.transaction.empty())
    session.transaction = txn::Place{embedded.place.workspace, options.state_dir.empty() ? default_state_dir() : options.state_dir,
                                     options.transaction};
  session.stdio = {.input = options.input_fd < 0 ? runtime::Input::kNull : runtime::Input::kInherit,
                   .output = runtime::OutputTo::kCapture,
                   .pty = runtime::Pty::kNo,
                   .cap = options.output_bytes.count,
                   .host = {options.input_fd, -1, -1}};
  const backend::RealHost host;
  const auto backend = BELLJAR_TRY(backend::find_backend(embedded.policy.backend, host));
  runtime::Ran ran = BELLJAR_TRY(runtime::run(*backend, embedded.policy, command, embedded.place, embedded.caller_env, session));
  return std::move(ran.result);
}

}  // namespace belljar
