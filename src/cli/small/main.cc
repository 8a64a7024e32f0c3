// `belljar`, without TLS: full/main.cc has the other program's.
#include "cli/commands.h"
#include "cli/tls_program.h"

namespace belljar::cli {

egress::MakeInterceptor interceptor_of_this_program() noexcept { return nullptr; }
CheckCommands command_check_of_this_program() noexcept { return nullptr; }

}  // namespace belljar::cli

int main(int argc, char** argv) { return belljar::cli::serve_command_line(argc, argv); }
