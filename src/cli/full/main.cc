// belljar-full: what `belljar` hands on, so that an ordinary run pays for none of it. Its first word names the part
// (cli/components.h).
#include "belljar/error.h"
#include "cli/commands.h"
#include "cli/components.h"
#include "cli/errors.h"
#include "cli/full/components.h"
#include "cli/sandbox/commands.h"
#include "cli/tls_program.h"
#include "egress/tls/interceptor.h"

namespace belljar::cli {

egress::MakeInterceptor interceptor_of_this_program() noexcept { return egress::tls::make_interceptor; }

}  // namespace belljar::cli

namespace {

int serve(belljar::cli::Part part, int argc, char** argv) {
  using belljar::cli::Part;
  switch (part) {
    case Part::kTls:
      return belljar::cli::serve_command_line(argc, argv);
    case Part::kKeep:
      return belljar::cli::keep();
    case Part::kContainer:
      return belljar::cli::run_in_container(argc, argv);
    case Part::kE2b:
      return belljar::cli::run_on_e2b(argc, argv);
    case Part::kAliyun:
      return belljar::cli::run_on_aliyun(argc, argv);
    case Part::kVolcengine:
      return belljar::cli::run_on_volcengine(argc, argv);
    case Part::kMcp:
      return belljar::cli::serve_mcp(argc, argv);
    case Part::kAgent:
      return belljar::cli::work_as_agent(argc, argv);
    case Part::kAudit:
      return belljar::cli::read_audit_trail(argc, argv);
    case Part::kGuard:
      return belljar::cli::judge_and_scan(argc, argv);
    case Part::kBench:
      break;  // another program's
  }
  return belljar::cli::print_error(belljar::Error(belljar::Code::kInvalidArgument, "belljar-full is started by `belljar`")
                                       .next("type `belljar`, which finds this program beside itself"));
}

}  // namespace

int main(int argc, char** argv) {
  const auto part = belljar::cli::find_part(argc > 1 ? argv[1] : "");
  if (!part) return serve(belljar::cli::Part::kBench, argc, argv);
  argv[1] = argv[0];  // what follows is as if the part were the program
  return serve(*part, argc - 1, argv + 1);
}
