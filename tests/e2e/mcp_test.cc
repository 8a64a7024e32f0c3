// belljar mcp: the real program, with the official client, and with clients that misbehave.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "e2e/support_run.h"
#include "support/as_user.h"
#include "support/built.h"
#include "support/held_start.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

constexpr const char* kSdk = "@modelcontextprotocol/sdk@1.32.2";
constexpr const char* kBegin =
    R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}})"
    "\n";

class Mcp : public Run {
 protected:
  std::vector<std::string> command() const { return {kBelljar, "mcp", "--workspace", workspace_.path()}; }
  Outcome talk(const std::string& input) const { return run(command(), {.input = input}); }
  static std::string bash(int id, const std::string& text) {
    return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
           R"(,"method":"tools/call","params":{"name":"bash","_meta":{"progressToken":1},"arguments":{"command":")" + text +
           "\"}}}\n";
  }
};

TEST_F(Mcp, TheOfficialClientUsesIt) {
  BELLJAR_NEEDS(program("npm"));
  const Leftovers left({workspace_.path()});
  const TempDir place;
  const std::string rules =
      place.write("rules.toml", "[[rule]]\npattern = [\"touch\"]\ndecision = \"prompt\"\nreason = \"wants to know\"\n");
  const std::string script = place.write("client.mjs", read_file(std::string(kSourceDir) + "/tests/e2e/mcp_client.mjs"));
  const std::string npm = "cd " + place.path() + " && npm install --silent --no-audit --no-fund --no-update-notifier --cache " +
                          (place / "cache") + " " + kSdk;
  const Outcome installed = run({"/bin/sh", "-c", npm}, {.env = {{"HOME", place.path()}}, .timeout = std::chrono::minutes(4)});
  ASSERT_EQ(installed.exit_code, 0) << installed;
  const TempDir work;
  if (is_root()) work.give_to(user_uid(), user_gid());
  const Outcome outcome =
      run({"node", script, kBelljar, work.path(), rules}, {.stdin_is = Input::kNull, .timeout = std::chrono::minutes(4)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  for (const char* part : {"tools", "background", "progress_and_cancellation", "concurrent", "resources_and_logging", "elicitation",
                           "withheld", "words", "roots", "sandboxes", "http", "documents"})
    EXPECT_NE(outcome.out.find(std::string("ok ") + part + "\n"), std::string::npos) << part << outcome;
  EXPECT_EQ(left.report(), "");
}

// Of every dialect: what --write opens to commands is open to the file tools, and what nothing opens is outside.
TEST_F(Mcp, FileToolsKnowTheDirectoriesThatCommandsKnow) {
  struct Dialect {
    std::string texts, run, read, write, outside;
  };
  const std::vector<Dialect> dialects = {
      {"belljar", "bash", "read_file", "write_file", "path escapes workspace: "},
      {"document-000", "bash", "read_file", "write_file", "path escapes workspace: "},
      {"document-001", "runCommand", "readFile", "writeFile", "Error: Path is outside the allowed workspace: "},
      {"document-002", "run_bash", "read_file", "write_file", "Error: Path escapes workspace: "}};
  const TempDir place(is_root() ? "/var/lib" : "/var/tmp");
  place.write("dir/f", "WORDS-OF-F");
  place.write("other/f", "WORDS-OF-OTHER");
  if (is_root()) place.give_to(user_uid(), user_gid());
  const std::string dir = place / "dir", other = place / "other/f";
  // One at a time: calls of one client may overtake each other.
  const auto answer = [&](const std::string& texts, const std::string& tool, const std::string& arguments) {
    std::vector<std::string> words = command();
    words.insert(words.end(), {"--texts", texts, "--write", dir});
    return run(words, {.input = kBegin + (R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":")" + tool +
                                          R"(","arguments":{)" + arguments + "}}}\n")})
        .out;
  };
  const auto path = [](const std::string& name) { return R"("path":")" + name + '"'; };
  for (const Dialect& one : dialects) {
    const std::string made = dir + "/new/" + one.texts,
                      by_command = R"("command":"cat )" + made + "; echo -n of-it >" + dir + "/g\"";
    EXPECT_NE(answer(one.texts, one.read, path(dir + "/f")).find("WORDS-OF-F"), std::string::npos) << one.texts;
    (void)answer(one.texts, one.write, path(made) + R"(,"content":"by-the-tool")");
    EXPECT_EQ(read_file(made), "by-the-tool") << one.texts;
    EXPECT_NE(answer(one.texts, one.run, by_command).find("by-the-tool"), std::string::npos) << one.texts;
    EXPECT_NE(answer(one.texts, one.read, path(dir + "/g")).find("of-it"), std::string::npos) << one.texts;
    for (const std::string& told :
         {answer(one.texts, one.read, path(other)), answer(one.texts, one.write, path(other) + R"(,"content":"planted")")})
      EXPECT_NE(told.find(one.outside + other), std::string::npos) << one.texts << told;
    EXPECT_EQ(read_file(other), "WORDS-OF-OTHER") << one.texts;
  }
}

TEST_F(Mcp, AWorkspaceThatIsATransaction) {
  BELLJAR_NEEDS(program("python3"));
  const Leftovers left;
  const TempDir work("/var/tmp"), state(layers_base("/var/tmp"));
  if (is_root()) work.give_to(user_uid(), user_gid());
  const std::string script = std::string(kSourceDir) + "/tests/e2e/mcp_layers.py";
  const Outcome outcome =
      run({"python3", "-B", script, kBelljar, work.path()},
          {.stdin_is = Input::kNull, .env = {{"XDG_STATE_HOME", state.path()}}, .timeout = std::chrono::minutes(2)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "ok\n") << outcome;
  EXPECT_EQ(left.report(), "");
}

// A start may hang, as on a file system that does not answer; without its client nobody waits for it.
TEST_F(Mcp, AClientThatGoesEndsAStartThatHangs) {
  const TempDir place;
  const std::string words = place.write("in", kBegin + bash(1, "true"));
  HeldStart held([&] {
    const int input = ::open(words.c_str(), O_RDONLY), output = ::open("/dev/null", O_WRONLY);
    if (::dup2(input, STDIN_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0) return 1;
    ::execl(kBelljar, "belljar", "mcp", "--workspace", workspace_.path().c_str(), nullptr);
    return 127;
  });
  ASSERT_TRUE(held.await_call());
  EXPECT_TRUE(held.await_all_ended(std::chrono::seconds(50))) << "the start alone has a minute";
  EXPECT_EQ(held.wait(), 0);
  const Outcome twin = talk(kBegin + bash(1, "echo made"));
  EXPECT_NE(twin.out.find("made"), std::string::npos) << "one that does not hang" << twin;
}

// No sandbox and no questions: said aloud, and where it is read later.
TEST_F(Mcp, WhatItWorksUnderStandsInTheAuditTrail) {
  const TempDir place;
  const auto begun_with = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> args = command();
    args.insert(args.end(), {"--audit", place / name});
    args.insert(args.end(), more.begin(), more.end());
    const Outcome outcome = run(args, {.input = kBegin + bash(1, "true")});
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    std::string text = read_file(place / name);
    const std::size_t at = text.find(R"("kind":"session.start")");
    EXPECT_EQ(text.find(R"("kind":"session.start")", at + 1), std::string::npos) << "a sandbox, a record" << text;
    return at == std::string::npos ? text : text.substr(at, text.find('\n', at) - at);
  };
  const std::string open = begun_with("open", {"--policy", "danger-full-access", "--permission", "yolo"});
  for (const char* part : {R"("mode":"danger-full-access")", R"("permission":"yolo")", "no sandbox holds the commands"})
    EXPECT_NE(open.find(part), std::string::npos) << part << open;
  const std::string held = begun_with("held", {"--permission", "plan"});
  for (const char* part : {R"("mode":"read-only")", R"("permission":"plan")"})
    EXPECT_NE(held.find(part), std::string::npos) << held;
  EXPECT_EQ(held.find("no sandbox"), std::string::npos) << held;
}

// As `run` and `exec` take them: the directory, not how it is called, is the workspace.
TEST_F(Mcp, AWorkspaceNamedThroughALinkIsKnownByThatNameToo) {
  BELLJAR_NEEDS(program("python3"));
  const TempDir names;
  const std::string link = names / "link";
  ASSERT_EQ(::symlink(workspace_.path().c_str(), link.c_str()), 0);
  const std::string script = std::string(kSourceDir) + "/tests/e2e/mcp_link.py";
  for (const char* how : {"flag", "roots", "pwd"}) {
    const Outcome outcome = run({"python3", "-B", script, kBelljar, how, link, workspace_.path()},
                                {.stdin_is = Input::kNull, .timeout = std::chrono::minutes(2)});
    EXPECT_EQ(outcome.exit_code, 0) << how << outcome;
    EXPECT_EQ(outcome.out, "ok\n") << how << outcome;
  }
}

TEST_F(Mcp, AnOptionOfHttpIsRefusedWithoutIt) {
  const TempDir place;
  const std::string token = place.write("token", "0123456789abcdef\n");
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{{"--http-no-token"},
                                                                                    {"--http-idle", "5m"},
                                                                                    {"--http-token-file", token},
                                                                                    {"--http-host", "a"},
                                                                                    {"--http-origin", "b"}}) {
    std::vector<std::string> args = command();
    args.insert(args.end(), more.begin(), more.end());
    const Outcome refused = run(args, {.input = kBegin});
    EXPECT_EQ(refused.exit_code, 125) << more[0] << refused;
    EXPECT_NE(refused.err.find(more[0] + " is for a server over HTTP"), std::string::npos) << refused;
    args.insert(args.end(), {"--http", "nowhere"});
    EXPECT_NE(run(args, {.input = kBegin}).err.find("--http cannot be `nowhere`"), std::string::npos)
        << "the twin is looked at further";
  }
}

TEST_F(Mcp, MalformedInputIsAnsweredAndStdoutIsProtocolOnly) {
  const std::string huge = R"({"jsonrpc":"2.0","id":3,"method":"ping","params":{"x":")" + std::string(17U << 20, 'x') + "\"}}\n";
  const std::string deep = std::string(100'000, '[') + "\n";
  const Outcome outcome = talk(std::string("nonsense\n\xFF\xFE\n[]\n{}\n\n\r\n") + deep + huge + kBegin +
                               R"({"jsonrpc":"2.0","id":1,"method":"no/such"})" + "\n" + bash(2, "echo fine; echo loud >&2"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < outcome.out.size();) {
    const std::size_t end = outcome.out.find('\n', at);
    ASSERT_NE(end, std::string::npos) << "a line that does not end";
    lines.push_back(outcome.out.substr(at, end - at));
    at = end + 1;
  }
  const auto count = [&](const std::string& part) {
    int found = 0;
    for (const std::string& line : lines) found += line.find(part) == std::string::npos ? 0 : 1;
    return found;
  };
  EXPECT_EQ(count(R"("jsonrpc":"2.0")"), static_cast<int>(lines.size())) << outcome.out;
  EXPECT_EQ(count(R"("code":-32700)"), 2);
  EXPECT_EQ(count(R"("code":-32600)"), 4) << "a batch, an object that is no message, too deep, too long";
  EXPECT_EQ(count(R"("code":-32601)"), 1);
  EXPECT_EQ(count(R"([exit code 0])"), 1) << outcome.out;
}

TEST_F(Mcp, AClientThatGoesAwayLeavesNothing) {
  const auto begin = [&](const char* command_text) {
    auto running = std::make_unique<Running>(command(), test::RunOptions{.input = std::string(kBegin) + bash(1, command_text)});
    EXPECT_TRUE(running->wait_for_output("notifications/progress")) << running->out() << running->err();
    return running;
  };
  constexpr const char* kStubborn = "trap '' TERM; echo up; (setsid sleep 300 &); sleep 300";
  const struct {
    const char* how;
    void (*act)(Running&);
    int exit_code;
  } kWays[] = {
      {"closes our stdin", [](Running& running) { running.close_input(); }, 0},
      {"reads no more", [](Running& running) { running.close_output(); }, 0},
      {"sends SIGTERM", [](Running& running) { running.send(SIGTERM); }, 0},
      {"kills us", [](Running& running) { running.send(SIGKILL); }, -1},
  };
  for (const auto& way : kWays) {
    SCOPED_TRACE(way.how);
    const Leftovers left({workspace_.path()});
    const auto running = begin(kStubborn);
    way.act(*running);
    const Outcome outcome = running->wait();
    EXPECT_EQ(outcome.exit_code, way.exit_code) << outcome;
    EXPECT_FALSE(outcome.timed_out);
    EXPECT_EQ(left.report(), "");
  }
}

TEST_F(Mcp, WhatIsAskedBeforeTheEndOfInputIsStillAnswered) {
  const Outcome outcome = talk(std::string(kBegin) + bash(1, "echo one") + bash(2, "echo two"));
  EXPECT_NE(outcome.out.find("one\\n[exit code 0]"), std::string::npos) << outcome;
  EXPECT_NE(outcome.out.find("two\\n[exit code 0]"), std::string::npos) << outcome;
}

TEST_F(Mcp, AWrongCommandLineIsToldAtOnce) {
  const struct {
    std::vector<std::string> args;
    const char* words;
  } kRows[] = {
      {{"mcp", "--workspce", "x"}, "did you mean `--workspace`?"},
      {{"mcp", "--memory", "lots"}, "--memory"},
      {{"mcp", "--workspace", "/none"}, "cannot use workspace"},
      {{"mcp", "--workspace", workspace_.path(), "--rules", "/none"}, "/none"},
      {{"mcp", "--cwd", "x"}, "unknown option `--cwd`"},
      {{"mcp", "--permission", "wild"}, "one of default, auto-edit, plan, yolo"},
      {{"mcp", "--workspace", workspace_.path(), "--permission", "wild"}, "one of default, auto-edit, plan, yolo"},
      {{"mcp", "--texts", "latin"}, "document-000"},
      {{"mcp", "more"}, "was not expected here"},
  };
  for (const auto& row : kRows) {
    const Outcome outcome = belljar(row.args);
    EXPECT_EQ(outcome.exit_code, 125) << outcome;
    EXPECT_EQ(outcome.out, "") << outcome;
    EXPECT_NE(outcome.err.find(row.words), std::string::npos) << row.words << outcome;
  }
  EXPECT_EQ(talk(kBegin).exit_code, 0) << "the twin";
}

TEST_F(Mcp, ThePolicyOfTheCommandLineHolds) {
  const auto with = [&](std::vector<std::string> options, const std::string& text) {
    std::vector<std::string> line = command();
    line.insert(line.end(), options.begin(), options.end());
    return run(line, {.input = std::string(kBegin) + bash(1, text)}).out;
  };
  EXPECT_NE(with({}, "touch a && echo made").find("made\\n[exit code 0]"), std::string::npos);
  EXPECT_NE(with({"--read", workspace_.path()}, "touch b 2>/dev/null || echo refused").find("refused\\n[exit code 0]"),
            std::string::npos);
  EXPECT_NE(with({"--permission", "plan"}, "touch c").find("plan mode runs only"), std::string::npos);
  EXPECT_NE(with({"--permission", "plan"}, "echo read").find("read\\n[exit code 0]"), std::string::npos);
  // What plan mode takes for harmless runs where nothing can be changed.
  const std::string asked = "test -w . && echo writable || echo held";
  EXPECT_NE(with({"--permission", "plan"}, asked).find("held\\n[exit code 0]"), std::string::npos);
  EXPECT_NE(with({}, asked).find("writable\\n[exit code 0]"), std::string::npos);
  EXPECT_NE(with({"--write-quota", "4"}, "echo fine").find("fine\\n[exit code 0]"), std::string::npos);
}

// The list of document 003 in its own words, and in a file of the project.
TEST_F(Mcp, CommandRulesOfAPolicyAreJudgedBy) {
  const TempDir place;
  const std::string deny = place.write("deny.toml", "blocked_commands = [\"rm\", \"dd\", \"mkfs\", \"sudo\", \"su\"]\n");
  const std::string allow = place.write("allow.toml", "allowed_commands = [\"ls\", \"cat\", \"echo\"]\n");
  const auto with = [&](const std::string& policy, const std::string& text) {
    std::vector<std::string> line = command();
    if (!policy.empty()) line.insert(line.end(), {"--policy", policy});
    const Outcome outcome = run(line, {.input = std::string(kBegin) + bash(1, text)});
    return outcome.out + outcome.err;
  };
  for (const char* text : {"rm x", "cd / && dd if=x", "mkfs x", "sudo ls", "su -c ls"})
    EXPECT_NE(with(deny, text).find("bash was not allowed"), std::string::npos) << text;
  EXPECT_NE(with(deny, "rm x").find("commands.deny (rm)"), std::string::npos) << "by name";
  EXPECT_NE(with(deny, "echo rm").find("rm\\n[exit code 0]"), std::string::npos) << "the twin";
  EXPECT_NE(with(allow, "echo listed").find("listed\\n[exit code 0]"), std::string::npos);
  EXPECT_NE(with(allow, "echo a; pwd").find("bash was not allowed"), std::string::npos);
  workspace_.write(".belljar/policy.toml", "commands.deny = [\"pwd\"]\n");
  EXPECT_NE(with("", "pwd").find("commands.deny (pwd)"), std::string::npos) << "a project may narrow";
  EXPECT_NE(with("", "echo fine").find("fine\\n[exit code 0]"), std::string::npos);
  workspace_.write(".belljar/policy.toml", "commands.allow = [\"pwd\"]\n");
  EXPECT_NE(with("", "pwd").find("would run without a question"), std::string::npos) << "and not let anything run unasked";
}

}  // namespace
}  // namespace belljar::test
