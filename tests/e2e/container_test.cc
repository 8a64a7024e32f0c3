// `belljar run --backend container` with a real engine.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/as_user.h"
#include "support/built.h"
#include "support/engine.h"
#include "support/eventually.h"
#include "support/has.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"
#include "support/time_enough.h"

namespace belljar {
namespace {

using test::has;

class RunInContainer : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(start_engine(engine_));
    work_.give_to(test::user_uid(), test::user_gid());
  }
  test::Outcome run(std::vector<std::string> words, test::RunOptions options = {}) {
    words.insert(words.begin(), "run");
    options.cwd = work_.path();
    options.env["DOCKER_HOST"] = engine_->address();
    return test::belljar(std::move(words), options);
  }
  std::vector<std::string> with_image(std::vector<std::string> words) {
    words.insert(words.begin(), {"--image", test::Engine::image(), "--pull", "never"});
    return words;
  }

  // A command that goes on ticking does so within a second, or at least within one of sixty.
  bool stops_ticking() const {
    return test::eventually([&] {
      const std::string before = test::read_file(work_ / "ticks");
      std::this_thread::sleep_for(std::chrono::seconds(1));  // where a tick takes longer, this only proves less
      return test::read_file(work_ / "ticks") == before;
    });
  }

  std::unique_ptr<test::Engine> engine_;
  const test::TempDir work_;
};

TEST_F(RunInContainer, StreamsExitCodesAndSignalsPassThrough) {
  const auto outcome = run(with_image({"-c", "cat; echo error >&2; id -u; exit 3"}), {.input = "given "});
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_EQ(outcome.out, "given " + std::to_string(test::user_uid()) + "\n");
  EXPECT_EQ(outcome.err, "error\n");
  EXPECT_EQ(run({"--backend", "container", "--image", test::Engine::image(), "--", "sh", "-c", "kill -9 $$"}).exit_code, 137);
  EXPECT_EQ(run(with_image({"--", "no-such-program"})).exit_code, 127);
  EXPECT_EQ(run(with_image({"--timeout", "500ms", "--", "sleep", "300"})).exit_code, 124);
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(run(with_image({"--", "cat"}), {.input = large}).out, large);
  EXPECT_TRUE(engine_->containers().empty());
}

TEST_F(RunInContainer, ASignalToTheFrontReachesTheCommand) {
  test::Running front({test::kBelljar, "run", "--image", test::Engine::image(), "-c",
                       "trap 'echo caught; exit 5' TERM; echo ready; sleep 300 & wait"},
                      {.cwd = work_.path(), .env = {{"DOCKER_HOST", engine_->address()}}});
  ASSERT_TRUE(front.wait_for_output("ready")) << front.err();
  front.send(15);
  const auto outcome = front.wait();
  EXPECT_EQ(outcome.exit_code, 5) << outcome;
  EXPECT_EQ(outcome.out, "ready\ncaught\n");
}

// As where the pipe is the command's own: SIGPIPE.
TEST_F(RunInContainer, ACommandEndsWithWhoReadsItsOutput) {
  const auto piped = [&](const std::string& text) {
    return test::run({"bash", "-c", text, "sh", test::kBelljar, "run", "--image", test::Engine::image(), "--pull", "never"},
                     {.cwd = work_.path(), .env = {{"DOCKER_HOST", engine_->address()}}});
  };
  const auto gone = piped("\"$@\" -- yes | head -1; echo ${PIPESTATUS[0]}");
  EXPECT_EQ(gone.out, "y\n141\n") << gone;
  const auto full = piped("\"$@\" -- yes > /dev/full; echo $?");
  EXPECT_EQ(full.out, "125\n") << full;
  EXPECT_NE(full.err.find("cannot pass on the command's output, so it was ended: No space left on device (write)"),
            std::string::npos)
      << full;
  EXPECT_EQ(piped("\"$@\" -- seq 3 | cat").out, "1\n2\n3\n") << "the twin";
  EXPECT_TRUE(engine_->containers().empty());
}

TEST_F(RunInContainer, JsonAndReportTellWhatHeld) {
  const auto outcome = run(with_image({"--json", "--report", "report.json", "--", "echo", "hi"}));
  EXPECT_NE(outcome.out.find("\"stdout\":\"hi\\n\""), std::string::npos) << outcome;
  EXPECT_NE(outcome.out.find("\"clause\":\"protect.absent\""), std::string::npos) << outcome;
  EXPECT_NE(test::read_file(work_ / "report.json").find("\"exit_code\":0"), std::string::npos);
}

TEST_F(RunInContainer, APtyIsTheCommandsOwn) {
  const auto outcome = run(with_image({"--pty", "--", "sh", "-c", "test -t 0 && test -t 1 && echo terminal"}));
  EXPECT_EQ(outcome.out, "terminal\r\n") << outcome;
}

TEST_F(RunInContainer, APolicyFileMayChooseIt) {
  const test::TempDir own;  // one in the workspace may only narrow
  const std::string file = own.write("container.toml", "backend = \"container\"\n[limits]\npids = 30\n");
  const auto outcome = run(with_image({"--policy", file, "--", "echo", "hi"}));
  EXPECT_EQ(outcome.out, "hi\n") << outcome;
  // Not a word of containers on the command line: the file alone hands the run over.
  const auto handed = test::belljar({"run", "--policy", file, "--", "true"},
                                    {.cwd = work_.path(), .env = {{"DOCKER_HOST", "unix:///nonexistent/sock"}}});
  EXPECT_NE(handed.err.find("cannot reach the container engine at `/nonexistent/sock`"), std::string::npos) << handed;
}

// The words of document 001, and its order: a command is judged first, and what is left runs in the container.
TEST_F(RunInContainer, TheToolsOfDocument001RunThere) {
  ASSERT_EQ(engine_->client({"tag", test::Engine::image(), "node:20-slim"}).exit_code, 0);
  std::string input =
      R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}})"
      "\n";
  int id = 0;
  for (const char* command : {"rm -rf /", "exit 4", "true", "pwd", "node --version"})
    input += R"({"jsonrpc":"2.0","id":)" + std::to_string(++id) +
             R"(,"method":"tools/call","params":{"name":"runCommand","arguments":{"command":")" + std::string(command) + "\"}}}\n";
  const auto talked = test::belljar({"mcp", "--backend", "container", "--texts", "document-001"},
                                    {.input = input, .cwd = work_.path(), .env = {{"DOCKER_HOST", engine_->address()}}});
  for (const std::string& text :
       {std::string("\"Command blocked: `rm -rf /`"), std::string(R"("Command failed (exit code 4):\n")"),
        std::string("\"Command completed successfully (no output)\""), work_.path() + R"(\n)", std::string("v20.0.0-of-the-image")})
    EXPECT_TRUE(has(talked.out, text)) << text << talked;
  EXPECT_TRUE(engine_->containers().empty());
}

// The image's shell, whatever this machine has.
TEST_F(RunInContainer, AToolsShellIsTheOneOfTheImage) {
  const test::TempDir place;
  // Not by `commit`, which Podman answers with "Decode(): EOF" to this client.
  const auto image_after = [&](const std::string& name, const std::string& change) {
    EXPECT_EQ(engine_->client({"run", "--name", name, "--network", "none", test::Engine::image(), "sh", "-c", change}).exit_code,
              0);
    const std::string files = place.path() + "/" + name + ".tar";
    EXPECT_EQ(engine_->client({"export", "--output", files, name}).exit_code, 0);
    EXPECT_EQ(engine_->import(files, "localhost/" + name + ":1").exit_code, 0);
    EXPECT_EQ(engine_->client({"rm", name}).exit_code, 0);
    return "localhost/" + name + ":1";
  };
  const auto told = [&](const std::string& image) {
    const std::string input =
        R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}})"
        "\n"
        R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash","arguments":{"command":"echo by ${OF:-sh}; exit 3"}}})"
        "\n";
    const std::map<std::string, std::string> env = {{"DOCKER_HOST", engine_->address()}, {"BELLJAR_IMAGE", image}};
    return test::belljar({"mcp", "--backend", "container"}, {.input = input, .cwd = work_.path(), .env = env});
  };
  for (const test::EngineKind kind : {test::EngineKind::kDocker, test::EngineKind::kPodman}) {
    if (kind == test::EngineKind::kPodman) {
      engine_.reset();
      if (!start_engine(engine_, kind).empty()) return;  // a machine without Podman
    }
    const auto without = told(image_after("only-sh", "rm /bin/bash"));
    EXPECT_TRUE(has(without.out, R"(by sh\n[exit code 3])")) << without;
    const auto with = told(image_after("with-bash", R"(printf '#!/bin/sh\nOF=bash exec /bin/sh "$@"\n' >/bin/bash)"));
    EXPECT_TRUE(has(with.out, R"(by bash\n[exit code 3])")) << "the twin" << with;
    EXPECT_TRUE(engine_->containers().empty());
  }
}

TEST_F(RunInContainer, WhatIsNotServedIsRefusedByName) {
  const auto refusal = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--", "true"});
    const auto outcome = run(with_image(all));
    EXPECT_EQ(outcome.exit_code, 125) << outcome;
    return outcome.err.substr(0, outcome.err.find('\n'));
  };
  EXPECT_EQ(run(with_image({"--", "true"})).exit_code, 0) << "the twin";
  EXPECT_EQ(run(with_image({"--net", "proxy", "--", "true"})).exit_code, 0) << "a twin";
  EXPECT_EQ(
      refusal({"--net", "proxy", "--require", "network.transparent"}),
      "belljar: network.transparent is required, but this machine enforces it only as `partial` (programs that know nothing of "
      "the proxy are served by the same rules)");
  EXPECT_EQ(refusal({"--allow-unix-socket", "/run/x"}), "belljar: the container backend does not serve network.allow_unix_sockets");
  EXPECT_EQ(refusal({"--txn"}), "belljar: the container backend does not serve --txn");
  EXPECT_EQ(refusal({"--backend", "native"}), "belljar: cannot use --image with the backend `native`");
  EXPECT_EQ(
      refusal({"--require", "protect.absent"}),
      "belljar: protect.absent is required, but this machine enforces it only as `none` (control names that do not exist yet)");
  EXPECT_EQ(refusal({"--engine", "tcp://10.0.0.1:2375"}),
            "belljar: will not speak to the container engine at `tcp://10.0.0.1:2375`");
  EXPECT_EQ(refusal({"--engine", "ssh://host"}), "belljar: cannot reach the container engine at `ssh://host`");
  EXPECT_EQ(refusal({"--isolation", "vm"}), "belljar: isolation vm is required, and is not to be had here");
  EXPECT_EQ(refusal({"--tmpfs", "relative"}), "belljar: --tmpfs: cannot use `relative`");
}

// Parts of an image that would act or be written past the policy.
TEST_F(RunInContainer, AnImagesVolumesAndHealthCheckAreHeld) {
  const auto made = engine_->client({"create", test::Engine::image(), "sh"});
  const std::string id = made.out.substr(0, made.out.find('\n'));
  ASSERT_EQ(engine_
                ->client({"commit", "-c", "VOLUME /data", "-c", "HEALTHCHECK --interval=1s CMD echo checked > /tmp/checked", id,
                          "localhost/belljar-volume:1"})
                .exit_code,
            0);
  const auto outcome = run({"--image", "localhost/belljar-volume:1", "--pull", "never", "-c",
                            // For what is not to come, each second: a slow machine only proves less.
                            "sleep 2; cat /tmp/checked 2>/dev/null; grep -c '^tmpfs /data ' /proc/mounts"});
  EXPECT_EQ(outcome.out, "1\n") << outcome;
  (void)engine_->client({"rm", id});
}

// Who reads slowly gives the command no more time.
TEST_F(RunInContainer, ATimeoutHoldsWhileNobodyReads) {
  const bool ended = test::with_time_enough(
      [&](std::chrono::milliseconds time) {
        std::filesystem::remove(work_ / "read");
        test::Running front({"sh", "-c", "\"$@\" | until [ -e read ]; do sleep 0.1; done", "sh", test::kBelljar, "run", "--image",
                             test::Engine::image(), "--pull", "never", "--timeout", std::to_string(time.count()) + "ms", "-c",
                             "yes & while :; do echo t >> ticks; sleep 0.25; done"},
                            {.cwd = work_.path(), .env = {{"DOCKER_HOST", engine_->address()}}});
        const bool begun = test::eventually([&] { return test::exists(work_ / "ticks"); }, time + std::chrono::seconds(20));
        EXPECT_TRUE(!begun || stops_ticking());
        work_.write("read", "");
        (void)front.wait();
        return begun;
      },
      [](bool begun) { return begun; }, std::chrono::seconds(1));
  EXPECT_TRUE(ended);
}

// Its shims live on; our line to the command does not. It ticks before it says so: the engine may be gone a moment after.
TEST_F(RunInContainer, NothingOutlivesAnEngineThatIsKilled) {
  test::Running front({test::kBelljar, "run", "--image", test::Engine::image(), "--pull", "never", "-c",
                       "echo t >> ticks; echo ready; while :; do echo t >> ticks; sleep 0.1; done"},
                      {.cwd = work_.path(), .env = {{"DOCKER_HOST", engine_->address()}}});
  ASSERT_TRUE(front.wait_for_output("ready")) << front.err();
  engine_->stop(9);
  EXPECT_EQ(front.wait().exit_code, 137);
  EXPECT_TRUE(stops_ticking());
}

// As document 003 writes them.
TEST_F(RunInContainer, TheKeysOfTheDocumentsMeanIt) {
  const test::TempDir place;
  const std::string image = "use_docker = true\nimage_pull_policy = \"Never\"\nimage = \"" + test::Engine::image() + "\"\n";
  const std::string policy =
      place.write("p.toml", image + "memory = \"512m\"\ncpu = \"1.0\"\ntemp_dir = \"/tmp/agent\"\nauto_clean_temp = true\n");
  const auto outcome = run({"--policy", policy, "-c", "test -e /.belljar/inside && touch $TMPDIR/x && echo $TMPDIR"});
  EXPECT_EQ(outcome.out, "/tmp/agent\n") << outcome;
  const std::string absent =
      place.write("q.toml", "use_docker = true\nimage_pull_policy = \"Never\"\nimage = \"no-such-image:1\"\n");
  EXPECT_NE(run({"--policy", absent, "--", "true"}).err.find("no-such-image:1"), std::string::npos)
      << "the file's image is the one";
  EXPECT_EQ(run(with_image({"--policy", absent, "-c", "echo ran"})).out, "ran\n") << "an option comes before the file";
  const test::RunOptions mcp{
      .input =
          R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}})"
          "\n"
          R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"runCommand","arguments":{"command":"ls /.belljar/inside; pwd"}}})"
          "\n",
      .env = {{"DOCKER_HOST", engine_->address()}}};
  const auto served =
      test::belljar({"mcp", "--workspace", work_.path(), "--texts", "document-001", "--policy", place.write("i.toml", image)}, mcp);
  EXPECT_NE(served.out.find("/.belljar/inside"), std::string::npos) << served;
  EXPECT_NE(served.out.find(work_.path()), std::string::npos) << served;
}

// SANDBOX_COMMANDS=true: a container, the workspace at /workspace, and what a policy shows below it.
TEST_F(RunInContainer, TheVariableShowsTheWorkspaceWhereTheDocumentHasIt) {
  const test::TempDir place, data(test::is_root() ? "/var/lib" : "");
  data.write("f", "of the volume\n");
  data.give_to(test::user_uid(), test::user_gid());
  const std::string policy =
      place.write("p.toml", "volumes = [{ source = \"" + data.path() + "\", target = \"/workspace/data\", readonly = false }]\n");
  const auto outcome = run({"--pull", "never", "--policy", policy, "-c", "pwd; cat data/f; id -u; touch beside"},
                           {.env = {{"SANDBOX_COMMANDS", "true"}, {"BELLJAR_IMAGE", test::Engine::image()}}});
  EXPECT_EQ(outcome.out, "/workspace\nof the volume\n" + std::to_string(test::user_uid()) + "\n") << outcome;
  EXPECT_TRUE(test::exists(work_ / "beside"));
  struct stat made{};
  EXPECT_EQ(::stat((work_ / "data").c_str(), &made), 0);
  EXPECT_EQ(made.st_uid, test::user_uid()) << "not one of root's, as an engine would leave it";
}

// Named first, and what it is fallen back to.
TEST_F(RunInContainer, AFallbackMayBeOne) {
  const auto outcome = run(with_image({"--backend", "landlock", "--isolation", "container", "--fallback", "container", "-c",
                                       "test -e /.belljar/inside && cat"}),
                           {.input = "in"});
  EXPECT_EQ(outcome.out, "in") << outcome;
  EXPECT_NE(outcome.err.find("the container backend holds this run, by fallback: landlock: isolation container is required"),
            std::string::npos)
      << outcome;
  const auto chosen = run(with_image({"--backend", "auto", "--isolation", "container", "--json", "--", "true"}));
  EXPECT_NE(chosen.out.find(R"("backend":"container")"), std::string::npos) << chosen;
  EXPECT_NE(chosen.out.find(
                R"("clause":"isolation","asked":"at least container","mechanism":"container: runtime runc","enforced":"full")"),
            std::string::npos)
      << chosen;
  EXPECT_TRUE(engine_->containers().empty());
}

TEST(RunInNoContainer, WithoutAnEngineThereIsOneClearError) {
  const test::TempDir work;
  const auto outcome =
      test::belljar({"run", "--image", "x", "--engine", "unix:///nonexistent/sock", "--", "true"}, {.cwd = work.path()});
  EXPECT_EQ(outcome.exit_code, 125);
  EXPECT_EQ(outcome.err.substr(0, outcome.err.find('\n')),
            "belljar: cannot reach the container engine at `/nonexistent/sock`: No such file or directory (connect)")
      << outcome;
}

}  // namespace
}  // namespace belljar
