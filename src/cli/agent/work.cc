// belljar agent.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/conversation_lock.h"
#include "agent/json.h"
#include "base/environment.h"
#include "base/fd_watch.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/agent.h"
#include "belljar/agent_model.h"
#include "belljar/cancel.h"
#include "belljar/content_policy.h"
#include "belljar/error.h"
#include "belljar/guardian.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/tools.h"
#include "cli/agent/ask.h"
#include "cli/agent/display.h"
#include "cli/agent/flags.h"
#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/full/components.h"
#include "cli/guardian_flags.h"
#include "cli/load.h"
#include "cli/mcp/make_client_sandbox.h"
#include "mcp/client_sandboxes.h"

namespace belljar::cli {
namespace {

// The first SIGINT, SIGTERM or SIGHUP cancels the run, the second ends the process: the sandbox dies with it.
class Signals {
 public:
  static sigset_t ours() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
    return set;
  }
  Result<void> begin(const CancelToken& cancel) {
    const sigset_t set = ours();
    fd_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC));
    watch_ = BELLJAR_TRY(FdWatch::begin({{fd_.get(), POLLIN, 0}}, [this, cancel] {
      signalfd_siginfo info{};
      if (::read(fd_.get(), &info, sizeof info) != sizeof info) return true;
      if (cancel.cancelled()) ::_exit(128 + static_cast<int>(info.ssi_signo));
      first_.store(static_cast<int>(info.ssi_signo));
      cancel.cancel();
      return true;
    }));
    return {};
  }
  void end() { watch_.reset(); }

  // What a run that was cancelled exits with: 128 + n of the signal that did it.
  int exit_code() const noexcept { return 128 + first_.load(); }

 private:
  std::atomic<int> first_{SIGINT};
  UniqueFd fd_;
  std::unique_ptr<FdWatch> watch_;  // last: it waits for those above
};

AgentPermit permit_of(mcp::Judge judge) {
  return [judge = std::move(judge)](const ToolRequest& request) {
    mcp::Opinion opinion = judge(request);
    const AgentSay say = opinion.kind == mcp::OpinionKind::kRun   ? AgentSay::kRun
                         : opinion.kind == mcp::OpinionKind::kAsk ? AgentSay::kAsk
                                                                  : AgentSay::kRefuse;
    return AgentOpinion{say, std::move(opinion.reason), std::move(opinion.next)};
  };
}

PrintOptions show_options(const AgentFlags& flags) {
  const bool dumb = own_variable("TERM") == "dumb" || !own_variable("NO_COLOR").empty();
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  return {.json = flags.json,
          .live = ::isatty(STDOUT_FILENO) == 1,
          .status = terminal && own_variable("TERM") != "dumb",
          .colour = terminal && !dumb};
}

// `warnings`: what this run does without, a line each before its steps.
Result<std::shared_ptr<AgentMiddleware>> make_log(const std::string& path, const std::vector<std::string>& warnings) {
  const auto file = std::make_shared<UniqueFd>(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file->valid())
    return Error(Code::kPermissionDenied, format("cannot write the log {}", belljar::quoted(path))).sys(errno, "open");
  const auto put = [file](std::string line) {
    line += '\n';
    if (::write(file->get(), line.data(), line.size()) < 0) return;  // the run matters more than its log
  };
  for (const std::string& warning : warnings) put(agent::dump({{"event", "warning"}, {"text", warning}}));
  return run_log(put);
}

// The user's own directory may be absent; one that somebody named is to be there.
Result<void> check_skills(const AgentFlags& flags) {
  if (flags.skills_directory.empty()) return {};
  if (flags.no_skills) return Error(Code::kInvalidArgument, "--skills and --no-skills say two things").next("leave one out");
  const UniqueFd directory(::open(flags.skills_directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.valid()) return {};
  return Error(errno == ENOENT ? Code::kNotFound : Code::kInvalidArgument,
               format("cannot read the skills in {}", belljar::quoted(flags.skills_directory)))
      .sys(errno, "open")
      .next("name a directory: --skills DIR");
}

Result<std::vector<std::shared_ptr<AgentMiddleware>>> make_middleware(const AgentFlags& flags,
                                                                      const mcp::SandboxSetup& sandbox_setup) {
  std::vector<std::shared_ptr<AgentMiddleware>> all;
  if (!flags.log.empty()) all.push_back(BELLJAR_TRY(make_log(flags.log, sandbox_setup.warnings)));
  all.push_back(loop_detection());
  all.push_back(summary());
  all.push_back(todo_list());
  all.push_back(sub_agents());
  BELLJAR_CHECK(check_skills(flags));
  const std::string directory = flags.skills_directory.empty() ? own_variable("HOME") + "/.agents/skills" : flags.skills_directory;
  if (!flags.no_skills)
    all.push_back(skills(directory, [](const std::string& text) { print_note(text); }, sandbox_setup.sandbox->workspace()));
  return all;
}

Result<std::optional<ContentGate>> make_gate(const AgentFlags& flags) {
  if (flags.content.empty()) return std::optional<ContentGate>();
  const std::string text = BELLJAR_TRY(read_text_file(flags.content, "the content policy"));
  const ContentPolicy policy = BELLJAR_TRY(parse_content_policy(text, flags.content));
  return std::optional<ContentGate>(BELLJAR_TRY(ContentGate::create(policy)));
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

int exit_code_of(const AgentResult& result, int when_cancelled) {
  if (result.end == AgentEnd::kDone) return result.unasked == 0 ? 0 : 1;
  if (result.end == AgentEnd::kCancelled) return when_cancelled;
  return result.error ? 125 : 1;
}

void print_end(const AgentResult& result, const PrintOptions& show, const std::string& kept) {
  if (!show.json && !show.live && !result.text.empty()) {
    const std::string text = result.text + (result.text.ends_with('\n') ? "" : "\n");
    if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) return;
  }
  if (result.error) (void)print_error(*result.error);
  else if (result.end != AgentEnd::kDone)
    print_note(format("the agent ended ({}): {}", to_string(result.end), escaped(result.reason)));
  if (result.unasked > 0)
    print_note(format("nobody to ask: {} {} not done; run it on a terminal, or with --mode auto-edit or --review-wait TIME",
                      result.unasked, result.unasked == 1 ? "call was" : "calls were"));
  if (result.end != AgentEnd::kDone && !kept.empty())
    print_note(format("the conversation is kept; go on with --conversation {}", belljar::quoted(kept)));
}

struct AgentSetup {
  std::shared_ptr<ModelProvider> model;
  mcp::SandboxSetup sandbox_setup;
  std::optional<ContentGate> gate;
  std::shared_ptr<Guardian> guardian;
  AgentAsk ask;  // where there is no terminal; may be empty
  std::vector<std::shared_ptr<AgentMiddleware>> middleware;
  std::string conversation;
  std::optional<agent::ConversationLock> lock;  // of it
  std::vector<ChatMessage> earlier;
};

Result<void> open_conversation(const AgentFlags& flags, AgentSetup& setup) {
  if (flags.conversation.empty()) return {};
  setup.conversation = BELLJAR_TRY(conversation_path(flags.conversation, setup.sandbox_setup.sandbox->workspace()));
  setup.lock.emplace(BELLJAR_TRY(agent::ConversationLock::acquire(setup.conversation)));
  auto earlier = load_conversation(setup.conversation);
  if (!earlier && earlier.error().code() != Code::kNotFound) return earlier.error();
  if (earlier) setup.earlier = std::move(*earlier);
  return {};
}

Result<AgentSetup> make_setup(const AgentFlags& flags, const CancelToken& cancel) {
  AgentSetup setup;
  if (!flags.sandbox.permission.empty()) {
    if (const auto mode = permission_mode_of("--mode", flags.sandbox.permission); !mode) return mode.error();
  }
  // First of all: the sandbox takes its environment from ours.
  setup.model = BELLJAR_TRY(make_model(flags));
  std::optional<GuardianOptions> guardian = BELLJAR_TRY(guardian_of(flags.guardian));
  if (guardian) setup.guardian = BELLJAR_TRY(http_guardian(*std::move(guardian)));
  setup.gate = BELLJAR_TRY(make_gate(flags));
  McpFlags sandbox_flags = flags.sandbox;
  sandbox_flags.defence.guardian = flags.guardian;
  sandbox_flags.defence.content = flags.content;
  if (!flags.conversation.empty())
    sandbox_flags.own_files.push_back(
        {.doing = "keep the conversation in", .option = "--conversation", .path = flags.conversation});
  setup.sandbox_setup = BELLJAR_TRY(make_client_sandbox(sandbox_flags, {}, cancel));
  if (!flags.review_wait.empty()) {
    const auto patience = BELLJAR_TRY(time_of("--review-wait", flags.review_wait));
    setup.ask =
        BELLJAR_TRY(ask_by_review(patience, setup.sandbox_setup.sandbox->workspace(), setup.sandbox_setup.secrets, print_note));
  }
  setup.middleware = BELLJAR_TRY(make_middleware(flags, setup.sandbox_setup));
  BELLJAR_CHECK(open_conversation(flags, setup));
  return setup;
}

AgentOptions agent_options(const AgentFlags& flags, AgentSetup& setup, EventPrinter& show, const PrintOptions& how) {
  AgentOptions options{.model = setup.model,
                       .sandbox = setup.sandbox_setup.sandbox,
                       .tools = {.shell = setup.sandbox_setup.shell, .workspace_name = setup.sandbox_setup.named},
                       .permit = permit_of(std::move(setup.sandbox_setup.judge)),
                       .guardian = setup.guardian,
                       .files = setup.sandbox_setup.files,
                       .record = recorder_of(setup.sandbox_setup.calls, setup.sandbox_setup.sandbox->workspace(),
                                             setup.sandbox_setup.secrets, setup.ask != nullptr && !can_ask()),
                       .content = std::move(setup.gate),
                       .max_turns = flags.max_turns,
                       .token_budget = flags.token_budget,
                       .max_output = flags.max_output,
                       .middleware = std::move(setup.middleware),
                       .on_event = [&show](const AgentEvent& event) { show(event); }};
  options.ask = setup.ask;
  if (can_ask())
    options.ask = [&show, colour = how.colour](const AgentQuestion& question) {
      show.end_line();
      return ask_on_terminal(question, colour);
    };
  if (!setup.conversation.empty())
    options.on_change = [path = setup.conversation, told = false](const std::vector<ChatMessage>& messages) mutable {
      const auto saved = save_conversation(path, messages);
      if (!saved && !std::exchange(told, true)) (void)print_error(saved.error());
    };
  return options;
}

int work(const AgentFlags& flags) {
  const auto cancel = CancelToken::create();
  if (!cancel) return print_error(cancel.error());
  auto made = make_setup(flags, *cancel);
  if (!made) return print_error(made.error());
  for (const std::string& warning : made->sandbox_setup.warnings) print_note(warning);
  ::signal(SIGPIPE, SIG_IGN);
  const sigset_t set = Signals::ours();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  Signals signals;
  if (const auto begun = signals.begin(*cancel); !begun) return print_error(begun.error());
  const std::shared_ptr<Sandbox> sandbox = made->sandbox_setup.sandbox;
  if (made->sandbox_setup.record) {
    if (const auto recorded = made->sandbox_setup.record(); !recorded) return print_error(recorded.error());
  }
  if (const auto started = sandbox->start(); !started) {
    const int code = print_error(started.error());
    return cancel->cancelled() ? signals.exit_code() : code;
  }
  const PrintOptions how = show_options(flags);
  EventPrinter show(how);
  for (const std::string& warning : made->sandbox_setup.warnings) {
    if (how.json) show({.kind = AgentEvent::Kind::kNote, .text = warning});
  }
  const std::string kept = made->conversation;
  AgentResult result;
  {
    Agent agent(agent_options(flags, *made, show, how));
    agent.resume(std::move(made->earlier));
    result = agent.run(joined(flags.task), *cancel);
  }
  const int when_cancelled = signals.exit_code();
  signals.end();
  (void)sandbox->stop();
  print_end(result, how, kept);
  return exit_code_of(result, when_cancelled);
}

void add_agent(const OptionParser& app, AgentFlags& flags, int& exit_code) {
  const OptionParser command =
      app.add_subcommand("agent", "Let a model work on a task in the current directory, with tools in a sandbox");
  add_agent_options(command, flags);
  command.callback([&] { exit_code = work(flags); });
}

}  // namespace

int work_as_agent(int argc, char** argv) {
  AgentFlags flags;
  return serve_commands(own_words(argc, argv), "a model works on a task, with tools in a sandbox",
                        [&flags](CommandLine& app, int& exit_code) { add_agent(app, flags, exit_code); });
}

}  // namespace belljar::cli
