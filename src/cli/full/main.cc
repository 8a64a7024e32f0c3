// belljar-full: what `belljar` hands on, so that an ordinary run pays for none of it. Its first word names the part (cli/beside.h).
#include <algorithm>
#include <array>
#include <string_view>

#include "base/format.h"
#include "belljar/error.h"
#include "cli/beside.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/full/parts.h"
#include "cli/sandbox/commands.h"
#include "cli/tls_parts.h"
#include "egress/tls/interceptor.h"

namespace belljar::cli {

egress::MakeInterceptor interceptor_of_this_program() noexcept { return egress::tls::make_interceptor; }

}  // namespace belljar::cli

namespace {

struct Part {
  std::string_view name;
  int (*serve)(int argc, char** argv);
};

constexpr std::array kParts{
    Part{belljar::cli::kTlsPart, belljar::cli::serve_command_line},
    Part{belljar::cli::kKeepPart, [](int, char**) { return belljar::cli::keep(); }},
    Part{"mcp", belljar::cli::serve_mcp},
    Part{"agent", belljar::cli::work_as_agent},
    Part{"audit", belljar::cli::read_audit_trail},
    Part{"guard", belljar::cli::judge_and_scan},
    Part{"container", belljar::cli::run_in_container},
    Part{"e2b", belljar::cli::run_on_e2b},
    Part{"aliyun", belljar::cli::run_on_aliyun},
    Part{"volcengine", belljar::cli::run_on_volcengine},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  const auto* const part = std::ranges::find(kParts, wanted, &Part::name);
  if (part == kParts.end())
    return belljar::cli::print_error(belljar::Error(belljar::Code::kInvalidArgument, "belljar-full is started by `belljar`")
                                         .next("type `belljar`, which finds this program beside itself"));
  argv[1] = argv[0];  // what follows is as if the part were the program
  return part->serve(argc - 1, argv + 1);
}
