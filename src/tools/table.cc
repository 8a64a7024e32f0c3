// The tools as they are told to a model.
#include <span>
#include <string_view>

#include "belljar/tools.h"
#include "tools/arguments.h"
#include "tools/tool.h"

namespace belljar::tools {
namespace {

using enum ArgumentType;
using enum Need;

constexpr Parameter kPath{"path", kText, kRequired,
                          "Relative to the workspace, or absolute and inside it or another directory that the policy opens"};

constexpr Parameter kBash[] = {
    {"command", kText, kRequired, "Shell text: pipes, lists, redirections, several lines"},
    {"cwd", kText, kOptional, "Where it starts: a directory of the workspace. Default: the workspace"},
    {"timeout_ms", kInteger, kOptional,
     "Milliseconds until it is ended. Default 30000 in the foreground, at most what the policy says; none in the background", 1},
    {"stdin", kText, kOptional, "What it reads from stdin. Default: nothing"},
    {"background", kFlag, kOptional,
     "Do not wait for it: servers, watchers, long builds. bash_output reads what it says, bash_kill ends it"},
};
constexpr std::string_view kBashOutput =
    R"({"type":"object","properties":{"exit_code":{"type":"integer"},"reason":{"type":"string"},"signal":{"type":"integer"},"message":{"type":"string"},"duration_ms":{"type":"integer"},"stdout":{"type":"string"},"stderr":{"type":"string"},"stdout_omitted":{"type":"integer"},"stderr_omitted":{"type":"integer"},"limits_hit":{"type":"array","items":{"type":"string"}},"violations":{"type":"array","items":{"type":"object"}},"id":{"type":"string"},"running":{"type":"boolean"},"pid":{"type":"integer"}}})";

constexpr Parameter kOutput[] = {
    {"id", kText, kRequired, "The id that bash gave"},
    {"offset", kInteger, kOptional, "From which byte on. Default: 0; a result says where to go on"},
    {"limit", kInteger, kOptional, "At most so many bytes", 1},
    {"wait_ms", kInteger, kOptional, "Wait so long for something new, at most 60000. Default: 0"},
};
constexpr std::string_view kOutputOutput =
    R"({"type":"object","properties":{"id":{"type":"string"},"running":{"type":"boolean"},"output":{"type":"string"},"offset":{"type":"integer"},"next_offset":{"type":"integer"},"total":{"type":"integer"},"exit_code":{"type":"integer"},"reason":{"type":"string"}},"required":["id","running","output","offset","next_offset","total"]})";
constexpr Parameter kKill[] = {{"id", kText, kRequired, "The id that bash gave"}};

constexpr Parameter kRead[] = {
    kPath,
    {"line", kInteger, kOptional, "The first line to read, from 1. Default: 1", 1},
    {"lines", kInteger, kOptional, "How many lines. Default: all; what is too long is cut in the middle", 1},
    {"encoding", kText, kOptional, "base64 for what is no text", 0, "utf-8|base64"},
};
constexpr std::string_view kReadOutput =
    R"({"type":"object","properties":{"path":{"type":"string"},"size":{"type":"integer"},"lines":{"type":"integer"},"content":{"type":"string"},"truncated":{"type":"boolean"},"encoding":{"type":"string"}},"required":["path","size","content"]})";
constexpr Parameter kWrite[] = {
    kPath,
    {"content", kText, kRequired, "What the file is to hold"},
    {"append", kFlag, kOptional, "Put it at the end instead"},
    {"executable", kFlag, kOptional, "Make the file executable"},
    {"encoding", kText, kOptional, "base64: the content is that, decoded", 0, "utf-8|base64"},
};
constexpr Parameter kReplace[] = {
    kPath,
    {"old", kText, kRequired, "The text to replace, exactly as it is in the file. It must be there once"},
    {"new", kText, kRequired, "What is to be there instead"},
    {"all", kFlag, kOptional, "Replace every place"},
};
constexpr Parameter kList[] = {{"path", kText, kOptional, "A directory. Default: the workspace"}};
constexpr Parameter kGlob[] = {
    {"pattern", kText, kRequired, "Relative to the workspace: `src/**/*.cc`; `**` is any number of directories"},
    {"max_results", kInteger, kOptional, "Default and most: 1000", 1},
};
constexpr Parameter kGrep[] = {
    {"text", kText, kRequired, "Lines that hold this text, as it is: no regular expression (for those use bash with grep)"},
    {"files", kText, kOptional, "In which files, a pattern as of glob. Default: `**`"},
    {"ignore_case", kFlag, kOptional, "Letters of both cases are alike (ASCII)"},
    {"max_results", kInteger, kOptional, "Default and most: 1000", 1},
};
constexpr Parameter kDelete[] = {
    kPath,
    {"recursive", kFlag, kOptional, "A directory with everything in it"},
};
constexpr Parameter kPatch[] = {{"patch", kText, kRequired,
                                 "A unified diff. `--- /dev/null` makes a file, `+++ /dev/null` deletes one; git's `rename from` "
                                 "and `rename to` are understood"}};

constexpr Tool kTools[] = {
    {"bash", "Run a command",
     "Runs a shell command in the sandbox and gives its output and its exit code. Its file system beyond the workspace, its "
     "network and its resources are limited by a "
     "policy; what the policy refused is told at the end.",
     ToolKind::kExecute, kBash, kBashOutput, bash},
    {"bash_output", "Read a command's output",
     "Reads the output of a command in the background, or of one that said more than was shown, page by page.", ToolKind::kControl,
     kOutput, kOutputOutput, bash_output},
    {"bash_kill",
     "End a command",
     "Ends a command in the background with everything it started.",
     ToolKind::kControl,
     kKill,
     {},
     bash_kill},
    {"read_file", "Read a file", "Reads a file of the workspace, or some lines of it.", ToolKind::kRead, kRead, kReadOutput,
     read_file},
    {"write_file",
     "Write a file",
     "Writes a whole file of the workspace; makes it and its directories where they are missing.",
     ToolKind::kWrite,
     kWrite,
     {},
     write_file},
    {"str_replace",
     "Replace text in a file",
     "Replaces a text that is in a file exactly once.",
     ToolKind::kWrite,
     kReplace,
     {},
     str_replace},
    {"list",
     "List a directory",
     "Lists a directory of the workspace: directories end in /, files have their size.",
     ToolKind::kRead,
     kList,
     {},
     list},
    {"glob", "Find files by name", "Finds the files of the workspace whose path fits a pattern.", ToolKind::kRead, kGlob, {}, glob},
    {"grep", "Find text in files", "Finds the lines of the workspace's files that hold a text.", ToolKind::kRead, kGrep, {}, grep},
    {"delete",
     "Delete a file",
     "Deletes a file, a link or a directory of the workspace.",
     ToolKind::kWrite,
     kDelete,
     {},
     remove,
     nullptr,
     nullptr,
     true},
    {"apply_patch",
     "Apply a patch",
     "Applies a unified diff to the workspace: all of it, or nothing.",
     ToolKind::kWrite,
     kPatch,
     {},
     apply_patch,
     paths_of_patch},
};

}  // namespace

std::span<const Tool> own_tools() noexcept { return kTools; }

}  // namespace belljar::tools
