// belljar-full: what `belljar` hands on, so that an ordinary run pays for none of it. Its first word names the component
// (cli/components.h).
#include "belljar/error.h"
#include "cli/commands.h"
#include "cli/components.h"
#include "cli/errors.h"
#include "cli/full/components.h"
#include "cli/sandbox/commands.h"
#include "cli/tls_program.h"
#include "egress/tls/interceptor.h"
#include "guard/rules.h"

namespace belljar::cli {

egress::MakeInterceptor interceptor_of_this_program() noexcept { return egress::tls::make_interceptor; }

CheckCommands command_check_of_this_program() noexcept {
  return [](const policy::Layer& layer) -> Result<void> {
    BELLJAR_TRY(guard::rules_of(layer));
    return {};
  };
}

namespace {

int serve(Component component, int argc, char** argv) {
  switch (component) {
    case Component::kTls:
      return serve_command_line(argc, argv);
    case Component::kKeep:
      return run_keeper();
    case Component::kContainer:
      return run_in_container(argc, argv);
    case Component::kE2b:
      return run_on_e2b(argc, argv);
    case Component::kAliyun:
      return run_on_aliyun(argc, argv);
    case Component::kVolcengine:
      return run_on_volcengine(argc, argv);
    case Component::kMcp:
      return serve_mcp(argc, argv);
    case Component::kAgent:
      return work_as_agent(argc, argv);
    case Component::kAudit:
      return read_audit_trail(argc, argv);
    case Component::kGuard:
      return judge_and_scan(argc, argv);
    case Component::kBench:
      break;  // another program's
  }
  return print_error(Error(Code::kInvalidArgument, "belljar-full is started by `belljar`")
                         .next("type `belljar`, which finds this program beside itself"));
}

int serve_words(int argc, char** argv) {
  const auto component = find_component(argc > 1 ? argv[1] : "");
  if (!component) return serve(Component::kBench, argc, argv);
  argv[1] = argv[0];  // what follows is as if the component were the program
  return serve(*component, argc - 1, argv + 1);
}

}  // namespace
}  // namespace belljar::cli

int main(int argc, char** argv) { return belljar::cli::serve_words(argc, argv); }
