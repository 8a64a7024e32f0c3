// The tools on a sandbox that executes nothing: arguments, texts, files, patches, the hook.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/command.h"
#include "belljar/decorators.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/files.h"
#include "belljar/mock.h"
#include "belljar/result.h"
#include "belljar/tools.h"
#include "tools/support_tools.h"
#include "tools/text.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;
using test::has;
using test::parsed;

class Tools : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(mock_->start());
    mock_->set_output("make", "ok\n");
    mock_->set_output("false", "", 1);
    mock_->set_output("true", "");
    ASSERT_TRUE(mock_->write_file("f", "one\ntwo\nthree\n"));
    ASSERT_TRUE(mock_->write_file("d/g", "one\none\n"));
  }
  ToolResult call(std::string_view tool, std::string_view arguments, ToolOptions options = {}) {
    return Toolbox(mock_, std::move(options)).call(tool, arguments);
  }
  std::string content(const std::string& path) { return mock_->read_file(path).value_or("(missing)"); }

  const std::shared_ptr<MockSandbox> mock_ = MockSandbox::create();
};

TEST_F(Tools, EveryRefusalHasATwinThatIsDone) {
  constexpr test::Refusal kRefusals[] = {
      {"bash", R"({"command": 7})", "it is a number, and must be of type string", R"({"command": "make"})"},
      {"bash", R"({"command": "make", "cmd": "x"})", "there is no argument `cmd`", R"({"command": "make"})"},
      {"bash", R"({})", "the argument `command` is missing", R"({"command": "make"})"},
      {"bash", R"([1])", "its arguments are no object", R"({"command": "make"})"},
      {"bash", R"({"command": )", "its arguments are no JSON", R"({"command": "make"})"},
      {"bash", R"({"command": "make", "timeout_ms": 0})", "a number from 1 on", R"({"command": "make", "timeout_ms": 1})"},
      {"bash", R"({"command": "make", "timeout_ms": 1.5})", "must be of type integer",
       R"({"command": "make", "timeout_ms": null})"},
      {"bash", R"({"command": "make", "timeout_ms": 99999999999999999999})", "must be of type integer",
       R"({"command": "make", "timeout_ms": 99999999999999999})"},
      {"bash", R"({"command": "make", "background": "yes"})", "it is a string, and must be of type boolean",
       R"({"command": "make", "background": false})"},
      {"bash", R"({"command": "make", "cwd": "../x"})", "workdir escapes workspace", R"({"command": "make", "cwd": "d"})"},
      {"bash_kill", R"({"id": 1})", "must be of type string", nullptr},
      {"bash_output", R"({"id": "c9"})", "there is no command `c9`", nullptr},
      {"read_file", R"({"path": "../f"})", "path escapes workspace: ../f", R"({"path": "f"})"},
      {"read_file", R"({"path": "nothing"})", "nothing", R"({"path": "f"})"},
      {"read_file", R"({"path": "f", "line": 0})", "a number from 1 on", R"({"path": "f", "line": 1})"},
      {"read_file", R"({"path": "f", "encoding": "latin1"})", "one of utf-8|base64", R"({"path": "f", "encoding": "base64"})"},
      {"write_file", R"({"path": "/etc/x", "content": ""})", "path escapes workspace: /etc/x",
       R"({"path": "/workspace/x", "content": ""})"},
      {"write_file", R"({"path": "x", "content": "?", "encoding": "base64"})", "it is no base64",
       R"({"path": "x", "content": "AAE=", "encoding": "base64"})"},
      {"str_replace", R"({"path": "f", "old": "", "new": "x"})", "`old` is empty", R"({"path": "f", "old": "one", "new": "x"})"},
      {"str_replace", R"({"path": "f", "old": "two", "new": "two"})", "are the same",
       R"({"path": "f", "old": "two", "new": "zwei"})"},
      {"str_replace", R"({"path": "f", "old": "four", "new": "x"})", "no place of the file is like it",
       R"({"path": "f", "old": "three", "new": "y"})"},
      {"str_replace", R"({"path": "d/g", "old": "one\n\n one", "new": "x"})", "with other white space",
       R"({"path": "d/g", "old": "one\none", "new": "one\none\none"})"},
      {"str_replace", R"({"path": "d/g", "old": "one", "new": "x"})", "3 times, on the lines 1, 2, 3",
       R"({"path": "d/g", "old": "one", "new": "x", "all": true})"},
      {"delete", R"({"path": "d"})", "d", R"({"path": "d", "recursive": true})"},
      {"list", R"({"path": "f"})", "f", R"({})"},
      {"glob", R"({"pattern": "*", "max_results": 0})", "a number from 1 on", R"({"pattern": "*", "max_results": 1})"},
  };
  Toolbox tools(mock_);
  for (const test::Refusal& row : kRefusals) {
    SCOPED_TRACE(std::string(row.tool) + " " + row.refused);
    const ToolResult refused = tools.call(row.tool, row.refused);
    EXPECT_TRUE(refused.failed) << refused.text;
    EXPECT_TRUE(has(refused.text, row.words)) << refused.text;
    EXPECT_TRUE(refused.structured.empty());
    if (row.twin == nullptr) continue;
    const ToolResult done = tools.call(row.tool, row.twin);
    EXPECT_FALSE(done.failed) << done.text;
    EXPECT_TRUE(parsed(done).is_object()) << done.structured;
  }
}

// JSON Schema since draft 6: what has no fraction is an integer, however it is written.
TEST_F(Tools, AnIntegerMayBeWrittenWithAZeroFraction) {
  for (const char* time : {"1000", "1000.0", "1e3", "1.0e3"})
    EXPECT_FALSE(call("bash", std::string(R"({"command": "true", "timeout_ms": )") + time + "}").failed) << time;
  for (const char* time : {"1000.5", "1e300", "-1.0", "0.0", "1e16"}) {
    const ToolResult refused = call("bash", std::string(R"({"command": "true", "timeout_ms": )") + time + "}");
    EXPECT_TRUE(refused.failed && has(refused.text, "`timeout_ms` does not fit")) << time << refused.text;
  }
}

TEST_F(Tools, AnUnknownToolIsToldWhichThereAre) {
  const ToolResult result = call("sh", "{}");
  EXPECT_TRUE(result.failed);
  EXPECT_TRUE(has(result.text, "there is no tool `sh`")) << result.text;
  EXPECT_TRUE(has(result.text, "apply_patch")) << result.text;
}

TEST_F(Tools, TheExitCodeIsAlwaysShown) {
  EXPECT_EQ(call("bash", R"({"command": "make"})").text, "ok\n[exit code 0]");
  EXPECT_EQ(call("bash", R"({"command": "true"})").text, "[exit code 0]");
  const ToolResult failed = call("bash", R"({"command": "false"})");
  EXPECT_EQ(failed.text, "[exit code 1]");
  EXPECT_FALSE(failed.failed) << "what a command does is a result";
  EXPECT_EQ(parsed(failed)["exit_code"], 1);
  mock_->set_delay("make", std::chrono::hours(1));
  const ToolResult late = call("bash", R"({"command": "make", "timeout_ms": 50})");
  EXPECT_EQ(late.text, "[exit code 124; timeout: command timeout after 50ms]");
  EXPECT_EQ(parsed(late)["reason"], "timeout");
}

TEST_F(Tools, LongOutputKeepsHeadAndTailAndCanBeReadOn) {
  std::string lines;
  for (int i = 0; i < 20000; ++i) lines += std::to_string(i) + "\n";
  mock_->set_output("seq", lines);
  Toolbox tools(mock_, {.text_bytes = 2000});
  const ToolResult result = tools.call("bash", R"({"command": "seq"})");
  EXPECT_TRUE(result.text.starts_with("0\n1\n2\n")) << result.text.substr(0, 100);
  EXPECT_TRUE(result.text.ends_with("19999\n[exit code 0]"));
  EXPECT_LT(result.text.size(), 2300U);
  EXPECT_TRUE(has(result.text, "of 108890 bytes, 19556 lines left out"));
  const auto structured = parsed(result);
  const std::string id = structured["id"];
  std::string all;
  std::uint64_t offset = 0;
  for (int i = 0; i < 1000; ++i) {
    const ToolResult page = tools.call("bash_output", R"({"id": ")" + id + R"(", "offset": )" + std::to_string(offset) + "}");
    ASSERT_FALSE(page.failed) << page.text;
    const auto json = parsed(page);
    all += json["output"].get<std::string>();
    offset = json["next_offset"];
    if (offset == json["total"]) break;
  }
  EXPECT_EQ(all, lines);
  const ToolResult ended = tools.call("bash_kill", R"({"id": ")" + id + R"("})");
  EXPECT_TRUE(ended.failed && has(ended.text, "it has ended")) << ended.text;
}

TEST_F(Tools, TextIsNeverCutInsideACharacter) {
  std::string umlauts;
  for (int i = 0; i < 5000; ++i) umlauts += "\xC3\xA4";
  ASSERT_TRUE(mock_->write_file("u", "x" + umlauts));
  const ToolResult result = call("read_file", R"({"path": "u"})", {.text_bytes = 2000});
  EXPECT_FALSE(has(result.text, "\xA4\xA4"));
  EXPECT_TRUE(has(result.text, "\xC3\xA4\n[... ")) << result.text.substr(900, 200);
  EXPECT_TRUE(has(result.text, "0 lines left out; read them with `line` and `lines` ...]\n\xC3\xA4"));
  EXPECT_FALSE(has(result.structured, "\xEF\xBF\xBD"));
}

TEST_F(Tools, FilesAreReadByLinesAndWritten) {
  EXPECT_EQ(call("read_file", R"({"path": "f"})").text, "one\ntwo\nthree\n");
  EXPECT_EQ(call("read_file", R"({"path": "f", "line": 2, "lines": 1})").text, "two\n");
  EXPECT_EQ(call("read_file", R"({"path": "f", "line": 9})").text, "(the file has 3 lines)");
  EXPECT_EQ(call("write_file", R"({"path": "n/e", "content": ""})").text, "wrote 0 bytes to n/e");
  EXPECT_EQ(call("read_file", R"({"path": "n/e"})").text, "(empty)");
  EXPECT_EQ(call("write_file", R"({"path": "f", "content": "four\n", "append": true})").text, "appended 5 bytes to f");
  EXPECT_EQ(content("f"), "one\ntwo\nthree\nfour\n");
  EXPECT_EQ(call("write_file", R"({"path": "b", "content": "/wA=", "encoding": "base64"})").text, "wrote 2 bytes to b");
  EXPECT_EQ(content("b"), std::string("\xFF\0", 2));
  const ToolResult binary = call("read_file", R"({"path": "b"})");
  EXPECT_TRUE(binary.failed && has(binary.text, "are no UTF-8")) << binary.text;
  EXPECT_EQ(call("read_file", R"({"path": "b", "encoding": "base64"})").text, "/wA=");
  EXPECT_EQ(call("list", "{}").text, "b  2\nd/\nf  19\nn/\n");
  EXPECT_EQ(call("glob", R"({"pattern": "**/g"})").text, "d/g\n");
  EXPECT_EQ(call("grep", R"({"text": "TWO", "ignore_case": true})").text, "f:2:two\n");
  EXPECT_EQ(call("grep", R"({"text": "TWO"})").text, "(nothing found)");
}

TEST_F(Tools, APatchMayCallTheWorkspaceByItsOtherName) {
  const auto patch = [&](const std::string& top, const ToolOptions& options) {
    const std::string text = "--- " + top + "/f\n+++ " + top + "/f\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n";
    return call("apply_patch", nlohmann::json{{"patch", text}}.dump(), options);
  };
  EXPECT_TRUE(has(patch("/home/u/link", {}).text, "path escapes workspace: /home/u/link/f"));
  EXPECT_TRUE(has(patch("/home/u/link2", {.workspace_name = "/home/u/link"}).text, "path escapes workspace"));
  EXPECT_TRUE(has(patch("/home/u/link/..", {.workspace_name = "/home/u/link"}).text, "path escapes workspace"));
  EXPECT_EQ(content("f"), "one\ntwo\nthree\n");
  EXPECT_EQ(patch("/home/u/link", {.workspace_name = "/home/u/link"}).text, "M f (+1 -1)\n");
  EXPECT_EQ(content("f"), "one\nzwei\nthree\n");
}

TEST_F(Tools, TheHookIsAskedBeforeAnythingIsDone) {
  std::vector<ToolRequest> seen;
  const auto hook = [&](const ToolRequest& request) {
    seen.push_back(request);
    return request.command == "make" ? ToolVerdict{} : ToolVerdict{false, "nobody wants that", "ask somebody"};
  };
  EXPECT_FALSE(call("bash", R"({"command": "make"})", {.hook = hook}).failed);
  const std::size_t before = mock_->calls().size();
  const ToolResult refused = call("bash", R"({"command": "true"})", {.hook = hook});
  EXPECT_EQ(refused.text, "Error: bash was not allowed\nreason: nobody wants that\nnext: ask somebody");
  EXPECT_TRUE(call("delete", R"({"path": "f"})", {.hook = hook}).failed);
  EXPECT_TRUE(call("apply_patch",
                   R"({"patch": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+1\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n"})",
                   {.hook = hook})
                  .failed);
  EXPECT_EQ(mock_->calls().size(), before) << "the sandbox was not touched";
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen[0].kind, ToolKind::kExecute);
  EXPECT_EQ(seen[2].paths, std::vector<std::string>{"f"});
  EXPECT_EQ(seen[3].paths, (std::vector<std::string>{"f", "new"}));
  EXPECT_EQ(seen[3].kind, ToolKind::kWrite);
}

TEST_F(Tools, ACallsOwnHookIsAskedInstead) {
  const ToolHook yes = [](const ToolRequest&) { return ToolVerdict{}; };
  const ToolHook no = [](const ToolRequest&) { return ToolVerdict{false, "nobody wants that", ""}; };
  EXPECT_FALSE(Toolbox(mock_, {.hook = no}).call("bash", R"({"command": "make"})", {.hook = yes}).failed);
  EXPECT_TRUE(Toolbox(mock_, {.hook = yes}).call("bash", R"({"command": "make"})", {.hook = no}).failed);
}

TEST_F(Tools, CancelledBeforeTheStartNothingIsDone) {
  const CancelToken cancel = CancelToken::create().value();
  cancel.cancel();
  const std::size_t before = mock_->calls().size();
  EXPECT_TRUE(Toolbox(mock_).call("write_file", R"({"path": "f", "content": ""})", {.cancel = cancel}).failed);
  EXPECT_EQ(mock_->calls().size(), before);
}

// Tells what calls of files are given, and ends the token of the call once `cancel_at` of them have come.
class Timed final : public SandboxDecorator {
 public:
  using SandboxDecorator::SandboxDecorator;
  Result<std::string> read_file(const std::string& path, const ReadOptions& options) override {
    note(options.call);
    return inner().read_file(path, options);
  }
  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override {
    note(options.call);
    return inner().write_file(path, bytes, options);
  }
  Result<void> remove(const std::string& path, const RemoveOptions& options) override {
    note(options.call);
    return inner().remove(path, options);
  }
  Result<FileInfo> stat(const std::string& path, const CallOptions& options) override {
    note(options);
    return inner().stat(path, options);
  }
  Result<std::vector<FileInfo>> list(const std::string& path, const CallOptions& options) override {
    note(options);
    return inner().list(path, options);
  }
  std::vector<CallOptions> seen;
  std::size_t cancel_at = 1000;
  CancelToken cancel;

 private:
  void note(const CallOptions& options) {
    seen.push_back(options);
    if (seen.size() == cancel_at) cancel.cancel();
  }
};

TEST_F(Tools, TokenAndDeadlineReachEveryCallOfAFile) {
  const auto timed = std::make_shared<Timed>(mock_);
  const CancelToken cancel = CancelToken::create().value();
  const auto deadline = std::chrono::steady_clock::now() + 1h;
  const auto done = [&](ToolTexts texts, const char* tool, const char* arguments) {
    timed->seen.clear();
    const ToolResult result = Toolbox(timed, {.texts = texts}).call(tool, arguments, {.cancel = cancel, .deadline = deadline});
    EXPECT_FALSE(result.failed) << tool << ": " << result.text;
    EXPECT_FALSE(timed->seen.empty()) << tool;
    for (const CallOptions& given : timed->seen) {
      EXPECT_EQ(given.deadline, deadline) << tool;
      EXPECT_EQ(given.cancel.fd(), cancel.fd()) << tool;
    }
  };
  done(ToolTexts::kBelljar, "read_file", R"({"path": "f"})");
  done(ToolTexts::kBelljar, "read_file", R"({"path": "f", "encoding": "base64"})");
  done(ToolTexts::kBelljar, "write_file", R"({"path": "new", "content": "x"})");
  done(ToolTexts::kBelljar, "str_replace", R"({"path": "f", "old": "two", "new": "zwei"})");
  done(ToolTexts::kBelljar, "list", "{}");
  done(ToolTexts::kBelljar, "apply_patch", R"({"patch": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+1\n"})");
  done(ToolTexts::kBelljar, "delete", R"({"path": "new"})");
  done(ToolTexts::kDocument000, "read_file", R"({"path": "f"})");
  done(ToolTexts::kDocument001, "writeFile", R"({"path": "one", "content": "x"})");
  done(ToolTexts::kDocument001, "readFile", R"({"path": "one"})");
  done(ToolTexts::kDocument001, "listFiles", R"({"path": "."})");
  done(ToolTexts::kDocument001, "deleteFile", R"({"path": "one"})");
  done(ToolTexts::kDocument002, "read_file", R"({"path": "f"})");
}

TEST_F(Tools, ADeadlineThatHasPassedLetsNothingBegin) {
  const auto now = std::chrono::steady_clock::now();
  const std::size_t before = mock_->calls().size();
  Toolbox tools(mock_);
  EXPECT_TRUE(tools.call("write_file", R"({"path": "f", "content": ""})", {.deadline = now - 1s}).failed);
  EXPECT_TRUE(tools.call("bash", R"({"command": "make"})", {.deadline = now - 1s}).failed);
  EXPECT_EQ(mock_->calls().size(), before);
  EXPECT_FALSE(tools.call("write_file", R"({"path": "f", "content": ""})", {.deadline = now + 1h}).failed);
  EXPECT_FALSE(tools.call("bash", R"({"command": "make"})", {.deadline = now + 1h}).failed);
  EXPECT_GT(mock_->calls().size(), before) << "the twins";
}

// However far it has come: what is put back is not cancelled with the rest.
TEST_F(Tools, APatchThatIsCancelledOnItsWayIsTakenBack) {
  const char* patch = R"({"patch": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+1\n--- a/d/g\n+++ b/d/g\n@@ -1 +1 @@\n-one\n+1\n"})";
  ASSERT_TRUE(mock_->make_dir("empty"));
  std::size_t cancelled = 0;
  for (std::size_t at = 1; at < 100; ++at) {
    const auto timed = std::make_shared<Timed>(mock_);
    timed->cancel = CancelToken::create().value();
    timed->cancel_at = at;
    const ToolResult result = Toolbox(timed).call("apply_patch", patch, {.cancel = timed->cancel});
    if (!result.failed) break;  // the patch has fewer calls: the twin
    ++cancelled;
    EXPECT_EQ(content("f"), "one\ntwo\nthree\n") << at;
    EXPECT_EQ(content("d/g"), "one\none\n") << at;
    EXPECT_TRUE(mock_->stat("empty"));
  }
  EXPECT_GE(cancelled, 4U);
  EXPECT_EQ(content("f"), "1\ntwo\nthree\n");
  EXPECT_EQ(content("d/g"), "1\none\n");
}

TEST_F(Tools, SchemasSayWhatTheCheckDoes) {
  for (const ToolTexts texts : {ToolTexts::kBelljar, ToolTexts::kDocument000, ToolTexts::kDocument001, ToolTexts::kDocument002}) {
    for (const ToolSpec& spec : tool_specs(texts)) {
      SCOPED_TRACE(spec.name);
      const auto schema = nlohmann::json::parse(spec.input_schema, nullptr, false);
      ASSERT_TRUE(schema.is_object());
      EXPECT_EQ(schema["type"], "object");
      EXPECT_EQ(schema["additionalProperties"], false);
      for (const auto& name : schema.value("required", nlohmann::json::array())) EXPECT_TRUE(schema["properties"].contains(name));
      EXPECT_TRUE(spec.output_schema.empty() || nlohmann::json::accept(spec.output_schema)) << spec.output_schema;
      EXPECT_FALSE(spec.description.empty());
    }
  }
}

std::string patch_call(const std::string& patch) { return nlohmann::json{{"patch", patch}}.dump(); }

TEST_F(Tools, APatchIsAppliedAsAWhole) {
  const ToolResult done = call("apply_patch", patch_call("--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n"
                                                         "--- /dev/null\n+++ b/deep/er/new\n@@ -0,0 +1 @@\n+new\n"
                                                         "diff --git a/d/g b/d/h\nrename from d/g\nrename to d/h\n"
                                                         "--- a/d/g\n+++ b/d/h\n@@ -1,2 +1,2 @@\n one\n-one\n+two\n"));
  EXPECT_FALSE(done.failed) << done.text;
  EXPECT_EQ(done.text, "R d/g -> d/h (+1 -1)\nA deep/er/new (+1 -0)\nM f (+1 -1)\n");
  EXPECT_EQ(content("f"), "one\nzwei\nthree\n");
  EXPECT_EQ(content("deep/er/new"), "new\n");
  EXPECT_EQ(content("d/h"), "one\ntwo\n");
  EXPECT_EQ(content("d/g"), "(missing)");
  EXPECT_EQ(call("apply_patch", patch_call("--- a/d/h\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n")).text, "D d/h (+0 -2)\n");
  EXPECT_EQ(content("d/h"), "(missing)");
  EXPECT_EQ(call("apply_patch", patch_call("diff --git a/f b/f\nold mode 100644\nnew mode 100755\n")).text, "M f (+0 -0)\n");
  EXPECT_EQ(mock_->stat("f")->mode, 0755U);
}

TEST_F(Tools, WhatIsOnlyCopiedFromIsNoChange) {
  const std::string copy = "diff --git a/f b/f2\ncopy from f\ncopy to f2\n";
  EXPECT_EQ(call("apply_patch", patch_call(copy)).text, "A f2 (+0 -0)\n");
  EXPECT_EQ(call("apply_patch",
                 patch_call(
                     "diff --git a/f b/f3\ncopy from f\ncopy to f3\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+1\n"))
                .text,
            "M f (+1 -1)\nA f3 (+0 -0)\n");
}

// git-diff(1): "All the file1 files in the output refer to files before the commit, and all the file2 files refer to files after".
TEST_F(Tools, WhatIsCopiedOrRenamedIsTheFileBeforeTheDiff) {
  const std::string edit = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,3 +1 @@\n-one\n-two\n-three\n+other\n";
  const std::string copy = "diff --git a/f b/h\ncopy from f\ncopy to h\n";
  EXPECT_EQ(call("apply_patch", patch_call(edit + copy)).text, "M f (+1 -3)\nA h (+0 -0)\n");
  EXPECT_EQ(content("f"), "other\n");
  EXPECT_EQ(content("h"), "one\ntwo\nthree\n");
  // What is patched twice is patched on; a renamed file that was changed before could mean either, and loses nothing.
  ASSERT_TRUE(mock_->write_file("f", "one\ntwo\nthree\n"));
  const std::string rename = "diff --git a/f b/i\nrename from f\nrename to i\n";
  const ToolResult refused = call("apply_patch", patch_call(edit + rename));
  EXPECT_TRUE(refused.failed) << refused.text;
  EXPECT_TRUE(has(refused.text, "it is renamed, and the patch has changed it before")) << refused.text;
  EXPECT_EQ(content("f"), "one\ntwo\nthree\n");
  // Of a series, each commit begins where the one before it ended.
  const std::string commit = "From " + std::string(40, 'a') + " Mon Sep 17 00:00:00 2001\nSubject: [PATCH]\n\n---\n";
  const ToolResult series = call("apply_patch", patch_call(commit + edit + "-- \n2.39\n\n" + commit + rename));
  EXPECT_FALSE(series.failed) << series.text;
  EXPECT_EQ(content("i"), "other\n");
  EXPECT_EQ(content("f"), "(missing)");
}

TEST_F(Tools, AFileTurnsIntoADirectoryAndBack) {
  const std::string into =
      "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n"
      "diff --git a/f/x/y b/f/x/y\nnew file mode 100644\n--- /dev/null\n+++ b/f/x/y\n@@ -0,0 +1 @@\n+y\n";
  EXPECT_EQ(call("apply_patch", patch_call(into)).text, "D f (+0 -3)\nA f/x/y (+1 -0)\n");
  EXPECT_EQ(content("f/x/y"), "y\n");
  const std::string back = "diff --git a/f/x/y b/f\nrename from f/x/y\nrename to f\n";
  EXPECT_EQ(call("apply_patch", patch_call(back)).text, "R f/x/y -> f (+0 -0)\n");
  EXPECT_EQ(content("f"), "y\n");
  EXPECT_EQ(call("apply_patch", patch_call("diff --git a/f b/f/f\nrename from f\nrename to f/f\n")).text, "R f -> f/f (+0 -0)\n");
  EXPECT_EQ(content("f/f"), "y\n");
}

TEST_F(Tools, WhatStandsInTheWayAndIsNotRemovedIsRefused) {
  constexpr const char* kMake = "--- /dev/null\n+++ b/f/x\n@@ -0,0 +1 @@\n+x\n";
  constexpr const char* kReplace = "diff --git a/d/g b/d\nrename from d/g\nrename to d\n";
  const ToolResult under = call("apply_patch", patch_call(kMake));
  EXPECT_TRUE(under.failed);
  EXPECT_TRUE(has(under.text, "`f` is a file")) << under.text;
  ASSERT_TRUE(mock_->write_file("d/stays", "s"));
  const ToolResult over = call("apply_patch", patch_call(kReplace));
  EXPECT_TRUE(over.failed);
  EXPECT_TRUE(has(over.text, "it is a directory, and `d/stays` stays in it")) << over.text;
  EXPECT_EQ(content("d/g"), "one\none\n");
  ASSERT_TRUE(mock_->remove("d/stays"));
  EXPECT_FALSE(call("apply_patch", patch_call(kReplace)).failed) << "the twin";
  EXPECT_EQ(content("d"), "one\none\n");
}

// Has room for so many writes, and then none until one was refused.
class FullDisk final : public SandboxDecorator {
 public:
  FullDisk(SandboxPtr inner, int writes) : SandboxDecorator(std::move(inner)), left_(writes) {}
  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override {
    if (left_-- == 0) return Error(Code::kResourceExhausted, "the disk is full");
    return inner().write_file(path, bytes, options);
  }

 private:
  int left_;
};

TEST_F(Tools, WhatTurnedIsTurnedBackWhenALaterStepFails) {
  const std::string both =
      "diff --git a/d/g b/d\nrename from d/g\nrename to d\ndiff --git a/f b/f/f\nrename from f\nrename to f/f\n";
  ASSERT_TRUE(mock_->remove("d", {.depth = Depth::kTree}));
  ASSERT_TRUE(mock_->write_file("d/g", "one\none\n", {.mode = 0640}));
  for (int writes = 0; writes < 2; ++writes) {
    // The write after `writes` of them fails: f/f is the second.
    const ToolResult refused = Toolbox(std::make_shared<FullDisk>(mock_, writes)).call("apply_patch", patch_call(both));
    EXPECT_TRUE(refused.failed) << refused.text;
    EXPECT_TRUE(has(refused.text, "everything is as it was before")) << refused.text;
    EXPECT_EQ(content("f"), "one\ntwo\nthree\n");
    EXPECT_EQ(content("d/g"), "one\none\n");
    EXPECT_EQ(mock_->stat("d/g")->mode, 0640U);
  }
  EXPECT_FALSE(call("apply_patch", patch_call(both)).failed) << "the twin";
  EXPECT_EQ(content("f/f"), "one\ntwo\nthree\n");
}

TEST_F(Tools, AHunkWithoutNumbersChangesNothingAndFails) {
  for (const char* header : {"@@", "@@ @@", "@@ def foo():"}) {
    const ToolResult refused = call("apply_patch", patch_call(std::string("--- a/f\n+++ b/f\n") + header + "\n-one\n+1\n"));
    EXPECT_TRUE(refused.failed) << refused.text;
    EXPECT_TRUE(has(refused.text, "write the numbers of both sides")) << refused.text;
    EXPECT_EQ(content("f"), "one\ntwo\nthree\n");
  }
}

TEST_F(Tools, APatternThatLeadsOutIsRefused) {
  for (const char* pattern : {"../**", "d/../../*", ".."}) {
    EXPECT_TRUE(call("glob", nlohmann::json{{"pattern", pattern}}.dump()).failed) << pattern;
    EXPECT_TRUE(call("grep", nlohmann::json{{"text", "one"}, {"files", pattern}}.dump()).failed) << pattern;
  }
  EXPECT_FALSE(call("glob", R"({"pattern":"d/..*"})").failed) << "a name that begins with dots";
  EXPECT_EQ(call("glob", R"({"pattern":"./**/./g"})").text, "d/g\n");
  EXPECT_TRUE(call("glob", R"({"pattern":"[^f]*"})").failed) << "`[^` negates nothing";
  EXPECT_FALSE(call("glob", R"({"pattern":"[!f]*"})").failed);
  EXPECT_FALSE(call("grep", R"({"text":"one","files":"d/*"})").failed);
}

TEST_F(Tools, OneFileMayBePatchedTwice) {
  const ToolResult done = call(
      "apply_patch", patch_call("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+1\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-1\n+eins\n two\n"));
  EXPECT_FALSE(done.failed) << done.text;
  EXPECT_EQ(content("f"), "eins\ntwo\nthree\n");
}

TEST_F(Tools, OfAPatchThatFailsNothingIsApplied) {
  const std::string fine = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+1\n";
  constexpr struct {
    const char* patch;
    const char* words;
  } kRows[] = {
      {"--- a/d/g\n+++ b/d/g\n@@ -1 +1 @@\n-nine\n+9\n", "does not fit"},
      {"--- a/../out\n+++ b/../out\n@@ -1 +1 @@\n-a\n+b\n", "path escapes workspace: ../out"},
      {"--- a/x\n+++ /etc/passwd\n@@ -0,0 +1 @@\n+b\n", "path escapes workspace: /etc/passwd"},
      {"diff --git a/d/g b/../../out\nrename from d/g\nrename to ../../out\n", "path escapes workspace: ../../out"},
      {"--- /dev/null\n+++ b/d/../../out\n@@ -0,0 +1 @@\n+b\n", "path escapes workspace"},
      {"--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+b\n", "there is no such file"},
      {"--- /dev/null\n+++ b/d/g\n@@ -0,0 +1 @@\n+b\n", "it is there already"},
      {"diff --git a/d/g b/f\nrename from d/g\nrename to f\n", "it is there already"},
      {"--- a/d/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "does not hold all of it"},
      {"--- a/d\n+++ b/d\n@@ -1 +1 @@\n-a\n+b\n", "it is no ordinary file"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.patch);
    for (const std::string& patch : {fine + row.patch, row.patch + fine}) {
      const ToolResult refused = call("apply_patch", patch_call(patch));
      EXPECT_TRUE(refused.failed) << refused.text;
      EXPECT_TRUE(has(refused.text, row.words)) << refused.text;
      EXPECT_EQ(content("f"), "one\ntwo\nthree\n");
      EXPECT_EQ(content("d/g"), "one\none\n");
    }
  }
  EXPECT_FALSE(call("apply_patch", patch_call(fine)).failed) << "the twin";
  EXPECT_EQ(content("f"), "1\ntwo\nthree\n");
}

TEST_F(Tools, WhatWasWrittenIsPutBackWhenTheSandboxRefuses) {
  const std::string patch = patch_call(
      "--- /dev/null\n+++ b/a/new\n@@ -0,0 +1 @@\n+new\n--- a/d/g\n+++ b/d/g\n@@ -1,2 +1,2 @@\n one\n-one\n+two\n--- a/f\n+++ "
      "/dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n");
  mock_->fail_next("remove", Error(Code::kPermissionDenied, "no").reason("because"));
  const ToolResult refused = call("apply_patch", patch);
  EXPECT_TRUE(refused.failed);
  EXPECT_TRUE(has(refused.text, "because; everything is as it was before")) << refused.text;
  EXPECT_EQ(content("f"), "one\ntwo\nthree\n");
  EXPECT_EQ(content("d/g"), "one\none\n");
  EXPECT_FALSE(mock_->stat("a")) << "made for the patch";
  const ToolResult done = call("apply_patch", patch);
  EXPECT_FALSE(done.failed) << done.text;
  EXPECT_EQ(content("d/g"), "one\ntwo\n");
  EXPECT_EQ(content("f"), "(missing)");
}

TEST_F(Tools, TheTextsOfTheDocuments) {
  const ToolOptions first{.texts = ToolTexts::kDocument000}, second{.texts = ToolTexts::kDocument001},
      third{.texts = ToolTexts::kDocument002};
  mock_->set_output("both", "out\n", 0, "err\n");
  mock_->set_output("bad", "out\n", 3, "err\n");
  ASSERT_TRUE(mock_->write_file("e", ""));
  const struct {
    const ToolOptions& options;
    const char* tool;
    const char* arguments;
    const char* text;
  } kRows[] = {
      {first, "bash", R"({"command": "both"})", "out\n\nerr"},
      {first, "bash", R"({"command": "true"})", "(no output)"},
      {first, "bash", R"({"command": "false"})", "(exit code 1)"},
      {first, "read_file", R"({"path": "e"})", "(empty)"},
      {first, "read_file", R"({"path": "f"})", "one\ntwo\nthree\n"},
      {second, "runCommand", R"({"command": "both"})", "out\nerr\n"},
      {second, "runCommand", R"({"command": "bad"})", "Command failed (exit code 3):\nout\nerr\n"},
      {second, "runCommand", R"({"command": "true"})", "Command completed successfully (no output)"},
      {second, "readFile", R"({"path": "../x"})", "Error: Path is outside the allowed workspace: ../x"},
      {second, "readFile", R"({"path": "none"})", "Error: File not found: none"},
      {second, "readFile", R"({"path": "d"})", "Error reading file: cannot read `d`: Is a directory (mock)"},
      {second, "writeFile", R"({"path": "d", "content": ""})", "Error writing file: cannot write `d`: Is a directory (mock)"},
      {second, "writeFile", R"({"path": "w", "content": "ä😀"})", "Successfully wrote 3 characters to w"},
      {second, "writeFile", R"({"path": "/x", "content": ""})", "Error: Path is outside the allowed workspace: /x"},
      {second, "deleteFile", R"({"path": "../x"})", "Error: Path is outside the allowed workspace: ../x"},
      {second, "listFiles", R"({"path": ".."})", "Error: Path is outside the allowed workspace: .."},
      {second, "listFiles", R"({"path": "d"})", "g"},
      {third, "run_bash", R"({"command": "both"})", "out\nerr"},
      {third, "run_bash", R"({"command": "true"})", "(no output)"},
      {third, "read_file", R"({"path": "../x"})", "Error: Path escapes workspace: ../x"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(std::string(row.tool) + row.arguments);
    EXPECT_EQ(call(row.tool, row.arguments, row.options).text, row.text);
  }
  mock_->set_delay("both", std::chrono::hours(1));
  EXPECT_EQ(call("bash", R"({"command": "both"})", first).text, "command timeout after 30000ms");
  EXPECT_EQ(call("runCommand", R"({"command": "both"})", second).text,
            "Command failed (exit code 124):\ncommand timeout after 30000ms");
  EXPECT_EQ(call("run_bash", R"({"command": "both"})", third).text, "Error: Timeout (120s)");
  for (const auto& [given, text] : {std::pair(1500ms, "1.5s"), {2000ms, "2s"}, {60ms, "0.06s"}, {600'000ms, "120s"}}) {
    const ToolOptions shorter{.texts = ToolTexts::kDocument002, .timeout = given};
    EXPECT_EQ(call("run_bash", R"({"command": "both"})", shorter).text, std::string("Error: Timeout (") + text + ")");
  }
}

TEST_F(Tools, Document002GivesACommand120Seconds) {
  const ToolOptions third{.texts = ToolTexts::kDocument002};
  mock_->set_output("long", "done");
  mock_->set_delay("long", 120s);
  EXPECT_EQ(call("run_bash", R"({"command": "long"})", third).text, "done");
  mock_->set_delay("long", 120s + 1ms);
  EXPECT_EQ(call("run_bash", R"({"command": "long"})", third).text, "Error: Timeout (120s)");
}

TEST_F(Tools, Document001DescribesItsToolsInItsOwnWords) {
  const struct {
    const char* tool;
    const char* description;
    const char* parameters;
  } kRows[] = {
      {"runCommand",
       "Execute a shell command and return its output. Use this for system operations, running scripts, or interacting with the "
       "operating system.",
       R"({"command":{"type":"string","description":"The shell command to execute"}})"},
      {"readFile", "Read the contents of a file at the specified path. Use this to examine file contents.",
       R"({"path":{"type":"string","description":"The path to the file to read"}})"},
      {"writeFile", "Write content to a file at the specified path. Creates the file if it doesn't exist, overwrites if it does.",
       R"({"path":{"type":"string","description":"The path to the file to write"},"content":{"type":"string","description":"The content to write to the file"}})"},
  };
  const std::vector<ToolSpec> specs = tool_specs(ToolTexts::kDocument001);
  for (const auto& row : kRows) {
    const auto found = std::ranges::find(specs, row.tool, &ToolSpec::name);
    ASSERT_NE(found, specs.end()) << row.tool;
    EXPECT_EQ(found->description, row.description);
    EXPECT_EQ(nlohmann::json::parse(found->input_schema)["properties"], nlohmann::json::parse(row.parameters))
        << found->input_schema;
  }
}

TEST_F(Tools, Documents000And001ShowWhatEndedACommand) {
  const ToolOptions first{.texts = ToolTexts::kDocument000}, second{.texts = ToolTexts::kDocument001};
  const auto ended = [&](const char* out, const char* err) {
    mock_->set_answer("killed", [out, err](const Command&, const ExecOptions&) {
      ExecResult result;
      result.exit_code = 137;
      result.reason = Reason::kMemory;
      result.message = "it needed more than its 64MiB";
      result.out.bytes = out, result.err.bytes = err;
      result.out.total = result.out.bytes.size(), result.err.total = result.err.bytes.size();
      return result;
    });
    return call("bash", R"({"command": "killed"})", first).text;
  };
  EXPECT_EQ(ended("", ""), "it needed more than its 64MiB");
  EXPECT_EQ(ended("half\n", ""), "half\n\nit needed more than its 64MiB");
  EXPECT_EQ(ended("", "Killed\n"), "Killed\nit needed more than its 64MiB");
  const std::string said = call("runCommand", R"({"command": "killed"})", second).text;
  EXPECT_EQ(said, "Command failed (exit code 137):\nKilled\nit needed more than its 64MiB");
  EXPECT_EQ(call("bash", R"({"command": "false"})", first).text, "(exit code 1)") << "it ended by itself";
}

TEST_F(Tools, ARefusedCommandReadsAsInTheDocuments) {
  const auto ruled = with_command_rules(mock_, [](const Command& command) -> CommandVerdict {
    if (command == shell_command("mkfs /dev/sda")) return {.allowed = false, .reason = "it formats a disk", .next = "do not"};
    return {};
  });
  const auto text = [&](ToolTexts texts, std::string_view tool, std::string_view command) {
    return Toolbox(ruled, {.texts = texts}).call(tool, R"({"command": ")" + std::string(command) + R"("})").text;
  };
  EXPECT_EQ(text(ToolTexts::kDocument001, "runCommand", "mkfs /dev/sda"), "Command blocked: it formats a disk");
  EXPECT_EQ(text(ToolTexts::kDocument002, "run_bash", "mkfs /dev/sda"), "Error: Dangerous command blocked");
  EXPECT_EQ(text(ToolTexts::kDocument001, "runCommand", "make"), "ok\n");
  EXPECT_EQ(text(ToolTexts::kDocument002, "run_bash", "make"), "ok");
  EXPECT_TRUE(Toolbox(ruled, {.texts = ToolTexts::kDocument001}).call("runCommand", R"({"command": "mkfs /dev/sda"})").failed);
}

// The text is what arrived; the sandbox keeps less of it for `stdout`.
TEST_F(Tools, OutputThatIsShownWholeWasNotCut) {
  ExecResult result;
  result.limits_hit = {"output"};
  result.violations.push_back({.operation = "limit", .target = "output", .rule = "limits.output_bytes", .allowed = "up to 5"});
  result.out.bytes = "12345";
  mock_->set_answer("loud", [&](const Command&, const ExecOptions&) { return result; });
  const ToolResult whole = call("bash", R"({"command": "loud"})");
  EXPECT_EQ(whole.text, "12345\n[exit code 0]");
  EXPECT_EQ(parsed(whole)["violations"].size(), 1U) << "of `stdout`";
  result.reason = Reason::kOutput, result.exit_code = 137, result.message = "too much";
  const std::string ended = call("bash", R"({"command": "loud"})").text;
  EXPECT_NE(ended.find("\"limit\" of \"output\""), std::string::npos) << ended;
  EXPECT_NE(ended.find("allowed: \"up to 5\""), std::string::npos) << ended;
}

TEST_F(Tools, AResultSaysWhatOfItsTextCameFromElsewhere) {
  EXPECT_EQ(foreign_text(call("bash", R"({"command": "make"})"), ""), "ok\n");
  EXPECT_EQ(foreign_text(call("read_file", R"({"path": "f"})"), ""), "one\ntwo\nthree\n");
  EXPECT_EQ(foreign_text(call("write_file", R"({"path": "n", "content": "x"})"), ""), "");
  const std::string missing = R"({"path": "none"})";
  EXPECT_EQ(foreign_text(call("read_file", missing), missing), "") << "the call's own words";
  EXPECT_EQ(foreign_text({.text = "out\nError: `met` and `given`\nnext: `ours`", .failed = true, .own_from = 4}, "given"),
            "out\n\n\nmet");
  EXPECT_EQ(
      foreign_text({.text = "refused", .violations = {{.program = "sh", .operation = "read", .target = "/k"}}, .own_from = 0}, ""),
      "/k\n\nsh");
  EXPECT_EQ(foreign_text({.text = "of a program's own tool"}, ""), "of a program's own tool");
}

// `belljar mcp` refuses by the hook, before the sandbox's own rules are reached.
TEST_F(Tools, WhatTheHookRefusesReadsAsInTheDocuments) {
  const auto hook = [](const ToolRequest& request) -> ToolVerdict {
    return {.allowed = request.command != "mkfs /dev/sda" && request.kind != ToolKind::kWrite,
            .reason = "it formats a disk",
            .next = "do not"};
  };
  const auto text = [&](ToolTexts texts, std::string_view tool, std::string_view command) {
    return Toolbox(mock_, {.texts = texts, .hook = hook}).call(tool, R"({"command": ")" + std::string(command) + R"("})").text;
  };
  EXPECT_EQ(text(ToolTexts::kDocument001, "runCommand", "mkfs /dev/sda"), "Command blocked: it formats a disk");
  EXPECT_EQ(text(ToolTexts::kDocument002, "run_bash", "mkfs /dev/sda"), "Error: Dangerous command blocked");
  EXPECT_EQ(text(ToolTexts::kDocument001, "runCommand", "make"), "ok\n");
  EXPECT_EQ(text(ToolTexts::kDocument002, "run_bash", "make"), "ok");
  EXPECT_TRUE(Toolbox(mock_, {.texts = ToolTexts::kDocument001, .hook = hook})
                  .call("runCommand", R"({"command": "mkfs /dev/sda"})")
                  .failed);
  // What a person can still allow says how; what is refused does not.
  const auto ask = [](const ToolRequest&) -> ToolVerdict {
    return {.allowed = false, .reason = "nobody has answered", .next = "tell the user to answer", .undecided = true};
  };
  const std::string run = R"({"command": "make"})";
  EXPECT_EQ(Toolbox(mock_, {.texts = ToolTexts::kDocument001, .hook = ask}).call("runCommand", run).text,
            "Command blocked: nobody has answered; tell the user to answer");
  EXPECT_EQ(Toolbox(mock_, {.texts = ToolTexts::kDocument002, .hook = ask}).call("run_bash", run).text,
            "Error: Dangerous command blocked: nobody has answered; tell the user to answer");
  // The documents have no words of their own for these.
  EXPECT_NE(text(ToolTexts::kDocument000, "bash", "mkfs /dev/sda").find("bash was not allowed"), std::string::npos);
  EXPECT_NE(text(ToolTexts::kBelljar, "bash", "mkfs /dev/sda").find("bash was not allowed"), std::string::npos);
}

TEST_F(Tools, Document001LooksAtThePathBeforeAnybodyIsAsked) {
  int asked = 0;
  const ToolOptions second{.texts = ToolTexts::kDocument001, .hook = [&](const ToolRequest&) -> ToolVerdict {
                             ++asked;
                             return {.allowed = false, .reason = "no"};
                           }};
  for (const char* tool : {"readFile", "writeFile", "deleteFile", "listFiles"}) {
    const std::string content = std::string_view(tool) == "writeFile" ? R"(, "content": "")" : "";
    for (const std::string path : {"/etc/passwd", "../x", "nope/../../x"})
      EXPECT_EQ(call(tool, R"({"path": ")" + path + "\"" + content + "}", second).text,
                "Error: Path is outside the allowed workspace: " + path)
          << tool;
    EXPECT_EQ(std::exchange(asked, 0), 0) << tool;
    EXPECT_TRUE(has(call(tool, R"({"path": "f")" + content + "}", second).text, "was not allowed")) << tool;
    EXPECT_EQ(std::exchange(asked, 0), 1) << "the twin";
  }
}

TEST_F(Tools, TheLimitsOfTheDocuments) {
  mock_->set_output("much", std::string(250'000, 'x'));
  const std::string first = call("bash", R"({"command": "much"})", {.texts = ToolTexts::kDocument000}).text;
  EXPECT_EQ(first, std::string(199'800, 'x') + "\n\n[... truncated, 50200 chars omitted ...]");
  EXPECT_EQ(call("run_bash", R"({"command": "much"})", {.texts = ToolTexts::kDocument002}).text, std::string(50'000, 'x'));
  mock_->set_output("just", std::string(200'000, 'x'));
  EXPECT_EQ(call("bash", R"({"command": "just"})", {.texts = ToolTexts::kDocument000}).text, std::string(200'000, 'x'));
}

TEST(CharacterCount, PiecesThatEndAnywhereCountAsTheWhole) {
  const std::string text = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80 \xFF\xC3(\xF0\x9F\x98\xE2\x82";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    tools::CharacterCount count;
    for (std::size_t at = 0; at < text.size(); at += size) count.add(std::string_view(text).substr(at, size));
    EXPECT_EQ(count.characters(), tools::characters(text)) << size;
    EXPECT_EQ(count.bytes(), text.size());
  }
}

}  // namespace
}  // namespace belljar
