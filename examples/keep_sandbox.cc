// A sandbox that stays: commands one after another in the same files, what they wrote read back, a server in the background.
//
//   keep_sandbox DIRECTORY       BELLJAR_ENV=development|test|production chooses the backend
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "belljar/sandbox.h"

namespace {

using namespace std::chrono_literals;

belljar::Result<void> work(belljar::Sandbox& sandbox) {
  BELLJAR_CHECK(sandbox.start());
  BELLJAR_CHECK(sandbox.write_file("words", "pear\napple\nplum\n"));
  const belljar::ExecResult sorted = BELLJAR_TRY(sandbox.exec("sort words >sorted && wc -l <sorted", {.timeout = 10s}));
  std::printf("%s, exit code %d: %s", std::string(to_string(sorted.reason)).c_str(), sorted.exit_code, sorted.out.bytes.c_str());
  std::printf("%s", BELLJAR_TRY(sandbox.read_file("sorted")).c_str());

  // Runs on while other commands come and go; its end is the sandbox's.
  const auto server = BELLJAR_TRY(
      sandbox.spawn(belljar::shell_command("while read line; do echo got $line; done"), {.input = belljar::SpawnInput::kPipe}));
  BELLJAR_CHECK(server->write_stdin("a line\n"));
  BELLJAR_CHECK(server->close_stdin());
  std::printf("%s", BELLJAR_TRY(server->wait())->out.bytes.c_str());
  return sandbox.stop();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: keep_sandbox DIRECTORY\n");
    return 2;
  }
  std::map<std::string, std::string> environment;
  for (const char* name : {"BELLJAR_ENV", "BELLJAR_BACKEND", "PATH", "HOME"}) {
    if (const char* text = std::getenv(name)) environment[name] = text;
  }
  auto config = belljar::sandbox_config_from(environment);
  if (config) config->workspace = argv[1];
  const auto sandbox = config ? belljar::make_sandbox(*config) : belljar::Result<std::shared_ptr<belljar::Sandbox>>(config.error());
  const belljar::Result<void> done = sandbox ? work(**sandbox) : belljar::Result<void>(sandbox.error());
  if (done) return 0;
  std::fprintf(stderr, "%s\n", done.error().line().c_str());
  return done.error().exit_code();
}
