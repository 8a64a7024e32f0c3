// belljar create: starts a keeper (keep.cc) and prints the id of the sandbox that it keeps.
//
// The keeper is a process of its own that outlives us, started detached with a socket between us. Over that
// socket it gets the command's words, to be parsed once more by the program that uses them, and the caller's
// environment as data. Its own environment holds only what it needs to find files, so that no secret of the
// caller's stands in its /proc/PID/environ for as long as the sandbox lives.
//
// It answers once, when the sandbox runs or could not be started. We print the id first and tell the keeper
// afterwards. If printing fails or we are interrupted in between, that message is missing, and the keeper
// ends the sandbox, since nobody knows it.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "cli/command_line.h"
#include "cli/components.h"
#include "cli/errors.h"
#include "cli/sandbox/ask.h"
#include "cli/sandbox/commands.h"
#include "cli/sandbox/create_flags.h"
#include "keeper/wire.h"
#include "launch/detached.h"

namespace belljar::cli {
namespace {

using keeper::Json;

// A keeper may take as long as the start of a sandbox with everything cold.
constexpr std::chrono::milliseconds kStartPatience = std::chrono::minutes(2);

// The keeper's own environment: where files are looked for and which backend is meant, no more. What commands see comes with the
// words, as data.
std::vector<std::string> keeper_environment() {
  std::vector<std::string> environment;
  for (const char* name : {"HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "SANDBOX_COMMANDS",
                           "BELLJAR_ENV", "BELLJAR_BACKEND"}) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
    if (value != nullptr) environment.push_back(format("{}={}", name, value));
  }
  return environment;
}

struct StartedKeeper {
  keeper::Channel channel;
  Json ready;
};

Result<StartedKeeper> start_keeper(const std::vector<std::string>& words) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
    return Error(Code::kResourceExhausted, "cannot talk to a keeper").sys(errno, "socketpair");
  UniqueFd ours(ends[0]), theirs(ends[1]);
  const std::string program = path_of_sibling(kFullProgram);
  if (::access(program.c_str(), X_OK) != 0) return sibling_is_missing("cannot keep a sandbox", kFullProgram);
  BELLJAR_CHECK(launch::start_detached(program, {kFullProgram, name_of(Component::kKeep)}, keeper_environment(), theirs.get()));
  theirs.reset();
  StartedKeeper created{keeper::Channel(std::move(ours)), {}};
  BELLJAR_CHECK(created.channel.send({{"words", words}, {"env", by_name(own_environment())}}));
  created.ready = BELLJAR_TRY(next_answer(created.channel, kStartPatience)).message;
  return created;
}

int create(const CreateFlags& flags, const std::vector<std::string>& words) {
  if (const auto expiry = expiry_of(flags); !expiry) return print_error(expiry.error());
  if (const auto sampling = sampling_of(flags); !sampling) return print_error(sampling.error());
  auto created = start_keeper(words);
  if (!created) return print_error(created.error());
  const Json& ready = created->ready;
  for (const Json& note : ready.at("notes")) print_note("warning: " + note.get<std::string>());
  const std::string text = flags.json ? ready.at("about").get<std::string>() : ready.at("id").get<std::string>();
  // Told first, kept then: a sandbox that nobody knows of ends at once.
  if (const int failed = print_result(text + "\n"); failed != 0) return failed;
  if (const auto kept = created->channel.send({{"keep", true}}); !kept) return print_error(kept.error());
  return 0;
}

}  // namespace

void add_create(const OptionParser& command, const KeeperCommandWords& words, int& exit_code) {
  const auto flags = std::make_shared<CreateFlags>();
  add_create_options(command, *flags);
  command.callback([flags, behind = words.behind, &exit_code] { exit_code = create(*flags, behind); });
}

}  // namespace belljar::cli
