// belljar mcp: options, and one of the two transports.
//
// Over stdin and stdout nothing but messages may be written to stdout. A library that prints something would
// break the protocol, and a command would inherit it. So both descriptors are moved to numbers that nobody
// else knows, stdin is replaced by /dev/null and stdout by stderr.
//
// Over HTTP a client may be on another machine. It names no directory of this one, so the workspace is that
// of the command line, and what is wrong with it is an error at the start.
//
// Signals are blocked before any thread exists, since a thread inherits its mask; the transport reads them by
// signalfd(2).
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/tools.h"
#include "cli/audited.h"
#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/full/components.h"
#include "cli/mcp/defence_flags.h"
#include "cli/mcp/http_flags.h"
#include "cli/mcp/make_client_sandbox.h"
#include "cli/policy_flags.h"
#include "mcp/client_sandboxes.h"
#include "mcp/http.h"
#include "mcp/http_rules.h"
#include "mcp/session.h"
#include "mcp/stdio.h"

namespace belljar::cli {
namespace {

// stdout carries the protocol and nothing else: it goes to a descriptor that no one knows, and its number to stderr.
Result<std::pair<UniqueFd, UniqueFd>> take_stdio() {
  UniqueFd input(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)), output(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const bool fine = input.valid() && output.valid() && nothing.valid() && ::dup2(nothing.get(), STDIN_FILENO) >= 0 &&
                    ::dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
  if (!fine) return Error(Code::kResourceExhausted, "cannot serve").sys(errno, "fcntl, open or dup2");
  return std::pair(std::move(input), std::move(output));
}

// Before any thread: all of them leave these to the loop of the transport.
void settle_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t ours;
  sigemptyset(&ours);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ours, number);
  ::pthread_sigmask(SIG_BLOCK, &ours, nullptr);
}

// The URL and a new token go to stderr: stdout is for results, and a client's log has both.
void tell(const HttpSettings& settings, std::uint16_t port) {
  const mcp::HttpAddress& place = settings.options.address;
  const bool six = place.address.find(':') != std::string::npos;
  print_note(format("serving at http://{}{}{}:{}{}", six ? "[" : "", place.address, six ? "]" : "", port, mcp::kHttpPath));
  if (settings.made) print_note(format("token: {}", settings.options.rules.tokens[0]));
}

int serve_many(const mcp::SessionOptions& options, HttpSettings settings) {
  settings.options.ready = [settings](std::uint16_t port) { tell(settings, port); };
  const auto served = mcp::serve_http(options, std::move(settings.options));
  return served ? 0 : print_error(served.error());
}

int serve_one(mcp::SessionOptions options) {
  auto stdio = take_stdio();
  if (!stdio) return print_error(stdio.error());
  const auto served = mcp::serve_stdio(std::move(options), std::move(stdio->first), std::move(stdio->second));
  return served ? 0 : print_error(served.error());
}

int serve(const McpFlags& flags) {
  const auto texts = texts_of(flags.texts);
  if (!texts) return print_error(texts.error());
  if (!flags.permission.empty()) {
    if (const auto mode = permission_mode_of("--permission", flags.permission); !mode) return print_error(mode.error());
  }
  // What is wrong with the command line and the files it names is told now; what is wrong with a workspace that the client names,
  // by the call that needs it.
  if (const auto layer = flags_layer(flags.policy); !layer) return print_error(layer.error());
  auto defence = defence_of(flags.defence, *texts);
  if (!defence) return print_error(defence.error());
  const bool http = !flags.http.address.empty();
  if (!http) {
    forget_token();
    if (const auto alone = check_no_http(flags.http); !alone) return print_error(alone.error());
  }
  Result<HttpSettings> settings = http ? http_of(flags.http) : HttpSettings{};
  if (!settings) return print_error(settings.error());
  // Over HTTP a client may be another machine's: it names no directory of this one.
  const bool has_workspace = http || !flags.policy.workspace.empty();
  if (has_workspace) {
    if (const auto tried = make_client_sandbox(flags, {}); !tried) return print_error(tried.error());
  } else if (const auto fine = check_flags(flags); !fine) {
    return print_error(fine.error());
  }
  settle_signals();
  mcp::SessionOptions options{.make = [&flags](const mcp::SandboxSpec& spec,
                                               const CancelToken& closing) { return make_client_sandbox(flags, spec, closing); },
                              .tools = {.texts = *texts},
                              .version = BELLJAR_VERSION,
                              .roots_are_workspace = !has_workspace,
                              .transactions = has_transaction(flags),
                              .defence = *std::move(defence),
                              .task_file = flags.defence.task_file,
                              .task_prompt = flags.defence.task_prompt};
  return http ? serve_many(options, *std::move(settings)) : serve_one(std::move(options));
}

void add_mcp(const OptionParser& app, McpFlags& flags, int& exit_code) {
  const OptionParser command =
      app.add_subcommand("mcp",
                         "Serve sandboxed tools to an agent: the Model Context Protocol over stdin and stdout, "
                         "or over HTTP. "
                         "Without --workspace the client's first root is "
                         "the workspace, and without roots the current directory");
  add_policy_options(command, flags.policy);
  command
      .add_option("--rules", flags.rules, "Command rules (TOML), beside the user's; what they ask about the client's user is asked")
      .not_empty()
      .repeatable()
      .type_name("FILE");
  command
      .add_option("--permission", flags.permission,
                  "default: ask for every change; auto-edit: as the rules say (the default here); plan: only read; yolo: never ask")
      .type_name("MODE");
  command
      .add_option("--texts", flags.texts,
                  "Tools and texts of the documents instead of our own: document-000, document-001, document-002")
      .type_name("WORDS");
  add_txn_options(command, flags);
  add_audit_options(command, flags.audit);
  add_defence_options(command, flags.defence);
  add_http_options(command, flags.http);
  command.callback([&] { exit_code = serve(flags); });
}

}  // namespace

int serve_mcp(int argc, char** argv) {
  McpFlags flags;
  return serve_commands(own_words(argc, argv), "sandboxed tools over the Model Context Protocol",
                        [&flags](CommandLine& app, int& exit_code) { add_mcp(app, flags, exit_code); });
}

}  // namespace belljar::cli
