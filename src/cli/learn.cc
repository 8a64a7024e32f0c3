// belljar learn: run a program, and write the smallest policy that would let it run again.
//
// The run happens under a policy as any other. While it runs the broker's observations and the kernel's view
// of its processes are recorded (runtime::Recorder), and afterwards policy::learn turns what was used into
// rules: directories instead of single files where many were read or names were made. What was refused does
// not become allowed: a program could choose what is opened by trying. It stands in the text as a comment,
// with what would permit it.
//
// The result is merged on top of what holds anyway, and the difference is printed as rules that come and go.
// So a person can judge it before using it.
#include "policy/learn.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "backend/find.h"
#include "backend/paths/host.h"
#include "base/format.h"
#include "base/write_all.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "cli/output_file.h"
#include "cli/policy_flags.h"
#include "cli/tls_program.h"
#include "policy/parse.h"
#include "policy/profiles.h"
#include "policy/schema.h"
#include "policy/tls_interception.h"
#include "runtime/recorder.h"
#include "runtime/run.h"

namespace belljar::cli {
namespace {

struct LearnFlags {
  PolicyFlags policy;
  std::string output;
  std::vector<std::string> program;
};

// Where the policy goes. Without --output it is our stdout, and the command's stdout is our stderr.
Result<UniqueFd> open_learned(const std::string& path, const LoadedPolicy& loaded) {
  if (!path.empty()) return create_output(path, "the policy", "--output", loaded);
  UniqueFd own(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!own.valid() || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    return Error(Code::kUnavailable, "cannot set the streams up").sys(errno, "dup2");
  return own;
}

Result<void> write_policy(int fd, std::string_view text) {
  if (write_all(fd, text)) return {};
  return Error(Code::kUnavailable, "cannot write the policy")
      .sys(errno, "write")
      .next("free some space, or choose another --output FILE");
}

std::string in_words(const std::optional<policy::Value>& value) { return value ? escaped(policy::to_toml(*value)) : "unset"; }

std::string rule_text(const FsEntry& entry) { return format("{} {}", to_string(entry.access), escaped(entry.path)); }

// The learned policy against the one in force, key by key.
Result<void> tell_difference(const std::string& toml, const LoadedPolicy& loaded) {
  policy::Layer learned = BELLJAR_TRY(policy::parse_toml(toml, "learned.toml", "policy"));
  const std::vector<policy::Layer> layers{BELLJAR_TRY(policy::profile_layer("workspace-write")), std::move(learned)};
  policy::Effective effective = BELLJAR_TRY(policy::merge(layers, loaded.context));
  Policy before = loaded.effective.policy, after = effective.policy;
  for (const policy::Setting& setting : layers[1].settings) {
    if (setting.key->join == policy::Join::kEntries) continue;
    const auto now = policy::load(*setting.key, before), then = policy::load(*setting.key, after);
    if (now != then) print_note(format("difference: {}: {} -> {}", setting.key->name, in_words(now), in_words(then)));
  }
  const auto has = [](const std::vector<FsEntry>& entries, const FsEntry& wanted) {
    return std::ranges::any_of(entries,
                               [&](const FsEntry& entry) { return entry.path == wanted.path && entry.access == wanted.access; });
  };
  for (const FsEntry& entry : after.filesystem.entries) {
    if (!has(before.filesystem.entries, entry)) print_note("difference: + " + rule_text(entry));
  }
  for (const FsEntry& entry : before.filesystem.entries) {
    if (!has(after.filesystem.entries, entry)) print_note("difference: - " + rule_text(entry));
  }
  return {};
}

Result<int> learn_it(const LearnFlags& flags) {
  if (flags.program.empty() || flags.program[0].empty())
    return Error(Code::kInvalidArgument, "there is no command to learn from").next("belljar learn -- PROGRAM ARGUMENTS");
  const Command command{.argv = flags.program};
  const LoadedPolicy loaded = BELLJAR_TRY(load_policy(flags.policy));
  BELLJAR_CHECK(exec_tls_program(loaded.effective.policy));
  for (const std::string& warning : loaded.effective.warnings) print_note("warning: " + warning);
  const UniqueFd output = BELLJAR_TRY(open_learned(flags.output, loaded));
  const policy::MergeContext& context = loaded.context;
  const backend::RealHost host;
  const auto backend = BELLJAR_TRY(backend::find_backend(loaded.effective.policy.backend, host));
  std::vector<std::string> caller_env = caller_environment(loaded.effective.policy.network);
  std::string cwd = BELLJAR_TRY(find_start(flags.policy.cwd, context));

  runtime::Recorder recorder;
  runtime::RunSettings session;
  session.interceptor = interceptor_of_this_program();
  session.signals = front::Signals::Mode::kForwarded;
  session.origins = &loaded.effective.origins;
  session.complete = &loaded.effective.complete;
  session.observer = [&recorder](const broker::Observation& seen) { recorder.see(seen); };
  session.on_started = [&recorder](int init_pid) { recorder.attach(init_pid); };
  auto ran = BELLJAR_TRY(
      runtime::run(*backend, loaded.effective.policy, command, workplace_of(context, std::move(cwd)), caller_env, session));
  if (ran.start_failure) return *std::move(ran.start_failure);
  if (!ran.result.message.empty()) print_note(ran.result.message);

  policy::LearnInput input = recorder.input();
  input.program = command.argv[0];
  input.result = std::move(ran.result);
  const policy::Learned learned = policy::learn(input, loaded.effective, context);
  BELLJAR_CHECK(write_policy(output.get(), learned.toml));
  BELLJAR_CHECK(tell_difference(learned.toml, loaded));
  for (const std::string& risk : learned.risks) print_note("risk: " + escaped(risk));
  if (!flags.output.empty())
    print_note(format("the policy is in {}; try it: belljar run --policy {} -- ...", belljar::quoted(flags.output),
                      escaped(flags.output)));
  return input.result.exit_code;
}

}  // namespace

void add_learn(const OptionParser& app, std::vector<std::string> program, int& exit_code) {
  const OptionParser learn = app.add_subcommand("learn", "Run a program and write the smallest policy that lets it run again");
  auto flags = std::make_shared<LearnFlags>();
  flags->program = std::move(program);
  learn.before_parse([flags, learn] {
    add_policy_options(learn, flags->policy);
    add_cwd_option(learn, flags->policy);
  });
  learn.add_option("--output", flags->output, "Write the policy to FILE (default: stdout, and the program's stdout goes to stderr)")
      .not_empty()
      .type_name("FILE");
  learn.callback([flags, &exit_code] {
    auto learned = learn_it(*flags);
    exit_code = learned ? *learned : print_error(learned.error());
  });
}

}  // namespace belljar::cli
