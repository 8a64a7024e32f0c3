// `belljar`, without TLS: full/main.cc has the other program's.
#include "cli/commands.h"
#include "cli/tls_program.h"
#ifndef BELLJAR_STARTS_EARLY
#include <unistd.h>

#include "warm/client/client.h"
#endif

namespace belljar::cli {

egress::MakeInterceptor interceptor_of_this_program() noexcept { return nullptr; }
CheckCommands command_check_of_this_program() noexcept { return nullptr; }

}  // namespace belljar::cli

int main(int argc, char** argv) {
#ifndef BELLJAR_STARTS_EARLY  // else before libc was set up
  belljar::warm::belljar_warm_first(argc, argv, environ);
#endif
  return belljar::cli::serve_command_line(argc, argv);
}
