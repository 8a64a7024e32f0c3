// The tools on a sandbox that really runs commands.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/command.h"
#include "belljar/decorators.h"
#include "belljar/error.h"
#include "belljar/sandbox.h"
#include "belljar/tools.h"
#include "support/as_user.h"
#include "support/engine.h"
#include "support/eventually.h"
#include "support/identity.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"
#include "tools/support_tools.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;
using test::has;
using test::parsed;

class NativeTools : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    if (test::is_root()) place_.give_to(test::user_uid(), test::user_gid());
    SandboxConfig config;
    config.workspace = place_.path();
    config.caller_env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/nonexistent"}};
    auto made = make_sandbox(config);
    ASSERT_TRUE(made) << made.error().line();
    sandbox_ = *made;
    const auto started = sandbox_->start();
    ASSERT_TRUE(started) << started.error().line();
  }
  void TearDown() override {
    if (sandbox_ != nullptr) {
      EXPECT_TRUE(sandbox_->stop());
    }
    EXPECT_EQ(left_.report(), "");
  }
  // Until `word` is in the output of `id`.
  static std::string wait_for(Toolbox& tools, const std::string& id, std::string_view word) {
    std::string text;
    (void)test::eventually([&] {
      text = tools.call("bash_output", R"({"id": ")" + id + R"("})").text;
      return has(text, word);
    });
    return text;
  }

  const test::TempDir place_;
  const test::Leftovers left_;
  std::shared_ptr<Sandbox> sandbox_;
};

TEST_F(NativeTools, OutputComesInItsOrderWithTheExitCode) {
  Toolbox tools(sandbox_);
  EXPECT_EQ(tools.call("bash", R"({"command": "echo a; exit 3"})").text, "a\n[exit code 3]");
  EXPECT_TRUE(has(tools.call("bash", R"({"command": "kill -9 $$"})").text, "[exit code 137; signalled"));
  EXPECT_TRUE(has(tools.call("bash", R"({"command": "sleep 60", "timeout_ms": 100})").text, "[exit code 124; timeout"));
  EXPECT_EQ(tools.call("bash", R"({"command": "cat", "stdin": "x"})").text, "x\n[exit code 0]");
  EXPECT_TRUE(tools.call("write_file", R"({"path": "d/x", "content": "in d"})").text.starts_with("wrote"));
  EXPECT_EQ(tools.call("bash", R"({"command": "cat x", "cwd": "d"})").text, "in d\n[exit code 0]");
  for (const char* here : {"", R"(, "cwd": "")", R"(, "cwd": ".")"})
    EXPECT_EQ(tools.call("bash", R"({"command": "cat d/x")" + std::string(here) + "}").text, "in d\n[exit code 0]") << here;
}

TEST_F(NativeTools, RefusedActsAreToldWithTheirRule) {
  Toolbox tools(sandbox_);
  const ToolResult refused = tools.call("bash", R"({"command": "touch /usr/x"})");
  EXPECT_FALSE(refused.failed);
  EXPECT_TRUE(has(refused.text, "\"create\" of \"/usr/x\"")) << refused.text;
  ASSERT_EQ(refused.violations.size(), 1U);
  EXPECT_EQ(parsed(refused)["violations"][0]["target"], "/usr/x");
  const ToolResult fine = tools.call("bash", R"({"command": "touch x"})");
  EXPECT_EQ(fine.text, "[exit code 0]");
  EXPECT_TRUE(fine.violations.empty());
}

TEST_F(NativeTools, WhatIsDeletedIsCalledByItsKind) {
  Toolbox tools(sandbox_);
  EXPECT_EQ(tools.call("bash", R"({"command": "mkfifo pipe; touch file; ln -s file link"})").text, "[exit code 0]");
  EXPECT_TRUE(tools.call("delete", R"({"path": "pipe"})").text.starts_with("deleted the special file pipe"));
  EXPECT_TRUE(tools.call("delete", R"({"path": "link"})").text.starts_with("deleted the symlink link"));
  EXPECT_TRUE(tools.call("delete", R"({"path": "file"})").text.starts_with("deleted the file file"));
}

TEST_F(NativeTools, ABackgroundCommandIsReadAndEnded) {
  Toolbox tools(sandbox_, {.max_background = 1});
  const ToolResult started = tools.call("bash", R"({"command": "echo up; (setsid sleep 300 &) ; sleep 300", "background": true})");
  ASSERT_FALSE(started.failed) << started.text;
  const std::string id = parsed(started)["id"];
  EXPECT_TRUE(has(wait_for(tools, id, "up"), "[still running; go on with offset 3]"));
  const ToolResult second = tools.call("bash", R"({"command": "sleep 1", "background": true})");
  EXPECT_TRUE(second.failed && has(second.text, "1 run already")) << second.text;
  EXPECT_TRUE(tools.call("bash", R"({"command": "true", "stdin": "x", "background": true})").failed);
  const ToolResult ended = tools.call("bash_kill", R"({"id": ")" + id + R"("})");
  EXPECT_FALSE(ended.failed) << ended.text;
  EXPECT_TRUE(has(ended.text, "cancelled")) << ended.text;
  EXPECT_EQ(parsed(ended)["running"], false);
  EXPECT_TRUE(tools.call("bash_kill", R"({"id": ")" + id + R"("})").failed) << "it has ended";
  EXPECT_FALSE(tools.call("bash", R"({"command": "true", "background": true})").failed) << "there is room again";
}

TEST_F(NativeTools, ABackgroundCommandThatEndsGivesItsExitCodeAndItsRefusalsOnce) {
  Toolbox tools(sandbox_);
  const std::string id = parsed(tools.call("bash", R"({"command": "touch /usr/x; exit 4", "background": true})"))["id"];
  EXPECT_TRUE(has(wait_for(tools, id, "[exit code"), "[exit code 4]"));
  const ToolResult again = tools.call("bash_output", R"({"id": ")" + id + R"(", "wait_ms": 100})");
  EXPECT_EQ(parsed(again)["exit_code"], 4);
  EXPECT_TRUE(again.violations.empty()) << "were told with the first look";
}

TEST_F(NativeTools, TheToolboxEndsWhatRunsBehindIt) {
  Toolbox tools(sandbox_);
  ASSERT_FALSE(tools.call("bash", R"({"command": "sleep 300", "background": true})").failed);
}

TEST_F(NativeTools, APatchDoesNotLeaveByALink) {
  Toolbox tools(sandbox_);
  ASSERT_EQ(tools.call("bash", R"({"command": "mkdir in; echo a > in/f; ln -s /tmp out; ln -s in alias; ln -s in/f file"})").text,
            "[exit code 0]");
  const auto patch = [&](const std::string& name, const std::string& before) {
    return tools.call(
        "apply_patch",
        nlohmann::json{{"patch", before + "+++ b/" + name + "\n@@ -" +
                                     (before.find("null") == std::string::npos ? "1 +1 @@\n-a\n+b\n" : "0,0 +1 @@\n+b\n")}}
            .dump());
  };
  EXPECT_TRUE(patch("out/f", "--- /dev/null\n").failed);
  EXPECT_TRUE(patch("alias/f", "--- a/alias/f\n").failed) << "one file under two names";
  EXPECT_TRUE(patch("file", "--- a/file\n").failed);
  EXPECT_EQ(tools.call("read_file", R"({"path": "in/f"})").text, "a\n");
  EXPECT_FALSE(patch("in/f", "--- a/in/f\n").failed) << "the twin";
  EXPECT_EQ(tools.call("read_file", R"({"path": "in/f"})").text, "b\n");
}

TEST_F(NativeTools, WhatGitMakesIsApplied) {
  Toolbox tools(sandbox_);
  const auto sh = [&](const std::string& command) { return tools.call("bash", nlohmann::json{{"command", command}}.dump()).text; };
  ASSERT_TRUE(has(sh("git init -q a && cd a && git config user.name x && git config user.email x@x && printf '1\\n2\\n3\\n' > f && "
                     "echo gone > g && "
                     "printf 'moved\\n1\\n2\\n3\\n' > 'h h' && git add . && git commit -qm 1 && cp -r . ../b"),
                  "[exit code 0]"));
  ASSERT_TRUE(has(sh("cd a && printf '1\\nzwei\\n3' > f && git rm -q g && git mv 'h h' i && chmod +x f && mkdir n && echo n > n/n "
                     "&& : > empty && git add -A && git commit -qm 2"),
                  "[exit code 0]"));
  std::string patch = sh("cd a && git show -M HEAD");
  patch.resize(patch.rfind("[exit code 0]"));
  // The names of the patch are relative to its repository: its twin lies in b.
  for (const auto& [from, to] : {std::pair(" a/", " a/b/"), std::pair(" b/", " b/b/"), std::pair("rename from ", "rename from b/"),
                                 std::pair("rename to ", "rename to b/")}) {
    const std::string old(from);
    for (std::size_t at = patch.find(old); at != std::string::npos; at = patch.find(old, at + std::string(to).size()))
      patch.replace(at, old.size(), to);
  }
  const ToolResult done = tools.call("apply_patch", nlohmann::json{{"patch", patch}}.dump());
  ASSERT_FALSE(done.failed) << done.text << patch;
  EXPECT_EQ(sh("diff -r -x .git a b && test -x b/f && test ! -x b/i"), "[exit code 0]") << patch;
}

// The tree after the patch is, byte for byte, the one that git made the patch of.
TEST_F(NativeTools, EachKindOfChangeThatGitSeesIsApplied) {
  constexpr struct {
    const char* start;
    const char* change;
  } kRows[] = {
      {"seq 1 40 > a", "mv a b; seq 500 540 > a"},
      {"seq 1 40 > a; seq 100 140 > b", "mv b c; mv a b"},
      {"seq 1 40 > a", "cp a b; echo z >> a"},
      {"seq 1 40 > a", "cp a b; echo y >> b; echo z >> a"},
      {"seq 1 40 > a", "cp a b; mv a c; chmod +x c"},
      {"seq 1 40 > d", "rm d; mkdir d; echo y > d/x"},
      {"seq 1 40 > lib", "mv lib x; mkdir -p lib/in; mv x lib/in/lib"},
      {"mkdir -p d/e; echo x > d/x; echo y > d/e/y", "rm -r d; echo z > d"},
      {"mkdir -p lib/in; seq 1 40 > lib/in/lib", "mv lib x; mv x/in/lib lib; rm -r x"},
      {"mkdir d; echo x > d/x; echo e > e", "rm -r d; echo z > d; rm e; mkdir e; echo y > e/y"},
  };
  Toolbox tools(sandbox_);
  const auto sh = [&](const std::string& command) {
    return tools.call("bash", nlohmann::json{{"command", "set -e\n" + command}}.dump()).text;
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.change);
    ASSERT_EQ(sh(std::string("rm -rf ./*; git init -q; git config user.name x; git config user.email x@x\n"
                             "git update-ref -d HEAD || :; git read-tree --empty\n") +
                 row.start + "\ngit add -A; git commit -qm 1"),
              "[exit code 0]");
    ASSERT_EQ(sh(std::string(row.change) + "\ngit add -A; git write-tree > .git/wanted; git diff --cached -M -C HEAD > .git/patch\n"
                                           "git reset -q --hard HEAD; git clean -qfd"),
              "[exit code 0]");
    std::string patch = sh("cat .git/patch");
    patch.resize(patch.rfind("[exit code 0]"));
    const ToolResult done = tools.call("apply_patch", nlohmann::json{{"patch", patch}}.dump());
    EXPECT_FALSE(done.failed) << done.text << patch;
    EXPECT_EQ(sh("git add -A; git diff --cached --stat $(cat .git/wanted)"), "[exit code 0]") << patch;
  }
}

// More than the sandbox keeps, in characters of two bytes: what was left out is counted in characters all the same.
TEST_F(NativeTools, Document000CountsCharactersAlsoOfWhatWasNotKept) {
  Toolbox tools(sandbox_, {.texts = ToolTexts::kDocument000});
  const std::string text = tools.call("bash", R"({"command": "head -c 3000000 /dev/zero | sed 's/\\x00/\\xc3\\xa4/g'"})").text;
  EXPECT_TRUE(has(text, "[... truncated, 2800200 chars omitted ...]")) << text.substr(text.size() < 100 ? 0 : text.size() - 100);
  const std::string loud =
      tools.call("bash", R"({"command": "echo out; head -c 3000000 /dev/zero | sed 's/\\x00/\\xc3\\xa4/g' >&2"})").text;
  EXPECT_TRUE(loud.starts_with("out\n")) << "streams are cut apart";
  EXPECT_TRUE(has(loud, "[... truncated, 2800200 chars omitted ...]"));
}

TEST_F(NativeTools, TheDocumentsTellWhatEndedACommand) {
  const auto text = [&](ToolOptions options, const char* tool, const std::string& command) {
    return Toolbox(sandbox_, std::move(options)).call(tool, R"({"command": ")" + command + R"("})").text;
  };
  EXPECT_EQ(text({.texts = ToolTexts::kDocument000}, "bash", "echo hi; kill -9 $$"), "hi\n\nkilled by SIGKILL");
  EXPECT_EQ(text({.texts = ToolTexts::kDocument000}, "bash", "echo hi; exit 3"), "hi") << "the twin";
  EXPECT_EQ(text({.texts = ToolTexts::kDocument002, .timeout = 1500ms}, "run_bash", "sleep 1000"), "Error: Timeout (1.5s)");
  EXPECT_EQ(text({.texts = ToolTexts::kDocument002}, "run_bash", "echo done"), "done");
}

TEST_F(NativeTools, WhatLeadsOutAsTextIsToldAsOutsideWhateverIsMissing) {
  const auto text = [&](ToolTexts texts, const char* tool, const std::string& more = "") {
    return Toolbox(sandbox_, {.texts = texts}).call(tool, R"({"path": "nope/../../x")" + more + "}").text;
  };
  const std::string outside = "Error: Path is outside the allowed workspace: nope/../../x";
  EXPECT_EQ(text(ToolTexts::kDocument001, "readFile"), outside);
  EXPECT_EQ(text(ToolTexts::kDocument001, "writeFile", R"(, "content": "")"), outside);
  EXPECT_EQ(text(ToolTexts::kDocument001, "deleteFile"), outside);
  EXPECT_EQ(text(ToolTexts::kDocument001, "listFiles"), outside);
  EXPECT_TRUE(has(text(ToolTexts::kDocument000, "read_file"), "path escapes workspace: nope/../../x"));
  EXPECT_TRUE(
      has(text(ToolTexts::kDocument000, "str_replace", R"(, "old": "a", "new": "b")"), "path escapes workspace: nope/../../x"));
  EXPECT_EQ(text(ToolTexts::kDocument002, "read_file"), "Error: Path escapes workspace: nope/../../x");
  EXPECT_FALSE(sandbox_->stat("nope")) << "nothing was made on the way";
}

// SANDBOX_COMMANDS=true of document 001: judged first, then run at /workspace, in the same words.
TEST(ToolsInAContainer, Document001JudgesBeforeTheContainer) {
  std::unique_ptr<test::Engine> engine;
  BELLJAR_NEEDS(start_engine(engine));
  const test::TempDir place;
  place.give_to(test::user_uid(), test::user_gid());
  auto config = sandbox_config_from({{"SANDBOX_COMMANDS", "true"}, {"BELLJAR_IMAGE", test::Engine::image()}});
  ASSERT_TRUE(config) << config.error().line();
  config->workspace = place.path();
  config->container.engine = engine->address();
  const auto sandbox = make_sandbox(*config);
  ASSERT_TRUE(sandbox) << sandbox.error().line();
  const auto started = (*sandbox)->start();
  ASSERT_TRUE(started) << started.error().line();
  std::vector<std::string> judged;
  Toolbox tools(with_command_rules(*sandbox,
                                   [&](const Command& command) -> CommandVerdict {
                                     judged.push_back(command.argv.back());
                                     if (command == shell_command("rm -rf /"))
                                       return {.allowed = false, .reason = "it removes everything", .next = ""};
                                     return {};
                                   }),
                {.texts = ToolTexts::kDocument001});
  const auto text = [&](const std::string& command) {
    return tools.call("runCommand", R"({"command": ")" + command + R"("})").text;
  };
  EXPECT_EQ(text("rm -rf /"), "Command blocked: it removes everything");
  EXPECT_EQ(text("echo out; echo err >&2; exit 4"), "Command failed (exit code 4):\nout\nerr\n");
  EXPECT_EQ(text("true"), "Command completed successfully (no output)");
  EXPECT_EQ(text("pwd"), "/workspace\n");
  EXPECT_EQ(judged.size(), 4U);
  EXPECT_TRUE((*sandbox)->stop());
}

}  // namespace
}  // namespace belljar
